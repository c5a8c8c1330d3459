/* Shared by conv_f32_direct, conv_f32_first_layer and convtranspose_f32_direct before they run: their parts, how these
 * are cut to tasks, and the packed weights. */
#include "base/memory/alloc.h"
#include "base/integers.h"
#include "base/threads/cancel.h"
#include "ops/kernels/copy/copy_nd.h"
#include "ops/conv/conv_kernels.h"
#include "ops/conv/conv_direct_plan.h"

#include <stdio.h>

/* AVX-512's values came with these minima of interleaved rounds on Sapphire Rapids: resnet50 at two threads 28.3 to
 * 25.3 ms, mobilenet_v2 5.4 to 5.0 ms. LONG_SUM was 80 to 320 before: densenet121 took 0.97, resnet50 0.98 of its
 * time. The others have no recorded measurement. */
enum {
    TASK_WORK = 8000000,      /* a task of a small image reads all its group's weights: fewer tasks, less traffic */
    WIDE_TASK_WORK = 3000000, /* with AVX-512 */
    LEAST_TASK_WORK = 1500000,
    MANY_POSITIONS = 192,
    FEW_POSITIONS = 48,
    FEW_TASKS = 8,
    WINDOWS_TASK_WORK = 1500000, /* of plain windows: first layers on Sapphire Rapids, resnet50's at two threads 1164 to
                                    665 us */
    WINDOWS_MOST_PIECES = 64,
    LONG_SUM = 384, /* products: weights of so many stream from the second-level cache beside a tile, and sums are
                       stored and taken up again seldom */
    NEAR_WEIGHTS = 1 << 16,      /* floats that stay in the second-level cache */
    WIDE_NEAR_WEIGHTS = 1 << 18, /* of a processor with AVX-512 */
};

/* ---- cut */

/* Pieces of an image. Each reads all weights of its group, which many tiles make up for; with AVX-512, whose tiles are
 * the faster, no more are made than several threads need. */
static int64_t wanted_pieces(const prn_direct_plan *plan)
{
    const double work = prn_direct_work(plan) / (double)plan->groups;
    if (plan->windows) {
        const int64_t pieces = work < (double)WINDOWS_MOST_PIECES * WINDOWS_TASK_WORK
                                   ? (int64_t)(work / WINDOWS_TASK_WORK) + 1
                                   : WINDOWS_MOST_PIECES;
        return pieces + (pieces > 1 && pieces % 2);
    }
    if (plan->simd->lanes != 16) return (int64_t)(work / TASK_WORK) + 1;
    const int64_t tasks = plan->groups * plan->conv.batch;
    int64_t pieces = prn_least((int64_t)(work / WIDE_TASK_WORK) + 1, prn_ceil_div(plan->spots, MANY_POSITIONS));
    if (tasks * pieces < FEW_TASKS)
        pieces = prn_least(prn_ceil_div(FEW_TASKS, tasks),
                           prn_least(prn_ceil_div(plan->spots, FEW_POSITIONS), (int64_t)(work / LEAST_TASK_WORK) + 1));
    return pieces > 1 && tasks * pieces % 2 ? pieces + 1 : pieces;
}

/* Units of input channels whose products are one running sum: as many in each as the fewest sums allow. The problem
 * alone decides: sums must not depend on the processor. */
static int64_t pass_units(const prn_direct_plan *plan)
{
    const int64_t products = plan->taps * PRN_DIRECT_UNIT;
    if (products == 0) return plan->units_in;
    const int64_t most = LONG_SUM / products > 1 ? LONG_SUM / products : 1;
    return prn_ceil_div(plan->units_in, prn_ceil_div(plan->units_in, most));
}

/* Pieces as even as whole tiles allow. Weights that stay near may be read again for each piece of the input, which is
 * then read by one thread; the others are read by one. */
