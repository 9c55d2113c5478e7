/*
 * transformer.h: the layers, the gradients and the optimiser that train_digits, oversmoothing and language share.
 *
 * A layer has multi-head attention and a two-layer perceptron, each with a layer norm before it and a residual
 * connection. One call of the library takes all rows of attention scores of a batch (samples, heads, queries). Adam
 * with weight decay trains all weights. Each layer has its own MultiMax parameters and temperature: they start at the
 * identity and have no weight decay, and their gradient is clipped separately.
 *
 * Before the include, a program defines PROGRAM, the hyper-parameters (LEARNING_RATE, WARMUP_STEPS, WEIGHT_DECAY,
 * CLIP_NETWORK, CLIP_MODULATORS, and INPUT_BOUND of the first weights of the input matrix) and the constants TOKENS,
 * WIDTH, HEADS, HIDDEN, MAX_LAYERS, BATCH, CLASSES, INPUTS (rows of the input matrix) and CAUSAL (1: a token sees
 * itself and those before it).
 *
 * In order: numbers, matrix products, functions, model, forward, backward, optimiser, progress and means over seeds.
 */
#ifndef EXAMPLES_TRANSFORMER_H
#define EXAMPLES_TRANSFORMER_H

#include "common.h"

#include <time.h>

/* The bits are the same on every machine: the compiler fuses no product with a sum. */
#if defined(__clang__)
#    pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__) && defined(__FP_FAST_FMA)
#    pragma GCC optimize("fp-contract=off")
#endif

/* The tests of gradients use doubles. */
#if defined(REAL_IS_DOUBLE)
typedef double real;
#    define MMAX(name)   mmax_##name##_f64
#    define real_sqrt(x) sqrt(x)
#else
typedef float real;
#    define MMAX(name)   mmax_##name##_f32
#    define real_sqrt(x) sqrtf(x)
#endif

enum {
    HEAD_DIM = WIDTH / HEADS,
    ROWS = BATCH * TOKENS,
    QKV = 3 * WIDTH,
    SQUARE = TOKENS * TOKENS,       /* scores of one head */
    SCORES = BATCH * HEADS * SQUARE /* scores of one layer */
};

#define EVSOFTMAX_EPSILON 1e-6 /* in training; 0 at inference */

