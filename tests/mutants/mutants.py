"""The mutants of run.py: a name; the place, which is a function, a macro or a table of include/multimax.h by its plain
name; an expression that stands once in its definition; what replaces the expression; and the tests of which one must
fail, in the order in which they are tried. Spaces and line breaks do not matter. Where an expression stands several times,
`nth` (from 1) says which one is meant."""
from collections import namedtuple

Mutant = namedtuple("Mutant", "name place old new tests nth")
MUTANTS = []


def m(name, place, old, new, tests, nth=0):
    MUTANTS.append(Mutant(name, place, old, new, tests, nth))


# ==== scalars ====
m("exp in double: ln 2's rest is added", "mmax_exp_double", "low - (r * c)", "-low - (r * c)", "more attention losses")
m("exp_rest: one term is left out", "mmax_exp_rest", "1 + z * sum", "1 + (i == 5 ? 0 : z * sum)", "more")
m("two sum: what is lost has the other sign", "mmax_two_sum", "sum->lost +=", "sum->lost -=", "forward losses")
m("doubles: what their sums lose is left out", "mmax_add_doubles", "if (is_exact) {", "if (0) {", "golden forward")
m("table of 2^(j/8): one entry", "mmax_pow2_f32", "0x3f785489", "0x3f78548f", "forward", nth=1)

# ==== checks ====
m("scale: 2^61 passes", "mmax_check_scale", "0x43b0000000000000", "0x43c0000000000000", "special_cases")
m("scale: one below 2^-60 passes", "mmax_check_scale", "0x3c30000000000000 <=", "0x3c20000000000000 <=",
  "special_cases")
m("scale: 0 is one half", "mmax_check_scale", "*scale = 1;", "*scale = 0.5;", "api forward")
m("range: NaN passes", "mmax_is_within", "!mmax_is_nan_f64(*a) && *a >= low && *a <= high",
  "!(*a < low) && !(*a > high)", "special_cases")
m("params: what rounds to infinity passes", "mmax_fits", "<< 1 < (uint64_t)", "<< 1 <= (uint64_t)",
  "special_cases")
m("params: a bad d passes", "mmax_check_params", "&& mmax_fits(p->d[i], size)", "", "special_cases")
m("params: order 1 reads the second ones", "mmax_check_params", "< p->order;", "< 2;", "special_cases api")
m("targets: smoothing 1 passes", "mmax_check_targets", "0.99999999999999989", "1", "special_cases")
m("targets: index and q both pass", "mmax_check_targets", "&& !(t->index && t->q)", "",
  "special_cases losses attention")
m("targets: a loss takes attention", "mmax_check_attention", "!(needs & MMAX_TARGETS) &&", "",
  "special_cases attention losses")
m("targets: a grad_scale beyond the type", "mmax_check_targets", "mmax_fits(t->grad_scale, size)",
  "mmax_is_finite_f64(t->grad_scale)", "special_cases")
m("attention: slopes without bias pass", "mmax_check_attention", "&& !(a->slopes && !a->bias)", "", "special_cases")
m("alias: other inputs are not compared", "mmax_check_arrays", "j < list.count", "j < 4", "special_cases")
m("no columns: the sink is lost", "mmax_check_empty", "sinks ? sinks[mmax_head_of(&a->s, row)] :", "", "special_cases")
m("no columns: a class passes", "mmax_check_empty", "if (a->t->index[row] >= 0) { return MMAX_ERR_TARGETS; }", "",
  "special_cases")
m("sink gradient: lse is not used", "mmax_sink_gradient_row", "a->lse ? mmax_exp_double(below < 0 ? below : 0) :", "",
  "attention")
m("targets: class n passes", "mmax_check_targets", "index < end", "index <= end", "special_cases")
m("targets: a class before the start passes", "mmax_check_targets", "(size_t)index >= start &&", "",
  "attention special_cases")
m("attention: masked above 0 passes", "mmax_check_attention", "!(a->masked > 0) && !(a->sinks", "!(a->sinks",
  "attention special_cases")
m("attention: any function takes sinks", "mmax_check_attention", "(a->sinks && !(needs & MMAX_SINKS))", "0",
  "attention special_cases")
m("attention: the last head is not checked", "mmax_check_attention", "h < mmax_heads_of", "h + 1 < mmax_heads_of",
  "attention special_cases")
m("attention: an infinite slope passes", "mmax_check_attention", "!(a->slopes && !mmax_fits(a->slopes[h], size)) &&",
  "", "attention special_cases")
m("attention: a sink of NaN passes", "mmax_check_attention", "(a->sinks && mmax_is_bad(a->sinks[h]))", "0",
  "attention special_cases")
m("alias: neighbours count as overlapping", "mmax_are_apart", ">= p_bytes +", "> p_bytes +", "special_cases memory")
m("alias: interleaved rows must leave a gap", "mmax_may_overlap", "offset >= row", "offset > row", "special_cases")
m("alias: interleaved rows may overlap at the end", "mmax_may_overlap", "&& offset + row <= a->stride", "",
  "special_cases")
m("alias: the same pointer is enough for in place", "mmax_may_overlap", "a->stride == b->stride",
  "(p == q || a->stride == b->stride)", "special_cases")
