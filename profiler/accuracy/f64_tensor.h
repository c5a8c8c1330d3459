/* Tensors of the accuracy profile: plain, and in float64 for every model float of 64 bits or fewer. Everything else
 * (integers, codes, bools) keeps its type, in which it is exact. */
#ifndef PRN_PROFILER_ACCURACY_F64_TENSOR_H
#define PRN_PROFILER_ACCURACY_F64_TENSOR_H

#include "base/status.h"

typedef struct prn_f64_tensor {
    prony_value value; /* PRN_PLAIN; data NULL: no tensor */
    prony_dtype model; /* its type in the model */
    bool borrowed;     /* the data has another owner */
    bool rounded;      /* made by a kernel without float64, or from its results */
    bool stands_in;    /* the run's tensor, used because the reference has none */
} prn_f64_tensor;

/* float16, bfloat16, float32, float64. */
bool prn_f64_tensor_is_float(prony_dtype dtype);
/* true: a tensor of this type is supported: numbers, not text. */
bool prn_f64_tensor_takes(const prony_value *value);
/* A copy of a tensor in any layout. With `borrow` and without conversion it borrows the bytes. */
PRN_MUST_USE prony_status prn_f64_tensor_read(prn_f64_tensor *out, const prony_value *value, bool borrow,
                                              prony_error *error);
/* The same tensor in the model's type `dtype`, data of the caller's (prn_free_aligned) unless *owned is false. */
PRN_MUST_USE prony_status prn_f64_tensor_narrow(prony_value *out, bool *owned, const prn_f64_tensor *wide,
                                                prony_dtype dtype, prony_error *error);
/* Widens a node's result: takes over the data of `made`. */
PRN_MUST_USE prony_status prn_f64_tensor_take(prn_f64_tensor *out, prony_value *made, prony_error *error);
void prn_f64_tensor_drop(prn_f64_tensor *wide);

/* float64 bytes that all tensors of the calling thread hold now, and the most that they held since
 * `prn_f64_tensor_begin`. */
void prn_f64_tensor_begin(void);
uint64_t prn_f64_tensor_peak(void);

#endif
