/*
 * digits.h: a small vision transformer and images of hand-written digits to train it on. Its attention weights come
 * from any of the six functions of multimax.h, forward and backward; its output layer uses any of five fused losses.
 *
 * The tokens of an 8x8 image are 16 patches of 4x4 pixels that overlap by half. Layers of multi-head attention and a
 * two-layer perceptron, each behind a layer norm and with a residual connection, then the mean over the tokens and a
 * linear output layer. All rows of attention scores of a batch (images, heads, queries) go through the library in one
 * call. All weights are trained by Adam with weight decay; the MultiMax parameters and the temperature, one set a
 * layer, start at the identity, have no weight decay, and their gradient is clipped apart from that of the network.
 *
 * In order: data, matrix products, model, forward, backward, optimiser, training, measures of tokens and weights,
 * explanations by weights.
 */
#ifndef EXAMPLES_DIGITS_H
#define EXAMPLES_DIGITS_H

#include "common.h"

#include <time.h>

enum {
    IMAGE = 8,           /* pixels along a side */
    GRID = 4,            /* patches along a side */
    STEP = IMAGE / GRID, /* pixels from a patch to the next */
    SIDE = 2 * STEP,     /* pixels along a side of a patch: neighbours overlap */
    PATCH = SIDE * SIDE, /* pixels of a patch */
    TOKENS = GRID * GRID,
    CLASSES = 10,
    BRIGHTEST = 16, /* pixel values are 0 to 16 */
    WIDTH = 32,
    HEADS = 4,
    HEAD_DIM = WIDTH / HEADS,
    HIDDEN = 64,
    MAX_LAYERS = 8,
    BATCH = 32,
    ROWS = BATCH * TOKENS,
    QKV = 3 * WIDTH,
    SQUARE = TOKENS * TOKENS,       /* scores of one head */
    SCORES = BATCH * HEADS * SQUARE /* of one layer */
};

/* The same hyper-parameters for every function. */
#define LEARNING_RATE     6e-3
#define WARMUP_STEPS      50
#define WEIGHT_DECAY      1.0
#define CLIP_NETWORK      1.0
#define CLIP_MODULATORS   0.1
#define EVSOFTMAX_EPSILON 1e-6 /* in training; 0 at inference */

/* The first five are also output layers, the first six stand in every table. Of the others some have a parameter. */
enum { SOFTMAX, MULTIMAX, EVSOFTMAX, SPARSEMAX, ENTMAX15, TANHMAX, FUNCTIONS, HEAD_KINDS = TANHMAX, NONE = -1 };
enum { TOPK = FUNCTIONS, ENTMAX, SIGSOFTMAX, SPARSEHOURGLASS, ALL_FUNCTIONS };
static const char *const function_name[] = {"softmax", "multimax", "evsoftmax", "sparsemax",  "entmax15",
                                            "tanhmax", "topk",     "entmax",    "sigsoftmax", "sparsehourglass"};

static const struct line_style *const function_line[] = {&softmax_line,   &multimax_line, &evsoftmax_line,
                                                         &sparsemax_line, &entmax15_line, &tanhmax_line};

