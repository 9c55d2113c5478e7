/*
 * fuzz.c: one call of any function with any input: LLVMFuzzerTestOneInput for libFuzzer, AFL and replay.c.
 *
 *   - the status is the one that the interface promises, and after an error no byte has changed
 *   - every row is, bit for bit, what it gives on its own: contiguous, cut off at its length, out of place, in memory
 *     of exactly its size; AVX2 and AVX-512 agree
 *   - gp is, bit for bit, that of the same rows contiguous and out of place
 *   - that row obeys rules.h
 *   - nothing but the entries of outputs has changed
 */
#include "rules.h"

int LLVMFuzzerInitialize(int *count, char ***arguments);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What one row gives on its own. */
typedef struct lone {
    call c;
    mmax_multimax_grads gp;
    double per_row;
    int32_t index;
} lone;

static void copy_row(const input *in, lone *l, int a, size_t r) {
    const function *f = in->f;
    size_t n = l->c.s.cols;
    l->c.array[a] = NULL;
    if (has_array(f, a)) {
        l->c.array[a] = exact(n * f->size);
        if (a != OUT) {
            memcpy(l->c.array[a], before(in, a) + r * in->stride[a] * f->size, n * f->size);
        } else {
            memset(l->c.array[a], 0xa5, n * f->size); /* not what the call finds there: all must be written */
        }
    }
    /* An ignored row is not read. */
    for (size_t i = 0; a == X && f->kind == LOSS && l->index < 0 && i < n; ++i) {
        set_special(f, l->c.array[a], i, SIGNALLING_NAN);
    }
}

/* gy is not to be used where y = 0 (tanhmax, seglu: where x = -inf). */
static void poison_gy(const function *f, lone *l) {
    for (size_t i = 0; has(f, HAS_GY) && i < l->c.s.cols; ++i) {
        int used = has(f, MASKED_BY_X)       ? !is_special(f, l->c.array[X], i, MINUS_INF)
                   : f->kind == LOG_BACKWARD ? !is_special(f, l->c.array[Y], i, MINUS_INF)
                                             : magnitude_bits(f, l->c.array[Y], i) != 0;
        if (!used) { set_special(f, l->c.array[GY], i, SIGNALLING_NAN); }
    }
}

static void run_alone(const input *in, lone *l, size_t r, mmax_multimax_grads gp) {
    size_t n = length_of(&in->c.s, r);
    l->c = in->c;
    l->gp = gp;
    l->per_row = -1;
    l->index = in->c.t.index ? in->c.t.index[r] : 0;
    l->c.t.index = &l->index;
    l->c.s = mmax_row(n);
    l->c.s.scale = in->c.s.scale;
    l->c.per_row = &l->per_row;
    l->c.gp = has(in->f, HAS_GP) ? &l->gp : NULL;
    for (int a = 0; a < ARRAYS; ++a) { copy_row(in, l, a, r); }
    poison_gy(in->f, l);
    CHECK(in->f->run(&l->c) == MMAX_OK, "%s: a row alone fails", in->f->name);
    if (n == 0) { /* nothing is touched then */
        l->per_row = in->f->kind == METRIC ? double_of(0x7ff8000000000000) : 0;
    }
}

static void end_alone(lone *l) {
    for (int a = 0; a < ARRAYS; ++a) { free(l->c.array[a]); }
}

static int same_double(double a, double b) {
    return bits_of(a) == bits_of(b) || (is_nan_double(a) && is_nan_double(b));
}

static int same_gp(const mmax_multimax_grads *a, const mmax_multimax_grads *b) {
    int same = 1;
    for (int k = 0; k < 2; ++k) {
        same = same && same_double(a->t_b[k], b->t_b[k]) && same_double(a->t_d[k], b->t_d[k]) &&
               same_double(a->b[k], b->b[k]) && same_double(a->d[k], b->d[k]);
    }
    return same;
}

