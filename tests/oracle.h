/*
 * oracle.h: the plain formula of every function of multimax.h in long double, one row at a time, forward and backward.
 * No code is shared with the library. A test compares a result of the type T with it:
 *
 *     oracle o = {SOFTMAX, 0, NULL, 0, FLT_MAX, NULL, 0};
 *     s[i] = oracle_score(&o, x[i], scale);                      all active entries of the row
 *     oracle_forward(&o, y, s, n);
 *     error = fabsl(result[i] - y[i]) / ulp(y[i], FLT_EPSILON, FLT_MIN);
 *
 * Rows with NaN, +inf or a sigma that overflows to +inf have no place here: the special cases have a test of their own.
 * A score is the exact product scale * x, in two parts: the error of a score becomes a relative error of its exp.
 * The error of the oracle is some 1e-19 where long double has 64 bits or more; where it is only double, tolerances for
 * results in double are to be multiplied by ORACLE_SLACK, and y of sparsemax and entmax15 has the error of scores near 1.
 * To be compiled without -ffast-math.
 */
#ifndef ORACLE_H
#define ORACLE_H

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "multimax.h"

typedef long double wide;
/* musl, the C library of emscripten, computes expl and its kin in double. */
#if defined(__EMSCRIPTEN__)
#    define ORACLE_SLACK 16.0
#else
#    define ORACLE_SLACK (LDBL_MANT_DIG >= 64 ? 1.0 : 16.0)
#endif

typedef struct score {
    wide hi, lo; /* hi + lo; -inf and 0 for a masked entry */
} score;

typedef enum formula {
    SOFTMAX,
    MULTIMAX,
    SPARSEMAX,
    ENTMAX15,
    EVSOFTMAX,
    TANHMAX,
    SEGLU,
    TOPK,
    ENTMAX,
    SIGSOFTMAX,
    HOURGLASS,
    FORMULAS
} formula;

typedef struct oracle {
    formula f;
    int logarithm;                 /* log of the result; softmax, multimax and evsoftmax */
    const mmax_multimax_params *p; /* multimax, seglu */
    double epsilon;       /* evsoftmax: the weight below the mean; topk: k; entmax: alpha; sparsehourglass: q */
    double largest;       /* of T: a score below -largest is masked */
    const wide *observed; /* evsoftmax: the result to follow where a score is within `near` of the mean, or */
    wide near;            /* NULL: an entry within rounding of the mean may fall on either side */
} oracle;

/* The formula of a function by its name: "log_softmax_f32" and "softmax_backward_f64" are SOFTMAX, what is unknown SEGLU.
 * Each formula needs a name here. */
static inline formula oracle_formula(const char *name) {
    static const char *const names[FORMULAS] = {"softmax",   "multimax",   "sparsemax",      "entmax15",
                                                "evsoftmax", "tanhmax",    "seglu",          "topk",
                                                "entmax",    "sigsoftmax", "sparsehourglass"};
    int f = 0;
    name += strncmp(name, "log_", 4) == 0 ? 4 : 0;
    while (f < FORMULAS && strncmp(name, names[f], strlen(names[f])) != 0) { ++f; }
    return f < FORMULAS ? (formula)f : SEGLU;
}

/* ==== arithmetic ==== */

/* The distance between neighbours of v in a type with the given epsilon and smallest normal number. */
static inline wide ulp(wide v, double eps, double least) {
    int e;
    v = fabsl(v);
    (void)frexpl(v > least ? v : least, &e);
    return ldexpl(eps, e - 1);
}

/* Pairwise: the error does not grow with n, also where every addition rounds the same way. */
static inline wide oracle_sum(const wide *v, size_t n) {
    wide sum = 0;
    if (n > 16) { return oracle_sum(v, n / 2) + oracle_sum(v + n / 2, n - n / 2); }
    for (size_t i = 0; i < n; ++i) { sum += v[i]; }
    return sum;
}

static inline score difference(score a, score b) {
    wide d = a.hi - b.hi, back = d - a.hi; /* TwoSum: Knuth, The Art of Computer Programming, 4.2.2 */
    score result = {d, (a.hi - (d - back)) - (b.hi + back) + (a.lo - b.lo)};
    return result;
}

