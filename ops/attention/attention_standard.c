/* Attention of ai.onnx (opset 23 on): softmax(softcap(scale Q K^T) + mask) V with heads shared by groups of queries, a
 * cache of keys and values that goes before the new ones, and the scores as an output. prony::Attention, which rewrites
 * make, is in attention.c.
 *
 * Q is [B, S, Hq D] or [B, Hq, S, D], K and V likewise. Float32 goes to the shared core
 * (ops/kernels/attention/attend.h), which reads them where they are; only what joins a cache is laid out before, as [B,
 * Hk, T, D or E]. Other types, and more keys than the core takes, are done row by row in the work type, all of K and V
 * laid out so: a task makes a stretch of rows, with one row of scores of its own. Invariant: the stretches depend on
 * the shapes alone, and a row is made in one order. */
#include "base/memory/alloc.h"
#include "base/threads/parallel.h"
#include "base/integers.h"
#include "base/threads/cancel.h"
#include "ops/kernels/attention/attend.h"
#include "ops/op.h"
#include "ops/kernels/vector/number.h"
#include "ops/kernels/vector/vec.h"
#include "ops/vendor/opencl/opencl_attention.h"

#include <string.h>

enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, VALID_KEYS };
enum { Y, PRESENT_KEY, PRESENT_VALUE, SCORES };
/* Contents of the fourth output (qk_matmul_output_mode). */
enum { SCORES_RAW, SCORES_CAPPED, SCORES_MASKED, SCORES_SOFTMAX };
enum { MOST_TASKS = 64 };

typedef struct attention_params {
    int64_t is_causal, q_num_heads, kv_num_heads, qk_matmul_output_mode, softmax_precision;
    float scale, softcap;
} attention_params;

typedef struct attention {
    const prony_context *context;
    int64_t batch, q_heads, kv_heads, rows, keys, past, depth, width; /* B, Hq, Hk, S, T, P, D, E */
    bool packed;                                                      /* heads lie beside each other in a row */
    prony_dtype work;
    bool blocks; /* the shared core does it */
    double scale, softcap;
    int64_t mask_stride[4], mask_keys; /* keys that the mask speaks of */
    const void *k, *v;                 /* [B, Hk, T, …] of the work type, unless they are read in place */
    char *row_space;                   /* per task: scores, a row of Q, a row of Y; of the work type */
    int64_t row_elements, per_task;
} attention;

/* ---- shapes */

static prony_status standard_attention_mismatch(const prony_context *context, size_t input)
{
    char text[PRN_SHAPE_TEXT_BYTES], query[PRN_SHAPE_TEXT_BYTES];
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is %s, which does not fit the query %s", input,
                      prn_value_text(context->inputs[input], text), prn_value_text(context->inputs[Q], query));
}

static prony_status standard_attention_check(const prony_context *context)
{
    const attention_params *params = context->params;
    if (params->qk_matmul_output_mode < SCORES_RAW || params->qk_matmul_output_mode > SCORES_SOFTMAX)
        return prony_fail(context, PRONY_INVALID_MODEL, "qk_matmul_output_mode is %lld, wanted 0 to 3",
                          (long long)params->qk_matmul_output_mode);
    if (params->q_num_heads < 0 || params->kv_num_heads < 0)
        return prony_fail(context, PRONY_INVALID_MODEL, "the number of heads is negative");
    if (params->softcap >= 0.0f) return PRONY_OK;
    return prony_fail(context, PRONY_OUT_OF_RANGE, "softcap is %g", (double)params->softcap);
}

/* Heads, rows and head size of Q, K or V. */
static prony_status read_heads(const prony_context *context, size_t input, int64_t given, int64_t *heads, int64_t *rows,
                               int64_t *size)
{
    const prony_shape *shape = &context->inputs[input]->shape;
    if (shape->rank != context->inputs[Q]->shape.rank || shape->dim[0] != context->inputs[Q]->shape.dim[0])
        return standard_attention_mismatch(context, input);
    if (shape->rank == 4) {
        *heads = shape->dim[1];
        *rows = shape->dim[2];
        *size = shape->dim[3];
        return PRONY_OK;
    }
    if (given < 1 || shape->dim[2] % given != 0)
        return prony_fail(context, PRONY_INVALID_MODEL, "%lld heads do not divide the last axis of input %zu, %lld",
                          (long long)given, input, (long long)shape->dim[2]);
    *heads = given;
    *rows = shape->dim[1];
    *size = shape->dim[2] / given;
    return PRONY_OK;
}

