/*
 * test_backward.c: every gradient against central differences of the oracle's forward function, and tightly against
 * the oracle's own gradient. Scale, strides, lengths and masks come together in one call.
 */
#include <stdio.h>

#include "function_table.h"
#include "oracle.h"
#include "tables.h"

/*
 * The bounds, in roundings: an error is measured in epsilon times the sum of the magnitudes that a result is added up
 * from. From the y that the library is given, and from the exact y in the comparison with differences.
 */
#define GRADIENT_BOUND   24.0
#define TANHMAX_BOUND    32.0 /* of f64 in place of it: 26.1 was found */
#define DIFFERENCE_BOUND 64.0
#define DIFFERENCE_ERROR 2e-8 /* relative, of the differences themselves */
#define STEP             (1.0 / 16384)

enum { ROWS = 3, LONGEST = 4096, PARAMETERS = 8 };

static score s_row[LONGEST];
static wide gx_row[LONGEST], unit_row[LONGEST], gy_row[LONGEST], y_row[LONGEST], scratch[LONGEST];
static wide noise;                      /* absolute error of what `expect` gives: differences lose digits */
static double worst[2][MMAX_ISA_COUNT]; /* gx, gp: in roundings */

static oracle oracle_of(const function *f, const call *c) {
    oracle o = {oracle_formula(f->name), f->kind == LOG_BACKWARD, c->p, f->epsilon, largest(f), NULL, 0};
    return o;
}

static size_t length_of(const call *c, size_t r) { return c->s.ends ? c->s.ends[r] : c->s.cols; }

static size_t row_start(const function *f, call *c, role a, size_t r) {
    size_t stride = *stride_of(f, &c->s, a);
    return r * (stride ? stride : c->s.cols);
}

/* Row r of the call as the oracle takes it. */
static void read_row(const function *f, call *c, const oracle *o, size_t r) {
    for (size_t i = 0; i < length_of(c, r); ++i) {
        s_row[i] = oracle_score(o, get(f, c->array[X], row_start(f, c, X, r) + i), c->s.scale);
        gy_row[i] = get(f, c->array[GY], row_start(f, c, GY, r) + i);
        y_row[i] = get(f, c->array[Y], row_start(f, c, Y, r) + i);
    }
}

/* A call whose rows have `cols` entries of law l, of which all or ends[r] are active, one in five of them masked;
 * strides that all differ; y made by the forward function. */
static call strided_call(const function *f, size_t cols, law l, double scale, uint64_t seed) {
    static uint32_t lengths[ROWS];
    call c = call_of(f, 1, ROWS * (cols + 8), l, seed);
    for (size_t i = 0; i < ROWS * (cols + 8); ++i) {
        if (cols > 1 && random_below(5) == 0) { set_special(f, c.array[X], i, MINUS_INF); }
    }
    for (size_t r = 0; r < ROWS; ++r) { lengths[r] = (uint32_t)(r == 1 ? cols : cols - random_below(cols + 1) / 2); }
    c.s = mmax_rows(ROWS, cols);
    c.s.x_stride = cols + 1;
    c.s.y_stride = cols + 7;
    c.s.gx_stride = cols + 3;
    c.s.gy_stride = cols;
    c.s.scale = scale;
    c.s.ends = random_below(2) ? lengths : NULL; /* short rows without are worked in registers */
    make_y(f, &c);
    memset(c.array[OUT], 0x5a, ROWS * (cols + 8) * f->size);
    for (size_t k = 0; k < PARAMETERS; ++k) { /* gradients add up on what is there */
        ((double *)&gp_storage)[k] = (double)k - 3.5;
    }
    return c;
}

/* Runs a call and compares it with gradients from `expect`, which fills gx_row and unit_row and adds to gp. */
typedef void gradient(const oracle *o, const call *c, size_t n, wide *gp, wide *gp_unit);

