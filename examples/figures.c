/*
 * figures.c: draws figures after those of the MultiMax paper with multimax.h, as SVG files.
 *
 *     cc -O2 -Iinclude examples/figures.c -o figures -lm
 *     ./figures --svg .
 *
 * The paper is Zhou, Fritz, Keuper, "MultiMax: Sparse and Multi-Modal Attention Learning", ICML 2024. Tables 7 and 8
 * have its learned parameters. The paper does not say which inputs and which layer Figures 1 and 2 use; this file
 * chooses them. All numbers come from the library, in double.
 *
 * In order: data, functions, the figures, files, main. Drawing itself is in common.h.
 */
#define PROGRAM "figures"
#include "common.h"

/* ==== data ======================================================================================================== */

enum { VISION_LAYERS = 12, LANGUAGE_LAYERS = 6, HIDDEN_LAYER = 10 };

struct learned {
    mmax_multimax_params vision[VISION_LAYERS], language[LANGUAGE_LAYERS];
};

/* Reads a layer and its parameters, in the order of the tables' header line. */
static int parse_layer(mmax_multimax_params *p, const char *line, size_t layer) {
    enum { COLUMNS = 9 };
    double v[COLUMNS];
    for (int i = 0; i < COLUMNS; ++i) {
        char *end;
        v[i] = strtod(line, &end);
        if (end == line || !(fabs(v[i]) < 1e6) || (i + 1 < COLUMNS && *end != ',')) { return 0; }
        line = end + (*end == ',');
    }
    *p = mmax_multimax_identity(2);
    for (int n = 0; n < 2; ++n) {
        p->t_b[n] = v[1 + 2 * n];
        p->t_d[n] = v[2 + 2 * n];
        p->b[n] = v[5 + 2 * n];
        p->d[n] = v[6 + 2 * n];
    }
    return v[0] == (double)layer && line[strspn(line, " \t\r\n")] == '\0';
}

static void read_table(mmax_multimax_params *p, size_t layers, const char *directory, const char *name) {
    static const char header[] = "layer,t_b1,t_d1,t_b2,t_d2,b1,d1,b2,d2";
    char *path = join(directory, "/", name), line[256];
    FILE *file = fopen(path, "r");
    if (file == NULL) { fail("cannot open '%s': %s (--data names its directory)", path, strerror(errno)); }
    if (fgets(line, sizeof line, file) == NULL || strncmp(line, header, strlen(header)) != 0 ||
        line[strlen(header) + strspn(line + strlen(header), "\r\n")] != '\0') {
        fail("'%s' does not begin with %s", path, header);
    }
    for (size_t l = 0; l < layers; ++l) {
        if (fgets(line, sizeof line, file) == NULL || !parse_layer(&p[l], line, l + 1)) {
            fail("'%s', line %lu: not layer %lu and its eight parameters", path, (unsigned long)l + 2,
                 (unsigned long)l + 1);
        }
    }
    if (fgets(line, sizeof line, file) != NULL) { fail("'%s' has more than %lu layers", path, (unsigned long)layers); }
    fclose(file);
    free(path);
}

/* ==== functions =================================================================================================== */

enum { SOFTMAX, EVSOFTMAX, ENTMAX15, SPARSEMAX, MULTIMAX, FUNCTIONS };

/* Markers differ, too. */
static const struct style {
    const char *name;
    const struct line_style *line;
    const char *marker; /* a path around its centre */
} style[FUNCTIONS] = {
    {"SoftMax", &softmax_line, "m-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0z"},
    {"EvSoftMax", &evsoftmax_line, "m0-7.5l7 12h-14z"},
    {"EntMax-1.5", &entmax15_line, "m0-5.5l5.5 5.5-5.5 5.5-5.5-5.5z"},
    {"SparseMax", &sparsemax_line, "m-7-7h14v14h-14z"},
    {"MultiMax", &multimax_line,
     "m0-11l2.73 7.25 7.73.35-6.05 4.83 2.06 7.47-6.47-4.26-6.47 4.26 2.06-7.47-6.05-4.83 7.73-.35z"}};

static void apply(double *y, const double *x, int function, const mmax_multimax_params *p, mmax_shape s) {
    switch (function) {
    case SOFTMAX: check(mmax_softmax_f64(y, x, s)); break;
    case EVSOFTMAX: check(mmax_evsoftmax_f64(y, x, 0, s)); break;
    case ENTMAX15: check(mmax_entmax15_f64(y, x, s)); break;
    case SPARSEMAX: check(mmax_sparsemax_f64(y, x, s)); break;
    default: check(mmax_multimax_f64(y, x, p, s)); break;
    }
}

