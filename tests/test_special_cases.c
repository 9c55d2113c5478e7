/*
 * test_special_cases.c: the table of special cases, row by row, for every function, type and instruction set.
 */
#define WITH_MORE_FUNCTIONS
#include "function_table.h"

#include <fenv.h>
#if defined(__SSE2__)
#    include <xmmintrin.h>
#endif

static uint64_t expected[MAX_ENTRIES];
static unsigned char masked[MAX_ENTRIES];
static double shadow[ARRAYS][MAX_ENTRIES];

/* Whether entry i does not take part: -inf in a forward function, y = 0 (or its logarithm -inf) in a backward one. */
static int is_masked(const function *f, const call *c, size_t i) {
    if (f->kind == LOG_BACKWARD) { return is_special(f, c->array[Y], i, MINUS_INF); }
    if (f->kind == BACKWARD && !has(f, MASKED_BY_X)) { return magnitude_bits(f, c->array[Y], i) == 0; }
    return is_special(f, c->array[X], i, MINUS_INF);
}

static void note_masks(const function *f, const call *c, size_t n) {
    for (size_t i = 0; i < n; ++i) { masked[i] = (unsigned char)is_masked(f, c, i); }
}

static void expect_output(const function *f, const call *c, size_t n) {
    for (size_t i = 0; i < n; ++i) { expected[i] = get_bits(f, c->array[OUT], i); }
}

static size_t first_difference(const function *f, const void *a, size_t n) {
    size_t i = 0;
    while (i < n && get_bits(f, a, i) == expected[i]) { ++i; }
    return i;
}

/* The first n entries of OUT hold the bits of `expected`. */
static void check_output(const function *f, const call *c, size_t n, const char *what) {
    size_t i = has(f, HAS_OUT) ? first_difference(f, c->array[OUT], n) : n;
    CHECK(i == n, AT ": %s: entry %u is %llx, not %llx", AT_ARGS(f, c->s.cols), what, (unsigned)i,
          (unsigned long long)get_bits(f, c->array[OUT], i), (unsigned long long)expected[i]);
}

static void check_ok(const function *f, const call *c) {
    mmax_status status = f->run(c);
    CHECK(status == MMAX_OK, AT ": %s", AT_ARGS(f, c->s.cols), mmax_status_string(status));
}

static int near_to(const function *f, double a, double b, double ulps) {
    return fabs(a - b) <= ulps * eps_of(f) * (1 + fabs(b)) || bits_of(a) == bits_of(b);
}

static size_t row_start(const function *f, size_t row, size_t cols) { return row * cols * f->size; }

static void *row_of(const function *f, const call *c, role r, size_t row) {
    return (char *)c->array[r] + row_start(f, row, c->s.cols);
}

/* c's row alone; its arrays are those of c. */
static call row_alone(const function *f, const call *c, size_t row, size_t cols) {
    call one = *c;
    for (int r = 0; r < ARRAYS; ++r) { one.array[r] = row_of(f, c, (role)r, row); }
    one.per_row = c->per_row + row;
    one.t.index = c->t.index + row;
    one.s = mmax_row(cols);
    one.s.scale = c->s.scale;
    return one;
}

/* ==== masks ==== */

enum { FIRST, LAST, EVERY_THIRD, ALL_BUT_ONE, RANDOM_HALF, FIRST_HALF, PATTERNS };

static int in_pattern(int pattern, size_t i, size_t n) {
    switch (pattern) {
    case FIRST: return i == 0;
    case LAST: return i == n - 1;
    case EVERY_THIRD: return i % 3 == 1;
    case ALL_BUT_ONE: return i != n / 2;
    case RANDOM_HALF: return random_below(2) == 0;
    default: return i < n / 2;
    }
}

/* Removes the masked entries: a masked row must equal this row, up to the order of additions. */
static size_t compress(const function *f, const call *c, role r, size_t n) {
    size_t kept = 0;
    for (size_t i = 0; i < n; ++i) {
        if (!masked[i]) { set_bits(f, shadow[r], kept++, get_bits(f, c->array[r], i)); }
    }
    return kept;
}

static void check_counts_nowhere(const function *f, size_t n, int pattern) {
    static double compressed_gx[MAX_ENTRIES];
    call c = call_of(f, 1, n, NORMAL_4, (uint64_t)pattern);
    call whole;
    mmax_multimax_grads whole_gp, zero_gp;
    size_t kept = 0;
    for (size_t i = 0; i < n; ++i) {
        masked[i] = (unsigned char)in_pattern(pattern, i, n);
        if (masked[i]) {
            set_special(f, c.array[X], i, MINUS_INF);
        } else {
            index_storage[0] = (int32_t)i;
        }
    }
    memset(&zero_gp, 0, sizeof zero_gp);
    c.t.label_smoothing = 0.1;
    for (int r = GY; r <= X; ++r) { kept = compress(f, &c, (role)r, n); }
    if (kept == 0) { return; }
    make_y(f, &c);
    check_ok(f, &c);
    whole = c;
    whole_gp = gp_storage;
    row_storage[1] = row_storage[0];

    gp_storage = zero_gp;
    c.array[OUT] = compressed_gx;
    c.array[GY] = shadow[GY];
    c.array[Y] = shadow[Y];
    c.array[X] = shadow[X];
    c.s = mmax_row(kept);
    index_storage[0] = (int32_t)(kept - 1); /* the last active entry was the target */
    make_y(f, &c);
    check_ok(f, &c);

    for (size_t i = 0, k = 0; has(f, HAS_OUT) && i < n; ++i) {
        if (masked[i]) {
            CHECK(get_bits(f, whole.array[OUT], i) == masked_bits(f), AT ": masked entry %u is %g", AT_ARGS(f, n),
                  (unsigned)i, get(f, whole.array[OUT], i));
        } else {
            double a = get(f, whole.array[OUT], i), b = get(f, c.array[OUT], k++);
            CHECK(near_to(f, a, b, 100), AT ": entry %u is %g, without the masked ones %g", AT_ARGS(f, n), (unsigned)i,
                  a, b);
        }
    }
    CHECK(near_to(f, row_storage[1], row_storage[0], 100) ||
              (is_nan_double(row_storage[1]) && is_nan_double(row_storage[0])),
          AT ": %g, without the masked ones %g", AT_ARGS(f, n), row_storage[1], row_storage[0]);
    for (size_t k = 0; k < sizeof gp_storage / sizeof(double); ++k) {
        double a, b;
        memcpy(&a, (const char *)&whole_gp + k * sizeof a, sizeof a);
        memcpy(&b, (const char *)&gp_storage + k * sizeof b, sizeof b);
        CHECK(near_to(f, a, b, 2000), AT ": gp %u is %g, without the masked entries %g", AT_ARGS(f, n), (unsigned)k, a,
              b);
    }
}

static void test_masks(void) {
    TEST("x = -inf: y = 0 and gx = 0 exactly, and the entry counts nowhere; seglu keeps -inf") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n) {
                    for (int pattern = 0; pattern < PATTERNS; ++pattern) { check_counts_nowhere(f, n, pattern); }
                }
    }
}

/* ==== lengths ==== */

/* Four rows, one of them empty, or more that are not: whole groups of any width and one row; or a part of a group, whose
 * rows end alike from the seventh on, six at a time. */
enum { GROUPS_AND_ONE = 17, SEVERAL = 23 };
static void check_lengths(const function *f, size_t n, size_t rows) {
    uint32_t lengths[SEVERAL] = {(uint32_t)n, (uint32_t)(n / 2), 0, (uint32_t)(n - 1)};
    call c = call_of(f, rows, n, NORMAL_4, 5);
    c.s.ends = lengths;
    for (size_t row = 0; row < rows; ++row) {
        if (rows > 4) { lengths[row] = (uint32_t)(n - (rows == SEVERAL && row >= 6 ? row / 6 : row) * 5 % n); }
        index_storage[row] = lengths[row] ? (int32_t)random_below(lengths[row]) : -1;
    }
    make_y(f, &c);
    for (size_t row = 0; row < rows; ++row) {
        for (size_t i = lengths[row]; i < n; ++i) {
            for (int r = 0; r < ARRAYS; ++r) {
                set_special(f, row_of(f, &c, (role)r, row), i, row == 1 ? PLUS_INF : QUIET_NAN);
            }
        }
    }
    check_ok(f, &c);
    for (size_t row = 0; row < rows; ++row) {
        call one = row_alone(f, &c, row, lengths[row]);
        double in_batch = row_storage[row];
        for (size_t i = lengths[row]; i < n; ++i) { expected[i] = empty_bits(f); }
        for (size_t i = 0; i < lengths[row]; ++i) { expected[i] = get_bits(f, one.array[OUT], i); }
        one.s.cols = n;
        check_output(f, &one, n, "past the length");
        one.s.cols = lengths[row];
        if (lengths[row] == 0) {
            CHECK(f->kind == METRIC ? is_nan_double(in_batch) : bits_of(in_batch) == 0, AT ": %g for an empty row",
                  AT_ARGS(f, n), in_batch);
            continue;
        }
        check_ok(f, &one);
        check_output(f, &one, lengths[row], "a row of that length alone");
        CHECK(bits_of(in_batch) == bits_of(row_storage[row]), AT ": %g, alone %g", AT_ARGS(f, n), in_batch,
              row_storage[row]);
    }
}

static void test_lengths(void) {
    TEST("entries past ends[r] are never read; y and gx are 0 there, -inf in the log functions") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n) {
                    check_lengths(f, n, 4);
                    if (n <= 129) {
                        check_lengths(f, n, 3);
                        check_lengths(f, n, GROUPS_AND_ONE);
                        check_lengths(f, n, SEVERAL);
                    }
                }
    }
    TEST("the loss of one row with a length: the same without a gradient") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n)
                    if (f->kind == LOSS && n > 1) {
                        call c = call_of(f, 1, n, NORMAL_4, 22);
                        const uint32_t length = (uint32_t)(n / 2);
                        double loss;
                        c.s.ends = &length;
                        index_storage[0] = 0;
                        check_ok(f, &c);
                        loss = row_storage[0];
                        c.array[OUT] = NULL;
                        check_ok(f, &c);
                        CHECK(bits_of(row_storage[0]) == bits_of(loss), AT ": %g, with a gradient %g", AT_ARGS(f, n),
                              row_storage[0], loss);
                    }
    }
}

/* ==== rows with no active entry ==== */

static void test_no_active_entry(void) {
    TEST("a row with no active entry: y = 0 and gx = 0, -inf in the log functions, and nothing is added to gp") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n) {
                    call c = call_of(f, 3, n, NORMAL_4, 6);
                    mmax_multimax_grads before;
                    for (size_t i = 0; i < 3 * n; ++i) {
                        set_special(f, c.array[X], i, MINUS_INF);
                        set_special(f, c.array[GY], i, i % 2 ? QUIET_NAN : PLUS_INF);
                        expected[i] = masked_bits(f);
                    }
                    make_y(f, &c);
                    index_storage[1] = -1;
                    gp_storage.b[0] = gp_storage.d[1] = 1.25;
                    before = gp_storage;
                    check_ok(f, &c);
                    check_output(f, &c, 3 * n, "masked row");
                    CHECK(memcmp(&before, &gp_storage, sizeof before) == 0, AT ": gp changed", AT_ARGS(f, n));
                    for (size_t row = 0; row < 3; ++row) {
                        CHECK(f->kind == METRIC             ? is_nan_double(row_storage[row])
                              : f->kind != LOSS || row == 1 ? bits_of(row_storage[row]) == 0
                                                            : bits_of(row_storage[row]) == 0x7ff0000000000000,
                              AT ": row %u gives %g", AT_ARGS(f, n), (unsigned)row, row_storage[row]);
                    }
                }
    }
}

/* ==== NaN and +inf ==== */

/* Counts the parameters' gradients that are NaN. */
static int count_nan_gp(const function *f) {
    int count = 0;
    for (int i = 0; i < f->order; ++i) {
        count += is_nan_double(gp_storage.t_b[i]) + is_nan_double(gp_storage.t_d[i]);
        count += is_nan_double(gp_storage.b[i]) + is_nan_double(gp_storage.d[i]);
    }
    return count;
}

/* Whether gx is 0 wherever y is, although logits have a say. */
static int is_unweighted(const function *f) { return has(f, HAS_Y) && f->order > 0; }

