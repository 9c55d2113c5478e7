/*
 * fuzz.c: one call of any function with any input: LLVMFuzzerTestOneInput for libFuzzer, AFL and replay.c.
 *
 *   - the status is that of the interface, and after an error no byte has changed
 *   - every row has the bits of the same row alone: contiguous, cut off at both ends, out of place, in memory
 *     of exactly its size, with its head's scale as the scale and its weight in grad_scale; AVX2 and AVX-512 agree
 *   - that row obeys rules.h
 *   - nothing but the entries of outputs has changed
 */
#include "rules.h"

int LLVMFuzzerInitialize(int *count, char ***arguments);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void *exact_copy(const void *from, size_t size) { return from ? memcpy(exact(size), from, size) : NULL; }

/* n entries of a row, as they were before the call. */
static void *row_copy(const input *in, int array, size_t r, size_t first, size_t n) {
    const size_t size = in->f->size;
    unsigned char *const to = exact(n * size);
    for (size_t i = 0; i < n; ++i) {
        memcpy(to + i * size, before(in, array) + place_of(in, array, r, first + i) * size, size);
    }
    return to;
}

/* Entries that are not read are NaN, and those that are masked by a finite number -inf. */
static void copy_row(const input *in, lone *l, int a) {
    const function *f = in->f;
    size_t n = l->c.s.cols;
    const mmax_attention *attention = l->c.s.attention;
    int is_read = f->kind != LOSS || (l->index >= 0 && l->weight > 0);
    l->c.array[a] = NULL;
    if (has_array(in, a) && a != OUT) {
        l->c.array[a] = row_copy(in, a, l->row, l->start, n);
    } else if (has_array(in, a)) {
        l->c.array[a] = exact(width_of(f, &l->c) * f->size);
        memset(l->c.array[a], 0xa5, width_of(f, &l->c) * f->size); /* the call must write every entry */
    }
    for (size_t i = 0; a == X && l->c.array[a] && i < n; ++i) {
        if (!is_read) {
            set_special(f, l->c.array[a], i, SIGNALLING_NAN);
        } else if (attention && attention->masked < 0 && get(f, l->c.array[a], i) <= attention->masked) {
            set_special(f, l->c.array[a], i, MINUS_INF);
        }
    }
}

static void run_alone(const input *in, lone *l, size_t r, mmax_multimax_grads gp) {
    const function *f = in->f;
    size_t n;
    set_alone(in, l, r, is_given(in, BIAS) ? before(in, BIAS) : NULL);
    n = l->c.s.cols;
    l->gp = gp;
    l->c.gp = has(f, HAS_GP) ? &l->gp : NULL;
    for (int a = 0; a < ARRAYS; ++a) { copy_row(in, l, a); }
    if (l->c.s.attention) { l->a.bias = exact_copy(l->a.bias, n * f->size); }
    if (!has(f, HAS_GY)) { l->a.masked = 0; } /* gradients of such rows are computed in doubles */
    if (in->c.t.q) { l->c.t.q = row_copy(in, Q, r, l->start, n); }
    if (in->c.own.router.bias) {
        l->c.own.router.bias = exact_copy((const char *)in->c.own.router.bias + l->start * f->size, n * f->size);
    }
    l->c.own.index = has(f, HAS_INDEX) ? exact(l->c.own.k * sizeof *l->c.own.index) : NULL;
    CHECK(f->run(&l->c) == MMAX_OK, "%s: a row alone fails", f->name);
    if (n == 0 && has(f, HAS_INDEX)) { /* as a row without active entries */
        if (has(f, HAS_OUT)) { memset(l->c.array[OUT], 0, l->c.own.k * f->size); }
        memset(l->c.own.index, 0xff, l->c.own.k * sizeof *l->c.own.index);
    }
    if (n == 0 && !has(f, PER_HEAD)) {
        l->per_row = f->kind == METRIC                             ? double_of(0x7ff8000000000000)
                     : !has(f, HAS_LSE) && !draws(f)               ? 0
                     : l->c.s.attention && l->c.s.attention->sinks ? l->sink
                                                                   : double_of(0xfff0000000000000);
    }
}

static void end_alone(lone *l) {
    for (int a = 0; a < ARRAYS; ++a) { free(l->c.array[a]); }
    if (l->c.s.attention) { free((void *)(uintptr_t)l->a.bias); }
    free((void *)(uintptr_t)l->c.t.q);
    free((void *)(uintptr_t)l->c.own.router.bias);
    free(l->c.own.index);
}

static int same_double(double a, double b) {
    return bits_of(a) == bits_of(b) || (is_nan_double(a) && is_nan_double(b));
}

/* The loss of a row, times its weight where that is still missing. */
static double weighted(const lone *l, double loss) {
    double product = loss * l->weight;
    return !l->is_weighted || !is_finite_double(loss) ? loss : product > DBL_MAX ? DBL_MAX : product;
}

