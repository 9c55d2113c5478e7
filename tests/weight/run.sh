#!/bin/sh
# run.sh INCLUDE_DIR CC [OBJECT]: what including multimax.h costs, against budgets. OBJECT is the implementation of
# shared mode as gcc -O2 -fstack-usage -ffunction-sections -fdata-sections compiles it for every instruction set of
# x86-64, with its .su file beside it; without one, bytes and stack are left out.
set -u

max_code_lines=5835        # of the implementation, without comments and blank lines
max_conditionals=103       # #if, #ifdef, #ifndef, #elif
max_backslash_lines=150    # lines that end in a backslash
max_macro_lines=12         # of the longest macro
max_softmax_bytes=78000    # a program's file that calls one softmax in plain mode, text and data
max_all_bytes=925000       # all functions, in shared mode
max_linked_bytes=88500      # a program that calls one softmax in shared mode, if the linker drops what is not called
max_stack_bytes=19000      # the largest frame of a function

if [ $# -ne 2 ] && [ $# -ne 3 ]; then
    echo "usage: run.sh INCLUDE_DIR CC [OBJECT]" >&2
    exit 2
fi
header=$1/multimax.h
cc=$2
object=${3:-}
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
failed=0

# at_most BUDGET NUMBER WHAT. A number that could not be found is a failure.
at_most() {
    verdict=ok
    if ! [ "$2" -gt 0 ] 2>/dev/null || [ "$2" -gt "$1" ]; then
        verdict=FAIL
        failed=1
    fi
    printf '%-5s %8s of %8s  %s\n' "$verdict" "$2" "$1" "$3"
}

bytes() { size "$1" | awk 'NR == 2 { print $1 + $2 }'; }

# Lines from the design page on that have something beside comments.
code_lines() {
    sed -n '/^\/\* ==== design ====/,$p' "$1" | awk '{
        rest = $0; code = ""
        while (length(rest) > 0) {
            at = index(rest, inside ? "*/" : "/*")
            if (!inside) { code = code (at ? substr(rest, 1, at - 1) : rest) }
            rest = at ? substr(rest, at + 2) : ""
            if (at) { inside = !inside }
        }
        if (code ~ /[^ \t]/) { ++count }
    } END { print count + 0 }'
}
at_most $max_code_lines "$(code_lines "$header")" 'code lines of the implementation'
at_most $max_conditionals "$(grep -cE '^[ 	]*#[ 	]*(el)?if' "$header")" 'preprocessor conditionals'
at_most $max_backslash_lines "$(grep -c '\\$' "$header")" 'lines that end in a backslash'
at_most $max_macro_lines "$(awk '!open && /^[ \t]*#[ \t]*define/ { open = 1; lines = 0 }
                                 open { ++lines; if (lines > most) { most = lines } }
                                 !/\\$/ { open = 0 }
                                 END { print most }' "$header")" 'lines of the longest macro'

# A function named by a macro is one that editors do not find.
if ctags --version 2>/dev/null | grep -q Ctags; then
    ctags -x --language-force=C --c-kinds=f "$header" >"$work/functions"
    if ! grep -q '^mmax_' "$work/functions" || grep '^MMAX_' "$work/functions"; then
        echo 'FAIL  ctags finds no functions, or takes these macros for functions'
        failed=1
    fi
fi

if [ -n "$object" ]; then
    cat >"$work/softmax.c" <<'END'
#include "multimax.h"
int main(void) {
    float x[4] = {2, 1, 0, -1};
    return mmax_softmax_f32(x, x, mmax_row(4)) != MMAX_OK;
}
END
    "$cc" -std=c99 -O2 -I"$1" -c "$work/softmax.c" -o "$work/softmax.o" || failed=1
    at_most $max_softmax_bytes "$(bytes "$work/softmax.o")" 'bytes of one softmax'
    at_most $max_all_bytes "$(bytes "$object")" 'bytes of all functions'
    "$cc" -std=c99 -O2 -DMULTIMAX_EXTERN -I"$1" "$work/softmax.c" "$object" -Wl,--gc-sections -lm -o "$work/linked" || failed=1
    at_most $max_linked_bytes "$(bytes "$work/linked")" 'bytes of one softmax that is linked'
    usage=${object%.o}.su
    [ -f "$usage" ] || usage=${object%.c.o}.su
    at_most $max_stack_bytes "$(awk -F '\t' '$2 > most { most = $2 } END { print most }' "$usage")" \
        'bytes of the largest stack frame'
    if awk -F '\t' '$3 == "dynamic"' "$usage" | grep .; then
        echo 'FAIL  these frames have no bound'
        failed=1
    fi
fi

exit $failed
