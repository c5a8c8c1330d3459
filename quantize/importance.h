/* The importance of a product's weights: the mean square of the activation that each row of the weights meets, as in
 * llama.cpp's importance matrix. A change d of weight (k, n) moves output n by x[k] d, so E[x[k]^2] d^2 is its part of
 * the output's squared error, as far as activations of different channels are independent.
 *
 *   x ── MatMul ── y        becomes        x ── Observe ── MatMul ── y
 *
 * The observed model is derived in memory: it shares everything with the float model but its graphs' lists of nodes.
 * Observe copies its input and adds up squares in float64, row after row, so sums do not depend on the number of
 * threads. Products of one value in one graph share an Observe. */
#ifndef PRN_QUANTIZE_IMPORTANCE_H
#define PRN_QUANTIZE_IMPORTANCE_H

#include "quantize/block_plan.h"

/* Sets `importance` of the plan's weights, in its pool: means over all products of a weight. Weights whose products did
 * not run have none. PRONY_INVALID_ARGUMENT: it belongs to another model, or nothing was run. */
PRN_MUST_USE prony_status prn_importance_apply(const prony_importance *importance, prn_block_plan *plan,
                                               prony_error *error);

#endif
