/*
 * check.h: what every test program of this folder uses. A program is a list of TEST blocks in main():
 *
 *     int main(void)
 *     {
 *         TEST("a row with no active entry gives zeros") { CHECK(y[0] == 0, "isa %s n %u", isa, n); }
 *         return check_report();
 *     }
 *
 * A failed CHECK prints its place, its condition and its message, and the program goes on; after ten failures in
 * one TEST the rest is only counted. NOTE prints a measured figure.
 */
#ifndef CHECK_H
#define CHECK_H

#include <fenv.h>
#include <stdio.h>

static unsigned long check_done, check_failed, check_failed_here;
static const char *check_title = "";

#define TEST(title) for (int check_once = check_begin(title); check_once; check_once = 0)
#define CHECK(condition, ...)                                             \
    do {                                                                  \
        ++check_done;                                                     \
        if (!(condition) && check_fail(__FILE__, __LINE__, #condition)) { \
            printf("      " __VA_ARGS__);                                 \
            printf("\n");                                                 \
        }                                                                 \
    } while (0)
#define NOTE(...)                 \
    do {                          \
        printf("  " __VA_ARGS__); \
        printf("\n");             \
    } while (0)

static int check_begin(const char *title) {
    /* Programs linked with -Ofast start with subnormal numbers turned off. */
    fesetenv(FE_DFL_ENV);
    check_title = title;
    check_failed_here = 0;
    printf("- %s\n", title);
    fflush(stdout);
    return 1;
}

/* Returns whether to print this failure. */
static int check_fail(const char *file, int line, const char *condition) {
    ++check_failed;
    if (++check_failed_here > 10) { return 0; }
    printf("FAIL  %s:%d: %s\n      in: %s\n", file, line, condition, check_title);
    return 1;
}

static int check_report(void) {
    printf("%lu checks, %lu failed\n", check_done, check_failed);
    return check_failed != 0;
}

#endif /* CHECK_H */
