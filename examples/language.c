/*
 * language.c: trains the language model of language.h on a text, measures how well it predicts the held-out tenth, and
 * continues the text; or answers one question of the papers with several seeds (--study).
 *
 *     cc -O2 -Iinclude examples/language.c -o language -lm
 *     ./language --help
 *
 * After Table 3 of the MultiMax paper (Zhou, Fritz, Keuper, ICML 2024) and Table 4 of the TanhMax paper.
 * In order: training, text, studies, figures, main.
 */
#define PROGRAM "language"
#include "language.h"

#include <ctype.h>

#define KEPT_PROMPT "it was a s" /* kept.svg shows the characters that may follow */

/* The speed of one Xeon core, to which --minutes refers. It is a constant, so that results are the same everywhere. */
#define STEPS_A_MINUTE 2500.0

/* ==== training ==================================================================================================== */

enum { POINTS = 20, MAX_SEEDS = 20 };

struct curve { /* one training: values after each twentieth of it */
    double step[POINTS], bits[POINTS], held_out[POINTS];
};

/* curve may be NULL. */
static struct held_out train(struct trainer *t, const struct setup *setup, int seed, const char *name, size_t steps,
                             struct curve *curve) {
    size_t point = 0;
    char line[120];
    train_start(t, setup, seed);
    for (size_t step = 1; step <= steps; ++step) {
        train_step(t, steps);
        snprintf(line, sizeof line, "%s: %.2f bits per character so far", name, t->recent);
        progress_line(line, t->begun, &t->drawn, t->steps_done / t->steps);
        for (; curve != NULL && point < POINTS && (point + 1) * steps <= step * POINTS; ++point) {
            curve->step[point] = (double)step;
            curve->bits[point] = t->recent;
            curve->held_out[point] = evaluate(t, 4000).bits;
        }
    }
    progress_end();
    return evaluate(t, t->text.count);
}

/* ==== text ======================================================================================================== */

struct options {
    const char *data, *save, *load, *prompt, *svg;
    struct setup setup;
    int study, seeds, seed, log_weights;
    double steps, minutes;
    int generate; /* number of characters; 0: LINES lines */
    double temperature;
    mmax_truncation cut;
    unsigned given;
};

enum { LINES = 20, LONGEST = 4000 };

static void print_character(int symbol, double log_weight, int with_weight) {
    if (!with_weight) {
        putchar(symbol);
    } else if (symbol > ' ' && symbol < 127) {
        printf("%c %.6f\n", symbol, log_weight);
    } else {
        printf("%d %.6f\n", symbol, log_weight);
    }
}

static void check_prompt(const struct alphabet *a, const char *prompt) {
    for (; *prompt != '\0'; ++prompt) {
        if (class_of(a, (unsigned char)*prompt) < 0) { fail("--prompt: the text has no character '%c'", *prompt); }
    }
}

/* Continues the prompt, character by character. */
static void generate(const struct model *model, struct workspace *work, const struct alphabet *a,
                     const struct options *o) {
    static unsigned char class[LONGEST + TOKENS];
    size_t begin, count = 0, length = strlen(o->prompt), most = o->generate > 0 ? (size_t)o->generate : LONGEST;
    mmax_shape s = mmax_row((size_t)a->classes);
    mmax_truncation cut = o->cut;
    int lines = 0, newline = class_of(a, '\n');
    const char *prompt = o->prompt;
    s.scale = o->temperature > 0 ? 1 / o->temperature : 1;
    cut.k = o->temperature > 0 ? cut.k : 1;
    if (*prompt == '\0') { class[count++] = (unsigned char)(newline >= 0 ? newline : 0); }
    for (size_t i = length > TOKENS ? length - TOKENS : 0; i < length; ++i) {
        class[count++] = (unsigned char)class_of(a, (unsigned char)prompt[i]);
    }
    if (!o->log_weights) { fputs(prompt, stdout); }
    for (begin = count; count < begin + most && (o->generate > 0 || lines < LINES); ++count) {
        uint32_t next;
        double log_weight;
        const real *x = next_scores(model, work, a, class, count);
        check(mmax_sample_f32(&next, &log_weight, x, cut, (uint64_t)o->seed, count - begin, s));
        if (next == UINT32_MAX) { fail("the model's scores are not numbers"); }
        class[count] = (unsigned char)next;
        lines += (int)next == newline;
        print_character(a->symbol[next], log_weight, o->log_weights);
        fflush(stdout);
    }
    if (!o->log_weights && (int)class[count - 1] != newline) { putchar('\n'); }
}

