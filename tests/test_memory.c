/*
 * test_memory.c: nothing outside the arrays is read or written. Every array lies between two pages that fault on any
 * access, once ending exactly at the upper page and once starting exactly at the lower one. Entries past ends[r] of
 * the last row lie in the upper page itself. Gaps between strided rows keep their bytes, and inputs keep theirs.
 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#define _DARWIN_C_SOURCE

#define WITH_MORE_FUNCTIONS
#include "function_table.h"

#if defined(__unix__) || defined(__APPLE__)

#    include <setjmp.h>
#    include <signal.h>
#    include <sys/mman.h>
#    include <unistd.h>

enum { GUARDED_BYTES = 1 << 16, GUARD_BYTES = 1 << 16, ROWS = 3, SEVERAL = 21, GAP = 3 };

/* All arrays that a call may touch. */
typedef enum area { A_OUT, A_GY, A_Y, A_X, A_PER_ROW, A_GP, A_PARAMS, A_INDEX, A_LENGTHS, AREAS } area;

static unsigned char *areas[AREAS]; /* GUARDED_BYTES accessible bytes each */

/* The watched part of an area: the array and up to SLACK bytes beside it, and a copy from before the call. */
enum { SLACK = 256 };
static unsigned char *watched[AREAS], before[AREAS][GUARDED_BYTES];
static size_t watched_bytes[AREAS];
static sigjmp_buf after_fault;

static void on_fault(int signal_number) {
    (void)signal_number;
    siglongjmp(after_fault, 1);
}

static int make_areas(void) {
    struct sigaction action;
    for (int a = 0; a < AREAS; ++a) {
        size_t size = GUARDED_BYTES + 2 * GUARD_BYTES;
        void *p = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED || mprotect((char *)p + GUARD_BYTES, GUARDED_BYTES, PROT_READ | PROT_WRITE) != 0) {
            return 0;
        }
        areas[a] = (unsigned char *)p + GUARD_BYTES;
    }
    memset(&action, 0, sizeof action);
    action.sa_handler = on_fault;
    return sigaction(SIGSEGV, &action, NULL) == 0 && sigaction(SIGBUS, &action, NULL) == 0;
}

/* Whether the call comes back without a fault. */
static int survives(const function *f, const call *c, volatile mmax_status *status) {
    if (sigsetjmp(after_fault, 1) != 0) { return 0; }
    *status = f->run(c);
    return 1;
}

/* A copy of `size` bytes in area a: at its end, or at its start. */
static void *guarded(area a, const void *from, size_t size, int at_end) {
    watched_bytes[a] = size + SLACK;
    watched[a] = areas[a] + (at_end ? GUARDED_BYTES - watched_bytes[a] : 0);
    memset(watched[a], 0x6b, watched_bytes[a]);
    memcpy(watched[a] + (at_end ? SLACK : 0), from, size);
    memcpy(before[a], watched[a], watched_bytes[a]);
    return watched[a] + (at_end ? SLACK : 0);
}

/*
 * The rows of c into the guarded areas, `gap` entries between rows. The last row of the inputs holds only `last`
 * entries, so that what lies past its length is in the guard page when the array stands at the end.
 */
static call guard(const function *f, const call *c, size_t gap, const uint32_t *lengths, int at_end) {
    static unsigned char rows[GUARDED_BYTES + GUARD_BYTES];
    call g = *c;
    size_t n = c->s.cols, stride = n + gap, last = lengths ? lengths[c->s.rows - 1] : n;
    for (int r = 0; r < ARRAYS; ++r) {
        size_t entries = (c->s.rows - 1) * stride + (r == OUT || !at_end ? n : last);
        memset(rows, 0x6b, entries * f->size);
        for (size_t row = 0; row < c->s.rows; ++row) {
            memcpy(rows + row * stride * f->size, (const char *)c->array[r] + row * n * f->size, n * f->size);
        }
        g.array[r] = guarded((area)r, rows, entries * f->size, at_end);
        *stride_of(f, &g.s, (role)r) = stride;
    }
    g.per_row = guarded(A_PER_ROW, c->per_row, c->s.rows * sizeof *c->per_row, at_end);
    g.gp = guarded(A_GP, c->gp, sizeof *c->gp, at_end);
    if (c->p) { g.p = guarded(A_PARAMS, c->p, sizeof *c->p, at_end); }
    g.t.index = guarded(A_INDEX, c->t.index, c->s.rows * sizeof *c->t.index, at_end);
    g.s.ends = lengths ? guarded(A_LENGTHS, lengths, c->s.rows * sizeof *lengths, at_end) : NULL;
    return g;
}

