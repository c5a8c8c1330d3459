/* The quantized form of a planned model as an ONNX file. */
#ifndef PRN_QUANTIZE_QUANTIZE_WRITE_H
#define PRN_QUANTIZE_QUANTIZE_WRITE_H

#include "quantize/calibration.h"

/* The bytes of a ModelProto; released by prn_free. Weights in files of their own are taken in. `calibration` NULL:
 * ranges of activations are found in every run. */
PRN_MUST_USE prony_status prn_quant_write(uint8_t **out, size_t *size, const prn_quant_plan *plan,
                                          const prony_calibration *calibration, bool power_of_two, prony_error *error);

#endif