/* The leading 26 bits of v. */
static inline double leading_bits(double v) {
    uint64_t bits;
    memcpy(&bits, &v, 8);
    bits &= ~(uint64_t)0x7ffffff;
    memcpy(&v, &bits, 8);
    return v;
}

/* a * b, exactly: Dekker's product, with parts by truncation. */
static inline score product(double a, double b) {
    wide hi = (wide)a * b, ah = leading_bits(a), al = a - ah, bh = leading_bits(b), bl = b - bh;
    score result = {hi, ah * bh - hi + ah * bl + al * bh + al * bl};
    return result;
}

static inline score negative(score a) {
    score result = {-a.hi, -a.lo};
    return result;
}

static inline wide exp_of(score a) { return expl(a.hi) * (1 + a.lo); }

static inline int is_masked(score s) { return s.hi == -INFINITY; }

/* ==== sigma ==== */

/* One max term of sigma: (1-t_b) max(b-s,0)^n or (t_d-1) max(s-d,0)^n. */
typedef struct sigma_term {
    wide coefficient, unit; /* unit: the magnitude to which the coefficient's rounding error is relative */
    wide q, side;           /* the max, and its derivative with respect to s: -1 or 1; 0 beyond the kink and at it */
    wide q_unit;            /* the magnitude to which q's rounding error is relative */
} sigma_term;

/* k = 0 and 1: t_b and b of order 1 and 2; k = 2 and 3: t_d and d. */
static inline sigma_term term_of(const mmax_multimax_params *p, int k, wide s) {
    int low = k < 2;
    wide t = low ? p->t_b[k] : p->t_d[k - 2], kink = low ? p->b[k] : p->d[k - 2];
    sigma_term a = {low ? 1 - t : t - 1, 1 + fabsl(t), low ? kink - s : s - kink, low ? -1 : 1, fabsl(kink) + fabsl(s)};
    if (!(a.q > 0) || k % 2 >= p->order) { a.coefficient = a.unit = a.q = a.side = a.q_unit = 0; }
    return a;
}

/* sigma(s). *unit, where not NULL, becomes what the rounding error of an evaluation in T is relative to: parameters,
 * scores, differences and terms rounded once each. */
static inline wide oracle_sigma(const mmax_multimax_params *p, wide s, wide *unit) {
    wide v = s, u = fabsl(s);
    for (int k = 0; k < 4; ++k) {
        sigma_term a = term_of(p, k, s);
        wide power = k % 2 ? a.q * a.q : a.q;
        v += a.coefficient * power;
        u += a.unit * power + fabsl(a.coefficient) * (k % 2 ? 2 * a.q : 1) * a.q_unit;
    }
    if (unit) { *unit = u; }
    return v;
}

/* Turns gradients with respect to sigma into gradients with respect to x, and adds those of the parameters to
 * gp = {t_b1, t_b2, t_d1, t_d2, b1, b2, d1, d2}. The units go along; without sigma only the scale is left. */
static inline void oracle_chain(const oracle *o, wide *g, wide *unit, wide *gp, wide *gp_unit, const score *s, size_t n,
                                double scale) {
    for (size_t i = 0; i < n; ++i) {
        wide slope = o->f == SIGSOFTMAX ? 1 + 1 / (1 + expl(s[i].hi)) : 1, slope_unit = slope;
        for (int k = 0; k < 4 && (o->f == MULTIMAX || o->f == SEGLU) && !is_masked(s[i]); ++k) {
            sigma_term a = term_of(o->p, k, s[i].hi);
            wide power = k % 2 ? a.q * a.q : a.q, dq = k % 2 ? 2 * a.q : a.side != 0,
                 ddq = k % 2 && a.side != 0 ? 2 : 0;
            wide dq_unit = a.unit * dq + fabsl(a.coefficient) * ddq * a.q_unit;
            slope += a.side * a.coefficient * dq;
            slope_unit += dq_unit;
            gp[k] += g[i] * a.side * power;
            gp_unit[k] += unit[i] * (power + dq * a.q_unit);
            gp[k + 4] -= g[i] * a.side * a.coefficient * dq;
            gp_unit[k + 4] += unit[i] * dq_unit;
        }
        g[i] *= slope * scale;
        unit[i] *= slope_unit * scale;
    }
}

