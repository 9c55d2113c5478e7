/*
 * test_api.c: shapes, parameters, checkpoints, instruction sets, status strings, versions, and the two metrics against
 * their definitions.
 *
 *     test_api --chosen sse2    whether it is that instruction set, and what concerns instruction sets alone
 */
#include "function_table.h"

/* ==== small functions ==== */

static void test_shapes(void) {
    TEST("mmax_row is one contiguous vector, mmax_rows contiguous rows, mmax_labels has no smoothing") {
        const int32_t index[1] = {3};
        mmax_shape row = mmax_row(7), rows = mmax_rows(5, 7);
        mmax_targets t = mmax_labels(index);
        const mmax_attention none = mmax_attention_none();
        const mmax_multimax_grads gp = mmax_grads_zero();
        CHECK(none.head_rows == 0 && !none.scales && !none.bias && none.bias_rows == 0 && none.bias_stride == 0 &&
                  !none.slopes && !none.sinks && none.masked == 0 && none.heads == 0,
              "mmax_attention_none");
        for (int i = 0; i < 2; ++i) {
            CHECK(gp.t_b[i] == 0 && gp.t_d[i] == 0 && gp.b[i] == 0 && gp.d[i] == 0, "mmax_grads_zero");
        }
        CHECK(row.rows == 1 && row.cols == 7, "%u x %u", (unsigned)row.rows, (unsigned)row.cols);
        CHECK(rows.rows == 5 && rows.cols == 7, "%u x %u", (unsigned)rows.rows, (unsigned)rows.cols);
        CHECK(row.ends == NULL && rows.ends == NULL, "lengths are not NULL");
        CHECK(row.accumulate == 0 && rows.accumulate == 0, "gradients add");
        CHECK((row.scale == 0 || row.scale == 1) && (rows.scale == 0 || rows.scale == 1), "%g %g", row.scale,
              rows.scale);
        CHECK((rows.x_stride == 0 || rows.x_stride == 7) && (rows.y_stride == 0 || rows.y_stride == 7) &&
                  (rows.gx_stride == 0 || rows.gx_stride == 7) && (rows.gy_stride == 0 || rows.gy_stride == 7),
              "the rows are not contiguous");
        CHECK(t.index == index && t.label_smoothing == 0 && (t.grad_scale == 0 || t.grad_scale == 1), "%g %g",
              t.label_smoothing, t.grad_scale);
    }
    TEST("defaults: stride 0 is cols, scale 0 is 1, grad_scale 0 is 1") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa) {
                static uint64_t by_default[2 * 33];
                double value;
                call c = call_of(f, 2, 33, NORMAL_4, 60);
                c.t.grad_scale = c.s.scale = 0;
                c.s.x_stride = c.s.y_stride = c.s.gx_stride = c.s.gy_stride = 0;
                CHECK(f->run(&c) == MMAX_OK, "%s", f->name);
                for (size_t i = 0; i < 2 * 33; ++i) { by_default[i] = get_bits(f, c.array[OUT], i); }
                value = row_storage[1];
                c.t.grad_scale = c.s.scale = 1;
                c.s.x_stride = c.s.y_stride = c.s.gx_stride = c.s.gy_stride = 33;
                CHECK(f->run(&c) == MMAX_OK, "%s", f->name);
                for (size_t i = 0; i < 2 * 33; ++i) {
                    CHECK(by_default[i] == get_bits(f, c.array[OUT], i), "%s: entry %u", f->name, (unsigned)i);
                }
                CHECK(bits_of(value) == bits_of(row_storage[1]), "%s: %g, %g", f->name, value, row_storage[1]);
            }
    }
}

