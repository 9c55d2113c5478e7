#!/bin/sh
# run.sh [TEST...]: AVX-512's kernels on an x86-64 processor that has AVX2 alone, every intrinsic lane by lane
# (emulated.h; gcc). By default the tests that take three minutes on one core, most of it to compile.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tests=$here/..
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# gcc would use AVX-512 by itself where the header allows it.
sed -E 's/(pragma GCC target\()"avx512[^"]*"/\1"avx2,fma,bmi,bmi2,popcnt"/' "$tests/../include/multimax.h" >"$work/multimax.h"
if grep -q 'GCC target("avx512' "$work/multimax.h" || ! grep -q 'GCC target("avx2,fma,bmi,bmi2,popcnt")' "$work/multimax.h"; then
    echo "the header's target is not found" >&2
    exit 2
fi
[ $# -gt 0 ] || set -- checksum special_cases attention bits losses backward forward memory route accumulate
flags='-w -Wno-psabi -mavx2 -mfma -mbmi -mbmi2 -mpopcnt -DMULTIMAX_NO_DISPATCH -DMULTIMAX_EXTERN'
printf '#define MULTIMAX_IMPLEMENTATION\n#include "%s/emulated.h"\n#include "multimax.h"\n' "$here" >"$work/implementation.c"
gcc -O1 $flags -I"$work" -c "$work/implementation.c" -o "$work/implementation.o"
cd "$tests/.." # where tests find their data
for test; do
    gcc -O1 -std=c99 $flags -DLENGTH_STEP=23 -Iinclude "tests/test_$test.c" "$work/implementation.o" -o "$work/program" \
        -lm -lpthread
    "$work/program" >"$work/log" || { cat "$work/log"; exit 1; }
    grep -q avx512 "$work/log" || [ "$test" != checksum ] || { echo "AVX-512 was not run" >&2; exit 1; }
    printf '%s: ' "$test"
    tail -1 "$work/log"
done