/* ==== forward ==== */

/* scale * x: exact, but rounded to T for sigma, as the library may. */
static inline score oracle_score(const oracle *o, double x, double scale) {
    score s = {x, 0};
    if (x == -INFINITY) { return s; }
    s = product(x, scale);
    if (o->f == MULTIMAX || o->f == SEGLU) {
        s.hi = o->largest > FLT_MAX ? (wide)(double)s.hi : (wide)(float)s.hi;
        s.lo = 0;
    }
    if (s.hi < -(wide)o->largest) {
        s.hi = -INFINITY;
        s.lo = 0;
    }
    return s;
}

/* The normalised score: s, sigma(s), or log(exp(s) sigmoid(s)). */
static inline score normalised_score(const oracle *o, score s) {
    if (o->f == SIGSOFTMAX && !is_masked(s)) {
        const score twice = {2 * s.hi, 2 * s.lo}, beyond = {log1pl(expl(-fabsl(s.hi))), 0};
        return difference(s.hi < 0 ? twice : s, beyond);
    }
    if ((o->f == MULTIMAX || o->f == SEGLU) && !is_masked(s)) {
        s.hi = oracle_sigma(o->p, s.hi, NULL);
        s.hi = s.hi < -(wide)o->largest ? -INFINITY : s.hi;
    }
    return s;
}

/* The largest score; tanhmax: the largest magnitude. -inf where all is masked. */
static inline score oracle_top(const oracle *o, const score *s, size_t n) {
    score top = {-INFINITY, 0};
    for (size_t i = 0; i < n; ++i) {
        score a = normalised_score(o, s[i]);
        if (o->f == TANHMAX && a.hi < 0 && !is_masked(a)) { a = negative(a); }
        if (a.hi > top.hi || (a.hi == top.hi && a.lo > top.lo)) { top = a; }
    }
    return top;
}

/* The active entries in descending order, of equal ones the first first. Returns how many they are. */
static const score *oracle_ordered;
static inline int oracle_compare(const void *a, const void *b) {
    const size_t i = *(const size_t *)a, j = *(const size_t *)b;
    const score p = oracle_ordered[i], q = oracle_ordered[j];
    const int is_equal = p.hi == q.hi && p.lo == q.lo;
    return p.hi > q.hi || (p.hi == q.hi && p.lo > q.lo) || (is_equal && i < j) ? -1 : 1;
}
static inline size_t oracle_order(size_t *order, const score *s, size_t n) {
    size_t active = 0;
    for (size_t i = 0; i < n; ++i) {
        if (!is_masked(s[i])) { order[active++] = i; }
    }
    oracle_ordered = s;
    qsort(order, active, sizeof *order, oracle_compare);
    return active;
}

/* topk: 1 for what is kept, else 0. */
static inline void oracle_keep(const oracle *o, wide *y, const score *s, size_t n) {
    size_t *const order = malloc((n + 1) * sizeof *order), active = oracle_order(order, s, n);
    for (size_t i = 0; i < n; ++i) { y[i] = 0; }
    for (size_t j = 0; j < active && (double)j < o->epsilon; ++j) { y[order[j]] = 1; }
    free(order);
}

/* Truncation: how many entries of the order are kept, at least and at most, which differ by rounding alone. */
static inline void oracle_truncation(size_t *least, size_t *most, const mmax_truncation *c, const score *s,
                                     const size_t *order, size_t active, wide slack) {
    const size_t k = c->k && c->k < active ? c->k : active, keep = c->keep > active ? active : c->keep ? c->keep : 1;
    wide *const d = malloc(active * sizeof *d), max = s[order[0]].hi;
    wide mean = 0, square = 0, all = 0;
    for (size_t j = 0; j < active; ++j) {
        d[j] = (s[order[j]].hi - max) + (s[order[j]].lo - s[order[0]].lo);
        mean += d[j] / (wide)active;
    }
    for (size_t j = 0; j < active; ++j) { square += (d[j] - mean) * (d[j] - mean) / (wide)active; }
    for (size_t j = 0; j < k; ++j) { all += expl(d[j]); }
    for (int side = -1; side <= 1; side += 2) {
        const wide sd = sqrtl(square), low = -(wide)c->deviations * sd - side * (2 + (wide)c->deviations) * sd * slack;
        const wide low_p = c->min_p > 0 ? logl(c->min_p) * (1 + side * slack) - side * slack : -INFINITY;
        size_t kept, j = 0;
        wide sum = 0;
        while (j < k && (!(c->deviations > 0) || d[j] >= low) && d[j] >= low_p) { ++j; }
        kept = j > 0 ? j : 1;
        for (j = 0; c->top_p > 0 && c->top_p < 1 && j < kept; ++j) {
            sum += expl(d[j]);
            if (sum >= (wide)c->top_p * all + side * slack * all) { kept = j + 1; }
        }
        *(side < 0 ? least : most) = kept < keep ? keep : kept;
    }
    free(d);
}

