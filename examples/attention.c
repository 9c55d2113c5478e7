/*
 * attention.c: the attention of an engine, forward and backward, with any function of multimax.h. It has grouped heads,
 * a growing cache of keys and values, causal masks and windows, left padding, ALiBi, sinks and trained temperatures.
 * main() checks gradients by finite differences, compares the cache with all tokens at once, and checks that nothing
 * masked is read.
 *
 *     cc -O2 -Iinclude examples/attention.c -o /tmp/attention -lm && /tmp/attention
 */
#include "multimax.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An engine in floats uses float and _f32. The check below needs double: differences of floats are too coarse. */
typedef double real;
#define MMAX(name) mmax_##name##_f64

enum function {
    SOFTMAX,
    MULTIMAX,
    EVSOFTMAX,
    SPARSEMAX,
    ENTMAX15,
    TANHMAX,
    FUNCTIONS
}; /* the first three take sinks */
enum { BATCH = 2, HEADS = 4, KV_HEADS = 2, WIDTH = 4, CAPACITY = 7, ROWS = HEADS * BATCH * CAPACITY };
enum { TOKEN = BATCH * HEADS * WIDTH, KV_TOKEN = BATCH * KV_HEADS * WIDTH };

/* The tensors that have a gradient. Their gradients are in such a structure, too. */
struct tensors {
    real q[CAPACITY * TOKEN];                            /* (queries, batch, heads, width), as the output */
    real k[CAPACITY * KV_TOKEN], v[CAPACITY * KV_TOKEN]; /* caches: (tokens, batch, KV heads, width) */
    double scales[HEADS], sinks[HEADS]; /* trained: inverse temperatures; scores of sinks, which are no keys */
    mmax_multimax_grads sigma;          /* used only for gradients; the parameters have another type */
};

struct attention {
    enum function function;
    mmax_multimax_params sigma;
    size_t past, queries;     /* number of earlier tokens in the cache, and of new tokens, which are there by now */
    size_t window;            /* number of tokens that a query sees, itself included */
    int causal, alibi, sinks; /* 0: off */
    size_t padding[BATCH];    /* number of leading tokens of a sequence that are padding */
};

/*
 * Results of forward that backward reads: the shape of the calls, and scores and weights, (heads, batch, queries,
 * capacity). The rows of a head are consecutive in a batch of any size: a head has one entry of scales, slopes and
 * sinks.
 */
struct rows {
    mmax_shape shape;
    mmax_attention extra;
    uint32_t starts[ROWS], ends[ROWS];
    real distance[CAPACITY * CAPACITY]; /* the bias; slopes multiply it */
    real scores[ROWS * CAPACITY], weights[ROWS * CAPACITY];
    double lse[ROWS];               /* of softmax and multimax */
    real gradient[ROWS * CAPACITY]; /* of the weights; then, in place, of the scores */
};

static void prepare(struct rows *rows, const struct tensors *in, const struct attention *a) {
    static const double slopes[HEADS] = {1.0 / 4, 1.0 / 16, 1.0 / 64, 1.0 / 256}; /* ALiBi's of four heads */
    size_t keys = a->past + a->queries;
    rows->extra = (mmax_attention){.head_rows = BATCH * a->queries, .scales = in->scales};
    rows->extra.sinks = a->sinks ? in->sinks : NULL;
    rows->extra.bias = a->alibi ? rows->distance : NULL;
    rows->extra.slopes = a->alibi ? slopes : NULL;
    rows->extra.bias_rows = a->queries, rows->extra.bias_stride = CAPACITY; /* for all heads and sequences */
    rows->shape = mmax_rows(HEADS * BATCH * a->queries, keys);
    rows->shape.x_stride = rows->shape.y_stride = rows->shape.gx_stride = rows->shape.gy_stride = CAPACITY;
    rows->shape.starts = rows->starts, rows->shape.ends = rows->ends;
    rows->shape.attention = &rows->extra;
    for (size_t r = 0; r < rows->shape.rows; ++r) {
        size_t token = a->past + r % a->queries, length = a->causal ? token + 1 : keys;
        size_t start = token + 1 > a->window ? token + 1 - a->window : 0, padding = a->padding[r / a->queries % BATCH];
        start = token < padding ? length : start < padding ? padding : start; /* a query of padding sees nothing */
        rows->starts[r] = (uint32_t)start, rows->ends[r] = (uint32_t)length;
    }
    for (size_t i = 0; i < a->queries * keys; ++i) {
        rows->distance[i / keys * CAPACITY + i % keys] = -fabs((double)(a->past + i / keys) - (double)(i % keys));
    }
}

/* The first element of a row's query in q or the output, and of one of its keys in a cache. */
static size_t query_at(size_t row, const struct attention *a) {
    size_t head = row / (BATCH * a->queries), sequence = row / a->queries % BATCH;
    return row % a->queries * TOKEN + (sequence * HEADS + head) * WIDTH;
}

