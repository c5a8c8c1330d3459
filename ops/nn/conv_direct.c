/* conv_f32_direct: convolution on blocked layouts.
 *
 *     task  = one image, a run of output positions, a group of up to four output channel blocks
 *     pass  = input blocks by the piece whose weights stay in the first-level cache
 *     tile  = a few successive positions (rows are not told apart: each tap of each has its own offset, so that a small
 *             image's edges cost no more than its middle), all blocks of the group, sums in registers
 *
 * Packed weights belong to the model: [group][input block][tap][input lane][block of the group][output lane]; lanes
 * past the last channel are zero, and so are the sums that they make. A residual that comes first is what the sums
 * begin with, so it may lie in the output. Invariant: pieces depend on the problem alone; each output is summed in one
 * order. */
#include "ops/nn/conv_direct.h"
#include "base/alloc.h"
#include "base/integers.h"
#include "base/isa.h"
#include "base/stop.h"
#include "ops/nn/conv_direct_plan.h"

#include <stdio.h>

enum {
    LEAST_WORK = 3000000,     /* multiply-adds */
    LEAST_WIDE_WORK = 300000, /* of several taps with AVX-512 */
    TASK_WORK = 8000000,      /* a task of a small image reads all its group's weights: fewer tasks, less traffic */
    WIDE_TASK_WORK = 3000000, /* with AVX-512 */
    LEAST_TASK_WORK = 1500000,
    MANY_POSITIONS = 192,
    FEW_POSITIONS = 48,
    FEW_TASKS = 8,
    CACHED_WEIGHTS = 5120,       /* floats that leave room for the input in the first-level cache */
    NEAR_WEIGHTS = 1 << 16,      /* floats that stay in the second-level cache */
    WIDE_NEAR_WEIGHTS = 1 << 18, /* of a processor with AVX-512 */
};

bool prn_conv_direct_usable(const prony_context *context)
{
    prn_conv conv;
    if (!prn_isa_has(PRN_HAS_AVX2) || prn_conv_read(context, &conv) != PRONY_OK) return false;
    if (!conv.weights->data || (conv.bias && !conv.bias->data)) return false;
    int64_t lanes = prn_direct_tiles()->lanes;
    if (conv.groups != 1 || conv.batch < 1 || conv.in_channels < 1 || conv.out_channels < 1) return false;
    if (!prn_conv_in_plane(&conv)) return false;
    if (conv.kernel_volume > PRN_DIRECT_MOST_TAPS || conv.in_spatial > INT32_MAX / lanes) return false;
    return prn_direct_can_end(context, conv.out_channels);
}

bool prn_conv_direct_worth(const prony_context *context)
{
    prn_conv conv;
    if (context->precision == PRONY_PRECISION_FP32_STRICT) return true; /* by the shape alone: conv_f32_stem comes first */
    if (prn_conv_read(context, &conv) != PRONY_OK) return false;
    if (prn_direct_tiles()->lanes == 16)
        return conv.in_channels > 3 && (conv.kernel_volume == 1 || prn_conv_image_work(&conv) >= LEAST_WIDE_WORK);
#ifdef PRN_HAVE_DNNL
    if (conv.in_channels % prn_direct_tiles()->lanes || conv.out_channels % prn_direct_tiles()->lanes) return false;
    if (conv.kernel_volume == 1) return false; /* short sums cost tiles much */
    return prn_conv_image_work(&conv) >= LEAST_WORK;
#else
    return conv.in_channels > 3;
#endif
}

void prn_conv_direct_layouts(const prony_context *context, prn_layout *in, prn_layout *out)
{
    prn_layout layout = prn_direct_tiles()->lanes == 16 ? PRN_BLOCKED16 : PRN_BLOCKED8;
    const prn_post_ops *post_ops = context->post_ops;
    in[0] = out[0] = layout;
    if (post_ops && post_ops->count && post_ops->op[0].kind == PRN_POST_ADD) in[post_ops->op[0].input] = layout;
}

/* ---- weights */

