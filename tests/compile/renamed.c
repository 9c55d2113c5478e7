/* A copy under another name; MULTIMAX_FILE is that name. */
#if !defined(WITHOUT)
#    define MULTIMAX_FILE "our_attention.h"
#endif
#include "our_attention.h"
#include "use.h"

int main(void) { return use_multimax(); }
