#!/usr/bin/env python3
"""instructions.py INCLUDE_DIR: instructions that a call executes for each entry of one row of 4,096, as a Markdown table.

Counted, not timed: a program that makes one call more executes that many instructions more. AVX2 needs gcc and valgrind,
NEON aarch64-linux-gnu-gcc and qemu-aarch64, WebAssembly emcc and wasm-interp (Debian: wabt). Of WebAssembly's
instructions those count that a compiler does not resolve: no constants, no moves of locals.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

ENTRIES = 4096
CALLS = {
    "softmax": "mmax_softmax_f32(y, x, s)",
    "multimax, order 1": "mmax_multimax_f32(y, x, &p1, s)",
    "multimax, order 2": "mmax_multimax_f32(y, x, &p2, s)",
    "sparsemax": "mmax_sparsemax_f32(y, x, s)",
    "entmax15": "mmax_entmax15_f32(y, x, s)",
    "evsoftmax": "mmax_evsoftmax_f32(y, x, 0, s)",
    "tanhmax": "mmax_tanhmax_f32(y, x, s)",
}
SOURCE = """
#include "multimax.h"
static float x[%d], y[%d];
int run(void);
int run(void)
{
    const mmax_multimax_params p1 = {1, {1.4, 1}, {0.8, 1}, {0.3, 0}, {1.1, 0}};
    const mmax_multimax_params p2 = {2, {1.4, 1.05}, {0.8, 1.1}, {0.3, -0.1}, {1.1, 1.6}};
    const mmax_shape s = mmax_row(%d);
    uint32_t state = 1;
    (void)p1, (void)p2;
    for (int i = 0; i < %d; ++i) {
        float sum = 0; /* of uniform numbers: near N(0,4^2) */
        for (int k = 0; k < 12; ++k) {
            state = state * 1664525u + 1013904223u;
            sum += (float)(state >> 8) / 16777216.0f;
        }
        x[i] = 4 * (sum - 6);
    }
    for (volatile int i = 0; i < %d; ++i) {
        %s;
    }
    return 0;
}
#ifndef __wasm__
int main(void) { return run(); }
#endif
"""


def output_of(command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout


def lines_of(command, skipped):
    """How many lines a trace has that do not match; it may be long."""
    pattern, count = re.compile(skipped), 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout:
            count += not pattern.search(line)
    return count


def on_avx2(program):
    text = output_of(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program])
    return int(re.search(r"Collected : (\d+)", text).group(1))


def on_neon(program):
    return lines_of(["qemu-aarch64", "-singlestep", "-d", "nochain,exec", program], r"^(?!Trace)")


def on_wasm(program):
    # A traced line: #0.  123: V:2  | f32x4.mul ..
    return lines_of(["wasm-interp", "--run-all-exports", "--dummy-import-func", "--trace", program],
                    r"^(?!#)|\| (local\.|([if](32|64)|v128)\.const|alloca|br |drop)")


TARGETS = {
    "AVX2": (["gcc", "-O2"], "valgrind", on_avx2),
    "NEON": (["aarch64-linux-gnu-gcc", "-O2", "-static"], "qemu-aarch64", on_neon),
    "WebAssembly": (["emcc", "-O2", "-msimd128", "-sSTANDALONE_WASM", "--no-entry", "-sEXPORTED_FUNCTIONS=_run"],
                    "wasm-interp", on_wasm),
}


def instructions(include, target, call, directory):
    compiler, _, count = TARGETS[target]
    counts = []
    for times in (1, 2):
        source = os.path.join(directory, "row.c")
        program = os.path.join(directory, "row.wasm" if compiler[0] == "emcc" else "row")
        with open(source, "w") as file:
            file.write(SOURCE % (ENTRIES, ENTRIES, ENTRIES, ENTRIES, times, call))
        subprocess.run([*compiler, "-I", include, source, "-o", program, "-lm"], check=True)
        counts.append(count(program))
    return (counts[1] - counts[0]) / ENTRIES


def main(arguments):
    if len(arguments) != 1:
        sys.exit(__doc__)
    there = [name for name, (compiler, tool, _) in TARGETS.items() if shutil.which(compiler[0]) and shutil.which(tool)]
    print("| | " + " | ".join(there) + " |")
    print("| --- |" + " ---: |" * len(there))
    with tempfile.TemporaryDirectory() as directory:
        for name, call in CALLS.items():
            cells = [f"{instructions(arguments[0], target, call, directory):.1f}" for target in there]
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
