/*
 * input.h: turns any string of bytes into one call of one function, right or wrong. Bytes past the end are 0, and 0
 * everywhere means the plainest choice, so that short inputs are simple calls.
 *
 *   function, instruction set, layout of the arrays, shape, pointers, lengths, targets, parameters, attention, rows
 *
 * A double is one byte (a table, a small number, an extreme one) or eight raw ones. Rows follow a law of
 * function_table.h, or are raw bits, or lie some units in the last place from one value; single entries are then replaced.
 */
#ifndef INPUT_H
#define INPUT_H

#include <limits.h>
#include <stdlib.h>

#define WITH_MORE_FUNCTIONS
#include "../function_table.h"

#define LONGEST_ROW 2100

/* ==== bytes ==== */

typedef struct reader {
    const uint8_t *at;
    size_t left;
} reader;

static unsigned take(reader *r) {
    if (r->left == 0) { return 0; }
    --r->left;
    return *r->at++;
}

static uint64_t take_bits(reader *r, size_t bytes) {
    uint64_t bits = 0;
    for (size_t i = 0; i < bytes; ++i) { bits |= (uint64_t)take(r) << (8 * i); }
    return bits;
}

static double take_double(reader *r) {
    static const double ordinary[] = {0, 1, 0.5, 2, -1, 0.1, 1e-6, 30, 1e-3, 0.25, 100, 1e4, -0.5, 3, 1e-9, 0.9};
    static const uint64_t extreme[] = {
        0x7ff8000000000000, 0x7ff0000000000000, 0xfff0000000000000, 0x8000000000000000, /* NaN, infinities, -0 */
        0x7fefffffffffffff, 0xffefffffffffffff, 0x47efffffe0000000, 0xc7efffffe0000000, /* the largest f64, f32 */
        0x47effffff0000000, 0x0010000000000000, 0x3810000000000000, 0x0000000000000001, /* between; the smallest */
        0x36a0000000000000, 0x3690000000000000, 0x3690000000000001, 0x36c0000000000000, /* near 2^-150 */
        0x7fe0000000000000, 0x43e0000000000000, 0x3ff0000000000001, 0x3fefffffffffffff, /* 2^1023, 2^63, near 1 */
        0x46293e5939a08cea, 0x39b4484bfeebc2a0, 0x5fb4484bfeebc2a0, 0x20a4484bfeebc2a0};
    unsigned k = take(r);
    if (k < 64) { return ordinary[k % COUNT(ordinary)]; }
    if (k < 200) { return ((double)k - 132) / 16; }
    return double_of(k < 248 ? extreme[k % COUNT(extreme)] : take_bits(r, 8));
}

/* ==== memory ==== */

/* One piece of memory that holds one array, or several that may overlap. */
typedef struct block {
    unsigned char *base, *before; /* before: what it held before the call */
    size_t size;
} block;

/* PER_ROW: also the gradient of a parameter, or the logarithm of a weight; GP: also an index; bias of attention, q of
 * targets: arrays of T as the first ones are */
enum { PER_ROW = ARRAYS, GP, BIAS, Q, BLOCKS };

typedef struct input {
    const function *f;
    int isa;
    call c; /* c.s.ends, c.t.index and other arrays without rows have memory of their own */
    mmax_multimax_params p;
    mmax_attention a;
    int has_bias, has_q;
    size_t stride[BLOCKS];     /* as the library sees them: defaults filled in */
    size_t extent[BLOCKS];     /* bytes */
    block blocks[BLOCKS];      /* an array may have none: NULL, or within another's block */
    unsigned char *at[BLOCKS]; /* the arrays, including those that the call does not get */
    int genuine;               /* Y is the forward function's result for x */
    int sound;                 /* the arrays exist: the shape is no defect */
} input;

static int is_given(const input *in, int array) {
    return array < ARRAYS  ? in->c.array[array] != NULL
           : array == GP   ? in->c.gp || in->c.own.index
           : array == BIAS ? in->a.bias != NULL
           : array == Q    ? in->c.t.q != NULL
                           : in->c.per_row != NULL;
}

