/*
 * test_topk.c: topk, and routers that choose the same, against the oracle, which sorts; and what they promise beside their
 * digits: exactly k entries, of equal ones the first, softmax's bits where k reaches all, the same bits everywhere.
 * Run as `test_topk [FOLDER]`, the folder with golden vectors.
 */
#include <stdlib.h>

#include "function_table.h"
#include "golden_file.h"
#include "oracle.h"

#define BOUND        6 /* ULP */
#define GOLDEN_CASES 164
#define MOST         6000

/* A type's functions on arrays of that type, as the table has them. */
typedef struct topk_type {
    const function *f; /* softmax: size, and access to entries */
    mmax_status (*topk)(void *y, const void *x, size_t k, mmax_shape s);
    mmax_status (*pick)(void *weights, uint32_t *index, const void *x, size_t k, int over_all, mmax_shape s);
    mmax_status (*softmax)(void *y, const void *x, mmax_shape s);
    mmax_status (*backward)(void *gx, const void *gy, const void *y, mmax_shape s);
    mmax_status (*truncate)(void *y, const void *x, mmax_truncation t, mmax_shape s);
    mmax_status (*sample)(uint32_t *index, double *log_weight, const void *x, mmax_truncation t, uint64_t seed,
                          uint64_t first_row, mmax_shape s);
} topk_type;
#define ADAPT(T)                                                                                                      \
    static mmax_status topk_##T(void *y, const void *x, size_t k, mmax_shape s) { return mmax_topk_##T(y, x, k, s); } \
    static mmax_status pick_##T(void *w, uint32_t *i, const void *x, size_t k, int all, mmax_shape s) {               \
        mmax_router r = mmax_router_top(k);                                                                           \
        r.gate = all ? MMAX_GATE_SOFTMAX : MMAX_GATE_CHOSEN;                                                          \
        return mmax_route_##T(w, i, x, &r, s);                                                                        \
    }                                                                                                                 \
    static mmax_status softmax_##T(void *y, const void *x, mmax_shape s) { return mmax_softmax_##T(y, x, s); }        \
    static mmax_status backward_##T(void *gx, const void *gy, const void *y, mmax_shape s) {                          \
        return mmax_softmax_backward_##T(gx, gy, y, s);                                                               \
    }                                                                                                                 \
    static mmax_status truncate_##T(void *y, const void *x, mmax_truncation t, mmax_shape s) {                        \
        return mmax_truncate_##T(y, x, t, s);                                                                         \
    }                                                                                                                 \
    static mmax_status sample_##T(uint32_t *index, double *log_weight, const void *x, mmax_truncation t,              \
                                  uint64_t seed, uint64_t first_row, mmax_shape s) {                                  \
        return mmax_sample_##T(index, log_weight, x, t, seed, first_row, s);                                          \
    }
ADAPT(f32)
ADAPT(f64)
static topk_type types[2] = {{NULL, topk_f32, pick_f32, softmax_f32, backward_f32, truncate_f32, sample_f32},
                             {NULL, topk_f64, pick_f64, softmax_f64, backward_f64, truncate_f64, sample_f64}};
#define FOR_EACH_TYPE(t) for (topk_type *t = types; t < types + 2; ++t)

static double x_[MOST], y_[MOST], z_[MOST], w_[MOST];
static uint32_t index_[MOST];
static double largest_error;

/* ==== the oracle ==== */
static size_t order[MOST];
static score score_of[MOST];
static wide oracle_of[MOST];
/* How many entries of x_ are active; their order. */
static size_t sort_row(oracle *o, const topk_type *t, size_t n, size_t k, double scale) {
    const oracle topk = {TOPK, 0, NULL, (double)k, largest(t->f), NULL, 0};
    *o = topk;
    for (size_t i = 0; i < n; ++i) { score_of[i] = oracle_score(o, get(t->f, x_, i), scale); }
    return oracle_order(order, score_of, n);
}
static int is_good(const topk_type *t, double got, wide want) {
    const double least = smallest_normal(t->f), unit = eps_of(t->f) / 2;
    double error = 0;
    if (want < least * 0.999) { return got == 0; }
    if (want < least * 1.001) { return got <= least * 1.01; }
    error = (double)fabsl(got - want) / ((double)want * unit);
    if (error > largest_error) { largest_error = error; }
    return error <= 2 * BOUND;
}

#define HERE            "f%u on %s, %u entries, k %u, %s"
#define HERE_ARGS(what) (unsigned)(8 * t->f->size), mmax_isa_name(mmax_isa_active()), (unsigned)n, (unsigned)k, what

