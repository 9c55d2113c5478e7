/*
 * test_axis.c: rows whose entries lie `inner` elements apart give the bits of the same rows laid out contiguously, whatever
 * the function, type and instruction set; nothing outside them is touched, and what is no such shape is refused.
 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#define _DARWIN_C_SOURCE

#define WITH_MORE_FUNCTIONS
#include "function_table.h"

#if defined(__unix__) || defined(__APPLE__)
#    include <sys/mman.h>
#endif

#define FOR_EACH(f)                              \
    for (size_t f##_i = 0; f##_i < ALL; ++f##_i) \
        for (const function *f = any_function(f##_i), *once = f; once; once = NULL)

/* Entries of the longest row: a tile has 12 KiB for all inputs. */
static size_t longest_of(const function *f, int with_q) {
    size_t inputs = (size_t)has(f, HAS_GY) + (size_t)has(f, HAS_Y) + (size_t)has(f, HAS_X) + (size_t)with_q;
    return has_long_rows(f) ? SIZE_MAX : 12288 / f->size / (inputs ? inputs : 1);
}

/* ==== memory: areas between pages that fault on any access ==== */
enum { Q = ARRAYS, AREAS, AREA_BYTES = 1 << 18, GUARD_BYTES = 1 << 16, SLACK = 256, GAP = 0x6b };
static unsigned char *areas[AREAS];
static unsigned char *watched[AREAS]; /* an array, and SLACK bytes beside it */
static size_t watched_bytes[AREAS];

static void make_areas(void) {
    static unsigned char plain[AREAS][AREA_BYTES];
    for (int a = 0; a < AREAS; ++a) {
        areas[a] = plain[a];
#if defined(__unix__) || defined(__APPLE__)
        void *p = mmap(NULL, AREA_BYTES + 2 * GUARD_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p != MAP_FAILED && mprotect((char *)p + GUARD_BYTES, AREA_BYTES, PROT_READ | PROT_WRITE) == 0) {
            areas[a] = (unsigned char *)p + GUARD_BYTES;
        }
#endif
    }
}

/* ==== one case ==== */
typedef struct axis {
    size_t blocks, inner, cols, gap; /* elements between blocks */
    int ranges, targets, at_end;     /* starts and ends; weights (1), q (2) */
    law l;
    role in;       /* the input that is the output, or OUT */
    size_t absent; /* rows of the last block */
} axis;

static size_t rows_of(const axis *x) { return x->blocks * x->inner - x->absent; }

static double q_storage[MAX_ENTRIES], weight_storage[MOST_ROWS], first_per_row[MOST_ROWS], gradient_storage;
static double router_bias[MAX_ENTRIES];
static uint32_t start_storage[MOST_ROWS], end_storage[MOST_ROWS], select_storage[MAX_ENTRIES],
    first_select[MAX_ENTRIES];

static size_t place(const axis *x, size_t stride, size_t row, size_t i) {
    return row / x->inner * stride + row % x->inner + i * x->inner;
}

static int is_active_at(const call *c, size_t row, size_t i) {
    return (!c->s.starts || i >= c->s.starts[row]) && (!c->s.ends || i < c->s.ends[row]);
}

/* Rows of an array to where they interleave. Of inputs the entries that are not active are NaN, and those after the last
 * active one of the last block do not exist. */
static void *interleave(const function *f, const call *c, const axis *x, int area, const void *from, size_t stride) {
    size_t last = x->cols, entries;
    if (c->s.ends && area != OUT) {
        last = 0;
        for (size_t r = (x->blocks - 1) * x->inner; r < c->s.rows; ++r) {
            last = c->s.ends[r] > last ? c->s.ends[r] : last;
        }
    }
    last = x->at_end && x->in == OUT ? last : x->cols;
    entries = (x->blocks - 1) * stride + (last > 0 ? last * x->inner - x->absent : 0);
    watched_bytes[area] = entries * f->size + SLACK;
    CHECK(watched_bytes[area] <= AREA_BYTES, AT ": no room", AT_ARGS(f, x->cols));
    watched[area] = areas[area] + (x->at_end ? AREA_BYTES - watched_bytes[area] : 0);
    memset(watched[area], GAP, watched_bytes[area]);
    unsigned char *const to = watched[area] + (x->at_end ? SLACK : 0);
    for (size_t row = 0; row < c->s.rows; ++row) {
        for (size_t i = 0; i < x->cols; ++i) {
            const size_t at = place(x, stride, row, i);
            if (at >= entries) { continue; }
            memcpy(to + at * f->size, (const char *)from + (row * x->cols + i) * f->size, f->size);
            if (area != OUT && !is_active_at(c, row, i)) { set_special(f, to, at, QUIET_NAN); }
        }
    }
    return to;
}

