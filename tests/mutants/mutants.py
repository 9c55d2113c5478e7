"""The mutants of run.py.

`old` stands once between `anchor`, which stands once in the header, and the next line that is a closing brace alone.
`tests` are tried in this order; one of them must fail.
"""
from collections import namedtuple

Mutant = namedtuple("Mutant", "name anchor old new tests tier")
MUTANTS = []


def function(anchor, tier="scalar"):
    """Mutants of what begins at the anchor. Plain C compiles fastest; AVX2 has the code for registers of many lanes."""

    def add(name, old, new, tests):
        MUTANTS.append(Mutant(name, anchor, old, new, tests, tier))

    return add


# ---- checks ----
m = function("MMAX_STATIC int mmax_collide(")
m("alias: neighbours count as overlapping", "? q - p >= mmax", "? q - p > mmax", "special_cases memory")
m("alias: one entry may overlap", "? q - p >= mmax_extent_of(a, m)",
  "? q - p + m->size >= mmax_extent_of(a, m)", "special_cases")
m("alias: other side, one entry may overlap", ": p - q >= mmax_extent_of(b, m)",
  ": p - q + m->size >= mmax_extent_of(b, m)", "special_cases")
m("alias: interleaved rows must leave a gap before", "offset >= row &&", "offset > row &&", "special_cases")
m("alias: interleaved rows must leave a gap after", "<= a_stride * m->size)", "< a_stride * m->size)", "special_cases")
m("alias: interleaved rows may overlap by one", "offset + row <= a_stride * m->size",
  "offset + row <= a_stride * m->size + m->size", "special_cases")
m("alias: same pointer is enough for in place", "p == q && a_stride == b_stride", "p == q", "special_cases")
m("alias: a loss may overlap gp", "!a->p || !b->p", "!a->p || !b->p || !(a->role < MMAX_GP || b->role < MMAX_GP)",
  "special_cases")

m = function("MMAX_INLINE void mmax_default_stride(")
m("shape: strides matter for one row", "*stride == 0 || s->rows == 1", "*stride == 0", "special_cases")

m = function("MMAX_INLINE mmax_status mmax_check(")
m("shape: stride one below cols passes", "(stride < s->cols ||", "(stride + 1 < s->cols ||", "special_cases")
m("shape: length one above cols passes", "s->lengths[row] > s->cols", "s->lengths[row] > s->cols + 1", "special_cases")
m("shape: rows * stride may overflow", "(s->rows > 1 && stride > (limit / size - s->cols) / (s->rows - 1))", "0",
  "special_cases")
m("param: scale that rounds to 0 passes", "s->scale <= 7.006492321624085e-46", "s->scale < 7.006492321624085e-46",
  "special_cases")
m("param: negative scale passes", "mmax_f64_bits(s->scale) >> 63 || ", "", "special_cases")
m("default: scale 0 is not 1", "s->scale = 1;",
  "s->scale = 0.5;", "api")

m = function("MMAX_INLINE int mmax_fits(")
m("finite as a float: what rounds to infinity", "*value >= beyond", "*value > beyond", "special_cases")
m("finite as a float: not what rounds to the largest", "3.4028235677973366e38;", "FLT_MAX;", "special_cases")
m = function("MMAX_STATIC mmax_status mmax_check_targets(")
m("target: index n passes", "(size_t)t->index[row] >= n", "(size_t)t->index[row] > n", "special_cases")
m("target: lengths ignored", "s->lengths ? s->lengths[row] : s->cols", "s->cols", "special_cases")
m("target: smoothing 1 passes", "t->label_smoothing < 1)", "t->label_smoothing <= 1)", "special_cases")
m("default: grad_scale 0 is not 1", "mmax_f64_is_zero(t->grad_scale)", "0", "api")

m = function("MMAX_STATIC mmax_status mmax_check_params(")
m("param: order 1 reads the second entries", "i < p->order", "i < 2", "api")
m("param: order 3 passes", "p->order != 1 && p->order != 2", "p->order < 1", "special_cases")

m = function("MMAX_INLINE uint32_t mmax_f32_floor(")
m("metric: a threshold that is a float is moved", "(double)f > a", "(double)f >= a", "api")
m("metric: a threshold between the smallest floats", "bits - 1 :", "bits - 2 :", "api")

m = function("MMAX_INLINE double mmax_largest(")
m("sigma: negative parameters seem small", "b = b < 0 ? -b : b;", "", "special_cases")

# ---- vector layer ----
m = function("#        define mmax_v_load_part(p, count, fill) \\\n            mmax_v_select(mmax_v_as_mask", "avx2")
m("avx2: part of a register without its last entry", "MMAX_I(maskload)(p, mmax_v_lanes(count))",
  "MMAX_I(maskload)(p, mmax_v_lanes((count)-1))", "special_cases")
m("avx2: abs does nothing", "MMAX_I(andnot)(mmax_v_set((mmax_real)-0.0), a)", "(a)", "special_cases")

m = function("MMAX_INLINE void MMAX_(store_part)(float *p, ptrdiff_t count, __m256 a)", "avx2")
m("avx2: a store of part writes two lanes more", "if (count & 2)", "if (count)", "memory")
m("avx2: a store of part has its third lane from the first", "left = _mm_movehl_ps(left, left);", "", "special_cases")
m = function("MMAX_INLINE void MMAX_(store_part)(double *p, ptrdiff_t count, __m256d a)", "avx2")
m("avx2: f64, a store of part has its third lane from the first", "left = _mm256_extractf128_pd(a, 1);", "",
  "special_cases")
m = function("_mm256_loadu_si256((const __m256i *)(const void *)mmax_pow2_table_f32), \\\n", "avx2")
m("avx2: one lane group lost in the fold", "_mm256_add_pd(high[1], high[3])", "_mm256_add_pd(high[1], high[1])",
  "forward")

m = function("MMAX_INLINE float MMAX_(hmax)(__m256 a)", "avx2")
m("avx2: hmax forgets half of the lanes", "_mm_max_ps(four, _mm_movehl_ps(four, four))", "four", "forward")

m = function("MMAX_INLINE double MMAX_(hmax)(__m256d a)", "avx2")
m("avx2: f64 hmax forgets odd lanes", "_mm_max_sd(two, _mm_unpackhi_pd(two, two))", "two", "forward")

m = function("MMAX_INLINE float MMAX_(hmin)(__m128 a)", "sse2")
m("sse2: hmin forgets half of the lanes", "_mm_min_ps(a, _mm_movehl_ps(a, a))", "a", "special_cases forward")

m = function("        __m128d low[4], high[4];", "sse2")
m("sse2: one lane group lost in the fold", "_mm_add_pd(low[1], low[3])", "low[1]", "forward")

m = function("MMAX_INLINE double MMAX_(d_total)(const double *sum)")
m("plain C: the last lane lost in the total", "sum[3] + sum[7]", "sum[3]", "forward")

m = function("MMAX_COMPARE(ne, int, a != b)")
m("plain C: not <= is false for NaN", "!(a <= b)", "a > b", "special_cases")

# ---- sums and sweeps ----
m = function("MMAX_INLINE mmax_dvec MMAX_(two_sum)(")
m("f64 sum: only the last rounding is kept", "mmax_d_add(*error, lost)", "lost", "forward losses")
m("f64 sum: roundings are added with the wrong sign", "mmax_d_add(*error, lost)", "mmax_d_sub(*error, lost)",
  "forward losses")

m = function("#    define MMAX_SWEEP(n, step)", "avx2")
m("sweep: the last entry is missed", "for (; (rest) && at_ < (n);", "for (; (rest) && at_ + 1 < (n);",
  "special_cases")

m = function("#    define MMAX_SWEEP_LANES(from, end, registers, step)", "avx2")
m("sweep with sums: a register of one entry is missed", "if (from_ < (end)) {", "if (from_ + 1 < (end)) {",
  "special_cases forward")

m = function("#    define MMAX_SWEEP_ON(n, on, sum_count, step)", "avx2")
m("sums over a call: the end of a row is missed", "if (at_ < end_) {", "if (0) {", "backward")
m("sums over a call: without the second register", "k_ < MMAX_CALL_REGS; ++k_", "k_ < 1; ++k_", "backward")

m = function("#    define MMAX_CALL_IS_FULL(on, count)", "avx2")
m("sums over a call: more and more additions a lane", "(on)->blocks + MMAX_CALL_BLOCKS_OF(count) > MMAX_CALL_BLOCKS", "0",
  "backward losses")

m = function("MMAX_STATIC void MMAX_(sums_take)(", "avx512")
m("sums over a call: f64 forgets its lanes", "MMAX_EACH_D(j) { total->sum[j] = MMAX_(two_sum)",
  "for (int j = 1; j < MMAX_DREGS; ++j) { total->sum[j] = MMAX_(two_sum)", "backward")
m("sums over a call: never cleared", "lanes[i][k] = mmax_v_zero();", "", "backward")
m("sums over a call: f32 forgets a half", "total->sum[j] = mmax_d_add(total->sum[j], part[j]);",
  "total->sum[j] = part[j];", "backward")

m = function("#    define MMAX_SWEEP_SUM(n, sums, sum_count, step)", "avx2")
m("sweep with sums: a chunk less", "chunk_ < (n); chunk_ += MMAX_CHUNK", "chunk_ + MMAX_CHUNK < (n) || chunk_ == 0; "
  "chunk_ += MMAX_CHUNK", "backward forward")

# ---- what a call prepares ----
m = function("MMAX_INLINE void MMAX_(prepare)(")
m("multimax forgets the scale", "c->input_scale = (mmax_real)scale;", "c->input_scale = 1;", "forward")
m("f32 exp without the low part of log2(e)", "c->log2e_low = (float)(product - (double)c->log2e_high);",
  "c->log2e_low = 0;", "forward")
m("f64 exp without the rest of log2(e)", "exponent_scale, MMAX_LOG2E_REST", "exponent_scale, 0", "forward")
m("the low part of the scale is lost", "c->scale_low = (mmax_real)(exponent_scale - (double)c->scale_high);",
  "c->scale_low = 0;", "losses forward")
m("a term with t_b = 1 is not absent", "p->t_b[i] == 1.0 ? -MMAX_REAL_MAX : ", "", "special_cases")
m("1 - t_b has the wrong sign", "(1.0 - p->t_b[i])", "(p->t_b[i] - 1.0)", "golden")
m("huge parameters seem safe", "largest < MMAX_SAFE ? c->safe : -1", "c->safe", "special_cases")
m("a tiny scale is not brought within range", "exponent_scale *= MMAX_TWO_TO_64;", "exponent_scale *= 1;",
  "special_cases forward")

