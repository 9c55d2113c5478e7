/*
 * test_environment.c: callers who have set another rounding mode, or subnormal numbers to be flushed to zero. Results
 * stay near to those of the default environment, within the bounds below; special cases, and a row's independence of
 * its neighbours, hold as ever. That the environment itself is left alone is a matter of test_special_cases.c. And
 * callers who trap exceptions, which rows of numbers and masks do not raise.
 */
#define WITH_MORE_FUNCTIONS
#include "function_table.h"

#if (defined(__SSE2__) || defined(_M_X64)) && !defined(__TINYC__)
#    include <xmmintrin.h>
#endif

#define ROWS         2
#define BATCH        17
#define MOST_ENTRIES 33

/* ==== environments ==== */

/* Makes the processor flush subnormal results and read subnormal operands as 0; whether it can. */
static int flush_to_zero(void) {
#if (defined(__SSE2__) || defined(_M_X64)) && !defined(__TINYC__)
    _mm_setcsr(_mm_getcsr() | 0x8040u);
    return 1;
#elif defined(__GNUC__) && defined(__aarch64__)
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    control |= 1u << 24;
    __asm__ volatile("msr fpcr, %0" : : "r"(control));
    return 1;
#else
    return 0;
#endif
}

static int round_to_nearest_and_flush(void) { return flush_to_zero(); }
#if defined(FE_UPWARD)
static int round_upward(void) { return fesetround(FE_UPWARD) == 0; }
static int round_upward_and_flush(void) { return flush_to_zero() && fesetround(FE_UPWARD) == 0; }
#endif
#if defined(FE_DOWNWARD)
static int round_downward(void) { return fesetround(FE_DOWNWARD) == 0; }
#endif
#if defined(FE_TOWARDZERO)
static int round_toward_zero(void) { return fesetround(FE_TOWARDZERO) == 0; }
#endif

typedef struct environment {
    const char *name;
    int (*enter)(void);
} environment;

static const environment environments[] = {
    {"flush to zero", round_to_nearest_and_flush},
#if defined(FE_UPWARD)
    {"upward", round_upward},
    {"upward, flush to zero", round_upward_and_flush},
#endif
#if defined(FE_DOWNWARD)
    {"downward", round_downward},
#endif
#if defined(FE_TOWARDZERO)
    {"toward zero", round_toward_zero},
#endif
};

static const environment *now;

static void leave_environment(void) {
    fesetenv(FE_DFL_ENV);
#if (defined(__SSE2__) || defined(_M_X64)) && !defined(__TINYC__)
    _mm_setcsr(0x1f80); /* MinGW's fesetenv leaves this register alone */
#endif
}

static mmax_status run_in_environment(const function *f, const call *c) {
    mmax_status status = MMAX_ERR_ISA;
    memset(&gp_storage, 0, sizeof gp_storage);
    if (now->enter()) { status = f->run(c); }
    leave_environment();
    return status;
}

static void run_and_check(const function *f, const call *c) {
    mmax_status status = run_in_environment(f, c);
    CHECK(status == MMAX_OK, AT ", %s: %s", AT_ARGS(f, c->s.cols), now->name, mmax_status_string(status));
}

#define IN_ENVIRONMENT            AT ", %s"
#define IN_ENVIRONMENT_ARGS(f, n) AT_ARGS(f, n), now->name

static int available(const environment *e) {
    int entered = e->enter();
    leave_environment();
    if (!entered) { NOTE("%s: not on this machine", e->name); }
    return entered;
}

/* ==== results near to those of the default environment ==== */

static double expected[MAX_ENTRIES], expected_row[MAX_ROWS], expected_gp[8];

static void gradients(double *to, const mmax_multimax_grads *gp) {
    for (int k = 0; k < 2; ++k) {
        to[4 * k] = gp->t_b[k];
        to[4 * k + 1] = gp->t_d[k];
        to[4 * k + 2] = gp->b[k];
        to[4 * k + 3] = gp->d[k];
    }
}

static double magnitude(double v) { return v < 0 ? -v : v; }

/* The largest finite magnitude of a. */
static double largest_of(const function *f, const void *a, size_t n) {
    double most = 0;
    for (size_t i = 0; i < n; ++i) {
        if (is_finite_at(f, a, i) && magnitude(get(f, a, i)) > most) { most = magnitude(get(f, a, i)); }
    }
    return most;
}