/* Bytes of an area that are no entry keep their value. */
static int gaps_are_kept(const function *f, const axis *x, int area, const unsigned char *at, size_t stride) {
    const size_t width = x->cols * x->inner;
    for (size_t b = 0; b < watched_bytes[area]; ++b) {
        const size_t from = (size_t)(watched[area] + b - at) / f->size;
        const int inside = watched[area] + b >= at && from / stride < x->blocks && from % stride < width &&
                           from / stride * x->inner + from % stride % x->inner < rows_of(x);
        if (!inside && watched[area][b] != GAP) { return 0; }
    }
    return 1;
}

static call make_call(const function *f, const axis *x, uint64_t seed) {
    const size_t rows = rows_of(x);
    call c = call_of(f, rows, x->cols, x->l, seed);
    for (size_t r = 0; r < rows; ++r) {
        uint32_t start = (uint32_t)random_below(x->cols + 1), end = (uint32_t)random_below(x->cols + 1);
        start_storage[r] = !x->ranges || random_below(3) == 0 ? 0 : start < end ? start : end;
        end_storage[r] = !x->ranges || random_below(3) == 0 ? (uint32_t)x->cols : start < end ? end : start;
        index_storage[r] = start_storage[r] == end_storage[r] || random_below(8) == 0
                               ? -1
                               : (int32_t)(start_storage[r] + random_below(end_storage[r] - start_storage[r]));
        weight_storage[r] = (double)random_below(4);
        for (size_t i = 0; i < x->cols; ++i) { set(f, q_storage, r * x->cols + i, random_uniform()); }
        if (random_below(9) == 0) { set_special(f, c.array[X], r * x->cols + random_below(x->cols), QUIET_NAN); }
    }
    c.s.starts = x->ranges > 1 ? start_storage : NULL;
    for (size_t r = 0; r < rows; ++r) { start_storage[r] = x->ranges > 1 ? start_storage[r] : 0; }
    c.s.ends = x->ranges ? end_storage : NULL;
    c.s.scale = x->l == NORMAL_1 ? 0.75 : 0;
    c.t.weights = x->targets & 1 ? weight_storage : NULL;
    if (x->targets & 2) {
        c.t.q = q_storage;
        c.t.index = NULL;
        c.t.label_smoothing = 0.125;
    }
    c.own.gradient = &gradient_storage;
    c.own.index = select_storage;
    c.own.k = 3;
    c.own.seed = seed;
    c.own.first_row = 5;
    c.own.cut.top_p = seed % 2 ? 0.9 : 0;
    c.own.cut.min_p = seed % 3 ? 0.01 : 0;
    for (size_t i = 0; i < x->cols; ++i) { set(f, router_bias, i, random_normal()); }
    c.own.router.bias = seed % 2 ? router_bias : NULL;
    c.own.router.gate = (mmax_gate)(seed / 2 % 4);
    gradient_storage = 0;
    make_y(f, &c);
    return c;
}

static mmax_status run(const function *f, const call *c) {
    memset(row_storage, 0, sizeof row_storage);
    memset(&gp_storage, 0, sizeof gp_storage);
    gradient_storage = 0;
    return f->run(c);
}