static void check_call(const function *f, call *c, gradient *expect, double bound, double error) {
    oracle o = oracle_of(f, c);
    double eps = eps_of(f) * (f->size == 4 ? 1 : ORACLE_SLACK);
    wide gp[PARAMETERS], gp_unit[PARAMETERS];
    double before[PARAMETERS], after[PARAMETERS];
    wide gp_noise = 0;
    size_t wrong = 0;
    memcpy(before, c->gp, sizeof before);
    CHECK(f->run(c) == MMAX_OK, AT, AT_ARGS(f, c->s.cols));
    memcpy(after, c->gp, sizeof after);
    memset(gp, 0, sizeof gp);
    memset(gp_unit, 0, sizeof gp_unit);
    for (size_t r = 0; r < c->s.rows; ++r) {
        size_t start = row_start(f, c, OUT, r), n = length_of(c, r);
        noise = 0;
        read_row(f, c, &o, r);
        expect(&o, c, n, gp, gp_unit);
        gp_noise += noise;
        for (size_t i = 0; i < n; ++i) {
            wide got = get(f, c->array[OUT], start + i), e = fabsl(got - gx_row[i]);
            /* A factor below the smallest normal number may count as 0. */
            wide tiny = smallest_normal(f) * (1 + 2 * fabsl(gy_row[i]) * c->s.scale);
            wide allowed = (bound * eps + error) * unit_row[i] + noise + tiny;
            double roundings = unit_row[i] > 0 ? (double)(e / (eps * unit_row[i] + tiny)) : 0;
            CHECK(e <= allowed, AT ", row %u, gx[%u]: %.9Lg, not %.9Lg: %.3g roundings", AT_ARGS(f, c->s.cols),
                  (unsigned)r, (unsigned)i, got, gx_row[i], roundings);
            worst[0][mmax_isa_active()] = fmax(worst[0][mmax_isa_active()], roundings);
        }
        for (size_t i = n; i < c->s.cols; ++i) { wrong += get_bits(f, c->array[OUT], start + i) != 0; }
    }
    CHECK(!wrong, AT ": %u entries past lengths[r] are not +0", AT_ARGS(f, c->s.cols), (unsigned)wrong);
    for (int k = 0; k < PARAMETERS; ++k) {
        int touched = has(f, HAS_GP) && k % 2 < f->order;
        wide e = fabsl((wide)after[k] - before[k] - gp[k]), here = eps * gp_unit[k];
        wide rounding = 4 * DBL_EPSILON * (fabsl(after[k]) + fabsl(before[k])) + smallest_normal(f);
        CHECK(touched ? e <= bound * here + error * gp_unit[k] + gp_noise + rounding
                      : bits_of(after[k]) == bits_of(before[k]),
              AT ", gp[%d]: %.9g added, not %.9Lg", AT_ARGS(f, c->s.cols), k, after[k] - before[k], gp[k]);
        if (touched && gp_unit[k] > 0) {
            worst[1][mmax_isa_active()] = fmax(worst[1][mmax_isa_active()], (double)(e / (here + rounding)));
        }
    }
}

static void analytic(const oracle *o, const call *c, size_t n, wide *gp, wide *gp_unit) {
    oracle_backward(o, gx_row, unit_row, gp, gp_unit, gy_row, y_row, s_row, n, c->s.scale, scratch);
}

static double bound_of(const function *f) {
    return strcmp(f->name, "tanhmax_backward_f64") == 0 ? TANHMAX_BOUND : GRADIENT_BOUND;
}

/* ==== differences ==== */

/* sum of gy * phi(s); what rounding does to its differences goes to `noise`. */
static wide objective(const oracle *o, size_t n) {
    oracle_forward(o, scratch, s_row, n);
    for (size_t i = 0; i < n; ++i) {
        scratch[i] = is_masked(normalised_score(o, s_row[i])) ? 0 : scratch[i] * gy_row[i];
    }
    for (size_t i = 0; i < n; ++i) { noise = fmaxl(noise, fabsl(scratch[i]) * (wide)n * 32 * LDBL_EPSILON / STEP); }
    return oracle_sum(scratch, n);
}

