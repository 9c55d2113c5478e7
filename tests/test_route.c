/*
 * test_route.c: routers against long double: every gate, bias, groups and any k; what is chosen of equal values; special
 * rows; rows of a batch against the same rows alone; the gradient against finite differences; the errors.
 */
#include <stdlib.h>

#include "function_table.h"
#include "oracle.h"

#define BOUND 8 /* ULP; of softmaxes 5 */
#define MOST  6000

typedef struct route_type {
    const function *f; /* softmax: size, and access to entries */
    mmax_status (*route)(void *weights, uint32_t *index, const void *x, const mmax_router *r, mmax_shape s);
    mmax_status (*backward)(void *gx, const void *gw, const void *weights, const uint32_t *index, const void *x,
                            const mmax_router *r, mmax_shape s);
    mmax_status (*softmax)(void *y, const void *x, mmax_shape s);
} route_type;
#define ADAPT(T)                                                                                               \
    static mmax_status route_##T(void *w, uint32_t *i, const void *x, const mmax_router *r, mmax_shape s) {    \
        return mmax_route_##T(w, i, x, r, s);                                                                  \
    }                                                                                                          \
    static mmax_status backward_##T(void *gx, const void *gw, const void *w, const uint32_t *i, const void *x, \
                                    const mmax_router *r, mmax_shape s) {                                      \
        return mmax_route_backward_##T(gx, gw, w, i, x, r, s);                                                 \
    }                                                                                                          \
    static mmax_status softmax_##T(void *y, const void *x, mmax_shape s) { return mmax_softmax_##T(y, x, s); }
ADAPT(f32)
ADAPT(f64)
static route_type types[2] = {{NULL, route_f32, backward_f32, softmax_f32},
                              {NULL, route_f64, backward_f64, softmax_f64}};
#define FOR_EACH_TYPE(t) for (route_type *t = types; t < types + 2; ++t)
#define GATES            4

static double x_[MOST], w_[MOST], v_[MOST], bias_[MOST];
static uint32_t index_[MOST], other_[MOST];
static double largest_error[2];
static size_t compared, near;

#define HERE "f%u on %s, %u entries, k %u, gate %d, bias %d, groups %u %u %u: "
#define HERE_ARGS                                                                                            \
    (unsigned)(8 * t->f->size), mmax_isa_name(mmax_isa_active()), (unsigned)n, (unsigned)r->k, (int)r->gate, \
        r->bias != NULL, (unsigned)r->groups, (unsigned)r->group_k, (unsigned)r->group_best

