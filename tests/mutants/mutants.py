"""The mutants of run.py: a name, a text that stands once in include/multimax.h, what it becomes, and the tests of which
one must fail, in the order in which they are tried."""
from collections import namedtuple

Mutant = namedtuple("Mutant", "name old new tests")
MUTANTS = []


def m(name, old, new, tests):
    MUTANTS.append(Mutant(name, old, new, tests))


# ==== scalars ====
m("exp in double: ln 2's rest is added", "1 - ((low - (r * c) / (2 - c)) - high)",
  "1 - ((-low - (r * c) / (2 - c)) - high)", "more attention losses")
m("exp_rest: one term is left out", "for (int i = 20; i > 1; --i) { sum = (1 + z * sum) / i; }",
  "for (int i = 20; i > 1; --i) { sum = (1 + (i == 5 ? 0 : z * sum)) / i; }", "more")
m("two sum: what is lost has the other sign", "sum->lost += (sum->total - (whole - shadow)) + (term - shadow);",
  "sum->lost -= (sum->total - (whole - shadow)) + (term - shadow);", "forward losses")
m("table of 2^(j/8): one entry", "0x3f785489, 0x3f761e06, 0x3f7526f5, 0x3f758c40,\n"
  "                                           0x3f776d6e", "0x3f78548f, 0x3f761e06, 0x3f7526f5, 0x3f758c40,\n"
  "                                           0x3f776d6e", "forward")

# ==== checks ====
m("scale: 2^61 passes", "0x43b0000000000000 - 0x3c30000000000000", "0x43c0000000000000 - 0x3c30000000000000",
  "special_cases")
m("scale: one below 2^-60 passes", "bits - 0x3c30000000000000 <=", "bits - 0x3c20000000000000 <=", "special_cases")
m("scale: 0 is one half", "if (bits << 1 == 0) { *scale = 1; }", "if (bits << 1 == 0) { *scale = 0.5; }", "api forward")
m("range: NaN passes", "if (mmax_is_nan_f64(a.epsilon) || a.epsilon < low", "if (a.epsilon < low",
  "special_cases")
m("params: what rounds to infinity passes", "a < 3.4028235677973366e38 &&", "a <= 3.4028235677973366e38 &&",
  "special_cases")
m("params: a bad d passes", "mmax_fits(p->b[i], size) &&\n" "               mmax_fits(p->d[i], size);",
  "mmax_fits(p->b[i], size);", "special_cases")
m("params: order 1 reads the second ones", "good && i < p->order; ++i", "good && i < 2; ++i", "special_cases api")
m("targets: smoothing 1 passes", "t->label_smoothing < 1)", "t->label_smoothing <= 1)", "special_cases")
m("targets: index and q both pass", " || (t->index && t->q)) {", ") {", "special_cases losses attention")
m("targets: a loss takes attention", "s->inner <= 1 && !(needs & MMAX_TARGETS) &&", "s->inner <= 1 &&",
  "special_cases attention losses")
m("targets: a grad_scale beyond the type", "if (!mmax_fits(t->grad_scale, size) ||",
  "if (!mmax_is_finite_f64(t->grad_scale) ||", "special_cases")
m("attention: slopes without bias pass", " && !(a->slopes && !a->bias);", ";", "special_cases")
m("alias: other inputs are not compared", "j < (int)(sizeof arrays / sizeof *arrays); ++j", "j < 10; ++j", "special_cases")
m("no columns: the sink is lost", "sinks ? sinks[mmax_head_of(&a->s, row)] : value;", "value;", "special_cases")
m("no columns: a class passes", "if (a->t->index[row] >= 0) { return MMAX_ERR_TARGETS; }", "", "special_cases")
m("sink gradient: lse is not used", "weight = a->lse ? mmax_exp_double(below < 0 ? below : 0) :", "weight =", "attention")
m("targets: class n passes", "(size_t)index >= end)", "(size_t)index > end)", "special_cases")
m("targets: a class before the start passes", "((size_t)index < start || (size_t)index >= end)",
  "((size_t)index >= end)", "attention special_cases")
m("attention: masked above 0 passes", "!(a->masked > 0) && !(a->sinks", "!(a->sinks", "attention special_cases")
m("attention: any function takes sinks", "(a->sinks && !(needs & MMAX_SINKS))", "0", "attention special_cases")
m("attention: the last head is not checked", "h <= mmax_head_of(s, s->rows - 1); ++h",
  "h + 1 <= mmax_head_of(s, s->rows - 1); ++h", "attention special_cases")
