/*
 * test_more.c: entmax of any alpha, sigsoftmax, sparsehourglass and Gumbel numbers, against oracles in long double, their
 * differences, and the files in golden/. Run as `test_more [FOLDER]`.
 */
#include <stdio.h>
#include <stdlib.h>

#define WITH_MORE_FUNCTIONS
#include "function_table.h"
#include "golden_file.h"
#include "oracle.h"

enum { MOST = 2048 };
static const char *const names[FORMULAS] = {
    [ENTMAX] = "entmax", [SIGSOFTMAX] = "sigsoftmax", [HOURGLASS] = "sparsehourglass"};
/* A new formula: in `names`, as the last one here, in forward() and backward(), whose last branch is sparsehourglass, and in
 * check_forward, which checks its sum. */
#define FOR_EACH_FORMULA(f) for (int f = ENTMAX; f <= HOURGLASS; ++f)

/* ==== the functions on doubles, in either type ==== */

typedef struct rows {
    formula f;
    size_t size; /* of the type */
    double parameter, gradient;
    mmax_shape s;
    double x[MOST], y[MOST], gy[MOST], gx[MOST], q[MOST], loss[64];
    mmax_targets t;
} rows;
static rows r;
static float a32[5][MOST];

static void narrow(float *to, const double *from) {
    for (size_t i = 0; i < MOST; ++i) { to[i] = (float)from[i]; }
}
static void widen(double *to, const float *from) {
    for (size_t i = 0; i < MOST; ++i) { to[i] = from[i]; }
}
static mmax_status forward(void) {
    const mmax_shape s = r.s;
    mmax_status status;
    if (r.size == 8) {
        return r.f == ENTMAX       ? mmax_entmax_f64(r.y, r.x, r.parameter, s)
               : r.f == SIGSOFTMAX ? mmax_sigsoftmax_f64(r.y, r.x, s)
                                   : mmax_sparsehourglass_f64(r.y, r.x, r.parameter, s);
    }
    narrow(a32[0], r.x);
    narrow(a32[1], r.y);
    status = r.f == ENTMAX       ? mmax_entmax_f32(a32[1], a32[0], r.parameter, s)
             : r.f == SIGSOFTMAX ? mmax_sigsoftmax_f32(a32[1], a32[0], s)
                                 : mmax_sparsehourglass_f32(a32[1], a32[0], r.parameter, s);
    widen(r.y, a32[1]);
    return status;
}
static mmax_status backward(void) {
    const mmax_shape s = r.s;
    double *const g = &r.gradient;
    mmax_status status;
    if (r.size == 8) {
        return r.f == ENTMAX       ? mmax_entmax_backward_f64(r.gx, g, r.gy, r.y, r.parameter, s)
               : r.f == SIGSOFTMAX ? mmax_sigsoftmax_backward_f64(r.gx, r.gy, r.y, r.x, s)
                                   : mmax_sparsehourglass_backward_f64(r.gx, g, r.gy, r.y, r.x, r.parameter, s);
    }
    narrow(a32[0], r.x);
    narrow(a32[1], r.y);
    narrow(a32[2], r.gy);
    status = r.f == ENTMAX       ? mmax_entmax_backward_f32(a32[3], g, a32[2], a32[1], r.parameter, s)
             : r.f == SIGSOFTMAX ? mmax_sigsoftmax_backward_f32(a32[3], a32[2], a32[1], a32[0], s)
                                 : mmax_sparsehourglass_backward_f32(a32[3], g, a32[2], a32[1], a32[0], r.parameter, s);
    widen(r.gx, a32[3]);
    return status;
}
static mmax_status entmax_loss(void) {
    mmax_targets t = r.t;
    mmax_status status;
    if (r.size == 8) {
        t.q = t.q ? r.q : NULL;
        return mmax_entmax_loss_f64(r.loss, r.gx, r.x, r.parameter, t, r.s);
    }
    narrow(a32[0], r.x);
    narrow(a32[4], r.q);
    t.q = t.q ? a32[4] : NULL;
    status = mmax_entmax_loss_f32(r.loss, a32[3], a32[0], r.parameter, t, r.s);
    widen(r.gx, a32[3]);
    return status;
}
static double eps(void) { return r.size == 4 ? FLT_EPSILON : DBL_EPSILON; }

/* N(0,4^2), every fifth time few values and so ties, every seventh with masks. */
static void draw(formula f, size_t size, double parameter, size_t cols, double scale, unsigned seed) {
    r.f = f;
    r.size = size;
    r.parameter = parameter;
    r.gradient = 0;
    r.s = mmax_row(cols);
    r.s.scale = scale;
    random_state = seed * 1000003u + cols;
    for (size_t i = 0; i < cols; ++i) {
        const double v = random_normal();
        r.x[i] = (float)(seed % 5 == 4 ? floor(2 * v) : 4 * v);
        r.gy[i] = (float)random_normal();
        r.q[i] = (float)exp(random_normal());
        if (seed % 7 == 6 && cols > 2 && i != 1 && random_below(3) == 0) { r.x[i] = double_of(0xfff0000000000000); }
    }
}

/* ==== oracles of a row ==== */

static int is_off(double x) { return bits_of(x) == 0xfff0000000000000; }

static score exact_s[MOST];
static wide exact_y[MOST], other_y[MOST];
static void exact(size_t n) {
    const oracle o = {r.f, 0, NULL, r.parameter, r.size == 4 ? FLT_MAX : DBL_MAX, NULL, 0};
    for (size_t i = 0; i < n; ++i) { exact_s[i] = oracle_score(&o, r.x[i], r.s.scale); }
    oracle_forward(&o, exact_y, exact_s, n);
}

static const double alphas[] = {1 + 1e-12, 1.0001, 1.01, 1.05,   1.2, 1.25, 1.4999, 1.5001,
                                1.75,      1.9999, 2,    2.0001, 2.5, 3,    5,      8};
