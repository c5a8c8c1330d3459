/* Which step must run before which: the edges of a plan that several workers run, what follows from them, and how long
 * a path through the graph takes.
 *
 *   makers     the steps whose work a value is: through views, parts and joins that have no step of their own
 *   edges      from the makers of what a step reads, or a subgraph of it captures, to that step; from a window's last
 * steps to the next window's first one, and from there to all reach      for every step those that can only run after
 * it
 *
 * Steps stand in an order in which they can run one after another, so an edge leads to a higher number. Reach is kept
 * for windows of successive steps, and everything in a window runs before all of the next: so it takes 256 bytes a step
 * however many steps there are, and models of usual size are one window. Owns its arrays; nothing changes after it is
 * made.
 */
#ifndef PRN_ENGINE_PLAN_STEP_GRAPH_H
#define PRN_ENGINE_PLAN_STEP_GRAPH_H

#include "engine/plan/plan.h"

#define PRN_WINDOW_STEPS 2048u
#define PRN_WINDOW_WORDS (PRN_WINDOW_STEPS / 64)

/* For every value of the plan the steps that it is made by, ascending; steps that are gone do not count. */
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
    uint64_t *after;          /* [steps][PRN_WINDOW_WORDS] those of the same window that run after it */
    double *cost_ns;          /* [steps] by analytic cost */
    double *path_ns;          /* [steps] longest path that starts with it */
    uint32_t *by_rank, *rank; /* steps in order of urgency (longest path first, then position), and the place of each */
    double total_ns, critical_ns;
} prn_step_graph;

/* Before steps that are gone are taken out of the plan. PRONY_LIMIT: more edges than are kept. */
PRN_MUST_USE prony_status prn_makers_find(prn_makers *makers, const prn_plan *plan, prony_error *error);
void prn_makers_free(prn_makers *makers);

PRN_MUST_USE prony_status prn_step_graph_create(prn_step_graph **out, const prn_plan *plan, const prn_makers *makers,
                                                const prn_step_rates *rates, prony_error *error);
void prn_step_graph_release(prn_step_graph *graph);

static inline const uint64_t *prn_step_after(const prn_step_graph *graph, uint32_t step)
{
    return graph->after + step * (size_t)PRN_WINDOW_WORDS;
}

/* Whether `a` ends before `b` starts in every order. */
static inline bool prn_step_before(const prn_step_graph *graph, uint32_t a, uint32_t b)
{
    uint32_t from = a / PRN_WINDOW_STEPS, to = b / PRN_WINDOW_STEPS, bit = b % PRN_WINDOW_STEPS;
    return from < to || (from == to && (prn_step_after(graph, a)[bit / 64] >> bit % 64 & 1));
}

#endif
