/*
 * reweight.c: applies the functions of multimax.h to your own rows of numbers, and prints the weights or a table of
 * their measures, or draws bars as SVG.
 *
 *     cc -O2 -Iinclude examples/reweight.c -o reweight -lm
 *     printf '2 1.8 -1 0.1\n' | ./reweight
 *     ./reweight --help
 *
 * The program reads, checks, reweights and prints a row before it reads the next one, so it holds the longest row in
 * memory. With --columns it holds the whole table: its columns are rows with `inner` set.
 * In order: options, reading, reweighting, printing, SVG, main.
 */
#define PROGRAM "reweight"
#include "common.h"

/* ALL stands for the functions before it. */
enum {
    SOFTMAX,
    MULTIMAX,
    SPARSEMAX,
    ENTMAX15,
    EVSOFTMAX,
    TANHMAX,
    ALL,
    TOPK,
    ENTMAX,
    SIGSOFTMAX,
    SPARSEHOURGLASS,
    FUNCTIONS
};
static const char *const function_name[] = {"softmax",        "multimax", "sparsemax", "entmax15", "evsoftmax",
                                            "tanhmax",        "all",      "topk",      "entmax",   "sigsoftmax",
                                            "sparsehourglass"};

#define METRIC_REFERENCE 0.01 /* of sparsity */

/* Special values are told by their bits, which survive -Ofast. */
#define INFINITY_BITS UINT64_C(0x7ff0000000000000)
#define SIGN_BIT      UINT64_C(0x8000000000000000)

static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double from_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static int is_masked(double value) { return bits_of(value) == (SIGN_BIT | INFINITY_BITS); }
static int is_nan(double value) { return (bits_of(value) & ~SIGN_BIT) > INFINITY_BITS; }
static int is_finite(double value) { return (bits_of(value) & ~SIGN_BIT) < INFINITY_BITS; }

/* ==== options ===================================================================================================== */

enum { PRINT_DEFAULT, PRINT_WEIGHTS, PRINT_TABLE };

struct options {
    int function, print, f64, causal, columns;
    mmax_multimax_params params;
    double scale;
    double parameter;      /* k of topk, alpha of entmax, q of sparsehourglass */
    const char *path;      /* NULL: the standard input */
    const char *directory; /* of bars.svg; NULL: no drawing */
};

static const char usage[] = "usage: reweight [options] [FILE]\n"
                            "Applies the functions of multimax.h to each row of FILE (standard input).\n"
                            "Commas separate the cells of a line; without a comma, blanks do. -inf and an\n"
                            "empty cell between commas are masked; nan and inf make their row nan. Rows may\n"
                            "differ in length.\n"
                            "\n"
                            "  --function NAME   softmax, multimax, sparsemax, entmax15, evsoftmax,\n"
                            "                    tanhmax or all of these (default: all); or topk:K (4),\n"
                            "                    entmax:ALPHA (1.25), sigsoftmax, sparsehourglass:Q (1)\n"
                            "  --print WHAT      weights or table (one function: weights; all: table)\n"
                            "  --layer MODEL:N   MultiMax as published: deit-small:1 to deit-small:12,\n"
                            "                    language-transformer:1 to :6 (deit-small:7)\n"
                            "  --params LIST     MultiMax with t_b,t_d,b,d or, order 2, four more of them\n"
                            "  --order N         order of MultiMax, 1 or 2 (that of --params, or 2)\n"
                            "  --scale S         multiplies every number first: inverse temperature (1)\n"
                            "  --causal          row r weighs its first r entries, the others get 0\n"
                            "  --columns         weigh the columns of the table; rows have equal length\n"
                            "  --precision P     f32 or f64 (f32)\n"
                            "  --svg DIR         draw the weights of the first 12 rows into DIR/bars.svg\n"
                            "  --help            this text\n"
                            "Entropy is in nats. The MultiMax paper defines sparsity and multi-modality;\n"
                            "here epsilon is the row's mean and the reference is 0.01. Entropy and sparsity\n"
                            "use the size of tanhmax's weights. Exit status 0, or 2 for an error.\n";