static const size_t lengths[] = {1, 2, 3, 5, 8, 17, 33, 64, 65, 129, 300, 1000};
static const double scales[] = {1, 0.125, 2};
#define FOR_EACH_SIZE(size) for (size_t size = 4; size <= 8; size += 4)
#define HERE                "%s(%.5g)_f%u on %s, %u entries, scale %g"
#define HERE_ARGS \
    names[r.f], r.parameter, (unsigned)(8 * r.size), mmax_isa_name(mmax_isa_active()), (unsigned)r.s.cols, r.s.scale

/* ==== forward ==== */

static void check_forward(void) {
    const size_t n = r.s.cols;
    const wide least = r.f == ENTMAX ? 1e-6 : r.size == 4 ? FLT_MIN : DBL_MIN;
    wide sum = 0;
    CHECK(forward() == MMAX_OK, HERE, HERE_ARGS);
    exact(n);
    for (size_t i = 0; i < n; ++i) {
        const wide e = exact_y[i], off = fabsl(r.y[i] - e);
        const wide allowed = r.f == ENTMAX      ? (e > least ? oracle_entmax_bound(r.parameter, eps(), e) * e : 1e-6)
                             : r.f == HOURGLASS ? (r.size == 4 ? 2e-6 : 1e-14) * (1 + 1 / r.parameter)
                             : e < least        ? least
                                                : 7 * ulp(e, eps(), (double)least);
        CHECK(off <= allowed, HERE ": entry %u is %.17g, not %.17Lg", HERE_ARGS, (unsigned)i, r.y[i], e);
        sum += r.y[i];
    }
    CHECK(fabsl(sum - 1) <= (r.size == 4 ? 5e-7 : 4e-15), HERE ": sum - 1 is %.3Lg", HERE_ARGS, sum - 1);
}

static void test_forward(void) {
    TEST("entmax of any alpha, sigsoftmax and sparsehourglass are their formulas; rows sum to 1; odd lengths, ties, "
         "masks") {
        FOR_EACH_ISA(isa) FOR_EACH_SIZE(size) for (unsigned k = 0, seed = 0; k < COUNT(lengths); ++k) {
                for (size_t i = 0; i < COUNT(alphas) && (LENGTH_STEP < 5 || lengths[k] < 1000 || i % 4 == 0);
                     ++i, ++seed) {
                    draw(ENTMAX, size, alphas[i], lengths[k], scales[seed % 3], seed);
                    check_forward();
                }
                for (unsigned i = 0; i < 12; ++i, ++seed) {
                    draw(SIGSOFTMAX, size, 0, lengths[k], scales[seed % 3], seed);
                    for (size_t j = 0; j < lengths[k]; ++j) { r.x[j] = (float)(r.x[j] + ((int)(i % 4) - 2) * 30); }
                    check_forward();
                    draw(HOURGLASS, size, i % 3 == 0 ? 0.01 : i % 3 == 1 ? 1 : 100, lengths[k], scales[seed % 3], seed);
                    check_forward();
                }
            }
    }
    TEST("entmax: rows that are flat, or have their candidates in any order, and more than fit") {
        static double x[70000], y[70000];
        for (int i = 0; i < 70000; ++i) { x[i] = i % 7 == 3 ? 0.5 : 0.5 - i * 1e-9; }
        for (size_t i = 0; i < COUNT(alphas); ++i) {
            wide sum = 0;
            int order = 1;
            CHECK(mmax_entmax_f64(y, x, alphas[i], mmax_row(70000)) == MMAX_OK, "alpha %g", alphas[i]);
            for (int k = 0; k < 70000; ++k) {
                sum += y[k];
                order &= k == 0 || k % 7 == 3 || (k - 1) % 7 == 3 || y[k] <= y[k - 1];
            }
            CHECK(order && fabsl(sum - 1) < 1e-14, "alpha %g: sum - 1 is %.3Lg", alphas[i], sum - 1);
        }
    }
    TEST("entmax: weights below the normal numbers are 0") {
        FOR_EACH_ISA(isa) FOR_EACH_SIZE(size) {
                const double least = size == 4 ? (double)FLT_MIN : DBL_MIN;
                int zeros = 0;
                draw(ENTMAX, size, 1.0001, 64, 1, 0);
                for (int k = 0; k < 64; ++k) { r.x[k] = (size == 4 ? -1.625 : -12.5) * k; }
                CHECK(forward() == MMAX_OK, HERE, HERE_ARGS);
                for (int k = 0; k < 64; ++k) {
                    zeros += r.y[k] == 0;
                    CHECK(r.y[k] == 0 || r.y[k] >= least, HERE ": %g", HERE_ARGS, r.y[k]);
                }
                CHECK(zeros > 2 && zeros < 20, HERE ": %d weights are 0", HERE_ARGS, zeros);
            }
    }
    TEST("sigsoftmax does not overflow at 89 and beyond, nor below; sparsehourglass of any size; all of 3e38") {
        static const double far[] = {89, 1000, 3e38, -89, -1000, -3e38};
        FOR_EACH_ISA(isa) FOR_EACH_SIZE(size) for (size_t i = 0; i < COUNT(far); ++i) {
                FOR_EACH_FORMULA(f) {
                    draw((formula)f, size, f == HOURGLASS ? 1 : 1.25, 5, 1, 0);
                    for (int k = 0; k < 5; ++k) { r.x[k] = (float)far[i]; }
                    CHECK(forward() == MMAX_OK, HERE, HERE_ARGS);
                    for (int k = 0; k < 5; ++k) {
                        CHECK(fabs(r.y[k] - 0.2) < 1e-7, HERE ": of %g: %g", HERE_ARGS, far[i], r.y[k]);
                    }
                }
                draw(HOURGLASS, size, 1, 3, 1, 0);
                for (int k = 0; k < 3; ++k) { r.x[k] = (float)(far[i] * (k + 1) / 4); }
                check_forward();
                draw(HOURGLASS, size, 1e-30, 2, 1, 0);
                r.x[0] = far[i] * 0.5;
                r.x[1] = -r.x[0];
                CHECK(forward() == MMAX_OK && r.y[i < 3 ? 0 : 1] == 1 && r.y[i < 3 ? 1 : 0] == 0, HERE ": %g",
                      HERE_ARGS, r.y[0]);
            }
    }
    TEST("alpha 1, 1.5 and 2 are softmax, entmax15 and sparsemax, bit for bit; so are gx, and losses of 1.5 and 2") {
        static const double equals[3] = {1, 1.5, 2};
        static const char *const same[3] = {"softmax", "entmax15", "sparsemax"};
        FOR_EACH_ISA(isa) FOR_EACH_SIZE(size) for (int i = 0; i < 9; ++i) {
                const char *const direction = i < 3   ? ""
                                              : i < 6 ? "_backward"
                                                      : "_loss",
                                  *const type = size == 4 ? "f32" : "f64";
                char name[64], more[64];
                call c;
                (void)snprintf(name, sizeof name, "%s%s_%s", same[i % 3], direction, type);
                (void)snprintf(more, sizeof more, "entmax%s(1.25)_%s", direction, type);
                if (i == 6) { continue; }
                FOR_EACH_LENGTH(n) {
                    double loss[3];
                    const function *const f = function_named(name), *const g = function_named(more);
                    const size_t bytes = 3 * n * size;
                    void *const copy = malloc(bytes + 1);
                    c = call_of(f, 3, n, NORMAL_4, 5);
                    c.t.label_smoothing = 0.125;
                    c.epsilon = equals[i % 3];
                    CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
                    memcpy(copy, c.array[OUT], bytes);
                    memcpy(loss, c.per_row, sizeof loss);
                    memset(c.array[OUT], 1, bytes);
                    CHECK(g->run(&c) == MMAX_OK, AT, AT_ARGS(g, n));
                    CHECK(memcmp(copy, c.array[OUT], bytes) == 0 && memcmp(loss, c.per_row, sizeof loss) == 0, AT,
                          AT_ARGS(f, n));
                    free(copy);
                }
            }
    }
}

