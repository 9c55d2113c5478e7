/*
 * test_losses.c: every loss and its gradients against the oracle, against differences of the oracle's loss and against
 * closed forms; log_softmax in ULP. log_multimax is bounded in test_forward.c, the gradients of both logarithms in
 * test_backward.c, refused arguments and NaN rows in test_special_cases.c.
 */
#if defined(__unix__) || defined(__APPLE__)
#    define _DEFAULT_SOURCE
#    define _DARWIN_C_SOURCE
#    define HAS_MAPS 1
#    include <sys/mman.h>
#    include <unistd.h>
#else
#    define HAS_MAPS 0
#endif

#include <stdio.h>

#include "function_table.h"
#include "oracle.h"
#include "tables.h"

/* The relative error of a loss, as multimax.h states it. CONDITION_BOUND is stated there, too: roundings of sigma's terms. */
static const double loss_bounds[FORMULAS][2] = {
    [SOFTMAX] = {2e-7, 1e-15},   [MULTIMAX] = {2 * FLT_EPSILON, 2 * DBL_EPSILON},
    [SPARSEMAX] = {6e-7, 2e-15}, [ENTMAX15] = {1e-6, 1e-13},
    [EVSOFTMAX] = {2e-7, 1e-15},
};
#define CONDITION_BOUND 2.0
/* The errors of gx and gp, in roundings: epsilon times the sum of the magnitudes of a result's terms. */
#define GRADIENT_BOUND   6
#define DIFFERENCE_ERROR 1e-7
#define STEP             (1.0 / 262144)
#define LOG_ULP          4.0

enum { ROWS = 4, PARAMETERS = 8, IGNORED = 2, MASKED_TARGET = 3 };
/* Shorter where the oracle works in software, in 113 bits. */
#if LDBL_MANT_DIG > 64
enum { LONGEST = 32768 };
#else
enum { LONGEST = 262144 };
#endif

/* The results that the oracle expects of a call: gradients row after row, entry i of row r at r * cols + i. */
static wide gx_all[LONGEST], unit_all[LONGEST], y_row[LONGEST];
static wide gp_all[PARAMETERS], gp_unit[PARAMETERS];
static wide losses[ROWS], loss_conditions[ROWS], loss_noise[ROWS];
static score s_row[LONGEST];
static wide observed[LONGEST];
static double long_x[LONGEST], long_out[LONGEST];

typedef struct worst {
    double loss, condition, gx, gp; /* relative; roundings */
} worst;
static worst worsts[MMAX_ISA_COUNT];

static int is_sparse_function(const function *f) {
    return oracle_formula(f->name) == SPARSEMAX || oracle_formula(f->name) == ENTMAX15;
}

static int is_sparse(const oracle *o) { return o->f == SPARSEMAX || o->f == ENTMAX15; }

static size_t length_of(const call *c, size_t r) { return c->s.ends ? c->s.ends[r] : c->s.cols; }

static size_t row_start(const function *f, call *c, role a, size_t r) {
    size_t stride = *stride_of(f, &c->s, a);
    return r * (stride ? stride : c->s.cols);
}

static double relative_bound(const function *f) {
    const double *bounds = loss_bounds[oracle_formula(f->name)];
    return f->size == 4 ? bounds[0] : bounds[1] * ORACLE_SLACK;
}

/* relative or absolute, whichever is larger */
static wide loss_bound(const function *f, wide loss) {
    return fmaxl(relative_bound(f) * loss, (f->size == 4 ? 2e-7 : 2e-15 * ORACLE_SLACK));
}

static double gradient_factor(const call *c) { return c->t.grad_scale != 0 ? c->t.grad_scale : 1; }

/* ==== expected results ==== */

/* Reads row r into s_row; evsoftmax: which entries count as below the mean is taken from the forward function. */
static void read_row(const function *f, call *c, oracle *o, size_t r) {
    wide size = 0;
    size_t n = length_of(c, r);
    for (size_t i = 0; i < n; ++i) {
        s_row[i] = oracle_score(o, get(f, c->array[X], row_start(f, c, X, r) + i), c->s.scale);
        size = is_masked(s_row[i]) ? size : fmaxl(size, fabsl(s_row[i].hi));
    }
    if (o->f == EVSOFTMAX) {
        call forward = *c;
        forward.array[OUT] = storage[Y];
        forward.array[X] = (char *)c->array[X] + row_start(f, c, X, r) * f->size;
        forward.s = mmax_row(n);
        forward.s.scale = c->s.scale;
        if (n <= MAX_ENTRIES) {
            CHECK(f->forward(&forward) == MMAX_OK, AT, AT_ARGS(f, n));
            for (size_t i = 0; i < n; ++i) { observed[i] = get(f, storage[Y], i); }
            o->observed = observed;
            o->near = 8 * eps_of(f) * size;
        }
    }
}

/* The magnitude to which roundings of sigma are relative in y_i = exp(sigma(s_i)) / sum: see test_forward.c. */
static wide sigma_unit(const oracle *o, size_t i) {
    wide unit = 0;
    if (o->f == MULTIMAX && !is_masked(s_row[i])) { (void)oracle_sigma(o->p, s_row[i].hi, &unit); }
    return unit;
}

/* Expectations of row r, from the gradient y - q. */
static void expect_row(const oracle *o, const call *c, size_t r, size_t n, double tiny) {
    wide *gx = gx_all + r * c->s.cols, *unit = unit_all + r * c->s.cols;
    wide mean = 0, largest_entry = 0, span = 0, factor = gradient_factor(c);
    wide eps = o->largest > FLT_MAX ? DBL_EPSILON : FLT_EPSILON;
    size_t active = 0, target = (size_t)c->t.index[r];
    score top = oracle_top(o, s_row, n);
    losses[r] = oracle_loss(o, y_row, s_row, n, target, c->t.label_smoothing);
    if (is_masked(s_row[target])) { losses[r] = INFINITY; }
    for (size_t i = 0; i < n; ++i) {
        mean += y_row[i] * sigma_unit(o, i);
        largest_entry = fmaxl(largest_entry, y_row[i]);
        active += !is_masked(s_row[i]);
        span = is_masked(s_row[i]) ? span : fmaxl(span, -difference(normalised_score(o, s_row[i]), top).hi);
    }
    loss_conditions[r] = 0;
    loss_noise[r] = 64 * LDBL_EPSILON * (1 + span) + tiny;
    for (size_t i = 0; i < n; ++i) {
        wide q = is_masked(s_row[i]) ? 0 : oracle_target(i, target, c->t.label_smoothing, active);
        wide y_unit = is_sparse(o) ? largest_entry : y_row[i] * (1 + sigma_unit(o, i) + mean);
        gx[i] = (y_row[i] - q) * factor;
        unit[i] = is_masked(s_row[i]) ? 0 : (y_unit + q + tiny / eps) * fabsl(factor);
        loss_conditions[r] += fabsl(y_row[i] - q) * sigma_unit(o, i);
    }
    oracle_chain(o, gx, unit, gp_all, gp_unit, s_row, n, c->s.scale);
}

/* The central difference of the loss of row r with respect to v, which is wide or double. */
#define DIFFERENCE(result, v, o)                                                                  \
    do {                                                                                          \
        (v) += STEP;                                                                              \
        (result) = oracle_loss(o, y_row, s_row, n, (size_t)c->t.index[r], c->t.label_smoothing);  \
        (v) -= 2 * STEP;                                                                          \
        (result) -= oracle_loss(o, y_row, s_row, n, (size_t)c->t.index[r], c->t.label_smoothing); \
        (v) += STEP;                                                                              \
        (result) *= gradient_factor(c) / (2 * STEP);                                              \
    } while (0)

/* The same with differences of the loss for gradients; not where a masked target makes the loss infinite. */
static void expect_differences(const oracle *o, const call *c, size_t r, size_t n, double tiny) {
    wide before[PARAMETERS], slope;
    wide *gx = gx_all + r * c->s.cols;
    memcpy(before, gp_all, sizeof before);
    expect_row(o, c, r, n, tiny);
    if (losses[r] > DBL_MAX) { return; }
    for (size_t i = 0; i < n; ++i) {
        if (!is_masked(s_row[i])) {
            DIFFERENCE(slope, s_row[i].hi, o);
            gx[i] = slope * c->s.scale;
        }
    }
    for (int k = 0; k < PARAMETERS && o->f == MULTIMAX; ++k) {
        mmax_multimax_params p = *o->p;
        oracle moved = *o;
        double *parameters[PARAMETERS] = {&p.t_b[0], &p.t_b[1], &p.t_d[0], &p.t_d[1],
                                          &p.b[0],   &p.b[1],   &p.d[0],   &p.d[1]};
        moved.p = &p;
        DIFFERENCE(slope, *parameters[k], &moved);
        gp_all[k] = before[k] + slope;
    }
}

/* ==== calls ==== */

/*
 * A call with strides that differ, a row of full length, an ignored one full of NaN and one whose target is masked;
 * in two of three calls one entry in five is masked. Gradients of parameters add up on what is there.
 */
