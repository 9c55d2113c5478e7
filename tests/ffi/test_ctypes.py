"""The shared mode called from Python: layout of the structs, results, gradients, metrics and errors.

    python3 test_ctypes.py LIBRARY LAYOUT

LAYOUT prints sizes and offsets as the C compiler sees them. Results are compared with the formulas below, in
plain Python; gradients with central differences of these formulas. No package beyond the standard library.
"""
import ctypes
import math
import random
import struct
import subprocess
import sys
import unittest
from ctypes import POINTER, byref, c_char_p, c_double, c_float, c_int, c_int32, c_size_t, c_uint32, c_uint64, c_void_p

LIBRARY = ctypes.CDLL(sys.argv[1])
LAYOUT = subprocess.run([sys.argv[2]], check=True, capture_output=True, text=True).stdout

OK, ERR_NULL, ERR_SHAPE, ERR_PARAM, ERR_ALIAS, ERR_ISA, ERR_SCALE, ERR_TARGETS, ERR_ATTENTION = range(9)
SCALAR, SSE2, AVX2, AVX512, NEON, WASM128, ISA_COUNT = range(7)
INF = math.inf


class Attention(ctypes.Structure):
    _fields_ = [("head_rows", c_size_t), ("scales", POINTER(c_double)), ("bias", c_void_p), ("bias_rows", c_size_t),
                ("bias_stride", c_size_t), ("slopes", POINTER(c_double)), ("sinks", POINTER(c_double)),
                ("masked", c_double), ("heads", c_size_t)]


class Shape(ctypes.Structure):
    _fields_ = [("rows", c_size_t), ("cols", c_size_t), ("x_stride", c_size_t), ("y_stride", c_size_t),
                ("gx_stride", c_size_t), ("gy_stride", c_size_t), ("scale", c_double), ("ends", POINTER(c_uint32)),
                ("starts", POINTER(c_uint32)), ("attention", POINTER(Attention)), ("inner", c_size_t),
                ("accumulate", c_int)]


class Router(ctypes.Structure):
    _fields_ = [("k", c_size_t), ("gate", c_int), ("factor", c_double), ("bias", c_void_p), ("groups", c_size_t),
                ("group_k", c_size_t), ("group_best", c_size_t)]


class Params(ctypes.Structure):
    _fields_ = [("order", c_int), ("t_b", c_double * 2), ("t_d", c_double * 2), ("b", c_double * 2), ("d", c_double * 2)]


class Grads(ctypes.Structure):
    _fields_ = [("t_b", c_double * 2), ("t_d", c_double * 2), ("b", c_double * 2), ("d", c_double * 2)]


class Targets(ctypes.Structure):
    _fields_ = [("index", POINTER(c_int32)), ("label_smoothing", c_double), ("grad_scale", c_double),
                ("weights", POINTER(c_double)), ("q", c_void_p), ("q_stride", c_size_t)]


def function(name, restype, *argtypes):
    found = getattr(LIBRARY, name)
    found.restype, found.argtypes = restype, argtypes
    return found


status_string = function("mmax_status_string", c_char_p, c_int)
isa_available = function("mmax_isa_available", c_int, c_int)
isa_select = function("mmax_isa_select", c_int, c_int)
isa_active = function("mmax_isa_active", c_int)
isa_name = function("mmax_isa_name", c_char_p, c_int)
version = function("mmax_version", c_char_p)
identity = function("mmax_multimax_identity", Params, c_int)
from_table = function("mmax_multimax_from_table", Params, c_int, POINTER(c_double))
from_checkpoint = function("mmax_multimax_from_checkpoint", Params, c_int, POINTER(c_double), POINTER(c_double))



# In C these are inline functions.
def make_rows(rows, cols):
    return Shape(rows=rows, cols=cols)


def make_row(cols):
    return make_rows(1, cols)


def labels(index):
    return Targets(index=index, grad_scale=1)


def distributions(q):
    return Targets(q=q, grad_scale=1)


# The arguments between the arrays and the shape.
EXTRA = {"multimax": [POINTER(Params)], "seglu": [POINTER(Params)], "evsoftmax": [c_double]}
NAMES = ["softmax", "multimax", "sparsemax", "entmax15", "evsoftmax", "tanhmax", "seglu"]
TYPES = {"f32": (c_float, 2e-6), "f64": (c_double, 4e-15)}