/* The marker of SparseMax is hollow: others often lie in the same place. */
static void svg_marker(FILE *svg, double x, double y, int function) {
    const struct style *s = &style[function];
    if (function == SPARSEMAX) {
        fprintf(svg, "<path stroke=\"%s\" stroke-width=\"2.5\" d=\"", s->line->colour);
    } else {
        fprintf(svg, "<path class=\"edge\" fill=\"%s\" d=\"", s->line->colour);
    }
    svg_point(svg, 'M', x, y);
    fprintf(svg, "%s\"/>\n", s->marker);
}

/* ==== figures 1a and 1b: SoftMax at all temperatures, the others at one =========================================== */

/* Two large entries, which should share the weight, and a negative one, which should have none. */
enum { INPUTS = 4, ENTRIES = 3, STEPS = 72 };
static const double input[INPUTS][ENTRIES] = {{2, 0.9, -0.5}, {2, 1.4, -0.5}, {1.4, 2, -0.5}, {0.9, 2, -0.5}};

#define COLDEST 0.05
#define HOTTEST 20.0

static double temperature(int step) { return COLDEST * pow(HOTTEST / COLDEST, (double)step / STEPS); }

/* Colours from the coldest (0) to the hottest (STEPS) become lighter, so that colour-blind readers see the order. */
static const int stop[3][3] = {{0x5a, 0x4f, 0xcf}, {0xc2, 0x50, 0x8f}, {0xe0, 0x8a, 0x1e}};

static void temperature_stroke(FILE *svg, int step) {
    const int *from = stop[2 * step / STEPS % 2], *to = from + 3;
    int part = step % (STEPS / 2), all = STEPS / 2;
    fprintf(svg, "<path stroke-width=\"2.5\" stroke-linecap=\"round\" stroke=\"#");
    for (int i = 0; i < 3; ++i) { fprintf(svg, "%02x", (unsigned)((from[i] * (all - part) + to[i] * part) / all)); }
    fprintf(svg, "\" d=\"");
}

static mmax_shape inputs_at(double t) {
    mmax_shape s = mmax_rows(INPUTS, ENTRIES);
    s.scale = 1 / t;
    return s;
}

static void softmax_at(double y[INPUTS][ENTRIES], double t) { check(mmax_softmax_f64(y[0], input[0], inputs_at(t))); }

/* A bar that shows the temperature of each colour. */
static void svg_temperatures(FILE *svg, double x, double y, double height) {
    static const double value[] = {0.05, 0.2, 1, 5, 20};
    fprintf(svg, "<linearGradient id=\"temperature\" x1=\"0\" y1=\"1\" x2=\"0\" y2=\"0\">");
    for (int i = 0; i < 3; ++i) {
        fprintf(svg, "<stop offset=\"%g\" stop-color=\"#%02x%02x%02x\"/>", i / 2.0, (unsigned)stop[i][0],
                (unsigned)stop[i][1], (unsigned)stop[i][2]);
    }
    fprintf(svg, "</linearGradient>\n<rect x=\"%g\" y=\"%g\" width=\"14\" height=\"%g\" fill=\"url(#temperature)\"/>\n",
            x, y, height);
    svg_text(svg, x, y - 28, "start", "SoftMax,");
    svg_text(svg, x, y - 11, "start", "temperature t");
    for (size_t i = 0; i < sizeof value / sizeof *value; ++i) {
        double share = log(value[i] / COLDEST) / log(HOTTEST / COLDEST);
        svg_text(svg, x + 22, y + height * (1 - share) + 5, "start", "%g", value[i]);
    }
}

struct point {
    double x, y;
};

static struct point on_simplex(const double y[ENTRIES]) {
    static const struct point vertex[ENTRIES] = {{42, 386}, {478, 386}, {260, 8.4}};
    struct point at = {0, 0};
    for (int i = 0; i < ENTRIES; ++i) {
        at.x += y[i] * vertex[i].x;
        at.y += y[i] * vertex[i].y;
    }
    return at;
}