/* sample: an index and the logarithm of a weight, and no array of T */
static int draws(const function *f) { return has(f, HAS_INDEX) && !has(f, HAS_OUT); }

static int has_array(const input *in, int array) {
    const function *f = in->f;
    return array < ARRAYS  ? has(f, 1u << array)
           : array == GP   ? has(f, HAS_GP | HAS_INDEX)
           : array == BIAS ? in->has_bias
           : array == Q    ? in->has_q
                           : f->kind == LOSS || f->kind == METRIC || has(f, HAS_LSE | HAS_GRADIENT) || draws(f);
}

static int is_output(int array) { return array == OUT || array == PER_ROW || array == GP; }

/* An array of T, with a stride. */
static int is_of_rows(int array) { return array < ARRAYS || array >= BIAS; }

/* Entries of a row of OUT. */
static size_t width_of(const function *f, const call *c) { return has(f, HAS_INDEX) ? c->own.k : c->s.cols; }

static int ignores_attention(const function *f) { return has(f, BY_PLACE) || (f->kind == METRIC && !has(f, PER_HEAD)); }

/* Row r takes bias row r % bias_rows: the call reads at most as many of them as it has rows. */
static size_t rows_of(const input *in, int array) {
    size_t rows = in->c.s.rows;
    return array == BIAS && in->a.bias_rows != 0 && in->a.bias_rows < rows ? in->a.bias_rows : rows;
}

/* Of an array of T, whose rows may interleave. */
static size_t place_of(const input *in, int array, size_t row, size_t i) {
    const size_t inner = in->c.s.inner > 1 && !(array == OUT && has(in->f, HAS_INDEX)) ? in->c.s.inner : 1;
    return row / inner * in->stride[array] + row % inner + i * inner;
}

static void *exact(size_t size) {
    void *p = malloc(size ? size : 1);
    if (!p) { abort(); }
    return p;
}

static void new_block(input *in, int array, size_t size) {
    block *b = &in->blocks[array];
    b->base = exact(size);
    b->size = size;
    memset(b->base, 0x5a, size);
}

static void put_row(const input *in, int array, size_t row, const void *entries) {
    const size_t size = in->f->size;
    for (size_t i = 0; i < in->c.s.cols; ++i) {
        memcpy(in->at[array] + place_of(in, array, row, i) * size, (const char *)entries + i * size, size);
    }
}

/* The bytes of an array as they were before the call. */
static const unsigned char *before(const input *in, int array) {
    for (int b = 0; b < BLOCKS; ++b) {
        const block *k = &in->blocks[b];
        if (k->base && in->at[array] >= k->base && in->at[array] < k->base + k->size) {
            return k->before + (in->at[array] - k->base);
        }
    }
    return NULL;
}

static void free_input(input *in) {
    for (int b = 0; b < BLOCKS; ++b) {
        free(in->blocks[b].base);
        free(in->blocks[b].before);
    }
    free((void *)(uintptr_t)in->c.s.ends);
    free((void *)(uintptr_t)in->c.s.starts);
    free((void *)(uintptr_t)in->c.t.index);
    free((void *)(uintptr_t)in->c.t.weights);
    free((void *)(uintptr_t)in->c.own.router.bias);
    free((void *)(uintptr_t)in->a.scales);
    free((void *)(uintptr_t)in->a.slopes);
    free((void *)(uintptr_t)in->a.sinks);
}

/* ==== shape ==== */

static size_t take_stride(reader *r, size_t cols) {
    static const size_t wrong[] = {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 8, SIZE_MAX / 4 + 1};
    unsigned k = take(r);
    if (k < 64) { return 0; }
    if (k < 224) { return cols + k % 32; }
    return k < 240 ? cols - 1 : wrong[k % COUNT(wrong)];
}

