/*
 * test_attention.c: attention inputs and training inputs: scales, biases, slopes, sinks, finite masks
 * and starts, log-sum-exp and its joining, the gradients of scales and sinks, soft caps; weights and distributions as
 * targets. Everything is compared with the formulas in long double and their finite differences, written here anew.
 * Arguments: a folder with softmax_scale.txt and softmax_sink.txt.
 */
#include <stdio.h>

#include "function_table.h"
#include "golden_file.h"
#include "tables.h"

typedef long double wide;

/* Tolerances of f64 are multiplied by this where long double, or its functions, have the precision of double. */
#if defined(__EMSCRIPTEN__)
#    define SLACK 64.0
#else
#    define SLACK (LDBL_MANT_DIG >= 64 ? 1.0 : 64.0)
#endif
/* How many of the lengths 300, 2100, 5000: fewer where long double is computed in software. */
#define LONG_ROWS       (LDBL_MANT_DIG > 64 || LENGTH_STEP > 1 ? 1u : 3u)
#define STEP            (1.0L / 65536)
#define ANY_ROUNDING(f) (eps_of(f) * ((f)->size == 4 ? 1 : SLACK))

enum { ROWS = 7, HEAD_ROWS = 3, HEADS = 3, LONGEST = 5000, ROOM = ROWS * (LONGEST + 8), PARAMETERS = 8 };

/* ==== functions that the table does not have ==== */

static const function *more_named(const char *name, size_t size) {
    FOR_EACH_MORE(f) {
        if (f->size == size && strncmp(f->name, name, strlen(name)) == 0 && f->name[strlen(name)] == '_') { return f; }
    }
    CHECK(0, "no function is named %s", name);
    return more_functions;
}

static int begins(const char *name, const char *with) { return strncmp(name, with, strlen(with)) == 0; }
static int is_lse(const function *f) { return has(f, HAS_LSE); }

static int takes_sinks(const function *f) { return has(f, TAKES_SINKS) && f->kind != METRIC; }

/* ==== one row in long double ==== */

typedef enum formula { SOFTMAX, MULTIMAX, SPARSEMAX, ENTMAX15, EVSOFTMAX, TANHMAX, SEGLU, FORMULAS } formula;
typedef enum entry_kind { OUTSIDE, MASK, ACTIVE } entry_kind;

/* The inputs of a row, and the result of the formula. */
static struct {
    formula f;
    int logarithm, order, has_bias;
    wide epsilon, scale, slope, sink, par[PARAMETERS]; /* par as mmax_multimax_grads */
    size_t n;
    unsigned char kind[LONGEST];
    wide x[LONGEST], b[LONGEST], gy[LONGEST];
    wide target[LONGEST], weight, smoothing; /* of a loss */
    wide s[LONGEST], y[LONGEST];             /* what is normalised; the result */
    wide top, lse, tanh_sum, largest_y;
    uint64_t sides; /* changes with the support, the side of a kink or of the mean */
    size_t active;
    wide mean; /* evsoftmax */
} R;

static formula formula_of(const function *f) {
    static const char *const names[FORMULAS] = {"softmax",   "multimax", "sparsemax", "entmax15",
                                                "evsoftmax", "tanhmax",  "seglu"};
    const char *name = f->name + (begins(f->name, "log_") ? 4 : 0);
    int k = 0;
    while (k < FORMULAS - 1 && !begins(name, names[k])) { ++k; }
    return (formula)k;
}

static wide score_of(size_t i) { return R.scale * R.x[i] + (R.has_bias ? R.slope * R.b[i] : 0); }

static int has_sigma(void) { return R.f == MULTIMAX || R.f == SEGLU; }

/* sigma(s); the side of every kink into *sides. */
static wide sigma_of(wide s, uint64_t *sides) {
    wide v = s;
    for (int k = 0; k < 4; ++k) {
        wide q = k < 2 ? R.par[4 + k] - s : s - R.par[4 + k];
        if (k % 2 >= R.order || !(q > 0)) { continue; }
        v += (k < 2 ? 1 - R.par[k] : R.par[k] - 1) * (k % 2 ? q * q : q);
        *sides += (uint64_t)1 << k;
    }
    return v;
}

/* The threshold of sparsemax and entmax15 by Newton's method from below. */
static void threshold(void) {
    int half = R.f == ENTMAX15;
    wide tau = -1;
    for (int step = 0; step < 100; ++step) {
        wide sum = 0, derivative = 0, change;
        for (size_t i = 0; i < R.n; ++i) {
            wide d = R.kind[i] == ACTIVE ? (R.s[i] - R.top) / (half ? 2 : 1) - tau : 0;
            R.y[i] = d > 0 ? (half ? d * d : d) : 0;
            sum += R.y[i];
            derivative += d > 0 ? (half ? 2 * d : 1) : 0;
        }
        change = (sum - 1) / derivative;
        tau += change;
        if (change < 2 * LDBL_EPSILON) { break; }
    }
    R.largest_y = 0;
    for (size_t i = 0; i < R.n; ++i) {
        R.sides = R.sides * 3 + (R.y[i] > 0);
        R.largest_y = R.y[i] > R.largest_y ? R.y[i] : R.largest_y;
    }
}

/* The formula. R.y is 0 for masked entries and others that do not count. */
static void evaluate(void) {
    wide z = 0;
    R.sides = 0;
    R.top = -INFINITY;
    R.lse = R.sink;
    R.active = 0;
    R.mean = 0;
    for (size_t i = 0; i < R.n; ++i) {
        uint64_t sides = 0;
        R.y[i] = 0;
        if (R.kind[i] != ACTIVE) { continue; }
        R.s[i] = score_of(i);
        if (has_sigma()) { R.s[i] = sigma_of(R.s[i], &sides); }
        R.sides = R.sides * 31 + sides;
        R.top = fmaxl(R.top, R.f == TANHMAX ? fabsl(R.s[i]) : R.s[i]);
        R.mean += R.s[i];
        ++R.active;
    }
    if (R.active == 0) { return; }
    R.mean /= (wide)R.active;
    if (R.f == SPARSEMAX || R.f == ENTMAX15) {
        threshold();
        return;
    }
    if (R.f == SEGLU) {
        for (size_t i = 0; i < R.n; ++i) { R.y[i] = R.kind[i] == ACTIVE ? R.s[i] : 0; }
        return;
    }
    if (R.f != TANHMAX) { R.top = fmaxl(R.top, R.sink); }
    for (size_t i = 0; i < R.n; ++i) {
        if (R.kind[i] != ACTIVE) { continue; }
        if (R.f == TANHMAX) {
            z += expl(R.s[i] - R.top) + expl(-R.s[i] - R.top);
            continue;
        }
        R.y[i] = expl(R.s[i] - R.top);
        if (R.f == EVSOFTMAX) {
            int above = R.s[i] >= R.mean || R.s[i] == R.top;
            R.y[i] *= above ? 1 : R.epsilon;
            R.sides = R.sides * 3 + (uint64_t)above;
        }
        z += R.y[i];
    }
    if (R.f != TANHMAX && R.sink > -INFINITY) { z += expl(R.sink - R.top); }
    R.lse = R.top + logl(z);
    R.tanh_sum = z;
    for (size_t i = 0; i < R.n; ++i) {
        if (R.kind[i] != ACTIVE) { continue; }
        if (R.f == TANHMAX) { /* 2 sinh without cancellation */
            wide m = fabsl(R.s[i]);
            R.y[i] = (R.s[i] < 0 ? -1 : 1) * expl(m - R.top) * -expm1l(-2 * m) / z;
        } else {
            R.y[i] = R.logarithm ? R.s[i] - R.lse : R.y[i] / z;
        }
    }
}

/* ==== bounds of rounding errors in T ==== */

/* The magnitudes, for entry i, to which rounding errors of the score, sigma, its slope and its derivatives are relative. */
typedef struct unit {
    wide score, slope, par[PARAMETERS];
} unit;

static unit unit_of(size_t i) {
    unit u = {0, 1, {0}};
    wide s = score_of(i), own = R.has_bias ? fabsl(R.scale * R.x[i]) + fabsl(R.slope * R.b[i]) : 0;
    wide input = own + fabsl(s);
    if (!has_sigma()) {
        u.score = own;
        return u;
    }
    u.score = input;
    for (int k = 0; k < 4; ++k) {
        wide kink = R.par[4 + k], q = k < 2 ? kink - s : s - kink, c = fabsl(R.par[k] - 1), t = 1 + fabsl(R.par[k]);
        wide dq = k % 2 ? 2 * q : 1, q_unit = fabsl(kink) + input;
        if (k % 2 >= R.order || !(q > 0)) { continue; }
        u.score += t * (k % 2 ? q * q : q) + c * dq * q_unit;
        u.slope += t * dq + (k % 2 ? 2 * c * q_unit : 0);
        u.par[k] = (k % 2 ? q * q : q) + dq * q_unit;
        u.par[4 + k] = t * dq + (k % 2 ? 2 * c * q_unit : 0);
    }
    return u;
}

/* The relative error of every weight, in units of eps, that comes from rounding the row's scores; largest[0] is the worst. */
static wide average_unit(wide *largest_unit) {
    wide mean = 0, most = 0;
    for (size_t i = 0; i < R.n; ++i) {
        wide u, p;
        if (R.kind[i] != ACTIVE) { continue; }
        u = unit_of(i).score;
        p = R.f == SEGLU     ? 0
            : R.f == TANHMAX ? (expl(R.s[i] - R.top) + expl(-R.s[i] - R.top)) / R.tanh_sum
            : R.logarithm    ? expl(R.y[i])
                             : R.y[i];
        mean += p * u;
        if (R.s[i] >= R.top - 2.25L) { most = fmaxl(most, u); }
    }
    if (R.f <= EVSOFTMAX && R.sink > -INFINITY) { mean += expl(R.sink - R.lse) * fabsl(R.sink); }
    *largest_unit = most;
    return mean;
}

#define SCORE_ROUNDINGS 4

/* The largest allowed distance of result entry i from R.y[i]. */
static wide tolerance_of(const function *f, size_t i, wide mean, wide most) {
    wide eps = ANY_ROUNDING(f), y = fabsl(R.y[i]), u = unit_of(i).score;
    switch (R.f) {
    case SPARSEMAX:
    case ENTMAX15:
        most = 2 * SCORE_ROUNDINGS * eps * most;
        return 6 * eps * R.largest_y + (R.f == SPARSEMAX ? most : most * (sqrtl(y) + most)) + smallest_normal(f);
    case TANHMAX:
        return 8 * eps * y + smallest_normal(f) +
               SCORE_ROUNDINGS * eps * (y * mean + u * (expl(R.s[i] - R.top) + expl(-R.s[i] - R.top)) / R.tanh_sum);
    case SEGLU: return SCORE_ROUNDINGS * eps * u + smallest_normal(f);
    default:
        if (R.logarithm) { return 4 * eps * fmaxl(y, 1) + SCORE_ROUNDINGS * eps * (u + mean); }
        return y * eps * ((R.f == EVSOFTMAX ? 6 : 5) + SCORE_ROUNDINGS * (u + mean)) + smallest_normal(f);
    }
}

/* evsoftmax: whether an entry may fall on either side of the mean. */
static int is_ambiguous(const function *f) {
    wide size = 0;
    for (size_t i = 0; i < R.n && R.f == EVSOFTMAX; ++i) {
        if (R.kind[i] == ACTIVE) { size += (fabsl(R.s[i]) + unit_of(i).score) / (wide)R.active; }
    }
    for (size_t i = 0; i < R.n && R.f == EVSOFTMAX; ++i) {
        if (R.kind[i] == ACTIVE && R.s[i] < R.top && fabsl(R.s[i] - R.mean) <= 16 * eps_of(f) * size) { return 1; }
    }
    return 0;
}

/* ==== differences ==== */

static wide weighted_sum(void) {
    wide sum = 0;
    evaluate();
    for (size_t i = 0; i < R.n; ++i) { sum += R.kind[i] == ACTIVE ? R.gy[i] * R.y[i] : 0; }
    return sum;
}

/* *result: the derivative of value() with respect to *v, to fourth order. Returns 0 near a kink. */
static int differentiate(wide *v, wide (*value)(void), wide *result) {
    wide keep = *v, f[4];
    uint64_t sides;
    int smooth = 1;
    (void)value();
    sides = R.sides;
    for (int k = 0; k < 4; ++k) {
        *v = keep + (k % 2 ? -1 : 1) * (k / 2 + 1) * STEP;
        f[k] = value();
        smooth = smooth && R.sides == sides;
    }
    *v = keep;
    (void)value();
    *result = (8 * (f[0] - f[1]) - (f[2] - f[3])) / (12 * STEP);
    return smooth;
}

/* ==== problems ==== */

enum switches {
    SCALES = 1,
    BIAS = 2,
    SLOPES = 4,
    STARTS = 8,
    LENGTHS = 16,
    MASK_X = 32,
    MASK_BIAS = 64,
    FINITE_MASK = 128,
    SINKS = 256,
    HIGH_SINKS = 512,
    BROADCAST = 1024, /* bias rows repeat */
    ONE_BIAS_ROW = 2048,
    TIGHT_BIAS = 4096, /* bias_stride 0 */
    EVERYTHING = SCALES | BIAS | SLOPES | STARTS | LENGTHS | MASK_X | MASK_BIAS | FINITE_MASK | SINKS | BROADCAST
};

static const unsigned in_turn[] = {0,
                                   SCALES,
                                   BIAS,
                                   BIAS | BROADCAST,
                                   BIAS | ONE_BIAS_ROW | TIGHT_BIAS,
                                   BIAS | SLOPES,
                                   STARTS,
                                   LENGTHS,
                                   STARTS | LENGTHS,
                                   MASK_X,
                                   BIAS | MASK_BIAS,
                                   FINITE_MASK,
                                   SINKS,
                                   HIGH_SINKS,
                                   SINKS | MASK_X | STARTS,
                                   EVERYTHING & ~(unsigned)SINKS};

typedef struct problem {
    const function *f;
    unsigned on;
    call c;
    mmax_attention a;
    mmax_multimax_params p;
    double scales[ROWS], slopes[ROWS], sinks[ROWS], weights[ROWS];
    uint32_t starts[ROWS], ends[ROWS];
} problem;

static problem P;
static double bias_storage[ROOM], q_storage[ROOM], kept_out[ROOM], kept_x[ROOM], first_fma[ROOM];
static unsigned char kinds[ROOM]; /* of entry i of row r at r * cols + i */

#define WHERE "%s on %s, rows of %u, switches %x, row %u [%u, %u)"
#define WHERE_ARGS(r)                                                                                              \
    P.f->name, mmax_isa_name(mmax_isa_active()), (unsigned)P.c.s.cols, P.on, (unsigned)(r), (unsigned)first_of(r), \
        (unsigned)end_of(r)

static size_t end_of(size_t r) { return P.c.s.ends ? P.c.s.ends[r] : P.c.s.cols; }
static size_t first_of(size_t r) { return P.c.s.starts ? P.c.s.starts[r] : 0; }
static size_t head_of(size_t r) {
    const size_t head = P.a.head_rows ? r / P.a.head_rows : 0;
    return P.a.heads ? head % P.a.heads : head;
}
static size_t at(role a, size_t r, size_t i) {
    size_t stride = *stride_of(P.f, &P.c.s, a);
    return r * (stride ? stride : P.c.s.cols) + i;
}
static size_t bias_at(size_t r, size_t i) {
    return r % (P.a.bias_rows ? P.a.bias_rows : P.c.s.rows) * (P.a.bias_stride ? P.a.bias_stride : P.c.s.cols) + i;
}

static void set_value(void *a, size_t i, wide v) {
    if (v == -INFINITY) {
        set_special(P.f, a, i, MINUS_INF);
    } else {
        set(P.f, a, i, (double)v);
    }
}

static int is_minus_inf(const void *a, size_t i) { return is_special(P.f, a, i, MINUS_INF); }

static entry_kind kind_of(size_t r, size_t i) {
    const void *x = P.c.array[X];
    if (i < first_of(r) || i >= end_of(r)) { return OUTSIDE; }
    if (is_minus_inf(x, at(X, r, i))) { return MASK; }
    if (P.c.s.attention && P.a.masked < 0 && get(P.f, x, at(X, r, i)) <= P.a.masked) { return MASK; }
    if (P.c.s.attention && P.a.bias && is_minus_inf(P.a.bias, bias_at(r, i))) { return MASK; }
    return ACTIVE;
}