m("alias: any two outputs may be one", "mmax_may_overlap", "? b->is_input :", "? 1 :",
  "special_cases attention more losses")
m("alias: q may be the output", "mmax_arrays_of", "a->t->q_stride, 0)", "a->t->q_stride, 1)", "attention special_cases losses")
m("alias: the bias of a router is as wide as a block", "mmax_arrays_of", "a->bias, s->cols,", "a->bias, list->width,", "axis")
m("alias: the weights of a gradient are outputs", "mmax_arrays_of", "if (!a->gweights) { outputs = list->count; }",
  "outputs = list->count;", "route")
m("alias: a loss is compared as one double", "mmax_arrays_of", "a->needs & MMAX_PER_HEAD ? heads : rows", "1",
  "special_cases losses")
m("shape: strides of one row of bias matter", "mmax_add_blocks", "(rest > 0 || list->is_axis) &&", "",
  "attention losses")
m("shape: a stride below cols passes", "mmax_add_blocks", "stride < list->width", "stride + 1 < list->width", "special_cases")
m("shape: sizes may overflow", "mmax_add_blocks", "apart > (limit - list->width) / rest", "0",
  "special_cases")
m("interleaved: unusual rows are taken for contiguous ones", "mmax_begin_row", "is_apart ||", "", "axis")
m("interleaved: a range of rows extends to the end of its block", "mmax_add_blocks", "- list->absent", "",
  "axis")
m("interleaved: ranges of the rows of a block overlap", "mmax_check_arrays", "rows < inner ? rows :", "", "axis")
m("interleaved: the last block has all rows", "mmax_axis_rows", "inner - at < s->rows - row ? inner - at : s->rows - row", "inner - at", "axis")
m("accumulate: a gradient that is added to may be an input", "mmax_arrays_of",
  "!(s->accumulate && a->needs & MMAX_OUT_IS_GX)", "1", "axis")
m("attention: heads do not repeat", "mmax_head_of", "head % a->heads", "head", "attention")
m("interleaved: rows may be too long for the tile", "mmax_check_arrays", "s->cols > mmax_tile_of(a, size)", "0", "axis")
m("interleaved: attention passes", "mmax_check_attention", "s->inner <= 1 &&", "", "axis")
m("interleaved: a block's stride is not looked at", "mmax_add_blocks", "|| list->is_axis", "", "axis")
m("interleaved: entries that are not active are read", "mmax_tile_copy", "write == 0 && (tile->starts || tile->ends)", "0",
  "axis")
m("interleaved: entries past the last are read", "mmax_transpose_rows", "j < height ? j : 0", "j", "axis")
m("interleaved: rows past the last are written", "mmax_transpose_rows", "if (j < width)", "if (1)", "axis")
m("interleaved: rows of the next block go on in this one", "mmax_tile_copy",
  "inner - in_block < left ? inner - in_block :", "", "axis")
m("interleaved: starts are forgotten", "mmax_run_tiles", "s->starts ? s->starts + row :", "", "axis")
m("interleaved: pieces end where the row does", "mmax_run_tiles",
  "tile.s.ends = n < s->cols ? &piece[1] : tile.s.ends;", "", "axis")
m("interleaved: weights of rows stay behind", "mmax_part_of",
  "(const double *)mmax_at(t->weights, row * sizeof *t->weights)", "t->weights", "axis")
m("shape: a length of cols + 1 passes", "mmax_check_arrays", "> s->cols ||", "> s->cols + 1 ||", "special_cases")
m("shape: a start past the end passes", "mmax_check_arrays", "|| mmax_start_of(s, r) > mmax_end_of(s, r)", "",
  "attention special_cases")
m("shape: k times rows may overflow", "mmax_check_arrays", "a->k > limit / rows ||", "", "topk special_cases")
m("one row: any overlap passes", "mmax_may_write", "out == in || mmax_are_apart(in, bytes, out, bytes)", "1",
  "special_cases api")
m("one row: NULL params pass", "mmax_check", "(a->needs & MMAX_PARAMS && !a->p) ||", "", "special_cases api")

# ==== vector layer, walking, sums (AVX-512) ====
m("lt is le", "mmax_lt", ", _CMP_LT_OQ", ", _CMP_LE_OQ", "forward special_cases backward topk")
m("part of a register: one lane too many", "mmax_first_lanes", "(unsigned)(n)", "(unsigned)(n) + 1", "memory special_cases")
m("sweep: the last register is left out", "MMAX_SWEEP", "if (next_ < last_)", "if (0)", "forward properties")
m("along: the tail is left out", "MMAX_ROLL", "next_ < (to);", "next_ + MMAX_WIDTH <= (to);", "forward properties")
m("chunk: sums of lanes are not cleared", "MMAX_SUM_CHUNKS", "mmax_lanes_clear", "if (from_ == 0) mmax_lanes_clear",
  "forward")
m("total: what was lost stays so", "mmax_total", "+ sum->lost", "", "forward losses long_rows")
m("total: infinity loses itself", "mmax_total", "mmax_is_finite_f64(sum->total)", "1", "special_cases losses")
m("log1p: what 1 + v lost is left out", "mmax_powers_term", "lost / whole", "lost * 0", "more losses")

