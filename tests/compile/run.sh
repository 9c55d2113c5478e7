#!/bin/sh
# run.sh CC CXX INCLUDE_DIR [OBJECT]: every way to include multimax.h that the contract names. One line a case; the
# first failure ends it. CXX may be empty: no C++ then. OBJECT is the implementation of shared mode, compiled before,
# which takes longest. RUN, if set, is put before each program (an emulator).
#
# Cases about the language, macros and linkage take what compiles fast: a check of the syntax for every instruction set,
# a program for one, all functions with -O1 (gcc takes three times as long with -O0) and in plain C. Objects are kept
# where a later case can use them. QUICK, if set, leaves out what takes longest.
set -u
if [ $# -ne 3 ] && [ $# -ne 4 ]; then
    echo "usage: run.sh CC CXX INCLUDE_DIR [OBJECT]" >&2
    exit 2
fi
cc=$1
cxx=$2
include=$(cd "$3" && pwd) || exit 2
header=$include/multimax.h
implementation=${4:+$(cd "$(dirname "$4")" && pwd)/$(basename "$4")}
run=${RUN:-}
quick=${QUICK:-}
nm=${NM:-nm}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2

warnings="-pedantic -Wall -Wextra -Wconversion -Wshadow -Wundef -Wunused -Werror"
c99="$cc -std=c99 $warnings -I$here"
c="$c99 -O2 -I$include"
c0="$c99 -O0 -I$include"
cpp="$cxx -x c++ -std=c++11 $warnings -O2 -I$here -I$include"
one="-DMULTIMAX_NO_DISPATCH"
small="-O1 -DMULTIMAX_NO_SIMD"

# case TITLE COMMAND: the shell command must succeed.
case_() {
    if (eval "$2") >log 2>&1; then
        echo "ok    $1"
    else
        echo "FAIL  $1"
        echo "      $2"
        sed 's/^/      /' log | head -40
        exit 1
    fi
}

# The same for commands that take a C++ compiler.
case_cxx() {
    if [ -n "$cxx" ]; then
        case_ "$@"
    else
        echo "skip  $1"
    fi
}

# all_names: functions of the contract that are symbols of shared mode.
all_names() {
    for type in f32 f64; do
        for name in softmax multimax sparsemax entmax15 evsoftmax tanhmax seglu log_softmax log_multimax; do
            echo mmax_${name}_$type
            echo mmax_${name}_backward_$type
        done
        for name in softmax multimax sparsemax entmax15 evsoftmax; do
            echo mmax_${name}_loss_$type
        done
        echo mmax_multimodality_$type
        echo mmax_sparsity_$type
    done
    for name in status_string multimax_identity multimax_from_checkpoint multimax_to_checkpoint isa_active \
        isa_available isa_select isa_name; do
        echo mmax_$name
    done
}

# globals OBJECT: the names that it defines for the linker. wants OBJECT: the names that it needs.
globals() { $nm -g "$1" | awk '$(NF-1) != "U" && $(NF-1) != "w" && NF >= 2 { print $NF }' | sort; }
wants() { $nm -u "$1" | awk '{ print $NF }' | sort; }

# writable OBJECT: its data, but for constants that the loader relocates.
writable() {
    objdump -t "$1" 2>/dev/null | awk '/\.data\.rel\.ro/ { print $NF }' >constants
    $nm "$1" | grep -i ' [bdc] ' | grep -vwFf constants
}

# empty FILE: whether it is; shows it otherwise.
empty() { cat "$1"; [ ! -s "$1" ]; }

# left_macros COMMAND...: macros that multimax.h itself defines and leaves, but for those with its prefixes.
left_macros() {
    "$@" | awk '/^# [0-9]+ "/ { own = $3 ~ /multimax\.h"$/ }
                /^#define / { sub(/\(.*/, "", $2); if (own) { left[$2] = 1 } }
                /^#undef / { delete left[$2] }
                END { for (name in left) { if (name !~ /^(MULTIMAX_|MMAX_|mmax_)/) { print name } } }' | sort
}

# refuses COMMAND TEXT: whether the command fails with an error that matches.
refuses() {
    if eval "LC_ALL=C $1" >said 2>&1; then
        echo "it compiles: $1"
        return 1
    fi
    grep -E 'error:' said | grep -Eie "$2" >/dev/null || { cat said; return 1; }
}
# The same with no other error: nothing else of the header is read then.
refuses_once() { refuses "$@" && [ "$(grep -c 'error:' said)" = 1 ] || { cat said; return 1; }; }
# accepts FLAG: whether the C compiler knows it, and finds its headers then.
accepts() { printf '#include <math.h>\n' | $cc $1 -x c -fsyntax-only - 2>/dev/null; }

# ---- plain ----
if [ -z "$quick" ]; then
    for level in "-O3 $one" -Ofast -O2; do
        case_ "plain, C99 pedantic, $level" \
            "$c99 $level -I$include -c $here/plain.c -o plain.o && $cc plain.o -o plain -lm && $run ./plain"
    done
fi
case_ "plain, C99 pedantic, -O0" \
    "$c99 -O0 -I$include -c $here/plain.c -o plain.o && $cc plain.o -o plain -lm && $run ./plain"
# plain and plain.o are those of -O0 from here on.
version=$(printf '#include "multimax.h"\nMULTIMAX_VERSION\n' >version.c &&
    $cc -std=c99 -DMULTIMAX_EXTERN -I"$include" -E version.c | tail -1 | tr -d '"')
case_ "strings finds the version, $version" \
    "strings -a plain.o | grep -i multimax | grep -F '$version' &&
     strings -a plain | grep -i multimax | grep -F '$version'"
case_ "no symbol but main leaves the object" "globals plain.o && [ \"\$(globals plain.o | tr -d _)\" = main ]"
standards="gnu99 c11 gnu11 c17" cpp_standards="c++11 c++14 c++17 gnu++17 c++20"
[ -z "$quick" ] || standards=gnu99 cpp_standards=c++20
for std in $standards; do
    case_ "plain, $std" "$cc -std=$std $warnings -I$here -I$include -fsyntax-only $here/plain.c"
done
for std in $cpp_standards; do
    case_cxx "plain, $std" "$cxx -x c++ -std=$std $warnings -I$here -I$include -fsyntax-only $here/plain.c"
done
if [ -z "$quick" ]; then
    case_cxx "plain, C++11, built and run" "$cpp -O0 $here/plain.c -o plain_cpp -lm && $run ./plain_cpp"
    for macro in MULTIMAX_NO_DISPATCH MULTIMAX_NO_SIMD; do
        case_ "plain, $macro" "$c -O0 -D$macro $here/plain.c -o one -lm && $run ./one"
        case_cxx "plain, $macro, C++" "$cpp -O0 -D$macro $here/plain.c -o one -lm && $run ./one"
    done
    case_ "plain, MULTIMAX_NO_AVX512: none of it is there" \
        "$c -O0 -DMULTIMAX_NO_AVX512 -c $here/plain.c -o one.o && $cc one.o -o one -lm && $run ./one &&
         { $nm one.o | grep -E 'mmax_.*avx512' >left; empty left; }"
fi

# ---- nothing leaves the file ----
case_ "nothing used: no warning, no symbol" \
    "$c0 -c $here/unused.c -o unused.o && [ \"\$(globals unused.o | tr -d _)\" = theonlysymbol ]"
case_cxx "nothing used, C++" \
    "$cpp -c $here/unused.c -o unused.o && [ \"\$(globals unused.o | tr -d _)\" = theonlysymbol ]"
case_ "no macro is left behind but those with the prefixes of the library" \
    "left_macros $cc -std=c99 -I$include -dD -E $here/unused.c >left; empty left"
case_ "none in declarations, and none beside the implementation" \
    "left_macros $cc -std=c99 -DMULTIMAX_EXTERN -I$include -dD -E $here/unused.c >left &&
     left_macros $cc -std=c99 -DMULTIMAX_EXTERN -I$include -dD -E $here/implementation.c | grep -v '^MULTIMAX_' >>left;
     empty left"
case_cxx "none in C++" \
    "left_macros $cxx -x c++ -std=c++11 -I$include -dD -E $here/unused.c >left; empty left"
case_ "the including file's warnings stay alive" \
    "LC_ALL=C $c -Wno-error -c $here/leftovers.c -o leftovers.o 2>warnings &&
     grep -n 'warned of' $here/leftovers.c | cut -d: -f1 >expected;
     sed -n 's/^.*leftovers\.c:\([0-9]*\):[0-9]*: warning:.*/\1/p' warnings | sort -nu | diff expected -"

[ -n "$quick" ] || case_ "shared, for one instruction set, at -O2" \
    "$c -DMULTIMAX_EXTERN $one -c $here/implementation.c -o implementation.o"

# ---- hostile macros ----
case_ "hostile macros" "$c -fsyntax-only $here/hostile.c"
[ -n "$quick" ] || case_ "hostile macros, no dispatch" "$c -O0 $one $here/hostile.c -o hostile -lm && $run ./hostile"
case_cxx "hostile macros, C++" "$cpp -fsyntax-only $here/hostile.c"
[ -n "$quick" ] ||
    case_cxx "hostile macros, C++, no dispatch" "$cpp -O0 $one $here/hostile.c -o hostile -lm && $run ./hostile"
case_ "hostile macros are what they were" \
    "$cc -std=c99 -I$here -I$include -dM -E -DWITHOUT_MULTIMAX $here/hostile.c | grep -v WITHOUT | sort >before &&
     $cc -std=c99 -I$here -I$include -dM -E $here/hostile.c | sort >after && comm -23 before after >lost;
     empty lost"

# What the header makes other names of is no name of its own: no macro of the user's takes part. Those that it has as
# they are, or the C library, are the words of what comes out of the preprocessor.
pasted() {
    $cc -std=c99 -I"$include" -E -P "$here/unused.c" | sed 's/"[^"]*"//g' | grep -oE '[A-Za-z_][A-Za-z0-9_]*' |
        sort -u >words
    {
        sed -nE 's/^#.* MMAX_[A-Z_]+\(([a-z0-9_]+)\)$/\1/p' "$header"
        all_names | sed -E 's/^mmax_//; s/_f[0-9]+$//'
        printf '%s\n' f32 f64 scalar portable sse2 avx2 avx512 neon wasm128
    } | sort -u | comm -23 - words | sed 's/.*/#define & ]]/'
}
case_ "no name that the header pastes is expanded" \
    "pasted >pasted.h && [ \$(grep -cwE 'f32|f64|portable|avx2|softmax|topk|entmax' pasted.h) = 7 ] &&
     $c -I. -fsyntax-only $here/pasted.c && $c -I. -DMULTIMAX_IMPLEMENTATION -fsyntax-only $here/pasted.c &&
     $c -I. -DMULTIMAX_EXTERN -fsyntax-only $here/pasted.c"
case_cxx "no name that the header pastes is expanded, C++" \
    "$cpp -I. -fsyntax-only $here/pasted.c && $cpp -I. -DMULTIMAX_IMPLEMENTATION -fsyntax-only $here/pasted.c"
for mode in '' -DMULTIMAX_IMPLEMENTATION; do
    case_ "no macro is a public function without its type $mode" \
        "$cc -std=c99 -DMULTIMAX_EXTERN -I$include -E $here/unused.c | grep -oE 'mmax_[a-z0-9_]+_f32' |
         sed 's/_f32//' | sort -u >public && [ \$(wc -l <public) -gt 40 ] &&
         $cc -std=c99 $mode -I$include -dM -E $here/unused.c | sed -nE 's/^#define (mmax_[a-z0-9_]+).*/\1/p' | sort |
         comm -12 public - >left; empty left"
done

# ---- what is refused ----
printf '#include "multimax.h"\n#define MULTIMAX_IMPLEMENTATION\n#include "multimax.h"\n' >late.c
case_ "MULTIMAX_IMPLEMENTATION after a plain include" \
    "refuses_once '$cc -std=c99 -I$include -fsyntax-only late.c' MULTIMAX_IMPLEMENTATION"
case_ "MULTIMAX_IMPLEMENTATION after declarations" \
    "refuses_once '$cc -std=c99 -DMULTIMAX_EXTERN -I$include -fsyntax-only late.c' MULTIMAX_IMPLEMENTATION"
case_cxx "MULTIMAX_IMPLEMENTATION after declarations, C++" \
    "refuses_once '$cxx -x c++ -std=c++11 -DMULTIMAX_EXTERN -I$include -fsyntax-only late.c' MULTIMAX_IMPLEMENTATION"
for flag in -std=gnu90 -ansi; do
    case_ "C before C99: $flag" "refuses_once '$cc $flag -I$include -fsyntax-only $here/unused.c' 'C99.*-std=c99'"
done
for flag in -m32 '-m32 -std=c99' '-m32 -DMULTIMAX_NO_SIMD' '-m32 -march=pentium' -mfpmath=387 '-mfpmath=sse+387'; do
    case "$($cc -dumpmachine)" in x86_64* | amd64*) ;; *) continue ;; esac
    if accepts "$flag"; then
        case_ "arithmetic of the x87: $flag" \
            "refuses_once '$cc $flag -I$include -fsyntax-only $here/unused.c' '-msse2 -mfpmath=sse' &&
             $cc $flag -DMULTIMAX_EXTERN -I$include -fsyntax-only $here/plain.c"
    fi
