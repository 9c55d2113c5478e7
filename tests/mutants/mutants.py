"""The mutants of run.py: a name, a text that stands once in include/multimax.h, what it becomes, and the tests of which
one must fail, in the order in which they are tried."""
from collections import namedtuple

Mutant = namedtuple("Mutant", "name old new tests")
MUTANTS = []


def m(name, old, new, tests):
    MUTANTS.append(Mutant(name, old, new, tests))


# ==== scalars ====
m("exp in double: a coefficient", "6.61375632143793436117e-05", "6.61375632143793436117e-06", "more attention losses")
m("exp in double: ln 2's rest is added", "1 - ((low - (r * c) / (2 - c)) - high)", "1 - ((-low - (r * c) / (2 - c)) - high)",
  "more attention losses")
m("exp_rest: one term is left out", "for (int i = 20; i > 1; --i) { sum = (1 + z * sum) / i; }",
  "for (int i = 20; i > 1; --i) { sum = (1 + (i == 5 ? 0 : z * sum)) / i; }", "more")
m("exp in double: 0 far too early", "least = -708.39641853226408", "least = -70.39641853226408", "attention more losses")
m("two sum: what is lost has the other sign", "*lost += (*total - (whole - shadow)) + (term - shadow);",
  "*lost -= (*total - (whole - shadow)) + (term - shadow);", "forward losses")
m("hash: another shift", "a = (a ^ (a >> 27))", "a = (a ^ (a >> 26))", "golden more")
m("table of 2^(j/8): one entry", "0x3f785489, 0x3f761e06, 0x3f7526f5, 0x3f758c40,\n                                           0x3f776d6e",
  "0x3f78548f, 0x3f761e06, 0x3f7526f5, 0x3f758c40,\n                                           0x3f776d6e", "forward")

# ==== checks ====
m("scale: 2^61 passes", "0x43b0000000000000 - 0x3c30000000000000", "0x43c0000000000000 - 0x3c30000000000000",
  "special_cases")
m("scale: one below 2^-60 passes", "bits - 0x3c30000000000000 <=", "bits - 0x3c20000000000000 <=", "special_cases")
m("scale: 0 is one half", "if (bits << 1 == 0) { *scale = 1; }", "if (bits << 1 == 0) { *scale = 0.5; }", "api forward")
m("range: NaN passes", "!mmax_is_nan_f64(a) && a >= low && a <= high ? MMAX_OK", "!(a < low || a > high) ? MMAX_OK",
  "special_cases")
m("params: what rounds to infinity passes", "a < 3.4028235677973366e38 &&", "a <= 3.4028235677973366e38 &&",
  "special_cases")
m("params: what is beyond -max passes", "a > -3.4028235677973366e38)", "a > -1e300)", "special_cases")
m("params: order 3 passes", "p->order == 1 || p->order == 2;", "p->order == 1 || p->order == 2 || p->order == 3;",
  "special_cases")
m("params: a bad d passes", "mmax_fits(p->b[i], size) &&\n               mmax_fits(p->d[i], size);",
  "mmax_fits(p->b[i], size);", "special_cases")
m("params: order 1 reads the second ones", "good && i < p->order; ++i", "good && i < 2; ++i", "special_cases api")
m("targets: grad_scale 0 is not 1", "{ t->grad_scale = 1; }", "{ t->grad_scale = 2; }", "losses api")
m("targets: smoothing 1 passes", "t->label_smoothing < 1)", "t->label_smoothing <= 1)", "special_cases")
m("targets: index and q both pass", " || (t->index && t->q)) {", ") {", "special_cases losses attention")
m("targets: a loss takes attention", "|| s->attention || (t->index", "|| (t->index", "special_cases attention losses")
m("targets: class n passes", "(size_t)index >= end)", "(size_t)index > end)", "special_cases")
m("targets: a class before the start passes", "((size_t)index < start || (size_t)index >= end)", "((size_t)index >= end)",
  "attention special_cases")
m("targets: a negative weight passes", " || t->weights[row] < 0)) { return 0; }", ")) { return 0; }",
  "attention special_cases losses")
