/*
 * attention.c: scaled dot-product attention of many heads, forward and backward, whose weights come from any of the
 * functions of multimax.h, with a causal mask and sequences of different lengths. main() compares the gradients with
 * finite differences, and sees that a masked token has no effect.
 *
 *     cc -O2 -Iinclude examples/attention.c -o attention -lm && ./attention
 */
#include "multimax.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An engine in floats says float and _f32. The check below needs double: differences of floats are too coarse. */
typedef double real;
#define MMAX(name) mmax_##name##_f64

enum function { SOFTMAX, MULTIMAX, SPARSEMAX, ENTMAX15, EVSOFTMAX, TANHMAX, FUNCTIONS };

/*
 * q, k, v and the output are (batch, tokens, heads, width); a row of scores or weights belongs to a query:
 * (batch, heads, tokens, tokens), contiguous. Only keys that a query may see are computed, read or written.
 */
struct attention {
    size_t batch, heads, tokens, width;
    const uint32_t *visible; /* [batch * heads * tokens]: how many leading keys the query of a row sees */
    enum function function;
    mmax_multimax_params params;
    double epsilon; /* of evsoftmax: 0 for inference, 1e-6 in training */
};

/* Causal: a query sees itself and what stands before it. Padded: sequence b has lengths[b] tokens. */
static void fill_visible(uint32_t *visible, const struct attention *a, int causal, const uint32_t *lengths) {
    for (size_t row = 0; row < a->batch * a->heads * a->tokens; ++row) {
        uint32_t query = (uint32_t)(row % a->tokens), length = (uint32_t)a->tokens;
        if (lengths != NULL) { length = lengths[row / (a->heads * a->tokens)]; }
        visible[row] = query >= length ? 0 : causal ? query + 1 : length;
    }
}

static mmax_shape scores_shape(const struct attention *a) {
    mmax_shape s = mmax_rows(a->batch * a->heads * a->tokens, a->tokens);
    s.scale = 1 / sqrt((double)a->width);
    s.lengths = a->visible;
    return s;
}

/* The vector of a token in q, k, v or the output, for the head that a row of scores belongs to. */
static size_t vector_at(const struct attention *a, size_t row, size_t token) {
    size_t head = row / a->tokens % a->heads, sequence = row / (a->tokens * a->heads);
    return ((sequence * a->tokens + token) * a->heads + head) * a->width;
}

/* out[row][j] = <left of the query, right of key j>: scores from q and k, gradients of weights from gy and v */
static void dots(real *out, const real *left, const real *right, const struct attention *a) {
    for (size_t row = 0; row < a->batch * a->heads * a->tokens; ++row) {
        const real *l = left + vector_at(a, row, row % a->tokens);
        for (size_t j = 0; j < a->visible[row]; ++j) {
            const real *r = right + vector_at(a, row, j);
            real sum = 0;
            for (size_t c = 0; c < a->width; ++c) { sum += l[c] * r[c]; }
            out[row * a->tokens + j] = sum;
        }
    }
}

/* y of the query += m[row][j] x of key j; transposed: y of key j += m[row][j] x of the query */
static void add_products(real *y, const real *x, const real *m, int transposed, const struct attention *a) {
    for (size_t row = 0; row < a->batch * a->heads * a->tokens; ++row) {
        for (size_t j = 0; j < a->visible[row]; ++j) {
            real weight = m[row * a->tokens + j];
            if (weight == 0) { continue; /* sparse functions save work here too */ }
            size_t query = vector_at(a, row, row % a->tokens), key = vector_at(a, row, j);
            real *to = y + (transposed ? key : query);
            const real *from = x + (transposed ? query : key);
            for (size_t c = 0; c < a->width; ++c) { to[c] += weight * from[c]; }
        }
    }
}

/* `weights` may be `scores` where no backward pass follows. */
static mmax_status forward(real *out, real *weights, real *scores, const real *q, const real *k, const real *v,
                           const struct attention *a) {
    mmax_shape s = scores_shape(a);
    mmax_status status = MMAX_OK;
    dots(scores, q, k, a);
    switch (a->function) {
    case SOFTMAX: status = MMAX(softmax)(weights, scores, s); break;
    case MULTIMAX: status = MMAX(multimax)(weights, scores, &a->params, s); break;
    case SPARSEMAX: status = MMAX(sparsemax)(weights, scores, s); break;
    case ENTMAX15: status = MMAX(entmax15)(weights, scores, s); break;
    case EVSOFTMAX: status = MMAX(evsoftmax)(weights, scores, a->epsilon, s); break;
    default: status = MMAX(tanhmax)(weights, scores, s); break;
    }
    if (status == MMAX_OK) {
        memset(out, 0, a->batch * a->tokens * a->heads * a->width * sizeof *out);
        add_products(out, v, weights, 0, a);
    }
    return status;
}

/* Adds the gradients to gq, gk, gv and gp, of MultiMax. `gscores` is scratch memory. */
static mmax_status backward(real *gq, real *gk, real *gv, mmax_multimax_grads *gp, real *gscores, const real *gout,
                            const real *weights, const real *scores, const real *q, const real *k, const real *v,
                            const struct attention *a) {
    mmax_shape s = scores_shape(a);
    mmax_status status = MMAX_OK;
    real *g = gscores; /* of the weights, and then in their place of the scores */
    dots(g, gout, v, a);
    switch (a->function) {
    case SOFTMAX: status = MMAX(softmax_backward)(g, g, weights, s); break;
    case MULTIMAX: status = MMAX(multimax_backward)(g, gp, g, weights, scores, &a->params, s); break;
    case SPARSEMAX: status = MMAX(sparsemax_backward)(g, g, weights, s); break;
    case ENTMAX15: status = MMAX(entmax15_backward)(g, g, weights, s); break;
    case EVSOFTMAX: status = MMAX(evsoftmax_backward)(g, g, weights, s); break;
    default: status = MMAX(tanhmax_backward)(g, g, weights, scores, s); break;
    }
    if (status == MMAX_OK) {
        add_products(gq, k, g, 0, a);
        add_products(gk, q, g, 1, a);
        add_products(gv, gout, weights, 1, a);
    }
    return status;
}

