#!/usr/bin/env python3
"""run.py CC OBJECT ROOT: compiles and runs every block of code of README.md and examples/COOKBOOK.md.

OBJECT is the implementation in shared mode. Programs must print what the text below them says: prints `..`. Functions go
to recipes.h, and recipes.c must call each one. Commands run in a copy of the root's directories, with a cc that compiles
plain C alone, which takes seconds. CMake's lines become a project.
"""
import importlib.util
import os
import re
import subprocess
import sys
import tempfile

CC, OBJECT, ROOT = [sys.argv[1]], os.path.abspath(sys.argv[2]), os.path.abspath(sys.argv[3])
HERE = os.path.dirname(os.path.abspath(__file__))
WARNINGS = "-std=c99 -pedantic -Wall -Wextra -Wconversion -Wshadow -Wundef -Werror".split()
SHARED = CC + ["-O1", "-DMULTIMAX_EXTERN", "-I" + os.path.join(ROOT, "include"), "-I."]
LIMITS = {"README.md": (1400, 150), "examples/COOKBOOK.md": (None, None)}  # words and lines


def fail(message):
    sys.exit("documents: " + message)


def run(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, **options)
    if done.returncode:
        fail(f"{command[0]} ends with {done.returncode}: {' '.join(map(str, command[1:]))}\n{done.stdout}")
    return done.stdout


def write(name, text):
    with open(name, "w") as file:
        file.write(text)


def blocks_of(name, text):
    """(where, language, code, the text after it) for each block between fences; checks the length of lines, too."""
    lines = text.split("\n")
    words, most = LIMITS[name]
    if words and (len(text.split()) > words or len(lines) - 1 > most):
        fail(f"{name} has {len(text.split())} words and {len(lines) - 1} lines; at most {words} and {most}")
    for number, line in enumerate(lines, 1):
        if len(line) > 120:
            fail(f"{name}, line {number}: {len(line)} characters; at most 120")
    parts = re.split(r"^```(\w*)\n(.*?)^```$", text, flags=re.M | re.S)
    for i in range(1, len(parts), 3):
        line = sum(part.count("\n") for part in parts[:i]) + 1
        yield f"{name}, the block near line {line}", parts[i], parts[i + 1], parts[i + 2]


def run_program(where, code, after):
    write("example.c", code)
    run(*SHARED, *WARNINGS, "example.c", OBJECT, "-o", "example", "-lm")
    printed = run("./example").strip()
    if f"prints `{printed}`" not in " ".join(after.split()):
        fail(f"{where} prints {printed}, and the text below says something else")


def run_functions(code):
    write("recipes.h", code)
    with open(os.path.join(HERE, "recipes.c")) as file:
        harness = file.read()
    for name in re.findall(r"^\w[\w ]*[ *](\w+)\(", code, flags=re.M):
        if not re.search(rf"\b{name}\(", harness):
            fail(f"recipes.c does not call {name}")
    write("recipes.c", harness)
    run(*SHARED, *WARNINGS, "-Wno-missing-prototypes", "recipes.c", OBJECT, "-o", "recipes", "-lm")
    print(run("./recipes"), end="")


def run_cmake(where, code):
    write("CMakeLists.txt", "cmake_minimum_required(VERSION 3.14)\nproject(app LANGUAGES C)\nadd_executable(app example.c)\n"
                            + code)
    flags = "-DCMAKE_C_FLAGS=-DMULTIMAX_NO_SIMD"
    run("cmake", "-S", ".", "-B", "app", f"-DCMAKE_C_COMPILER={CC[0]}", "-DCMAKE_BUILD_TYPE=Debug", flags)
    run("cmake", "--build", "app")
    if not run("./app/app"):
        fail(f"{where}: the program of this project prints nothing")


def run_shell(code):
    write("cc", f'#!/bin/sh\nexec {" ".join(CC)} -DMULTIMAX_NO_SIMD "$@"\n')
    os.chmod("cc", 0o755)
    run("sh", "-e", "-c", code, env=dict(os.environ, PATH=os.getcwd() + ":" + os.environ["PATH"]))


def main():
    texts = {}
    for name in LIMITS:
        with open(os.path.join(ROOT, name), encoding="utf-8") as file:
            texts[name] = file.read()
    blocks = [block for name, text in texts.items() for block in blocks_of(name, text)]
    with open(os.path.join(ROOT, ".ci/run")) as file:
        ci = file.read()
    for line in re.findall(r"^    (\S.*)", re.sub(r"^```.*?^```", "", texts["README.md"], flags=re.M | re.S), flags=re.M):
        if line not in ci:
            fail(f"README.md has a command that .ci/run does not run: {line}")
    for directory in ("include", "examples"):
        os.symlink(os.path.join(ROOT, directory), directory)
    os.mkdir("third_party")
    os.symlink(ROOT, "third_party/multimax")
    functions = ""
    for where, language, code, after in blocks:
        if language == "c" and "int main" in code:
            run_program(where, code, after)
        elif language == "c" and "MULTIMAX_IMPLEMENTATION" in code:
            write("multimax.c", code)
        elif language == "c":
            functions += code
        elif language == "cmake":
            run_cmake(where, code)
        elif language == "sh":
            run_shell(code)
        elif language == "python":
            if importlib.util.find_spec("numpy"):
                run(sys.executable, "-c", code)
            else:
                print(f"{where}: not run without numpy")
        else:
            fail(f"{where}: nobody runs a block of {language or 'no language'}")
    run_functions(functions)
    print(f"{len(blocks)} blocks")


with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    main()
