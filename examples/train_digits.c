/*
 * train_digits.c: trains the small transformer of digits.h with each function in its attention, then with each loss in
 * its output layer, and prints the results; or answers one question of the papers with many seeds (--study).
 *
 *     cc -O2 -Iinclude examples/train_digits.c -o train_digits -lm
 *     ./train_digits --help
 *
 * In order: evaluation, training, printing, SVG, studies, main.
 */
#define PROGRAM "train_digits"
#include "digits.h"

#define METRIC_REFERENCE 0.01 /* reference of sparsity */

/* ==== evaluation ================================================================================================== */

enum { MAX_SEEDS = 20, MAX_EPOCHS = 200 };
enum { ACCURACY, SPARSITY, MULTIMODALITY, ZEROS, SUPPORT, LOST, EXPLAINED, MEASURES = EXPLAINED + EXPLANATIONS };

struct result { /* one row of a table: one setup, all seeds */
    struct setup setup;
    double measure[MEASURES][MAX_SEEDS];
    double curve_loss[MAX_EPOCHS], curve_error[MAX_EPOCHS]; /* means over the seeds, after each epoch */
    double step_seconds, function_seconds;                  /* means over the steps */
    float modulator[MAX_SEEDS][MODULATORS][SCALARS];
    float low[MAX_LAYERS], high[MAX_LAYERS]; /* of the scaled test scores */
    float map[CLASSES][HEADS][TOKENS];       /* attention of the marked patch, first seed, last layer */
};

struct mean {
    double sum, count;
};

/* A row without anything to measure has NaN, which is left out. */
static void mean_add(struct mean *mean, const double *value, size_t n) {
    for (size_t i = 0; i < n; ++i) {
        mean->sum += value[i] == value[i] ? value[i] : 0;
        mean->count += value[i] == value[i];
    }
}

static double mean_value(struct mean mean) { return mean.count > 0 ? mean.sum / mean.count : 0; }

/* The metrics of all rows of one layer. Scores are centred first, so that epsilon = 0 is the mean of the row. */
static void measure_attention(struct mean measure[MEASURES], struct workspace *work, size_t l, mmax_shape s) {
    const float *x = work->stack.layer[l].score, *y = work->stack.layer[l].weight;
    float *centred = work->centred, *size = work->stack.back_score;
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
    mmax_multimax_params p = params_of(model->value.net.modulator[OUTPUT], model->setup.order);
    apply(y, work->logit, model->setup.output, &p, 0, mmax_rows(n, CLASSES));
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

/* Adds up the measures of the output over the test images; with a result also those of the attention. */
static void evaluate(struct trainer *t, struct mean measure[MEASURES], struct result *result) {
    memset(measure, 0, MEASURES * sizeof *measure);
    for (size_t i = 0, n; (n = forward_test_images(t, i)) > 0; i += n) {
        measure_output(measure, &t->model, &t->work, n);
        for (size_t l = 0; l < (size_t)t->model.setup.layers && result != NULL; ++l) {
            mmax_shape s = score_shape(&t->model, &t->work.stack, l, n);
            measure_attention(measure, &t->work, l, s);
            for (size_t j = 0; j < s.rows * s.cols; ++j) {
                float x = (float)s.scale * t->work.stack.layer[l].score[j];
                result->low[l] = x < result->low[l] ? x : result->low[l];
                result->high[l] = x > result->high[l] ? x : result->high[l];
            }
        }
    }
}

/* The measures of explanations: means over the test images. */
enum { EXPLAINING_EPOCHS = 13 }; /* number of training epochs that take as long */
static void evaluate_explanations(struct trainer *t, struct result *result, int seed) {
    double sum[EXPLANATIONS] = {0};
    uint64_t state = (uint64_t)seed;
    for (size_t i = 0, n; (n = forward_test_images(t, i)) > 0; i += n) { explain(sum, &t->model, &t->work, n, &state); }
    for (size_t m = 0; m < EXPLANATIONS; ++m) {
        result->measure[EXPLAINED + m][seed - 1] = sum[m] / (double)(t->data.count - t->data.train_count);
    }
    t->layers_done += EXPLAINING_EPOCHS * layers_trained(&result->setup);
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
            const float *row = t->work.stack.layer[result->setup.layers - 1].weight + (h * TOKENS + query) * TOKENS;
            memcpy(result->map[class][h], row, sizeof result->map[class][h]);
        }
    }
}

/* ==== training ==================================================================================================== */

/* "multimax attention, softmax output" */
static void name_of(char name[80], const struct setup *setup) {
    char attention[32];
    attention_name(attention, setup);
    snprintf(name, 80, "%s attention, %s output", attention, function_name[setup->output]);
}

