/*
 * test_golden.c: the results and gradients that the official implementations gave, from the files in golden/; see the
 * README.md there. Run as `test_golden [FOLDER]`.
 */
#include <stdio.h>
#include <stdlib.h>

#include "function_table.h"
#include "golden_file.h"
#include "oracle.h"

/*
 * The bounds. An error in T is measured in epsilon times what the oracle says an entry is added up from; the official
 * results carry errors of their own, in double, which grow with the scores and reach every entry of a row of gx.
 */
#define BOUND          32
#define OFFICIAL_BOUND (64 * DBL_EPSILON)

enum { MOST = 128, PARAMETERS = 8 };

typedef struct golden {
    char name[16];
    size_t rows, cols;
    double scale, epsilon, x[MOST], y[MOST], gy[MOST], gx[MOST], gp[PARAMETERS];
    mmax_multimax_params p; /* order 0: not multimax */
} golden;

static const struct file {
    const char *name;
    unsigned cases;
} files[] = {{"softmax", 105}, {"multimax", 56},  {"sparsemax", 35},
             {"entmax15", 35}, {"evsoftmax", 58}, {"tanhmax", 35}};

/* ==== reading ==== */

/* 1: a case; 0: the end of the file; -1: neither. */
static int read_case(FILE *in, golden *g) {
    char word[16];
    unsigned rows, cols;
    size_t n;
    memset(g, 0, sizeof *g);
    if (fscanf(in, "%15s", word) != 1) { return 0; }
    if (strcmp(word, "case") != 0 || fscanf(in, "%15s %u %u %lf", g->name, &rows, &cols, &g->scale) != 4) { return -1; }
    n = (size_t)rows * cols;
    g->rows = rows;
    g->cols = cols;
    if (rows > MOST || cols > MOST || n > MOST) { return -1; }
    if (strcmp(g->name, "evsoftmax") == 0 && fscanf(in, "%lf", &g->epsilon) != 1) { return -1; }
    if (strcmp(g->name, "multimax") == 0 &&
        fscanf(in, "%d %lf %lf %lf %lf %lf %lf %lf %lf", &g->p.order, &g->p.t_b[0], &g->p.t_b[1], &g->p.t_d[0],
               &g->p.t_d[1], &g->p.b[0], &g->p.b[1], &g->p.d[0], &g->p.d[1]) != 9) {
        return -1;
    }
    if (!read_values(in, "x", g->x, n) || !read_values(in, "y", g->y, n) || !read_values(in, "gy", g->gy, n) ||
        !read_values(in, "gx", g->gx, n) || (g->p.order && !read_values(in, "gp", g->gp, PARAMETERS))) {
        return -1;
    }
    return 1;
}

/* ==== comparing ==== */

static score s_row[MOST];
static wide gy_row[MOST], y_row[MOST], gx_row[MOST], unit_row[MOST], scratch[MOST];
static unsigned skipped;

static const function *function_of(const golden *g, const char *direction, const char *type) {
    char name[64];
    const char *variant = g->p.order == 1 ? "(1)" : g->p.order == 2 ? "(2)" : g->epsilon > 0 ? "(1e-6)" : "";
    (void)snprintf(name, sizeof name, "%s%s%s_%s", g->name, direction, variant, type);
    return function_named(name);
}

/* Row r as the oracle takes it. Returns the largest magnitude of a score. */
static wide read_row(const function *f, const golden *g, const oracle *o, size_t r) {
    wide size = 0;
    for (size_t i = 0; i < g->cols; ++i) {
        s_row[i] = oracle_score(o, g->x[r * g->cols + i], g->scale);
        y_row[i] = f->size == 4 ? (double)(float)g->y[r * g->cols + i] : g->y[r * g->cols + i];
        gy_row[i] = g->gy[r * g->cols + i];
        size = fmaxl(size, fabsl(s_row[i].hi));
    }
    return size;
}

/* evsoftmax: an entry within rounding of the mean may fall on either side, here and in the official result. */
static int is_near_mean(const oracle *o, size_t n, wide near) {
    wide mean = 0, top = oracle_top(o, s_row, n).hi;
    for (size_t i = 0; i < n; ++i) { mean += s_row[i].hi / (wide)n; }
    for (size_t i = 0; i < n && o->f == EVSOFTMAX; ++i) {
        if (s_row[i].hi < top && fabsl(s_row[i].hi - mean) <= near) { return 1; }
    }
    return 0;
}

/* The call, or, turned, that on the same rows interleaved, with its result transposed back. */
static int turned;
static mmax_status run(const function *f, const call *c) {
    static double arrays[ARRAYS][MOST];
    const size_t rows = c->s.rows, cols = c->s.cols;
    call other = *c;
    mmax_status status;
    if (!turned) { return f->run(c); }
    other.s.inner = rows;
    for (int a = 0; a < ARRAYS; ++a) {
        other.array[a] = arrays[a];
        for (size_t i = 0; i < rows * cols; ++i) {
            set_bits(f, arrays[a], i % cols * rows + i / cols, get_bits(f, c->array[a], i));
        }
    }
    status = f->run(&other);
    for (size_t i = 0; i < rows * cols; ++i) {
        set_bits(f, c->array[OUT], i, get_bits(f, arrays[OUT], i % cols * rows + i / cols));
    }
    return status;
}