/* Entry by entry, where weights are exponentials of the scores themselves. */
static int is_relative(const function *f) {
    return f->kind == FORWARD && f->order == 0 && strncmp(f->name, "sparsemax", 9) != 0 &&
           strncmp(f->name, "entmax15", 8) != 0;
}

/* Of one entry or one number of the row, in roundings of `unit`; entries below the smallest normal number in their own. */
static double error_of(const function *f, double got, double want, double unit) {
    double difference = magnitude(got - want);
    return difference > 4 * smallest_normal(f) ? difference / (eps_of(f) * unit) : 0;
}

/*
 * In roundings. A directed rounding of the scores to eighths of a power of two makes the interval of the polynomial of
 * exp twice as wide: in f32 that is nothing, in f64 some 230 roundings, of sinh 410.
 */
static double allowed(const function *f) { return f->size == 4 ? 32 : strcmp(f->name, "tanhmax_f64") == 0 ? 500 : 400; }

/* The magnitude to which errors of a row's sums are relative. Terms of sigma and its derivatives grow with the scores. */
static double row_unit(const function *f, const call *c, double largest_entry) {
    double unit = has(f, HAS_GY) ? largest_of(f, c->array[GY], ROWS * c->s.cols) : 1;
    double score = 1 + largest_of(f, c->array[X], ROWS * c->s.cols);
    if (f->kind == FORWARD) { return largest_entry; }
    for (int k = 0; k < f->order; ++k) { unit *= score; }
    return unit + largest_entry;
}

static int in_range(const function *f, double a) { return (bits_of(a) & 0x7fffffffffffffff) <= bits_of(largest(f)); }

static double check_near(const function *f, size_t n, const char *what, size_t i, double got, double want,
                         double unit) {
    double error = 0;
    int finite = in_range(f, want), same_kind = finite == in_range(f, got);
    if (finite && same_kind) { error = error_of(f, got, want, unit); }
    CHECK(same_kind && error <= allowed(f), IN_ENVIRONMENT ", %s %u: %.17g, not %.17g: %.1f roundings",
          IN_ENVIRONMENT_ARGS(f, n), what, (unsigned)i, got, want, error);
    return error;
}

static double compare(const function *f, const call *c) {
    size_t n = c->s.cols;
    double worst = 0, gp[8], here;
    for (size_t r = 0; r < ROWS; ++r) {
        double most = 0, unit;
        for (size_t i = r * n; has(f, HAS_OUT) && i < (r + 1) * n; ++i) {
            double entry = magnitude(expected[i]);
            most = entry <= largest(f) && entry > most ? entry : most;
        }
        unit = row_unit(f, c, most);
        for (size_t i = r * n; has(f, HAS_OUT) && i < (r + 1) * n; ++i) {
            here = check_near(f, n, "entry", i, get(f, c->array[OUT], i), expected[i],
                              is_relative(f) ? magnitude(expected[i]) : unit);
            worst = here > worst ? here : worst;
        }
        if (f->kind == LOSS || f->kind == METRIC) {
            here = check_near(f, n, "row", r, c->per_row[r], expected_row[r], 1 + magnitude(expected_row[r]));
            worst = here > worst ? here : worst;
        }
    }
    gradients(gp, c->gp);
    for (size_t k = 0; k < 8; ++k) {
        here =
            check_near(f, n, "gp", k, gp[k], expected_gp[k], (double)n * row_unit(f, c, 0) + magnitude(expected_gp[k]));
        worst = here > worst ? here : worst;
    }
    return worst;
}

/* Laws under which no result hangs on how one sum rounds: no score is at a mean, but in rows of equal scores, and in a
 * geometric one of 32, whose fifth is 3/16. */
static const law smooth_laws[] = {NORMAL_1, NORMAL_4, MASKED, ONE_HOT, GEOMETRIC};
static int hangs_on_mean(const function *f, law l) { return l == GEOMETRIC && strncmp(f->name, "evsoftmax", 9) == 0; }

static double compare_rows(const function *f, size_t n, law l) {
    call c = call_of(f, ROWS, n, l, 91);
    CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
    for (size_t i = 0; has(f, HAS_OUT) && i < ROWS * n; ++i) { expected[i] = get(f, c.array[OUT], i); }
    memcpy(expected_row, row_storage, sizeof expected_row);
    gradients(expected_gp, &gp_storage);
    memset(c.array[OUT], 0x77, ROWS * n * f->size);
    run_and_check(f, &c);
    return compare(f, &c);
}