/* A unit of input channels from `from` on, for output channels [begin, end), of which there are `channels`. */
static float *pack_unit(const prn_conv *conv, int64_t from, int64_t begin, int64_t end, float *to)
{
    const int64_t unit = PRN_DIRECT_UNIT, volume = conv->kernel_volume, last = prn_least(end, conv->out_channels);
    const float *weights = conv->weights->data;
    for (int64_t t = 0; t < volume * unit; t++, to += end - begin) {
        const int64_t c = from + t % unit;
        if (c < conv->in_channels) {
            for (int64_t k = begin; k < last; k++)
                to[k - begin] = weights[(k * conv->in_channels + c) * volume + t / unit];
        }
        for (int64_t k = c < conv->in_channels ? last : begin; k < end; k++) to[k - begin] = 0.0f;
    }
    return to;
}

static prony_status build_weights(const prony_context *context, void *argument, void *packed)
{
    (void)context;
    const prn_conv *conv = argument;
    int64_t lanes = prn_direct_tiles()->lanes, blocks = prn_ceil_div(conv->out_channels, lanes);
    float *to = packed;
    for (int64_t g = 0; g < prn_ceil_div(blocks, PRN_DIRECT_MOST_BLOCKS); g++) {
        int64_t begin = prn_direct_first_block(blocks, g) * lanes, end = prn_direct_first_block(blocks, g + 1) * lanes;
        for (int64_t c = 0; c < conv->in_channels && !prn_stopped(); c += PRN_DIRECT_UNIT)
            to = pack_unit(conv, c, begin, end, to);
    }
    return PRONY_OK;
}

static prony_status pack(const prony_context *context, prn_direct_plan *plan)
{
    const prn_conv *conv = &plan->conv;
    const int64_t lanes = plan->simd->lanes;
    char tag[96];
    const void *packed;
    snprintf(tag, sizeof tag, "conv direct %lld lanes: %lld x %lld x %lld", (long long)lanes,
             (long long)conv->out_channels, (long long)conv->in_channels, (long long)conv->kernel_volume);
    size_t bytes = prony_dtype_bytes(PRONY_FLOAT32, plan->blocks * lanes * plan->units_in * PRN_DIRECT_UNIT * conv->kernel_volume);
    PRN_TRY(context->host->packed(context, conv->weights->data, tag, bytes, build_weights, &plan->conv, &packed));
    plan->packed = packed;
    return PRONY_OK;
}

/* ---- plan */

static void find_steps(prn_direct_plan *plan)
{
    const prn_window *window = &plan->conv.window;
    int32_t *step = plan->steps;
    for (int axis = 0; axis < 2; axis++)
        plan->last_inside[axis] = window->in[axis + 1] - prn_window_reach(window, axis + 1);
    for (int64_t ky = 0; ky < window->kernel[1] && plan->last_inside[0] >= 0 && plan->last_inside[1] >= 0; ky++) {
        for (int64_t kx = 0; kx < window->kernel[2]; kx++) {
            int64_t place = ky * window->dilation[1] * window->in[2] + kx * window->dilation[2];
            *step++ = (int32_t)(place * plan->simd->lanes);
        }
    }
    plan->in_a_row = plan->conv.kernel_volume == 1 && window->pad_begin[1] == 0 && window->pad_begin[2] == 0 &&
                     window->stride[1] == 1 && window->stride[2] == 1 &&
                     plan->conv.in_spatial == plan->conv.out_spatial;
}

/* Pieces of an image. Each reads all weights of its group, which many tiles make up for; with AVX-512, whose tiles are
 * the faster, no more are made than several threads need. */
static int64_t wanted_pieces(const prn_direct_plan *plan)
{
    const prn_conv *conv = &plan->conv;
    const double work = prn_conv_image_work(conv) / (double)plan->groups;
    if (plan->simd->lanes != 16) return (int64_t)(work / TASK_WORK) + 1;
    const int64_t tasks = plan->groups * conv->batch;
    int64_t pieces = prn_least((int64_t)(work / WIDE_TASK_WORK) + 1, prn_ceil_div(conv->out_spatial, MANY_POSITIONS));
    if (tasks * pieces < FEW_TASKS)
        pieces = prn_least(prn_ceil_div(FEW_TASKS, tasks),
                       prn_least(prn_ceil_div(conv->out_spatial, FEW_POSITIONS), (int64_t)(work / LEAST_TASK_WORK) + 1));
    return pieces > 1 && tasks * pieces % 2 ? pieces + 1 : pieces;
}

