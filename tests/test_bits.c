/*
 * test_bits.c: a row's bits depend on that row alone. Not on the number of rows, its place in the batch, stride,
 * alignment, in place or not, the calling thread; nor on the instruction set, among those with fused multiply-add.
 * SSE2 and the others are compared with themselves only. Losses, logarithms and metrics included.
 */
#define _POSIX_C_SOURCE 200112L

#define WITH_MORE_FUNCTIONS
#include "function_table.h"
#include "threads.h"

/* The result of a row alone. */
typedef struct result {
    uint64_t out[40000], per_row;
    mmax_multimax_grads gp;
} result;

static result alone, first_with_fma;
static double other[ARRAYS][MAX_ENTRIES], other_per_row[MAX_ROWS];
static int32_t other_index[MAX_ROWS];
static mmax_multimax_grads other_gp;

static void run_ok(const function *f, const call *c) {
    mmax_status status = f->run(c);
    CHECK(status == MMAX_OK, AT ": %s", AT_ARGS(f, c->s.cols), mmax_status_string(status));
}

static void run_alone(const function *f, const call *c) {
    memset(&gp_storage, 0, sizeof gp_storage);
    run_ok(f, c);
    for (size_t i = 0; has(f, HAS_OUT) && i < c->s.cols; ++i) { alone.out[i] = get_bits(f, c->array[OUT], i); }
    alone.per_row = bits_of(row_storage[0]);
    alone.gp = gp_storage;
}

/* NaN has no promised bits in gp. */
static uint64_t gp_bits(const mmax_multimax_grads *gp, size_t k) {
    double d;
    memcpy(&d, (const char *)gp + k * sizeof d, sizeof d);
    return is_nan_double(d) ? 1 : bits_of(d);
}

static int same_gp(const mmax_multimax_grads *a, const mmax_multimax_grads *b) {
    size_t k = 0;
    while (k < sizeof *a / sizeof(double) && gp_bits(a, k) == gp_bits(b, k)) { ++k; }
    return k == sizeof *a / sizeof(double);
}

static void check_row(const function *f, const void *out, double per_row, size_t n, const char *what, unsigned place) {
    size_t i = 0;
    while (has(f, HAS_OUT) && i < n && get_bits(f, out, i) == alone.out[i]) { ++i; }
    CHECK(!has(f, HAS_OUT) || i == n, AT ": %s, row %u: entry %u is %llx, alone %llx", AT_ARGS(f, n), what, place,
          (unsigned)i, (unsigned long long)get_bits(f, out, i), (unsigned long long)alone.out[i]);
    CHECK(bits_of(per_row) == alone.per_row, AT ": %s, row %u: %llx, alone %llx", AT_ARGS(f, n), what, place,
          (unsigned long long)bits_of(per_row), (unsigned long long)alone.per_row);
}

static void check_ignored(const function *f, const void *out, size_t n, double loss) {
    size_t i = 0;
    while (i < n && get_bits(f, out, i) == 0) { ++i; }
    CHECK(i == n && bits_of(loss) == 0, AT ": an ignored row's loss is %g, its gradient not 0 from %u on",
          AT_ARGS(f, n), loss, (unsigned)i);
}

static int is_ours(size_t row, size_t every) { return row % every == every - 1; }

/* The first pass may take several rows of up to this many entries together. */
#define TOGETHER 1024

/*
 * The row of c as every `every`-th row of a batch of `rows`, other rows between, at random strides and offsets;
 * with `in_place` the output lies on that input; with `shortened` the batch has more columns, with 2 of it by
 * thousands, and lengths say n, for the other rows often something else.
 */