static void test_params(void) {
    TEST("the identity has t = 1 and b = d = 0, and is softmax") {
        for (int order = 1; order <= 2; ++order) {
            mmax_multimax_params p = mmax_multimax_identity(order);
            CHECK(p.order == order, "order %d", p.order);
            for (int k = 0; k < 2; ++k) {
                CHECK(p.t_b[k] == 1 && p.t_d[k] == 1 && p.b[k] == 0 && p.d[k] == 0, "order %d, term %d", order, k);
            }
            FOR_EACH_ISA(isa)
                for (size_t k = 0; k < 2; ++k) {
                    const function *softmax = function_named(k ? "softmax_f64" : "softmax_f32");
                    const function *multimax = function_named(k ? "multimax(1)_f64" : "multimax(1)_f32");
                    call c = call_of(softmax, 1, 100, NORMAL_4, 61), m = c;
                    m.array[OUT] = storage[Y];
                    m.p = &p;
                    CHECK(softmax->run(&c) == MMAX_OK && multimax->run(&m) == MMAX_OK, "status");
                    for (size_t i = 0; i < 100; ++i) {
                        double a = get(softmax, c.array[OUT], i), b = get(softmax, m.array[OUT], i);
                        CHECK(fabs(a - b) <= 20 * eps_of(softmax) * a, "%g, %g", a, b);
                    }
                }
        }
    }
    TEST("a checkpoint holds ranges = {b1, d1, b2, d2} and ts = {1-t_b1, t_d1-1, 1-t_b2, t_d2-1}") {
        const double ranges[4] = {-0.25, 1.5, -3, 2.75}, ts[4] = {-0.5, -0.125, 0.0625, 0.75};
        for (int order = 1; order <= 2; ++order) {
            double r[4] = {9, 9, 9, 9}, t[4] = {9, 9, 9, 9};
            mmax_multimax_params p = mmax_multimax_from_checkpoint(order, ranges, ts);
            CHECK(p.order == order, "order %d", p.order);
            CHECK(p.b[0] == -0.25 && p.d[0] == 1.5 && p.t_b[0] == 1.5 && p.t_d[0] == 0.875, "first order");
            if (order == 2) {
                CHECK(p.b[1] == -3 && p.d[1] == 2.75 && p.t_b[1] == 0.9375 && p.t_d[1] == 1.75, "second order");
            }
            mmax_multimax_to_checkpoint(r, t, &p);
            for (int k = 0; k < 2 * order; ++k) {
                CHECK(r[k] == ranges[k] && t[k] == ts[k], "order %d: %d: %g %g", order, k, r[k], t[k]);
            }
        }
    }
    TEST("to a checkpoint and back, for parameters at random") {
        random_state = 62;
        for (int k = 0; k < 1000; ++k) {
            double r[4], t[4];
            mmax_multimax_params p = mmax_multimax_identity(2), q;
            for (int n = 0; n < 2; ++n) {
                p.t_b[n] = 1 + random_normal();
                p.t_d[n] = 1 + random_normal();
                p.b[n] = random_normal();
                p.d[n] = random_normal();
            }
            mmax_multimax_to_checkpoint(r, t, &p);
            q = mmax_multimax_from_checkpoint(2, r, t);
            for (int n = 0; n < 2; ++n) {
                CHECK(q.b[n] == p.b[n] && q.d[n] == p.d[n], "kinks %g %g", q.b[n], q.d[n]);
                CHECK(fabs(q.t_b[n] - p.t_b[n]) < 1e-15 && fabs(q.t_d[n] - p.t_d[n]) < 1e-15, "temperatures %g %g",
                      q.t_b[n], q.t_d[n]);
            }
        }
    }
    TEST("order 1 neither reads the second entries of p nor touches those of gp") {
        const uint64_t minus_zero = (uint64_t)1 << 63;
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                if (f->order == 1) {
                    mmax_multimax_params p = params_of_order[1];
                    uint64_t first = 0;
                    for (int garbage = 0; garbage < 2; ++garbage) {
                        call c = call_of(f, 1, 70, NORMAL_1, 63);
                        c.p = &p;
                        /* -0: adding an empty sum would change it, too */
                        gp_storage.t_b[1] = gp_storage.t_d[1] = gp_storage.b[1] = gp_storage.d[1] = -0.0;
                        if (garbage) { p.t_b[1] = p.t_d[1] = p.b[1] = p.d[1] = double_of(0x7ff8000000000000); }
                        make_y(f, &c);
                        CHECK(f->run(&c) == MMAX_OK, "%s", f->name);
                        CHECK(bits_of(gp_storage.t_b[1]) == minus_zero && bits_of(gp_storage.t_d[1]) == minus_zero &&
                                  bits_of(gp_storage.b[1]) == minus_zero && bits_of(gp_storage.d[1]) == minus_zero,
                              "%s: gp", f->name);
                        for (size_t i = 0; i < 70; ++i) {
                            first += (garbage ? (uint64_t)0 - 1 : 1) * (i + 1) * get_bits(f, c.array[OUT], i);
                        }
                    }
                    CHECK(first == 0, "%s reads them", f->name);
                }
    }
    TEST("gp is added to, call by call and row by row") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                if (has(f, HAS_GP)) {
                    enum { GRADIENTS = sizeof(mmax_multimax_grads) / sizeof(double) };
                    const double before = 2.5;
                    double together[GRADIENTS], apart[GRADIENTS] = {0}, one_row[GRADIENTS];
                    call c = call_of(f, 4, 50, NORMAL_1, 64);
                    for (size_t k = 0; k < GRADIENTS; ++k) {
                        memcpy((char *)&gp_storage + k * sizeof before, &before, sizeof before);
                    }
                    CHECK(f->run(&c) == MMAX_OK, "%s", f->name);
                    memcpy(together, &gp_storage, sizeof together);
                    for (size_t row = 0; row < 4; ++row) {
                        call one = c;
                        for (int r = 0; r < ARRAYS; ++r) { one.array[r] = (char *)c.array[r] + row * 50 * f->size; }
                        one.per_row = c.per_row + row;
                        one.t.index = c.t.index + row;
                        one.s.rows = 1;
                        memset(&gp_storage, 0, sizeof gp_storage);
                        CHECK(f->run(&one) == MMAX_OK, "%s", f->name);
                        memcpy(one_row, &gp_storage, sizeof one_row);
                        for (size_t k = 0; k < GRADIENTS; ++k) { apart[k] += one_row[k]; }
                    }
                    for (size_t k = 0; k < GRADIENTS; ++k) {
                        /* The sums of a few rows are in the type: the roundings of 200 terms are some 1e-6 in f32. */
                        double noise = f->size == sizeof(float) ? 1e-6 : 2e-15;
                        CHECK(fabs(before + apart[k] - together[k]) <= noise * (1 + fabs(together[k])),
                              "%s: gradient %u: %.17g, not %.17g", f->name, (unsigned)k, together[k],
                              before + apart[k]);
                    }
                }
    }
}

