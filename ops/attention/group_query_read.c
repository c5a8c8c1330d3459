/* Reading com.microsoft GroupQueryAttention nodes. Invariant: a node that was read, and whose data were checked, names
 * no element outside of its tensors. */
#include "ops/attention/group_query.h"
#include "ops/kernels/vector/number.h"

#include <math.h>
#include <string.h>

#define TYPES (PRN_TYPE_F32 | PRN_TYPE(PRONY_FLOAT16) | PRN_TYPE(PRONY_BFLOAT16))

static prony_status group_query_read_refuse(const prony_context *context, size_t input, const char *what)
{
    char text[PRN_SHAPE_TEXT_BYTES];
    const prony_value *value = prn_input(context, input);
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is %s, %s", input,
                      value ? prn_value_text(value, text) : "missing", what);
}

static prony_status group_query_read_unsupported(const prony_context *context, const char *name, int64_t value)
{
    return prony_fail(context, PRONY_UNSUPPORTED, "%s is %lld, which is not supported", name, (long long)value);
}

prony_status prn_gqa_check(const prony_context *context)
{
    const prn_gqa_params *p = context->params;
    if (p->kv_num_heads < 1 || p->num_heads < 1 || p->num_heads > INT32_MAX || p->num_heads % p->kv_num_heads != 0)
        return prony_fail(context, PRONY_INVALID_MODEL, "num_heads %lld is not a multiple of kv_num_heads %lld",
                          (long long)p->num_heads, (long long)p->kv_num_heads);
    if (p->causal != 0 && p->causal != 1)
        return prony_fail(context, PRONY_INVALID_MODEL, "causal is %lld", (long long)p->causal);
    if (!p->causal && p->local_window_size > 0)
        return prony_fail(context, PRONY_INVALID_MODEL, "local_window_size is %lld without causal",
                          (long long)p->local_window_size);
    if (strcmp(p->k_quant_type, "NONE") != 0 || strcmp(p->v_quant_type, "NONE") != 0)
        return prony_fail(context, PRONY_UNSUPPORTED,
                          "k_quant_type '%s' and v_quant_type '%s': a quantized cache is not supported",
                          p->k_quant_type, p->v_quant_type);
    if (p->qk_output) return group_query_read_unsupported(context, "qk_output", p->qk_output);
    if (p->sliding_window_cache)
        return group_query_read_unsupported(context, "sliding_window_cache", p->sliding_window_cache);
    return PRONY_OK;
}

static prony_status group_query_read_check_types(const prony_context *context)
{
    static const char *const later[] = {"k_scale", "v_scale", "q_norm_weight", "k_norm_weight"};
    for (size_t i = PRN_GQA_UNSUPPORTED; i < context->input_count; i++) {
        if (context->inputs[i])
            return prony_fail(context, PRONY_UNSUPPORTED, "input %zu (%s) is not supported", i,
                              later[i - PRN_GQA_UNSUPPORTED]);
    }
    if (prn_output(context, 3)) return prony_fail(context, PRONY_UNSUPPORTED, "output 3 (output_qk) is not supported");
    PRN_TRY(prn_check_type(context, PRN_GQA_QUERY, TYPES));
    const uint32_t type = PRN_TYPE(context->inputs[PRN_GQA_QUERY]->dtype), ints = PRN_TYPE(PRONY_INT32);
    static const size_t alike[] = {PRN_GQA_KEY,     PRN_GQA_VALUE, PRN_GQA_PAST_KEY, PRN_GQA_PAST_VALUE,
                                   PRN_GQA_COSINES, PRN_GQA_SINES, PRN_GQA_BIAS,     PRN_GQA_SINK};
    for (size_t i = 0; i < sizeof alike / sizeof *alike; i++) PRN_TRY(prn_check_type(context, alike[i], type));
    PRN_TRY(prn_check_type(context, PRN_GQA_POSITIONS, PRN_TYPE(PRONY_INT64)));
    for (size_t i = PRN_GQA_LENGTHS; i <= PRN_GQA_TOTAL; i++) {
        if (!prn_input(context, i))
            return group_query_read_refuse(context, i,
                                           i == PRN_GQA_TOTAL ? "wanted total_sequence_length" : "wanted seqlens_k");
        PRN_TRY(prn_check_type(context, i, ints));
    }
    return PRONY_OK;
}