/* ==== the oracle ==== */
static wide score_[MOST], gate_[MOST], value_[MOST];
static wide sigmoid(wide s) { return s < 0 ? expl(s) / (1 + expl(s)) : 1 / (1 + expl(-s)); }
/* Scores, the gate's weights and the values that decide, of a row of n entries at x; masks are -inf. */
static void values_of(const route_type *t, const void *x, size_t n, const mmax_router *r, double scale) {
    const int by_scores = r->gate == MMAX_GATE_CHOSEN || (r->gate >= MMAX_GATE_SIGMOID && !r->bias && r->groups <= 1);
    wide max = -INFINITY, sum = 0;
    for (size_t i = 0; i < n; ++i) {
        score_[i] = is_special(t->f, x, i, MINUS_INF) ? -INFINITY : (wide)scale * get(t->f, x, i);
        max = score_[i] > max ? score_[i] : max;
    }
    for (size_t i = 0; i < n; ++i) { sum += is_special(t->f, x, i, MINUS_INF) ? 0 : expl(score_[i] - max); }
    for (size_t i = 0; i < n; ++i) {
        const int masked = is_special(t->f, x, i, MINUS_INF);
        gate_[i] = masked ? 0 : r->gate == MMAX_GATE_SOFTMAX ? expl(score_[i] - max) / sum : sigmoid(score_[i]);
        value_[i] = masked ? -INFINITY : by_scores ? score_[i] : gate_[i];
        if (r->bias && !masked) {
            value_[i] = is_special(t->f, r->bias, i, MINUS_INF) ? -INFINITY : value_[i] + get(t->f, r->bias, i);
        }
    }
}
static int falling(const void *a, const void *b) {
    const wide d = *(const wide *)a - *(const wide *)b;
    return d > 0 ? -1 : d < 0;
}
/* Masks entries of groups that are not chosen. Returns 0 where groups are too near to each other to tell. */
static int mask_groups(size_t n, const mmax_router *r, wide tolerance) {
    static wide of_group[MOST], sorted[MOST], part[MOST];
    const size_t size = n / r->groups, best = r->group_best ? r->group_best : 1;
    for (size_t g = 0; g < r->groups; ++g) {
        memcpy(part, value_ + g * size, size * sizeof *part);
        qsort(part, size, sizeof *part, falling);
        of_group[g] = part[0];
        for (size_t j = 1; j < best && j < size; ++j) { of_group[g] += part[j] < -1e4000L ? 0 : part[j]; }
    }
    memcpy(sorted, of_group, r->groups * sizeof *sorted);
    qsort(sorted, r->groups, sizeof *sorted, falling);
    if (r->group_k < r->groups && sorted[r->group_k] > -1e4000L &&
        sorted[r->group_k - 1] - sorted[r->group_k] <= tolerance) {
        return 0;
    }
    for (size_t i = 0; i < n; ++i) {
        if (of_group[i / size] < sorted[r->group_k - 1]) { value_[i] = -INFINITY; }
    }
    return 1;
}
/* weights and index, of a normal row, against the oracle */
static void check_row(const route_type *t, const void *x, const void *weights, const uint32_t *index, size_t n,
                      const mmax_router *r, double scale) {
    static unsigned char is_chosen[MOST];
    const double eps = eps_of(t->f), factor = r->factor > 0 ? r->factor : 1;
    size_t active = 0, chosen = 0;
    wide magnitude = 0, least = INFINITY, sum = 0, max = -INFINITY, tolerance;
    values_of(t, x, n, r, scale);
    for (size_t i = 0; i < n; ++i) {
        const wide size = fabsl(value_[i]) + (r->bias ? fabs(get(t->f, r->bias, i)) : 0);
        if (value_[i] > -1e4000L) { magnitude = size > magnitude ? size : magnitude; }
    }
    tolerance = r->gate != MMAX_GATE_SOFTMAX && !r->bias && r->groups <= 1 ? 0 : 8 * eps * magnitude;
    ++compared;
    if (r->groups > 1 && !mask_groups(n, r, (double)(r->group_best + 2) * 8 * eps * magnitude)) {
        ++near;
        return;
    }
    memset(is_chosen, 0, n);
    for (size_t i = 0; i < n; ++i) { active += value_[i] > -1e4000L; }
    for (; chosen < r->k && index[chosen] != UINT32_MAX; ++chosen) {
        const size_t i = index[chosen];
        CHECK(i < n && !is_chosen[i] && value_[i] > -1e4000L, HERE "%u cannot be chosen", HERE_ARGS, (unsigned)i);
        if (i >= n) { return; }
        CHECK(value_[i] <= least + tolerance, HERE "the order of %u", HERE_ARGS, (unsigned)chosen);
        CHECK(tolerance > 0 || chosen == 0 || value_[i] < least || i > index[chosen - 1], HERE "of equal ones",
              HERE_ARGS);
        least = value_[i];
        is_chosen[i] = 1;
        max = score_[i] > max ? score_[i] : max;
        sum += gate_[i];
    }
    CHECK(chosen == (active < r->k ? active : r->k), HERE "%u are chosen", HERE_ARGS, (unsigned)chosen);
    for (size_t i = 0; i < n && chosen > 0; ++i) {
        CHECK(is_chosen[i] || value_[i] <= least + tolerance, HERE "%u is not chosen", HERE_ARGS, (unsigned)i);
    }
    if (r->gate == MMAX_GATE_CHOSEN || !(sum > 0)) { /* below long double: sigmoid(s) is exp(s) */
        sum = 0;
        for (size_t j = 0; j < chosen; ++j) { sum += expl(score_[index[j]] - max); }
    }
    for (size_t j = 0; j < r->k; ++j) {
        const double got = get(t->f, weights, j), smallest = smallest_normal(t->f);
        const int is_softmax = r->gate <= MMAX_GATE_SOFTMAX;
        const wide s = j < chosen ? score_[index[j]] : 0;
        wide want = j >= chosen ? 0
                    : r->gate == MMAX_GATE_CHOSEN || (r->gate == MMAX_GATE_SIGMOID_CHOSEN && max < -11000)
                        ? expl(s - max) / sum
                    : r->gate == MMAX_GATE_SIGMOID_CHOSEN ? gate_[index[j]] / sum
                                                          : gate_[index[j]];
        double error;
        want *= factor;
        if (j >= chosen) {
            CHECK(get_bits(t->f, weights, j) == 0 && index[j] == UINT32_MAX, HERE "place %u is not empty", HERE_ARGS,
                  (unsigned)j);
            continue;
        }
        if (want < smallest * factor * 1.01L || want < smallest * 1.01L) {
            CHECK(got >= 0 && got <= smallest * (factor + 1) * 1.02, HERE "a small weight is %g", HERE_ARGS, got);
            continue;
        }
        error = (double)(fabsl(got - want) / (want * (eps / 2))) / 2;
        if (error > largest_error[!is_softmax]) { largest_error[!is_softmax] = error; }
        CHECK(error <= (is_softmax ? 5 + (factor != 1) : BOUND), HERE "weight %u is %g, not %Lg", HERE_ARGS,
              (unsigned)j, got, want);
    }
}

/* ==== routers and rows ==== */
/* One of all that there are, by number: gate, bias, groups, factor. */
static mmax_router router_of(const route_type *t, size_t which, size_t n, size_t k, int *usable) {
    mmax_router r = mmax_router_top(k);
    static const size_t groups[] = {0, 2, 8, 5, 32};
    r.gate = (mmax_gate)(which % GATES);
    r.bias = which / 4 % 2 ? bias_ : NULL;
    r.groups = groups[which / 8 % 5];
    r.factor = which % 3 == 1 ? 2.5 : 0;
    *usable = r.groups <= 1 || n % r.groups == 0;
    if (r.groups > 1) {
        r.group_k = 1 + which % 3 * (r.groups - 1) / 2;
        r.group_best = which % 4 == 3 ? 20 : which % 4;
    }
    for (size_t i = 0; i < n; ++i) {
        set(t->f, bias_, i, random_normal() * (r.gate == MMAX_GATE_CHOSEN ? 1 : 0.25));
        if (random_below(16) == 0) { set_special(t->f, bias_, i, MINUS_INF); }
    }
    return r;
}
enum { ROUTERS = 40 };
static double bx[40 * 400], bw[40 * 400], gx_[40 * 400], gw_[40 * 400], added_[40 * 400];
static uint32_t bi[40 * 400], starts[40], ends[40];

