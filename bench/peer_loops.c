/*
 * peer_loops.c: loops written by hand instead of a library, one for each function. The file is compiled once for each set
 * of flags. LOOPS is the suffix of the table's name, LOOPS_BY is the name in the report. With -O3 -march=native
 * -ffast-math gcc vectorises nearly all loops, also expf.
 */
#include "kernels.h"

#include <math.h>

#define TABLE_(suffix) peer_loops_##suffix
#define TABLE(suffix)  TABLE_(suffix)

/* ==== forward ==== */

/* Turns scores into weights; returns log sum exp of the scores. */
static float normalise(float *y, size_t n) {
    float max = y[0], sum = 0;
    for (size_t i = 1; i < n; ++i) { max = y[i] > max ? y[i] : max; }
    for (size_t i = 0; i < n; ++i) {
        y[i] = expf(y[i] - max);
        sum += y[i];
    }
    for (size_t i = 0; i < n; ++i) { y[i] *= 1 / sum; }
    return max + logf(sum);
}

static float softmax(float *restrict y, const float *restrict x, size_t n) {
    float max = x[0], sum = 0;
    for (size_t i = 1; i < n; ++i) { max = x[i] > max ? x[i] : max; }
    for (size_t i = 0; i < n; ++i) {
        y[i] = expf(x[i] - max);
        sum += y[i];
    }
    for (size_t i = 0; i < n; ++i) { y[i] *= 1 / sum; }
    return max + logf(sum);
}

static void log_softmax(float *restrict y, const float *restrict x, size_t n) {
    float max = x[0], sum = 0;
    for (size_t i = 1; i < n; ++i) { max = x[i] > max ? x[i] : max; }
    for (size_t i = 0; i < n; ++i) { sum += expf(x[i] - max); }
    max += logf(sum);
    for (size_t i = 0; i < n; ++i) { y[i] = x[i] - max; }
}

/* The terms of sigma: two of order 1, two of order 2. */
typedef struct terms {
    float low[2], high[2], b[2], d[2]; /* 1 - t_b, t_d - 1 */
} terms;

static terms terms_of(int order) {
    const mmax_multimax_params *p = params_of_order(order);
    terms t;
    for (int n = 0; n < 2; ++n) {
        t.low[n] = (float)(1 - p->t_b[n]);
        t.high[n] = (float)(p->t_d[n] - 1);
        t.b[n] = (float)p->b[n];
        t.d[n] = (float)p->d[n];
    }
    return t;
}

static float above_zero(float v) { return v > 0 ? v : 0; }

static float sigma(float x, const terms *t, int order) {
    float s = x + t->low[0] * above_zero(t->b[0] - x) + t->high[0] * above_zero(x - t->d[0]);
    if (order == 2) {
        const float below = above_zero(t->b[1] - x), above = above_zero(x - t->d[1]);
        s += t->low[1] * below * below + t->high[1] * above * above;
    }
    return s;
}

static float multimax(float *restrict y, const float *restrict x, const terms *t, int order, size_t n) {
    for (size_t i = 0; i < n; ++i) { y[i] = sigma(x[i], t, order); }
    return normalise(y, n);
}

static float evsoftmax(float *restrict y, const float *restrict x, float epsilon, size_t n) {
    float max = x[0], mean = 0, sum = 0;
    for (size_t i = 0; i < n; ++i) {
        max = x[i] > max ? x[i] : max;
        mean += x[i];
    }
    mean /= (float)n;
    for (size_t i = 0; i < n; ++i) {
        y[i] = expf(x[i] - max) * (x[i] >= mean ? 1 : epsilon);
        sum += y[i];
    }
    for (size_t i = 0; i < n; ++i) { y[i] *= 1 / sum; }
    return max + logf(sum);
}

/* Returns the sum of both exponentials, and the size to which they are relative. */
static float both_exponentials(const float *x, float *size, size_t n) {
    float sum = 0;
    *size = 0;
    for (size_t i = 0; i < n; ++i) { *size = fabsf(x[i]) > *size ? fabsf(x[i]) : *size; }
    for (size_t i = 0; i < n; ++i) { sum += expf(x[i] - *size) + expf(-x[i] - *size); }
    return sum;
}

static void tanhmax(float *restrict y, const float *restrict x, size_t n) {
    float size, sum = both_exponentials(x, &size, n);
    for (size_t i = 0; i < n; ++i) { y[i] = (expf(x[i] - size) - expf(-x[i] - size)) * (1 / sum); }
}

