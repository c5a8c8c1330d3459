/* Tensors of the accuracy profile: plain, and in float64 where the model has any float of 64 bits or fewer. Everything
 * else (integers, codes, bools) keeps its type, in which it is exact. */
#ifndef PRN_PROFILER_ACCURACY_WIDE_H
#define PRN_PROFILER_ACCURACY_WIDE_H

#include "base/status.h"

typedef struct prn_wide {
    prony_value value; /* PRN_PLAIN; data NULL: there is none */
    prony_dtype model; /* its type in the model */
    bool borrowed;     /* the data is somebody else's */
    bool rounded;      /* made by a kernel that has no float64, or from what one made */
    bool stands_in;    /* what the run made, where the reference has nothing of its own */
} prn_wide;

/* float16, bfloat16, float32, float64. */
bool prn_wide_is_float(prony_dtype dtype);
/* Whether a tensor of the type can be held: numbers, not text. */
bool prn_wide_takes(const prony_value *value);
/* A copy of a tensor in any layout; where no conversion is needed and `borrow`, its own bytes. */
PRN_MUST_USE prony_status prn_wide_read(prn_wide *out, const prony_value *value, bool borrow, prony_error *error);
/* The same tensor in the model's type `dtype`, data of the caller's (prn_free_aligned) unless *owned is false. */
PRN_MUST_USE prony_status prn_wide_narrow(prony_value *out, bool *owned, const prn_wide *wide, prony_dtype dtype,
                                          prony_error *error);
/* Widens what a node made in place: `made` has data of its own, which is taken over. */
PRN_MUST_USE prony_status prn_wide_take(prn_wide *out, prony_value *made, prony_error *error);
void prn_wide_drop(prn_wide *wide);

/* float64 bytes that all tensors of the calling thread hold now, and the most that they held since `prn_wide_begin`. */
void prn_wide_begin(void);
uint64_t prn_wide_peak(void);

#endif
