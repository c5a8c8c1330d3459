/* A reduction, as its reference in reduce.c and its kernels in reduce_native.c see it. */
#ifndef PRN_OPS_MATH_REDUCE_H
#define PRN_OPS_MATH_REDUCE_H

#include "ops/kernels/vector/chain.h"
#include "ops/op.h"

typedef enum prn_reduce_kind {
    PRN_REDUCE_SUM,
    PRN_REDUCE_MEAN,
    PRN_REDUCE_MAX,
    PRN_REDUCE_MIN,
    PRN_REDUCE_PROD,
    PRN_REDUCE_L1,
    PRN_REDUCE_L2,
    PRN_REDUCE_LOG_SUM,
    PRN_REDUCE_LOG_SUM_EXP,
    PRN_REDUCE_SUM_SQUARE
} prn_reduce_kind;

/* One reduction of a tensor without gaps, which the chain describes; `count` elements stand behind each output. */
typedef struct prn_reduction {
    prn_reduce_kind kind;
    const prony_value *x, *y;
    prn_chain chain;
    int64_t count;
} prn_reduction;

/* True if the outputs of a type are computed in double; otherwise in 64-bit integers. */
bool prn_reduce_is_real(prn_reduce_kind kind, prony_dtype dtype);

/* The rest of a reduction behind the sum: of `count` elements, and with `top` taken from the exponents. */
double prn_reduce_finish(prn_reduce_kind kind, double sum, double count, double top);

/* Every type and chain; count > 0. Logarithms of sums of exponentials are for float types alone. */
void prn_reduce_native(int threads, const prn_reduction *reduction);

#endif
