#!/usr/bin/env python3
"""report.py RESULTS.json ... [INCLUDE_DIR]: writes report.md and its charts beside the first file.

bench writes these files with --benchmark_out, one file per process. In the last process oneDNN is limited to AVX2. A ratio
compares figures of one file. With the directory of multimax.h the report also has the header's weight: this takes one or
two minutes.
"""
import json
import math
import os
import shutil
import subprocess
import sys

import dots
import weight

LIMITS = ("copy", "max-copy")
SHORT = 512  # the longest row of the calls on one row
LONGEST = 32000  # the longest row whose error is shown
BY_HAND = "loop-fast-math"
PEERS = ("multimax-avx2", "loop-fast-math", "loop-O2", "onednn", "xnnpack", "torch", "sleef")  # as plot.gp's colours
INTRODUCTION = """All benchmarks run on one thread. Lower is better in every chart and table of times. A figure is the median of nine
repetitions; the repetitions of all benchmarks alternate in one process. Error bars in the charts are quartiles. The
tables name a row FUNCTION / BY:

- `multimax-ISA` is multimax.h in shared mode with this instruction set.
- `loop-O2` and `loop-fast-math` are loops written by hand (`peer_loops.c`), compiled with -O2 and with -O3 -march=native
  -ffast-math. The second one has an exponential of 2 to 4 ULP, and handles no masks and no NaN.
- `onednn`, `xnnpack`, `torch`, `sleef` are these libraries (SLEEF: a loop around its exponential). `sort` finds the
  threshold of sparsemax and entmax15 by sorting, `condat` by Condat's projection onto the simplex (2016); `heap` and
  `quickselect` find the k largest, `qsort` sorts before it draws a sample.
- `multimax1` and `multimax2` are MultiMax of order 1 and 2. `entmax_120`, `_125` and `_175` have alpha 1.2, 1.25 and
  1.75. `topk` keeps 8 entries, `route` chooses 8 (a router of experts), `truncate` and `sample` have top_p 0.9.
  `softmax_lengths` has `ends` of half to all of the columns. `_calls` makes one call for each row, `_few` one for four.
- `limit` is the memory traffic of the work without its arithmetic. `copy` copies the rows. `max-copy` reads each row for
  its maximum, then copies it. `two-reads-one-write` adds two arrays. Code that moves this data cannot be faster.
- `max ULP` is the largest error of an entry in some rows of up to 32,000 entries, in units of its last place. The ULP of
  MultiMax include the rounding of sigma, whose terms are large here. Errors of gradients are in roundings of the terms
  whose sum a gradient is.
"""
LENGTHS = (8, 16, 64, 256, 1024, 4096, 32000)  # columns of the summary, and the shapes behind them
MANY_ROWS = ("8192x8", "4096x16", "4096x64", "1024x256", "256x1024", "64x4096", "8x32000")
GRADIENTS = ("4096x8", "2048x16", "512x64", "128x256", "32x1024", "8x4096", "8x32000")
CALLS = ("softmax", "multimax1", "multimax2", "sparsemax", "entmax15", "evsoftmax", "tanhmax", "log_softmax", "route",
         "topk")
GRADIENT = ("softmax", "multimax1", "multimax2", "sparsemax", "entmax15", "tanhmax", "log_softmax")
LOSS = ("softmax", "multimax2", "sparsemax", "entmax15")
FORWARD = ("multimax2", "multimax1", "sparsemax", "entmax15", "evsoftmax", "tanhmax", "topk", "route", "entmax_120",
           "entmax_125", "entmax_175", "seglu", "log_softmax", "log_multimax2", "softmax_lengths")


