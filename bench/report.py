#!/usr/bin/env python3
"""report.py RESULTS.json ... [INCLUDE_DIR]: writes report.md and softmax.svg beside the first file.

The files are what bench wrote with --benchmark_out, one a process, the last with oneDNN limited to AVX2; ratios are
taken within a file only. With the directory of multimax.h, its weight is measured, too: that takes minutes.
"""
import json
import os
import shutil
import subprocess
import sys

import weight

LIMITS = ("copy", "max-copy")
SHORT = 64  # single rows of up to so many entries: what a call costs
FORWARD = ("multimax2", "multimax1", "sparsemax", "entmax15", "evsoftmax", "tanhmax", "topk", "topk_select", "entmax_120",
           "entmax_125", "entmax_175", "seglu", "log_softmax", "log_multimax2", "softmax_lengths")


class Run:
    """One file: medians by (function with type, by, shape, spread)."""

    def __init__(self, path):
        with open(path) as file:
            content = json.load(file)
        self.context = content["context"]
        self.rows = {}
        self.failed = set()
        for row in content["benchmarks"]:
            key = tuple(row["run_name"].split("/")[:4])
            if row.get("error_occurred"):
                self.failed.add(f"{'/'.join(key)}: {row['error_message']}")
            elif row.get("aggregate_name", "median") == "median":
                self.rows[key] = row

    def ns(self, function, by, shape, spread="sd4"):
        row = self.rows.get((function, by, shape, spread))
        return row and row["ns_per_entry"]

    def names(self, part, **wanted):
        """The values of one part of the names, in order of appearance, where the others are as wanted."""
        parts = ("function", "by", "shape", "spread")
        found = [key[parts.index(part)] for key in self.rows
                 if all(key[parts.index(p)] == value for p, value in wanted.items())]
        return list(dict.fromkeys(found))

    def shapes(self, **wanted):
        """By row length; without the short single rows."""
        return sorted((shape for shape in self.names("shape", **wanted) if not is_call(shape)),
                      key=lambda shape: (columns(shape), shape))

    def accuracy(self, function, by):
        """Largest error and largest abs(sum - 1) over all shapes and spreads."""
        rows = [row for key, row in self.rows.items() if key[:2] == (function, by)]
        return tuple(max((row[name] for row in rows if name in row), default=None) for name in ("max_ulp", "sum_error"))


def columns(shape):
    return int(shape.split("x")[1])


def is_call(shape):
    return shape.startswith("1x") and columns(shape) <= SHORT


def number(value):
    return "" if value is None else f"{value:.3f}" if value < 10 else f"{value:.0f}"


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


def call_table(run, own):
    shapes = sorted(filter(is_call, run.names("shape", function="softmax_f32", by=own)), key=columns)
    rows = []
    for name in ("softmax_f32", "multimax2_f32", "softmax_backward_f32"):
        for by in sorted(run.names("by", function=name), key=lambda by: (by != own, by)):
            times = [(run.ns(name, by, shape) or 0) * columns(shape) for shape in shapes]
            rows.append([f"{name[:-4]} / {by}"] + [f"{ns:.0f}" if ns else "" for ns in times])
    return table("A call on a single row, f32: ns", ["entries"] + [columns(shape) for shape in shapes], rows)


def softmax_tables(run, own):
    shapes = run.shapes(function="limit_f32", by=LIMITS[0], spread="sd4")
    speed = lambda function, by: [number(run.ns(function, by, shape)) for shape in shapes]
    errors = lambda by: [small(value) for value in run.accuracy("softmax_f32", by)]
    bys = sorted(run.names("by", function="softmax_f32"), key=lambda by: (not by.startswith("multimax"), by != own, by))
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
    text += table("As a multiple of softmax", ["rows x cols"] + shapes, ratios[1:])
    rows = []
    for function in [function for function in FORWARD if function.startswith(("sparsemax", "entmax"))]:
        name = function + "_f32"
        for by in [by for by in run.names("by", function=name) if not by.startswith("multimax")]:
            for spread in ("sd4", "sd1"):
                logits = "N(0, 1)" if spread == "sd1" else "N(0, 4²)"
                rows.append([f"{function} / {by}, {logits}"]
                            + [ratio(run.ns(name, own, shape, spread), run.ns(name, by, shape, spread))
                               for shape in shapes])
    text += table("Threshold functions as a multiple of the peers", ["rows x cols"] + shapes, rows)
    rows = [[function] + [ratio(run.ns(function + "_f32", own, shape, "sd30"), run.ns(function + "_f32", own, shape))
                          for shape in shapes] for function in ("softmax",) + FORWARD]
    text += table("N(0, 30²) as a multiple of N(0, 4²)", ["rows x cols"] + shapes, rows)
    rows = [[function] + [ratio(run.ns(function + "_f64", own, shape), run.ns(function + "_f32", own, shape)) for shape in shapes]
            for function in ("softmax",) + FORWARD]
    text += table("f64 as a multiple of f32", ["rows x cols"] + shapes, rows)
    tail = ratio(run.ns("softmax_f32", own, "16384x63"), run.ns("softmax_f32", own, "4096x64"))
    return text + ([f"softmax f32 at 16384x63 as a multiple of 4096x64: {tail}", ""] if tail else [])


