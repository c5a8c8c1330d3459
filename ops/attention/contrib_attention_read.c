/* Reading com.microsoft Attention and MultiHeadAttention nodes. Invariant: a node that was read has
 * operands whose shapes fit each other. */
#include "ops/attention/contrib_attention.h"

static prony_status contrib_attention_refuse(const prony_context *context, size_t input, const char *what)
{
    char text[PRN_SHAPE_TEXT_BYTES];
    const prony_value *value = prn_input(context, input);
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is %s, %s", input,
                      value ? prn_value_text(value, text) : "missing", what);
}

/* ---- masks */

static bool shape_is(const prony_value *value, int rank, const int64_t *dims)
{
    const prony_shape wanted = prn_shape_make(rank, dims);
    return prn_shape_equal(&value->shape, &wanted);
}

/* [B]: lengths; [2 B]: ends, then beginnings; [B, T]; [B, S, T]. */
static prony_status check_padding(const prony_context *context, size_t input, prn_mha_node *n)
{
    const prony_value *mask = n->padding = prn_input(context, input);
    if (!mask) return PRONY_OK;
    PRN_TRY(prn_check_type(context, input, PRN_TYPE(PRONY_INT32)));
    const int64_t per_query[] = {n->batch, n->queries, n->keys};
    if (shape_is(mask, 1, (const int64_t[]){n->batch}) || shape_is(mask, 1, (const int64_t[]){2 * n->batch}) ||
        shape_is(mask, 2, (const int64_t[]){n->batch, n->keys}) || shape_is(mask, 3, per_query))
        return PRONY_OK;
    return contrib_attention_refuse(context, input, "no mask of [B], [2 B], [B, T] or [B, S, T]");
}

static prony_status check_added(const prony_context *context, size_t input, prn_mha_node *n)
{
    const prony_value *added = n->added = prn_input(context, input);
    if (!added) return PRONY_OK;
    PRN_TRY(prn_check_type(context, input, PRN_TYPE_F32));
    const int64_t *dim = added->shape.dim;
    if (added->shape.rank == 4 && (dim[0] == 1 || dim[0] == n->batch) && (dim[1] == 1 || dim[1] == n->heads) &&
        dim[2] == n->queries && dim[3] == n->keys)
        return PRONY_OK;
    return contrib_attention_refuse(context, input, "wanted [B or 1, N or 1, S, T]");
}

/* ---- Attention: input [B, S, C], weights [C, 3 N D], bias, mask, past [2, B, N, P, D], added */

enum { MASK = 3, PAST, ADDED };

static prony_status split_widths(const prony_context *context, const prn_mha_node *n, int64_t columns,
                                 int64_t widths[3])
{
    const prn_ints *sizes = &n->params->qkv_hidden_sizes;
    int64_t sum = 0;
    for (int i = 0; i < 3; i++) {
        widths[i] = sizes->count == 3 ? sizes->v[i] : columns / 3;
        if (widths[i] < 0 || widths[i] > columns || widths[i] % n->heads)
            return prony_fail(context, PRONY_INVALID_MODEL, "a width of %lld does not divide among num_heads %lld",
                              (long long)widths[i], (long long)n->heads);
        sum += widths[i];
    }
    if (sum == columns && widths[0] == widths[1]) return PRONY_OK;
    return contrib_attention_refuse(context, PRN_MHA_WEIGHTS, "with other columns than Q, K and V");
}

static prony_status contrib_attention_read_past(const prony_context *context, size_t input, prn_mha_node *n, bool pair,
                                                int64_t depth)
{
    const prony_value *past = prn_input(context, input);
    if (!past) return PRONY_OK;
    const int64_t *dim = past->shape.dim + pair;
    PRN_TRY(prn_check_type(context, input, PRN_TYPE_F32));
    if (past->shape.rank != 4 + pair || (pair && past->shape.dim[0] != 2) || dim[0] != n->batch || dim[1] != n->heads ||
        dim[3] != depth)
        return contrib_attention_refuse(context, input, pair ? "wanted [2, B, N, P, D]" : "wanted [B, N, P, D]");
    n->past = dim[2];
    return PRONY_OK;
}

