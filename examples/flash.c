/*
 * flash.c: causal attention that never holds a whole row of weights, with SoftMax or MultiMax. It normalises each block
 * of keys alone, and joins the blocks by softmax over their log-sum-exps. With OpenMP, tiles of rows run in parallel.
 * main() compares with whole rows.
 *
 *     cc -O2 -fopenmp -Iinclude examples/flash.c -o /tmp/flash -lm && /tmp/flash    (or without -fopenmp)
 */
#include "multimax.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 32, TILE = 16, BLOCK = 64 };

/* A tile of queries: out is the weighted mean of the values seen so far, lse is the log-sum-exp of their scores. */
struct tile {
    double out[TILE][WIDTH], lse[TILE];
    float scores[TILE][BLOCK]; /* scores of one block, then its weights */
};

static float dot(const float *a, const float *b) {
    float sum = 0;
    for (size_t c = 0; c < WIDTH; ++c) { sum += a[c] * b[c]; }
    return sum;
}

/* Adds the keys first to first + BLOCK - 1 for the queries from `query` on. Query q sees the q + 1 leading keys. */
static mmax_status add_block(struct tile *t, const float *q, const float *k, const float *v, size_t query, size_t rows,
                             size_t first, const mmax_multimax_params *p) {
    uint32_t ends[TILE];
    double block_lse[TILE], weights[TILE][2]; /* [0]: of earlier blocks, [1]: of this block */
    mmax_shape s = mmax_rows(rows, BLOCK);
    s.scale = 1 / sqrt((double)WIDTH);
    s.ends = ends;
    for (size_t r = 0; r < rows; ++r) {
        size_t visible = query + r < first ? 0 : query + r - first + 1;
        ends[r] = (uint32_t)(visible < BLOCK ? visible : BLOCK);
        for (size_t j = 0; j < ends[r]; ++j) {
            t->scores[r][j] = dot(q + (query + r) * WIDTH, k + (first + j) * WIDTH);
        }
    }
    mmax_status status = p == NULL ? mmax_softmax_lse_f32(t->scores[0], block_lse, t->scores[0], s)
                                   : mmax_multimax_lse_f32(t->scores[0], block_lse, t->scores[0], p, s);
    if (status != MMAX_OK) { return status; }
    for (size_t r = 0; r < rows; ++r) { weights[r][0] = t->lse[r], weights[r][1] = block_lse[r]; }
    status =
        mmax_softmax_lse_f64(weights[0], t->lse, weights[0], mmax_rows(rows, 2)); /* t->lse becomes the lse of both */
    if (status != MMAX_OK) { return status; }
    for (size_t r = 0; r < rows; ++r) {
        for (size_t c = 0; c < WIDTH; ++c) { t->out[r][c] *= weights[r][0]; }
        for (size_t j = 0; j < ends[r]; ++j) {
            double weight = weights[r][1] * (double)t->scores[r][j];
            for (size_t c = 0; c < WIDTH; ++c) { t->out[r][c] += weight * (double)v[(first + j) * WIDTH + c]; }
        }
    }
    return MMAX_OK;
}

/* out, q, k and v are tokens x WIDTH; p is NULL for SoftMax. */
static mmax_status flash(float *out, const float *q, const float *k, const float *v, size_t tokens,
                         const mmax_multimax_params *p) {
    int tiles = (int)((tokens + TILE - 1) / TILE), failed = MMAX_OK;
#ifdef _OPENMP
#    pragma omp parallel for schedule(dynamic) reduction(max : failed)
#endif
    for (int i = 0; i < tiles; ++i) {
        struct tile t;
        size_t query = (size_t)i * TILE, rows = tokens - query < TILE ? tokens - query : TILE;
        mmax_status status = MMAX_OK;
        memset(t.out, 0, sizeof t.out);
        for (size_t r = 0; r < TILE; ++r) { t.lse[r] = -HUGE_VAL; }
        for (size_t first = 0; first < query + rows && status == MMAX_OK; first += BLOCK) {
            status = add_block(&t, q, k, v, query, rows, first, p);
        }
        for (size_t c = 0; c < rows * WIDTH; ++c) { out[query * WIDTH + c] = (float)t.out[c / WIDTH][c % WIDTH]; }
        if ((int)status > failed) { failed = (int)status; }
    }
    return (mmax_status)failed;
}

/* ==== the check ==== */

static void stop_unless(mmax_status status) {
    if (status != MMAX_OK) {
        fprintf(stderr, "flash: %s\n", mmax_status_string(status));
        exit(1);
    }
}

/* The largest difference of out from attention with whole rows; infinite if a number is NaN. */
static double difference(const float *out, const float *q, const float *k, const float *v, size_t tokens,
                         const mmax_multimax_params *p, float *row) {
    double largest = 0;
    for (size_t r = 0; r < tokens; ++r) {
        mmax_shape s = mmax_row(r + 1);
        s.scale = 1 / sqrt((double)WIDTH);
        for (size_t j = 0; j <= r; ++j) { row[j] = dot(q + r * WIDTH, k + j * WIDTH); }
        stop_unless(p == NULL ? mmax_softmax_f32(row, row, s) : mmax_multimax_f32(row, row, p, s));
        for (size_t c = 0; c < WIDTH; ++c) {
            double sum = 0;
            for (size_t j = 0; j <= r; ++j) { sum += (double)row[j] * (double)v[j * WIDTH + c]; }
            double error = fabs(sum - (double)out[r * WIDTH + c]);
            if (!(error <= largest)) { largest = error >= 0 ? error : HUGE_VAL; }
        }
    }
    return largest;
}

int main(void) {
    static const mmax_multimax_params params = {2, {1.8, 0.9}, {0.6, 1.1}, {-0.3, 0.4}, {0.5, 0.2}};
    enum { TOKENS = 1000, SIZE = TOKENS * WIDTH }; /* neither whole tiles nor whole blocks */
    float *memory = malloc((4 * SIZE + TOKENS) * sizeof *memory), *out;
    uint32_t seed = 0;
    int good = 1;
    if (memory == NULL) {
        fprintf(stderr, "flash: no memory\n");
        return 1;
    }
    out = memory + 3 * SIZE;
    for (size_t i = 0; i < 3 * SIZE; ++i) {
        seed = seed * 1664525 + 1013904223; /* the generator of Numerical Recipes */
        memory[i] = (float)(seed >> 8) / 4194304.0F - 2;
    }
    for (int multimax = 0; multimax < 2; ++multimax) {
        const mmax_multimax_params *p = multimax ? &params : NULL;
        stop_unless(flash(out, memory, memory + SIZE, memory + 2 * SIZE, TOKENS, p));
        double error = difference(out, memory, memory + SIZE, memory + 2 * SIZE, TOKENS, p, out + SIZE);
        printf("%-8s  largest difference from whole rows: %.1e\n", multimax ? "multimax" : "softmax", error);
        good &= error <= 1e-5;
    }
    free(memory);
    printf("%s: a tile of %d rows takes %u bytes for any number of keys\n", good ? "Good" : "WRONG", TILE,
           (unsigned)sizeof(struct tile));
    return good ? 0 : 1;
}