static call loss_call(const function *f, size_t cols, law l, double scale, uint64_t seed) {
    static const double smoothings[] = {0, 0.1, 0, 0.9}, grad_scales[] = {0, 0.25, -3};
    static uint32_t lengths[ROWS];
    call c = call_of(f, 1, ROWS * (cols + 8), l, seed);
    c.s = mmax_rows(ROWS, cols);
    c.s.x_stride = cols + 1;
    c.s.gx_stride = cols + 3;
    c.s.scale = scale;
    c.s.ends = lengths;
    c.t.label_smoothing = smoothings[seed % 4];
    c.t.grad_scale = grad_scales[seed % 3];
    for (size_t r = 0; r < ROWS; ++r) {
        size_t start = row_start(f, &c, X, r), target;
        lengths[r] = (uint32_t)(r == 1 ? cols : cols - random_below(cols) / 2);
        target = random_below(lengths[r]);
        index_storage[r] = r == IGNORED ? -(int32_t)(1 + seed % 100) : (int32_t)target;
        for (size_t i = 0; i < cols; ++i) {
            if (r == IGNORED || i >= lengths[r]) {
                set_special(f, c.array[X], start + i, QUIET_NAN);
            } else if (r == MASKED_TARGET ? i == target : seed % 3 != 1 && i != target && random_below(5) == 0) {
                set_special(f, c.array[X], start + i, MINUS_INF);
            }
        }
    }
    for (size_t k = 0; k < PARAMETERS; ++k) { ((double *)&gp_storage)[k] = (double)k - 3.5; }
    return c;
}

/* Fills all outputs of a call with values that it must replace. */
static void clear_outputs(const function *f, const call *c) {
    memset(c->array[OUT], 0x5a, ((c->s.rows - 1) * c->s.gx_stride + c->s.cols) * f->size);
    memset(c->per_row, 0x5a, c->s.rows * sizeof(double));
}

static void check_losses(const function *f, const call *c, int isa) {
    for (size_t r = 0; r < c->s.rows; ++r) {
        wide e = fabsl(c->per_row[r] - losses[r]), here = loss_bound(f, losses[r]) + loss_noise[r];
        wide roundings = CONDITION_BOUND * eps_of(f) * loss_conditions[r];
        if (c->t.index[r] < 0 || losses[r] > DBL_MAX) {
            CHECK(bits_of(c->per_row[r]) == (c->t.index[r] < 0 ? 0 : 0x7ff0000000000000), AT ", row %u: loss %g",
                  AT_ARGS(f, c->s.cols), (unsigned)r, c->per_row[r]);
            continue;
        }
        CHECK(e <= here + roundings,
              AT ", row %u: loss %.17g, not %.17Lg: error %.3Lg relative, scale %g, smoothing %g",
              AT_ARGS(f, c->s.cols), (unsigned)r, c->per_row[r], losses[r], e / losses[r], c->s.scale,
              c->t.label_smoothing);
        if (loss_conditions[r] > 0) {
            double units = (double)(e / (eps_of(f) * (loss_conditions[r] + losses[r]) + loss_noise[r]));
            worsts[isa].condition = fmax(worsts[isa].condition, units);
        }
        if (losses[r] > 0 && loss_noise[r] < 0.01 * here) {
            worsts[isa].loss = fmax(worsts[isa].loss, (double)(e / losses[r]));
        }
    }
}

static void check_gradients(const function *f, call *c, int isa, const double *before, double error) {
    double eps = eps_of(f) * (f->size == 4 ? 1 : ORACLE_SLACK), after[PARAMETERS];
    size_t wrong = 0;
    for (size_t r = 0; r < c->s.rows; ++r) {
        size_t start = row_start(f, c, OUT, r), at = r * c->s.cols;
        for (size_t i = 0; i < c->s.cols; ++i) {
            wide unit = unit_all[at + i], got = get(f, c->array[OUT], start + i), e = fabsl(got - gx_all[at + i]);
            if (unit == 0) { /* masked, ignored, or past ends[r] */
                wrong += get_bits(f, c->array[OUT], start + i) != 0;
                continue;
            }
            wide tiny = got == 0 ? smallest_normal(f) : 0; /* smaller results are 0 */
            CHECK(e <= GRADIENT_BOUND * eps * unit + error * (unit + fabsl(gradient_factor(c)) * c->s.scale) + tiny,
                  AT ", row %u, gx[%u]: %.9Lg, not %.9Lg: %.3Lg roundings", AT_ARGS(f, c->s.cols), (unsigned)r,
                  (unsigned)i, got, gx_all[at + i], e / (eps * unit));
            worsts[isa].gx = error > 0 ? worsts[isa].gx : fmax(worsts[isa].gx, (double)((e - tiny) / (eps * unit)));
        }
    }
    CHECK(!wrong, AT ": %u entries that do not count are not +0", AT_ARGS(f, c->s.cols), (unsigned)wrong);
    memcpy(after, c->gp, sizeof after);
    for (int k = 0; k < PARAMETERS; ++k) {
        int touched = has(f, HAS_GP) && k % 2 < f->order;
        wide e = fabsl((wide)after[k] - before[k] - gp_all[k]);
        wide unit = eps * gp_unit[k] + 4 * DBL_EPSILON * (fabsl(after[k]) + fabsl(before[k]));
        CHECK(touched ? e <= GRADIENT_BOUND * unit + error * (gp_unit[k] + fabsl(gradient_factor(c)))
                      : bits_of(after[k]) == bits_of(before[k]),
              AT ", gp[%d]: %.9g added, not %.9Lg", AT_ARGS(f, c->s.cols), k, after[k] - before[k], gp_all[k]);
        if (touched && unit > 0 && !(error > 0)) { worsts[isa].gp = fmax(worsts[isa].gp, (double)(e / unit)); }
    }
}

typedef void expectation(const oracle *o, const call *c, size_t r, size_t n, double tiny);

/* Runs a call on every instruction set and compares it with `expect`. */
static void check_call(const function *f, call *c, expectation *expect, double error) {
    oracle o = {oracle_formula(f->name), 0, c->p, c->epsilon, largest(f), NULL, 0};
    mmax_multimax_grads start = *c->gp;
    double before[PARAMETERS];
    int done = 0;
    memcpy(before, &start, sizeof before);
    FOR_EACH_ISA(isa) {
        if (!done || o.f == EVSOFTMAX) {
            memset(gp_all, 0, sizeof gp_all);
            memset(gp_unit, 0, sizeof gp_unit);
            memset(unit_all, 0, c->s.rows * c->s.cols * sizeof *unit_all);
            for (size_t r = 0; r < c->s.rows; ++r) {
                if (c->t.index[r] >= 0) {
                    read_row(f, c, &o, r);
                    expect(&o, c, r, length_of(c, r), smallest_normal(f));
                }
            }
            done = 1;
        }
        *c->gp = start;
        clear_outputs(f, c);
        CHECK(f->run(c) == MMAX_OK, AT, AT_ARGS(f, c->s.cols));
        check_losses(f, c, isa);
        check_gradients(f, c, isa, before, error);
    }
}

static void report(const function *f) {
    FOR_EACH_ISA(isa) {
        const worst *w = &worsts[isa];
        if (w->gx == 0) {
            NOTE("%-20s %-7s loss %.2e relative", f->name, mmax_isa_name((mmax_isa)isa), w->loss);
        } else if (has(f, HAS_GP)) {
            NOTE("%-20s %-7s loss %.2e relative, %6.3f roundings, gx %6.3f, gp %6.3f roundings", f->name,
                 mmax_isa_name((mmax_isa)isa), w->loss, w->condition, w->gx, w->gp);
        } else {
            NOTE("%-20s %-7s loss %.2e relative, gx %6.3f roundings", f->name, mmax_isa_name((mmax_isa)isa), w->loss,
                 w->gx);
        }
    }
    memset(worsts, 0, sizeof worsts);
}

/* ==== one row on arrays of its own ==== */

static call long_call(const function *f, size_t n, int32_t target, double scale) {
    call c = call_of(f, 1, 1, EQUAL, 1);
    c.array[X] = long_x;
    c.array[OUT] = long_out;
    index_storage[0] = target;
    c.s = mmax_row(n);
    c.s.gx_stride = n;
    c.s.scale = scale;
    return c;
}

/* The loss of a target that stands `gap` above `others` equal scores, without cancellation. */
static wide closed_form(formula g, score gap, wide others, double epsilon) {
    wide u = gap.hi, rest = (1 - gap.hi) - gap.lo, low, high;
    switch (g) {
    case SPARSEMAX: return rest > 0 ? others / (others + 1) * rest * rest / 2 : 0;
    case ENTMAX15:
        u = gap.hi / 2; /* roots of the entries: low, and high = low + u */
        rest = (1 - u) - gap.lo / 2;
        if (!(rest > 0)) { return 0; }
        low = rest * (1 + u) / (u + sqrtl(u * u + (others + 1) * rest * (1 + u)));
        high = others * low * low / (2 + u - (1 - low)); /* 1 - high */
        return (high * high * (3 - high) + others * low * low * low) * 2 / 3;
    default: return log1pl(others * exp_of(negative(gap)) * (g == EVSOFTMAX && u > 0 ? (wide)epsilon : 1));
    }
}

/* The gap at which a loss is about `loss`. */
static double gap_for(formula g, double loss, size_t count, double epsilon) {
    double others = (double)count, low;
    switch (g) {
    case SPARSEMAX: return 1 - sqrt(2 * loss * (others + 1) / others);
    case ENTMAX15: low = pow(1.5 * loss / others, 1.0 / 3); return 2 - 2 * low - others * low * low;
    default: return log(others / loss) + (g == EVSOFTMAX ? log(epsilon) : 0);
    }
}