/* The row of the call against the same row alone. */
static void compare_row(const input *in, const lone *l, size_t r) {
    const function *f = in->f;
    for (size_t i = 0; is_given(in, OUT) && has(f, HAS_OUT) && i < in->c.s.cols; ++i) {
        const unsigned char *out = in->at[OUT] + r * in->stride[OUT] * f->size;
        uint64_t expected = i < l->c.s.cols ? get_bits(f, l->c.array[OUT], i) : empty_bits(f);
        if (f->kind == FORWARD && has(f, ELEMENTWISE) && i >= l->c.s.cols) { expected = 0; }
        /* In place a sigma of -inf is not told from a mask in a row that becomes NaN. */
        if (f->order && i < l->c.s.cols && is_special(f, l->c.array[OUT], i, QUIET_NAN) &&
            get_bits(f, out, i) == empty_bits(f)) {
            continue;
        }
        CHECK(get_bits(f, out, i) == expected, "%s on %s, row %u, entry %u of %u: %llx, alone %llx", f->name,
              mmax_isa_name((mmax_isa)in->isa), (unsigned)r, (unsigned)i, (unsigned)l->c.s.cols,
              (unsigned long long)get_bits(f, out, i), (unsigned long long)expected);
    }
    if (in->at[PER_ROW] && is_given(in, PER_ROW)) {
        CHECK(same_double(in->c.per_row[r], l->per_row), "%s on %s, row %u: %.17g, alone %.17g", f->name,
              mmax_isa_name((mmax_isa)in->isa), (unsigned)r, in->c.per_row[r], l->per_row);
    }
}

/* AVX2 and AVX-512 give the same bits. */
static void compare_tiers(const input *in, const lone *l, size_t r, mmax_multimax_grads gp) {
    int other = in->isa == MMAX_ISA_AVX2 ? MMAX_ISA_AVX512 : MMAX_ISA_AVX2;
    lone o;
#if defined(FUZZ_ONE_TIER)
    return;
#endif
    if ((in->isa != MMAX_ISA_AVX2 && in->isa != MMAX_ISA_AVX512) || mmax_isa_select((mmax_isa)other) != MMAX_OK) {
        return;
    }
    run_alone(in, &o, r, gp);
    mmax_isa_select((mmax_isa)in->isa);
    for (size_t i = 0; has(in->f, HAS_OUT) && i < o.c.s.cols; ++i) {
        CHECK(get_bits(in->f, o.c.array[OUT], i) == get_bits(in->f, l->c.array[OUT], i),
              "%s, entry %u of %u differs between avx2 and avx512", in->f->name, (unsigned)i, (unsigned)o.c.s.cols);
    }
    CHECK(same_double(o.per_row, l->per_row), "%s differs between avx2 and avx512", in->f->name);
    CHECK(same_gp(&o.gp, &l->gp), "%s: gp differs between avx2 and avx512", in->f->name);
    end_alone(&o);
}

/* Forgives changes in the entries that the call may write; then all else is as before. */
static void check_untouched(input *in, int written) {
    const function *f = in->f;
    for (int a = 0; written && a < BLOCKS; ++a) {
        size_t rows = a < ARRAYS ? in->c.s.rows : 1, stride = a < ARRAYS ? in->stride[a] * f->size : 0;
        size_t bytes = a < ARRAYS ? in->c.s.cols * f->size : in->extent[a];
        for (size_t r = 0; r < rows && in->at[a] && is_given(in, a) && (a == OUT || a >= ARRAYS); ++r) {
            unsigned char *then = (unsigned char *)(uintptr_t)before(in, a);
            memcpy(then + r * stride, in->at[a] + r * stride, bytes);
        }
    }
    for (int b = 0; b < BLOCKS; ++b) {
        const block *k = &in->blocks[b];
        CHECK(!k->base || memcmp(k->base, k->before, k->size) == 0, "%s on %s: memory of array %d has changed", f->name,
              mmax_isa_name((mmax_isa)in->isa), b);
    }
}

