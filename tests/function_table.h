/*
 * function_table.h: every function of multimax.h behind one signature, so that a test is one loop over all of them.
 *
 *     FOR_EACH_FUNCTION(f) FOR_EACH_ISA(isa) FOR_EACH_LENGTH(n) {
 *         call c = call_of(f, rows, n, NORMAL_4, seed);    random scores and gradients, y made by the forward function
 *         CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, n));
 *     }
 *
 * Special values are written and read as bit patterns: the tests must hold under -Ofast too. Random rows come from
 * integer arithmetic alone, so they are the same on every machine.
 */
#ifndef FUNCTION_TABLE_H
#define FUNCTION_TABLE_H

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "multimax.h"
#include "check.h"

/* ==== calls ==== */

/* The arrays of T. OUT is y of a forward function, gx of a backward function or a loss; a metric has none. */
typedef enum role { OUT, GY, Y, X, ARRAYS } role;

typedef struct call {
    void *array[ARRAYS];
    double *per_row; /* a loss, a log-sum-exp, the value of a metric, or a gradient with an entry a head */
    mmax_multimax_grads *gp;
    const mmax_multimax_params *p;
    double epsilon, reference;
    mmax_targets t;
    mmax_shape s;
    struct {
        double *gradient;         /* of epsilon as alpha or q, or NULL */
        const double *lse;        /* of sink_gradient, or NULL */
        size_t k;                 /* of topk */
        uint32_t *index;          /* of route and sample */
        mmax_router router;       /* of route, but for k */
        uint64_t seed, first_row; /* of gumbel and sample */
        mmax_truncation cut;      /* of truncate and sample */
    } own;                        /* of some functions */
} call;

typedef enum kind { FORWARD, LOGARITHM, BACKWARD, LOG_BACKWARD, LOSS, METRIC } kind;

enum trait {
    HAS_OUT = 1 << OUT,
    HAS_GY = 1 << GY,
    HAS_Y = 1 << Y,
    HAS_X = 1 << X,
    HAS_GP = 16,        /* gradients of the MultiMax parameters */
    HAS_EPSILON = 32,   /* an epsilon argument */
    HAS_REFERENCE = 64, /* a reference argument */
    PROBABILITY = 128,  /* y >= 0, the sum is 1, equal entries are 1/n, scores beyond the type follow the table */
    ELEMENTWISE = 256,  /* entries do not see each other */
    MASKED_BY_X = 512,  /* backward: the mask is x = -inf, not y = 0 */
    HAS_LSE = 1024,     /* a log-sum-exp a row; the output beside it may be NULL */
    PER_HEAD = 2048,    /* adds to one value a head */
    HAS_CAP = 4096,     /* epsilon is a cap: above 0 */
    TAKES_SINKS = 8192,
    SELECTS = 16384,      /* of equal entries only the first may have weight */
    HAS_GRADIENT = 32768, /* backward: of epsilon, too; either output may be NULL */
    HAS_INDEX = 65536,    /* route: OUT is rows x k, contiguous, and there is an index; either may be NULL.
                             sample: an index a row, no OUT */
    BY_PLACE = 131072,    /* gumbel: an entry depends on its column */
    HAS_CUT = 262144,     /* truncate and sample: own.cut */
    FORWARD_ARRAYS = HAS_OUT | HAS_X,
    BACKWARD_ARRAYS = HAS_OUT | HAS_GY | HAS_Y,
    METRIC_ARRAYS = HAS_Y | HAS_X | HAS_EPSILON
};

typedef struct function {
    const char *name;
    size_t size; /* of an entry */
    kind kind;
    unsigned traits;
    int order; /* of MultiMax; 0: no parameters */
    double epsilon;
    mmax_status (*run)(const call *c);
    mmax_status (*forward)(const call *c); /* makes the y that this function reads */
} function;

#define ADAPTER(name, T, ...) \
    static inline mmax_status run_##name##_##T(const call *c) { return mmax_##name##_##T(__VA_ARGS__); }
