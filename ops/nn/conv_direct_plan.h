/* What a plan step of conv_f32_direct knows of its problem; shared by the conv_direct*.c files alone. */
#ifndef PRN_OPS_NN_CONV_DIRECT_PLAN_H
#define PRN_OPS_NN_CONV_DIRECT_PLAN_H

#include "ops/loops/conv_problem.h"
#include "ops/nn/conv_direct_simd.h"

enum {
    PRN_DIRECT_MOST_OFFSETS = 4096, /* of a task: [tap][position] of all its tiles */
    PRN_DIRECT_MOST_TAPS = PRN_DIRECT_MOST_OFFSETS / PRN_DIRECT_MOST_POSITIONS
};

/* The state. What lies behind conv.x and conv.y is found anew in every run. */
typedef struct prn_direct_plan {
    const prn_direct_simd *simd;
    prn_conv conv;
    const float *packed;
    int64_t in_blocks, blocks, groups; /* of channels; groups of output blocks */
    int64_t per_pass;                  /* input blocks */
    int64_t positions, pieces;         /* of a task; of an image */
    bool groups_inside;                /* successive tasks share a piece, not a group */
    bool in_a_row;                     /* one tap, no steps, no padding: positions follow each other in the input too */
    size_t added;                      /* which input the sums are added to; 0: none */
    bool clamped;                      /* what the sums become between `low` and `high` */
    float low, high;
    prn_post_ops rest;      /* what follows on that */
    int64_t last_inside[2]; /* rows and places of the input where a window can begin and meet no padding */
    int32_t steps[];        /* from the first tap to each, where none is padding */
} prn_direct_plan;

/* Most positions of a tile with so many output blocks. */
static inline int64_t prn_direct_most(const prn_direct_plan *plan, int64_t blocks)
{
    return plan->in_a_row ? plan->simd->row_positions[blocks] : plan->simd->positions[blocks];
}

/* The output blocks are dealt to as few groups as there can be, evenly: the first block of group `group`. */
int64_t prn_direct_first_block(int64_t blocks, int64_t group);

#endif