class Run:
    """The results of one file by (function with type, by, shape, spread): medians and quartiles."""

    def __init__(self, path):
        with open(path) as file:
            content = json.load(file)
        self.context = content["context"]
        self.rows, self.low, self.high = {}, {}, {}
        self.failed = set()
        for row in content["benchmarks"]:
            key = tuple(row["run_name"].split("/")[:4])
            if row.get("error_occurred"):
                self.failed.add(f"{'/'.join(key)}: {row['error_message']}")
            else:
                kind = row.get("aggregate_name", "median")
                for name, rows in (("median", self.rows), ("low", self.low), ("high", self.high)):
                    if kind == name:
                        rows[key] = row

    def ns(self, function, by, shape, spread="sd4"):
        row = self.rows.get((function, by, shape, spread))
        return row and row["ns_per_entry"]

    def point(self, function, by, shape, rows=0):
        """Row length, and the median and quartiles of ns per entry or, with rows, per row."""
        key, factor = (function, by, shape, "sd4"), columns(shape) if rows else 1
        times = [found.get(key, self.rows[key])["ns_per_entry"] * factor for found in (self.rows, self.low, self.high)]
        return (columns(shape), *times)

    def curve(self, function, by, shapes, rows=0):
        return [self.point(function, by, shape, rows) for shape in shapes if self.ns(function, by, shape)]

    def names(self, part, **wanted):
        """The values of one part of the names, in order of appearance, where the other parts are as wanted."""
        parts = ("function", "by", "shape", "spread")
        found = [key[parts.index(part)] for key in self.rows
                 if all(key[parts.index(p)] == value for p, value in wanted.items())]
        return list(dict.fromkeys(found))

    def shapes(self, **wanted):
        """Sorted by row length, without the calls on one row."""
        return sorted((shape for shape in self.names("shape", **wanted) if not is_call(shape)),
                      key=lambda shape: (columns(shape), shape))

    def accuracy(self, function, by, spread="sd"):
        """Largest error and largest abs(sum - 1) over spreads and rows of up to LONGEST entries."""
        rows = [row for key, row in self.rows.items()
                if key[:2] == (function, by) and columns(key[2]) <= LONGEST and key[3].startswith(spread)]
        return tuple(max((row[name] for row in rows if name in row), default=None) for name in ("max_ulp", "sum_error"))


def columns(shape):
    return int(shape.split("x")[1])


def is_call(shape):
    return shape.startswith("1x") and columns(shape) <= SHORT


def number(value):
    """Three digits."""
    return "" if value is None else f"{value:.{3 if value < 1 else 2 if value < 10 else 1 if value < 100 else 0}f}"


def short(length):
    """A length as a label: 256, 4k, 1M."""
    return f"{length >> 20}M" if length >= 1 << 20 else f"{(length + 512) >> 10}k" if length > 1000 else str(length)


def small(value):
    return "" if value is None else f"{value:.2g}" if value < 1000 else f"{value:,.0f}"


def ratio(a, b):
    return f"{a / b:.{2 if a / b > 0.1 else 3}f}" if a and b else ""


def table(title, head, rows):
    rows = [row for row in rows if any(row[1:])]
    if not rows:
        return []
    filled = [0] + [i for i in range(1, len(head)) if any(row[i] for row in rows)]
    lines = ["| " + " | ".join(str(row[i]) for i in filled) + " |" for row in [head] + rows]
    lines.insert(1, "| --- |" + " ---: |" * (len(filled) - 1))
    return [f"## {title}", ""] + lines + [""]


def functions(run, own, ending):
    names = [function + ending for function in ("softmax",) + FORWARD]
    return [name for name in names if name in run.names("function", by=own)]


def in_order(run, own, **wanted):
    """The names of those who compute a function: this library first, then in alphabetical order."""
    return sorted(run.names("by", **wanted), key=lambda by: (by != own, not by.startswith("multimax"), by))


