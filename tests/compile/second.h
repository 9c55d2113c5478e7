/* second.h: what second.c offers to first.c, in C or C++. */
#ifdef __cplusplus
extern "C" {
#endif
int second_use(void);
int second_isa(void);
void second_softmax(float *y, const float *x, size_t n);
#ifdef __cplusplus
}
#endif