static void check_closed_form(const function *f, const mmax_multimax_params *p, size_t n, double base, double scale,
                              double loss) {
    oracle o = {oracle_formula(f->name), 0, p, f->epsilon, largest(f), NULL, 0};
    size_t target = n / 3, others = n - 1, other = 0;
    call c = long_call(f, n, (int32_t)target, scale);
    wide unit[2] = {0, 0}, tiny = smallest_normal(f);
    score s[2], gap;
    c.p = p;
    /* Two in three entries of the sparse functions have no weight. */
    for (size_t i = 0; i < n; ++i) {
        int far = is_sparse(&o) && n > 3 && i != target && i % 3 != 0;
        others -= (size_t)far;
        set(f, long_x, i, far ? base - 3 / scale : base);
    }
    for (size_t i = 0; i < n; ++i) {
        if (i != target && get(f, long_x, i) == base) {
            /* with low bits that the difference to the target cannot hold */
            set(f, long_x, i, (base - gap_for(o.f, loss, others, f->epsilon) / scale) * (1 + 3 * DBL_EPSILON));
            other = i;
        }
    }
    s[0] = oracle_score(&o, get(f, long_x, target), scale);
    s[1] = oracle_score(&o, get(f, long_x, other), scale);
    for (int k = 0; k < 2 && o.f == MULTIMAX; ++k) { s[k].hi = oracle_sigma(p, s[k].hi, &unit[k]); }
    gap = difference(s[0], s[1]);
    if (!(gap.hi > 0)) { return; }
    losses[0] = closed_form(o.f, gap, (wide)others, f->epsilon);
    loss_conditions[0] = losses[0] * (unit[0] + unit[1]);
    loss_noise[0] = tiny;
    if (is_sparse(&o) && losses[0] == 0) { loss_noise[0] = 1e-12; }
    FOR_EACH_ISA(isa) {
        clear_outputs(f, &c);
        CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
        check_losses(f, &c, isa);
    }
}

/* Moves scores on both sides of 0 apart. */
static void spread(const function *f, call *c, double distance) {
    for (size_t r = 0; r < ROWS && distance > 0; ++r) {
        size_t start = row_start(f, c, X, r);
        for (size_t i = 0; i < length_of(c, r); ++i) {
            double x = get(f, c->array[X], start + i);
            set(f, c->array[X], start + i, x + (x < 0 ? -distance : distance));
        }
    }
}

/* The loss of MultiMax is that of softmax for the sigma that seglu gives, however large: for the target with the largest
 * sigma, and for another. */
