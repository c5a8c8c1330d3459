/* prony::Attention, which rewrites put in the place of attention written out in primitives:
 *
 *   Y = softmax(scale Q K^T + mask) V        Q [B, H, S, D], K [B, H, T, D], V [B, H, T, E], Y [B, H, S, E]
 *
 * An operand may come permuted: q_perm, k_perm and v_perm are what a Transpose would do to the input to give the shapes
 * above; y_perm is what is done to the result. Rank 3 stands for B = 1 left out, in all operands at once. mask
 * (optional) is added and broadcasts to [B, H, S, T]; one of truth values makes Where(mask, scores, fill) of the scaled
 * scores instead, or Where(mask, fill, scores) with kept = 0.
 *
 * With cache_rows, K [B, Hk, P, D] and V are a generator's caches, whose blocks have room for so many rows; new_k
 * [B, Hk, N, D] and new_v are written behind their rows, and Q attends to all P + N. H / Hk query heads share a block.
 * With cache_type the bytes of K and V are blocks of fewer bits (attend_cache.h), whatever their declared type. */
#include "base/memory/alloc.h"
#include "base/threads/cancel.h"
#include "ops/kernels/attention/attend.h"
#include "ops/kernels/attention/attend_tiles.h"
#include "ops/kernels/gemm/bf16x3_product.h"
#include "ops/device.h"
#include "ops/vendor/opencl/opencl_attention.h"

#include <math.h>
#include <string.h>

enum { Q, K, V, MASK, NEW_K, NEW_V };
typedef struct attention_params {
    float scale, fill;
    int64_t kept, cache_rows, cache_type; /* prn_cache_type */
    prn_ints q_perm, k_perm, v_perm, y_perm;
} attention_params;

/* A tensor seen as [B, H, rows, columns]. */
typedef struct view {
    int64_t dim[4], stride[4];
    void *data;
} view;

typedef struct attention {
    view q, k, v, mask, y;
    bool masked, chosen; /* by what is added, or by truth values */
    float scale, fill;
    bool kept;
    int64_t batch, heads, key_heads, rows, keys, depth, width; /* B, H, Hk, S, T, D, E */
} attention;

static prony_status attention_op_refuse(const prony_context *context, size_t input, const char *what)
{
    char text[PRN_SHAPE_TEXT_BYTES];
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is %s, %s", input,
                      prn_value_text(context->inputs[input], text), what);
}

static bool is_permutation(const prn_ints *perm, int rank)
{
    unsigned seen = 0;
    if (!perm->present) return true;
    if (perm->count != (size_t)rank) return false;
    for (int d = 0; d < rank; d++) {
        if (perm->v[d] < 0 || perm->v[d] >= rank || (seen >> perm->v[d] & 1)) return false;
        seen |= 1u << perm->v[d];
    }
    return true;
}

/* Which of the tensor's dimensions is dimension d of its view; -1: the batch that rank 3 leaves out. */
static int source_dim(const prn_ints *perm, int rank, int d)
{
    const int missing = 4 - rank;
    if (d < missing) return -1;
    return perm->present ? (int)perm->v[d - missing] : d - missing;
}

static prony_status view_of(const prony_context *context, size_t input, const prn_ints *perm, view *out)
{
    const prony_value *value = context->inputs[input];
    const int rank = value->shape.rank;
    int64_t stride[PRONY_MAX_RANK];
    if (rank != context->inputs[Q]->shape.rank)
        return attention_op_refuse(context, input, "Q, K and V must have the same rank");
    if (!is_permutation(perm, rank)) return attention_op_refuse(context, input, "but its perm does not fit that rank");
    prn_shape_strides(&value->shape, stride);
    out->data = value->data;
    for (int d = 0; d < 4; d++) {
        const int from = source_dim(perm, rank, d);
        out->dim[d] = from < 0 ? 1 : value->shape.dim[from];
        out->stride[d] = from < 0 ? 0 : stride[from];
    }
    return PRONY_OK;
}

static prony_status view_mask(const prony_context *context, attention *at)
{
    const prony_value *mask = prn_input(context, MASK);
    if (!mask) return PRONY_OK;
    at->chosen = mask->dtype == PRONY_BOOL;
    at->masked = !at->chosen;
    const prony_shape scores = prn_shape_make(4, (const int64_t[]){at->batch, at->heads, at->rows, at->keys});
    prony_shape both;
    if (!prn_shape_broadcast(&both, &mask->shape, &scores) || !prn_shape_equal(&both, &scores))
        return attention_op_refuse(context, MASK, "which does not broadcast to the scores");
    prn_shape_broadcast_strides(&mask->shape, &scores, at->mask.stride);
    at->mask.data = mask->data;
    return PRONY_OK;
}

