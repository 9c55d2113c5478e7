/*
 * input.h: turns any string of bytes into one call of one function, right or wrong. Bytes past the end are 0, and 0
 * everywhere means the plainest choice, so that short inputs are simple calls.
 *
 *   function, instruction set, layout of the arrays, shape, pointers, lengths, targets, parameters, rows
 *
 * A double is one byte (a table, a small number, an extreme one) or eight raw ones. Rows follow a law of
 * function_table.h, or are raw bits, or lie some units in the last place from one value; single entries are then replaced.
 */
#ifndef INPUT_H
#define INPUT_H

#include <limits.h>
#include <stdlib.h>

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

enum { PER_ROW = ARRAYS, GP, BLOCKS };

typedef struct input {
    const function *f;
    int isa;
    call c; /* c.s.lengths and c.t.index are arrays of their own */
    mmax_multimax_params p;
    size_t stride[ARRAYS];     /* as the library sees them: defaults filled in */
    size_t extent[BLOCKS];     /* bytes */
    block blocks[BLOCKS];      /* an array may have none: NULL, or within another's block */
    unsigned char *at[BLOCKS]; /* where the arrays are, also those that the call is not given */
    int genuine;               /* Y is what the forward function gives for the rows in x */
    int sound;                 /* the arrays exist: the shape is no defect */
} input;

static int is_given(const input *in, int array) {
    return array < ARRAYS ? in->c.array[array] != NULL : array == GP ? in->c.gp != NULL : in->c.per_row != NULL;
}

static int has_array(const function *f, int array) {
    return array < ARRAYS ? has(f, 1u << array) : array == GP ? has(f, HAS_GP) : f->kind == LOSS || f->kind == METRIC;
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
    free((void *)(uintptr_t)in->c.s.lengths);
    free((void *)(uintptr_t)in->c.t.index);
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
    s->rows = rows < 128 ? 1 + rows % 4 : rows < 224 ? rows % 8 : rows == 250 ? SIZE_MAX / 2 : 17;
    s->cols = cols < 224    ? 1 + cols
              : cols < 250  ? (size_t)take_bits(r, 2) % (LONGEST_ROW + 1)
              : cols == 250 ? 0
              : cols == 251 ? SIZE_MAX / 2
                            : cols % 4;
    if (s->cols > 300 && s->rows > 2 && s->cols <= LONGEST_ROW && s->rows < 100) { s->rows = 2; }
    for (int i = 0; i < 4; ++i) { *strides[i] = take_stride(r, s->cols); }
    s->scale = take_double(r);
    in->sound = s->rows < 100 && s->cols <= LONGEST_ROW;
    for (int a = 0; a < ARRAYS; ++a) {
        size_t stride = *stride_of(in->f, s, (role)a);
        in->stride[a] = stride == 0 || s->rows == 1 ? s->cols : stride;
        in->sound = in->sound && (!has_array(in->f, a) || (in->stride[a] >= s->cols && in->stride[a] < 4000));
    }
    /* Without sound arrays the call is given pointers that it must not follow. */
    for (int a = 0; a < ARRAYS; ++a) {
        in->extent[a] =
            !in->sound || s->rows == 0 || s->cols == 0 ? 1 : ((s->rows - 1) * in->stride[a] + s->cols) * in->f->size;
    }
    in->extent[PER_ROW] = in->sound ? s->rows * sizeof(double) : sizeof(double);
    in->extent[GP] = sizeof(mmax_multimax_grads);
}

/* ==== layout ==== */

enum { SEPARATE, SHIFTED, IN_PLACE, TOGETHER };

static void take_layout(input *in, reader *r, unsigned layout) {
    const function *f = in->f;
    size_t room = 0;
    int host = ARRAYS;
    if (layout == TOGETHER) { /* all in the block of X, at any offset; a loss and gp are never to overlap */
        size_t offset[BLOCKS];
        int apart = take(r) % 2 ? PER_ROW : GP;
        for (int a = 0; a < BLOCKS; ++a) {
            offset[a] = (size_t)take_bits(r, 2) % 600 * (a < ARRAYS ? f->size : sizeof(double));
            room = has_array(f, a) && offset[a] + in->extent[a] > room ? offset[a] + in->extent[a] : room;
        }
        new_block(in, X, room);
        for (int a = 0; a < BLOCKS; ++a) {
            if (has_array(f, a) && a == apart) {
                new_block(in, a, in->extent[a]);
                in->at[a] = in->blocks[a].base;
            } else if (has_array(f, a)) {
                in->at[a] = in->blocks[X].base + offset[a];
            }
        }
        return;
    }
    if (layout == IN_PLACE && has(f, HAS_OUT)) {
        unsigned k = take(r);
        for (int a = GY; a < ARRAYS; ++a) { /* the first or a later input of equal stride */
            if (has_array(f, a) && in->stride[a] == in->stride[OUT] && (host == ARRAYS || k-- % 4 == 1)) { host = a; }
        }
    }
    for (int a = 0; a < BLOCKS; ++a) {
        size_t shift = layout == SHIFTED && a < ARRAYS ? take(r) % 4 * f->size : 0;
        if (has_array(f, a) && !(a == OUT && host != ARRAYS)) {
            new_block(in, a, shift + in->extent[a]);
            in->at[a] = in->blocks[a].base + shift;
        }
    }
    if (host != ARRAYS) { in->at[OUT] = in->at[host]; }
}