/* x_, of n entries, by both functions. */
static void check_row(const topk_type *t, size_t n, size_t k, double scale, const char *what) {
    oracle o;
    const size_t active = sort_row(&o, t, n, k, scale), kept = k < active ? k : active;
    mmax_shape s = mmax_row(n);
    size_t zeros = 0;
    s.scale = scale;
    oracle_forward(&o, oracle_of, score_of, n);
    CHECK(t->topk(y_, x_, k, s) == MMAX_OK, HERE, HERE_ARGS(what));
    for (size_t i = 0; i < n; ++i) {
        const double y = get(t->f, y_, i);
        CHECK(is_good(t, y, oracle_of[i]), HERE ": y[%u] is %g, not %Lg", HERE_ARGS(what), (unsigned)i, y,
              oracle_of[i]);
        zeros += oracle_of[i] == 0 && get_bits(t->f, y_, i) != 0;
    }
    CHECK(zeros == 0, HERE ": %u entries that are not kept are not +0", HERE_ARGS(what), (unsigned)zeros);
    CHECK(t->softmax(z_, x_, s) == MMAX_OK, HERE, HERE_ARGS(what));
    CHECK(k < active || memcmp(y_, z_, n * t->f->size) == 0, HERE ": not softmax", HERE_ARGS(what));
    CHECK(t->pick(w_, index_, x_, k, 0, s) == MMAX_OK, HERE, HERE_ARGS(what));
    for (size_t j = 0; j < k; ++j) {
        const double w = get(t->f, w_, j);
        if (j >= kept) {
            CHECK(index_[j] == UINT32_MAX && get_bits(t->f, w_, j) == 0, HERE ": place %u is %u, %g", HERE_ARGS(what),
                  (unsigned)j, (unsigned)index_[j], w);
        } else {
            CHECK(index_[j] == order[j], HERE ": place %u is %u, not %u", HERE_ARGS(what), (unsigned)j,
                  (unsigned)index_[j], (unsigned)order[j]);
            CHECK(is_good(t, w, oracle_of[order[j]]), HERE ": weight %u is %g, not %Lg", HERE_ARGS(what), (unsigned)j,
                  w, oracle_of[order[j]]);
        }
    }
    CHECK(t->pick(w_, NULL, x_, k, 1, s) == MMAX_OK, HERE, HERE_ARGS(what));
    for (size_t j = 0; j < kept; ++j) {
        CHECK(get_bits(t->f, w_, j) == get_bits(t->f, z_, order[j]), HERE ": over all, weight %u is %g, not %g",
              HERE_ARGS(what), (unsigned)j, get(t->f, w_, j), get(t->f, z_, order[j]));
    }
    memcpy(z_, x_, n * t->f->size);
    CHECK(t->topk(z_, z_, k, s) == MMAX_OK && memcmp(z_, y_, n * t->f->size) == 0, HERE ": in place", HERE_ARGS(what));
    memset(index_, 0, sizeof index_);
    CHECK(t->pick(NULL, index_, x_, k, 0, s) == MMAX_OK, HERE, HERE_ARGS(what));
    for (size_t j = 0; j < kept; ++j) {
        CHECK(index_[j] == order[j], HERE ": index alone, place %u is %u", HERE_ARGS(what), (unsigned)j,
              (unsigned)index_[j]);
    }
}
#define NEXT_K(k, n) ((k) < 18 || (n) < 40 ? 1 : (k) < 70 ? 5 + (k) / 4 : (k) / 2)

/* ==== rows that make it hard ==== */
enum { ASCENDING, DESCENDING, ONE_LANE, TWO_VALUES, ZEROS, FAR, SPREAD, HARD };
static void fill_hard(const topk_type *t, size_t n, int which) {
    for (size_t i = 0; i < n; ++i) {
        const double u = random_normal();
        set(t->f, x_, i,
            which == ASCENDING    ? (double)i * 0.01
            : which == DESCENDING ? -(double)i * 0.01
            : which == ONE_LANE   ? (i % 32 == 5 ? 40 + u : u)
            : which == TWO_VALUES ? (double)(u > 1.5)
            : which == ZEROS      ? (u > 0 ? 0.0 : -0.0)
            : which == FAR
                ? 1e7 + 4 * u
                : ldexp(u, (int)random_below(t->f->size == 4 ? 240 : 2000) - (t->f->size == 4 ? 120 : 1000)));
    }
}

/* ==== batches ==== */
static double bx[100000], by[40 * 400], bw[40 * 400], bt[40 * 400], bias_[40 * 400];
static uint32_t bi[40 * 400], starts[40], lengths[40];

