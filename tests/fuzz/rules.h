/*
 * rules.h: the header's rules for any call: the status that it returns, and the properties of every row of a result.
 * Written from the interface alone; values come from oracle.h.
 */
#ifndef RULES_H
#define RULES_H

#include "input.h"
#include "../oracle.h"

/* ==== the status ==== */

static int is_finite_double(double v) { return (bits_of(v) & 0x7fffffffffffffff) < 0x7ff0000000000000; }

static int fits(const function *f, double v) { return is_finite_double(v) && fabs(v) <= largest(f); }

static int is_null_wrong(const input *in) {
    const function *f = in->f;
    const call *c = &in->c;
    int outputs = 0, optional = f->kind == LOSS || has(f, HAS_GP | HAS_GRADIENT | HAS_INDEX);
    for (int a = 0; a < BIAS; ++a) {
        int may_lack = draws(f) ? a == PER_ROW : is_output(a) && (optional || (a == OUT && has(f, HAS_LSE)));
        outputs += is_output(a) && has_array(in, a) && is_given(in, a);
        if (has_array(in, a) && !is_given(in, a) && !may_lack) { return 1; }
    }
    return outputs == 0 || (f->order && !c->p) || (f->kind == LOSS && !c->t.index && !c->t.q);
}

static int is_shape_wrong(const input *in) {
    const mmax_shape *s = &in->c.s;
    size_t inputs = (size_t)(in->c.t.q != NULL);
    if (!in->sound) { return 1; }
    for (int a = GY; a < ARRAYS; ++a) { inputs += (size_t)has(in->f, 1u << a); }
    if (s->inner > 1 && !has_long_rows(in->f) && s->cols > 12288 / in->f->size / inputs) { return 1; }
    for (size_t row = 0; row < s->rows; ++row) {
        if (length_of(s, row) > s->cols || start_of(s, row) > length_of(s, row)) { return 1; }
    }
    return 0;
}

static int is_scale_wrong(double scale) { return scale != 0 && !(scale >= ldexp(1, -60) && scale <= ldexp(1, 60)); }

static int is_attention_wrong(const input *in) {
    const function *f = in->f;
    const mmax_attention *a = in->c.s.attention;
    if (!a || ignores_attention(f)) { return 0; }
    if (f->kind == LOSS || in->c.s.inner > 1 || !(a->masked <= 0) || (a->sinks && !has(f, TAKES_SINKS)) ||
        (a->slopes && !a->bias)) {
        return 1;
    }
    for (size_t h = 0; h < heads_of(in); ++h) {
        if ((a->slopes && !fits(f, a->slopes[h])) || (a->sinks && !(a->sinks[h] <= DBL_MAX))) { return 1; }
    }
    return 0;
}

static int is_any_scale_wrong(const input *in) {
    const mmax_attention *a = ignores_attention(in->f) ? NULL : in->c.s.attention;
    int wrong = is_scale_wrong(in->c.s.scale);
    for (size_t h = 0; a && a->scales && h < heads_of(in); ++h) { wrong = wrong || is_scale_wrong(a->scales[h]); }
    return wrong;
}

static int is_class_wrong(const input *in, size_t row) {
    int32_t index = in->c.t.index ? in->c.t.index[row] : -1;
    return index >= 0 && ((size_t)index < start_of(&in->c.s, row) || (size_t)index >= length_of(&in->c.s, row));
}

static int are_targets_wrong(const input *in) {
    const mmax_targets *t = &in->c.t;
    double a = t->label_smoothing;
    if (in->f->kind != LOSS) { return 0; }
    for (size_t row = 0; row < in->c.s.rows; ++row) {
        double weight = t->weights ? t->weights[row] : 1;
        if (is_class_wrong(in, row) || !fits(in->f, weight) || weight < 0) { return 1; }
    }
    return (t->index && t->q) || is_nan_double(a) || a < 0 || a >= 1 || !fits(in->f, t->grad_scale);
}

static int is_param_wrong(const input *in) {
    const function *f = in->f;
    const call *c = &in->c;
    double e = c->epsilon;
    formula o = oracle_formula(f->name);
    if (has(f, PER_HEAD)) { return 0; }
    if (f->order && c->p->order != 1 && c->p->order != 2) { return 1; }
    for (int k = 0; f->order && k < c->p->order; ++k) {
        if (!fits(f, c->p->t_b[k]) || !fits(f, c->p->t_d[k]) || !fits(f, c->p->b[k]) || !fits(f, c->p->d[k])) {
            return 1;
        }
    }
    if (f->kind == METRIC) {
        return !is_finite_double(e) || (has(f, HAS_REFERENCE) && (!is_finite_double(c->reference) || c->reference < 0));
    }
    if (has(f, HAS_CUT)) {
        const mmax_truncation cut = c->own.cut;
        return !(cut.deviations >= 0 && cut.deviations <= DBL_MAX && cut.min_p >= 0 && cut.min_p < 1 &&
                 cut.top_p >= 0 && cut.top_p <= 1);
    }
    if (o == TOPK || has(f, HAS_INDEX)) { return c->own.k == 0; }
    if ((o == ENTMAX && !(e >= 1 && e <= 8)) || (o == HOURGLASS && !(e >= DBL_MIN && e <= DBL_MAX))) { return 1; }
    if (has(f, HAS_CAP)) { return !(e >= smallest_normal(f) && e <= largest(f)); }
    return has(f, HAS_EPSILON) && (!is_finite_double(e) || e < 0 || e > 1 || (f->kind == LOSS && e == 0));
}

/* Whether rows of two arrays of T with equal stride touch: rows, or blocks of `inner` rows, of which the last may have
 * fewer; or columns of rows of one block. */
