/* test_digits.c: compares the measures of digits.h with closed forms, and its gradients with finite differences. */
#define PROGRAM "test_digits"
#include "digits.h"

static int failures;

/* Checks that `value` is `expected` within `error`. */
#define CLOSE(value, expected, error) close_to(#value, __LINE__, value, expected, error)

static void close_to(const char *text, int line, double value, double expected, double error) {
    if (!(fabs(value - expected) <= error)) {
        fprintf(stderr, "test_digits.c, line %d: %s is %.9g, not %.9g\n", line, text, value, expected);
        ++failures;
    }
}

#define TINY 1e-6

static void test_tokens(void) {
    enum { N = 5 };
    float orthogonal[N * N] = {0}, equal[N * 3];
    const float opposite[4 * 2] = {1, 2, -1, -2, 1, 2, -1, -2}, slanted[2 * 2] = {2, 0, 1.5f, 2.598076211f};
    for (size_t i = 0; i < N; ++i) {
        orthogonal[i * N + i] = (float)(i + 1); /* the cosine does not depend on the length */
        equal[3 * i] = 1;
        equal[3 * i + 1] = -2;
        equal[3 * i + 2] = 0.5f;
    }
    CLOSE(patch_similarity(orthogonal, N, N), 0, TINY);
    CLOSE(mean_average_distance(orthogonal, N, N), 1, TINY);
    for (size_t i = 0; i < N; ++i) { orthogonal[i * N + i] = 3; }
    CLOSE(collapse_residual(orthogonal, N, N), 2 * (1 - 1.0 / N), TINY); /* |I - 11'/n| in both norms */
    CLOSE(patch_similarity(equal, N, 3), 1, TINY);
    CLOSE(mean_average_distance(equal, N, 3), 0, TINY);
    CLOSE(collapse_residual(equal, N, 3), 0, TINY);
    CLOSE(patch_similarity(opposite, 4, 2), 1, TINY);
    CLOSE(mean_average_distance(opposite, 4, 2), 2, TINY); /* parallel pairs do not count */
    CLOSE(collapse_residual(opposite, 4, 2), 1, TINY);
    CLOSE(patch_similarity(slanted, 2, 2), 0.5, TINY);
    CLOSE(mean_average_distance(slanted, 2, 2), 0.5, TINY);
    /* rows of the residual +-(0.25, -1.299), columns of X (3.5, 2.598), rows of X (2, 4.098) */
    CLOSE(collapse_residual(slanted, 2, 2), sqrt((0.25 + 1.299038106) * 2.598076211 / (4.098076211 * 3.5)), TINY);
}

static void test_rollout(void) {
    enum { N = 6, H = 2 };
    float uniform[H * N * N], identity[N * N] = {0};
    double rollout[N * N] = {0}, still[N * N] = {0}, order[4] = {1, 0, 0, 1};
    const float to_first[4] = {1, 0, 1, 0}, to_second[4] = {0, 1, 0, 1}, negative[4] = {0, -1, 0, 1};
    for (size_t i = 0; i < H * N * N; ++i) { uniform[i] = 1.0f / N; }
    for (size_t i = 0; i < N; ++i) { rollout[i * N + i] = still[i * N + i] = identity[i * N + i] = 1; }
    for (int l = 1; l <= 6; ++l) { /* own = P + (I - P)/2, P = 11'/n; its power l: P + (I - P)/2^l */
        CLOSE(roll_out(rollout, uniform, H, N), (0.5 - pow(2, -l)) * sqrt(N - 1), TINY);
        CLOSE(rollout[1], (1 - pow(2, -l)) / N, TINY);
        CLOSE(roll_out(still, identity, 1, N), 0, TINY);
    }
    CLOSE(roll_out(order, to_first, 1, 2), 0, TINY);
    CLOSE(roll_out(order, to_second, 1, 2), sqrt(0.625), TINY); /* the product in the other order: sqrt(0.125) */
    CLOSE(order[0], 0.75, TINY);
    order[0] = order[3] = 1;
    order[1] = order[2] = 0;
    roll_out(order, negative, 1, 2);
    CLOSE(order[1], 0.5, TINY);
}

