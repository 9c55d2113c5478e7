/* peer_sleef.c: softmax in three passes with the expf of SLEEF, as wide as the compiler's flags allow. */
#include "kernels.h"

#if defined(__AVX512F__) || defined(__AVX2__)
#    include <immintrin.h>
#elif defined(__SSE2__)
#    include <emmintrin.h>
#endif
#include <sleef.h>

#if defined(__AVX512F__)
enum { LANES = 16 };
static void exp_of(float *v) { _mm512_storeu_ps(v, Sleef_expf16_u10(_mm512_loadu_ps(v))); }
#elif defined(__AVX2__)
enum { LANES = 8 };
static void exp_of(float *v) { _mm256_storeu_ps(v, Sleef_expf8_u10(_mm256_loadu_ps(v))); }
#elif defined(__SSE2__)
enum { LANES = 4 };
static void exp_of(float *v) { _mm_storeu_ps(v, Sleef_expf4_u10(_mm_loadu_ps(v))); }
#else
enum { LANES = 1 };
static void exp_of(float *v) { *v = Sleef_expf_u10(*v); }
#endif

/* y[0..n) = exp(x - max), added to the lanes of sum. */
static void exp_part(float *y, const float *x, size_t n, float max, float *sum) {
    float v[LANES];
    for (size_t j = 0; j < LANES; ++j) { v[j] = j < n ? x[j] - max : -200; }
    exp_of(v);
    for (size_t j = 0; j < LANES; ++j) { sum[j] += v[j]; }
    for (size_t j = 0; j < n && j < LANES; ++j) { y[j] = v[j]; }
}

static void softmax(float *y, const float *x, size_t n) {
    float max = x[0], lane[LANES] = {0}, sum = 0;
    size_t i;
    for (i = 1; i < n; ++i) { max = x[i] > max ? x[i] : max; }
    for (i = 0; i + LANES <= n; i += LANES) { exp_part(y + i, x + i, LANES, max, lane); }
    if (i < n) { exp_part(y + i, x + i, n - i, max, lane); }
    for (i = 0; i < LANES; ++i) { sum += lane[i]; }
    sum = 1 / sum;
    for (i = 0; i < n; ++i) { y[i] *= sum; }
}

static void run_softmax(const work *w, void *state) {
    (void)state;
    for (size_t r = 0; r < w->rows; ++r) {
        softmax((float *)w->y + r * w->cols, (const float *)w->x + r * w->cols, w->cols);
    }
}

const kernel peer_sleef[] = {
    {"softmax", "sleef", FORWARD, 0, 0, 2, run_softmax, NULL, NULL, NULL},
    {NULL, NULL, FORWARD, 0, 0, 0, NULL, NULL, NULL, NULL},
};
