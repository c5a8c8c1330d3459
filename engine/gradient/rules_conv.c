/* Convolutions. With y = conv(x, w):
 *
 *   dx = transposed conv(dy, w)
 *   dw = conv(x, dy), channels for images, what was a stride being a dilation and the other way round
 *
 * and of a transposed one the same with x and dy changing places. Groups: each has its own run of channels, which
 * become the groups of the convolution that makes dw. */
#include "engine/gradient/rules.h"
#include "engine/bind/node.h"
#include "ops/kernels/window/conv_problem.h"

#define X(i) prn_grad_in(g, i)
#define DY prn_grad_of(g, 0)
#define FIRST (PRN_WINDOW_AXES - c->axes)

typedef struct geometry {
    int axes;
    /* Of the convolution, or of the one that a transposed one undoes. */
    int64_t groups, batch, in_channels, out_channels;
    int64_t in[PRN_WINDOW_AXES], out[PRN_WINDOW_AXES], kernel[PRN_WINDOW_AXES], stride[PRN_WINDOW_AXES],
        dilation[PRN_WINDOW_AXES], pads[2 * PRN_WINDOW_AXES];
} geometry;

/* Reads the window and channels as those of the convolution; a transposed one swaps input and output. false:
 * refused. */
static bool rules_conv_read_geometry(prn_gradient *g, bool transposed, geometry *c)
{
    const prn_op *op = g->node->binding.op;
    prn_conv conv = {0};
    if (!prn_grad_shape(g, X(0)) || !prn_grad_shape(g, X(1))) return false;
    if (X(2) != PRN_NO_VALUE && !prn_grad_shape(g, X(2))) return false;
    if (!op || op != prn_op_find(g->node->info.domain, g->node->info.op_type, g->node->info.opset)) {
        prn_grad_refuse(g, "no gradient rule exists for an operator that the user registered");
        return false;
    }
    const prony_context context = prn_node_context(g->program, g->node, g->error);
    g->status = transposed ? prn_conv_transpose_read(&context, &conv) : prn_conv_read(&context, &conv);
    if (prn_grad_failed(g)) return false;
    const prn_window *w = &conv.window;
    *c = (geometry){.axes = w->axes,
                    .groups = conv.groups,
                    .batch = conv.batch,
                    .in_channels = transposed ? conv.out_channels : conv.in_channels,
                    .out_channels = transposed ? conv.in_channels : conv.out_channels};
    for (int a = 0; a < c->axes; a++) {
        const int slot = FIRST + a;
        c->in[a] = transposed ? w->out[slot] : w->in[slot];
        c->out[a] = transposed ? w->in[slot] : w->out[slot];
        c->kernel[a] = w->kernel[slot];
        c->stride[a] = w->stride[slot];
        c->dilation[a] = w->dilation[slot];
        c->pads[a] = w->pad_begin[slot];
        c->pads[c->axes + a] = w->pad_end[slot];
    }
    return true;
}

static size_t window_attrs(const geometry *c, prn_attr *attrs, const int64_t *stride, const int64_t *dilation)
{
    attrs[0] = prn_grad_attr_ints("strides", stride, (size_t)c->axes);
    attrs[1] = prn_grad_attr_ints("dilations", dilation, (size_t)c->axes);
    attrs[2] = prn_grad_attr_ints("pads", c->pads, 2 * (size_t)c->axes);
    attrs[3] = prn_grad_attr_int("group", c->groups);
    return 4;
}

/* Slices the spatial axes to the extents `wanted`, from the first element on. */
static uint32_t rules_conv_cut(prn_gradient *g, const geometry *c, uint32_t value, const int64_t *wanted)
{
    if (prn_grad_failed(g)) return PRN_NO_VALUE;
    const prony_shape shape = prn_grad_info(g, value)->shape;
    int64_t starts[PRN_WINDOW_AXES] = {0};
    bool same = true;
    for (int a = 0; a < c->axes; a++) same &= shape.dim[2 + a] == wanted[a];
    if (same) return value;
    const uint32_t inputs[] = {value, prn_grad_indices(g, starts, (size_t)c->axes),
                               prn_grad_indices(g, wanted, (size_t)c->axes), prn_grad_axes(g, 2, 2 + c->axes)};
    return prn_grad_op(g, "Slice", PRN_GRAD_NO_ATTRS, inputs, 4);
}

