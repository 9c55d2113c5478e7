/*
 * test_checksum.c: the bits of every function over one corpus, pinned. Instruction sets with fused multiply-add give the
 * first number of checksums.h on every machine, compiler and optimisation level, the others the second.
 *
 *     test_checksum                            compares every instruction set that is available here
 *     test_checksum --print > checksums.h      the table anew, when bits are meant to change; then clang-format
 *
 * Scores, gradients and weights come from integers: no function of libm, and no result of the library, is in the corpus,
 * so a difference names the function that made it. NaN counts as one value, whatever its sign and payload.
 */
#define WITH_MORE_FUNCTIONS
#include "function_table.h"

#include "tables.h"

/* The instruction sets of a class agree. SAME_NOWHERE: bits of this build are those of its compiler. */
typedef enum arithmetic { FUSED, SEPARATE, ARITHMETICS, SAME_NOWHERE } arithmetic;

typedef struct checksum {
    const char *name;
    uint64_t of[ARITHMETICS];
} checksum;

static const checksum pinned[] = {
#include "checksums.h"
};

static arithmetic arithmetic_of(int isa) {
#if defined(__FAST_MATH__) || (FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16)
    (void)isa;
    return SAME_NOWHERE;
#else
    int fused = isa == MMAX_ISA_AVX2 || isa == MMAX_ISA_AVX512 || isa == MMAX_ISA_NEON;
#    if defined(__FMA__) || defined(__aarch64__) || defined(FP_FAST_FMAF)
    fused |= isa == MMAX_ISA_SCALAR;
#    endif
    return fused ? FUSED : SEPARATE;
#endif
}

/* ==== corpus ====
 * At most one random number an expression: compilers choose the order of operands and of arguments.
 */

/* After the laws of function_table.h: */
enum adversary {
    ANY_BITS = LAWS, /* every finite number is as likely as any other */
    HALFWAY,         /* within 3 ulp of where the reduction of exp rounds to its other neighbour */
    WIDE,            /* weights down to and below the smallest normal number */
    FAR_AWAY,        /* scores whose largest is some hundreds or thousands: 2^max has no place in T */
    NEAR_ONE,        /* a small support, its other entries 1 or 2 below the maximum: the edge of the thresholds */
    ABOUT_ZERO,      /* tiny, and zeros of both signs */
    POISONED,        /* some rows hold NaN or +inf */
    ADVERSARIES
};

static void nudge(const function *f, void *a, size_t i) { set_bits(f, a, i, get_bits(f, a, i) + random_below(7) - 3); }

static double random_integer(int bits) { return (double)(random_bits() >> (64 - bits)); }

static void fill_adversary(const function *f, void *a, size_t n, int which) {
    double top = random_integer(f->size == 4 ? 12 : 14) - (f->size == 4 ? 2048 : 8192);
    for (size_t i = 0; i < n; ++i) {
        switch (which) {
        case ANY_BITS: do { set_bits(f, a, i, random_bits());
            } while (!is_finite_at(f, a, i));
            break;
        case HALFWAY: /* ln 2 / 16 */
            set(f, a, i, (2 * random_integer(10) - 1023) * 0.043321698784996582);
            nudge(f, a, i);
            break;
        case WIDE: set(f, a, i, -random_integer(24) * (f->size == 4 ? 110.0 : 760.0) / 16777216.0); break;
        case FAR_AWAY: set(f, a, i, top - random_integer(24) / 524288.0); break;
        case NEAR_ONE:
            set(f, a, i, 0.3 - (double)random_below(3));
            nudge(f, a, i);
            break;
        case ABOUT_ZERO:
            set(f, a, i, random_below(3) ? random_integer(24) / 1.8446744073709552e19 : 0);
            set(f, a, i, random_below(2) ? get(f, a, i) : -get(f, a, i));
            break;
        default: set(f, a, i, random_normal()); break;
        }
    }
    for (size_t left = which == POISONED ? random_below(3) : 0; left > 0; --left) {
        size_t i = random_below(n);
        set_special(f, a, i, (special)random_below(SPECIALS));
    }
}