# ==== what a call prepares, the exponential, sigma ====
m("scale: its log2(e) has no low part", "mmax_prepare_scale", "(product - (double)c->high)", "0", "forward")
m("scale, f64: the low part forgets a product", "mmax_prepare_scale", "+ s_rest * l_top", "", "forward")
m("sigma: below is above", "mmax_prepare_sigma", "1.0 - p->t_b[i]", "p->t_b[i] - 1.0", "forward golden")
m("sigma: an absent term keeps its kink", "mmax_prepare_sigma", "below ? (mmax_real)p->b[i] : -MMAX_MAX",
  "p ? (mmax_real)p->b[i % p->order] : 0", "special_cases")
m("sigma: the second order is not squared", "mmax_sigma", "(c->below[1]) * u * u", "(c->below[1]) * u",
  "forward golden")
m("sigma: a mask meets its terms", "mmax_sigma", "mmax_select(mmax_le(mmax_abs(s), largest), a, s)", "a",
  "special_cases")
m("sigma: inf - inf stays NaN", "mmax_sigma", "mmax_select(mmax_is_nan(sum), second, sum)", "both", "special_cases")
m("origin: the lowest weight is too high", "mmax_rounder_of", "MMAX_EXPONENT + 1", "MMAX_EXPONENT - 20",
  "forward special_cases")
m("exp: no bias against small numbers", "MMAX_BIAS", "64", "0", "forward special_cases environment")
m("exp, f32: a coefficient", "mmax_exp", "5.55081218481064e-2f", "5.65081218481064e-2f", "forward")
m("far maxima: from far too late", "MMAX_FAR", "1e9 : 131072.0", "1e14 : 16777216.0", "forward special_cases losses")

# ==== attention: scores ====
m("mask: an entry at the limit is none", "mmax_attention_score", "mmax_set(t->limit)", "mmax_set((mmax_real)t->limit - 1)",
  "attention")
m("bias: the products of doubles are rounded", "mmax_biased", "(lost + (", "(lost + 0 * (", "bits")
m("bias: the sum of doubles is rounded twice", "mmax_biased", "(lost + (", "(0 * lost + (", "bits")
m("bias: the scale of floats is one", "mmax_biased", "* t->scale +", "* (double)(float)t->scale +", "bits")
m("bias: gradients see other scores", "mmax_plain_score", "*s = (double)score;",
  "*s = t->scale * (double)x + t->slope * (double)bias;", "bits")
m("bias: a slope below 0 hides +inf", "mmax_attention_score", "mmax_fma(b, mmax_set(0), mmax_biased",
  "(mmax_biased", "attention special_cases")
m("bias: -inf does not mask", "mmax_attention_score", "is_masked = mmax_or(is_masked, masks);", "",
  "attention")

# ==== gradients through sigma, gp ====
m("slope: one at the kink, too", "mmax_through_sigma", "mmax_lt(d, s)", "mmax_le(d, s)", "backward losses special_cases")
m("gp: a score that overflows is infinite", "mmax_kinks_of", "scale > 1", "0", "losses special_cases")
m("gp: a target's own part is left out", "mmax_end_loss", "if (own < n) {", "if (own < n && !b->is_through_sigma) {", "losses")
m("loss: what is masked counts", "mmax_gradient_of",
  "mmax_keep(mmax_is_active(mmax_load_upto(x + at, left, mmax_masked)), g)", "g", "special_cases losses")
m("gp: what is held is not flushed", "mmax_back_rows_of", "held > MMAX_GP_MOST || at > 0", "0", "backward losses")
m("gp: flushed lanes stay", "mmax_gp_sums_flush", "lanes[i] = mmax_set(0);", "", "backward losses")
m("accumulate: what gets 0 does not keep its bits", "mmax_put",
  "mmax_select(counts, mmax_keep(counts, old) + v, old)", "old + v", "accumulate")
m("accumulate: the target's own part twice", "mmax_end_loss", "if (adds) { to[own] = old; }", "", "accumulate")
m("weights: in another order than alone", "mmax_factors_of", "grad_scale * weight * b->a->s.scale",
  "grad_scale * b->a->s.scale * weight", "losses")
m("accumulate: a group's targets twice", "mmax_end_group", "*own = old;", "", "accumulate")
m("accumulate: losses of thresholds do not add", "mmax_young_sweep", "a->s.accumulate", "0", "accumulate")
m("accumulate: what lies outside is set to 0", "mmax_clear_outside", "!mmax_adds(a) &&", "", "accumulate")
m("accumulate: exponentials lie in gx", "mmax_begin_row", "r->is_unscored || adds ||", "r->is_unscored ||", "accumulate")
m("accumulate: one row does not add", "mmax_try_rows", "|| !(needs & MMAX_FAMILY)", "", "accumulate")
m("gradient: rows have no end", "mmax_put", "left >= MMAX_WIDTH", "1",
  "special_cases memory backward")
m("gp: lanes are lost", "mmax_gp_sums_flush", "full[i] = lanes[i];", "full[i] = mmax_set(0);", "losses")
m("gp: one row's loss does not go through sigma", "mmax_multimax_loss_row", "mmax_seglu_gradient(&row);", "",
  "losses")
m("gp: of one row's loss is not scaled", "mmax_multimax_loss_row", "sums, r->t->grad_scale, 0", "sums, 1, 0",
  "losses")