/* Whether a log-sum-exp without y is joined from blocks: with a bias or a finite mask. */
static int is_joined(const input *in, const lone *l) {
    const mmax_attention *a = in->c.s.attention;
    return has(in->f, HAS_LSE) && !is_given(in, OUT) && a && (a->bias || a->masked < 0) &&
           l->c.s.cols > 8192 / in->f->size;
}

/* The row of the call against the same row alone. */
static void compare_row(const input *in, const lone *l) {
    const function *f = in->f;
    size_t r = l->row, end = l->start + l->c.s.cols;
    const size_t first = has(f, HAS_INDEX) ? 0 : l->start, k = in->c.own.k;
    for (size_t i = 0; is_given(in, OUT) && has(f, HAS_OUT) && i < width_of(f, &in->c); ++i) {
        const unsigned char *out = in->at[OUT];
        const size_t at = place_of(in, OUT, r, i);
        int inside = has(f, HAS_INDEX) || (i >= start_of(&in->c.s, r) && i < end);
        uint64_t expected = inside ? get_bits(f, l->c.array[OUT], i - first) : empty_bits(f);
        /* In place, in a row that becomes NaN, a sigma of -inf looks like a mask. */
        if (f->order && inside && is_special(f, l->c.array[OUT], i - l->start, QUIET_NAN) &&
            get_bits(f, out, at) == empty_bits(f)) {
            continue;
        }
        CHECK(get_bits(f, out, at) == expected, "%s on %s, row %u, entry %u of [%u, %u): %llx, alone %llx", f->name,
              mmax_isa_name((mmax_isa)in->isa), (unsigned)r, (unsigned)i, (unsigned)l->start, (unsigned)end,
              (unsigned long long)get_bits(f, out, at), (unsigned long long)expected);
    }
    for (size_t j = 0; in->c.own.index && j < k; ++j) {
        const uint32_t got = in->c.own.index[r * k + j], expected = l->c.own.index[j];
        CHECK(got == (expected == UINT32_MAX ? expected : expected + l->start),
              "%s on %s, row %u, place %u of %u: %u, alone %u after %u", f->name, mmax_isa_name((mmax_isa)in->isa),
              (unsigned)r, (unsigned)j, (unsigned)k, got, expected, (unsigned)l->start);
    }
    if (in->at[PER_ROW] && is_given(in, PER_ROW) && !has(f, PER_HEAD | HAS_GRADIENT)) {
        double got = in->c.per_row[r], expected = weighted(l, l->per_row);
        CHECK(same_double(got, expected) ||
                  (is_joined(in, l) && fabs(got - expected) <= (f->size == 4 ? 4e-7 : 1e-15) * fmax(1, fabs(expected))),
              "%s on %s, row %u: %.17g, alone %.17g", f->name, mmax_isa_name((mmax_isa)in->isa), (unsigned)r, got,
              expected);
    }
}

/* AVX2 and AVX-512 give the same bits, but for gp. */
static void compare_tiers(const input *in, const lone *l, mmax_multimax_grads gp) {
    int other = in->isa == MMAX_ISA_AVX2 ? MMAX_ISA_AVX512 : MMAX_ISA_AVX2;
    lone o;
#if defined(FUZZ_ONE_TIER)
    return;
#endif
    if ((in->isa != MMAX_ISA_AVX2 && in->isa != MMAX_ISA_AVX512) || mmax_isa_select((mmax_isa)other) != MMAX_OK) {
        return;
    }
    run_alone(in, &o, l->row, gp);
    mmax_isa_select((mmax_isa)in->isa);
    for (size_t i = 0; has(in->f, HAS_OUT) && i < width_of(in->f, &o.c); ++i) {
        CHECK(get_bits(in->f, o.c.array[OUT], i) == get_bits(in->f, l->c.array[OUT], i),
              "%s, entry %u of %u differs between avx2 and avx512", in->f->name, (unsigned)i, (unsigned)o.c.s.cols);
    }
    CHECK(!o.c.own.index || memcmp(o.c.own.index, l->c.own.index, o.c.own.k * sizeof *o.c.own.index) == 0,
          "%s: index differs between avx2 and avx512", in->f->name);
    CHECK(same_double(o.per_row, l->per_row), "%s differs between avx2 and avx512", in->f->name);
    end_alone(&o);
}