/* Rows of a batch with starts, lengths, strides and attention against each row alone. */
static void check_batch(const topk_type *t, size_t rows, size_t n, size_t k, int with, int over_all) {
    const double slopes[3] = {0.5, 2, 0}, scales[3] = {0.7, 1, 3};
    static const law laws[] = {NORMAL_4, NORMAL_32, TIES, MASKED, EQUAL};
    const size_t size = t->f->size, stride = n + 3;
    const mmax_truncation top_p = {0, 0, 0, 0.9, 0};
    mmax_attention a;
    mmax_shape s = mmax_rows(rows, n), one = mmax_row(n);
    memset(&a, 0, sizeof a);
    a.head_rows = rows / 3 + 1;
    a.bias = with & 1 ? bias_ : NULL;
    a.slopes = a.bias ? slopes : NULL;
    a.masked = with & 2 ? -8 : 0;
    a.scales = with & 4 ? scales : NULL;
    s.attention = with & 7 ? &a : NULL;
    s.starts = with & 8 ? starts : NULL;
    s.ends = with & 16 ? lengths : NULL;
    s.x_stride = stride;
    s.y_stride = n + 1;
    s.scale = 1.25;
    for (size_t r = 0; r < rows; ++r) {
        fill(t->f, (char *)bx + r * stride * size, n, laws[random_below(COUNT(laws))]);
        fill(t->f, (char *)bias_ + r * n * size, n, MASKED);
        if (random_below(4) == 0) {
            set_special(t->f, bx, r * stride + random_below(n), (special)random_below(SPECIALS));
        }
        for (size_t i = 0; r % 4 == 3 && i < n; ++i) { /* few are active */
            if (random_below(8) > 0) { set_special(t->f, bx, r * stride + i, MINUS_INF); }
        }
        lengths[r] = (uint32_t)random_below(n + 1);
        starts[r] = (uint32_t)random_below((with & 16 ? lengths[r] : n) + 1);
    }
    CHECK(t->topk(by, bx, k, s) == MMAX_OK, HERE, HERE_ARGS("a batch"));
    CHECK(t->pick(bw, bi, bx, k, over_all, s) == MMAX_OK, HERE, HERE_ARGS("a batch"));
    CHECK(t->truncate(bt, bx, top_p, s) == MMAX_OK, HERE, HERE_ARGS("a batch"));
    for (size_t r = 0; r < rows; ++r) {
        const size_t head = r / a.head_rows, start = s.starts ? starts[r] : 0, end = s.ends ? lengths[r] : n;
        mmax_attention single = a;
        int is_same;
        single.head_rows = 0;
        single.bias = a.bias ? (const char *)bias_ + r * n * size : NULL;
        single.slopes = a.bias ? slopes + head : NULL;
        single.scales = a.scales ? scales + head : NULL;
        one.scale = s.scale;
        one.attention = s.attention ? &single : NULL;
        memcpy(x_, (char *)bx + r * stride * size, n * size);
        for (size_t i = 0; i < n; ++i) { /* what is not active is masked */
            if (i < start || i >= end) { set_special(t->f, x_, i, MINUS_INF); }
        }
        CHECK(t->topk(y_, x_, k, one) == MMAX_OK, HERE, HERE_ARGS("a row"));
        CHECK(t->pick(w_, index_, x_, k, over_all, one) == MMAX_OK, HERE, HERE_ARGS("a row"));
        CHECK(t->truncate(z_, x_, top_p, one) == MMAX_OK, HERE, HERE_ARGS("a row"));
        is_same = 1;
        for (size_t i = 0; i < n; ++i) { /* starts change the lanes that sums run over */
            const double got = get(t->f, by, r * s.y_stride + i), want = get(t->f, y_, i);
            is_same &= s.starts ? fabs(got - want) <= 8 * eps_of(t->f) * want || (got != got && want != want)
                                : get_bits(t->f, by, r * s.y_stride + i) == get_bits(t->f, y_, i);
            is_same &= s.starts != NULL || get_bits(t->f, bt, r * s.y_stride + i) == get_bits(t->f, z_, i);
        }
        CHECK(is_same, HERE " %d: row %u differs", HERE_ARGS("a batch"), with, (unsigned)r);
        for (size_t j = 0; j < k; ++j) {
            const double got = get(t->f, bw, r * k + j), want = get(t->f, w_, j);
            const int same = s.starts ? fabs(got - want) <= 8 * eps_of(t->f) * want || (got != got && want != want)
                                      : get_bits(t->f, bw, r * k + j) == get_bits(t->f, w_, j);
            CHECK(same && bi[r * k + j] == index_[j], HERE " %d: row %u, weight %u is %g at %u, not %g at %u",
                  HERE_ARGS("a batch"), with, (unsigned)r, (unsigned)j, got, (unsigned)bi[r * k + j], want,
                  (unsigned)index_[j]);
        }
    }
}
/* The scores of a row with a bias, formed here, give the same. */
static void check_bias(const topk_type *t, size_t n, size_t k) {
    mmax_attention a;
    mmax_shape s = mmax_row(n);
    int same = 1;
    memset(&a, 0, sizeof a);
    fill(t->f, x_, n, NORMAL_4);
    fill(t->f, bias_, n, MASKED);
    a.bias = bias_;
    s.attention = &a;
    s.scale = 2;
    CHECK(t->topk(y_, x_, k, s) == MMAX_OK && t->pick(w_, index_, x_, k, 1, s) == MMAX_OK, HERE, HERE_ARGS("bias"));
    for (size_t i = 0; i < n; ++i) {
        if (is_special(t->f, bias_, i, MINUS_INF)) {
            set_special(t->f, x_, i, MINUS_INF);
        } else {
            set(t->f, x_, i, 2 * get(t->f, x_, i) + get(t->f, bias_, i));
        }
    }
    s.attention = NULL;
    s.scale = 1;
    CHECK(t->topk(z_, x_, k, s) == MMAX_OK && t->pick(bw, bi, x_, k, 1, s) == MMAX_OK, HERE, HERE_ARGS("bias"));
    for (size_t j = 0; j < k; ++j) { same &= get_bits(t->f, w_, j) == get_bits(t->f, bw, j) && index_[j] == bi[j]; }
    CHECK(same && memcmp(y_, z_, n * t->f->size) == 0, HERE, HERE_ARGS("bias is not what its scores are"));
}