m("attention: masked above 0 passes", " || a->masked > 0 ||", " ||", "attention special_cases")
m("attention: any function takes sinks", "(a->sinks && !(needs & MMAX_SINKS))", "0", "attention special_cases")
m("attention: the last head is not checked", "for (size_t h = 0; h < heads; ++h) {\n        double scale",
  "for (size_t h = 0; h + 1 < heads; ++h) {\n        double scale", "attention special_cases")
m("attention: an infinite slope passes", "(a->slopes && !mmax_fits(a->slopes[h], size)) ||", "", "attention special_cases")
m("attention: a sink of +inf passes", "sink == 0x7ff0000000000000 ||", "", "attention special_cases")
m("attention: a sink of NaN passes", "(sink & 0x7fffffffffffffff) > 0x7ff0000000000000) {", "0) {",
  "attention special_cases")
m("alias: neighbours count as overlapping", ">= p_bytes + (q_bytes - 1);", "> p_bytes + (q_bytes - 1);",
  "special_cases memory")
m("alias: one byte may overlap", "+ (q_bytes - 1) >= p_bytes + (q_bytes - 1);", "+ (q_bytes - 1) >= p_bytes + (q_bytes - 1) - 4;",
  "special_cases")
m("alias: interleaved rows must leave a gap", "offset < row || offset + row > a->stride;",
  "offset <= row || offset + row > a->stride;", "special_cases")
m("alias: interleaved rows may overlap at the end", "offset < row || offset + row > a->stride;", "offset < row;",
  "special_cases")
m("alias: the same pointer is enough for in place", "if (a->stride && a->stride == b->stride) {", "if (a->stride && (p == q || a->stride == b->stride)) {",
  "special_cases")
m("alias: any two outputs may be one", "return p == q ? !is_input :", "return p == q ? 0 :", "special_cases attention more losses")
m("alias: outputs are not compared with bias and q", "for (int j = 0; j < 10; ++j) {                /* bias",
  "for (int j = 0; j < 10; j = j == 3 ? 6 : j + 1) {                /* bias", "attention special_cases losses")
m("alias: a loss is compared as one double", ": rows);\n    arrays[8]", ": 1);\n    arrays[8]", "special_cases losses")
m("null: a metric without an output passes", "(!(needs & MMAX_PER_ROW) || a->per_row) &&", "", "special_cases api")
m("null: gy is not asked for", "(!(needs & MMAX_GY) || a->gy) &&", "", "special_cases")
m("null: targets are not asked for", " || a->t->index || a->t->q);", " || 1);", "special_cases losses")
m("order: parameters before shapes", "if (s->cols > limit || rows >", "if (!mmax_check_scale(&s->scale)) { return MMAX_ERR_PARAM; }\n    if (s->cols > limit || rows >",
  "special_cases api")
m("order: aliases before lengths", "for (size_t r = 0; r < rows; ++r) {\n        if (mmax_end_of",
  "if (mmax_collide(&arrays[0], &arrays[1], 1, row)) { return MMAX_ERR_ALIAS; }\n    for (size_t r = 0; r < rows; ++r) {\n        if (mmax_end_of",
  "special_cases api")
m("shape: strides matter for one row", "*strides[i] == 0 || rows == 1 ? s->cols", "*strides[i] == 0 ? s->cols",
  "special_cases")
m("shape: a stride below cols passes", "(stride < s->cols || (count", "(stride + 1 < s->cols || (count", "special_cases")
m("shape: sizes may overflow", "count > 1 && stride > (limit - s->cols) / (count - 1)", "0", "special_cases")
m("shape: so many columns pass", "s->cols > limit || rows > SIZE_MAX", "rows > SIZE_MAX", "special_cases")
m("shape: a length of cols + 1 passes", "mmax_end_of(s, r) > s->cols ||", "mmax_end_of(s, r) > s->cols + 1 ||",
  "special_cases")
m("shape: a start past the end passes", " || mmax_start_of(s, r) > mmax_end_of(s, r)) {", ") {", "attention special_cases")
m("shape: k times rows may overflow", "a->k > limit / rows || s->cols", "s->cols", "topk special_cases")
m("one row: any overlap passes", "in == a->out || mmax_are_apart(in, row, a->out, row)", "1", "special_cases api")
m("one row: NULL params pass", "int good = !(a->needs & MMAX_PARAMS) || a->p;", "int good = 1;", "special_cases api")