/* ==== studies ===================================================================================================== */

enum { STUDY_ATTENTION, STUDY_OUTPUT, STUDIES, STUDY_ROWS = 8 };
static const char *const study_name[] = {"attention", "output"};

struct row {
    char label[48];
    int attention, output;
};

/* The other rows are compared with the first one. */
static int rows_of_study(struct row row[STUDY_ROWS], int study) {
    static const int function[] = {SOFTMAX, RELU, DOT, SIGMOID, SIGSOFTMAX, COSFORMER, TANHMAX};
    int rows = study == STUDY_ATTENTION ? (int)(sizeof function / sizeof *function) : 4;
    for (int r = 0; r < rows; ++r) {
        row[r].attention = study == STUDY_ATTENTION ? function[r] : r % 2 == 1 ? MULTIMAX : SOFTMAX;
        row[r].output = study == STUDY_OUTPUT && r >= 2 ? MULTIMAX : SOFTMAX;
        snprintf(row[r].label, sizeof row[r].label, "%s%s%s", function_name[row[r].attention],
                 study == STUDY_OUTPUT ? " attention, " : "",
                 study == STUDY_OUTPUT ? function_name[row[r].output] : "");
    }
    return rows;
}

static void print_difference(const double *measure, const double *from, int seeds) {
    struct spread s = spread_of(measure, from, seeds);
    if (measure == from) {
        printf("%19s", "");
    } else if (seeds > 1) {
        printf("  %+8.3f +-%6.3f", s.mean, s.std);
    } else {
        printf("  %+8.3f         ", s.mean);
    }
}

static void run_study(struct trainer *t, const struct options *o, size_t steps) {
    struct row row[STUDY_ROWS];
    double bits[STUDY_ROWS][MAX_SEEDS], right[STUDY_ROWS][MAX_SEEDS];
    int rows = rows_of_study(row, o->study);
    printf("%s, %d seed(s), %lu steps, %s: held-out text\n\n"
           "%-30s bits per char., minus the first row    right %%, minus the first row    perplexity\n",
           study_name[o->study], o->seeds, (unsigned long)steps, mmax_isa_name(mmax_isa_active()),
           o->study == STUDY_ATTENTION ? "attention" : "");
    for (int r = 0; r < rows; ++r) {
        struct setup setup = o->setup;
        setup.by_layer = 0;
        setup.attention = row[r].attention;
        setup.output = row[r].output;
        for (int seed = 0; seed < o->seeds; ++seed) {
            char name[64];
            snprintf(name, sizeof name, "%.40s, seed %d", row[r].label, seed + 1);
            struct held_out h = train(t, &setup, seed + 1, name, steps, NULL);
            bits[r][seed] = h.bits;
            right[r][seed] = 100 * h.accuracy;
        }
        double mean = spread_of(bits[r], NULL, o->seeds).mean;
        printf("%-30s %6.3f", row[r].label, mean);
        print_difference(bits[r], bits[0], o->seeds);
        printf("   %6.2f", spread_of(right[r], NULL, o->seeds).mean);
        print_difference(right[r], right[0], o->seeds);
        printf("  %8.3f\n", pow(2, mean));
        fflush(stdout);
    }
}

/* ==== figures ===================================================================================================== */

enum { SHOWN = 40, KINDS = 3, BARS = 20 };
static const int kind_function[KINDS] = {SPARSEMAX, MULTIMAX, SOFTMAX}; /* the last one writes the text */
static const char *const kind_name[KINDS] = {"SparseMax", "MultiMax", "SoftMax"};
static const struct line_style wide_line = {INK, "none", "5"}; /* wide, since MultiMax's line often lies on it */
static const struct line_style *const kind_line[KINDS] = {&sparsemax_line, &multimax_line, &wide_line};