def topk_table(run, own):
    shapes = run.shapes(function="topk_f32", by=own)
    rows = []
    for name in ("topk_f32", "topk_select_f32"):
        bys = [("softmax_f32", own)] + [(name, by) for by in run.names("by", function=name)
                                        if not by.startswith("multimax")]
        for function, by in bys:
            rows.append([f"{name[:-4]} / {'softmax' if by == own else by}"]
                        + [ratio(run.ns(name, own, shape), run.ns(function, by, shape)) for shape in shapes])
    return table("topk, k = 8, f32, as a multiple of softmax and of the peers", ["rows x cols"] + shapes, rows)


def attention_table(run, own):
    shapes = run.shapes(function="attention_bias_f32", by=own)
    rows = []
    for name in ("attention_bias_f32", "attention_starts_f32", "attention_masked_f32", "attention_sinks_f32"):
        for by in sorted(run.names("by", function=name), key=lambda by: (by != own, by)):
            softmax = by if by.startswith("multimax") else own
            rows.append([f"{name[10:-4]} / {by}"]
                        + [ratio(run.ns(name, by, shape), run.ns("softmax_f32", softmax, shape)) for shape in shapes])
    return table("softmax with attention, f32, as a multiple of softmax without", ["rows x cols"] + shapes, rows)


def axis_table(run, own):
    shapes = run.shapes(function="softmax_axis_f32", by=own)
    rows = []
    for name in ("softmax_axis_f32", "sparsemax_axis_f32", "softmax_backward_axis_f32", "softmax_loss_axis_f32"):
        for by in sorted(run.names("by", function=name), key=lambda by: (not by.startswith("multimax"), by != own, by)):
            rows.append([f"{name[:-9]} / {by}"] + [number(run.ns(name, by, shape)) for shape in shapes])
    return table("Rows that lie interleaved (the first axis of cols x rows), f32: ns per entry", ["rows x cols"] + shapes, rows)


def backward_tables(run, own):
    shapes = run.shapes(function="limit_f32", by="two-reads-one-write")
    limit = lambda shape: run.ns("limit_f32", "two-reads-one-write", shape)
    names = functions(run, own, "_backward_f32")
    rows, ratios = [["limit: two reads, one write"] + [number(limit(shape)) for shape in shapes] + [""]], []
    for name in names:
        for by in sorted(run.names("by", function=name), key=lambda by: (by != own, by)):
            rows.append([f"{name[:-4]} / {by}"] + [number(run.ns(name, by, shape)) for shape in shapes]
                        + [small(run.accuracy(name, by)[0])])
        softmax = name.startswith("softmax")
        below = limit if softmax else lambda shape: run.ns("softmax_backward_f32", own, shape)
        ratios.append([name[:-4] + (" / limit" if softmax else " / softmax backward")]
                      + [ratio(run.ns(name, own, shape), below(shape)) for shape in shapes])
    text = table("Backward, f32, in L2: ns per entry", ["rows x cols"] + shapes + ["max error, roundings"], rows)
    text += table("Backward: ratios", ["rows x cols"] + shapes, ratios)
    names = functions(run, own, "_loss_f32")
    shapes = run.shapes(function="softmax_loss_f32", by=own)
    rows = [[name[:-4]] + [number(run.ns(name, own, shape)) for shape in shapes] + [small(run.accuracy(name, own)[0])]
            for name in names]
    text += table("Loss and gradient in one call, f32: ns per entry",
                  ["rows x cols"] + shapes + ["max error, roundings"], rows)
    rows = []
    for ending in ("_loss", "_loss_gx", "_loss_alone"):
        for name in functions(run, own, ending + "_f32"):
            forward = "multimax2_f32" if name.startswith("multimax2") else "softmax_f32"
            rows.append([f"{name[:-4]} / {forward[:-4]}"]
                        + [ratio(run.ns(name, own, shape), run.ns(forward, own, shape)) for shape in shapes])
    return text + table("Losses: with gradients (MultiMax: and those of its parameters), with gx only, alone",
                        ["rows x cols"] + shapes, rows)