def sigma(x, p):
    y = x
    for n in range(p.order):
        y += (1 - p.t_b[n]) * max(p.b[n] - x, 0.0) ** (n + 1) + (p.t_d[n] - 1) * max(x - p.d[n], 0.0) ** (n + 1)
    return y


def softmax(s):
    e = [math.exp(v - max(s)) for v in s]
    return [v / math.fsum(e) for v in e]


def sparsemax(s):
    ordered = sorted(s, reverse=True)
    for k in range(len(s), 0, -1):
        tau = (math.fsum(ordered[:k]) - 1) / k
        if ordered[k - 1] > tau:
            return [max(v - tau, 0.0) for v in s]


def entmax15(s):
    """tau by bisection: the sum falls from at least 1 at max/2 - 1 to 0 at max/2."""
    low, high = max(s) / 2 - 1, max(s) / 2
    for _ in range(200):
        tau = (low + high) / 2
        if math.fsum(max(v / 2 - tau, 0.0) ** 2 for v in s) > 1:
            low = tau
        else:
            high = tau
    return [max(v / 2 - tau, 0.0) ** 2 for v in s]


def entmax(s, alpha):
    """As entmax15."""
    weights = lambda tau: [max((alpha - 1) * v - tau, 0.0) ** (1 / (alpha - 1)) for v in s]
    low, high = (alpha - 1) * max(s) - 1, (alpha - 1) * max(s)
    for _ in range(200):
        tau = (low + high) / 2
        if math.fsum(weights(tau)) > 1:
            low = tau
        else:
            high = tau
    return weights(tau)


def evsoftmax(s, epsilon):
    mean = math.fsum(s) / len(s)
    e = [(1.0 if v >= mean else epsilon) * math.exp(v - max(s)) for v in s]
    return [v / math.fsum(e) for v in e]


def tanhmax(s):
    total = math.fsum(2 * math.cosh(v) for v in s)
    return [2 * math.sinh(v) / total for v in s]


def expected(name, x, scale, extra):
    """One row, masked entries (-inf) as 0."""
    s = [scale * v for v in x if v != -INF]
    if not s:
        return [0.0] * len(x)
    active = iter({"softmax": softmax, "sparsemax": sparsemax, "entmax15": entmax15, "tanhmax": tanhmax,
                   "multimax": lambda v: softmax([sigma(u, extra) for u in v]),
                   "seglu": lambda v: [sigma(u, extra) for u in v],
                   "evsoftmax": lambda v: evsoftmax(v, extra)}[name](s))
    masked = -INF if name == "seglu" else 0.0
    return [masked if v == -INF else next(active) for v in x]


def loss(name, s, q, extra):
    """Cross-entropy, or the Fenchel-Young loss of Omega: max_p <p, s> - Omega(p), plus Omega(q) - <q, s>."""
    omega = {"sparsemax": lambda p: math.fsum(v * v for v in p) / 2 - 0.5,
             "entmax15": lambda p: 4 / 3 * math.fsum(v ** 1.5 - v for v in p)}.get(name)
    y = expected(name, s, 1.0, extra)
    if omega is None:
        return -math.fsum(b * math.log(a) for a, b in zip(y, q) if b > 0)
    return math.fsum((a - b) * v for a, b, v in zip(y, q, s)) - omega(y) + omega(q)


def as_arguments(name, extra):
    return [] if name not in EXTRA else [byref(extra) if isinstance(extra, Params) else extra]


def forward(name, suffix, y, x, extra, shape):
    real = POINTER(TYPES[suffix][0])
    call = function("mmax_%s_%s" % (name, suffix), c_int, real, real, *EXTRA.get(name, []), Shape)
    return call(y, x, *as_arguments(name, extra), shape)


