/*
 * train_digits.c: a small vision transformer trained on images of hand-written digits. Its attention weights come from
 * any of the six functions of multimax.h, forward and backward; its output layer uses any of the five fused losses.
 *
 *     cc -O2 -Iinclude examples/train_digits.c -o train_digits -lm
 *     ./train_digits --help
 *
 * The tokens of an 8x8 image are 16 patches of 4x4 pixels that overlap by half. Two layers of multi-head attention and
 * a two-layer perceptron, each behind a layer norm and with a residual connection, then the mean over the tokens and a
 * linear output layer. All rows of attention scores of a batch (images, heads, queries) go through the library
 * in one call. All weights are trained by Adam with weight decay; the MultiMax parameters, one set a layer, start at
 * the identity, have no weight decay, and their gradient is clipped apart from that of the network.
 *
 * In order: data, matrix products, model, forward, backward, optimiser, evaluation, training, printing, SVG, main.
 */
#if defined(__unix__) || defined(__APPLE__)
#    define _POSIX_C_SOURCE 200112L /* isatty, for the progress line */
#    include <unistd.h>
#    define STDERR_IS_TERMINAL() isatty(STDERR_FILENO)
#else
#    define STDERR_IS_TERMINAL() 0
#endif

#include "multimax.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
    LAYERS = 2,
    BATCH = 32,
    ROWS = BATCH * TOKENS,
    QKV = 3 * WIDTH,
    SQUARE = TOKENS * TOKENS,        /* scores of one head */
    SCORES = BATCH * HEADS * SQUARE, /* of one layer */
    MAX_SEEDS = 20,
    MAX_EPOCHS = 200
};

/* The same hyper-parameters for every function. */
#define LEARNING_RATE     6e-3
#define WARMUP_STEPS      50
#define WEIGHT_DECAY      1.0
#define CLIP_NETWORK      1.0
#define CLIP_MODULATORS   0.1
#define EVSOFTMAX_EPSILON 1e-6 /* in training; 0 at inference */
#define METRIC_REFERENCE  0.01

/* The first five are also output layers. */
enum { SOFTMAX, MULTIMAX, EVSOFTMAX, SPARSEMAX, ENTMAX15, TANHMAX, FUNCTIONS, HEAD_KINDS = TANHMAX, NONE = -1 };
static const char *const function_name[] = {"softmax", "multimax", "evsoftmax", "sparsemax", "entmax15", "tanhmax"};

static void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("train_digits: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(2);
}

static void check(mmax_status status) {
    if (status != MMAX_OK) { fail("multimax.h: %s", mmax_status_string(status)); }
}

/* Zeroed memory, to be freed by free(). */
static void *allocate(size_t count, size_t size) {
    void *memory = calloc(count, size);
    if (memory == NULL) { fail("out of memory"); }
    return memory;
}

