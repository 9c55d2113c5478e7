/*
 * common.h: helpers of the examples: messages, memory, options, output files, SVG. A file appears whole or not at all.
 *
 * Include it first, with PROGRAM defined as the name that stands before every message.
 */
#ifndef EXAMPLES_COMMON_H
#define EXAMPLES_COMMON_H

#if defined(__unix__) || defined(__APPLE__)
#    define _POSIX_C_SOURCE 200112L /* isatty, lstat */
#    include <sys/stat.h>
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

/* ==== messages and memory ========================================================================================= */

/* Files being written. `part` is the name of an unfinished file; NULL if the file itself is written. */
static struct {
    char *path, *part;
    FILE *stream;
} unfinished[8];
static size_t unfinished_count;

static inline void files_drop(void) {
    while (unfinished_count > 0) {
        --unfinished_count;
        if (unfinished[unfinished_count].stream != NULL) { fclose(unfinished[unfinished_count].stream); }
        if (unfinished[unfinished_count].part != NULL) { remove(unfinished[unfinished_count].part); }
        free(unfinished[unfinished_count].part);
        free(unfinished[unfinished_count].path);
    }
}

/* Prints one sentence, removes unfinished files, and exits with status 2. */
static inline void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs(PROGRAM ": ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    files_drop();
    exit(2);
}

static inline void check(mmax_status status) {
    if (status != MMAX_OK) { fail("multimax.h: %s", mmax_status_string(status)); }
}

static inline void *resize(void *memory, size_t count, size_t size) {
    void *resized = count > SIZE_MAX / size ? NULL : realloc(memory, count * size);
    if (resized == NULL) { fail("out of memory"); }
    return resized;
}

/* Zeroed memory, to be freed by free(). */
static inline void *allocate(size_t count, size_t size) {
    void *memory = calloc(count, size);
    if (memory == NULL) { fail("out of memory"); }
    return memory;
}

/* The text first + middle + last, to be freed by free(). */
static inline char *join(const char *first, const char *middle, const char *last) {
    size_t room = strlen(first) + strlen(middle) + strlen(last) + 1;
    char *text = allocate(room, 1);
    snprintf(text, room, "%s%s%s", first, middle, last);
    return text;
}

static inline void flush_results(void) {
    if (fflush(stdout) != 0 || ferror(stdout)) { fail("cannot write the results: %s", strerror(errno)); }
}

/* ==== options ===================================================================================================== */

/* If argv[*i] is the option `name`, moves *i on to its value and returns it; otherwise NULL. */
static inline const char *option_value(int argc, char **argv, int *i, const char *name) {
    if (strcmp(argv[*i], name) != 0) { return NULL; }
    if (++*i == argc) { fail("%s needs a value; see --help", name); }
    return argv[*i];
}

/* The index of `text` among the words. */
static inline int word_value(const char *option, const char *text, const char *const *words, int count) {
    for (int i = 0; i < count; ++i) {
        if (strcmp(text, words[i]) == 0) { return i; }
    }
    fail("%s does not know '%s'; see --help", option, text);
    return 0;
}

static inline double number_value(const char *option, const char *text, double least, double most) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= least && value <= most)) {
        fail("%s takes a number from %g to %g, not '%s'", option, least, most, text);
    }
    return value;
}

/* The index of NAME among the words, for NAME or NAME:PARAMETER; *parameter is NULL without one. */
static inline int name_value(const char *option, const char *text, const char *const *words, int count,
                             const char **parameter) {
    char name[32];
    size_t length = strcspn(text, ":");
    *parameter = text[length] == ':' ? text + length + 1 : NULL;
    length = length < sizeof name ? length : sizeof name - 1;
    memcpy(name, text, length);
    name[length] = '\0';
    return word_value(option, name, words, count);
}

static inline int integer_value(const char *option, const char *text, int least, int most) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= least && value <= most) || value != floor(value)) {
        fail("%s takes an integer from %d to %d, not '%s'", option, least, most, text);
    }
    return (int)value;
}

/* The parameter of "entmax:1.25"; without a text the usual one; 0 if the function has no parameter. */
static inline double parameter_value(const char *option, const char *function, const char *text) {
    static const struct {
        const char *name;
        double least, most, usual;
    } known[] = {{"topk", 1, 1e6, 4}, {"entmax", 1, 8, 1.25}, {"sparsehourglass", 1e-6, 1e6, 1}};
    for (size_t i = 0; i < sizeof known / sizeof *known; ++i) {
        if (strcmp(function, known[i].name) == 0) {
            return text == NULL ? known[i].usual
                   : i == 0     ? integer_value(option, text, (int)known[i].least, (int)known[i].most)
                                : number_value(option, text, known[i].least, known[i].most);
        }
    }
    if (text != NULL) { fail("%s: %s has no parameter", option, function); }
    return 0;
}