/* ==== gradients ==== */

/* sum gy y of the oracle with one entry, or the parameter, moved */
static wide moved(size_t n, size_t entry, double by) {
    const oracle o = {r.f, 0, NULL, r.parameter + (entry == n ? by : 0), DBL_MAX, NULL, 0};
    wide sum = 0;
    for (size_t i = 0; i < n; ++i) {
        exact_s[i].hi = (wide)r.s.scale * ((wide)r.x[i] + (i == entry ? by : 0));
        exact_s[i].lo = 0;
    }
    oracle_forward(&o, other_y, exact_s, n);
    for (size_t i = 0; i < n; ++i) { sum += r.gy[i] * other_y[i]; }
    return sum;
}
static void check_gradient(void) {
    const size_t n = r.s.cols;
    const double step = 1e-6;
    wide most = 0;
    CHECK(forward() == MMAX_OK && backward() == MMAX_OK, HERE, HERE_ARGS);
    for (size_t i = 0; i < n; ++i) { most = fmaxl(most, fabsl(r.gx[i])); }
    for (size_t i = 0; i < n; ++i) {
        wide of_x;
        if (is_off(r.x[i])) {
            CHECK(r.gx[i] == 0, HERE ": masked entry %u", HERE_ARGS, (unsigned)i);
            continue;
        }
        of_x = (moved(n, i, step) - moved(n, i, -step)) / (2 * step);
        CHECK(fabsl(r.gx[i] - of_x) <= (1 + most) * (r.size == 4 ? 2e-4 : 1e-6), HERE ": gx[%u] is %.9g, not %.9Lg",
              HERE_ARGS, (unsigned)i, r.gx[i], of_x);
    }
    if (r.f != SIGSOFTMAX && r.parameter - 1 > 1e-5) {
        const wide of_parameter = (moved(n, n, step) - moved(n, n, -step)) / (2 * step);
        CHECK(fabsl(r.gradient - of_parameter) <= (1 + fabsl(of_parameter)) * (r.size == 4 ? 1e-4 : 1e-6),
              HERE ": the parameter's gradient is %.9g, not %.9Lg", HERE_ARGS, r.gradient, of_parameter);
    }
}

