/* golden_file.h: reading the files in golden/. */
#ifndef GOLDEN_FILE_H
#define GOLDEN_FILE_H

#include <stdio.h>
#include <string.h>

/* Reads "LABEL v v ... v"; returns whether that comes next. */
static int read_values(FILE *in, const char *label, double *v, size_t n) {
    char word[16];
    if (fscanf(in, "%15s", word) != 1 || strcmp(word, label) != 0) { return 0; }
    for (size_t i = 0; i < n; ++i) {
        if (fscanf(in, "%lf", &v[i]) != 1) { return 0; }
    }
    return 1;
}

#endif