static prony_status standard_attention_read_past(const prony_context *context, attention *at)
{
    const prony_value *key = prn_input(context, PAST_KEY), *value = prn_input(context, PAST_VALUE);
    if (!key != !value)
        return prony_fail(context, PRONY_INVALID_MODEL, "past keys and past values must be given together");
    if (!key) return PRONY_OK;
    const int64_t past = key->shape.rank == 4 ? key->shape.dim[2] : 0;
    const prony_shape keys = {4, {at->batch, at->kv_heads, past, at->depth}};
    const prony_shape values = {4, {at->batch, at->kv_heads, past, at->width}};
    if (!prn_shape_equal(&key->shape, &keys)) return standard_attention_mismatch(context, PAST_KEY);
    if (!prn_shape_equal(&value->shape, &values)) return standard_attention_mismatch(context, PAST_VALUE);
    if (past > INT64_MAX - at->keys) return standard_attention_mismatch(context, PAST_KEY);
    at->past = past;
    at->keys += past;
    return PRONY_OK;
}

/* The mask may speak of fewer keys than there are; those after them are left out. */
static prony_status standard_attention_read_mask(const prony_context *context, attention *at)
{
    const prony_value *mask = prn_input(context, MASK);
    if (!mask) return PRONY_OK;
    PRN_TRY(prn_check_rank(context, MASK, 1, 4));
    at->mask_keys = mask->shape.dim[mask->shape.rank - 1];
    if (at->mask_keys == 1 || at->mask_keys > at->keys) at->mask_keys = at->keys;
    const prony_shape scores = {4, {at->batch, at->q_heads, at->rows, at->mask_keys}};
    prony_shape both;
    if (!prn_shape_broadcast(&both, &mask->shape, &scores) || !prn_shape_equal(&both, &scores))
        return standard_attention_mismatch(context, MASK);
    prn_shape_broadcast_strides(&mask->shape, &scores, at->mask_stride);
    return PRONY_OK;
}

static prony_status standard_attention_read_node(const prony_context *context, attention *at)
{
    const attention_params *params = context->params;
    int64_t value_heads, value_rows, key_depth;
    *at = (attention){.context = context, .batch = context->inputs[Q]->shape.dim[0]};
    PRN_TRY(read_heads(context, Q, params->q_num_heads, &at->q_heads, &at->rows, &at->depth));
    PRN_TRY(read_heads(context, K, params->kv_num_heads, &at->kv_heads, &at->keys, &key_depth));
    PRN_TRY(read_heads(context, V, params->kv_num_heads, &value_heads, &value_rows, &at->width));
    if (key_depth != at->depth) return standard_attention_mismatch(context, K);
    if (value_heads != at->kv_heads || value_rows != at->keys) return standard_attention_mismatch(context, V);
    if (at->kv_heads < 1 ? at->q_heads > 0 : at->q_heads % at->kv_heads != 0)
        return standard_attention_mismatch(context, K);
    at->packed = context->inputs[Q]->shape.rank == 3;
    PRN_TRY(standard_attention_read_past(context, at));
    PRN_TRY(standard_attention_read_mask(context, at));
    const prony_value *valid = prn_input(context, VALID_KEYS);
    if (valid && (valid->shape.rank != 1 || valid->shape.dim[0] != at->batch))
        return standard_attention_mismatch(context, VALID_KEYS);
    at->scale = params->scale >= 0.0f ? (double)params->scale : at->depth ? 1.0 / sqrt((double)at->depth) : 1.0;
    at->softcap = (double)params->softcap;
    return PRONY_OK;
}

