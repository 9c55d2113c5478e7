/* kernels_of_type.h: the kernels of each function for the type T, and their table. Included once for each type. */

/* One call for all rows; for each row (_calls), as engines do; for FEW rows (_few). targets and per_row are those of the
 * call's first row. */
#define RUN(name, call)                                                                                           \
    static inline void F(rows_##name)(const work *w, size_t rows) {                                               \
        for (size_t row = 0; row < w->rows; row += rows) {                                                        \
            const size_t first = row * w->cols;                                                                   \
            T *x = (T *)w->x + first, *y = (T *)w->y + first, *gy = (T *)w->gy + first, *gx = (T *)w->gx + first; \
            double *per_row = w->per_row + row;                                                                   \
            const mmax_targets targets = targets_of(w, row);                                                      \
            mmax_shape s = mmax_rows(rows, w->cols);                                                              \
            mmax_attention b = biased(NULL);                                                                      \
            (void)x, (void)y, (void)gy, (void)gx, (void)per_row, (void)targets, (void)b;                          \
            must((call) == MMAX_OK, #name);                                                                       \
        }                                                                                                         \
    }                                                                                                             \
    static void F(run_##name)(const work *w, void *state) {                                                       \
        (void)state;                                                                                              \
        F(rows_##name)(w, w->rows);                                                                               \
    }
#define CALLS(name)                                                 \
    static void F(run_##name##_calls)(const work *w, void *state) { \
        (void)state;                                                \
        F(rows_##name)(w, 1);                                       \
    }                                                               \
    static void F(run_##name##_few)(const work *w, void *state) {   \
        (void)state;                                                \
        F(rows_##name)(w, FEW);                                     \
    }

RUN(softmax, F(mmax_softmax)(y, x, s))
RUN(softmax_lengths, F(mmax_softmax)(y, x, with_lengths(s, w)))
RUN(softmax_axis, F(mmax_softmax)(y, x, interleaved(s)))
RUN(sparsemax_axis, F(mmax_sparsemax)(y, x, interleaved(s)))
RUN(softmax_backward_axis, F(mmax_softmax_backward)(gx, gy, y, interleaved(s)))
RUN(softmax_loss_axis, F(mmax_softmax_loss)(per_row, gx, x, targets, interleaved(s)))
RUN(attention_bias, (b = biased(gy), F(mmax_softmax)(y, x, with_attention(s, &b))))
RUN(attention_starts, F(mmax_softmax)(y, x, with_starts(s, w)))
RUN(attention_masked, F(mmax_softmax)(y, x, with_attention(s, &masked_below)))
RUN(attention_sinks, F(mmax_softmax)(y, x, with_attention(s, &with_sink)))
RUN(multimax1, F(mmax_multimax)(y, x, params_of_order(1), s))
RUN(multimax2, F(mmax_multimax)(y, x, params_of_order(2), s))
RUN(sparsemax, F(mmax_sparsemax)(y, x, s))
RUN(entmax15, F(mmax_entmax15)(y, x, s))
RUN(evsoftmax, F(mmax_evsoftmax)(y, x, 0, s))
RUN(tanhmax, F(mmax_tanhmax)(y, x, s))
RUN(seglu, F(mmax_seglu)(y, x, params_of_order(2), s))
RUN(topk, F(mmax_topk)(y, x, KEPT, s))
RUN(truncate, F(mmax_truncate)(y, x, nucleus(), s))
RUN(sample, F(mmax_sample)((uint32_t *)w->gx, NULL, x, nucleus(), 1, 0, s))
RUN(route, F(mmax_route)(y, (uint32_t *)w->gx, x, router(), s))
RUN(entmax_120, F(mmax_entmax)(y, x, 1.2, s))
RUN(entmax_125, F(mmax_entmax)(y, x, 1.25, s))
RUN(entmax_175, F(mmax_entmax)(y, x, 1.75, s))
RUN(log_softmax, F(mmax_log_softmax)(y, x, s))
RUN(log_multimax2, F(mmax_log_multimax)(y, x, params_of_order(2), s))

RUN(softmax_backward, F(mmax_softmax_backward)(gx, gy, y, s))
RUN(multimax1_backward, F(mmax_multimax_backward)(gx, &grads, gy, y, x, params_of_order(1), s))
RUN(multimax2_backward, F(mmax_multimax_backward)(gx, &grads, gy, y, x, params_of_order(2), s))
RUN(sparsemax_backward, F(mmax_sparsemax_backward)(gx, gy, y, s))
RUN(entmax15_backward, F(mmax_entmax15_backward)(gx, gy, y, s))
RUN(evsoftmax_backward, F(mmax_evsoftmax_backward)(gx, gy, y, s))
RUN(tanhmax_backward, F(mmax_tanhmax_backward)(gx, gy, y, x, s))
RUN(seglu_backward, F(mmax_seglu_backward)(gx, &grads, gy, x, params_of_order(2), s))
RUN(log_softmax_backward, F(mmax_log_softmax_backward)(gx, gy, y, s))
RUN(log_multimax2_backward, F(mmax_log_multimax_backward)(gx, &grads, gy, y, x, params_of_order(2), s))

RUN(softmax_loss, F(mmax_softmax_loss)(per_row, gx, x, targets, s))
RUN(multimax2_loss, F(mmax_multimax_loss)(per_row, gx, &grads, x, params_of_order(2), targets, s))
RUN(evsoftmax_loss, F(mmax_evsoftmax_loss)(per_row, gx, x, TRAINING_EPSILON, targets, s))
RUN(sparsemax_loss, F(mmax_sparsemax_loss)(per_row, gx, x, targets, s))
RUN(entmax15_loss, F(mmax_entmax15_loss)(per_row, gx, x, targets, s))

RUN(multimax2_loss_gx, F(mmax_multimax_loss)(per_row, gx, NULL, x, params_of_order(2), targets, s))
RUN(softmax_loss_alone, F(mmax_softmax_loss)(per_row, NULL, x, targets, s))
RUN(multimax2_loss_alone, F(mmax_multimax_loss)(per_row, NULL, NULL, x, params_of_order(2), targets, s))
RUN(evsoftmax_loss_alone, F(mmax_evsoftmax_loss)(per_row, NULL, x, TRAINING_EPSILON, targets, s))
RUN(sparsemax_loss_alone, F(mmax_sparsemax_loss)(per_row, NULL, x, targets, s))
RUN(entmax15_loss_alone, F(mmax_entmax15_loss)(per_row, NULL, x, targets, s))

RUN(multimodality, F(mmax_multimodality)(per_row, y, x, METRIC_EPSILON, s))
RUN(sparsity, F(mmax_sparsity)(per_row, y, x, METRIC_EPSILON, 0, s))

CALLS(softmax)
CALLS(multimax1)
CALLS(multimax2)
CALLS(sparsemax)
CALLS(entmax15)
CALLS(evsoftmax)
CALLS(tanhmax)
CALLS(log_softmax)
CALLS(topk)
CALLS(route)
CALLS(softmax_backward)
CALLS(multimax1_backward)
CALLS(multimax2_backward)
CALLS(sparsemax_backward)
CALLS(entmax15_backward)
CALLS(tanhmax_backward)
CALLS(log_softmax_backward)
CALLS(softmax_loss)
CALLS(multimax2_loss)
CALLS(sparsemax_loss)
CALLS(entmax15_loss)

#define ROW(function, what, order, arrays, forward) \
    { #function, "multimax", what, IS_F64, order, arrays, F(run_##function), forward, NULL, NULL }
#define ROWS(function, what, order, arrays, forward)                                                  \
    ROW(function, what, order, arrays, forward), ROW(function##_calls, what, order, arrays, forward), \
        ROW(function##_few, what, order, arrays, forward)

const kernel F(multimax)[] = {
    ROWS(softmax, FORWARD, 0, 2, NULL),
    ROW(softmax_lengths, FORWARD, 0, 2, NULL),
    ROW(softmax_axis, FORWARD, 0, 2, NULL),
    ROW(sparsemax_axis, FORWARD, 0, 2, NULL),
    ROW(attention_bias, FORWARD, 0, 3, NULL),
    ROW(attention_starts, FORWARD, 0, 2, NULL),
    ROW(attention_masked, FORWARD, 0, 2, NULL),
    ROW(attention_sinks, FORWARD, 0, 2, NULL),
    ROWS(multimax1, FORWARD, 1, 2, NULL),
    ROWS(multimax2, FORWARD, 2, 2, NULL),
    ROWS(sparsemax, FORWARD, 0, 2, NULL),
    ROWS(entmax15, FORWARD, 0, 2, NULL),
    ROWS(evsoftmax, FORWARD, 0, 2, NULL),
    ROWS(tanhmax, FORWARD, 0, 2, NULL),
    ROW(seglu, FORWARD, 2, 2, NULL),
    ROWS(topk, FORWARD, 0, 2, NULL),
    ROWS(route, FORWARD, 0, 1, NULL),
    ROW(truncate, FORWARD, 0, 2, NULL),
    ROW(sample, FORWARD, 0, 1, NULL),
    ROW(entmax_120, FORWARD, 0, 2, NULL),
    ROW(entmax_125, FORWARD, 0, 2, NULL),
    ROW(entmax_175, FORWARD, 0, 2, NULL),
    ROWS(log_softmax, FORWARD, 0, 2, NULL),
    ROW(log_multimax2, FORWARD, 2, 2, NULL),
    ROWS(softmax_backward, BACKWARD, 0, 3, F(run_softmax)),
    ROWS(multimax1_backward, BACKWARD, 1, 4, F(run_multimax1)),
    ROWS(multimax2_backward, BACKWARD, 2, 4, F(run_multimax2)),
    ROWS(sparsemax_backward, BACKWARD, 0, 3, F(run_sparsemax)),
    ROWS(entmax15_backward, BACKWARD, 0, 3, F(run_entmax15)),
    ROW(evsoftmax_backward, BACKWARD, 0, 3, F(run_evsoftmax)),
    ROWS(tanhmax_backward, BACKWARD, 0, 4, F(run_tanhmax)),
    ROW(seglu_backward, BACKWARD, 2, 3, NULL),
    ROW(softmax_backward_axis, BACKWARD, 0, 3, F(run_softmax_axis)),
    ROWS(log_softmax_backward, BACKWARD, 0, 3, F(run_log_softmax)),
    ROW(log_multimax2_backward, BACKWARD, 2, 4, F(run_log_multimax2)),
    ROWS(softmax_loss, LOSS, 0, 2, NULL),
    ROW(softmax_loss_axis, LOSS, 0, 2, NULL),
    ROWS(multimax2_loss, LOSS, 2, 2, NULL),
    ROW(evsoftmax_loss, LOSS, 0, 2, NULL),
    ROWS(sparsemax_loss, LOSS, 0, 2, NULL),
    ROWS(entmax15_loss, LOSS, 0, 2, NULL),
    ROW(multimax2_loss_gx, LOSS, 2, 2, NULL),
    ROW(softmax_loss_alone, VALUE, 0, 2, NULL),
    ROW(multimax2_loss_alone, VALUE, 2, 2, NULL),
    ROW(evsoftmax_loss_alone, VALUE, 0, 2, NULL),
    ROW(sparsemax_loss_alone, VALUE, 0, 2, NULL),
    ROW(entmax15_loss_alone, VALUE, 0, 2, NULL),
    ROW(multimodality, METRIC, 0, 2, F(run_softmax)),
    ROW(sparsity, METRIC, 0, 2, F(run_softmax)),
    {NULL, NULL, FORWARD, IS_F64, 0, 0, NULL, NULL, NULL, NULL},
};

#undef ROWS
#undef ROW
#undef CALLS
#undef RUN
