/*
 * oversmoothing.c: do tokens become alike from layer to layer, and does the attention function matter? The program
 * trains the transformer of digits.h with each function, and measures its tokens and attention weights on the test
 * images.
 *
 *     cc -O2 -Iinclude examples/oversmoothing.c -o oversmoothing -lm
 *     ./oversmoothing --help
 *
 * After Figures 4, 5, 8, 9 of the MultiMax paper (Zhou, Fritz, Keuper, ICML 2024) and Figure 4 of the TanhMax paper.
 * In order: measures, table, figures, main.
 */
#define PROGRAM "oversmoothing"
#include "digits.h"

/* ==== measures ==================================================================================================== */

/* The kinds of models: six functions, and softmax with two remedies against tokens that become alike. */
enum { ATTN_SCALE = FUNCTIONS, DIVERSIFY, KINDS };
static const char *const kind_name[KINDS] = {"softmax",  "multimax", "evsoftmax", "sparsemax",
                                             "entmax15", "tanhmax",  "attnscale", "diversify"};

enum { MAX_SEEDS = 20, MAX_EPOCHS = 200 };
enum { SIMILARITY, DISTANCE, RESIDUAL, ROLLOUT, MEASURES };

struct result {                                          /* results of one kind */
    double measure[MEASURES][MAX_LAYERS + 1][MAX_SEEDS]; /* layer 0: the tokens before the first layer */
    struct histogram weights[MAX_LAYERS + 1];            /* means over the seeds */
    double accuracy[MAX_SEEDS];                          /* in % */
};

static void measure_image(const struct trainer *t, struct result *result, size_t image, int seed, int seeds) {
    double share = 1 / (double)(t->data.count - t->data.train_count), rollout[SQUARE] = {0};
    for (size_t i = 0; i < TOKENS; ++i) { rollout[i * TOKENS + i] = 1; }
    for (size_t l = 0; l <= (size_t)t->model.setup.layers; ++l) {
        const float *tokens = t->work.stack.tokens[l] + image * TOKENS * WIDTH;
        result->measure[SIMILARITY][l][seed - 1] += share * patch_similarity(tokens, TOKENS, WIDTH);
        result->measure[DISTANCE][l][seed - 1] += share * mean_average_distance(tokens, TOKENS, WIDTH);
        result->measure[RESIDUAL][l][seed - 1] += share * collapse_residual(tokens, TOKENS, WIDTH);
        if (l > 0) {
            const float *weight = t->work.stack.layer[l - 1].weight + image * HEADS * SQUARE;
            result->measure[ROLLOUT][l][seed - 1] += share * roll_out(rollout, weight, HEADS, TOKENS);
            histogram_add(&result->weights[l], weight, HEADS * SQUARE, share / seeds / (HEADS * SQUARE));
        }
    }
}

static int is_right(const struct workspace *work, size_t image) {
    const float *x = work->logit + image * CLASSES;
    int best = 0;
    for (int c = 1; c < CLASSES; ++c) { best = x[c] > x[best] ? c : best; }
    return best == work->label[image];
}

static void train_and_measure(struct trainer *t, struct result *result, const struct setup *setup, const char *name,
                              int seeds) {
    for (int seed = 1; seed <= seeds; ++seed) {
        train_start(t, setup, seed);
        for (int epoch = 0; epoch < t->epochs; ++epoch) {
            double loss = train_epoch(t);
            progress(t, name, seed, loss);
        }
        for (size_t i = 0, n; (n = forward_test_images(t, i)) > 0; i += n) {
            for (size_t image = 0; image < n; ++image) {
                measure_image(t, result, image, seed, seeds);
                result->accuracy[seed - 1] += is_right(&t->work, image);
            }
        }
        result->accuracy[seed - 1] *= 100 / (double)(t->data.count - t->data.train_count);
    }
    progress_end();
}

/* ==== table ======================================================================================================= */

static struct spread spread_at(const struct result *result, int measure, int layer, int seeds) {
    return spread_of(result->measure[measure][layer], NULL, seeds);
}