static prony_status standard_attention_check_types(const prony_context *context)
{
    PRN_TRY(prn_check_type(context, Q, PRN_TYPES_FLOAT));
    PRN_TRY(prn_check_rank(context, Q, 3, 4));
    PRN_TRY(prn_check_type(context, K, PRN_TYPE(context->inputs[Q]->dtype)));
    PRN_TRY(prn_check_type(context, V, PRN_TYPES_FLOAT));
    PRN_TRY(prn_check_type(context, MASK, PRN_TYPES_NUMBER_BOOL));
    PRN_TRY(prn_check_type(context, PAST_KEY, PRN_TYPE(context->inputs[Q]->dtype)));
    PRN_TRY(prn_check_type(context, PAST_VALUE, PRN_TYPE(context->inputs[V]->dtype)));
    return prn_check_type(context, VALID_KEYS, PRN_TYPE(PRONY_INT64));
}

static prony_status standard_attention_infer(const prony_context *context)
{
    attention at;
    PRN_TRY(standard_attention_check_types(context));
    PRN_TRY(standard_attention_read_node(context, &at));
    const prony_dtype dtype = context->inputs[Q]->dtype, value_type = context->inputs[V]->dtype;
    int64_t packed_width;
    if (__builtin_mul_overflow(at.q_heads, at.width, &packed_width))
        return prony_fail(context, PRONY_LIMIT, "the output is too large");
    const prony_shape y = at.packed ? (prony_shape){3, {at.batch, at.rows, packed_width}}
                                    : (prony_shape){4, {at.batch, at.q_heads, at.rows, at.width}};
    const prony_shape keys = {4, {at.batch, at.kv_heads, at.keys, at.depth}};
    const prony_shape values = {4, {at.batch, at.kv_heads, at.keys, at.width}};
    const prony_shape scores = {4, {at.batch, at.q_heads, at.rows, at.keys}};
    if (prony_shape_numel(&y) < 0 || prony_shape_numel(&keys) < 0 || prony_shape_numel(&values) < 0 ||
        prony_shape_numel(&scores) < 0)
        return prony_fail(context, PRONY_LIMIT, "an output is too large");
    prn_set_output(context, Y, dtype, &y);
    prn_set_output(context, PRESENT_KEY, dtype, &keys);
    prn_set_output(context, PRESENT_VALUE, value_type, &values);
    prn_set_output(context, SCORES, dtype, &scores);
    return PRONY_OK;
}

static prony_status standard_attention_cost(const prony_context *context, prony_cost *out)
{
    attention at;
    PRN_TRY(standard_attention_read_node(context, &at));
    const uint64_t rows = (uint64_t)(at.batch * at.q_heads * at.rows);
    uint64_t scores, macs;
    if (!prn_mul_u64(&scores, rows, (uint64_t)at.keys) ||
        !prn_mul_u64(&macs, scores, (uint64_t)at.depth + (uint64_t)at.width))
        return prony_fail(context, PRONY_LIMIT, "the number of MACs does not fit 64 bits");
    PRN_TRY(prn_cost_macs(context, out, macs, false));
    prn_cost_fact(out, "axis_length", at.keys);
    prn_cost_fact(out, "rows", (int64_t)rows);
    const uint64_t capped = at.softcap > 0.0, masked = prn_input(context, MASK) != NULL;
    PRN_TRY(prn_cost_elementwise(context, out, scores, 6 + masked + 3 * capped, 2 + 2 * capped));
    if (scores > 0) out->flops -= 2 * rows;
    return PRONY_OK;
}

/* ---- keys and values as [B, Hk, T, size] */

typedef struct cache_job {
    const attention *at;
    const prony_value *past, *fresh;
    char *present; /* NULL: not asked for */
    char *work;    /* NULL: not needed */
    int64_t size;
} cache_job;

static void lay_rows(void *argument, int64_t begin, int64_t end)
{
    const cache_job *job = argument;
    const attention *at = job->at;
    const prony_dtype dtype = job->fresh->dtype;
    const size_t bytes = prony_dtype_bytes(dtype, job->size), work_bytes = prony_dtype_bytes(at->work, job->size);
    const int64_t fresh = at->keys - at->past;
    for (int64_t row = begin; row < end; row++) {
        const int64_t item = row / at->keys, t = row % at->keys; /* item: batch and head */
        const int64_t b = item / at->kv_heads, h = item % at->kv_heads;
        const char *from = (const char *)job->fresh->data;
        if (t < at->past) {
            from = (const char *)job->past->data + (size_t)(item * at->past + t) * bytes;
        } else if (at->packed) {
            from += (size_t)((b * fresh + t - at->past) * at->kv_heads + h) * bytes;
        } else {
            from += (size_t)(item * fresh + t - at->past) * bytes;
        }
        if (job->present) memcpy(job->present + (size_t)row * bytes, from, bytes);
        if (job->work) prn_convert(job->work + (size_t)row * work_bytes, at->work, from, dtype, job->size);
    }
}

