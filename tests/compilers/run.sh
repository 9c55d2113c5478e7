#!/bin/sh
# run.sh [PATTERN...]: the header with other compilers, flags and machines than those of the presets. One line a case:
# compiler, flags, and what came of it, among it the arithmetic whose pinned checksums each instruction set gave.
#
#     sh tests/compilers/run.sh                         all: two hours and more on one core
#     sh tests/compilers/run.sh s390x 'clang-19*-O2'    the cases whose name begins with one of the patterns
#
# Everything on Debian 12 as root; what is not there is skipped:
#     apt-get install -y gcc clang clang-19 qemu-user gcc-i686-linux-gnu libc6-dev-i386-cross gcc-arm-linux-gnueabihf \
#         libc6-dev-armhf-cross gcc-riscv64-linux-gnu libc6-dev-riscv64-cross gcc-s390x-linux-gnu \
#         libc6-dev-s390x-cross gcc-mingw-w64-x86-64 gcc-mingw-w64-i686 wine64 tcc wasi-libc
set -uf
tests=$(cd "$(dirname "$0")/.." && pwd) || exit 2
include=$tests/../include
patterns=$*
failed=0
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
export WINEPREFIX="$work/wine" WINEDEBUG=-all
printf '#define MULTIMAX_IMPLEMENTATION\n#include "multimax.h"\n' >header.c
printf '#include "multimax.h"\nint main(void) { return mmax_isa_active() == MMAX_ISA_COUNT; }\n' >plain.c

# chosen TITLE COMMAND...: whether the case is asked for, and the first word of each command is installed.
chosen() {
    title=$1
    shift
    wanted=${patterns:+no}
    for pattern in $patterns; do
        case $title in $pattern*) wanted= ;; esac
    done
    [ -z "$wanted" ] || return 1
    for program in "$@"; do
        if ! command -v "${program%% *}" >/dev/null; then
            printf 'skip  %-76s %s\n' "$title" "${program%% *} is not installed"
            return 1
        fi
    done
}

# result VERDICT TEXT: the line of the case; a failed one shows the end of its log.
result() {
    printf '%-5s %-76s %s\n' "$1" "$title" "$2"
    if [ "$1" = FAIL ]; then
        failed=$((failed + 1))
        grep -vE '^- |^  [a-z]' log | head -6 | sed 's/^/      /'
    fi
}

# build CC FLAGS TEST: program.exe. The header has the flags; so has the test, unless $oracle replaces them.
build() {
    $1 $2 -w -DMULTIMAX_EXTERN -DLENGTH_STEP=${step:-8} -I"$include" -I"$tests" ${oracle:+-O1} -c "$tests/test_$3.c" \
        ${oracle:+$oracle} -o test.o && $1 $2 ${static--static} test.o header.o -o program.exe -lm ${libraries-}
}

# run TITLE CC FLAGS EMULATOR TESTS: the programs with the header compiled once.
run() {
    chosen "$1" "$2" ${4:+"$4"} || return 0
    said=
    if ! $2 $3 -w -DMULTIMAX_EXTERN -I"$include" -c header.c -o header.o >log 2>&1; then
        result FAIL "does not compile"
        return
    fi
    for test in $5; do
        if ! build "$2" "$3" "$test" >log 2>&1; then
            result FAIL "test_$test does not build"
            return
        fi
        $4 ./program.exe "$tests/golden" >log 2>&1
        status=$?
        tr -d '\r' <log >lines && mv lines log
        if [ "$status" -ne 0 ] || ! grep -q ' 0 failed' log; then
            result FAIL "test_$test fails with status $status"
            return
        fi
        said="$said, $test"
        if [ "$test" = checksum ]; then
            found=$(sed -nE 's/^  ([a-z0-9]+) +[0-9a-f]{16} (fused|separate|not compared).*/\1 \2,/p' log | paste -sd' ')
            said="$said (${found%,})"
        fi
    done
    result ok "${said#, }"
}

# compile TITLE COMMAND WHAT: only that it compiles, without warnings where COMMAND asks for them.
compile() {
    chosen "$1" "$2" || return 0
    if $2 >log 2>&1; then
        result ok "$3"
    else
        result FAIL "does not compile"
    fi
}

three='special_cases golden checksum'
warnings='-std=c99 -pedantic -Wall -Wextra -Wconversion -Wshadow -Wundef -Werror'

