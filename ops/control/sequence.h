/* Shared by operators on sequences. */
#ifndef PRN_OPS_CONTROL_SEQUENCE_H
#define PRN_OPS_CONTROL_SEQUENCE_H

#include "ops/kernels/subgraph.h"

/* Refuses an input that is known to be something else. */
prony_status prn_check_sequence(const prony_context *context, size_t input);
/* Output k is a sequence of tensors of `dtype`. */
void prn_set_sequence(const prony_context *context, size_t k, prony_dtype dtype);

#endif
