/* A C program as a user writes it: one row of scores, and the version it was promised as its argument. */
#include "multimax.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    const float scores[4] = {1.5f, -0.5f, 3.0f, 2.5f};
    mmax_multimax_params params = mmax_multimax_identity(2);
    float weights[4];
    float sum = 0.0f;
    mmax_status status;
    int i;

    if (argc != 2 || strcmp(argv[1], MULTIMAX_VERSION) != 0) {
        fprintf(stderr, "the header is version %s, not %s\n", MULTIMAX_VERSION, argc == 2 ? argv[1] : "(none given)");
        return 1;
    }
    params.t_b[0] = 2.0;
    status = mmax_multimax_f32(weights, scores, &params, mmax_row(4));
    if (status != MMAX_OK) {
        fprintf(stderr, "%s\n", mmax_status_string(status));
        return 1;
    }
    for (i = 0; i < 4; ++i) {
        printf("%.7f ", (double)weights[i]);
        sum += weights[i];
    }
    printf("on %s\n", mmax_isa_name(mmax_isa_active()));
    return !(fabsf(sum - 1.0f) < 1e-6f && weights[2] > weights[3] && weights[0] > weights[1]);
}
