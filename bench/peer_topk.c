/*
 * peer_topk.c: softmax over the KEPT largest entries in plain C, found by a partial quickselect or by a heap. The file
 * also draws an entry from the NUCLEUS as llama2.c does: it sorts the entries that can matter.
 */
#include "kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void swap(float *a, float *b) {
    const float t = *a;
    *a = *b;
    *b = t;
}
/* Returns the k-th largest of n entries; moves them. */
static float by_quickselect(float *v, size_t n, size_t k) {
    size_t low = 0, high = n - 1;
    while (low < high) {
        const float pivot = v[(low + high) / 2];
        size_t i = low, j = high;
        for (;;) {
            while (v[i] > pivot) { ++i; }
            while (v[j] < pivot) { --j; }
            if (i >= j) { break; }
            swap(&v[i++], &v[j--]);
        }
        if (k - 1 <= j) {
            high = j;
        } else {
            low = j + 1;
        }
    }
    return v[k - 1];
}
/* A heap has the smallest of the k largest entries on top. */
static float by_heap(float *v, size_t n, size_t k) {
    float heap[KEPT];
    for (size_t i = 0; i < n; ++i) {
        size_t at = i < k ? i : 0;
        if (i >= k && v[i] <= heap[0]) { continue; }
        for (; i < k && at > 0 && heap[(at - 1) / 2] > v[i]; at = (at - 1) / 2) { heap[at] = heap[(at - 1) / 2]; }
        for (size_t child = 1; i >= k && child < k; at = child, child = 2 * at + 1) {
            if (child + 1 < k && heap[child + 1] < heap[child]) { ++child; }
            if (heap[child] >= v[i]) { break; }
            heap[at] = heap[child];
        }
        heap[at] = v[i];
    }
    return heap[0];
}
static void topk_rows(const work *w, float *copy, float (*least)(float *, size_t, size_t)) {
    const size_t n = w->cols, k = n < KEPT ? n : KEPT;
    for (size_t r = 0; r < w->rows; ++r) {
        const float *x = (const float *)w->x + r * n;
        float *y = (float *)w->y + r * n, max = x[0], sum = 0, low;
        size_t left = k;
        memcpy(copy, x, n * sizeof *x);
        low = least(copy, n, k);
        for (size_t i = 0; i < n; ++i) { left -= x[i] > low; }
        for (size_t i = 0; i < n; ++i) { max = x[i] > max ? x[i] : max; }
        for (size_t i = 0; i < n; ++i) {
            const int is_tie = x[i] == low && left > 0;
            left -= (size_t)is_tie;
            y[i] = x[i] > low || is_tie ? expf(x[i] - max) : 0;
            sum += y[i];
        }
        for (size_t i = 0; i < n; ++i) { y[i] /= sum; }
    }
}
static void *open_row(const work *w) {
    void *copy = malloc(w->cols * sizeof(float));
    must(copy != NULL, "malloc");
    return copy;
}
static void run_quickselect(const work *w, void *state) { topk_rows(w, state, by_quickselect); }
static void run_heap(const work *w, void *state) { topk_rows(w, state, by_heap); }

typedef struct candidate {
    float weight;
    uint32_t index;
} candidate;
static int descending(const void *a, const void *b) {
    const float x = ((const candidate *)a)->weight, y = ((const candidate *)b)->weight;
    return (x < y) - (x > y);
}
static void run_qsort(const work *w, void *state) {
    candidate *const c = state;
    const size_t n = w->cols;
    for (size_t r = 0; r < w->rows; ++r) {
        const float *x = (const float *)w->x + r * n;
        float *y = (float *)w->y + r * n, max = x[0], sum = 0, all = 0, drawn;
        size_t held = 0, last = 0, at = 0;
        for (size_t i = 0; i < n; ++i) { max = x[i] > max ? x[i] : max; }
        for (size_t i = 0; i < n; ++i) { sum += y[i] = expf(x[i] - max); }
        for (size_t i = 0; i < n; ++i) {
            y[i] /= sum;
            if (y[i] >= (1 - (float)NUCLEUS) / (float)(n - 1)) {
                c[held].weight = y[i];
                c[held++].index = (uint32_t)i;
            }
        }
        qsort(c, held, sizeof *c, descending);
        while (last < held && all <= (float)NUCLEUS) { all += c[last++].weight; }
        drawn = all * (float)(r * 7919 % 1024) / 1024;
        for (sum = c[0].weight; sum <= drawn && at + 1 < last; sum += c[at].weight) { ++at; }
        ((uint32_t *)w->gx)[r] = c[at].index;
    }
}
static void *open_candidates(const work *w) {
    void *c = malloc(w->cols * sizeof(candidate));
    must(c != NULL, "malloc");
    return c;
}

const kernel peer_topk[] = {
    {"sample", "qsort", FORWARD, 0, 0, 1, run_qsort, NULL, open_candidates, free},
    {"topk", "quickselect", FORWARD, 0, 0, 2, run_quickselect, NULL, open_row, free},
    {"topk", "heap", FORWARD, 0, 0, 2, run_heap, NULL, open_row, free},
    {NULL, NULL, FORWARD, 0, 0, 0, NULL, NULL, NULL, NULL},
};