/* ==== truncation ==== */
/* The weights y_ are those of softmax over a prefix of the order; returns its length. */
static size_t check_prefix(const topk_type *t, size_t n, size_t active, size_t least, size_t most, const char *what) {
    const wide max = score_of[order[0]].hi;
    size_t kept = active;
    wide sum = 0;
    int good = 1;
    while (kept > 0 && get_bits(t->f, y_, order[kept - 1]) == 0) { --kept; }
    kept = kept < least && get(t->f, y_, order[kept - 1]) < 1e-30 ? least : kept; /* weights that underflow are kept */
    CHECK(kept >= least && kept <= most, "f%u on %s, %u entries, %s: %u are kept, not %u to %u",
          (unsigned)(8 * t->f->size), mmax_isa_name(mmax_isa_active()), (unsigned)n, what, (unsigned)kept,
          (unsigned)least, (unsigned)most);
    for (size_t j = kept; j-- > 0;) { sum += expl((score_of[order[j]].hi - max) + score_of[order[j]].lo); }
    for (size_t j = 0; j < active; ++j) {
        const wide e = expl((score_of[order[j]].hi - max) + score_of[order[j]].lo);
        good &= j >= kept ? get_bits(t->f, y_, order[j]) == 0 : is_good(t, get(t->f, y_, order[j]), e / sum);
    }
    for (size_t i = 0; i < n; ++i) { good &= !is_masked(score_of[i]) || get_bits(t->f, y_, i) == 0; }
    CHECK(good, "f%u on %s, %u entries, %s: weights", (unsigned)(8 * t->f->size), mmax_isa_name(mmax_isa_active()),
          (unsigned)n, what);
    return kept;
}
static void check_truncation(const topk_type *t, size_t n, mmax_truncation c, double scale) {
    char what[100];
    oracle o;
    const size_t active = sort_row(&o, t, n, n, scale);
    mmax_shape s = mmax_row(n);
    size_t least = 0, most = 0, kept;
    uint32_t drawn = 7;
    double log_weight = 7;
    s.scale = scale;
    (void)snprintf(what, sizeof what, "k %u, deviations %g, min_p %g, top_p %g, keep %u, scale %g", (unsigned)c.k,
                   c.deviations, c.min_p, c.top_p, (unsigned)c.keep, scale);
    CHECK(t->truncate(y_, x_, c, s) == MMAX_OK && t->sample(&drawn, &log_weight, x_, c, n, 1, s) == MMAX_OK, "%s",
          what);
    if (active == 0) {
        CHECK(drawn == UINT32_MAX && log_weight == -INFINITY, "%s: no active entry", what);
        return;
    }
    oracle_truncation(&least, &most, &c, score_of, order, active, t->f->size == 4 ? 1e-6L : 1e-13L);
    kept = check_prefix(t, n, active, least, most, what);
    CHECK(drawn < n && get_bits(t->f, y_, drawn) != 0, "f%u, %u entries, %s: %u of %u kept is drawn",
          (unsigned)(8 * t->f->size), (unsigned)n, what, (unsigned)drawn, (unsigned)kept);
    if (drawn < n) {
        const wide max = score_of[order[0]].hi, own = score_of[drawn].hi - max + score_of[drawn].lo;
        wide sum = 0;
        for (size_t j = active; j-- > 0;) { sum += expl((score_of[order[j]].hi - max) + score_of[order[j]].lo); }
        CHECK(fabsl(log_weight - (own - logl(sum))) <= 8 * eps_of(t->f) * (1 + fabsl(own)),
              "%s: log_weight %.17g, not %.17Lg", what, log_weight, own - logl(sum));
    }
    memcpy(z_, x_, n * t->f->size);
    CHECK(t->truncate(z_, z_, c, s) == MMAX_OK && memcmp(z_, y_, n * t->f->size) == 0, "%s: in place", what);
    if (c.k && !(c.deviations > 0) && !(c.min_p > 0) && !(c.top_p > 0) && c.keep <= c.k) {
        CHECK(t->topk(z_, x_, c.k, s) == MMAX_OK && memcmp(z_, y_, n * t->f->size) == 0, "%s: not topk", what);
    }
}
static void check_truncations(const topk_type *t, size_t n, double scale) {
    static const size_t ks[] = {0, 1, 7, 40, 700, SIZE_MAX}, keeps[] = {0, 1, 3, 90, SIZE_MAX};
    static const double deviations[] = {0, 1, 2.5, 1e9}, min_ps[] = {0, 0.05, 0.9, 1e-12, 1e-310},
                        top_ps[] = {0, 0.9, 0.3, 0.999, 1e-9, 1};
    for (size_t i = 0; i < 40; ++i) {
        mmax_truncation c = mmax_truncation_none();
        if (i % 2) { c.k = ks[random_below(COUNT(ks))]; }
        if (random_below(3) == 0) { c.deviations = deviations[random_below(COUNT(deviations))]; }
        if (random_below(3) == 0) { c.min_p = min_ps[random_below(COUNT(min_ps))]; }
        if (random_below(2) == 0) { c.top_p = top_ps[random_below(COUNT(top_ps))]; }
        if (random_below(3) == 0) { c.keep = keeps[random_below(COUNT(keeps))]; }
        check_truncation(t, n, c, scale);
    }
}