/* Fills P with random rows, some of them empty where the options allow it. Entries that must not be read are NaN. Some
 * calls are batches, whose heads repeat. */
static void make(const function *f, size_t cols, unsigned on, uint64_t seed) {
    static const double masked_at[] = {-1e4, -1e9, -FLT_MAX};
    static const double scales[HEADS] = {0.7, 1.9, 0.3}, slopes[HEADS] = {-0.7, 0, 1.25};
    const size_t order = (size_t)f->order;
    if (!takes_sinks(f)) { on &= ~(unsigned)(SINKS | HIGH_SINKS); }
    memset(&P, 0, sizeof P);
    P.f = f;
    P.on = on;
    random_state = seed * 7919 + cols * 31 + on;
    for (int a = 0; a < ARRAYS; ++a) { P.c.array[a] = storage[a]; }
    memset(row_storage, 0, sizeof row_storage);
    memset(&gp_storage, 0, sizeof gp_storage);
    P.c.per_row = row_storage;
    P.c.gp = &gp_storage;
    P.p = params_of_order[order];
    P.c.p = order ? &P.p : NULL;
    P.c.epsilon = f->epsilon;
    P.c.s = mmax_rows(ROWS, cols);
    P.c.s.x_stride = cols + 1;
    P.c.s.y_stride = cols + 3;
    P.c.s.gx_stride = cols + 4;
    P.c.s.gy_stride = cols + 2;
    P.c.s.scale = seed % 2 ? 1.25 : 0;
    for (size_t r = 0; r < ROWS; ++r) {
        P.ends[r] = (uint32_t)(r == 4 ? 0 : r == 1 ? cols : cols - random_below(cols) / 2);
        P.starts[r] = (uint32_t)random_below((on & LENGTHS ? P.ends[r] : cols) / 2 + 1);
        if (r == 3) { P.starts[r] = on & LENGTHS ? P.ends[r] : (uint32_t)cols; }
        P.scales[r] = scales[r % HEADS];
        P.slopes[r] = slopes[r % HEADS];
        P.sinks[r] = on & HIGH_SINKS ? (r % 3 == 0 ? 30 : r % 3 == 1 ? -30 : 6.3) : r % 3 == 1 ? 0 : 1.1 * (double)r;
    }
    if (on & (SCALES | SLOPES | SINKS | HIGH_SINKS)) { P.a.heads = seed % 3 == 1 ? HEADS - 1 : 0; }
    P.sinks[P.a.heads ? 1 : HEADS - 1] = double_of(0xfff0000000000000); /* -inf: none */
    for (size_t r = P.a.heads; r > 0 && r < ROWS; ++r) {
        P.scales[r] = P.slopes[r] = P.sinks[r] = double_of(0x7ff8000000000000);
    }
    if (on & LENGTHS) { P.c.s.ends = P.ends; }
    if (on & STARTS) { P.c.s.starts = P.starts; }
    if (on & ~(unsigned)(STARTS | LENGTHS | MASK_X)) { P.c.s.attention = &P.a; }
    if (on & (SCALES | SLOPES | SINKS | HIGH_SINKS)) { P.a.head_rows = HEAD_ROWS; }
    if (on & SCALES) { P.a.scales = P.scales; }
    if (on & SLOPES) { P.a.slopes = P.slopes; }
    if (on & (SINKS | HIGH_SINKS)) { P.a.sinks = P.sinks; }
    if (on & FINITE_MASK) { P.a.masked = masked_at[seed % 3]; }
    if (on & BIAS) {
        P.a.bias = bias_storage;
        P.a.bias_rows = on & BROADCAST ? 2 : on & ONE_BIAS_ROW ? 1 : seed % 2 ? 0 : ROWS;
        P.a.bias_stride = on & TIGHT_BIAS ? 0 : cols + 2;
        for (size_t i = 0; i < ROWS * (cols + 2); ++i) { set_special(f, bias_storage, i, QUIET_NAN); }
    }
    for (size_t r = 0; r < ROWS; ++r) {
        for (size_t i = 0; i < cols + 1; ++i) { set_special(f, P.c.array[X], at(X, r, 0) + i, QUIET_NAN); }
        for (size_t i = first_of(r); i < end_of(r); ++i) {
            size_t to = at(X, r, i);
            set(f, P.c.array[X], to, 1.7 * random_normal());
            if (on & MASK_X && (r == 5 || random_below(5) == 0)) { set_special(f, P.c.array[X], to, MINUS_INF); }
            if (on & FINITE_MASK && random_below(6) == 0) {
                set(f, P.c.array[X], to, random_below(2) ? P.a.masked : -largest(f));
            }
            if (on & BIAS && is_special(f, bias_storage, bias_at(r, i), QUIET_NAN)) {
                set(f, bias_storage, bias_at(r, i), 1.5 * random_normal());
                if (on & MASK_BIAS && random_below(6) == 0) { set_special(f, bias_storage, bias_at(r, i), MINUS_INF); }
            }
        }
    }
    for (size_t r = 0; r < ROWS; ++r) {
        for (size_t i = 0; i < cols; ++i) {
            kinds[r * cols + i] = (unsigned char)kind_of(r, i);
            set_special(f, P.c.array[GY], at(GY, r, i), QUIET_NAN);
            if (kinds[r * cols + i] == ACTIVE) { set(f, P.c.array[GY], at(GY, r, i), random_normal()); }
        }
    }
}

static void load(size_t r) {
    const mmax_attention *a = P.c.s.attention;
    double par[PARAMETERS];
    memcpy(par, P.p.t_b, sizeof par);
    R.f = formula_of(P.f);
    R.logarithm = P.f->kind == LOGARITHM || P.f->kind == LOG_BACKWARD;
    R.order = P.p.order;
    R.epsilon = P.c.epsilon;
    R.has_bias = a && a->bias;
    R.scale = a && a->scales ? a->scales[head_of(r)] : P.c.s.scale != 0 ? P.c.s.scale : 1;
    R.slope = a && a->slopes ? a->slopes[head_of(r)] : 1;
    R.sink = -INFINITY;
    if (a && a->sinks && bits_of(a->sinks[head_of(r)]) != 0xfff0000000000000) { R.sink = a->sinks[head_of(r)]; }
    for (size_t k = 0; k < PARAMETERS; ++k) { R.par[k] = par[k]; }
    R.n = P.c.s.cols;
    for (size_t i = 0; i < R.n; ++i) {
        R.kind[i] = kinds[r * R.n + i];
        R.x[i] = R.b[i] = R.gy[i] = 0;
        if (R.kind[i] != ACTIVE) { continue; }
        R.x[i] = get(P.f, P.c.array[X], at(X, r, i));
        R.b[i] = R.has_bias ? get(P.f, P.a.bias, bias_at(r, i)) : 0;
        R.gy[i] = get(P.f, P.c.array[GY], at(GY, r, i));
    }
}

static uint64_t idle_bits(const function *f, entry_kind k) {
    return k == MASK ? (begins(f->name, "softcap") && f->kind == FORWARD ? special_bits(f, MINUS_INF) : masked_bits(f))
                     : empty_bits(f);
}

static size_t out_room(void) { return (at(OUT, ROWS - 1, P.c.s.cols)) * P.f->size; }

/* The bytes between rows must stay as they are. */
static void clear_out(void) { memset(storage[OUT], 0x5a, at(OUT, ROWS, 0) * P.f->size); }

static void check_gaps(const char *what) {
    size_t wrong = 0;
    for (size_t r = 0; r < ROWS; ++r) {
        for (size_t i = at(OUT, r, P.c.s.cols); i < at(OUT, r + 1, 0); ++i) {
            wrong += get_bits(P.f, storage[OUT], i) != (P.f->size == 4 ? 0x5a5a5a5a : 0x5a5a5a5a5a5a5a5a);
        }
    }
    CHECK(!wrong, WHERE ": %u entries between rows written, %s", WHERE_ARGS(0), (unsigned)wrong, what);
}

/* ==== forward ==== */

static wide want[ROOM], allowed[ROOM], want_lse[ROWS], allowed_lse[ROWS];
static unsigned char skip_row[ROWS];
static unsigned long rows_seen, rows_skipped;

static void expect_forward(void) {
    for (size_t r = 0; r < ROWS; ++r) {
        wide mean, most;
        load(r);
        evaluate();
        mean = average_unit(&most);
        skip_row[r] = (unsigned char)is_ambiguous(P.f);
        ++rows_seen;
        rows_skipped += skip_row[r];
        want_lse[r] = R.lse;
        allowed_lse[r] = (P.f->size == 4 ? 2e-7 : 4e-16 * SLACK) * fmaxl(fabsl(R.lse), 1) +
                         SCORE_ROUNDINGS * ANY_ROUNDING(P.f) * mean;
        for (size_t i = 0; i < R.n; ++i) {
            want[r * R.n + i] = R.y[i];
            allowed[r * R.n + i] = R.kind[i] == ACTIVE ? tolerance_of(P.f, i, mean, most) : 0;
        }
    }
}

static void check_forward_row(const void *out, size_t r) {
    size_t n = P.c.s.cols;
    for (size_t i = 0; i < n; ++i) {
        size_t o = at(OUT, r, i);
        entry_kind k = (entry_kind)kinds[r * n + i];
        if (k != ACTIVE) {
            CHECK(get_bits(P.f, out, o) == idle_bits(P.f, k), WHERE ": y[%u], %s, is %g", WHERE_ARGS(r), (unsigned)i,
                  k == MASK ? "masked" : "outside", get(P.f, out, o));
        } else if (!skip_row[r]) {
            wide got = get(P.f, out, o);
            CHECK(fabsl(got - want[r * n + i]) <= allowed[r * n + i],
                  WHERE ": y[%u] is %.17Lg, not %.17Lg, off by %.3Lg of what is allowed", WHERE_ARGS(r), (unsigned)i,
                  got, want[r * n + i], fabsl(got - want[r * n + i]) / allowed[r * n + i]);
            CHECK(!is_subnormal_at(P.f, out, o), WHERE ": y[%u] is the subnormal %Lg", WHERE_ARGS(r), (unsigned)i, got);
            CHECK(!has(P.f, PROBABILITY) || got > 0 || get_bits(P.f, out, o) == 0, WHERE ": y[%u] is %Lg, not +0",
                  WHERE_ARGS(r), (unsigned)i, got);
        }
    }
}

static void check_lse(const double *lse, size_t r) {
    if (want_lse[r] == -INFINITY) {
        CHECK(bits_of(lse[r]) == 0xfff0000000000000, WHERE ": lse is %g, not -inf", WHERE_ARGS(r), lse[r]);
    } else {
        CHECK(fabsl(lse[r] - want_lse[r]) <= allowed_lse[r], WHERE ": lse is %.17g, not %.17Lg", WHERE_ARGS(r), lse[r],
              want_lse[r]);
    }
}

/* The call on row r alone: its arrays begin there. */
static call alone(size_t r, mmax_attention *a) {
    call c = P.c;
    for (int k = 0; k < ARRAYS; ++k) { c.array[k] = (char *)c.array[k] + at((role)k, r, 0) * P.f->size; }
    c.s.rows = 1;
    c.s.ends = c.s.ends ? c.s.ends + r : NULL;
    c.s.starts = c.s.starts ? c.s.starts + r : NULL;
    c.per_row = c.per_row + r;
    *a = P.a;
    if (a->scales) { a->scales += head_of(r); }
    if (a->slopes) { a->slopes += head_of(r); }
    if (a->sinks) { a->sinks += head_of(r); }
    if (a->bias) { a->bias = (const char *)a->bias + bias_at(r, 0) * P.f->size; }
    a->bias_rows = 0;
    a->head_rows = a->heads = 0;
    if (c.s.attention) { c.s.attention = a; }
    return c;
}

static int same_row(const void *a, const void *b, size_t r) {
    size_t from = at(OUT, r, 0) * P.f->size;
    return memcmp((const char *)a + from, (const char *)b + from, P.c.s.cols * P.f->size) == 0;
}

/* Row 2 gets a NaN: in x or, where there is one of its own, in the bias. */
static void check_nan_row(const double *lse) {
    double again[ROWS];
    size_t r = 2, n = P.c.s.cols, first = n;
    int in_bias = P.on & BIAS && (P.a.bias_rows == 0 || P.a.bias_rows == ROWS);
    void *a = in_bias ? (void *)bias_storage : P.c.array[X];
    size_t where;
    uint64_t before;
    for (size_t i = 0; i < n; ++i) { first = kinds[r * n + i] == ACTIVE && (first == n || i % 3 == 1) ? i : first; }
    if (first == n) { return; }
    where = in_bias ? bias_at(r, first) : at(X, r, first);
    before = get_bits(P.f, a, where);
    set_special(P.f, a, where, n % 2 ? PLUS_INF : NEGATIVE_NAN);
    clear_out();
    memset(again, 0x5a, sizeof again);
    P.c.per_row = again;
    CHECK(P.f->run(&P.c) == MMAX_OK, WHERE, WHERE_ARGS(r));
    P.c.per_row = row_storage;
    for (size_t k = 0; k < ROWS; ++k) {
        if (k != r) {
            CHECK(same_row(storage[OUT], kept_out, k), WHERE ": changed by a NaN of row 2", WHERE_ARGS(k));
            CHECK(!is_lse(P.f) || bits_of(again[k]) == bits_of(lse[k]), WHERE ": lse changed by a NaN of row 2",
                  WHERE_ARGS(k));
        }
    }
    CHECK(!is_lse(P.f) || is_nan_double(again[r]), WHERE ": lse of a NaN row is %g", WHERE_ARGS(r), again[r]);
    for (size_t i = 0; i < n; ++i) {
        size_t o = at(OUT, r, i);
        entry_kind k = (entry_kind)kinds[r * n + i];
        int is_nan = is_special(P.f, storage[OUT], o, QUIET_NAN);
        if (k != ACTIVE) {
            CHECK(get_bits(P.f, storage[OUT], o) == idle_bits(P.f, k), WHERE ": y[%u] of a NaN row, %s, is %g",
                  WHERE_ARGS(r), (unsigned)i, k == MASK ? "masked" : "outside", get(P.f, storage[OUT], o));
        } else if (has(P.f, ELEMENTWISE) && i != first) {
            CHECK(get_bits(P.f, storage[OUT], o) == get_bits(P.f, kept_out, o), WHERE ": y[%u] changed by a NaN at %u",
                  WHERE_ARGS(r), (unsigned)i, (unsigned)first);
        } else {
            CHECK(is_nan, WHERE ": y[%u] is %g where %s[%u] is NaN or +inf", WHERE_ARGS(r), (unsigned)i,
                  get(P.f, storage[OUT], o), in_bias ? "bias" : "x", (unsigned)first);
        }
    }
    set_bits(P.f, a, where, before);
}