m("attention: an infinite slope passes", "!(a->slopes && !mmax_fits(a->slopes[h], size)) &&", "",
  "attention special_cases")
m("attention: a sink of NaN passes", "(a->sinks && mmax_is_bad(a->sinks[h]))", "0",
  "attention special_cases")
m("alias: neighbours count as overlapping", ">= p_bytes + (q_bytes - 1);", "> p_bytes + (q_bytes - 1);",
  "special_cases memory")
m("alias: interleaved rows must leave a gap", "offset < row || offset + row > a->stride;",
  "offset <= row || offset + row > a->stride;", "special_cases")
m("alias: interleaved rows may overlap at the end", "offset < row || offset + row > a->stride;", "offset < row;",
  "special_cases")
m("alias: the same pointer is enough for in place", "if (a->stride && a->stride == b->stride) {",
  "if (a->stride && (p == q || a->stride == b->stride)) {", "special_cases")
m("alias: any two outputs may be one", "return p == q ? !is_input :", "return p == q ? 0 :",
  "special_cases attention more losses")
m("alias: outputs are not compared with bias and q", "*arrays); ++j) {", "*arrays); j = j == 3 ? 6 : j + 1) {", "attention special_cases losses")
m("alias: a loss is compared as one double", "a->needs & MMAX_PER_CALL ? 1 : per_row", "1", "special_cases losses")
m("order: parameters before shapes", "if (s->cols > limit / inner || rows",
  "if (!mmax_check_scale(&s->scale)) { return MMAX_ERR_PARAM; }\n" "    if (s->cols > limit / inner || rows",
  "special_cases api")
m("order: aliases before ends", "for (size_t r = 0; r < rows; ++r) {\n" "        if (mmax_end_of",
  "if (mmax_collide(&arrays[0], &arrays[1], 1, row)) { return MMAX_ERR_ALIAS; }\n"
  "    for (size_t r = 0; r < rows; ++r) {\n" "        if (mmax_end_of", "special_cases api")
m("shape: strides of one row of bias or q matter", "count * inner == 1 ? width : arrays[i].stride;",
  "arrays[i].stride;",
  "attention losses")
m("shape: a stride below cols passes", "(stride < width || (count", "(stride + 1 < width || (count",
  "special_cases")
m("shape: sizes may overflow", "count > 1 && stride > (limit - width) / (count - 1)", "0", "special_cases")
m("interleaved: rows need be no multiple", " || rows % inner != 0", "", "axis")
m("interleaved: rows may be too long for the tile", "s->cols > mmax_tile_of(a, size)", "0", "axis")
m("interleaved: attention passes", "good = s->inner <= 1 &&", "good =", "axis")
m("interleaved: a block's stride is not looked at", "count * inner == 1 ? width", "count == 1 ? width", "axis")
m("interleaved: entries that are not active are read", "const int by_one = !write && (tile->starts || tile->ends);",
  "const int by_one = 0;", "axis")
m("interleaved: rows of the next block go on in this one", ": inner - in_block < left ? inner - in_block : left", ": left",
  "axis")
m("interleaved: starts are forgotten", "&piece[0] : s->starts ? s->starts + row : NULL", "&piece[0] : NULL", "axis")
m("interleaved: pieces end where the row does", "tile.s.ends = n < s->cols ? &piece[1] : tile.s.ends;", "", "axis")
m("interleaved: weights of rows stay behind", "(const double *)mmax_at(t->weights, row * sizeof *t->weights)",
  "t->weights", "axis")
m("shape: a length of cols + 1 passes", "mmax_end_of(s, r) > s->cols ||", "mmax_end_of(s, r) > s->cols + 1 ||",
  "special_cases")
m("shape: a start past the end passes", " || mmax_start_of(s, r) > mmax_end_of(s, r)) {", ") {",
  "attention special_cases")
m("shape: k times rows may overflow", "a->k > limit / rows || s->cols", "s->cols", "topk special_cases")
m("one row: any overlap passes", "in == a->out || mmax_are_apart(in, row, a->out, row)", "1", "special_cases api")
m("one row: NULL params pass", "int good = !(a->needs & MMAX_PARAMS) || a->p;", "int good = 1;", "special_cases api")