static void test_backward(void) {
    TEST("gx, and the gradients of alpha and q, are differences of the oracle; of masks 0") {
        FOR_EACH_SIZE(size) for (unsigned seed = 0; seed < 150; ++seed) {
            static const double few[] = {1.0001, 1.05, 1.25, 1.7, 2.3, 3, 5};
            const size_t n = lengths[seed % 7];
            unsigned odd = seed - (seed % 5 == 4); /* no ties */
            draw(ENTMAX, size, few[seed % COUNT(few)], n, 0.5, odd);
            check_gradient();
            draw(SIGSOFTMAX, size, 0, n, 0.5, odd);
            check_gradient();
            draw(HOURGLASS, size, 0.25 * (1 + seed % 3), n, 0.25, odd);
            check_gradient();
        }
    }
    TEST("the gradient of alpha does not cancel near 1: at 1 it is y (sum y l^2 - l^2) / 2, and it goes there "
         "smoothly") {
        FOR_EACH_SIZE(size) for (unsigned k = 0; k < 6; ++k) {
            static const double near_1[] = {1, 1 + 1e-15, 1 + 1e-9, 1 + 1e-6, 1 + 1e-4, 1.001};
            wide mean = 0, gradient = 0;
            draw(ENTMAX, size, near_1[k], 33, 0.5, 1);
            CHECK(forward() == MMAX_OK && backward() == MMAX_OK, HERE, HERE_ARGS);
            for (int i = 0; i < 33; ++i) { mean += r.y[i] > 0 ? r.y[i] * powl(logl(r.y[i]), 2) : 0; }
            for (int i = 0; i < 33; ++i) {
                gradient += r.y[i] > 0 ? r.gy[i] * r.y[i] * (mean - powl(logl(r.y[i]), 2)) / 2 : 0;
            }
            CHECK(fabsl(gradient - r.gradient) <= (size == 4 ? 2e-6 : 1e-12) + 20 * (near_1[k] - 1),
                  HERE ": %.15g, not %.15Lg", HERE_ARGS, r.gradient, gradient);
        }
    }
    TEST("entmax's gradients of weights of any size, of gy of 1e308 and of more than 64 entries are finite") {
        for (double alpha = 1.25; alpha <= 8; alpha += 6.75) {
            double sum = 0;
            draw(ENTMAX, 8, alpha, 200, 1, 1);
            for (int i = 0; i < 200; ++i) {
                r.y[i] = i % 3 == 0 ? 0 : ldexp(1, -i * 5);
                r.gy[i] *= alpha < 2 ? 4e307 : 1;
            }
            CHECK(backward() == MMAX_OK && fabs(r.gradient) <= DBL_MAX, HERE ": %g", HERE_ARGS, r.gradient);
            for (int i = 0; i < 200; ++i) {
                CHECK(fabs(r.gx[i]) <= DBL_MAX && (r.y[i] > 0 || r.gx[i] == 0), HERE ": gx[%d] is %g", HERE_ARGS, i,
                      r.gx[i]);
                sum += r.gx[i] / 2;
            }
            CHECK(alpha > 2 || fabs(sum) <= 1e294, HERE ": gx adds up to %g", HERE_ARGS, sum);
        }
    }
    TEST(
        "gx and the parameter's gradient apart are those together; rows add up, lengths and starts leave entries out") {
        static const uint32_t ends[4] = {9, 4, 9, 0}, begins[4] = {0, 1, 5, 0};
        FOR_EACH_ISA(isa)
            for (int f = ENTMAX; f <= HOURGLASS; f += 2) {
                double whole, apart = 0, gx[36], x[36], y[36], gy[36];
                mmax_shape s = mmax_rows(4, 9);
                draw((formula)f, 8, 1.25, 36, 1, 3);
                memcpy(x, r.x, sizeof x);
                memcpy(gy, r.gy, sizeof gy);
                s.ends = ends;
                s.starts = begins;
                r.s = s;
                CHECK(forward() == MMAX_OK && backward() == MMAX_OK, HERE, HERE_ARGS);
                whole = r.gradient;
                memcpy(y, r.y, sizeof y);
                memcpy(gx, r.gx, sizeof gx);
                for (size_t row = 0; row < 4; ++row) {
                    const size_t at = row * 9 + begins[row], n = ends[row] - begins[row];
                    const mmax_shape one = mmax_row(n);
                    double y_[9], gx_[9];
                    if (f == ENTMAX) {
                        mmax_entmax_f64(y_, x + at, 1.25, one);
                        mmax_entmax_backward_f64(gx_, NULL, gy + at, y + at, 1.25, one);
                        mmax_entmax_backward_f64(NULL, &apart, gy + at, y + at, 1.25, one);
                    } else {
                        mmax_sparsehourglass_f64(y_, x + at, 1.25, one);
                        mmax_sparsehourglass_backward_f64(gx_, NULL, gy + at, y + at, x + at, 1.25, one);
                        mmax_sparsehourglass_backward_f64(NULL, &apart, gy + at, y + at, x + at, 1.25, one);
                    }
                    for (size_t i = 0; i < 9; ++i) {
                        const int inside = i >= begins[row] && i < ends[row];
                        CHECK(y[row * 9 + i] == (inside ? y_[i - begins[row]] : 0) &&
                                  gx[row * 9 + i] == (inside ? gx_[i - begins[row]] : 0),
                              HERE ": row %u, entry %u", HERE_ARGS, (unsigned)row, (unsigned)i);
                    }
                }
                CHECK(whole == apart, HERE ": %.17g, not %.17g", HERE_ARGS, whole, apart);
            }
    }
    TEST("NaN and +inf: in x, y or gy of weights they make the row's active gx and the gradient NaN; gy is not used "
         "where y = 0") {
        FOR_EACH_ISA(isa) FOR_EACH_SIZE(size) for (unsigned k = 0; k < 12; ++k) {
                const int f = k % 2 ? HOURGLASS : ENTMAX, where = (int)(k / 2) % 3;
                const double bad = double_of(k < 6 ? 0x7ff8000000000000 : 0x7ff0000000000000);
                draw((formula)f, size, 1.5 + 0.25 * (k % 3), 17, 1, 1);
                r.x[3] = double_of(0xfff0000000000000);
                r.x[5] = 30;
                r.x[6] = f == HOURGLASS ? -29 : -30;
                CHECK(forward() == MMAX_OK, HERE, HERE_ARGS);
                r.gy[6] = r.gy[3] = bad; /* y is 0 there */
                CHECK(backward() == MMAX_OK && r.y[6] == 0 && !is_nan_double(r.gx[5]) && !is_nan_double(r.gradient),
                      HERE, HERE_ARGS);
                (where == 0 && f == HOURGLASS ? r.x : where == 1 ? r.y : r.gy)[5] = bad;
                CHECK(backward() == MMAX_OK && is_nan_double(r.gx[5]) && is_nan_double(r.gradient) && r.gx[3] == 0,
                      HERE, HERE_ARGS);
            }
    }
}

/* ==== the loss ==== */