static inline void print_help(const char *usage) {
    fputs(usage, stdout);
    flush_results();
    exit(0);
}

/* Moves *i on to the next option, and returns its index among the names, or -1 at the end. The first `valued` options
 * have a value. --help prints the usage. */
static inline int next_option(int argc, char **argv, int *i, const char *const *names, int count, int valued,
                              const char *usage, const char **value) {
    if (++*i >= argc) { return -1; }
    for (int which = 0; which < count; ++which) {
        if (strcmp(argv[*i], names[which]) == 0) {
            *value = which < valued ? option_value(argc, argv, i, names[which]) : NULL;
            return which;
        }
    }
    if (strcmp(argv[*i], "--help") == 0) { print_help(usage); }
    fail("there is no option '%s'; see --help", argv[*i]);
    return -1;
}

/* ==== files ======================================================================================================= */

/* Opens a file; files_keep() gives it its name. A device or a link is written directly. */
static inline FILE *file_open(const char *path) {
    int itself = 0;
#if defined(S_ISREG)
    struct stat status;
    itself = lstat(path, &status) == 0 && !S_ISREG(status.st_mode);
#endif
    char *part = itself ? NULL : join(path, ".part", "");
    FILE *stream = fopen(itself ? path : part, "wb");
    if (stream == NULL || unfinished_count == sizeof unfinished / sizeof *unfinished) {
        fail("cannot write '%s': %s", path, strerror(errno));
    }
    unfinished[unfinished_count].path = join(path, "", "");
    unfinished[unfinished_count].part = part;
    unfinished[unfinished_count++].stream = stream;
    return stream;
}

static inline FILE *file_open_in(const char *directory, const char *name) {
    char *path = join(directory, "/", name);
    FILE *stream = file_open(path);
    free(path);
    return stream;
}

/* Gives all files their names, if all are whole. */
static inline void files_keep(void) {
    for (size_t i = 0; i < unfinished_count; ++i) {
        int failed = ferror(unfinished[i].stream);
        failed |= fclose(unfinished[i].stream) != 0;
        unfinished[i].stream = NULL;
        if (failed) { fail("cannot write '%s': %s", unfinished[i].path, strerror(errno)); }
    }
    for (size_t i = 0; i < unfinished_count; ++i) {
        if (unfinished[i].part != NULL) {
#if defined(_WIN32)
            remove(unfinished[i].path); /* rename does not replace a file there */
#endif
            if (rename(unfinished[i].part, unfinished[i].path) != 0) {
                fail("cannot write '%s': %s", unfinished[i].path, strerror(errno));
            }
            free(unfinished[i].part);
            unfinished[i].part = NULL;
        }
    }
    files_drop();
}

/* ==== SVG ========================================================================================================= */

/* Colour-blind readers can tell these apart, lines also by their dashes. All are visible on white and on black. */
#define INK    "#7a7a7a"
#define BLUE   "#1f83d0"
#define ORANGE "#d55e00"
static const struct line_style {
    const char *colour, *dashes, *width;
} softmax_line = {INK, "none", "2.5"}, multimax_line = {BLUE, "none", "2.5"},
  evsoftmax_line = {"#079a72", "7 3", "2.5"}, sparsemax_line = {ORANGE, "2 2", "2.5"},
  entmax15_line = {"#c08400", "9 3 2 3", "2.5"}, tanhmax_line = {"#c066a0", "5 2", "2.5"};

/* The lines of functions with parameters, in their order; no other function uses them. */
static const struct line_style more_line[] = {{"#5a4fcf", "none", "2"},
                                              {"#5a4fcf", "6 3", "2"},
                                              {"#00868b", "none", "2"},
                                              {"#8a5a2b", "none", "2"},
                                              {"#8a5a2b", "6 3", "2"}};

/* Added before rounding to two decimals: the last bit of a result may differ between instruction sets, and must not
 * change a digit. */
#define UNTIE 1e-4