static void draw_simplex(FILE *svg, const struct learned *learned) {
    static const char *const detail[FUNCTIONS] = {", t = 1", "", "", "", " (layer 10"};
    static const double corner[ENTRIES][ENTRIES] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    const mmax_multimax_params *p = &learned->vision[HIDDEN_LAYER - 1];
    double from[INPUTS][ENTRIES], to[INPUTS][ENTRIES];
    svg_begin(svg, 560, 460, "Reweighting functions on the simplex"); /* extra room at the right, since fonts differ */
    fprintf(svg, "<path class=\"ink\" d=\"");
    for (int i = 0; i < ENTRIES; ++i) {
        svg_point(svg, i == 0 ? 'M' : 'L', on_simplex(corner[i]).x, on_simplex(corner[i]).y);
    }
    fprintf(svg, "z\"/>\n");
    softmax_at(from, temperature(0));
    for (int step = 0; step < STEPS; ++step) {
        softmax_at(to, temperature(step + 1));
        temperature_stroke(svg, step);
        for (int i = 0; i < INPUTS; ++i) {
            svg_point(svg, 'M', on_simplex(from[i]).x, on_simplex(from[i]).y);
            svg_point(svg, 'L', on_simplex(to[i]).x, on_simplex(to[i]).y);
        }
        fprintf(svg, "\"/>\n");
        memcpy(from, to, sizeof from);
    }
    for (int f = 0; f < FUNCTIONS; ++f) {
        double y[INPUTS][ENTRIES];
        apply(y[0], input[0], f, p, inputs_at(1));
        for (int i = 0; i < INPUTS; ++i) { svg_marker(svg, on_simplex(y[i]).x, on_simplex(y[i]).y, f); }
        svg_marker(svg, 366, 50 + 26 * f, f);
        svg_text(svg, 384, 55 + 26 * f, "start", "%s%s", style[f].name, detail[f]);
    }
    svg_text(svg, 384, 55 + 26 * FUNCTIONS - 8, "start", "of Deit-small)");
    svg_temperatures(svg, 16, 64, 130);
    svg_text(svg, 10, 410, "start", "(1, 0, 0): x&#8321; alone");
    svg_text(svg, 510, 410, "end", "(0, 1, 0): x&#8322; alone");
    svg_text(svg, 274, 20, "start", "(0, 0, 1): x&#8323; alone");
    svg_text(svg, 260, 444, "middle",
             "x = (2, 0.9, &#8722;0.5), (2, 1.4, &#8722;0.5), (1.4, 2, &#8722;0.5), (0.9, 2, &#8722;0.5)");
    svg_end(svg);
}

/* Means over the inputs. Entries above 0 are relevant; the reference is each input's smallest weight by SoftMax. */
static struct point metrics_of(const double *y) {
    double multimodality[INPUTS], sparsity[INPUTS];
    struct point mean = {0, 0};
    check(mmax_multimodality_f64(multimodality, y, input[0], 0, inputs_at(1)));
    check(mmax_sparsity_f64(sparsity, y, input[0], 0, 0, inputs_at(1)));
    for (int i = 0; i < INPUTS; ++i) {
        mean.x += multimodality[i] / INPUTS;
        mean.y += sparsity[i] / INPUTS;
    }
    return mean;
}

static struct point in_tradeoff(const struct panel *panel, const double *y) {
    struct point mean = metrics_of(y), at = {panel_x(panel, mean.x), panel_y(panel, mean.y)};
    return at;
}

/* EntMax from alpha = 1 (SoftMax) through EntMax-1.5 and SparseMax to 4, and top-k with k = 3 (SoftMax), 2, 1 */
static void draw_families(FILE *svg, const struct panel *panel) {
    enum { ALPHAS = 61 };
    double y[INPUTS][ENTRIES], across[ALPHAS], up[ALPHAS];
    struct point at;
    for (int i = 0; i < ALPHAS; ++i) {
        check(mmax_entmax_f64(y[0], input[0], 1 + i / 20.0, inputs_at(1)));
        at = metrics_of(y[0]);
        across[i] = at.x;
        up[i] = at.y;
    }
    svg_curve(svg, panel, &entmax15_line, across, up, 1, ALPHAS);
    for (int k = ENTRIES; k > 0; --k) {
        check(mmax_topk_f64(y[0], input[0], (size_t)k, inputs_at(1)));
        at = metrics_of(y[0]);
        across[ENTRIES - k] = at.x;
        up[ENTRIES - k] = at.y;
    }
    svg_curve(svg, panel, &more_line[1], across, up, 1, ENTRIES);
    svg_key(svg, panel->left + 20, panel->top + panel->height - 62, &entmax15_line, "EntMax, &#945; = 1 to 4");
    svg_key(svg, panel->left + 20, panel->top + panel->height - 36, &more_line[1], "top-k, k = 3, 2, 1");
}

