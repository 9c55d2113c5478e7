/*
 * test_accumulate.c: gradients that add. With shape.accumulate backward functions and losses add to gx what they would have
 * written; an entry that would have got 0 keeps its bits; losses, gp and forward functions are as without.
 */
#define WITH_MORE_FUNCTIONS
#include "function_table.h"

enum { ROWS = 19 };

/* Beside the length and the law of a call */
typedef struct variant {
    const char *name;
    int starts, ends, inner, gap;           /* gap: entries between rows of gx */
    int ignored, smoothing, soft, weighted; /* of losses */
    int special;                            /* an entry of x, y or gy in every fifth row is NaN or infinite */
    double grad_scale;
} variant;

static const variant variants[] = {
    {"plain", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {"gaps", 0, 0, 0, 5, 0, 0, 0, 0, 0, 3},
    {"ends", 0, 1, 0, 0, 1, 0, 0, 0, 0, 0},
    {"starts", 1, 1, 0, 3, 1, 1, 0, 0, 1, 0.5},
    {"NaN", 0, 0, 0, 0, 1, 0, 0, 0, 1, 0},
    {"smoothing", 0, 0, 0, 0, 0, 1, 0, 0, 0, 1e-12},
    {"targets", 0, 1, 0, 0, 0, 0, 1, 0, 0, 0},
    {"weights", 0, 0, 0, 2, 1, 0, 0, 1, 0, 2},
    {"inner", 0, 0, 3, 0, 1, 0, 0, 0, 0, 0},
    {"inner, ends", 1, 1, 4, 2, 1, 1, 0, 1, 1, 0},
    {"inner, targets", 0, 0, 7, 0, 0, 1, 1, 0, 0, 0},
};

static uint32_t starts[ROWS], ends[ROWS];
static double weights[ROWS], q[MAX_ENTRIES], fresh[MAX_ENTRIES], old[MAX_ENTRIES], fresh_values[ROWS];

static int is_gradient(const function *f) { return f->kind == BACKWARD || f->kind == LOG_BACKWARD || f->kind == LOSS; }

static size_t place(const call *c, size_t stride, size_t row, size_t i) {
    const size_t inner = c->s.inner > 1 ? c->s.inner : 1;
    return row / inner * stride + row % inner + i * inner;
}

static void make_targets(const function *f, call *c, const variant *v, size_t n) {
    const double share = 1 / (double)n;
    for (size_t r = 0; r < c->s.rows; ++r) {
        const size_t width = ends[r] - starts[r];
        index_storage[r] = width ? (int32_t)(starts[r] + random_below(width)) : -1;
        if (v->ignored && r % 4 == 1) { index_storage[r] = -1; }
        weights[r] = r % 3 == 1 ? 0 : 0.5 + random_uniform();
    }
    for (size_t i = 0; i < MAX_ENTRIES / 8; ++i) { set(f, q, i, i % 3 ? share : 0); }
    c->t = v->soft ? mmax_distributions(q) : mmax_labels(index_storage);
    c->t.weights = v->weighted ? weights : NULL;
    c->t.label_smoothing = v->smoothing ? 0.125 : 0;
    c->t.grad_scale = v->grad_scale;
}

static call make_call(const function *f, const variant *v, size_t rows, size_t n, law l, uint64_t seed) {
    call c = call_of(f, rows, n, l, seed);
    const size_t inner = v->inner ? (size_t)v->inner : 1;
    c.s.inner = (size_t)v->inner;
    c.s.gx_stride = (n + (size_t)v->gap) * inner;
    for (size_t r = 0; r < rows; ++r) {
        ends[r] = (uint32_t)(v->ends ? n - random_below(n + 1) / 2 : n);
        starts[r] = (uint32_t)(v->starts ? random_below(ends[r] + 1) : 0);
    }
    c.s.starts = v->starts ? starts : NULL;
    c.s.ends = v->ends ? ends : NULL;
    fill(f, c.array[X], (rows + inner) * n, l);
    fill(f, c.array[GY], (rows + inner) * n, NORMAL_1);
    make_targets(f, &c, v, n);
    make_y(f, &c);
    for (size_t r = 0; v->special && r < rows; r += 5) {
        const role roles[] = {X, Y, GY};
        for (int k = 0; k < 3; ++k) {
            if (has(f, 1u << roles[k]) && (size_t)k == r % 3) {
                set_special(f, c.array[roles[k]], place(&c, n * inner, r, random_below(n)), (special)(r % 5));
            }
        }
    }
    return c;
}

/* What is there: numbers where something is added, anything elsewhere. */
static void make_old(const function *f, size_t entries) {
    for (size_t i = 0; i < entries; ++i) {
        if (get_bits(f, fresh, i) == 0) {
            const special one = (special)random_below(SPECIALS);
            set_special(f, old, i, one == SIGNALLING_NAN ? QUIET_NAN : one); /* which compilers may quiet */
        } else {
            set(f, old, i, random_normal());
        }
    }
}

static void check_sums(const function *f, const call *c, const char *what, size_t entries) {
    for (size_t i = 0; i < entries; ++i) {
        const double was = get(f, old, i), added = get(f, fresh, i), got = get(f, c->array[OUT], i);
        if (get_bits(f, fresh, i) == 0) {
            CHECK(get_bits(f, c->array[OUT], i) == get_bits(f, old, i), AT ": %s: entry %u does not keep its bits",
                  AT_ARGS(f, c->s.cols), what, (unsigned)i);
        } else if (is_nan_at(f, fresh, i)) {
            CHECK(is_nan_at(f, c->array[OUT], i), AT ": %s: entry %u is not NaN", AT_ARGS(f, c->s.cols), what,
                  (unsigned)i);
        } else {
            CHECK(fabs(got - (was + added)) <= eps_of(f) * (fabs(was + added) + fabs(added)),
                  AT ": %s: entry %u is %.9g, not %.9g + %.9g", AT_ARGS(f, c->s.cols), what, (unsigned)i, got, was,
                  added);
        }
    }
}

static void check_variant(const function *f, const variant *v, size_t rows, size_t n, law l) {
    call c = make_call(f, v, rows, n, l, n + rows);
    const size_t inner = v->inner ? (size_t)v->inner : 1, entries = (rows + inner - 1) / inner * c.s.gx_stride;
    mmax_multimax_grads gp;
    mmax_status status;
    memset(c.array[OUT], 0, entries * f->size); /* gaps get nothing */
    status = f->run(&c);
    CHECK(status == MMAX_OK, AT ": %s: %s", AT_ARGS(f, n), v->name, mmax_status_string(status));
    memcpy(fresh, c.array[OUT], entries * f->size);
    memcpy(fresh_values, row_storage, sizeof fresh_values);
    gp = gp_storage;
    make_old(f, entries);
    memcpy(c.array[OUT], old, entries * f->size);
    memset(&gp_storage, 0, sizeof gp_storage);
    c.s.accumulate = 1;
    status = f->run(&c);
    CHECK(status == MMAX_OK, AT ": %s: adding: %s", AT_ARGS(f, n), v->name, mmax_status_string(status));
    check_sums(f, &c, v->name, entries);
    for (size_t r = 0; f->kind == LOSS && r < rows; ++r) {
        CHECK(bits_of(row_storage[r]) == bits_of(fresh_values[r]), AT ": %s: loss %u differs", AT_ARGS(f, n), v->name,
              (unsigned)r);
    }
    for (size_t k = 0; k < sizeof gp / sizeof(double); ++k) {
        double a, b;
        memcpy(&a, (const char *)&gp + k * sizeof a, sizeof a);
        memcpy(&b, (const char *)&gp_storage + k * sizeof b, sizeof b);
        CHECK(is_nan_double(a) ? is_nan_double(b) : fabs(a - b) <= 100 * eps_of(f) * (1 + fabs(a)),
              AT ": %s: gp[%u] is %g, not %g", AT_ARGS(f, n), v->name, (unsigned)k, b, a);
    }
}

static void check_function(const function *f) {
    static const size_t lengths[] = {1, 2, 8, 10, 16, 17, 24, 33, 64, 100, 300};
    static const law laws[] = {NORMAL_1, MASKED, ONE_HOT, NORMAL_4, NORMAL_32};
    FOR_EACH_ISA(isa)
        for (size_t k = 0, number = 0; k < COUNT(lengths); ++k) {
            for (size_t i = 0; i < COUNT(variants); ++i, ++number) {
                const size_t rows = variants[i].inner ? ROWS : number % 3 == 0 ? 1 : number % 3 == 1 ? 3 : ROWS;
                check_variant(f, variants + i, rows, lengths[k], laws[number % COUNT(laws)]);
            }
        }
}

int main(void) {
    TEST("backward functions and losses add to gx; what would have got 0 keeps its bits") {
        for (size_t k = 0; k < TABLED + MORE_TABLED; ++k) {
            if (is_gradient(any_function(k))) { check_function(any_function(k)); }
        }
    }
    TEST("long rows, one and several") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                for (size_t rows = 1; rows <= 3 && is_gradient(f); rows += 2) {
                    check_variant(f, variants + rows / 2, rows, 5000, NORMAL_4);
                }
    }
    TEST("gx overlaps no other array then: MMAX_ERR_ALIAS, and nothing is written") {
        for (size_t k = 0; k < TABLED + MORE_TABLED; ++k) {
            const function *f = any_function(k);
            for (int r = GY; is_gradient(f) && r < ARRAYS; ++r) {
                for (size_t rows = 1; rows <= 3; rows += 2) {
                    call c = call_of(f, rows, 20, NORMAL_1, 3);
                    c.array[OUT] = c.array[r];
                    c.s.accumulate = 1;
                    memcpy(old, c.array[r], rows * 20 * f->size);
                    CHECK(!has(f, 1u << r) || f->run(&c) == MMAX_ERR_ALIAS, AT ": in place of array %d", AT_ARGS(f, 20),
                          r);
                    CHECK(memcmp(old, c.array[r], rows * 20 * f->size) == 0, AT ": array %d changed", AT_ARGS(f, 20),
                          r);
                }
            }
        }
    }
    TEST("forward functions do not add") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                for (size_t i = 0; i < 4 && (f->kind == FORWARD || f->kind == LOGARITHM); ++i) {
                    call c = make_call(f, variants + i, 3, 20, MASKED, 4);
                    CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, 20));
                    memcpy(fresh, c.array[OUT], 60 * f->size);
                    memset(c.array[OUT], 0x41, 60 * f->size);
                    c.s.accumulate = 1;
                    CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, 20));
                    CHECK(memcmp(fresh, c.array[OUT], 60 * f->size) == 0, AT ": %s", AT_ARGS(f, 20), variants[i].name);
                }
    }
    return check_report();
}