# ==== vector layer, walking, sums (AVX-512) ====
m("least of two: NaN in the other place", "((mmax_vec)MMAX_R(min)(a, b))\n#        define mmax_max(a, b)             (",
  "((mmax_vec)MMAX_R(min)(b, a))\n#        define mmax_max(a, b)             (", "special_cases forward")
m("lt is le", "MMAX_CMP(cmp)(a, b, _CMP_LT_OQ)", "MMAX_CMP(cmp)(a, b, _CMP_LE_OQ)", "forward special_cases backward topk")
m("part of a register: one lane too many", "_bzhi_u32(0xffff, (unsigned)(n))", "_bzhi_u32(0xffff, (unsigned)(n) + 1)",
  "memory special_cases")
m("sweep: the last register is left out", "if (block_ + (size_t)(k * MMAX_WIDTH) < (to)) \\\n                    MMAX_AT",
  "if (block_ + (size_t)(k * MMAX_WIDTH) + 1 < (to)) \\\n                    MMAX_AT", "forward properties")
m("along: the tail is left out", "if (at_ < (to)) MMAX_AT(at_, 0, (int)((to)-at)", "if (at_ + 1 < (to)) MMAX_AT(at_, 0, (int)((to)-at)",
  "forward properties")
m("fold over lanes: not those 4 apart", "op(v, mmax_swap(v, (4 % MMAX_WIDTH)))", "op(v, mmax_swap(v, (8 % MMAX_WIDTH)))",
  "forward")
m("chunk: sums of lanes are not cleared", "mmax_lanes_clear(lanes, terms);                                                \\\n            MMAX_SWEEP",
  "if (from_ == 0) mmax_lanes_clear(lanes, terms);                                                \\\n            MMAX_SWEEP", "forward")
m("total: what was lost stays so", "? sum->total + sum->lost : sum->total;", "? sum->total : sum->total;", "forward losses long_rows")
m("total: infinity loses itself", "return mmax_is_finite_f64(sum->total) ? sum->total + sum->lost", "return 1 ? sum->total + sum->lost",
  "special_cases losses")
m("log1p: 1/7 is 1/6", "mmax_set(1.0 / 11)) * z4 + mmax_set(1.0 / 7)", "mmax_set(1.0 / 11)) * z4 + mmax_set(1.0 / 6)", "losses")
m("log1p: what 1 + v lost is left out", "+ lost / whole);", ");", "losses attention")

# ==== what a call prepares, the exponential, sigma ====
m("scale: its log2(e) has no low part", "c->low = (float)(s * log2e - (double)c->high);", "c->low = 0;", "forward")
m("scale, f64: the low part forgets a product", "s_top * l_rest + s_rest * l_top)", "s_top * l_rest)", "forward")
m("sigma: below is above", "c->below[i] = below ? (mmax_real)(1.0 - p->t_b[i]) : 0;",
  "c->below[i] = below ? (mmax_real)(p->t_b[i] - 1.0) : 0;", "forward golden")
m("sigma: an absent kink is at 0", ": -MMAX_MAX;\n        c->d[i]", ": 0;\n        c->d[i]", "special_cases forward")
m("sigma: order 1 takes the second terms", "below = p && i < p->order && p->t_b[i] != 1.0, above",
  "below = p && p->t_b[i] != 1.0, above", "forward golden")
m("sigma: the second order is not squared", "mmax_fma(mmax_set(c->above[1]) * v, v, mmax_set(c->below[1]) * u * u)",
  "mmax_fma(mmax_set(c->above[1]) * v, v, mmax_set(c->below[1]) * u)", "forward golden")
m("sigma: a mask meets its terms", "return mmax_select(mmax_le(mmax_abs(s), largest), a, s);", "return a;", "special_cases")
m("sigma: inf - inf stays NaN", "a = mmax_select(mmax_is_nan(both), second, both);", "a = both;", "special_cases")
m("origin: the lowest weight is too high", "o.lowest = (whole - (mmax_real)(MMAX_EXPONENT + 1))",
  "o.lowest = (whole - (mmax_real)(MMAX_EXPONENT - 20))", "forward special_cases")