static void draw_tradeoff(FILE *svg, const struct learned *learned) {
    static const struct panel panel = {64, 48, 432, 332, {0, 0}, {1, 1}};
    static const double step[2] = {0.2, 0.2}, marked[] = {0.3, 0.5, 1, 2, 5};
    double y[INPUTS][ENTRIES];
    struct point from, to;
    svg_begin(svg, 520, 460, "Sparsity against multi-modality");
    svg_grid(svg, &panel, step, 1, 1);
    softmax_at(y, temperature(0));
    from = in_tradeoff(&panel, y[0]);
    for (int i = 0; i < STEPS; ++i) {
        softmax_at(y, temperature(i + 1));
        to = in_tradeoff(&panel, y[0]);
        temperature_stroke(svg, i);
        svg_point(svg, 'M', from.x, from.y);
        svg_point(svg, 'L', to.x, to.y);
        fprintf(svg, "\"/>\n");
        from = to;
    }
    draw_families(svg, &panel);
    for (size_t i = 0; i < sizeof marked / sizeof *marked; ++i) {
        softmax_at(y, marked[i]);
        to = in_tradeoff(&panel, y[0]);
        svg_marker(svg, to.x, to.y, SOFTMAX);
        if (marked[i] > 1) {
            svg_text(svg, to.x + 9, to.y - 7, "start", "t = %g", marked[i]);
        } else {
            svg_text(svg, to.x - 9, to.y + 17, "end", "%st = %g", marked[i] == 1 ? "SoftMax, " : "", marked[i]);
        }
    }
    for (int f = SOFTMAX + 1; f < FUNCTIONS; ++f) {
        apply(y[0], input[0], f, &learned->vision[HIDDEN_LAYER - 1], inputs_at(1));
        to = in_tradeoff(&panel, y[0]);
        svg_marker(svg, to.x, to.y, f);
        svg_text(svg, to.x - (f == ENTMAX15 ? 14 : 0), to.y + (f == ENTMAX15 ? 24 : -16), "middle", "%s",
                 style[f].name);
    }
    svg_text(svg, panel.left + panel.width / 2, 420, "middle", "multi-modality");
    svg_vertical(svg, 20, panel.top + panel.height / 2, "sparsity");
    svg_text(svg, 260, 446, "middle", "t: temperature; means over the inputs of simplex.svg");
    svg_end(svg);
}

/* ==== figure 2: two entries ======================================================================================= */

static void draw_two_entries(FILE *svg, const struct learned *learned) {
    enum { POINTS = 141, PANELS = 2 };
    static const double step[2] = {1, 0.25};
    svg_begin(svg, 880, 390, "Reweighting functions of two entries");
    for (int i = 0; i < PANELS; ++i) {
        struct panel panel = {56 + 340 * i, 40, 316, 290, {-3, 0}, {4, 1}};
        double x[POINTS][2], y[POINTS][2], first[POINTS];
        int tie = 60 + 20 * i; /* where x1 = x2 */
        for (int n = 0; n < POINTS; ++n) { first[n] = (n - 60) / 20.0; }
        first[tie - 1] = first[tie] - 1e-6; /* EvSoftMax jumps here */
        first[tie + 1] = first[tie] + 1e-6;
        for (int n = 0; n < POINTS; ++n) {
            x[n][0] = first[n];
            x[n][1] = i;
        }
        svg_grid(svg, &panel, step, 1, i == 0);
        for (int f = 0; f < FUNCTIONS; ++f) {
            apply(y[0], x[0], f, &learned->vision[HIDDEN_LAYER - 1], mmax_rows(POINTS, 2));
            svg_curve(svg, &panel, style[f].line, first, y[0], 2, POINTS);
        }
        svg_text(svg, panel.left + panel.width / 2, 26, "middle", "x&#8322; = %d", i);
        svg_text(svg, panel.left + panel.width / 2, 372, "middle", "x&#8321;");
    }
    svg_vertical(svg, 16, 185, "weight of x&#8321;");
    for (int f = 0; f < FUNCTIONS; ++f) { svg_key(svg, 728, 61 + 26 * f, style[f].line, style[f].name); }
    svg_end(svg);
}

/* ==== figures 3 and 10: learned modulators ======================================================================== */

