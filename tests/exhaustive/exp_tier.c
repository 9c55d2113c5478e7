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

#define PASTE_(a, b, c)   a##_##b##_##c
#define PASTE(a, b, c)    PASTE_(a, b, c)
#define INTERNAL(name, T) PASTE(mmax_##name, TIER, T)

#define DEFINE_EXP(T, real)                                                             \
    void PASTE(exp, TIER, T)(real * y, const real *x, size_t n, real max, double scale) \
    {                                                                                   \
        INTERNAL(call, T) c;                                                            \
        const INTERNAL(extremes, T) e = {max, max, 0, 0};                               \
        INTERNAL(origin, T) o;                                                          \
        INTERNAL(prepare, T)(&c, scale, NULL, 0);                                       \
        o = INTERNAL(origin_of, T)(&e, 1, &c);                                          \
        for (size_t i = 0; i < n; ++i) {                                                \
            y[i] = INTERNAL(exp_of, T)(x[i], &o, &c);                                   \
        }                                                                               \
    }

DEFINE_EXP(f32, float)
DEFINE_EXP(f64, double)