static wide omega(const wide *p, size_t n, wide alpha) {
    wide sum = 0;
    for (size_t i = 0; i < n; ++i) {
        const wide u = alpha - 1;
        if (p[i] > 0) { sum += u > 0 ? p[i] * expm1l(u * logl(p[i])) / (alpha * u) : p[i] * logl(p[i]); }
    }
    return sum;
}
static void check_loss(void) {
    const size_t n = r.s.cols, target = r.t.index ? (size_t)r.t.index[0] : n;
    const double a = r.t.label_smoothing, weight = r.t.weights ? r.t.weights[0] : 1;
    static wide q[MOST];
    wide loss, sum = 0, count = 0;
    if (r.t.q) {
        for (size_t i = 0; i < n; ++i) { sum += is_off(r.x[i]) ? 0 : r.q[i]; }
        for (size_t i = 0; i < n; ++i) { r.q[i] = is_off(r.x[i]) ? 0 : (double)((float)(r.q[i] * 4096 / sum)) / 4096; }
        sum = 0;
        for (size_t i = 1; i < n; ++i) { sum += r.q[i]; }
        r.q[0] = is_off(r.x[0]) ? 0 : (double)(1 - sum);
        if (is_off(r.x[0])) { r.q[1] += (double)(1 - sum); }
        sum = 0;
    }
    CHECK(entmax_loss() == MMAX_OK, HERE, HERE_ARGS);
    exact(n);
    for (size_t i = 0; i < n; ++i) { count += !is_off(r.x[i]); }
    for (size_t i = 0; i < n; ++i) {
        const double given = r.size == 4 ? (float)r.q[i] : r.q[i];
        q[i] = is_off(r.x[i]) ? 0 : (1 - a) * (r.t.q ? given : i == target) + a / count;
        sum += is_off(r.x[i]) ? 0 : exact_s[i].hi * (exact_y[i] - q[i]);
    }
    loss = weight * (omega(q, n, r.parameter) - omega(exact_y, n, r.parameter) + sum);
    CHECK(fabsl(loss - r.loss[0]) <= fmaxl((r.size == 4 ? 1e-6 : 1e-13) * loss, r.size == 4 ? 3e-7 : 1e-14),
          HERE ", smoothing %g%s: loss %.17g, not %.17Lg", HERE_ARGS, a, r.t.q ? ", q" : "", r.loss[0], loss);
    for (size_t i = 0; i < n; ++i) {
        const wide g = weight * r.t.grad_scale * r.s.scale * (exact_y[i] - q[i]);
        CHECK(fabsl(g - r.gx[i]) <= r.s.scale * (r.size == 4 ? 1e-6 : 2e-12), HERE ": gx[%u] is %.17g, not %.17Lg",
              HERE_ARGS, (unsigned)i, r.gx[i], g);
    }
}

static void test_loss(void) {
    TEST("entmax_loss is Omega*(s) + Omega(q) - <s, q> at every alpha, gx = y - q: classes, smoothing, soft targets, "
         "weights") {
        FOR_EACH_ISA(isa) FOR_EACH_SIZE(size) for (unsigned seed = 0; seed < 140; ++seed) {
                static int32_t index[1];
                static const double half[1] = {0.5};
                const double alpha = seed % 8 == 0 ? 1 : alphas[seed % COUNT(alphas)];
                draw(ENTMAX, size, alpha, lengths[seed % 10], scales[seed % 3], seed);
                r.t = seed % 2 ? mmax_labels(index) : mmax_distributions(r.q);
                index[0] = lengths[seed % 10] > 1;
                r.t.label_smoothing = seed % 3 == 1 ? 0.25 : 0;
                r.t.weights = seed % 4 > 1 ? half : NULL;
                r.t.grad_scale = seed % 5 ? 1 : 3;
                check_loss();
            }
    }
    TEST("special rows: ignored and of weight 0: 0, unread; masked target, or q there: +inf; NaN wins; in place; "
         "starts") {
        FOR_EACH_ISA(isa) FOR_EACH_SIZE(size) for (int soft = 0; soft < 2; ++soft) {
                static int32_t index[4];
                static const double weights[4] = {1, 0, 1, 1};
                static const uint32_t begins[4] = {1, 1, 1, 1}, ends[4] = {6, 7, 7, 7};
                double loss, g;
                draw(ENTMAX, size, 1.25, 28, 1, 0);
                r.s = mmax_rows(4, 7);
                r.s.starts = begins;
                r.s.ends = ends;
                r.t = soft ? mmax_distributions(r.q) : mmax_labels(index);
                r.t.weights = weights;
                for (int i = 0; i < 28; ++i) { r.q[i] = i % 7 == 4; }
                for (int i = 0; i < 4; ++i) { index[i] = 4; }
                r.x[0] = r.x[6] = r.x[10] = r.x[25] = double_of(0x7ff8000000000000);
                r.x[18] = r.x[2] = double_of(0xfff0000000000000);
                CHECK(entmax_loss() == MMAX_OK, HERE, HERE_ARGS);
                CHECK(r.loss[1] == 0 && r.gx[8] == 0 && r.gx[11] == 0, HERE ": weight 0", HERE_ARGS);
                CHECK(bits_of(r.loss[2]) == 0x7ff0000000000000 && r.gx[18] == 0 && r.gx[17] >= 0, HERE ": masked",
                      HERE_ARGS);
                CHECK(is_nan_double(r.loss[3]) && is_nan_double(r.gx[24]) && r.gx[21] == 0, HERE ": NaN", HERE_ARGS);
                CHECK(r.gx[0] == 0 && r.gx[6] == 0 && r.gx[2] == 0, HERE ": outside, or masked", HERE_ARGS);
                loss = r.loss[0];
                g = r.gx[4];
                r.s = mmax_row(5);
                memmove(r.x, r.x + 1, 5 * sizeof *r.x);
                memmove(r.q, r.q + 1, 5 * sizeof *r.q);
                r.t.weights = NULL;
                index[0] = 3;
                CHECK(entmax_loss() == MMAX_OK && r.loss[0] == loss && r.gx[3] == g, HERE ": alone", HERE_ARGS);
                CHECK(loss > 0 && g < 0, HERE, HERE_ARGS);
                index[0] = -1;
                if (!soft) {
                    CHECK(entmax_loss() == MMAX_OK && r.loss[0] == 0 && r.gx[3] == 0, HERE ": ignored", HERE_ARGS);
                }
            }
    }
}

/* ==== attention, errors ==== */