static inline void svg_begin(FILE *svg, int width, int height, const char *title) {
    fprintf(svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" "
            "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"15\" fill=\"none\" stroke-linejoin=\"round\">\n"
            "<title>%s</title>\n",
            width, height, width, height, title);
    fprintf(svg, "<style>\n"
                 "text { fill: #24292f } .ground { fill: #fff } .ink { stroke: #24292f } .grid { stroke: #d8dee4 }\n"
                 ".edge { stroke: #fff }\n"
                 "@media (prefers-color-scheme: dark) {\n"
                 "text { fill: #e6edf3 } .ground { fill: #0d1117 } .ink { stroke: #e6edf3 } .grid { stroke: #30363d }\n"
                 ".edge { stroke: #0d1117 }\n"
                 "}\n"
                 "</style>\n");
    fprintf(svg, "<rect class=\"ground\" width=\"%d\" height=\"%d\"/>\n", width, height);
}

static inline void svg_end(FILE *svg) { fprintf(svg, "</svg>\n"); }

/* anchor: start, middle or end. */
static inline void svg_text(FILE *svg, double x, double y, const char *anchor, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(svg, "<text x=\"%.2f\" y=\"%.2f\" text-anchor=\"%s\">", x + UNTIE, y + UNTIE, anchor);
    vfprintf(svg, format, arguments);
    fprintf(svg, "</text>\n");
    va_end(arguments);
}

/* A vertical label left of a panel. */
static inline void svg_vertical(FILE *svg, double x, double y, const char *text) {
    fprintf(svg, "<text transform=\"translate(%.2f %.2f) rotate(-90)\" text-anchor=\"middle\">%s</text>\n", x + UNTIE,
            y + UNTIE, text);
}

/* A step of a path; the command is M or L. */
static inline void svg_point(FILE *svg, char command, double x, double y) {
    fprintf(svg, "%c%.2f %.2f", command, x + UNTIE, y + UNTIE);
}

static inline void svg_line(FILE *svg, const char *class, double x0, double y0, double x1, double y1) {
    fprintf(svg, "<path class=\"%s\" d=\"", class);
    svg_point(svg, 'M', x0, y0);
    svg_point(svg, 'L', x1, y1);
    fprintf(svg, "\"/>\n");
}

struct panel {
    double left, top, width, height;
    double low[2], high[2]; /* the values at the ends of both axes */
};

static inline double panel_x(const struct panel *p, double x) {
    return p->left + p->width * (x - p->low[0]) / (p->high[0] - p->low[0]);
}

static inline double panel_y(const struct panel *p, double y) {
    return p->top + p->height * (p->high[1] - y) / (p->high[1] - p->low[1]);
}

/* Grid lines at every step[0] and step[1], from the lowest value on; with_x and with_y write the values beside them. */
static inline void svg_grid(FILE *svg, const struct panel *p, const double step[2], int with_x, int with_y) {
    double right = p->left + p->width, bottom = p->top + p->height;
    for (int i = 0; p->low[0] + i * step[0] < p->high[0] + step[0] / 2; ++i) {
        double value = p->low[0] + i * step[0], x = panel_x(p, value);
        svg_line(svg, "grid", x, p->top, x, bottom);
        if (with_x) { svg_text(svg, x, bottom + 18, "middle", "%s%g", value < 0 ? "&#8722;" : "", fabs(value)); }
    }
    for (int i = 0; p->low[1] + i * step[1] < p->high[1] + step[1] / 2; ++i) {
        double value = p->low[1] + i * step[1], y = panel_y(p, value);
        svg_line(svg, "grid", p->left, y, right, y);
        if (with_y) { svg_text(svg, p->left - 8, y + 5, "end", "%s%g", value < 0 ? "&#8722;" : "", fabs(value)); }
    }
}

/* A curve through the points x[i], y[i * y_stride]. */
static inline void svg_curve(FILE *svg, const struct panel *p, const struct line_style *style, const double *x,
                             const double *y, size_t y_stride, size_t n) {
    fprintf(svg, "<path stroke=\"%s\" stroke-width=\"%s\" stroke-dasharray=\"%s\" d=\"", style->colour, style->width,
            style->dashes);
    for (size_t i = 0; i < n; ++i) {
        svg_point(svg, i == 0 ? 'M' : 'L', panel_x(p, x[i]), panel_y(p, y[i * y_stride]));
    }
    fprintf(svg, "\"/>\n");
}

/* A short line of the style, and its name. */
static inline void svg_key(FILE *svg, double x, double y, const struct line_style *style, const char *name) {
    static const double ends[2] = {0, 1}, level[2] = {0, 0};
    struct panel key = {x, y - 1, 30, 1, {0, 0}, {1, 1}};
    svg_curve(svg, &key, style, ends, level, 1, 2);
    svg_text(svg, x + 38, y + 5, "start", "%s", name);
}

#endif
