/* AVX-512's intrinsics that multimax.h uses, lane by lane, for processors with AVX2 alone. Before the header. */
#include <immintrin.h>
#include <math.h>
#include <string.h>
#define __AVX512F__  1
#define __AVX512BW__ 1
#define __AVX512DQ__ 1
#define __AVX512VL__ 1

#define EACH for (int i = 0; i < (int)(sizeof v / sizeof v[0]); ++i)
#define OF_TYPE(T, vec, ivec, int_t, mask, ps, epi, root, fused)                                                       \
    static inline vec emu_mask_loadu_##ps(vec v, mask k, const T *p) {                                                 \
        EACH if (k >> i & 1) v[i] = p[i];                                                                              \
        return v;                                                                                                      \
    }                                                                                                                  \
    static inline void emu_mask_storeu_##ps(T *p, mask k, vec v) { EACH if (k >> i & 1) p[i] = v[i]; }                 \
    static inline vec emu_min_##ps(vec v, vec b) {                                                                     \
        EACH v[i] = v[i] < b[i] ? v[i] : b[i];                                                                         \
        return v;                                                                                                      \
    }                                                                                                                  \
    static inline vec emu_max_##ps(vec v, vec b) {                                                                     \
        EACH v[i] = v[i] > b[i] ? v[i] : b[i];                                                                         \
        return v;                                                                                                      \
    }                                                                                                                  \
    static inline vec emu_sqrt_##ps(vec v) {                                                                           \
        EACH v[i] = root(v[i]);                                                                                        \
        return v;                                                                                                      \
    }                                                                                                                  \
    static inline vec emu_fmadd_##ps(vec v, vec b, vec c) {                                                            \
        EACH v[i] = fused(v[i], b[i], c[i]);                                                                           \
        return v;                                                                                                      \
    }                                                                                                                  \
    static inline vec emu_maskz_mul_##ps(mask k, vec v, vec b) {                                                       \
        EACH v[i] = k >> i & 1 ? v[i] * b[i] : 0;                                                                      \
        return v;                                                                                                      \
    }                                                                                                                  \
    static inline vec emu_mask_add_##ps(vec v, mask k, vec a, vec b) {                                                 \
        EACH if (k >> i & 1) v[i] = a[i] + b[i];                                                                       \
        return v;                                                                                                      \
    }                                                                                                                  \
    static inline vec emu_mask3_fmadd_##ps(vec a, vec b, vec v, mask k) {                                              \
        EACH if (k >> i & 1) v[i] = fused(a[i], b[i], v[i]);                                                           \
        return v;                                                                                                      \
    }                                                                                                                  \
    static inline vec emu_maskz_compress_##ps(mask k, vec v) {                                                         \
        vec held = {0};                                                                                                \
        int count = 0;                                                                                                 \
        EACH if (k >> i & 1) held[count++] = v[i];                                                                     \
        return held;                                                                                                   \
    }                                                                                                                  \
    static inline mask emu_cmp_##ps(vec v, vec b, int op) {                                                            \
        unsigned k = 0;                                                                                                \
        EACH k |= (unsigned)(op == _CMP_LT_OQ ? v[i] < b[i] : op == _CMP_LE_OQ ? v[i] <= b[i] : !(v[i] == b[i])) << i; \
        return (mask)k;                                                                                                \
    }                                                                                                                  \
    static inline mask emu_cmpgt_##epi(__m512i a, __m512i b_) {                                                        \
        ivec v = (ivec)a, b = (ivec)b_;                                                                                \
        unsigned k = 0;                                                                                                \
        EACH k |= (unsigned)(v[i] > b[i]) << i;                                                                        \
        return (mask)k;                                                                                                \
    }                                                                                                                  \
    static inline mask emu_cmpneq_##epi(__m512i a, __m512i b_) {                                                       \
        ivec v = (ivec)a, b = (ivec)b_;                                                                                \
        unsigned k = 0;                                                                                                \
        EACH k |= (unsigned)(v[i] != b[i]) << i;                                                                       \
        return (mask)k;                                                                                                \
    }                                                                                                                  \
    static inline __m512i emu_mask_blend_##epi(mask k, __m512i a, __m512i b_) {                                        \
        ivec v = (ivec)a, b = (ivec)b_;                                                                                \
        EACH if (k >> i & 1) v[i] = b[i];                                                                              \
        return (__m512i)v;                                                                                             \
    }                                                                                                                  \
    static inline __m512i emu_maskz_mov_##epi(mask k, __m512i a) {                                                     \
        const __m512i zero = {0};                                                                                      \
        return emu_mask_blend_##epi(k, zero, a);                                                                       \
    }                                                                                                                  \
    static inline __m512i emu_maskz_compress_##epi(mask k, __m512i a) {                                                \
        ivec v = {0}, from = (ivec)a;                                                                                  \
        int n = 0;                                                                                                     \
        EACH if (k >> i & 1) v[n++] = from[i];                                                                         \
        return (__m512i)v;                                                                                             \
    }                                                                                                                  \
    static inline __m512i emu_mask_add_##epi(__m512i n, mask k, __m512i a, __m512i b) {                                \
        return emu_mask_blend_##epi(k, n, (__m512i)((ivec)a + (ivec)b));                                               \
    }                                                                                                                  \
    static inline __m512i emu_permutexvar_##epi(__m512i n_, __m512i a) {                                               \
        ivec v = (ivec)n_, from = (ivec)a;                                                                             \
        EACH v[i] = from[v[i] & (int_t)(sizeof v / sizeof v[0] - 1)];                                                  \
        return (__m512i)v;                                                                                             \
    }