/* Ignores changes in entries that the call may write; all other bytes must be as before. */
static void check_untouched(input *in, int written) {
    const function *f = in->f;
    for (int a = 0; written && a < BLOCKS; ++a) {
        size_t rows = a < ARRAYS ? in->c.s.rows : 1, n = a < ARRAYS ? width_of(f, &in->c) : 1;
        size_t bytes = a < ARRAYS ? f->size : in->extent[a];
        for (size_t k = 0; k < rows * n && bytes > 0 && in->at[a] && is_given(in, a) && is_output(a); ++k) {
            unsigned char *then = (unsigned char *)(uintptr_t)before(in, a);
            size_t at = a < ARRAYS ? place_of(in, a, k / n, k % n) * bytes : 0;
            memcpy(then + at, in->at[a] + at, bytes);
        }
    }
    for (int b = 0; b < BLOCKS; ++b) {
        const block *k = &in->blocks[b];
        CHECK(!k->base || memcmp(k->base, k->before, k->size) == 0, "%s on %s: memory of array %d has changed", f->name,
              mmax_isa_name((mmax_isa)in->isa), b);
    }
}

static void check_result(input *in) {
    mmax_multimax_grads gp = {{0, 0}, {0, 0}, {0, 0}, {0, 0}};
    static double sums[100], sizes[100];
    memset(sums, 0, sizeof sums);
    memset(sizes, 0, sizeof sizes);
    for (size_t r = 0; r < in->c.s.rows; ++r) {
        lone l;
        const int adds = has(in->f, PER_HEAD | HAS_GRADIENT);
        const size_t head = has(in->f, PER_HEAD) ? head_of(in, r) : 0;
        run_alone(in, &l, r, gp);
        if (l.c.s.cols > 0) { check_row(in, &l.c); }
        compare_row(in, &l);
        compare_tiers(in, &l, gp);
        gp = l.gp;
        sums[head] += adds ? l.per_row : 0;
        sizes[head] += adds ? fabs(l.per_row) : 0; /* products may be fused under -ffast-math */
        end_alone(&l);
    }
    for (size_t h = 0; has(in->f, PER_HEAD | HAS_GRADIENT) && is_given(in, PER_ROW) && in->c.s.rows > 0 &&
                       h < (has(in->f, PER_HEAD) ? heads_of(in) : 1);
         ++h) {
        double got = in->c.per_row[h];
        CHECK(same_double(got, sums[h]) || fabs(got - sums[h]) <= 1e-15 * sizes[h],
              "%s, head %u: %.17g, of its rows %.17g", in->f->name, (unsigned)h, got, sums[h]);
    }
}

/* Prints the call, for the reader of a failure. */
static void describe(const input *in) {
    const mmax_shape *s = &in->c.s;
    printf("call: %s on %s, rows %llu, cols %llu, inner %llu, strides x %llu, y %llu, gx %llu, gy %llu, scale %.17g\n",
           in->f->name, mmax_isa_name((mmax_isa)in->isa), (unsigned long long)s->rows, (unsigned long long)s->cols,
           (unsigned long long)s->inner, (unsigned long long)s->x_stride, (unsigned long long)s->y_stride,
           (unsigned long long)s->gx_stride, (unsigned long long)s->gy_stride, s->scale);
    printf("      epsilon %.17g, reference %.17g, k %llu, smoothing %.17g, grad_scale %.17g\n", in->c.epsilon,
           in->c.reference, (unsigned long long)in->c.own.k, in->c.t.label_smoothing, in->c.t.grad_scale);
    if (has(in->f, HAS_CUT)) {
        const mmax_truncation cut = in->c.own.cut;
        printf("      cut: k %llu, deviations %.17g, min_p %.17g, top_p %.17g, keep %llu\n", (unsigned long long)cut.k,
               cut.deviations, cut.min_p, cut.top_p, (unsigned long long)cut.keep);
    }
    for (size_t r = 0; s->starts && r < s->rows; ++r) {
        printf("      row %u starts at %u\n", (unsigned)r, s->starts[r]);
    }
    if (s->attention) {
        const mmax_attention *a = s->attention;
        printf("      head_rows %llu, heads %llu, bias %d, bias_rows %llu, bias_stride %llu, masked %.17g\n",
               (unsigned long long)a->head_rows, (unsigned long long)a->heads, a->bias != NULL,
               (unsigned long long)a->bias_rows, (unsigned long long)a->bias_stride, a->masked);
        for (size_t h = 0; s->rows < 100 && h < heads_of(in); ++h) {
            printf("      head %u: scale %.17g, slope %.17g, sink %.17g\n", (unsigned)h, a->scales ? a->scales[h] : 0,
                   a->slopes ? a->slopes[h] : 1, a->sinks ? a->sinks[h] : -INFINITY);
        }
    }
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
    CHECK(status == expected || (status != MMAX_OK && expected != MMAX_OK), /* any one of several */
          "%s on %s: %s, expected %s", in.f->name, mmax_isa_name((mmax_isa)in.isa), mmax_status_string(status),
          mmax_status_string(expected));
    if (status == expected) {
        int written = status == MMAX_OK && in.c.s.rows > 0 && in.sound;
        if (written && in.c.s.cols > 0) { check_result(&in); }
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
