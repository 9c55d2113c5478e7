/*
 * rules.h: what the header says of any call: which status it returns, and what holds for every row of a result.
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
    int outputs = 0, optional = f->kind == LOSS || has(f, HAS_GP);
    for (int a = 0; a < BLOCKS; ++a) {
        int output = a == OUT || a >= ARRAYS;
        outputs += output && has_array(f, a) && is_given(in, a);
        if (has_array(f, a) && !is_given(in, a) && !(output && optional)) { return 1; }
    }
    return outputs == 0 || (f->order && !c->p) || (f->kind == LOSS && !c->t.index);
}

static int is_shape_wrong(const input *in) {
    const mmax_shape *s = &in->c.s;
    if (!in->sound) { return 1; }
    for (size_t row = 0; row < s->rows; ++row) {
        if (length_of(s, row) > s->cols) { return 1; }
    }
    return 0;
}

static int is_param_wrong(const input *in) {
    const function *f = in->f;
    const call *c = &in->c;
    double scale = c->s.scale, a = c->t.label_smoothing, e = c->epsilon;
    if (scale != 0 && !(scale >= ldexp(1, -60) && scale <= ldexp(1, 60))) { return 1; }
    if (f->order && c->p->order != 1 && c->p->order != 2) { return 1; }
    for (int k = 0; f->order && k < c->p->order; ++k) {
        if (!fits(f, c->p->t_b[k]) || !fits(f, c->p->t_d[k]) || !fits(f, c->p->b[k]) || !fits(f, c->p->d[k])) {
            return 1;
        }
    }
    if (f->kind == METRIC) {
        return !is_finite_double(e) || (has(f, HAS_REFERENCE) && (!is_finite_double(c->reference) || c->reference < 0));
    }
    if (has(f, HAS_EPSILON) && (!is_finite_double(e) || e < 0 || e > 1 || (f->kind == LOSS && e == 0))) { return 1; }
    if (f->kind != LOSS) { return 0; }
    for (size_t row = 0; row < c->s.rows; ++row) {
        if (c->t.index[row] >= 0 && (size_t)c->t.index[row] >= length_of(&c->s, row)) { return 1; }
    }
    return is_nan_double(a) || a < 0 || a >= 1 || !is_finite_double(c->t.grad_scale);
}

/* Whether rows of two arrays of T with equal stride touch. */
static int rows_touch(const input *in, int a, int b) {
    size_t size = in->f->size, width = in->c.s.cols * size;
    for (size_t i = 0; i < in->c.s.rows; ++i) {
        for (size_t j = 0; j < in->c.s.rows; ++j) {
            uintptr_t p = (uintptr_t)in->at[a] + i * in->stride[a] * size,
                      q = (uintptr_t)in->at[b] + j * in->stride[b] * size;
            if (p < q ? q - p < width : p - q < width) { return 1; }
        }
    }
    return 0;
}

static int is_alias_wrong(const input *in) {
    for (int a = 0; a < BLOCKS; ++a) {
        for (int b = 0; b < ARRAYS; ++b) {
            uintptr_t p = (uintptr_t)in->at[a], q = (uintptr_t)in->at[b];
            if (a == b || (a > OUT && a < ARRAYS) || !is_given(in, a) || !is_given(in, b)) { continue; }
            if (a == OUT && in->stride[a] == in->stride[b]) {
                if (p != q && rows_touch(in, a, b)) { return 1; }
            } else if (p < q ? q - p < in->extent[a] : p - q < in->extent[b]) {
                return 1;
            }
        }
    }
    return 0;
}

