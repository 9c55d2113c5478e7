#!/usr/bin/env python3
"""Lines and branches of include/multimax.h that the fast tests reach, on every instruction set of this machine.

    python3 tests/coverage/run.py       builds and runs the preset "coverage" (clang 19, llvm-cov-19), then reports
    python3 tests/coverage/run.py -n    reports on the last run

The kernels are compiled for each instruction set and type: a branch counts once, where its text stands, and is covered
if an instance has taken it. What no test can reach is listed in uncovered.txt with the reason. Exits with 1 if another
branch is uncovered, or a listed one is covered after all; not where the processor lacks AVX-512, whose code then is.
test_threads is left out: threads that run at once lose some of each other's counts.
"""
import glob
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.join(ROOT, "build", "coverage")
HEADER = os.path.join(ROOT, "include", "multimax.h")
LIST = os.path.join(HERE, "uncovered.txt")
EXPANSION = 1  # the kind of a region that stands for a macro's use


def run_tests():
    for old in glob.glob(os.path.join(BUILD, "profiles", "*")):
        os.remove(old)
    for command in (["cmake", "--preset"], ["cmake", "--build", "--preset"], ["ctest", "--preset"]):
        subprocess.run(command + ["coverage"], cwd=ROOT, check=True)


def exported():
    """What llvm-cov says of the header in a program that has the one copy of it."""
    profiles = glob.glob(os.path.join(BUILD, "profiles", "*.profraw"))
    merged = os.path.join(BUILD, "all.profdata")
    subprocess.run(["llvm-profdata-19", "merge", "-sparse", "-o", merged] + profiles, check=True)
    text = subprocess.run(["llvm-cov-19", "export", "-instr-profile", merged, os.path.join(BUILD, "tests", "test_bits")],
                          stdout=subprocess.PIPE, check=True).stdout
    return json.loads(text)["data"][0]


class Source:
    def __init__(self, path):
        with open(path) as file:
            self.lines = file.read().split("\n")

    def text(self, place):
        line, column, last, end = place
        if line == last:
            return self.lines[line - 1][column - 1:end - 1]
        return " ".join(self.lines[i].strip(" \\") for i in range(line - 1, last))

    def definition(self, line):
        """The #define that the line is part of, or None."""
        while line > 1 and self.lines[line - 2].endswith("\\"):
            line -= 1
        text = self.lines[line - 1]
        return text if re.match(r" *# *define", text) else None

    def is_code(self, line):
        text = self.lines[line - 1].strip()
        comment = text.startswith(("/*", "* "))
        return bool(re.search(r"\w", text)) and not comment and (text[0] != "#" or self.definition(line) is not None)

    def is_parameter(self, place):
        """Whether a macro's parameter stands there: then the condition is the argument of its use."""
        parameters = re.match(r" *# *define \w+\(([^)]*)\)", self.definition(place[0]) or "")
        return bool(parameters) and self.text(place) in re.split(r"\W+", parameters.group(1))

    def function(self, line):
        """The name of the function or macro that the line is part of."""
        definition = self.definition(line)
        if definition:
            return re.match(r" *# *define (\w+)", definition).group(1)
        while not re.match(r"[A-Za-z].*\(", self.lines[line - 1]):
            line -= 1
        start = re.sub(r"__attribute__\(\(.*?\)\)", "", self.lines[line - 1])
        internal = re.search(r"MMAX_\((\w+)\)\(", start)
        return internal.group(1) if internal else re.search(r"(\w+)\(", start).group(1)


def branches_of(data, source):
    """(place, text): [times true, times false], summed over all instances."""
    found = {}
    for function in data["functions"]:
        used_at = {r[6]: (r[:4], r[5]) for r in function["regions"] if r[7] == EXPANSION}
        for branch in function["branches"]:
            place, file = branch[:4], branch[6]
            if function["filenames"][file] != HEADER:
                continue
            text = source.text(place)
            while source.is_parameter(place) and file in used_at:
                place, file = used_at[file]
                text = source.lines[place[0] - 1].strip(" \\")
            counts = found.setdefault((tuple(place), text), [0, 0])
            counts[0] += branch[4]
            counts[1] += branch[5]
    return found


def lines_of(data, source):
    """line: how often it ran, for lines with code."""
    segments = next(file["segments"] for file in data["files"] if file["filename"] == HEADER)
    counts, around, i = {}, None, 0
    while i < len(segments):
        line = segments[i][0]
        here = []
        while i < len(segments) and segments[i][0] == line:
            here.append(segments[i])
            i += 1
        starts = [s for s in here if s[3] and s[4] and not s[5]]
        covered = ([around[2]] if around and around[3] and not around[5] else []) + [s[2] for s in starts]
        if covered:
            counts[line] = max(covered)
        around = here[-1]
        end = segments[i][0] if i < len(segments) else line
        for between in range(line + 1, end):
            if around[3] and not around[5]:
                counts[between] = around[2]
    return {line: count for line, count in counts.items() if source.is_code(line)}


def explained():
    """key: reason, from paragraphs of keys and, indented, the reason that they share."""
    reasons = {}
    with open(LIST) as file:
        for paragraph in file.read().split("\n\n"):
            lines = [line for line in paragraph.split("\n") if line and line[0] != "#"]
            for key in (line for line in lines if line[0] != " "):
                reasons[key] = " ".join(line.strip() for line in lines if line[0] == " ")
    return reasons


def share(name, covered, total):
    print("%-9s %5d of %5d, %.2f %%" % (name, covered, total, 100 * covered / total))


def main():
    if sys.argv[1:] != ["-n"]:
        run_tests()
    source, data, reasons = Source(HEADER), exported(), explained()
    branches, lines = branches_of(data, source), lines_of(data, source)
    missing = []
    for (place, text), counts in sorted(branches.items()):
        for side, count in zip(("true", "false"), counts):
            if count == 0:
                missing.append((place[0], "%s: %s: never %s" % (source.function(place[0]), text, side)))
    idle = [line for line, count in sorted(lines.items()) if count == 0]
    missing += [(line, "%s: %s: never ran" % (source.function(line), source.lines[line - 1].strip(" \\")))
                for line in idle]
    keys = [key for _, key in missing]
    unlisted = [(line, key) for line, key in missing if not reasons.get(key)]
    stale = [key for key in reasons if key not in keys]
    print("include/multimax.h")
    share("lines", len(lines) - len(idle), len(lines))
    share("branches", 2 * len(branches) - len(missing) + len(idle), 2 * len(branches))
    for line, key in sorted(missing):
        print("%5d  %s%s" % (line, key, "" if reasons.get(key) else "  NOT LISTED in uncovered.txt"))
    for key in stale:
        print("covered, but listed: " + key)
    with open("/proc/cpuinfo") as cpu:
        whole = "avx512vl" in cpu.read()
    if not whole:
        print("not judged: this processor has no AVX-512")
    sys.exit(1 if whole and (unlisted or stale) else 0)


if __name__ == "__main__":
    main()
