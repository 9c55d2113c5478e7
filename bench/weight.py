#!/usr/bin/env python3
"""weight.py INCLUDE_DIR ["COMPILER FLAG ..." ...]: the cost of including multimax.h, as a Markdown table.

The table has lines and preprocessor conditionals of the header, KiB of code and constants, processor seconds of the
compiler, and these seconds as a multiple of a file with only immintrin.h. It compares with similar headers if they are
installed (Debian: libxxhash-dev, libstb-dev).
"""
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

COMPILERS = ("gcc -O2", "clang -O2")
EMPTY = "#include <immintrin.h>\n"
FILES = (
    ("multimax.h, one softmax", """#include "multimax.h"
mmax_status f(float *y, const float *x, size_t n);
mmax_status f(float *y, const float *x, size_t n) { return mmax_softmax_f32(y, x, mmax_row(n)); }
"""),
    ("multimax.h, all functions", """#define MULTIMAX_EXTERN
#define MULTIMAX_IMPLEMENTATION
#include "multimax.h"
"""),
    ("xxhash.h, XXH3_64bits", """#define XXH_INLINE_ALL
#include <xxhash.h>
XXH64_hash_t f(const void *p, size_t n) { return XXH3_64bits(p, n); }
"""),
    ("stb_image_resize.h, all functions", """#define STB_IMAGE_RESIZE_IMPLEMENTATION
#include <stb/stb_image_resize.h>
"""),
    ("stb_image.h, all functions", """#define STB_IMAGE_IMPLEMENTATION
#include <stb/stb_image.h>
"""),
)


def run(command, title=""):
    """The output of a command; None if it fails. Prints the title, and every ten seconds how long the command has run."""
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, universal_newlines=True)
    while True:
        passed = time.monotonic() - begin
        if title:
            print(title + (f": {passed:.0f} s so far" if passed > 5 else ""), file=sys.stderr, flush=True)
        try:
            output = process.communicate(timeout=10)[0]
            return output if process.returncode == 0 else None
        except subprocess.TimeoutExpired:
            pass


def cost(compiler, source, directory, title=""):
    """Processor seconds (the least of three runs; one run if it takes long) and bytes; None if it does not compile."""
    path, best = os.path.join(directory, "use.c"), float("inf")
    with open(path, "w") as file:
        file.write(source)
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        if run(compiler + ["-c", path, "-o", path + ".o"], title) is None:
            return None
        best = min(best, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
        title = ""
        if best > 4:
            break
    text, data = run(["size", path + ".o"]).splitlines()[1].split()[:2]
    return best, int(text) + int(data)


def text_of(source, compiler, directory):
    """The text of the header that a source includes last; empty if it is not installed."""
    path, name = os.path.join(directory, "use.c"), re.findall(r'#include ["<](.*)[">]', source)[-1]
    with open(path, "w") as file:
        file.write(source)
    paths = [word for word in (run(compiler + ["-M", path]) or "").split() if word.endswith(name)]
    if not paths:
        return ""
    with open(paths[0]) as file:
        return file.read()


def measure(include, compilers=COMPILERS):
    """The head of the table and its rows."""
    compilers = [shlex.split(c) + ["-w", "-I", include] for c in compilers if shutil.which(shlex.split(c)[0])]
    head = ["", "lines", "conditionals"]
    with tempfile.TemporaryDirectory() as directory:
        texts = [text_of(source, compilers[0], directory) for _, source in FILES]
        rows = [[name, len(text.splitlines()), len(re.findall(r"^\s*#\s*(?:if|ifdef|ifndef|elif)\b", text, re.M))]
                for (name, _), text in zip(FILES, texts)]
        for compiler in compilers:
            head += [f"{' '.join(compiler[:-3])}: KiB", "s", "immintrin.h = 1"]
            empty = cost(compiler, EMPTY, directory)
            for row, (name, source) in zip(rows, FILES):
                title = f"weight: {' '.join(compiler[:-3])} compiles {name}" if row[1] else ""
                found = cost(compiler, source, directory, title)
                row += [f"{found[1] / 1024:.1f}", f"{found[0]:.2f}"] if found else ["", ""]
                row.append(f"{found[0] / empty[0]:.1f}" if found and empty else "")
    return head, [row for row in rows if row[1]]


def main(arguments):
    if not arguments:
        sys.exit(__doc__)
    head, rows = measure(arguments[0], *[arguments[1:]] if arguments[1:] else [])
    for row in [head, ["---"] + ["---:"] * (len(head) - 1)] + rows:
        print("| " + " | ".join(map(str, row)) + " |")


if __name__ == "__main__":
    main(sys.argv[1:])