done
if accepts -fgnu-tm; then
    case_ "transactions: -fgnu-tm" "refuses_once '$cc -fgnu-tm -O1 -I$include -fsyntax-only $here/unused.c' fgnu-tm"
fi
if [ -z "$quick" ] && accepts -ftree-parallelize-loops=2; then
    case_ "loops are not taken apart: -ftree-parallelize-loops=2" \
        "$cc -std=c99 -O2 -ftree-parallelize-loops=2 -I$include -c $here/plain.c -o parallel.o &&
         $cc parallel.o -o parallel -lm && $run ./parallel"
fi

# ---- several files ----
case_ "two plain files in one program" \
    "$c0 -c $here/first.c -o first.o && $c0 -c $here/second.c -o second.o && $cc first.o second.o -o two -lm &&
     $run ./two"
if [ -z "$quick" ]; then
    case_cxx "two plain files, C and C++" \
        "$cpp -O0 -c $here/second.c -o second.o && $cxx first.o second.o -o two -lm && $run ./two"
    case $($cc -dumpmachine) in
    x86_64* | amd64*)
        case_ "two files, one compiled with -mavx2 -mfma" \
            "$c0 -mavx2 -mfma -c $here/second.c -o second.o && $cc first.o second.o -o two -lm &&
             { ! grep -q avx2 /proc/cpuinfo || $run ./two; }"
        for flag in -march=native -mno-sse3; do
            case_ "two files, one compiled with $flag" \
                "$c0 $flag -c $here/second.c -o second.o && $cc first.o second.o -o two -lm && $run ./two"
        done
        ;;
    esac
