/* The minimum cut between a source and a sink of a directed graph with capacities. Pure and deterministic: the same
 * edges in the same order give the same side to every node. */
#ifndef PRN_ENGINE_MEMORY_MIN_CUT_H
#define PRN_ENGINE_MEMORY_MIN_CUT_H

#include "base/status.h"

typedef struct prn_min_cut prn_min_cut;

/* A capacity that no cut pays, as long as the capacities at the source sum up to less. */
#define PRN_CUT_NEVER (INT64_MAX / 2)

enum { PRN_CUT_SOURCE, PRN_CUT_SINK, PRN_CUT_FIRST }; /* numbers of nodes; others follow from PRN_CUT_FIRST on */

/* For nodes below `nodes` and at most `edges` edges. NULL: out of memory. */
prn_min_cut *prn_min_cut_create(size_t nodes, size_t edges);
void prn_min_cut_release(prn_min_cut *cut); /* NULL: does nothing */
/* A cut pays `capacity` (0 or more) if `from` is on the source's side and `to` is not. */
void prn_min_cut_edge(prn_min_cut *cut, uint32_t from, uint32_t to, int64_t capacity);
/* Solves the problem; source_side[n] receives the side of each node. Of all minimum cuts it takes the one with the most
 * nodes on the source's side. false: the search was too expensive, and the sides are undefined. */
bool prn_min_cut_solve(prn_min_cut *cut, bool *source_side);

#endif