static mmax_status expected_status(const input *in) {
    if (in->c.s.rows == 0 || in->c.s.cols == 0) { return MMAX_OK; }
    return is_null_wrong(in)    ? MMAX_ERR_NULL
           : is_shape_wrong(in) ? MMAX_ERR_SHAPE
           : is_param_wrong(in) ? MMAX_ERR_PARAM
           : is_alias_wrong(in) ? MMAX_ERR_ALIAS
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
    double scale;
    verdict verdict;
    int active[LONGEST_ROW + 1];
    int weightless, steep; /* every active score overflows to -inf; a factor of gx overflows */
    score s[LONGEST_ROW + 1];
    wide y[LONGEST_ROW + 1], got[LONGEST_ROW + 1], unit[LONGEST_ROW + 1];
} row;

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

/* Which entries count, their scores, and what they promise. */
static void examine(const input *in, const call *c) {
    const function *f = in->f;
    size_t n = c->s.cols;
    oracle o = {oracle_formula(f->name), f->kind == LOGARITHM, c->p, c->epsilon, largest(f), NULL, 0};
    wide end = o.largest / 8;
    row.f = f;
    row.o = o;
    row.n = n;
    row.scale = c->s.scale == 0 ? 1 : c->s.scale;
    row.verdict = ORDINARY;
    row.weightless = 1;
    row.steep = f->kind == LOSS && has(f, HAS_EPSILON) && c->epsilon < (f->size == 4 ? 1e-30 : 1e-270);
    row.steep = row.steep || (f->kind == LOSS && fabs(c->t.grad_scale) * row.scale > row.o.largest / 8);
    row.steep = row.steep || is_steep(f, o.p);
    for (size_t i = 0; i < n; ++i) {
        int by_y = (f->kind == BACKWARD && !has(f, MASKED_BY_X)) || f->kind == LOG_BACKWARD;
        int in_x = !has(f, HAS_X) || !is_special(f, c->array[X], i, MINUS_INF);
        int in_y = !by_y || (f->kind == BACKWARD ? magnitude_bits(f, c->array[Y], i) != 0
                                                 : !is_special(f, c->array[Y], i, MINUS_INF));
        row.active[i] = in_x && in_y;
        row.unit[i] = 1;
        row.s[i].hi = -INFINITY;
        row.s[i].lo = 0;
        if (!row.active[i]) {
            if (in_x && has(f, HAS_X) && is_bad(c->array[X], i)) {
                row.verdict = row.verdict == HAS_NAN ? HAS_NAN : NEAR_END; /* no forward function makes such a y */
            }
            continue;
        }
        if ((has(f, HAS_X) && is_bad(c->array[X], i)) || (has(f, HAS_Y) && is_bad(c->array[Y], i)) ||
            (has(f, HAS_GY) && is_bad(c->array[GY], i))) {
            row.verdict = HAS_NAN;
        } else if (has(f, HAS_X)) {
            wide s, reach;
            row.s[i] = oracle_score(&o, get(f, c->array[X], i), row.scale);
            s = reach = row.s[i].hi;
            row.weightless = row.weightless && is_masked(row.s[i]);
            if (f->kind == METRIC) { continue; /* the scale has no part in it */ }
            if (o.p && !is_masked(row.s[i])) {
                (void)oracle_sigma(o.p, s, &row.unit[i]);
                reach = row.unit[i];
                for (int k = 0; k < 4; ++k) {
                    sigma_term a = term_of(o.p, k, s);
                    row.steep = row.steep || (k % 2 && fabsl(a.coefficient) * a.q > end);
                }
            }
            if (s > o.largest * (1 + 1e-6) && row.verdict != HAS_NAN && f->kind != METRIC) {
                row.verdict = has(f, MASKED_BY_X) || has(f, HAS_GY) ? NEAR_END : HAS_NAN;
            } else if (!(fabsl(reach) * (f->kind == LOSS ? (wide)n : 1) <= end) && row.verdict == ORDINARY) {
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
        if (row.steep && f->kind > LOGARITHM) { continue; }
        if (!row.active[i]) {
            CHECK(get_bits(f, out, i) == masked_bits(f), ROW_AT "masked: %g", ROW_ARGS(i), get(f, out, i));
        } else if (has(f, ELEMENTWISE)) {
            int bad = is_bad(c->array[X], i) || (has(f, HAS_GY) && is_bad(c->array[GY], i));
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
        double slack = row.o.f == SPARSEMAX || row.o.f == ENTMAX15 ? 0
                       : f->kind == LOGARITHM                      ? 8 * eps * fabs(y)
                                                                   : 8 * eps * fabs(y);
        CHECK(z >= y - slack - smallest_normal(f), ROW_AT "%.17g after %.17g", ROW_ARGS(at[k]), z, y);
        CHECK(!equal || y == z, ROW_AT "%.17g and %.17g for equal entries", ROW_ARGS(at[k]), z, y);
    }
    (void)top;
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
    } else if (active && !(sum == 0 && (row.weightless || row.verdict == NEAR_END))) {
        CHECK(fabsl(sum - 1) <= slack, ROW_AT "the sum is 1 %+Lg", ROW_ARGS(row.n), sum - 1);
    }
}

/* The values themselves, in ULP as the header states them, where sigma does not take part. */
static void check_values(const call *c) {
    static wide observed[LONGEST_ROW + 1];
    static const double bounds[FORMULAS] = {5, 0, 6, 6, 6, 8, 0}; /* as the header states them */
    const function *f = row.f;
    double eps = eps_of(f), least = smallest_normal(f), bound = row.o.logarithm ? 4 : bounds[row.o.f];
    wide top = 0, size = 0, rest = 0;
    if (row.o.p || ORACLE_SLACK > 1 || (row.o.f == EVSOFTMAX && row.o.epsilon > 0.25)) {
        return; /* such an epsilon hides which entries were found below the mean */
    }
    for (size_t i = 0; i < row.n; ++i) {
        observed[i] = get(f, c->array[OUT], i);
        size = is_masked(row.s[i]) ? size : fmaxl(size, fabsl(row.s[i].hi));
        rest = fmaxl(rest, fabsl(row.s[i].lo));
    }
    if (rest > 1e-10) { return; /* exp_of() takes a rest for a relative error */ }
    row.o.observed = row.o.f == EVSOFTMAX ? observed : NULL;
    row.o.near = 8 * eps * (size + least * fmaxl(1, row.scale));
    oracle_forward(&row.o, row.y, row.s, row.n);
    row.o.observed = NULL;
    for (size_t i = 0; i < row.n; ++i) { top = fmaxl(top, row.y[i]); }
    for (size_t i = 0; i < row.n; ++i) {
        wide y = row.y[i], error = fabsl(observed[i] - y), in_ulp;
        if (is_masked(row.s[i]) || error == 0 || (fabsl(y) < 1.03 * least && fabsl(observed[i]) < 1.03 * least)) {
            continue;
        }
        in_ulp = error / ulp(row.o.logarithm                               ? fmaxl(fabsl(y), 1)
                             : row.o.f == SPARSEMAX || row.o.f == ENTMAX15 ? top
                                                                           : y,
                             eps, least);
        CHECK(in_ulp <= bound, ROW_AT "%.17Lg, not %.17Lg: %.2Lf ULP", ROW_ARGS(i), observed[i], y, in_ulp);
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
    for (size_t i = 0; row.o.f == SEGLU && row.scale >= smallest_normal(f) && i < row.n; ++i) {
        if (row.active[i] && !is_bad(c->array[X], i) && !is_masked(row.s[i]) && row.unit[i] <= row.o.largest / 8) {
            double y = get(f, c->array[OUT], i);
            wide sigma = oracle_sigma(row.o.p, row.s[i].hi, NULL);
            CHECK(fabsl(y - sigma) <= 4 * eps_of(f) * row.unit[i] + smallest_normal(f), ROW_AT "%.17g, not %.17Lg",
                  ROW_ARGS(i), y, sigma);
        }
    }
    if (row.o.f == SEGLU || row.verdict == HAS_NAN || (row.verdict == NEAR_END && nans == actives)) { return; }
    if (row.verdict == NEAR_END && nans) { return; }
    CHECK(nans == 0, ROW_AT "%u NaNs among %u entries", ROW_ARGS(row.n), (unsigned)nans, (unsigned)actives);
    if (nans) { return; }
    check_sum(c);
    if (!row.o.p && row.o.f != TANHMAX) { check_order(c); }
    if (row.verdict == ORDINARY) { check_values(c); }
}

/* Of the genuine y: a bound, and the sum of a gradient on the simplex, which is 0. */
static void check_backward(const input *in, const call *c) {
    const function *f = row.f;
    double high = 0, bound, eps = eps_of(f);
    wide sum;
    size_t active = 0;
    check_special_entries(c);
    if (!in->genuine || row.verdict != ORDINARY || has(f, HAS_GP)) { return; }
    for (size_t i = 0; i < row.n; ++i) {
        if (row.active[i]) {
            high = fmax(high, fabs(get(f, c->array[GY], i)));
            ++active;
        }
    }
    bound = row.scale * high * (f->kind == LOG_BACKWARD ? (double)active + 1 : 2) * (1 + 64 * eps);
    if (!(bound * (double)row.n <= largest(f) / 64) || high * (double)row.n > largest(f) / 64) { return; }
    for (size_t i = 0; i < row.n; ++i) {
        row.got[i] = get(f, c->array[OUT], i);
        CHECK(fabsl(row.got[i]) <= bound + smallest_normal(f), ROW_AT "%Lg is out of the range of %g", ROW_ARGS(i),
              row.got[i], bound);
    }
    sum = fabsl(oracle_sum(row.got, row.n));
    if (row.o.f != TANHMAX) {
        /* A mean of subnormal numbers is one, too. */
        CHECK(sum <= (64 + (wide)row.n) * eps * bound + (wide)row.n * smallest_normal(f) * (1 + row.scale * eps),
              ROW_AT "gx adds up to %Lg, bound %g", ROW_ARGS(row.n), sum, bound);
    }
}

static void check_loss(const input *in, const call *c) {
    const function *f = row.f;
    double loss = *c->per_row, factor = row.scale * (c->t.grad_scale == 0 ? 1 : c->t.grad_scale);
    int32_t target = c->t.index[0];
    int nan = is_nan_double(loss);
    wide sum;
    if (target < 0) {
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
    CHECK((loss > DBL_MAX) == !row.active[target], ROW_AT "loss %g", ROW_ARGS((size_t)target), loss);
    /* A factor so small that factor / sum has no normal number rounds every y * factor to 0. */
    if (row.o.p || row.steep || !(fabs(factor) <= largest(f) / 4) || fabs(factor) < smallest_normal(f) * 0x1p90) {
        return;
    }
    for (size_t i = 0; i < row.n; ++i) {
        double g = get(f, c->array[OUT], i);
        row.got[i] = g;
        CHECK(fabs(g) <= fabs(factor) * (1 + 16 * eps_of(f)) + smallest_normal(f), ROW_AT "gx %g beyond %g",
              ROW_ARGS(i), g, factor);
        if (c->t.label_smoothing == 0 && row.active[target] && row.active[i]) {
            CHECK((i == (size_t)target ? -1 : 1) * g * (factor < 0 ? -1 : 1) >= 0, ROW_AT "gx %g has the wrong sign",
                  ROW_ARGS(i), g);
        }
    }
    sum = fabsl(oracle_sum(row.got, row.n));
    CHECK(!row.active[target] || sum <= (f->size == 4 ? 2e-6 : 2e-14) * fabs(factor) + (wide)row.n * smallest_normal(f),
          ROW_AT "gx adds up to %Lg", ROW_ARGS(row.n), sum);
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

static void check_row(const input *in, const call *c) {
    examine(in, c);
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
