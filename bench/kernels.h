/*
 * kernels.h: what is timed. A kernel is one function of multimax.h or of a peer, called from C on `work`; each file
 * kernels.c and peer_*.c gives a table of them, and main.cc times them.
 */
#ifndef KERNELS_H
#define KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "multimax.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The arrays of a call: rows x cols contiguous entries each, of the kernel's type. Functions named _axis take them as
 * cols x rows, whose columns are the rows; functions named _calls make a call for each row. */
typedef struct work {
    size_t rows, cols;
    void *x, *y, *gy, *gx;
    double *per_row;         /* losses and metrics */
    const int32_t *index;    /* the true class of every row */
    const uint32_t *lengths; /* of every row half to all of cols, for functions named so */
    const uint32_t *starts;  /* eight sequences, each padded on the left by up to an eighth, for functions named so */
    double size;             /* of gy, and the grad_scale of losses */
} work;

/* FORWARD writes y; BACKWARD reads gy and y (some also x), writes gx; LOSS reads x, writes gx; VALUE is a loss without its
 * gradient; METRIC reads x and y. */
typedef enum kind { FORWARD, BACKWARD, LOSS, VALUE, METRIC } kind;

typedef struct kernel {
    const char *function; /* as in multimax.h, with the order behind multimax; "limit": memory traffic alone */
    const char *by;       /* who computes it; NULL ends a table */
    kind what;
    int f64;    /* entries are double */
    int order;  /* of multimax; 0: has no parameters */
    int arrays; /* entries of how many arrays a call must at least move */
    void (*run)(const work *w, void *state);
    void (*forward)(const work *w, void *state); /* makes the y that run reads; NULL: reads none */
    void *(*open)(const work *w);                /* what need not be timed: its result is run's state; may be NULL */
    void (*close)(void *state);
} kernel;

extern const kernel multimax_f32[], multimax_f64[];
extern const kernel peer_limits[], peer_sort[], peer_topk[], peer_condat[], peer_attention[];
extern const kernel peer_loops_O2[], peer_loops_fast[];
extern const kernel peer_onednn[], peer_xnnpack[], peer_torch[], peer_sleef[];

#define KEPT             8    /* entries that topk keeps */
#define NUCLEUS          0.9  /* top_p of truncate and sample */
#define TRAINING_EPSILON 1e-6 /* of evsoftmax_loss; inference has 0 */
#define METRIC_EPSILON   0.0  /* thresholds of the metrics: entries above and below 0 */

const mmax_multimax_params *params_of_order(int order);

/* One thread and nothing to recover: a failed call ends the program. */
void must(int ok, const char *call);

/* The largest error of what the kernel wrote, on rows picked evenly. */
typedef struct accuracy {
    double ulp;   /* forward: ULP, see forward_error(); else roundings of the magnitudes that a gradient adds up */
    double sum;   /* |sum - 1| of a row; -1 where rows have no such sum */
    int measured; /* 0: nothing to compare with */
} accuracy;
accuracy accuracy_of(const kernel *k, const work *w);

#ifdef __cplusplus
}
#endif
#endif /* KERNELS_H */