static void train_seed(struct trainer *t, struct result *result, int seed, int seeds) {
    double share = 1.0 / seeds, steps = (double)((t->data.train_count + BATCH - 1) / BATCH) * t->epochs;
    struct mean measure[MEASURES];
    char name[80];
    name_of(name, &result->setup);
    train_start(t, &result->setup, seed);
    for (int epoch = 0; epoch < t->epochs; ++epoch) {
        double begin = seconds();
        t->work.stack.seconds_in_function = 0;
        double loss = train_epoch(t);
        result->step_seconds += share * (seconds() - begin) / steps;
        result->function_seconds += share * t->work.stack.seconds_in_function / steps;
        evaluate(t, measure, epoch + 1 == t->epochs ? result : NULL);
        result->curve_loss[epoch] += share * loss;
        result->curve_error[epoch] += share * (1 - mean_value(measure[ACCURACY]));
        progress(t, name, seed, loss);
    }
    for (size_t m = 0; m < MEASURES; ++m) { result->measure[m][seed - 1] = mean_value(measure[m]); }
    if (t->explains) { evaluate_explanations(t, result, seed); }
    memcpy(result->modulator[seed - 1], t->model.value.net.modulator, sizeof result->modulator[0]);
    if (seed == 1) { keep_maps(t, result); }
}

static void train(struct trainer *t, struct result *result, const struct setup *setup, int seeds) {
    memset(result, 0, sizeof *result);
    result->setup = *setup;
    for (int seed = 1; seed <= seeds; ++seed) { train_seed(t, result, seed, seeds); }
    progress_end();
}

/* ==== printing ==================================================================================================== */

static double seed_mean(const struct result *result, int measure, int seeds) {
    return spread_of(result->measure[measure], NULL, seeds).mean;
}

/* Name, mean and standard deviation of the test accuracy; no deviation for a single seed. */
static void print_accuracy(const char *name, int width, const struct result *result, int seeds) {
    struct spread s = spread_of(result->measure[ACCURACY], NULL, seeds);
    printf("%-*s %7.2f %% ", width, name, 100 * s.mean);
    if (seeds > 1) {
        printf("%6.2f %%", 100 * s.std);
    } else {
        printf("%8s", "-");
    }
}

static void print_attention_row(const struct result *result, int seeds) {
    char name[32];
    attention_name(name, &result->setup);
    print_accuracy(name, 17, result, seeds);
    printf("%10.3f%16.3f%9.1f %%%11.2f ms%11.3f ms\n", seed_mean(result, SPARSITY, seeds),
           seed_mean(result, MULTIMODALITY, seeds), 100 * seed_mean(result, ZEROS, seeds), 1e3 * result->step_seconds,
           1e3 * result->function_seconds);
    fflush(stdout);
}

static void print_head_row(const struct result *result, int seeds, int epochs) {
    print_accuracy(function_name[result->setup.output], 10, result, seeds);
    printf("%12.4f%15.2f%13.2f %%\n", result->curve_loss[epochs - 1], seed_mean(result, SUPPORT, seeds),
           100 * seed_mean(result, LOST, seeds));
    fflush(stdout);
}

static void print_parameters(const struct result *result, int output_layer, int seeds) {
    size_t layers = (size_t)result->setup.layers, rows = output_layer ? 1 : layers;
    printf("seed  layer     t_b1    t_b2    t_d1    t_d2      b1      b2      d1      d2\n");
    for (int seed = 0; seed < seeds; ++seed) {
        for (size_t r = 0; r < rows; ++r) {
            const float *scalar = result->modulator[seed][output_layer ? OUTPUT : r];
            printf("%4d  %5lu ", seed + 1, (unsigned long)(output_layer ? layers : r) + 1);
            for (size_t i = 0; i < HEAT; ++i) { printf("  %6.3f", (double)scalar[i]); }
            printf("\n");
        }
    }
}

/* Temperature or alpha of each layer */
static void print_layers(const struct result *result, int seeds, int scalar) {
    printf("seed  %s of each layer\n", scalar == HEAT ? "temperature" : "alpha");
    for (int seed = 0; seed < seeds; ++seed) {
        printf("%4d", seed + 1);
        for (int l = 0; l < result->setup.layers; ++l) {
            double value = (double)result->modulator[seed][l][scalar];
            printf("  %6.3f", scalar == HEAT ? exp(-value) : 1 + logistic(value));
        }
        printf("\n");
    }
}

enum { PLOT_ROWS = 17, PLOT_COLUMNS = 36 };

