#!/bin/sh
# analyze.sh [WORD...]: static analysis of the header's implementation: clang-tidy (.clang-tidy), cppcheck and
# gcc -fanalyzer. One line a case, with what was found below it; fails if anything was. Some minutes on one core.
#
#     sh tests/analyze.sh                  all that is installed (apt-get install -y clang-tidy cppcheck gcc wasi-libc)
#     sh tests/analyze.sh tidy cppcheck    the cases whose name holds one of the words
set -u
tests=$(cd "$(dirname "$0")" && pwd) || exit 2
include=$tests/../include
words=$*
failed=0
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
printf '#include "multimax.h"\n#include "use.h"\nint main(void) { return use_multimax(); }\n' >plain.c
printf '#define MULTIMAX_IMPLEMENTATION\n#include "multimax.h"\n' >shared.c

# analyze TITLE COMMAND...: nothing on the standard outputs but lines that `noise` matches, and status 0.
noise='^[0-9]+ warnings? (generated|treated)|^Suppressed |^$'
analyze() {
    title=$1
    shift
    wanted=${words:+no}
    for word in $words; do
        case $title in *"$word"*) wanted= ;; esac
    done
    [ -z "$wanted" ] || return 0
    if ! command -v "$1" >/dev/null; then
        printf 'skip  %-60s %s\n' "$title" "$1 is not installed"
        return 0
    fi
    start=$(date +%s)
    "$@" >log 2>&1
    status=$?
    grep -vE "$noise" log >found
    if [ "$status" -eq 0 ] && [ ! -s found ]; then
        printf 'ok    %-60s %s\n' "$title" "$(($(date +%s) - start)) s"
    else
        printf 'FAIL  %-60s %s\n' "$title" "status $status"
        failed=$((failed + 1))
        head -40 found | sed 's/^/      /'
    fi
}

# ---- clang-tidy: every instance of this machine, and those of others ----
tidy() {
    what=$1
    file=$2
    shift 2
    for version in -14 -19; do
        analyze "clang-tidy$version $what" "clang-tidy$version" --quiet --config-file="$tests/../.clang-tidy" \
            "$file" -- -std=c99 -I"$include" -I"$tests/compile" "$@"
    done
}
tidy 'plain mode' plain.c
tidy 'shared mode' shared.c
tidy 'MULTIMAX_NO_SIMD' plain.c -DMULTIMAX_NO_SIMD
tidy '-Ofast -march=native' plain.c -Ofast -march=native
tidy '--target=aarch64-linux-gnu' plain.c --target=aarch64-linux-gnu
wasi=/usr/include/wasm32-wasi # of wasi-libc
[ ! -d $wasi ] || tidy '--target=wasm32-wasi' plain.c --target=wasm32-wasi -isystem $wasi -msimd128

# ---- cppcheck, as gcc on x86-64 ----
# It takes an address within an array for a value; and what a first loop sets and a second one uses, each under the same
# condition, or a loop that runs at least once, for not set.
cat >suppressions.xml <<'END'
<suppressions>
<suppress><id>uninitvar</id><symbolName>w.kept</symbolName></suppress>
<suppress><id>legacyUninitvar</id><symbolName>ahead*</symbolName></suppress>
<suppress><id>legacyUninitvar</id><symbolName>buffer*</symbolName></suppress>
<suppress><id>uninitvar</id><symbolName>sums</symbolName></suppress>
</suppressions>
END
check() {
    what=$1
    file=$2
    shift 2
    analyze "cppcheck $what" cppcheck --quiet --std=c99 --platform=unix64 --error-exitcode=1 --inconclusive \
        --enable=warning,performance,portability --suppress-xml=suppressions.xml -D__GNUC__=12 -D__x86_64__=1 \
        -D__SSE2__=1 -I"$include" -I"$tests/compile" "$@" "$file"
}
check 'plain mode' plain.c
check 'shared mode' shared.c
check 'MULTIMAX_NO_SIMD' plain.c -DMULTIMAX_NO_SIMD

# ---- gcc -fanalyzer, on plain C ----
# With all paths it ends for the interface, the checks and the dispatch, but not for the kernels: these get two states
# for a place in the program, and loops are not followed far. The kernels with intrinsics are left to the others.
awk '/^#    define MMAX_PASS 1$/ { kernels = 1 } !kernels { print } /^#    undef MMAX_PASS$/ { kernels = 0 }' \
    "$include/multimax.h" >multimax.h
analyze 'gcc -fanalyzer, all but the kernels' timeout 300 gcc -std=c99 -O2 -fanalyzer -DMULTIMAX_NO_SIMD \
    -Wno-implicit-function-declaration -I. -c shared.c -o shared.o
rm multimax.h
analyze 'gcc -fanalyzer MULTIMAX_NO_SIMD' timeout 600 gcc -std=c99 -O1 -fanalyzer -DMULTIMAX_NO_SIMD \
    --param analyzer-bb-explosion-factor=1 --param analyzer-max-enodes-per-program-point=2 -I"$include" \
    -c shared.c -o shared.o

[ "$failed" -eq 0 ]
