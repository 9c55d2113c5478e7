/* kernels.c: the functions of multimax.h as kernels. This file holds the program's only copy of the library. */
#define MULTIMAX_IMPLEMENTATION
#include "kernels.h"

#include <stdio.h>
#include <stdlib.h>

#include "tables.h"

static const mmax_router *router(void) {
    static const mmax_router top = {KEPT, MMAX_GATE_CHOSEN, 0, NULL, 0, 0, 0};
    return &top;
}
static mmax_truncation nucleus(void) {
    mmax_truncation t = mmax_truncation_none();
    t.top_p = NUCLEUS;
    return t;
}

void must(int ok, const char *call) {
    if (!ok) {
        fprintf(stderr, "failed: %s\n", call);
        exit(EXIT_FAILURE);
    }
}

/* The parameters of the first layer of the language transformer: every term is active. */
const mmax_multimax_params *params_of_order(int order) {
    static mmax_multimax_params p[3];
    p[order] = params_of_layer(12, order);
    return &p[order];
}

static mmax_shape with_lengths(mmax_shape s, const work *w) {
    s.ends = w->lengths;
    return s;
}

/* interleaved rows: the entries of a row are `rows` elements apart */
static mmax_shape interleaved(mmax_shape s) {
    s.inner = s.rows;
    return s;
}

static mmax_shape with_starts(mmax_shape s, const work *w) {
    s.starts = w->starts;
    return s;
}

static mmax_shape with_attention(mmax_shape s, const mmax_attention *a) {
    s.attention = a;
    return s;
}

static mmax_attention biased(const void *bias) {
    mmax_attention a = mmax_attention_none();
    a.bias = bias;
    return a;
}

static const double sink = 0.5;
static const mmax_attention masked_below = {.masked = -1e9}, with_sink = {.sinks = &sink};

static mmax_targets targets_of(const work *w, size_t row) {
    mmax_targets t = mmax_labels(w->index + row);
    t.grad_scale = w->size;
    return t;
}

static mmax_multimax_grads grads; /* nobody reads these sums */

#define T       float
#define F(name) name##_f32
#define IS_F64  0
#include "kernels_of_type.h"
#undef T
#undef F
#undef IS_F64

#define T       double
#define F(name) name##_f64
#define IS_F64  1
#include "kernels_of_type.h"