/* Tables 7 and 8 of Zhou, Fritz, Keuper, "MultiMax: Sparse and Multi-Modal Attention Learning", ICML 2024. */
static const struct layer {
    const char *model;
    int number;
    double t_b1, t_d1, t_b2, t_d2, b1, d1, b2, d2;
} published[] = {
    {"deit-small", 1, 1.8347933, 2.815388, 0.9864913, 0.68440557, 1.185235, -1.208543, -2.1076407, 1.9158255},
    {"deit-small", 2, 1.9773115, 1.9971638, 0.985555, 0.74650276, -0.8580209, 0.02481092, -0.49835142, 1.9772723},
    {"deit-small", 3, -1.1411996, 1.4711196, 1.9901285, 0.8758977, 0.18852632, 2.8039892, 2.9608543, 1.0462786},
    {"deit-small", 4, 0.6694808, 1.206692, 1.8682657, 0.93786246, 3.4023566, -1.5490056, 2.500237, 0.986331},
    {"deit-small", 5, 0.8902384, 1.5881691, 1.8920481, 0.72857785, 2.5070796, -1.1942928, 1.8854694, 1.2248528},
    {"deit-small", 6, 0.6015882, 0.87738, 2.818536, 0.96271396, 2.6490533, 0.8454426, 1.6205754, 0.89434063},
    {"deit-small", 7, 0.8023207, 1.2427123, 3.040797, 0.84531546, 2.6984618, 1.2127148, 1.2652112, 1.2134424},
    {"deit-small", 8, 0.64486825, 0.79173684, 2.5263662, 0.968745, 3.0230901, 0.62191963, 1.6307493, 1.6259384},
    {"deit-small", 9, 0.5796288, 0.6852025, 3.500835, 0.99119073, 2.675157, 0.68776745, 1.3239485, 1.5808712},
    {"deit-small", 10, 0.54873073, 0.8240905, 3.5563424, 0.9692498, 2.176066, 0.39797062, 0.9276044, 1.5223614},
    {"deit-small", 11, 0.38645744, 0.6951747, 4.0935583, 0.9958999, 1.6583583, 0.29572898, 0.77263904, 2.9975116},
    {"deit-small", 12, 0.16383016, 0.25565386, 3.2074118, 0.99102634, 1.6852132, -0.04795134, 0.9796309, 2.1836245},
    {"language-transformer", 1, 0.6467285, 0.7980957, 0.98324585, 0.9649048, 0.7475586, -0.87939453, 0.3395996,
     -0.14501953},
    {"language-transformer", 2, 0.69018555, 0.8063965, 0.98350525, 0.9720764, 0.25073242, 0.15991211, 0.2956543,
     -0.17687988},
    {"language-transformer", 3, 0.8557129, 0.79797363, 0.98939514, 0.9855194, -0.12609863, 0.06817627, 0.14794922,
     -0.14428711},
    {"language-transformer", 4, 0.9662781, 0.83569336, 1.0231781, 1.0240021, -0.07574463, 0.8510742, -0.13220215,
     0.27368164},
    {"language-transformer", 5, 0.9260864, 0.9187622, 0.98670197, 1.039093, -0.5239258, 0.51416016, 0.23999023,
     0.09521484},
    {"language-transformer", 6, 1.1514893, 1.152832, 0.98441315, 1.0156403, 0.1751709, 0.05374146, -0.13269043,
     -0.08825684}};

static mmax_multimax_params layer_value(const char *text) {
    char name[40];
    for (size_t i = 0; i < sizeof published / sizeof *published; ++i) {
        const struct layer *l = &published[i];
        snprintf(name, sizeof name, "%s:%d", l->model, l->number);
        if (strcmp(name, text) == 0) {
            mmax_multimax_params p = {2, {l->t_b1, l->t_b2}, {l->t_d1, l->t_d2}, {l->b1, l->b2}, {l->d1, l->d2}};
            return p;
        }
    }
    fail("--layer takes deit-small:1 to deit-small:12 or language-transformer:1 to language-transformer:6, not '%s'",
         text);
    return mmax_multimax_identity(2);
}