static void check_axis(const function *f, const axis *x, uint64_t seed) {
    const size_t rows = rows_of(x), stride = x->cols * x->inner + x->gap;
    call c = make_call(f, x, seed), a = c;
    mmax_multimax_grads gp;
    double gradient;
    CHECK(run(f, &c) == MMAX_OK, AT, AT_ARGS(f, x->cols));
    gp = gp_storage;
    gradient = gradient_storage;
    memcpy(first_per_row, row_storage, sizeof first_per_row);
    memcpy(first_select, select_storage, rows * c.own.k * sizeof *first_select);
    memset(select_storage, 0, sizeof select_storage);
    a.s.inner = x->inner;
    for (int r = 0; r < ARRAYS; ++r) {
        *stride_of(f, &a.s, (role)r) = x->gap ? stride : 0;
        a.array[r] = interleave(f, &c, x, r, c.array[r], stride);
    }
    if (has(f, HAS_INDEX)) { a.array[OUT] = areas[OUT]; }
    if (c.t.q) {
        a.t.q = interleave(f, &c, x, Q, c.t.q, stride);
        a.t.q_stride = x->gap ? stride : 0;
    }
    if (x->in != OUT) { a.array[OUT] = a.array[x->in]; }
    mmax_status status = run(f, &a);
    CHECK(status == MMAX_OK, AT ", inner %u: %s", AT_ARGS(f, x->cols), (unsigned)x->inner, mmax_status_string(status));
    const size_t n = !has(f, HAS_INDEX) ? x->cols : has(f, HAS_OUT) ? c.own.k : 1;
    size_t wrong = 0;
    for (size_t i = 0; has(f, HAS_OUT) && i < rows * n; ++i) {
        const size_t at = has(f, HAS_INDEX) ? i : place(x, stride, i / n, i % n);
        wrong += get_bits(f, a.array[OUT], at) != get_bits(f, c.array[OUT], i);
    }
    CHECK(wrong == 0, AT ", %u rows, inner %u, ranges %d, targets %d, input %d: %u entries differ", AT_ARGS(f, n),
          (unsigned)rows, (unsigned)x->inner, x->ranges, x->targets, (int)x->in, (unsigned)wrong);
    for (size_t r = 0; r < rows; ++r) { wrong += bits_of(first_per_row[r]) != bits_of(row_storage[r]); }
    CHECK(wrong == 0 && bits_of(gradient) == bits_of(gradient_storage), AT ", inner %u: values of rows differ",
          AT_ARGS(f, n), (unsigned)x->inner);
    CHECK(!has(f, HAS_INDEX) || memcmp(first_select, select_storage, rows * n * sizeof *first_select) == 0,
          AT ", inner %u: another index", AT_ARGS(f, n), (unsigned)x->inner);
    for (size_t k = 0; k < sizeof gp / sizeof(double); ++k) { /* a sum over the call: other roundings */
        double u, v;
        memcpy(&u, (const char *)&gp + k * sizeof u, sizeof u);
        memcpy(&v, (const char *)&gp_storage + k * sizeof v, sizeof v);
        CHECK(is_nan_double(u) ? is_nan_double(v) : fabs(u - v) <= 1000 * eps_of(f) * (fabs(u) + 1000),
              AT ", inner %u: gp[%u] is %g, not %g", AT_ARGS(f, n), (unsigned)x->inner, (unsigned)k, v, u);
    }
    for (int r = 0; r < ARRAYS; ++r) {
        CHECK((r == OUT && has(f, HAS_INDEX)) || gaps_are_kept(f, x, r, a.array[r == OUT ? OUT : r], stride) ||
                  (r == OUT && x->in != OUT),
              AT ", inner %u: a byte beside array %d changed", AT_ARGS(f, n), (unsigned)x->inner, r);
    }
}

/* Every function on one layout: apart, and in place of each input. */
static void check_layouts(const function *f, axis x, uint64_t seed) {
    if (has(f, HAS_INDEX) && x.cols < 3) { return; }
    check_axis(f, &x, seed);
    for (int in = GY; in <= X; ++in) {
        if (has(f, HAS_OUT) && !has(f, HAS_INDEX) && has(f, 1u << in) && x.ranges == 0) {
            x.in = (role)in;
            check_axis(f, &x, seed + 1);
        }
    }
}

