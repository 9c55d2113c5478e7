/*
 * Macros that real projects have defined by the time they include a header: <complex.h>, <windows.h>, X11, game and
 * GPU code, numerical exercises. Whatever expands to `poisoned` breaks the header that uses the name.
 */
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#undef I
#undef M_PI
#define poisoned ]]
#define min(a, b)      poisoned
#define max(a, b)      poisoned
#define abs(a)         poisoned
#define fma(a, b, c)   poisoned
#define clamp(a, b, c) poisoned
#define swap(a, b)     poisoned
#define sqr(a)         poisoned
#define lerp(a, b, c)  poisoned
#define round_up(a, b) poisoned
#define MIN(a, b)      poisoned
#define MAX(a, b)      poisoned
#define ABS(a)         poisoned
#define CAT(a, b)      poisoned
#define CONCAT(a, b)   poisoned
#define STR(a)         poisoned
#define STRINGIFY(a)   poisoned
#define COUNT(a)       poisoned
#define ALIGN(a)       poisoned
#define likely(a)      poisoned
#define unlikely(a)    poisoned
#ifndef __cplusplus
#    if defined(__clang__)
#        pragma clang diagnostic ignored "-Wkeyword-macro"
#    endif
#    define restrict
#endif
#define near
#define far
#define pascal
#define cdecl
#define used          poisoned
#define unused        poisoned
#define nothrow       poisoned
#define noinline      poisoned
#define always_inline poisoned
#define cold          poisoned
#define small         poisoned
#define interface     poisoned
#define hyper         poisoned
#define real          poisoned
#define vec           poisoned
#define vec2          poisoned
#define vec4          poisoned
#define load(a)       poisoned
#define store(a)      poisoned
#define select(a)     poisoned
#define uint          poisoned
#define byte          poisoned
#define M_PI          poisoned
#define PI            poisoned
#define EPS           poisoned
#define EPSILON       poisoned
#define INF           poisoned
#define LN2           poisoned
#define LOG2E         poisoned
#define LANES         poisoned
#define VEC           poisoned
#define REAL          poisoned
#define TYPE          poisoned
#define NAME          poisoned
#define SUFFIX        poisoned
#define INLINE        poisoned
#define FORCE_INLINE  poisoned
#define ALWAYS_INLINE poisoned
#define TARGET        poisoned
#define KERNEL        poisoned
#define ISA           poisoned
#define BLOCK         poisoned
#define API           poisoned
#define IN            poisoned
#define OUT           poisoned
#define OPTIONAL      poisoned
#define ERROR         poisoned
#define TRUE          poisoned
#define FALSE         poisoned
#define True          poisoned
#define False         poisoned
#define None          poisoned
#define Status        poisoned
#define Success       poisoned
#define Bool          poisoned
#define DOMAIN        poisoned
#define OVERFLOW      poisoned
#define UNDERFLOW     poisoned
#define B0            poisoned
#define A             poisoned
#define B             poisoned
#define C             poisoned
#define D             poisoned
#define E             poisoned
#define F             poisoned
#define G             poisoned
#define H             poisoned
#define I             poisoned
#define J             poisoned
#define K             poisoned
#define L             poisoned
#define M             poisoned
#define N             poisoned
#define P             poisoned
#define Q             poisoned
#define R             poisoned
#define S             poisoned
#define T             poisoned
#define U             poisoned
#define V             poisoned
#define W             poisoned
#define X             poisoned
#define Y             poisoned
#define Z             poisoned

#ifndef WITHOUT_MULTIMAX
#    include "multimax.h"
#    include "use.h"

int main(void) { return use_multimax(); }
#endif