static void take_shape(input *in, reader *r) {
    mmax_shape *s = &in->c.s;
    size_t *strides[] = {&s->x_stride, &s->y_stride, &s->gx_stride, &s->gy_stride};
    unsigned rows = take(r), cols = take(r);
    size_t width;
    s->rows = rows < 128 ? 1 + rows % 4 : rows < 224 ? rows % 8 : rows == 250 ? SIZE_MAX / 2 : 17;
    if (rows >= 224 && rows < 245) { /* interleaved; the last block may have fewer rows */
        s->inner = 2 + rows % 4;
        s->rows = s->inner * (1 + rows / 4 % 3) - (rows % 3 == 0 ? rows / 3 % s->inner : 0);
    }
    s->cols = cols < 224    ? 1 + cols
              : cols < 250  ? (size_t)take_bits(r, 2) % (LONGEST_ROW + 1)
              : cols == 250 ? 0
              : cols == 251 ? SIZE_MAX / 2
                            : cols % 4;
    if (s->cols > 300 && s->rows > 2 && s->cols <= LONGEST_ROW && s->rows < 100 && s->inner < 2) { s->rows = 2; }
    width = s->cols * (s->inner > 1 ? s->inner : 1);
    for (int i = 0; i < 4; ++i) { *strides[i] = take_stride(r, width); }
    s->scale = take_double(r);
    in->sound = s->rows < 100 && s->cols <= LONGEST_ROW;
    for (int a = 0; a < ARRAYS; ++a) {
        size_t stride = *stride_of(in->f, s, (role)a);
        in->stride[a] = stride == 0 || s->rows == 1 || (s->rows <= s->inner && stride >= width) ? width : stride;
        in->sound = in->sound && (s->cols == 0 || !has_array(in, a) || (a == OUT && has(in->f, HAS_INDEX)) ||
                                  (in->stride[a] >= width && in->stride[a] < 4000 + width));
    }
}

static size_t head_of(const input *in, size_t row) {
    const size_t head = in->c.s.attention && in->a.head_rows ? row / in->a.head_rows : 0;
    return in->c.s.attention && in->a.heads ? head % in->a.heads : head;
}
static size_t heads_of(const input *in) {
    return in->c.s.attention && in->a.heads ? in->a.heads : head_of(in, in->c.s.rows - 1) + 1;
}

/* Without sound arrays the call gets pointers that it must not follow. */
static void set_extents(input *in) {
    const mmax_shape *s = &in->c.s;
    for (int a = 0; a < BLOCKS; ++a) {
        in->extent[a] = !in->sound || s->rows == 0 || s->cols == 0
                            ? 1
                            : (place_of(in, a, rows_of(in, a) - 1, s->cols - 1) + 1) * in->f->size;
    }
    if (has(in->f, HAS_INDEX)) { in->extent[OUT] = in->sound ? s->rows * in->c.own.k * in->f->size : 1; }
    in->extent[PER_ROW] = sizeof(double) * (!in->sound || has(in->f, HAS_GRADIENT) ? 1
                                            : has(in->f, PER_HEAD)                 ? heads_of(in)
                                                                                   : s->rows);
    in->extent[GP] = !has(in->f, HAS_INDEX) ? sizeof(mmax_multimax_grads)
                     : in->sound            ? s->rows * in->c.own.k * sizeof *in->c.own.index
                                            : 1;
}

/* ==== layout ==== */

enum { SEPARATE, SHIFTED, IN_PLACE, TOGETHER };

static void take_layout(input *in, reader *r, unsigned layout) {
    const function *f = in->f;
    size_t room = 0;
    int host = BLOCKS;
    if (layout == TOGETHER) { /* all in the block of X, at any offset; a loss and gp are never to overlap */
        size_t offset[BLOCKS];
        int apart = take(r) % 2 ? PER_ROW : GP;
        for (int a = 0; a < BLOCKS; ++a) {
            if (!has_array(in, a)) { continue; }
            offset[a] = (size_t)take_bits(r, 2) % 600 * (is_of_rows(a) ? f->size : sizeof(double));
            room = offset[a] + in->extent[a] > room ? offset[a] + in->extent[a] : room;
        }
        new_block(in, X, room);
        for (int a = 0; a < BLOCKS; ++a) {
            if (has_array(in, a) && a == apart) {
                new_block(in, a, in->extent[a]);
                in->at[a] = in->blocks[a].base;
            } else if (has_array(in, a)) {
                in->at[a] = in->blocks[X].base + offset[a];
            }
        }
        return;
    }
    if (layout == IN_PLACE && has(f, HAS_OUT)) {
        unsigned k = take(r);
        for (int a = GY; a <= BIAS; ++a) { /* the first or a later input of equal stride */
            if (has_array(in, a) && is_of_rows(a) && in->stride[a] == in->stride[OUT] &&
                in->extent[a] == in->extent[OUT] && (host == BLOCKS || k-- % 4 == 1)) {
                host = a;
            }
        }
    }
    for (int a = 0; a < BLOCKS; ++a) {
        size_t shift =
            layout == SHIFTED && is_of_rows(a) && (a < ARRAYS || has_array(in, a)) ? take(r) % 4 * f->size : 0;
        if (has_array(in, a) && !(a == OUT && host != BLOCKS)) {
            new_block(in, a, shift + in->extent[a]);
            in->at[a] = in->blocks[a].base + shift;
        }
    }
    if (host != BLOCKS) { in->at[OUT] = in->at[host]; }
}