# ---- this machine ----
static=
for cc in gcc clang clang-19; do
    for flags in -O0 -Os -O2 '-O3 -march=native' '-O2 -std=gnu11' '-O2 -ffp-contract=fast' \
        '-O2 -march=native -ffp-contract=fast'; do
        run "$cc $flags" "$cc" "$flags" '' "$three"
    done
    # What the flag allows, the oracle must not do.
    for flags in '-O2 -funsafe-math-optimizations' '-O2 -march=native -funsafe-math-optimizations'; do
        oracle=-fno-unsafe-math-optimizations
        run "$cc $flags" "$cc" "$flags" '' 'special_cases golden forward'
        oracle=
    done
    # Bits may differ here; what is special may not.
    for flags in '-O1 -ffast-math' '-O3 -ffast-math -march=native' '-O3 -ffast-math -DMULTIMAX_NO_SIMD'; do
        oracle=-fno-fast-math
        run "$cc $flags" "$cc" "$flags" '' 'special_cases golden forward losses'
        oracle=
    done
done
run 'tcc' tcc '-DMULTIMAX_NO_SIMD' '' "$three"
run 'tcc by itself' tcc '' '' "$three"
static=-static

# ---- x86 of 32 bits: the x87 is refused, ../compile and ../configurations have its cases ----
run 'i686-linux-gnu-gcc -msse2 -mfpmath=sse' i686-linux-gnu-gcc '-O1 -msse2 -mfpmath=sse' '' "$three"

# ---- other machines, by emulation ----
run 'arm-linux-gnueabihf-gcc' arm-linux-gnueabihf-gcc '-O1' 'qemu-arm' "$three"
run 'arm-linux-gnueabihf-gcc -mfpu=vfpv4' arm-linux-gnueabihf-gcc '-O1 -mfpu=vfpv4' 'qemu-arm' "$three"
run 'riscv64-linux-gnu-gcc' riscv64-linux-gnu-gcc '-O1' 'qemu-riscv64' "$three"
run 's390x-linux-gnu-gcc' s390x-linux-gnu-gcc '-O1' 'qemu-s390x' "$three"

# ---- Windows ----
run 'x86_64-w64-mingw32-gcc -O1' x86_64-w64-mingw32-gcc '-O1' "${WINE-/usr/lib/wine/wine64}" "$three"
aligned=-DMULTIMAX_ALIGNED_STACK # Debian's gcc does that
run "x86_64-w64-mingw32-gcc -O0 $aligned" x86_64-w64-mingw32-gcc "-O0 $aligned" "${WINE-/usr/lib/wine/wine64}" "$three"
run "x86_64-w64-mingw32-gcc -O2 $aligned" x86_64-w64-mingw32-gcc "-O2 $aligned" "${WINE-/usr/lib/wine/wine64}" "$three"
run "x86_64-w64-mingw32-gcc -O2 -march=native $aligned" x86_64-w64-mingw32-gcc "-O2 -march=native $aligned" \
    "${WINE-/usr/lib/wine/wine64}" "$three"
compile 'i686-w64-mingw32-gcc' "i686-w64-mingw32-gcc -O2 -msse2 -mfpmath=sse -I$include plain.c -o plain.exe" 'links'
mingw="--target=x86_64-w64-windows-gnu -isystem /usr/x86_64-w64-mingw32/include"
compile 'clang-19 --target=x86_64-w64-windows-gnu' "clang-19 $mingw $warnings -O2 -I$include -c plain.c" 'compiles'
# The little of Microsoft's C library that the header needs.
mkdir msvc
printf 'double fma(double, double, double);\nfloat fmaf(float, float, float);\ndouble sqrt(double);\n' >msvc/math.h
printf '#include <stddef.h>\nvoid *memcpy(void *, const void *, size_t);\nvoid *memset(void *, int, size_t);\n' \
    >msvc/string.h
for target in x86_64-pc-windows-msvc aarch64-pc-windows-msvc; do
    compile "clang-19 --target=$target" \
        "clang-19 --target=$target -ffreestanding -isystem msvc $warnings -O2 -I$include -c plain.c" 'compiles'
done
compile 'clang-19 -fms-compatibility -fms-extensions' \
    "clang-19 -fms-compatibility -fms-extensions -O2 $warnings -I$include -c plain.c" 'compiles'

# ---- WebAssembly without Emscripten ----
for flags in '' '-msimd128'; do
    compile "clang-19 --target=wasm32-wasi $flags" \
        "clang-19 --target=wasm32-wasi -isystem /usr/include/wasm32-wasi $flags $warnings -O2 -I$include -c plain.c" \
        'compiles'
done

[ "$failed" -eq 0 ]