struct drawing {
    struct curve curve[KINDS];
    double map[KINDS][SHOWN * SHOWN]; /* means over the heads of the last layer; a row is a query */
    unsigned char sentence[SHOWN];
};

/* The first characters of a held-out line that is long enough. */
static size_t shown_sentence(const struct text *text, const struct alphabet *a) {
    int newline = class_of(a, '\n');
    for (size_t i = text->train_count, begin = i; i + 1 < text->count; ++i) {
        begin = text->class[i] == newline ? i + 1 : begin;
        if (i + 1 == begin + SHOWN && begin + TOKENS < text->count) { return begin; }
    }
    return text->train_count;
}

static void keep_map(struct trainer *t, struct drawing *d, int kind) {
    size_t first = shown_sentence(&t->text, &t->alphabet);
    const real *weight = t->work.stack.layer[t->model.setup.layers - 1].weight;
    load_window(&t->work, &t->text, 0, first);
    forward(&t->model, &t->work, 1, 0);
    for (size_t i = 0; i < SHOWN; ++i) {
        d->sentence[i] = t->alphabet.symbol[t->text.class[first + i]];
        for (size_t k = 0; k < SHOWN; ++k) {
            for (size_t h = 0; h < HEADS; ++h) {
                d->map[kind][i * SHOWN + k] += (double)weight[h * SQUARE + i * TOKENS + k] / HEADS;
            }
        }
    }
}

/* Shows a space as a dot, and other characters that cannot be shown as a question mark. */
static void svg_symbol(FILE *svg, double x, double y, const char *anchor, int symbol) {
    svg_text(svg, x, y, anchor,
             symbol == ' ' || symbol == '\n' ? "&#%d;"
             : isalnum(symbol)               ? "%c"
                                             : "&#%d;",
             symbol == ' '                  ? 183
             : symbol == '\n'               ? 182
             : symbol > ' ' && symbol < 127 ? symbol
                                            : '?');
}

static void draw_attention(FILE *svg, const struct drawing *d) {
    const double field = 7, left = 28, top = 64, pitch = field * SHOWN + 28;
    svg_begin(svg, (int)(left + KINDS * pitch), (int)(top + field * SHOWN) + 34, "Attention of one sentence");
    svg_text(
        svg, left, 24, "start",
        "Attention of one held-out sentence: each row is a character that looks at others (last layer, mean of heads)");
    for (int kind = KINDS; kind-- > 0;) {
        double x = left + (KINDS - 1 - kind) * pitch;
        svg_text(svg, x, top - 12, "start", "%s", kind_name[kind]);
        fprintf(svg, "<path class=\"grid\" d=\"");
        svg_point(svg, 'M', x, top);
        svg_point(svg, 'L', x, top + field * SHOWN);
        svg_point(svg, 'L', x + field * SHOWN, top + field * SHOWN);
        fprintf(svg, "z\"/>\n<path fill=\"%s\" d=\"", kind_line[kind]->colour);
        for (int i = 0; i < SHOWN * SHOWN; ++i) {
            double side = field * sqrt(d->map[kind][i]), inset = (field - side) / 2;
            if (side > 0.5) {
                fprintf(svg, "M%.1f %.1fh%.1fv%.1fh-%.1fz", x + field * (i % SHOWN) + inset,
                        top + field * (i / SHOWN) + inset, side, side, side);
            }
        }
        fprintf(svg, "\"/>\n<g font-size=\"8\" font-family=\"monospace\">\n");
        for (int i = 0; i < SHOWN; ++i) {
            svg_symbol(svg, x - 4, top + field * (i + 1) - 1, "end", d->sentence[i]);
            svg_symbol(svg, x + field * (i + 0.5), top + field * SHOWN + 12, "middle", d->sentence[i]);
        }
        fprintf(svg, "</g>\n");
    }
    svg_end(svg);
}

