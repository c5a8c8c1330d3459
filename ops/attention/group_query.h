/* com.microsoft GroupQueryAttention as it was read: queries [B, S, H D], keys and values [B, S, Hk D] or all three side
 * by side in one tensor, past ones [B, Hk, P, D], present ones [B, Hk, T, D]. Nothing is owned; data are borrowed from
 * the context. */
#ifndef PRN_OPS_ATTENTION_GROUP_QUERY_H
#define PRN_OPS_ATTENTION_GROUP_QUERY_H

#include "ops/op.h"

typedef struct prn_gqa_params {
    int64_t num_heads, kv_num_heads, do_rotary, rotary_interleaved, local_window_size, smooth_softmax, causal,
        qk_output, kv_cache_bit_width, sliding_window_cache;
    float scale, softcap, qk_norm_epsilon;
    const char *k_quant_type, *v_quant_type;
    /* Of the operator of the domain prony (group_query.c): rows of a block, prn_cache_type. */
    int64_t cache_rows, cache_type;
} prn_gqa_params;

enum {
    PRN_GQA_QUERY,
    PRN_GQA_KEY,
    PRN_GQA_VALUE,
    PRN_GQA_PAST_KEY,
    PRN_GQA_PAST_VALUE,
    PRN_GQA_LENGTHS,
    PRN_GQA_TOTAL,
    PRN_GQA_COSINES,
    PRN_GQA_SINES,
    PRN_GQA_POSITIONS,
    PRN_GQA_BIAS,
    PRN_GQA_SINK,
    PRN_GQA_UNSUPPORTED /* the first of those that are
                                                                                         refused */
};

/* New rows of queries, keys or values: that of sequence b, row s and head h begins at element
 * (b S + s) width + column + h D of `value`. */
typedef struct prn_gqa_rows {
    const prony_value *value;
    int64_t width, column;
} prn_gqa_rows;

typedef struct prn_gqa {
    const prony_context *context;
    const prn_gqa_params *params;
    int64_t batch, rows, heads, key_heads, depth; /* B, S, H, Hk, D */
    int64_t past, present, total;                 /* P; T; keys that take part at most: those of the longest sequence */
    bool known;                                   /* whether `total` and T are */
    int64_t half;                                 /* pairs that are turned, 0 without rotary */
    double scale;
    prn_gqa_rows q, k, v;
} prn_gqa;

prony_status prn_gqa_check(const prony_context *context);
/* Checks all shapes. */
prony_status prn_gqa_read(const prony_context *context, prn_gqa *out);
/* Checks what shapes do not tell, before a run: lengths and positions. */
prony_status prn_gqa_check_data(const prn_gqa *g);

/* True if every sequence begins here. */
static inline bool prn_gqa_begins(const prn_gqa *g)
{
    return g->rows == g->total;
}
/* Keys of sequence b with the new ones, and how many of them are past. */
static inline int64_t prn_gqa_length(const prn_gqa *g, int64_t b)
{
    return (int64_t)((const int32_t *)g->context->inputs[PRN_GQA_LENGTHS]->data)[b] + 1;
}
static inline int64_t prn_gqa_past(const prn_gqa *g, int64_t b)
{
    return prn_gqa_begins(g) ? 0 : prn_gqa_length(g, b) - g->rows;
}
/* Row of the caches of cosines and sines. */
int64_t prn_gqa_position(const prn_gqa *g, int64_t b, int64_t s);
/* Keys [*first, *end) that row s of sequence b may look at. */
void prn_gqa_span(const prn_gqa *g, int64_t b, int64_t s, int64_t *first, int64_t *end);
/* Weights from products of row s of a head's queries with all keys, in place; those out of sight are 0. */
void prn_gqa_weigh_f32(const prn_gqa *g, int64_t b, int64_t h, int64_t s, float *scores);
void prn_gqa_weigh_f64(const prn_gqa *g, int64_t b, int64_t h, int64_t s, double *scores);

#ifdef PRN_HAVE_OPENCL
bool prn_gqa_opencl_supported(const prony_context *context);
prony_status prn_gqa_opencl_prepare(const prony_context *context, prn_prepared *out);
prony_status prn_gqa_opencl_run(const prony_context *context);
#endif

#endif
