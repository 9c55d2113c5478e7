/*
 * test_long_rows.c: long rows. The same bits in place or not, at any alignment and on every instruction set with fused
 * multiply-add, and what NaN, +inf and masks in any block make of them.
 * test_forward.c compares these rows with the oracle.
 */
#include "long_rows.h"

static double x_array[LONG_ENTRIES + 1], y_array[LONG_ENTRIES + 1];
static double scale = 1;
static uint64_t expected[LONG_ENTRIES], first_with_fma[LONG_ENTRIES];

static void run(const function *f, void *y, const void *x) {
    call c = {
        {y, NULL, NULL, NULL},  NULL, NULL, &params_of_order[f->order], f->epsilon, 0, {NULL, 0, 0, NULL, NULL, 0},
        mmax_row(LONG_ENTRIES), {0}};
    c.array[X] = (void *)(uintptr_t)x;
    c.s.scale = scale;
    CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, LONG_ENTRIES));
}

static void check_bits(const function *f, const void *y, const char *what) {
    size_t i = 0;
    while (i < LONG_ENTRIES && get_bits(f, y, i) == expected[i]) { ++i; }
    CHECK(i == LONG_ENTRIES, AT ": %s, entry %u is %llx, not %llx", AT_ARGS(f, LONG_ENTRIES), what, (unsigned)i,
          (unsigned long long)get_bits(f, y, i), (unsigned long long)expected[i]);
}

/* The row out of place, then a register's part further, then in place. */
static void check_places(const function *f) {
    char *const x = (char *)x_array, *const y = (char *)y_array;
    run(f, y, x);
    check_bits(f, y, "on this instruction set");
    memmove(x + f->size, x, LONG_ENTRIES * f->size);
    run(f, y, x + f->size);
    check_bits(f, y, "x elsewhere");
    run(f, y + f->size, x + f->size);
    check_bits(f, y + f->size, "y elsewhere");
    run(f, x + f->size, x + f->size);
    check_bits(f, x + f->size, "in place");
}

static void keep(const function *f, const void *y, uint64_t *bits) {
    for (size_t i = 0; i < LONG_ENTRIES; ++i) { bits[i] = get_bits(f, y, i); }
}

static void check_law(const function *f, const long_law *l) {
    int with_fma = 0;
    FOR_EACH_ISA(isa) {
        fill_long(f, x_array, l);
        for (size_t i = 0; scale != 1 && i < LONG_ENTRIES; ++i) { set(f, x_array, i, get(f, x_array, i) / scale); }
        run(f, y_array, x_array);
        keep(f, y_array, expected);
        if (uses_fma(isa)) {
            if (with_fma) { memcpy(expected, first_with_fma, sizeof expected); }
            memcpy(first_with_fma, expected, sizeof expected);
            with_fma = 1;
        }
        check_places(f);
    }
}

/* A NaN or +inf at `at`: masked entries weigh 0, the others are NaN. */
static void check_special(const function *f, const long_law *l, size_t at, special which) {
    FOR_EACH_ISA(isa) {
        size_t i = 0;
        for (int in_place = 0; in_place < 2; ++in_place) {
            void *const y = in_place ? x_array : y_array;
            fill_long(f, x_array, l);
            for (size_t k = 0; k < LONG_ENTRIES; ++k) { expected[k] = (uint64_t)is_special(f, x_array, k, MINUS_INF); }
            set_special(f, x_array, at, which);
            expected[at] = 0;
            run(f, y, x_array);
            i = 0;
            while (i < LONG_ENTRIES && (expected[i] ? get_bits(f, y, i) == 0 : is_nan_at(f, y, i))) { ++i; }
            CHECK(i == LONG_ENTRIES, AT ": %s, special %d at %u: entry %u is %llx, masked %d", AT_ARGS(f, LONG_ENTRIES),
                  in_place ? "in place" : "out of place", (int)which, (unsigned)at, (unsigned)i,
                  (unsigned long long)get_bits(f, y, i), (int)expected[i]);
        }
    }
}

static void check_masked(const function *f) {
    FOR_EACH_ISA(isa) {
        size_t i = 0;
        for (size_t k = 0; k < LONG_ENTRIES; ++k) { set_special(f, x_array, k, MINUS_INF); }
        run(f, y_array, x_array);
        while (i < LONG_ENTRIES && get_bits(f, y_array, i) == 0) { ++i; }
        CHECK(i == LONG_ENTRIES, AT ": all masked, but entry %u weighs", AT_ARGS(f, LONG_ENTRIES), (unsigned)i);
        /* One active entry, which has all the weight. */
        set(f, x_array, LONG_ENTRIES - 5, -3);
        for (int in_place = 0; in_place < 2; ++in_place) {
            void *const row = in_place ? x_array : y_array;
            for (i = 0; i < LONG_ENTRIES; ++i) { set(f, y_array, i, 1); }
            run(f, row, x_array);
            for (i = 0; i < LONG_ENTRIES; ++i) {
                const double y = get(f, row, i);
                if (i == LONG_ENTRIES - 5 ? !(fabs(fabs(y) - 1) <= eps_of(f)) && strncmp(f->name, "tanhmax", 7) != 0
                                          : y != 0) {
                    break;
                }
            }
            CHECK(i == LONG_ENTRIES, AT ": entry %u of a row with one that is not masked", AT_ARGS(f, LONG_ENTRIES),
                  (unsigned)i);
        }
    }
}

int main(void) {
    FOR_EACH_FUNCTION(f) {
        if (!has_long_laws(f)) { continue; }
        TEST("the same bits in place or not, at any alignment and on every instruction set with fused multiply-add") {
            for (size_t l = 0; l < COUNT(long_laws); l += LAW_STEP) { check_law(f, &long_laws[l]); }
            for (scale = ldexp(1, -60); !f->order && scale <= ldexp(1, 60); scale *= ldexp(1, 120)) {
                check_law(f, &long_laws[0]);
            }
            scale = 1;
        }
        TEST("NaN, +inf and masks in any block") {
            static const size_t places[] = {0, 5, 5000, LONG_ENTRIES - 1};
            for (size_t l = 0; l < 4; l += LAW_STEP) {
                for (size_t k = 0; k < COUNT(places); ++k) {
                    check_special(f, &long_laws[l], places[k], QUIET_NAN);
                    check_special(f, &long_laws[l], places[k], PLUS_INF);
                }
            }
            check_masked(f);
        }
    }
    return check_report();
}