static void draw_training(FILE *svg, const struct drawing *d) {
    struct panel panel = {56, 76, 640, 260, {0, 0}, {0, 0}};
    double lowest = 8, highest = 0, step[2] = {1000, 0.5};
    for (int kind = 0; kind < KINDS; ++kind) {
        for (int i = 0; i < POINTS; ++i) {
            lowest = fmin(lowest, fmin(d->curve[kind].bits[i], d->curve[kind].held_out[i]));
            highest = fmax(highest, fmax(d->curve[kind].bits[i], d->curve[kind].held_out[i]));
        }
    }
    panel.high[0] = d->curve[0].step[POINTS - 1];
    panel.low[1] = floor(2 * lowest) / 2;
    panel.high[1] = ceil(2 * highest) / 2;
    step[0] = pow(10, ceil(log10(panel.high[0] / 8)));
    step[0] /= panel.high[0] / step[0] < 4 ? 2 : 1;
    svg_begin(svg, 720, 392, "Bits per character during training");
    svg_text(svg, panel.left, 24, "start",
             "Bits per character of training text (thin lines; a mean of 50 steps) and of held-out text");
    svg_grid(svg, &panel, step, 1, 1);
    for (int kind = KINDS; kind-- > 0;) {
        struct line_style thin = {kind_line[kind]->colour, kind_line[kind]->dashes, "1"};
        svg_curve(svg, &panel, &thin, d->curve[kind].step, d->curve[kind].bits, 1, POINTS);
        svg_curve(svg, &panel, kind_line[kind], d->curve[kind].step, d->curve[kind].held_out, 1, POINTS);
        svg_key(svg, panel.left + 150 * (KINDS - 1 - kind), 50, kind_line[kind], kind_name[kind]);
    }
    svg_text(svg, panel.left + panel.width / 2, 380, "middle", "steps of training");
    svg_end(svg);
}

/* The BARS likeliest characters after the prompt, in descending order, and the ones that each cut keeps. */
static void draw_kept(FILE *svg, struct trainer *t) {
    enum { CUTS = 4 };
    static const char *const cut_name[CUTS] = {"top-k 5", "top-p 0.9", "min-p 0.1", "top-n-&#963; 1"};
    static const struct line_style *const cut_line[CUTS] = {&softmax_line, &multimax_line, &sparsemax_line,
                                                            &evsoftmax_line};
    const mmax_truncation cut[CUTS] = {{.k = 5}, {.top_p = 0.9}, {.min_p = 0.1}, {.deviations = 1}};
    const double left = 96, top = 68, pitch = 25, height = 150, below = top + height + 22;
    unsigned char class[TOKENS] = {0};
    float weight[CLASSES], kept[CLASSES];
    uint32_t order[BARS];
    size_t count = 0, bars = t->alphabet.classes < BARS ? (size_t)t->alphabet.classes : BARS;
    for (const char *prompt = KEPT_PROMPT; *prompt != '\0'; ++prompt) {
        int c = class_of(&t->alphabet, (unsigned char)*prompt);
        class[count++] = (unsigned char)(c < 0 ? 0 : c);
    }
    const mmax_router all = {.k = bars, .gate = MMAX_GATE_SOFTMAX};
    mmax_shape s = mmax_row((size_t)t->alphabet.classes);
    const real *x = next_scores(&t->model, &t->work, &t->alphabet, class, count);
    check(mmax_route_f32(weight, order, x, &all, s));
    svg_begin(svg, (int)(left + pitch * BARS) + 16, (int)below + 24 * CUTS + 14, "Characters that cuts keep");
    svg_text(svg, left, 22, "start", "Weights of the characters after &#8220;%s&#8221;,", KEPT_PROMPT);
    svg_text(svg, left, 42, "start", "and those that each cut keeps");
    for (int i = 0; i <= 2; ++i) {
        double most = ceil(20 * (double)weight[0]) / 20, y = top + height - height * i / 2;
        svg_line(svg, "grid", left, y, left + pitch * BARS, y);
        svg_text(svg, left - 8, y + 5, "end", "%.3g %%", 100 * most * i / 2);
    }
    for (size_t i = 0; i < bars; ++i) {
        double most = ceil(20 * (double)weight[0]) / 20, x0 = left + pitch * (double)i + 3;
        double size = height * (double)weight[i] / most;
        fprintf(svg, "<rect x=\"%.1f\" y=\"%.2f\" width=\"%.1f\" height=\"%.2f\" fill=\"" INK "\"/>\n", x0,
                top + height - size, pitch - 6, size);
        svg_symbol(svg, x0 + pitch / 2 - 3, top + height + 17, "middle", t->alphabet.symbol[order[i]]);
    }
    for (int c = 0; c < CUTS; ++c) {
        double y = below + 24 * c + 6;
        svg_text(svg, left - 8, y + 13, "end", "%s", cut_name[c]);
        check(mmax_truncate_f32(kept, x, cut[c], s));
        for (size_t i = 0; i < bars; ++i) {
            if (kept[order[i]] > 0) {
                fprintf(svg, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"14\" fill=\"%s\"/>\n",
                        left + pitch * (double)i + 3, y, pitch - 6, cut_line[c]->colour);
            }
        }
    }
    svg_end(svg);
}