/* ==== draws ==== */
/* A million draws from 24 tokens, of which some weigh 1e-9, by chi-square, and each of them alone. */
static void check_law(const topk_type *t, mmax_truncation c, double top) {
    enum { TOKENS = 24, ROWS = 4000, TIMES = 250 };
    static uint32_t drawn[ROWS];
    static double counts[TOKENS];
    mmax_shape s = mmax_rows(ROWS, TOKENS);
    double chi = 0, left = 0, expected = 0;
    memset(counts, 0, sizeof counts);
    for (size_t i = 0; i < TOKENS; ++i) {
        set(t->f, bx, i, i % 8 == 3 ? top - 20.7 : top - 0.25 * (double)(i * 7 % TOKENS));
    }
    for (size_t i = TOKENS; i < ROWS * TOKENS; ++i) { set(t->f, bx, i, get(t->f, bx, i - TOKENS)); }
    CHECK(t->truncate(y_, bx, c, mmax_row(TOKENS)) == MMAX_OK, "draws");
    for (uint64_t seed = 0; seed < TIMES; ++seed) {
        CHECK(t->sample(drawn, NULL, bx, c, seed, seed << 40, s) == MMAX_OK, "draws");
        for (size_t r = 0; r < ROWS; ++r) { counts[drawn[r] < TOKENS ? drawn[r] : 0] += 1; }
    }
    for (size_t i = 0; i < TOKENS; ++i) {
        const double y = get(t->f, y_, i) * (double)ROWS * (double)TIMES;
        CHECK(y > 0 || counts[i] == 0, "draws: %u is not kept", (unsigned)i);
        if (y > 1) {
            chi += (counts[i] - y) * (counts[i] - y) / y;
            expected += 1;
        } else {
            left += counts[i];
        }
    }
    CHECK(chi < expected + 5 * sqrt(2 * expected) && left <= 2, "f%u: chi-square %g of %g, %g rare ones",
          (unsigned)(8 * t->f->size), chi, expected, left);
}

/* No draw of any small seed and row is of an entry that weighs e^-20. */
static void check_rare(const topk_type *t) {
    mmax_shape s = mmax_rows(100, 2);
    int good = 1;
    for (size_t i = 0; i < 200; ++i) { set(t->f, bx, i, i % 2 ? 0 : -20); }
    for (uint64_t seed = 0; seed < 100; ++seed) {
        good &= t->sample(bi, NULL, bx, mmax_truncation_none(), seed, 0, s) == MMAX_OK;
        for (size_t r = 0; r < 100; ++r) { good &= bi[r] == 1; }
    }
    CHECK(good, "f%u: an entry that weighs next to nothing is drawn", (unsigned)(8 * t->f->size));
}

/* ==== special rows ==== */
static void check_nan(const topk_type *t, size_t n, size_t k, size_t at, special which) {
    size_t active = 0;
    int good = 1;
    fill(t->f, x_, n, MASKED);
    set_special(t->f, x_, at, which);
    CHECK(t->topk(y_, x_, k, mmax_row(n)) == MMAX_OK, HERE, HERE_ARGS("NaN"));
    CHECK(t->pick(w_, index_, x_, k, (int)(at & 1), mmax_row(n)) == MMAX_OK, HERE, HERE_ARGS("NaN"));
    for (size_t i = 0; i < n; ++i) {
        const int masked = is_special(t->f, x_, i, MINUS_INF);
        if (masked) {
            good &= get_bits(t->f, y_, i) == 0;
        } else {
            good &= is_special(t->f, y_, i, QUIET_NAN);
        }
        if (!masked && active < k) { good &= index_[active] == i && is_special(t->f, w_, active, QUIET_NAN); }
        active += !masked;
    }
    for (size_t j = active; j < k; ++j) { good &= index_[j] == UINT32_MAX && get_bits(t->f, w_, j) == 0; }
    CHECK(good, HERE ": a special value at %u", HERE_ARGS("NaN"), (unsigned)at);
}

