/* The header alone, nothing of it used: no warning, no symbol. */
#include "multimax.h"

extern int the_only_symbol;
int the_only_symbol = 1;
