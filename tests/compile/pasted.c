/* With pasted.h, which run.sh makes: as macros, the names of which the header makes others, and no one else has. */
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pasted.h"

#include "multimax.h"
#include "use.h"

int main(void) { return use_multimax(); }