/* The shape of Y as stored, and its view. */
static prony_status view_result(const prony_context *context, attention *at, prony_shape *shape)
{
    const attention_params *params = context->params;
    const int rank = context->inputs[Q]->shape.rank, missing = 4 - rank;
    const int64_t dim[4] = {at->batch, at->heads, at->rows, at->width};
    int64_t stride[PRONY_MAX_RANK];
    if (!is_permutation(&params->y_perm, rank) || source_dim(&params->y_perm, rank, 3) != rank - 1)
        return prony_fail(context, PRONY_INVALID_MODEL,
                          "y_perm is not a permutation that leaves the last axis in place");
    *shape = (prony_shape){.rank = rank};
    for (int d = 0; d < rank; d++) {
        const int from = source_dim(&params->y_perm, rank, d + missing) + missing;
        shape->dim[d] = dim[from];
    }
    prn_shape_strides(shape, stride);
    for (int d = 0; d < rank; d++) at->y.stride[source_dim(&params->y_perm, rank, d + missing) + missing] = stride[d];
    at->y.data = context->outputs[0]->data;
    return PRONY_OK;
}

/* Makes the view of a cache that of all its rows, the new ones included. */
static prony_status view_cache(const prony_context *context, size_t input, view *out)
{
    const attention_params *params = context->params;
    const prony_value *fresh = prn_input(context, input - K + NEW_K);
    if (params->cache_rows == 0 && !fresh) return PRONY_OK;
    if (!fresh || params->cache_rows <= 0)
        return prony_fail(context, PRONY_INVALID_MODEL, "cache_rows, new_k and new_v go together");
    if (params->cache_type < PRN_CACHE_FLOAT32 || params->cache_type > PRN_CACHE_INT8)
        return prony_fail(context, PRONY_INVALID_MODEL, "cache_type must be 0, 1 or 2");
    const int64_t *dim = fresh->shape.dim;
    if (fresh->shape.rank != 4 || context->inputs[input]->shape.rank != 4 || dim[0] != out->dim[0] ||
        dim[1] != out->dim[1] || dim[3] != out->dim[3])
        return attention_op_refuse(context, input - K + NEW_K, "which does not fit the cache");
    if (dim[2] > params->cache_rows - out->dim[2])
        return attention_op_refuse(context, input - K + NEW_K, "and the cache has no room for it");
    out->dim[2] += dim[2];
    out->stride[3] = 1;
    out->stride[2] = dim[3];
    out->stride[1] = params->cache_rows * dim[3];
    out->stride[0] = dim[1] * out->stride[1];
    return PRONY_OK;
}

static prn_cache_type attention_op_stored(const prony_context *context)
{
    return (prn_cache_type)((const attention_params *)context->params)->cache_type;
}

/* Writes the new rows behind those of the caches. A run that is repeated writes the same bytes. */
static void attention_op_append(const prony_context *context)
{
    const int64_t cache_rows = ((const attention_params *)context->params)->cache_rows;
    const prn_cache_type type = attention_op_stored(context);
    for (size_t i = K; i <= V && cache_rows > 0; i++) {
        if (context->device) prn_device_cache_changed(context->device->device, context->inputs[i]->data);
        const prony_value *past = context->inputs[i], *fresh = context->inputs[i - K + NEW_K];
        const int64_t *dim = fresh->shape.dim, block = dim[2] * dim[3];
        const size_t bytes = prn_cache_block_bytes(type, cache_rows, dim[3]);
        for (int64_t b = 0; b < dim[0] * dim[1]; b++)
            prn_cache_store(type, (char *)past->data + (size_t)b * bytes, cache_rows, dim[3], past->shape.dim[2],
                            dim[2], (const float *)fresh->data + b * block);
    }
}