# ---- exponential and origin ----
m = function("#        define MMAX_ROUND_TO_EIGHTH    1572864.0f")
m("f32 exp: a digit of a coefficient", "5.55081218481064e-2f", "5.95081218481064e-2f", "forward")

m = function("#        define MMAX_ROUND_TO_EIGHTH 844424930131968.0")
m("f64 exp: a digit of a coefficient", "9.618129084775991350e-3", "9.618139084775991350e-3", "forward")

m = function("MMAX_INLINE MMAX_(origin) MMAX_(origin_of)(", "avx2")
m("rows far from 0 are not shifted", "o.shift = max;", "o.shift = 0;", "special_cases")
m("rows with masks are taken for others", "|| (min == MMAX_MASK && !c->clears)", "", "special_cases losses")
m("extreme scales: every row is shifted", "        if (!is_near) {", "        if (!is_near || c->general) {", "forward")
m("extreme scales: rows are taken for others", "!is_near || c->general || (min", "!is_near || (min", "special_cases forward")
m("differences may overflow", "o.before *= (mmax_real)0.25", "o.before *= 1", "special_cases")

m = function("MMAX_INLINE int MMAX_(kind_of)(", "avx2")
m("no row is clamped", "? MMAX_ROW_PLAIN : MMAX_ROW_CLAMP", "? MMAX_ROW_PLAIN : MMAX_ROW_PLAIN",
  "special_cases forward")
m("the number of entries makes no weight smaller", "n <= 65536 ? 16", "n <= 65536 ? 0", "forward")
m("epsilon makes no weight smaller", " + c->epsilon_range", "", "forward")

# ---- sigma ----
m = function("MMAX_INLINE mmax_vec MMAX_(sigma)(")
m("sigma: first order above d from the wrong kink", "mmax_v_sub(mmax_v_max(s, d1), d1), a)",
  "mmax_v_sub(mmax_v_max(s, d1), b1), a)", "forward")
m("sigma: the second term above is linear", "a = mmax_v_fma(above, v, mmax_v_fma(below, u, a));",
  "a = mmax_v_add(above, mmax_v_fma(below, u, a));", "golden")
m("sigma: overflowing second order does not decide",
  "mmax_v_select(mmax_v_lt(largest, mmax_v_abs(second)), second, mmax_v_add(first, second))",
  "mmax_v_add(first, second)", "special_cases")
m("sigma sees the mask", "mmax_v_select(mmax_v_nle(mmax_v_abs(s), largest), s, a)", "a", "special_cases")

# ---- first pass ----
m = function("MMAX_INLINE MMAX_(extremes) MMAX_(row_extremes)(", "avx2")
m("extremes: the smallest is the last", "min_##part[k] = mmax_v_min(logit, min_##part[k]);", "min_##part[k] = logit;",
  "special_cases losses")
m("evsoftmax: the mean sums what is past the end", "MMAX_(first_upto)(logit, left)", "logit", "forward")

m = function("MMAX_INLINE int MMAX_(sigma_row)(")
m("sigma: NaN is not seen", "mmax_m_or(beyond, mmax_v_nle(score, largest))", "beyond", "special_cases")
m("sigma: large scores are not seen", "mmax_m_or(beyond, mmax_v_nle(squares_block_[k], bound))", "mmax_m_none()",
  "special_cases")

m = function("MMAX_INLINE int MMAX_(sigma_bounds)(")
m("sigma has bounds for scores of any size", "if (!(from >= -c->safe && to <= c->safe)) {", "if (0) {", "passes losses")
m("sigma has bounds up to scores of any size", " && to <= c->safe)", ")", "passes")
m("sigma's peak stands where the call wants none", "if (c->turns->falls[i] && !c->peaks) {", "if (0) {", "passes forward")
m("sigma's bounds are those of the logits", "to = logits->max * c->input_scale;", "to = logits->max;", "passes")
m("sigma has no valley", "e->min = score < e->min ? score : e->min;", "", "passes losses")
m("sigma has no peak", "e->max = score;", "", "passes losses")

m = function("MMAX_INLINE int MMAX_(begin_sigma)(", "avx2")
m("in place: scores where sigma should be", "if (y && (*careful || !store)) {", "if (y && *careful) {",
  "forward")
m("in place: masked scores are sigma's", "*careful || masks)", "*careful)", "bits special_cases")
m("masked rows: one without weights is not empty", "if (e.max < -MMAX_REAL_MAX) {", "if (0) {", "special_cases")
m("masked rows: losses take sigma again without care", "*careful |= masks && !c->clears;", "", "losses special_cases bits")
m("masked rows: those after them have no bounds", "(!first || !turns || e.min < -MMAX_REAL_MAX)", "1",
  "losses")

m = function("MMAX_INLINE mmax_vec MMAX_(masked_score)(", "avx2")
m("masked rows: sigma has a score for masks", "mmax_v_select(active, MMAX_(score)(*logit, c, function, 0), masked)",
  "MMAX_(score)(*logit, c, function, 0)", "special_cases")
m("masked rows: NaN is masked", "mmax_v_nle(*logit, masked)", "mmax_v_lt(masked, *logit)", "special_cases")

m = function("MMAX_INLINE int MMAX_(begin_row)(")
m("a NaN row without positive entries seems empty", "e.max < 0 && !MMAX_(has_nan)(x, n)", "e.max < 0", "special_cases")
m("in place: masked entries of a NaN row are NaN", "e.min == MMAX_MASK && MMAX_(has_nan)(x, n)", "0",
  "special_cases bits")
m("evsoftmax: an overflowing sum is the mean", "!mmax_f64_is_finite(e.sum)", "0", "special_cases")

m = function("MMAX_INLINE void MMAX_(short_mean)(")
m("evsoftmax: masks count in the mean of a short row", "mmax_v_add_where(active, ones[k], one)",
  "mmax_v_add(ones[k], one)", "special_cases forward")
m = function("MMAX_INLINE void MMAX_(short_mean)(", "avx2")
m("evsoftmax: the mean of a short row takes turns elsewhere", "(k + 1) % MMAX_CALL_REGS", "0", "bits")
m = function("MMAX_STATIC void MMAX_(careful_mean)(", "avx2")
m("evsoftmax: some short rows are summed as long ones", "n <= MMAX_SHORT", "n <= MMAX_PAIR", "bits")
m = function("MMAX_STATIC void MMAX_(careful_mean)(")
m("evsoftmax: masks count in the mean", "count = MMAX_(sum_total)(&sums[1]);", "count = (double)n;",
  "special_cases forward")
m("evsoftmax: masks count in a mean of large scores", "count += 1;", "count = (double)n;", "special_cases")
m("evsoftmax: a sum of large scores is the mean", "if (mmax_f64_is_finite(sum)) {", "if (1) {", "special_cases")

m = function("MMAX_INLINE mmax_real MMAX_(mean_of)(")
m("evsoftmax: the mean may lie above all entries", "mean < max ? (mmax_real)mean : max", "(mmax_real)mean",
  "special_cases environment")

# ---- exponentials and weights ----
m = function("MMAX_INLINE mmax_vec MMAX_(exp_end)(")
m("evsoftmax: an entry at the mean is not kept", "mmax_v_lt(x, mmax_v_set(o->mean))",
  "mmax_v_le(x, mmax_v_set(o->mean))", "special_cases")
m("evsoftmax: epsilon is forgotten", "mmax_v_mul(e, mmax_v_set(c->epsilon))", "mmax_v_zero()", "golden forward losses")

m = function("MMAX_INLINE void MMAX_(exp_rows)(MMAX_(sum)", "avx2")
m("exp: the entry after a whole block is lost", "if (left > MMAX_LANES) {", "if (left > MMAX_LANES + 1) {", "forward")
m("exp: what is left of a long row is summed twice", "if (whole == 0) {", "if (1) {", "forward")
m("exp: the last pairs of a chunk are summed twice", "pair[k]);\n                    pair[k] = mmax_v_zero();",
  "pair[k]);", "forward")
m("exp: the next step has scores of this one", "? x + at + MMAX_PAIR", "? x + at", "forward")
m("exp: the next row begins with scores of this one", "following > r ? following->scores", "following > r ? x + at",
  "bits")
m("exp: the next row begins with the origin of this one", "*(is_last ? following : r)->relative_to", "*r->relative_to",
  "bits")

m = function("MMAX_INLINE void MMAX_(exact_end)(", "avx2")
m("exp: roundings of the sum are dropped", "MMAX_(sum_add_small)(sum, of->lost);", "", "forward")
m = function("MMAX_INLINE void MMAX_(exact_add)(")
m("exp: roundings of the sum have the wrong sign",
  "mmax_v_add(of->lost[k], mmax_v_sub(terms", "mmax_v_sub(of->lost[k], mmax_v_sub(terms", "forward")

m = function("MMAX_INLINE mmax_vec MMAX_(masked_exp)(", "avx2")
m("evsoftmax: no gradient where nothing is left of a weight",
  "function == MMAX_EVSOFTMAX ? mmax_v_max(mmax_v_set(MMAX_REAL_MIN), e) : e", "e", "losses")
m = function("MMAX_STATIC void MMAX_(evsoftmax_loss)(", "avx2")
m("evsoftmax: what is left of a weight depends on a row's neighbours", "epsilon < 7.275957614183426e-12", "0", "bits")

m = function("MMAX_INLINE void MMAX_(sum_add_small)(")
m("small sums, f32: half of the lanes", "mmax_v_add(lanes[k], lanes[(MMAX_REGS / 2 + k) % MMAX_REGS])", "lanes[k]",
  "forward bits")
m("small sums, f64: half of the lanes", "mmax_d_add(lanes[j], lanes[MMAX_DREGS + j])", "lanes[j]", "forward bits")

m = function("MMAX_INLINE size_t MMAX_(rows_exp)(", "avx2")
m("rows: of another length taken for alike", "rows[alike].n == rows->n &&", "", "bits memory")
m("rows: of another kind taken for alike", "rows[alike].relative_to->kind == rows->relative_to->kind", "1", "bits")
m("rows: special ones taken for alike", "rows[alike].state == MMAX_IS_NORMAL &&", "", "bits special_cases")

m = function("MMAX_INLINE MMAX_(scaling) MMAX_(scaling_of)(")
m("weights may be subnormal", "w.smallest = (mmax_real)(MMAX_REAL_MIN * sum * MMAX_ABOVE_ONE);", "w.smallest = 0;",
  "special_cases")