/* Scores that are all beyond the type, to -inf: nothing is kept, whichever way a row goes. */
static void check_beyond(const topk_type *t, size_t rows, size_t n, size_t k) {
    mmax_shape s = mmax_rows(rows, n);
    int good = 1;
    s.scale = 4;
    for (size_t i = 0; i < rows * n; ++i) { set(t->f, bx, i, -largest(t->f) * (1 - 0.001 * (double)(i % n))); }
    CHECK(t->topk(by, bx, k, s) == MMAX_OK && t->pick(bw, bi, bx, k, 0, s) == MMAX_OK, HERE, HERE_ARGS("beyond"));
    for (size_t i = 0; i < rows * n; ++i) { good &= get_bits(t->f, by, i) == 0; }
    for (size_t i = 0; i < rows * k; ++i) { good &= get_bits(t->f, bw, i) == 0 && bi[i] == UINT32_MAX; }
    CHECK(good, HERE, HERE_ARGS("scores beyond the type"));
}

static void check_errors(const topk_type *t) {
    const double sink = 0;
    mmax_attention a;
    mmax_shape s = mmax_rows(3, 40), bad;
    const uint32_t long_ones[3] = {1, 41, 1};
    fill(t->f, x_, 200, NORMAL_1);
    memset(&a, 0, sizeof a);
    memset(y_, 0x55, 1000);
    memset(w_, 0x55, 1000);
    memset(index_, 0x55, 1000);
#define FAILS(status, call) CHECK((call) == (status), "f%u: " #call, (unsigned)(8 * t->f->size))
    FAILS(MMAX_ERR_PARAM, t->topk(y_, x_, 0, s));
    FAILS(MMAX_ERR_PARAM, t->pick(w_, index_, x_, 0, 0, s));
    FAILS(MMAX_ERR_NULL, t->topk(NULL, x_, 3, s));
    FAILS(MMAX_ERR_NULL, t->topk(y_, NULL, 3, s));
    FAILS(MMAX_ERR_NULL, t->pick(NULL, NULL, x_, 3, 0, s));
    FAILS(MMAX_ERR_NULL, t->pick(w_, index_, NULL, 3, 0, s));
    FAILS(MMAX_ERR_SHAPE, t->pick(w_, index_, x_, SIZE_MAX / 8, 0, s));
    FAILS(MMAX_ERR_ALIAS, t->pick(x_, index_, x_, 40, 0, s));
    FAILS(MMAX_ERR_ALIAS, t->pick(w_, (uint32_t *)(void *)x_, x_, 3, 0, s));
    FAILS(MMAX_ERR_ALIAS, t->pick(w_, (uint32_t *)(void *)w_, x_, 3, 0, s));
    FAILS(MMAX_ERR_ALIAS, t->topk((char *)x_ + t->f->size, x_, 3, s));
    bad = s;
    bad.x_stride = 39;
    FAILS(MMAX_ERR_SHAPE, t->topk(y_, x_, 3, bad));
    FAILS(MMAX_ERR_SHAPE, t->pick(w_, index_, x_, 3, 0, bad));
    bad = s;
    bad.ends = long_ones;
    FAILS(MMAX_ERR_SHAPE, t->pick(w_, index_, x_, 3, 0, bad));
    bad = s;
    bad.scale = -1;
    FAILS(MMAX_ERR_SCALE, t->pick(w_, index_, x_, 3, 0, bad));
    bad = s;
    a.sinks = &sink;
    bad.attention = &a;
    FAILS(MMAX_ERR_ATTENTION, t->topk(y_, x_, 3, bad));
    FAILS(MMAX_ERR_ATTENTION, t->pick(w_, index_, x_, 3, 0, bad));
    for (size_t i = 0; i < 1000; ++i) {
        CHECK(((unsigned char *)y_)[i] == 0x55 && ((unsigned char *)w_)[i] == 0x55 &&
                  ((unsigned char *)index_)[i] == 0x55,
              "an output is touched");
    }
    FAILS(MMAX_OK, t->topk(NULL, NULL, 0, mmax_rows(0, 5)));
    FAILS(MMAX_OK, t->pick(NULL, NULL, NULL, 0, 0, mmax_rows(5, 0)));
    FAILS(MMAX_OK, t->topk(y_, x_, SIZE_MAX, s));
}