static prony_status attention_op_read_node(const prony_context *context, attention *at, prony_shape *y)
{
    const attention_params *params = context->params;
    *at = (attention){.scale = params->scale, .fill = params->fill, .kept = params->kept != 0};
    PRN_TRY(view_of(context, Q, &params->q_perm, &at->q));
    PRN_TRY(view_of(context, K, &params->k_perm, &at->k));
    PRN_TRY(view_of(context, V, &params->v_perm, &at->v));
    PRN_TRY(view_cache(context, K, &at->k));
    PRN_TRY(view_cache(context, V, &at->v));
    at->batch = at->q.dim[0];
    at->heads = at->q.dim[1];
    at->key_heads = at->k.dim[1];
    at->rows = at->q.dim[2];
    at->depth = at->q.dim[3];
    at->keys = at->k.dim[2];
    at->width = at->v.dim[3];
    const bool shared = params->cache_rows > 0 && at->key_heads > 0 && at->heads % at->key_heads == 0;
    const bool same = at->k.dim[0] == at->batch && at->v.dim[0] == at->batch && at->v.dim[1] == at->key_heads &&
                      (at->key_heads == at->heads || shared);
    if (!same) return attention_op_refuse(context, K, "Q, K and V differ in batch or heads");
    if (at->k.dim[3] != at->depth) return attention_op_refuse(context, K, "its last axis differs from Q's");
    if (at->v.dim[2] != at->keys) return attention_op_refuse(context, V, "its rows differ from K's");
    PRN_TRY(view_mask(context, at));
    return view_result(context, at, y);
}

static prony_status attention_op_infer(const prony_context *context)
{
    for (size_t i = Q; i <= V; i++) PRN_TRY(prn_check_type(context, i, PRN_TYPE_F32));
    PRN_TRY(prn_check_type(context, MASK, PRN_TYPE_F32 | PRN_TYPE(PRONY_BOOL)));
    for (size_t i = NEW_K; i <= NEW_V; i++) PRN_TRY(prn_check_type(context, i, PRN_TYPE_F32));
    PRN_TRY(prn_check_rank(context, Q, 3, 4));
    attention at;
    prony_shape y;
    PRN_TRY(attention_op_read_node(context, &at, &y));
    prn_set_output(context, 0, PRONY_FLOAT32, &y);
    return PRONY_OK;
}

/* Rows of a cache in fewer bits are read as stored. */
static void attention_op_count_stored(const prony_context *context, prony_cost *out)
{
    const prn_cache_type type = attention_op_stored(context);
    for (size_t i = K; i <= V && type != PRN_CACHE_FLOAT32; i++) {
        const prony_shape *past = &context->inputs[i]->shape;
        const uint64_t rows = (uint64_t)prn_shape_count(past, 0, 3);
        out->bytes_read -= rows * prn_cache_row_bytes(PRN_CACHE_FLOAT32, past->dim[3]);
        out->bytes_read += rows * prn_cache_row_bytes(type, past->dim[3]);
    }
}

static prony_status attention_op_cost(const prony_context *context, prony_cost *out)
{
    attention at;
    prony_shape y;
    PRN_TRY(attention_op_read_node(context, &at, &y));
    uint64_t rows, scores, macs;
    if (!prn_mul_u64(&rows, (uint64_t)at.batch * (uint64_t)at.heads, (uint64_t)at.rows) ||
        !prn_mul_u64(&scores, rows, (uint64_t)at.keys) ||
        !prn_mul_u64(&macs, scores, (uint64_t)at.depth + (uint64_t)at.width)) {
        return prony_fail(context, PRONY_OUT_OF_RANGE, "the number of MACs does not fit 64 bits");
    }
    PRN_TRY(prn_cost_macs(context, out, macs, false));
    prn_cost_fact(out, "axis_length", at.keys);
    prn_cost_fact(out, "rows", (int64_t)rows);
    PRN_TRY(prn_cost_elementwise(context, out, scores, 5u + at.masked + (at.scale != 1.0f), 2));
    if (scores > 0) out->flops -= 2 * rows;
    attention_op_count_stored(context, out);
    return PRONY_OK;
}

/* ---- native */

static prn_attend_view attend_view(const view *from)
{
    return (prn_attend_view){from->data, {from->stride[0], from->stride[1], from->stride[2], from->stride[3]}};
}

/* One row of each query head becomes the rows of one head for each block of keys: a block is read once. */
static void attend_as_rows(const attention *at, prn_attend *out)
{
    if (at->rows != 1 || at->key_heads < 1 || at->heads == at->key_heads) return;
    const int64_t group = at->heads / at->key_heads;
    int64_t *strides[] = {out->q.stride, out->mask.stride, out->y_stride, out->choice_stride};
    for (size_t k = 0; k < sizeof strides / sizeof *strides; k++) {
        strides[k][2] = strides[k][1];
        strides[k][1] *= group;
    }
    out->heads = at->key_heads;
    out->rows = group;
}

