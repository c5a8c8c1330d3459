/* The contents of a plan of stages; private to shard_plan.c, shard_kernels.c and shard_stages.c. */
#ifndef PRN_ENGINE_SESSION_SHARD_STATE_H
#define PRN_ENGINE_SESSION_SHARD_STATE_H

#include "engine/session/session.h"
#include "engine/session/shard.h"

struct prony_shard_plan {
    prony_model *model; /* a reference */
    prn_bump pool;
    prony_session_options session; /* pointers are the caller's, and gone once the plan is made */
    prony_value *inputs;           /* types and shapes of the model's */
    size_t input_count;
    prn_program *program; /* while the plan is made: of the whole model */
    prn_step_rates rates;
    int threads;
    const char *basis;
    char digest[65];
    /* By value: the node that makes it and the last one that reads it, plus 1. */
    uint32_t *maker, *last_read, reading;
    /* By position. */
    prn_cut *cuts;
    double *compute_ns;
    uint64_t *weight_bytes, *work, *live_bytes;
    size_t cut_count, places;
    size_t *chosen; /* [stage_count + 1] positions */
    size_t stage_count;
    prony_shard_stage *stages;
    prony_model **models; /* [stage_count] */
    double latency_ns, bytes_per_ns;
};

/* Compares the kernels of each stage with those of the unsharded plan. *refused: a position between two stages to be
 * given up; 0: all kernels are the same. (shard_kernels.c) */
PRN_MUST_USE prony_status prn_shard_check_kernels(prony_shard_plan *plan, size_t *refused, prony_error *error);
/* Rows and models of the chosen stages. (shard_stages.c) */
PRN_MUST_USE prony_status prn_shard_fill_stages(prony_shard_plan *plan, const prony_shard_options *options,
                                                prony_error *error);

#endif