static void test_bits(void) {
    static const size_t inners[] = {2, 3, 4, 7, 8, 15, 16, 17, 31, 33, 64, 70};
    static const size_t lengths[] = {1, 5, 16, 17, 33, 40, 100};
    uint64_t seed = 0;
    TEST("rows that interleave have the bits of contiguous ones; in place, with gaps, between guard pages") {
        FOR_EACH(f)
        FOR_EACH_ISA(isa)
            for (size_t i = seed % CASE_STEP; i < COUNT(inners); i += CASE_STEP, ++seed) {
                axis x = {
                    inners[i] < 16 ? 3 : 1, inners[i], lengths[seed % COUNT(lengths)], 0, 0, 0, 0, NORMAL_4, OUT, 0};
                x.absent = seed / 3 % 2 ? seed % inners[i] : 0;
                x.gap = seed % 3;
                x.l = seed % 4 == 0                ? MASKED
                      : seed % 4 == 1              ? NORMAL_1
                      : seed % 4 == 2 && !f->order ? ANY_SIZE
                                                   : NORMAL_4;
                x.at_end = (int)(seed / 2 % 2);
                check_layouts(f, x, seed);
                x.ranges = 1 + (int)(seed % 2);
                check_layouts(f, x, seed);
            }
    }
    TEST("losses with weights, and of distributions") {
        FOR_EACH(f)
        FOR_EACH_ISA(isa)
            for (int targets = 1; targets < 4 && f->kind == LOSS; ++targets, ++seed) {
                axis x = {2,
                          5 + (size_t)targets,
                          seed % 2 ? 19 : 400,
                          seed % 2,
                          (int)(seed % 3),
                          targets,
                          1,
                          NORMAL_4,
                          OUT,
                          seed % 3};
                check_layouts(f, x, seed);
            }
    }
    TEST("rows of many entries, up to the longest; of functions of entries alone, any") {
        FOR_EACH(f)
        FOR_EACH_ISA(isa) {
            const int ranges = (isa + (int)f_i) % 3;
            size_t most = longest_of(f, 0) < 5000 ? longest_of(f, 0) : 5000;
            axis x = {
                1, 3, most, 0, ranges, 0, ranges > 0, isa % 2 && !f->order ? ANY_SIZE : NORMAL_4, OUT, (size_t)isa % 3};
            check_layouts(f, x, 77);
        }
    }
}

/* ==== what is refused ==== */
static call small_call(const function *f, size_t inner) {
    call c = call_of(f, 12, 5, NORMAL_1, 1);
    c.own.index = select_storage;
    c.own.k = 2;
    c.own.gradient = &gradient_storage;
    c.s.inner = inner;
    return c;
}
static void expect(const function *f, const call *c, mmax_status expected, const char *what) {
    mmax_status status = run(f, c);
    CHECK(status == expected, "%s: %s: %s", f->name, what, mmax_status_string(status));
}

