/* Runs one QDQ network in other ways, which must give the same bytes: as the body of an If or a Loop, and in one
 * session whose batch changes from run to run. */
#ifndef PRN_TESTS_SUPPORT_QDQ_WAYS_H
#define PRN_TESTS_SUPPORT_QDQ_WAYS_H

#include "tests/support/random_graph.h"

typedef struct qdq_ways_tally {
    uint64_t bodies, batches, followed; /* that ran; networks of which one plan served several batches */
} qdq_ways_tally;

/* Both change the graph. false: `text` has the difference. */
bool qdq_body_agrees(random_graph *g, bool loop, qdq_ways_tally *tally, char *text, size_t size);
bool qdq_batches_agree(random_graph *g, qdq_ways_tally *tally, char *text, size_t size);

#endif