/* True if K or V lies as it is wanted already. */
static bool standard_attention_lies_ready(const attention *at, size_t input)
{
    return (!at->packed || at->blocks) && at->past == 0 && at->context->inputs[input]->dtype == at->work;
}

static const void *standard_attention_lay_cache(const attention *at, size_t input, size_t past, size_t output,
                                                int64_t size, char **space)
{
    const prony_context *context = at->context;
    const prony_value *present = prn_output(context, output);
    const int64_t rows = at->batch * at->kv_heads * at->keys;
    const bool ready = standard_attention_lies_ready(at, input);
    cache_job job = {.at = at,
                     .past = prn_input(context, past),
                     .fresh = context->inputs[input],
                     .present = present ? present->data : NULL,
                     .work = ready ? NULL : *space,
                     .size = size};
    const void *result = ready ? job.fresh->data : *space;
    if (!ready && rows * size > 0) *space += prony_dtype_bytes(at->work, rows * size);
    if (size > 0 && (job.work || job.present))
        prn_parallel_items(context->threads, rows, 16 * rows * size, lay_rows, &job);
    return result;
}

/* ---- rows */

/* Keys of an item that are more than padding. */
static int64_t valid_keys(const attention *at, int64_t b)
{
    const prony_value *valid = prn_input(at->context, VALID_KEYS);
    const int64_t keys = valid ? ((const int64_t *)valid->data)[b] : at->keys;
    return keys > 0 ? keys : 0;
}

/* The term added to the score of key t, for a row of the query. */
static double standard_attention_bias_of(const attention *at, int64_t b, int64_t h, int64_t s, int64_t t)
{
    const prony_value *mask = prn_input(at->context, MASK), *valid = prn_input(at->context, VALID_KEYS);
    const int64_t limit = valid_keys(at, b);
    if (t >= limit) return -INFINITY;
    if (((const attention_params *)at->context->params)->is_causal) {
        const int64_t before = prn_input(at->context, PAST_KEY) || !valid ? at->past : limit - at->rows;
        if (t > s + before) return -INFINITY;
    }
    if (!mask) return 0.0;
    if (t >= at->mask_keys) return -INFINITY;
    const int64_t *stride = at->mask_stride, place = b * stride[0] + h * stride[1] + s * stride[2] + t * stride[3];
    const double entry = prn_get_f64(mask->data, mask->dtype, place);
    if (mask->dtype == PRONY_BOOL) return entry != 0.0 ? 0.0 : -INFINITY;
    return entry;
}

static void keep_scores(const attention *at, int64_t row, const void *scores, int mode)
{
    prony_value *out = prn_output(at->context, SCORES);
    if (!out || ((const attention_params *)at->context->params)->qk_matmul_output_mode != mode) return;
    prn_convert((char *)out->data + prony_dtype_bytes(out->dtype, row * at->keys), out->dtype, scores, at->work,
                at->keys);
}

/* True if a row is left in front of key t, of which `count` elements are read. */
static inline bool standard_attention_is_left(int64_t t, int64_t count)
{
    return count > 4096 ? prn_cancelled() : prn_cancelled_at(t);
}

/* One row in float with vector kernels, or in double. A query that may attend to no key has no weights: zeros, as its
 * softmax too if that is asked for. */