static void check_forward(const function *f, size_t cols, unsigned on, uint64_t seed) {
    int seen_fma = 0;
    double lse[ROWS], lse_fma[ROWS] = {0};
    make(f, cols, on, seed);
    expect_forward();
    FOR_EACH_ISA(isa) {
        mmax_shape s = P.c.s;
        clear_out();
        memset(row_storage, 0x5a, sizeof row_storage);
        CHECK(f->run(&P.c) == MMAX_OK, WHERE, WHERE_ARGS(0));
        for (size_t r = 0; r < ROWS; ++r) {
            check_forward_row(storage[OUT], r);
            if (is_lse(f)) { check_lse(row_storage, r); }
        }
        check_gaps("out of place");
        memcpy(kept_out, storage[OUT], out_room());
        memcpy(lse, row_storage, sizeof lse);
        if (uses_fma(isa)) {
            if (seen_fma) {
                for (size_t r = 0; r < ROWS; ++r) {
                    CHECK(same_row(kept_out, first_fma, r), WHERE ": other bits than with other fma", WHERE_ARGS(r));
                    CHECK(!is_lse(f) || bits_of(lse[r]) == bits_of(lse_fma[r]), WHERE ": lse has other bits",
                          WHERE_ARGS(r));
                }
            } else {
                memcpy(first_fma, kept_out, out_room());
                memcpy(lse_fma, lse, sizeof lse);
                seen_fma = 1;
            }
        }
        /* in place */
        memcpy(kept_x, storage[X], at(X, ROWS - 1, cols) * f->size);
        P.c.array[OUT] = P.c.array[X];
        P.c.s.y_stride = P.c.s.x_stride;
        memset(row_storage, 0x5a, sizeof row_storage);
        CHECK(f->run(&P.c) == MMAX_OK, WHERE ", in place", WHERE_ARGS(0));
        for (size_t r = 0; r < ROWS; ++r) {
            CHECK(memcmp((char *)storage[X] + at(X, r, 0) * f->size, (char *)kept_out + r * s.y_stride * f->size,
                         cols * f->size) == 0,
                  WHERE ": in place gives other bits", WHERE_ARGS(r));
            CHECK(!is_lse(f) || bits_of(row_storage[r]) == bits_of(lse[r]), WHERE ": lse in place has other bits",
                  WHERE_ARGS(r));
        }
        memcpy(storage[X], kept_x, at(X, ROWS - 1, cols) * f->size);
        P.c.array[OUT] = storage[OUT];
        P.c.s = s;
        if (is_lse(f)) {
            P.c.array[OUT] = NULL;
            memset(row_storage, 0x5a, sizeof row_storage);
            CHECK(f->run(&P.c) == MMAX_OK, WHERE ", y NULL", WHERE_ARGS(0));
            for (size_t r = 0; r < ROWS; ++r) {
                CHECK(bits_of(row_storage[r]) == bits_of(lse[r]), WHERE ": its lse without y", WHERE_ARGS(r));
            }
            P.c.array[OUT] = storage[OUT];
        }
        if (seed % 3 == 0 || on == (EVERYTHING & ~(unsigned)SINKS)) {
            for (size_t r = 0; r < ROWS; ++r) {
                mmax_attention a;
                call c = alone(r, &a);
                clear_out();
                CHECK(f->run(&c) == MMAX_OK, WHERE ", alone", WHERE_ARGS(r));
                CHECK(same_row(storage[OUT], kept_out, r), WHERE ": the row alone has other bits", WHERE_ARGS(r));
                CHECK(!is_lse(f) || bits_of(row_storage[r]) == bits_of(lse[r]), WHERE ": its lse alone", WHERE_ARGS(r));
            }
        }
        check_nan_row(lse);
    }
}

/* A log-sum-exp without y: first only one part of the row is active, then all are, and that part holds a NaN. */
static void check_parts_of_lse(void) {
    enum { N = 5000, PART = 1250 };
    static float x[N], y[N], bias[N];
    for (int part = 0; part < N / PART; ++part) {
        mmax_shape s = mmax_row(N);
        mmax_attention a = {0};
        double whole = 0, alone = 1;
        a.bias = bias;
        s.attention = &a;
        for (int i = 0; i < N; ++i) {
            x[i] = (float)(i % 7);
            bias[i] = i / PART == part ? 0 : -INFINITY;
        }
        mmax_softmax_lse_f32(y, &whole, x, s);
        mmax_softmax_lse_f32(NULL, &alone, x, s);
        CHECK(whole > 0 && bits_of(whole) == bits_of(alone), "part %d alone: %g, not %g", part, alone, whole);
        memset(bias, 0, sizeof bias);
        bias[part * PART] = NAN;
        mmax_softmax_lse_f32(NULL, &alone, x, s);
        CHECK(is_nan_double(alone), "NaN in part %d: %g", part, alone);
    }
}

/* A bias of +inf, and its slope. */
static void check_infinite_bias(size_t n, double slope) {
    static float x[300], y[300], bias[300];
    mmax_shape s = mmax_row(n);
    mmax_attention a = {0};
    memset(bias, 0, sizeof bias);
    bias[n / 2] = INFINITY;
    a.bias = bias;
    a.slopes = &slope;
    s.attention = &a;
    mmax_softmax_f32(y, x, s);
    for (size_t i = 0; i < n; ++i) {
        CHECK(is_nan_double((double)y[i]), "slope %g, %u entries: y[%u] is %g", slope, (unsigned)n, (unsigned)i,
              (double)y[i]);
    }
}

/* The score of the last entry overflows, as x or the bias alone would mask it. */
static void check_overflowing_score(int by_bias) {
    const float gy[3] = {1, 2, 3}, bias[3] = {0, 0, by_bias ? -INFINITY : -3e38f}, x[3] = {0.2f, 0.5f, -3e38f};
    float y[3], gx[3], hourglass[3];
    double gq = 0;
    mmax_shape s = mmax_row(3);
    mmax_attention a = {0};
    a.bias = bias;
    s.attention = &a;
    CHECK(mmax_tanhmax_f32(y, x, s) == MMAX_OK && mmax_tanhmax_backward_f32(gx, gy, y, x, s) == MMAX_OK, "status");
    CHECK(mmax_sparsehourglass_f32(y, x, 1, s) == MMAX_OK &&
              mmax_sparsehourglass_backward_f32(hourglass, &gq, gy, y, x, 1, s) == MMAX_OK,
          "status");
    CHECK(fabsf(gx[0]) < 9 && gx[0] != 0 && gx[2] == 0, "tanhmax: gx is %g %g %g", (double)gx[0], (double)gx[1],
          (double)gx[2]);
    CHECK(fabsf(hourglass[0]) < 9 && hourglass[0] != 0 && hourglass[2] == 0 && fabs(gq) < 9,
          "sparsehourglass: gx is %g %g %g, gq %g", (double)hourglass[0], (double)hourglass[1], (double)hourglass[2],
          gq);
}

static void forward_function(const function *f) {
    static const size_t some[] = {1, 2, 3, 7, 8, 16, 17, 33, 64, 65, 70}, all_long[3] = {300, 2100, 5000};
    for (size_t k = 0; k < COUNT(in_turn); ++k) {
        for (size_t i = 0; i<COUNT(some); i += LENGTH_STEP> 1 ? 4 : 1) { check_forward(f, some[i], in_turn[k], i + k); }
        if (k % LENGTH_STEP == 0) { check_forward(f, 300, in_turn[k], k + 1); }
    }
    for (size_t n = 1; n <= 70; n += LENGTH_STEP) {
        check_forward(f, n, EVERYTHING, n);
        check_forward(f, n, EVERYTHING & ~(unsigned)(MASK_X | MASK_BIAS | FINITE_MASK), n);
    }
    check_forward(f, 5000, LENGTHS, 1);
    check_forward(f, 5000, BIAS, 1); /* its scores do not fit into 16 kB */
    if (takes_sinks(f)) { check_forward(f, 5000, HIGH_SINKS, 1); }
    if (is_lse(f)) { check_forward(f, 5000, FINITE_MASK | HIGH_SINKS, 1); }
    for (size_t i = 0; i < LONG_ROWS; ++i) {
        check_forward(f, all_long[i], EVERYTHING, i);
        check_forward(f, all_long[i], BIAS | SLOPES | STARTS, i);
        check_forward(f, all_long[i], FINITE_MASK | HIGH_SINKS, i + 1);
    }
}

/* ==== backward ==== */

static unsigned long differences, differences_skipped;

/* Sums over a row of the terms of its gradients; y_error[i] is the error of the root of y that comes from rounding y. */
static struct { wide dot, norm, mean, sum_gy, shaken, y_error[LONGEST]; } G;

static void gradient_sums(void) {
    int sparse = R.f == SPARSEMAX || R.f == ENTMAX15;
    wide most, average = average_unit(&most);
    G.dot = G.norm = G.mean = G.sum_gy = G.shaken = 0;
    for (size_t k = 0; k < R.n; ++k) {
        wide root = R.f == ENTMAX15 ? sqrtl(R.y[k]) : R.f == SPARSEMAX ? (R.y[k] > 0) : fabsl(R.y[k]);
        G.y_error[k] = 0;
        if (R.kind[k] != ACTIVE) { continue; }
        G.norm += sparse ? root : 0;
        G.dot += root * fabsl(R.gy[k]);
        G.sum_gy += fabsl(R.gy[k]);
    }
    G.mean = sparse ? G.dot / G.norm : 0;
    for (size_t k = 0; k < R.n && R.f == ENTMAX15; ++k) {
        wide t;
        if (R.kind[k] != ACTIVE || !(R.y[k] > 0)) { continue; }
        t = tolerance_of(P.f, k, average, most);
        G.y_error[k] = t / fmaxl(sqrtl(R.y[k]), sqrtl(t));
        G.shaken += G.y_error[k] * (fabsl(R.gy[k]) + G.mean);
    }
}

/* The magnitude to which roundings of the gradient of normalised score i are relative, without sigma's slope and the
 * scale; *extra is the effect of the rounding of y on entmax15. */
static wide gradient_unit(size_t i, wide *extra) {
    wide own = fabsl(R.gy[i]);
    *extra = 0;
    switch (R.f) {
    case SEGLU: return own;
    case SPARSEMAX: return R.y[i] > 0 ? own + G.mean : 0;
    case ENTMAX15:
        *extra = G.y_error[i] * (own + G.mean) + sqrtl(R.y[i]) * G.shaken / G.norm;
        return sqrtl(R.y[i]) * (own + G.mean);
    case TANHMAX: return (expl(R.s[i] - R.top) + expl(-R.s[i] - R.top)) / R.tanh_sum * own + fabsl(R.y[i]) * G.dot;
    default: return R.logarithm ? own + expl(R.y[i]) * G.sum_gy * (1 + fabsl(R.y[i])) : R.y[i] * (own + G.dot);
    }
}

static wide size_of_gy(void) {
    wide m = 0;
    for (size_t i = 0; i < R.n; ++i) { m = fmaxl(m, fabsl(R.gy[i])); }
    return R.logarithm || R.f == SEGLU ? 8 * m * (wide)R.n : m;
}

typedef struct expected {
    size_t count, row[ROWS * 80], entry[ROWS * 80];
    wide gx[ROWS * 80], gx_allowed[ROWS * 80];
    wide gp[PARAMETERS], gp_allowed[PARAMETERS], scale[HEADS], scale_allowed[HEADS], sink[HEADS], sink_allowed[HEADS];
    int gp_smooth[PARAMETERS], scale_smooth[HEADS];
} expected;
static expected E;

/* Differences of the sum of gy y with respect to x, parameters, scales and sinks. */
static void expect_backward(void) {
    memset(&E, 0, sizeof E);
    for (size_t k = 0; k < PARAMETERS; ++k) { E.gp_smooth[k] = 1; }
    for (size_t h = 0; h < HEADS; ++h) { E.scale_smooth[h] = 1; }
    for (size_t r = 0; r < ROWS; ++r) {
        size_t h = head_of(r), step;
        wide most, mean, floor_here, d, dot = 0;
        double eps = ANY_ROUNDING(P.f);
        int ambiguous;
        load(r);
        evaluate();
        if (R.active == 0) { continue; }
        ambiguous = is_ambiguous(P.f);
        mean = average_unit(&most);
        gradient_sums();
        floor_here = 1e-12L * (wide)SLACK * size_of_gy();
        step = R.n <= 24 ? 1 : R.n / 5;
        for (size_t i = 0; i < R.n; ++i) {
            wide extra, u, factor;
            unit v;
            if (R.kind[i] != ACTIVE) { continue; }
            v = unit_of(i);
            factor = eps * (16 + SCORE_ROUNDINGS * (v.score + mean + (R.logarithm ? fabsl(R.y[i]) : 0)));
            dot += fabsl(R.y[i] * R.gy[i]) * (1 + v.score + mean);
            u = gradient_unit(i, &extra);
            for (size_t k = 0; k < PARAMETERS; ++k) { E.gp_allowed[k] += factor * u * v.par[k]; }
            E.scale_allowed[h] += (u * factor * v.slope + extra + floor_here) * (fabsl(R.x[i]) + 1);
            if ((i + r) % step == 0) {
                int smooth = differentiate(&R.x[i], weighted_sum, &d);
                ++differences;
                differences_skipped += !smooth || ambiguous;
                if (smooth && !ambiguous && E.count < COUNT(E.row)) {
                    E.row[E.count] = r;
                    E.entry[E.count] = i;
                    E.gx[E.count] = d;
                    E.gx_allowed[E.count] = R.scale * (u * factor * v.slope + extra) + floor_here * (1 + R.scale) +
                                            smallest_normal(P.f) * (1 + R.scale);
                    ++E.count;
                }
            }
        }
        for (size_t k = 0; k < PARAMETERS && P.f->order; ++k) {
            if (k % 2 >= (size_t)R.order) { continue; }
            E.gp_smooth[k] = E.gp_smooth[k] && differentiate(&R.par[k], weighted_sum, &d);
            E.gp[k] += d;
            E.gp_allowed[k] += 100 * floor_here;
        }
        E.scale_smooth[h] = E.scale_smooth[h] && differentiate(&R.scale, weighted_sum, &d) && !ambiguous;
        E.scale[h] += d;
        if (takes_sinks(P.f) && R.sink > -INFINITY) {
            (void)differentiate(&R.sink, weighted_sum, &d);
            E.sink[h] += d;
        }
        E.sink_allowed[h] += 16 * eps * dot + floor_here;
    }
}

static void check_gx(const void *out, size_t stride, const char *how) {
    for (size_t k = 0; k < E.count; ++k) {
        wide got = get(P.f, out, E.row[k] * stride + E.entry[k]);
        CHECK(fabsl(got - E.gx[k]) <= E.gx_allowed[k],
              WHERE ", %s: gx[%u] is %.12Lg, not %.12Lg, %.3Lg of what is allowed", WHERE_ARGS(E.row[k]), how,
              (unsigned)E.entry[k], got, E.gx[k], fabsl(got - E.gx[k]) / E.gx_allowed[k]);
    }
    for (size_t r = 0; r < ROWS; ++r) {
        for (size_t i = 0; i < P.c.s.cols; ++i) {
            if (kinds[r * P.c.s.cols + i] != ACTIVE) {
                CHECK(get_bits(P.f, out, r * stride + i) == 0, WHERE ", %s: gx[%u], %s, is %g", WHERE_ARGS(r), how,
                      (unsigned)i, kinds[r * P.c.s.cols + i] == MASK ? "masked" : "outside",
                      get(P.f, out, r * stride + i));
            }
        }
    }
}

static void check_gp(const mmax_multimax_grads *gp, const double *before, const char *how) {
    double after[PARAMETERS];
    memcpy(after, gp, sizeof after);
    for (size_t k = 0; k < PARAMETERS; ++k) {
        wide got = (wide)after[k] - before[k];
        if (k % 2 >= (size_t)P.f->order) {
            CHECK(bits_of(after[k]) == bits_of(before[k]), WHERE ", %s: gp[%u] of another order touched", WHERE_ARGS(0),
                  how, (unsigned)k);
            continue;
        }
        ++differences;
        differences_skipped += !E.gp_smooth[k];
        CHECK(!E.gp_smooth[k] || fabsl(got - E.gp[k]) <= E.gp_allowed[k] + 1e-14L * (fabsl(E.gp[k]) + 10),
              WHERE ", %s: gp[%u] is %.12Lg, not %.12Lg", WHERE_ARGS(0), how, (unsigned)k, got, E.gp[k]);
    }
}