/* entmax, u = alpha - 1 > 1: the lowest entry for which those above it, with nothing left for itself, have a sum below 1 */
static inline score oracle_base(const score *s, size_t n, wide u) {
    size_t *const order = malloc((n + 1) * sizeof *order), low = 0, high = oracle_order(order, s, n);
    score base;
    while (high - low > 1) {
        const size_t middle = (low + high) / 2;
        wide sum = 0;
        for (size_t j = 0; j < middle; ++j) {
            const score d = difference(s[order[j]], s[order[middle]]);
            sum += powl(u * (d.hi + d.lo), 1 / u);
        }
        *(sum < 1 ? &low : &high) = middle;
    }
    base = s[order[low]];
    free(order);
    return base;
}
/* entmax: the weight of the largest entry or, for alpha > 2, of the lowest that has any, by bisection; then all others. */
static inline void oracle_entmax(const oracle *o, wide *y, const score *s, size_t n, score top) {
    const wide u = (wide)o->epsilon - 1;
    const score base = u > 1 ? oracle_base(s, n, u) : top;
    wide low = -1400, high = 0;
    for (wide middle = -1; low < middle && middle < high; middle = (low + high) / 2) {
        wide sum = 0;
        for (size_t i = 0; i < n; ++i) {
            const score d = difference(s[i], base);
            const wide t = is_masked(s[i]) ? -1 : u * (d.hi + d.lo) / expl(u * middle);
            sum += y[i] = t > -1 && (u <= 1 || t >= 0) ? expl(middle + log1pl(t) / u) : 0;
        }
        *(sum < 1 ? &low : &high) = middle;
    }
}
/* The largest relative error of a weight above 1e-6, as the header states it. */
static inline wide oracle_entmax_bound(wide alpha, double eps, wide y) {
    const wide u = alpha - 1;
    if (u == 0 || u == 0.5L || u == 1) { return 8 * eps / y; } /* the gradients of other functions */
    return eps > 1e-10 && u <= 1
               ? eps
               : (wide)ORACLE_SLACK * ((eps > 1e-10 ? eps : 2e-14) + 1e-15 / (u <= 1 ? fminl(1, u * powl(y, u)) : y));
}

/* sparsehourglass: a = (1 + K q) / (|S| + K q); S, K and the denominator */
typedef struct hourglass {
    wide sum, count, size, factor;
} hourglass;
static inline hourglass oracle_hourglass(const oracle *o, const score *s, size_t n) {
    hourglass h = {0, 0, 0, 1};
    for (size_t i = 0; i < n; ++i) {
        h.sum += is_masked(s[i]) ? 0 : s[i].hi + s[i].lo;
        h.count += !is_masked(s[i]);
    }
    h.size = fabsl(h.sum) + h.count * o->epsilon;
    h.factor = (1 + h.count * o->epsilon) / h.size;
    return h;
}

