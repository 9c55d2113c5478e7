/*
 * test_exp.c: the largest error of the exponential inside the kernels of every instruction set, in ULP.
 *
 *     test_exp                f32: every float with |x| <= 709.78, from where the kernels take off the maximum first;
 *                             some minutes for each instruction set
 *     test_exp STRIDE [STEP]  every STRIDE-th of these; f64: every STEP-th group of its points
 *
 * What else a row has (its place, length and maximum) divides the exponential by a power of two, which is found here by
 * comparison, and differences x - max are floats of the same range. All are larger by one factor near 1. Other scales,
 * whose constants are other ones, take a part of the points each. f64: random points, and the neighbours of each score
 * at which the reduction turns from one eighth of a power of two to the next, where the polynomial ends.
 *
 * Reference: exp in double, 2^-29 ULP of a float off; for f64 expl, where long double has 64 bits or more 2^-10 ULP.
 */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../check.h"
#include "multimax.h"
#include "tiers.h"

#define BLOCK 4096
#define LN2   0.69314718055994530942

/* MMAX_POW2_FACTOR */
#define FACTOR_F32 (1 + 6156 * FLT_EPSILON)
#define FACTOR_F64 (1 + 157253372 * DBL_EPSILON)

typedef struct tier {
    mmax_isa isa;
    const char *name;
    tier_f32 *f32;
    tier_f64 *f64;
} tier;

static const tier tiers[] = {
#if defined(TIERS_X86)
    {MMAX_ISA_SSE2, "sse2", exp_sse2_f32, exp_sse2_f64},
    {MMAX_ISA_AVX2, "avx2", exp_avx2_f32, exp_avx2_f64},
    {MMAX_ISA_AVX512, "avx512", exp_avx512_f32, exp_avx512_f64},
#elif defined(TIERS_NEON)
    {MMAX_ISA_NEON, "neon", exp_neon_f32, exp_neon_f64},
#endif
    {MMAX_ISA_SCALAR, "plain C", exp_scalar_f32, exp_scalar_f64}};

/* The first is that of whole sweeps. 8, and 1/sqrt(128): attention. */
static const double scales[] = {1, 0.125, 0.088388347648318440, 0.7, 3.3, 20};

typedef struct worst {
    double error, x; /* the largest error so far, and where */
    unsigned long long points;
} worst;

/* got is want times a power of two, and an error. */
static void take(worst *w, double got, long double want, int digits, double x) {
    int e;
    long double m = frexpl(want, &e), g = frexp(got, &e), error;
    g = g > 1.5L * m ? g / 2 : g < 0.75L * m ? g * 2 : g;
    error = ldexpl(g > m ? g - m : m - g, digits); /* m is in [1/2, 1) */
    ++w->points;
    if (!(error <= w->error)) {
        w->error = (double)error;
        w->x = x;
    }
}

/* ==== f32 ==== */

static uint32_t bits_of_float(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Every stride-th float with |scale x| <= 1024 ln 2. A block holds scores that are near to each other. */
static worst sweep_f32(const tier *t, double scale, uint32_t stride) {
    static float x[BLOCK], y[BLOCK];
    const uint32_t end = bits_of_float((float)(1024 * LN2 / scale));
    worst w = {0, 0, 0};
    for (uint32_t sign = 0; sign < 2; ++sign) {
        for (uint32_t bits = 0; bits < end;) {
            size_t n = 0;
            do {
                x[n++] = float_of(bits | sign << 31);
                bits += stride;
            } while (n < BLOCK && bits < end && fabs((double)float_of(bits | sign << 31) - x[0]) * scale < 16);
            t->f32(y, x, n, x[0], scale);
            for (size_t i = 0; i < n; ++i) {
                double s = x[i] * scale;
                take(&w, y[i], (fabs(s) < 700 ? exp(s) : expl(s)) * FACTOR_F32, FLT_MANT_DIG, x[i]);
            }
        }
    }
    return w;
}

/* ==== f64 ==== */

static uint64_t state = 1;

/* splitmix64 */
static uint64_t random_bits(void) {
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* Near to the score s: within a unit; or its neighbours, some tens of ULP off. */
static double near_score(double s, double scale) {
    uint64_t r = random_bits(), bits;
    double x = s / scale;
    if (r & 1) { return (s + (double)(r >> 11) / 9007199254740992.0) / scale; }
    memcpy(&bits, &x, sizeof bits);
    bits += (r >> 1) % 129 - 64;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* exp(scale x), the product being exact. */
static long double exact_exp(double x, double scale) {
    double high = x * scale;
    return expl(high) * (1 + (long double)fma(x, scale, -high));
}

static worst sweep_f64(const tier *t, double scale, unsigned rounds, int step) {
    static double x[BLOCK], y[BLOCK];
    worst w = {0, 0, 0};
    for (int eighths = -65520; eighths < 65520; eighths += 16 * step) { /* |scale x| < 8192 ln 2 */
        for (unsigned round = 0; round < rounds; ++round) {
            size_t n = 0;
            for (int k = 0; k < 16; ++k) {
                for (int j = 0; j < 16; ++j) { x[n++] = near_score((eighths + k + 0.5) * (LN2 / 8), scale); }
            }
            t->f64(y, x, n, x[0], scale);
            for (size_t i = 0; i < n; ++i) { take(&w, y[i], exact_exp(x[i], scale) * FACTOR_F64, DBL_MANT_DIG, x[i]); }
        }
    }
    return w;
}

/* ==== all ==== */

static void check_worst(const tier *t, const char *type, double scale, worst w, double bound) {
    NOTE("%-8s %s scale %-7.4g %11llu points: %.4f ULP at %.17g", t->name, type, scale, w.points, w.error, w.x);
    CHECK(w.error <= bound, "%s: more than %g ULP", t->name, bound);
    fflush(stdout);
}

int main(int argc, char **argv) {
    const uint32_t stride = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1;
    const int step = argc > 2 ? atoi(argv[2]) : 1;
    for (size_t i = 0; i < sizeof tiers / sizeof *tiers; ++i) {
        const tier *t = tiers + i;
        if (!mmax_isa_available(t->isa)) {
            NOTE("%s: not on this machine", t->name);
            continue;
        }
        TEST("the exponential of one instruction set") {
            for (size_t k = 0; k < sizeof scales / sizeof *scales; ++k) {
                const uint32_t thinned = k ? 61 * stride : stride;
                const unsigned rounds = stride > 1 ? 1 : k ? 12 : 48;
                check_worst(t, "f32", scales[k], sweep_f32(t, scales[k], thinned), 1);
                if (LDBL_MANT_DIG >= 64) {
                    check_worst(t, "f64", scales[k], sweep_f64(t, scales[k], rounds, step), 0.75);
                }
            }
        }
    }
    return check_report();
}