/* gx at P.c.array[OUT]: the gradients of the scales, and from y and gy those of the sinks. */
static void check_head_gradients(void) {
    static double added[ROWS];
    const function *scale_gradient = more_named("scale_gradient", P.f->size);
    const function *sink_gradient = more_named("sink_gradient", P.f->size);
    size_t heads = P.a.heads ? P.a.heads : P.a.head_rows ? HEADS : 1;
    call c = P.c;
    wide direct[HEADS] = {0}, size[HEADS] = {0}, sinks[HEADS] = {0}, sink_size[HEADS] = {0};
    for (size_t r = 0; r < ROWS; ++r) {
        wide total = 0, dot = 0, magnitude = 0;
        load(r);
        for (size_t i = 0; i < R.n; ++i) {
            wide gx, y;
            if (R.kind[i] != ACTIVE) { continue; }
            gx = get(P.f, storage[OUT], at(OUT, r, i));
            direct[head_of(r)] += gx * R.x[i] / R.scale;
            size[head_of(r)] += fabsl(gx * R.x[i] / R.scale);
            y = get(P.f, storage[Y], at(Y, r, i));
            total += y;
            dot += y * R.gy[i];
            magnitude += fabsl(y * R.gy[i]);
        }
        sinks[head_of(r)] -= (1 - total) * dot;
        sink_size[head_of(r)] += magnitude;
    }
    for (size_t h = 0; h < ROWS; ++h) { added[h] = 0.5 + (double)h; }
    c.array[GY] = storage[OUT]; /* gx */
    c.per_row = added;
    CHECK(scale_gradient->run(&c) == MMAX_OK, WHERE ", scale_gradient", WHERE_ARGS(0));
    for (size_t h = 0; h < ROWS; ++h) {
        wide got = (wide)added[h] - 0.5L - (wide)h;
        if (h >= heads) {
            CHECK(got == 0, WHERE ": scale gradient of head %u, which there is not", WHERE_ARGS(0), (unsigned)h);
            continue;
        }
        CHECK(fabsl(got - direct[h]) <= (P.f->size == 4 ? 1e-6 : 1e-14 * SLACK) * (size[h] + 1e-9L) + 1e-14L,
              WHERE ": scale gradient of head %u is %.12Lg, but sum gx x / scale %.12Lg", WHERE_ARGS(0), (unsigned)h,
              got, direct[h]);
        ++differences;
        differences_skipped += !E.scale_smooth[h];
        CHECK(!E.scale_smooth[h] || fabsl(got - E.scale[h]) <= E.scale_allowed[h] + 1e-13L * (1 + fabsl(got)),
              WHERE ": scale gradient of head %u is %.12Lg, but %.12Lg by differences", WHERE_ARGS(0), (unsigned)h, got,
              E.scale[h]);
    }
    if (!takes_sinks(P.f) || !P.a.sinks) { return; }
    c = P.c;
    for (size_t h = 0; h < ROWS; ++h) { added[h] = 0.5 + (double)h; }
    c.per_row = added;
    CHECK(sink_gradient->run(&c) == MMAX_OK, WHERE ", sink_gradient", WHERE_ARGS(0));
    for (size_t h = 0; h < ROWS; ++h) {
        wide got = (wide)added[h] - 0.5L - (wide)h;
        if (h >= heads) {
            CHECK(got == 0, WHERE ": sink gradient of head %u, which there is not", WHERE_ARGS(0), (unsigned)h);
            continue;
        }
        CHECK(fabsl(got - sinks[h]) <= 8 * ANY_ROUNDING(P.f) * sink_size[h] + 1e-14L,
              WHERE ": sink gradient of head %u is %.12Lg, but - (1 - sum y) (sum y gy) %.12Lg", WHERE_ARGS(0),
              (unsigned)h, got, sinks[h]);
        if (bits_of(P.sinks[h]) != 0xfff0000000000000) {
            CHECK(fabsl(got - E.sink[h]) <= E.sink_allowed[h] + 1e-14L,
                  WHERE ": sink gradient of head %u is %.12Lg, but %.12Lg by differences", WHERE_ARGS(0), (unsigned)h,
                  got, E.sink[h]);
        }
    }
}

static void check_backward(const function *f, size_t cols, unsigned on, uint64_t seed) {
    static const double before[PARAMETERS] = {0.5, -1, 2, 3, -0.25, 1, 0, 7};
    make(f, cols, on, seed);
    expect_backward();
    FOR_EACH_ISA(isa) {
        call c = P.c;
        mmax_shape s = P.c.s;
        size_t gx_stride = P.c.s.gx_stride;
        c.array[OUT] = storage[Y];
        CHECK(!has(f, HAS_Y) || f->forward(&c) == MMAX_OK, WHERE ", its forward function", WHERE_ARGS(0));
        for (size_t r = 0; r < ROWS; ++r) {
            for (size_t i = 0; i < cols && has(f, HAS_Y); ++i) {
                if (kinds[r * cols + i] == OUTSIDE) { set_special(f, storage[Y], at(Y, r, i), QUIET_NAN); }
            }
        }
        memcpy(&gp_storage, before, sizeof before);
        clear_out();
        CHECK(f->run(&P.c) == MMAX_OK, WHERE, WHERE_ARGS(0));
        check_gx(storage[OUT], gx_stride, "gx");
        check_gaps("gx");
        if (has(f, HAS_GP)) { check_gp(&gp_storage, before, "gx and gp"); }
        for (size_t r = 0; r < ROWS; ++r) { /* the value of y outside */
            for (size_t i = 0; i < cols && !has(f, HAS_Y); ++i) { set(f, storage[Y], at(Y, r, i), 0); }
        }
        check_head_gradients();
        memcpy(kept_out, storage[OUT], out_room());
        if (has(f, HAS_GP)) {
            memcpy(&gp_storage, before, sizeof before);
            P.c.array[OUT] = NULL;
            CHECK(f->run(&P.c) == MMAX_OK, WHERE ", gx NULL", WHERE_ARGS(0));
            check_gp(&gp_storage, before, "gp alone");
            P.c.array[OUT] = storage[OUT];
            P.c.gp = NULL;
            clear_out();
            CHECK(f->run(&P.c) == MMAX_OK, WHERE ", gp NULL", WHERE_ARGS(0));
            check_gx(storage[OUT], gx_stride, "gp NULL");
            P.c.gp = &gp_storage;
        }
        memcpy(kept_x, storage[GY], at(GY, ROWS - 1, cols) * f->size);
        P.c.array[OUT] = storage[GY];
        P.c.s.gx_stride = P.c.s.gy_stride;
        CHECK(f->run(&P.c) == MMAX_OK, WHERE ", in place", WHERE_ARGS(0));
        for (size_t r = 0; r < ROWS; ++r) {
            CHECK(memcmp((char *)storage[GY] + at(GY, r, 0) * f->size, (char *)kept_out + r * gx_stride * f->size,
                         cols * f->size) == 0,
                  WHERE ": gx in place of gy has other bits", WHERE_ARGS(r));
        }
        memcpy(storage[GY], kept_x, at(GY, ROWS - 1, cols) * f->size);
        P.c.array[OUT] = storage[OUT];
        P.c.s = s;
    }
}

static void backward_function(const function *f) {
    static const size_t some[] = {1, 2, 5, 17, 33};
    for (size_t k = 0; k < COUNT(in_turn); k += LENGTH_STEP) {
        check_backward(f, 9, in_turn[k], k);
        check_backward(f, 36, in_turn[k], k + 1);
    }
    for (size_t i = 0; i < COUNT(some); ++i) {
        for (uint64_t seed = 0; seed < 3; ++seed) { check_backward(f, some[i], EVERYTHING, seed); }
    }
    check_backward(f, 70, EVERYTHING, 4);
    check_backward(f, 300, EVERYTHING, 5);
    if (LONG_ROWS > 1) { check_backward(f, 2100, EVERYTHING, 6); }
}

/* ==== losses ==== */

/* Row r with weight, target and smoothing; R.weight < 0: the row is ignored. */
static void load_loss(size_t r) {
    const mmax_targets *t = &P.c.t;
    load(r);
    R.logarithm = 0;
    R.has_bias = 0;
    R.weight = t->weights ? t->weights[r] : 1;
    R.smoothing = t->label_smoothing;
    for (size_t i = 0; i < R.n; ++i) {
        R.target[i] = 0;
        if (R.kind[i] != OUTSIDE) {
            R.target[i] = t->q ? get(P.f, t->q, r * (t->q_stride ? t->q_stride : R.n) + i)
                               : t->index[r] >= 0 && (size_t)t->index[r] == i;
        }
    }
}

static wide target_of(size_t i) {
    return (1 - R.smoothing) * R.target[i] + (R.kind[i] == ACTIVE ? R.smoothing / (wide)R.active : 0);
}

/* The loss of the row, unweighted and without masked targets. */
static wide loss_of_row(void) {
    wide loss = 0;
    evaluate();
    for (size_t i = 0; i < R.n; ++i) {
        wide q = target_of(i), y = R.y[i];
        if (R.kind[i] != ACTIVE) { continue; }
        if (R.f == SPARSEMAX || R.f == ENTMAX15) {
            loss += (R.s[i] - R.top) * (y - q);
            loss += R.f == SPARSEMAX ? (q * q - y * y) / 2 : (q * sqrtl(q) - y * sqrtl(y)) * 4 / 3;
        } else {
            int below = R.f == EVSOFTMAX && !(R.s[i] >= R.mean) && R.s[i] < R.top;
            loss += q > 0 ? q * (R.lse - R.s[i] - (below ? logl(R.epsilon) : 0)) : 0;
        }
    }
    return loss;
}

enum target_kind { BY_INDEX, BY_ONE_HOT, BY_DISTRIBUTION, TARGETS };
enum { IGNORED = 2, WEIGHTLESS = 6 };

static size_t random_active(size_t r, size_t n) {
    size_t which, count = 0;
    for (size_t i = 0; i < n; ++i) { count += kinds[r * n + i] == ACTIVE; }
    if (count == 0) { return n; }
    which = random_below(count);
    for (size_t i = 0;; ++i) {
        if (kinds[r * n + i] == ACTIVE && which-- == 0) { return i; }
    }
}

/* A problem with targets of some kind: weights, smoothing, masks, and a row each that is ignored, has a masked target. */
static void make_loss(const function *f, size_t cols, unsigned on, int target, int weighted, uint64_t seed) {
    static const double smoothings[] = {0, 0.1, 0.5}, grad_scales[] = {0, 0.25, -3};
    int sparse = formula_of(f) == SPARSEMAX || formula_of(f) == ENTMAX15;
    make(f, cols, on & (STARTS | LENGTHS | MASK_X), seed);
    P.c.t = target == BY_INDEX ? mmax_labels(index_storage) : mmax_distributions(q_storage);
    P.c.t.label_smoothing = smoothings[seed % 3];
    P.c.t.grad_scale = grad_scales[seed / 2 % 3];
    if (target != BY_INDEX) { P.c.t.q_stride = seed % 2 ? 0 : cols + 5; }
    for (size_t i = 0; i < ROWS * (cols + 5); ++i) { set_special(f, q_storage, i, QUIET_NAN); }
    for (size_t r = 0; r < ROWS; ++r) {
        size_t q_at = r * (P.c.t.q_stride ? P.c.t.q_stride : cols), hot = random_active(r, cols), units = 4096;
        wide sum = 0;
        P.weights[r] = weighted == 1 ? 1 : r == WEIGHTLESS ? 0 : 0.3 + 0.7 * (double)r;
        /* an empty row has no class */
        index_storage[r] = r == IGNORED || hot == cols ? -1 - (int32_t)r : (int32_t)hot;
        for (size_t i = first_of(r); i < end_of(r); ++i) {
            wide q = i == hot && (sparse || target != BY_ONE_HOT || r != IGNORED) ? 1 : 0;
            if (target == BY_DISTRIBUTION && kinds[r * cols + i] == ACTIVE) {
                if (sparse) { /* sums to 1 exactly, also as floats */
                    size_t part = random_below(units + 1) / 2;
                    units -= part;
                    q = (wide)part / 4096;
                } else {
                    q = random_below(4) ? 3 * random_uniform() / (double)cols : 0;
                }
            }
            set(f, q_storage, q_at + i, (double)q);
            sum += q;
        }
        if (target == BY_DISTRIBUTION && sparse && hot < cols) {
            set(f, q_storage, q_at + hot, get(f, q_storage, q_at + hot) + (double)(1 - sum));
        }
        if (weighted == 2 && r == WEIGHTLESS) { /* not read */
            for (size_t i = 0; i < cols; ++i) { set_special(f, storage[X], at(X, r, i), QUIET_NAN); }
        }
        if (target == BY_INDEX && r == IGNORED) {
            for (size_t i = 0; i < cols; ++i) { set_special(f, storage[X], at(X, r, i), SIGNALLING_NAN); }
        }
    }
    if (weighted) { P.c.t.weights = P.weights; }
}

static int is_silent(size_t r) {
    return (P.c.t.weights && !(P.c.t.weights[r] > 0)) || (!P.c.t.q && P.c.t.index[r] < 0);
}

typedef struct expected_loss {
    wide loss[ROWS], loss_allowed[ROWS], gp[PARAMETERS], gp_allowed[PARAMETERS];
    int infinite[ROWS], ambiguous[ROWS], gp_smooth[PARAMETERS];
    size_t count, row[ROWS * 80], entry[ROWS * 80];
    wide gx[ROWS * 80], gx_allowed[ROWS * 80];
} expected_loss;
static expected_loss L;

static void expect_losses(void) {
    wide factor = P.c.t.grad_scale != 0 ? P.c.t.grad_scale : 1, eps = ANY_ROUNDING(P.f);
    memset(&L, 0, sizeof L);
    for (size_t k = 0; k < PARAMETERS; ++k) { L.gp_smooth[k] = 1; }
    for (size_t r = 0; r < ROWS; ++r) {
        wide mean, most, condition = 0, total = 0, floor_here, d, masked_part = 0, largest_y = 0;
        size_t step;
        if (is_silent(r)) { continue; }
        load_loss(r);
        L.loss[r] = R.weight * loss_of_row();
        if (R.active == 0) {
            L.loss[r] = 0;
            continue;
        }
        L.ambiguous[r] = is_ambiguous(P.f);
        mean = average_unit(&most);
        for (size_t i = 0; i < R.n; ++i) {
            if (R.kind[i] == MASK && R.target[i] > 0) { L.infinite[r] = 1; }
            masked_part += R.kind[i] == MASK ? target_of(i) : 0;
            total += target_of(i);
            largest_y = fmaxl(largest_y, R.y[i]);
        }
        for (size_t i = 0; i < R.n; ++i) {
            if (R.kind[i] == ACTIVE && R.f == MULTIMAX) {
                condition += (target_of(i) + total * R.y[i]) * unit_of(i).score;
            }
        }
        L.loss_allowed[r] =
            R.weight * (fmaxl((P.f->size == 4 ? 1e-6L : 1e-13L * (wide)SLACK) * fabsl(L.loss[r] / R.weight),
                              (P.f->size == 4 ? 2e-7L : 2e-15L * (wide)SLACK) * fmaxl(1, total)) +
                        2 * eps * condition);
        floor_here = 1e-12L * (wide)SLACK * (total + 1);
        step = R.n <= 24 ? 1 : R.n / 5;
        for (size_t i = 0; i < R.n; ++i) {
            unit v;
            wide g;
            if (R.kind[i] != ACTIVE) { continue; }
            v = unit_of(i);
            g = R.f == SPARSEMAX || R.f == ENTMAX15
                    ? largest_y * 8 + R.y[i] + target_of(i)
                    : R.y[i] * total * (1 + SCORE_ROUNDINGS * (v.score + mean)) + target_of(i);
            g *= R.weight * fabsl(factor) * 10 * eps;
            for (size_t k = 0; k < PARAMETERS; ++k) { L.gp_allowed[k] += g * v.par[k]; }
            if ((i + r) % step == 0 && L.count < COUNT(L.row)) {
                int smooth = differentiate(&R.x[i], loss_of_row, &d);
                /* mass on masked entries moves no score, but counts in the sum that multiplies y */
                ++differences;
                differences_skipped += !smooth || L.ambiguous[r];
                if (smooth && !L.ambiguous[r] && !(masked_part > 0)) {
                    L.row[L.count] = r;
                    L.entry[L.count] = i;
                    L.gx[L.count] = factor * R.weight * d;
                    L.gx_allowed[L.count] = R.scale * g * v.slope + R.weight * fabsl(factor) * floor_here +
                                            smallest_normal(P.f) * (1 + R.scale);
                    ++L.count;
                }
            }
        }
        for (size_t k = 0; k < PARAMETERS && P.f->order; ++k) {
            if (k % 2 >= (size_t)R.order) { continue; }
            L.gp_smooth[k] = L.gp_smooth[k] && differentiate(&R.par[k], loss_of_row, &d) && !(masked_part > 0);
            L.gp[k] += factor * R.weight * d;
            L.gp_allowed[k] += R.weight * fabsl(factor) * floor_here * 100;
        }
    }
}

#define LOSS_ARGS  P.c.t.q ? "q" : "index", P.c.t.weights ? "" : "out", P.c.t.label_smoothing, P.c.t.grad_scale
#define LOSS_WHERE ", %s, with%s weights, smoothing %g, grad_scale %g"

