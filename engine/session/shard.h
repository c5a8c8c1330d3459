/* The plan of a sharded model (prony_shard.h): shard_plan.c cuts, shard_cuts.c chooses the cuts. */
#ifndef PRN_ENGINE_SESSION_SHARD_H
#define PRN_ENGINE_SESSION_SHARD_H

#include "engine/bind/stage.h"
#include "prony_shard.h"

/* Binds and rewrites the whole model of a stage, and narrows the program to the stage. */
PRN_MUST_USE prony_status prn_stage_bind(prn_program **out, const prn_stage *stage, bool rewrites, prony_error *error);

/* A position before node `node`: a cut there is between node - 1 and node. */
typedef struct prn_cut {
    uint32_t node;
    bool allowed;
    uint64_t bytes; /* of the tensors that cross it */
} prn_cut;

/* Costs from which cuts are chosen. Sums over the nodes before each position: [cuts] entries, the first position is 0,
 * the last one the end. */
typedef struct prn_cut_costs {
    const prn_cut *cuts;
    size_t count;
    const double *compute_ns;     /* sums */
    const uint64_t *weight_bytes; /* sums */
    const uint64_t *work;         /* sums: nodes that run a kernel */
    const uint64_t *live_bytes;   /* largest between the position and the next one */
    double latency_ns, ns_per_byte;
    uint64_t memory_limit; /* 0: none */
    prony_shard_by by;
    double slack; /* of the worst stage, for fewer bytes at the cuts: 1.05 allows 5 % more */
} prn_cut_costs;

/* Chooses stages + 1 of the positions, the first and the last among them, ascending. Of the choices whose worst stage
 * is within the slack of the best one, the choice has the fewest bytes at its cuts. False: out of memory. *found is
 * false where no choice fits the memory limit; *least (may be NULL) is then the smallest largest stage. */
PRN_MUST_USE bool prn_cuts_choose(const prn_cut_costs *costs, size_t stages, size_t *chosen, bool *found,
                                  uint64_t *least);

#endif