/* The threshold rises until no entry falls below it. */
static void sparsemax(float *restrict y, const float *restrict x, size_t n) {
    float tau = -HUGE_VALF, sum = 0;
    size_t count = n, before = n + 1;
    for (size_t i = 0; i < n; ++i) { sum += x[i]; }
    while (count < before) {
        before = count;
        tau = (sum - 1) / (float)count;
        sum = 0;
        count = 0;
        for (size_t i = 0; i < n; ++i) {
            sum += x[i] > tau ? x[i] : 0;
            count += x[i] > tau;
        }
    }
    for (size_t i = 0; i < n; ++i) { y[i] = above_zero(x[i] - tau); }
}

/* Newton's method, from below. */
static void entmax15(float *restrict y, const float *restrict x, size_t n) {
    float max = x[0], tau, step = 1;
    for (size_t i = 1; i < n; ++i) { max = x[i] > max ? x[i] : max; }
    tau = max / 2 - 1;
    for (int i = 0; i < 30 && step > 1e-7F; ++i) {
        float sum = 0, squares = 0;
        for (size_t j = 0; j < n; ++j) {
            const float over = above_zero(x[j] / 2 - tau);
            sum += over;
            squares += over * over;
        }
        step = (squares - 1) / (2 * sum);
        tau += step;
    }
    for (size_t i = 0; i < n; ++i) {
        const float over = above_zero(x[i] / 2 - tau);
        y[i] = over * over;
    }
}

/* The k largest entries by insertion, and the softmax of these. */
static void route(float *restrict weights, uint32_t *restrict index, const float *restrict x, size_t k, size_t n) {
    size_t kept = 0;
    for (size_t i = 0; i < n; ++i) {
        size_t at = kept;
        if (kept == k && !(x[i] > weights[k - 1])) { continue; }
        for (at = kept < k ? kept : k - 1; at > 0 && x[i] > weights[at - 1]; --at) {
            weights[at] = weights[at - 1];
            index[at] = index[at - 1];
        }
        weights[at] = x[i];
        index[at] = (uint32_t)i;
        kept += kept < k;
    }
    normalise(weights, k);
}

/* ==== gradients ==== */

static void softmax_backward(float *restrict gx, const float *restrict gy, const float *restrict y, size_t n) {
    float dot = 0;
    for (size_t i = 0; i < n; ++i) { dot += gy[i] * y[i]; }
    for (size_t i = 0; i < n; ++i) { gx[i] = y[i] * (gy[i] - dot); }
}

static void log_softmax_backward(float *restrict gx, const float *restrict gy, const float *restrict y, size_t n) {
    float sum = 0;
    for (size_t i = 0; i < n; ++i) { sum += gy[i]; }
    for (size_t i = 0; i < n; ++i) { gx[i] = gy[i] - expf(y[i]) * sum; }
}

static void sparsemax_backward(float *restrict gx, const float *restrict gy, const float *restrict y, size_t n) {
    float sum = 0, count = 0;
    for (size_t i = 0; i < n; ++i) {
        sum += y[i] > 0 ? gy[i] : 0;
        count += y[i] > 0 ? 1.0F : 0.0F;
    }
    for (size_t i = 0; i < n; ++i) { gx[i] = y[i] > 0 ? gy[i] - sum / count : 0; }
}

static void entmax15_backward(float *restrict gx, const float *restrict gy, const float *restrict y, size_t n) {
    float sum = 0, roots = 0;
    for (size_t i = 0; i < n; ++i) {
        const float root = sqrtf(y[i]);
        sum += root * gy[i];
        roots += root;
    }
    for (size_t i = 0; i < n; ++i) { gx[i] = sqrtf(y[i]) * (gy[i] - sum / roots); }
}

static void tanhmax_backward(float *restrict gx, const float *restrict gy, const float *restrict y,
                             const float *restrict x, size_t n) {
    float dot = 0, size, sum = both_exponentials(x, &size, n);
    for (size_t i = 0; i < n; ++i) { dot += gy[i] * y[i]; }
    for (size_t i = 0; i < n; ++i) { gx[i] = gy[i] * (expf(x[i] - size) + expf(-x[i] - size)) / sum - y[i] * dot; }
}

