/* The prepared problem of a plan step of conv_f32_direct, convtranspose_f32_direct or conv_f32_stem; shared by their
 * files alone. */
#ifndef PRN_OPS_CONV_CONV_DIRECT_PLAN_H
#define PRN_OPS_CONV_CONV_DIRECT_PLAN_H

#include "base/integers.h"
#include "ops/kernels/window/conv_problem.h"
#include "ops/conv/conv_direct_simd.h"

enum {
    PRN_DIRECT_MOST_OFFSETS = 4096, /* of a task: [tap][position] of all its tiles */
    PRN_DIRECT_MOST_TAPS = PRN_DIRECT_MOST_OFFSETS / PRN_DIRECT_MOST_POSITIONS,
    PRN_DIRECT_MOST_FRESH = 8
};

/* Post-operations that the tiles apply to their sums. */
typedef struct prn_direct_epilogue {
    size_t added; /* which input they are added to; 0: none */
    bool clamped; /* what they become between `low` and `high` */
    float low, high;
    prn_post_ops rest;  /* what follows on that */
    int64_t blocks;     /* of output channels */
    int64_t kept_lanes; /* of the last of them, where post-operations leave something in the others, which are cleared;
                           0: nothing is to be */
} prn_direct_epilogue;

/* True if there is anything to do for prn_direct_apply_epilogue. */
static inline bool prn_direct_has_rest(const prn_direct_epilogue *end)
{
    return end->rest.count > 0 || end->kept_lanes > 0;
}

/* The input that one tap of a window reads, and its weight in the filter. */
typedef struct prn_direct_tap {
    int64_t number;              /* of the filter's taps, in row-major order */
    int64_t at[PRN_WINDOW_AXES]; /* where it reads, from where the window begins: planes, rows, places of the input */
} prn_direct_tap;

/* Outputs of a convolution whose windows have the same taps: all of a Conv's, one in every stride along each axis of a
 * ConvTranspose's. */
typedef struct prn_direct_part {
    int64_t positions[PRN_WINDOW_AXES];                       /* how many there are along each axis */
    int64_t origin[PRN_WINDOW_AXES], stride[PRN_WINDOW_AXES]; /* where the first one's window begins in the input, and
                                                                 from each to the next */
    int64_t out_first[PRN_WINDOW_AXES], out_step[PRN_WINDOW_AXES]; /* where they are in the output */
} prn_direct_part;

/* A plain image as the source of tiles: the taps are all channels' rows and columns of a window, and stand at constant
 * distances from its beginning (conv_first_layer.c). */
typedef struct prn_direct_windows {
    bool padded;                   /* the image is copied into the scratch with its padding; the plan's `conv` is the
                                      problem on the copy */
    int64_t image[2], before[2];   /* its rows and columns, the padding in front of them */
    int64_t span;                  /* columns of a copy of a tile's windows */
    int32_t *steps, *copied_steps; /* from a window's first element to each, in the image and in such a copy */
    int32_t both[];
} prn_direct_windows;

/* A part of the problem with its cut. The data of conv.x and conv.y is found anew in every run. */
typedef struct prn_direct_plan {
    const prn_direct_simd *simd;
    prn_conv conv;
    prn_direct_part part;
    const float *packed;
    int64_t spots;                     /* output positions */
    int64_t in_blocks, blocks, groups; /* of channels; groups of output blocks */
    int64_t units_in;                  /* of input channels */
    int64_t per_pass;                  /* input blocks, whole units of them */
    int64_t unit, units, pieces;       /* positions that pieces begin at multiples of; units and pieces of an image */
    int64_t first_task;                /* of all that the node has */
    bool groups_inside;                /* successive tasks share a piece, not a group */
    bool in_a_row;                     /* one tap, no steps, no padding: positions follow each other in the input too */
    bool spread;                       /* they do not follow each other in the output */
    int64_t depth, unit_depth;         /* input channels of a tap; those of a unit of packed weights */
    prn_direct_windows *windows;       /* NULL: the input is blocked */
    prn_direct_epilogue end;
    int64_t first_inside[PRN_WINDOW_AXES], last_inside[PRN_WINDOW_AXES]; /* where in the input a window can begin and
                                                                            meet no padding */
    int16_t fresh[PRN_DIRECT_MOST_FRESH]; /* taps that read what no window of an earlier row or column has read */
    int64_t fresh_count;
    int64_t taps;
    int32_t *steps; /* behind the taps: inputs of the taps that are not padding, in floats of a blocked image */
    prn_direct_tap tap[];
} prn_direct_plan;

/* The state of both kernels. */
typedef struct prn_direct_state {
    int64_t sets;                     /* of weights and biases: image i has number i modulo sets */
    bool variable;                    /* the weights are packed into the scratch by each run */
    int64_t set_step, k_step, c_step; /* the weight of a set's output channel k, input channel c and tap t is at
                                         set set_step + k k_step + c c_step + t */
    int64_t tasks;
    size_t count;
    prn_direct_plan *plans[];
} prn_direct_state;