m("gp: is written, not added to", "mmax_add_gp", "[i] += s[1]", "[i] = s[1]", "backward losses")
m("gp: b of order 2 without its 2", "mmax_add_gp", "(i + 1) * (1 - p->t_b[i])", "(1 - p->t_b[i])",
  "backward losses")
m("gp: NaN rows are passed over", "mmax_add_gp", "any_nan ? MMAX_NAN_F64 :", "", "special_cases backward losses")
# ==== the softmax family: three passes ====
m("pass 1: NaN is not looked for", "mmax_largest_of",
  "if (MMAX_UNLIKELY(mmax_any(mmax_is_nan(sum[0])))) { return MMAX_IS_NAN; }", "", "special_cases")
m("pass 1: sigma that overflows to -inf is normal", "mmax_largest_of",
  "if ((double)*max * c->scale < -MMAX_MAX) { return MMAX_IS_EMPTY; }", "", "special_cases")
m("pass 3: the head of a row is skipped", "mmax_weights", "from = 0, to = head", "from = head, to = n",
  "forward bits long_rows")
m("weights below the normal numbers", "mmax_weight_of", "mmax_keep(mmax_le(least, mmax_abs(e)), e)", "e",
  "special_cases environment forward")
m("weights: -0 from negative factors", "mmax_weight_of",
  "mmax_fma(mmax_keep(mmax_le(least, mmax_abs(e)), e), a, mmax_set(0))",
  "mmax_keep(mmax_le(least, mmax_abs(e)), e) * a", "special_cases losses")
m("logarithms: the scale's low part", "mmax_logs", "mmax_fma(half, low, minus_log_sum)", "minus_log_sum", "losses")
m("logarithms: masks are finite", "mmax_logs",
  "mmax_select(active, mmax_max(log, lowest), mmax_masked)", "mmax_max(log, lowest)",
  "special_cases losses")
m("special rows: masks become NaN, too", "mmax_end_degenerate", "&& mmax_bits_of(x[i]) != MMAX_MASKED", "",
  "special_cases")
m("spread: what overflows stays so", "mmax_distances_of",
  "if (unit < 1 || mmax_is_finite_f64(spread->half_below)) { break; }", "break;", "special_cases losses")
m("evsoftmax: the mean may be above the largest", "mmax_mean_of", "mean < (double)largest ? (mmax_real)mean : largest",
  "(mmax_real)mean", "special_cases forward")
m("evsoftmax: entries at the mean are low", "mmax_exp_of_score", "mmax_lt(x, mmax_set(w->mean))", "mmax_le(x, mmax_set(w->mean))",
  "special_cases forward golden")
m("loss: evsoftmax's low target costs nothing", "mmax_loss_of", "(r->target < r->mean ? own : 0)", "0", "losses")
m("loss: a masked target is finite", "mmax_end_loss", "MMAX_MASKED ? MMAX_INF_F64", "1 ? 0", "special_cases losses")
m("loss: gx at the target keeps q", "mmax_target_gradient", "r->q - own;", "own;", "losses")
m("loss: an ignored row is read", "mmax_begin_row", "!b->finish->targets || b->a->t->q || b->a->t->index[row] >= 0",
  "1", "losses special_cases memory")
m("loss: grad_scale without the scale", "mmax_program_of", "* a->s.scale", "", "losses golden")
m("far maxima: the shift is not taken off", "mmax_pass_by_blocks", "shift) - shift)", "shift))", "special_cases forward losses")
m("tiles: what is past ends stays", "mmax_run_tiles", "mmax_clear_outside(&tile, size);", "", "axis losses special_cases")
m("sink: it is no term of the sum", "mmax_begin_row", "b->a->sink ? mmax_sink_of(r) :", "", "attention")
m("lse: without the maximum", "mmax_after_sum", "* b->call.scale", "", "attention")
m("in place: sigma overwrites x that a loss needs", "mmax_begin_row", "(adds || r->y == r->x)",
  "0", "losses")

# ==== rows, short rows ====
m("groups: all rows have the first one's factor", "mmax_group_end", "mmax_set(a[j])", "mmax_set(a[0])", "forward bits")
m("groups: rows with a bias go in groups", "mmax_has_groups", "|| a->terms", "", "attention")
m("groups: rows with starts go in groups", "mmax_has_groups", "a->s.starts ||", "", "axis")
m("groups: smoothing is forgotten", "mmax_program_of", "&& !(a->t->label_smoothing > 0)", "", "bits losses")
m("groups: an ignored row is read", "mmax_group_targets", "if (index < 0) { return 0; }", "", "losses special_cases")
m("groups: rows are held without a gap", "mmax_groups", "(s->cols + MMAX_WIDTH - 1) / MMAX_WIDTH * MMAX_WIDTH",
  "s->cols", "forward bits")
m("groups: all rows have the first one's length", "mmax_group_exponentials", "to < g->n[j] ? to : g->n[j]",
  "to < g->n[0] ? to : g->n[0]", "bits")
m("groups: far maxima stay", "mmax_group_begin",
  "mmax_not_le(mmax_abs(exponent), mmax_set(is_signed ? MMAX_USUAL : MMAX_FAR))", "mmax_none", "special_cases forward")
