/* A QDQ network with rewrites against one without, operator by operator.
 *
 * The rewritten program runs as a whole. Then the nodes of the unrewritten one run one after another, each on what the
 * rewritten program made of its inputs, where that still has the value, and on the nodes' own results where a rewrite
 * took it away. So a difference counts where it arises and nowhere behind, and needs no wide tolerance: a code is the
 * same, or its neighbour if the number lies between the two within float32 rounding (or within the rounding of the bias
 * to steps of input times weights, which rewrites allow up to an eighth of the output's step). */
#ifndef PRN_TESTS_SUPPORT_QDQ_CHECK_H
#define PRN_TESTS_SUPPORT_QDQ_CHECK_H

#include "tests/support/random_graph.h"

/* What rewrites make of nodes between a DequantizeLinear and a QuantizeLinear. */
enum { QDQ_FORMS = 16 };
extern const char *const qdq_form_names[QDQ_FORMS];

typedef struct qdq_tally {
    uint64_t models, refused, nodes;
    uint64_t forms[QDQ_FORMS];   /* how many of each the rewritten programs have */
    uint64_t codes, ties, vague; /* compared; other than without rewrites; float32 sums say nothing of the code */
} qdq_tally;

/* false: `text` says what is wrong. */
bool qdq_agrees(const random_graph *g, qdq_tally *tally, char *text, size_t size);

#endif
