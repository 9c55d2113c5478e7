/* use.h: a few calls in the common part of C99 and C++11, for programs that have included multimax.h their own way. */
#ifndef USE_H
#define USE_H

/* 0 if the calls give what they should. Few functions: what is not used need not be compiled. */
static int use_multimax(void) {
    float x[5] = {1, 2, 3, 4, 2}, y[5];
    double sum = 0;
    mmax_multimax_params p = mmax_multimax_identity(2);
    mmax_attention attention = mmax_attention_none();
    mmax_multimax_grads gp = mmax_grads_zero();
    mmax_shape s = mmax_row(5);
    int i;
    p.t_b[0] = 1.5 + gp.t_b[0];
    s.attention = &attention;
    if (mmax_softmax_f32(y, x, s) != MMAX_OK) { return 1; }
    for (i = 0; i < 5; ++i) { sum += (double)y[i]; }
    if (mmax_multimax_f32(x, x, &p, mmax_row(5)) != MMAX_OK) { return 2; }
    for (i = 0; i < 5; ++i) { sum += (double)x[i]; }
    if (!(sum > 1.999999 && sum < 2.000001)) { return 3; }
    return mmax_isa_available(mmax_isa_active()) ? 0 : 4;
}

#endif /* USE_H */
