/* The kinds of reductions for the reference in reduce.c and for the kernels in reduce_native.c alike. */
#include "ops/math/reduce.h"

#include "base/shape.h"

#include <math.h>

double prn_reduce_finish(prn_reduce_kind kind, double sum, double count, double top)
{
    switch (kind) {
    case PRN_REDUCE_MEAN:
        return sum / count;
    case PRN_REDUCE_L2:
        return sqrt(sum);
    case PRN_REDUCE_LOG_SUM:
        return log(sum);
    case PRN_REDUCE_LOG_SUM_EXP:
        return top + log(sum);
    default:
        return sum;
    }
}

bool prn_reduce_is_real(prn_reduce_kind kind, prony_dtype dtype)
{
    return prn_dtype_is_float(dtype) || kind == PRN_REDUCE_L2 || kind == PRN_REDUCE_LOG_SUM ||
           kind == PRN_REDUCE_LOG_SUM_EXP;
}
