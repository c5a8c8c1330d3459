/* The problem of Conv, ConvTranspose and what computes on codes in their place: operands, window, shapes and cost.
 *
 * Invariant: an input that a post-operation adds is never taken for the bias. */
#include "ops/kernels/window/conv_problem.h"

#include "base/shape.h"
#include "ops/kernels/vector/number.h"

/* Some post-operation's residual, rather than an operand of the convolution, is input `index`. */
static bool is_residual(const prony_context *context, size_t index)
{
    const prn_post_ops *post_ops = context->post_ops;
    for (size_t i = 0; post_ops && i < post_ops->count; i++) {
        if (post_ops->op[i].kind == PRN_POST_ADD && post_ops->op[i].input == index) return true;
    }
    return false;
}

prony_status prn_conv_check(const prony_context *context)
{
    const prn_conv_params *params = context->params;
    PRN_TRY(prn_window_check(context, &params->window));
    if (params->group < 1 || params->group > INT32_MAX)
        return prony_fail(context, PRONY_INVALID_MODEL, "group is %lld; it must be at least 1 and below 2^31",
                          (long long)params->group);
    const prn_ints *lists[] = {&params->output_padding, &params->output_shape};
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < lists[k]->count; i++) {
            if (lists[k]->v[i] < 0 || lists[k]->v[i] > INT32_MAX)
                return prony_fail(context, PRONY_INVALID_MODEL, "%s[%zu] is %lld; it must be at least 0 and below 2^31",
                                  k ? "output_shape" : "output_padding", i, (long long)lists[k]->v[i]);
        }
    }
    return PRONY_OK;
}

/* Operands, their types and ranks, and the window without its output. Weights are [out, in/g, …] or, transposed,
 * [in, out/g, …]. */
static prony_status conv_problem_read_operands(const prony_context *context, prn_conv *conv)
{
    const prn_conv_params *params = context->params;
    char text[PRN_SHAPE_TEXT_BYTES];
    for (size_t i = 0; i < 2; i++) {
        if (!prn_input(context, i)) return prony_fail(context, PRONY_INVALID_MODEL, "input %zu is missing", i);
        PRN_TRY(prn_check_type(context, i, i == 0 ? PRN_TYPES_FLOAT : PRN_TYPE(context->inputs[0]->dtype)));
        PRN_TRY(prn_check_rank(context, i, 3, 2 + PRN_WINDOW_AXES));
    }
    conv->x = context->inputs[0];
    conv->weights = context->inputs[1];
    conv->y = prn_output(context, 0);
    conv->bias = is_residual(context, 2) ? NULL : prn_input(context, 2);
    const prony_shape *x = &conv->x->shape, *w = &conv->weights->shape;
    if (x->rank != w->rank)
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "input 0 has rank %d, the weights have shape %s", x->rank,
                          prn_shape_text(w, text));
    for (int i = 2; i < w->rank; i++) {
        if (w->dim[i] < 1)
            return prony_fail(context, PRONY_SHAPE_MISMATCH, "weights of shape %s", prn_shape_text(w, text));
    }
    const prn_ints *stated = &params->window.kernel_shape;
    for (size_t i = 0; i < stated->count && (int)i < w->rank - 2; i++) {
        if (stated->v[i] != w->dim[i + 2])
            return prony_fail(context, PRONY_SHAPE_MISMATCH, "kernel_shape[%zu] is %lld, the weights have shape %s", i,
                              (long long)stated->v[i], prn_shape_text(w, text));
    }
    conv->groups = params->group;
    conv->batch = x->dim[0];
    conv->in_channels = x->dim[1];
    return prn_window_begin(context, &params->window, w->dim + 2, &conv->window);
}

static prony_status check_bias(const prony_context *context, const prn_conv *conv)
{
    if (!conv->bias) return PRONY_OK;
    char text[PRN_SHAPE_TEXT_BYTES];
    PRN_TRY(prn_check_type(context, 2, PRN_TYPE(conv->x->dtype)));
    if (conv->bias->shape.rank == 1 && conv->bias->shape.dim[0] == conv->out_channels) return PRONY_OK;
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "the bias has shape %s, wanted [%lld]",
                      prn_shape_text(&conv->bias->shape, text), (long long)conv->out_channels);
}

static void conv_problem_derive(prn_conv *conv)
{
    conv->group_in = conv->in_channels / conv->groups;
    conv->group_out = conv->out_channels / conv->groups;
    conv->kernel_volume = prn_window_volume(conv->window.kernel);
    conv->in_spatial = prn_window_volume(conv->window.in);
    conv->out_spatial = prn_window_volume(conv->window.out);
}