static void test_status_strings(void) {
    TEST("mmax_status_string is a sentence for every status, also for unknown values") {
        for (int k = -3; k < 40; ++k) {
            const char *text = mmax_status_string((mmax_status)k);
            CHECK(text != NULL && strlen(text) > 1, "status %d", k);
        }
        for (int k = MMAX_OK; k <= MMAX_ERR_ATTENTION; ++k) {
            for (int other = MMAX_OK; other < k; ++other) {
                CHECK(strcmp(mmax_status_string((mmax_status)k), mmax_status_string((mmax_status)other)) != 0,
                      "%d and %d read the same", k, other);
            }
        }
        CHECK(mmax_status_string((mmax_status)0x7fffffff) != NULL, "INT_MAX");
        CHECK(strstr(mmax_status_string(MMAX_ERR_ALIAS), "same pointer") &&
                  strstr(mmax_status_string(MMAX_ERR_ALIAS), "same stride"),
              "what being an input means");
        CHECK(strstr(mmax_status_string(MMAX_ERR_SCALE), "scales") &&
                  strstr(mmax_status_string(MMAX_ERR_TARGETS), "label_smoothing") &&
                  strstr(mmax_status_string(MMAX_ERR_TARGETS), "grad_scale") &&
                  strstr(mmax_status_string(MMAX_ERR_TARGETS), "weights") &&
                  strstr(mmax_status_string(MMAX_ERR_TARGETS), "index") &&
                  strstr(mmax_status_string(MMAX_ERR_ATTENTION), "slopes") &&
                  strstr(mmax_status_string(MMAX_ERR_ATTENTION), "sinks") &&
                  strstr(mmax_status_string(MMAX_ERR_ATTENTION), "masked"),
              "the fields are not named");
        static const char *const of_param[] = {"order", "t_b",   "t_d", " b,", " d,",        "epsilon", "reference",
                                               "k,",    "alpha", "cap", "q,",  "deviations", "min_p",   "top_p"};
        static const char *const of_shape[] = {"rows", "cols", "stride", "inner", "ends", "starts", "heads", "k "};
        for (size_t i = 0; i < COUNT(of_param); ++i) {
            CHECK(strstr(mmax_status_string(MMAX_ERR_PARAM), of_param[i]), "%s", of_param[i]);
        }
        for (size_t i = 0; i < COUNT(of_shape); ++i) {
            CHECK(strstr(mmax_status_string(MMAX_ERR_SHAPE), of_shape[i]), "%s", of_shape[i]);
        }
        CHECK(strstr(mmax_status_string(MMAX_ERR_NULL), "output") &&
                  strstr(mmax_status_string(MMAX_ERR_ALIAS), "accumulate"),
              "outputs");
        CHECK(MMAX_OK == 0 && MMAX_ERR_NULL == 1 && MMAX_ERR_SHAPE == 2 && MMAX_ERR_PARAM == 3 && MMAX_ERR_ALIAS == 4 &&
                  MMAX_ERR_ISA == 5 && MMAX_ERR_SCALE == 6 && MMAX_ERR_TARGETS == 7 && MMAX_ERR_ATTENTION == 8,
              "the numbers are part of the interface");
    }
}