static void test_calls(void) {
    TEST("forward functions with a bias, a mask, scales a head, starts and lengths: what they make of the scores") {
        FOR_EACH_ISA(isa) FOR_EACH_SIZE(size) FOR_EACH_FORMULA(f) {
                static const uint32_t begins[4] = {0, 2, 0, 6}, ends[4] = {7, 6, 5, 6};
                static const double of_head[2] = {0.5, 2}, slopes[2] = {1, 0.25};
                static double bias[14], got[28], x[28];
                static float bias_32[14];
                mmax_attention a;
                memset(&a, 0, sizeof a);
                draw((formula)f, size, 1.25, 28, 1, 0);
                for (int i = 0; i < 28; ++i) { x[i] = r.x[i] = floor(r.x[i] * 4) / 4; }
                for (int i = 0; i < 14; ++i) {
                    bias_32[i] = (float)(bias[i] = i == 3 ? double_of(0xfff0000000000000) : (i % 5) / 2.0);
                }
                x[8] = r.x[8] = -1e4;
                a.head_rows = 2;
                a.scales = of_head;
                a.slopes = slopes;
                a.bias = size == 4 ? (void *)bias_32 : (void *)bias;
                a.bias_rows = 2;
                a.masked = -1e4;
                r.s = mmax_rows(4, 7);
                r.s.starts = begins;
                r.s.ends = ends;
                r.s.attention = &a;
                CHECK(forward() == MMAX_OK, HERE, HERE_ARGS);
                memcpy(got, r.y, sizeof got);
                for (size_t row = 0; row < 4; ++row) {
                    const size_t n = ends[row] - begins[row];
                    r.s = mmax_row(n);
                    for (size_t i = 0; i < n; ++i) {
                        const size_t at = row * 7 + begins[row] + i, of_bias = row % 2 * 7 + begins[row] + i;
                        r.x[i] = at == 8 || of_bias == 3 ? double_of(0xfff0000000000000)
                                                         : of_head[row / 2] * x[at] + slopes[row / 2] * bias[of_bias];
                    }
                    CHECK(forward() == MMAX_OK, HERE, HERE_ARGS);
                    for (size_t i = 0; i < 7; ++i) {
                        const double y = i >= begins[row] && i < ends[row] ? r.y[i - begins[row]] : 0;
                        CHECK(got[row * 7 + i] == y, HERE ": row %u, entry %u is %g, not %g", HERE_ARGS, (unsigned)row,
                              (unsigned)i, got[row * 7 + i], y);
                    }
                }
            }
    }
    TEST("errors, before anything is written") {
        const double nan = double_of(0x7ff8000000000000), sinks[1] = {0};
        const int32_t index[1] = {0};
        double gradient = 7, x[2] = {1, 2}, y[2] = {7, 7}, *const none = NULL;
        mmax_shape s = mmax_row(2), with_sinks = s;
        mmax_attention a;
        memset(&a, 0, sizeof a);
        a.sinks = sinks;
        with_sinks.attention = &a;
        CHECK(mmax_entmax_f64(y, x, 0.99, s) == MMAX_ERR_PARAM && mmax_entmax_f64(y, x, 8.1, s) == MMAX_ERR_PARAM,
              "alpha");
        CHECK(mmax_entmax_f64(y, x, nan, s) == MMAX_ERR_PARAM && mmax_entmax_f64(y, none, 2, s) == MMAX_ERR_NULL,
              "NaN");
        CHECK(mmax_entmax_backward_f64(y, none, x, x, nan, s) == MMAX_ERR_PARAM, "alpha");
        CHECK(mmax_entmax_backward_f64(none, none, x, x, 1, s) == MMAX_ERR_NULL, "no output");
        CHECK(mmax_entmax_backward_f64(y, y + 1, x, x, 1.25, s) == MMAX_ERR_ALIAS, "gradient of alpha in gx");
        CHECK(mmax_entmax_loss_f64(&gradient, y, x, 9, mmax_labels(index), s) == MMAX_ERR_PARAM, "alpha");
        CHECK(mmax_entmax_loss_f64(&gradient, y, x, 1.25, mmax_labels(index), with_sinks) == MMAX_ERR_ATTENTION,
              "attention");
        CHECK(mmax_sparsehourglass_f64(y, x, 0, s) == MMAX_ERR_PARAM, "q = 0");
        CHECK(mmax_sparsehourglass_f64(y, x, nan, s) == MMAX_ERR_PARAM, "q is NaN");
        CHECK(mmax_sparsehourglass_backward_f64(y, &gradient, x, x, x, -1, s) == MMAX_ERR_PARAM, "q < 0");
        CHECK(mmax_sparsehourglass_backward_f64(y, &gradient, x, x, none, 1, s) == MMAX_ERR_NULL, "x");
        CHECK(mmax_sigsoftmax_f64(y, x, with_sinks) == MMAX_ERR_ATTENTION, "sinks");
        CHECK(mmax_entmax_f64(y, x, 1, with_sinks) == MMAX_ERR_ATTENTION, "sinks");
        CHECK(mmax_sigsoftmax_backward_f64(y, x, none, x, s) == MMAX_ERR_NULL, "y");
        CHECK(mmax_gumbel_f64(none, 1, 0, s) == MMAX_ERR_NULL, "noise");
        s.y_stride = 1;
        s.rows = 2;
        CHECK(mmax_gumbel_f64(y, 1, 0, s) == MMAX_ERR_SHAPE, "stride");
        CHECK(gradient == 7 && y[0] == 7 && y[1] == 7, "something was written");
    }
}

/* ==== Gumbel numbers ==== */

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
/* rows x cols of them, as doubles */
static double *gumbels(size_t size, uint64_t seed, uint64_t first_row, size_t rows_, size_t cols) {
    double *const wide_ = malloc(rows_ * cols * sizeof *wide_);
    float *const narrow_ = malloc(rows_ * cols * sizeof *narrow_);
    const mmax_shape s = mmax_rows(rows_, cols);
    CHECK((size == 4 ? mmax_gumbel_f32(narrow_, seed, first_row, s) : mmax_gumbel_f64(wide_, seed, first_row, s)) ==
              MMAX_OK,
          "gumbel");
    for (size_t i = 0; size == 4 && i < rows_ * cols; ++i) { wide_[i] = narrow_[i]; }
    free(narrow_);
    return wide_;
}