static void check_large_sigma(const function *f, size_t n, double smoothing) {
    const oracle o = {SOFTMAX, 0, NULL, 0, largest(f), NULL, 0};
    char name[16];
    size_t top = 0;
    (void)snprintf(name, sizeof name, "seglu(%d)_%s", f->order, f->size == 4 ? "f32" : "f64");
    for (size_t i = 0; i < n; ++i) { set(f, long_x, i, 1e4 - 2e4 * random_uniform()); }
    FOR_EACH_ISA(isa) {
        call c = long_call(f, n, 0, 1);
        CHECK(function_named(name)->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
        for (size_t i = 0; i < n; ++i) {
            s_row[i].hi = get(f, long_out, i);
            s_row[i].lo = 0;
            top = s_row[i].hi > s_row[top].hi ? i : top;
        }
        oracle_forward(&o, y_row, s_row, n);
        c.t.label_smoothing = smoothing;
        loss_noise[0] = 64 * LDBL_EPSILON;
        for (int k = 0; k < 2; ++k) {
            wide expected, e;
            index_storage[0] = (int32_t)(k ? top : n / 7);
            expected = oracle_loss(&o, y_row, s_row, n, (size_t)index_storage[0], smoothing);
            CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
            e = fabsl(c.per_row[0] - expected);
            CHECK(e <= loss_bound(f, expected) + loss_noise[0],
                  AT ": loss %.17g, not %.17Lg: error %.3Lg relative, target %d", AT_ARGS(f, n), c.per_row[0], expected,
                  e / expected, k);
        }
    }
}

/* ==== outputs left out, or in place ==== */

enum { WITH_LOSS = 1, WITH_GX = 2, WITH_GP = 4, IN_PLACE = 8, VARIANTS = 16 };

/* Scores on both sides of 0 are first moved apart. */
static void check_variants(const function *f, const mmax_multimax_params *p, size_t n, law l, uint64_t seed,
                           double apart) {
    static double gx[MAX_ENTRIES], x[MAX_ENTRIES];
    double all[ROWS];
    call c = loss_call(f, n, l, 1.5, seed);
    mmax_multimax_grads start = gp_storage, gp;
    size_t size = ((ROWS - 1) * (n + 1) + n) * f->size;
    c.s.gx_stride = c.s.x_stride;
    c.p = p;
    spread(f, &c, apart);
    memcpy(x, c.array[X], size);
    CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
    memcpy(gx, c.array[OUT], size);
    memcpy(all, c.per_row, sizeof all);
    gp = gp_storage;
    for (int which = 1; which < VARIANTS; ++which) {
        call v = c;
        v.per_row = which & WITH_LOSS ? c.per_row : NULL;
        v.array[OUT] = !(which & WITH_GX) ? NULL : which & IN_PLACE ? c.array[X] : c.array[OUT];
        v.gp = which & WITH_GP ? c.gp : NULL;
        if ((which & IN_PLACE && !(which & WITH_GX)) || (!has(f, HAS_GP) && which & WITH_GP) || which == IN_PLACE) {
            continue;
        }
        memcpy(c.array[X], x, size);
        clear_outputs(f, &c);
        gp_storage = start;
        CHECK(f->run(&v) == MMAX_OK, AT ", outputs %d", AT_ARGS(f, n), which);
        CHECK(!v.per_row || memcmp(all, v.per_row, sizeof all) == 0, AT ": loss, outputs %d", AT_ARGS(f, n), which);
        CHECK(!v.gp || memcmp(&gp, v.gp, sizeof gp) == 0, AT ": gp, outputs %d", AT_ARGS(f, n), which);
        for (size_t r = 0; r < ROWS && v.array[OUT]; ++r) {
            size_t at = r * c.s.gx_stride * f->size;
            CHECK(memcmp((char *)gx + at, (char *)v.array[OUT] + at, n * f->size) == 0, AT ", row %u: gx, outputs %d",
                  AT_ARGS(f, n), (unsigned)r, which);
        }
    }
}

/* ==== published losses ==== */

/* Martins and Astudillo 2016, section 3.3: -z_k + 1/2 sum over the support of (z_j^2 - tau^2) + 1/2; entmax15, Peters
 * et al. 2019, eq. 10: (p - e_k)' z + 4/3 sum (p_j - p_j^1.5). *size: what their cancellation is relative to. */
static wide published(const oracle *o, size_t n, size_t target, wide *size) {
    wide sum = 0, tau = 0;
    *size = 1;
    oracle_forward(o, y_row, s_row, n);
    for (size_t i = 0; i < n; ++i) { tau = y_row[i] > 0 ? s_row[i].hi - y_row[i] : tau; }
    for (size_t i = 0; i < n; ++i) {
        wide z = s_row[i].hi, p = y_row[i];
        if (p > 0) {
            sum += o->f == SPARSEMAX ? (z * z - tau * tau) / 2 : p * z + (p - p * sqrtl(p)) * 4 / 3;
            *size += o->f == SPARSEMAX ? z * z : fabsl(z);
        }
    }
    *size += fabsl(s_row[target].hi);
    return sum - s_row[target].hi + (o->f == SPARSEMAX ? 0.5L : 0);
}

static void check_published(const function *f, size_t n, law l, double scale) {
    oracle o = {oracle_formula(f->name), 0, NULL, 0, largest(f), NULL, 0};
    call c = call_of(f, 1, n, l, 77);
    c.s.scale = scale;
    c.s.gx_stride = n;
    read_row(f, &c, &o, 0);
    losses[0] = published(&o, n, (size_t)index_storage[0], &loss_noise[0]);
    loss_noise[0] *= 16 * LDBL_EPSILON;
    loss_conditions[0] = 0;
    FOR_EACH_ISA(isa) {
        CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
        check_losses(f, &c, isa);
    }
}

/* ==== logarithms ==== */

/* Judges the row in long_x; returns nothing but the worst error in ULP of the larger of |result| and 2^-10. */
static void check_log(const function *f, size_t n, double scale, double bound, double *worst_ulp) {
    oracle o = {SOFTMAX, 1, NULL, 0, largest(f), NULL, 0};
    call c = {{long_out, NULL, NULL, long_x}, NULL, NULL, NULL, 0, 0, {NULL, 0, 0, NULL, NULL, 0}, mmax_row(n), {0}};
    c.s.scale = scale;
    for (size_t i = 0; i < n; ++i) {
        s_row[i] = oracle_score(&o, get(f, long_x, i), scale);
        if (fabs(get(f, long_x, i)) * scale > largest(f) / 4 && is_finite_at(f, long_x, i)) {
            return; /* beyond the range of T: see test_special_cases.c */
        }
    }
    oracle_forward(&o, y_row, s_row, n);
    FOR_EACH_ISA(isa) {
        wide largest_error = 0;
        size_t at = 0, wrong = 0;
        CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
        for (size_t i = 0; i < n; ++i) {
            wide e;
            if (is_masked(s_row[i])) {
                wrong += get_bits(f, long_out, i) != masked_bits(f);
                continue;
            }
            e = fabsl(get(f, long_out, i) - y_row[i]) / ulp(y_row[i], eps_of(f), 1);
            at = e > largest_error ? i : at;
            largest_error = fmaxl(largest_error, e);
        }
        CHECK(!wrong, AT ": %u masked entries are not -inf", AT_ARGS(f, n), (unsigned)wrong);
        CHECK(largest_error <= bound * (f->size == 4 ? 1 : ORACLE_SLACK),
              AT ", entry %u: %.17g, not %.17Lg: %.3Lg ULP, scale %g", AT_ARGS(f, n), (unsigned)at,
              get(f, long_out, at), y_row[at], largest_error, scale);
        worst_ulp[isa] = fmax(worst_ulp[isa], (double)largest_error);
    }
}

static const double scales[] = {1, 0.7, 2.5, 0.0625};
static const law laws[] = {NORMAL_1, NORMAL_4, NORMAL_32, TIES, CLUSTERS, MASKED, GEOMETRIC, EQUAL, ONE_HOT};

/* The loss of a row whose odd or even entries are at the maximum and the others a distance too wide for the type below;
 * the last one of more than three is masked. */
static void check_wide_smoothing(const function *f, call *c, size_t odd) {
    const size_t n = c->s.cols, active = n > 3 ? n - 1 : n, high = (active + 1 - odd) / 2;
    const int sparsemax = strncmp(f->name, "sparsemax", 9) == 0;
    const wide weight = 1 / (wide)high, distance = 2 * (wide)largest(f) * (wide)c->s.scale;
    wide expected = 0;
    for (size_t i = 0; i < n; ++i) { set(f, c->array[X], i, i % 2 == odd ? largest(f) : -largest(f)); }
    if (active < n) { set_special(f, c->array[X], active, MINUS_INF); }
    for (size_t i = 0; i < active; ++i) {
        const wide q = (wide)c->t.label_smoothing / (wide)active + ((int32_t)i == index_storage[0] ? 0.5L : 0);
        const wide p = i % 2 == odd ? weight : 0, between = sqrtl(q) - sqrtl(p);
        expected += sparsemax ? (p - q) * (p - q) / 2 : between * between * (2 * sqrtl(q) + sqrtl(p)) * 2 / 3;
        expected += i % 2 == odd ? 0 : q * (sparsemax ? distance - weight : distance - 2 * sqrtl(weight));
    }
    expected = fminl(expected, (wide)DBL_MAX);
    CHECK(f->run(c) == MMAX_OK, AT, AT_ARGS(f, n));
    CHECK(fabsl((wide)row_storage[0] - expected) <= loss_bound(f, expected), AT ", scale %g: %g, not %Lg",
          AT_ARGS(f, n), c->s.scale, row_storage[0], expected);
}

static mmax_status run_without_gradient(const function *f, call c) {
    c.array[OUT] = NULL;
    return f->run(&c);
}

/* Rows with a mask inside, and one without: its origin may be a peak of sigma, as if it came first. */
static void check_after_masks(const function *f, const mmax_multimax_params *p, size_t n, uint64_t seed) {
    FOR_EACH_ISA(isa) {
        call c = call_of(f, 3, n, NORMAL_4, seed);
        double loss;
        c.p = p;
        for (size_t row = 0; row < 2; ++row) { set_special(f, c.array[X], row * n + n / 2, MINUS_INF); }
        CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
        loss = row_storage[2];
        c.s.rows = 1;
        c.array[X] = (char *)c.array[X] + 2 * n * f->size;
        c.t.index += 2;
        CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
        CHECK(bits_of(row_storage[0]) == bits_of(loss), AT ": %.17g after rows with masks, alone %.17g", AT_ARGS(f, n),
              loss, row_storage[0]);
    }
}

#define FOR_EACH_LOSS(f) \
    FOR_EACH_FUNCTION(f) \
        if (f->kind == LOSS)

/* ==== any magnitude ==== */

/* `rows` rows of x, loss and gx of a loss, by class or by the same targets as q. */
static call extreme_call(const function *f, size_t rows, size_t n, const double *x, int by_q) {
    call c = call_of(f, rows, n, NORMAL_1, 5);
    for (size_t i = 0; i < rows * n; ++i) {
        if (x && !(x[i] >= -DBL_MAX)) { set_special(f, c.array[X], i, MINUS_INF); }
        if (x && x[i] >= -DBL_MAX) { set(f, c.array[X], i, x[i]); }
        set(f, storage[Y], i, 0);
    }
    for (size_t r = 0; r < rows; ++r) {
        index_storage[r] = (int32_t)(r % n);
        set(f, storage[Y], r * n + r % n, 1);
    }
    if (by_q) { c.t = mmax_distributions(storage[Y]); }
    return c;
}

#define BY        ", by %s: "
#define BY_ARG(q) ((q) ? "q" : "class")

/* 70 rows of one call against calls on each row alone: groups of rows, and what they leave for later, end anywhere. */
static void check_batch(const function *f, size_t n) {
    static float y[70 * 1024], gx[70 * 1024], one[1024];
    static double y64[70 * 1024], gx64[70 * 1024], one64[1024], loss[70], alone;
    static int32_t index[70];
    const int is_float = f->size == 4;
    size_t wrong = 0;
    for (size_t i = 0; i < 70 * n; ++i) { y64[i] = y[i] = (float)(4 * random_normal()); }
    for (size_t r = 0; r < 70; ++r) { index[r] = (int32_t)random_below(n); }
    for (int what = 0; what < 2; ++what) {
        const mmax_shape all = mmax_rows(70, n), row = mmax_row(n);
        if (is_float) {
            if (what) {
                mmax_softmax_loss_f32(loss, gx, y, mmax_labels(index), all);
            } else {
                mmax_log_softmax_f32(gx, y, all);
            }
        } else {
            if (what) {
                mmax_softmax_loss_f64(loss, gx64, y64, mmax_labels(index), all);
            } else {
                mmax_log_softmax_f64(gx64, y64, all);
            }
        }
        for (size_t r = 0; r < 70; ++r) {
            mmax_targets t = mmax_labels(index + r);
            if (is_float) {
                if (what) {
                    mmax_softmax_loss_f32(&alone, one, y + r * n, t, row);
                } else {
                    mmax_log_softmax_f32(one, y + r * n, row);
                }
                wrong += memcmp(one, gx + r * n, n * sizeof *one) != 0;
            } else {
                if (what) {
                    mmax_softmax_loss_f64(&alone, one64, y64 + r * n, t, row);
                } else {
                    mmax_log_softmax_f64(one64, y64 + r * n, row);
                }
                wrong += memcmp(one64, gx64 + r * n, n * sizeof *one64) != 0;
            }
            wrong += what && memcmp(&alone, loss + r, sizeof alone) != 0;
        }
    }
    CHECK(wrong == 0, AT ": %u of 70 rows differ from those alone", AT_ARGS(f, n), (unsigned)wrong);
}

static void test_shifted_scores(void) {
    TEST("label smoothing: a score that overflows where the largest is taken off it, or in sigma, is no mask") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                for (int k = 0; k < 8; ++k) {
                    const int by_q = k & 1, steep = k >> 1 & 1;
                    const size_t n = k & 4 ? 40 : 4;
                    mmax_multimax_params p = mmax_multimax_identity(f->order ? f->order : 1);
                    double x[40], slope = 1, top = largest(f);
                    call c;
                    if (f->kind != LOSS || (steep && f->order != 2)) { continue; }
                    for (size_t i = 0; i < n; ++i) { x[i] = -INFINITY; }
                    x[0] = steep ? 1 : 0.6 * top;
                    x[1] = steep ? -sqrt(top) * 8 : -0.9 * top;
                    x[n - 1] = 0;
                    if (steep) { p.t_b[1] = 2, slope = 1 - 2 * x[1]; }
                    c = extreme_call(f, 1, n, x, by_q);
                    c.p = &p;
                    c.t.label_smoothing = 0.3;
                    CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
                    CHECK(fabs(get(f, c.array[OUT], 1) + 0.1 * slope) <= 1e-6 * slope, AT BY "gx is %g, not %g",
                          AT_ARGS(f, n), BY_ARG(by_q), get(f, c.array[OUT], 1), -0.1 * slope);
                    CHECK(get_bits(f, c.array[OUT], 2) == 0, AT BY "the gradient of a mask is %g", AT_ARGS(f, n),
                          BY_ARG(by_q), get(f, c.array[OUT], 2));
                }
    }
}

static void compare_targets(const function *f, size_t n, double smoothing, double scale) {
    const double rel = f->size == 4 ? 2e-6 : 2e-13, abs_ = f->size == 4 ? 5e-7 : 1e-14;
    enum { FEW = 5 };
    double loss[FEW];
    FOR_EACH_ISA(isa) {
        call c = extreme_call(f, FEW, n, NULL, 0), q;
        for (size_t r = 0; r < FEW; ++r) {
            for (size_t i = 0; i < n; ++i) {
                double x = get(f, c.array[X], r * n + i);
                set(f, c.array[X], r * n + i,
                    r == 0   ? x
                    : r == 1 ? x * 100
                    : r == 2 ? -1.8e36 * (1 + (double)i / 64)
                    : r == 3 ? largest(f) * (2 * random_uniform() - 1)
                             : -largest(f) * random_uniform());
            }
        }
        c.s.scale = scale;
        c.t.label_smoothing = smoothing;
        CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
        memcpy(loss, row_storage, sizeof loss);
        memcpy(long_out, storage[OUT], FEW * n * f->size);
        q = c;
        q.t = mmax_distributions(storage[Y]);
        q.t.label_smoothing = smoothing;
        CHECK(f->run(&q) == MMAX_OK, AT, AT_ARGS(f, n));
        for (size_t r = 0; r < FEW; ++r) {
            CHECK(bits_of(loss[r]) == bits_of(row_storage[r]) ||
                      fabs(loss[r] - row_storage[r]) <= fmax(abs_, rel * loss[r]),
                  AT ", row %u, smoothing %g, scale %g: loss %.17g by class, %.17g by q", AT_ARGS(f, n), (unsigned)r,
                  smoothing, scale, loss[r], row_storage[r]);
            for (size_t i = r * n; i < (r + 1) * n; ++i) {
                double a = get(f, long_out, i), b = get(f, storage[OUT], i);
                double slope = f->order == 2 ? fabs(a) : (f->order ? 2 : 1) * scale;
                CHECK(get_bits(f, long_out, i) == get_bits(f, storage[OUT], i) ||
                          fabs(a - b) <= 8 * rel * (slope + scale),
                      AT ", row %u, smoothing %g, scale %g: gx[%u] %.9g by class, %.9g by q", AT_ARGS(f, n),
                      (unsigned)r, smoothing, scale, (unsigned)(i - r * n), a, b);
            }
        }
    }
}