def gradient_sizes_table(run, own):
    """Gradients that fall below the normal numbers are 0 and cost no more than others."""
    rows = []
    for ending, shape in (("_backward_f32", "256x1024"), ("_loss_f32", "64x4096")):
        for name in functions(run, own, ending):
            usual = run.ns(name, own, shape)
            rows.append([f"{name[:-4]} {shape}", number(usual)]
                        + [ratio(run.ns(name, own, shape, spread), usual)
                           for spread in ("sd30", "sd30-g1e-4", "sd30-g1e-8")])
    return table("Gradients, f32: ns per entry of N(0, 4²), and N(0, 30²) as a multiple, gy or grad_scale of 1, 1e-4, 1e-8",
                 ["", "N(0, 4²)", "1", "1e-4", "1e-8"], rows)


def chart(run, own, directory):
    """Writes softmax.dat and lets gnuplot draw it; in entries per ns."""
    shapes = [shape for shape in run.shapes(function="limit_f32", by=LIMITS[0], spread="sd4") if columns(shape) != 63]
    if not shapes:
        return
    bys = [own] + [by for by in run.names("by", function="softmax_f32")
                   if not by.startswith("multimax-") or by == "multimax-avx2"]
    blocks = []
    limits = [(columns(shape), *(run.ns("limit_f32", by, shape) for by in LIMITS)) for shape in shapes]
    blocks.append(["limit"] + [f"{n} {1 / copy:.4g} {1 / max_copy:.4g}" for n, copy, max_copy in limits
                               if copy and max_copy])
    for by in dict.fromkeys(bys):
        points = [(columns(shape), run.ns("softmax_f32", by, shape)) for shape in shapes]
        blocks.append([by] + [f"{n} {1 / ns:.4g}" for n, ns in points if ns])
    data, out = (os.path.join(directory, name) for name in ("softmax.dat", "softmax.svg"))
    with open(data, "w") as file:
        file.write("\n\n\n".join("\n".join(block) for block in blocks) + "\n")
    gnuplot = shutil.which("gnuplot")
    if not gnuplot:
        print("report.py: no gnuplot, no chart", file=sys.stderr)
        return
    title = f"softmax f32, N(0, 4²), one thread of {run.context.get('processor', 'an unknown processor')}"
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "plot.gp")
    subprocess.run([gnuplot, "-e", f"data='{data}'; out='{out}'; title='{title}'", script], check=True)


def main(paths):
    if not paths:
        sys.exit(__doc__)
    includes = [path for path in paths if os.path.isdir(path)]
    runs = [Run(path) for path in paths if path not in includes]
    run, directory = runs[0], os.path.dirname(os.path.abspath(paths[0]))
    context = run.context
    own = "multimax-" + context["isa"]
    text = ["# Benchmarks", "",
            f"{context['processor']}, {context['mhz_per_cpu'] / 1000:.2f} GHz, one thread; "
            f"{' '.join(context['compiler'].split())}; multimax.h {context['multimax']}; {context['date'][:10]}. "
            "Medians of interleaved repetitions in one process.", ""]
    text += softmax_tables(run, own) + avx2_table(runs[-1]) + function_tables(run, own) + backward_tables(run, own)
    text += topk_table(run, own) + attention_table(run, own) + axis_table(run, own) + gradient_sizes_table(run, own)
    text += call_table(run, own)
    for include in includes:
        text += table("Weight", *weight.measure(include))
    for run in runs:
        text += [f"FAILED {name}\n" for name in sorted(run.failed)]
    path = os.path.join(directory, "report.md")
    with open(path, "w") as file:
        file.write("\n".join(text))
    chart(runs[0], own, directory)
    print(path)


if __name__ == "__main__":
    main(sys.argv[1:])