m("weights: gx of a group goes without", "mmax_row_factors", "memcpy(&factor_, factors + h * MMAX_HALF, sizeof factor_);", "",
  "losses")
m("weights: not taken off in a part", "mmax_run_parts", "t.weights = NULL;", "", "attention losses")
m("groups: NaN of several rows is not seen", "mmax_group_of", "!mmax_any(mmax_is_nan(mmax_reals_of(g->sums.sum)))", "1",
  "special_cases")
m("groups: NaN of a row alone is not seen", "mmax_plain_passes", "mmax_is_nan_f64(mmax_lane(g->sums.sum[0], 0))", "0",
  "special_cases")
m("evsoftmax: masks count in the mean", "mmax_mean_of", "!mmax_is_finite_f64(mean)", "0", "special_cases forward")
m("parts: a row that is longer than the memory for scores is none", "mmax_rows_alike", "fit > 0 ? fit : 1", "fit", "attention")
m("exceptions: 0 times a mask, in sigma", "mmax_prepare_sigma", "1.0 - p->t_b[i]) : -1", "1.0 - p->t_b[i]) : 0",
  "environment")
m("exceptions: 0 times a mask, in a bias", "mmax_attention_score", "mmax_select(masks, mmax_set(0), bias)", "bias", "environment")
m("exceptions: the logarithm of a mask overflows", "mmax_logs", "mmax_keep(active, s)", "mmax_max(s, lowest)", "environment")
m("soft targets: the first entry of rows without entries", "mmax_group_targets", "b->a->t->q ? mmax_from(MMAX_MASKED) : b->x[", "b->x[", "memory")
m("short rows: the loss of a row without entries", "mmax_short_end",
  "mmax_any(mmax_lt(t->max[k], mmax_set(-MMAX_MAX)))", "0", "environment")
m("interleaved: each block of a row is the first", "mmax_scores_of", "r->x[(from + i) * inner]", "r->x[i * inner]", "axis")
m("interleaved: unusual rows have one place", "mmax_end_degenerate", "i += step", "++i", "axis")
m("interleaved: rows by blocks keep their exponentials", "mmax_end_weights", "inner > 1 ? e : r->y + from", "r->y + from", "axis")
m("interleaved: rows of other ends are alike", "mmax_axis_rows", "&& mmax_end_of(s, row + t.rows) == end", "", "axis")
m("interleaved: rows without entries have weights", "mmax_axis_weights",
  "mmax_keep(mmax_is_active(t->max[k]), t->rounder[k])", "t->rounder[k]", "axis")

# ==== sparsemax, entmax15 ====
m("lanes: Newton's step of entmax15 is too long", "mmax_few_taus", "norm * excess / ((norm + one) * first)",
  "excess / first", "forward special_cases")
m("lanes: no second look", "mmax_few_taus",
  "mmax_or(mmax_or(mmax_lt(closest, step), mmax_lt(distant, excess)), missed)", "mmax_lt(distant, excess)",
  "forward golden")
m("lanes: tau has one part", "mmax_few_taus", "*low = mmax_select(unsolved, (t - tau) + step, *low);", "", "forward")
m("lanes: rows with NaN are not suspect", "mmax_lane_taus",
  "mmax_or(mmax_is_nan(sum), mmax_not(mmax_le(mmax_abs(max)", "(mmax_not(mmax_le(mmax_abs(max)", "special_cases")
m("tau of a row: is one real", "mmax_find_tau", "(mmax_real)(((double)t - (double)terms->high) + step)", "0",
  "forward losses")
m("candidates: the bound is a little too high", "mmax_collect", "start - 1e-6", "start + 1e-2", "forward")
m("candidates: start falls", "mmax_candidates", "tau > *start ? tau : *start", "tau", "forward")
m("candidates: start is rounded up", "mmax_find_tau", "next = (mmax_real)((double)t + newton);",
  "next = (mmax_real)((double)t + newton + 1e-3);", "forward")
m("candidates: too many are lost", "mmax_candidates", "next < n ? 0 :", "", "forward long_rows")
m("threshold loss: q at masks", "mmax_young_sweep", "mmax_keep(mmax_is_active(x_), mmax_fma(y, up, minus_q))",
  "mmax_fma(y, up, minus_q)", "losses special_cases")
m("threshold loss: may be below 0", "mmax_young_row", "loss > 0 ? loss : 0", "loss", "losses special_cases")
m("threshold loss: the class is the entry before it", "mmax_young_row", "mmax_put_one(gx + from,",
  "mmax_put_one(gx + (from > 0 ? from - 1 : 0),", "losses")
m("threshold loss: what is added to is lost at the class", "mmax_young_row", "gx[from] = old;", "", "accumulate")
m("threshold: ignored rows have no loss", "mmax_entmax_T", "is_ignored ? MMAX_IS_IGNORED :", "",
  "losses special_cases")
m("threshold: what is past a row's entries is left over", "mmax_add_lane", "mmax_store(to + n, mmax_masked);", "",
  "properties bits losses")
m("threshold: registers that longer rows have are left over", "mmax_end_lanes", "i < g->most; i += MMAX_WIDTH", "0;",
  "properties bits losses")
m("threshold: lanes are not exchanged", "MMAX_EXCHANGE", "mmax_lower(a, b, (s) % MMAX_WIDTH)", "a",
  "properties bits losses")
