/* The one file that holds the code in shared mode. */
#define MULTIMAX_IMPLEMENTATION
#include "multimax.h"