static void check_loss_values(const double *loss, const char *how) {
    for (size_t r = 0; r < ROWS; ++r) {
        if (L.infinite[r]) {
            CHECK(bits_of(loss[r]) == 0x7ff0000000000000, WHERE LOSS_WHERE ", %s: loss %g of a masked target",
                  WHERE_ARGS(r), LOSS_ARGS, how, loss[r]);
        } else if (is_silent(r)) {
            CHECK(bits_of(loss[r]) == 0, WHERE LOSS_WHERE ", %s: loss %g of a row that does not count", WHERE_ARGS(r),
                  LOSS_ARGS, how, loss[r]);
        } else if (!L.ambiguous[r]) {
            CHECK(fabsl(loss[r] - L.loss[r]) <= L.loss_allowed[r],
                  WHERE LOSS_WHERE ", %s: loss %.17g, not %.17Lg, %.3Lg of what is allowed", WHERE_ARGS(r), LOSS_ARGS,
                  how, loss[r], L.loss[r], fabsl(loss[r] - L.loss[r]) / L.loss_allowed[r]);
        }
    }
}

static void check_loss_gx(const void *gx, size_t stride, const char *how) {
    for (size_t k = 0; k < L.count; ++k) {
        wide got = get(P.f, gx, L.row[k] * stride + L.entry[k]);
        CHECK(fabsl(got - L.gx[k]) <= L.gx_allowed[k],
              WHERE LOSS_WHERE ", %s: gx[%u] is %.12Lg, not %.12Lg, %.3Lg of what is allowed", WHERE_ARGS(L.row[k]),
              LOSS_ARGS, how, (unsigned)L.entry[k], got, L.gx[k], fabsl(got - L.gx[k]) / L.gx_allowed[k]);
    }
    for (size_t r = 0; r < ROWS; ++r) {
        for (size_t i = 0; i < P.c.s.cols; ++i) {
            if (kinds[r * P.c.s.cols + i] != ACTIVE || is_silent(r)) {
                CHECK(get_bits(P.f, gx, r * stride + i) == 0,
                      WHERE LOSS_WHERE ", %s: gx[%u], which counts nowhere, is %g", WHERE_ARGS(r), LOSS_ARGS, how,
                      (unsigned)i, get(P.f, gx, r * stride + i));
            }
        }
    }
}

static void check_loss_gp(const double *before, const char *how) {
    double after[PARAMETERS];
    if (!has(P.f, HAS_GP)) { return; }
    memcpy(after, &gp_storage, sizeof after);
    for (size_t k = 0; k < PARAMETERS; ++k) {
        wide got = (wide)after[k] - before[k];
        if (k % 2 >= (size_t)P.f->order) {
            CHECK(bits_of(after[k]) == bits_of(before[k]), WHERE ", %s: gp[%u] touched", WHERE_ARGS(0), how,
                  (unsigned)k);
            continue;
        }
        ++differences;
        differences_skipped += !L.gp_smooth[k];
        CHECK(!L.gp_smooth[k] || fabsl(got - L.gp[k]) <= L.gp_allowed[k] + 1e-14L * (fabsl(L.gp[k]) + 10),
              WHERE LOSS_WHERE ", %s: gp[%u] is %.12Lg, not %.12Lg", WHERE_ARGS(0), LOSS_ARGS, how, (unsigned)k, got,
              L.gp[k]);
    }
}

static void check_loss(const function *f, size_t cols, unsigned on, int target, int weighted, uint64_t seed) {
    static const double before[PARAMETERS] = {0.5, -1, 2, 3, -0.25, 1, 0, 7};
    make_loss(f, cols, on, target, weighted, seed);
    expect_losses();
    FOR_EACH_ISA(isa) {
        mmax_shape s = P.c.s;
        double loss[ROWS];
        memcpy(&gp_storage, before, sizeof before);
        memset(row_storage, 0x5a, sizeof row_storage);
        clear_out();
        CHECK(f->run(&P.c) == MMAX_OK, WHERE LOSS_WHERE, WHERE_ARGS(0), LOSS_ARGS);
        memcpy(loss, row_storage, sizeof loss);
        check_loss_values(loss, "all");
        check_loss_gx(storage[OUT], s.gx_stride, "all");
        check_loss_gp(before, "all");
        check_gaps("loss");
        memcpy(kept_out, storage[OUT], out_room());
        /* loss NULL, gx NULL */
        P.c.per_row = NULL;
        memcpy(&gp_storage, before, sizeof before);
        clear_out();
        CHECK(f->run(&P.c) == MMAX_OK, WHERE LOSS_WHERE ", loss NULL", WHERE_ARGS(0), LOSS_ARGS);
        check_loss_gx(storage[OUT], s.gx_stride, "loss NULL");
        check_loss_gp(before, "loss NULL");
        P.c.per_row = row_storage;
        P.c.array[OUT] = NULL;
        memcpy(&gp_storage, before, sizeof before);
        memset(row_storage, 0x5a, sizeof row_storage);
        CHECK(f->run(&P.c) == MMAX_OK, WHERE LOSS_WHERE ", gx NULL", WHERE_ARGS(0), LOSS_ARGS);
        check_loss_values(row_storage, "gx NULL");
        check_loss_gp(before, "gx NULL");
        /* weights of 1 */
        if (weighted == 1) {
            P.c.array[OUT] = storage[OUT];
            P.c.t.weights = NULL;
            clear_out();
            CHECK(f->run(&P.c) == MMAX_OK, WHERE LOSS_WHERE, WHERE_ARGS(0), LOSS_ARGS);
            for (size_t r = 0; r < ROWS; ++r) {
                CHECK(bits_of(row_storage[r]) == bits_of(loss[r]),
                      WHERE ": loss %.17g with a weight of 1, %.17g without", WHERE_ARGS(r), loss[r], row_storage[r]);
                CHECK(same_row(storage[OUT], kept_out, r), WHERE ": a weight of 1 changes gx", WHERE_ARGS(r));
            }
            P.c.t.weights = P.weights;
        }
        /* gx = x */
        memcpy(kept_x, storage[X], at(X, ROWS - 1, cols) * f->size);
        P.c.array[OUT] = storage[X];
        P.c.s.gx_stride = s.x_stride;
        CHECK(f->run(&P.c) == MMAX_OK, WHERE LOSS_WHERE ", in place", WHERE_ARGS(0), LOSS_ARGS);
        for (size_t r = 0; r < ROWS; ++r) {
            CHECK(memcmp((char *)storage[X] + at(X, r, 0) * f->size, (char *)kept_out + r * s.gx_stride * f->size,
                         cols * f->size) == 0,
                  WHERE LOSS_WHERE ": gx in place has other bits", WHERE_ARGS(r), LOSS_ARGS);
            CHECK(bits_of(row_storage[r]) == bits_of(loss[r]), WHERE LOSS_WHERE ": loss in place has other bits",
                  WHERE_ARGS(r), LOSS_ARGS);
        }
        memcpy(storage[X], kept_x, at(X, ROWS - 1, cols) * f->size);
        P.c.array[OUT] = storage[OUT];
        P.c.s = s;
    }
}

/* A one-hot q gives the result of index. */
static void check_one_hot(const function *f, size_t cols, unsigned on, uint64_t seed) {
    make_loss(f, cols, on, BY_INDEX, 0, seed);
    for (size_t r = 0; r < ROWS; ++r) { /* one-hot rows have no ignored ones */
        for (size_t i = first_of(r); i < end_of(r) && r == IGNORED; ++i) {
            set(f, storage[X], at(X, r, i), random_normal());
            kinds[r * cols + i] = ACTIVE;
        }
        if (r == IGNORED && first_of(r) < end_of(r)) { index_storage[r] = (int32_t)first_of(r); }
        if (r == 0 && on & MASK_X && index_storage[r] >= 0) { /* a masked target */
            set_special(f, storage[X], at(X, r, (size_t)index_storage[r]), MINUS_INF);
            kinds[r * cols + (size_t)index_storage[r]] = MASK;
        }
        for (size_t i = 0; i < cols; ++i) {
            set(f, q_storage, r * cols + i, index_storage[r] >= 0 && (size_t)index_storage[r] == i);
        }
    }
    FOR_EACH_ISA(isa) {
        double loss[ROWS];
        clear_out();
        CHECK(f->run(&P.c) == MMAX_OK, WHERE, WHERE_ARGS(0));
        memcpy(kept_out, storage[OUT], out_room());
        memcpy(loss, row_storage, sizeof loss);
        P.c.t.index = NULL;
        P.c.t.q = q_storage;
        P.c.t.q_stride = 0;
        clear_out();
        CHECK(f->run(&P.c) == MMAX_OK, WHERE ", one-hot", WHERE_ARGS(0));
        P.c.t.index = index_storage;
        P.c.t.q = NULL;
        for (size_t r = 0; r < ROWS; ++r) {
            wide rel = f->size == 4 ? 1e-6 : 1e-14 * SLACK, a = loss[r], b = row_storage[r];
            wide factor = (P.c.t.grad_scale != 0 ? fabs(P.c.t.grad_scale) : 1) * (P.c.s.scale != 0 ? P.c.s.scale : 1);
            size_t active = 0;
            if (index_storage[r] < 0) { continue; } /* with q it counts */
            for (size_t i = 0; i < cols; ++i) { active += kinds[r * cols + i] == ACTIVE; }
            CHECK(bits_of(loss[r]) == bits_of(row_storage[r]) || fabsl(a - b) <= rel * fmaxl(fabsl(a), 0.2L),
                  WHERE ", smoothing %g: loss %.17Lg by index, %.17Lg by one-hot", WHERE_ARGS(r), P.c.t.label_smoothing,
                  a, b);
            for (size_t i = 0; i < cols; ++i) {
                wide p = get(f, kept_out, at(OUT, r, i)), q = get(f, storage[OUT], at(OUT, r, i));
                wide slope = f->order ? 8 : 1, label = (size_t)index_storage[r] == i;
                label += P.c.t.label_smoothing / (double)(active + (active == 0));
                if (formula_of(f) == SPARSEMAX || formula_of(f) == ENTMAX15) { label = 1; } /* as y is rounded */
                CHECK(fabsl(p - q) <= rel * (fabsl(p) + factor * slope * label),            /* y - 1 cancels */
                      WHERE ", smoothing %g: gx[%u] %.17Lg by index, %.17Lg by one-hot", WHERE_ARGS(r),
                      P.c.t.label_smoothing, (unsigned)i, p, q);
            }
        }
    }
}

/* q = y, as the forward function gives it, has gradient 0. */
static void check_own_target(const function *f, size_t cols, unsigned on, uint64_t seed) {
    make_loss(f, cols, on, BY_DISTRIBUTION, 0, seed);
    P.c.t.label_smoothing = 0;
    P.c.t.q = storage[Y];
    P.c.t.q_stride = P.c.s.y_stride;
    FOR_EACH_ISA(isa) {
        call c = P.c;
        wide factor = (P.c.t.grad_scale != 0 ? fabs(P.c.t.grad_scale) : 1) * (P.c.s.scale != 0 ? P.c.s.scale : 1);
        wide gp_allowed = 1e-12L;
        double gp[PARAMETERS];
        c.array[OUT] = storage[Y];
        CHECK(f->forward(&c) == MMAX_OK, WHERE, WHERE_ARGS(0));
        memset(&gp_storage, 0, sizeof gp_storage);
        clear_out();
        CHECK(f->run(&P.c) == MMAX_OK, WHERE ", q = y", WHERE_ARGS(0));
        for (size_t r = 0; r < ROWS; ++r) {
            wide largest_y = 0;
            load(r);
            R.logarithm = 0;
            for (size_t i = 0; i < cols; ++i) { largest_y = fmaxl(largest_y, get(f, storage[Y], at(Y, r, i))); }
            for (size_t i = 0; i < cols; ++i) {
                wide y = get(f, storage[Y], at(Y, r, i)), got = get(f, storage[OUT], at(OUT, r, i)), slope = 1;
                if (R.kind[i] == ACTIVE && f->order) {
                    unit v = unit_of(i);
                    slope = v.slope;
                    for (size_t k = 0; k < PARAMETERS; ++k) {
                        gp_allowed += fmaxl(v.par[k], 1) * y * fabsl(factor) * 16 * eps_of(f);
                    }
                }
                if (formula_of(f) == SPARSEMAX || formula_of(f) == ENTMAX15) { y = largest_y; }
                CHECK(fabsl(got) <= 16 * eps_of(f) * slope * y * factor + smallest_normal(f),
                      WHERE ": gx[%u] is %Lg where q = y = %Lg", WHERE_ARGS(r), (unsigned)i, got, y);
            }
        }
        memcpy(gp, &gp_storage, sizeof gp);
        for (size_t k = 0; k < PARAMETERS && f->order; ++k) {
            CHECK(fabsl(gp[k]) <= gp_allowed, WHERE ": gp[%u] is %g where q = y", WHERE_ARGS(0), (unsigned)k, gp[k]);
        }
    }
}

/* Mass of q on a masked entry: +inf; at active entries y sum q - q, the mass included. A NaN row wins; weight 0 is 0. */
static void check_masked_mass(const function *f, size_t cols, uint64_t seed) {
    size_t r = 1, hole = cols / 2;
    int sparse = formula_of(f) == SPARSEMAX || formula_of(f) == ENTMAX15;
    make_loss(f, cols, 0, BY_DISTRIBUTION, 2, seed);
    P.c.t.label_smoothing = 0;
    P.c.t.grad_scale = 0;
    P.c.t.q_stride = 0;
    for (size_t i = 0; i < ROWS * cols; ++i) { set(f, q_storage, i, 1.0 / (double)cols); }
    for (size_t k = 1; k < 4; ++k) {
        set_special(f, storage[X], at(X, k, hole), MINUS_INF);
        kinds[k * cols + hole] = MASK;
    }
    P.weights[3] = 0;
    set_special(f, storage[X], at(X, 2, hole + 1), QUIET_NAN);
    FOR_EACH_ISA(isa) {
        call c = P.c;
        c.array[OUT] = storage[Y];
        CHECK(f->forward(&c) == MMAX_OK, WHERE, WHERE_ARGS(0));
        clear_out();
        CHECK(f->run(&P.c) == MMAX_OK, WHERE ", q > 0 at a mask", WHERE_ARGS(r));
        CHECK(bits_of(row_storage[1]) == 0x7ff0000000000000, WHERE ": loss %g where q > 0 at a mask", WHERE_ARGS(r),
              row_storage[1]);
        CHECK(is_nan_double(row_storage[2]), WHERE ": loss %g of a NaN row where q > 0 at a mask", WHERE_ARGS(2),
              row_storage[2]);
        CHECK(bits_of(row_storage[3]) == 0, WHERE ": loss %g of weight 0 where q > 0 at a mask", WHERE_ARGS(3),
              row_storage[3]);
        CHECK(get_bits(f, storage[OUT], at(OUT, r, hole)) == 0, WHERE ": gx of a mask is not 0", WHERE_ARGS(r));
        for (size_t i = 0; i < cols && !f->order; ++i) {
            wide y = get(f, storage[Y], at(Y, r, i)), got = get(f, storage[OUT], at(OUT, r, i));
            wide expect = P.weights[r] * (P.c.s.scale != 0 ? P.c.s.scale : 1) * (y - 1 / (wide)cols);
            if (i == hole) { continue; }
            CHECK(fabsl(got - expect) <= 32 * eps_of(f) * (sparse ? 1 : y + 1 / (wide)cols) * P.weights[r] * 1.25L,
                  WHERE ": gx[%u] is %.9Lg, not %.9Lg, where q has mass on a mask", WHERE_ARGS(r), (unsigned)i, got,
                  expect);
        }
    }
}

static void loss_function(const function *f) {
    static const size_t some[] = {1, 2, 3, 8, 17, 33, 64, 70};
    for (size_t i = 0; i < COUNT(some); ++i) {
        for (int target = 0; target < TARGETS; ++target) {
            for (int weighted = 0; weighted < 3; ++weighted) {
                uint64_t seed = i + (uint64_t)(target * 3 + weighted);
                check_loss(f, some[i], STARTS | LENGTHS | MASK_X, target, weighted, seed);
                if (i % 3 == 0) { check_loss(f, some[i] + 3, 0, target, weighted, seed + 1); }
            }
        }
        check_loss(f, some[i] + 1, STARTS, BY_DISTRIBUTION, 2, i);
        check_one_hot(f, some[i], STARTS | LENGTHS, i);
        check_one_hot(f, some[i] + 2, STARTS | MASK_X, i + 1);
        check_own_target(f, some[i], STARTS | LENGTHS | MASK_X, i);
        check_masked_mass(f, some[i] + 4, i);
    }
    check_loss(f, 300, STARTS | LENGTHS | MASK_X, BY_DISTRIBUTION, 2, 1);
    if (LONG_ROWS == 1) { return; }
    check_loss(f, 2100, STARTS | LENGTHS | MASK_X, BY_INDEX, 2, 2);
    check_loss(f, 2100, STARTS | LENGTHS | MASK_X, BY_DISTRIBUTION, 2, 3);
}