/* Queries, keys and values beside each other, or in tensors of their own. */
static prony_status group_query_read_rows(const prony_context *context, prn_gqa *g)
{
    const prony_value *q = context->inputs[PRN_GQA_QUERY], *k = prn_input(context, PRN_GQA_KEY),
                      *v = prn_input(context, PRN_GQA_VALUE);
    PRN_TRY(prn_check_rank(context, PRN_GQA_QUERY, 3, 3));
    const int64_t width = q->shape.dim[2], parts = g->heads + (k ? 0 : 2 * g->key_heads);
    if (!k != !v)
        return group_query_read_refuse(context, k ? PRN_GQA_VALUE : PRN_GQA_KEY,
                                       "but keys and values must be given together");
    if (width % parts != 0)
        return group_query_read_refuse(context, PRN_GQA_QUERY, "whose last extent the heads do not divide");
    g->batch = q->shape.dim[0];
    g->rows = q->shape.dim[1];
    g->depth = width / parts;
    g->q = g->k = g->v = (prn_gqa_rows){q, width, 0};
    g->k.column = g->heads * g->depth;
    g->v.column = g->k.column + g->key_heads * g->depth;
    if (!k) return PRONY_OK;
    const prony_shape wanted = {3, {g->batch, g->rows, g->key_heads * g->depth}};
    if (!prn_shape_equal(&k->shape, &wanted))
        return group_query_read_refuse(context, PRN_GQA_KEY, "wanted [B, S, kv_num_heads D]");
    if (!prn_shape_equal(&v->shape, &wanted))
        return group_query_read_refuse(context, PRN_GQA_VALUE, "wanted [B, S, kv_num_heads D]");
    g->k = (prn_gqa_rows){k, wanted.dim[2], 0};
    g->v = (prn_gqa_rows){v, wanted.dim[2], 0};
    return PRONY_OK;
}

/* Lengths of the sequences: the longest, and the tensors. */
static prony_status read_lengths(const prony_context *context, prn_gqa *g)
{
    const prony_value *past_k = prn_input(context, PRN_GQA_PAST_KEY), *past_v = prn_input(context, PRN_GQA_PAST_VALUE);
    int64_t total = g->rows;
    size_t count;
    if (!past_k != !past_v)
        return group_query_read_refuse(context, past_k ? PRN_GQA_PAST_VALUE : PRN_GQA_PAST_KEY,
                                       "but past keys and values must be given together");
    if (past_k) {
        PRN_TRY(prn_check_rank(context, PRN_GQA_PAST_KEY, 4, 4));
        g->past = past_k->shape.dim[2];
        const prony_shape wanted = {4, {g->batch, g->key_heads, g->past, g->depth}};
        if (!prn_shape_equal(&past_k->shape, &wanted))
            return group_query_read_refuse(context, PRN_GQA_PAST_KEY, "wanted [B, kv_num_heads, P, D]");
        if (!prn_shape_equal(&past_v->shape, &wanted))
            return group_query_read_refuse(context, PRN_GQA_PAST_VALUE, "unlike the past keys");
    }
    if (prony_shape_numel(&context->inputs[PRN_GQA_LENGTHS]->shape) != g->batch)
        return group_query_read_refuse(context, PRN_GQA_LENGTHS, "wanted one length per sequence");
    if (prony_shape_numel(&context->inputs[PRN_GQA_TOTAL]->shape) != 1)
        return group_query_read_refuse(context, PRN_GQA_TOTAL, "wanted one element");
    PRN_TRY(prn_input_ints(context, PRN_GQA_TOTAL, &total, 1, &count, &g->known));
    if (g->known && (total < g->rows || total > g->past + g->rows))
        return prony_fail(context, PRONY_OUT_OF_RANGE,
                          "total_sequence_length is %lld, but there are %lld past and %lld new rows", (long long)total,
                          (long long)g->past, (long long)g->rows);
    g->total = g->known ? total : g->past + g->rows;
    g->known = g->known || !past_k;
    g->present = g->total > g->past ? g->total : g->past;
    return PRONY_OK;
}

