/*
 * peer_sort.c: sparsemax and entmax15 of a sorted row, as in their papers: Martins and Astudillo 2016, algorithm 1;
 * Peters, Niculae, Martins 2019, algorithm 2.
 */
#include "kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int descending(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

static float sparsemax_threshold(const float *z, size_t n) {
    float sum = 0, tau = 0;
    for (size_t k = 1; k <= n && 1 + (float)k * z[k - 1] > sum + z[k - 1]; ++k) {
        sum += z[k - 1];
        tau = (sum - 1) / (float)k;
    }
    return tau;
}

static float entmax15_threshold(const float *z, size_t n) {
    float mean = 0, mean_square = 0, tau = 0;
    for (size_t k = 1; k <= n; ++k) {
        float candidate, delta;
        mean += (z[k - 1] - mean) / (float)k;
        mean_square += (z[k - 1] * z[k - 1] - mean_square) / (float)k;
        delta = (1 - (float)k * (mean_square - mean * mean)) / (float)k;
        candidate = mean - sqrtf(delta > 0 ? delta : 0);
        if (candidate > z[k - 1]) { break; }
        tau = candidate;
    }
    return tau;
}

/* z = (scores - maximum) / power, sorted to find tau; then max(z - tau, 0)^power. */
static void threshold_rows(const work *w, float *sorted, float (*threshold)(const float *, size_t), int power) {
    size_t n = w->cols;
    for (size_t r = 0; r < w->rows; ++r) {
        const float *x = (const float *)w->x + r * n;
        float *y = (float *)w->y + r * n, max = x[0], tau;
        for (size_t i = 1; i < n; ++i) { max = x[i] > max ? x[i] : max; }
        for (size_t i = 0; i < n; ++i) { y[i] = (x[i] - max) / (float)power; }
        memcpy(sorted, y, n * sizeof *y);
        qsort(sorted, n, sizeof *sorted, descending);
        tau = threshold(sorted, n);
        for (size_t i = 0; i < n; ++i) {
            float over = y[i] > tau ? y[i] - tau : 0;
            y[i] = power == 2 ? over * over : over;
        }
    }
}

static void *open_row(const work *w) {
    void *sorted = malloc(w->cols * sizeof(float));
    must(sorted != NULL, "malloc");
    return sorted;
}

static void run_sparsemax(const work *w, void *state) { threshold_rows(w, state, sparsemax_threshold, 1); }
static void run_entmax15(const work *w, void *state) { threshold_rows(w, state, entmax15_threshold, 2); }

const kernel peer_sort[] = {
    {"sparsemax", "sort", FORWARD, 0, 0, 2, run_sparsemax, NULL, open_row, free},
    {"entmax15", "sort", FORWARD, 0, 0, 2, run_entmax15, NULL, open_row, free},
    {NULL, NULL, FORWARD, 0, 0, 0, NULL, NULL, NULL, NULL},
};
