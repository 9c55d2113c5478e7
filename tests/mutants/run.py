#!/usr/bin/env python3
"""Checks the tests: each mutant of include/multimax.h, one small mistake, must be found by a test named for it.

    python3 tests/mutants/run.py --check    only whether each text stands exactly once in the header
    python3 tests/mutants/run.py            all of mutants.py: some 10 seconds each
    python3 tests/mutants/run.py WORD...    those whose name holds one of the words

Compiles the header alone anew for a mutant ($CC, default gcc), for this processor: x86-64 with AVX-512 is what the
mutants were tried on. test_checksum, which finds any change of bits, does not count. Exits with 1 if a mutant survives,
does not compile, or is not found.
"""
import os
import subprocess
import sys
import tempfile

from mutants import MUTANTS

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
INCLUDE = os.path.join(os.path.dirname(TESTS), "include")
FLAGS = [os.environ.get("CC", "gcc"), "-w", "-O1", "-march=native", "-DMULTIMAX_NO_DISPATCH", "-DMULTIMAX_EXTERN"]
SECONDS = 20  # of a test, which take some 4 at most


def compile_header(folder, text):
    """Returns whether it compiles."""
    with open(folder + "/multimax.h", "w") as file:
        file.write(text)
    with open(folder + "/header.c", "w") as file:
        file.write('#define MULTIMAX_IMPLEMENTATION\n#include "multimax.h"\n')
    return subprocess.call(FLAGS + ["-I" + folder, "-c", folder + "/header.c", "-o", folder + "/header.o"]) == 0


def complaint(folder, test):
    """What the test's first failed check is in, how it died, or None where it passes."""
    made, program = "%s/%s.o" % (folder, test), folder + "/program"
    if not os.path.exists(made):
        source = "%s/test_%s.c" % (TESTS, test)
        subprocess.check_call(FLAGS + ["-DLENGTH_STEP=23", "-I" + INCLUDE, "-I" + TESTS, "-c", source, "-o", made])
    subprocess.check_call([FLAGS[0], made, folder + "/header.o", "-o", program, "-lm", "-lpthread"])
    process = subprocess.Popen(["timeout", str(SECONDS), program, TESTS + "/golden"], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True, errors="replace")
    title = "start"
    with process:
        for line in process.stdout:
            if line.startswith("- "):
                title = line[2:].strip()
            elif line.startswith("FAIL"):
                process.terminate()
                return title
    return "exit status %d: %s" % (process.returncode, title) if process.returncode else None


def verdict(folder, text, mutant):
    """What becomes of a mutant, and why."""
    if not compile_header(folder, text.replace(mutant.old, mutant.new)):
        return "BROKEN", "does not compile"
    for test in mutant.tests.split():
        said = complaint(folder, test)
        if said:
            return "killed", "%s: %s" % (test, said)
    return "SURVIVED", mutant.tests


def main():
    with open(INCLUDE + "/multimax.h") as file:
        text = file.read()
    lost = [m for m in MUTANTS if text.count(m.old) != 1 or m.old == m.new]
    for m in lost:
        print("found %d times: %s" % (text.count(m.old), m.name))
    if len({m.name for m in MUTANTS}) != len(MUTANTS) or any("checksum" in m.tests for m in MUTANTS):
        sys.exit("mutants.py: two have one name, or one counts on test_checksum")
    words = sys.argv[1:]
    if lost or words == ["--check"]:
        print("%d mutants, %d of them not found once" % (len(MUTANTS), len(lost)))
        sys.exit(bool(lost))
    chosen = [m for m in MUTANTS if not words or any(w in m.name for w in words)]
    with tempfile.TemporaryDirectory() as folder:
        compile_header(folder, text)
        for test in sorted({t for m in chosen for t in m.tests.split()}):
            said = complaint(folder, test)
            if said:
                sys.exit("test_%s fails on the header itself: %s" % (test, said))
        killed = 0
        for m in chosen:
            state, why = verdict(folder, text, m)
            killed += state == "killed"
            print("%-8s %-48s %s" % (state, m.name, why[:100]), flush=True)
    print("%d of %d mutants killed" % (killed, len(chosen)))
    sys.exit(killed != len(chosen))


if __name__ == "__main__":
    main()