static void check_in_batch(const function *f, const call *c, size_t rows, size_t every, int in_place, int shortened) {
    const char *what = in_place ? "in place" : shortened ? "lengths" : rows > 1 ? "batch" : "stride and offset";
    size_t n = c->s.cols, more = shortened == 2 ? 2100 : 1;
    size_t cols = n + (shortened ? more + random_below(6) : 0);
    uint32_t lengths[MAX_ROWS];
    int ordinary = random_below(3) == 0; /* the other rows, but for ignored ones */
    call b = *c;
    mmax_multimax_grads gp;
    b.s.rows = rows;
    b.s.cols = cols;
    b.s.ends = shortened ? lengths : NULL;
    b.per_row = other_per_row;
    b.t.index = other_index;
    memset(&other_gp, 0, sizeof other_gp);
    b.gp = &other_gp;
    for (int r = 0; r < ARRAYS; ++r) {
        b.array[r] = (char *)other[r] + random_below(20) * f->size;
        *stride_of(f, &b.s, (role)r) = cols + random_below(5);
    }
    for (int r = GY; r <= X; ++r) {
        size_t stride = *stride_of(f, &b.s, (role)r);
        for (size_t row = 0; row < rows; ++row) {
            void *to = (char *)b.array[r] + row * stride * f->size;
            if (is_ours(row, every)) {
                memcpy(to, c->array[r], n * f->size);
            } else {
                fill(f, to, cols, r == X ? (law)random_below(LAWS) : NORMAL_1);
                if (!ordinary) { set_special(f, to, random_below(n), (special)random_below(SPECIALS)); }
            }
        }
    }
    for (size_t row = 0; row < rows; ++row) {
        const int others = !is_ours(row, every) && ordinary;
        lengths[row] = (uint32_t)(others ? 1 + random_below(cols) : n);
        other_index[row] = is_ours(row, every)
                               ? c->t.index[0]
                               : (int32_t)random_below(shortened ? lengths[row] : n) - (random_below(5) == 0) * 99999;
    }
    if (in_place) {
        b.array[OUT] = b.array[in_place];
        *stride_of(f, &b.s, OUT) = *stride_of(f, &b.s, (role)in_place);
    }
    run_ok(f, &b);
    gp = other_gp;
    for (size_t row = every - 1; row < rows; row += every) {
        const void *out = (char *)b.array[OUT] + row * *stride_of(f, &b.s, OUT) * f->size;
        check_row(f, out, f->kind == LOSS || f->kind == METRIC ? other_per_row[row] : 0, n, what, (unsigned)row);
    }
    for (size_t row = 0; f->kind == LOSS && row < rows; ++row) {
        if (other_index[row] < 0) {
            check_ignored(f, (char *)b.array[OUT] + row * *stride_of(f, &b.s, OUT) * f->size, cols, other_per_row[row]);
        }
    }
    if (f->kind == LOSS && !in_place) { /* the loss without the gradient */
        b.array[OUT] = NULL;
        run_ok(f, &b);
        for (size_t row = every - 1; row < rows; row += every) {
            CHECK(bits_of(other_per_row[row]) == alone.per_row, AT ": no gradient, row %u: %llx, with it %llx",
                  AT_ARGS(f, n), (unsigned)row, (unsigned long long)bits_of(other_per_row[row]),
                  (unsigned long long)alone.per_row);
        }
        other_gp = gp;
    }
    if (rows == 1) { CHECK(same_gp(&other_gp, &alone.gp), AT ": %s: gp differs", AT_ARGS(f, n), what); }
}

static void check_isa(const function *f, size_t n, int isa, int *fma_seen) {
    if (!uses_fma(isa)) { return; }
    if (!*fma_seen) {
        first_with_fma = alone;
        *fma_seen = 1;
        return;
    }
    for (size_t i = 0; has(f, HAS_OUT) && i < n; ++i) {
        CHECK(alone.out[i] == first_with_fma.out[i], AT ": entry %u is %llx, on the first instruction set %llx",
              AT_ARGS(f, n), (unsigned)i, (unsigned long long)alone.out[i], (unsigned long long)first_with_fma.out[i]);
    }
    CHECK(alone.per_row == first_with_fma.per_row, AT ": %llx, on the first instruction set %llx", AT_ARGS(f, n),
          (unsigned long long)alone.per_row, (unsigned long long)first_with_fma.per_row);
}