m("threshold: a row alone loses its last entry", "mmax_lane_taus", "n : 0; i--", "n - 1 : 0; i--", "forward bits")
m("threshold: a plain row of wide registers takes half of each", "mmax_few_taus",
  "if (is_wide) { sums[0][k] = sums[0][k] + upper; }", "", "forward bits")

# ==== top-k, truncation, sampling ====
m("top-k: more than k of equal ones", "mmax_top_keep", "need < (double)count && to - from > 1", "0", "topk")
m("top-k: one of equal ones too many", "mmax_top_keep", "t->count - over >= (size_t)need", "t->count - over > (size_t)need", "topk")
m("top-k: fewer than k are cut, too", "mmax_top_keep", "!by && t->mass <= target", "0", "topk")
m("top-k: what is above a range is forgotten", "mmax_top_keep", "above = t->mass;", "", "topk")
m("top-k: equal entries past the last one", "mmax_is_left", "mmax_not(mmax_first_lanes(last > at ? last - at : 0))", "mmax_lt(v, v)", "topk")
m("top-k: a list without room cuts", "mmax_top_list", "t->cut = cut;", "", "topk")
m("top-k: a row with NaN is cut", "mmax_topk_rows", "(mmax_is_alone(&p) ? mmax_any(p.bad) : mmax_bits(p.bad) >> h & 1) ? none : cut", "cut", "topk")
m("few: of equal ones the last first", "mmax_few_of", "mmax_lt(few.value[most], d)", "mmax_le(few.value[most], d)", "route")
m("few: of equal ones of a row the last first", "mmax_few_of_row", "value[j - step] < one", "value[j - step] <= one", "route")
m("route: NaN is not seen", "mmax_route_values", "bad = mmax_or(bad, mmax_not_le(t[j], high));", "", "route")
m("route: what was chosen is chosen again", "mmax_route_cut", "mmax_igt(place, p->last)", "mmax_not(mmax_igt(p->last, place))", "route")
m("route: missing ones have index 0", "mmax_route_put", ": UINT32_MAX", ": 0", "route topk")
m("route: first is not added to index", "mmax_route_put", "(size_t)places[h] + a->first", "(size_t)places[h]", "route attention")
m("route: a place of another row", "mmax_route_put", "(size_t)places[h] + a->first", "(size_t)places[0] + a->first", "route")
m("route: groups begin with the row", "mmax_group_entry", "column > a->first ? column - a->first : 0", "column", "route")
m("route: a group's best one is its value", "mmax_route_rows", "j < best", "j < 1", "route")
m("route: of equal groups the last one", "mmax_route_takes", "mmax_le(own, other)", "mmax_lt(own, other)", "route")
m("route: sigmoids that are next to nothing", "mmax_route_weights",
  "most = mmax_min(mmax_is_alone(p) ? mmax_hmax(max) : max, zero)", "most = zero", "route")
m("route: sums of many sigmoids lose digits", "mmax_route_weights", "(next - sum) - term", "zero", "route")
m("route backward: an entry that is chosen is cleared", "mmax_route_gradients", "e[i] = mmax_normal(d);", "", "route")
m("route: more than there is room for", "mmax_route_walk", "h < n; ++h", "h < MMAX_WIDTH; ++h", "route")
m("route backward: scale x is rounded", "mmax_route_gradients", "t->bias ? s - of_most", "1 ? s - of_most", "route")
m("route backward: 0 times infinity", "mmax_route_gradients", "!bad && most > 0", "!bad", "route")
m("route backward: the others have none", "mmax_route_gradients", "bad || gate == MMAX_GATE_SOFTMAX", "bad", "route")
m("truncate: keep does not count", "mmax_top_cut", "t->count < c->keep", "0", "topk")
m("truncate: top_p does not count", "mmax_top_cut", "mmax_top_keep(t, c->top_p, MMAX_MASSES);", "", "topk")
m("truncate: many entries may be light together", "mmax_top_keep", "/ (double)t->n", "", "topk")
m("truncate: the variance for the deviation", "mmax_top_least", "mmax_root(low)", "low", "topk")
m("truncate: the bound is rounded down", "mmax_top_least", "least - max < gap", "0", "topk")
m("sample: u is that of a Gumbel number", "mmax_sample_row", "- 0x9e3779b97f4a7c15", "+ 0x9e3779b97f4a7c15", "topk more")
m("sample: u does not count", "mmax_sample_row", "(double)(mmax_mixed(key) >> 11) * 1.1102230246251565e-16", "0.5", "topk")
m("sample: what is cut is drawn", "mmax_top_sum", "mmax_keep(mmax_not(mmax_is_left(v_, low, at, cut.last)), term)", "term", "topk")

# ==== backward, tanhmax, soft caps ====
m("backward: gx below the normal numbers", "mmax_unscaled",
  "mmax_keep_product(counts, g, mmax_set(l->down))", "g * mmax_set(l->down)",
  "environment backward special_cases losses")
m("backward: rows of other ends are alike", "mmax_gradient_rows", "(run < s->rows && mmax_end_of(s, run) == r.n)",
  "run < s->rows", "backward special_cases")
