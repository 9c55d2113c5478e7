/* peer_limits.c: the memory traffic of a kernel without its arithmetic. Compile it with flags that vectorise sums. */
#include "kernels.h"

#include <string.h>

/* Enough lanes to hide the latency of max. */
enum { LANES = 64 };

static float row_max(const float *x, size_t n) {
    float lane[LANES], top = x[0];
    size_t i = 0;
    for (size_t j = 0; j < LANES; ++j) { lane[j] = x[0]; }
    for (; i + LANES <= n; i += LANES) {
        for (size_t j = 0; j < LANES; ++j) { lane[j] = lane[j] > x[i + j] ? lane[j] : x[i + j]; }
    }
    for (size_t j = 0; j < LANES && i > 0; ++j) { top = top > lane[j] ? top : lane[j]; }
    for (; i < n; ++i) { top = top > x[i] ? top : x[i]; }
    return top;
}

static void run_copy(const work *w, void *state) {
    (void)state;
    memcpy(w->y, w->x, w->rows * w->cols * sizeof(float));
}

static void run_max_copy(const work *w, void *state) {
    volatile float keep;
    (void)state;
    for (size_t r = 0; r < w->rows; ++r) {
        const float *x = (const float *)w->x + r * w->cols;
        float *y = (float *)w->y + r * w->cols;
        keep = row_max(x, w->cols);
        for (size_t i = 0; i < w->cols; ++i) { y[i] = x[i]; }
    }
    (void)keep;
}

static void run_two_reads(const work *w, void *state) {
    const float *gy = w->gy, *y = w->y;
    float *gx = w->gx;
    (void)state;
    for (size_t i = 0; i < w->rows * w->cols; ++i) { gx[i] = gy[i] + y[i]; }
}

const kernel peer_limits[] = {
    {"limit", "copy", FORWARD, 0, 0, 2, run_copy, NULL, NULL, NULL},
    {"limit", "max-copy", FORWARD, 0, 0, 2, run_max_copy, NULL, NULL, NULL},
    {"limit", "two-reads-one-write", BACKWARD, 0, 0, 3, run_two_reads, NULL, NULL, NULL},
    {NULL, NULL, FORWARD, 0, 0, 0, NULL, NULL, NULL, NULL},
};