#define DEFINE_ROW(name, type, DOT, TANH, SOFTMAX, ADD_SCALED)                                                         \
    static void standard_attention_row_##name(const attention *at, int64_t row, int64_t first_key, type *scores,       \
                                              const type *query, type *result)                                         \
    {                                                                                                                  \
        const int64_t s = row % at->rows, h = row / at->rows % at->q_heads, b = row / at->rows / at->q_heads;          \
        const type *k = (const type *)at->k + first_key * at->depth, *v = (const type *)at->v + first_key * at->width; \
        for (int64_t t = 0; t < at->keys && !standard_attention_is_left(t, at->depth); t++)                            \
            scores[t] = (type)(at->scale * (double)DOT(query, k + t * at->depth, at->depth));                          \
        keep_scores(at, row, scores, SCORES_RAW);                                                                      \
        for (int64_t t = 0; t < at->keys && at->softcap > 0.0 && !prn_cancelled_at(t); t++)                            \
            scores[t] = (type)at->softcap * TANH(scores[t] / (type)at->softcap);                                       \
        keep_scores(at, row, scores, SCORES_CAPPED);                                                                   \
        for (int64_t t = 0; t < at->keys && !prn_cancelled_at(t); t++)                                                 \
            scores[t] += (type)standard_attention_bias_of(at, b, h, s, t);                                             \
        keep_scores(at, row, scores, SCORES_MASKED);                                                                   \
        bool alone = true;                                                                                             \
        for (int64_t t = 0; t < at->keys && alone; t++) alone = scores[t] == -(type)INFINITY;                          \
        SOFTMAX(scores, scores, at->keys);                                                                             \
        if (alone) memset(scores, 0, (size_t)at->keys * sizeof *scores);                                               \
        keep_scores(at, row, scores, SCORES_SOFTMAX);                                                                  \
        memset(result, 0, (size_t)at->width * sizeof *result);                                                         \
        for (int64_t t = 0; t < at->keys && !alone && !standard_attention_is_left(t, at->width); t++)                  \
            ADD_SCALED(result, v + t * at->width, scores[t], at->width);                                               \
    }

static double dot_f64(const double *a, const double *b, int64_t n)
{
    double sum = 0.0;
    for (int64_t i = 0; i < n && !prn_cancelled_at(i); i++) sum += a[i] * b[i];
    return sum;
}

static void softmax_f64(double *y, const double *x, int64_t n)
{
    double highest = -INFINITY, total = 0.0;
    for (int64_t i = 0; i < n && !prn_cancelled_at(i); i++) highest = fmax(highest, x[i]);
    for (int64_t i = 0; i < n && !prn_cancelled_at(i); i++) total += y[i] = exp(x[i] - highest);
    for (int64_t i = 0; i < n && !prn_cancelled_at(i); i++) y[i] /= total;
}

static void add_scaled_f64(double *y, const double *x, double a, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] += a * x[i];
}

DEFINE_ROW(f32, float, prn_vec()->dot, tanhf, prn_vec()->softmax, prn_vec()->add_scaled)
DEFINE_ROW(f64, double, dot_f64, tanh, softmax_f64, add_scaled_f64)

/* One task: some rows of queries, each converted to the working type in the task's own space, so that tasks share
 * nothing. */
static void standard_attention_make_rows(void *argument, int64_t task)
{
    const attention *at = argument;
    const prony_value *q = at->context->inputs[Q];
    prony_value *y = at->context->outputs[Y];
    const int64_t rows = at->batch * at->q_heads * at->rows, group = at->q_heads / at->kv_heads;
    const size_t size = prony_dtype_bytes(at->work, 1);
    char *scores = at->row_space + (size_t)(task * at->row_elements) * size;
    char *query = scores + (size_t)at->keys * size, *result = query + (size_t)at->depth * size;
    for (int64_t row = task * at->per_task; row < (task + 1) * at->per_task && row < rows && !prn_cancelled(); row++) {
        const int64_t s = row % at->rows, h = row / at->rows % at->q_heads, b = row / at->rows / at->q_heads;
        const int64_t place = at->packed ? (b * at->rows + s) * at->q_heads + h : row;
        const int64_t first_key = (b * at->kv_heads + h / group) * at->keys;
        prn_convert(query, at->work, (const char *)q->data + prony_dtype_bytes(q->dtype, place * at->depth), q->dtype,
                    at->depth);
        if (at->work == PRONY_FLOAT64) {
            standard_attention_row_f64(at, row, first_key, (double *)(void *)scores, (double *)(void *)query,
                                       (double *)(void *)result);
        } else {
            standard_attention_row_f32(at, row, first_key, (float *)(void *)scores, (float *)(void *)query,
                                       (float *)(void *)result);
        }
        prn_convert((char *)y->data + prony_dtype_bytes(y->dtype, place * at->width), y->dtype, result, at->work,
                    at->width);
    }
}