/* Most positions of a tile with so many output blocks. Tiles of plain windows end with the row, whose positions they
 * share evenly. */
static inline int64_t prn_direct_most(const prn_direct_plan *plan, int64_t blocks)
{
    const int64_t width = plan->part.positions[2];
    if (plan->windows) return prn_ceil_div(width, prn_ceil_div(width, plan->simd->row_positions[blocks]));
    return plan->in_a_row ? plan->simd->row_positions[blocks] : plan->simd->positions[blocks];
}

/* Multiply-adds of an image. Taps of plain windows are those of all input channels. */
static inline double prn_direct_work(const prn_direct_plan *plan)
{
    return (double)plan->spots * (double)plan->taps * (double)plan->depth * (double)plan->conv.out_channels;
}

/* Groups whose channels fill whole blocks lie in memory as images of their own, with one set of weights after the
 * other. */
static inline bool prn_direct_takes_groups(const prn_conv *conv)
{
    return conv->groups == 1 || (conv->group_in % PRN_DIRECT_UNIT == 0 && conv->group_out % PRN_DIRECT_UNIT == 0);
}

/* The problem of such images. */
static inline prn_conv prn_direct_of_groups(const prn_conv *conv)
{
    prn_conv one = *conv;
    one.batch *= conv->groups;
    one.groups = 1;
    one.in_channels = conv->group_in;
    one.out_channels = conv->group_out;
    return one;
}

/* Floats of one set of a part's packed weights. */
static inline int64_t prn_direct_packed_count(const prn_direct_plan *plan)
{
    return plan->blocks * plan->simd->lanes * plan->units_in * plan->unit_depth * plan->taps;
}

/* An empty state of `count` parts; NULL: no memory. */
prn_direct_state *prn_direct_state_make(size_t count, int64_t sets);
/* Describes tap number `index` of a part. */
typedef void prn_direct_tap_fn(const void *argument, int64_t index, prn_direct_tap *tap);
/* Adds a part with `taps` taps to the state; `tap` describes each. `windows`: the source is a plain image; NULL: it is
 * blocked. The other fields are derived. */
prony_status prn_direct_add_part(const prony_context *context, prn_direct_state *state, const prn_conv *conv,
                                 const prn_direct_part *part, int64_t taps, prn_direct_tap_fn *tap,
                                 const void *argument, prn_direct_windows *windows);
/* Packs the weights of all parts, once for all sessions of the model. `phases`: the window whose taps the parts
 * divide among them, by its strides; NULL: every part has all taps. */
prony_status prn_direct_pack(const prony_context *context, prn_direct_state *state, const prn_window *phases);
/* Floats of all parts' packed weights, and packing them from where they lie in this run. */
int64_t prn_direct_packed_floats(const prn_direct_state *state);
void prn_direct_pack_here(int threads, const prn_direct_state *state, const float *weights, float *packed);

/* Copies the image of a plan of padded windows into the scratch, and runs tiles over a row of the output; `tile` is the
 * first one's, and the next row's afterwards. */
void prn_direct_pad_image(const prony_context *context, const prn_direct_plan *plan);
void prn_direct_run_row(const prn_direct_plan *plan, const float *image, int64_t row, int64_t most, int64_t blocks,
                        prn_direct_tile *tile);

/* Facts of a part with so many output positions, whose sums have so many products. */
void prn_direct_facts(int64_t out_channels, int64_t positions, int64_t depth, prony_cost *facts);

/* The tiles of the running processor. */
const prn_direct_simd *prn_direct_tiles(void);
/* True if tiles of so many output channels can end with the context's post-operations. */
bool prn_direct_can_fuse(const prony_context *context, int64_t out_channels);
/* True if there are post-operations that tiles leave to the loops of vec.h, where they take less than in oneDNN's
 * kernels with AVX2. */
bool prn_direct_epilogue_has_maps(const prony_context *context);
prn_direct_epilogue prn_direct_find_epilogue(const prn_post_ops *post_ops, int64_t out_channels);
/* `width` lanes of the bias (NULL: none, zeros) of a set of `channels` from channel `first` on. */
void prn_direct_copy_bias(const prony_value *from, int64_t channels, int64_t set, int64_t first, int64_t width,
                          float *bias);
/* The work that tiles leave for the output positions [begin, end) of some blocks of an image. */
void prn_direct_apply_epilogue(const prony_context *context, const prn_direct_epilogue *end, float *y,
                               int64_t first_plane, int64_t planes, int64_t spatial, int64_t from, int64_t to);

/* The output blocks are dealt to as few groups as there can be, evenly: the first block of group `group`. */
int64_t prn_direct_first_block(int64_t blocks, int64_t group);

#endif