static mmax_multimax_params params_value(const char *text) {
    mmax_multimax_params p = mmax_multimax_identity(2);
    double value[8];
    int count = 0;
    const char *at = text;
    char *end;
    do {
        value[count] = strtod(at, &end);
        if (end == at || !is_finite(value[count])) {
            count = 0;
            break;
        }
        ++count;
        at = end + 1;
    } while (*end == ',' && count < 8);
    if (*end != '\0' || (count != 4 && count != 8)) {
        fail("--params takes 4 or 8 numbers, t_b,t_d,b,d of order 1 and then of order 2, not '%s'", text);
    }
    p.order = count / 4;
    for (int n = 0; n < p.order; ++n) {
        p.t_b[n] = value[4 * n];
        p.t_d[n] = value[4 * n + 1];
        p.b[n] = value[4 * n + 2];
        p.d[n] = value[4 * n + 3];
    }
    return p;
}

static double scale_value(const char *text) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !is_finite(value) || value <= 0) {
        fail("--scale takes a number above 0, not '%s'", text);
    }
    return value;
}

static void read_options(struct options *o, int argc, char **argv) {
    static const char *const option_name[] = {"--function", "--print",     "--layer", "--params", "--order",
                                              "--scale",    "--precision", "--svg",   "--causal", "--columns"};
    enum { FUNCTION, PRINT, LAYER, PARAMS, ORDER, SCALE, PRECISION, SVG, VALUED, CAUSAL = VALUED, COLUMNS, OPTIONS };
    static const char *const print_word[] = {"weights", "table"}, *const order_word[] = {"1", "2"},
                             *const precision_word[] = {"f32", "f64"};
    int order = 0, chosen = -1; /* chosen: LAYER or PARAMS, if one was given */
    for (int i = 0; i + 1 < argc;) {
        const char *option = argv[i + 1], *value, *parameter;
        if (option[0] != '-' || strcmp(option, "-") == 0) {
            if (o->path != NULL) { fail("one file at a time: '%s' or '%s'", o->path, option); }
            o->path = option;
            ++i;
            continue;
        }
        int kind = next_option(argc, argv, &i, option_name, OPTIONS, VALUED, usage, &value);
        if (kind == LAYER || kind == PARAMS) {
            if (chosen >= 0 && chosen != kind) { fail("--layer and --params exclude each other"); }
            chosen = kind;
        }
        switch (kind) {
        case FUNCTION:
            o->function = name_value(option, value, function_name, FUNCTIONS, &parameter);
            o->parameter = parameter_value(option, function_name[o->function], parameter);
            break;
        case PRINT: o->print = PRINT_WEIGHTS + word_value(option, value, print_word, 2); break;
        case LAYER: o->params = layer_value(value); break;
        case PARAMS: o->params = params_value(value); break;
        case ORDER: order = 1 + word_value(option, value, order_word, 2); break;
        case SCALE: o->scale = scale_value(value); break;
        case PRECISION: o->f64 = word_value(option, value, precision_word, 2); break;
        case SVG: o->directory = value; break;
        case CAUSAL: o->causal = 1; break;
        default: o->columns = 1; break;
        }
    }
    if (order > o->params.order) { fail("--order 2 needs 8 numbers in --params"); }
    o->params.order = order > 0 ? order : o->params.order;
    if (o->print == PRINT_DEFAULT) { o->print = o->function == ALL ? PRINT_TABLE : PRINT_WEIGHTS; }
    if (o->path != NULL && strcmp(o->path, "-") == 0) { o->path = NULL; }
}

/* ==== reading ===================================================================================================== */

struct input {
    FILE *file;
    const char *name;
    unsigned long line; /* from 1 */
    char *text;         /* the line, with a NUL at its end */
    size_t length, room;
};

struct row {
    unsigned long number; /* from 1; blank lines are not counted */
    size_t cols, room;
    size_t active;    /* the function reads these leading entries; some of them may be masked */
    double *x, *y;    /* values of the chosen precision */
    float *x32, *y32; /* the same in f32, if that is the precision */
    double *size;     /* |y| */
};