# ---- rows and groups of rows ----
m = function("MMAX_INLINE void MMAX_(scale_row)(", "avx2")
m("rows: the last register is not scaled", "MMAX_(scaled)(last, &w, clamped, 1)", "last", "golden forward")

m = function("MMAX_RARE void MMAX_(sum_join)(")
m("long: the sum keeps its old origin", "mmax_product(scaled[j], factor)", "scaled[j]", "forward")

m = function("MMAX_RARE int MMAX_(long_begin)(")
m("long: a block of masks keeps its logits", "MMAX_(fill)(y, count, 0);", "", "long_rows")
m("long: rows that are not ordinary", "|| careful || o.kind == MMAX_ROW_GENERAL", "|| careful", "forward")
m("long: a row of too many pieces ends early", "l->count == MMAX_PIECES) {\n                return 0;",
  "l->count == MMAX_PIECES) {\n                return 1;", "long_rows forward")
m("long: a piece ends a block early", "l->ends[l->count - 1] = at + count;", "l->ends[l->count - 1] = at;", "forward")
m("long: the first block's largest score stays", "at_first || o.max > l->origin.max", "at_first", "forward")
m("long, in place: masked entries of a NaN row are NaN", "|| !masked || !MMAX_(has_nan)(r->x, r->n)", "|| 1",
  "long_rows")

m = function("MMAX_RARE int MMAX_(long_begin)(", "avx2")
m("long: no row is clamped", "MMAX_(kind_of)(l->origin.max * c->log2e - lowest, r->n, c)", "MMAX_ROW_PLAIN", "forward")
m("long: masked rows are not clamped", "masked = 1;\n        }\n        at_first", "}\n        at_first",
  "long_rows forward")

m = function("MMAX_RARE void MMAX_(lower)(", "avx2")
m("long: pieces far below are not lowered far enough", "MMAX_(two_to)(half - power)", "MMAX_(two_to)(-half)", "forward")

m = function("MMAX_RARE int MMAX_(long_row)(")
m("long: pieces are not lowered", "power > 16", "0", "forward")
m("long: all pieces have the last one's origin", "factor = MMAX_(two_to)(power);", "factor = 1;", "forward")
m("long: a row with NaN is left as it is", "return MMAX_IS_NAN;", "return MMAX_IS_DONE;", "long_rows")

m = function("MMAX_INLINE void MMAX_(row_end)(")
m("masked entries of a NaN row are NaN", "(r->y, r->x, r->n, 1, 0)", "(r->y, r->y, r->n, 1, 0)", "special_cases bits")

m = function("MMAX_INLINE int MMAX_(begin_rows)(", "avx512")
m("together: no row is clamped", "MMAX_(kind_of)(range, n, c)", "MMAX_ROW_PLAIN", "bits")
m("together: rows that are not ordinary", "if (!o.good) {", "if (0) {", "bits")
m("together, in place: scores where sigma should be", "if (sigma && !store) {", "if (0) {", "bits")
m("together, in place: masked entries of a NaN row are NaN", "!store && min == MMAX_MASK", "0", "bits")
m("together: a row's largest is that of half its registers", "max[0] = mmax_v_max(max[k], max[0]);", "", "bits")

m = function("MMAX_INLINE void MMAX_(normalise_rows)(")
m("rows: the sum is that of the first", "r[i].sum = total[i];", "r[i].sum = total[0];", "forward bits")
m("rows: y's stride for x", "b->x + (begun + i) * b->x_stride", "b->x + (begun + i) * b->y_stride", "memory bits")
m("rows: lengths ignored", "MMAX_(length_of)(b, begun + i)", "b->cols", "special_cases")
m("rows: the first entry past the length is not written", "MMAX_(fill)(r[i].y + r[i].n, b->cols - r[i].n, ",
  "MMAX_(fill)(r[i].y + r[i].n + 1, b->cols - r[i].n - 1, ", "special_cases")
m("log: 0 past the length", "logs ? MMAX_MASK_BITS : 0", "0", "special_cases")

m = function("MMAX_INLINE void MMAX_(log1ps_of)(", "avx2")
m("log: rows beyond whole registers keep their sums", "MMAX_F64_(log1ps)(numbers, padded);",
  "MMAX_F64_(log1ps)(numbers, count - count % MMAX_WIDTH);", "bits forward")

m = function("MMAX_INLINE double MMAX_(row_rest)(")
m("log: a NaN beyond the first pass is not seen", "r->state = mmax_f64_is_finite(*sum) ? MMAX_IS_NORMAL : MMAX_IS_NAN;", "",
  "special_cases")
m("log: a NaN in a long row is not seen", "r->state = mmax_f64_is_finite(sums.sum) ? MMAX_IS_NORMAL : MMAX_IS_NAN;", "",
  "special_cases long_rows")

m = function("MMAX_INLINE double MMAX_(rest_beside_max)(", "avx2")
m("log: the rest beside a large entry of a short row is lost", "MMAX_HOLDS_FEW(sum, e_max)", "0", "losses forward")
m("log: the rest beside the maximum counts it", ": (sum - e_max) / e_max", ": sum / e_max", "bits forward")

m = function("MMAX_INLINE void MMAX_(normalise_rows)(", "avx2")
m("log: logits where sigma should be", "next[i].scores = sigma ? next[i].y : next[i].x;", "next[i].scores = next[i].x;",
  "golden forward")
m("log: a short one of wide rows has no sum", "one_block ? &total[i] : NULL",
  "r[i].n <= MMAX_BLOCK ? &total[i] : NULL", "bits")
m("log: rows side by side have one buffer", "one_block ? i * b->cols : 0", "0", "bits")
m("log: in place exponentials replace the logits", "|| next[i].y == next[i].x)", ")", "bits")
m("log: exponentials replace sigma", "logs && (sigma || ", "logs && (", "bits")

m = function("MMAX_INLINE void MMAX_(losses_rest)(", "avx2")
m("loss: a NaN row in place is not known to be overwritten", "r[i].stored = 1;", "", "special_cases bits")
m("loss: rows side by side have the state they began with", "r[i].state = rows[i].state;", "", "special_cases bits")

m = function("MMAX_INLINE MMAX_(batch) MMAX_(part_of)(", "avx2")
m("rows left over: begin at the wrong x", "b->x + from * b->x_stride", "b->x + from * b->y_stride", "memory bits")
m("rows left over: have the lengths of the first", "b->lengths ? b->lengths + from : NULL", "b->lengths",
  "special_cases bits")
m("rows left over: have the loss of the first", "b->loss ? b->loss + from : NULL", "b->loss", "bits losses")
m("rows left over: have the target of the first", "b->index ? b->index + from : NULL", "b->index", "bits losses")

m = function("MMAX_INLINE mmax_vec MMAX_(short_begin)(", "avx2")
m("short rows: the largest is that of the last register", "mmax_v_max(score, row_max)", "score",
  "bits special_cases forward")
m("short rows: evsoftmax's mean sums what is past the end", "MMAX_(first_last)(active, left)", "active", "bits")
m("short rows: masks count in evsoftmax's mean", "mmax_v_keep(mmax_v_nle(logit, masked), one)", "one", "special_cases bits")
m("short rows: evsoftmax's mean counts what is past the end", "MMAX_(first_last)(counted, left)", "counted", "bits")
m("short rows: the smallest is not looked for", "MMAX_(wants_smallest)(c, function, masks)", "0",
  "bits special_cases losses")
m("short rows: the largest |s| is that of the last row", "size = *largest", "size = mmax_v_zero()", "bits")

m = function("MMAX_INLINE void MMAX_(group_begin)(", "avx2")
m("short rows: the first pass reads past the lengths", "lengths ? lengths[r] : cols", "cols", "special_cases memory")
m("short rows: logarithms do not know of masks", "g->masked = MMAX_(any_masked)(smallest, c, function, masks);", "g->masked = 0;", "bits special_cases losses")
m("short rows: evsoftmax's mean is that of all columns", "masks ? MMAX_(across_sum)(ones) :", "0 ? MMAX_(across_sum)(ones) :",
  "special_cases bits")

m = function("MMAX_STATIC void MMAX_(two_pairs)(", "avx2")
m("short rows: what is left over of a row comes last", "n < MMAX_SHORT ? MMAX_PAIR : 0", "0", "bits")
m("short rows: the last block is not summed", "n > MMAX_PAIR + MMAX_LANES", "0", "bits forward")
m = function("MMAX_INLINE void MMAX_(short_sum_of)(", "avx2")
m("short rows: all sums are those of exponentials", "n <= MMAX_PAIR || others", "n <= MMAX_PAIR", "bits")
m = function("MMAX_INLINE void MMAX_(short_totals)(", "avx2")
m("short rows: sums are those of rows of all columns", "lengths && cols > MMAX_PAIR ? lengths[r] : cols", "cols",
  "bits special_cases")

m = function("MMAX_INLINE void MMAX_(fill_short)(", "avx2")
m("short rows: zeros only as far as the row itself needs them", "MMAX_SHORT_FILLED(most)", "MMAX_SHORT_FILLED(n)",
  "special_cases bits")
m("short rows: old terms past the end are summed", "mmax_v_store(terms + at, mmax_v_zero());", "", "bits forward")

m = function("MMAX_INLINE void MMAX_(group_exp)(", "avx2")
m("short rows: masked entries count in logarithms", "ragged && g->masked", "0", "losses special_cases bits")
m("short rows: the second pass reads past the lengths", "lengths ? lengths[r] : cols", "cols", "special_cases memory")

m = function("MMAX_INLINE void MMAX_(short_exp)(", "avx2")
m("short rows: tanhmax has no masks", "function == MMAX_TANHMAX && !masks", "function == MMAX_TANHMAX",
  "special_cases bits")
m("short rows: what is past the end is summed", "MMAX_(first_last)(term, left)", "term", "bits forward")

m = function("MMAX_INLINE int MMAX_(lone_exp)(", "avx2")
m("lone rows: NaN is not seen", "return mmax_f64_is_finite(*total);", "return 1;", "special_cases bits")
m("lone rows: evsoftmax's mean overflows", "        if (!mmax_f64_is_finite(whole)) {\n            return 0;\n        }\n", "",
  "special_cases bits forward")
m("lone rows: infinite and large scores are not seen", "o->kind == MMAX_ROW_GENERAL ||", "", "special_cases bits")
m("lone rows: masked entries and large |s| are not seen",
  "!MMAX_(all_usual)(largest, MMAX_(any_masked)(smallest, c, function, 0), c, function)", "0", "special_cases bits")