/* sparsemax, entmax15: y = max(z - tau, 0)^power with sum 1, where z = (s - top) / power, by Newton's method from below. */
static inline void oracle_threshold(const oracle *o, wide *y, const score *s, size_t n, score top) {
    int power = o->f == ENTMAX15 ? 2 : 1;
    wide tau = -1, step = 1, factor = o->f == HOURGLASS ? oracle_hourglass(o, s, n).factor : 1;
    for (int k = 0; k < 200 && step > 4 * LDBL_EPSILON; ++k) {
        wide sum, slope;
        size_t support = 0;
        for (size_t i = 0; i < n; ++i) {
            score d = difference(s[i], top);
            y[i] = is_masked(s[i]) ? 0 : fmaxl((d.hi + d.lo) * factor / power - tau, 0);
            support += y[i] > 0;
        }
        sum = oracle_sum(y, n);
        slope = (wide)support;
        if (power == 2) {
            slope = 2 * sum;
            for (size_t i = 0; i < n; ++i) { y[i] *= y[i]; }
            sum = oracle_sum(y, n);
        }
        step = (sum - 1) / slope;
        tau += step;
    }
}

/* evsoftmax: the weight of every entry, 1 from the mean on, else epsilon. */
static inline void oracle_weights(const oracle *o, wide *y, const score *s, size_t n, score top) {
    size_t active = 0;
    wide mean, largest = 0;
    for (size_t i = 0; i < n; ++i) {
        active += !is_masked(s[i]);
        y[i] = is_masked(s[i]) ? 0 : difference(s[i], top).hi;
        largest = o->observed ? fmaxl(largest, o->observed[i]) : 0;
    }
    mean = oracle_sum(y, n) / (wide)active;
    for (size_t i = 0; i < n; ++i) {
        score d = difference(s[i], top);
        int is_top = d.hi == 0 && d.lo == 0, kept = is_top || y[i] >= mean;
        if (o->observed && !is_top && !is_masked(s[i]) && fabsl(y[i] - mean) <= o->near) {
            kept = o->observed[i] > largest * exp_of(d) / 2;
        }
        y[i] = is_masked(s[i]) ? 0 : kept ? 1 : (wide)o->epsilon;
    }
}

/* y = phi(s); masked entries 0, or -inf for seglu and logarithms. */
static inline void oracle_forward(const oracle *o, wide *y, const score *s, size_t n) {
    score top = oracle_top(o, s, n);
    wide sum;
    if (is_masked(top) || o->f == SEGLU) {
        for (size_t i = 0; i < n; ++i) {
            y[i] = o->f == SEGLU ? normalised_score(o, s[i]).hi : o->logarithm ? -INFINITY : 0;
        }
        return;
    }
    if (o->f == SPARSEMAX || o->f == ENTMAX15 || o->f == HOURGLASS) {
        oracle_threshold(o, y, s, n, top);
        return;
    }
    if (o->f == ENTMAX && o->epsilon > 1) {
        oracle_entmax(o, y, s, n, top);
        return;
    }
    if (o->f == EVSOFTMAX) { oracle_weights(o, y, s, n, top); }
    if (o->f == TOPK) { oracle_keep(o, y, s, n); }
    for (size_t i = 0; i < n; ++i) {
        score a = normalised_score(o, s[i]);
        if (is_masked(a)) {
            y[i] = 0;
        } else if (o->f == TANHMAX) {
            y[i] = exp_of(difference(a, top)) + exp_of(difference(negative(a), top));
        } else {
            y[i] = (o->f == EVSOFTMAX || o->f == TOPK ? y[i] : 1) * exp_of(difference(a, top));
        }
    }
    sum = oracle_sum(y, n);
    for (size_t i = 0; i < n; ++i) {
        score a = normalised_score(o, s[i]);
        if (is_masked(a)) {
            y[i] = o->logarithm ? -INFINITY : 0;
        } else if (o->f == TANHMAX) { /* 2 sinh(a) exp(-top), without cancellation */
            score m = a.hi < 0 ? negative(a) : a;
            y[i] = exp_of(difference(m, top)) * -expm1l(-2 * m.hi) * (a.hi < 0 ? -1 : 1) / sum;
        } else if (o->logarithm) { /* evsoftmax: y / exp is its weight */
            score d = difference(a, top);
            int below = o->f == EVSOFTMAX && y[i] < exp_of(d) * (1 + (wide)o->epsilon) / 2;
            y[i] = d.hi + (d.lo - logl(sum) + (below ? logl(o->epsilon) : 0));
        } else {
            y[i] /= sum;
        }
    }
}

/* ==== backward ==== */