static int rows_touch(const input *in, int a, int b) {
    size_t size = in->f->size, inner = in->c.s.inner > 1 ? in->c.s.inner : 1, rows = in->c.s.rows,
           in_block = rows < inner, width = (in_block ? rows : in->c.s.cols * inner) * size,
           step = (in_block ? inner : in->stride[a]) * size, absent = in_block ? 0 : (inner - rows % inner) % inner,
           n = in_block ? in->c.s.cols : (rows_of(in, a) + inner - 1) / inner,
           m = in_block ? in->c.s.cols : (rows_of(in, b) + inner - 1) / inner;
    for (size_t i = 0; i < n; ++i) {
        for (size_t j = 0; j < m; ++j) {
            uintptr_t p = (uintptr_t)in->at[a] + i * step, q = (uintptr_t)in->at[b] + j * step;
            if (p < q ? q - p < width - (i + 1 == n ? absent * size : 0)
                      : p - q < width - (j + 1 == m ? absent * size : 0)) {
                return 1;
            }
        }
    }
    return 0;
}

static int is_alias_wrong(const input *in) {
    for (int a = 0; a < BLOCKS; ++a) {
        for (int b = 0; b < BLOCKS; ++b) {
            uintptr_t p = (uintptr_t)in->at[a], q = (uintptr_t)in->at[b];
            int may_be = b != Q && rows_of(in, b) == in->c.s.rows;
            if (a == b || !is_output(a) || !is_of_rows(b) || !is_given(in, a) || !is_given(in, b)) { continue; }
            if (a == OUT && !has(in->f, HAS_INDEX) && in->stride[a] == in->stride[b]) {
                if (p == q ? !may_be : rows_touch(in, a, b)) { return 1; }
            } else if (p < q ? q - p < in->extent[a] : p - q < in->extent[b]) {
                return 1;
            }
        }
    }
    return 0;
}

/* For rows without entries only the values per row matter. */
static mmax_status status_without_entries(const input *in) {
    const function *f = in->f;
    int has_rows = f->kind == LOSS || (has_array(in, PER_ROW) && !has(f, PER_HEAD | HAS_GRADIENT) && in->c.per_row) ||
                   (has(f, HAS_INDEX) && (in->c.array[OUT] || in->c.own.index));
    if (!in->sound) { return has_rows ? MMAX_ERR_SHAPE : MMAX_OK; }
    for (size_t row = 0; f->kind == LOSS && row < in->c.s.rows; ++row) {
        if (is_class_wrong(in, row)) { return MMAX_ERR_TARGETS; }
    }
    return MMAX_OK;
}

static mmax_status expected_status(const input *in) {
    if (in->c.s.rows == 0) { return MMAX_OK; }
    if (in->c.s.cols == 0) { return status_without_entries(in); }
    return is_null_wrong(in)        ? MMAX_ERR_NULL
           : is_shape_wrong(in)     ? MMAX_ERR_SHAPE
           : is_param_wrong(in)     ? MMAX_ERR_PARAM
           : is_any_scale_wrong(in) ? MMAX_ERR_SCALE
           : is_attention_wrong(in) ? MMAX_ERR_ATTENTION
           : are_targets_wrong(in)  ? MMAX_ERR_TARGETS
           : is_alias_wrong(in)     ? MMAX_ERR_ALIAS
                                    : MMAX_OK;
}

/* ==== one row, on arrays of its own ==== */

typedef enum verdict {
    ORDINARY,
    HAS_NAN, /* NaN or +inf in an active entry, or a score that overflows to +inf */
    NEAR_END /* a score or a sigma near the end of the range: finite or NaN, both are right */
} verdict;

static struct {
    const function *f;
    oracle o;
    size_t n;
    double scale, slope, sink; /* sink: -inf where there is none */
    const void *bias;
    verdict verdict;
    int active[LONGEST_ROW + 1];
    int weightless, steep;    /* every active score overflows to -inf; a factor of gx overflows */
    int low[LONGEST_ROW + 1]; /* with a bias a score or a sigma may overflow to -inf, and is a mask then */
    score s[LONGEST_ROW + 1];
    wide doubt; /* how far a score with a bias may be off, as it is near the middle of two numbers */
    wide y[LONGEST_ROW + 1], got[LONGEST_ROW + 1], unit[LONGEST_ROW + 1];
} row;

/* scale x + slope bias */
static wide biased(double x, size_t i) {
    return (wide)row.scale * x + (row.bias ? (wide)row.slope * get(row.f, row.bias, i) : 0);
}

/* That, rounded to the type once. The header loses a little before: of floats what doubles round away, of doubles what the
 * rests of their products lose, which is more without fma. */
static double biased_score(double x, size_t i) {
    const mmax_isa isa = mmax_isa_active();
    const int has_fma = isa > MMAX_ISA_SSE2 && isa != MMAX_ISA_WASM128;
    const score p = product(row.scale, x), q = product(row.slope, get(row.f, row.bias, i));
    const score s = difference(p, negative(q));
    const wide lost = row.f->size == 4 ? 0x1p-52L : has_fma ? 0x1p-102L : 0x1p-76L;
    const wide slack = lost * (fabsl(p.hi) + fabsl(q.hi)) + 0x1p-1070L;
    double v[3]; /* at least, exactly, at most */
    for (int k = 0; k < 3; ++k) {
        const double high = (double)s.hi, low = (double)(s.hi - high + (s.lo + (k - 1) * slack));
        v[k] = row.f->size == 4 ? (double)(float)(high + low) : high + low;
    }
    row.doubt = fmaxl(row.doubt, v[2] - v[0]);
    return v[1];
}

/* Whether a score is not known that decides; exponentials of scores that cancel to nearly 0 do not see it. */
static int is_doubtful(void) {
    const int is_smooth = row.o.f == SOFTMAX || row.o.f == EVSOFTMAX || row.o.f == SIGSOFTMAX;
    return row.doubt > (is_smooth && row.f->kind <= LOGARITHM ? eps_of(row.f) / 16 : 0);
}

static int is_bad(const void *a, size_t i) { return is_nan_at(row.f, a, i) || is_special(row.f, a, i, PLUS_INF); }

/* Whether a slope of sigma overflows at a score of 0, and with it the gradient of masked entries. */
static int is_steep(const function *f, const mmax_multimax_params *p) {
    int steep = 0;
    for (int k = 0; p && k < p->order; ++k) {
        wide t = fmaxl(fabsl(p->t_b[k]), fabsl(p->t_d[k])) + 1, q = k ? fmaxl(fabsl(p->b[k]), fabsl(p->d[k])) + 1 : 1;
        steep = steep || t * q > largest(f) / 8;
    }
    return steep;
}