static void test_gumbel(void) {
    TEST("Gumbel numbers have their distribution, in both tails too; none is infinite; rows and columns are "
         "independent") {
        FOR_EACH_SIZE(size) {
            const size_t rows_ = 1024, cols = 1024, n = rows_ * cols;
            double *const g = gumbels(size, 20240607, 0, rows_, cols);
            double mean = 0, square = 0, beside = 0, below = 0, worst = 0;
            static const double tails[] = {-2.3, -2, -1.5, 5, 8, 10};
            for (size_t i = 0; i < n; ++i) {
                const double a = g[i] - 0.57721566490153286;
                mean += a / (double)n;
                square += a * a / (double)n;
                beside += i % cols ? a * (g[i - 1] - 0.57721566490153286) / (double)n : 0;
                below += i >= cols ? a * (g[i - cols] - 0.57721566490153286) / (double)n : 0;
            }
            CHECK(fabs(mean) < 5 * 1.2825 / 1024, "mean %g", mean);
            CHECK(fabs(square - 1.6449340668) < 5 * 2.9 / 1024, "variance %g", square);
            CHECK(fabs(beside) < 5 * 1.645 / 1024 && fabs(below) < 5 * 1.645 / 1024, "correlation %g, %g", beside,
                  below);
            for (size_t k = 0; k < COUNT(tails); ++k) {
                const double p = tails[k] < 0 ? exp(-exp(-tails[k])) : -expm1(-exp(-tails[k])),
                             expected_ = p * (double)n;
                double count = 0;
                for (size_t i = 0; i < n; ++i) { count += tails[k] < 0 ? g[i] < tails[k] : g[i] > tails[k]; }
                CHECK(fabs(count - expected_) < 5 * sqrt(expected_) + 1, "beyond %g: %g, not %g", tails[k], count,
                      expected_);
            }
            qsort(g, n, sizeof *g, ascending);
            for (size_t i = 0; i < n; ++i) {
                worst = fmax(worst, fabs(exp(-exp(-g[i])) - ((double)i + 0.5) / (double)n));
            }
            CHECK(worst < 1.95 / 1024, "Kolmogorov's distance is %g", worst * 1024);
            CHECK(g[0] > -4 && g[n - 1] < 40, "from %g to %g", g[0], g[n - 1]);
            free(g);
        }
    }
    TEST("floats have the same 53 random bits as doubles, so that rare entries win as often") {
        double *const floats = gumbels(4, 3, 0, 100, 131), *const doubles = gumbels(8, 3, 0, 100, 131);
        int same = 1;
        for (size_t i = 0; i < 13100; ++i) { same &= floats[i] == (double)(float)doubles[i]; }
        CHECK(same, "floats are not doubles rounded");
        free(floats);
        free(doubles);
    }
    TEST("mmax_sample draws another number than mmax_gumbel, for each seed and row: both draws of a row are "
         "independent") {
        enum { DRAWS = 20000 };
        static float x[3 * DRAWS];
        static uint32_t first[DRAWS];
        double p[3], counts[9] = {0}, chi = 0;
        double *const g = gumbels(8, 11, 5, DRAWS, 3);
        for (size_t i = 0; i < 3 * DRAWS; ++i) { x[i] = i % 3 == 0 ? 0.0f : i % 3 == 1 ? 1.7917595f : 1.0986123f; }
        const double sum = 1 + exp((double)x[1]) + exp((double)x[2]);
        for (size_t i = 0; i < 3; ++i) { p[i] = exp((double)x[i]) / sum; }
        CHECK(mmax_sample_f32(first, NULL, x, mmax_truncation_none(), 11, 5, mmax_rows(DRAWS, 3)) == MMAX_OK, "draws");
        for (size_t row = 0; row < DRAWS; ++row) {
            size_t second = 0;
            for (size_t k = 1; k < 3; ++k) {
                second = (double)x[k] + g[3 * row + k] > (double)x[second] + g[3 * row + second] ? k : second;
            }
            ++counts[first[row] * 3 + second];
        }
        for (size_t i = 0; i < 9; ++i) {
            const double expected_ = p[i / 3] * p[i % 3] * (double)DRAWS;
            chi += (counts[i] - expected_) * (counts[i] - expected_) / expected_;
        }
        CHECK(chi < 30, "chi-square %g with 8 degrees of freedom", chi);
        free(g);
    }
    TEST("the argmax of x + noise is a sample of softmax(x)") {
        const double x[4] = {1, 0, -1, 2};
        double p[4], count[4] = {0};
        double *const g = gumbels(8, 9, 1000, 100000, 4);
        mmax_softmax_f64(p, x, mmax_row(4));
        for (size_t i = 0; i < 400000; i += 4) {
            size_t most = 0;
            for (size_t k = 1; k < 4; ++k) { most = x[k] + g[i + k] > x[most] + g[i + most] ? k : most; }
            ++count[most];
        }
        for (int k = 0; k < 4; ++k) {
            CHECK(fabs(count[k] - 1e5 * p[k]) < 5 * sqrt(1e5 * p[k]), "%d: %g of %g", k, count[k], 1e5 * p[k]);
        }
        free(g);
    }
    TEST("a batch in parts is the whole; another seed is another one; starts and lengths; the same bits everywhere") {
        static double whole[5 * 131];
        FOR_EACH_ISA(isa) FOR_EACH_SIZE(size) {
                static const uint32_t begins[5] = {3, 0, 70, 0, 131}, ends[5] = {131, 100, 131, 0, 131};
                double *const all = gumbels(size, 5, UINT64_MAX - 1, 5, 131), *const other = gumbels(
                                                                                  size, 6, UINT64_MAX - 1, 5, 131);
                double part[5 * 140];
                int same = 0;
                mmax_shape s = mmax_rows(5, 131);
                for (size_t row = 0; row < 5; ++row) {
                    double *const one = gumbels(size, 5, UINT64_MAX - 1 + row, 1, 131);
                    CHECK(memcmp(one, all + row * 131, 131 * sizeof *one) == 0, "row %u", (unsigned)row);
                    free(one);
                }
                for (size_t i = 0; i < 5 * 131; ++i) { same += all[i] == other[i]; }
                CHECK(same < 3, "%d are the same with another seed", same);
                if (size == 8) {
                    s.starts = begins;
                    s.ends = ends;
                    s.y_stride = 140;
                    CHECK(mmax_gumbel_f64(part, 5, UINT64_MAX - 1, s) == MMAX_OK, "gumbel");
                    for (size_t i = 0; i < 5 * 131; ++i) {
                        const size_t row = i / 131, col = i % 131;
                        CHECK(part[row * 140 + col] == (col >= begins[row] && col < ends[row] ? all[i] : 0), "entry %u",
                              (unsigned)i);
                    }
                    if (whole[0] == 0) { memcpy(whole, all, sizeof whole); } /* of the first */
#if !defined(__FAST_MATH__)
                    CHECK(memcmp(whole, all, sizeof whole) == 0, "on %s", mmax_isa_name(mmax_isa_active()));
#endif
                }
                free(all);
                free(other);
            }
    }
}