/* Sets the pointers of the call: all arrays that the function has, without those in the mask. */
static void give_arrays(input *in, unsigned missing) {
    for (int a = 0; a < BLOCKS; ++a) {
        void *p = missing >> a & 1 ? NULL : in->at[a];
        if (a < ARRAYS) {
            in->c.array[a] = p;
        } else if (a == GP) {
            in->c.gp = has(in->f, HAS_GP) ? p : NULL;
            in->c.own.index = has(in->f, HAS_INDEX) ? p : NULL;
        } else if (a == BIAS) {
            in->a.bias = p;
        } else if (a == Q) {
            in->c.t.q = p;
        } else {
            in->c.per_row = p;
            in->c.own.gradient = has(in->f, HAS_GRADIENT) ? p : NULL;
        }
    }
    in->c.p = in->f->order && !(missing >> BLOCKS & 1) ? &in->p : NULL;
}

/* ==== lengths, targets, parameters, attention ==== */

static size_t length_of(const mmax_shape *s, size_t row) { return s->ends ? s->ends[row] : s->cols; }
static size_t start_of(const mmax_shape *s, size_t row) { return s->starts ? s->starts[row] : 0; }

static void take_lengths(input *in, reader *r) {
    mmax_shape *s = &in->c.s;
    uint32_t *lengths;
    if (take(r) % 4 == 0 || !in->sound || s->cols == 0) { return; }
    lengths = exact(s->rows * sizeof *lengths);
    for (size_t row = 0; row < s->rows; ++row) {
        unsigned k = take(r);
        lengths[row] = (uint32_t)(k < 250 ? s->cols - k % (s->cols + 1) : s->cols + k - 249);
    }
    s->ends = lengths;
}

static void take_targets(input *in, reader *r) {
    mmax_targets *t = &in->c.t;
    int32_t *index;
    size_t rows = in->sound ? in->c.s.rows : 0;
    if (in->f->kind != LOSS) { return; }
    t->label_smoothing = take_double(r);
    t->grad_scale = take_double(r);
    index = exact(rows * sizeof *index);
    for (size_t row = 0; row < rows; ++row) {
        size_t n = length_of(&in->c.s, row);
        unsigned k = take(r);
        index[row] = k < 240 && n ? (int32_t)(k % n) : k < 252 ? -1 - (int32_t)k : k == 252 ? INT32_MAX : (int32_t)n;
    }
    t->index = index;
}

/* Each cut is absent, in its range, or anything. */
static mmax_truncation take_cut(reader *r) {
    mmax_truncation cut = mmax_truncation_none();
    const unsigned on = take(r), k = take(r);
    double *const numbers[] = {&cut.deviations, &cut.min_p, &cut.top_p};
    cut.k = k < 64 ? 0 : k < 250 ? k - 63 : k < 255 ? (size_t)take_bits(r, 2) : SIZE_MAX;
    cut.keep = on & 8 ? take(r) : 0;
    for (int i = 0; i < 3; ++i) {
        if (!(on >> i & 1)) { continue; }
        *numbers[i] = take_double(r);
        if (on < 224) { *numbers[i] = fabs(*numbers[i]) < (i ? 1 : DBL_MAX) ? fabs(*numbers[i]) : 0.5; }
    }
    return cut;
}