/* Entry `at` of row 1 of role r becomes special: the result is that of `clean`, but for row 1, or entry `at` alone. */
static void check_poisoned(const function *f, const call *c, role r, size_t at, special which,
                           const double *clean_value) {
    size_t n = c->s.cols, i = n + at;
    uint64_t before = get_bits(f, c->array[r], i);
    set_special(f, c->array[r], i, which);
    memset(&gp_storage, 0, sizeof gp_storage);
    check_ok(f, c);
    for (size_t k = 0; k < n; ++k) {
        if (!has(f, ELEMENTWISE) || k == at) {
            shadow[OUT][k] = 0;
            set_bits(f, shadow[OUT], k, expected[n + k]);
            expected[n + k] =
                masked[n + k] && (k != at || is_unweighted(f)) ? masked_bits(f) : special_bits(f, QUIET_NAN);
        }
    }
    check_output(f, c, 3 * n, "NaN row");
    for (size_t k = 0; k < n; ++k) {
        if (!has(f, ELEMENTWISE) || k == at) { expected[n + k] = get_bits(f, shadow[OUT], k); }
    }
    if (has(f, HAS_GP)) {
        int nan = count_nan_gp(f);
        CHECK(nan == 4 * f->order, AT ": a NaN at %u makes %d gradients of gp NaN", AT_ARGS(f, n), (unsigned)at, nan);
    }
    if (f->kind == LOSS || f->kind == METRIC) {
        CHECK(is_nan_double(row_storage[1]), AT ": a NaN at %u gives %g", AT_ARGS(f, n), (unsigned)at, row_storage[1]);
        CHECK(bits_of(row_storage[0]) == bits_of(clean_value[0]) && bits_of(row_storage[2]) == bits_of(clean_value[2]),
              AT ": other rows changed", AT_ARGS(f, n));
    }
    set_bits(f, c->array[r], i, before);
}

static void poison_every_position(const function *f, size_t n, law l, double scale) {
    call c = call_of(f, 3, n, l, 7);
    double clean_value[3];
    size_t step = n > 131 ? 37 : 1;
    c.s.scale = scale;
    make_y(f, &c);
    check_ok(f, &c);
    memcpy(clean_value, row_storage, sizeof clean_value);
    if (has(f, HAS_OUT)) { expect_output(f, &c, 3 * n); }
    note_masks(f, &c, 3 * n);
    for (size_t k = 0; k < n; k += step) {
        size_t at = n - 1 - k;
        for (int r = GY; r <= X; ++r) {
            special which = (special)((at + 3 * n + (size_t)r) % MINUS_INF);
            int backward = f->kind == BACKWARD || f->kind == LOG_BACKWARD;
            if (!has(f, 1u << r) || (masked[n + at] && (r == X ? backward && !is_unweighted(f) : backward || r == Y))) {
                continue;
            }
            if (r == GY && has(f, HAS_GRADIENT) && magnitude_bits(f, c.array[Y], n + at) == 0) { continue; }
            check_poisoned(f, &c, (role)r, at, f->kind == METRIC ? (special)(which % PLUS_INF) : which, clean_value);
        }
    }
}

static void test_nan_rows(void) {
    TEST("NaN or +inf in an active entry: the row's active entries are the quiet NaN, other rows untouched") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n) { poison_every_position(f, n, NORMAL_4, 1); }
    }
    TEST("the same in rows that hold masks: masked entries stay masked, and NaN wins over a masked target") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n) { poison_every_position(f, n, MASKED, 1); }
    }
    TEST("the same where scale is so small that every finite score is near to 0") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                for (size_t n = 2; n < 40; n += 7) { poison_every_position(f, n, MASKED, ldexp(1, -60)); }
    }
    TEST("the same where every finite score is beyond T's range") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                for (size_t n = 2; n < 300; n += n < 40 ? 1 : 37) {
                    size_t at = random_below(n), wrong = 0;
                    call c = call_of(f, 1, n, EQUAL, 8);
                    if (!has(f, PROBABILITY) && f->kind != LOGARITHM && f->kind != LOSS) { continue; }
                    for (size_t i = 0; i < n; ++i) { set(f, c.array[X], i, -0.9 * largest(f)); }
                    set_special(f, c.array[X], at, QUIET_NAN);
                    c.s.scale = 4;
                    check_ok(f, &c);
                    for (size_t i = 0; i < n; ++i) { wrong += !is_special(f, c.array[OUT], i, QUIET_NAN); }
                    CHECK(!wrong, AT ": NaN at %u, %u entries are not", AT_ARGS(f, n), (unsigned)at, (unsigned)wrong);
                }
    }
    TEST("gp of a NaN row does not depend on gx, which may be left out") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n)
                    if (has(f, HAS_GP)) {
                        call c = call_of(f, 1, n, NORMAL_4, 9);
                        int nan;
                        c.array[OUT] = NULL;
                        set_special(f, c.array[X], n / 2, QUIET_NAN);
                        check_ok(f, &c);
                        nan = count_nan_gp(f);
                        CHECK(has(f, ELEMENTWISE) ? nan > 0 : nan == 4 * f->order, AT ": %d gradients of gp are NaN",
                              AT_ARGS(f, n), nan);
                    }
    }
}

/* ==== backward ==== */

/* Masked entries hold 0, others what is expected, and gp what it was, but for roundings. */
static void check_near(const function *f, const call *c, const double *wanted, size_t n,
                       const mmax_multimax_grads *gp) {
    double most = 1, before[8], after[8];
    for (size_t i = 0; i < n; ++i) { most = masked[i] ? most : fmax(most, fabs(get(f, c->array[GY], i))); }
    for (size_t i = 0; has(f, HAS_OUT) && i < n; ++i) {
        double got = get(f, c->array[OUT], i), want = wanted[i];
        CHECK(masked[i] ? get_bits(f, c->array[OUT], i) == 0 : fabs(got - want) <= 64 * eps_of(f) * most,
              AT ": gy of masked entries: entry %u is %.9g, not %.9g", AT_ARGS(f, n), (unsigned)i, got, want);
    }
    memcpy(before, gp, sizeof before);
    memcpy(after, &gp_storage, sizeof after);
    for (int k = 0; k < 8; ++k) {
        CHECK(fabs(after[k] - before[k]) <= 64 * eps_of(f) * (fabs(before[k]) + 1000 * most),
              AT ": gy of masked entries: gp[%d] is %.9g, not %.9g", AT_ARGS(f, n), k, after[k], before[k]);
    }
}

static void test_backward(void) {
    static double wanted[MAX_ENTRIES];
    static const law laws[] = {MASKED, NORMAL_32, ONE_HOT, EQUAL};
    TEST("backward: where y = 0 (tanhmax, seglu: where x = -inf), gx = 0, gp gets nothing and gy is not used") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n)
                    for (size_t l = 0; l < COUNT(laws); ++l) {
                        call c = call_of(f, 1, n, laws[l], 8);
                        mmax_multimax_grads zero_gy;
                        if (!has(f, HAS_GY)) { continue; }
                        note_masks(f, &c, n);
                        for (size_t i = 0; i < n; ++i) {
                            if (masked[i]) { set_bits(f, c.array[GY], i, 0); }
                        }
                        check_ok(f, &c);
                        zero_gy = gp_storage;
                        memset(&gp_storage, 0, sizeof gp_storage);
                        for (size_t i = 0; i < n; ++i) {
                            wanted[i] = has(f, HAS_OUT) ? get(f, c.array[OUT], i) : 0;
                            if (masked[i]) { set_special(f, c.array[GY], i, (special)random_below(SPECIALS)); }
                        }
                        check_ok(f, &c);
                        check_near(f, &c, wanted, n, &zero_gy);
                    }
    }
    TEST("backward: where y = -0, gx = 0, also in a row with NaN") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n)
                    if (f->kind == BACKWARD && has(f, HAS_Y) && !has(f, MASKED_BY_X) && n > 1) {
                        call c = call_of(f, 1, n, NORMAL_1, 21);
                        for (size_t i = 0; i < n; i += 2) { set(f, c.array[Y], i, -0.0); }
                        for (int nan = 0; nan < 2; ++nan) {
                            if (nan) { set_special(f, c.array[GY], 1, QUIET_NAN); }
                            check_ok(f, &c);
                            for (size_t i = 0; i < n; i += 2) {
                                CHECK(get_bits(f, c.array[OUT], i) == 0, AT ": entry %u is %g, NaN %d", AT_ARGS(f, n),
                                      (unsigned)i, get(f, c.array[OUT], i), nan);
                            }
                        }
                    }
    }
    TEST("backward: where y = 0, gx = 0, however steep sigma is there") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n)
                    if (f->kind == BACKWARD && f->order == 2 && has(f, HAS_Y)) {
                        const double large = f->size == 4 ? 1e30 : 1e200; /* its square is infinite */
                        call c = call_of(f, 1, n, NORMAL_1, 21);
                        mmax_multimax_params p = mmax_multimax_identity(2);
                        p.t_b[1] = p.b[1] = large;
                        c.p = &p;
                        for (size_t i = 0; i < n; i += 2) { set_bits(f, c.array[Y], i, 0); }
                        check_ok(f, &c);
                        for (size_t i = 0; i < n; i += 2) {
                            CHECK(get_bits(f, c.array[OUT], i) == 0, AT ": entry %u is %g", AT_ARGS(f, n), (unsigned)i,
                                  get(f, c.array[OUT], i));
                        }
                    }
    }
}

/* ==== losses ==== */

static void test_losses(void) {
    TEST("an ignored row gives loss 0 and gradient 0, whatever it holds; gp gets nothing") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n)
                    if (f->kind == LOSS) {
                        mmax_multimax_grads without;
                        call c = call_of(f, 2, n, NORMAL_4, 9), first = c;
                        first.s.rows = 1;
                        check_ok(f, &first);
                        expect_output(f, &c, 2 * n);
                        without = gp_storage;
                        memset(&gp_storage, 0, sizeof gp_storage);
                        for (size_t i = n; i < 2 * n; ++i) {
                            set_special(f, c.array[X], i, (special)random_below(SPECIALS));
                            expected[i] = 0;
                        }
                        index_storage[1] = (int32_t)(random_bits() | 0x80000000u);
                        row_storage[1] = 1;
                        fill(f, c.array[OUT], 2 * n, NORMAL_1);
                        check_ok(f, &c);
                        check_output(f, &c, 2 * n, "ignored row");
                        CHECK(bits_of(row_storage[1]) == 0, AT ": loss %g", AT_ARGS(f, n), row_storage[1]);
                        CHECK(memcmp(&without, &gp_storage, sizeof without) == 0, AT ": gp differs", AT_ARGS(f, n));
                    }
    }
    TEST("a masked target: loss +inf, the gradient is y - q at active entries and 0 at masked ones") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n)
                    if (f->kind == LOSS) {
                        call c = call_of(f, 1, n, NORMAL_4, 10), y;
                        size_t target = (size_t)index_storage[0];
                        set_special(f, c.array[X], target, MINUS_INF);
                        y = c;
                        y.array[OUT] = y.array[Y];
                        CHECK(f->forward(&y) == MMAX_OK, AT, AT_ARGS(f, n));
                        check_ok(f, &c);
                        CHECK(bits_of(row_storage[0]) == 0x7ff0000000000000, AT ": loss %g", AT_ARGS(f, n),
                              row_storage[0]);
                        CHECK(get_bits(f, c.array[OUT], target) == 0, AT ": gradient %g", AT_ARGS(f, n),
                              get(f, c.array[OUT], target));
                        for (size_t i = 0; !has(f, HAS_GP) && i < n; ++i) {
                            double a = get(f, c.array[OUT], i), b = get(f, c.array[Y], i);
                            CHECK(near_to(f, a, b, 20), AT ": gradient %u is %g, y - q is %g", AT_ARGS(f, n),
                                  (unsigned)i, a, b);
                        }
                    }
    }
}

/* ==== rows = 0 or cols = 0 ==== */