/* Trains the three models one after the other and draws them. The last model stays. */
static struct held_out train_and_draw(struct trainer *t, const struct options *o, size_t steps) {
    struct drawing *d = allocate(1, sizeof *d);
    struct held_out h = {0, 0};
    for (int kind = 0; kind < KINDS; ++kind) {
        struct setup setup = o->setup;
        for (int l = 0; l < MAX_LAYERS; ++l) { setup.function[l] = kind_function[kind]; }
        h = train(t, &setup, o->seed, kind_name[kind], steps, &d->curve[kind]);
        keep_map(t, d, kind);
    }
    draw_training(file_open_in(o->svg, "language_training.svg"), d);
    draw_attention(file_open_in(o->svg, "language_attention.svg"), d);
    draw_kept(file_open_in(o->svg, "kept.svg"), t);
    files_keep();
    free(d);
    return h;
}

/* ==== main ======================================================================================================== */

static const char usage[] =
    "usage: language [options]\n"
    "\n"
    "Trains a decoder over the characters of a text: three minutes on one core of a Xeon with AVX-512, five on slower\n"
    "ones; lines of progress go to the standard error. Prints how many bits it needs for a character of the last\n"
    "tenth, which it has not seen, and writes twenty lines of its own.\n"
    "\n"
    "  --data FILE       the text (examples/data/northanger_abbey.txt)\n"
    "  --steps N         steps of training (7000)\n"
    "  --minutes M       as many steps as the Xeon trains in M minutes\n"
    "  --layers N        number of layers, 1 to 4 (3)\n"
    "  --attention NAME  function of all layers, or a name for each with commas between them (softmax): softmax,\n"
    "                    multimax, evsoftmax, sparsemax, entmax15, tanhmax, sigsoftmax, relu, dot, sigmoid, cosformer\n"
    "  --output NAME     output layer: softmax or multimax (softmax)\n"
    "  --mlp NAME        function of the perceptrons: relu or seglu (relu)\n"
    "  --seed N          seed of first weights, windows and text (1)\n"
    "  --save FILE       write the model to FILE\n"
    "  --load FILE       read the model from FILE instead of training\n"
    "  --svg DIR         train with softmax, MultiMax and SparseMax in the attention, and write\n"
    "                    language_training.svg, language_attention.svg and kept.svg to DIR; takes three times as long\n"
    "\n"
    "  --prompt TEXT     the beginning of the text\n"
    "  --generate N      write N characters instead of twenty lines\n"
    "  --temperature T   0 to 100 (0.8); 0 takes the likeliest character each time\n"
    "  --top-k N, --top-p P, --min-p P   cuts: characters are drawn from what all of them keep (--top-p 0.9)\n"
    "  --log-weights     print a line for each character, with the logarithm of its weight among all\n"
    "\n"
    "  --study attention compare softmax, ReLU, dot product, sigmoid, sigsoftmax, cosformer, TanhMax in the attention\n"
    "  --study output    compare softmax and MultiMax in attention and output layer\n"
    "  --seeds N         seeds of a study (3); differences are taken seed by seed, +- is their standard deviation\n"
    "  --help            this text\n"
    "\n"
    "A study takes 36 minutes on the Xeon, or --minutes, or --steps for each model. Results are the same in every "
    "run\n"
    "and on every machine with fma. Exit status 0, or 2 for a wrong option or file.\n";