static void take_params(input *in, reader *r) {
    in->c.epsilon = in->f->epsilon;
    in->p = params_of_order[in->f->order];
    if (take(r) % 2) {
        in->c.epsilon = take_double(r);
        in->c.reference = take_double(r);
    }
    if (in->f->order && take(r) % 2) {
        for (int k = 0; k < 2; ++k) {
            in->p.t_b[k] = take_double(r);
            in->p.t_d[k] = take_double(r);
            in->p.b[k] = take_double(r);
            in->p.d[k] = take_double(r);
        }
        in->p.order += take(r) == 255;
    }
    if (has(in->f, HAS_CUT)) {
        in->c.own.cut = take_cut(r);
        in->c.own.k = 1;
    } else if (has(in->f, HAS_INDEX | SELECTS)) {
        unsigned k = take(r);
        in->c.own.router.gate = (mmax_gate)(k % 4);
        in->c.own.k = k < 192 ? 1 + k / 2 : k < 250 ? (size_t)take_bits(r, 2) % (LONGEST_ROW + 9) : SIZE_MAX * (k % 2);
        in->sound = in->sound && !(has(in->f, HAS_INDEX) && in->c.own.k > LONGEST_ROW + 9);
        in->stride[OUT] = has(in->f, HAS_INDEX) ? in->c.own.k : in->stride[OUT];
    }
    if (has(in->f, BY_PLACE) || draws(in->f)) {
        in->c.own.seed = take_bits(r, 8);
        in->c.own.first_row = take_bits(r, 8);
    }
}

enum { STARTS = 1, SCALES = 2, BIASES = 4, SLOPES = 8, SINKS = 16, MASKED_BELOW = 32, HEADS = 64, WILD = 128 };

/* One number a head or a row; at least `least`, unless wrong ones are wanted. */
static double *take_doubles(reader *r, size_t n, unsigned on, double least) {
    double *v = exact(n * sizeof *v);
    for (size_t i = 0; i < n; ++i) {
        v[i] = take_double(r);
        if (!(on & WILD) && !(v[i] >= least)) { v[i] = fabs(v[i]); }
    }
    return v;
}

/* Starts; weights and q for losses, attention for other functions. */
static void take_attention(input *in, reader *r) {
    const function *f = in->f;
    mmax_shape *s = &in->c.s;
    unsigned on = take(r) % 2 && in->sound && s->rows && s->cols ? take(r) : 0, k;
    size_t stride, width;
    if (on & STARTS) {
        uint32_t *starts = exact(s->rows * sizeof *starts);
        for (size_t row = 0; row < s->rows; ++row) {
            size_t n = length_of(s, row), index = in->c.t.index ? (size_t)in->c.t.index[row] : 0;
            k = take(r);
            starts[row] = (uint32_t)(k < 250 ? k % (n + 1) : n + k - 249);
            if (f->kind == LOSS && in->c.t.index[row] >= 0 && index < n && starts[row] > index && k % 16) {
                starts[row] = (uint32_t)index;
            }
        }
        s->starts = starts;
    }
    if (f->kind == LOSS) {
        in->has_q = (on & BIASES) != 0;
        if (in->has_q && !(on & WILD && take(r) % 4 == 0)) {
            free((void *)(uintptr_t)in->c.t.index);
            in->c.t.index = NULL;
        }
        if (on & SLOPES) { in->c.t.weights = take_doubles(r, s->rows, on, 0); }
        if ((on & (WILD | HEADS)) == (WILD | HEADS)) { s->attention = &in->a; }
    } else if (on & ~(unsigned)(STARTS | WILD)) {
        size_t heads;
        s->attention = &in->a;
        k = on & HEADS ? take(r) : 0;
        in->a.head_rows = k < 250 ? k % (s->rows + 1) : SIZE_MAX;
        in->a.heads = k < 250 ? k / (s->rows + 1) % 4 : 0; /* 1 to 3: they repeat, or some have no row */
        heads = heads_of(in);
        in->has_bias = on & BIASES && !ignores_attention(f) && s->inner < 2;
        if (on & SCALES) { in->a.scales = take_doubles(r, heads, on, 0); }
        if (on & SLOPES && (in->has_bias || on & WILD)) { in->a.slopes = take_doubles(r, heads, on, -DBL_MAX); }
        if (on & SINKS && (has(f, TAKES_SINKS) || on & WILD)) { in->a.sinks = take_doubles(r, heads, on, -INFINITY); }
        if (on & MASKED_BELOW) { in->a.masked = (on & WILD ? 1 : -1) * fabs(take_double(r)); }
        in->a.bias_rows = in->has_bias ? take(r) % 6 : 0;
    }
    width = in->has_q && s->inner > 1 ? s->cols * s->inner : s->cols;
    stride = in->has_bias || in->has_q ? take_stride(r, width) : 0;
    in->a.bias_stride = in->c.t.q_stride = stride;
    stride = stride == 0 || rows_of(in, in->has_bias ? BIAS : Q) == 1 || (s->rows <= s->inner && stride >= width)
                 ? width
                 : stride;
    in->stride[BIAS] = in->stride[Q] = stride;
    if (in->has_bias || in->has_q) { in->sound = in->sound && stride >= width && stride < 4000 + width; }
}

