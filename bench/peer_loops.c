/*
 * peer_loops.c: loops written by hand instead of a library. The file is compiled once for each set of flags. LOOPS is
 * the suffix of the table's name, LOOPS_BY is the name in the report. With -O3 -march=native -ffast-math gcc vectorises
 * all loops, also expf.
 */
#include "kernels.h"

#include <math.h>

#define TABLE_(suffix) peer_loops_##suffix
#define TABLE(suffix)  TABLE_(suffix)

/* The weights of one row; returns log sum exp of its scores. */
static float softmax(float *restrict y, const float *restrict x, size_t n) {
    float max = x[0], sum = 0;
    for (size_t i = 1; i < n; ++i) { max = x[i] > max ? x[i] : max; }
    for (size_t i = 0; i < n; ++i) {
        y[i] = expf(x[i] - max);
        sum += y[i];
    }
    for (size_t i = 0; i < n; ++i) { y[i] *= 1 / sum; }
    return max + logf(sum);
}

static void run_softmax(const work *w, void *state) {
    (void)state;
    for (size_t r = 0; r < w->rows; ++r) {
        softmax((float *)w->y + r * w->cols, (const float *)w->x + r * w->cols, w->cols);
    }
}

static void backward(float *restrict gx, const float *restrict gy, const float *restrict y, size_t n) {
    float dot = 0;
    for (size_t i = 0; i < n; ++i) { dot += gy[i] * y[i]; }
    for (size_t i = 0; i < n; ++i) { gx[i] = y[i] * (gy[i] - dot); }
}

static void run_softmax_backward(const work *w, void *state) {
    (void)state;
    for (size_t r = 0; r < w->rows; ++r) {
        const size_t first = r * w->cols;
        backward((float *)w->gx + first, (const float *)w->gy + first, (const float *)w->y + first, w->cols);
    }
}

static void run_softmax_loss(const work *w, void *state) {
    const float size = (float)w->size;
    (void)state;
    for (size_t r = 0; r < w->rows; ++r) {
        const float *x = (const float *)w->x + r * w->cols;
        float *gx = (float *)w->gx + r * w->cols;
        w->per_row[r] = softmax(gx, x, w->cols) - x[w->index[r]];
        gx[w->index[r]] -= 1;
        for (size_t i = 0; size != 1 && i < w->cols; ++i) { gx[i] *= size; }
    }
}

/* Takes some columns at a time: their maxima and sums stay in the first cache. */
static void run_softmax_axis(const work *w, void *state) {
    enum { MOST = 256 };
    const size_t rows = w->rows;
    (void)state;
    for (size_t first = 0; first < rows; first += MOST) {
        const float *restrict x = (const float *)w->x + first;
        float *restrict y = (float *)w->y + first, max[MOST], sum[MOST];
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
        for (size_t j = 0; j < width; ++j) { sum[j] = 1 / sum[j]; }
        for (size_t i = 0; i < w->cols; ++i) {
            for (size_t j = 0; j < width; ++j) { y[i * rows + j] *= sum[j]; }
        }
    }
}

/* Kernels named _calls are the same loops. */
const kernel TABLE(LOOPS)[] = {
    {"softmax", LOOPS_BY, FORWARD, 0, 0, 2, run_softmax, NULL, NULL, NULL},
    {"softmax_calls", LOOPS_BY, FORWARD, 0, 0, 2, run_softmax, NULL, NULL, NULL},
    {"softmax_backward", LOOPS_BY, BACKWARD, 0, 0, 3, run_softmax_backward, run_softmax, NULL, NULL},
    {"softmax_backward_calls", LOOPS_BY, BACKWARD, 0, 0, 3, run_softmax_backward, run_softmax, NULL, NULL},
    {"softmax_loss", LOOPS_BY, LOSS, 0, 0, 2, run_softmax_loss, NULL, NULL, NULL},
    {"softmax_axis", LOOPS_BY, FORWARD, 0, 0, 2, run_softmax_axis, NULL, NULL, NULL},
    {NULL, NULL, FORWARD, 0, 0, 0, NULL, NULL, NULL, NULL},
};