static void fill_scores(const function *f, void *a, size_t n, int which) {
    if (which < LAWS) {
        fill(f, a, n, (law)which);
    } else {
        fill_adversary(f, a, n, which);
    }
}

/* The y of backward functions and metrics: weights, signed for tanhmax, or logarithms of weights. */
static void fill_weights(const function *f, void *y, const void *x, size_t n) {
    double total = 0;
    for (size_t i = 0; i < n; ++i) {
        size_t shift = 40 + random_below(24);
        double weight = random_below(4) ? (double)(random_bits() >> shift) : 0;
        total += weight;
        if (is_special(f, x, i, MINUS_INF)) {
            set(f, y, i, 0);
        } else {
            set(f, y, i, has(f, MASKED_BY_X) && random_below(2) ? -weight : weight);
        }
    }
    for (size_t i = 0; i < n; ++i) {
        if (f->kind != LOG_BACKWARD) {
            set(f, y, i, total > 0 ? get(f, y, i) / total : 0);
        } else if (is_special(f, x, i, MINUS_INF)) {
            set_special(f, y, i, MINUS_INF);
        } else {
            set(f, y, i, -random_integer(24) / 1048576.0);
        }
    }
}

/* Case `number` of the corpus, with every option now and then. */
static call corpus_call(const function *f, size_t rows, size_t n, int which, unsigned number) {
    static const double scales[] = {0, 0, 0.7, 3.25, 1e-15, 1e15};
    static const double smoothings[] = {0, 0.1, 0.75}, thresholds[] = {0, 0.05, -0.5};
    static mmax_multimax_params layer;
    call c = call_of(f, 1, n, EQUAL, 77 + number);
    c.s = mmax_rows(rows, n);
    c.s.scale = scales[random_below(COUNT(scales))];
    c.t.label_smoothing = smoothings[random_below(COUNT(smoothings))];
    c.t.grad_scale = random_below(2) ? 1.3 : 0;
    if (f->kind == METRIC) {
        c.epsilon = thresholds[random_below(COUNT(thresholds))];
        c.reference = random_below(2) ? 0.01 : 0;
    }
    if (f->order && random_below(2)) {
        layer = params_of_layer((int)random_below(LAYERS), f->order);
        c.p = &layer;
    }
    for (size_t r = 0; r < c.s.rows; ++r) {
        char *x = (char *)c.array[X] + r * n * f->size, *gy = (char *)c.array[GY] + r * n * f->size;
        fill_scores(f, x, n, which);
        fill_scores(f, gy, n, which == POISONED ? POISONED : which == ANY_SIZE ? NORMAL_32 : NORMAL_1);
        fill_weights(f, (char *)c.array[Y] + r * n * f->size, x, n);
        index_storage[r] = (int32_t)random_below(n);
        index_storage[r] = random_below(5) ? index_storage[r] : -1;
    }
    memset(&gp_storage, 0, sizeof gp_storage);
    memset(row_storage, 0, sizeof row_storage);
    return c;
}

/* ==== checksums ==== */

static uint64_t mix(uint64_t hash, uint64_t v) {
    hash = (hash ^ v) * 0x9e3779b97f4a7c15;
    return hash ^ (hash >> 29);
}

static uint64_t mix_double(uint64_t hash, double d) { return mix(hash, is_nan_double(d) ? 1 : bits_of(d)); }

static uint64_t mix_call(uint64_t hash, const function *f, const call *c) {
    CHECK(f->run(c) == MMAX_OK, AT, AT_ARGS(f, c->s.cols));
    for (size_t i = 0; has(f, HAS_OUT) && i < c->s.rows * c->s.cols; ++i) {
        hash = mix(hash, is_nan_at(f, c->array[OUT], i) ? 1 : get_bits(f, c->array[OUT], i));
    }
    for (size_t r = 0; r < c->s.rows; ++r) { hash = mix_double(hash, c->per_row[r]); }
    for (int k = 0; k < 8; ++k) { hash = mix(hash, 0); } /* in the place of gp, whose bits are an instruction set's */
    return hash;
}

/* Every length up to 40, three rows each, and lengths near whole blocks, with every law; long rows with some laws; many
 * short rows where gradients of parameters add up over rows. */