/* The bytes that a call may have changed: the rows of its outputs. Everything else is as it was. */
static void check_untouched(const function *f, const call *g) {
    mmax_shape shape = g->s;
    for (int a = 0; a < AREAS; ++a) {
        size_t row_bytes = 0, stride_bytes = 1, rows = g->s.rows, i = 0;
        const unsigned char *start = watched[a];
        if (a == A_OUT && has(f, HAS_OUT)) {
            start = g->array[OUT];
            row_bytes = g->s.cols * f->size;
            stride_bytes = *stride_of(f, &shape, OUT) * f->size;
        } else if (a == A_PER_ROW && (f->kind == LOSS || f->kind == METRIC)) {
            start = (const unsigned char *)g->per_row;
            row_bytes = stride_bytes = sizeof(double);
        } else if (a == A_GP && has(f, HAS_GP)) {
            start = (const unsigned char *)g->gp;
            row_bytes = stride_bytes = sizeof *g->gp;
            rows = 1;
        }
        for (; i < watched_bytes[a]; ++i) {
            size_t from_start = (size_t)(watched[a] + i - start);
            int writable = row_bytes && watched[a] + i >= start && from_start / stride_bytes < rows &&
                           from_start % stride_bytes < row_bytes;
            if (!writable && watched[a][i] != before[a][i]) { break; }
        }
        CHECK(i == watched_bytes[a], AT ": a byte of area %d changed", AT_ARGS(f, g->s.cols), a);
    }
}

/* Logits, some of them masked or, with `all`, all equal. */
static void check_guarded(const function *f, size_t n, size_t rows, size_t gap, const uint32_t *lengths, int at_end,
                          special all) {
    volatile mmax_status status = MMAX_ERR_NULL;
    call c = call_of(f, rows, n, MASKED, 50), g;
    for (size_t i = 0; all != SPECIALS && i < rows * n; ++i) { set_special(f, c.array[X], i, all); }
    for (size_t row = 0; row < rows; ++row) {
        int32_t active = (int32_t)(lengths ? lengths[row] : n);
        index_storage[row] = active ? index_storage[row] % active : -1;
    }
    c.s.ends = lengths;
    make_y(f, &c);
    g = guard(f, &c, gap, lengths, at_end);
    CHECK(survives(f, &g, &status), AT ": fault, rows %u, gap %u, at %s%s", AT_ARGS(f, n), (unsigned)rows,
          (unsigned)gap, at_end ? "the end" : "the start", lengths ? ", lengths" : "");
    CHECK(status == MMAX_OK, AT ": %s", AT_ARGS(f, n), mmax_status_string(status));
    if (n < 20 || n % 16 == 1) { check_untouched(f, &g); }
    if (f->kind != LOSS) { return; }
    g.t.index = NULL;
    g.t.q = g.array[GY];
    g.t.q_stride = g.s.gy_stride;
    CHECK(survives(f, &g, &status), AT ": fault, rows %u, gap %u, at %s%s, soft targets", AT_ARGS(f, n), (unsigned)rows,
          (unsigned)gap, at_end ? "the end" : "the start", lengths ? ", lengths" : "");
}

static void check_length(const function *f, size_t n) {
    for (int at_end = 0; at_end < 2; ++at_end) {
        const uint32_t full[ROWS] = {(uint32_t)n, (uint32_t)n, (uint32_t)n};
        const uint32_t shorter[ROWS] = {(uint32_t)(n / 2), 0, (uint32_t)(n - 1)};
        const uint32_t half[ROWS] = {0, (uint32_t)n, (uint32_t)(n / 2)};
        check_guarded(f, n, 1, 0, NULL, at_end, SPECIALS);
        check_guarded(f, n, ROWS, 0, NULL, at_end, SPECIALS);
        check_guarded(f, n, ROWS, GAP, NULL, at_end, SPECIALS);
        check_guarded(f, n, ROWS, GAP, full, at_end, SPECIALS);
        check_guarded(f, n, ROWS, GAP, shorter, at_end, SPECIALS);
        check_guarded(f, n, ROWS, 0, half, at_end, SPECIALS);
        check_guarded(f, n, 1, 0, shorter, at_end, SPECIALS);
        check_guarded(f, n, 1, 0, NULL, at_end, MINUS_INF);
        check_guarded(f, n, ROWS, 0, half, at_end, MINUS_INF);
        check_guarded(f, n, ROWS, 0, half, at_end, QUIET_NAN);
        check_guarded(f, n, ROWS, 0, half, at_end, PLUS_INF);
        if (n <= 65) { /* short rows may be worked on together */
            uint32_t lengths[SEVERAL];
            for (size_t row = 0; row < SEVERAL; ++row) { lengths[row] = (uint32_t)(n - row * 5 % n); }
            check_guarded(f, n, SEVERAL, 0, lengths, at_end, SPECIALS);
            check_guarded(f, n, SEVERAL, GAP, NULL, at_end, SPECIALS);
        }
        if (n <= 16) { check_guarded(f, n, MAX_ROWS, GAP, NULL, at_end, SPECIALS); }
    }
}