/* From g, the gradient of sigma, in place; adds to that of the parameters. */
static void through_sigma(float *restrict g, float *restrict gp, const float *restrict x, const terms *t, int order,
                          size_t n) {
    float low[2] = {0, 0}, high[2] = {0, 0}, b[2] = {0, 0}, d[2] = {0, 0};
    for (size_t i = 0; i < n; ++i) {
        const float below = above_zero(t->b[0] - x[i]), above = above_zero(x[i] - t->d[0]);
        const float is_below = below > 0 ? g[i] : 0, is_above = above > 0 ? g[i] : 0;
        float slope = g[i] - t->low[0] * is_below + t->high[0] * is_above;
        low[0] -= g[i] * below;
        high[0] += g[i] * above;
        b[0] += t->low[0] * is_below;
        d[0] -= t->high[0] * is_above;
        if (order == 2) {
            const float under = g[i] * above_zero(t->b[1] - x[i]), over = g[i] * above_zero(x[i] - t->d[1]);
            slope += 2 * (t->high[1] * over - t->low[1] * under);
            low[1] -= under * above_zero(t->b[1] - x[i]);
            high[1] += over * above_zero(x[i] - t->d[1]);
            b[1] += 2 * t->low[1] * under;
            d[1] -= 2 * t->high[1] * over;
        }
        g[i] = slope;
    }
    for (int o = 0; o < order; ++o) {
        gp[o] += low[o];
        gp[2 + o] += high[o];
        gp[4 + o] += b[o];
        gp[6 + o] += d[o];
    }
}

/* ==== losses with their gradient: gx = y - one-hot ==== */

static double cross_entropy(float *gx, const float *x, float lse, size_t target) {
    gx[target] -= 1;
    return (double)(lse - x[target]);
}

/* <y, x> - Omega(y) - x[target], with Omega(y) = (sum y^2 - 1) / 2, or 4/3 (sum y^1.5 - 1) */
static double fenchel_young(float *gx, const float *x, int roots, size_t target, size_t n) {
    float dot = 0, sum = 0;
    for (size_t i = 0; i < n; ++i) {
        dot += gx[i] * x[i];
        sum += gx[i] * (roots ? sqrtf(gx[i]) : gx[i]);
    }
    gx[target] -= 1;
    return (double)(dot - (sum - 1) * (roots ? 4.0F / 3 : 0.5F) - x[target]);
}

/* ==== all rows ==== */

/* A kernel that runs `statement` for each row. */
#define ROWS(name, statement)                                                                 \
    static void run_##name(const work *w, void *state) {                                      \
        const terms t1 = terms_of(1), t2 = terms_of(2);                                       \
        const size_t n = w->cols;                                                             \
        float gp[8] = {0};                                                                    \
        for (size_t r = 0; r < w->rows; ++r) {                                                \
            const float *x = (const float *)w->x + r * n, *gy = (const float *)w->gy + r * n; \
            float *y = (float *)w->y + r * n, *gx = (float *)w->gx + r * n;                   \
            const size_t target = (size_t)w->index[r];                                        \
            statement;                                                                        \
            (void)x, (void)gy, (void)y, (void)gx, (void)target;                               \
        }                                                                                     \
        (void)state, (void)t1, (void)t2;                                                      \
        nobody_reads = gp[0];                                                                 \
    }
static volatile float nobody_reads; /* the sums of the parameters' gradients */

ROWS(softmax, softmax(y, x, n))
ROWS(multimax1, multimax(y, x, &t1, 1, n))
ROWS(multimax2, multimax(y, x, &t2, 2, n))
ROWS(sparsemax, sparsemax(y, x, n))
ROWS(entmax15, entmax15(y, x, n))
ROWS(evsoftmax, evsoftmax(y, x, 0, n))
ROWS(tanhmax, tanhmax(y, x, n))
ROWS(log_softmax, log_softmax(y, x, n))
ROWS(route, route((float *)w->y + r * KEPT, (uint32_t *)w->gx + r * KEPT, x, KEPT, n))

ROWS(softmax_backward, softmax_backward(gx, gy, y, n))
ROWS(multimax1_backward, (softmax_backward(gx, gy, y, n), through_sigma(gx, gp, x, &t1, 1, n)))
ROWS(multimax2_backward, (softmax_backward(gx, gy, y, n), through_sigma(gx, gp, x, &t2, 2, n)))
ROWS(sparsemax_backward, sparsemax_backward(gx, gy, y, n))
ROWS(entmax15_backward, entmax15_backward(gx, gy, y, n))
ROWS(tanhmax_backward, tanhmax_backward(gx, gy, y, x, n))
ROWS(log_softmax_backward, log_softmax_backward(gx, gy, y, n))

