/*
 * check_isa.c [NAME...]: for every instruction set, either mmax_isa_select refuses it and mmax_isa_available is 0, or
 * selecting it gives the right weights, loss and gradient; the one active before any choice is of the latter kind and,
 * if there are names, one of them. run.sh builds it for every configuration.
 *
 *     check_isa --play 1 NAME...    with PLAY: on a processor that has instruction sets up to number 1 alone
 */
#if defined(PLAY)
#    define MULTIMAX_TEST_CPU played_isa
static unsigned played_isa;
#endif
#include "multimax.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { COLS = 37, ROWS = 5, UNWRITTEN = 7 };

static float x[ROWS * COLS], gy[ROWS * COLS];
static int32_t targets[ROWS];
static const char *isa_name = "";
static int failures;

static void fail(const char *what) {
    printf("%s: %s\n", isa_name, what);
    ++failures;
}

/* Scores within +-8 and gradients within +-1, the same on every machine. */
static void make_rows(void) {
    uint32_t state = 12345;
    for (int i = 0; i < ROWS * COLS; ++i) {
        state = state * 1664525 + 1013904223;
        x[i] = (float)(state >> 16) / 4096.0f - 8.0f;
        state = state * 1664525 + 1013904223;
        gy[i] = (float)(state >> 16) / 32768.0f - 1.0f;
    }
    for (int r = 0; r < ROWS; ++r) { targets[r] = (int32_t)(7 * r % COLS); }
}

/* ---- reference, as the formulas are written ---- */

static double sigma(double s) { return s + (1 - 1.5) * (s < 0.5 ? 0.5 - s : 0) + (0.25 - 1) * (s > 1 ? s - 1 : 0); }

static void softmax_of(double *y, const double *s) {
    double max = s[0], sum = 0;
    for (int i = 1; i < COLS; ++i) { max = s[i] > max ? s[i] : max; }
    for (int i = 0; i < COLS; ++i) {
        y[i] = exp(s[i] - max);
        sum += y[i];
    }
    for (int i = 0; i < COLS; ++i) { y[i] /= sum; }
}

/* tau by bisection: the sum of max(s - tau, 0) falls as tau rises. */
static void sparsemax_of(double *y, const double *s) {
    double low = -16, high = 16;
    for (int step = 0; step < 60; ++step) {
        const double tau = (low + high) / 2;
        double sum = 0;
        for (int i = 0; i < COLS; ++i) {
            y[i] = s[i] > tau ? s[i] - tau : 0;
            sum += y[i];
        }
        if (sum > 1) {
            low = tau;
        } else {
            high = tau;
        }
    }
}

/* ---- comparison ---- */

/* Whether a call has written what is expected: its status, and every entry. */
static void compare(const char *what, mmax_status status, const float *got, const double *expected) {
    char text[160];
    if (status != MMAX_OK) {
        snprintf(text, sizeof text, "%s: %s", what, mmax_status_string(status));
        fail(text);
        return;
    }
    for (int i = 0; i < ROWS * COLS; ++i) {
        if (!(fabs((double)got[i] - expected[i]) <= 2e-6)) {
            snprintf(text, sizeof text, "%s: entry %d is %g, not %g", what, i, (double)got[i], expected[i]);
            fail(text);
            return;
        }
    }
}

static void unwritten(float *y) {
    for (int i = 0; i < ROWS * COLS; ++i) { y[i] = UNWRITTEN; }
}

/* The x87 computes in so many bits, where there is one: some hosts leave it at 24. */
static void set_x87(int bits) {
#if defined(__GNUC__) && (defined(__i386__) || defined(__x86_64__))
    const unsigned short control = bits == 24 ? 0x007f : 0x037f;
    __asm__ volatile("fldcw %0" : : "m"(control));
#else
    (void)bits;
#endif
}

/* Rows whose arithmetic shows an x87, and arguments and results that are doubles. */
static void check_doubles(void) {
    static const float soft[3] = {0.66524096f, 0.24472847f, 0.09003057f};
    const float falling[3] = {0, -1, -2};
    const double far[3] = {100.3, 99.1, 97.7};
    float y[3] = {0, 0, 0};
    double z[3] = {0, 0, 0}, power[3] = {0, 0, 0}, loss = -1;
    const int32_t target = 1;
    int good = mmax_softmax_f32(y, falling, mmax_row(3)) == MMAX_OK;
    for (int i = 0; i < 3; ++i) { good = good && fabs((double)(y[i] - soft[i])) < 1e-6; }
    if (!good) { fail("softmax(0, -1, -2) is wrong"); }
    good = mmax_entmax_f32(y, falling, 1.3, mmax_row(3)) == MMAX_OK;
    if (!good || !(fabs((double)y[0] + (double)y[1] + (double)y[2] - 1) < 1e-6)) { fail("entmax(1.3) is wrong"); }
    good = mmax_sparsemax_loss_f32(&loss, NULL, falling, mmax_labels(&target), mmax_row(3)) == MMAX_OK;
    if (!good || !(fabs(loss - 1) < 1e-6)) { fail("sparsemax_loss is wrong"); }
    set_x87(24);
    good =
        mmax_entmax_f64(z, far, 3, mmax_row(3)) == MMAX_OK && mmax_entmax_f64(power, far, 1.7, mmax_row(3)) == MMAX_OK;
    set_x87(64);
    if (!good || !(fabs(z[0] + z[1] + z[2] - 1) < 1e-14) || !(fabs(power[0] + power[1] + power[2] - 1) < 1e-14)) {
        fail("entmax in doubles is wrong where the x87 computes in 24 bits");
    }
}