def summary_table(run, own):
    """The table of the README: this library beside the loop and oneDNN, bold where the loop is ahead."""
    def row(title, bys, value):
        cells = []
        for i in range(len(LENGTHS)):
            times = [value(by, i) for by in bys]
            cell = [f"{time:.{2 if time < 10 else 0}f}" for time in times if time]
            if len(times) > 1 and times[0] and times[1] and times[1] < times[0]:
                cell[0] = f"**{cell[0]}**"
            cells.append(" / ".join(cell) if times[0] else "")
        return [title] + cells

    def one_row(by, i):
        calls, shape = run.ns("softmax_calls_f32", by, f"64x{LENGTHS[i]}"), f"1x{LENGTHS[i]}"
        time = calls or run.ns("softmax_f32", by, shape)
        return time and LENGTHS[i] <= 256 and time * LENGTHS[i]

    many = lambda by, i: run.ns("softmax_f32", by, MANY_ROWS[i])
    rows = [row("one row, ns per call: multimax.h / loop / oneDNN", (own, BY_HAND, "onednn"), one_row),
            row("many rows, ns per entry: multimax.h / loop / oneDNN", (own, BY_HAND, "onednn"), many)]
    if own != PEERS[0]:
        rows.append(row("the same with AVX2: multimax.h", (PEERS[0],), many))
    for name, title in (("backward", "gradient of softmax"), ("loss", "loss and its gradient")):
        rows.append(row(f"{title}, ns per entry: multimax.h / loop", (own, BY_HAND),
                        lambda by, i: run.ns(f"softmax_{name}_f32", by, GRADIENTS[i])))
    return table("Summary (bold: the loop is ahead)", ["entries per row"] + list(LENGTHS), rows)


SHORT_ROWS = ("softmax", "multimax2", "sparsemax", "entmax15", "evsoftmax", "tanhmax")


def call_shapes(run, own):
    return sorted(run.names("shape", function="softmax_calls_f32", by=own), key=columns)


def names_of_calls(ending):
    return ([name + ending for name in CALLS] + [name + "_backward" + ending for name in GRADIENT]
            + [name + "_loss" + ending for name in LOSS])


def call_table(run, own):
    """A peer without calls computes one row again and again."""
    shapes, rows = call_shapes(run, own), []
    times = lambda function, by, shapes: [number(time and time * columns(shape)) for shape in shapes
                                          for time in [run.ns(function, by, shape)]]
    for by in in_order(run, own, function="softmax_calls_f32"):
        rows.append([f"softmax / {by}"] + times("softmax_calls_f32", by, shapes))
    for by in [by for by in in_order(run, own, function="softmax_f32") if run.ns("softmax_f32", by, "1x8")]:
        rows.append([f"softmax / {by}"] + times("softmax_f32", by, [f"1x{columns(shape)}" for shape in shapes]))
    text = table("One row per call, f32: ns per call", ["entries"] + [columns(shape) for shape in shapes], rows)
    for ending, title in (("_calls_f32", "one row per call"), ("_few_f32", "four rows per call")):
        shapes, rows = run.shapes(function="multimax2" + ending, by=own), []
        for name in names_of_calls(ending):
            both = [(run.ns(name, own, shape), run.ns(name, BY_HAND, shape)) for shape in shapes]
            cells = [" / ".join(number(time * columns(shape)) for time in times if time)
                     + (f": {ratio(*times)}" if all(times) else "") for shape, times in zip(shapes, both)]
            rows.append([name[:-len(ending)]] + cells)
        text += table(f"Every function, {title}, f32: ns per row, multimax.h / {BY_HAND}: ratio",
                      ["entries"] + [columns(shape) for shape in shapes], rows)
    return text


def short_shapes(run, own):
    shapes = [shape for shape in run.shapes(function="softmax_f32", by=own, spread="sd4") if columns(shape) <= 64]
    return list({columns(shape): shape for shape in shapes if shape in run.names("shape", function="softmax_f32", by=BY_HAND)
                 and int(shape.split("x")[0]) * columns(shape) <= 65536}.values())


