/*
 * test_passes.c: how many steps sparsemax and entmax15 take to find tau, for rows that make it hard. Each step is a
 * pass over a row whose candidates are too many for the buffer; the extremes, the first collection and y are 3 more.
 * And where MultiMax takes the extremes of sigma from those of the row. What happens inside is read from the plain C
 * instance, whose steps are those of every instruction set.
 */
#if !defined(MULTIMAX_NO_SIMD)
#    define MULTIMAX_NO_SIMD
#endif
#include "function_table.h"

#define MOST 32000

static double row[MOST], weights[MOST];
static double candidates[MOST];

/* The steps for one row, and the most that a search takes: one that ends there has not found tau. */
#define STEPS(T)                                                                     \
    static int steps_##T(const void *x, size_t n, double scale, int entmax)          \
    {                                                                                \
        static mmax_candidates_scalar_##T w;                                         \
        mmax_call_scalar_##T c;                                                      \
        mmax_tau_scalar_##T tau = {0, 0, 0, 0};                                      \
        int found;                                                                   \
        mmax_prepare_scalar_##T(&c, scale, NULL, 0);                                 \
        w.near_top = (void *)candidates;                                             \
        w.room = 1024;                                                               \
        found = entmax ? mmax_begin_entmax15_scalar_##T(&w, &tau, x, n, &c)          \
                       : mmax_begin_sparsemax_scalar_##T(&w, &tau, x, n, &c);        \
        CHECK(found == MMAX_IS_NORMAL, "%u entries: not a normal row", (unsigned)n); \
        return tau.passes;                                                           \
    }
STEPS(f32)
STEPS(f64)

/* The steps where rows go side by side, from where no entry is above the maximum by more than 1: in the same two lanes.
 * Floats are searched twice. */
#define STEPS_IN_LANE(T, real, search)                                                                         \
    static int steps_in_lane_##T(const void *entries, size_t n, double scale, int entmax)                      \
    {                                                                                                          \
        static real columns[MOST][2];                                                                          \
        const int which = entmax ? MMAX_ENTMAX15 : MMAX_SPARSEMAX;                                             \
        const real *const x = entries;                                                                         \
        mmax_call_scalar_##T c;                                                                                \
        mmax_units_scalar_##T units;                                                                           \
        real max = x[0], start[2] = {-1, -1};                                                                  \
        double tau[2], rest[2];                                                                                \
        int steps = 0;                                                                                         \
        mmax_prepare_scalar_##T(&c, scale, NULL, 0);                                                           \
        units = mmax_units_of_scalar_##T(&c, which);                                                           \
        for (size_t i = 0; i < n; ++i) {                                                                       \
            max = x[i] > max ? x[i] : max;                                                                     \
        }                                                                                                      \
        for (size_t i = 0; i < n; ++i) {                                                                       \
            columns[i][0] = columns[i][1] = mmax_in_units_scalar_##T(x[i] - max, &units);                      \
        }                                                                                                      \
        search;                                                                                                \
        CHECK(tau[0] <= 0 && tau[1] == tau[0], "%u entries, scale %g: tau was not found", (unsigned)n, scale); \
        return steps;                                                                                          \
    }
STEPS_IN_LANE(f32, float, (void)rest; steps = mmax_taus_scalar_f32(start, NULL, start, columns, n, 2, 2, 1, which, 1);
              steps += mmax_taus_scalar_f64(tau, NULL, start, columns, n, 2, 2, 1, which, 1))
STEPS_IN_LANE(f64, double, steps = mmax_taus_scalar_f64(tau, rest, start, columns, n, 2, 2, 1, which, 0))

/* ==== rows ==== */

/* Halves, or nearly equal neighbours, from 0 down to -1: candidates for every scale up to 1. */
static void geometric(const function *f, size_t n, double ratio)
{
    double z = 1;
    for (size_t i = 0; i < n; ++i, z *= ratio) {
        set(f, row, i, z > smallest_normal(f) ? -z : 0);
    }
}