/* entmax: the gradient of alpha, added to gp[0]; w = y^(2 - alpha). Correia, Niculae, Martins 2019, without 1/u^2. */
static inline void oracle_alpha(const oracle *o, wide *gp, wide *gp_unit, const wide *gy, const wide *y, const wide *w,
                                size_t n) {
    const wide u = (wide)o->epsilon - 1;
    wide total[3] = {0, 0, 0}, of_g[2] = {0, 0}, unit[2] = {0, 0}; /* of y + u h with h = -y log y, phi, w */
    for (size_t i = 0; i < n; ++i) {
        const wide l = y[i] > 0 ? logl(y[i]) : 0, t = -u * l, first = y[i] * (1 + t);
        const wide phi = y[i] * l * l * (t < 1e-5 ? 0.5L + t / 6 : (expm1l(t) - t) / (t * t));
        total[0] += first;
        total[1] += phi;
        total[2] += w[i];
        of_g[0] += y[i] > 0 ? gy[i] * first : 0;
        of_g[1] += y[i] > 0 ? gy[i] * phi : 0;
        unit[0] += y[i] > 0 ? fabsl(gy[i] * first) : 0;
        unit[1] += y[i] > 0 ? fabsl(gy[i] * phi) : 0;
    }
    if (total[2] == 0) { return; }
    gp[0] += (of_g[0] * total[1] - total[0] * of_g[1]) / total[2];
    gp_unit[0] += (unit[0] * total[1] + total[0] * unit[1]) / total[2];
}

/* sparsehourglass: turns gradients with respect to a s into gradients with respect to s; that of q is added to gp[0]. */
static inline void oracle_hourglass_chain(const oracle *o, wide *g, wide *unit, wide *gp, wide *gp_unit, const score *s,
                                          size_t n) {
    const hourglass h = oracle_hourglass(o, s, n);
    const wide side = h.sum > 0 ? 1 : h.sum < 0 ? -1 : 0;
    wide dot = 0, dot_unit = 0;
    if (h.count == 0) { return; }
    for (size_t i = 0; i < n; ++i) {
        dot += is_masked(s[i]) ? 0 : g[i] * s[i].hi;
        dot_unit += is_masked(s[i]) ? 0 : unit[i] * fabsl(s[i].hi);
    }
    for (size_t i = 0; i < n; ++i) {
        g[i] = is_masked(s[i]) ? 0 : h.factor * (g[i] - side * dot / h.size);
        unit[i] = h.factor * (unit[i] + dot_unit / h.size);
    }
    gp[0] += dot * h.count * (1 - h.factor) / h.size;
    gp_unit[0] += dot_unit * h.count * (1 + h.factor) / h.size;
}

/*
 * gx, and gp added to, from the result y that was rounded to T: what the library gets. unit[i] and gp_unit[k] are what
 * a rounding error in T is relative to: the sums of the magnitudes. `scratch` has n entries. gp[0] is the gradient of
 * alpha or q where there is one.
 */