ROWS(
    softmax_loss, w->per_row[r] = cross_entropy(gx, x, softmax(gx, x, n), target);
    for (size_t i = 0; w->size != 1 && i < n; ++i) { gx[i] *= (float)w->size; })
ROWS(multimax2_loss, const float at = sigma(x[target], &t2, 2);
     w->per_row[r] = (double)(multimax(gx, x, &t2, 2, n) - at); gx[target] -= 1; through_sigma(gx, gp, x, &t2, 2, n))
ROWS(sparsemax_loss, sparsemax(gx, x, n); w->per_row[r] = fenchel_young(gx, x, 0, target, n))
ROWS(entmax15_loss, entmax15(gx, x, n); w->per_row[r] = fenchel_young(gx, x, 1, target, n))

/* Takes some columns at a time: their maxima and sums stay in the first cache. */
static void run_softmax_axis(const work *w, void *state) {
    enum { MOST = 256 };
    const size_t rows = w->rows;
    (void)state;
    for (size_t first = 0; first < rows; first += MOST) {
        const float *restrict x = (const float *)w->x + first;
        float *restrict y = (float *)w->y + first, max[MOST], sum[MOST];
        const size_t width = rows - first < MOST ? rows - first : MOST;
        for (size_t j = 0; j < width; ++j) {
            max[j] = x[j];
            sum[j] = 0;
        }
        for (size_t i = 1; i < w->cols; ++i) {
            for (size_t j = 0; j < width; ++j) { max[j] = x[i * rows + j] > max[j] ? x[i * rows + j] : max[j]; }
        }
        for (size_t i = 0; i < w->cols; ++i) {
            for (size_t j = 0; j < width; ++j) {
                y[i * rows + j] = expf(x[i * rows + j] - max[j]);
                sum[j] += y[i * rows + j];
            }
        }
        for (size_t j = 0; j < width; ++j) { sum[j] = 1 / sum[j]; }
        for (size_t i = 0; i < w->cols; ++i) {
            for (size_t j = 0; j < width; ++j) { y[i * rows + j] *= sum[j]; }
        }
    }
}

/* Kernels named _calls and _few are the same loops. */
#define LOOP(name, what, order, arrays, forward)                                               \
    {#name, LOOPS_BY, what, 0, order, arrays, run_##name, forward, NULL, NULL},                \
        {#name "_calls", LOOPS_BY, what, 0, order, arrays, run_##name, forward, NULL, NULL}, { \
#        name "_few", LOOPS_BY, what, 0, order, arrays, run_##name, forward, NULL, NULL        \
    }

const kernel TABLE(LOOPS)[] = {
    LOOP(softmax, FORWARD, 0, 2, NULL),
    LOOP(multimax1, FORWARD, 1, 2, NULL),
    LOOP(multimax2, FORWARD, 2, 2, NULL),
    LOOP(sparsemax, FORWARD, 0, 2, NULL),
    LOOP(entmax15, FORWARD, 0, 2, NULL),
    LOOP(evsoftmax, FORWARD, 0, 2, NULL),
    LOOP(tanhmax, FORWARD, 0, 2, NULL),
    LOOP(log_softmax, FORWARD, 0, 2, NULL),
    LOOP(route, FORWARD, 0, 1, NULL),
    LOOP(softmax_backward, BACKWARD, 0, 3, run_softmax),
    LOOP(multimax1_backward, BACKWARD, 1, 4, run_multimax1),
    LOOP(multimax2_backward, BACKWARD, 2, 4, run_multimax2),
    LOOP(sparsemax_backward, BACKWARD, 0, 3, run_sparsemax),
    LOOP(entmax15_backward, BACKWARD, 0, 3, run_entmax15),
    LOOP(tanhmax_backward, BACKWARD, 0, 4, run_tanhmax),
    LOOP(log_softmax_backward, BACKWARD, 0, 3, run_log_softmax),
    LOOP(softmax_loss, LOSS, 0, 2, NULL),
    LOOP(multimax2_loss, LOSS, 2, 2, NULL),
    LOOP(sparsemax_loss, LOSS, 0, 2, NULL),
    LOOP(entmax15_loss, LOSS, 0, 2, NULL),
    {"softmax_axis", LOOPS_BY, FORWARD, 0, 0, 2, run_softmax_axis, NULL, NULL, NULL},
    {NULL, NULL, FORWARD, 0, 0, 0, NULL, NULL, NULL, NULL},
};
