/*
 * canary overrun: every call that is given an array one entry short must be stopped, by the sanitizer with which this
 * program is built. canary written: what calls write counts as written; the program decides by every result. run.sh
 * builds it for each tool.
 */
#define _DEFAULT_SOURCE /* fork */
#include "multimax.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OUT, X, GY, ARRAYS, MOST_ROWS = 17 };
static const char *const array_names[ARRAYS] = {"out", "x", "gy"};
static const int32_t classes[MOST_ROWS];

typedef struct function {
    const char *name;
    size_t size; /* of an entry */
    int arrays;  /* that it has: 2 without gy */
    mmax_status (*run)(void *out, const void *x, const void *gy, mmax_shape s);
} function;

#define CALL(name, T, ...)                                                                  \
    static mmax_status name##_##T(void *out, const void *x, const void *gy, mmax_shape s) { \
        (void)gy;                                                                           \
        return mmax_##name##_##T(__VA_ARGS__, s);                                           \
    }
#define CALLS(T)                                                \
    CALL(softmax, T, out, x)                                    \
    CALL(sparsemax, T, out, x)                                  \
    CALL(entmax15, T, out, x)                                   \
    CALL(evsoftmax, T, out, x, 1e-6)                            \
    CALL(log_softmax, T, out, x)                                \
    CALL(topk, T, out, x, 3)                                    \
    CALL(softmax_loss, T, NULL, out, x, mmax_labels(classes))   \
    CALL(sparsemax_loss, T, NULL, out, x, mmax_labels(classes)) \
    CALL(softmax_backward, T, out, gy, x)                       \
    CALL(entmax15_backward, T, out, gy, x)
CALLS(f32)
CALLS(f64)
#define FUNCTION(name, T, size, arrays) \
    { #name "_" #T, size, arrays, name##_##T }
#define FUNCTIONS(T, size)                                                                              \
    FUNCTION(softmax, T, size, 2), FUNCTION(sparsemax, T, size, 2), FUNCTION(entmax15, T, size, 2),     \
        FUNCTION(evsoftmax, T, size, 2), FUNCTION(log_softmax, T, size, 2), FUNCTION(topk, T, size, 2), \
        FUNCTION(softmax_loss, T, size, 2), FUNCTION(sparsemax_loss, T, size, 2),                       \
        FUNCTION(softmax_backward, T, size, 3), FUNCTION(entmax15_backward, T, size, 3)
static const function functions[] = {FUNCTIONS(f32, 4), FUNCTIONS(f64, 8)};

/* The call on arrays of their own, of which one, or none with ARRAYS, is an entry short. How many results are above 0. */
static int run(const function *f, size_t rows, size_t n, int is_short) {
    char *arrays[ARRAYS];
    int count = 0;
    for (int a = 0; a < ARRAYS; ++a) {
        const size_t entries = rows * n - (a == is_short);
        arrays[a] = (char *)malloc(entries * f->size);
        for (size_t i = 0; a != OUT && i < entries; ++i) {
            const double value = 0.25 + (double)(i * 7 % 11) / 16;
            const float rounded = (float)value;
            memcpy(arrays[a] + i * f->size, f->size == 4 ? (const void *)&rounded : (const void *)&value, f->size);
        }
    }
    if (f->run(arrays[OUT], arrays[X], arrays[GY], mmax_rows(rows, n)) != MMAX_OK) { exit(3); }
    for (size_t i = 0; is_short == ARRAYS && i < rows * n; ++i) {
        float value;
        double wide;
        memcpy(f->size == 4 ? (void *)&value : (void *)&wide, arrays[OUT] + i * f->size, f->size);
        if ((f->size == 4 ? (double)value : wide) > 0) { ++count; }
    }
    for (int a = 0; a < ARRAYS; ++a) { free(arrays[a]); }
    return count;
}

/* Whether the call ends its process otherwise than well. */
static int is_stopped(const function *f, size_t rows, size_t n, int is_short) {
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr)) { _exit(0); }
        run(f, rows, n, is_short);
        _exit(0);
    }
    return waitpid(child, &status, 0) == child && !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(int argc, char **argv) {
    static const size_t lengths[] = {4, 20, 61}, row_counts[] = {1, MOST_ROWS};
    const int overrun = argc > 1 && strcmp(argv[1], "overrun") == 0;
    int missed = 0, calls = 0, positive = 0;
    for (int isa = 0; isa < MMAX_ISA_COUNT; ++isa) {
        if (mmax_isa_select((mmax_isa)isa) != MMAX_OK) { continue; }
        for (size_t k = 0; k < sizeof functions / sizeof *functions * 6; ++k) {
            const function *const f = functions + k / 6;
            const size_t n = lengths[k % 3], rows = row_counts[k / 3 % 2];
            positive += run(f, rows, n, ARRAYS);
            ++calls;
            for (int a = 0; overrun && a < f->arrays; ++a) {
                if (!is_stopped(f, rows, n, a)) {
                    printf("%s on %s, %u x %u: %s may be one entry short\n", f->name, mmax_isa_name((mmax_isa)isa),
                           (unsigned)rows, (unsigned)n, array_names[a]);
                    ++missed;
                }
            }
        }
    }
    printf("%d calls, %d results above 0, %d overruns missed\n", calls, positive, missed);
    return missed != 0;
}
