/* com.microsoft Attention and MultiHeadAttention brought into one form: queries [B, S, N, D]; keys and values
 * [B, L, N, D] or, where a past or a present takes part, [B, N, T, D] with T = past + L; a mask of which keys count,
 * and one that is added. Reading borrows everything and checks all shapes; data pointers are NULL where there is no
 * data. */
#ifndef PRN_OPS_ATTENTION_CONTRIB_ATTENTION_H
#define PRN_OPS_ATTENTION_CONTRIB_ATTENTION_H

#include "ops/op.h"

/* Inputs that more than reading needs. */
enum { PRN_MHA_INPUT, PRN_MHA_WEIGHTS, PRN_MHA_BIAS };
enum { PRN_MHA_MULTI_BIAS = 3 };

typedef struct prn_mha_params {
    int64_t num_heads, unidirectional, do_rotary, past_present_share_buffer;
    float scale, mask_filter_value;
    prn_ints qkv_hidden_sizes;
} prn_mha_params;

/* Rows of heads somewhere: element (b, l, n, d) is data[b batch + l row + n head + d]. */
typedef struct prn_mha_rows {
    const float *data;
    int64_t batch, row, head;
    int64_t length, depth; /* L, D */
    bool biased;           /* [N, D] is added on the way: */
    const float *bias;     /* or NULL before data exists */
    bool settled;          /* [B, N, T, D] already */
} prn_mha_rows;

typedef struct prn_mha_node {
    const prn_mha_params *params;
    int64_t batch, heads, queries, keys, past; /* B, N, S, T, of which past */
    prn_mha_rows q, k, v;
    const prony_value *past_k, *past_v; /* data of [B, N, past, D]; Attention: both in one */
    bool k_given_out, v_given_out;      /* keys and values are laid out in an output */
    float *present_k, *present_v;       /* its data, or NULL before it exists */
    bool joined;                        /* keys and values go to [B, N, T, D] */
    const prony_value *padding, *added; /* which keys count; an additive [B|1, N|1, S, T] */
    int64_t projected;                  /* Attention: columns of the product, otherwise 0 */
} prn_mha_node;

prony_status prn_mha_read_attention(const prony_context *context, prn_mha_node *out);
prony_status prn_mha_read_multi(const prony_context *context, prn_mha_node *out);

static inline const float *prn_mha_data(const prony_value *value, int64_t offset)
{
    return value && value->data ? (const float *)value->data + offset : NULL;
}

#endif
