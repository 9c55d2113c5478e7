/*
 * test_rows.c: histograms of the errors of whole rows, of one entry to 2^24, under six laws, on every instruction set.
 *
 *     test_rows             lengths up to 2^24; some 20 minutes and 2 GB
 *     test_rows EXPONENT    lengths up to 2^EXPONENT
 *
 * An error is counted in ULP of the entry (softmax, evsoftmax, tanhmax; entries that are normal numbers) or of the
 * largest entry of the row (sparsemax, entmax15), against the long double formula of oracle.h.
 */
#include <stdlib.h>

#include "../function_table.h"
#include "../oracle.h"

/* The bounds are those that the header states. */
static const struct subject {
    const char *name;
    double bound;
    int of_largest;
} subjects[] = {
    {"softmax_f32", 4, 0},  {"softmax_f64", 4, 0},  {"evsoftmax_f32", 6, 0}, {"evsoftmax_f64", 6, 0},
    {"tanhmax_f32", 8, 0},  {"tanhmax_f64", 8, 0},  {"sparsemax_f32", 4, 1}, {"sparsemax_f64", 4, 1},
    {"entmax15_f32", 4, 1}, {"entmax15_f64", 4, 1},
};
static const law laws[] = {NORMAL_1, NORMAL_4, NORMAL_32, CLUSTERS, GEOMETRIC, ONE_HOT};

#define BUCKETS 7
static const double edges[BUCKETS] = {0.5, 0.75, 1, 1.5, 2, 3, 4};

typedef struct histogram {
    unsigned long long entries, upto[BUCKETS]; /* not more than edges[i], and more than the edge before */
    double worst;
} histogram;

static histogram histograms[MMAX_ISA_COUNT];
static void *x_row, *y_row;
static score *scores;
static wide *expected, *observed;

static void take(histogram *h, double error) {
    int k = 0;
    while (k < BUCKETS && error > edges[k]) { ++k; }
    ++h->entries;
    if (k < BUCKETS) { ++h->upto[k]; }
    h->worst = error <= h->worst ? h->worst : error;
}

static void make_expected(const function *f, size_t n) {
    oracle o = {oracle_formula(f->name), 0, NULL, 0, largest(f), NULL, 0};
    wide most = 0;
    for (size_t i = 0; i < n; ++i) {
        scores[i] = oracle_score(&o, get(f, x_row, i), 1);
        most = fmaxl(most, fabsl(scores[i].hi));
    }
    if (o.f == EVSOFTMAX) { /* an entry within rounding of the mean may fall on either side */
        for (size_t i = 0; i < n; ++i) { observed[i] = get(f, y_row, i); }
        o.observed = observed;
        o.near = 4 * eps_of(f) * most;
    }
    oracle_forward(&o, expected, scores, n);
}

static void compare_row(const function *f, const struct subject *s, size_t n, histogram *h) {
    wide most = 0;
    for (size_t i = 0; i < n; ++i) { most = fmaxl(most, expected[i]); }
    for (size_t i = 0; i < n; ++i) {
        const wide want = fabsl(expected[i]);
        if (s->of_largest || want >= smallest_normal(f) * 1.02) {
            const wide unit = ulp(s->of_largest ? most : want, eps_of(f), smallest_normal(f));
            take(h, (double)(fabsl(get(f, y_row, i) - expected[i]) / unit));
        }
    }
}

static void run_row(const function *f, const struct subject *s, size_t n, law l) {
    call c;
    int first = 1;
    memset(&c, 0, sizeof c);
    c.array[OUT] = y_row;
    c.array[X] = x_row;
    c.s = mmax_row(n);
    fill(f, x_row, n, l);
    FOR_EACH_ISA(isa) {
        CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
        if (first || oracle_formula(f->name) == EVSOFTMAX) { make_expected(f, n); }
        compare_row(f, s, n, &histograms[isa]);
        first = 0;
    }
}

static void print_histogram(const function *f, size_t n, const histogram *h) {
    printf("  %-14s %-7s %8u", f->name, mmax_isa_name(mmax_isa_active()), (unsigned)n);
    for (int k = 0; k < BUCKETS; ++k) { printf(" %8.4f", 100 * (double)h->upto[k] / (double)h->entries); }
    printf("  worst %.2f\n", h->worst);
    fflush(stdout);
}

/* Rows of n and n - 1 entries, for short ones many. */
static void test_length(const function *f, const struct subject *s, size_t n, size_t budget) {
    const size_t rows = 1 + budget / n / COUNT(laws);
    memset(histograms, 0, sizeof histograms);
    for (size_t r = 0; r < rows; ++r) {
        for (size_t k = 0; k < COUNT(laws); ++k) { run_row(f, s, n - (r % 2 && n > 1), laws[k]); }
    }
    FOR_EACH_ISA(isa) {
        print_histogram(f, n, &histograms[isa]);
        CHECK(histograms[isa].worst <= s->bound, AT ": %.2f ULP", AT_ARGS(f, n), histograms[isa].worst);
    }
}

int main(int argc, char **argv) {
    const int most = argc > 1 ? atoi(argv[1]) : 24;
    const size_t longest = (size_t)1 << most;
    x_row = malloc(longest * sizeof(double));
    y_row = malloc(longest * sizeof(double));
    scores = malloc(longest * sizeof *scores);
    expected = malloc(longest * sizeof *expected);
    observed = malloc(longest * sizeof *observed);
    if (!x_row || !y_row || !scores || !expected || !observed) {
        printf("not enough memory for rows of %lu entries\n", (unsigned long)longest);
        return 1;
    }
    random_state = 7;
    TEST("per cent of entries with errors of at most 0.5, 0.75, 1, 1.5, 2, 3, 4 ULP and more than that before") {
        for (size_t k = 0; k < COUNT(subjects); ++k) {
            for (size_t n = 1; n <= longest; n *= 2) {
                test_length(function_named(subjects[k].name), &subjects[k], n, longest / 64);
            }
        }
    }
    free(x_row);
    free(y_row);
    free(scores);
    free(expected);
    free(observed);
    return check_report();
}