static void test_nothing_to_do(void) {
    TEST("rows = 0 or cols = 0: MMAX_OK before any other check, nothing touched but what belongs to a row, pointers "
         "may be NULL") {
        static const size_t shapes[][2] = {{0, 0}, {0, 5}, {5, 0}, {0, SIZE_MAX}, {SIZE_MAX, 0}};
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                for (size_t k = 0; k < COUNT(shapes); ++k) {
                    const uint32_t lengths[5] = {9, 9, 9, 9, 9};
                    double four[ARRAYS] = {1, 2, 3, 4};
                    const int by_row = shapes[k][0] > 0 && (f->kind == LOSS || f->kind == METRIC);
                    mmax_multimax_params bad = mmax_multimax_identity(7);
                    mmax_status status = by_row && shapes[k][0] > 5 ? MMAX_ERR_SHAPE : MMAX_OK;
                    call c;
                    memset(&c, 0, sizeof c);
                    c.s.rows = shapes[k][0];
                    c.s.cols = shapes[k][1];
                    c.s.scale = -1;
                    c.t.label_smoothing = 5;
                    CHECK(f->run(&c) == MMAX_OK, "%s with NULL pointers, shape %u", f->name, (unsigned)k);
                    memset(row_storage, 0x5a, sizeof row_storage);
                    memset(&gp_storage, 0x5a, sizeof gp_storage);
                    memcpy(shadow[0], row_storage, sizeof row_storage);
                    memcpy(shadow[1], &gp_storage, sizeof gp_storage);
                    for (int r = 0; r < ARRAYS; ++r) { c.array[r] = four; /* all overlap */ }
                    c.per_row = row_storage;
                    c.gp = &gp_storage;
                    c.p = &bad;
                    c.epsilon = -3;
                    c.reference = -3;
                    for (size_t r = 0; r < 5; ++r) { index_storage[r] = -1 - (int32_t)r; }
                    c.t.index = index_storage;
                    c.s.ends = lengths;
                    c.s.x_stride = c.s.y_stride = 1;
                    if (by_row && status == MMAX_OK) {
                        index_storage[3] = 0;
                        CHECK(f->run(&c) == (f->kind == LOSS ? MMAX_ERR_TARGETS : MMAX_OK), "%s: a class", f->name);
                        index_storage[3] = -1;
                    }
                    CHECK(f->run(&c) == status, "%s with bad arguments, shape %u", f->name, (unsigned)k);
                    for (size_t r = 0; by_row && status == MMAX_OK && r < 5; ++r) {
                        CHECK(bits_of(row_storage[r]) == (f->kind == LOSS ? 0 : 0x7ff8000000000000), "%s: %g a row",
                              f->name, row_storage[r]);
                        row_storage[r] = shadow[0][r];
                    }
                    CHECK(four[0] == 1 && four[1] == 2 && four[2] == 3 && four[3] == 4, "%s: an array changed",
                          f->name);
                    CHECK(memcmp(shadow[0], row_storage, sizeof row_storage) == 0, "%s: values per row changed",
                          f->name);
                    CHECK(memcmp(shadow[1], &gp_storage, sizeof gp_storage) == 0, "%s: gp changed", f->name);
                }
    }
    TEST("for rows = 1 the strides do not matter; strides of arrays that a call does not have are ignored") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n) {
                    call c = call_of(f, 1, n, NORMAL_4, 11);
                    check_ok(f, &c);
                    expect_output(f, &c, n);
                    c.s.x_stride = c.s.y_stride = c.s.gx_stride = c.s.gy_stride = 1;
                    check_ok(f, &c);
                    check_output(f, &c, n, "stride 1");
                    c.s.x_stride = c.s.y_stride = c.s.gx_stride = c.s.gy_stride = SIZE_MAX;
                    check_ok(f, &c);
                    check_output(f, &c, n, "stride SIZE_MAX");

                    c = call_of(f, 2, n, NORMAL_4, 11);
                    check_ok(f, &c);
                    expect_output(f, &c, 2 * n);
                    c.s.x_stride = c.s.y_stride = c.s.gx_stride = c.s.gy_stride = n == 1 ? SIZE_MAX : 1;
                    for (int r = 0; r < ARRAYS; ++r) {
                        if (has(f, 1u << r)) { *stride_of(f, &c.s, (role)r) = 0; }
                    }
                    check_ok(f, &c);
                    check_output(f, &c, 2 * n, "foreign strides");
                }
    }
}

/* ==== the mean of a masked row ==== */

static void test_masked_mean(void) {
    TEST("evsoftmax: the mean is that of the active entries, also where their sum overflows") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                for (size_t n = 6; f->kind == FORWARD && has(f, HAS_EPSILON) && f->epsilon == 0 && n < 300; n += 33) {
                    for (int large = 0; large < 2; ++large) {
                        const double unit = large ? ldexp(1, 60) : 1;
                        call c = call_of(f, 1, n, EQUAL, 13);
                        size_t above = 0;
                        for (size_t i = 0; i < n; ++i) {
                            set(f, c.array[X], i, (i % 3 == 0 ? 0.9 : 0.5) * unit);
                            above += i % 3 == 0;
                            if (i % 3 == 2) { set_special(f, c.array[X], i, MINUS_INF); }
                        }
                        c.s.scale = 1 / unit;
                        check_ok(f, &c);
                        for (size_t i = 0; i < n; ++i) {
                            double y = get(f, c.array[OUT], i) * (double)above;
                            CHECK(i % 3 == 0 ? fabs(y - 1) <= 8 * eps_of(f) : y == 0, AT ": y[%u] = %.17g of 1 / %u",
                                  AT_ARGS(f, n), (unsigned)i, get(f, c.array[OUT], i), (unsigned)above);
                        }
                    }
                }
    }
}

/* ==== weights of masked entries ==== */

static void test_masked_weights(void) {
    TEST("backward with the logits: y counts nowhere where they are masked") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                for (size_t n = 4; has(f, HAS_X) && has(f, HAS_Y) && n < 200; n += 15) {
                    for (size_t rows = 1; rows <= 17; rows += 16) {
                        static uint64_t without_them[17 * 200];
                        call c = call_of(f, rows, n, MASKED, 14);
                        check_ok(f, &c);
                        for (size_t i = 0; i < rows * n; ++i) {
                            without_them[i] = get_bits(f, c.array[OUT], i);
                            if (is_special(f, c.array[X], i, MINUS_INF)) {
                                if (n % 2) {
                                    set(f, c.array[Y], i, 0.25);
                                } else {
                                    set_special(f, c.array[Y], i, i % 2 ? QUIET_NAN : PLUS_INF);
                                }
                            }
                        }
                        check_ok(f, &c);
                        for (size_t i = 0; i < rows * n; ++i) {
                            CHECK(get_bits(f, c.array[OUT], i) == without_them[i], AT ": entry %u of %u rows is %g",
                                  AT_ARGS(f, n), (unsigned)i, (unsigned)rows, get(f, c.array[OUT], i));
                        }
                    }
                }
    }
}

/* ==== all entries equal, values of any size ==== */

/* MultiMax with t = 1: huge scores pass through unchanged. The kinks are as far out as they can be. */
static mmax_multimax_params far_identity(const function *f) {
    mmax_multimax_params p = mmax_multimax_identity(f->order);
    p.b[0] = p.d[1] = 0.9 * largest(f);
    p.b[1] = p.d[0] = -0.9 * largest(f);
    return p;
}

/* gx of equal weights, which is gy less its mean over n, with gy up to the largest number. The test itself
 * counts in units of 2^512, since not every long double has more range. A backward function whose weights differ
 * needs a line here. */
static void check_large_gradient(const function *f, size_t n) {
    const int whole = strncmp(f->name, "sparsemax", 9) == 0 || f->kind == LOG_BACKWARD;
    const double unit = f->size == 4 ? 1 : ldexp(1, -512);
    call c = call_of(f, 1, n, EQUAL, 15);
    double mean = 0;
    double weight = whole ? 1 : 1 / (double)n;
    weight = strncmp(f->name, "entmax15", 8) == 0 ? sqrt(weight) : weight;
    weight = strncmp(f->name, "entmax_", 7) == 0 ? pow(weight, 2 - f->epsilon) : weight;
    weight *= strncmp(f->name, "sigsoftmax", 10) == 0 ? 1 + 1 / (1 + exp(0.0125)) : 1;
    if (has(f, MASKED_BY_X)) { return; }
    c.s.scale = 0.125;
    for (size_t i = 0; i < n; ++i) {
        set(f, c.array[GY], i, (2 * random_uniform() - 1) * largest(f));
        mean += get(f, c.array[GY], i) * unit / (double)n;
    }
    check_ok(f, &c);
    for (size_t i = 0; i < n; ++i) {
        const double exact = (get(f, c.array[GY], i) * unit - mean) / 8 * weight;
        const double got = get(f, c.array[OUT], i) * unit;
        CHECK(fabs(exact) > largest(f) * unit || fabs(got - exact) <= 1e-6 * (largest(f) * unit),
              AT ": entry %u is %g, not %g, times %g", AT_ARGS(f, n), (unsigned)i, got, exact, 1 / unit);
    }
}

