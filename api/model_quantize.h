/* Between the files of prony_model_quantize. */
#ifndef PRN_API_MODEL_QUANTIZE_H
#define PRN_API_MODEL_QUANTIZE_H

#include "quantize/calibration.h"

/* The planned model, written and loaded again. */
PRN_MUST_USE prony_status prn_quantized_load(prony_model **out, const prn_quant_plan *plan,
                                             const prony_quantize_options *options, prony_error *error);
/* Decides which contractions stay in float and settles the plan. errors[n]: what quantizing node n alone makes; NaN:
 * nothing was measured of it. PRONY_UNSUPPORTED if no layer can be quantized within the bound. */
PRN_MUST_USE prony_status prn_quantize_keep(prn_quant_plan *plan, prony_model *model,
                                            const prony_quantize_options *options, double *errors, prony_error *error);

#endif
