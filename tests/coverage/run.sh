#!/bin/sh
# run.sh: lines of include/multimax.h that no fast test reaches, on any instruction set of this machine and for any type
# (preset "coverage": clang 19, llvm-cov-19), and how many lines and branches there are.
set -eu
cd "$(dirname "$0")/../.."
build=build/coverage
rm -rf $build/profiles
cmake --preset coverage
cmake --build --preset coverage
ctest --preset coverage
llvm-profdata-19 merge -sparse -o $build/all.profdata $build/profiles/*.profraw
# Every program has the one copy of the header.
cov() { llvm-cov-19 "$@" -instr-profile $build/all.profdata $build/tests/test_bits include/multimax.h; }
cov export -format=lcov | awk -F '[:,]' '/^DA/ { ran[$2] += $3 } END { for (line in ran) { if (!ran[line]) { print line } } }' |
    sort -n | while read -r line; do printf '%5d %s\n' "$line" "$(sed -n "${line}p" include/multimax.h)"; done
cov report