/* ==== rows ==== */

enum { RAW = LAWS, NEAR, FILLS, VARIANTS = 4 * FILLS };

static void take_entries(const function *f, reader *r, void *a, size_t n, unsigned law_byte, uint64_t seed) {
    static const double extreme[] = {0, 1, -1, 1e30, -1e30, 0x1p-126, 0x1p-149, 3.4e38, -3.4e38, 88, -104, 1e-30};
    unsigned l = law_byte % FILLS, variant = law_byte / FILLS % 4, patches;
    uint64_t base = l == NEAR ? take_bits(r, f->size) : 0;
    random_state = seed;
    if (l < RAW) { fill(f, a, n, (law)l); }
    for (size_t i = 0; i < n && l >= RAW; ++i) {
        set_bits(f, a, i, l == RAW ? take_bits(r, f->size) : base + take(r) - 128);
    }
    for (size_t i = 0; variant == 3 && i < n; ++i) { set(f, a, i, get(f, a, i) + 1e6); } /* far from 0 */
    for (size_t m = 8 * n; variant == 2 && m > 1; m /= 2) { /* a weight near 1, that of the others some hundredths */
        set(f, a, n / 2, get(f, a, n / 2) + 0.7);
    }
    patches = n ? take(r) % 8 : 0;
    while (patches--) {
        size_t i = (size_t)take_bits(r, 2) % n;
        unsigned k = take(r);
        if (k < 96) {
            set_special(f, a, i, (special)(k % SPECIALS));
        } else if (k < 192) {
            set(f, a, i, extreme[k % COUNT(extreme)] * (f->size == 8 && k % 2 ? 1e270 : 1));
        } else {
            set_bits(f, a, i, take_bits(r, f->size));
        }
    }
}

/* The call on one row alone, without its arrays: from its start to its end, with its head's inputs. */
typedef struct lone {
    call c;
    mmax_attention a;
    mmax_multimax_grads gp;
    double per_row, slope, sink, weight;
    int32_t index;
    size_t row, head, start;
    int is_weighted; /* the loss still lacks the weight, which gx gets by grad_scale */
} lone;

