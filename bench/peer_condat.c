/*
 * peer_condat.c: the projection onto the simplex by the algorithm of L. Condat, "Fast projection onto the simplex and
 * the l1 ball", Mathematical Programming 158 (2016), figure 2. It filters candidates while the threshold rises.
 */
#include "kernels.h"

#include <stdlib.h>

/* v holds the candidates from `first` to `end`. A restart sets candidates aside, before `first`. */
static float threshold(const float *y, size_t n, float *v) {
    size_t first = 0, end = 1, before;
    float tau = y[0] - 1;
    v[0] = y[0];
    for (size_t i = 1; i < n; ++i) {
        if (y[i] > tau) {
            float next = tau + (y[i] - tau) / (float)(end - first + 1);
            if (next <= y[i] - 1) {
                first = end;
                next = y[i] - 1;
            }
            tau = next;
            v[end++] = y[i];
        }
    }
    if (first > 0) { /* candidates set aside may belong to the support after all */
        size_t kept = end - first, aside = first;
        for (size_t i = aside; i-- > 0;) {
            if (v[i] > tau) {
                v[--first] = v[i];
                tau += (v[i] - tau) / (float)++kept;
            }
        }
    }
    do {
        size_t to = first, size = end - first;
        before = size;
        for (size_t i = first; i < end; ++i) {
            if (v[i] > tau) {
                v[to++] = v[i];
            } else {
                tau += (tau - v[i]) / (float)--size;
            }
        }
        end = to;
    } while (end - first < before);
    return tau;
}

static void *open_row(const work *w) {
    void *candidates = malloc(w->cols * sizeof(float));
    must(candidates != NULL, "malloc");
    return candidates;
}

static void run_sparsemax(const work *w, void *state) {
    for (size_t r = 0; r < w->rows; ++r) {
        const float *x = (const float *)w->x + r * w->cols;
        float *y = (float *)w->y + r * w->cols, tau = threshold(x, w->cols, state);
        for (size_t i = 0; i < w->cols; ++i) { y[i] = x[i] > tau ? x[i] - tau : 0; }
    }
}

const kernel peer_condat[] = {
    {"sparsemax", "condat", FORWARD, 0, 0, 2, run_sparsemax, NULL, open_row, free},
    {NULL, NULL, FORWARD, 0, 0, 0, NULL, NULL, NULL, NULL},
};