m("lone rows: exponentials have no bound", "o->kind = MMAX_ROW_CLAMP;", "", "special_cases bits losses")
m("lone rows: all are moderate", "o->range = MMAX_REAL_MAX;", "", "special_cases bits forward")
m("lone rows: evsoftmax's mean is above the largest entry", "MMAX_(mean_of)(whole / (double)n, o->max)",
  "(mmax_real)(whole / (double)n)", "bits forward")

m = function("MMAX_INLINE int MMAX_(lone_weights)(", "avx2")
m("lone rows: tanhmax has no negative weights", "function == MMAX_TANHMAX);", "0);", "golden forward")

m = function("MMAX_INLINE void MMAX_(lone_rows)(", "avx2")
m("lone rows: an empty one is read", "n > 0 && ", "", "special_cases memory")
m("lone rows: what lies past the length is not written", "MMAX_(fill)(b->y + row * b->y_stride + n, b->cols - n, past);", "",
  "special_cases bits")
m("lone rows: logs past the length are 0", "n, past);", "n, 0);", "special_cases bits")
m("lone rows: a loss without gradient writes one", " && b->y) {", ") {", "special_cases bits losses memory")

m = function("MMAX_INLINE int MMAX_(lone_loss)(", "avx2")
m("lone losses: a row without a target has one", "r.state != MMAX_IS_NORMAL || ", "", "special_cases losses bits api")
m("lone losses: log(sum) is not there", "b->loss ? MMAX_F64_(log1p)(MMAX_(rest_beside_max)(e, n, r.sum, &r.origin, c)) : 0", "0", "bits losses")

m = function("MMAX_INLINE int MMAX_(short_logs_plain)(", "avx2")
m("short logs: none overflows", "mmax_v_hmin(low) > MMAX_LOG_BOUND(c) / 2", "1", "special_cases bits forward")

m = function("MMAX_INLINE int MMAX_(lone_logs)(", "avx2")
m("lone logs: of the first row", "b->x + row * b->x_stride", "b->x", "special_cases bits")

m = function("MMAX_INLINE MMAX_(scaling) MMAX_(scaling_at)(", "avx2")
m("short rows: the factor is that of the first", "of->factor[r]", "of->factor[0]", "bits forward")
m("short rows: too small is what is so for the first", "of->smallest[r]", "of->smallest[0]", "bits")
m("short rows: f64, the rest of the factor is that of the first", "of->rest[r]", "of->rest[0]", "bits")

m = function("MMAX_STATIC void MMAX_(origins_of)(", "avx2")
m("short rows: evsoftmax's mean is beyond what a float holds", 
  "o->good && MMAX_(all)(mmax_v_le(mmax_v_abs(mean), mmax_v_set(MMAX_REAL_MAX)))", "o->good", "bits")
m = function("MMAX_STATIC void MMAX_(origins_of)(", "avx512")
m("short rows: evsoftmax's mean is above the largest entry", "mmax_v_min(mean, max)", "mean", "bits forward")

m = function("MMAX_INLINE int MMAX_(all_usual)(", "avx2")
m("short rows: masked entries without the last pass for them", ": !masked;", ": 1;", "bits special_cases losses")
m("short rows: large scores of sigma are not seen", "mmax_v_le(largest, mmax_v_set(c->safe))",
  "mmax_v_le(mmax_v_zero(), mmax_v_set(c->safe))", "bits")

m = function("MMAX_INLINE mmax_vec MMAX_(scaled)(", "avx2")
m("weights: negative ones of tanhmax count as too small", "negative ? mmax_v_abs(e) : e), e);", "e), e);",
  "bits golden forward")

m = function("MMAX_INLINE int MMAX_(group_is_usual)(", "avx2")
m("short rows: an ignored row is read", "together >= 0", "1", "bits special_cases losses")
m("short rows: an empty row is read", "!empty", "1", "special_cases memory")

m = function("MMAX_INLINE void MMAX_(group_weights)(", "avx2")
m("short rows: NaN is not seen", "!mmax_f64_is_finite(g->total[r])", "0", "bits")
m("short rows: masked entries of a NaN row are NaN", "b->x + (g->row + r) * b->x_stride, MMAX_", "y, MMAX_", "bits")

m = function("MMAX_STATIC void MMAX_(fill_past)(", "avx2")
m("short rows: what lies past the lengths is not written", "MMAX_(fill)(b->y + row * b->y_stride + n, b->cols - n, past);",
  "", "special_cases")

m = function("MMAX_STATIC void MMAX_(log_sums)(", "avx2")
m("short rows: the rest beside a large entry is lost",
  "mmax_v_select(holds_many, mmax_v_sub(sum, top), mmax_v_load(others + at))", "mmax_v_sub(sum, top)", "bits losses")
m("short rows: equal largest entries are left out",
  "mmax_v_select(holds_many, mmax_v_sub(sum, top), mmax_v_load(others + at))", "mmax_v_load(others + at)",
  "bits losses")

m = function("MMAX_INLINE void MMAX_(turn_square)(", "avx2")
m("a square of lanes is not turned", "mmax_v_zip_high(square[i],", "mmax_v_zip_low(square[i],", "golden bits")

m = function("MMAX_STATIC void MMAX_(totals)(", "avx2")
m("short rows: f64 sums without what was rounded away", "mmax_v_add(sum[0], error[0])", "sum[0]", "bits forward")

m = function("#        define MMAX_ACROSS(op, zip, row, count)", "avx2")
m("short rows: sums go to the wrong row", "zip##_low(row[j_], row[j_ + half_])", "zip##_low(row[j_], row[half_])",
  "bits losses")

m = function("MMAX_INLINE void MMAX_(group_logs)(", "avx2")
m("short rows: logarithms of rows with masks are plain", "!g->masked && ", "", "bits special_cases")
m("short rows: masked entries of a NaN row are NaN, too", "MMAX_(fill_special)(y, x, n, 1, MMAX_MASK_BITS);",
  "MMAX_(fill)(y, n, MMAX_NAN_BITS);", "bits special_cases")
m("short rows: NaN is not seen by the logarithm", "!mmax_f64_is_finite(g->total[r])", "0", "bits special_cases")

m = function("MMAX_INLINE void MMAX_(group_losses)(", "avx2")
m("short rows: NaN is not seen by the loss", "!mmax_f64_is_finite(g->total[i])", "0", "bits special_cases")
m("short rows: a loss without its gradient has it filled", "b->lengths && b->y", "b->lengths", "bits losses")
m("short rows: gradients of parameters in spite of lengths", " && !part.lengths &&", " &&", "special_cases bits losses")
m("short rows: gradients of parameters in spite of masks", " && !g->masked &&", " &&", "special_cases bits losses")

m = function("MMAX_INLINE void MMAX_(group_loss)(", "avx2")
m("short rows: sigma's gradient does not know of masks", "g->masked, c", "0, c", "bits special_cases losses")
m("short rows: a loss uses the exponentials of the first", "g->e + i * MMAX_SHORT", "g->e",
  "bits losses")

m = function("MMAX_INLINE int MMAX_(group_params)(", "avx2")
m("short rows: gradients of parameters from NaN", "            return 0;\n", "            break;\n", "bits special_cases")
m("short rows: gradients of parameters without smoothing", "q = part->targets->label_smoothing / losses[0].spread.active;", "", "losses bits")
m("short rows: gradients of parameters twice", "losses[i].graded = 1;", "losses[i].graded = 0;", "bits")

m = function("MMAX_INLINE void MMAX_(sigma_gradients)(", "avx2")
m("short rows: gradients of parameters with the first row's sum", "smallest[r] = MMAX_(smallest_weight)(rows[r].sum)", "smallest[r] = MMAX_(smallest_weight)(rows[0].sum)", "losses bits")
m("short rows: gx unscaled", "(scale / rows[r].sum)", "(1 / rows[r].sum)", "bits losses")

m = function("#    define MMAX_SWEEP_ROWS(rows, n, on, sum_count, step)", "avx2")
m("sums over short rows: too many before a flush", "- (on)->blocks) / blocks_;", ") / blocks_;", "bits")
m("sums over short rows: forgotten", "MMAX_CALL_FLUSH(on, sum_count);", "(on)->blocks = 0;", "bits")
m("sums over short rows: without the second register", "k_ < MMAX_CALL_REGS && k_ * MMAX_WIDTH < (n)", "k_ < 1",
  "bits losses")

m = function("MMAX_INLINE void MMAX_(normalise)(", "avx2")
m("short rows: of the last group as many as of the others", "done - begun < MMAX_WIDTH ? done - begun : MMAX_WIDTH",
  "MMAX_WIDTH", "memory bits")
m("short rows: those left over are left out", "    } else {\n        const MMAX_(batch) part", "    } else if (0) {\n        const MMAX_(batch) part", "bits")

# ---- logarithms and losses ----
m = function("MMAX_INLINE mmax_vec MMAX_(log1p_of)(")
m("log: a term of the series", "1.0 / 3", "1.0 / 3.0001", "losses")
m("log: loses what 1 + v rounds away", "mmax_v_div(mmax_v_keep(is_large, lost), whole)", "mmax_v_set(0)", "losses")
m("log: small numbers through 1 + v", "mmax_v_select(is_large, mmax_v_sub(mantissa, one), v)",
  "mmax_v_sub(mantissa, one)", "losses")
m("log: what 1 + v rounds away counts twice for small numbers", "mmax_v_keep(is_large, lost)", "lost", "losses")

m = function("    MMAX_(exp_sums_of)(")
m("log: the rest beside a large entry is lost", "MMAX_HOLDS_FEW(result.sum, e_max)", "0", "losses")
m("log: the block of the largest entry is the last", "top_at = at;", "top_at = 0;", "losses forward")

m = function("MMAX_INLINE void MMAX_(log_row_of)(")
m("log: subtracts the sum's logarithm twice", "log = mmax_v_sub(log, log_high);",
  "log = mmax_v_sub(mmax_v_sub(log, log_high), log_high);", "losses")
m("log: masks are finite", "log = mmax_v_select(mmax_v_nle(score, bound), log, masked);", "", "special_cases")

m = function("MMAX_INLINE MMAX_(kinks) MMAX_(kinks_of)(")
m("slope: the factor 2 of the second order below", "MMAX_(doubled)(-c->below[1])", "-c->below[1]", "backward golden")
m("slope: the factor of gx is forgotten", "k.scale = (mmax_real)gx_scale;", "k.scale = 1;", "losses")

m = function("MMAX_INLINE mmax_vec MMAX_(slopes_step)(")
m("kink: an entry at b counts as below", "mmax_v_lt(s, b1)", "mmax_v_le(s, b1)", "backward")
m("kink: an entry at d counts as above", "mmax_v_lt(d1, s)", "mmax_v_le(d1, s)", "backward")
m("gp: t_d of the second order from the wrong side", "mmax_v_fma(gv, v, lanes[5][k])", "mmax_v_fma(gu, u, lanes[5][k])",
  "backward")