static void print_spread(struct spread s, int seeds) {
    printf("  %6.3f ", s.mean);
    if (seeds > 1) {
        printf("%5.3f", s.std);
    } else {
        printf("%5s", "-");
    }
}

static void print_result(const struct result *result, const char *name, int layers, int seeds) {
    for (int l = 0; l <= layers; ++l) {
        printf("%-10s %4d ", l == 0 ? name : "", l);
        for (int m = 0; m < ROLLOUT; ++m) { print_spread(spread_at(result, m, l, seeds), seeds); }
        if (l > 0) {
            const struct histogram *h = &result->weights[l];
            printf("%7.1f %7.1f %7.1f", 100 * h->zero, 100 * share_below(h, -3), 100 * (1 - share_below(h, -1)));
            print_spread(spread_at(result, ROLLOUT, l, seeds), seeds);
        }
        printf("\n");
    }
    struct spread right = spread_of(result->accuracy, NULL, seeds);
    printf("%-10s test accuracy %.2f", name, right.mean);
    printf(seeds > 1 ? " +- %.2f %%\n" : " %%\n", right.std);
    fflush(stdout);
}

/* ==== figures ===================================================================================================== */

/* SoftMax is drawn first, with a wide line: others often lie on it. */
static const struct line_style wide_line = {INK, "none", "5"};
static const struct line_style *const line[KINDS] = {&wide_line,     &multimax_line, &evsoftmax_line, &sparsemax_line,
                                                     &entmax15_line, &tanhmax_line,  &more_line[2],   &more_line[3]};

struct drawing {
    const struct result *result; /* [kind], for the kinds in `drawn` */
    const int *drawn;
    int layers, seeds;
};

static const char *const shown_name[KINDS] = {"SoftMax",    "MultiMax", "EvSoftMax", "SparseMax",
                                              "EntMax-1.5", "TanhMax",  "AttnScale", "diversified"};

enum { LEFT = 64, TOP = 104, KEY_WIDTH = 200, FIGURE_WIDTH = 864, CELL = 96, CELL_PITCH = 116 };

/* Two rows of keys. */
static void svg_keys(FILE *svg, const struct drawing *d) {
    int count = 0;
    for (int f = 0; f < KINDS; ++f) {
        if (d->drawn[f]) {
            svg_key(svg, LEFT + KEY_WIDTH * (count % 4), 46 + 22 * (count / 4), line[f], shown_name[f]);
            ++count;
        }
    }
}

/* Means over the seeds from layer `first` on; whiskers are standard deviations. */
static void svg_by_layer(FILE *svg, const struct panel *panel, const struct drawing *d, int f, int measure, int first) {
    double x[MAX_LAYERS + 1], y[MAX_LAYERS + 1];
    for (int l = first; l <= d->layers; ++l) {
        struct spread s = spread_at(&d->result[f], measure, l, d->seeds);
        x[l] = l;
        y[l] = s.mean;
        fprintf(svg, "<path stroke=\"%s\" stroke-width=\"1.5\" d=\"", line[f]->colour);
        svg_point(svg, 'M', panel_x(panel, l), panel_y(panel, s.mean - s.std));
        svg_point(svg, 'L', panel_x(panel, l), panel_y(panel, s.mean + s.std));
        fprintf(svg, "\"/>\n");
    }
    svg_curve(svg, panel, line[f], x + first, y + first, 1, (size_t)(d->layers - first + 1));
}

/* The least multiple of `step` that is not below the measure. */
static double top_of(const struct drawing *d, int measure, double step) {
    double most = 0;
    for (int f = 0; f < KINDS; ++f) {
        for (int l = 0; l <= d->layers && d->drawn[f]; ++l) {
            struct spread s = spread_at(&d->result[f], measure, l, d->seeds);
            most = fmax(most, s.mean + s.std);
        }
    }
    return step * ceil(fmax(most, step) / step - 1e-9);
}