m("backward: gy of masked entries is used", "mmax_slow_entry", "if (!counts) { return is_bad * 2; }", "", "special_cases")
m("backward: a mask of x weighs", "mmax_back_load", ": mmax_keep(mmax_is_some(x_), v->w)", ": v->w",
  "special_cases backward attention")
m("backward: NaN rows write masks", "mmax_slow_gradient", "state > 1 && is & 1", "state > 1", "special_cases backward")
m("backward: large gradients overflow", "mmax_slow_gradient", "down = 1e-100;", "", "backward special_cases")
m("backward: seglu's NaN is lost", "mmax_back_entry", "mmax_select(mmax_is_nan(nan), nan, d)", "d",
  "special_cases backward")
m("tanhmax: gx of flat rows", "mmax_back_square", "mmax_lt(exponent, mmax_set(MMAX_TINY))", "mmax_lt(exponent, exponent)",
  "special_cases forward backward more")
m("tanhmax: cosh has no square of 2 / C", "mmax_back_square", "*square = normal * normal;", "*square = mmax_set(0);",
  "backward golden")
m("backward: no lift", "mmax_back_rows_of", "has_y ? MMAX_UP : 1, m->factor", "1, m->factor",
  "backward environment special_cases losses")
m("backward: sums of long rows begin anew", "mmax_back_mean", "sums[0] + (double)sum", "(double)sum",
  "backward long_rows")
m("backward: chunks count twice", "mmax_back_mean", "mmax_lanes_clear(lanes, 2);", "", "backward long_rows")
m("backward: roots are kept in gx that is an input", "mmax_back_rows_of", "gx != y && gx != gy && !adds", "!adds",
  "special_cases backward properties")
m("backward: roots are kept in gx that is added to", "mmax_back_rows_of", "gx != y && gx != gy && !adds", "gx != y && gx != gy",
  "accumulate")
m("backward: a row that is not usual is taken", "mmax_back_rows_of",
  "mmax_bits_of(mmax_lane(s.minus_mean, 0)) << 1 >= (mmax_uint)MMAX_MASKED << 1", "0", "special_cases")
m("backward: NaN in x is not seen", "mmax_back_add", "if (has_x) { g = mmax_fma(v->x, zero, g); }", "",
  "special_cases")
m("backward: seglu's NaN is not in gp", "mmax_back_rows_of", "!has_y && mmax_any(mmax_is_nan(s.square))", "0",
  "special_cases backward")
m("backward: what the scale makes subnormal is kept", "mmax_scaling_of",
  "up / (size < MMAX_MIN ? MMAX_MIN : size > up ? up : size)", "up",
  "environment special_cases backward")
m("tanhmax: short rows are all usual", "mmax_group_begin", "is_signed ? MMAX_USUAL :", "", "special_cases forward")
m("tanhmax: cosh of masks counts", "mmax_sinh_cosh", "if (!is_usual) { *cosh2 = mmax_keep(active, *cosh2); }", "",
  "special_cases forward")
m("tanhmax: tiny f is squared", "mmax_sinh_cosh", "mmax_keep(mmax_le(mmax_set(MMAX_TINY), mmax_abs(f)), f)", "f",
  "special_cases")
m("tanhmax: far rows lose the sign", "mmax_sinh_cosh",
  "mmax_select(mmax_lt(x, mmax_set(0)), mmax_set(0) - *cosh2, *cosh2)", "*cosh2", "special_cases forward")
m("seglu: results below the normal numbers", "mmax_elementwise",
  "mmax_keep(mmax_le(mmax_set(MMAX_MIN), mmax_abs(v)), v)", "v", "special_cases forward environment")
m("softcap: 1 too early", "mmax_capped", "28.85390081777927", "8.85390081777927", "attention")
m("softcap: gradient of t", "mmax_cap_gradient", "(one - t) * (one + t)", "one - t", "attention")

# ==== entmax of any alpha, sigsoftmax, sparsehourglass, Gumbel numbers ====
m("entmax: far from the root it stops", "mmax_powers_find", "100 && size", "3 && size", "more")
m("entmax: large alpha has no base", "mmax_powers_find", "p->u > 1 && n > 1 ? mmax_powers_base(p) :", "", "more")
m("entmax: a pivot above the target only", "mmax_powers_pivot", "above : below", "above : low", "more")
m("entmax: weights below the normal numbers", "mmax_powers_weigh", "mmax_keep(mmax_le(least_, e), e)", "e", "more")
m("entmax: a full buffer is lost", "mmax_entmax_row", "y[(mmax_uint)place[i]] = (mmax_real)d[i];",
  "if (at + MMAX_WIDTH >= n) { y[(mmax_uint)place[i]] = (mmax_real)d[i]; }", "more forward")
m("entmax loss: q > 0 at a mask", "mmax_young_row", "is_lost |= own_q > 0;", "",
  "more special_cases losses")
m("entmax backward: gy is not relative", "mmax_entmax_gradients", "g_most = g;", "g_most = 0;", "more")
m("sigsoftmax: no bound of sigmoids", "mmax_exp_of_score", "mmax_max(mmax_min(x, most), mmax_set(0) - most)", "x",
  "more special_cases")
m("hourglass: the sign of the sum", "mmax_sparsehourglass_T", "(spread.half_below < 0 ? -2 : 2)", "-2", "more")
m("gumbel: first_row does not count", "mmax_gumbel_T", "first_row +", "", "more")