typedef int i32x16 __attribute__((vector_size(64)));
typedef long long i64x8 __attribute__((vector_size(64)));
OF_TYPE(float, __m512, i32x16, int, __mmask16, ps, epi32, sqrtf, __builtin_fmaf)
OF_TYPE(double, __m512d, i64x8, long long, __mmask8, pd, epi64, sqrt, __builtin_fma)
static inline __m512d emu_cvtps_pd(__m256 a) {
    __m512d v = {0};
    EACH v[i] = a[i];
    return v;
}
static inline __m256 emu_cvtpd_ps(__m512d a) {
    __m256 v = {0};
    EACH v[i] = (float)a[i];
    return v;
}
static inline __m512 emu_insert(__m512 a, __m256 b, int n) {
    memcpy((char *)&a + 32 * n, &b, sizeof b);
    return a;
}
static inline __m256 emu_half(__m512 a, int n) {
    __m256 v = {0};
    EACH v[i] = a[8 * n + i];
    return v;
}
static inline __m512i emu_loadu_si512(const void *p) {
    __m512i v;
    memcpy(&v, p, sizeof v);
    return v;
}
#define _mm512_mask_loadu_ps     emu_mask_loadu_ps
#define _mm512_mask_loadu_pd     emu_mask_loadu_pd
#define _mm512_mask_storeu_ps    emu_mask_storeu_ps
#define _mm512_mask_storeu_pd    emu_mask_storeu_pd
#define _mm512_min_ps            emu_min_ps
#define _mm512_min_pd            emu_min_pd
#define _mm512_max_ps            emu_max_ps
#define _mm512_max_pd            emu_max_pd
#define _mm512_sqrt_ps           emu_sqrt_ps
#define _mm512_sqrt_pd           emu_sqrt_pd
#define _mm512_fmadd_ps          emu_fmadd_ps
#define _mm512_fmadd_pd          emu_fmadd_pd
#define _mm512_mask_add_ps       emu_mask_add_ps
#define _mm512_mask_add_pd       emu_mask_add_pd
#define _mm512_mask3_fmadd_ps    emu_mask3_fmadd_ps
#define _mm512_mask3_fmadd_pd    emu_mask3_fmadd_pd
#define _mm512_maskz_compress_ps emu_maskz_compress_ps
#define _mm512_maskz_compress_pd emu_maskz_compress_pd
#define _mm512_maskz_mul_ps      emu_maskz_mul_ps
#define _mm512_maskz_mul_pd      emu_maskz_mul_pd
#undef _mm512_cmp_ps_mask
#undef _mm512_cmp_pd_mask
#define _mm512_cmp_ps_mask emu_cmp_ps
#define _mm512_cmp_pd_mask emu_cmp_pd
#undef _mm512_cmpneq_epi32_mask
#undef _mm512_cmpneq_epi64_mask
#define _mm512_cmpneq_epi32_mask    emu_cmpneq_epi32
#define _mm512_cmpneq_epi64_mask    emu_cmpneq_epi64
#define _mm512_cmpgt_epi32_mask     emu_cmpgt_epi32
#define _mm512_cmpgt_epi64_mask     emu_cmpgt_epi64
#define _mm512_mask_blend_epi32     emu_mask_blend_epi32
#define _mm512_mask_blend_epi64     emu_mask_blend_epi64
#define _mm512_maskz_mov_epi32      emu_maskz_mov_epi32
#define _mm512_maskz_mov_epi64      emu_maskz_mov_epi64
#define _mm512_maskz_compress_epi32 emu_maskz_compress_epi32
#define _mm512_maskz_compress_epi64 emu_maskz_compress_epi64
#define _mm512_mask_add_epi32       emu_mask_add_epi32
#define _mm512_mask_add_epi64       emu_mask_add_epi64
#define _mm512_permutexvar_epi32    emu_permutexvar_epi32
#define _mm512_permutexvar_epi64    emu_permutexvar_epi64
#undef _mm512_extractf32x8_ps
#define _mm512_extractf32x8_ps emu_half
#undef _mm512_insertf32x8
#define _mm512_insertf32x8        emu_insert
#define _mm512_castps256_ps512(a) emu_insert((__m512){0}, a, 0)
#define _mm512_cvtpd_ps           emu_cvtpd_ps
#define _mm512_castps512_ps256(a) emu_half(a, 0)
#define _mm512_cvtps_pd           emu_cvtps_pd
#define _mm512_loadu_si512        emu_loadu_si512
#define _mm512_storeu_si512(p, v) memcpy(p, &(__m512i[1]){v}, 64)