static void test_values(void) {
    TEST("all entries equal: softmax, sparsemax, entmax15, evsoftmax, multimax give 1/n each") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n)
                    if (has(f, PROBABILITY) && !has(f, SELECTS)) {
                        const double values[] = {0,
                                                 0.1,
                                                 -7.3,
                                                 1.0 / 3,
                                                 1e-30,
                                                 -1e-30,
                                                 12345.678,
                                                 1e8,
                                                 0.9 * largest(f),
                                                 -0.9 * largest(f),
                                                 largest(f),
                                                 -largest(f),
                                                 smallest_normal(f) / 4};
                        for (size_t k = 0; k < COUNT(values); ++k) {
                            call c = call_of(f, 1, n, EQUAL, 12);
                            mmax_multimax_params p = far_identity(f);
                            if (fabs(values[k]) > 1e9) { c.p = &p; }
                            for (size_t i = 0; i < n; ++i) { set(f, c.array[X], i, values[k]); }
                            check_ok(f, &c);
                            for (size_t i = 0; i < n; ++i) {
                                double y = get(f, c.array[OUT], i) * (double)n;
                                CHECK(fabs(y - 1) <= 8 * eps_of(f), AT ": x = %g: n * y[%u] = %.17g", AT_ARGS(f, n),
                                      values[k], (unsigned)i, y);
                            }
                        }
                    }
    }
    TEST("values of any size are finite, without overflow") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n)
                    for (int far = 0; far < 2; ++far) {
                        call c = call_of(f, 1, n, ANY_SIZE, 13);
                        mmax_multimax_params p = far_identity(f);
                        int logarithm = f->kind == LOGARITHM || f->kind == LOSS;
                        if (!far && (!f->order || logarithm)) { continue; }
                        if (f->size == 8 && has(f, HAS_GRADIENT) && has(f, HAS_X)) { continue; /* not promised */ }
                        c.p = far ? &p : c.p;
                        c.reference = 0.1;
                        /* logarithms: the difference of two scores must be representable */
                        for (size_t i = 0; (logarithm || f->kind == LOG_BACKWARD) && i < n; ++i) {
                            set(f, c.array[X], i, 0.4 * get(f, c.array[X], i));
                        }
                        make_y(f, &c);
                        check_ok(f, &c);
                        for (size_t i = 0; has(f, HAS_OUT) && i < n; ++i) {
                            if (f->kind == FORWARD && has(f, ELEMENTWISE) && !far) {
                                continue; /* sigma itself may overflow */
                            }
                            CHECK(is_finite_at(f, c.array[OUT], i), AT ": entry %u is %g", AT_ARGS(f, n), (unsigned)i,
                                  get(f, c.array[OUT], i));
                        }
                        CHECK(f->kind != LOSS || (bits_of(row_storage[0]) & 0x7ff0000000000000) != 0x7ff0000000000000,
                              AT ": loss %g", AT_ARGS(f, n), row_storage[0]);
                    }
    }
    TEST("a gradient of f32 whose gy are the largest number is finite, and 0 where x = -inf") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                for (size_t n = 6; n <= 81; ++n) { /* twice each length, for either sign */
                    const size_t cols = n / 2;
                    call c = call_of(f, 1, cols, MASKED, cols);
                    size_t wrong = 0;
                    if (f->kind != BACKWARD || f->size == 8 || has(f, ELEMENTWISE)) { break; }
                    for (size_t i = 0; i < cols; ++i) { set(f, c.array[GY], i, n % 2 ? largest(f) : -largest(f)); }
                    check_ok(f, &c);
                    for (size_t i = 0; i < cols; ++i) {
                        int masked_here = is_special(f, c.array[X], i, MINUS_INF);
                        wrong += masked_here ? get_bits(f, c.array[OUT], i) != 0 : !is_finite_at(f, c.array[OUT], i);
                    }
                    CHECK(wrong == 0, AT ": %u entries", AT_ARGS(f, cols), (unsigned)wrong);
                }
    }
    TEST("a gradient whose gy are of any size and either sign is finite where it is not beyond the type") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n)
                    if ((f->kind == BACKWARD || f->kind == LOG_BACKWARD) && f->order == 0) {
                        check_large_gradient(f, n);
                    }
    }
    TEST("NaN far behind in a row of several blocks: every entry is NaN") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                if ((f->kind == FORWARD || f->kind == LOGARITHM || f->kind == LOSS) && !has(f, ELEMENTWISE)) {
                    enum { LONG_ROW = 5000 };
                    call c = call_of(f, 1, LONG_ROW, NORMAL_1, 17);
                    size_t others = 0;
                    set_special(f, c.array[X], LONG_ROW - 99, QUIET_NAN);
                    check_ok(f, &c);
                    for (size_t i = 0; i < LONG_ROW; ++i) { others += !is_special(f, c.array[OUT], i, QUIET_NAN); }
                    CHECK(others == 0, AT ": %u entries are not NaN", AT_ARGS(f, LONG_ROW), (unsigned)others);
                }
    }
    TEST("a target whose sigma overflows to -inf: a finite loss, and a gradient of -scale") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                if (f->kind == LOSS && f->order) {
                    call c = call_of(f, 1, 20, NORMAL_1, 18);
                    mmax_multimax_params p = mmax_multimax_identity(f->order);
                    c.p = &p;
                    c.s.scale = 2;
                    index_storage[0] = 3;
                    set(f, c.array[X], 3, -largest(f));
                    check_ok(f, &c);
                    CHECK(get(f, c.array[OUT], 3) == -2 && row_storage[0] > largest(f) / 2 && row_storage[0] <= DBL_MAX,
                          AT ": gx %g, loss %g", AT_ARGS(f, 20), get(f, c.array[OUT], 3), row_storage[0]);
                }
    }
    TEST("gp of an absent term is finite where its sum overflows") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                if (has(f, HAS_GP) && has(f, ELEMENTWISE)) {
                    call c = call_of(f, 1, 20, EQUAL, 16);
                    mmax_multimax_params p = mmax_multimax_identity(f->order);
                    c.p = &p;
                    for (size_t i = 0; i < 20; ++i) {
                        set(f, c.array[X], i, (i % 2 ? 0.1 : -0.1) * largest(f));
                        set(f, c.array[GY], i, 0.1 * largest(f));
                    }
                    check_ok(f, &c);
                    for (int k = 0; k < 2; ++k) {
                        CHECK(bits_of(gp_storage.b[k]) == 0 && bits_of(gp_storage.d[k]) == 0, AT ": b %g, d %g",
                              AT_ARGS(f, 20), gp_storage.b[k], gp_storage.d[k]);
                    }
                }
    }
    TEST("log functions and losses of a finite row are finite, however wide") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n)
                    if (f->kind == LOGARITHM || f->kind == LOSS) {
                        for (double width = 50; width < 1e30; width *= 1e4) {
                            call c = call_of(f, 1, n, NORMAL_1, 14);
                            mmax_multimax_params p = mmax_multimax_identity(f->order);
                            c.p = &p;
                            for (size_t i = 0; i < n; ++i) { set(f, c.array[X], i, -(double)i * width / (double)n); }
                            index_storage[0] = (int32_t)(n - 1);
                            check_ok(f, &c);
                            for (size_t i = 0; i < n; ++i) {
                                CHECK(is_finite_at(f, c.array[OUT], i), AT ": entry %u is %g", AT_ARGS(f, n),
                                      (unsigned)i, get(f, c.array[OUT], i));
                            }
                            CHECK((bits_of(row_storage[0]) & 0x7ff0000000000000) != 0x7ff0000000000000, AT ": loss %g",
                                  AT_ARGS(f, n), row_storage[0]);
                        }
                    }
    }
    TEST("log_softmax of scores whose difference is beyond T's range, but not scaled") {
        static const char *const names[] = {"log_softmax_f32", "log_softmax_f64"};
        for (int k = 0; k < 2; ++k) {
            const function *f = function_named(names[k]);
            FOR_EACH_ISA(isa)
                for (size_t n = 2; n < 70; n = 2 * n + 1) {
                    call c = call_of(f, 1, n, NORMAL_1, 38);
                    double half = -0.5 * largest(f), got;
                    c.s.scale = 0.25;
                    set(f, c.array[X], 0, largest(f));
                    set(f, c.array[X], n - 1, -largest(f));
                    check_ok(f, &c);
                    got = get(f, c.array[OUT], n - 1);
                    CHECK(fabs(got / half - 1) <= 2 * eps_of(f), AT ": %g, not %g", AT_ARGS(f, n), got, half);
                }
        }
    }
}

/* ==== overflow of sigma and of scale * x ==== */

/* Entry `at` overflows: -inf counts as a mask, +inf makes the row NaN. */
static void check_overflow(const function *f, const call *c, size_t at, int sign, const char *what) {
    size_t n = c->s.cols;
    check_ok(f, c);
    for (size_t i = 0; i < n; ++i) {
        int nan = is_special(f, c->array[OUT], i, QUIET_NAN);
        if (sign > 0) {
            CHECK(nan, AT ": %s: entry %u is %g", AT_ARGS(f, n), what, (unsigned)i, get(f, c->array[OUT], i));
        } else if (i == at) {
            int zero = magnitude_bits(f, c->array[OUT], i) == 0; /* the gradient of a loss: of either sign */
            CHECK(get_bits(f, c->array[OUT], i) == masked_bits(f) || (f->kind == LOSS && zero),
                  AT ": %s: entry %u is %g", AT_ARGS(f, n), what, (unsigned)i, get(f, c->array[OUT], i));
        } else {
            CHECK(is_finite_at(f, c->array[OUT], i), AT ": %s: entry %u is %g", AT_ARGS(f, n), what, (unsigned)i,
                  get(f, c->array[OUT], i));
        }
    }
}

static void test_overflow(void) {
    static const struct {
        const char *what;
        int order, sign; /* which way sigma overflows */
        double x;        /* in units of the largest finite number */
        mmax_multimax_params p;
    } cases[] = {
        {"first order, slope 3 below", 1, -1, -0.9, {1, {3, 1}, {1, 1}, {0, 0}, {0, 0}}},
        {"first order, slope 3 above", 1, +1, 0.9, {1, {1, 1}, {3, 1}, {0, 0}, {0, 0}}},
        {"first order, slope -3 above", 1, -1, 0.9, {1, {1, 1}, {-3, 1}, {0, 0}, {0, 0}}},
        {"first order, slope -3 below", 1, +1, -0.9, {1, {-3, 1}, {1, 1}, {0, 0}, {0, 0}}},
        {"second order below, to -inf", 2, -1, -0.9, {2, {1, 1.5}, {1, 1}, {0, 0}, {0, 0}}},
        {"second order below, to +inf", 2, +1, -0.9, {2, {1, 0.5}, {1, 1}, {0, 0}, {0, 0}}},
        {"second order above, to -inf", 2, -1, 0.9, {2, {1, 1}, {1, 0.5}, {0, 0}, {0, 0}}},
        {"second order above, to +inf", 2, +1, 0.9, {2, {1, 1}, {1, 1.5}, {0, 0}, {0, 0}}},
        {"second order decides above, -inf", 2, -1, 0.9, {2, {1, 1}, {9, 0.5}, {0, 0}, {0, 0}}},
        {"second order decides above, +inf", 2, +1, 0.9, {2, {1, 1}, {-9, 1.5}, {0, 0}, {0, 0}}},
        {"second order decides below, -inf", 2, -1, -0.9, {2, {-9, 1.5}, {1, 1}, {0, 0}, {0, 0}}},
        {"second order decides below, +inf", 2, +1, -0.9, {2, {9, 0.5}, {1, 1}, {0, 0}, {0, 0}}},
    };
    TEST("sigma that overflows to -inf gives 0, to +inf a NaN row; the second order decides") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n)
                    for (size_t k = 0; k < COUNT(cases); ++k) {
                        int normalised = has(f, PROBABILITY) || f->kind == LOGARITHM || f->kind == LOSS;
                        size_t at = (n * 5 + k * 7) % n;
                        call c;
                        if (f->order != cases[k].order || !normalised || (f->kind == LOSS && n == 1)) { continue; }
                        c = call_of(f, 1, n, NORMAL_1, 15);
                        c.p = &cases[k].p;
                        set(f, c.array[X], at, cases[k].x * largest(f));
                        index_storage[0] = (int32_t)((at + 1) % n);
                        check_overflow(f, &c, at, cases[k].sign, cases[k].what);
                    }
    }
    TEST("large parameters of either sign: a sigma that they take to -inf gives 0") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n)
                    for (int k = 0; k < 2 && f->order && (has(f, PROBABILITY) || f->kind == LOGARITHM); ++k) {
                        const double large = f->size == 4 ? 1e30 : 1e200;
                        call c = call_of(f, 2, n, NORMAL_1, 37);
                        mmax_multimax_params p = mmax_multimax_identity(f->order);
                        (k ? p.t_d : p.t_b)[0] = k ? -large : large;
                        (k ? p.d : p.b)[0] = k ? -large : large;
                        c.p = &p;
                        check_ok(f, &c);
                        for (size_t i = 0; i < 2 * n; ++i) {
                            CHECK(get_bits(f, c.array[OUT], i) == masked_bits(f), AT ": entry %u is %g", AT_ARGS(f, n),
                                  (unsigned)i, get(f, c.array[OUT], i));
                        }
                    }
    }
    TEST("a term with t = 1 is absent, also at the largest numbers") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n)
                    if (f->order && has(f, FORWARD_ARRAYS & HAS_OUT)) {
                        call c = call_of(f, 1, n, ANY_SIZE, 16);
                        mmax_multimax_params identity = mmax_multimax_identity(f->order), p = far_identity(f);
                        if (f->kind == LOGARITHM || f->kind == LOG_BACKWARD || f->kind == LOSS) {
                            for (size_t i = 0; i < n; ++i) { set(f, c.array[X], i, 0.4 * get(f, c.array[X], i)); }
                        }
                        c.p = &identity;
                        make_y(f, &c);
                        check_ok(f, &c);
                        expect_output(f, &c, n);
                        c.p = &p;
                        make_y(f, &c);
                        check_ok(f, &c);
                        check_output(f, &c, n, "b and d matter with t = 1");
                        for (size_t i = 0; f->kind == FORWARD && has(f, ELEMENTWISE) && i < n; ++i) {
                            CHECK(get_bits(f, c.array[OUT], i) == get_bits(f, c.array[X], i),
                                  AT ": sigma is not the identity", AT_ARGS(f, n));
                        }
                    }
    }
    TEST("a scale * x beyond T's range is handled as an overflowing sigma is") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n)
                    for (int sign = -1; sign <= 1; sign += 2) {
                        call c = call_of(f, n <= 64 ? 17 : 1, n, NORMAL_1, 17); /* a group of short rows */
                        size_t at = (n * 5 + 3) % n;
                        mmax_multimax_params identity = mmax_multimax_identity(f->order);
                        if ((!has(f, PROBABILITY) && f->kind != LOGARITHM && f->kind != LOSS) ||
                            (f->kind == LOSS && n == 1)) {
                            continue;
                        }
                        set(f, c.array[X], at, sign * 0.9 * largest(f));
                        index_storage[0] = (int32_t)((at + 1) % n);
                        c.s.scale = 4;
                        c.p = &identity;
                        check_overflow(f, &c, at, sign, "scale * x");
                    }
    }
    TEST("logarithms of a scale * x at the end of T's range: finite up to the largest number, -inf from there on") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                if (f->kind == LOGARITHM && f->order == 0) {
                    FOR_EACH_LENGTH(n)
                        for (int beyond = 0; beyond < 2; ++beyond) {
                            for (double scale = 3; n > 1 && scale <= 4; ++scale) {
                                call c = call_of(f, n <= 64 ? 17 : 1, n, NORMAL_1, 17);
                                set(f, c.array[X], 1, -largest(f) / scale * (1 + (beyond ? 4 : scale - 4) * eps_of(f)));
                                c.s.scale = scale;
                                check_ok(f, &c);
                                CHECK(is_finite_at(f, c.array[OUT], 1) == !beyond, AT ": scale %g: %s is %g",
                                      AT_ARGS(f, n), scale, beyond ? "beyond" : "the largest", get(f, c.array[OUT], 1));
                            }
                        }
                }
    }
    TEST("there a row's bits are the same alone, among ordinary rows and beside one with a mask") {
        static const double scales[] = {1.3, 2.5, 9, 1000.1};
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                for (size_t k = 0; f->kind == LOGARITHM && f->order == 0 && k < 4; ++k) {
                    for (int step = -8; step <= 8; ++step) {
                        uint64_t bits[5] = {0, 0, 0, 0, 0};
                        for (int way = 0; way < 3; ++way) {
                            call c = call_of(f, way == 0 ? 1 : 17, 5, NORMAL_1, 17);
                            set(f, c.array[X], 1, -largest(f) / scales[k] * (1 + step * eps_of(f) / 2));
                            if (way == 2) { set_special(f, c.array[X], 5, MINUS_INF); }
                            c.s.scale = scales[k];
                            check_ok(f, &c);
                            for (size_t i = 0; i < 5; ++i) {
                                const uint64_t now = get_bits(f, c.array[OUT], i);
                                CHECK(way == 0 || now == bits[i], AT ": scale %g, step %d, way %d: %g", AT_ARGS(f, 5),
                                      scales[k], step, way, get(f, c.array[OUT], i));
                                bits[i] = now;
                            }
                        }
                    }
                }
    }
}

