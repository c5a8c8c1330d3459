/* What a plan step of conv_f32_direct or conv_f32_stem knows of its problem; shared by their files alone. */
#ifndef PRN_OPS_NN_CONV_DIRECT_PLAN_H
#define PRN_OPS_NN_CONV_DIRECT_PLAN_H

#include "ops/loops/conv_problem.h"
#include "ops/nn/conv_direct_simd.h"

enum {
    PRN_DIRECT_MOST_OFFSETS = 4096, /* of a task: [tap][position] of all its tiles */
    PRN_DIRECT_MOST_TAPS = PRN_DIRECT_MOST_OFFSETS / PRN_DIRECT_MOST_POSITIONS
};

/* How the sums end. */
typedef struct prn_direct_end {
    size_t added; /* which input they are added to; 0: none */
    bool clamped; /* what they become between `low` and `high` */
    float low, high;
    prn_post_ops rest; /* what follows on that */
} prn_direct_end;

/* conv_f32_direct's state. What lies behind conv.x and conv.y is found anew in every run. */
typedef struct prn_direct_plan {
    const prn_direct_simd *simd;
    prn_conv conv;
    const float *packed;
    int64_t in_blocks, blocks, groups; /* of channels; groups of output blocks */
    int64_t units_in;                  /* of input channels */
    int64_t per_pass;                  /* input blocks, whole units of them */
    int64_t unit, units, pieces;       /* positions that pieces begin at multiples of; units and pieces of an image */
    bool groups_inside;                /* successive tasks share a piece, not a group */
    bool in_a_row;                     /* one tap, no steps, no padding: positions follow each other in the input too */
    prn_direct_end end;
    int64_t last_inside[2]; /* rows and places of the input where a window can begin and meet no padding */
    int32_t steps[];        /* from the first tap to each, where none is padding */
} prn_direct_plan;

/* Most positions of a tile with so many output blocks. */
static inline int64_t prn_direct_most(const prn_direct_plan *plan, int64_t blocks)
{
    return plan->in_a_row ? plan->simd->row_positions[blocks] : plan->simd->positions[blocks];
}

/* The tiles of the running processor. */
const prn_direct_simd *prn_direct_tiles(void);
/* Whether tiles of so many output channels can end with the context's post-operations; what they are then. */
bool prn_direct_can_end(const prony_context *context, int64_t out_channels);
prn_direct_end prn_direct_find_end(const prn_post_ops *post_ops);
/* `width` lanes of the bias from channel `first` on; zeros where there is none. */
void prn_direct_copy_bias(const prn_conv *conv, int64_t first, int64_t width, float *bias);
/* What the tiles leave to do with the output positions [begin, end) of some blocks of an image. */
void prn_direct_finish(const prony_context *context, const prn_direct_end *end, float *y, int64_t first_plane,
                       int64_t planes, int64_t spatial, int64_t from, int64_t to);

/* The output blocks are dealt to as few groups as there can be, evenly: the first block of group `group`. */
int64_t prn_direct_first_block(int64_t blocks, int64_t group);

#endif
