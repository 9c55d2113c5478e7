/* The functions of README.md and examples/COOKBOOK.md, as they stand there (recipes.h is made of them), against loops. */
#include "multimax.h"

#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recipes.h"

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

static void draws(const float *x) {
    int drawn = sample(x, KEYS, 0.8, 0.9, 1, 2), largest = 0;
    for (int i = 1; i < KEYS; ++i) { largest = x[i] > x[largest] ? i : largest; }
    expect("sample", drawn >= 0 && drawn < KEYS, 1);
    expect("sample, temperature 0", sample(x, KEYS, 0, 0, 1, 2), largest);
}

static void padded(const float *x) {
    enum { ROWS = 2 * TOKENS };
    static const uint32_t padding[2] = {0, 2};
    uint32_t starts[ROWS], ends[ROWS];
    float y[ROWS * TOKENS];
    mmax_shape shape = causal_padded(starts, ends, padding, 2, 1, TOKENS);
    expect_ok("causal_padded", mmax_softmax_f32(y, x, shape));
    for (size_t r = 0; r < ROWS; ++r) {
        double sum = 0;
        for (size_t i = 0; i < TOKENS; ++i) {
            sum += (double)y[r * TOKENS + i];
            if (i < padding[r / TOKENS] || i > r % TOKENS) { expect("padding", (double)y[r * TOKENS + i], 0); }
        }
        expect("sum of a padded row", sum, r % TOKENS >= padding[r / TOKENS]);
    }
}

/* Two sequences of the same scores have the same weights, and those of soft_max_ext. */
static void two_sequences(const float *x) {
    static const double slopes[HEADS] = {0.5, 0.25, 0.125}, sinks[HEADS] = {0.5, -HUGE_VAL, 2};
    float twice[2 * SIZE], y[2 * SIZE], one[SIZE], distance[TOKENS * KEYS];
    for (size_t i = 0; i < TOKENS * KEYS; ++i) { distance[i] = (float)(i % KEYS) - (float)(i / KEYS); }
    memcpy(twice, x, sizeof one);
    memcpy(twice + SIZE, x, sizeof one);
    expect_ok("batch", batch(y, twice, distance, slopes, sinks, 2, HEADS, TOKENS, KEYS));
    expect_ok("soft_max_ext", soft_max_ext(one, x, distance, slopes, sinks, 1, HEADS, TOKENS, KEYS));
    for (size_t i = 0; i < 2 * SIZE; ++i) { expect("batch", (double)y[i], (double)one[i % SIZE]); }
}

static void attention_inputs(const float *x) {
    static const double zero = 0, scales[2] = {0.5, 2};
    mmax_multimax_params p = mmax_multimax_identity(1);
    float y[2 * KEYS], masked[KEYS], short_row[KEYS];
    double s[KEYS], expected[KEYS];
    p.t_b[0] = -1;
    expect_ok("softmax1", softmax_with(y, x, 0, NULL, &zero, mmax_row(KEYS)));
    for (size_t i = 0; i < KEYS; ++i) { s[i] = (double)x[i]; }
    plain(expected, s, KEYS, 0);
    for (size_t i = 0; i < KEYS; ++i) { expect("softmax1", (double)y[i], expected[i]); }
    expect_ok("softmax_with", softmax_with(y, x, 1, scales, NULL, mmax_rows(2, KEYS)));
    for (size_t i = 0; i < KEYS; ++i) { s[i] = 2 * (double)x[KEYS + i]; }
    plain(expected, s, KEYS, -HUGE_VAL);
    for (size_t i = 0; i < KEYS; ++i) { expect("a scale for each row", (double)y[KEYS + i], expected[i]); }
    memcpy(masked, x, sizeof masked);
    masked[KEYS - 1] = -1e9F;
    expect_ok("multimax_masked", multimax_masked(y, masked, &p, mmax_row(KEYS)));
    expect_ok("multimax", mmax_multimax_f32(short_row, x, &p, mmax_row(KEYS - 1)));
    for (size_t i = 0; i < KEYS; ++i) { expect("masked", (double)y[i], i < KEYS - 1 ? (double)short_row[i] : 0); }
}