static void test_isa(void) {
    TEST("the active instruction set is available; a selected one is active; an unavailable one changes nothing") {
        mmax_isa at_start = mmax_isa_active();
        int available = 0;
        CHECK(mmax_isa_available(at_start), "%s", mmax_isa_name(at_start));
        for (int k = 0; k < MMAX_ISA_COUNT; ++k) {
            mmax_isa isa = (mmax_isa)k, was = mmax_isa_active();
            mmax_status status = mmax_isa_select(isa);
            available += mmax_isa_available(isa) != 0;
            if (mmax_isa_available(isa)) {
                CHECK(status == MMAX_OK && mmax_isa_active() == isa, "%s", mmax_isa_name(isa));
            } else {
                CHECK(status == MMAX_ERR_ISA && mmax_isa_active() == was, "%s", mmax_isa_name(isa));
            }
        }
        CHECK(available >= 1, "none is available");
        CHECK(mmax_isa_select(at_start) == MMAX_OK && mmax_isa_active() == at_start, "back to the first");
    }
    TEST("values out of range are not available, not selectable, and have a name that is not NULL") {
        static const int outside[] = {-1, MMAX_ISA_COUNT, 31, 32, 33, 64, 1000, 0x7fffffff, -0x7fffffff};
        mmax_isa was = mmax_isa_active();
        for (size_t k = 0; k < COUNT(outside); ++k) {
            mmax_isa isa = (mmax_isa)outside[k];
            CHECK(mmax_isa_available(isa) == 0, "%d", outside[k]);
            CHECK(mmax_isa_select(isa) == MMAX_ERR_ISA && mmax_isa_active() == was, "%d", outside[k]);
            CHECK(mmax_isa_name(isa) != NULL, "%d", outside[k]);
        }
    }
    TEST("names") {
        static const char *const names[MMAX_ISA_COUNT] = {"scalar", "sse2", "avx2", "avx512", "neon", "wasm128"};
        for (int k = 0; k < MMAX_ISA_COUNT; ++k) {
            CHECK(strcmp(mmax_isa_name((mmax_isa)k), names[k]) == 0, "%s, not %s", mmax_isa_name((mmax_isa)k),
                  names[k]);
        }
    }
}