/* ==== soft caps ==== */

static void softcap_functions(size_t size) {
    static const double caps[] = {1, 30, 50.1, 1e-3, 1e5};
    static const double odd[] = {0, 1e-30, -1e-30, 1e-8, -1e-5, 1e3, -1e6, 3e38, -3e38, 1e-38};
    const function *f = more_named("softcap", size), *b = more_named("softcap_backward", size);
    for (size_t n = 1; n <= 70; n += n < 20 ? 1 : 13) {
        for (size_t k = 0; k < COUNT(caps); ++k) {
            unsigned on = k % 2 ? STARTS | LENGTHS | MASK_X : SCALES | FINITE_MASK | STARTS;
            make(f, n, on, n + k);
            P.c.epsilon = caps[k];
            for (size_t r = 0; r < ROWS; ++r) {
                for (size_t i = 0; i < n; ++i) {
                    double v = random_below(3) ? caps[k] * random_normal() : odd[random_below(COUNT(odd))];
                    if (kinds[r * n + i] == ACTIVE) { set(f, storage[X], at(X, r, i), v); }
                    if (P.on & FINITE_MASK && kinds[r * n + i] == ACTIVE && v <= P.a.masked) {
                        kinds[r * n + i] = MASK;
                    }
                }
            }
            FOR_EACH_ISA(isa) {
                mmax_shape s = P.c.s;
                P.f = f;
                clear_out();
                CHECK(f->run(&P.c) == MMAX_OK, WHERE ", cap %g", WHERE_ARGS(0), caps[k]);
                check_gaps("softcap");
                for (size_t r = 0; r < ROWS; ++r) {
                    load(r);
                    for (size_t i = 0; i < n; ++i) {
                        size_t o = at(OUT, r, i);
                        wide got = get(f, storage[OUT], o), cap = caps[k], expect, unit_here;
                        if (kinds[r * n + i] != ACTIVE) {
                            CHECK(get_bits(f, storage[OUT], o) == idle_bits(f, (entry_kind)kinds[r * n + i]),
                                  WHERE ", cap %g: y[%u], %s, is %Lg", WHERE_ARGS(r), caps[k], (unsigned)i,
                                  kinds[r * n + i] == MASK ? "masked" : "outside", got);
                            continue;
                        }
                        expect = cap * tanhl(R.scale * R.x[i] / cap);
                        unit_here = 8 * ANY_ROUNDING(f) * fabsl(expect) + smallest_normal(f);
                        CHECK(fabsl(got - expect) <= unit_here && (got == 0 || fabsl(got) >= smallest_normal(f)),
                              WHERE ", cap %g: y[%u] is %.17Lg, not %.17Lg, x %Lg, scale %Lg", WHERE_ARGS(r), caps[k],
                              (unsigned)i, got, expect, R.x[i], R.scale);
                    }
                }
                memcpy(kept_out, storage[OUT], out_room());
                for (size_t r = 0; r < ROWS; ++r) {
                    for (size_t i = 0; i < n; ++i) {
                        set_bits(f, storage[Y], r * s.y_stride + i, get_bits(f, kept_out, r * s.y_stride + i));
                        if (kinds[r * n + i] == OUTSIDE) { set_special(f, storage[Y], r * s.y_stride + i, QUIET_NAN); }
                    }
                }
                P.f = b;
                clear_out();
                CHECK(b->run(&P.c) == MMAX_OK, WHERE ", cap %g", WHERE_ARGS(0), caps[k]);
                check_gaps("softcap_backward");
                for (size_t r = 0; r < ROWS; ++r) {
                    load(r);
                    for (size_t i = 0; i < n; ++i) {
                        wide got = get(f, storage[OUT], at(OUT, r, i)), cap = caps[k], expect, direct, t;
                        wide y = get(f, storage[Y], at(Y, r, i)), size_here = R.scale * fabsl(R.gy[i]);
                        if (kinds[r * n + i] != ACTIVE) {
                            CHECK(get_bits(f, storage[OUT], at(OUT, r, i)) == 0, WHERE ", cap %g: gx[%u], %s, is %Lg",
                                  WHERE_ARGS(r), caps[k], (unsigned)i, kinds[r * n + i] == MASK ? "masked" : "outside",
                                  got);
                            continue;
                        }
                        direct = R.scale * R.gy[i] * (1 - y / cap * (y / cap));
                        t = tanhl(R.scale * R.x[i] / cap);
                        expect = R.scale * R.gy[i] * (1 - t * t);
                        CHECK(fabsl(got - direct) <= 8 * ANY_ROUNDING(f) * size_here + smallest_normal(f),
                              WHERE ", cap %g: gx[%u] is %.9Lg, from y %.9Lg", WHERE_ARGS(r), caps[k], (unsigned)i, got,
                              direct);
                        CHECK(fabsl(got - expect) <= 32 * ANY_ROUNDING(f) * size_here + smallest_normal(f),
                              WHERE ", cap %g: gx[%u] is %.9Lg, not %.9Lg", WHERE_ARGS(r), caps[k], (unsigned)i, got,
                              expect);
                    }
                }
                /* gx = gy, y = x */
                memcpy(kept_out, storage[OUT], out_room());
                P.c.array[OUT] = storage[GY];
                P.c.s.gx_stride = s.gy_stride;
                memcpy(kept_x, storage[GY], at(GY, ROWS - 1, n) * size);
                CHECK(b->run(&P.c) == MMAX_OK, WHERE ", in place", WHERE_ARGS(0));
                for (size_t r = 0; r < ROWS; ++r) {
                    CHECK(memcmp((char *)storage[GY] + r * s.gy_stride * size,
                                 (char *)kept_out + r * s.gx_stride * size, n * size) == 0,
                          WHERE ": gx in place has other bits", WHERE_ARGS(r));
                }
                memcpy(storage[GY], kept_x, at(GY, ROWS - 1, n) * size);
                P.c.array[OUT] = storage[OUT];
                P.c.s = s;
            }
        }
    }
    /* NaN, +inf and -inf stay in their entries */
    FOR_EACH_ISA(isa) {
        for (size_t n = 1; n < 40; ++n) {
            call c;
            memset(&c, 0, sizeof c);
            for (int a = 0; a < ARRAYS; ++a) { c.array[a] = storage[a]; }
            c.s = mmax_row(n);
            c.epsilon = 2;
            for (size_t i = 0; i < n; ++i) {
                set(f, storage[X], i, 0.5);
                if (i % 4 < 3) {
                    set_special(f, storage[X], i,
                                (special)(i % 4 == 0   ? NEGATIVE_NAN
                                          : i % 4 == 1 ? PLUS_INF
                                                       : MINUS_INF));
                }
                set(f, storage[GY], i, 1);
            }
            CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
            for (size_t i = 0; i < n; ++i) {
                CHECK(i % 4 < 2    ? is_special(f, storage[OUT], i, QUIET_NAN)
                      : i % 4 == 2 ? is_special(f, storage[OUT], i, MINUS_INF)
                                   : is_finite_at(f, storage[OUT], i),
                      AT ": y[%u] is %g where x is %g", AT_ARGS(f, n), (unsigned)i, get(f, storage[OUT], i),
                      get(f, storage[X], i));
                set_bits(f, storage[Y], i, get_bits(f, storage[OUT], i));
            }
            CHECK(b->run(&c) == MMAX_OK, AT, AT_ARGS(b, n));
            for (size_t i = 0; i < n; ++i) {
                CHECK(i % 4 < 2    ? is_special(f, storage[OUT], i, QUIET_NAN)
                      : i % 4 == 2 ? get_bits(f, storage[OUT], i) == 0
                                   : is_finite_at(f, storage[OUT], i),
                      AT ": gx[%u] is %g where y is %g", AT_ARGS(b, n), (unsigned)i, get(f, storage[OUT], i),
                      get(f, storage[Y], i));
            }
        }
    }
}

/* ==== joined parts ==== */

static double worst_join[2];

/* A row of `cols` entries in `parts` pieces of equal room, the last one shorter or empty; some are masked. */
static void check_join(const function *f, size_t cols, size_t parts, int with_sink, int with_masks, uint64_t seed) {
    size_t piece = (cols + parts - 1) / parts;
    static uint32_t lengths[64];
    static double sinks[64];
    static double whole[LONGEST], lse[64];
    mmax_attention a;
    call c;
    memset(&a, 0, sizeof a);
    memset(&c, 0, sizeof c);
    random_state = seed * 77 + cols + parts;
    P.f = f;
    c.array[X] = storage[X];
    c.p = f->order ? &params_of_order[f->order] : NULL;
    for (size_t i = 0; i < piece * parts; ++i) {
        set(f, storage[X], i, 2 * random_normal());
        if (i >= cols) { set_special(f, storage[X], i, QUIET_NAN); }
        if (with_masks && (random_below(5) == 0 || i / piece % 3 == 1)) { set_special(f, storage[X], i, MINUS_INF); }
    }
    set(f, storage[X], 0, 1);
    a.head_rows = 1;
    a.sinks = sinks;
    for (size_t b = 0; b < parts; ++b) {
        lengths[b] = (uint32_t)(b * piece >= cols ? 0 : cols - b * piece < piece ? cols - b * piece : piece);
        sinks[b] = double_of(0xfff0000000000000);
    }
    FOR_EACH_ISA(isa) {
        wide top = -INFINITY, sum = 0, largest_lse = 1;
        sinks[0] = with_sink ? 1.5 : double_of(0xfff0000000000000);
        c.array[OUT] = storage[OUT];
        c.per_row = lse;
        c.s = mmax_row(cols);
        c.s.scale = 0.8;
        c.s.attention = with_sink ? &a : NULL;
        CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, cols));
        for (size_t i = 0; i < cols; ++i) { whole[i] = get(f, storage[OUT], i); }
        sinks[0] = double_of(0xfff0000000000000);
        sinks[parts - 1] = with_sink ? 1.5 : double_of(0xfff0000000000000);
        c.s = mmax_rows(parts, piece);
        c.s.scale = 0.8;
        c.s.ends = lengths;
        c.s.attention = with_sink ? &a : NULL;
        CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, piece));
        sinks[parts - 1] = double_of(0xfff0000000000000);
        for (size_t b = 0; b < parts; ++b) {
            if (bits_of(lse[b]) != 0xfff0000000000000) {
                top = fmaxl(top, lse[b]);
                largest_lse = fmaxl(largest_lse, fabs(lse[b]));
            }
        }
        for (size_t b = 0; b < parts; ++b) {
            if (bits_of(lse[b]) != 0xfff0000000000000) { sum += expl(lse[b] - top); }
        }
        for (size_t i = 0; i < cols; ++i) {
            size_t b = i / piece;
            wide y = bits_of(lse[b]) == 0xfff0000000000000 ? 0 : expl(lse[b] - top) / sum * get(f, storage[OUT], i);
            int e;
            wide ulp, off, bound;
            (void)frexp(whole[i] > smallest_normal(f) ? whole[i] : smallest_normal(f), &e);
            ulp = ldexpl(eps_of(f), e - 1);
            /* in f64 a log-sum-exp is a double itself: its rounding is one of the scores' */
            bound = f->size == 4 ? 8 : (8 + largest_lse) * SLACK;
            off = fabsl(y - whole[i]) / ulp;
            worst_join[f->size == 8] = fmax(worst_join[f->size == 8], (double)off);
            CHECK(off <= bound, AT ", %u parts%s%s: y[%u] is %.17Lg joined, %.17g whole: %.3Lg ULP", AT_ARGS(f, cols),
                  (unsigned)parts, with_sink ? ", a sink" : "", with_masks ? ", masks" : "", (unsigned)i, y, whole[i],
                  off);
            CHECK(!is_minus_inf(storage[X], i) || get_bits(f, storage[OUT], i) == 0, AT ": a mask in a part",
                  AT_ARGS(f, cols));
        }
    }
}

/* ==== single rules ==== */

static call plain_call(const function *f, size_t rows, size_t cols, mmax_attention *a) {
    call c = call_of(functions, 0, 0, NORMAL_1, cols);
    memset(a, 0, sizeof *a);
    c.s = mmax_rows(rows, cols);
    c.s.attention = a;
    c.p = f->order ? &params_of_order[f->order] : NULL;
    c.epsilon = f->epsilon;
    fill(f, storage[X], rows * cols, NORMAL_1);
    fill(f, storage[GY], rows * cols, NORMAL_1);
    P.f = f;
    return c;
}

/* Empty attention, and scales equal to the shape's scale, change no bit. */
static void check_nothing(const function *f, size_t cols) {
    mmax_attention a;
    double scales[3] = {1.7, 1.7, 1.7}, minus_inf[3];
    call c = plain_call(f, 3, cols, &a);
    for (int i = 0; i < 3; ++i) { minus_inf[i] = double_of(0xfff0000000000000); }
    FOR_EACH_ISA(isa) {
        size_t bytes = 3 * cols * f->size;
        memset(&a, 0, sizeof a);
        c.s.attention = NULL;
        c.s.scale = 1.7;
        CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, cols));
        memcpy(kept_out, storage[OUT], bytes);
        c.s.attention = &a;
        memset(storage[OUT], 0x5a, bytes);
        CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, cols));
        CHECK(memcmp(storage[OUT], kept_out, bytes) == 0, AT ": attention that is zero changes bits", AT_ARGS(f, cols));
        a.scales = scales;
        a.head_rows = 2;
        c.s.scale = 0.1;
        memset(storage[OUT], 0x5a, bytes);
        CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, cols));
        CHECK(memcmp(storage[OUT], kept_out, bytes) == 0, AT ": the shape's scale by head changes bits",
              AT_ARGS(f, cols));
        if (takes_sinks(f)) {
            a.sinks = minus_inf;
            memset(storage[OUT], 0x5a, bytes);
            CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, cols));
            CHECK(memcmp(storage[OUT], kept_out, bytes) == 0, AT ": a sink of -inf changes bits", AT_ARGS(f, cols));
            a.sinks = NULL;
        }
        a.scales = NULL;
        c.s.scale = 1.7;
        a.masked = f->size == 4 ? -1e300 : -DBL_MAX;
        memset(storage[OUT], 0x5a, bytes);
        CHECK(f->run(&c) == MMAX_OK, AT ": masked %g", AT_ARGS(f, cols), a.masked);
        CHECK(memcmp(storage[OUT], kept_out, bytes) == 0, AT ": masked %g changes bits", AT_ARGS(f, cols), a.masked);
    }
}

/* x <= masked, x being unscaled and `masked` a double. */
static void check_border(const function *f, size_t cols) {
    static const double borders[] = {-1e4, -0.7, -1e9, -0.3};
    for (size_t k = 0; k < COUNT(borders); ++k) {
        double m = borders[k];
        mmax_attention a;
        call c = plain_call(f, 1, cols, &a);
        a.masked = m;
        c.s.scale = 0.5;
        for (size_t i = 0; i < cols; ++i) { /* at the border, its neighbours, far below */
            double here = f->size == 4 ? (double)(float)m : m, step = f->size == 4 ? FLT_EPSILON : DBL_EPSILON;
            double x = i % 4 == 0 ? here : i % 4 == 1 ? here * (1 - step) : i % 4 == 2 ? here * (1 + step) : 3 * here;
            set(f, storage[X], i, x);
        }
        FOR_EACH_ISA(isa) {
            memset(storage[OUT], 0x5a, cols * f->size);
            CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, cols));
            for (size_t i = 0; i < cols; ++i) {
                double x = get(f, storage[X], i);
                int masked = get_bits(f, storage[OUT], i) == special_bits(f, MINUS_INF);
                CHECK(masked == (x <= m), AT ": y[%u] is %g where x = %.17g, masked = %.17g", AT_ARGS(f, cols),
                      (unsigned)i, get(f, storage[OUT], i), x, m);
            }
        }
    }
}

