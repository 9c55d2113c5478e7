/*
 * test_forward.c: every forward function against the oracle, on every instruction set: the accuracy that the contract
 * promises, or that the header states after the figures printed here.
 */
#include <stdio.h>
#include <stdlib.h>

#include "function_table.h"
#include "long_rows.h"
#include "oracle.h"
#include "tables.h"

/* Units of an error. */
typedef enum unit {
    ENTRY,    /* ULP of the entry, where the entry is a normal number */
    LARGEST,  /* ULP of the largest entry of the row */
    CONDITION /* roundings of the terms that the entry depends on, see condition() */
} unit;

/* The bounds, in that unit. */
static const struct bound {
    unit unit;
    double f32, f64;
} bounds[FORMULAS] = {
    /* SOFTMAX   */ {ENTRY, 5, 5},
    /* MULTIMAX  */ {CONDITION, 4, 4},
    /* SPARSEMAX */ {LARGEST, 6, 6},
    /* ENTMAX15  */ {LARGEST, 8, 8},
    /* EVSOFTMAX */ {ENTRY, 6, 6},
    /* TANHMAX   */ {ENTRY, 8, 8},
    /* SEGLU     */ {CONDITION, 4, 4},
};
static const struct bound bound_of_logarithms = {CONDITION, 4, 4};
#define SUM_F32 1e-6
#define SUM_F64 1e-14

/* No rows of millions where the oracle works in software (113 bits), the compiler does not optimise or most lengths are
 * left out. */
#define SOFTWARE_ORACLE (LDBL_MANT_DIG > 64)
#if !defined(LONG_ROWS)
#    if SOFTWARE_ORACLE || (defined(__GNUC__) && !defined(__OPTIMIZE__)) || LENGTH_STEP > 4
#        define LONG_ROWS 0
#    else
#        define LONG_ROWS 1
#    endif
#endif
#define MAX_LENGTH ((size_t)1 << 20)
static double x_row[MAX_LENGTH], y_row[MAX_LENGTH], long_row[MAX_LENGTH];
static score s_row[MAX_LENGTH];
static wide expected[MAX_LENGTH], got[MAX_LENGTH], conditions[MAX_LENGTH];

/* Lengths beyond those of every instruction set's tail. */
static const size_t long_lengths[] = {255, 256, 257, 3000, 4096}, longest_lengths[] = {32000, 100003};
static const double scales[] = {1, 0.1, 1e-3, 30};

typedef struct worst {
    double error, sum; /* in units; |sum - 1| */
} worst;

static struct bound bound_of(const function *f, formula g) {
    return f->kind == LOGARITHM ? bound_of_logarithms : bounds[g];
}

static double limit_of(const function *f, formula g) {
    struct bound b = bound_of(f, g);
    return f->size == 4 ? b.f32 : b.f64 * ORACLE_SLACK;
}

/*
 * For multimax and logarithms: the sum of the magnitudes that enter the exponent of entry i and, weighted with their
 * entries, those of all others through the sum. An error of c roundings of T in each of them is a relative error of
 * c * epsilon * condition of a probability, and an absolute error of a logarithm. seglu: the terms of sigma alone.
 */
static void find_conditions(const oracle *o, const wide *y, const score *s, size_t n) {
    wide mean = 0;
    for (size_t i = 0; i < n; ++i) {
        conditions[i] = 0;
        if (is_masked(s[i])) { continue; }
        if (o->f == MULTIMAX || o->f == SEGLU) { (void)oracle_sigma(o->p, s[i].hi, &conditions[i]); }
        if (o->f != SEGLU) { mean += (o->logarithm ? expl(y[i]) : y[i]) * conditions[i]; }
    }
    for (size_t i = 0; i < n; ++i) {
        conditions[i] += o->f == SEGLU ? 0 : 1 + mean + (o->logarithm && !is_masked(s[i]) ? fabsl(y[i]) : 0);
    }
}

/* The error of entry i in units. */
static double error_of(const function *f, const oracle *o, unit u, size_t i, wide largest_entry) {
    double eps = eps_of(f), least = smallest_normal(f);
    wide error = fabsl(got[i] - expected[i]), size = fabsl(expected[i]);
    if (error == 0 || (size < least && fabsl(got[i]) <= least)) { return 0; }
    if (!(error <= LDBL_MAX)) { return HUGE_VAL; }
    switch (u) {
    case ENTRY: return (double)(error / ulp(size, eps, least));
    case LARGEST: return (double)(error / ulp(f->size == 8 && ORACLE_SLACK > 1 ? 1 : largest_entry, eps, least));
    default: break;
    }
    size = o->f == SEGLU || o->logarithm ? conditions[i] : conditions[i] * size;
    return (double)(error / (eps * size + least));
}