static inline void oracle_backward(const oracle *o, wide *gx, wide *unit, wide *gp, wide *gp_unit, const wide *gy,
                                   const wide *y, const score *s, size_t n, double scale, wide *scratch) {
    wide *w = scratch, dot, dot_unit, norm = 1, cosh_sum = 0;
    score top = {0, 0};
    if (o->f == TANHMAX) {
        top = oracle_top(o, s, n);
        for (size_t i = 0; i < n; ++i) {
            w[i] = is_masked(s[i]) ? 0 : exp_of(difference(s[i], top)) + exp_of(difference(negative(s[i]), top));
        }
        cosh_sum = oracle_sum(w, n);
    }
    for (size_t i = 0; i < n; ++i) {
        int active = o->f == TANHMAX || o->f == SEGLU ? !is_masked(s[i]) : o->logarithm ? y[i] != -INFINITY : y[i] != 0;
        wide root = o->f == ENTMAX15                         ? sqrtl(y[i])
                    : o->f == SPARSEMAX || o->f == HOURGLASS ? 1
                    : o->f == ENTMAX                         ? powl(y[i], 2 - (wide)o->epsilon)
                                                             : y[i];
        w[i] = !active ? 0 : o->logarithm ? expl(y[i]) : root;
        gx[i] = !active ? 0 : o->logarithm ? gy[i] : w[i] * gy[i];
        unit[i] = fabsl(gx[i]);
    }
    dot = oracle_sum(gx, n);
    dot_unit = oracle_sum(unit, n);
    if (o->f == SPARSEMAX || o->f == ENTMAX15 || o->f == HOURGLASS || o->f == ENTMAX) { norm = oracle_sum(w, n); }
    if (o->f == ENTMAX) { oracle_alpha(o, gp, gp_unit, gy, y, w, n); }
    for (size_t i = 0; i < n; ++i) {
        int by_score = o->f == TANHMAX || o->f == SEGLU || o->logarithm;
        int active = by_score ? !is_masked(normalised_score(o, s[i])) : w[i] != 0;
        wide own = o->logarithm || o->f == SEGLU ? 1 : w[i];
        if (o->f == SEGLU) { w[i] = 0; }
        if (o->f == TANHMAX && active) {
            own = (exp_of(difference(s[i], top)) + exp_of(difference(negative(s[i]), top))) / cosh_sum;
        }
        gx[i] = active ? own * gy[i] - w[i] * dot / norm : 0;
        unit[i] = active ? fabsl(own * gy[i]) + fabsl(w[i]) * dot_unit / norm : 0;
    }
    if (o->f == HOURGLASS) { oracle_hourglass_chain(o, gx, unit, gp, gp_unit, s, n); }
    oracle_chain(o, gx, unit, gp, gp_unit, s, n, scale);
}

/* ==== losses and metrics ==== */

/* The share of entry i in the smoothed target. */
static inline wide oracle_target(size_t i, size_t index, double smoothing, size_t active) {
    return (i == index ? 1 - (wide)smoothing : 0) + (wide)smoothing / (wide)active;
}

/* The loss of one row with an unmasked target; y becomes phi(s), so that y - q is the gradient for oracle_chain(). */
static inline wide oracle_loss(const oracle *o, wide *y, const score *s, size_t n, size_t index, double smoothing) {
    oracle plain = *o;
    score top = oracle_top(o, s, n);
    size_t active = 0;
    wide loss = 0;
    plain.logarithm = o->f != SPARSEMAX && o->f != ENTMAX15;
    oracle_forward(&plain, y, s, n);
    for (size_t i = 0; i < n; ++i) { active += !is_masked(s[i]); }
    for (size_t i = 0; i < n; ++i) {
        wide q = oracle_target(i, index, smoothing, active);
        if (is_masked(s[i])) {
            y[i] = 0;
        } else if (plain.logarithm) {
            loss -= q > 0 ? q * y[i] : 0;
            y[i] = expl(y[i]);
        } else { /* Fenchel-Young; the scores less their maximum, as y and q have the same sum */
            loss += difference(s[i], top).hi * (y[i] - q);
            loss += o->f == SPARSEMAX ? (q * q - y[i] * y[i]) / 2 : (q * sqrtl(q) - y[i] * sqrtl(y[i])) * 4 / 3;
        }
    }
    return loss;
}

/* Definition 3.2, x unscaled, masked entries -inf. Sets *count to the number of entries in the mean. */
static inline wide oracle_multimodality(const wide *y, const wide *x, size_t n, double epsilon, size_t *count) {
    size_t top = 0;
    wide sum = 0;
    *count = 0;
    for (size_t i = 1; i < n; ++i) { top = x[i] > x[top] ? i : top; }
    for (size_t i = 0; i < n; ++i) {
        if (x[i] > epsilon && x[i] < x[top]) {
            sum += y[top] - y[i];
            ++*count;
        }
    }
    return 1 - sum / (wide)*count;
}

/* Definition 3.3. A reference of 0 has underflowed. */
static inline wide oracle_sparsity(const wide *y, const wide *x, size_t n, double epsilon, wide reference,
                                   size_t *count) {
    wide sum = 0;
    *count = 0;
    for (size_t i = 0; i < n; ++i) {
        if (x[i] > -INFINITY && x[i] < epsilon) {
            sum += reference > 0 ? expl(-y[i] / reference) : y[i] == 0;
            ++*count;
        }
    }
    return sum / (wide)*count;
}

#endif /* ORACLE_H */