def short_table(run, own):
    shapes, rows = short_shapes(run, own), []
    for function in SHORT_ROWS:
        for by in in_order(run, own, function=function + "_f32"):
            rows.append([f"{function} / {by}"] + [number(run.ns(function + "_f32", by, shape)) for shape in shapes])
    return table("Many short rows in one call, f32, in the second cache: ns per entry", ["rows x cols"] + shapes, rows)


def softmax_tables(run, own):
    shapes = run.shapes(function="limit_f32", by=LIMITS[0], spread="sd4")
    speed = lambda function, by: [number(run.ns(function, by, shape)) for shape in shapes]
    errors = lambda by: [small(value) for value in run.accuracy("softmax_f32", by)]
    bys = in_order(run, own, function="softmax_f32")
    rows = [[by] + speed("softmax_f32", by) + errors(by) for by in bys]
    rows += [[f"limit: {by}"] + speed("limit_f32", by) + ["", ""] for by in LIMITS]
    text = table("softmax f32, N(0, 4²): ns per entry", ["rows x cols"] + shapes + ["max ULP", "abs(sum - 1)"], rows)
    rows = [[by] + [ratio(run.ns("softmax_f32", own, shape), run.ns("softmax_f32", by, shape)) for shape in shapes]
            for by in bys if by != own]
    return text + table(f"softmax f32: {own} as a multiple of the others", ["rows x cols"] + shapes, rows)


def avx2_table(run):
    rows = []
    for shape in run.shapes(function="softmax_f32", by="onednn-avx2"):
        a, b = (run.ns("softmax_f32", by, shape) for by in ("multimax-avx2", "onednn-avx2"))
        rows.append([shape, number(a), number(b), ratio(a, b)])
    return table("softmax f32 on AVX2 against oneDNN limited to AVX2",
                 ["rows x cols", "multimax-avx2", "onednn-avx2", "ratio"], rows)


def function_tables(run, own):
    shapes = run.shapes(function="multimax2_f32", by=own)
    rows, ratios = [], []
    for function in ("softmax",) + FORWARD:
        name = function + "_f32"
        rows.append([function] + [number(run.ns(name, own, shape)) for shape in shapes]
                    + [small(value) for value in run.accuracy(name, own)])
        for spread in ("sd4", "sd1") if function in ("sparsemax", "entmax15") else ("sd4",):
            title = function + (" N(0, 1)" if spread == "sd1" else "")
            softmax = lambda shape: run.ns("softmax_f32", own, shape, spread) or run.ns("softmax_f32", own, shape)
            ratios.append([title] + [ratio(run.ns(name, own, shape, spread), softmax(shape)) for shape in shapes])
    text = table(f"Every function, f32, N(0, 4²), {own}: ns per entry",
                 ["rows x cols"] + shapes + ["max ULP", "abs(sum - 1)"], rows)
    text += table("Every function: time as a multiple of softmax", ["rows x cols"] + shapes, ratios[1:])
    rows = []
    for function in [function for function in FORWARD if function.startswith(("sparsemax", "entmax"))]:
        name = function + "_f32"
        for by in [by for by in run.names("by", function=name) if not by.startswith("multimax")]:
            for spread in ("sd4", "sd1"):
                logits = "N(0, 1)" if spread == "sd1" else "N(0, 4²)"
                rows.append([f"{function} / {by}, {logits}"]
                            + [ratio(run.ns(name, own, shape, spread), run.ns(name, by, shape, spread))
                               for shape in shapes])
    text += table("Threshold functions: time as a multiple of the peers", ["rows x cols"] + shapes, rows)
    rows = [[function] + [ratio(run.ns(function + "_f32", own, shape, "sd30"), run.ns(function + "_f32", own, shape))
                          for shape in shapes] for function in ("softmax",) + FORWARD]
    text += table("Sharp rows, N(0, 30²): time as a multiple of N(0, 4²)", ["rows x cols"] + shapes, rows)
    rows = [[function] + [ratio(run.ns(function + "_f64", own, shape), run.ns(function + "_f32", own, shape)) for shape in shapes]
            for function in ("softmax",) + FORWARD]
    text += table("f64: time as a multiple of f32", ["rows x cols"] + shapes, rows)
    tail = ratio(run.ns("softmax_f32", own, "16384x63"), run.ns("softmax_f32", own, "4096x64"))
    return text + ([f"Rows of 63 entries take {tail} times as long per entry as rows of 64 (softmax f32).", ""] if tail else [])