/* ==== subnormal results, floating-point environment ==== */

static void check_no_subnormal(const function *f, const call *c) {
    for (size_t i = 0; i < c->s.cols; ++i) {
        CHECK(!is_subnormal_at(f, c->array[OUT], i), AT ": entry %u is %g", AT_ARGS(f, c->s.cols), (unsigned)i,
              get(f, c->array[OUT], i));
        CHECK(magnitude_bits(f, c->array[OUT], i) != 0 || get_bits(f, c->array[OUT], i) == 0, AT ": entry %u is -0",
              AT_ARGS(f, c->s.cols), (unsigned)i);
    }
}

static void test_subnormals(void) {
    TEST("forward results below the smallest normal number are 0") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n)
                    if (f->kind == FORWARD || f->kind == LOGARITHM) {
                        /* exp underflows to subnormal numbers from `edge` on, and to 0 some 16 (36) further on */
                        double edge = log(smallest_normal(f)), step = f->size == 4 ? 0.37 : 0.83;
                        mmax_multimax_params identity = mmax_multimax_identity(f->order);
                        for (int l = 0; l < LAWS; ++l) {
                            call c = call_of(f, 1, n, (law)l, 18);
                            check_ok(f, &c);
                            check_no_subnormal(f, &c);
                        }
                        for (int k = 0; k < 60; k += 1 + (n > 131) * 9) {
                            call c = call_of(f, 1, n, NORMAL_1, 19);
                            c.p = &identity;
                            for (size_t i = 0; i < n; ++i) {
                                set(f, c.array[X], i,
                                    i == n / 2 ? 0 : edge + 4 - (double)((i + (size_t)k) % 60) * step);
                            }
                            check_ok(f, &c);
                            check_no_subnormal(f, &c);
                        }
                    }
    }
    TEST("a score below the smallest normal number, or -0, gives +0 where the result is the score") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n)
                    if (f->kind == FORWARD && !has(f, PROBABILITY)) {
                        call c = call_of(f, 1, n, SUBNORMAL, 20);
                        for (size_t i = 0; i < n; ++i) {
                            set(f, c.array[X], i, (i % 2 ? -0.25 : 0.25) * smallest_normal(f) * (double)(i % 4));
                            expected[i] = 0;
                        }
                        set_bits(f, c.array[X], n - 1, f->size == 4 ? 0x80000000 : 0x8000000000000000); /* -0 */
                        check_ok(f, &c);
                        check_output(f, &c, n, "below the smallest normal number");
                    }
    }
}

static void test_steep_terms(void) {
    TEST("nothing is added to gp where no entry is in a term, however steep it is") {
        FOR_EACH_ISA(isa) {
            const double x[2] = {1, 2}, gy[2] = {1, -1}, y[2] = {0.25, 0.75};
            const int32_t ignored = -1;
            double gx[2], loss;
            mmax_multimax_params p = mmax_multimax_identity(2);
            mmax_multimax_grads gp;
            memset(&gp, 0, sizeof gp);
            p.t_b[1] = p.t_d[1] = -8.98846567431158e307;
            p.b[1] = -10;
            p.d[1] = 10;
            CHECK(mmax_multimax_backward_f64(gx, &gp, gy, y, x, &p, mmax_row(2)) == MMAX_OK &&
                      mmax_seglu_backward_f64(gx, &gp, gy, x, &p, mmax_row(2)) == MMAX_OK &&
                      mmax_multimax_loss_f64(&loss, gx, &gp, x, &p, mmax_labels(&ignored), mmax_row(2)) == MMAX_OK,
                  "isa %d", (int)isa);
            CHECK(bits_of(gp.b[1]) == 0 && bits_of(gp.d[1]) == 0, "isa %d: %g %g", (int)isa, gp.b[1], gp.d[1]);
        }
    }
}

#if !defined(FE_UNDERFLOW) /* WebAssembly has no flags */
#    define FE_UNDERFLOW 0
#endif
static void test_no_underflow(void) {
    TEST("entries far below the maximum, and masks, take no product below the normal numbers") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n)
                    if (f->kind == FORWARD && (strstr(f->name, "softmax_") == f->name || f->order)) {
                        static const double low[] = {-800, -1000, -1e5, -1e30};
                        for (size_t k = 0; k <= COUNT(low) && n > 1 && !has(f, ELEMENTWISE); ++k) {
                            call c = call_of(f, 9, n, NORMAL_1, 23);
                            mmax_multimax_params identity = mmax_multimax_identity(f->order);
                            c.p = &identity;
                            for (size_t i = 0; i < 9 * n; ++i) {
                                if (i % 2 && k < COUNT(low)) {
                                    set(f, c.array[X], i, low[k]);
                                } else if (i % 2) {
                                    set_special(f, c.array[X], i, MINUS_INF);
                                }
                            }
                            feclearexcept(FE_ALL_EXCEPT);
                            check_ok(f, &c);
                            CHECK(!fetestexcept(FE_UNDERFLOW), AT ": underflow, %u", AT_ARGS(f, n), (unsigned)k);
                        }
                    }
    }
#if !defined(__clang__) /* which computes the branch that is not selected */
    TEST("tanhmax of tiny scores takes none, either") {
        for (int k = 0; k < 2; ++k) {
            const function *f = function_named(k ? "tanhmax_f64" : "tanhmax_f32");
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n) {
                    call c = call_of(f, 1, n, NORMAL_1, 23);
                    for (size_t i = 0; i < n; ++i) { set(f, c.array[X], i, (i % 2 ? 1 : -1) * (k ? 1e-200 : 1e-25)); }
                    feclearexcept(FE_ALL_EXCEPT);
                    check_ok(f, &c);
                    CHECK(!fetestexcept(FE_UNDERFLOW), AT ": underflow", AT_ARGS(f, n));
                }
        }
    }
#endif
    TEST("a loss below the smallest normal number is 0") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n)
                    if (f->kind == LOSS && n > 1) {
                        static const double low[] = {-709, -730, -747, -1000};
                        for (size_t k = 0; k < COUNT(low); ++k) {
                            call c = call_of(f, 1, n, NORMAL_1, 24);
                            mmax_multimax_params identity = mmax_multimax_identity(f->order);
                            c.p = &identity;
                            for (size_t i = 0; i < n; ++i) { set(f, c.array[X], i, i == 0 ? 0 : low[k]); }
                            index_storage[0] = 0;
                            check_ok(f, &c);
                            CHECK(row_storage[0] == 0 || row_storage[0] >= 2.2250738585072014e-308, AT ": loss %g",
                                  AT_ARGS(f, n), row_storage[0]);
                        }
                    }
    }
}

/* The gradient of softmax in double: of entry i where rounding cannot matter, else 0. */
static double sure_gradient(const function *f, const call *c, size_t i) {
    const size_t n = c->s.cols, row = i / n * n;
    double max = -HUGE_VAL, sum = 0, mean = 0, w, g;
    for (size_t j = row; j < row + n; ++j) { max = fmax(max, get(f, c->array[X], j)); }
    for (size_t j = row; j < row + n; ++j) {
        const double e = exp(get(f, c->array[X], j) - max);
        sum += e;
        mean += f->kind == BACKWARD ? e * get(f, c->array[GY], j) : 0;
    }
    mean /= sum;
    w = exp(get(f, c->array[X], i) - max) / sum;
    if (w < 2 * FLT_MIN) { /* the weight may be 0 */
        return 0;
    }
    if (f->kind == LOSS) {
        const double target = index_storage[i / n] == (int32_t)(i % n) ? 1 : 0;
        return fabs(w - target) > 1e-3 * w ? (w - target) * c->t.grad_scale : 0;
    }
    g = get(f, c->array[GY], i) - mean;
    return fabs(g) > 1e-3 * fabs(mean) ? w * g : 0;
}

static void test_small_gradients(void) {
    TEST("a gradient below the smallest normal number is 0, no other is: sharp rows, a small gy or grad_scale") {
        static const double sizes[2][4] = {{1, 1e-4, 1e-8, 1e-30}, {1, 1e-32, 1e-64, 1e-240}}; /* f32, f64 */
        static const double scales[] = {0, 0.25, 3};
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                for (size_t n = 3; n <= 1100 && (f->kind == BACKWARD || f->kind == LOG_BACKWARD || f->kind == LOSS);
                     n = n * 5 + 1) {
                    for (size_t k = 0; k < 24; ++k) {
                        const int wide = f->size == 8, softmax = strcmp(f->name, "softmax_backward_f32") == 0 ||
                                                                 strcmp(f->name, "softmax_loss_f32") == 0;
                        const double size = sizes[wide][k % 4], spread = wide ? 240.0 : 30.0;
                        call c = call_of(f, 7, n, NORMAL_1, 240 + k);
                        for (size_t i = 0; i < 7 * n; ++i) {
                            set(f, c.array[X], i, spread * get(f, c.array[X], i));
                            set(f, c.array[GY], i, size * get(f, c.array[GY], i));
                        }
                        c.s.scale = scales[k / 4 % 3];
                        c.t.grad_scale = size;
                        c.t.label_smoothing = k / 12 ? 0.1 : 0;
                        make_y(f, &c);
                        check_ok(f, &c);
                        for (size_t i = 0; i < 7 * n; ++i) {
                            const double gx = get(f, c.array[OUT], i);
                            CHECK(!is_subnormal_at(f, c.array[OUT], i), AT ": gx[%u] is %g, gy or grad_scale %g",
                                  AT_ARGS(f, n), (unsigned)i, gx, size);
                            if (softmax && c.s.scale == 0 && c.t.label_smoothing == 0) {
                                const double g = sure_gradient(f, &c, i);
                                CHECK(fabs(g) < 1.01 * FLT_MIN || fabs(gx - g) <= 1e-2 * fabs(g),
                                      AT ": gx[%u] is %g, not %g", AT_ARGS(f, n), (unsigned)i, gx, g);
                            }
                        }
                    }
                }
    }
}

/* Everything in the floating-point environment but the exception flags. */
static unsigned environment(void) {
#if defined(__SSE2__)
    return (_mm_getcsr() & ~0x3fu) ^ (unsigned)fegetround() << 16;
#else
    return (unsigned)fegetround();
#endif
}