static void test_refusals(void) {
    static double place_of_all[4000];
    TEST("strides below cols * inner, sizes that overflow, attention, long rows") {
        FOR_EACH(f) {
            const mmax_attention none = {0, NULL, NULL, 0, 0, NULL, NULL, 0, 0};
            const int ignores = has(f, BY_PLACE) || (f->kind == METRIC && !has(f, PER_HEAD));
            call c;
            for (int r = 0; r < ARRAYS; ++r) {
                for (size_t inner = 4; inner <= 12; inner += 8) {
                    c = small_call(f, inner);
                    *stride_of(f, &c.s, (role)r) = 5 * inner - 1;
                    if (has(f, 1u << r) && !(r == OUT && has(f, HAS_INDEX))) {
                        expect(f, &c, MMAX_ERR_SHAPE, "a stride of cols * inner - 1");
                    }
                }
            }
            c = small_call(f, 4);
            c.t.q = c.array[X];
            c.t.index = NULL;
            c.t.q_stride = 19;
            if (f->kind == LOSS) { expect(f, &c, MMAX_ERR_SHAPE, "a stride of q"); }
            c = small_call(f, SIZE_MAX / 16);
            c.s.rows = SIZE_MAX / 16;
            expect(f, &c, MMAX_ERR_SHAPE, "cols * inner beyond size_t");
            c = small_call(f, 4);
            c.s.attention = &none;
            expect(f, &c, ignores ? MMAX_OK : MMAX_ERR_ATTENTION, "attention");
            if (longest_of(f, 0) != SIZE_MAX) {
                c = small_call(f, 12);
                c.s.cols = longest_of(f, 0) + 1;
                expect(f, &c, MMAX_ERR_SHAPE, "a row that is too long");
            }
            c = small_call(f, 0);
            c.s.rows = 0;
            c.s.inner = 7;
            expect(f, &c, MMAX_OK, "no rows");
        }
    }
    TEST("overlap: blocks of equal stride may interleave, an output is an input or apart") {
        FOR_EACH(f) {
            if (f->kind != FORWARD || !has(f, HAS_X) || has(f, HAS_INDEX)) { continue; }
            call c = small_call(f, 4);
            c.s.x_stride = c.s.y_stride = 40;
            c.array[X] = place_of_all;
            c.array[OUT] = (char *)place_of_all + 20 * f->size;
            expect(f, &c, MMAX_OK, "blocks of 20 in turn");
            c.array[OUT] = (char *)place_of_all + 19 * f->size;
            expect(f, &c, MMAX_ERR_ALIAS, "blocks that touch");
            c.array[OUT] = (char *)place_of_all + f->size;
            expect(f, &c, MMAX_ERR_ALIAS, "rows in turn, within a block");
            c.array[OUT] = place_of_all;
            expect(f, &c, MMAX_OK, "in place");
            c.s.y_stride = 41;
            expect(f, &c, MMAX_ERR_ALIAS, "the same place with another stride");
            c.s.y_stride = 40;
            c.array[OUT] = (char *)place_of_all + 100 * f->size;
            expect(f, &c, MMAX_OK, "behind");
            c.s.inner = 5; /* rows 2 to 3 of the last of three blocks do not exist */
            c.array[OUT] = (char *)place_of_all + 102 * f->size;
            expect(f, &c, MMAX_OK, "behind the last row");
            c.array[OUT] = (char *)place_of_all + 101 * f->size;
            expect(f, &c, MMAX_ERR_ALIAS, "on the last entry of the last row");
        }
    }
    TEST("overlap: a range of the rows of one block, beside another range") {
        FOR_EACH(f) {
            if (f->kind != FORWARD || !has(f, HAS_X) || has(f, HAS_INDEX)) { continue; }
            for (size_t rows = 1; rows <= 12; rows += 11) {
                call c = small_call(f, 24);
                c.s.rows = rows;
                c.array[X] = place_of_all;
                c.array[OUT] = (char *)place_of_all + rows * f->size;
                expect(f, &c, MMAX_OK, "the rows behind");
                c.array[OUT] = (char *)place_of_all + (24 - rows) * f->size;
                expect(f, &c, MMAX_OK, "the rows before, one entry on");
                c.array[OUT] = place_of_all;
                expect(f, &c, MMAX_OK, "in place");
                c.array[OUT] = (char *)place_of_all + (rows - 1 + 24) * f->size;
                expect(f, &c, MMAX_ERR_ALIAS, "the last of these rows, one entry on");
                c.array[OUT] = (char *)place_of_all + (4 * 24 + rows) * f->size;
                expect(f, &c, MMAX_OK, "behind the last entry");
            }
        }
    }
    TEST("overlap: a gradient that is added to is no input, and beside all of them") {
        FOR_EACH(f)
        for (size_t rows = 1; rows <= 12; rows += 11) {
            call c = small_call(f, 0);
            const int adds = f->kind == BACKWARD || f->kind == LOG_BACKWARD || f->kind == LOSS;
            if (!has(f, HAS_OUT) || has(f, HAS_INDEX)) { continue; }
            c.s.rows = rows;
            c.s.accumulate = 1;
            expect(f, &c, MMAX_OK, "gx apart");
            for (int in = GY; in <= X; ++in) {
                c.array[OUT] = c.array[in];
                if (has(f, 1u << in)) { expect(f, &c, adds ? MMAX_ERR_ALIAS : MMAX_OK, "in place"); }
            }
        }
    }
    TEST("overlap: a router's bias has cols entries, whatever inner is") {
        FOR_EACH(f) {
            if (!has(f, HAS_INDEX) || !has(f, HAS_OUT)) { continue; }
            call c = small_call(f, 4);
            c.own.router.bias = place_of_all;
            c.own.index = (uint32_t *)(void *)((char *)place_of_all + 5 * f->size);
            expect(f, &c, MMAX_OK, "index behind the bias");
            c.own.index = (uint32_t *)(void *)((char *)place_of_all + 4 * f->size);
            expect(f, &c, MMAX_ERR_ALIAS, "index on the last entry of the bias");
        }
    }
    TEST("inner 0 and 1 are contiguous rows") {
        FOR_EACH(f)
        for (size_t rows = 1; rows <= 12; rows += 11) {
            static double outs[2][60];
            for (size_t inner = 0; inner < 2; ++inner) {
                call c = small_call(f, inner);
                c.s.rows = rows;
                c.array[OUT] = outs[inner];
                expect(f, &c, MMAX_OK, "inner 0 or 1");
            }
            CHECK(memcmp(outs[0], outs[1], sizeof outs[0]) == 0, "%s: inner 1 gives other bits", f->name);
        }
    }
}

int main(void) {
    make_areas();
    test_bits();
    test_refusals();
    return check_report();
}
