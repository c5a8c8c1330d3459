/* Compares a QDQ network with rewrites with the same one without, operator by operator.
 *
 * The rewritten program runs as a whole. Then the nodes of the unrewritten one run one after another. Each reads the
 * rewritten program's values, or results of other unrewritten nodes if a rewrite removed a value. So a difference
 * counts only where it arises, and no wide tolerance is needed. A code is the same, or its neighbour if the number is a
 * tie within float32 rounding. Rewrites may round a bias to the scale of input times weights, at most an eighth of the
 * output's scale: that widens the tie. */
#ifndef PRN_TESTS_SUPPORT_QDQ_CHECK_H
#define PRN_TESTS_SUPPORT_QDQ_CHECK_H

#include "tests/support/random_graph.h"

/* Operators made by rewrites from nodes between a DequantizeLinear and a QuantizeLinear. */
enum { QDQ_FORMS = 16 };
extern const char *const qdq_form_names[QDQ_FORMS];

typedef struct qdq_tally {
    uint64_t models, refused, nodes;
    uint64_t forms[QDQ_FORMS];   /* number of each in the rewritten programs */
    uint64_t codes, ties, vague; /* compared; different from without rewrites; not decided by float32 sums */
} qdq_tally;

/* false: `text` has the reason. */
bool qdq_agrees(const random_graph *g, qdq_tally *tally, char *text, size_t size);

#endif
