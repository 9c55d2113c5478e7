/*
 * replay.c: the driver of fuzz.c without libFuzzer, for any compiler.
 *
 *     fuzz_replay corpus.txt 20000     the inputs of the corpus, then so many random ones
 *     fuzz_replay crash-1234           one raw input, as libFuzzer leaves it
 *     fuzz_replay corpus.txt to DIR    writes each input to a file in DIR, as libFuzzer wants them
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerInitialize(int *count, char ***arguments);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t input[1 << 16];

/* One line of hexadecimal digits; returns the number of bytes. */
static size_t from_hex(const char *line) {
    size_t n = 0;
    unsigned byte;
    while (n < sizeof input && sscanf(line + 2 * n, "%2x", &byte) == 1) { input[n++] = (uint8_t)byte; }
    return n;
}

static void write_input(const char *folder, unsigned number, size_t n) {
    char name[1024];
    FILE *file;
    snprintf(name, sizeof name, "%s/%05u", folder, number);
    file = fopen(name, "wb");
    if (!file || fwrite(input, 1, n, file) != n || fclose(file)) {
        perror(name);
        exit(1);
    }
}

/* Knuth's multiplier for 64 bits: The Art of Computer Programming, 3.3.4, table 1. */
static uint8_t random_byte(void) {
    static uint64_t state = 1;
    state = state * 6364136223846793005 + 1442695040888963407;
    return (uint8_t)(state >> 56);
}

int main(int count, char **arguments) {
    static char line[2 * sizeof input + 2];
    FILE *file = count > 1 ? fopen(arguments[1], "rb") : NULL;
    size_t n = file ? strlen(arguments[1]) : 0;
    unsigned lines = 0;
    long random_inputs = count == 3 ? atol(arguments[2]) : 0;
    if (!file) {
        fprintf(stderr, "usage: fuzz_replay INPUT or corpus.txt [COUNT | to DIR]\n");
        return 2;
    }
    LLVMFuzzerInitialize(&count, &arguments);
    if (n < 4 || strcmp(arguments[1] + n - 4, ".txt") != 0) {
        n = fread(input, 1, sizeof input, file);
        fclose(file);
        return LLVMFuzzerTestOneInput(input, n);
    }
    while (fgets(line, sizeof line, file)) {
        n = from_hex(line);
        if (count == 4) {
            write_input(arguments[3], lines, n);
        } else {
            LLVMFuzzerTestOneInput(input, n);
        }
        ++lines;
    }
    fclose(file);
    for (long k = 0; k < random_inputs; ++k) {
        n = 8 + random_byte() % 120;
        for (size_t i = 0; i < n; ++i) { input[i] = random_byte() % 3 ? random_byte() : 0; }
        LLVMFuzzerTestOneInput(input, n);
    }
    printf("%u inputs of the corpus, %ld random ones\n", lines, random_inputs);
    return lines == 0;
}
