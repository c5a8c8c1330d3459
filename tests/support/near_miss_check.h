/* Compares a float graph with rewrites with the same one without, by the contract of docs/accuracy.md.
 *
 * The graph also runs without rewrites in float64, once as it is and once with its numbers moved by float32's
 * precision. The first run gives the error of the plain float32 run, the second one the effect of a rounded operand.
 * Both together bound the distance of rewritten outputs to the float64 ones. NaN, infinities and finite numbers are at
 * the same positions as without rewrites; the rewritten run may be exact if the plain one overflowed.
 *
 * Three differences are accepted, the first two as the contract states them to users:
 *   - Beyond 2^104 a rewrite that moves a scale or a constant across a product may overflow. Such a rewrite must have
 *     fired: a graph of large numbers that only other rewrites changed is as finite as before. A partial sum may
 *     overflow to either side, so that an element beyond 2^104 may be anything, such as 0 behind a Relu.
 *   - Convolutions that are added and become one give an infinity for an infinite input where inf - inf is NaN, with
 *     its consequences (0 behind a Relu). Binding cannot know that an input will be infinite. A graph without an
 *     infinity has no such difference.
 *   - A Softmax of such vast scores may choose another key: a partial sum that overflows to -inf drops its key, and
 *     which sums overflow depends on the order of scale and product.
 * Means subtracted from numbers far from 0 have no bound of their own: the moved run moves the inputs of such graphs,
 * whole numbers included, so that it shows the float32 error of the mean. */
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

/* Records the shapes that the engine infers, so that a reducer knows which values are alike. */
void near_miss_learn_shapes(random_graph *g);

#endif