fi

# ---- shared ----
# The whole implementation is compiled for every instruction set once; further ways to compile it take plain C.
extern_="-DMULTIMAX_EXTERN"
case_ "shared mode" \
    "{ [ -n '$implementation' ] && cp '$implementation' implementation.o ||
       $c $extern_ -c $here/implementation.c -o implementation.o; } &&
     $c $extern_ -c $here/plain.c -o plain.o && $cc plain.o implementation.o -o shared -lm && $run ./shared"
# Both compilers have -fpack-struct=N; gcc's without N cannot be overruled.
case_ "a packing that is left on changes no public structure" \
    "$c $extern_ $here/packed.c implementation.o -o packed -lm && $run ./packed >layout &&
     for packing in -DPACKED=1 -DPACKED=2 -DPACKED=4 -fpack-struct=1 -fpack-struct=4; do
         $c $extern_ \$packing $here/packed.c implementation.o -o packed -lm && $run ./packed | diff layout - || exit 1
     done
     $c -O1 $one -DPACKED=1 $here/packed.c -o packed -lm && $run ./packed | diff layout -"
case_ "-fpack-struct changes none, or is refused" \
    "$c -w $extern_ -fpack-struct $here/packed.c implementation.o -o packed -lm 2>/dev/null &&
         $run ./packed | diff layout - ||
     refuses '$c -w -fpack-struct $extern_ -fsyntax-only $here/packed.c' 'fpack_struct'"