/* A row of the batch in bx, which gave bw and bi, alone: in w_ and index_ */
static void check_alone(const route_type *t, size_t row, size_t n, const mmax_router *r, mmax_shape one) {
    CHECK(t->route(w_, index_, (const char *)bx + row * n * t->f->size, r, one) == MMAX_OK &&
              memcmp((const char *)bw + row * r->k * t->f->size, w_, r->k * t->f->size) == 0 &&
              memcmp(bi + row * r->k, index_, r->k * sizeof *index_) == 0,
          HERE "row %u alone is another", HERE_ARGS, (unsigned)row);
}

/* Rows side by side, each against the oracle. */
static void check_rows(const route_type *t, size_t rows, size_t n, size_t k, size_t which, law l, double scale) {
    int usable;
    const mmax_router router = router_of(t, which, n, k, &usable), *const r = &router;
    mmax_shape s = mmax_rows(rows, n);
    s.scale = scale;
    if (!usable) { return; }
    fill(t->f, bx, rows * n, l);
    CHECK(t->route(bw, bi, bx, r, s) == MMAX_OK, HERE "status", HERE_ARGS);
    for (size_t row = 0; row < rows; ++row) {
        const void *const x = (const char *)bx + row * n * t->f->size, *const w =
                                                                           (const char *)bw + row * k * t->f->size;
        check_row(t, x, w, bi + row * k, n, r, scale);
        s.rows = 1;
        check_alone(t, row, n, r, s);
        CHECK(t->route(NULL, other_, x, r, s) == MMAX_OK && t->route(v_, NULL, x, r, s) == MMAX_OK &&
                  memcmp(other_, index_, k * sizeof *index_) == 0 && memcmp(v_, w_, k * t->f->size) == 0,
              HERE "an output alone is another", HERE_ARGS);
    }
}

/* Rows side by side whose values just fit into the memory, or just do not: as each row alone. */
static void check_groups(const route_type *t, size_t rows, size_t n, size_t groups) {
    mmax_router router = mmax_router_top(4), *const r = &router;
    r->groups = groups;
    r->group_k = 1 + groups / 3;
    fill(t->f, bx, rows * n, NORMAL_4);
    CHECK(t->route(bw, bi, bx, r, mmax_rows(rows, n)) == MMAX_OK, HERE "status", HERE_ARGS);
    for (size_t row = 0; row < rows; ++row) { check_alone(t, row, n, r, mmax_row(n)); }
}

/* ==== rows of a batch ==== */
/* With strides, starts, ends, attention or inner, against each row alone, forward and backward; masks stand where entries are
 * not active. */
static void check_batch(const route_type *t, size_t rows, size_t n, size_t k, size_t which, int with) {
    const double slopes[3] = {0.5, 2, 0}, scales[3] = {0.7, 1, 3};
    const size_t size = t->f->size, inner = with & 32 ? 5 : 1, stride = (n + 3) * inner;
    int usable;
    const mmax_router router = router_of(t, which, n, k, &usable), *const r = &router;
    mmax_attention a = mmax_attention_none();
    mmax_shape s = mmax_rows(rows, n), one = mmax_row(n);
    if (!usable) { return; }
    a.head_rows = rows / 3 + 1;
    a.bias = with & 1 ? gw_ : NULL;
    a.slopes = a.bias ? slopes : NULL;
    a.masked = with & 2 ? -8 : 0;
    a.scales = with & 4 ? scales : NULL;
    s.attention = with & 7 && inner == 1 ? &a : NULL;
    s.starts = with & 8 ? starts : NULL;
    s.ends = with & 16 ? ends : NULL;
    s.inner = inner;
    s.x_stride = s.gx_stride = stride;
    s.scale = one.scale = 1.25;
    fill(t->f, bx, (rows / inner + 1) * stride, MASKED);
    fill(t->f, gw_, rows * n, MASKED);
    for (size_t row = 0; row < rows; ++row) {
        if (random_below(6) == 0) {
            set_special(t->f, bx, row / inner * stride + row % inner + random_below(n) * inner,
                        (special)random_below(SPECIALS));
        }
        ends[row] = (uint32_t)random_below(n + 1);
        starts[row] = (uint32_t)random_below((with & 16 ? ends[row] : n) + 1);
    }
    CHECK(t->route(bw, bi, bx, r, s) == MMAX_OK, HERE "a batch", HERE_ARGS);
    for (size_t row = 0; row < rows; ++row) {
        const size_t head = row / a.head_rows, start = s.starts ? starts[row] : 0, end = s.ends ? ends[row] : n;
        mmax_attention single = a;
        int same = 1;
        single.head_rows = 0;
        single.bias = a.bias ? (const char *)gw_ + row * n * size : NULL;
        single.slopes = a.bias ? slopes + head : NULL;
        single.scales = a.scales ? scales + head : NULL;
        one.attention = s.attention ? &single : NULL;
        for (size_t i = 0; i < n; ++i) {
            set_bits(t->f, x_, i, get_bits(t->f, bx, row / inner * stride + row % inner + i * inner));
            if (i < start || i >= end) { set_special(t->f, x_, i, MINUS_INF); }
        }
        CHECK(t->route(w_, index_, x_, r, one) == MMAX_OK, HERE "a row", HERE_ARGS);
        for (size_t j = 0; j < k; ++j) { /* starts change the lanes that sums run over */
            const double got = get(t->f, bw, row * k + j), want = get(t->f, w_, j);
            same &= s.starts && r->gate == MMAX_GATE_SOFTMAX
                        ? fabs(got - want) <= 8 * eps_of(t->f) * want || (is_nan_double(got) && is_nan_double(want))
                        : get_bits(t->f, bw, row * k + j) == get_bits(t->f, w_, j);
            same &= bi[row * k + j] == index_[j];
        }
        CHECK(same, HERE "with %d, row %u differs", HERE_ARGS, with, (unsigned)row);
    }
}

