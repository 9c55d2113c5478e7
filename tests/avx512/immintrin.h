/*
 * AVX-512 on processors without it: SIMDe's functions under Intel's names, and here what SIMDe 0.7.4 leaves to the
 * compiler. Stands in for the compiler's <immintrin.h>, see run.sh. Each lane is computed as Intel's guide says.
 */
#ifndef MULTIMAX_TESTS_IMMINTRIN_H
#    define MULTIMAX_TESTS_IMMINTRIN_H

/* The header under test has asked; for SIMDe they would mean that the compiler may use AVX-512. */
#    undef __AVX512F__
#    undef __AVX512BW__
#    undef __AVX512DQ__
#    undef __AVX512VL__
#    define SIMDE_ENABLE_NATIVE_ALIASES
#    include <math.h>
#    include <string.h>

#    include <simde/x86/avx512.h>
#    include <simde/x86/fma.h>

/* A function of registers whose lanes are from[0][i] and from[1][i]: each lane of the result, to_type, is `value`. */
#    define LANES_OF(name, arguments, from_type, from_count, first, second, result, to_type, to_count, value) \
        static inline result emulated_##name arguments                                                        \
        {                                                                                                     \
            from_type from[2][from_count];                                                                    \
            to_type to[to_count];                                                                             \
            result all;                                                                                       \
            memcpy(from[0], &(first), sizeof from[0]);                                                        \
            memcpy(from[1], &(second), sizeof from[1]);                                                       \
            for (int i = 0; i < (to_count); ++i) {                                                            \
                to[i] = value;                                                                                \
            }                                                                                                 \
            memcpy(&all, to, sizeof all);                                                                     \
            return all;                                                                                       \
        }
#    define LANES(name, arguments, type, count, first, second, result, value) \
        LANES_OF(name, arguments, type, count, first, second, result, type, count, value)

/* Lanes that an immediate number chooses */
LANES(permute_pd, (__m512d a, int n), double, 8, a, a, __m512d, from[0][(i & ~1) + (n >> i & 1)])
LANES(permute_ps, (__m512 a, int n), float, 16, a, a, __m512, from[0][(i & ~3) + (n >> 2 * (i & 3) & 3)])
LANES(shuffle_f64x2, (__m512d a, __m512d b, int n), double, 8, a, b, __m512d,
      from[i / 4][2 * (n >> i / 2 * 2 & 3) + i % 2])
LANES(shuffle_f32x4, (__m512 a, __m512 b, int n), float, 16, a, b, __m512,
      from[i / 8][4 * (n >> i / 4 * 2 & 3) + i % 4])

/* Conversions; of integers beyond int the least one */
#    define WHOLE(a) ((a) >= -2147483648.0 && (a) < 2147483648.0 ? (int)(a) : -2147483647 - 1)
LANES_OF(cvtepi64_pd, (__m512i a), long long, 8, a, a, __m512d, double, 8, (double)from[0][i])
LANES_OF(cvtepi32_pd, (__m256i a), int, 8, a, a, __m512d, double, 8, from[0][i])
LANES_OF(cvtepi32_ps, (__m512i a), int, 16, a, a, __m512, float, 16, (float)from[0][i])
LANES_OF(cvttpd_epi32, (__m512d a), double, 8, a, a, __m256i, int, 8, WHOLE(from[0][i]))
LANES_OF(cvttps_epi32, (__m512 a), float, 16, a, a, __m512i, int, 16, WHOLE(from[0][i]))
LANES_OF(cvtps_pd, (__m256 a), float, 8, a, a, __m512d, double, 8, from[0][i])
LANES_OF(extractf32x8_ps, (__m512 a, int n), float, 16, a, a, __m256, float, 8, from[0][8 * n + i])

/* What a mask chooses; memory beyond it is not touched */
static inline void emulated_copy(void *to, const void *from, size_t size, unsigned mask)
{
    for (size_t at = 0; mask != 0; mask >>= 1, at += size) {
        if (mask & 1) {
            memcpy((char *)to + at, (const char *)from + at, size);
        }
    }
}
#    define MASKED(type, count, vector, sfx, fused)                                                  \
        static inline vector emulated_mask_loadu_##sfx(vector a, unsigned mask, const void *p)       \
        {                                                                                            \
            emulated_copy(&a, p, sizeof(type), mask);                                                \
            return a;                                                                                \
        }                                                                                            \
        static inline void emulated_mask_storeu_##sfx(void *p, unsigned mask, vector a)              \
        {                                                                                            \
            emulated_copy(p, &a, sizeof(type), mask);                                                \
        }                                                                                            \
        static inline vector emulated_mask3_fmadd_##sfx(vector a, vector b, vector c, unsigned mask) \
        {                                                                                            \
            type x[count], y[count], z[count];                                                       \
            memcpy(x, &a, sizeof x);                                                                 \
            memcpy(y, &b, sizeof y);                                                                 \
            memcpy(z, &c, sizeof z);                                                                 \
            for (int i = 0; i < (count); ++i) {                                                      \
                z[i] = fused(x[i], y[i], z[i]);                                                      \
            }                                                                                        \
            emulated_copy(&c, z, sizeof(type), mask);                                                \
            return c;                                                                                \
        }
MASKED(double, 8, __m512d, pd, fma)
MASKED(float, 16, __m512, ps, fmaf)

#    define _mm512_permute_pd      emulated_permute_pd
#    define _mm512_permute_ps      emulated_permute_ps
#    define _mm512_shuffle_f64x2   emulated_shuffle_f64x2
#    define _mm512_shuffle_f32x4   emulated_shuffle_f32x4
#    define _mm512_cvtepi64_pd     emulated_cvtepi64_pd
#    define _mm512_cvtepi32_pd     emulated_cvtepi32_pd
#    define _mm512_cvtepi32_ps     emulated_cvtepi32_ps
#    define _mm512_cvttpd_epi32    emulated_cvttpd_epi32
#    define _mm512_cvttps_epi32    emulated_cvttps_epi32
#    define _mm512_cvtps_pd        emulated_cvtps_pd
#    define _mm512_extractf32x8_ps emulated_extractf32x8_ps
#    define _mm512_mask_loadu_pd   emulated_mask_loadu_pd
#    define _mm512_mask_loadu_ps   emulated_mask_loadu_ps
#    define _mm512_mask_storeu_pd  emulated_mask_storeu_pd
#    define _mm512_mask_storeu_ps  emulated_mask_storeu_ps
#    define _mm512_mask3_fmadd_pd  emulated_mask3_fmadd_pd
#    define _mm512_mask3_fmadd_ps  emulated_mask3_fmadd_ps

#else /* SIMDe asks for the compiler's */
#    include_next <immintrin.h>
#endif