/* A NaN where the other array has a mask: the entry is masked, the row is not NaN. */
static void check_nan_under_mask(const function *f, size_t cols, int in_bias) {
    mmax_attention a;
    call c = plain_call(f, 1, cols, &a);
    a.bias = bias_storage;
    fill(f, bias_storage, cols, NORMAL_1);
    for (size_t i = 0; i < cols; i += 3) {
        set_special(f, in_bias ? bias_storage : storage[X], i, i % 2 ? PLUS_INF : QUIET_NAN);
        set_special(f, in_bias ? storage[X] : bias_storage, i, MINUS_INF);
    }
    FOR_EACH_ISA(isa) {
        CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, cols));
        for (size_t i = 0; i < cols; ++i) {
            CHECK(i % 3 ? is_finite_at(f, storage[OUT], i) : get_bits(f, storage[OUT], i) == masked_bits(f),
                  AT ": y[%u] is %g where %s is masked and %s NaN or +inf at 0, 3, ...", AT_ARGS(f, cols), (unsigned)i,
                  get(f, storage[OUT], i), in_bias ? "x" : "bias", in_bias ? "bias" : "x");
        }
    }
}

/* gx of any size at masked entries counts nowhere. */
static void check_scale_gradient_masks(size_t size) {
    const function *f = more_named("scale_gradient", size);
    for (size_t n = 6; n < 80; n += 9) {
        double got[1];
        wide sum = 0;
        mmax_attention a;
        call c = plain_call(f, 1, n, &a);
        c.per_row = got;
        a.bias = bias_storage;
        a.masked = -1e4;
        c.s.scale = 2;
        fill(f, bias_storage, n, NORMAL_1);
        for (size_t i = 0; i < n; ++i) {
            if (i % 6 == 1) { set_special(f, storage[X], i, MINUS_INF); }
            if (i % 6 == 3) { set(f, storage[X], i, -2e4); }
            if (i % 6 == 5) { set_special(f, bias_storage, i, MINUS_INF); }
            if (i % 2 == 0) { sum += (wide)get(f, storage[X], i) * get(f, storage[GY], i) / 2; }
        }
        FOR_EACH_ISA(isa) {
            got[0] = 1;
            CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
            CHECK(fabsl(got[0] - 1 - sum) <= (size == 4 ? 1e-5 : 1e-13),
                  AT ": %.12g added, not %.12Lg: gx at masked entries counts", AT_ARGS(f, n), got[0] - 1, sum);
            /* without attention: one head, the shape's scale */
            c.s.attention = NULL;
            set(f, storage[X], 1, 0.25);
            for (size_t i = 7; i < n; i += 6) { set(f, storage[X], i, 0.5); }
            {
                wide all = 0;
                for (size_t i = 0; i < n; ++i) { all += (wide)get(f, storage[X], i) * get(f, storage[GY], i) / 2; }
                got[0] = -3;
                CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
                CHECK(fabsl(got[0] + 3 - all) <= (size == 4 ? 1e-6 : 1e-14) * 1e5,
                      AT ": %.12g added without attention, not %.12Lg", AT_ARGS(f, n), got[0] + 3, all);
            }
            c.s.attention = &a;
            for (size_t i = 1; i < n; i += 6) { set_special(f, storage[X], i, MINUS_INF); }
        }
    }
}

/* ==== refused calls ==== */

static unsigned char before_bytes[3][4096];

/* All outputs keep their bytes. */
static void refuse(const function *f, const call *c, mmax_status status, const char *why) {
    static double per_row[ROWS];
    call d = *c;
    mmax_status got;
    void *out = c->array[OUT];
    memset(per_row, 0x3c, sizeof per_row);
    memset(&gp_storage, 0x3c, sizeof gp_storage);
    if (c->per_row) { d.per_row = per_row; }
    if (out == storage[OUT]) { memset(out, 0x3c, sizeof before_bytes[0]); }
    if (out) { memcpy(before_bytes[0], out, sizeof before_bytes[0]); }
    memcpy(before_bytes[1], per_row, sizeof per_row);
    memcpy(before_bytes[2], &gp_storage, sizeof gp_storage);
    got = f->run(&d);
    CHECK(got == status, "%s on %s: %s gives status %d, not %d", f->name, mmax_isa_name(mmax_isa_active()), why,
          (int)got, (int)status);
    CHECK(got == MMAX_OK || ((!out || memcmp(before_bytes[0], out, sizeof before_bytes[0]) == 0) &&
                             memcmp(before_bytes[1], per_row, sizeof per_row) == 0 &&
                             memcmp(before_bytes[2], &gp_storage, sizeof gp_storage) == 0),
          "%s on %s: %s has touched an output", f->name, mmax_isa_name(mmax_isa_active()), why);
}

static call small_call(const function *f, mmax_attention *a) {
    call c;
    random_state = 5;
    P.f = f;
    memset(a, 0, sizeof *a);
    memset(&c, 0, sizeof c);
    for (int k = 0; k < ARRAYS; ++k) {
        c.array[k] = storage[k];
        fill(f, storage[k], 64, NORMAL_1);
        for (size_t i = 0; i < 64 && k == Y; ++i) { set(f, storage[k], i, 0.125); }
    }
    fill(f, bias_storage, 64, NORMAL_1);
    for (size_t r = 0; r < 4; ++r) { index_storage[r] = (int32_t)r + 1; }
    for (size_t i = 0; i < 64; ++i) { set(f, q_storage, i, 0.125); }
    c.per_row = row_storage;
    c.gp = has(f, HAS_GP) ? &gp_storage : NULL;
    c.p = f->order ? &params_of_order[f->order] : NULL;
    c.epsilon = f->epsilon;
    c.reference = 0.1;
    c.t = mmax_labels(index_storage);
    c.s = mmax_rows(4, 8);
    c.s.attention = f->kind == LOSS ? NULL : a;
    return c;
}

static void refusals(const function *f) {
    static const uint64_t bad_weights[] = {0xbff0000000000000, 0x7ff8000000000000, 0x7ff0000000000000,
                                           0xfff0000000000000, 0x8000000000000001};
    static const uint64_t not_finite[] = {0x7ff8000000000000, 0x7ff0000000000000, 0xfff0000000000000};
    static const double scales_out[] = {1e-20, -1, 1e20, -1e-30};
    double values[4] = {1, 1, 1, 1};
    uint32_t starts[4] = {0, 1, 8, 0}, lengths[4] = {8, 7, 8, 3};
    int metric = strncmp(f->name, "multimod", 8) == 0 || strncmp(f->name, "sparsity", 8) == 0;
    mmax_attention a;
    call c = small_call(f, &a);
    refuse(f, &c, MMAX_OK, "a good call");
    c.s.starts = starts;
    c.t.index = NULL;
    c.t.q = f->kind == LOSS ? q_storage : NULL;
    refuse(f, &c, MMAX_OK, "starts");
    c.s.ends = lengths;
    refuse(f, &c, MMAX_OK, "starts and lengths");
    starts[3] = 4;
    refuse(f, &c, MMAX_ERR_SHAPE, "a start above the length");
    c.s.ends = NULL;
    refuse(f, &c, MMAX_OK, "a start below cols");
    starts[3] = 9;
    refuse(f, &c, MMAX_ERR_SHAPE, "a start above cols");
    starts[3] = UINT32_MAX;
    refuse(f, &c, MMAX_ERR_SHAPE, "a start of 2^32-1");
    if (metric) {
        mmax_attention hostile = a;
        double out[4], other[4];
        c = small_call(f, &a);
        c.per_row = out;
        CHECK(f->run(&c) == MMAX_OK, "%s", f->name);
        hostile.bias = bias_storage;
        hostile.bias_rows = 1;
        hostile.masked = -0.1;
        hostile.head_rows = 1;
        hostile.slopes = values;
        c.per_row = other;
        c.s.attention = &hostile;
        CHECK(f->run(&c) == MMAX_OK, "%s with attention", f->name);
        CHECK(memcmp(out, other, sizeof out) == 0, "%s does not ignore attention: %g, %g", f->name, out[0], other[0]);
        return;
    }
    if (f->kind == LOSS) {
        c = small_call(f, &a);
        c.s.attention = &a;
        refuse(f, &c, MMAX_ERR_ATTENTION, "attention, all zero");
        a.scales = values;
        refuse(f, &c, MMAX_ERR_ATTENTION, "attention with scales");
        c = small_call(f, &a);
        c.t.q = q_storage;
        refuse(f, &c, MMAX_ERR_TARGETS, "index and q");
        c.t.index = NULL;
        refuse(f, &c, MMAX_OK, "q");
        c.t.q_stride = 7;
        refuse(f, &c, MMAX_ERR_SHAPE, "q_stride below cols");
        c.t.q_stride = 8;
        refuse(f, &c, MMAX_OK, "q_stride of cols");
        c.t.q_stride = SIZE_MAX / 2;
        refuse(f, &c, MMAX_ERR_SHAPE, "q_stride that overflows");
        c.t.q_stride = 0;
        c.t.q = (char *)storage[OUT] + 16;
        refuse(f, &c, MMAX_ERR_ALIAS, "q overlapping gx partly");
        c.t.q = storage[OUT];
        refuse(f, &c, MMAX_ERR_ALIAS, "q being gx");
        c.array[OUT] = NULL;
        refuse(f, &c, MMAX_OK, "q, without gx");
        c.array[OUT] = storage[OUT];
        c.t.q = NULL;
        refuse(f, &c, MMAX_ERR_NULL, "neither index nor q");
        for (size_t k = 0; k < COUNT(bad_weights); ++k) {
            c = small_call(f, &a);
            values[3] = double_of(bad_weights[k]);
            c.t.weights = values;
            refuse(f, &c, MMAX_ERR_TARGETS, "a weight that is negative or not finite");
            values[3] = 1;
        }
        c = small_call(f, &a);
        values[0] = 0;
        c.t.weights = values;
        refuse(f, &c, MMAX_OK, "a weight of 0");
        values[0] = 1;
        c = small_call(f, &a);
        starts[2] = 0;
        starts[3] = 5;
        c.s.starts = starts;
        refuse(f, &c, MMAX_ERR_TARGETS, "a class before its start");
        starts[3] = 4;
        refuse(f, &c, MMAX_OK, "a class at its start");
        index_storage[3] = -7;
        starts[3] = 8;
        refuse(f, &c, MMAX_OK, "a row without entries and class");
        c = small_call(f, &a);
        lengths[3] = 4;
        c.s.ends = lengths;
        refuse(f, &c, MMAX_ERR_TARGETS, "a class at the length");
        lengths[3] = 5;
        refuse(f, &c, MMAX_OK, "a class below the length");
        c = small_call(f, &a);
        c.per_row = NULL;
        c.gp = NULL;
        c.array[OUT] = NULL;
        refuse(f, &c, MMAX_ERR_NULL, "no output");
        return;
    }
    /* what takes attention */
    for (size_t k = 0; k < COUNT(scales_out); ++k) {
        c = small_call(f, &a);
        a.head_rows = 2;
        a.scales = values;
        values[1] = scales_out[k];
        refuse(f, &c, MMAX_ERR_SCALE, "a scale out of range");
        a.head_rows = 0;
        refuse(f, &c, MMAX_OK, "a scale out of range of a head that there is not");
        values[1] = double_of(not_finite[k % 3]);
        a.head_rows = 3;
        refuse(f, &c, MMAX_ERR_SCALE, "a scale not finite in the last head");
        values[1] = 1;
    }
    for (size_t k = 0; k < COUNT(not_finite); ++k) {
        c = small_call(f, &a);
        a.head_rows = 3;
        a.slopes = values;
        a.bias = bias_storage;
        values[1] = double_of(not_finite[k]);
        refuse(f, &c, MMAX_ERR_ATTENTION, "a slope not finite");
        values[1] = 1;
        refuse(f, &c, MMAX_OK, "slopes");
        values[2] = double_of(not_finite[k]);
        refuse(f, &c, MMAX_OK, "a slope not finite of a head that there is not");
        values[2] = 1;
    }
    for (size_t k = 0; k < 3; ++k) {
        c = small_call(f, &a);
        a.head_rows = 3;
        a.sinks = values;
        values[1] = k == 0 ? 1 : double_of(not_finite[k - 1]);
        refuse(f, &c,
               takes_sinks(f) && k == 0                 ? MMAX_OK
               : strstr(f->name, "_gradient") && k == 0 ? MMAX_OK
                                                        : MMAX_ERR_ATTENTION,
               k == 0 ? "sinks" : "a sink that is NaN or +inf");
        values[1] = 1;
    }
    c = small_call(f, &a);
    a.head_rows = 1; /* two heads in turn */
    a.heads = 2;
    a.scales = values;
    values[2] = double_of(not_finite[0]);
    refuse(f, &c, MMAX_OK, "a scale not finite of a head that there is not");
    a.heads = 3;
    refuse(f, &c, MMAX_ERR_SCALE, "a scale not finite of a head of no row, or of one");
    values[2] = 1;
    a.heads = SIZE_MAX;
    refuse(f, &c, MMAX_ERR_SHAPE, "heads that overflow");
    c = small_call(f, &a);
    a.masked = 1e-300;
    refuse(f, &c, MMAX_ERR_ATTENTION, "masked > 0");
    a.masked = double_of(0x7ff8000000000000);
    refuse(f, &c, MMAX_ERR_ATTENTION, "masked NaN");
    a.masked = double_of(0x7ff0000000000000);
    refuse(f, &c, MMAX_ERR_ATTENTION, "masked +inf");
    a.masked = double_of(0x8000000000000000);
    refuse(f, &c, MMAX_OK, "masked -0");
    a.masked = 0;
    a.bias = bias_storage;
    a.bias_stride = 7;
    refuse(f, &c, MMAX_ERR_SHAPE, "bias_stride below cols");
    a.bias_stride = 8;
    refuse(f, &c, MMAX_OK, "bias_stride of cols");
    a.bias_stride = SIZE_MAX / 2;
    refuse(f, &c, MMAX_ERR_SHAPE, "bias_stride that overflows");
    a.bias_rows = 1;
    a.bias_stride = 7;
    refuse(f, &c, MMAX_OK, "bias_stride below cols of one row of bias");
    a.bias_rows = 0;
    a.bias_stride = 0;
    if (!has(f, HAS_OUT) || !has(f, HAS_X)) { return; }
    a.bias = (char *)storage[OUT] + 2 * f->size;
    refuse(f, &c, MMAX_ERR_ALIAS, "an output overlapping bias partly");
    a.bias = (char *)storage[OUT] + 32 * f->size;
    refuse(f, &c, MMAX_OK, "an output next to bias");
    a.bias = bias_storage;
    if (is_lse(f)) {
        c.per_row = NULL;
        refuse(f, &c, MMAX_ERR_NULL, "lse NULL");
        c.s.rows = 1;
        c.s.attention = NULL;
        refuse(f, &c, MMAX_ERR_NULL, "lse NULL, of one row");
        c = small_call(f, &a);
        c.per_row = row_storage;
        c.array[OUT] = NULL;
        refuse(f, &c, MMAX_OK, "y NULL");
        c.array[X] = NULL;
        refuse(f, &c, MMAX_ERR_NULL, "x NULL");
    }
}

