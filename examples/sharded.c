/*
 * sharded.c: cross-entropy and its gradient over a vocabulary that is sharded over MPI ranks, with SoftMax and
 * MultiMax. A rank normalises its own classes. One MPI_Allreduce of log-sum-exps joins them. main() compares with the
 * whole vocabulary on one rank.
 *
 *     mpicc -O2 -Iinclude examples/sharded.c -o /tmp/sharded -lm && mpirun -n 4 /tmp/sharded
 *
 * As root: mpirun --allow-run-as-root; with fewer processors than ranks: --oversubscribe (both are Open MPI's).
 */
#include <stdio.h>

#if defined(__has_include)
#    if !__has_include(<mpi.h>)
#        define WITHOUT_MPI
#    endif
#endif

#ifdef WITHOUT_MPI
int main(void) {
    fprintf(stderr,
            "sharded: mpi.h is missing: install libopenmpi-dev and openmpi-bin, compile with mpicc, run with mpirun\n");
    return 2;
}
#else
#    include "multimax.h"

#    include <math.h>
#    include <mpi.h>
#    include <stdint.h>
#    include <stdlib.h>

/* The classes first to first + count - 1 of `vocabulary` are on this rank. */
struct shard {
    size_t vocabulary, first, count;
    int rank, ranks;
};