static void test_same_targets(void) {
    TEST("the same target as a class and as q: the same loss and gx, at any magnitude") {
        static const size_t lengths[] = {1, 2, 8, 33, 100};
        FOR_EACH_FUNCTION(f)
            for (size_t k = 0; f->kind == LOSS && k < COUNT(lengths); ++k) {
                for (int j = 0; j < 8; ++j) {
                    static const double by[] = {1, 256, 1e-12, 1e18};
                    compare_targets(f, lengths[k], j & 4 ? 0.3 : 0, by[j % 4]);
                }
            }
    }
}

static void test_infinite_gradients(void) {
    TEST("an overflowing grad_scale * weight * scale: infinite where y - q is not 0, 0 at masks and where both are 0") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                for (int k = 0; f->kind == LOSS && k < 64; ++k) {
                    const int by_q = k & 1, sign = k & 2 ? -1 : 1, smooth = k >> 2 & 1, by_scale = k >> 3 & 1,
                              in_place = k >> 5;
                    const size_t n = k & 16 ? 50 : 4;
                    const double scale = by_scale ? 1024 : 1, weight[1] = {by_scale ? 1 : 1e10};
                    mmax_multimax_params p = mmax_multimax_identity(f->order ? f->order : 1);
                    double x[50], gp[8];
                    call c;
                    for (size_t i = 0; i < n; ++i) { x[i] = -INFINITY; }
                    x[0] = 3 / scale;
                    x[1] = -2000 / scale;
                    x[n - 1] = 2.5 / scale;
                    c = extreme_call(f, 1, n, x, by_q);
                    c.p = &p;
                    c.s.scale = scale;
                    c.t.weights = weight;
                    c.t.grad_scale = sign * 0.9 * largest(f);
                    c.t.label_smoothing = smooth ? 0.3 : 0;
                    if (in_place) { c.array[OUT] = c.array[X]; }
                    CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
                    CHECK(is_special(f, c.array[OUT], 0, sign > 0 ? MINUS_INF : PLUS_INF) &&
                              is_special(f, c.array[OUT], n - 1, sign > 0 ? PLUS_INF : MINUS_INF),
                          AT BY "gx %g and %g, sign %d, smoothing %d", AT_ARGS(f, n), BY_ARG(by_q),
                          get(f, c.array[OUT], 0), get(f, c.array[OUT], n - 1), sign, smooth);
                    CHECK(smooth ? is_special(f, c.array[OUT], 1, sign > 0 ? MINUS_INF : PLUS_INF)
                                 : get_bits(f, c.array[OUT], 1) == 0,
                          AT BY "gx of no weight is %g", AT_ARGS(f, n), BY_ARG(by_q), get(f, c.array[OUT], 1));
                    CHECK(get_bits(f, c.array[OUT], 2) == 0, AT BY "gx of a mask is %g", AT_ARGS(f, n), BY_ARG(by_q),
                          get(f, c.array[OUT], 2));
                    memcpy(gp, c.gp, sizeof gp);
                    for (int i = 0; i < 8; ++i) {
                        CHECK(!is_nan_double(gp[i]), AT BY "gp[%d] is NaN", AT_ARGS(f, n), BY_ARG(by_q), i);
                    }
                }
    }
}

static void test_weights_of_rows(void) {
    TEST("weights: a row of many has the loss and gx of its own call, its grad_scale times the weight; 0 ignores it") {
        static const size_t lengths[] = {1, 7, 10, 33, 100, 300, 500};
        static const double by[] = {0.25, 1, 3, 1e-11, 0.5, 0, 2.5, 1, 0.125};
        static double weights[70], loss[70], alone;
        static int32_t index[70];
        static uint64_t row[500];
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                for (size_t k = 0; f->kind == LOSS && k < 2 * COUNT(lengths); ++k) {
                    const size_t n = lengths[k / 2], rows = n < 300 ? 70 : 6;
                    call c = call_of(f, rows, n, NORMAL_4, 40 + k), one;
                    for (size_t r = 0; r < rows; ++r) {
                        weights[r] = k & 1 ? by[r * r % COUNT(by)] : 0.5 + (double)(r % 7);
                        index[r] = (int32_t)(r * 5 % n);
                    }
                    c.per_row = loss;
                    c.t.index = index;
                    c.t.weights = weights;
                    c.t.grad_scale = 1.0 / 7;
                    c.s.scale = k & 2 ? 0.7 : 1;
                    CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
                    for (size_t r = 0; r < rows; ++r) {
                        one = c;
                        one.s = mmax_row(n);
                        one.s.scale = c.s.scale;
                        one.array[OUT] = row;
                        one.array[X] = (char *)c.array[X] + r * n * f->size;
                        one.per_row = &alone;
                        one.t.index = index + r;
                        one.t.weights = weights + r;
                        memset(row, 0, sizeof row);
                        alone = 0;
                        CHECK(f->run(&one) == MMAX_OK && memcmp(&alone, loss + r, sizeof alone) == 0 &&
                                  memcmp(row, (char *)c.array[OUT] + r * n * f->size, n * f->size) == 0,
                              AT ", row %zu has not the bits of its own call", AT_ARGS(f, n), r);
                        one.t.weights = NULL;
                        one.t.grad_scale = c.t.grad_scale * weights[r];
                        CHECK(!(weights[r] > 0) || f->run(&one) == MMAX_OK, AT, AT_ARGS(f, n));
                        CHECK(fabs(loss[r] - weights[r] * alone) <= 1e-14 * fabs(loss[r]),
                              AT "row %zu: the loss is %.17g, not %.17g times %.17g", AT_ARGS(f, n), r, loss[r],
                              weights[r], alone);
                        for (size_t i = 0; i < n; ++i) {
                            const double gx = get(f, c.array[OUT], r * n + i), expected = get(f, row, i);
                            CHECK(fabs(gx - expected) <= 4 * (double)eps_of(f) * fabs(expected),
                                  AT "row %zu: gx[%zu] is %.17g, not %.17g", AT_ARGS(f, n), r, i, gx, expected);
                        }
                    }
                }
    }
}

static void test_bad_targets(void) {
    TEST("NaN, +inf or a negative q at an active entry makes a NaN row; at a mask only q above 0 counts") {
        static const size_t lengths[] = {3, 8, 33, 64, 100, 300};
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                for (size_t k = 0; f->kind == LOSS && k < COUNT(lengths) * 6 * 8; ++k) {
                    const int bad = (int)(k / 8 % 6), at_mask = k & 1, smooth = k >> 1 & 1, in_place = k >> 2 & 1;
                    const size_t n = lengths[k / 48], at_entry = 2 * n + 1 + k % (n - 1);
                    const int nothing = at_mask && bad != PLUS_INF && bad != SPECIALS;
                    double loss, expected;
                    mmax_multimax_grads clean;
                    call c = extreme_call(f, 3, n, NULL, 1);
                    c.t.label_smoothing = smooth ? 0.2 : 0;
                    index_storage[2] = 0; /* of row 2 */
                    set(f, storage[Y], 2 * n + 2 % n, 0);
                    set(f, storage[Y], 2 * n, 1);
                    if (at_mask) { set_special(f, c.array[X], at_entry, MINUS_INF); }
                    if (in_place) { memcpy(long_x, storage[X], 3 * n * f->size); }
                    CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
                    expected = row_storage[2];
                    clean = gp_storage;
                    memcpy(long_out, storage[OUT], 3 * n * f->size);
                    memset(&gp_storage, 0, sizeof gp_storage);
                    if (bad == PLUS_INF || bad == QUIET_NAN || bad == MINUS_INF || bad == NEGATIVE_NAN) {
                        set_special(f, storage[Y], at_entry, (special)bad);
                    } else {
                        set(f, storage[Y], at_entry, bad == SIGNALLING_NAN ? -0.25 : -smallest_normal(f));
                    }
                    if (in_place) { c.array[OUT] = c.array[X]; }
                    CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
                    loss = row_storage[2];
                    for (size_t i = 0; i < 3 * n; ++i) {
                        const int is_bad = i >= 2 * n && !at_mask;
                        const uint64_t want = is_bad ? special_bits(f, QUIET_NAN) : get_bits(f, long_out, i);
                        CHECK(get_bits(f, c.array[OUT], i) == want || (i >= 2 * n && at_mask && !nothing),
                              AT ": q of kind %d at %u makes gx[%u] %g", AT_ARGS(f, n), bad,
                              (unsigned)(at_entry - 2 * n), (unsigned)i, get(f, c.array[OUT], i));
                    }
                    CHECK(nothing ? bits_of(loss) == bits_of(expected)
                                  : bits_of(loss) == (at_mask ? 0x7ff0000000000000 : 0x7ff8000000000000),
                          AT ": q of kind %d, masked %d: loss %g, else %g", AT_ARGS(f, n), bad, at_mask, loss,
                          expected);
                    CHECK(!has(f, HAS_GP) || (at_mask ? !nothing || memcmp(&clean, &gp_storage, sizeof clean) == 0
                                                      : is_nan_double(gp_storage.b[0])),
                          AT ": gp", AT_ARGS(f, n));
                }
    }
}