/* Small weights of sinks, which 1 - sum y cannot resolve. */
static void check_sinks_by_lse(size_t size) {
    const function *f = function_named(size == 4 ? "softmax_f32" : "softmax_f64");
    const function *lse_of = more_named("softmax_lse", size), *g = more_named("sink_gradient", size);
    double sinks[6] = {-12, -20, 3, 0, -60, 5}, lse[7], got[6];
    mmax_attention a = mmax_attention_none();
    const size_t n = 40, rows = 7;
    sinks[3] = double_of(0xfff0000000000000);
    FOR_EACH_ISA(isa) {
        call c = call_of(f, rows, n, NORMAL_4, 77);
        wide wanted[6] = {0}, magnitude[6] = {0};
        a.sinks = sinks;
        a.head_rows = 1;
        c.s.rows = 6;
        c.s.attention = &a;
        for (size_t i = 0; i < n; ++i) { set_special(f, storage[X], 5 * n + i, MINUS_INF); } /* nothing but the sink */
        c.array[OUT] = storage[Y];
        c.per_row = lse;
        CHECK(lse_of->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
        for (size_t r = 0; r < 6; ++r) {
            for (size_t i = 0; i < n; ++i) {
                const wide term = get(f, storage[Y], r * n + i) * (wide)get(f, storage[GY], r * n + i);
                wanted[r] -= term * expl(sinks[r] - (wide)lse[r]);
                magnitude[r] += fabsl(term * expl(sinks[r] - (wide)lse[r]));
            }
            got[r] = 0;
        }
        c.array[OUT] = storage[OUT];
        c.own.lse = lse;
        c.per_row = got;
        CHECK(g->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
        for (size_t r = 0; r < 6; ++r) {
            CHECK(fabsl(got[r] - wanted[r]) <= 1e-14L * magnitude[r], AT ", sink %g: gradient %.17g, not %.17Lg",
                  AT_ARGS(f, n), sinks[r], got[r], wanted[r]);
        }
    }
}

static void refusals_of_the_new(size_t size) {
    static const uint64_t caps[] = {0, 1, 0xbff0000000000000, 0x7ff8000000000000, 0x7ff0000000000000};
    static const char *const names[] = {"softcap", "softcap_backward"};
    static const char *const gradients[] = {"scale_gradient", "sink_gradient"};
    mmax_attention a;
    call c;
    const function *f;
    for (size_t k = 0; k < COUNT(names); ++k) {
        f = more_named(names[k], size);
        for (size_t i = 0; i < COUNT(caps); ++i) {
            c = small_call(f, &a);
            c.epsilon = double_of(caps[i]);
            refuse(f, &c, MMAX_ERR_PARAM, "a cap that is no normal number above 0");
        }
        for (int role_of = OUT; role_of < ARRAYS; ++role_of) {
            c = small_call(f, &a);
            if (!has(f, 1u << role_of)) { continue; }
            c.array[role_of] = NULL;
            refuse(f, &c, MMAX_ERR_NULL, "an array NULL");
        }
        c = small_call(f, &a);
        c.array[OUT] = (char *)storage[k ? GY : X] + size;
        refuse(f, &c, MMAX_ERR_ALIAS, "an output overlapping an input");
    }
    for (size_t k = 0; k < COUNT(gradients); ++k) {
        f = more_named(gradients[k], size);
        c = small_call(f, &a);
        c.per_row = NULL;
        refuse(f, &c, MMAX_ERR_NULL, "the gradient NULL");
        for (int role_of = GY; role_of < ARRAYS; ++role_of) {
            c = small_call(f, &a);
            if (!has(f, 1u << role_of)) { continue; }
            c.array[role_of] = NULL;
            refuse(f, &c, MMAX_ERR_NULL, "an array NULL");
        }
    }
}

/* Calls without rows or columns return before any other check. */
static void check_nothing_to_do(const function *f) {
    static mmax_attention bad;
    call c;
    memset(&c, 0, sizeof c);
    memset(&bad, 0, sizeof bad);
    bad.masked = 1;
    c.s.cols = 5;
    c.s.attention = &bad;
    CHECK(f->run(&c) == MMAX_OK, "%s: rows = 0", f->name);
    c.s.rows = 5;
    c.s.cols = 0;
    CHECK(f->run(&c) == MMAX_OK, "%s: cols = 0", f->name);
}

/* A program that sets none of the newer members. */
static void check_old_program(const function *f) {
    mmax_shape s = {0};
    mmax_shape rows = mmax_rows(3, 20), row = mmax_row(20);
    mmax_targets t = mmax_labels(index_storage), old = {0};
    call c = call_of(f, 3, 20, NORMAL_1, 3);
    size_t bytes = 60 * f->size;
    CHECK(rows.starts == NULL && rows.attention == NULL && row.starts == NULL && row.attention == NULL,
          "mmax_rows, mmax_row: members not 0");
    CHECK(t.weights == NULL && t.q == NULL && t.q_stride == 0, "mmax_labels: members not 0");
    CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, 20));
    memcpy(kept_out, storage[OUT], bytes);
    s.rows = 3;
    s.cols = 20;
    c.s = s;
    old.index = index_storage;
    c.t = old;
    memset(storage[OUT], 0x5a, bytes);
    memset(&gp_storage, 0, sizeof gp_storage);
    CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, 20));
    CHECK(f->kind == METRIC || memcmp(storage[OUT], kept_out, bytes) == 0, AT ": a shape of {0} gives other bits",
          AT_ARGS(f, 20));
}

/* ==== vectors computed elsewhere ==== */

enum { MOST = 512 };

typedef struct vectors {
    unsigned rows, cols;
    double scale, sink, x[MOST], y[MOST], gy[MOST], gx[MOST], gradient;
} vectors;
static vectors V;

/* "case NAME ROWS COLS SCALE [SINK]", then x, y, gy, gx and the gradient of the scale or the sink. */
static int read_vectors(FILE *in, int with_sink) {
    char word[32];
    size_t n;
    if (fscanf(in, "%31s", word) != 1) { return 0; }
    if (strcmp(word, "case") != 0 || fscanf(in, "%31s %u %u %lf", word, &V.rows, &V.cols, &V.scale) != 4) { return -1; }
    if (with_sink && fscanf(in, "%lf", &V.sink) != 1) { return -1; }
    n = (size_t)V.rows * V.cols;
    if (V.rows > MOST || V.cols > MOST || n > MOST) { return -1; }
    return read_values(in, "x", V.x, n) && read_values(in, "y", V.y, n) && read_values(in, "gy", V.gy, n) &&
                   read_values(in, "gx", V.gx, n) && read_values(in, with_sink ? "gsink" : "gs", &V.gradient, 1)
               ? 1
               : -1;
}

static void check_vectors(size_t size, int with_sink) {
    const function *f = function_named(size == 4 ? "softmax_f32" : "softmax_f64");
    const function *b = function_named(size == 4 ? "softmax_backward_f32" : "softmax_backward_f64");
    const function *g = more_named(with_sink ? "sink_gradient" : "scale_gradient", size);
    mmax_attention a;
    size_t n = (size_t)V.rows * V.cols;
    wide eps = eps_of(f) * SLACK;
    FOR_EACH_ISA(isa) {
        call c = plain_call(f, V.rows, V.cols, &a);
        double got_gradient = 0;
        wide magnitude = 0;
        if (with_sink) {
            a.sinks = &V.sink;
            c.s.scale = V.scale;
        } else {
            a.scales = &V.scale;
        }
        for (size_t i = 0; i < n; ++i) {
            set_value(storage[X], i, V.x[i]);
            set(f, storage[GY], i, V.gy[i]);
        }
        c.array[OUT] = storage[Y];
        CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, V.cols));
        c.array[OUT] = storage[OUT];
        CHECK(b->run(&c) == MMAX_OK, AT, AT_ARGS(b, V.cols));
        for (size_t r = 0; r < V.rows; ++r) {
            wide dot = 0;
            for (size_t i = r * V.cols; i < (r + 1) * V.cols; ++i) { dot += fabsl(V.y[i] * V.gy[i]); }
            for (size_t i = r * V.cols; i < (r + 1) * V.cols; ++i) {
                wide y = get(f, storage[Y], i), gx = get(f, storage[OUT], i);
                wide size_here = V.y[i] * (fabsl(V.gy[i]) + dot);
                CHECK(fabsl(y - V.y[i]) <= 5 * eps * V.y[i] + smallest_normal(f),
                      AT ", scale %g, sink %g: y[%u] is %.17Lg, not %.17g", AT_ARGS(f, V.cols), V.scale, V.sink,
                      (unsigned)i, y, V.y[i]);
                CHECK(fabsl(gx - V.gx[i]) <= 16 * eps * V.scale * size_here + smallest_normal(f),
                      AT ", scale %g, sink %g: gx[%u] is %.17Lg, not %.17g", AT_ARGS(b, V.cols), V.scale, V.sink,
                      (unsigned)i, gx, V.gx[i]);
                if (!is_minus_inf(storage[X], i)) { magnitude += size_here * (with_sink ? 1 : fabsl(V.x[i])); }
            }
            magnitude += with_sink ? dot : 0;
        }
        c.per_row = &got_gradient;
        c.array[GY] = storage[with_sink ? GY : OUT];
        CHECK(g->run(&c) == MMAX_OK, AT, AT_ARGS(g, V.cols));
        CHECK(fabsl(got_gradient - V.gradient) <= 16 * eps * magnitude + 1e-18L,
              AT ", scale %g, sink %g: %.17g, not %.17g", AT_ARGS(g, V.cols), V.scale, V.sink, got_gradient,
              V.gradient);
    }
}

static void check_file(const char *folder, const char *name, int with_sink, unsigned expected_cases) {
    char path[4096];
    unsigned cases = 0;
    int got = 0;
    FILE *in;
    (void)snprintf(path, sizeof path, "%s/%s.txt", folder, name);
    in = fopen(path, "r");
    CHECK(in != NULL, "cannot read %s", path);
    memset(&V, 0, sizeof V);
    while (in && (got = read_vectors(in, with_sink)) == 1) {
        check_vectors(4, with_sink);
        check_vectors(8, with_sink);
        ++cases;
    }
    CHECK(got == 0, "%s: case %u cannot be read", path, cases + 1);
    CHECK(cases == expected_cases, "%s: %u cases, not %u", path, cases, expected_cases);
    if (in) { (void)fclose(in); }
}

int main(int argc, char **argv) {
    const char *folder = argc > 1 ? argv[1] : "tests/golden";
    TEST("forward functions and log-sum-exp with everything switched on in turn and at once") {
        FOR_EACH_FUNCTION(f) {
            if (f->kind == FORWARD || f->kind == LOGARITHM) { forward_function(f); }
        }
        FOR_EACH_MORE(f) {
            if (is_lse(f)) { forward_function(f); }
        }
        NOTE("%lu of %lu rows have an entry within rounding of the mean", rows_skipped, rows_seen);
        CHECK(rows_skipped * 50 < rows_seen, "%lu of %lu rows skipped", rows_skipped, rows_seen);
    }
    TEST("log-sum-exp of rows with masked parts, and with NaN in one, without y") {
        FOR_EACH_ISA(isa) { check_parts_of_lse(); }
    }
    TEST("a bias of +inf makes its row NaN, whatever the slope") {
        FOR_EACH_ISA(isa) {
            for (size_t n = 1; n <= 300; n = 2 * n + 1) {
                for (int slope = -1; slope <= 1; ++slope) { check_infinite_bias(n, slope); }
            }
        }
    }
    TEST("a score that overflows to -inf with its bias is masked, backward, too") {
        FOR_EACH_ISA(isa) {
            check_overflowing_score(0);
            check_overflowing_score(1);
        }
    }
    TEST("attention that says nothing changes no bit") {
        FOR_EACH_FUNCTION(f) {
            for (size_t n = 1; n < 140 && (f->kind == FORWARD || f->kind == LOGARITHM); n = n * 2 + 1) {
                check_nothing(f, n);
            }
        }
    }
    TEST("x <= masked is masked, its neighbour is not") {
        for (size_t n = 1; n <= 70; n += n < 20 ? 1 : 7) {
            check_border(function_named("log_softmax_f32"), n);
            check_border(function_named("log_softmax_f64"), n);
            check_border(function_named("log_multimax(1)_f32"), n);
            check_border(function_named("seglu(1)_f64"), n);
        }
    }
    TEST("NaN or +inf in the bias of an entry masked by x") {
        FOR_EACH_FUNCTION(f) {
            for (size_t n = 3; n < 80 && (f->kind == FORWARD || f->kind == LOGARITHM); n += 10) {
                check_nan_under_mask(f, n, 1);
            }
        }
    }
    TEST("NaN or +inf in x of an entry masked by its bias") {
        FOR_EACH_FUNCTION(f) {
            for (size_t n = 3; n < 80 && (f->kind == FORWARD || f->kind == LOGARITHM); n += 10) {
                check_nan_under_mask(f, n, 0);
            }
        }
    }
    TEST("backward functions, gradients of scales and sinks against differences") {
        FOR_EACH_FUNCTION(f) {
            if (f->kind == BACKWARD || f->kind == LOG_BACKWARD) { backward_function(f); }
        }
        NOTE("%lu of %lu derivatives lie near a kink", differences_skipped, differences);
        CHECK(differences_skipped * 20 < differences, "%lu of %lu skipped", differences_skipped, differences);
    }
    TEST("the gradient of the scale counts active entries alone") {
        check_scale_gradient_masks(4);
        check_scale_gradient_masks(8);
    }
    TEST("soft caps") {
        softcap_functions(4);
        softcap_functions(8);
    }
    TEST("the gradient of a sink whose weight is small does not cancel, where lse is given") {
        check_sinks_by_lse(4);
        check_sinks_by_lse(8);
    }
    TEST("losses with weights, distributions and starts") {
        differences = differences_skipped = 0;
        FOR_EACH_FUNCTION(f) {
            if (f->kind == LOSS) { loss_function(f); }
        }
        NOTE("%lu of %lu derivatives lie near a kink", differences_skipped, differences);
        CHECK(differences_skipped * 20 < differences, "%lu of %lu skipped", differences_skipped, differences);
    }
    TEST("joined parts") {
        static const size_t counts[] = {2, 3, 7, 16, 33, 64}, lengths[] = {64, 100, 257, 1000, 5000};
        FOR_EACH_MORE(f) {
            for (size_t i = 0; i < COUNT(counts) * COUNT(lengths) * 4 && is_lse(f); ++i) {
                check_join(f, lengths[i / 4 % COUNT(lengths)], counts[i / 4 / COUNT(lengths)], i % 2 == 1,
                           i / 2 % 2 == 1, i);
            }
        }
        NOTE("the worst entry is off by %.2f ULP (f32), %.2f (f64)", worst_join[0], worst_join[1]);
    }
    TEST("refused calls touch nothing") {
        FOR_EACH_ISA(isa) {
            FOR_EACH_FUNCTION(f) { refusals(f); }
            FOR_EACH_MORE(f) { refusals(f); }
            refusals_of_the_new(4);
            refusals_of_the_new(8);
        }
    }
    TEST("a `masked` that masks nothing does not round the product of tanhmax's gradient") {
        mmax_attention a = mmax_attention_none();
        a.masked = -1e9;
        FOR_EACH_ISA(isa)
            for (int k = 0; k < 200; ++k) {
                const float most = (float)(random_normal() * 30), x[2] = {most, -0.99f * most},
                            gy[2] = {(float)random_normal(), (float)random_normal()};
                float y[2], gx[2], masked[2];
                mmax_shape s = mmax_row(2);
                s.scale = 0.6 + 0.01 * k;
                CHECK(mmax_tanhmax_f32(y, x, s) == MMAX_OK && mmax_tanhmax_backward_f32(gx, gy, y, x, s) == MMAX_OK,
                      "scale %g", s.scale);
                s.attention = &a;
                CHECK(mmax_tanhmax_backward_f32(masked, gy, y, x, s) == MMAX_OK, "scale %g", s.scale);
                for (int i = 0; i < 2; ++i) {
                    const double terms = s.scale * (fabs((double)gy[0]) + fabs((double)gy[1]));
                    CHECK(fabs((double)masked[i] - (double)gx[i]) <= 6e-7 * terms, "scale %g, x %g and %g: %g, not %g",
                          s.scale, (double)x[0], (double)x[1], (double)masked[i], (double)gx[i]);
                }
            }
    }
    TEST("nothing to do, and programs from before") {
        FOR_EACH_FUNCTION(f) {
            check_nothing_to_do(f);
            check_old_program(f);
        }
        FOR_EACH_MORE(f) { check_nothing_to_do(f); }
    }
    TEST("helpers") {
        static const float q[2] = {0.25f, 0.75f};
        mmax_targets t = mmax_distributions(q);
        CHECK(t.q == q && t.index == NULL && t.weights == NULL && t.q_stride == 0, "mmax_distributions");
        CHECK(bits_of(t.label_smoothing) == 0 && (t.grad_scale == 0 || t.grad_scale == 1), "mmax_distributions");
        for (int layer = 0; layer < LAYERS; ++layer) {
            for (int order = 1; order <= 2; ++order) {
                mmax_multimax_params p = mmax_multimax_from_table(order, layer_parameters[layer]);
                mmax_multimax_params e = params_of_layer(layer, order);
                CHECK(p.order == order, "layer %d", layer);
                for (int k = 0; k < order; ++k) {
                    CHECK(p.t_b[k] == e.t_b[k] && p.t_d[k] == e.t_d[k] && p.b[k] == e.b[k] && p.d[k] == e.d[k],
                          "mmax_multimax_from_table: layer %d, order %d, term %d", layer, order, k + 1);
                }
            }
        }
    }
    TEST("vectors of scales and sinks") {
        check_file(folder, "softmax_scale", 0, 99);
        check_file(folder, "softmax_sink", 1, 70);
    }
    return check_report();
}