static void stop(const char *what) {
    fprintf(stderr, "sharded: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void stop_unless(mmax_status status) {
    if (status != MMAX_OK) { stop(mmax_status_string(status)); }
}

static void *memory(size_t bytes) {
    void *p = malloc(bytes > 0 ? bytes : 1);
    if (p == NULL) { stop("no memory"); }
    return p;
}

/* An error ends the program: MPI_COMM_WORLD has MPI_ERRORS_ARE_FATAL unless a program changes it. */
static void sum_over_ranks(double *x, size_t n) {
    if (MPI_Allreduce(MPI_IN_PLACE, x, (int)n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD) != MPI_SUCCESS) {
        stop("MPI_Allreduce failed");
    }
}

/*
 * loss is [rows], the same on every rank. gx is rows x count, the gradient of this rank's logits x; it may not be x. p
 * is NULL for SoftMax. For MultiMax every rank adds the gradient of the whole to gp. A negative class means an ignored
 * row; its logits must still be numbers.
 */
static void sharded_loss(double *loss, float *gx, mmax_multimax_grads *gp, const float *x,
                         const mmax_multimax_params *p, const int32_t *classes, size_t rows, const struct shard *me) {
    size_t ranks = (size_t)me->ranks, here = (size_t)me->rank;
    mmax_shape s = mmax_rows(rows, me->count);
    mmax_multimax_grads own = {{0, 0}, {0, 0}, {0, 0}, {0, 0}};
    double *lse = memory(rows * sizeof *lse), *parts = memory((ranks + 1) * rows * sizeof *parts);
    double *targets = parts + ranks * rows; /* scores of the true classes */

    stop_unless(p == NULL ? mmax_softmax_lse_f32(gx, lse, x, s) : mmax_multimax_lse_f32(gx, lse, x, p, s));
    for (size_t i = 0; i < (ranks + 1) * rows; ++i) { parts[i] = 0; }
    for (size_t r = 0; r < rows; ++r) {
        size_t own_class = (size_t)classes[r] - me->first; /* wraps around if it belongs to another rank */
        parts[r * ranks + here] = me->count > 0 ? lse[r] : -HUGE_VAL;
        if (classes[r] >= 0 && own_class < me->count) {
            float score = x[r * me->count + own_class];
            if (p != NULL) { stop_unless(mmax_seglu_f32(&score, &score, p, mmax_row(1))); }
            targets[r] = (double)score;
        }
    }
    sum_over_ranks(parts, (ranks + 1) * rows);                                    /* only one rank writes each entry */
    stop_unless(mmax_softmax_lse_f64(parts, lse, parts, mmax_rows(rows, ranks))); /* now each rank's weight in a row */

    for (size_t r = 0; r < rows; ++r) {
        size_t own_class = (size_t)classes[r] - me->first;
        double weight = classes[r] < 0 ? 0 : parts[r * ranks + here];
        loss[r] = classes[r] < 0 ? 0 : lse[r] - targets[r];
        for (size_t i = 0; i < me->count; ++i) {
            double y = weight * (double)gx[r * me->count + i];
            gx[r * me->count + i] = (float)(classes[r] >= 0 && i == own_class ? y - 1 : y);
        }
    }
    if (p != NULL) { /* so far gx is the gradient of sigma's results */
        double *sums[] = {own.t_b, own.t_d, own.b, own.d}, *to[] = {gp->t_b, gp->t_d, gp->b, gp->d};
        double packed[8];
        stop_unless(mmax_seglu_backward_f32(gx, &own, gx, x, p, s));
        for (size_t i = 0; i < 8; ++i) { packed[i] = sums[i / 2][i % 2]; }
        sum_over_ranks(packed, 8);
        for (size_t i = 0; i < 8; ++i) { to[i / 2][i % 2] += packed[i]; }
    }
    free(lse);
    free(parts);
}

/* ==== the check ==== */

enum { ROWS = 4, VOCABULARY = 131072 };

/* The logit of a row and class, the same on every rank: a hash, scaled to -8 .. 8. */
static float logit(size_t row, size_t class) {
    uint32_t h = (uint32_t)(row * VOCABULARY + class) * 2654435769U;
    h = (h ^ h >> 15) * 2246822519U;
    h ^= h >> 13;
    return (float)(h >> 8) / 1048576.0F - 8;
}

/* The larger error; NaN counts as infinite. */
static double worse(double error, double found, double expected) {
    double e = fabs(found - expected) / fmax(1, fabs(expected));
    return e <= error ? error : e > error ? e : HUGE_VAL;
}

static double largest_error(const mmax_multimax_params *p, const struct shard *me) {
    static const int32_t classes[ROWS] = {0, VOCABULARY - 1, -1, VOCABULARY / 2};
    mmax_multimax_grads gp = {{0, 0}, {0, 0}, {0, 0}, {0, 0}}, whole_gp = gp;
    double loss[ROWS], whole_loss[ROWS], error = 0;
    mmax_shape s = mmax_rows(ROWS, me->vocabulary);
    mmax_targets t = mmax_labels(classes);
    float *x = memory(ROWS * me->count * sizeof *x), *gx = memory(ROWS * me->count * sizeof *gx);
    float *whole = memory(ROWS * me->vocabulary * sizeof *whole);

    for (size_t i = 0; i < ROWS * me->count; ++i) { x[i] = logit(i / me->count, me->first + i % me->count); }
    sharded_loss(loss, gx, &gp, x, p, classes, ROWS, me);

    for (size_t i = 0; i < ROWS * me->vocabulary; ++i) { whole[i] = logit(i / me->vocabulary, i % me->vocabulary); }
    stop_unless(p == NULL ? mmax_softmax_loss_f32(whole_loss, whole, whole, t, s)
                          : mmax_multimax_loss_f32(whole_loss, whole, &whole_gp, whole, p, t, s));
    for (size_t i = 0; i < ROWS * me->count; ++i) {
        error = worse(error, (double)gx[i], (double)whole[i / me->count * me->vocabulary + me->first + i % me->count]);
    }
    for (size_t r = 0; r < ROWS; ++r) { error = worse(error, loss[r], whole_loss[r]); }
    for (size_t i = 0; i < 2; ++i) {
        error = worse(error, gp.t_b[i], whole_gp.t_b[i]), error = worse(error, gp.t_d[i], whole_gp.t_d[i]);
        error = worse(error, gp.b[i], whole_gp.b[i]), error = worse(error, gp.d[i], whole_gp.d[i]);
    }
    if (MPI_Allreduce(MPI_IN_PLACE, &error, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD) != MPI_SUCCESS) {
        stop("MPI_Allreduce failed");
    }
    free(x);
    free(gx);
    free(whole);
    return error;
}

int main(int argc, char **argv) {
    static const mmax_multimax_params params = {2, {1.8, 0.9}, {0.6, 1.1}, {-0.3, 0.4}, {0.5, 0.2}};
    struct shard me = {VOCABULARY, 0, 0, 0, 1};
    int good = 1;
    if (MPI_Init(&argc, &argv) != MPI_SUCCESS || MPI_Comm_rank(MPI_COMM_WORLD, &me.rank) != MPI_SUCCESS ||
        MPI_Comm_size(MPI_COMM_WORLD, &me.ranks) != MPI_SUCCESS) {
        fprintf(stderr, "sharded: MPI does not start\n");
        return 1;
    }
    me.first = me.vocabulary * (size_t)me.rank / (size_t)me.ranks; /* shards need not be equal */
    me.count = me.vocabulary * ((size_t)me.rank + 1) / (size_t)me.ranks - me.first;
    for (int multimax = 0; multimax < 2; ++multimax) {
        double error = largest_error(multimax ? &params : NULL, &me);
        good &= error <= 1e-6;
        if (me.rank == 0) {
            printf("%-8s  %d ranks, largest error of losses and gradients against the whole: %.1e\n",
                   multimax ? "multimax" : "softmax", me.ranks, error);
        }
    }
    if (me.rank == 0) { printf("%s\n", good ? "Good: all are below 1e-6." : "WRONG"); }
    if (MPI_Finalize() != MPI_SUCCESS) { return 1; }
    return good ? 0 : 1;
}
#endif