m("gp: b of the first order counts every entry", "mmax_v_add_where(below, lanes[2][k], g)",
  "mmax_v_add(lanes[2][k], g)", "backward")
m("slope: below and above replace each other", "mmax_v_add_where(above, slope, mmax_v_set(t->above[0]))",
  "mmax_v_add_where(above, mmax_v_set((mmax_real)1), mmax_v_set(t->above[0]))", "backward golden")

m = function("MMAX_INLINE mmax_vec MMAX_(slopes_step)(", "avx2")
m("gp: t_b of the first order counts every entry", "mmax_v_fma_where(below, g, u, lanes[0][k])",
  "mmax_v_fma(g, u, lanes[0][k])", "backward")

m = function("MMAX_INLINE void MMAX_(slopes_target)(")
m("gp: a target at its kink b counts", "mmax_only_if(s < b, 1)", "mmax_only_if(s <= b, 1)", "losses")
m("gp: a target at its kink d counts", "mmax_only_if(s > d, 1)", "mmax_only_if(s >= d, 1)", "losses")
m("gp: a target above its kink b counts", "mmax_only_if(s < b, mmax_limited(b - s))", "mmax_limited(b - s)", "losses")
m("gp: a target below its kink d counts", "mmax_only_if(s > d, mmax_limited(s - d))", "mmax_limited(s - d)", "losses")
m("gp: only the last target counts", "sums[2] = sums[2] + mmax", "sums[2] = mmax", "api losses")

m = function("MMAX_INLINE void MMAX_(slopes_end)(")
m("gp: targets do not count", " + t->targets[4 * i + j];", ";", "losses")
m("gp: grad_scale does not count", "lost), factor)", "lost), 1)", "losses")
m("gp: the targets' sum has overflowed, what it lost is NaN", "mmax_only_if(mmax_f64_is_finite(lost), lost)", "lost",
  "losses")
m("gp: wrong sign of t_b", "gp->t_b[i] - sums[0]", "gp->t_b[i] + sums[0]", "golden")
m("gp: d of the second order without its factor", "gp->d[i], n,", "gp->d[i], 1,", "golden")
m("gp: order 1 writes the second entries", "i < p->order", "i < 2", "api")
m("gp: is set, not added to", "gp->t_d[i] = gp->t_d[i] + sums[1];", "gp->t_d[i] = sums[1];", "api")

m = function("MMAX_(row_spread)(const mmax_real *x")
m("label smoothing: small logits are lost beside the unit", "spread.unit = 1;", "spread.unit = 4096;", "losses")
m("smoothing: the sum of many differences overflows", "mmax_f64_is_finite(spread.below_max)", "1", "losses")
m("smoothing: masks count", "mmax_v_add_where(active, lanes_##part[1][k], one)", "mmax_v_add(lanes_##part[1][k], one)",
  "losses special_cases")
m("smoothing: evsoftmax forgets its low entries", "mmax_v_add_where(low, lanes_##part[2][k], one)",
  "lanes_##part[2][k]", "losses")

m = function("MMAX_INLINE void MMAX_(loss_gradient_of)(")
m("loss: q has the wrong sign", "(mmax_real)(-q * factor)", "(mmax_real)(q * factor)", "losses")

m = function("MMAX_INLINE void MMAX_(loss_end)(", "avx2")
m("loss: entries of no weight count as masked", "q, gx_scale, kind)",
  "q, gx_scale, kind == MMAX_ROW_PLAIN ? MMAX_ROW_PLAIN : MMAX_ROW_GENERAL)", "losses")

m = function("MMAX_INLINE void MMAX_(loss_end)(")
m("loss: MultiMax's target has the first exponential", "e_target = r->e ? r->e[r->index]", "e_target = r->e ? r->e[0]", "losses")
m("loss: MultiMax's target in place has no exponential", ": MMAX_(exp_of)(r->score, &r->origin, c);", ": 0;", "losses bits")
m("loss: grad_scale is dropped", "gx_scale = c->gx_scale;", "gx_scale = c->scale;", "losses")
m("loss: a masked target counts in gp", "if (!r->masked) {\n            const mmax_real s",
  "{\n            const mmax_real s", "losses special_cases")
m("loss: a masked target has a finite loss", "r->masked ? 0x7ff0000000000000 : mmax_limited_bits(mmax_f64_bits(value))",
  "mmax_limited_bits(mmax_f64_bits(value))", "special_cases")
m("loss: a part of a distance beyond the type is one of DBL_MAX", "MMAX_(part_of_distance)(1 - smoothing, r->origin.max, r->score, unit)",
  "mmax_product(1 - smoothing, MMAX_(distance)(r->origin.max, r->score, unit))", "losses")
m("loss: evsoftmax's target at the mean is low", "r->x_target < r->origin.mean", "r->x_target <= r->origin.mean", "losses")
m("loss: smoothing is left out at the target", "(e_target / r->sum - q - (1 - smoothing))",
  "(e_target / r->sum - (1 - smoothing))", "losses")

m = function("MMAX_INLINE double MMAX_(loss_rest)(")
m("loss: a peak far above all scores stands for the largest", "if (!(sigma && r->origin.peak && sums.few)) {",
  "if (1) {", "losses")
m("loss: a NaN beyond the first pass is not seen", "mmax_f64_is_finite(sums.sum) ?", "1 ?", "special_cases")

m = function("MMAX_INLINE void MMAX_(special_loss)(")
m("loss: NaN is not passed on to gp", "r->slopes->any_nan = 1;", ";", "special_cases")
m("loss: of an ignored row", "r->state == MMAX_IS_DONE ? 0 :", "0 ? 0 :", "special_cases")

m = function("MMAX_INLINE int MMAX_(begin_losses)(", "avx512")
m("together: losses of rows without a target", "state |= r[i].state;", "", "special_cases bits memory")

m = function("MMAX_INLINE void MMAX_(loss_rows)(", "avx512")
m("together: losses of MultiMax begin at the largest score", "most == MMAX_WIDTH && !sigma", "most == MMAX_WIDTH", "bits")
m("loss: rows side by side have one buffer", "buffer + i * (2 * MMAX_BLOCK / most)", "buffer", "losses bits")
m("loss: all rows have the first one's sum", "b->loss ? rest[i] : 0", "b->loss ? rest[0] : 0", "losses bits")
m("loss: an ignored row keeps its gradient", "if (r->gx && r->n < b->cols) {", "if (0) {", "special_cases")

m = function("MMAX_(exp_sums_of)(mmax_real *e, mmax_real *buffer", "avx2")
m("loss: the block with the largest score is not kept", "block = former_block;", "", "losses")

m = function("MMAX_INLINE void MMAX_(log_row_of)(", "avx2")
m("log: a subnormal sum stays", "row_log_sum <= (double)MMAX_REAL_MIN ? 0 : row_log_sum", "row_log_sum",
  "special_cases forward")

# ---- where sigma turns ----
m = function("MMAX_STATIC double MMAX_(slope)(")
m("turns: of parameters that are not rounded", "(double)(mmax_real)p->b[i] - s, v = s - (double)(mmax_real)p->d[i]",
  "p->b[i] - s, v = s - p->d[i]", "losses")

m = function("MMAX_STATIC void MMAX_(find_turns)(")
m("turns: kinks in any order", "k > 1 && ends[k - 1] > kink", "0", "passes")
m("turns: none between kinks", "first / (first - last)", "last / (first - last)", "passes")
m("turns: none below the first kink", ": to - mmax_product(length, last / (last - first))", ": to", "passes")
m("turns: a flat piece does not begin to fall", "(first >= 0 && last < 0)", "(first > 0 && last < 0)", "losses")
m("turns: sigma does not fall from a kink", "= last >= 0 && MMAX_(slope)(p, c, to, 1) < 0;", "= 0;", "passes losses")

m = function("MMAX_INLINE MMAX_(origin) MMAX_(origin_of)(const MMAX_(extremes)")
m("origin: low entries are held where their powers are subnormal", "(MMAX_LOWEST - MMAX_BIAS)", "(-1020 - MMAX_BIAS)",
  "special_cases")
m = function("MMAX_INLINE MMAX_(scaling) MMAX_(scaling_of)(")
m("scaling: what low entries lose is multiplied", "lost < MMAX_NO_LOSS && lost > -MMAX_NO_LOSS ? 0 : lost", "lost + 0",
  "special_cases")
m = function("MMAX_INLINE mmax_vec MMAX_(log1p_of)(")
m("log1p: subnormal numbers stay", "mmax_v_nle(v, mmax_v_set(MMAX_REAL_MIN))", "mmax_v_le(v, v)", "special_cases")
m = function("MMAX_INLINE double MMAX_(kink_gradient)(")
m("gp: the factor of a steep term overflows", "mmax_s_dfma(t, n * sum, gradient)", "mmax_s_dfma(factor, sum, gradient)",
  "special_cases")

# ---- sparsemax and entmax15 ----
m = function("MMAX_INLINE void MMAX_(set_units)(", "avx2")
m("entmax15: a subnormal scale is halved first", "2 * c->scale : c->scale;", "2 * c->scale : 2 * w->unit;",
  "special_cases")

m = function("MMAX_STATIC void MMAX_(heads)(")
m("heads: half of them", "max[k] = mmax_v_max(max[k], max[k + MMAX_REGS / 2]);", "", "golden forward")

m = function("MMAX_INLINE size_t MMAX_(append_above)(", "sse2")
m("candidates: NaN is none", "bits |= (uint64_t)mmax_m_bits(mmax_v_nle(logit, limit))",
  "bits |= (uint64_t)mmax_m_bits(mmax_v_lt(limit, logit))", "special_cases")
m("candidates: of a row's end, those of its first register", "(uint64_t)mmax_m_bits(mmax_v_nle(logit, limit)) << (first);",
  "(uint64_t)mmax_m_bits(mmax_v_nle(logit, limit));", "golden forward")
m("candidates: one too many", "count += bits != 0;", "count += 1;", "golden forward")
m = function("MMAX_INLINE size_t MMAX_(append_above)(", "avx2")
m("candidates by registers: NaN is none", "const unsigned above = mmax_m_bits(mmax_v_nle(logit, limit));",
  "const unsigned above = mmax_m_bits(mmax_v_lt(limit, logit));", "special_cases")
