/*
 * digits.h: a small vision transformer, and images of hand-written digits to train it. Its attention uses any of the
 * functions of multimax.h, forward and backward. Its output layer uses any of five fused losses.
 *
 * The tokens of an 8x8 image are 16 patches of 4x4 pixels that overlap by half. They go through the layers of
 * transformer.h. A linear output layer reads the mean over the tokens.
 *
 * In order: data, forward, backward, training, measures of tokens and weights, explanations by weights.
 */
#ifndef EXAMPLES_DIGITS_H
#define EXAMPLES_DIGITS_H

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
    HIDDEN = 64,
    MAX_LAYERS = 8,
    BATCH = 32,
    INPUTS = PATCH,
    CAUSAL = 0
};

/* The same hyper-parameters for every function. */
#define LEARNING_RATE   6e-3
#define WARMUP_STEPS    50
#define WEIGHT_DECAY    1.0
#define CLIP_NETWORK    1.0
#define CLIP_MODULATORS 0.1
#define INPUT_BOUND     sqrt(3.0 / PATCH) /* of the first weights of the patches: variance 1/inputs */

#include "transformer.h"

static const struct line_style *const function_line[] = {&softmax_line,   &multimax_line, &evsoftmax_line,
                                                         &sparsemax_line, &entmax15_line, &tanhmax_line};

/* A number between 0 and 1, without the ends */
static inline double random_share(uint64_t *state) {
    return ((double)(random_bits(state) >> 12) + 0.5) / 4503599627370496.0;
} /* 2^52 */

/* A number from Beta(a, a), 0 < a <= 1, by Joehnk's method (Metrika 8, 1964). At least half of the trials succeed. */
static inline double random_beta(double a, uint64_t *state) {
    double x, y;
    do {
        x = pow(random_share(state), 1 / a);
        y = pow(random_share(state), 1 / a);
    } while (x + y > 1 || x + y == 0);
    return x / (x + y);
}

/* ==== data ======================================================================================================== */

struct image {
    float pixel[IMAGE][IMAGE]; /* -1 to 1 */
    int32_t label;
};

struct dataset {
    struct image *image;
    size_t count, train_count;
    size_t *order; /* the first train_count images are for training, the others for the test */
};

/* Reads a cell and returns the comma or line end after it. Drops blanks. Shortens a long cell, which stays too long. */
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

/* ==== forward ===================================================================================================== */

struct workspace {
    struct stack stack;
    float patch[ROWS * PATCH];
    float pooled[BATCH * WIDTH], logit[BATCH * CLASSES];
    int32_t label[BATCH];
    float target[BATCH * CLASSES]; /* target distributions of mixed images, instead of labels */
    int is_mixed;
    float centred[SCORES];
    double metric[BATCH * HEADS * TOKENS];
};

/* The logits, from the tokens after the last layer. */
static inline void forward_output(const struct model *model, struct workspace *work, size_t n) {
    clear(work->pooled, n * WIDTH);
    for (size_t j = 0; j < n * TOKENS * WIDTH; ++j) {
        work->pooled[j / (TOKENS * WIDTH) * WIDTH + j % WIDTH] += work->stack.norm.y[j] / TOKENS;
    }
    clear(work->logit, n * CLASSES);
    add_linear(work->logit, work->pooled, model->value.net.output, n, WIDTH, CLASSES);
}

/* Cuts n images into patches. Pixels outside the image are blank. */
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

/* The logits of the n loaded images, and everything that backward() needs. */
static inline void forward(const struct model *model, struct workspace *work, size_t n, int training) {
    const struct network *net = &model->value.net;
    float *x = work->stack.tokens[0];
    for (size_t i = 0; i < n; ++i) { memcpy(x + i * TOKENS * WIDTH, net->position, sizeof net->position); }
    product(x, WIDTH, rows_of(work->patch, PATCH), net->input, WIDTH, n * TOKENS, PATCH, WIDTH);
    forward_layers(model, &work->stack, n, training);
    forward_output(model, work, n);
}

/* Mixup (Zhang et al., ICLR 2018): image i becomes share * image i + (1 - share) * image n-1-i; targets alike. */
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

/* The loss of each row. Turns the logits into their gradient, in place. */
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

/* The gradient of all weights, from the gradient of the logits, which stands in work->logit. */
static inline void backward(struct model *model, struct workspace *work, size_t n) {
    const struct network *net = &model->value.net;
    struct network *grad = &model->gradient.net;
    size_t rows = n * TOKENS;
    float *g = work->stack.stream, *back = work->stack.back, *back_norm = work->stack.back_norm;
    linear_backward(back, grad->output, work->logit, work->pooled, net->output, work->stack.turned, n, WIDTH, CLASSES);
    for (size_t j = 0; j < rows * WIDTH; ++j) {
        back_norm[j] = back[j / (TOKENS * WIDTH) * WIDTH + j % WIDTH] / TOKENS;
    }
    backward_layers(model, &work->stack, n);
    product(grad->input, WIDTH, columns_of(work->patch, PATCH), g, WIDTH, PATCH, rows, WIDTH);
    for (size_t j = 0; j < rows * WIDTH; ++j) { grad->position[j % (TOKENS * WIDTH)] += g[j]; }
}

/* One step of `steps`, on the n loaded images; returns the sum of their losses. */
static inline double train_step(struct model *model, struct workspace *work, size_t n, double smoothing, size_t steps) {
    double loss[BATCH], sum = 0;
    clear_gradient(model);
    forward(model, work, n, 1);
    loss_and_gradient(loss, model, work, smoothing, n);
    backward(model, work, n);
    ++model->steps;
    const double decayed[2] = {pow(0.9, (double)model->steps), pow(0.99, (double)model->steps)};
    optimise(model, decayed, steps);
    for (size_t i = 0; i < n; ++i) { sum += loss[i]; }
    return sum;
}