# ==== vector layer, walking, sums (AVX-512) ====
m("lt is le", "MMAX_CMP(cmp)(a, b, _CMP_LT_OQ)", "MMAX_CMP(cmp)(a, b, _CMP_LE_OQ)",
  "forward special_cases backward topk")
m("part of a register: one lane too many", "_bzhi_u32(0xffff, (unsigned)(n))", "_bzhi_u32(0xffff, (unsigned)(n) + 1)",
  "memory special_cases")
m("sweep: the last register is left out", "if (is_whole_ || block_ + (size_t)(k * MMAX_WIDTH) < (to))",
  "if (is_whole_ || block_ + (size_t)(k * MMAX_WIDTH) + 1 < (to))", "forward properties")
m("along: the tail is left out", "(from) + k * MMAX_WIDTH < (to); ++k)", "(from) + k * MMAX_WIDTH + 1 < (to); ++k)",
  "forward properties")
m("chunk: sums of lanes are not cleared",
  "mmax_lanes_clear(lanes, terms);                                                \\\n" "            walk(",
  "if (from_ == 0) mmax_lanes_clear(lanes, terms);                                                \\\n"
  "            walk(", "forward")
m("total: what was lost stays so", "? sum->total + sum->lost : sum->total;", "? sum->total : sum->total;",
  "forward losses long_rows")
m("total: infinity loses itself", "return mmax_is_finite_f64(sum->total) ? sum->total + sum->lost",
  "return 1 ? sum->total + sum->lost", "special_cases losses")
m("log1p: what 1 + v lost is left out", "return mmax_log(whole, lost / whole);", "return mmax_log(whole, lost * 0);", "more losses")

# ==== what a call prepares, the exponential, sigma ====
m("scale: its log2(e) has no low part", "c->low = (float)(s * log2e - (double)c->high);", "c->low = 0;", "forward")
m("scale, f64: the low part forgets a product", "s_top * l_rest + s_rest * l_top)", "s_top * l_rest)", "forward")
m("sigma: below is above", "c->below[i] = below ? (mmax_real)(1.0 - p->t_b[i]) : 0;",
  "c->below[i] = below ? (mmax_real)(p->t_b[i] - 1.0) : 0;", "forward golden")
m("sigma: an absent term keeps its kink", "below ? (mmax_real)p->b[i] : -MMAX_MAX;", "p ? (mmax_real)p->b[i % p->order] : 0;",
  "special_cases")
m("sigma: the second order is not squared", "mmax_fma(mmax_set(c->above[1]) * v, v, mmax_set(c->below[1]) * u * u)",
  "mmax_fma(mmax_set(c->above[1]) * v, v, mmax_set(c->below[1]) * u)", "forward golden")
m("sigma: a mask meets its terms", "return mmax_select(mmax_le(mmax_abs(s), largest), a, s);", "return a;",
  "special_cases")
m("sigma: inf - inf stays NaN", "a = mmax_select(mmax_is_nan(both), second, both);", "a = both;", "special_cases")
m("origin: the lowest weight is too high", "o.lowest = (whole - (mmax_real)(MMAX_EXPONENT + 1))",
  "o.lowest = (whole - (mmax_real)(MMAX_EXPONENT - 20))", "forward special_cases")
m("exp: no bias against small numbers", "#    define MMAX_BIAS 64", "#    define MMAX_BIAS 0",
  "forward special_cases environment")
m("exp, f32: a coefficient", "mmax_set(9.61861293762922e-3f), f, 5.5508", "mmax_set(9.61861293762922e-3f), f, 5.6508",
  "forward")
m("far maxima: from far too late", "(MMAX_DOUBLE ? 1e9 : 131072.0)", "(MMAX_DOUBLE ? 1e14 : 16777216.0)",
  "forward special_cases losses")

# ==== attention: scores ====
m("mask: an entry at the limit is none", "mmax_lt(x, mmax_set(t->limit))",
  "mmax_lt(x, mmax_set((mmax_real)t->limit - 1))", "attention")
m("bias: a slope below 0 hides +inf", "mmax_fma(b, mmax_set(t->slope), b * mmax_set(0))",
  "(b * mmax_set(t->slope))", "attention special_cases")