def topk_table(run, own):
    shapes = run.shapes(function="topk_f32", by=own)
    rows = []
    for name in ("topk_f32", "route_f32"):
        bys = [("softmax_f32", own)] + [(name, by) for by in run.names("by", function=name)
                                        if not by.startswith("multimax")]
        for function, by in bys:
            rows.append([f"{name[:-4]} / {'softmax' if by == own else by}"]
                        + [ratio(run.ns(name, own, shape), run.ns(function, by, shape)) for shape in shapes])
    return table("topk, k = 8, f32: time as a multiple of softmax and of the peers", ["rows x cols"] + shapes, rows)


def attention_table(run, own):
    shapes = run.shapes(function="attention_bias_f32", by=own)
    rows = []
    for name in ("attention_bias_f32", "attention_starts_f32", "attention_masked_f32", "attention_sinks_f32"):
        for by in in_order(run, own, function=name):
            softmax = by if by.startswith("multimax") else own
            rows.append([f"{name[10:-4]} / {by}"]
                        + [ratio(run.ns(name, by, shape), run.ns("softmax_f32", softmax, shape)) for shape in shapes])
    return table("softmax with attention inputs, f32: time as a multiple of softmax without", ["rows x cols"] + shapes, rows)


def axis_table(run, own):
    shapes = run.shapes(function="softmax_axis_f32", by=own)
    rows = []
    for name in ("softmax_axis_f32", "sparsemax_axis_f32", "softmax_backward_axis_f32", "softmax_loss_axis_f32"):
        for by in in_order(run, own, function=name):
            rows.append([f"{name[:-9]} / {by}"] + [number(run.ns(name, by, shape)) for shape in shapes])
    return table("Interleaved rows (the first axis of cols x rows), f32: ns per entry", ["rows x cols"] + shapes, rows)


def backward_tables(run, own):
    shapes = run.shapes(function="limit_f32", by="two-reads-one-write")
    limit = lambda shape: run.ns("limit_f32", "two-reads-one-write", shape)
    names = functions(run, own, "_backward_f32")
    rows, ratios = [["limit: two reads, one write"] + [number(limit(shape)) for shape in shapes] + [""]], []
    for name in names:
        for by in in_order(run, own, function=name):
            rows.append([f"{name[:-4]} / {by}"] + [number(run.ns(name, by, shape)) for shape in shapes]
                        + [small(run.accuracy(name, by)[0])])
        softmax = name.startswith("softmax")
        below = limit if softmax else lambda shape: run.ns("softmax_backward_f32", own, shape)
        ratios.append([name[:-4] + (" / limit" if softmax else " / softmax backward")]
                      + [ratio(run.ns(name, own, shape), below(shape)) for shape in shapes])
    text = table("Backward, f32, in the second cache: ns per entry", ["rows x cols"] + shapes + ["max error, roundings"], rows)
    text += table("Backward: time as a multiple", ["rows x cols"] + shapes, ratios)
    names = functions(run, own, "_loss_f32")
    shapes = run.shapes(function="softmax_loss_f32", by=own)
    rows = [[f"{name[:-4]} / {by}"] + [number(run.ns(name, by, shape)) for shape in shapes]
            + [small(run.accuracy(name, by)[0])] for name in names for by in in_order(run, own, function=name)]
    text += table("Loss and gradient in one call, f32: ns per entry",
                  ["rows x cols"] + shapes + ["max error, roundings"], rows)
    rows = []
    for ending in ("_loss", "_loss_gx", "_loss_alone"):
        for name in functions(run, own, ending + "_f32"):
            forward = "multimax2_f32" if name.startswith("multimax2") else "softmax_f32"
            rows.append([f"{name[:-4]} / {forward[:-4]}"]
                        + [ratio(run.ns(name, own, shape), run.ns(forward, own, shape)) for shape in shapes])
    return text + table("Losses: time as a multiple of forward (_gx: without the gradient of MultiMax's parameters; _alone: no gradient)",
                        ["rows x cols"] + shapes, rows)