static void check_functions(void) {
    const mmax_shape shape = mmax_rows(ROWS, COLS);
    mmax_multimax_params p = mmax_multimax_identity(1);
    static double soft[ROWS * COLS], multi[ROWS * COLS], sparse[ROWS * COLS], back[ROWS * COLS], grad[ROWS * COLS];
    static float y[ROWS * COLS], gx[ROWS * COLS];
    double losses[ROWS], loss[ROWS];
    mmax_status status;
    p.t_b[0] = 1.5;
    p.b[0] = 0.5;
    p.t_d[0] = 0.25;
    p.d[0] = 1;
    for (int r = 0; r < ROWS; ++r) {
        double s[COLS], t[COLS], dot = 0;
        const int row = r * COLS;
        for (int i = 0; i < COLS; ++i) {
            s[i] = (double)x[row + i];
            t[i] = sigma(s[i]);
        }
        softmax_of(soft + row, s);
        softmax_of(multi + row, t);
        sparsemax_of(sparse + row, s);
        for (int i = 0; i < COLS; ++i) { dot += soft[row + i] * (double)gy[row + i]; }
        for (int i = 0; i < COLS; ++i) {
            back[row + i] = soft[row + i] * ((double)gy[row + i] - dot);
            grad[row + i] = soft[row + i] - (i == targets[r]);
        }
        losses[r] = -log(soft[row + targets[r]]);
        loss[r] = UNWRITTEN;
    }
    unwritten(y);
    check_doubles();
    status = mmax_multimax_f32(y, x, &p, shape);
    compare("multimax", status, y, multi);
    unwritten(y);
    status = mmax_sparsemax_f32(y, x, shape);
    compare("sparsemax", status, y, sparse);
    unwritten(y);
    status = mmax_softmax_f32(y, x, shape);
    compare("softmax", status, y, soft);
    unwritten(gx);
    status = mmax_softmax_backward_f32(gx, gy, y, shape);
    compare("softmax_backward", status, gx, back);
    unwritten(gx);
    status = mmax_softmax_loss_f32(loss, gx, x, mmax_labels(targets), shape);
    compare("softmax_loss", status, gx, grad);
    for (int r = 0; r < ROWS; ++r) {
        if (!(fabs(loss[r] - losses[r]) <= 1e-5 * losses[r] + 1e-6)) {
            fail("softmax_loss: the loss is wrong");
            return;
        }
    }
}

static int is_one_of(const char *name, char **names) {
    while (*names && strcmp(name, *names) != 0) { ++names; }
    return *names != NULL;
}

int main(int argc, char **argv) {
    int first;
#if defined(PLAY)
    if (argc < 3 || strcmp(argv[1], "--play") != 0) { return 2; }
    played_isa = (unsigned)(argv[2][0] - '0');
    argc -= 2;
    argv += 2;
#endif
    first = (int)mmax_isa_active();
    make_rows();
    isa_name = "by default";
    if (!mmax_isa_available((mmax_isa)first)) { fail("the active instruction set is not available"); }
    if (argc > 1 && !is_one_of(mmax_isa_name((mmax_isa)first), argv + 1)) {
        printf("%s: must not be active here\n", mmax_isa_name((mmax_isa)first));
        ++failures;
    }
    check_functions();
    for (int i = -1; i <= MMAX_ISA_COUNT; ++i) {
        const mmax_isa isa = (mmax_isa)i;
        const int before = (int)mmax_isa_active(), available = mmax_isa_available(isa);
        const mmax_status status = mmax_isa_select(isa);
        isa_name = mmax_isa_name(isa);
        if (!available) {
            if (status != MMAX_ERR_ISA || (int)mmax_isa_active() != before) {
                fail("is not available, but can be selected");
            }
        } else if (status != MMAX_OK || (int)mmax_isa_active() != i) {
            fail("is available, but cannot be selected");
        } else {
            printf("%s ", isa_name);
            check_functions();
        }
    }
    printf("(%s by default): %s\n", mmax_isa_name((mmax_isa)first), failures ? "FAILED" : "good");
    return failures != 0;
}
