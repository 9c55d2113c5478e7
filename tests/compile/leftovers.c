/* Warnings that the including file asks for are alive after the header: each case must fail to compile. */
#include "multimax.h"

#if CASE == 1
static int unused_function(void) { return 1; }
#elif CASE == 2
int sign_conversion(int i);
int sign_conversion(int i) { return (int)sizeof(char[2]) < i ? 1 : (unsigned)i < i; }
#elif CASE == 3
float narrowing(double d);
float narrowing(double d) { return d; }
#elif CASE == 4
int undefined_macro(void);
int undefined_macro(void)
{
#    if NO_SUCH_MACRO
    return 1;
#    else
    return 0;
#    endif
}
#elif CASE == 5
int shadow(int i);
int shadow(int i)
{
    {
        int i = 2;
        (void)i;
    }
    return i;
}
#elif CASE == 6
int uninitialised(void);
int uninitialised(void)
{
    int i;
    return i;
}
#endif