/* ---- blocks of rows */

/* Keys that a row may attend to at most: from there on all are masked. */
static int64_t keys_seen(const attention *at, int64_t b, int64_t s)
{
    const prony_value *valid = prn_input(at->context, VALID_KEYS);
    const int64_t limit = valid_keys(at, b);
    int64_t seen = limit < at->keys ? limit : at->keys;
    if (((const attention_params *)at->context->params)->is_causal) {
        const int64_t before = prn_input(at->context, PAST_KEY) || !valid ? at->past : limit - at->rows;
        if (s + before + 1 < seen) seen = s + before + 1;
    }
    if (prn_input(at->context, MASK) && at->mask_keys < seen) seen = at->mask_keys;
    return seen > 0 ? seen : 0;
}

static void add_mask(const attention *at, int64_t b, int64_t h, int64_t s, int64_t seen, float *scores)
{
    const prony_value *mask = prn_input(at->context, MASK);
    const int64_t *stride = at->mask_stride;
    if (!mask) return;
    if (mask->dtype == PRONY_FLOAT32 && stride[3] == 1) {
        const float *row = (const float *)mask->data + b * stride[0] + h * stride[1] + s * stride[2];
        prn_vec()->vv[PRN_BINARY_ADD](scores, scores, row, seen);
        return;
    }
    for (int64_t t = 0; t < seen && !prn_cancelled_at(t); t++)
        scores[t] += (float)standard_attention_bias_of(at, b, h, s, t);
}

/* A query that may attend to no key has no weights: zeros. */
static void weigh_row(const void *argument, int64_t b, int64_t h, int64_t s, float *scores)
{
    const attention *at = argument;
    const int64_t row = (b * at->q_heads + h) * at->rows + s, seen = keys_seen(at, b, s);
    const float cap = (float)at->softcap;
    prn_vec()->map[PRN_MAP_AFFINE](scores, scores, at->keys, (float)at->scale, 0.0f);
    keep_scores(at, row, scores, SCORES_RAW);
    if (cap > 0.0f) {
        for (int64_t t = 0; t < at->keys; t++) scores[t] /= cap;
        prn_vec()->map[PRN_MAP_TANH](scores, scores, at->keys, 0.0f, 0.0f);
        prn_vec()->map[PRN_MAP_AFFINE](scores, scores, at->keys, cap, 0.0f);
    }
    keep_scores(at, row, scores, SCORES_CAPPED);
    add_mask(at, b, h, s, seen, scores);
    for (int64_t t = seen; t < at->keys; t++) scores[t] = -INFINITY;
    keep_scores(at, row, scores, SCORES_MASKED);
    bool alone = true;
    for (int64_t t = 0; t < at->keys && alone; t++) alone = scores[t] == -INFINITY;
    prn_vec()->softmax(scores, scores, at->keys);
    if (alone) memset(scores, 0, (size_t)at->keys * sizeof *scores);
    keep_scores(at, row, scores, SCORES_SOFTMAX);
}

/* Heads of `size` columns beside each other in a row, or one after the other. */
static prn_attend_view heads_of(const void *data, int64_t heads, int64_t rows, int64_t size, bool packed)
{
    if (packed) return (prn_attend_view){data, {heads * rows * size, size, heads * size, 1}};
    return (prn_attend_view){data, {heads * rows * size, rows * size, size, 1}};
}