/* The central difference of fourth order with respect to v, which is wide or double. */
#define CENTRAL_DIFFERENCE(result, v, o, n)                               \
    do {                                                                  \
        wide at[4];                                                       \
        for (int k_ = 0; k_ < 4; ++k_) {                                  \
            static const double where[4] = {-2, -1, 1, 2};                \
            (v) += where[k_] * STEP;                                      \
            at[k_] = objective(o, n);                                     \
            (v) -= where[k_] * STEP;                                      \
        }                                                                 \
        (result) = (8 * (at[2] - at[1]) - (at[3] - at[0])) / (12 * STEP); \
    } while (0)

static void differences(const oracle *o, const call *c, size_t n, wide *gp, wide *gp_unit) {
    wide exact_gp[PARAMETERS] = {0};
    oracle_forward(o, y_row, s_row, n);
    oracle_backward(o, gx_row, unit_row, exact_gp, gp_unit, gy_row, y_row, s_row, n, c->s.scale, scratch);
    for (size_t i = 0; i < n; ++i) {
        if (!is_masked(s_row[i])) {
            CENTRAL_DIFFERENCE(gx_row[i], s_row[i].hi, o, n);
            gx_row[i] *= c->s.scale;
        }
    }
    for (int k = 0; k < PARAMETERS && o->p; ++k) {
        mmax_multimax_params p = *o->p;
        oracle moved = *o;
        double *parameters[PARAMETERS] = {&p.t_b[0], &p.t_b[1], &p.t_d[0], &p.t_d[1],
                                          &p.b[0],   &p.b[1],   &p.d[0],   &p.d[1]};
        wide slope;
        moved.p = &p;
        CENTRAL_DIFFERENCE(slope, *parameters[k], &moved, n);
        gp[k] += slope;
    }
}

/* The distance of the nearest score to a place where the function has no derivative. */
static wide distance_to_kink(const oracle *o, size_t n) {
    wide nearest = 1, tau = 0, mean = 0, top = -INFINITY;
    size_t active = 0;
    oracle_forward(o, scratch, s_row, n);
    for (size_t i = 0; i < n; ++i) {
        if (!is_masked(s_row[i])) {
            ++active;
            mean += s_row[i].hi;
            top = fmaxl(top, s_row[i].hi);
            tau = scratch[i] > 0 ? s_row[i].hi - (o->f == ENTMAX15 ? 2 * sqrtl(scratch[i]) : scratch[i]) : tau;
        }
    }
    mean /= (wide)active;
    for (size_t i = 0; i < n; ++i) {
        wide s = s_row[i].hi;
        if (is_masked(s_row[i])) { continue; }
        if (o->f == SPARSEMAX || o->f == ENTMAX15) { nearest = fminl(nearest, fabsl(s - tau)); }
        if (o->f == EVSOFTMAX && s < top) { nearest = fminl(nearest, fabsl(s - mean)); }
        for (int k = 0; k < 2 && o->p; ++k) {
            nearest = fminl(nearest, fminl(fabsl(s - o->p->b[k]), fabsl(s - o->p->d[k])));
        }
    }
    return nearest;
}

/* A call that stays away from every kink by more than the steps. */
static call smooth_call(const function *f, const mmax_multimax_params *p, size_t cols, law l, double scale) {
    call c;
    for (uint64_t seed = 1;; ++seed) {
        oracle o;
        wide nearest = 1;
        c = strided_call(f, cols, l, scale, seed);
        c.p = p ? p : c.p;
        make_y(f, &c);
        o = oracle_of(f, &c);
        for (size_t r = 0; r < ROWS; ++r) {
            read_row(f, &c, &o, r);
            nearest = fminl(nearest, distance_to_kink(&o, length_of(&c, r)));
        }
        if (nearest > 3e-4 || seed == 200) {
            CHECK(nearest > 3e-4, AT ": no row is smooth", AT_ARGS(f, cols));
            return c;
        }
    }
}