case_ "shared mode: the user's object holds no code of it" "$nm plain.o | grep -v ' U ' | grep mmax_ >code; empty code"
case_ "shared mode: every global name of the implementation is mmax_" \
    "globals implementation.o | sed 's/^_//' | grep -v '^mmax_' >others; empty others"
case_ "shared mode: every function of the contract is there" \
    "all_names | sort >all; globals implementation.o | sed 's/^_mmax/mmax/' | sort >there;
     comm -23 all there >missing; empty missing"
case_ "no heap, no transcendental of libm" \
    "wants implementation.o >wanted; grep -E \
     '^_?(malloc|calloc|realloc|free|(exp|exp2|expm1|log|log2|log1p|pow|sinh|cosh|tanh|ldexp)f?)\$' wanted >unwanted;
     empty unwanted"
case_ "the only writable data is the chosen instruction set" \
    "writable implementation.o >written; cat written; [ \$(wc -l <written) -le 1 ]"
case_ "shared mode: declarations parse no intrinsics header" \
    "$cc -std=c99 $extern_ -I$include -E $here/unused.c >declarations &&
     ! grep -E '^# [0-9]+ \".*(intrin|arm_neon|wasm_simd128|cpuid)\\.h\"' declarations"
if [ -n "$quick" ]; then
    echo "all compile cases but the longest passed with $cc${cxx:+ and $cxx}"
    exit 0