/* The mean of values 1, 2, 3 .. under the weights of two parts, joined, and of the whole row. */
static void joined(const float *x) {
    float part[2][KEYS], whole[2 * KEYS], out[2] = {0, 0}, mean = 0;
    double lse[2], lse_whole;
    for (size_t p = 0; p < 2; ++p) {
        expect_ok("lse", mmax_softmax_lse_f32(part[p], &lse[p], x + p * KEYS, mmax_row(KEYS)));
        for (size_t i = 0; i < KEYS; ++i) { out[p] += part[p][i] * (float)(p * KEYS + i + 1); }
    }
    expect_ok("lse", mmax_softmax_lse_f32(whole, &lse_whole, x, mmax_row(2 * KEYS)));
    for (size_t i = 0; i < 2 * KEYS; ++i) { mean += whole[i] * (float)(i + 1); }
    expect_ok("join", join(&out[0], &lse[0], &out[1], &lse[1], 1, 1));
    expect("join", (double)out[0] / 10, (double)mean / 10);
    expect("lse of both", lse[0], lse_whole);
}

/* A plain gate: the k best of those in the best groups, one after the other. */
static void routers(void) {
    enum { TOKEN_COUNT = 3, EXPERTS = 256, GROUPS = 8, WIDTH = EXPERTS / GROUPS };
    float x[TOKEN_COUNT * EXPERTS], bias[EXPERTS], weights[TOKEN_COUNT * 8];
    uint32_t experts[TOKEN_COUNT * 8];
    for (size_t i = 0; i < TOKEN_COUNT * EXPERTS; ++i) { x[i] = (float)(i * 7919 % 1009) / 250 - 2; }
    for (size_t i = 0; i < EXPERTS; ++i) { bias[i] = (float)(i * 31 % 17) / 40; }
    expect_ok("mixtral_gate", mixtral_gate(weights, experts, x, TOKEN_COUNT));
    for (size_t t = 0; t < TOKEN_COUNT; ++t) {
        const float *row = x + 8 * t;
        size_t best = 0, next;
        for (size_t i = 1; i < 8; ++i) { best = row[i] > row[best] ? i : best; }
        next = best == 0;
        for (size_t i = 0; i < 8; ++i) { next = i != best && row[i] > row[next] ? i : next; }
        expect("best expert", experts[2 * t], (double)best);
        expect("second expert", experts[2 * t + 1], (double)next);
        expect("its weight", (double)weights[2 * t], 1 / (1 + exp((double)(row[next] - row[best]))));
    }
    expect_ok("deepseek_gate", deepseek_gate(weights, experts, x, bias, TOKEN_COUNT));
    for (size_t t = 0; t < TOKEN_COUNT; ++t) {
        double value[EXPERTS], group[GROUPS], sum = 0;
        int taken[GROUPS] = {0};
        for (size_t i = 0; i < EXPERTS; ++i) {
            value[i] = 1 / (1 + exp(-(double)x[t * EXPERTS + i])) + (double)bias[i];
        }
        for (size_t g = 0; g < GROUPS; ++g) {
            double first = -1, second = -1;
            for (size_t i = g * WIDTH; i < (g + 1) * WIDTH; ++i) {
                second = value[i] > first ? first : value[i] > second ? value[i] : second;
                first = value[i] > first ? value[i] : first;
            }
            group[g] = first + second;
        }
        for (size_t n = 0; n < 4; ++n) {
            size_t best = GROUPS;
            for (size_t g = 0; g < GROUPS; ++g) {
                if (!taken[g] && (best == GROUPS || group[g] > group[best])) { best = g; }
            }
            taken[best] = 1;
        }
        for (size_t n = 0; n < 8; ++n) {
            size_t best = EXPERTS;
            for (size_t i = 0; i < EXPERTS; ++i) {
                if (taken[i / WIDTH] && (best == EXPERTS || value[i] > value[best])) { best = i; }
            }
            expect("expert of DeepSeek", experts[8 * t + n], (double)best);
            value[best] = -1;
            sum += 1 / (1 + exp(-(double)x[t * EXPERTS + best]));
        }
        for (size_t n = 0; n < 8; ++n) {
            double gate = 1 / (1 + exp(-(double)x[t * EXPERTS + experts[8 * t + n]]));
            expect("weight of DeepSeek", (double)weights[8 * t + n], 2.5 * gate / sum);
        }
    }
}

static void gumbel(const float *x) {
    float y[2 * KEYS];
    double sum = 0;
    expect_ok("gumbel_softmax", gumbel_softmax(y, x, 0.5, 1, 0, mmax_rows(2, KEYS)));
    for (size_t i = 0; i < 2 * KEYS; ++i) { sum += (double)y[i]; }
    expect("sum of Gumbel-SoftMax", sum, 2);
}