static int is_backward(const function *f) { return f->kind == BACKWARD || f->kind == LOG_BACKWARD; }

/* Whether the parameters of MultiMax get a gradient. */
static int is_learned(const function *f) { return is_backward(f) && has(f, HAS_GP); }

static void report(const function *f) {
    FOR_EACH_ISA(isa) {
        if (has(f, HAS_GP)) {
            NOTE("%-26s %-7s gx %6.3f, gp %6.3f roundings", f->name, mmax_isa_name((mmax_isa)isa), worst[0][isa],
                 worst[1][isa]);
        } else {
            NOTE("%-26s %-7s gx %6.3f roundings", f->name, mmax_isa_name((mmax_isa)isa), worst[0][isa]);
        }
    }
    memset(worst, 0, sizeof worst);
}

/* In a row of equal scores `x` sigma has the derivative `slope`, and gp gets nothing from the terms at their kink. */
static void check_kink(const function *f, const mmax_multimax_params *p, double x, double scale, double slope) {
    enum { N = 19 };
    call c = call_of(f, 1, N, NORMAL_1, 5);
    int normalised = has(f, HAS_Y);
    wide y = normalised && f->kind == BACKWARD ? 1 / (wide)N : 1, mean = 0;
    double gp[PARAMETERS];
    c.p = p;
    c.s.scale = scale;
    for (size_t i = 0; i < N; ++i) {
        set(f, c.array[X], i, x);
        mean += normalised ? get(f, c.array[GY], i) / (wide)N : 0;
    }
    make_y(f, &c);
    CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, N));
    for (size_t i = 0; i < N; ++i) {
        wide gy = get(f, c.array[GY], i), got = get(f, c.array[OUT], i), expected = y * (gy - mean) * slope * scale;
        CHECK(fabsl(got - expected) <= 32 * eps_of(f) * scale * (fabsl(gy) + fabsl(mean) + 1),
              AT ", s = %g: gx[%u] is %.9Lg, not %.9Lg", AT_ARGS(f, N), x * scale, (unsigned)i, got, expected);
    }
    memcpy(gp, c.gp, sizeof gp);
    for (int k = 0; k < PARAMETERS; ++k) {
        double kink = k % 4 < 2 ? p->b[k % 2] : p->d[k % 2];
        CHECK(kink != x * scale || gp[k] == 0, AT ", s = %g at its kink: gp[%d] is %g", AT_ARGS(f, N), x * scale, k,
              gp[k]);
    }
}

/* ==== tests ==== */

/* A row of tanhmax with one large score: the others have weights near the smallest normal number. */
static void check_tiny_weights(const function *f, double top) {
    static const double rest[] = {0.25, -0.5, 1.75}, gy[] = {0.3, 1e10, -2e10, 3e9};
    const int is_f32 = f->size == 4, is_y = top > (is_f32 ? 86.64 : 707.7);
    wide weight[4], sum = 0, dot = 0;
    call c = call_of(f, 1, 4, NORMAL_1, 1);
    for (size_t i = 0; i < 4; ++i) {
        set(f, c.array[X], i, i == 0 ? top : rest[i - 1]);
        set(f, c.array[GY], i, gy[i]);
        weight[i] = 2 * coshl(get(f, c.array[X], i));
        sum += weight[i];
    }
    make_y(f, &c);
    CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, 4));
    for (size_t i = 0; i < 4; ++i) { dot += (wide)get(f, c.array[Y], i) * (wide)get(f, c.array[GY], i); }
    for (size_t i = 0; i < 4; ++i) {
        const wide y = get(f, c.array[Y], i), w = is_y ? fabsl(y) : weight[i] / sum, g = get(f, c.array[GY], i);
        const wide unit = fabsl(g * w) + fabsl(y * dot), gx = g * w - y * dot;
        CHECK(fabsl(get(f, c.array[OUT], i) - gx) <= 4.2L * (is_f32 ? FLT_EPSILON : DBL_EPSILON) * unit,
              AT ", |s| up to %g, entry %u: %g, not %Lg", AT_ARGS(f, 4), top, (unsigned)i, get(f, c.array[OUT], i), gx);
    }
}