/* Indices into option_name; `given` has a bit for each. */
enum {
    DATA,
    STEPS,
    MINUTES,
    DEPTH,
    ATTENTION,
    LAST_LAYER,
    MLP,
    SEED,
    SAVE,
    LOAD,
    SVG,
    PROMPT,
    GENERATE,
    TEMPERATURE,
    TOP_K,
    TOP_P,
    MIN_P,
    STUDY,
    SEEDS,
    VALUED,
    LOG_WEIGHTS = VALUED,
    OPTIONS
};
static const char *const option_name[] = {"--data",   "--steps",  "--minutes",  "--layers",      "--attention",
                                          "--output", "--mlp",    "--seed",     "--save",        "--load",
                                          "--svg",    "--prompt", "--generate", "--temperature", "--top-k",
                                          "--top-p",  "--min-p",  "--study",    "--seeds",       "--log-weights"};

static int was_given(const struct options *o, int option) { return (o->given >> option & 1) != 0; }

/* NAME or NAME,NAME..: the last name is used for all further layers. */
static void read_functions(struct setup *setup, const char *option, const char *text) {
    for (int l = 0; l < MAX_LAYERS; ++l) {
        char name[32];
        size_t length = strcspn(text, ",");
        snprintf(name, sizeof name, "%.*s", (int)(length < 31 ? length : 31), text);
        setup->function[l] = word_value(option, name, function_name, ALL_FUNCTIONS);
        if (setup->function[l] == TOPK || setup->function[l] == ENTMAX || setup->function[l] == SPARSEHOURGLASS) {
            fail("%s: %s has a parameter, and this program cannot set it", option, name);
        }
        if (text[length] == ',') {
            if (l + 1 == MAX_LAYERS) { fail("%s takes %d functions at most", option, MAX_LAYERS); }
            text += length + 1;
        }
    }
}

static void read_value(struct options *o, int which, const char *v) {
    static const char *const mlp[] = {"relu", "seglu"};
    const char *option = option_name[which];
    switch (which) {
    case DATA: o->data = v; break;
    case STEPS: o->steps = integer_value(option, v, 1, 1000000); break;
    case MINUTES: o->minutes = number_value(option, v, 0.01, 1e4); break;
    case DEPTH: o->setup.layers = integer_value(option, v, 1, MAX_LAYERS); break;
    case ATTENTION: read_functions(&o->setup, option, v); break;
    case LAST_LAYER: o->setup.output = word_value(option, v, function_name, MULTIMAX + 1); break;
    case MLP: o->setup.seglu = word_value(option, v, mlp, 2); break;
    case SEED: o->seed = integer_value(option, v, 0, 1000000); break;
    case SAVE: o->save = v; break;
    case LOAD: o->load = v; break;
    case SVG: o->svg = v; break;
    case PROMPT: o->prompt = v; break;
    case GENERATE: o->generate = integer_value(option, v, 1, LONGEST); break;
    case TEMPERATURE: o->temperature = number_value(option, v, 0, 100); break;
    case TOP_K: o->cut.k = (size_t)integer_value(option, v, 1, CLASSES); break;
    case TOP_P: o->cut.top_p = number_value(option, v, 0, 1); break;
    case MIN_P: o->cut.min_p = number_value(option, v, 0, 0.999); break;
    case STUDY: o->study = word_value(option, v, study_name, STUDIES); break;
    default: o->seeds = integer_value(option, v, 1, MAX_SEEDS); break;
    }
    o->given |= 1u << which;
}

