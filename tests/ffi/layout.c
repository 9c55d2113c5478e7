/* Prints how this compiler lays out the public types: "NAME SIZE", then "NAME.FIELD OFFSET" in order. */
#include "multimax.h"

#include <stddef.h>
#include <stdio.h>

#define SIZE(type)          printf(#type " %u\n", (unsigned)sizeof(type))
#define OFFSET(type, field) printf(#type "." #field " %u\n", (unsigned)offsetof(type, field))

int main(void) {
    SIZE(mmax_status);
    SIZE(mmax_isa);
    SIZE(mmax_shape);
    OFFSET(mmax_shape, rows);
    OFFSET(mmax_shape, cols);
    OFFSET(mmax_shape, x_stride);
    OFFSET(mmax_shape, y_stride);
    OFFSET(mmax_shape, gx_stride);
    OFFSET(mmax_shape, gy_stride);
    OFFSET(mmax_shape, scale);
    OFFSET(mmax_shape, ends);
    OFFSET(mmax_shape, starts);
    OFFSET(mmax_shape, attention);
    OFFSET(mmax_shape, inner);
    OFFSET(mmax_shape, accumulate);
    SIZE(mmax_attention);
    OFFSET(mmax_attention, head_rows);
    OFFSET(mmax_attention, scales);
    OFFSET(mmax_attention, bias);
    OFFSET(mmax_attention, bias_rows);
    OFFSET(mmax_attention, bias_stride);
    OFFSET(mmax_attention, slopes);
    OFFSET(mmax_attention, sinks);
    OFFSET(mmax_attention, masked);
    OFFSET(mmax_attention, heads);
    SIZE(mmax_multimax_params);
    OFFSET(mmax_multimax_params, order);
    OFFSET(mmax_multimax_params, t_b);
    OFFSET(mmax_multimax_params, t_d);
    OFFSET(mmax_multimax_params, b);
    OFFSET(mmax_multimax_params, d);
    SIZE(mmax_multimax_grads);
    OFFSET(mmax_multimax_grads, t_b);
    OFFSET(mmax_multimax_grads, t_d);
    OFFSET(mmax_multimax_grads, b);
    OFFSET(mmax_multimax_grads, d);
    SIZE(mmax_targets);
    OFFSET(mmax_targets, index);
    OFFSET(mmax_targets, label_smoothing);
    OFFSET(mmax_targets, grad_scale);
    OFFSET(mmax_targets, weights);
    OFFSET(mmax_targets, q);
    OFFSET(mmax_targets, q_stride);
    SIZE(mmax_router);
    OFFSET(mmax_router, k);
    OFFSET(mmax_router, gate);
    OFFSET(mmax_router, factor);
    OFFSET(mmax_router, bias);
    OFFSET(mmax_router, groups);
    OFFSET(mmax_router, group_k);
    OFFSET(mmax_router, group_best);
    return 0;
}
