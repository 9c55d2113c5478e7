/*
 * tiers.h: the exponential inside the kernels of one instruction set, on arrays. The one place outside the header that
 * knows internal names: mmax_prepare, mmax_origin_of and mmax_exp_of, of TIER and type.
 */
#ifndef TIERS_H
#define TIERS_H

#include <stddef.h>

/* y[i] = exp(scale * x[i]) times some power of two, relative to the origin of a row whose largest score is `max`. */
typedef void tier_f32(float *y, const float *x, size_t n, float max, double scale);
typedef void tier_f64(double *y, const double *x, size_t n, double max, double scale);

tier_f32 exp_scalar_f32, exp_sse2_f32, exp_avx2_f32, exp_avx512_f32, exp_neon_f32, exp_wasm128_f32;
tier_f64 exp_scalar_f64, exp_sse2_f64, exp_avx2_f64, exp_avx512_f64, exp_neon_f64, exp_wasm128_f64;

#endif /* TIERS_H */