m("candidates by registers: of a part of a block, no one looks for any", "uint64_t bits = left < MMAX_PAIR;",
  "uint64_t bits = 2 * (left < MMAX_PAIR); if (bits) { continue; }", "golden forward")
m = function("MMAX_INLINE __m256 MMAX_(kept_first)(", "avx2")
m("candidates by registers: not those of the mask", "mmax_kept_lanes[bits]", "mmax_kept_lanes[bits | 1]", "golden forward")

m = function("MMAX_(sums_of_few)(const mmax_real *x")
m("few candidates: the count is one too low", "int count = 1, top_seen = 0;", "int count = 0, top_seen = 0;", "forward")

m = function("MMAX_INLINE MMAX_(above) MMAX_(sums_above)(")
m("many candidates: held ones are lost", "w->next = w->count = 0;", "w->count = 0;", "forward")

m = function("MMAX_INLINE double MMAX_(tau_step)(")
m("tau: any count is the last", "*exact = a->count == last_count;", "*exact = 1;", "forward")
m("tau: entmax15 takes the further root", "a->excess / (a->first + mmax_f64_sqrt(root))",
  "(a->first + mmax_f64_sqrt(root)) / a->count", "forward")

m = function("MMAX_INLINE double MMAX_(safe_step)(")
m("tau: sparsemax divides by one too many", "a->excess / a->count", "a->excess / (a->count + 1)", "forward passes")
m("tau: a step of entmax15 from the heads passes it", "norm * a->excess / ((norm + 1) * a->first)",
  "norm * a->excess / (0.9 * (norm + 1) * a->first)", "forward")

m = function("MMAX_INLINE int MMAX_(find_tau)(")
m("tau: entries that equal it are missed", "a.excess < 0 && next >= t", "0", "forward")
m("tau: entries beside it are missed", "exact && !MMAX_(may_be_missed)(w, &a, step, function)", "exact", "forward")
m("bisection: too early", "(tau->passes >= 16 && tau->passes % 2 == 0)", "(tau->passes >= 2 && tau->passes % 2 == 0)",
  "passes")
m("bisection: the upper bound stays", "upper = t;", "upper = 0;", "passes")
m("bisection: NaN rows are normal", "!mmax_f64_is_finite(a.first)", "0", "special_cases")

m = function("MMAX_INLINE int MMAX_(begin_candidates)(")
m("candidates: the reach is too short", "0.001 - (double)w->start", "-0.05 - (double)w->start", "forward")
m("candidates: NaN is lost beside scores that overflow", "top < 0 && !MMAX_(has_nan)(x, n)", "top < 0", "special_cases")
m = function("MMAX_INLINE int MMAX_(begin_candidates)(", "avx2")
m("candidates: a few more than the buffer holds", "w->next >= n && w->count <= w->room;", "w->next >= n;", "forward")

m = function("MMAX_INLINE mmax_vec MMAX_(lane_step)(", "avx2")
m("side by side: the further root", "mmax_v_add(first, norm)", "mmax_v_sub(first, norm)", "passes")

m = function("MMAX_INLINE int MMAX_(taus)(", "avx2")
m("side by side: the sum of weights is 0", "excess[h] = minus_one;", "excess[h] = zero;", "golden forward")
m("side by side: the last candidate is lost", "i < n; ++i", "i + 1 < n; ++i", "golden forward")
m("side by side: no sum of doubles is exact", "to_coarse = mmax_v_set(6144)", "to_coarse = zero", "forward")
m("side by side: what is below the exact sum is lost", "mmax_v_add(excess[h], fine[h])", "excess[h]", "forward")
m("side by side: tau of doubles has one part", "mmax_v_store(rests + h * apart, rest[h]);",
  "mmax_v_store(rests + h * apart, zero);", "special_cases")
m("side by side: the step of a lane that is done", "mmax_v_select(moving[h], mmax_v_add(mmax_v_sub(t[h], next), step), rest[h])",
  "mmax_v_add(mmax_v_sub(t[h], next), step)", "bits")
m("side by side: a long step of doubles is the last", "if (!of_floats) {\n                    unsure",
  "if (0) {\n                    unsure", "special_cases")
m("side by side: sparsemax passes entries", "unsure = mmax_v_le(closest[h], size)", "unsure = mmax_m_none()", "forward passes")
m("side by side: of doubles, the step is as coarse as of floats", ": of_floats ?", ": 1 ?", "special_cases")
m("side by side: a large last step", "last_step = mmax_v_set((mmax_real)-relative)",
  "last_step = mmax_v_set((mmax_real)-1)", "golden forward")

m = function("MMAX_INLINE void MMAX_(sorted_taus)(", "avx2")
m("side by side: sparsemax takes tau of all entries", "mmax_v_max(tau[h], mmax_v_mul(first[h], inverse))",
  "mmax_v_mul(first[h], inverse)", "golden forward")
m("side by side: entmax15 takes any entry as support", "above = mmax_v_lt(others, one);", "above = mmax_v_lt(zero, one);",
  "golden forward")

m = function("MMAX_INLINE void MMAX_(sort_some)(", "avx2")
m("side by side: not quite sorted", "MMAX_EXCHANGE(2, 2, 6)", "", "golden forward")
m("side by side: merged columns are not sorted", "MMAX_EXCHANGE(1, 0, 1)\n    } else {", "} else {", "forward passes")

m = function("MMAX_INLINE void MMAX_(sort_sixteen)(", "avx2")
m("side by side: ten columns, of which eight are sorted", "count <= 8", "count <= 10", "forward")
m("side by side: sixteen columns, of which twelve are sorted", "count <= 12", "count <= 16", "forward")

m = function("MMAX_STATIC void MMAX_(sort_columns)(", "avx2")
m("side by side: the halves are not merged", "if (count > 16) {", "if (0) {", "forward passes")
m("side by side: the last columns are not merged", "i = 32 - count;", "i = 34 - count;", "forward passes")

m = function("#    define MMAX_EACH_LANE(call)", "avx2")
m("side by side: half of the registers", "lanes - at > MMAX_WIDTH ? MMAX_WIDTH : 0;", "0;", "forward bits")

m = function("MMAX_INLINE int MMAX_(is_needed)(", "avx2")
m("side by side: the lowest of a support are not searched", "mmax_v_set((mmax_real)-1.001)", "mmax_v_set((mmax_real)-0.9)",
  "special_cases")
m("side by side: half of the rows say what is searched", "r < lanes;", "r < 1;", "forward bits")

m = function("MMAX_STATIC void MMAX_(begin_lanes)(", "avx2")
m("side by side: four columns at most are searched", "needed += 4;", "break;", "forward")
m("side by side: one row has as many entries as there are columns", "at < w->count[0] ? ", "1 ? ", "memory special_cases")
m("side by side: one row is in the first column alone", "w->u + at * MMAX_GROUP, mmax_v_set", "w->u, mmax_v_set", "forward bits")
m("side by side: NaN is not seen",
  "bad = mmax_m_or(bad, mmax_v_nle(mmax_v_load(u + i * MMAX_GROUP), mmax_v_set(MMAX_REAL_MAX)));", "", "special_cases")

m = function("MMAX_STATIC int MMAX_(collect_lanes)(", "avx2")
m("threshold: rows count as having equally many candidates", "w->even = 0;", "", "bits forward")
m("side by side: too many candidates", "next < w->n[r] || count > room", "next < w->n[r]", "bits")
m("side by side: too many for the room", "next < w->n[r] || count > room", "count > room", "forward passes")
m("side by side: as many as the last row has", "w->most = count > w->most ? count : w->most;", "w->most = count;",
  "bits forward special_cases")
m("side by side: no margin below the bound", "margin = mmax_v_set((mmax_real)0.001)", "margin = mmax_v_set((mmax_real)-0.1)", "forward")
m("side by side: a bound of NaN", "mmax_v_select(mmax_v_ne(low, low), mmax_v_set(MMAX_MASK), low)", "low", "memory")
m("side by side: rows without candidates have a maximum", "w->max[r] = MMAX_MASK;", "", "forward special_cases passes")

m = function("MMAX_INLINE size_t MMAX_(rows_at_once)(", "avx2")
m("side by side: losses take one row more than there is room for", "MMAX_SIDE_BY_SIDE_BYTES / bytes : 1",
  "MMAX_SIDE_BY_SIDE_BYTES / bytes + 1 : 1", "special_cases")

m = function("MMAX_INLINE void MMAX_(tau_of_lanes)(", "avx2")
m("side by side: many candidates have tau of the first", "w->count[r] > MMAX_SORTED ? searched[r] : exact[r];",
  "exact[r];", "forward passes")
m("side by side: few candidates are searched like many", "w->count[r] > MMAX_SORTED ? searched[r] : exact[r];",
  "searched[r];", "forward bits")

m = function("MMAX_INLINE void MMAX_(search_lanes)(", "avx2")
m("threshold: rows of a group count as equally long", "entries == w->most * w->rows", "1", "bits special_cases")
m("side by side: scores beyond the type's range", "mmax_v_nle(top, mmax_v_set(MMAX_REAL_MAX / 2))", "mmax_m_none()",
  "special_cases forward")

m = function("MMAX_INLINE void MMAX_(threshold_losses)(", "avx2")
m("threshold losses: ignored rows are read", "b->index[row + r] >= 0 ? lanes.n[r] : 0;", "lanes.n[r];", "losses")

m = function("MMAX_INLINE void MMAX_(threshold_loss_row)(", "avx2")
m("threshold losses: rows that go alone do not", "lane && !lane->alone", "lane", "special_cases")
m("threshold losses: an ignored row keeps its old loss", "*loss = 0;", "", "special_cases")
m("threshold losses: -1 is a class", "if (index >= 0) {", "if (index >= -1) {", "special_cases")
m("threshold losses: an ignored row keeps its old gradient", "size_t written = 0;", "size_t written = n;", "special_cases")

m = function("MMAX_INLINE mmax_vec MMAX_(threshold_weight)(")
m("entmax15: entries below tau have weight", "v = mmax_v_keep(mmax_v_le(mmax_v_set(MMAX_REAL_MIN_ROOT), v), v);", "",
  "golden")

m = function("MMAX_INLINE double MMAX_(threshold_loss_part)(")
m("threshold loss: a sum of distances overflows to NaN", "mmax_exact_total(wide_sum, lost)", "(wide_sum + lost)",
  "losses")
m("entmax15 loss: the factor 2 of the entries below tau", "mmax_s_dfma(unit * q, below,", "mmax_s_dfma(q, below,", "losses")
m("threshold loss: distances beyond the type are summed in it", "q > 0 && !wide ?", "q > 0 ?", "losses")
m("threshold loss: far masked entries have a distance", "if (!mmax_is_masked(x[i])) {", "if (1) {", "losses special_cases")
m("entmax15 loss: 2/3", "(mmax_real)(2.0 / 3)", "(mmax_real)(1.0 / 3)", "losses")

