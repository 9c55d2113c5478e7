// peer_xnnpack.cc: the softmax operator of XNNPACK. The libraries of distributions do not export its kernels.
#include "kernels.h"

#include <xnnpack.h>

namespace {

void ok(xnn_status status) { must(status == xnn_status_success, "XNNPACK"); }

void *open_softmax(const work *w) {
    xnn_operator_t op = nullptr;
    ok(xnn_initialize(nullptr));
    ok(xnn_create_softmax_nc_f32(w->cols, w->cols, w->cols, 0, &op));
    ok(xnn_setup_softmax_nc_f32(op, w->rows, static_cast<const float *>(w->x), static_cast<float *>(w->y), nullptr));
    return op;
}

void run_softmax(const work *, void *state) { ok(xnn_run_operator(static_cast<xnn_operator_t>(state), nullptr)); }

void close_softmax(void *state) { ok(xnn_delete_operator(static_cast<xnn_operator_t>(state))); }

} // namespace

const kernel peer_xnnpack[] = {
    {"softmax", "xnnpack", FORWARD, 0, 0, 2, run_softmax, nullptr, open_softmax, close_softmax},
    {nullptr, nullptr, FORWARD, 0, 0, 0, nullptr, nullptr, nullptr, nullptr},
};
