/* threads.h: POSIX threads, where the system has them. */
#ifndef THREADS_H
#define THREADS_H

#if (defined(__unix__) || defined(__APPLE__)) && !defined(__EMSCRIPTEN__)
#    include <pthread.h>
#    define HAVE_THREADS 1
#else
#    define HAVE_THREADS 0
#endif

#endif /* THREADS_H */