static void test_histogram(void) {
    static const float weight[8] = {0, 0, 1, -0.5f, 0.05f, 0.0005f, 1e-12f, 0.02f};
    struct histogram h = {0, {0}}, uniform = {0, {0}};
    float sixteenth[TOKENS];
    histogram_add(&h, weight, 8, 1.0 / 8);
    CLOSE(h.zero, 2.0 / 8, TINY);
    CLOSE(h.bin[0], 1.0 / 8, TINY);
    CLOSE(h.bin[BINS - 1], 1.0 / 8, TINY); /* 1 */
    CLOSE(h.bin[BINS - 2], 1.0 / 8, TINY); /* 0.5 is below 10^-0.25 */
    CLOSE(share_below(&h, -3), 4.0 / 8, TINY);
    CLOSE(share_below(&h, -1), 6.0 / 8, TINY);
    CLOSE(share_below(&h, 0), 1, TINY);
    for (size_t i = 0; i < TOKENS; ++i) { sixteenth[i] = 1.0f / TOKENS; }
    histogram_add(&uniform, sixteenth, TOKENS, 1.0 / TOKENS);
    CLOSE(uniform.bin[27], 1, TINY); /* (8 + log10(1/16)) * 4 = 27.2 */
}

static void test_spread(void) {
    const double value[3] = {1, 2, 3}, from[3] = {0, 1, 3};
    CLOSE(spread_of(value, NULL, 3).mean, 2, TINY);
    CLOSE(spread_of(value, NULL, 3).std, 1, TINY);
    CLOSE(spread_of(value, from, 3).mean, 2.0 / 3, TINY);
    CLOSE(spread_of(value, from, 3).std, sqrt(1.0 / 3), TINY);
    CLOSE(spread_of(value, NULL, 1).std, 0, 0);
}

enum { IMAGES = 16, TEST_LAYERS = 3 };

static double mean_loss(struct model *model, struct workspace *work) {
    double loss[BATCH], sum = 0;
    forward(model, work, IMAGES, 1);
    loss_and_gradient(loss, model, work, 0.1, IMAGES);
    for (size_t i = 0; i < IMAGES; ++i) { sum += loss[i] / IMAGES; }
    return sum;
}

static void start(struct model *model, struct workspace *work, const struct setup *setup) {
    uint64_t state = 7;
    model_start(model, setup, &state);
    random_fill(work->patch, IMAGES * TOKENS * PATCH, 1, &state);
    for (int i = 0; i < IMAGES; ++i) { work->label[i] = i % CLASSES; }
    work->is_mixed = 0;
    if (setup->attention == SPARSEMAX) { mix_images(work, IMAGES, 0.7); }
    for (size_t l = 0; l < TEST_LAYERS; ++l) { /* large scores, so that the scale matters */
        for (size_t i = 0; i < WIDTH; ++i) {
            for (size_t j = 0; j < 2 * WIDTH; ++j) { model->value.net.layer[l].qkv[i * QKV + j] *= 1.5f; }
        }
        for (size_t j = 0; j < HIDDEN; ++j) { model->value.net.layer[l].up[WIDTH * HIDDEN + j] = 5; } /* no kinks */
        for (size_t i = 0; i < HEAT; ++i) {
            model->value.net.modulator[l][i] += setup->attention == MULTIMAX ? (i < 4 ? 0.1f : 0.2f) : 0;
        }
    }
}

/* Compares the derivative of the loss with respect to one scalar, from backward(), with a central difference. */
static void test_gradients(struct model *model, struct workspace *work) {
    static const int function[] = {SOFTMAX, MULTIMAX, SPARSEMAX,  ENTMAX15,
                                   TANHMAX, ENTMAX,   SIGSOFTMAX, SPARSEHOURGLASS}; /* evsoftmax jumps */
    for (size_t f = 0; f < sizeof function / sizeof *function; ++f) {
        struct setup setup = {.attention = function[f],
                              .order = 2,
                              .terms = TERMS_BD,
                              .layers = TEST_LAYERS,
                              .learn_heat = 1,
                              .temperature = 0.8,
                              .learn_alpha = function[f] == ENTMAX,
                              .parameter = 0.5};
        start(model, work, &setup);
        mean_loss(model, work);
        backward(model, work, IMAGES);
        for (size_t l = 0; l < TEST_LAYERS; ++l) {
            for (size_t i = function[f] == MULTIMAX ? 0 : HEAT; i < SCALARS; ++i) {
                float *scalar = &model->value.net.modulator[l][i], kept = *scalar, h = 1.0f / 256;
                double gradient = (double)model->gradient.net.modulator[l][i];
                *scalar = kept + h;
                double above = mean_loss(model, work);
                *scalar = kept - h;
                double below = mean_loss(model, work);
                *scalar = kept;
                CLOSE(gradient, (above - below) / (2 * (double)h),
                      3e-5 + (function[f] == SPARSEMAX ? 0.1 : 0.03) * fabs(gradient));
            }
        }
    }
}

