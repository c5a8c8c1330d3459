/* What each node of a graph could be on codes, by its operator, its operands and what reads it. */
#ifndef PRN_PROFILER_QUANTIZE_KINDS_H
#define PRN_PROFILER_QUANTIZE_KINDS_H

#include "profiler/quantize/quantize_plan.h"

/* Fills kinds, results and what is taken along, of all nodes; values and uses are there. */
void prn_quant_classify(prn_quant_plan *plan);
/* An operator of ai.onnx. */
bool prn_quant_is_op(const prn_model_node *node, const char *name);

#endif
