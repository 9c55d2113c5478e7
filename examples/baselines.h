/*
 * baselines.h: functions that the papers compare with and that multimax.h does not have, forward and backward. ReLU,
 * dot product, sigmoid and cosformer replace softmax. AttnScale and patch diversification keep tokens from becoming
 * alike.
 *
 * Rows are those of attention: row r of a head is the query r % cols. The functions read only scale, ends, rows and
 * cols of a shape. Entries past the end of a row get 0.
 */
#ifndef EXAMPLES_BASELINES_H
#define EXAMPLES_BASELINES_H

static inline size_t row_end(const mmax_shape *s, size_t r) { return s->ends != NULL ? s->ends[r] : s->cols; }

static inline double scale_of(const mmax_shape *s) { return s->scale != 0 ? s->scale : 1; }

/* ReLU max(s, 0) (TanhMax, Table 3: not normalised), dot product s/n (Wang et al., CVPR 2018), sigmoid(s - log n). */
static inline void elementwise(real *y, const real *x, int function, const mmax_shape *s) {
    double scale = scale_of(s);
    for (size_t r = 0; r < s->rows; ++r) {
        size_t n = row_end(s, r);
        for (size_t j = 0; j < s->cols; ++j) {
            double score = j < n ? scale * (double)x[r * s->cols + j] : 0, value;
            switch (function) {
            case RELU: value = score > 0 ? score : 0; break;
            case DOT: value = score / (double)n; break;
            default: value = 1 / (1 + (double)n * exp(-score)); break;
            }
            y[r * s->cols + j] = j < n ? (real)value : 0;
        }
    }
}

static inline void elementwise_backward(real *gx, const real *gy, const real *y, int function, const mmax_shape *s) {
    double scale = scale_of(s);
    for (size_t r = 0; r < s->rows; ++r) {
        size_t n = row_end(s, r);
        for (size_t j = 0; j < s->cols; ++j) {
            double value = (double)y[r * s->cols + j];
            double slope = function == RELU ? value > 0 : function == DOT ? 1 / (double)n : value * (1 - value);
            gx[r * s->cols + j] = j < n ? (real)(scale * slope * (double)gy[r * s->cols + j]) : 0;
        }
    }
}

/* near[d] = cos(pi/2 d/n): the factor of a key that is d tokens away (Qin et al., ICLR 2022). */
static inline double *nearness(size_t n) {
    double *near = allocate(n, sizeof *near);
    for (size_t d = 0; d < n; ++d) { near[d] = cos(acos(-1) / 2 * (double)d / (double)n); }
    return near;
}

/* The sum of the row's scores times their nearness; at least 1e-6. */
static inline double cosformer_sum(const real *x, size_t query, size_t n, const double *near) {
    double sum = 0;
    for (size_t j = 0; j < n; ++j) { sum += (double)x[j] * near[query > j ? query - j : j - query]; }
    return sum > 1e-6 ? sum : 1e-6;
}

/* Scores are at least 0, since queries and keys have gone through a ReLU. The scale cancels. */
static inline void cosformer(real *y, const real *x, const mmax_shape *s) {
    double *near = nearness(s->cols);
    for (size_t r = 0; r < s->rows; ++r) {
        const real *row = x + r * s->cols;
        size_t n = row_end(s, r), query = r % s->cols;
        double sum = cosformer_sum(row, query, n, near);
        for (size_t j = 0; j < s->cols; ++j) {
            double value = j < n ? (double)row[j] * near[query > j ? query - j : j - query] / sum : 0;
            y[r * s->cols + j] = (real)value;
        }
    }
    free(near);
}

static inline void cosformer_backward(real *gx, const real *gy, const real *y, const real *x, const mmax_shape *s) {
    double *near = nearness(s->cols);
    for (size_t r = 0; r < s->rows; ++r) {
        const real *g = gy + r * s->cols, *weight = y + r * s->cols;
        size_t n = row_end(s, r), query = r % s->cols;
        double sum = cosformer_sum(x + r * s->cols, query, n, near), mean = 0;
        for (size_t j = 0; j < n && sum > 1e-6; ++j) { mean += (double)weight[j] * (double)g[j]; }
        for (size_t j = 0; j < s->cols; ++j) {
            double by = near[query > j ? query - j : j - query] / sum;
            gx[r * s->cols + j] = j < n ? (real)(by * ((double)g[j] - mean)) : 0;
        }
    }
    free(near);
}

/* y = p + lambda (p - 1/n), with one lambda per head (Wang et al., ICLR 2022) */
static inline void attn_scale(real *y, const real *p, const real *lambda, size_t heads, const mmax_shape *s) {
    for (size_t r = 0; r < s->rows; ++r) {
        size_t n = row_end(s, r);
        real by = lambda[r / s->cols % heads];
        for (size_t j = 0; j < n; ++j) {
            real weight = p[r * s->cols + j];
            y[r * s->cols + j] = weight + by * (weight - 1 / (real)n);
        }
    }
}

/* Turns the gradient g of y into the gradient of p, in place. Adds to the gradients of lambda. */
static inline void attn_scale_backward(real *g, real *g_lambda, const real *p, const real *lambda, size_t heads,
                                       const mmax_shape *s) {
    for (size_t r = 0; r < s->rows; ++r) {
        size_t n = row_end(s, r), head = r / s->cols % heads;
        double sum = 0;
        for (size_t j = 0; j < n; ++j) {
            real *at = &g[r * s->cols + j];
            sum += (double)*at * ((double)p[r * s->cols + j] - 1 / (double)n);
            *at *= 1 + lambda[head];
        }
        g_lambda[head] += (real)sum;
    }
}

static inline double dot_product(const real *a, const real *b, size_t width) {
    double sum = 0;
    for (size_t j = 0; j < width; ++j) { sum += (double)a[j] * (double)b[j]; }
    return sum;
}

static inline double cosine(const real *a, const real *b, size_t width) {
    double ab = dot_product(a, b, width), aa = dot_product(a, a, width), bb = dot_product(b, b, width);
    return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : 0;
}

/* Patch similarity (Gong et al. 2021): the mean |cosine| of pairs of tokens. It is 1 if all tokens are parallel. */
static inline double patch_similarity(const real *x, size_t tokens, size_t width) {
    double sum = 0;
    for (size_t i = 0; i < tokens; ++i) {
        for (size_t k = 0; k < i; ++k) { sum += fabs(cosine(x + i * width, x + k * width, width)); }
    }
    return sum / ((double)tokens * (double)(tokens - 1) / 2);
}

/* Adds `share` times its gradient to gx. As a loss (L_cos in the paper) it keeps patches diverse. */
static inline void patch_similarity_backward(real *gx, const real *x, double share, size_t tokens, size_t width) {
    share /= (double)tokens * (double)(tokens - 1) / 2;
    for (size_t i = 0; i < tokens; ++i) {
        for (size_t k = 0; k < tokens; ++k) {
            const real *a = x + i * width, *b = x + k * width;
            double aa = dot_product(a, a, width), bb = dot_product(b, b, width), c = cosine(a, b, width);
            double by = i != k && aa > 0 && bb > 0 ? (c > 0 ? share : -share) : 0;
            for (size_t j = 0; j < width && by != 0; ++j) {
                gx[i * width + j] += (real)(by * ((double)b[j] / sqrt(aa * bb) - c * (double)a[j] / aa));
            }
        }
    }
}

#endif
