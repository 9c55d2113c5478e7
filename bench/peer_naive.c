/*
 * peer_naive.c: softmax as it is written without a library. Compiled once for each set of flags, with NAIVE the suffix
 * of the table's name and NAIVE_BY the name in the report.
 */
#include "kernels.h"

#include <math.h>

#define TABLE_(suffix) peer_naive_##suffix
#define TABLE(suffix)  TABLE_(suffix)

static void softmax(float *y, const float *x, size_t n) {
    float max = x[0], sum = 0;
    for (size_t i = 1; i < n; ++i) {
        if (x[i] > max) { max = x[i]; }
    }
    for (size_t i = 0; i < n; ++i) {
        y[i] = expf(x[i] - max);
        sum += y[i];
    }
    for (size_t i = 0; i < n; ++i) { y[i] /= sum; }
}

static void run_softmax(const work *w, void *state) {
    (void)state;
    for (size_t r = 0; r < w->rows; ++r) {
        softmax((float *)w->y + r * w->cols, (const float *)w->x + r * w->cols, w->cols);
    }
}

static void run_softmax_backward(const work *w, void *state) {
    (void)state;
    for (size_t r = 0; r < w->rows; ++r) {
        const float *gy = (const float *)w->gy + r * w->cols, *y = (const float *)w->y + r * w->cols;
        float *gx = (float *)w->gx + r * w->cols, dot = 0;
        for (size_t i = 0; i < w->cols; ++i) { dot += gy[i] * y[i]; }
        for (size_t i = 0; i < w->cols; ++i) { gx[i] = y[i] * (gy[i] - dot); }
    }
}

/* Some columns at a time, so that their maxima and sums stay in the first cache. */
static void run_softmax_axis(const work *w, void *state) {
    enum { MOST = 256 };
    const size_t rows = w->rows;
    (void)state;
    for (size_t first = 0; first < rows; first += MOST) {
        const float *x = (const float *)w->x + first;
        float *y = (float *)w->y + first, max[MOST], sum[MOST];
        const size_t width = rows - first < MOST ? rows - first : MOST;
        for (size_t j = 0; j < width; ++j) {
            max[j] = x[j];
            sum[j] = 0;
        }
        for (size_t i = 1; i < w->cols; ++i) {
            for (size_t j = 0; j < width; ++j) { max[j] = x[i * rows + j] > max[j] ? x[i * rows + j] : max[j]; }
        }
        for (size_t i = 0; i < w->cols; ++i) {
            for (size_t j = 0; j < width; ++j) {
                y[i * rows + j] = expf(x[i * rows + j] - max[j]);
                sum[j] += y[i * rows + j];
            }
        }
        for (size_t i = 0; i < w->cols; ++i) {
            for (size_t j = 0; j < width; ++j) { y[i * rows + j] /= sum[j]; }
        }
    }
}

const kernel TABLE(NAIVE)[] = {
    {"softmax", NAIVE_BY, FORWARD, 0, 0, 2, run_softmax, NULL, NULL, NULL},
    {"softmax_backward", NAIVE_BY, BACKWARD, 0, 0, 3, run_softmax_backward, run_softmax, NULL, NULL},
    {"softmax_axis", NAIVE_BY, FORWARD, 0, 0, 2, run_softmax_axis, NULL, NULL, NULL},
    {NULL, NULL, FORWARD, 0, 0, 0, NULL, NULL, NULL, NULL},
};