static void check_forward(const function *f, const golden *g, call *c) {
    oracle o = {oracle_formula(g->name), 0, &g->p, g->epsilon, largest(f), NULL, 0};
    CHECK(run(f, c) == MMAX_OK, AT, AT_ARGS(f, g->cols));
    for (size_t r = 0; r < g->rows; ++r) {
        wide size = read_row(f, g, &o, r), condition = 1;
        if (is_near_mean(&o, g->cols, 8 * eps_of(f) * size)) {
            ++skipped;
            continue;
        }
        for (size_t i = 0; i < g->cols && g->p.order; ++i) {
            wide unit;
            (void)oracle_sigma(&g->p, s_row[i].hi, &unit);
            condition = fmaxl(condition, unit);
        }
        for (size_t i = r * g->cols; i < (r + 1) * g->cols; ++i) {
            wide unit = o.f == SPARSEMAX || o.f == ENTMAX15 ? 1 : fabsl(g->y[i]), got = get(f, c->array[OUT], i);
            wide allowed = unit * (BOUND * eps_of(f) * condition + OFFICIAL_BOUND * (1 + size)) + smallest_normal(f);
            CHECK(fabsl(got - g->y[i]) <= allowed, AT ", y[%u] is %.17Lg, not %.17g", AT_ARGS(f, g->cols), (unsigned)i,
                  got, g->y[i]);
        }
    }
}

/* The gradients from the official y. */
static void check_backward(const function *f, const golden *g, call *c) {
    oracle o = {oracle_formula(g->name), 0, &g->p, g->epsilon, largest(f), NULL, 0};
    wide gp[PARAMETERS] = {0}, gp_unit[PARAMETERS] = {0}, bound = BOUND * eps_of(f), official = OFFICIAL_BOUND;
    double got_gp[PARAMETERS];
    CHECK(run(f, c) == MMAX_OK, AT, AT_ARGS(f, g->cols));
    for (size_t r = 0; r < g->rows; ++r) {
        wide size = read_row(f, g, &o, r), whole = 0;
        oracle_backward(&o, gx_row, unit_row, gp, gp_unit, gy_row, y_row, s_row, g->cols, g->scale, scratch);
        official = fmaxl(official, OFFICIAL_BOUND * (1 + size));
        for (size_t i = 0; i < g->cols; ++i) { whole += unit_row[i]; }
        for (size_t i = 0; i < g->cols; ++i) {
            size_t at = r * g->cols + i;
            wide got = get(f, c->array[OUT], at), allowed = bound * unit_row[i] + official * whole + smallest_normal(f);
            CHECK(fabsl(got - g->gx[at]) <= allowed, AT ", gx[%u] is %.17Lg, not %.17g", AT_ARGS(f, g->cols),
                  (unsigned)at, got, g->gx[at]);
        }
    }
    memcpy(got_gp, c->gp, sizeof got_gp);
    for (int k = 0; k < PARAMETERS && g->p.order; ++k) {
        CHECK(fabsl((wide)got_gp[k] - g->gp[k]) <= (bound + official) * gp_unit[k] + smallest_normal(f),
              AT ", gp[%d] is %.17g, not %.17g", AT_ARGS(f, g->cols), k, got_gp[k], g->gp[k]);
    }
}

static void check_case(const golden *g, const char *type) {
    const function *forward = function_of(g, "", type), *backward = function_of(g, "_backward", type);
    FOR_EACH_ISA(isa) {
        call c = call_of(forward, g->rows, g->cols, NORMAL_1, 1);
        c.s.scale = g->scale;
        c.p = g->p.order ? &g->p : NULL;
        c.epsilon = g->epsilon;
        for (size_t i = 0; i < g->rows * g->cols; ++i) {
            set(forward, c.array[X], i, g->x[i]);
            set(forward, c.array[GY], i, g->gy[i]);
            set(forward, c.array[Y], i, g->y[i]);
        }
        for (turned = 0; turned < 2; ++turned) {
            memset(&gp_storage, 0, sizeof gp_storage);
            check_forward(forward, g, &c);
            check_backward(backward, g, &c);
        }
    }
}

/* ==== softmax in f64 where one weight is near 1: an error of the sum is one of all others ==== */

#define NEAR_ONE_BOUND      5
#define NEAR_ONE_FILE_BOUND 4 /* 5.0 where the sum is that of plain additions */
static wide near_one_worst;