/* ==== golden vectors ==== */

/* 1: a case; 0: the end of the file; -1: neither, or one too large. */
static int read_case(FILE *in, formula f, int is_loss, int *is_other) {
    static const char *const of_parameter[FORMULAS] = {[ENTMAX] = "ga", [HOURGLASS] = "gq"};
    static int32_t index[64];
    static double t[64];
    char word[32], name[32];
    unsigned rows_, cols;
    double scale;
    if (fscanf(in, "%31s", word) != 1) { return 0; }
    if (strcmp(word, "case") != 0 || fscanf(in, "%31s %u %u %lf", name, &rows_, &cols, &scale) != 4) { return -1; }
    draw(f, 8, 0, 0, scale, 0);
    r.s.rows = rows_;
    r.s.cols = cols;
    if ((size_t)rows_ * cols > MOST || rows_ > 64) { return -1; }
    if (f != SIGSOFTMAX && fscanf(in, "%lf", &r.parameter) != 1) { return -1; }
    r.t = mmax_labels(index);
    if (is_loss && fscanf(in, "%lf", &r.t.label_smoothing) != 1) { return -1; }
    *is_other = strncmp(name, "log_", 4) == 0;
    if (is_loss) {
        const int good = read_values(in, "x", r.x, rows_ * cols) && read_values(in, "t", t, rows_) &&
                         read_values(in, "loss", r.loss, rows_) && read_values(in, "gx", r.gx, rows_ * cols);
        for (size_t i = 0; i < rows_; ++i) { index[i] = (int32_t)t[i]; }
        return good ? 1 : -1;
    }
    return read_values(in, "x", r.x, rows_ * cols) && read_values(in, "y", r.y, rows_ * cols) &&
                   read_values(in, "gy", r.gy, rows_ * cols) && read_values(in, "gx", r.gx, rows_ * cols) &&
                   (!of_parameter[f] || read_values(in, of_parameter[f], &r.gradient, 1))
               ? 1
               : -1;
}
/* Weights above 1e-6 relative; gradients by the size of gy, which steep weights multiply, and of the scores. */
static void check_case(const rows *given, int is_loss) {
    const size_t n = given->s.rows * given->s.cols;
    double most = 1, size_of_gx = 1;
    for (size_t i = 0; i < n; ++i) {
        most = fmax(most, is_off(given->x[i]) ? 0 : fabs(given->x[i]));
        size_of_gx = fmax(size_of_gx, fabs(given->gx[i]));
    }
    FOR_EACH_SIZE(size) {
        const double e = size == 4 ? FLT_EPSILON : DBL_EPSILON;
        r = *given;
        r.size = size;
        r.gradient = 0;
        CHECK(is_loss ? entmax_loss() == MMAX_OK : backward() == MMAX_OK, HERE, HERE_ARGS);
        for (size_t i = 0; i < n; ++i) {
            CHECK(fabs(r.gx[i] - given->gx[i]) <= 64 * e * size_of_gx * most, HERE ": gx[%u] is %.17g, not %.17g",
                  HERE_ARGS, (unsigned)i, r.gx[i], given->gx[i]);
        }
        for (size_t i = 0; is_loss && i < r.s.rows; ++i) {
            CHECK(fabs(r.loss[i] - given->loss[i]) <=
                      fmax((size == 4 ? 1e-6 : 1e-13) * given->loss[i], size == 4 ? 3e-7 : 1e-14),
                  HERE ": loss %.17g, not %.17g", HERE_ARGS, r.loss[i], given->loss[i]);
        }
        if (is_loss) { continue; }
        CHECK(fabs(r.gradient - (r.f == SIGSOFTMAX ? 0 : given->gradient)) <= 64 * e * (double)n * size_of_gx * most,
              HERE ": the parameter's gradient is %.17g, not %.17g", HERE_ARGS, r.gradient, given->gradient);
        CHECK(forward() == MMAX_OK, HERE, HERE_ARGS);
        for (size_t i = 0; i < n; ++i) {
            const double y = given->y[i], bound = r.f == ENTMAX && y > 1e-6
                                                      ? (double)oracle_entmax_bound(r.parameter, e, y) * y
                                                      : 8 * e * (y > 0 ? 1 : 0) * most;
            CHECK(fabs(r.y[i] - y) <= bound + (r.f == ENTMAX && y <= 1e-6 ? 1e-6 : 0),
                  HERE ": y[%u] is %.17g, not %.17g", HERE_ARGS, (unsigned)i, r.y[i], y);
        }
    }
}
static void test_golden(const char *folder) {
    static const struct {
        const char *name;
        formula f;
        unsigned cases;
    } files[] = {{"entmax", ENTMAX, 192},
                 {"entmax_loss", ENTMAX, 156},
                 {"sigsoftmax", SIGSOFTMAX, 83},
                 {"sparsehourglass", HOURGLASS, 90}};
    TEST("y, gx, losses and gradients of alpha and q that were computed with 90 digits") {
        FOR_EACH_ISA(isa)
            for (int k = 0; k < 4; ++k) {
                static rows given;
                char path[4096];
                unsigned cases = 0;
                int got = 0, is_other;
                FILE *in;
                (void)snprintf(path, sizeof path, "%s/%s.txt", folder, files[k].name);
                in = fopen(path, "r");
                CHECK(in != NULL, "cannot read %s", path);
                while (in && (got = read_case(in, files[k].f, k == 1, &is_other)) == 1) {
                    given = r;
                    if (!is_other) { check_case(&given, k == 1); }
                    ++cases;
                }
                CHECK(got == 0 && cases >= files[k].cases, "%s: %u cases, not %u", path, cases, files[k].cases);
                if (in) { (void)fclose(in); }
            }
    }
}

int main(int argc, char **argv) {
    test_forward();
    test_backward();
    test_loss();
    test_calls();
    test_gumbel();
    test_golden(argc > 1 ? argv[1] : "tests/golden");
    return check_report();
}