int main(void) {
    TEST("gx and gp are the gradient, for every law, length, scale and instruction set") {
        static const double scales[] = {1, 0.7, 2.5, 0.0625};
        static const law laws[] = {NORMAL_1, NORMAL_4, NORMAL_32, TIES, EQUAL, ONE_HOT, CLUSTERS, GEOMETRIC};
        static const size_t long_lengths[] = {255, 256, 257, 1000, LONGEST};
        FOR_EACH_FUNCTION(f) {
            if (!is_backward(f)) { continue; }
            FOR_EACH_ISA(isa) {
                for (size_t n = 1; n <= 131; n += LENGTH_STEP) {
                    for (size_t l = n % 2; l < COUNT(laws); l += 2) {
                        call c = strided_call(f, n, laws[l], scales[(n + l) / 2 % 4], n);
                        check_call(f, &c, analytic, bound_of(f), 0);
                    }
                }
                for (size_t k = 0; k < COUNT(long_lengths); ++k) {
                    call c = strided_call(f, long_lengths[k], NORMAL_1, 1.5, k);
                    check_call(f, &c, analytic, bound_of(f), 0);
                }
            }
            report(f);
        }
    }
    TEST("tanhmax: weights near the smallest normal number, and those that are |y|") {
        FOR_EACH_ISA(isa) {
            for (int k = 0; k < 200; ++k) {
                check_tiny_weights(function_named("tanhmax_backward_f32"), 75 + k * 0.0625);
                check_tiny_weights(function_named("tanhmax_backward_f64"), 696 + k * 0.0625);
            }
        }
    }
    TEST("gx and gp are what central differences give") {
        static const size_t lengths[] = {1, 2, 3, 5, 16, 19, 35};
        FOR_EACH_FUNCTION(f) {
            for (size_t k = 0; k < COUNT(lengths) && is_backward(f); ++k) {
                FOR_EACH_ISA(isa) {
                    call c = smooth_call(f, NULL, lengths[k], k % 2 ? NORMAL_4 : NORMAL_1, k % 2 ? 0.25 : 1.5);
                    check_call(f, &c, differences, DIFFERENCE_BOUND, DIFFERENCE_ERROR);
                }
            }
        }
    }
    TEST("the parameters of every layer of Tables 7 and 8") {
        FOR_EACH_FUNCTION(f) {
            for (int layer = 0; layer < LAYERS && is_learned(f); ++layer) {
                mmax_multimax_params p = params_of_layer(layer, f->order);
                FOR_EACH_ISA(isa) {
                    call c = smooth_call(f, &p, 17, NORMAL_1, 1.25);
                    check_call(f, &c, differences, DIFFERENCE_BOUND, DIFFERENCE_ERROR);
                    c = strided_call(f, 197, NORMAL_4, 0.5, 7);
                    c.p = &p;
                    make_y(f, &c);
                    check_call(f, &c, analytic, bound_of(f), 0);
                }
            }
        }
    }
    TEST("t = 1 has a gradient: gp at the identity") {
        FOR_EACH_FUNCTION(f) {
            mmax_multimax_params p = mmax_multimax_identity(f->order);
            if (!is_learned(f)) { continue; }
            FOR_EACH_ISA(isa) {
                call c = smooth_call(f, &p, 33, NORMAL_1, 1);
                double before = c.gp->t_b[0];
                check_call(f, &c, differences, DIFFERENCE_BOUND, DIFFERENCE_ERROR);
                CHECK(c.gp->t_b[0] != before, AT, AT_ARGS(f, 33));
            }
        }
    }
    TEST("a max term has derivative 0 at its own kink, with respect to x and to b or d") {
        /* Order 1: both terms count between d and b, at each kink only the other. Order 2: four kinks in one place. */
        static const mmax_multimax_params apart = {1, {1.75, 1}, {0.5, 1}, {0.5, 0}, {-0.5, 0}};
        static const mmax_multimax_params joint = {2, {1.75, 1.25}, {0.5, 0.75}, {0.5, 0.5}, {0.5, 0.5}};
        FOR_EACH_FUNCTION(f) {
            if (!is_learned(f)) { continue; }
            FOR_EACH_ISA(isa) {
                if (f->order == 1) {
                    check_kink(f, &apart, 0.5, 1, 1 - 0.5);
                    check_kink(f, &apart, -0.5, 1, 1 + 0.75);
                    check_kink(f, &apart, 0.25, 2, 1 - 0.5);
                    check_kink(f, &apart, 0.25, 1, 1 + 0.75 - 0.5);
                } else {
                    check_kink(f, &joint, 0.5, 1, 1);
                    check_kink(f, &joint, 0.125, 4, 1);
                }
            }
        }
    }
    TEST("gx or gp may be NULL: the other is the same") {
        FOR_EACH_FUNCTION(f) {
            if (!is_learned(f)) { continue; }
            FOR_EACH_ISA(isa) {
                FOR_EACH_LENGTH(n) {
                    static double gx[ROWS * (1000 + 8)];
                    call c = strided_call(f, n, NORMAL_1, 1.5, n);
                    mmax_multimax_grads both;
                    CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
                    memcpy(gx, c.array[OUT], ((ROWS - 1) * c.s.gx_stride + n) * f->size);
                    both = *c.gp;
                    c = strided_call(f, n, NORMAL_1, 1.5, n);
                    c.array[OUT] = NULL;
                    CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
                    CHECK(memcmp(&both, c.gp, sizeof both) == 0, AT ": gp differs without gx", AT_ARGS(f, n));
                    c = strided_call(f, n, NORMAL_1, 1.5, n);
                    c.gp = NULL;
                    CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
                    for (size_t r = 0; r < ROWS; ++r) {
                        size_t at = r * c.s.gx_stride * f->size;
                        CHECK(memcmp((char *)gx + at, (char *)c.array[OUT] + at, n * f->size) == 0,
                              AT ": gx differs without gp", AT_ARGS(f, n));
                    }
                }
            }
        }
    }
    TEST("order 1 neither reads second parameters nor touches their gradients") {
        FOR_EACH_FUNCTION(f) {
            if (!is_learned(f) || f->order != 1) { continue; }
            FOR_EACH_ISA(isa) {
                call c = strided_call(f, 40, NORMAL_1, 1, 3);
                mmax_multimax_params p = *c.p;
                p.t_b[1] = p.t_d[1] = p.b[1] = p.d[1] = (double)NAN;
                c.p = &p;
                check_call(f, &c, analytic, bound_of(f), 0); /* looks at every entry of gp */
            }
        }
    }
    TEST("gp grows with the gradients: 2^90 times as large, f64 2^900") {
        FOR_EACH_FUNCTION(f) {
            if (!is_learned(f)) { continue; }
            FOR_EACH_ISA(isa) {
                const double large = ldexp(1, f->size == 4 ? 90 : 900);
                double gp[2][PARAMETERS];
                for (int k = 0; k < 2; ++k) {
                    call c = strided_call(f, 40, NORMAL_1, 1, 3);
                    for (size_t i = 0; k && i < ROWS * c.s.gy_stride; ++i) {
                        set(f, c.array[GY], i, get(f, c.array[GY], i) * large);
                    }
                    memset(c.gp, 0, sizeof *c.gp);
                    CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, 40));
                    memcpy(gp[k], c.gp, sizeof gp[k]);
                }
                for (size_t k = 0; k < PARAMETERS; ++k) {
                    CHECK(fabs(gp[1][k] - gp[0][k] * large) <= 16 * eps_of(f) * fabs(gp[0][k] * large),
                          AT ": parameter %u: %g, not %g", AT_ARGS(f, 40), (unsigned)k, gp[1][k], gp[0][k] * large);
                }
            }
        }
    }
    TEST("a gradient that is finite, of gradients at the end of the type's range") {
        static const struct { double t_b, scale; } cases[] = {{0.5, 1}, {1, 1e-3}, {0.25, 2}, {0.5, 0.9}};
        FOR_EACH_ISA(isa) {
            const char *on = mmax_isa_name((mmax_isa)isa);
            for (size_t k = 0; k < COUNT(cases); ++k) {
                const float x[3] = {0, 0, 0}, gy[3] = {-0.99f * FLT_MAX, 0.99f * FLT_MAX, 0.99f * FLT_MAX};
                const double x64[3] = {0, 0, 0}, gy64[3] = {-0.99 * DBL_MAX, 0.99 * DBL_MAX, 0.99 * DBL_MAX};
                const double factor = cases[k].t_b * cases[k].scale * 0.99 / 3;
                float y[3], gx[3];
                double y64[3], gx64[3];
                mmax_multimax_params p = mmax_multimax_identity(1);
                mmax_shape s = mmax_row(3);
                p.t_b[0] = cases[k].t_b;
                p.b[0] = 10;
                s.scale = cases[k].scale;
                CHECK(mmax_log_multimax_f32(y, x, &p, s) == MMAX_OK, "%s", on);
                CHECK(mmax_log_multimax_f64(y64, x64, &p, s) == MMAX_OK, "%s", on);
                CHECK(mmax_log_multimax_backward_f32(gx, NULL, gy, y, x, &p, s) == MMAX_OK, "%s", on);
                CHECK(mmax_log_multimax_backward_f64(gx64, NULL, gy64, y64, x64, &p, s) == MMAX_OK, "%s", on);
                for (int i = 0; i < 3; ++i) {
                    const double share = factor * (i == 0 ? -4 : 2);
                    CHECK(fabs((double)gx[i] / FLT_MAX - share) <= 1e-6 * fabs(share), "%s, case %zu, entry %d: %g", on,
                          k, i, (double)gx[i]);
                    CHECK(fabs(gx64[i] / DBL_MAX - share) <= 1e-14 * fabs(share), "%s, case %zu, entry %d: %g", on, k,
                          i, gx64[i]);
                }
            }
        }
    }
    TEST("tanhmax: the largest gy, where the sum of gy y overflows by its roundings") {
        static float x[43], y[43], gy[43], gx[43];
        static double x64[129], y64[129], gy64[129], gx64[129];
        FOR_EACH_ISA(isa) {
            const char *on = mmax_isa_name((mmax_isa)isa);
            random_state = 1;
            for (int trial = 0; trial < 300; ++trial) {
                for (int i = 0; i < 129; ++i) {
                    x64[i] = 100 * random_uniform();
                    gy64[i] = DBL_MAX;
                    x[i % 43] = i % 32 ? 0 : (float)(20 + 10 * random_uniform());
                    gy[i % 43] = FLT_MAX;
                }
                CHECK(mmax_tanhmax_f32(y, x, mmax_row(43)) == MMAX_OK, "%s", on);
                CHECK(mmax_tanhmax_backward_f32(gx, gy, y, x, mmax_row(43)) == MMAX_OK, "%s", on);
                CHECK(mmax_tanhmax_f64(y64, x64, mmax_row(129)) == MMAX_OK, "%s", on);
                CHECK(mmax_tanhmax_backward_f64(gx64, gy64, y64, x64, mmax_row(129)) == MMAX_OK, "%s", on);
                CHECK(fabs((double)gx[0]) <= FLT_MAX && fabs(gx64[0]) <= DBL_MAX, "%s, trial %d: %g, %g", on, trial,
                      (double)gx[0], gx64[0]);
            }
        }
    }
    return check_report();
}