static void test_environment(void) {
    TEST("the floating-point environment is never changed") {
        static const int modes[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                for (size_t k = 0; k < 2 * COUNT(modes); ++k) {
                    call c = call_of(f, 3, 65, MASKED, 21);
                    unsigned before, after;
                    mmax_status status;
                    set_special(f, c.array[X], 70, QUIET_NAN);
                    fesetround(modes[k / 2]);
#if defined(__SSE2__)
                    /* flush to zero, denormals are zero: on and off */
                    _mm_setcsr(k % 2 ? _mm_getcsr() | 0x8040u : _mm_getcsr() & ~0x8040u);
#endif
                    before = environment();
                    status = f->run(&c);
                    after = environment();
                    fesetround(FE_TONEAREST);
#if defined(__SSE2__)
                    _mm_setcsr(_mm_getcsr() & ~0x8040u);
#endif
                    CHECK(status == MMAX_OK && before == after, AT ": %x became %x", AT_ARGS(f, 65), before, after);
                }
    }
}

/* ==== in place and overlaps ==== */

enum { WATCHED = 2048 }; /* entries of every static array that an error must leave alone */

/* The call returns `status`, or any error if that is MMAX_OK, and touches nothing. */
static void check_refused(const function *f, const call *c, mmax_status status, const char *what) {
    static mmax_multimax_grads gp_before;
    static double rows_before[MOST_ROWS];
    mmax_status got;
    memset(row_storage, 0x3c, sizeof row_storage);
    memset(&gp_storage, 0x3d, sizeof gp_storage);
    memcpy(rows_before, row_storage, sizeof row_storage);
    gp_before = gp_storage;
    for (int r = 0; r < ARRAYS; ++r) { memcpy(shadow[r], storage[r], WATCHED * sizeof(double)); }
    got = f->run(c);
    CHECK(got == status || (status == MMAX_OK && got != MMAX_OK), AT ": %s gives \"%s\", not \"%s\"",
          AT_ARGS(f, c->s.cols), what, mmax_status_string(got), mmax_status_string(status));
    for (int r = 0; r < ARRAYS; ++r) {
        CHECK(memcmp(shadow[r], storage[r], WATCHED * sizeof(double)) == 0, AT ": %s: array %d changed",
              AT_ARGS(f, c->s.cols), what, r);
    }
    CHECK(memcmp(rows_before, row_storage, sizeof row_storage) == 0 &&
              memcmp(&gp_before, &gp_storage, sizeof gp_before) == 0,
          AT ": %s: values per row or gp changed", AT_ARGS(f, c->s.cols), what);
}

static void *entries_on(const function *f, void *a, size_t n) { return (char *)a + n * f->size; }

/* Where doubles would overlap the end of array r. */
static void *last_double(const function *f, const call *c, role r) {
    return (double *)c->array[r] + (c->s.rows * c->s.cols * f->size - 1) / sizeof(double);
}

/* A call on three rows; shadow has its array r, and expected its output. */
static call expected_call(const function *f, size_t n, int r, uint64_t seed) {
    const call c = call_of(f, 3, n, NORMAL_4, seed);
    memcpy(shadow[r], c.array[r], 3 * n * f->size);
    check_ok(f, &c);
    expect_output(f, &c, 3 * n);
    return c;
}

static void test_in_place(void) {
    TEST("an output may be exactly one of the inputs: same pointer, same stride") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n)
                    for (int r = GY; r <= X; ++r) {
                        call c = call_of(f, 3, n, MASKED, 22);
                        double values[3];
                        if (!has(f, HAS_OUT) || !has(f, 1u << r)) { continue; }
                        set_special(f, c.array[X], n, QUIET_NAN);
                        check_ok(f, &c);
                        memcpy(values, row_storage, sizeof values);
                        expect_output(f, &c, 3 * n);
                        c.array[OUT] = c.array[r];
                        check_ok(f, &c);
                        check_output(f, &c, 3 * n, "in place");
                        CHECK(memcmp(values, row_storage, sizeof values) == 0, AT ": values per row differ in place",
                              AT_ARGS(f, n));
                    }
    }
    TEST("any other overlap of an output with a T array is MMAX_ERR_ALIAS") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                for (size_t n = 1; n <= 40; n += 13)
                    for (int r = GY; r <= X; ++r) {
                        if (!has(f, 1u << r)) { continue; }
                        for (size_t rows = 1; rows <= 3; rows += 2) {
                            const size_t on[] = {1, n - 1, n / 2, n, (rows - 1) * n, rows * n - 1};
                            for (size_t k = 0; has(f, HAS_OUT) && k < COUNT(on); ++k) {
                                call c = call_of(f, rows, n, NORMAL_1, 23);
                                if (on[k] == 0 || on[k] >= rows * n) { continue; }
                                c.array[OUT] = entries_on(f, c.array[r], on[k]);
                                check_refused(f, &c, MMAX_ERR_ALIAS, "an output that starts inside an input");
                                c.array[OUT] = storage[r];
                                c.array[r] = entries_on(f, c.array[r], on[k]);
                                check_refused(f, &c, MMAX_ERR_ALIAS, "an input that starts inside an output");
                            }
                            if (has(f, HAS_OUT) && rows > 1) {
                                call c = call_of(f, rows, n, NORMAL_1, 24);
                                c.array[OUT] = c.array[r];
                                *stride_of(f, &c.s, OUT) = n + 1;
                                check_refused(f, &c, MMAX_ERR_ALIAS, "the same pointer with another stride");
                                c.array[OUT] = entries_on(f, c.array[r], 2 * n);
                                check_refused(f, &c, MMAX_ERR_ALIAS,
                                              "rows of another stride between those of an input");
                            }
                            if ((f->kind == LOSS || f->kind == METRIC) && rows * n > 1) {
                                call c = call_of(f, rows, n, NORMAL_1, 25);
                                c.per_row = last_double(f, &c, (role)r);
                                check_refused(f, &c, MMAX_ERR_ALIAS, "values per row that overlap an input");
                                if (f->kind == LOSS) {
                                    c.per_row = c.array[OUT];
                                    check_refused(f, &c, MMAX_ERR_ALIAS, "a loss that overlaps the gradient");
                                    if (has(f, HAS_GP)) {
                                        c.per_row = &c.gp->d[1];
                                        check_refused(f, &c, MMAX_ERR_ALIAS, "a loss that overlaps gp");
                                    }
                                }
                                c = call_of(f, rows, n, NORMAL_1, 25);
                                c.per_row = (double *)c.array[r];
                                c.array[r] = entries_on(f, c.array[r], (rows - 1) * sizeof(double) / f->size);
                                check_refused(f, &c, MMAX_ERR_ALIAS, "the last value per row overlaps an input");
                            }
                            if (has(f, HAS_GP)) {
                                call c = call_of(f, rows, n, NORMAL_1, 26);
                                c.gp = last_double(f, &c, (role)r);
                                check_refused(f, &c, MMAX_ERR_ALIAS, "gp that overlaps an input");
                                c.gp = c.array[OUT];
                                check_refused(f, &c, MMAX_ERR_ALIAS, "gp that overlaps gx");
                            }
                        }
                    }
    }
    TEST("an output may begin where an input ends, and end where one begins") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                for (size_t n = 1; n < 70; n = 2 * n + 1)
                    for (int r = GY; r <= X; ++r) {
                        for (int before = 0; has(f, HAS_OUT) && has(f, 1u << r) && before < 2; ++before) {
                            call c = expected_call(f, n, r, 36);
                            size_t stride = before ? n + 1 : n; /* of the first array, unlike the others' */
                            c.array[before ? OUT : r] = storage[r];
                            c.array[before ? r : OUT] = entries_on(f, storage[r], 2 * stride + n);
                            *stride_of(f, &c.s, OUT) = n + 1;
                            memcpy(c.array[r], shadow[r], 3 * n * f->size);
                            check_ok(f, &c);
                            for (size_t i = 0; i < 3 * n; ++i) {
                                CHECK(get_bits(f, c.array[OUT], i / n * (n + 1) + i % n) == expected[i],
                                      AT ": entry %u", AT_ARGS(f, n), (unsigned)i);
                            }
                        }
                    }
    }
    TEST("an output that is one input and overlaps another is MMAX_ERR_ALIAS") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                if (has(f, HAS_GY)) {
                    int other = has(f, HAS_Y) ? Y : X;
                    call c = call_of(f, 2, 20, NORMAL_1, 27);
                    c.array[OUT] = c.array[GY];
                    c.array[other] = entries_on(f, c.array[GY], 3);
                    check_refused(f, &c, MMAX_ERR_ALIAS, "gx is gy, and overlaps y or x");
                }
    }
    TEST("for rows = 1 an output in place may have another stride") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n)
                    if (has(f, HAS_OUT)) {
                        role in = has(f, HAS_GY) ? GY : X;
                        call c = call_of(f, 1, n, NORMAL_4, 28);
                        check_ok(f, &c);
                        expect_output(f, &c, n);
                        c.array[OUT] = c.array[in];
                        *stride_of(f, &c.s, OUT) = n + 5;
                        *stride_of(f, &c.s, in) = n + 3;
                        check_ok(f, &c);
                        check_output(f, &c, n, "in place, one row");
                    }
    }
    TEST("two arrays of equal stride that interleave without touching do not overlap") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                for (size_t n = 1; n < 70; n = 2 * n + 1)
                    for (int r = GY; r <= X; ++r) {
                        for (size_t k = 0; has(f, HAS_OUT) && has(f, 1u << r) && k < 4; ++k) {
                            call c = expected_call(f, n, r, 29);
                            size_t before = k % 2, stride = 2 * n + k / 2;
                            void *block = storage[r], *rows = shadow[r];
                            for (size_t row = 0; row < 3; ++row) {
                                memcpy(entries_on(f, block, row * stride + (before ? 0 : n)),
                                       entries_on(f, rows, row * n), n * f->size);
                            }
                            c.array[r] = entries_on(f, block, before ? 0 : n);
                            c.array[OUT] = entries_on(f, block, before ? n : 0);
                            *stride_of(f, &c.s, OUT) = stride;
                            *stride_of(f, &c.s, (role)r) = stride;
                            check_ok(f, &c);
                            for (size_t row = 0; row < 3; ++row) {
                                for (size_t i = 0; i < n; ++i) {
                                    CHECK(get_bits(f, c.array[OUT], row * stride + i) == expected[row * n + i],
                                          AT ": row %u", AT_ARGS(f, n), (unsigned)row);
                                }
                            }
                            c.array[OUT] = entries_on(f, c.array[r], before ? n - 1 : stride - n + 1);
                            if (n > 1) { check_refused(f, &c, MMAX_ERR_ALIAS, "interleaved rows that touch"); }
                        }
                    }
    }
    TEST("inputs may overlap freely") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n) {
                    call c = call_of(f, 2, n, NORMAL_1, 30);
                    for (int r = GY; r <= X; ++r) { c.array[r] = entries_on(f, storage[X], (size_t)(r == GY)); }
                    check_ok(f, &c);
                }
    }
}

/* ==== errors ==== */

static void test_null(void) {
    TEST("a NULL pointer is MMAX_ERR_NULL; any of loss, gx and gp may be NULL, but not all") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa) {
                int optional = f->kind == LOSS || has(f, HAS_GP);
                call c = call_of(f, 2, 7, NORMAL_1, 31), missing;
                for (int r = optional ? GY : OUT; r <= X; ++r) {
                    missing = c;
                    missing.array[r] = NULL;
                    if (has(f, 1u << r)) { check_refused(f, &missing, MMAX_ERR_NULL, "an array that is NULL"); }
                }
                if (f->order) {
                    missing = c;
                    missing.p = NULL;
                    missing.s.rows = 1;
                    check_refused(f, &missing, MMAX_ERR_NULL, "p = NULL, one row");
                    missing.s.rows = 2;
                    check_refused(f, &missing, MMAX_ERR_NULL, "p = NULL");
                }
                if (f->kind == METRIC) {
                    missing = c;
                    missing.per_row = NULL;
                    check_refused(f, &missing, MMAX_ERR_NULL, "out = NULL");
                }
                if (f->kind == LOSS) {
                    missing = c;
                    missing.t.index = NULL;
                    check_refused(f, &missing, MMAX_ERR_NULL, "index = NULL");
                }
                if (optional) {
                    missing = c;
                    missing.array[OUT] = NULL;
                    missing.gp = NULL;
                    missing.per_row = NULL;
                    check_refused(f, &missing, MMAX_ERR_NULL, "no output at all");
                }
            }
    }
    /* Where float is evaluated in a wider type, the roundings depend on how each set of outputs is compiled. */