#define ADAPTERS(T)                                                                                             \
    ADAPTER(softmax, T, c->array[OUT], c->array[X], c->s)                                                       \
    ADAPTER(multimax, T, c->array[OUT], c->array[X], c->p, c->s)                                                \
    ADAPTER(sparsemax, T, c->array[OUT], c->array[X], c->s)                                                     \
    ADAPTER(entmax15, T, c->array[OUT], c->array[X], c->s)                                                      \
    ADAPTER(evsoftmax, T, c->array[OUT], c->array[X], c->epsilon, c->s)                                         \
    ADAPTER(tanhmax, T, c->array[OUT], c->array[X], c->s)                                                       \
    ADAPTER(topk, T, c->array[OUT], c->array[X], c->own.k, c->s)                                                \
    ADAPTER(seglu, T, c->array[OUT], c->array[X], c->p, c->s)                                                   \
    ADAPTER(log_softmax, T, c->array[OUT], c->array[X], c->s)                                                   \
    ADAPTER(log_multimax, T, c->array[OUT], c->array[X], c->p, c->s)                                            \
    ADAPTER(softmax_backward, T, c->array[OUT], c->array[GY], c->array[Y], c->s)                                \
    ADAPTER(multimax_backward, T, c->array[OUT], c->gp, c->array[GY], c->array[Y], c->array[X], c->p, c->s)     \
    ADAPTER(sparsemax_backward, T, c->array[OUT], c->array[GY], c->array[Y], c->s)                              \
    ADAPTER(entmax15_backward, T, c->array[OUT], c->array[GY], c->array[Y], c->s)                               \
    ADAPTER(evsoftmax_backward, T, c->array[OUT], c->array[GY], c->array[Y], c->s)                              \
    ADAPTER(tanhmax_backward, T, c->array[OUT], c->array[GY], c->array[Y], c->array[X], c->s)                   \
    ADAPTER(seglu_backward, T, c->array[OUT], c->gp, c->array[GY], c->array[X], c->p, c->s)                     \
    ADAPTER(log_softmax_backward, T, c->array[OUT], c->array[GY], c->array[Y], c->s)                            \
    ADAPTER(log_multimax_backward, T, c->array[OUT], c->gp, c->array[GY], c->array[Y], c->array[X], c->p, c->s) \
    ADAPTER(softmax_loss, T, c->per_row, c->array[OUT], c->array[X], c->t, c->s)                                \
    ADAPTER(multimax_loss, T, c->per_row, c->array[OUT], c->gp, c->array[X], c->p, c->t, c->s)                  \
    ADAPTER(evsoftmax_loss, T, c->per_row, c->array[OUT], c->array[X], c->epsilon, c->t, c->s)                  \
    ADAPTER(sparsemax_loss, T, c->per_row, c->array[OUT], c->array[X], c->t, c->s)                              \
    ADAPTER(entmax15_loss, T, c->per_row, c->array[OUT], c->array[X], c->t, c->s)                               \
    ADAPTER(multimodality, T, c->per_row, c->array[Y], c->array[X], c->epsilon, c->s)                           \
    ADAPTER(sparsity, T, c->per_row, c->array[Y], c->array[X], c->epsilon, c->reference, c->s)
/* epsilon is alpha, or q */
#define OTHER_ADAPTERS(T)                                                                                        \
    ADAPTER(entmax, T, c->array[OUT], c->array[X], c->epsilon, c->s)                                             \
    ADAPTER(sigsoftmax, T, c->array[OUT], c->array[X], c->s)                                                     \
    ADAPTER(sparsehourglass, T, c->array[OUT], c->array[X], c->epsilon, c->s)                                    \
    ADAPTER(entmax_backward, T, c->array[OUT], c->own.gradient, c->array[GY], c->array[Y], c->epsilon, c->s)     \
    ADAPTER(sigsoftmax_backward, T, c->array[OUT], c->array[GY], c->array[Y], c->array[X], c->s)                 \
    ADAPTER(sparsehourglass_backward, T, c->array[OUT], c->own.gradient, c->array[GY], c->array[Y], c->array[X], \
            c->epsilon, c->s)                                                                                    \
    ADAPTER(entmax_loss, T, c->per_row, c->array[OUT], c->array[X], c->epsilon, c->t, c->s)
ADAPTERS(f32)
ADAPTERS(f64)
OTHER_ADAPTERS(f32)
OTHER_ADAPTERS(f64)