/* ==== gradient and golden vectors ==== */
static void check_gradient(size_t n, size_t k) {
    const topk_type *t = &types[1];
    mmax_shape s = mmax_row(n);
    const double h = 1e-5;
    static double gy[300], gx[300];
    s.scale = 0.8;
    for (size_t i = 0; i < n; ++i) { gy[i] = random_normal(); }
    fill(t->f, x_, n, NORMAL_4);
    CHECK(t->topk(y_, x_, k, s) == MMAX_OK && t->backward(gx, gy, y_, s) == MMAX_OK, HERE, HERE_ARGS("gradient"));
    for (size_t i = 0; i < n; ++i) {
        const double x = x_[i];
        double slope = 0;
        x_[i] = x + h;
        CHECK(t->topk(z_, x_, k, s) == MMAX_OK, HERE, HERE_ARGS("gradient"));
        x_[i] = x - h;
        CHECK(t->topk(w_, x_, k, s) == MMAX_OK, HERE, HERE_ARGS("gradient"));
        x_[i] = x;
        for (size_t j = 0; j < n; ++j) { slope += gy[j] * (z_[j] - w_[j]) / (2 * h); }
        CHECK(fabs(slope - gx[i]) < 1e-8, HERE ": gx[%u] is %g, not %g", HERE_ARGS("gradient"), (unsigned)i, gx[i],
              slope);
    }
}
static void check_golden(const char *folder) {
    static double x[400], y[400], gy[400], gx[400];
    char path[4096], word[16], name[16];
    unsigned rows, cols, k, cases = 0;
    double scale;
    FILE *in;
    (void)snprintf(path, sizeof path, "%s/topk.txt", folder);
    in = fopen(path, "r");
    CHECK(in != NULL, "cannot read %s", path);
    while (in && fscanf(in, "%15s %15s %u %u %lf %u", word, name, &rows, &cols, &scale, &k) == 6) {
        const size_t n = (size_t)rows * cols;
        if (n > 400 || !read_values(in, "x", x, n) || !read_values(in, "y", y, n) || !read_values(in, "gy", gy, n) ||
            !read_values(in, "gx", gx, n)) {
            break;
        }
        ++cases;
        FOR_EACH_TYPE(t) FOR_EACH_ISA(isa) {
            mmax_shape s = mmax_rows(rows, cols);
            s.scale = scale;
            for (size_t i = 0; i < n; ++i) {
                set(t->f, x_, i, x[i]);
                set(t->f, bx, i, gy[i]);
            }
            CHECK(t->topk(y_, x_, k, s) == MMAX_OK && t->backward(z_, bx, y_, s) == MMAX_OK, "%s: case %u", path,
                  cases);
            for (size_t i = 0; i < n; ++i) {
                CHECK(is_good(t, get(t->f, y_, i), y[i]), "%s: case %u, y[%u] is %g, not %g", path, cases, (unsigned)i,
                      get(t->f, y_, i), y[i]);
                CHECK(fabs(get(t->f, z_, i) - gx[i]) <= 64 * eps_of(t->f) * (scale + 1),
                      "%s: case %u, gx[%u] is %g, not %g", path, cases, (unsigned)i, get(t->f, z_, i), gx[i]);
            }
        }
    }
    CHECK(cases == GOLDEN_CASES, "%s: %u cases, not %u", path, cases, (unsigned)GOLDEN_CASES);
    if (in) { (void)fclose(in); }
}

/* ==== bits ==== */
static void check_bits(const topk_type *t, size_t n, size_t k, law l) {
    int seen = 0;
    random_state = n * 1000 + k;
    fill(t->f, x_, n, l);
    FOR_EACH_ISA(isa) {
        if (!uses_fma(isa)) { continue; }
        CHECK(t->topk(seen ? z_ : y_, x_, k, mmax_row(n)) == MMAX_OK, HERE, HERE_ARGS("bits"));
        CHECK(t->pick(seen ? bw : w_, index_, x_, k, 0, mmax_row(n)) == MMAX_OK, HERE, HERE_ARGS("bits"));
        CHECK(!seen || (memcmp(y_, z_, n * t->f->size) == 0 && memcmp(w_, bw, k * t->f->size) == 0), HERE,
              HERE_ARGS("bits"));
        seen = 1;
    }
}