/* A row of panels for each measure, a column for each function; SoftMax is in all of them. */
static void draw_by_layer(FILE *svg, const struct drawing *d, int measure, int rows, const char *title) {
    static const char *const name[] = {"similarity", "distance (MAD)", "residual", "Frobenius norm"};
    const int first = measure == ROLLOUT, bottom = TOP + CELL_PITCH * rows;
    int others = 0;
    double step[2] = {2, first ? 1 : 0.5};
    for (int f = 0; f < KINDS; ++f) { others += f != SOFTMAX && d->drawn[f]; }
    svg_begin(svg, FIGURE_WIDTH + 20, bottom + 40, title);
    svg_text(svg, LEFT, 26, "start", "%s: means of %d seed%s%s", title, d->seeds, d->seeds > 1 ? "s" : "",
             d->seeds > 1 ? ", whiskers: &#177; std" : "");
    if (d->drawn[SOFTMAX]) { svg_key(svg, LEFT, 52, line[SOFTMAX], "SoftMax"); }
    for (int row = 0; row < rows; ++row) {
        int column = 0, m = measure + row, last = row + 1 == rows;
        double top = TOP + CELL_PITCH * row;
        for (int f = 0; f < KINDS; ++f) {
            struct panel panel = {LEFT + CELL_PITCH * column, top, CELL, CELL, {first, 0}, {0, top_of(d, m, step[1])}};
            panel.high[0] = d->layers > first ? d->layers : first + 1;
            if (!d->drawn[f] || (f == SOFTMAX && others)) { continue; }
            svg_grid(svg, &panel, step, last, column == 0);
            if (d->drawn[SOFTMAX]) { svg_by_layer(svg, &panel, d, SOFTMAX, m, first); }
            svg_by_layer(svg, &panel, d, f, m, first);
            if (row == 0) { svg_text(svg, panel.left + CELL / 2, TOP - 10, "middle", "%s", shown_name[f]); }
            if (last) { svg_text(svg, panel.left + CELL / 2, bottom + 26, "middle", "layer"); }
            ++column;
        }
        svg_vertical(svg, 20, top + CELL / 2, name[m]);
    }
    svg_end(svg);
}

/* The text of 10 to the power */
static void svg_power(FILE *svg, double x, double y, const char *anchor, int power) {
    if (power == 0) {
        svg_text(svg, x, y, anchor, "1");
    } else {
        svg_text(svg, x, y, anchor, "10<tspan dy=\"-6\" font-size=\"11\">&#8722;%d</tspan>", -power);
    }
}

/* Zeros are separate, left of the logarithmic axis. */
enum { COLUMNS = 3, PITCH_X = 270, PITCH_Y = 216, ZERO = -DECADES - 2, RAREST = -6 };

static void svg_weight_axes(FILE *svg, const struct panel *p, int cumulative, int with_x, int with_y) {
    double right = p->left + p->width, bottom = p->top + p->height;
    for (double y = p->low[1]; y <= p->high[1]; y += cumulative ? 0.25 : 2) {
        svg_line(svg, "grid", p->left, panel_y(p, y), right, panel_y(p, y));
        if (with_y && cumulative) {
            svg_text(svg, p->left - 8, panel_y(p, y) + 5, "end", "%g", y);
        } else if (with_y) {
            svg_power(svg, p->left - 8, panel_y(p, y) + 5, "end", (int)y);
        }
    }
    for (int x = ZERO; x <= 0; x += 2) {
        svg_line(svg, "grid", panel_x(p, x), p->top, panel_x(p, x), bottom);
        if (with_x && x == ZERO) {
            svg_text(svg, panel_x(p, x), bottom + 20, "middle", "0");
        } else if (with_x && x % 4 == 0) {
            svg_power(svg, panel_x(p, x), bottom + 20, "middle", x);
        }
    }
}

static double logarithm(double share) { return fmax(log10(fmax(share, 1e-30)), RAREST); }

/* The shares of one layer's weights in bins, or their sums up to the end of each bin. A dash shows the zeros. */
static void svg_shares(FILE *svg, const struct panel *p, const struct histogram *h, const struct line_style *style,
                       int cumulative) {
    double x[BINS], y[BINS], sum = h->zero;
    double dash[2] = {ZERO - 0.35, ZERO + 0.35}, zero = cumulative ? sum : logarithm(sum), level[2] = {zero, zero};
    for (int bin = 0; bin < BINS; ++bin) {
        sum += h->bin[bin];
        x[bin] = -DECADES + (bin + (cumulative ? 1 : 0.5)) / BINS_A_DECADE;
        y[bin] = cumulative ? sum : logarithm(h->bin[bin]);
    }
    svg_curve(svg, p, style, x, y, 1, BINS);
    if (h->zero > 0) {
        struct line_style whole = {style->colour, "none", style->width};
        svg_curve(svg, p, &whole, dash, level, 1, 2);
    }
}