/* Whether the oracle can judge this row. For sigma in f32: whether one rounding of it moves an entry by less than 5 %. */
static int is_judged(const function *f, const oracle *o, size_t n) {
    int sigma = o->f == MULTIMAX || o->f == SEGLU;
    for (size_t i = 0; i < n; ++i) {
        wide v = s_row[i].hi, u = 0;
        if (is_masked(s_row[i])) { continue; }
        v = sigma ? oracle_sigma(o->p, v, &u) : v;
        if (fabsl(v) > o->largest / 4 || (sigma && u * eps_of(f) > (o->f == SEGLU ? o->largest : 0.05))) { return 0; }
    }
    return 1;
}

/* Judges the row in x_row on every instruction set. */
static void check_row(const function *f, const mmax_multimax_params *p, size_t n, double scale, worst *w) {
    oracle o = {oracle_formula(f->name), f->kind == LOGARITHM, p, f->epsilon, largest(f), NULL, 0};
    struct bound b = bound_of(f, o.f);
    wide size = 0;
    int done = 0;
    for (size_t i = 0; i < n; ++i) {
        s_row[i] = oracle_score(&o, get(f, x_row, i), scale);
        size = is_masked(s_row[i]) ? size : fmaxl(size, fabsl(s_row[i].hi));
    }
    if (!is_judged(f, &o, n)) { return; }
    FOR_EACH_ISA(isa) {
        call c = {{y_row, NULL, NULL, x_row},  NULL,        NULL, p, f->epsilon, 0,
                  {NULL, 0, 0, NULL, NULL, 0}, mmax_row(n), {0}};
        wide largest_entry = 0, sum;
        worst here = {0, 0};
        size_t at = 0, wrong = 0, active = 0;
        c.s.scale = scale;
        CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
        for (size_t i = 0; i < n; ++i) { got[i] = get(f, y_row, i); }
        if (!done || o.f == EVSOFTMAX) {
            o.observed = o.f == EVSOFTMAX ? got : NULL;
            o.near = 8 * eps_of(f) * size;
            oracle_forward(&o, expected, s_row, n);
            if (b.unit == CONDITION) { find_conditions(&o, expected, s_row, n); }
            done = 1;
        }
        for (size_t i = 0; i < n; ++i) { largest_entry = fmaxl(largest_entry, expected[i]); }
        for (size_t i = 0; i < n; ++i) {
            if (is_masked(s_row[i])) {
                wrong += get_bits(f, y_row, i) != masked_bits(f);
            } else {
                double e = error_of(f, &o, b.unit, i, largest_entry);
                wrong += is_subnormal_at(f, y_row, i) || !is_finite_at(f, y_row, i);
                at = e > here.error ? i : at;
                here.error = fmax(here.error, e);
                ++active;
            }
        }
        CHECK(!wrong, AT ": %u wrong zeros or subnormal or not finite", AT_ARGS(f, n), (unsigned)wrong);
        CHECK(here.error <= limit_of(f, o.f), AT ", entry %u: %.9Lg, not %.9Lg: error %.3g, scale %g", AT_ARGS(f, n),
              (unsigned)at, got[at], expected[at], here.error, scale);
        if (has(f, PROBABILITY) && active) {
            sum = oracle_sum(got, n);
            here.sum = (double)fabsl(sum - 1);
            CHECK(here.sum <= (f->size == 4 ? SUM_F32 : SUM_F64), AT ": the sum is 1 %+.3Lg", AT_ARGS(f, n), sum - 1);
        }
        w[isa].error = fmax(w[isa].error, here.error);
        w[isa].sum = fmax(w[isa].sum, here.sum);
    }
}

static void report(const function *f, const worst *w) {
    static const char *const names[] = {"ULP", "ULP of the largest", "roundings"};
    struct bound b = bound_of(f, oracle_formula(f->name));
    FOR_EACH_ISA(isa) {
        if (has(f, PROBABILITY)) {
            NOTE("%-18s %-7s %6.3f %s, |sum - 1| <= %.1e", f->name, mmax_isa_name((mmax_isa)isa), w[isa].error,
                 names[b.unit], w[isa].sum);
        } else {
            NOTE("%-18s %-7s %6.3f %s", f->name, mmax_isa_name((mmax_isa)isa), w[isa].error, names[b.unit]);
        }
    }
}