static void test_accuracy(void) {
    TEST("results near to those of the default environment") {
        FOR_EACH_FUNCTION(f) {
            double worst = 0;
            if (has(f, SELECTS)) { continue; } /* subnormal numbers may tie */
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n)
                    for (size_t k = 0; k < COUNT(smooth_laws); ++k) {
                        double here = hangs_on_mean(f, smooth_laws[k]) ? 0 : compare_rows(f, n, smooth_laws[k]);
                        worst = here > worst ? here : worst;
                    }
            NOTE("%-26s %6.1f roundings", f->name, worst);
        }
    }
}

/* ==== rules for every row ==== */

static void test_sums(void) {
    TEST("the sum of a row is 1, nothing is negative or NaN, whatever the scores") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n)
                    for (int l = 0; has(f, PROBABILITY) && l < LAWS; ++l) {
                        call c = call_of(f, 1, n, (law)l, 92);
                        double sum = 0, slack = (f->size == 4 ? 4e-6 : 4e-14);
                        int active = 0;
                        if (l == ANY_SIZE && f->order) { continue; /* sigma overflows: a NaN row */ }
                        run_and_check(f, &c);
                        for (size_t i = 0; i < n; ++i) {
                            double y = get(f, c.array[OUT], i);
                            active += !is_special(f, c.array[X], i, MINUS_INF);
                            CHECK(is_finite_at(f, c.array[OUT], i) && y >= 0 && y <= 1 + slack,
                                  IN_ENVIRONMENT ", law %d: entry %u is %g", IN_ENVIRONMENT_ARGS(f, n), l, (unsigned)i,
                                  y);
                            sum += y;
                        }
                        CHECK(magnitude(sum - (active > 0)) <= slack, IN_ENVIRONMENT ", law %d: the sum is 1 %+.3g",
                              IN_ENVIRONMENT_ARGS(f, n), l, sum - 1);
                    }
    }
    TEST("equal entries have equal weights, and entries at the mean are not lost") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n)
                    if (has(f, PROBABILITY) && !has(f, SELECTS)) {
                        call c = call_of(f, 1, n, EQUAL, 93);
                        run_and_check(f, &c);
                        for (size_t i = 0; i < n; ++i) {
                            double y = get(f, c.array[OUT], i) * (double)n - 1;
                            CHECK(magnitude(y) <= 16 * eps_of(f), IN_ENVIRONMENT ": entry %u is 1/n (1 %+.3g)",
                                  IN_ENVIRONMENT_ARGS(f, n), (unsigned)i, y);
                        }
                    }
    }
}

/* The value of a masked entry; rounding downward, a difference of equal numbers is -0. */
static int is_masked_result(const function *f, const call *c, size_t i) {
    return get_bits(f, c->array[OUT], i) == masked_bits(f) ||
           (masked_bits(f) == 0 && magnitude_bits(f, c->array[OUT], i) == 0);
}

