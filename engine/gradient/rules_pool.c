/* Pools. The gradient of a maximum goes to the position of the maximum. For a sum over windows, a transposed
 * convolution with ones spreads it over their elements. Global pools are reductions. */
#include "engine/gradient/rules.h"
#include "engine/bind/node.h"
#include "ops/kernels/window/window.h"

#include <string.h>

#define X prn_grad_in(g, 0)
#define Y prn_grad_out(g, 0)
#define DY prn_grad_of(g, 0)

/* ---- MaxPool ---- */

/* The indices of the maxima: the node's own output or, if it has none, an additional MaxPool's. */
static uint32_t places_of_maxima(prn_gradient *g)
{
    const prn_attr_list *said = g->node->info.attributes;
    const uint32_t there = prn_grad_out(g, 1), x = X;
    uint32_t outputs[2];
    if (there != PRN_NO_VALUE && prn_grad_int(g, "storage_order", 0) == 0) return there;
    prn_attr *attrs = prn_bump_alloc(&g->program->pool, said->count + 1, sizeof *attrs);
    if (!attrs) {
        g->status = prn_no_memory(g->error);
        return PRN_NO_VALUE;
    }
    size_t count = 0;
    for (size_t a = 0; a < said->count; a++)
        if (strcmp(said->items[a].name, "storage_order") != 0) attrs[count++] = said->items[a];
    prn_grad_node(g, "MaxPool", attrs, count, &x, 1, outputs, 2);
    return outputs[1];
}

PRN_GRADIENT_RULE(max_pool)
{
    const int64_t all = -1;
    if (DY == PRN_NO_VALUE) return;
    const uint32_t flat = prn_grad_indices(g, &all, 1);
    const prn_attr attrs[] = {prn_grad_attr_int("axis", 0), prn_grad_attr_text("reduction", "add")};
    const uint32_t inputs[] = {prn_grad_2(g, "Reshape", prn_grad_filled(g, X, 0), flat),
                               prn_grad_2(g, "Reshape", places_of_maxima(g), flat), prn_grad_2(g, "Reshape", DY, flat)};
    prn_grad_give(g, 0, prn_grad_reshape_like(g, prn_grad_op(g, "ScatterElements", attrs, 2, inputs, 3), X));
}

/* ---- sums over windows ---- */

static bool rules_pool_read_window(prn_gradient *g, prn_window *w)
{
    const prn_op *op = g->node->binding.op;
    if (!prn_grad_shape(g, X) || prn_grad_failed(g)) return false;
    if (!op || op != prn_op_find(g->node->info.domain, g->node->info.op_type, g->node->info.opset)) {
        prn_grad_refuse(g, "no gradient rule exists for an operator that the user registered");
        return false;
    }
    const prn_window_params *params = g->node->params; /* the first member of a pool's */
    const prony_context context = prn_node_context(g->program, g->node, g->error);
    *w = (prn_window){0};
    g->status = prn_window_begin(&context, params, params->kernel_shape.v, w);
    if (!prn_grad_failed(g)) g->status = prn_window_forward(&context, params, w);
    return !prn_grad_failed(g);
}

/* One axis of windows: 1 / count of each window's elements, with padding if that counts. */
static uint32_t reciprocal_counts(prn_gradient *g, const prn_window *w, int axis, bool padded)
{
    const int slot = PRN_WINDOW_AXES - w->axes + axis;
    const int64_t out = w->out[slot], low = padded ? -w->pad_begin[slot] : 0;
    const int64_t high = w->in[slot] + (padded ? w->pad_end[slot] : 0);
    int64_t dims[PRN_WINDOW_AXES];
    double *parts = prn_bump_alloc(&g->program->pool, (size_t)out + 1, sizeof *parts);
    if (!parts) {
        g->status = prn_no_memory(g->error);
        return PRN_NO_VALUE;
    }
    for (int64_t o = 0; o < out; o++) {
        const int64_t start = o * w->stride[slot] - w->pad_begin[slot];
        const int64_t first = start < low ? prn_ceil_div(low - start, w->dilation[slot]) : 0;
        const int64_t end = start < high ? prn_ceil_div(high - start, w->dilation[slot]) : 0;
        const int64_t count = (end < w->kernel[slot] ? end : w->kernel[slot]) - first;
        parts[o] = count > 0 ? 1.0 / (double)count : 0;
    }
    for (int a = 0; a < w->axes; a++) dims[a] = a == axis ? out : 1;
    return prn_grad_numbers(g, DY, prn_shape_make(w->axes, dims), parts);
}