/* The node as the attention kernels take it: sizes, views of Q, K, V and the mask, and the choice of a Where before
 * the softmax. */
static prony_status read_attend(const prony_context *context, prn_attend *out)
{
    attention at;
    prony_shape y;
    PRN_TRY(attention_op_read_node(context, &at, &y));
    *out = (prn_attend){.batch = at.batch,
                        .heads = at.heads,
                        .key_heads = at.key_heads,
                        .rows = at.rows,
                        .keys = at.keys,
                        .depth = at.depth,
                        .width = at.width,
                        .q = attend_view(&at.q),
                        .k = attend_view(&at.k),
                        .v = attend_view(&at.v),
                        .y = at.y.data,
                        .y_stride = {at.y.stride[0], at.y.stride[1], at.y.stride[2]},
                        .scale = at.scale,
                        .stored = attention_op_stored(context),
                        .cache_rows = ((const attention_params *)context->params)->cache_rows};
    if (at.masked) out->mask = attend_view(&at.mask);
    if (at.chosen) {
        out->choice = at.mask.data;
        memcpy(out->choice_stride, at.mask.stride, sizeof out->choice_stride);
        out->kept = at.kept;
        out->fill = at.fill;
    }
    attend_as_rows(&at, out);
    return PRONY_OK;
}

/* The prepared problem, on the bytes that the context has now. */
static prn_attend kept_attend(const prony_context *context)
{
    prn_attend at = *(const prn_attend *)context->state;
    const prony_value *mask = prn_input(context, MASK);
    at.q.data = context->inputs[Q]->data;
    at.k.data = context->inputs[K]->data;
    at.v.data = context->inputs[V]->data;
    at.y = context->outputs[0]->data;
    if (mask && mask->dtype == PRONY_BOOL)
        at.choice = mask->data;
    else if (mask)
        at.mask.data = mask->data;
    return at;
}

static bool attention_op_native_supported(const prony_context *context)
{
    prn_attend at;
    return read_attend(context, &at) == PRONY_OK && prn_attend_fits(&at);
}

static prony_status attention_op_native_prepare(const prony_context *context, prn_prepared *out)
{
    prn_attend at;
    int64_t floats;
    PRN_TRY(read_attend(context, &at));
    if (!prn_attend_space(&at, &floats))
        return prony_fail(context, PRONY_LIMIT, "the packed keys and values do not fit in memory");
    out->scratch_bytes = prony_dtype_bytes(PRONY_FLOAT32, floats);
    return prn_prepared_keep(context, &at, sizeof at, out);
}

static prony_status attention_op_native_run(const prony_context *context)
{
    const prn_attend at = kept_attend(context);
    attention_op_append(context);
    prn_attend_run(context->threads, &at, context->scratch);
    return PRONY_OK;
}

/* ---- native, on tiles of bfloat16 */

static bool tiles_supported(const prony_context *context)
{
    prn_attend at;
    return context->precision == PRONY_PRECISION_BF16 && !attention_op_stored(context) &&
           read_attend(context, &at) == PRONY_OK && prn_attend_tiles_fit(&at);
}

static bool tiles_profitable(const prony_context *context)
{
    prn_attend at;
    return read_attend(context, &at) == PRONY_OK && prn_attend_tiles_profitable(&at);
}

static prony_status tiles_prepare(const prony_context *context, prn_prepared *out)
{
    prn_attend at;
    PRN_TRY(read_attend(context, &at));
    if (!prn_attend_tiles_space(context->threads, &at, &out->scratch_bytes))
        return prony_fail(context, PRONY_LIMIT, "the packed keys and values do not fit in memory");
    return prn_prepared_keep(context, &at, sizeof at, out);
}

static prony_status tiles_run(const prony_context *context)
{
    const prn_attend at = kept_attend(context);
    attention_op_append(context);
    prn_attend_tiles_run(context->threads, &at, context->scratch);
    return PRONY_OK;
}

static void tiles_facts(const prony_context *context, prony_cost *facts)
{
    (void)context;
    prn_cost_fact(facts, "tile_rows", PRN_BF16X3_ROWS);
    prn_cost_fact(facts, "tile_columns", PRN_BF16X3_COLUMNS);
    prn_cost_fact(facts, "bf16_products", 1);
}

