/* A copy under another name; MULTIMAX_FILE is that name. */
#define MULTIMAX_FILE "our_attention.h"
#include "our_attention.h"
#include "use.h"

int main(void) { return use_multimax(); }
