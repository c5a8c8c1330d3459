/* A QDQ network with rewrites against one without, operator by operator.
 *
 * The rewritten program runs as a whole. Then the nodes of the unrewritten one run one after another. Each reads the
 * values that the rewritten program made, or the results of other unrewritten nodes where a rewrite took a value away.
 * So a difference counts where it arises and nowhere behind, and needs no wide tolerance. A code is the same, or its
 * neighbour if the number lies between the two within float32 rounding. Rewrites may round a bias to steps of input
 * times weights, which are at most an eighth of the output's step: that widens the tie. */
#ifndef PRN_TESTS_SUPPORT_QDQ_CHECK_H
#define PRN_TESTS_SUPPORT_QDQ_CHECK_H

#include "tests/support/random_graph.h"

/* The operators that rewrites make of nodes between a DequantizeLinear and a QuantizeLinear. */
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