m = function("MMAX_INLINE void MMAX_(finish_gradient)(")
m("loss: a grad_scale beyond the type as far as the type goes", "(double)gx[i] * rest", "(double)gx[i]", "losses")
m("loss: 0 times an infinite grad_scale", "gx[i] == 0 ? 0 :", "", "losses")
m = function("MMAX_INLINE void MMAX_(prepare_gradient)(")
m("loss: grad_scale is not limited", "MMAX_(in_range)(targets->grad_scale * c->scale)", "targets->grad_scale * c->scale", "losses")
m = function("MMAX_INLINE void MMAX_(back_row)(")
m("backward: large gradients overflow", "MMAX_IS_LARGE(mean)", "0", "special_cases")
m("backward: what is shrunk stays so", "r.shrunk = (mmax_real)MMAX_SHRUNK;", "", "special_cases")
m = function("MMAX_INLINE void MMAX_(back_gradients)(")
m("backward: one factor for scale and shrinking", "c->scale > (double)r->shrunk * MMAX_REAL_MAX", "0", "backward")
m("backward: large gradients are not restored", "c->scale / (double)r->shrunk", "c->scale", "special_cases")
m = function("MMAX_INLINE double MMAX_(kink_gradient)(")
m("gp: an absent term is 0 times its sum", "if (t < 0 || t > 0) {", "if (1) {", "special_cases")

m = function("MMAX_INLINE double MMAX_(few_loss)(")
m("threshold loss: the target counts twice", "(above > 0) & (i != target)", "above > 0", "losses")
m("threshold loss: entries outside the support count", "(above > 0) & (i != target)", "i != target", "losses")

m = function("MMAX_INLINE double MMAX_(small_loss)(")
m("entmax15 loss: a sign where it is small", "3 - missing", "3 + missing", "losses")
m("threshold loss: one Newton step where it is small", "size > t * 9.313225746154785e-10", "step == 0", "losses")
m("threshold loss: the sums of the last step, whatever its size", "size > 0 || x_target", "x_target", "losses")
m("threshold loss: the target is at the maximum", "size > 0 || x_target != w->units.max", "size > 0", "losses")

m = function("MMAX_STATIC void MMAX_(sums_above_bottom)(")
m("threshold loss: entries equal to the target count as it", "found |= skipped;", "", "losses")

m = function("MMAX_STATIC double MMAX_(count_active)(")
m("threshold loss: masks count in the smoothing", "mmax_v_add_where(active_, lanes_##part[0][k], one)",
  "mmax_v_add(lanes_##part[0][k], one)", "losses")
m("threshold loss: the lowest of a row's end", "low[0] = mmax_v_min(low[k], low[0]);", "", "losses")

m = function("MMAX_INLINE void MMAX_(threshold_loss_end)(")
m("threshold loss: no row is wide", "MMAX_(distance)(w->units.max, low, 1 + c->scale) > bound", "0", "losses")
m("threshold loss: a far target is near", "MMAX_UNLIKELY(wide) ?", "0 ?", "losses")
m("threshold loss: the target is one of the others", "others[at] = MMAX_MASK;", "", "losses")
m("threshold loss: in two sweeps the target is left out in the first alone", "from = to + 1, to = count", "from = to, to = count", "losses")
m("threshold loss: the target's gradient without q", "gx[index] = masked ? 0 : (mmax_real)((p - q_target) * factor);",
  "gx[index] = masked ? 0 : (mmax_real)(p * factor);", "losses")

m = function("MMAX_INLINE MMAX_(scaling) MMAX_(scaling_of)(")
m("weights: f64, the rounding of the sum is forgotten", "- mmax_product(inverse, lost)", "", "forward")

m = function("MMAX_INLINE mmax_vec MMAX_(weight)(")
m("log backward: the factor of exponentials stays", "MMAX_TWO_TO_MINUS_64 / MMAX_POW2_FACTOR",
  "MMAX_TWO_TO_MINUS_64", "losses backward")

# ---- tanhmax ----
m = function("MMAX_INLINE mmax_vec MMAX_(sinh_end)(")
m("tanhmax: even, not odd", "mmax_v_copysign(sinh2, x)", "sinh2", "properties")
m("tanhmax: exp(-s) beside a far origin", "is_far ? lowest : ", "", "forward special_cases")
m("tanhmax: sums sinh", "*cosh2 = mmax_v_add(sum, mmax_v_fma(sum, even, mmax_v_mul(difference, slope)));",
  "*cosh2 = sinh2;", "forward")

m = function("MMAX_INLINE MMAX_(reduced) MMAX_(sinh_begin)(")
m("tanhmax: cancels near 0 where roundings go up", "mmax_v_keep(mmax_v_le(least, distance), size)", "size",
  "environment")
m("tanhmax: scores far below the origin are near 0", "kind == MMAX_ROW_GENERAL ? mmax_v_abs(size) : size", "size",
  "forward")

m = function("MMAX_INLINE mmax_vec MMAX_(exp_end)(", "avx2")
m("tanhmax: masks are in the sum", "*summed = mmax_v_keep(mmax_v_nle(x, mmax_v_set(MMAX_MASK)), *summed);", "",
  "special_cases bits")

m = function("MMAX_STATIC void MMAX_(exp_tanhmax)(", "avx2")
m("tanhmax: rows are masked as the first of them", "rows[i].relative_to", "rows->relative_to", "special_cases bits")

m = function("MMAX_RARE int MMAX_(long_begin)(", "avx2")
m("tanhmax: a long row is masked as its first block", "l->origin.range = o.range;", "", "long_rows special_cases bits")

m = function("MMAX_INLINE int MMAX_(sinh_begin_row)(")
m("tanhmax backward: masks count where cosh is 1", "masks ? MMAX_(sum_total)(&sums[1]) : (double)r->n", "(double)r->n",
  "backward special_cases")
m("tanhmax backward: cosh is 1 up to 1", "!(top >= MMAX_FLAT &&", "!(top >= 1 &&", "backward")
m("tanhmax backward: no cosh is 1", "top < MMAX_FLAT ?", "0 ?", "backward")
m("tanhmax backward: no score is too large", "top < MMAX_UNIT_RANGE", "1", "properties")
m("tanhmax backward: NaN is not seen", "mmax_m_bits(bad) != 0 || !(top", "!(top", "special_cases")
m("tanhmax backward: a score may overflow", "!(top <= MMAX_REAL_MAX) ||", "", "properties")
m("tanhmax backward: roundings make the sum overflow", "t->dot[i] = MMAX_(limited_dot)(r);", "", "backward")
m("tanhmax backward: NaN in gy is not seen", "|| !mmax_f64_is_finite(t->dot[i])", "", "special_cases")

m = function("MMAX_INLINE int MMAX_(sinh_begin_row)(", "avx2")
m("tanhmax backward: all lanes have one row's sinh", "t->y[i] = mmax_v_hmax(",
  "t->y[0] = mmax_v_hmax(", "bits")

m = function("MMAX_STATIC mmax_vec MMAX_(squares_of)(")
m("tanhmax backward: a usual scale", "MMAX_TANHMAX, MMAX_ROW_GENERAL", "MMAX_TANHMAX, MMAX_ROW_CLAMP",
  "properties")
m("tanhmax backward: sinh is held too high", "MMAX_LOWEST + whole", "MMAX_LOWEST + 2 * whole", "backward")
m("tanhmax backward: the factor of exponentials stays", "mmax_v_set((mmax_real)(1.0 / MMAX_POW2_FACTOR))",
  "mmax_v_set((mmax_real)1)", "backward")

m = function("MMAX_INLINE void MMAX_(cosh_row)(")
m("tanhmax backward: wrong sign of the mean", "(mmax_real)-MMAX_(in_range)", "(mmax_real)MMAX_(in_range)", "backward")
m("tanhmax backward: the scale is forgotten", "mmax_v_set((mmax_real)c->scale)", "one", "backward")
m("tanhmax backward: 2 / C is left out", "mmax_v_fma(sinh_, sinh_, square)", "mmax_v_mul(sinh_, sinh_)", "backward")
m("tanhmax backward: squares leave the type's range", "mmax_v_min(mmax_v_abs(y_), one), up)",
  "mmax_v_min(mmax_v_abs(y_), one), one)", "backward")

m = function("MMAX_STATIC void MMAX_(tanhmax_backward)(", "avx2")
m("tanhmax backward: all rows have one C", "squares[i], &c, 0", "squares[0], &c, 0", "bits")
m("tanhmax backward: masks are forgotten", "else if (masks)", "else if (0)", "special_cases")

m = function("MMAX_INLINE void MMAX_(slopes_end)(")
m("gp: the last entries are not in the sums yet", "MMAX_CALL_FLUSH(t, 4 * p->order);", "", "backward")

# ---- seglu ----
m = function("MMAX_STATIC void MMAX_(seglu)(")
m("seglu: results may be subnormal", "y_ = mmax_v_keep(mmax_v_le(smallest, mmax_v_abs(y_)), y_);", "", "special_cases")
m("seglu: +inf stays", "mmax_m_or(mmax_v_nle(x_, largest), mmax_v_ne(y_, y_))", "mmax_v_ne(y_, y_)", "special_cases")

m = function("MMAX_INLINE void MMAX_(seglu_backward_row)(")
m("seglu backward: NaN does not reach gp", "slopes->any_nan |= mmax_m_bits(any_bad) != 0;", "", "special_cases")

m = function("MMAX_STATIC void MMAX_(seglu_backward)(")
m("seglu backward: past the length nothing is written", "MMAX_(fill)(gx_row + n, s->cols - n, 0);", "", "special_cases")
m("seglu backward: x's stride for gy", "gy + row * s->gy_stride", "gy + row * s->x_stride", "memory bits")

# ---- backward ----
m = function("    define MMAX_LOADS(r, at, left)")
m("backward: gy is used where y = 0", "MMAX_(load_active)((r)->gy + at, left, masked, active_)",
  "MMAX_(load_upto)((r)->gy + at, left, zero)", "special_cases")

m = function("MMAX_INLINE mmax_vec MMAX_(load_active)(")
m("what is not active is loaded", "return mmax_v_keep(active, MMAX_(load_upto)(p, count, fill));",
  "return MMAX_(load_upto)(p, count, fill);", "special_cases")