int main(void) {
    TEST("loss, gx and gp for every law, length, scale, smoothing, mask and instruction set") {
        FOR_EACH_LOSS(f) {
            for (size_t n = 1; n <= 131; n += LENGTH_STEP) {
                for (size_t l = n % 3; l < COUNT(laws); l += 3) {
                    call c = loss_call(f, n, laws[l], scales[(n + l) / 3 % 4], n + l);
                    check_call(f, &c, expect_row, 0);
                }
            }
            for (size_t n = 255; n <= LONGEST / 64; n = 2 * n + 1) {
                call c = loss_call(f, n, NORMAL_4, 1.5, n % 4);
                check_call(f, &c, expect_row, 0);
            }
            report(f);
        }
    }
    TEST("logits of up to 1e4, and rows of up to 262,144 entries") {
        static const size_t lengths[] = {10, 1000, 32000, LONGEST};
        FOR_EACH_LOSS(f) {
            for (size_t k = 0; k < COUNT(lengths) - (LENGTH_STEP > 4); ++k) {
                size_t n = lengths[k];
                call c = long_call(f, n, (int32_t)(n / 7), 1);
                random_state = n;
                fill(f, long_x, n, NORMAL_4);
                c.t.label_smoothing = k % 2 ? 0.1 : 0;
                c.t.grad_scale = 0.25;
                check_call(f, &c, expect_row, 0);
                if (f->order) { /* sigma of such logits is rounded far more than the loss may be */
                    check_large_sigma(f, n, c.t.label_smoothing);
                }
                if (n > 32000 || f->order) { continue; }
                for (size_t i = 0; i < n; ++i) { /* the oracle needs the exp of both ends for evsoftmax */
                    set(f, long_x, i, 1e4 - (has(f, HAS_EPSILON) ? 600 : 2e4) * random_uniform());
                }
                check_call(f, &c, expect_row, 0);
            }
            report(f);
        }
    }
    TEST("sigma with a peak that many scores are near, or none, and with a valley; also in place and without outputs") {
        static const mmax_multimax_params shapes[] = {{2, {9, 1.001}, {-14, 0.99}, {-1, -2}, {1, 2}},
                                                      {2, {0.9, 1.1}, {0.8, 0.97}, {0.5, -1}, {1, 1.5}},
                                                      {2, {-0.5, 0.9}, {1.5, 1.1}, {-1, -2}, {1, 2}},
                                                      {2, {12, 1}, {-11, 1}, {1, 0}, {-1, 0}},
                                                      {2, {9, 1.001}, {0, -3}, {-1, -2}, {1, 1}}};
        static const double distances[] = {0, 3, 40};
        static const size_t lengths[] = {10, 66, 300, 2500, 7000};
        FOR_EACH_LOSS(f) {
            for (size_t k = 0; f->order && k < COUNT(lengths) * COUNT(shapes) * COUNT(distances); k += CASE_STEP) {
                size_t n = lengths[k % COUNT(lengths)];
                double distance = distances[k / COUNT(lengths) % COUNT(distances)];
                mmax_multimax_params p = shapes[k / COUNT(lengths) / COUNT(distances)];
                p.order = f->order;
                for (uint64_t seed = 1; seed < 3; ++seed) { /* without masks, and with them */
                    call c = loss_call(f, n, NORMAL_4, 0.75, seed);
                    c.p = &p;
                    spread(f, &c, distance);
                    check_call(f, &c, expect_row, 0);
                    FOR_EACH_ISA(isa) { check_variants(f, &p, n, NORMAL_4, seed, distance); }
                    check_after_masks(f, &p, n, seed);
                }
            }
            report(f);
        }
    }
    TEST("a target with nearly all mass") {
        static const double sizes[] = {0.5, 1e-2, 1e-5, 1e-8, 1e-12, 1e-16, 1e-20, 1e-30},
                            bases[] = {0, -3, 0.9990234375, 37.5, 1e4};
        static const size_t lengths[] = {2, 3, 17, 1000, LONGEST};
        FOR_EACH_LOSS(f) {
            for (size_t k = 0; k < COUNT(lengths) * COUNT(sizes) * COUNT(bases); k += CASE_STEP) {
                size_t n = lengths[k % COUNT(lengths)];
                double size = sizes[k / COUNT(lengths) % COUNT(sizes)];
                double base = bases[k / COUNT(lengths) / COUNT(sizes)];
                if (n < LONGEST || (base == 0 && (size == 1e-5 || size == 1e-30))) {
                    check_closed_form(f, &params_of_order[f->order], n, base, k % 3 ? 1 : 0.7, size);
                }
            }
            report(f);
        }
    }
    TEST("the loss of a sparse function is 0 when the target holds all mass") {
        FOR_EACH_LOSS(f) {
            int sparse = is_sparse_function(f);
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n)
                    if (sparse) {
                        call c = call_of(f, 1, n, NORMAL_1, n);
                        double top = -HUGE_VAL;
                        for (size_t i = 0; i < n; ++i) { top = fmax(top, get(f, c.array[X], i)); }
                        set(f, c.array[X], (size_t)index_storage[0], top + 2.001);
                        CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
                        CHECK(row_storage[0] >= 0 && row_storage[0] < 1e-12, AT ": loss %g", AT_ARGS(f, n),
                              row_storage[0]);
                        for (size_t i = 0; i < n; ++i) {
                            CHECK(fabs(get(f, c.array[OUT], i)) <= 2 * eps_of(f), AT ": gx[%u] is %g", AT_ARGS(f, n),
                                  (unsigned)i, get(f, c.array[OUT], i));
                        }
                    }
        }
    }
    TEST("the loss of a function's own result is 0, and not below") {
        FOR_EACH_ISA(isa)
            FOR_EACH_LENGTH(n) {
                for (int k = 0; k < 2; ++k) {
                    double loss = -1, alpha = k > 0 ? 1.5 : 2;
                    for (size_t i = 0; i < n; ++i) { long_x[i] = 2 * random_uniform(); }
                    CHECK(mmax_entmax_f64(long_out, long_x, alpha, mmax_row(n)) == MMAX_OK, "%u entries", (unsigned)n);
                    mmax_targets t = mmax_distributions(long_out);
                    CHECK(mmax_entmax_loss_f64(&loss, NULL, long_x, alpha, t, mmax_row(n)) == MMAX_OK, "%u entries",
                          (unsigned)n);
                    CHECK(loss >= 0 && loss < 1e-14, "%s, %u entries, alpha %g: loss %g", mmax_isa_name((mmax_isa)isa),
                          (unsigned)n, alpha, loss);
                }
            }
    }
    TEST("integer labels give the published sparsemax and entmax15 losses") {
        FOR_EACH_LOSS(f) {
            int sparse = is_sparse_function(f);
            FOR_EACH_LENGTH(n)
                if (sparse) {
                    check_published(f, n, NORMAL_1, 1);
                    check_published(f, n, NORMAL_4, 0.25);
                    check_published(f, n, TIES, 0.5);
                }
        }
    }
    TEST("gx and gp agree with central differences of the loss") {
        static const size_t lengths[] = {1, 2, 3, 5, 16, 19, 35};
        FOR_EACH_LOSS(f) {
            for (size_t k = 0; k < COUNT(lengths); ++k) {
                for (uint64_t seed = 0; seed < 4; ++seed) {
                    call c = loss_call(f, lengths[k], seed % 2 ? NORMAL_4 : NORMAL_1, seed % 2 ? 0.25 : 1.5, seed);
                    check_call(f, &c, expect_differences, DIFFERENCE_ERROR);
                }
            }
            for (int layer = 0; layer < LAYERS && f->order; ++layer) {
                mmax_multimax_params p = params_of_layer(layer, f->order);
                call c = loss_call(f, 17, NORMAL_1, 1.25, (uint64_t)layer);
                c.p = &p;
                check_call(f, &c, expect_differences, DIFFERENCE_ERROR);
                c = loss_call(f, 197, NORMAL_4, 0.5, (uint64_t)layer);
                c.p = &p;
                check_call(f, &c, expect_row, 0);
            }
            memset(worsts, 0, sizeof worsts);
        }
    }
    TEST("order 1 neither reads second parameters nor touches their gradients; gp at the identity is not 0") {
        FOR_EACH_LOSS(f) {
            mmax_multimax_params p = params_of_order[f->order];
            call c = loss_call(f, 40, NORMAL_1, 1, 3);
            c.p = &p;
            if (f->order == 1) {
                p.t_b[1] = p.t_d[1] = p.b[1] = p.d[1] = (double)NAN;
                check_call(f, &c, expect_row, 0);
            }
            if (f->order) {
                double before = c.gp->t_b[0];
                p = mmax_multimax_identity(f->order);
                check_call(f, &c, expect_row, 0);
                CHECK(c.gp->t_b[0] != before, AT, AT_ARGS(f, 40));
            }
        }
    }
    TEST("a target at a kink adds nothing to the kink's gradients") {
        FOR_EACH_LOSS(f)
        FOR_EACH_ISA(isa)
            for (int below = 0; f->order && below < 2; ++below) {
                /* The other entry is on the side where the kink of interest has no term. */
                mmax_multimax_params p = params_of_order[f->order];
                call c = call_of(f, 1, 2, NORMAL_1, 4);
                for (int i = 0; i < 2; ++i) { p.b[i] = p.d[i] = 0.5; }
                c.p = &p;
                set(f, c.array[X], 0, 0.5);
                set(f, c.array[X], 1, below ? -1 : 2);
                index_storage[0] = 0;
                CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, 2));
                for (int i = 0; i < f->order; ++i) {
                    const double *kink = below ? c.gp->d : c.gp->b, *slope = below ? c.gp->t_d : c.gp->t_b;
                    const double *other = below ? c.gp->b : c.gp->d;
                    CHECK(kink[i] == 0 && slope[i] == 0 && other[i] != 0, AT ": %g, %g, %g", AT_ARGS(f, 2), kink[i],
                          slope[i], other[i]);
                }
            }
    }
    TEST("evsoftmax with an epsilon of (0, 1]; with 1 it is softmax") {
        static const double epsilons[] = {1, 0.5, 1e-3, 1e-12, 1e-30, 1e-300};
        FOR_EACH_LOSS(f) {
            for (size_t k = 0; k < COUNT(epsilons) && has(f, HAS_EPSILON); ++k) {
                call c = loss_call(f, 65, NORMAL_4, 0.7, k);
                c.epsilon = epsilons[k];
                if (c.epsilon > smallest_normal(f)) { check_call(f, &c, expect_row, 0); }
                if (k == 0) {
                    oracle o = {SOFTMAX, 0, NULL, 0, largest(f), NULL, 0};
                    wide softmax;
                    read_row(f, &c, &o, 1);
                    softmax = oracle_loss(&o, y_row, s_row, 65, (size_t)index_storage[1], c.t.label_smoothing);
                    CHECK(fabsl(row_storage[1] - softmax) <= loss_bound(f, softmax), AT, AT_ARGS(f, 65));
                }
            }
        }
    }
    TEST("label smoothing: scores at both ends of the type's range, in rows so long that their sum overflows") {
        static const size_t lengths[] = {64, 2050, 4097, 8192};
        static const double scales_at_ends[] = {1e-15, 0.0442};
        const function *f = function_named("softmax_loss_f64");
        FOR_EACH_ISA(isa)
            for (size_t k = 0; k < COUNT(lengths) * 4; ++k) {
                const size_t n = lengths[k / 4], low = (n + 1) / 2, index = k & 1;
                const long double share = 0.1L, whole = 2 * (wide)(DBL_MAX * scales_at_ends[k / 2 % 2]);
                const long double expected =
                    whole * (share * (wide)low / (wide)n + (index ? 0 : 1 - share)) + logl((wide)(n - low));
                call c = call_of(f, 1, n, NORMAL_1, 0);
                for (size_t i = 0; i < n; ++i) { set(f, c.array[X], i, i % 2 ? DBL_MAX : -DBL_MAX); }
                index_storage[0] = (int32_t)index;
                c.t.label_smoothing = 0.1;
                c.s.scale = scales_at_ends[k / 2 % 2];
                CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
                CHECK(fabsl((wide)row_storage[0] - expected) <= 1e-14L * expected, AT ": %g, not %Lg", AT_ARGS(f, n),
                      row_storage[0], expected);
            }
    }
    TEST("label smoothing: a distance beyond the type of which a part is not, and a loss beyond it") {
        static const char *const names[] = {"softmax_loss_f64", "multimax_loss(1)_f64", "evsoftmax_loss_f64",
                                            "sparsemax_loss_f64", "entmax15_loss_f64"};
        static const size_t lengths[] = {3, 40, 101, 300};
        FOR_EACH_ISA(isa)
            for (size_t k = 0; k < COUNT(names) * COUNT(lengths) * 3; ++k) {
                const function *f = function_named(names[k % COUNT(names)]);
                const size_t n = lengths[k / COUNT(names) % COUNT(lengths)];
                const double a = k / COUNT(names) / COUNT(lengths) == 0 ? 0.5 : 0.968;
                const int beyond = k / COUNT(names) / COUNT(lengths) == 2;
                const mmax_multimax_params identity = mmax_multimax_identity(1);
                const long double share = (wide)a / (wide)n, part = beyond ? (wide)a - share : 1 - (wide)a + share;
                const long double expected = fminl(part * 3.4e308L, DBL_MAX);
                call c = call_of(f, 1, n, NORMAL_1, 0);
                for (size_t i = 0; i < n; ++i) { set(f, c.array[X], i, (i == n - 1) != beyond ? -1.7e308 : 1.7e308); }
                index_storage[0] = (int32_t)n - 1;
                c.p = &identity;
                c.epsilon = 0.5;
                c.t.label_smoothing = a;
                CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
                CHECK(fabsl((wide)row_storage[0] - expected) <= 1e-14L * expected, AT ": %g, not %Lg", AT_ARGS(f, n),
                      row_storage[0], expected);
            }
    }
    TEST("evsoftmax: an epsilon that leaves nothing of a weight leaves the gradient of label smoothing") {
        static const double epsilons[] = {1e-17, 1e-20, 1e-60, 1e-320};
        const function *f64 = function_named("evsoftmax_loss_f64"), *f32 = function_named("evsoftmax_loss_f32");
        FOR_EACH_ISA(isa)
            for (size_t k = 0; k < COUNT(epsilons) * 16; ++k) {
                const function *f = k % 2 ? f64 : f32;
                const size_t n = k / 2 % 2 ? 5 : 300, rows = k / 4 % 2 ? 1 : 20;
                const int masked = (int)(k / 8 % 2);
                call c = call_of(f, rows, n, NORMAL_1, 98);
                c.epsilon = epsilons[k / 16];
                c.t.label_smoothing = 0.4;
                for (size_t i = 0; i < rows * n; ++i) {
                    set(f, c.array[X], i, i % n == 0 ? 1000 : i % n == 1 ? 999 : -(double)(i % 3));
                    if (masked && i % n == 3) { set_special(f, c.array[X], i, MINUS_INF); }
                }
                for (size_t r = 0; r < rows; ++r) { index_storage[r] = 0; }
                CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
                for (size_t i = 0; i < rows * n; ++i) {
                    const double share = -0.4 / (double)(n - (size_t)masked), got = get(f, c.array[OUT], i);
                    const double right = i % n < 2 ? got : masked && i % n == 3 ? 0 : share;
                    CHECK(fabs(got - right) <= 4 * eps_of(f) * fabs(right), AT ": entry %u: %g, not %g", AT_ARGS(f, n),
                          (unsigned)i, got, right);
                }
                index_storage[0] = 2;
                c.t.label_smoothing = 0;
                CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
                CHECK(fabs(row_storage[0] - (1000 + log1p(exp(-1)) - log(c.epsilon) + 2)) <= 1e-3, AT ": %.10g",
                      AT_ARGS(f, n), row_storage[0]);
            }
    }
    TEST("multimax_loss and multimax where sigma's peak is one of parameters rounded to float") {
        static const size_t lengths[] = {128, 129, 70000};
        static float x[70000], y[70000];
        mmax_multimax_params p = mmax_multimax_identity(2);
        p.t_d[0] = 100;
        p.d[0] = 1e7 - 10;
        p.t_d[1] = -199;
        p.d[1] = 1e7 + 0.5;
        FOR_EACH_ISA(isa)
            for (size_t k = 0; k < COUNT(lengths); ++k) {
                const size_t n = lengths[k];
                double loss = 0;
                for (size_t i = 0; i < n; ++i) { x[i] = 1e7f - 1 - (float)(i % 3); }
                x[n / 2] = 1e7f;
                x[n - 1] = 1e7f + 1;
                index_storage[0] = 0;
                CHECK(mmax_multimax_loss_f32(&loss, NULL, NULL, x, &p, mmax_labels(index_storage), mmax_row(n)) ==
                              MMAX_OK &&
                          fabs(loss - 100) < 1e-3,
                      "%u entries: %g", (unsigned)n, loss);
                CHECK(mmax_multimax_f32(y, x, &p, mmax_row(n)) == MMAX_OK && y[n / 2] > 0.999f, "%u entries: %g",
                      (unsigned)n, (double)y[n / 2]);
            }
    }
    TEST("label smoothing: logits that a large scale multiplies") {
        static const size_t lengths[] = {3, 31, 130, 2050};
        FOR_EACH_LOSS(f)
        for (size_t k = 0; k < COUNT(lengths); ++k) {
            call c = loss_call(f, lengths[k], NORMAL_1, ldexp(1, 60), 1);
            const size_t end = row_start(f, &c, X, ROWS - 1) + lengths[k];
            for (size_t i = 0; i < end; ++i) { set(f, c.array[X], i, get(f, c.array[X], i) / c.s.scale); }
            check_call(f, &c, expect_row, 0);
        }
    }
    TEST("the same for sparsemax and entmax15, whose distances are wider than the type") {
        static const char *const names[] = {"sparsemax_loss_f32", "entmax15_loss_f32", "sparsemax_loss_f64",
                                            "entmax15_loss_f64"};
        static const size_t lengths[] = {2, 3, 16, 31, 200, 2050};
        static const double scales_at_ends[] = {1e-15, 0.0442, 0.5, 1};
        FOR_EACH_ISA(isa)
            for (size_t k = 0; k < COUNT(names) * COUNT(lengths) * COUNT(scales_at_ends) * 2; ++k) {
                const function *f = function_named(names[k % 4]);
                const size_t n = lengths[k / 4 % COUNT(lengths)];
                call c = call_of(f, 1, n, NORMAL_1, 0);
                index_storage[0] = k / 24 % 2 ? 1 : 0;
                c.t.label_smoothing = 0.5;
                c.s.scale = scales_at_ends[k / 48];
                check_wide_smoothing(f, &c, 1);
                check_wide_smoothing(f, &c, 0);
            }
    }
    TEST("gradients beyond the type: those that are 0 stay 0, small ones are finite") {
        FOR_EACH_LOSS(f)
        FOR_EACH_ISA(isa) {
            call c = call_of(f, 2, 20, NORMAL_4, 1);
            double once[40];
            for (size_t i = 2; i < 40; i += 2) { set_special(f, c.array[X], i, MINUS_INF); }
            index_storage[0] = index_storage[1] = 1;
            c.s.scale = 2;
            c.t.grad_scale = 1e-3;
            CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, 20));
            for (size_t i = 0; i < 40; ++i) { once[i] = get(f, c.array[OUT], i); }
            c.t.grad_scale = f->size == 4 ? 1.5e38 : 1.7e307;
            CHECK(run_without_gradient(f, c) == MMAX_OK && f->run(&c) == MMAX_OK, AT, AT_ARGS(f, 20));
            for (size_t i = 0; i < 40; ++i) {
                const double whole = once[i] * 1e3 * c.t.grad_scale, gx = get(f, c.array[OUT], i);
                const int beyond = fabs(whole) > largest(f) || (once[i] != 0 && f->size == 8 && fabs(whole) > DBL_MAX);
                CHECK(beyond ? isinf(gx) : fabs(gx - whole) <= 1e-5 * fabs(whole), AT ", entry %u: %g, not %g",
                      AT_ARGS(f, 20), (unsigned)i, gx, whole);
            }
        }
    }
    TEST("gp of many equal rows: their roundings do not add up") {
        enum { MANY = 8192, ALONE = 100000 };
        const double many = MANY, alone = ALONE;
        static double x[ALONE];
        static int32_t zeros[ALONE];
        mmax_multimax_params p = mmax_multimax_identity(1);
        for (size_t i = 0; i < ALONE; ++i) { x[i] = 0.3; }
        FOR_EACH_ISA(isa) {
            mmax_multimax_grads gp = {{0}, {0}, {0}, {0}};
            mmax_targets labels = mmax_labels(zeros);
            labels.label_smoothing = 0.1;
            p.b[0] = 3;
            CHECK(mmax_multimax_loss_f64(NULL, NULL, &gp, x, &p, labels, mmax_rows(MANY, 2)) == MMAX_OK, "on %s",
                  mmax_isa_name((mmax_isa)isa));
            /* The terms of both entries, some 2.7 a row each, cancel. */
            CHECK(fabs(gp.t_b[0]) <= 16 * DBL_EPSILON * many * 5.4, "on %s: %g", mmax_isa_name((mmax_isa)isa),
                  gp.t_b[0]);
            /* So do a row's only entry and its target. */
            gp.t_b[0] = 0;
            p.b[0] = 0.61;
            labels.label_smoothing = 0;
            CHECK(mmax_multimax_loss_f64(NULL, NULL, &gp, x, &p, labels, mmax_rows(ALONE, 1)) == MMAX_OK, "on %s",
                  mmax_isa_name((mmax_isa)isa));
            CHECK(fabs(gp.t_b[0]) <= 4 * DBL_EPSILON * alone * 0.62, "on %s: %g", mmax_isa_name((mmax_isa)isa),
                  gp.t_b[0]);
        }
    }
    TEST("gp of a target whose part overflows is infinite, not NaN") {
        static const double x[] = {-1e200, 0};
        static const int32_t first[1] = {0};
        const mmax_multimax_params p = mmax_multimax_identity(2);
        FOR_EACH_ISA(isa) {
            mmax_multimax_grads gp = {{0}, {0}, {0}, {0}};
            CHECK(mmax_multimax_loss_f64(NULL, NULL, &gp, x, &p, mmax_labels(first), mmax_row(2)) == MMAX_OK, "on %s",
                  mmax_isa_name((mmax_isa)isa));
            CHECK(bits_of(gp.t_b[1]) == 0x7ff0000000000000, "on %s: %g", mmax_isa_name((mmax_isa)isa), gp.t_b[1]);
        }
    }
    TEST("many rows in one call: each has the bits of that row alone, whatever the length") {
        static const size_t lengths[] = {2, 17, 64, 65, 100, 200, 256, 320, 512, 700, 1024};
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                for (size_t k = 0; k < COUNT(lengths); ++k) {
                    if (strncmp(f->name, "softmax_loss_f", 14) == 0) { check_batch(f, lengths[k]); }
                }
    }
    TEST("in place, and without some of the outputs: the same bits") {
        FOR_EACH_LOSS(f) FOR_EACH_ISA(isa) {
            FOR_EACH_LENGTH(n) { check_variants(f, &params_of_order[f->order], n, laws[n % COUNT(laws)], n, 0); }
            check_variants(f, &params_of_order[f->order], 4099, NORMAL_4, 1, 0); /* more than a block of exponentials */
            check_variants(f, &params_of_order[f->order], 9000, ONE_HOT, 2, 0);
        }
    }
