/* Random networks of QuantizeLinear and DequantizeLinear, in exporters' forms and close to them. They have
 * convolutions, matmuls, residuals, branches, joins, pools, moves and elementwise functions, with biases of each kind,
 * shared or different parameters, scales that make ties, and one change to a rewrite's pattern. A graph is a
 * random_graph (tests/support/random_graph.h), which is built, filled, printed and reduced in the same way.
 */
#ifndef PRN_TESTS_SUPPORT_RANDOM_QDQ_H
#define PRN_TESTS_SUPPORT_RANDOM_QDQ_H

#include "tests/support/random_graph.h"

random_graph *random_qdq_make(uint64_t seed);

#endif