/* sigma (o) and the identity (.) over the range of the scores, on both axes. Points outside it are not drawn. */
static void plot_modulator(char plot[PLOT_ROWS][PLOT_COLUMNS + 1], const mmax_multimax_params *p, float low,
                           float high) {

    float line[2][PLOT_COLUMNS + 1], *x = line[0], *y = line[1], step = (high - low) / PLOT_ROWS;
    for (int c = 0; c <= PLOT_COLUMNS; ++c) { x[c] = low + (high - low) * (float)c / PLOT_COLUMNS; }
    check(mmax_seglu_f32(y, x, p, mmax_row(PLOT_COLUMNS + 1)));
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

/* Prints two layers side by side. */
static void print_modulators(const struct result *result) {
    char plot[2][PLOT_ROWS][PLOT_COLUMNS + 1], title[64];
    for (int first = 0; first < result->setup.layers; first += 2) {
        int count = first + 1 < result->setup.layers ? 2 : 1;
        for (int i = 0; i < count; ++i) {
            int l = first + i;
            mmax_multimax_params p = params_of(result->modulator[0][l], result->setup.order);
            plot_modulator(plot[i], &p, result->low[l], result->high[l]);
            snprintf(title, sizeof title, "layer %d, from %.1f to %.1f", l + 1, (double)result->low[l],
                     (double)result->high[l]);
            printf("%s   %-*s", i == 0 ? "" : "  ", i + 1 < count ? PLOT_COLUMNS : 0, title);
        }
        for (size_t r = 0; r < PLOT_ROWS; ++r) {
            for (int i = 0; i < count; ++i) { printf("%s  |%s", i == 0 ? "\n" : "  ", plot[i][r]); }
        }
        printf("\n");
    }
}

/* ==== SVG ========================================================================================================= */

static void svg_square(FILE *svg, double x, double y, double side, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(svg, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" ", x, y, side, side);
    vfprintf(svg, format, arguments);
    fprintf(svg, "/>\n");
    va_end(arguments);
}

/* 4 x 4 fields; each has a square whose area is the weight. */
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
            if (ink > 0) {
                svg_square(svg, x + pixel * c, y + pixel * r, pixel, "fill=\"" INK "\" fill-opacity=\"%.3f\"", ink);
            }
        }
    }
    svg_square(svg, x + field * (double)(marked % GRID), y + field * (double)(marked / GRID), field,
               "fill=\"none\" stroke=\"" ORANGE "\" stroke-width=\"2\"");
}