#if HAS_MAPS
    TEST("an ignored row is not read") {
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        char *map = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
        CHECK(map != MAP_FAILED && mprotect(map + page, page, PROT_NONE) == 0, "no pages");
        FOR_EACH_LOSS(f) FOR_EACH_ISA(isa) FOR_EACH_LENGTH(n) if (n * f->size <= page && map != MAP_FAILED) {
            call c = call_of(f, 2, n, NORMAL_1, n);
            void *x = map + page - n * f->size;
            memcpy(x, c.array[X], n * f->size);
            c.array[X] = x;
            index_storage[1] = -100;
            CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
            CHECK(bits_of(row_storage[1]) == 0, AT ": loss %g", AT_ARGS(f, n), row_storage[1]);
        }
        (void)munmap(map, 2 * page);
    }
#endif
    TEST("log_softmax: within 4 ULP of the larger of |result| and 1") {
        static const char *const names[] = {"log_softmax_f32", "log_softmax_f64"};
        static const size_t lengths[] = {1000, 4097, LONGEST};
        for (int k = 0; k < 2; ++k) {
            const function *f = function_named(names[k]);
            double worst_ulp[MMAX_ISA_COUNT] = {0};
            for (size_t n = 1; n <= 131; n += LENGTH_STEP) {
                for (int l = 0; l < LAWS; ++l) {
                    random_state = n * 131 + (uint64_t)l;
                    fill(f, long_x, n, (law)l);
                    check_log(f, n, scales[(n + (size_t)l) % 4], LOG_ULP, worst_ulp);
                }
            }
            for (size_t j = 0; j < COUNT(lengths); ++j) {
                for (double width = 4; width <= 4e3; width *= 10) {
                    for (size_t i = 0; i < lengths[j]; ++i) { set(f, long_x, i, width * random_normal()); }
                    if (width < 10 || j < 2) { check_log(f, lengths[j], 1, LOG_ULP, worst_ulp); }
                }
            }
            FOR_EACH_ISA(isa) { NOTE("%-18s %-7s %6.3f ULP", f->name, mmax_isa_name((mmax_isa)isa), worst_ulp[isa]); }
        }
    }
    TEST("log_softmax of two scores, where log(1 + v) must keep what 1 + v rounds away") {
        static const double first[] = {0.00039749418407714618, -4.0222852262183739, 0.069484020212996545};
        static const double below[] = {0.67864063589802914, 0.64067672642946005, 0.68108796372005898};
        const function *f = function_named("log_softmax_f64");
        double worst_ulp[MMAX_ISA_COUNT] = {0};
        for (size_t k = 0; k < COUNT(first); ++k) {
            set(f, long_x, 0, first[k]);
            set(f, long_x, 1, first[k] - below[k]);
            check_log(f, 2, 1, 2.5, worst_ulp);
        }
    }
    TEST("log_softmax does not round the scale to float") {
        const function *f = function_named("log_softmax_f32");
        FOR_EACH_ISA(isa)
            for (int k = 7; k < 100; ++k) {
                /* The first entry has all the weight; in float the scale would be 1. */
                call c = call_of(f, 1, 2, NORMAL_1, 0);
                double x = -(double)(float)(1.99 * ldexp(1, k)), expected, got;
                c.s.scale = 1 + 0.95 / 16777216;
                set(f, c.array[X], 0, 0);
                set(f, c.array[X], 1, x);
                expected = c.s.scale * x;
                CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, 2));
                got = get(f, c.array[OUT], 1);
                CHECK(fabs(got - expected) <= 0.75 * ldexp(1, k - 23), AT ": %.9g, not %.17g", AT_ARGS(f, 2), got,
                      expected);
            }
    }
    test_shifted_scores();
    test_same_targets();
    test_infinite_gradients();
    test_weights_of_rows();
    test_bad_targets();
    return check_report();
}