static size_t key_at(size_t row, size_t token, const struct attention *a) {
    size_t head = row / (BATCH * a->queries) * KV_HEADS / HEADS, sequence = row / a->queries % BATCH;
    return token * KV_TOKEN + (sequence * KV_HEADS + head) * WIDTH;
}

/* out[row][j] = <left of the query, right of key j>: scores from q and k, gradients of weights from gout and v */
static void dots(real *out, const real *left, const real *right, const struct rows *rows, const struct attention *a) {
    for (size_t r = 0; r < rows->shape.rows; ++r) {
        for (size_t j = rows->starts[r]; j < rows->ends[r]; ++j) {
            const real *x = left + query_at(r, a), *y = right + key_at(r, j, a);
            real sum = 0;
            for (size_t c = 0; c < WIDTH; ++c) { sum += x[c] * y[c]; }
            out[r * CAPACITY + j] = sum;
        }
    }
}

/* y of the query += m[row][j] x of key j; transposed: y of key j += m[row][j] x of the query */
static void add_products(real *y, const real *x, const real *m, int transposed, const struct rows *rows,
                         const struct attention *a) {
    for (size_t r = 0; r < rows->shape.rows; ++r) {
        for (size_t j = rows->starts[r]; j < rows->ends[r]; ++j) {
            real weight = m[r * CAPACITY + j];
            if (weight == 0) { continue; /* sparse functions save work here too */ }
            real *to = y + (transposed ? key_at(r, j, a) : query_at(r, a));
            const real *from = x + (transposed ? query_at(r, a) : key_at(r, j, a));
            for (size_t c = 0; c < WIDTH; ++c) { to[c] += weight * from[c]; }
        }
    }
}

static mmax_status forward(real *out, struct rows *rows, const struct tensors *in, const struct attention *a) {
    real *x = rows->scores, *y = rows->weights; /* y may be x where no backward pass follows */
    mmax_status status;
    prepare(rows, in, a);
    dots(x, in->q, in->k, rows, a);
    switch (a->function) {
    case SOFTMAX: status = MMAX(softmax_lse)(y, rows->lse, x, rows->shape); break;
    case MULTIMAX: status = MMAX(multimax_lse)(y, rows->lse, x, &a->sigma, rows->shape); break;
    case EVSOFTMAX: status = MMAX(evsoftmax)(y, x, 1e-6, rows->shape); break;
    case SPARSEMAX: status = MMAX(sparsemax)(y, x, rows->shape); break;
    case ENTMAX15: status = MMAX(entmax15)(y, x, rows->shape); break;
    default: status = MMAX(tanhmax)(y, x, rows->shape); break;
    }
    memset(out, 0, a->queries * TOKEN * sizeof *out);
    if (status == MMAX_OK) { add_products(out, in->v, y, 0, rows, a); }
    return status;
}

static mmax_status backward(struct tensors *to, struct rows *rows, const real *gout, const struct tensors *in,
                            const struct attention *a) {
    real *x = rows->scores, *y = rows->weights, *g = rows->gradient;
    dots(g, gout, in->v, rows, a);
    const double *lse = a->function == EVSOFTMAX ? NULL : rows->lse;
    mmax_status status = a->sinks ? MMAX(sink_gradient)(to->sinks, g, y, lse, rows->shape) : MMAX_OK;
    if (status != MMAX_OK) { return status; }
    switch (a->function) {
    case SOFTMAX: status = MMAX(softmax_backward)(g, g, y, rows->shape); break;
    case MULTIMAX: status = MMAX(multimax_backward)(g, &to->sigma, g, y, x, &a->sigma, rows->shape); break;
    case EVSOFTMAX: status = MMAX(evsoftmax_backward)(g, g, y, rows->shape); break;
    case SPARSEMAX: status = MMAX(sparsemax_backward)(g, g, y, rows->shape); break;
    case ENTMAX15: status = MMAX(entmax15_backward)(g, g, y, rows->shape); break;
    default: status = MMAX(tanhmax_backward)(g, g, y, x, rows->shape); break;
    }
    if (status == MMAX_OK) { status = MMAX(scale_gradient)(to->scales, g, x, rows->shape); }
    if (status == MMAX_OK) {
        add_products(to->q, in->k, g, 0, rows, a);
        add_products(to->k, in->q, g, 1, rows, a);
        add_products(to->v, gout, y, 1, rows, a);
    }
    return status;
}

/* ==== the check ==== */
static real out[CAPACITY * TOKEN], gout[CAPACITY * TOKEN];
static struct rows rows;
static struct tensors in;

static void stop_unless(mmax_status status) {
    if (status != MMAX_OK) {
        fprintf(stderr, "attention: %s\n", mmax_status_string(status));
        exit(1);
    }
}

