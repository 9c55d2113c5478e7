// A C++11 caller: a causal batch of scores in a std::vector, its weights, and the gradients through them.
#include "multimax.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

// Overloads give C++ one name for both types.
mmax_status multimax(std::vector<float> &y, const std::vector<float> &x, const mmax_multimax_params &p, mmax_shape s)
{
    return mmax_multimax_f32(y.data(), x.data(), &p, s);
}

mmax_status multimax(std::vector<double> &y, const std::vector<double> &x, const mmax_multimax_params &p, mmax_shape s)
{
    return mmax_multimax_f64(y.data(), x.data(), &p, s);
}

mmax_status multimax_backward(std::vector<float> &gx, mmax_multimax_grads &gp, const std::vector<float> &gy,
                              const std::vector<float> &y, const std::vector<float> &x, const mmax_multimax_params &p,
                              mmax_shape s)
{
    return mmax_multimax_backward_f32(gx.data(), &gp, gy.data(), y.data(), x.data(), &p, s);
}

mmax_status multimax_backward(std::vector<double> &gx, mmax_multimax_grads &gp, const std::vector<double> &gy,
                              const std::vector<double> &y, const std::vector<double> &x, const mmax_multimax_params &p,
                              mmax_shape s)
{
    return mmax_multimax_backward_f64(gx.data(), &gp, gy.data(), y.data(), x.data(), &p, s);
}

bool near(double a, double b, double tolerance) { return std::fabs(a - b) <= tolerance; }

// SoftMax of the first `length` scores, and its gradient: what MultiMax at the identity must agree with.
template <typename T> bool causal_batch(double tolerance)
{
    const std::size_t n = 37;
    std::vector<T> x(n * n), y(n * n, T(7)), gy(n * n), gx(n * n, T(7));
    std::vector<std::uint32_t> ends(n);
    mmax_multimax_grads gp = mmax_multimax_grads();
    mmax_shape shape = mmax_rows(n, n);
    bool good = true;

    for (std::size_t i = 0; i < n * n; ++i) {
        x[i] = T(3 * std::sin(1.7 * double(i)));
        gy[i] = T(std::cos(2.3 * double(i)));
    }
    for (std::size_t r = 0; r < n; ++r) {
        ends[r] = std::uint32_t(r + 1);
    }
    shape.scale = 0.5;
    shape.ends = ends.data();

    const mmax_multimax_params p = mmax_multimax_identity(2);
    good &= multimax(y, x, p, shape) == MMAX_OK;
    good &= multimax_backward(gx, gp, gy, y, x, p, shape) == MMAX_OK;

    for (std::size_t r = 0; r < n; ++r) {
        double sum = 0, dot = 0;
        for (std::size_t i = r * n; i <= r * n + r; ++i) {
            sum += std::exp(0.5 * double(x[i]));
            dot += std::exp(0.5 * double(x[i])) * double(gy[i]);
        }
        for (std::size_t i = r * n; i < (r + 1) * n; ++i) {
            const double weight = i <= r * n + r ? std::exp(0.5 * double(x[i])) / sum : 0.0;
            good &= near(double(y[i]), weight, tolerance);
            good &= near(double(gx[i]), 0.5 * weight * (double(gy[i]) - dot / sum), tolerance);
        }
    }
    return good;
}

} // namespace

int main()
{
    const bool f32 = causal_batch<float>(1e-6), f64 = causal_batch<double>(1e-14);
    std::printf("float %s, double %s\n", f32 ? "good" : "WRONG", f64 ? "good" : "WRONG");
    return f32 && f64 ? 0 : 1;
}