fi

# plain.o is the one with declarations alone from here on.
case_ "shared mode, without -fpic" \
    "$c $extern_ $small -fno-pic -c $here/implementation.c -o implementation.o &&
     $cc -no-pie plain.o implementation.o -o shared -lm && $run ./shared"
case_cxx "shared mode, C++ program and C implementation" \
    "$cpp $extern_ -c $here/plain.c -o plain_cpp.o && $cxx -no-pie plain_cpp.o implementation.o -o shared -lm &&
     $run ./shared"
# The implementation as C++ where there is a compiler for it.
[ -z "$cxx" ] && c_or_cpp=$c || c_or_cpp=$cpp
case_ "shared mode: MULTIMAX_API stands before every declaration" \
    "$c_or_cpp $extern_ $small -fPIC -fvisibility=hidden -DMULTIMAX_API='__attribute__((visibility(\"default\")))' \
     -c $here/implementation.c -o implementation.o && $cc -shared implementation.o -o libshared.so -lm &&
     $nm -D libshared.so | awk '\$2 == \"T\" { print \$3 }' | sort >there && comm -23 all there >missing;
     empty missing"
case_cxx "shared mode, C program and C++ implementation" "$cc plain.o implementation.o -o shared -lm && $run ./shared"

# ---- stb habit ----
case_ "stb habit" "$c $small -c $here/stb.c -o stb.o && $cc stb.o -o stb -lm && $run ./stb"
case_ "stb habit: the code has external linkage" "globals stb.o >there && grep -q mmax_softmax_f32 there"
case_ "stb habit, another file plain" \
    "$c $small -c $here/second.c -o second.o && $cc stb.o second.o -o stb -lm && $run ./stb"
case_ "stb habit, another file with declarations only" \
    "objcopy --redefine-sym main=stb_main stb.o stb_other.o && $cc stb_other.o plain.o -o stb -lm && $run ./stb"

# ---- copies ----
case_ "a renamed copy with MULTIMAX_FILE" \
    "mkdir -p copy && cp $header copy/our_attention.h &&
     $c99 -Icopy -fsyntax-only $here/renamed.c &&
     $c99 $small -Icopy $here/renamed.c -o renamed -lm && $run ./renamed"