static void set_alone(const input *in, lone *l, size_t row, const unsigned char *bias) {
    const mmax_attention *a = ignores_attention(in->f) ? NULL : in->c.s.attention;
    size_t cols = in->c.s.cols, end = length_of(&in->c.s, row);
    double factor;
    end = end < cols ? end : cols; /* it may be wrong */
    l->c = in->c;
    l->row = row;
    l->head = head_of(in, row);
    l->start = start_of(&in->c.s, row) < end ? start_of(&in->c.s, row) : end;
    if (has(in->f, BY_PLACE)) { l->start = 0; }
    l->c.own.first_row += row;
    l->per_row = has(in->f, PER_HEAD | HAS_GRADIENT) ? 0 : -1;
    l->c.per_row = l->c.own.gradient = &l->per_row;
    l->c.s = mmax_row(end - l->start);
    l->c.s.scale = a && a->scales ? a->scales[l->head] : in->c.s.scale;
    if (a) {
        l->a = in->a;
        l->a.scales = NULL;
        l->a.head_rows = l->a.heads = l->a.bias_rows = l->a.bias_stride = 0;
        if (a->slopes) { l->slope = a->slopes[l->head], l->a.slopes = &l->slope; }
        if (a->sinks) { l->sink = a->sinks[l->head], l->a.sinks = &l->sink; }
        if (bias) { l->a.bias = bias + (row % rows_of(in, BIAS) * in->stride[BIAS] + l->start) * in->f->size; }
        l->c.s.attention = &l->a;
    }
    l->index = in->c.t.index ? in->c.t.index[row] : 0;
    if (in->c.t.index) {
        l->index -= l->index >= 0 ? (int32_t)l->start : 0;
        l->c.t.index = &l->index;
    }
    l->weight = in->c.t.weights ? in->c.t.weights[row] : 1;
    factor = l->weight * (in->c.t.grad_scale == 0 ? 1 : in->c.t.grad_scale);
    l->is_weighted = in->c.t.weights && l->weight > 0 && factor != 0 && fabs(factor) <= largest(in->f);
    l->c.t.weights = in->c.t.weights && !l->is_weighted ? &l->weight : NULL;
    if (l->is_weighted) { l->c.t.grad_scale = factor; }
}

/* y of one row. */
static void genuine_y(const input *in, double *y, double *x, size_t row) {
    lone l;
    size_t size = in->f->size;
    set_alone(in, &l, row, is_given(in, BIAS) ? in->at[BIAS] : NULL);
    l.c.array[OUT] = (char *)y + l.start * size;
    l.c.array[X] = (char *)x + l.start * size;
    l.c.p = &in->p;
    memset(y, 0, sizeof(double) * in->c.s.cols);
    (void)in->f->forward(&l.c); /* with wrong parameters y stays 0 */
}

/* Makes q a distribution over the row's entries; the call must not read the others. */
static void make_distribution(const input *in, void *q, size_t row) {
    const function *f = in->f;
    size_t start = start_of(&in->c.s, row), end = length_of(&in->c.s, row), cols = in->c.s.cols;
    double sum = 0;
    for (size_t i = 0; i < cols; ++i) {
        int inside = i >= start && i < end;
        double v = fabs(get(f, q, i));
        if (inside) {
            v = v < 1e30 ? v : 0;
            set(f, q, i, v);
            sum += v;
        } else {
            set_special(f, q, i, SIGNALLING_NAN);
        }
    }
    for (size_t i = start; i < end && i < cols; ++i) { set(f, q, i, sum > 1e-30 ? get(f, q, i) / sum : i == start); }
}

/* Takes scale x off the scores of a row of the bias. */
static void cancel(const input *in, size_t row, const void *x) {
    const mmax_attention *a = &in->a;
    const double head = a->scales ? a->scales[head_of(in, row)] : in->c.s.scale, scale = head == 0 ? 1 : head;
    const double slope = a->slopes ? a->slopes[head_of(in, row)] : 1;
    for (size_t i = 0; row < rows_of(in, BIAS) && i < in->c.s.cols; ++i) {
        unsigned char *const at = in->at[BIAS] + place_of(in, BIAS, row, i) * in->f->size;
        const double b = get(in->f, at, 0) - scale / slope * get(in->f, x, i);
        if (fabs(b) < largest(in->f)) { set(in->f, at, 0, b); }
    }
}

/* Bias or q. */
static unsigned take_more_rows(input *in, reader *r, int array) {
    static double entries[LONGEST_ROW + 1];
    unsigned law_byte = take(r);
    uint64_t seed = take(r);
    for (size_t row = 0; row < rows_of(in, array); ++row) {
        take_entries(in->f, r, entries, in->c.s.cols, law_byte, seed * 43 + row);
        if (array == Q) { make_distribution(in, entries, row); }
        put_row(in, array, row, entries);
    }
    return law_byte;
}