/* One row of random scores; odd laws get a scale, label smoothing and a reference. */
static call row_of_law(const function *f, size_t n, law l) {
    call c = call_of(f, 1, n, l, 40 + (uint64_t)l);
    if (l % 2) {
        c.s.scale = l % 4 == 1 ? 0.7 : 1.6;
        c.t.label_smoothing = 0.1;
        c.t.grad_scale = 1.3;
        c.reference = 0.01;
        c.epsilon += f->kind == METRIC ? 0.05 : 0;
        make_y(f, &c);
    }
    return c;
}

static void check_rows(const function *f, size_t n, law l) {
    int fma_seen = 0;
    FOR_EACH_ISA(isa) {
        call c = row_of_law(f, n, l); /* each instruction set reads its own y */
        run_alone(f, &c);
        check_isa(f, n, isa, &fma_seen);
        check_in_batch(f, &c, 1, 1, 0, 0);
        check_in_batch(f, &c, 3, 1 + random_below(3), 0, 0);
        check_in_batch(f, &c, 2, 1, 0, 1);
        if (n <= 40) {
            check_in_batch(f, &c, 2 + random_below(18), 1 + random_below(3), 0, 0);
            check_in_batch(f, &c, MAX_ROWS, 2, 0, (int)random_below(2));
            if (n % 8 == 1) { check_in_batch(f, &c, 3, 2, 0, 2); }
        } else if (n <= TOGETHER && f->kind == FORWARD) {
            check_in_batch(f, &c, 16 + random_below(2), 1 + random_below(3), 0, 0);
        }
        for (int r = GY; r <= X; ++r) {
            if (has(f, HAS_OUT) && has(f, 1u << r)) {
                check_in_batch(f, &c,
                               1 + random_below(n <= 40         ? MAX_ROWS
                                                : n <= TOGETHER ? 17
                                                                : 2),
                               1, r, n <= 40 && random_below(3) == 0);
            }
        }
    }
}

/* A row with a special entry (which < SPECIALS) or with others that few rows have: short rows are worked on several at
 * a time. */
enum {
    LARGE = SPECIALS, /* as large as can be */
    LARGE_NEGATIVE,
    MASK_BESIDE_NAN,
    NAN_AFTER_MASK,
    WIDE, /* the others have weights below the smallest normal number */
    NAN_GY,
    LARGE_GY, /* all of them */
    ROW_KINDS
};