#if FLT_EVAL_METHOD == 0 || FLT_EVAL_METHOD == 16
    TEST("an output that is left out changes no other output") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n)
                    if (f->kind == LOSS || has(f, HAS_GP)) {
                        double values[3];
                        mmax_multimax_grads gp;
                        call c = call_of(f, 3, n, MASKED, 32);
                        check_ok(f, &c);
                        expect_output(f, &c, 3 * n);
                        memcpy(values, row_storage, sizeof values);
                        gp = gp_storage;
                        for (int outputs = 1; outputs < 8; ++outputs) {
                            call some = c;
                            some.array[OUT] = outputs & 1 ? c.array[OUT] : NULL;
                            some.per_row = outputs & 2 ? c.per_row : NULL;
                            some.gp = outputs & 4 ? c.gp : NULL;
                            if (!some.array[OUT] && !(f->kind == LOSS && some.per_row) &&
                                !(has(f, HAS_GP) && some.gp)) {
                                continue;
                            }
                            memset(c.array[OUT], 0x11, 3 * n * f->size);
                            memset(row_storage, 0, sizeof row_storage);
                            memset(&gp_storage, 0, sizeof gp_storage);
                            check_ok(f, &some);
                            if (some.array[OUT]) { check_output(f, &some, 3 * n, "some outputs left out"); }
                            CHECK(!some.per_row || memcmp(values, row_storage, sizeof values) == 0,
                                  AT ": loss, outputs %d", AT_ARGS(f, n), outputs);
                            CHECK(!some.gp || memcmp(&gp, &gp_storage, sizeof gp) == 0, AT ": gp, outputs %d",
                                  AT_ARGS(f, n), outputs);
                        }
                    }
    }
#endif
}

static void test_shape_errors(void) {
    TEST("stride < cols, ends[r] > cols, sizes that overflow: MMAX_ERR_SHAPE") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa) {
                const uint32_t lengths[3] = {7, 7, 8}, huge_lengths[3] = {UINT32_MAX, 1, 1};
                const call good = call_of(f, 3, 7, NORMAL_1, 33);
                call c = good;
                c.s.ends = lengths;
                check_refused(f, &c, MMAX_ERR_SHAPE, "ends[2] = cols + 1");
                c.s.ends = huge_lengths;
                check_refused(f, &c, MMAX_ERR_SHAPE, "ends[0] = UINT32_MAX");
                for (int r = 0; r < ARRAYS; ++r) {
                    static const size_t bad[] = {1, 6, SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 4 + 1, SIZE_MAX / 8 + 1};
                    for (size_t k = 0; has(f, 1u << r) && k < COUNT(bad); ++k) {
                        c = good;
                        *stride_of(f, &c.s, (role)r) = bad[k];
                        check_refused(f, &c, MMAX_ERR_SHAPE, k < 2 ? "stride < cols" : "a stride that overflows");
                    }
                }
                c = good;
                c.s.rows = 1;
                c.s.cols = SIZE_MAX;
                check_refused(f, &c, MMAX_ERR_SHAPE, "cols = SIZE_MAX");
                c.s.cols = SIZE_MAX / f->size + 1;
                check_refused(f, &c, MMAX_ERR_SHAPE, "cols * size overflows");
                c = good;
                c.s.cols = 1;
                c.s.rows = SIZE_MAX;
                check_refused(f, &c, MMAX_ERR_SHAPE, "rows = SIZE_MAX");
                c.s.rows = SIZE_MAX / f->size + 1;
                check_refused(f, &c, MMAX_ERR_SHAPE, "rows * size overflows");
                c = good;
                c.s.cols = (size_t)1 << (sizeof(size_t) * 4);
                c.s.rows = (size_t)1 << (sizeof(size_t) * 4);
                check_refused(f, &c, MMAX_ERR_SHAPE, "rows * cols overflows to 0");
            }
    }
}

static void test_size_of_values(void) {
    TEST("rows whose values per row overflow the address space: MMAX_ERR_SHAPE, before lengths or targets are read") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                if (f->kind == LOSS || f->kind == METRIC) {
                    call c = call_of(f, 1, 1, NORMAL_1, 36);
                    c.s.rows = SIZE_MAX / sizeof(double) + 2;
                    check_refused(f, &c, MMAX_ERR_SHAPE, "rows * sizeof(double) overflows");
                }
    }
}

enum { NOT_FINITE = 3 };

/* k < NOT_FINITE: NaN, +inf, -inf */
static double not_finite(size_t k) {
    static const uint64_t bits[NOT_FINITE] = {0x7ff8000000000000, 0x7ff0000000000000, 0xfff0000000000000};
    return double_of(bits[k]);
}

static void check_bad_params(const function *f, call c) {
    static const double beyond[] = {1e60, -1e60, 3.4028235677973366e38, -3.4028235677973366e38}; /* 2^128 - 2^103 */
    for (size_t k = 0; k < NOT_FINITE + COUNT(beyond); ++k) {
        double bad = k < NOT_FINITE ? not_finite(k) : beyond[k - NOT_FINITE];
        for (size_t at = 0; at < 8; ++at) {
            mmax_multimax_params p = params_of_order[f->order];
            double *field[] = {p.t_b, p.t_d, p.b, p.d};
            field[at / 2][at % 2] = bad;
            c.p = &p;
            if ((k >= NOT_FINITE && f->size == 8) || (f->order == 1 && at % 2 == 1)) {
                CHECK(f->run(&c) == MMAX_OK, AT ": %g at %u", AT_ARGS(f, 7), bad, (unsigned)at);
            } else {
                check_refused(f, &c, MMAX_ERR_PARAM, "a parameter that is not finite as a T");
            }
        }
    }
    for (int order = -1; order < 5; ++order) {
        mmax_multimax_params p = params_of_order[f->order];
        p.order = order;
        c.p = &p;
        if (order != 1 && order != 2) { check_refused(f, &c, MMAX_ERR_PARAM, "an order that is not 1 or 2"); }
    }
}

static void test_param_errors(void) {
    TEST("scale, order, a parameter not finite as a T, epsilon, reference, smoothing, grad_scale: what is wrong") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa) {
                const call good = call_of(f, 2, 7, NORMAL_1, 34);
                call c = good;
                const double scales[] = {-1,
                                         -1e-300,
                                         not_finite(0),
                                         not_finite(1),
                                         not_finite(2),
                                         1e60,
                                         1e-60,
                                         1e-320,
                                         ldexp(1 - DBL_EPSILON / 2, -60),
                                         ldexp(1 + DBL_EPSILON, 60)};
                for (size_t k = 0; k < COUNT(scales); ++k) {
                    c.s.scale = scales[k];
                    check_refused(f, &c, MMAX_ERR_SCALE, "scale outside [2^-60, 2^60]");
                }
                c = good;
                for (int k = -60; k <= 60; k += 120) {
                    c.s.scale = ldexp(1, k);
                    CHECK(f->run(&c) == MMAX_OK, AT ": scale 2^%d", AT_ARGS(f, 7), k);
                }
                if (f->order) { check_bad_params(f, good); }
                c = good;
                if (has(f, HAS_EPSILON)) {
                    for (size_t k = 0; k < NOT_FINITE; ++k) {
                        c.epsilon = not_finite(k);
                        check_refused(f, &c, MMAX_ERR_PARAM, "an epsilon that is not finite");
                    }
                }
                if (has(f, HAS_EPSILON) && f->kind != METRIC) {
                    static const double outside[] = {-0.5, -1e-300, 1.0000001, 2, 1e300};
                    for (size_t k = 0; k < COUNT(outside); ++k) {
                        c.epsilon = outside[k];
                        check_refused(f, &c, MMAX_ERR_PARAM, "an epsilon outside [0,1]");
                    }
                    c.epsilon = 1;
                    CHECK(f->run(&c) == MMAX_OK, AT ": epsilon 1 is refused", AT_ARGS(f, 7));
                    c.epsilon = 0;
                    if (f->kind == LOSS) { check_refused(f, &c, MMAX_ERR_PARAM, "epsilon 0 in the loss"); }
                }
                if (f->kind == METRIC) {
                    c.epsilon = -1e300;
                    CHECK(f->run(&c) == MMAX_OK, AT ": epsilon %g is refused", AT_ARGS(f, 7), c.epsilon);
                }
                if (has(f, HAS_REFERENCE)) {
                    c = good;
                    for (size_t k = 0; k < NOT_FINITE; ++k) {
                        c.reference = not_finite(k);
                        check_refused(f, &c, MMAX_ERR_PARAM, "a reference that is not finite");
                    }
                    c.reference = -1e-300;
                    check_refused(f, &c, MMAX_ERR_PARAM, "a negative reference");
                }
                if (f->kind == LOSS) {
                    const double smoothings[] = {-0.1, -1e-300, 1, 1.5, not_finite(0), not_finite(1), not_finite(2)};
                    for (size_t k = 0; k < COUNT(smoothings); ++k) {
                        c = good;
                        c.t.label_smoothing = smoothings[k];
                        check_refused(f, &c, MMAX_ERR_TARGETS, "label_smoothing outside [0,1)");
                    }
                    for (size_t k = 0; k < NOT_FINITE; ++k) {
                        c = good;
                        c.t.grad_scale = not_finite(k);
                        check_refused(f, &c, MMAX_ERR_TARGETS, "a grad_scale that is not finite");
                    }
                }
            }
    }
    TEST("several errors: one of them is reported, and nothing is touched") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa) {
                static const uint32_t lengths[2] = {7, 8};
                const role in = has(f, HAS_X) ? X : Y;
                call c = call_of(f, 2, 7, NORMAL_1, 39);
                c.per_row = has(f, HAS_OUT) ? c.per_row : last_double(f, &c, in);
                c.array[OUT] = has(f, HAS_OUT) ? entries_on(f, storage[in], 1) : c.array[OUT];
                c.array[in] = NULL;
                c.s.ends = lengths;
                c.s.scale = -1;
                check_refused(f, &c, MMAX_OK, "a call in which all is wrong");
                c.array[in] = storage[in];
                check_refused(f, &c, MMAX_OK, "a call with all arrays, in which all else is wrong");
                c.s.ends = NULL;
                check_refused(f, &c, MMAX_OK, "a call with a shape, in which all else is wrong");
                c.s.scale = 1;
                check_refused(f, &c, MMAX_ERR_ALIAS, "a call with an alias");
            }
    }
    TEST("index[r] >= the active length is MMAX_ERR_TARGETS") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                if (f->kind == LOSS) {
                    static const uint32_t lengths[2] = {7, 3}, none[2] = {7, 0};
                    call c = call_of(f, 2, 7, NORMAL_1, 35);
                    index_storage[0] = 0;
                    index_storage[1] = 7;
                    check_refused(f, &c, MMAX_ERR_TARGETS, "index = cols");
                    index_storage[1] = INT32_MAX;
                    check_refused(f, &c, MMAX_ERR_TARGETS, "index = INT32_MAX");
                    c.s.ends = lengths;
                    index_storage[1] = 3;
                    check_refused(f, &c, MMAX_ERR_TARGETS, "index = lengths[r]");
                    c.s.ends = none;
                    index_storage[1] = 0;
                    check_refused(f, &c, MMAX_ERR_TARGETS, "index 0 in a row of length 0");
                    index_storage[1] = INT32_MIN;
                    CHECK(f->run(&c) == MMAX_OK, AT ": INT32_MIN is refused", AT_ARGS(f, 7));
                }
    }
}