static void conv_direct_phases_choose_tiling(prn_direct_plan *plan)
{
    const prn_conv *conv = &plan->conv;
    const int64_t lanes = plan->simd->lanes, widest = prn_ceil_div(plan->blocks, plan->groups),
                  taps = plan->taps > 1 ? plan->taps : 1;
    plan->unit = plan->windows ? plan->part.positions[2] : prn_direct_most(plan, widest);
    plan->units = prn_ceil_div(plan->spots, plan->unit);
    const int64_t most = plan->in_a_row || plan->windows ? plan->units : PRN_DIRECT_MOST_OFFSETS / taps / plan->unit;
    const int64_t wanted = prn_least(wanted_pieces(plan), plan->units), fewest = prn_ceil_div(plan->units, most);
    plan->pieces = wanted > fewest ? wanted : fewest;
    plan->groups_inside = plan->windows || conv->in_channels * conv->out_channels * plan->taps <=
                                               (lanes == 16 ? WIDE_NEAR_WEIGHTS : NEAR_WEIGHTS);
    plan->per_pass = pass_units(plan) * (PRN_DIRECT_UNIT / lanes);
}

/* ---- parts */

prn_direct_state *prn_direct_state_make(size_t count, int64_t sets)
{
    prn_direct_state *state = prn_calloc(1, sizeof *state + count * sizeof state->plans[0]);
    if (state) state->sets = sets;
    return state;
}

void prn_conv_direct_release(void *released)
{
    prn_direct_state *state = released;
    for (size_t i = 0; state && i < state->count; i++) {
        prn_free(state->plans[i]->windows);
        prn_free(state->plans[i]);
    }
    prn_free(state);
}

/* The reads of taps, and the positions where windows can begin and meet no padding. */
static void conv_direct_phases_find_taps(prn_direct_plan *plan)
{
    const prn_window *window = &plan->conv.window;
    for (int axis = 0; axis < PRN_WINDOW_AXES; axis++) {
        int64_t first = 0, last = 0;
        for (int64_t t = 0; t < plan->taps; t++) {
            const int64_t at = plan->tap[t].at[axis];
            if (t == 0 || at < first) first = at;
            if (t == 0 || at > last) last = at;
        }
        plan->first_inside[axis] = -first;
        plan->last_inside[axis] = window->in[axis] - 1 - last;
    }
    for (int axis = 0; axis < PRN_WINDOW_AXES; axis++)
        if (plan->first_inside[axis] > plan->last_inside[axis]) return; /* every window meets padding */
    for (int64_t t = 0; t < plan->taps; t++) {
        const int64_t *at = plan->tap[t].at;
        plan->steps[t] = (int32_t)(((at[0] * window->in[1] + at[1]) * window->in[2] + at[2]) * plan->simd->lanes);
    }
}

/* True if the tap is one of the window's last places along each axis, as many as the next window lies further on. */
static bool is_fresh(const prn_direct_plan *plan, int64_t tap)
{
    for (int axis = 0; axis < PRN_WINDOW_AXES; axis++)
        for (int64_t t = 0; t < plan->taps; t++)
            if (plan->tap[t].at[axis] >= plan->tap[tap].at[axis] + plan->part.stride[axis]) return false;
    return true;
}

static void find_fresh(prn_direct_plan *plan)
{
    for (int64_t t = 0; t < plan->taps && plan->fresh_count < PRN_DIRECT_MOST_FRESH; t++)
        if (is_fresh(plan, t)) plan->fresh[plan->fresh_count++] = (int16_t)t;
}

static bool follow_each_other(const prn_direct_plan *plan, const int64_t first[], const int64_t step[],
                              const int64_t extents[])
{
    for (int axis = 0; axis < PRN_WINDOW_AXES; axis++)
        if (first[axis] != 0 || step[axis] != 1 || plan->part.positions[axis] != extents[axis]) return false;
    return true;
}

/* Appends the plan of one part (taps, offsets, epilogue, tiling) to the state, which owns it, and its windows. Tasks
 * are numbered across parts: first_task grows from plan to plan. */
