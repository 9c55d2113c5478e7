/* Two plain files in one program: each has its own copy, and selects its instruction set for itself. */
#include "multimax.h"
#include "use.h"
#include "second.h"

int main(void) {
    float x[37], mine[37], theirs[37];
    int isa = second_isa(), i;
    if (use_multimax() || second_use()) { return 1; }
    if (mmax_isa_select(MMAX_ISA_SCALAR) == MMAX_OK && second_isa() != isa) { return 2; }
    if (mmax_isa_select((mmax_isa)isa) == MMAX_OK) { /* the same instruction set: the same bits */
        for (i = 0; i < 37; ++i) { x[i] = (float)(i * 29 % 37) / 8; }
        second_softmax(theirs, x, 37);
        if (mmax_softmax_f32(mine, x, mmax_row(37)) != MMAX_OK) { return 3; }
        for (i = 0; i < 37; ++i) {
            if (mine[i] < theirs[i] || mine[i] > theirs[i]) { return 4; }
        }
    }
    return 0;
}