/* The pointers that the call gets: all that the function has, but for those in the mask. */
static void give_arrays(input *in, unsigned missing) {
    for (int a = 0; a < BLOCKS; ++a) {
        void *p = missing >> a & 1 ? NULL : in->at[a];
        if (a < ARRAYS) {
            in->c.array[a] = p;
        } else if (a == GP) {
            in->c.gp = p;
        } else {
            in->c.per_row = p;
        }
    }
    in->c.p = in->f->order && !(missing >> BLOCKS & 1) ? &in->p : NULL;
}

/* ==== lengths, targets, parameters ==== */

static size_t length_of(const mmax_shape *s, size_t row) { return s->lengths ? s->lengths[row] : s->cols; }

static void take_lengths(input *in, reader *r) {
    mmax_shape *s = &in->c.s;
    uint32_t *lengths;
    if (take(r) % 4 == 0 || !in->sound || s->cols == 0) { return; }
    lengths = exact(s->rows * sizeof *lengths);
    for (size_t row = 0; row < s->rows; ++row) {
        unsigned k = take(r);
        lengths[row] = (uint32_t)(k < 250 ? s->cols - k % (s->cols + 1) : s->cols + k - 249);
    }
    s->lengths = lengths;
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
}

/* ==== rows ==== */

enum { RAW = LAWS, NEAR, FILLS };

static void take_entries(const function *f, reader *r, void *a, size_t n, unsigned law_byte, uint64_t seed) {
    static const double extreme[] = {0, 1, -1, 1e30, -1e30, 0x1p-126, 0x1p-149, 3.4e38, -3.4e38, 88, -104, 1e-30};
    unsigned l = law_byte % FILLS, patches;
    uint64_t base = l == NEAR ? take_bits(r, f->size) : 0;
    random_state = seed;
    if (l < RAW) { fill(f, a, n, (law)l); }
    for (size_t i = 0; i < n && l >= RAW; ++i) {
        set_bits(f, a, i, l == RAW ? take_bits(r, f->size) : base + take(r) - 128);
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

/* y of one row of its own. */
static void genuine_y(const input *in, double *y, double *x, size_t n) {
    call c = in->c;
    c.array[OUT] = y;
    c.array[X] = x;
    c.p = &in->p;
    c.s = mmax_row(n);
    c.s.scale = in->c.s.scale;
    memset(y, 0, sizeof(double) * n);
    (void)in->f->forward(&c); /* with wrong parameters y stays 0 */
}

static void take_rows(input *in, reader *r) {
    static double rows[ARRAYS][LONGEST_ROW + 1];
    const function *f = in->f;
    unsigned law_of_x = take(r), law_of_y = take(r), law_of_gy = take(r);
    uint64_t seed = take(r);
    in->genuine = in->genuine && law_of_y % 4 == 0;
    for (size_t row = 0; row < in->c.s.rows; ++row) {
        size_t n = in->c.s.cols;
        take_entries(f, r, rows[X], n, law_of_x, seed * 31 + row);
        if (has(f, HAS_GY)) { take_entries(f, r, rows[GY], n, law_of_gy, seed * 37 + row); }
        if (has(f, HAS_Y)) {
            genuine_y(in, rows[Y], rows[X], length_of(&in->c.s, row) < n ? length_of(&in->c.s, row) : n);
            if (law_of_y % 4) { take_entries(f, r, rows[Y], n, law_of_y / 4, seed * 41 + row); }
        }
        for (int a = GY; a < ARRAYS; ++a) {
            if (in->at[a]) { memcpy(in->at[a] + row * in->stride[a] * f->size, rows[a], n * f->size); }
        }
    }
}

/* ==== all of it ==== */

static void take_input(input *in, const uint8_t *data, size_t size) {
    reader r = {data, size};
    unsigned isa, layout, missing;
    memset(in, 0, sizeof *in);
    in->f = &functions[take(&r) % COUNT(functions)];
    isa = take(&r) % MMAX_ISA_COUNT;
    while (mmax_isa_select((mmax_isa)isa) != MMAX_OK) { isa = (isa + 1) % MMAX_ISA_COUNT; }
    in->isa = (int)isa;
    layout = take(&r) % 4;
    missing = take(&r);
    missing = missing < 200 ? 0 : (unsigned)take_bits(&r, 1) | (missing & 1) << BLOCKS;
    take_shape(in, &r);
    missing &= in->sound ? ~0u : ~1u; /* the stride of a NULL does not matter */
    take_lengths(in, &r);
    take_targets(in, &r);
    take_params(in, &r);
    take_layout(in, &r, in->sound ? layout : SEPARATE);
    give_arrays(in, missing);
    in->genuine = layout != TOGETHER;
    if (in->at[GP]) { memset(in->at[GP], 0, sizeof(mmax_multimax_grads)); }
    if (in->sound) { take_rows(in, &r); }
    for (int b = 0; b < BLOCKS; ++b) {
        if (in->blocks[b].base) {
            in->blocks[b].before = exact(in->blocks[b].size);
            memcpy(in->blocks[b].before, in->blocks[b].base, in->blocks[b].size);
        }
    }
}

#endif /* INPUT_H */
