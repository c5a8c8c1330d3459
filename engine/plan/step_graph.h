/* The order of a plan's steps for several workers: the edges between steps, their transitive closure, and the time of
 * the longest paths.
 *
 *   makers     the steps that compute a value, through views, slices and joins that have no step of their own
 *   edges      from the makers of an operand, or of a value that a subgraph captures, to the step that reads it; also
 *              from the last steps of a window to the first step of the next one, and from this step to all others
 *   reach      for every step the steps that can only run after it
 *
 * Steps stand in a valid sequential order, so an edge leads to a higher number. Reach is kept for windows of successive
 * steps, and a window runs completely before the next one. So reach takes 256 bytes a step for any number of steps, and
 * models of usual size are one window. Owns its arrays; nothing changes after it is made.
 */
#ifndef PRN_ENGINE_PLAN_STEP_GRAPH_H
#define PRN_ENGINE_PLAN_STEP_GRAPH_H

#include "engine/plan/plan.h"

/* Steps per window: 256 bytes of reach a step; most models are one window. */
#define PRN_WINDOW_STEPS 2048u
#define PRN_WINDOW_WORDS (PRN_WINDOW_STEPS / 64)

/* For every value of the plan the steps that make it, ascending; removed steps do not count. */
typedef struct prn_makers {
    uint32_t *begin, *count; /* [values] into `steps` */
    uint32_t *steps;
    size_t used, capacity;
} prn_makers;

typedef struct prn_step_graph {
    uint32_t step_count;
    uint32_t *before_count; /* [steps] edges that lead here */
    uint32_t *next_begin;   /* [steps + 1] into `next` */
    uint32_t *next;
    uint64_t *after;          /* [steps][PRN_WINDOW_WORDS] steps of the same window that run after it */
    double *cost_ns;          /* [steps] by analytic cost */
    double *path_ns;          /* [steps] longest path that starts with it */
    uint32_t *by_rank, *rank; /* steps in order of urgency (longest path first, then position), and each step's rank */
    double total_ns, critical_ns;
} prn_step_graph;

/* Called before removed steps are taken out of the plan. PRONY_LIMIT: too many edges. */
PRN_MUST_USE prony_status prn_makers_find(prn_makers *makers, const prn_plan *plan, prony_error *error);
void prn_makers_free(prn_makers *makers);

PRN_MUST_USE prony_status prn_step_graph_create(prn_step_graph **out, const prn_plan *plan, const prn_makers *makers,
                                                const prn_step_rates *rates, prony_error *error);
void prn_step_graph_release(prn_step_graph *graph);

static inline const uint64_t *prn_step_after(const prn_step_graph *graph, uint32_t step)
{
    return graph->after + step * (size_t)PRN_WINDOW_WORDS;
}

/* true: `a` ends before `b` starts in every order. */
static inline bool prn_step_before(const prn_step_graph *graph, uint32_t a, uint32_t b)
{
    uint32_t from = a / PRN_WINDOW_STEPS, to = b / PRN_WINDOW_STEPS, bit = b % PRN_WINDOW_STEPS;
    return from < to || (from == to && (prn_step_after(graph, a)[bit / 64] >> bit % 64 & 1));
}

#endif
