#!/usr/bin/env python3
"""Checks the tests: each mutant of include/multimax.h, one small mistake, must be found by a test named for it.

    python3 tests/mutants/run.py            all of mutants.py: some 15 seconds each
    python3 tests/mutants/run.py WORD...    those whose name holds one of the words

Needs an x86-64 processor with AVX2 and FMA (mutants of AVX-512 are left out where it has none), and gcc or clang ($CC,
default cc). Only the header is compiled anew for a mutant; test_checksum, which finds any change of bits, does not
count. Exits with 1 if a mutant survives, does not compile, or if its text does not stand exactly once where the mutant
says.
"""
import os
import subprocess
import sys
import tempfile
import threading
import time

from mutants import MUTANTS

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
INCLUDE = os.path.join(os.path.dirname(TESTS), "include")
CC = os.environ.get("CC", "cc").split()
COMMON = ["-w", "-DMULTIMAX_NO_DISPATCH"]  # the header at -O0: its compilation takes longest
TIERS = {
    "avx512": ["-march=skylake-avx512"],
    "avx2": ["-mavx2", "-mfma", "-mpopcnt"],
    "sse2": [],
    "scalar": ["-DMULTIMAX_NO_SIMD", "-mfma"],
}
INTERNAL = {"passes"}  # programs that include the implementation
TIMEOUT = 60


class Failure(Exception):
    """Why a mutant cannot be judged."""


def compile_c(arguments):
    done = subprocess.run(CC + COMMON + arguments, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Failure("does not compile: " + done.stderr.strip().split("\n")[0])


def mutated(text, mutant):
    """The header with the mutant's text replaced, which stands once between its anchor and the function's end."""
    if text.count(mutant.anchor) != 1:
        raise Failure("anchor found %d times" % text.count(mutant.anchor))
    start = text.index(mutant.anchor)
    end = text.find("\n}\n", start)
    part = text[start:end]
    if part.count(mutant.old) != 1:
        raise Failure("text found %d times" % part.count(mutant.old))
    return text[:start] + part.replace(mutant.old, mutant.new) + text[end:]


class Builder:
    """Objects of the tests, made when first needed, and the header of the moment in one tier."""

    def __init__(self, folder):
        self.folder = folder
        self.objects = {}

    def path(self, name):
        return os.path.join(self.folder, name)

    def header(self, text, tier):
        with open(self.path("multimax.h"), "w") as file:
            file.write(text)
        with open(self.path("header.c"), "w") as file:
            file.write('#define MULTIMAX_IMPLEMENTATION\n#include "multimax.h"\n')
        compile_c(TIERS[tier] + ["-DMULTIMAX_EXTERN", "-I" + self.folder, "-c", self.path("header.c"), "-o",
                                 self.path("header.o")])

    def program(self, test, tier):
        out, source = self.path("program"), os.path.join(TESTS, "test_%s.c" % test)
        links = ["-o", out, "-lm", "-lpthread"]
        if test in INTERNAL:
            compile_c(TIERS[tier] + ["-I" + self.folder, "-I" + TESTS, source] + links)
            return out
        if (test, tier) not in self.objects:
            self.objects[test, tier] = self.path("%s-%s.o" % (test, tier))
            steps = ["-DLENGTH_STEP=4", "-DLAW_STEP=%d" % (1 if test == "long_rows" else 4)]
            compile_c(TIERS[tier] + ["-O1", "-DMULTIMAX_EXTERN", "-I" + INCLUDE, "-I" + TESTS, "-c", source,
                                     "-o", self.objects[test, tier]] + steps)
        compile_c([self.objects[test, tier], self.path("header.o")] + links)
        return out


def complaint(program):
    """What the program's first failed check is in, how it died, or None where it passes."""
    process = subprocess.Popen([program, os.path.join(TESTS, "golden")], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True, errors="replace")
    timer = threading.Timer(TIMEOUT, process.kill)
    timer.start()
    title = "start"
    with process:
        for line in process.stdout:
            if line.startswith("- "):
                title = line[2:].strip()
            elif line.startswith("FAIL"):
                process.kill()
                return title
        code = process.wait()
    alive = timer.is_alive()
    timer.cancel()
    if not alive:
        return "more than %d s: %s" % (TIMEOUT, title)
    return "exit status %d: %s" % (code, title) if code != 0 else None


def judge(builder, text, mutant):
    """The test that kills the mutant and what it said, or None."""
    tests = mutant.tests.split()
    if not set(tests) <= INTERNAL:
        builder.header(mutated(text, mutant), mutant.tier)
    else:
        with open(builder.path("multimax.h"), "w") as file:
            file.write(mutated(text, mutant))
    for test in tests:
        said = complaint(builder.program(test, mutant.tier))
        if said:
            return test, said
    return None


def healthy(builder, text, chosen):
    """Whether the tests pass on the header as it is: else they would kill anything."""
    good = True
    for tier in sorted({m.tier for m in chosen}):
        builder.header(text, tier)
        for test in sorted({t for m in chosen if m.tier == tier for t in m.tests.split()}):
            said = complaint(builder.program(test, tier))
            if said:
                print("test_%s fails on the header itself (%s): %s" % (test, tier, said))
                good = False
    return good


def main():
    with open(os.path.join(INCLUDE, "multimax.h")) as file:
        text = file.read()
    words = sys.argv[1:]
    chosen = [m for m in MUTANTS if not words or any(w in m.name for w in words)]
    with open("/proc/cpuinfo") as cpu:
        if "avx512vl" not in cpu.read():
            chosen = [m for m in chosen if m.tier != "avx512"]
    names = [m.name for m in MUTANTS]
    if len(set(names)) != len(names) or any("checksum" in m.tests for m in MUTANTS):
        sys.exit("mutants.py: two have one name, or one counts on test_checksum")
    killed, start = 0, time.time()
    with tempfile.TemporaryDirectory() as folder:
        builder = Builder(folder)
        if not healthy(builder, text, chosen):
            sys.exit(1)
        for mutant in chosen:
            try:
                verdict = judge(builder, text, mutant)
            except Failure as why:
                verdict, said = None, str(why)
            else:
                said = "%s: %s" % verdict if verdict else "by " + mutant.tests
            killed += verdict is not None
            print("%-8s %-6s %-44s %s" % ("killed" if verdict else "SURVIVED", mutant.tier, mutant.name, said[:100]),
                  flush=True)
    print("%d of %d mutants killed in %d s" % (killed, len(chosen), time.time() - start))
    sys.exit(killed != len(chosen))


if __name__ == "__main__":
    main()
