#!/bin/sh
# run.sh [LENGTH_STEP [TEST...]]: AVX-512's kernels on an x86-64 processor that has AVX2 alone, every intrinsic by SIMDe
# (libsimde-dev; gcc). By default every 41st row length, and tests that take two minutes on one core.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tests=$here/..
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
# gcc would use AVX-512 by itself where the header allows it.
sed -E 's/(pragma GCC target\()"avx512[^"]*"/\1"avx2,fma,popcnt"/' "$tests/../include/multimax.h" >multimax.h
if grep -q 'GCC target("avx512' multimax.h; then
    echo "the header's target is not found" >&2
    exit 2
fi
step=${1:-41}
[ $# -gt 1 ] && shift || set -- checksum special_cases memory
flags='-mavx2 -mfma -mpopcnt -DMULTIMAX_NO_DISPATCH -DMULTIMAX_EXTERN'
has='-D__AVX512F__=1 -D__AVX512BW__=1 -D__AVX512DQ__=1 -D__AVX512VL__=1'
gcc -O0 -w -Wno-psabi $flags $has -DMULTIMAX_IMPLEMENTATION -I"$here" -c -x c multimax.h -o header.o
for test; do
    gcc -O1 -std=c99 $flags -DLENGTH_STEP="$step" -I"$tests/../include" "$tests/test_$test.c" header.o -o program \
        -lm -lpthread
    ./program >log || { cat log; exit 1; }
    printf '%s: ' "$test"
    tail -1 log
done
