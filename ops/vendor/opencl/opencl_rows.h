/* Rows of float32 on an OpenCL device: softmax, normalisations, reductions. A row is the work of one group, whose sums have
 * an order that shapes alone decide. */
#ifndef PRN_OPS_VENDOR_OPENCL_ROWS_H
#define PRN_OPS_VENDOR_OPENCL_ROWS_H

#include "ops/kernels/vector/chain.h"
#include "ops/vendor/opencl/opencl.h"

/* All inputs are float32. */
bool prn_opencl_rows_supported(const prony_context *context);
/* Input 0 is; the host reads the others. */
bool prn_opencl_reduce_supported(const prony_context *context);

/* Input 0 and output 0 as [outer, length, inner], rows along `length`. */
prony_status prn_opencl_softmax_prepare(const prony_context *context, prn_prepared *out, bool logarithm, int64_t length,
                                        int64_t inner);
/* LpNormalization, p 1 or 2. */
prony_status prn_opencl_lp_norm_prepare(const prony_context *context, prn_prepared *out, int64_t p, int64_t length,
                                        int64_t inner);
/* Indices of the largest elements, or the smallest; of equals the first, or the last. */
prony_status prn_opencl_arg_prepare(const prony_context *context, prn_prepared *out, int64_t length, int64_t inner,
                                    bool smallest, bool last);

enum { PRN_OPENCL_NONE = -1 };
/* Output 0 = (v - mean) / sqrt(variance + epsilon) scale + bias of rows of `length` elements, v = input 0 + skip + added.
 * The other members are numbers of inputs and outputs, or PRN_OPENCL_NONE. */
typedef struct prn_opencl_norm {
    int64_t length;
    int64_t run, period; /* an element meets number (element / run) mod period of scale and bias */
    int64_t skip_rows;   /* of `skip`, which repeat */
    float epsilon;
    bool rms;                                    /* mean is 0 */
    int skip, added, scale, bias;                /* inputs; added is a row */
    int mean_output, inverse_output, sum_output; /* a missing output is left out */
} prn_opencl_norm;
prony_status prn_opencl_norm_prepare(const prony_context *context, prn_prepared *out, const prn_opencl_norm *norm);

/* BatchNormalization of inputs 0 to 4: an element belongs to channel (element / run) mod channels. */
prony_status prn_opencl_batch_norm_prepare(const prony_context *context, prn_prepared *out, int64_t run,
                                           int64_t channels, float epsilon);

/* A reduction in OpenCL C: `each` of an element x, `combine` of a and b (NULL: their sum), `result` of sum and
 * count. */
typedef struct prn_opencl_fold {
    const char *start, *each, *combine, *result;
    bool top; /* `top` is the largest element, 0 where that is infinite */
} prn_opencl_fold;
prony_status prn_opencl_reduce_prepare(const prony_context *context, prn_prepared *out, const prn_opencl_fold *fold,
                                       const prn_chain *chain);

/* MeanVarianceNormalization over the reduced axes; not divided: the mean is subtracted alone. */
prony_status prn_opencl_mvn_prepare(const prony_context *context, prn_prepared *out, const prn_chain *chain,
                                    bool divided);

/* LRN: `before` and `after` channels take part, pixels are elements of a channel. */
typedef struct prn_opencl_lrn {
    int64_t channels, pixels, before, after;
    float bias, factor, beta;
} prn_opencl_lrn;
prony_status prn_opencl_lrn_prepare(const prony_context *context, prn_prepared *out, const prn_opencl_lrn *lrn);

#define PRN_OPENCL_FOLD_SUM ((prn_opencl_fold){"0.0f", "x", NULL, "sum", false})
#define PRN_OPENCL_FOLD_MEAN ((prn_opencl_fold){"0.0f", "x", NULL, "sum / count", false})
#define PRN_OPENCL_FOLD_MAX ((prn_opencl_fold){"-INFINITY", "x", "larger(a, b)", "sum", false})
#define PRN_OPENCL_FOLD_MIN ((prn_opencl_fold){"INFINITY", "x", "smaller(a, b)", "sum", false})

#endif