/* ==== training ==================================================================================================== */

struct trainer {
    struct dataset data;
    struct model model;
    struct workspace work;
    double smoothing, mixup; /* mixup: the parameter of its Beta distribution, or 0 */
    int explains;            /* whether attention weights are tested as explanations, too */
    int epochs, epoch;
    size_t *order; /* order of the training images */
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

/* Runs the next test images, from i on. Returns their number, 0 at the end. */
static inline size_t forward_test_images(struct trainer *t, size_t i) {
    size_t left = t->data.count - t->data.train_count, n = i < left ? left - i : 0;
    n = n < BATCH ? n : BATCH;
    if (n > 0) {
        load_images(&t->work, &t->data, t->data.order + t->data.train_count + i, n);
        forward(&t->model, &t->work, n, 0);
    }
    return n;
}

static inline void progress(struct trainer *t, const char *name, int seed, double loss) {
    char line[160];
    snprintf(line, sizeof line, "%s, seed %d, epoch %2d of %d: loss %.3f", name, seed, t->epoch, t->epochs, loss);
    progress_line(line, t->begun, &t->drawn, t->layers_done / t->layers);
}

/* ==== measures of tokens and of attention weights ================================================================= */

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

/* Rank collapse (Dong et al. 2021): |X - mean token| / |X|, norm sqrt(|.|_1 |.|_inf); 0 if all tokens are equal. */
static inline double collapse_residual(const float *x, size_t tokens, size_t width) {
    double row_max[2] = {0, 0}, column_max[2] = {0, 0}; /* [0]: residual, [1]: X */
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
 * rollout = own rollout. Weights below 0 count by their size. Returns |rollout - own| (Frobenius), 0 in the first
 * layer.
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

/* Weights in bins of equal width on a logarithmic axis, from 10^-DECADES to 1. The first has smaller weights, too. */
enum { DECADES = 8, BINS_A_DECADE = 4, BINS = DECADES * BINS_A_DECADE };
struct histogram {
    double zero, bin[BINS]; /* shares */
};

/* Each weight adds `share`, by its size: tanhmax has weights below 0. */
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

/* The weights of the last layer are tested. The change of the output is half the sum of |p' - p| over the classes. */
enum { BY_GRADIENT, GRADIENT_SURE, BY_OCCLUSION, OCCLUSION_SURE, PERMUTED, RANDOM, EXPLANATIONS, TRIALS = 100 };

/* Kendall's tau-b: pairs in the same order minus pairs in the opposite order. Tied pairs do not count. */
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

/* Whether tau differs from 0 with p < 0.01, by the normal approximation. */
static inline int tau_is_significant(double tau, double n) {
    return fabs(tau) > 2.5758 * sqrt(2 * (2 * n + 5) / (9 * n * (n - 1)));
}

/* Replaces a row by its own weights in another order, or by random weights with the same sum of sizes. */
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

/* The weights of layer l if no query sees the token. */
static inline void occlude(const struct model *model, struct workspace *work, size_t l, size_t n, size_t token) {
    float *score = work->stack.back_score;
    mmax_multimax_params p = params_of(model->value.net.modulator[l], model->setup.order);
    memcpy(score, work->stack.layer[l].score, n * HEADS * SQUARE * sizeof *score);
    for (size_t row = 0; row < n * HEADS * TOKENS; ++row) { score[row * TOKENS + token] = -INFINITY; }
    apply(work->stack.layer[l].weight, score, model->setup.attention, &p, 0, score_shape(model, &work->stack, l, n));
}

/* The probabilities of the n images after the weights of layer l have changed. */
static inline void output_from_weights(float *p, const struct model *model, struct workspace *work, size_t l,
                                       size_t n) {
    mmax_multimax_params params = params_of(model->value.net.modulator[OUTPUT], model->setup.order);
    forward_from_weights(model, &work->stack, l, n);
    normalise(&work->stack.norm, work->stack.tokens[l + 1], n * TOKENS);
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

/* |gradient of the likeliest class's probability| with respect to each token before the first layer, for a softmax
 * output layer. */
static inline void token_gradients(double gradient[BATCH][TOKENS], struct model *model, struct workspace *work,
                                   const float *p, const int *class, size_t n) {
    clear(work->logit, n * CLASSES);
    for (size_t i = 0; i < n; ++i) { work->logit[i * CLASSES + (size_t) class[i]] = 1; }
    check(mmax_softmax_backward_f32(work->logit, work->logit, p, mmax_rows(n, CLASSES)));
    backward(model, work, n);
    for (size_t j = 0; j < n * TOKENS; ++j) {
        double square = 0;
        for (size_t k = 0; k < WIDTH; ++k) {
            square += (double)work->stack.stream[j * WIDTH + k] * (double)work->stack.stream[j * WIDTH + k];
        }
        gradient[j / TOKENS][j % TOKENS] = sqrt(square);
    }
}

/* Adds the measures of n images to the sums. Call forward() before. */
static inline void explain(double sum[EXPLANATIONS], struct model *model, struct workspace *work, size_t n,
                           uint64_t *state) {
    static double change[BATCH][TRIALS], lost[BATCH][TOKENS], gradient[BATCH][TOKENS];
    static float p[BATCH * CLASSES], q[BATCH * CLASSES];
    size_t l = (size_t)model->setup.layers - 1, weights = n * HEADS * SQUARE;
    float *weight = work->stack.layer[l].weight, *kept = work->centred;
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
        double size[TOKENS] = {0}, with_sign[TOKENS] = {0}; /* means over heads and queries, up to a factor */
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
