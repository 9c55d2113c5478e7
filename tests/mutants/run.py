#!/usr/bin/env python3
"""Checks the tests: each mutant of include/multimax.h, one small mistake, must be found by a test named for it.

    python3 tests/mutants/run.py --check    only whether the place of each mutant stands in the header
    python3 tests/mutants/run.py            all of mutants.py: some 10 seconds each
    python3 tests/mutants/run.py WORD...    those whose name, or place, holds one of the words

Compiles the header alone anew for a mutant ($CC, default gcc), for this processor: x86-64 with AVX-512 is what the
mutants were tried on. test_checksum, which finds any change of bits, does not count. Exits with 1 if a mutant survives,
does not compile, or has no place.
"""
import functools
import os
import re
import subprocess
import sys
import tempfile

from mutants import MUTANTS

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
INCLUDE = os.path.join(os.path.dirname(TESTS), "include")
FLAGS = [os.environ.get("CC", "gcc"), "-w", "-O1", "-march=native", "-DMULTIMAX_NO_DISPATCH", "-DMULTIMAX_EXTERN"]
SECONDS = 20  # of a test, which take some 4 at most

# Comments and the spaces between tokens do not count; nor does the backslash that continues a macro's line.
BLANK = re.compile(r"/\*.*?\*/|[\s\\]+", re.DOTALL)
TOKEN = re.compile(r'[A-Za-z_]\w*|\d(?:[eEpP][+-]|[\w.])*|"(?:\\.|[^"\\])*"|<<=|>>=|[-+*/%&|^!<>=]=|<<|>>|&&|\|\||->|\+\+|--|\S')
# Where a definition begins: a line that is not indented and names it, or a macro that is not an entry of the name table.
FUNCTION = r"^(?![#/*}\s])[^\n;={}]*?\b(%s)(?=\(|\[| \{)"
MACRO = r"^#\s*define (%s)\b(?!\s+MMAX_NAME\()"


@functools.lru_cache(maxsize=None)
def tokens(text, at, end):
    """The spans of the tokens in text[at:end]."""
    spans = []
    while at < end:
        blank = BLANK.match(text, at, end)
        found = blank or TOKEN.match(text, at, end)
        if not blank:
            spans.append(found.span())
        at = found.end()
    return spans


def end_of_function(text, at):
    """Where the definition ends whose name ends at `at`: behind its last brace, or at `at` for a mere declaration."""
    depth = 0
    for begin, end in tokens(text, at, len(text)):
        token = text[begin:end]
        depth += (token in "({[") - (token in ")}]")
        if depth == 0 and token == ";":
            return at
        if depth == 0 and token == "}":
            return end
    return at


@functools.lru_cache(maxsize=None)
def definitions(text, name):
    """The spans of the definitions of a name, of which instruction sets and types may have one each."""
    spans = []
    for found in re.finditer(FUNCTION % re.escape(name), text, re.MULTILINE):
        end = end_of_function(text, found.end())
        if end > found.end():
            spans.append((found.start(), end))
    for found in re.finditer(MACRO % re.escape(name), text, re.MULTILINE):
        end = re.compile(r"(?:[^\n]*\\\n)*[^\n]*").match(text, found.start()).end()
        spans.append((found.end(), end))
    return spans


def occurrences(text, spans, old):
    """The spans of the expression `old` within these."""
    want = [old[a:b] for a, b in tokens(old, 0, len(old))]
    found = []
    for begin, end in spans:
        have = tokens(text, begin, end)
        words = [text[a:b] for a, b in have]
        for i in range(len(words) - len(want) + 1):
            if words[i:i + len(want)] == want:
                found.append((have[i][0], have[i + len(want) - 1][1]))
    return found


def names_around(text, spans):
    """The names of the definitions that hold these."""
    names = []
    for begin, _ in spans:
        before = list(re.finditer((FUNCTION + "|" + MACRO) % (r"\w+", r"\w+"), text[:begin], re.MULTILINE))
        name = before[-1].group(1) or before[-1].group(2) if before else "no definition"
        names += [name] if name not in names else []
    return ", ".join(names[:4]) or "nowhere"


def mutated(text, mutant):
    """The header with the mistake in it, and what is wrong with the mutant's place, of which one is None."""
    spans = definitions(text, mutant.place)
    found = occurrences(text, spans, mutant.old)
    if len(found) < mutant.nth or len(found) != 1 and not mutant.nth:
        where = names_around(text, occurrences(text, [(0, len(text))], mutant.old))
        if not spans:
            return None, "%s is not defined; the expression stands in: %s" % (mutant.place, where)
        if not found:
            return None, "not in %s; the expression stands in: %s" % (mutant.place, where)
        return None, "stands %d times in %s" % (len(found), mutant.place)
    begin, end = found[max(mutant.nth, 1) - 1]
    return text[:begin] + mutant.new + text[end:], None


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
    if not compile_header(folder, mutated(text, mutant)[0]):
        return "BROKEN", "does not compile"
    for test in mutant.tests.split():
        said = complaint(folder, test)
        if said:
            return "killed", "%s: %s" % (test, said)
    return "SURVIVED", mutant.tests


def main():
    with open(INCLUDE + "/multimax.h") as file:
        text = file.read()
    wrong = [(m, mutated(text, m)[1]) for m in MUTANTS]
    lost = [(m, why) for m, why in wrong if why or m.old == m.new]
    for m, why in lost:
        print("%s\n    %s\n    %s" % (m.name, m.old, why or "is replaced by itself"))
    if len({m.name for m in MUTANTS}) != len(MUTANTS) or any("checksum" in m.tests for m in MUTANTS):
        sys.exit("mutants.py: two have one name, or one counts on test_checksum")
    words = sys.argv[1:]
    if lost or words == ["--check"]:
        print("%d mutants, %d of them without a place" % (len(MUTANTS), len(lost)))
        sys.exit(bool(lost))
    chosen = [m for m in MUTANTS if not words or any(w in m.name or w == m.place for w in words)]
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