static void random_row(const function *f, const mmax_multimax_params *p, size_t n, law l, double scale, worst *w) {
    random_state = n * 131 + (uint64_t)l;
    fill(f, x_row, n, l);
    check_row(f, p, n, scale, w);
}

/* One entry above n-1 equal ones, whose exp adds up with the same rounding every time. */
static void one_hot_row(const function *f, const mmax_multimax_params *p, size_t n, double height, worst *w) {
    for (size_t i = 0; i < n; ++i) { set(f, x_row, i, i == n / 3 ? height : 0); }
    check_row(f, p, n, 1, w);
}

/* Gaps that grow as fast as the support: each step towards tau sheds one entry. */
static void shedding_row(const function *f, size_t n, double first_gap, double size, double scale, worst *w) {
    double tau = -0.5, gap = first_gap, z = 0;
    for (size_t i = 0; i < n; ++i) {
        if (i >= 2) {
            z = tau - gap;
            tau -= gap / (double)(i + 1);
            gap *= (double)(i + 2);
        }
        set(f, x_row, i, size * (z > -1 ? z : -1));
    }
    check_row(f, NULL, n, scale, w);
}

/* n - 1 entries that may have weight, behind one that has none. */
static void wide_support(const function *f, size_t n, worst *w) {
    for (size_t i = 0; i < n; ++i) { set(f, x_row, i, i ? 0.5 / (double)(i % 7 + n) : -1000); }
    check_row(f, NULL, n, 1, w);
}

static void all_rows(const function *f, worst *w) {
    const mmax_multimax_params *p = &params_of_order[f->order];
    for (size_t n = 0; n <= 131; n += LENGTH_STEP) {
        for (size_t l = 0; l < LAWS; ++l) {
            random_row(f, p, n, (law)l, scales[(n + l) % 4], w);
            random_row(f, p, n, (law)l, scales[(n + l + 1) % 4], w);
        }
    }
    for (size_t k = 0; k < COUNT(long_lengths) - !LONG_ROWS; ++k) {
        for (int l = 0; l < LAWS; ++l) { random_row(f, p, long_lengths[k], (law)l, l % 2 ? 1 : 0.1, w); }
        for (int h = 0; h < 18; h += 2) { one_hot_row(f, p, long_lengths[k], h + 0.3, w); }
    }
    for (size_t k = 0; k < COUNT(longest_lengths) && LONG_ROWS; ++k) {
        random_row(f, p, longest_lengths[k], NORMAL_4, 1, w);
        one_hot_row(f, p, longest_lengths[k], 2.5 * (double)k + 3, w);
    }
}

/* Rows whose sum needs no oracle: one entry is `height`, all others are 0. */
static void long_one_hot(const function *f, size_t n, double height) {
    FOR_EACH_ISA(isa) {
        char *x = malloc(n * f->size);
        call c = {{x, NULL, NULL, x}, NULL, NULL, NULL, 0, 0, {NULL, 0, 0, NULL, NULL, 0}, mmax_row(n), {0}};
        wide e[2] = {0, 0}, y[2], low = expl(-(wide)height);
        y[1] = 1 / (1 + (wide)(n - 1) * low);
        y[0] = y[1] * low;
        CHECK(x != NULL, "no memory for %u entries", (unsigned)n);
        if (!x) { return; }
        for (size_t i = 0; i < n; ++i) { set(f, x, i, i == n / 2 ? height : 0); }
        CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
        for (size_t i = 0; i < n; ++i) {
            int hot = i == n / 2;
            wide d = fabsl(get(f, x, i) - y[hot]);
            e[hot] = d > e[hot] ? d : e[hot];
        }
        e[0] /= ulp(y[0], eps_of(f), smallest_normal(f));
        e[1] /= ulp(y[1], eps_of(f), smallest_normal(f));
        CHECK(e[0] <= 4 && e[1] <= 4, AT ", one is %g: %.2Lf and %.2Lf ULP", AT_ARGS(f, n), height, e[0], e[1]);
        free(x);
    }
}

