/* stb habit: MULTIMAX_IMPLEMENTATION in one file and nothing else anywhere. */
#define MULTIMAX_IMPLEMENTATION
#include "multimax.h"
#include "use.h"

int main(void) { return use_multimax(); }