/* The factor of y - q in the gx of a loss. */
static double factor_of(const call *c) {
    double weight = c->t.weights ? *c->t.weights : 1;
    return weight * row.scale * (c->t.grad_scale == 0 ? 1 : c->t.grad_scale);
}

/* Backward functions: whether y of an entry says that it has a gradient. */
static int is_used_by_y(const function *f, const void *y, size_t i) {
    return f->kind == LOG_BACKWARD || has(f, HAS_CAP) ? !is_special(f, y, i, MINUS_INF) : magnitude_bits(f, y, i) != 0;
}

/* For an active entry: sparsehourglass has a gradient where y = 0, but uses no gy there. */
static int is_gy_used(const function *f, const call *c, size_t i) {
    return !has(f, MASKED_BY_X) || !has(f, HAS_GRADIENT) || is_used_by_y(f, c->array[Y], i);
}

/* Finds which entries count, their scores, and which rules apply. */
static void examine(const input *in, const call *c) {
    const function *f = in->f;
    size_t n = c->s.cols;
    const int logarithm = f->kind == LOGARITHM || f->kind == LOG_BACKWARD;
    oracle o = {oracle_formula(f->name), logarithm, c->p, c->epsilon, largest(f), NULL, 0};
    wide end = o.largest / 8;
    if (has(f, HAS_CUT | HAS_INDEX)) { o.f = TOPK; }
    if (o.f == TOPK) { o.epsilon = (double)c->own.k; }
    row.f = f;
    row.o = o;
    row.n = n;
    row.scale = c->s.scale == 0 ? 1 : c->s.scale;
    row.bias = c->s.attention && has(f, HAS_X) ? c->s.attention->bias : NULL;
    row.slope = c->s.attention && c->s.attention->slopes ? *c->s.attention->slopes : 1;
    row.sink = c->s.attention && c->s.attention->sinks ? *c->s.attention->sinks : -INFINITY;
    row.verdict = ORDINARY;
    row.doubt = 0;
    row.weightless = 1;
    row.steep = f->kind == LOSS && has(f, HAS_EPSILON) && c->epsilon < (f->size == 4 ? 1e-30 : 1e-270);
    row.steep = row.steep || (f->kind == LOSS && fabs(factor_of(c)) > row.o.largest / 8);
    row.steep = row.steep || is_steep(f, o.p);
    for (size_t i = 0; i < n; ++i) {
        int by_y = (f->kind == BACKWARD && !has(f, MASKED_BY_X)) || f->kind == LOG_BACKWARD;
        int in_x = !has(f, HAS_X) ||
                   !(is_special(f, c->array[X], i, MINUS_INF) || (row.bias && is_special(f, row.bias, i, MINUS_INF)));
        int in_y = !by_y || is_used_by_y(f, c->array[Y], i);
        row.active[i] = in_x && in_y;
        row.unit[i] = 1;
        row.low[i] =
            row.bias && !is_bad(c->array[X], i) && !is_bad(row.bias, i) &&
            !(fabsl((wide)row.scale * get(f, c->array[X], i)) + fabsl(biased(get(f, c->array[X], i), i)) <= end);
        row.s[i].hi = -INFINITY;
        row.s[i].lo = 0;
        if (!row.active[i]) {
            if (in_x && has(f, HAS_X) && is_bad(c->array[X], i)) {
                row.verdict = row.verdict == HAS_NAN ? HAS_NAN : NEAR_END; /* no forward function makes such a y */
            }
            continue;
        }
        if ((has(f, HAS_X) && is_bad(c->array[X], i)) || (has(f, HAS_Y) && is_bad(c->array[Y], i) && !row.low[i]) ||
            (has(f, HAS_GY) && is_bad(c->array[GY], i) && is_gy_used(f, c, i) && !row.low[i]) ||
            (row.bias && is_bad(row.bias, i))) {
            row.verdict = HAS_NAN;
        } else if (has(f, HAS_X)) {
            wide s, reach;
            double x = get(f, c->array[X], i);
            if (row.low[i] && f->kind != METRIC) {
                row.s[i] = oracle_score(&o, (double)biased(x, i), 1);
                row.verdict = row.verdict == HAS_NAN ? HAS_NAN : NEAR_END;
                continue;
            }
            row.s[i] = row.bias ? oracle_score(&o, biased_score(x, i), 1) : oracle_score(&o, x, row.scale);
            s = reach = row.s[i].hi;
            row.weightless = row.weightless && is_masked(row.s[i]);
            if (f->kind == METRIC) { continue; /* the scale has no part in it */ }
            if (o.p && !is_masked(row.s[i])) {
                (void)oracle_sigma(o.p, s, &row.unit[i]);
                reach = row.unit[i];
                row.low[i] = row.bias && reach > end;
                for (int k = 0; k < 4; ++k) {
                    sigma_term a = term_of(o.p, k, s);
                    row.steep = row.steep || (k % 2 && fabsl(a.coefficient) * a.q > end);
                }
            }
            if (s > o.largest * (1 + 1e-6) && row.verdict != HAS_NAN && f->kind != METRIC) {
                row.verdict = has(f, MASKED_BY_X) || has(f, HAS_GY) ? NEAR_END : HAS_NAN;
            } else if (!(fabsl(reach) * (f->kind == LOSS ? (wide)n : 1) <=
                         (has(f, HAS_GRADIENT) ? fminl(end, 1e200L) : end)) &&
                       row.verdict == ORDINARY) {
                row.verdict = NEAR_END;
            }
        }
    }
}

#define ROW_AT      "entry %u of %u, %s on %s: "
#define ROW_ARGS(i) (unsigned)(i), (unsigned)row.n, row.f->name, mmax_isa_name(mmax_isa_active())

