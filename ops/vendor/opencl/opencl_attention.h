/* Attention of float32 on an OpenCL device: scores stay in local memory. */
#ifndef PRN_OPS_VENDOR_OPENCL_ATTENTION_H
#define PRN_OPS_VENDOR_OPENCL_ATTENTION_H

#include "ops/kernels/attention/attend.h"
#include "ops/vendor/opencl/opencl.h"

typedef enum prn_opencl_mask {
    PRN_OPENCL_NO_MASK,
    PRN_OPENCL_MASK_ADDED,
    PRN_OPENCL_MASK_CHOOSES, /* a truth value that is not `kept` makes a score `fill` */
    PRN_OPENCL_MASK_LEAVES   /* one that is false adds -infinity */
} prn_opencl_mask;

/* Q, K and V are inputs 0 to 2, the mask is input 3, Y is output 0. */
typedef struct prn_opencl_attend {
    const prn_attend *at; /* sizes, strides, scale, kept and fill */
    prn_opencl_mask mask;
    int64_t mask_stride[4], mask_keys; /* later keys are left out */
    bool causal;                       /* row s attends to keys 0 to s */
    float cap;                         /* 0: scores are not capped */
    float alone;                       /* result of a row that attends to no key */
} prn_opencl_attend;

/* Reads the sizes alone. */
bool prn_opencl_attend_supported(const prony_context *context, const prn_attend *at);
prony_status prn_opencl_attend_prepare(const prony_context *context, const prn_opencl_attend *problem,
                                       prn_prepared *out);

#endif
