#!/usr/bin/env python3
"""footprint.py INCLUDE_DIR [COMPILER ...]: what including multimax.h costs, as a Markdown table.

Time to compile a file with one call, and the code and constants that one call and that every function add to it.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

ONE = "softmax_f32"


def source(names):
    """A file that calls nothing but keeps the functions named."""
    lines = "".join(f"    (void (*)(void))mmax_{name},\n" for name in names)
    table = "extern void (*const used[])(void);\nvoid (*const used[])(void) = {\n"
    return '#include "multimax.h"\n' + table + lines + "    0};\n"


def public_functions(include):
    with open(os.path.join(include, "multimax.h")) as file:
        text = file.read()
    return sorted(set(re.findall(r"\bmmax_status mmax_(\w+_f(?:32|64))\(", text)))


def compile_once(compiler, flags, include, names, directory):
    """Seconds, and bytes of code and read-only data."""
    path = os.path.join(directory, "use.c")
    with open(path, "w") as file:
        file.write(source(names))
    start = time.perf_counter()
    subprocess.run([compiler, *flags, "-I", include, "-c", path, "-o", path + ".o"], check=True)
    seconds = time.perf_counter() - start
    text = subprocess.run(["size", path + ".o"], check=True, capture_output=True, text=True).stdout
    return seconds, int(text.splitlines()[1].split()[0])


def main(arguments):
    if not arguments:
        sys.exit(__doc__)
    include, compilers = arguments[0], arguments[1:] or ["gcc", "clang"]
    every = public_functions(include)
    print(f"| compiler | one function: s | all {len(every)}: s | one function: KiB | all: KiB |")
    print("| --- | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as directory:
        for compiler in filter(shutil.which, compilers):
            for flags in (["-O0"], ["-Os"], ["-O2"], ["-O2", "-DMULTIMAX_NO_AVX512"]):
                cells = []
                for names, repeats in (([ONE], 3), (every, 1)):
                    runs = [compile_once(compiler, flags, include, names, directory) for _ in range(repeats)]
                    cells.append((min(seconds for seconds, _ in runs), runs[0][1] / 1024))
                (one, one_size), (all_, all_size) = cells
                print(f"| {compiler} {' '.join(flags)} | {one:.2f} | {all_:.2f} | {one_size:.0f} | {all_size:.0f} |")


if __name__ == "__main__":
    main(sys.argv[1:])
