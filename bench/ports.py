#!/usr/bin/env python3
"""ports.py INCLUDE_DIR: what stands in the way of more speed, as a Markdown table.

For each register of a row of 4,096 entries: what the AVX2 instance computes, counted by callgrind (gcc, objdump and
valgrind are needed), and the fewest cycles in which a processor can. Zen 5 has two pipes for products and two for sums
and comparisons, which share the rest: shuffles, shifts, logic, conversions. Golden Cove (Sapphire Rapids) has three
pipes, two of them for products, and for registers of 512 bits two for everything. Beside it the cycles that a register
takes here, of AVX2 and, where there is, of AVX-512, which computes the same.
"""
import collections
import os
import re
import subprocess
import sys
import tempfile

ENTRIES = 4096
CALLS = {
    "softmax": "mmax_softmax_{t}(y, x, s)",
    "multimax, order 1": "mmax_multimax_{t}(y, x, &p1, s)",
    "multimax, order 2": "mmax_multimax_{t}(y, x, &p2, s)",
    "evsoftmax": "mmax_evsoftmax_{t}(y, x, 0, s)",
    "tanhmax": "mmax_tanhmax_{t}(y, x, s)",
    "softmax backward": "mmax_softmax_backward_{t}(gx, gy, y, s)",
    "multimax 2 backward": "mmax_multimax_backward_{t}(gx, NULL, gy, y, x, &p2, s)",
    "multimax 2 backward, parameters": "mmax_multimax_backward_{t}(gx, &gp, gy, y, x, &p2, s)",
}
SOURCE = """
#define _POSIX_C_SOURCE 199309L
#include "multimax.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static {real} x[%d], y[%d], gx[%d], gy[%d];
static double now(void)
{{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}}
/* A chain of additions of integers: one a cycle. */
static double cycle(void)
{{
    double best = 1e9;
    for (int k = 0; k < 20; ++k) {{
        unsigned long i = 0;
        double start = now();
        for (int j = 0; j < 10000; ++j) {{
            __asm__ volatile("add $1, %%0; add $1, %%0; add $1, %%0; add $1, %%0; add $1, %%0" : "+r"(i));
        }}
        start = (now() - start) / 50000;
        best = start < best ? start : best;
    }}
    return best;
}}
int main(int count, char **arguments)
{{
    const mmax_multimax_params p1 = {{1, {{1.4, 1}}, {{0.8, 1}}, {{0.3, 0}}, {{1.1, 0}}}};
    const mmax_multimax_params p2 = {{2, {{1.4, 1.05}}, {{0.8, 1.1}}, {{0.3, -0.1}}, {{1.1, 1.6}}}};
    const mmax_shape s = mmax_row(%d);
    mmax_multimax_grads gp = {{0}};
    const int calls = atoi(arguments[1]);
    uint32_t state = 1;
    (void)p1, (void)p2, (void)gp, (void)gy;
    mmax_isa_select(count > 2 ? MMAX_ISA_AVX512 : MMAX_ISA_AVX2);
    for (int i = 0; i < %d; ++i) {{
        {real} sum = 0; /* of uniform numbers: near N(0,4^2) */
        for (int k = 0; k < 12; ++k) {{
            state = state * 1664525u + 1013904223u;
            sum += ({real})(state >> 8) / 16777216;
        }}
        x[i] = 4 * (sum - 6);
        gy[i] = sum;
    }}
    mmax_softmax_{t}(y, x, s);
    if (calls < 10) {{
        for (volatile int i = 0; i < calls; ++i) {{
            {call};
        }}
    }} else {{
        double best = 1e9;
        for (int k = 0; k < 50; ++k) {{
            double start = now();
            for (int i = 0; i < calls; ++i) {{
                {call};
            }}
            start = (now() - start) / calls / %d;
            best = start < best ? start : best;
        }}
        printf("%%g\\n", best / cycle());
    }}
    return 0;
}}
""" % ((ENTRIES,) * 7)
KINDS = (
    ("product", r"v(fn?m|mul|div|sqrt)"),
    ("sum", r"v(add|sub|min|max|cmp|round)[ps]"),
    ("move", r"v(mov|zero|lddqu)"),
    ("other", r"v"),
)


# The fewest cycles, by the numbers of products, sums and other operations
BOUNDS = {
    "Zen 5": lambda product, added, other: max(product / 2, added / 2, (product + added + other) / 4),
    "Golden Cove": lambda product, added, other: max(product / 2, (product + added + other) / 3),
    "its 512 bits": lambda product, added, other: (product + added + other) / 2,
}


def mnemonics(program):
    """By address."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", program], check=True, capture_output=True, text=True)
    return {int(address, 16): name for address, name in re.findall(r"^\s+([0-9a-f]+):\s+(\S+)", text.stdout, re.M)}


def executions(program, calls, directory):
    """How often each address is executed."""
    out = os.path.join(directory, "callgrind")
    subprocess.run(["valgrind", "--tool=callgrind", "--dump-instr=yes", "--compress-pos=no",
                    f"--callgrind-out-file={out}", program, str(calls)], check=True, capture_output=True)
    counts, inclusive = collections.Counter(), False
    with open(out) as file:
        for line in file:
            fields = re.match(r"0x([0-9a-f]+) \S+ (\d+)$", line)
            if fields and not inclusive:
                counts[int(fields.group(1), 16)] += int(fields.group(2))
            inclusive = line.startswith("calls=")
    return counts


def operations(program, directory):
    """Operations of one call by kind."""
    code = mnemonics(program)
    once, twice = (executions(program, calls, directory) for calls in (1, 2))
    total = collections.Counter()
    for address, count in twice.items():
        count -= once[address]
        name = code.get(address, "")
        if not count or not name:
            continue
        total["all"] += count
        for kind, pattern in KINDS:
            if re.match(pattern, name):
                total[kind] += count
                break
    return total


def main(arguments):
    if len(arguments) != 1:
        sys.exit(__doc__)
    widths = [("AVX2", 32, ())]
    with open("/proc/cpuinfo") as file:
        if "avx512vl" in file.read():
            widths.append(("AVX-512", 64, ("avx512",)))
    heads = ["products", "sums", "other", "all", *BOUNDS, *(name for name, _, _ in widths)]
    print("| | " + " | ".join(heads) + " |")
    print("| --- |" + " ---: |" * len(heads))
    with tempfile.TemporaryDirectory() as directory:
        for real, name_of_type, size in (("float", "f32", 4), ("double", "f64", 8)):
            for name, call in CALLS.items():
                source, program = os.path.join(directory, "row.c"), os.path.join(directory, "row")
                with open(source, "w") as file:
                    file.write(SOURCE.format(real=real, t=name_of_type, call=call.format(t=name_of_type)))
                subprocess.run(["gcc", "-O2", "-no-pie", "-I", arguments[0], source, "-o", program, "-lm"], check=True)
                total = operations(program, directory)
                product, added, other, every = (total[kind] * 32 / size / ENTRIES
                                                for kind in ("product", "sum", "other", "all"))
                cells = [product, added, other, every]
                cells += (bound(product, added, other) for bound in BOUNDS.values())
                for _, width, more in widths:
                    run = subprocess.run([program, "200", *more], check=True, capture_output=True, text=True)
                    cells.append(float(run.stdout) * width / size)
                print(f"| {name}, {name_of_type} | " + " | ".join(f"{cell:.1f}" for cell in cells) + " |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