static void take_rows(input *in, reader *r) {
    static double rows[ARRAYS][LONGEST_ROW + 1];
    const function *f = in->f;
    unsigned law_of_x = take(r), law_of_y = take(r), law_of_gy = take(r);
    uint64_t seed = take(r);
    in->genuine = in->genuine && law_of_y % 4 == 0;
    const unsigned law_of_bias = in->has_bias ? take_more_rows(in, r, BIAS) : 0;
    if (in->has_q) { (void)take_more_rows(in, r, Q); }
    for (size_t row = 0; row < in->c.s.rows; ++row) {
        size_t n = in->c.s.cols;
        take_entries(f, r, rows[X], n, law_of_x, seed * 31 + row);
        if (law_of_bias / VARIANTS % 2) { cancel(in, row, rows[X]); }
        if (has(f, HAS_GY)) { take_entries(f, r, rows[GY], n, law_of_gy, seed * 37 + row); }
        if (has(f, HAS_Y)) {
            genuine_y(in, rows[Y], rows[X], row);
            if (law_of_y % 4) { take_entries(f, r, rows[Y], n, law_of_y / 4, seed * 41 + row); }
        }
        for (int a = GY; a < ARRAYS; ++a) {
            if (in->at[a]) { put_row(in, a, row, rows[a]); }
        }
    }
}

/* The bias and the groups of a router, at the end of the input: a short input has none. Groups go without starts and ends. */
static void take_router(input *in, reader *r) {
    const unsigned law_byte = take(r), groups = take(r) % 8;
    mmax_router *const router = &in->c.own.router;
    void *bias;
    if (!has(in->f, HAS_INDEX) || draws(in->f) || in->c.s.cols == 0) { return; }
    if (groups > 1 && in->c.s.cols % groups == 0 && !in->c.s.starts && !in->c.s.ends) {
        router->groups = groups;
        router->group_k = 1 + take(r) % groups;
        router->group_best = take(r) % 4;
    }
    if (law_byte == 0) { return; }
    bias = exact(in->c.s.cols * in->f->size);
    take_entries(in->f, r, bias, in->c.s.cols, law_byte, take(r));
    router->bias = bias;
}

/* ==== all of it ==== */

static void take_input(input *in, const uint8_t *data, size_t size) {
    reader r = {data, size};
    unsigned isa, layout, missing;
    memset(in, 0, sizeof *in);
    in->f = any_function(take(&r) % ALL);
    isa = take(&r) % MMAX_ISA_COUNT;
    while (mmax_isa_select((mmax_isa)isa) != MMAX_OK) { isa = (isa + 1) % MMAX_ISA_COUNT; }
    in->isa = (int)isa;
    layout = take(&r) % 4;
    missing = take(&r);
    missing = missing < 200 ? 0 : (unsigned)take_bits(&r, 1) | (missing & 1) << BLOCKS;
    take_shape(in, &r);
    take_lengths(in, &r);
    take_targets(in, &r);
    take_params(in, &r);
    take_attention(in, &r);
    set_extents(in);
    take_layout(in, &r, in->sound ? layout : SEPARATE);
    missing &= in->sound ? ~0u : ~(1u | 1u << BIAS | 1u << Q); /* the stride of a NULL does not matter */
    give_arrays(in, missing);
    in->genuine = layout != TOGETHER;
    if (in->sound) {
        take_rows(in, &r);
        take_router(in, &r);
    }
    /* what calls add to, which may lie where an array that is not given would be */
    if (has(in->f, HAS_GP)) { memset(in->at[GP], 0, sizeof(mmax_multimax_grads)); }
    if (has(in->f, PER_HEAD | HAS_GRADIENT)) { memset(in->at[PER_ROW], 0, in->extent[PER_ROW]); }
    for (int b = 0; b < BLOCKS; ++b) {
        if (in->blocks[b].base) {
            in->blocks[b].before = exact(in->blocks[b].size);
            memcpy(in->blocks[b].before, in->blocks[b].base, in->blocks[b].size);
        }
    }
}

#endif /* INPUT_H */
