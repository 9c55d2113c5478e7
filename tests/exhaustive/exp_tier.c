/*
 * exp_tier.c: compiled once for each instruction set, with its flags and -DTIER=avx2; plain C is -DTIER=scalar
 * -DPLAIN_C. What the build says of instruction sets otherwise does not matter.
 */
#undef MULTIMAX_NO_SIMD
#undef MULTIMAX_NO_DISPATCH
#undef MULTIMAX_EXTERN
#define MULTIMAX_NO_DISPATCH
#if defined(PLAIN_C)
#    define MULTIMAX_NO_SIMD
#endif
#include "multimax.h"

#include "tiers.h"

#define PASTE_(a, b, c, d) a##b##c##d
#define PASTE(a, b, c, d)  PASTE_(a, b, c, d)
#if !defined(INSTANCE)
#    define INSTANCE TIER
#endif

#define DEFINE_EXP(T, real)                                                                   \
    void PASTE(exp_, TIER, _, T)(real * y, const real *x, size_t n, real max, double scale) { \
        PASTE(mmax_consts_, T, _, INSTANCE) c;                                                  \
        PASTE(mmax_origin_, T, _, INSTANCE) o;                                                \
        PASTE(mmax_vec_, T, _, INSTANCE) v, rounder;                                          \
        real lanes[16];                                                                       \
        PASTE(mmax_prepare_, T, _, INSTANCE)(&c, scale, NULL);                                \
        o = PASTE(mmax_origin_of_, T, _, INSTANCE)(max, &c);                                  \
        for (int k = 0; k < 16; ++k) { lanes[k] = o.rounder; }                                \
        memcpy(&rounder, lanes, sizeof rounder);                                              \
        for (size_t i = 0; i < n; ++i) {                                                      \
            for (int k = 0; k < 16; ++k) { lanes[k] = x[i] > o.lowest ? x[i] : o.lowest; }    \
            memcpy(&v, lanes, sizeof v);                                                      \
            v = PASTE(mmax_exp_, T, _, INSTANCE)(v, rounder, &c);                             \
            memcpy(&y[i], &v, sizeof y[i]);                                                   \
        }                                                                                     \
    }

DEFINE_EXP(f32, float)
DEFINE_EXP(f64, double)