/* SplitMix64 (Steele, Lea, Flood 2014): the same numbers on every machine. */
static inline uint64_t random_bits(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline void random_fill(float *x, size_t n, double bound, uint64_t *state) {
    for (size_t i = 0; i < n; ++i) {
        x[i] = (float)(bound * ((double)(random_bits(state) >> 11) / 4503599627370496.0 - 1.0)); /* 2^52 */
    }
}

/* 0..1, both ends left out */
static inline double random_share(uint64_t *state) {
    return ((double)(random_bits(state) >> 12) + 0.5) / 4503599627370496.0;
} /* 2^52 */

/* From Beta(a, a), 0 < a <= 1, by Joehnk's method (Metrika 8, 1964): half of the tries or more succeed. */
static inline double random_beta(double a, uint64_t *state) {
    double x, y;
    do {
        x = pow(random_share(state), 1 / a);
        y = pow(random_share(state), 1 / a);
    } while (x + y > 1 || x + y == 0);
    return x / (x + y);
}

static inline void shuffle(size_t *x, size_t n, uint64_t *state) {
    for (size_t i = n; i > 1; --i) {
        size_t j = (size_t)(random_bits(state) % i);
        size_t kept = x[i - 1];
        x[i - 1] = x[j];
        x[j] = kept;
    }
}

/* ==== data ======================================================================================================== */

struct image {
    float pixel[IMAGE][IMAGE]; /* -1 to 1 */
    int32_t label;
};

struct dataset {
    struct image *image;
    size_t count, train_count;
    size_t *order; /* the first train_count are for training, the rest for the test */
};

/* Reads up to the next comma or line end, which is returned. Drops blanks; cuts a long cell, which stays too long. */
static inline int read_cell(FILE *file, char text[8]) {
    size_t length = 0;
    int c;
    while ((c = getc(file)) != EOF && c != ',' && c != '\n') {
        if (c != ' ' && c != '\t' && c != '\r' && length < 7) { text[length++] = c < ' ' || c > '~' ? '?' : (char)c; }
    }
    text[length] = '\0';
    return c;
}

/* One line of 64 pixels and a class; returns 0 at the end of the file. */
static inline int read_image(struct image *image, FILE *file, const char *path, unsigned long line) {
    enum { COLUMNS = IMAGE * IMAGE + 1 };
    int end = ',';
    for (int column = 1; column <= COLUMNS; ++column) {
        char text[8];
        int largest = column < COLUMNS ? BRIGHTEST : CLASSES - 1;
        if (end != ',') { fail("%s, line %lu has %d columns; 64 pixels and a class make 65", path, line, column - 1); }
        end = read_cell(file, text);
        if (column == 1 && end == EOF && text[0] == '\0') { return 0; }
        size_t digits = strspn(text, "0123456789");
        int value = digits >= 1 && digits <= 2 && text[digits] == '\0' ? atoi(text) : -1;
        if (value < 0 || value > largest) {
            fail("%s, line %lu, column %d: '%s' is not an integer from 0 to %d", path, line, column, text, largest);
        }
        if (column < COLUMNS) {
            image->pixel[(column - 1) / IMAGE][(column - 1) % IMAGE] = (float)value / (BRIGHTEST / 2) - 1;
        } else {
            image->label = value;
        }
    }
    if (end == ',') {
        fail("%s, line %lu has more than %d columns; 64 pixels and a class make 65", path, line, COLUMNS);
    }
    return 1;
}

static inline struct dataset read_dataset(const char *path) {
    struct dataset data = {NULL, 0, 0, NULL};
    size_t room = 0;
    struct image image;
    uint64_t state = 1797;
    FILE *file = fopen(path, "r");
    if (file == NULL) { fail("cannot open '%s': %s (--data names the file)", path, strerror(errno)); }
    while (read_image(&image, file, path, (unsigned long)data.count + 1)) {
        if (data.count == room) {
            room = room == 0 ? 2048 : 2 * room;
            struct image *grown = room > SIZE_MAX / sizeof *grown ? NULL : realloc(data.image, room * sizeof *grown);
            if (grown == NULL) { fail("out of memory"); }
            data.image = grown;
        }
        data.image[data.count++] = image;
    }
    if (ferror(file)) { fail("cannot read '%s': %s", path, strerror(errno)); }
    fclose(file);
    if (data.count < 50) { fail("'%s' holds %lu images; training needs at least 50", path, (unsigned long)data.count); }
    data.order = allocate(data.count, sizeof *data.order);
    for (size_t i = 0; i < data.count; ++i) { data.order[i] = i; }
    shuffle(data.order, data.count, &state);
    data.train_count = data.count - (data.count + 4) / 5;
    return data;
}

/* ==== matrix products ============================================================================================= */

struct view { /* a matrix, or its transpose */
    const float *at;
    size_t row, column; /* elements from one to the next */
};

static inline struct view rows_of(const float *x, size_t stride) {
    struct view v = {x, stride, 1};
    return v;
}

static inline struct view columns_of(const float *x, size_t stride) {
    struct view v = {x, 1, stride};
    return v;
}

static inline void add_rows(float *restrict c, const float *restrict b0, const float *restrict b1,
                            const float *restrict b2, const float *restrict b3, const float a[4], size_t n) {
    for (size_t j = 0; j < n; ++j) { c[j] += a[0] * b0[j] + a[1] * b1[j] + a[2] * b2[j] + a[3] * b3[j]; }
}

/*
 * c += a b; a is m x k, b is k x n. Four rows of b at a time, added to a block of rows of c that stays in the first
 * cache; the constant length 8 lets gcc -O2 use vector instructions.
 */
static inline void product(float *c, size_t c_row, struct view a, const float *b, size_t b_row, size_t m, size_t k,
                           size_t n) {
    enum { BLOCK = 16, LANES = 8 };
    for (size_t first = 0; first < m; first += BLOCK) {
        size_t last = first + BLOCK < m ? first + BLOCK : m;
        for (size_t l = 0; l < k; l += 4) {
            const float *row[4];
            for (size_t u = 0; u < 4; ++u) { row[u] = b + (l + u < k ? l + u : l) * b_row; }
            for (size_t i = first; i < last; ++i) {
                float factor[4];
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
static inline void transpose(float *to, const float *from, size_t from_row, size_t m, size_t n) {
    for (size_t i = 0; i < m; ++i) {
        for (size_t j = 0; j < n; ++j) { to[j * m + i] = from[i * from_row + j]; }
    }
}

/* ==== model ======================================================================================================= */

/* MultiMax has eight scalars, then come temperature and alpha. The last set of them is that of the output layer. */
enum { WIDEST = QKV > HIDDEN ? QKV : HIDDEN, HEAT = 8, ALPHA, SCALARS, OUTPUT = MAX_LAYERS, MODULATORS };

struct layer {                    /* of each matrix, the last row is the bias */
    float qkv[(WIDTH + 1) * QKV]; /* queries, keys, values; in each, head by head */
    float mix[(WIDTH + 1) * WIDTH];
    float up[(WIDTH + 1) * HIDDEN];
    float down[(HIDDEN + 1) * WIDTH];
};

struct network {
    float patch[PATCH * WIDTH], position[TOKENS * WIDTH], output[(WIDTH + 1) * CLASSES];
    struct layer layer[MAX_LAYERS];
    float modulator[MODULATORS][SCALARS]; /* t_b, t_d, b, d, each of order 1 and 2, the logarithm of 1/temperature, and
                                             z of alpha = 1 + 1 / (1 + exp(-z)) */
};

/* Values, gradients and moments of the optimiser: the same names, or one array. */
union weights {
    struct network net;
    float all[sizeof(struct network) / sizeof(float)];
};

enum {
    ALL_WEIGHTS = sizeof(struct network) / sizeof(float),
    LAYER_WEIGHTS = sizeof(struct layer) / sizeof(float),
    BEFORE_LAYERS = offsetof(struct network, layer) / sizeof(float),
    BEFORE_MODULATORS = offsetof(struct network, modulator) / sizeof(float)
};

/* What a model is, apart from its weights. */
enum { TERMS_B = 1, TERMS_D = 2, TERMS_BD = 3 };
struct setup {
    int attention, output;  /* which functions */
    int order, terms;       /* of MultiMax, in both places */
    int layers, learn_heat; /* learn_heat: the temperature of the attention is learned, from `temperature` on */
    double temperature;
    int learn_alpha;  /* of entmax, a layer, from 1.5 on */
    double parameter; /* of the attention: alpha of entmax, q of sparsehourglass, k of topk */
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

struct model {
    struct setup setup;
    union weights value, gradient, moment, square;
    size_t steps;
};

static inline mmax_multimax_params params_of(const float scalar[SCALARS], int order) {
    mmax_multimax_params p = mmax_multimax_identity(order);
    for (size_t n = 0; n < 2; ++n) {
        p.t_b[n] = scalar[n];
        p.t_d[n] = scalar[2 + n];
        p.b[n] = scalar[4 + n];
        p.d[n] = scalar[6 + n];
    }
    return p;
}

/* Terms and orders that are left out stay at the identity. */
static inline void add_grads(float scalar[SCALARS], const mmax_multimax_grads *g, const struct setup *setup) {
    for (size_t n = 0; n < (size_t)setup->order; ++n) {
        if ((setup->terms & TERMS_B) != 0) {
            scalar[n] += (float)g->t_b[n];
            scalar[4 + n] += (float)g->b[n];
        }
        if ((setup->terms & TERMS_D) != 0) {
            scalar[2 + n] += (float)g->t_d[n];
            scalar[6 + n] += (float)g->d[n];
        }
    }
}

static inline void model_start(struct model *model, const struct setup *setup, uint64_t *state) {
    struct network *net = &model->value.net;
    memset(model, 0, sizeof *model);
    model->setup = *setup;
    /* Uniform, with variance 1/inputs. */
    random_fill(net->patch, PATCH * WIDTH, sqrt(3.0 / PATCH), state);
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
        if (l != OUTPUT) { net->modulator[l][HEAT] = (float)-log(setup->temperature); }
    }
}

/* ==== forward ===================================================================================================== */

struct norm { /* what layer norm leaves for the way back */
    float y[ROWS * WIDTH];
    float inverse[ROWS]; /* of the standard deviation */
};

struct activations {
    struct norm norm1, norm2;
    float qkv[ROWS * QKV];
    float score[SCORES], weight[SCORES]; /* image, head, query, key */
    float mixed[ROWS * WIDTH];
    float hidden[ROWS * HIDDEN];
};

struct workspace {
    float patch[ROWS * PATCH];
    struct activations layer[MAX_LAYERS];
    float tokens[MAX_LAYERS + 1][ROWS * WIDTH]; /* the residual stream before, between and behind the layers */
    struct norm norm;
    float pooled[BATCH * WIDTH], logit[BATCH * CLASSES];
    int32_t label[BATCH];
    float target[BATCH * CLASSES]; /* of images mixed in pairs, in the place of labels */
    int is_mixed;
    float stream[ROWS * WIDTH];                         /* the gradient of the residual stream */
    float back[ROWS * WIDEST], back_norm[ROWS * WIDTH]; /* gradients inside a layer */
    float back_score[SCORES], centred[SCORES], turned[WIDEST * WIDEST];
    double metric[BATCH * HEADS * TOKENS];
    double seconds_in_function;
};

static inline double seconds(void) { return (double)clock() / CLOCKS_PER_SEC; }

/* y = function(scale * x): attention weights, or the probabilities of the output layer; parameter: epsilon, k, alpha or q */
static inline void apply(float *y, const float *x, int function, const mmax_multimax_params *p, double parameter,
                         mmax_shape s) {
    switch (function) {
    case SOFTMAX: check(mmax_softmax_f32(y, x, s)); break;
    case MULTIMAX: check(mmax_multimax_f32(y, x, p, s)); break;
    case EVSOFTMAX: check(mmax_evsoftmax_f32(y, x, parameter, s)); break;
    case SPARSEMAX: check(mmax_sparsemax_f32(y, x, s)); break;
    case ENTMAX15: check(mmax_entmax15_f32(y, x, s)); break;
    case TOPK: check(mmax_topk_f32(y, x, (size_t)parameter, s)); break;
    case ENTMAX: check(mmax_entmax_f32(y, x, parameter, s)); break;
    case SIGSOFTMAX: check(mmax_sigsoftmax_f32(y, x, s)); break;
    case SPARSEHOURGLASS: check(mmax_sparsehourglass_f32(y, x, parameter, s)); break;
    default: check(mmax_tanhmax_f32(y, x, s)); break;
    }
}

static inline void clear(float *x, size_t n) { memset(x, 0, n * sizeof *x); }

/* y += x matrix + bias, the last row of the matrix */
static inline void add_linear(float *y, const float *x, const float *matrix, size_t rows, size_t in, size_t out) {
    for (size_t r = 0; r < rows; ++r) {
        for (size_t j = 0; j < out; ++j) { y[r * out + j] += matrix[in * out + j]; }
    }
    product(y, out, rows_of(x, in), matrix, out, rows, in, out);
}

/* Layer norm without gain and bias: the linear layer behind it has both. */
static inline void normalise(struct norm *norm, const float *x, size_t rows) {
    for (size_t r = 0; r < rows; ++r) {
        const float *in = x + r * WIDTH;
        float mean = 0, square = 0;
        for (size_t j = 0; j < WIDTH; ++j) { mean += in[j] / WIDTH; }
        for (size_t j = 0; j < WIDTH; ++j) { square += (in[j] - mean) * (in[j] - mean) / WIDTH; }
        norm->inverse[r] = 1 / sqrtf(square + 1e-5f);
        for (size_t j = 0; j < WIDTH; ++j) { norm->y[r * WIDTH + j] = (in[j] - mean) * norm->inverse[r]; }
    }
}

static inline double logistic(double z) { return 1 / (1 + exp(-z)); }

static inline double parameter_of(const struct model *model, size_t l, int training) {
    return model->setup.attention == EVSOFTMAX && training ? EVSOFTMAX_EPSILON
           : model->setup.learn_alpha                      ? 1 + logistic((double)model->value.net.modulator[l][ALPHA])
                                                           : model->setup.parameter;
}

/* All rows of attention scores of n images in one batch; the library applies the scale. */
static inline mmax_shape score_shape(const struct model *model, size_t l, size_t n) {
    mmax_shape s = mmax_rows(n * HEADS * TOKENS, TOKENS);
    s.scale = exp((double)model->value.net.modulator[l][HEAT]) / sqrt((double)HEAD_DIM);
    return s;
}

/*
 * Heads are counted through all images of a batch. Where one begins in the queries (the keys are WIDTH further, the
 * values 2 WIDTH) and in the mixed values; its scores begin at head * SQUARE.
 */
static inline size_t query_place(size_t head) { return head / HEADS * TOKENS * QKV + head % HEADS * HEAD_DIM; }

static inline size_t mixed_place(size_t head) { return head / HEADS * TOKENS * WIDTH + head % HEADS * HEAD_DIM; }

static inline void attention_forward(const struct model *model, struct workspace *work, size_t l, size_t n,
                                     int training) {
    struct activations *a = &work->layer[l];
    mmax_multimax_params p = params_of(model->value.net.modulator[l], model->setup.order);
    double parameter = parameter_of(model, l, training);
    clear(a->score, n * HEADS * SQUARE);
    for (size_t head = 0; head < n * HEADS; ++head) {
        const float *query = a->qkv + query_place(head);
        float *keys = work->turned;
        transpose(keys, query + WIDTH, QKV, TOKENS, HEAD_DIM);
        product(a->score + head * SQUARE, TOKENS, rows_of(query, QKV), keys, TOKENS, TOKENS, HEAD_DIM, TOKENS);
    }
    work->seconds_in_function -= seconds();
    apply(a->weight, a->score, model->setup.attention, &p, parameter, score_shape(model, l, n));
    work->seconds_in_function += seconds();
}

/* What layer l makes of its attention weights: the tokens behind it. */
static inline void forward_from_weights(const struct model *model, struct workspace *work, size_t l, size_t n) {
    const struct layer *layer = &model->value.net.layer[l];
    struct activations *a = &work->layer[l];
    size_t rows = n * TOKENS;
    float *x = work->tokens[l + 1];
    clear(a->mixed, rows * WIDTH);
    for (size_t head = 0; head < n * HEADS; ++head) {
        const float *value = a->qkv + query_place(head) + 2 * WIDTH, *weight = a->weight + head * SQUARE;
        product(a->mixed + mixed_place(head), WIDTH, rows_of(weight, TOKENS), value, QKV, TOKENS, TOKENS, HEAD_DIM);
    }
    memcpy(x, work->tokens[l], rows * WIDTH * sizeof *x);
    add_linear(x, a->mixed, layer->mix, rows, WIDTH, WIDTH);
    normalise(&a->norm2, x, rows);
    clear(a->hidden, rows * HIDDEN);
    add_linear(a->hidden, a->norm2.y, layer->up, rows, WIDTH, HIDDEN);
    for (size_t j = 0; j < rows * HIDDEN; ++j) { a->hidden[j] = a->hidden[j] > 0 ? a->hidden[j] : 0; }
    add_linear(x, a->hidden, layer->down, rows, HIDDEN, WIDTH);
}

/* The logits that the tokens behind the last layer give. */
static inline void forward_output(const struct model *model, struct workspace *work, size_t n) {
    normalise(&work->norm, work->tokens[model->setup.layers], n * TOKENS);
    clear(work->pooled, n * WIDTH);
    for (size_t j = 0; j < n * TOKENS * WIDTH; ++j) {
        work->pooled[j / (TOKENS * WIDTH) * WIDTH + j % WIDTH] += work->norm.y[j] / TOKENS;
    }
    clear(work->logit, n * CLASSES);
    add_linear(work->logit, work->pooled, model->value.net.output, n, WIDTH, CLASSES);
}

/* Cuts n images into patches; outside the image they are blank. */
static inline void load_images(struct workspace *work, const struct dataset *data, const size_t *index, size_t n) {
    for (size_t i = 0; i < n; ++i) {
        const struct image *image = &data->image[index[i]];
        float *pixel = work->patch + i * TOKENS * PATCH;
        work->label[i] = image->label;
        for (int t = 0; t < TOKENS; ++t) {
            int top = t / GRID * STEP - (SIDE - STEP) / 2, left = t % GRID * STEP - (SIDE - STEP) / 2;
            for (int j = 0; j < PATCH; ++j) {
                int r = top + j / SIDE, c = left + j % SIDE;
                *pixel++ = r >= 0 && r < IMAGE && c >= 0 && c < IMAGE ? image->pixel[r][c] : -1;
            }
        }
    }
}

/* The logits of the n images loaded, with all that the way back needs. */
static inline void forward(const struct model *model, struct workspace *work, size_t n, int training) {
    const struct network *net = &model->value.net;
    size_t rows = n * TOKENS;
    float *x = work->tokens[0];
    for (size_t i = 0; i < n; ++i) { memcpy(x + i * TOKENS * WIDTH, net->position, sizeof net->position); }
    product(x, WIDTH, rows_of(work->patch, PATCH), net->patch, WIDTH, rows, PATCH, WIDTH);
    for (size_t l = 0; l < (size_t)model->setup.layers; ++l) {
        struct activations *a = &work->layer[l];
        normalise(&a->norm1, work->tokens[l], rows);
        clear(a->qkv, rows * QKV);
        add_linear(a->qkv, a->norm1.y, net->layer[l].qkv, rows, WIDTH, QKV);
        attention_forward(model, work, l, n, training);
        forward_from_weights(model, work, l, n);
    }
    forward_output(model, work, n);
}

/* Mixup (Zhang et al., ICLR 2018): image i becomes share of itself and the rest of image n-1-i, and so do the targets. */
static inline void mix_images(struct workspace *work, size_t n, double share) {
    const float own = (float)share, other = 1 - own;
    clear(work->target, n * CLASSES);
    for (size_t i = 0; i < n; ++i) {
        float *patch = work->patch + i * TOKENS * PATCH, *pair = work->patch + (n - 1 - i) * TOKENS * PATCH;
        work->target[i * CLASSES + (size_t)work->label[i]] += own;
        work->target[i * CLASSES + (size_t)work->label[n - 1 - i]] += other;
        for (size_t j = 0; patch < pair && j < TOKENS * PATCH; ++j) {
            const float first = patch[j], second = pair[j];
            patch[j] = own * first + other * second;
            pair[j] = own * second + other * first;
        }
    }
    work->is_mixed = 1;
}

/* ==== backward ==================================================================================================== */

/* The loss of each row, and the logits turned into their gradient in place. */
static inline void loss_and_gradient(double *loss, struct model *model, struct workspace *work, double smoothing,
                                     size_t n) {
    mmax_multimax_params p = params_of(model->value.net.modulator[OUTPUT], model->setup.order);
    mmax_multimax_grads gp = {{0, 0}, {0, 0}, {0, 0}, {0, 0}};
    mmax_shape s = mmax_rows(n, CLASSES);
    mmax_targets t = work->is_mixed ? mmax_distributions(work->target) : mmax_labels(work->label);
    float *x = work->logit;
    t.label_smoothing = smoothing;
    t.grad_scale = 1 / (double)n;
    switch (model->setup.output) {
    case SOFTMAX: check(mmax_softmax_loss_f32(loss, x, x, t, s)); break;
    case MULTIMAX: check(mmax_multimax_loss_f32(loss, x, &gp, x, &p, t, s)); break;
    case EVSOFTMAX: check(mmax_evsoftmax_loss_f32(loss, x, x, EVSOFTMAX_EPSILON, t, s)); break;
    case SPARSEMAX: check(mmax_sparsemax_loss_f32(loss, x, x, t, s)); break;
    default: check(mmax_entmax15_loss_f32(loss, x, x, t, s)); break;
    }
    add_grads(model->gradient.net.modulator[OUTPUT], &gp, &model->setup);
}

/* The gradient of the scores takes the place of that of the weights. */
static inline void apply_backward(struct model *model, struct workspace *work, size_t l, size_t n) {
    const struct activations *a = &work->layer[l];
    const float *x = a->score, *y = a->weight;
    float *g = work->back_score;
    double heat = 0, alpha = 0, parameter = parameter_of(model, l, 1), slope;
    mmax_multimax_params p = params_of(model->value.net.modulator[l], model->setup.order);
    mmax_multimax_grads gp = {{0, 0}, {0, 0}, {0, 0}, {0, 0}};
    mmax_shape s = score_shape(model, l, n);
    work->seconds_in_function -= seconds();
    switch (model->setup.attention) {
    case TOPK:
    case SOFTMAX: check(mmax_softmax_backward_f32(g, g, y, s)); break;
    case MULTIMAX: check(mmax_multimax_backward_f32(g, &gp, g, y, x, &p, s)); break;
    case EVSOFTMAX: check(mmax_evsoftmax_backward_f32(g, g, y, s)); break;
    case SPARSEMAX: check(mmax_sparsemax_backward_f32(g, g, y, s)); break;
    case ENTMAX15: check(mmax_entmax15_backward_f32(g, g, y, s)); break;
    case ENTMAX:
        check(mmax_entmax_backward_f32(g, model->setup.learn_alpha ? &alpha : NULL, g, y, parameter, s));
        break;
    case SIGSOFTMAX: check(mmax_sigsoftmax_backward_f32(g, g, y, x, s)); break;
    case SPARSEHOURGLASS: check(mmax_sparsehourglass_backward_f32(g, NULL, g, y, x, parameter, s)); break;
    default: check(mmax_tanhmax_backward_f32(g, g, y, x, s)); break;
    }
    work->seconds_in_function += seconds();
    add_grads(model->gradient.net.modulator[l], &gp, &model->setup);
    /* d loss / d log(scale) = sum of the scores times their gradients, for every function */
    for (size_t i = 0; i < s.rows * s.cols && model->setup.learn_heat; ++i) { heat += (double)g[i] * (double)x[i]; }
    model->gradient.net.modulator[l][HEAT] += (float)heat;
    slope = (parameter - 1) * (2 - parameter); /* of alpha, with respect to its z */
    model->gradient.net.modulator[l][ALPHA] += (float)(alpha * slope);
}

/* Adds to the gradient of matrix and bias, writes that of x. */
static inline void linear_backward(float *gx, float *g_matrix, const float *gy, const float *x, const float *matrix,
                                   float *turned, size_t rows, size_t in, size_t out) {
    for (size_t r = 0; r < rows; ++r) {
        for (size_t j = 0; j < out; ++j) { g_matrix[in * out + j] += gy[r * out + j]; }
    }
    product(g_matrix, out, columns_of(x, in), gy, out, in, rows, out);
    transpose(turned, matrix, out, in, out);
    clear(gx, rows * in);
    product(gx, in, rows_of(gy, out), turned, in, rows, out, in);
}

/* Adds the gradient of the norm's input to gx. */
static inline void normalise_backward(float *gx, const float *gy, const struct norm *norm, size_t rows) {
    for (size_t r = 0; r < rows; ++r) {
        const float *g = gy + r * WIDTH, *y = norm->y + r * WIDTH;
        float mean = 0, along = 0;
        for (size_t j = 0; j < WIDTH; ++j) {
            mean += g[j] / WIDTH;
            along += g[j] * y[j] / WIDTH;
        }
        for (size_t j = 0; j < WIDTH; ++j) { gx[r * WIDTH + j] += (g[j] - mean - y[j] * along) * norm->inverse[r]; }
    }
}

/* From the gradient of `mixed`, in back_norm, to that of queries, keys and values, in back. */
static inline void attention_backward(struct model *model, struct workspace *work, size_t l, size_t n) {
    const struct activations *a = &work->layer[l];
    clear(work->back_score, n * HEADS * SQUARE);
    clear(work->back, n * TOKENS * QKV);
    for (size_t head = 0; head < n * HEADS; ++head) {
        const float *g_mixed = work->back_norm + mixed_place(head), *weight = a->weight + head * SQUARE;
        float *g_weight = work->back_score + head * SQUARE, *values = work->turned;
        size_t value = query_place(head) + 2 * WIDTH;
        transpose(values, a->qkv + value, QKV, TOKENS, HEAD_DIM);
        product(g_weight, TOKENS, rows_of(g_mixed, WIDTH), values, TOKENS, TOKENS, HEAD_DIM, TOKENS);
        product(work->back + value, QKV, columns_of(weight, TOKENS), g_mixed, WIDTH, TOKENS, TOKENS, HEAD_DIM);
    }
    apply_backward(model, work, l, n);
    for (size_t head = 0; head < n * HEADS; ++head) {
        const float *g_score = work->back_score + head * SQUARE;
        size_t query = query_place(head), key = query + WIDTH;
        product(work->back + query, QKV, rows_of(g_score, TOKENS), a->qkv + key, QKV, TOKENS, TOKENS, HEAD_DIM);
        product(work->back + key, QKV, columns_of(g_score, TOKENS), a->qkv + query, QKV, TOKENS, TOKENS, HEAD_DIM);
    }
}

/* From the gradient of the logits, in their place, to that of all weights. */
static inline void backward(struct model *model, struct workspace *work, size_t n) {
    const struct network *net = &model->value.net;
    struct network *grad = &model->gradient.net;
    size_t rows = n * TOKENS;
    float *g = work->stream, *back = work->back, *back_norm = work->back_norm, *turned = work->turned;
    linear_backward(back, grad->output, work->logit, work->pooled, net->output, turned, n, WIDTH, CLASSES);
    for (size_t j = 0; j < rows * WIDTH; ++j) {
        back_norm[j] = back[j / (TOKENS * WIDTH) * WIDTH + j % WIDTH] / TOKENS;
    }
    clear(g, rows * WIDTH);
    normalise_backward(g, back_norm, &work->norm, rows);
    for (size_t l = (size_t)model->setup.layers; l-- > 0;) {
        const struct layer *layer = &net->layer[l];
        struct layer *to = &grad->layer[l];
        const struct activations *a = &work->layer[l];
        linear_backward(back, to->down, g, a->hidden, layer->down, turned, rows, HIDDEN, WIDTH);
        for (size_t j = 0; j < rows * HIDDEN; ++j) { back[j] = a->hidden[j] > 0 ? back[j] : 0; }
        linear_backward(back_norm, to->up, back, a->norm2.y, layer->up, turned, rows, WIDTH, HIDDEN);
        normalise_backward(g, back_norm, &a->norm2, rows);
        linear_backward(back_norm, to->mix, g, a->mixed, layer->mix, turned, rows, WIDTH, WIDTH);
        attention_backward(model, work, l, n);
        linear_backward(back_norm, to->qkv, back, a->norm1.y, layer->qkv, turned, rows, WIDTH, QKV);
        normalise_backward(g, back_norm, &a->norm1, rows);
    }
    product(grad->patch, WIDTH, columns_of(work->patch, PATCH), g, WIDTH, PATCH, rows, WIDTH);
    for (size_t j = 0; j < rows * WIDTH; ++j) { grad->position[j % (TOKENS * WIDTH)] += g[j]; }
}

/* ==== optimiser =================================================================================================== */

/* Adam with decoupled weight decay (Loshchilov, Hutter 2019) on the weights first to last - 1; clips their gradient. */
static inline void update(struct model *model, size_t first, size_t last, double rate, double decay, double clip) {
    const double keep1 = 0.9, keep2 = 0.99;
    double correct1 = 1 - pow(keep1, (double)model->steps), correct2 = 1 - pow(keep2, (double)model->steps);
    double square = 0;
    for (size_t i = first; i < last; ++i) { square += (double)model->gradient.all[i] * (double)model->gradient.all[i]; }
    float shrink = square > clip * clip ? (float)(clip / sqrt(square)) : 1;
    float step = (float)(rate / correct1), inverse2 = (float)(1 / correct2), shorten = (float)(1 - rate * decay);
    for (size_t i = first; i < last; ++i) {
        float g = model->gradient.all[i] * shrink;
        float *m = &model->moment.all[i], *v = &model->square.all[i], *w = &model->value.all[i];
        *m += (float)(1 - keep1) * (g - *m);
        *v += (float)(1 - keep2) * (g * g - *v);
        *w = *w * shorten - step * *m / (sqrtf(*v * inverse2) + 1e-8f);
    }
}

/* A linear warm-up, then a linear way down to 0. */
static inline double learning_rate(size_t step, size_t steps) {
    double up = (double)step / WARMUP_STEPS, down = (double)(steps + 1 - step) / (double)steps;
    return LEARNING_RATE * (up < down ? up : down);
}

/* One step of `steps` on the n images loaded; returns the sum of their losses. */
static inline double train_step(struct model *model, struct workspace *work, size_t n, double smoothing, size_t steps) {
    size_t network = BEFORE_LAYERS + (size_t)model->setup.layers * LAYER_WEIGHTS;
    double loss[BATCH], sum = 0;
    clear(model->gradient.all, network);
    clear(model->gradient.all + BEFORE_MODULATORS, ALL_WEIGHTS - BEFORE_MODULATORS);
    forward(model, work, n, 1);
    loss_and_gradient(loss, model, work, smoothing, n);
    backward(model, work, n);
    ++model->steps;
    double rate = learning_rate(model->steps, steps);
    update(model, 0, network, rate, WEIGHT_DECAY, CLIP_NETWORK);
    update(model, BEFORE_MODULATORS, ALL_WEIGHTS, rate, 0, CLIP_MODULATORS);
    for (size_t i = 0; i < n; ++i) { sum += loss[i]; }
    return sum;
}

/* ==== training ==================================================================================================== */

struct trainer {
    struct dataset data;
    struct model model;
    struct workspace work;
    double smoothing, mixup; /* mixup: the parameter of its Beta distribution, or 0 */
    int explains;            /* whether the attention weights are put to the test as explanations, too */
    int epochs, epoch;
    size_t *order; /* of the training images */
    uint64_t random;
    double layers_done, layers; /* layers_trained() of all runs, for the progress line */
    time_t begun, drawn;
};

static inline void trainer_start(struct trainer *t, const char *data_path) {
    t->data = read_dataset(data_path);
    t->order = allocate(t->data.train_count, sizeof *t->order);
    t->begun = t->drawn = time(NULL);
}

static inline void trainer_end(struct trainer *t) {
    free(t->order);
    free(t->data.order);
    free(t->data.image);
    free(t);
}

/* The layers that an epoch trains; those with entmax take as long as four others. */
static inline double layers_trained(const struct setup *setup) {
    return setup->layers * (setup->attention == ENTMAX ? 4 : 1);
}

/* A new model. The seed gives its first weights and the order of the images. */
static inline void train_start(struct trainer *t, const struct setup *setup, int seed) {
    t->random = (uint64_t)seed;
    t->epoch = 0;
    memcpy(t->order, t->data.order, t->data.train_count * sizeof *t->order);
    model_start(&t->model, setup, &t->random);
}

/* Returns the mean loss. */
static inline double train_epoch(struct trainer *t) {
    size_t count = t->data.train_count, steps = (count + BATCH - 1) / BATCH * (size_t)t->epochs;
    double loss = 0;
    shuffle(t->order, count, &t->random);
    for (size_t i = 0; i < count; i += BATCH) {
        size_t n = count - i < BATCH ? count - i : BATCH;
        load_images(&t->work, &t->data, t->order + i, n);
        if (t->mixup > 0) { mix_images(&t->work, n, random_beta(t->mixup, &t->random)); }
        loss += train_step(&t->model, &t->work, n, t->smoothing, steps) / (double)count;
    }
    ++t->epoch;
    t->layers_done += layers_trained(&t->model.setup);
    return loss;
}

/* The next test images, from i on: their number, 0 at the end. */
static inline size_t forward_test_images(struct trainer *t, size_t i) {
    size_t left = t->data.count - t->data.train_count, n = i < left ? left - i : 0;
    n = n < BATCH ? n : BATCH;
    if (n > 0) {
        load_images(&t->work, &t->data, t->data.order + t->data.train_count + i, n);
        forward(&t->model, &t->work, n, 0);
    }
    return n;
}

/* The seconds since the start: processor time, or by the clock, which counts whole ones, where others share the processor. */
static inline double seconds_since_start(const struct trainer *t, time_t now) {
    double by_clock = difftime(now, t->begun), used = seconds();
    return by_clock > used + 1 ? by_clock : used;
}

/* One line on a terminal, drawn anew at most once a second; nothing in a pipe. The time left is shown after 3 s. */
static inline void progress(struct trainer *t, const char *name, int seed, double loss) {
    time_t now = time(NULL);
    double passed = seconds_since_start(t, now), left = passed * (t->layers - t->layers_done) / t->layers_done;
    if (STDERR_IS_TERMINAL() && now != t->drawn) {
        char line[160], time_left[32] = "";
        t->drawn = now;
        if (passed >= 3) { snprintf(time_left, sizeof time_left, "%.0f s left: ", left); }
        snprintf(line, sizeof line, "%s%s, seed %d, epoch %2d of %d, loss %.3f", time_left, name, seed, t->epoch, t->epochs,
                 loss);
        fprintf(stderr, "\r%-79.79s", line);
    }
}

static inline void progress_end(void) {
    if (STDERR_IS_TERMINAL()) { fprintf(stderr, "\r%-79s\r", ""); }
}

struct spread {
    double mean, std;
};

/* Of measure[i] over the seeds; with `from`, of measure[i] - from[i]: both have the same first weights and images. */
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

/* ==== measures of tokens and of attention weights ================================================================= */

static inline double cosine(const float *a, const float *b, size_t width) {
    double ab = 0, aa = 0, bb = 0;
    for (size_t j = 0; j < width; ++j) {
        ab += (double)a[j] * (double)b[j];
        aa += (double)a[j] * (double)a[j];
        bb += (double)b[j] * (double)b[j];
    }
    return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : 0;
}

/* Patch similarity (Gong et al. 2021): the mean |cosine| of pairs of tokens. 1: all are parallel. */
static inline double patch_similarity(const float *x, size_t tokens, size_t width) {
    double sum = 0;
    for (size_t i = 0; i < tokens; ++i) {
        for (size_t k = 0; k < i; ++k) { sum += fabs(cosine(x + i * width, x + k * width, width)); }
    }
    return sum / ((double)tokens * (double)(tokens - 1) / 2);
}

/* MAD (Chen et al. 2020): the mean cosine distance of pairs of tokens that are not parallel, row by row. */
static inline double mean_average_distance(const float *x, size_t tokens, size_t width) {
    const double parallel = 1e-6;
    double mean = 0;
    for (size_t i = 0; i < tokens; ++i) {
        double sum = 0, count = 0;
        for (size_t k = 0; k < tokens; ++k) {
            double distance = 1 - cosine(x + i * width, x + k * width, width);
            sum += distance > parallel ? distance : 0;
            count += distance > parallel;
        }
        mean += count > 0 ? sum / count / (double)tokens : 0;
    }
    return mean;
}

/* Rank collapse (Dong et al. 2021): |X - mean token| / |X| in the norm sqrt(|.|_1 |.|_inf). 0: all tokens are equal. */
static inline double collapse_residual(const float *x, size_t tokens, size_t width) {
    double row_max[2] = {0, 0}, column_max[2] = {0, 0}; /* of the residual, of X */
    for (size_t i = 0; i < tokens; ++i) {
        double row[2] = {0, 0};
        for (size_t j = 0; j < width; ++j) {
            double mean = 0;
            for (size_t k = 0; k < tokens; ++k) { mean += (double)x[k * width + j] / (double)tokens; }
            row[0] += fabs((double)x[i * width + j] - mean);
            row[1] += fabs((double)x[i * width + j]);
        }
        for (int m = 0; m < 2; ++m) { row_max[m] = fmax(row_max[m], row[m]); }
    }
    for (size_t j = 0; j < width; ++j) {
        double mean = 0, column[2] = {0, 0};
        for (size_t k = 0; k < tokens; ++k) { mean += (double)x[k * width + j] / (double)tokens; }
        for (size_t k = 0; k < tokens; ++k) {
            column[0] += fabs((double)x[k * width + j] - mean);
            column[1] += fabs((double)x[k * width + j]);
        }
        for (int m = 0; m < 2; ++m) { column_max[m] = fmax(column_max[m], column[m]); }
    }
    double size = row_max[1] * column_max[1];
    return size > 0 ? sqrt(row_max[0] * column_max[0] / size) : 0;
}

/*
 * Attention rollout (Abnar, Zuidema 2020), layer by layer from rollout = I: own = (mean of the heads + I) / row sum,
 * rollout = own rollout. Weights below 0 enter by their size. Returns |rollout - own| (Frobenius): 0 in the first layer.
 */
static inline double roll_out(double *rollout, const float *weight, size_t heads, size_t tokens) {
    double *own = allocate(2 * tokens * tokens, sizeof *own), *next = own + tokens * tokens, square = 0;
    for (size_t i = 0; i < tokens; ++i) {
        double sum = 0;
        for (size_t j = 0; j < tokens; ++j) {
            own[i * tokens + j] = i == j;
            for (size_t h = 0; h < heads; ++h) {
                own[i * tokens + j] += fabs((double)weight[(h * tokens + i) * tokens + j]) / (double)heads;
            }
            sum += own[i * tokens + j];
        }
        for (size_t j = 0; j < tokens; ++j) { own[i * tokens + j] /= sum; }
        for (size_t k = 0; k < tokens; ++k) {
            for (size_t j = 0; j < tokens; ++j) {
                next[i * tokens + j] += own[i * tokens + k] * rollout[k * tokens + j];
            }
        }
    }
    for (size_t i = 0; i < tokens * tokens; ++i) {
        square += (next[i] - own[i]) * (next[i] - own[i]);
        rollout[i] = next[i];
    }
    free(own);
    return sqrt(square);
}

/* Weights in bins of equal width on a logarithmic axis, from 10^-DECADES to 1; the first has all smaller ones too. */
enum { DECADES = 8, BINS_A_DECADE = 4, BINS = DECADES * BINS_A_DECADE };
struct histogram {
    double zero, bin[BINS]; /* shares */
};

/* Each weight counts for `share`, and by its size: tanhmax has weights below 0. */
static inline void histogram_add(struct histogram *h, const float *weight, size_t n, double share) {
    for (size_t i = 0; i < n; ++i) {
        double size = fabs((double)weight[i]);
        if (size > 0) {
            double bin = floor((log10(size) + DECADES) * BINS_A_DECADE);
            h->bin[(size_t)fmin(fmax(bin, 0), BINS - 1)] += share;
        } else {
            h->zero += share;
        }
    }
}

/* The share of weights whose size is below 10^exponent. */
static inline double share_below(const struct histogram *h, int exponent) {
    double share = h->zero;
    for (int bin = 0; bin < (exponent + DECADES) * BINS_A_DECADE; ++bin) { share += h->bin[bin]; }
    return share;
}

/* ==== explanations: do attention weights say which tokens matter? (TanhMax paper, Table 1; Jain, Wallace 2019) ==== */

/* The weights are those of the last layer. A change of the output is half the sum of |p' - p| over the classes. */
enum { BY_GRADIENT, GRADIENT_SURE, BY_OCCLUSION, OCCLUSION_SURE, PERMUTED, RANDOM, EXPLANATIONS, TRIALS = 100 };

/* Kendall's tau-b: pairs in the same order less those in the opposite one; pairs that are tied do not count. */
static inline double kendall_tau(const double *a, const double *b, size_t n) {
    double same = 0, pairs_a = 0, pairs_b = 0;
    for (size_t i = 0; i < n; ++i) {
        for (size_t k = 0; k < i; ++k) {
            int in_a = (a[i] > a[k]) - (a[i] < a[k]), in_b = (b[i] > b[k]) - (b[i] < b[k]);
            same += in_a * in_b;
            pairs_a += in_a != 0;
            pairs_b += in_b != 0;
        }
    }
    return pairs_a > 0 && pairs_b > 0 ? same / sqrt(pairs_a * pairs_b) : 0;
}

/* Whether tau differs from 0, p < 0.01, by its normal approximation. */
static inline int tau_is_significant(double tau, double n) {
    return fabs(tau) > 2.5758 * sqrt(2 * (2 * n + 5) / (9 * n * (n - 1)));
}

/* Other weights in the place of a row: its own in another order, or random ones with the sum of its sizes. */
static inline void redistribute(float row[TOKENS], int randomly, int with_signs, uint64_t *state) {
    float kept[TOKENS], size = 0, drawn = 0;
    size_t order[TOKENS];
    memcpy(kept, row, sizeof kept);
    for (size_t j = 0; j < TOKENS; ++j) { order[j] = j; }
    if (randomly) {
        random_fill(row, TOKENS, 1, state);
    } else {
        shuffle(order, TOKENS, state);
    }
    for (size_t j = 0; j < TOKENS; ++j) {
        row[j] = !randomly ? kept[order[j]] : with_signs ? row[j] : fabsf(row[j]);
        size += fabsf(kept[j]);
        drawn += fabsf(row[j]);
    }
    for (size_t j = 0; j < TOKENS && randomly && drawn > 0; ++j) { row[j] *= size / drawn; }
}

/* The weights of layer l as if nobody saw the token. */
static inline void occlude(const struct model *model, struct workspace *work, size_t l, size_t n, size_t token) {
    float *score = work->back_score;
    mmax_multimax_params p = params_of(model->value.net.modulator[l], model->setup.order);
    memcpy(score, work->layer[l].score, n * HEADS * SQUARE * sizeof *score);
    for (size_t row = 0; row < n * HEADS * TOKENS; ++row) { score[row * TOKENS + token] = -INFINITY; }
    apply(work->layer[l].weight, score, model->setup.attention, &p, 0, score_shape(model, l, n));
}

/* The probabilities of the n images once layer l has other weights. */
static inline void output_from_weights(float *p, const struct model *model, struct workspace *work, size_t l,
                                       size_t n) {
    mmax_multimax_params params = params_of(model->value.net.modulator[OUTPUT], model->setup.order);
    forward_from_weights(model, work, l, n);
    forward_output(model, work, n);
    apply(p, work->logit, model->setup.output, &params, 0, mmax_rows(n, CLASSES));
}

static inline double output_change(const float *p, const float *q) {
    double sum = 0;
    for (int c = 0; c < CLASSES; ++c) { sum += fabs((double)p[c] - (double)q[c]) / 2; }
    return sum;
}

static inline int compare_numbers(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* |gradient of the likeliest class's probability| by each token of the first layer; the output layer is softmax. */
static inline void token_gradients(double gradient[BATCH][TOKENS], struct model *model, struct workspace *work,
                                   const float *p, const int *class, size_t n) {
    clear(work->logit, n * CLASSES);
    for (size_t i = 0; i < n; ++i) { work->logit[i * CLASSES + (size_t) class[i]] = 1; }
    check(mmax_softmax_backward_f32(work->logit, work->logit, p, mmax_rows(n, CLASSES)));
    backward(model, work, n);
    for (size_t j = 0; j < n * TOKENS; ++j) {
        double square = 0;
        for (size_t k = 0; k < WIDTH; ++k) {
            square += (double)work->stream[j * WIDTH + k] * (double)work->stream[j * WIDTH + k];
        }
        gradient[j / TOKENS][j % TOKENS] = sqrt(square);
    }
}

/* Adds the measures of n images, after their forward(), to the sums. */
static inline void explain(double sum[EXPLANATIONS], struct model *model, struct workspace *work, size_t n,
                           uint64_t *state) {
    static double change[BATCH][TRIALS], lost[BATCH][TOKENS], gradient[BATCH][TOKENS];
    static float p[BATCH * CLASSES], q[BATCH * CLASSES];
    size_t l = (size_t)model->setup.layers - 1, weights = n * HEADS * SQUARE;
    float *weight = work->layer[l].weight, *kept = work->centred;
    int class[BATCH] = {0};
    memcpy(kept, weight, weights * sizeof *kept);
    output_from_weights(p, model, work, l, n);
    for (size_t j = 0; j < n * CLASSES; ++j) {
        int *best = &class[j / CLASSES];
        *best = p[j] > p[j / CLASSES * CLASSES + (size_t)*best] ? (int)(j % CLASSES) : *best;
    }
    token_gradients(gradient, model, work, p, class, n);
    for (size_t token = 0; token < TOKENS; ++token) {
        occlude(model, work, l, n, token);
        output_from_weights(q, model, work, l, n);
        for (size_t i = 0; i < n; ++i) {
            size_t at = i * CLASSES + (size_t) class[i];
            lost[i][token] = (double)p[at] - (double)q[at];
        }
    }
    for (int randomly = 0; randomly < 2; ++randomly) {
        for (size_t trial = 0; trial < TRIALS; ++trial) {
            memcpy(weight, kept, weights * sizeof *kept);
            for (size_t row = 0; row < n * HEADS * TOKENS; ++row) {
                redistribute(weight + row * TOKENS, randomly, model->setup.attention == TANHMAX, state);
            }
            output_from_weights(q, model, work, l, n);
            for (size_t i = 0; i < n; ++i) { change[i][trial] = output_change(p + i * CLASSES, q + i * CLASSES); }
        }
        for (size_t i = 0; i < n; ++i) {
            qsort(change[i], TRIALS, sizeof *change[i], compare_numbers);
            sum[randomly ? RANDOM : PERMUTED] += (change[i][TRIALS / 2 - 1] + change[i][TRIALS / 2]) / 2;
        }
    }
    for (size_t i = 0; i < n; ++i) {
        double size[TOKENS] = {0}, with_sign[TOKENS] = {0}; /* means over heads and queries, but for a factor */
        for (size_t j = 0; j < HEADS * SQUARE; ++j) {
            with_sign[j % TOKENS] += (double)kept[i * HEADS * SQUARE + j];
            size[j % TOKENS] += fabs((double)kept[i * HEADS * SQUARE + j]);
        }
        double by_gradient = kendall_tau(size, gradient[i], TOKENS), by_loss = kendall_tau(with_sign, lost[i], TOKENS);
        sum[BY_GRADIENT] += by_gradient;
        sum[GRADIENT_SURE] += tau_is_significant(by_gradient, TOKENS);
        sum[BY_OCCLUSION] += by_loss;
        sum[OCCLUSION_SURE] += tau_is_significant(by_loss, TOKENS);
    }
}

#endif