/* SplitMix64 (Steele, Lea, Flood 2014): the same numbers on every machine. */
static uint64_t random_bits(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void random_fill(float *x, size_t n, double bound, uint64_t *state) {
    for (size_t i = 0; i < n; ++i) {
        x[i] = (float)(bound * ((double)(random_bits(state) >> 11) / 4503599627370496.0 - 1.0)); /* 2^52 */
    }
}

static void shuffle(size_t *x, size_t n, uint64_t *state) {
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
static int read_cell(FILE *file, char text[8]) {
    size_t length = 0;
    int c;
    while ((c = getc(file)) != EOF && c != ',' && c != '\n') {
        if (c != ' ' && c != '\t' && c != '\r' && length < 7) { text[length++] = c < ' ' || c > '~' ? '?' : (char)c; }
    }
    text[length] = '\0';
    return c;
}

/* One line of 64 pixels and a class; returns 0 at the end of the file. */
static int read_image(struct image *image, FILE *file, const char *path, unsigned long line) {
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

static struct dataset read_dataset(const char *path) {
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

static struct view rows_of(const float *x, size_t stride) {
    struct view v = {x, stride, 1};
    return v;
}

static struct view columns_of(const float *x, size_t stride) {
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
static void product(float *c, size_t c_row, struct view a, const float *b, size_t b_row, size_t m, size_t k, size_t n) {
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
static void transpose(float *to, const float *from, size_t from_row, size_t m, size_t n) {
    for (size_t i = 0; i < m; ++i) {
        for (size_t j = 0; j < n; ++j) { to[j * m + i] = from[i * from_row + j]; }
    }
}

/* ==== model ======================================================================================================= */

enum { WIDEST = QKV > HIDDEN ? QKV : HIDDEN, SCALARS = 8, OUTPUT = LAYERS, MODULATORS = LAYERS + 1 };

struct layer {                    /* of each matrix, the last row is the bias */
    float qkv[(WIDTH + 1) * QKV]; /* queries, keys, values; in each, head by head */
    float mix[(WIDTH + 1) * WIDTH];
    float up[(WIDTH + 1) * HIDDEN];
    float down[(HIDDEN + 1) * WIDTH];
};

struct network {
    float patch[PATCH * WIDTH], position[TOKENS * WIDTH];
    struct layer layer[LAYERS];
    float output[(WIDTH + 1) * CLASSES];
    float modulator[MODULATORS][SCALARS]; /* t_b, t_d, b, d, each of order 1 and 2; the last set: the output layer's */
};

/* Values, gradients and moments of the optimiser: the same names, or one array. */
union weights {
    struct network net;
    float all[sizeof(struct network) / sizeof(float)];
};

enum {
    ALL_WEIGHTS = sizeof(struct network) / sizeof(float),
    NETWORK_WEIGHTS = offsetof(struct network, modulator) / sizeof(float)
};

struct model {
    int attention, head; /* which function */
    union weights value, gradient, moment, square;
    size_t steps;
};

static mmax_multimax_params params_of(const float scalar[SCALARS]) {
    mmax_multimax_params p = mmax_multimax_identity(2);
    for (size_t n = 0; n < 2; ++n) {
        p.t_b[n] = scalar[n];
        p.t_d[n] = scalar[2 + n];
        p.b[n] = scalar[4 + n];
        p.d[n] = scalar[6 + n];
    }
    return p;
}

static void add_grads(float scalar[SCALARS], const mmax_multimax_grads *g) {
    for (size_t n = 0; n < 2; ++n) {
        scalar[n] += (float)g->t_b[n];
        scalar[2 + n] += (float)g->t_d[n];
        scalar[4 + n] += (float)g->b[n];
        scalar[6 + n] += (float)g->d[n];
    }
}

static void model_start(struct model *model, int attention, int head, uint64_t *state) {
    struct network *net = &model->value.net;
    memset(model, 0, sizeof *model);
    model->attention = attention;
    model->head = head;
    /* Uniform, with variance 1/inputs. */
    random_fill(net->patch, PATCH * WIDTH, sqrt(3.0 / PATCH), state);
    random_fill(net->position, TOKENS * WIDTH, 1, state);
    for (size_t l = 0; l < LAYERS; ++l) {
        random_fill(net->layer[l].qkv, WIDTH * QKV, sqrt(3.0 / WIDTH), state);
        random_fill(net->layer[l].mix, WIDTH * WIDTH, sqrt(3.0 / WIDTH), state);
        random_fill(net->layer[l].up, WIDTH * HIDDEN, sqrt(3.0 / WIDTH), state);
        random_fill(net->layer[l].down, HIDDEN * WIDTH, sqrt(3.0 / HIDDEN), state);
    }
    random_fill(net->output, WIDTH * CLASSES, sqrt(3.0 / WIDTH), state);
    for (size_t l = 0; l < MODULATORS; ++l) {
        for (size_t i = 0; i < 4; ++i) { net->modulator[l][i] = 1; /* t_b and t_d; b and d are 0 */ }
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
    struct activations layer[LAYERS];
    struct norm norm;
    float pooled[BATCH * WIDTH], logit[BATCH * CLASSES];
    int32_t label[BATCH];
    float stream[ROWS * WIDTH];                         /* the residual stream; on the way back, its gradient */
    float back[ROWS * WIDEST], back_norm[ROWS * WIDTH]; /* gradients inside a layer */
    float back_score[SCORES], centred[SCORES], turned[WIDEST * WIDEST];
    double metric[BATCH * HEADS * TOKENS];
    double seconds_in_function;
};

static double seconds(void) { return (double)clock() / CLOCKS_PER_SEC; }

/* y = function(scale * x): attention weights, or the probabilities of the output layer */
static void apply(float *y, const float *x, int function, const float modulator[SCALARS], double epsilon,
                  mmax_shape s) {
    mmax_multimax_params p = params_of(modulator);
    switch (function) {
    case SOFTMAX: check(mmax_softmax_f32(y, x, s)); break;
    case MULTIMAX: check(mmax_multimax_f32(y, x, &p, s)); break;
    case EVSOFTMAX: check(mmax_evsoftmax_f32(y, x, epsilon, s)); break;
    case SPARSEMAX: check(mmax_sparsemax_f32(y, x, s)); break;
    case ENTMAX15: check(mmax_entmax15_f32(y, x, s)); break;
    default: check(mmax_tanhmax_f32(y, x, s)); break;
    }
}

static void clear(float *x, size_t n) { memset(x, 0, n * sizeof *x); }

/* y += x matrix + bias, the last row of the matrix */
static void add_linear(float *y, const float *x, const float *matrix, size_t rows, size_t in, size_t out) {
    for (size_t r = 0; r < rows; ++r) {
        for (size_t j = 0; j < out; ++j) { y[r * out + j] += matrix[in * out + j]; }
    }
    product(y, out, rows_of(x, in), matrix, out, rows, in, out);
}

/* Layer norm without gain and bias: the linear layer behind it has both. */
static void normalise(struct norm *norm, const float *x, size_t rows) {
    for (size_t r = 0; r < rows; ++r) {
        const float *in = x + r * WIDTH;
        float mean = 0, square = 0;
        for (size_t j = 0; j < WIDTH; ++j) { mean += in[j] / WIDTH; }
        for (size_t j = 0; j < WIDTH; ++j) { square += (in[j] - mean) * (in[j] - mean) / WIDTH; }
        norm->inverse[r] = 1 / sqrtf(square + 1e-5f);
        for (size_t j = 0; j < WIDTH; ++j) { norm->y[r * WIDTH + j] = (in[j] - mean) * norm->inverse[r]; }
    }
}

/* All rows of attention scores of n images in one batch; the library applies the scale. */
static mmax_shape score_shape(size_t n) {
    mmax_shape s = mmax_rows(n * HEADS * TOKENS, TOKENS);
    s.scale = 1 / sqrt((double)HEAD_DIM);
    return s;
}

/*
 * Heads are counted through all images of a batch. Where one begins in the queries (the keys are WIDTH further, the
 * values 2 WIDTH) and in the mixed values; its scores begin at head * SQUARE.
 */
static size_t query_place(size_t head) { return head / HEADS * TOKENS * QKV + head % HEADS * HEAD_DIM; }

static size_t mixed_place(size_t head) { return head / HEADS * TOKENS * WIDTH + head % HEADS * HEAD_DIM; }

static void attention_forward(const struct model *model, struct workspace *work, size_t l, size_t n, int training) {
    struct activations *a = &work->layer[l];
    double epsilon = training ? EVSOFTMAX_EPSILON : 0;
    clear(a->score, n * HEADS * SQUARE);
    clear(a->mixed, n * TOKENS * WIDTH);
    for (size_t head = 0; head < n * HEADS; ++head) {
        const float *query = a->qkv + query_place(head);
        float *keys = work->turned;
        transpose(keys, query + WIDTH, QKV, TOKENS, HEAD_DIM);
        product(a->score + head * SQUARE, TOKENS, rows_of(query, QKV), keys, TOKENS, TOKENS, HEAD_DIM, TOKENS);
    }
    work->seconds_in_function -= seconds();
    apply(a->weight, a->score, model->attention, model->value.net.modulator[l], epsilon, score_shape(n));
    work->seconds_in_function += seconds();
    for (size_t head = 0; head < n * HEADS; ++head) {
        const float *value = a->qkv + query_place(head) + 2 * WIDTH, *weight = a->weight + head * SQUARE;
        product(a->mixed + mixed_place(head), WIDTH, rows_of(weight, TOKENS), value, QKV, TOKENS, TOKENS, HEAD_DIM);
    }
}

/* Cuts n images into patches; outside the image they are blank. */
static void load_images(struct workspace *work, const struct dataset *data, const size_t *index, size_t n) {
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
static void forward(const struct model *model, struct workspace *work, size_t n, int training) {
    const struct network *net = &model->value.net;
    size_t rows = n * TOKENS;
    float *x = work->stream;
    for (size_t i = 0; i < n; ++i) { memcpy(x + i * TOKENS * WIDTH, net->position, sizeof net->position); }
    product(x, WIDTH, rows_of(work->patch, PATCH), net->patch, WIDTH, rows, PATCH, WIDTH);
    for (size_t l = 0; l < LAYERS; ++l) {
        const struct layer *layer = &net->layer[l];
        struct activations *a = &work->layer[l];
        normalise(&a->norm1, x, rows);
        clear(a->qkv, rows * QKV);
        add_linear(a->qkv, a->norm1.y, layer->qkv, rows, WIDTH, QKV);
        attention_forward(model, work, l, n, training);
        add_linear(x, a->mixed, layer->mix, rows, WIDTH, WIDTH);
        normalise(&a->norm2, x, rows);
        clear(a->hidden, rows * HIDDEN);
        add_linear(a->hidden, a->norm2.y, layer->up, rows, WIDTH, HIDDEN);
        for (size_t j = 0; j < rows * HIDDEN; ++j) { a->hidden[j] = a->hidden[j] > 0 ? a->hidden[j] : 0; }
        add_linear(x, a->hidden, layer->down, rows, HIDDEN, WIDTH);
    }
    normalise(&work->norm, x, rows);
    clear(work->pooled, n * WIDTH);
    for (size_t j = 0; j < rows * WIDTH; ++j) {
        work->pooled[j / (TOKENS * WIDTH) * WIDTH + j % WIDTH] += work->norm.y[j] / TOKENS;
    }
    clear(work->logit, n * CLASSES);
    add_linear(work->logit, work->pooled, net->output, n, WIDTH, CLASSES);
}

/* ==== backward ==================================================================================================== */

/* The loss of each row, and the logits turned into their gradient in place. */
static void loss_and_gradient(double *loss, struct model *model, struct workspace *work, double smoothing, size_t n) {
    mmax_multimax_params p = params_of(model->value.net.modulator[OUTPUT]);
    mmax_multimax_grads gp = {{0, 0}, {0, 0}, {0, 0}, {0, 0}};
    mmax_shape s = mmax_rows(n, CLASSES);
    mmax_targets t = mmax_labels(work->label);
    float *x = work->logit;
    t.label_smoothing = smoothing;
    t.grad_scale = 1 / (double)n;
    switch (model->head) {
    case SOFTMAX: check(mmax_softmax_loss_f32(loss, x, x, t, s)); break;
    case MULTIMAX: check(mmax_multimax_loss_f32(loss, x, &gp, x, &p, t, s)); break;
    case EVSOFTMAX: check(mmax_evsoftmax_loss_f32(loss, x, x, EVSOFTMAX_EPSILON, t, s)); break;
    case SPARSEMAX: check(mmax_sparsemax_loss_f32(loss, x, x, t, s)); break;
    default: check(mmax_entmax15_loss_f32(loss, x, x, t, s)); break;
    }
    add_grads(model->gradient.net.modulator[OUTPUT], &gp);
}

/* The gradient of the scores takes the place of that of the weights. */
static void apply_backward(struct model *model, struct workspace *work, size_t l, size_t n) {
    const struct activations *a = &work->layer[l];
    const float *x = a->score, *y = a->weight;
    float *g = work->back_score;
    mmax_multimax_params p = params_of(model->value.net.modulator[l]);
    mmax_multimax_grads gp = {{0, 0}, {0, 0}, {0, 0}, {0, 0}};
    mmax_shape s = score_shape(n);
    work->seconds_in_function -= seconds();
    switch (model->attention) {
    case SOFTMAX: check(mmax_softmax_backward_f32(g, g, y, s)); break;
    case MULTIMAX: check(mmax_multimax_backward_f32(g, &gp, g, y, x, &p, s)); break;
    case EVSOFTMAX: check(mmax_evsoftmax_backward_f32(g, g, y, s)); break;
    case SPARSEMAX: check(mmax_sparsemax_backward_f32(g, g, y, s)); break;
    case ENTMAX15: check(mmax_entmax15_backward_f32(g, g, y, s)); break;
    default: check(mmax_tanhmax_backward_f32(g, g, y, x, s)); break;
    }
    work->seconds_in_function += seconds();
    add_grads(model->gradient.net.modulator[l], &gp);
}

/* Adds to the gradient of matrix and bias, writes that of x. */
static void linear_backward(float *gx, float *g_matrix, const float *gy, const float *x, const float *matrix,
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
static void normalise_backward(float *gx, const float *gy, const struct norm *norm, size_t rows) {
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
static void attention_backward(struct model *model, struct workspace *work, size_t l, size_t n) {
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
static void backward(struct model *model, struct workspace *work, size_t n) {
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
    for (size_t l = LAYERS; l-- > 0;) {
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
static void update(struct model *model, size_t first, size_t last, double rate, double decay, double clip) {
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
static double learning_rate(size_t step, size_t steps) {
    double up = (double)step / WARMUP_STEPS, down = (double)(steps + 1 - step) / (double)steps;
    return LEARNING_RATE * (up < down ? up : down);
}

/* One step of `steps` on the n images loaded; returns the sum of their losses. */
static double train_step(struct model *model, struct workspace *work, size_t n, double smoothing, size_t steps) {
    double loss[BATCH], sum = 0;
    memset(&model->gradient, 0, sizeof model->gradient);
    forward(model, work, n, 1);
    loss_and_gradient(loss, model, work, smoothing, n);
    backward(model, work, n);
    ++model->steps;
    double rate = learning_rate(model->steps, steps);
    update(model, 0, NETWORK_WEIGHTS, rate, WEIGHT_DECAY, CLIP_NETWORK);
    update(model, NETWORK_WEIGHTS, ALL_WEIGHTS, rate, 0, CLIP_MODULATORS);
    for (size_t i = 0; i < n; ++i) { sum += loss[i]; }
    return sum;
}

/* ==== evaluation ================================================================================================== */

enum { ACCURACY, SPARSITY, MULTIMODALITY, ZEROS, SUPPORT, LOST, MEASURES };

struct result { /* a row of a table: all seeds of one attention function and one output layer */
    int attention, head;
    double measure[MEASURES][MAX_SEEDS];
    double curve_loss[MAX_EPOCHS], curve_error[MAX_EPOCHS]; /* means over the seeds, after each epoch */
    double step_seconds, function_seconds;                  /* means over the steps */
    float modulator[MAX_SEEDS][MODULATORS][SCALARS];
    float low[LAYERS], high[LAYERS];   /* of the scaled test scores */
    float map[CLASSES][HEADS][TOKENS]; /* attention of the marked patch, first seed, last layer */
};

struct options {
    const char *data_path, *svg_directory;
    int function, head; /* FUNCTIONS: all; NONE: none */
    int seeds, epochs;
    double smoothing;
};

struct trainer {
    struct options options;
    struct dataset data;
    struct model model;
    struct workspace work;
    unsigned long epochs_done, epochs; /* of all runs, for the progress line */
    time_t begun, drawn;
    int on_terminal;
};

struct mean {
    double sum, count;
};

/* NaN comes from a row that has nothing to measure. */
static void mean_add(struct mean *mean, const double *value, size_t n) {
    for (size_t i = 0; i < n; ++i) {
        mean->sum += value[i] == value[i] ? value[i] : 0;
        mean->count += value[i] == value[i];
    }
}

static double mean_value(struct mean mean) { return mean.count > 0 ? mean.sum / mean.count : 0; }

/* The metrics of all rows of one layer. Scores are centred first: epsilon = 0 stands for the mean of the row. */
static void measure_attention(struct mean measure[MEASURES], struct workspace *work, size_t l, size_t n) {
    const float *x = work->layer[l].score, *y = work->layer[l].weight;
    float *centred = work->centred, *size = work->back_score;
    mmax_shape s = score_shape(n);
    for (size_t r = 0; r < s.rows; ++r) {
        float mean = 0;
        double zeros = 0;
        for (size_t j = r * TOKENS; j < (r + 1) * TOKENS; ++j) {
            mean += x[j] / TOKENS;
            zeros += y[j] == 0 ? 1.0 / TOKENS : 0;
            size[j] = fabsf(y[j]); /* tanhmax has weights below 0 */
        }
        for (size_t j = r * TOKENS; j < (r + 1) * TOKENS; ++j) { centred[j] = x[j] - mean; }
        mean_add(&measure[ZEROS], &zeros, 1);
    }
    check(mmax_sparsity_f32(work->metric, size, centred, 0, METRIC_REFERENCE, s));
    mean_add(&measure[SPARSITY], work->metric, s.rows);
    check(mmax_multimodality_f32(work->metric, y, centred, 0, s));
    mean_add(&measure[MULTIMODALITY], work->metric, s.rows);
}

static void measure_output(struct mean measure[MEASURES], const struct model *model, const struct workspace *work,
                           size_t n) {
    float y[BATCH * CLASSES];
    apply(y, work->logit, model->head, model->value.net.modulator[OUTPUT], 0, mmax_rows(n, CLASSES));
    for (size_t i = 0; i < n; ++i) {
        const float *row = y + i * CLASSES;
        double lost = row[work->label[i]] == 0, support = 0;
        int best = 0;
        for (int c = 0; c < CLASSES; ++c) {
            best = row[c] > row[best] ? c : best;
            support += row[c] > 0;
        }
        double right = best == work->label[i];
        mean_add(&measure[ACCURACY], &right, 1);
        mean_add(&measure[SUPPORT], &support, 1);
        mean_add(&measure[LOST], &lost, 1);
    }
}

/* Adds up the measures over the test images: of the output, and for a result those of the attention too. */
static void evaluate(struct trainer *t, struct mean measure[MEASURES], struct result *result) {
    memset(measure, 0, MEASURES * sizeof *measure);
    for (size_t i = t->data.train_count; i < t->data.count; i += BATCH) {
        size_t n = t->data.count - i < BATCH ? t->data.count - i : BATCH;
        load_images(&t->work, &t->data, t->data.order + i, n);
        forward(&t->model, &t->work, n, 0);
        measure_output(measure, &t->model, &t->work, n);
        for (size_t l = 0; l < LAYERS && result != NULL; ++l) {
            mmax_shape s = score_shape(n);
            measure_attention(measure, &t->work, l, n);
            for (size_t j = 0; j < s.rows * s.cols; ++j) {
                float x = (float)s.scale * t->work.layer[l].score[j];
                result->low[l] = x < result->low[l] ? x : result->low[l];
                result->high[l] = x > result->high[l] ? x : result->high[l];
            }
        }
    }
}

/* The first test image of a class. */
static size_t example_of(const struct dataset *data, int32_t class) {
    size_t i = data->train_count;
    while (i + 1 < data->count && data->image[data->order[i]].label != class) { ++i; }
    return data->order[i];
}

/* The patch with the most ink in its middle 2x2 pixels. */
static size_t marked_patch(const struct image *image) {
    float ink[TOKENS] = {0};
    size_t best = 0;
    for (size_t r = 0; r < IMAGE; ++r) {
        for (size_t c = 0; c < IMAGE; ++c) { ink[r / STEP * GRID + c / STEP] += image->pixel[r][c]; }
    }
    for (size_t t = 1; t < TOKENS; ++t) { best = ink[t] > ink[best] ? t : best; }
    return best;
}

static void keep_maps(struct trainer *t, struct result *result) {
    for (int32_t class = 0; class < CLASSES; ++class) {
        size_t index = example_of(&t->data, class), query = marked_patch(&t->data.image[index]);
        load_images(&t->work, &t->data, &index, 1);
        forward(&t->model, &t->work, 1, 0);
        for (size_t h = 0; h < HEADS; ++h) {
            const float *row = t->work.layer[LAYERS - 1].weight + (h * TOKENS + query) * TOKENS;
            memcpy(result->map[class][h], row, sizeof result->map[class][h]);
        }
    }
}

/* ==== training ==================================================================================================== */

/* One line on a terminal, drawn anew at most once a second; nothing in a pipe. */
static void progress(struct trainer *t, const struct result *result, int seed, int epoch, double loss,
                     double accuracy) {
    time_t now = time(NULL);
    double elapsed = difftime(now, t->begun), left = (double)(t->epochs - t->epochs_done) / (double)t->epochs_done;
    char line[160];
    if (t->on_terminal && now != t->drawn) {
        t->drawn = now;
        snprintf(line, sizeof line, "%s, head %s, seed %d/%d, epoch %2d: loss %.3f, test %.1f %%; %.0f s left",
                 function_name[result->attention], function_name[result->head], seed, t->options.seeds, epoch, loss,
                 100 * accuracy, elapsed * left);
        fprintf(stderr, "\r%-79.79s", line);
    }
}

static void train_seed(struct trainer *t, struct result *result, int seed) {
    size_t count = t->data.train_count, *order = allocate(count, sizeof *order);
    size_t epochs = (size_t)t->options.epochs, steps = (count + BATCH - 1) / BATCH * epochs;
    uint64_t state = (uint64_t)seed;
    double share = 1.0 / t->options.seeds;
    struct mean measure[MEASURES];
    memcpy(order, t->data.order, count * sizeof *order);
    model_start(&t->model, result->attention, result->head, &state);
    for (size_t epoch = 0; epoch < epochs; ++epoch) {
        double loss = 0, begin = seconds();
        t->work.seconds_in_function = 0;
        shuffle(order, count, &state);
        for (size_t i = 0; i < count; i += BATCH) {
            size_t n = count - i < BATCH ? count - i : BATCH;
            load_images(&t->work, &t->data, order + i, n);
            loss += train_step(&t->model, &t->work, n, t->options.smoothing, steps) / (double)count;
        }
        result->step_seconds += share * (seconds() - begin) / (double)steps;
        result->function_seconds += share * t->work.seconds_in_function / (double)steps;
        evaluate(t, measure, epoch + 1 == epochs ? result : NULL);
        result->curve_loss[epoch] += share * loss;
        result->curve_error[epoch] += share * (1 - mean_value(measure[ACCURACY]));
        ++t->epochs_done;
        progress(t, result, seed, (int)epoch + 1, loss, mean_value(measure[ACCURACY]));
    }
    for (size_t m = 0; m < MEASURES; ++m) { result->measure[m][seed - 1] = mean_value(measure[m]); }
    memcpy(result->modulator[seed - 1], t->model.value.net.modulator, sizeof result->modulator[0]);
    if (seed == 1) { keep_maps(t, result); }
    free(order);
}

static void train(struct trainer *t, struct result *result, int attention, int head) {
    memset(result, 0, sizeof *result);
    result->attention = attention;
    result->head = head;
    for (int seed = 1; seed <= t->options.seeds; ++seed) { train_seed(t, result, seed); }
    if (t->on_terminal) { fprintf(stderr, "\r%-79s\r", ""); }
}

/* ==== printing ==================================================================================================== */

static double seed_mean(const struct result *result, int measure, int seeds) {
    double sum = 0;
    for (int i = 0; i < seeds; ++i) { sum += result->measure[measure][i]; }
    return sum / seeds;
}

/* Name, mean and standard deviation of the test accuracy; no deviation for a single seed. */
static void print_accuracy(const char *name, const struct result *result, int seeds) {
    double mean = seed_mean(result, ACCURACY, seeds), square = 0;
    for (int i = 0; i < seeds; ++i) {
        square += (result->measure[ACCURACY][i] - mean) * (result->measure[ACCURACY][i] - mean);
    }
    printf("%-10s %7.2f %% ", name, 100 * mean);
    if (seeds > 1) {
        printf("%6.2f %%", 100 * sqrt(square / (seeds - 1)));
    } else {
        printf("%8s", "-");
    }
}

static void print_attention_row(const struct result *result, int seeds) {
    print_accuracy(function_name[result->attention], result, seeds);
    printf("%10.3f%16.3f%9.1f %%%11.2f ms%11.3f ms\n", seed_mean(result, SPARSITY, seeds),
           seed_mean(result, MULTIMODALITY, seeds), 100 * seed_mean(result, ZEROS, seeds), 1e3 * result->step_seconds,
           1e3 * result->function_seconds);
    fflush(stdout);
}

static void print_head_row(const struct result *result, const struct options *options) {
    int seeds = options->seeds;
    print_accuracy(function_name[result->head], result, seeds);
    printf("%12.4f%15.2f%13.2f %%\n", result->curve_loss[options->epochs - 1], seed_mean(result, SUPPORT, seeds),
           100 * seed_mean(result, LOST, seeds));
    fflush(stdout);
}

/* The learned parameters of the sets first to last - 1. */
static void print_parameters(const struct result *result, size_t first, size_t last, int seeds) {
    printf("seed  layer     t_b1    t_b2    t_d1    t_d2      b1      b2      d1      d2\n");
    for (int seed = 0; seed < seeds; ++seed) {
        for (size_t l = first; l < last; ++l) {
            printf("%4d  %5lu ", seed + 1, (unsigned long)l + 1);
            for (size_t i = 0; i < SCALARS; ++i) { printf("  %6.3f", (double)result->modulator[seed][l][i]); }
            printf("\n");
        }
    }
}

enum { PLOT_ROWS = 17, PLOT_COLUMNS = 36 };

/* sigma (o) against the identity (.), both axes over the range of the scores; what lies outside is not drawn. */
static void plot_modulator(char plot[PLOT_ROWS][PLOT_COLUMNS + 1], const float scalar[SCALARS], float low, float high) {
    mmax_multimax_params p = params_of(scalar);
    float line[2][PLOT_COLUMNS + 1], *x = line[0], *y = line[1], step = (high - low) / PLOT_ROWS;
    for (int c = 0; c <= PLOT_COLUMNS; ++c) { x[c] = low + (high - low) * (float)c / PLOT_COLUMNS; }
    check(mmax_seglu_f32(y, x, &p, mmax_row(PLOT_COLUMNS + 1)));
    memset(plot, 0, PLOT_ROWS * sizeof *plot);
    for (int r = 0; r < PLOT_ROWS; ++r) {
        float centre = high - step * ((float)r + 0.5f);
        memset(plot[r], ' ', PLOT_COLUMNS);
        for (int i = 0; i < 2; ++i) {
            for (int c = 0; c < PLOT_COLUMNS; ++c) {
                float from = line[i][c] - centre, to = line[i][c + 1] - centre;
                if (fabsf(from + to) <= step || (from <= 0) != (to <= 0)) { /* near the row, or across it */
                    plot[r][c] = ".o"[i];
                }
            }
        }
    }
}

static void print_modulators(const struct result *result) {
    char plot[LAYERS][PLOT_ROWS][PLOT_COLUMNS + 1], title[64];
    for (size_t l = 0; l < LAYERS; ++l) {
        double low = (double)result->low[l], high = (double)result->high[l];
        plot_modulator(plot[l], result->modulator[0][l], result->low[l], result->high[l]);
        snprintf(title, sizeof title, "layer %lu, from %.1f to %.1f", (unsigned long)l + 1, low, high);
        printf("%s   %-*s", l == 0 ? "" : "  ", l + 1 < LAYERS ? PLOT_COLUMNS : 0, title);
    }
    for (size_t r = 0; r < PLOT_ROWS; ++r) {
        for (size_t l = 0; l < LAYERS; ++l) { printf("%s  |%s", l == 0 ? "\n" : "  ", plot[l][r]); }
    }
    printf("\n");
}

/* ==== SVG ========================================================================================================= */

/* Told apart by colour-blind readers (lines by their dashes too); middle tones, visible on white and on black. */
#define INK    "#7a7a7a"
#define BLUE   "#1f83d0"
#define ORANGE "#d55e00"
static const char *const colour[FUNCTIONS] = {INK, BLUE, "#079a72", ORANGE, "#c08400", "#c066a0"};
static const char *const dashes[FUNCTIONS] = {"none", "none", "7 3", "2 2", "9 3 2 3", "5 2"};

static void svg_begin(FILE *svg, double width, double height, const char *title) {
    fprintf(svg, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" ",
            width, height, width, height);
    fprintf(svg, "role=\"img\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\" fill=\"" INK "\">\n");
    fprintf(svg, "<title>%s</title>\n", title);
}

static void svg_text(FILE *svg, double x, double y, const char *anchor, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(svg, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    vfprintf(svg, format, arguments);
    fprintf(svg, "</text>\n");
    va_end(arguments);
}

static void svg_square(FILE *svg, double x, double y, double side, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(svg, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" ", x, y, side, side);
    vfprintf(svg, format, arguments);
    fprintf(svg, "/>\n");
    va_end(arguments);
}

/* 4 x 4 fields, in each a square whose area is the weight. */
static void svg_map(FILE *svg, double x, double y, double field, const float map[TOKENS]) {
    svg_square(svg, x, y, field * GRID, "fill=\"none\" stroke=\"" INK "\" stroke-opacity=\"0.5\" stroke-width=\"0.7\"");
    for (int t = 0; t < TOKENS; ++t) {
        double side = field * sqrt(fabs((double)map[t])), inset = (field - side) / 2;
        if (side > 0.05) {
            svg_square(svg, x + field * (t % GRID) + inset, y + field * (t / GRID) + inset, side, "fill=\"%s\"",
                       map[t] > 0 ? BLUE : ORANGE);
        }
    }
}

static void svg_image(FILE *svg, double x, double y, double pixel, const struct image *image) {
    size_t marked = marked_patch(image);
    double field = pixel * STEP;
    for (int r = 0; r < IMAGE; ++r) {
        for (int c = 0; c < IMAGE; ++c) {
            double ink = ((double)image->pixel[r][c] + 1) / 2;
            if (ink > 0) { svg_square(svg, x + pixel * c, y + pixel * r, pixel, "fill-opacity=\"%.3f\"", ink); }
        }
    }
    svg_square(svg, x + field * (double)(marked % GRID), y + field * (double)(marked / GRID), field,
               "fill=\"none\" stroke=\"" ORANGE "\" stroke-width=\"2\"");
}

/* A column for each digit: the image, and for each function the maps of the four heads. */
static void svg_attention(FILE *svg, const struct result *result, int count, const struct dataset *data) {
    const double left = 90, top = 34, field = 8.5, map = field * GRID, gap = 4, cell = 2 * map + gap + 14;
    const double below = top + cell * (count + 1);
    svg_begin(svg, left + cell * CLASSES, below + 40, "Attention maps on test images");
    svg_text(svg, left, 18, "start", "Attention of the marked patch: the four heads of layer %d, seed 1", LAYERS);
    svg_text(svg, left - 12, top + cell / 2, "end", "test image");
    for (int row = 0; row < count; ++row) {
        svg_text(svg, left - 12, top + cell * (row + 1.5), "end", "%s", function_name[result[row].attention]);
    }
    for (int class = 0; class < CLASSES; ++class) {
        double x = left + cell * class;
        svg_image(svg, x, top, (2 * map + gap) / IMAGE, &data->image[example_of(data, class)]);
        for (int i = 0; i < count * HEADS; ++i) {
            int row = i / HEADS, h = i % HEADS;
            double y = top + cell * (row + 1) + h / 2 * (map + gap);
            svg_map(svg, x + h % 2 * (map + gap), y, field, result[row].map[class][h]);
        }
    }
    svg_text(svg, left, below + 12, "start", "The area of a square is the weight: a full field is 1, an empty one 0.");
    svg_text(svg, left, below + 30, "start", "Blue: weights above 0; orange: below 0, which only tanhmax has.");
    fprintf(svg, "</svg>\n");
}

struct axis { /* a panel with a logarithmic axis from 10^low to 10^high */
    double left, top, width, height, low, high;
    int epochs;
};

static double axis_y(const struct axis *axis, double value) {
    double share = (log10(fmax(value, 1e-9)) - axis->low) / (axis->high - axis->low);
    return axis->top + axis->height * (1 - fmin(fmax(share, 0), 1));
}

static void svg_axis(FILE *svg, const struct axis *axis, const char *title) {
    double right = axis->left + axis->width, below = axis->top + axis->height + 18;
    svg_text(svg, axis->left, axis->top - 12, "start", "%s", title);
    for (int power = -9; power < 9; ++power) {
        for (int digit = 1; digit < 10; digit = digit == 2 ? 5 : 2 * digit) {
            double value = digit * pow(10, power), y = axis_y(axis, value), x = axis->left;
            if (log10(value) > axis->low - 1e-6 && log10(value) < axis->high + 1e-6) {
                fprintf(svg, "<path d=\"M%.1f %.1fH%.1f\" stroke=\"" INK "\" opacity=\"0.35\"/>\n", x, y, right);
                svg_text(svg, x - 6, y + 4, "end", "%g", value);
            }
        }
    }
    svg_text(svg, axis->left, below, "middle", "1");
    svg_text(svg, (axis->left + right) / 2, below, "middle", "epoch");
    svg_text(svg, right, below, "middle", "%d", axis->epochs);
}

static void svg_curve(FILE *svg, const struct axis *axis, const double *value, int kind) {
    fprintf(svg, "<path fill=\"none\" stroke-width=\"2\" stroke=\"%s\" stroke-dasharray=\"%s\" d=\"", colour[kind],
            dashes[kind]);
    for (int e = 0; e < axis->epochs; ++e) {
        double x = axis->left + axis->width * e / (axis->epochs > 1 ? axis->epochs - 1 : 1);
        fprintf(svg, "%c%.1f %.1f", e == 0 ? 'M' : 'L', x, axis_y(axis, value[e]));
    }
    fprintf(svg, "\"/>\n");
}

/* Training loss and test error, means over the seeds; a curve for each attention function, or for each output layer. */
static void svg_training(FILE *svg, const struct result *result, int count, int by_head, int epochs) {
    double lowest = 1e9, highest = 1e-3, least_error = 1;
    for (int i = 0; i < count; ++i) {
        for (int e = 0; e < epochs; ++e) {
            lowest = fmin(lowest, fmax(result[i].curve_loss[e], 1e-4));
            highest = fmax(highest, result[i].curve_loss[e]);
            least_error = fmin(least_error, fmax(result[i].curve_error[e], 0.005));
        }
    }
    struct axis loss = {56, 40, 300, 240, log10(lowest) - 0.05, log10(highest) + 0.05, epochs};
    struct axis error = {420, 40, 300, 240, log10(least_error) - 0.1, 0, epochs};
    svg_begin(svg, 860, 310, by_head ? "Training by output layer" : "Training by attention function");
    svg_axis(svg, &loss, by_head ? "training loss (of each its own kind)" : "training loss");
    svg_axis(svg, &error, "share of test images misread");
    for (int i = 0; i < count; ++i) {
        int kind = by_head ? result[i].head : result[i].attention;
        struct axis key = {742, error.top + 12 + 24 * i, 28, 0, 0, 1, 2};
        const double flat[2] = {1, 1};
        svg_curve(svg, &loss, result[i].curve_loss, kind);
        svg_curve(svg, &error, result[i].curve_error, kind);
        svg_curve(svg, &key, flat, kind);
        svg_text(svg, key.left + 34, key.top + 4, "start", "%s", function_name[kind]);
    }
    fprintf(svg, "</svg>\n");
}

/* Under another name until it is whole. */
struct svg_file {
    FILE *file;
    char *path, *part;
};

static char *svg_path(const char *directory, const char *name, const char *suffix) {
    size_t room = strlen(directory) + strlen(name) + strlen(suffix) + 2;
    char *path = allocate(room, 1);
    snprintf(path, room, "%s/%s%s", directory, name, suffix);
    return path;
}

static struct svg_file svg_open(const char *directory, const char *name) {
    struct svg_file svg = {NULL, svg_path(directory, name, ""), svg_path(directory, name, ".part")};
    svg.file = fopen(svg.part, "wb");
    if (svg.file == NULL) { fail("cannot write '%s': %s", svg.path, strerror(errno)); }
    return svg;
}

/* Puts the file in its place, or with keep = 0 drops it. */
static void svg_close(struct svg_file *svg, int keep) {
    int failed = ferror(svg->file);
    failed = fclose(svg->file) != 0 || failed;
#if defined(_WIN32)
    if (keep && !failed) { remove(svg->path); /* rename does not replace a file there */ }
#endif
    if (keep && (failed || rename(svg->part, svg->path) != 0)) {
        int reason = errno;
        remove(svg->part);
        fail("cannot write '%s': %s", svg->path, strerror(reason));
    }
    if (!keep) { remove(svg->part); }
    free(svg->path);
    free(svg->part);
}

static void write_svgs(const char *directory, const struct result *result, int functions,
                       const struct result *head_result, int heads, const struct dataset *data, int epochs) {
    if (functions > 0) {
        struct svg_file attention = svg_open(directory, "attention.svg");
        svg_attention(attention.file, result, functions, data);
        svg_close(&attention, 1);
        struct svg_file training = svg_open(directory, "training.svg");
        svg_training(training.file, result, functions, 0, epochs);
        svg_close(&training, 1);
    }
    if (heads > 0) {
        struct svg_file svg = svg_open(directory, "heads.svg");
        svg_training(svg.file, head_result, heads, 1, epochs);
        svg_close(&svg, 1);
    }
}

/* ==== main ======================================================================================================== */

static const char usage[] =
    "usage: train_digits [options]\n"
    "\n"
    "Trains a two-layer transformer on 1,437 images of digits and tests it on 360 others, first with each attention\n"
    "function (output layer: softmax), then with each output layer (attention: softmax).\n"
    "\n"
    "  --function NAME  softmax, multimax (order 2), evsoftmax, sparsemax, entmax15, tanhmax, all (default) or none\n"
    "  --head NAME      output layer: softmax, multimax, evsoftmax, sparsemax, entmax15, all (default) or none\n"
    "  --seeds N        train with seeds 1 to N and give means (3)\n"
    "  --epochs N       passes over the training images (7; with 25, half a point more of accuracy)\n"
    "  --smoothing A    label smoothing, 0 to 0.99 (0.1)\n"
    "  --data FILE      the images (examples/data/digits.csv)\n"
    "  --svg DIR        write attention.svg, training.svg and heads.svg to DIR\n"
    "  --quick          the same as --seeds 1 --epochs 5\n"
    "  --help           this text\n"
    "\n"
    "evsoftmax is trained with epsilon 1e-6 and tested with epsilon 0. Sparsity and multi-modality are the metrics of\n"
    "the MultiMax paper, means over all rows of attention weights of the test images, with the row's mean score as\n"
    "epsilon and 0.01 as the reference of sparsity; weights of tanhmax enter sparsity by their size. Times are\n"
    "processor time: of a training step, and the attention function's share of it, forward and backward. All other\n"
    "results are the same in every run. Exit status 0, or 2 for a wrong option or file.\n";

static int kind_value(const char *option, const char *text, int kinds) {
    for (int kind = 0; kind < kinds; ++kind) {
        if (strcmp(text, function_name[kind]) == 0) { return kind; }
    }
    if (strcmp(text, "all") != 0 && strcmp(text, "none") != 0) {
        fail("%s does not know '%s'; see --help", option, text);
    }
    return text[0] == 'a' ? FUNCTIONS : NONE;
}

static double number_value(const char *option, const char *text, double least, double most) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= least && value <= most) || (least > 0 && value != floor(value))) {
        fail("%s takes %s from %g to %g, not '%s'", option, least > 0 ? "an integer" : "a number", least, most, text);
    }
    return value;
}

static void read_options(struct options *o, int argc, char **argv) {
    static const char *const valued[] = {"--function",  "--head", "--seeds", "--epochs",
                                         "--smoothing", "--data", "--svg"};
    enum { VALUED = sizeof valued / sizeof *valued };
    for (int i = 1; i < argc; ++i) {
        const char *option = argv[i];
        int which = 0;
        while (which < VALUED && strcmp(option, valued[which]) != 0) { ++which; }
        if (strcmp(option, "--help") == 0) {
            fputs(usage, stdout);
            exit(0);
        } else if (strcmp(option, "--quick") == 0) {
            o->seeds = 1;
            o->epochs = 5;
            continue;
        } else if (which == VALUED) {
            fail("there is no option '%s'; see --help", option);
        } else if (++i == argc) {
            fail("%s needs a value; see --help", option);
        }
        switch (which) {
        case 0: o->function = kind_value(option, argv[i], FUNCTIONS); break;
        case 1: o->head = kind_value(option, argv[i], HEAD_KINDS); break;
        case 2: o->seeds = (int)number_value(option, argv[i], 1, MAX_SEEDS); break;
        case 3: o->epochs = (int)number_value(option, argv[i], 1, MAX_EPOCHS); break;
        case 4: o->smoothing = number_value(option, argv[i], 0, 0.99); break;
        case 5: o->data_path = argv[i]; break;
        default: o->svg_directory = argv[i]; break;
        }
    }
}

static int wanted(int asked, int kind) { return asked == FUNCTIONS || asked == kind; }

/* The first table and all that belongs to it. */
static void attention_table(struct trainer *t, struct result *result) {
    int count = 0, seeds = t->options.seeds;
    printf("\nattention     test accuracy                         weights      processor time per step\n"
           "function      mean      std   sparsity  multi-modality   that are 0       all    the function\n");
    for (int f = 0; f < FUNCTIONS; ++f) {
        if (wanted(t->options.function, f)) {
            train(t, &result[count], f, SOFTMAX);
            print_attention_row(&result[count++], seeds);
        }
    }
    if (wanted(t->options.function, MULTIMAX)) {
        const struct result *learned = &result[count == 1 ? 0 : MULTIMAX];
        printf("\nMultiMax parameters, learned from the identity (t = 1, b = d = 0)\n");
        print_parameters(learned, 0, LAYERS, seeds);
        printf("\nThe modulator sigma (o) and the identity (.), seed 1, over the range of the scaled test scores\n");
        print_modulators(learned);
    }
}

/* The second table; `known` is the result with the softmax output layer if it is trained already, or NULL. */
static void head_table(struct trainer *t, struct result *result, const struct result *known) {
    int count = 0;
    printf("\noutput        test accuracy        training   classes with   images whose\n"
           "layer         mean      std           loss     weight > 0    class has 0\n");
    for (int h = 0; h < HEAD_KINDS; ++h) {
        if (wanted(t->options.head, h)) {
            if (h == SOFTMAX && known != NULL) {
                result[count] = *known;
            } else {
                train(t, &result[count], SOFTMAX, h);
            }
            print_head_row(&result[count++], &t->options);
        }
    }
    if (wanted(t->options.head, MULTIMAX)) {
        printf("\nMultiMax parameters of the output layer (layer %d)\n", OUTPUT + 1);
        print_parameters(&result[count == 1 ? 0 : MULTIMAX], OUTPUT, MODULATORS, t->options.seeds);
    }
}

int main(int argc, char **argv) {
    struct trainer *t = allocate(1, sizeof *t);
    struct options *o = &t->options;
    struct result *result = allocate(FUNCTIONS + HEAD_KINDS, sizeof *result), *head_result = result + FUNCTIONS;
    struct options defaults = {"examples/data/digits.csv", NULL, FUNCTIONS, FUNCTIONS, 3, 7, 0.1};
    t->options = defaults;
    read_options(o, argc, argv);
    t->data = read_dataset(o->data_path);
    if (o->svg_directory != NULL) { /* a wrong directory shows before the training */
        struct svg_file trial = svg_open(o->svg_directory, "training.svg");
        svg_close(&trial, 0);
    }
    int functions = o->function == FUNCTIONS ? FUNCTIONS : o->function != NONE;
    int heads = o->head == FUNCTIONS ? HEAD_KINDS : o->head != NONE;
    const struct result *known = wanted(o->function, SOFTMAX) ? result : NULL;
    int runs = functions + heads - (known != NULL && wanted(o->head, SOFTMAX));
    t->epochs = (unsigned long)runs * (unsigned long)o->seeds * (unsigned long)o->epochs;
    t->begun = t->drawn = time(NULL);
    t->on_terminal = STDERR_IS_TERMINAL();
    printf("%lu images to train, %lu to test; %d seed(s), %d epoch(s), label smoothing %g, %s\n",
           (unsigned long)t->data.train_count, (unsigned long)(t->data.count - t->data.train_count), o->seeds,
           o->epochs, o->smoothing, mmax_isa_name(mmax_isa_active()));
    if (functions > 0) { attention_table(t, result); }
    if (heads > 0) { head_table(t, head_result, known); }
    if (o->svg_directory != NULL) {
        write_svgs(o->svg_directory, result, functions, head_result, heads, &t->data, o->epochs);
    }
    if (fflush(stdout) != 0 || ferror(stdout)) { fail("cannot write the tables: %s", strerror(errno)); }
    free(t->data.order);
    free(t->data.image);
    free(result);
    free(t);
    return 0;
}
