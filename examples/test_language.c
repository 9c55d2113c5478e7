/*
 * test_language.c: compares the gradient of the whole language model, in doubles, with finite differences, for every
 * function of its attention, and the baselines with closed forms.
 */
#define PROGRAM "test_language"
#define REAL_IS_DOUBLE
#include "language.h"

static int failures;

#define CLOSE(value, expected, error) close_to(#value, __LINE__, value, expected, error)

static void close_to(const char *text, int line, double value, double expected, double error) {
    if (!(fabs(value - expected) <= error)) {
        fprintf(stderr, "test_language.c, line %d: %s is %.9g, not %.9g\n", line, text, value, expected);
        ++failures;
    }
}

/* ==== baselines =================================================================================================== */

static void test_baselines(void) {
    enum { N = 8, ALL = N * N };
    double x[ALL], y[ALL], z[ALL], sink[N];
    uint32_t ends[N];
    uint64_t state = 5;
    mmax_multimax_params relu = mmax_multimax_identity(1);
    mmax_shape s = mmax_rows(N, N);
    mmax_attention sinks = {.head_rows = 1, .sinks = sink};
    s.scale = 1.5;
    s.ends = ends;
    relu.t_b[0] = 0;
    random_fill(x, ALL, 2, &state);
    for (size_t r = 0; r < N; ++r) { ends[r] = (uint32_t)r + 1; }
    elementwise(y, x, RELU, &s);
    check(mmax_seglu_f64(z, x, &relu, s));
    for (size_t i = 0; i < ALL; ++i) { CLOSE(y[i], z[i], 1e-15); }
    elementwise(y, x, DOT, &s);
    for (size_t i = 0; i < ALL; ++i) { CLOSE(y[i], i % N <= i / N ? 1.5 * x[i] / (double)(i / N + 1) : 0, 1e-15); }
    elementwise(y, x, SIGMOID, &s);
    for (size_t i = 0; i < ALL; ++i) { /* sigmoid(s - log n) is softmax of one entry beside a sink of log n */
        mmax_shape one = mmax_row(1);
        one.scale = 1.5;
        one.attention = &sinks;
        sink[0] = log((double)(i / N + 1));
        check(mmax_softmax_f64(z + i, x + i, one));
        CLOSE(y[i], i % N <= i / N ? z[i] : 0, 1e-15);
    }
    for (size_t i = 0; i < ALL; ++i) { x[i] = 1; }
    cosformer(y, x, &s);
    CLOSE(y[0], 1, 1e-15);
    CLOSE(y[N], cos(acos(-1) / 16) / (1 + cos(acos(-1) / 16)), 1e-15);
    CLOSE(y[3 * N + 3] / y[3 * N], 1 / cos(acos(-1) * 3 / 16), 1e-14);
    CLOSE(y[N + 2], 0, 0);
    for (size_t i = 0; i < ALL; ++i) { x[i] = i % N == 0; }
    sink[0] = 0.5;
    attn_scale(y, x, sink, 1, &s);
    CLOSE(y[3 * N], 1 + 0.5 * (1 - 0.25), 1e-15);
    CLOSE(y[3 * N + 3], -0.5 * 0.25, 1e-15);
}

static void test_patch_similarity(void) {
    enum { N = 5, W = 6 };
    double x[N * W], g[N * W] = {0};
    uint64_t state = 11;
    random_fill(x, N * W, 1, &state);
    patch_similarity_backward(g, x, 0.7, N, W);
    for (size_t i = 0; i < N * W; ++i) {
        const double kept = x[i], h = 1e-6;
        x[i] = kept + h;
        double above = patch_similarity(x, N, W);
        x[i] = kept - h;
        double below = patch_similarity(x, N, W);
        x[i] = kept;
        CLOSE(g[i], 0.7 * (above - below) / (2 * h), 1e-8);
    }
}

/* ==== the whole model ============================================================================================= */

enum { WINDOWS = 2, TEST_LAYERS = 2 };

static struct alphabet alphabet = {31, {0}};

static double loss_of(struct model *model, struct workspace *work, int learn) {
    forward(model, work, WINDOWS, 1);
    double loss = loss_and_gradient(model, work, &alphabet, WINDOWS, learn), similarity = 0;
    for (size_t i = 0; i < WINDOWS && model->setup.diversify > 0; ++i) {
        similarity += patch_similarity(work->stack.tokens[TEST_LAYERS] + i * TOKENS * WIDTH, TOKENS, WIDTH) / WINDOWS;
    }
    return loss + model->setup.diversify * similarity;
}