/* Gaps that grow as fast as the support: each step of Newton's method sheds one entry. */
static void one_a_step(const function *f, size_t n, double first_gap)
{
    double tau = -1.0 / 2, gap = first_gap, z = 0;
    for (size_t i = 0; i < n; ++i) {
        if (i >= 2) {
            z = tau - gap;
            tau -= gap / (double)(i + 1);
            gap *= (double)(i + 2);
        }
        set(f, row, i, z > -1 ? z : -1);
    }
}

/* Values that fall like a power of their rank: a long tail just below any threshold. */
static void power(const function *f, size_t n, double exponent)
{
    for (size_t i = 0; i < n; ++i) {
        set(f, row, i, pow((double)(i + 1), -exponent));
    }
}

/* `high` entries one unit in the last place above the others. */
static void two_clusters(const function *f, size_t n, size_t high, double value)
{
    for (size_t i = 0; i < n; ++i) {
        set(f, row, i, value);
        if (i < high) {
            set_bits(f, row, i, get_bits(f, row, i) + 1);
        }
    }
}

static void normal(const function *f, size_t n, double offset)
{
    for (size_t i = 0; i < n; ++i) {
        set(f, row, i, offset + random_normal());
    }
}

/* ==== counts ==== */

typedef struct tally {
    int most, most_in_lane;
    double sum, rows;
} tally;

/* In pairs, so that the roundings of the sum do not grow with the row. */
static double total(const function *f, size_t from, size_t n)
{
    return n == 1 ? get(f, weights, from) : total(f, from, n / 2) + total(f, from + n / 2, n - n / 2);
}

static void count(tally *t, const function *f, size_t n, double scale)
{
    int is_f32 = f->size == 4, entmax = f->name[0] == 'e', most = is_f32 ? 34 : 74;
    int steps = (is_f32 ? steps_f32 : steps_f64)(row, n, scale, entmax);
    int in_lane = n <= 256 ? (is_f32 ? steps_in_lane_f32 : steps_in_lane_f64)(row, n, scale, entmax) : 0;
    double sum;
    call c;
    memset(&c, 0, sizeof c);
    c.array[OUT] = weights;
    c.array[X] = row;
    c.s = mmax_row(n);
    c.s.scale = scale;
    CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
    sum = total(f, 0, n);
    CHECK(fabs(sum - 1) <= (is_f32 ? 1e-6 : 1e-14), AT ", scale %g: sum - 1 is %g", AT_ARGS(f, n), scale, sum - 1);
    CHECK(steps > 0 && steps < most, AT ", scale %g: %d steps, not fewer than %d", AT_ARGS(f, n), scale, steps, most);
    t->most = steps > t->most ? steps : t->most;
    t->most_in_lane = in_lane > t->most_in_lane ? in_lane : t->most_in_lane;
    t->sum += steps;
    t->rows += 1;
}

static void report(const tally *t, const function *f, const char *rows, int allowed)
{
    CHECK(t->most <= allowed, "%s, %s: %d steps, not %d", f->name, rows, t->most, allowed);
    CHECK(t->most_in_lane <= 24, "%s, %s: %d steps side by side", f->name, rows, t->most_in_lane);
    NOTE("%-14s %-34s %4.1f steps on average, at most %d; side by side at most %d", f->name, rows, t->sum / t->rows,
         t->most, t->most_in_lane);
}

#define FOR_EACH_THRESHOLD(f) \
    FOR_EACH_FUNCTION(f)      \
        if (f->kind == FORWARD && (strncmp(f->name, "sparsemax", 9) == 0 || strncmp(f->name, "entmax15", 8) == 0))

static const double scales[] = {1, 0.25, 0.05, 1e-3};

static void test_typical(void)
{
    static const size_t lengths[] = {64, 100, 1000, 4096, 32000};
    TEST("rows after N(0,1), from few candidates to every entry") {
        FOR_EACH_THRESHOLD(f)
        {
            for (size_t k = 0; k < COUNT(scales); ++k) {
                tally t = {0, 0, 0, 0};
                char title[64];
                random_state = 1;
                for (int repeat = 0; repeat < 50; ++repeat) {
                    size_t n = lengths[(size_t)repeat % COUNT(lengths)];
                    if (repeat < 25 || n < 32000) {
                        normal(f, n, 0);
                        count(&t, f, n, scales[k]);
                    }
                }
                snprintf(title, sizeof title, "N(0,1), scale %g", scales[k]);
                report(&t, f, title, 14);
            }
        }
    }
}