/* Entries that do not count are exactly what the rule says; in a NaN row all others are the quiet NaN. */
static void check_special_entries(const call *c) {
    const function *f = row.f;
    const void *out = c->array[OUT];
    int nan = row.verdict == HAS_NAN;
    for (size_t i = 0; i < row.n; ++i) {
        if ((row.steep && f->kind > LOGARITHM) || row.low[i]) { continue; }
        if (!row.active[i]) {
            CHECK(get_bits(f, out, i) == masked_bits(f), ROW_AT "masked: %g", ROW_ARGS(i), get(f, out, i));
        } else if (has(f, ELEMENTWISE)) {
            int bad = (has(f, HAS_X) && is_bad(c->array[X], i)) || (has(f, HAS_Y) && is_bad(c->array[Y], i)) ||
                      (has(f, HAS_GY) && is_bad(c->array[GY], i)) || (row.bias && is_bad(row.bias, i));
            CHECK(!bad || is_special(f, out, i, QUIET_NAN), ROW_AT "%g in an entry with NaN", ROW_ARGS(i),
                  get(f, out, i));
        } else if (nan) {
            CHECK(is_special(f, out, i, QUIET_NAN), ROW_AT "%g in a NaN row", ROW_ARGS(i), get(f, out, i));
        }
        if (is_nan_at(f, out, i) && f->kind <= LOGARITHM && row.verdict != NEAR_END) {
            CHECK(is_special(f, out, i, QUIET_NAN), ROW_AT "not the quiet NaN", ROW_ARGS(i));
        }
        if (f->kind == FORWARD) {
            CHECK(!is_subnormal_at(f, out, i), ROW_AT "subnormal %g", ROW_ARGS(i), get(f, out, i));
        }
    }
}

static const void *sorted_entries;
static int by_x(const void *a, const void *b) {
    double p = get(row.f, sorted_entries, *(const size_t *)a), q = get(row.f, sorted_entries, *(const size_t *)b);
    return (p > q) - (p < q);
}

/* A larger x has no smaller y, but for rounding; equal ones have the same bits. */
static void check_order(const call *c) {
    static size_t at[LONGEST_ROW + 1];
    const function *f = row.f;
    size_t m = 0;
    double top = 0, eps = eps_of(f);
    for (size_t i = 0; i < row.n; ++i) {
        if (row.active[i]) {
            at[m++] = i;
            top = fmax(top, get(f, c->array[OUT], i));
        }
    }
    sorted_entries = c->array[X];
    qsort(at, m, sizeof *at, by_x);
    for (size_t k = 1; k < m; ++k) {
        double y = get(f, c->array[OUT], at[k - 1]), z = get(f, c->array[OUT], at[k]);
        int equal = get(f, c->array[X], at[k - 1]) == get(f, c->array[X], at[k]);
        int is_exact = row.o.f == SPARSEMAX || row.o.f == ENTMAX15 || row.o.f == HOURGLASS;
        double slack = is_exact ? 0 : 8 * eps * fabs(y);
        CHECK(z >= y - slack - smallest_normal(f), ROW_AT "%.17g after %.17g", ROW_ARGS(at[k]), z, y);
        CHECK(!equal || y == z, ROW_AT "%.17g and %.17g for equal entries", ROW_ARGS(at[k]), z, y);
    }
    (void)top;
}

/* Whether scores are known to more digits than the type has, and are what exponentials are of. */
static int is_plain(void) {
    int small = fabs(row.sink) <= 1e6 || row.sink < -DBL_MAX;
    for (size_t i = 0; i < row.n; ++i) { small = small && (is_masked(row.s[i]) || fabsl(row.s[i].hi) <= 1e6); }
    return small && row.o.f == SOFTMAX && !is_doubtful() && row.verdict == ORDINARY && ORACLE_SLACK <= 1;
}

static wide log_sum(void) {
    wide top = row.sink, sum = 0;
    for (size_t i = 0; i < row.n; ++i) { top = fmaxl(top, row.s[i].hi); }
    if (top == -INFINITY) { return top; }
    for (size_t i = 0; i < row.n; ++i) { sum += is_masked(row.s[i]) ? 0 : expl(row.s[i].hi - top + row.s[i].lo); }
    return top + logl(sum + expl(row.sink - top));
}

static void check_lse(double lse) {
    wide expected = is_plain() ? log_sum() : 0;
    if (row.verdict == HAS_NAN) {
        CHECK(is_nan_double(lse), ROW_AT "log-sum-exp %g of a NaN row", ROW_ARGS(0), lse);
    } else if (expected == -INFINITY) {
        CHECK(lse < -DBL_MAX, ROW_AT "log-sum-exp %g of nothing", ROW_ARGS(0), lse);
    } else if (row.verdict == ORDINARY) {
        CHECK(!is_nan_double(lse), ROW_AT "log-sum-exp is NaN", ROW_ARGS(0));
        CHECK(!is_plain() || fabsl(lse - expected) <= (row.f->size == 4 ? 2e-7 : 4e-16) * fmaxl(1, fabsl(expected)),
              ROW_AT "log-sum-exp %.17g, not %.17Lg", ROW_ARGS(0), lse, expected);
    }
}

/* The sum and the range. */
static void check_sum(const call *c) {
    const function *f = row.f;
    double eps = eps_of(f), low = f->kind == FORWARD && row.o.f == TANHMAX ? -1 - 16 * eps : 0, high = 1 + 16 * eps;
    wide sum, slack = f->size == 4 ? 1e-6 : 1e-14;
    size_t active = 0;
    if (f->kind == LOGARITHM) {
        low = -INFINITY;
        high = 16 * eps;
        slack = 200 * eps;
    }
    for (size_t i = 0; i < row.n; ++i) {
        double y = get(f, c->array[OUT], i);
        row.got[i] = 0;
        if (row.active[i]) {
            CHECK(y >= low && y <= high, ROW_AT "%.17g is out of range", ROW_ARGS(i), y);
            row.got[i] = f->kind == LOGARITHM ? expl(y) : fabs(y);
            ++active;
        }
    }
    sum = oracle_sum(row.got, row.n);
    if (row.o.f == TANHMAX) {
        CHECK(sum <= 1 + slack, ROW_AT "magnitudes add up to 1 %+Lg", ROW_ARGS(row.n), sum - 1);
    } else if (row.sink > -INFINITY) {
        wide rest = is_plain() ? expl(row.sink - log_sum()) : 0;
        CHECK(sum <= 1 + slack && (!is_plain() || fabsl(sum + rest - 1) <= slack),
              ROW_AT "the sum is %Lg, of the sink %Lg", ROW_ARGS(row.n), sum, rest);
    } else if (active && !(sum == 0 && (row.weightless || row.verdict == NEAR_END))) {
        CHECK(fabsl(sum - 1) <= slack, ROW_AT "the sum is 1 %+Lg", ROW_ARGS(row.n), sum - 1);
    }
}