static prony_status contrib_attention_begin(const prony_context *context, prn_mha_node *out)
{
    const prn_mha_params *params = context->params;
    *out = (prn_mha_node){.params = params, .heads = params->num_heads};
    for (size_t i = 0; i < 3; i++) PRN_TRY(prn_check_type(context, i, PRN_TYPE_F32));
    if (params->num_heads < 1 || params->num_heads > INT32_MAX)
        return prony_fail(context, PRONY_INVALID_MODEL, "num_heads is %lld", (long long)params->num_heads);
    if (params->do_rotary || params->past_present_share_buffer)
        return prony_fail(context, PRONY_UNSUPPORTED, "do_rotary and past_present_share_buffer are not supported");
    return PRONY_OK;
}

/* Reads com.microsoft's Attention: Q, K and V lie side by side in the projected input, past and present hold keys and
 * values in one tensor. */
prony_status prn_mha_read_attention(const prony_context *context, prn_mha_node *out)
{
    PRN_TRY(contrib_attention_begin(context, out));
    PRN_TRY(prn_check_rank(context, PRN_MHA_INPUT, 3, 3));
    PRN_TRY(prn_check_rank(context, PRN_MHA_WEIGHTS, 2, 2));
    const int64_t *x = context->inputs[PRN_MHA_INPUT]->shape.dim, *w = context->inputs[PRN_MHA_WEIGHTS]->shape.dim;
    int64_t widths[3];
    if (w[0] != x[2])
        return contrib_attention_refuse(context, PRN_MHA_WEIGHTS, "with other rows than the input's columns");
    const prony_value *bias = prn_input(context, PRN_MHA_BIAS);
    if (bias && !shape_is(bias, 1, (const int64_t[]){w[1]}))
        return contrib_attention_refuse(context, PRN_MHA_BIAS, "wanted the weights' columns");
    PRN_TRY(split_widths(context, out, w[1], widths));
    out->batch = x[0];
    out->queries = x[1];
    out->projected = w[1];
    prn_mha_rows *const each[3] = {&out->q, &out->k, &out->v};
    for (int i = 0; i < 3; i++) {
        const int64_t depth = widths[i] / out->heads;
        *each[i] = (prn_mha_rows){.batch = x[1] * w[1], .row = w[1], .head = depth, .length = x[1], .depth = depth};
    }
    PRN_TRY(contrib_attention_read_past(context, PAST, out, true, out->k.depth));
    out->keys = out->past + out->queries;
    const prony_value *present = prn_output(context, 1);
    out->joined = present || prn_input(context, PAST);
    out->past_k = out->past_v = prn_input(context, PAST);
    if (out->joined && out->v.depth != out->k.depth)
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "keys and values in one tensor, but of different width");
    const int64_t half = out->batch * out->heads * out->keys * out->k.depth;
    out->k_given_out = out->v_given_out = present != NULL;
    out->present_k = present ? present->data : NULL;
    out->present_v = present && present->data ? (float *)present->data + half : NULL;
    PRN_TRY(check_padding(context, MASK, out));
    return check_added(context, ADDED, out);
}

/* ---- MultiHeadAttention: query, key, value, bias, key padding, added, past key, past value */

enum { QUERY, KEY, VALUE, PADDING = 4, MULTI_ADDED, PAST_KEY, PAST_VALUE };

/* Part `part` of `parts` of [B, L, N, parts, D], or a tensor of its own: [B, L, N D] or, settled, [B, N, L, D]. */
static prony_status contrib_attention_read_rows(const prony_context *context, size_t input, int64_t part, int64_t parts,
                                                prn_mha_node *n, prn_mha_rows *out)
{
    const prony_value *value = context->inputs[input];
    const int64_t *dim = value->shape.dim;
    if (parts > 1) {
        if (value->shape.rank != 5 || dim[2] != n->heads || dim[3] != parts)
            return contrib_attention_refuse(context, input,
                                            parts == 3 ? "wanted [B, S, N, 3, D]" : "wanted [B, L, N, 2, D]");
        *out = (prn_mha_rows){.head = parts * dim[4], .length = dim[1], .depth = dim[4]};
        out->row = n->heads * out->head;
        out->data = prn_mha_data(value, part * dim[4]);
    } else if (value->shape.rank == 4 && input != QUERY) {
        if (dim[1] != n->heads) return contrib_attention_refuse(context, input, "wanted [B, N, L, D]");
        *out =
            (prn_mha_rows){.row = dim[3], .head = dim[2] * dim[3], .length = dim[2], .depth = dim[3], .settled = true};
        out->data = prn_mha_data(value, 0);
    } else {
        if (value->shape.rank != 3 || dim[2] % n->heads)
            return contrib_attention_refuse(context, input, "wanted [B, L, N D]");
        *out = (prn_mha_rows){.row = dim[2], .head = dim[2] / n->heads, .length = dim[1], .depth = dim[2] / n->heads};
        out->data = prn_mha_data(value, 0);
    }
    if (dim[0] != context->inputs[QUERY]->shape.dim[0])
        return contrib_attention_refuse(context, input, "which has another batch size");
    out->batch = out->settled ? n->heads * out->head : out->length * out->row;
    return PRONY_OK;
}