static void test_worst(void)
{
    static const size_t lengths[] = {2, 3, 10, 16, 17, 64, 1000, 4096, 32000};
    TEST("rows made to be hard") {
        FOR_EACH_THRESHOLD(f)
        {
            tally shrinking = {0, 0, 0, 0}, sheds = {0, 0, 0, 0}, tails = {0, 0, 0, 0}, equal = {0, 0, 0, 0},
                  clusters = {0, 0, 0, 0}, offset = {0, 0, 0, 0};
            for (size_t l = 0; l < COUNT(lengths); ++l) {
                for (size_t k = 0; k < COUNT(scales); ++k) {
                    static const double ratios[] = {0.1, 0.5, 0.9, 0.99, 0.999}, gaps[] = {1e-3, 1e-6, 1e-12, 1e-15};
                    static const double exponents[] = {0.01, 0.5, 1, 2}, values[] = {0, -0.75, 1e6, 3e38, 1e-38};
                    size_t n = lengths[l];
                    for (size_t j = 0; j < COUNT(ratios); ++j) {
                        geometric(f, n, ratios[j]);
                        count(&shrinking, f, n, scales[k]);
                    }
                    for (size_t j = 0; j < COUNT(gaps); ++j) {
                        one_a_step(f, n, gaps[j]);
                        count(&sheds, f, n, scales[k]);
                    }
                    for (size_t j = 0; j < COUNT(exponents); ++j) {
                        power(f, n, exponents[j]);
                        count(&tails, f, n, scales[k]);
                    }
                    for (size_t j = 0; j < COUNT(values); ++j) {
                        two_clusters(f, n, 0, values[j]);
                        count(&equal, f, n, scales[k]);
                        for (size_t high = 1; high < n; high = 3 * high + 1) {
                            two_clusters(f, n, high, values[j]);
                            count(&clusters, f, n, scales[k]);
                        }
                    }
                    for (double far = 1e3; far < 1e9; far *= 100) {
                        random_state = n;
                        normal(f, n, far);
                        count(&offset, f, n, scales[k]);
                    }
                }
            }
            report(&shrinking, f, "geometric", 12);
            report(&sheds, f, "one entry shed a step", 20);
            report(&tails, f, "powers of the rank", 12);
            report(&equal, f, "all equal", 3);
            report(&clusters, f, "two clusters 1 ULP apart", 6);
            report(&offset, f, "N(0,1) far from 0", 14);
        }
    }
}

/* Mixtures of the above: what a search for bad rows would try. */
static void test_random(void)
{
    TEST("rows of random candidates at random distances") {
        FOR_EACH_THRESHOLD(f)
        {
            tally t = {0, 0, 0, 0};
            random_state = 2;
            for (int repeat = 0; repeat < 3000; ++repeat) {
                size_t n = 2 + random_below(repeat % 10 == 0 ? 3000 : 100);
                double spread = ldexp(1, -(int)random_below(40)), deep = ldexp(1, -(int)random_below(30));
                for (size_t i = 0; i < n; ++i) {
                    double u = random_uniform();
                    set(f, row, i, random_below(3) ? -spread * u : -ldexp(deep, -(int)random_below(50)));
                }
                count(&t, f, n, ldexp(1, -(int)random_below(10)));
            }
            report(&t, f, "random", 8);
        }
    }
}

/* ==== where sigma turns ==== */

static double sigma_of(double s, const mmax_call_scalar_f64 *c) { return mmax_sigma_scalar_f64(s, c, 2, 0); }