/* How many entries a truncation may keep; how many are active. Deviations below the normal numbers may count as 0. */
static size_t kept_of(size_t order[], const call *c, size_t *least, size_t *most) {
    const size_t active = oracle_order(order, row.s, row.n);
    *least = *most = 0;
    if (active) {
        const wide range = row.s[order[0]].hi - row.s[order[active - 1]].hi;
        oracle_truncation(least, most, &c->own.cut, row.s, order, active, row.f->size == 4 ? 1e-6L : 1e-13L);
        if (range < 64 * row.scale * (wide)active * smallest_normal(row.f)) { *least = 1; }
    }
    return active;
}

/* How many entries y keeps, some of which may weigh nothing. */
static size_t kept_by(const call *c) {
    static size_t order[LONGEST_ROW + 1];
    size_t least, most, kept = kept_of(order, c, &least, &most);
    while (kept > 0 && get_bits(row.f, c->array[OUT], order[kept - 1]) == 0) { --kept; }
    CHECK(kept <= most, ROW_AT "%u are kept, not %u to %u", ROW_ARGS(0), (unsigned)kept, (unsigned)least,
          (unsigned)most);
    return kept < least ? least : kept;
}

/* The values themselves, in ULP as the header states them, where sigma does not take part. */
static void check_values(const call *c) {
    static wide observed[LONGEST_ROW + 1];
    static const double bounds[FORMULAS] = {/* as the header states them */
                                            [SOFTMAX] = 5, [SPARSEMAX] = 6, [ENTMAX15] = 12,  [EVSOFTMAX] = 6,
                                            [TANHMAX] = 8, [TOPK] = 6,      [SIGSOFTMAX] = 7, [HOURGLASS] = 6};
    const function *f = row.f;
    double eps = eps_of(f), least = smallest_normal(f), bound = row.o.logarithm ? 4 : bounds[row.o.f];
    wide top = 0, size = 0, rest = 0, more = 0;
    if (row.o.p || is_doubtful() || row.sink > -INFINITY || ORACLE_SLACK > 1 ||
        (row.o.f == EVSOFTMAX && row.o.epsilon > 0.25)) {
        return; /* such an epsilon hides which entries were found below the mean */
    }
    for (size_t i = 0; i < row.n; ++i) {
        observed[i] = get(f, c->array[OUT], i);
        size = is_masked(row.s[i]) ? size : fmaxl(size, fabsl(row.s[i].hi));
        rest = fmaxl(rest, fabsl(row.s[i].lo));
    }
    if (rest > 1e-10) { return; /* exp_of() takes a rest for a relative error */ }
    if (row.o.f == HOURGLASS && oracle_hourglass(&row.o, row.s, row.n).factor * row.scale > largest(f) / 32) {
        return; /* such an a is limited */
    }
    if (has(f, HAS_CUT)) { row.o.epsilon = (double)kept_by(c); }
    row.o.observed = row.o.f == EVSOFTMAX ? observed : NULL;
    row.o.near = 8 * eps * (size + least * fmaxl(1, row.scale)) + row.doubt;
    oracle_forward(&row.o, row.y, row.s, row.n);
    row.o.observed = NULL;
    for (size_t i = 0; i < row.n; ++i) {
        top = fmaxl(top, row.y[i]);
        more += row.o.f == HOURGLASS && !is_masked(row.s[i]) ? 4 * eps * fabsl(row.s[i].hi) : 0;
    }
    more /= more > 0 ? oracle_hourglass(&row.o, row.s, row.n).size : 1;
    for (size_t i = 0; i < row.n; ++i) {
        wide y = row.y[i], error = fabsl(observed[i] - y), in_ulp;
        if (is_masked(row.s[i]) || error == 0 || (fabsl(y) < 1.03 * least && fabsl(observed[i]) < 1.03 * least)) {
            continue;
        }
        in_ulp = ulp(row.o.logarithm                                                       ? fmaxl(fabsl(y), 1)
                     : row.o.f == SPARSEMAX || row.o.f == ENTMAX15 || row.o.f == HOURGLASS ? top
                                                                                           : y,
                     eps, least);
        more = row.o.f != ENTMAX ? more : y > 1e-6 ? oracle_entmax_bound(row.o.epsilon, eps, y) * y : 1e-6;
        in_ulp = fmaxl(error - more - 2 * row.doubt * (row.o.logarithm ? 1 : fabsl(y)), 0) / in_ulp;
        CHECK(in_ulp <= bound, ROW_AT "%.17Lg, not %.17Lg: %.2Lf ULP, bound %g", ROW_ARGS(i), observed[i], y, in_ulp,
              bound);
    }
}