def backward(name, suffix, gx, gp, gy, y, x, extra, shape):
    real = POINTER(TYPES[suffix][0])
    inputs = {"multimax": [gy, y, x], "seglu": [gy, x], "tanhmax": [gy, y, x]}.get(name, [gy, y])
    grads = [byref(gp)] if name in ("multimax", "seglu") else []
    params = as_arguments(name, extra) if grads else []
    call = function("mmax_%s_backward_%s" % (name, suffix), c_int, real, *[POINTER(Grads)] * len(grads),
                    *[real] * len(inputs), *[POINTER(Params)] * len(params), Shape)
    return call(gx, *grads, *inputs, *params, shape)


def some_params(order):
    return Params(order, (c_double * 2)(1.7, 0.9), (c_double * 2)(0.6, 1.1), (c_double * 2)(-0.3, 0.8),
                  (c_double * 2)(0.9, 0.4))


def cases():
    """Name, what goes between the arrays and the shape, for every function and variant."""
    for name in NAMES:
        if name in ("multimax", "seglu"):
            yield name, some_params(1)
            yield name, some_params(2)
        elif name == "evsoftmax":
            yield name, 0.0
            yield name, 1e-6
        else:
            yield name, None


def through(kind, values):
    """The values as the C type holds them."""
    return list((kind * len(values))(*values))