/* Returns 0 at the end of the file. */
static int read_line(struct input *in) {
    int c;
    in->length = 0;
    do {
        if (in->length == in->room) {
            in->room = in->room == 0 ? 4096 : 2 * in->room;
            in->text = resize(in->text, in->room, 1);
        }
        c = getc(in->file);
        in->text[in->length++] = (char)(c == EOF || c == '\n' ? '\0' : c);
    } while (c != EOF && c != '\n');
    if (ferror(in->file)) { fail("cannot read %s: %s", in->name, strerror(errno)); }
    --in->length;
    ++in->line;
    return c != EOF || in->length > 0;
}

/* Says that `what` is wrong with a cell, and shows its text, shortened and printable. */
static void fail_cell(const struct input *in, size_t column, const char *text, size_t length, const char *what) {
    enum { SHOWN = 24 };
    char shown[SHOWN + 1];
    size_t n = length < SHOWN ? length : SHOWN;
    for (size_t i = 0; i < n; ++i) { shown[i] = text[i] < ' ' || text[i] > '~' ? '?' : text[i]; }
    shown[n] = '\0';
    fail("%s, line %lu, column %lu: '%s%s' is %s", in->name, in->line, (unsigned long)column, shown,
         length > n ? "..." : "", what);
}

/* The value of the cell from `text` to `end`; writes a NUL to `end`. */
static double cell_value(const struct input *in, size_t column, char *text, char *end, int f64) {
    char *stop;
    double value;
    if (text == end) { return from_bits(SIGN_BIT | INFINITY_BITS); }
    *end = '\0';
    errno = 0;
    value = f64 ? strtod(text, &stop) : (double)strtof(text, &stop); /* rounded once */
    if (stop != end) { fail_cell(in, column, text, (size_t)(end - text), "not a number"); }
    if (errno == ERANGE && fabs(value) > 1) {
        fail_cell(in, column, text, (size_t)(end - text), f64 ? "beyond the range of f64" : "beyond the range of f32");
    }
    return value;
}

static void row_add(struct row *row, double value, int f64) {
    if (row->cols == row->room) {
        row->room = row->room == 0 ? 256 : 2 * row->room;
        row->x = resize(row->x, row->room, sizeof *row->x);
        row->y = resize(row->y, row->room, sizeof *row->y);
        row->size = resize(row->size, row->room, sizeof *row->size);
        row->x32 = resize(row->x32, row->room, sizeof *row->x32);
        row->y32 = resize(row->y32, row->room, sizeof *row->y32);
    }
    row->x[row->cols] = value;
    if (!f64) { row->x32[row->cols] = (float)value; }
    ++row->cols;
}

static int is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/* Reads the next line that is not blank as a row; returns 0 at the end of the file. */
static int read_row(struct row *row, struct input *in, int f64) {
    row->cols = 0;
    while (row->cols == 0 && read_line(in)) {
        char *at = in->text, *end = at + in->length;
        int commas = memchr(at, ',', in->length) != NULL;
        if (in->line == 1 && in->length >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0) {
            at += 3; /* the byte order mark of UTF-8 */
        }
        for (char *stop; at <= end; at = stop + 1) {
            while (at < end && is_blank(*at)) { ++at; }
            for (stop = at; stop < end && (commas ? *stop != ',' : !is_blank(*stop)); ++stop) {}
            char *cell_end = stop;
            while (cell_end > at && is_blank(cell_end[-1])) { --cell_end; }
            if (commas || cell_end > at) { row_add(row, cell_value(in, row->cols + 1, at, cell_end, f64), f64); }
        }
    }
    row->number += row->cols > 0;
    return row->cols > 0;
}

/* ==== reweighting ================================================================================================= */