/* softmax of 2^24 entries after N(0,4^2); the oracle runs over blocks, so that it needs no memory of that size. */
static void longest_softmax(const function *f) {
    enum { BLOCK = 4096, BLOCKS = 4096 };
    const size_t n = (size_t)BLOCK * BLOCKS;
    static wide e[BLOCK], sums[BLOCKS];
    oracle o = {SOFTMAX, 0, NULL, 0, largest(f), NULL, 0};
    char *x = malloc(n * f->size), *y = malloc(n * f->size);
    call c = {{y, NULL, NULL, x}, NULL, NULL, NULL, 0, 0, {NULL, 0, 0, NULL, NULL, 0}, mmax_row(n), {0}};
    score top = {-INFINITY, 0};
    wide sum, worst_error = 0;
    CHECK(x && y, "no memory for %u entries", (unsigned)n);
    if (x && y) {
        random_state = 24;
        fill(f, x, n, NORMAL_4);
        CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
        for (size_t i = 0; i < n; ++i) { top.hi = fmaxl(top.hi, get(f, x, i)); }
        for (size_t k = 0; k < BLOCKS; ++k) {
            for (size_t i = 0; i < BLOCK; ++i) {
                e[i] = exp_of(difference(oracle_score(&o, get(f, x, k * BLOCK + i), 1), top));
            }
            sums[k] = oracle_sum(e, BLOCK);
        }
        sum = oracle_sum(sums, BLOCKS);
        for (size_t i = 0; i < n; ++i) {
            wide v = exp_of(difference(oracle_score(&o, get(f, x, i), 1), top)) / sum;
            worst_error = fmaxl(worst_error, fabsl(get(f, y, i) - v) / ulp(v, eps_of(f), smallest_normal(f)));
        }
        CHECK(worst_error <= 4, AT ": %.2Lf ULP", AT_ARGS(f, n), worst_error);
        NOTE(AT ": %.3Lf ULP", AT_ARGS(f, n), worst_error);
    }
    free(x);
    free(y);
}

/* A row for which multimax asks where sigma turns, scores on both sides of 0 moved apart: against the oracle, in place,
 * and with a NaN or +inf. */
static void check_long_multimax(const function *f, const mmax_multimax_params *p, law l, double apart) {
    const size_t n = 65536 + 21;
    worst w[MMAX_ISA_COUNT] = {{0, 0}};
    random_state = n;
    fill(f, x_row, n, l);
    for (size_t i = 0; i < n; ++i) {
        double x = get(f, x_row, i);
        set(f, x_row, i, x + (x < 0 ? -apart : apart));
    }
    if (!SOFTWARE_ORACLE) { check_row(f, p, n, 1, w); }
    FOR_EACH_ISA(isa) {
        call c = {{y_row, NULL, NULL, x_row},  NULL,        NULL, p, f->epsilon, 0,
                  {NULL, 0, 0, NULL, NULL, 0}, mmax_row(n), {0}};
        call in_place = {{long_row, NULL, NULL, long_row}, NULL,        NULL, p, f->epsilon, 0,
                         {NULL, 0, 0, NULL, NULL, 0},      mmax_row(n), {0}};
        memcpy(long_row, x_row, n * f->size);
        CHECK(f->run(&c) == MMAX_OK && f->run(&in_place) == MMAX_OK, AT, AT_ARGS(f, n));
        CHECK(memcmp(long_row, y_row, n * f->size) == 0, AT ": other bits in place", AT_ARGS(f, n));
        for (int which = 0; which < 2; ++which) {
            const size_t at = n / 2 + (size_t)isa;
            const double kept = get(f, x_row, at);
            size_t wrong = 0;
            set_special(f, x_row, at, which ? PLUS_INF : QUIET_NAN);
            CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
            for (size_t i = 0; i < n; ++i) {
                wrong += !is_nan_at(f, y_row, i) && get_bits(f, x_row, i) != special_bits(f, MINUS_INF);
            }
            set(f, x_row, at, kept);
            CHECK(!wrong, AT ": %u active entries are not NaN", AT_ARGS(f, n), (unsigned)wrong);
        }
    }
}

/* Rows with several entries near the maximum, as far apart as the weights are, less, or as fractions of that: what the
 * header states of sparsemax and entmax15. */
