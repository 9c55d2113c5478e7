/* accuracy.c: compares the results of a kernel with the oracle of the tests, which computes in long double. */
#include "kernels.h"

#include <stdlib.h>
#include <string.h>

#include "oracle.h"

enum { SAMPLE = 8192 }; /* number of compared entries, in whole rows; of longer rows one is compared */

typedef struct row {
    size_t n;
    double eps, least; /* epsilon and smallest normal number of the type */
    score *s;
    wide *y, *gy, *gx, *unit, *scratch;
} row;

static double entry(const kernel *k, const void *array, size_t i) {
    return k->f64 ? ((const double *)array)[i] : (double)((const float *)array)[i];
}

static int starts_with(const char *s, const char *prefix) { return strncmp(s, prefix, strlen(prefix)) == 0; }

static int has_threshold(const oracle *o) { return o->f == SPARSEMAX || o->f == ENTMAX15; }

static wide largest(const wide *v, size_t n) {
    wide top = 0;
    for (size_t i = 0; i < n; ++i) { top = fmaxl(top, fabsl(v[i])); }
    return top;
}

/* Results below the smallest normal number may be 0. A difference may bring a result near 0: then the ULP is that of
 * the row's largest entry (threshold functions), of 1 (logarithms), or of sigma's terms. */
static wide forward_error(const oracle *o, const row *r, const kernel *k, const void *y, size_t start) {
    wide worst = 0, top = has_threshold(o) ? largest(r->y, r->n) : 0;
    for (size_t i = 0; i < r->n; ++i) {
        wide size = has_threshold(o) ? top : o->logarithm ? fmaxl(1, fabsl(r->y[i])) : r->y[i], error;
        if (o->f == SEGLU) { (void)oracle_sigma(o->p, r->s[i].hi, &size); }
        error = fabsl(entry(k, y, start + i) - r->y[i]) / ulp(size, r->eps, r->least);
        if (fabsl(r->y[i]) >= r->least && !(error <= worst)) { worst = error; }
    }
    return worst;
}

/* A rounding of a gradient is relative to the magnitudes of the terms whose sum it is. */
static wide backward_error(const row *r, const kernel *k, const void *gx, size_t start) {
    wide worst = 0;
    for (size_t i = 0; i < r->n; ++i) {
        wide tiny = r->least * (1 + fabsl(r->gy[i]));
        wide error = fabsl(entry(k, gx, start + i) - r->gx[i]) / (r->eps * r->unit[i] + tiny);
        worst = error <= worst ? worst : error;
    }
    return worst;
}

static wide sum_error(const row *r, const kernel *k, const void *y, size_t start) {
    for (size_t i = 0; i < r->n; ++i) { r->scratch[i] = entry(k, y, start + i); }
    return fabsl(oracle_sum(r->scratch, r->n) - 1);
}

static wide error_of_row(oracle *o, row *r, const kernel *k, const work *w, size_t index) {
    size_t start = index * w->cols;
    wide gp[8] = {0}, gp_unit[8] = {0}, size = 0;
    for (size_t i = 0; i < r->n; ++i) {
        r->s[i] = oracle_score(o, entry(k, w->x, start + i), 1);
        size = fmaxl(size, fabsl(r->s[i].hi));
        r->y[i] = entry(k, w->y, start + i);
        r->gy[i] = entry(k, w->gy, start + i);
    }
    if (k->what == BACKWARD) {
        oracle_backward(o, r->gx, r->unit, gp, gp_unit, r->gy, r->y, r->s, r->n, 1, r->scratch);
        return backward_error(r, k, w->gx, start);
    }
    if (k->what == LOSS) {
        size_t target = (size_t)w->index[index];
        wide top;
        (void)oracle_loss(o, r->gx, r->s, r->n, target, 0);
        top = largest(r->gx, r->n);
        for (size_t i = 0; i < r->n; ++i) {
            r->unit[i] = (has_threshold(o) ? top : r->gx[i]) + (i == target);
            r->gx[i] -= i == target;
        }
        oracle_chain(o, r->gx, r->unit, gp, gp_unit, r->s, r->n, 1);
        return backward_error(r, k, w->gx, start);
    }
    if (o->f == EVSOFTMAX) { /* an entry within rounding of the mean may count as above or below it */
        memcpy(r->scratch, r->y, r->n * sizeof(wide));
        o->observed = r->scratch;
        o->near = 8 * r->eps * size;
    }
    oracle_forward(o, r->y, r->s, r->n);
    return forward_error(o, r, k, w->y, start);
}

accuracy accuracy_of(const kernel *k, const work *w) {
    accuracy a = {0, -1, 0};
    oracle o = {oracle_formula(k->function), starts_with(k->function, "log_"), NULL, 0, 0, NULL, 0};
    int sums_to_one = k->what == FORWARD && !o.logarithm && o.f != TANHMAX && o.f != SEGLU;
    size_t n = w->cols, rows = n < SAMPLE ? SAMPLE / n : 1;
    row r = {n, k->f64 ? DBL_EPSILON : FLT_EPSILON, k->f64 ? DBL_MIN : FLT_MIN, NULL, NULL, NULL, NULL, NULL, NULL};
    if (k->what == METRIC || k->what == VALUE || starts_with(k->function, "limit") ||
        starts_with(k->function, "route") || strstr(k->function, "_axis") || starts_with(k->function, "truncate") ||
        starts_with(k->function, "sample") || starts_with(k->function, "attention")) {
        return a;
    }
    o.p = k->order ? params_of_order(k->order) : NULL;
    o.epsilon = k->what == LOSS ? TRAINING_EPSILON
                : o.f == TOPK   ? KEPT
                : o.f == ENTMAX ? atof(k->function + strlen("entmax_")) / 100
                                : 0;
    o.largest = k->f64 ? DBL_MAX : FLT_MAX;
    r.s = malloc(n * sizeof *r.s);
    r.y = malloc(5 * n * sizeof *r.y);
    must(r.s && r.y, "malloc");
    r.gy = r.y + n;
    r.gx = r.gy + n;
    r.unit = r.gx + n;
    r.scratch = r.unit + n;
    a.measured = 1;
    rows = rows < w->rows ? rows : w->rows;
    for (size_t i = 0; i < rows; ++i) {
        size_t index = rows > 1 ? i * (w->rows - 1) / (rows - 1) : 0;
        double error;
        r.n = strstr(k->function, "_lengths") ? w->lengths[index] : n;
        error = (double)error_of_row(&o, &r, k, w, index);
        a.ulp = error <= a.ulp ? a.ulp : error;
        if (sums_to_one) {
            error = (double)sum_error(&r, k, w->y, index * n);
            a.sum = error <= a.sum ? a.sum : error;
        }
    }
    free(r.s);
    free(r.y);
    return a;
}