#define DEFINE_APPLY(T, real)                                                                                   \
    static mmax_status apply_##T(real *y, const real *x, int function, const struct options *o, mmax_shape s) { \
        switch (function) {                                                                                     \
        case SOFTMAX: return mmax_softmax_##T(y, x, s);                                                         \
        case MULTIMAX: return mmax_multimax_##T(y, x, &o->params, s);                                           \
        case SPARSEMAX: return mmax_sparsemax_##T(y, x, s);                                                     \
        case ENTMAX15: return mmax_entmax15_##T(y, x, s);                                                       \
        case EVSOFTMAX: return mmax_evsoftmax_##T(y, x, 0, s);                                                  \
        case TOPK: return mmax_topk_##T(y, x, (size_t)o->parameter, s);                                         \
        case ENTMAX: return mmax_entmax_##T(y, x, o->parameter, s);                                             \
        case SIGSOFTMAX: return mmax_sigsoftmax_##T(y, x, s);                                                   \
        case SPARSEHOURGLASS: return mmax_sparsehourglass_##T(y, x, o->parameter, s);                           \
        default: return mmax_tanhmax_##T(y, x, s);                                                              \
        }                                                                                                       \
    }
DEFINE_APPLY(f32, float)
DEFINE_APPLY(f64, double)

/* A scale or a parameter may be too large or too small for the precision: a call of multimax finds this out. */
static void check_numbers(const struct options *o) {
    float x32 = 0;
    double x = 0;
    mmax_shape s = mmax_row(1);
    s.scale = o->scale;
    if (MMAX_OK != (o->f64 ? mmax_multimax_f64(&x, &x, &o->params, s) : mmax_multimax_f32(&x32, &x32, &o->params, s))) {
        fail("--scale or --params has a number beyond the range of %s", o->f64 ? "f64" : "f32");
    }
}

static int is_wanted(const struct options *o, int function) {
    return o->function == ALL ? function < ALL : o->function == function;
}

static void reweight(struct row *row, int function, const struct options *o) {
    mmax_shape s = mmax_row(row->active);
    s.scale = o->scale;
    check(o->f64 ? apply_f64(row->y, row->x, function, o, s) : apply_f32(row->y32, row->x32, function, o, s));
    for (size_t i = 0; i < row->cols; ++i) {
        row->y[i] = i >= row->active ? 0 : o->f64 ? row->y[i] : (double)row->y32[i];
        row->size[i] = fabs(row->y[i]);
    }
}

struct measures {
    size_t entries, support; /* number of entries that are not masked, and of weights other than 0 */
    double entropy, largest, sparsity, multimodality;
    int nan;
};

/* The mean of the entries that are not masked, which does not overflow. */
static double mean_score(const struct row *row, size_t entries) {
    double mean = 0, least = 0, most = 0;
    for (size_t i = 0, seen = 0; i < row->active; ++i) {
        if (!is_masked(row->x[i])) {
            mean += row->x[i] / (double)entries;
            least = seen == 0 ? row->x[i] : fmin(least, row->x[i]);
            most = seen++ == 0 ? row->x[i] : fmax(most, row->x[i]);
        }
    }
    return fmin(fmax(mean, least), most);
}

static struct measures measure(const struct row *row) {
    const double none = from_bits(INFINITY_BITS + 1); /* NaN, as from the metrics */
    struct measures m = {0, 0, none, 0, none, none, 0};
    mmax_shape s = mmax_row(row->active);
    double sum = 0;
    for (size_t i = 0; i < row->active; ++i) {
        m.entries += !is_masked(row->x[i]);
        m.support += row->size[i] > 0;
        m.nan |= is_nan(row->y[i]);
        m.largest = row->size[i] > fabs(m.largest) ? row->y[i] : m.largest;
        sum += row->size[i];
    }
    if (m.nan || m.entries == 0) { return m; }
    m.entropy = m.support == 0 ? none : 0;
    for (size_t i = 0; i < row->active; ++i) {
        if (row->size[i] > 0) { m.entropy -= row->size[i] / sum * log(row->size[i] / sum); }
    }
    double mean = mean_score(row, m.entries);
    check(mmax_sparsity_f64(&m.sparsity, row->size, row->x, mean, METRIC_REFERENCE, s));
    check(mmax_multimodality_f64(&m.multimodality, row->y, row->x, mean, s));
    return m;
}

/* ==== printing ==================================================================================================== */

static void print_weights(const struct row *row, int function, const struct options *o) {
    if (o->function == ALL) { printf("%s,", function_name[function]); }
    for (size_t i = 0; i < row->cols; ++i) {
        printf("%s%.*g", i == 0 ? "" : ",", o->f64 ? 17 : 9, row->y[i]); /* reads back as the same number */
    }
    printf("\n");
}