m("bias: -inf does not mask", "is_masked = mmax_or(is_masked, mmax_lt(b, mmax_set(-MMAX_MAX)));", "", "attention")

# ==== gradients through sigma, gp ====
m("slope: one at the kink, too", "is_above = mmax_lt(d, s); /*", "is_above = mmax_le(d, s); /*",
  "backward losses special_cases")
m("gp: a mask's distance is infinite", "mmax_max(x_ * mmax_set(kinks.input_scale), mmax_set(-MMAX_MAX / 4)); /*",
  "(x_ * mmax_set(kinks.input_scale)); /*", "special_cases backward losses")
m("gp: a target's own part is left out", "e[target] = (mmax_real)(mmax_target_gradient(r) * (double)lift.up);", ";",
  "losses")
m("gp: what is masked counts", "g_ = mmax_keep(mmax_is_active(x_), mmax_load_upto(g + at, left, mmax_set(0)));",
  "g_ = mmax_load_upto(g + at, left, mmax_set(0));", "special_cases backward")
m("gp: what is held is not flushed", "if (slopes->held + more > MMAX_GP_MOST) {",
  "if (slopes->held + more > 1000000 * MMAX_GP_MOST) {", "backward losses long_rows bits")
m("gp: flushed lanes stay", "MMAX_EACH_OF(i, 8 * MMAX_GP_REGS) { t->lanes[i] = mmax_set(0); }", "", "backward losses")
m("gp: short rows lie upon each other", "mmax_store(packed[2] + j * n + at, e.x);", "mmax_store(packed[2] + at, e.x);", "backward")
m("gradient: short rows have no end", "mmax_store_upto(r.gx + j * gx_stride + at, left, mmax_load(g + j * n + at))",
  "mmax_store(r.gx + j * gx_stride + at, mmax_load(g + j * n + at))", "special_cases memory backward")
m("gp: lanes are lost", "{ slopes->lanes[i] = lanes[i]; }", "{ (void)lanes[i]; }", "losses")
m("gp: is written, not added to", "gp->t_d[i] += s[1];", "gp->t_d[i] = s[1];", "backward losses")
m("gp: b of order 2 without its 2", ": (i + 1) * (1 - p->t_b[i]) * s[2];", ": (1 - p->t_b[i]) * s[2];",
  "backward losses")
m("gp: NaN rows are passed over", "s[j] = t->any_nan ? MMAX_NAN_F64 :", "s[j] =",
  "special_cases backward losses")

# ==== the softmax family: three passes ====
m("pass 1: NaN is not looked for", "if (MMAX_UNLIKELY(mmax_any(mmax_is_nan(sum[0])))) { return MMAX_IS_NAN; }", "", "special_cases")
m("pass 1: sigma that overflows to -inf is normal", "if ((double)*max * c->scale < -MMAX_MAX) { return MMAX_IS_EMPTY; }",
  "", "special_cases")
m("pass 3: the head of a row is skipped", "if (at) { mmax_weights_step(y, e, (int)at, a, least); }", "",
  "forward bits long_rows")
m("weights below the normal numbers", "mmax_keep(mmax_le(least, mmax_abs(e)), e), a, mmax_set(0));",
  "e, a, mmax_set(0));", "special_cases environment forward")
m("weights: -0 from negative factors", "return mmax_fma(mmax_keep(mmax_le(least, mmax_abs(e)), e), a, mmax_set(0));",
  "return mmax_keep(mmax_le(least, mmax_abs(e)), e) * a;", "special_cases losses")
m("logarithms: the scale's low part", "mmax_fma(half, low, minus_log_sum)",
  "minus_log_sum", "losses")
m("logarithms: masks are finite",
  "mmax_select(mmax_is_active(s * scale), mmax_max(log, lowest), mmax_masked)", "mmax_max(log, lowest)",
  "special_cases losses")
m("special rows: masks become NaN, too", "state == MMAX_IS_NAN && mmax_bits_of(x[i]) != MMAX_MASKED ? MMAX_NAN",
  "state == MMAX_IS_NAN ? MMAX_NAN", "special_cases")
m("spread: what overflows stays so", "if (unit < 1 || mmax_is_finite_f64(spread->half_below)) { break; }", "break;",
  "special_cases losses")