/* ---- OpenCL */

#ifdef PRN_HAVE_OPENCL
static bool attention_opencl_supported(const prony_context *context)
{
    prn_attend at;
    return ((const attention_params *)context->params)->cache_rows == 0 && read_attend(context, &at) == PRONY_OK &&
           prn_opencl_attend_supported(context, &at);
}

static prn_opencl_attend attention_opencl_problem(const prony_context *context, const prn_attend *at)
{
    const prony_value *mask = prn_input(context, MASK);
    const bool chosen = mask && mask->dtype == PRONY_BOOL;
    prn_opencl_attend problem = {.at = at, .mask_keys = at->keys, .alone = NAN};
    if (mask) problem.mask = chosen ? PRN_OPENCL_MASK_CHOOSES : PRN_OPENCL_MASK_ADDED;
    if (mask) memcpy(problem.mask_stride, chosen ? at->choice_stride : at->mask.stride, sizeof problem.mask_stride);
    return problem;
}

static prony_status attention_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    prn_attend at;
    PRN_TRY(read_attend(context, &at));
    const prn_opencl_attend problem = attention_opencl_problem(context, &at);
    return prn_opencl_attend_prepare(context, &problem, out);
}

/* Caches grow on the device, and the new rows are copied to the host. */
static bool attention_cache_opencl_supported(const prony_context *context)
{
    const int64_t capacity = ((const attention_params *)context->params)->cache_rows;
    prn_attend at;
    return capacity > 0 && attention_op_stored(context) == PRN_CACHE_FLOAT32 && prn_input(context, NEW_V) &&
           read_attend(context, &at) == PRONY_OK && prn_opencl_append_supported(context, &at, capacity);
}

static prn_opencl_fresh fresh_rows(const prony_context *context, size_t input)
{
    const int64_t *dim = context->inputs[input]->shape.dim, head = dim[2] * dim[3];
    return (prn_opencl_fresh){.input = input, .batch = dim[1] * head, .head = head, .row = dim[3]};
}

static prony_status attention_cache_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    const int64_t capacity = ((const attention_params *)context->params)->cache_rows,
                  past = context->inputs[K]->shape.dim[2];
    prn_attend at;
    PRN_TRY(read_attend(context, &at));
    const prn_opencl_append append = {.k = fresh_rows(context, NEW_K),
                                      .v = fresh_rows(context, NEW_V),
                                      .rows = at.keys - past,
                                      .capacity = capacity,
                                      .past = past,
                                      .mask = MASK};
    const prn_opencl_attend problem = attention_opencl_problem(context, &at);
    return prn_opencl_append_prepare(context, &problem, &append, out);
}

static prony_status attention_cache_opencl_run(const prony_context *context)
{
    return prn_opencl_append_run(context, context->inputs[K]->data, context->inputs[V]->data);
}
#endif

/* ---- reference */

static bool attention_op_reference_supported(const prony_context *context)
{
    return attention_op_stored(context) == PRN_CACHE_FLOAT32;
}

/* Row `row` of a head; a tensor without elements has no address. */
static float *attention_op_row_of(const view *of, int64_t b, int64_t h, int64_t row)
{
    float *data = of->data;
    return data ? data + b * of->stride[0] + h * of->stride[1] + row * of->stride[2] : NULL;
}

static double attention_op_score(const attention *at, int64_t b, int64_t h, int64_t s, int64_t t)
{
    const float *q = attention_op_row_of(&at->q, b, h, s),
                *k = attention_op_row_of(&at->k, b, h / (at->heads / at->key_heads), t);
    double sum = 0.0;
    for (int64_t d = 0; d < at->depth; d++) sum += (double)q[d * at->q.stride[3]] * (double)k[d * at->k.stride[3]];
    sum *= (double)at->scale;
    const int64_t *stride = at->mask.stride, place = b * stride[0] + h * stride[1] + s * stride[2] + t * stride[3];
    if (at->chosen) return (((const uint8_t *)at->mask.data)[place] != 0) == at->kept ? sum : (double)at->fill;
    return at->masked ? sum + (double)((const float *)at->mask.data)[place] : sum;
}

