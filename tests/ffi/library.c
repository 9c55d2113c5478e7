/* The one copy of a shared library. Only what MULTIMAX_API marks is seen from outside. */
#ifdef _WIN32
#    define MULTIMAX_API __declspec(dllexport)
#else
#    define MULTIMAX_API __attribute__((visibility("default")))
#endif
#define MULTIMAX_EXTERN
#define MULTIMAX_IMPLEMENTATION
#include "multimax.h"
