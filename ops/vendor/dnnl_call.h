/* One call of a oneDNN convolution: its arguments, whose memory objects find their bytes anew in every run; shared by
 * the dnnl*.c files alone. */
#ifndef PRN_OPS_VENDOR_DNNL_CALL_H
#define PRN_OPS_VENDOR_DNNL_CALL_H

#include "ops/vendor/dnnl_problem.h"

enum { PRN_DNNL_MOST_ARGUMENTS = 5 + PRN_MAX_POST_OPS };

typedef struct prn_dnnl_call {
    dnnl_primitive_t primitive; /* borrowed */
    dnnl_exec_arg_t arguments[PRN_DNNL_MOST_ARGUMENTS];
    int count;
    dnnl_memory_t x, weights, y;
    dnnl_memory_t bias, scratch;              /* NULL: has none */
    dnnl_memory_t residual[PRN_MAX_POST_OPS]; /* NULL: not a residual, or summed in place */
} prn_dnnl_call;

/* The operands of one call; NULL: those that prn_dnnl_call_make was given. */
typedef struct prn_dnnl_operands {
    const void *x, *weights, *bias;
    void *y, *scratch;
    const void *residual[PRN_MAX_POST_OPS];
} prn_dnnl_operands;

/* A failure leaves something to drop. */
dnnl_status_t prn_dnnl_call_make(prn_dnnl_call *call, dnnl_primitive_t primitive, const_dnnl_primitive_desc_t desc,
                                 const prn_post_ops *post_ops, bool bias, const prn_dnnl_operands *operands);
void prn_dnnl_call_drop(prn_dnnl_call *call);
dnnl_status_t prn_dnnl_call_run(prn_dnnl_call *call, dnnl_stream_t stream, const prn_dnnl_operands *operands);

#endif
