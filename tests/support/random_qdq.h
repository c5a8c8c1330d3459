/* Random networks of QuantizeLinear and DequantizeLinear, as exporters write them and almost as they do: convolutions,
 * products, residuals, branches, joins, pools, moves and functions of each element, with biases of each kind,
 * parameters that are shared or differ, steps that make ties, and one thing changed of what a rewrite looks for. A
 * graph is a random_graph (tests/support/random_graph.h), which is built, filled, printed and reduced in the same way.
 */
#ifndef PRN_TESTS_SUPPORT_RANDOM_QDQ_H
#define PRN_TESTS_SUPPORT_RANDOM_QDQ_H

#include "tests/support/random_graph.h"

random_graph *random_qdq_make(uint64_t seed);

#endif