/* Units of input channels whose weights stay in the first-level cache while all tiles of a piece pass, as the widest tiles have
 * them: sums must not depend on the processor. */
static int64_t pass_units(const prn_conv *conv)
{
    const int64_t units = prn_ceil_div(conv->out_channels, PRN_DIRECT_UNIT),
                  groups = prn_ceil_div(units, PRN_DIRECT_MOST_BLOCKS);
    const int64_t weights = conv->kernel_volume * PRN_DIRECT_UNIT * PRN_DIRECT_UNIT * prn_ceil_div(units, groups);
    return CACHED_WEIGHTS / weights > 1 ? CACHED_WEIGHTS / weights : 1;
}

/* Pieces as even as whole tiles allow. Weights that stay near may be read again for each piece of the input, which is
 * then read by one thread; the others are read by one. */
static void cut(prn_direct_plan *plan)
{
    const prn_conv *conv = &plan->conv;
    const int64_t lanes = plan->simd->lanes, widest = prn_ceil_div(plan->blocks, plan->groups);
    plan->unit = prn_direct_most(plan, widest);
    plan->units = prn_ceil_div(conv->out_spatial, plan->unit);
    const int64_t most = plan->in_a_row ? plan->units : PRN_DIRECT_MOST_OFFSETS / conv->kernel_volume / plan->unit;
    const int64_t wanted = prn_least(wanted_pieces(plan), plan->units), fewest = prn_ceil_div(plan->units, most);
    plan->pieces = wanted > fewest ? wanted : fewest;
    plan->groups_inside = conv->in_channels * conv->out_channels * conv->kernel_volume <=
                          (lanes == 16 ? WIDE_NEAR_WEIGHTS : NEAR_WEIGHTS);
    plan->per_pass = pass_units(conv) * (PRN_DIRECT_UNIT / lanes);
}

prony_status prn_conv_direct_prepare(const prony_context *context, prn_prepared *out)
{
    prn_conv conv;
    PRN_TRY(prn_conv_read(context, &conv));
    prn_direct_plan *plan = prn_calloc(1, sizeof *plan + (size_t)conv.kernel_volume * sizeof plan->steps[0]);
    if (!plan) return prn_no_memory(context->error);
    plan->simd = prn_direct_tiles();
    plan->conv = conv;
    plan->in_blocks = prn_ceil_div(conv.in_channels, plan->simd->lanes);
    plan->units_in = prn_ceil_div(conv.in_channels, PRN_DIRECT_UNIT);
    plan->blocks = prn_ceil_div(conv.out_channels, plan->simd->lanes);
    plan->groups = prn_ceil_div(plan->blocks, PRN_DIRECT_MOST_BLOCKS);
    find_steps(plan);
    plan->end = prn_direct_find_end(context->post_ops);
    cut(plan);
    prony_status status = pack(context, plan);
    if (status != PRONY_OK) {
        prn_free(plan);
        return status;
    }
    out->state = plan;
    return PRONY_OK;
}

void prn_conv_direct_release(void *state)
{
    prn_free(state);
}

void prn_conv_direct_facts(const prony_context *context, prony_cost *facts)
{
    prn_conv conv;
    if (prn_conv_read(context, &conv) != PRONY_OK) return;
    int64_t lanes = prn_direct_tiles()->lanes,
            wide = prn_least(prn_ceil_div(conv.out_channels, lanes), PRN_DIRECT_MOST_BLOCKS);
    prn_cost_fact(facts, "product_rows", conv.out_spatial);
    prn_cost_fact(facts, "product_columns", conv.out_channels);
    prn_cost_fact(facts, "product_depth", conv.in_channels * conv.kernel_volume);
    prn_cost_fact(facts, "tile_rows", prn_direct_tiles()->positions[wide]);
    prn_cost_fact(facts, "tile_columns", lanes * wide);
}