/* ==== ties ==== */
static void check_ties(const route_type *t, size_t rows, size_t n, size_t k) {
    mmax_router top = mmax_router_top(k), *const r = &top;
    for (size_t i = 0; i < n; ++i) { set(t->f, bias_, i, (double)random_below(3)); }
    for (size_t i = 0; i < rows * n; ++i) { set(t->f, bx, i, (double)random_below(3)); }
    r->bias = bias_;
    r->groups = n % 4 == 0 ? 4 : 0;
    r->group_k = 2;
    r->group_best = 2;
    CHECK(t->route(NULL, bi, bx, r, mmax_rows(rows, n)) == MMAX_OK, HERE "ties", HERE_ARGS);
    for (size_t row = 0; row < rows; ++row) {
        double value[400], groups[4] = {0};
        for (size_t i = 0; i < n; ++i) { value[i] = get(t->f, bx, row * n + i) + get(t->f, bias_, i); }
        for (size_t g = 0; g < r->groups; ++g) {
            double first = -1, second = 0;
            for (size_t i = g * n / 4; i < (g + 1) * n / 4; ++i) {
                if (value[i] > first) {
                    second = first < 0 ? 0 : first;
                    first = value[i];
                } else if (value[i] > second) {
                    second = value[i];
                }
            }
            groups[g] = first + second;
        }
        for (size_t g = 0; g < r->groups; ++g) {
            size_t before = 0;
            for (size_t h = 0; h < 4; ++h) { before += groups[h] > groups[g] || (groups[h] >= groups[g] && h < g); }
            for (size_t i = g * n / 4; i < (g + 1) * n / 4 && before >= 2; ++i) { value[i] = -1; }
        }
        for (size_t j = 0; j < k; ++j) {
            size_t best = 0;
            for (size_t i = 1; i < n; ++i) { best = value[i] > value[best] ? i : best; }
            CHECK(value[best] < 0 ? bi[row * k + j] == UINT32_MAX : bi[row * k + j] == best,
                  HERE "row %u, place %u is %u, not %u", HERE_ARGS, (unsigned)row, (unsigned)j,
                  (unsigned)bi[row * k + j], (unsigned)best);
            value[best] = -1;
        }
    }
}

/* ==== special rows ==== */
/* NaN or +inf at one place of x or of the bias: weights are NaN, index has the first active entries; other rows stay. */
static void check_nan(const route_type *t, size_t n, size_t k, size_t which, size_t at, special bad, int in_bias) {
    const size_t rows = 17, row = at % rows;
    int usable, same = 1;
    mmax_router router = router_of(t, which, n, k, &usable), *const r = &router;
    size_t active = 0;
    if (!usable) { return; }
    if (in_bias) { r->bias = bias_; }
    fill(t->f, bx, rows * n, NORMAL_4);
    for (size_t i = 0; i < n; i += 3) { set_special(t->f, bx, row * n + i, MINUS_INF); }
    if (in_bias) { /* matters where the entry is active */
        for (size_t other = 0; other < rows; ++other) {
            if (other != row) { set_special(t->f, bx, other * n + at, MINUS_INF); }
        }
        set(t->f, bx, row * n + at, 0);
        CHECK(t->route(bw, bi, bx, r, mmax_rows(rows, n)) == MMAX_OK, HERE "NaN", HERE_ARGS);
        memcpy(gx_, bw, rows * k * t->f->size);
        set_special(t->f, bias_, at, bad);
    } else {
        CHECK(t->route(gx_, bi, bx, r, mmax_rows(rows, n)) == MMAX_OK, HERE "NaN", HERE_ARGS);
        set_special(t->f, bx, row * n + at, bad);
    }
    CHECK(t->route(bw, bi, bx, r, mmax_rows(rows, n)) == MMAX_OK, HERE "NaN", HERE_ARGS);
    for (size_t i = 0; i < n; ++i) {
        const int is_active =
            !is_special(t->f, bx, row * n + i, MINUS_INF) && !(r->bias && is_special(t->f, bias_, i, MINUS_INF));
        if (is_active && active < k) {
            same &= bi[row * k + active] == i && is_special(t->f, bw, row * k + active, QUIET_NAN);
            ++active;
        }
    }
    for (size_t j = active; j < k; ++j) {
        same &= bi[row * k + j] == UINT32_MAX && get_bits(t->f, bw, row * k + j) == 0;
    }
    CHECK(same, HERE "a special value at %u, bias %d", HERE_ARGS, (unsigned)at, in_bias);
    for (size_t i = 0; i < rows * k; ++i) {
        CHECK(i / k == row || get_bits(t->f, bw, i) == get_bits(t->f, gx_, i), HERE "another row changes", HERE_ARGS);
    }
}
/* Scores that are all beyond the type, to -inf or to +inf; and sigmoids that are next to nothing. */
static void check_beyond(const route_type *t, size_t rows, size_t n, size_t k, mmax_gate gate) {
    mmax_router top = mmax_router_top(k), *const r = &top;
    mmax_shape s = mmax_rows(rows, n);
    int good = 1;
    s.scale = 4;
    r->gate = gate;
    for (size_t i = 0; i < rows * n; ++i) { set(t->f, bx, i, -largest(t->f) * (1 - 0.001 * (double)(i % n))); }
    CHECK(t->route(bw, bi, bx, r, s) == MMAX_OK, HERE "beyond", HERE_ARGS);
    for (size_t i = 0; i < rows * k; ++i) { good &= get_bits(t->f, bw, i) == 0 && bi[i] == UINT32_MAX; }
    CHECK(good, HERE "scores beyond the type", HERE_ARGS);
    for (size_t i = 0; i < rows * n; ++i) { set(t->f, bx, i, i % n == n / 2 ? largest(t->f) : 1); }
    CHECK(t->route(bw, bi, bx, r, s) == MMAX_OK, HERE "beyond", HERE_ARGS);
    for (size_t i = 0; i < rows * k && k <= n; ++i) { good &= is_special(t->f, bw, i, QUIET_NAN) && bi[i] == i % k; }
    CHECK(good, HERE "a score beyond the type is +inf", HERE_ARGS);
}