/* Row 1 of two, its neighbour poisoned, has the bits that it has alone; masks hold in both. */
static void check_special_rows(const function *f, size_t n, special poison) {
    static uint64_t alone[1024];
    double alone_per_row;
    call c = call_of(f, ROWS, n, MASKED, 94), second = c;
    role poisoned = has(f, HAS_X) && !(has(f, HAS_GY) && n % 2) ? X : GY;
    size_t at = n / 3;
    second.s.rows = 1;
    second.t.index = c.t.index + 1;
    for (int r = 0; r < ARRAYS; ++r) { second.array[r] = (char *)c.array[r] + n * f->size; }
    run_and_check(f, &second);
    for (size_t i = 0; has(f, HAS_OUT) && i < n; ++i) { alone[i] = get_bits(f, second.array[OUT], i); }
    alone_per_row = row_storage[0];
    if (!is_special(f, c.array[X], at, MINUS_INF) && (!has(f, HAS_Y) || magnitude_bits(f, c.array[Y], at) != 0)) {
        set_special(f, c.array[poisoned], at, poison);
    } else {
        poison = MINUS_INF;
    }
    run_and_check(f, &c);
    for (size_t i = 0; has(f, HAS_OUT) && i < n; ++i) {
        uint64_t bits = get_bits(f, c.array[OUT], i);
        CHECK(get_bits(f, second.array[OUT], i) == alone[i], IN_ENVIRONMENT ": entry %u differs beside a NaN row",
              IN_ENVIRONMENT_ARGS(f, n), (unsigned)i);
        if (has(f, HAS_X) && is_special(f, c.array[X], i, MINUS_INF)) {
            CHECK(is_masked_result(f, &c, i), IN_ENVIRONMENT ": masked entry %u is %llx", IN_ENVIRONMENT_ARGS(f, n),
                  (unsigned)i, (unsigned long long)bits);
        } else if (poison != MINUS_INF && (!has(f, ELEMENTWISE) || i == at) && has(f, HAS_X) && !has(f, HAS_Y) &&
                   !(f->kind == FORWARD && has(f, ELEMENTWISE))) {
            CHECK(is_nan_at(f, c.array[OUT], i), IN_ENVIRONMENT ": entry %u of a NaN row is %llx",
                  IN_ENVIRONMENT_ARGS(f, n), (unsigned)i, (unsigned long long)bits);
        }
    }
    if (f->kind == LOSS || f->kind == METRIC) {
        CHECK(bits_of(row_storage[1]) == bits_of(alone_per_row), IN_ENVIRONMENT ": %g beside a NaN row, alone %g",
              IN_ENVIRONMENT_ARGS(f, n), row_storage[1], alone_per_row);
    }
}

/* Enough rows for every instruction set to take them side by side. */
static void check_masked_rows(const function *f, size_t n) {
    static uint64_t together[BATCH][MOST_ENTRIES];
    call c = call_of(f, BATCH, n, MASKED, 96);
    run_and_check(f, &c);
    for (size_t i = 0; i < BATCH * n; ++i) { together[i / n][i % n] = get_bits(f, c.array[OUT], i); }
    c.s.rows = 1;
    for (size_t row = 0; row < BATCH; ++row) {
        run_and_check(f, &c);
        for (size_t i = 0; i < n; ++i) {
            uint64_t bits = get_bits(f, c.array[OUT], i);
            CHECK(together[row][i] == bits, IN_ENVIRONMENT ": entry %u of row %u is %llx among others, alone %llx",
                  IN_ENVIRONMENT_ARGS(f, n), (unsigned)i, (unsigned)row, (unsigned long long)together[row][i],
                  (unsigned long long)bits);
        }
        for (int r = 0; r < ARRAYS; ++r) { c.array[r] = (char *)c.array[r] + n * f->size; }
        ++c.t.index;
    }
}

static void test_special_rows(void) {
    TEST("rows with masks have the bits that they have alone") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                for (size_t n = 3; has(f, HAS_OUT) && n < MOST_ENTRIES; n += 4) { check_masked_rows(f, n); }
    }
    TEST("NaN rows, masks and their neighbours") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n)
                    for (int k = 0; k < MINUS_INF; ++k) { check_special_rows(f, n, (special)k); }
    }
    TEST("a row with no active entry gives zeros, log functions -inf") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n)
                    if (has(f, HAS_OUT) && has(f, HAS_X) && f->kind != LOSS) {
                        call c = call_of(f, 1, n, NORMAL_1, 95);
                        for (size_t i = 0; i < n; ++i) { set_special(f, c.array[X], i, MINUS_INF); }
                        make_y(f, &c);
                        run_and_check(f, &c);
                        for (size_t i = 0; i < n; ++i) {
                            CHECK(is_masked_result(f, &c, i), IN_ENVIRONMENT ": entry %u", IN_ENVIRONMENT_ARGS(f, n),
                                  (unsigned)i);
                        }
                    }
    }
}

static void test_subnormal_factors(void) {
    TEST("a grad_scale below the normal numbers is not taken for 0, which stands for 1") {
        const function *loss = function_named("softmax_loss_f64");
        FOR_EACH_ISA(isa) {
            call c = call_of(loss, 1, 4, NORMAL_4, 96);
            c.t.grad_scale = 1e-310;
            run_and_check(loss, &c);
            for (size_t i = 0; i < 4; ++i) {
                CHECK(magnitude(get(loss, c.array[OUT], i)) < 1e-300, "%s: %g", now->name, get(loss, c.array[OUT], i));
            }
        }
    }
}