prony_status prn_conv_read(const prony_context *context, prn_conv *conv)
{
    PRN_TRY(conv_problem_read_operands(context, conv));
    const prony_shape *w = &conv->weights->shape;
    conv->out_channels = w->dim[0];
    if (conv->in_channels % conv->groups || conv->in_channels / conv->groups != w->dim[1])
        return prony_fail(context, PRONY_SHAPE_MISMATCH,
                          "%lld input channels in %lld groups, the weights take %lld each",
                          (long long)conv->in_channels, (long long)conv->groups, (long long)w->dim[1]);
    if (conv->out_channels % conv->groups)
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "%lld output channels do not divide into %lld groups",
                          (long long)conv->out_channels, (long long)conv->groups);
    PRN_TRY(check_bias(context, conv));
    PRN_TRY(prn_window_forward(context, &((const prn_conv_params *)context->params)->window, &conv->window));
    conv_problem_derive(conv);
    return PRONY_OK;
}

prony_status prn_conv_transpose_read(const prony_context *context, prn_conv *conv)
{
    const prn_conv_params *params = context->params;
    PRN_TRY(conv_problem_read_operands(context, conv));
    const prony_shape *w = &conv->weights->shape;
    if (w->dim[0] != conv->in_channels || conv->in_channels % conv->groups)
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "%lld input channels in %lld groups, the weights take %lld",
                          (long long)conv->in_channels, (long long)conv->groups, (long long)w->dim[0]);
    if (w->dim[1] > INT32_MAX)
        return prony_fail(context, PRONY_OUT_OF_RANGE, "%lld output channels per group", (long long)w->dim[1]);
    conv->out_channels = w->dim[1] * conv->groups;
    PRN_TRY(check_bias(context, conv));
    PRN_TRY(
        prn_window_transposed(context, &params->window, &params->output_padding, &params->output_shape, &conv->window));
    conv_problem_derive(conv);
    return PRONY_OK;
}

prony_status prn_conv_keep(const prony_context *context, prn_prepared *out)
{
    prn_conv conv;
    PRN_TRY(prn_conv_read(context, &conv));
    return prn_prepared_keep(context, &conv, sizeof conv, out);
}

prn_conv prn_conv_kept(const prony_context *context)
{
    prn_conv conv = *(const prn_conv *)context->state;
    conv.x = context->inputs[0];
    conv.weights = context->inputs[1];
    conv.y = context->outputs[0];
    if (conv.bias) conv.bias = context->inputs[2];
    return conv;
}

prony_status prn_conv_infer(const prony_context *context, const prn_conv *conv)
{
    prony_shape shape = prn_window_output_shape(&conv->window, conv->batch, conv->out_channels);
    if (prony_shape_numel(&shape) < 0) return prony_fail(context, PRONY_OUT_OF_RANGE, "the output is too large");
    prn_set_output(context, 0, conv->x->dtype, &shape);
    return PRONY_OK;
}

prony_status prn_conv_cost(const prony_context *context, const prn_conv *conv, int64_t elements, int64_t channels,
                           prony_cost *cost)
{
    uint64_t per_element = 0, macs = 0;
    if (!prn_mul_u64(&per_element, (uint64_t)channels, (uint64_t)conv->kernel_volume) ||
        !prn_mul_u64(&macs, (uint64_t)elements, per_element))
        return prony_fail(context, PRONY_OUT_OF_RANGE, "the cost overflows 64 bits");
    PRN_TRY(prn_cost_macs(context, cost, macs, false));
    if (conv->bias) {
        uint64_t outputs = (uint64_t)prony_shape_numel(&conv->y->shape);
        if (!prn_add_u64(&cost->flops, cost->flops, outputs))
            return prony_fail(context, PRONY_OUT_OF_RANGE, "the cost overflows 64 bits");
    }
    prn_cost_fact(cost, "groups", conv->groups);
    prn_cost_fact(cost, "bias", conv->bias != NULL);
    prn_cost_fact(cost, "kernel_volume", conv->kernel_volume);
    prn_cost_fact(cost, "in_channels", conv->in_channels);
    prn_cost_fact(cost, "out_channels", conv->out_channels);
    prn_cost_fact(cost, "input_elements", prony_shape_numel(&conv->x->shape));
    prn_cost_fact(cost, "output_elements", prony_shape_numel(&conv->y->shape));
    prn_cost_fact(cost, "batch_spatial", conv->batch * conv->out_spatial);
    return PRONY_OK;
}