static uint32_t reshape_to(prn_gradient *g, uint32_t value, const int64_t *dims, size_t rank)
{
    return prn_grad_reshape(g, value, prn_grad_indices(g, dims, rank));
}

/* Swaps channels and images, with groups: [N, g C, …] as [C, g N, …]. */
static uint32_t turn_input(prn_gradient *g, const geometry *c, uint32_t x)
{
    const int64_t each = c->in_channels / c->groups;
    int64_t split[3 + PRN_WINDOW_AXES] = {c->batch, c->groups, each}, perm[3 + PRN_WINDOW_AXES] = {2, 1, 0};
    int64_t joined[2 + PRN_WINDOW_AXES] = {each, c->groups * c->batch};
    for (int a = 0; a < c->axes; a++) {
        split[3 + a] = joined[2 + a] = c->in[a];
        perm[3 + a] = 3 + a;
    }
    const size_t rank = 3 + (size_t)c->axes;
    return reshape_to(g, prn_grad_transpose(g, reshape_to(g, x, split, rank), perm, rank), joined, rank - 1);
}

static uint32_t swap_first(prn_gradient *g, const geometry *c, uint32_t value)
{
    int64_t perm[2 + PRN_WINDOW_AXES] = {1, 0};
    for (int a = 0; a < c->axes; a++) perm[2 + a] = 2 + a;
    return prn_grad_transpose(g, value, perm, 2 + (size_t)c->axes);
}

/* The weights' gradient, [M, C / g, …]; x and dy are those of the convolution. */
static uint32_t weights_gradient(prn_gradient *g, const geometry *c, uint32_t x, uint32_t dy)
{
    prn_attr attrs[4];
    const size_t count = window_attrs(c, attrs, c->dilation, c->stride);
    const uint32_t inputs[] = {turn_input(g, c, x), swap_first(g, c, dy)};
    const uint32_t made = prn_grad_op(g, "Conv", attrs, count, inputs, 2);
    return swap_first(g, c, rules_conv_cut(g, c, made, c->kernel));
}

static void give_bias(prn_gradient *g, const geometry *c)
{
    int64_t axes[1 + PRN_WINDOW_AXES] = {0};
    if (!prn_grad_wants(g, 2)) return;
    for (int a = 0; a < c->axes; a++) axes[1 + a] = 2 + a;
    prn_grad_give(g, 2, prn_grad_reduce(g, "ReduceSum", DY, prn_grad_indices(g, axes, 1 + (size_t)c->axes), false));
}

PRN_GRADIENT_RULE(conv)
{
    geometry c;
    prn_attr attrs[5];
    int64_t rest[PRN_WINDOW_AXES]; /* elements of the input that no window reaches */
    if (!rules_conv_read_geometry(g, false, &c)) return;
    for (int a = 0; a < c.axes; a++)
        rest[a] = c.in[a] + c.pads[a] + c.pads[c.axes + a] - (c.out[a] - 1) * c.stride[a] -
                  ((c.kernel[a] - 1) * c.dilation[a] + 1);
    if (prn_grad_wants(g, 0)) {
        size_t count = window_attrs(&c, attrs, c.stride, c.dilation);
        attrs[count++] = prn_grad_attr_ints("output_padding", rest, (size_t)c.axes);
        prn_grad_give(g, 0, prn_grad_op(g, "ConvTranspose", attrs, count, (const uint32_t[]){DY, X(1)}, 2));
    }
    if (prn_grad_wants(g, 1)) prn_grad_give(g, 1, weights_gradient(g, &c, X(0), DY));
    give_bias(g, &c);
}

PRN_GRADIENT_RULE(conv_transpose)
{
    geometry c;
    prn_attr attrs[4];
    if (!rules_conv_read_geometry(g, true, &c)) return;
    if (prn_grad_wants(g, 0)) {
        const size_t count = window_attrs(&c, attrs, c.stride, c.dilation);
        const uint32_t made = prn_grad_op(g, "Conv", attrs, count, (const uint32_t[]){DY, X(1)}, 2);
        prn_grad_give(g, 0, rules_conv_cut(g, &c, made, c.out));
    }
    if (prn_grad_wants(g, 1)) prn_grad_give(g, 1, weights_gradient(g, &c, DY, X(0)));
    give_bias(g, &c);
}
