/* GroupQueryAttention of float32 on an OpenCL device. The cache is the present outputs' bytes, with a copy on the device
 * (ops/vendor/opencl/opencl_kv_cache.h); past rows that lie elsewhere are copied into it first. Lengths and positions
 * are checked on the host, as the host's kernels do. */
#include "ops/attention/group_query.h"

#ifdef PRN_HAVE_OPENCL
#include "ops/device.h"
#include "ops/vendor/opencl/opencl_attention.h"

#include <math.h>
#include <string.h>

enum { PRESENT_KEY = 1, PRESENT_VALUE };

/* One new row makes the heads of a group its rows, since they share keys and values. */
static prn_attend gqa_device_attend(const prn_gqa *g)
{
    const int64_t group = g->heads / g->key_heads, out = g->heads * g->depth, width = g->q.width,
                  block = g->present * g->depth;
    const bool as_rows = g->rows == 1;
    const int64_t head = (as_rows ? group : 1) * g->depth;
    return (prn_attend){.batch = g->batch,
                        .heads = as_rows ? g->key_heads : g->heads,
                        .key_heads = g->key_heads,
                        .rows = as_rows ? group : g->rows,
                        .keys = g->total,
                        .depth = g->depth,
                        .width = g->depth,
                        .q = {NULL, {g->rows * width, head, as_rows ? g->depth : width, 1}},
                        .k = {NULL, {g->key_heads * block, block, g->depth, 1}},
                        .v = {NULL, {g->key_heads * block, block, g->depth, 1}},
                        .y_stride = {g->rows * out, head, as_rows ? g->depth : out},
                        .scale = (float)g->scale};
}

bool prn_gqa_opencl_supported(const prony_context *context)
{
    prn_gqa g;
    if (prn_gqa_read(context, &g) != PRONY_OK || !g.known || g.rows < 1 || g.depth < 1 ||
        !prn_output(context, PRESENT_KEY) || !prn_output(context, PRESENT_VALUE))
        return false;
    const prn_attend at = gqa_device_attend(&g);
    return prn_opencl_append_supported(context, &at, g.present);
}

static prn_opencl_fresh gqa_device_fresh(const prony_context *context, const prn_gqa *g, const prn_gqa_rows *rows,
                                         size_t input)
{
    const bool packed = rows->value == context->inputs[PRN_GQA_QUERY];
    return (prn_opencl_fresh){.input = packed ? PRN_GQA_QUERY : input,
                              .from = rows->column,
                              .batch = g->rows * rows->width,
                              .head = g->depth,
                              .row = rows->width};
}

/* Strides of a bias [B or 1, H or 1, S, T]. Where the heads of one row are rows, they have the heads' stride. */
static void gqa_device_bias(const prn_gqa *g, const prn_attend *at, const prony_value *bias, int64_t stride[4])
{
    const int64_t *dim = bias->shape.dim, head = dim[1] > 1 ? dim[2] * dim[3] : 0;
    stride[0] = dim[0] > 1 ? dim[1] * dim[2] * dim[3] : 0;
    stride[1] = g->rows == 1 ? head * at->rows : head;
    stride[2] = g->rows == 1 ? head : dim[3];
    stride[3] = 1;
}

/* Describes the node as an attention with new rows appended to its cache. `groups`, `append` and `at` live for this
 * call alone. To the device the smooth softmax and a sink are one thing: an addend of the denominator, exp(0) or exp of
 * the sink input. */
prony_status prn_gqa_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    prn_gqa g;
    PRN_TRY(prn_gqa_read(context, &g));
    const prn_gqa_params *params = g.params;
    const prn_attend at = gqa_device_attend(&g);
    const prony_value *bias = prn_input(context, PRN_GQA_BIAS);
    const bool sink = prn_input(context, PRN_GQA_SINK), smooth = !sink && params->smooth_softmax == 1;
    const prn_opencl_groups groups = {
        .angles = {g.half, params->rotary_interleaved != 0, PRN_GQA_COSINES, PRN_GQA_SINES},
        .window = params->local_window_size > 0 ? params->local_window_size : 0,
        .as_rows = g.rows == 1,
        .smooth = smooth,
        .sink = sink ? PRN_GQA_SINK : 0};
    const prn_opencl_append append = {.k = gqa_device_fresh(context, &g, &g.k, PRN_GQA_KEY),
                                      .v = gqa_device_fresh(context, &g, &g.v, PRN_GQA_VALUE),
                                      .rows = g.rows,
                                      .capacity = g.present,
                                      .mask = PRN_GQA_BIAS,
                                      .groups = &groups};
    prn_opencl_attend problem = {.at = &at,
                                 .mask = bias ? PRN_OPENCL_MASK_ADDED : PRN_OPENCL_NO_MASK,
                                 .mask_keys = g.total,
                                 .causal = params->causal != 0,
                                 .cap = params->softcap,
                                 .alone = sink || smooth ? 0.0f : NAN};
    if (bias) gqa_device_bias(&g, &at, bias, problem.mask_stride);
    return prn_opencl_append_prepare(context, &problem, &append, out);
}

/* Past rows of each sequence to the present bytes; zeros behind them. */
static void gqa_device_lay(const prn_gqa *g, size_t past, size_t present)
{
    const prony_value *from = prn_input(g->context, past);
    char *to = g->context->outputs[present]->data;
    const size_t row = (size_t)g->depth * sizeof(float), block = (size_t)g->present * row;
    if (from && from->data == (const void *)to) return;
    prn_device_cache_changed(g->context->device->device, to);
    for (int64_t i = 0; i < g->batch * g->key_heads; i++) {
        const size_t kept = (size_t)prn_gqa_past(g, i / g->key_heads) * row;
        if (kept) memcpy(to + (size_t)i * block, (const char *)from->data + (size_t)(i * g->past) * row, kept);
        memset(to + (size_t)i * block + kept, 0, block - kept);
    }
}

prony_status prn_gqa_opencl_run(const prony_context *context)
{
    prn_gqa g;
    PRN_TRY(prn_gqa_read(context, &g));
    if (!g.known) return prony_fail(context, PRONY_INTERNAL, "the length is unknown");
    PRN_TRY(prn_gqa_check_data(&g));
    int32_t *table = prn_opencl_append_table(context);
    for (int64_t b = 0; b < g.batch; b++) {
        table[b] = (int32_t)prn_gqa_past(&g, b);
        for (int64_t s = 0; s < g.rows; s++)
            table[g.batch + b * g.rows + s] = g.half ? (int32_t)prn_gqa_position(&g, b, s) : 0;
    }
    gqa_device_lay(&g, PRN_GQA_PAST_KEY, PRESENT_KEY);
    gqa_device_lay(&g, PRN_GQA_PAST_VALUE, PRESENT_VALUE);
    return prn_opencl_append_run(context, context->outputs[PRESENT_KEY]->data, context->outputs[PRESENT_VALUE]->data);
}
#endif
