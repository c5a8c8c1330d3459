/* conv_f32_direct, conv_f32_direct_groups and conv_f32_direct_variable: convolution on blocked layouts, along up to
 * three axes.
 *
 *     task  = one image (or one group's channels of it), a run of output positions, a group of up to four output
 *             channel blocks
 *     pass  = input blocks by the piece: a running sum of a few hundred products, whose weights stay in the
 *             second-level cache
 *     tile  = a few successive positions (rows are not told apart: each tap of each has its own offset, so that a small
 *             image's edges cost no more than its middle), all blocks of the group, sums in registers
 *
 * Packed weights belong to the model, or to a run that computes them: [of the node's groups][group][input
 * block][tap][input lane] [block of the group][output lane]; lanes past the last channel are zero, and so are the sums
 * that they make. A residual that comes first is what the sums begin with, so it may lie in the output. Invariant:
 * pieces depend on the problem alone; each output is summed in one order. */
#include "ops/conv/conv_kernels.h"
#include "base/integers.h"
#include "base/cpu/isa.h"
#include "ops/conv/conv_cost_model.h"
#include "ops/conv/conv_direct_plan.h"

#include <math.h>

static bool takes_problem(const prony_context *context, const prn_conv *conv)
{
    int64_t lanes = prn_direct_tiles()->lanes;
    if (conv->batch < 1 || conv->in_channels < 1 || conv->out_channels < 1) return false;
    if (!prn_direct_takes_groups(conv)) return false;
    if (conv->kernel_volume > PRN_DIRECT_MOST_TAPS || conv->in_spatial > INT32_MAX / lanes) return false;
    return prn_direct_can_fuse(context, conv->out_channels);
}

static bool is_supported(const prony_context *context, bool groups)
{
    prn_conv conv;
    if (!prn_isa_has(PRN_HAS_FMA) || prn_conv_read(context, &conv) != PRONY_OK) return false;
    if (!conv.weights->data || (conv.bias && !conv.bias->data)) return false;
    return groups == (conv.groups > 1) && takes_problem(context, &conv);
}

bool prn_conv_direct_supported(const prony_context *context)
{
    return is_supported(context, false);
}

bool prn_conv_direct_groups_supported(const prony_context *context)
{
    return is_supported(context, true);
}

bool prn_conv_direct_variable_supported(const prony_context *context)
{
    prn_conv conv;
    if (!prn_isa_has(PRN_HAS_FMA) || prn_conv_read(context, &conv) != PRONY_OK) return false;
    return !conv.weights->data && takes_problem(context, &conv);
}

double prn_conv_direct_predict(const prony_context *context)
{
    prn_conv conv;
    return prn_conv_read(context, &conv) == PRONY_OK && takes_problem(context, &conv)
               ? prn_conv_direct_cycles(context, &conv)
               : INFINITY;
}

static void conv_direct_describe_tap(const void *argument, int64_t index, prn_direct_tap *tap)
{
    const prn_window *window = argument;
    tap->number = index;
    for (int axis = PRN_WINDOW_AXES - 1; axis >= 0; axis--) {
        tap->at[axis] = index % window->kernel[axis] * window->dilation[axis];
        index /= window->kernel[axis];
    }
}

/* Plans one part, which has every tap, and packs constant weights. Weights that a run makes are packed into scratch
 * instead. */
prony_status prn_conv_direct_prepare(const prony_context *context, prn_prepared *out)
{
    prn_conv whole;
    PRN_TRY(prn_conv_read(context, &whole));
    const prn_conv conv = prn_direct_of_groups(&whole);
    const prn_window *window = &conv.window;
    prn_direct_part part;
    for (int axis = 0; axis < PRN_WINDOW_AXES; axis++) {
        part.positions[axis] = window->out[axis];
        part.origin[axis] = -window->pad_begin[axis];
        part.stride[axis] = window->stride[axis];
        part.out_first[axis] = 0;
        part.out_step[axis] = 1;
    }
    prn_direct_state *state = prn_direct_state_make(1, whole.groups);
    if (!state) return prn_no_memory(context->error);
    state->variable = !whole.weights->data;
    state->c_step = conv.kernel_volume;
    state->k_step = conv.in_channels * state->c_step;
    state->set_step = conv.out_channels * state->k_step;
    prony_status status =
        prn_direct_add_part(context, state, &conv, &part, conv.kernel_volume, conv_direct_describe_tap, window, NULL);
    if (status == PRONY_OK && state->variable)
        out->scratch_bytes = prony_dtype_bytes(PRONY_FLOAT32, prn_direct_packed_floats(state));
    else if (status == PRONY_OK)
        status = prn_direct_pack(context, state, NULL);
    if (status != PRONY_OK) {
        prn_conv_direct_release(state);
        return status;
    }
    out->state = state;
    return PRONY_OK;
}

void prn_conv_direct_facts(const prony_context *context, prony_cost *facts)
{
    prn_conv conv;
    if (prn_conv_read(context, &conv) != PRONY_OK) return;
    prn_direct_facts(conv.group_out, conv.out_spatial, conv.group_in * conv.kernel_volume, facts);
}