/* Refuses options that would have no effect. */
static void refuse_together(const struct options *o) {
    static const int pair[][2] = {{STEPS, MINUTES}, {LOAD, DATA},   {LOAD, STEPS},      {LOAD, MINUTES},
                                  {LOAD, DEPTH},    {LOAD, SAVE},   {LOAD, ATTENTION},  {LOAD, LAST_LAYER},
                                  {LOAD, MLP},      {LOAD, SVG},    {LOAD, STUDY},      {SVG, ATTENTION},
                                  {STUDY, SVG},     {STUDY, SAVE},  {STUDY, ATTENTION}, {STUDY, LAST_LAYER},
                                  {STUDY, PROMPT},  {STUDY, SEED},  {STUDY, GENERATE},  {STUDY, TEMPERATURE},
                                  {STUDY, TOP_K},   {STUDY, TOP_P}, {STUDY, MIN_P}};
    for (size_t i = 0; i < sizeof pair / sizeof *pair; ++i) {
        if (was_given(o, pair[i][0]) && was_given(o, pair[i][1])) {
            fail("%s and %s exclude each other", option_name[pair[i][0]], option_name[pair[i][1]]);
        }
    }
    if (was_given(o, SEEDS) && !was_given(o, STUDY)) { fail("--seeds belongs to --study"); }
    if (o->log_weights && was_given(o, STUDY)) { fail("--study and --log-weights exclude each other"); }
}

static void read_options(struct options *o, int argc, char **argv) {
    const char *value;
    for (int i = 0, which; (which = next_option(argc, argv, &i, option_name, OPTIONS, VALUED, usage, &value)) >= 0;) {
        if (which == LOG_WEIGHTS) {
            o->log_weights = 1;
        } else {
            read_value(o, which, value);
        }
    }
    refuse_together(o);
}

/* The number of training steps of each model. */
static size_t steps_of(const struct options *o, double models) {
    double minutes = was_given(o, MINUTES) ? o->minutes : 36;
    int by_time = was_given(o, MINUTES) || (was_given(o, STUDY) && !was_given(o, STEPS));
    return by_time ? (size_t)ceil(minutes * STEPS_A_MINUTE / models) : (size_t)o->steps;
}

static void train_one(struct trainer *t, const struct options *o) {
    size_t steps = steps_of(o, o->svg != NULL ? KINDS : 1);
    struct held_out h;
    t->steps = (double)steps * (o->svg != NULL ? KINDS : 1);
    h = o->svg != NULL ? train_and_draw(t, o, steps) : train(t, &o->setup, o->seed, "training", steps, NULL);
    if (!o->log_weights) {
        printf("%lu steps, %s: %.3f bits per character of the held-out tenth, %.1f %% of them guessed right\n\n",
               (unsigned long)steps, mmax_isa_name(mmax_isa_active()), h.bits, 100 * h.accuracy);
    }
    if (o->save != NULL) { save_model(&t->model, &t->alphabet, o->save); }
}

int main(int argc, char **argv) {
    struct trainer *t = allocate(1, sizeof *t);
    struct options o = {.data = "examples/data/northanger_abbey.txt", .prompt = "", .seeds = 3, .seed = 1};
    o.setup = (struct setup){.order = 2, .terms = TERMS_BD, .layers = 3, .temperature = 1, .by_layer = 1};
    o.steps = 7000;
    o.temperature = 0.8;
    o.cut.top_p = 0.9;
    read_options(&o, argc, argv);
    if (o.svg != NULL) { /* a wrong directory or file fails before the training */
        file_open_in(o.svg, "language_training.svg");
    }
    if (o.save != NULL) { file_open(o.save); }
    files_drop();
    if (o.load != NULL) {
        load_model(&t->model, &t->alphabet, o.load);
    } else {
        t->text = read_text(&t->alphabet, o.data);
        t->begun = t->drawn = time(NULL);
    }
    check_prompt(&t->alphabet, o.prompt);
    if (was_given(&o, STUDY)) {
        struct row row[STUDY_ROWS];
        double models = (double)rows_of_study(row, o.study) * o.seeds;
        size_t steps = steps_of(&o, models);
        t->steps = models * (double)steps;
        run_study(t, &o, steps);
    } else {
        if (o.load == NULL) { train_one(t, &o); }
        generate(&t->model, &t->work, &t->alphabet, &o);
    }
    flush_results();
    free(t->text.class);
    free(t);
    return 0;
}
