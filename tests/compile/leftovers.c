/* Warnings that the including file asks for are alive after the header: for each line that says so. */
#include "multimax.h"

static int unused_function(void) { return 1; } /* warned of */
int sign_conversion(int i);
int sign_conversion(int i) { return (int)sizeof(char[2]) < i ? 1 : (unsigned)i < i; } /* warned of */
float narrowing(double d);
float narrowing(double d) { return d; } /* warned of */
int undefined_macro(void);
int undefined_macro(void) {
#if NO_SUCH_MACRO /* warned of */
    return 1;
#else
    return 0;
#endif
}
int shadow(int i);
int shadow(int i) {
    {
        int i = 2; /* warned of */
        (void)i;
    }
    return i;
}
int uninitialised(void);
int uninitialised(void) {
    int i;
    return i; /* warned of */
}