static void check_thresholds(const function *f, double stated) {
    worst w[MMAX_ISA_COUNT] = {{0, 0}};
    random_state = 3;
    for (int repeat = 0; repeat < 4000 / LENGTH_STEP; ++repeat) {
        const size_t n = 1 + random_below(repeat % 4 ? 40 : 280);
        const double scale = random_below(3) ? 1 : ldexp(1 + random_uniform(), (int)random_below(20) - 10);
        const double spread = ldexp(1, (int)random_below(24) - 16) / scale;
        const double grid = random_below(3) ? 0 : ldexp(spread, -(int)random_below(8)), power = random_below(2) ? 1 : 8;
        for (size_t i = 0; i < n; ++i) {
            const double x = -spread * pow(random_uniform(), power);
            set(f, x_row, i, grid > 0 ? floor(x / grid) * grid : x);
        }
        check_row(f, NULL, n, scale, w);
    }
    FOR_EACH_ISA(isa) {
        CHECK(w[isa].error <= stated, "%s on %s: %.3g ULP of the largest, not %g", f->name,
              mmax_isa_name((mmax_isa)isa), w[isa].error, stated);
    }
    report(f, w);
}

/* Rows in which the roundings of the largest exponential, of its sum with that MMAX_LANES later, of all, of the second
 * one and of its weight add up: found by climbing, with the sum in one number, with exponentials of up to 0.9 ULP. */
static void check_gathered_roundings(void) {
    static const struct {
        const char *name;
        size_t lanes;
        double largest, second, later, third;
    } rows[] = {
        {"softmax_f32", 32, 0.91632384061813354, -9.4910907745361328, -6.7521452903747559, -5.3049917221069336},
        {"softmax_f32", 32, -29.586301803588867, -46.921897888183594, -38.467357635498047, -127.49213409423828},
        {"softmax_f64", 16, -243.23832372212829, -259.18036193267193, -253.24878105258253, -251.18983869039192},
        {"softmax_f64", 16, 97.736637269871991, 92.888843789019319, 66.040562324390464, 75.5773827209008},
        {"softmax_f64", 16, -0.68408140055248268, -22.172171958856868, -7.5573870817974722, -22.485412993847696},
    };
    for (size_t k = 0; k < COUNT(rows); ++k) {
        const function *const f = function_named(rows[k].name);
        worst w[MMAX_ISA_COUNT] = {{0, 0}};
        for (size_t i = 0; i < rows[k].lanes + 4; ++i) { set(f, x_row, i, rows[k].largest - 60); }
        set(f, x_row, 0, rows[k].largest);
        set(f, x_row, 1, rows[k].second);
        set(f, x_row, 2, rows[k].third);
        set(f, x_row, rows[k].lanes, rows[k].later);
        check_row(f, NULL, rows[k].lanes + 4, 1, w);
        report(f, w);
    }
}

static int is_forward(const function *f) { return f->kind == FORWARD || f->kind == LOGARITHM; }

/* A few entries decide on tau; most others are the number next to it, or some away. */
static void check_beside_tau(const function *f, double bound) {
    static const size_t lengths[] = {5, 16, 40, 64, 100, 128, 129, 200, 1000, 1025, 3000};
    FOR_EACH_ISA(isa) {
        random_state = 7;
        for (size_t trial = 0; trial < (LENGTH_STEP > 4 ? 330 : 3300); ++trial) {
            const size_t n = lengths[trial % COUNT(lengths)], few = 1 + random_below(4);
            call c = call_of(f, 1, n, EQUAL, 0);
            const double ulp = f->size == 4 ? 2.98e-8 : 5.55e-17, tiny = f->size == 4 ? 1e-7 : 1e-16;
            wide sum = 0;
            double tau;
            for (size_t i = 0; i < few; ++i) {
                set(f, c.array[X], i, i > 0 ? -random_uniform() * (random_below(2) ? tiny : 0.2) : 0);
                sum += (wide)get(f, c.array[X], i);
            }
            tau = (double)((sum - 1) / (wide)few) + ((double)random_below(7) - 3) * ulp;
            for (size_t i = few; i < n; ++i) { set(f, c.array[X], i, random_below(8) ? tau : -5); }
            CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
            sum = -1;
            for (size_t i = 0; i < n; ++i) { sum += (wide)get(f, c.array[OUT], i); }
            CHECK(sum <= bound && sum >= -bound, AT ": the sum is 1 + %Lg", AT_ARGS(f, n), (long double)sum);
        }
    }
}