/* ==== exceptions that a caller may trap ==== */

#if (defined(__x86_64__) || defined(__i386__)) && !defined(__FAST_MATH__) && \
    !(defined(__clang__) && defined(MULTIMAX_NO_SIMD))
/* Signalling NaN where the next call has its variables: a part of a register that was never set raises an exception. */
static void fill_stack(size_t size) {
    volatile uint32_t words[6000];
    for (size_t i = 0; i < COUNT(words); ++i) { words[i] = size == sizeof(float) ? 0x7fa12345 : 0x7ff12345; }
}
static void check_exceptions(const function *f, const call *c, const char *what) {
    int raised;
    fill_stack(f->size);
    CHECK(feclearexcept(FE_ALL_EXCEPT) == 0, AT, AT_ARGS(f, c->s.cols));
    CHECK(f->run(c) == MMAX_OK, AT, AT_ARGS(f, c->s.cols));
    raised = fetestexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
    CHECK(raised == 0, AT ", %s, %u rows:%s%s%s", AT_ARGS(f, c->s.cols), what, (unsigned)c->s.rows,
          raised & FE_INVALID ? " invalid" : "", raised & FE_DIVBYZERO ? " divide by zero" : "",
          raised & FE_OVERFLOW ? " overflow" : "");
}

/* Rows in which every n-th entry is masked and the others lie within +-size. */
static call masked_call(const function *f, size_t rows, size_t n, size_t every, double size) {
    call c = call_of(f, rows, n, NORMAL_1, 97);
    for (size_t i = 0; i < rows * n; ++i) {
        set(f, c.array[X], i, (2 * random_uniform() - 1) * size);
        if (i % every == 0) { set_special(f, c.array[X], i, MINUS_INF); }
    }
    make_y(f, &c);
    return c;
}

static void check_all_exceptions(const function *f, size_t rows, size_t n) {
    static const uint32_t none[BATCH];
    const double large = f->size == 4 ? 1e6 : 1e80;
    const mmax_multimax_params identity = mmax_multimax_identity(f->order == 2 ? 2 : 1);
    call c;
    for (int l = 0; l < LAWS; ++l) {
        if (l == ANY_SIZE) { continue; /* overflows */ }
        c = call_of(f, rows, n, (law)l, 98);
        check_exceptions(f, &c, "a law of random rows");
    }
    c = masked_call(f, rows, n, 3, large);
    check_exceptions(f, &c, "large scores");
    c = masked_call(f, rows, n, 3, 1);
    c.s.scale = 2;
    check_exceptions(f, &c, "masks, scale 2");
    if (f->order > 0) {
        c.p = &identity;
        check_exceptions(f, &c, "the identity");
    }
    if (has(f, HAS_X) && !has(f, HAS_Y) && f->kind != LOSS) {
        mmax_attention attention = mmax_attention_none();
        attention.bias = c.array[X]; /* has masks */
        c.s.attention = &attention;
        check_exceptions(f, &c, "a bias with masks");
    }
    c = masked_call(f, rows, n, 1, 1);
    for (size_t r = 0; r < rows; ++r) { index_storage[r] = (int32_t)(r % n); }
    check_exceptions(f, &c, "masked rows");
    c.s.ends = none;
    for (size_t r = 0; r < rows; ++r) { index_storage[r] = -1; }
    make_y(f, &c);
    check_exceptions(f, &c, "rows that end at once");
}

/* Rows that interleave: masked wholly, in part, and with large scores */
static void check_interleaved_exceptions(const function *f, size_t n) {
    for (size_t every = 1; every <= 3; ++every) {
        call c = masked_call(f, 2, n, every, every == 2 ? 1 : f->size == 4 ? 1e6 : 1e80);
        c.s.inner = 2;
        c.s.x_stride = c.s.y_stride = c.s.gx_stride = c.s.gy_stride = 0;
        check_exceptions(f, &c, "interleaved");
    }
}

/* Losses of classes and of distributions whose largest score is anywhere: what is worked for no class or no row, too */
static void check_exceptions_of_losses(const function *f, size_t n) {
    static double q[2 * 130];
    for (size_t i = 0; i < 2 * n; ++i) { set(f, q, i, 1 / (double)n); }
    for (double max = -750; max < 750; max += 0.31) {
        call c = call_of(f, 2, n, NORMAL_1, 95);
        for (size_t i = 0; i < 2 * n; ++i) { set(f, c.array[X], i, max - 0.1 * (double)(i % n)); }
        check_exceptions(f, &c, "classes");
        c.t.index = NULL;
        c.t.q = q;
        check_exceptions(f, &c, "distributions");
    }
}