static void test_chosen(const char *name) {
    TEST("the instruction set chosen is the best that the processor has") {
        float x[5] = {1, 2, 3, 4, 5};
        CHECK(mmax_softmax_f32(x, x, mmax_row(5)) == MMAX_OK && fabsf(x[4] - 0.63640865f) < 1e-6f, "%g", x[4]);
        CHECK(strcmp(mmax_isa_name(mmax_isa_active()), name) == 0, "%s", mmax_isa_name(mmax_isa_active()));
    }
}

static void test_version(void) {
    TEST("the version string is that of the three numbers") {
        char text[64];
        sprintf(text, "%d.%d.%d", MULTIMAX_VERSION_MAJOR, MULTIMAX_VERSION_MINOR, MULTIMAX_VERSION_PATCH);
        CHECK(strcmp(text, MULTIMAX_VERSION) == 0, "%s, numbers %s", MULTIMAX_VERSION, text);
        CHECK(strcmp(text, mmax_version()) == 0, "%s, numbers %s", mmax_version(), text);
    }
}

/* ==== metrics ==== */

static int is_active(const function *f, const call *c, size_t i) { return !is_special(f, c->array[X], i, MINUS_INF); }

static double multimodality(const function *f, const call *c, size_t n) {
    size_t top = n, count = 0;
    double sum = 0;
    for (size_t i = 0; i < n; ++i) {
        if (is_active(f, c, i) && (top == n || get(f, c->array[X], i) > get(f, c->array[X], top))) { top = i; }
    }
    for (size_t i = 0; i < n; ++i) {
        double x = get(f, c->array[X], i);
        if (is_active(f, c, i) && x > c->epsilon && x < get(f, c->array[X], top)) {
            sum += get(f, c->array[Y], top) - get(f, c->array[Y], i);
            ++count;
        }
    }
    return count ? 1 - sum / (double)count : -1;
}

static double sparsity(const function *f, const call *c, size_t n) {
    const function *softmax = function_named(f->size == 4 ? "softmax_f32" : "softmax_f64");
    static double y[MAX_ENTRIES];
    double reference = c->reference, sum = 0;
    size_t count = 0;
    if (reference == 0) {
        call s = *c;
        s.array[OUT] = y;
        s.s.scale = 1;
        CHECK(softmax->run(&s) == MMAX_OK, "softmax");
        reference = 1;
        for (size_t i = 0; i < n; ++i) {
            if (is_active(f, c, i)) { reference = fmin(reference, get(f, y, i)); }
        }
    }
    for (size_t i = 0; i < n; ++i) {
        if (is_active(f, c, i) && get(f, c->array[X], i) < c->epsilon) {
            double p = get(f, c->array[Y], i);
            sum += reference == 0 ? p == 0 : exp(-p / reference);
            ++count;
        }
    }
    return count ? sum / (double)count : -1;
}

/* The definitions above give -1 for NaN: with probabilities a metric lies in [0,1]. */
static void check_metric(const function *f, const call *c, size_t n, const char *what) {
    double right = has(f, HAS_REFERENCE) ? sparsity(f, c, n) : multimodality(f, c, n);
    CHECK(f->run(c) == MMAX_OK, AT, AT_ARGS(f, n));
    if (right < 0) {
        CHECK(is_nan_double(row_storage[0]), AT ": %s: %g where there is no such entry", AT_ARGS(f, n), what,
              row_storage[0]);
    } else {
        CHECK(fabs(row_storage[0] - right) <= 200 * eps_of(f), AT ": %s: %.10g, not %.10g", AT_ARGS(f, n), what,
              row_storage[0], right);
    }
}

