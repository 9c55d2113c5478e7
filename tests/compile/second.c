/* The other file of first.c's program. */
#include "multimax.h"
#include "use.h"
#include "second.h"

int second_use(void) { return use_multimax(); }

int second_isa(void) { return (int)mmax_isa_active(); }

void second_softmax(float *y, const float *x, size_t n) { (void)mmax_softmax_f32(y, x, mmax_row(n)); }