m("evsoftmax: the mean may be above the largest", "r->mean = mean < (double)r->largest ? (mmax_real)mean : r->largest;",
  "r->mean = (mmax_real)mean;", "special_cases forward")
m("evsoftmax: entries at the mean are low", "mmax_select(mmax_lt(x, mean), mmax_max(",
  "mmax_select(mmax_le(x, mean), mmax_max(", "special_cases forward golden")
m("loss: evsoftmax's low target costs nothing", "((r->target < r->mean ? own : 0) +", "(0 +", "losses")
m("loss: a masked target is finite", "== MMAX_MASKED ? MMAX_INF_F64 : mmax_loss_of(r);", "== 1 ? 0 : mmax_loss_of(r);",
  "special_cases losses")
m("loss: gx at the target keeps q", ": e / sum) - r->q - own;", ": e / sum) - own;", "losses")
m("loss: an ignored row is read", "if (!b->to->look || b->a->t->q || b->a->t->index[row] >= 0) {",
  "if (1) {", "losses special_cases memory")
m("loss: grad_scale without the scale", "b->factor = a->t ? a->t->grad_scale * a->s.scale : 1;",
  "b->factor = a->t ? a->t->grad_scale : 1;", "losses golden")
m("far maxima: the shift is not taken off", "d = mmax_max(x_ - shift, lowest);", "d = mmax_max(x_, lowest);",
  "special_cases forward losses")
m("far maxima: what overflows is a mask", "mmax_select(mmax_is_active(x_), d, x_)", "x_ - shift", "losses")
m("ends: what is past them stays", "if (r->y && r->n < b->a->s.cols) {",
  "if (0) {", "special_cases memory")
m("sink: it is no term of the sum", "b->a->sink ? mmax_sink_of(r) : 0;", "0;", "attention")
m("lse: without the maximum", "= r->log_sum + (double)r->max * b->call.scale; }", "= r->log_sum + (double)r->max; }",
  "attention")
m("in place: sigma overwrites x that a loss needs", "r->y ? is_sigma && b->to->look && r->y == r->x :",
  "r->y ? 0 :", "losses")

# ==== rows, short rows ====
m("groups: all rows have the first one's factor", "a_ = mmax_set(a[j]);", "a_ = mmax_set(a[0]);", "forward bits")
m("short rows: logarithms with a bias are short", "!a->sink && !a->terms", "!a->sink", "attention")
m("groups: far maxima stay", "bad = mmax_or(mmax_is_nan(all), mmax_or(mmax_not_le(exponent, high), mmax_not_le(low, exponent)));",
  "bad = mmax_is_nan(all);", "special_cases forward")
m("groups: evsoftmax's masks count in the mean", "bad = mmax_not_le(mmax_abs(mean_), mmax_set(MMAX_MAX));",
  "bad = mmax_lt(mean_, mean_);", "special_cases forward")

# ==== sparsemax, entmax15 ====
m("lanes: Newton's step of entmax15 is too long", "next = norm * excess / ((norm + one) * first);",
  "next = excess / first;", "forward special_cases")
m("lanes: no second look", "mmax_or(mmax_or(mmax_lt(closest, step), mmax_lt(three, excess)), missed)",
  "mmax_lt(three, excess)", "forward golden")
m("lanes: tau has one part", "low = mmax_select(unsolved, (t - (t + step)) + step, low);", "", "forward")
m("lanes: rows with NaN are not suspect", "mmax_or(mmax_is_nan(sum), mmax_not(mmax_le(mmax_abs(max)",
  "(mmax_not(mmax_le(mmax_abs(max)", "special_cases")
m("tau of a row: is one real", "terms->low = (mmax_real)(((double)t - (double)terms->high) + a.step);",
  "terms->low = 0;", "forward losses")
m("candidates: the bound is a little too high", "(double)start - 1e-6) * t->inverse));",
  "(double)start + 1e-2) * t->inverse));", "forward")
m("candidates: start is rounded up", "return (double)(mmax_real)t > t ? mmax_real_below((mmax_real)t) : (mmax_real)t;",
  "return (mmax_real)(t + 1e-3);", "forward")
m("candidates: too many are lost", "return next < n ? 0 : held;", "return held;", "forward long_rows")
m("threshold loss: q at masks", "smooth ? mmax_keep(active, p - mmax_set(t->q)) : p;",
  "smooth ? p - mmax_set(t->q) : p;", "losses special_cases")