static void attention_op_reference_row(const attention *at, int64_t b, int64_t h, int64_t s)
{
    const float *v = attention_op_row_of(&at->v, b, h / (at->heads / at->key_heads), 0);
    float *y = attention_op_row_of(&at->y, b, h, s);
    double highest = -INFINITY, total = 0.0;
    for (int64_t t = 0; t < at->keys && !prn_cancelled_at(t); t++)
        highest = fmax(highest, attention_op_score(at, b, h, s, t));
    for (int64_t t = 0; t < at->keys && !prn_cancelled_at(t); t++)
        total += exp(attention_op_score(at, b, h, s, t) - highest);
    for (int64_t e = 0; e < at->width && !prn_cancelled(); e++) {
        double sum = 0.0;
        for (int64_t t = 0; t < at->keys && !prn_cancelled_at(t); t++)
            sum += exp(attention_op_score(at, b, h, s, t) - highest) / total *
                   (double)v[t * at->v.stride[2] + e * at->v.stride[3]];
        y[e * at->y.stride[3]] = (float)sum;
    }
}

static prony_status attention_op_prepare_reference(const prony_context *context, prn_prepared *out)
{
    attention at;
    prony_shape y;
    PRN_TRY(attention_op_read_node(context, &at, &y));
    return prn_prepared_keep(context, &at, sizeof at, out);
}

static prony_status attention_op_run_reference(const prony_context *context)
{
    attention at = *(const attention *)context->state;
    attention_op_append(context);
    at.q.data = context->inputs[Q]->data;
    at.k.data = context->inputs[K]->data;
    at.v.data = context->inputs[V]->data;
    at.y.data = context->outputs[0]->data;
    if (prn_input(context, MASK)) at.mask.data = context->inputs[MASK]->data;
    for (int64_t b = 0; b < at.batch; b++) {
        for (int64_t h = 0; h < at.heads; h++) {
            for (int64_t s = 0; s < at.rows && !prn_cancelled(); s++) attention_op_reference_row(&at, b, h, s);
        }
    }
    return PRONY_OK;
}

/* ---- descriptor */

static const prn_param params[] = {PRN_FLOAT(attention_params, scale, 1.0f), PRN_FLOAT(attention_params, fill, 0.0f),
                                   PRN_INT(attention_params, kept, 1),       PRN_INTS(attention_params, q_perm),
                                   PRN_INTS(attention_params, k_perm),       PRN_INTS(attention_params, v_perm),
                                   PRN_INTS(attention_params, y_perm),       PRN_INT(attention_params, cache_rows, 0),
                                   PRN_INT(attention_params, cache_type, 0), {0}};

// clang-format off
static const prn_kernel kernels[] = {
    PRN_OPENCL_ROW("attention_f32_opencl", PRN_TYPE_F32, attention_opencl_supported, attention_opencl_prepare)
    PRN_OPENCL_ROW_RUN("attention_cache_f32_opencl", PRN_TYPE_F32, attention_cache_opencl_supported, attention_cache_opencl_prepare,
                       attention_cache_opencl_run, .host_inputs = 1 << K | 1 << V)
    {.name = "attention_bf16_dot", .precisions = PRN_PRECISION(BF16), .backend = "native", .types = PRN_TYPE_F32, .supported = tiles_supported,
     .profitable = tiles_profitable, .prepare = tiles_prepare, .run = tiles_run, .release = prn_free, .state_bytes = sizeof(prn_attend), .facts = tiles_facts},
    {.name = "attention_f32_native", .backend = "native", .types = PRN_TYPE_F32, .supported = attention_op_native_supported,
     .prepare = attention_op_native_prepare, .run = attention_op_native_run, .release = prn_free,
     .state_bytes = sizeof(prn_attend)},
    {.name = "attention_ref", .backend = "reference", .types = PRN_TYPE_F32, .supported = attention_op_reference_supported, .prepare = attention_op_prepare_reference,
     .run = attention_op_run_reference, .release = prn_free, .state_bytes = sizeof(attention)},
    {0}};

const prn_op prn_ops_attention[] = {
    {.name = "Attention", .domain = "prony", .since_opset = 1, .inputs = {3, 6},
     .params = params, .params_bytes = sizeof(attention_params),
     .infer = attention_op_infer, .cost = attention_op_cost, .kernels = kernels,
     .cost_text = "r rows of d scores: MACs M = r d (D + E); FLOPs 2M + r(5d-2), + r d with mask, + r d with "
                  "scale; special 2 r d"},
    {0}};
// clang-format on