/* One panel per layer. */
static void draw_weights(FILE *svg, const struct drawing *d, int cumulative, const char *title, const char *axis) {
    int rows = (d->layers + COLUMNS - 1) / COLUMNS, bottom = TOP + PITCH_Y * rows;
    svg_begin(svg, FIGURE_WIDTH, bottom + 34, title);
    svg_text(svg, LEFT, 26, "start", "%s", title);
    svg_keys(svg, d);
    for (int l = 1; l <= d->layers; ++l) {
        int column = (l - 1) % COLUMNS, row = (l - 1) / COLUMNS;
        struct panel panel = {LEFT + PITCH_X * column, TOP + 8 + PITCH_Y * row, 236, 172, {ZERO - 0.5, 0}, {0, 1}};
        if (!cumulative) {
            panel.low[1] = RAREST;
            panel.high[1] = 0;
        }
        svg_weight_axes(svg, &panel, cumulative, l + COLUMNS > d->layers, column == 0);
        for (int f = 0; f < KINDS; ++f) {
            if (d->drawn[f]) { svg_shares(svg, &panel, &d->result[f].weights[l], line[f], cumulative); }
        }
        svg_text(svg, panel.left + 4, panel.top - 5, "start", "layer %d", l);
    }
    svg_text(svg, FIGURE_WIDTH / 2, bottom + 20, "middle", "%s", axis);
    svg_vertical(svg, 16, TOP + 94, "share of weights");
    svg_end(svg);
}

static void draw_histogram(FILE *svg, const struct drawing *d) {
    draw_weights(svg, d, 0, "Attention weights of each layer: their shares in bins of a quarter of a decade",
                 "size of the weight; 0 is separate, the first bin includes smaller weights");
}

static void draw_cumulative(FILE *svg, const struct drawing *d) {
    draw_weights(svg, d, 1, "Attention weights of each layer: the share of weights up to a threshold",
                 "threshold for the size of the weight; 0 is separate");
}

static void write_figures(const char *directory, const struct drawing *d) {
    draw_by_layer(file_open_in(directory, "tokens.svg"), d, 0, ROLLOUT, "Similarity of tokens after each layer");
    draw_histogram(file_open_in(directory, "histogram.svg"), d);
    draw_cumulative(file_open_in(directory, "cumulative.svg"), d);
    draw_by_layer(file_open_in(directory, "rollout.svg"), d, ROLLOUT, 1,
                  "Distance of the attention rollout from the layer's own attention");
    files_keep();
}

/* ==== main ======================================================================================================== */

static const char usage[] =
    "usage: oversmoothing [options]\n"
    "\n"
    "Trains a transformer on 1,437 images of digits with each attention function. Measures on 360 others, layer by\n"
    "layer, how alike the tokens of an image are and how the attention weights are distributed. Takes four minutes.\n"
    "\n"
    "  --function NAME  softmax, multimax, evsoftmax, sparsemax, entmax15, tanhmax; or softmax with attnscale or\n"
    "                   diversify; or all (all). attnscale: weights are y + lambda (y - 1/n), each head learns its\n"
    "                   lambda. diversify: the patch similarity after the last layer is added to the loss.\n"
    "  --diversify A    factor of this similarity (1)\n"
    "  --layers N       number of layers, 1 to 8 (6)\n"
    "  --seeds N        train with seeds 1 to N; print mean and standard deviation (3)\n"
    "  --epochs N       passes over the training images (7)\n"
    "  --data FILE      the images (examples/data/digits.csv)\n"
    "  --svg DIR        write tokens.svg, histogram.svg, cumulative.svg and rollout.svg to DIR\n"
    "  --help           this text\n"
    "\n"
    "  similarity   mean |cosine| of two tokens after the layer (layer 0: before the first): 1 if all are parallel\n"
    "  MAD          mean cosine distance of two tokens that are not parallel\n"
    "  residual     |X - mean token| / |X|, norm sqrt(|.|_1 |.|_inf): 0 if all tokens are equal\n"
    "  weights      share of weights that are 0, below 0.001, above 0.1 (tanhmax: by size)\n"
    "  rollout      |R - A|, Frobenius: A = (mean of the heads + identity) / row sum, R = A R of the layer before\n"
    "               (tanhmax: by size)\n"
    "\n"
    "All results are the same in every run. Exit status 0, or 2 for a wrong option or file.\n";