/* Outputs that are not of the type T, on arrays of any type. */
static void test_other_aliases(void) {
    TEST("a loss, gradients and index over weights, classes, ends, starts, scales, slopes, sinks or lse: "
         "MMAX_ERR_ALIAS") {
        FOR_EACH_ISA(isa) {
            const mmax_router one = mmax_router_top(1);
            static double a[64], b[64], at[8] = {1, 1, 1, 1, 1, 1, 1, 1};
            static float f[64], g[64];
            uint32_t *const words = (uint32_t *)(void *)at, zeros[8] = {0};
            int32_t classes[8] = {0};
            mmax_attention with = mmax_attention_none();
            mmax_shape s = mmax_rows(4, 8), own = s;
            mmax_targets t = mmax_labels(classes);
            mmax_multimax_params p = mmax_multimax_identity(1);
            t.weights = at;
            CHECK(mmax_softmax_loss_f32(at, g, f, t, s) == MMAX_ERR_ALIAS, "loss = weights");
            CHECK(mmax_softmax_loss_f64(at + 3, b, a, t, s) == MMAX_ERR_ALIAS, "loss on the last weight");
            CHECK(mmax_softmax_loss_f64(at + 4, b, a, t, s) == MMAX_OK, "loss beside weights");
            CHECK(mmax_multimax_loss_f32(b, g, (mmax_multimax_grads *)at, f, &p, t, s) == MMAX_ERR_ALIAS,
                  "gp = weights");
            at[0] = at[1] = 0; /* as classes, and as ends */
            t = mmax_labels((const int32_t *)words);
            CHECK(mmax_entmax_loss_f32(at + 1, g, f, 1.5, t, s) == MMAX_ERR_ALIAS, "loss on classes");
            t.index = classes;
            classes[0] = classes[1] = classes[2] = classes[3] = -1;
            own.ends = words;
            CHECK(mmax_softmax_loss_f32(at + 1, g, f, t, own) == MMAX_ERR_ALIAS, "loss on ends");
            CHECK(mmax_softmax_lse_f32(g, at, f, own) == MMAX_ERR_ALIAS, "lse on ends");
            CHECK(mmax_sparsity_f32(at, g, f, 0, 0, own) == MMAX_ERR_ALIAS, "a metric on ends");
            CHECK(mmax_route_f32(g, words, f, &one, own) == MMAX_ERR_ALIAS, "index = ends");
            own.ends = NULL;
            own.starts = words;
            CHECK(mmax_softmax_lse_f64(b, at, a, own) == MMAX_ERR_ALIAS, "lse on starts");
            CHECK(mmax_route_f32(g, words + 3, f, &one, own) == MMAX_ERR_ALIAS, "index on starts");
            CHECK(mmax_route_f32(g, zeros, f, &one, own) == MMAX_OK, "index apart from starts");
            CHECK(mmax_entmax_backward_f32(g, at + 1, f, f, 1.25, own) == MMAX_ERR_ALIAS, "galpha on starts");
            CHECK(mmax_sparsehourglass_backward_f32(g, at, f, f, f, 1, own) == MMAX_ERR_ALIAS, "gq on starts");
            for (size_t i = 0; i < 8; ++i) { at[i] = 1; }
            own = s;
            own.attention = &with;
            with.head_rows = 2;
            with.scales = at;
            CHECK(mmax_scale_gradient_f32(at, g, f, own) == MMAX_ERR_ALIAS, "gscales = scales");
            CHECK(mmax_scale_gradient_f64(at + 1, b, a, own) == MMAX_ERR_ALIAS, "gscales on scales");
            CHECK(mmax_scale_gradient_f32(at + 2, g, f, own) == MMAX_OK, "gscales beside scales");
            CHECK(mmax_softmax_lse_f32(NULL, at, f, own) == MMAX_ERR_ALIAS, "lse on scales");
            with.scales = NULL;
            with.sinks = at;
            CHECK(mmax_sink_gradient_f32(at, g, f, NULL, own) == MMAX_ERR_ALIAS, "gsinks = sinks");
            CHECK(mmax_sink_gradient_f32(at + 2, g, f, NULL, own) == MMAX_OK, "gsinks beside sinks");
            CHECK(mmax_sink_gradient_f32(at + 5, g, f, at + 2, own) == MMAX_ERR_ALIAS, "gsinks on lse");
            with.sinks = NULL;
            with.slopes = at;
            with.bias = f;
            CHECK(mmax_softmax_lse_f32(g, at, f, own) == MMAX_ERR_ALIAS, "lse on slopes");
        }
    }
}
static void test_values_of_the_type(void) {
    TEST("grad_scale and weights are finite in the type; slopes want a bias") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa) {
                const double beyond = f->size == 4 ? 3.5e38 : not_finite(1);
                double two[2] = {1, beyond};
                mmax_attention with = mmax_attention_none();
                call c = call_of(f, 2, 7, NORMAL_1, 41);
                if (f->kind == LOSS) {
                    for (int sign = -1; sign < 2; sign += 2) {
                        c.t.grad_scale = sign * beyond;
                        check_refused(f, &c, MMAX_ERR_TARGETS, "a grad_scale beyond the type");
                    }
                    c.t.grad_scale = 0;
                    c.t.weights = two;
                    check_refused(f, &c, MMAX_ERR_TARGETS, "a weight beyond the type");
                    two[1] = largest(f);
                    CHECK(f->run(&c) == MMAX_OK, AT ": the largest weight", AT_ARGS(f, 7));
                    c.t.weights = NULL;
                    c.s.attention = &with;
                    check_refused(f, &c, MMAX_ERR_ATTENTION, "attention in a loss");
                } else if (f->kind != METRIC) {
                    with.slopes = two;
                    two[1] = 1;
                    c.s.attention = &with;
                    check_refused(f, &c, MMAX_ERR_ATTENTION, "slopes without bias");
                }
            }
    }
    TEST("several errors of values: one of them is reported") {
        FOR_EACH_ISA(isa) {
            const int32_t classes[2] = {0, 9};
            double loss[2], scales[2] = {-1, 1};
            float x[8] = {0}, y[8] = {0};
            mmax_attention with = mmax_attention_none();
            mmax_shape s = mmax_rows(2, 4);
            with.masked = 1;
            with.scales = scales;
            s.attention = &with;
            CHECK(mmax_evsoftmax_loss_f32(loss, y, x, -1, mmax_labels(classes), s) != MMAX_OK, "all wrong");
            s.attention = NULL;
            CHECK(mmax_evsoftmax_loss_f32(loss, y, x, 1, mmax_labels(classes), s) == MMAX_ERR_TARGETS, "class");
        }
    }
}
static void test_empty_blocks(void) {
    TEST("an empty block of keys: lse is -inf or the sink, a router has weights 0 and no index") {
        FOR_EACH_ISA(isa) {
            const double sinks[2] = {0.5, -2};
            double lse[3] = {7, 7, 7}, weights[6] = {7, 7, 7, 7, 7, 7};
            uint32_t index[6] = {7, 7, 7, 7, 7, 7};
            float short_weights[6] = {7, 7, 7, 7, 7, 7};
            mmax_attention with = mmax_attention_none();
            mmax_shape s = mmax_rows(3, 0);
            mmax_multimax_params p = mmax_multimax_identity(1);
            mmax_router two = mmax_router_top(2);
            CHECK(mmax_softmax_lse_f32(NULL, lse, NULL, s) == MMAX_OK, "status");
            for (int r = 0; r < 3; ++r) { CHECK(bits_of(lse[r]) == 0xfff0000000000000, "lse %g", lse[r]); }
            with.head_rows = 2;
            with.sinks = sinks;
            s.attention = &with;
            CHECK(mmax_multimax_lse_f64(NULL, lse, NULL, &p, s) == MMAX_OK, "status");
            CHECK(lse[0] == 0.5 && lse[1] == 0.5 && lse[2] == -2, "lse %g %g %g", lse[0], lse[1], lse[2]);
            s.attention = NULL;
            CHECK(mmax_route_f64(weights, index, NULL, &two, s) == MMAX_OK, "status");
            CHECK(mmax_route_f32(short_weights, NULL, NULL, &two, s) == MMAX_OK, "status");
            two.k = SIZE_MAX / 2;
            CHECK(mmax_route_f32(short_weights, NULL, NULL, &two, s) == MMAX_ERR_SHAPE, "status");
            for (int i = 0; i < 6; ++i) {
                CHECK(bits_of(weights[i]) == 0 && index[i] == UINT32_MAX && short_weights[i] == 0, "%g %u %g",
                      weights[i], (unsigned)index[i], (double)short_weights[i]);
            }
        }
    }
}

/* All entries but the first are just above the lowest place that a support can have. */
static void test_bottom_of_support(void) {
    TEST("sparsemax and entmax15 find the lowest of a support, however many they are") {
        FOR_EACH_ISA(isa)
            for (size_t n = 2; n <= 40; ++n) {
                for (int half = 0; half < 2; ++half) {
                    float x[40], y[40], sum = 0;
                    for (size_t i = 0; i < n; ++i) { x[i] = i == 0 ? 0.0f : half ? -1.9f : -0.95f; }
                    (half ? mmax_entmax15_f32 : mmax_sparsemax_f32)(y, x, mmax_row(n));
                    for (size_t i = 0; i < n; ++i) { sum += y[i]; }
                    CHECK(y[n - 1] > 0 && sum > 0.99999f && sum < 1.00001f, "isa %d n %u half %d: %g, sum %g", (int)isa,
                          (unsigned)n, half, (double)y[n - 1], (double)sum);
                }
            }
    }
}

/* The error of the sums below: none where long double has more digits than double, which it has not under Valgrind. */
static double roundings_of_sums(void) {
    volatile long double sum = 1;
    sum += 2 * LDBL_EPSILON;
    return LDBL_MANT_DIG > DBL_MANT_DIG && sum > 1 ? 1 : 2;
}

/* Rows in which u - tau cancels, and rows in which many weights are nearly equal. */
#define DIGITS_OF_TAU(T, real, epsilon)                                                                                \
    static void test_digits_of_tau_##T(int isa) {                                                                      \
        real x[64], y[64];                                                                                             \
        for (int n = 2; n <= 64; ++n) {                                                                                \
            long double sum = 0;                                                                                       \
            for (int roundings = 1; roundings <= 8; ++roundings) {                                                     \
                const real near_bottom = (real)(-1 + roundings * 0.5 * (epsilon)),                                     \
                           weight = (near_bottom + 1) / (real)n;                                                       \
                for (int i = 0; i < n; ++i) { x[i] = i == 0 ? 0 : near_bottom; }                                       \
                mmax_sparsemax_##T(y, x, mmax_row((size_t)n));                                                         \
                CHECK(fabs((double)(y[n - 1] / weight) - 1) <= 1e-3, "isa %d, %d entries: %g, not %g", isa, n,         \
                      (double)y[n - 1], (double)weight);                                                               \
            }                                                                                                          \
            for (int i = 0; i < n; ++i) {                                                                              \
                x[i] = (real)(-0.001 * i / n);                                                                         \
                sum += x[i];                                                                                           \
            }                                                                                                          \
            mmax_sparsemax_##T(y, x, mmax_row((size_t)n));                                                             \
            for (int i = 0; i < n; ++i) {                                                                              \
                const long double share = (1 - sum) / n;                                                               \
                const double error = (double)((long double)y[i] - (x[i] + share));                                     \
                CHECK(fabs(error) * n <= (1 + roundings_of_sums()) * (epsilon), "isa %d, entry %d of %d: wrong by %g", \
                      isa, i, n, error);                                                                               \
            }                                                                                                          \
        }                                                                                                              \
    }
DIGITS_OF_TAU(f32, float, FLT_EPSILON)
DIGITS_OF_TAU(f64, double, DBL_EPSILON)
static void test_digits_of_tau(void) {
    TEST("no digit of a weight is lost where it is far below the others, or as small as they are") {
        FOR_EACH_ISA(isa) {
            test_digits_of_tau_f32(isa);
            test_digits_of_tau_f64(isa);
        }
    }
}

/* Rows with most of their weight in one entry, so that the loss is the sum of all the others. */
static void test_long_losses(void) {
    enum { MOST = 2048, ROWS = 5 };
    static float x[ROWS * MOST], gx[ROWS * MOST];
    static const size_t columns[] = {1024, 1025, 1365, 1366, 2047, MOST};
    TEST("losses of rows side by side are the same with a gradient and without") {
        FOR_EACH_ISA(isa)
            for (size_t k = 0; k < sizeof columns / sizeof columns[0]; ++k) {
                const size_t n = columns[k];
                const int32_t index[ROWS] = {0, 0, 0, 0, 0};
                double with[ROWS], alone[ROWS];
                uint32_t bits = 1;
                for (size_t i = 0; i < ROWS * n; ++i) {
                    bits = bits * 1664525u + 1013904223u;
                    x[i] = i % n == 0 ? 30.0f : (float)(bits >> 16) / 16384;
                }
                mmax_softmax_loss_f32(with, gx, x, mmax_labels(index), mmax_rows(ROWS, n));
                mmax_softmax_loss_f32(alone, NULL, x, mmax_labels(index), mmax_rows(ROWS, n));
                for (int r = 0; r < ROWS; ++r) {
                    CHECK(with[r] > 0 && alone[r] - with[r] <= 1e-9 * with[r] && with[r] - alone[r] <= 1e-9 * with[r],
                          "isa %d n %u row %d: %.9g and %.9g", (int)isa, (unsigned)n, r, with[r], alone[r]);
                }
            }
    }
}

int main(void) {
    test_masks();
    test_lengths();
    test_no_active_entry();
    test_nan_rows();
    test_backward();
    test_losses();
    test_nothing_to_do();
    test_masked_mean();
    test_masked_weights();
    test_values();
    test_overflow();
    test_subnormals();
    test_steep_terms();
    test_no_underflow();
    test_small_gradients();
    test_environment();
    test_in_place();
    test_null();
    test_shape_errors();
    test_param_errors();
    test_size_of_values();
    test_other_aliases();
    test_values_of_the_type();
    test_empty_blocks();
    test_bottom_of_support();
    test_digits_of_tau();
    test_long_losses();
    return check_report();
}