static void print_measures(const struct row *row, int function, const struct measures *m) {
    const double value[] = {m->entropy, m->largest, m->sparsity, m->multimodality};
    static const int width[] = {10, 10, 11, 17};
    printf("%7lu  %-9s %9lu", row->number, function_name[function], (unsigned long)m->entries);
    if (m->nan) {
        printf("%10s", "nan");
    } else {
        printf("%10lu", (unsigned long)m->support);
    }
    for (int i = 0; i < 4; ++i) {
        if (m->nan || is_nan(value[i])) {
            printf("%*s", width[i], m->nan ? "nan" : "-"); /* -: there is no entry to measure */
        } else {
            printf("%*.4f", width[i], value[i]);
        }
    }
    printf("\n");
}

/* ==== SVG ========================================================================================================= */

enum { CHART_ROWS = 12, CHART_BARS = 180 };
static const double left = 150, top_margin = 44, panel_width = 200, plot_height = 84, band_height = 130;

struct bars {
    struct measures measures;
    double bar[CHART_BARS]; /* each the largest weight of `group` neighbours */
};

static struct {
    unsigned long rows; /* of the file */
    size_t cols[CHART_ROWS];
    struct bars panel[CHART_ROWS][FUNCTIONS];
} chart;

static size_t group_of(size_t cols) { return (cols + CHART_BARS - 1) / CHART_BARS; }

static void chart_add(const struct row *row, int function, const struct measures *m) {
    if (row->number <= CHART_ROWS) {
        struct bars *panel = &chart.panel[row->number - 1][function];
        chart.cols[row->number - 1] = row->cols;
        panel->measures = *m;
        for (size_t i = 0; i < row->cols; ++i) {
            double *bar = &panel->bar[i / group_of(row->cols)];
            *bar = row->size[i] > fabs(*bar) ? row->y[i] : *bar;
        }
    }
    chart.rows = row->number;
}

static void svg_level(FILE *svg, double x, double y, double width, double opacity) {
    fprintf(svg, "<path d=\"M%.1f %.1fh%.1f\" stroke=\"" INK "\" opacity=\"%.2f\"/>\n", x, y, width, opacity);
}

static void svg_panel(FILE *svg, const struct bars *panel, size_t cols, double x, double zero, double unit) {
    double width = panel_width - 24, pitch = width / (double)((cols + group_of(cols) - 1) / group_of(cols));
    pitch = fmin(pitch, 28);
    svg_level(svg, x, zero, width, 0.8);
    for (size_t i = 0; i * group_of(cols) < cols; ++i) {
        double height = fabs(panel->bar[i]) * unit;
        if (height > 0) {
            fprintf(svg, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"/>\n",
                    x + pitch * ((double)i + 0.1), panel->bar[i] > 0 ? zero - height : zero, 0.8 * pitch, height,
                    panel->bar[i] > 0 ? BLUE : ORANGE);
        }
    }
}

/* The panels of a row share their scale. */
static void svg_row(FILE *svg, size_t row, const int *shown, int count) {
    double top = top_margin + (double)row * band_height, most = 0, least = 0;
    size_t cols = chart.cols[row], group = group_of(cols);
    for (int i = 0; i < count; ++i) {
        for (size_t k = 0; k < CHART_BARS; ++k) {
            most = fmax(most, chart.panel[row][shown[i]].bar[k]);
            least = fmin(least, chart.panel[row][shown[i]].bar[k]);
        }
    }
    double unit = most > least ? plot_height / (most - least) : 0, zero = top + most * unit;
    zero = most > least ? zero : top + plot_height;
    svg_text(svg, 16, top + 14, "start", "row %lu", (unsigned long)row + 1);
    svg_text(svg, 16, top + 32, "start", "%lu %s", (unsigned long)cols, cols == 1 ? "column" : "columns");
    if (group > 1) {
        svg_text(svg, 16, top + 50, "start", "a bar: the largest");
        svg_text(svg, 16, top + 66, "start", "of %lu neighbours", (unsigned long)group);
    }
    for (int i = 0; i < count; ++i) {
        const struct bars *panel = &chart.panel[row][shown[i]];
        double x = left + i * panel_width;
        if (most > 0) { svg_level(svg, x, top, panel_width - 24, 0.3); }
        svg_panel(svg, panel, cols, x, zero, unit);
        if (panel->measures.nan) {
            svg_text(svg, x, top + plot_height + 18, "start", "nan");
        } else {
            svg_text(svg, x, top + plot_height + 18, "start", "support %lu, largest %.3g",
                     (unsigned long)panel->measures.support, panel->measures.largest);
        }
    }
    if (most > 0) { svg_text(svg, left - 8, top + 4, "end", "%.3g", most); }
    svg_text(svg, left - 8, zero + 4, "end", "0");
}