struct options {
    const char *data_path, *svg_directory;
    int function, layers, seeds, epochs; /* function: KINDS is all */
    double diversify;
};

static void read_options(struct options *o, int argc, char **argv) {
    for (int i = 1; i < argc; ++i) {
        const char *v;
        if ((v = option_value(argc, argv, &i, "--function")) != NULL) {
            o->function = strcmp(v, "all") == 0 ? KINDS : word_value("--function", v, kind_name, KINDS);
        } else if ((v = option_value(argc, argv, &i, "--layers")) != NULL) {
            o->layers = integer_value("--layers", v, 1, MAX_LAYERS);
        } else if ((v = option_value(argc, argv, &i, "--seeds")) != NULL) {
            o->seeds = integer_value("--seeds", v, 1, MAX_SEEDS);
        } else if ((v = option_value(argc, argv, &i, "--epochs")) != NULL) {
            o->epochs = integer_value("--epochs", v, 1, MAX_EPOCHS);
        } else if ((v = option_value(argc, argv, &i, "--diversify")) != NULL) {
            o->diversify = number_value("--diversify", v, 0, 1000);
        } else if ((v = option_value(argc, argv, &i, "--data")) != NULL) {
            o->data_path = v;
        } else if ((v = option_value(argc, argv, &i, "--svg")) != NULL) {
            o->svg_directory = v;
        } else if (strcmp(argv[i], "--help") == 0) {
            print_help(usage);
        } else {
            fail("there is no option '%s'; see --help", argv[i]);
        }
    }
}

int main(int argc, char **argv) {
    struct options o = {"examples/data/digits.csv", NULL, KINDS, 6, 3, 7, 1};
    struct trainer *t = allocate(1, sizeof *t);
    struct result *result = allocate(KINDS, sizeof *result);
    int drawn[KINDS] = {0};
    read_options(&o, argc, argv);
    trainer_start(t, o.data_path);
    t->smoothing = 0.1;
    t->epochs = o.epochs;
    t->layers = (double)o.layers * o.seeds * o.epochs * (o.function == KINDS ? KINDS : 1);
    if (o.svg_directory != NULL) { /* a wrong directory fails before the training */
        file_open_in(o.svg_directory, "tokens.svg");
        files_drop();
    }
    printf("%d layers, %d seed(s), %d epoch(s): means over the test images, and standard deviations over the seeds\n\n"
           "                   similarity            MAD       residual    weights in %%                  rollout\n"
           "function  layer    mean   std    mean   std    mean   std      0  <0.001    >0.1    mean   std\n",
           o.layers, o.seeds, o.epochs);
    for (int f = 0; f < KINDS; ++f) {
        struct setup setup = {.order = 2, .terms = TERMS_BD, .layers = o.layers, .temperature = 1};
        setup.attention = f < FUNCTIONS ? f : SOFTMAX;
        setup.attn_scale = f == ATTN_SCALE;
        setup.diversify = f == DIVERSIFY ? o.diversify : 0;
        if (o.function == KINDS || o.function == f) {
            drawn[f] = 1;
            train_and_measure(t, &result[f], &setup, kind_name[f], o.seeds);
            print_result(&result[f], kind_name[f], o.layers, o.seeds);
        }
    }
    if (o.svg_directory != NULL) {
        struct drawing d = {result, drawn, o.layers, o.seeds};
        write_figures(o.svg_directory, &d);
    }
    flush_results();
    free(result);
    trainer_end(t);
    return 0;
}