/* ==== the check ==== */

enum { BATCH = 2, HEADS = 2, TOKENS = 6, WIDTH = 4, ROWS = BATCH * HEADS * TOKENS, SIZE = ROWS * WIDTH };

static real qkv[3][SIZE], gradient[3][SIZE], out[SIZE], gout[SIZE];
static real scores[ROWS * TOKENS], weights[ROWS * TOKENS], gscores[ROWS * TOKENS];

static void stop_unless(mmax_status status) {
    if (status != MMAX_OK) {
        fprintf(stderr, "attention: %s\n", mmax_status_string(status));
        exit(1);
    }
}

/* Its gradient with respect to the output is gout. */
static double loss(const struct attention *a) {
    double sum = 0;
    stop_unless(forward(out, weights, scores, qkv[0], qkv[1], qkv[2], a));
    for (size_t i = 0; i < SIZE; ++i) { sum += gout[i] * out[i]; }
    return sum;
}

/* A central difference of the loss, extrapolated from two steps. */
static double slope(const struct attention *a, double *x) {
    double kept = *x, difference[2];
    for (int i = 0; i < 2; ++i) {
        double step = i == 0 ? 1e-4 : 5e-5;
        *x = kept + step;
        difference[i] = loss(a);
        *x = kept - step;
        difference[i] = (difference[i] - loss(a)) / (2 * step);
        *x = kept;
    }
    return (4 * difference[1] - difference[0]) / 3;
}

/* The largest error of a gradient, relative to the gradient where that is above 1. */
static double largest_error(struct attention *a) {
    mmax_multimax_grads gp = {{0, 0}, {0, 0}, {0, 0}, {0, 0}};
    double *parameter[] = {a->params.t_b, a->params.t_d, a->params.b, a->params.d};
    const double *parameter_gradient[] = {gp.t_b, gp.t_d, gp.b, gp.d};
    double error = 0;
    memset(gradient, 0, sizeof gradient);
    loss(a);
    stop_unless(backward(gradient[0], gradient[1], gradient[2], &gp, gscores, gout, weights, scores, qkv[0], qkv[1],
                         qkv[2], a));
    for (size_t i = 0; i < 3 * SIZE + 8; ++i) {
        size_t p = i - 3 * SIZE;
        int of_input = i < 3 * SIZE;
        double found = of_input ? gradient[i / SIZE][i % SIZE] : parameter_gradient[p / 2][p % 2];
        double expected = slope(a, of_input ? &qkv[i / SIZE][i % SIZE] : &parameter[p / 2][p % 2]);
        error = fmax(error, fabs(found - expected) / fmax(1, fabs(expected)));
    }
    return error;
}

/* Whether the last token of the last sequence reaches the output of any other token. */
static int last_token_is_seen(const struct attention *a) {
    enum { OTHERS = SIZE - HEADS * WIDTH };
    real before[OTHERS];
    loss(a);
    memcpy(before, out, sizeof before);
    for (size_t i = 0; i < 3 * (SIZE - OTHERS); ++i) { qkv[i % 3][OTHERS + i / 3] += 1; }
    loss(a);
    return memcmp(before, out, sizeof before) != 0;
}

static void fill(real *x, size_t n, uint32_t seed) {
    for (size_t i = 0; i < n; ++i) {
        seed = seed * 1664525 + 1013904223; /* the generator of Numerical Recipes: the same numbers everywhere */
        x[i] = (seed >> 8) / 4194304.0 - 2;
    }
}

int main(void) {
    static const char *const name[] = {"softmax", "multimax", "sparsemax", "entmax15", "evsoftmax", "tanhmax"};
    static const uint32_t lengths[BATCH] = {TOKENS, TOKENS / 2};
    static const mmax_multimax_params params = {2, {1.8, 0.9}, {0.6, 1.1}, {-0.3, 0.4}, {0.5, 0.2}};
    uint32_t visible[ROWS];
    struct attention a = {BATCH, HEADS, TOKENS, WIDTH, visible, SOFTMAX, params, 1e-6};
    int good = 1;
    printf("Largest error of a gradient     full    causal    padded      both\n");
    for (int f = 0; f < FUNCTIONS; ++f) {
        a.function = (enum function)f;
        printf("%-26s", name[f]);
        for (int mask = 0; mask < 4; ++mask) {
            for (uint32_t i = 0; i < 3; ++i) { fill(qkv[i], SIZE, i); }
            fill(gout, SIZE, 3);
            fill_visible(visible, &a, mask % 2, mask / 2 == 1 ? lengths : NULL);
            double error = largest_error(&a);
            printf("%10.1e", error);
            good &= error <= 1e-8 && last_token_is_seen(&a) == (mask == 0);
        }
        printf("\n");
    }
    printf("%s\n", good ? "Good: all are below 1e-8, and no masked token is seen." : "WRONG");
    return good ? 0 : 1;
}