def gradient_sizes_table(run, own):
    """Gradients below the normal numbers are 0. They must cost no more than others."""
    rows = []
    for ending, shape in (("_backward_f32", "256x1024"), ("_loss_f32", "64x4096")):
        for name in functions(run, own, ending):
            usual = run.ns(name, own, shape)
            rows.append([f"{name[:-4]} {shape}", number(usual)]
                        + [ratio(run.ns(name, own, shape, spread), usual)
                           for spread in ("sd30", "sd30-g1e-4", "sd30-g1e-8")])
    return table("Gradients of sharp rows, f32: N(0, 30²) with gy or grad_scale of 1, 1e-4, 1e-8 as a multiple of N(0, 4²)",
                 ["", "N(0, 4²), ns per entry", "1", "1e-4", "1e-8"], rows)


def spread_out(heights, gap):
    """Heights of labels, in logarithms: as close to the wanted heights as a gap between any two labels allows."""
    placed = []
    for i in sorted(range(len(heights)), key=lambda i: heights[i]):
        placed.append((i, max(heights[i], placed[-1][1] + gap) if placed else heights[i]))
    excess = max((height - heights[i] for i, height in placed), default=0) / 2
    return [height - excess for _, height in sorted(placed)]


def chart(run, directory, name, title, ylabel, curves, limits=0):
    """Writes NAME.svg and returns the Markdown that shows it. Curves are (name, points); the first `limits` are limits."""
    curves = [(label, points) for label, points in curves if points]
    gnuplot = shutil.which("gnuplot")
    if not gnuplot or len(curves) <= limits:
        return []
    times = [math.log(time) for _, points in curves for point in points for time in point[1:]]
    low, high = math.exp(min(times) - 0.2), math.exp(max(times) + 0.2)
    heights = spread_out([math.log(points[-1][1]) for _, points in curves], math.log(high / low) / 22)
    data, labels, out = (os.path.join(directory, name + ending) for ending in (".dat", ".labels", ".svg"))
    colours = [PEERS.index(label) + 2 if label in PEERS else 0 if i < limits else 1 for i, (label, _) in enumerate(curves)]
    left, right = min(points[0][0] for _, points in curves), max(points[-1][0] for _, points in curves)
    lengths = sorted({point[0] for _, points in curves for point in points})
    lengths = [n for i, n in enumerate(lengths) if i == 0 or n > 1.15 * lengths[i - 1]]
    wide = len(lengths) < 8  # room for the label of each tick
    marked = ",".join(f'"{short(n) if wide or i != 1 else ""}" {n}' for i, n in enumerate(lengths))
    note = f'set label "in memory" at {right}, graph 0.04 right tc rgb "#606060";' if right > 1 << 20 else ""
    ranges = f"set xtics ({marked}); {note} set xrange [{left * 0.85}:{right * 1.02}]; set yrange [{low}:{high}];"
    with open(data, "w") as file:
        file.write("\n\n".join("".join(" ".join(f"{value:.5g}" for value in point) + "\n" for point in points)
                               for _, points in curves))
    with open(labels, "w") as file:
        for i, ((label, _), height) in enumerate(zip(curves, heights)):
            file.write(f'{right} {math.exp(height):.5g} {colours[i]} "{label}"\n')
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "plot.gp")
    variables = {"data": data, "labels": labels, "out": out, "title": title, "ylabel": ylabel + " (lower is better)",
                 "colours": " ".join(map(str, colours))}
    settings = "".join("{}='{}';".format(key, value.replace("'", "''")) for key, value in variables.items())
    subprocess.run([gnuplot, "-e", f"{settings}{ranges}right={right};curves={len(curves)}", script], check=True)
    return [f"![{title}]({name}.svg)", ""]


