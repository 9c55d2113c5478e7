#!/bin/sh
# run.sh INCLUDE_DIR CC...: check_isa.c, built by each compiler with every macro that decides on instruction sets and
# with flags that promise more or fewer of them, finds that what is available works, and that nothing else can be
# active. Two cases run at a time; one line a case, and the output of those that fail. ../compile has the other macros.
#
# MULTIMAX_TEST_CPU stands in the place of what the processor says. No case makes it say more than the processor has,
# unless what it then has too much of is not compiled.
set -u
here=$(cd "$(dirname "$0")" && pwd)

# run_all FILE: the program of the case, once with the words of each line after the first two.
run_all() {
    sed 1,2d "$1" | while read -r words; do
        "$1.program" $words || exit 1
    done
}

# --one FILE: the case that it describes: title, command of the compiler, arguments of the program line by line.
if [ "${1-}" = --one ]; then
    { read -r title && read -r command; } <"$2"
    if eval "$command -o '$2.program' -lm" >"$2.log" 2>&1 && run_all "$2" >>"$2.log" 2>&1; then
        echo "ok    $title: $(cat "$2.log")"
    else
        echo "FAIL  $title
      $command
$(sed 's/^/      /' "$2.log" | head -20)"
        exit 1
    fi
    exit 0
fi

if [ $# -lt 2 ]; then
    echo "usage: run.sh INCLUDE_DIR CC..." >&2
    exit 2
fi
include=$(cd "$1" && pwd) || exit 2
shift
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
count=100

# case_ CC FLAGS ARGUMENTS...: one run for each of ARGUMENTS, which name what may be active by default; empty where any
# will do. FLAGS are words for the shell.
case_() {
    count=$((count + 1))
    {
        printf '%s\n' "$1 $2" "$1 -std=c99 -pedantic -Wall -Wextra -Werror -O0 $2 -I'$include' '$here/check_isa.c'"
        shift 2
        printf '%s\n' "$@"
    } >"$work/$count"
}

has() { grep -qw "$1" /proc/cpuinfo 2>/dev/null; }

# x86_32 CC: programs of 32 bits; with default flags those that link to an implementation for which flags are given.
x86_32() {
    echo 'int main(void) { return 0; }' >"$work/32.c"
    if ! $1 -m32 "$work/32.c" -lm -o "$work/32" 2>/dev/null || ! "$work/32"; then
        echo "skip  $1 -m32: no libraries"
        return
    fi
    for flags in -O0 '-O2 -DMULTIMAX_NO_SIMD'; do
        case_ "$1" "-m32 -msse2 -mfpmath=sse -DMULTIMAX_NO_AVX512 $flags" ""
    done
    object=$work/implementation-$count.o
    printf '#define MULTIMAX_IMPLEMENTATION\n#include "multimax.h"\n' >"$work/implementation.c"
    $1 -std=c11 -O2 -m32 -msse2 -mfpmath=sse -DMULTIMAX_NO_AVX512 -I"$include" -c "$work/implementation.c" -o "$object"
    for flags in -O2 '-O1 -march=pentium' '-Os -msse2'; do
        case_ "$1" "-m32 $flags -DMULTIMAX_EXTERN '$object'" ""
    done
}

for cc in "$@"; do
    promises='-O0'
    case_ "$cc" "-DMULTIMAX_NO_SIMD" "scalar"
    case $($cc -dumpmachine) in
    x86_64* | amd64*)
        promises="$promises -march=native -mno-avx2"
        if has avx2 && has fma; then
            promises="$promises -march=x86-64-v3"
        fi
        # The lesser processors that this one can play; the last says AVX-512, whatever it has, and the build has none.
        case_ "$cc" "-DPLAY -DMULTIMAX_NO_AVX512" "--play 0 scalar sse2" "--play 1 scalar sse2"
        if has avx2 && has fma; then
            case_ "$cc" "-DPLAY -DMULTIMAX_NO_AVX512" "--play 2 avx2" "--play 3 avx2"
        fi
        # What gcc for Windows says of itself, without a stack to trust and with one.
        if ! $cc --version | grep -q clang; then
            case_ "$cc" "-D_WIN32" "scalar sse2"
            case_ "$cc" "-D_WIN32 -DMULTIMAX_ALIGNED_STACK -DMULTIMAX_NO_AVX512 -DPLAY" "--play 2 avx2"
        fi
        x86_32 "$cc"
        ;;
    esac
    for promise in $promises; do
        case_ "$cc" "$promise" ""
        case_ "$cc" "$promise -DMULTIMAX_NO_DISPATCH" ""
        case_ "$cc" "$promise -DMULTIMAX_NO_AVX512" "scalar sse2 avx2 neon wasm128"
    done
done

if printf '%s\n' "$work"/??? | xargs -n 1 -P 2 sh "$0" --one; then
    echo "all $((count - 100)) configurations passed with $*"
else
    echo "a configuration failed"
    exit 1
fi
