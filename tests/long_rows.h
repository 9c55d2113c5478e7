/*
 * long_rows.h: long rows, whose scores rise and fall from block to block.
 */
#ifndef LONG_ROWS_H
#define LONG_ROWS_H

#include "function_table.h"

#define LONG_ENTRIES 150001
#if !defined(LAW_STEP)
#    define LAW_STEP LENGTH_STEP
#endif
#define LONG_BLOCK(f) ((f)->size == 4 ? 2048u : 1024u)

/* The scores of each block are `step` above those of the block before, only from block `at` on if that is not 0. */
typedef struct long_law {
    double step;
    size_t at;
    int masks; /* 1: the first, the eighth and the last block; 2: every 19th entry; 4: every 3rd of each 2nd block */
} long_law;
static const long_law long_laws[] = {
    {0, 0, 0},     {0, 0, 1},     {0, 0, 2},     {0, 0, 3},    {0.3, 0, 0},  {0.9, 0, 0},  {-0.9, 0, 0},
    {12, 10, 0},   {12, 10, 1},   {60, 20, 0},   {60, 20, 2},  {95, 30, 0},  {150, 7, 0},  {600, 30, 0},
    {700, 30, 0},  {720, 30, 0},  {900, 30, 0},  {900, 30, 2}, {4000, 9, 0}, {8000, 9, 0}, {-150, 9, 0},
    {-8000, 9, 0}, {-8000, 9, 1}, {1e21, 30, 0}, {0, 0, 4},
};

/* For MultiMax, whose second order squares the scores, and for TanhMax the steps are smaller. */
static inline void fill_long(const function *f, void *x, const long_law *l) {
    const size_t block = LONG_BLOCK(f), last = (LONG_ENTRIES - 1) / block;
    const double step = f->order ? l->step / 40 : l->step;
    random_state = (uint64_t)(l - long_laws) + 7;
    for (size_t i = 0; i < LONG_ENTRIES; ++i) {
        const size_t k = i / block;
        const double above = l->at ? (k >= l->at ? step : 0) : step * (double)k;
        set(f, x, i, above + (f->order ? 1 : 2) * random_normal());
        if (((l->masks & 1) && (k == 0 || k == 7 || k == last)) || ((l->masks & 2) && i % 19 == 3) ||
            ((l->masks & 4) && k % 2 == 1 && i % 3 == 0)) {
            set_special(f, x, i, MINUS_INF);
        }
    }
}

static inline int has_long_laws(const function *f) {
    return f->kind == FORWARD && (strncmp(f->name, "softmax", 7) == 0 || strncmp(f->name, "multimax", 8) == 0 ||
                                  strncmp(f->name, "tanhmax", 7) == 0);
}

#endif /* LONG_ROWS_H */
