/* The one file that holds the code in shared mode. -DDECLARED_BEFORE: something has included the header before. */
#ifdef DECLARED_BEFORE
#    include "multimax.h"
#endif
#define MULTIMAX_IMPLEMENTATION
#include "multimax.h"
