/*
 * classmaps.c: maps of classes as in segmentation networks, [class][row][column]. The program applies softmax, MultiMax
 * and sparsemax over the classes and draws the results side by side: mixed colours, and the number of classes of each
 * pixel.
 *
 *     cc -O2 -Iinclude examples/classmaps.c -o classmaps -lm
 *     ./classmaps --svg .
 *
 * The program makes the scores: each class has some discs, a score falls with the distance from the nearest one, and
 * noise is added. The classes of a pixel are height * width elements apart (`inner`); one call takes all pixels.
 */
#define PROGRAM "classmaps"
#include "common.h"

enum { CLASSES = 5, HEIGHT = 45, WIDTH = 60, PIXELS = HEIGHT * WIDTH, FUNCTIONS = 3 };

static const char usage[] =
    "usage: classmaps --svg DIR\n"
    "Applies softmax, MultiMax and sparsemax over the classes of a map of scores, and draws classmaps.svg in DIR.\n";
static const char *const function_name[FUNCTIONS] = {"SoftMax", "MultiMax", "SparseMax"};

/* ==== scores ====================================================================================================== */

/* Discs: class, centre and radius. The first class is the background: its score is 0 everywhere. */
static const struct disc {
    int of;
    double x, y, radius;
} discs[] = {{1, 14, 13, 10}, {1, 40, 35, 7}, {2, 24, 20, 9}, {2, 51, 9, 5},
             {3, 44, 17, 11}, {4, 17, 34, 8}, {4, 30, 33, 6}};

/* A triangular distribution on -1..1: the sum of two uniform numbers (xorshift, Marsaglia 2003). */
static double noise(void) {
    static uint32_t state = 2463534242u;
    double sum = -1;
    for (int i = 0; i < 2; ++i) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        sum += (double)(state >> 8) / 16777216;
    }
    return sum;
}

static void make_scores(float scores[CLASSES][HEIGHT][WIDTH]) {
    for (int c = 0; c < CLASSES; ++c) {
        for (int i = 0; i < HEIGHT; ++i) {
            for (int j = 0; j < WIDTH; ++j) {
                double depth = c == 0 ? 0 : -8; /* how far inside the class */
                for (size_t d = 0; d < sizeof discs / sizeof *discs; ++d) {
                    const double x = j - discs[d].x, y = i - discs[d].y;
                    if (discs[d].of == c) { depth = fmax(depth, discs[d].radius - sqrt(x * x + y * y)); }
                }
                scores[c][i][j] = (float)(fmin(0.6 * depth, 3) + 0.7 * noise());
            }
        }
    }
}

/* ==== weights ===================================================================================================== */

static void reweight(float weights[CLASSES][HEIGHT][WIDTH], float scores[CLASSES][HEIGHT][WIDTH], int function) {
    mmax_shape s = mmax_rows(PIXELS, CLASSES); /* a batch of N such maps: N * PIXELS rows */
    mmax_multimax_params p = mmax_multimax_identity(1);
    s.inner = PIXELS; /* the classes of a pixel are PIXELS elements apart */
    p.t_b[0] = 3;     /* lowers low scores */
    p.b[0] = 0.5;
    p.t_d[0] = 0.25; /* brings high scores closer together */
    p.d[0] = 1;
    check(function == 0   ? mmax_softmax_f32(weights[0][0], scores[0][0], s)
          : function == 1 ? mmax_multimax_f32(weights[0][0], scores[0][0], &p, s)
                          : mmax_sparsemax_f32(weights[0][0], scores[0][0], s));
}

/* ==== SVG ========================================================================================================= */

enum { PIXEL = 5, MARGIN = 24, TOP = 56, BETWEEN = 52, PANEL = WIDTH * PIXEL, PANEL_HEIGHT = HEIGHT * PIXEL };

/* Colour-blind readers can tell these apart (Okabe and Ito 2008). */
static const int class_colour[CLASSES][3] = {
    {0xe8, 0xe8, 0xe8}, {0x00, 0x72, 0xb2}, {0xe6, 0x9f, 0x00}, {0x00, 0x9e, 0x73}, {0xcc, 0x79, 0xa7}};
static const char *const count_colour[CLASSES] = {"#f3f6fa", "#b5cbe4", "#6f9fd0", "#2f6cae", "#12355f"};

/* The number of classes with a visible weight. */
static int classes_of(float weights[CLASSES][HEIGHT][WIDTH], int i, int j) {
    int count = 0;
    for (int c = 0; c < CLASSES; ++c) { count += weights[c][i][j] >= 1.0f / 256; }
    return count;
}

