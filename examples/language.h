/*
 * language.h: a small language model, a decoder over the characters of a text.
 *
 * A token is a character: its vector plus the vector of its place in a window of TOKENS characters. A token attends to
 * itself and to earlier ones. After the last layer, a linear output layer computes a score for every character that may
 * come next. The last tenth of the text is held out. Training has the same bits on every machine with fma.
 *
 * In order: text, forward, backward, training, held-out text, files, sampling.
 */
#ifndef EXAMPLES_LANGUAGE_H
#define EXAMPLES_LANGUAGE_H

enum {
    TOKENS = 64,
    WIDTH = 96,
    HEADS = 4,
    HIDDEN = 4 * WIDTH,
    MAX_LAYERS = 4,
    BATCH = 4,
    CLASSES = 128, /* characters that a text may have */
    INPUTS = CLASSES,
    CAUSAL = 1
};

/* The same hyper-parameters for every function. */
#define LEARNING_RATE   5e-3
#define WARMUP_STEPS    200
#define WEIGHT_DECAY    0.1
#define CLIP_NETWORK    1.0
#define CLIP_MODULATORS 0.1
#define INPUT_BOUND     1.0                /* bound of the first vectors of characters */
#define BITS            1.4426950408889634 /* bits per nat */

#include "transformer.h"

/* ==== text ======================================================================================================== */

struct text {
    unsigned char *class; /* the class of each character */
    size_t count, train_count;
};

/* The characters of the text. */
struct alphabet {
    int classes;
    unsigned char symbol[CLASSES]; /* in rising order */
};

static inline int class_of(const struct alphabet *a, int symbol) {
    for (int c = 0; c < a->classes; ++c) {
        if (a->symbol[c] == symbol) { return c; }
    }
    return -1;
}

static inline unsigned char *read_bytes(const char *path, const char *option, size_t *count) {
    FILE *file = fopen(path, "rb");
    unsigned char *byte = NULL;
    size_t room = 0, got;
    *count = 0;
    if (file == NULL) { fail("cannot open '%s': %s (%s names the file)", path, strerror(errno), option); }
    do {
        if (*count == room) { byte = resize(byte, room = room == 0 ? 1u << 16 : 2 * room, 1); }
        got = fread(byte + *count, 1, room - *count, file);
        *count += got;
    } while (got > 0);
    if (ferror(file)) { fail("cannot read '%s': %s", path, strerror(errno)); }
    fclose(file);
    return byte;
}

static inline struct text read_text(struct alphabet *a, const char *path) {
    struct text text = {NULL, 0, 0};
    int class[256] = {0};
    text.class = read_bytes(path, "--data", &text.count);
    text.train_count = text.count - text.count / 10;
    if (text.count < 20 * TOKENS) {
        fail("'%s' has %lu characters; training needs at least %d", path, (unsigned long)text.count, 20 * TOKENS);
    }
    for (size_t i = 0; i < text.count; ++i) { class[text.class[i]] = 1; }
    a->classes = 0;
    for (int symbol = 0; symbol < 256; ++symbol) {
        if (class[symbol] != 0) {
            if (a->classes == CLASSES) { fail("'%s' has more than %d different characters", path, CLASSES); }
            class[symbol] = a->classes;
            a->symbol[a->classes++] = (unsigned char)symbol;
        }
    }
    for (size_t i = 0; i < text.count; ++i) { text.class[i] = (unsigned char)class[text.class[i]]; }
    return text;
}

/* ==== forward ===================================================================================================== */

struct workspace {
    struct stack stack;
    int32_t token[ROWS], target[ROWS]; /* target < 0: not predicted */
    real logit[ROWS * CLASSES];
    double loss[ROWS];
};

/* Window i of the batch: TOKENS characters. The target of each is the next character. */
static inline void load_window(struct workspace *work, const struct text *text, size_t i, size_t first) {
    for (size_t t = 0; t < TOKENS; ++t) {
        work->token[i * TOKENS + t] = text->class[first + t];
        work->target[i * TOKENS + t] = text->class[first + t + 1];
    }
}

/* The logits of the n loaded windows, and everything that backward() needs. */
static inline void forward(const struct model *model, struct workspace *work, size_t n, int training) {
    const struct network *net = &model->value.net;
    real *x = work->stack.tokens[0];
    for (size_t r = 0; r < n * TOKENS; ++r) {
        const real *input = net->input + (size_t)work->token[r] * WIDTH, *position = net->position + r % TOKENS * WIDTH;
        for (size_t j = 0; j < WIDTH; ++j) { x[r * WIDTH + j] = input[j] + position[j]; }
    }
    forward_layers(model, &work->stack, n, training);
    clear(work->logit, n * TOKENS * CLASSES);
    add_linear(work->logit, work->stack.norm.y, net->output, n * TOKENS, WIDTH, CLASSES);
}