m("exp: no bias against small numbers", "#    define MMAX_BIAS 64", "#    define MMAX_BIAS 0", "forward special_cases environment")
m("exp, f32: a coefficient", "mmax_set(9.61861293762922e-3f), f, 5.5508", "mmax_set(9.61961293762922e-3f), f, 5.5508", "forward")
m("exp, f64: a coefficient", "MMAX_H(MMAX_H(MMAX_H(p, f, 1.33335579020565746e-3)", "MMAX_H(MMAX_H(MMAX_H(p, f, 1.33335579020575746e-3)", "forward")
m("exp: f forgets the low part", "mmax_fma(x, mmax_set(c->low), mmax_fma(x, mmax_set(c->high), minus_q))",
  "mmax_fma(x, mmax_set(c->high), minus_q)", "forward")
m("far maxima: from far too late", "(MMAX_DOUBLE ? 1e9 : 131072.0)", "(MMAX_DOUBLE ? 1e14 : 16777216.0)",
  "forward special_cases losses")

# ==== attention: scores ====
m("mask: an entry at the limit is none", "mmax_lt(x, mmax_set((mmax_real)t->limit))", "mmax_lt(x, mmax_set((mmax_real)t->limit - 1))",
  "attention")
m("bias: without its slope", "mmax_fma(b, mmax_set((mmax_real)t->slope), b * mmax_set(0))", "b", "attention")
m("bias: slope 0 hides +inf", "mmax_fma(b, mmax_set((mmax_real)t->slope), b * mmax_set(0))",
  "(b * mmax_set((mmax_real)t->slope))", "attention special_cases")
m("bias: -inf does not mask", "is_masked = mmax_or(is_masked, mmax_lt(b, mmax_set(-MMAX_MAX)));", "", "attention")

# ==== gradients through sigma, gp ====
m("slope: one at the kink, too", "is_above = mmax_lt(d, s); /*", "is_above = mmax_le(d, s); /*", "backward losses special_cases")
m("slope: of order 2 without its 2", "t->above[i] = (mmax_real)(i + 1) * mmax_within(c->above[i]);",
  "t->above[i] = mmax_within(c->above[i]);", "backward losses")
m("gp: below and above change places", "lanes[4 * i][k] = mmax_fma(gu, u, lanes[4 * i][k]);",
  "lanes[4 * i][k] = mmax_fma(gv, v, lanes[4 * i][k]);", "backward losses")
m("gp: a mask's distance is infinite", "mmax_max(x * mmax_set(t->input_scale), mmax_set(-MMAX_MAX / 4)); /*",
  "(x * mmax_set(t->input_scale)); /*", "special_cases backward losses")
m("gp: the target's own d is left out", "mmax_sum_add(&t->sums[4 * i + 3], g * dv);", "", "losses")
m("gp: what is held is not flushed", "if (t->held + more > MMAX_GP_MOST) {", "if (t->held + more > 1000000 * MMAX_GP_MOST) {",
  "backward losses long_rows bits")
m("gp: flushed lanes stay", "mmax_fold_flat(t->lanes[i], MMAX_GP_REGS), 0));\n        MMAX_EACH_OF(k, MMAX_GP_REGS) { t->lanes[i][k] = mmax_set(0); }",
  "mmax_fold_flat(t->lanes[i], MMAX_GP_REGS), 0));", "backward losses")
m("gp: t_b has the other sign", "gp->t_b[i] -= s[0];", "gp->t_b[i] += s[0];", "backward losses")
m("gp: is written, not added to", "gp->t_d[i] += s[1];", "gp->t_d[i] = s[1];", "backward losses")
m("gp: b of order 2 without its 2", ": (i + 1) * (1 - p->t_b[i]) * s[2];", ": (1 - p->t_b[i]) * s[2];", "backward losses")
m("gp: NaN rows are passed over", "s[j] = t->any_nan ? mmax_from_f64(0x7ff8000000000000) :", "s[j] =", "special_cases backward losses")
