/* A copy in a folder that is not itself an include directory. */
#include "vendor/multimax.h"
#include "use.h"

int main(void) { return use_multimax(); }