prony_status prn_direct_add_part(const prony_context *context, prn_direct_state *state, const prn_conv *conv,
                                 const prn_direct_part *part, int64_t taps, prn_direct_tap_fn *tap,
                                 const void *argument, prn_direct_windows *windows)
{
    prn_direct_plan *plan = prn_calloc(1, sizeof *plan + (size_t)taps * (sizeof plan->tap[0] + sizeof plan->steps[0]));
    if (!plan) {
        prn_free(windows);
        return prn_no_memory(context->error);
    }
    plan->steps = (int32_t *)&plan->tap[taps];
    state->plans[state->count++] = plan;
    plan->simd = prn_direct_tiles();
    plan->conv = *conv;
    plan->part = *part;
    plan->windows = windows;
    plan->spots = prn_window_volume(part->positions);
    plan->taps = taps;
    plan->depth = windows ? 1 : conv->in_channels;
    plan->unit_depth = windows ? 1 : PRN_DIRECT_UNIT;
    plan->in_blocks = prn_ceil_div(conv->in_channels, plan->simd->lanes);
    plan->units_in = prn_ceil_div(plan->depth, plan->unit_depth);
    plan->blocks = prn_ceil_div(conv->out_channels, plan->simd->lanes);
    plan->groups = prn_ceil_div(plan->blocks, PRN_DIRECT_MOST_BLOCKS);
    for (int64_t t = 0; t < taps; t++) tap(argument, t, &plan->tap[t]);
    if (!windows) {
        conv_direct_phases_find_taps(plan);
        find_fresh(plan);
        plan->spread = !follow_each_other(plan, part->out_first, part->out_step, conv->window.out);
        plan->in_a_row = taps == 1 && !plan->spread &&
                         follow_each_other(plan, part->origin, part->stride, conv->window.in) &&
                         plan->tap[0].at[0] == 0 && plan->tap[0].at[1] == 0 && plan->tap[0].at[2] == 0;
    }
    plan->end = prn_direct_find_epilogue(context->post_ops, plan->conv.out_channels);
    conv_direct_phases_choose_tiling(plan);
    plan->first_task = state->tasks;
    state->tasks += conv->batch * plan->groups * plan->pieces;
    return PRONY_OK;
}

/* ---- weights */

typedef struct weights {
    const float *data; /* of a set */
    int64_t k_step, c_step;
} weights;

/* A unit of input channels from `from` on, for output channels [begin, end), or fewer at the end. */
static float *pack_unit(const weights *weights, const prn_direct_plan *plan, int64_t from, int64_t begin, int64_t end,
                        float *to)
{
    const int64_t unit = plan->unit_depth, last = prn_least(end, plan->conv.out_channels), k_step = weights->k_step;
    for (int64_t t = 0; t < plan->taps * unit; t++, to += end - begin) {
        const int64_t c = from + t % unit;
        if (c < plan->depth) {
            const float *tap = weights->data + c * weights->c_step + plan->tap[t / unit].number;
            for (int64_t k = begin; k < last; k++) to[k - begin] = tap[k * k_step];
        }
        for (int64_t k = c < plan->depth ? last : begin; k < end; k++) to[k - begin] = 0.0f;
    }
    return to;
}

/* The first `units` units of input channels of a part that has all taps of the filter: one strided copy. */
static void copy_units(int threads, const weights *weights, const prn_direct_plan *plan, int64_t units, int64_t begin,
                       int64_t end, float *to)
{
    const int64_t unit = plan->unit_depth, width = end - begin;
    prn_copy copy = {0};
    prn_copy_axis(&copy, units, unit * weights->c_step, plan->taps * unit * width);
    prn_copy_axis(&copy, plan->taps, 1, unit * width);
    prn_copy_axis(&copy, unit, weights->c_step, width);
    prn_copy_axis(&copy, width, weights->k_step, 1);
    prn_copy_native(threads, sizeof *to, &copy, weights->data + begin * weights->k_step, to);
}

static bool has_all_taps(const prn_direct_plan *plan)
{
    for (int64_t t = 0; t < plan->taps; t++)
        if (plan->tap[t].number != t) return false;
    return true;
}

/* Of a group; what its weights take. */
static int64_t conv_direct_phases_pack_group(int threads, const weights *weights, const prn_direct_plan *plan,
                                             int64_t group, float *to)
{
    const int64_t lanes = plan->simd->lanes, unit = plan->unit_depth, per_unit = plan->taps * unit;
    const int64_t begin = prn_direct_first_block(plan->blocks, group) * lanes,
                  end = prn_direct_first_block(plan->blocks, group + 1) * lanes;
    const bool whole = end <= plan->conv.out_channels && has_all_taps(plan);
    const int64_t copied = whole ? plan->depth / unit : 0;
    float *rest = to + copied * per_unit * (end - begin);
    if (copied > 0) copy_units(threads, weights, plan, copied, begin, end, to);
    for (int64_t c = copied * unit; c < plan->depth && !prn_cancelled(); c += unit)
        rest = pack_unit(weights, plan, c, begin, end, rest);
    return plan->units_in * per_unit * (end - begin);
}