static void check_forward(const call *c) {
    const function *f = row.f;
    size_t nans = 0, actives = 0;
    check_special_entries(c);
    for (size_t i = 0; i < row.n; ++i) {
        actives += row.active[i] != 0;
        nans += row.active[i] && is_nan_at(f, c->array[OUT], i);
    }
    for (size_t i = 0; row.o.f == SEGLU && row.scale >= smallest_normal(f) && !is_doubtful() && i < row.n; ++i) {
        if (row.active[i] && !is_bad(c->array[X], i) && !is_masked(row.s[i]) && !row.low[i] &&
            row.unit[i] <= row.o.largest / 8) {
            double y = get(f, c->array[OUT], i);
            wide sigma = has(f, HAS_CAP) ? c->epsilon * tanhl(row.s[i].hi / c->epsilon)
                                         : oracle_sigma(row.o.p, row.s[i].hi, NULL);
            wide near = has(f, HAS_CAP) ? 8 * fabsl(sigma) : 4 * row.unit[i];
            CHECK(fabsl(y - sigma) <= eps_of(f) * near + smallest_normal(f), ROW_AT "%.17g, not %.17Lg", ROW_ARGS(i), y,
                  sigma);
        }
    }
    if (has(f, HAS_LSE) && row.verdict == HAS_NAN) { check_lse(*c->per_row); }
    if (row.o.f == SEGLU || row.verdict == HAS_NAN || (row.verdict == NEAR_END && nans == actives)) { return; }
    if (row.verdict == NEAR_END && nans) { return; }
    CHECK(nans == 0, ROW_AT "%u NaNs among %u entries", ROW_ARGS(row.n), (unsigned)nans, (unsigned)actives);
    if (nans) { return; }
    check_sum(c);
    if (has(f, HAS_LSE)) { check_lse(*c->per_row); }
    if (!row.o.p && !row.bias && row.o.f != TANHMAX && row.o.f != TOPK) { check_order(c); }
    if (row.verdict == ORDINARY) { check_values(c); }
}

/* exp(s - top), also where scores are huge */
static wide exp_from(size_t i, size_t top) {
    const score d = difference(row.s[i], row.s[top]);
    return is_masked(row.s[i]) ? 0 : expl(d.hi + d.lo);
}

/* A router: no entry that is left has a larger value than one that is chosen, but for rounding; and the weights. */
static void check_routed(const call *c) {
    static wide key[LONGEST_ROW + 1], near[LONGEST_ROW + 1], gate[LONGEST_ROW + 1];
    static int weighed[LONGEST_ROW + 1];
    const function *f = row.f;
    const mmax_router *const r = &c->own.router;
    size_t left = 0, top = 0;
    wide all = 0;
    for (size_t i = 0; i < row.n; ++i) {
        weighed[i] = r->gate == MMAX_GATE_SOFTMAX && !is_masked(row.s[i]);
        top = !is_masked(row.s[i]) && (is_masked(row.s[top]) || row.s[i].hi > row.s[top].hi) ? i : top;
    }
    for (size_t i = 0; i < row.n; ++i) { row.got[i] = exp_from(i, top); }
    all = oracle_sum(row.got, row.n);
    for (size_t i = 0; i < row.n; ++i) {
        const double bias = r->bias ? get(f, r->bias, i) : 0;
        const int can_be = !is_masked(row.s[i]) && !(r->bias && is_special(f, r->bias, i, MINUS_INF));
        if (row.active[i] && r->bias && is_bad(r->bias, i)) { return; }
        if (can_be && fabsl(row.s[i].hi) + fabs(bias) > largest(f) / 8) { return; }
        gate[i] = r->gate == MMAX_GATE_CHOSEN    ? row.s[i].hi
                  : r->gate == MMAX_GATE_SOFTMAX ? row.got[i] / all
                                                 : 1 / (1 + expl(-row.s[i].hi - row.s[i].lo));
        key[i] = can_be ? gate[i] + bias : -INFINITY;
        near[i] = can_be ? 8 * eps_of(f) * (fabsl(gate[i]) + fabs(bias)) + smallest_normal(f) : 0;
        left += can_be != 0;
    }
    for (size_t j = 0; j < c->own.k && left; ++j, --left) {
        const size_t at = c->own.index[j];
        CHECK(at < row.n && key[at] > -INFINITY, ROW_AT "is at place %u", ROW_ARGS(at), (unsigned)j);
        if (at >= row.n) { return; }
        for (size_t i = 0; i < row.n; ++i) {
            CHECK(key[i] <= key[at] + near[i] + near[at], ROW_AT "%.17Lg at place %u, not %.17Lg", ROW_ARGS(at),
                  key[at], (unsigned)j, key[i]);
        }
        key[at] = -INFINITY;
        weighed[at] = 1;
    }
    for (size_t i = 0; i < row.n; ++i) { top = weighed[i] && (!weighed[top] || row.s[i].hi > row.s[top].hi) ? i : top; }
    for (size_t i = 0; i < row.n; ++i) {
        row.got[i] = !weighed[i] ? 0 : r->gate >= MMAX_GATE_SIGMOID ? gate[i] : exp_from(i, top);
    }
    all = r->gate == MMAX_GATE_SIGMOID ? 1 : oracle_sum(row.got, row.n);
    if (r->gate == MMAX_GATE_SIGMOID_CHOSEN && all < 1e-30) { return; }
    for (size_t j = 0; j < c->own.k; ++j) {
        const size_t at = c->own.index[j];
        const wide y = at < row.n ? row.got[at] / all : 0, least = smallest_normal(f);
        CHECK(at < row.n || at == UINT32_MAX, ROW_AT "at place %u", ROW_ARGS(at), (unsigned)j);
        CHECK(fabsl(get(f, c->array[OUT], j) - y) <= 9 * ulp(y, eps_of(f), (double)least) + (y < 1.03L * least ? y : 0),
              ROW_AT "%.17g at place %u, not %.17Lg", ROW_ARGS(at), get(f, c->array[OUT], j), (unsigned)j, y);
    }
}

/* sample: one of the entries that a truncation keeps, with its weight among all */
static void check_draw(const call *c) {
    static size_t order[LONGEST_ROW + 1];
    const size_t at = c->own.index[0];
    size_t least, most, active, j = 0;
    const double log = *c->per_row;
    if (row.verdict == HAS_NAN && !row.bias) {
        CHECK(at == UINT32_MAX && is_nan_double(log), ROW_AT "%g in a NaN row", ROW_ARGS(at), log);
    }
    if (row.verdict != ORDINARY || is_doubtful()) { return; }
    active = kept_of(order, c, &least, &most);
    if (active == 0) {
        CHECK(at == UINT32_MAX && log == -INFINITY, ROW_AT "%g in an empty row", ROW_ARGS(at), log);
        return;
    }
    while (j < most && order[j] != at) { ++j; }
    CHECK(j < most, ROW_AT "is drawn, not one of %u", ROW_ARGS(at), (unsigned)most);
    if (at < row.n) {
        const score own = difference(row.s[at], row.s[order[0]]);
        wide sum = 0, y;
        for (size_t i = active; i-- > 0;) { sum += exp_from(order[i], order[0]); }
        y = own.hi + own.lo - logl(sum);
        CHECK(fabsl(log - y) <= 8 * eps_of(row.f) * (1 + fabsl(y)), ROW_AT "%.17g, not %.17Lg", ROW_ARGS(at), log, y);
    }
}