def charts(run, own, directory):
    on = f"one thread of {run.context.get('processor', 'an unknown processor')}"
    shapes = [shape for shape in run.shapes(function="limit_f32", by=LIMITS[0], spread="sd4") if columns(shape) != 63]
    bys = [by for by in in_order(run, own, function="softmax_f32") if not by.startswith("multimax") or by in (own, PEERS[0])]
    text = chart(run, directory, "softmax", f"softmax f32, {on}", "ns per entry",
                 [("limit: " + by, run.curve("limit_f32", by, shapes)) for by in LIMITS]
                 + [(by, run.curve("softmax_f32", by, shapes)) for by in bys], len(LIMITS))
    shapes = call_shapes(run, own)
    single = [f"1x{columns(shape)}" for shape in shapes]
    text += chart(run, directory, "one-row", f"softmax f32, one row per call, {on}", "ns per call",
                  [(by, run.curve("softmax_calls_f32", by, shapes, rows=1)) for by in in_order(run, own, function="softmax_calls_f32")]
                  + [(by, run.curve("softmax_f32", by, single, rows=1)) for by in bys if run.ns("softmax_f32", by, single[0] if single else "")])
    shapes = short_shapes(run, own)
    text += chart(run, directory, "short-rows", f"softmax f32, many short rows, {on}", "ns per entry",
                  [(by, run.curve("softmax_f32", by, shapes)) for by in bys])
    for name, title in (("backward", "gradient of softmax"), ("loss", "loss of softmax and its gradient")):
        function = f"softmax_{name}_f32"
        shapes = [shape for shape in run.shapes(function=function, by=own, spread="sd4") if shape in
                  run.shapes(function=function, by=BY_HAND, spread="sd4")]
        limits = [("limit: two reads, one write", run.curve("limit_f32", "two-reads-one-write", shapes))] if name == "backward" else []
        limits = [limit for limit in limits if limit[1]]
        text += chart(run, directory, name, f"{title}, f32, {on}", "ns per entry", limits
                      + [(by, run.curve(function, by, shapes)) for by in in_order(run, own, function=function)], len(limits))
    shapes = run.shapes(function="softmax_axis_f32", by=own)
    return text + chart(run, directory, "axis", f"softmax f32, interleaved rows, {on}", "ns per entry",
                        [(by, run.curve("softmax_axis_f32", by, shapes)) for by in in_order(run, own, function="softmax_axis_f32")])


OURS, LOOP = ("multimax.h", "circle", "#1f83d0"), ("loop", "square", "#d55e00")
PEER = ("oneDNN", "diamond", "#7a7a7a")
TITLES = {"softmax": "SoftMax", "multimax1": "MultiMax, order 1", "multimax2": "MultiMax, order 2", "sparsemax": "SparseMax",
          "entmax15": "EntMax-1.5", "evsoftmax": "EvSoftMax", "tanhmax": "TanhMax", "log_softmax": "log SoftMax",
          "route": "router, k = 8", "topk": "top-k, k = 8"}