static void draw_modulators(FILE *svg, const mmax_multimax_params *layer, int layers, const char *title) {
    enum { COLUMNS = 3, POINTS = 161 };
    static const double step[2] = {2, 4}, ends[2] = {-4, 4};
    const double left = 56, top = 40, pitch = 210, side = 180;
    int rows = layers / COLUMNS;
    double right = left + pitch * COLUMNS - (pitch - side), bottom = top + pitch * rows - (pitch - side);
    double x[POINTS], y[POINTS];
    for (int n = 0; n < POINTS; ++n) { x[n] = (n - 80) / 20.0; }
    svg_begin(svg, 676, (int)bottom + 56, title);
    svg_text(svg, left, 26, "start", "%s; dashed: the identity, SoftMax", title);
    for (int l = 0; l < layers; ++l) {
        double across = left + pitch * (l % COLUMNS), down = top + pitch * (l / COLUMNS);
        struct panel panel = {across, down, side, side, {-4, -8}, {4, 8}};
        check(mmax_seglu_f64(y, x, &layer[l], mmax_row(POINTS)));
        svg_grid(svg, &panel, step, l / COLUMNS == rows - 1, l % COLUMNS == 0);
        fprintf(svg, "<svg x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\">\n", across, down, side, side);
        panel.left = panel.top = 0;
        fprintf(svg, "<g stroke-dasharray=\"5 4\">\n");
        svg_line(svg, "ink", panel_x(&panel, ends[0]), panel_y(&panel, ends[0]), panel_x(&panel, ends[1]),
                 panel_y(&panel, ends[1]));
        fprintf(svg, "</g>\n");
        svg_curve(svg, &panel, &multimax_line, x, y, 1, POINTS);
        fprintf(svg, "</svg>\n");
        svg_text(svg, across + 8, down + 20, "start", "layer %d", l + 1);
    }
    svg_text(svg, (left + right) / 2, bottom + 42, "middle", "x");
    svg_vertical(svg, 18, (top + bottom) / 2, "&#963;(x)");
    svg_end(svg);
}

static void draw_vision(FILE *svg, const struct learned *learned) {
    draw_modulators(svg, learned->vision, VISION_LAYERS, "&#963; of the layers of Deit-small");
}

static void draw_language(FILE *svg, const struct learned *learned) {
    draw_modulators(svg, learned->language, LANGUAGE_LAYERS, "&#963; of the layers of a language transformer");
}

/* ==== files ======================================================================================================= */

static const struct figure {
    const char *name;
    void (*draw)(FILE *svg, const struct learned *learned);
} figure[] = {{"simplex.svg", draw_simplex},
              {"tradeoff.svg", draw_tradeoff},
              {"two_entries.svg", draw_two_entries},
              {"modulators_vision.svg", draw_vision},
              {"modulators_language.svg", draw_language}};

enum { FIGURES = sizeof figure / sizeof *figure };

static void write_figures(const char *directory, const struct learned *learned) {
    for (size_t i = 0; i < FIGURES; ++i) { figure[i].draw(file_open_in(directory, figure[i].name), learned); }
    files_keep();
}

/* ==== main ======================================================================================================== */

static const char usage[] =
    "usage: figures --svg DIR [--data DIR]\n"
    "\n"
    "Writes figures after those of the MultiMax paper to the directory of --svg:\n"
    "\n"
    "  simplex.svg              Figure 1a: weights of three entries on the simplex\n"
    "  tradeoff.svg             Figure 1b: sparsity against multi-modality, with EntMax over alpha and top-k\n"
    "  two_entries.svg          Figure 2: weight of the first of two entries\n"
    "  modulators_vision.svg    Figure 3: the modulators of Table 7 against the identity\n"
    "  modulators_language.svg  Figure 10: the modulators of Table 8 against the identity\n"
    "\n"
    "  --data DIR  the directory of the tables (examples/data)\n"
    "  --help      this text\n"
    "\n"
    "MultiMax has the parameters of layer 10 of Table 7 where a figure needs one layer. Exit status 0, or 2 for a\n"
    "wrong option, table or directory; then no file is left half written.\n";

int main(int argc, char **argv) {
    static const char *const option[] = {"--svg", "--data"};
    static struct learned learned;
    const char *directory = NULL, *data = "examples/data";
    const char *value;
    for (int i = 0, which; (which = next_option(argc, argv, &i, option, 2, 2, usage, &value)) >= 0;) {
        *(which == 0 ? &directory : &data) = value;
    }
    if (directory == NULL) { fail("--svg DIR says where the figures go; see --help"); }
    read_table(learned.vision, VISION_LAYERS, data, "table7_deit_small.csv");
    read_table(learned.language, LANGUAGE_LAYERS, data, "table8_language_transformer.csv");
    write_figures(directory, &learned);
    return 0;
}