static void test_exceptions(void) {
    static const size_t row_counts[] = {1, 2, BATCH};
    TEST("finite and masked rows raise no exception of invalid, divide by zero or overflow") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n) {
                    for (size_t k = 0; k < COUNT(row_counts); ++k) { check_all_exceptions(f, row_counts[k], n); }
                    if (f->kind == FORWARD) { check_interleaved_exceptions(f, n); }
                }
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                for (size_t n = 7; f->kind == LOSS && n <= 130; n += 33) { check_exceptions_of_losses(f, n); }
        FOR_EACH_MORE(f)
        FOR_EACH_ISA(isa)
            FOR_EACH_LENGTH(n)
                for (size_t k = 0; k < COUNT(row_counts); ++k) {
                    call c = call_of(f, row_counts[k], n, MASKED, 99);
                    check_exceptions(f, &c, "some masked");
                }
    }
}
#else
static void test_exceptions(void) { NOTE("exceptions: not with this compiler, or on this machine"); }
#endif

/* ==== upper halves of registers ==== */

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__AVX__) /* gcc -O1 leaves them set in its own code */
static unsigned cpuid(unsigned leaf, unsigned subleaf, int of_ecx) {
    unsigned a, b, c, d;
    __asm__ volatile("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(leaf), "c"(subleaf));
    return of_ecx ? c : a;
}
/* Whether the processor says that upper halves are in use: XGETBV of register 1 */
static int are_upper_halves_set(void) {
    unsigned low, high;
    __asm__ volatile(".byte 0x0f, 0x01, 0xd0" : "=a"(low), "=d"(high) : "c"(1));
    return (low & 4) != 0;
}
static void test_upper_halves(void) {
    if (!(cpuid(1, 0, 1) >> 27 & 1) || !(cpuid(13, 1, 0) >> 2 & 1)) { return; } /* OSXSAVE; XGETBV of 1 */
    TEST("no call leaves the upper halves of registers set, which would make SSE slow") {
        for (size_t i = 0; i < ALL; ++i) {
            const function *f = any_function(i);
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n)
                    for (size_t rows = 1; rows <= 17; rows += 16) {
                        static uint32_t index[17 * 300];
                        call c = call_of(f, rows, n, NORMAL_4, 94);
                        mmax_attention a = mmax_attention_none();
                        int set[3];
                        c.own.index = index;
                        c.own.k = n < 3 ? n : 3;
                        make_y(f, &c);
                        __asm__ volatile("vzeroupper");
                        f->run(&c);
                        set[0] = are_upper_halves_set();
                        c.s.scale = 1e300; /* refused */
                        f->run(&c);
                        set[1] = are_upper_halves_set();
                        c.s.scale = 1;
                        a.bias = f->kind == LOSS ? NULL : c.array[X];
                        c.s.attention = f->kind == LOSS ? NULL : &a;
                        f->run(&c);
                        set[2] = are_upper_halves_set();
                        CHECK(!set[0] && !set[1] && !set[2], AT ", %u rows: %d, refused %d, with a bias %d",
                              AT_ARGS(f, n), (unsigned)rows, set[0], set[1], set[2]);
                    }
        }
    }
}
#else
static void test_upper_halves(void) {}
#endif

/* Other rounding modes than to nearest: neither digits nor bits are promised. */
static void test_statuses(void) {
    TEST("no crash, no endless loop, no wrong status") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n)
                    for (size_t k = 0; k < COUNT(smooth_laws); ++k) {
                        call c = call_of(f, ROWS, n, smooth_laws[k], n);
                        run_and_check(f, &c);
                    }
    }
}

int main(void) {
    test_exceptions();
    test_upper_halves();
    for (now = environments; now < environments + COUNT(environments); ++now) {
        NOTE("---- %s", now->name);
        if (available(now) && now->enter != round_to_nearest_and_flush) {
            test_statuses();
        } else if (available(now)) {
            test_accuracy();
            test_sums();
            test_special_rows();
            test_subnormal_factors();
        }
    }
    return check_report();
}
