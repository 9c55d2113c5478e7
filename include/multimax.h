/*
 * multimax.h: SoftMax, MultiMax, SparseMax, EntMax-1.5, EvSoftMax and TanhMax over rows of numbers, forward, backward
 * and as losses, in one C99 header without dependencies. MIT licence.
 *
 *     #include "multimax.h"
 *     #include <stdio.h>
 *     int main(void)
 *     {
 *         const float x[4] = {2.0f, 1.8f, -1.0f, 0.1f};
 *         float y[4];
 *         mmax_multimax_params p = mmax_multimax_identity(1);
 *         p.t_b[0] = 2; p.b[0] = 0.5;
 *         mmax_status status = mmax_multimax_f32(y, x, &p, mmax_row(4));
 *         printf("%s %g %g %g %g\n", mmax_status_string(status), y[0], y[1], y[2], y[3]);
 *         return status != MMAX_OK;
 *     }
 *
 *     cc -O2 example.c -lm
 *
 * Modes
 *   plain    include it anywhere, in as many files as you like. All functions have internal linkage; each file chooses
 *            its instruction set for itself.
 *   shared   MULTIMAX_EXTERN for the whole project gives declarations alone, and MULTIMAX_IMPLEMENTATION before the
 *            include in exactly one C file the one external copy.
 *   stb      MULTIMAX_IMPLEMENTATION alone, in one file, makes that file the one of shared mode; files that want its
 *            copy define MULTIMAX_EXTERN, others stay plain.
 *   C99 or C++11 and later. x86-64 (and x86, but for MSVC) chooses SSE2, AVX2 or AVX-512 at run time, no compiler flag
 *   is needed; AArch64 has NEON, WebAssembly SIMD128 with -msimd128, everything else is plain C.
 *
 * Terms
 *   row       the `cols` contiguous entries over which a function normalises; mmax_shape says how many, where and how
 *             they are scaled. Rows are independent. A call runs on the thread that makes it.
 *   s         scale * x, the scores. The product is not rounded to the type first, except in multimax and seglu.
 *   active    the leading lengths[r] entries of row r (without lengths: all), but for the masked ones
 *   masked    an entry with x = -inf. It weighs nothing and counts nowhere.
 *   rounding  the type's epsilon (2^-23 for f32, 2^-52 for f64) times the magnitude of what is rounded
 *   A name ends in _f32 or _f64, its type. Parameters, losses and metrics are doubles in both.
 *
 * Special cases: one rule for all functions
 *   x = -inf               y = 0 and gx = 0 exactly, nothing is added to gp, also in a NaN row. The log functions give
 *                          y = -inf. seglu keeps -inf.
 *   past lengths[r]        never read; written as 0, by the log functions as -inf
 *   no active entry        y = 0 and gx = 0; log functions: y = -inf
 *   NaN or +inf, active    all active entries of that row are the quiet NaN 0x7fc00000 (f64: 0x7ff8000000000000), other
 *                          rows are untouched. seglu, being elementwise, keeps NaN to its own entry.
 *   backward               NaN or +inf in an active entry of x, y or gy makes the row's active gx NaN, and gp (seglu:
 *                          that entry and gp). Where y = 0 (log functions: y = -inf; tanhmax and seglu: x = -inf)
 *                          gx = 0, nothing is added to gp, and gy is not used, whatever it holds.
 *   all entries equal      1/n each, within the error: softmax, multimax, sparsemax, entmax15, evsoftmax
 *   values of any size     finite, no overflow. A score beyond the range of the type, or a sigma, that overflows to
 *                          -inf gives 0, to +inf a NaN row; in tanhmax either gives a NaN row, in seglu the infinity.
 *   |y| < FLT_MIN, DBL_MIN 0: forward functions never produce subnormal numbers. The floating-point environment is
 *                          not changed; its exception flags, which are sticky, may be raised.
 *   rows = 0 or cols = 0   MMAX_OK before any other check; nothing is touched, pointers may be NULL
 *   in place               an output may be exactly one of the inputs: same pointer, same stride (one row: any stride).
 *                          Inputs may overlap freely.
 *
 * Errors: all is checked before the first write, in this order; on error no output is touched
 *   MMAX_ERR_NULL    a required pointer is NULL; of several optional outputs, all are
 *   MMAX_ERR_SHAPE   stride < cols, lengths[r] > cols, sizes that overflow. Strides of arrays that the call does not
 *                    have are ignored, for rows = 1 all are.
 *   MMAX_ERR_PARAM   scale < 0, not finite in the type, or so small that it is 0 there; order not 1 or 2; a parameter in
 *                    use that is not finite in the type; evsoftmax's epsilon outside [0,1], its loss's outside (0,1];
 *                    a metric's epsilon or reference not finite, or reference < 0; grad_scale not finite;
 *                    label_smoothing outside [0,1); index[r] >= lengths[r] (without lengths: cols)
 *   MMAX_ERR_ALIAS   an output overlaps another array of the type, but is not exactly one of the inputs. An array
 *                    extends over (rows-1)*stride + cols entries; rows of equal stride that interleave without
 *                    touching do not overlap.
 *
 * Determinism. The bits of a row's result depend on that row alone: not on the number of rows, its place in the batch,
 * strides, alignment, in place or not, nor the thread; gp alone is a sum over the rows of a call, in their order, and
 * depends on them all. AVX2, AVX-512, NEON and plain C with fma in hardware (and float not evaluated in a wider type)
 * give the same bits, with gcc and clang, at every optimisation level: sums run over a fixed number of lanes and are
 * folded in a fixed order, and no transcendental function of libm takes part. Where scalars are computed on the x87,
 * excess digits get in the way: bits may also depend on the batch and on in place or not. SSE2, WebAssembly and plain C
 * elsewhere multiply and add separately: same accuracy, other bits. Under -Ofast results stay accurate and special
 * cases as above, but bits may differ. Not so for WebAssembly, where clang cannot be told to keep NaN: compile without
 * -ffast-math there.
 *
 * Threads and memory. Every function is reentrant. The only state is the chosen instruction set, one word read and
 * written atomically. Calls may run at the same time where no output is shared; give each thread its own gp. Nothing is
 * allocated on the heap.
 *
 * Accuracy and cost stand beside each function. Bounds are the largest errors found on x86-64 with every instruction
 * set, against a reference of higher precision, rounded up; tests/test_forward.c and tests/test_backward.c print those
 * of forward and backward functions. They hold for f32 and f64 alike, but where two are given.
 *
 * Limits. Entries of a row are contiguous; there are float and double alone; a call does not start threads.
 *
 * Sections, to be found by searching for "==== ": configuration, types; forward, backward, losses and logarithms,
 * metrics, helpers, instruction sets; implementation (compiler and processor, floating-point semantics, checks, vector
 * layer, kernels, public functions, instances, choice of the instruction set).
 */

#if !defined(MULTIMAX_H)
#    define MULTIMAX_H

/* ==== version and includes ==== */
#    define MULTIMAX_VERSION_MAJOR 1
#    define MULTIMAX_VERSION_MINOR 0
#    define MULTIMAX_VERSION_PATCH 0
#    define MULTIMAX_VERSION       "1.0.0"

#    include <stddef.h>
#    include <stdint.h>

/* ==== configuration ====
 * Define these before the include, or for the whole project. All are undefined by default but MULTIMAX_API.
 *
 *   MULTIMAX_EXTERN          declarations alone: no implementation, no intrinsics header. For projects where many files
 *                            use the library, or another language binds to it. The same in every file.
 *   MULTIMAX_IMPLEMENTATION  this file holds the external copy. In exactly one file, before its first include of this
 *                            header, directly or through others.
 *   MULTIMAX_NO_SIMD         plain C alone: for processors or compilers in doubt, and to debug. Slower.
 *   MULTIMAX_NO_DISPATCH     the best instruction set that the compiler flags allow (-march=native, /arch:AVX2), fixed
 *                            at compile time: less code, but illegal instructions on a lesser processor.
 *   MULTIMAX_NO_AVX512       nothing above AVX2 is compiled: a third less code, and less time to compile.
 *   MULTIMAX_FILE            the name under which the header includes itself, by default "multimax.h", with quotes.
 *                            A renamed copy needs it: -DMULTIMAX_FILE='"renamed.h"'.
 *
 * The last four matter where the implementation is compiled: in shared mode in one file, in plain mode in each. Compiled
 * for size (-Os, -Oz) the implementation has half the code and the same bits; rows take up to twice as long, those of up
 * to 128 (f64: 64) entries several times.
 */

/*
 * Stands before every declaration with external linkage: __declspec(dllexport), __attribute__((visibility("default"))).
 * Empty by default; without effect in plain mode.
 */
#    if !defined(MULTIMAX_API)
#        define MULTIMAX_API
#    endif

#    if defined(MULTIMAX_EXTERN) || defined(MULTIMAX_IMPLEMENTATION)
#        define MMAX_EXTERNAL 1
#        define MMAX_DECLARE  extern MULTIMAX_API
#    else
#        define MMAX_EXTERNAL 0
#        if defined(__GNUC__) || defined(__clang__)
#            define MMAX_DECLARE static inline __attribute__((__unused__))
#        else
#            define MMAX_DECLARE static inline
#        endif
#    endif

#    if defined(__cplusplus)
extern "C" {
#    endif

/* ==== types ==== */
/* What a call came to. Anything but MMAX_OK means that no output was touched. */
typedef enum mmax_status {
    MMAX_OK = 0,    /* done, or nothing to do */
    MMAX_ERR_NULL,  /* a required pointer is NULL */
    MMAX_ERR_SHAPE, /* a stride below cols, a length above cols, or sizes that overflow */
    MMAX_ERR_PARAM, /* a parameter out of range, or not finite in the type of the call */
    MMAX_ERR_ALIAS, /* an output overlaps another array without being exactly that array */
    MMAX_ERR_ISA    /* mmax_isa_select: not available here */
} mmax_status;

/*
 * Where the rows are. Start from mmax_row or mmax_rows, or from zeros (rows and cols of 0 are a call that does nothing),
 * then set what differs. Entry i of row r of array x is x[r * x_stride + i].
 */
typedef struct mmax_shape {
    size_t rows, cols;                               /* `rows` independent vectors of `cols` entries */
    size_t x_stride, y_stride, gx_stride, gy_stride; /* elements between row starts; 0 means cols */
    double scale;                                    /* multiplies x: the inverse temperature; 0 means 1, else > 0 */
    const uint32_t *lengths;                         /* [rows]: so many leading entries of row r exist; NULL: cols */
} mmax_shape;

/*
 * The parameters of sigma, [n-1] for the term of order n = 1, 2:
 *
 *     sigma(s) = s + sum_n (1 - t_b_n) max(b_n - s, 0)^n + (t_d_n - 1) max(s - d_n, 0)^n
 *
 * A term with t = 1 is absent, also at the largest numbers. Each max has derivative 0 at its own kink, with respect to
 * s, b and d. Where first and second order overflow with opposite signs, the second decides.
 * source: MultiMax, eq. 4 (order 1) and eq. 6.
 */
typedef struct mmax_multimax_params {
    int order;                         /* 1: first pair of terms, the second entries are not read; 2: both */
    double t_b[2], t_d[2], b[2], d[2]; /* of order 1, t are the slopes below b and above d; the two kinks */
} mmax_multimax_params;

/* The gradient with respect to the parameters, summed over rows. Calls ADD to it: set it to zero first. */
typedef struct mmax_multimax_grads {
    double t_b[2], t_d[2], b[2], d[2]; /* order 1 does not touch the second entries */
} mmax_multimax_grads;

/* The true classes for a loss. Start from mmax_labels. q is the target distribution of a row. */
typedef struct mmax_targets {
    const int32_t *index;   /* [rows]: the class of row r; negative: the row is ignored and not read */
    double label_smoothing; /* a in [0,1): q = (1-a) one-hot + a/n over the n active entries */
    double grad_scale;      /* multiplies gx and what is added to gp: 1/rows for a mean; 0 means 1 */
} mmax_targets;

/* Instruction sets, for both types. */
typedef enum mmax_isa {
    MMAX_ISA_SCALAR,  /* plain C */
    MMAX_ISA_SSE2,    /* x86 */
    MMAX_ISA_AVX2,    /* x86: AVX2, FMA, POPCNT */
    MMAX_ISA_AVX512,  /* x86: AVX-512 F, BW, DQ, VL, and what AVX2 needs */
    MMAX_ISA_NEON,    /* AArch64 */
    MMAX_ISA_WASM128, /* WebAssembly SIMD128 */
    MMAX_ISA_COUNT    /* how many there are */
} mmax_isa;

/* ==== forward: y = phi(scale * x) ====
 * The same for all: x and y are rows x cols, at x_stride and y_stride; y may be x. They return MMAX_OK, MMAX_ERR_NULL,
 * _SHAPE, _PARAM or _ALIAS. Rows of softmax, multimax, sparsemax, entmax15 and evsoftmax sum to 1 within 5e-7
 * (f64: 9e-16). Sums run over the active entries. A pass is one walk over a row; `special` adds to the table above.
 */

/*
 * y_i = exp(s_i) / sum exp(s_k)
 *
 *   error     at most 4 ULP in every entry that is a normal number, for rows of up to 2^24 entries
 *   cost      3 passes: the extremes; exponentials and their sum; scaling. Of rows beyond 128 KiB the first two are one
 *             over blocks.
 *   backward  mmax_softmax_backward_f32 needs y only; mmax_softmax_loss_f32 where a cross-entropy follows
 *   source    MultiMax, eq. 1
 */
MMAX_DECLARE mmax_status mmax_softmax_f32(float *y, const float *x, mmax_shape s);
/* As above. */
MMAX_DECLARE mmax_status mmax_softmax_f64(double *y, const double *x, mmax_shape s);

/*
 * y = softmax(sigma(s)), sigma as at mmax_multimax_params
 *
 *   p         order and parameters of sigma, finite in the type; mmax_multimax_identity gives softmax
 *   special   scale, p, s and sigma are rounded to the type. A mask stays a mask; sigma = -inf gives 0, +inf a NaN row.
 *   error     at most 4 roundings of sigma's terms: relative to y_i, 4 epsilon (1 + the sum of their magnitudes, here
 *             and on average over the row)
 *   cost      3 passes as softmax; sigma is computed in the first and the second
 *   backward  mmax_multimax_backward_f32 needs y and x; mmax_multimax_loss_f32 where a cross-entropy follows
 *   source    Zhou, Fritz, Keuper, "MultiMax: Sparse and Multi-Modal Attention Learning", ICML 2024, eq. 4 and 6
 */
MMAX_DECLARE mmax_status mmax_multimax_f32(float *y, const float *x, const mmax_multimax_params *p, mmax_shape s);
/* As above. */
MMAX_DECLARE mmax_status mmax_multimax_f64(double *y, const double *x, const mmax_multimax_params *p, mmax_shape s);

/*
 * y_i = max(s_i - tau, 0), tau such that the sum is 1: the Euclidean projection of the row onto the simplex
 *
 *   special   entries at or below tau are exactly 0
 *   error     at most 4 ULP of the largest entry
 *   cost      3 passes, and some steps for tau over the entries within 1/scale of the maximum; each step is a pass
 *             where these are more than 1024 (f64: 512). At most 40 passes (f64: 80). No exp, no sort of more than 32
 *             entries. Rows of up to 1024 entries are worked side by side: one row of many costs less than a row
 *             alone.
 *   backward  mmax_sparsemax_backward_f32 needs y only
 *   source    Martins and Astudillo, "From Softmax to Sparsemax", ICML 2016
 */
MMAX_DECLARE mmax_status mmax_sparsemax_f32(float *y, const float *x, mmax_shape s);
/* As above. */
MMAX_DECLARE mmax_status mmax_sparsemax_f64(double *y, const double *x, mmax_shape s);

/*
 * y_i = max(s_i/2 - tau, 0)^2, tau such that the sum is 1: between softmax and sparsemax
 *
 *   special   entries at or below tau, or whose square is below the normal numbers, are exactly 0
 *   error     at most 6 ULP of the largest entry
 *   cost      as sparsemax, over the entries within 2/scale of the maximum
 *   backward  mmax_entmax15_backward_f32 needs y only
 *   source    Peters, Niculae, Martins, "Sparse Sequence-to-Sequence Models", ACL 2019
 */
MMAX_DECLARE mmax_status mmax_entmax15_f32(float *y, const float *x, mmax_shape s);
/* As above. */
MMAX_DECLARE mmax_status mmax_entmax15_f64(double *y, const double *x, mmax_shape s);

/*
 * y_i = w_i exp(s_i) / sum w_k exp(s_k), w = 1 where s_i >= mean(s), else epsilon
 *
 *   epsilon   in [0,1]: 0 for inference, 1e-6 for training
 *   special   an entry within rounding of the mean (6 ULP of the mean of |s|) may fall on either side, never all below;
 *             the mean does not overflow
 *   error     at most 6 ULP in every entry that is a normal number
 *   cost      3 passes as softmax; one more for the mean of a row with masked entries
 *   backward  mmax_evsoftmax_backward_f32 needs y only; mmax_evsoftmax_loss_f32 where a cross-entropy follows
 *   source    Chen, Itkina, Senanayake, Kochenderfer, "Evidential Softmax", NeurIPS 2021
 */
MMAX_DECLARE mmax_status mmax_evsoftmax_f32(float *y, const float *x, double epsilon, mmax_shape s);
/* As above. */
MMAX_DECLARE mmax_status mmax_evsoftmax_f64(double *y, const double *x, double epsilon, mmax_shape s);

/*
 * y_i = (exp(s_i) - exp(-s_i)) / sum (exp(s_k) + exp(-s_k)): weights with a sign, whose magnitudes sum to at most 1
 *
 *   error     at most 8 ULP in every entry that is a normal number; nothing cancels near s = 0
 *   special   a score beyond the type, of either sign, makes the row NaN
 *   cost      3 passes: the largest |x|; both exponentials and the sum; scaling
 *   backward  mmax_tanhmax_backward_f32 needs y and x
 *   source    Huang, Yang, Wang, "Rethinking Attention Weights as Bidirectional Coefficients", eq. 6
 */
MMAX_DECLARE mmax_status mmax_tanhmax_f32(float *y, const float *x, mmax_shape s);
/* As above. */
MMAX_DECLARE mmax_status mmax_tanhmax_f64(double *y, const double *x, mmax_shape s);

/*
 * y_i = sigma(s_i), elementwise
 *
 *   special   -inf stays; NaN and +inf give NaN in that entry alone; |y_i| below the normal numbers gives 0
 *   error     at most 4 roundings of sigma's terms
 *   cost      1 pass
 *   backward  mmax_seglu_backward_f32 needs x
 *   source    MultiMax, eq. 6
 */
MMAX_DECLARE mmax_status mmax_seglu_f32(float *y, const float *x, const mmax_multimax_params *p, mmax_shape s);
/* As above. */
MMAX_DECLARE mmax_status mmax_seglu_f64(double *y, const double *x, const mmax_multimax_params *p, mmax_shape s);

/* ==== backward: gx = (d phi / d x)^T gy, the factor `scale` included ====
 * The same for all: arrays are rows x cols at their own strides; s and p are those of the forward call, y its result.
 * gx may be gy, y or x. An entry with y = 0 has gx = 0. What they return is as in forward.
 * error: at most 4.2 roundings of the terms that gx is added up from, given y, 10 of those of gp. Weights that are
 * computed again, those of tanhmax and the logarithms, count as 0 below the smallest normal number. gp's terms are
 * products of the type, which may overflow. Products on the way may lie beyond the normal numbers where scale, sigma'
 * or the ratio of two gradients is extreme (some 1e12 and more with weights or gradients of 1e-20): digits are lost
 * then or, where a product overflows, gx is NaN; not in softmax, evsoftmax and sparsemax.
 * With gp: gx or gp may be NULL, not both; gp is added to, overlaps no array, and is NaN after a NaN row.
 */

/*
 * gx_i = scale y_i (gy_i - sum y_k gy_k)
 *
 *   cost      2 passes: the sum; gx
 */
MMAX_DECLARE mmax_status mmax_softmax_backward_f32(float *gx, const float *gy, const float *y, mmax_shape s);
/* As above. */
MMAX_DECLARE mmax_status mmax_softmax_backward_f64(double *gx, const double *gy, const double *y, mmax_shape s);

/*
 * gx_i = scale g_i sigma'(s_i), with g_i = y_i (gy_i - sum y_k gy_k); gp += sum g_i (d sigma(s_i) / d parameter)
 *
 *   special   gp has the gradient of a term also where t = 1 makes the term absent
 *   cost      2 passes: the sum; gx and gp
 */
MMAX_DECLARE mmax_status mmax_multimax_backward_f32(float *gx, mmax_multimax_grads *gp, const float *gy, const float *y,
                                                    const float *x, const mmax_multimax_params *p, mmax_shape s);
/* As above. */
MMAX_DECLARE mmax_status mmax_multimax_backward_f64(double *gx, mmax_multimax_grads *gp, const double *gy,
                                                    const double *y, const double *x, const mmax_multimax_params *p,
                                                    mmax_shape s);

/*
 * gx_i = scale (gy_i - mean of gy over the support) on the support y > 0, else 0
 *
 *   cost      2 passes: the mean; gx
 */
MMAX_DECLARE mmax_status mmax_sparsemax_backward_f32(float *gx, const float *gy, const float *y, mmax_shape s);
/* As above. */
MMAX_DECLARE mmax_status mmax_sparsemax_backward_f64(double *gx, const double *gy, const double *y, mmax_shape s);

/*
 * gx_i = scale r_i (gy_i - sum r_k gy_k / sum r_k), r = sqrt(y)
 *
 *   cost      2 passes: both sums; gx
 */
MMAX_DECLARE mmax_status mmax_entmax15_backward_f32(float *gx, const float *gy, const float *y, mmax_shape s);
/* As above. */
MMAX_DECLARE mmax_status mmax_entmax15_backward_f64(double *gx, const double *gy, const double *y, mmax_shape s);

/*
 * gx_i = scale y_i (gy_i - sum y_k gy_k), the weights w being constants
 *
 *   cost      2 passes; the same function as mmax_softmax_backward_f32
 */
MMAX_DECLARE mmax_status mmax_evsoftmax_backward_f32(float *gx, const float *gy, const float *y, mmax_shape s);
/* As above. */
MMAX_DECLARE mmax_status mmax_evsoftmax_backward_f64(double *gx, const double *gy, const double *y, mmax_shape s);

/*
 * gx_i = scale (gy_i (exp(s_i) + exp(-s_i)) / C - y_i sum y_k gy_k), C the forward sum
 *
 *   special   y_i = 0 has a gradient; only x = -inf gives gx = 0
 *   cost      2 passes: the sum and the largest |x| and |y|, which give C; gx, the cosines from y by a square root
 */
MMAX_DECLARE mmax_status mmax_tanhmax_backward_f32(float *gx, const float *gy, const float *y, const float *x,
                                                   mmax_shape s);
/* As above. */
MMAX_DECLARE mmax_status mmax_tanhmax_backward_f64(double *gx, const double *gy, const double *y, const double *x,
                                                   mmax_shape s);

/*
 * gx_i = scale gy_i sigma'(s_i); gp += sum gy_i (d sigma(s_i) / d parameter)
 *
 *   special   elementwise: NaN stays in its entry, but reaches gp; only x = -inf gives gx = 0
 *   cost      1 pass
 */
MMAX_DECLARE mmax_status mmax_seglu_backward_f32(float *gx, mmax_multimax_grads *gp, const float *gy, const float *x,
                                                 const mmax_multimax_params *p, mmax_shape s);
/* As above. */
MMAX_DECLARE mmax_status mmax_seglu_backward_f64(double *gx, mmax_multimax_grads *gp, const double *gy, const double *x,
                                                 const mmax_multimax_params *p, mmax_shape s);

/* ==== losses and logarithms ====
 * Losses. L and gx in one call, without storing y: gx = grad_scale * scale * (y - q), for multimax times sigma'(s).
 * loss is [rows]; x and gx are rows x cols at x_stride and gx_stride; gx may be x. Any of loss, gx and gp may be NULL,
 * not all; loss and gp overlap no other array. q is described at mmax_targets.
 * special: an ignored row gives 0; a masked target gives loss +inf, and the gradient y - q at active entries, 0 at
 * masked ones; NaN in the row wins over that. A row of finite scores never gives log(0); an overflowing loss is DBL_MAX.
 * error: gx at most 3.5 roundings of y and q, on top of the error of y. Where |grad_scale * scale| over the sum of
 * exp(s_k - max) is below 1e-18 (f64: 1e-288), what y adds to gx is subnormal on the way and loses digits, or is 0.
 * They return what forward functions do; MMAX_ERR_PARAM also for index[r] >= the active length and for t's fields.
 */

/*
 * loss = -sum q_i log y_i, y = softmax(s)
 *
 *   error     loss at most 1e-6 (f64: 1e-14) relative, for losses above 1e-30
 *   cost      3 passes: the extremes; exponentials and their sum; gx. Without gx 2; label smoothing takes one more.
 */
MMAX_DECLARE mmax_status mmax_softmax_loss_f32(double *loss, float *gx, const float *x, mmax_targets t, mmax_shape s);
/* As above. */
MMAX_DECLARE mmax_status mmax_softmax_loss_f64(double *loss, double *gx, const double *x, mmax_targets t, mmax_shape s);

/*
 * loss = -sum q_i log y_i, y = softmax(sigma(s)); gp += grad_scale * sum (y_i - q_i) (d sigma(s_i) / d parameter)
 *
 *   error     loss at most 2 roundings of 1, of itself and of sigma's terms; 1e-6 (f64: 1e-13) relative, given sigma as
 *             mmax_seglu_f32 rounds it
 *   cost      3 passes as mmax_softmax_loss_f32; sigma in the first, without gx in the second. In place, or without gx
 *             but with gp, exponentials are computed twice. A row of more than 64 (f64: 32) entries, whose scores are
 *             all far below sigma's peak between them, begins again.
 */
MMAX_DECLARE mmax_status mmax_multimax_loss_f32(double *loss, float *gx, mmax_multimax_grads *gp, const float *x,
                                                const mmax_multimax_params *p, mmax_targets t, mmax_shape s);
/* As above. */
MMAX_DECLARE mmax_status mmax_multimax_loss_f64(double *loss, double *gx, mmax_multimax_grads *gp, const double *x,
                                                const mmax_multimax_params *p, mmax_targets t, mmax_shape s);

/*
 * loss = -sum q_i log y_i, y = evsoftmax(s), whose weights w are constants
 *
 *   epsilon   in (0,1]: with 0 the loss would be infinite for a target below the mean. One that is no normal number in
 *             the type weighs next to nothing in y or 0, but counts as given in the loss.
 *   error     loss at most 1e-6 (f64: 1e-14) relative, for losses above 1e-30
 *   cost      as mmax_softmax_loss_f32; one more pass for the mean of a row with masked entries
 */
MMAX_DECLARE mmax_status mmax_evsoftmax_loss_f32(double *loss, float *gx, const float *x, double epsilon,
                                                 mmax_targets t, mmax_shape s);
/* As above. */
MMAX_DECLARE mmax_status mmax_evsoftmax_loss_f64(double *loss, double *gx, const double *x, double epsilon,
                                                 mmax_targets t, mmax_shape s);

/*
 * loss = Omega*(s) + Omega(q) - <s, q>, Omega(p) = |p|^2 / 2 - 1/2: the Fenchel-Young loss of sparsemax
 *
 *   error     loss at most 2 roundings of 1 and of itself, 3.5 for f64 with label smoothing; it is a sum of terms that
 *             are not negative
 *   cost      as sparsemax; the last pass writes gx and adds up the loss. Label smoothing takes one more.
 *   source    Martins and Astudillo 2016; Blondel, Martins, Niculae, "Learning with Fenchel-Young Losses", JMLR 2020
 */
MMAX_DECLARE mmax_status mmax_sparsemax_loss_f32(double *loss, float *gx, const float *x, mmax_targets t, mmax_shape s);
/* As above. */
MMAX_DECLARE mmax_status mmax_sparsemax_loss_f64(double *loss, double *gx, const double *x, mmax_targets t,
                                                 mmax_shape s);

/*
 * loss = Omega*(s) + Omega(q) - <s, q>, Omega(p) = 4/3 sum (p^1.5 - p): the Fenchel-Young loss of entmax15
 *
 *   error     as mmax_sparsemax_loss_f32
 *   cost      as entmax15; the last pass writes gx and adds up the loss. Label smoothing takes one more.
 *   source    Peters, Niculae, Martins 2019; Blondel, Martins, Niculae 2020
 */
MMAX_DECLARE mmax_status mmax_entmax15_loss_f32(double *loss, float *gx, const float *x, mmax_targets t, mmax_shape s);
/* As above. */
MMAX_DECLARE mmax_status mmax_entmax15_loss_f64(double *loss, double *gx, const double *x, mmax_targets t,
                                                mmax_shape s);

/*
 * y_i = s_i - log sum exp(s_k), arrays as in forward
 *
 *   special   masked entries and those past lengths[r] are -inf, no others with a finite score, however wide the row
 *   error     at most 4 ULP of the larger of |y_i| and 2^-10
 *   cost      3 passes: the extremes; the sum of exponentials; y
 *   backward  mmax_log_softmax_backward_f32 needs y only
 */
MMAX_DECLARE mmax_status mmax_log_softmax_f32(float *y, const float *x, mmax_shape s);
/* As above. */
MMAX_DECLARE mmax_status mmax_log_softmax_f64(double *y, const double *x, mmax_shape s);

/*
 * y_i = sigma(s_i) - log sum exp(sigma(s_k)), arrays as in forward
 *
 *   special   as mmax_log_softmax_f32; sigma = -inf gives -inf
 *   error     at most 4 roundings of 1, of y_i and of sigma's terms
 *   cost      3 passes as mmax_log_softmax_f32, with sigma in each
 *   backward  mmax_log_multimax_backward_f32 needs y and x
 */
MMAX_DECLARE mmax_status mmax_log_multimax_f32(float *y, const float *x, const mmax_multimax_params *p, mmax_shape s);
/* As above. */
MMAX_DECLARE mmax_status mmax_log_multimax_f64(double *y, const double *x, const mmax_multimax_params *p, mmax_shape s);

/*
 * gx_i = scale (gy_i - exp(y_i) sum gy_k), arrays and error as in backward; gx = 0 where y = -inf
 *
 *   cost      2 passes: the sum; gx
 */
MMAX_DECLARE mmax_status mmax_log_softmax_backward_f32(float *gx, const float *gy, const float *y, mmax_shape s);
/* As above. */
MMAX_DECLARE mmax_status mmax_log_softmax_backward_f64(double *gx, const double *gy, const double *y, mmax_shape s);

/*
 * gx_i = scale g_i sigma'(s_i), with g_i = gy_i - exp(y_i) sum gy_k; gp += sum g_i (d sigma(s_i) / d parameter)
 *
 *   special   arrays, gp and error as in backward; gx = 0 where y = -inf or x = -inf
 *   cost      2 passes: the sum; gx and gp
 */
MMAX_DECLARE mmax_status mmax_log_multimax_backward_f32(float *gx, mmax_multimax_grads *gp, const float *gy,
                                                        const float *y, const float *x, const mmax_multimax_params *p,
                                                        mmax_shape s);
/* As above. */
MMAX_DECLARE mmax_status mmax_log_multimax_backward_f64(double *gx, mmax_multimax_grads *gp, const double *gy,
                                                        const double *y, const double *x, const mmax_multimax_params *p,
                                                        mmax_shape s);

/* ==== metrics ====
 * One value a row in out[rows], which overlaps no other array; x and y are rows x cols at x_stride and y_stride.
 * Thresholds apply to x unscaled. special: NaN where no entry is counted, or an active entry of x or y is NaN or +inf.
 * error: at most 2 epsilon of the type, absolute, given y; of a sparsity above 1, 1e-12 relative, given its reference.
 * They return what forward functions do.
 */

/*
 * out = 1 - mean of (y_max - y_n) over the entries with epsilon < x_n < x_max, y_max being y at the first x_max
 *
 *   special   within +-DBL_MAX, however large y is
 *   cost      2 passes, and a search for the maximum
 *   source    MultiMax, Definition 3.2
 */
MMAX_DECLARE mmax_status mmax_multimodality_f32(double *out, const float *y, const float *x, double epsilon,
                                                mmax_shape s);
/* As above. */
MMAX_DECLARE mmax_status mmax_multimodality_f64(double *out, const double *y, const double *x, double epsilon,
                                                mmax_shape s);

/*
 * out = mean of exp(-y_l / reference) over the entries with x_l < epsilon; the paper's exp((s - y)/s - 1)
 *
 *   reference > 0, or 0 for the smallest softmax(scale * x) of the row, the only use of scale
 *   special   where that smallest one has underflowed to 0, a term is 1 if y_l = 0, else 0; at most DBL_MAX, where y is
 *             negative (TanhMax)
 *   cost      1 pass; with reference 0 another 3
 *   source    MultiMax, Definition 3.3
 */
MMAX_DECLARE mmax_status mmax_sparsity_f32(double *out, const float *y, const float *x, double epsilon,
                                           double reference, mmax_shape s);
/* As above. */
MMAX_DECLARE mmax_status mmax_sparsity_f64(double *out, const double *y, const double *x, double epsilon,
                                           double reference, mmax_shape s);

/* ==== helpers ==== */

/* A sentence in English; never NULL, also for unknown values. */
MMAX_DECLARE const char *mmax_status_string(mmax_status status);

/* One contiguous vector. */
MMAX_DECLARE mmax_shape mmax_row(size_t cols);

/* Contiguous rows. */
MMAX_DECLARE mmax_shape mmax_rows(size_t rows, size_t cols);

/* Targets without smoothing, grad_scale 1. */
MMAX_DECLARE mmax_targets mmax_labels(const int32_t *index);

/* t = 1 and b = d = 0: multimax is softmax then, seglu the identity. `order` is 1 or 2. */
MMAX_DECLARE mmax_multimax_params mmax_multimax_identity(int order);

/* From the layout of the official checkpoints: ranges = {b1, d1, b2, d2}, ts = {1-t_b1, t_d1-1, 1-t_b2, t_d2-1}. */
MMAX_DECLARE mmax_multimax_params mmax_multimax_from_checkpoint(int order, const double ranges[4], const double ts[4]);

/* The way back; writes all four entries of both, whatever the order. */
MMAX_DECLARE void mmax_multimax_to_checkpoint(double ranges[4], double ts[4], const mmax_multimax_params *p);

/* ==== instruction sets ====
 * The choice is kept for the program in shared mode, for the file in plain mode. It may change while calls run: each
 * call goes through with the one that it found.
 */

/* The one in use: the best available, unless mmax_isa_select was called. */
MMAX_DECLARE mmax_isa mmax_isa_active(void);

/* 1 if it is compiled in, and this processor and system have it (MULTIMAX_NO_DISPATCH: that is not asked), else 0. */
MMAX_DECLARE int mmax_isa_available(mmax_isa isa);

/* MMAX_OK, or MMAX_ERR_ISA where it is not available; nothing changes then. */
MMAX_DECLARE mmax_status mmax_isa_select(mmax_isa isa);

/* "scalar", "sse2", "avx2", "avx512", "neon", "wasm128"; "unknown" for other values. */
MMAX_DECLARE const char *mmax_isa_name(mmax_isa isa);

#    if defined(__cplusplus)
} /* extern "C" */
#    endif
#endif /* MULTIMAX_H */

#if !defined(MMAX_PASS) && !defined(MULTIMAX_H_IMPLEMENTED) && (!MMAX_EXTERNAL || defined(MULTIMAX_IMPLEMENTATION))
#    define MULTIMAX_H_IMPLEMENTED
#    define MMAX_WANT_IMPLEMENTATION 1
#endif

/* ==== implementation =============================================================================================
 * From here on nothing is of interest to someone who only uses the library. The file includes itself: once for each
 * instruction set and type (MMAX_PASS 1: vector layer and kernels) and once for each type (MMAX_PASS 2: public
 * functions). MMAX_(name) is the name of a kernel in the instance at hand, such as mmax_exp_avx2_f32.
 */
#if defined(MMAX_WANT_IMPLEMENTATION) && !defined(MMAX_PASS)

/* ==== compiler and processor ==== */
#    include <float.h>
#    include <math.h>
#    include <string.h>

#    if (defined(__GNUC__) || defined(__clang__)) && !defined(__TINYC__)
#        define MMAX_GNUC 1
/* All are "inline": at -O0 gcc compiles every other static function, used or not. For gcc none throws: else its C++
 * objects at -O0 want the C++ runtime; clang's want it where something says so. */
#        if defined(__clang__)
#            define MMAX_NOTHROW __unused__
#        else
#            define MMAX_NOTHROW __nothrow__, __unused__
#        endif
#        define MMAX_STATIC static inline __attribute__((MMAX_NOTHROW))
#        if defined(__OPTIMIZE__)
#            define MMAX_INLINE static inline __attribute__((__always_inline__, MMAX_NOTHROW))
#            define MMAX_APART  static __attribute__((__noinline__, MMAX_NOTHROW)) /* has the registers for itself */
#        else /* at -O0 compilers take up to twelve times as long where they must inline */
#            define MMAX_INLINE MMAX_STATIC
#            define MMAX_APART  MMAX_STATIC
#        endif
#        define MMAX_RARE                static inline __attribute__((__cold__, MMAX_NOTHROW)) /* quick to compile */
#        define MMAX_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#        define mmax_prefetch(p)         __builtin_prefetch(p, 0, 3)
#    elif defined(_MSC_VER)
#        define MMAX_GNUC                0
#        define MMAX_INLINE              static __forceinline
#        define MMAX_STATIC              static
#        define MMAX_APART               static
#        define MMAX_RARE                static
#        define MMAX_UNLIKELY(condition) (condition)
#        define mmax_prefetch(p)         ((void)(p))
#    else
#        define MMAX_GNUC                0
#        define MMAX_INLINE              static inline
#        define MMAX_STATIC              static inline
#        define MMAX_APART               static inline
#        define MMAX_RARE                static inline
#        define MMAX_UNLIKELY(condition) (condition)
#        define mmax_prefetch(p)         ((void)(p))
#    endif

/* Buffers start with a cache line: what is read back from a store that crosses two lines has to wait for it. */
#    if defined(__GNUC__) || defined(__clang__)
#        define MMAX_LINE __attribute__((__aligned__(64)))
#    else
#        define MMAX_LINE
#    endif

/* The accumulators of a block are arrays of registers: their loops must be unrolled, at every optimisation level. */
#    if defined(__clang__)
#        define MMAX_UNROLL _Pragma("clang loop unroll(full)")
#    elif MMAX_GNUC
#        define MMAX_UNROLL _Pragma("GCC unroll 32")
#    else
#        define MMAX_UNROLL
#    endif
/* Two steps at most, where code size counts as well. */
#    if defined(__clang__)
#        define MMAX_UNROLL_TWICE _Pragma("clang loop unroll_count(2)")
#    elif MMAX_GNUC
#        define MMAX_UNROLL_TWICE _Pragma("GCC unroll 2")
#    else
#        define MMAX_UNROLL_TWICE
#    endif

/* Which instruction sets can be compiled. */
#    if !defined(MULTIMAX_NO_SIMD)
#        if (MMAX_GNUC || defined(_MSC_VER)) && (defined(__x86_64__) || defined(__i386__) || defined(_M_X64))
#            define MMAX_X86 1
#        elif MMAX_GNUC && defined(__aarch64__) && defined(__ARM_NEON) && !defined(__ARM_BIG_ENDIAN)
#            define MMAX_HAVE_NEON 1
#        elif defined(_MSC_VER) && defined(_M_ARM64)
#            define MMAX_HAVE_NEON 1
#        elif defined(__wasm_simd128__)
#            define MMAX_HAVE_WASM128 1
#        endif
#    endif
#    if !defined(MMAX_X86)
#        define MMAX_X86 0
#    endif
#    if !defined(MMAX_HAVE_NEON)
#        define MMAX_HAVE_NEON 0
#    endif
#    if !defined(MMAX_HAVE_WASM128)
#        define MMAX_HAVE_WASM128 0
#    endif
#    if MMAX_X86 && !defined(MULTIMAX_NO_DISPATCH)
#        define MMAX_HAVE_SSE2 1
#        define MMAX_HAVE_AVX2 1
#        if !defined(MULTIMAX_NO_AVX512)
#            define MMAX_HAVE_AVX512 1
#        endif
#    elif MMAX_X86
#        if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__) && \
            !defined(MULTIMAX_NO_AVX512)
#            define MMAX_HAVE_AVX512 1
#        elif defined(__AVX2__) && (defined(__FMA__) || defined(_MSC_VER))
#            define MMAX_HAVE_AVX2 1
#        elif defined(__SSE2__) || defined(_M_X64)
#            define MMAX_HAVE_SSE2 1
#        endif
#    endif
#    if !defined(MMAX_HAVE_SSE2)
#        define MMAX_HAVE_SSE2 0
#    endif
#    if !defined(MMAX_HAVE_AVX2)
#        define MMAX_HAVE_AVX2 0
#    endif
#    if !defined(MMAX_HAVE_AVX512)
#        define MMAX_HAVE_AVX512 0
#    endif
/* Plain C is compiled wherever it may be needed: always under run-time dispatch, else only without anything better. */
#    if defined(MULTIMAX_NO_DISPATCH) && (MMAX_HAVE_SSE2 || MMAX_HAVE_AVX2 || MMAX_HAVE_AVX512)
#        define MMAX_HAVE_SCALAR 0
#    else
#        define MMAX_HAVE_SCALAR 1
#    endif

/* To be asked before the pragmas below change it. */
#    if defined(__clang__) && defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#        define MMAX_CLANG_FAST 1
#    else
#        define MMAX_CLANG_FAST 0
#    endif
#    if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ && !defined(__clang__) && MMAX_GNUC && \
        (defined(__x86_64__) || defined(__SSE2_MATH__))
#        define MMAX_X86_FINITE 1
#    else
#        define MMAX_X86_FINITE 0
#    endif

/* clang: also for the functions of <immintrin.h>, where it was not included before. See "floating-point semantics". */
#    if defined(__clang__) && (defined(__x86_64__) || defined(__i386__) || defined(__aarch64__))
#        pragma float_control(precise, on, push)
#        pragma clang fp contract(off)
#    endif
#    if MMAX_X86
#        include <immintrin.h>
#        if defined(_MSC_VER)
#            include <intrin.h>
#        endif
#    elif MMAX_HAVE_NEON
#        include <arm_neon.h>
#    elif MMAX_HAVE_WASM128
#        include <wasm_simd128.h>
#    endif

/* A fused multiply-add in hardware: the only thing on which the bits of a result depend. */
#    if defined(__FMA__) || defined(__aarch64__) || defined(__FP_FAST_FMAF) || defined(FP_FAST_FMAF)
#        define MMAX_SCALAR_FMA 1
#    else
#        define MMAX_SCALAR_FMA 0
#    endif
#    if defined(FLT_EVAL_METHOD)
#        define MMAX_EVAL_METHOD FLT_EVAL_METHOD
#    elif defined(__FLT_EVAL_METHOD__)
#        define MMAX_EVAL_METHOD __FLT_EVAL_METHOD__
#    else
#        define MMAX_EVAL_METHOD 0
#    endif
/* Whether results may have more digits than their type; 16 says that of _Float16 alone. */
#    define MMAX_EXCESS_DIGITS (MMAX_EVAL_METHOD != 0 && MMAX_EVAL_METHOD != 16)

#    if MMAX_EXTERNAL
#        define MMAX_DEFINE
#    elif MMAX_GNUC
#        define MMAX_DEFINE static inline __attribute__((__unused__))
#    else
#        define MMAX_DEFINE static inline
#    endif

/* ==== floating-point semantics ====
 * The kernels rely on the order of additions, on NaN and on infinities. gcc and clang are told so here, whatever the
 * command line says: clang above, before <immintrin.h>, and not all of it, see MMAX_CLANG_FAST and MMAX_KEEP.
 */
#    if defined(__clang__)
#        pragma clang diagnostic push
#        pragma clang diagnostic ignored "-Wpass-failed" /* loops stay as they are where code is cold */
/* Of constants that macros compare; clang does not know them for such in a file that was preprocessed before. */
#        pragma clang diagnostic ignored "-Wtautological-compare"
#        pragma clang diagnostic ignored "-Wconstant-logical-operand"
#    elif MMAX_GNUC
#        pragma push_macro("__FAST_MATH__") /* which pop_options does not bring back */
#        pragma GCC push_options
#        pragma GCC optimize("no-fast-math", "fp-contract=off")
#        pragma GCC diagnostic push
#        pragma GCC diagnostic ignored "-Wmaybe-uninitialized" /* in gcc 12's own avx512fintrin.h, as C++ */
#        pragma GCC diagnostic ignored "-Wuninitialized"
#    endif

#    if defined(__cplusplus)
extern "C" {
#    endif

/* Which copy a binary was built from: strings finds it. */
#    if MMAX_GNUC
__attribute__((__used__))
#    endif
static const char mmax_version_text[] = "multimax.h " MULTIMAX_VERSION;

/* ==== helpers that every instance shares ==== */
#    define MMAX_PASTE_(a, b, c) a##_##b##_##c
#    define MMAX_PASTE(a, b, c)  MMAX_PASTE_(a, b, c)
#    define MMAX_(name)          MMAX_PASTE(mmax_##name, MMAX_TIER, MMAX_TYPE)
#    define MMAX_F64_(name)      MMAX_PASTE(mmax_##name, MMAX_TIER, f64)

/* What is normalised: the scores as they are, sigma of them (order 1 or 2), the scores weighted by the mean rule, or
 * for TanhMax their hyperbolic sines and cosines. */
enum { MMAX_SOFTMAX, MMAX_MULTIMAX1, MMAX_MULTIMAX2, MMAX_EVSOFTMAX, MMAX_TANHMAX };
MMAX_INLINE int mmax_is_sigma(int function) { return function == MMAX_MULTIMAX1 || function == MMAX_MULTIMAX2; }
/* What a row needs in its exponentials. PLAIN: nothing, no result can underflow. CLAMP: low entries are held at a
 * bound and zeroed at the end, and so are masked ones where that is the end. GENERAL: there are masked entries
 * otherwise, or scores so large that the maximum has to be subtracted first. */
enum { MMAX_ROW_PLAIN, MMAX_ROW_CLAMP, MMAX_ROW_GENERAL };
enum { MMAX_SPARSEMAX, MMAX_ENTMAX15 };
enum { MMAX_BACK_SOFTMAX, MMAX_BACK_SPARSEMAX, MMAX_BACK_ENTMAX15, MMAX_BACK_LOG };
/* What the first pass finds: an ordinary row, one without any weight, one with NaN or a score of +inf; or that it has
 * finished the row. */
enum { MMAX_IS_NORMAL, MMAX_IS_EMPTY, MMAX_IS_NAN, MMAX_IS_DONE };

/* 2^(j/8) times a factor near 1, rounded to nearest, minus j << 20 (f64: j << 49): adding the integer 8 n + j, shifted
 * by as much, gives the bits of 2^(n + j/8). The factor is chosen such that all eight are near to what they are rounded
 * to, and cancels in ratios of exponentials: 1 + 6156 * 2^-23, of those up to 1 + 2^-9 the one that leaves the largest
 * rounding smallest, 2^-26.8 instead of 2^-24.9; 1 + 157253372 * 2^-52, of those up to 1 + 2^-24, 2^-57.6 instead of
 * 2^-53.7. The floats stand twice, because AVX-512 looks up by four bits. */
static const uint32_t mmax_pow2_table_f32[16] = {0x3f80180c, 0x3f7baffb, 0x3f785489, 0x3f761e06, 0x3f7526f5, 0x3f758c40,
                                                 0x3f776d6e, 0x3f7aece1, 0x3f80180c, 0x3f7baffb, 0x3f785489, 0x3f761e06,
                                                 0x3f7526f5, 0x3f758c40, 0x3f776d6e, 0x3f7aece1};
static const uint64_t mmax_pow2_table_f64[8] = {0x3ff00000095f7efc, 0x3fef72b846b5fcbd, 0x3fef06fe15573682,
                                                0x3feebfdae15ded10, 0x3feea09e73c0a228, 0x3feeace5509f2838,
                                                0x3feee89fa91e4837, 0x3fef5818ee2c567b};
/* 1 / (i + 1) */
static const double mmax_inverse_f64[32] = {
    1.0,      1.0 / 2,  1.0 / 3,  1.0 / 4,  1.0 / 5,  1.0 / 6,  1.0 / 7,  1.0 / 8,  1.0 / 9,  1.0 / 10, 1.0 / 11,
    1.0 / 12, 1.0 / 13, 1.0 / 14, 1.0 / 15, 1.0 / 16, 1.0 / 17, 1.0 / 18, 1.0 / 19, 1.0 / 20, 1.0 / 21, 1.0 / 22,
    1.0 / 23, 1.0 / 24, 1.0 / 25, 1.0 / 26, 1.0 / 27, 1.0 / 28, 1.0 / 29, 1.0 / 30, 1.0 / 31, 1.0 / 32};
/* The first c lanes of a register of 8 floats are loaded from position 8 - c, of 4 doubles from position 8 - 2c. */
static const int32_t mmax_lane_mask[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
/* Which of 8 lanes a mask keeps, four bits each, the first one lowest. */
#    define MMAX_KEPT_LANES(high)                                                                              \
        high, (high) << 4, (high) << 4 | 1, (high) << 8 | 0x10, (high) << 4 | 2, (high) << 8 | 0x20,           \
            (high) << 8 | 0x21, (high) << 12 | 0x210, (high) << 4 | 3, (high) << 8 | 0x30, (high) << 8 | 0x31, \
            (high) << 12 | 0x310, (high) << 8 | 0x32, (high) << 12 | 0x320, (high) << 12 | 0x321,              \
            (high) << 16 | 0x3210
static const uint32_t mmax_kept_lanes[256] = {
    MMAX_KEPT_LANES(0U),    MMAX_KEPT_LANES(0x4U),   MMAX_KEPT_LANES(0x5U),   MMAX_KEPT_LANES(0x54U),
    MMAX_KEPT_LANES(0x6U),  MMAX_KEPT_LANES(0x64U),  MMAX_KEPT_LANES(0x65U),  MMAX_KEPT_LANES(0x654U),
    MMAX_KEPT_LANES(0x7U),  MMAX_KEPT_LANES(0x74U),  MMAX_KEPT_LANES(0x75U),  MMAX_KEPT_LANES(0x754U),
    MMAX_KEPT_LANES(0x76U), MMAX_KEPT_LANES(0x764U), MMAX_KEPT_LANES(0x765U), MMAX_KEPT_LANES(0x7654U)};
#    undef MMAX_KEPT_LANES

#    define MMAX_TWO_TO_64       18446744073709551616.0
#    define MMAX_TWO_TO_MINUS_64 5.421010862427522e-20
#    define MMAX_ABOVE_ONE       1.0000002 /* a bound times this is not rounded below the bound */

/* Special values are told by their bits, which no compiler flag can assume away. Under -ffast-math clang takes for
 * granted that what passes as an argument or a result is no special value: hence macros for the tests, and pointers
 * where special values come and go. */
MMAX_INLINE uint32_t mmax_f32_bits(float a)
{
    uint32_t bits;
    memcpy(&bits, &a, sizeof bits);
    return bits;
}
MMAX_INLINE uint64_t mmax_f64_bits(double a)
{
    uint64_t bits;
    memcpy(&bits, &a, sizeof bits);
    return bits;
}
MMAX_INLINE float mmax_f32_from_bits(uint32_t bits)
{
    float a;
    memcpy(&a, &bits, sizeof a);
    return a;
}
MMAX_INLINE double mmax_f64_from_bits(uint64_t bits)
{
    double a;
    memcpy(&a, &bits, sizeof a);
    return a;
}
#    define mmax_f32_is_nan(a)    ((mmax_f32_bits(a) & 0x7fffffff) > 0x7f800000)
#    define mmax_f64_is_nan(a)    ((mmax_f64_bits(a) & 0x7fffffffffffffff) > 0x7ff0000000000000)
#    define mmax_f32_is_finite(a) ((mmax_f32_bits(a) & 0x7fffffff) < 0x7f800000)
#    define mmax_f64_is_finite(a) ((mmax_f64_bits(a) & 0x7fffffffffffffff) < 0x7ff0000000000000)
/* |a| <= most, for a NaN not */
#    define mmax_f32_is_within(a, most) ((mmax_f32_bits(a) & 0x7fffffff) <= mmax_f32_bits(most))
#    define mmax_f64_is_within(a, most) ((mmax_f64_bits(a) & 0x7fffffffffffffff) <= mmax_f64_bits(most))
#    define mmax_f32_is_masked(a)       (mmax_f32_bits(a) == 0xff800000)
#    define mmax_f64_is_masked(a)       (mmax_f64_bits(a) == 0xfff0000000000000)
/* The largest double for +inf, else a */
#    define mmax_limited(a) mmax_f64_from_bits(mmax_limited_bits(mmax_f64_bits(a)))
MMAX_INLINE uint64_t mmax_limited_bits(uint64_t bits) { return bits == 0x7ff0000000000000 ? 0x7fefffffffffffff : bits; }
/* a, or 0; without a branch, for what is as good as random */
MMAX_INLINE double mmax_only_if(int condition, double a)
{
    return mmax_f64_from_bits(mmax_f64_bits(a) & ((uint64_t)0 - (uint64_t)condition));
}
/* The first 12 or 26 significant bits: products of two such numbers are exact. */
MMAX_INLINE float mmax_f32_top(float a) { return mmax_f32_from_bits(mmax_f32_bits(a) & 0xfffff000); }
MMAX_INLINE double mmax_f64_top(double a) { return mmax_f64_from_bits(mmax_f64_bits(a) & 0xfffffffff8000000); }

/* Under -ffp-contract=fast clang makes one fma of a product and an addition, where it sees both and against the pragma:
 * what went through here it does not know as a product. Not needed for products that are exact, or are so but for
 * subnormal ones that vanish beside what they are added to. */
#    if defined(__clang__) && defined(__SSE2__)
#        define MMAX_KEEP(product) __asm__("" : "+v"(product))
#    elif defined(__clang__) && defined(__aarch64__)
#        define MMAX_KEEP(product) __asm__("" : "+w"(product))
#    elif MMAX_GNUC && MMAX_EXCESS_DIGITS
#        define MMAX_KEEP(product) __asm__("" : "+m"(product)) /* drops excess digits */
#    else
#        define MMAX_KEEP(product) ((void)0)
#    endif
MMAX_INLINE double mmax_product(double a, double b)
{
    double product = a * b;
    MMAX_KEEP(product);
    return product;
}

/* Knuth's TwoSum of doubles: total += term; what the addition rounds away is added to `lost`. */
#    define MMAX_ADD_EXACTLY(total, lost, term)                                    \
        do {                                                                       \
            const double whole_ = (total) + (term), shadow_ = whole_ - (total);    \
            (lost) = (lost) + (((total) - (whole_ - shadow_)) + ((term)-shadow_)); \
            (total) = whole_;                                                      \
        } while (0)
/* total + lost, at most the largest double: where the total has overflowed, what was lost is NaN */
MMAX_INLINE double mmax_exact_total(double total, double lost)
{
    return mmax_f64_is_finite(total) ? total + lost : mmax_limited(total);
}

#    if MMAX_CLANG_FAST
/* a*b + c with one rounding: the built-in function would assume that none of them is special */
MMAX_INLINE double mmax_fused(double a, double b, double c)
{
#        pragma clang fp contract(on)
    return a * b + c;
}
/* An argument of the user's may be special. */
#        define MMAX_ANY_VALUE(argument)             \
            do {                                     \
                volatile double value_ = (argument); \
                (argument) = value_;                 \
            } while (0)
#    else
#        define MMAX_ANY_VALUE(argument) ((void)0)
#    endif

/* Rounded to nearest: MinGW's sqrt, which gcc calls at -O0, goes through the x87 and rounds twice. */
MMAX_INLINE double mmax_f64_sqrt(double a)
{
#    if MMAX_X86 && !MMAX_CLANG_FAST && (defined(__SSE2__) || defined(_M_X64))
    return _mm_cvtsd_f64(_mm_sqrt_sd(_mm_setzero_pd(), _mm_set_sd(a)));
#    else
    return sqrt(a);
#    endif
}

MMAX_INLINE double mmax_largest(double a, double b)
{
    a = a < 0 ? -a : a;
    b = b < 0 ? -b : b;
    return a > b ? a : b;
}

/* The position of the lowest bit of a mask that is not 0. */
MMAX_INLINE int mmax_lowest_bit(uint64_t mask)
{
#    if MMAX_GNUC
    return __builtin_ctzll(mask);
#    else
    int position = 0;
    while (!(mask >> position & 1)) {
        ++position;
    }
    return position;
#    endif
}

/* The neighbours of a negative number. */
MMAX_INLINE float mmax_f32_toward_minus_one(float a) { return mmax_f32_from_bits(mmax_f32_bits(a) + 1); }
MMAX_INLINE double mmax_f64_toward_minus_one(double a) { return mmax_f64_from_bits(mmax_f64_bits(a) + 1); }
MMAX_INLINE float mmax_f32_toward_zero(float a) { return mmax_f32_from_bits(mmax_f32_bits(a) - 1); }
MMAX_INLINE double mmax_f64_toward_zero(double a) { return mmax_f64_from_bits(mmax_f64_bits(a) - 1); }

/* The bits of the largest float that is at most a, for comparisons with a double that must be exact. */
MMAX_INLINE uint32_t mmax_f32_floor(double a)
{
    float f;
    uint32_t bits;
    if (a >= FLT_MAX) {
        return 0x7f7fffff;
    }
    if (a < -FLT_MAX) {
        return 0xff800000;
    }
    f = (float)a;
    bits = mmax_f32_bits(f);
    if ((double)f > a) {
        bits = f > 0 ? bits - 1 : (bits | 0x80000000) + 1; /* from 0 down it is the smallest below -0 */
    }
    return bits;
}

/* ==== checks ==== */

/* An array that a call was given. */
enum { MMAX_X, MMAX_Y, MMAX_GX, MMAX_GY, MMAX_GX_OR_NULL, MMAX_GP, MMAX_ROWS, MMAX_ROWS_OR_NULL, MMAX_ROLES };
typedef struct mmax_array {
    const void *p;
    int role;
    int output;
} mmax_array;

/* What the arrays of a call measure. */
typedef struct mmax_measures {
    size_t rows, cols, size;   /* of an entry */
    size_t stride[MMAX_ROLES]; /* 0 for what has no entries */
} mmax_measures;

MMAX_INLINE size_t mmax_extent_of(const mmax_array *a, const mmax_measures *m)
{
    if (a->role == MMAX_GP) {
        return sizeof(mmax_multimax_grads);
    }
    if (a->role >= MMAX_ROWS) {
        return m->rows * sizeof(double);
    }
    return ((m->rows - 1) * m->stride[a->role] + m->cols) * m->size;
}

/* Whether writing to a disturbs b in a way that no function allows. */
MMAX_STATIC int mmax_collide(const mmax_array *a, const mmax_array *b, const mmax_measures *m)
{
    const uintptr_t p = (uintptr_t)a->p, q = (uintptr_t)b->p;
    const size_t a_stride = m->stride[a->role], b_stride = m->stride[b->role];
    const int both_entries = a->role < MMAX_GP && b->role < MMAX_GP;
    if (!a->p || !b->p || !(a->role < MMAX_GP || b->role < MMAX_GP)) {
        return 0;
    }
    if (both_entries && p == q && a_stride == b_stride) {
        return a->output && b->output;
    }
    if (p < q ? q - p >= mmax_extent_of(a, m) : p - q >= mmax_extent_of(b, m)) {
        return 0;
    }
    if (both_entries && a_stride == b_stride) {
        /* Rows that interleave: the offset within a stride leaves room for both. */
        const size_t offset = (size_t)(p < q ? q - p : p - q) % (a_stride * m->size), row = m->cols * m->size;
        return !(offset >= row && offset + row <= a_stride * m->size);
    }
    return 1;
}

/* Right where the caller's program takes subnormal numbers for 0, too; clang 19 would make a comparison with 0 of it. */
MMAX_INLINE int mmax_f64_is_zero(double a)
{
    volatile uint64_t bits = mmax_f64_bits(a);
    return bits << 1 == 0;
}

/* Whether it is finite in the type. */
MMAX_INLINE int mmax_fits(const double *value, size_t size)
{
    const double beyond = 3.4028235677973366e38; /* 2^128 - 2^103: the least that does not round to FLT_MAX */
    return mmax_f64_is_finite(*value) && (size == sizeof(double) || !(*value >= beyond || *value <= -beyond));
}

MMAX_STATIC mmax_status mmax_check_params(const mmax_multimax_params *p, size_t size)
{
    if (!p) {
        return MMAX_ERR_NULL;
    }
    if (p->order != 1 && p->order != 2) {
        return MMAX_ERR_PARAM;
    }
    for (int i = 0; i < p->order; ++i) {
        if (!mmax_fits(&p->t_b[i], size) || !mmax_fits(&p->t_d[i], size) || !mmax_fits(&p->b[i], size) ||
            !mmax_fits(&p->d[i], size)) {
            return MMAX_ERR_PARAM;
        }
    }
    return MMAX_OK;
}

MMAX_STATIC mmax_status mmax_check_targets(mmax_targets *t, const mmax_shape *s)
{
    if (!mmax_f64_is_finite(t->grad_scale) || !(t->label_smoothing >= 0 && t->label_smoothing < 1) ||
        mmax_f64_is_nan(t->label_smoothing)) {
        return MMAX_ERR_PARAM;
    }
    for (size_t row = 0; row < s->rows; ++row) {
        const size_t n = s->lengths ? s->lengths[row] : s->cols;
        if (t->index[row] >= 0 && (size_t)t->index[row] >= n) {
            return MMAX_ERR_PARAM;
        }
    }
    if (mmax_f64_is_zero(t->grad_scale)) {
        t->grad_scale = 1;
    }
    return MMAX_OK;
}

MMAX_INLINE void mmax_default_stride(size_t *stride, const mmax_shape *s)
{
    if (*stride == 0 || s->rows == 1) {
        *stride = s->cols;
    }
}

/* Everything that section "errors" of the interface lists, in the order of the status values. Fills in the defaults
 * of s and t. `extra` is what the caller found wrong with its own arguments. Loops are unrolled: a question whose
 * answer the compiler knows takes no time of a call on one short row. */
MMAX_INLINE mmax_status mmax_check(mmax_shape *s, const mmax_array *arrays, size_t count, size_t size,
                                   mmax_status extra, mmax_targets *t)
{
    const size_t limit = SIZE_MAX / 2;
    mmax_measures m;
    MMAX_UNROLL for (size_t i = 0; i < count; ++i)
    {
        const int role = arrays[i].role;
        if (!arrays[i].p && role != MMAX_GX_OR_NULL && role != MMAX_GP && role != MMAX_ROWS_OR_NULL) {
            return MMAX_ERR_NULL;
        }
    }
    if (extra == MMAX_ERR_NULL || (t && !t->index)) {
        return MMAX_ERR_NULL;
    }
    mmax_default_stride(&s->x_stride, s);
    mmax_default_stride(&s->y_stride, s);
    mmax_default_stride(&s->gx_stride, s);
    mmax_default_stride(&s->gy_stride, s);
    if (s->cols > limit / size || s->rows > limit / sizeof(double)) {
        return MMAX_ERR_SHAPE;
    }
    memset(&m, 0, sizeof m);
    m.rows = s->rows;
    m.cols = s->cols;
    m.size = size;
    m.stride[MMAX_X] = s->x_stride;
    m.stride[MMAX_Y] = s->y_stride;
    m.stride[MMAX_GX] = m.stride[MMAX_GX_OR_NULL] = s->gx_stride;
    m.stride[MMAX_GY] = s->gy_stride;
    MMAX_UNROLL for (size_t i = 0; i < count; ++i)
    {
        const size_t stride = m.stride[arrays[i].role];
        if (arrays[i].p && arrays[i].role < MMAX_GP &&
            (stride < s->cols || (s->rows > 1 && stride > (limit / size - s->cols) / (s->rows - 1)))) {
            return MMAX_ERR_SHAPE;
        }
    }
    for (size_t row = 0; s->lengths && row < s->rows; ++row) {
        if (s->lengths[row] > s->cols) {
            return MMAX_ERR_SHAPE;
        }
    }
    if (mmax_f64_is_zero(s->scale)) {
        s->scale = 1;
    }
    if (mmax_f64_bits(s->scale) >> 63 || mmax_f64_is_nan(s->scale) || !mmax_fits(&s->scale, size) ||
        (size == sizeof(float) && s->scale <= 7.006492321624085e-46 /* 2^-150, which rounds to 0 */)) {
        return MMAX_ERR_PARAM;
    }
    if (extra != MMAX_OK) {
        return extra;
    }
    if (t && mmax_check_targets(t, s) != MMAX_OK) {
        return MMAX_ERR_PARAM;
    }
    MMAX_UNROLL for (size_t i = 0; i < count; ++i)
    {
        MMAX_UNROLL for (size_t j = 0; j < count; ++j)
        {
            if (i != j && arrays[i].output && mmax_collide(&arrays[i], &arrays[j], &m)) {
                return MMAX_ERR_ALIAS;
            }
        }
    }
    return MMAX_OK;
}

#endif /* MMAX_WANT_IMPLEMENTATION, !MMAX_PASS */

#if defined(MMAX_PASS) && MMAX_PASS == 1
/* ==== vector layer ================================================================================================
 * One block per instruction set, the same names in the same order. Nothing else in the file names an intrinsic, but for
 * mmax_f64_sqrt.
 *
 *   mmax_real            float or double, in C's terms; MMAX_BITS, the integer of its size
 *   mmax_vec, mmax_mask  a register of MMAX_WIDTH reals, and one truth value for each
 *   mmax_dvec            a register of doubles; 8 doubles take MMAX_DREGS of them
 *   min, max(a, b)       b where either is NaN (NEON: NaN)
 *   nle(a, b)            not a <= b: true for NaN
 *   load_part, store_part   the first `count` entries, 0 < count < MMAX_WIDTH; the other lanes are `fill`
 *   first(a, count)      a in the first lanes, else 0
 *   pow2(n)              2^(k/8) MMAX_POW2_FACTOR, k the integer in the low bits of n, k/8 within the exponents of
 *                        normal numbers
 *   exponent(a)          f64: k as a number, mantissa(a)   a / 2^k, within [sqrt(1/2), sqrt(2)]; for a >= 1
 *   widen(p)             f64: MMAX_WIDTH floats
 *   whole(a)             rounded toward 0, for |a| below 2^31, and
 *   hsum(a)              in every lane the sum of all, their halves being added until one is left
 *   zip_low, zip_high(a, b)   a0 b0 a1 b1 .. from the first, from the last half of the lanes; d_zip_ for mmax_dvec
 *                        (only where rows go side by side: AVX-512, AVX2, NEON)
 *   MMAX_(fold_one)(a, out)   f32: a register to 8 doubles, halves being added where it has 16; where there is zip
 *   MMAX_(fold)(acc, out)   f32: 32 partial sums to 8 doubles, lanes that are 8, 16, .. apart being added
 */
#    if MMAX_PASS_DOUBLE
/* For exponent(a): the bits of sqrt(1/2); all but those of a mantissa; of 2^52, whose low ones are an integer */
#        define MMAX_SQRT_HALF_BITS 0x3fe6a09e667f3bcd
#        define MMAX_EXPONENT_BITS  (-0x10000000000000)
#        define MMAX_INTEGER_BITS   0x4330000000000000
#        define MMAX_INTEGER        4503599627370496.0
#        define mmax_real           double
#        define MMAX_BITS           uint64_t
#        define MMAX_TYPE           f64
#        define MMAX_LANES          16
#    else
#        define mmax_real  float
#        define MMAX_BITS  uint32_t
#        define MMAX_TYPE  f32
#        define MMAX_LANES 32
#    endif

/* ---- clang under -ffast-math, all instruction sets ----
 * There clang takes for granted that no argument, result or choice of a floating-point type is NaN or infinite, in the
 * intrinsics' header as here, and no pragma takes that back. Operators alone obey the pragma: so registers are
 * integers, and floating-point only for as long as an operator takes.
 */
#    if MMAX_CLANG_FAST
#        if defined(MMAX_PASS_AVX512)
#            pragma clang attribute push(                                                          \
                __attribute__((__target__("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,popcnt"))), \
                apply_to = function)
#            pragma clang attribute(__attribute__((__min_vector_width__(512))), apply_to = function)
#            define MMAX_TIER  avx512
#            define MMAX_FMA   1
#            define MMAX_BYTES 64
#        elif defined(MMAX_PASS_AVX2)
#            pragma clang attribute push(__attribute__((__target__("avx2,fma,popcnt"))), apply_to = function)
#            pragma clang attribute(__attribute__((__min_vector_width__(256))), apply_to = function)
#            define MMAX_TIER  avx2
#            define MMAX_FMA   1
#            define MMAX_BYTES 32
#        elif defined(MMAX_PASS_SSE2)
#            pragma clang attribute push(__attribute__((__target__("sse2"))), apply_to = function)
#            define MMAX_TIER  sse2
#            define MMAX_FMA   0
#            define MMAX_BYTES 16
#        elif defined(MMAX_PASS_NEON)
#            define MMAX_TIER  neon
#            define MMAX_FMA   1
#            define MMAX_BYTES 16
#        elif defined(MMAX_PASS_WASM128)
#            define MMAX_TIER  wasm128
#            define MMAX_FMA   0
#            define MMAX_BYTES 16
#        else
#            define MMAX_TIER  scalar
#            define MMAX_FMA   MMAX_SCALAR_FMA
#            define MMAX_BYTES (MMAX_PASS_DOUBLE ? 8 : 4)
#        endif
#        if MMAX_PASS_DOUBLE
#            define MMAX_WIDTH     (MMAX_BYTES / 8)
#            define MMAX_LOW_BITS  ((uint64_t)0x7ffffff)
#            define MMAX_LANE_MASK __mmask8
#            define MMAX_SQRT      "sqrtpd"
#            define MMAX_I(op)     op##_epi64
#            define mmax_v_pow2(n) (((n) << 49) + MMAX_(look_up)(mmax_pow2_table_f64, n))
#            define mmax_v_exponent(a) \
                mmax_v_sub((((a)-MMAX_SQRT_HALF_BITS) >> 52) | MMAX_INTEGER_BITS, mmax_v_set(MMAX_INTEGER))
#            define mmax_v_mantissa(a) ((a) - (((a)-MMAX_SQRT_HALF_BITS) & (uint64_t)MMAX_EXPONENT_BITS))
#        else
#            define MMAX_WIDTH     (MMAX_BYTES / 4)
#            define MMAX_LOW_BITS  ((uint32_t)0xfff)
#            define MMAX_LANE_MASK __mmask16
#            define MMAX_SQRT      "sqrtps"
#            define MMAX_I(op)     op##_epi32
#            define mmax_v_pow2(n) (((n) << 20) + MMAX_(look_up)(mmax_pow2_table_f32, n))
#        endif
#        define MMAX_SIGN  ((MMAX_BITS)1 << (8 * sizeof(mmax_real) - 1))
#        define MMAX_DREGS (MMAX_WIDTH == 1 ? 8 : 64 / MMAX_BYTES)
typedef MMAX_BITS MMAX_(register) __attribute__((__vector_size__(MMAX_BYTES)));
typedef mmax_real MMAX_(reals) __attribute__((__vector_size__(MMAX_BYTES)));
typedef int32_t MMAX_(wholes) __attribute__((__vector_size__(4 * MMAX_WIDTH)));
typedef uint64_t MMAX_(d_register) __attribute__((__vector_size__(64 / MMAX_DREGS)));
typedef double MMAX_(doubles) __attribute__((__vector_size__(64 / MMAX_DREGS)));
typedef float MMAX_(halves) __attribute__((__vector_size__(32 / MMAX_DREGS)));
#        define mmax_vec               MMAX_(register)
#        define mmax_mask              MMAX_(register)
#        define mmax_dvec              MMAX_(d_register)
#        define MMAX_OP(a, op, b)      ((mmax_vec)((MMAX_(reals))(a)op(MMAX_(reals))(b)))
#        define MMAX_D_OP(a, op, b)    ((mmax_dvec)((MMAX_(doubles))(a)op(MMAX_(doubles))(b)))
#        define mmax_d_zero()          MMAX_(d_zero)()
#        define mmax_d_add(a, b)       MMAX_D_OP(a, +, b)
#        define mmax_d_sub(a, b)       MMAX_D_OP(a, -, b)
#        define mmax_d_store(p, a)     ((void)memcpy(p, a, 8 * sizeof(double)))
#        define mmax_v_set(r)          ((mmax_vec)((mmax_real)(r) - (MMAX_(reals))mmax_v_zero()))
#        define mmax_v_zero()          MMAX_(zero)()
#        define mmax_v_load(p)         MMAX_(load)(p)
#        define mmax_v_store(p, a)     MMAX_(store)(p, a)
#        define mmax_v_add(a, b)       MMAX_OP(a, +, b)
#        define mmax_v_sub(a, b)       MMAX_OP(a, -, b)
#        define mmax_v_mul(a, b)       MMAX_(product)(MMAX_OP(a, *, b))
#        define mmax_v_fma(a, b, c)    MMAX_(fma)(a, b, c)
#        define mmax_v_div(a, b)       MMAX_OP(a, /, b)
#        define mmax_v_widen(p)        MMAX_(widen)(p)
#        define mmax_v_sqrt(a)         MMAX_(sqrt)(a)
#        define mmax_v_min(a, b)       MMAX_(min)(a, b)
#        define mmax_v_max(a, b)       MMAX_(max)(a, b)
#        define mmax_v_abs(a)          ((a) & ~MMAX_SIGN)
#        define mmax_v_copysign(a, b)  ((a) | ((b)&MMAX_SIGN))
#        define mmax_v_high(a)         ((a) & ~MMAX_LOW_BITS)
#        define mmax_v_lt(a, b)        MMAX_OP(a, <, b)
#        define mmax_v_le(a, b)        MMAX_OP(a, <=, b)
#        define mmax_v_ne(a, b)        MMAX_OP(a, !=, b)
#        define mmax_v_nle(a, b)       (~mmax_v_le(a, b))
#        define mmax_m_none()          mmax_v_zero()
#        define mmax_m_or(a, b)        ((a) | (b))
#        define mmax_m_and(a, b)       ((a) & (b))
#        define mmax_m_bits(m)         MMAX_(bits)(m)
#        define mmax_v_select(m, a, b) MMAX_(select)(m, a, b)
#        define mmax_v_keep(m, a)      ((m) & (a))
#        define mmax_v_hmax(a)         MMAX_(extreme)(a, 0)
#        define mmax_v_hmin(a)         MMAX_(extreme)(a, 1)
#        define mmax_v_whole(a)        MMAX_(whole)(a)
#        define mmax_v_zip_low(a, b)   MMAX_(zip)(a, b, 0)
#        define mmax_v_zip_high(a, b)  MMAX_(zip)(a, b, MMAX_WIDTH / 2)
MMAX_INLINE mmax_vec MMAX_(zero)(void)
{
    const mmax_vec zero = {0};
    return zero;
}
MMAX_INLINE mmax_dvec MMAX_(d_zero)(void)
{
    const mmax_dvec zero = {0};
    return zero;
}
MMAX_INLINE mmax_vec MMAX_(load)(const mmax_real *p)
{
    mmax_vec a;
    memcpy(&a, p, sizeof a);
    return a;
}
MMAX_INLINE void MMAX_(store)(mmax_real *p, mmax_vec a) { memcpy(p, &a, sizeof a); }
MMAX_INLINE mmax_vec MMAX_(product)(mmax_vec a)
{
#        if MMAX_WIDTH == 1
    MMAX_BITS product = a[0];
    MMAX_KEEP(product);
    a[0] = product;
#        else
    MMAX_KEEP(a);
#        endif
    return a;
}
MMAX_INLINE mmax_vec MMAX_(fma)(mmax_vec a, mmax_vec b, mmax_vec c)
{
#        if MMAX_FMA
#            pragma clang fp contract(on)
    return (mmax_vec)((MMAX_(reals))a * (MMAX_(reals))b + (MMAX_(reals))c);
#        else
    return mmax_v_add(mmax_v_mul(a, b), c);
#        endif
}
MMAX_INLINE mmax_vec MMAX_(select)(mmax_mask m, mmax_vec a, mmax_vec b) { return (m & a) | (~m & b); }
MMAX_INLINE mmax_vec MMAX_(min)(mmax_vec a, mmax_vec b) { return MMAX_(select)(mmax_v_lt(a, b), a, b); }
MMAX_INLINE mmax_vec MMAX_(max)(mmax_vec a, mmax_vec b) { return MMAX_(select)(mmax_v_lt(b, a), a, b); }
MMAX_INLINE mmax_vec MMAX_(sqrt)(mmax_vec a)
{
    /* The function would become an estimate. */
#        if MMAX_X86 && MMAX_WIDTH > 1
    mmax_vec root;
#            if MMAX_FMA
    __asm__("v" MMAX_SQRT " {%1, %0|%0, %1}" : "=v"(root) : "v"(a));
#            else
    __asm__(MMAX_SQRT " {%1, %0|%0, %1}" : "=x"(root) : "x"(a));
#            endif
    return root;
#        else
    MMAX_UNROLL for (int k = 0; k < MMAX_WIDTH; ++k)
    {
        mmax_real lane;
        double root;
        memcpy(&lane, (const char *)&a + sizeof lane * (size_t)k, sizeof lane);
        root = sqrt((double)lane);
        lane = (mmax_real)root;
        memcpy((char *)&a + sizeof lane * (size_t)k, &lane, sizeof lane);
    }
    return a;
#        endif
}
MMAX_INLINE mmax_real MMAX_(extreme)(mmax_vec a, int smallest)
{
    mmax_real lane;
    for (int half = MMAX_WIDTH / 2; half > 0; half /= 2) {
        mmax_vec b = a;
        MMAX_UNROLL for (int k = 0; k < MMAX_WIDTH / 2; ++k) { b[k] = a[k + (k < half ? half : 0)]; }
        a = smallest ? mmax_v_min(a, b) : mmax_v_max(a, b);
    }
    memcpy(&lane, &a, sizeof lane);
    return lane;
}
MMAX_INLINE mmax_vec MMAX_(whole)(mmax_vec a)
{
    const MMAX_(wholes) whole = __builtin_convertvector((MMAX_(reals))a, MMAX_(wholes));
    return (mmax_vec) __builtin_convertvector(whole, MMAX_(reals));
}
MMAX_INLINE mmax_vec MMAX_(zip)(mmax_vec a, mmax_vec b, int from)
{
    mmax_vec zipped = a;
    MMAX_UNROLL for (int k = 0; k < MMAX_WIDTH; ++k) { zipped[k] = k % 2 ? b[from + k / 2] : a[from + k / 2]; }
    return zipped;
}
#        if MMAX_PASS_DOUBLE
typedef float MMAX_(floats) __attribute__((__vector_size__(4 * MMAX_WIDTH)));
MMAX_INLINE mmax_vec MMAX_(widen)(const float *p)
{
    MMAX_(floats) a;
    memcpy(&a, p, sizeof a);
    return (mmax_vec) __builtin_convertvector(a, MMAX_(reals));
}
#        endif
MMAX_INLINE double MMAX_(d_total)(const mmax_dvec *sum)
{
    double part[8];
    memcpy(part, sum, sizeof part);
    for (int half = 4; half > 0; half /= 2) {
        MMAX_UNROLL for (int k = 0; k < half; ++k) { part[k] += part[k + half]; }
    }
    return part[0];
}
#        if !MMAX_PASS_DOUBLE
MMAX_INLINE MMAX_(doubles) MMAX_(widened)(const mmax_vec *acc, int from)
{
    MMAX_(halves) part;
    memcpy(&part, (const char *)acc + sizeof(float) * (size_t)from, sizeof part);
    return __builtin_convertvector(part, MMAX_(doubles));
}
MMAX_INLINE void MMAX_(fold)(const mmax_vec *acc, mmax_dvec *out)
{
    MMAX_UNROLL for (int j = 0; j < MMAX_DREGS; ++j)
    {
        const int at = j * (8 / MMAX_DREGS);
        out[j] = (mmax_dvec)((MMAX_(widened)(acc, at) + MMAX_(widened)(acc, at + 16)) +
                             (MMAX_(widened)(acc, at + 8) + MMAX_(widened)(acc, at + 24)));
    }
}
MMAX_INLINE void MMAX_(fold_one)(mmax_vec a, mmax_dvec *out)
{
    mmax_vec acc[MMAX_LANES / MMAX_WIDTH];
    memset(acc, 0, sizeof acc);
    acc[0] = a;
    MMAX_(fold)(acc, out);
}
#        endif
#        if defined(MMAX_PASS_AVX512)
#            define mmax_v_lanes(count) ((MMAX_LANE_MASK)((1u << (count)) - 1u))
#            define mmax_v_load_part(p, count, fill) \
                ((mmax_vec)MMAX_I(_mm512_mask_loadu)((__m512i)(fill), mmax_v_lanes(count), p))
#            define mmax_v_store_part(p, count, a) MMAX_I(_mm512_mask_storeu)(p, mmax_v_lanes(count), (__m512i)(a))
#            define mmax_v_first(a, count)         ((mmax_vec)MMAX_I(_mm512_maskz_mov)(mmax_v_lanes(count), (__m512i)(a)))
#            define mmax_v_collect(to, a, bits) \
                _mm512_storeu_si512(to, MMAX_I(_mm512_maskz_compress)((MMAX_LANE_MASK)(bits), (__m512i)(a)))
MMAX_INLINE unsigned MMAX_(bits)(mmax_mask m)
{
#            if MMAX_PASS_DOUBLE
    return _mm512_movepi64_mask((__m512i)m);
#            else
    return _mm512_movepi32_mask((__m512i)m);
#            endif
}
MMAX_INLINE mmax_vec MMAX_(look_up)(const void *table, mmax_vec n)
{
    return (mmax_vec)MMAX_I(_mm512_permutexvar)((__m512i)n, _mm512_loadu_si512(table));
}
#        elif defined(MMAX_PASS_AVX2)
#            if MMAX_PASS_DOUBLE
#                define MMAX_INT         long long
#                define MMAX_MOVEMASK(m) __builtin_ia32_movmskpd256((__v4df)(m))
#            else
#                define MMAX_INT         int
#                define MMAX_MOVEMASK(m) __builtin_ia32_movmskps256((__v8sf)(m))
#            endif
#            define mmax_v_lanes(count) \
                _mm256_loadu_si256(     \
                    (const __m256i *)(const void *)(mmax_lane_mask + 8 - (int)(sizeof(mmax_real) / 4) * (count)))
#            define mmax_v_load_part(p, count, fill) \
                mmax_v_select(                       \
                    (mmax_vec)mmax_v_lanes(count),   \
                    (mmax_vec)MMAX_I(_mm256_maskload)((const MMAX_INT *)(const void *)(p), mmax_v_lanes(count)), fill)
#            define mmax_v_store_part(p, count, a) \
                MMAX_I(_mm256_maskstore)((MMAX_INT *)(void *)(p), mmax_v_lanes(count), (__m256i)(a))
#            define mmax_v_first(a, count) ((mmax_vec)mmax_v_lanes(count) & (a))
MMAX_INLINE unsigned MMAX_(bits)(mmax_mask m) { return (unsigned)MMAX_MOVEMASK(m); }
MMAX_INLINE mmax_vec MMAX_(look_up)(const void *table, mmax_vec n)
{
#            if MMAX_PASS_DOUBLE
    return (mmax_vec)_mm256_i64gather_epi64((const long long *)table, (__m256i)(n & 7), 8);
#            else
    return (mmax_vec)_mm256_permutevar8x32_epi32(_mm256_loadu_si256((const __m256i *)table), (__m256i)n);
#            endif
}
#        else
MMAX_INLINE unsigned MMAX_(bits)(mmax_mask m)
{
    unsigned bits = 0;
    MMAX_UNROLL for (int k = 0; k < MMAX_WIDTH; ++k) { bits |= (unsigned)(m[k] & 1) << k; }
    return bits;
}
MMAX_INLINE mmax_vec MMAX_(look_up)(const void *table, mmax_vec n)
{
    MMAX_UNROLL for (int k = 0; k < MMAX_WIDTH; ++k)
    {
        MMAX_BITS entry;
        memcpy(&entry, (const char *)table + sizeof entry * (size_t)(n[k] & 7), sizeof entry);
        n[k] = entry;
    }
    return n;
}
#        endif

/* ---- AVX-512 ---- */
#    elif defined(MMAX_PASS_AVX512)
#        define MMAX_TIER avx512
#        if defined(__clang__)
#            pragma clang attribute push(                                                          \
                __attribute__((__target__("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,popcnt"))), \
                apply_to = function)
#        elif MMAX_GNUC
#            pragma GCC push_options
#            pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,popcnt")
#        endif
#        define MMAX_FMA           1
#        define MMAX_DREGS         1
#        define mmax_dvec          __m512d
#        define mmax_d_zero()      _mm512_setzero_pd()
#        define mmax_d_add(a, b)   _mm512_add_pd(a, b)
#        define mmax_d_sub(a, b)   _mm512_sub_pd(a, b)
#        define mmax_d_store(p, a) _mm512_storeu_pd(p, (a)[0])
#        if MMAX_PASS_DOUBLE
#            define MMAX_I(op)                  _mm512_##op##_pd
#            define MMAX_WIDTH                  8
#            define mmax_vec                    __m512d
#            define mmax_mask                   __mmask8
#            define mmax_v_cmp(a, b, predicate) _mm512_cmp_pd_mask(a, b, predicate)
#            define mmax_v_widen(p)             _mm512_cvtps_pd(_mm256_loadu_ps(p))
#        else
#            define MMAX_I(op)                  _mm512_##op##_ps
#            define MMAX_WIDTH                  16
#            define mmax_vec                    __m512
#            define mmax_mask                   __mmask16
#            define mmax_v_cmp(a, b, predicate) _mm512_cmp_ps_mask(a, b, predicate)
#        endif
#        define mmax_v_set(r)                    MMAX_I(set1)(r)
#        define mmax_v_zero()                    MMAX_I(setzero)()
#        define mmax_v_load(p)                   MMAX_I(loadu)(p)
#        define mmax_v_store(p, a)               MMAX_I(storeu)(p, a)
#        define mmax_v_lanes(count)              ((mmax_mask)((1u << (count)) - 1u))
#        define mmax_v_load_part(p, count, fill) MMAX_I(mask_loadu)(fill, mmax_v_lanes(count), p)
#        define mmax_v_store_part(p, count, a)   MMAX_I(mask_storeu)(p, mmax_v_lanes(count), a)
#        define mmax_v_first(a, count)           MMAX_I(maskz_mov)(mmax_v_lanes(count), a)
#        define mmax_v_add(a, b)                 MMAX_I(add)(a, b)
#        define mmax_v_sub(a, b)                 MMAX_I(sub)(a, b)
#        define mmax_v_mul(a, b)                 MMAX_I(mul)(a, b)
#        define mmax_v_fma(a, b, c)              MMAX_I(fmadd)(a, b, c)
#        define mmax_v_div(a, b)                 MMAX_I(div)(a, b)
#        define mmax_v_sqrt(a)                   MMAX_I(sqrt)(a)
/* With a mask that keeps all lanes: gcc 12 warns about the unmasked form as C++. */
#        define mmax_v_min(a, b)                 MMAX_I(maskz_min)((mmax_mask)-1, a, b)
#        define mmax_v_max(a, b)                 MMAX_I(maskz_max)((mmax_mask)-1, a, b)
#        define mmax_v_abs(a)                    MMAX_I(abs)(a)
#        define mmax_v_copysign(a, b)            MMAX_I(or)(a, MMAX_I(and)(b, mmax_v_set((mmax_real)-0.0)))
#        define mmax_v_lt(a, b)                  mmax_v_cmp(a, b, _CMP_LT_OQ)
#        define mmax_v_le(a, b)                  mmax_v_cmp(a, b, _CMP_LE_OQ)
#        define mmax_v_ne(a, b)                  mmax_v_cmp(a, b, _CMP_NEQ_UQ)
#        define mmax_v_nle(a, b)                 mmax_v_cmp(a, b, _CMP_NLE_UQ)
#        define mmax_m_none()                    ((mmax_mask)0)
#        define mmax_m_or(a, b)                  ((mmax_mask)((a) | (b)))
#        define mmax_m_and(a, b)                 ((mmax_mask)((a) & (b)))
#        define mmax_m_bits(m)                   ((unsigned)(m))
#        define mmax_v_select(m, a, b)           MMAX_I(mask_blend)(m, b, a)
#        define mmax_v_keep(m, a)                MMAX_I(maskz_mov)(m, a)
#        define mmax_v_add_where(m, a, b)        MMAX_I(mask_add)(a, m, a, b)
#        define mmax_v_fma_where(m, a, b, c)     MMAX_I(mask3_fmadd)(a, b, c, m)
#        if MMAX_PASS_DOUBLE
MMAX_INLINE double MMAX_(hmax)(__m512d a)
{
    const __m256d four = _mm256_max_pd(_mm512_castpd512_pd256(a), _mm512_extractf64x4_pd(a, 1));
    const __m128d two = _mm_max_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_max_sd(two, _mm_unpackhi_pd(two, two)));
}
MMAX_INLINE double MMAX_(hmin)(__m512d a)
{
    const __m256d four = _mm256_min_pd(_mm512_castpd512_pd256(a), _mm512_extractf64x4_pd(a, 1));
    const __m128d two = _mm_min_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_min_sd(two, _mm_unpackhi_pd(two, two)));
}
#            define mmax_v_pow2(n)                                 \
                _mm512_castsi512_pd(_mm512_add_epi64(              \
                    _mm512_slli_epi64(_mm512_castpd_si512(n), 49), \
                    _mm512_permutexvar_epi64(_mm512_castpd_si512(n), _mm512_loadu_si512(mmax_pow2_table_f64))))
#            define mmax_v_exponent(a)                \
                _mm512_cvtepi64_pd(_mm512_srli_epi64( \
                    _mm512_sub_epi64(_mm512_castpd_si512(a), _mm512_set1_epi64(MMAX_SQRT_HALF_BITS)), 52))
MMAX_INLINE __m512d MMAX_(mantissa)(__m512d a)
{
    const __m512i bits = _mm512_castpd_si512(a);
    return _mm512_castsi512_pd(
        _mm512_sub_epi64(bits, _mm512_and_si512(_mm512_sub_epi64(bits, _mm512_set1_epi64(MMAX_SQRT_HALF_BITS)),
                                                _mm512_set1_epi64(MMAX_EXPONENT_BITS))));
}
#            define mmax_v_mantissa(a) MMAX_(mantissa)(a)
#        else
#            define mmax_v_pow2(n)                                 \
                _mm512_castsi512_ps(_mm512_add_epi32(              \
                    _mm512_slli_epi32(_mm512_castps_si512(n), 20), \
                    _mm512_permutexvar_epi32(_mm512_castps_si512(n), _mm512_loadu_si512(mmax_pow2_table_f32))))
MMAX_INLINE void MMAX_(fold)(const mmax_vec *acc, mmax_dvec *out)
{
    const __m512d a = _mm512_cvtps_pd(_mm512_castps512_ps256(acc[0])),
                  b = _mm512_cvtps_pd(_mm512_extractf32x8_ps(acc[0], 1));
    const __m512d c = _mm512_cvtps_pd(_mm512_castps512_ps256(acc[1])),
                  d = _mm512_cvtps_pd(_mm512_extractf32x8_ps(acc[1], 1));
    out[0] = _mm512_add_pd(_mm512_add_pd(a, c), _mm512_add_pd(b, d));
}
MMAX_INLINE float MMAX_(hmax)(__m512 a)
{
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}
MMAX_INLINE float MMAX_(hmin)(__m512 a)
{
    const __m256 eight = _mm256_min_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    const __m128 four = _mm_min_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_min_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_min_ss(two, _mm_shuffle_ps(two, two, 1)));
}
#        endif
#        define mmax_v_hmax(a)              MMAX_(hmax)(a)
#        define mmax_v_hmin(a)              MMAX_(hmin)(a)
MMAX_INLINE double MMAX_(d_total)(const mmax_dvec *sum)
{
    const __m256d four = _mm256_add_pd(_mm512_castpd512_pd256(sum[0]), _mm512_extractf64x4_pd(sum[0], 1));
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}
/* Through a register: compressing to memory is slow on some machines. */
#        define mmax_v_collect(to, a, bits) MMAX_I(storeu)(to, MMAX_I(maskz_compress)((mmax_mask)(bits), a))
#        if !MMAX_PASS_DOUBLE
MMAX_INLINE void MMAX_(fold_one)(__m512 a, mmax_dvec *out)
{
    out[0] = _mm512_add_pd(_mm512_cvtps_pd(_mm512_castps512_ps256(a)), _mm512_cvtps_pd(_mm512_extractf32x8_ps(a, 1)));
}
#        endif
#        if MMAX_PASS_DOUBLE
#            define mmax_v_whole(a) _mm512_cvtepi32_pd(_mm512_cvttpd_epi32(a))
#        else
#            define mmax_v_whole(a) _mm512_cvtepi32_ps(_mm512_cvttps_epi32(a))
#        endif
#        define mmax_d_zip_low(a, b)  _mm512_permutex2var_pd(a, _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11), b)
#        define mmax_d_zip_high(a, b) _mm512_permutex2var_pd(a, _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15), b)
#        if MMAX_PASS_DOUBLE
#            define mmax_v_zip_low(a, b)  mmax_d_zip_low(a, b)
#            define mmax_v_zip_high(a, b) mmax_d_zip_high(a, b)
#        else
#            define mmax_v_zip_low(a, b) \
                _mm512_permutex2var_ps(a, _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23), b)
#            define mmax_v_zip_high(a, b) \
                _mm512_permutex2var_ps(   \
                    a, _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31), b)
#        endif
MMAX_INLINE mmax_vec MMAX_(hsum)(mmax_vec a)
{
#        if MMAX_PASS_DOUBLE
    a = _mm512_add_pd(a, _mm512_shuffle_f64x2(a, a, 0x4e));
    a = _mm512_add_pd(a, _mm512_shuffle_f64x2(a, a, 0xb1));
    return _mm512_add_pd(a, _mm512_permute_pd(a, 0x55));
#        else
    a = _mm512_add_ps(a, _mm512_shuffle_f32x4(a, a, 0x4e));
    a = _mm512_add_ps(a, _mm512_shuffle_f32x4(a, a, 0xb1));
    a = _mm512_add_ps(a, _mm512_permute_ps(a, 0x4e));
    return _mm512_add_ps(a, _mm512_permute_ps(a, 0xb1));
#        endif
}
#        define mmax_v_hsum(a) MMAX_(hsum)(a)

/* ---- AVX2 with FMA ---- */
#    elif defined(MMAX_PASS_AVX2)
#        define MMAX_TIER avx2
#        if defined(__clang__)
#            pragma clang attribute push(__attribute__((__target__("avx2,fma,popcnt"))), apply_to = function)
#        elif MMAX_GNUC
#            pragma GCC push_options
#            pragma GCC target("avx2,fma,popcnt")
#        endif
#        define MMAX_FMA           1
#        define MMAX_DREGS         2
#        define mmax_dvec          __m256d
#        define mmax_d_zero()      _mm256_setzero_pd()
#        define mmax_d_add(a, b)   _mm256_add_pd(a, b)
#        define mmax_d_sub(a, b)   _mm256_sub_pd(a, b)
#        define mmax_d_store(p, a) (_mm256_storeu_pd(p, (a)[0]), _mm256_storeu_pd((p) + 4, (a)[1]))
#        if MMAX_PASS_DOUBLE
#            define MMAX_I(op) _mm256_##op##_pd
#            define MMAX_WIDTH 4
#            define mmax_vec   __m256d
#            define mmax_mask  __m256d
#            define mmax_v_lanes(count) \
                _mm256_loadu_si256((const __m256i *)(const void *)(mmax_lane_mask + 8 - 2 * (count)))
#            define mmax_v_as_mask(i) _mm256_castsi256_pd(i)
#            define mmax_v_widen(p)   _mm256_cvtps_pd(_mm_loadu_ps(p))
#        else
#            define MMAX_I(op) _mm256_##op##_ps
#            define MMAX_WIDTH 8
#            define mmax_vec   __m256
#            define mmax_mask  __m256
#            define mmax_v_lanes(count) \
                _mm256_loadu_si256((const __m256i *)(const void *)(mmax_lane_mask + 8 - (count)))
#            define mmax_v_as_mask(i) _mm256_castsi256_ps(i)
#        endif
#        define mmax_v_set(r)      MMAX_I(set1)(r)
#        define mmax_v_zero()      MMAX_I(setzero)()
#        define mmax_v_load(p)     MMAX_I(loadu)(p)
#        define mmax_v_store(p, a) MMAX_I(storeu)(p, a)
#        define mmax_v_load_part(p, count, fill) \
            mmax_v_select(mmax_v_as_mask(mmax_v_lanes(count)), MMAX_I(maskload)(p, mmax_v_lanes(count)), fill)
#        define mmax_v_store_part(p, count, a) MMAX_(store_part)(p, count, a)
#        define mmax_v_first(a, count)         MMAX_I (and)(mmax_v_as_mask(mmax_v_lanes(count)), a)
#        define mmax_v_add(a, b)               MMAX_I(add)(a, b)
#        define mmax_v_sub(a, b)               MMAX_I(sub)(a, b)
#        define mmax_v_mul(a, b)               MMAX_I(mul)(a, b)
#        define mmax_v_fma(a, b, c)            MMAX_I(fmadd)(a, b, c)
#        define mmax_v_div(a, b)               MMAX_I(div)(a, b)
#        define mmax_v_sqrt(a)                 MMAX_I(sqrt)(a)
#        define mmax_v_min(a, b)               MMAX_I(min)(a, b)
#        define mmax_v_max(a, b)               MMAX_I(max)(a, b)
#        define mmax_v_abs(a)                  MMAX_I(andnot)(mmax_v_set((mmax_real)-0.0), a)
#        define mmax_v_copysign(a, b)          MMAX_I(or)(a, MMAX_I(and)(b, mmax_v_set((mmax_real)-0.0)))
#        define mmax_v_lt(a, b)                MMAX_I(cmp)(a, b, _CMP_LT_OQ)
#        define mmax_v_le(a, b)                MMAX_I(cmp)(a, b, _CMP_LE_OQ)
#        define mmax_v_ne(a, b)                MMAX_I(cmp)(a, b, _CMP_NEQ_UQ)
#        define mmax_v_nle(a, b)               MMAX_I(cmp)(a, b, _CMP_NLE_UQ)
#        define mmax_m_none()                  MMAX_I(setzero)()
#        define mmax_m_or(a, b)                MMAX_I(or)(a, b)
#        define mmax_m_and(a, b)               MMAX_I (and)(a, b)
#        define mmax_m_bits(m)                 ((unsigned)MMAX_I(movemask)(m))
#        define mmax_v_select(m, a, b)         MMAX_I(blendv)(b, a, m)
#        define mmax_v_keep(m, a)              MMAX_I (and)(m, a)
#        if !MMAX_PASS_DOUBLE
/* Those lanes of a whose bits are set, first. Of only four, one after the other is as quick. */
MMAX_INLINE __m256 MMAX_(kept_first)(__m256 a, unsigned bits)
{
    const __m256i kept = _mm256_set1_epi32((int)mmax_kept_lanes[bits]);
    return _mm256_permutevar8x32_ps(a, _mm256_srlv_epi32(kept, _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28)));
}
#            define mmax_v_collect(to, a, bits) mmax_v_store(to, MMAX_(kept_first)(a, bits))
#        endif
/* By halves: AMD's processors take some 40 steps for a store under a mask. */
#        if MMAX_PASS_DOUBLE
MMAX_INLINE void MMAX_(store_part)(double *p, ptrdiff_t count, __m256d a)
{
    __m128d left = _mm256_castpd256_pd128(a);
    if (count & 2) {
        _mm_storeu_pd(p, left);
        left = _mm256_extractf128_pd(a, 1);
        p += 2;
    }
    if (count & 1) {
        _mm_store_sd(p, left);
    }
}
#        else
MMAX_INLINE void MMAX_(store_part)(float *p, ptrdiff_t count, __m256 a)
{
    __m128 left = _mm256_castps256_ps128(a);
    if (count & 4) {
        _mm_storeu_ps(p, left);
        left = _mm256_extractf128_ps(a, 1);
        p += 4;
    }
    if (count & 2) {
        _mm_storel_epi64((__m128i *)(void *)p, _mm_castps_si128(left));
        left = _mm_movehl_ps(left, left);
        p += 2;
    }
    if (count & 1) {
        _mm_store_ss(p, left);
    }
}
#        endif
#        if MMAX_PASS_DOUBLE
/* The halves of a table entry come from one register each, which is quicker than a gather. */
MMAX_INLINE __m256d MMAX_(pow2)(__m256d n)
{
    const float *const table = (const float *)(const void *)mmax_pow2_table_f64;
    const __m256 first = _mm256_loadu_ps(table), last = _mm256_loadu_ps(table + 8);
    const __m256i low = _mm256_permute4x64_epi64(_mm256_castps_si256(_mm256_shuffle_ps(first, last, 0x88)), 0xd8);
    const __m256i high = _mm256_permute4x64_epi64(_mm256_castps_si256(_mm256_shuffle_ps(first, last, 0xdd)), 0xd8);
    const __m256i bits = _mm256_castpd_si256(n);
    const __m256i entry = _mm256_blend_epi32(_mm256_permutevar8x32_epi32(low, bits),
                                             _mm256_permutevar8x32_epi32(high, _mm256_slli_epi64(bits, 32)), 0xaa);
    return _mm256_castsi256_pd(_mm256_add_epi64(_mm256_slli_epi64(bits, 49), entry));
}
#            define mmax_v_pow2(n)     MMAX_(pow2)(n)
MMAX_INLINE __m256d MMAX_(exponent)(__m256d a)
{
    const __m256i k =
        _mm256_srli_epi64(_mm256_sub_epi64(_mm256_castpd_si256(a), _mm256_set1_epi64x(MMAX_SQRT_HALF_BITS)), 52);
    return _mm256_sub_pd(_mm256_castsi256_pd(_mm256_or_si256(k, _mm256_set1_epi64x(MMAX_INTEGER_BITS))),
                         _mm256_set1_pd(MMAX_INTEGER));
}
#            define mmax_v_exponent(a) MMAX_(exponent)(a)
MMAX_INLINE __m256d MMAX_(mantissa)(__m256d a)
{
    const __m256i bits = _mm256_castpd_si256(a);
    return _mm256_castsi256_pd(
        _mm256_sub_epi64(bits, _mm256_and_si256(_mm256_sub_epi64(bits, _mm256_set1_epi64x(MMAX_SQRT_HALF_BITS)),
                                                _mm256_set1_epi64x(MMAX_EXPONENT_BITS))));
}
#            define mmax_v_mantissa(a) MMAX_(mantissa)(a)
MMAX_INLINE double MMAX_(hmax)(__m256d a)
{
    const __m128d two = _mm_max_pd(_mm256_castpd256_pd128(a), _mm256_extractf128_pd(a, 1));
    return _mm_cvtsd_f64(_mm_max_sd(two, _mm_unpackhi_pd(two, two)));
}
MMAX_INLINE double MMAX_(hmin)(__m256d a)
{
    const __m128d two = _mm_min_pd(_mm256_castpd256_pd128(a), _mm256_extractf128_pd(a, 1));
    return _mm_cvtsd_f64(_mm_min_sd(two, _mm_unpackhi_pd(two, two)));
}
#        else
#            define mmax_v_pow2(n)                                                                               \
                _mm256_castsi256_ps(                                                                             \
                    _mm256_add_epi32(_mm256_slli_epi32(_mm256_castps_si256(n), 20),                              \
                                     _mm256_permutevar8x32_epi32(                                                \
                                         _mm256_loadu_si256((const __m256i *)(const void *)mmax_pow2_table_f32), \
                                         _mm256_castps_si256(n))))
MMAX_INLINE void MMAX_(fold)(const mmax_vec *acc, mmax_dvec *out)
{
    __m256d low[4], high[4];
    MMAX_UNROLL for (int k = 0; k < 4; ++k)
    {
        low[k] = _mm256_cvtps_pd(_mm256_castps256_ps128(acc[k]));
        high[k] = _mm256_cvtps_pd(_mm256_extractf128_ps(acc[k], 1));
    }
    out[0] = _mm256_add_pd(_mm256_add_pd(low[0], low[2]), _mm256_add_pd(low[1], low[3]));
    out[1] = _mm256_add_pd(_mm256_add_pd(high[0], high[2]), _mm256_add_pd(high[1], high[3]));
}
MMAX_INLINE float MMAX_(hmax)(__m256 a)
{
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}
MMAX_INLINE float MMAX_(hmin)(__m256 a)
{
    const __m128 four = _mm_min_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 two = _mm_min_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_min_ss(two, _mm_shuffle_ps(two, two, 1)));
}
#        endif
#        define mmax_v_hmax(a) MMAX_(hmax)(a)
#        define mmax_v_hmin(a) MMAX_(hmin)(a)
MMAX_INLINE double MMAX_(d_total)(const mmax_dvec *sum)
{
    const __m256d four = _mm256_add_pd(sum[0], sum[1]);
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}
#        if !MMAX_PASS_DOUBLE
MMAX_INLINE void MMAX_(fold_one)(__m256 a, mmax_dvec *out)
{
    out[0] = _mm256_cvtps_pd(_mm256_castps256_ps128(a));
    out[1] = _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1));
}
#        endif
#        if MMAX_PASS_DOUBLE
#            define mmax_v_whole(a) _mm256_cvtepi32_pd(_mm256_cvttpd_epi32(a))
#        else
#            define mmax_v_whole(a) _mm256_cvtepi32_ps(_mm256_cvttps_epi32(a))
#        endif
#        define mmax_d_zip_low(a, b)  _mm256_permute2f128_pd(_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b), 0x20)
#        define mmax_d_zip_high(a, b) _mm256_permute2f128_pd(_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b), 0x31)
#        if MMAX_PASS_DOUBLE
#            define mmax_v_zip_low(a, b)  mmax_d_zip_low(a, b)
#            define mmax_v_zip_high(a, b) mmax_d_zip_high(a, b)
#        else
#            define mmax_v_zip_low(a, b) \
                _mm256_permute2f128_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b), 0x20)
#            define mmax_v_zip_high(a, b) \
                _mm256_permute2f128_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b), 0x31)
#        endif
MMAX_INLINE mmax_vec MMAX_(hsum)(mmax_vec a)
{
#        if MMAX_PASS_DOUBLE
    a = _mm256_add_pd(a, _mm256_permute2f128_pd(a, a, 1));
    return _mm256_add_pd(a, _mm256_permute_pd(a, 0x5));
#        else
    a = _mm256_add_ps(a, _mm256_permute2f128_ps(a, a, 1));
    a = _mm256_add_ps(a, _mm256_permute_ps(a, 0x4e));
    return _mm256_add_ps(a, _mm256_permute_ps(a, 0xb1));
#        endif
}
#        define mmax_v_hsum(a) MMAX_(hsum)(a)

/* ---- SSE2 ---- */
#    elif defined(MMAX_PASS_SSE2)
#        define MMAX_TIER sse2
#        if defined(__clang__)
#            pragma clang attribute push(__attribute__((__target__("sse2"))), apply_to = function)
#        elif MMAX_GNUC
#            pragma GCC push_options
#            pragma GCC target("sse2")
#        endif
#        define MMAX_FMA         0
#        define MMAX_DREGS       4
#        define mmax_dvec        __m128d
#        define mmax_d_zero()    _mm_setzero_pd()
#        define mmax_d_add(a, b) _mm_add_pd(a, b)
#        define mmax_d_sub(a, b) _mm_sub_pd(a, b)
#        define mmax_d_store(p, a)                                                                     \
            (_mm_storeu_pd(p, (a)[0]), _mm_storeu_pd((p) + 2, (a)[1]), _mm_storeu_pd((p) + 4, (a)[2]), \
             _mm_storeu_pd((p) + 6, (a)[3]))
#        if MMAX_PASS_DOUBLE
#            define MMAX_I(op)      _mm_##op##_pd
#            define MMAX_WIDTH      2
#            define mmax_vec        __m128d
#            define mmax_mask       __m128d
#            define mmax_v_widen(p) _mm_cvtps_pd(_mm_castpd_ps(_mm_load_sd((const double *)(const void *)(p))))
#        else
#            define MMAX_I(op) _mm_##op##_ps
#            define MMAX_WIDTH 4
#            define mmax_vec   __m128
#            define mmax_mask  __m128
#        endif
#        define mmax_v_set(r)          MMAX_I(set1)(r)
#        define mmax_v_zero()          MMAX_I(setzero)()
#        define mmax_v_load(p)         MMAX_I(loadu)(p)
#        define mmax_v_store(p, a)     MMAX_I(storeu)(p, a)
#        define mmax_v_add(a, b)       MMAX_I(add)(a, b)
#        define mmax_v_sub(a, b)       MMAX_I(sub)(a, b)
#        define mmax_v_mul(a, b)       MMAX_(product)(MMAX_I(mul)(a, b)) /* no fma, also where the processor has one */
#        define mmax_v_fma(a, b, c)    MMAX_I(add)(mmax_v_mul(a, b), c)
#        define mmax_v_div(a, b)       MMAX_I(div)(a, b)
#        define mmax_v_sqrt(a)         MMAX_I(sqrt)(a)
#        define mmax_v_min(a, b)       MMAX_I(min)(a, b)
#        define mmax_v_max(a, b)       MMAX_I(max)(a, b)
#        define mmax_v_abs(a)          MMAX_I(andnot)(mmax_v_set((mmax_real)-0.0), a)
#        define mmax_v_copysign(a, b)  MMAX_I(or)(a, MMAX_I(and)(b, mmax_v_set((mmax_real)-0.0)))
#        define mmax_v_lt(a, b)        MMAX_I(cmplt)(a, b)
#        define mmax_v_le(a, b)        MMAX_I(cmple)(a, b)
#        define mmax_v_ne(a, b)        MMAX_I(cmpneq)(a, b)
#        define mmax_v_nle(a, b)       MMAX_I(cmpnle)(a, b)
#        define mmax_m_none()          MMAX_I(setzero)()
#        define mmax_m_or(a, b)        MMAX_I(or)(a, b)
#        define mmax_m_and(a, b)       MMAX_I (and)(a, b)
#        define mmax_m_bits(m)         ((unsigned)MMAX_I(movemask)(m))
MMAX_INLINE mmax_vec MMAX_(select)(mmax_mask m, mmax_vec a, mmax_vec b)
{
    return MMAX_I(or)(MMAX_I(and)(m, a), MMAX_I(andnot)(m, b));
}
#        define mmax_v_select(m, a, b) MMAX_(select)(m, a, b)
#        define mmax_v_keep(m, a)      MMAX_I (and)(m, a)
#        if MMAX_PASS_DOUBLE
#            define mmax_v_high(a)     _mm_and_pd(a, _mm_castsi128_pd(_mm_set1_epi64x((long long)0xfffffffff8000000)))
MMAX_INLINE __m128d MMAX_(pow2)(__m128d n)
{
    const __m128i bits = _mm_castpd_si128(n);
    const uint64_t low = mmax_pow2_table_f64[_mm_extract_epi16(bits, 0) & 7];
    const uint64_t high = mmax_pow2_table_f64[_mm_extract_epi16(bits, 4) & 7];
    return _mm_castsi128_pd(_mm_add_epi64(_mm_slli_epi64(bits, 49), _mm_set_epi64x((long long)high, (long long)low)));
}
MMAX_INLINE __m128d MMAX_(exponent)(__m128d a)
{
    const __m128i k = _mm_srli_epi64(_mm_sub_epi64(_mm_castpd_si128(a), _mm_set1_epi64x(MMAX_SQRT_HALF_BITS)), 52);
    return _mm_sub_pd(_mm_castsi128_pd(_mm_or_si128(k, _mm_set1_epi64x(MMAX_INTEGER_BITS))), _mm_set1_pd(MMAX_INTEGER));
}
#            define mmax_v_exponent(a) MMAX_(exponent)(a)
MMAX_INLINE __m128d MMAX_(mantissa)(__m128d a)
{
    const __m128i bits = _mm_castpd_si128(a);
    return _mm_castsi128_pd(_mm_sub_epi64(bits, _mm_and_si128(_mm_sub_epi64(bits, _mm_set1_epi64x(MMAX_SQRT_HALF_BITS)),
                                                              _mm_set1_epi64x(MMAX_EXPONENT_BITS))));
}
#            define mmax_v_mantissa(a) MMAX_(mantissa)(a)
#            define mmax_v_hmax(a)     _mm_cvtsd_f64(_mm_max_sd(a, _mm_unpackhi_pd(a, a)))
#            define mmax_v_hmin(a)     _mm_cvtsd_f64(_mm_min_sd(a, _mm_unpackhi_pd(a, a)))
#        else
#            define mmax_v_high(a) _mm_and_ps(a, _mm_castsi128_ps(_mm_set1_epi32((int)0xfffff000)))
MMAX_INLINE __m128 MMAX_(pow2)(__m128 n)
{
    const __m128i bits = _mm_castps_si128(n);
    const __m128i table = _mm_setr_epi32((int)mmax_pow2_table_f32[_mm_extract_epi16(bits, 0) & 7],
                                         (int)mmax_pow2_table_f32[_mm_extract_epi16(bits, 2) & 7],
                                         (int)mmax_pow2_table_f32[_mm_extract_epi16(bits, 4) & 7],
                                         (int)mmax_pow2_table_f32[_mm_extract_epi16(bits, 6) & 7]);
    return _mm_castsi128_ps(_mm_add_epi32(_mm_slli_epi32(bits, 20), table));
}
MMAX_INLINE void MMAX_(fold)(const mmax_vec *acc, mmax_dvec *out)
{
    for (int k = 0; k < 2; ++k) {
        __m128d low[4], high[4];
        for (int i = 0; i < 4; ++i) {
            const __m128 four = acc[k + 2 * i];
            low[i] = _mm_cvtps_pd(four);
            high[i] = _mm_cvtps_pd(_mm_movehl_ps(four, four));
        }
        out[2 * k] = _mm_add_pd(_mm_add_pd(low[0], low[2]), _mm_add_pd(low[1], low[3]));
        out[2 * k + 1] = _mm_add_pd(_mm_add_pd(high[0], high[2]), _mm_add_pd(high[1], high[3]));
    }
}
MMAX_INLINE float MMAX_(hmax)(__m128 a)
{
    const __m128 two = _mm_max_ps(a, _mm_movehl_ps(a, a));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}
MMAX_INLINE float MMAX_(hmin)(__m128 a)
{
    const __m128 two = _mm_min_ps(a, _mm_movehl_ps(a, a));
    return _mm_cvtss_f32(_mm_min_ss(two, _mm_shuffle_ps(two, two, 1)));
}
#            define mmax_v_hmax(a) MMAX_(hmax)(a)
#            define mmax_v_hmin(a) MMAX_(hmin)(a)
#        endif
#        define mmax_v_pow2(n) MMAX_(pow2)(n)
#        if MMAX_GNUC
/* clang reassociates intrinsics under -ffast-math; what went through here it takes as it is. */
MMAX_INLINE mmax_vec MMAX_(opaque)(mmax_vec a)
{
    __asm__("" : "+x"(a));
    return a;
}
#            define mmax_v_opaque(a) MMAX_(opaque)(a)
#        endif
MMAX_INLINE double MMAX_(d_total)(const mmax_dvec *sum)
{
    const __m128d two = _mm_add_pd(_mm_add_pd(sum[0], sum[2]), _mm_add_pd(sum[1], sum[3]));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

/* ---- NEON ---- */
#    elif defined(MMAX_PASS_NEON)
#        define MMAX_TIER        neon
#        define MMAX_FMA         1
#        define MMAX_DREGS       4
#        define mmax_dvec        float64x2_t
#        define mmax_d_zero()    vdupq_n_f64(0.0)
#        define mmax_d_add(a, b) vaddq_f64(a, b)
#        define mmax_d_sub(a, b) vsubq_f64(a, b)
#        define mmax_d_store(p, a) \
            (vst1q_f64(p, (a)[0]), vst1q_f64((p) + 2, (a)[1]), vst1q_f64((p) + 4, (a)[2]), vst1q_f64((p) + 6, (a)[3]))
#        if MMAX_PASS_DOUBLE
#            define MMAX_I(op)          op##_f64
#            define MMAX_U(op)          op##_u64
#            define MMAX_WIDTH          2
#            define mmax_vec            float64x2_t
#            define mmax_mask           uint64x2_t
#            define mmax_v_bits(a)      vreinterpretq_u64_f64(a)
#            define mmax_v_from_bits(a) vreinterpretq_f64_u64(a)
#            define mmax_v_sign()       vdupq_n_u64((uint64_t)1 << 63)
#            define mmax_v_widen(p)     vcvt_f64_f32(vld1_f32(p))
#        else
#            define MMAX_I(op)          op##_f32
#            define MMAX_U(op)          op##_u32
#            define MMAX_WIDTH          4
#            define mmax_vec            float32x4_t
#            define mmax_mask           uint32x4_t
#            define mmax_v_bits(a)      vreinterpretq_u32_f32(a)
#            define mmax_v_from_bits(a) vreinterpretq_f32_u32(a)
#            define mmax_v_sign()       vdupq_n_u32((uint32_t)1 << 31)
#        endif
#        define mmax_v_set(r)          MMAX_I(vdupq_n)(r)
#        define mmax_v_zero()          MMAX_I(vdupq_n)(0)
#        define mmax_v_load(p)         MMAX_I(vld1q)(p)
#        define mmax_v_store(p, a)     MMAX_I(vst1q)(p, a)
#        define mmax_v_add(a, b)       MMAX_I(vaddq)(a, b)
#        define mmax_v_sub(a, b)       MMAX_I(vsubq)(a, b)
#        define mmax_v_mul(a, b)       MMAX_I(vmulq)(a, b)
#        define mmax_v_fma(a, b, c)    MMAX_I(vfmaq)(c, a, b)
#        define mmax_v_div(a, b)       MMAX_I(vdivq)(a, b)
#        define mmax_v_sqrt(a)         MMAX_I(vsqrtq)(a)
#        define mmax_v_min(a, b)       MMAX_I(vminq)(a, b)
#        define mmax_v_max(a, b)       MMAX_I(vmaxq)(a, b)
#        define mmax_v_abs(a)          MMAX_I(vabsq)(a)
#        define mmax_v_copysign(a, b)  MMAX_I(vbslq)(mmax_v_sign(), b, a)
#        define mmax_v_lt(a, b)        MMAX_I(vcltq)(a, b)
#        define mmax_v_le(a, b)        MMAX_I(vcleq)(a, b)
#        define mmax_v_ne(a, b)        mmax_m_not(MMAX_I(vceqq)(a, b))
#        define mmax_v_nle(a, b)       mmax_m_not(MMAX_I(vcleq)(a, b))
#        define mmax_m_none()          MMAX_U(vdupq_n)(0)
#        define mmax_m_or(a, b)        MMAX_U(vorrq)(a, b)
#        define mmax_m_and(a, b)       MMAX_U(vandq)(a, b)
#        define mmax_v_select(m, a, b) MMAX_I(vbslq)(m, a, b)
#        define mmax_v_keep(m, a)      mmax_v_from_bits(MMAX_U(vandq)(m, mmax_v_bits(a)))
#        define mmax_v_hmax(a)         MMAX_I(vmaxvq)(a)
#        define mmax_v_hmin(a)         MMAX_I(vminvq)(a)
#        define mmax_v_whole(a)        MMAX_I(vrndq)(a)
#        define mmax_v_zip_low(a, b)   MMAX_I(vzip1q)(a, b)
#        define mmax_v_zip_high(a, b)  MMAX_I(vzip2q)(a, b)
#        define mmax_d_zip_low(a, b)   vzip1q_f64(a, b)
#        define mmax_d_zip_high(a, b)  vzip2q_f64(a, b)
#        if MMAX_PASS_DOUBLE
#            define mmax_m_not(m)  vreinterpretq_u64_u32(vmvnq_u32(vreinterpretq_u32_u64(m)))
#            define mmax_m_bits(m) ((unsigned)((vgetq_lane_u64(m, 0) & 1) | (vgetq_lane_u64(m, 1) & 2)))
MMAX_INLINE float64x2_t MMAX_(pow2)(float64x2_t n)
{
    const uint64x2_t bits = vreinterpretq_u64_f64(n);
    uint64x2_t table = vdupq_n_u64(mmax_pow2_table_f64[vgetq_lane_u64(bits, 0) & 7]);
    table = vsetq_lane_u64(mmax_pow2_table_f64[vgetq_lane_u64(bits, 1) & 7], table, 1);
    return vreinterpretq_f64_u64(vaddq_u64(vshlq_n_u64(bits, 49), table));
}
#            define mmax_v_exponent(a) \
                vcvtq_f64_u64(vshrq_n_u64(vsubq_u64(vreinterpretq_u64_f64(a), vdupq_n_u64(MMAX_SQRT_HALF_BITS)), 52))
MMAX_INLINE float64x2_t MMAX_(mantissa)(float64x2_t a)
{
    const uint64x2_t bits = vreinterpretq_u64_f64(a);
    return vreinterpretq_f64_u64(vsubq_u64(
        bits, vandq_u64(vsubq_u64(bits, vdupq_n_u64(MMAX_SQRT_HALF_BITS)), vdupq_n_u64((uint64_t)MMAX_EXPONENT_BITS))));
}
#            define mmax_v_mantissa(a) MMAX_(mantissa)(a)
#        else
#            define mmax_m_not(m)  vmvnq_u32(m)
#            define mmax_m_bits(m) ((unsigned)vaddvq_u32(vandq_u32(m, vld1q_u32(mmax_lane_bits))))
static const uint32_t mmax_lane_bits[4] = {1, 2, 4, 8};
MMAX_INLINE float32x4_t MMAX_(pow2)(float32x4_t n)
{
    /* The table as 32 bytes; entry j starts at byte 4j. */
    const uint8x16x2_t table = {{vreinterpretq_u8_u32(vld1q_u32(mmax_pow2_table_f32)),
                                 vreinterpretq_u8_u32(vld1q_u32(mmax_pow2_table_f32 + 4))}};
    const uint32x4_t bits = vreinterpretq_u32_f32(n);
    const uint32x4_t index =
        vmlaq_u32(vdupq_n_u32(0x03020100), vandq_u32(bits, vdupq_n_u32(7)), vdupq_n_u32(0x04040404));
    const uint32x4_t entry = vreinterpretq_u32_u8(vqtbl2q_u8(table, vreinterpretq_u8_u32(index)));
    return vreinterpretq_f32_u32(vaddq_u32(vshlq_n_u32(bits, 20), entry));
}
MMAX_INLINE void MMAX_(fold)(const mmax_vec *acc, mmax_dvec *out)
{
    MMAX_UNROLL for (int k = 0; k < 2; ++k)
    {
        float64x2_t low[4], high[4];
        MMAX_UNROLL for (int i = 0; i < 4; ++i)
        {
            low[i] = vcvt_f64_f32(vget_low_f32(acc[k + 2 * i]));
            high[i] = vcvt_f64_f32(vget_high_f32(acc[k + 2 * i]));
        }
        out[2 * k] = vaddq_f64(vaddq_f64(low[0], low[2]), vaddq_f64(low[1], low[3]));
        out[2 * k + 1] = vaddq_f64(vaddq_f64(high[0], high[2]), vaddq_f64(high[1], high[3]));
    }
}
#        endif
#        define mmax_v_pow2(n) MMAX_(pow2)(n)
MMAX_INLINE double MMAX_(d_total)(const mmax_dvec *sum)
{
    const float64x2_t two = vaddq_f64(vaddq_f64(sum[0], sum[2]), vaddq_f64(sum[1], sum[3]));
    return vgetq_lane_f64(two, 0) + vgetq_lane_f64(two, 1);
}
MMAX_INLINE mmax_vec MMAX_(hsum)(mmax_vec a)
{
#        if MMAX_PASS_DOUBLE
    return vaddq_f64(a, vextq_f64(a, a, 1));
#        else
    a = vaddq_f32(a, vextq_f32(a, a, 2));
    return vaddq_f32(a, vrev64q_f32(a));
#        endif
}
#        define mmax_v_hsum(a) MMAX_(hsum)(a)
#        if !MMAX_PASS_DOUBLE
MMAX_INLINE void MMAX_(fold_one)(float32x4_t a, mmax_dvec *out)
{
    out[0] = vcvt_f64_f32(vget_low_f32(a));
    out[1] = vcvt_f64_f32(vget_high_f32(a));
    out[2] = out[3] = vdupq_n_f64(0.0);
}
#        endif

/* ---- WebAssembly SIMD128 ---- */
#    elif defined(MMAX_PASS_WASM128)
#        define MMAX_TIER        wasm128
#        define MMAX_FMA         0
#        define MMAX_DREGS       4
#        define mmax_vec         v128_t
#        define mmax_mask        v128_t
#        define mmax_dvec        v128_t
#        define mmax_d_zero()    wasm_f64x2_splat(0.0)
#        define mmax_d_add(a, b) wasm_f64x2_add(a, b)
#        define mmax_d_sub(a, b) wasm_f64x2_sub(a, b)
#        define mmax_d_store(p, a)                                                                           \
            (wasm_v128_store(p, (a)[0]), wasm_v128_store((p) + 2, (a)[1]), wasm_v128_store((p) + 4, (a)[2]), \
             wasm_v128_store((p) + 6, (a)[3]))
#        if MMAX_PASS_DOUBLE
#            define MMAX_I(op)      wasm_f64x2_##op
#            define MMAX_WIDTH      2
#            define mmax_v_widen(p) wasm_f64x2_promote_low_f32x4(wasm_v128_load64_zero(p))
#            define mmax_m_bits(m)  ((unsigned)wasm_i64x2_bitmask(m))
#        else
#            define MMAX_I(op)     wasm_f32x4_##op
#            define MMAX_WIDTH     4
#            define mmax_m_bits(m) ((unsigned)wasm_i32x4_bitmask(m))
#        endif
#        define mmax_v_set(r)          MMAX_I(splat)(r)
#        define mmax_v_zero()          MMAX_I(splat)(0)
#        define mmax_v_load(p)         wasm_v128_load(p)
#        define mmax_v_store(p, a)     wasm_v128_store(p, a)
#        define mmax_v_add(a, b)       MMAX_I(add)(a, b)
#        define mmax_v_sub(a, b)       MMAX_I(sub)(a, b)
#        define mmax_v_mul(a, b)       MMAX_I(mul)(a, b)
#        define mmax_v_fma(a, b, c)    MMAX_I(add)(MMAX_I(mul)(a, b), c)
#        define mmax_v_div(a, b)       MMAX_I(div)(a, b)
#        define mmax_v_sqrt(a)         MMAX_I(sqrt)(a)
#        define mmax_v_min(a, b)       MMAX_I(pmin)(b, a)
#        define mmax_v_max(a, b)       MMAX_I(pmax)(b, a)
#        define mmax_v_abs(a)          MMAX_I(abs)(a)
#        define mmax_v_copysign(a, b)  wasm_v128_or(a, wasm_v128_and(b, mmax_v_set((mmax_real)-0.0)))
#        define mmax_v_lt(a, b)        MMAX_I(lt)(a, b)
#        define mmax_v_le(a, b)        MMAX_I(le)(a, b)
#        define mmax_v_ne(a, b)        MMAX_I(ne)(a, b)
#        define mmax_v_nle(a, b)       wasm_v128_not(MMAX_I(le)(a, b))
#        define mmax_m_none()          wasm_i32x4_splat(0)
#        define mmax_m_or(a, b)        wasm_v128_or(a, b)
#        define mmax_m_and(a, b)       wasm_v128_and(a, b)
#        define mmax_v_select(m, a, b) wasm_v128_bitselect(a, b, m)
#        define mmax_v_keep(m, a)      wasm_v128_and(m, a)
#        if MMAX_PASS_DOUBLE
#            define mmax_v_high(a) wasm_v128_and(a, wasm_i64x2_splat((int64_t)0xfffffffff8000000))
MMAX_INLINE v128_t MMAX_(pow2)(v128_t n)
{
    const v128_t table = wasm_u64x2_make(mmax_pow2_table_f64[wasm_i64x2_extract_lane(n, 0) & 7],
                                         mmax_pow2_table_f64[wasm_i64x2_extract_lane(n, 1) & 7]);
    return wasm_i64x2_add(wasm_i64x2_shl(n, 49), table);
}
#            define mmax_v_exponent(a)                                                                         \
                wasm_f64x2_sub(                                                                                \
                    wasm_v128_or(wasm_u64x2_shr(wasm_i64x2_sub(a, wasm_i64x2_splat(MMAX_SQRT_HALF_BITS)), 52), \
                                 wasm_i64x2_splat(MMAX_INTEGER_BITS)),                                         \
                    wasm_f64x2_splat(MMAX_INTEGER))
#            define mmax_v_mantissa(a)                                                                    \
                wasm_i64x2_sub(a, wasm_v128_and(wasm_i64x2_sub(a, wasm_i64x2_splat(MMAX_SQRT_HALF_BITS)), \
                                                wasm_i64x2_splat(MMAX_EXPONENT_BITS)))
MMAX_INLINE double MMAX_(hmax)(v128_t a)
{
    return wasm_f64x2_extract_lane(wasm_f64x2_pmax(wasm_i64x2_shuffle(a, a, 1, 1), a), 0);
}
MMAX_INLINE double MMAX_(hmin)(v128_t a)
{
    return wasm_f64x2_extract_lane(wasm_f64x2_pmin(wasm_i64x2_shuffle(a, a, 1, 1), a), 0);
}
#        else
#            define mmax_v_high(a) wasm_v128_and(a, wasm_i32x4_splat((int32_t)0xfffff000))
MMAX_INLINE v128_t MMAX_(pow2)(v128_t n)
{
    const v128_t table = wasm_u32x4_make(
        mmax_pow2_table_f32[wasm_i32x4_extract_lane(n, 0) & 7], mmax_pow2_table_f32[wasm_i32x4_extract_lane(n, 1) & 7],
        mmax_pow2_table_f32[wasm_i32x4_extract_lane(n, 2) & 7], mmax_pow2_table_f32[wasm_i32x4_extract_lane(n, 3) & 7]);
    return wasm_i32x4_add(wasm_i32x4_shl(n, 20), table);
}
MMAX_INLINE void MMAX_(fold)(const mmax_vec *acc, mmax_dvec *out)
{
    for (int k = 0; k < 2; ++k) {
        v128_t low[4], high[4];
        for (int i = 0; i < 4; ++i) {
            const v128_t four = acc[k + 2 * i];
            low[i] = wasm_f64x2_promote_low_f32x4(four);
            high[i] = wasm_f64x2_promote_low_f32x4(wasm_i64x2_shuffle(four, four, 1, 1));
        }
        out[2 * k] = wasm_f64x2_add(wasm_f64x2_add(low[0], low[2]), wasm_f64x2_add(low[1], low[3]));
        out[2 * k + 1] = wasm_f64x2_add(wasm_f64x2_add(high[0], high[2]), wasm_f64x2_add(high[1], high[3]));
    }
}
MMAX_INLINE float MMAX_(hmax)(v128_t a)
{
    const v128_t two = wasm_f32x4_pmax(wasm_i32x4_shuffle(a, a, 2, 3, 2, 3), a);
    return wasm_f32x4_extract_lane(wasm_f32x4_pmax(wasm_i32x4_shuffle(two, two, 1, 1, 1, 1), two), 0);
}
MMAX_INLINE float MMAX_(hmin)(v128_t a)
{
    const v128_t two = wasm_f32x4_pmin(wasm_i32x4_shuffle(a, a, 2, 3, 2, 3), a);
    return wasm_f32x4_extract_lane(wasm_f32x4_pmin(wasm_i32x4_shuffle(two, two, 1, 1, 1, 1), two), 0);
}
#        endif
#        define mmax_v_hmax(a) MMAX_(hmax)(a)
#        define mmax_v_hmin(a) MMAX_(hmin)(a)
#        define mmax_v_pow2(n) MMAX_(pow2)(n)
MMAX_INLINE double MMAX_(d_total)(const mmax_dvec *sum)
{
    const v128_t two = wasm_f64x2_add(wasm_f64x2_add(sum[0], sum[2]), wasm_f64x2_add(sum[1], sum[3]));
    return wasm_f64x2_extract_lane(two, 0) + wasm_f64x2_extract_lane(two, 1);
}

/* ---- plain C: a register is one number ---- */
#    else
#        define MMAX_TIER           scalar
#        define MMAX_FMA            MMAX_SCALAR_FMA
#        define MMAX_DREGS          8
#        define MMAX_WIDTH          1
#        define mmax_vec            mmax_real
#        define mmax_mask           int
#        define mmax_dvec           double
#        define mmax_d_zero()       0.0
#        define mmax_d_add(a, b)    ((a) + (b))
#        define mmax_d_sub(a, b)    ((a) - (b))
#        define mmax_d_store(p, a)  ((void)memcpy(p, a, 8 * sizeof(double)))
#        define mmax_v_set(r)       (r)
#        define mmax_v_zero()       ((mmax_real)0)
#        define mmax_v_load(p)      (*(p))
#        define mmax_v_store(p, a)  ((void)(*(p) = (a)))
#        define mmax_v_add(a, b)    ((mmax_real)((a) + (b)))
#        define mmax_v_sub(a, b)    ((mmax_real)((a) - (b)))
#        define mmax_v_mul(a, b)    ((mmax_real)((a) * (b)))
#        define mmax_v_fma(a, b, c) mmax_s_fma(a, b, c)
#        define mmax_v_div(a, b)    ((mmax_real)((a) / (b)))
#        define mmax_v_widen(p)     ((double)*(p))
#        define mmax_v_sqrt(a)      mmax_s_sqrt(a)
/* Under -ffinite-math-only gcc's x86 back end compares a register with memory in a way that is wrong for NaN, whatever
 * the pragma says; two registers it compares right. */
#        if MMAX_X86_FINITE
#            define MMAX_REGISTERS(a, b) __asm__("" : "+x"(a), "+x"(b))
#        else
#            define MMAX_REGISTERS(a, b) ((void)0)
#        endif
#        define MMAX_COMPARE(name, result, condition)                \
            MMAX_INLINE result MMAX_(name)(mmax_real a, mmax_real b) \
            {                                                        \
                MMAX_REGISTERS(a, b);                                \
                return condition;                                    \
            }
MMAX_COMPARE(min, mmax_real, a < b ? a : b)
MMAX_COMPARE(max, mmax_real, a > b ? a : b)
MMAX_COMPARE(lt, int, a < b)
MMAX_COMPARE(le, int, a <= b)
MMAX_COMPARE(ne, int, a != b)
MMAX_COMPARE(nle, int, !(a <= b))
#        define mmax_v_min(a, b) MMAX_(min)(a, b)
#        define mmax_v_max(a, b) MMAX_(max)(a, b)
#        if MMAX_PASS_DOUBLE
#            define MMAX_SIGN     ((uint64_t)1 << 63)
#            define MMAX_LOW_BITS ((uint64_t)0x7ffffff)
#        else
#            define MMAX_SIGN     ((uint32_t)1 << 31)
#            define MMAX_LOW_BITS ((uint32_t)0xfff)
#        endif
MMAX_INLINE MMAX_BITS MMAX_(bits)(mmax_real a)
{
    MMAX_BITS bits;
    memcpy(&bits, &a, sizeof bits);
    return bits;
}
MMAX_INLINE mmax_real MMAX_(from_bits)(MMAX_BITS bits)
{
    mmax_real a;
    memcpy(&a, &bits, sizeof a);
    return a;
}
#        define mmax_v_abs(a)          MMAX_(from_bits)(MMAX_(bits)(a) & ~MMAX_SIGN)
#        define mmax_v_copysign(a, b)  MMAX_(from_bits)(MMAX_(bits)(a) | (MMAX_(bits)(b) & MMAX_SIGN))
#        define mmax_v_high(a)         MMAX_(from_bits)(MMAX_(bits)(a) & ~MMAX_LOW_BITS)
#        define mmax_v_lt(a, b)        MMAX_(lt)(a, b)
#        define mmax_v_le(a, b)        MMAX_(le)(a, b)
#        define mmax_v_ne(a, b)        MMAX_(ne)(a, b)
#        define mmax_v_nle(a, b)       MMAX_(nle)(a, b)
#        define mmax_m_none()          0
#        define mmax_m_or(a, b)        ((int)(a) | (int)(b))
#        define mmax_m_and(a, b)       ((int)(a) & (int)(b))
#        define mmax_m_bits(m)         ((unsigned)(m))
#        define mmax_v_select(m, a, b) ((m) ? (a) : (b))
#        define mmax_v_keep(m, a)      ((m) ? (a) : (mmax_real)0)
#        define mmax_v_hmax(a)         (a)
#        define mmax_v_hmin(a)         (a)
MMAX_INLINE mmax_real MMAX_(pow2)(mmax_real n)
{
    const MMAX_BITS bits = MMAX_(bits)(n);
#        if MMAX_PASS_DOUBLE
    return MMAX_(from_bits)((bits << 49) + mmax_pow2_table_f64[bits & 7]);
#        else
    return MMAX_(from_bits)((bits << 20) + mmax_pow2_table_f32[bits & 7]);
#        endif
}
#        define mmax_v_pow2(n)     MMAX_(pow2)(n)
#        define mmax_v_exponent(a) ((double)(int)((MMAX_(bits)(a) - MMAX_SQRT_HALF_BITS) >> 52))
#        define mmax_v_mantissa(a) \
            MMAX_(from_bits)(MMAX_(bits)(a) - ((MMAX_(bits)(a) - MMAX_SQRT_HALF_BITS) & (uint64_t)MMAX_EXPONENT_BITS))
#        if MMAX_EXCESS_DIGITS || (defined(__clang__) && defined(__FAST_MATH__))
/* Drops the excess precision of a wider evaluation, and stops the rewriting of (a + b) - b. */
MMAX_INLINE mmax_real MMAX_(opaque)(mmax_real a)
{
    volatile mmax_real narrow = a;
    return narrow;
}
#            define mmax_v_opaque(a) MMAX_(opaque)(a)
#        endif
#        if !MMAX_PASS_DOUBLE
MMAX_INLINE void MMAX_(fold)(const float *acc, double *out)
{
    for (int lane = 0; lane < 8; ++lane) {
        out[lane] = ((double)acc[lane] + (double)acc[lane + 16]) + ((double)acc[lane + 8] + (double)acc[lane + 24]);
    }
}
#        endif
MMAX_INLINE double MMAX_(d_total)(const double *sum)
{
    const double four[4] = {sum[0] + sum[4], sum[1] + sum[5], sum[2] + sum[6], sum[3] + sum[7]};
    return (four[0] + four[2]) + (four[1] + four[3]);
}
#    endif

/* ---- what follows from the block above ---- */
#    if !defined(mmax_v_add_where)
#        define mmax_v_add_where(m, a, b)    mmax_v_add(a, mmax_v_keep(m, b))    /* a + b where m, else a */
#        define mmax_v_fma_where(m, a, b, c) mmax_v_fma(mmax_v_keep(m, a), b, c) /* a b + c where m, else c; finite */
#    endif
#    define MMAX_REGS (MMAX_LANES / MMAX_WIDTH)
#    if MMAX_WIDTH == 1
#        define mmax_v_load_part(p, count, fill) (fill)
#        define mmax_v_store_part(p, count, a)   ((void)(a))
#        define mmax_v_first(a, count)           (a)
#    endif
/* Plain C, the instruction sets without fma, and all where size counts (-Os) have the same bits by simpler ways: speed
 * is not the aim there. */
#    if defined(__OPTIMIZE_SIZE__)
#        define MMAX_FAST 0
#    else
#        define MMAX_FAST (MMAX_FMA && MMAX_WIDTH > 1)
#    endif
/* Loops over the registers of a block are unrolled where the registers of the machine can hold its partial sums; what
 * is left over of a row, which they do once, by two steps at most. */
#    if MMAX_FAST
#        define MMAX_UNROLL_REGS  MMAX_UNROLL
#        define MMAX_EACH_REST(k) MMAX_UNROLL_TWICE for (int k = 0; k < MMAX_REGS; ++k)
#    else
#        define MMAX_UNROLL_REGS
#        define MMAX_EACH_REST(k) for (int k = 0; k < MMAX_REGS; ++k)
#    endif
#    define MMAX_EACH_OF(k, count) MMAX_UNROLL_REGS for (int k = 0; k < (count); ++k)
#    define MMAX_EACH(k)           MMAX_EACH_OF(k, MMAX_REGS)
#    define MMAX_EACH_D(j)         MMAX_UNROLL for (int j = 0; j < MMAX_DREGS; ++j)

#    if !defined(mmax_v_load_part)
/* Machines without masked loads and stores go through a small array. */
MMAX_INLINE mmax_vec MMAX_(load_part)(const mmax_real *p, ptrdiff_t count, mmax_vec fill)
{
    mmax_real lanes[MMAX_WIDTH];
    mmax_v_store(lanes, fill);
    for (ptrdiff_t i = 0; i < count; ++i) {
        lanes[i] = p[i];
    }
    return mmax_v_load(lanes);
}
MMAX_INLINE void MMAX_(store_part)(mmax_real *p, ptrdiff_t count, mmax_vec a)
{
    mmax_real lanes[MMAX_WIDTH];
    mmax_v_store(lanes, a);
    for (ptrdiff_t i = 0; i < count; ++i) {
        p[i] = lanes[i];
    }
}
#        define mmax_v_load_part(p, count, fill) MMAX_(load_part)(p, count, fill)
#        define mmax_v_store_part(p, count, a)   MMAX_(store_part)(p, count, a)
#        define MMAX_PARTS_CHEAP                 0
MMAX_INLINE mmax_vec MMAX_(first)(mmax_vec a, ptrdiff_t count)
{
    mmax_real lanes[MMAX_WIDTH];
    mmax_v_store(lanes, a);
    return MMAX_(load_part)(lanes, count, mmax_v_zero());
}
#        define mmax_v_first(a, count) MMAX_(first)(a, count)
#    else
#        define MMAX_PARTS_CHEAP (MMAX_WIDTH > 1) /* cheaper than a question whether there is one */
#    endif

/* A product that is to be added to something */
#    if !MMAX_CLANG_FAST
MMAX_INLINE mmax_vec MMAX_(product)(mmax_vec a)
{
    MMAX_KEEP(a);
    return a;
}
#    endif
#    define mmax_v_product(a, b) MMAX_(product)(mmax_v_mul(a, b))
/* What is added to make +0 of -0: -funsafe-math-optimizations lets clang drop a 0 that it knows. */
#    define mmax_v_plus_zero() MMAX_(product)(mmax_v_zero())

/* The three above for any count, the last for any above 0; one that is known to be MMAX_WIDTH costs nothing. */
MMAX_INLINE mmax_vec MMAX_(load_upto)(const mmax_real *p, ptrdiff_t count, mmax_vec fill)
{
    return count >= MMAX_WIDTH ? mmax_v_load(p) : count <= 0 ? fill : mmax_v_load_part(p, count, fill);
}
MMAX_INLINE void MMAX_(store_upto)(mmax_real *p, ptrdiff_t count, mmax_vec a)
{
    if (count >= MMAX_WIDTH) {
        mmax_v_store(p, a);
    } else {
        mmax_v_store_part(p, count, a);
    }
}
MMAX_INLINE mmax_vec MMAX_(first_upto)(mmax_vec a, ptrdiff_t count)
{
    return count >= MMAX_WIDTH ? a : mmax_v_first(a, count);
}
/* The last register of a short row, with 1 to MMAX_WIDTH entries. */
MMAX_INLINE mmax_vec MMAX_(load_last)(const mmax_real *p, ptrdiff_t count, mmax_vec fill)
{
    return MMAX_PARTS_CHEAP ? mmax_v_load_part(p, count, fill) : MMAX_(load_upto)(p, count, fill);
}
MMAX_INLINE mmax_vec MMAX_(first_last)(mmax_vec a, ptrdiff_t count)
{
    return MMAX_PARTS_CHEAP ? mmax_v_first(a, count) : MMAX_(first_upto)(a, count);
}

/* ---- asking for lines before they are needed; k is the number of a register in its block ---- */
#    define MMAX_LINE_REGISTERS (64 / (MMAX_WIDTH * (int)sizeof(mmax_real)))
#    define MMAX_LATER          (1024 / sizeof(mmax_real)) /* entries from what is stored to what is asked for */
MMAX_INLINE void MMAX_(fetch)(const mmax_real *p, int k)
{
    if (MMAX_FAST && k % MMAX_LINE_REGISTERS == 0) {
        mmax_prefetch(p);
    }
}
/* `later` entries from p, where no array may be: nothing is read there. */
MMAX_INLINE void MMAX_(fetch_after)(const mmax_real *p, size_t later, int k)
{
    if (MMAX_FAST && k % MMAX_LINE_REGISTERS == 0) {
        mmax_prefetch((const void *)((uintptr_t)(const void *)p + later * sizeof(mmax_real)));
    }
}
/* Of rows two lines apart, which Zen 5 does not foresee where a line takes one load: those `later` entries from x. */
MMAX_INLINE void MMAX_(fetch_two_lines)(const mmax_real *x, size_t x_stride, size_t rows, size_t later)
{
    const size_t line = 64 / sizeof(mmax_real);
    if (MMAX_UNLIKELY(x_stride == 2 * line)) {
        for (size_t i = 0; i < 2 * rows; ++i) {
            MMAX_(fetch_after)(x, later + i * line, 0);
        }
    }
}
/* Where what is stored to may be in the first cache: stores of half a line wait for it all the same. */
#    define MMAX_LATER_AT_LEAST (MMAX_LINE_REGISTERS > 1 ? MMAX_LATER : 0)
MMAX_INLINE void MMAX_(fetch_later)(const mmax_real *y, int k)
{
    if (MMAX_LATER_AT_LEAST > 0) {
        MMAX_(fetch_after)(y, MMAX_LATER, k);
    }
}

/* What `active` chooses, else 0. With AVX-512 compilers load under the mask, and such a load waits for what the mask is
 * made of: asked for here, its line comes from memory at the same time. */
MMAX_INLINE mmax_vec MMAX_(load_active)(const mmax_real *p, ptrdiff_t count, mmax_vec fill, mmax_mask active)
{
    if (MMAX_LINE_REGISTERS == 1) {
        mmax_prefetch(p);
    }
    return mmax_v_keep(active, MMAX_(load_upto)(p, count, fill));
}

#    if !defined(mmax_v_hsum)
MMAX_INLINE mmax_vec MMAX_(hsum)(mmax_vec a)
{
    mmax_real lanes[MMAX_WIDTH];
    mmax_v_store(lanes, a);
    for (int half = MMAX_WIDTH / 2; half > 0; half /= 2) {
        for (int k = 0; k < half; ++k) {
            lanes[k] = lanes[k] + lanes[k + half];
        }
    }
    return mmax_v_set(lanes[0]);
}
#        define mmax_v_hsum(a) MMAX_(hsum)(a)
#    endif

#    if defined(mmax_v_zip_low)
/* Lane i of each register, in its order, becomes register i. */
MMAX_INLINE void MMAX_(turn_square)(mmax_vec *square)
{
    MMAX_UNROLL for (int width = 1; width < MMAX_WIDTH; width *= 2)
    {
        mmax_vec zipped[MMAX_WIDTH];
        MMAX_UNROLL for (int i = 0; i < MMAX_WIDTH / 2; ++i)
        {
            zipped[2 * i] = mmax_v_zip_low(square[i], square[i + MMAX_WIDTH / 2]);
            zipped[2 * i + 1] = mmax_v_zip_high(square[i], square[i + MMAX_WIDTH / 2]);
        }
        MMAX_UNROLL for (int i = 0; i < MMAX_WIDTH; ++i) { square[i] = zipped[i]; }
    }
}
#    endif

/* ==== kernels ==== */

/* ---- numbers ---- */
#    if MMAX_FMA && MMAX_CLANG_FAST
#        define mmax_s_dfma(a, b, c) mmax_fused(a, b, c)
#    elif MMAX_FMA && MMAX_GNUC
#        define mmax_s_dfma(a, b, c) __builtin_fma(a, b, c)
#    elif MMAX_FMA
#        define mmax_s_dfma(a, b, c) fma(a, b, c)
#    else
#        define mmax_s_dfma(a, b, c) (mmax_product(a, b) + (c))
#    endif
#    if MMAX_PASS_DOUBLE
#        define mmax_s_fma(a, b, c)      mmax_s_dfma(a, b, c)
#        define mmax_s_sqrt(a)           mmax_f64_sqrt(a)
#        define MMAX_REAL_MAX            DBL_MAX
#        define MMAX_SAFE                1e60 /* its cube is far from MMAX_REAL_MAX */
#        define MMAX_REAL_MIN            DBL_MIN
#        define MMAX_REAL_EPSILON        DBL_EPSILON
#        define mmax_from_bits(bits)     mmax_f64_from_bits(bits)
#        define MMAX_NAN_BITS            0x7ff8000000000000
#        define MMAX_MASK_BITS           0xfff0000000000000
#        define MMAX_REAL_MIN_ROOT       1.4916681462400413e-154 /* 2^-511 */
#        define MMAX_TINY                MMAX_TWO_TO_MINUS_64
#        define mmax_is_masked(a)        mmax_f64_is_masked(a)
#        define mmax_toward_minus_one(a) mmax_f64_toward_minus_one(a)
#        define mmax_toward_zero(a)      mmax_f64_toward_zero(a)
#        define mmax_real_floor(a)       (a)
#        define mmax_real_ceil(a)        (a)
#        define mmax_is_nan(a)           mmax_f64_is_nan(a)
#        define mmax_is_finite(a)        mmax_f64_is_finite(a)
#        define mmax_is_within(a, most)  mmax_f64_is_within(a, most)
#    else
#        if MMAX_FMA && MMAX_GNUC
#            define mmax_s_fma(a, b, c) __builtin_fmaf(a, b, c)
#        elif MMAX_FMA
#            define mmax_s_fma(a, b, c) fmaf(a, b, c)
#        else
#            define mmax_s_fma(a, b, c) ((float)((float)((a) * (b)) + (c)))
#        endif
#        define mmax_s_sqrt(a)           ((float)mmax_f64_sqrt(a))
#        define MMAX_REAL_MAX            FLT_MAX
#        define MMAX_SAFE                1e9f
#        define MMAX_REAL_MIN            FLT_MIN
#        define MMAX_REAL_EPSILON        FLT_EPSILON
#        define mmax_from_bits(bits)     mmax_f32_from_bits(bits)
#        define MMAX_NAN_BITS            0x7fc00000
#        define MMAX_MASK_BITS           0xff800000
#        define MMAX_REAL_MIN_ROOT       1.0842021724855044e-19f /* 2^-63 */
#        define MMAX_TINY                MMAX_TWO_TO_MINUS_64
#        define mmax_is_masked(a)        mmax_f32_is_masked(a)
#        define mmax_toward_minus_one(a) mmax_f32_toward_minus_one(a)
#        define mmax_toward_zero(a)      mmax_f32_toward_zero(a)
#        define mmax_real_floor(a)       mmax_f32_from_bits(mmax_f32_floor(a))
#        define mmax_real_ceil(a)        mmax_f32_from_bits(mmax_f32_floor(-(a)) ^ 0x80000000)
#        define mmax_is_nan(a)           mmax_f32_is_nan(a)
#        define mmax_is_finite(a)        mmax_f32_is_finite(a)
#        define mmax_is_within(a, most)  mmax_f32_is_within(a, most)
#    endif
#    define MMAX_QUIET_NAN mmax_from_bits(MMAX_NAN_BITS)
#    define MMAX_MASK      mmax_from_bits(MMAX_MASK_BITS)

/* The nearest number that the type holds. */
MMAX_INLINE double MMAX_(in_range)(double a)
{
    return a > MMAX_REAL_MAX ? MMAX_REAL_MAX : a < -MMAX_REAL_MAX ? -MMAX_REAL_MAX : a;
}

/* ---- sums: MMAX_LANES partial sums over at most MMAX_CHUNK entries, then 8 doubles (f64: with their errors) ---- */
#    define MMAX_PAIR      (2 * MMAX_LANES)
#    define MMAX_SHORT     (2 * MMAX_PAIR) /* rows of at most so many entries go in groups */
#    define MMAX_CHUNK     (8 * MMAX_LANES)
#    define MMAX_EXP_CHUNK (8 * MMAX_PAIR)
/* gp's sums have half as many lanes: with AVX-512 eight of them take eight registers. A row of MMAX_EXP_CHUNK entries
 * fits into an empty MMAX_CALL_CHUNK. */
#    define MMAX_CALL_LANES  (MMAX_LANES / 2)
#    define MMAX_CALL_REGS   (MMAX_CALL_LANES / MMAX_WIDTH)
#    define MMAX_CALL_BLOCKS 32 /* additions a lane */
#    define MMAX_CALL_CHUNK  (MMAX_CALL_BLOCKS * MMAX_CALL_LANES)
#    define MMAX_BLOCK       (8 * MMAX_CHUNK)

typedef struct MMAX_(sum) {
    mmax_dvec sum[MMAX_DREGS];
#    if MMAX_PASS_DOUBLE
    mmax_dvec error[MMAX_DREGS];
#    endif
} MMAX_(sum);

MMAX_INLINE void MMAX_(sum_clear)(MMAX_(sum) * total)
{
    MMAX_EACH_D(j) { total->sum[j] = mmax_d_zero(); }
#    if MMAX_PASS_DOUBLE
    MMAX_EACH_D(j) { total->error[j] = mmax_d_zero(); }
#    endif
}

#    if MMAX_PASS_DOUBLE
/* Knuth's TwoSum: a + b; what the addition rounds away is added to the error. */
MMAX_INLINE mmax_dvec MMAX_(two_sum)(mmax_dvec a, mmax_dvec b, mmax_dvec *error)
{
    const mmax_dvec sum = mmax_d_add(a, b), shadow = mmax_d_sub(sum, a);
    const mmax_dvec lost = mmax_d_add(mmax_d_sub(a, mmax_d_sub(sum, shadow)), mmax_d_sub(b, shadow));
    *error = mmax_d_add(*error, lost);
    return sum;
}
#    endif

MMAX_INLINE void MMAX_(sum_add)(MMAX_(sum) * total, const mmax_vec *lanes)
{
#    if MMAX_PASS_DOUBLE
    /* The first 8 lanes and then the other 8 */
    for (int half = 0; half < 2; ++half) {
        MMAX_EACH_D(j)
        {
            total->sum[j] = MMAX_(two_sum)(total->sum[j], lanes[half * MMAX_DREGS + j], &total->error[j]);
        }
    }
#    else
    mmax_dvec part[MMAX_DREGS];
    MMAX_(fold)(lanes, part);
    MMAX_EACH_D(j) { total->sum[j] = mmax_d_add(total->sum[j], part[j]); }
#    endif
}

/* The same for lanes that are small beside the sum: in f32 the first half of them is added to the other first. */
MMAX_INLINE void MMAX_(sum_add_small)(MMAX_(sum) * total, const mmax_vec *lanes)
{
#    if MMAX_PASS_DOUBLE
    MMAX_EACH_D(j) { total->error[j] = mmax_d_add(total->error[j], mmax_d_add(lanes[j], lanes[MMAX_DREGS + j])); }
#    elif MMAX_FAST && MMAX_WIDTH >= 8
    mmax_dvec part[MMAX_DREGS], more[MMAX_DREGS];
    MMAX_(fold_one)(mmax_v_add(lanes[0], lanes[MMAX_REGS / 2]), part);
    MMAX_UNROLL for (int k = 1; k < MMAX_REGS / 2; ++k)
    {
        MMAX_(fold_one)(mmax_v_add(lanes[k], lanes[MMAX_REGS / 2 + k]), more);
        MMAX_EACH_D(j) { part[j] = mmax_d_add(part[j], more[j]); }
    }
    MMAX_EACH_D(j) { total->sum[j] = mmax_d_add(total->sum[j], part[j]); }
#    else
    mmax_vec half[MMAX_REGS];
    MMAX_EACH(k)
    {
        half[k] = 2 * k < MMAX_REGS ? mmax_v_add(lanes[k], lanes[(MMAX_REGS / 2 + k) % MMAX_REGS]) : mmax_v_zero();
    }
    MMAX_(sum_add)(total, half);
#    endif
}

/* The same for several sums at once, out of line: code size counts where they are many. */
MMAX_STATIC void MMAX_(sums_add)(MMAX_(sum) * totals, mmax_vec (*lanes)[MMAX_REGS], int count)
{
    for (int i = 0; i < count; ++i) {
        MMAX_(sum_add)(&totals[i], lanes[i]);
    }
}

/* The same of MMAX_CALL_LANES, which are cleared: the others would add 0. */
MMAX_STATIC void MMAX_(sums_take)(MMAX_(sum) * totals, mmax_vec (*lanes)[MMAX_REGS], int count)
{
    for (int i = 0; i < count; ++i) {
        MMAX_(sum) *const total = &totals[i];
#    if MMAX_PASS_DOUBLE
        MMAX_EACH_D(j) { total->sum[j] = MMAX_(two_sum)(total->sum[j], lanes[i][j], &total->error[j]); }
#    elif MMAX_CALL_REGS == 1
        mmax_dvec part[MMAX_DREGS];
        MMAX_(fold_one)(lanes[i][0], part);
        MMAX_EACH_D(j) { total->sum[j] = mmax_d_add(total->sum[j], part[j]); }
#    else
        MMAX_(sum_add)(total, lanes[i]);
#    endif
        MMAX_EACH_OF(k, MMAX_CALL_REGS) { lanes[i][k] = mmax_v_zero(); }
    }
}

/* total = total * factor + part; the factor is a power of two. */
MMAX_RARE void MMAX_(sum_join)(MMAX_(sum) * total, const MMAX_(sum) * part, double factor)
{
    double scaled[sizeof *total / sizeof(double)];
    memcpy(scaled, total, sizeof scaled);
    for (size_t j = 0; j < sizeof scaled / sizeof scaled[0]; ++j) {
        scaled[j] = mmax_product(scaled[j], factor);
    }
    memcpy(total, scaled, sizeof scaled);
    MMAX_EACH_D(j)
    {
#    if MMAX_PASS_DOUBLE
        total->error[j] = mmax_d_add(total->error[j], part->error[j]);
        total->sum[j] = MMAX_(two_sum)(total->sum[j], part->sum[j], &total->error[j]);
#    else
        total->sum[j] = mmax_d_add(total->sum[j], part->sum[j]);
#    endif
    }
}

/* The sum of all; f64: *lost is what its rounding takes off. */
MMAX_INLINE double MMAX_(sum_parts)(const MMAX_(sum) * total, double *lost)
{
#    if MMAX_PASS_DOUBLE
    MMAX_LINE double sum[8];
    double error, whole;
    mmax_d_store(sum, total->sum);
    error = MMAX_(d_total)(total->error);
    for (int half = 4; half > 0; half /= 2) {
        for (int j = 0; j < half; ++j) {
            MMAX_ADD_EXACTLY(sum[j], error, sum[j + half]);
        }
    }
    whole = sum[0] + error;
    *lost = error - (whole - sum[0]);
    return whole;
#    else
    *lost = 0;
    return MMAX_(d_total)(total->sum);
#    endif
}
MMAX_INLINE double MMAX_(sum_total)(const MMAX_(sum) * total)
{
    double lost;
    return MMAX_(sum_parts)(total, &lost);
}

MMAX_INLINE void MMAX_(sums_clear)(MMAX_(sum) * sums, int count)
{
    for (int i = 0; i < count; ++i) {
        MMAX_(sum_clear)(&sums[i]);
    }
}

/* ---- walking over a row ----
 * step(at, left, k, part) handles one register: the entries from `at`, of which `left` exist. Whole blocks of
 * MMAX_LANES come first, unrolled over the registers k of a block, with a `left` that the compiler knows; then
 * register by register what is left over.
 */
#    define MMAX_SWEEP(n, step) MMAX_SWEEP_BY(MMAX_REGS, n, 1, step)
/* The same by blocks of another number of registers; `rest` says whether anything may be left over. */
#    define MMAX_SWEEP_BY(registers, n, rest, step)                                          \
        do {                                                                                 \
            size_t at_ = 0;                                                                  \
            for (; at_ + (registers)*MMAX_WIDTH <= (n); at_ += (registers)*MMAX_WIDTH) {     \
                MMAX_EACH_OF(k_, registers)                                                  \
                {                                                                            \
                    step(at_ + (size_t)(k_ * MMAX_WIDTH), (ptrdiff_t)MMAX_WIDTH, k_, block_) \
                }                                                                            \
            }                                                                                \
            for (; (rest) && at_ < (n); at_ += MMAX_WIDTH) {                                 \
                step(at_, (ptrdiff_t)((n)-at_), 0, rest_)                                    \
            }                                                                                \
        } while (0)

#    define MMAX_MOST_SUMS 8
#    define MMAX_LANES_CLEAR(lanes, sum_count)                   \
        MMAX_UNROLL for (int i_ = 0; i_ < MMAX_MOST_SUMS; ++i_)  \
        {                                                        \
            if (i_ < (sum_count)) {                              \
                MMAX_EACH(k_) { lanes[i_][k_] = mmax_v_zero(); } \
            }                                                    \
        }
/* Copies, because what a call is handed the address of cannot stay in registers. */
#    define MMAX_LANES_FLUSH(sums, lanes, sum_count)                 \
        if ((sum_count) == 1) {                                      \
            MMAX_(sum_add)(sums, lanes[0]);                          \
        } else {                                                     \
            mmax_vec copy_[MMAX_MOST_SUMS][MMAX_REGS];               \
            MMAX_UNROLL for (int i_ = 0; i_ < MMAX_MOST_SUMS; ++i_)  \
            {                                                        \
                if (i_ < (sum_count)) {                              \
                    MMAX_EACH(k_) { copy_[i_][k_] = lanes[i_][k_]; } \
                }                                                    \
            }                                                        \
            MMAX_(sums_add)(sums, copy_, sum_count);                 \
        }

/* The same with sums: the step adds to lanes_##part[i][k] what goes to sums[i]. */
#    define MMAX_SWEEP_SUM(n, sums, sum_count, step)                                     \
        do {                                                                             \
            for (size_t chunk_ = 0; chunk_ < (n); chunk_ += MMAX_CHUNK) {                \
                const size_t end_ = (n)-chunk_ < MMAX_CHUNK ? (n) : chunk_ + MMAX_CHUNK; \
                mmax_vec lanes_all_[MMAX_MOST_SUMS][MMAX_REGS];                          \
                MMAX_LANES_CLEAR(lanes_all_, sum_count)                                  \
                MMAX_SWEEP_LANES(chunk_, end_, MMAX_REGS, step)                          \
                MMAX_LANES_FLUSH(sums, lanes_all_, sum_count)                            \
            }                                                                            \
        } while (0)
/* The entries of a chunk; also in what is left over, register k takes part in the sums of register k % registers. */
#    define MMAX_SWEEP_LANES(from, end, registers, step)                                                               \
        {                                                                                                              \
            size_t at_ = (from);                                                                                       \
            for (; at_ + MMAX_LANES <= (end); at_ += MMAX_LANES) {                                                     \
                MMAX_EACH(k_) { step(at_ + (size_t)(k_ * MMAX_WIDTH), (ptrdiff_t)MMAX_WIDTH, k_ % (registers), all_) } \
            }                                                                                                          \
            if (at_ < (end)) {                                                                                         \
                MMAX_EACH(k_)                                                                                          \
                {                                                                                                      \
                    const size_t from_ = at_ + (size_t)(k_ * MMAX_WIDTH);                                              \
                    if (from_ < (end)) {                                                                               \
                        step(from_, (ptrdiff_t)((end)-from_), k_ % (registers), all_)                                  \
                    }                                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
        }

/* The same for the rows of a call, in lanes of `on` that go to its sums after MMAX_CALL_BLOCKS additions: eight sums of
 * a short row would take longer than its entries.
 */
#    define MMAX_CALL_BLOCKS_OF(count)   (((count) + MMAX_CALL_LANES - 1) / MMAX_CALL_LANES)
#    define MMAX_CALL_IS_FULL(on, count) ((on)->blocks + MMAX_CALL_BLOCKS_OF(count) > MMAX_CALL_BLOCKS)
#    define MMAX_CALL_FLUSH(on, sum_count)                        \
        do {                                                      \
            MMAX_(sums_take)((on)->sums, (on)->lanes, sum_count); \
            (on)->blocks = 0;                                     \
        } while (0)
/* Register k of the lanes to and from those of another array */
#    define MMAX_CALL_LOAD(lanes_there, on, k, sum_count) \
        MMAX_UNROLL for (int i_ = 0; i_ < (sum_count); ++i_) { lanes_there[i_][0] = (on)->lanes[i_][k]; }
#    define MMAX_CALL_STORE(lanes_there, on, k, sum_count) \
        MMAX_UNROLL for (int i_ = 0; i_ < (sum_count); ++i_) { (on)->lanes[i_][k] = lanes_there[i_][0]; }
/* Register by register of the lanes, so that the eight sums of one stay in registers. */
#    define MMAX_SWEEP_ON(n, on, sum_count, step)                                                  \
        do {                                                                                       \
            for (size_t chunk_ = 0; chunk_ < (n); chunk_ += MMAX_CALL_CHUNK) {                     \
                const size_t end_ = (n)-chunk_ < MMAX_CALL_CHUNK ? (n) : chunk_ + MMAX_CALL_CHUNK; \
                if (MMAX_CALL_IS_FULL(on, end_ - chunk_)) {                                        \
                    MMAX_CALL_FLUSH(on, sum_count);                                                \
                }                                                                                  \
                (on)->blocks += MMAX_CALL_BLOCKS_OF(end_ - chunk_);                                \
                for (size_t k_ = 0; k_ < MMAX_CALL_REGS; ++k_) {                                   \
                    size_t at_ = chunk_ + k_ * MMAX_WIDTH;                                         \
                    mmax_vec lanes_strip_[MMAX_MOST_SUMS][MMAX_REGS];                              \
                    MMAX_CALL_LOAD(lanes_strip_, on, k_, sum_count)                                \
                    for (; at_ + MMAX_WIDTH <= end_; at_ += MMAX_CALL_LANES) {                     \
                        step(at_, (ptrdiff_t)MMAX_WIDTH, 0, strip_)                                \
                    }                                                                              \
                    if (at_ < end_) {                                                              \
                        step(at_, (ptrdiff_t)(end_ - at_), 0, strip_)                              \
                    }                                                                              \
                    MMAX_CALL_STORE(lanes_strip_, on, k_, sum_count)                               \
                }                                                                                  \
            }                                                                                      \
        } while (0)

/* The same for `rows` short rows, register by register of all: step(r, at, left, lanes, k) adds to lanes[i][k]. */
#    define MMAX_SWEEP_ROWS(rows, n, on, sum_count, step)                                       \
        do {                                                                                    \
            const size_t blocks_ = MMAX_CALL_BLOCKS_OF(n);                                      \
            for (size_t begun_ = 0, end_; begun_ < (rows); begun_ = end_) {                     \
                size_t fit_ = (MMAX_CALL_BLOCKS - (on)->blocks) / blocks_;                      \
                if (fit_ == 0) {                                                                \
                    MMAX_CALL_FLUSH(on, sum_count);                                             \
                    fit_ = MMAX_CALL_BLOCKS / blocks_;                                          \
                }                                                                               \
                end_ = (rows)-begun_ < fit_ ? (rows) : begun_ + fit_;                           \
                (on)->blocks += (end_ - begun_) * blocks_;                                      \
                for (size_t k_ = 0; k_ < MMAX_CALL_REGS && k_ * MMAX_WIDTH < (n); ++k_) {       \
                    mmax_vec strip_[MMAX_MOST_SUMS][MMAX_REGS];                                 \
                    MMAX_CALL_LOAD(strip_, on, k_, sum_count)                                   \
                    for (size_t r_ = begun_; r_ < end_; ++r_) {                                 \
                        for (size_t at_ = k_ * MMAX_WIDTH; at_ < (n); at_ += MMAX_CALL_LANES) { \
                            step(r_, at_, (ptrdiff_t)((n)-at_), strip_, 0)                      \
                        }                                                                       \
                    }                                                                           \
                    MMAX_CALL_STORE(strip_, on, k_, sum_count)                                  \
                }                                                                               \
            }                                                                                   \
        } while (0)

/* The same by pairs of entries MMAX_LANES apart: step(at, left) adds to terms_[i], which then goes to sums[i]. Half as
 * long a chain of additions. Of rows of one chunk totals[i] becomes what MMAX_(tree_total) makes of it. */
#    define MMAX_SWEEP_PAIRS(n, sums, sum_count, totals, step)                                   \
        do {                                                                                     \
            for (size_t chunk_ = 0; chunk_ < (n); chunk_ += MMAX_EXP_CHUNK) {                    \
                const size_t end_ = (n)-chunk_ < MMAX_EXP_CHUNK ? (n) : chunk_ + MMAX_EXP_CHUNK; \
                mmax_vec lanes_[MMAX_MOST_SUMS][MMAX_REGS];                                      \
                MMAX_PAIR_LANES(chunk_, end_, 1, sum_count, step)                                \
                for (int i_ = 0; i_ < (sum_count) && (n) <= MMAX_EXP_CHUNK; ++i_) {              \
                    (totals)[i_] = MMAX_(tree_total)(lanes_[i_]);                                \
                }                                                                                \
                MMAX_LANES_FLUSH(sums, lanes_, sum_count)                                        \
            }                                                                                    \
        } while (0)
/* lanes_ of the entries of a chunk */
#    define MMAX_PAIR_LANES(from, end, rest, sum_count, step)                             \
        {                                                                                 \
            size_t at_ = (from);                                                          \
            MMAX_LANES_CLEAR(lanes_, sum_count)                                           \
            for (; at_ + MMAX_PAIR <= (end); at_ += MMAX_PAIR) {                          \
                MMAX_EACH(k_) { MMAX_PAIR_STEP(sum_count, step, MMAX_WIDTH, MMAX_WIDTH) } \
            }                                                                             \
            MMAX_EACH(k_)                                                                 \
            {                                                                             \
                const ptrdiff_t left_ = (ptrdiff_t)((end)-at_) - k_ * MMAX_WIDTH;         \
                if ((rest) && left_ > 0) {                                                \
                    MMAX_PAIR_STEP(sum_count, step, left_, left_ - MMAX_LANES)            \
                }                                                                         \
            }                                                                             \
        }
#    define MMAX_PAIR_STEP(sum_count, step, left, left_of_second)      \
        {                                                              \
            const size_t first_ = at_ + (size_t)(k_ * MMAX_WIDTH);     \
            mmax_vec terms_[2] = {mmax_v_zero(), mmax_v_zero()};       \
            {                                                          \
                step(first_, (ptrdiff_t)(left))                        \
            }                                                          \
            if ((left_of_second) > 0) {                                \
                step(first_ + MMAX_LANES, (ptrdiff_t)(left_of_second)) \
            }                                                          \
            lanes_[0][k_] = mmax_v_add(lanes_[0][k_], terms_[0]);      \
            if ((sum_count) > 1) {                                     \
                lanes_[1][k_] = mmax_v_add(lanes_[1][k_], terms_[1]);  \
            }                                                          \
        }

/* A register's first lane: the arithmetic of the kernels for a single entry. */
MMAX_INLINE mmax_real MMAX_(lane)(mmax_vec a)
{
    mmax_real lanes[MMAX_WIDTH];
    mmax_v_store(lanes, a);
    return lanes[0];
}

/* ---- sums of short rows where the type's own digits are enough ----
 * Of partial sums over a row of one chunk (MMAX_EXP_CHUNK), the lanes' halves are added until one is left.
 */
MMAX_INLINE mmax_vec MMAX_(halved_of)(const mmax_vec *sums, int registers)
{
    mmax_vec lanes[MMAX_REGS];
    MMAX_EACH(k) { lanes[k] = sums[k < registers ? k : 0]; }
    MMAX_UNROLL for (int half = registers / 2; half > 0; half /= 2)
    {
        MMAX_UNROLL for (int k = 0; k < half; ++k) { lanes[k] = mmax_v_add(lanes[k], lanes[k + half]); }
    }
    return lanes[0];
}
MMAX_INLINE mmax_vec MMAX_(halved)(const mmax_vec *pair) { return MMAX_(halved_of)(pair, MMAX_REGS); }
MMAX_INLINE mmax_real MMAX_(tree_total)(const mmax_vec *pair) { return MMAX_(lane)(mmax_v_hsum(MMAX_(halved)(pair))); }

/* ---- what a call prepares once ---- */

/* Where sigma turns or has a kink, in order, sigma there, and whether it begins to fall there. */
typedef struct MMAX_(turns) {
    int count;
    mmax_real at[9], score[9];
    int falls[9];
} MMAX_(turns);
/* What a call of MultiMax has besides. Kernels copy MMAX_(call): what changes from row to row is here. */
typedef struct MMAX_(sigma_state) {
    MMAX_(turns) turns;
    int masks; /* how many of the last two long rows, or blocks of one, had any, if the last one had */
} MMAX_(sigma_state);

typedef struct MMAX_(call) {
    double scale;
    mmax_real input_scale;                  /* MultiMax: the scale, applied before sigma */
    mmax_real scale_high, scale_low;        /* what multiplies a centred score, in two parts */
    mmax_real log2e, log2e_high, log2e_low; /* log2(e) times the scale (MultiMax: times 1), and in two parts */
    mmax_real log2e_inverse;
    mmax_real before, after;      /* powers of two that bring extreme scales within range */
    mmax_real epsilon;            /* EvSoftMax: weight of entries below the mean */
    double epsilon_loss;          /* its -log, for the loss */
    mmax_real epsilon_range;      /* powers of two by which it makes weights smaller, at most */
    mmax_real b[2], d[2];         /* MultiMax: the kinks; where a term is absent, out of reach */
    mmax_real below[2], above[2]; /* 1 - t_b and t_d - 1 */
    mmax_real safe;               /* MultiMax: for |s| up to it, nothing in sigma overflows */
    const MMAX_(turns) * turns;   /* NULL: not asked for */
    int *masks;                   /* MultiMax: see MMAX_(sigma_state) */
    double gx_scale;              /* losses: see prepare_gradient */
    int peaks;                    /* whether sigma's peak may stand for the largest score */
    int general;                  /* every row is a MMAX_ROW_GENERAL one */
    int clears;                   /* masked entries become 0 in MMAX_ROW_CLAMP rows, too */
} MMAX_(call);

/* log2(e), rounded to nearest, and the rest */
#    define MMAX_LOG2E      1.4426950408889634
#    define MMAX_LOG2E_REST 2.0355273740931033e-17

/* In place and member by member: a structure that is copied right after its members were stored waits for them, and
 * memset takes as long as a short row. */
MMAX_INLINE void MMAX_(prepare)(MMAX_(call) * c, double scale, const mmax_multimax_params *p, double epsilon)
{
    const int order = p ? p->order : 0;
    double exponent_scale = p ? 1.0 : scale;
    c->scale = scale;
    c->input_scale = (mmax_real)scale;
    c->before = 1;
    c->after = 1;
    c->turns = NULL;
    c->peaks = 0;
    c->general = 0;
    c->clears = 0;
    if (!p && scale < 8.673617379884035e-19 /* 2^-60 */) {
        c->before = (mmax_real)MMAX_TWO_TO_MINUS_64;
        exponent_scale *= MMAX_TWO_TO_64;
        c->general = 1;
    } else if (!p && scale > 1152921504606846976.0 /* 2^60 */) {
        c->after = (mmax_real)MMAX_TWO_TO_64;
        exponent_scale *= MMAX_TWO_TO_MINUS_64;
        c->general = 1;
    }
    c->scale_high = (mmax_real)exponent_scale;
    c->scale_low = (mmax_real)(exponent_scale - (double)c->scale_high);
#    if MMAX_PASS_DOUBLE
    {
        /* Dekker's product: the halves have 26 bits, so that their products are exact. */
        const double scale_top = mmax_f64_top(exponent_scale), scale_rest = exponent_scale - scale_top;
        const double log2e_top = mmax_f64_top(MMAX_LOG2E), log2e_rest = MMAX_LOG2E - log2e_top;
        const double product = mmax_product(exponent_scale, MMAX_LOG2E);
        const double lost = ((scale_top * log2e_top - product) + scale_top * log2e_rest + scale_rest * log2e_top) +
                            scale_rest * log2e_rest;
        const double rest = lost + mmax_product(exponent_scale, MMAX_LOG2E_REST);
        c->log2e = product;
        c->log2e_high = MMAX_FMA ? product : mmax_f64_top(product);
        c->log2e_low = (product - c->log2e_high) + rest;
    }
#    else
    {
        const double product = mmax_product(exponent_scale, MMAX_LOG2E);
        c->log2e = (float)product;
        c->log2e_high = MMAX_FMA ? c->log2e : mmax_f32_top(c->log2e);
        c->log2e_low = (float)(product - (double)c->log2e_high);
    }
#    endif
    c->log2e_inverse = 1 / c->log2e;
    c->epsilon = 0;
    c->epsilon_range = 0;
    c->epsilon_loss = 0;
    if (epsilon > 0) { /* else 0, not -0 */
        c->epsilon = (mmax_real)epsilon;
        c->epsilon_range = epsilon < 9.313225746154785e-10 /* 2^-30 */ ? 2000 : 30;
    }
    c->safe = MMAX_SAFE;
    for (int i = order; i < 2; ++i) {
        c->below[i] = c->above[i] = c->b[i] = c->d[i] = 0;
    }
    for (int i = 0; p && i < order; ++i) {
        const double largest = mmax_largest(mmax_largest(p->t_b[i], p->t_d[i]), mmax_largest(p->b[i], p->d[i]));
        c->safe = largest < MMAX_SAFE ? c->safe : -1;
        /* max(b - x, 0) is 0 for b = -max, and max(x - d, 0) for d = max: that makes a term with t = 1 absent. */
        c->below[i] = (mmax_real)(1.0 - p->t_b[i]);
        c->above[i] = (mmax_real)(p->t_d[i] - 1.0);
        c->b[i] = p->t_b[i] == 1.0 ? -MMAX_REAL_MAX : (mmax_real)p->b[i];
        c->d[i] = p->t_d[i] == 1.0 ? MMAX_REAL_MAX : (mmax_real)p->d[i];
    }
}

/* ---- the exponential ----
 * exp(scale x) = 2^(k/8) 2^f, k/8 = round(x log2e) to eighths, |f| <= 1/16 and a bit. k comes from adding
 * 1.5 * 2^(digits - 4), whose last place is 1/8, and stays in the low bits of the sum. An integer `origin` taken off
 * k/8 there divides the result by 2^origin: x is never rounded by a subtraction of the maximum. The result is
 * MMAX_POW2_FACTOR times as large, see mmax_pow2_table_f64.
 */
#    if MMAX_PASS_DOUBLE
#        define MMAX_POW2_FACTOR     1.0000000349172629
#        define MMAX_ROUND_TO_EIGHTH 844424930131968.0 /* 1.5 * 2^49 */
/* fpminimax(2^x - 1, [|1,..,7|], [|D...|], [-1/16 - 2^-12; 1/16 + 2^-12], floating, absolute): 2^-58.1 relative */
#        define MMAX_P1 0.69314718055994528623
#        define MMAX_P2 0.24022650695911557106
#        define MMAX_P3 5.550410866486828883e-2
#        define MMAX_P4 9.618129084775991350e-3
#        define MMAX_P5 1.33335579020565746e-3
#        define MMAX_P6 1.54045305719108130e-4
#        define MMAX_P7 1.525677512164676475e-5
#        define MMAX_POW2_POLYNOMIAL(f)                                                                              \
            MMAX_H(MMAX_H(MMAX_H(MMAX_H(MMAX_H(MMAX_H(mmax_v_set(MMAX_P7), f, MMAX_P6), f, MMAX_P5), f, MMAX_P4), f, \
                                 MMAX_P3),                                                                           \
                          f, MMAX_P2),                                                                               \
                   f, MMAX_P1)
/* Of P(f) the even part, and the odd part over f, in q = f^2 */
#        define MMAX_POW2_EVEN(q) MMAX_H(MMAX_H(MMAX_H(mmax_v_set(MMAX_P7), q, MMAX_P5), q, MMAX_P3), q, MMAX_P1)
#        define MMAX_POW2_ODD(q)  MMAX_H(MMAX_H(mmax_v_set(MMAX_P6), q, MMAX_P4), q, MMAX_P2)
#        define MMAX_SHIFT_LIMIT  8192.0 /* |max * scale * log2e| from which the maximum is subtracted first */
/* Weights of at least 2^-MMAX_PLAIN_RANGE are normal numbers, and so are the products that they are made of. */
#        define MMAX_PLAIN_RANGE 962.0
#        define MMAX_BIAS        64 /* exponentials are 2^64 times too large, the low ones stay normal */
/* The exponent at which low entries are held: not a multiple of 1/8, as power * f is to be a normal number there, too. */
#        define MMAX_LOWEST (-1016.95)
#    else
#        define MMAX_POW2_FACTOR        1.0007338523864746
#        define MMAX_ROUND_TO_EIGHTH    1572864.0f /* 1.5 * 2^20 */
/* fpminimax(2^x - 1, [|1,2,3,4|], [|SG...|], [-1/16 - 2^-12; 1/16 + 2^-12], floating, absolute): 2^-32.1 relative */
#        define MMAX_P1                 0.69314718246459961f
#        define MMAX_P2                 0.24022650718688965f
#        define MMAX_P3                 5.55081218481064e-2f
#        define MMAX_P4                 9.61861293762922e-3f
#        define MMAX_POW2_POLYNOMIAL(f) MMAX_H(MMAX_H(MMAX_H(mmax_v_set(MMAX_P4), f, MMAX_P3), f, MMAX_P2), f, MMAX_P1)
#        define MMAX_POW2_EVEN(q)       MMAX_H(mmax_v_set(MMAX_P3), q, MMAX_P1)
#        define MMAX_POW2_ODD(q)        MMAX_H(mmax_v_set(MMAX_P4), q, MMAX_P2)
#        define MMAX_SHIFT_LIMIT        1024.0f
#        define MMAX_PLAIN_RANGE        124.0f
#        define MMAX_BIAS               64
#        define MMAX_LOWEST             (-88) /* power * f is a normal number there, too */
#    endif
#    define MMAX_H(p, f, c) mmax_v_fma(p, f, mmax_v_set(c))

#    if !defined(mmax_v_opaque)
#        define mmax_v_opaque(a) (a)
#    endif

/* x*log2e + minus_q, where minus_q is x*log2e rounded to eighths, with the other sign */
MMAX_INLINE mmax_vec MMAX_(reduce)(mmax_vec x, mmax_vec minus_q, const MMAX_(call) * c)
{
#    if MMAX_FMA
    return mmax_v_fma(x, mmax_v_set(c->log2e_low), mmax_v_fma(x, mmax_v_set(c->log2e_high), minus_q));
#    else
    /* The top halves of x and log2e have exact products. */
    const mmax_vec x_top = mmax_v_high(x);
    const mmax_vec x_rest = mmax_v_opaque(mmax_v_sub(x, x_top));
    mmax_vec f = mmax_v_opaque(mmax_v_add(mmax_v_mul(x_top, mmax_v_set(c->log2e_high)), minus_q));
    f = mmax_v_opaque(mmax_v_add(f, mmax_v_mul(x_rest, mmax_v_set(c->log2e_high))));
    return mmax_v_add(f, mmax_v_mul(x, mmax_v_set(c->log2e_low)));
#    endif
}

typedef struct MMAX_(reduced) {
    mmax_vec n; /* k, with the origin, in its low bits */
    mmax_vec f;
} MMAX_(reduced);

MMAX_INLINE MMAX_(reduced) MMAX_(reduced_of)(mmax_vec x, mmax_vec rounder, const MMAX_(call) * c)
{
    MMAX_(reduced) r;
    r.n = mmax_v_opaque(mmax_v_fma(x, mmax_v_set(c->log2e), rounder));
    r.f = MMAX_(reduce)(x, mmax_v_sub(rounder, r.n), c);
    return r;
}
MMAX_INLINE mmax_vec MMAX_(pow2_of)(MMAX_(reduced) r)
{
    const mmax_vec f = r.f, power = mmax_v_pow2(r.n);
    return mmax_v_fma(mmax_v_mul(power, f), MMAX_POW2_POLYNOMIAL(f), power);
}

/* exp(scale x) * 2^(rounder - MMAX_ROUND_TO_EIGHTH) * MMAX_POW2_FACTOR */
MMAX_INLINE mmax_vec MMAX_(exp)(mmax_vec x, mmax_vec rounder, const MMAX_(call) * c)
{
    return MMAX_(pow2_of)(MMAX_(reduced_of)(x, rounder, c));
}

/* ---- the origin of a row: what its exponentials are relative to ---- */
typedef struct MMAX_(origin) {
    mmax_real rounder; /* MMAX_ROUND_TO_EIGHTH - origin + MMAX_BIAS */
    mmax_real shift;   /* taken off the scores first: 0 or the maximum */
    mmax_real before;  /* what scores are multiplied by, so that differences do not overflow */
    mmax_real lowest;  /* scores are held at this bound */
    mmax_real max;     /* the largest score */
    mmax_real mean;    /* EvSoftMax: entries below it are weighted by epsilon */
    int peak;          /* MultiMax: whether max is a peak of sigma, which no score may reach */
    int kind;          /* MMAX_ROW_PLAIN, .. */
    mmax_real range;   /* log2 of the largest exponential over the smallest; infinite where scores are masked */
} MMAX_(origin);

/* The extremes of the scores of a row. */
typedef struct MMAX_(extremes) {
    mmax_real min, max;
    int peak;   /* see MMAX_(origin) */
    double sum; /* of x, EvSoftMax only */
} MMAX_(extremes);

/* Of a row without masks, n scores within 2^range: the smallest weight is at least 2^-range / n, times epsilon. */
MMAX_INLINE int MMAX_(kind_of)(mmax_real range, size_t n, const MMAX_(call) * c)
{
    const mmax_real log2_n = (mmax_real)(n <= 65536 ? 16 : n <= ((size_t)1 << 30) ? 30 : 2000);
    return range + log2_n + c->epsilon_range < MMAX_PLAIN_RANGE ? MMAX_ROW_PLAIN : MMAX_ROW_CLAMP;
}

MMAX_INLINE MMAX_(origin) MMAX_(origin_of)(const MMAX_(extremes) * e, size_t n, const MMAX_(call) * c)
{
    const mmax_real min = e->min, max = e->max;
    MMAX_(origin) o;
    mmax_real exponent = max * c->log2e, range = (max - min) * c->log2e, whole;
    int is_near;
    MMAX_KEEP(range);
    is_near = exponent < MMAX_SHIFT_LIMIT && exponent > -MMAX_SHIFT_LIMIT;
    o.shift = 0;
    o.max = max;
    o.peak = e->peak;
    o.range = range;
    o.before = c->before;
    o.mean = -MMAX_REAL_MAX;
    o.kind = MMAX_(kind_of)(range, n, c); /* most rows end here */
    if (MMAX_UNLIKELY(!is_near || o.kind != MMAX_ROW_PLAIN || c->general)) {
        if (c->general) {
            exponent = max * c->before * c->after * c->log2e;
            is_near = exponent < MMAX_SHIFT_LIMIT && exponent > -MMAX_SHIFT_LIMIT;
        }
        if (!(mmax_is_finite(max - min) || c->after > 1)) {
            o.before *= (mmax_real)0.25;
        }
        if (!is_near || c->general || (min == MMAX_MASK && !c->clears)) {
            o.kind = MMAX_ROW_GENERAL;
            o.range = MMAX_REAL_MAX;
        }
        if (!is_near) {
            o.shift = max;
            exponent = 0;
        }
    }
    whole = (mmax_real)(int)exponent;
    o.rounder = MMAX_ROUND_TO_EIGHTH - (whole - MMAX_BIAS);
    o.lowest = (whole + (MMAX_LOWEST - MMAX_BIAS)) * c->log2e_inverse;
    return o;
}

/* The score as MMAX_(exp) wants it. */
MMAX_INLINE mmax_vec MMAX_(centre)(mmax_vec score, const MMAX_(origin) * o, const MMAX_(call) * c, int kind)
{
    if (kind == MMAX_ROW_GENERAL) {
        const mmax_vec before = mmax_v_set(c->before);
        const mmax_vec shift = mmax_v_set(o->shift * c->before);
        score = mmax_v_mul(mmax_v_sub(mmax_v_mul(score, before), shift), mmax_v_set(c->after));
    }
    return kind >= MMAX_ROW_CLAMP ? mmax_v_max(mmax_v_set(o->lowest), score) : score;
}

/* The exponential of one score by the same arithmetic. */
MMAX_INLINE mmax_real MMAX_(exp_of)(mmax_real score, const MMAX_(origin) * o, const MMAX_(call) * c)
{
    const mmax_vec centred = MMAX_(centre)(mmax_v_set(score), o, c, MMAX_ROW_GENERAL);
    return MMAX_(lane)(MMAX_(exp)(centred, mmax_v_set(o->rounder), c));
}

/* The slope of sigma beside s, above it or below; of sigma as the kernels take it, with rounded parameters. */
MMAX_STATIC double MMAX_(slope)(const mmax_multimax_params *p, const MMAX_(call) * c, double s, int above)
{
    double slope = 1;
    for (int i = 0; i < p->order; ++i) {
        const double u = (double)(mmax_real)p->b[i] - s, v = s - (double)(mmax_real)p->d[i];
        slope -= u > 0 || (u == 0 && !above) ? mmax_product(c->below[i], i == 0 ? 1 : 2 * u) : 0;
        slope += v > 0 || (v == 0 && above) ? mmax_product(c->above[i], i == 0 ? 1 : 2 * v) : 0;
    }
    return slope;
}

/* Between kinks sigma's slope is linear: where its signs at both ends differ, sigma turns. */
MMAX_STATIC void MMAX_(find_turns)(MMAX_(turns) * turns, const mmax_multimax_params *p, const MMAX_(call) * c)
{
    const double end = (double)c->safe;
    double ends[6];
    int kinks = 0;
    for (int i = 0; i < 2 * p->order; ++i) {
        const double kink = (double)(mmax_real)(i < p->order ? p->b[i] : p->d[i - p->order]);
        int k = ++kinks;
        for (; k > 1 && ends[k - 1] > kink; --k) {
            ends[k] = ends[k - 1];
        }
        ends[k] = kink;
    }
    ends[0] = -end;
    ends[kinks + 1] = end;
    turns->count = 0;
    for (int k = 0; k <= kinks; ++k) {
        const double from = ends[k], to = ends[k + 1], length = to - from;
        const double first = MMAX_(slope)(p, c, from, 1), last = MMAX_(slope)(p, c, to, 0);
        if ((first < 0 && last > 0) || (first >= 0 && last < 0)) {
            /* from the end that is a kink: the other one may be far away */
            turns->at[turns->count] = (mmax_real)(k > 0 ? from + mmax_product(length, first / (first - last))
                                                        : to - mmax_product(length, last / (last - first)));
            turns->falls[turns->count++] = last < 0;
        }
        if (k < kinks) {
            turns->at[turns->count] = (mmax_real)to;
            turns->falls[turns->count++] = last >= 0 && MMAX_(slope)(p, c, to, 1) < 0;
        }
    }
}

/* ---- sigma, MultiMax eq. 6 ----
 * max(b - x, 0) = b - min(x, b). `careful` is for scores of any size: infinite ones stay what they are, masks among
 * them, and where first and second order overflow with opposite signs the second decides. Where |s| <= safe it changes
 * no bit.
 */
MMAX_INLINE mmax_vec MMAX_(sigma)(mmax_vec s, const MMAX_(call) * c, int order, int careful)
{
    const mmax_vec largest = mmax_v_set(MMAX_REAL_MAX), b1 = mmax_v_set(c->b[0]), d1 = mmax_v_set(c->d[0]);
    mmax_vec a = mmax_v_fma(mmax_v_set(c->below[0]), mmax_v_sub(b1, mmax_v_min(s, b1)), s);
    a = mmax_v_fma(mmax_v_set(c->above[0]), mmax_v_sub(mmax_v_max(s, d1), d1), a);
    if (order == 2) {
        const mmax_vec b2 = mmax_v_set(c->b[1]), d2 = mmax_v_set(c->d[1]);
        const mmax_vec u = mmax_v_sub(b2, mmax_v_min(s, b2)), v = mmax_v_sub(mmax_v_max(s, d2), d2);
        const mmax_vec below = mmax_v_mul(mmax_v_set(c->below[1]), u), above = mmax_v_mul(mmax_v_set(c->above[1]), v);
        const mmax_vec first = a;
        a = mmax_v_fma(above, v, mmax_v_fma(below, u, a));
        if (careful) {
            const mmax_vec second = mmax_v_fma(above, v, mmax_v_mul(below, u));
            const mmax_vec other =
                mmax_v_select(mmax_v_lt(largest, mmax_v_abs(second)), second, mmax_v_add(first, second));
            a = mmax_v_select(mmax_v_nle(mmax_v_abs(a), largest), other, a);
        }
    }
    a = careful ? mmax_v_select(mmax_v_nle(mmax_v_abs(s), largest), s, a) : a;
    return mmax_v_opaque(a); /* rounded to the type, stored or not */
}

/* The scores whose largest is looked for. */
MMAX_INLINE mmax_vec MMAX_(score)(mmax_vec x, const MMAX_(call) * c, int function, int careful)
{
    if (mmax_is_sigma(function)) {
        const mmax_vec s = mmax_v_mul(x, mmax_v_set(c->input_scale));
        return MMAX_(sigma)(s, c, function == MMAX_MULTIMAX2 ? 2 : 1, careful);
    }
    return function == MMAX_TANHMAX ? mmax_v_abs(x) : x;
}

/* What MultiMax prepares: also where sigma turns, for rows that gain by it. */
#    define MMAX_TURNS_LEAST(c) ((c)->peaks ? (size_t)(MMAX_SHORT + 1) : (size_t)65536)
MMAX_INLINE void MMAX_(prepare_sigma)(MMAX_(call) * c, MMAX_(sigma_state) * state, double scale,
                                      const mmax_multimax_params *p, size_t cols, int peaks)
{
    MMAX_(turns) *const turns = &state->turns;
    MMAX_(prepare)(c, scale, p, 0);
    c->peaks = peaks;
    c->masks = &state->masks;
    state->masks = 0;
    if (cols >= MMAX_TURNS_LEAST(c) && c->safe > 0) {
        MMAX_(find_turns)(turns, p, c);
        for (int i = 0; i < turns->count; ++i) {
            turns->score[i] = MMAX_(lane)(MMAX_(sigma)(mmax_v_set(turns->at[i]), c, 2, 0));
        }
        c->turns = turns;
    }
}

/* ---- first pass: the extremes of the scores ---- */

/* Registers of extremes: fewer of them wait for one another. */
#    define MMAX_EXTREMES (MMAX_REGS < 4 ? 4 : MMAX_REGS)

/* The registers' results in one number each. */
MMAX_INLINE MMAX_(extremes)
    MMAX_(extremes_of)(const mmax_vec *min, const mmax_vec *max, int registers, mmax_vec min_rest_, mmax_vec max_rest_)
{
    MMAX_(extremes) e;
    MMAX_EACH_OF(k, registers)
    {
        max_rest_ = mmax_v_max(max[k], max_rest_);
        min_rest_ = mmax_v_min(min[k], min_rest_);
    }
    e.max = mmax_v_hmax(max_rest_);
    e.min = mmax_v_hmin(min_rest_);
    e.peak = 0;
    e.sum = 0;
    return e;
}

/* Of the logits. The scores go to y, unless that is NULL. */
MMAX_INLINE MMAX_(extremes) MMAX_(row_extremes)(mmax_real *y, const mmax_real *x, size_t n, const MMAX_(call) * call,
                                                int function, int with_sum)
{
    const MMAX_(call) constants = *call, *const c = &constants; /* which no store can change */
    const mmax_vec first = mmax_v_set(x[0]);
    mmax_vec min_block_[MMAX_EXTREMES], max_block_[MMAX_EXTREMES], min_rest_[1], max_rest_[1];
    MMAX_(sum) sum[1];
    MMAX_(extremes) e;
    MMAX_EACH_OF(k, MMAX_EXTREMES) { min_block_[k] = max_block_[k] = first; }
    min_rest_[0] = max_rest_[0] = first;
#    define MMAX_STEP(at, left, k, part)                                          \
        const mmax_vec logit = MMAX_(load_upto)(x + at, left, first);             \
        max_##part[k] = mmax_v_max(logit, max_##part[k]);                         \
        min_##part[k] = mmax_v_min(logit, min_##part[k]);                         \
        if (y) {                                                                  \
            MMAX_(fetch_later)(y + at, k);                                        \
            MMAX_(store_upto)(y + at, left, MMAX_(score)(logit, c, function, 0)); \
        }
#    define MMAX_STEP_SUM(at, left, k, part)                          \
        const mmax_vec logit = MMAX_(load_upto)(x + at, left, first); \
        max_block_[k] = mmax_v_max(logit, max_block_[k]);             \
        min_block_[k] = mmax_v_min(logit, min_block_[k]);             \
        lanes_##part[0][k] = mmax_v_add(lanes_##part[0][k], MMAX_(first_upto)(logit, left));
    if (with_sum) {
        MMAX_(sums_clear)(sum, 1);
        MMAX_SWEEP_SUM(n, sum, 1, MMAX_STEP_SUM);
    } else {
        MMAX_SWEEP_BY(MMAX_EXTREMES, n, 1, MMAX_STEP);
    }
#    undef MMAX_STEP
#    undef MMAX_STEP_SUM
    e = MMAX_(extremes_of)(min_block_, max_block_, MMAX_EXTREMES, min_rest_[0], max_rest_[0]);
    if (with_sum) {
        e.sum = MMAX_(sum_total)(sum);
    }
    return e;
}

/* The score where a logit is active, else what it is, -inf, and 0 in *logit. */
MMAX_INLINE mmax_vec MMAX_(masked_score)(mmax_vec *logit, const MMAX_(call) * c, int function)
{
    const mmax_vec masked = mmax_v_set(MMAX_MASK);
    const mmax_mask active = mmax_v_nle(*logit, masked);
    *logit = mmax_v_keep(active, *logit);
    return mmax_v_select(active, MMAX_(score)(*logit, c, function, 0), masked);
}

/* The extremes of sigma over a row, which goes to y where `store` says so. Returns whether the row may be taken as it
 * is: without `careful`, no |s| is above the safe bound, as no sum of their squares is above its square, except, with
 * `masks`, those of masked entries; with it, no active sigma is NaN or +inf. */
MMAX_INLINE int MMAX_(sigma_row)(MMAX_(extremes) * e, mmax_real *y, const mmax_real *x, size_t n,
                                 const MMAX_(call) * call, int function, int careful, int masks, int store)
{
    const MMAX_(call) constants = *call, *const c = &constants; /* which no store can change */
    const mmax_vec fill = mmax_v_set(x[0]), largest = mmax_v_set(MMAX_REAL_MAX), scale = mmax_v_set(c->input_scale);
    mmax_vec only = fill;
    const mmax_vec first = masks ? MMAX_(masked_score)(&only, c, function) : MMAX_(score)(fill, c, function, careful);
    mmax_vec min_block_[MMAX_REGS], max_block_[MMAX_REGS], squares_block_[MMAX_REGS];
    mmax_vec min_rest_[1], max_rest_[1], squares_rest_[1];
    mmax_mask beyond = mmax_m_none();
    MMAX_EACH(k)
    {
        min_block_[k] = max_block_[k] = first;
        squares_block_[k] = mmax_v_zero();
    }
    min_rest_[0] = max_rest_[0] = first;
    squares_rest_[0] = mmax_v_zero();
#    define MMAX_STEP(at, left, k, part)                                                                  \
        mmax_vec logit = MMAX_(load_upto)(x + at, left, fill);                                            \
        const mmax_vec score =                                                                            \
            masks ? MMAX_(masked_score)(&logit, c, function) : MMAX_(score)(logit, c, function, careful); \
        const mmax_vec s = mmax_v_mul(logit, scale);                                                      \
        max_##part[k] = mmax_v_max(score, max_##part[k]);                                                 \
        min_##part[k] = mmax_v_min(score, min_##part[k]);                                                 \
        if (careful) {                                                                                    \
            beyond = mmax_m_or(beyond, mmax_v_nle(score, largest));                                       \
        } else {                                                                                          \
            squares_##part[k] = mmax_v_fma(s, s, squares_##part[k]);                                      \
        }                                                                                                 \
        if (store) {                                                                                      \
            MMAX_(fetch_later)(y + at, k);                                                                \
            MMAX_(store_upto)(y + at, left, score);                                                       \
        }
    MMAX_SWEEP(n, MMAX_STEP);
#    undef MMAX_STEP
    *e = MMAX_(extremes_of)(min_block_, max_block_, MMAX_REGS, min_rest_[0], max_rest_[0]);
    if (!careful) {
        const mmax_vec bound = mmax_v_set(c->safe * (c->safe > 0 ? c->safe : 1));
        beyond = mmax_v_nle(squares_rest_[0], bound);
        MMAX_EACH(k) { beyond = mmax_m_or(beyond, mmax_v_nle(squares_block_[k], bound)); }
    }
    return mmax_m_bits(beyond) == 0;
}

/* ---- rows without a normal result ---- */

/* NaN or +inf */
MMAX_RARE int MMAX_(has_nan)(const mmax_real *x, size_t n)
{
    const mmax_vec largest = mmax_v_set(MMAX_REAL_MAX);
    mmax_mask bad = mmax_m_none();
    for (size_t at = 0; at < n; at += MMAX_WIDTH) {
        bad = mmax_m_or(bad, mmax_v_nle(MMAX_(load_upto)(x + at, (ptrdiff_t)(n - at), largest), largest));
    }
    return mmax_m_bits(bad) != 0;
}
MMAX_STATIC void MMAX_(fill)(mmax_real *y, size_t n, MMAX_BITS value)
{
    for (size_t i = 0; i < n; ++i) {
        y[i] = mmax_from_bits(value);
    }
}
/* Active entries of x: NaN or, where `nan` is 0, `masked` like the others. y may be x. */
MMAX_RARE void MMAX_(fill_special)(mmax_real *y, const mmax_real *x, size_t n, int nan, MMAX_BITS masked)
{
    const MMAX_BITS active = nan ? MMAX_NAN_BITS : masked;
    for (size_t i = 0; i < n; ++i) {
        y[i] = mmax_from_bits(mmax_is_masked(x[i]) ? masked : active);
    }
}
/* NaN, but 0 where `zeros_stay` and y is 0. gx may be y. */
MMAX_RARE void MMAX_(fill_nan)(mmax_real *gx, const mmax_real *y, size_t n, int zeros_stay)
{
    for (size_t i = 0; i < n; ++i) {
        gx[i] = mmax_from_bits(zeros_stay && y[i] == 0 && !mmax_is_nan(y[i]) ? 0 : MMAX_NAN_BITS);
    }
}

/* ---- sinh and cosh, for tanhmax ----
 * Of s log2e = k/8 + f, with P(f) = 2^f - 1 = even + slope, its even and odd part, and u, d = 2^(k/8), 2^-(k/8):
 *     2 sinh(s) = (u - d) + ((u - d) even + (u + d) slope)    2 cosh(s) = (u + d) + ((u + d) even + (u - d) slope)
 * k = 0 leaves 2 slope of sinh, which does not cancel however small s is; else u - d is at least twice the rest.
 */
/* The first half. k is 0 for small s, whatever the direction of rounding. A size is negative where it is relative to a
 * far origin. */
MMAX_INLINE MMAX_(reduced) MMAX_(sinh_begin)(mmax_vec size, mmax_real rounder, const MMAX_(call) * c, int kind)
{
    const mmax_vec least = mmax_v_set((mmax_real)0.0624 * c->log2e_inverse), zero_power = mmax_v_set(rounder);
    const mmax_vec distance = kind == MMAX_ROW_GENERAL ? mmax_v_abs(size) : size;
    const mmax_vec not_small = mmax_v_keep(mmax_v_le(least, distance), size);
    MMAX_(reduced) r;
    r.n = mmax_v_opaque(mmax_v_fma(not_small, mmax_v_set(c->log2e), zero_power));
    r.f = MMAX_(reduce)(size, mmax_v_sub(zero_power, r.n), c);
    return r;
}
/* The second half for s = scale |x|, with the sign of x. `is_far`: beside the origin, exp(-s) is nothing. */
MMAX_INLINE mmax_vec MMAX_(sinh_end)(MMAX_(reduced) r, mmax_vec x, mmax_real rounder, int is_far, mmax_vec *cosh2)
{
    const mmax_vec zero_power = mmax_v_set(rounder), lowest = mmax_v_set(MMAX_ROUND_TO_EIGHTH + MMAX_LOWEST);
    const mmax_vec minus_q = mmax_v_opaque(mmax_v_sub(zero_power, r.n));
    const mmax_vec n_down = mmax_v_max(lowest, is_far ? lowest : mmax_v_add(zero_power, minus_q));
    const mmax_vec up = mmax_v_pow2(mmax_v_max(lowest, r.n)), down = mmax_v_pow2(n_down);
    const mmax_vec sum = mmax_v_add(up, down), difference = mmax_v_sub(up, down), q = mmax_v_mul(r.f, r.f);
    const mmax_vec even = mmax_v_mul(q, MMAX_POW2_ODD(q)), slope = mmax_v_mul(r.f, MMAX_POW2_EVEN(q));
    const mmax_vec sinh2 = mmax_v_add(difference, mmax_v_fma(difference, even, mmax_v_mul(sum, slope)));
    *cosh2 = mmax_v_add(sum, mmax_v_fma(sum, even, mmax_v_mul(difference, slope)));
    return mmax_v_copysign(sinh2, x);
}

/* ---- sums of exponentials, without losing what is small ----
 * The roundings of a plain chain of additions would take a weight beyond 4 ULP. A term goes to a total that starts
 * above all that can come, so that what the addition rounds away is exactly known (Dekker's Fast2Sum) and collected.
 */
#    define MMAX_ABOVE_EXPS ((mmax_real)1180591620717411303424.0) /* 2^70: 18 terms of at most 1.25 * 2^65 */
typedef struct MMAX_(exact) {
    mmax_vec total[MMAX_REGS], lost[MMAX_REGS];
} MMAX_(exact);
MMAX_INLINE void MMAX_(exact_begin)(MMAX_(exact) * of, int k)
{
    of->total[k] = mmax_v_set(MMAX_ABOVE_EXPS);
    of->lost[k] = mmax_v_zero();
}
MMAX_INLINE void MMAX_(exact_add)(MMAX_(exact) * of, int k, mmax_vec terms)
{
    const mmax_vec total = mmax_v_opaque(mmax_v_add(of->total[k], terms));
    of->lost[k] = mmax_v_add(of->lost[k], mmax_v_sub(terms, mmax_v_opaque(mmax_v_sub(total, of->total[k]))));
    of->total[k] = total;
}
MMAX_INLINE void MMAX_(exact_end)(MMAX_(sum) * sum, const MMAX_(exact) * of)
{
    mmax_vec total[MMAX_REGS];
    MMAX_EACH(k) { total[k] = mmax_v_sub(of->total[k], mmax_v_set(MMAX_ABOVE_EXPS)); }
    MMAX_(sum_add)(sum, total);
    MMAX_(sum_add_small)(sum, of->lost);
}

/* ---- softmax, multimax, evsoftmax ---- */

/* Masked exponentials become 0, and no others: one that EvSoftMax's epsilon takes below the normal numbers is held
 * there, which weighs nothing either. */
MMAX_INLINE mmax_vec MMAX_(masked_exp)(mmax_vec e, mmax_vec x, int function)
{
    const mmax_vec held = function == MMAX_EVSOFTMAX ? mmax_v_max(mmax_v_set(MMAX_REAL_MIN), e) : e;
    return mmax_v_keep(mmax_v_nle(x, mmax_v_set(MMAX_MASK)), held);
}
/* TanhMax takes masked scores for 0. */
MMAX_INLINE mmax_vec MMAX_(exp_score)(mmax_vec x, int function, int kind)
{
    const int masks = function == MMAX_TANHMAX && kind >= MMAX_ROW_CLAMP;
    return masks ? mmax_v_keep(mmax_v_nle(x, mmax_v_set(MMAX_MASK)), x) : x;
}
/* One register of exponentials, 0 at masked entries, in two halves. *summed is what goes to the row's sum: the same,
 * but for TanhMax, where they are 2 sinh and 2 cosh. */
MMAX_INLINE MMAX_(reduced)
    MMAX_(exp_begin)(mmax_vec x, const MMAX_(origin) * o, const MMAX_(call) * c, int function, int kind)
{
    if (function == MMAX_TANHMAX) {
        const mmax_vec size = mmax_v_abs(MMAX_(exp_score)(x, function, kind));
        const int centred = kind == MMAX_ROW_GENERAL ? MMAX_ROW_GENERAL : MMAX_ROW_PLAIN;
        return MMAX_(sinh_begin)(MMAX_(centre)(size, o, c, centred), o->rounder, c, kind);
    }
    return MMAX_(reduced_of)(MMAX_(centre)(x, o, c, kind), mmax_v_set(o->rounder), c);
}
MMAX_INLINE mmax_vec MMAX_(exp_end)(MMAX_(reduced) r, mmax_vec x, const MMAX_(origin) * o, const MMAX_(call) * c,
                                    int function, int kind, mmax_vec *summed)
{
    mmax_vec e;
    if (function == MMAX_TANHMAX) {
        const int is_far = kind == MMAX_ROW_GENERAL && o->shift > 0;
        e = MMAX_(sinh_end)(r, MMAX_(exp_score)(x, function, kind), o->rounder, is_far, summed);
        if (kind >= MMAX_ROW_CLAMP) {
            *summed = mmax_v_keep(mmax_v_nle(x, mmax_v_set(MMAX_MASK)), *summed);
        }
        return e;
    }
    e = MMAX_(pow2_of)(r);
    if (function == MMAX_EVSOFTMAX) {
        e = mmax_v_select(mmax_v_lt(x, mmax_v_set(o->mean)), mmax_v_mul(e, mmax_v_set(c->epsilon)), e);
    }
    if (kind == MMAX_ROW_GENERAL) {
        e = MMAX_(masked_exp)(e, x, function);
    }
    *summed = e;
    return e;
}
MMAX_INLINE mmax_vec MMAX_(exp_part)(mmax_vec x, const MMAX_(origin) * o, const MMAX_(call) * c, int function, int kind,
                                     mmax_vec *summed)
{
    return MMAX_(exp_end)(MMAX_(exp_begin)(x, o, c, function, kind), x, o, c, function, kind, summed);
}

/* A row on its way through the passes. */
typedef struct MMAX_(row) {
    mmax_real *y;
    const mmax_real *x;
    size_t n;
    const mmax_real *scores; /* x, or y where MultiMax has left sigma */
    mmax_real *e;            /* its exponentials: y, or a buffer where their sum is all that is wanted */
    const mmax_real *next;   /* logits that come to be read, or x */
    size_t later;            /* entries from what is written to what comes to be, or 0 */
    MMAX_(origin) origin;
    const MMAX_(origin) * relative_to; /* what its exponentials are taken relative to */
    double sum;                        /* for logarithms log(sum / exp(maximum)) */
    double lost;                       /* of the sum, see sum_parts; not for logarithms */
    int state;                         /* MMAX_IS_NORMAL, .. */
} MMAX_(row);

/* Second pass: exponentials relative to the origin, and their sums, of rows of one length and kind. Entries MMAX_LANES
 * apart are added in pairs first, exact where they are equal.
 * The way from a score to the sum is longer than a processor looks ahead: where there are not too many registers to
 * hold, each step adds the last one's pairs and reduces the next one's scores, be they those of the next row.
 */
#    define MMAX_AHEAD (MMAX_FAST && MMAX_REGS <= 4)
MMAX_INLINE void MMAX_(exp_rows)(MMAX_(sum) * sums, const MMAX_(row) * rows, size_t count, const MMAX_(call) * call,
                                 int function, int kind)
{
    /* Copies: for all the compiler knows, a store to y could change what the pointers show. */
    const MMAX_(call) constants = *call, *const c = &constants;
    MMAX_(reduced) ahead[2][MMAX_REGS];
#    define MMAX_BEGIN(scores, origin)                                                                    \
        MMAX_EACH(k_)                                                                                     \
        {                                                                                                 \
            const mmax_real *const first_ = (scores) + k_ * MMAX_WIDTH;                                   \
            ahead[0][k_] = MMAX_(exp_begin)(mmax_v_load(first_), origin, c, function, kind);              \
            ahead[1][k_] = MMAX_(exp_begin)(mmax_v_load(first_ + MMAX_LANES), origin, c, function, kind); \
        }
#    define MMAX_TERM(e, at, left)                                                           \
        mmax_vec e;                                                                          \
        const mmax_vec x_##e = MMAX_(load_upto)(x + (at), left, mmax_v_zero());              \
        MMAX_(store_upto)(y + (at), left, MMAX_(exp_part)(x_##e, o, c, function, kind, &e)); \
        e = MMAX_(first_upto)(e, left);
#    define MMAX_STEP(e, half, k, first)                                                         \
        {                                                                                        \
            const mmax_vec x_ = mmax_v_load(x + first);                                          \
            MMAX_(fetch)(next + first, k);                                                       \
            if (MMAX_AHEAD) {                                                                    \
                const MMAX_(reduced) reduced_ = ahead[half][k];                                  \
                const mmax_vec ahead_x_ = mmax_v_load(ahead_x + (first - at));                   \
                mmax_v_store(y + first, MMAX_(exp_end)(reduced_, x_, o, c, function, kind, &e)); \
                ahead[half][k] = MMAX_(exp_begin)(ahead_x_, &ahead_origin, c, function, kind);   \
            } else {                                                                             \
                mmax_v_store(y + first, MMAX_(exp_part)(x_, o, c, function, kind, &e));          \
            }                                                                                    \
        }
    if (MMAX_AHEAD && rows->n > MMAX_PAIR) {
        MMAX_BEGIN(rows->scores, rows->relative_to)
    }
    for (size_t i = 0; i < count; ++i) {
        const MMAX_(row) *const r = &rows[i], *const following = i + 1 < count ? r + 1 : r;
        const mmax_real *const x = r->scores, *const next = r->next;
        mmax_real *const y = r->e;
        const size_t n = r->n, whole = n > MMAX_PAIR ? n - n % MMAX_PAIR : 0, later = r->later;
        const MMAX_(origin) origin = *r->relative_to, *const o = &origin;
        mmax_vec pair[MMAX_REGS];
        MMAX_(sum) sum[1];
        MMAX_(sums_clear)(sum, 1);
        MMAX_EACH_REST(k)
        {
            const size_t at = whole + (size_t)(k * MMAX_WIDTH);
            const ptrdiff_t left = (ptrdiff_t)(n - whole) - k * MMAX_WIDTH;
            pair[k] = mmax_v_zero();
            if (left > 0) {
                MMAX_TERM(e0, at, left)
                pair[k] = e0;
                if (left > MMAX_LANES) {
                    MMAX_TERM(e1, at + MMAX_LANES, left - MMAX_LANES)
                    pair[k] = mmax_v_add(e0, e1);
                }
            }
        }
        if (whole == 0) {
            MMAX_(sum_add)(sum, pair);
        }
        for (size_t chunk = 0; chunk < whole; chunk += MMAX_EXP_CHUNK) {
            const size_t end = whole - chunk < MMAX_EXP_CHUNK ? whole : chunk + MMAX_EXP_CHUNK;
            MMAX_(exact) exact;
            MMAX_EACH(k)
            {
                MMAX_(exact_begin)(&exact, k);
                if (!MMAX_AHEAD && chunk == 0) {
                    MMAX_(exact_add)(&exact, k, pair[k]);
                }
            }
            for (size_t at = chunk; at < end; at += MMAX_PAIR) {
                const int is_last = at + MMAX_PAIR >= whole;
                const mmax_real *const ahead_x = !is_last        ? x + at + MMAX_PAIR
                                                 : following > r ? following->scores
                                                                 : x + at;
                const MMAX_(origin) ahead_origin = *(is_last ? following : r)->relative_to;
                if (later > 0) {
                    MMAX_EACH(k)
                    {
                        MMAX_(fetch_after)(y + at + k * MMAX_WIDTH, later, k);
                        MMAX_(fetch_after)(y + at + MMAX_LANES + k * MMAX_WIDTH, later, k);
                    }
                }
                MMAX_EACH(k)
                {
                    const size_t first = at + (size_t)(k * MMAX_WIDTH), second = first + MMAX_LANES;
                    mmax_vec e0, e1;
                    if (MMAX_AHEAD) {
                        MMAX_(exact_add)(&exact, k, pair[k]);
                    }
                    MMAX_STEP(e0, 0, k, first)
                    MMAX_STEP(e1, 1, k, second)
                    if (MMAX_AHEAD) {
                        pair[k] = mmax_v_add(e0, e1);
                    } else {
                        MMAX_(exact_add)(&exact, k, mmax_v_add(e0, e1));
                    }
                }
                (void)ahead_x;
                (void)ahead_origin;
            }
            if (MMAX_AHEAD) {
                MMAX_EACH(k)
                {
                    MMAX_(exact_add)(&exact, k, pair[k]);
                    pair[k] = mmax_v_zero();
                }
            }
            MMAX_(exact_end)(sum, &exact);
        }
        sums[i] = sum[0];
    }
#    undef MMAX_BEGIN
#    undef MMAX_STEP
#    undef MMAX_TERM
}

/* 1 - a b for a b near 1 */
MMAX_INLINE double MMAX_(product_rest)(double a, double b)
{
#    if MMAX_FMA
    return mmax_s_dfma(-a, b, 1.0);
#    else
    const double a_top = mmax_f64_top(a), a_rest = a - a_top, b_top = mmax_f64_top(b), b_rest = b - b_top;
    return ((1.0 - a_top * b_top) - (a_top * b_rest + a_rest * b_top)) - mmax_product(a_rest, b_rest);
#    endif
}

/* Third pass: y times 1/sum; results below the smallest normal number become 0 without ever being computed. In f64
 * 1/sum has a second part: its rounding, and that of the sum, would take a weight beyond 4 ULP. In f32 the rounding of
 * the sum is missing, and makes room for the other. */
typedef struct MMAX_(scaling) {
    mmax_real factor;   /* 1/sum */
    mmax_real smallest; /* exponentials below it have no normal weight */
#    if MMAX_PASS_DOUBLE
    mmax_real rest; /* of 1/sum, in the double after the last */
#    endif
} MMAX_(scaling);
#    if MMAX_PASS_DOUBLE
/* Where a weight may be small, products are so many times as large at first: the smaller one is a normal number, too. */
#        define MMAX_RAISED     MMAX_TWO_TO_64
#        define MMAX_LEAST_REST 3.469446951953614e-18 /* 2^-58 of the factor: less makes no difference */
/* 2^-900: low entries alone lose as little, which makes no difference, and 1/sum of it is below the normal numbers. */
#        define MMAX_NO_LOSS 1.1830521861667747e-271
#    endif

/* Of sum + lost, f64 only. */
MMAX_INLINE MMAX_(scaling) MMAX_(scaling_of)(double sum, double lost)
{
    const double inverse = 1.0 / sum;
    MMAX_(scaling) w;
    w.factor = (mmax_real)inverse;
    w.smallest = (mmax_real)(MMAX_REAL_MIN * sum * MMAX_ABOVE_ONE);
#    if MMAX_PASS_DOUBLE
    lost = lost < MMAX_NO_LOSS && lost > -MMAX_NO_LOSS ? 0 : lost;
    w.rest = (MMAX_(product_rest)(inverse, sum) - mmax_product(inverse, lost)) * inverse;
    w.rest = w.rest < inverse * MMAX_LEAST_REST && w.rest > inverse * -MMAX_LEAST_REST ? 0 : w.rest;
#    else
    (void)lost;
#    endif
    return w;
}

/* `negative` says whether e may be. */
MMAX_INLINE mmax_vec MMAX_(scaled)(mmax_vec e, const MMAX_(scaling) * w, int clamped, int negative)
{
    if (clamped) {
        e = mmax_v_keep(mmax_v_le(mmax_v_set(w->smallest), negative ? mmax_v_abs(e) : e), e);
    }
#    if MMAX_PASS_DOUBLE
    {
        const double raised = clamped ? MMAX_RAISED : 1;
        e = mmax_v_fma(e, mmax_v_set(w->factor * raised), mmax_v_mul(e, mmax_v_set(w->rest * raised)));
        return clamped ? mmax_v_mul(e, mmax_v_set(1 / MMAX_RAISED)) : e;
    }
#    else
    return mmax_v_mul(e, mmax_v_set(w->factor));
#    endif
}

/* The last register of a row ends where the row does and takes some entries twice: behind a store of a part of a
 * register, loads from the next row would wait. */
MMAX_INLINE void MMAX_(scale_row)(mmax_real *y, size_t n, double sum, double lost, int clamped)
{
    const MMAX_(scaling) w = MMAX_(scaling_of)(sum, lost);
    const size_t whole = n < MMAX_WIDTH ? n : n - n % MMAX_WIDTH;
    const mmax_vec last = whole < n ? mmax_v_load(y + n - MMAX_WIDTH) : mmax_v_zero();
#    define MMAX_STEP(at, left, k, part)                                   \
        const mmax_vec e_ = MMAX_(load_upto)(y + at, left, mmax_v_zero()); \
        MMAX_(store_upto)(y + at, left, MMAX_(scaled)(e_, &w, clamped, 1));
    MMAX_SWEEP(whole, MMAX_STEP);
#    undef MMAX_STEP
    if (whole < n) {
        mmax_v_store(y + n - MMAX_WIDTH, MMAX_(scaled)(last, &w, clamped, 1));
    }
}

MMAX_STATIC void MMAX_(scale)(mmax_real *y, size_t n, double sum, double lost, int kind)
{
    if (MMAX_FAST && kind == MMAX_ROW_PLAIN) {
        MMAX_(scale_row)(y, n, sum, lost, 0);
    } else {
        MMAX_(scale_row)(y, n, sum, lost, 1);
    }
}

/* Of n <= MMAX_SHORT logits the sum of the active ones, and how many they are, in the type's own digits. */
MMAX_INLINE void MMAX_(short_mean)(double *sum, double *count, const mmax_real *x, size_t n)
{
    const mmax_vec masked = mmax_v_set(MMAX_MASK), one = mmax_v_set((mmax_real)1);
    mmax_vec sums[MMAX_CALL_REGS], ones[MMAX_CALL_REGS];
    MMAX_EACH_OF(k, MMAX_CALL_REGS) { sums[k] = ones[k] = mmax_v_zero(); }
    for (size_t at = 0, k = 0; at < n; at += MMAX_WIDTH, k = (k + 1) % MMAX_CALL_REGS) {
        const mmax_vec logit = MMAX_(load_upto)(x + at, (ptrdiff_t)(n - at), masked);
        const mmax_mask active = mmax_v_nle(logit, masked);
        sums[k] = mmax_v_add_where(active, sums[k], logit);
        ones[k] = mmax_v_add_where(active, ones[k], one);
    }
    *sum = (double)MMAX_(lane)(mmax_v_hsum(MMAX_(halved_of)(sums, MMAX_CALL_REGS)));
    *count = (double)MMAX_(lane)(mmax_v_hsum(MMAX_(halved_of)(ones, MMAX_CALL_REGS)));
}

/* The mean of the active entries of a short row, or when the plain sum overflowed or met a mask; NaN for a row with
 * NaN. */
MMAX_STATIC void MMAX_(careful_mean)(double *mean, const mmax_real *x, size_t n)
{
    const mmax_vec masked = mmax_v_set(MMAX_MASK), one = mmax_v_set((mmax_real)1);
    double sum, tiny_sum = 0, count;
    if (n <= MMAX_SHORT) {
        MMAX_(short_mean)(&sum, &count, x, n);
    } else {
        MMAX_(sum) sums[2];
        MMAX_(sums_clear)(sums, 2);
#    define MMAX_STEP(at, left, k, part)                                          \
        const mmax_vec logit = MMAX_(load_upto)(x + at, left, masked);            \
        const mmax_mask active = mmax_v_nle(logit, masked);                       \
        lanes_##part[0][k] = mmax_v_add_where(active, lanes_##part[0][k], logit); \
        lanes_##part[1][k] = mmax_v_add_where(active, lanes_##part[1][k], one);
        MMAX_SWEEP_SUM(n, sums, 2, MMAX_STEP);
#    undef MMAX_STEP
        sum = MMAX_(sum_total)(&sums[0]);
        count = MMAX_(sum_total)(&sums[1]);
    }
    if (mmax_f64_is_finite(sum)) {
        *mean = sum / count;
        return;
    }
    sum = 0;
    count = 0;
    for (size_t i = 0; i < n; ++i) {
        if (!mmax_is_masked(x[i])) {
            sum += (double)x[i];
            tiny_sum += mmax_product((double)x[i], MMAX_TINY);
            count += 1;
        }
    }
    *mean = mmax_f64_is_finite(sum) ? sum / count : tiny_sum / count * (1 / MMAX_TINY);
}

/* The rounded mean of equal entries may lie above them all. */
MMAX_INLINE mmax_real MMAX_(mean_of)(double mean, mmax_real max) { return mean < max ? (mmax_real)mean : max; }

/* First pass: decides what the row is. EMPTY rows have no weight anywhere, NAN rows a NaN or a score of +inf. */
MMAX_INLINE int MMAX_(begin_row)(MMAX_(origin) * o, const mmax_real *y, const mmax_real *x, size_t n,
                                 const MMAX_(call) * c, int function)
{
    MMAX_(extremes) e;
    if (n == 0) {
        return MMAX_IS_EMPTY;
    }
    e = MMAX_(row_extremes)(NULL, x, n, c, function, function == MMAX_EVSOFTMAX);
    *o = MMAX_(origin_of)(&e, n, c);
    if (o->kind != MMAX_ROW_PLAIN) {
        const double top = (double)e.max * c->scale;
        if (MMAX_UNLIKELY(!mmax_is_finite(e.max) || !(top <= MMAX_REAL_MAX && top >= -MMAX_REAL_MAX))) {
            /* A score beyond the range of the type counts as infinite. */
            return e.max < 0 && !MMAX_(has_nan)(x, n) ? MMAX_IS_EMPTY : MMAX_IS_NAN;
        }
        /* In place, masked entries of a row with NaN could not be told from low ones later. */
        if (y == x && o->kind == MMAX_ROW_CLAMP && e.min == MMAX_MASK && MMAX_(has_nan)(x, n)) {
            return MMAX_IS_NAN;
        }
    }
    if (function == MMAX_EVSOFTMAX) {
        double mean = e.sum / (double)n;
        if (n <= MMAX_SHORT || !mmax_f64_is_finite(e.sum)) {
            MMAX_(careful_mean)(&mean, x, n);
        }
        if (mmax_f64_is_nan(mean)) {
            return MMAX_IS_NAN;
        }
        o->mean = MMAX_(mean_of)(mean, e.max);
    }
    return MMAX_IS_NORMAL;
}

MMAX_INLINE void MMAX_(store_sigma_of)(mmax_real *y, const mmax_real *x, size_t n, const MMAX_(call) * c, int function,
                                       int careful)
{
    const MMAX_(call) copy = *c; /* which no store can change */
#    define MMAX_STEP(at, left, k, part)                                      \
        const mmax_vec logit = MMAX_(load_upto)(x + at, left, mmax_v_zero()); \
        MMAX_(store_upto)(y + at, left, MMAX_(score)(logit, &copy, function, careful));
    MMAX_SWEEP(n, MMAX_STEP);
#    undef MMAX_STEP
}
MMAX_STATIC void MMAX_(store_sigma)(mmax_real *y, const mmax_real *x, size_t n, const MMAX_(call) * c, int function,
                                    int careful)
{
    if (function == MMAX_MULTIMAX1) {
        MMAX_(store_sigma_of)(y, x, n, c, MMAX_MULTIMAX1, 1);
    } else if (careful) {
        MMAX_(store_sigma_of)(y, x, n, c, MMAX_MULTIMAX2, 1);
    } else {
        MMAX_(store_sigma_of)(y, x, n, c, MMAX_MULTIMAX2, 0);
    }
}

/* Bounds of sigma where the logits are within `logits`: sigma of their extremes and where it turns between them.
 * Returns 0 where the scores are beyond the safe bound, or a peak lies between them and the call wants none. */
MMAX_INLINE int MMAX_(sigma_bounds)(MMAX_(extremes) * e, const MMAX_(extremes) * logits, const MMAX_(call) * c,
                                    int function)
{
    const mmax_real from = logits->min * c->input_scale, to = logits->max * c->input_scale;
    const mmax_real first = MMAX_(lane)(MMAX_(score)(mmax_v_set(logits->min), c, function, 0));
    const mmax_real last = MMAX_(lane)(MMAX_(score)(mmax_v_set(logits->max), c, function, 0));
    if (!(from >= -c->safe && to <= c->safe)) {
        return 0;
    }
    e->max = first < last ? last : first;
    e->min = first < last ? first : last;
    e->peak = 0;
    for (int i = 0; i < c->turns->count; ++i) {
        const mmax_real score = c->turns->score[i];
        if (c->turns->at[i] > from && c->turns->at[i] < to) {
            if (c->turns->falls[i] && !c->peaks) {
                return 0;
            }
            if (c->turns->falls[i] && score > e->max) {
                e->max = score;
                e->peak = 1;
            }
            e->min = score < e->min ? score : e->min;
        }
    }
    return 1;
}

/* Bounds of sigma from the extremes of the logits: in place or not, with gx and without it, so that the bits are the
 * same. Returns 0 where they do not serve, most often after a look at the first block. Sigma goes to y, unless that is
 * NULL. */
MMAX_INLINE int MMAX_(bounded_row)(MMAX_(extremes) * e, mmax_real *y, const mmax_real *x, size_t n,
                                   const MMAX_(call) * c, int function)
{
    const size_t look = c->peaks ? MMAX_CHUNK : MMAX_BLOCK;
    if (!y || n > look) {
        const MMAX_(extremes) logits = MMAX_(row_extremes)(NULL, x, y ? look : n, c, function, 0);
        if (!MMAX_(sigma_bounds)(e, &logits, c, function)) {
            return 0;
        }
    }
    if (y) {
        const MMAX_(extremes) logits = MMAX_(row_extremes)(y, x, n, c, function, 0);
        return MMAX_(sigma_bounds)(e, &logits, c, function);
    }
    return 1;
}

/* begin_row for MultiMax, with sigma of the row written to y, unless y is NULL. y may be x: then it is written only
 * after the decision. */
MMAX_INLINE int MMAX_(begin_sigma)(MMAX_(origin) * o, int *careful, mmax_real *y, const mmax_real *x, size_t n,
                                   const MMAX_(call) * c, int function)
{
    const int store = y != NULL && y != x, turns = c->turns && n >= MMAX_TURNS_LEAST(c);
    int guess, taken = 0, masks = 0;
    MMAX_(extremes) e;
    *careful = 0;
    if (n == 0) {
        return MMAX_IS_EMPTY;
    }
    /* Most masks are at an end, where a row was padded, or in every row. Where bounds may serve, a wrong guess costs
     * more, and only two rows make one. */
    guess = *c->masks > turns || mmax_is_masked(x[0]) || mmax_is_masked(x[n - 1]);
    for (int first = 1; first >= 0 && !taken; --first) { /* one copy of each way, in either order */
        if (first == guess) {
            masks = MMAX_(sigma_row)(&e, y, x, n, c, function, 0, 1, store);
            taken = masks && (!first || !turns || e.min < -MMAX_REAL_MAX); /* bounds come before, where they may */
        } else if (turns && MMAX_(bounded_row)(&e, store ? y : NULL, x, n, c, function)) {
            taken = 1;
        } else {
            taken = store ? MMAX_(sigma_row)(&e, y, x, n, c, function, 0, 0, 1)
                          : MMAX_(sigma_row)(&e, y, x, n, c, function, 0, 0, 0);
        }
    }
    if (!taken) {
        *careful = 1;
        if (!MMAX_(sigma_row)(&e, y, x, n, c, function, 1, 0, 0)) {
            return MMAX_IS_NAN;
        }
    }
    masks = masks && e.min < -MMAX_REAL_MAX;
    *c->masks = masks ? 1 + (*c->masks > 0) : 0;
    if (e.max < -MMAX_REAL_MAX) {
        return MMAX_IS_EMPTY;
    }
    if (y && (*careful || !store)) {
        MMAX_(store_sigma)(y, x, n, c, function, *careful || masks);
    }
    *careful |= masks && !c->clears; /* sigma may be wanted once more */
    *o = MMAX_(origin_of)(&e, n, c);
    return MMAX_IS_NORMAL;
}

/* instance(name, function) for each of the four. */
#    define MMAX_EACH_FUNCTION(instance)                                                                        \
        instance(softmax, MMAX_SOFTMAX) instance(multimax1, MMAX_MULTIMAX1) instance(multimax2, MMAX_MULTIMAX2) \
            instance(evsoftmax, MMAX_EVSOFTMAX)

/* The first two passes of a function. The compiler knows the table wherever it is used, and does not spend time on
 * passes of functions that are not. */
typedef struct MMAX_(passes) {
    int function;
    int (*begin_row)(MMAX_(origin) *, int *careful, mmax_real *y, const mmax_real *x, size_t n, const MMAX_(call) *);
    void (*exp_rows)(MMAX_(sum) *, const MMAX_(row) *, size_t count, const MMAX_(call) *);
} MMAX_(passes);

/* One copy of each pass, shared by a function's forward, logarithm and loss. MultiMax leaves sigma in y. */
MMAX_STATIC int MMAX_(begin_softmax)(MMAX_(origin) * o, int *careful, mmax_real *y, const mmax_real *x, size_t n,
                                     const MMAX_(call) * c)
{
    *careful = 0;
    return MMAX_(begin_row)(o, y, x, n, c, MMAX_SOFTMAX);
}
MMAX_STATIC int MMAX_(begin_evsoftmax)(MMAX_(origin) * o, int *careful, mmax_real *y, const mmax_real *x, size_t n,
                                       const MMAX_(call) * c)
{
    *careful = 0;
    return MMAX_(begin_row)(o, y, x, n, c, MMAX_EVSOFTMAX);
}
MMAX_STATIC int MMAX_(begin_multimax1)(MMAX_(origin) * o, int *careful, mmax_real *y, const mmax_real *x, size_t n,
                                       const MMAX_(call) * c)
{
    return MMAX_(begin_sigma)(o, careful, y, x, n, c, MMAX_MULTIMAX1);
}
MMAX_STATIC int MMAX_(begin_multimax2)(MMAX_(origin) * o, int *careful, mmax_real *y, const mmax_real *x, size_t n,
                                       const MMAX_(call) * c)
{
    return MMAX_(begin_sigma)(o, careful, y, x, n, c, MMAX_MULTIMAX2);
}
/* Without MMAX_FAST all rows are GENERAL ones. */
#    define MMAX_INSTANCE(name, function)                                                                             \
        MMAX_STATIC void MMAX_(name)(MMAX_(sum) * sums, const MMAX_(row) * rows, size_t count, const MMAX_(call) * c) \
        {                                                                                                             \
            if (MMAX_FAST && rows->relative_to->kind == MMAX_ROW_PLAIN) {                                             \
                MMAX_(exp_rows)(sums, rows, count, c, function, MMAX_ROW_PLAIN);                                      \
            } else if (MMAX_FAST && rows->relative_to->kind == MMAX_ROW_CLAMP) {                                      \
                MMAX_(exp_rows)(sums, rows, count, c, function, MMAX_ROW_CLAMP);                                      \
            } else {                                                                                                  \
                MMAX_(exp_rows)(sums, rows, count, c, function, MMAX_ROW_GENERAL);                                    \
            }                                                                                                         \
        }
MMAX_INSTANCE(exp_softmax, MMAX_SOFTMAX)
MMAX_INSTANCE(exp_evsoftmax, MMAX_EVSOFTMAX)
#    undef MMAX_INSTANCE
static const MMAX_(passes) MMAX_(softmax_passes) = {MMAX_SOFTMAX, MMAX_(begin_softmax), MMAX_(exp_softmax)};
static const MMAX_(passes) MMAX_(multimax1_passes) = {MMAX_MULTIMAX1, MMAX_(begin_multimax1), MMAX_(exp_softmax)};
static const MMAX_(passes) MMAX_(multimax2_passes) = {MMAX_MULTIMAX2, MMAX_(begin_multimax2), MMAX_(exp_softmax)};
static const MMAX_(passes) MMAX_(evsoftmax_passes) = {MMAX_EVSOFTMAX, MMAX_(begin_evsoftmax), MMAX_(exp_evsoftmax)};

/* Runs `row_code` for each row with n active entries; what lies past them in `out` becomes `past`. */
#    define MMAX_EACH_ROW(s, out, out_stride, past, row_code)                         \
        do {                                                                          \
            for (size_t row = 0; row < (s)->rows; ++row) {                            \
                const size_t n = (s)->lengths ? (s)->lengths[row] : (s)->cols;        \
                row_code;                                                             \
                if (n < (s)->cols) {                                                  \
                    MMAX_(fill)((out) + row * (out_stride) + n, (s)->cols - n, past); \
                }                                                                     \
            }                                                                         \
        } while (0)

/* The rows of a call, or some of them. Neighbours are none in mmax_shape: compilers would copy both at once, and a load
 * waits where two stores made what it reads. */
typedef struct MMAX_(batch) {
    mmax_real *y; /* weights, logarithms or, for losses, the gradient or NULL */
    size_t rows;
    const mmax_real *x;
    size_t cols;
    const uint32_t *lengths;
    size_t x_stride;
    double *loss; /* losses only, as all from index on */
    size_t y_stride;
    const int32_t *index;
    const mmax_targets *targets;
    struct MMAX_(slopes) * slopes; /* MultiMax: of the call */
    int params;                    /* whether the call wants gp */
} MMAX_(batch);

MMAX_INLINE MMAX_(batch) MMAX_(batch_of)(mmax_real *y, const mmax_real *x, size_t y_stride, const mmax_shape *s)
{
    MMAX_(batch) b;
    b.y = y;
    b.x = x;
    b.rows = s->rows;
    b.cols = s->cols;
    b.x_stride = s->x_stride;
    b.y_stride = y_stride;
    b.lengths = s->lengths;
    b.loss = NULL;
    b.index = NULL;
    b.targets = NULL;
    b.slopes = NULL;
    b.params = 0;
    return b;
}

MMAX_INLINE size_t MMAX_(length_of)(const MMAX_(batch) * b, size_t row)
{
    return b->lengths ? b->lengths[row] : b->cols;
}

MMAX_INLINE MMAX_(batch) MMAX_(part_of)(const MMAX_(batch) * b, size_t from, size_t rows)
{
    MMAX_(batch) part = *b;
    part.y = b->y ? b->y + from * b->y_stride : NULL;
    part.x = b->x + from * b->x_stride;
    part.rows = rows;
    part.lengths = b->lengths ? b->lengths + from : NULL;
    part.loss = b->loss ? b->loss + from : NULL;
    part.index = b->index ? b->index + from : NULL;
    return part;
}

typedef struct MMAX_(group) MMAX_(group);
/* What goes through the rows, what takes those from `from` on alone, a pass over the rows of a group, and what ends the
 * work on them. */
typedef void (*MMAX_(rows))(const MMAX_(batch) *, const MMAX_(call) *);
typedef void (*MMAX_(lone))(const MMAX_(batch) *, size_t from, const MMAX_(call) *);
typedef void (*MMAX_(pass))(MMAX_(group) *, const MMAX_(batch) *, const MMAX_(call) *);
typedef void (*MMAX_(end))(const MMAX_(group) *, const MMAX_(batch) *, const MMAX_(call) *);

/* Whether the second cache has room for the next row of logits beside what is being worked on. */
#    define MMAX_FETCHES(b) ((b)->cols <= 131072 / sizeof(mmax_real))

/* A row is worked on a block at a time where its exponentials come and go. */
#    define MMAX_EACH_BLOCK(n) \
        for (size_t at = 0, count; (count = (n)-at < MMAX_BLOCK ? (n)-at : MMAX_BLOCK) > 0; at += count)

/* ---- what logarithms and losses take of a row ---- */

/* Below so many times the largest exponential, the sum is mostly that one. */
#    define MMAX_FEW_BOUND 1.75

#    if MMAX_PASS_DOUBLE
/* log(1 + v) for v >= 0, or 0 where v is not above the smallest normal number: 1 + v = 2^k (1 + f), 1 + f in
 * [sqrt(1/2), sqrt(2)]. Of log(1 + f) = 2 artanh(z), z = f / (2 + f), only what is small is rounded more than once:
 * 2 z = f - f^2/2 + z f^2/2. */
MMAX_INLINE mmax_vec MMAX_(log1p_of)(mmax_vec v)
{
    const mmax_vec one = mmax_v_set(1), whole = mmax_v_opaque(mmax_v_add(one, v)), shadow = mmax_v_sub(whole, one);
    const mmax_vec lost = mmax_v_add(mmax_v_sub(one, mmax_v_sub(whole, shadow)), mmax_v_sub(v, shadow));
    const mmax_vec k = mmax_v_exponent(whole), mantissa = mmax_v_mantissa(whole);
    /* f is v itself where k = 0 */
    const mmax_mask is_large = mmax_v_ne(mantissa, whole);
    const mmax_vec f = mmax_v_select(is_large, mmax_v_sub(mantissa, one), v);
    const mmax_vec z = mmax_v_div(f, mmax_v_add(mmax_v_set(2), f)), z2 = mmax_v_mul(z, z), z4 = mmax_v_mul(z2, z2);
    const mmax_vec half_square = mmax_v_product(mmax_v_mul(mmax_v_set(0.5), f), f);
    /* artanh(z) = z + z^3/3 + z^5/5 + ..; |z| < 0.1716, the first term left out is 2^-61 of the first */
    mmax_vec even = mmax_v_set(1.0 / 23), odd = mmax_v_set(1.0 / 21), series, low;
    MMAX_UNROLL for (int n = 17; n >= 5; n -= 4)
    {
        even = mmax_v_fma(even, z4, mmax_v_set(1.0 / (n + 2)));
        odd = mmax_v_fma(odd, z4, mmax_v_set(1.0 / n));
    }
    series = mmax_v_fma(odd, z2, mmax_v_fma(even, z4, mmax_v_set(1.0 / 3)));
    /* log(2) in two parts; the first has 42 bits, its product with k is exact */
    low = mmax_v_fma(k, mmax_v_set(5.4979230187083712e-14), mmax_v_div(mmax_v_keep(is_large, lost), whole));
    low = mmax_v_fma(z, mmax_v_fma(mmax_v_add(z2, z2), series, half_square), low);
    low = mmax_v_fma(k, mmax_v_set(0.69314718055989033), mmax_v_sub(f, mmax_v_sub(half_square, low)));
    return mmax_v_keep(mmax_v_nle(v, mmax_v_set(MMAX_REAL_MIN)), low);
}

MMAX_STATIC double MMAX_(log1p)(double v) { return MMAX_(lane)(MMAX_(log1p_of)(mmax_v_set(v))); }

/* Of several numbers, in place; `count` is a multiple of MMAX_WIDTH. */
MMAX_STATIC void MMAX_(log1ps)(double *numbers, size_t count)
{
    for (size_t at = 0; at < count; at += MMAX_WIDTH) {
        mmax_v_store(numbers + at, MMAX_(log1p_of)(mmax_v_load(numbers + at)));
    }
}

#        if MMAX_FAST
/* log(sum / top) of several rows, top being the largest term, as floats or as doubles: with the sum of the others where
 * MMAX_HOLDS_FEW. */
MMAX_STATIC void MMAX_(log_sums)(double *log_sum, const double *sums, const double *others, const void *tops,
                                 int are_floats, size_t count)
{
    for (size_t at = 0; at < count; at += MMAX_WIDTH) {
        const mmax_vec top =
            are_floats ? mmax_v_widen((const float *)tops + at) : mmax_v_load((const double *)tops + at);
        const mmax_vec sum = mmax_v_load(sums + at);
        const mmax_mask holds_many = mmax_v_le(mmax_v_mul(mmax_v_set(MMAX_FEW_BOUND), top), sum);
        const mmax_vec rest = mmax_v_select(holds_many, mmax_v_sub(sum, top), mmax_v_load(others + at));
        mmax_v_store(log_sum + at, MMAX_(log1p_of)(mmax_v_div(rest, top)));
    }
}
#        endif
#    endif

/* The exponentials of n scores x, and their sum. MultiMax: `sigma_there` says that e holds sigma of x already. `next`:
 * see MMAX_(row). */
MMAX_INLINE double MMAX_(exp_block)(mmax_real *e, const mmax_real *x, size_t n, const mmax_real *next,
                                    const MMAX_(origin) * o, const MMAX_(call) * c, const MMAX_(passes) * f,
                                    int careful, int sigma_there)
{
    const int sigma = mmax_is_sigma(f->function);
    MMAX_(row) r;
    MMAX_(sum) sum;
    if (sigma && !sigma_there) {
        MMAX_(store_sigma)(e, x, n, c, f->function, careful);
    }
    r.e = e;
    r.n = n;
    r.scores = sigma ? e : x;
    r.next = next;
    r.later = MMAX_LATER_AT_LEAST;
    r.relative_to = o;
    f->exp_rows(&sum, &r, 1, c);
    return MMAX_(sum_total)(&sum);
}

/* Sum / exp(maximum) - 1 where one entry has most of the sum: of exponentials that hold it, and `others`. */
#    define MMAX_BELOW_MAX 0.999
MMAX_STATIC double MMAX_(rest_of)(const mmax_real *e, size_t n, double others, double e_max)
{
    const mmax_vec limit = mmax_v_set((mmax_real)(MMAX_BELOW_MAX * e_max));
    MMAX_(sum) sum[1];
    MMAX_(sums_clear)(sum, 1);
#    define MMAX_STEP(at, left, k, part)                                   \
        const mmax_vec e_ = MMAX_(load_upto)(e + at, left, mmax_v_zero()); \
        lanes_##part[0][k] = mmax_v_add_where(mmax_v_lt(e_, limit), lanes_##part[0][k], e_);
    MMAX_SWEEP_SUM(n, sum, 1, MMAX_STEP);
#    undef MMAX_STEP
    return (others + MMAX_(sum_total)(sum)) / e_max;
}

/* Whether one entry has most of the sum. */
#    define MMAX_HOLDS_FEW(sum, e_max) ((sum) < MMAX_FEW_BOUND * (e_max))
typedef struct MMAX_(exp_sums) {
    double sum;  /* of all exponentials of the row; not finite where it holds NaN */
    int few;     /* whether MMAX_HOLDS_FEW */
    double rest; /* sum / exp(maximum) - 1 */
} MMAX_(exp_sums);

/* Second pass of logarithms and losses. The exponentials stay in e or, where that is NULL, a block at a time in the
 * buffer, which has room for two, or for a row of one block. Where one entry has most of the sum, what is left is added
 * up without it: log(sum) does not lose what is small beside the maximum. Only one block can hold such an entry. */
MMAX_INLINE MMAX_(exp_sums)
    MMAX_(exp_sums_of)(mmax_real *e, mmax_real *buffer, const mmax_real *x, size_t n, const mmax_real *next,
                       const MMAX_(origin) * o, const MMAX_(call) * c, const MMAX_(passes) * f, int careful)
{
    const double e_max = (double)MMAX_(exp_of)(o->max, o, c), bound = MMAX_BELOW_MAX * e_max;
    MMAX_(exp_sums) result;
    double others = 0, lost = 0, top = 0;
    mmax_real *block = buffer, *top_block = n > MMAX_BLOCK ? buffer + MMAX_BLOCK : buffer;
    size_t top_at = 0;
    MMAX_EACH_BLOCK(n)
    {
        double sum = MMAX_(exp_block)(e ? e + at : block, x + at, count, next + at, o, c, f, careful, e != NULL);
        if (sum > bound) {
            const double former = top;
            mmax_real *const former_block = top_block;
            top = sum;
            top_at = at;
            top_block = block;
            sum = former;
            block = former_block;
        }
        MMAX_ADD_EXACTLY(others, lost, sum);
    }
    others += lost;
    result.sum = others + top;
    result.rest = (result.sum - e_max) / e_max;
    result.few = MMAX_HOLDS_FEW(result.sum, e_max);
    if (result.few && top > 0) { /* 0: the origin is a peak of sigma that no score is near, and is taken again */
        const size_t count = n - top_at < MMAX_BLOCK ? n - top_at : MMAX_BLOCK;
        result.rest = MMAX_(rest_of)(e ? e + top_at : top_block, count, others, e_max);
    }
    return result;
}
MMAX_STATIC MMAX_(exp_sums) MMAX_(softmax_sums)(mmax_real *e, mmax_real *buffer, const mmax_real *x, size_t n,
                                                const mmax_real *next, const MMAX_(origin) * o, const MMAX_(call) * c)
{
    return MMAX_(exp_sums_of)(e, buffer, x, n, next, o, c, &MMAX_(softmax_passes), 0);
}

/* Logits from it down, under a scale above 1, have scores beyond the range of the type, which count as -inf. */
#    define MMAX_LOG_BOUND(c) ((mmax_real)(-MMAX_REAL_MAX / (c)->scale) * (1 + MMAX_REAL_EPSILON))
/* y = log of the weights of one row; x has its scores, or, where it is moderate, the logits of `function`. The
 * difference to the maximum is taken in quarters where it would overflow. In a moderate row nothing can, nor is a
 * result subnormal where log_sum is not: the bits are the same. */
MMAX_INLINE void MMAX_(log_row_of)(mmax_real *y, const mmax_real *x, size_t n, const MMAX_(call) * c, int function,
                                   int unscaled, const MMAX_(origin) * o, double row_log_sum, int plain)
{
    const double log_sum = row_log_sum <= (double)MMAX_REAL_MIN ? 0 : row_log_sum;
    const mmax_vec log_high = mmax_v_set((mmax_real)log_sum);
    const mmax_vec minus_log_low = mmax_v_set(-(mmax_real)(log_sum - (double)(mmax_real)log_sum));
    const mmax_real unit = c->after * (c->before / o->before);
    const mmax_vec before = mmax_v_set(o->before), max = mmax_v_set(o->max * o->before);
    const mmax_vec scale_high = mmax_v_set(c->scale_high * unit), scale_low = mmax_v_set(c->scale_low * unit);
    const mmax_vec masked = mmax_v_set(MMAX_MASK), lowest = mmax_v_set(-MMAX_REAL_MAX);
    const mmax_vec bound = unscaled ? masked : mmax_v_set(MMAX_LOG_BOUND(c));
    const mmax_vec smallest = mmax_v_set(MMAX_REAL_MIN);
#    define MMAX_STEP(at, left, k, part)                                                       \
        const mmax_vec logit = MMAX_(load_upto)(x + at, left, mmax_v_zero());                  \
        const mmax_vec score = MMAX_(score)(logit, c, function, 0);                            \
        mmax_vec below = mmax_v_sub(plain ? score : mmax_v_mul(score, before), max), log;      \
        below = plain ? below : mmax_v_max(lowest, below);                                     \
        log = mmax_v_fma(below, scale_high, mmax_v_fma(below, scale_low, minus_log_low));      \
        log = mmax_v_sub(log, log_high);                                                       \
        if (!plain) {                                                                          \
            log = mmax_v_max(lowest, mmax_v_keep(mmax_v_nle(mmax_v_abs(log), smallest), log)); \
            log = mmax_v_select(mmax_v_nle(score, bound), log, masked);                        \
        }                                                                                      \
        MMAX_(fetch_later)(y + at, k);                                                         \
        MMAX_(store_upto)(y + at, left, log);
    MMAX_SWEEP(n, MMAX_STEP);
#    undef MMAX_STEP
}
#    define MMAX_MODERATE ((mmax_real)1073741824.0)
MMAX_STATIC void MMAX_(log_row)(mmax_real *y, const mmax_real *x, size_t n, const MMAX_(call) * c, int unscaled,
                                const MMAX_(origin) * o, double log_sum)
{
    if (MMAX_FAST && o->range < MMAX_MODERATE) {
        MMAX_(log_row_of)(y, x, n, c, MMAX_SOFTMAX, unscaled, o, log_sum, 1);
    } else {
        MMAX_(log_row_of)(y, x, n, c, MMAX_SOFTMAX, unscaled, o, log_sum, 0);
    }
}

/* ---- forward: the three passes over each row ---- */

/* ---- forward: long rows ----
 * A block's exponentials are taken while the block is in the first cache, relative to the largest score so far: the row
 * is read once less than where the largest of all comes first. Where the origin changes with it, a new piece begins;
 * the last pass makes up for it, by powers of two.
 */
#    define MMAX_LONG_BYTES 131072
#    define MMAX_PIECES     64
typedef struct MMAX_(long) {
    MMAX_(origin) origin; /* of the last piece */
    MMAX_(sum) sum;
    size_t count, ends[MMAX_PIECES]; /* blocks of masks may follow */
    mmax_real rounders[MMAX_PIECES];
} MMAX_(long);

MMAX_INLINE double MMAX_(two_to)(mmax_real power)
{
    return power < -1022 ? 0 : mmax_f64_from_bits((uint64_t)(1023 + (int)power) << 52);
}

/* All but the last pass, adding to l->sum; without `store` only whether all blocks are ordinary ones, which is
 * returned. */
MMAX_RARE int MMAX_(long_begin)(MMAX_(long) * l, const MMAX_(row) * r, const MMAX_(call) * c, const MMAX_(passes) * f,
                                int store)
{
    const int sigma = mmax_is_sigma(f->function);
    mmax_real lowest = MMAX_REAL_MAX; /* of the scores, times log2(e) */
    int masked = 0;
    l->count = 0;
    MMAX_EACH_BLOCK(r->n)
    {
        const mmax_real *const x = r->x + at;
        mmax_real *const y = r->y + at;
        double factor = 1;
        MMAX_(origin) o;
        MMAX_(sum) sum;
        int careful, at_first;
        const int state = f->begin_row(&o, &careful, store || !sigma ? y : NULL, x, count, c);
        if (state == MMAX_IS_EMPTY) {
            masked = 1;
            if (store) {
                MMAX_(fill)(y, count, 0);
            }
            continue;
        }
        if (state != MMAX_IS_NORMAL || careful || o.kind == MMAX_ROW_GENERAL) {
            return 0;
        }
        if (mmax_is_finite(o.range)) {
            const mmax_real low = o.max * c->log2e - o.range;
            lowest = low < lowest ? low : lowest;
        } else {
            masked = 1;
        }
        at_first = l->count == 0;
        if (at_first || o.rounder < l->origin.rounder) {
            if (l->count == MMAX_PIECES) {
                return 0;
            }
            factor = at_first ? 1 : MMAX_(two_to)(o.rounder - l->origin.rounder);
            l->rounders[l->count++] = o.rounder;
        }
        l->ends[l->count - 1] = at + count;
        l->origin = at_first || o.max > l->origin.max ? o : l->origin;
        l->origin.range = o.range; /* of this block: whether it has masks */
        l->origin.kind = MMAX_ROW_CLAMP;
        if (f->function != MMAX_TANHMAX && !masked) {
            l->origin.kind = MMAX_(kind_of)(l->origin.max * c->log2e - lowest, r->n, c);
        }
        if (store) {
            MMAX_(row) block = *r;
            block.e = y;
            block.n = count;
            block.scores = sigma ? y : x;
            block.next = at + count < r->n ? x + count : x;
            block.relative_to = &l->origin;
            f->exp_rows(&sum, &block, 1, c);
            MMAX_(sum_join)(&l->sum, &sum, factor);
        }
    }
    /* In place, masked entries of a row with NaN could not be told from low ones later. */
    return l->count > 0 && (store || !masked || !MMAX_(has_nan)(r->x, r->n));
}

/* y times 2^-power; what would not come to a weight becomes 0. */
#    if MMAX_PASS_DOUBLE
#        define MMAX_LOWERED 960
#    else
#        define MMAX_LOWERED 64
#    endif
MMAX_RARE void MMAX_(lower)(mmax_real *y, size_t n, mmax_real power)
{
    if (power > MMAX_LOWERED + 66) {
        MMAX_(fill)(y, n, 0);
    } else {
        const int halved = (int)power / 2;
        const mmax_real half = (mmax_real)halved;
        const mmax_vec once = mmax_v_set((mmax_real)MMAX_(two_to)(-half));
        const mmax_vec again = mmax_v_set((mmax_real)MMAX_(two_to)(half - power));
        const mmax_vec smallest = mmax_v_set((mmax_real)MMAX_(two_to)(power - MMAX_LOWERED));
#    define MMAX_STEP(at, left, k, part)                                             \
        const mmax_vec e_ = MMAX_(load_upto)(y + at, left, mmax_v_zero());           \
        const mmax_vec kept_ = mmax_v_keep(mmax_v_le(smallest, mmax_v_abs(e_)), e_); \
        MMAX_(store_upto)(y + at, left, mmax_v_mul(mmax_v_mul(kept_, once), again));
        MMAX_SWEEP(n, MMAX_STEP);
#    undef MMAX_STEP
    }
}

/* What becomes of the row: MMAX_IS_NORMAL, with x as it was, where a block is not an ordinary one, and the usual passes
 * must do. In place, only rows without such a block are begun. */
MMAX_RARE int MMAX_(long_row)(const MMAX_(row) * r, const MMAX_(call) * c, const MMAX_(passes) * f)
{
    MMAX_(long) l;
    double total, lost;
    MMAX_(sum_clear)(&l.sum);
    for (int store = r->y != r->x; store <= 1; ++store) {
        if (!MMAX_(long_begin)(&l, r, c, f, store)) {
            return MMAX_IS_NORMAL;
        }
    }
    total = MMAX_(sum_parts)(&l.sum, &lost);
    if (!mmax_f64_is_finite(total)) {
        return MMAX_IS_NAN; /* in place nothing is masked */
    }
    for (size_t i = 0, from = 0; i < l.count; from = l.ends[i++]) {
        mmax_real power = l.rounders[i] - l.origin.rounder;
        double factor;
        if (power > 16) { /* else the sum is within the type's range */
            MMAX_(lower)(r->y + from, l.ends[i] - from, power);
            power = 0;
        }
        factor = MMAX_(two_to)(power);
        MMAX_(scale)(r->y + from, l.ends[i] - from, total * factor, lost * factor, l.origin.kind);
    }
    return MMAX_IS_DONE;
}

MMAX_INLINE void MMAX_(row_begin)(MMAX_(row) * r, const MMAX_(call) * c, const MMAX_(passes) * f, int logs)
{
    const int by_blocks =
        !logs && r->n > MMAX_LONG_BYTES / sizeof(mmax_real) && f->function != MMAX_EVSOFTMAX && !c->general;
    int careful;
    r->state = by_blocks ? MMAX_(long_row)(r, c, f) : MMAX_IS_NORMAL;
    if (r->state == MMAX_IS_NORMAL) {
        r->state = f->begin_row(&r->origin, &careful, r->y, r->x, r->n, c);
    }
}
/* The second pass of rows[0] and of as many behind it as are like it; returns how many. */
MMAX_INLINE size_t MMAX_(rows_exp)(MMAX_(sum) * sums, const MMAX_(row) * rows, size_t count, const MMAX_(call) * c,
                                   const MMAX_(passes) * f)
{
    size_t alike = 1;
    if (rows->state != MMAX_IS_NORMAL) {
        MMAX_(sum_clear)(sums);
        return 1;
    }
    while (alike < count && rows[alike].state == MMAX_IS_NORMAL && rows[alike].n == rows->n &&
           rows[alike].relative_to->kind == rows->relative_to->kind) {
        ++alike;
    }
    f->exp_rows(sums, rows, alike, c);
    return alike;
}
/* Sum / exp(maximum) - 1 of a row whose n exponentials and their sum are there. */
MMAX_INLINE double MMAX_(rest_beside_max)(const mmax_real *e, size_t n, double sum, const MMAX_(origin) * o,
                                          const MMAX_(call) * c)
{
    const double e_max = (double)MMAX_(exp_of)(o->max, o, c);
    return MMAX_HOLDS_FEW(sum, e_max) ? MMAX_(rest_of)(e, n, 0, e_max) : (sum - e_max) / e_max;
}
/* For logarithms: returns sum / exp(maximum) - 1. `sum` is that of the row's exponentials, in r->e; where it is NULL,
 * they are still to be taken, and r->e is a buffer. */
MMAX_INLINE double MMAX_(row_rest)(MMAX_(row) * r, const double *sum, const MMAX_(call) * c)
{
    MMAX_(exp_sums) sums;
    if (r->state != MMAX_IS_NORMAL) {
        return 0;
    }
    if (sum) { /* what a ?: chooses clang takes for finite under -ffast-math: it does not choose the sum */
        r->state = mmax_f64_is_finite(*sum) ? MMAX_IS_NORMAL : MMAX_IS_NAN;
        return r->state == MMAX_IS_NORMAL ? MMAX_(rest_beside_max)(r->e, r->n, *sum, r->relative_to, c) : 0;
    }
    sums = MMAX_(softmax_sums)(NULL, r->e, r->scores, r->n, r->next, r->relative_to, c);
    r->state = mmax_f64_is_finite(sums.sum) ? MMAX_IS_NORMAL : MMAX_IS_NAN;
    return r->state == MMAX_IS_NORMAL ? sums.rest : 0;
}
MMAX_INLINE void MMAX_(row_end)(MMAX_(row) * r, const MMAX_(call) * c, const MMAX_(passes) * f, int logs)
{
    if (MMAX_UNLIKELY(r->state != MMAX_IS_NORMAL)) {
        if (r->state != MMAX_IS_DONE) {
            MMAX_(fill_special)(r->y, r->x, r->n, r->state == MMAX_IS_NAN, logs ? MMAX_MASK_BITS : 0);
        }
    } else if (logs) {
        MMAX_(log_row)
        (r->y, r->scores, r->n, c, mmax_is_sigma(f->function) || c->scale <= 1, &r->origin, r->sum);
    } else if (MMAX_UNLIKELY(!mmax_f64_is_finite(r->sum))) {
        if (r->y != r->x) {
            MMAX_(fill_special)(r->y, r->x, r->n, 1, 0);
        } else {
            MMAX_(fill_nan)(r->y, r->y, r->n, r->origin.kind == MMAX_ROW_GENERAL);
        }
    } else {
        MMAX_(scale)(r->y, r->n, r->sum, r->lost, r->origin.kind);
    }
}

/* ---- what each of MMAX_WIDTH rows has one of, in one register ---- */
#    if MMAX_FAST
/* halve(j_, j_ + half_) for half_ = count / 2, .. 1 and the j_ below it, count being at most 16 */
#        define MMAX_HALVE(count, halve)                             \
            MMAX_UNROLL for (int level_ = 1; level_ < 5; ++level_)   \
            {                                                        \
                const int half_ = (count) >> level_;                 \
                MMAX_UNROLL for (int j_ = 0; j_ < (count) / 2; ++j_) \
                {                                                    \
                    if (j_ < half_) {                                \
                        halve;                                       \
                    }                                                \
                }                                                    \
            }
/* One number of each row, in a register from as many registers as it has lanes: that of row[r] in lane r. */
#        define MMAX_ACROSS(op, zip, row, count) \
            MMAX_HALVE(count, row[j_] = op(zip##_low(row[j_], row[j_ + half_]), zip##_high(row[j_], row[j_ + half_])))

MMAX_INLINE mmax_vec MMAX_(across_max)(const mmax_real *rows)
{
    mmax_vec row[MMAX_WIDTH];
    MMAX_UNROLL for (int r = 0; r < MMAX_WIDTH; ++r) { row[r] = mmax_v_load(rows + r * MMAX_WIDTH); }
    MMAX_ACROSS(mmax_v_max, mmax_v_zip, row, MMAX_WIDTH)
    return row[0];
}
/* MMAX_(tree_total) of each row, of what MMAX_(halved) has left. */
MMAX_INLINE mmax_vec MMAX_(across_sum)(const mmax_real *rows)
{
    mmax_vec row[MMAX_WIDTH];
    MMAX_UNROLL for (int r = 0; r < MMAX_WIDTH; ++r) { row[r] = mmax_v_load(rows + r * MMAX_WIDTH); }
    MMAX_ACROSS(mmax_v_add, mmax_v_zip, row, MMAX_WIDTH)
    return row[0];
}

/* The sums of a row's only pair of blocks; `one` says that only its first register is not 0. */
MMAX_INLINE void MMAX_(short_sum)(MMAX_(sum) * sum, const mmax_vec *pair, int one)
{
#        if !MMAX_PASS_DOUBLE
    if (one) {
        MMAX_(fold_one)(pair[0], sum->sum);
    } else {
        MMAX_(fold)(pair, sum->sum);
    }
#        else
    (void)one;
    MMAX_(sum_clear)(sum);
    MMAX_(sum_add)(sum, pair);
#        endif
}

/* MMAX_(sum_parts) of MMAX_WIDTH rows; f32 leaves `lost` as it is. */
MMAX_STATIC void MMAX_(totals)(double *totals, double *lost, const MMAX_(sum) * sums)
{
#        if !MMAX_PASS_DOUBLE && defined(mmax_d_zip_low)
#            define MMAX_SIDE (8 / MMAX_DREGS) /* doubles in a register */
    for (int r = 0; r < MMAX_WIDTH; r += MMAX_SIDE) {
        mmax_dvec row[MMAX_SIDE];
        MMAX_UNROLL for (int i = 0; i < MMAX_SIDE; ++i)
        {
            MMAX_(sum) sum = sums[r + i];
            MMAX_HALVE(MMAX_DREGS, sum.sum[j_] = mmax_d_add(sum.sum[j_], sum.sum[j_ + half_]))
            row[i] = sum.sum[0];
        }
        MMAX_ACROSS(mmax_d_add, mmax_d_zip, row, MMAX_SIDE)
        memcpy(totals + r, row, sizeof row[0]);
    }
    (void)lost;
#            undef MMAX_SIDE
#        elif MMAX_PASS_DOUBLE
    mmax_vec sum[8], error[MMAX_WIDTH], whole;
    MMAX_UNROLL for (int r = 0; r < MMAX_WIDTH; ++r)
    {
        MMAX_(sum) row = sums[r];
        MMAX_HALVE(MMAX_DREGS, row.error[j_] = mmax_v_add(row.error[j_], row.error[j_ + half_]))
        MMAX_EACH_D(j) { sum[j * MMAX_WIDTH + r] = row.sum[j]; }
        error[r] = row.error[0];
    }
    MMAX_ACROSS(mmax_v_add, mmax_v_zip, error, MMAX_WIDTH)
    MMAX_EACH_D(j) { MMAX_(turn_square)(sum + j * MMAX_WIDTH); }
    MMAX_HALVE(8, sum[j_] = MMAX_(two_sum)(sum[j_], sum[j_ + half_], &error[0]))
    whole = mmax_v_add(sum[0], error[0]);
    mmax_v_store(totals, whole);
    mmax_v_store(lost, mmax_v_sub(error[0], mmax_v_sub(whole, sum[0])));
#        else
    for (int r = 0; r < MMAX_WIDTH; ++r) {
        totals[r] = MMAX_(sum_parts)(&sums[r], &lost[r]);
    }
#        endif
}
/* The same from rows of n <= MMAX_SHORT terms, `stride` apart, with zeros past them: MMAX_SHORT_FILLED(n) are read.
 * Exponentials are added as in exp_rows, where rows of more than MMAX_PAIR ask for their own length; `others` as in
 * MMAX_SWEEP_SUM; with limits, only what is below its row's counts. Where there are fewer than MMAX_WIDTH rows, the
 * rest is as the first. */
#        define MMAX_SHORT_FILLED(n) ((n) <= MMAX_WIDTH ? MMAX_WIDTH : ((n) + MMAX_LANES - 1) / MMAX_LANES * MMAX_LANES)
MMAX_INLINE mmax_vec MMAX_(load_below)(const mmax_real *p, mmax_vec limit)
{
    const mmax_vec term = mmax_v_load(p);
    return mmax_v_keep(mmax_v_lt(term, limit), term);
}
MMAX_STATIC void MMAX_(two_pairs)(MMAX_(sum) * sum, const mmax_real *terms, size_t n)
{
    const size_t first = n < MMAX_SHORT ? MMAX_PAIR : 0; /* what is left over of a row comes first */
    MMAX_(exact) exact;
    MMAX_EACH(k)
    {
        const mmax_real *const at = terms + k * MMAX_WIDTH, *const other = at + (MMAX_PAIR - first);
        mmax_vec pair = mmax_v_load(at + first);
        if (n > MMAX_PAIR + MMAX_LANES) {
            pair = mmax_v_add(pair, mmax_v_load(at + first + MMAX_LANES));
        }
        MMAX_(exact_begin)(&exact, k);
        MMAX_(exact_add)(&exact, k, pair);
        MMAX_(exact_add)(&exact, k, mmax_v_add(mmax_v_load(other), mmax_v_load(other + MMAX_LANES)));
    }
    MMAX_(sum_clear)(sum);
    MMAX_(exact_end)(sum, &exact);
}
MMAX_INLINE void MMAX_(short_sum_of)(MMAX_(sum) * sum, const mmax_real *terms, size_t n, int others,
                                     const mmax_real *below)
{
    const mmax_vec limit = below ? mmax_v_set(*below) : mmax_v_zero();
    mmax_vec lanes[MMAX_REGS];
#        define MMAX_TERM(at) (below ? MMAX_(load_below)(terms + (at), limit) : mmax_v_load(terms + (at)))
    if (n <= MMAX_WIDTH) {
        MMAX_EACH(k) { lanes[k] = k == 0 ? MMAX_TERM(0) : mmax_v_zero(); }
        MMAX_(short_sum)(sum, lanes, 1);
    } else if (n <= MMAX_PAIR || others) {
        MMAX_EACH(k) { lanes[k] = MMAX_TERM(k * MMAX_WIDTH); }
        for (size_t at = MMAX_LANES; at < n; at += MMAX_LANES) {
            MMAX_EACH(k) { lanes[k] = mmax_v_add(lanes[k], MMAX_TERM(at + (size_t)(k * MMAX_WIDTH))); }
        }
        MMAX_(short_sum)(sum, lanes, 0);
    } else {
        MMAX_(two_pairs)(sum, terms, n);
    }
#        undef MMAX_TERM
}
MMAX_INLINE void MMAX_(short_totals)(double *totals, double *lost, const mmax_real *terms, size_t stride, size_t rows,
                                     size_t cols, const uint32_t *lengths, int others, const mmax_real *limits)
{
    MMAX_(sum) sums[MMAX_WIDTH];
    for (size_t r = 0; r < rows; ++r) {
        const size_t n = lengths && cols > MMAX_PAIR ? lengths[r] : cols;
        MMAX_(short_sum_of)(&sums[r], terms + r * stride, n, others, limits ? limits + r : NULL);
    }
    for (size_t r = rows; r < MMAX_WIDTH; ++r) {
        sums[r] = sums[0];
    }
    MMAX_(totals)(totals, lost, sums);
}

MMAX_INLINE int MMAX_(all)(mmax_mask m) { return mmax_m_bits(m) == (1u << MMAX_WIDTH) - 1u; }

/* Whether the smallest logit is wanted, as it says whether any are masked. `masks`: the kernel takes those. */
MMAX_INLINE int MMAX_(wants_smallest)(const MMAX_(call) * c, int function, int masks)
{
    return (masks || !mmax_is_sigma(function)) && function != MMAX_TANHMAX && !c->clears;
}
MMAX_INLINE int MMAX_(any_masked)(mmax_vec smallest, const MMAX_(call) * c, int function, int masks)
{
    return MMAX_(wants_smallest)(c, function, masks) && !MMAX_(all)(mmax_v_lt(mmax_v_set(MMAX_MASK), smallest));
}
/* Whether all scores may be taken as they are: for MultiMax `largest` is of all |s|, or all active ones. */
MMAX_INLINE int MMAX_(all_usual)(mmax_vec largest, int masked, const MMAX_(call) * c, int function)
{
    return mmax_is_sigma(function) ? MMAX_(all)(mmax_v_le(largest, mmax_v_set(c->safe))) : !masked;
}

/* The origins of MMAX_WIDTH rows. */
typedef struct MMAX_(origins) {
    MMAX_LINE mmax_real rounder[MMAX_WIDTH];
    MMAX_LINE mmax_real lowest[MMAX_WIDTH];
    MMAX_LINE mmax_real max[MMAX_WIDTH];
    MMAX_LINE mmax_real mean[MMAX_WIDTH];
    int kind; /* of all rows: with the clamp, which changes no bit where nothing can underflow */
    int good; /* 0 if a score is infinite or too large, or a row of a loss has no target: then row by row */
} MMAX_(origins);

/* `high` holds MMAX_WIDTH scores of each row, the largest among them, `mean` is EvSoftMax's. `good` is what all_usual
 * says. */
MMAX_STATIC void MMAX_(origins_of)(MMAX_(origins) * o, const mmax_real *high, int good, mmax_vec mean,
                                   const MMAX_(call) * c, int function)
{
    const mmax_vec max = MMAX_(across_max)(high);
    const mmax_vec exponent = mmax_v_mul(max, mmax_v_set(c->log2e)), whole = mmax_v_whole(exponent);
    const mmax_vec rounder = mmax_v_sub(mmax_v_set(MMAX_ROUND_TO_EIGHTH), mmax_v_sub(whole, mmax_v_set(MMAX_BIAS)));
    o->good = good && MMAX_(all)(mmax_v_lt(mmax_v_abs(exponent), mmax_v_set(MMAX_SHIFT_LIMIT)));
    o->kind = MMAX_ROW_CLAMP;
    mmax_v_store(o->rounder, rounder);
    mmax_v_store(o->lowest,
                 mmax_v_mul(mmax_v_add(whole, mmax_v_set(MMAX_LOWEST - MMAX_BIAS)), mmax_v_set(c->log2e_inverse)));
    mmax_v_store(o->max, max);
    if (function == MMAX_EVSOFTMAX) {
        o->good = o->good && MMAX_(all)(mmax_v_le(mmax_v_abs(mean), mmax_v_set(MMAX_REAL_MAX)));
        mmax_v_store(o->mean, mmax_v_min(mean, max)); /* see mean_of */
    }
}
MMAX_INLINE MMAX_(origin) MMAX_(origin_at)(const MMAX_(origins) * of, size_t r, int function)
{
    MMAX_(origin) o;
    o.rounder = of->rounder[r];
    o.shift = 0;
    o.before = 1;
    o.lowest = of->lowest[r];
    o.max = of->max[r];
    o.mean = function == MMAX_EVSOFTMAX ? of->mean[r] : 0;
    o.peak = 0;
    o.kind = of->kind;
    o.range = MMAX_REAL_MAX;
    return o;
}

/* The scalings of MMAX_WIDTH rows. */
typedef struct MMAX_(scalings) {
    MMAX_LINE mmax_real factor[MMAX_WIDTH];
    MMAX_LINE mmax_real smallest[MMAX_WIDTH];
#        if MMAX_PASS_DOUBLE
    MMAX_LINE mmax_real rest[MMAX_WIDTH];
#        endif
} MMAX_(scalings);

MMAX_INLINE void MMAX_(scalings_of)(MMAX_(scalings) * to, const double *totals, const double *lost)
{
    for (int r = 0; r < MMAX_WIDTH; ++r) { /* simple: compilers divide for all rows at once */
        const MMAX_(scaling) w = MMAX_(scaling_of)(totals[r], MMAX_PASS_DOUBLE ? lost[r] : 0);
        to->factor[r] = w.factor;
        to->smallest[r] = w.smallest;
#        if MMAX_PASS_DOUBLE
        to->rest[r] = w.rest;
#        endif
    }
}
MMAX_INLINE MMAX_(scaling) MMAX_(scaling_at)(const MMAX_(scalings) * of, size_t r)
{
    MMAX_(scaling) w;
    w.factor = of->factor[r];
    w.smallest = of->smallest[r];
#        if MMAX_PASS_DOUBLE
    w.rest = of->rest[r];
#        endif
    return w;
}

#    endif

/* Where two registers hold a block, what begins and ends a row takes as long as the entries of a short one. */
#    define MMAX_TOGETHER (MMAX_FAST && MMAX_REGS == 2)
#    if MMAX_TOGETHER
/* begin_row for MMAX_WIDTH rows of one length, for EvSoftMax above MMAX_SHORT and MMAX_CHUNK at most. Where one of them
 * is not an ordinary row, nothing is decided and 0 returned. */
MMAX_INLINE int MMAX_(begin_rows)(MMAX_(row) * r, const MMAX_(call) * call, int function)
{
    const int sigma = mmax_is_sigma(function), store = r->y != r->x;
    const MMAX_(call) constants = *call, *const c = &constants;
    const size_t n = r->n;
    mmax_vec smallest = mmax_v_zero(), largest = mmax_v_zero();
    MMAX_LINE mmax_real high[MMAX_WIDTH * MMAX_WIDTH];
    MMAX_LINE mmax_real sums[MMAX_WIDTH * MMAX_LANES];
    MMAX_LINE mmax_real means[MMAX_WIDTH];
    mmax_real range = MMAX_REAL_MAX;
    MMAX_(origins) o;
    for (size_t i = 0; i < MMAX_WIDTH; ++i) {
        const mmax_real *const x = r[i].x;
        mmax_real *const y = r[i].y;
        const mmax_vec fill = mmax_v_set(x[0]);
        mmax_vec min[MMAX_REGS], max[MMAX_REGS], pair[MMAX_REGS];
        MMAX_EACH(k)
        {
            max[k] = function == MMAX_TANHMAX ? mmax_v_zero() : MMAX_(score)(fill, c, function, 0);
            min[k] = pair[k] = mmax_v_zero();
        }
#        define MMAX_STEP(at, left, k, part)                                                              \
            const mmax_vec logit = MMAX_(load_upto)(x + at, left, fill);                                  \
            const mmax_vec score = MMAX_(score)(logit, c, function, 0);                                   \
            max[k] = mmax_v_max(score, max[k]);                                                           \
            if (function != MMAX_TANHMAX) {                                                               \
                min[k] = mmax_v_min(score, min[k]);                                                       \
            }                                                                                             \
            if (sigma) {                                                                                  \
                largest = mmax_v_max(mmax_v_abs(mmax_v_mul(logit, mmax_v_set(c->input_scale))), largest); \
                if (store) {                                                                              \
                    MMAX_(store_upto)(y + at, left, score);                                               \
                }                                                                                         \
            }                                                                                             \
            if (function == MMAX_EVSOFTMAX) {                                                             \
                pair[k] = mmax_v_add(pair[k], MMAX_(first_upto)(logit, left));                            \
            }
        if (function == MMAX_EVSOFTMAX) {
            MMAX_SWEEP_LANES(0, n, MMAX_REGS, MMAX_STEP)
        } else {
            MMAX_SWEEP(n, MMAX_STEP);
        }
#        undef MMAX_STEP
        MMAX_EACH(k)
        {
            max[0] = mmax_v_max(max[k], max[0]);
            smallest = function == MMAX_TANHMAX ? smallest : mmax_v_min(min[k], smallest);
            if (function == MMAX_EVSOFTMAX) {
                mmax_v_store(sums + i * MMAX_LANES + (size_t)(k * MMAX_WIDTH), pair[k]);
            }
        }
        mmax_v_store(high + i * MMAX_WIDTH, max[0]);
    }
    if (function == MMAX_EVSOFTMAX) {
        double totals[MMAX_WIDTH], lost[MMAX_WIDTH];
        MMAX_(short_totals)(totals, lost, sums, MMAX_LANES, MMAX_WIDTH, MMAX_LANES, NULL, 1, NULL);
        for (int i = 0; i < MMAX_WIDTH; ++i) { /* simple: compilers divide for all rows at once */
            means[i] = (mmax_real)(totals[i] / (double)n);
        }
    }
    MMAX_(origins_of)
    (&o, high, MMAX_(all_usual)(largest, MMAX_(any_masked)(smallest, c, function, 0), c, function),
     function == MMAX_EVSOFTMAX ? mmax_v_load(means) : mmax_v_zero(), c, function);
    if (!o.good) {
        return 0;
    }
    if (function != MMAX_TANHMAX) {
        const mmax_real min = mmax_v_hmin(smallest);
        for (size_t i = 0; !store && min == MMAX_MASK && i < MMAX_WIDTH; ++i) { /* as in begin_row */
            if (MMAX_(has_nan)(r[i].x, n)) {
                return 0;
            }
        }
        range = (mmax_v_hmax(mmax_v_load(o.max)) - min) * c->log2e;
        o.kind = MMAX_(kind_of)(range, n, c);
    }
    for (size_t i = 0; i < MMAX_WIDTH; ++i) {
        r[i].state = MMAX_IS_NORMAL;
        r[i].origin = MMAX_(origin_at)(&o, i, function);
        r[i].origin.range = range; /* at most */
        if (sigma && !store) {
            MMAX_(store_sigma)(r[i].y, r[i].x, n, c, function, 0);
        }
    }
    return 1;
}
#        define MMAX_INSTANCE(name, function)                                                 \
            MMAX_STATIC int MMAX_(begin_##name##_rows)(MMAX_(row) * r, const MMAX_(call) * c) \
            {                                                                                 \
                return MMAX_(begin_rows)(r, c, function);                                     \
            }
MMAX_EACH_FUNCTION(MMAX_INSTANCE)
MMAX_INSTANCE(tanhmax, MMAX_TANHMAX)
#        undef MMAX_INSTANCE
#        define MMAX_BEGIN_ROWS(name) MMAX_(begin_##name##_rows)
#    else
#        define MMAX_BEGIN_ROWS(name) NULL
#    endif

#    define MMAX_SIDE_BY_SIDE       4
#    define MMAX_MOST_ROWS          (MMAX_TOGETHER ? MMAX_WIDTH : MMAX_SIDE_BY_SIDE)
#    define MMAX_SIDE_BY_SIDE_BYTES 16384 /* of all of them */
#    define MMAX_TOGETHER_BYTES     16384
#    define MMAX_OVERLAP_LEAST      512
#    define MMAX_OVERLAP_MOST       8192

/* Of rows too long for MMAX_SIDE_BY_SIDE of them, `some` takes as many as there is room for, else one comes alone. */
MMAX_INLINE size_t MMAX_(rows_at_once)(const MMAX_(batch) * b, const MMAX_(call) * c, int function, int some)
{
    const size_t bytes = b->cols * sizeof(mmax_real);
    if (MMAX_TOGETHER && bytes <= MMAX_TOGETHER_BYTES / MMAX_WIDTH && !b->lengths && !c->general &&
        (function != MMAX_EVSOFTMAX || (b->cols > MMAX_SHORT && b->cols <= MMAX_CHUNK))) {
        return MMAX_WIDTH;
    }
    if (bytes <= MMAX_SIDE_BY_SIDE_BYTES / MMAX_SIDE_BY_SIDE) {
        return MMAX_SIDE_BY_SIDE;
    }
    return some && bytes <= MMAX_SIDE_BY_SIDE_BYTES / 2 ? MMAX_SIDE_BY_SIDE_BYTES / bytes : 1;
}

/* MMAX_(sum_parts) of some rows. */
MMAX_INLINE void MMAX_(totals_of)(double *totals, double *lost, const MMAX_(sum) * sums, size_t count)
{
    size_t done = 0;
#    if MMAX_FAST
    if (count == MMAX_WIDTH) {
        MMAX_(totals)(totals, lost, sums);
        done = count;
    }
#    endif
    for (size_t i = done; i < count; ++i) {
        totals[i] = MMAX_(sum_parts)(&sums[i], &lost[i]);
    }
}

/* log(1 + v) of some rows' numbers, in place; there is room for MMAX_WIDTH - 1 more. */
MMAX_INLINE void MMAX_(log1ps_of)(double *numbers, size_t count)
{
    if (count == 1) {
        numbers[0] = MMAX_F64_(log1p)(numbers[0]);
    } else {
        size_t padded = count;
        while (padded % MMAX_WIDTH != 0) {
            numbers[padded++] = 0;
        }
        MMAX_F64_(log1ps)(numbers, padded);
    }
}

/* Each pass over a row ends in a chain of dependent instructions, which another row's work then fills. Short rows go
 * through the passes side by side; MMAX_WIDTH of them, where as many fit into the first cache, have the ends of their
 * passes in common. The first pass of longer ones comes before the last pass of those before them, where three times
 * as much fits into the first cache; the second pass asks for the next row's logits where they fit into the second one.
 * Logarithms want the exponentials for nothing but their sum: y holds them meanwhile or, where it has x or sigma, a
 * buffer. */
MMAX_INLINE void MMAX_(normalise_rows)(const MMAX_(batch) * b, const MMAX_(call) * c, const MMAX_(passes) * f,
                                       int (*begin_rows)(MMAX_(row) *, const MMAX_(call) *), int logs)
{
    const size_t bytes = b->cols * sizeof(mmax_real), most = MMAX_(rows_at_once)(b, c, f->function, 0);
    const int together = MMAX_TOGETHER && most == MMAX_WIDTH;
    const int overlap = !together && bytes > MMAX_OVERLAP_LEAST && most * bytes <= MMAX_OVERLAP_MOST;
    const int fetches = MMAX_FETCHES(b), sigma = mmax_is_sigma(f->function);
    const int one_block = !logs || b->cols <= MMAX_BLOCK;
    const size_t later = sigma || logs ? MMAX_LATER_AT_LEAST : b->y_stride < MMAX_LATER ? b->y_stride : MMAX_LATER;
    MMAX_(row) rows[2][MMAX_MOST_ROWS], *r = rows[0], *next = rows[1];
    MMAX_(sum) sum[MMAX_MOST_ROWS];
    double total[MMAX_MOST_ROWS + MMAX_WIDTH], lost[MMAX_MOST_ROWS];
    MMAX_LINE mmax_real buffer[2 * MMAX_BLOCK]; /* for logarithms */
    size_t count = 0, next_count;
    for (size_t begun = 0; begun < b->rows || count > 0; begun += next_count) {
        MMAX_(row) *const former = r;
        next_count = b->rows - begun < most ? b->rows - begun : most;
        for (size_t i = 0; i < next_count; ++i) {
            next[i].y = b->y + (begun + i) * b->y_stride;
            next[i].x = b->x + (begun + i) * b->x_stride;
            next[i].n = MMAX_(length_of)(b, begun + i);
            next[i].scores = sigma ? next[i].y : next[i].x;
            next[i].e = next[i].y;
            if (logs && (sigma || !one_block || next[i].y == next[i].x)) { /* of more than a block, y is not as near */
                next[i].e = buffer + (one_block ? i * b->cols : 0);
            }
            next[i].later = later;
            next[i].relative_to = &next[i].origin;
        }
        for (size_t i = 0; i < count; ++i) {
            r[i].next = fetches && i < next_count ? next[i].x : r[i].x;
        }
        for (size_t i = 0; one_block && i < count;) {
            i += MMAX_(rows_exp)(&sum[i], &r[i], count - i, c, f);
        }
        if (logs && one_block) {
            MMAX_(totals_of)(total, lost, sum, count);
        }
        for (size_t i = 0; logs && i < count; ++i) {
            total[i] = MMAX_(row_rest)(&r[i], one_block ? &total[i] : NULL, c);
        }
        for (int first = 1; first >= 0; --first) { /* one copy of both passes, in either order */
            if (first == overlap) {
                if (!(together && next_count == MMAX_WIDTH && !(sigma && *c->masks) && begin_rows(next, c))) {
                    for (size_t i = 0; i < next_count; ++i) {
                        MMAX_(row_begin)(&next[i], c, f, logs);
                    }
                }
                continue;
            }
            if (logs) {
                MMAX_(log1ps_of)(total, count);
            } else {
                MMAX_(totals_of)(total, lost, sum, count);
            }
            for (size_t i = 0; i < count; ++i) {
                r[i].sum = total[i];
                r[i].lost = MMAX_PASS_DOUBLE && !logs ? lost[i] : 0;
                MMAX_(row_end)(&r[i], c, f, logs);
                if (r[i].n < b->cols) {
                    MMAX_(fill)(r[i].y + r[i].n, b->cols - r[i].n, logs ? MMAX_MASK_BITS : 0);
                }
            }
        }
        r = next;
        next = former;
        count = next_count;
    }
}
#    define MMAX_INSTANCE(name, function)                                                  \
        MMAX_STATIC void MMAX_(name##_rows)(const MMAX_(batch) * b, const MMAX_(call) * c) \
        {                                                                                  \
            MMAX_(normalise_rows)(b, c, &MMAX_(name##_passes), MMAX_BEGIN_ROWS(name), 0);  \
        }
MMAX_EACH_FUNCTION(MMAX_INSTANCE)
#    undef MMAX_INSTANCE

/* ---- short rows: MMAX_WIDTH rows of at most MMAX_SHORT entries at once, with the arithmetic of rows alone ---- */
#    if MMAX_FAST
struct MMAX_(group) {
    size_t row, rows;                               /* the first, and how many: at most MMAX_WIDTH */
    MMAX_LINE mmax_real e[MMAX_WIDTH * MMAX_SHORT]; /* exponentials; MultiMax: sigma, before; TanhMax: 2 sinh */
    MMAX_LINE double total[MMAX_WIDTH];
    MMAX_LINE double lost[MMAX_WIDTH];   /* of the total, see sum_parts */
    MMAX_LINE mmax_real low[MMAX_WIDTH]; /* the smallest of all logits or 0 is in one of them; not for MultiMax */
    int masks;                           /* whether it is taken as one that may have masks, as a group before had */
    int masked;                          /* whether it has some that no last pass clears */
    MMAX_(origins) origins;
};

/* step(at, left, last) for each register of a row: `last`, known to the compiler, says whether it may be a part. Loops
 * that are not unrolled: a question for each register whether it is there and whole took longer. */
#        define MMAX_EACH_REGISTER(n, step)                             \
            do {                                                        \
                const size_t last_ = ((n)-1) / MMAX_WIDTH * MMAX_WIDTH; \
                for (size_t at_ = 0; at_ < last_; at_ += MMAX_WIDTH) {  \
                    step(at_, (ptrdiff_t)MMAX_WIDTH, 0)                 \
                }                                                       \
                {                                                       \
                    step(last_, (ptrdiff_t)((n)-last_), 1)              \
                }                                                       \
            } while (0)

/* The zeros that short_totals wants past the registers of a row, of at most `most` entries. */
MMAX_INLINE void MMAX_(fill_short)(mmax_real *terms, size_t n, size_t most)
{
    for (size_t at = (n + MMAX_WIDTH - 1) / MMAX_WIDTH * MMAX_WIDTH; at < MMAX_SHORT_FILLED(most); at += MMAX_WIDTH) {
        mmax_v_store(terms + at, mmax_v_zero());
    }
}

/* What EvSoftMax's mean of a row comes from, spread over the lanes: the arithmetic of short_mean. The registers of its
 * sums take turns, and halving them comes to the same whichever was the first. `count` is of rows with masks. */
typedef struct MMAX_(mean_parts) {
    mmax_vec sum, count;
} MMAX_(mean_parts);
#        define MMAX_TURN_ADD(sums, term)                                                            \
            do {                                                                                     \
                const mmax_vec turn_ = mmax_v_add(sums[0], term);                                    \
                MMAX_EACH_OF(k_, MMAX_CALL_REGS - 1) { sums[k_] = sums[(k_ + 1) % MMAX_CALL_REGS]; } \
                sums[MMAX_CALL_REGS - 1] = turn_;                                                    \
            } while (0)

/* The first pass over a row: its largest score is in one of the lanes. The smallest of all logits joins `smallest`,
 * where that is wanted, for MultiMax the largest of all |s| `largest`. With `masks`, scores, sizes and what EvSoftMax's
 * mean comes from are those of active entries. MultiMax leaves sigma in e. */
MMAX_INLINE mmax_vec MMAX_(short_begin)(mmax_real *e, const mmax_real *x, size_t n, mmax_vec *smallest,
                                        mmax_vec *largest, MMAX_(mean_parts) * parts, const MMAX_(call) * c,
                                        int function, int masks)
{
    const int sigma = mmax_is_sigma(function), wants_min = MMAX_(wants_smallest)(c, function, masks);
    const mmax_vec first = mmax_v_set(x[0]), masked = mmax_v_set(MMAX_MASK), one = mmax_v_set((mmax_real)1);
    mmax_vec row_min = mmax_v_zero(), row_max = masked, size = *largest;
    mmax_vec sums[MMAX_CALL_REGS], ones[MMAX_CALL_REGS];
    MMAX_EACH_OF(k, MMAX_CALL_REGS) { sums[k] = ones[k] = mmax_v_zero(); }
#        define MMAX_STEP(at, left, last)                                                                \
            const mmax_vec logit = last ? MMAX_(load_last)(x + at, left, first) : mmax_v_load(x + at);   \
            mmax_vec active = logit;                                                                     \
            const mmax_vec score =                                                                       \
                masks ? MMAX_(masked_score)(&active, c, function) : MMAX_(score)(logit, c, function, 0); \
            row_max = mmax_v_max(score, row_max);                                                        \
            if (sigma) {                                                                                 \
                size = mmax_v_max(mmax_v_abs(mmax_v_mul(active, mmax_v_set(c->input_scale))), size);     \
                mmax_v_store(e + at, score);                                                             \
            }                                                                                            \
            if (wants_min) {                                                                             \
                row_min = mmax_v_min(logit, row_min);                                                    \
            }                                                                                            \
            if (function == MMAX_EVSOFTMAX) {                                                            \
                MMAX_TURN_ADD(sums, last ? MMAX_(first_last)(active, left) : active);                    \
                if (masks) {                                                                             \
                    const mmax_vec counted = mmax_v_keep(mmax_v_nle(logit, masked), one);                \
                    MMAX_TURN_ADD(ones, last ? MMAX_(first_last)(counted, left) : counted);              \
                }                                                                                        \
            }
    MMAX_EACH_REGISTER(n, MMAX_STEP);
#        undef MMAX_STEP
    if (function == MMAX_EVSOFTMAX) {
        parts->sum = MMAX_(halved_of)(sums, MMAX_CALL_REGS);
        parts->count = MMAX_(halved_of)(ones, MMAX_CALL_REGS);
    }
    *smallest = wants_min ? mmax_v_min(row_min, *smallest) : *smallest;
    *largest = size;
    return row_max;
}

/* The second pass over a row. TanhMax: e becomes 2 sinh, `summed` 2 cosh; for others they are the same, and masked
 * entries become 0 where `zeros` says so. */
MMAX_INLINE void MMAX_(short_exp)(mmax_real *e, mmax_real *summed, const mmax_real *x, size_t n, size_t most,
                                  const MMAX_(origin) * o, const MMAX_(call) * c, int function, int masks, int zeros)
{
    const int kind = function == MMAX_TANHMAX && !masks ? MMAX_ROW_PLAIN : MMAX_ROW_CLAMP; /* see exp_tanhmax */
#        define MMAX_STEP(at, left, last)                                                                  \
            const mmax_vec score = mmax_is_sigma(function) ? mmax_v_load(e + at)                           \
                                   : last                  ? MMAX_(load_last)(x + at, left, mmax_v_zero()) \
                                                           : mmax_v_load(x + at);                                           \
            mmax_vec term;                                                                                 \
            const mmax_vec weight = MMAX_(exp_part)(score, o, c, function, kind, &term);                   \
            if (function == MMAX_TANHMAX) {                                                                \
                mmax_v_store(e + at, weight);                                                              \
            } else if (zeros) {                                                                            \
                term = MMAX_(masked_exp)(term, score, function);                                           \
            }                                                                                              \
            mmax_v_store(summed + at, last ? MMAX_(first_last)(term, left) : term);
    MMAX_EACH_REGISTER(n, MMAX_STEP);
#        undef MMAX_STEP
    MMAX_(fill_short)(summed, n, most);
}

/* The last pass over a row. */
MMAX_INLINE void MMAX_(short_scale)(mmax_real *y, const mmax_real *e, size_t n, MMAX_(scaling) w, int negative)
{
#        define MMAX_STEP(at, left, last)                                                \
            const mmax_vec weight = MMAX_(scaled)(mmax_v_load(e + at), &w, 1, negative); \
            MMAX_(store_upto)(y + at, left, weight);
    MMAX_EACH_REGISTER(n, MMAX_STEP);
#        undef MMAX_STEP
}

/* `ragged`, known to the compiler, says whether the rows may have lengths of their own and, if not SoftMax's, masks. */
MMAX_INLINE void MMAX_(group_begin)(MMAX_(group) * g, const MMAX_(batch) * b, const MMAX_(call) * call, int function,
                                    int ragged)
{
    const MMAX_(call) constants = *call, *const c = &constants;
    const size_t rows = g->rows, cols = b->cols, x_stride = b->x_stride;
    const uint32_t *const lengths = ragged && b->lengths ? b->lengths + g->row : NULL;
    const mmax_real *const x = b->x + g->row * x_stride;
    const int masks = ragged && function != MMAX_SOFTMAX, takes_masks = ragged || function == MMAX_SOFTMAX;
    mmax_real *const e = g->e;
    MMAX_LINE mmax_real high[MMAX_WIDTH * MMAX_WIDTH];
    MMAX_LINE mmax_real sums[MMAX_WIDTH * MMAX_WIDTH];
    MMAX_LINE mmax_real ones[MMAX_WIDTH * MMAX_WIDTH];
    mmax_vec smallest = mmax_v_zero(), largest = mmax_v_zero(), mean = mmax_v_zero();
    for (size_t r = 0; r < rows; ++r) {
        const size_t n = lengths ? lengths[r] : cols, lanes = r * MMAX_WIDTH;
        MMAX_(mean_parts) parts;
        mmax_v_store(high + lanes, MMAX_(short_begin)(e + r * MMAX_SHORT, x + r * x_stride, n, &smallest, &largest,
                                                      &parts, c, function, masks));
        if (function == MMAX_EVSOFTMAX) {
            mmax_v_store(sums + lanes, parts.sum);
            if (masks) {
                mmax_v_store(ones + lanes, parts.count);
            }
        }
    }
    for (size_t at = rows * MMAX_WIDTH; at < MMAX_WIDTH * MMAX_WIDTH; at += MMAX_WIDTH) {
        mmax_v_store(high + at, mmax_v_zero());
        if (function == MMAX_EVSOFTMAX) {
            mmax_v_store(sums + at, mmax_v_zero());
            mmax_v_store(ones + at, mmax_v_set((mmax_real)1));
        }
    }
    if (function == MMAX_EVSOFTMAX) {
        mean = mmax_v_div(MMAX_(across_sum)(sums), masks ? MMAX_(across_sum)(ones) : mmax_v_set((mmax_real)cols));
    }
    mmax_v_store(g->low, smallest);
    g->masked = MMAX_(any_masked)(smallest, c, function, masks);
    g->masks |= takes_masks && g->masked;
    MMAX_(origins_of)
    (&g->origins, high, MMAX_(all_usual)(largest, g->masked && !takes_masks, c, function), mean, c, function);
}

MMAX_INLINE void MMAX_(group_exp)(MMAX_(group) * g, const MMAX_(batch) * b, const MMAX_(call) * call, int function,
                                  int ragged)
{
    const MMAX_(call) constants = *call, *const c = &constants;
    const size_t rows = g->rows, cols = b->cols, x_stride = b->x_stride;
    const uint32_t *const lengths = ragged && b->lengths ? b->lengths + g->row : NULL;
    const mmax_real *const x = b->x + g->row * x_stride;
    MMAX_LINE mmax_real cosh2[MMAX_WIDTH * MMAX_SHORT];
    mmax_real *const summed = function == MMAX_TANHMAX ? cosh2 : g->e;
    const int zeros = ragged && g->masked;
    for (size_t r = 0; r < rows; ++r) {
        const size_t n = lengths ? lengths[r] : cols, from = r * MMAX_SHORT;
        const MMAX_(origin) o = MMAX_(origin_at)(&g->origins, r, function);
        MMAX_(short_exp)(g->e + from, summed + from, x + r * x_stride, n, cols, &o, c, function, ragged, zeros);
        if (ragged && function == MMAX_TANHMAX) {
            MMAX_(fill_short)(g->e + from, n, cols);
        }
    }
    MMAX_(short_totals)(g->total, g->lost, summed, MMAX_SHORT, rows, cols, lengths, 0, NULL);
}

/* Whether all rows of a group have a target, if they need one, and entries. */
MMAX_INLINE int MMAX_(group_is_usual)(const MMAX_(group) * g, const MMAX_(batch) * b)
{
    int32_t together = 0;
    int empty = 0;
    for (size_t r = 0; b->index && r < g->rows; ++r) {
        together |= b->index[g->row + r];
    }
    for (size_t r = 0; b->lengths && r < g->rows; ++r) {
        empty |= b->lengths[g->row + r] == 0;
    }
    return together >= 0 && !empty;
}

/* One copy of each pass. Rows with masks, which SoftMax's need not know, take those of rows with lengths; where a group
 * has masks, those that follow likely have them, too. */
#        define MMAX_GROUP_PASS(pass, name, function, again)                                         \
            MMAX_STATIC void MMAX_(pass##_##name##_ragged)(MMAX_(group) * g, const MMAX_(batch) * b, \
                                                           const MMAX_(call) * c)                    \
            {                                                                                        \
                MMAX_(group_##pass)(g, b, c, function, 1);                                           \
            }                                                                                        \
            MMAX_STATIC void MMAX_(pass##_##name##_group)(MMAX_(group) * g, const MMAX_(batch) * b,  \
                                                          const MMAX_(call) * c)                     \
            {                                                                                        \
                if (b->lengths || g->masks) {                                                        \
                    MMAX_(pass##_##name##_ragged)(g, b, c);                                          \
                } else {                                                                             \
                    MMAX_(group_##pass)(g, b, c, function, 0);                                       \
                    if (again && !g->origins.good) {                                                 \
                        MMAX_(pass##_##name##_ragged)(g, b, c);                                      \
                        g->masks = g->origins.good;                                                  \
                    }                                                                                \
                }                                                                                    \
            }
#        define MMAX_INSTANCE(name, function)                                \
            MMAX_GROUP_PASS(begin, name, function, function != MMAX_SOFTMAX) \
            MMAX_GROUP_PASS(exp, name, function, 0)
MMAX_EACH_FUNCTION(MMAX_INSTANCE)
MMAX_INSTANCE(tanhmax, MMAX_TANHMAX)
#        undef MMAX_INSTANCE
#        undef MMAX_GROUP_PASS

/* What lies past the lengths of a group's rows becomes `past`. */
MMAX_STATIC void MMAX_(fill_past)(const MMAX_(group) * g, const MMAX_(batch) * b, MMAX_BITS past)
{
    for (size_t row = g->row; row < g->row + g->rows; ++row) {
        const size_t n = b->lengths[row];
        MMAX_(fill)(b->y + row * b->y_stride + n, b->cols - n, past);
    }
}

/* The last pass. All columns of a row are written, and what lies past its length again. */
MMAX_INLINE void MMAX_(group_weights)(const MMAX_(group) * g, const MMAX_(batch) * b, int negative)
{
    const size_t rows = g->rows, n = b->cols, y_stride = b->y_stride;
    mmax_real *y = b->y + g->row * y_stride;
    MMAX_(scalings) scalings;
    MMAX_(scalings_of)(&scalings, g->total, g->lost);
    for (size_t r = 0; r < rows; ++r, y += y_stride) {
        const mmax_real *const e = g->e + r * MMAX_SHORT;
        if (MMAX_UNLIKELY(!mmax_f64_is_finite(g->total[r]))) {
            MMAX_(fill_special)(y, b->x + (g->row + r) * b->x_stride, MMAX_(length_of)(b, g->row + r), 1, 0);
        } else {
            MMAX_(short_scale)(y, e, n, MMAX_(scaling_at)(&scalings, r), negative);
        }
    }
    if (b->lengths) {
        MMAX_(fill_past)(g, b, 0);
    }
}
MMAX_STATIC void MMAX_(weights_of_group)(const MMAX_(group) * g, const MMAX_(batch) * b, const MMAX_(call) * c)
{
    (void)c;
    MMAX_(group_weights)(g, b, 0);
}
MMAX_STATIC void MMAX_(signed_weights_of_group)(const MMAX_(group) * g, const MMAX_(batch) * b, const MMAX_(call) * c)
{
    (void)c;
    MMAX_(group_weights)(g, b, 1);
}

/* A short row alone: the first two passes; the smallest score or 0 is in one lane of `low`, not for MultiMax. Returns 0
 * where it is not an ordinary row. */
MMAX_INLINE int MMAX_(lone_exp)(mmax_real *e, MMAX_(origin) * o, double *total, double *lost, mmax_vec *low,
                                const mmax_real *x, size_t n, const MMAX_(call) * c, int function)
{
    MMAX_LINE mmax_real cosh2[MMAX_SHORT];
    mmax_real *const summed = function == MMAX_TANHMAX ? cosh2 : e;
    mmax_vec smallest = mmax_v_zero(), largest = mmax_v_zero();
    MMAX_(mean_parts) parts;
    MMAX_(extremes) extremes;
    MMAX_(sum) sum;
    extremes.max = mmax_v_hmax(MMAX_(short_begin)(e, x, n, &smallest, &largest, &parts, c, function, 0));
    extremes.min = extremes.max;
    extremes.peak = 0;
    extremes.sum = 0;
    *low = smallest;
    *o = MMAX_(origin_of)(&extremes, n, c);
    if (o->kind == MMAX_ROW_GENERAL ||
        !MMAX_(all_usual)(largest, MMAX_(any_masked)(smallest, c, function, 0), c, function)) {
        return 0;
    }
    o->kind = MMAX_ROW_CLAMP; /* as in a group, where no one asks for the smallest score either */
    o->range = MMAX_REAL_MAX;
    if (function == MMAX_EVSOFTMAX) {
        const double whole = (double)MMAX_(lane)(mmax_v_hsum(parts.sum));
        if (!mmax_f64_is_finite(whole)) {
            return 0;
        }
        o->mean = MMAX_(mean_of)(whole / (double)n, o->max);
    }
    MMAX_(short_exp)(e, summed, x, n, n, o, c, function, 0, 0);
    MMAX_(short_sum_of)(&sum, summed, n, 0, NULL);
    *total = MMAX_(sum_parts)(&sum, lost);
    return mmax_f64_is_finite(*total);
}
/* What is done with row `row` of n entries; 0 if nothing. */
MMAX_INLINE int MMAX_(lone_weights)(const MMAX_(batch) * b, size_t row, size_t n, const MMAX_(call) * c, int function)
{
    MMAX_LINE mmax_real e[MMAX_SHORT];
    MMAX_(origin) o;
    mmax_vec low;
    double total, lost;
    if (!MMAX_(lone_exp)(e, &o, &total, &lost, &low, b->x + row * b->x_stride, n, c, function)) {
        return 0;
    }
    MMAX_(short_scale)(b->y + row * b->y_stride, e, n, MMAX_(scaling_of)(total, lost), function == MMAX_TANHMAX);
    return 1;
}
typedef int (*MMAX_(lone_row))(const MMAX_(batch) *, size_t row, size_t n, const MMAX_(call) *, int function);
/* The rows from `from` on, one by one. */
MMAX_INLINE void MMAX_(lone_rows)(const MMAX_(batch) * b, size_t from, const MMAX_(call) * c, int function,
                                  MMAX_(lone_row) lone_row, MMAX_BITS past, MMAX_(rows) rows)
{
    for (size_t row = from; row < b->rows; ++row) {
        const size_t n = MMAX_(length_of)(b, row);
        if (!(n > 0 && lone_row(b, row, n, c, function))) {
            const MMAX_(batch) part = MMAX_(part_of)(b, row, 1);
            rows(&part, c);
        } else if (n < b->cols && b->y) {
            MMAX_(fill)(b->y + row * b->y_stride + n, b->cols - n, past);
        }
    }
}
#        define MMAX_LONE(name, function, what, past)                                                       \
            MMAX_STATIC void MMAX_(lone_##name)(const MMAX_(batch) * b, size_t from, const MMAX_(call) * c) \
            {                                                                                               \
                MMAX_(lone_rows)(b, from, c, function, MMAX_(what), past, MMAX_(name##_rows));              \
            }
#        define MMAX_LONE_WEIGHTS(name, function) MMAX_LONE(name, function, lone_weights, 0)
MMAX_EACH_FUNCTION(MMAX_LONE_WEIGHTS)
/* The passes over a group, its end, and what takes up to so many rows alone, as normalise below takes them. */
#        define MMAX_IN_GROUPS(name, what, end, most)                                               \
            MMAX_(what##_rows), MMAX_(begin_##name##_group), MMAX_(exp_##name##_group), MMAX_(end), \
                MMAX_(lone_##what), most
#    else
#        define MMAX_IN_GROUPS(name, what, end, most) MMAX_(what##_rows), NULL, NULL, NULL, NULL, most
#        define MMAX_LONE(name, function, what, past)
#        define MMAX_LONE_WEIGHTS(name, function)
#    endif

/* As many rows as make a group, even if not a full one; weights of up to so many are there sooner alone than side by
 * side, logarithms and losses of one. */
#    define MMAX_LEAST_GROUP 4
#    define MMAX_MOST_ALONE  (MMAX_PASS_DOUBLE ? 1 : 3)
/* A group's exponentials, then the next group's first pass, then the end of the former: each waits for a chain of
 * dependent instructions that the other fills. */
MMAX_INLINE void MMAX_(normalise)(const MMAX_(batch) * b, const MMAX_(call) * c, MMAX_(rows) rows,
                                  MMAX_(pass) begin_group, MMAX_(pass) exp_group, MMAX_(end) end, MMAX_(lone) lone,
                                  size_t most_alone)
{
    const int is_short = MMAX_FAST && b->cols <= MMAX_SHORT && !c->general;
    size_t done = 0;
#    if MMAX_FAST
    if (is_short && b->rows >= MMAX_LEAST_GROUP) {
        const size_t rest = b->rows % MMAX_WIDTH;
        MMAX_(group) group[2], *g = &group[0], *next = &group[1];
        done = rest < MMAX_LEAST_GROUP ? b->rows - rest : b->rows;
        g->rows = 0;
        g->masks = 0;
        for (size_t begun = 0; begun < done || g->rows > 0; begun += g->rows) {
            MMAX_(group) *const former = g;
            const int good = g->rows > 0 && g->origins.good;
            if (good) {
                exp_group(g, b, c);
            }
            next->rows = done - begun < MMAX_WIDTH ? done - begun : MMAX_WIDTH;
            next->row = begun;
            next->masks = g->masks;
            next->origins.good = 0;
            if (MMAX_LINE_REGISTERS == 1) {
                MMAX_(fetch_two_lines)(b->x, b->x_stride, next->rows, begun * b->x_stride + MMAX_LATER);
            }
            if (next->rows > 0 && MMAX_(group_is_usual)(next, b)) {
                begin_group(next, b, c);
            }
            if (good) {
                end(g, b, c);
            } else if (g->rows > 0) {
                const MMAX_(batch) part = MMAX_(part_of)(b, g->row, g->rows);
                rows(&part, c);
            }
            g = next;
            next = former;
        }
    }
#    else
    (void)begin_group;
    (void)exp_group;
    (void)end;
#    endif
    if (is_short && b->rows - done <= most_alone) {
        lone(b, done, c);
    } else if (done == 0) {
        rows(b, c);
    } else {
        const MMAX_(batch) part = MMAX_(part_of)(b, done, b->rows - done);
        rows(&part, c);
    }
}

MMAX_STATIC void MMAX_(softmax)(mmax_real *y, const mmax_real *x, const mmax_shape *s)
{
    MMAX_(call) c;
    const MMAX_(batch) b = MMAX_(batch_of)(y, x, s->y_stride, s);
    MMAX_(prepare)(&c, s->scale, NULL, 0);
    c.clears = 1;
    MMAX_(normalise)(&b, &c, MMAX_IN_GROUPS(softmax, softmax, weights_of_group, MMAX_MOST_ALONE));
}
MMAX_STATIC void MMAX_(multimax)(mmax_real *y, const mmax_real *x, const mmax_multimax_params *p, const mmax_shape *s)
{
    MMAX_(sigma_state) state;
    MMAX_(call) c;
    const MMAX_(batch) b = MMAX_(batch_of)(y, x, s->y_stride, s);
    MMAX_(prepare_sigma)(&c, &state, s->scale, p, s->cols, 0);
    c.clears = 1;
    if (p->order == 1) {
        MMAX_(normalise)(&b, &c, MMAX_IN_GROUPS(multimax1, multimax1, weights_of_group, MMAX_MOST_ALONE));
    } else {
        MMAX_(normalise)(&b, &c, MMAX_IN_GROUPS(multimax2, multimax2, weights_of_group, MMAX_MOST_ALONE));
    }
}
MMAX_STATIC void MMAX_(evsoftmax)(mmax_real *y, const mmax_real *x, double epsilon, const mmax_shape *s)
{
    MMAX_(call) c;
    const MMAX_(batch) b = MMAX_(batch_of)(y, x, s->y_stride, s);
    MMAX_(prepare)(&c, s->scale, NULL, epsilon);
    c.clears = 1;
    MMAX_(normalise)(&b, &c, MMAX_IN_GROUPS(evsoftmax, evsoftmax, weights_of_group, MMAX_MOST_ALONE));
}

/* ---- logarithms ---- */

MMAX_STATIC void MMAX_(log_softmax_rows)(const MMAX_(batch) * b, const MMAX_(call) * c)
{
    MMAX_(normalise_rows)(b, c, &MMAX_(softmax_passes), MMAX_BEGIN_ROWS(softmax), 1);
}
MMAX_STATIC void MMAX_(log_multimax1_rows)(const MMAX_(batch) * b, const MMAX_(call) * c)
{
    MMAX_(normalise_rows)(b, c, &MMAX_(multimax1_passes), MMAX_BEGIN_ROWS(multimax1), 1);
}
MMAX_STATIC void MMAX_(log_multimax2_rows)(const MMAX_(batch) * b, const MMAX_(call) * c)
{
    MMAX_(normalise_rows)(b, c, &MMAX_(multimax2_passes), MMAX_BEGIN_ROWS(multimax2), 1);
}

#    if MMAX_FAST
/* log(sum / exp(maximum)) of each row of a group, with the arithmetic of exp_sums_of. */
MMAX_STATIC void MMAX_(log_sums_of_group)(double *log_sum, const MMAX_(group) * g, const MMAX_(batch) * b,
                                          const MMAX_(call) * c)
{
    MMAX_LINE mmax_real e_max[MMAX_WIDTH];
    MMAX_LINE mmax_real limits[MMAX_WIDTH];
    MMAX_LINE double others[MMAX_WIDTH], lost[MMAX_WIDTH];
    mmax_v_store(e_max, MMAX_(exp)(mmax_v_load(g->origins.max), mmax_v_load(g->origins.rounder), c));
    for (size_t r = 0; r < MMAX_WIDTH; ++r) {
        limits[r] = (mmax_real)(MMAX_BELOW_MAX * (double)e_max[r]);
    }
    MMAX_(short_totals)(others, lost, g->e, MMAX_SHORT, g->rows, b->cols, NULL, 1, limits);
    MMAX_F64_(log_sums)(log_sum, g->total, others, e_max, !MMAX_PASS_DOUBLE, MMAX_WIDTH);
}

/* In a group without masks, or a row that goes alone, no maximum is large: nothing overflows or is subnormal on the way,
 * as in a moderate row, unless a scaled score is near the end of the type's range. `low` has the smallest. */
MMAX_INLINE int MMAX_(short_logs_plain)(mmax_vec low, const MMAX_(call) * c, int function)
{
    return function != MMAX_SOFTMAX || c->scale <= 1 || mmax_v_hmin(low) > MMAX_LOG_BOUND(c) / 2;
}
MMAX_INLINE void MMAX_(short_log)(mmax_real *y, const mmax_real *x, size_t n, const MMAX_(origin) * o, double log_sum,
                                  int plain, const MMAX_(call) * c, int function)
{
    if (plain) {
        MMAX_(log_row_of)(y, x, n, c, function, 1, o, log_sum, 1);
    } else if (mmax_is_sigma(function)) { /* with masks */
        MMAX_(store_sigma)(y, x, n, c, function, 1);
        MMAX_(log_row)(y, y, n, c, 1, o, log_sum);
    } else {
        MMAX_(log_row)(y, x, n, c, 0, o, log_sum);
    }
}
MMAX_INLINE void MMAX_(group_logs)(const MMAX_(group) * g, const MMAX_(batch) * b, const MMAX_(call) * c, int function)
{
    const int plain = !g->masked && MMAX_(short_logs_plain)(mmax_v_load(g->low), c, function);
    double log_sum[MMAX_WIDTH];
    MMAX_(log_sums_of_group)(log_sum, g, b, c);
    for (size_t r = 0; r < g->rows; ++r) {
        const MMAX_(origin) o = MMAX_(origin_at)(&g->origins, r, function);
        const size_t row = g->row + r, n = MMAX_(length_of)(b, row);
        mmax_real *const y = b->y + row * b->y_stride;
        const mmax_real *const x = b->x + row * b->x_stride;
        if (MMAX_UNLIKELY(!mmax_f64_is_finite(g->total[r]))) {
            MMAX_(fill_special)(y, x, n, 1, MMAX_MASK_BITS);
        } else {
            MMAX_(short_log)(y, x, n, &o, log_sum[r], plain, c, function);
        }
    }
    if (b->lengths) {
        MMAX_(fill_past)(g, b, MMAX_MASK_BITS);
    }
}
MMAX_INLINE int MMAX_(lone_logs)(const MMAX_(batch) * b, size_t row, size_t n, const MMAX_(call) * c, int function)
{
    const mmax_real *const x = b->x + row * b->x_stride;
    MMAX_LINE mmax_real e[MMAX_SHORT];
    MMAX_(origin) o;
    mmax_vec low;
    double total, lost;
    if (!MMAX_(lone_exp)(e, &o, &total, &lost, &low, x, n, c, function)) {
        return 0;
    }
    MMAX_(short_log)
    (b->y + row * b->y_stride, x, n, &o, MMAX_F64_(log1p)(MMAX_(rest_beside_max)(e, n, total, &o, c)),
     MMAX_(short_logs_plain)(low, c, function), c, function);
    return 1;
}
MMAX_LONE(log_softmax, MMAX_SOFTMAX, lone_logs, MMAX_MASK_BITS)
MMAX_LONE(log_multimax1, MMAX_MULTIMAX1, lone_logs, MMAX_MASK_BITS)
MMAX_LONE(log_multimax2, MMAX_MULTIMAX2, lone_logs, MMAX_MASK_BITS)
MMAX_STATIC void MMAX_(log_softmax_of_group)(const MMAX_(group) * g, const MMAX_(batch) * b, const MMAX_(call) * c)
{
    MMAX_(group_logs)(g, b, c, MMAX_SOFTMAX);
}
MMAX_STATIC void MMAX_(log_multimax1_of_group)(const MMAX_(group) * g, const MMAX_(batch) * b, const MMAX_(call) * c)
{
    MMAX_(group_logs)(g, b, c, MMAX_MULTIMAX1);
}
MMAX_STATIC void MMAX_(log_multimax2_of_group)(const MMAX_(group) * g, const MMAX_(batch) * b, const MMAX_(call) * c)
{
    MMAX_(group_logs)(g, b, c, MMAX_MULTIMAX2);
}
#    endif

MMAX_STATIC void MMAX_(log_softmax)(mmax_real *y, const mmax_real *x, const mmax_shape *s)
{
    MMAX_(call) c;
    const MMAX_(batch) b = MMAX_(batch_of)(y, x, s->y_stride, s);
    MMAX_(prepare)(&c, s->scale, NULL, 0);
    MMAX_(normalise)(&b, &c, MMAX_IN_GROUPS(softmax, log_softmax, log_softmax_of_group, 1));
}
MMAX_STATIC void MMAX_(log_multimax)(mmax_real *y, const mmax_real *x, const mmax_multimax_params *p,
                                     const mmax_shape *s)
{
    MMAX_(sigma_state) state;
    MMAX_(call) c;
    const MMAX_(batch) b = MMAX_(batch_of)(y, x, s->y_stride, s);
    MMAX_(prepare_sigma)(&c, &state, s->scale, p, s->cols, 0);
    if (p->order == 1) {
        MMAX_(normalise)(&b, &c, MMAX_IN_GROUPS(multimax1, log_multimax1, log_multimax1_of_group, 1));
    } else {
        MMAX_(normalise)(&b, &c, MMAX_IN_GROUPS(multimax2, log_multimax2, log_multimax2_of_group, 1));
    }
}

/* ---- gradient through sigma, with the sums for t, b and d ---- */

/* What the gradient needs of sigma. Kernels use a copy, which no store can change. */
typedef struct MMAX_(kinks) {
    mmax_real b[2], d[2];         /* as given, also where t = 1: the term is absent, its gradient is not */
    mmax_real below[2], above[2]; /* of the slope: [0] below b, and what is added above d; [1] times the distance */
    mmax_real input_scale, scale; /* of x, and of gx */
    mmax_real plus_zero;          /* see mmax_v_plus_zero */
} MMAX_(kinks);

/* 2a, or the largest number of its sign */
MMAX_INLINE mmax_real MMAX_(doubled)(mmax_real a)
{
    const mmax_real half = MMAX_REAL_MAX / 2;
    return 2 * (a > half ? half : a < -half ? -half : a);
}

MMAX_INLINE MMAX_(kinks) MMAX_(kinks_of)(const mmax_multimax_params *p, const MMAX_(call) * c, double gx_scale)
{
    MMAX_(kinks) k;
    for (int i = 0; i < 2; ++i) {
        k.b[i] = i < p->order ? (mmax_real)p->b[i] : 0;
        k.d[i] = i < p->order ? (mmax_real)p->d[i] : 0;
    }
    k.below[0] = 1 - c->below[0];
    k.above[0] = c->above[0];
    k.below[1] = MMAX_(doubled)(-c->below[1]);
    k.above[1] = MMAX_(doubled)(c->above[1]);
    k.input_scale = c->input_scale;
    k.scale = (mmax_real)gx_scale;
    k.plus_zero = 0;
    MMAX_KEEP(k.plus_zero);
    return k;
}

/* max(b - s, 0) and max(s - d, 0); `careful` keeps them finite for scores above the safe bound */
MMAX_INLINE mmax_vec MMAX_(below_kink)(mmax_vec b, mmax_vec s, int careful)
{
    const mmax_vec u = mmax_v_max(mmax_v_sub(b, s), mmax_v_zero());
    return careful ? mmax_v_min(u, mmax_v_set(MMAX_REAL_MAX)) : u;
}
MMAX_INLINE mmax_vec MMAX_(above_kink)(mmax_vec d, mmax_vec s, int careful)
{
    const mmax_vec v = mmax_v_max(mmax_v_sub(s, d), mmax_v_zero());
    return careful ? mmax_v_min(v, mmax_v_set(MMAX_REAL_MAX)) : v;
}

/* Adds to lanes[0..3] (order 2: 0..7) what an entry with score s and gradient g with respect to sigma contributes: g
 * times max(b1-s,0), max(s-d1,0), [s<b1], [s>d1], max(b2-s,0)^2, max(s-d2,0)^2, max(b2-s,0), max(s-d2,0). Returns gx
 * from the scaled gradient. */
MMAX_INLINE mmax_vec MMAX_(slopes_step)(const MMAX_(kinks) * t, mmax_vec (*lanes)[MMAX_REGS], int k, mmax_vec g,
                                        mmax_vec scaled, mmax_vec s, int order, int params, int careful)
{
    const mmax_vec b1 = mmax_v_set(t->b[0]), d1 = mmax_v_set(t->d[0]);
    const mmax_mask below = mmax_v_lt(s, b1), above = mmax_v_lt(d1, s);
    mmax_vec slope = mmax_v_select(below, mmax_v_set(t->below[0]), mmax_v_set((mmax_real)1));
    slope = mmax_v_add_where(above, slope, mmax_v_set(t->above[0]));
    if (params) {
        const mmax_vec u = careful ? MMAX_(below_kink)(b1, s, 1) : mmax_v_sub(b1, s);
        const mmax_vec v = careful ? MMAX_(above_kink)(d1, s, 1) : mmax_v_sub(s, d1);
        lanes[0][k] = mmax_v_fma_where(below, g, u, lanes[0][k]);
        lanes[1][k] = mmax_v_fma_where(above, g, v, lanes[1][k]);
        lanes[2][k] = mmax_v_add_where(below, lanes[2][k], g);
        lanes[3][k] = mmax_v_add_where(above, lanes[3][k], g);
    }
    if (order == 2) {
        const mmax_vec u = MMAX_(below_kink)(mmax_v_set(t->b[1]), s, careful);
        const mmax_vec v = MMAX_(above_kink)(mmax_v_set(t->d[1]), s, careful);
        slope = mmax_v_fma(mmax_v_set(t->below[1]), u, slope);
        slope = mmax_v_fma(mmax_v_set(t->above[1]), v, slope);
        if (params) {
            const mmax_vec gu = mmax_v_product(g, u), gv = mmax_v_product(g, v);
            lanes[4][k] = mmax_v_fma(gu, u, lanes[4][k]);
            lanes[5][k] = mmax_v_fma(gv, v, lanes[5][k]);
            lanes[6][k] = mmax_v_add(lanes[6][k], gu);
            lanes[7][k] = mmax_v_add(lanes[7][k], gv);
        }
    }
    if (careful) { /* an entry without weight has no gradient, however steep sigma is there */
        const mmax_vec largest = mmax_v_set(MMAX_REAL_MAX), smallest = mmax_v_set(-MMAX_REAL_MAX);
        slope = mmax_v_max(smallest, mmax_v_min(largest, slope));
    }
    /* + 0: a masked entry has no -0 */
    return mmax_v_fma(scaled, slope, mmax_v_set(t->plus_zero));
}

MMAX_INLINE void MMAX_(poison)(mmax_multimax_grads *gp, int order)
{
    for (int i = 0; i < order; ++i) {
        gp->t_b[i] = gp->t_d[i] = gp->b[i] = gp->d[i] = mmax_f64_from_bits(0x7ff8000000000000);
    }
}

/* What a call with sigma's gradient prepares once, and adds up over its rows: gp is written at its end. */
typedef struct MMAX_(slopes) {
    MMAX_(kinks) kinks;
    mmax_vec lanes[MMAX_MOST_SUMS][MMAX_REGS]; /* what is not in the sums yet: */
    size_t blocks;                             /* so many, the last of each row as a whole */
    MMAX_(sum) sums[MMAX_MOST_SUMS];
    double targets[MMAX_MOST_SUMS];      /* what slopes_target adds, but for the latest, */
    double targets_lost[MMAX_MOST_SUMS]; /* what their sum rounds away, */
    double late_targets[MMAX_MOST_SUMS]; /* and the latest: */
    int late;                            /* so many */
    int any_nan;                         /* among the rows */
} MMAX_(slopes);

MMAX_INLINE void MMAX_(slopes_begin)(MMAX_(slopes) * t, const mmax_multimax_params *p, const MMAX_(call) * c,
                                     double gx_scale)
{
    t->kinks = MMAX_(kinks_of)(p, c, gx_scale);
    MMAX_LANES_CLEAR(t->lanes, MMAX_MOST_SUMS)
    t->blocks = 0;
    MMAX_(sums_clear)(t->sums, MMAX_MOST_SUMS);
    memset(t->targets, 0, sizeof t->targets);
    memset(t->targets_lost, 0, sizeof t->targets_lost);
    memset(t->late_targets, 0, sizeof t->late_targets);
    t->late = 0;
    t->any_nan = 0;
}
#    define MMAX_MOST_LATE 64
MMAX_INLINE void MMAX_(targets_join)(MMAX_(slopes) * t, int order)
{
    for (int i = 0; i < 4 * order; ++i) {
        MMAX_ADD_EXACTLY(t->targets[i], t->targets_lost[i], t->late_targets[i]);
        t->late_targets[i] = 0;
    }
    t->late = 0;
}
/* To the sums, in double: a gradient g at the score s, which may lie far from all others. */
MMAX_INLINE void MMAX_(slopes_target)(MMAX_(slopes) * t, double g, double s, int order)
{
    for (int i = 0; i < order; ++i) {
        const double b = (double)t->kinks.b[i], d = (double)t->kinks.d[i];
        const double u = mmax_only_if(s < b, mmax_limited(b - s)), du = i == 0 ? mmax_only_if(s < b, 1) : u;
        const double v = mmax_only_if(s > d, mmax_limited(s - d)), dv = i == 0 ? mmax_only_if(s > d, 1) : v;
        double *const sums = t->late_targets + 4 * i;
        sums[0] = sums[0] + mmax_product(g * u, du);
        sums[1] = sums[1] + mmax_product(g * v, dv);
        sums[2] = sums[2] + mmax_product(g, du);
        sums[3] = sums[3] + mmax_product(g, dv);
    }
    if (++t->late == MMAX_MOST_LATE) {
        MMAX_(targets_join)(t, order);
    }
}
/* Adds n t times a sum, which may be infinite where t is 0, as n t may be where the sum is. */
MMAX_INLINE double MMAX_(kink_gradient)(double gradient, double n, double t, double sum)
{
    const double factor = n * t;
    if (t < 0 || t > 0) {
        return mmax_f64_is_finite(factor) ? mmax_s_dfma(factor, sum, gradient) : mmax_s_dfma(t, n * sum, gradient);
    }
    return gradient;
}
/* gp += the sums times `factor` */
MMAX_INLINE void MMAX_(slopes_end)(MMAX_(slopes) * t, mmax_multimax_grads *gp, const mmax_multimax_params *p,
                                   double factor)
{
    MMAX_CALL_FLUSH(t, 4 * p->order);
    MMAX_(targets_join)(t, p->order);
    for (int i = 0; i < p->order; ++i) {
        const double n = i + 1; /* the order of the term */
        double sums[4];
        for (int j = 0; j < 4; ++j) {
            const double lost = t->targets_lost[4 * i + j]; /* NaN where the targets' sum has overflowed */
            const double sum = MMAX_(sum_total)(&t->sums[4 * i + j]) + t->targets[4 * i + j];
            sums[j] = mmax_product(sum + mmax_only_if(mmax_f64_is_finite(lost), lost), factor);
        }
        gp->t_b[i] = gp->t_b[i] - sums[0];
        gp->t_d[i] = gp->t_d[i] + sums[1];
        gp->b[i] = MMAX_(kink_gradient)(gp->b[i], n, 1 - p->t_b[i], sums[2]);
        gp->d[i] = MMAX_(kink_gradient)(gp->d[i], n, 1 - p->t_d[i], sums[3]);
    }
    if (t->any_nan) {
        MMAX_(poison)(gp, p->order);
    }
}

/* ---- cross-entropy ---- */

/* With label smoothing: how far the active scores lie below the maximum in all, how many they are, and how many of
 * them are below the mean (EvSoftMax). Differences are in a unit of 1 or, where their sum overflows, of 2^64. */
typedef struct MMAX_(spread) {
    double below_max, active, low, unit;
} MMAX_(spread);

MMAX_INLINE MMAX_(spread)
    MMAX_(row_spread)(const mmax_real *x, size_t n, const MMAX_(origin) * o, const MMAX_(call) * c, int function)
{
    const mmax_vec masked = mmax_v_set(MMAX_MASK), one = mmax_v_set((mmax_real)1);
    MMAX_(spread) spread;
    spread.unit = 1;
    for (;;) {
        const mmax_vec tiny = mmax_v_set((mmax_real)(1 / spread.unit));
        const mmax_vec max = mmax_v_product(mmax_v_set(o->max), tiny);
        MMAX_(sum) sums[3];
        MMAX_(sums_clear)(sums, 3);
#    define MMAX_STEP(at, left, k, part)                                                                    \
        const mmax_vec logit = MMAX_(load_upto)(x + at, left, masked);                                      \
        const mmax_mask active = mmax_v_nle(logit, masked);                                                 \
        const mmax_mask low = mmax_m_and(active, mmax_v_lt(logit, mmax_v_set(o->mean)));                    \
        const mmax_vec score = mmax_v_max(MMAX_(score)(logit, c, function, 1), mmax_v_set(-MMAX_REAL_MAX)); \
        const mmax_vec below = mmax_v_sub(max, mmax_v_product(score, tiny));                                \
        lanes_##part[0][k] = mmax_v_add_where(active, lanes_##part[0][k], below);                           \
        lanes_##part[1][k] = mmax_v_add_where(active, lanes_##part[1][k], one);                             \
        lanes_##part[2][k] = mmax_v_add_where(low, lanes_##part[2][k], one);
        MMAX_SWEEP_SUM(n, sums, 3, MMAX_STEP);
#    undef MMAX_STEP
        spread.below_max = MMAX_(sum_total)(&sums[0]);
        spread.active = MMAX_(sum_total)(&sums[1]);
        spread.low = MMAX_(sum_total)(&sums[2]);
        if (spread.unit > 1 || mmax_f64_is_finite(spread.below_max)) {
            return spread;
        }
        spread.unit = MMAX_TWO_TO_64;
    }
}

/* gx = (y - q) times `factor` for one row of exponentials e, which may be gx; the caller mends the target's entry. */
MMAX_INLINE void MMAX_(loss_gradient_of)(mmax_real *gx, const mmax_real *e, size_t n, double sum, double q,
                                         double factor, int kind)
{
    const mmax_vec inverse = mmax_v_set((mmax_real)(factor / sum)), minus_q = mmax_v_set((mmax_real)(-q * factor));
    const mmax_vec smallest = mmax_v_set((mmax_real)(MMAX_REAL_MIN * sum * MMAX_ABOVE_ONE));
#    define MMAX_STEP(at, left, k, part)                                                      \
        const mmax_vec e_ = MMAX_(load_upto)(e + at, left, mmax_v_zero());                    \
        mmax_vec g_ = kind >= MMAX_ROW_CLAMP ? mmax_v_keep(mmax_v_le(smallest, e_), e_) : e_; \
        g_ = mmax_v_fma(g_, inverse, minus_q);                                                \
        g_ = kind == MMAX_ROW_GENERAL ? mmax_v_keep(mmax_v_ne(e_, mmax_v_zero()), g_) : g_;   \
        MMAX_(store_upto)(gx + at, left, g_);
    MMAX_SWEEP(n, MMAX_STEP);
#    undef MMAX_STEP
}
MMAX_STATIC void MMAX_(loss_gradient)(mmax_real *gx, const mmax_real *e, size_t n, double sum, double q, double factor,
                                      int kind)
{
    if (kind == MMAX_ROW_PLAIN) {
        MMAX_(loss_gradient_of)(gx, e, n, sum, q, factor, MMAX_ROW_PLAIN);
    } else if (kind == MMAX_ROW_CLAMP) {
        MMAX_(loss_gradient_of)(gx, e, n, sum, q, factor, MMAX_ROW_CLAMP);
    } else {
        MMAX_(loss_gradient_of)(gx, e, n, sum, q, factor, MMAX_ROW_GENERAL);
    }
}

/* The same for MultiMax from the exponentials e, with sigma's slope and the parameter sums. */
#    define MMAX_SIGMA_GRADIENT(gx, e, x, at, left, inverse, scaled, smallest, lanes, k)                  \
        const mmax_vec x_ = MMAX_(load_upto)((x) + at, left, mmax_v_zero());                              \
        const mmax_vec e_ = MMAX_(load_upto)((e) + at, left, mmax_v_zero());                              \
        const mmax_vec w_ = kind >= MMAX_ROW_CLAMP ? mmax_v_keep(mmax_v_le(smallest, e_), e_) : e_;       \
        mmax_vec s_ = mmax_v_mul(x_, mmax_v_set(kinks.input_scale));                                      \
        mmax_vec g_ = params ? MMAX_(first_upto)(mmax_v_fma(w_, inverse, minus_q), left) : w_;            \
        mmax_vec gx_ = mmax_v_fma(w_, scaled, minus_q_scaled);                                            \
        if (kind == MMAX_ROW_GENERAL) {                                                                   \
            const mmax_mask active_ = mmax_v_nle(x_, mmax_v_set(MMAX_MASK));                              \
            g_ = mmax_v_keep(active_, g_);                                                                \
            gx_ = mmax_v_keep(active_, gx_);                                                              \
            s_ = mmax_v_keep(active_, mmax_v_max(mmax_v_set(-MMAX_REAL_MAX), s_));                        \
        }                                                                                                 \
        gx_ = MMAX_(slopes_step)(&kinks, lanes, k, g_, gx_, s_, order, params, kind == MMAX_ROW_GENERAL); \
        if (gx) {                                                                                         \
            MMAX_(store_upto)((gx) + at, left, gx_);                                                      \
        }
MMAX_INLINE mmax_real MMAX_(smallest_weight)(double sum) { return (mmax_real)(MMAX_REAL_MIN * sum * MMAX_ABOVE_ONE); }
MMAX_INLINE void MMAX_(sigma_gradient_of)(mmax_real *gx, MMAX_(slopes) * slopes, const mmax_real *e, const mmax_real *x,
                                          size_t n, double sum, double q, int order, int params, int kind)
{
    const MMAX_(kinks) kinks = slopes->kinks;
    const double scale = (double)kinks.scale;
    const mmax_vec inverse = mmax_v_set((mmax_real)(1 / sum)), scaled = mmax_v_set((mmax_real)(scale / sum));
    const mmax_vec minus_q = mmax_v_set((mmax_real)(-q)), minus_q_scaled = mmax_v_set((mmax_real)(-q * scale));
    const mmax_vec smallest = mmax_v_set(MMAX_(smallest_weight)(sum));
#    define MMAX_STEP(at, left, k, part) \
        MMAX_SIGMA_GRADIENT(gx, e, x, at, left, inverse, scaled, smallest, lanes_##part, k)
    if (params) {
        MMAX_SWEEP_ON(n, slopes, 4 * order, MMAX_STEP);
    } else {
        mmax_vec(*const lanes_block_)[MMAX_REGS] = NULL, (*const lanes_rest_)[MMAX_REGS] = NULL;
        MMAX_SWEEP(n, MMAX_STEP);
    }
#    undef MMAX_STEP
}
MMAX_STATIC void MMAX_(sigma_gradient)(mmax_real *gx, MMAX_(slopes) * slopes, const mmax_real *e, const mmax_real *x,
                                       size_t n, double sum, double q, int order, int params, int kind)
{
    /* The rows that are rare share one text; the second term of order 1 is 0 there. */
    if (!MMAX_FAST || kind == MMAX_ROW_GENERAL) {
        MMAX_(sigma_gradient_of)(gx, slopes, e, x, n, sum, q, 2, params, MMAX_ROW_GENERAL);
    } else if (params && order == 1) {
        MMAX_(sigma_gradient_of)(gx, slopes, e, x, n, sum, q, 1, 1, MMAX_ROW_CLAMP);
    } else if (params) {
        MMAX_(sigma_gradient_of)(gx, slopes, e, x, n, sum, q, 2, 1, MMAX_ROW_CLAMP);
    } else if (kind == MMAX_ROW_PLAIN && order == 1) {
        MMAX_(sigma_gradient_of)(gx, slopes, e, x, n, sum, q, 1, 0, MMAX_ROW_PLAIN);
    } else if (kind == MMAX_ROW_PLAIN) {
        MMAX_(sigma_gradient_of)(gx, slopes, e, x, n, sum, q, 2, 0, MMAX_ROW_PLAIN);
    } else if (order == 1) {
        MMAX_(sigma_gradient_of)(gx, slopes, e, x, n, sum, q, 1, 0, MMAX_ROW_CLAMP);
    } else {
        MMAX_(sigma_gradient_of)(gx, slopes, e, x, n, sum, q, 2, 0, MMAX_ROW_CLAMP);
    }
}

/* part (a - b) unit without overflow on the way, and at most the largest double */
MMAX_INLINE double MMAX_(part_of_distance)(double part, double a, double b, double unit)
{
    const double quarter = MMAX_PASS_DOUBLE && (a > 1 || a < -1 || b > 1 || b < -1) ? 0.25 : 1; /* only of large ones */
    const double distance = (mmax_product(a, quarter) - mmax_product(b, quarter)) * unit;
    return mmax_limited(mmax_product(part, distance) * (1 / quarter));
}
MMAX_INLINE double MMAX_(distance)(double a, double b, double unit) { return MMAX_(part_of_distance)(1, a, b, unit); }

/* A row with its target, between the passes. */
typedef struct MMAX_(loss) {
    double *loss;
    mmax_real *gx;
    const mmax_real *x;
    size_t n, index;
    const mmax_targets *targets;
    MMAX_(slopes) * slopes;
    int params; /* whether the call wants gp */
    MMAX_(origin) origin;
    MMAX_(spread) spread;
    mmax_real x_target, score;
    int masked, careful;
    int graded;          /* whether gx and the sums of the slopes have all but the target's part */
    int state;           /* MMAX_IS_NORMAL, ..; MMAX_IS_DONE for a row without a target */
    int stored;          /* whether exponentials have replaced what was in gx */
    double sum, log_sum; /* log_sum: of sum / exp(maximum) */
    const mmax_real *e;  /* the exponentials; NULL: a block at a time in the buffer */
    mmax_real *buffer;
} MMAX_(loss);

MMAX_INLINE void MMAX_(loss_of)(MMAX_(loss) * r, const MMAX_(batch) * b, size_t row)
{
    r->loss = b->loss ? b->loss + row : NULL;
    r->gx = b->y ? b->y + row * b->y_stride : NULL;
    r->x = b->x + row * b->x_stride;
    r->index = (size_t)b->index[row];
    r->state = b->index[row] >= 0 ? MMAX_IS_NORMAL : MMAX_IS_DONE;
    r->stored = r->graded = 0;
    r->n = r->state == MMAX_IS_DONE ? 0 : MMAX_(length_of)(b, row);
    r->targets = b->targets;
    r->slopes = b->slopes;
    r->params = b->params;
}

/* What the loss needs of x, which the exponentials may overwrite. */
MMAX_INLINE void MMAX_(loss_target)(MMAX_(loss) * r, const MMAX_(call) * c, int function)
{
    const int sigma = mmax_is_sigma(function);
    const MMAX_(spread) none = {0, 0, 0, 1};
    r->x_target = r->x[r->index];
    r->masked = mmax_is_masked(r->x_target);
    r->score = sigma ? MMAX_(lane)(MMAX_(score)(mmax_v_set(r->x_target), c, function, 1)) : r->x_target;
    r->spread = r->targets->label_smoothing > 0 ? MMAX_(row_spread)(r->x, r->n, &r->origin, c, function) : none;
}

MMAX_INLINE void MMAX_(loss_end)(const MMAX_(loss) * r, const MMAX_(call) * c, const MMAX_(passes) * f)
{
    const int sigma = mmax_is_sigma(f->function), kind = r->careful ? MMAX_ROW_GENERAL : r->origin.kind;
    const double smoothing = r->targets->label_smoothing, gx_scale = c->gx_scale;
    const double q = smoothing > 0 ? smoothing / r->spread.active : 0;
    mmax_real *const gx = r->gx;
    if (r->loss) {
        const double unit = sigma ? 1.0 : c->scale;
        /* sum q_i (log sum - s_i), every term of one sign; EvSoftMax adds -log(epsilon) below the mean */
        double value = r->log_sum + MMAX_(part_of_distance)(1 - smoothing, r->origin.max, r->score, unit);
        value = value + mmax_limited(mmax_product(q, r->spread.below_max) * unit * r->spread.unit);
        if (f->function == MMAX_EVSOFTMAX) {
            const double low = (r->x_target < r->origin.mean ? 1 - smoothing : 0) + mmax_product(q, r->spread.low);
            value = value + mmax_product(low, c->epsilon_loss);
        }
        *r->loss = mmax_f64_from_bits(r->masked ? 0x7ff0000000000000 : mmax_limited_bits(mmax_f64_bits(value)));
    }
    if (sigma && (gx || r->params)) {
        const int order = f->function == MMAX_MULTIMAX2 ? 2 : 1;
        const double e_target = r->e ? r->e[r->index] : MMAX_(exp_of)(r->score, &r->origin, c);
        for (size_t at = 0, count; at < r->n && !r->graded; at += count) {
            const mmax_real *e = r->e ? r->e + at : r->buffer;
            count = r->e || r->n - at < MMAX_BLOCK ? r->n - at : MMAX_BLOCK;
            if (!r->e && r->n > MMAX_BLOCK) {
                (void)MMAX_(exp_block)(r->buffer, r->x + at, count, r->x + at, &r->origin, c, f, r->careful, 0);
            }
            MMAX_(sigma_gradient)
            (gx ? gx + at : NULL, r->slopes, e, r->x + at, count, r->sum, q, order, r->params, kind);
        }
        if (!r->masked) {
            const mmax_real s = r->x_target * c->input_scale, s_target = s < -MMAX_REAL_MAX ? -MMAX_REAL_MAX : s;
            if (r->params) {
                MMAX_(slopes_target)(r->slopes, smoothing - 1, (double)s_target, order);
            }
            if (gx) {
                const MMAX_(kinks) kinks = r->slopes->kinks;
                const double g = e_target / r->sum - q - (1 - smoothing);
                const mmax_vec target = mmax_v_set((mmax_real)(g * gx_scale));
                gx[r->index] =
                    MMAX_(lane)(MMAX_(slopes_step)(&kinks, NULL, 0, target, target, mmax_v_set(s_target), order, 0, 1));
            }
        }
    } else if (gx) {
        const double e_target = r->e[r->index];
        MMAX_(loss_gradient)(gx, r->e, r->n, r->sum, q, gx_scale, kind);
        if (!r->masked) {
            gx[r->index] = (mmax_real)((e_target / r->sum - q - (1 - smoothing)) * gx_scale);
        }
    }
}
/* One copy, which rows and groups share. */
#    define MMAX_INSTANCE(name, function)                                                     \
        MMAX_STATIC void MMAX_(name##_loss_end)(const MMAX_(loss) * r, const MMAX_(call) * c) \
        {                                                                                     \
            MMAX_(loss_end)(r, c, &MMAX_(name##_passes));                                     \
        }
MMAX_EACH_FUNCTION(MMAX_INSTANCE)
#    undef MMAX_INSTANCE
typedef void (*MMAX_(end_loss))(const MMAX_(loss) *, const MMAX_(call) *);

/* The exponentials of one row and their sum; returns sum / exp(maximum) - 1. */
MMAX_INLINE double MMAX_(loss_rest)(MMAX_(loss) * r, const mmax_real *next, const MMAX_(call) * c,
                                    const MMAX_(passes) * f)
{
    const int sigma = mmax_is_sigma(f->function);
    mmax_real *const e = r->e ? r->gx : NULL;
    MMAX_(call) without_turns;
    while (r->state == MMAX_IS_NORMAL) {
        MMAX_(exp_sums) sums;
        MMAX_(loss_target)(r, c, f->function);
        sums = f->function == MMAX_SOFTMAX
                   ? MMAX_(softmax_sums)(e, r->buffer, r->x, r->n, next, &r->origin, c)
                   : MMAX_(exp_sums_of)(e, r->buffer, r->x, r->n, next, &r->origin, c, f, r->careful);
        if (!(sigma && r->origin.peak && sums.few)) {
            r->stored = !sigma;
            r->state = mmax_f64_is_finite(sums.sum) ? MMAX_IS_NORMAL : MMAX_IS_NAN;
            r->sum = sums.sum;
            return r->state == MMAX_IS_NORMAL ? sums.rest : 0;
        }
        /* The largest score is too far below sigma's peak. */
        without_turns = *c;
        without_turns.turns = NULL;
        c = &without_turns;
        r->state = f->begin_row(&r->origin, &r->careful, e, r->x, r->n, c);
    }
    return 0;
}

/* A row without a weight, with NaN or without a target */
MMAX_INLINE void MMAX_(special_loss)(const MMAX_(loss) * r)
{
    const int nan = r->state == MMAX_IS_NAN;
    if (r->loss) {
        *r->loss = r->state == MMAX_IS_DONE ? 0 : mmax_f64_from_bits(nan ? 0x7ff8000000000000 : 0x7ff0000000000000);
    }
    if (r->gx && r->stored) {
        MMAX_(fill_nan)(r->gx, r->gx, r->n, r->origin.kind == MMAX_ROW_GENERAL);
    } else if (r->gx) {
        MMAX_(fill_special)(r->gx, r->x, r->n, nan, 0);
    }
    if (r->slopes && nan) {
        r->slopes->any_nan = 1;
    }
}

/* begin_row for MMAX_WIDTH rows; 0 as begin_rows, or where one has no target. */
MMAX_INLINE int MMAX_(begin_losses)(MMAX_(loss) * r, const MMAX_(call) * c,
                                    int (*begin_rows)(MMAX_(row) *, const MMAX_(call) *))
{
    MMAX_(row) rows[MMAX_WIDTH];
    int state = MMAX_IS_NORMAL;
    for (size_t i = 0; i < MMAX_WIDTH; ++i) {
        rows[i].y = r[i].gx;
        rows[i].x = r[i].x;
        rows[i].n = r[i].n;
        state |= r[i].state;
    }
    if (state != MMAX_IS_NORMAL || !begin_rows(rows, c)) {
        return 0;
    }
    for (size_t i = 0; i < MMAX_WIDTH; ++i) {
        r[i].origin = rows[i].origin;
        r[i].careful = 0;
    }
    return 1;
}

/* loss_rest for rows of one block at most, side by side, of functions other than MultiMax. `ahead`: how far behind a
 * row are the logits that come to be read. */
MMAX_INLINE void MMAX_(losses_rest)(double *rest, MMAX_(loss) * r, size_t count, size_t ahead, const MMAX_(call) * c,
                                    const MMAX_(passes) * f)
{
    MMAX_(row) rows[MMAX_MOST_ROWS];
    MMAX_(sum) sums[MMAX_MOST_ROWS];
    double lost[MMAX_MOST_ROWS];
    for (size_t i = 0; i < count; ++i) {
        if (r[i].state == MMAX_IS_NORMAL) {
            MMAX_(loss_target)(&r[i], c, f->function);
            r[i].stored = 1;
        }
        rows[i].n = r[i].n;
        rows[i].scores = r[i].x;
        rows[i].e = r[i].gx ? r[i].gx : r[i].buffer;
        rows[i].next = r[i].x + ahead;
        rows[i].later = MMAX_LATER_AT_LEAST;
        rows[i].relative_to = &r[i].origin;
        rows[i].state = r[i].state;
    }
    for (size_t i = 0; i < count;) {
        i += MMAX_(rows_exp)(&sums[i], &rows[i], count - i, c, f);
    }
    MMAX_(totals_of)(rest, lost, sums, count);
    for (size_t i = 0; i < count; ++i) {
        r[i].sum = rest[i];
        rest[i] = MMAX_(row_rest)(&rows[i], &rest[i], c);
        r[i].state = rows[i].state;
    }
}

/* Short rows go through the passes side by side, as in normalise_rows. MultiMax needs x to the end: in place its
 * exponentials have no array of their own. Its rows begin one by one, since their origin may be a peak of sigma. */
MMAX_INLINE void MMAX_(loss_rows)(const MMAX_(batch) * b, const MMAX_(call) * c, const MMAX_(passes) * f,
                                  int (*begin_rows)(MMAX_(row) *, const MMAX_(call) *), MMAX_(end_loss) end)
{
    const int sigma = mmax_is_sigma(f->function), fetches = MMAX_FETCHES(b);
    const size_t most = MMAX_(rows_at_once)(b, c, f->function, 1);
    const int together = MMAX_TOGETHER && most == MMAX_WIDTH && !sigma, at_once = !sigma && b->cols <= MMAX_BLOCK;
    MMAX_LINE mmax_real buffer[2 * MMAX_BLOCK];
    MMAX_(loss) rows[MMAX_MOST_ROWS];
    double rest[MMAX_MOST_ROWS + MMAX_WIDTH];
    for (size_t begun = 0, count; begun < b->rows; begun += count) {
        count = b->rows - begun < most ? b->rows - begun : most;
        for (size_t i = 0; i < count; ++i) {
            MMAX_(loss) *const r = &rows[i];
            MMAX_(loss_of)(r, b, begun + i);
            r->e = sigma && r->gx == r->x ? NULL : r->gx;
            r->buffer = buffer + i * (2 * MMAX_BLOCK / most);
        }
        if (!(together && count == MMAX_WIDTH && MMAX_(begin_losses)(rows, c, begin_rows))) {
            for (size_t i = 0; i < count; ++i) {
                MMAX_(loss) *const r = &rows[i];
                if (r->state == MMAX_IS_NORMAL) {
                    r->state = f->begin_row(&r->origin, &r->careful, r->e ? r->gx : NULL, r->x, r->n, c);
                }
            }
        }
        if (at_once) {
            const int more = begun + most + count <= b->rows;
            MMAX_(losses_rest)(rest, rows, count, more ? most * b->x_stride : 0, c, f);
        }
        for (size_t i = 0; !at_once && i < count; ++i) {
            const mmax_real *const x = rows[i].x;
            const int fetch = fetches && begun + i + most < b->rows;
            rest[i] = MMAX_(loss_rest)(&rows[i], fetch ? x + most * b->x_stride : x, c, f);
        }
        if (b->loss) {
            MMAX_(log1ps_of)(rest, count);
        }
        for (size_t i = 0; i < count; ++i) {
            MMAX_(loss) *const r = &rows[i];
            r->log_sum = b->loss ? rest[i] : 0;
            if (MMAX_UNLIKELY(r->state != MMAX_IS_NORMAL)) {
                MMAX_(special_loss)(r);
            } else {
                end(r, c);
            }
            if (r->gx && r->n < b->cols) {
                MMAX_(fill)(r->gx + r->n, b->cols - r->n, 0);
            }
        }
    }
}

#    define MMAX_INSTANCE(name, function)                                                                 \
        MMAX_STATIC void MMAX_(name##_loss_rows)(const MMAX_(batch) * b, const MMAX_(call) * c)           \
        {                                                                                                 \
            MMAX_(loss_rows)(b, c, &MMAX_(name##_passes), MMAX_BEGIN_ROWS(name), MMAX_(name##_loss_end)); \
        }
MMAX_EACH_FUNCTION(MMAX_INSTANCE)
#    undef MMAX_INSTANCE

#    if MMAX_FAST
/* What the end wants of a row of a group, or alone, that has its origin and its sum. */
MMAX_INLINE void MMAX_(short_loss)(MMAX_(loss) * r, const mmax_real *e, double log_sum, int masks,
                                   const MMAX_(call) * c, int function)
{
    r->careful = masks;
    MMAX_(loss_target)(r, c, function);
    r->log_sum = log_sum;
    r->e = e;
    r->buffer = NULL;
}
/* sigma_gradient for short rows of n entries each without masks. */
MMAX_INLINE void MMAX_(sigma_gradients)(const MMAX_(loss) * rows, size_t count, size_t n, MMAX_(slopes) * slopes,
                                        double q, int order)
{
    const int params = 1, kind = MMAX_ROW_CLAMP;
    const MMAX_(kinks) kinks = slopes->kinks;
    const double scale = (double)kinks.scale;
    const mmax_vec minus_q = mmax_v_set((mmax_real)(-q)), minus_q_scaled = mmax_v_set((mmax_real)(-q * scale));
    mmax_real inverse[MMAX_WIDTH], scaled[MMAX_WIDTH], smallest[MMAX_WIDTH];
    for (size_t r = 0; r < count; ++r) {
        inverse[r] = (mmax_real)(1 / rows[r].sum);
        scaled[r] = (mmax_real)(scale / rows[r].sum);
        smallest[r] = MMAX_(smallest_weight)(rows[r].sum);
    }
#        define MMAX_STEP(r, at, left, lanes, k)                                                    \
            MMAX_SIGMA_GRADIENT(rows[r].gx, rows[r].e, rows[r].x, at, left, mmax_v_set(inverse[r]), \
                                mmax_v_set(scaled[r]), mmax_v_set(smallest[r]), lanes, k)
    MMAX_SWEEP_ROWS(count, n, slopes, 4 * order, MMAX_STEP);
#        undef MMAX_STEP
}
#        define MMAX_INSTANCE(order)                                                                          \
            MMAX_STATIC void MMAX_(sigma_gradients_##order)(const MMAX_(loss) * rows, size_t count, size_t n, \
                                                            MMAX_(slopes) * slopes, double q)                 \
            {                                                                                                 \
                MMAX_(sigma_gradients)(rows, count, n, slopes, q, order);                                     \
            }
MMAX_INSTANCE(1)
MMAX_INSTANCE(2)
#        undef MMAX_INSTANCE
MMAX_INLINE void MMAX_(group_loss)(MMAX_(loss) * r, const MMAX_(group) * g, size_t i, const double *log_sum,
                                   const MMAX_(call) * c, int function)
{
    r->origin = MMAX_(origin_at)(&g->origins, i, function);
    r->sum = g->total[i];
    MMAX_(short_loss)(r, g->e + i * MMAX_SHORT, r->loss ? log_sum[i] : 0, g->masked, c, function);
}
/* The gradients for MultiMax's parameters, of all rows before the targets' parts. Returns 0 where a row needs care. */
MMAX_INLINE int MMAX_(group_params)(const MMAX_(group) * g, const MMAX_(batch) * part, const double *log_sum,
                                    const MMAX_(call) * c, int function, MMAX_(end_loss) end)
{
    MMAX_(loss) losses[MMAX_WIDTH];
    double q = 0;
    for (size_t i = 0; i < part->rows; ++i) {
        if (!mmax_f64_is_finite(g->total[i])) {
            return 0;
        }
    }
    for (size_t i = 0; i < part->rows; ++i) {
        MMAX_(loss_of)(&losses[i], part, i);
        MMAX_(group_loss)(&losses[i], g, i, log_sum, c, function);
        losses[i].graded = 1;
    }
    if (part->targets->label_smoothing > 0) {
        q = part->targets->label_smoothing / losses[0].spread.active;
    }
    if (function == MMAX_MULTIMAX2) {
        MMAX_(sigma_gradients_2)(losses, part->rows, part->cols, part->slopes, q);
    } else {
        MMAX_(sigma_gradients_1)(losses, part->rows, part->cols, part->slopes, q);
    }
    for (size_t i = 0; i < part->rows; ++i) {
        end(&losses[i], c);
    }
    return 1;
}
MMAX_INLINE void MMAX_(group_losses)(const MMAX_(group) * g, const MMAX_(batch) * b, const MMAX_(call) * c,
                                     int function, MMAX_(rows) rows, MMAX_(end_loss) end)
{
    const MMAX_(batch) part = MMAX_(part_of)(b, g->row, g->rows);
    double log_sum[MMAX_WIDTH];
    if (b->loss) {
        MMAX_(log_sums_of_group)(log_sum, g, b, c);
    }
    if (mmax_is_sigma(function) && part.params && !part.lengths && !g->masked &&
        MMAX_(group_params)(g, &part, log_sum, c, function, end)) {
        return;
    }
    for (size_t i = 0; i < part.rows; ++i) {
        MMAX_(loss) r;
        MMAX_(loss_of)(&r, &part, i);
        if (MMAX_UNLIKELY(!mmax_f64_is_finite(g->total[i]))) {
            const MMAX_(batch) row = MMAX_(part_of)(&part, i, 1);
            rows(&row, c);
            continue;
        }
        MMAX_(group_loss)(&r, g, i, log_sum, c, function);
        end(&r, c);
    }
    if (b->lengths && b->y) {
        MMAX_(fill_past)(g, b, 0);
    }
}
MMAX_INLINE int MMAX_(lone_loss)(const MMAX_(batch) * b, size_t row, size_t n, const MMAX_(call) * c, int function,
                                 MMAX_(end_loss) end)
{
    MMAX_LINE mmax_real e[MMAX_SHORT];
    MMAX_(loss) r;
    mmax_vec low;
    double lost;
    MMAX_(loss_of)(&r, b, row);
    if (r.state != MMAX_IS_NORMAL || !MMAX_(lone_exp)(e, &r.origin, &r.sum, &lost, &low, r.x, n, c, function)) {
        return 0;
    }
    MMAX_(short_loss)
    (&r, e, b->loss ? MMAX_F64_(log1p)(MMAX_(rest_beside_max)(e, n, r.sum, &r.origin, c)) : 0, 0, c, function);
    end(&r, c);
    return 1;
}
#        define MMAX_INSTANCE(name, function)                                                              \
            MMAX_INLINE int MMAX_(lone_##name##_of)(const MMAX_(batch) * b, size_t row, size_t n,          \
                                                    const MMAX_(call) * c, int which)                      \
            {                                                                                              \
                return MMAX_(lone_loss)(b, row, n, c, which, MMAX_(name##_loss_end));                      \
            }                                                                                              \
            MMAX_LONE(name##_loss, function, lone_##name##_of, 0)                                          \
            MMAX_STATIC void MMAX_(name##_losses_of_group)(const MMAX_(group) * g, const MMAX_(batch) * b, \
                                                           const MMAX_(call) * c)                          \
            {                                                                                              \
                MMAX_(group_losses)(g, b, c, function, MMAX_(name##_loss_rows), MMAX_(name##_loss_end));   \
            }
MMAX_EACH_FUNCTION(MMAX_INSTANCE)
#        undef MMAX_INSTANCE
#    endif

/* gx is multiplied by grad_scale * scale as far as the type goes, and at the end by the rest, so that gradients of 0
 * stay 0. */
MMAX_INLINE void MMAX_(prepare_gradient)(MMAX_(call) * c, const mmax_targets *targets)
{
    c->gx_scale = MMAX_(in_range)(targets->grad_scale * c->scale);
}
MMAX_INLINE void MMAX_(finish_gradient)(const MMAX_(batch) * b, const MMAX_(call) * c)
{
    const double whole = b->targets->grad_scale * c->scale, rest = whole / c->gx_scale;
    for (size_t row = 0; MMAX_UNLIKELY(c->gx_scale != whole) && b->y && row < b->rows; ++row) {
        mmax_real *const gx = b->y + row * b->y_stride;
        for (size_t i = 0; i < b->cols; ++i) {
            gx[i] = gx[i] == 0 ? 0 : (mmax_real)((double)gx[i] * rest);
        }
    }
}

MMAX_INLINE MMAX_(batch) MMAX_(loss_batch_of)(double *loss, mmax_real *gx, const mmax_real *x,
                                              const mmax_targets *targets, const mmax_shape *s)
{
    MMAX_(batch) b = MMAX_(batch_of)(gx, x, s->gx_stride, s);
    b.loss = loss;
    b.index = targets->index;
    b.targets = targets;
    return b;
}
MMAX_STATIC void MMAX_(softmax_loss)(double *loss, mmax_real *gx, const mmax_real *x, const mmax_targets *targets,
                                     const mmax_shape *s)
{
    MMAX_(call) c;
    const MMAX_(batch) b = MMAX_(loss_batch_of)(loss, gx, x, targets, s);
    MMAX_(prepare)(&c, s->scale, NULL, 0);
    MMAX_(prepare_gradient)(&c, targets);
    MMAX_(normalise)(&b, &c, MMAX_IN_GROUPS(softmax, softmax_loss, softmax_losses_of_group, 1));
    MMAX_(finish_gradient)(&b, &c);
}
MMAX_STATIC void MMAX_(multimax_loss)(double *loss, mmax_real *gx, mmax_multimax_grads *gp, const mmax_real *x,
                                      const mmax_multimax_params *p, const mmax_targets *targets, const mmax_shape *s)
{
    MMAX_(sigma_state) state;
    MMAX_(slopes) slopes;
    MMAX_(call) c;
    MMAX_(batch) b = MMAX_(loss_batch_of)(loss, gx, x, targets, s);
    MMAX_(prepare_sigma)(&c, &state, s->scale, p, s->cols, 1);
    MMAX_(prepare_gradient)(&c, targets);
    MMAX_(slopes_begin)(&slopes, p, &c, c.gx_scale);
    b.slopes = &slopes;
    b.params = gp != NULL;
    if (p->order == 1) {
        MMAX_(normalise)(&b, &c, MMAX_IN_GROUPS(multimax1, multimax1_loss, multimax1_losses_of_group, 1));
    } else {
        MMAX_(normalise)(&b, &c, MMAX_IN_GROUPS(multimax2, multimax2_loss, multimax2_losses_of_group, 1));
    }
    MMAX_(finish_gradient)(&b, &c);
    if (gp) {
        MMAX_(slopes_end)(&slopes, gp, p, targets->grad_scale);
    }
}
MMAX_STATIC void MMAX_(evsoftmax_loss)(double *loss, mmax_real *gx, const mmax_real *x, double epsilon,
                                       const mmax_targets *targets, const mmax_shape *s)
{
    MMAX_(call) c;
    const MMAX_(batch) b = MMAX_(loss_batch_of)(loss, gx, x, targets, s);
    MMAX_(prepare)(&c, s->scale, NULL, epsilon);
    MMAX_(prepare_gradient)(&c, targets);
    /* 1 / epsilon may overflow. */
    c.epsilon_loss = epsilon < MMAX_TWO_TO_MINUS_64
                         ? MMAX_F64_(log1p)(1 / (epsilon * MMAX_TWO_TO_64) - 1) + 44.361419555836498 /* 64 log(2) */
                         : MMAX_F64_(log1p)(1 / epsilon - 1);
    /* From 2^-37 down, epsilon may take exponentials of 2^MMAX_LOWEST below the normal numbers, and only general rows
     * hold them there: all rows are. In f64 log(1 + the sum of the others) is 0 then in either kind. */
    c.general = c.general || (!MMAX_PASS_DOUBLE && epsilon < 7.275957614183426e-12);
    MMAX_(normalise)(&b, &c, MMAX_IN_GROUPS(evsoftmax, evsoftmax_loss, evsoftmax_losses_of_group, 1));
    MMAX_(finish_gradient)(&b, &c);
}

/* ---- sparsemax, entmax15 ----
 * In units where the weight is a power of v = u - tau (sparsemax: u = scale (x - max), entmax15: half of it), both have
 * u <= 0, -1 <= tau < 0, and only u > tau is in the support. tau of some of a row's entries is not above that of all:
 * one step towards tau of the heads, the largest of every MMAX_HEADSth entry, gives a bound, and what is above it, the
 * candidates, is collected once, in index order. tau is found on them; where they are too many for the buffer, they are
 * collected again in every step.
 */
#    define MMAX_BUFFER (4 * MMAX_CHUNK)
#    define MMAX_HEADS  (MMAX_LANES / 2)
#    define MMAX_SORTED 32 /* entries or candidates that are few enough to be sorted */

typedef struct MMAX_(units) {
    mmax_real max, high, low; /* u = (high + low) (x - max) */
    mmax_real lowest;         /* of x - max, so that no part of u is +inf; u itself may be -inf */
} MMAX_(units);

typedef struct MMAX_(candidates) {
    mmax_real *near_top; /* their x */
    size_t room;         /* for so many, and MMAX_PAIR more */
    const mmax_real *x;
    size_t n, next, count;  /* entries of x, the next one to look at, the candidates held */
    mmax_real bound, start; /* of the candidates; for the search of tau */
    MMAX_(units) units;
    double unit;           /* u = unit (x - max) */
    double part, per_part; /* u = per_part (part x - part max), see MMAX_(begin_candidates) */
    int whole;             /* all candidates are held */
} MMAX_(candidates);

/* With a buffer of its own. */
#    define MMAX_CANDIDATES(w)                                   \
        MMAX_LINE mmax_real w##_buffer[MMAX_BUFFER + MMAX_PAIR]; \
        MMAX_(candidates) w;                                     \
        w.near_top = w##_buffer;                                 \
        w.room = MMAX_BUFFER

/* u of x - max, as every part of these functions computes it */
MMAX_INLINE mmax_vec MMAX_(in_units)(mmax_vec d, const MMAX_(units) * units)
{
    d = mmax_v_max(mmax_v_set(units->lowest), d);
    return mmax_v_fma(d, mmax_v_set(units->high), mmax_v_mul(d, mmax_v_set(units->low)));
}
MMAX_INLINE mmax_vec MMAX_(below_unit)(mmax_vec x, const MMAX_(units) * units, const MMAX_(call) * c)
{
    mmax_vec d;
    if (c->general) {
        const mmax_vec before = mmax_v_set(c->before);
        d = mmax_v_mul(mmax_v_sub(mmax_v_mul(x, before), mmax_v_set(units->max * c->before)), mmax_v_set(c->after));
    } else {
        d = mmax_v_sub(x, mmax_v_set(units->max));
    }
    return MMAX_(in_units)(d, units);
}

/* The largest of the entries i, i + MMAX_HEADS, i + 2 MMAX_HEADS .. for each i < MMAX_HEADS, and of all. */
MMAX_STATIC void MMAX_(heads)(mmax_real *heads, mmax_real *largest, const mmax_real *x, size_t n)
{
    const mmax_vec masked = mmax_v_set(MMAX_MASK);
    mmax_vec max[MMAX_REGS];
    MMAX_EACH(k) { max[k] = masked; }
    for (size_t at = 0; at < n; at += MMAX_LANES) {
        const ptrdiff_t left = (ptrdiff_t)(n - at);
        if (left >= MMAX_LANES) {
            MMAX_EACH(k) { max[k] = mmax_v_max(mmax_v_load(x + at + k * MMAX_WIDTH), max[k]); }
        } else {
            MMAX_EACH(k)
            {
                const mmax_vec logit = MMAX_(load_upto)(x + at + k * MMAX_WIDTH, left - k * MMAX_WIDTH, masked);
                max[k] = mmax_v_max(logit, max[k]);
            }
        }
    }
    for (int k = 0; k < MMAX_REGS / 2; ++k) {
        max[k] = mmax_v_max(max[k], max[k + MMAX_REGS / 2]);
        mmax_v_store(heads + k * MMAX_WIDTH, max[k]);
        max[0] = mmax_v_max(max[k], max[0]);
    }
    *largest = mmax_v_hmax(max[0]);
}

/* Appends to the `count` entries of `to` what of x[*next], .. x[n - 1] is NaN or above `bound`, which is not NaN, until
 * they are `room` or more: what a block brings beyond the room takes some of MMAX_PAIR more places. Returns how many
 * they are then, and moves `next` on. */
MMAX_INLINE size_t MMAX_(append_above)(mmax_real *to, size_t count, size_t room, const mmax_real *x, size_t n,
                                       size_t *next, mmax_real bound)
{
    const mmax_vec masked = mmax_v_set(MMAX_MASK), limit = mmax_v_set(bound);
    size_t at = *next;
    for (; at < n && count < room; at += MMAX_PAIR) {
        const size_t left = n - at < MMAX_PAIR ? n - at : MMAX_PAIR;
#    if defined(mmax_v_collect)
        uint64_t bits = left < MMAX_PAIR; /* of a part of a block, no one asks first whether there are any */
#    else
        uint64_t bits = 0;
#    endif
#    define MMAX_STEP(first, left, k, part)                                      \
        const mmax_vec logit = MMAX_(load_upto)(x + at + (first), left, masked); \
        bits |= (uint64_t)mmax_m_bits(mmax_v_nle(logit, limit)) << (first);
        if (bits == 0) {
            MMAX_SWEEP_BY(2 * MMAX_REGS, left, 1, MMAX_STEP);
        }
#    undef MMAX_STEP
#    if defined(mmax_v_collect)
#        define MMAX_STEP(first, left, k, part)                                      \
            const mmax_vec logit = MMAX_(load_upto)(x + at + (first), left, masked); \
            const unsigned above = mmax_m_bits(mmax_v_nle(logit, limit));            \
            mmax_v_collect(to + count, logit, above);                                \
            count += (size_t)_mm_popcnt_u32(above);
        if (bits != 0) {
            MMAX_SWEEP_BY(2 * MMAX_REGS, left, 1, MMAX_STEP);
        }
#        undef MMAX_STEP
#    else
        /* Which they are is as good as random: a branch only for several at once. */
        while (bits != 0) {
            uint64_t last = bits;
            MMAX_UNROLL for (int i = 0; i < 4; ++i)
            {
                to[count] = x[at + (size_t)mmax_lowest_bit(last)];
                count += bits != 0;
                bits &= bits - 1;
                last = bits != 0 ? bits : last;
            }
        }
#    endif
    }
    *next = at;
    return count;
}

/* Appends candidates until there is no room or the row has no more; NaN counts as one. Entries a little below the bound
 * may be among them. */
MMAX_STATIC void MMAX_(collect)(MMAX_(candidates) * w)
{
    w->count = MMAX_(append_above)(w->near_top, w->count, w->room, w->x, w->n, &w->next, w->bound);
}

/* Sums over the candidates above t: how many, v = u - t, and v^2. */
typedef struct MMAX_(above) {
    double count, first, second;
    double excess; /* of the sum of the weights over 1 */
} MMAX_(above);

/* v of one candidate in double: rounded once, where fma is hardware. */
MMAX_INLINE double MMAX_(above_double)(mmax_real x, double t, const MMAX_(candidates) * w)
{
    return mmax_s_dfma((double)x * w->part - (double)w->units.max * w->part, w->per_part, -t);
}

/* A handful of candidates is summed in plain C, the same on every instruction set. One entry at the maximum is left
 * for last: with it v - 1 = -t - 1 is exact, so that a small excess is not lost beside 1. */
#    define MMAX_FEW 16
MMAX_INLINE MMAX_(above)
    MMAX_(sums_of_few)(const mmax_real *x, size_t n, double t, const MMAX_(candidates) * w, int function)
{
    const double top = -t;
    double first = 0, second = 0;
    int count = 1, top_seen = 0;
    MMAX_(above) above;
    for (size_t i = 0; i < n; ++i) {
        /* No branches: which entries count is as good as random. */
        const int at_top = x[i] == w->units.max, kept = !(at_top & !top_seen);
        double v = MMAX_(above_double)(x[i], t, w);
        if (0.0 > v) {
            v = 0.0;
        }
        v *= kept;
        top_seen |= at_top;
        count += !(v <= 0);
        first += v;
        second = mmax_s_dfma(v, v, second);
    }
    above.count = count;
    above.first = first + top;
    above.second = mmax_s_dfma(top, top, second);
    /* sparsemax: sum of v - 1; entmax15: sum of v^2 - 1 */
    above.excess = function == MMAX_SPARSEMAX ? (top - 1) + first : mmax_s_dfma(top - 1, top + 1, second);
    return above;
}

MMAX_INLINE MMAX_(above) MMAX_(sums_above)(MMAX_(candidates) * w, mmax_real t, const MMAX_(call) * c, int function)
{
    const mmax_vec tau = mmax_v_set(t), one = mmax_v_set((mmax_real)1), zero = mmax_v_zero();
    const mmax_vec masked = mmax_v_set(MMAX_MASK);
    MMAX_(sum) sums[3];
    MMAX_(above) above;
    if (w->whole && w->count <= MMAX_FEW) {
        return MMAX_(sums_of_few)(w->near_top, w->count, t, w, function);
    }
    MMAX_(sums_clear)(sums, 3);
    if (!w->whole) {
        w->next = w->count = 0;
        MMAX_(collect)(w);
    }
#    define MMAX_STEP(at, left, k, part)                                        \
        const mmax_vec x_ = MMAX_(load_upto)(w->near_top + at, left, masked);   \
        const mmax_vec u_ = MMAX_(below_unit)(x_, &w->units, c);                \
        const mmax_vec v_ = mmax_v_sub(u_, tau);                                \
        const mmax_mask above_ = mmax_v_nle(v_, zero);                          \
        const mmax_vec kept_ = mmax_v_keep(above_, v_);                         \
        lanes_##part[0][k] = mmax_v_add_where(above_, lanes_##part[0][k], one); \
        lanes_##part[1][k] = mmax_v_add(lanes_##part[1][k], kept_);             \
        if (function == MMAX_ENTMAX15) {                                        \
            lanes_##part[2][k] = mmax_v_fma(kept_, kept_, lanes_##part[2][k]);  \
        }
    for (;;) {
        const size_t count = w->count < w->room ? w->count : w->room;
        MMAX_SWEEP_SUM(count, sums, function == MMAX_ENTMAX15 ? 3 : 2, MMAX_STEP);
        if (w->whole || (w->next >= w->n && w->count <= w->room)) {
            break;
        }
        w->count -= count;
        memcpy(w->near_top, w->near_top + count, w->count * sizeof(mmax_real));
        MMAX_(collect)(w);
    }
#    undef MMAX_STEP
    above.count = MMAX_(sum_total)(&sums[0]);
    above.first = MMAX_(sum_total)(&sums[1]);
    above.second = function == MMAX_ENTMAX15 ? MMAX_(sum_total)(&sums[2]) : 0;
    above.excess = (function == MMAX_ENTMAX15 ? above.second : above.first) - 1;
    return above;
}

typedef struct MMAX_(tau) {
    mmax_real high, low; /* tau in two parts */
    mmax_real max;
    int passes;
} MMAX_(tau);

#    define MMAX_TAU_PASSES (MMAX_PASS_DOUBLE ? 74 : 34)

/* Newton's step from t, for entmax15 on | v | - 1: never past tau, as no tangent of a convex function is above it. */
MMAX_INLINE double MMAX_(safe_step)(const MMAX_(above) * a, int function)
{
    const double norm = function == MMAX_SPARSEMAX ? 0 : mmax_f64_sqrt(a->second);
    return function == MMAX_SPARSEMAX ? a->excess / a->count : norm * a->excess / ((norm + 1) * a->first);
}

/* How far tau lies above t, if the entries above t are the support. They are where as many of them were above the t
 * that this one came from: then `exact` is set, but not for a long step of entmax15, in which roundings would count. */
MMAX_INLINE double MMAX_(tau_step)(const MMAX_(above) * a, double t, double last_count, int *exact, int function)
{
    *exact = a->count == last_count;
    if (function == MMAX_ENTMAX15) {
        /* The nearer root of sum (v - step)^2 = 1, unless so many entries have none. */
        const double root = mmax_s_dfma(a->first, a->first, -mmax_product(a->count, a->excess));
        const double step = root > 0 ? a->excess / (a->first + mmax_f64_sqrt(root)) : 0;
        *exact = *exact && root > 0 && step < -t / 64 && step > t / 64;
        if (root > 0) {
            return step;
        }
    }
    return MMAX_(safe_step)(a, function);
}

/* Whether entries just below t, where a step down by some roundings ends, would take a row's sum away from 1. */
MMAX_INLINE int MMAX_(may_be_missed)(const MMAX_(candidates) * w, const MMAX_(above) * a, double step, int function)
{
    const double others = (double)(w->whole ? w->count : w->n) - a->count;
    return function == MMAX_SPARSEMAX &&
           -step * others > (MMAX_PASS_DOUBLE ? 4.440892098500626e-16 : 5.9604644775390625e-08);
}

/* Where steps are slow, bisection takes turns. Returns 0 where the row holds NaN. */
MMAX_INLINE int MMAX_(find_tau)(MMAX_(tau) * tau, MMAX_(candidates) * w, const MMAX_(call) * c, int function)
{
    mmax_real t = w->start, lower = -1, upper = 0;
    double step = 0, lower_step = (double)t - (double)lower, last_count = -1;
    for (tau->passes = 1;; ++tau->passes) {
        const MMAX_(above) a = MMAX_(sums_above)(w, t, c, function);
        mmax_real next;
        int exact;
        if (MMAX_UNLIKELY(!mmax_f64_is_finite(a.first))) {
            return 0;
        }
        step = MMAX_(tau_step)(&a, t, last_count, &exact, function);
        last_count = a.count;
        if (exact && !MMAX_(may_be_missed)(w, &a, step, function)) {
            break;
        }
        if (a.excess < 0) {
            upper = t;
        } else {
            lower = t;
            lower_step = step;
        }
        next = (mmax_real)((double)t + step);
        if (step > 0 && (double)next - (double)t > step) {
            next = mmax_toward_minus_one(next); /* the rounding must not pass the root */
        } else if (a.excess < 0 && next >= t) {
            next = mmax_toward_minus_one(t); /* entries equal to t may belong to the support of what rounds to t */
        }
        if (next <= lower && a.excess > 0) {
            next = mmax_toward_zero(lower); /* the step was less than the rounding of t */
            last_count = -1;
        }
        if (next <= lower || (tau->passes >= 16 && tau->passes % 2 == 0)) {
            const mmax_real from = next > lower ? next : lower, middle = from + (upper - from) / 2;
            if (!(middle > from && middle < upper) || a.excess == 0) {
                next = lower;
            } else {
                next = middle;
                last_count = -1; /* equal counts tell something only after a step from one to the other */
            }
        }
        if (next <= lower || tau->passes >= MMAX_TAU_PASSES) {
            t = lower;
            step = lower_step;
            break;
        }
        t = next;
    }
    tau->high = (mmax_real)((double)t + step);
    tau->low = (mmax_real)(((double)t - (double)tau->high) + step);
    return 1;
}

/* u - tau where positive, else 0 */
MMAX_INLINE mmax_vec MMAX_(above_tau)(mmax_vec x, const MMAX_(tau) * tau, const MMAX_(units) * units,
                                      const MMAX_(call) * c)
{
    const mmax_vec u = MMAX_(below_unit)(x, units, c);
    return mmax_v_sub(mmax_v_sub(u, mmax_v_set(tau->high)), mmax_v_set(tau->low));
}

MMAX_INLINE mmax_vec MMAX_(threshold_weight)(mmax_vec v, int function)
{
    if (function == MMAX_SPARSEMAX) {
        return mmax_v_max(v, mmax_v_zero());
    }
    /* v*v would be below the smallest normal number */
    v = mmax_v_keep(mmax_v_le(mmax_v_set(MMAX_REAL_MIN_ROOT), v), v);
    return mmax_v_product(v, v);
}

MMAX_INLINE mmax_vec MMAX_(weight_above)(mmax_vec x, const MMAX_(tau) * tau, const MMAX_(units) * units,
                                         const MMAX_(call) * c, int function)
{
    return MMAX_(threshold_weight)(MMAX_(above_tau)(x, tau, units, c), function);
}

/* tau - u of one entry where positive, else 0; in double, so that it does not overflow */
MMAX_INLINE double MMAX_(below_tau)(mmax_real x, const MMAX_(tau) * tau, const MMAX_(candidates) * w,
                                    const MMAX_(call) * c, double unit)
{
    if (MMAX_(lane)(MMAX_(above_tau)(mmax_v_set(x), tau, &w->units, c)) > 0) {
        return 0;
    }
    return MMAX_(distance)((double)tau->high + (double)tau->low, -MMAX_(distance)(w->units.max, x, c->scale / unit), 1);
}
/* The same times unit q, which the type may hold where it does not hold the distance. */
MMAX_RARE double MMAX_(far_below_tau)(mmax_real x, double q, const MMAX_(tau) * tau, const MMAX_(candidates) * w,
                                      const MMAX_(call) * c, double unit)
{
    const double tau_part = mmax_product(unit * q, (double)tau->high + (double)tau->low);
    return MMAX_(below_tau)(x, tau, w, c, unit) > 0 ? MMAX_(distance)(w->units.max, x, c->scale * q) + tau_part : 0;
}

MMAX_INLINE MMAX_(units) MMAX_(units_of)(const MMAX_(call) * c, int function)
{
    const mmax_real unit = function == MMAX_SPARSEMAX ? 1 : (mmax_real)0.5;
    const mmax_real high = c->scale_high * unit, low = c->scale_low * unit, size = low < 0 ? -low : low;
    /* From there on u is -inf: the high part is 2^23 times larger. */
    const MMAX_(units) units = {0, high, low, size > 1 ? -MMAX_REAL_MAX / 2 / size : -MMAX_REAL_MAX};
    return units;
}

MMAX_INLINE void MMAX_(set_units)(MMAX_(candidates) * w, mmax_real max, const MMAX_(call) * c, int function)
{
    w->units = MMAX_(units_of)(c, function);
    w->units.max = max;
    w->unit = function == MMAX_SPARSEMAX ? c->scale : c->scale * 0.5;
    /* Halves, so that no difference overflows. At large scales none can, but twice the unit, and halves of subnormal
     * numbers are rounded. */
    w->part = c->after > 1 ? 1 : 0.5;
    w->per_part = c->after > 1 ? w->unit : 2 * w->unit;
}

/* The candidates of one row, or those that the buffer holds. */
MMAX_INLINE int MMAX_(begin_candidates)(MMAX_(candidates) * w, const mmax_real *x, size_t n, const MMAX_(call) * c,
                                        int function)
{
    MMAX_LINE mmax_real heads[MMAX_HEADS];
    mmax_real max;
    double top;
    if (n == 0) {
        return MMAX_IS_EMPTY;
    }
    MMAX_(heads)(heads, &max, x, n);
    if (MMAX_UNLIKELY(!mmax_is_finite(max))) {
        return mmax_is_masked(max) && !MMAX_(has_nan)(x, n) ? MMAX_IS_EMPTY : MMAX_IS_NAN;
    }
    top = (double)max * c->scale;
    if (MMAX_UNLIKELY(!(top <= MMAX_REAL_MAX && top >= -MMAX_REAL_MAX))) {
        return top < 0 && !MMAX_(has_nan)(x, n) ? MMAX_IS_EMPTY : MMAX_IS_NAN;
    }
    w->x = x;
    w->n = n;
    w->next = w->count = 0;
    MMAX_(set_units)(w, max, c, function);
    w->start = -1;
    if (n > MMAX_BUFFER) {
        const MMAX_(above) above = MMAX_(sums_of_few)(heads, MMAX_HEADS, -1, w, function);
        w->start = (mmax_real)(MMAX_(safe_step)(&above, function) - 1);
    }
    {
        /* A little below, so that rounding loses no candidate. */
        const double reach = mmax_product(1.0 / w->unit, 0.001 - (double)w->start);
        const double bound = (double)max - reach;
        const double slack = bound < 0 ? -bound : bound;
        const double low = bound - mmax_product(slack, 1e-6);
        w->bound = low > -MMAX_REAL_MAX ? (mmax_real)low : -MMAX_REAL_MAX;
        if (!(low > -MMAX_REAL_MAX) || c->general) {
            w->bound = MMAX_MASK;
        }
    }
    MMAX_(collect)(w);
    w->whole = w->next >= n && w->count <= w->room;
    return MMAX_IS_NORMAL;
}

/* Candidates and tau of one row. */
MMAX_INLINE int MMAX_(begin_threshold)(MMAX_(candidates) * w, MMAX_(tau) * tau, const mmax_real *x, size_t n,
                                       const MMAX_(call) * c, int function)
{
    const int row = MMAX_(begin_candidates)(w, x, n, c, function);
    return row == MMAX_IS_NORMAL && !MMAX_(find_tau)(tau, w, c, function) ? MMAX_IS_NAN : row;
}

#    define MMAX_EACH_THRESHOLD(name, function)                                                                    \
        MMAX_STATIC int MMAX_(begin_##name)(MMAX_(candidates) * w, MMAX_(tau) * tau, const mmax_real *x, size_t n, \
                                            const MMAX_(call) * c)                                                 \
        {                                                                                                          \
            return MMAX_(begin_threshold)(w, tau, x, n, c, function);                                              \
        }
MMAX_EACH_THRESHOLD(sparsemax, MMAX_SPARSEMAX)
MMAX_EACH_THRESHOLD(entmax15, MMAX_ENTMAX15)
#    define MMAX_BEGIN_THRESHOLD(function, args) \
        ((function) == MMAX_SPARSEMAX ? MMAX_(begin_sparsemax) args : MMAX_(begin_entmax15) args)

/* y = the weights, or `factor` times them */
MMAX_INLINE void MMAX_(threshold_weights)(mmax_real *y, const mmax_real *x, size_t n, const MMAX_(tau) * row_tau,
                                          const MMAX_(units) * row_units, const MMAX_(call) * call, int function,
                                          int scaled, double factor)
{
    /* Copies: for all the compiler knows, a store to y could change what the pointers show. */
    const MMAX_(call) constants = *call, *const c = &constants;
    const MMAX_(units) units = *row_units;
    const MMAX_(tau) tau = *row_tau;
    const mmax_vec times = mmax_v_set((mmax_real)factor), plus_zero = mmax_v_plus_zero();
#    define MMAX_STEP(at, left, k, part)                                        \
        const mmax_vec x_ = MMAX_(load_upto)(x + at, left, mmax_v_zero());      \
        const mmax_vec y_ = MMAX_(weight_above)(x_, &tau, &units, c, function); \
        MMAX_(store_upto)(y + at, left, scaled ? mmax_v_fma(y_, times, plus_zero) : y_);
    MMAX_SWEEP(n, MMAX_STEP);
#    undef MMAX_STEP
}

MMAX_INLINE void MMAX_(threshold_row)(mmax_real *y, const mmax_real *x, size_t n, const MMAX_(call) * c, int function)
{
    MMAX_CANDIDATES(w);
    MMAX_(tau) tau;
    const int row = MMAX_BEGIN_THRESHOLD(function, (&w, &tau, x, n, c));
    if (MMAX_UNLIKELY(row != MMAX_IS_NORMAL)) {
        MMAX_(fill_special)(y, x, n, row == MMAX_IS_NAN, 0);
    } else {
        MMAX_(threshold_weights)(y, x, n, &tau, &w.units, c, function, 0, 1);
    }
}

/* ---- sparsemax, entmax15 of short rows: MMAX_GROUP rows at once, one a lane ----
 * A few entries are sorted, and tau follows from their running sums. Of longer rows these are the candidates: what is
 * within 1 of the maximum or, where that is too much, above tau of the heads. More candidates are searched by Newton's
 * steps from there. u is as the weights have it. Floats are searched as far as their digits go, then in double; tau of
 * doubles is where Newton's steps end, for a few entries one in most cases.
 */
#    if MMAX_PASS_DOUBLE
#        define mmax_v_column(p, at, of_floats) \
            ((of_floats) ? mmax_v_widen((const float *)(p) + (at)) : mmax_v_load((const double *)(p) + (at)))
#        define MMAX_LANE_PASSES 24
#    else
#        define mmax_v_column(p, at, of_floats) ((void)(of_floats), mmax_v_load((const float *)(p) + (at)))
#        define MMAX_LANE_PASSES                8
#    endif
#    define MMAX_ABREAST      2 /* registers at once: one waits for a chain, another works */
#    define MMAX_MOST_ABREAST (MMAX_PASS_DOUBLE && MMAX_REGS <= 2 ? 4 : MMAX_ABREAST) /* as many as a group of floats */

/* A step for each lane: as tau_step, of the entries above t. */
MMAX_INLINE mmax_vec MMAX_(lane_step)(mmax_vec count, mmax_vec first, mmax_vec excess, int function)
{
    if (function == MMAX_SPARSEMAX) {
        return mmax_v_div(excess, count);
    } else {
        const mmax_vec one = mmax_v_set(1), second = mmax_v_add(excess, one);
        const mmax_vec root = mmax_v_sub(mmax_v_product(first, first), mmax_v_product(count, excess));
        const mmax_mask has_root = mmax_v_lt(mmax_v_zero(), root);
        const mmax_vec norm = mmax_v_sqrt(mmax_v_select(has_root, root, second));
        return mmax_v_div(mmax_v_select(has_root, excess, mmax_v_mul(norm, excess)),
                          mmax_v_select(has_root, mmax_v_add(first, norm), mmax_v_mul(mmax_v_add(norm, one), first)));
    }
}

/* tau of `abreast` registers of lanes, `apart` from each other, from `start` and n columns u, `stride` apart; 1 where it
 * was not found. Entries that are no candidates add 0. With `rests` tau is in two parts. Returns the number of steps.
 * A step ends on tau if it has the right support: sparsemax must know that it passed no u; for entmax15 those that a
 * step of relative size d passed count d^2. Floats leave the last step to the search in double; of doubles the last one
 * must be short, or the roundings of v, which are as large as v was before it, would count. Sums begin at -1, so that a
 * small excess is not lost beside 1; of doubles what a term has above 2^-40 is summed exactly, `fine` is the rest. */
MMAX_INLINE int MMAX_(taus)(mmax_real *taus, mmax_real *rests, const void *start, const void *u, size_t n,
                            size_t abreast, size_t stride, size_t apart, int function, int of_floats)
{
    const int exact = MMAX_PASS_DOUBLE && function == MMAX_SPARSEMAX;
    const double relative = !MMAX_PASS_DOUBLE ? 0.0009765625 /* 2^-10 */
                            : of_floats ? (exact ? 9.313225746154785e-10 /* 2^-30 */ : 7.62939453125e-06 /* 2^-17 */)
                                        : (exact ? MMAX_REAL_EPSILON / 2 : 3.725290298461914e-09 /* 2^-28 */);
    const mmax_vec zero = mmax_v_zero(), one = mmax_v_set(1), minus_one = mmax_v_set(-1);
    const mmax_vec last_step = mmax_v_set((mmax_real)-relative), to_coarse = mmax_v_set(6144); /* whose ULP is 2^-40 */
    mmax_vec t[MMAX_MOST_ABREAST], rest[MMAX_MOST_ABREAST];
    mmax_mask moving[MMAX_MOST_ABREAST];
    unsigned any = 1;
    int pass = 0;
    MMAX_UNROLL for (size_t h = 0; h < abreast; ++h)
    {
        t[h] = mmax_v_column(start, h * apart, of_floats);
        rest[h] = zero;
        moving[h] = mmax_v_lt(t[h], zero);
    }
    for (; any && pass < MMAX_LANE_PASSES; ++pass) {
        mmax_vec count[MMAX_MOST_ABREAST], first[MMAX_MOST_ABREAST], excess[MMAX_MOST_ABREAST], fine[MMAX_MOST_ABREAST];
        mmax_vec closest[MMAX_MOST_ABREAST];
        MMAX_UNROLL for (size_t h = 0; h < abreast; ++h)
        {
            count[h] = first[h] = fine[h] = zero;
            excess[h] = minus_one;
            closest[h] = one;
        }
        for (size_t i = 0; i < n; ++i) {
            MMAX_UNROLL for (size_t h = 0; h < abreast; ++h)
            {
                const mmax_vec above = mmax_v_sub(mmax_v_column(u, i * stride + h * apart, of_floats), t[h]);
                const mmax_vec v = mmax_v_max(above, zero);
                count[h] = mmax_v_add_where(mmax_v_lt(zero, v), count[h], one);
                if (function == MMAX_ENTMAX15) {
                    first[h] = mmax_v_add(first[h], v);
                }
                if (of_floats) {
                    excess[h] = function == MMAX_SPARSEMAX ? mmax_v_add(excess[h], v) : mmax_v_fma(v, v, excess[h]);
                } else {
                    const mmax_vec term = function == MMAX_SPARSEMAX ? v : mmax_v_product(v, v);
                    const mmax_vec coarse = mmax_v_sub(mmax_v_add(term, to_coarse), to_coarse);
                    excess[h] = mmax_v_add(excess[h], coarse);
                    fine[h] = mmax_v_add(fine[h], mmax_v_sub(term, coarse));
                }
                if (exact) {
                    closest[h] = mmax_v_min(mmax_v_abs(above), closest[h]);
                }
            }
        }
        any = 0;
        MMAX_UNROLL for (size_t h = 0; h < abreast; ++h)
        {
            const mmax_vec step = MMAX_(lane_step)(count[h], first[h], mmax_v_add(excess[h], fine[h]), function);
            const mmax_vec size = mmax_v_abs(step), next = mmax_v_add(t[h], step);
            rest[h] = mmax_v_select(moving[h], mmax_v_add(mmax_v_sub(t[h], next), step), rest[h]);
            t[h] = mmax_v_select(moving[h], next, t[h]);
            moving[h] = mmax_m_and(moving[h], mmax_v_lt(mmax_v_mul(t[h], last_step), size));
            if (exact) {
                mmax_mask unsure = mmax_v_le(closest[h], size);
                if (!of_floats) {
                    unsure = mmax_m_or(unsure, mmax_v_lt(mmax_v_mul(t[h], mmax_v_set((mmax_real)-0.0625)), size));
                }
                moving[h] = mmax_m_and(moving[h], unsure);
            }
            any |= mmax_m_bits(moving[h]);
        }
    }
    MMAX_UNROLL for (size_t h = 0; h < abreast; ++h)
    {
        mmax_v_store(taus + h * apart, MMAX_PASS_DOUBLE ? mmax_v_select(moving[h], one, t[h]) : t[h]);
        if (rests) {
            mmax_v_store(rests + h * apart, rest[h]);
        }
    }
    return pass;
}

/* tau of each lane from n <= 32 columns u, the largest first. Of the first k entries alone, sparsemax has
 * (sum of u - 1) / k where all of them are in the support: the largest of these is tau of all. For entmax15, entry k is
 * in the support where the sum of (u_i - u_k)^2 of those before it is below 1. Where there is NaN it may be anything,
 * or 1. */
MMAX_INLINE void MMAX_(sorted_taus)(mmax_real *taus, const void *u, size_t n, size_t abreast, size_t stride,
                                    size_t apart, int function, int of_floats)
{
    const mmax_vec zero = mmax_v_zero(), one = mmax_v_set(1), minus_one = mmax_v_set(-1), minus_two = mmax_v_set(-2);
    /* Sums: for sparsemax, of all u, less 1; for entmax15, over the support, of -2 u and u^2. share: 1 over its size */
    mmax_vec tau[MMAX_MOST_ABREAST], first[MMAX_MOST_ABREAST], second[MMAX_MOST_ABREAST], share[MMAX_MOST_ABREAST];
    MMAX_UNROLL for (size_t h = 0; h < abreast; ++h)
    {
        tau[h] = minus_one;
        first[h] = function == MMAX_SPARSEMAX ? minus_one : zero;
        second[h] = share[h] = zero;
    }
    for (size_t i = 0; i < n; ++i) {
        const mmax_vec inverse = mmax_v_set((mmax_real)mmax_inverse_f64[i]), before = mmax_v_set((mmax_real)i);
        MMAX_UNROLL for (size_t h = 0; h < abreast; ++h)
        {
            const mmax_vec u_i = mmax_v_column(u, i * stride + h * apart, of_floats);
            if (function == MMAX_SPARSEMAX) {
                first[h] = mmax_v_add(first[h], u_i);
                tau[h] = mmax_v_max(tau[h], mmax_v_mul(first[h], inverse));
            } else {
                const mmax_vec others = mmax_v_fma(mmax_v_fma(before, u_i, first[h]), u_i, second[h]);
                const mmax_mask above = mmax_v_lt(others, one);
                first[h] = mmax_v_fma_where(above, u_i, minus_two, first[h]);
                second[h] = mmax_v_fma_where(above, u_i, u_i, second[h]);
                share[h] = mmax_v_select(above, inverse, share[h]);
            }
        }
    }
    MMAX_UNROLL for (size_t h = 0; h < abreast; ++h)
    {
        if (function == MMAX_ENTMAX15) {
            /* the smaller root of t^2 - 2 mean t + (squares - 1) share */
            const mmax_vec mean = mmax_v_mul(mmax_v_mul(mmax_v_set((mmax_real)-0.5), share[h]), first[h]);
            const mmax_vec others = mmax_v_mul(share[h], mmax_v_sub(one, second[h]));
            tau[h] = mmax_v_sub(mean, mmax_v_sqrt(mmax_v_fma(mean, mean, others)));
        }
        mmax_v_store(taus + h * apart, mmax_v_select(mmax_v_le(tau[h], zero), tau[h], one));
    }
}

/* In each lane the largest of at most MMAX_SORTED columns comes first, by Batcher's networks: merge exchange for up to
 * sixteen, where the first columns' part of the network sorts them, and a bitonic merge for more. */
#    define MMAX_EXCHANGE(part, which, apart)                             \
        MMAX_UNROLL for (size_t i = 0; i < 16; ++i)                       \
        {                                                                 \
            if (i + (apart) < n && (i & (part)) == which) {               \
                const mmax_vec larger = mmax_v_max(u[i], u[i + (apart)]); \
                u[i + (apart)] = mmax_v_min(u[i], u[i + (apart)]);        \
                u[i] = larger;                                            \
            }                                                             \
        }
MMAX_INLINE void MMAX_(sort_some)(mmax_real *columns, size_t lanes, int bitonic, size_t n)
{
    mmax_vec u[16];
    MMAX_UNROLL for (size_t i = 0; i < 16; ++i) { u[i] = i < n ? mmax_v_load(columns + i * lanes) : mmax_v_zero(); }
    if (bitonic) {
        MMAX_EXCHANGE(8, 0, 8)
        MMAX_EXCHANGE(4, 0, 4)
        MMAX_EXCHANGE(2, 0, 2)
        MMAX_EXCHANGE(1, 0, 1)
    } else {
        MMAX_EXCHANGE(8, 0, 8)
        MMAX_EXCHANGE(4, 0, 4)
        MMAX_EXCHANGE(4, 4, 4)
        MMAX_EXCHANGE(2, 0, 2)
        MMAX_EXCHANGE(2, 2, 6)
        MMAX_EXCHANGE(2, 2, 2)
        MMAX_EXCHANGE(1, 0, 1)
        MMAX_EXCHANGE(1, 1, 7)
        MMAX_EXCHANGE(1, 1, 3)
        MMAX_EXCHANGE(1, 1, 1)
    }
    MMAX_UNROLL for (size_t i = 0; i < 16; ++i)
    {
        if (i < n) {
            mmax_v_store(columns + i * lanes, u[i]);
        }
    }
}
#    undef MMAX_EXCHANGE
MMAX_INLINE void MMAX_(sort_sixteen)(mmax_real *columns, size_t count, size_t lanes, int bitonic)
{
    if (count <= 8) {
        MMAX_(sort_some)(columns, lanes, bitonic, 8);
    } else if (count <= 12) {
        MMAX_(sort_some)(columns, lanes, bitonic, 12);
    } else {
        MMAX_(sort_some)(columns, lanes, bitonic, 16);
    }
}
MMAX_STATIC void MMAX_(sort_columns)(mmax_real *columns, size_t count, size_t lanes)
{
    for (size_t at = 0; at < count; at += 16) {
        MMAX_(sort_sixteen)(columns + at * lanes, count - at, lanes, 0);
    }
    if (count > 16) {
        for (size_t i = 32 - count; i < 16; ++i) {
            mmax_real *const high = columns + i * lanes, *const low = columns + (31 - i) * lanes;
            const mmax_vec a = mmax_v_load(high), b = mmax_v_load(low);
            mmax_v_store(high, mmax_v_max(a, b));
            mmax_v_store(low, mmax_v_min(a, b));
        }
        for (size_t at = 0; at < count; at += 16) {
            MMAX_(sort_sixteen)(columns + at * lanes, count - at, lanes, 1);
        }
    }
}

/* Of all lanes; a register that has none beside it is computed twice. `_floats` are of the float instance's columns. */
#    define MMAX_EACH_LANE(call)                                            \
        for (size_t at = 0; at < lanes;) {                                  \
            const size_t apart = lanes - at > MMAX_WIDTH ? MMAX_WIDTH : 0;  \
            const int most = of_floats && MMAX_MOST_ABREAST > MMAX_ABREAST; \
            if (most && lanes - at >= MMAX_MOST_ABREAST * MMAX_WIDTH) {     \
                call(MMAX_MOST_ABREAST);                                    \
                at += MMAX_MOST_ABREAST * MMAX_WIDTH;                       \
            } else {                                                        \
                call(MMAX_ABREAST);                                         \
                at += MMAX_ABREAST * MMAX_WIDTH;                            \
            }                                                               \
        }
#    define MMAX_NEWTON(abreast)                                                                                      \
        (void)MMAX_(taus)(taus + at, rests ? rests + at : NULL, start + at, u + at, n, abreast, stride, apart, which, \
                          of_floats)
#    define MMAX_FROM_SORTED(abreast) MMAX_(sorted_taus)(taus + at, u + at, n, abreast, stride, apart, which, of_floats)
#    define MMAX_INSTANCE(name, function, real, are_floats)                                                           \
        MMAX_STATIC void MMAX_(newton_##name)(mmax_real * taus, mmax_real * rests, const real *start, const real *u,  \
                                              size_t n, size_t stride, size_t lanes)                                  \
        {                                                                                                             \
            const int which = function, of_floats = are_floats;                                                       \
            MMAX_EACH_LANE(MMAX_NEWTON)                                                                               \
        }                                                                                                             \
        MMAX_STATIC void MMAX_(sorted_##name)(mmax_real * taus, const real *u, size_t n, size_t stride, size_t lanes) \
        {                                                                                                             \
            const int which = function, of_floats = are_floats;                                                       \
            MMAX_EACH_LANE(MMAX_FROM_SORTED)                                                                          \
        }
MMAX_INSTANCE(sparsemax, MMAX_SPARSEMAX, mmax_real, !MMAX_PASS_DOUBLE)
MMAX_INSTANCE(entmax15, MMAX_ENTMAX15, mmax_real, !MMAX_PASS_DOUBLE)
#    if MMAX_PASS_DOUBLE
MMAX_INSTANCE(sparsemax_floats, MMAX_SPARSEMAX, float, 1)
MMAX_INSTANCE(entmax15_floats, MMAX_ENTMAX15, float, 1)
#    endif
#    undef MMAX_INSTANCE
#    define MMAX_TAUS(function, search, args) \
        ((function) == MMAX_SPARSEMAX ? MMAX_(search##_sparsemax) args : MMAX_(search##_entmax15) args)
#    define MMAX_TAUS_OF_FLOATS(function, search, args)                           \
        ((function) == MMAX_SPARSEMAX ? MMAX_F64_(search##_sparsemax_floats) args \
                                      : MMAX_F64_(search##_entmax15_floats) args)
#    define MMAX_GROUP      (MMAX_ABREAST * MMAX_WIDTH)
#    define MMAX_GROUP_COLS 1024                          /* longer rows go by themselves, */
#    define MMAX_GROUP_MOST (MMAX_PASS_DOUBLE ? 64 : 128) /* and rows with more candidates */

typedef struct MMAX_(lanes) {
    size_t rows, n[MMAX_GROUP];
    size_t lanes; /* of the registers that hold rows; what is left of the last one is the first row again */
    const mmax_real *from[MMAX_GROUP]; /* what is searched of a row: all, its heads, its candidates */
    size_t count[MMAX_GROUP], most;
    int even;  /* whether these are equal */
    int heads; /* groups to come that ask the heads at once: within 1 of the maximum there were too many */
    MMAX_(units) units;
    MMAX_LINE mmax_real u[MMAX_GROUP_MOST * MMAX_GROUP]; /* columns: first of x */
    MMAX_LINE mmax_real kept[MMAX_GROUP][MMAX_GROUP_MOST + MMAX_PAIR], heads_of[MMAX_GROUP][MMAX_HEADS];
    MMAX_LINE mmax_real max[MMAX_GROUP];
    MMAX_LINE mmax_real bound[MMAX_GROUP];                 /* of the candidates */
    MMAX_LINE mmax_real start[MMAX_GROUP];                 /* tau is not below it */
    MMAX_LINE mmax_real high[MMAX_GROUP], low[MMAX_GROUP]; /* tau in two parts */
    mmax_mask bad[MMAX_ABREAST];                           /* rows that are not finite */
    unsigned alone[MMAX_ABREAST];                          /* rows that must go by themselves */
} MMAX_(lanes);

/* Columns `at` and following of MMAX_WIDTH rows that have count[r] entries; the others are -inf. `even`: all have as
 * many, and more than `at`. */
MMAX_INLINE void MMAX_(transpose)(mmax_real *u, const mmax_real *const *rows, const size_t *count, size_t at, int even)
{
    const mmax_vec masked = mmax_v_set(MMAX_MASK);
    mmax_vec block[MMAX_WIDTH];
    if (even) {
        const ptrdiff_t left = count[0] - at < MMAX_WIDTH ? (ptrdiff_t)(count[0] - at) : MMAX_WIDTH;
        MMAX_UNROLL for (int r = 0; r < MMAX_WIDTH; ++r) { block[r] = MMAX_(load_last)(rows[r] + at, left, masked); }
    } else {
        MMAX_UNROLL for (int r = 0; r < MMAX_WIDTH; ++r)
        {
            block[r] =
                MMAX_(load_upto)(rows[r] + (count[r] > at ? at : 0), (ptrdiff_t)count[r] - (ptrdiff_t)at, masked);
        }
    }
#    if defined(mmax_v_zip_low)
    MMAX_(turn_square)(block);
    MMAX_UNROLL for (int r = 0; r < MMAX_WIDTH; ++r) { mmax_v_store(u + r * MMAX_GROUP, block[r]); }
#    else
    for (int r = 0; r < MMAX_WIDTH; ++r) {
        mmax_real lanes[MMAX_WIDTH];
        mmax_v_store(lanes, block[r]);
        for (int i = 0; i < MMAX_WIDTH; ++i) {
            u[i * MMAX_GROUP + r] = lanes[i];
        }
    }
#    endif
}

/* Whether an entry of a column u may be in the support of its row: where u <= -1, no rounding lets it in. */
MMAX_INLINE int MMAX_(is_needed)(const mmax_real *column, size_t lanes)
{
    const mmax_vec outside = mmax_v_set((mmax_real)-1.001);
    mmax_mask inside = mmax_v_lt(outside, mmax_v_load(column));
    for (size_t r = MMAX_WIDTH; r < lanes; r += MMAX_WIDTH) {
        inside = mmax_m_or(inside, mmax_v_lt(outside, mmax_v_load(column + r)));
    }
    return mmax_m_bits(inside) != 0;
}

/* u, the largest of the first columns first. With `first`, all of the rows' columns are sorted: they give the maxima,
 * and w->most is how many of them may be needed. */
MMAX_STATIC void MMAX_(begin_lanes)(MMAX_(lanes) * w, int first)
{
    const size_t most = w->most, sorted = most < MMAX_SORTED ? most : MMAX_SORTED;
    const size_t columns = most < MMAX_SORTED ? (most + 7) / 8 * 8 : most; /* as the networks have them */
    if (w->rows == 1) {
        /* in every lane */
        for (size_t at = 0; at < columns; ++at) {
            mmax_v_store(w->u + at * MMAX_GROUP, mmax_v_set(at < w->count[0] ? w->from[0][at] : MMAX_MASK));
        }
    } else {
        for (size_t at = 0; at < columns; at += MMAX_WIDTH) {
            for (size_t r = 0; r < w->lanes; r += MMAX_WIDTH) {
                MMAX_(transpose)(w->u + at * MMAX_GROUP + r, w->from + r, w->count + r, at, w->even && at < most);
            }
        }
    }
    for (size_t h = 0; h < w->lanes / MMAX_WIDTH; ++h) {
        mmax_real *const u = w->u + h * MMAX_WIDTH;
        mmax_mask bad = mmax_m_none();
        mmax_vec max;
        for (size_t i = 0; i < most; ++i) {
            bad = mmax_m_or(bad, mmax_v_nle(mmax_v_load(u + i * MMAX_GROUP), mmax_v_set(MMAX_REAL_MAX)));
        }
        w->bad[h] = bad;
        MMAX_(sort_columns)(u, sorted, MMAX_GROUP);
        max = mmax_v_load(first ? u : w->max + h * MMAX_WIDTH);
        mmax_v_store(w->max + h * MMAX_WIDTH, max);
        for (size_t i = 0; i < most; ++i) {
            const mmax_vec below = mmax_v_sub(mmax_v_load(u + i * MMAX_GROUP), max);
            /* Any u <= -1 is as good. */
            mmax_v_store(u + i * MMAX_GROUP, mmax_v_max(mmax_v_set(-2), MMAX_(in_units)(below, &w->units)));
        }
    }
    if (first) {
        size_t needed = 4;
        while (needed < most && MMAX_(is_needed)(w->u + needed * MMAX_GROUP, w->lanes)) {
            needed += 4;
        }
        w->most = needed < most ? needed : most;
    }
}

/* The first row once more in lanes without a row. */
MMAX_INLINE void MMAX_(fill_lanes)(MMAX_(lanes) * w)
{
    for (size_t r = w->rows; r < w->lanes; ++r) {
        w->from[r] = w->from[0];
        w->count[r] = w->count[0];
    }
}

/* Of each row what is above its bound, that of w->start: `room` entries at most. Rows with more count 0 and have no
 * maximum; with `all` the first of them ends it. Returns whether there was none. */
MMAX_STATIC int MMAX_(collect_lanes)(MMAX_(lanes) * w, const mmax_real *x, size_t x_stride, size_t room, int all)
{
    /* of 1 in units, and so much more that no rounding loses a candidate */
    const mmax_vec reach = mmax_v_set(1 / w->units.high), margin = mmax_v_set((mmax_real)0.001),
                   slack = mmax_v_set((mmax_real)1e-6);
    for (size_t r = 0; r < w->lanes; r += MMAX_WIDTH) {
        const mmax_vec max = mmax_v_load(w->max + r);
        const mmax_vec below = mmax_v_product(mmax_v_sub(mmax_v_load(w->start + r), margin), reach);
        const mmax_vec bound = mmax_v_add(below, max);
        const mmax_vec low = mmax_v_sub(bound, mmax_v_product(mmax_v_abs(bound), slack));
        /* NaN, of a row without a finite maximum, would let through what is past the row's end. */
        mmax_v_store(w->bound + r, mmax_v_select(mmax_v_ne(low, low), mmax_v_set(MMAX_MASK), low));
    }
    w->most = 0;
    w->even = 0;
    for (size_t r = 0; r < w->rows; ++r) {
        size_t next = 0;
        size_t count = MMAX_(append_above)(w->kept[r], 0, room, x + r * x_stride, w->n[r], &next, w->bound[r]);
        if (next < w->n[r] || count > room) {
            if (all) {
                return 0;
            }
            count = 0;
            w->max[r] = MMAX_MASK;
        }
        w->from[r] = w->kept[r];
        w->count[r] = count;
        w->most = count > w->most ? count : w->most;
    }
    MMAX_(fill_lanes)(w);
    return 1;
}

/* tau of the lanes whose columns are w->u, w->most of them; of more than MMAX_SORTED entries w->start is not above it,
 * and neither is tau of the first of them. */
MMAX_INLINE void MMAX_(tau_of_lanes)(MMAX_(lanes) * w, int function)
{
    const size_t most = w->most, sorted = most < MMAX_SORTED ? most : MMAX_SORTED;
#    if MMAX_PASS_DOUBLE
    MMAX_TAUS(function, sorted, (w->start, w->u, sorted, MMAX_GROUP, w->lanes));
    for (size_t r = 0; r < w->lanes; r += MMAX_WIDTH) { /* no search where a row is not finite */
        const mmax_vec start = mmax_v_load(w->start + r);
        mmax_v_store(w->start + r, mmax_v_select(w->bad[r / MMAX_WIDTH], mmax_v_set(1), start));
    }
    MMAX_TAUS(function, newton, (w->high, w->low, w->start, w->u, most, MMAX_GROUP, w->lanes));
#    else
    MMAX_LINE double exact[MMAX_GROUP], searched[MMAX_GROUP];
    MMAX_TAUS_OF_FLOATS(function, sorted, (exact, w->u, sorted, MMAX_GROUP, w->lanes));
    if (most > MMAX_SORTED) {
        for (size_t r = 0; r < w->lanes; ++r) {
            w->start[r] = w->count[r] > MMAX_SORTED ? w->start[r] : 0;
        }
        MMAX_TAUS(function, newton, (w->start, NULL, w->start, w->u, most, MMAX_GROUP, w->lanes));
        MMAX_TAUS_OF_FLOATS(function, newton, (searched, NULL, w->start, w->u, most, MMAX_GROUP, w->lanes));
        for (size_t r = 0; r < w->lanes; ++r) {
            exact[r] = w->count[r] > MMAX_SORTED ? searched[r] : exact[r];
        }
    }
    for (size_t r = 0; r < w->lanes; r += MMAX_WIDTH) {
        for (size_t i = r; i < r + MMAX_WIDTH; ++i) {
            /* Rounded to float's digits by the bits: a conversion and its way back, two lanes at a time, gcc 12 drops. */
            const uint64_t bits = mmax_f64_bits(exact[i]), odd = bits >> 29 & 1;
            const double high = mmax_f64_from_bits((bits + (0xfffffff + odd)) & 0xffffffffe0000000);
            w->high[i] = (float)high;
            w->low[i] = (float)(exact[i] - high);
        }
    }
#    endif
}

/* tau of w->rows rows of w->n[r] entries; those that are not finite, or whose tau was not found, are `alone`. With
 * `collects` every row's candidates are collected, else where a row has more than MMAX_SORTED entries, or the rows are
 * few and have more than the smallest network sorts. */
MMAX_INLINE void MMAX_(search_lanes)(MMAX_(lanes) * w, const mmax_real *x, size_t x_stride, const MMAX_(call) * c,
                                     int collects, int function)
{
    const int few = w->rows <= MMAX_GROUP / 4;
    size_t entries = 0;
    int wide;
    w->units = MMAX_(units_of)(c, function);
    w->lanes = (w->rows + MMAX_WIDTH - 1) / MMAX_WIDTH * MMAX_WIDTH;
    w->most = 1; /* a column of masks where all rows are empty: their maxima */
    for (size_t r = 0; r < w->rows; ++r) {
        w->from[r] = x + r * x_stride;
        w->count[r] = w->n[r];
        w->most = w->n[r] > w->most ? w->n[r] : w->most;
        entries += w->n[r];
    }
    MMAX_(fill_lanes)(w);
    w->even = entries == w->most * w->rows;
    wide = collects || w->most > (few ? 8 : MMAX_SORTED);
    if (wide) {
        for (size_t r = 0; r < w->rows; ++r) {
            MMAX_(heads)(w->heads_of[r], &w->max[r], w->from[r], w->n[r]);
        }
        for (size_t r = 0; r < w->lanes; ++r) {
            w->start[r] = -1;
            w->max[r] = w->max[r < w->rows ? r : 0];
        }
        if (w->heads > 0 || !MMAX_(collect_lanes)(w, x, x_stride, MMAX_SORTED, 1)) {
            w->heads = w->heads > 0 ? w->heads - 1 : 8;
            for (size_t r = 0; r < w->rows; ++r) {
                w->from[r] = w->heads_of[r];
                w->count[r] = MMAX_HEADS;
            }
            MMAX_(fill_lanes)(w);
            w->most = MMAX_HEADS;
            w->even = 1;
            MMAX_(begin_lanes)(w, 0);
            MMAX_TAUS(function, sorted, (w->start, w->u, MMAX_HEADS, MMAX_GROUP, w->lanes));
            (void)MMAX_(collect_lanes)(w, x, x_stride, MMAX_GROUP_MOST, 0);
        }
    }
    MMAX_(begin_lanes)(w, !wide);
    MMAX_(tau_of_lanes)(w, function);
    for (size_t h = 0; h < w->lanes / MMAX_WIDTH; ++h) {
        const mmax_vec top = mmax_v_abs(mmax_v_mul(mmax_v_load(w->max + h * MMAX_WIDTH), mmax_v_set(c->scale_high)));
        const mmax_mask beyond = mmax_m_or(w->bad[h], mmax_v_nle(top, mmax_v_set(MMAX_REAL_MAX / 2)));
        w->alone[h] = mmax_m_bits(mmax_m_or(beyond, mmax_v_nle(mmax_v_load(w->high + h * MMAX_WIDTH), mmax_v_zero())));
    }
}
#    define MMAX_INSTANCE(name, function)                                                            \
        MMAX_STATIC void MMAX_(search_##name)(MMAX_(lanes) * w, const mmax_real *x, size_t x_stride, \
                                              const MMAX_(call) * c, int collects)                   \
        {                                                                                            \
            MMAX_(search_lanes)(w, x, x_stride, c, collects, function);                              \
        }
MMAX_INSTANCE(sparsemax, MMAX_SPARSEMAX)
MMAX_INSTANCE(entmax15, MMAX_ENTMAX15)
#    undef MMAX_INSTANCE

/* The lanes' rows from `row` on: as many as may go together, or none. */
MMAX_INLINE size_t MMAX_(group_of)(MMAX_(lanes) * w, const mmax_shape *s, size_t row, const MMAX_(call) * c)
{
    const size_t left = s->rows - row, rows = left < MMAX_GROUP ? left : MMAX_GROUP;
    w->rows = c->general || (!s->lengths && s->cols > MMAX_GROUP_COLS) ? 0 : rows;
    for (size_t r = 0; r < MMAX_GROUP; ++r) {
        w->n[r] = s->cols;
    }
    for (size_t r = 0; s->lengths && r < w->rows; ++r) {
        w->n[r] = s->lengths[row + r];
        if (w->n[r] > MMAX_GROUP_COLS) {
            w->rows = r;
        }
    }
    return w->rows;
}
#    define MMAX_IS_ALONE(w, r) (((w)->alone[(r) / MMAX_WIDTH] >> (r) % MMAX_WIDTH & 1) != 0)
MMAX_INLINE MMAX_(tau) MMAX_(lane_tau)(const MMAX_(lanes) * w, size_t r)
{
    const MMAX_(tau) tau = {w->high[r], w->low[r], w->max[r], 0};
    return tau;
}

MMAX_INLINE void MMAX_(threshold_group)(mmax_real *y, const mmax_real *x, MMAX_(lanes) * w, const mmax_shape *s,
                                        const MMAX_(call) * c, int function)
{
    MMAX_(units) units;
    MMAX_(call) plain = *c;
    unsigned any_alone = 0;
    plain.general = 0; /* which spares the loops a question */
    MMAX_(fetch_two_lines)(x, s->x_stride, w->rows, MMAX_GROUP * s->x_stride);
    MMAX_TAUS(function, search, (w, x, s->x_stride, c, 0));
    units = w->units;
    for (size_t h = 0; h < w->lanes / MMAX_WIDTH; ++h) {
        any_alone |= w->alone[h];
    }
    for (size_t r = 0; r < w->rows; ++r, x += s->x_stride, y += s->y_stride) {
        const size_t n = w->n[r];
        if (MMAX_UNLIKELY(any_alone != 0) && MMAX_IS_ALONE(w, r)) {
            MMAX_(threshold_row)(y, x, n, c, function);
        } else {
            const MMAX_(tau) tau = MMAX_(lane_tau)(w, r);
            units.max = tau.max;
            if (n <= MMAX_WIDTH) { /* not 0: such a row is alone */
                const mmax_vec logits = MMAX_(load_last)(x, (ptrdiff_t)n, mmax_v_zero());
                MMAX_(store_upto)(y, (ptrdiff_t)n, MMAX_(weight_above)(logits, &tau, &units, &plain, function));
            } else {
                MMAX_(threshold_weights)(y, x, n, &tau, &units, &plain, function, 0, 1);
            }
        }
    }
}

MMAX_INLINE void MMAX_(threshold)(mmax_real *y, const mmax_real *x, const mmax_shape *s, int function)
{
    MMAX_(call) c;
    MMAX_(lanes) w;
    w.heads = 0;
    MMAX_(prepare)(&c, s->scale, NULL, 0);
    for (size_t row = 0, rows; row < s->rows; row += rows) {
        mmax_real *const y_row = y + row * s->y_stride;
        const mmax_real *const x_row = x + row * s->x_stride;
        rows = MMAX_(group_of)(&w, s, row, &c);
        if (rows > 0) {
            MMAX_(threshold_group)(y_row, x_row, &w, s, &c, function);
        } else {
            rows = 1;
            MMAX_(threshold_row)(y_row, x_row, s->lengths ? s->lengths[row] : s->cols, &c, function);
        }
        for (size_t r = 0; s->lengths && r < rows; ++r) {
            const size_t length = s->lengths[row + r];
            MMAX_(fill)(y_row + r * s->y_stride + length, s->cols - length, 0);
        }
    }
}

MMAX_STATIC void MMAX_(sparsemax)(mmax_real *y, const mmax_real *x, const mmax_shape *s)
{
    MMAX_(threshold)(y, x, s, MMAX_SPARSEMAX);
}
MMAX_STATIC void MMAX_(entmax15)(mmax_real *y, const mmax_real *x, const mmax_shape *s)
{
    MMAX_(threshold)(y, x, s, MMAX_ENTMAX15);
}

/* Fenchel-Young loss without cancellation. With p the weights, g = max(tau - u, 0):
 *   sparsemax   1/2 sum (p - q)^2 + sum q g
 *   entmax15    2/3 sum (sqrt q - sqrt p)^2 (2 sqrt q + sqrt p) + 2 sum q g
 * Adds the terms of the entries from..to, whose q is `q`, and writes their gradient p - q times `factor`. In a `wide`
 * row g is beyond the type, or its sum. */
MMAX_INLINE double MMAX_(threshold_loss_part)(mmax_real *gx, const mmax_real *x, size_t from, size_t to, double q,
                                              double factor, int wide, const MMAX_(tau) * tau,
                                              const MMAX_(candidates) * w, const MMAX_(call) * c, int function)
{
    const mmax_vec masked = mmax_v_set(MMAX_MASK), zero = mmax_v_plus_zero();
    const mmax_vec q_all = mmax_v_set((mmax_real)q), root = mmax_v_set((mmax_real)mmax_f64_sqrt(q));
    const double unit = function == MMAX_SPARSEMAX ? 1 : 2;
    MMAX_(sum) sums[2];
    double below, wide_sum = 0, lost = 0;
    for (size_t i = from; wide && i < to; ++i) { /* gx may be x */
        if (!mmax_is_masked(x[i])) {
            const double term = MMAX_(far_below_tau)(x[i], q, tau, w, c, unit);
            MMAX_ADD_EXACTLY(wide_sum, lost, term);
        }
    }
    MMAX_(sums_clear)(sums, 2);
#    define MMAX_STEP(at, left, k, part)                                                                  \
        const mmax_vec logit = MMAX_(load_upto)(x + from + at, left, masked);                             \
        const mmax_mask active = mmax_v_nle(logit, masked);                                               \
        const mmax_vec v = mmax_v_keep(active, MMAX_(above_tau)(logit, tau, &w->units, c));               \
        const mmax_vec p = MMAX_(threshold_weight)(v, function);                                          \
        const mmax_vec g = mmax_v_keep(active, mmax_v_sub(p, q_all));                                     \
        mmax_vec term;                                                                                    \
        if (function == MMAX_SPARSEMAX) {                                                                 \
            term = mmax_v_product(mmax_v_mul(g, mmax_v_set((mmax_real)0.5)), g);                          \
        } else {                                                                                          \
            const mmax_vec r = mmax_v_max(v, zero), difference = mmax_v_sub(root, r);                     \
            term = mmax_v_mul(mmax_v_mul(difference, difference), mmax_v_add(mmax_v_add(root, root), r)); \
            term = mmax_v_keep(active, mmax_v_product(term, mmax_v_set((mmax_real)(2.0 / 3))));           \
        }                                                                                                 \
        lanes_##part[0][k] = mmax_v_add(lanes_##part[0][k], term);                                        \
        lanes_##part[1][k] = mmax_v_add(lanes_##part[1][k], mmax_v_max(mmax_v_sub(zero, v), zero));       \
        if (gx) {                                                                                         \
            const mmax_vec product = mmax_v_product(g, mmax_v_set((mmax_real)factor));                    \
            const mmax_vec gradient = mmax_v_add(product, zero); /* no -0 */                              \
            MMAX_(store_upto)(gx + from + at, left, gradient);                                            \
        }
    MMAX_SWEEP_SUM(to - from, sums, 2, MMAX_STEP);
#    undef MMAX_STEP
    below = q > 0 && !wide ? MMAX_(sum_total)(&sums[1]) : 0;
    return mmax_s_dfma(unit * q, below, MMAX_(sum_total)(&sums[0])) + mmax_exact_total(wide_sum, lost);
}

/* 1 + u of one entry, with all its digits also where u is near -1. */
MMAX_INLINE double MMAX_(above_bottom)(mmax_real x, const MMAX_(candidates) * w)
{
    const double top = (double)w->units.max * w->part, other = (double)x * w->part, below = top - other,
                 back = below - top;
    const double rest = (top - (below - back)) - (other + back);
    return MMAX_(product_rest)(w->per_part, below) - mmax_product(w->per_part, rest);
}

/* How many entries have v = 1 + u - t > 0, and the sums of v, v^2 and v^3, without one entry x = left_out. */
MMAX_STATIC void MMAX_(sums_above_bottom)(double *sums, const mmax_real *x, size_t n, double t, mmax_real left_out,
                                          const MMAX_(candidates) * w)
{
    int found = 0;
    sums[0] = sums[1] = sums[2] = sums[3] = 0;
    for (size_t at = 0; at < n;) {
        const size_t end = n - at < MMAX_CHUNK ? n : at + MMAX_CHUNK;
        double part[4] = {0, 0, 0, 0};
        for (; at < end; ++at) {
            const double above = MMAX_(above_bottom)(x[at], w) - t;
            const int skipped = (x[at] == left_out) & !found, kept = (above > 0) & !skipped;
            const double v = mmax_only_if(kept, above);
            found |= skipped;
            part[0] += kept;
            part[1] += v;
            part[2] = mmax_s_dfma(v, v, part[2]);
            part[3] = mmax_s_dfma(v * v, v, part[3]);
        }
        for (int k = 0; k < 4; ++k) {
            sums[k] += part[k];
        }
    }
}

/* The loss without label smoothing from the entries x, all candidates among them, in double, for a target that has
 * most of the mass. In terms of 1 + u and t = 1 + tau, which then are small, no digit of a small loss is lost: without
 * one entry at the maximum, whose weight follows from the sum of 1, both sides of the equation for t are as small. */
MMAX_INLINE double MMAX_(small_loss)(const mmax_real *x, size_t n, mmax_real x_target, const MMAX_(tau) * tau,
                                     const MMAX_(candidates) * w, int function)
{
    double t = (1 + (double)tau->high) + (double)tau->low, sums[4], missing, size = 1;
    /* What a Newton step leaves is of the size of its square. */
    for (int step = 0; step < 4 && size > t * 9.313225746154785e-10 /* 2^-30 */; ++step) {
        const double former = t;
        MMAX_(sums_above_bottom)(sums, x, n, t, w->units.max, w);
        t += function == MMAX_SPARSEMAX ? (sums[1] - t) / (sums[0] + 1)
                                        : (sums[2] - mmax_product(t, 2 - t)) / (2 * (sums[1] + (1 - t)));
        size = t > former ? t - former : former - t;
    }
    if (size > 0 || x_target != w->units.max) {
        MMAX_(sums_above_bottom)(sums, x, n, t, x_target, w);
    }
    missing = MMAX_(distance)(w->units.max, x_target, w->unit) + t; /* 1 - v of the target */
    if (function == MMAX_SPARSEMAX) {
        return 0.5 * mmax_s_dfma(missing, missing, sums[2]);
    }
    return (2.0 / 3) * mmax_s_dfma(missing * missing, 3 - missing, sums[3]);
}

/* The loss without label smoothing less the target's part, which is entry `target` or none: of so few candidates in
 * index order, so that entries outside the support, of which there may be more or less, change no bit. */
MMAX_INLINE double MMAX_(few_loss)(const mmax_real *x, size_t n, size_t target, const MMAX_(tau) * tau,
                                   const MMAX_(candidates) * w, int function)
{
    const double t = (double)tau->high + (double)tau->low;
    double sum = 0;
    for (size_t i = 0; i < n; ++i) {
        const double above = MMAX_(above_double)(x[i], t, w);
        const double v = mmax_only_if((above > 0) & (i != target), above);
        sum = mmax_s_dfma(function == MMAX_SPARSEMAX ? v : v * v, v, sum);
    }
    return sum * (function == MMAX_SPARSEMAX ? 0.5 : 2.0 / 3);
}

/* How many entries are active, and the lowest of them, in a row whose largest is `top`. */
MMAX_STATIC double MMAX_(count_active)(mmax_real *lowest, const mmax_real *x, size_t n, mmax_real top)
{
    const mmax_vec masked = mmax_v_set(MMAX_MASK), one = mmax_v_set((mmax_real)1), highest = mmax_v_set(top);
    mmax_vec low[MMAX_REGS];
    MMAX_(sum) active[1];
    MMAX_EACH(k) { low[k] = highest; }
    MMAX_(sums_clear)(active, 1);
#    define MMAX_STEP(at, left, k, part)                                     \
        const mmax_vec logit = MMAX_(load_upto)(x + at, left, masked);       \
        const mmax_mask active_ = mmax_v_nle(logit, masked);                 \
        low[k] = mmax_v_min(mmax_v_select(active_, logit, highest), low[k]); \
        lanes_##part[0][k] = mmax_v_add_where(active_, lanes_##part[0][k], one);
    MMAX_SWEEP_SUM(n, active, 1, MMAX_STEP);
#    undef MMAX_STEP
    MMAX_EACH(k) { low[0] = mmax_v_min(low[k], low[0]); }
    *lowest = mmax_v_hmin(low[0]);
    return MMAX_(sum_total)(active);
}

/* Loss and gradient of a row whose tau and candidates are known. */
MMAX_INLINE void MMAX_(threshold_loss_end)(double *loss, mmax_real *gx, const mmax_real *x, size_t n, size_t index,
                                           const mmax_targets *t, const MMAX_(candidates) * w, const MMAX_(tau) * tau,
                                           const MMAX_(call) * c, int function)
{
    const double factor = c->gx_scale, unit = function == MMAX_SPARSEMAX ? 1 : 2;
    const int smooth = t->label_smoothing > 0, masked = mmax_is_masked(x[index]);
    const mmax_real x_target = x[index];
    const double bound = MMAX_REAL_MAX * MMAX_TWO_TO_MINUS_64;
    mmax_real v, low = w->units.max;
    const double active = smooth ? MMAX_(count_active)(&low, x, n, low) : 0;
    const int wide = smooth && MMAX_(distance)(w->units.max, low, 1 + c->scale) > bound;
    double q = smooth ? t->label_smoothing / active : 0, q_target, p, r, value = 0;
    q_target = 1 - t->label_smoothing + q;
    v = MMAX_(lane)(MMAX_(above_tau)(mmax_v_set(x_target), tau, &w->units, c));
    p = MMAX_(lane)(MMAX_(threshold_weight)(mmax_v_set(v), function));
    r = v > 0 ? (double)v : 0;
    if (smooth || loss) {
        /* Without smoothing only the support has a part in the loss. */
        const int few = !smooth && w->whole;
        const mmax_real *const entries = few ? w->near_top : x;
        const size_t count = few ? w->count : n;
        size_t at = few ? 0 : index;
        while (few && at < count && entries[at] != x_target) {
            ++at;
        }
        if (!smooth && r > 0.5) {
            value = MMAX_(small_loss)(entries, count, x_target, tau, w, function);
        } else {
            const double root = mmax_f64_sqrt(q_target), beyond = MMAX_(below_tau)(x_target, tau, w, c, unit);
            if (few && count <= MMAX_SORTED) {
                value = MMAX_(few_loss)(entries, count, at, tau, w, function);
            } else {
                /* The others: before and after the target, or in one sweep where it can be masked. */
                const int once = count <= MMAX_SHORT;
                MMAX_LINE mmax_real others[MMAX_SHORT + 1]; /* the target may be none of few */
                if (once) {
                    memcpy(others, entries, count * sizeof(mmax_real));
                    others[at] = MMAX_MASK;
                }
                for (size_t from = 0, to = once ? count : at; from < count; from = to + 1, to = count) {
                    value = value + MMAX_(threshold_loss_part)(smooth ? gx : NULL, once ? others : entries, from, to, q,
                                                               factor, wide, tau, w, c, function);
                }
            }
            if (function == MMAX_SPARSEMAX) {
                value = mmax_s_dfma(0.5 * (p - q_target), p - q_target, value);
            } else {
                value = mmax_s_dfma((2.0 / 3) * (root - r) * (root - r), 2 * root + r, value);
            }
            value = MMAX_UNLIKELY(wide) ? value + MMAX_(far_below_tau)(x_target, q_target, tau, w, c, unit)
                                        : mmax_s_dfma(unit * q_target, beyond, value);
        }
        if (loss) {
            *loss = mmax_f64_from_bits(masked ? 0x7ff0000000000000 : mmax_limited_bits(mmax_f64_bits(value)));
        }
    }
    if (gx && !smooth) {
        MMAX_(threshold_weights)(gx, x, n, tau, &w->units, c, function, 1, factor);
    }
    if (gx) {
        gx[index] = masked ? 0 : (mmax_real)((p - q_target) * factor);
    }
}

typedef struct MMAX_(lane_found) {
    MMAX_(tau) tau;
    mmax_real *near_top;
    size_t count;
    int alone;
} MMAX_(lane_found);

/* Row `row` of a batch, or nothing where it has no target. Of rows that went together, `lane` is what their search has
 * found of it. */
MMAX_INLINE void MMAX_(threshold_loss_row)(const MMAX_(batch) * b, size_t row, const MMAX_(lane_found) * lane,
                                           const MMAX_(call) * c, int function)
{
    const mmax_real *const x = b->x + row * b->x_stride;
    mmax_real *const gx = b->y ? b->y + row * b->y_stride : NULL;
    double *const loss = b->loss ? b->loss + row : NULL;
    const size_t n = MMAX_(length_of)(b, row);
    const int32_t index = b->index[row];
    size_t written = 0;
    if (index >= 0) {
        MMAX_CANDIDATES(w);
        MMAX_(tau) tau;
        int state = MMAX_IS_NORMAL;
        if (lane && !lane->alone) {
            MMAX_(set_units)(&w, lane->tau.max, c, function);
            w.near_top = lane->near_top;
            w.count = lane->count;
            w.whole = 1;
            tau = lane->tau;
        } else {
            state = MMAX_BEGIN_THRESHOLD(function, (&w, &tau, x, n, c));
        }
        if (MMAX_UNLIKELY(state != MMAX_IS_NORMAL)) {
            if (loss) {
                *loss = mmax_f64_from_bits(state == MMAX_IS_NAN ? 0x7ff8000000000000 : 0x7ff0000000000000);
            }
            if (gx) {
                MMAX_(fill_special)(gx, x, n, state == MMAX_IS_NAN, 0);
            }
        } else {
            MMAX_(threshold_loss_end)(loss, gx, x, n, (size_t)index, b->targets, &w, &tau, c, function);
        }
        written = n;
    } else if (loss) {
        *loss = 0;
    }
    if (gx) {
        MMAX_(fill)(gx + written, b->cols - written, 0);
    }
}

MMAX_INLINE void MMAX_(threshold_losses)(const MMAX_(batch) * b, const mmax_shape *s, const MMAX_(call) * c,
                                         int function)
{
    MMAX_(lanes) lanes;
    lanes.heads = 0;
    for (size_t row = 0, rows; row < b->rows; row += rows) {
        rows = MMAX_(group_of)(&lanes, s, row, c);
        for (size_t r = 0; r < rows; ++r) {
            lanes.n[r] = b->index[row + r] >= 0 ? lanes.n[r] : 0; /* others are not read */
        }
        if (rows > 0) {
            MMAX_TAUS(function, search, (&lanes, b->x + row * b->x_stride, b->x_stride, c, 1));
        }
        for (size_t r = 0; r < rows; ++r) {
            const MMAX_(lane_found)
                lane = {MMAX_(lane_tau)(&lanes, r), lanes.kept[r], lanes.count[r], MMAX_IS_ALONE(&lanes, r)};
            MMAX_(threshold_loss_row)(b, row + r, &lane, c, function);
        }
        if (rows == 0) {
            rows = 1;
            MMAX_(threshold_loss_row)(b, row, NULL, c, function);
        }
    }
}
MMAX_STATIC void MMAX_(sparsemax_loss)(double *loss, mmax_real *gx, const mmax_real *x, const mmax_targets *targets,
                                       const mmax_shape *s)
{
    MMAX_(call) c;
    const MMAX_(batch) b = MMAX_(loss_batch_of)(loss, gx, x, targets, s);
    MMAX_(prepare)(&c, s->scale, NULL, 0);
    MMAX_(prepare_gradient)(&c, targets);
    MMAX_(threshold_losses)(&b, s, &c, MMAX_SPARSEMAX);
    MMAX_(finish_gradient)(&b, &c);
}
MMAX_STATIC void MMAX_(entmax15_loss)(double *loss, mmax_real *gx, const mmax_real *x, const mmax_targets *targets,
                                      const mmax_shape *s)
{
    MMAX_(call) c;
    const MMAX_(batch) b = MMAX_(loss_batch_of)(loss, gx, x, targets, s);
    MMAX_(prepare)(&c, s->scale, NULL, 0);
    MMAX_(prepare_gradient)(&c, targets);
    MMAX_(threshold_losses)(&b, s, &c, MMAX_ENTMAX15);
    MMAX_(finish_gradient)(&b, &c);
}

/* ---- tanhmax: 2 sinh(s) / sum 2 cosh(s_k) ---- */

/* The origin for m = max |x| of the active entries. Its kind is MMAX_ROW_CLAMP where m is of a usual size, else
 * MMAX_ROW_GENERAL; its range is infinite where entries are masked, among which there is no NaN then. */
MMAX_STATIC int MMAX_(begin_tanhmax)(MMAX_(origin) * o, int *careful, mmax_real *y, const mmax_real *x, size_t n,
                                     const MMAX_(call) * c)
{
    const mmax_vec masked = mmax_v_set(MMAX_MASK), largest = mmax_v_set(MMAX_REAL_MAX);
    const mmax_vec lowest = mmax_v_set((mmax_real)-1);
    mmax_vec max_block_[MMAX_EXTREMES], max_rest_[1];
    MMAX_(extremes) e = {0, 0, 0, 0};
    double top;
    *careful = 0;
    (void)y;
    MMAX_EACH_OF(k, MMAX_EXTREMES) { max_block_[k] = lowest; }
    max_rest_[0] = lowest;
#    define MMAX_STEP(at, left, k, part) \
        max_##part[k] = mmax_v_max(mmax_v_abs(MMAX_(load_upto)(x + at, left, mmax_v_zero())), max_##part[k]);
    if (n > 0) {
        MMAX_SWEEP_BY(MMAX_EXTREMES, n, 1, MMAX_STEP);
    }
#    undef MMAX_STEP
    MMAX_EACH_OF(k, MMAX_EXTREMES) { max_rest_[0] = mmax_v_max(max_block_[k], max_rest_[0]); }
    e.max = mmax_v_hmax(max_rest_[0]);
    top = (double)e.max * c->scale;
    if (e.max > 0 && mmax_is_finite(e.max) && top <= MMAX_REAL_MAX) {
        *o = MMAX_(origin_of)(&e, n, c);
        o->kind = o->kind == MMAX_ROW_GENERAL ? MMAX_ROW_GENERAL : MMAX_ROW_CLAMP;
    } else {
        o->kind = MMAX_ROW_GENERAL;
    }
    if (o->kind == MMAX_ROW_GENERAL) {
        mmax_mask bad = mmax_m_none();
        MMAX_EACH_OF(k, MMAX_EXTREMES) { max_block_[k] = lowest; }
        max_rest_[0] = lowest;
#    define MMAX_STEP(at, left, k, part)                                                           \
        const mmax_vec logit = MMAX_(load_upto)(x + at, left, masked);                             \
        const mmax_vec size = mmax_v_select(mmax_v_nle(logit, masked), mmax_v_abs(logit), lowest); \
        bad = mmax_m_or(bad, mmax_v_nle(size, largest));                                           \
        max_##part[k] = mmax_v_max(size, max_##part[k]);
        MMAX_SWEEP_BY(MMAX_EXTREMES, n, 1, MMAX_STEP);
#    undef MMAX_STEP
        if (mmax_m_bits(bad) != 0) {
            return MMAX_IS_NAN;
        }
        MMAX_EACH_OF(k, MMAX_EXTREMES) { max_rest_[0] = mmax_v_max(max_block_[k], max_rest_[0]); }
        e.max = mmax_v_hmax(max_rest_[0]);
        if (e.max < 0) {
            return MMAX_IS_EMPTY;
        }
        top = (double)e.max * c->scale;
        if (!(top <= MMAX_REAL_MAX)) {
            return MMAX_IS_NAN;
        }
        e.min = MMAX_MASK;
        *o = MMAX_(origin_of)(&e, n, c);
    }
    return MMAX_IS_NORMAL;
}

/* The kind of a pass says whether there are masks. */
MMAX_STATIC void MMAX_(exp_tanhmax)(MMAX_(sum) * sums, const MMAX_(row) * rows, size_t count, const MMAX_(call) * c)
{
    for (size_t i = 0; i < count; ++i) {
        const MMAX_(origin) *const o = rows[i].relative_to;
        if (!MMAX_FAST || o->kind == MMAX_ROW_GENERAL) {
            MMAX_(exp_rows)(&sums[i], &rows[i], 1, c, MMAX_TANHMAX, MMAX_ROW_GENERAL);
        } else if (mmax_is_finite(o->range)) {
            MMAX_(exp_rows)(&sums[i], &rows[i], 1, c, MMAX_TANHMAX, MMAX_ROW_PLAIN);
        } else {
            MMAX_(exp_rows)(&sums[i], &rows[i], 1, c, MMAX_TANHMAX, MMAX_ROW_CLAMP);
        }
    }
}
static const MMAX_(passes) MMAX_(tanhmax_passes) = {MMAX_TANHMAX, MMAX_(begin_tanhmax), MMAX_(exp_tanhmax)};
MMAX_STATIC void MMAX_(tanhmax_rows)(const MMAX_(batch) * b, const MMAX_(call) * c)
{
    MMAX_(normalise_rows)(b, c, &MMAX_(tanhmax_passes), MMAX_BEGIN_ROWS(tanhmax), 0);
}
MMAX_LONE_WEIGHTS(tanhmax, MMAX_TANHMAX)
MMAX_STATIC void MMAX_(tanhmax)(mmax_real *y, const mmax_real *x, const mmax_shape *s)
{
    MMAX_(call) c;
    const MMAX_(batch) b = MMAX_(batch_of)(y, x, s->y_stride, s);
    MMAX_(prepare)(&c, s->scale, NULL, 0);
    c.clears = 1;
    MMAX_(normalise)(&b, &c, MMAX_IN_GROUPS(tanhmax, tanhmax, signed_weights_of_group, MMAX_MOST_ALONE));
}

/* ---- seglu: sigma alone ---- */
MMAX_STATIC void MMAX_(seglu)(mmax_real *y, const mmax_real *x, const mmax_multimax_params *p, const mmax_shape *s)
{
    MMAX_(call) c;
    const mmax_vec masked = mmax_v_set(MMAX_MASK), nan = mmax_v_set(MMAX_QUIET_NAN);
    const mmax_vec largest = mmax_v_set(MMAX_REAL_MAX), smallest = mmax_v_set(MMAX_REAL_MIN);
    MMAX_(prepare)(&c, s->scale, p, 0);
#    define MMAX_STEP(at, left, k, part)                                                \
        const mmax_vec x_ = MMAX_(load_upto)(x + row * s->x_stride + at, left, masked); \
        mmax_vec y_ = MMAX_(score)(x_, &c, order, 1);                                   \
        const mmax_mask bad_ = mmax_m_or(mmax_v_nle(x_, largest), mmax_v_ne(y_, y_));   \
        y_ = mmax_v_keep(mmax_v_le(smallest, mmax_v_abs(y_)), y_);                      \
        y_ = mmax_v_select(bad_, nan, y_);                                              \
        MMAX_(store_upto)(y + row * s->y_stride + at, left, y_);
    if (p->order == 1) {
        const int order = MMAX_MULTIMAX1;
        MMAX_EACH_ROW(s, y, s->y_stride, 0, MMAX_SWEEP(n, MMAX_STEP));
    } else {
        const int order = MMAX_MULTIMAX2;
        MMAX_EACH_ROW(s, y, s->y_stride, 0, MMAX_SWEEP(n, MMAX_STEP));
    }
#    undef MMAX_STEP
}

MMAX_INLINE void MMAX_(seglu_backward_row)(mmax_real *gx, MMAX_(slopes) * slopes, const mmax_real *gy,
                                           const mmax_real *x, size_t n, int order, int params)
{
    const mmax_vec masked = mmax_v_set(MMAX_MASK), largest = mmax_v_set(MMAX_REAL_MAX);
    const MMAX_(kinks) kinks = slopes->kinks;
    const mmax_vec nan = mmax_v_set(MMAX_QUIET_NAN);
    mmax_mask any_bad = mmax_m_none();
#    define MMAX_STEP(at, left, k, part)                                                                            \
        const mmax_vec x_ = MMAX_(load_upto)(x + at, left, masked);                                                 \
        const mmax_mask active_ = mmax_v_nle(x_, masked);                                                           \
        const mmax_vec gy_ = MMAX_(load_active)(gy + at, left, masked, active_);                                    \
        const mmax_mask bad_ = mmax_m_or(mmax_v_nle(gy_, largest), mmax_m_and(active_, mmax_v_nle(x_, largest)));   \
        const mmax_vec g_ = mmax_v_select(bad_, nan, gy_);                                                          \
        any_bad = mmax_m_or(any_bad, bad_);                                                                         \
        mmax_vec s_ = mmax_v_mul(x_, mmax_v_set(kinks.input_scale));                                                \
        s_ = mmax_v_max(mmax_v_set(-MMAX_REAL_MAX), mmax_v_min(s_, largest));                                       \
        s_ = mmax_v_keep(active_, mmax_v_select(mmax_v_nle(x_, largest), largest, s_)); /* NaN: the same on NEON */ \
        s_ = MMAX_(slopes_step)(&kinks, lanes_##part, k, g_, mmax_v_mul(g_, mmax_v_set(kinks.scale)), s_, order,    \
                                params, 1);                                                                         \
        if (gx) {                                                                                                   \
            MMAX_(store_upto)(gx + at, left, mmax_v_select(mmax_v_ne(s_, s_), nan, s_));                            \
        }
    MMAX_SWEEP_ON(n, slopes, 4 * order, MMAX_STEP);
#    undef MMAX_STEP
    slopes->any_nan |= mmax_m_bits(any_bad) != 0;
}

MMAX_STATIC void MMAX_(seglu_backward)(mmax_real *gx, mmax_multimax_grads *gp, const mmax_real *gy, const mmax_real *x,
                                       const mmax_multimax_params *p, const mmax_shape *s)
{
    MMAX_(call) c;
    MMAX_(slopes) slopes;
    MMAX_(prepare)(&c, s->scale, p, 0);
    MMAX_(slopes_begin)(&slopes, p, &c, c.scale);
    for (size_t row = 0; row < s->rows; ++row) {
        const size_t n = s->lengths ? s->lengths[row] : s->cols;
        const mmax_real *const gy_row = gy + row * s->gy_stride, *const x_row = x + row * s->x_stride;
        mmax_real *const gx_row = gx ? gx + row * s->gx_stride : NULL;
        if (p->order == 2) {
            MMAX_(seglu_backward_row)(gx_row, &slopes, gy_row, x_row, n, 2, gp != NULL);
        } else {
            MMAX_(seglu_backward_row)(gx_row, &slopes, gy_row, x_row, n, 1, gp != NULL);
        }
        if (gx) {
            MMAX_(fill)(gx_row + n, s->cols - n, 0);
        }
    }
    if (gp) {
        MMAX_(slopes_end)(&slopes, gp, p, 1);
    }
}

/* ---- backward of the functions whose gradient is w (gy - mean of gy under w) ----
 * softmax, evsoftmax, multimax: w = y. sparsemax: w = [y != 0] / support. entmax15: w = sqrt(y) / sum sqrt(y).
 * log_softmax, log_multimax: gy - exp(y) sum gy.
 */

/* The origin for exponentials of numbers that are logarithms of weights. */
MMAX_INLINE MMAX_(origin) MMAX_(log_origin)(void)
{
    MMAX_(origin) o;
    o.rounder = MMAX_ROUND_TO_EIGHTH + MMAX_BIAS;
    o.lowest = (mmax_real)((MMAX_LOWEST - MMAX_BIAS) * 0.69314718055994531);
    o.shift = o.max = o.mean = 0;
    o.before = 1;
    o.peak = 0;
    o.range = MMAX_REAL_MAX;
    o.kind = MMAX_ROW_CLAMP;
    return o;
}

MMAX_STATIC void MMAX_(backward_nan)(mmax_real *gx, const mmax_real *y, const mmax_real *x, size_t n, int logs)
{
    for (size_t i = 0; i < n; ++i) {
        const int zero = logs ? mmax_is_masked(y[i]) : y[i] == 0 && !mmax_is_nan(y[i]);
        gx[i] = mmax_from_bits(zero || (x && mmax_is_masked(x[i])) ? 0 : MMAX_NAN_BITS);
    }
}

MMAX_INLINE mmax_vec MMAX_(weight)(mmax_vec y, mmax_mask active, const MMAX_(origin) * o, const MMAX_(call) * c,
                                   int function)
{
    if (function == MMAX_BACK_SPARSEMAX) {
        return mmax_v_keep(active, mmax_v_set((mmax_real)1));
    }
    if (function == MMAX_BACK_ENTMAX15) {
        return mmax_v_sqrt(y);
    }
    if (function == MMAX_BACK_LOG) {
        const mmax_vec e = MMAX_(exp)(MMAX_(centre)(y, o, c, MMAX_ROW_CLAMP), mmax_v_set(o->rounder), c);
        const mmax_real factor = (mmax_real)(MMAX_TWO_TO_MINUS_64 / MMAX_POW2_FACTOR);
        const mmax_vec smallest = mmax_v_set(MMAX_REAL_MIN / factor);
        return mmax_v_mul(mmax_v_keep(mmax_v_le(smallest, e), e), mmax_v_set(factor));
    }
    return y;
}

/* A row on its way through the two passes. */
typedef struct MMAX_(back) {
    mmax_real *gx;
    const mmax_real *gy, *y, *x;
    size_t n;
    int roots;        /* entmax15: without `careful`, the first pass leaves sqrt(y) in gx for the second, at a store */
    mmax_real shrunk; /* rows that need care: gy is multiplied by it first, 1 or a power of two */
} MMAX_(back);

/* Without `careful`, for w = y and w = sqrt(y): masks need no attention as long as every number is finite, since y = 0
 * there, and no score is above the safe bound; with `masks`, but for those where y = 0. */
#    define MMAX_ACTIVE(y_, x_) \
        (order ? mmax_m_and(mmax_v_ne(y_, inactive), mmax_v_nle(x_, masked)) : mmax_v_ne(y_, inactive))
#    define MMAX_LOADS(r, at, left)                                                                             \
        const mmax_vec weight_ = MMAX_(load_upto)((r)->y + at, left, inactive);                                 \
        const mmax_vec logit_ = order ? MMAX_(load_upto)((r)->x + at, left, careful ? masked : zero) : weight_; \
        const mmax_mask active_ = careful ? MMAX_ACTIVE(weight_, logit_)                                        \
                                  : masks ? mmax_v_ne(weight_, zero)                                            \
                                          : mmax_m_none();                                                      \
        const mmax_vec y_ = careful && order ? mmax_v_select(active_, weight_, inactive) : weight_;             \
        const mmax_vec x_ = masks ? mmax_v_keep(active_, logit_) : logit_;                                      \
        const mmax_vec whole_ = careful ? MMAX_(load_active)((r)->gy + at, left, masked, active_)               \
                                        : MMAX_(load_upto)((r)->gy + at, left, zero);                           \
        const mmax_vec gy_ = shrinks ? mmax_v_mul(whole_, mmax_v_set((r)->shrunk)) : whole_;                    \
        const mmax_vec w_ = !careful && function == MMAX_BACK_ENTMAX15 && rooted                                \
                                ? MMAX_(load_upto)((r)->gx + at, left, zero)                                    \
                                : MMAX_(weight)(y_, active_, &o, c, function);
/* What a gradient g of scores, multiplied by `shrunk`, is multiplied by before a small scale has its part, so that it is
 * not subnormal in between: all that it lacks, or 1 where it might overflow. */
MMAX_INLINE mmax_vec MMAX_(whole_before)(mmax_vec g, mmax_real shrunk, const MMAX_(call) * c)
{
    const mmax_vec scaled = mmax_v_mul(mmax_v_abs(g), mmax_v_set((mmax_real)c->scale)), one = mmax_v_set(1);
    const mmax_mask is_small = mmax_v_lt(scaled, mmax_v_set((mmax_real)MMAX_TWO_TO_64));
    return c->scale < 1 ? mmax_v_select(is_small, mmax_v_set(1 / shrunk), one) : one;
}
/* The second pass: g_, what goes to gx; + 0, so that it is no -0 where y = 0. Of SoftMax's products only the last may be
 * subnormal, which takes long as a factor: a scale below 1 multiplies gy - mean, one above it w. Where gy is shrunk,
 * gx is until scale and slope have had their part: the gradient of a score may overflow where that of a logit does not. */
#    define MMAX_GRADIENT(r, at, left, mean, lanes, k)                                                      \
        MMAX_LOADS(r, at, left)                                                                             \
        mmax_vec g_ = function == MMAX_BACK_LOG ? mmax_v_fma(w_, mmax_v_sub(zero, mean), gy_)               \
                                                : mmax_v_product(w_, mmax_v_sub(gy_, mean));                \
        if (masks || (careful && (order || function == MMAX_BACK_LOG))) {                                   \
            g_ = mmax_v_keep(active_, g_);                                                                  \
        }                                                                                                   \
        if (order) {                                                                                        \
            const mmax_vec whole_before_ = shrinks ? MMAX_(whole_before)(g_, (r)->shrunk, c) : zero;        \
            const mmax_vec scaled_ = mmax_v_mul(g_, shrinks ? mmax_v_mul(scale, whole_before_) : scale);    \
            mmax_vec s_ = mmax_v_mul(x_, mmax_v_set(kinks.input_scale));                                    \
            g_ = shrinks ? mmax_v_mul(g_, mmax_v_set(1 / (r)->shrunk)) : g_;                                \
            if (careful) {                                                                                  \
                s_ = mmax_v_keep(active_, mmax_v_max(mmax_v_set(-MMAX_REAL_MAX), mmax_v_min(s_, largest))); \
            }                                                                                               \
            g_ = MMAX_(slopes_step)(&kinks, lanes, k, g_, scaled_, s_, order, params, careful);             \
            g_ = shrinks ? mmax_v_mul(g_, mmax_v_div(mmax_v_set(1 / (r)->shrunk), whole_before_)) : g_;     \
        } else if (function == MMAX_BACK_SOFTMAX) {                                                         \
            const mmax_vec one_ = mmax_v_set((mmax_real)1), down_ = mmax_v_min(one_, scale);                \
            const mmax_vec less_ = mmax_v_product(mmax_v_sub(zero, down_), mean);                           \
            g_ = mmax_v_fma(mmax_v_mul(w_, mmax_v_max(one_, scale)), mmax_v_fma(gy_, down_, less_), zero);  \
        } else {                                                                                            \
            g_ = mmax_v_fma(g_, scale, zero);                                                               \
        }

/* No score is above the safe bound where the sum of the logits' squares is at most this. */
MMAX_INLINE mmax_vec MMAX_(safe_squares)(const MMAX_(call) * c)
{
    /* No infinite bound: with -ffast-math clang would not compare with it. */
    const double safe = (double)c->safe * 0.999;
    const double most = c->scale > safe * MMAX_REAL_MIN_ROOT ? safe / c->scale : 1 / MMAX_REAL_MIN_ROOT;
    return mmax_v_set(most > 0 ? (mmax_real)(most * most) : -1);
}

#    define MMAX_IS_TWO(function) ((function) == MMAX_BACK_SPARSEMAX || (function) == MMAX_BACK_ENTMAX15)
/* The first pass: adds to terms_ w gy and, for sparsemax and entmax15, w. `bad` shows what is in the way of the second
 * pass, but for what an infinite or NaN gy does, which the sums show. */
#    define MMAX_TERMS(r, at, left)                                                     \
        MMAX_LOADS(r, at, left)                                                         \
        if (function == MMAX_BACK_LOG) {                                                \
            terms_[0] = mmax_v_add(terms_[0], gy_);                                     \
            bad = mmax_m_or(bad, mmax_m_and(active_, mmax_v_nle(y_, largest)));         \
        } else {                                                                        \
            terms_[0] = mmax_v_fma(w_, gy_, terms_[0]);                                 \
            if (MMAX_IS_TWO(function)) {                                                \
                terms_[1] = mmax_v_add(terms_[1], w_);                                  \
            }                                                                           \
            if (function == MMAX_BACK_ENTMAX15 && !careful && (r)->roots) {             \
                MMAX_(store_upto)((r)->gx + at, left, w_);                              \
            }                                                                           \
            if (function == MMAX_BACK_SPARSEMAX) {                                      \
                bad = mmax_m_or(bad, mmax_v_nle(y_, largest));                          \
            }                                                                           \
        }                                                                               \
        /* NaN and +inf count without weight, too; -inf is in the way only with one. */ \
        if (order && careful) {                                                         \
            bad = mmax_m_or(bad, mmax_v_nle(logit_, largest));                          \
        } else if (order) {                                                             \
            const mmax_mask there_ = mmax_m_or(active_, mmax_v_nle(logit_, masked));    \
            const mmax_vec size_ = masks ? mmax_v_keep(there_, logit_) : x_;            \
            squares[k_] = mmax_v_fma(size_, size_, squares[k_]);                        \
        }

/* First pass: the sums; of a row of one chunk, `totals` in the digits of the type. Returns whether nothing was bad. */
MMAX_INLINE int MMAX_(back_sums)(MMAX_(sum) * sums, mmax_real *totals, const MMAX_(back) * r, const MMAX_(call) * c,
                                 int function, int order, int careful, int masks)
{
    /* c scales x; the exponentials of the logarithms are of y itself. */
    const mmax_vec masked = mmax_v_set(MMAX_MASK), largest = mmax_v_set(MMAX_REAL_MAX), zero = mmax_v_plus_zero();
    const mmax_vec inactive = function == MMAX_BACK_LOG ? masked : zero;
    const MMAX_(origin) o = MMAX_(log_origin)();
    const int rooted = 0, shrinks = careful;
    mmax_mask bad = mmax_m_none();
    mmax_vec squares[MMAX_REGS]; /* of x: none of them is above their sum */
    MMAX_(sums_clear)(sums, 1 + MMAX_IS_TWO(function));
    MMAX_EACH(k) { squares[k] = zero; }
#    define MMAX_STEP(at, left) MMAX_TERMS(r, at, left)
    MMAX_SWEEP_PAIRS(r->n, sums, 1 + MMAX_IS_TWO(function), totals, MMAX_STEP);
#    undef MMAX_STEP
    if (order && !careful) {
        const mmax_vec bound = MMAX_(safe_squares)(c);
        MMAX_EACH(k) { bad = mmax_m_or(bad, mmax_v_nle(squares[k], bound)); }
    }
    return mmax_m_bits(bad) == 0;
}

/* Second pass; asks for the data of the row `next`, if `fetches` says so. */
MMAX_INLINE void MMAX_(back_gradients)(const MMAX_(back) * of, double row_mean, MMAX_(slopes) * slopes,
                                       const MMAX_(call) * c, int function, int order, int params, int careful,
                                       int masks, int store, int fetches, const MMAX_(back) * next)
{
    /* Copies, which no store to gx can change. */
    const MMAX_(back) row = *of, after = fetches ? *next : row, *const r = &row;
    const mmax_vec masked = mmax_v_set(MMAX_MASK), largest = mmax_v_set(MMAX_REAL_MAX), zero = mmax_v_plus_zero();
    const mmax_vec inactive = function == MMAX_BACK_LOG ? masked : zero;
    const int by_two = careful && !order && c->scale > (double)r->shrunk * MMAX_REAL_MAX; /* factors, each in range */
    const double to_gx = careful && !order && !by_two ? c->scale / (double)r->shrunk : c->scale;
    const mmax_vec more = mmax_v_set(by_two ? 1 / r->shrunk : 1);
    const mmax_vec mean = mmax_v_set((mmax_real)row_mean), scale = mmax_v_set((mmax_real)to_gx);
    const MMAX_(origin) o = MMAX_(log_origin)();
    const int rooted = r->roots, shrinks = careful;
    MMAX_(kinks) kinks;
    if (order) {
        kinks = slopes->kinks;
    }
#    define MMAX_STEP(at, left, k, part)                  \
        MMAX_GRADIENT(r, at, left, mean, lanes_##part, k) \
        if (shrinks && !order) {                          \
            g_ = mmax_v_mul(g_, more);                    \
        }                                                 \
        if (MMAX_TOGETHER && fetches) {                   \
            MMAX_(fetch)(after.gy + at, k);               \
            MMAX_(fetch)(after.y + at, k);                \
            if (order) {                                  \
                MMAX_(fetch)(after.x + at, k);            \
            }                                             \
        }                                                 \
        if (store) {                                      \
            MMAX_(fetch_later)(r->gx + at, k);            \
            MMAX_(store_upto)(r->gx + at, left, g_);      \
        }
    if (params) {
        MMAX_SWEEP_ON(r->n, slopes, 4 * order, MMAX_STEP);
    } else {
        mmax_vec(*const lanes_block_)[MMAX_REGS] = NULL, (*const lanes_rest_)[MMAX_REGS] = NULL;
        MMAX_SWEEP(r->n, MMAX_STEP);
    }
#    undef MMAX_STEP
}

/* Means up to which nothing overflows that comes to a finite gx. */
#    define MMAX_MOST_MEAN (MMAX_REAL_MAX * (mmax_real)MMAX_TWO_TO_MINUS_64)
#    define MMAX_SHRUNK    9.313225746154785e-10 /* 2^-30: a sum of 2^24 numbers is far from MMAX_REAL_MAX */

/* The first pass: the mean of gy under w; for log_softmax, the sum of gy. NaN where that is not finite or where
 * back_sums says so. The mean of a row of one chunk has the digits of the type, unless it overflows there or there is
 * no support. */
MMAX_INLINE double MMAX_(back_mean)(const MMAX_(back) * r, const MMAX_(call) * c, int function, int order, int careful,
                                    int masks)
{
    MMAX_(sum) sums[2];
    mmax_real totals[2] = {0, 0};
    const int good = MMAX_(back_sums)(sums, totals, r, c, function, order, careful, masks);
    double mean, products, weights;
    if (r->n <= MMAX_EXP_CHUNK) {
        if (MMAX_IS_TWO(function)) {
            totals[0] = totals[0] / totals[1];
        }
        if (good && mmax_is_finite(totals[0])) {
            return (double)totals[0];
        }
    }
    products = MMAX_(sum_total)(&sums[0]);
    weights = MMAX_IS_TWO(function) ? MMAX_(sum_total)(&sums[1]) : 0;
    mean = MMAX_(in_range)(weights != 0 ? products / weights : products);
    return good && mmax_f64_is_finite(products) ? mean : mmax_f64_from_bits(0x7ff8000000000000);
}

/* A mean above the bound, or NaN */
#    define MMAX_IS_LARGE(mean) (mmax_f64_is_nan(mean) || (mean) > MMAX_MOST_MEAN || (mean) < -MMAX_MOST_MEAN)

/* Any row. */
MMAX_INLINE void MMAX_(back_row)(MMAX_(back) r, MMAX_(slopes) * slopes, const MMAX_(call) * c, int function, int order,
                                 int params)
{
    double mean;
    r.shrunk = 1;
    mean = MMAX_(back_mean)(&r, c, function, order, 1, 0);
    if (MMAX_IS_LARGE(mean)) {
        r.shrunk = (mmax_real)MMAX_SHRUNK;
        mean = MMAX_(back_mean)(&r, c, function, order, 1, 0);
    }
    if (MMAX_UNLIKELY(mmax_f64_is_nan(mean))) {
        if (r.gx) {
            MMAX_(backward_nan)(r.gx, r.y, order ? r.x : NULL, r.n, function == MMAX_BACK_LOG);
        }
        if (params) {
            slopes->any_nan = 1;
        }
        return;
    }
    MMAX_(back_gradients)(&r, mean, slopes, c, function, order, params, 1, 0, r.gx != NULL, 0, NULL);
}

/* Any row of MultiMax or its logarithm, of either order: the second term of order 1 is 0. */
MMAX_STATIC void MMAX_(back_sigma_row)(MMAX_(back) r, MMAX_(slopes) * slopes, const MMAX_(call) * c, int function,
                                       int params)
{
    if (function == MMAX_BACK_LOG) {
        MMAX_(back_row)(r, slopes, c, MMAX_BACK_LOG, 2, params);
    } else {
        MMAX_(back_row)(r, slopes, c, MMAX_BACK_SOFTMAX, 2, params);
    }
}

/* The second pass over a row of either order that may have masks. */
MMAX_STATIC void MMAX_(back_masked_row)(const MMAX_(back) * r, double mean, MMAX_(slopes) * slopes,
                                        const MMAX_(call) * c, int params)
{
    if (params) {
        MMAX_(back_gradients)(r, mean, slopes, c, MMAX_BACK_SOFTMAX, 2, 1, 0, 1, r->gx != NULL, 0, NULL);
    } else {
        MMAX_(back_gradients)(r, mean, slopes, c, MMAX_BACK_SOFTMAX, 2, 0, 0, 1, 1, 0, NULL);
    }
}

/* back_mean where care is not needed: without `masks` the mean of a row that has some is NaN. Most are at an end, or in
 * every row; *masks says whether this one is taken as one that may have some. */
MMAX_INLINE double MMAX_(usual_mean)(const MMAX_(back) * r, int *masks, const MMAX_(call) * c, int function, int order)
{
    double mean = mmax_f64_from_bits(0x7ff8000000000000);
    if (order && r->n > 0) {
        *masks |= mmax_is_masked(r->x[0]) || mmax_is_masked(r->x[r->n - 1]);
    }
    if (!(order && *masks)) {
        mean = MMAX_(back_mean)(r, c, function, order, 0, 0);
    }
    if (order && mmax_f64_is_nan(mean)) {
        mean = MMAX_(back_mean)(r, c, function, order, 0, 1);
        *masks = !mmax_f64_is_nan(mean);
    }
    return mean;
}

/* The second pass, which asks for the data of `next`, unless that is NULL; without a mean, any row. */
MMAX_INLINE void MMAX_(back_end)(const MMAX_(back) * r, double mean, MMAX_(slopes) * slopes, const MMAX_(call) * c,
                                 int function, int order, int params, int masks, const MMAX_(back) * next)
{
    const int usual = MMAX_FAST && !MMAX_IS_LARGE(mean);
    if (usual && order && masks) {
        MMAX_(back_masked_row)(r, mean, slopes, c, params);
    } else if (usual && params && !r->gx) {
        MMAX_(back_gradients)(r, mean, slopes, c, function, order, params, 0, 0, 0, 0, NULL);
    } else if (usual && MMAX_TOGETHER && next) {
        MMAX_(back_gradients)(r, mean, slopes, c, function, order, params, 0, 0, 1, 1, next);
    } else if (usual) {
        MMAX_(back_gradients)(r, mean, slopes, c, function, order, params, 0, 0, 1, 0, NULL);
    } else if (order) {
        MMAX_(back_sigma_row)(*r, slopes, c, function, params);
    } else {
        MMAX_(back_row)(*r, NULL, c, function, 0, 0);
    }
}

#    define MMAX_INSTANCE(name, order, params)                                                             \
        MMAX_APART void MMAX_(back_end_##name)(const MMAX_(back) * r, double mean, MMAX_(slopes) * slopes, \
                                               const MMAX_(call) * c, int masks, const MMAX_(back) * next) \
        {                                                                                                  \
            MMAX_(back_end)(r, mean, slopes, c, MMAX_BACK_SOFTMAX, order, params, masks, next);            \
        }
MMAX_INSTANCE(multimax1, 1, 0)
MMAX_INSTANCE(multimax2, 2, 0)
MMAX_INSTANCE(multimax1_params, 1, 1)
MMAX_INSTANCE(multimax2_params, 2, 1)
#    undef MMAX_INSTANCE

/* Moves on by some rows. */
MMAX_INLINE void MMAX_(back_skip)(MMAX_(back) * r, const mmax_shape *s, size_t rows)
{
    if (r->gx) {
        r->gx += rows * s->gx_stride;
    }
    r->gy += rows * s->gy_stride;
    r->y += rows * s->y_stride;
    if (r->x) {
        r->x += rows * s->x_stride;
    }
}

#    if MMAX_FAST
/* What rows of one chunk come to: anything, one register, MMAX_PAIR, or some times that. */
#        define MMAX_SHAPE_ANY   0
#        define MMAX_SHAPE_ONE   1
#        define MMAX_SHAPE_PAIR  2
#        define MMAX_SHAPE_PAIRS 3
/* Rows of one chunk and one length, one after another: both passes of a row are so few instructions that the processor
 * works on the next row meanwhile. Returns how many there were before the first that needs care. */
MMAX_INLINE size_t MMAX_(back_short)(const MMAX_(back) * first, size_t rows, MMAX_(slopes) * slopes,
                                     const mmax_shape *s, const MMAX_(call) * c, int function, int order, int params,
                                     int careful, int masks, int shape)
{
    const int one = shape == MMAX_SHAPE_ONE, rest = shape == MMAX_SHAPE_ANY;
    /* Where a row is few instructions or has no other mask, a branch on the mean's bits is sooner than on a mask. */
    const int by_bits = !careful && (one || !order);
    const mmax_vec masked = mmax_v_set(MMAX_MASK), largest = mmax_v_set(MMAX_REAL_MAX), zero = mmax_v_plus_zero();
    const mmax_vec inactive = function == MMAX_BACK_LOG ? masked : zero;
    const mmax_vec scale = mmax_v_set((mmax_real)c->scale), bound = MMAX_(safe_squares)(c);
    const mmax_vec most = mmax_v_set(MMAX_MOST_MEAN);
    const MMAX_(origin) o = MMAX_(log_origin)();
    const int sum_count = 1 + MMAX_IS_TWO(function);
    const size_t n = shape == MMAX_SHAPE_PAIR ? MMAX_PAIR : first->n;
    /* With AVX-512 a row is so few instructions that lines of the second cache are late for it. */
    const int fetches = shape == MMAX_SHAPE_PAIRS && MMAX_LINE_REGISTERS == 1;
    const size_t gx_stride = s->gx_stride, gy_stride = s->gy_stride, y_stride = s->y_stride, x_stride = s->x_stride;
    const int shrinks = 0;
    MMAX_(back) row = *first;
    MMAX_(kinks) kinks;
    size_t done = 0;
    const int call_sums = params && MMAX_CALL_REGS == 1 ? 4 * order : 0;
    mmax_vec lanes_all_[MMAX_MOST_SUMS][MMAX_REGS]; /* gp's: of one register they stay there over all rows */
    MMAX_CALL_LOAD(lanes_all_, slopes, 0, call_sums)
    if (order) {
        kinks = slopes->kinks;
    }
    for (; done < rows; ++done) {
        mmax_vec mean, lanes_[2][MMAX_REGS], squares[MMAX_REGS];
        mmax_mask bad = mmax_m_none();
        int rooted = 0; /* whether gx has the roots */
        MMAX_EACH(k) { squares[k] = zero; }
#        define MMAX_STEP(at, left) MMAX_TERMS(&row, at, left)
        if (one) {
            const int k_ = 0;
            mmax_vec terms_[2] = {zero, zero};
            MMAX_STEP(0, (ptrdiff_t)n)
            lanes_[0][0] = terms_[0];
            lanes_[1][0] = terms_[1];
        } else {
            MMAX_PAIR_LANES(0, n, rest, sum_count, MMAX_STEP)
        }
#        undef MMAX_STEP
        mean = mmax_v_hsum(one ? lanes_[0][0] : MMAX_(halved)(lanes_[0]));
        if (MMAX_IS_TWO(function)) {
            mean = mmax_v_div(mean, mmax_v_hsum(one ? lanes_[1][0] : MMAX_(halved)(lanes_[1])));
        }
        if (!by_bits) {
            bad = mmax_m_or(bad, mmax_v_nle(mmax_v_abs(mean), most));
        } else if (MMAX_UNLIKELY(!mmax_is_within(MMAX_(lane)(mean), MMAX_MOST_MEAN))) {
            break;
        }
        if (order && !careful) {
            bad = mmax_m_or(bad, mmax_v_nle(one ? squares[0] : MMAX_(halved)(squares), bound));
        }
        if (MMAX_UNLIKELY(mmax_m_bits(bad) != 0)) {
            break;
        }
        rooted = row.roots;
#        define MMAX_STEP(at, left, k, part)                     \
            MMAX_GRADIENT(&row, at, left, mean, lanes_##part, k) \
            if (fetches) {                                       \
                MMAX_(fetch_after)(row.gy + at, gy_stride, k);   \
                MMAX_(fetch_after)(row.y + at, y_stride, k);     \
            }                                                    \
            if (!params || row.gx) {                             \
                MMAX_(store_upto)(row.gx + at, left, g_);        \
            }
        if (params && MMAX_CALL_REGS > 1) {
            MMAX_SWEEP_ON(n, slopes, 4 * order, MMAX_STEP);
        } else if (params) {
            if (MMAX_CALL_IS_FULL(slopes, n)) {
                MMAX_CALL_STORE(lanes_all_, slopes, 0, call_sums)
                MMAX_CALL_FLUSH(slopes, 4 * order);
                MMAX_CALL_LOAD(lanes_all_, slopes, 0, call_sums)
            }
            slopes->blocks += MMAX_CALL_BLOCKS_OF(n);
            if (one) {
                MMAX_STEP(0, (ptrdiff_t)n, 0, all_)
            } else {
                MMAX_SWEEP_LANES(0, n, MMAX_CALL_REGS, MMAX_STEP)
            }
        } else {
            mmax_vec(*const lanes_block_)[MMAX_REGS] = NULL, (*const lanes_rest_)[MMAX_REGS] = NULL;
            if (one) {
                MMAX_STEP(0, (ptrdiff_t)n, 0, block_)
            } else {
                MMAX_SWEEP_BY(MMAX_REGS, n, rest, MMAX_STEP);
            }
        }
#        undef MMAX_STEP
        if (!params || row.gx) {
            row.gx += gx_stride;
        }
        row.gy += gy_stride;
        row.y += y_stride;
        if (order) {
            row.x += x_stride;
        }
    }
    MMAX_CALL_STORE(lanes_all_, slopes, 0, call_sums)
    return done;
}
#        define MMAX_INSTANCE(name, function, order, careful, masks)                                                 \
            MMAX_STATIC size_t MMAX_(back_##name)(const MMAX_(back) * r, size_t rows, MMAX_(slopes) * slopes,        \
                                                  const mmax_shape *s, const MMAX_(call) * c)                        \
            {                                                                                                        \
                return s->cols <= MMAX_WIDTH ? MMAX_(back_short)(r, rows, slopes, s, c, function, order, 0, careful, \
                                                                 masks, MMAX_SHAPE_ONE)                              \
                                             : MMAX_(back_short)(r, rows, slopes, s, c, function, order, 0, careful, \
                                                                 masks, MMAX_SHAPE_ANY);                             \
            }
MMAX_INSTANCE(softmax, MMAX_BACK_SOFTMAX, 0, 0, 0)
MMAX_INSTANCE(sparsemax, MMAX_BACK_SPARSEMAX, 0, 1, 0)
MMAX_INSTANCE(entmax15, MMAX_BACK_ENTMAX15, 0, 0, 0)
MMAX_INSTANCE(log, MMAX_BACK_LOG, 0, 1, 0)
MMAX_INSTANCE(multimax1, MMAX_BACK_SOFTMAX, 1, 0, 0)
MMAX_INSTANCE(multimax2, MMAX_BACK_SOFTMAX, 2, 0, 0)
/* of either order, as back_sigma_row: */
MMAX_INSTANCE(masked, MMAX_BACK_SOFTMAX, 2, 0, 1)
MMAX_INSTANCE(log_multimax, MMAX_BACK_LOG, 2, 1, 0)
#        undef MMAX_INSTANCE
/* The rows that back_softmax would take, where nothing is left over behind a row's pairs of blocks. */
#        define MMAX_IS_PAIRS(n) \
            ((n) == MMAX_PAIR || ((n) > MMAX_SHORT && (n) < MMAX_EXP_CHUNK && (n) % MMAX_PAIR == 0))
MMAX_APART size_t MMAX_(back_softmax_pairs)(const MMAX_(back) * r, size_t rows, const mmax_shape *s,
                                            const MMAX_(call) * c)
{
    return r->n == MMAX_PAIR ? MMAX_(back_short)(r, rows, NULL, s, c, MMAX_BACK_SOFTMAX, 0, 0, 0, 0, MMAX_SHAPE_PAIR)
                             : MMAX_(back_short)(r, rows, NULL, s, c, MMAX_BACK_SOFTMAX, 0, 0, 0, 0, MMAX_SHAPE_PAIRS);
}

/* MultiMax with gp: MMAX_WIDTH rows of at most MMAX_PAIR entries at once, so that the eight sums stay in registers.
 * Returns 0, with nothing written, where one of them needs care. */
MMAX_INLINE size_t MMAX_(back_group)(const MMAX_(back) * first, MMAX_(slopes) * slopes, const mmax_shape *s,
                                     const MMAX_(call) * c, int order, int masks)
{
    const int function = MMAX_BACK_SOFTMAX, careful = 0, rooted = 0, shrinks = 0, params = 1;
    const mmax_vec masked = mmax_v_set(MMAX_MASK), largest = mmax_v_set(MMAX_REAL_MAX), zero = mmax_v_plus_zero();
    const mmax_vec inactive = zero, scale = mmax_v_set((mmax_real)c->scale), bound = MMAX_(safe_squares)(c);
    const MMAX_(origin) o = MMAX_(log_origin)();
    const size_t n = s->cols;
    MMAX_LINE mmax_real sums[MMAX_WIDTH * MMAX_WIDTH];
    MMAX_LINE mmax_real means[MMAX_WIDTH];
    const MMAX_(kinks) kinks = slopes->kinks;
    MMAX_(back) row = *first;
    mmax_vec squares[MMAX_REGS], mean;
    mmax_mask bad = mmax_m_none();
    (void)masked; /* for rows that need care */
    MMAX_EACH(k) { squares[k] = zero; }
    for (size_t r = 0; r < MMAX_WIDTH; ++r) {
        mmax_vec lanes_[2][MMAX_REGS];
#        define MMAX_STEP(at, left) MMAX_TERMS(&row, at, left)
        MMAX_PAIR_LANES(0, n, 1, 1, MMAX_STEP)
#        undef MMAX_STEP
        mmax_v_store(sums + r * MMAX_WIDTH, MMAX_(halved)(lanes_[0]));
        MMAX_(back_skip)(&row, s, 1);
    }
    mean = MMAX_(across_sum)(sums);
    mmax_v_store(means, mean);
    bad = mmax_m_or(bad, mmax_v_nle(mmax_v_abs(mean), mmax_v_set(MMAX_MOST_MEAN)));
    bad = mmax_m_or(bad, mmax_v_nle(MMAX_(halved)(squares), bound));
    if (mmax_m_bits(bad) != 0) {
        return 0;
    }
#        define MMAX_STEP(r, at, left, lanes, k)                               \
            MMAX_(back) each = *first;                                         \
            MMAX_(back_skip)(&each, s, r);                                     \
            {                                                                  \
                MMAX_GRADIENT(&each, at, left, mmax_v_set(means[r]), lanes, k) \
                if (each.gx) {                                                 \
                    MMAX_(store_upto)(each.gx + at, left, g_);                 \
                }                                                              \
            }
    MMAX_SWEEP_ROWS(MMAX_WIDTH, n, slopes, 4 * order, MMAX_STEP);
#        undef MMAX_STEP
    return MMAX_WIDTH;
}
/* The rows of a call, from the one at `row` on, of which `rows` are left, or 1 of those with lengths. */
#        define MMAX_INSTANCE(name, order, masks)                                                                     \
            MMAX_APART size_t MMAX_(back_##name##_params)(const MMAX_(back) * r, size_t row, size_t rows,             \
                                                          MMAX_(slopes) * slopes, const mmax_shape *s,                \
                                                          const MMAX_(call) * c)                                      \
            {                                                                                                         \
                if (s->cols > MMAX_PAIR || MMAX_CALL_REGS == 1) {                                                     \
                    return s->cols <= MMAX_WIDTH && MMAX_CALL_REGS == 1                                               \
                               ? MMAX_(back_short)(r, rows, slopes, s, c, MMAX_BACK_SOFTMAX, order, 1, 0, masks,      \
                                                   MMAX_SHAPE_ONE)                                                    \
                               : MMAX_(back_short)(r, rows, slopes, s, c, MMAX_BACK_SOFTMAX, order, 1, 0, masks,      \
                                                   MMAX_SHAPE_ANY);                                                   \
                }                                                                                                     \
                return row % MMAX_WIDTH == 0 && rows >= MMAX_WIDTH ? MMAX_(back_group)(r, slopes, s, c, order, masks) \
                                                                   : 0;                                               \
            }
MMAX_INSTANCE(multimax1, 1, 0)
MMAX_INSTANCE(multimax2, 2, 0)
MMAX_INSTANCE(masked, 2, 1)
#        undef MMAX_INSTANCE
MMAX_STATIC size_t MMAX_(back_log_multimax_params)(const MMAX_(back) * r, size_t rows, MMAX_(slopes) * slopes,
                                                   const mmax_shape *s, const MMAX_(call) * c)
{
    return MMAX_(back_short)(r, rows, slopes, s, c, MMAX_BACK_LOG, 2, 1, 1, 0, MMAX_SHAPE_ANY);
}

/* The rows of one chunk from `row` on that go without care; returns how many. *masks: whether those before had any. */
MMAX_INLINE size_t MMAX_(back_short_rows)(const MMAX_(back) * r, size_t row, int *masks, MMAX_(slopes) * slopes,
                                          const mmax_shape *s, const MMAX_(call) * c, int function, int order,
                                          int params)
{
    const size_t rows = s->lengths ? 1 : s->rows - row;
    size_t done = 0;
    if (function == MMAX_BACK_SOFTMAX && order == 0 && MMAX_IS_PAIRS(r->n)) {
        return MMAX_(back_softmax_pairs)(r, rows, s, c);
    }
    if (order == 0) {
        return function == MMAX_BACK_SOFTMAX     ? MMAX_(back_softmax)(r, rows, NULL, s, c)
               : function == MMAX_BACK_SPARSEMAX ? MMAX_(back_sparsemax)(r, rows, NULL, s, c)
               : function == MMAX_BACK_ENTMAX15  ? MMAX_(back_entmax15)(r, rows, NULL, s, c)
                                                 : MMAX_(back_log)(r, rows, NULL, s, c);
    }
    if (function == MMAX_BACK_LOG) {
        return params ? MMAX_(back_log_multimax_params)(r, rows, slopes, s, c)
                      : MMAX_(back_log_multimax)(r, rows, slopes, s, c);
    }
    if (!*masks && order == 1) {
        done = params ? MMAX_(back_multimax1_params)(r, row, rows, slopes, s, c)
                      : MMAX_(back_multimax1)(r, rows, slopes, s, c);
    } else if (!*masks) {
        done = params ? MMAX_(back_multimax2_params)(r, row, rows, slopes, s, c)
                      : MMAX_(back_multimax2)(r, rows, slopes, s, c);
    }
    if (done == 0) {
        done =
            params ? MMAX_(back_masked_params)(r, row, rows, slopes, s, c) : MMAX_(back_masked)(r, rows, slopes, s, c);
        *masks = done > 0;
    }
    return done;
}
#    endif
#    undef MMAX_GRADIENT
#    undef MMAX_TERMS
#    undef MMAX_IS_TWO
#    undef MMAX_MOST_MEAN
#    undef MMAX_SHRUNK
#    undef MMAX_IS_LARGE
#    undef MMAX_LOADS
#    undef MMAX_ACTIVE
#    undef MMAX_SHAPE_ANY
#    undef MMAX_SHAPE_ONE
#    undef MMAX_SHAPE_PAIR
#    undef MMAX_SHAPE_PAIRS
#    undef MMAX_IS_PAIRS

/* The second pass of a row leaves time in which the next row can come from the second cache: rows of up to so many
 * bytes ask for the next one meanwhile. */
#    define MMAX_FETCH_BYTES 8192
MMAX_INLINE void MMAX_(backward)(mmax_real *gx, mmax_multimax_grads *gp, const mmax_real *gy, const mmax_real *y,
                                 const mmax_real *x, const mmax_multimax_params *p, int function, int order,
                                 const mmax_shape *s)
{
    const int fast = MMAX_FAST && (function == MMAX_BACK_SOFTMAX || function == MMAX_BACK_ENTMAX15);
    const size_t bytes = s->cols * sizeof(mmax_real);
    const int fetch = s->cols > MMAX_EXP_CHUNK && bytes <= MMAX_FETCH_BYTES;
    MMAX_(call) call;
    MMAX_(back) next, r;
    MMAX_(slopes) slopes;
    int masks = 0; /* whether rows before had any */
    MMAX_(prepare)(&call, function == MMAX_BACK_LOG && !p ? 1 : s->scale, p, 0);
    call.scale = s->scale;
    if (order) {
        MMAX_(slopes_begin)(&slopes, p, &call, call.scale);
    }
    r.gx = gx;
    r.gy = gy;
    r.y = y;
    r.x = x;
    r.roots = gx != gy && gx != y && bytes <= MMAX_LONG_BYTES;
    for (size_t row = 0; row < s->rows; ++row) {
        double mean = mmax_f64_from_bits(0x7ff8000000000000);
        size_t done = 0;
        MMAX_(back) copy;
        r.n = s->lengths ? s->lengths[row] : s->cols;
        copy = r; /* r itself stays in registers */
#    if MMAX_FAST
        if (s->cols <= MMAX_EXP_CHUNK) {
            done = MMAX_(back_short_rows)(&copy, row, &masks, &slopes, s, &call, function, order, gp != NULL);
        }
#    endif
        if (done == 0) {
            const MMAX_(back) *const then = fetch && row + 1 < s->rows ? &next : NULL;
            done = 1;
            if (fast) {
                mean = MMAX_(usual_mean)(&copy, &masks, &call, function, order);
            }
            next = copy;
            MMAX_(back_skip)(&next, s, 1);
            if (order == 0) {
                MMAX_(back_end)(&copy, mean, NULL, &call, function, 0, 0, 0, then);
            } else if (!fast) {
                MMAX_(back_sigma_row)(copy, &slopes, &call, function, gp != NULL);
            } else if (order == 1) {
                (gp ? MMAX_(back_end_multimax1_params) : MMAX_(back_end_multimax1))(&copy, mean, &slopes, &call, masks,
                                                                                    then);
            } else {
                (gp ? MMAX_(back_end_multimax2_params) : MMAX_(back_end_multimax2))(&copy, mean, &slopes, &call, masks,
                                                                                    then);
            }
        }
        if (gx && r.n < s->cols) {
            MMAX_(fill)(r.gx + r.n, s->cols - r.n, 0);
        }
        MMAX_(back_skip)(&r, s, done);
        row += done - 1;
    }
    if (order && gp) {
        MMAX_(slopes_end)(&slopes, gp, p, 1);
    }
}
MMAX_STATIC void MMAX_(softmax_backward)(mmax_real *gx, const mmax_real *gy, const mmax_real *y, const mmax_shape *s)
{
    MMAX_(backward)(gx, NULL, gy, y, NULL, NULL, MMAX_BACK_SOFTMAX, 0, s);
}
MMAX_STATIC void MMAX_(sparsemax_backward)(mmax_real *gx, const mmax_real *gy, const mmax_real *y, const mmax_shape *s)
{
    MMAX_(backward)(gx, NULL, gy, y, NULL, NULL, MMAX_BACK_SPARSEMAX, 0, s);
}
MMAX_STATIC void MMAX_(entmax15_backward)(mmax_real *gx, const mmax_real *gy, const mmax_real *y, const mmax_shape *s)
{
    MMAX_(backward)(gx, NULL, gy, y, NULL, NULL, MMAX_BACK_ENTMAX15, 0, s);
}
MMAX_STATIC void MMAX_(log_softmax_backward)(mmax_real *gx, const mmax_real *gy, const mmax_real *y,
                                             const mmax_shape *s)
{
    MMAX_(backward)(gx, NULL, gy, y, NULL, NULL, MMAX_BACK_LOG, 0, s);
}
MMAX_STATIC void MMAX_(multimax_backward)(mmax_real *gx, mmax_multimax_grads *gp, const mmax_real *gy,
                                          const mmax_real *y, const mmax_real *x, const mmax_multimax_params *p,
                                          const mmax_shape *s)
{
    if (p->order == 1) {
        MMAX_(backward)(gx, gp, gy, y, x, p, MMAX_BACK_SOFTMAX, 1, s);
    } else {
        MMAX_(backward)(gx, gp, gy, y, x, p, MMAX_BACK_SOFTMAX, 2, s);
    }
}
MMAX_STATIC void MMAX_(log_multimax_backward)(mmax_real *gx, mmax_multimax_grads *gp, const mmax_real *gy,
                                              const mmax_real *y, const mmax_real *x, const mmax_multimax_params *p,
                                              const mmax_shape *s)
{
    if (p->order == 1) {
        MMAX_(backward)(gx, gp, gy, y, x, p, MMAX_BACK_LOG, 1, s);
    } else {
        MMAX_(backward)(gx, gp, gy, y, x, p, MMAX_BACK_LOG, 2, s);
    }
}

/* ---- backward of tanhmax: gx_j = scale (gy_j w_j - y_j sum y gy), w_j = 2 cosh(s_j) / C ----
 * As y_j = 2 sinh(s_j) / C, w_j^2 = y_j^2 + (2 / C)^2, and the largest |y| and |x| of a row give 2 / C. What is squared
 * is MMAX_TO_SQUARE times as large first: so the squares of normal numbers up to 1 are normal numbers.
 */
#    if MMAX_PASS_DOUBLE
#        define MMAX_TO_SQUARE_LOG2 511
#        define MMAX_TO_SQUARE      6.703903964971299e+153
#        define MMAX_FROM_SQUARE    1.4916681462400413e-154 /* its inverse */
#        define MMAX_FLAT           7.450580596923828e-09   /* 2^-27: for smaller |s|, cosh(s) rounds to 1 */
#        define MMAX_UNIT_RANGE     730.0                   /* for a larger one, 2 / C is below the normal numbers */
#    else
#        define MMAX_TO_SQUARE_LOG2 63
#        define MMAX_TO_SQUARE      9223372036854775808.0
#        define MMAX_FROM_SQUARE    1.0842021724855044e-19
#        define MMAX_FLAT           1.220703125e-04 /* 2^-13 */
#        define MMAX_UNIT_RANGE     110.0
#    endif
/* What the first pass leaves of up to MMAX_WIDTH rows: y / sinh(scale x) is 2 / C, or y itself where x is 0; both are not
 * negative. */
typedef struct MMAX_(sinh_terms) {
    MMAX_LINE mmax_real x[MMAX_WIDTH], y[MMAX_WIDTH];
    double dot[MMAX_WIDTH]; /* sum y gy */
    int state[MMAX_WIDTH];
    int masks; /* whether a row has some: those that follow likely have them, too */
} MMAX_(sinh_terms);

/* Without `masks`, rows whose x are finite. */
#    define MMAX_SINH_LOADS(at, left)                                                                             \
        const mmax_mask active_ =                                                                                 \
            masks ? mmax_v_nle(MMAX_(load_upto)(r->x + at, left, masked), masked) : mmax_m_none();                \
        const mmax_vec y_ =                                                                                       \
            masks ? MMAX_(load_active)(r->y + at, left, zero, active_) : MMAX_(load_upto)(r->y + at, left, zero); \
        const mmax_vec gy_ =                                                                                      \
            masks ? MMAX_(load_active)(r->gy + at, left, zero, active_) : MMAX_(load_upto)(r->gy + at, left, zero);
/* sum y gy of a row where it overflows on the way, at most the largest double; NaN where gy is not finite */
MMAX_RARE double MMAX_(limited_dot)(const MMAX_(back) * r)
{
    double sum = 0, lost = 0;
    for (size_t i = 0; i < r->n; ++i) {
        if (!mmax_is_masked(r->x[i])) {
            const double term = mmax_product((double)r->gy[i] * (1.0 / 256), (double)r->y[i]);
            MMAX_ADD_EXACTLY(sum, lost, term);
        }
    }
    sum += lost;
    return mmax_f64_is_finite(sum) ? mmax_limited(sum * 256) : sum;
}
/* Row r to place i; returns whether all active x are finite. */
MMAX_INLINE int MMAX_(sinh_begin_row)(MMAX_(sinh_terms) * t, size_t i, const MMAX_(back) * r, const MMAX_(call) * c,
                                      int masks)
{
    const mmax_vec masked = mmax_v_set(MMAX_MASK), largest = mmax_v_set(MMAX_REAL_MAX), zero = mmax_v_zero();
    const mmax_vec one = mmax_v_set((mmax_real)1);
    mmax_vec max_x[MMAX_REGS], max_y[MMAX_REGS];
    mmax_mask bad = mmax_m_none();
    MMAX_(sum) sums[2];
    double active, top;
    MMAX_(sums_clear)(sums, 2);
    MMAX_EACH(k) { max_x[k] = max_y[k] = zero; }
#    define MMAX_STEP(at, left, k, part)                                             \
        MMAX_SINH_LOADS(at, left)                                                    \
        const mmax_vec x_ = MMAX_(load_upto)(r->x + at, left, zero);                 \
        const mmax_vec size_ = mmax_v_abs(masks ? mmax_v_keep(active_, x_) : x_);    \
        bad = mmax_m_or(bad, mmax_v_nle(size_, largest));                            \
        max_x[k] = mmax_v_max(size_, max_x[k]);                                      \
        max_y[k] = mmax_v_max(mmax_v_abs(y_), max_y[k]);                             \
        lanes_##part[0][k] = mmax_v_fma(y_, gy_, lanes_##part[0][k]);                \
        if (masks) {                                                                 \
            lanes_##part[1][k] = mmax_v_add_where(active_, lanes_##part[1][k], one); \
        }
    MMAX_SWEEP_SUM(r->n, sums, masks ? 2 : 1, MMAX_STEP);
#    undef MMAX_STEP
    for (int k = 1; k < MMAX_REGS; ++k) {
        max_x[0] = mmax_v_max(max_x[k], max_x[0]);
        max_y[0] = mmax_v_max(max_y[k], max_y[0]);
    }
    active = masks ? MMAX_(sum_total)(&sums[1]) : (double)r->n;
    t->x[i] = mmax_v_hmax(max_x[0]);
    t->y[i] = mmax_v_hmax(mmax_v_min(max_y[0], one));
    t->dot[i] = MMAX_(sum_total)(&sums[0]);
    t->masks |= active < (double)r->n;
    t->state[i] = MMAX_IS_NORMAL;
    top = (double)t->x[i] * c->scale;
    if (!mmax_f64_is_finite(t->dot[i])) {
        t->dot[i] = MMAX_(limited_dot)(r);
    }
    if (mmax_m_bits(bad) != 0 || !(top <= MMAX_REAL_MAX) || !mmax_f64_is_finite(t->dot[i])) {
        t->state[i] = MMAX_IS_NAN;
    } else if (active == 0) {
        t->state[i] = MMAX_IS_EMPTY;
    }
    if (t->state[i] != MMAX_IS_NORMAL || !(top >= MMAX_FLAT && top < MMAX_UNIT_RANGE)) {
        t->x[i] = 0;
        t->y[i] = t->state[i] == MMAX_IS_NORMAL && top < MMAX_FLAT ? (mmax_real)(MMAX_TO_SQUARE / active) : 0;
    }
    return mmax_m_bits(bad) == 0;
}

/* The squares of MMAX_TO_SQUARE 2 / C, or 0 where 2 / C is below the normal numbers. */
MMAX_STATIC mmax_vec MMAX_(squares_of)(const MMAX_(sinh_terms) * t, const MMAX_(call) * c)
{
    const mmax_vec zero = mmax_v_zero(), one = mmax_v_set((mmax_real)1), x = mmax_v_load(t->x);
    const mmax_real whole = MMAX_TO_SQUARE_LOG2 + 1;
    mmax_vec sinh2, cosh2, ratio;
    MMAX_(origin) o = MMAX_(log_origin)();
    o.rounder = MMAX_ROUND_TO_EIGHTH - whole; /* sinh2 is sinh / MMAX_TO_SQUARE */
    o.lowest = (MMAX_LOWEST + whole) * c->log2e_inverse;
    sinh2 = MMAX_(exp_part)(x, &o, c, MMAX_TANHMAX, MMAX_ROW_GENERAL, &cosh2);
    sinh2 = mmax_v_mul(sinh2, mmax_v_set((mmax_real)(1.0 / MMAX_POW2_FACTOR)));
    ratio = mmax_v_div(mmax_v_load(t->y), mmax_v_select(mmax_v_lt(zero, x), sinh2, one));
    ratio = mmax_v_min(ratio, mmax_v_set((mmax_real)MMAX_TO_SQUARE));
    ratio = mmax_v_keep(mmax_v_le(mmax_v_set((mmax_real)MMAX_FROM_SQUARE), ratio), ratio);
    return mmax_v_mul(ratio, ratio);
}

MMAX_INLINE void MMAX_(cosh_row)(const MMAX_(back) * r, double dot, mmax_real row_square, const MMAX_(call) * c,
                                 int masks)
{
    const mmax_vec masked = mmax_v_set(MMAX_MASK), zero = mmax_v_zero(), one = mmax_v_set((mmax_real)1);
    const mmax_vec up = mmax_v_set((mmax_real)MMAX_TO_SQUARE), down = mmax_v_set((mmax_real)MMAX_FROM_SQUARE);
    const mmax_vec square = mmax_v_set(row_square), scale = mmax_v_set((mmax_real)c->scale);
    const mmax_vec minus_dot = mmax_v_set((mmax_real)-MMAX_(in_range)(dot));
#    define MMAX_STEP(at, left, k, part)                                                        \
        MMAX_SINH_LOADS(at, left)                                                               \
        const mmax_vec sinh_ = mmax_v_mul(mmax_v_min(mmax_v_abs(y_), one), up);                 \
        const mmax_vec cosh_ = mmax_v_mul(mmax_v_sqrt(mmax_v_fma(sinh_, sinh_, square)), down); \
        const mmax_vec g_ = mmax_v_fma(y_, minus_dot, mmax_v_mul(gy_, cosh_));                  \
        MMAX_(store_upto)(r->gx + at, left, mmax_v_mul(masks ? mmax_v_keep(active_, g_) : g_, scale));
    MMAX_SWEEP(r->n, MMAX_STEP);
#    undef MMAX_STEP
}
#    undef MMAX_SINH_LOADS

MMAX_STATIC void MMAX_(tanhmax_backward)(mmax_real *gx, const mmax_real *gy, const mmax_real *y, const mmax_real *x,
                                         const mmax_shape *s)
{
    const size_t together = s->cols <= MMAX_SHORT ? MMAX_WIDTH : 1; /* rows whose 2 / C are found at once */
    MMAX_(back) next = {gx, gy, y, x, s->cols, 0, 1}, group[MMAX_WIDTH];
    MMAX_LINE mmax_real squares[MMAX_WIDTH];
    MMAX_(sinh_terms) terms;
    MMAX_(call) c;
    MMAX_(prepare)(&c, s->scale, NULL, 0);
    terms.masks = 0;
    for (int i = 0; i < MMAX_WIDTH; ++i) {
        terms.x[i] = terms.y[i] = 0;
    }
    for (size_t row = 0; row < s->rows; row += together) {
        const size_t rows = s->rows - row < together ? s->rows - row : together;
        int masks = terms.masks;
        terms.masks = 0;
        for (size_t i = 0; i < rows; ++i) {
            group[i] = next;
            group[i].n = s->lengths ? s->lengths[row + i] : s->cols;
            MMAX_(back_skip)(&next, s, 1);
            masks = masks || !MMAX_(sinh_begin_row)(&terms, i, &group[i], &c, 0);
            if (masks) {
                (void)MMAX_(sinh_begin_row)(&terms, i, &group[i], &c, 1);
            }
        }
        mmax_v_store(squares, MMAX_(squares_of)(&terms, &c));
        for (size_t i = 0; i < rows; ++i) {
            const MMAX_(back) *const r = &group[i];
            if (MMAX_UNLIKELY(terms.state[i] != MMAX_IS_NORMAL)) {
                MMAX_(fill_special)(r->gx, r->x, r->n, terms.state[i] == MMAX_IS_NAN, 0);
            } else if (masks) {
                MMAX_(cosh_row)(r, terms.dot[i], squares[i], &c, 1);
            } else {
                MMAX_(cosh_row)(r, terms.dot[i], squares[i], &c, 0);
            }
            if (r->n < s->cols) {
                MMAX_(fill)(r->gx + r->n, s->cols - r->n, 0);
            }
        }
    }
}

/* ---- metrics ---- */

/* Means over the entries that a metric chooses: y_max - y where epsilon < x < x_max (multimodality), or
 * exp(-y / reference) where x < epsilon (sparsity; for a reference of 0: 1 where y = 0, else 0). NaN where nothing is
 * chosen, or a NaN stands in an active entry. */
typedef struct MMAX_(metric) {
    mmax_real epsilon, x_max, y_max;
    double reference;
    int sparsity;
} MMAX_(metric);

#    if MMAX_PASS_DOUBLE
/* exp(z) / count for z of any size, with the origin of logarithms and a call without scale */
MMAX_RARE double MMAX_(share_of_exp)(double z, double count, const MMAX_(origin) * o, const MMAX_(call) * c)
{
    double root = z < -720 ? -360 : z > 800 ? 400 : z / 2;
    root = MMAX_(exp_of)(root, o, c) * (MMAX_TWO_TO_MINUS_64 / MMAX_POW2_FACTOR);
    return mmax_limited(root / count * root);
}
#    endif
/* The mean of sparsity's `count` terms where y is negative, as TanhMax's may be, or the reference below the normal
 * numbers. */
MMAX_RARE double MMAX_(sparsity_mean)(const mmax_real *y, const mmax_real *x, size_t n, double count,
                                      const MMAX_(metric) * metric)
{
    const MMAX_F64_(origin) o = MMAX_F64_(log_origin)();
    MMAX_F64_(call) c;
    double mean = 0, lost = 0;
    MMAX_F64_(prepare)(&c, 1, NULL, 0);
    for (size_t i = 0; i < n; ++i) {
        if (!mmax_is_masked(x[i]) && x[i] < metric->epsilon) {
            const double term = MMAX_F64_(share_of_exp)(-(double)y[i] / metric->reference, count, &o, &c);
            MMAX_ADD_EXACTLY(mean, lost, term);
        }
    }
    return mmax_exact_total(mean, lost);
}

/* The mean of multimodality's `count` terms where their sum overflows. */
MMAX_RARE double MMAX_(distance_mean)(const mmax_real *y, const mmax_real *x, size_t n, double count,
                                      const MMAX_(metric) * metric)
{
    double half = 0, lost = 0;
    for (size_t i = 0; i < n; ++i) {
        if (x[i] > metric->epsilon && x[i] < metric->x_max) {
            const double term = (double)metric->y_max * 0.5 - (double)y[i] * 0.5;
            MMAX_ADD_EXACTLY(half, lost, term / count);
        }
    }
    return mmax_limited(2 * mmax_exact_total(half, lost));
}

MMAX_INLINE void MMAX_(metric_mean)(double *mean, const mmax_real *y, const mmax_real *x, size_t n,
                                    const MMAX_(metric) * metric, const MMAX_(call) * c, const MMAX_(origin) * o)
{
    const mmax_vec masked = mmax_v_set(MMAX_MASK), largest = mmax_v_set(MMAX_REAL_MAX), zero = mmax_v_zero();
    const mmax_vec epsilon = mmax_v_set(metric->epsilon), one = mmax_v_set((mmax_real)1);
    const int normal = metric->reference >= MMAX_REAL_MIN, tiny = metric->reference > 0 && !normal;
    const double inverse = normal ? -1 / metric->reference : -1;
    const mmax_vec factor = mmax_v_set(inverse < -MMAX_REAL_MIN ? (mmax_real)inverse : -MMAX_REAL_MIN);
    MMAX_(sum) sums[2]; /* of the terms, and their number */
    mmax_mask bad = mmax_m_none(), unusual = bad;
    MMAX_(sums_clear)(sums, 2);
#    define MMAX_STEP(at, left, k, part)                                                                        \
        const mmax_vec x_ = MMAX_(load_upto)(x + at, left, masked);                                             \
        const mmax_mask active_ = mmax_v_nle(x_, masked);                                                       \
        const mmax_vec y_ = MMAX_(load_active)(y + at, left, zero, active_);                                    \
        mmax_mask chosen_;                                                                                      \
        mmax_vec term_;                                                                                         \
        bad = mmax_m_or(bad, mmax_m_and(active_, mmax_m_or(mmax_v_nle(x_, largest), mmax_v_nle(y_, largest)))); \
        if (!metric->sparsity) {                                                                                \
            chosen_ = mmax_m_and(mmax_v_lt(epsilon, x_), mmax_v_lt(x_, mmax_v_set(metric->x_max)));             \
            term_ = mmax_v_sub(mmax_v_set(metric->y_max), y_);                                                  \
        } else {                                                                                                \
            chosen_ = mmax_m_and(active_, mmax_v_lt(x_, epsilon));                                              \
            if (metric->reference == 0) {                                                                       \
                term_ = mmax_v_select(mmax_v_ne(y_, zero), zero, one);                                          \
            } else {                                                                                            \
                term_ = MMAX_(weight)(mmax_v_mul(y_, factor), active_, o, c, MMAX_BACK_LOG);                    \
                unusual = mmax_m_or(unusual, mmax_m_and(chosen_, mmax_v_lt(y_, zero)));                         \
            }                                                                                                   \
        }                                                                                                       \
        lanes_##part[0][k] = mmax_v_add_where(chosen_, lanes_##part[0][k], term_);                              \
        lanes_##part[1][k] = mmax_v_add_where(chosen_, lanes_##part[1][k], one);
    MMAX_SWEEP_SUM(n, sums, 2, MMAX_STEP);
#    undef MMAX_STEP
    {
        const double total = MMAX_(sum_total)(&sums[0]), chosen = MMAX_(sum_total)(&sums[1]);
        if (tiny || mmax_m_bits(unusual) != 0) {
            *mean = MMAX_(sparsity_mean)(y, x, n, chosen, metric);
        } else if (MMAX_UNLIKELY(!mmax_f64_is_finite(total))) {
            *mean = MMAX_(distance_mean)(y, x, n, chosen, metric);
        } else {
            *mean = total / chosen;
        }
        if (mmax_m_bits(bad) != 0 || !(chosen > 0)) {
            *mean = mmax_f64_from_bits(0x7ff8000000000000);
        }
    }
}

MMAX_STATIC void MMAX_(multimodality)(double *out, const mmax_real *y, const mmax_real *x, double epsilon,
                                      const mmax_shape *s)
{
    MMAX_(call) c;
    const MMAX_(origin) o = MMAX_(log_origin)();
    MMAX_(metric) metric = {mmax_real_floor(epsilon), 0, 0, 1, 0};
    MMAX_(prepare)(&c, 1, NULL, 0);
    for (size_t row = 0; row < s->rows; ++row) {
        const size_t n = s->lengths ? s->lengths[row] : s->cols;
        const mmax_real *const x_row = x + row * s->x_stride, *const y_row = y + row * s->y_stride;
        size_t first = 0;
        if (n > 0) {
            metric.x_max = MMAX_(row_extremes)(NULL, x_row, n, &c, MMAX_SOFTMAX, 0).max;
            while (first + 1 < n && !(x_row[first] == metric.x_max)) {
                ++first;
            }
            metric.y_max = y_row[first];
        }
        MMAX_(metric_mean)(&out[row], y_row, x_row, n, &metric, &c, &o);
        out[row] = 1 - out[row];
    }
}

/* The smallest weight that softmax(scale x) gives to an active entry; 0 where that is below the normal numbers, NaN where
 * the weights are. */
MMAX_INLINE double MMAX_(softmax_min)(const mmax_real *x, size_t n, const MMAX_(call) * c)
{
    MMAX_(origin) o;
    mmax_real min;
    double weight;
    mmax_real buffer[2 * MMAX_BLOCK];
    int careful;
    const int state = MMAX_(begin_softmax)(&o, &careful, NULL, x, n, c);
    if (state != MMAX_IS_NORMAL) {
        return state == MMAX_IS_NAN ? mmax_f64_from_bits(0x7ff8000000000000) : 0;
    }
    min = o.max;
    for (size_t i = 0; i < n; ++i) {
        min = !mmax_is_masked(x[i]) && x[i] < min ? x[i] : min;
    }
    weight = MMAX_(exp_of)(min, &o, c) / MMAX_(softmax_sums)(NULL, buffer, x, n, x, &o, c).sum;
    return weight >= MMAX_REAL_MIN ? weight : 0;
}

MMAX_STATIC void MMAX_(sparsity)(double *out, const mmax_real *y, const mmax_real *x, double epsilon, double reference,
                                 const mmax_shape *s)
{
    MMAX_(call) c, unit;
    const MMAX_(origin) o = MMAX_(log_origin)();
    MMAX_(metric) metric = {mmax_real_ceil(epsilon), 0, 0, reference, 1};
    MMAX_(prepare)(&c, s->scale, NULL, 0);
    MMAX_(prepare)(&unit, 1, NULL, 0);
    for (size_t row = 0; row < s->rows; ++row) {
        const size_t n = s->lengths ? s->lengths[row] : s->cols;
        const mmax_real *const x_row = x + row * s->x_stride;
        metric.reference = reference > 0 ? reference : MMAX_(softmax_min)(x_row, n, &c);
        if (mmax_f64_is_nan(metric.reference)) {
            out[row] = metric.reference;
        } else {
            MMAX_(metric_mean)(&out[row], y + row * s->y_stride, x_row, n, &metric, &unit, &o);
        }
    }
}

/* ---- end of an instance ---- */
#    if defined(MMAX_PASS_AVX512) || defined(MMAX_PASS_AVX2) || defined(MMAX_PASS_SSE2)
#        if defined(__clang__)
#            pragma clang attribute pop
#        elif MMAX_GNUC
#            pragma GCC pop_options
#        endif
#    endif
#    undef mmax_real
#    undef MMAX_TYPE
#    undef MMAX_LANES
#    undef MMAX_TIER
#    undef MMAX_FMA
#    undef MMAX_DREGS
#    undef mmax_dvec
#    undef mmax_d_zero
#    undef mmax_d_add
#    undef mmax_d_sub
#    undef mmax_d_store
#    undef MMAX_I
#    undef MMAX_BYTES
#    undef MMAX_LANE_MASK
#    undef MMAX_SQRT
#    undef MMAX_INT
#    undef MMAX_MOVEMASK
#    undef MMAX_OP
#    undef MMAX_D_OP
#    undef MMAX_WIDTH
#    undef mmax_vec
#    undef mmax_mask
#    undef mmax_v_cmp
#    undef mmax_v_set
#    undef mmax_v_zero
#    undef mmax_v_load
#    undef mmax_v_store
#    undef mmax_v_lanes
#    undef mmax_v_load_part
#    undef mmax_v_store_part
#    undef mmax_v_first
#    undef mmax_v_add
#    undef mmax_v_sub
#    undef mmax_v_mul
#    undef mmax_v_product
#    undef mmax_v_plus_zero
#    undef mmax_v_fma
#    undef mmax_v_div
#    undef mmax_v_widen
#    undef mmax_v_sqrt
#    undef mmax_v_min
#    undef mmax_v_max
#    undef mmax_v_abs
#    undef mmax_v_copysign
#    undef mmax_v_lt
#    undef mmax_v_le
#    undef mmax_v_ne
#    undef mmax_v_nle
#    undef mmax_m_none
#    undef mmax_m_or
#    undef mmax_m_and
#    undef mmax_m_bits
#    undef mmax_v_select
#    undef mmax_v_keep
#    undef mmax_v_add_where
#    undef mmax_v_fma_where
#    undef mmax_v_pow2
#    undef mmax_v_exponent
#    undef mmax_v_mantissa
#    undef MMAX_EXPONENT_BITS
#    undef MMAX_SQRT_HALF_BITS
#    undef MMAX_INTEGER_BITS
#    undef MMAX_INTEGER
#    undef mmax_v_hmax
#    undef mmax_v_hmin
#    undef mmax_v_zip_low
#    undef mmax_v_zip_high
#    undef mmax_v_hsum
#    undef mmax_d_zip_low
#    undef mmax_d_zip_high
#    undef mmax_v_collect
#    undef mmax_v_as_mask
#    undef mmax_v_high
#    undef mmax_v_opaque
#    undef MMAX_U
#    undef mmax_v_bits
#    undef mmax_v_from_bits
#    undef mmax_v_sign
#    undef mmax_m_not
#    undef MMAX_REGISTERS
#    undef MMAX_COMPARE
#    undef MMAX_BITS
#    undef MMAX_SIGN
#    undef MMAX_LOW_BITS
#    undef MMAX_REGS
#    undef MMAX_FAST
#    undef MMAX_EACH
#    undef MMAX_EACH_REST
#    undef MMAX_EACH_OF
#    undef MMAX_EACH_D
#    undef mmax_s_dfma
#    undef mmax_s_fma
#    undef mmax_s_sqrt
#    undef MMAX_REAL_MAX
#    undef MMAX_SAFE
#    undef MMAX_REAL_MIN
#    undef MMAX_REAL_EPSILON
#    undef mmax_from_bits
#    undef MMAX_NAN_BITS
#    undef MMAX_MASK_BITS
#    undef MMAX_QUIET_NAN
#    undef MMAX_MASK
#    undef MMAX_REAL_MIN_ROOT
#    undef MMAX_TINY
#    undef mmax_is_masked
#    undef mmax_toward_minus_one
#    undef mmax_toward_zero
#    undef mmax_real_floor
#    undef mmax_real_ceil
#    undef mmax_is_nan
#    undef mmax_is_finite
#    undef mmax_is_within
#    undef MMAX_PAIR
#    undef MMAX_SHORT
#    undef MMAX_CHUNK
#    undef MMAX_EXP_CHUNK
#    undef MMAX_AHEAD
#    undef MMAX_ABOVE_EXPS
#    undef MMAX_SWEEP_LANES
#    undef MMAX_SWEEP
#    undef MMAX_SWEEP_BY
#    undef MMAX_EXTREMES
#    undef MMAX_UNROLL_REGS
#    undef MMAX_MOST_SUMS
#    undef MMAX_LANES_CLEAR
#    undef MMAX_LANES_FLUSH
#    undef MMAX_SWEEP_SUM
#    undef MMAX_LOG2E
#    undef MMAX_LOG2E_REST
#    undef MMAX_TURNS_LEAST
#    undef MMAX_POW2_FACTOR
#    undef MMAX_ROUND_TO_EIGHTH
#    undef MMAX_POW2_POLYNOMIAL
#    undef MMAX_POW2_EVEN
#    undef MMAX_POW2_ODD
#    undef MMAX_P1
#    undef MMAX_P2
#    undef MMAX_P3
#    undef MMAX_P4
#    undef MMAX_P5
#    undef MMAX_P6
#    undef MMAX_P7
#    undef MMAX_SHIFT_LIMIT
#    undef MMAX_PLAIN_RANGE
#    undef MMAX_RAISED
#    undef MMAX_LEAST_REST
#    undef MMAX_BIAS
#    undef MMAX_LOWEST
#    undef MMAX_H
#    undef MMAX_EACH_FUNCTION
#    undef MMAX_EACH_ROW
#    undef MMAX_SIDE_BY_SIDE
#    undef MMAX_FETCH_BYTES
#    undef MMAX_SWEEP_PAIRS
#    undef MMAX_PAIR_LANES
#    undef MMAX_SWEEP_ON
#    undef MMAX_SWEEP_ROWS
#    undef MMAX_CALL_LANES
#    undef MMAX_CALL_REGS
#    undef MMAX_CALL_BLOCKS
#    undef MMAX_CALL_CHUNK
#    undef MMAX_CALL_BLOCKS_OF
#    undef MMAX_CALL_IS_FULL
#    undef MMAX_CALL_FLUSH
#    undef MMAX_CALL_LOAD
#    undef MMAX_CALL_STORE
#    undef MMAX_PAIR_STEP
#    undef MMAX_MOST_ROWS
#    undef MMAX_HALVE
#    undef MMAX_ACROSS
#    undef MMAX_SHORT_FILLED
#    undef MMAX_EACH_REGISTER
#    undef MMAX_TURN_ADD
#    undef MMAX_PARTS_CHEAP
#    undef MMAX_IN_GROUPS
#    undef MMAX_LONE
#    undef MMAX_LONE_WEIGHTS
#    undef mmax_v_whole
#    undef MMAX_TOGETHER
#    undef MMAX_TOGETHER_BYTES
#    undef MMAX_BEGIN_ROWS
#    undef MMAX_SIDE_BY_SIDE_BYTES
#    undef MMAX_LEAST_GROUP
#    undef MMAX_MOST_ALONE
#    undef MMAX_OVERLAP_LEAST
#    undef MMAX_OVERLAP_MOST
#    undef MMAX_FETCHES
#    undef MMAX_LINE_REGISTERS
#    undef MMAX_HOLDS_FEW
#    undef MMAX_FEW_BOUND
#    undef MMAX_BELOW_MAX
#    undef MMAX_LATER
#    undef MMAX_LATER_AT_LEAST
#    undef MMAX_BLOCK
#    undef MMAX_EACH_BLOCK
#    undef MMAX_LONG_BYTES
#    undef MMAX_MODERATE
#    undef MMAX_LOG_BOUND
#    undef MMAX_PIECES
#    undef MMAX_LOWERED
#    undef MMAX_BUFFER
#    undef MMAX_CANDIDATES
#    undef MMAX_SORTED
#    undef MMAX_IS_ALONE
#    undef MMAX_ABREAST
#    undef MMAX_MOST_ABREAST
#    undef MMAX_EACH_LANE
#    undef MMAX_NEWTON
#    undef MMAX_FROM_SORTED
#    undef MMAX_TAUS
#    undef MMAX_GROUP
#    undef MMAX_GROUP_COLS
#    undef MMAX_HEADS
#    undef MMAX_GROUP_MOST
#    undef MMAX_EACH_THRESHOLD
#    undef MMAX_LANE_PASSES
#    undef mmax_v_column
#    undef MMAX_TAUS_OF_FLOATS
#    undef MMAX_FEW
#    undef MMAX_TAU_PASSES
#    undef MMAX_BEGIN_THRESHOLD
#    undef MMAX_UNIT_RANGE
#    undef MMAX_TO_SQUARE
#    undef MMAX_MOST_LATE
#    undef MMAX_SIGMA_GRADIENT
#    undef MMAX_TO_SQUARE_LOG2
#    undef MMAX_FROM_SQUARE
#    undef MMAX_FLAT
#endif /* MMAX_PASS == 1 */

/* ==== public functions: check, dispatch, nothing more ==== */
#if defined(MMAX_PASS) && MMAX_PASS == 2
#    if MMAX_PASS_DOUBLE
#        define mmax_real double
#        define MMAX_TYPE f64
#    else
#        define mmax_real float
#        define MMAX_TYPE f32
#    endif
#    define MMAX_PUBLIC_(name, type)     mmax_##name##_##type
#    define MMAX_PUBLIC_NAME(name, type) MMAX_PUBLIC_(name, type)
#    define MMAX_PUBLIC(name)            MMAX_DEFINE mmax_status MMAX_PUBLIC_NAME(name, MMAX_TYPE)
#    define MMAX_IN(role, p) \
        {                    \
            p, role, 0       \
        }
#    define MMAX_OUT(role, p) \
        {                     \
            p, role, 1        \
        }
/* Checks the call; returns where it is wrong or there is nothing to do. */
#    define MMAX_CHECK(arrays, extra, targets)                                                                     \
        do {                                                                                                       \
            mmax_status status_;                                                                                   \
            if (s.rows == 0 || s.cols == 0) {                                                                      \
                return MMAX_OK;                                                                                    \
            }                                                                                                      \
            status_ = mmax_check(&s, arrays, sizeof arrays / sizeof arrays[0], sizeof(mmax_real), extra, targets); \
            if (status_ != MMAX_OK) {                                                                              \
                return status_;                                                                                    \
            }                                                                                                      \
        } while (0)

MMAX_PUBLIC(softmax)(mmax_real *y, const mmax_real *x, mmax_shape s)
{
    const mmax_array arrays[] = {MMAX_OUT(MMAX_Y, y), MMAX_IN(MMAX_X, x)};
    MMAX_CHECK(arrays, MMAX_OK, NULL);
    MMAX_DISPATCH(softmax, (y, x, &s));
    return MMAX_OK;
}

MMAX_PUBLIC(multimax)(mmax_real *y, const mmax_real *x, const mmax_multimax_params *p, mmax_shape s)
{
    const mmax_array arrays[] = {MMAX_OUT(MMAX_Y, y), MMAX_IN(MMAX_X, x)};
    MMAX_CHECK(arrays, mmax_check_params(p, sizeof(mmax_real)), NULL);
    MMAX_DISPATCH(multimax, (y, x, p, &s));
    return MMAX_OK;
}

MMAX_PUBLIC(sparsemax)(mmax_real *y, const mmax_real *x, mmax_shape s)
{
    const mmax_array arrays[] = {MMAX_OUT(MMAX_Y, y), MMAX_IN(MMAX_X, x)};
    MMAX_CHECK(arrays, MMAX_OK, NULL);
    MMAX_DISPATCH(sparsemax, (y, x, &s));
    return MMAX_OK;
}

MMAX_PUBLIC(entmax15)(mmax_real *y, const mmax_real *x, mmax_shape s)
{
    const mmax_array arrays[] = {MMAX_OUT(MMAX_Y, y), MMAX_IN(MMAX_X, x)};
    MMAX_CHECK(arrays, MMAX_OK, NULL);
    MMAX_DISPATCH(entmax15, (y, x, &s));
    return MMAX_OK;
}

MMAX_PUBLIC(evsoftmax)(mmax_real *y, const mmax_real *x, double epsilon, mmax_shape s)
{
    const mmax_array arrays[] = {MMAX_OUT(MMAX_Y, y), MMAX_IN(MMAX_X, x)};
    MMAX_ANY_VALUE(epsilon);
    MMAX_CHECK(arrays, !mmax_f64_is_nan(epsilon) && epsilon >= 0 && epsilon <= 1 ? MMAX_OK : MMAX_ERR_PARAM, NULL);
    MMAX_DISPATCH(evsoftmax, (y, x, epsilon, &s));
    return MMAX_OK;
}

MMAX_PUBLIC(tanhmax)(mmax_real *y, const mmax_real *x, mmax_shape s)
{
    const mmax_array arrays[] = {MMAX_OUT(MMAX_Y, y), MMAX_IN(MMAX_X, x)};
    MMAX_CHECK(arrays, MMAX_OK, NULL);
    MMAX_DISPATCH(tanhmax, (y, x, &s));
    return MMAX_OK;
}

MMAX_PUBLIC(seglu)(mmax_real *y, const mmax_real *x, const mmax_multimax_params *p, mmax_shape s)
{
    const mmax_array arrays[] = {MMAX_OUT(MMAX_Y, y), MMAX_IN(MMAX_X, x)};
    MMAX_CHECK(arrays, mmax_check_params(p, sizeof(mmax_real)), NULL);
    MMAX_DISPATCH(seglu, (y, x, p, &s));
    return MMAX_OK;
}

MMAX_PUBLIC(log_softmax)(mmax_real *y, const mmax_real *x, mmax_shape s)
{
    const mmax_array arrays[] = {MMAX_OUT(MMAX_Y, y), MMAX_IN(MMAX_X, x)};
    MMAX_CHECK(arrays, MMAX_OK, NULL);
    MMAX_DISPATCH(log_softmax, (y, x, &s));
    return MMAX_OK;
}

MMAX_PUBLIC(log_multimax)(mmax_real *y, const mmax_real *x, const mmax_multimax_params *p, mmax_shape s)
{
    const mmax_array arrays[] = {MMAX_OUT(MMAX_Y, y), MMAX_IN(MMAX_X, x)};
    MMAX_CHECK(arrays, mmax_check_params(p, sizeof(mmax_real)), NULL);
    MMAX_DISPATCH(log_multimax, (y, x, p, &s));
    return MMAX_OK;
}

/* Backward functions that need nothing but gy and y. */
#    define MMAX_PUBLIC_BACKWARD(name)                                                                     \
        MMAX_PUBLIC(name)(mmax_real * gx, const mmax_real *gy, const mmax_real *y, mmax_shape s)           \
        {                                                                                                  \
            const mmax_array arrays[] = {MMAX_OUT(MMAX_GX, gx), MMAX_IN(MMAX_GY, gy), MMAX_IN(MMAX_Y, y)}; \
            MMAX_CHECK(arrays, MMAX_OK, NULL);                                                             \
            MMAX_DISPATCH(name, (gx, gy, y, &s));                                                          \
            return MMAX_OK;                                                                                \
        }
MMAX_PUBLIC_BACKWARD(softmax_backward)
MMAX_PUBLIC_BACKWARD(sparsemax_backward)
MMAX_PUBLIC_BACKWARD(entmax15_backward)
MMAX_PUBLIC_BACKWARD(log_softmax_backward)

MMAX_PUBLIC(evsoftmax_backward)(mmax_real *gx, const mmax_real *gy, const mmax_real *y, mmax_shape s)
{
    /* The weights of the mean rule are constants: the gradient in terms of y is softmax's. */
    return MMAX_PUBLIC_NAME(softmax_backward, MMAX_TYPE)(gx, gy, y, s);
}

MMAX_PUBLIC(tanhmax_backward)
(mmax_real *gx, const mmax_real *gy, const mmax_real *y, const mmax_real *x, mmax_shape s)
{
    const mmax_array arrays[] = {MMAX_OUT(MMAX_GX, gx), MMAX_IN(MMAX_GY, gy), MMAX_IN(MMAX_Y, y), MMAX_IN(MMAX_X, x)};
    MMAX_CHECK(arrays, MMAX_OK, NULL);
    MMAX_DISPATCH(tanhmax_backward, (gx, gy, y, x, &s));
    return MMAX_OK;
}

MMAX_PUBLIC(multimax_backward)
(mmax_real *gx, mmax_multimax_grads *gp, const mmax_real *gy, const mmax_real *y, const mmax_real *x,
 const mmax_multimax_params *p, mmax_shape s)
{
    const mmax_array arrays[] = {MMAX_OUT(MMAX_GX_OR_NULL, gx), MMAX_IN(MMAX_GY, gy), MMAX_IN(MMAX_Y, y),
                                 MMAX_IN(MMAX_X, x), MMAX_OUT(MMAX_GP, gp)};
    MMAX_CHECK(arrays, gx || gp ? mmax_check_params(p, sizeof(mmax_real)) : MMAX_ERR_NULL, NULL);
    MMAX_DISPATCH(multimax_backward, (gx, gp, gy, y, x, p, &s));
    return MMAX_OK;
}

MMAX_PUBLIC(log_multimax_backward)
(mmax_real *gx, mmax_multimax_grads *gp, const mmax_real *gy, const mmax_real *y, const mmax_real *x,
 const mmax_multimax_params *p, mmax_shape s)
{
    const mmax_array arrays[] = {MMAX_OUT(MMAX_GX_OR_NULL, gx), MMAX_IN(MMAX_GY, gy), MMAX_IN(MMAX_Y, y),
                                 MMAX_IN(MMAX_X, x), MMAX_OUT(MMAX_GP, gp)};
    MMAX_CHECK(arrays, gx || gp ? mmax_check_params(p, sizeof(mmax_real)) : MMAX_ERR_NULL, NULL);
    MMAX_DISPATCH(log_multimax_backward, (gx, gp, gy, y, x, p, &s));
    return MMAX_OK;
}

MMAX_PUBLIC(seglu_backward)
(mmax_real *gx, mmax_multimax_grads *gp, const mmax_real *gy, const mmax_real *x, const mmax_multimax_params *p,
 mmax_shape s)
{
    const mmax_array arrays[] = {MMAX_OUT(MMAX_GX_OR_NULL, gx), MMAX_IN(MMAX_GY, gy), MMAX_IN(MMAX_X, x),
                                 MMAX_OUT(MMAX_GP, gp)};
    MMAX_CHECK(arrays, gx || gp ? mmax_check_params(p, sizeof(mmax_real)) : MMAX_ERR_NULL, NULL);
    MMAX_DISPATCH(seglu_backward, (gx, gp, gy, x, p, &s));
    return MMAX_OK;
}

MMAX_PUBLIC(multimodality)(double *out, const mmax_real *y, const mmax_real *x, double epsilon, mmax_shape s)
{
    const mmax_array arrays[] = {MMAX_OUT(MMAX_ROWS, out), MMAX_IN(MMAX_Y, y), MMAX_IN(MMAX_X, x)};
    MMAX_ANY_VALUE(epsilon);
    MMAX_CHECK(arrays, mmax_f64_is_finite(epsilon) ? MMAX_OK : MMAX_ERR_PARAM, NULL);
    MMAX_DISPATCH(multimodality, (out, y, x, epsilon, &s));
    return MMAX_OK;
}

MMAX_PUBLIC(sparsity)
(double *out, const mmax_real *y, const mmax_real *x, double epsilon, double reference, mmax_shape s)
{
    const mmax_array arrays[] = {MMAX_OUT(MMAX_ROWS, out), MMAX_IN(MMAX_Y, y), MMAX_IN(MMAX_X, x)};
    MMAX_ANY_VALUE(epsilon);
    MMAX_ANY_VALUE(reference);
    MMAX_CHECK(arrays,
               mmax_f64_is_finite(epsilon) && mmax_f64_is_finite(reference) && reference >= 0 ? MMAX_OK
                                                                                              : MMAX_ERR_PARAM,
               NULL);
    MMAX_DISPATCH(sparsity, (out, y, x, epsilon, reference, &s));
    return MMAX_OK;
}

/* Losses without parameters. */
#    define MMAX_PUBLIC_LOSS(name)                                                                         \
        MMAX_PUBLIC(name)(double *loss, mmax_real *gx, const mmax_real *x, mmax_targets t, mmax_shape s)   \
        {                                                                                                  \
            const mmax_array arrays[] = {MMAX_OUT(MMAX_ROWS_OR_NULL, loss), MMAX_OUT(MMAX_GX_OR_NULL, gx), \
                                         MMAX_IN(MMAX_X, x)};                                              \
            MMAX_CHECK(arrays, loss || gx ? MMAX_OK : MMAX_ERR_NULL, &t);                                  \
            MMAX_DISPATCH(name, (loss, gx, x, &t, &s));                                                    \
            return MMAX_OK;                                                                                \
        }
MMAX_PUBLIC_LOSS(softmax_loss)
MMAX_PUBLIC_LOSS(sparsemax_loss)
MMAX_PUBLIC_LOSS(entmax15_loss)

MMAX_PUBLIC(multimax_loss)
(double *loss, mmax_real *gx, mmax_multimax_grads *gp, const mmax_real *x, const mmax_multimax_params *p,
 mmax_targets t, mmax_shape s)
{
    const mmax_array arrays[] = {MMAX_OUT(MMAX_ROWS_OR_NULL, loss), MMAX_OUT(MMAX_GX_OR_NULL, gx), MMAX_IN(MMAX_X, x),
                                 MMAX_OUT(MMAX_GP, gp)};
    MMAX_CHECK(arrays, loss || gx || gp ? mmax_check_params(p, sizeof(mmax_real)) : MMAX_ERR_NULL, &t);
    MMAX_DISPATCH(multimax_loss, (loss, gx, gp, x, p, &t, &s));
    return MMAX_OK;
}

MMAX_PUBLIC(evsoftmax_loss)
(double *loss, mmax_real *gx, const mmax_real *x, double epsilon, mmax_targets t, mmax_shape s)
{
    const mmax_array arrays[] = {MMAX_OUT(MMAX_ROWS_OR_NULL, loss), MMAX_OUT(MMAX_GX_OR_NULL, gx), MMAX_IN(MMAX_X, x)};
    MMAX_ANY_VALUE(epsilon);
    MMAX_CHECK(arrays,
               !(loss || gx)                                              ? MMAX_ERR_NULL
               : !mmax_f64_is_nan(epsilon) && epsilon > 0 && epsilon <= 1 ? MMAX_OK
                                                                          : MMAX_ERR_PARAM,
               &t);
    MMAX_DISPATCH(evsoftmax_loss, (loss, gx, x, epsilon, &t, &s));
    return MMAX_OK;
}

#    undef mmax_real
#    undef MMAX_TYPE
#    undef MMAX_PUBLIC_
#    undef MMAX_PUBLIC_NAME
#    undef MMAX_PUBLIC
#    undef MMAX_IN
#    undef MMAX_OUT
#    undef MMAX_CHECK
#    undef MMAX_PUBLIC_BACKWARD
#    undef MMAX_PUBLIC_LOSS
#endif /* MMAX_PASS == 2 */

#if defined(MMAX_WANT_IMPLEMENTATION) && !defined(MMAX_PASS)

/* ==== instances: each instruction set and type ==== */
#    if !defined(MULTIMAX_FILE)
#        define MULTIMAX_FILE        "multimax.h"
#        define MMAX_FILE_BY_DEFAULT 1
#    endif
#    define MMAX_PASS 1
/* Under run-time dispatch these two are for old processors and for tests: gcc spends less time on them, a tenth of the
 * whole, and SSE2 is about as fast. */
#    if MMAX_GNUC && !defined(__clang__) && defined(__OPTIMIZE__) && !defined(__OPTIMIZE_SIZE__) && MMAX_X86 && \
        !defined(MULTIMAX_NO_DISPATCH)
#        define MMAX_BRIEFLY 1
#        pragma GCC push_options
#        pragma GCC optimize("O1")
#    endif
#    if MMAX_HAVE_SCALAR
#        define MMAX_PASS_SCALAR 1
#        define MMAX_PASS_DOUBLE 1
#        include MULTIMAX_FILE
#        undef MMAX_PASS_DOUBLE
#        define MMAX_PASS_DOUBLE 0
#        include MULTIMAX_FILE
#        undef MMAX_PASS_DOUBLE
#        undef MMAX_PASS_SCALAR
#    endif
#    if MMAX_HAVE_SSE2
#        define MMAX_PASS_SSE2   1
#        define MMAX_PASS_DOUBLE 1
#        include MULTIMAX_FILE
#        undef MMAX_PASS_DOUBLE
#        define MMAX_PASS_DOUBLE 0
#        include MULTIMAX_FILE
#        undef MMAX_PASS_DOUBLE
#        undef MMAX_PASS_SSE2
#    endif
#    if defined(MMAX_BRIEFLY)
#        undef MMAX_BRIEFLY
#        pragma GCC pop_options
#    endif
#    if MMAX_HAVE_AVX2
#        define MMAX_PASS_AVX2   1
#        define MMAX_PASS_DOUBLE 1
#        include MULTIMAX_FILE
#        undef MMAX_PASS_DOUBLE
#        define MMAX_PASS_DOUBLE 0
#        include MULTIMAX_FILE
#        undef MMAX_PASS_DOUBLE
#        undef MMAX_PASS_AVX2
#    endif
#    if MMAX_HAVE_AVX512
#        define MMAX_PASS_AVX512 1
#        define MMAX_PASS_DOUBLE 1
#        include MULTIMAX_FILE
#        undef MMAX_PASS_DOUBLE
#        define MMAX_PASS_DOUBLE 0
#        include MULTIMAX_FILE
#        undef MMAX_PASS_DOUBLE
#        undef MMAX_PASS_AVX512
#    endif
#    if MMAX_HAVE_NEON
#        define MMAX_PASS_NEON   1
#        define MMAX_PASS_DOUBLE 1
#        include MULTIMAX_FILE
#        undef MMAX_PASS_DOUBLE
#        define MMAX_PASS_DOUBLE 0
#        include MULTIMAX_FILE
#        undef MMAX_PASS_DOUBLE
#        undef MMAX_PASS_NEON
#    endif
#    if MMAX_HAVE_WASM128
#        define MMAX_PASS_WASM128 1
#        define MMAX_PASS_DOUBLE  1
#        include MULTIMAX_FILE
#        undef MMAX_PASS_DOUBLE
#        define MMAX_PASS_DOUBLE 0
#        include MULTIMAX_FILE
#        undef MMAX_PASS_DOUBLE
#        undef MMAX_PASS_WASM128
#    endif
#    undef MMAX_PASS

/* ==== choice of the instruction set ==== */
#    if MMAX_X86 && !defined(MULTIMAX_NO_DISPATCH)
/* <cpuid.h> would leave macros of its own behind. */
MMAX_INLINE void mmax_cpuid(unsigned leaf, unsigned registers[4])
{
#        if defined(_MSC_VER)
    int values[4];
    __cpuidex(values, (int)leaf, 0);
    memcpy(registers, values, sizeof values);
#        else
    __asm__ volatile("cpuid"
                     : "=a"(registers[0]), "=b"(registers[1]), "=c"(registers[2]), "=d"(registers[3])
                     : "a"(leaf), "c"(0));
#        endif
}

/* The register state that the operating system saves. */
MMAX_INLINE unsigned mmax_xgetbv(void)
{
#        if defined(_MSC_VER) && !defined(__clang__)
    return (unsigned)_xgetbv(0);
#        else
    unsigned low, high;
    __asm__ volatile(".byte 0x0f, 0x01, 0xd0" : "=a"(low), "=d"(high) : "c"(0));
    (void)high;
    return low;
#        endif
}
#    endif

MMAX_DEFINE int mmax_isa_available(mmax_isa isa)
{
    switch ((int)isa) {
    case MMAX_ISA_SCALAR: return MMAX_HAVE_SCALAR;
    case MMAX_ISA_NEON: return MMAX_HAVE_NEON;
    case MMAX_ISA_WASM128: return MMAX_HAVE_WASM128;
#    if MMAX_X86 && !defined(MULTIMAX_NO_DISPATCH)
    case MMAX_ISA_SSE2:
    case MMAX_ISA_AVX2:
    case MMAX_ISA_AVX512: {
        /* Intel SDM vol. 2, CPUID: leaf 1 ecx 12 FMA, 23 POPCNT, 27 OSXSAVE, 28 AVX, edx 26 SSE2; leaf 7 ebx 5 AVX2,
             * 16, 17, 30, 31 AVX512 F, DQ, BW, VL; XCR0 1, 2 SSE and AVX state, 5 to 7 AVX-512 state */
        unsigned most[4], one[4], seven[4] = {0, 0, 0, 0}, state = 0;
        int avx2, avx512;
        mmax_cpuid(0, most);
        mmax_cpuid(1, one);
        if (most[0] >= 7) {
            mmax_cpuid(7, seven);
        }
        if (isa == MMAX_ISA_SSE2) {
            return (int)(one[3] >> 26 & 1);
        }
        if (one[2] >> 27 & 1) {
            state = mmax_xgetbv();
        }
        avx2 = (state & 0x06) == 0x06 && (one[2] & 0x10801000) == 0x10801000 && (seven[1] & 0x20);
        avx512 = avx2 && (state & 0xe6) == 0xe6 && (seven[1] & 0xc0030000) == 0xc0030000;
        return isa == MMAX_ISA_AVX2 ? avx2 : avx512;
    }
#    else
    case MMAX_ISA_SSE2: return MMAX_HAVE_SSE2;
    case MMAX_ISA_AVX2: return MMAX_HAVE_AVX2;
    case MMAX_ISA_AVX512: return MMAX_HAVE_AVX512;
#    endif
    default: return 0;
    }
}

/* The chosen instruction set plus one; 0 before the first use. A thread that comes first does not undo what another one
 * selects meanwhile; relaxed order is enough for a single word. */
static int mmax_isa_chosen;
#    if MMAX_GNUC
#        define MMAX_LOAD(word)         __atomic_load_n(&(word), __ATOMIC_RELAXED)
#        define MMAX_STORE(word, value) __atomic_store_n(&(word), value, __ATOMIC_RELAXED)
#        define MMAX_STORE_FIRST(word, zero, value) \
            ((void)__atomic_compare_exchange_n(&(word), &(zero), value, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
#    elif defined(_MSC_VER) && MMAX_X86 /* <intrin.h> is there */
#        define MMAX_LOAD(word)         (*(volatile int *)&(word))
#        define MMAX_STORE(word, value) (*(volatile int *)&(word) = (value))
#        define MMAX_STORE_FIRST(word, zero, value) \
            ((void)_InterlockedCompareExchange((volatile long *)&(word), value, zero))
#    else
#        define MMAX_LOAD(word)                     (*(volatile int *)&(word))
#        define MMAX_STORE(word, value)             (*(volatile int *)&(word) = (value))
#        define MMAX_STORE_FIRST(word, zero, value) ((void)(MMAX_LOAD(word) == (zero) && (MMAX_STORE(word, value), 1)))
#    endif

MMAX_DEFINE mmax_isa mmax_isa_active(void)
{
    int chosen = MMAX_LOAD(mmax_isa_chosen);
    if (chosen == 0) {
        static const mmax_isa best_first[] = {MMAX_ISA_AVX512,  MMAX_ISA_AVX2, MMAX_ISA_NEON,
                                              MMAX_ISA_WASM128, MMAX_ISA_SSE2, MMAX_ISA_SCALAR};
        size_t i = 0;
        while (!mmax_isa_available(best_first[i])) {
            ++i;
        }
        MMAX_STORE_FIRST(mmax_isa_chosen, chosen, (int)best_first[i] + 1);
        chosen = MMAX_LOAD(mmax_isa_chosen);
    }
    return (mmax_isa)(chosen - 1);
}

MMAX_DEFINE mmax_status mmax_isa_select(mmax_isa isa)
{
    if (!mmax_isa_available(isa)) {
        return MMAX_ERR_ISA;
    }
    MMAX_STORE(mmax_isa_chosen, (int)isa + 1);
    return MMAX_OK;
}

MMAX_DEFINE const char *mmax_isa_name(mmax_isa isa)
{
    static const char *const names[] = {"scalar", "sse2", "avx2", "avx512", "neon", "wasm128"};
    return (unsigned)isa < MMAX_ISA_COUNT ? names[isa] : "unknown";
}

MMAX_DEFINE const char *mmax_status_string(mmax_status status)
{
    switch ((int)status) {
    case MMAX_OK: return "The call succeeded.";
    case MMAX_ERR_NULL: return "A required pointer is NULL.";
    case MMAX_ERR_SHAPE: return "The shape is impossible: a stride below cols, a length above cols, or too large.";
    case MMAX_ERR_PARAM: return "A parameter is out of range or not finite in the type of the call.";
    case MMAX_ERR_ALIAS: return "An output overlaps another array without being exactly that array.";
    case MMAX_ERR_ISA: return "This instruction set is not available here.";
    default: return "Unknown status value.";
    }
}

/* ==== small public functions ==== */

MMAX_DEFINE mmax_shape mmax_rows(size_t rows, size_t cols)
{
    mmax_shape s;
    memset(&s, 0, sizeof s);
    s.rows = rows;
    s.cols = cols;
#    if MMAX_GNUC && SIZE_MAX > 0xffffffff && !defined(__clang_analyzer__)
    /* Both by one store: passed by value a structure is copied 16 bytes at a time, and a load waits for the stores of
     * its halves, longer than a call on a short row takes. */
    {
        typedef size_t two __attribute__((__vector_size__(2 * sizeof(size_t))));
        const two both = {rows, cols};
        memcpy(&s, &both, sizeof both);
    }
#    endif
    return s;
}
MMAX_DEFINE mmax_shape mmax_row(size_t cols) { return mmax_rows(1, cols); }

MMAX_DEFINE mmax_targets mmax_labels(const int32_t *index)
{
    mmax_targets t;
    t.index = index;
    t.label_smoothing = 0;
    t.grad_scale = 1;
    return t;
}

MMAX_DEFINE mmax_multimax_params mmax_multimax_identity(int order)
{
    mmax_multimax_params p;
    memset(&p, 0, sizeof p);
    p.order = order;
    p.t_b[0] = p.t_b[1] = p.t_d[0] = p.t_d[1] = 1;
    return p;
}

MMAX_DEFINE mmax_multimax_params mmax_multimax_from_checkpoint(int order, const double ranges[4], const double ts[4])
{
    mmax_multimax_params p;
    p.order = order;
    for (int i = 0; i < 2; ++i) {
        p.b[i] = ranges[2 * i];
        p.d[i] = ranges[2 * i + 1];
        p.t_b[i] = 1 - ts[2 * i];
        p.t_d[i] = 1 + ts[2 * i + 1];
    }
    return p;
}

MMAX_DEFINE void mmax_multimax_to_checkpoint(double ranges[4], double ts[4], const mmax_multimax_params *p)
{
    for (int i = 0; i < 2; ++i) {
        ranges[2 * i] = p->b[i];
        ranges[2 * i + 1] = p->d[i];
        ts[2 * i] = 1 - p->t_b[i];
        ts[2 * i + 1] = p->t_d[i] - 1;
    }
}

/* ==== public functions of both types ==== */
#    define MMAX_CASE(isa, instance, name, args)           \
    case isa:                                              \
        MMAX_PASTE(mmax_##name, instance, MMAX_TYPE) args; \
        break;
#    if MMAX_HAVE_AVX512
#        define MMAX_CASE_AVX512(name, args) MMAX_CASE(MMAX_ISA_AVX512, avx512, name, args)
#    else
#        define MMAX_CASE_AVX512(name, args)
#    endif
#    if MMAX_HAVE_AVX2
#        define MMAX_CASE_AVX2(name, args) MMAX_CASE(MMAX_ISA_AVX2, avx2, name, args)
#    else
#        define MMAX_CASE_AVX2(name, args)
#    endif
#    if MMAX_HAVE_SSE2
#        define MMAX_CASE_SSE2(name, args) MMAX_CASE(MMAX_ISA_SSE2, sse2, name, args)
#    else
#        define MMAX_CASE_SSE2(name, args)
#    endif
#    if MMAX_HAVE_NEON
#        define MMAX_CASE_NEON(name, args) MMAX_CASE(MMAX_ISA_NEON, neon, name, args)
#    else
#        define MMAX_CASE_NEON(name, args)
#    endif
#    if MMAX_HAVE_WASM128
#        define MMAX_CASE_WASM128(name, args) MMAX_CASE(MMAX_ISA_WASM128, wasm128, name, args)
#    else
#        define MMAX_CASE_WASM128(name, args)
#    endif
#    if MMAX_HAVE_SCALAR
#        define MMAX_CASE_SCALAR(name, args) MMAX_CASE(MMAX_ISA_SCALAR, scalar, name, args)
#    else
#        define MMAX_CASE_SCALAR(name, args)
#    endif
#    define MMAX_DISPATCH(name, args)     \
        switch ((int)mmax_isa_active()) { \
            MMAX_CASE_AVX512(name, args)  \
            MMAX_CASE_AVX2(name, args)    \
            MMAX_CASE_SSE2(name, args)    \
            MMAX_CASE_NEON(name, args)    \
            MMAX_CASE_WASM128(name, args) \
            MMAX_CASE_SCALAR(name, args)  \
        default: break;                   \
        }

#    define MMAX_PASS        2
#    define MMAX_PASS_DOUBLE 0
#    include MULTIMAX_FILE
#    undef MMAX_PASS_DOUBLE
#    define MMAX_PASS_DOUBLE 1
#    include MULTIMAX_FILE
#    undef MMAX_PASS_DOUBLE
#    undef MMAX_PASS

#    if defined(__cplusplus)
} /* extern "C" */
#    endif
#    if defined(__clang__)
#        pragma clang diagnostic pop
#    endif
#    if defined(__clang__) && (defined(__x86_64__) || defined(__i386__) || defined(__aarch64__))
#        pragma float_control(pop)
#    elif MMAX_GNUC && !defined(__clang__)
#        pragma GCC diagnostic pop
#        pragma GCC pop_options
#        pragma pop_macro("__FAST_MATH__")
#    endif

/* ==== nothing internal is left behind ==== */
#    undef MMAX_GNUC
#    undef MMAX_NOTHROW
#    undef MMAX_INLINE
#    undef MMAX_STATIC
#    undef MMAX_APART
#    undef MMAX_RARE
#    undef MMAX_UNLIKELY
#    undef mmax_prefetch
#    undef MMAX_UNROLL
#    undef MMAX_UNROLL_TWICE
#    undef MMAX_X86
#    undef MMAX_HAVE_NEON
#    undef MMAX_HAVE_WASM128
#    undef MMAX_HAVE_SSE2
#    undef MMAX_HAVE_AVX2
#    undef MMAX_HAVE_AVX512
#    undef MMAX_HAVE_SCALAR
#    undef MMAX_SCALAR_FMA
#    undef MMAX_EVAL_METHOD
#    undef MMAX_EXCESS_DIGITS
#    undef MMAX_DEFINE
#    undef MMAX_X86_FINITE
#    undef MMAX_PASTE_
#    undef MMAX_PASTE
#    undef MMAX_
#    undef MMAX_F64_
#    undef MMAX_TWO_TO_64
#    undef MMAX_TWO_TO_MINUS_64
#    undef MMAX_ABOVE_ONE
#    undef mmax_f32_is_nan
#    undef mmax_f64_is_nan
#    undef mmax_f32_is_finite
#    undef mmax_f64_is_finite
#    undef mmax_f32_is_within
#    undef mmax_f64_is_within
#    undef mmax_f32_is_masked
#    undef mmax_f64_is_masked
#    undef mmax_limited
#    undef MMAX_ANY_VALUE
#    undef MMAX_KEEP
#    undef MMAX_ADD_EXACTLY
#    undef MMAX_CLANG_FAST
#    undef MMAX_LOAD
#    undef MMAX_STORE
#    undef MMAX_STORE_FIRST
#    undef MMAX_LINE
#    undef MMAX_CASE
#    undef MMAX_CASE_AVX512
#    undef MMAX_CASE_AVX2
#    undef MMAX_CASE_SSE2
#    undef MMAX_CASE_NEON
#    undef MMAX_CASE_WASM128
#    undef MMAX_CASE_SCALAR
#    undef MMAX_DISPATCH
#    undef MMAX_WANT_IMPLEMENTATION
#    if defined(MMAX_FILE_BY_DEFAULT)
#        undef MMAX_FILE_BY_DEFAULT
#        undef MULTIMAX_FILE
#    endif
#endif /* MMAX_WANT_IMPLEMENTATION, !MMAX_PASS */