static void svg_write(FILE *svg, const struct options *o) {
    size_t rows = chart.rows < CHART_ROWS ? (size_t)chart.rows : CHART_ROWS;
    int shown[FUNCTIONS], count = 0;
    for (int f = 0; f < FUNCTIONS; ++f) {
        if (is_wanted(o, f)) { shown[count++] = f; }
    }
    double width = left + count * panel_width,
           height = top_margin + (double)rows * band_height + (chart.rows > rows ? 16 : -8);
    svg_begin(svg, (int)width, (int)height, "Weights of each row, function by function");
    fprintf(svg, "<g font-size=\"13\">\n");
    for (int i = 0; i < count; ++i) {
        svg_text(svg, left + i * panel_width, 22, "start", "%s", function_name[shown[i]]);
    }
    for (size_t row = 0; row < rows; ++row) { svg_row(svg, row, shown, count); }
    if (chart.rows > rows) {
        svg_text(svg, 16, height - 14, "start", "%lu more rows are not drawn", chart.rows - (unsigned long)rows);
    }
    fprintf(svg, "</g>\n");
    svg_end(svg);
}

/* ==== main ======================================================================================================== */

static void show_measures(struct row *row, int function, const struct options *o) {
    if (o->print == PRINT_TABLE || o->directory != NULL) {
        struct measures m = measure(row);
        chart_add(row, function, &m);
        if (o->print == PRINT_TABLE) { print_measures(row, function, &m); }
    }
}

static void show_head(const struct options *o) {
    if (o->print == PRINT_TABLE) {
        printf("%s  function    entries   support   entropy   largest   sparsity   multi-modality\n",
               o->columns ? " column" : "    row");
    }
}

static void show(struct row *row, const struct options *o) {
    if (row->number == 1) { show_head(o); }
    for (int f = 0; f < FUNCTIONS; ++f) {
        if (is_wanted(o, f)) {
            reweight(row, f, o);
            if (o->print == PRINT_WEIGHTS) { print_weights(row, f, o); }
            show_measures(row, f, o);
        }
    }
    if (ferror(stdout)) { fail("cannot write the results: %s", strerror(errno)); }
}

/* All rows of the input, one after the other. */
struct table {
    size_t rows, cols;
    double *x, *y[FUNCTIONS]; /* y: NULL for functions that are not wanted */
};

static void read_table(struct table *table, struct row *row, struct input *in, int f64) {
    for (size_t size = 0; read_row(row, in, f64); ++table->rows) {
        if (table->rows > 0 && row->cols != table->cols) {
            fail("%s, line %lu: a row of %lu cells, not of %lu as the first row; --columns needs equal rows", in->name,
                 in->line, (unsigned long)row->cols, (unsigned long)table->cols);
        }
        table->cols = row->cols;
        table->x = resize(table->x, size + row->cols, sizeof *table->x);
        memcpy(table->x + size, row->x, row->cols * sizeof *row->x);
        size += row->cols;
    }
}