def speed_chart(run, own, directory):
    """The chart of the README: every function beside the loop and oneDNN, one row and many."""
    def entry(name, by):
        peer = f"1x{ONE}" if by == "onednn" else f"64x{ONE}"
        single = run.ns(name + ("_f32" if by == "onednn" else "_calls_f32"), by, peer)
        many = next((time for shape in MANY for time in [run.ns(name + "_f32", by, shape)] if time), None)
        return single and single * ONE, many

    names, one, many = [], [], []
    for heading, group, ending in (("weights", CALLS[:-1], ""), ("gradients", GRADIENT, "_backward"),
                                   ("losses with gradient", LOSS, "_loss")):
        names.append(heading)
        one.append([]), many.append([])
        for name in group:
            times = [entry(name + ending, by) for by in (own, BY_HAND, "onednn")]
            if times[0][0]:
                names.append(TITLES[name])
                one.append([time[0] for time in times])
                many.append([time[1] for time in times])
    if len(names) == 3:
        return []
    dots.draw(os.path.join(directory, "speed.svg"), f"Time on one core of {run.context['processor']}; floats, lower is better",
              names, (OURS, LOOP, PEER),
              ((f"one row of {ONE} entries, ns per call", one), ("rows of 1,024 entries, ns per entry", many)), race=True)
    return ["![every function beside the loop and oneDNN](speed.svg)", ""]


ONE, MANY = 64, ("256x1024", "32x1024")  # shapes of the speed chart


def function_charts(run, own, directory):
    shapes, names = ("4096x64", "64x4096"), [name for name in ("softmax",) + FORWARD if run.ns(name + "_f32", own, "4096x64")]
    if not names or not run.ns("softmax_f32", own, shapes[1]):
        return []
    times = [[(run.ns(name + "_f32", own, shape) or 0) / run.ns("softmax_f32", own, shape) for shape in shapes] for name in names]
    errors = [[run.accuracy(name + "_f32", by, "sd4")[0] for by in (own, BY_HAND)] for name in names]
    titles = [TITLES.get(name, name) for name in names]
    dots.draw(os.path.join(directory, "functions.svg"), f"Every function beside softmax ({own})", titles,
              (("rows of 64", "circle", "#1f83d0"), ("rows of 4,096", "square", "#d55e00")),
              (("multiple of the time of softmax", times),))
    known = [(title, error) for title, error in zip(titles, errors) if error[0]]
    dots.draw(os.path.join(directory, "errors.svg"), f"Largest error of an entry, N(0, 4²), rows of up to {LONGEST:,} entries",
              [title for title, _ in known], (OURS, LOOP), (("ULP", [error for _, error in known]),))
    return ["![every function as a multiple of softmax](functions.svg)", "", "![errors in ULP](errors.svg)", ""]


def main(paths):
    if not paths:
        sys.exit(__doc__)
    includes = [path for path in paths if os.path.isdir(path)]
    runs = [Run(path) for path in paths if path not in includes]
    run, directory = runs[0], os.path.dirname(os.path.abspath(paths[0]))
    context = run.context
    own = "multimax-" + context["isa"]
    text = ["# Benchmarks", "",
            f"{context['processor']}, {context['mhz_per_cpu'] / 1000:.2f} GHz; {' '.join(context['compiler'].split())}; "
            f"multimax.h {context['multimax']}; {context['date'][:10]}. ", "", INTRODUCTION]
    if not shutil.which("gnuplot"):
        text += ["This report has no charts, because gnuplot is not installed.", ""]
    text += speed_chart(run, own, directory) + charts(run, own, directory) + function_charts(run, own, directory)
    text += summary_table(run, own) + softmax_tables(run, own) + avx2_table(runs[-1]) + call_table(run, own) + short_table(run, own)
    text += backward_tables(run, own) + axis_table(run, own) + function_tables(run, own) + topk_table(run, own)
    text += attention_table(run, own) + gradient_sizes_table(run, own)
    for include in includes:
        text += table("Weight of including the header: lines, KiB of code and constants, seconds to compile", *weight.measure(include))
    for run in runs:
        text += [f"FAILED {name}\n" for name in sorted(run.failed)]
    path = os.path.join(directory, "report.md")
    with open(path, "w") as file:
        file.write("\n".join(text))
    print(f"the report is {path}")


if __name__ == "__main__":
    main(sys.argv[1:])