class Ctypes(unittest.TestCase):
    def setUp(self):
        self.random = random.Random(20240613)
        self.found = isa_active()

    def tearDown(self):
        self.assertEqual(isa_select(self.found), OK)

    def close(self, got, want, tolerance, message):
        for g, w in zip(got, want):
            if not (g == w or abs(g - w) <= tolerance * max(1.0, abs(w))):
                self.fail("%s: %r, not %r" % (message, list(got), want))

    def each_isa(self):
        for isa in range(ISA_COUNT):
            if isa_available(isa):
                self.assertEqual(isa_select(isa), OK)
                self.assertEqual(isa_active(), isa)
                yield isa_name(isa).decode()
            else:
                self.assertEqual(isa_select(isa), ERR_ISA)

    def test_layout(self):
        seen = set()
        for line in LAYOUT.splitlines():
            place, number = line.split()
            name, _, field = place.partition(".")
            kind = {"mmax_status": c_int, "mmax_isa": c_int, "mmax_shape": Shape, "mmax_multimax_params": Params,
                    "mmax_multimax_grads": Grads, "mmax_targets": Targets, "mmax_attention": Attention, "mmax_router": Router}[name]
            here = getattr(kind, field).offset if field else ctypes.sizeof(kind)
            self.assertEqual(here, int(number), place)
            seen.add((kind, field))
        for kind in (Shape, Params, Grads, Targets, Attention, Router):
            for field, _ in kind._fields_:
                self.assertIn((kind, field), seen)

    def test_version(self):
        self.assertRegex(version().decode(), r"^\d+\.\d+\.\d+$")

    def test_structs_returned_by_value(self):
        one, many = make_row(7), make_rows(3, 5)
        self.assertEqual((one.rows, one.cols, many.rows, many.cols), (1, 7, 3, 5))
        self.assertEqual((many.x_stride, many.gy_stride, many.scale, bool(many.ends)), (0, 0, 0.0, False))
        p = from_checkpoint(2, (c_double * 4)(-1, 2, -3, 4), (c_double * 4)(0.5, 0.25, -0.5, 0.125))
        self.assertEqual([p.order, *p.t_b, *p.t_d, *p.b, *p.d], [2, 0.5, 1.5, 1.25, 1.125, -1, -3, 2, 4])
        p = from_table(2, (c_double * 8)(1, 2, 3, 4, 5, 6, 7, 8))
        self.assertEqual([p.order, *p.t_b, *p.t_d, *p.b, *p.d], [2, 1, 3, 2, 4, 5, 7, 6, 8])
        p = identity(1)
        self.assertEqual([p.order, *p.t_b, *p.t_d, *p.b, *p.d], [1, 1, 1, 1, 1, 0, 0, 0, 0])

    def test_forward(self):
        for isa in self.each_isa():
            for suffix, (kind, tolerance) in TYPES.items():
                for name, extra in cases():
                    for cols in (1, 2, 5, 16, 33, 67):
                        for scale in (1.0, 0.37, 3.0):
                            x = (kind * cols)(*[self.random.gauss(0, 2) for _ in range(cols)])
                            y = (kind * cols)()
                            shape = make_row(cols)
                            shape.scale = scale
                            self.assertEqual(forward(name, suffix, y, x, extra, shape), OK)
                            self.close(y, expected(name, x, scale, extra), tolerance * (1 + cols / 32),
                                       "%s_%s on %s, %d columns" % (name, suffix, isa, cols))

    def test_masks_lengths_and_strides(self):
        rows, cols, stride = 4, 6, 9
        ends = [6, 0, 3, 5]
        for suffix, (kind, tolerance) in TYPES.items():
            for name, extra in cases():
                values = [self.random.gauss(0, 2) for _ in range(rows * stride)]
                values[0] = values[2 * stride + 1] = -INF
                x = (kind * (rows * stride))(*values)
                y = (kind * (rows * cols))(*[9.0] * (rows * cols))
                shape = make_rows(rows, cols)
                shape.x_stride, shape.ends = stride, (c_uint32 * rows)(*ends)  # an assigned array is kept alive
                self.assertEqual(forward(name, suffix, y, x, extra, shape), OK)
                for r in range(rows):
                    active = list(x[r * stride:r * stride + ends[r]])
                    want = expected(name, active, 1.0, extra) + [0.0] * (cols - ends[r])
                    self.close(y[r * cols:(r + 1) * cols], want, tolerance, "%s_%s row %d" % (name, suffix, r))

    def test_columns(self):
        rows, cols = 6, 5
        for suffix, (kind, _) in TYPES.items():
            for name, extra in cases():
                values = [self.random.gauss(0, 2) for _ in range(rows * cols)]
                x, y, apart = (kind * (rows * cols))(*values), (kind * (rows * cols))(), (kind * rows)()
                shape = make_rows(cols, rows)
                shape.inner = cols
                self.assertEqual(forward(name, suffix, y, x, extra, shape), OK)
                for c in range(cols):
                    column = (kind * rows)(*values[c::cols])
                    self.assertEqual(forward(name, suffix, apart, column, extra, make_row(rows)), OK)
                    self.assertEqual(list(y)[c::cols], list(apart), "%s_%s column %d" % (name, suffix, c))

    def test_nan_stays_in_its_row(self):
        for suffix, (kind, _) in TYPES.items():
            for name, extra in cases():
                if name == "seglu":
                    continue
                x = (kind * 6)(1, 2, 3, -INF, math.nan, 1)
                y = (kind * 6)()
                self.assertEqual(forward(name, suffix, y, x, extra, make_rows(2, 3)), OK)
                self.assertEqual([math.isnan(v) for v in y], [False] * 3 + [False, True, True])
                quiet = 0x7FC00000 if kind is c_float else 0x7FF8000000000000
                bits = struct.unpack("6I" if kind is c_float else "6Q", bytes(y))
                self.assertEqual(bits[4:], (quiet, quiet))

    def difference(self, value, at, step=1e-5):
        """Central difference of value(h) at h = 0, with the step halved once and extrapolated."""
        def slope(h):
            return (value(at + h) - value(at - h)) / (2 * h)
        return (4 * slope(step / 2) - slope(step)) / 3

    def parameter_differences(self, p, value):
        """t_b, t_d, b, d, the entry of order 1 before that of order 2; nothing for a function without parameters."""
        found = []
        for array in (p.t_b, p.t_d, p.b, p.d) if isinstance(p, Params) else ():
            for n in range(2):
                kept = array[n]

                def with_entry(v, array=array, n=n):
                    array[n] = v
                    return value()

                found.append(0.0 if n >= p.order else self.difference(with_entry, kept))
                array[n] = kept
        return found

    def test_backward(self):
        cols, scale = 7, 0.8
        for name, extra in cases():
            x = [self.random.gauss(0, 1) for _ in range(cols)]
            gy = [self.random.gauss(0, 1) for _ in range(cols)]
            x, gy = through(c_float, x), through(c_float, gy)

            def value(row):
                return math.fsum(g * v for g, v in zip(gy, expected(name, row, scale, extra)))

            want = [self.difference(lambda v, i=i: value(x[:i] + [v] + x[i + 1:]), x[i]) for i in range(cols)]
            want_params = self.parameter_differences(extra, lambda: value(x))
            for suffix, (kind, _) in TYPES.items():
                array = kind * cols
                y, gx, gp = array(), array(), Grads()
                shape = make_row(cols)
                shape.scale = scale
                self.assertEqual(forward(name, suffix, y, array(*x), extra, shape), OK)
                for _ in range(2):  # gp is added to
                    self.assertEqual(backward(name, suffix, gx, gp, array(*gy), y, array(*x), extra, shape), OK)
                tolerance = 5e-6 if kind is c_float else 1e-8
                self.close(gx, want, tolerance, "%s_%s gx" % (name, suffix))
                self.close([v / 2 for v in [*gp.t_b, *gp.t_d, *gp.b, *gp.d][:len(want_params)]], want_params, tolerance,
                           "%s_%s gp" % (name, suffix))

    def test_losses(self):
        cols, scale, smoothing, grad_scale = 6, 0.8, 0.1, 0.5
        for name, extra in cases():
            if name in ("tanhmax", "seglu") or extra == 0.0:
                continue
            x = through(c_float, [self.random.gauss(0, 1) for _ in range(cols)])
            q = [smoothing / cols + (1 - smoothing) * (i == 2) for i in range(cols)]

            def value(row):
                return loss(name, [scale * v for v in row], q, extra)

            want = [grad_scale * self.difference(lambda v, i=i: value(x[:i] + [v] + x[i + 1:]), x[i]) for i in range(cols)]
            want_params = [grad_scale * v for v in self.parameter_differences(extra, lambda: value(x))]
            for suffix, (kind, _) in TYPES.items():
                real, array = POINTER(kind), kind * (2 * cols)
                gx, gp, out = array(*[9.0] * (2 * cols)), Grads(), (c_double * 2)(9, 9)
                index = (c_int32 * 2)(2, -1)  # the second row is ignored
                targets = labels(index)
                self.assertEqual((targets.label_smoothing, targets.grad_scale), (0.0, 1.0))
                targets.label_smoothing, targets.grad_scale = smoothing, grad_scale
                shape = make_rows(2, cols)
                shape.scale = scale
                grads = [byref(gp)] if name == "multimax" else []
                call = function("mmax_%s_loss_%s" % (name, suffix), c_int, POINTER(c_double), real,
                                *[POINTER(Grads)] * len(grads), real, *EXTRA.get(name, []), Targets, Shape)
                self.assertEqual(call(out, gx, *grads, array(*x, *x), *as_arguments(name, extra), targets, shape), OK)
                tolerance = 5e-6 if kind is c_float else 1e-8
                self.close(out, [value(x), 0.0], tolerance, "%s_loss_%s" % (name, suffix))
                self.close(gx, want + [0.0] * cols, tolerance, "%s_loss_%s gx" % (name, suffix))
                self.close([*gp.t_b, *gp.t_d, *gp.b, *gp.d][:len(want_params)], want_params, tolerance,
                           "%s_loss_%s gp" % (name, suffix))

    def test_attention(self):
        """Two heads of two rows, with scales, a bias that repeats, slopes, sinks, a finite mask and starts."""
        rows, cols = 4, 5
        scales, slopes, sinks, starts = [0.7, 1.9], [-0.5, 1.25], [0.3, -INF], [0, 2, 1, 5]
        for suffix, (kind, tolerance) in TYPES.items():
            real, array = POINTER(kind), kind * (rows * cols)
            x = array(*[self.random.gauss(0, 2) for _ in range(rows * cols)])
            bias = (kind * (2 * cols))(*[self.random.gauss(0, 2) for _ in range(2 * cols)])
            gy = array(*[self.random.gauss(0, 1) for _ in range(rows * cols)])
            x[1], bias[4] = -1e9, -INF
            y, gx, lse = array(), array(), (c_double * rows)()
            attention = Attention(2, (c_double * 2)(*scales), ctypes.cast(bias, c_void_p), 2, 0,
                                  (c_double * 2)(*slopes), (c_double * 2)(*sinks), -1e9)
            shape = make_rows(rows, cols)
            shape.attention = ctypes.pointer(attention)
            shape.starts = (c_uint32 * rows)(*starts)

            def row(r, sinks=sinks, scales=scales):
                """Weights by entry, and the log of their sum with the sink."""
                s = {i: scales[r // 2] * x[r * cols + i] + slopes[r // 2] * bias[r % 2 * cols + i]
                     for i in range(starts[r], cols)
                     if x[r * cols + i] > -1e9 and bias[r % 2 * cols + i] > -INF}
                total = math.fsum([math.exp(v) for v in s.values()] + [math.exp(sinks[r // 2])])
                weights = [math.exp(s[i]) / total if i in s else 0.0 for i in range(cols)]
                return weights, math.log(total) if total > 0 else -INF

            def value(**changed):
                return math.fsum(g * v for r in range(rows) for g, v in zip(gy[r * cols:], row(r, **changed)[0]))

            call = function("mmax_softmax_lse_" + suffix, c_int, real, POINTER(c_double), real, Shape)
            self.assertEqual(call(y, lse, x, shape), OK)
            self.close(y, [v for r in range(rows) for v in row(r)[0]], tolerance, "attention " + suffix)
            self.close(lse, [row(r)[1] for r in range(rows)], tolerance, "log-sum-exp " + suffix)
            self.assertEqual(backward("softmax", suffix, gx, None, gy, y, None, None, shape), OK)
            head = function("mmax_scale_gradient_" + suffix, c_int, POINTER(c_double), real, real, Shape)
            sink = function("mmax_sink_gradient_" + suffix, c_int, POINTER(c_double), real, real, POINTER(c_double), Shape)
            got = [(c_double * 2)(), (c_double * 2)()]
            self.assertEqual(head(got[0], gx, x, shape), OK)
            self.assertEqual(sink(got[1], gy, y, lse, shape), OK)
            want = [self.difference(lambda v: value(scales=[v, 1.9]), 0.7),
                    self.difference(lambda v: value(scales=[0.7, v]), 1.9),
                    self.difference(lambda v: value(sinks=[v, -INF]), 0.3), 0.0]
            self.close([*got[0], *got[1]], want, 5e-6 if kind is c_float else 1e-8, "gradients a head " + suffix)
            self.assertEqual(forward("sparsemax", suffix, y, x, None, shape), ERR_ATTENTION)  # it has no sinks
            attention.masked = 1.0
            self.assertEqual(forward("softmax", suffix, y, x, None, shape), ERR_ATTENTION)

    def check_gradients(self, name, suffix, x, gy, parameter, phi, inputs):
        """y, gx and the gradient of the parameter, if there is one, of a function that Python knows as phi(s, parameter)."""
        kind, tolerance = TYPES[suffix]
        real, array, scale = POINTER(kind), kind * len(x), 0.8
        extra, grads = ([c_double], [POINTER(c_double)]) if parameter else ([], [])
        y, gx, gradient, shape = array(), array(), c_double(), make_row(len(x))
        shape.scale = scale
        there = function("mmax_%s_%s" % (name, suffix), c_int, real, real, *extra, Shape)
        back = function("mmax_%s_backward_%s" % (name, suffix), c_int, real, *grads, *[real] * inputs, *extra, Shape)
        given, row = [parameter] if parameter else [], lambda v, p: phi([scale * u for u in v], p)
        value = lambda v, p: math.fsum(g * u for g, u in zip(gy, row(v, p)))
        self.assertEqual(there(y, array(*x), *given, shape), OK)
        self.close(y, row(x, parameter), tolerance, name)
        arrays = [array(*gy), y, array(*x)][:inputs]
        self.assertEqual(back(gx, *[byref(gradient) for _ in given], *arrays, *given, shape), OK)
        tolerance = 5e-6 if kind is c_float else 1e-8
        self.close(gx, [self.difference(lambda v, i=i: value(x[:i] + [v] + x[i + 1:], parameter), x[i])
                        for i in range(len(x))], tolerance, name + " gx")
        if parameter:
            want = self.difference(lambda v: value(x, v), parameter)
            self.close([gradient.value], [want], tolerance, name + ", gradient of the parameter")

    def test_more_functions(self):
        x, gy = [2.0, 1.5, -0.25, 1.0, -3.0], [0.5, -1.0, 2.0, 0.25, 1.0]
        sigsoftmax = lambda s, _: softmax([v - math.log1p(math.exp(-v)) for v in s])

        def hourglass(s, q):
            return sparsemax([v * (1 + len(s) * q) / (abs(math.fsum(s)) + len(s) * q) for v in s])

        for suffix in TYPES:
            self.check_gradients("entmax", suffix, x, gy, 1.25, entmax, 2)
            self.check_gradients("sigsoftmax", suffix, x, gy, None, sigsoftmax, 3)
            self.check_gradients("sparsehourglass", suffix, x, gy, 0.5, hourglass, 3)

    def test_selection_loss_and_noise(self):
        for suffix, (kind, tolerance) in TYPES.items():
            real, index, shape = POINTER(kind), POINTER(c_uint32), make_rows(2, 4)
            x, y = (kind * 8)(1, 3, 2, 3, 0, -INF, -INF, -INF), (kind * 8)()
            topk = function("mmax_topk_" + suffix, c_int, real, real, c_size_t, Shape)
            self.assertEqual(topk(y, x, 2, shape), OK)
            self.assertEqual(list(y), [0, 0.5, 0, 0.5, 1, 0, 0, 0])
            route = function("mmax_route_" + suffix, c_int, real, index, real, POINTER(Router), Shape)
            router = Router(k=2, gate=1)
            weights, places = (kind * 4)(), (c_uint32 * 4)()
            self.assertEqual(route(weights, places, x, byref(router), shape), OK)
            self.close(weights, softmax(x[:4])[1:4:2] + [1, 0], tolerance, "route")
            self.assertEqual(list(places), [1, 3, 0, 2 ** 32 - 1])
            back = function("mmax_route_backward_" + suffix, c_int, real, real, real, index, real, POINTER(Router), Shape)
            gx = (kind * 8)()
            self.assertEqual(back(gx, (kind * 4)(1, -1, 2, 5), weights, places, x, byref(router), shape), OK)
            p = softmax(x[:4])
            mean = p[1] - p[3]
            self.close(gx, [-p[0] * mean, p[1] * (1 - mean), -p[2] * mean, p[3] * (-1 - mean), 0, 0, 0, 0], tolerance, "route gx")
            out, gx, s, classes = (c_double * 1)(), (kind * 4)(), [1.0, 0.5, -0.25, 0.0], (c_int32 * 1)(2)
            call = function("mmax_entmax_loss_" + suffix, c_int, POINTER(c_double), real, real, c_double, Targets, Shape)
            self.assertEqual(call(out, gx, (kind * 4)(*s), 1.25, labels(classes), make_row(4)), OK)
            p, omega = entmax(s, 1.25), lambda p: (math.fsum(v ** 1.25 for v in p) - 1) / (1.25 * 0.25)
            self.close(out, [math.fsum(a * b for a, b in zip(p, s)) - omega(p) - s[2]], 10 * tolerance, "entmax_loss")
            self.close(gx, [v - (i == 2) for i, v in enumerate(p)], tolerance, "entmax_loss gx")
            noise = function("mmax_gumbel_" + suffix, c_int, real, c_uint64, c_uint64, Shape)
            last = (kind * 4)()
            self.assertEqual(noise(y, 2 ** 63 + 7, 2 ** 64 - 1, shape), OK)
            self.assertEqual(noise(last, 2 ** 63 + 7, 0, make_row(4)), OK)  # rows count modulo 2^64
            self.assertEqual(list(y)[4:], list(last))
            self.assertTrue(len(set(y)) == 8 and all(-4 < v < 40 for v in y))

    def test_softcap(self):
        for suffix, (kind, tolerance) in TYPES.items():
            real, array = POINTER(kind), kind * 4
            x, gy, y, gx = array(-3, 0.5, 40, -INF), array(1, -2, 0.5, 7), array(), array()
            there = function("mmax_softcap_" + suffix, c_int, real, real, c_double, Shape)
            back = function("mmax_softcap_backward_" + suffix, c_int, real, real, real, c_double, Shape)
            self.assertEqual(there(y, x, 5.0, make_row(4)), OK)
            self.close(y, [5 * math.tanh(v / 5) for v in x[:3]] + [-INF], tolerance, "softcap " + suffix)
            self.assertEqual(back(gx, gy, y, 5.0, make_row(4)), OK)
            self.close(gx, [g / math.cosh(v / 5) ** 2 for g, v in zip(gy[:3], x)] + [0.0], tolerance, "its gradient")
            self.assertEqual(there(y, x, 0.0, make_row(4)), ERR_PARAM)

    def test_weights_and_distributions(self):
        for suffix, (kind, tolerance) in TYPES.items():
            real, array = POINTER(kind), kind * 6
            x = array(*[self.random.gauss(0, 1) for _ in range(6)])
            q = array(0.5, 0.25, 0.25, 0, 1, 0)
            gx, out = array(), (c_double * 2)()
            targets = distributions(ctypes.cast(q, c_void_p))
            self.assertEqual((bool(targets.index), targets.grad_scale), (False, 1.0))
            targets.weights = (c_double * 2)(3.0, 0.5)
            call = function("mmax_softmax_loss_" + suffix, c_int, POINTER(c_double), real, real, Targets, Shape)
            self.assertEqual(call(out, gx, x, targets, make_rows(2, 3)), OK)
            y = [softmax(x[:3]), softmax(x[3:])]
            self.close(out, [3 * loss("softmax", x[:3], q[:3], None), -0.5 * math.log(y[1][1])], 10 * tolerance, "losses")
            self.close(gx, [3 * (v - t) for v, t in zip(y[0], q)] + [0.5 * (v - t) for v, t in zip(y[1], q[3:])],
                       10 * tolerance, "their gradients")
            targets.index = (c_int32 * 2)(0, 1)
            self.assertEqual(call(out, gx, x, targets, make_rows(2, 3)), ERR_TARGETS)

    def test_metrics(self):
        cols = 41
        for suffix, (kind, tolerance) in TYPES.items():
            array = kind * cols
            x = array(*[self.random.gauss(0, 2) for _ in range(cols)])
            y, out = array(), c_double()
            self.assertEqual(forward("multimax", suffix, y, x, some_params(2), make_row(cols)), OK)
            real = POINTER(kind)
            modes = function("mmax_multimodality_" + suffix, c_int, POINTER(c_double), real, real, c_double, Shape)
            sparse = function("mmax_sparsity_" + suffix, c_int, POINTER(c_double), real, real, c_double, c_double, Shape)
            top = max(x)
            y_top = y[list(x).index(top)]
            relevant = [y_top - v for v, u in zip(y, x) if 0.5 < u < top]
            self.assertEqual(modes(byref(out), y, x, 0.5, make_row(cols)), OK)
            self.close([out.value], [1 - math.fsum(relevant) / len(relevant)], tolerance, "multimodality")
            for reference in (0.01, 0.0):
                least = reference or min(softmax(list(x)))
                terms = [math.exp(-v / least) for v, u in zip(y, x) if u < -0.5]
                self.assertEqual(sparse(byref(out), y, x, -0.5, reference, make_row(cols)), OK)
                self.close([out.value], [math.fsum(terms) / len(terms)], 100 * tolerance, "sparsity")

    def test_errors(self):
        x = (c_float * 4)(1, 2, 3, 4)
        y = (c_float * 4)(9, 9, 9, 9)
        short = make_rows(2, 2)
        short.x_stride = 1
        negative = make_row(4)
        negative.scale = -1.0
        for name, extra in cases():
            call = lambda y, x, shape: forward(name, "f32", y, x, extra, shape)
            self.assertEqual(call(None, x, make_row(4)), ERR_NULL)
            self.assertEqual(call(y, None, make_row(4)), ERR_NULL)
            self.assertEqual(call(y, x, short), ERR_SHAPE)
            self.assertEqual(call(y, x, negative), ERR_SCALE)
            self.assertEqual(call(None, None, make_rows(0, 4)), OK)
        self.assertEqual(forward("evsoftmax", "f32", y, x, 2.0, make_row(4)), ERR_PARAM)
        self.assertEqual(list(y), [9.0] * 4)
        messages = {status_string(s) for s in range(OK, ERR_ATTENTION + 1)}
        self.assertEqual(len(messages), 9)
        self.assertTrue(all(messages) and status_string(1234))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=2)
