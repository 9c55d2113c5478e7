// peer_torch.cc: softmax of PyTorch, its gradient, and its topk. On PyTorch's tensors also sparsemax and entmax15 by
// sorting, and entmax of any alpha by bisection.
#include "kernels.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace {

struct tensors {
    c10::InferenceMode inference;
    at::Tensor x, y, gy, gx, top, index;
};

void *open_tensors(const work *w) {
    const int64_t rows = static_cast<int64_t>(w->rows), cols = static_cast<int64_t>(w->cols);
    at::set_num_threads(1);
    tensors *t = new tensors;
    t->x = at::from_blob(w->x, {rows, cols}, at::kFloat);
    t->y = at::from_blob(w->y, {rows, cols}, at::kFloat);
    t->gy = at::from_blob(w->gy, {rows, cols}, at::kFloat);
    t->gx = at::from_blob(w->gx, {rows, cols}, at::kFloat);
    return t;
}

void close_tensors(void *state) { delete static_cast<tensors *>(state); }

void run_softmax(const work *, void *state) {
    tensors *t = static_cast<tensors *>(state);
    at::_softmax_out(t->y, t->x, 1, false);
}

void run_softmax_backward(const work *, void *state) {
    tensors *t = static_cast<tensors *>(state);
    at::_softmax_backward_data_out(t->gx, t->gy, t->y, 1, at::kFloat);
}

// Martins and Astudillo 2016, algorithm 1.
void run_sparsemax(const work *w, void *state) {
    tensors *t = static_cast<tensors *>(state);
    const at::Tensor sorted = std::get<0>(t->x.sort(1, true));
    const at::Tensor k = at::arange(1, static_cast<int64_t>(w->cols) + 1, at::kFloat);
    const at::Tensor excess = sorted.cumsum(1) - 1;
    const at::Tensor support = (sorted * k > excess).sum(1, true);
    at::clamp_min_out(t->y, t->x - excess.gather(1, support - 1) / support, 0);
}

// Peters, Niculae, Martins 2019, algorithm 2.
void run_entmax15(const work *w, void *state) {
    tensors *t = static_cast<tensors *>(state);
    const at::Tensor z = (t->x - t->x.amax(1, true)) / 2;
    const at::Tensor sorted = std::get<0>(z.sort(1, true));
    const at::Tensor k = at::arange(1, static_cast<int64_t>(w->cols) + 1, at::kFloat);
    const at::Tensor mean = sorted.cumsum(1) / k, mean_square = (sorted * sorted).cumsum(1) / k;
    const at::Tensor tau = mean - ((1 - k * (mean_square - mean * mean)) / k).clamp_min(0).sqrt();
    const at::Tensor support = (tau <= sorted).sum(1, true);
    at::square_out(t->y, (z - tau.gather(1, support - 1)).clamp_min(0));
}

// Weights and indices of the largest entries, as routers of mixtures of experts use them.
void run_route(const work *w, void *state) {
    const int64_t k = std::min<int64_t>(KEPT, static_cast<int64_t>(w->cols));
    tensors *t = static_cast<tensors *>(state);
    std::tie(t->top, t->index) = t->x.topk(k, 1);
    t->top = t->top.softmax(1);
}

// Gupta et al. 2021.
void run_topk(const work *w, void *state) {
    tensors *t = static_cast<tensors *>(state);
    run_route(w, state);
    t->y.zero_().scatter_(1, t->index, t->top);
}

// Peters, Niculae, Martins 2019, algorithm 1, with 50 steps as in deep-spin's entmax_bisect.
template <int hundredths> void run_entmax(const work *w, void *state) {
    tensors *t = static_cast<tensors *>(state);
    const double u = hundredths / 100.0 - 1, power = 1 / u;
    const at::Tensor x = t->x * u, max = x.amax(1, true);
    at::Tensor tau = max - 1, p;
    const at::Tensor at_least = (x - tau).clamp_min(0).pow(power).sum(1, true) - 1;
    double step = 1 - std::pow(1.0 / static_cast<double>(w->cols), u);
    for (int k = 0; k < 50; ++k) {
        const at::Tensor middle = tau + (step /= 2);
        p = (x - middle).clamp_min(0).pow(power);
        tau = at::where((p.sum(1, true) - 1) * at_least >= 0, middle, tau);
    }
    at::div_out(t->y, p, p.sum(1, true));
}

} // namespace

const kernel peer_torch[] = {
    {"softmax", "torch", FORWARD, 0, 0, 2, run_softmax, nullptr, open_tensors, close_tensors},
    {"softmax_backward", "torch", BACKWARD, 0, 0, 3, run_softmax_backward, run_softmax, open_tensors, close_tensors},
    {"sparsemax", "torch-sort", FORWARD, 0, 0, 2, run_sparsemax, nullptr, open_tensors, close_tensors},
    {"entmax15", "torch-sort", FORWARD, 0, 0, 2, run_entmax15, nullptr, open_tensors, close_tensors},
    {"topk", "torch", FORWARD, 0, 0, 2, run_topk, nullptr, open_tensors, close_tensors},
    {"route", "torch", FORWARD, 0, 0, 1, run_route, nullptr, open_tensors, close_tensors},
    {"entmax_120", "torch-bisection", FORWARD, 0, 0, 2, run_entmax<120>, nullptr, open_tensors, close_tensors},
    {"entmax_125", "torch-bisection", FORWARD, 0, 0, 2, run_entmax<125>, nullptr, open_tensors, close_tensors},
    {"entmax_175", "torch-bisection", FORWARD, 0, 0, 2, run_entmax<175>, nullptr, open_tensors, close_tensors},
    {nullptr, nullptr, FORWARD, 0, 0, 0, nullptr, nullptr, nullptr, nullptr},
};