#define FUNCTION(title, T, size, kind, traits, order, epsilon, name, forward) \
    { title "_" #T, size, kind, (traits), order, epsilon, run_##name##_##T, run_##forward##_##T }
#define FUNCTIONS(T, z)                                                                                               \
    FUNCTION("softmax", T, z, FORWARD, TAKES_SINKS | FORWARD_ARRAYS | PROBABILITY, 0, 0, softmax, softmax),           \
        FUNCTION("multimax(1)", T, z, FORWARD, TAKES_SINKS | FORWARD_ARRAYS | PROBABILITY, 1, 0, multimax, multimax), \
        FUNCTION("multimax(2)", T, z, FORWARD, TAKES_SINKS | FORWARD_ARRAYS | PROBABILITY, 2, 0, multimax, multimax), \
        FUNCTION("sparsemax", T, z, FORWARD, FORWARD_ARRAYS | PROBABILITY, 0, 0, sparsemax, sparsemax),               \
        FUNCTION("entmax15", T, z, FORWARD, FORWARD_ARRAYS | PROBABILITY, 0, 0, entmax15, entmax15),                  \
        FUNCTION("evsoftmax", T, z, FORWARD, TAKES_SINKS | FORWARD_ARRAYS | HAS_EPSILON | PROBABILITY, 0, 0,          \
                 evsoftmax, evsoftmax),                                                                               \
        FUNCTION("evsoftmax(1e-6)", T, z, FORWARD, TAKES_SINKS | FORWARD_ARRAYS | HAS_EPSILON | PROBABILITY, 0, 1e-6, \
                 evsoftmax, evsoftmax),                                                                               \
        FUNCTION("tanhmax", T, z, FORWARD, FORWARD_ARRAYS, 0, 0, tanhmax, tanhmax),                                   \
        FUNCTION("seglu(1)", T, z, FORWARD, FORWARD_ARRAYS | ELEMENTWISE, 1, 0, seglu, seglu),                        \
        FUNCTION("seglu(2)", T, z, FORWARD, FORWARD_ARRAYS | ELEMENTWISE, 2, 0, seglu, seglu),                        \
        FUNCTION("log_softmax", T, z, LOGARITHM, FORWARD_ARRAYS, 0, 0, log_softmax, log_softmax),                     \
        FUNCTION("log_multimax(1)", T, z, LOGARITHM, FORWARD_ARRAYS, 1, 0, log_multimax, log_multimax),               \
        FUNCTION("log_multimax(2)", T, z, LOGARITHM, FORWARD_ARRAYS, 2, 0, log_multimax, log_multimax),               \
        FUNCTION("softmax_backward", T, z, BACKWARD, TAKES_SINKS | BACKWARD_ARRAYS, 0, 0, softmax_backward, softmax), \
        FUNCTION("multimax_backward(1)", T, z, BACKWARD, TAKES_SINKS | BACKWARD_ARRAYS | HAS_X | HAS_GP, 1, 0,        \
                 multimax_backward, multimax),                                                                        \
        FUNCTION("multimax_backward(2)", T, z, BACKWARD, TAKES_SINKS | BACKWARD_ARRAYS | HAS_X | HAS_GP, 2, 0,        \
                 multimax_backward, multimax),                                                                        \
        FUNCTION("sparsemax_backward", T, z, BACKWARD, BACKWARD_ARRAYS, 0, 0, sparsemax_backward, sparsemax),         \
        FUNCTION("entmax15_backward", T, z, BACKWARD, BACKWARD_ARRAYS, 0, 0, entmax15_backward, entmax15),            \
        FUNCTION("evsoftmax_backward", T, z, BACKWARD, TAKES_SINKS | BACKWARD_ARRAYS, 0, 0, evsoftmax_backward,       \
                 evsoftmax),                                                                                          \
        FUNCTION("evsoftmax_backward(1e-6)", T, z, BACKWARD, TAKES_SINKS | BACKWARD_ARRAYS, 0, 1e-6,                  \
                 evsoftmax_backward, evsoftmax),                                                                      \
        FUNCTION("tanhmax_backward", T, z, BACKWARD, BACKWARD_ARRAYS | HAS_X | MASKED_BY_X, 0, 0, tanhmax_backward,   \
                 tanhmax),                                                                                            \
        FUNCTION("seglu_backward(1)", T, z, BACKWARD, HAS_OUT | HAS_GY | HAS_X | HAS_GP | ELEMENTWISE | MASKED_BY_X,  \
                 1, 0, seglu_backward, seglu),                                                                        \
        FUNCTION("seglu_backward(2)", T, z, BACKWARD, HAS_OUT | HAS_GY | HAS_X | HAS_GP | ELEMENTWISE | MASKED_BY_X,  \
                 2, 0, seglu_backward, seglu),                                                                        \
        FUNCTION("log_softmax_backward", T, z, LOG_BACKWARD, BACKWARD_ARRAYS, 0, 0, log_softmax_backward,             \
                 log_softmax),                                                                                        \
        FUNCTION("log_multimax_backward(1)", T, z, LOG_BACKWARD, BACKWARD_ARRAYS | HAS_X | HAS_GP, 1, 0,              \
                 log_multimax_backward, log_multimax),                                                                \
        FUNCTION("log_multimax_backward(2)", T, z, LOG_BACKWARD, BACKWARD_ARRAYS | HAS_X | HAS_GP, 2, 0,              \
                 log_multimax_backward, log_multimax),                                                                \
        FUNCTION("softmax_loss", T, z, LOSS, FORWARD_ARRAYS, 0, 0, softmax_loss, softmax),                            \
        FUNCTION("multimax_loss(1)", T, z, LOSS, FORWARD_ARRAYS | HAS_GP, 1, 0, multimax_loss, multimax),             \
        FUNCTION("multimax_loss(2)", T, z, LOSS, FORWARD_ARRAYS | HAS_GP, 2, 0, multimax_loss, multimax),             \
        FUNCTION("evsoftmax_loss", T, z, LOSS, FORWARD_ARRAYS | HAS_EPSILON, 0, 1e-6, evsoftmax_loss, evsoftmax),     \
        FUNCTION("sparsemax_loss", T, z, LOSS, FORWARD_ARRAYS, 0, 0, sparsemax_loss, sparsemax),                      \
        FUNCTION("entmax15_loss", T, z, LOSS, FORWARD_ARRAYS, 0, 0, entmax15_loss, entmax15),                         \
        FUNCTION("multimodality", T, z, METRIC, METRIC_ARRAYS, 0, 0, multimodality, softmax),                         \
        FUNCTION("sparsity", T, z, METRIC, METRIC_ARRAYS | HAS_REFERENCE, 0, 0, sparsity, softmax)

/* Functions with tests of their own, test_topk.c and test_more.c, for programs that ask for them. */
#if defined(WITH_MORE_FUNCTIONS)
#    define OTHER_FUNCTIONS(T, z)                                                                                      \
        , FUNCTION("topk(4)", T, z, FORWARD, FORWARD_ARRAYS | PROBABILITY | SELECTS, 0, 0, topk, topk),                \
            FUNCTION("entmax(1.25)", T, z, FORWARD, FORWARD_ARRAYS | PROBABILITY, 0, 1.25, entmax, entmax),            \
            FUNCTION("entmax(3)", T, z, FORWARD, FORWARD_ARRAYS | PROBABILITY, 0, 3, entmax, entmax),                  \
            FUNCTION("sigsoftmax", T, z, FORWARD, FORWARD_ARRAYS | PROBABILITY, 0, 0, sigsoftmax, sigsoftmax),         \
            FUNCTION("sparsehourglass", T, z, FORWARD, FORWARD_ARRAYS | PROBABILITY, 0, 0.5, sparsehourglass,          \
                     sparsehourglass),                                                                                 \
            FUNCTION("entmax_backward(1.25)", T, z, BACKWARD, BACKWARD_ARRAYS | HAS_GRADIENT, 0, 1.25,                 \
                     entmax_backward, entmax),                                                                         \
            FUNCTION("entmax_backward(3)", T, z, BACKWARD, BACKWARD_ARRAYS | HAS_GRADIENT, 0, 3, entmax_backward,      \
                     entmax),                                                                                          \
            FUNCTION("sigsoftmax_backward", T, z, BACKWARD, BACKWARD_ARRAYS | HAS_X, 0, 0, sigsoftmax_backward,        \
                     sigsoftmax),                                                                                      \
            FUNCTION("sparsehourglass_backward", T, z, BACKWARD, BACKWARD_ARRAYS | HAS_X | MASKED_BY_X | HAS_GRADIENT, \
                     0, 0.5, sparsehourglass_backward, sparsehourglass),                                               \
            FUNCTION("entmax_loss(1.25)", T, z, LOSS, FORWARD_ARRAYS, 0, 1.25, entmax_loss, entmax)
#else
#    define OTHER_FUNCTIONS(T, z)
#endif
static const function functions[] = {FUNCTIONS(f32, 4) OTHER_FUNCTIONS(f32, 4),
                                     FUNCTIONS(f64, 8) OTHER_FUNCTIONS(f64, 8)};

#define COUNT(a)             (sizeof(a) / sizeof(a)[0])
#define FOR_EACH_FUNCTION(f) for (const function *f = functions; f < functions + COUNT(functions); ++f)

/* Functions of attention: variants of others, elementwise ones, and those that add to one value a head. */
#define MORE_ADAPTERS(T)                                                               \
    ADAPTER(softmax_lse, T, c->array[OUT], c->per_row, c->array[X], c->s)              \
    ADAPTER(multimax_lse, T, c->array[OUT], c->per_row, c->array[X], c->p, c->s)       \
    ADAPTER(scale_gradient, T, c->per_row, c->array[GY], c->array[X], c->s)            \
    ADAPTER(sink_gradient, T, c->per_row, c->array[GY], c->array[Y], c->own.lse, c->s) \
    ADAPTER(softcap, T, c->array[OUT], c->array[X], c->epsilon, c->s)                  \
    ADAPTER(softcap_backward, T, c->array[OUT], c->array[GY], c->array[Y], c->epsilon, c->s)
MORE_ADAPTERS(f32)
MORE_ADAPTERS(f64)

#define LSE_TRAITS (FORWARD_ARRAYS | PROBABILITY | HAS_LSE | TAKES_SINKS)
#define MORE(T, z)                                                                                                    \
    FUNCTION("softmax_lse", T, z, FORWARD, LSE_TRAITS, 0, 0, softmax_lse, softmax),                                   \
        FUNCTION("multimax_lse(1)", T, z, FORWARD, LSE_TRAITS, 1, 0, multimax_lse, multimax),                         \
        FUNCTION("multimax_lse(2)", T, z, FORWARD, LSE_TRAITS, 2, 0, multimax_lse, multimax),                         \
        FUNCTION("softcap", T, z, FORWARD, FORWARD_ARRAYS | ELEMENTWISE | HAS_CAP, 0, 1, softcap, softcap),           \
        FUNCTION("softcap_backward", T, z, BACKWARD, BACKWARD_ARRAYS | ELEMENTWISE | HAS_CAP, 0, 1, softcap_backward, \
                 softcap),                                                                                            \
        FUNCTION("scale_gradient", T, z, METRIC, HAS_GY | HAS_X | PER_HEAD | TAKES_SINKS, 0, 0, scale_gradient,       \
                 softmax),                                                                                            \
        FUNCTION("sink_gradient", T, z, METRIC, HAS_GY | HAS_Y | PER_HEAD | TAKES_SINKS, 0, 0, sink_gradient, softmax)
static const function more_functions[] = {MORE(f32, 4), MORE(f64, 8)};
#define FOR_EACH_MORE(f) for (const function *f = more_functions; f < more_functions + COUNT(more_functions); ++f)

/* Functions whose arguments no other has: choices, and seeds. */
/* A router as the call has it, with its k */
static inline const mmax_router *router_of_call(const call *c) {
    static mmax_router r;
    r = c->own.router;
    r.k = c->own.k;
    return &r;
}
#define UNLIKE_ADAPTERS(T)                                                               \
    ADAPTER(route, T, c->array[OUT], c->own.index, c->array[X], router_of_call(c), c->s) \
    ADAPTER(gumbel, T, c->array[OUT], c->own.seed, c->own.first_row, c->s)               \
    ADAPTER(truncate, T, c->array[OUT], c->array[X], c->own.cut, c->s)                   \
    ADAPTER(sample, T, c->own.index, c->per_row, c->array[X], c->own.cut, c->own.seed, c->own.first_row, c->s)
UNLIKE_ADAPTERS(f32)
UNLIKE_ADAPTERS(f64)
#define UNLIKE(T, z)                                                                                          \
    FUNCTION("route", T, z, FORWARD, FORWARD_ARRAYS | HAS_INDEX, 0, 0, route, topk),                          \
        FUNCTION("gumbel", T, z, FORWARD, HAS_OUT | BY_PLACE, 0, 0, gumbel, gumbel),                          \
        FUNCTION("truncate", T, z, FORWARD, FORWARD_ARRAYS | PROBABILITY | SELECTS | HAS_CUT, 0, 0, truncate, \
                 truncate),                                                                                   \
        FUNCTION("sample", T, z, FORWARD, HAS_X | HAS_INDEX | HAS_CUT, 0, 0, sample, truncate)
static const function unlike_functions[] = {UNLIKE(f32, 4), UNLIKE(f64, 8)};

/* All functions with a shape, by number. */
enum {
    TABLED = COUNT(functions),
    MORE_TABLED = COUNT(more_functions),
    ALL = TABLED + MORE_TABLED + COUNT(unlike_functions)
};
static inline const function *any_function(size_t i) {
    return i < TABLED                 ? &functions[i]
           : i < TABLED + MORE_TABLED ? &more_functions[i - TABLED]
                                      : &unlike_functions[i - TABLED - MORE_TABLED];
}

static inline const function *function_named(const char *name) {
    FOR_EACH_FUNCTION(f) {
        if (strcmp(f->name, name) == 0) { return f; }
    }
    CHECK(0, "no function is named %s", name);
    return functions;
}

static inline int has(const function *f, unsigned trait) { return (f->traits & trait) != 0; }
/* Whether interleaved rows of any length are taken */
static inline int has_long_rows(const function *f) {
    return has(f, ELEMENTWISE | BY_PLACE) || strncmp(f->name, "softmax_f", 9) == 0 ||
           strncmp(f->name, "multimax(", 9) == 0;
}

static inline size_t *stride_of(const function *f, mmax_shape *s, role r) {
    switch (r) {
    case OUT: return f->kind == FORWARD || f->kind == LOGARITHM ? &s->y_stride : &s->gx_stride;
    case GY: return f->kind == METRIC && has(f, HAS_X) ? &s->gx_stride : &s->gy_stride; /* scale_gradient reads gx */
    case Y: return &s->y_stride;
    default: return &s->x_stride;
    }
}

/* ==== instruction sets and lengths ==== */

/* Selects the next available instruction set after `isa`. */
static inline int next_isa(int isa) {
    do { ++isa; } while (isa < MMAX_ISA_COUNT && mmax_isa_select((mmax_isa)isa) != MMAX_OK);
    return isa;
}
#define FOR_EACH_ISA(isa) for (int isa = next_isa(-1); isa < MMAX_ISA_COUNT; isa = next_isa(isa))

/* Whether it gives the bits of all instruction sets with fused multiply-add. */
static inline int uses_fma(int isa) {
#if defined(__FAST_MATH__)
    return isa < 0; /* bits may differ */
#else
    int hardware_fma = 0;
#    if defined(__FMA__) || defined(__aarch64__) || defined(FP_FAST_FMAF)
    hardware_fma = FLT_EVAL_METHOD == 0 || FLT_EVAL_METHOD == 16;
#    endif
    return isa == MMAX_ISA_AVX2 || isa == MMAX_ISA_AVX512 || isa == MMAX_ISA_NEON ||
           (isa == MMAX_ISA_SCALAR && hardware_fma);
#endif
}

#ifndef LENGTH_STEP
#    define LENGTH_STEP 1
#endif
/* The step over combinations, whose number is no multiple of 7. */
#define CASE_STEP (LENGTH_STEP < 5 ? 1u : 7u)
/* Round the lanes of every instruction set: single vectors, virtual lanes of 16 and 32, blocks of 128. */
#if LENGTH_STEP < 5
static const size_t row_lengths[] = {1,  2,  3,  4,  5,  6,   7,   8,   15,  16,  17,  31,
                                     32, 33, 63, 64, 65, 100, 127, 128, 129, 131, 300, 1000};
#else
static const size_t row_lengths[] = {1, 2, 3, 5, 8, 15, 17, 32, 33, 64, 65, 129, 300};
#endif
#define FOR_EACH_LENGTH(n) for (size_t n##_i = 0, n; n##_i < COUNT(row_lengths) && (n = row_lengths[n##_i], 1); ++n##_i)

#define AT            "%s on %s, %u entries"
#define AT_ARGS(f, n) (f)->name, mmax_isa_name(mmax_isa_active()), (unsigned)(n)

/* ==== entries as numbers and as bits ==== */

static inline double get(const function *f, const void *a, size_t i) {
    float s;
    double d;
    if (f->size == 4) {
        memcpy(&s, (const char *)a + 4 * i, 4);
        return s;
    }
    memcpy(&d, (const char *)a + 8 * i, 8);
    return d;
}

static inline void set(const function *f, void *a, size_t i, double value) {
    float s = (float)value;
    memcpy((char *)a + f->size * i, f->size == 4 ? (void *)&s : (void *)&value, f->size);
}

static inline uint64_t get_bits(const function *f, const void *a, size_t i) {
    uint32_t s;
    uint64_t d;
    if (f->size == 4) {
        memcpy(&s, (const char *)a + 4 * i, 4);
        return s;
    }
    memcpy(&d, (const char *)a + 8 * i, 8);
    return d;
}

static inline void set_bits(const function *f, void *a, size_t i, uint64_t bits) {
    uint32_t s = (uint32_t)bits;
    memcpy((char *)a + f->size * i, f->size == 4 ? (void *)&s : (void *)&bits, f->size);
}

static inline uint64_t bits_of(double d) {
    uint64_t b;
    memcpy(&b, &d, 8);
    return b;
}

static inline double double_of(uint64_t bits) {
    double d;
    memcpy(&d, &bits, 8);
    return d;
}

typedef enum special { QUIET_NAN, SIGNALLING_NAN, NEGATIVE_NAN, PAYLOAD_NAN, PLUS_INF, MINUS_INF, SPECIALS } special;

static inline uint64_t special_bits(const function *f, special which) {
    static const uint64_t f32[SPECIALS] = {0x7fc00000, 0x7f800001, 0xffc00000, 0x7fcabcde, 0x7f800000, 0xff800000};
    static const uint64_t f64[SPECIALS] = {0x7ff8000000000000, 0x7ff0000000000001, 0xfff8000000000000,
                                           0x7ffabcdef0123456, 0x7ff0000000000000, 0xfff0000000000000};
    return f->size == 4 ? f32[which] : f64[which];
}

static inline void set_special(const function *f, void *a, size_t i, special which) {
    set_bits(f, a, i, special_bits(f, which));
}

static inline int is_special(const function *f, const void *a, size_t i, special which) {
    return get_bits(f, a, i) == special_bits(f, which);
}

static inline int is_nan_double(double d) { return (bits_of(d) & 0x7fffffffffffffff) > 0x7ff0000000000000; }

/* The bits without the sign. */
static inline uint64_t magnitude_bits(const function *f, const void *a, size_t i) {
    return get_bits(f, a, i) & (f->size == 4 ? 0x7fffffff : 0x7fffffffffffffff);
}

static inline int is_nan_at(const function *f, const void *a, size_t i) {
    return magnitude_bits(f, a, i) > special_bits(f, PLUS_INF);
}

static inline int is_finite_at(const function *f, const void *a, size_t i) {
    return magnitude_bits(f, a, i) < special_bits(f, PLUS_INF);
}

static inline int is_subnormal_at(const function *f, const void *a, size_t i) {
    uint64_t m = magnitude_bits(f, a, i);
    return m != 0 && m < (f->size == 4 ? 0x00800000 : 0x0010000000000000);
}

/* Relative rounding error of T. */
static inline double eps_of(const function *f) { return f->size == 4 ? FLT_EPSILON : DBL_EPSILON; }

static inline double smallest_normal(const function *f) { return f->size == 4 ? FLT_MIN : DBL_MIN; }

static inline double largest(const function *f) { return f->size == 4 ? FLT_MAX : DBL_MAX; }

/* ==== random rows ==== */

static uint64_t random_state;

/* splitmix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014. */
static inline uint64_t random_bits(void) {
    uint64_t z = (random_state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static inline size_t random_below(size_t n) { return (size_t)(random_bits() % n); }

static inline double random_uniform(void) { return (double)(random_bits() >> 12) / 4503599627370496.0; }

/* Near to N(0,1): the sum of twelve uniform numbers of 16 bits, and 32 bits more below; every step is exact. */
static inline double random_normal(void) {
    int32_t sum = -393210;
    for (int i = 0; i < 3; ++i) {
        for (uint64_t b = random_bits(), j = 0; j < 4; ++j, b >>= 16) { sum += (int32_t)(b & 0xffff); }
    }
    return ((double)sum + (double)(uint32_t)random_bits() / 4294967296.0) / 65536;
}

typedef enum law {
    NORMAL_1,
    NORMAL_4,
    NORMAL_32,
    TIES,
    CLUSTERS,  /* two values one unit in the last place apart */
    MASKED,    /* a third is -inf */
    ANY_SIZE,  /* up to the largest finite number, both signs */
    SUBNORMAL, /* subnormal and just above */
    GEOMETRIC,
    EQUAL,
    ONE_HOT,
    AT_MEAN, /* one entry is the mean of the others, rounded */
    LAWS
} law;

static inline void fill(const function *f, void *a, size_t n, law l) {
    size_t hot = n ? random_below(n) : 0;
    double sum = 0;
    for (size_t i = 0; i < n; ++i) {
        switch (l) {
        case NORMAL_1: set(f, a, i, random_normal()); break;
        case NORMAL_4: set(f, a, i, 4 * random_normal()); break;
        case NORMAL_32: set(f, a, i, 32 * random_normal()); break;
        case TIES: set(f, a, i, (double)random_below(5) - 2); break;
        case CLUSTERS:
            set(f, a, i, 0.75);
            set_bits(f, a, i, get_bits(f, a, i) + (random_bits() & 1));
            break;
        case MASKED:
            set(f, a, i, 4 * random_normal());
            if (random_below(3) == 0) { set_special(f, a, i, MINUS_INF); }
            break;
        case ANY_SIZE: set(f, a, i, (2 * random_uniform() - 1) * largest(f)); break;
        case SUBNORMAL: set(f, a, i, (4 * random_uniform() - 2) * smallest_normal(f)); break;
        case GEOMETRIC: set(f, a, i, ldexp(3, -(int)(i % 60))); break;
        case EQUAL: set(f, a, i, 0.1); break;
        case ONE_HOT: set(f, a, i, i == hot ? 20 : 0); break;
        default: set(f, a, i, i == hot ? 0 : random_normal()); break;
        }
        sum += l == AT_MEAN ? get(f, a, i) : 0;
    }
    if (l == AT_MEAN && n > 1) { set(f, a, hot, sum / (double)(n - 1)); }
}

/* ==== ready-made calls ==== */

/* [order]: modest parameters, every term present, both kinks inside N(0,1) rows. */
static const mmax_multimax_params params_of_order[3] = {{0, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
                                                        {1, {1.75, 1}, {0.5, 1}, {-0.25, 0}, {0.5, 0}},
                                                        {2, {1.75, 1.125}, {0.5, 0.9375}, {-0.25, -0.75}, {0.5, 1.25}}};

#define MAX_ROWS    32  /* side by side */
#define MOST_ROWS   100 /* over which gradients of parameters add up */
#define MAX_ENTRIES 131072

/* The arrays that call_of() points to: no call touches an entry beyond (rows - 1) * stride + cols. */
static double storage[ARRAYS][MAX_ENTRIES], row_storage[MOST_ROWS];
static int32_t index_storage[MOST_ROWS];
static mmax_multimax_grads gp_storage;

/* y from x by the matching forward function. */
static inline void make_y(const function *f, const call *c) {
    call forward = *c;
    forward.array[OUT] = c->array[Y];
    if (has(f, HAS_Y)) { CHECK(f->forward(&forward) == MMAX_OK, AT, AT_ARGS(f, c->s.cols)); }
}

/* A valid call on the static arrays: contiguous rows of random scores after law l, gy after N(0,1), y made from x. */
static inline call call_of(const function *f, size_t rows, size_t cols, law l, uint64_t seed) {
    call c;
    memset(&c, 0, sizeof c);
    random_state = seed * 1000003 + cols;
    for (int r = 0; r < ARRAYS; ++r) { c.array[r] = storage[r]; }
    for (size_t r = 0; r < rows; ++r) {
        fill(f, (char *)c.array[X] + r * cols * f->size, cols, l);
        index_storage[r] = cols ? (int32_t)random_below(cols) : -1;
    }
    fill(f, c.array[GY], rows * cols, NORMAL_1);
    memset(c.array[OUT], 0, rows * cols * f->size);
    memset(row_storage, 0, sizeof row_storage);
    memset(&gp_storage, 0, sizeof gp_storage);
    c.per_row = row_storage;
    c.gp = &gp_storage;
    c.p = f->order ? &params_of_order[f->order] : NULL;
    c.epsilon = f->epsilon;
    c.own.k = 4;
    c.t = mmax_labels(index_storage);
    c.s = mmax_rows(rows, cols);
    make_y(f, &c);
    return c;
}

/* The value of an entry past ends[r], and of every entry of a row with no active entry. */
static inline uint64_t empty_bits(const function *f) { return f->kind == LOGARITHM ? special_bits(f, MINUS_INF) : 0; }

/* The value of an entry that is masked by -inf. */
static inline uint64_t masked_bits(const function *f) {
    return f->kind == LOGARITHM || (f->kind == FORWARD && has(f, ELEMENTWISE)) ? special_bits(f, MINUS_INF) : 0;
}

#endif /* FUNCTION_TABLE_H */