/* sigma over [from, to] against its bounds there; returns whether they say that no score may reach the largest. */
static int check_bounds(mmax_call_scalar_f64 *c, double from, double to)
{
    mmax_extremes_scalar_f64 logits = {0, 0, 0, 0}, e = {0, 0, 0, 0};
    const double ends = fmax(sigma_of(from, c), sigma_of(to, c));
    double min = INFINITY, max = -INFINITY;
    int peak;
    logits.min = from;
    logits.max = to;
    for (int i = 0; i <= 1000; ++i) {
        const double s = sigma_of(from + (to - from) * i / 1000, c);
        min = fmin(min, s);
        max = fmax(max, s);
    }
    c->peaks = 1;
    CHECK(mmax_sigma_bounds_scalar_f64(&e, &logits, c, MMAX_MULTIMAX2), "%g to %g", from, to);
    CHECK(e.min <= min + 1e-11 && e.max >= max - 1e-11, "%g to %g: sigma %g to %g, not %g to %g", from, to, min, max,
          e.min, e.max);
    CHECK(e.min >= min - 0.5 && e.max <= max + 0.5, "%g to %g: sigma %g to %g, not %g to %g", from, to, min, max, e.min,
          e.max);
    CHECK(e.peak == (e.max > ends), "%g to %g: peak %d", from, to, e.peak);
    peak = e.peak;
    c->peaks = 0;
    if (mmax_sigma_bounds_scalar_f64(&e, &logits, c, MMAX_MULTIMAX2)) {
        CHECK(!e.peak && e.max == ends && max <= ends + 1e-11, "%g to %g: a peak", from, to);
    } else {
        logits.min = from - 1;
        CHECK(!mmax_sigma_bounds_scalar_f64(&e, &logits, c, MMAX_MULTIMAX2), "%g to %g: no peak any more", from, to);
    }
    return peak;
}

static void test_turns(void)
{
    TEST("MultiMax's bounds of sigma over an interval hold, and are reached") {
        int peaks = 0;
        random_state = 3;
        for (int repeat = 0; repeat < 3000; ++repeat) {
            mmax_multimax_params p = mmax_multimax_identity(2);
            mmax_call_scalar_f64 c;
            mmax_sigma_state_scalar_f64 state;
            for (int i = 0; i < 2; ++i) {
                p.t_b[i] = 1 + (i ? 0.2 : 1.5) * random_normal();
                p.t_d[i] = 1 + (i ? 0.2 : 1.5) * random_normal();
                p.b[i] = random_below(4) ? random_normal() : 0;
                p.d[i] = random_below(4) ? random_normal() : p.b[1 - i];
            }
            mmax_prepare_sigma_scalar_f64(&c, &state, 1, &p, 1000, 1);
            CHECK(c.turns && state.turns.count >= 4 && state.turns.count <= 9, "%d turns", state.turns.count);
            for (int k = 0; k < 4; ++k) {
                const double from = 4 * random_normal();
                peaks += check_bounds(&c, from, from + 10 * random_uniform());
            }
        }
        CHECK(peaks > 100, "only %d peaks", peaks);
    }
    TEST("scores beyond the safe bound have no bounds") {
        mmax_multimax_params p = mmax_multimax_identity(2);
        mmax_sigma_state_scalar_f64 state;
        mmax_call_scalar_f64 c;
        mmax_extremes_scalar_f64 logits = {0, 0, 0, 0}, e = {0, 0, 0, 0};
        mmax_prepare_sigma_scalar_f64(&c, &state, 2, &p, 1000, 1);
        logits.min = -c.safe / 2;
        logits.max = c.safe / 2;
        CHECK(mmax_sigma_bounds_scalar_f64(&e, &logits, &c, MMAX_MULTIMAX2) && e.max == c.safe, "to %g", e.max);
        logits.min = -c.safe;
        CHECK(!mmax_sigma_bounds_scalar_f64(&e, &logits, &c, MMAX_MULTIMAX2), "from %g", logits.min);
        logits.min = 0;
        logits.max = c.safe;
        CHECK(!mmax_sigma_bounds_scalar_f64(&e, &logits, &c, MMAX_MULTIMAX2), "to %g", logits.max);
    }
}

int main(void)
{
    test_turns();
    test_typical();
    test_worst();
    test_random();
    return check_report();
}
