/*
 * kernels.h: the timed kernels. A kernel calls one function of multimax.h or of a peer on `work`. Each of kernels.c and
 * peer_*.c has a table of kernels; main.cc times them.
 */
#ifndef KERNELS_H
#define KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "multimax.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The arrays of a call: rows x cols contiguous entries each, of the kernel's type. Kernels named _axis take them as
 * cols x rows and normalise columns. Kernels named _calls make one call for each row, those named _few one for FEW. */
typedef struct work {
    size_t rows, cols;
    void *x, *y, *gy, *gx;
    double *per_row;         /* losses and metrics */
    const int32_t *index;    /* [rows]: true classes */
    const uint32_t *lengths; /* [rows]: half of cols to all of cols, for kernels named _lengths */
    const uint32_t *starts;  /* [rows]: eight sequences, left padding of up to an eighth; for kernels named _starts */
    double size;             /* size of gy, and the grad_scale of losses */
} work;

/* FORWARD writes y. BACKWARD reads gy and y (some also x) and writes gx. LOSS reads x and writes gx. VALUE is a loss
 * without its gradient. METRIC reads x and y. */
typedef enum kind { FORWARD, BACKWARD, LOSS, VALUE, METRIC } kind;

typedef struct kernel {
    const char *function; /* as in multimax.h, with the order after multimax; "limit": memory traffic only */
    const char *by;       /* the name of the implementation; NULL ends a table */
    kind what;
    int f64;    /* entries are double */
    int order;  /* order of multimax; 0: no parameters */
    int arrays; /* number of arrays that a call must read or write */
    void (*run)(const work *w, void *state);
    void (*forward)(const work *w, void *state); /* computes the y that run reads; NULL: run reads none */
    void *(*open)(const work *w);                /* prepares run's state, not timed; may be NULL */
    void (*close)(void *state);
} kernel;

extern const kernel multimax_f32[], multimax_f64[];
extern const kernel peer_limits[], peer_sort[], peer_topk[], peer_condat[], peer_attention[];
extern const kernel peer_loops_O2[], peer_loops_fast[];
extern const kernel peer_onednn[], peer_xnnpack[], peer_torch[], peer_sleef[];

#define FEW              4    /* rows of a call of kernels named _few */
#define KEPT             8    /* k of topk */
#define NUCLEUS          0.9  /* top_p of truncate and sample */
#define TRAINING_EPSILON 1e-6 /* epsilon of evsoftmax_loss; inference has 0 */
#define METRIC_EPSILON   0.0  /* thresholds of the metrics: entries above and below 0 */

const mmax_multimax_params *params_of_order(int order);

/* Ends the program with a message if `call` failed. */
void must(int ok, const char *call);

/* The largest error of a kernel's results, on evenly spaced rows. */
typedef struct accuracy {
    double ulp;   /* forward: ULP, see forward_error(); backward: roundings of the terms whose sum a gradient is */
    double sum;   /* |sum - 1| of a row; -1 if rows do not sum to 1 */
    int measured; /* 0: there is no reference */
} accuracy;
accuracy accuracy_of(const kernel *k, const work *w);

#ifdef __cplusplus
}
#endif
#endif /* KERNELS_H */