/* SplitMix64 (Steele, Lea, Flood 2014): the same numbers on every machine. */
static inline uint64_t random_bits(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline void random_fill(real *x, size_t n, double bound, uint64_t *state) {
    for (size_t i = 0; i < n; ++i) {
        x[i] = (real)(bound * ((double)(random_bits(state) >> 11) / 4503599627370496.0 - 1.0)); /* 2^52 */
    }
}

static inline void shuffle(size_t *x, size_t n, uint64_t *state) {
    for (size_t i = n; i > 1; --i) {
        size_t j = (size_t)(random_bits(state) % i);
        size_t kept = x[i - 1];
        x[i - 1] = x[j];
        x[j] = kept;
    }
}

/* ==== matrix products ============================================================================================= */

struct view { /* a matrix, or its transpose */
    const real *at;
    size_t row, column; /* elements from one to the next */
};

static inline struct view rows_of(const real *x, size_t stride) {
    struct view v = {x, stride, 1};
    return v;
}

static inline struct view columns_of(const real *x, size_t stride) {
    struct view v = {x, 1, stride};
    return v;
}

static inline void add_rows(real *restrict c, const real *restrict b0, const real *restrict b1, const real *restrict b2,
                            const real *restrict b3, const real a[4], size_t n) {
    for (size_t j = 0; j < n; ++j) { c[j] += a[0] * b0[j] + a[1] * b1[j] + a[2] * b2[j] + a[3] * b3[j]; }
}

/* Processors with AVX2 use wider vectors: the same sums in the same order, hence the same bits. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(__AVX2__)
#    define WIDE __attribute__((target_clones("avx2", "default")))
#else
#    define WIDE
#endif

/*
 * c += a b; a is m x k, b is k x n. Adds four rows of b at a time to a block of rows of c, which stays in the first
 * cache. The constant length 8 lets gcc -O2 use vector instructions.
 */
WIDE static void product(real *c, size_t c_row, struct view a, const real *b, size_t b_row, size_t m, size_t k,
                         size_t n) {
    enum { BLOCK = 16, LANES = 8 };
    for (size_t first = 0; first < m; first += BLOCK) {
        size_t last = first + BLOCK < m ? first + BLOCK : m;
        for (size_t l = 0; l < k; l += 4) {
            const real *row[4];
            for (size_t u = 0; u < 4; ++u) { row[u] = b + (l + u < k ? l + u : l) * b_row; }
            for (size_t i = first; i < last; ++i) {
                real factor[4];
                size_t j = 0;
                for (size_t u = 0; u < 4; ++u) { factor[u] = l + u < k ? a.at[i * a.row + (l + u) * a.column] : 0; }
                for (; j + LANES <= n; j += LANES) {
                    add_rows(c + i * c_row + j, row[0] + j, row[1] + j, row[2] + j, row[3] + j, factor, LANES);
                }
                add_rows(c + i * c_row + j, row[0] + j, row[1] + j, row[2] + j, row[3] + j, factor, n - j);
            }
        }
    }
}

/* to (n x m) = from (m x n) transposed */
static inline void transpose(real *to, const real *from, size_t from_row, size_t m, size_t n) {
    for (size_t i = 0; i < m; ++i) {
        for (size_t j = 0; j < n; ++j) { to[j * m + i] = from[i * from_row + j]; }
    }
}

/* ==== functions =================================================================================================== */

/*
 * The first five are also output layers. The first six are in every table of train_digits. Some of the others have a
 * parameter. The last four come from baselines.h.
 */
enum { SOFTMAX, MULTIMAX, EVSOFTMAX, SPARSEMAX, ENTMAX15, TANHMAX, FUNCTIONS, HEAD_KINDS = TANHMAX, NONE = -1 };
enum { TOPK = FUNCTIONS, ENTMAX, SIGSOFTMAX, SPARSEHOURGLASS, RELU, DOT, SIGMOID, COSFORMER, ALL_FUNCTIONS };
static const char *const function_name[] = {"softmax", "multimax", "evsoftmax", "sparsemax",  "entmax15",
                                            "tanhmax", "topk",     "entmax",    "sigsoftmax", "sparsehourglass",
                                            "relu",    "dot",      "sigmoid",   "cosformer"};

#include "baselines.h"

/* ==== model ======================================================================================================= */

/*
 * A set of scalars has MultiMax's eight parameters, then temperature, alpha, and AttnScale's lambda of each head. The
 * attention of layer l uses set l, the output layer uses set OUTPUT, SegLU in the perceptron of layer l uses OUTPUT + 1
 * + l.
 */
enum { WIDEST = (int)QKV > (int)HIDDEN ? (int)QKV : (int)HIDDEN, HEAT = 8, ALPHA, LAMBDA, SCALARS = LAMBDA + HEADS };
enum { OUTPUT = MAX_LAYERS, MODULATORS = 2 * MAX_LAYERS + 1 };

struct layer {                   /* the last row of each matrix is the bias */
    real qkv[(WIDTH + 1) * QKV]; /* queries, keys, values; in each, head by head */
    real mix[(WIDTH + 1) * WIDTH];
    real up[(WIDTH + 1) * HIDDEN];
    real down[(HIDDEN + 1) * WIDTH];
};

struct network {
    real input[INPUTS * WIDTH], position[TOKENS * WIDTH], output[(WIDTH + 1) * CLASSES];
    struct layer layer[MAX_LAYERS];
    real modulator[MODULATORS][SCALARS]; /* t_b, t_d, b, d, each for orders 1 and 2; the logarithm of 1/temperature;
                                            z, where alpha = 1 + 1 / (1 + exp(-z)); lambda of each head */
};

/* Values, gradients and moments of the optimiser, by name or as one array. */
union weights {
    struct network net;
    real all[sizeof(struct network) / sizeof(real)];
};

enum {
    ALL_WEIGHTS = sizeof(struct network) / sizeof(real),
    LAYER_WEIGHTS = sizeof(struct layer) / sizeof(real),
    BEFORE_LAYERS = offsetof(struct network, layer) / sizeof(real),
    BEFORE_MODULATORS = offsetof(struct network, modulator) / sizeof(real)
};

/* The description of a model, without its weights. */
enum { TERMS_B = 1, TERMS_D = 2, TERMS_BD = 3 };
struct setup {
    int attention, output;  /* their functions */
    int order, terms;       /* of MultiMax, in attention and output */
    int layers, learn_heat; /* learn_heat: the temperature of the attention is learned; it starts at `temperature` */
    double temperature;
    int learn_alpha;  /* each layer learns the alpha of entmax; it starts at 1.5 */
    double parameter; /* of the attention function: alpha of entmax, q of sparsehourglass, k of topk */
    int by_layer;     /* each layer has its own function; `attention` is not used */
    int function[MAX_LAYERS];
    int seglu;        /* the perceptrons use SegLU instead of ReLU; it begins as ReLU */
    int attn_scale;   /* softmax weights y become y + lambda (y - 1/n) (Wang et al., ICLR 2022) */
    double diversify; /* factor of the last tokens' patch similarity, which is added to the loss (Gong et al. 2021) */
};

/* "entmax:1.25" */
static inline void attention_name(char name[32], const struct setup *s) {
    int length = snprintf(name, 32, "%s", function_name[s->attention]);
    if (s->learn_alpha) {
        snprintf(name + length, (size_t)(32 - length), ":learned");
    } else if (s->parameter > 0) {
        snprintf(name + length, (size_t)(32 - length), ":%g", s->parameter);
    }
}

static inline int function_of(const struct setup *s, size_t l) { return s->by_layer ? s->function[l] : s->attention; }

struct model {
    struct setup setup;
    union weights value, gradient, moment, square;
    size_t steps;
};

static inline mmax_multimax_params params_of(const real scalar[SCALARS], int order) {
    mmax_multimax_params p = mmax_multimax_identity(order);
    for (size_t n = 0; n < 2; ++n) {
        p.t_b[n] = scalar[n];
        p.t_d[n] = scalar[2 + n];
        p.b[n] = scalar[4 + n];
        p.d[n] = scalar[6 + n];
    }
    return p;
}

/* Terms and orders that are not trained stay at the identity. */
static inline void add_grads(real scalar[SCALARS], const mmax_multimax_grads *g, const struct setup *setup) {
    for (size_t n = 0; n < (size_t)setup->order; ++n) {
        if ((setup->terms & TERMS_B) != 0) {
            scalar[n] += (real)g->t_b[n];
            scalar[4 + n] += (real)g->b[n];
        }
        if ((setup->terms & TERMS_D) != 0) {
            scalar[2 + n] += (real)g->t_d[n];
            scalar[6 + n] += (real)g->d[n];
        }
    }
}

static inline void model_start(struct model *model, const struct setup *setup, uint64_t *state) {
    struct network *net = &model->value.net;
    memset(model, 0, sizeof *model);
    model->setup = *setup;
    /* uniform numbers with variance 1/inputs */
    random_fill(net->input, INPUTS * WIDTH, INPUT_BOUND, state);
    random_fill(net->position, TOKENS * WIDTH, 1, state);
    for (size_t l = 0; l < (size_t)setup->layers; ++l) {
        random_fill(net->layer[l].qkv, WIDTH * QKV, sqrt(3.0 / WIDTH), state);
        random_fill(net->layer[l].mix, WIDTH * WIDTH, sqrt(3.0 / WIDTH), state);
        random_fill(net->layer[l].up, WIDTH * HIDDEN, sqrt(3.0 / WIDTH), state);
        random_fill(net->layer[l].down, HIDDEN * WIDTH, sqrt(3.0 / HIDDEN), state);
    }
    random_fill(net->output, WIDTH * CLASSES, sqrt(3.0 / WIDTH), state);
    for (size_t l = 0; l < MODULATORS; ++l) {
        for (size_t i = 0; i < 4; ++i) { net->modulator[l][i] = 1; /* t_b and t_d; b and d are 0 */ }
        if (l < OUTPUT) { net->modulator[l][HEAT] = (real)-log(setup->temperature); }
        if (l > OUTPUT) { net->modulator[l][0] = 0; }
    }
}

/* ==== forward ===================================================================================================== */

struct norm { /* results of a layer norm, which its gradient reads */
    real y[ROWS * WIDTH];
    real inverse[ROWS]; /* of the standard deviation */
};

struct activations {
    struct norm norm1, norm2;
    real qkv[ROWS * QKV];
    real score[SCORES], plain[SCORES], weight[SCORES]; /* [sample][head][query][key]; plain: before AttnScale */
    real mixed[ROWS * WIDTH];
    real up[ROWS * HIDDEN], hidden[ROWS * HIDDEN]; /* up: inputs of SegLU */
};

/* Results of the layers, and room for their gradients. */
struct stack {
    struct activations layer[MAX_LAYERS];
    real tokens[MAX_LAYERS + 1][ROWS * WIDTH]; /* the residual stream before, between and after the layers */
    struct norm norm;
    real stream[ROWS * WIDTH];                         /* the gradient of the residual stream */
    real back[ROWS * WIDEST], back_norm[ROWS * WIDTH]; /* gradients inside a layer */
    real back_score[SCORES], turned[WIDEST * WIDEST];
    uint32_t ends[BATCH * HEADS * TOKENS]; /* ends of causal rows */
    double seconds_in_function;
};

static inline double seconds(void) { return (double)clock() / CLOCKS_PER_SEC; }

/* y = function(scale * x): attention weights, or the output layer's probabilities; parameter: epsilon, k, alpha or q */
static inline void apply(real *y, const real *x, int function, const mmax_multimax_params *p, double parameter,
                         mmax_shape s) {
    switch (function) {
    case SOFTMAX: check(MMAX(softmax)(y, x, s)); break;
    case MULTIMAX: check(MMAX(multimax)(y, x, p, s)); break;
    case EVSOFTMAX: check(MMAX(evsoftmax)(y, x, parameter, s)); break;
    case SPARSEMAX: check(MMAX(sparsemax)(y, x, s)); break;
    case ENTMAX15: check(MMAX(entmax15)(y, x, s)); break;
    case TOPK: check(MMAX(topk)(y, x, (size_t)parameter, s)); break;
    case ENTMAX: check(MMAX(entmax)(y, x, parameter, s)); break;
    case SIGSOFTMAX: check(MMAX(sigsoftmax)(y, x, s)); break;
    case SPARSEHOURGLASS: check(MMAX(sparsehourglass)(y, x, parameter, s)); break;
    case TANHMAX: check(MMAX(tanhmax)(y, x, s)); break;
    case COSFORMER: cosformer(y, x, &s); break;
    default: elementwise(y, x, function, &s); break;
    }
}

static inline void clear(real *x, size_t n) { memset(x, 0, n * sizeof *x); }

/* y += x matrix + bias, the last row of the matrix */
static inline void add_linear(real *y, const real *x, const real *matrix, size_t rows, size_t in, size_t out) {
    for (size_t r = 0; r < rows; ++r) {
        for (size_t j = 0; j < out; ++j) { y[r * out + j] += matrix[in * out + j]; }
    }
    product(y, out, rows_of(x, in), matrix, out, rows, in, out);
}

/* Layer norm without gain and bias: the next linear layer has both. */
static inline void normalise(struct norm *norm, const real *x, size_t rows) {
    for (size_t r = 0; r < rows; ++r) {
        const real *in = x + r * WIDTH;
        real mean = 0, square = 0;
        for (size_t j = 0; j < WIDTH; ++j) { mean += in[j] / WIDTH; }
        for (size_t j = 0; j < WIDTH; ++j) { square += (in[j] - mean) * (in[j] - mean) / WIDTH; }
        norm->inverse[r] = 1 / real_sqrt(square + (real)1e-5);
        for (size_t j = 0; j < WIDTH; ++j) { norm->y[r * WIDTH + j] = (in[j] - mean) * norm->inverse[r]; }
    }
}

static inline double logistic(double z) { return 1 / (1 + exp(-z)); }

static inline double parameter_of(const struct model *model, size_t l, int training) {
    return function_of(&model->setup, l) == EVSOFTMAX && training ? EVSOFTMAX_EPSILON
           : model->setup.learn_alpha ? 1 + logistic((double)model->value.net.modulator[l][ALPHA])
                                      : model->setup.parameter;
}

/* All rows of attention scores of n samples in one batch; the library applies the scale. */
static inline mmax_shape score_shape(const struct model *model, struct stack *work, size_t l, size_t n) {
    mmax_shape s = mmax_rows(n * HEADS * TOKENS, TOKENS);
    for (size_t r = 0; r < s.rows && CAUSAL; ++r) { work->ends[r] = (uint32_t)(r % TOKENS + 1); }
    s.ends = CAUSAL ? work->ends : NULL;
    s.scale = exp((double)model->value.net.modulator[l][HEAT]) / sqrt((double)HEAD_DIM);
    return s;
}

/*
 * The first element of a head in the queries and in the mixed values. Its keys are WIDTH further, its values 2 WIDTH;
 * its scores begin at head * SQUARE. `head` counts through all samples of a batch.
 */
static inline size_t query_place(size_t head) { return head / HEADS * TOKENS * QKV + head % HEADS * HEAD_DIM; }

static inline size_t mixed_place(size_t head) { return head / HEADS * TOKENS * WIDTH + head % HEADS * HEAD_DIM; }

static inline void attention_forward(const struct model *model, struct stack *work, size_t l, size_t n, int training) {
    struct activations *a = &work->layer[l];
    const real *scalar = model->value.net.modulator[l];
    mmax_multimax_params p = params_of(scalar, model->setup.order);
    double parameter = parameter_of(model, l, training);
    mmax_shape s = score_shape(model, work, l, n);
    clear(a->score, n * HEADS * SQUARE);
    for (size_t head = 0; head < n * HEADS; ++head) {
        const real *query = a->qkv + query_place(head);
        real *keys = work->turned;
        transpose(keys, query + WIDTH, QKV, TOKENS, HEAD_DIM);
        product(a->score + head * SQUARE, TOKENS, rows_of(query, QKV), keys, TOKENS, TOKENS, HEAD_DIM, TOKENS);
    }
    work->seconds_in_function -= seconds();
    apply(a->weight, a->score, function_of(&model->setup, l), &p, parameter, s);
    work->seconds_in_function += seconds();
    if (model->setup.attn_scale) {
        memcpy(a->plain, a->weight, n * HEADS * SQUARE * sizeof *a->plain);
        attn_scale(a->weight, a->plain, scalar + LAMBDA, HEADS, &s);
    }
}

/* The perceptron's function. ReLU works in place. */
static inline void activate(const struct model *model, struct activations *a, size_t l, size_t rows) {
    if (model->setup.seglu) {
        mmax_multimax_params p = params_of(model->value.net.modulator[OUTPUT + 1 + l], model->setup.order);
        memcpy(a->up, a->hidden, rows * HIDDEN * sizeof *a->up);
        check(MMAX(seglu)(a->hidden, a->up, &p, mmax_rows(rows, HIDDEN)));
    } else {
        for (size_t j = 0; j < rows * HIDDEN; ++j) { a->hidden[j] = a->hidden[j] > 0 ? a->hidden[j] : 0; }
    }
}

/* The tokens after layer l, from its attention weights. */
static inline void forward_from_weights(const struct model *model, struct stack *work, size_t l, size_t n) {
    const struct layer *layer = &model->value.net.layer[l];
    struct activations *a = &work->layer[l];
    size_t rows = n * TOKENS;
    real *x = work->tokens[l + 1];
    clear(a->mixed, rows * WIDTH);
    for (size_t head = 0; head < n * HEADS; ++head) {
        const real *value = a->qkv + query_place(head) + 2 * WIDTH, *weight = a->weight + head * SQUARE;
        product(a->mixed + mixed_place(head), WIDTH, rows_of(weight, TOKENS), value, QKV, TOKENS, TOKENS, HEAD_DIM);
    }
    memcpy(x, work->tokens[l], rows * WIDTH * sizeof *x);
    add_linear(x, a->mixed, layer->mix, rows, WIDTH, WIDTH);
    normalise(&a->norm2, x, rows);
    clear(a->hidden, rows * HIDDEN);
    add_linear(a->hidden, a->norm2.y, layer->up, rows, WIDTH, HIDDEN);
    activate(model, a, l, rows);
    add_linear(x, a->hidden, layer->down, rows, HIDDEN, WIDTH);
}

/* Sets y to 0 where the queries and keys x are below 0; y is x or its gradient. */
static inline void cut_below_zero(real *y, const real *x, size_t rows) {
    for (size_t r = 0; r < rows; ++r) {
        for (size_t j = r * QKV; j < r * QKV + 2 * WIDTH; ++j) { y[j] = x[j] > 0 ? y[j] : 0; }
    }
}

/* All layers for n samples: from the tokens before the first layer to the norm of the tokens after the last. */
static inline void forward_layers(const struct model *model, struct stack *work, size_t n, int training) {
    size_t rows = n * TOKENS, layers = (size_t)model->setup.layers;
    for (size_t l = 0; l < layers; ++l) {
        struct activations *a = &work->layer[l];
        normalise(&a->norm1, work->tokens[l], rows);
        clear(a->qkv, rows * QKV);
        add_linear(a->qkv, a->norm1.y, model->value.net.layer[l].qkv, rows, WIDTH, QKV);
        if (function_of(&model->setup, l) == COSFORMER) { cut_below_zero(a->qkv, a->qkv, rows); }
        attention_forward(model, work, l, n, training);
        forward_from_weights(model, work, l, n);
    }
    normalise(&work->norm, work->tokens[layers], rows);
}

/* ==== backward ==================================================================================================== */

/* Turns the gradient of the weights into the gradient of the scores, in place. */
static inline void apply_backward(struct model *model, struct stack *work, size_t l, size_t n) {
    const struct activations *a = &work->layer[l];
    const real *x = a->score, *y = model->setup.attn_scale ? a->plain : a->weight;
    real *g = work->back_score, *to = model->gradient.net.modulator[l];
    const int function = function_of(&model->setup, l);
    double heat = 0, alpha = 0, parameter = parameter_of(model, l, 1), slope;
    mmax_multimax_params p = params_of(model->value.net.modulator[l], model->setup.order);
    mmax_multimax_grads gp = {{0, 0}, {0, 0}, {0, 0}, {0, 0}};
    mmax_shape s = score_shape(model, work, l, n);
    if (model->setup.attn_scale) {
        attn_scale_backward(g, to + LAMBDA, y, model->value.net.modulator[l] + LAMBDA, HEADS, &s);
    }
    work->seconds_in_function -= seconds();
    switch (function) {
    case TOPK:
    case SOFTMAX: check(MMAX(softmax_backward)(g, g, y, s)); break;
    case MULTIMAX: check(MMAX(multimax_backward)(g, &gp, g, y, x, &p, s)); break;
    case EVSOFTMAX: check(MMAX(evsoftmax_backward)(g, g, y, s)); break;
    case SPARSEMAX: check(MMAX(sparsemax_backward)(g, g, y, s)); break;
    case ENTMAX15: check(MMAX(entmax15_backward)(g, g, y, s)); break;
    case ENTMAX: check(MMAX(entmax_backward)(g, model->setup.learn_alpha ? &alpha : NULL, g, y, parameter, s)); break;
    case SIGSOFTMAX: check(MMAX(sigsoftmax_backward)(g, g, y, x, s)); break;
    case SPARSEHOURGLASS: check(MMAX(sparsehourglass_backward)(g, NULL, g, y, x, parameter, s)); break;
    case TANHMAX: check(MMAX(tanhmax_backward)(g, g, y, x, s)); break;
    case COSFORMER: cosformer_backward(g, g, y, x, &s); break;
    default: elementwise_backward(g, g, y, function, &s); break;
    }
    work->seconds_in_function += seconds();
    add_grads(to, &gp, &model->setup);
    /* d loss / d log(scale) = sum of the scores times their gradients, for every function */
    for (size_t i = 0; i < s.rows * s.cols && model->setup.learn_heat; ++i) { heat += (double)g[i] * (double)x[i]; }
    to[HEAT] += (real)heat;
    slope = (parameter - 1) * (2 - parameter); /* d alpha / d z */
    to[ALPHA] += (real)(alpha * slope);
}

/* Adds to the gradient of matrix and bias; writes the gradient of x. */
static inline void linear_backward(real *gx, real *g_matrix, const real *gy, const real *x, const real *matrix,
                                   real *turned, size_t rows, size_t in, size_t out) {
    for (size_t r = 0; r < rows; ++r) {
        for (size_t j = 0; j < out; ++j) { g_matrix[in * out + j] += gy[r * out + j]; }
    }
    product(g_matrix, out, columns_of(x, in), gy, out, in, rows, out);
    transpose(turned, matrix, out, in, out);
    clear(gx, rows * in);
    product(gx, in, rows_of(gy, out), turned, in, rows, out, in);
}

/* Adds the gradient of the norm's input to gx. */
static inline void normalise_backward(real *gx, const real *gy, const struct norm *norm, size_t rows) {
    for (size_t r = 0; r < rows; ++r) {
        const real *g = gy + r * WIDTH, *y = norm->y + r * WIDTH;
        real mean = 0, along = 0;
        for (size_t j = 0; j < WIDTH; ++j) {
            mean += g[j] / WIDTH;
            along += g[j] * y[j] / WIDTH;
        }
        for (size_t j = 0; j < WIDTH; ++j) { gx[r * WIDTH + j] += (g[j] - mean - y[j] * along) * norm->inverse[r]; }
    }
}

/* The gradient of queries, keys and values, in back, from the gradient of `mixed`, in back_norm. */
static inline void attention_backward(struct model *model, struct stack *work, size_t l, size_t n) {
    const struct activations *a = &work->layer[l];
    clear(work->back_score, n * HEADS * SQUARE);
    clear(work->back, n * TOKENS * QKV);
    for (size_t head = 0; head < n * HEADS; ++head) {
        const real *g_mixed = work->back_norm + mixed_place(head), *weight = a->weight + head * SQUARE;
        real *g_weight = work->back_score + head * SQUARE, *values = work->turned;
        size_t value = query_place(head) + 2 * WIDTH;
        transpose(values, a->qkv + value, QKV, TOKENS, HEAD_DIM);
        product(g_weight, TOKENS, rows_of(g_mixed, WIDTH), values, TOKENS, TOKENS, HEAD_DIM, TOKENS);
        product(work->back + value, QKV, columns_of(weight, TOKENS), g_mixed, WIDTH, TOKENS, TOKENS, HEAD_DIM);
    }
    apply_backward(model, work, l, n);
    for (size_t head = 0; head < n * HEADS; ++head) {
        const real *g_score = work->back_score + head * SQUARE;
        size_t query = query_place(head), key = query + WIDTH;
        product(work->back + query, QKV, rows_of(g_score, TOKENS), a->qkv + key, QKV, TOKENS, TOKENS, HEAD_DIM);
        product(work->back + key, QKV, columns_of(g_score, TOKENS), a->qkv + query, QKV, TOKENS, TOKENS, HEAD_DIM);
    }
}

/* Turns the gradient of the perceptron's hidden values into the gradient of their inputs, in place. */
static inline void activate_backward(struct model *model, real *g, const struct activations *a, size_t l, size_t rows) {
    if (model->setup.seglu) {
        mmax_multimax_grads gp = {{0, 0}, {0, 0}, {0, 0}, {0, 0}};
        mmax_multimax_params p = params_of(model->value.net.modulator[OUTPUT + 1 + l], model->setup.order);
        check(MMAX(seglu_backward)(g, &gp, g, a->up, &p, mmax_rows(rows, HIDDEN)));
        add_grads(model->gradient.net.modulator[OUTPUT + 1 + l], &gp, &model->setup);
    } else {
        for (size_t j = 0; j < rows * HIDDEN; ++j) { g[j] = a->hidden[j] > 0 ? g[j] : 0; }
    }
}

/* The gradient of the tokens before the first layer, in stream, from the gradient of the last norm, in back_norm. */
static inline void backward_layers(struct model *model, struct stack *work, size_t n) {
    size_t rows = n * TOKENS, layers = (size_t)model->setup.layers;
    real *g = work->stream, *back = work->back, *back_norm = work->back_norm, *turned = work->turned;
    clear(g, rows * WIDTH);
    normalise_backward(g, back_norm, &work->norm, rows);
    for (size_t i = 0; i < n && model->setup.diversify > 0; ++i) {
        size_t at = i * TOKENS * WIDTH;
        patch_similarity_backward(g + at, work->tokens[layers] + at, model->setup.diversify / (double)n, TOKENS, WIDTH);
    }
    for (size_t l = layers; l-- > 0;) {
        const struct layer *layer = &model->value.net.layer[l];
        struct layer *to = &model->gradient.net.layer[l];
        const struct activations *a = &work->layer[l];
        linear_backward(back, to->down, g, a->hidden, layer->down, turned, rows, HIDDEN, WIDTH);
        activate_backward(model, back, a, l, rows);
        linear_backward(back_norm, to->up, back, a->norm2.y, layer->up, turned, rows, WIDTH, HIDDEN);
        normalise_backward(g, back_norm, &a->norm2, rows);
        linear_backward(back_norm, to->mix, g, a->mixed, layer->mix, turned, rows, WIDTH, WIDTH);
        attention_backward(model, work, l, n);
        if (function_of(&model->setup, l) == COSFORMER) { cut_below_zero(back, a->qkv, rows); }
        linear_backward(back_norm, to->qkv, back, a->norm1.y, layer->qkv, turned, rows, WIDTH, QKV);
        normalise_backward(g, back_norm, &a->norm1, rows);
    }
}

/* ==== optimiser =================================================================================================== */

/*
 * Adam with decoupled weight decay (Loshchilov, Hutter 2019) for the weights first to last - 1; clips their gradient.
 * correct: 1 - 0.9^step and 1 - 0.99^step
 */
static inline void update(struct model *model, size_t first, size_t last, double rate, double decay, double clip,
                          const double correct[2]) {
    const double keep1 = 0.9, keep2 = 0.99;
    double square = 0;
    for (size_t i = first; i < last; ++i) { square += (double)model->gradient.all[i] * (double)model->gradient.all[i]; }
    real shrink = square > clip * clip ? (real)(clip / sqrt(square)) : 1;
    real step = (real)(rate / correct[0]), inverse2 = (real)(1 / correct[1]), shorten = (real)(1 - rate * decay);
    for (size_t i = first; i < last; ++i) {
        real g = model->gradient.all[i] * shrink;
        real *m = &model->moment.all[i], *v = &model->square.all[i], *w = &model->value.all[i];
        *m += (real)(1 - keep1) * (g - *m);
        *v += (real)(1 - keep2) * (g * g - *v);
        *w = *w * shorten - step * *m / (real_sqrt(*v * inverse2) + (real)1e-8);
    }
}

/* A linear warm-up, then a linear decay to 0. */
static inline double learning_rate(size_t step, size_t steps) {
    double up = (double)step / WARMUP_STEPS, down = (double)(steps + 1 - step) / (double)steps;
    return LEARNING_RATE * (up < down ? up : down);
}

static inline size_t network_weights(const struct model *model) {
    return BEFORE_LAYERS + (size_t)model->setup.layers * LAYER_WEIGHTS;
}

static inline void clear_gradient(struct model *model) {
    clear(model->gradient.all, network_weights(model));
    clear(model->gradient.all + BEFORE_MODULATORS, ALL_WEIGHTS - BEFORE_MODULATORS);
}

/* One of `steps` steps; decayed: 0.9^step and 0.99^step, where step counts this one. */
static inline void optimise(struct model *model, const double decayed[2], size_t steps) {
    const double rate = learning_rate(model->steps, steps), correct[2] = {1 - decayed[0], 1 - decayed[1]};
    update(model, 0, network_weights(model), rate, WEIGHT_DECAY, CLIP_NETWORK, correct);
    update(model, BEFORE_MODULATORS, ALL_WEIGHTS, rate, 0, CLIP_MODULATORS, correct);
}

/* ==== progress, means over seeds ================================================================================== */

/* The processor time since the start; or the time by the clock, in whole seconds, if others use the processor, too. */
static inline double seconds_since(time_t begun, time_t now) {
    double by_clock = difftime(now, begun), used = seconds();
    return by_clock > used + 1 ? by_clock : used;
}

/* Draws one line on a terminal, at most once a second; in a file or a pipe it is a line of its own, once a minute. `done`
 * is the share of all work. From 3 s on the line shows the time left. */
static inline void progress_line(const char *text, time_t begun, time_t *drawn, double done) {
    time_t now = time(NULL);
    if (difftime(now, *drawn) >= (STDERR_IS_TERMINAL() ? 1 : 60)) {
        char line[200], left[32] = "";
        double passed = seconds_since(begun, now);
        *drawn = now;
        if (passed >= 3) { snprintf(left, sizeof left, "%.0f s left: ", passed * (1 - done) / done); }
        snprintf(line, sizeof line, "%s%s", left, text);
        fprintf(stderr, STDERR_IS_TERMINAL() ? "\r%-79.79s" : "%.79s\n", line);
    }
}

static inline void progress_end(void) {
    if (STDERR_IS_TERMINAL()) { fprintf(stderr, "\r%-79s\r", ""); }
}

struct spread {
    double mean, std;
};

/* Mean and deviation of measure[i] over the seeds; with `from`, of measure[i] - from[i], which has the same seed. */
static inline struct spread spread_of(const double *measure, const double *from, int seeds) {
    struct spread s = {0, 0};
    for (int i = 0; i < seeds; ++i) { s.mean += (measure[i] - (from != NULL ? from[i] : 0)) / seeds; }
    for (int i = 0; i < seeds && seeds > 1; ++i) {
        double off = measure[i] - (from != NULL ? from[i] : 0) - s.mean;
        s.std += off * off / (seeds - 1);
    }
    s.std = sqrt(s.std);
    return s;
}

#endif
