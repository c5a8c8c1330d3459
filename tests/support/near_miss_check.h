/* Compares a float graph with rewrites with the same one without, by the contract of docs/accuracy.md.
 *
 * The graph also runs without rewrites in float64, once as it is and once with its numbers moved by float32's
 * precision. The first run gives the error of the plain float32 run, the second one the effect of a rounded operand.
 * Both together bound the distance of rewritten outputs to the float64 ones. NaN, infinities and finite numbers are at
 * the same positions as without rewrites. There are three exceptions: the rewritten run may be exact if the plain one
 * overflowed; it may overflow if a value of the graph exceeds 2^104; and merged branches may make an infinity of inf -
 * inf, with its consequences. */
#ifndef PRN_TESTS_SUPPORT_NEAR_MISS_CHECK_H
#define PRN_TESTS_SUPPORT_NEAR_MISS_CHECK_H

#include "tests/support/random_graph.h"

enum { NEAR_MISS_REWRITES = 64 };

typedef struct near_miss_tally {
    uint64_t models, refused, nodes;
    uint64_t alone;                     /* without a float64 run to compare with */
    uint64_t fired[NEAR_MISS_REWRITES]; /* as prn_program_rewrite_counted has it */
} near_miss_tally;

/* false: `text` has the reason. */
bool near_miss_agrees(const random_graph *g, near_miss_tally *tally, char *text, size_t size);

/* Notes the shapes that the engine infers, so that a reducer knows which values are alike. */
void near_miss_learn_shapes(random_graph *g);

#endif