/* Reweights all columns in one call: entry i of column c is x[i * cols + c]. */
static void reweight_columns(struct table *table, int function, const struct options *o) {
    const size_t size = table->rows * table->cols;
    double *y = table->y[function] = allocate(size, sizeof *y);
    float *y32 = allocate(size, sizeof *y32); /* in place */
    uint32_t *ends = allocate(table->cols, sizeof *ends);
    mmax_shape s = mmax_rows(table->cols, table->rows);
    mmax_status status;
    s.inner = table->cols;
    s.scale = o->scale;
    s.ends = o->causal ? ends : NULL;
    for (size_t c = 0; c < table->cols; ++c) { ends[c] = (uint32_t)(c < table->rows ? c + 1 : table->rows); }
    for (size_t i = 0; i < size; ++i) { y32[i] = (float)table->x[i]; }
    status = o->f64 ? apply_f64(y, table->x, function, o, s) : apply_f32(y32, y32, function, o, s);
    if (status == MMAX_ERR_SHAPE) { fail("%lu rows are too many for --columns", (unsigned long)table->rows); }
    check(status);
    for (size_t i = 0; i < size && !o->f64; ++i) { y[i] = (double)y32[i]; }
    free(y32);
    free(ends);
}

/* Prints weights as a table like the input, and measures and bars column by column. */
static void show_columns(struct row *row, struct input *in, const struct options *o) {
    struct table table = {0, 0, NULL, {NULL}};
    read_table(&table, row, in, o->f64);
    for (int f = 0; f < FUNCTIONS && table.rows > 0; ++f) {
        if (is_wanted(o, f)) { reweight_columns(&table, f, o); }
    }
    row->cols = table.cols;
    for (size_t r = 0; r < table.rows && o->print == PRINT_WEIGHTS; ++r) {
        for (int f = 0; f < FUNCTIONS; ++f) {
            if (is_wanted(o, f)) {
                memcpy(row->y, table.y[f] + r * table.cols, table.cols * sizeof *row->y);
                print_weights(row, f, o);
            }
        }
    }
    if (table.rows > 0) { show_head(o); }
    for (size_t c = 0; c < table.cols; ++c) {
        row->number = (unsigned long)c + 1;
        row->cols = 0;
        for (size_t r = 0; r < table.rows; ++r) { row_add(row, table.x[r * table.cols + c], o->f64); }
        row->active = o->causal && row->number < row->cols ? (size_t)row->number : row->cols;
        for (int f = 0; f < FUNCTIONS; ++f) {
            for (size_t r = 0; r < table.rows && table.y[f] != NULL; ++r) {
                row->y[r] = table.y[f][r * table.cols + c];
                row->size[r] = fabs(row->y[r]);
            }
            if (table.y[f] != NULL) { show_measures(row, f, o); }
        }
    }
    for (int f = 0; f < FUNCTIONS; ++f) { free(table.y[f]); }
    free(table.x);
    if (ferror(stdout)) { fail("cannot write the results: %s", strerror(errno)); }
}

int main(int argc, char **argv) {
    struct options o = {ALL, PRINT_DEFAULT, 0, 0, 0, {0, {0}, {0}, {0}, {0}}, 1, 0, NULL, NULL};
    struct input in = {stdin, "the standard input", 0, NULL, 0, 0};
    struct row row = {0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL};
    FILE *svg = NULL; /* opened before the rows are read: a wrong directory fails at once */
    o.params = layer_value("deit-small:7");
    read_options(&o, argc, argv);
    check_numbers(&o);
    if (o.path != NULL) {
        in.name = o.path;
        in.file = fopen(o.path, "rb");
        if (in.file == NULL) { fail("cannot open '%s': %s", o.path, strerror(errno)); }
    }
    if (o.directory != NULL) { svg = file_open_in(o.directory, "bars.svg"); }
    if (o.columns) { show_columns(&row, &in, &o); }
    while (!o.columns && read_row(&row, &in, o.f64)) {
        row.active = o.causal && row.number < row.cols ? (size_t)row.number : row.cols;
        show(&row, &o);
    }
    if (row.number == 0) { fail("%s has no rows of numbers", in.name); }
    flush_results();
    if (o.directory != NULL) {
        svg_write(svg, &o);
        files_keep();
    }
    fclose(in.file);
    free(in.text);
    free(row.x);
    free(row.y);
    free(row.size);
    free(row.x32);
    free(row.y32);
    return 0;
}