static prony_status contrib_attention_read_operands(const prony_context *context, prn_mha_node *n)
{
    const prony_value *key = prn_input(context, KEY), *value = prn_input(context, VALUE);
    if (!key) {
        if (value) return contrib_attention_refuse(context, VALUE, "without a key");
        PRN_TRY(contrib_attention_read_rows(context, QUERY, 0, 3, n, &n->q));
        PRN_TRY(contrib_attention_read_rows(context, QUERY, 1, 3, n, &n->k));
        return contrib_attention_read_rows(context, QUERY, 2, 3, n, &n->v);
    }
    PRN_TRY(contrib_attention_read_rows(context, QUERY, 0, 1, n, &n->q));
    PRN_TRY(contrib_attention_read_rows(context, KEY, 0, value ? 1 : 2, n, &n->k));
    return value ? contrib_attention_read_rows(context, VALUE, 0, 1, n, &n->v)
                 : contrib_attention_read_rows(context, KEY, 1, 2, n, &n->v);
}

static prony_status read_multi_bias(const prony_context *context, prn_mha_node *n)
{
    const prony_value *bias = prn_input(context, PRN_MHA_MULTI_BIAS);
    if (!bias) return PRONY_OK;
    PRN_TRY(prn_check_type(context, PRN_MHA_MULTI_BIAS, PRN_TYPE_F32));
    const int64_t width = n->heads * n->q.depth;
    if (!shape_is(bias, 1, (const int64_t[]){2 * width + n->heads * n->v.depth}))
        return contrib_attention_refuse(context, PRN_MHA_MULTI_BIAS,
                                        "wanted one element per column of query, key and value");
    prn_mha_rows *const each[3] = {&n->q, &n->k, &n->v};
    for (int i = 0; i < 3; i++) {
        each[i]->biased = !each[i]->settled;
        each[i]->bias = prn_mha_data(bias, i * width);
    }
    return PRONY_OK;
}

/* Reads com.microsoft's MultiHeadAttention: Q, K and V are inputs, past and present are separate tensors, both or
 * neither. */
prony_status prn_mha_read_multi(const prony_context *context, prn_mha_node *out)
{
    PRN_TRY(contrib_attention_begin(context, out));
    out->batch = context->inputs[QUERY]->shape.rank > 0 ? context->inputs[QUERY]->shape.dim[0] : 0;
    PRN_TRY(contrib_attention_read_operands(context, out));
    if (out->q.depth != out->k.depth || out->k.length != out->v.length || out->k.settled != out->v.settled)
        return contrib_attention_refuse(context, QUERY, "to which key and value do not fit");
    out->queries = out->q.length;
    PRN_TRY(contrib_attention_read_past(context, PAST_KEY, out, false, out->k.depth));
    const int64_t past = out->past;
    PRN_TRY(contrib_attention_read_past(context, PAST_VALUE, out, false, out->v.depth));
    out->past_k = prn_input(context, PAST_KEY);
    out->past_v = prn_input(context, PAST_VALUE);
    if (past != out->past || !out->past_k != !out->past_v)
        return contrib_attention_refuse(context, PAST_VALUE, "unlike past_key");
    out->keys = out->past + out->k.length;
    const prony_value *present_k = prn_output(context, 1), *present_v = prn_output(context, 2);
    out->joined = present_k || present_v || out->past_k;
    out->k_given_out = present_k != NULL;
    out->v_given_out = present_v != NULL;
    out->present_k = present_k ? present_k->data : NULL;
    out->present_v = present_v ? present_v->data : NULL;
    if (out->joined && out->k.settled)
        return prony_fail(context, PRONY_UNSUPPORTED, "keys [B, N, L, D] together with a past or present");
    PRN_TRY(read_multi_bias(context, out));
    PRN_TRY(check_padding(context, PADDING, out));
    return check_added(context, MULTI_ADDED, out);
}