m("threshold loss: may be below 0", "is_masked ? MMAX_INF_F64 : loss > 0 ? mmax_limited(loss) : 0;",
  "is_masked ? MMAX_INF_F64 : loss;", "losses special_cases")
m("threshold: ignored rows have no loss", "row, is_ignored ? MMAX_IS_IGNORED : MMAX_IS_EMPTY",
  "row, MMAX_IS_EMPTY", "losses special_cases")
m("threshold: what is past a row's entries is left over", "    mmax_store(to + n, mmax_masked);\n", "", "properties bits losses")
m("threshold: registers that longer rows have are left over", "for (; i < g->most; i += MMAX_WIDTH) {", "for (; 0;) {",
  "properties bits losses")
m("threshold: lanes are not exchanged", "(v)[i] = mmax_lower(a, b, (s) % MMAX_WIDTH);", "(v)[i] = a;", "properties bits losses")
m("threshold: a row alone loses its last entry", "for (size_t i = g->held == 1 ? g->most : 0; i-- > 0;)",
  "for (size_t i = g->held == 1 ? g->most - 1 : 0; i-- > 0;)", "forward bits")

# ==== top-k, truncation, sampling ====
m("top-k: more than k of equal ones", "cut.last = (was_list ? cut.last : mmax_top_place(t, cut.last)) + 1;", "", "topk")
m("top-k: a place among candidates for one in the row", "(was_list ? cut.last : mmax_top_place(t, cut.last)) + 1;",
  "cut.last + 1;", "topk")
m("top-k: the count is of larger ones", "if (n >= MMAX_WIDTH) { return mmax_le(low, v); }",
  "if (n >= MMAX_WIDTH) { return is_above; }", "topk")
m("top-k: keys of negative numbers", "return bits >> 63 ? bits ^ (~(uint64_t)0 >> 1) : bits;", "return bits;",
  "topk environment")
m("top-k: missing ones have index 0", "mmax_select_put(t, count, 0, UINT32_MAX);", "mmax_select_put(t, count, 0, 0);", "topk")
m("top-k: of equal ones the last first", "mmax_igt(lanes, mmax_iset(i - at))", "mmax_igt(mmax_iset(i - at), lanes)", "topk")
m("top-k: first is not added to index", "mmax_bits_of(s), place + t->a->first);", "mmax_bits_of(s), place);", "topk attention")
m("top-k: fewer groups than k are active", "cut.low = t->mass < target ? cut.low : t->above;", "cut.low = t->above;", "topk")
m("truncate: keep does not count", "if (t->count < c->keep) {", "if (0) {", "topk")
m("truncate: top_p does not count", "mmax_top_keep(t, c->top_p, MMAX_MASSES);", "", "topk")
m("truncate: the variance for the deviation", "? mmax_root(low) * unit / down : 0", "? low * unit / down : 0", "topk")
m("truncate: weights of other candidates are kept", "    t->is_weighed = 0;\n", "", "topk")
m("sample: u does not count", "(double)(mmax_mixed(key) >> 11) * 1.1102230246251565e-16 * t->mass", "0.5 * t->mass", "topk")
m("sample: what is cut is drawn", "term = mmax_keep(is_kept, term);", "", "topk")

# ==== backward, tanhmax, soft caps ====
m("backward: gx below the normal numbers",
  "mmax_keep(counts, mmax_keep(counts, g) * mmax_set(l->down));", "g * mmax_set(l->down);", "environment backward special_cases losses")
m("backward: no lift", "{by == MMAX_BY_ENTRY ? 1 : MMAX_UP, MMAX_DOWN}", "{1, MMAX_DOWN}",
  "backward environment special_cases losses")
m("backward: what the scale makes subnormal is kept",
  "MMAX_MIN * 1.0000002 * (up / (size < MMAX_MIN ? MMAX_MIN : size > up ? up : size))",
  "MMAX_MIN", "environment special_cases backward")
m("backward: too much lift has no second try", "for (int i = 0; i < 2; ++i) {\n        r.lift = lifts[i];", "for (int i = 0; i < 1; ++i) {\n        r.lift = lifts[i];",
  "backward special_cases")
m("backward: gp of the low lift by the high one", "1 / ups[i]", "1 / ups[0]",
  "backward special_cases")
