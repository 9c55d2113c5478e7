/*
 * test_threads.c: threads that make their calls at the same time, among them the first one of the process, get the
 * results of one thread alone. Inputs are shared, outputs each thread's own. Preset tsan runs it under ThreadSanitizer.
 */
#define _POSIX_C_SOURCE 200112L

#define WITH_MORE_FUNCTIONS
#include "function_table.h"
#include "threads.h"

#if HAVE_THREADS
#    include <sys/wait.h>
#    include <unistd.h>

#    define THREADS   8
#    define ROWS      3
#    define MOST      300
#    define ENTRIES   (ROWS * MOST)
#    define SETTINGS  200
#    define BEGINNERS 1000

/* The result of one call. */
typedef struct result {
    mmax_status status;
    double out[ENTRIES], per_row[ROWS];
    mmax_multimax_grads gp;
} result;

/* Calls every function once. Nobody else touches y and results. */
typedef struct worker {
    size_t cols, first;
    double y[ENTRIES];
    result results[COUNT(functions)];
    mmax_isa isa;
} worker;

static worker workers[THREADS], alone;
static double x[2][ENTRIES], gy[2][ENTRIES]; /* as f32, as f64 */
static int32_t classes[ROWS];

static void run_function(worker *w, const function *f) {
    result *r = &w->results[f - functions];
    call c, forward;
    memset(&c, 0, sizeof c);
    memset(r, 0, sizeof *r);
    c.array[OUT] = r->out;
    c.array[GY] = gy[f->size == 8];
    c.array[Y] = w->y;
    c.array[X] = x[f->size == 8];
    c.per_row = r->per_row;
    c.gp = &r->gp;
    c.p = &params_of_order[f->order];
    c.epsilon = f->epsilon;
    c.own.k = 4;
    c.t = mmax_labels(classes);
    c.s = mmax_rows(ROWS, w->cols);
    if (has(f, HAS_Y)) {
        forward = c;
        forward.array[OUT] = w->y;
        r->status = f->forward(&forward);
    }
    if (r->status == MMAX_OK) { r->status = f->run(&c); }
}

static void run_all(worker *w) {
    for (size_t k = 0; k < COUNT(functions); ++k) { run_function(w, &functions[(w->first + k) % COUNT(functions)]); }
    w->isa = mmax_isa_active();
}

/* ==== threads that start together ==== */

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
static int is_open;

static void *run_worker(void *argument) {
    pthread_mutex_lock(&gate);
    while (!is_open) { pthread_cond_wait(&opened, &gate); }
    pthread_mutex_unlock(&gate);
    run_all(argument);
    return NULL;
}

/* Selects the active instruction set over and over. */
static void *run_setter(void *argument) {
    mmax_status *status = argument;
    for (int k = 0; k < SETTINGS && *status == MMAX_OK; ++k) { *status = mmax_isa_select(mmax_isa_active()); }
    return NULL;
}

static void run_together(size_t cols, int with_setter) {
    pthread_t threads[THREADS + 1];
    mmax_status setter = MMAX_OK;
    int started = 0, wanted = THREADS + with_setter;
    is_open = 0;
    for (int k = 0; k < wanted; ++k) {
        void *argument = &setter;
        if (k < THREADS) {
            workers[k].cols = cols;
            workers[k].first = (size_t)k * COUNT(functions) / THREADS;
            argument = &workers[k];
        }
        started += pthread_create(&threads[started], NULL, k < THREADS ? run_worker : run_setter, argument) == 0;
    }
    pthread_mutex_lock(&gate);
    is_open = 1;
    pthread_cond_broadcast(&opened);
    pthread_mutex_unlock(&gate);
    for (int k = 0; k < started; ++k) { pthread_join(threads[k], NULL); }
    CHECK(started == wanted, "%d threads of %d", started, wanted);
    CHECK(setter == MMAX_OK, "mmax_isa_select of the active instruction set: %s", mmax_status_string(setter));
}

/* ==== a selection beside the first call of a process ==== */

static int begins; /* under the gate's lock */

static void *run_first(void *argument) {
    (void)argument;
    pthread_mutex_lock(&gate);
    begins = 1;
    pthread_mutex_unlock(&gate);
    (void)mmax_isa_active();
    return NULL;
}

static int has_begun(void) {
    int whether;
    pthread_mutex_lock(&gate);
    whether = begins;
    pthread_mutex_unlock(&gate);
    return whether;
}

/* In a process that has made no call; the selection waits `wait` after the first call of the other thread. */
static int keeps_selection(int wait) {
    mmax_isa last = MMAX_ISA_SCALAR;
    pthread_t thread;
    volatile int waited = 0;
    while (!mmax_isa_available(last)) { last = (mmax_isa)(last + 1); }
    if (pthread_create(&thread, NULL, run_first, NULL) != 0) { return 0; }
    while (!has_begun()) {}
    while (waited < wait) { ++waited; }
    if (mmax_isa_select(last) != MMAX_OK) { return 0; }
    pthread_join(thread, NULL);
    return mmax_isa_active() == last;
}

static void check_selections(void) {
    int lost = 0;
    for (int k = 0; k < BEGINNERS; ++k) {
        const pid_t child = fork();
        int status = 1;
        if (child == 0) { _exit(keeps_selection(k % 100 * 200) ? 0 : 1); }
        CHECK(child > 0 && waitpid(child, &status, 0) == child, "process %d", k);
        lost += status != 0;
    }
    CHECK(lost == 0, "%d selections of %d were lost", lost, BEGINNERS);
}

/* ==== the comparison ==== */

static void fill_inputs(size_t cols) {
    random_state = cols;
    for (int wide = 0; wide < 2; ++wide) {
        const function *f = function_named(wide ? "softmax_f64" : "softmax_f32");
        fill(f, x[wide], ROWS * cols, MASKED);
        fill(f, gy[wide], ROWS * cols, NORMAL_1);
    }
    for (int r = 0; r < ROWS; ++r) { classes[r] = (int32_t)random_below(cols); }
}

static void check_same(size_t cols) {
    alone.cols = cols;
    run_all(&alone);
    for (int k = 0; k < THREADS; ++k) {
        const worker *w = &workers[k];
        CHECK(w->isa == alone.isa, "thread %d: %s is active, alone %s", k, mmax_isa_name(w->isa),
              mmax_isa_name(alone.isa));
        FOR_EACH_FUNCTION(f) {
            const result *here = &w->results[f - functions], *there = &alone.results[f - functions];
            CHECK(here->status == MMAX_OK, AT ", thread %d: %s", AT_ARGS(f, cols), k, mmax_status_string(here->status));
            CHECK(memcmp(here, there, sizeof *here) == 0, AT ", thread %d: not what one thread alone gets",
                  AT_ARGS(f, cols), k);
        }
    }
}

int main(void) {
    static const size_t lengths[] = {65, 1, 7, 130, MOST};
    TEST("a selection is kept that is made while another thread makes the first call of the process") {
        check_selections();
    }
    TEST("the first calls of the process, by many threads at once, give the results of one thread alone") {
        fill_inputs(lengths[0]);
        run_together(lengths[0], 0);
        check_same(lengths[0]);
    }
    TEST("so do later calls, also while the active instruction set is selected again and again") {
        for (size_t k = 0; k < 2 * COUNT(lengths); ++k) {
            fill_inputs(lengths[k / 2]);
            run_together(lengths[k / 2], (int)(k % 2));
            check_same(lengths[k / 2]);
        }
    }
    return check_report();
}
#else
int main(void) {
    TEST("threads") { NOTE("no threads here: skipped"); }
    return check_report();
}
#endif