/* ==== the gradient ==== */
static void check_gradient(size_t n, size_t k, size_t which) {
    const route_type *t = &types[1];
    const double h = 1e-5;
    int usable;
    mmax_router router = router_of(t, which, n, k, &usable), *const r = &router;
    mmax_shape s = mmax_row(n);
    if (!usable) { return; }
    s.scale = 0.8;
    for (size_t i = 0; i < n; ++i) {
        x_[i] = random_normal();
        if (i % 7 == 3) { set_special(t->f, x_, i, MINUS_INF); }
    }
    for (size_t j = 0; j < k; ++j) { gw_[j] = random_normal(); }
    CHECK(t->route(w_, index_, x_, r, s) == MMAX_OK && t->backward(gx_, gw_, w_, index_, x_, r, s) == MMAX_OK,
          HERE "gradient", HERE_ARGS);
    for (size_t i = 0; i < n; ++i) {
        const double x = x_[i];
        double slope = 0;
        int same = 1;
        for (int side = -1; side <= 1 && !is_special(t->f, x_, i, MINUS_INF); side += 2) {
            x_[i] = x + side * h;
            CHECK(t->route(v_, other_, x_, r, s) == MMAX_OK, HERE "gradient", HERE_ARGS);
            x_[i] = x;
            for (size_t j = 0; j < k; ++j) {
                for (size_t m = 0; m < k; ++m) {
                    if (index_[j] == other_[m] && index_[j] != UINT32_MAX) { slope += side * gw_[j] * v_[m] / (2 * h); }
                }
            }
            for (size_t j = 0, found; j < k; ++j) {
                found = index_[j] == UINT32_MAX;
                for (size_t m = 0; m < k; ++m) { found |= index_[j] == other_[m]; }
                same &= found != 0;
            }
        }
        CHECK(!same || fabs(slope - gx_[i]) < 1e-8, HERE "gx[%u] is %g, not %g", HERE_ARGS, (unsigned)i, gx_[i], slope);
    }
    memcpy(v_, x_, n * sizeof *x_);
    CHECK(t->backward(v_, gw_, w_, index_, v_, r, s) == MMAX_OK && memcmp(v_, gx_, n * sizeof *v_) == 0,
          HERE "in place", HERE_ARGS);
}
/* What all scores have in common does not matter: scale x is not rounded. */
static void check_distant(size_t n, mmax_gate gate, double far) {
    const route_type *t = &types[1];
    mmax_router router = mmax_router_top(2), *const r = &router;
    mmax_shape s = mmax_row(n);
    double most = 0;
    r->gate = gate;
    s.scale = 1.3;
    for (size_t i = 0; i < n; ++i) {
        x_[i] = (double)random_below(4096) / 1024;
        v_[i] = x_[i] + far;
    }
    gw_[0] = 1;
    gw_[1] = -0.5;
    CHECK(t->route(w_, index_, x_, r, s) == MMAX_OK && t->backward(gx_, gw_, w_, index_, x_, r, s) == MMAX_OK &&
              t->backward(added_, gw_, w_, index_, v_, r, s) == MMAX_OK,
          HERE "gradient", HERE_ARGS);
    for (size_t j = 0; j < 2; ++j) { most = fabs(s.scale * w_[j]) > most ? fabs(s.scale * w_[j]) : most; }
    for (size_t i = 0; i < n; ++i) {
        CHECK(fabs(gx_[i] - added_[i]) <= 8 * 2.2204460492503131e-16 * most, HERE "gx[%u] is %g, not %g", HERE_ARGS,
              (unsigned)i, added_[i], gx_[i]);
    }
    CHECK(t->backward(v_, gw_, w_, index_, v_, r, s) == MMAX_OK && memcmp(v_, added_, n * sizeof *v_) == 0,
          HERE "in place", HERE_ARGS);
}
/* The one that is chosen, by its group, weighs nothing beside the others. */
static void check_no_weight(const route_type *t) {
    mmax_router router = mmax_router_top(1), *const r = &router;
    const size_t n = 4;
    r->gate = MMAX_GATE_SOFTMAX;
    r->groups = 2;
    r->group_k = 1;
    r->bias = bias_;
    for (size_t i = 0; i < n; ++i) {
        set(t->f, x_, i, i < 2 ? 0 : 2000);
        set(t->f, bias_, i, i < 2 ? 9 : 0);
    }
    set(t->f, gw_, 0, 1);
    CHECK(t->route(w_, index_, x_, r, mmax_row(n)) == MMAX_OK && get(t->f, w_, 0) == 0 && index_[0] == 0 &&
              t->backward(gx_, gw_, w_, index_, x_, r, mmax_row(n)) == MMAX_OK,
          HERE "no weight", HERE_ARGS);
    for (size_t i = 0; i < n; ++i) { CHECK(get(t->f, gx_, i) == 0, HERE "gx[%u] is not 0", HERE_ARGS, (unsigned)i); }
}
/* The gradient of a batch is that of each row; a NaN makes the active gx of its row NaN, but not where the weight is 0. */
static void check_backward(const route_type *t, size_t n, size_t k, size_t which, int with) {
    const size_t rows = 20, size = t->f->size, inner = with & 4 ? 4 : 1;
    int usable;
    mmax_router router = router_of(t, which, n, k, &usable), *const r = &router;
    mmax_shape s = mmax_rows(rows, n), one = mmax_row(n);
    if (!usable) { return; }
    s.starts = with & 1 ? starts : NULL;
    s.ends = with & 2 ? ends : NULL;
    s.inner = inner;
    fill(t->f, bx, rows * n, NORMAL_4);
    fill(t->f, gw_, rows * k, NORMAL_1);
    for (size_t row = 0; row < rows; ++row) {
        ends[row] = (uint32_t)random_below(n + 1);
        starts[row] = (uint32_t)random_below((with & 2 ? ends[row] : n) + 1);
        set_special(t->f, bx, row * n + random_below(n), MINUS_INF);
    }
    CHECK(t->route(bw, bi, bx, r, s) == MMAX_OK, HERE "backward", HERE_ARGS);
    for (size_t i = 0; i < rows * k; ++i) { /* is not used */
        if (get(t->f, bw, i) == 0) { set_special(t->f, gw_, i, QUIET_NAN); }
    }
    if (get(t->f, bw, 3 * k) > 0) { set_special(t->f, gw_, 3 * k, PLUS_INF); }
    CHECK(t->backward(gx_, gw_, bw, bi, bx, r, s) == MMAX_OK, HERE "backward", HERE_ARGS);
    for (size_t i = 0; i < rows * n; ++i) { set(t->f, added_, i, i % 3 ? 0.5 : -0.0); }
    s.accumulate = 1;
    CHECK(t->backward(added_, gw_, bw, bi, bx, r, s) == MMAX_OK, HERE "backward", HERE_ARGS);
    for (size_t i = 0; i < rows * n; ++i) {
        const double old = i % 3 ? 0.5 : -0.0, gx = get(t->f, gx_, i), added = get(t->f, added_, i);
        CHECK(gx == 0             ? bits_of(added) == bits_of(old)
              : is_nan_double(gx) ? is_nan_double(added)
                                  : fabs(added - (old + gx)) <= eps_of(t->f) * (0.5 + fabs(gx)),
              HERE "%g is added to %g: %g", HERE_ARGS, gx, old, added);
    }
    for (size_t row = 0; row < rows; ++row) {
        const size_t start = s.starts ? starts[row] : 0, end = s.ends ? ends[row] : n;
        int same = 1, is_nan = row == 3 && get(t->f, bw, 3 * k) > 0;
        for (size_t i = 0; i < n; ++i) {
            set_bits(t->f, x_, i, get_bits(t->f, bx, row / inner * n * inner + row % inner + i * inner));
            if (i < start || i >= end) { set_special(t->f, x_, i, MINUS_INF); }
        }
        CHECK(t->backward(v_, (const char *)gw_ + row * k * size, (const char *)bw + row * k * size, bi + row * k, x_,
                          r, one) == MMAX_OK,
              HERE "backward", HERE_ARGS);
        for (size_t i = 0; i < n; ++i) {
            const double got = get(t->f, gx_, row / inner * n * inner + row % inner + i * inner),
                         want = get(t->f, v_, i);
            const int is_active = !is_special(t->f, x_, i, MINUS_INF);
            same &= is_nan      ? (is_nan_double(got) && is_nan_double(want)) == is_active
                    : is_active ? fabs(got - want) <= (s.starts ? 16 * eps_of(t->f) * (fabs(want) + 1e-3) : 0)
                                : bits_of(got) == 0;
        }
        CHECK(same, HERE "with %d, row %u differs", HERE_ARGS, with, (unsigned)row);
    }
}