/* An output in place: the input's area holds it, and ends at the guard page. */
static void check_in_place(const function *f, size_t n, role in) {
    volatile mmax_status status = MMAX_ERR_NULL;
    call c = call_of(f, ROWS, n, NORMAL_4, 51), g;
    for (int at_end = 0; at_end < 2; ++at_end) {
        g = guard(f, &c, GAP, NULL, at_end);
        g.array[OUT] = g.array[in];
        CHECK(survives(f, &g, &status), AT ": fault in place", AT_ARGS(f, n));
        CHECK(status == MMAX_OK, AT ": %s", AT_ARGS(f, n), mmax_status_string(status));
        for (size_t row = 0; row + 1 < ROWS; ++row) {
            const unsigned char *gap = (unsigned char *)g.array[in] + (row * (n + GAP) + n) * f->size;
            for (size_t i = 0; i < GAP * f->size; ++i) {
                CHECK(gap[i] == 0x6b, AT ": the gap after row %u changed in place", AT_ARGS(f, n), (unsigned)row);
            }
        }
    }
}

/* A router: every array before or behind a page that faults; weights and index are those of arrays elsewhere. */
static void check_router(const function *f, size_t n, size_t rows, size_t k, int at_end, size_t which) {
    static double bias[400], weights[400];
    static uint32_t index[400];
    volatile mmax_status status = MMAX_ERR_NULL;
    call c = call_of(f, rows, n, MASKED, 53), g;
    fill(f, bias, n, NORMAL_1);
    c.own.k = k;
    c.own.router.gate = (mmax_gate)(which % 4);
    c.own.router.bias = which & 4 ? bias : NULL;
    c.own.router.groups = n % 4 == 0 && which & 8 ? 4 : 0;
    c.own.router.group_k = 2;
    c.array[OUT] = weights;
    c.own.index = index;
    CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
    g = c;
    g.array[X] = guarded(A_X, c.array[X], rows * n * f->size, at_end);
    g.array[OUT] = guarded(A_OUT, c.array[X], rows * k * f->size, at_end);
    g.own.index = guarded(A_INDEX, index, rows * k * sizeof *index, at_end);
    if (which & 4) { g.own.router.bias = guarded(A_Y, bias, n * f->size, at_end); }
    CHECK(survives(f, &g, &status) && status == MMAX_OK, AT ": fault, rows %u, k %u, at %s", AT_ARGS(f, n),
          (unsigned)rows, (unsigned)k, at_end ? "the end" : "the start");
    CHECK(memcmp(g.array[OUT], weights, rows * k * f->size) == 0 &&
              memcmp(g.own.index, index, rows * k * sizeof *index) == 0 &&
              memcmp(watched[A_X], before[A_X], watched_bytes[A_X]) == 0,
          AT ": rows %u, k %u", AT_ARGS(f, n), (unsigned)rows, (unsigned)k);
    for (size_t i = 0; i < SLACK; ++i) { /* before the array, or behind it */
        CHECK(watched[A_OUT][at_end ? i : rows * k * f->size + i] == 0x6b &&
                  watched[A_INDEX][at_end ? i : rows * k * sizeof *index + i] == 0x6b,
              AT ": a byte beside an output", AT_ARGS(f, n));
    }
}

static void test_memory(void) {
    TEST("guard pages before and after every array; gaps, inputs and unused arrays keep their bytes") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa) {
                for (size_t n = 1; n <= 131; n += LENGTH_STEP) { check_length(f, n); }
                check_length(f, 257);
                check_length(f, 1000);
            }
    }
    TEST("guard pages around the arrays of routers") {
        for (size_t i = 0; i < ALL; ++i) {
            const function *f = any_function(i);
            if (!has(f, HAS_INDEX) || !has(f, HAS_OUT)) { continue; }
            FOR_EACH_ISA(isa)
                for (size_t n = 1; n <= 131; n += LENGTH_STEP)
                    for (size_t which = 0; which < 16; ++which) {
                        const size_t rows = 1 + (n + which) % 20, k = 1 + (n + which / 2) % 17;
                        check_router(f, n, rows, k, 0, which);
                        check_router(f, n, rows, k, 1, which);
                        check_router(f, n, 1, k, 1, which);
                    }
        }
    }
    TEST("the same in place") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                for (size_t n = 1; n <= 131; n += LENGTH_STEP)
                    for (int r = GY; r <= X; ++r) {
                        if (has(f, HAS_OUT) && has(f, 1u << r)) { check_in_place(f, n, (role)r); }
                    }
    }
}

int main(void) {
    if (!make_areas()) {
        NOTE("no guard pages to be had: skipped");
        return check_report();
    }
    test_memory();
    return check_report();
}

#else

int main(void) {
    FOR_EACH_FUNCTION(f) { CHECK(f->run != NULL, "%s", f->name); }
    NOTE("no guard pages on this system: skipped");
    return check_report();
}

#endif