static void training(const float *x) {
    enum { ROWS = 3 };
    static const int32_t classes[ROWS] = {1, -1, 4};
    static const double class_weight[KEYS] = {1, 3, 1, 1, 2};
    mmax_multimax_params p = mmax_multimax_identity(1);
    mmax_multimax_grads gp = mmax_grads_zero();
    float logits[ROWS * KEYS], gx[ROWS * KEYS], twice[ROWS * KEYS], y[ROWS * KEYS];
    double loss[ROWS], row_weight[ROWS];
    memcpy(logits, x, sizeof logits);
    expect_ok("loss_of", loss_of(loss, logits, &gp, &p, classes, ROWS, KEYS));
    expect_ok("weighted_loss", weighted_loss(loss, gx, row_weight, x, classes, class_weight, ROWS, KEYS));
    for (size_t r = 0; r < ROWS; ++r) {
        double s[KEYS], expected[KEYS];
        for (size_t i = 0; i < KEYS; ++i) { s[i] = (double)x[r * KEYS + i]; }
        plain(expected, s, KEYS, -HUGE_VAL);
        for (size_t i = 0; i < KEYS; ++i) {
            double gradient = classes[r] < 0 ? 0 : expected[i] - (i == (size_t)classes[r]);
            expect("the mean's gradient", (double)logits[r * KEYS + i], gradient / 2);
            expect("gradient with weights", (double)gx[r * KEYS + i], gradient * row_weight[r] / 5);
        }
        expect("loss with weights", loss[r], classes[r] < 0 ? 0 : -row_weight[r] * log(expected[classes[r]]));
    }
    expect_ok("softmax", mmax_softmax_f32(y, x, mmax_rows(ROWS, KEYS)));
    expect_ok("gradient", mmax_softmax_backward_f32(gx, x, y, mmax_rows(ROWS, KEYS)));
    memcpy(twice, gx, sizeof gx);
    expect_ok("add_gradient", add_gradient(twice, x, y, mmax_rows(ROWS, KEYS)));
    for (size_t i = 0; i < ROWS * KEYS; ++i) { expect("add_gradient", (double)twice[i], 2 * (double)gx[i]); }
    expect_ok("distill", distill(loss, gx, y, x, x, 2, mmax_rows(ROWS, KEYS)));
    for (size_t i = 0; i < ROWS * KEYS; ++i) { expect("a pupil that knows all", (double)gx[i], 0); }
}

static void axes(const float *x) {
    enum { N = 2, C = 3, H = 2, W = 4, PIXELS = H * W };
    float y[N * C * PIXELS], part[C * PIXELS];
    expect_ok("over_channels", over_channels(y, x, N, C, H, W));
    expect_ok("over_channels_of", over_channels_of(part, x, C, H, W, 0, 3));
    expect_ok("over_channels_of", over_channels_of(part, x, C, H, W, 3, PIXELS - 3));
    for (size_t n = 0; n < N; ++n) {
        for (size_t i = 0; i < PIXELS; ++i) {
            double s[C], expected[C];
            for (size_t c = 0; c < C; ++c) { s[c] = (double)x[(n * C + c) * PIXELS + i]; }
            plain(expected, s, C, -HUGE_VAL);
            for (size_t c = 0; c < C; ++c) { expect("channel", (double)y[(n * C + c) * PIXELS + i], expected[c]); }
        }
    }
    for (size_t i = 0; i < C * PIXELS; ++i) { expect("lanes", (double)part[i], (double)y[i]); }
}

static void traps(const float *x) {
    float y[KEYS], expected[KEYS];
    expect_ok("without_traps", without_traps(y, x, mmax_row(KEYS)));
    expect_ok("entmax15", mmax_entmax15_f32(expected, x, mmax_row(KEYS)));
    for (size_t i = 0; i < KEYS; ++i) { expect("without_traps", (double)y[i], (double)expected[i]); }
}

int main(void) {
    float x[SIZE];
    for (size_t i = 0; i < SIZE; ++i) { x[i] = (float)(i * 37 % 19) / 4 - 2; }
    one_row(x);
    draws(x);
    ggml_like(x, 1);
    ggml_like(x, 0);
    llm_c_like(x);
    fused_loss(x);
    padded(x);
    two_sequences(x);
    attention_inputs(x);
    joined(x);
    routers();
    gumbel(x);
    training(x);
    axes(x);
    traps(x);
    return failures > 0;
}