int main(int argc, char **argv) {
    types[0].f = function_named("softmax_f32");
    types[1].f = function_named("softmax_f64");
    TEST("exactly the k largest active entries, of equal ones the first, and softmax's weights of them") {
        static const law laws[] = {NORMAL_4, TIES, CLUSTERS, MASKED, ANY_SIZE, EQUAL, GEOMETRIC};
        FOR_EACH_TYPE(t) FOR_EACH_ISA(isa) FOR_EACH_LENGTH(n) for (size_t k = 1; k <= n + 2; k += NEXT_K(k, n)) {
            for (size_t l = 0; l < COUNT(laws); ++l) {
                random_state = n * 1000 + k * 10 + l;
                fill(t->f, x_, n, laws[l]);
                check_row(t, n, k, laws[l] == ANY_SIZE ? 1 : l % 2 ? 1.5 : 0.75, "random");
            }
        }
        NOTE("largest error %.2f ULP", largest_error / 2);
    }
    TEST("rows that make the selection hard, also long ones, and any k") {
        static const size_t ns[] = {17, 64, 197, 1024, 5000}, ks[] = {1, 8, 9, 16, 17, 64, 100, 150, 1000};
        FOR_EACH_TYPE(t)
        FOR_EACH_ISA(isa)
            for (size_t i = 0; i < COUNT(ns); ++i)
                for (size_t j = 0; j < COUNT(ks); ++j) {
                    for (int h = 0; h < HARD; ++h) {
                        fill_hard(t, ns[i], h);
                        check_row(t, ns[i], ks[j], 1, "hard");
                    }
                }
    }
    TEST("in a batch with strides, lengths, starts and attention a row gives what it gives alone") {
        FOR_EACH_TYPE(t) FOR_EACH_ISA(isa) for (int with = 0; with < 32; ++with) {
            check_batch(t, 37, 1 + random_below(90), 1 + random_below(20), with, with % 3 == 0);
            check_batch(t, 37, 1 + random_below(132), 1 + random_below(9), 0, 0); /* in lanes */
            check_batch(t, 4, 300 + random_below(90), 1 + random_below(90), with, with % 3 == 1);
        }
    }
    TEST("scores with a bias are what is selected, over more than one block of them") {
        FOR_EACH_TYPE(t) FOR_EACH_ISA(isa) for (size_t k = 1; k < 400; k = 2 * k + 1) {
            check_bias(t, 700, k);
            check_bias(t, 63, k);
        }
    }
    TEST("a truncation keeps the shortest prefix, with softmax's weights of it, and a draw is of that") {
        static const law laws[] = {NORMAL_1, NORMAL_4, TIES, CLUSTERS, MASKED, EQUAL, GEOMETRIC};
        FOR_EACH_TYPE(t) FOR_EACH_ISA(isa) for (size_t n = 1; n <= MOST; n = n < 8 ? n + 1 : 3 * n + 1) {
            for (size_t l = 0; l < COUNT(laws); ++l) {
                random_state = n * 1000 + l;
                fill(t->f, x_, n, laws[l]);
                check_truncations(t, n, l % 2 ? 1.5 : 0.75);
                for (size_t i = 0; i < n; ++i) { set(t->f, x_, i, get(t->f, x_, i) + 1e5); }
                check_truncations(t, n, l % 2 ? 1.5 : 0.75);
            }
            for (int h = 0; h < SPREAD; ++h) {
                fill_hard(t, n, h);
                check_truncations(t, n, 1);
            }
        }
    }
    TEST("draws follow the law") {
        FOR_EACH_TYPE(t) FOR_EACH_ISA(isa) { check_rare(t); }
        mmax_truncation c = mmax_truncation_none();
        FOR_EACH_TYPE(t) {
            check_law(t, c, 3);
            check_law(t, c, -2e5);
            c.top_p = 0.9;
            check_law(t, c, 0);
            c.k = 11;
            check_law(t, c, 0);
        }
    }
    TEST("NaN and +inf in every lane make the row NaN") {
        FOR_EACH_TYPE(t) FOR_EACH_ISA(isa) for (size_t at = 0; at < 100; ++at) {
            for (int which = 0; which < MINUS_INF; ++which) {
                check_nan(t, 100, 8, at, (special)which);
                check_nan(t, 100, 90, at, (special)which);
            }
        }
    }
    TEST("scores beyond the type, to -inf, are not kept") {
        FOR_EACH_TYPE(t) FOR_EACH_ISA(isa) for (size_t k = 1; k <= 81; k = 3 * k) {
            check_beyond(t, 17, 20, k);
            check_beyond(t, 1, 20, k);
            check_beyond(t, 3, 300, k);
        }
    }
    TEST("what is wrong is told, and no output is touched") {
        FOR_EACH_TYPE(t) { check_errors(t); }
    }
    TEST("the same bits on every instruction set with fma") {
        static const law laws[] = {NORMAL_4, TIES, MASKED, NORMAL_32};
        FOR_EACH_TYPE(t) FOR_EACH_LENGTH(n) for (size_t k = 1; k <= n + 1; k += NEXT_K(k, n)) {
            for (size_t l = 0; l < COUNT(laws); ++l) { check_bits(t, n, k, laws[l]); }
        }
    }
    TEST("softmax_backward is its gradient, by finite differences") {
        FOR_EACH_ISA(isa)
            for (size_t k = 1; k < 80; k = 2 * k + 1) { check_gradient(70, k); }
    }
    TEST("golden vectors") { check_golden(argc > 1 ? argv[1] : "tests/golden"); }
    return check_report();
}