static void check_special_rows(const function *f, size_t n, int which) {
    /* Both orders overflow, the second decides: +inf. */
    static const mmax_multimax_params steep = {2, {9, 0.5}, {-9, 1.5}, {0, 0}, {0, 0}};
    /* sigma(-inf), were it not masked, is NaN or +inf. */
    static const mmax_multimax_params rising[3] = {{0, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
                                                   {1, {0.5, 1}, {1.5, 1}, {-0.25, 0}, {0.5, 0}},
                                                   {2, {0.5, 0.75}, {1.5, 1.25}, {-0.25, -0.75}, {0.5, 1.25}}};
    int fma_seen = 0;
    FOR_EACH_ISA(isa) {
        call c = call_of(f, 1, n, NORMAL_1, 60 + (uint64_t)which);
        size_t at = random_below(n);
        if (which < SPECIALS) {
            set_special(f, c.array[X], at, (special)which);
            c.p = f->order ? &rising[f->order] : c.p;
        } else if (which == MASK_BESIDE_NAN) {
            set_special(f, c.array[X], n > 16 ? 16 : at, MINUS_INF); /* in a register's first lane, as */
            set_special(f, c.array[X], 0, QUIET_NAN);
        } else if (which == NAN_AFTER_MASK) {
            set_special(f, c.array[X], 0, MINUS_INF);
            set_special(f, c.array[X], n - 1, QUIET_NAN);
        } else if (which == NAN_GY) {
            set_special(f, c.array[GY], at, QUIET_NAN);
        } else if (which == LARGE_GY) {
            for (size_t i = 0; i < n; ++i) { set(f, c.array[GY], i, n / 2 % 2 ? largest(f) : -largest(f)); }
        } else if (which == WIDE) {
            set(f, c.array[X], at, f->size == 4 ? 160 : 1000);
        } else {
            set(f, c.array[X], at, (which == LARGE ? 0.9 : -0.9) * largest(f));
            set(f, c.array[X], (at + 1) % n, (which == LARGE ? 0.9 : -0.9) * largest(f));
            c.p = f->order == 2 ? &steep : c.p;
        }
        make_y(f, &c);
        run_alone(f, &c);
        check_isa(f, n, isa, &fma_seen);
        check_in_batch(f, &c, MAX_ROWS, 1, 0, 0);
        check_in_batch(f, &c, MAX_ROWS, 2, 0, 0);
        for (int r = GY; r <= X; ++r) {
            if (has(f, HAS_OUT) && has(f, 1u << r) && (f->kind == FORWARD || f->kind == BACKWARD || f->kind == LOSS)) {
                check_in_batch(f, &c, 1 + random_below(17), 1, r, 0);
            }
        }
    }
}

static void test_places(void) {
    TEST("a row's bits: alone, in any batch, stride, offset, in place, with lengths, on every instruction set") {
        FOR_EACH_FUNCTION(f) {
            for (size_t n = 1; n <= 258; n = n > 131 - LENGTH_STEP && n < 255 ? 255 : n + LENGTH_STEP) {
                for (int l = 0; l < LAWS; ++l) { check_rows(f, n, (law)l); }
            }
        }
    }
    TEST("the same for rows with NaN, infinities or large numbers") {
        FOR_EACH_FUNCTION(f) {
            for (size_t n = 1; n < 70; n += LENGTH_STEP) {
                for (int which = 0; which < (has(f, HAS_GY) ? ROW_KINDS : NAN_GY); ++which) {
                    check_special_rows(f, n, which);
                }
            }
            for (size_t n = 95; (f->kind == FORWARD || f->kind == BACKWARD) && n < 600;
                 n += f->kind == FORWARD && LENGTH_STEP < 5 ? 101 : 303) {
                for (int which = 0; which < (has(f, HAS_GY) ? ROW_KINDS : NAN_GY); ++which) {
                    check_special_rows(f, n, which);
                }
            }
        }
    }
    TEST("the same for long rows") {
        /* the second one: sums of a chunk, then one register of AVX-512, two of AVX2 */
        static const size_t lengths[] = {1000, 1032, 4099, 40000};
        static const law laws[] = {NORMAL_4, CLUSTERS, MASKED, GEOMETRIC};
        FOR_EACH_FUNCTION(f)
            for (size_t k = 0; k < (COUNT(lengths) - (LENGTH_STEP > 4)) * COUNT(laws); ++k) {
                if (k / COUNT(laws) < 3 || k % COUNT(laws) % 2 == 0) {
                    check_rows(f, lengths[k / COUNT(laws)], laws[k % COUNT(laws)]);
                }
            }
    }
}

/* ==== gradients of parameters, which add up over rows ==== */

static void check_gp(const function *f, size_t rows, size_t n, law l) {
    uint32_t lengths[MOST_ROWS];
    for (size_t row = 0; row < rows; ++row) { lengths[row] = (uint32_t)n; }
    FOR_EACH_ISA(isa) {
        call c = call_of(f, rows, n, l, 80 + (uint64_t)l);
        mmax_multimax_grads gp;
        size_t i;
        c.t.label_smoothing = l % 2 ? 0.1 : 0;
        for (size_t row = l % 3; row < rows; row += 11) { index_storage[row] = -1; }
        run_ok(f, &c);
        gp = gp_storage;
        memset(&gp_storage, 0, sizeof gp_storage);
        c.s.ends = lengths;
        run_ok(f, &c);
        CHECK(same_gp(&gp, &gp_storage), AT ": %u rows, gp differs with lengths", AT_ARGS(f, n), (unsigned)rows);
        memset(&gp_storage, 0, sizeof gp_storage);
        c.s.ends = NULL;
        c.gp = NULL;
        c.array[OUT] = other[OUT];
        run_ok(f, &c);
        for (i = 0; i < rows * n && get_bits(f, storage[OUT], i) == get_bits(f, other[OUT], i); ++i) {}
        CHECK(i == rows * n, AT ": %u rows, gx differs without gp", AT_ARGS(f, n), (unsigned)rows);
        c.gp = &gp_storage;
        c.array[OUT] = NULL;
        run_ok(f, &c);
        CHECK(same_gp(&gp, &gp_storage), AT ": %u rows, gp differs without gx", AT_ARGS(f, n), (unsigned)rows);
    }
}

static void test_gp(void) {
    TEST("gp of a batch: the same bits with lengths that leave nothing out; gp without gx, gx without gp") {
        static const size_t widths[] = {1, 7, 8, 10, 16, 17, 31, 32, 33, 48, 63, 64, 65, 100};
        FOR_EACH_FUNCTION(f) {
            for (size_t k = 0; has(f, HAS_GP) && k < COUNT(widths); k += LENGTH_STEP < 5 ? 1 : 3) {
                for (int l = 0; l < LAWS; ++l) { check_gp(f, MOST_ROWS - 7 * (size_t)l, widths[k], (law)l); }
            }
        }
    }
}

/* ==== rows beside rows that are searched in another way ==== */

enum { CROWD_ROWS = 330, CROWD_COLS = 1000 };
static float crowd_x[CROWD_ROWS * CROWD_COLS], crowd_out[2][CROWD_ROWS * CROWD_COLS];
static double crowd_loss[2][CROWD_ROWS];
static int32_t crowd_index[CROWD_ROWS];

/* Spread: the smaller, the more entries are near the maximum. */
static void fill_crowd(size_t cols) {
    static const double spreads[] = {30, 4, 1, 0.3, 0.02};
    for (size_t row = 0; row < CROWD_ROWS; ++row) {
        const size_t wide = row / 40 % 3 == 0 ? 2 : COUNT(spreads); /* now and then, only rows with few of them */
        const double spread = spreads[random_below(wide)];
        for (size_t i = 0; i < cols; ++i) { crowd_x[row * cols + i] = (float)(spread * random_normal()); }
        crowd_index[row] = (int32_t)random_below(cols) - (random_below(9) == 0) * 99999;
    }
}

/* Weights, or losses and their gradients, of `rows` rows from `at` on. */
static mmax_status run_crowd(const function *f, int copy, double epsilon, size_t at, size_t rows, size_t cols) {
    call c;
    memset(&c, 0, sizeof c);
    c.array[OUT] = crowd_out[copy] + at * cols;
    c.array[X] = crowd_x + at * cols;
    c.per_row = crowd_loss[copy] + at;
    c.epsilon = epsilon;
    c.t = mmax_labels(crowd_index + at);
    c.s = mmax_rows(rows, cols);
    return f->run(&c);
}

/* Rows together, which is copy 0, and alone. */
static void check_crowd(const function *f, double epsilon, size_t rows, size_t cols) {
    mmax_status status = run_crowd(f, 0, epsilon, 0, rows, cols);
    for (size_t row = 0; row < rows && status == MMAX_OK; ++row) { status = run_crowd(f, 1, epsilon, row, 1, cols); }
    CHECK(status == MMAX_OK, AT ": %s", AT_ARGS(f, cols), mmax_status_string(status));
    CHECK(memcmp(crowd_out[0], crowd_out[1], rows * cols * sizeof(float)) == 0,
          AT ": weights or gradients differ from those of the rows alone, epsilon %g", AT_ARGS(f, cols), epsilon);
    CHECK(memcmp(crowd_loss[0], crowd_loss[1], sizeof crowd_loss[0]) == 0,
          AT ": losses differ from those of the rows alone, epsilon %g", AT_ARGS(f, cols), epsilon);
}

static void test_crowds(void) {
    TEST("sparsemax, entmax15: rows with few entries near the maximum beside rows with many") {
        static const char *const names[] = {"sparsemax_f32", "entmax15_f32", "sparsemax_loss_f32", "entmax15_loss_f32"};
        static const size_t widths[] = {9, 16, 24, 40, 90, 150, 300, CROWD_COLS};
        random_state = 77;
        for (size_t k = 0; k < COUNT(widths); k += LENGTH_STEP < 5 ? 1 : 3) {
            fill_crowd(widths[k]);
            FOR_EACH_ISA(isa) {
                for (size_t which = 0; which < COUNT(names); ++which) {
                    check_crowd(function_named(names[which]), 0, CROWD_ROWS, widths[k]);
                }
            }
        }
    }
}

static void test_tiny_epsilons(void) {
    TEST("evsoftmax_loss: rows beside one with a mask, and alone, where epsilon takes weights below all numbers") {
        enum { ROWS = 9 };
        static const double epsilons[] = {1e-300, 1e-45, 5e-38, 1e-32, 1e-23, 1e-20};
        static const size_t widths[] = {2, 3, 10, 41};
        const function *f = function_named("evsoftmax_loss_f32");
        double with_fma[ROWS];
        random_state = 5;
        for (size_t k = 0; k < COUNT(epsilons) * COUNT(widths) * 40; ++k) {
            const size_t cols = widths[k % COUNT(widths)];
            const double spread = k / 24 % 2 ? 0.01 : 4, epsilon = epsilons[k / COUNT(widths) % COUNT(epsilons)];
            int first = 1;
            for (size_t i = 0; i < ROWS * cols; ++i) { crowd_x[i] = (float)(spread * random_normal()); }
            set_special(f, crowd_x, random_below(ROWS * cols), MINUS_INF);
            for (size_t row = 0; row < ROWS; ++row) { crowd_index[row] = (int32_t)random_below(cols); }
            FOR_EACH_ISA(isa) {
                check_crowd(f, epsilon, ROWS, cols);
                if (uses_fma(isa)) {
                    CHECK(first || memcmp(with_fma, crowd_loss[0], sizeof with_fma) == 0,
                          AT ": losses differ from another instruction set's, epsilon %g", AT_ARGS(f, cols), epsilon);
                    memcpy(with_fma, crowd_loss[0], sizeof with_fma);
                    first = 0;
                }
            }
        }
    }
}

/* ==== threads ==== */

#if HAVE_THREADS
typedef struct job {
    const function *f;
    const call *c;
    mmax_status status;
} job;

static void *run_job(void *argument) {
    job *j = argument;
    j->status = j->f->run(j->c);
    return NULL;
}

static void test_threads(void) {
    TEST("the same bits from another thread") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                for (size_t n = 1; n < 3000; n = 3 * n + 4) {
                    call c = row_of_law(f, n, NORMAL_4);
                    job j = {f, &c, MMAX_ERR_NULL};
                    pthread_t thread;
                    run_alone(f, &c);
                    memset(c.array[OUT], 0x77, n * f->size);
                    memset(&gp_storage, 0, sizeof gp_storage);
                    if (pthread_create(&thread, NULL, run_job, &j) != 0) {
                        CHECK(0, "no thread");
                        continue;
                    }
                    pthread_join(thread, NULL);
                    CHECK(j.status == MMAX_OK, AT, AT_ARGS(f, n));
                    check_row(f, c.array[OUT], row_storage[0], n, "thread", 0);
                    CHECK(same_gp(&gp_storage, &alone.gp), AT ": gp differs", AT_ARGS(f, n));
                }
    }
}
#else
static void test_threads(void) { NOTE("no threads here: skipped"); }
#endif