static void check_near_one(const char *name, double scale, const double *x, const wide *w, size_t n) {
    const function *f = function_named(name);
    FOR_EACH_ISA(isa) {
        call c = call_of(f, 1, n, NORMAL_1, 1);
        c.s.scale = scale;
        c.epsilon = 1;
        for (size_t i = 0; i < n; ++i) { set(f, c.array[X], i, x[i]); }
        CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
        for (size_t i = 0; i < n; ++i) {
            const wide error = fabsl(get(f, c.array[OUT], i) - w[i]) / ldexpl(1, ilogbl(w[i]) - 52);
            if (w[i] >= DBL_MIN && error > near_one_worst) { near_one_worst = error; }
            CHECK(w[i] < DBL_MIN || error <= NEAR_ONE_BOUND, AT ", y[%u] is %.3Lf ULP off", AT_ARGS(f, n), (unsigned)i,
                  error);
        }
    }
}

/* The row of a file: a line that ends in the scale, then x and the weight of each entry. */
static void check_near_one_file(const char *path) {
    double scale = 0, x[MOST], w;
    wide weights[MOST];
    size_t n = 0;
    FILE *in = fopen(path, "r");
    CHECK(in != NULL, "cannot read %s", path);
    if (!in) { return; }
    CHECK(fscanf(in, "# softmax in f64, one row of 40 entries, scale %lf%*[^\n]", &scale) == 1, "%s", path);
    for (; n < MOST && fscanf(in, "%lf %lf", &x[n], &w) == 2; ++n) { weights[n] = w; }
    (void)fclose(in);
    CHECK(n == 40, "%s: %u entries", path, (unsigned)n);
    check_near_one("softmax_f64", scale, x, weights, n);
    check_near_one("evsoftmax(1e-6)_f64", scale, x, weights, n);
}

#if defined(__SIZEOF_FLOAT128__)
__extension__ typedef __float128 quad;

static quad exp_quad(quad s) {
    const quad z = s / 1024;
    quad e = 1;
    for (int i = 26; i > 0; --i) { e = 1 + e * z / i; }
    for (int k = 0; k < 10; ++k) { e *= e; }
    return e;
}

/* Rows of random lengths, one entry of which has a weight above .9 */
static void search_near_one(unsigned rows) {
    for (unsigned r = 0; r < rows; ++r) {
        double x[MOST];
        quad e[MOST], sum = 0;
        wide w[MOST];
        const size_t n = 2 + (size_t)(random_uniform() * (MOST - 2)), top = (size_t)(random_uniform() * (double)n);
        const double scale = r % 3 ? 1 : 0.5 + 2 * random_uniform(), first = 60 * random_uniform() - 30,
                     gap = log((double)n) + 6 * random_uniform();
        for (size_t i = 0; i < n; ++i) {
            x[i] = (i == top ? first : first - gap - random_uniform() * (r % 2 ? 3 : 30)) / scale;
        }
        for (size_t i = 0; i < n; ++i) { sum += e[i] = exp_quad((quad)scale * x[i] - (quad)scale * x[top]); }
        for (size_t i = 0; i < n; ++i) { w[i] = (wide)(e[i] / sum); }
        if (w[top] > 0.9L) { check_near_one(r % 2 ? "softmax_f64" : "evsoftmax(1e-6)_f64", scale, x, w, n); }
    }
}
#else
static void search_near_one(unsigned rows) { (void)rows; }
#endif

int main(int argc, char **argv) {
    const char *folder = argc > 1 ? argv[1] : "tests/golden";
    TEST("y, gx and gp of the official implementations, in f32 and f64, on every instruction set, and transposed") {
        for (size_t k = 0; k < COUNT(files); ++k) {
            char path[4096];
            FILE *in;
            golden g;
            unsigned cases = 0;
            int got = 0;
            (void)snprintf(path, sizeof path, "%s/%s.txt", folder, files[k].name);
            in = fopen(path, "r");
            CHECK(in != NULL, "cannot read %s", path);
            while (in && (got = read_case(in, &g)) == 1) {
                check_case(&g, "f32");
                check_case(&g, "f64");
                ++cases;
            }
            CHECK(got == 0, "%s: case %u is not in the format of README.md", path, cases + 1);
            CHECK(cases == files[k].cases, "%s: %u cases, not %u", path, cases, files[k].cases);
            if (in) { (void)fclose(in); }
        }
        NOTE("%u rows of evsoftmax have an entry within rounding of the mean and were not compared", skipped);
    }
    TEST("weights of f64 beside one that is near 1 are within 5 ULP") {
        char path[4096];
        (void)snprintf(path, sizeof path, "%s/softmax_f64_row.txt", folder);
        check_near_one_file(path);
        CHECK(near_one_worst <= NEAR_ONE_FILE_BOUND, "%.2Lf ULP in the row of the file", near_one_worst);
        NOTE("%.2Lf ULP in the row of the file", near_one_worst);
        search_near_one(3000);
        NOTE("%.2Lf ULP in others", near_one_worst);
    }
    return check_report();
}
