#!/bin/sh
# run.sh INCLUDE_DIR CC...: check_isa.c, built by each compiler with every configuration macro and with flags that
# promise more or fewer instruction sets, finds that what is available works, and that nothing else can be active. Two
# cases run at a time; one line a case, and the output of those that fail.
#
# MULTIMAX_TEST_CPU stands in the place of what the processor says. No case makes it say more than the processor has,
# unless what it then has too much of is not compiled.
set -u
here=$(cd "$(dirname "$0")" && pwd)

# --one FILE: the case that it describes: title, command of the compiler, what may be active by default.
if [ "${1-}" = --one ]; then
    { read -r title && read -r command && read -r defaults; } <"$2"
    if eval "$command -o '$2.program' -lm" >"$2.log" 2>&1 && "$2.program" $defaults >>"$2.log" 2>&1; then
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

# case_ CC FLAGS DEFAULTS: DEFAULTS is empty where any will do. FLAGS are words for the shell.
case_() {
    count=$((count + 1))
    printf '%s\n' "$1 $2" "$1 -std=c99 -pedantic -Wall -Wextra -Werror -O0 $2 -I'$include' '$here/check_isa.c'" "$3" \
        >"$work/$count"
}

has() { grep -qw "$1" /proc/cpuinfo 2>/dev/null; }

for cc in "$@"; do
    promises='-O0'
    case $($cc -dumpmachine) in
    x86_64* | amd64*)
        promises="$promises -march=native -mno-avx2"
        if has avx2 && has fma; then
            promises="$promises -march=x86-64-v3"
        fi
        # The lesser processors that this one can play.
        case_ "$cc" "-DMULTIMAX_TEST_CPU=MMAX_ISA_SCALAR" "scalar"
        case_ "$cc" "-DMULTIMAX_TEST_CPU=MMAX_ISA_SSE2" "scalar sse2"
        if has avx2 && has fma; then
            case_ "$cc" "-DMULTIMAX_TEST_CPU=MMAX_ISA_AVX2" "avx2"
        fi
        ;;
    esac
    for promise in $promises; do
        case_ "$cc" "$promise" ""
        case_ "$cc" "$promise -DMULTIMAX_NO_DISPATCH" ""
        case_ "$cc" "$promise -DMULTIMAX_NO_SIMD" "scalar"
        case_ "$cc" "$promise -DMULTIMAX_NO_AVX512" "scalar sse2 avx2 neon wasm128"
        case_ "$cc" "$promise -DMULTIMAX_EXTERN -DMULTIMAX_IMPLEMENTATION" ""
        case_ "$cc" "$promise -DMULTIMAX_IMPLEMENTATION" ""
        case_ "$cc" "$promise -DMULTIMAX_IMPLEMENTATION '-DMULTIMAX_API=__attribute__((visibility(\"hidden\")))'" ""
        case_ "$cc" "$promise '-DMULTIMAX_FILE=\"multimax.h\"'" ""
        if has avx2 && has fma; then # the processor says AVX-512, whatever it has, and the build has none
            case_ "$cc" "$promise -DMULTIMAX_NO_AVX512 -DMULTIMAX_TEST_CPU=MMAX_ISA_AVX512" "avx2"
        fi
    done
done

if printf '%s\n' "$work"/??? | xargs -n 1 -P 2 sh "$0" --one; then
    echo "all $((count - 100)) configurations passed with $*"
else
    echo "a configuration failed"
    exit 1
fi