# ==== metrics, soft targets ====
m("multimodality: x at epsilon counts", "mmax_multimodality_row", "> a->parameter", ">= a->parameter",
  "properties special_cases api losses")
m("multimodality: y of the last maximum", "mmax_multimodality_row", "> x[first] ?", ">= x[first] ?",
  "properties special_cases api losses")
m("sparsity: negative y overflow", "mmax_sparsity_row", "5.9604644775390625e-08 *", "", "api")
m("sparsity: an underflown reference", "mmax_sparsity_row",
  "reference = reference >= (double)MMAX_MIN ? reference : 0;", "", "api")
m("soft targets: q > 0 at a mask", "mmax_sum_targets",
  "lost = mmax_max(mmax_keep(mmax_not(mmax_is_active(x_)), q_), lost);", "", "attention losses")
m("soft targets: pass 3 takes exponentials for x", "mmax_begin_row",
  "|| (r->y == r->x && b->finish->targets && !b->is_plain)", "", "losses")
m("soft targets: sum q is 1", "mmax_gradient_of", "soft ? r->q_sum :", "", "attention losses")
m("soft targets: NaN passes", "mmax_sum_targets", "mmax_classify_targets(q, x, r->n) != MMAX_IS_NAN", "1", "losses")
m("soft targets: a negative one is usual", "mmax_sum_targets", "|| mmax_any(mmax_lt(least, zero))", "", "losses")
m("soft targets: NaN passes in entmax", "mmax_entmax_T",
  "|| (is_soft && mmax_classify_targets(mmax_targets_of(&b, row), x, n) == MMAX_IS_NAN)", "", "losses")
m("loss: an infinite factor makes NaN", "mmax_times", "g != 0 ? g * factor : 0", "g * factor", "losses")
m("loss: an infinite factor is a usual one", "mmax_is_extreme", "|| !mmax_is_finite_f64(factor)", "", "losses")
m("loss: a factor is not infinite beyond the type", "mmax_program_of",
  "b->sigma_factor = b->sigma_factor > 0 ? MMAX_INF_F64 : -MMAX_INF_F64;", "", "losses")
m("soft targets: a row of weight 0 is not written", "mmax_run_parts", "mmax_clear_outside(&part, size);", "", "attention")

# ==== attention: calls by parts; public functions ====
m("bias: rows do not repeat", "mmax_terms_of", "a && a->bias_rows ? row % a->bias_rows :", "", "attention")
m("masked: the limit of floats is not exact", "mmax_terms_of", "(double)above > a->masked", "1", "attention")
m("blocks: the largest is the last one's", "mmax_pass_by_blocks", "from == 0 || max > r->max ? max : r->", "", "attention")
m("blocks: an empty one makes the row empty", "mmax_pass_by_blocks",
  "== MMAX_IS_EMPTY || state == MMAX_IS_NAN ? state : is", "", "attention special_cases")
m("parts: a head's end is passed", "mmax_rows_alike",
  "if (of_head && of_head - row % of_head < most) { most = of_head - row % of_head; }", "", "attention")
m("parts: bias does not begin again", "mmax_run_parts", "bias_rows - row % bias_rows < rows", "0", "attention")
m("rows: bias is the row's, whatever its start", "mmax_scores_of", "(mmax_start_of(&r->b->a->s, r->row) + from)",
  "from", "attention")
m("parts: rows of other starts are alike", "mmax_rows_alike", "starts[row + n] == starts[row] &&", "", "attention")
m("parts: weights of rows are alike", "mmax_rows_alike", "(!weights || weights[row + n] == weights[row])", "1",
  "losses attention")
m("check: the loss of a row may lie upon gx", "mmax_is_plain_value", "mmax_are_apart(out, bytes, value, sizeof *value)", "1",
  "special_cases")
m("check: the loss of a row may lie upon x", "mmax_is_plain_value", "mmax_are_apart(x, bytes, value, sizeof *value)", "1",
  "special_cases")
m("starts: what is before stays", "mmax_fill_outside", "memset(out, 0, start * size);", "", "attention")
m("starts: what is past rows stays", "mmax_fill_outside", "memset(out + end * size, 0, (cols - end) * size);", "",
  "special_cases")
m("starts: the class is not moved", "mmax_run_parts", "- (int32_t)start", "", "attention losses")
m("weights: a row of weight 0 is read", "mmax_run_parts", "weight > 0 && *", "*", "attention losses memory")
m("weights: the loss has none", "mmax_run_parts", "mmax_limited(loss)", "mmax_limited(loss / weight)",
  "attention losses")
m("isa: one that is not there is taken", "mmax_isa_select", "if (!mmax_isa_available(isa)) { return MMAX_ERR_ISA; }",
  "", "api environment threads")
m("helper: the table's order", "mmax_multimax_from_table", "[1], row[3]", "[0], row[2]", "api attention golden")
m("helper: labels have no grad_scale", "mmax_labels", "0, 1, NULL,", "0, 0.5, NULL,", "api losses")
m("epsilon: of a loss may be 0", "mmax_evsoftmax_loss_T", "> 0 ? epsilon : -1", "", "special_cases losses")
