/* Tensors of the accuracy profile: plain, and in float64 where the model has any float of 64 bits or fewer. Everything
 * else (integers, codes, bools) keeps its type, in which it is exact. */
#ifndef PRN_PROFILER_ACCURACY_F64_TENSOR_H
#define PRN_PROFILER_ACCURACY_F64_TENSOR_H

#include "base/status.h"

typedef struct prn_f64_tensor {
    prony_value value; /* PRN_PLAIN; data NULL: there is none */
    prony_dtype model; /* its type in the model */
    bool borrowed;     /* the data is somebody else's */
    bool rounded;      /* made by a kernel that has no float64, or from what one made */
    bool stands_in;    /* what the run made, where the reference has nothing of its own */
} prn_f64_tensor;

/* float16, bfloat16, float32, float64. */
bool prn_f64_tensor_is_float(prony_dtype dtype);
/* Whether a tensor of the type can be held: numbers, not text. */
bool prn_f64_tensor_takes(const prony_value *value);
/* A copy of a tensor in any layout; where no conversion is needed and `borrow`, its own bytes. */
PRN_MUST_USE prony_status prn_f64_tensor_read(prn_f64_tensor *out, const prony_value *value, bool borrow,
                                              prony_error *error);
/* The same tensor in the model's type `dtype`, data of the caller's (prn_free_aligned) unless *owned is false. */
PRN_MUST_USE prony_status prn_f64_tensor_narrow(prony_value *out, bool *owned, const prn_f64_tensor *wide,
                                                prony_dtype dtype, prony_error *error);
/* Widens what a node made in place: `made` has data of its own, which is taken over. */
PRN_MUST_USE prony_status prn_f64_tensor_take(prn_f64_tensor *out, prony_value *made, prony_error *error);
void prn_f64_tensor_drop(prn_f64_tensor *wide);

/* float64 bytes that all tensors of the calling thread hold now, and the most that they held since `prn_f64_tensor_begin`. */
void prn_f64_tensor_begin(void);
uint64_t prn_f64_tensor_peak(void);

#endif