static double larger(double error, double found, double expected) {
    double e = fabs(found - expected) / fmax(1, fabs(expected));
    return e <= error ? error : e > error ? e : HUGE_VAL; /* NaN is the largest */
}

/* The gradient of this loss with respect to the output is gout. */
static double loss(const struct attention *a) {
    double sum = 0;
    stop_unless(forward(out, &rows, &in, a));
    for (size_t i = 0; i < a->queries * TOKEN; ++i) { sum += gout[i] * out[i]; }
    return sum;
}

/* The largest error of a gradient, relative if it is above 1. Tensors that no query sees are NaN here; their gradient
 * must be 0. */
static double gradient_error(struct attention *a) {
    enum { INPUTS = offsetof(struct tensors, sigma) / sizeof(real) };
    struct tensors gradient;
    double *parameters[] = {a->sigma.t_b, a->sigma.t_d, a->sigma.b, a->sigma.d}, error = 0;
    memset(&gradient, 0, sizeof gradient);
    loss(a);
    stop_unless(backward(&gradient, &rows, gout, &in, a));
    for (size_t i = 0; i < INPUTS + 8; ++i) { /* the structures are doubles, one after the other */
        double *x = i < INPUTS ? (double *)&in + i : &parameters[(i - INPUTS) / 2][i % 2], kept = *x;
        *x = kept + 1e-5;
        double slope = loss(a) / 2e-5;
        *x = kept - 1e-5;
        slope -= loss(a) / 2e-5;
        *x = kept;
        error = larger(error, ((double *)&gradient)[i], slope);
    }
    return error;
}

/* Random numbers in all tensors, and NaN where nothing may be read: scores before they are computed, padding. */
static void fill(const struct attention *a) {
    uint32_t seed = 0;
    for (size_t i = 0; i < sizeof in / sizeof(real) + CAPACITY * TOKEN; ++i) {
        seed = seed * 1664525 + 1013904223; /* the generator of Numerical Recipes: the same numbers everywhere */
        *(i < CAPACITY * TOKEN ? gout + i : (real *)&in + i - CAPACITY * TOKEN) = (seed >> 8) / 4194304.0 - 2;
    }
    for (size_t h = 0; h < HEADS; ++h) { in.scales[h] = 0.3 + 0.2 * (double)h; }
    memset(&rows, 255, sizeof rows);
    for (size_t i = 0; i < CAPACITY * KV_TOKEN; ++i) {
        if (i / KV_TOKEN < a->padding[i / (KV_HEADS * WIDTH) % BATCH]) { in.k[i] = in.v[i] = NAN; }
    }
}

/* Compares tokens one by one with all tokens at once. Each is appended to caches that have NaN after it. */
static double cache_error(struct attention *a) {
    static real whole[CAPACITY * TOKEN];
    const struct tensors all = in;
    double error = 0;
    a->past = 0, a->queries = CAPACITY;
    loss(a);
    memcpy(whole, out, sizeof whole);
    memset(in.k, 255, sizeof in.k), memset(in.v, 255, sizeof in.v);
    for (a->queries = 1; a->past < CAPACITY; ++a->past) {
        memcpy(in.k + a->past * KV_TOKEN, all.k + a->past * KV_TOKEN, KV_TOKEN * sizeof(real));
        memcpy(in.v + a->past * KV_TOKEN, all.v + a->past * KV_TOKEN, KV_TOKEN * sizeof(real));
        memcpy(in.q, all.q + a->past * TOKEN, TOKEN * sizeof(real));
        loss(a);
        for (size_t i = 0; i < TOKEN; ++i) { error = larger(error, out[i], whole[a->past * TOKEN + i]); }
    }
    return error;
}

int main(void) {
    static const char *const name[] = {"softmax", "multimax", "evsoftmax", "sparsemax", "entmax15", "tanhmax"};
    static const mmax_multimax_params sigma = {2, {1.8, 0.9}, {0.6, 1.1}, {-0.3, 0.4}, {0.5, 0.2}};
    int good = 1;
    printf("Largest error of a gradient     full    causal    padded     ALiBi     cache\n"
           "                                                  window     sinks   growing\n");
    for (enum function f = SOFTMAX; f < FUNCTIONS; ++f) {
        printf("%-26s", name[f]);
        for (int mode = 0; mode < 5; ++mode) {
            struct attention a = {f, sigma, 2, 5, CAPACITY, mode > 0, mode > 2, mode > 2 && f <= EVSOFTMAX, {0, 0}};
            if (mode > 1) { a.window = a.padding[1] = 3; }
            fill(&a);
            double error = mode < 4 ? gradient_error(&a) : cache_error(&a);
            good &= error <= 1e-7;
            printf(mode < 4 ? "%10.1e" : "%10.1e\n", error);
        }
    }
    printf("%s\n", good ? "Good: all are below 1e-7, and nothing masked is read." : "WRONG");
    return good ? 0 : 1;
}