/* route: in a NaN row the first active entries; of plain rows the first of the order; else by the rules above */
static void check_selection(const call *c) {
    static size_t order[LONGEST_ROW + 1];
    const mmax_router *const r = &c->own.router;
    const size_t active = oracle_order(order, row.s, row.n), k = c->own.k < active ? c->own.k : active;
    if (row.verdict == HAS_NAN && !row.bias && !r->bias) { /* with a bias a score may overflow to a mask */
        size_t j = 0;
        for (size_t i = 0; i < row.n && j < c->own.k; ++i) {
            if (!row.active[i]) { continue; }
            CHECK(c->own.index[j] == i && is_special(row.f, c->array[OUT], j, QUIET_NAN),
                  ROW_AT "place %u of a NaN row", ROW_ARGS(i), (unsigned)j);
            ++j;
        }
    }
    if (row.verdict != ORDINARY || is_doubtful() || r->groups > 1) { return; }
    for (size_t j = 0; j < c->own.k && r->gate == MMAX_GATE_CHOSEN && !r->bias; ++j) {
        const uint32_t at = j < k ? (uint32_t)order[j] : UINT32_MAX;
        CHECK(c->own.index[j] == at, ROW_AT "%u at place %u", ROW_ARGS(at), c->own.index[j], (unsigned)j);
    }
    check_routed(c);
}

/* gumbel: -log(-log U) of the smallest and the largest U */
static void check_noise(const call *c) {
    const double low = row.f->size == 4 ? -2.86 : -3.63, high = row.f->size == 4 ? 17.33 : 37.43;
    for (size_t i = 0; i < row.n; ++i) {
        double y = get(row.f, c->array[OUT], i);
        CHECK(y >= low && y <= high, ROW_AT "%g", ROW_ARGS(i), y);
    }
}

/* With the genuine y: the gradient, also that of the parameter; for soft caps a bound. */
static void check_backward(const input *in, const call *c) {
    static wide gx[LONGEST_ROW + 1], gy[LONGEST_ROW + 1], rest[LONGEST_ROW + 1];
    const function *f = row.f;
    double high = 0, bound, near, eps = eps_of(f), lowest = 0, steepest = 0;
    wide tiny; /* a factor below the smallest normal number may count as 0 */
    wide gp[8] = {0}, gp_unit[8] = {0};
    check_special_entries(c);
    CHECK(row.verdict != HAS_NAN || !has(f, HAS_GRADIENT) || is_nan_double(*c->per_row), ROW_AT "gradient %g",
          ROW_ARGS(0), *c->per_row);
    if (!in->genuine || row.verdict != ORDINARY || has(f, HAS_GP) || is_doubtful()) { return; }
    for (size_t i = 0; i < row.n; ++i) {
        if (!has(f, HAS_X)) { row.s[i].hi = row.active[i] ? 0 : -INFINITY; }
        row.y[i] = get(f, c->array[Y], i);
        gy[i] = row.active[i] && is_gy_used(f, c, i) ? get(f, c->array[GY], i) : 0;
        high = fmax(high, fabs((double)gy[i]));
        lowest = row.o.f == ENTMAX && row.y[i] > 0 ? fmin(lowest, log((double)row.y[i])) : lowest;
        steepest = row.active[i] ? fmax(steepest, fabs((double)row.s[i].hi)) : steepest;
    }
    bound = row.scale * high * 2 * (1 + 64 * eps);
    if (!(bound * (double)row.n <= largest(f) / 64) || high * (double)row.n > largest(f) / 64) { return; }
    near = (row.o.f == TANHMAX ? 64 + steepest : 16) * eps +
           (has(f, HAS_GRADIENT) ? 4 * ((double)row.n - lowest * row.o.epsilon) * DBL_EPSILON
                                 : 0); /* plain sums, logarithms */
    tiny = smallest_normal(f) * (1 + 4 * (wide)row.n * high) * (1 + row.scale);
    if (!has(f, ELEMENTWISE)) {
        oracle_backward(&row.o, gx, row.unit, gp, gp_unit, gy, row.y, row.s, row.n, row.scale, rest);
    }
    for (size_t i = 0; i < row.n; ++i) {
        const wide got = get(f, c->array[OUT], i);
        if (has(f, ELEMENTWISE)) {
            CHECK(fabsl(got) <= bound + smallest_normal(f), ROW_AT "%Lg is out of the range of %g", ROW_ARGS(i), got,
                  bound);
        } else {
            CHECK(row.unit[i] > largest(f) / 64 || fabsl(got - gx[i]) <= near * row.unit[i] + tiny,
                  ROW_AT "gx is %.9Lg, not %.9Lg, of terms up to %Lg", ROW_ARGS(i), got, gx[i], row.unit[i]);
        }
    }
    if (has(f, HAS_GRADIENT) && lowest * (row.o.epsilon - 1) > -600 && gp_unit[0] < DBL_MAX / 64) {
        CHECK(fabsl(*c->per_row - gp[0]) <= 4 * near * gp_unit[0] + smallest_normal(f),
              ROW_AT "the parameter's gradient is %.9g, not %.9Lg, of terms up to %Lg", ROW_ARGS(0), *c->per_row, gp[0],
              gp_unit[0]);
    }
}

