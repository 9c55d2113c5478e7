/*
 * The layout of every public structure, and what comes of one that has padding, as text. -DPACKED=N: an earlier header
 * has left a packing on.
 */
#include <stddef.h>
#include <stdio.h>

#ifdef PACKED
#    pragma pack(push, PACKED)
#endif
#include "multimax.h"
#ifdef PACKED
#    pragma pack(pop)
#endif

#define SHOW(type, last) printf(#type " %u, " #last " at %u\n", (unsigned)sizeof(type), (unsigned)offsetof(type, last))

int main(void) {
    const float x[3] = {2, 1, -1};
    float y[3] = {0, 0, 0};
    double loss = 0;
    const int32_t index = 1;
    mmax_multimax_params p = mmax_multimax_identity(2);
    mmax_shape s = mmax_row(3);
    mmax_targets t = mmax_labels(&index);
    mmax_status status;
    SHOW(mmax_shape, attention);
    SHOW(mmax_attention, masked);
    SHOW(mmax_multimax_params, d);
    SHOW(mmax_multimax_grads, d);
    SHOW(mmax_targets, q_stride);
    p.t_b[0] = 1.5;
    p.b[1] = 0.25;
    p.t_b[1] = 1.25;
    p.t_d[0] = 0.5;
    p.d[0] = 0.75;
    s.scale = 0.75;
    t.grad_scale = 0.5;
    status = mmax_multimax_loss_f32(&loss, y, NULL, x, &p, t, s);
    printf("%s %.6f %.6f %.6f %.6f\n", mmax_status_string(status), loss, (double)y[0], (double)y[1], (double)y[2]);
    return status != MMAX_OK;
}