case_ "a renamed copy without MULTIMAX_FILE, alone, and beside another version or a file from before versions were asked" \
    "mkdir -p copies && cp $header copies/our_attention.h &&
     refuses_once '$c99 -w -DWITHOUT -Icopies -fsyntax-only $here/renamed.c' 'define MULTIMAX_FILE' &&
     sed 's/MMAX_FILE_VERSION 10000/MMAX_FILE_VERSION 10001/' $header >copies/multimax.h &&
     refuses_once '$c99 -w -DWITHOUT -Icopies -fsyntax-only $here/renamed.c' 'define MULTIMAX_FILE' &&
     grep -v 'define MMAX_FILE_VERSION' $header >copies/multimax.h &&
     refuses_once '$c99 -w -DWITHOUT -Icopies -fsyntax-only $here/renamed.c' 'define MULTIMAX_FILE' &&
     $c99 -DWITHOUT -DMULTIMAX_EXTERN -Icopies -fsyntax-only $here/renamed.c"
case_ "the header is its own licence" \
    "grep -q 'SPDX-License-Identifier: MIT' $header && tail -n 25 $header | sed 's/^ \* \{0,1\}//' >tail &&
     sed -n '/^MIT License/,$ { /^\/\$/d; p; }' tail | diff - $include/../LICENSE"
case_ "a copy in a folder that is not an include directory" \
    "mkdir -p vendor && cp $header vendor/multimax.h &&
     $c99 -I. -fsyntax-only $here/vendored.c &&
     $c99 $small -I. $here/vendored.c -o vendored -lm && $run ./vendored"

# ---- what the compiler is told about numbers ----
for flag in -fsingle-precision-constant '-Xclang -cl-single-precision-constant'; do
    echo 'typedef char constants_are_floats[sizeof(1.0) == sizeof(float) ? 1 : -1];' >constants.c
    if $cc $flag -fsyntax-only constants.c 2>/dev/null; then
        case_ "constants that are floats are refused, $flag" \
            "refuses '$cc -std=c99 $flag -I$include -fsyntax-only $here/plain.c' 'constants.*double'"
        case_ "and where the implementation is compiled in shared mode" \
            "refuses '$cc $flag $extern_ -I$include -fsyntax-only $here/implementation.c' 'constants.*double'"
        case_cxx "and in C++" \
            "refuses '$cxx -x c++ -std=c++11 $flag -I$include -fsyntax-only $here/plain.c' 'constants.*double'"
    fi
done
# AVR's double has 4 bytes: what its compiler says of it, said by this one.
small_double="-U__SIZEOF_DOUBLE__ -D__SIZEOF_DOUBLE__=4 -U__DBL_MANT_DIG__ -D__DBL_MANT_DIG__=24"
if [ "$(echo __SIZEOF_DOUBLE__ | $cc -E -P -)" = 8 ]; then
    case_ "a double of 4 bytes is refused" \
        "refuses '$cc -std=c99 $small_double -I$include -fsyntax-only $here/plain.c' 'double of 8'"
    case_ "also where declarations are all" \
        "refuses '$cc -std=c99 $small_double $extern_ -I$include -fsyntax-only $here/plain.c' 'double of 8'"
    case_cxx "and in C++" \
        "refuses '$cxx -x c++ -std=c++11 $small_double -I$include -fsyntax-only $here/plain.c' 'double of 8'"
fi

# ---- at the link ----
# gcc compiles there and warns of what it sees then; -flto=auto says no word on how.
lto=-flto
if echo 'int main(void) { return 0; }' >link.c && $cc -flto=auto link.c -o link 2>/dev/null; then
    lto=-flto=auto
fi
if $cc $lto link.c -o link 2>/dev/null && $run ./link; then
    case_ "$lto: no warning, plain" "$c99 -O1 $lto -I$include $here/plain.c -o link -lm && $run ./link"
    case_ "$lto: no warning, with a file of shared mode" \
        "$c99 -O1 $lto $extern_ $one -I$include $here/plain.c $here/implementation.c -o link -lm && $run ./link"
else
    echo "skip  -flto"
fi

echo "all compile cases passed with $cc${cxx:+ and $cxx}"