static void check_loss(const input *in, const call *c) {
    const function *f = row.f;
    double loss = *c->per_row, factor = factor_of(c);
    int32_t target = c->t.index ? c->t.index[0] : 0;
    int nan = is_nan_double(loss), met = c->t.index && target >= 0 ? row.active[target] : 1; /* no target is masked */
    wide sum, total = 0, near = f->size == 4 ? 2e-6 : 2e-14;
    for (size_t i = 0; c->t.q && i < row.n; ++i) {
        double q = get(f, c->t.q, i);
        met = met && (row.active[i] || !(q > 0));
        total += q > 0 ? q : 0;
        if (row.active[i] && !(q >= 0 && q <= row.o.largest)) { row.verdict = HAS_NAN; }
    }
    near += c->t.q ? 2 * fabsl(total - 1) : 0;
    if (row.verdict != HAS_NAN && !(total <= row.o.largest)) { return; } /* its sum overflows */
    if (target < 0 || (c->t.weights && *c->t.weights == 0)) {
        CHECK(bits_of(loss) == 0, ROW_AT "an ignored row has loss %g", ROW_ARGS(0), loss);
        for (size_t i = 0; i < row.n; ++i) {
            CHECK(get_bits(f, c->array[OUT], i) == 0, ROW_AT "an ignored row has a gradient", ROW_ARGS(i));
        }
        return;
    }
    check_special_entries(c);
    if (row.verdict == HAS_NAN) {
        CHECK(bits_of(loss) == special_bits(function_named("softmax_f64"), QUIET_NAN), ROW_AT "loss %g in a NaN row",
              ROW_ARGS(0), loss);
        return;
    }
    if (row.verdict == NEAR_END) {
        CHECK(nan || loss >= 0, ROW_AT "loss %g", ROW_ARGS(0), loss);
        return;
    }
    CHECK(!nan && loss >= 0, ROW_AT "loss %g", ROW_ARGS((size_t)target), loss);
    CHECK((loss > DBL_MAX) == !met, ROW_AT "loss %g", ROW_ARGS((size_t)target), loss);
    /* A factor so small that factor / sum has no normal number rounds every y * factor to 0. */
    if (row.o.p || row.steep || !(fabs(factor) <= largest(f) / 4) || fabs(factor) < smallest_normal(f) * 0x1p90) {
        return;
    }
    for (size_t i = 0; i < row.n; ++i) {
        double g = get(f, c->array[OUT], i);
        row.got[i] = g;
        CHECK(fabs(g) <= fabs(factor) * (1 + (double)near + 16 * eps_of(f)) + smallest_normal(f),
              ROW_AT "gx %g beyond %g", ROW_ARGS(i), g, factor);
        if (!c->t.q && c->t.label_smoothing == 0 && met && row.active[i]) {
            CHECK((i == (size_t)target ? -1 : 1) * g * (factor < 0 ? -1 : 1) >= 0, ROW_AT "gx %g has the wrong sign",
                  ROW_ARGS(i), g);
        }
    }
    sum = fabsl(oracle_sum(row.got, row.n));
    CHECK(!met || sum <= near * fabs(factor) + (wide)row.n * smallest_normal(f), ROW_AT "gx adds up to %Lg",
          ROW_ARGS(row.n), sum);
    (void)in;
}

static void check_metric(const call *c) {
    const function *f = row.f;
    double value = *c->per_row;
    wide expected;
    size_t count;
    int plain = 1;
    static wide x[LONGEST_ROW + 1];
    if (row.verdict == HAS_NAN) {
        CHECK(is_nan_double(value), ROW_AT "%g in a NaN row", ROW_ARGS(0), value);
        return;
    }
    for (size_t i = 0; i < row.n; ++i) {
        row.y[i] = row.active[i] ? get(f, c->array[Y], i) : 0;
        x[i] = row.active[i] ? get(f, c->array[X], i) : -INFINITY;
        plain = plain && row.y[i] >= 0 && row.y[i] <= 1;
    }
    if (has(f, HAS_REFERENCE)) {
        plain = plain && c->reference >= smallest_normal(f);
        expected = row.n ? oracle_sparsity(row.y, x, row.n, c->epsilon, c->reference, &count) : 0;
    } else {
        expected = row.n ? oracle_multimodality(row.y, x, row.n, c->epsilon, &count) : 0;
    }
    if (row.n == 0 || count == 0) {
        CHECK(is_nan_double(value), ROW_AT "%g of no entry", ROW_ARGS(0), value);
    } else if (plain) {
        CHECK(fabsl(value - expected) <= 4 * eps_of(f), ROW_AT "%.17g, not %.17Lg", ROW_ARGS(0), value, expected);
    }
}

/* The gradient of the trainable scale or sink. */
static void check_per_head(const call *c) {
    const function *f = row.f;
    wide sum = 0, reach = 0, dot = 0, size = 0, expected;
    for (size_t i = 0; i < row.n; ++i) {
        double y = has(f, HAS_Y) ? get(f, c->array[Y], i) : get(f, c->array[X], i), gy = get(f, c->array[GY], i);
        if (!row.active[i] || (has(f, HAS_Y) && y == 0)) { continue; }
        sum += y;
        reach += fabs(y);
        dot += (wide)y * gy;
        size += fabsl((wide)y * gy);
    }
    expected = has(f, HAS_Y) ? -(1 - sum) * dot : dot / row.scale;
    size *= has(f, HAS_Y) ? 1 + fabsl(sum) : 1 / row.scale;
    CHECK(row.verdict != ORDINARY || !(size + reach < DBL_MAX / 64) ||
              fabsl(*c->per_row - expected) <= 1e-14 * size + DBL_MIN,
          ROW_AT "%.17g, not %.17Lg", ROW_ARGS(0), *c->per_row, expected);
}

static void check_row(const input *in, const call *c) {
    examine(in, c);
    if (has(in->f, PER_HEAD)) {
        check_per_head(c);
        return;
    }
    if (has(in->f, HAS_INDEX | BY_PLACE)) {
        draws(in->f) ? check_draw(c) : has(in->f, HAS_INDEX) ? check_selection(c) : check_noise(c);
        return;
    }
    switch (in->f->kind) {
    case FORWARD:
    case LOGARITHM: check_forward(c); break;
    case BACKWARD:
    case LOG_BACKWARD: check_backward(in, c); break;
    case LOSS: check_loss(in, c); break;
    default: check_metric(c); break;
    }
}

#endif /* RULES_H */
