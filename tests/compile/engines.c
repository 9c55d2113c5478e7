/* The functions that the README gives engines, as they stand there (engines.h is made of them), against plain loops. */
#include "multimax.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "engines.h"

enum { HEADS = 3, TOKENS = 4, KEYS = 5, PADDED = 7, SIZE = HEADS * TOKENS * KEYS };

static int failures;

static void expect(const char *what, double found, double expected) {
    if (!(fabs(found - expected) <= 1e-6)) {
        printf("%s: %g, not %g\n", what, found, expected);
        ++failures;
    }
}

static void expect_ok(const char *what, mmax_status status) {
    if (status != MMAX_OK) {
        printf("%s: %s\n", what, mmax_status_string(status));
        ++failures;
    }
}

/* Softmax of n scores; `sink` is one that is no entry, or -inf. */
static void plain(double *y, const double *s, size_t n, double sink) {
    double sum = exp(sink);
    for (size_t i = 0; i < n; ++i) { sum += exp(s[i]); }
    for (size_t i = 0; i < n; ++i) { y[i] = exp(s[i]) / sum; }
}

static void one_row(const float *x) {
    float y[KEYS];
    double s[KEYS], expected[KEYS];
    for (size_t i = 0; i < KEYS; ++i) { y[i] = x[i], s[i] = (double)x[i]; }
    softmax(y, KEYS);
    plain(expected, s, KEYS, -HUGE_VAL);
    for (size_t i = 0; i < KEYS; ++i) { expect("softmax", (double)y[i], expected[i]); }
}

/* With everything, and then with neither mask nor slopes nor sinks. */
static void ggml_like(const float *x, int with) {
    static const double slopes[HEADS] = {0.5, 0.25, 0.125}, sinks[HEADS] = {0.5, -HUGE_VAL, 2};
    float y[SIZE], mask[TOKENS * KEYS];
    for (size_t i = 0; i < TOKENS * KEYS; ++i) {
        size_t token = i / KEYS + 1, key = i % KEYS;
        mask[i] = key > token ? -HUGE_VALF : (float)key - (float)token;
    }
    expect_ok("soft_max_ext", soft_max_ext(y, x, with ? mask : NULL, with ? slopes : NULL, with ? sinks : NULL, 0.7,
                                           HEADS, TOKENS, KEYS));
    for (size_t r = 0; r < HEADS * TOKENS; ++r) {
        double s[KEYS], expected[KEYS];
        for (size_t i = 0; i < KEYS; ++i) {
            s[i] = 0.7 * (double)x[r * KEYS + i];
            s[i] += with ? slopes[r / TOKENS] * (double)mask[r % TOKENS * KEYS + i] : 0;
        }
        plain(expected, s, KEYS, with ? sinks[r / TOKENS] : -HUGE_VAL);
        for (size_t i = 0; i < KEYS; ++i) { expect("soft_max_ext", (double)y[r * KEYS + i], expected[i]); }
    }
}

static void llm_c_like(const float *x) {
    enum { ROWS = HEADS * TOKENS };
    uint32_t lengths[ROWS];
    float y[ROWS * TOKENS], g[ROWS * TOKENS];
    mmax_shape shape = causal(lengths, 0.25, 1, HEADS, TOKENS);
    expect_ok("softmax_forward", softmax_forward(y, x, shape));
    expect_ok("softmax_backward", softmax_backward(g, x, y, shape));
    for (size_t r = 0; r < ROWS; ++r) {
        double s[TOKENS], expected[TOKENS], mean = 0;
        size_t n = r % TOKENS + 1;
        for (size_t i = 0; i < n; ++i) { s[i] = 0.25 * (double)x[r * TOKENS + i]; }
        plain(expected, s, n, -HUGE_VAL);
        for (size_t i = 0; i < n; ++i) { mean += expected[i] * (double)x[r * TOKENS + i]; }
        for (size_t i = 0; i < TOKENS; ++i) {
            double gradient = i < n ? 0.25 * expected[i] * ((double)x[r * TOKENS + i] - mean) : 0;
            expect("softmax_forward", (double)y[r * TOKENS + i], i < n ? expected[i] : 0);
            expect("softmax_backward", (double)g[r * TOKENS + i], gradient);
        }
    }
}

static void fused_loss(const float *x) {
    enum { ROWS = 4 };
    static const int32_t targets[ROWS] = {0, KEYS - 1, 2, 3};
    double losses[ROWS];
    float dlogits[ROWS * PADDED] = {0};
    expect_ok("fused_classifier", fused_classifier(losses, dlogits, x, targets, 2, 2, KEYS, PADDED));
    for (size_t r = 0; r < ROWS; ++r) {
        double s[KEYS], expected[KEYS];
        size_t target = (size_t)targets[r];
        for (size_t i = 0; i < KEYS; ++i) { s[i] = (double)x[r * PADDED + i]; }
        plain(expected, s, KEYS, -HUGE_VAL);
        expect("loss", losses[r], -log(expected[target]));
        for (size_t i = 0; i < PADDED; ++i) {
            double gradient = i < KEYS ? (expected[i] - (i == target)) / ROWS : 0;
            expect("dlogits", (double)dlogits[r * PADDED + i], gradient);
        }
    }
}

int main(void) {
    float x[SIZE];
    for (size_t i = 0; i < SIZE; ++i) { x[i] = (float)(i * 37 % 19) / 4 - 2; }
    one_row(x);
    ggml_like(x, 1);
    ggml_like(x, 0);
    llm_c_like(x);
    fused_loss(x);
    return failures > 0;
}