static inline mmax_shape logit_shape(const struct alphabet *a, size_t n) {
    mmax_shape s = mmax_rows(n * TOKENS, (size_t)a->classes);
    s.x_stride = s.y_stride = s.gx_stride = CLASSES;
    return s;
}

/* ==== backward ==================================================================================================== */

/* The mean loss of a target, in nats. With `learn` turns the logits into their gradient. */
static inline double loss_and_gradient(struct model *model, struct workspace *work, const struct alphabet *a, size_t n,
                                       int learn) {
    mmax_multimax_params p = params_of(model->value.net.modulator[OUTPUT], model->setup.order);
    mmax_multimax_grads gp = {{0, 0}, {0, 0}, {0, 0}, {0, 0}};
    mmax_targets t = mmax_labels(work->target);
    mmax_shape s = logit_shape(a, n);
    real *x = work->logit, *gx = learn ? x : NULL;
    double sum = 0;
    t.grad_scale = 1 / (double)s.rows;
    if (model->setup.output == MULTIMAX) {
        check(MMAX(multimax_loss)(work->loss, gx, learn ? &gp : NULL, x, &p, t, s));
        add_grads(model->gradient.net.modulator[OUTPUT], &gp, &model->setup);
    } else {
        check(MMAX(softmax_loss)(work->loss, gx, x, t, s));
    }
    for (size_t r = 0; r < s.rows; ++r) {
        sum += work->loss[r];
        if (learn) { clear(x + r * CLASSES + s.cols, CLASSES - s.cols); }
    }
    return sum / (double)s.rows;
}

/* The gradient of all weights, from the gradient of the logits, which stands in work->logit. */
static inline void backward(struct model *model, struct workspace *work, size_t n) {
    const struct network *net = &model->value.net;
    struct network *grad = &model->gradient.net;
    struct stack *stack = &work->stack;
    size_t rows = n * TOKENS;
    linear_backward(stack->back_norm, grad->output, work->logit, stack->norm.y, net->output, stack->turned, rows, WIDTH,
                    CLASSES);
    backward_layers(model, stack, n);
    for (size_t r = 0; r < rows; ++r) {
        real *input = grad->input + (size_t)work->token[r] * WIDTH, *position = grad->position + r % TOKENS * WIDTH;
        for (size_t j = 0; j < WIDTH; ++j) {
            input[j] += stack->stream[r * WIDTH + j];
            position[j] += stack->stream[r * WIDTH + j];
        }
    }
}

/* ==== training ==================================================================================================== */

struct trainer {
    struct text text;
    struct alphabet alphabet;
    struct model model;
    struct workspace work;
    uint64_t random;
    double decayed[2];        /* for Adam; multiplied, since pow() differs between machines */
    double steps_done, steps; /* steps of all models, for the progress line */
    double recent;            /* bits per character, a moving mean */
    time_t begun, drawn;
};

/* A new model. The seed gives its first weights and the windows. */
static inline void train_start(struct trainer *t, const struct setup *setup, int seed) {
    t->random = (uint64_t)seed;
    t->decayed[0] = t->decayed[1] = 1;
    t->recent = 0;
    model_start(&t->model, setup, &t->random);
}

/* One of `steps` steps; returns the mean loss in bits per character. */
static inline double train_step(struct trainer *t, size_t steps) {
    for (size_t i = 0; i < BATCH; ++i) {
        load_window(&t->work, &t->text, i, (size_t)(random_bits(&t->random) % (t->text.train_count - TOKENS)));
    }
    clear_gradient(&t->model);
    forward(&t->model, &t->work, BATCH, 1);
    double loss = BITS * loss_and_gradient(&t->model, &t->work, &t->alphabet, BATCH, 1);
    backward(&t->model, &t->work, BATCH);
    ++t->model.steps;
    t->decayed[0] *= 0.9;
    t->decayed[1] *= 0.99;
    optimise(&t->model, t->decayed, steps);
    t->recent += (loss - t->recent) / (t->model.steps < 50 ? (double)t->model.steps : 50);
    ++t->steps_done;
    return loss;
}

/* ==== held-out text =============================================================================================== */

struct held_out {
    double bits, accuracy; /* bits per character; the share of characters with the largest score */
};

/* Evaluates `characters` characters. Windows overlap by half: except in the first, TOKENS/2 or more characters precede
 * each predicted one. */