static void check_gp(const input *in) {
    const function *f = in->f;
    const mmax_shape *s = &in->c.s;
    const size_t row_size = s->cols * f->size;
    mmax_multimax_grads got, gp;
    call c = in->c;
    memcpy(&gp, before(in, GP), sizeof gp);
    memcpy(&got, in->at[GP], sizeof got);
    c.gp = &gp;
    c.per_row = (double *)exact(s->rows * sizeof *c.per_row);
    c.s.x_stride = c.s.y_stride = c.s.gx_stride = c.s.gy_stride = 0;
    for (int a = 0; a < ARRAYS; ++a) {
        c.array[a] = has_array(f, a) ? exact(s->rows * row_size) : NULL;
        for (size_t r = 0; a != OUT && c.array[a] && r < s->rows; ++r) {
            const unsigned char *const from = before(in, a) + r * in->stride[a] * f->size;
            unsigned char *const to = (unsigned char *)c.array[a] + r * row_size;
            memset(to, 0xff, row_size); /* NaN beyond the row's length */
            memcpy(to, from, length_of(s, r) * f->size);
        }
    }
    CHECK(f->run(&c) == MMAX_OK, "%s: the same rows, contiguous, fail", f->name);
    CHECK(same_gp(&got, &gp), "%s on %s: gp is not that of the same rows, contiguous", f->name,
          mmax_isa_name((mmax_isa)in->isa));
    for (int a = 0; a < ARRAYS; ++a) { free(c.array[a]); }
    free(c.per_row);
}

static void check_result(input *in) {
    mmax_multimax_grads gp = {{0, 0}, {0, 0}, {0, 0}, {0, 0}};
    if (in->at[GP]) { memcpy(&gp, before(in, GP), sizeof gp); }
    for (size_t r = 0; r < in->c.s.rows; ++r) {
        lone l;
        run_alone(in, &l, r, gp);
        if (l.c.s.cols > 0) { check_row(in, &l.c); }
        compare_row(in, &l, r);
        compare_tiers(in, &l, r, gp);
        gp = l.gp;
        end_alone(&l);
    }
    if (in->at[GP] && is_given(in, GP)) { check_gp(in); }
}

/* What the call was, for whoever reads of a failure. */
static void describe(const input *in) {
    const mmax_shape *s = &in->c.s;
    printf("call: %s on %s, rows %llu, cols %llu, strides x %llu, y %llu, gx %llu, gy %llu, scale %.17g\n", in->f->name,
           mmax_isa_name((mmax_isa)in->isa), (unsigned long long)s->rows, (unsigned long long)s->cols,
           (unsigned long long)s->x_stride, (unsigned long long)s->y_stride, (unsigned long long)s->gx_stride,
           (unsigned long long)s->gy_stride, s->scale);
    printf("      epsilon %.17g, reference %.17g, smoothing %.17g, grad_scale %.17g\n", in->c.epsilon, in->c.reference,
           in->c.t.label_smoothing, in->c.t.grad_scale);
    printf("      order %d", in->p.order);
    for (int k = 0; k < 2; ++k) {
        printf(", t_b %.17g, t_d %.17g, b %.17g, d %.17g", in->p.t_b[k], in->p.t_d[k], in->p.b[k], in->p.d[k]);
    }
    printf("\n");
}

int LLVMFuzzerInitialize(int *count, char ***arguments) {
    (void)count;
    (void)arguments;
    return !check_begin("any call of any function");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input in;
    mmax_status expected, status;
    take_input(&in, data, size);
    expected = expected_status(&in);
    status = in.f->run(&in.c);
    CHECK(status == expected, "%s on %s: %s, expected %s", in.f->name, mmax_isa_name((mmax_isa)in.isa),
          mmax_status_string(status), mmax_status_string(expected));
    if (status == expected) {
        int written = status == MMAX_OK && in.c.s.rows > 0 && in.c.s.cols > 0;
        if (written) { check_result(&in); }
        check_untouched(&in, written);
    }
    if (check_failed) {
        describe(&in);
        printf("input: ");
        for (size_t i = 0; i < size; ++i) { printf("%02x", data[i]); }
        printf("\n");
        check_report();
        fflush(stdout);
        abort();
    }
    free_input(&in);
    return 0;
}