/* Trained scalars of a setup have a gradient, others have none. */
static void test_setup(struct model *model, struct workspace *work) {
    for (int order = 1; order <= 2; ++order) {
        for (int terms = TERMS_B; terms <= TERMS_BD; ++terms) {
            struct setup setup = {.attention = MULTIMAX,
                                  .output = MULTIMAX,
                                  .order = order,
                                  .terms = terms,
                                  .layers = TEST_LAYERS,
                                  .learn_heat = terms == TERMS_D,
                                  .temperature = 2};
            start(model, work, &setup);
            CLOSE(score_shape(model, &work->stack, 0, 1).scale * sqrt(HEAD_DIM), 0.5, TINY);
            mean_loss(model, work);
            backward(model, work, IMAGES);
            for (size_t l = 0; l < MODULATORS; ++l) {
                for (size_t i = 0; i < HEAT; ++i) {
                    int is_d = i / 2 % 2, trained = (int)(i % 2) < order && (terms & (is_d ? TERMS_D : TERMS_B)) != 0;
                    trained = trained && (l < TEST_LAYERS || (l == OUTPUT && i < 4)); /* there b = d = 0, t = 1 */
                    CLOSE(model->gradient.net.modulator[l][i] != 0, trained, 0);
                }
                CLOSE(model->gradient.net.modulator[l][HEAT] != 0, terms == TERMS_D && l < TEST_LAYERS, 0);
            }
        }
    }
}

/* Mixed images and targets of a pair. With a share of 1 the loss is that of the labels. */
static void test_mixup(struct model *model, struct workspace *work) {
    const size_t last = (IMAGES - 1) * TOKENS * PATCH;
    struct setup setup = {.output = MULTIMAX, .order = 2, .terms = TERMS_BD, .layers = TEST_LAYERS, .temperature = 1};
    uint64_t state = 3;
    double mean = 0, square = 0;
    start(model, work, &setup);
    double first = (double)work->patch[0], second = (double)work->patch[last], plain = mean_loss(model, work);
    mix_images(work, IMAGES, 1);
    CLOSE(mean_loss(model, work), plain, 1e-6);
    mix_images(work, IMAGES, 0.75);
    CLOSE(work->patch[0], 0.75 * first + 0.25 * second, 1e-6);
    CLOSE(work->patch[last], 0.75 * second + 0.25 * first, 1e-6);
    CLOSE(work->target[0], 0.75, 1e-6);
    CLOSE(work->target[(IMAGES - 1) % CLASSES], 0.25, 1e-6);
    for (int i = 0; i < 100000; ++i) {
        double share = random_beta(0.2, &state);
        mean += share / 100000;
        square += (share - 0.5) * (share - 0.5) / 100000;
    }
    CLOSE(mean, 0.5, 0.01);
    CLOSE(square, 1 / (4 * (2 * 0.2 + 1)), 0.003); /* the variance of Beta(a, a) */
}

static void test_kendall(void) {
    const double a[4] = {1, 2, 3, 4}, back[4] = {0, -1, -2, -3}, tied[4] = {1, 1, 2, 2}, flat[4] = {5, 5, 5, 5};
    CLOSE(kendall_tau(a, a, 4), 1, TINY);
    CLOSE(kendall_tau(a, back, 4), -1, TINY);
    CLOSE(kendall_tau(a, tied, 4), 4 / sqrt(6 * 4), TINY); /* tau-b */
    CLOSE(kendall_tau(a, flat, 4), 0, 0);
    CLOSE(tau_is_significant(0.48, 16) && !tau_is_significant(-0.47, 16), 1, 0); /* p < 0.01 from 0.476 on */
}

