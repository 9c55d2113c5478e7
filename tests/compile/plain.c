/* Plain mode: included anywhere, more than once, no macro at all. What the compiler was told still holds after. */
#if defined(__AVX2__)
#    define HAD_AVX2 1
#else
#    define HAD_AVX2 0
#endif
#if defined(__AVX512F__)
#    define HAD_AVX512 1
#else
#    define HAD_AVX512 0
#endif
#if defined(__FAST_MATH__)
#    define HAD_FAST_MATH 1
#else
#    define HAD_FAST_MATH 0
#endif

#include "multimax.h"
#include "multimax.h"

#if defined(__AVX2__) && !HAD_AVX2
#    error "the header leaves AVX2 switched on"
#endif
#if defined(__AVX512F__) && !HAD_AVX512
#    error "the header leaves AVX-512 switched on"
#endif
#if defined(__FAST_MATH__)
#    if !HAD_FAST_MATH
#        error "the header leaves fast-math switched on"
#    endif
#elif HAD_FAST_MATH
#    error "the header leaves fast-math switched off"
#endif

#include "use.h"

int main(void) { return use_multimax(); }