static void test_metrics(void) {
    static const double thresholds[] = {0, -1.5, 0.75, 2, -1e9, 1e9};
    static const law laws[] = {NORMAL_1, NORMAL_4, TIES, MASKED, EQUAL, ONE_HOT};
    TEST("metrics by their definitions; thresholds apply to x unscaled; reference 0 is softmax(x)_min") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n)
                    if (f->kind == METRIC) {
                        for (size_t k = 0; k < COUNT(thresholds) * COUNT(laws) * 4; ++k) {
                            call c = call_of(f, 1, n, laws[k / 4 % COUNT(laws)], 70 + k);
                            c.epsilon = thresholds[k / 4 / COUNT(laws)];
                            c.reference = k % 2 ? 1.0 / (double)n : 0;
                            c.s.scale = k / 2 % 2 ? 0.125 : 0;
                            make_y(f, &c);
                            check_metric(f, &c, n, "random row");
                        }
                    }
    }
    TEST("a threshold is strict: an entry equal to epsilon counts in neither metric") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n)
                    if (f->kind == METRIC) {
                        call c = call_of(f, 1, n, EQUAL, 71);
                        set(f, c.array[X], n - 1, 3);
                        make_y(f, &c);
                        c.epsilon = get(f, c.array[X], 0);
                        check_metric(f, &c, n, "epsilon is an entry");
                    }
    }
    TEST("a threshold between two neighbouring floats, the smallest there are") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                for (int quarters = -20; f->kind == METRIC && quarters <= 20; ++quarters) {
                    call c = call_of(f, 1, 10, NORMAL_1, 72);
                    for (int i = 0; i < 9; ++i) { set(f, c.array[X], (size_t)i, ldexp(i - 4, -149)); }
                    set(f, c.array[X], 9, 1);
                    c.epsilon = ldexp(quarters, -151);
                    check_metric(f, &c, 10, "subnormal numbers");
                }
    }
    TEST("multi-modality: y_max is y at the first largest x, and equal entries do not count") {
        FOR_EACH_ISA(isa) {
            const float x[5] = {1, 3, 2, 3, 3}, y[5] = {0.5f, 0.25f, 0.125f, 0.75f, 0.875f};
            double out = 0;
            CHECK(mmax_multimodality_f32(&out, y, x, 0, mmax_row(5)) == MMAX_OK, "status");
            CHECK(fabs(out - (1 - ((0.25 - 0.5) + (0.25 - 0.125)) / 2)) < 1e-12, "%g", out);
            CHECK(mmax_multimodality_f32(&out, y, x, 1.5, mmax_row(5)) == MMAX_OK, "status");
            CHECK(fabs(out - (1 - (0.25 - 0.125))) < 1e-12, "%g", out);
        }
    }
    TEST("multimodality of y of any size is finite") {
        FOR_EACH_ISA(isa) {
            static float x[400], y[400];
            static double x64[400], y64[400];
            double out = 0;
            for (int i = 0; i < 400; ++i) {
                x[i] = (float)(x64[i] = i == 7 ? 2 : 1);
                y[i] = i == 7 ? 3e38f : -2e38f;
                y64[i] = i == 7 ? 1.5e308 : 0.5e308;
            }
            CHECK(mmax_multimodality_f32(&out, y, x, 0, mmax_row(400)) == MMAX_OK &&
                      fabs(out + ((double)y[7] - (double)y[0])) <= 1e-6 * (double)y[7],
                  "f32: %g", out);
            CHECK(mmax_multimodality_f64(&out, y64, x64, 0, mmax_row(400)) == MMAX_OK && fabs(out + 1e308) <= 1e294,
                  "f64: %g", out);
            y64[0] = -DBL_MAX;
            CHECK(mmax_multimodality_f64(&out, y64, x64, 0, mmax_row(1 + 7)) == MMAX_OK &&
                      fabs(out / 1e308 + 9.2976931348623157 / 7) <= 1e-12,
                  "f64: %g", out);
            y64[7] = DBL_MAX;
            x64[1] = x64[2] = x64[3] = x64[4] = x64[5] = x64[6] = -1;
            CHECK(mmax_multimodality_f64(&out, y64, x64, 0, mmax_row(1 + 7)) == MMAX_OK && out == -DBL_MAX, "f64: %g",
                  out);
        }
    }
    TEST("sparsity: where the reference has underflowed to 0, 1 if y_l = 0, else 0") {
        FOR_EACH_ISA(isa) {
            const double x[5] = {0, -2000, -1, -3000, 5}, y[5] = {0.25, 0, 0.125, 1e-300, 0.5};
            const float xs[3] = {0, -88, -1}, ys[3] = {0.25f, 0, 1.2e-38f};
            double out = 0;
            CHECK(mmax_sparsity_f64(&out, y, x, 4, 0, mmax_row(5)) == MMAX_OK, "status");
            CHECK(out == 0.25, "%g", out);
            CHECK(mmax_sparsity_f64(&out, y, x, -0.5, 0, mmax_row(5)) == MMAX_OK, "status");
            CHECK(fabs(out - 1.0 / 3) < 1e-15, "%g", out);
            CHECK(mmax_sparsity_f32(&out, ys, xs, -0.5, 0, mmax_row(3)) == MMAX_OK, "status");
            CHECK(out == 0.5, "%g", out);
        }
    }
    TEST("sparsity: a reference beyond the range of f32 is not one of 0") {
        FOR_EACH_ISA(isa) {
            const float x[3] = {0, -300, -1}, y[3] = {0.25f, 0, 0.75f};
            for (double reference = 1e36; reference < 1e300; reference *= 1e6) {
                double out = 0;
                CHECK(mmax_sparsity_f32(&out, y, x, 1, reference, mmax_row(3)) == MMAX_OK, "status");
                CHECK(out == 1, "%g with reference %g", out, reference);
            }
        }
    }
    TEST("sparsity of negative y, as TanhMax gives them, and of a reference below the normal numbers") {
        static const double references[] = {1, 0.05, 0.01, 7e-4, 1e-4, 1e-38, 8e-39};
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                for (size_t k = 0; has(f, HAS_REFERENCE) && k < COUNT(references) * 3; ++k) {
                    call c = call_of(f, 1, 9, NORMAL_1, 73);
                    const double reference = references[k / 3] > 1e-30 ? references[k / 3]
                                             : f->size == 4            ? references[k / 3]
                                                                       : references[k / 3] * 1e-270;
                    double right;
                    for (size_t i = 0; i < 9; ++i) {
                        set(f, c.array[Y], i,
                            reference > 1e-30 ? (k % 3 > 0 ? 0.0625 * (double)i - 0.5 : 0.125)
                                              : 1.25 * reference * (double)(i % 3 * 2 * (k % 3)));
                    }
                    c.epsilon = 1;
                    c.reference = reference;
                    right = fmin(sparsity(f, &c, 9), DBL_MAX);
                    CHECK(f->run(&c) == MMAX_OK, AT, AT_ARGS(f, (size_t)9));
                    CHECK(fabs(row_storage[0] - right) <= 200 * eps_of(f) + 2e-12 * right || row_storage[0] == right,
                          AT ": %g, not %g, reference %g", AT_ARGS(f, (size_t)9), row_storage[0], right, reference);
                }
    }
    TEST("sparsity of many y that are hardly negative, and of one that is so far that its term overflows") {
        static double x64[3000], y64[3000];
        static float x[3000], y[3000];
        FOR_EACH_ISA(isa) {
            double out = 0;
            for (int i = 0; i < 3000; ++i) {
                x64[i] = 0;
                y64[i] = -1e-280;
                x[i] = 0;
                y[i] = -1e-30f;
            }
            CHECK(mmax_sparsity_f64(&out, y64, x64, 1, 1, mmax_row(3000)) == MMAX_OK &&
                      fabs(out - 1) <= 2 * DBL_EPSILON,
                  "1 %+g", out - 1);
            CHECK(mmax_sparsity_f32(&out, y, x, 1, 1, mmax_row(3000)) == MMAX_OK && fabs(out - 1) <= 2 * DBL_EPSILON,
                  "1 %+g", out - 1);
            y64[7] = -0.7115;
            y[7] = -0.75f;
            CHECK(mmax_sparsity_f64(&out, y64, x64, 1, 1e-3, mmax_row(3000)) == MMAX_OK &&
                      fabs(out / exp(711.5 - log(3000)) - 1) <= 1e-11,
                  "%g", out);
            CHECK(mmax_sparsity_f32(&out, y, x, 1, 0.75 / 711.5, mmax_row(3000)) == MMAX_OK &&
                      fabs(out / exp(711.5 - log(3000)) - 1) <= 1e-11,
                  "%g", out);
        }
    }
    TEST("sparsity: the reference is the row's softmax at temperature 1, whatever the scale") {
        FOR_EACH_ISA(isa)
            for (double scale = 1.0 / 64; scale <= 64; scale *= 2) {
                const float x[3] = {2, 1.8f, -1};
                const double x64[3] = {2, 1.8, -1}, weights = exp(0.0) + exp(-0.2) + exp(-3.0);
                const double reference = exp(-3.0) / weights;
                const double y_l = exp(-3 * scale) / (1 + exp(-0.2 * scale) + exp(-3 * scale));
                const double right = exp(-y_l / reference);
                float y[3];
                double y64[3], out = -1;
                mmax_shape s = mmax_row(3);
                s.scale = scale;
                CHECK(mmax_softmax_f32(y, x, s) == MMAX_OK && mmax_softmax_f64(y64, x64, s) == MMAX_OK, "softmax");
                CHECK(mmax_sparsity_f32(&out, y, x, 0, 0, s) == MMAX_OK && fabs(out - right) <= 1e-6,
                      "scale %g: %g, not %g", scale, out, right);
                CHECK(mmax_sparsity_f64(&out, y64, x64, 0, 0, s) == MMAX_OK && fabs(out - right) <= 1e-13,
                      "scale %g: %.17g, not %.17g", scale, out, right);
            }
    }
    TEST("sparsity: a scale under which scores overflow does not touch the reference, which has underflowed here") {
        FOR_EACH_ISA(isa) {
            const float x[4] = {1e25f, -1e25f, 0, 0.25f}, y[4] = {0.5f, 0.25f, 0.125f, 0.125f};
            const double x64[4] = {1e300, -1e300, 0, 0.25}, y64[4] = {0.5, 0.25, 0.125, 0.125};
            mmax_shape s = mmax_row(4);
            double out = 0;
            s.scale = ldexp(1, 60);
            CHECK(mmax_sparsity_f32(&out, y, x, 0.5, 0, s) == MMAX_OK && out == 0, "%g", out);
            CHECK(mmax_sparsity_f64(&out, y64, x64, 0.5, 0, s) == MMAX_OK && out == 0, "%g", out);
        }
    }
    TEST("metrics are NaN where there is a NaN in the row of x or y, and where no entry counts") {
        FOR_EACH_FUNCTION(f)
            FOR_EACH_ISA(isa)
                FOR_EACH_LENGTH(n)
                    if (f->kind == METRIC) {
                        for (int r = Y; r <= X; ++r) {
                            call c = call_of(f, 1, n, NORMAL_1, 72);
                            set_special(f, c.array[r], n / 2, QUIET_NAN);
                            c.epsilon = has(f, HAS_REFERENCE) ? -9 : 9; /* no entry counts, and yet */
                            CHECK(f->run(&c) == MMAX_OK && is_nan_double(row_storage[0]), AT, AT_ARGS(f, n));
                        }
                    }
    }
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--chosen") == 0) {
        test_chosen(argv[2]);
        test_isa();
        return check_report();
    }
    test_shapes();
    test_params();
    test_status_strings();
    test_isa();
    test_version();
    test_metrics();
    return check_report();
}