/* Adds to every element the values of all windows that contain it. */
static uint32_t rules_pool_spread(prn_gradient *g, const prn_window *w, uint32_t value)
{
    int64_t shape[2 + PRN_WINDOW_AXES] = {0, 1}, kernel[2 + PRN_WINDOW_AXES] = {1, 1}, pads[2 * PRN_WINDOW_AXES];
    int64_t rest[PRN_WINDOW_AXES];
    const int first = PRN_WINDOW_AXES - w->axes;
    const size_t axes = (size_t)w->axes;
    if (prn_grad_failed(g)) return PRN_NO_VALUE;
    const prony_shape *x = &prn_grad_info(g, X)->shape;
    shape[0] = x->dim[0] * x->dim[1];
    for (int a = 0; a < w->axes; a++) {
        const int slot = first + a;
        const int64_t end =
            (w->out[slot] - 1) * w->stride[slot] + prn_window_reach(w, slot) - w->pad_begin[slot] - w->in[slot];
        shape[2 + a] = w->out[slot];
        kernel[2 + a] = w->kernel[slot];
        pads[a] = w->pad_begin[slot];
        pads[w->axes + a] = end > 0 ? end : 0;
        rest[a] = end < 0 ? -end : 0;
    }
    const prn_attr attrs[] = {prn_grad_attr_ints("strides", &w->stride[first], axes),
                              prn_grad_attr_ints("dilations", &w->dilation[first], axes),
                              prn_grad_attr_ints("pads", pads, 2 * axes),
                              prn_grad_attr_ints("output_padding", rest, axes)};
    const uint32_t planes = prn_grad_reshape(g, value, prn_grad_indices(g, shape, 2 + axes));
    const uint32_t ones = prn_grad_2(g, "Expand", prn_grad_number(g, value, 1), prn_grad_indices(g, kernel, 2 + axes));
    return prn_grad_reshape_like(g, prn_grad_op(g, "ConvTranspose", attrs, 4, (const uint32_t[]){planes, ones}, 2), X);
}

PRN_GRADIENT_RULE(average_pool)
{
    prn_window w;
    if (!rules_pool_read_window(g, &w)) return;
    uint32_t shares = DY;
    if (prony_shape_numel(&prn_grad_info(g, Y)->shape) <= 0) return; /* there may be many windows without any element */
    for (int a = 0; a < w.axes; a++)
        shares = prn_grad_mul(g, shares, reciprocal_counts(g, &w, a, prn_grad_int(g, "count_include_pad", 0) != 0));
    prn_grad_give(g, 0, rules_pool_spread(g, &w, shares));
}

/* y = (sum |x|^p)^(1/p): sign(x) |x|^(p-1) times the spread of y^(1-p) dy; 0 where y is 0. */
PRN_GRADIENT_RULE(lp_pool)
{
    prn_window w;
    const double p = (double)prn_grad_int(g, "p", 2);
    if (!rules_pool_read_window(g, &w)) return;
    const uint32_t none = prn_grad_2(g, "Equal", Y, prn_grad_number(g, Y, 0)), one = prn_grad_number(g, Y, 1);
    const uint32_t safe = prn_grad_3(g, "Where", none, one, Y);
    const uint32_t given = prn_grad_mul(g, DY, prn_grad_2(g, "Pow", safe, prn_grad_number(g, Y, 1 - p)));
    const uint32_t size = prn_grad_2(g, "Pow", prn_grad_1(g, "Abs", X), prn_grad_number(g, X, p - 1));
    prn_grad_give(g, 0,
                  prn_grad_mul(g, prn_grad_mul(g, prn_grad_1(g, "Sign", X), size), rules_pool_spread(g, &w, given)));
}

/* ---- global ---- */

static void through_reduction(prn_gradient *g, const char *op)
{
    const int rank = prn_grad_rank(g, X);
    if (rank >= 0) prn_grad_through(g, 0, prn_grad_reduce(g, op, X, prn_grad_axes(g, 2, rank), true));
}

PRN_GRADIENT_RULE(global_average_pool)
{
    through_reduction(g, "ReduceMean");
}

PRN_GRADIENT_RULE(global_max_pool)
{
    through_reduction(g, "ReduceMax");
}

PRN_GRADIENT_RULE(global_lp_pool)
{
    const int64_t p = prn_grad_int(g, "p", 2);
    const int rank = prn_grad_rank(g, X);
    if (p <= 2) {
        through_reduction(g, p == 1 ? "ReduceL1" : "ReduceL2");
        return;
    }
    if (rank < 0) return;
    const uint32_t powers = prn_grad_2(g, "Pow", prn_grad_1(g, "Abs", X), prn_grad_number(g, X, (double)p));
    const uint32_t sum = prn_grad_reduce(g, "ReduceSum", powers, prn_grad_axes(g, 2, rank), true);
    prn_grad_through(g, 0, prn_grad_2(g, "Pow", sum, prn_grad_number(g, X, 1.0 / (double)p)));
}