/* The colours of the classes, mixed by weight; in steps, so that the last bit of a weight changes nothing. */
static void mixed_colour(char colour[8], float weights[CLASSES][HEIGHT][WIDTH], int i, int j) {
    unsigned mixed[3];
    for (int k = 0; k < 3; ++k) {
        double sum = 0;
        for (int c = 0; c < CLASSES; ++c) { sum += (double)weights[c][i][j] * class_colour[c][k]; }
        mixed[k] = (unsigned)(sum / 8 + 0.5 + UNTIE) * 8;
        mixed[k] = mixed[k] > 255 ? 255 : mixed[k];
    }
    snprintf(colour, 8, "#%02x%02x%02x", mixed[0], mixed[1], mixed[2]);
}

static void svg_box(FILE *svg, int x, int y, int width, int height, const char *colour) {
    fprintf(svg, "<path fill=\"%s\" d=\"M%d %dh%dv%dh-%dz\"/>\n", colour, x, y, width, height, width);
}

/* Runs of pixels of one colour are one box. Their edges are not smoothed: the ground would show through. */
static void svg_map(FILE *svg, int left, int top, float weights[CLASSES][HEIGHT][WIDTH], int counts) {
    char colour[8], next[8];
    fprintf(svg, "<g shape-rendering=\"crispEdges\">\n");
    for (int i = 0; i < HEIGHT; ++i) {
        for (int j = 0, from = 0; j <= WIDTH; ++j) {
            if (j == WIDTH) {
                next[0] = '\0';
            } else if (counts) {
                snprintf(next, sizeof next, "%s", count_colour[classes_of(weights, i, j) - 1]);
            } else {
                mixed_colour(next, weights, i, j);
            }
            if (j > 0 && strcmp(colour, next) != 0) {
                svg_box(svg, left + from * PIXEL, top + i * PIXEL, (j - from) * PIXEL, PIXEL, colour);
                from = j;
            }
            memcpy(colour, next, sizeof colour);
        }
    }
    fprintf(svg, "</g>\n");
}

static double mean_classes(float weights[CLASSES][HEIGHT][WIDTH]) {
    double sum = 0;
    for (int i = 0; i < HEIGHT; ++i) {
        for (int j = 0; j < WIDTH; ++j) { sum += classes_of(weights, i, j); }
    }
    return sum / PIXELS;
}

static void draw(FILE *svg, float scores[CLASSES][HEIGHT][WIDTH]) {
    static float weights[CLASSES][HEIGHT][WIDTH];
    const int width = FUNCTIONS * (PANEL + MARGIN) + MARGIN, below = TOP + PANEL_HEIGHT + BETWEEN;
    svg_begin(svg, width, below + PANEL_HEIGHT + MARGIN, "Maps of classes through SoftMax, MultiMax and SparseMax");
    for (int f = 0; f < FUNCTIONS; ++f) {
        const int left = MARGIN + f * (PANEL + MARGIN), middle = left + PANEL / 2;
        reweight(weights, scores, f);
        svg_text(svg, middle, TOP - 14, "middle", "%s", function_name[f]);
        svg_map(svg, left, TOP, weights, 0);
        svg_text(svg, middle, below - 14, "middle", "%.2f classes per pixel", mean_classes(weights) + UNTIE);
        svg_map(svg, left, below, weights, 1);
        printf("%-9s  %.2f classes per pixel with a weight of 1/256 or more\n", function_name[f],
               mean_classes(weights));
    }
    svg_text(svg, MARGIN, 20, "start",
             "Mixed colours of five classes; below, the number of classes that a pixel keeps:");
    for (int c = 0; c < CLASSES; ++c) {
        svg_box(svg, 640 + 44 * c, 8, 16, 16, count_colour[c]);
        svg_text(svg, 661 + 44 * c, 21, "start", "%d", c + 1);
    }
    svg_end(svg);
}

int main(int argc, char **argv) {
    static const char *const option[] = {"--svg"};
    static float scores[CLASSES][HEIGHT][WIDTH];
    const char *directory = NULL, *value;
    for (int i = 0; next_option(argc, argv, &i, option, 1, 1, usage, &value) >= 0;) { directory = value; }
    if (directory == NULL) { fail("--svg DIR says where the picture goes; see --help"); }
    FILE *svg = file_open_in(directory, "classmaps.svg");
    make_scores(scores);
    draw(svg, scores);
    flush_results();
    files_keep();
    return 0;
}