static void test_redistribute(void) {
    uint64_t state = 3;
    for (int randomly = 0; randomly < 2; ++randomly) {
        for (int with_signs = 0; with_signs < 2; ++with_signs) {
            float row[TOKENS], size = 0, largest = 0;
            int moved = 0, negative = 0;
            for (size_t j = 0; j < TOKENS; ++j) {
                row[j] = (float)j * (with_signs && j % 2 ? -1 : 1) / 120;
            } /* sum of sizes: 1 */
            redistribute(row, randomly, with_signs, &state);
            for (size_t j = 0; j < TOKENS; ++j) {
                size += fabsf(row[j]);
                largest = fmaxf(largest, fabsf(row[j]));
                moved += fabsf(row[j]) * 120 - (float)j > 0.01f;
                negative += row[j] < 0;
            }
            CLOSE((double)size, 1, TINY);
            CLOSE(moved > 2, 1, 0);
            CLOSE(negative > 0, with_signs, 0);
            CLOSE(fabs((double)largest - 15.0 / 120) < TINY, !randomly, 0);
        }
    }
}

/* |d p / d token| of one image, from the position that is added to the token. */
static double gradient_by_differences(struct model *model, struct workspace *work, size_t token, int class) {
    double square = 0;
    for (size_t k = 0; k < WIDTH; ++k) {
        float *at = &model->value.net.position[token * WIDTH + k], kept = *at, p[CLASSES], h = 1.0f / 128;
        double difference = 0;
        for (int sign = -1; sign <= 1; sign += 2) {
            *at = kept + (float)sign * h;
            forward(model, work, 1, 0);
            check(mmax_softmax_f32(p, work->logit, mmax_row(CLASSES)));
            difference += sign * (double)p[class] / (2 * (double)h);
        }
        *at = kept;
        square += difference * difference;
    }
    return sqrt(square);
}

static void test_explanations(struct model *model, struct workspace *work) {
    enum { QUERIES = 0, VALUES = 2 * WIDTH, NOTHING };
    static const size_t zeros[] = {QUERIES, VALUES, NOTHING};
    struct setup setup = {.order = 2, .terms = TERMS_BD, .layers = TEST_LAYERS, .temperature = 1};
    float p[BATCH * CLASSES];
    double gradient[BATCH][TOKENS];
    int class[BATCH] = {0};
    uint64_t state = 1;
    start(model, work, &setup);
    forward(model, work, 1, 0);
    check(mmax_softmax_f32(p, work->logit, mmax_row(CLASSES)));
    token_gradients(gradient, model, work, p, class, 1);
    for (size_t token = 0; token < TOKENS; token += 5) {
        CLOSE(gradient[0][token], gradient_by_differences(model, work, token, 0), 1e-4 + 0.02 * gradient[0][token]);
    }
    /* Without queries all weights are equal: no permutation changes them. Without values no weight has an effect. */
    for (size_t k = 0; k < 3; ++k) {
        size_t zero = zeros[k];
        double sum[EXPLANATIONS] = {0};
        start(model, work, &setup);
        for (size_t i = 0; i <= WIDTH && zero != NOTHING; ++i) {
            clear(model->value.net.layer[TEST_LAYERS - 1].qkv + i * QKV + zero, WIDTH);
        }
        forward(model, work, IMAGES, 0);
        explain(sum, model, work, IMAGES, &state);
        CLOSE(sum[PERMUTED] > 0, zero == NOTHING, 0);
        CLOSE(sum[RANDOM] > 0, zero != VALUES, 0);
        CLOSE(sum[BY_OCCLUSION] != 0, zero == NOTHING, 0);
        CLOSE(sum[BY_GRADIENT] != 0, zero != QUERIES, 0);
        occlude(model, work, TEST_LAYERS - 1, IMAGES, 3);
        for (size_t j = 0; j < TOKENS && zero == QUERIES; ++j) {
            CLOSE((double)work->stack.layer[TEST_LAYERS - 1].weight[j], j == 3 ? 0 : 1.0 / (TOKENS - 1), TINY);
        }
    }
}

int main(void) {
    struct model *model = allocate(1, sizeof *model);
    struct workspace *work = allocate(1, sizeof *work);
    test_tokens();
    test_rollout();
    test_histogram();
    test_spread();
    test_gradients(model, work);
    test_setup(model, work);
    test_mixup(model, work);
    test_kendall();
    test_redistribute();
    test_explanations(model, work);
    free(work);
    free(model);
    return failures > 0;
}