/* The derivative along a random direction in weights first to first + n - 1. */
static void test_direction(struct model *model, struct workspace *work, const char *what, size_t first, size_t n,
                           uint64_t *state) {
    double *kept = allocate(2 * n, sizeof *kept), *along = kept + n, derivative = 0, loss[2];
    const double h = 2e-8; /* few ReLUs have their kink within it */
    char text[80];
    random_fill(along, n, 1, state);
    memcpy(kept, model->value.all + first, n * sizeof *kept);
    for (size_t i = 0; i < n; ++i) { derivative += along[i] * model->gradient.all[first + i]; }
    for (int side = 0; side < 2; ++side) {
        for (size_t i = 0; i < n; ++i) { model->value.all[first + i] = kept[i] + (side == 1 ? h : -h) * along[i]; }
        loss[side] = loss_of(model, work, 0);
    }
    memcpy(model->value.all + first, kept, n * sizeof *kept);
    snprintf(text, sizeof text, "%s, %s: derivative", function_name[model->setup.attention], what);
    close_to(text, __LINE__, derivative, (loss[1] - loss[0]) / (2 * h), 1e-6 + 2e-6 * fabs(derivative));
    free(kept);
}

static void test_gradients(struct model *model, struct workspace *work, const struct setup *setup) {
    uint64_t state = 3;
    model_start(model, setup, &state);
    for (size_t i = BEFORE_MODULATORS; i < ALL_WEIGHTS; ++i) { model->value.all[i] += 0.05 + 0.01 * (double)(i % 7); }
    for (size_t r = 0; r < WINDOWS * TOKENS; ++r) {
        work->token[r] = (int32_t)(random_bits(&state) % 31);
        work->target[r] = (int32_t)(random_bits(&state) % 31);
    }
    clear(model->gradient.all, ALL_WEIGHTS);
    loss_of(model, work, 1);
    backward(model, work, WINDOWS);
    static const struct {
        const char *name;
        size_t at, n;
    } part[] = {{"characters", 0, INPUTS * WIDTH},
                {"places", INPUTS * WIDTH, TOKENS * WIDTH},
                {"output", (INPUTS + TOKENS) * WIDTH, (WIDTH + 1) * CLASSES},
                {"queries, keys, values", BEFORE_LAYERS, (WIDTH + 1) * QKV},
                {"mixing", BEFORE_LAYERS + offsetof(struct layer, mix) / sizeof(real), (WIDTH + 1) * WIDTH},
                {"up", BEFORE_LAYERS + offsetof(struct layer, up) / sizeof(real), (WIDTH + 1) * HIDDEN},
                {"down", BEFORE_LAYERS + offsetof(struct layer, down) / sizeof(real), (HIDDEN + 1) * WIDTH},
                {"layer 2", BEFORE_LAYERS + LAYER_WEIGHTS, LAYER_WEIGHTS},
                {"scalars of layer 1", BEFORE_MODULATORS, SCALARS},
                {"scalars of the output", BEFORE_MODULATORS + OUTPUT * SCALARS, SCALARS},
                {"scalars of SegLU in layer 2", BEFORE_MODULATORS + (OUTPUT + 2) * SCALARS, SCALARS}};
    for (size_t i = 0; i < sizeof part / sizeof *part; ++i) {
        test_direction(model, work, part[i].name, part[i].at, part[i].n, &state);
    }
}

int main(void) {
    static const int function[] = {SOFTMAX,    MULTIMAX, SPARSEMAX, ENTMAX15, TANHMAX,
                                   SIGSOFTMAX, RELU,     DOT,       SIGMOID,  COSFORMER}; /* evsoftmax jumps */
    struct model *model = allocate(1, sizeof *model);
    struct workspace *work = allocate(1, sizeof *work);
    test_baselines();
    test_patch_similarity();
    for (size_t i = 0; i < sizeof function / sizeof *function; ++i) {
        struct setup setup = {.attention = function[i], .order = 2, .terms = TERMS_BD, .layers = TEST_LAYERS};
        setup.temperature = 0.5;
        setup.learn_heat = function[i] != COSFORMER;
        setup.attn_scale = function[i] == SOFTMAX;
        setup.output = function[i] == MULTIMAX ? MULTIMAX : SOFTMAX;
        setup.seglu = function[i] == MULTIMAX || function[i] == RELU;
        setup.diversify = function[i] == ENTMAX15 ? 0.3 : 0;
        test_gradients(model, work, &setup);
    }
    free(work);
    free(model);
    return failures > 0;
}