static uint64_t checksum_of(const function *f) {
    static const size_t long_rows[] = {300, 1000, 4099, 20000};
    static const size_t short_rows[] = {1, 7, 8, 10, 16, 17, 31, 32, 33, 48, 63, 64, 65, 100};
    uint64_t hash = 0;
    unsigned number = 0;
    for (size_t n = 1; n <= 514; n = n < 40 ? n + 1 : n == 40 ? 63 : n % 64 == 2 ? 2 * n - 5 : n + 1) {
        for (int which = 0; which < ADVERSARIES; ++which, ++number) {
            call c = corpus_call(f, n <= 40 ? 3 : 1, n, which, number);
            hash = mix_call(hash, f, &c);
        }
    }
    for (size_t k = 0; k < COUNT(long_rows); ++k) {
        for (int which = 0; which < ADVERSARIES; which += k < 3 ? 1 : 5, ++number) {
            call c = corpus_call(f, 1, long_rows[k], which, number);
            hash = mix_call(hash, f, &c);
        }
    }
    for (size_t k = 0; has(f, HAS_GP) && k < COUNT(short_rows); ++k) {
        for (int which = 0; which < POISONED; ++which, ++number) {
            size_t rows = MOST_ROWS - random_below(40);
            call c = corpus_call(f, rows, short_rows[k], which, number);
            hash = mix_call(hash, f, &c);
        }
    }
    return hash;
}

static void check_isa(int isa) {
    arithmetic class = arithmetic_of(isa);
    const char *title = class == FUSED ? "fused" : class == SEPARATE ? "separate" : "not compared";
    uint64_t all = 0;
    for (size_t k = 0; k < COUNT(functions); ++k) {
        const function *f = functions + k;
        uint64_t sum = checksum_of(f);
        all = mix(all, sum);
        CHECK(strcmp(pinned[k].name, f->name) == 0, "checksums.h has %s in place of %s", pinned[k].name, f->name);
        if (class < ARITHMETICS && sum != pinned[k].of[class]) {
            NOTE("differs: %-26s on %-8s 0x%08lx%08lx", f->name, mmax_isa_name((mmax_isa)isa),
                 (unsigned long)(sum >> 32), (unsigned long)(sum & 0xffffffff));
            CHECK(sum == pinned[k].of[class], "%s", f->name);
        }
    }
    NOTE("%-8s %08lx%08lx %s", mmax_isa_name((mmax_isa)isa), (unsigned long)(all >> 32),
         (unsigned long)(all & 0xffffffff), title);
}

/* The table of both classes; a class that is not available here keeps its number. */
static void print_table(void) {
    int isa_of[ARITHMETICS] = {-1, -1};
    FOR_EACH_ISA(isa) {
        if (arithmetic_of(isa) < ARITHMETICS) { isa_of[arithmetic_of(isa)] = isa; }
    }
    printf("/* Written by test_checksum --print: with fused multiply-add, without. */\n");
    for (size_t k = 0; k < COUNT(functions); ++k) {
        printf("{\"%s\", {", functions[k].name);
        for (int class = 0; class < ARITHMETICS; ++class) {
            uint64_t sum = k < COUNT(pinned) ? pinned[k].of[class] : 0;
            if (isa_of[class] >= 0 && mmax_isa_select((mmax_isa)isa_of[class]) == MMAX_OK) {
                sum = checksum_of(functions + k);
            }
            printf("0x%08lx%08lx%s", (unsigned long)(sum >> 32), (unsigned long)(sum & 0xffffffff),
                   class + 1 < ARITHMETICS ? ", " : "");
        }
        printf("}},\n");
    }
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--print") == 0) {
        print_table();
        return check_failed != 0;
    }
    TEST("a checksum for every function: checksums.h has one for each") {
        CHECK(COUNT(pinned) == COUNT(functions), "checksums.h has %u functions, not %u: --print",
              (unsigned)COUNT(pinned), (unsigned)COUNT(functions));
    }
    for (int isa = next_isa(-1); isa < MMAX_ISA_COUNT && COUNT(pinned) == COUNT(functions); isa = next_isa(isa)) {
        TEST(mmax_isa_name((mmax_isa)isa)) { check_isa(isa); }
    }
    return check_report();
}