/* Few largest entries and many equal lower ones, whose roundings are all to one side */
static void check_equal_entries(const function *f, double bound) {
    FOR_EACH_ISA(isa) {
        random_state = 11;
        for (size_t trial = 0; trial < (LENGTH_STEP > 4 ? 1000 : 10000); ++trial) {
            const size_t few = 1 + random_below(random_below(2) ? 3 : 40),
                         n = few + random_below(random_below(4) ? 64 : 300);
            const double gap = 2 / sqrt((double)few) * random_uniform(), other = gap * random_uniform();
            const size_t others = random_below(2) ? 5 : 1000;
            call c = call_of(f, 1, n, EQUAL, 0);
            wide sum = -1;
            for (size_t i = 0; i < n; ++i) {
                set(f, c.array[X], i, 0.3 - (i < few ? 0 : i % others == 0 ? other : gap));
            }
            CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
            for (size_t i = 0; i < n; ++i) { sum += (wide)get(f, c.array[OUT], i); }
            CHECK(sum <= bound && sum >= -bound, AT ": the sum is 1 + %Lg", AT_ARGS(f, n), (long double)sum);
        }
    }
}

int main(void) {
    FOR_EACH_FUNCTION(f) {
        if (!is_forward(f)) { continue; }
        TEST("every length, law and scale: within the bound of the contract") {
            worst w[MMAX_ISA_COUNT] = {{0, 0}};
            all_rows(f, w);
            report(f, w);
        }
    }
    TEST("softmax where roundings add up: within the bound of the contract") { check_gathered_roundings(); }
    TEST("sparsemax and entmax15 of random candidates: within the figure of the header") {
        check_thresholds(function_named("sparsemax_f32"), 6);
        check_thresholds(function_named("sparsemax_f64"), 6);
        check_thresholds(function_named("entmax15_f32"), 6);
        check_thresholds(function_named("entmax15_f64"), 6);
    }
    TEST("sparsemax and entmax15 where one entry has half of the weight, and many share the rest") {
        FOR_EACH_FUNCTION(f) {
            worst w[MMAX_ISA_COUNT] = {{0, 0}};
            if (strncmp(f->name, "sparsemax_f", 11) != 0 && strncmp(f->name, "entmax15_f", 10) != 0) { continue; }
            random_state = 5;
            for (size_t n = 2; n <= 200; n += n < 70 ? 3 : 60) {
                const double tau = -0.4 - 0.4 * random_uniform();
                for (size_t i = 0; i < n; ++i) {
                    set(f, x_row, i, i ? tau + (1 + tau) / (double)(n - 1) * (0.9 + 0.2 * random_uniform()) : 0);
                }
                check_row(f, NULL, n, 1, w);
            }
            report(f, w);
        }
    }
    TEST("scores of which the largest is as far from 0 as any") {
        FOR_EACH_FUNCTION(f) {
            worst w[MMAX_ISA_COUNT] = {{0, 0}};
            if (!is_forward(f) || f->order) { continue; }
            for (size_t n = 1; n <= 131; n += LENGTH_STEP) {
                for (int k = 5; k < (f->size == 4 ? 30 : 60); k += 3) {
                    const double far = ldexp(n % 2 ? -1.3 : 1.3, k);
                    random_state = n + (uint64_t)k;
                    for (size_t i = 0; i < n; ++i) { set(f, x_row, i, far + 4 * random_normal()); }
                    check_row(f, NULL, n, 1, w);
                }
            }
            report(f, w);
        }
    }
    TEST("rows that are taken by blocks, the largest score in any of them") {
        FOR_EACH_FUNCTION(f) {
            worst w[MMAX_ISA_COUNT] = {{0, 0}};
            for (size_t l = 0; LONG_ROWS && has_long_laws(f) && l < COUNT(long_laws); l += LAW_STEP) {
                fill_long(f, x_row, &long_laws[l]);
                check_row(f, &params_of_order[f->order], LONG_ENTRIES, 1, w);
            }
            if (LONG_ROWS && has_long_laws(f)) { report(f, w); }
        }
    }
    TEST("tanhmax of scores near 1e-30 does not cancel") {
        worst w[MMAX_ISA_COUNT] = {{0, 0}};
        for (size_t n = 1; n <= 131; n += LENGTH_STEP) {
            for (int k = 0; k < 3; ++k) {
                const function *f = function_named(k ? "tanhmax_f64" : "tanhmax_f32");
                random_state = n;
                for (size_t i = 0; i < n; ++i) { set(f, x_row, i, (k == 2 ? 1e-290 : 1e-30) * random_normal()); }
                check_row(f, NULL, n, 1, w);
            }
        }
    }
    TEST("tanhmax of many small scores beside one whose weight has some of their digits below its last") {
        static const size_t lengths[] = {100, 130, 200, 260, 520, 2048};
        worst w[MMAX_ISA_COUNT] = {{0, 0}};
        for (size_t k = 0; k < 2 * COUNT(lengths); ++k) {
            const function *f = function_named(k % 2 ? "tanhmax_f64" : "tanhmax_f32");
            const size_t n = lengths[k / 2];
            const double digits = k % 2 ? 53 : 24;
            for (double above = 0.62; above < 1; above += 0.02) {
                for (size_t i = 0; i < n; ++i) { set(f, x_row, i, n - i > 24 ? 0 : random_normal() / 4); }
                set(f, x_row, 0, digits * 0.6931471805599453 + above);
                check_row(f, NULL, n, 1, w);
            }
        }
    }
    TEST("tanhmax of tiny logits at a large scale") {
        worst w[MMAX_ISA_COUNT] = {{0, 0}};
        for (size_t n = 1; n <= 131; n += LENGTH_STEP) {
            for (int k = 0; k < 2; ++k) {
                const function *f = function_named(k ? "tanhmax_f64" : "tanhmax_f32");
                for (size_t i = 0; i < n; ++i) { set(f, x_row, i, (k ? 1e-292 : 1e-32) * random_normal()); }
                check_row(f, NULL, n, k ? 700 : 100, w);
            }
        }
    }
    TEST("the same scores by a scale of any size") {
        FOR_EACH_FUNCTION(f) {
            worst w[MMAX_ISA_COUNT] = {{0, 0}};
            if (!is_forward(f) || f->order) { continue; }
            for (size_t n = 1; n <= 131; n += LENGTH_STEP) {
                for (int k = 0; k < 2; ++k) {
                    const double scale = ldexp(1, k ? 60 : -60);
                    random_state = n + (uint64_t)k;
                    for (size_t i = 0; i < n; ++i) {
                        set(f, x_row, i, 4 * random_normal() / scale);
                        if (n % 3 == 0 && i % 5 == 1) { set_special(f, x_row, i, MINUS_INF); }
                    }
                    check_row(f, NULL, n, scale, w);
                }
            }
            report(f, w);
        }
    }
    TEST("multimax and seglu with the parameters of every layer of Tables 7 and 8") {
        FOR_EACH_FUNCTION(f) {
            worst w[MMAX_ISA_COUNT] = {{0, 0}};
            if (!is_forward(f) || !f->order) { continue; }
            for (int layer = 0; layer < LAYERS; layer += (int)CASE_STEP) {
                mmax_multimax_params p = params_of_layer(layer, f->order);
                random_row(f, &p, 17, NORMAL_1, 1, w);
                random_row(f, &p, 197, NORMAL_4, 0.125, w);
                random_row(f, &p, 512, NORMAL_4, 1, w);
            }
            report(f, w);
        }
    }
    TEST("softmax and evsoftmax: the smallest weight of a row near the smallest normal number") {
        static const size_t counts[] = {2, 3, 1000, 65536, 65537};
        FOR_EACH_FUNCTION(f) {
            const formula g = oracle_formula(f->name);
            worst w[MMAX_ISA_COUNT] = {{0, 0}};
            if (f->kind == FORWARD && (g == SOFTMAX || g == EVSOFTMAX)) {
                for (size_t k = 0; k < COUNT(counts) - (SOFTWARE_ORACLE ? 2 : 0); ++k) {
                    for (double powers = -36.25; powers <= 3; powers += counts[k] < 1001 ? 0.5 : 3) {
                        const double scale = f->epsilon > 0 ? f->epsilon : 1;
                        const double lowest = log(smallest_normal(f) * (double)counts[k] / scale) - powers * log(2);
                        for (size_t i = 0; i < counts[k]; ++i) { set(f, x_row, i, i == counts[k] / 2 ? lowest : 0); }
                        check_row(f, NULL, counts[k], 1, w);
                    }
                }
            }
        }
    }
    TEST("multimax of long rows: sigma rises over all scores, or falls above, below or between some; in place the same "
         "bits") {
        static const mmax_multimax_params params[] = {{2, {0.5, 1.001}, {1.25, 1.01}, {-1, -2}, {1, 2}},
                                                      {2, {0.5, 1.001}, {0.5, -3}, {-1, -2}, {1, 2}},
                                                      {2, {1.5, -3}, {1.25, 1.01}, {-1, -2}, {1, 2}}};
        FOR_EACH_FUNCTION(f)
            for (size_t k = 0; k < 2 * COUNT(params); k += LONG_ROWS ? 1 : 5) {
                mmax_multimax_params p = params[k / 2];
                p.order = f->order;
                if (is_forward(f) && f->order && oracle_formula(f->name) == MULTIMAX) {
                    check_long_multimax(f, &p, k % 2 ? MASKED : NORMAL_4, 0);
                    check_long_multimax(f, &p, NORMAL_4, k % 2 ? 10 : 40);
                }
            }
    }
    TEST("sparsemax and entmax15 where the search for tau is long, or the support some entries more than a buffer") {
        static const double gaps[] = {1e-3, 1e-6, 1e-12, 1e-15}, widths[] = {1, 0.25};
        static const size_t lengths[] = {17, 64, 1000, 1100, 4096}, beyond[] = {0, 1, 2, 3, 4, 8, 9, 33, 64, 65};
        FOR_EACH_FUNCTION(f) {
            worst w[MMAX_ISA_COUNT] = {{0, 0}};
            formula g = oracle_formula(f->name);
            if (f->kind != FORWARD || (g != SPARSEMAX && g != ENTMAX15)) { continue; }
            for (size_t k = 0; k < COUNT(lengths) * COUNT(gaps) * COUNT(widths); ++k) {
                shedding_row(f, lengths[k / COUNT(gaps) / COUNT(widths)], gaps[k % COUNT(gaps)], 1,
                             widths[k / COUNT(gaps) % COUNT(widths)], w);
            }
            for (size_t k = 0; k < COUNT(gaps); ++k) { shedding_row(f, 64, gaps[k], ldexp(1, -60), ldexp(1, 60), w); }
            for (size_t n = 512; n <= 1024; n *= 2) {
                for (size_t k = 0; k < COUNT(beyond); ++k) { wide_support(f, n + beyond[k], w); }
            }
            report(f, w);
        }
    }
    TEST("sparsemax: many entries equal to tau, or some roundings beside it, sum to 1") {
        check_beside_tau(function_named("sparsemax_f32"), 1e-6);
        check_beside_tau(function_named("sparsemax_f64"), 1e-14);
    }
    TEST("sparsemax and entmax15: few largest entries and many equal ones sum to 1 within the bound of the header") {
        check_equal_entries(function_named("sparsemax_f32"), 1e-6);
        check_equal_entries(function_named("sparsemax_f64"), 2e-15);
        check_equal_entries(function_named("entmax15_f32"), 1e-6);
        check_equal_entries(function_named("entmax15_f64"), 2e-15);
    }
    TEST("one-hot and equal rows of up to 2^20 and 2^24 entries: the sum does not drift") {
        static const char *const softmax[] = {"softmax_f32", "softmax_f64"};
        for (int k = 0; k < 2; ++k) {
            const function *f = function_named(softmax[k]);
            for (int h = 0; h < 18; h += 5) { long_one_hot(f, LONG_ROWS ? MAX_LENGTH : MAX_LENGTH / 16, h + 0.3); }
            long_one_hot(f, LONG_ROWS ? MAX_LENGTH : MAX_LENGTH / 16, 0);
            if (LONG_ROWS) { long_one_hot(f, MAX_LENGTH * 16, 0.7); }
        }
        FOR_EACH_FUNCTION(f) {
            worst w[MMAX_ISA_COUNT] = {{0, 0}};
            if (has(f, PROBABILITY) && oracle_formula(f->name) != SOFTMAX && LONG_ROWS) {
                one_hot_row(f, &params_of_order[f->order], MAX_LENGTH, 0.3, w);
                random_row(f, &params_of_order[f->order], MAX_LENGTH, EQUAL, 1, w);
                report(f, w);
            }
        }
    }
    TEST("softmax of 2^24 random entries on the best instruction set") {
        int best = MMAX_ISA_SCALAR;
        FOR_EACH_ISA(isa) { best = isa; }
        CHECK(mmax_isa_select((mmax_isa)best) == MMAX_OK, "%s", mmax_isa_name((mmax_isa)best));
        if (LONG_ROWS) { longest_softmax(function_named("softmax_f32")); }
    }
    return check_report();
}
