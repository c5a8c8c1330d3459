/* Weights of a contraction as int8 with a scale per output channel, and its bias in steps of the product. */
#ifndef PRN_QUANTIZE_QUANTIZE_WEIGHTS_H
#define PRN_QUANTIZE_QUANTIZE_WEIGHTS_H

#include "quantize/quantize_plan.h"

typedef struct prn_quant_weights {
    prony_shape shape;
    int8_t *codes; /* in the order of the model's weights */
    float *scales; /* [channels] */
    bool has_bias;
    double *bias;        /* [channels], a BatchNormalization folded in */
    int32_t *bias_codes; /* in steps of input_scale scales[c] */
    float *bias_scales;
} prn_quant_weights;

/* Of node `n`, a contraction. `input_scale` 0: known in a run only, and then the bias has no codes. Everything is in
 * the pool. PRONY_UNSUPPORTED, naming the node, if a weight is not finite. */
PRN_MUST_USE prony_status prn_quant_weights_make(prn_quant_weights *out, const prn_quant_plan *plan, size_t n,
                                                 float input_scale, bool power_of_two, prn_bump *pool,
                                                 prony_error *error);
/* `scale` rounded up to a power of two. */
float prn_power_of_two(float scale);

#endif