/* ==== errors ==== */
static void check_errors(const route_type *t) {
    const double sink = 0;
    const uint32_t long_ones[3] = {1, 41, 1};
    mmax_attention a = mmax_attention_none();
    mmax_shape s = mmax_rows(3, 40), bad;
    mmax_router r = mmax_router_top(3);
    fill(t->f, x_, 200, NORMAL_1);
    fill(t->f, bias_, 40, NORMAL_1);
    memset(w_, 0x55, 1000);
    memset(v_, 0x55, 1000);
    memset(index_, 0x55, 1000);
#define FAILS(status, call) CHECK((call) == (status), "f%u: " #call, (unsigned)(8 * t->f->size))
#define PARAM(change)                                               \
    r = mmax_router_top(3);                                         \
    change;                                                         \
    FAILS(MMAX_ERR_PARAM, t->route(w_, index_, x_, &r, s));         \
    FAILS(MMAX_ERR_PARAM, t->backward(v_, gw_, bw, bi, x_, &r, s)); \
    r = mmax_router_top(3)
    PARAM(r.k = 0);
    PARAM(r.gate = (mmax_gate)4);
    PARAM(r.factor = -1);
    PARAM(r.factor = double_of(0x7ff8000000000000));
    PARAM(r.factor = double_of(0x7ff0000000000000));
    PARAM((r.groups = 7, r.group_k = 1));
    PARAM(r.groups = 8);
    PARAM((r.groups = 8, r.group_k = 9));
    FAILS(MMAX_ERR_NULL, t->route(NULL, NULL, x_, &r, s));
    FAILS(MMAX_ERR_NULL, t->route(w_, index_, NULL, &r, s));
    FAILS(MMAX_ERR_NULL, t->route(w_, index_, x_, NULL, s));
    FAILS(MMAX_ERR_NULL, t->backward(NULL, gw_, bw, bi, x_, &r, s));
    FAILS(MMAX_ERR_NULL, t->backward(v_, NULL, bw, bi, x_, &r, s));
    FAILS(MMAX_ERR_NULL, t->backward(v_, gw_, NULL, bi, x_, &r, s));
    FAILS(MMAX_ERR_NULL, t->backward(v_, gw_, bw, NULL, x_, &r, s));
    FAILS(MMAX_ERR_NULL, t->backward(v_, gw_, bw, bi, NULL, &r, s));
    FAILS(MMAX_ERR_NULL, t->backward(v_, gw_, bw, bi, x_, NULL, s));
    r.k = SIZE_MAX / 8;
    FAILS(MMAX_ERR_SHAPE, t->route(w_, index_, x_, &r, s));
    r.k = 40;
    FAILS(MMAX_ERR_ALIAS, t->route(x_, index_, x_, &r, s));
    r.k = 3;
    FAILS(MMAX_ERR_ALIAS, t->route(w_, (uint32_t *)(void *)x_, x_, &r, s));
    FAILS(MMAX_ERR_ALIAS, t->route(w_, (uint32_t *)(void *)w_, x_, &r, s));
    r.bias = w_;
    FAILS(MMAX_ERR_ALIAS, t->route(w_, index_, x_, &r, s));
    FAILS(MMAX_ERR_ALIAS, t->backward(w_, gw_, bw, bi, x_, &r, s));
    r.bias = NULL;
    FAILS(MMAX_ERR_ALIAS, t->backward(v_, v_, bw, bi, x_, &r, s));
    FAILS(MMAX_ERR_ALIAS, t->backward(v_, gw_, v_, bi, x_, &r, s));
    FAILS(MMAX_ERR_ALIAS, t->backward(v_, gw_, bw, (const uint32_t *)(const void *)v_, x_, &r, s));
    FAILS(MMAX_ERR_ALIAS, t->backward((char *)x_ + t->f->size, gw_, bw, bi, x_, &r, s));
    bad = s;
    bad.x_stride = 39;
    FAILS(MMAX_ERR_SHAPE, t->route(w_, index_, x_, &r, bad));
    bad = s;
    bad.ends = long_ones;
    FAILS(MMAX_ERR_SHAPE, t->route(w_, index_, x_, &r, bad));
    bad = s;
    bad.scale = -1;
    FAILS(MMAX_ERR_SCALE, t->route(w_, index_, x_, &r, bad));
    bad = s;
    a.sinks = &sink;
    bad.attention = &a;
    FAILS(MMAX_ERR_ATTENTION, t->route(w_, index_, x_, &r, bad));
    FAILS(MMAX_ERR_ATTENTION, t->backward(v_, gw_, bw, bi, x_, &r, bad));
    for (size_t i = 0; i < 1000; ++i) {
        CHECK(((unsigned char *)w_)[i] == 0x55 && ((unsigned char *)v_)[i] == 0x55 &&
                  ((unsigned char *)index_)[i] == 0x55,
              "an output is touched");
    }
    FAILS(MMAX_OK, t->route(NULL, NULL, NULL, NULL, mmax_rows(0, 5)));
    FAILS(MMAX_OK, t->backward(NULL, NULL, NULL, NULL, NULL, NULL, mmax_rows(0, 5)));
    FAILS(MMAX_OK, t->backward(v_, gw_, w_, index_, x_, &r, mmax_rows(5, 0)));
    CHECK(((unsigned char *)w_)[0] == 0x55 && ((unsigned char *)index_)[0] == 0x55, "inputs are touched");
    memset(gw_, 0, 6 * t->f->size); /* inputs may overlap */
    memset(bi, 0, 9 * sizeof *bi);
    memset(bw, 0, 9 * t->f->size);
    FAILS(MMAX_OK, t->backward(v_, bw, bw, bi, x_, &r, s));
    FAILS(MMAX_OK, t->route(w_, index_, NULL, &r, mmax_rows(5, 0)));
    for (size_t j = 0; j < 15; ++j) { CHECK(get_bits(t->f, w_, j) == 0 && index_[j] == UINT32_MAX, "cols = 0"); }
}

