/*
 * router.c: who works on which token in a mixture of experts. Mixtral's router takes softmax over the two largest
 * scores. DeepSeek-V3's takes sigmoids, the best four of eight groups, and then the best entries; a bias that is learned
 * without a gradient keeps its experts equally busy. The program prints what each expert gets, before and after.
 *
 *     cc -O2 -Iinclude examples/router.c -o /tmp/router -lm && /tmp/router
 */
#include "multimax.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS = 2048, EXPERTS = 64, MOST_CHOSEN = 8, STEPS = 300 };

static float x[TOKENS * EXPERTS], gx[TOKENS * EXPERTS];
static float weights[TOKENS * MOST_CHOSEN], gweights[TOKENS * MOST_CHOSEN], bias[EXPERTS];
static uint32_t chosen[TOKENS * MOST_CHOSEN];

static void stop_unless(mmax_status status) {
    if (status == MMAX_OK) { return; }
    fprintf(stderr, "router: %s\n", mmax_status_string(status));
    exit(1);
}

/* A number near to N(0,1), from a small generator that gives the same on every machine */
static double normal(void) {
    static uint32_t state = 1;
    double sum = -6;
    for (int i = 0; i < 12; ++i) {
        state = state * 1664525 + 1013904223;
        sum += (state >> 8) / 16777216.0;
    }
    return sum;
}

/* Scores of a batch of tokens. Some experts are liked by all tokens, as after a bad start of training. */
static void make_scores(size_t experts) {
    for (size_t token = 0; token < TOKENS; ++token) {
        for (size_t e = 0; e < experts; ++e) {
            x[token * experts + e] = (float)(normal() + 1.2 * sin(2.4 * (double)e) + (e < experts / 8 ? 0.8 : 0));
        }
    }
}

/* The part of all work that each expert gets; 1 would be equal parts. Returns the largest one. */
static double count_load(double *load, const mmax_router *r, size_t experts) {
    double largest = 0;
    for (size_t e = 0; e < experts; ++e) { load[e] = 0; }
    for (size_t i = 0; i < TOKENS * r->k; ++i) { load[chosen[i]] += (double)experts / (double)(TOKENS * r->k); }
    for (size_t e = 0; e < experts; ++e) { largest = load[e] > largest ? load[e] : largest; }
    return largest;
}

/* Bars for experts side by side, a line for each half of an equal part; a dash: an expert that gets next to nothing */
static void print_chart(const char *title, const double *load, size_t experts) {
    printf("\n%s\n", title);
    for (int line = 7; line >= 0; --line) {
        printf(line == 1 ? "  1 |" : "    |");
        for (size_t e = 0; e < experts; ++e) {
            const double height = load[e] * 2 - line;
            printf(experts > 16 ? "%c" : " %c ", height > 0.75 ? '#' : height > 0.25 ? ':' : line == 0 ? '-' : ' ');
        }
        printf("\n");
    }
}

/* An expert that is too busy becomes less likely, by a fixed step: Wang et al. 2024, "Auxiliary-Loss-Free Load
 * Balancing", and DeepSeek-V3. The bias decides; it does not weigh. */
static void update_bias(const double *load, double step) {
    for (size_t e = 0; e < EXPERTS; ++e) { bias[e] += (float)(load[e] > 1 ? -step : step); }
}

/* The gradient of sum gweights * weights with respect to one score, beside a difference of two calls */
static double gradient_error(const mmax_router *r, size_t experts) {
    const mmax_shape one = mmax_row(experts);
    double gradient, slope = 0;
    float w[2][MOST_CHOSEN];
    const uint32_t at = chosen[0];
    for (size_t j = 0; j < r->k; ++j) { gweights[j] = (float)normal(); }
    stop_unless(mmax_route_backward_f32(gx, gweights, weights, chosen, x, r, one));
    gradient = (double)gx[at];
    for (int side = 0; side < 2; ++side) {
        const float old = x[at];
        x[at] = old + (side ? 0.01f : -0.01f);
        stop_unless(mmax_route_f32(w[side], chosen, x, r, one));
        x[at] = old;
    }
    for (size_t j = 0; j < r->k; ++j) { slope += (double)(gweights[j] * (w[1][j] - w[0][j])) / 0.02; }
    return fabs(slope - gradient);
}

int main(void) {
    double load[EXPERTS], first = 0, last = 0, error;
    mmax_router mixtral = mmax_router_top(2), deepseek = mmax_router_top(MOST_CHOSEN);

    make_scores(8);
    stop_unless(mmax_route_f32(weights, chosen, x, &mixtral, mmax_rows(TOKENS, 8)));
    printf("Mixtral: token 0 goes to experts %u (%.2f) and %u (%.2f)\n", (unsigned)chosen[0], (double)weights[0],
           (unsigned)chosen[1], (double)weights[1]);
    count_load(load, &mixtral, 8);
    print_chart("Mixtral, 8 experts, 2 of them for each token", load, 8);
    error = gradient_error(&mixtral, 8);

    deepseek.gate = MMAX_GATE_SIGMOID_CHOSEN;
    deepseek.factor = 2.5;
    deepseek.bias = bias;
    deepseek.groups = 8;
    deepseek.group_k = 4;
    deepseek.group_best = 2;
    for (int step = 0; step <= STEPS; ++step) {
        make_scores(EXPERTS); /* the next batch */
        stop_unless(mmax_route_f32(weights, chosen, x, &deepseek, mmax_rows(TOKENS, EXPERTS)));
        last = count_load(load, &deepseek, EXPERTS);
        if (step == 0) {
            first = last;
            print_chart("DeepSeek-V3, 64 experts in 8 groups, 8 for each token: no bias yet", load, EXPERTS);
        }
        update_bias(load, step < STEPS / 2 ? 0.01 : 0.001);
    }
    print_chart("the same after 300 updates of the bias", load, EXPERTS);
    printf("\nThe busiest expert has %.2f times an equal part, and %.2f times at the end.\n", first, last);
    deepseek.bias = NULL;
    deepseek.groups = 0;
    stop_unless(mmax_route_f32(weights, chosen, x, &deepseek, mmax_rows(TOKENS, EXPERTS)));
    error = fmax(error, gradient_error(&deepseek, EXPERTS));
    printf("Gradients differ from differences of weights by at most %.1g.\n", error);
    return last < 1.5 && last < first && error < 1e-3 ? 0 : 1;
}