static prn_attend standard_attention_attend_of(const attention *at)
{
    const prony_value *q = at->context->inputs[Q], *y = at->context->outputs[Y];
    const prn_attend_view result = heads_of(y->data, at->q_heads, at->rows, at->width, at->packed);
    return (prn_attend){
        .batch = at->batch,
        .heads = at->q_heads,
        .key_heads = at->kv_heads,
        .rows = at->rows,
        .keys = at->keys,
        .depth = at->depth,
        .width = at->width,
        .q = heads_of(q->data, at->q_heads, at->rows, at->depth, at->packed),
        .k = heads_of(at->k, at->kv_heads, at->keys, at->depth, at->packed && standard_attention_lies_ready(at, K)),
        .v = heads_of(at->v, at->kv_heads, at->keys, at->width, at->packed && standard_attention_lies_ready(at, V)),
        .y = y->data,
        .y_stride = {result.stride[0], result.stride[1], result.stride[2]},
        .weigh = weigh_row,
        .argument = at};
}

/* ---- kernels */

/* Everything about a node; *tasks: row by row. */
static prony_status read_work(const prony_context *context, attention *at, prony_dtype work, int64_t *tasks)
{
    PRN_TRY(standard_attention_read_node(context, at));
    const int64_t rows = at->batch * at->q_heads * at->rows;
    at->work = work;
    at->per_task = rows / MOST_TASKS + 1;
    /* Whole cache lines, so that tasks do not share one. */
    at->row_elements = (at->keys + at->depth + at->width + 15) / 16 * 16;
    *tasks = prn_ceil_div(rows, at->per_task);
    const bool plain = work == PRONY_FLOAT32 && context->inputs[Q]->dtype == work && context->inputs[V]->dtype == work;
    const prn_attend core = standard_attention_attend_of(at);
    at->blocks = plain && rows > 0 && prn_attend_fits(&core);
    return PRONY_OK;
}

/* Elements of working space besides K and V; false: too many to count. */
static bool own_elements(const attention *at, int64_t tasks, uint64_t *elements)
{
    if (!at->blocks) return prn_mul_u64(elements, (uint64_t)tasks, (uint64_t)at->row_elements);
    const prn_attend core = standard_attention_attend_of(at);
    int64_t floats;
    if (!prn_attend_space(&core, &floats) || floats > INT64_MAX - 15) return false;
    *elements = (uint64_t)(floats + 15) / 16 * 16;
    return true;
}

typedef struct state {
    attention at; /* without its context */
    int64_t tasks;
    uint64_t own; /* elements */
} state;

static prony_status standard_attention_prepare_as(const prony_context *context, prony_dtype work, prn_prepared *out)
{
    state made;
    PRN_TRY(read_work(context, &made.at, work, &made.tasks));
    const attention *at = &made.at;
    uint64_t elements, rows = (uint64_t)(at->batch * at->kv_heads), k, v;
    if (!own_elements(at, made.tasks, &made.own) || !prn_mul_u64(&rows, rows, (uint64_t)at->keys) ||
        !prn_mul_u64(&k, rows, standard_attention_lies_ready(at, K) ? 0 : (uint64_t)at->depth) ||
        !prn_mul_u64(&v, rows, standard_attention_lies_ready(at, V) ? 0 : (uint64_t)at->width) ||
        !prn_add_u64(&elements, made.own, k) || !prn_add_u64(&elements, elements, v) || elements > SIZE_MAX / 16)
        return prony_fail(context, PRONY_LIMIT, "the keys and values do not fit in memory");
    out->scratch_bytes = prony_dtype_bytes(work, (int64_t)elements);
    return prn_prepared_keep(context, &made, sizeof made, out);
}

static prony_status standard_attention_run(const prony_context *context)
{
    const state *made = context->state;
    attention at = made->at;
    at.context = context;
    at.row_space = context->scratch;
    char *space = at.row_space ? at.row_space + prony_dtype_bytes(at.work, (int64_t)made->own) : NULL;
    at.k = standard_attention_lay_cache(&at, K, PAST_KEY, PRESENT_KEY, at.depth, &space);
    at.v = standard_attention_lay_cache(&at, V, PAST_VALUE, PRESENT_VALUE, at.width, &space);
    if (at.blocks) {
        const prn_attend core = standard_attention_attend_of(&at);
        prn_attend_run(context->threads, &core, context->scratch);
    } else if (made->tasks > 0) {
        prn_parallel_tasks(context->threads, made->tasks, standard_attention_make_rows, &at);
    }
    return PRONY_OK;
}