/* A column for each digit: the image, and for each function the maps of the four heads. */
static void svg_attention(FILE *svg, const struct result *result, int count, const struct dataset *data) {
    const double left = 130, top = 34, field = 8.5, map = field * GRID, gap = 4, cell = 2 * map + gap + 14;
    const double below = top + cell * (count + 1);
    svg_begin(svg, (int)(left + cell * CLASSES), (int)below + 40, "Attention maps on test images");
    fprintf(svg, "<g font-size=\"13\">\n");
    svg_text(svg, left, 18, "start", "Attention of the marked patch: the four heads of layer %d, seed 1",
             result->setup.layers);
    svg_text(svg, left - 12, top + cell / 2, "end", "test image");
    for (int row = 0; row < count; ++row) {
        char name[32];
        attention_name(name, &result[row].setup);
        svg_text(svg, left - 12, top + cell * (row + 1.5), "end", "%s", name);
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
    fprintf(svg, "</g>\n");
    svg_end(svg);
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
    if (axis->epochs > 1) { svg_text(svg, right, below, "middle", "%d", axis->epochs); }
}

static void svg_epochs(FILE *svg, const struct axis *axis, const double *value, const struct line_style *line) {
    fprintf(svg, "<path fill=\"none\" stroke-width=\"2\" stroke=\"%s\" stroke-dasharray=\"%s\" d=\"", line->colour,
            line->dashes);
    for (int e = 0; e < axis->epochs; ++e) {
        double x = axis->left + axis->width * e / (axis->epochs > 1 ? axis->epochs - 1 : 1);
        fprintf(svg, "%c%.1f %.1f", e == 0 ? 'M' : 'L', x, axis_y(axis, value[e]));
    }
    fprintf(svg, "%s\"/>\n", axis->epochs > 1 ? "" : "h12"); /* of one epoch a dash */
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
    svg_begin(svg, 900, 310, by_head ? "Training by output layer" : "Training by attention function");
    fprintf(svg, "<g font-size=\"13\">\n");
    svg_axis(svg, &loss, by_head ? "training loss (each output layer has its own)" : "training loss");
    svg_axis(svg, &error, "share of test images misread");
    for (int i = 0; i < count; ++i) {
        int kind = by_head ? result[i].setup.output : result[i].setup.attention;
        const struct line_style *line =
            kind < FUNCTIONS ? function_line[kind] : &more_line[(size_t)i % (sizeof more_line / sizeof *more_line)];
        char name[32];
        snprintf(name, sizeof name, "%s", function_name[kind]);
        if (!by_head) { attention_name(name, &result[i].setup); }
        svg_epochs(svg, &loss, result[i].curve_loss, line);
        svg_epochs(svg, &error, result[i].curve_error, line);
        svg_key(svg, 742, error.top + 12 + 24 * i, line, name);
    }
    fprintf(svg, "</g>\n");
    svg_end(svg);
}

static void write_svgs(const char *directory, const struct result *result, int functions,
                       const struct result *head_result, int heads, const struct dataset *data, int epochs) {
    if (functions > 0) {
        svg_attention(file_open_in(directory, "digits_attention.svg"), result, functions, data);
        svg_training(file_open_in(directory, "digits_training.svg"), result, functions, 0, epochs);
    }
    if (heads > 0) { svg_training(file_open_in(directory, "digits_heads.svg"), head_result, heads, 1, epochs); }
    files_keep();
}

/* ==== studies ===================================================================================================== */

/* One question of the papers, as rows of a table. The other rows are compared with the first one. */
enum { STUDY_TEMPERATURE, STUDY_TERMS, STUDY_WHERE, STUDY_DEPTH, STUDY_EXPLANATIONS, STUDIES, STUDY_ROWS = 8 };
static const char *const study_name[] = {"temperature", "terms", "where", "depth", "explanations"};

struct study {
    int rows, seeds; /* seeds: the default, which ends within five minutes */
    char label[STUDY_ROWS][48];
    struct setup setup[STUDY_ROWS];
};

static struct setup *study_add(struct study *s, const struct setup *base, const char *label) {
    snprintf(s->label[s->rows], sizeof s->label[0], "%s", label);
    s->setup[s->rows] = *base;
    return &s->setup[s->rows++];
}

/* `base` sets everything that the question leaves open; its attention and output are softmax. */
static struct study study_of(int question, const struct setup *base) {
    static const double temperature[] = {1, 0.1, 0.5, 2, 10};
    static const char *const term_label[] = {"", "term b", "term d", "both terms"};
    struct study s = {.seeds = 10};
    char label[48];
    switch (question) {
    case STUDY_TEMPERATURE:
        for (size_t i = 0; i < sizeof temperature / sizeof *temperature; ++i) {
            snprintf(label, sizeof label, "softmax, temperature %g", temperature[i]);
            study_add(&s, base, label)->temperature = temperature[i];
        }
        study_add(&s, base, "softmax, learned")->learn_heat = 1;
        study_add(&s, base, "multimax")->attention = MULTIMAX;
        break;
    case STUDY_TERMS:
        study_add(&s, base, "softmax");
        for (int order = 1; order <= 2; ++order) {
            for (int terms = TERMS_B; terms <= TERMS_BD; ++terms) {
                snprintf(label, sizeof label, "order %d, %s", order, term_label[terms]);
                struct setup *setup = study_add(&s, base, label);
                setup->attention = MULTIMAX;
                setup->order = order;
                setup->terms = terms;
            }
        }
        break;
    case STUDY_WHERE:
        study_add(&s, base, "softmax");
        study_add(&s, base, "multimax in the output")->output = MULTIMAX;
        study_add(&s, base, "multimax in the attention")->attention = MULTIMAX;
        study_add(&s, base, "multimax in both")->attention = MULTIMAX;
        s.setup[s.rows - 1].output = MULTIMAX;
        break;
    case STUDY_EXPLANATIONS:
        s.seeds = 5;
        for (int f = 0; f < FUNCTIONS; ++f) { study_add(&s, base, function_name[f])->attention = f; }
        break;
    default:
        s.seeds = 5;
        for (int layers = 1; layers <= MAX_LAYERS; layers *= 2) {
            for (int i = 0; i < 2; ++i) {
                snprintf(label, sizeof label, "%d layer%s, %s", layers, layers > 1 ? "s" : "", function_name[i]);
                struct setup *setup = study_add(&s, base, label);
                setup->layers = layers;
                setup->attention = i == 0 ? SOFTMAX : MULTIMAX;
            }
        }
        break;
    }
    return s;
}

static void print_spread(const double *measure, const double *from, int seeds, double factor, int decimals) {
    struct spread s = spread_of(measure, from, seeds);
    printf(from != NULL ? "%+8.*f" : "%8.*f", decimals, factor * s.mean);
    if (seeds > 1) {
        printf("%7.*f", decimals, factor * s.std);
    } else {
        printf("%7s", "-");
    }
}

/* Trains row by row, for Table 1 of the TanhMax paper. */
static void run_explanations(struct trainer *t, const struct study *study, int seeds) {
    struct result *result = allocate(1, sizeof *result);
    t->explains = 1;
    printf("\n           test accuracy     weights and gradients      weights and occlusion      change of the output"
           "\n                 %%           Kendall's tau   p < .01    Kendall's tau   p < .01    permuted       random"
           "\n            mean    std       mean    std      mean       mean    std      mean    mean    std    mean   "
           " std\n");
    for (int r = 0; r < study->rows; ++r) {
        double(*measure)[MAX_SEEDS] = result->measure + EXPLAINED;
        train(t, result, &study->setup[r], seeds);
        printf("%-9s", study->label[r]);
        print_spread(result->measure[ACCURACY], NULL, seeds, 100, 2);
        for (int m = BY_GRADIENT; m <= BY_OCCLUSION; m += BY_OCCLUSION - BY_GRADIENT) {
            printf("  ");
            print_spread(measure[m], NULL, seeds, 1, 3);
            printf("%8.0f %%", 100 * seed_mean(result, EXPLAINED + m + 1, seeds));
        }
        print_spread(measure[PERMUTED], NULL, seeds, 1, 3);
        print_spread(measure[RANDOM], NULL, seeds, 1, 3);
        printf("\n");
        fflush(stdout);
    }
    free(result);
}

/* Trains row by row. The next rows are compared with row `compared`, seed by seed. */
static void run_study(struct trainer *t, const struct study *study, int question, int seeds) {
    struct result *result = allocate((size_t)study->rows, sizeof *result);
    printf("\n                           test accuracy   %s       sparsity    multi-modality   weights"
           "\n                                 %%               %%                                 that are 0"
           "\n                            mean    std    mean    std    mean    std    mean    std       mean\n",
           question == STUDY_DEPTH ? "vs softmax" : "vs row one");
    for (int r = 0; r < study->rows; ++r) {
        double(*measure)[MAX_SEEDS] = result[r].measure;
        int compared = question == STUDY_DEPTH ? r - r % 2 : 0;
        train(t, &result[r], &study->setup[r], seeds);
        printf("%-25s", study->label[r]);
        print_spread(measure[ACCURACY], NULL, seeds, 100, 2);
        if (r == compared) {
            printf("%15s", "");
        } else {
            print_spread(measure[ACCURACY], result[compared].measure[ACCURACY], seeds, 100, 2);
        }
        print_spread(measure[SPARSITY], NULL, seeds, 1, 3);
        print_spread(measure[MULTIMODALITY], NULL, seeds, 1, 3);
        printf("%9.1f %%\n", 100 * seed_mean(&result[r], ZEROS, seeds));
        fflush(stdout);
    }
    for (int r = 0; r < study->rows; ++r) {
        const struct setup *setup = &study->setup[r];
        if (setup->learn_heat) {
            printf("\n%s\n", study->label[r]);
            print_layers(&result[r], seeds, HEAT);
        }
        if (setup->learn_alpha) {
            printf("\n%s\n", study->label[r]);
            print_layers(&result[r], seeds, ALPHA);
        }
        if (question == STUDIES && setup->attention == MULTIMAX) {
            printf("\nMultiMax parameters, learned from the identity (t = 1, b = d = 0)\n");
            print_parameters(&result[r], 0, seeds);
        }
        if (question == STUDIES && setup->output == MULTIMAX) {
            printf("\nMultiMax parameters of the output layer (layer %d)\n", setup->layers + 1);
            print_parameters(&result[r], 1, seeds);
        }
    }
    free(result);
}

/* ==== main ======================================================================================================== */

static const char usage[] =
    "usage: train_digits [options]\n"
    "\n"
    "Trains a two-layer transformer on 1,437 images of digits and tests it on 360 others: first with each attention\n"
    "function (output layer: softmax), then with each output layer (attention: softmax).\n"
    "\n"
    "  --function LIST  attention functions, separated by commas: softmax, multimax (order 2), evsoftmax, sparsemax,\n"
    "                   entmax15, tanhmax, topk:K, entmax:ALPHA, entmax:learned, sigsoftmax, sparsehourglass:Q; or "
    "all\n"
    "                   (the first six, default), or none\n"
    "  --head NAME      output layer: softmax, multimax, evsoftmax, sparsemax, entmax15, all (default) or none\n"
    "  --svg DIR        write digits_attention.svg, digits_training.svg and digits_heads.svg to DIR\n"
    "\n"
    "Or trains one model:\n"
    "\n"
    "  --attention NAME, --output NAME   its attention and output layer (softmax)\n"
    "\n"
    "Or answers one question of the papers with 10 seeds (depth, explanations: 5) in less than five minutes:\n"
    "\n"
    "  --study temperature   softmax at five temperatures and at a learned one\n"
    "  --study terms         each term of MultiMax alone and both, of order 1 and 2\n"
    "  --study where         MultiMax in the attention, the output layer, both\n"
    "  --study depth         softmax and MultiMax in 1, 2, 4 and 8 layers\n"
    "  --study explanations  do the last layer's attention weights tell which tokens matter? (one layer)\n"
    "\n"
    "Options for all of these:\n"
    "\n"
    "  --order N        order of MultiMax, 1 or 2 (2)\n"
    "  --terms T        trained terms of MultiMax: b (small scores), d (large scores) or bd (bd)\n"
    "  --temperature T  temperature of the attention, 0.01 to 100; or learned: one per layer, starting at 1 (1)\n"
    "  --layers N       number of layers, 1 to 8 (2)\n"
    "  --seeds N        train with seeds 1 to N and give means (3)\n"
    "  --epochs N       passes over the training images (7; 25 give half a point more of accuracy)\n"
    "  --smoothing A    label smoothing, 0 to 0.99 (0.1)\n"
    "  --mixup A        blend images and targets in pairs, with shares from Beta(A, A), 0 to 1 (0: none)\n"
    "  --data FILE      the images (examples/data/digits.csv)\n"
    "  --quick          the same as --seeds 1 --epochs 5\n"
    "  --help           this text\n"
    "\n"
    "evsoftmax is trained with epsilon 1e-6 and tested with epsilon 0. Sparsity and multi-modality are the metrics of\n"
    "the MultiMax paper: means over all rows of attention weights of the test images. Epsilon is the row's mean\n"
    "score, the reference of sparsity is 0.01, and sparsity uses the size of tanhmax's weights. Times are processor\n"
    "times of a training step and of the attention function in it, forward and backward. All other results are the\n"
    "same in every run.\n"
    "\n"
    "Explanations: the weight of a token is its mean over heads and queries. The gradient of a token is the norm of\n"
    "the gradient of the likeliest class's probability. The occlusion of a token is the loss of that probability\n"
    "when the attention masks the token; only here the signs of tanhmax count. The change of the output is half the\n"
    "sum of |p' - p|, the median of 100 trials. A trial permutes each row of weights, or draws it from 0 to 1\n"
    "(tanhmax: from -1 to 1) and keeps the sum of its sizes. All are means over the test images.\n"
    "\n"
    "Exit status 0, or 2 for a wrong option or file.\n";

enum { ALL = FUNCTIONS };

/* Indices into option_name; `given` has a bit for each. */
enum {
    FUNCTION,
    HEAD,
    SVG,
    ATTENTION,
    LAST_LAYER,
    STUDY,
    ORDER,
    TERMS,
    TEMPERATURE,
    DEPTH,
    SEEDS,
    EPOCHS,
    SMOOTHING,
    MIXUP,
    DATA,
    VALUED,
    QUICK = VALUED,
    OPTIONS
};
static const char *const option_name[] = {
    "--function",    "--head",   "--svg",   "--attention", "--output",    "--study", "--order", "--terms",
    "--temperature", "--layers", "--seeds", "--epochs",    "--smoothing", "--mixup", "--data",  "--quick"};

enum { MOST_CHOICES = 16 };
struct options {
    const char *data_path, *svg_directory;
    int functions, head;               /* functions: the number of choices; head: ALL, NONE or one */
    struct setup choice[MOST_CHOICES]; /* only the attention of each setup is used */
    int study, seeds, epochs;
    double smoothing, mixup;
    struct setup setup;
    unsigned given;
};

static int was_given(const struct options *o, int option) { return (o->given >> option & 1) != 0; }

static int kind_value(const char *option, const char *text, int kinds) {
    return strcmp(text, "all") == 0    ? ALL
           : strcmp(text, "none") == 0 ? NONE
                                       : word_value(option, text, function_name, kinds);
}

/* NAME, NAME:PARAMETER or entmax:learned */
static void read_attention(struct setup *setup, const char *option, const char *text) {
    const char *parameter;
    setup->attention = name_value(option, text, function_name, ALL_FUNCTIONS, &parameter);
    setup->learn_alpha = setup->attention == ENTMAX && parameter != NULL && strcmp(parameter, "learned") == 0;
    setup->parameter = parameter_value(option, function_name[setup->attention], setup->learn_alpha ? NULL : parameter);
}

static void read_choices(struct options *o, const char *option, const char *text) {
    o->functions = 0;
    if (strcmp(text, "none") == 0) { return; }
    while (strcmp(text, "all") == 0 && o->functions < FUNCTIONS) {
        o->choice[o->functions].attention = o->functions;
        ++o->functions;
    }
    while (o->functions < FUNCTIONS || strcmp(text, "all") != 0) {
        char name[32];
        size_t length = strcspn(text, ",");
        if (o->functions == MOST_CHOICES) { fail("%s takes %d functions at most", option, MOST_CHOICES); }
        snprintf(name, sizeof name, "%.*s", (int)length, text);
        read_attention(&o->choice[o->functions++], option, name);
        if (text[length] == '\0') { return; }
        text += length + 1;
    }
}

static void read_value(struct options *o, int which, const char *value) {
    static const char *const terms[] = {"b", "d", "bd"};
    const char *option = option_name[which];
    switch (which) {
    case FUNCTION: read_choices(o, option, value); break;
    case HEAD: o->head = kind_value(option, value, HEAD_KINDS); break;
    case SVG: o->svg_directory = value; break;
    case ATTENTION: read_attention(&o->setup, option, value); break;
    case LAST_LAYER: o->setup.output = word_value(option, value, function_name, HEAD_KINDS); break;
    case STUDY: o->study = word_value(option, value, study_name, STUDIES); break;
    case ORDER: o->setup.order = integer_value(option, value, 1, 2); break;
    case TERMS: o->setup.terms = TERMS_B + word_value(option, value, terms, 3); break;
    case TEMPERATURE:
        o->setup.learn_heat = strcmp(value, "learned") == 0;
        o->setup.temperature = o->setup.learn_heat ? 1 : number_value(option, value, 0.01, 100);
        break;
    case DEPTH: o->setup.layers = integer_value(option, value, 1, MAX_LAYERS); break;
    case SEEDS: o->seeds = integer_value(option, value, 1, MAX_SEEDS); break;
    case EPOCHS: o->epochs = integer_value(option, value, 1, MAX_EPOCHS); break;
    case SMOOTHING: o->smoothing = number_value(option, value, 0, 0.99); break;
    case MIXUP: o->mixup = number_value(option, value, 0, 1); break;
    default: o->data_path = value; break;
    }
    o->given |= 1u << which;
}

/* Refuses options that would have no effect. */
static void refuse_together(const struct options *o) {
    static const int varied[STUDIES] = {TEMPERATURE, TERMS, ATTENTION, DEPTH, ATTENTION};
    int single = was_given(o, ATTENTION) || was_given(o, LAST_LAYER);
    for (int i = FUNCTION; i <= LAST_LAYER; ++i) {
        if (was_given(o, STUDY) && was_given(o, i)) { fail("--study and %s exclude each other", option_name[i]); }
        if (single && i <= SVG && was_given(o, i)) {
            fail("%s belongs to the tables of all functions, not to the one model of --attention and --output",
                 option_name[i]);
        }
    }
    if (was_given(o, STUDY)) {
        int i = varied[o->study];
        i = i == TERMS && was_given(o, ORDER) ? ORDER : i;
        if (was_given(o, i)) { fail("--study %s varies %s itself", study_name[o->study], option_name[i]); }
    }
    for (int i = ORDER; i <= TERMS; ++i) {
        if (was_given(o, i) && single && o->setup.attention != MULTIMAX && o->setup.output != MULTIMAX) {
            fail("%s needs multimax as --attention or --output", option_name[i]);
        }
    }
}

static void read_options(struct options *o, int argc, char **argv) {
    const char *value;
    for (int i = 0, which; (which = next_option(argc, argv, &i, option_name, OPTIONS, VALUED, usage, &value)) >= 0;) {
        if (which == QUICK) {
            read_value(o, SEEDS, "1");
            read_value(o, EPOCHS, "5");
        } else {
            read_value(o, which, value);
        }
    }
    refuse_together(o);
}

static void print_title(const struct trainer *t, int seeds) {
    printf("%lu images for training, %lu for testing; %d seed(s), %d epoch(s), label smoothing %g, %s\n",
           (unsigned long)t->data.train_count, (unsigned long)(t->data.count - t->data.train_count), seeds, t->epochs,
           t->smoothing, mmax_isa_name(mmax_isa_active()));
}

/* One question as a table, or the one model of --attention and --output as a table of one row. */
static void studies(struct trainer *t, const struct options *o) {
    char name[80];
    struct study study = {.seeds = 3};
    name_of(name, &o->setup);
    if (o->study != NONE) {
        struct setup base = o->setup;
        base.layers = o->study == STUDY_EXPLANATIONS && !was_given(o, DEPTH) ? 1 : base.layers;
        study = study_of(o->study, &base);
    } else {
        study_add(&study, &o->setup, function_name[o->setup.attention]);
    }
    int seeds = was_given(o, SEEDS) ? o->seeds : study.seeds;
    int epochs = t->epochs + (o->study == STUDY_EXPLANATIONS ? EXPLAINING_EPOCHS : 0);
    for (int r = 0; r < study.rows; ++r) { t->layers += (double)seeds * epochs * layers_trained(&study.setup[r]); }
    print_title(t, seeds);
    if (o->study == NONE) { printf("%s\n", name); }
    if (o->study == STUDY_EXPLANATIONS) {
        run_explanations(t, &study, seeds);
    } else {
        run_study(t, &study, o->study == NONE ? STUDIES : o->study, seeds);
    }
}

static int wanted(int asked, int kind) { return asked == ALL || asked == kind; }

/* The result of an attention function, or NULL. */
static const struct result *result_of(const struct result *result, const struct options *o, int kind) {
    for (int i = 0; i < o->functions; ++i) {
        if (o->choice[i].attention == kind) { return &result[i]; }
    }
    return NULL;
}

/* The first table, with parameters and plots. */
static void attention_table(struct trainer *t, struct result *result, const struct options *o) {
    struct setup setup = o->setup;
    const struct result *learned;
    printf("\nattention            test accuracy                         weights      processor time per step\n"
           "function             mean      std   sparsity  multi-modality   that are 0       all    the function\n");
    for (int i = 0; i < o->functions; ++i) {
        setup.attention = o->choice[i].attention;
        setup.learn_alpha = o->choice[i].learn_alpha;
        setup.parameter = o->choice[i].parameter;
        train(t, &result[i], &setup, o->seeds);
        print_attention_row(&result[i], o->seeds);
    }
    for (int i = 0; i < o->functions; ++i) {
        if (o->choice[i].learn_alpha) {
            printf("\nentmax:learned, which starts at alpha 1.5\n");
            print_layers(&result[i], o->seeds, ALPHA);
        }
    }
    learned = result_of(result, o, MULTIMAX);
    if (learned != NULL) {
        printf("\nMultiMax parameters, learned from the identity (t = 1, b = d = 0)\n");
        print_parameters(learned, 0, o->seeds);
        printf("\nThe modulator sigma (o) and the identity (.) over the range of the scaled test scores, seed 1\n");
        print_modulators(learned);
    }
}

/* The second table; `known` is the result with the softmax output layer if the first table has it, or NULL. */
static void head_table(struct trainer *t, struct result *result, const struct result *known, const struct options *o) {
    int count = 0;
    struct setup setup = o->setup;
    printf("\noutput        test accuracy        training   classes with   images whose\n"
           "layer         mean      std           loss     weight > 0    class has 0\n");
    for (int h = 0; h < HEAD_KINDS; ++h) {
        if (wanted(o->head, h)) {
            if (h == SOFTMAX && known != NULL) {
                result[count] = *known;
            } else {
                setup.output = h;
                train(t, &result[count], &setup, o->seeds);
            }
            print_head_row(&result[count++], o->seeds, o->epochs);
        }
    }
    if (wanted(o->head, MULTIMAX)) {
        const struct result *learned = &result[count == 1 ? 0 : MULTIMAX];
        printf("\nMultiMax parameters of the output layer (layer %d)\n", setup.layers + 1);
        print_parameters(learned, 1, o->seeds);
    }
}

static void tables(struct trainer *t, const struct options *o) {
    struct result *result = allocate(MOST_CHOICES + HEAD_KINDS, sizeof *result), *head_result = result + MOST_CHOICES;
    int functions = o->functions;
    int heads = o->head == ALL ? HEAD_KINDS : o->head != NONE;
    const struct result *known = result_of(result, o, SOFTMAX);
    int new_heads = heads - (known != NULL && wanted(o->head, SOFTMAX));
    struct setup setup = o->setup;
    t->layers = new_heads * layers_trained(&setup);
    for (int i = 0; i < functions; ++i) {
        setup.attention = o->choice[i].attention;
        t->layers += layers_trained(&setup);
    }
    t->layers *= (double)o->seeds * o->epochs;
    print_title(t, o->seeds);
    if (functions > 0) { attention_table(t, result, o); }
    if (heads > 0) { head_table(t, head_result, known, o); }
    if (o->svg_directory != NULL) {
        write_svgs(o->svg_directory, result, functions, head_result, heads, &t->data, o->epochs);
    }
    free(result);
}

int main(int argc, char **argv) {
    struct trainer *t = allocate(1, sizeof *t);
    struct options o = {.data_path = "examples/data/digits.csv", .head = ALL, .study = NONE, .seeds = 3, .epochs = 7};
    o.smoothing = 0.1;
    o.setup = (struct setup){.order = 2, .terms = TERMS_BD, .layers = 2, .temperature = 1};
    read_choices(&o, "--function", "all");
    read_options(&o, argc, argv);
    t->smoothing = o.smoothing;
    t->mixup = o.mixup;
    t->epochs = o.epochs;
    trainer_start(t, o.data_path);
    if (o.svg_directory != NULL) { /* a wrong directory fails before the training */
        file_open_in(o.svg_directory, "digits_training.svg");
        files_drop();
    }
    if (was_given(&o, STUDY) || was_given(&o, ATTENTION) || was_given(&o, LAST_LAYER)) {
        studies(t, &o);
    } else {
        tables(t, &o);
    }
    flush_results();
    trainer_end(t);
    return 0;
}