m("backward: gy of masked entries is used", "e.g = careful ? mmax_keep(counts, e.g) : e.g;", "", "special_cases")
m("backward: a mask of x weighs", "e.w = mmax_select(mmax_is_active(e.x), e.w, nothing);", "",
  "special_cases backward attention")
m("backward: NaN in x is not seen", "*check = mmax_fma(e.x, down, *check);", ";",
  "special_cases")
m("backward: NaN rows write masks", "nothing || (x && mmax_is_masked(x, i, terms)) ? 0 : MMAX_NAN",
  "nothing ? 0 : MMAX_NAN", "special_cases backward")
m("backward: -0 is a weight of NaN rows", "by != MMAX_BY_COSH && y_ << 1 == 0;", "by != MMAX_BY_COSH && y_ == 0;",
  "special_cases")
m("backward: short rows go on past NaN", "if (MMAX_UNLIKELY(mmax_any(mmax_is_bad_entry(check)))) { return 0; }", "", "special_cases backward")
m("backward: seglu's NaN is lost", "gx[i] = mmax_is_nan_f64((double)g[i]) ? mmax_from(MMAX_NAN) : gx[i];", ";", "special_cases backward")
m("backward: seglu's NaN is not in gp", "            r->slopes->any_nan = 1;\n            for (", "            for (",
  "special_cases backward")
m("tanhmax: short rows are all usual", "is_signed ? MMAX_USUAL : MMAX_FAR", "MMAX_FAR", "special_cases forward")
m("tanhmax: gx of flat rows", "unit = 1 / active;", "unit = 1 / (double)n;",
  "backward special_cases")
m("tanhmax: a term of sinh", "(mmax_exp_rest(s) - mmax_exp_rest(-s))", "mmax_exp_rest(s)", "backward")
m("tanhmax: cosh of masks counts", "if (careful) { *cosh2 = mmax_keep(active, *cosh2); }", "", "special_cases forward")
m("tanhmax: tiny f is squared", "mmax_keep(mmax_le(mmax_set(MMAX_TINY), mmax_abs(f)), f) : f, q", "f : f, q",
  "special_cases")
m("tanhmax: far rows lose the sign", "mmax_select(mmax_lt(x, mmax_set(0)), mmax_set(0) - *cosh2, *cosh2);", "*cosh2;",
  "special_cases forward")
m("seglu: results below the normal numbers", "mmax_keep(mmax_le(mmax_set(MMAX_MIN), mmax_abs(v)), v);", "v;",
  "special_cases forward environment")
m("softcap: 1 too early", "28.85390081777927", "8.85390081777927", "attention")
m("softcap: gradient of t", "mmax_max((one - t) * (one + t), zero)", "mmax_max(one - t, zero)", "attention")

# ==== entmax of any alpha, sigsoftmax, sparsehourglass, Gumbel numbers ====
m("entmax: far from the root it stops", "pass < 100 && size > close", "pass < 3 && size > close", "more")
m("entmax: large alpha has no base", "p->u > 1 && n > 1 ? mmax_powers_base(p) : 0", "0", "more")
m("entmax: a pivot above the target only", "return above < top ? above : below;", "return above < top ? above : low;", "more")
m("entmax: weights below the normal numbers", "mmax_keep(mmax_le(least_, e), e) * unit);", "e * unit);",
  "more")
m("entmax: a full buffer is lost", "held > 3 * MMAX_LANES || at + MMAX_WIDTH >= n",
  "at + MMAX_WIDTH >= n || held > 1000000", "more forward")
m("entmax loss: q > 0 at a mask", "is_lost |= is_masked && q_ > 0;", "", "more special_cases losses")
m("entmax backward: gy is not relative", "g_most = g;", "g_most = 0;", "more")
m("sigsoftmax: no bound of sigmoids", "s = mmax_max(mmax_min(x, most), mmax_set(0) - most);", "s = x;",
  "more special_cases")
m("hourglass: the sign of the sum", "(spread.half_below < 0 ? -2 : 2) * spread.half_below", "-2 * spread.half_below",
  "more")
m("gumbel: first_row does not count", "mmax_row_key(seed, first_row + row)", "mmax_row_key(seed, row)", "more")

# ==== metrics, soft targets ====
m("multimodality: x at epsilon counts", "if ((double)x[i] > a->epsilon && x[i] < x[first]) {",
  "if ((double)x[i] >= a->epsilon && x[i] < x[first]) {", "properties special_cases api losses")
