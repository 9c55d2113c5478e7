/*
 * test_stack.c: a call takes at most 24 KiB of stack, 36 with `inner`, whatever the function, instruction set, shape and
 * scores. Each call runs on a thread whose stack was painted; the deepest byte that lost its colour tells how much it took.
 *
 *     test_stack [all]     prints the largest of each function, too
 */
#define _POSIX_C_SOURCE 200112L
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#define _DARWIN_C_SOURCE

#define WITH_MORE_FUNCTIONS
#include "function_table.h"
#include "threads.h"

#if !defined(__OPTIMIZE__) || defined(__SANITIZE_ADDRESS__)
#    define MEASURED 0
#elif defined(__has_feature)
#    define MEASURED (HAVE_THREADS && !__has_feature(address_sanitizer) && !__has_feature(memory_sanitizer))
#else
#    define MEASURED HAVE_THREADS
#endif

#if MEASURED
enum { STACK = 1 << 17, COLOUR = 0xa5, AREA = 2 * 1024 * 70 };
static double area[STACK / sizeof(double)], bias[AREA], q[AREA];
static uint32_t starts[70], ends[70], picks[AREA];
static double slopes[70], sinks[70], per_row[70], gradient;

typedef struct job {
    const function *f;
    call *c;
    mmax_status status;
} job;
static void *run_job(void *argument) {
    job *const j = (job *)argument;
    if (j->f) { j->status = j->f->run(j->c); }
    return NULL;
}
/* Bytes that a thread takes which runs the job */
static size_t depth_of(job *j) {
    unsigned char *const bytes = (unsigned char *)area;
    pthread_t thread;
    pthread_attr_t attributes;
    size_t clean = 0;
    memset(area, COLOUR, sizeof area);
    pthread_attr_init(&attributes);
    CHECK(pthread_attr_setstack(&attributes, area, sizeof area) == 0, "no stack");
    CHECK(pthread_create(&thread, &attributes, run_job, j) == 0, "no thread");
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    while (clean < sizeof area && bytes[clean] == COLOUR) { ++clean; }
    return sizeof area - clean;
}

/* What a call has beside its rows; the bits of a case */
enum { FAR = 1, RANGES = 2, BIASED = 4, SHARED = 8, ADDS = 16, INNER = 32 };
static const unsigned cases[] = {0,
                                 FAR,
                                 FAR | BIASED,
                                 FAR | BIASED | SHARED | ADDS,
                                 RANGES | SHARED,
                                 RANGES | BIASED,
                                 INNER,
                                 INNER | FAR | RANGES,
                                 INNER | FAR | RANGES | SHARED,
                                 INNER | BIASED | ADDS};

static size_t measure(const function *f, size_t rows, size_t cols, unsigned on, size_t none) {
    mmax_attention a = mmax_attention_none();
    const size_t k[] = {1, 3, 8, 60, 200, 700};
    size_t most = 0;
    call c = call_of(f, rows, cols, NORMAL_4, cols);
    for (size_t i = 0; i < rows * cols; ++i) {
        if (on & FAR) { set(f, c.array[X], i, 1e6 + get(f, c.array[X], i)); }
        set(f, bias, i, 0.1 * (double)(i % 7));
        set(f, q, i, 1 / (double)cols);
    }
    for (size_t r = 0; r < rows; ++r) {
        starts[r] = (uint32_t)(r % 2 && cols > 4);
        ends[r] = (uint32_t)(cols - starts[r]);
        slopes[r] = 1.5;
        sinks[r] = 0.5;
        index_storage[r] = (int32_t)(cols / 2);
    }
    make_y(f, &c);
    c.per_row = per_row;
    c.own.index = picks;
    c.own.gradient = &gradient;
    c.s.starts = on & RANGES && on & SHARED ? starts : NULL;
    c.s.ends = on & RANGES ? ends : NULL;
    c.s.accumulate = (on & ADDS) != 0;
    c.s.inner = on & INNER ? 3 : 0;
    if (f->kind == LOSS && on & BIASED) {
        c.t.index = NULL;
        c.t.q = q;
        c.t.label_smoothing = 0.1;
        c.t.weights = on & SHARED ? slopes : NULL;
    } else if (on & BIASED) {
        c.s.attention = &a;
        a.bias = bias;
        a.bias_rows = on & SHARED ? 1 : 0;
        a.head_rows = on & SHARED ? 1 : 0;
        a.slopes = on & SHARED ? slopes : NULL;
        a.sinks = on & SHARED && has(f, TAKES_SINKS) ? sinks : NULL;
    }
    for (size_t i = 0; i < COUNT(k); ++i) {
        size_t bytes;
        job j = {f, &c, MMAX_OK};
        c.own.k = k[i] < cols ? k[i] : cols;
        c.own.cut = mmax_truncation_none();
        c.own.cut.k = i % 2 ? c.own.k : 0;
        c.own.cut.top_p = i % 3 ? 0.9 : 0;
        c.own.cut.min_p = i % 3 == 2 ? 0.001 : 0;
        bytes = depth_of(&j) - none;
        most = bytes > most ? bytes : most;
        CHECK(j.status == MMAX_OK || (j.status == MMAX_ERR_SHAPE && on & INNER) || (j.status == MMAX_ERR_ATTENTION),
              AT ", case %u: %s", AT_ARGS(f, cols), on, mmax_status_string(j.status));
        if (!has(f, HAS_INDEX | HAS_CUT) && strncmp(f->name, "topk", 4) != 0) { break; }
    }
    return most;
}

static void check_function(const function *f, int prints, size_t none) {
    static const size_t shapes[][2] = {{1, 3}, {1, 100}, {3, 700}, {2, 9000}, {17, 5}, {70, 3}, {70, 17}, {70, 300}};
    const size_t limits[2] = {24, 36};
    FOR_EACH_ISA(isa) {
        size_t most[2] = {0, 0}, at[2] = {0, 0};
        unsigned of[2] = {0, 0};
        for (size_t s = 0; s < COUNT(shapes); ++s) {
            for (size_t k = 0; k < COUNT(cases); ++k) {
                const unsigned on = cases[k];
                const int inner = (on & INNER) != 0;
                if (has(f, BY_PLACE) && on & BIASED) { continue; }
                size_t bytes = measure(f, shapes[s][0], shapes[s][1], on, none);
                if (bytes > most[inner]) { most[inner] = bytes, at[inner] = s, of[inner] = on; }
            }
        }
        for (int inner = 0; inner < 2; ++inner) {
            const size_t *const s = shapes[at[inner]];
            if (prints) {
                NOTE("%-26s %-7s %s%6u bytes at %u x %u, case %u", f->name, mmax_isa_name((mmax_isa)isa),
                     inner ? "inner " : "", (unsigned)most[inner], (unsigned)s[0], (unsigned)s[1], of[inner]);
            }
            CHECK(most[inner] <= limits[inner] * 1024, "%s on %s, %u x %u, case %u: %u bytes", f->name,
                  mmax_isa_name((mmax_isa)isa), (unsigned)s[0], (unsigned)s[1], of[inner], (unsigned)most[inner]);
        }
    }
}
#endif

int main(int count, char **arguments) {
#if MEASURED
    job nothing = {NULL, NULL, MMAX_OK};
    (void)arguments;
    TEST("a call takes at most 24 KiB of stack, 36 with inner") {
        const size_t none = depth_of(&nothing);
        for (size_t i = 0; i < ALL; ++i) { check_function(any_function(i), count > 1, none); }
    }
#else
    (void)count, (void)arguments;
    NOTE("not measured: no threads, no optimisation, or a sanitizer");
#endif
    return check_report();
}
