#!/bin/sh
# run.sh INCLUDE_DIR: canary.c under the tools that look at memory, as users build it: gcc's and clang's AddressSanitizer
# stop every overrun of one entry, clang's MemorySanitizer and Valgrind, with gcc -O1, find nothing that is not set.
# What is not installed is skipped. One line a case.
set -u
include=$(cd "$1" && pwd) || exit 2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
failed=0

# case_ TITLE "CC FLAGS" COMMAND...: canary, built and run.
case_() {
    title=$1 cc=$2
    shift 2
    if ! command -v "${cc%% *}" >/dev/null || ! command -v "$1" >/dev/null; then
        echo "skip  $title: not installed"
    elif $cc -std=c99 -pedantic -Wall -Wextra -Werror -I"$include" "$here/canary.c" -o "$work/canary" -lm \
        >"$work/log" 2>&1 && "$@" >"$work/log" 2>&1; then
        echo "ok    $title: $(tail -1 "$work/log")"
    else
        echo "FAIL  $title"
        head -20 "$work/log" | sed 's/^/      /'
        failed=1
    fi
}

export ASAN_OPTIONS=symbolize=0:detect_leaks=0
case_ 'AddressSanitizer, gcc' 'gcc -O1 -fsanitize=address' env "$work/canary" overrun
case_ 'AddressSanitizer, clang' 'clang-19 -O1 -fsanitize=address -DMULTIMAX_NO_AVX512' env "$work/canary" overrun
case_ 'MemorySanitizer' 'clang-19 -O1 -fsanitize=memory -DMULTIMAX_NO_AVX512' env "$work/canary" written
case_ 'Valgrind, gcc -O1' 'gcc -O1 -DMULTIMAX_NO_AVX512' valgrind --quiet --error-exitcode=99 "$work/canary" written
exit $failed