m("multimodality: y of the last maximum", "first = x[i] > x[first] ? i : first;",
  "first = x[i] >= x[first] ? i : first;",
  "properties special_cases api losses")
m("sparsity: negative y overflow", "5.9604644775390625e-08 * root", "root", "api")
m("sparsity: an underflown reference", "reference = reference >= (double)MMAX_MIN ? reference : 0;", "",
  "api")
m("soft targets: q > 0 at a mask", "lost = mmax_or(lost, mmax_not(active) & counts);", "", "attention losses")
m("soft targets: sum q is 1", "mmax_factor_of(soft ? r->q_sum : 1,", "mmax_factor_of(1,", "attention losses")
m("soft targets: NaN passes", "return careful ? !mmax_any(bad)", "return careful ? 1", "losses")
m("soft targets: a negative one is usual", " && !mmax_any(mmax_lt(least, zero));", ";", "losses")
m("soft targets: NaN passes in entmax", "n == 0 || (q && mmax_targets_are(q, x, n) == MMAX_IS_NAN)", "n == 0", "losses")
m("loss: an infinite factor makes NaN", "return g != 0 ? g * factor : 0;", "return g * factor;", "losses")
m("loss: an infinite factor is a usual one", " || !mmax_is_finite_f64(factor);", ";", "losses")
m("loss: a factor is not infinite beyond the type", "b->factor = b->factor > 0 ? MMAX_INF_F64 : -MMAX_INF_F64;", "", "losses")
m("soft targets: outside starts and ends", "if (a->out) { memset((mmax_real *)a->out + n, 0, (a->s.cols - n) * sizeof(mmax_real)); }",
  "", "attention losses")

# ==== attention: calls by parts; public functions ====
m("bias: rows do not repeat", "a && a->bias_rows ? row % a->bias_rows : row;", "row;", "attention")
m("masked: the limit of floats is not exact", "(double)above > a->masked ? (double)above", "1 ? (double)above",
  "attention")
m("blocks: the largest is the last one's", "from == 0 || max > r->max ? max : r->max;", "max;", "attention")
m("blocks: an empty one makes the row empty", "is == MMAX_IS_EMPTY || state == MMAX_IS_NAN ? state : is;", "is;",
  "attention special_cases")
m("parts: a head's end is passed", "if (of_head && of_head - row % of_head < most) { most = of_head - row % of_head; }",
  "", "attention")
m("parts: bias does not begin again", "bias_rows - row % bias_rows < rows", "0", "attention")
m("rows: bias is the row's, whatever its start", "(mmax_start_of(&r->b->a->s, r->row) + from) * sizeof(mmax_real)",
  "from * sizeof(mmax_real)", "attention")
m("parts: rows of other starts are alike", "(starts[row + n] == starts[row] && mmax_end_of(&a->s, row + n) == end)",
  "(mmax_end_of(&a->s, row + n) == end)", "attention")
m("parts: weights of rows are alike", "(!weights || weights[row + n] == weights[row])) {", "1) {", "losses attention")
m("starts: what is before stays", "memset(mmax_at(a->out, r * a->out_stride * size), 0, start * size);",
  "", "attention")
m("starts: the class is not moved", "*t.index - (int32_t)start : -1;", "*t.index : -1;", "attention losses")
m("weights: a row of weight 0 is read", "index = weight > 0 && *t.index >= 0", "index = *t.index >= 0",
  "attention losses memory")
m("weights: the loss has none", "a->per_row[row + i] = mmax_limited(loss); }",
  "a->per_row[row + i] = mmax_limited(loss / weight); }", "attention losses")
m("isa: one that is not there is taken", "if (!mmax_isa_available(isa)) { return MMAX_ERR_ISA; }", "",
  "api environment threads")
m("helper: the table's order", "{row[1], row[3]}", "{row[0], row[2]}", "api attention golden")
m("helper: labels have no grad_scale", "t = {index, 0, 1, NULL, NULL, 0};", "t = {index, 0, 0.5, NULL, NULL, 0};",
  "api losses")
m("epsilon: of a loss may be 0", "epsilon > 0 ? epsilon : -1, 0, 1);", "epsilon, 0, 1);", "special_cases losses")