/* ==== bits ==== */
static void check_bits(const route_type *t, size_t rows, size_t n, size_t k, size_t which) {
    int usable, seen = 0;
    mmax_router router = router_of(t, which, n, k, &usable), *const r = &router;
    if (!usable) { return; }
    fill(t->f, bx, rows * n, which % 5 == 4 ? MASKED : NORMAL_4);
    fill(t->f, gw_, rows * k, NORMAL_1);
    FOR_EACH_ISA(isa) {
        if (!uses_fma(isa)) { continue; }
        CHECK(t->route(seen ? bw : v_, bi, bx, r, mmax_rows(rows, n)) == MMAX_OK &&
                  (!seen ||
                   (memcmp(bw, v_, rows * k * t->f->size) == 0 && memcmp(bi, other_, rows * k * sizeof *bi) == 0)),
              HERE "bits", HERE_ARGS);
        if (!seen) { memcpy(other_, bi, rows * k * sizeof *bi); }
        seen = 1;
    }
}

int main(void) {
    static const law laws[] = {NORMAL_4, TIES, CLUSTERS, MASKED, NORMAL_32, EQUAL, ANY_SIZE};
    types[0].f = function_named("softmax_f32");
    types[1].f = function_named("softmax_f64");
    TEST("every gate, with bias and groups: the k best, in order, and their weights") {
        static const size_t ns[] = {1, 2, 5, 8, 16, 24, 32, 40, 64, 65, 96, 160, 256, 300, 320};
        static const size_t ks[] = {1, 2, 3, 4, 6, 8, 9, 16, 17, 40};
        FOR_EACH_TYPE(t)
        FOR_EACH_ISA(isa)
            for (size_t i = 0; i < COUNT(ns); ++i)
                for (size_t j = 0; j < COUNT(ks); ++j) {
                    for (size_t which = 0; which < ROUTERS; which += LENGTH_STEP < 5 ? 1 : 3) {
                        const size_t l = (i + j + which) % COUNT(laws),
                                     rows = ns[i] > 100 ? 9 : 1 + (which * 7 + j) % 35;
                        random_state = i * 1000 + j * 50 + which;
                        if (laws[l] == ANY_SIZE && which / 4 % 2) { continue; }
                        check_rows(t, rows, ns[i], ks[j], which, laws[l], laws[l] == ANY_SIZE ? 1 : l % 2 ? 1.5 : 0.75);
                    }
                }
        NOTE("largest error %.2f ULP of softmaxes, %.2f of sigmoids; %u of %u rows have groups too near to tell",
             largest_error[0], largest_error[1], (unsigned)near, (unsigned)compared);
    }
    TEST("long rows, whose values do not fit into the memory, and any k") {
        FOR_EACH_TYPE(t) FOR_EACH_ISA(isa) for (size_t which = 0; which < ROUTERS; which += LENGTH_STEP < 5 ? 1 : 3) {
            random_state = which;
            check_rows(t, 1, 5000, 1 + which * which % 90, which, NORMAL_4, 0.5);
            check_rows(t, 1, 2400, 1 + which * which % 90, which, MASKED, 1);
        }
    }
    TEST("groups of any width, whose values just have room") {
        FOR_EACH_TYPE(t) FOR_EACH_ISA(isa) for (size_t groups = 2; groups <= 16; ++groups) {
            for (size_t n = 240 / groups * groups; n <= 280; n += groups) { check_groups(t, 17, n, groups); }
        }
    }
    TEST("in a batch with strides, ends, starts, attention or inner a row gives what it gives alone") {
        FOR_EACH_TYPE(t) FOR_EACH_ISA(isa) for (size_t which = 0; which < ROUTERS; ++which) {
            for (int with = 0; with < 64; with += LENGTH_STEP < 5 ? 1 : 5) {
                random_state = which * 64 + (size_t)with;
                check_batch(t, 35, 8 * (1 + random_below(12)), 1 + random_below(20), which, with);
            }
        }
    }
    TEST("of equal values the lower column, of equal groups the lower group") {
        FOR_EACH_TYPE(t) FOR_EACH_ISA(isa) for (size_t n = 1; n <= 132; n += n < 40 ? 1 : 23) {
            check_ties(t, 35, n, 1 + n % 8);
            check_ties(t, 2, n, 1 + n % 21);
        }
    }
    TEST("NaN and +inf at any place make the row NaN, also in the bias") {
        FOR_EACH_TYPE(t) FOR_EACH_ISA(isa) for (size_t at = 0; at < 40; at += LENGTH_STEP < 5 ? 1 : 3) {
            for (size_t which = 0; which < ROUTERS; which += LENGTH_STEP < 5 ? 1 : 3) {
                random_state = which * 40 + at;
                check_nan(t, 40, 1 + (at + which) % 20, which, at, (special)((at + which) % MINUS_INF), 0);
                check_nan(t, 40, 1 + (at + which) % 20, which, at, (special)((at + which) % MINUS_INF), 1);
            }
        }
    }
    TEST("scores beyond the type") {
        FOR_EACH_TYPE(t)
        FOR_EACH_ISA(isa)
            for (size_t k = 1; k <= 27; k = 3 * k)
                for (int gate = 0; gate < GATES; ++gate) {
                    check_beyond(t, 17, 20, k, (mmax_gate)gate);
                    check_beyond(t, 1, 20, k, (mmax_gate)gate);
                    check_beyond(t, 3, 300, k, (mmax_gate)gate);
                }
    }
    TEST("the gradient, by finite differences") {
        FOR_EACH_ISA(isa)
            for (size_t which = 0; which < ROUTERS; ++which) {
                random_state = which;
                check_gradient(40, 1 + which % 10, which);
                check_gradient(40, 25, which);
            }
    }
    TEST("the gradient where all scores are far from 0") {
        FOR_EACH_ISA(isa)
            for (int gate = 0; gate <= MMAX_GATE_SOFTMAX; ++gate) {
                check_distant(200, (mmax_gate)gate, 1048576);
                check_distant(7, (mmax_gate)gate, -67108864);
            }
    }
    TEST("the gradient is 0 where the chosen entry weighs nothing") {
        FOR_EACH_TYPE(t) { check_no_weight(t); }
    }
    TEST("the gradient of a batch, with starts, ends and inner, and of special rows") {
        FOR_EACH_TYPE(t)
        FOR_EACH_ISA(isa)
            for (size_t which = 0; which < ROUTERS; ++which)
                for (int with = 0; with < 8; ++with) {
                    random_state = which * 8 + (size_t)with;
                    check_backward(t, 40, 1 + which % 12, which, with);
                }
    }
    TEST("what is wrong is told, and no output is touched") {
        FOR_EACH_TYPE(t) { check_errors(t); }
    }
    TEST("the same bits on every instruction set with fma") {
        FOR_EACH_TYPE(t)
        for (size_t n = 8; n <= 320; n = n < 40 ? n + 8 : 2 * n)
            for (size_t which = 0; which < ROUTERS; ++which) {
                random_state = which * 8 + n;
                check_bits(t, n < 100 ? 20 : 5, n, 1 + which % 18, which);
            }
    }
    return check_report();
}
