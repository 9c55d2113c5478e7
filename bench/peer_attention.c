/*
 * peer_attention.c: engines without an attention call. They add the bias, or set masks, in a separate pass before
 * softmax. The file also has ggml's soft_max_ext in plain C (scale x + slope mask, then softmax, with a sink).
 */
#include "kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SINK 0.5f

static void *room_for_scores(const work *w) {
    static const mmax_isa best_first[] = {MMAX_ISA_AVX512,  MMAX_ISA_AVX2, MMAX_ISA_NEON,
                                          MMAX_ISA_WASM128, MMAX_ISA_SSE2, MMAX_ISA_SCALAR};
    void *scores = malloc(w->rows * w->cols * sizeof(float));
    int i = 0;
    must(scores != NULL, "malloc");
    while (mmax_isa_select(best_first[i]) != MMAX_OK) { ++i; }
    return scores;
}

static void run_add(const work *w, void *state) {
    const float *x = w->x, *bias = w->gy;
    float *scores = state;
    for (size_t i = 0; i < w->rows * w->cols; ++i) { scores[i] = x[i] + bias[i]; }
    must(mmax_softmax_f32(w->y, scores, mmax_rows(w->rows, w->cols)) == MMAX_OK, "softmax");
}

static void run_mask(const work *w, void *state) {
    static const uint32_t minus_inf = 0xff800000; /* as bits, since -ffast-math has no infinities */
    const float *x = w->x;
    float *scores = state, masked;
    memcpy(&masked, &minus_inf, sizeof masked);
    for (size_t i = 0; i < w->rows * w->cols; ++i) { scores[i] = x[i] <= -1e9f ? masked : x[i]; }
    must(mmax_softmax_f32(w->y, scores, mmax_rows(w->rows, w->cols)) == MMAX_OK, "softmax");
}

static void soft_max_ext(float *y, const float *x, const float *mask, const float *sink, float scale, float slope,
                         size_t n) {
    float max = sink ? *sink : x[0] * scale + (mask ? slope * mask[0] : 0), sum = 0;
    for (size_t i = 0; i < n; ++i) { y[i] = x[i] * scale + (mask ? slope * mask[i] : 0); }
    for (size_t i = 0; i < n; ++i) { max = y[i] > max ? y[i] : max; }
    for (size_t i = 0; i < n; ++i) {
        y[i] = expf(y[i] - max);
        sum += y[i];
    }
    sum += sink ? expf(*sink - max) : 0;
    for (size_t i = 0; i < n; ++i) { y[i] *= 1 / sum; }
}

static void run_ggml_bias(const work *w, void *state) {
    (void)state;
    for (size_t at = 0; at < w->rows * w->cols; at += w->cols) {
        soft_max_ext((float *)w->y + at, (const float *)w->x + at, (const float *)w->gy + at, NULL, 1, 1, w->cols);
    }
}

static void run_ggml_sinks(const work *w, void *state) {
    const float sink = SINK;
    (void)state;
    for (size_t at = 0; at < w->rows * w->cols; at += w->cols) {
        soft_max_ext((float *)w->y + at, (const float *)w->x + at, NULL, &sink, 1, 1, w->cols);
    }
}

const kernel peer_attention[] = {
    {"attention_bias", "add-then-softmax", FORWARD, 0, 0, 3, run_add, NULL, room_for_scores, free},
    {"attention_masked", "mask-then-softmax", FORWARD, 0, 0, 2, run_mask, NULL, room_for_scores, free},
    {"attention_bias", "like-ggml", FORWARD, 0, 0, 3, run_ggml_bias, NULL, NULL, NULL},
    {"attention_sinks", "like-ggml", FORWARD, 0, 0, 2, run_ggml_sinks, NULL, NULL, NULL},
    {NULL, NULL, FORWARD, 0, 0, 0, NULL, NULL, NULL, NULL},
};