/* All groups of one filter; where its weights of the next begin. `building`: each output channel lies in one run, and
 * what was packed is given up group by group. NULL: it stays. */
static float *pack_filter(const prony_context *building, int threads, const weights *weights,
                          const prn_direct_plan *plan, float *packed)
{
    for (int64_t g = 0; g < plan->groups && !prn_cancelled(); g++) {
        packed += conv_direct_phases_pack_group(threads, weights, plan, g, packed);
        if (!building) continue;
        const int64_t begin = prn_direct_first_block(plan->blocks, g) * plan->simd->lanes;
        const int64_t end =
            prn_least(prn_direct_first_block(plan->blocks, g + 1) * plan->simd->lanes, plan->conv.out_channels);
        building->services->release_range(building, weights->data + begin * weights->k_step,
                                          (size_t)((end - begin) * weights->k_step) * sizeof(float));
    }
    return packed;
}

void prn_direct_pack_here(int threads, const prn_direct_state *state, const float *data, float *packed)
{
    for (size_t i = 0; i < state->count; i++) {
        weights set = {data, state->k_step, state->c_step};
        for (int64_t s = 0; s < state->sets; s++, set.data += state->set_step)
            packed = pack_filter(NULL, threads, &set, state->plans[i], packed);
    }
}

static prony_status conv_direct_phases_build_weights(const prony_context *context, void *argument, void *packed)
{
    const prn_direct_state *state = argument;
    const prn_conv *conv = &state->plans[0]->conv;
    const weights filter = {conv->weights->data, state->k_step, state->c_step};
    const bool runs = state->count == 1 && state->sets == 1 && state->k_step == conv->in_channels * state->c_step &&
                      state->c_step == conv->kernel_volume;
    if (runs && context->services->release_range &&
        conv->out_channels * state->k_step >= PRN_RELEASE_WHILE_PACKING_FLOATS)
        (void)pack_filter(context, context->threads, &filter, state->plans[0], packed);
    else
        prn_direct_pack_here(context->threads, state, filter.data, packed);
    return PRONY_OK;
}

int64_t prn_direct_packed_floats(const prn_direct_state *state)
{
    int64_t count = 0;
    for (size_t i = 0; i < state->count; i++) count += state->sets * prn_direct_packed_count(state->plans[i]);
    return count;
}

prony_status prn_direct_pack(const prony_context *context, prn_direct_state *state, const prn_window *phases)
{
    const prn_conv *conv = &state->plans[0]->conv;
    const void *packed;
    /* Plain windows have one set of weights, in an order of their own: 0 in the place of the sets. */
    prn_pack_key key = {.build = conv_direct_phases_build_weights,
                        .size = {state->plans[0]->simd->lanes, state->plans[0]->windows ? 0 : state->sets,
                                 conv->out_channels, conv->in_channels, conv->kernel_volume}};
    for (int axis = 0, at = 5; phases && axis < PRN_WINDOW_AXES; axis++) {
        key.size[at++] = phases->kernel[axis];
        key.size[at++] = phases->stride[axis];
        key.size[at++] = phases->pad_begin[axis];
        key.size[at++] = phases->dilation[axis];
        key.size[at++] = prn_least(phases->stride[axis], phases->out[axis]);
    }
    PRN_TRY(context->services->packed(context, conv->weights->data, &key,
                                      prony_dtype_bytes(PRONY_FLOAT32, prn_direct_packed_floats(state)), state,
                                      &packed));
    const float *of_part = packed;
    for (size_t i = 0; i < state->count; i++) {
        state->plans[i]->packed = of_part;
        of_part += state->sets * prn_direct_packed_count(state->plans[i]);
    }
    return PRONY_OK;
}

void prn_direct_facts(int64_t out_channels, int64_t positions, int64_t depth, prony_cost *facts)
{
    const int64_t lanes = prn_direct_tiles()->lanes,
                  wide = prn_least(prn_ceil_div(out_channels, lanes), PRN_DIRECT_MOST_BLOCKS);
    prn_conv_tile_facts(facts, positions, out_channels, depth, prn_direct_tiles()->positions[wide], lanes * wide);
}