m = function("MMAX_INLINE void MMAX_(backward)(mmax_real *gx", "avx2")
m("backward: roots of entmax15 replace gy", "gx != gy && gx != y", "gx != y", "bits")
m("backward: roots of entmax15 replace y", "gx != gy && gx != y", "gx != gy", "special_cases bits")

m = function("MMAX_INLINE mmax_vec MMAX_(safe_squares)(", "avx2")
m("backward: an infinite sum of squares is not beyond", ": 1 / MMAX_REAL_MIN_ROOT;", ": DBL_MAX;", "special_cases")
m("backward: large parameters are not seen", "most > 0 ?", "1 ?", "special_cases backward passes losses")

m = function("MMAX_INLINE int MMAX_(back_sums)(", "avx2")
m("backward: large x are not seen", "MMAX_EACH(k) { bad = mmax_m_or(bad, mmax_v_nle(squares[k], bound)); }", "",
  "special_cases")

m = function("MMAX_INLINE double MMAX_(back_mean)(", "avx2")
m("backward: not the mean of the support", "weights != 0 ? products / weights : products", "products", "backward")
m("backward: a short row's mean may overflow", "good && mmax_is_finite(totals[0])", "good", "special_cases")
m("backward: no row needs care", "good && mmax_f64_is_finite(products) ? mean", "1 ? mean", "special_cases")

m = function("MMAX_INLINE void MMAX_(back_row)(")
m("backward: a NaN row leaves gp as it is", "slopes->any_nan = 1;", "", "special_cases")
m("backward: gx is written, though left out, in a NaN row", "if (r.gx) {", "if (1) {", "special_cases")

m = function("MMAX_INLINE void MMAX_(back_end)(", "avx2")
m("backward: gx is written, though left out", "params, 0, 0, 0, 0, NULL);", "params, 0, 0, 1, 0, NULL);", "backward")

m = function("MMAX_STATIC void MMAX_(back_masked_row)(", "avx2")
m("backward, masked rows: masks have a score in gx", "2, 0, 0, 1, 1, 0, NULL);", "2, 0, 0, 0, 1, 0, NULL);",
  "bits special_cases")
m("backward, masked rows: masks have a score in gp", "2, 1, 0, 1, r->gx != NULL,", "2, 1, 0, 0, r->gx != NULL,",
  "bits special_cases")
m("backward, masked rows: gx is written, though left out", "r->gx != NULL, 0, NULL);", "1, 0, NULL);", "bits backward")

m = function("MMAX_INLINE size_t MMAX_(back_short)(", "avx2")
m("backward, short rows: those with NaN as well", "bad = mmax_m_or(bad, mmax_v_nle(mmax_v_abs(mean), most));", "",
  "special_cases")
m("backward, short rows: those with NaN as well, by their bits",
  "MMAX_UNLIKELY(!mmax_is_within(MMAX_(lane)(mean), MMAX_MOST_MEAN))", "0", "special_cases")
m("backward, short rows: large scores as well", "mmax_v_nle(one ? squares[0] : MMAX_(halved)(squares), bound)",
  "mmax_m_none()", "bits special_cases")
m("backward, short rows: roots of entmax15 that were never stored", "rooted = row.roots;", "rooted = 1;", "bits")
m("backward, short rows: gy's stride for y", "row.y += y_stride;", "row.y += gy_stride;", "memory bits")
m("backward, short rows: x stays", "row.x += x_stride;", "", "backward memory bits")
m("backward, short rows: gx is written, though left out", "if (!params || row.gx) {                             \\",
  "if (1) { \\", "backward")

m = function("MMAX_INLINE size_t MMAX_(back_short)(", "avx512")
m("backward, short rows: gp has no more of a row after a flush", "MMAX_CALL_FLUSH(slopes, 4 * order);\n                MMAX_CALL_LOAD",
  "MMAX_CALL_FLUSH(slopes, 4 * order);\n                if (0) MMAX_CALL_LOAD", "backward bits")
m("backward, short rows: gp misses the last rows", "MMAX_CALL_STORE(lanes_all_, slopes, 0, call_sums)\n    return", "return",
  "backward bits")

m = function("MMAX_INLINE size_t MMAX_(back_group)(", "avx2")
m("backward, groups: those with NaN as well", "bad = mmax_m_or(bad, mmax_v_nle(mmax_v_abs(mean), mmax_v_set(MMAX_MOST_MEAN)));", "",
  "bits special_cases")
m("backward, groups: large scores as well", "bad = mmax_m_or(bad, mmax_v_nle(MMAX_(halved)(squares), bound));", "",
  "bits special_cases")
m("backward, groups: gx is written, though left out", "if (each.gx) {", "if (1) {", "bits")

m = function("#        define MMAX_IS_PAIRS(n)", "avx2")
m("backward of softmax: a rest behind pairs of blocks is missed", "(n) % MMAX_PAIR == 0", "1", "bits memory")
m("backward of softmax: a row of a pair goes with those of more", "(n) == MMAX_PAIR ||", "(n) % MMAX_PAIR == 1 ||",
  "bits memory")

m = function("MMAX_APART size_t MMAX_(back_softmax_pairs)(", "avx2")
m("backward of softmax: all rows of pairs are of one", "r->n == MMAX_PAIR ?", "r->n > 0 ?", "bits backward")

m = function("MMAX_INLINE size_t MMAX_(back_short_rows)(", "avx2")
m("backward: lengths of short rows are as the first", "s->lengths ? 1 : s->rows - row", "s->rows - row",
  "special_cases bits")

m = function("#    define MMAX_TERMS(r, at, left)", "avx2")
m("backward: sparsemax sees no NaN in y", "if (function == MMAX_BACK_SPARSEMAX) {", "if (0) {", "special_cases")
m("backward: an infinite logarithm is not seen", "bad = mmax_m_or(bad, mmax_m_and(active_, mmax_v_nle(y_, largest)));",
  "", "special_cases")

m("backward: NaN of a logit counts only where y has weight", "bad = mmax_m_or(bad, mmax_v_nle(logit_, largest));",
  "bad = mmax_m_or(bad, mmax_m_and(active_, mmax_v_nle(logit_, largest)));", "special_cases")
m("backward: NaN of a logit without weight is not seen beside masks", "masks ? mmax_v_keep(there_, logit_) : x_", "x_",
  "special_cases")
m("backward: a mask with a weight is not seen", "mmax_m_or(active_, mmax_v_nle(logit_, masked))",
  "mmax_v_nle(logit_, masked)", "special_cases")

m = function("#    define MMAX_SWEEP_PAIRS(n, sums, sum_count, totals, step)", "sse2")
m("backward: short rows alone are summed up in double", "(n) <= MMAX_EXP_CHUNK;", "0;", "bits backward")

m = function("#    define MMAX_GRADIENT(r, at, left, mean, lanes, k)", "avx2")
m("backward of softmax: a scale above 1 is forgotten", "mmax_v_mul(w_, mmax_v_max(one_, scale))", "w_", "backward")
m("backward of softmax: a scale below 1 is forgotten", "down_ = mmax_v_min(one_, scale)", "down_ = one_", "backward")
m("backward of softmax: a large gy overflows by the scale", "mmax_v_mul(w_, mmax_v_max(one_, scale)), mmax_v_fma(gy_, down_, less_)",
  "w_, mmax_v_mul(mmax_v_max(one_, scale), mmax_v_fma(gy_, down_, less_))", "special_cases")
m("backward, short rows: the sign of 0 at a mask", "if (masks || (careful", "if ((careful", "environment")

m = function("#    define MMAX_LOADS(r, at, left)")
m("backward: NaN as a masked entry's weight", "careful && order ? mmax_v_select(active_, weight_, inactive) : weight_",
  "weight_", "special_cases")

m = function("MMAX_INLINE void MMAX_(slopes_target)(")
m("gp: roundings of many targets add up", "++t->late == MMAX_MOST_LATE", "0", "losses")
m = function("MMAX_INLINE void MMAX_(targets_join)(")
m("gp: roundings of many rows' targets add up",
  "MMAX_ADD_EXACTLY(t->targets[i], t->targets_lost[i], t->late_targets[i])", "t->targets[i] += t->late_targets[i]",
  "losses")

m = function("MMAX_INLINE void MMAX_(back_skip)(")
m("backward: y's stride for gy", "r->gy += rows * s->gy_stride;", "r->gy += rows * s->y_stride;", "memory bits")

m = function("MMAX_INLINE void MMAX_(backward)(", "avx2")
m("backward: the scale of a logarithm is forgotten", "call.scale = s->scale;", "", "backward losses")
m("backward: lengths ignored", "r.n = s->lengths ? s->lengths[row] : s->cols", "r.n = s->cols", "special_cases")
m("backward: a row is taken twice", "row += done - 1;", "row += done > 1 ? done - 2 : 0;", "memory bits special_cases")

m = function("MMAX_INLINE mmax_vec MMAX_(whole_before)(")
m("backward: shrunk gradients are whole after a small scale", "c->scale < 1 ?", "0 ?", "backward")
m("backward: shrunk gradients are whole before they may be", "mmax_v_select(is_small, mmax_v_set(1 / shrunk), one)",
  "mmax_v_set(1 / shrunk)", "backward")

# ---- metrics ----
m = function("MMAX_RARE double MMAX_(share_of_exp)(")
m("sparsity: a term overflows before it is shared", "root / count * root", "root * root / count", "api")
m = function("MMAX_RARE double MMAX_(distance_mean)(")
m("multimodality: the mean of differences that overflow", "2 * mmax_exact_total", "mmax_exact_total", "api")
m("multimodality: a difference overflows before it is halved", "(double)metric->y_max * 0.5 - (double)y[i] * 0.5",
  "((double)metric->y_max - (double)y[i]) * 0.5", "api")
m = function("MMAX_RARE double MMAX_(sparsity_mean)(")
m("sparsity: roundings of negative y add up", "MMAX_ADD_EXACTLY(mean, lost, term);", "mean += term;", "api")
m = function("MMAX_INLINE void MMAX_(metric_mean)(")
m("sparsity: negative weights as the others", "tiny || mmax_m_bits(unusual) != 0", "0", "api")
m("metric: an entry equal to epsilon counts", "mmax_v_lt(epsilon, x_)", "mmax_v_le(epsilon, x_)", "api")
m("metric: masks count as sparse", "mmax_m_and(active_, mmax_v_lt(x_, epsilon))", "mmax_v_lt(x_, epsilon)",
  "special_cases api")

m = function("MMAX_INLINE double MMAX_(softmax_min)(")
m("metric: the reference is that of a mask", "!mmax_is_masked(x[i]) && ", "", "special_cases api")