static prony_status read_rotary(const prony_context *context, prn_gqa *g)
{
    const prony_value *cosines = prn_input(context, PRN_GQA_COSINES), *sines = prn_input(context, PRN_GQA_SINES);
    const prony_value *positions = prn_input(context, PRN_GQA_POSITIONS);
    const prony_shape ids = {2, {g->batch, g->rows}};
    if (!g->params->do_rotary) return PRONY_OK;
    if (!cosines || !sines)
        return group_query_read_refuse(context, cosines ? PRN_GQA_SINES : PRN_GQA_COSINES, "which do_rotary needs");
    PRN_TRY(prn_check_rank(context, PRN_GQA_COSINES, 2, 2));
    if (!prn_shape_equal(&cosines->shape, &sines->shape))
        return group_query_read_refuse(context, PRN_GQA_SINES, "unlike the cosines");
    g->half = cosines->shape.dim[1];
    if (2 * g->half > g->depth)
        return group_query_read_refuse(context, PRN_GQA_COSINES, "which turns more than a head has");
    if (positions && !prn_shape_equal(&positions->shape, &ids))
        return group_query_read_refuse(context, PRN_GQA_POSITIONS, "wanted [B, S]");
    return PRONY_OK;
}

static prony_status group_query_read_bias(const prony_context *context, const prn_gqa *g)
{
    const prony_value *bias = prn_input(context, PRN_GQA_BIAS), *sink = prn_input(context, PRN_GQA_SINK);
    if (sink && (sink->shape.rank != 1 || sink->shape.dim[0] != g->heads))
        return group_query_read_refuse(context, PRN_GQA_SINK, "wanted one per head");
    if (!bias) return PRONY_OK;
    const int64_t *dim = bias->shape.dim;
    if (bias->shape.rank == 4 && (dim[0] == 1 || dim[0] == g->batch) && (dim[1] == 1 || dim[1] == g->heads) &&
        dim[2] == g->rows && (!g->known || dim[3] == g->total))
        return PRONY_OK;
    return group_query_read_refuse(context, PRN_GQA_BIAS, "wanted [B or 1, num_heads or 1, S, total_sequence_length]");
}

prony_status prn_gqa_read(const prony_context *context, prn_gqa *out)
{
    const prn_gqa_params *params = context->params;
    *out =
        (prn_gqa){.context = context, .params = params, .heads = params->num_heads, .key_heads = params->kv_num_heads};
    PRN_TRY(group_query_read_check_types(context));
    PRN_TRY(group_query_read_rows(context, out));
    PRN_TRY(read_lengths(context, out));
    PRN_TRY(read_rotary(context, out));
    PRN_TRY(group_query_read_bias(context, out));
    out->scale = params->scale != 0.0f ? (double)params->scale : out->depth ? 1.0 / sqrt((double)out->depth) : 1.0;
    return PRONY_OK;
}

/* ---- what data say */

int64_t prn_gqa_position(const prn_gqa *g, int64_t b, int64_t s)
{
    const prony_value *positions = prn_input(g->context, PRN_GQA_POSITIONS);
    const int64_t *ids = positions ? positions->data : NULL;
    if (prn_gqa_begins(g)) return (ids ? ids[0] : 0) + s;
    return ids ? ids[b * g->rows + s] : prn_gqa_past(g, b) + s;
}

void prn_gqa_span(const prn_gqa *g, int64_t b, int64_t s, int64_t *first, int64_t *end)
{
    const int64_t window = g->params->local_window_size;
    *first = 0;
    *end = prn_gqa_length(g, b);
    if (!g->params->causal) return;
    *end = prn_gqa_past(g, b) + s + 1;
    if (window > 0 && *end > window) *first = *end - window;
}

static prony_status check_position(const prn_gqa *g, int64_t b, int64_t s)
{
    const int64_t known = g->context->inputs[PRN_GQA_COSINES]->shape.dim[0], at = prn_gqa_position(g, b, s);
    if (at >= 0 && at < known) return PRONY_OK;
    return prony_fail(g->context, PRONY_OUT_OF_RANGE,
                      "position %lld of row %lld in sequence %lld is outside of %lld cached ones", (long long)at,
                      (long long)s, (long long)b, (long long)known);
}

prony_status prn_gqa_check_data(const prn_gqa *g)
{
    for (int64_t b = 0; b < g->batch; b++) {
        const int64_t length = prn_gqa_length(g, b);
        if (length < 1 || length > g->total || (!prn_gqa_begins(g) && (length < g->rows || length - g->rows > g->past)))
            return prony_fail(g->context, PRONY_OUT_OF_RANGE,
                              "seqlens_k[%lld] is %lld, with %lld past, %lld new and %lld rows in all", (long long)b,
                              (long long)(length - 1), (long long)g->past, (long long)g->rows, (long long)g->total);
        for (int64_t s = 0; s < g->rows && g->params->do_rotary; s++) PRN_TRY(check_position(g, b, s));
    }
    return PRONY_OK;
}