static prony_status standard_attention_prepare_native(const prony_context *context, prn_prepared *out)
{
    return standard_attention_prepare_as(context, PRONY_FLOAT32, out);
}

static prony_status standard_attention_prepare_reference(const prony_context *context, prn_prepared *out)
{
    return standard_attention_prepare_as(context, PRONY_FLOAT64, out);
}

/* ---- OpenCL: without caches and scores */

#ifdef PRN_HAVE_OPENCL
static prony_status standard_attention_opencl_read(const prony_context *context, attention *at, prn_attend *core)
{
    PRN_TRY(standard_attention_read_node(context, at));
    at->work = PRONY_FLOAT32;
    at->blocks = true; /* K and V are read where they lie */
    *core = standard_attention_attend_of(at);
    core->scale = (float)at->scale;
    return PRONY_OK;
}

static bool standard_attention_opencl_supported(const prony_context *context)
{
    attention at;
    prn_attend core;
    const prony_value *mask = prn_input(context, MASK);
    for (size_t i = PAST_KEY; i <= VALID_KEYS; i++)
        if (prn_input(context, i)) return false;
    for (size_t k = PRESENT_KEY; k <= SCORES; k++)
        if (prn_output(context, k)) return false;
    return (!mask || mask->dtype == PRONY_FLOAT32 || mask->dtype == PRONY_BOOL) &&
           standard_attention_opencl_read(context, &at, &core) == PRONY_OK &&
           prn_opencl_attend_supported(context, &core);
}

static prony_status standard_attention_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    attention at;
    prn_attend core;
    const prony_value *mask = prn_input(context, MASK);
    PRN_TRY(standard_attention_opencl_read(context, &at, &core));
    prn_opencl_attend problem = {.at = &core,
                                 .mask_keys = mask ? at.mask_keys : at.keys,
                                 .causal = ((const attention_params *)context->params)->is_causal != 0,
                                 .cap = (float)at.softcap};
    if (mask) problem.mask = mask->dtype == PRONY_BOOL ? PRN_OPENCL_MASK_LEAVES : PRN_OPENCL_MASK_ADDED;
    memcpy(problem.mask_stride, at.mask_stride, sizeof problem.mask_stride);
    return prn_opencl_attend_prepare(context, &problem, out);
}
#endif

/* ---- descriptor */

static const prn_param params[] = {PRN_INT(attention_params, is_causal, 0),
                                   PRN_INT(attention_params, q_num_heads, 0),
                                   PRN_INT(attention_params, kv_num_heads, 0),
                                   PRN_INT(attention_params, qk_matmul_output_mode, SCORES_RAW),
                                   PRN_INT(attention_params, softmax_precision, 0),
                                   PRN_FLOAT(attention_params, scale, -1.0f), /* absent: 1 / sqrt(D) */
                                   PRN_FLOAT(attention_params, softcap, 0.0f),
                                   {0}};

// clang-format off
static const prn_kernel kernels[] = {
    PRN_OPENCL_ROW("attention_standard_f32_opencl", PRN_TYPE_F32, standard_attention_opencl_supported, standard_attention_opencl_prepare)
    {.name = "attention_standard_f32_native", .backend = "native",
     .types = PRN_TYPE_F32 | PRN_TYPE(PRONY_FLOAT16) | PRN_TYPE(PRONY_BFLOAT16), .prepare = standard_attention_prepare_native,
     .run = standard_attention_run, .release = prn_free},
    {.name = "attention_standard_reference", .backend = "reference", .prepare = standard_attention_prepare_reference,
     .run = standard_attention_run, .release = prn_free},
    {0}};

const prn_op prn_ops_attention_standard[] = {
    {.name = "Attention", .since_opset = 23, .inputs = {3, 7}, .outputs = {1, 4}, .non_weight_inputs = 0x78,
     .params = params, .params_bytes = sizeof(attention_params), .check = standard_attention_check,
     .infer = standard_attention_infer, .cost = standard_attention_cost, .kernels = kernels,
     .cost_text = "r rows of d scores: MACs M = r d (D + E); FLOPs 2M + r(6d-2), + r d with mask, + 3 r d with "
                  "softcap; special 2 r d, + 2 r d with softcap"},
    {0}};
// clang-format on