static inline struct held_out evaluate(struct trainer *t, size_t characters) {
    const size_t half = TOKENS / 2, left = t->text.count - t->text.train_count;
    const size_t end = t->text.train_count + (characters < left ? characters : left);
    struct held_out h = {0, 0};
    size_t count = 0, first = t->text.train_count;
    while (first + TOKENS < end) {
        size_t n = 0;
        for (; n < BATCH && first + TOKENS < end; ++n, first += half) {
            load_window(&t->work, &t->text, n, first);
            for (size_t j = 0; j < half && first > t->text.train_count; ++j) { t->work.target[n * TOKENS + j] = -1; }
        }
        forward(&t->model, &t->work, n, 0);
        h.bits += loss_and_gradient(&t->model, &t->work, &t->alphabet, n, 0) * (double)(n * TOKENS);
        for (size_t r = 0; r < n * TOKENS; ++r) {
            const real *x = t->work.logit + r * CLASSES;
            int best = 0;
            for (int c = 1; c < t->alphabet.classes; ++c) { best = x[c] > x[best] ? c : best; }
            h.accuracy += best == t->work.target[r];
            count += t->work.target[r] >= 0;
        }
    }
    h.bits *= BITS / (double)count;
    h.accuracy /= (double)count;
    return h;
}

/* ==== files ======================================================================================================= */

/* The format is a line of text, the alphabet, then the weights as IEEE floats, lowest byte first. */
#define FILE_FORMAT "multimax.h language 1: %d layers of functions %d %d %d %d, seglu %d, output %d, %d characters\n"

static inline size_t saved_weight(const struct model *model, size_t i) {
    return i < network_weights(model) ? i : i - network_weights(model) + BEFORE_MODULATORS;
}

static inline size_t saved_weights(const struct model *model) {
    return network_weights(model) + ALL_WEIGHTS - BEFORE_MODULATORS;
}

static inline void save_model(const struct model *model, const struct alphabet *a, const char *path) {
    const struct setup *s = &model->setup;
    FILE *file = file_open(path);
    fprintf(file, FILE_FORMAT, s->layers, s->function[0], s->function[1], s->function[2], s->function[3], s->seglu,
            s->output, a->classes);
    fwrite(a->symbol, 1, (size_t)a->classes, file);
    for (size_t i = 0; i < saved_weights(model); ++i) {
        float value = (float)model->value.all[saved_weight(model, i)];
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        for (int shift = 0; shift < 32; shift += 8) { putc((int)(bits >> shift & 255), file); }
    }
    files_keep();
}

static inline void load_model(struct model *model, struct alphabet *a, const char *path) {
    struct setup *s = &model->setup;
    size_t count, at;
    unsigned char *byte = read_bytes(path, "--load", &count), *end = count > 0 ? memchr(byte, '\n', count) : NULL;
    char line[160] = "", again[160];
    memset(model, 0, sizeof *model);
    s->order = 2;
    s->terms = TERMS_BD;
    s->by_layer = 1;
    at = end != NULL ? (size_t)(end - byte) + 1 : 0;
    if (at < sizeof line) { memcpy(line, byte, at); }
    sscanf(line, FILE_FORMAT, &s->layers, &s->function[0], &s->function[1], &s->function[2], &s->function[3], &s->seglu,
           &s->output, &a->classes);
    snprintf(again, sizeof again, FILE_FORMAT, s->layers, s->function[0], s->function[1], s->function[2],
             s->function[3], s->seglu, s->output, a->classes);
    int good = strcmp(line, again) == 0 && s->layers >= 1 && s->layers <= MAX_LAYERS && a->classes >= 1 &&
               a->classes <= CLASSES && (s->output == SOFTMAX || s->output == MULTIMAX) && s->seglu / 2 == 0;
    for (int l = 0; l < MAX_LAYERS; ++l) { good = good && s->function[l] >= 0 && s->function[l] < ALL_FUNCTIONS; }
    if (!good || count != at + (size_t)a->classes + 4 * saved_weights(model)) {
        fail("'%s' is not a whole model that --save wrote", path);
    }
    memcpy(a->symbol, byte + at, (size_t)a->classes);
    at += (size_t)a->classes;
    for (size_t i = 0; i < saved_weights(model); ++i, at += 4) {
        uint32_t bits =
            byte[at] | (uint32_t)byte[at + 1] << 8 | (uint32_t)byte[at + 2] << 16 | (uint32_t)byte[at + 3] << 24;
        float value;
        memcpy(&value, &bits, sizeof value);
        model->value.all[saved_weight(model, i)] = (real)value;
    }
    free(byte);
}

/* ==== sampling ==================================================================================================== */

/* The scores of the next character after the last TOKENS of `count` characters, including sigma of the output layer. */
static inline real *next_scores(const struct model *model, struct workspace *work, const struct alphabet *a,
                                const unsigned char *class, size_t count) {
    size_t n = count < TOKENS ? count : TOKENS;
    real *x = work->logit + (n - 1) * CLASSES;
    for (size_t t = 0; t < TOKENS; ++t) { work->token[t] = t < n ? class[count - n + t] : 0; }
    forward(model, work, 1, 0);
    if (model->setup.output == MULTIMAX) {
        mmax_multimax_params p = params_of(model->value.net.modulator[OUTPUT], model->setup.order);
        check(MMAX(seglu)(x, x, &p, mmax_row((size_t)a->classes)));
    }
    return x;
}

#endif