/* ==== scores with a bias ==== */
#if defined(__FAST_MATH__) /* which takes what TwoSum finds for 0 here */
static void test_bias(void) { NOTE("-ffast-math: skipped"); }
#else
enum { BIASED = 3 };
/* scale x + slope bias, rounded once: what products and sum lose is added last. */
static double score_of(const function *f, double scale, double x, double slope, double bias) {
    const double p = scale * x, q = slope * bias, s = p + q, shadow = s - p;
    const double lost = (p - (s - shadow)) + (q - shadow);
    return f->size == 4 ? (double)(float)s : s + (lost + (fma(scale, x, -p) + fma(slope, bias, -q)));
}

/* Rows whose bias cancels all of scale x but a normal number, or is 0. */
static void check_bias(const function *f, size_t n, double size, uint64_t seed) {
    static double scores[BIASED * 800], bias[BIASED * 800], gx[MAX_ENTRIES];
    static const double scales[] = {0.08838834764831845, 0.1, 1, 3.7}, slopes[] = {1, -0.7, 0.0625, 3.0e-3};
    const double scale = scales[seed % 4], slope = slopes[seed / 4 % 4];
    mmax_attention a = mmax_attention_none();
    call c = call_of(f, BIASED, n, NORMAL_4, seed), plain = c;
    for (size_t i = 0; i < BIASED * n; ++i) {
        set(f, storage[X], i, (2 * random_uniform() - 1) * size);
        set(f, bias, i, size > 100 ? (random_normal() - scale * get(f, storage[X], i)) / slope : 0);
        set(f, scores, i, score_of(f, scale, get(f, storage[X], i), slope, get(f, bias, i)));
    }
    plain.array[X] = scores;
    make_y(f, &plain);
    run_ok(f, &plain);
    memcpy(gx, plain.array[OUT], BIASED * n * f->size);
    double value[2] = {row_storage[0], row_storage[BIASED - 1]};
    a.bias = bias;
    a.slopes = &slope;
    c.s.scale = scale;
    c.s.attention = &a;
    run_ok(f, &c);
    CHECK(!has(f, HAS_LSE) || (value[0] == row_storage[0] && value[1] == row_storage[BIASED - 1]), AT, AT_ARGS(f, n));
    for (size_t i = 0; i < BIASED * n; ++i) {
        const double got = get(f, c.array[OUT], i), wanted = get(f, gx, i);
        if (f->kind == FORWARD || f->kind == LOGARITHM) {
            /* near their threshold weights lose more, as a part of them */
            const double least = (f->size == 4 ? FLT_EPSILON : DBL_EPSILON) * 4 * fmax(fabs(wanted), 1e-4);
            CHECK(got == wanted || fabs(got - wanted) <= least,
                  AT ", scale %g, slope %g, entry %u: %.9g, of scores rounded once %.9g", AT_ARGS(f, n), scale, slope,
                  (unsigned)i, got, wanted);
        } else { /* the gradient of the scores, times the scale */
            const double eps = f->size == 4 ? FLT_EPSILON : DBL_EPSILON;
            CHECK(fabs(got - scale * wanted) <= 64 * eps * (fabs(scale * wanted) + scale * (0.1 + (double)n * 1e-3)),
                  AT ", scale %g, slope %g, entry %u: gx %.9g, of scores rounded once %.9g", AT_ARGS(f, n), scale,
                  slope, (unsigned)i, got, scale * wanted);
        }
    }
}

static int sees_scores(const function *f) {
    return has(f, HAS_OUT) && has(f, HAS_X) && !has(f, HAS_INDEX | PER_HEAD | BY_PLACE) && f->kind != LOSS &&
           f->kind != METRIC;
}

static void test_bias(void) {
    TEST("a score with a bias is rounded once, in forward and backward functions") {
        for (size_t i = 0; i < ALL; ++i) {
            const function *f = any_function(i);
            FOR_EACH_ISA(isa) {
                uint64_t seed = 0;
                for (size_t n = 2; n <= 800; n = 3 * n + 1, ++seed) {
                    for (unsigned k = 0; sees_scores(f) && k < 16 / CASE_STEP + 1; ++k, ++seed) {
                        check_bias(f, n, k % 3 == 0 ? 4 : k % 3 == 1 ? 2828 : 1000, seed);
                    }
                }
            }
        }
    }
}
#endif

int main(void) {
    test_bias();
    test_places();
    test_gp();
    test_crowds();
    test_tiny_epsilons();
    test_threads();
    return check_report();
}
