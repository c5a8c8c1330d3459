/* com.microsoft GroupQueryAttention: attention of H heads of queries over Hk heads of keys and values that a cache
 * holds, with rotary position embedding of queries and new keys.
 *
 * New keys and values are laid behind the past ones in the present outputs (or in scratch, where they are not wanted or
 * of another type than is computed in), rows beyond a sequence's length are zeros. Present outputs that are bound to
 * the bytes of the past ones get the new rows only, and keep what lies beyond. The kernels compute in float32, the
 * reference in float64.
 *
 * prony GroupQueryAttention is the same with caches of a generator in fewer bits: the bytes of past keys and values are
 * blocks of attend_cache.h with room for cache_rows rows, whatever their declared type. New rows are stored behind the
 * past ones there, and the present outputs are the new rows alone. Attention reads these, before they are rounded,
 * where all sequences begin. Invariant: a row of the cache, or of queries, is laid by one task; scores are formed in an
 * order that shapes alone decide. */
#include "ops/attention/group_query.h"

#include "base/integers.h"
#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "ops/kernels/attention/attend.h"
#include "ops/device.h"
#include "ops/op.h"
#include "ops/kernels/vector/number.h"
#include "ops/kernels/copy/rotate.h"
#include "ops/kernels/vector/vec.h"
#include "ops/vendor/opencl/opencl.h"

#include <math.h>
#include <string.h>

enum { MOST_TASKS = 64, LINE_BYTES = 64 };
enum { Y, PRESENT_KEY, PRESENT_VALUE };

typedef struct gqa_job {
    prn_gqa g;
    prony_dtype work;      /* what is computed in */
    const char *q, *k, *v; /* in that type: queries as prn_gqa_rows says or [B, S, H D], keys and values [B, Hk, T,
                               D] */
    int64_t q_width;       /* of a row of queries */
    bool stored;           /* the caches are in fewer bits */
    bool blocks;           /* by ops/kernels/attention/attend.h, otherwise row by row: */
    char *row_space;
    int64_t per_task, tasks, row_bytes; /* rows of scores of a task, tasks, working space of one */
} gqa_job;

/* ---- shapes and cost */

static bool group_query_is_stored(const prony_context *context)
{
    return ((const prn_gqa_params *)context->params)->cache_type != PRN_CACHE_FLOAT32;
}

/* Conditions of prony GroupQueryAttention beyond those of com.microsoft's. Blocks never have more bytes than the
 * declared type. */
static prony_status group_query_check_stored(const prony_context *context, const prn_gqa *g)
{
    const prn_gqa_params *p = context->params;
    if (p->cache_type < PRN_CACHE_FLOAT16 || p->cache_type > PRN_CACHE_INT8)
        return prony_fail(context, PRONY_INVALID_MODEL, "cache_type must be 1 or 2");
    PRN_TRY(prn_check_type(context, PRN_GQA_QUERY, PRN_TYPE_F32));
    if (!prn_input(context, PRN_GQA_PAST_KEY) || !prn_output(context, PRESENT_KEY) ||
        !prn_output(context, PRESENT_VALUE) || g->past != p->cache_rows || (g->known && g->total > p->cache_rows))
        return prony_fail(context, PRONY_INVALID_MODEL, "a cache in fewer bits must be there, of %lld rows",
                          (long long)p->cache_rows);
    const size_t block = prn_cache_block_bytes((prn_cache_type)p->cache_type, g->past, g->depth);
    if (block <= prony_dtype_bytes(PRONY_FLOAT32, g->past * g->depth)) return PRONY_OK;
    return prony_fail(context, PRONY_UNSUPPORTED, "a cache in fewer bits wants heads of 2 elements or more");
}

static prony_status group_query_infer(const prony_context *context)
{
    prn_gqa g;
    PRN_TRY(prn_gqa_read(context, &g));
    const bool stored = group_query_is_stored(context);
    if (stored) PRN_TRY(group_query_check_stored(context, &g));
    const prony_dtype type = context->inputs[PRN_GQA_QUERY]->dtype;
    const prony_shape y = {3, {g.batch, g.rows, g.heads * g.depth}},
                      present = {4, {g.batch, g.key_heads, stored ? g.rows : g.present, g.depth}};
    const prony_shape open = prn_shape_unknown();
    if (prony_shape_numel(&present) < 0) return prony_fail(context, PRONY_OUT_OF_RANGE, "the cache is too large");
    prn_set_output(context, Y, type, g.known ? &y : &open);
    prn_set_output(context, PRESENT_KEY, type, g.known ? &present : &open);
    prn_set_output(context, PRESENT_VALUE, type, g.known ? &present : &open);
    return PRONY_OK;
}

/* Rows of a cache in fewer bits are read as stored: those of earlier tokens, at the declared length at most. */
static void group_query_count_stored(const prn_gqa *g, prony_cost *out)
{
    const uint64_t items = (uint64_t)(g->batch * g->key_heads);
    const uint64_t declared = items * (uint64_t)g->past * prn_cache_row_bytes(PRN_CACHE_FLOAT32, g->depth);
    const uint64_t held =
        items * (uint64_t)(g->total - g->rows) * prn_cache_row_bytes((prn_cache_type)g->params->cache_type, g->depth);
    out->bytes_read = out->bytes_read - 2 * declared + 2 * held;
    out->bytes_written +=
        2 * items * (uint64_t)g->rows * prn_cache_row_bytes((prn_cache_type)g->params->cache_type, g->depth);
}

static prony_status group_query_cost(const prony_context *context, prony_cost *out)
{
    prn_gqa g;
    PRN_TRY(prn_gqa_read(context, &g));
    if (group_query_is_stored(context)) group_query_count_stored(&g, out);
    const uint64_t rows = (uint64_t)(g.batch * g.heads * g.rows),
                   turned = (uint64_t)(g.batch * g.rows * (g.heads + g.key_heads) * 2 * g.half);
    uint64_t scores, macs;
    if (!prn_mul_u64(&scores, rows, (uint64_t)g.total) || !prn_mul_u64(&macs, scores, 2 * (uint64_t)g.depth))
        return prony_fail(context, PRONY_LIMIT, "the number of MACs does not fit 64 bits");
    PRN_TRY(prn_cost_macs(context, out, macs, false));
    prn_cost_fact(out, "axis_length", g.total);
    prn_cost_fact(out, "rows", (int64_t)rows);
    const uint64_t capped = g.params->softcap > 0.0f, biased = prn_input(context, PRN_GQA_BIAS) != NULL;
    PRN_TRY(prn_cost_elementwise(context, out, scores, 6 + biased + 3 * capped, 2 + 2 * capped));
    if (scores > 0) out->flops -= 2 * rows;
    return prn_cost_elementwise(context, out, turned, 3, 0);
}

/* ---- rows of queries and of the cache */

/* Turns a row of the type computed in by the angles of a position. */
static void group_query_rotate(const gqa_job *job, void *row, int64_t position)
{
    const prn_gqa *g = &job->g;
    const prony_value *cosines = g->context->inputs[PRN_GQA_COSINES], *sines = g->context->inputs[PRN_GQA_SINES];
    const prn_pairs pairs = prn_pairs_of(g->half, g->params->rotary_interleaved != 0);
    double cosine[PRN_BLOCK], sine[PRN_BLOCK]; /* floats lie in them too */
    for (int64_t at = 0, n; at < g->half && !prn_cancelled(); at += n) {
        const int64_t angle = position * g->half + at;
        n = g->half - at < PRN_BLOCK ? g->half - at : PRN_BLOCK;
        prn_convert(cosine, job->work, prn_block_at(cosines->data, cosines->dtype, angle), cosines->dtype, n);
        prn_convert(sine, job->work, prn_block_at(sines->data, sines->dtype, angle), sines->dtype, n);
        if (job->work == PRONY_FLOAT32) {
            float *y = (float *)row + at * pairs.pair_stride;
            prn_rotate_f32(y, y, (const float *)(void *)cosine, (const float *)(void *)sine, n, pairs);
        } else {
            double *y = (double *)row + at * pairs.pair_stride;
            prn_rotate_f64(y, y, cosine, sine, n, pairs);
        }
    }
}

static void group_query_load_row(const gqa_job *job, const prn_gqa_rows *rows, int64_t b, int64_t s, int64_t head,
                                 void *to)
{
    const int64_t from = (b * job->g.rows + s) * rows->width + rows->column + head * job->g.depth;
    prn_convert(to, job->work, prn_block_at(rows->value->data, rows->value->dtype, from), rows->value->dtype,
                job->g.depth);
}

static void lay_queries(void *argument, int64_t begin, int64_t end)
{
    const gqa_job *job = argument;
    const prn_gqa *g = &job->g;
    const size_t bytes = prony_dtype_bytes(job->work, g->depth);
    for (int64_t i = begin; i < end && !prn_cancelled(); i++) {
        const int64_t h = i % g->heads, s = i / g->heads % g->rows, b = i / g->heads / g->rows;
        char *to = (char *)(uintptr_t)job->q + (size_t)i * bytes;
        group_query_load_row(job, &g->q, b, s, h, to);
        if (g->half) group_query_rotate(job, to, prn_gqa_position(g, b, s));
    }
}

typedef struct cache_job {
    const gqa_job *job;
    const prn_gqa_rows *fresh;
    const prony_value *past; /* NULL: none */
    prony_value *present;    /* NULL: not wanted */
    char *work;              /* NULL: the present one serves */
    bool turned;
} cache_job;

/* Row t of a sequence and a head, counted by these, in both places. */
static void lay_cache_rows(void *argument, int64_t begin, int64_t end)
{
    const cache_job *cache = argument;
    const gqa_job *job = cache->job;
    const prn_gqa *g = &job->g;
    const prony_dtype type = cache->fresh->value->dtype;
    const size_t bytes = prony_dtype_bytes(type, g->depth), work_bytes = prony_dtype_bytes(job->work, g->depth);
    for (int64_t i = begin; i < end && !prn_cancelled(); i++) {
        const int64_t t = i % g->present, item = i / g->present, b = item / g->key_heads, past = prn_gqa_past(g, b);
        char *present = cache->present ? (char *)cache->present->data + (size_t)i * bytes : NULL;
        char *work = cache->work ? cache->work + (size_t)i * work_bytes : present;
        if (t < past) {
            const char *from = (const char *)cache->past->data + (size_t)(item * g->past + t) * bytes;
            if (present && present != from) memcpy(present, from, bytes);
            if (work != present) prn_convert(work, job->work, from, type, g->depth);
        } else if (t < past + g->rows) {
            group_query_load_row(job, cache->fresh, b, t - past, item % g->key_heads, work);
            if (cache->turned) group_query_rotate(job, work, prn_gqa_position(g, b, t - past));
            if (present && work != present) prn_convert(present, type, work, job->work, g->depth);
        } else {
            memset(work, 0, work_bytes);
            if (present) memset(present, 0, bytes);
        }
    }
}

/* The new rows alone, in a cache whose past and present rows are the same bytes. */
static void lay_new_rows(void *argument, int64_t begin, int64_t end)
{
    const cache_job *cache = argument;
    const prn_gqa *g = &cache->job->g;
    const size_t bytes = prony_dtype_bytes(cache->job->work, g->depth);
    for (int64_t i = begin; i < end && !prn_cancelled(); i++) {
        const int64_t s = i % g->rows, item = i / g->rows, b = item / g->key_heads, past = prn_gqa_past(g, b);
        char *row = (char *)cache->present->data + (size_t)(item * g->present + past + s) * bytes;
        group_query_load_row(cache->job, cache->fresh, b, s, item % g->key_heads, row);
        if (cache->turned) group_query_rotate(cache->job, row, prn_gqa_position(g, b, s));
    }
}

/* ---- caches in fewer bits */

/* The new row s of a sequence and a head, as the present output has it. */
static void lay_fresh_rows(void *argument, int64_t begin, int64_t end)
{
    const cache_job *cache = argument;
    const prn_gqa *g = &cache->job->g;
    for (int64_t i = begin; i < end && !prn_cancelled(); i++) {
        const int64_t s = i % g->rows, item = i / g->rows, b = item / g->key_heads;
        float *row = (float *)cache->present->data + i * g->depth;
        group_query_load_row(cache->job, cache->fresh, b, s, item % g->key_heads, row);
        if (cache->turned) group_query_rotate(cache->job, row, prn_gqa_position(g, b, s));
    }
}

/* The new rows of a sequence's head into its block. A run that is repeated writes the same bytes. */
static void store_fresh_rows(void *argument, int64_t begin, int64_t end)
{
    const cache_job *cache = argument;
    const prn_gqa *g = &cache->job->g;
    const prn_cache_type type = (prn_cache_type)g->params->cache_type;
    const size_t bytes = prn_cache_block_bytes(type, g->params->cache_rows, g->depth);
    for (int64_t item = begin; item < end && !prn_cancelled(); item++)
        prn_cache_store(type, (char *)cache->past->data + (size_t)item * bytes, g->params->cache_rows, g->depth,
                        prn_gqa_past(g, item / g->key_heads), g->rows,
                        (const float *)cache->present->data + item * g->rows * g->depth);
}

/* Row t of a sequence's head in `work`, in float64: of the present output where all sequences begin, else of the block.
 * A row is loaded into the second half of its place, whose first half then has no number that is still to be read. */
static void load_stored_rows(void *argument, int64_t begin, int64_t end)
{
    const cache_job *cache = argument;
    const prn_gqa *g = &cache->job->g;
    const prn_cache_type type = (prn_cache_type)g->params->cache_type;
    const size_t block = prn_cache_block_bytes(type, g->params->cache_rows, g->depth);
    for (int64_t i = begin; i < end && !prn_cancelled(); i++) {
        const int64_t t = i % g->present, item = i / g->present;
        double *to = (double *)(void *)cache->work + i * g->depth;
        float *row = (float *)(void *)to + g->depth;
        if (t >= g->total)
            memset(row, 0, (size_t)g->depth * sizeof *row);
        else if (prn_gqa_begins(g))
            memcpy(row, (const float *)cache->present->data + (item * g->rows + t) * g->depth,
                   (size_t)g->depth * sizeof *row);
        else
            prn_cache_load(type, (const char *)cache->past->data + (size_t)item * block, g->params->cache_rows,
                           g->depth, t, 1, row);
        for (int64_t d = 0; d < g->depth; d++) to[d] = (double)row[d];
    }
}

/* The operand of attention: the present output where all sequences begin, else the blocks; in `work`, unless it is
 * NULL, the same rows in float64. */
static const char *group_query_store(const gqa_job *job, const prn_gqa_rows *fresh, size_t past, size_t output,
                                     char *work)
{
    const prn_gqa *g = &job->g;
    const int64_t items = g->batch * g->key_heads, rows = items * g->rows, all = items * g->present;
    gqa_job floats = *job;
    floats.work = PRONY_FLOAT32; /* what the present output has */
    cache_job cache = {.job = &floats,
                       .fresh = fresh,
                       .past = prn_input(g->context, past),
                       .present = prn_output(g->context, output),
                       .work = work,
                       .turned = g->half > 0 && output == PRESENT_KEY};
    prn_parallel_items(g->context->threads, rows, 8 * rows * g->depth, lay_fresh_rows, &cache);
    prn_parallel_items(g->context->threads, items, 8 * rows * g->depth, store_fresh_rows, &cache);
    cache.job = job;
    if (work) prn_parallel_items(g->context->threads, all, 8 * all * g->depth, load_stored_rows, &cache);
    if (work) return work;
    return prn_gqa_begins(g) ? cache.present->data : cache.past->data;
}

/* ---- row by row */

static void group_query_row_f32(const gqa_job *job, const float *q, const float *k, const float *v, const int64_t at[3],
                                float *scores, char *y)
{
    const prn_gqa *g = &job->g;
    float *sums = scores + g->total;
    const prony_value *out = g->context->outputs[Y];
    for (int64_t t = 0; t < g->total && !prn_cancelled(); t++)
        scores[t] = (float)prn_vec()->dot(q, k + t * g->depth, g->depth);
    prn_gqa_weigh_f32(g, at[0], at[1], at[2], scores);
    memset(sums, 0, (size_t)g->depth * sizeof *sums);
    for (int64_t t = 0; t < g->total && !prn_cancelled(); t++) {
        if (scores[t] != 0.0f) prn_vec()->add_scaled(sums, v + t * g->depth, scores[t], g->depth);
    }
    prn_convert(y, out->dtype, sums, PRONY_FLOAT32, g->depth);
}

static void group_query_row_f64(const gqa_job *job, const double *q, const double *k, const double *v,
                                const int64_t at[3], double *scores, char *y)
{
    const prn_gqa *g = &job->g;
    double *sums = scores + g->total;
    const prony_value *out = g->context->outputs[Y];
    for (int64_t t = 0; t < g->total && !prn_cancelled(); t++) {
        scores[t] = 0.0;
        for (int64_t d = 0; d < g->depth; d++) scores[t] += q[d] * k[t * g->depth + d];
    }
    prn_gqa_weigh_f64(g, at[0], at[1], at[2], scores);
    for (int64_t d = 0; d < g->depth; d++) sums[d] = 0.0;
    for (int64_t t = 0; t < g->total && !prn_cancelled(); t++) {
        for (int64_t d = 0; d < g->depth; d++) sums[d] += scores[t] * v[t * g->depth + d];
    }
    prn_convert(y, out->dtype, sums, PRONY_FLOAT64, g->depth);
}

static void group_query_run_rows(void *argument, int64_t task)
{
    const gqa_job *job = argument;
    const prn_gqa *g = &job->g;
    const int64_t count = g->batch * g->rows * g->heads, begin = task * job->per_task;
    const size_t head_bytes = prony_dtype_bytes(job->work, g->present * g->depth);
    const prony_value *out = g->context->outputs[Y];
    void *space = job->row_space + task * job->row_bytes;
    for (int64_t i = begin; i < count && i < begin + job->per_task && !prn_cancelled(); i++) {
        const int64_t at[3] = {i / g->heads / g->rows, i % g->heads, i / g->heads % g->rows}; /* sequence, head, row */
        const int64_t item = at[0] * g->key_heads + at[1] / (g->heads / g->key_heads);
        const char *q =
            job->q + prony_dtype_bytes(job->work, (at[0] * g->rows + at[2]) * job->q_width + at[1] * g->depth);
        const char *k = job->k + (size_t)item * head_bytes, *v = job->v + (size_t)item * head_bytes;
        char *y = (char *)out->data + prony_dtype_bytes(out->dtype, i * g->depth);
        if (job->work == PRONY_FLOAT32)
            group_query_row_f32(job, (const void *)q, (const void *)k, (const void *)v, at, space, y);
        else
            group_query_row_f64(job, (const void *)q, (const void *)k, (const void *)v, at, space, y);
    }
}

/* ---- by blocks of rows. One row of every head that shares keys is a block like several rows of one head. */

static bool is_grouped(const prn_gqa *g)
{
    return g->rows == 1;
}

static void weigh_block(const void *argument, int64_t b, int64_t head, int64_t row, float *scores)
{
    const prn_gqa *g = argument;
    const int64_t group = g->heads / g->key_heads;
    prn_gqa_weigh_f32(g, b, is_grouped(g) ? head * group + row : head, is_grouped(g) ? 0 : row, scores);
}

/* The attention kernels' problem over `keys` keys. One row of queries makes the heads of a group its rows, since they
 * share keys and values. */
static prn_attend group_query_attend_of(const gqa_job *job, int64_t keys)
{
    const prn_gqa *g = &job->g;
    const int64_t group = g->heads / g->key_heads, out = g->heads * g->depth, width = job->q_width;
    const bool grouped = is_grouped(g);
    const int64_t head = (grouped ? group : 1) * g->depth;
    const int64_t laid = job->stored ? g->rows : g->present; /* rows of a head, where they are float32 */
    const prn_attend_view cache = {NULL, {g->key_heads * laid * g->depth, laid * g->depth, g->depth, 1}};
    prn_attend at = {.batch = g->batch,
                     .heads = grouped ? g->key_heads : g->heads,
                     .key_heads = g->key_heads,
                     .rows = grouped ? group : g->rows,
                     .keys = keys,
                     .depth = g->depth,
                     .width = g->depth,
                     .q = {(const void *)job->q, {g->rows * width, head, grouped ? g->depth : width, 1}},
                     .k = cache,
                     .v = cache,
                     .y = g->context->outputs[Y]->data,
                     .y_stride = {g->rows * out, head, grouped ? g->depth : out},
                     .weigh = weigh_block,
                     .argument = g};
    at.k.data = (const void *)job->k;
    at.v.data = (const void *)job->v;
    if (!job->stored || prn_gqa_begins(g)) return at;
    at.stored = (prn_cache_type)g->params->cache_type;
    at.cache_rows = g->params->cache_rows;
    return at;
}

/* ---- working space: queries, keys, values, and what the rows need, each from a cache line on */

typedef struct gqa_space {
    size_t q, k, v, own, end;
    bool q_laid, k_laid, v_laid; /* whether they have a place in it */
} gqa_space;

static bool group_query_reserve(gqa_space *space, size_t *at, bool wanted, prony_dtype work, int64_t rows,
                                int64_t depth)
{
    uint64_t count, bytes;
    *at = space->end;
    if (!wanted) return true;
    if (!prn_mul_u64(&count, (uint64_t)rows, (uint64_t)depth) ||
        !prn_mul_u64(&bytes, count, (uint64_t)prony_dtype_bytes(work, 1)) || bytes > SIZE_MAX / 16 ||
        space->end > SIZE_MAX / 16)
        return false;
    space->end += ((size_t)bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    return true;
}

static bool needs_cache(const gqa_job *job, size_t output)
{
    const prony_value *present = prn_output(job->g.context, output);
    return !present || present->dtype != job->work;
}

/* Reads the node, decides which operands must be copied, and reserves their places: prepare and run call it and get
 * the same offsets. */
static prony_status group_query_read_job(const prony_context *context, prony_dtype work, gqa_job *job, gqa_space *space)
{
    *job = (gqa_job){.work = work};
    *space = (gqa_space){0};
    PRN_TRY(prn_gqa_read(context, &job->g));
    const prn_gqa *g = &job->g;
    const int64_t rows = g->batch * g->rows * g->heads, cache = g->batch * g->key_heads * g->present;
    job->stored = group_query_is_stored(context);
    if (job->stored) PRN_TRY(group_query_check_stored(context, g));
    space->q_laid = g->half > 0 || g->q.value->dtype != work;
    space->k_laid = needs_cache(job, PRESENT_KEY);
    space->v_laid = needs_cache(job, PRESENT_VALUE);
    job->q_width = space->q_laid ? g->heads * g->depth : g->q.width;
    const int64_t keys = !job->stored ? g->present : prn_gqa_begins(g) ? g->rows : g->params->cache_rows;
    const prn_attend core = group_query_attend_of(job, keys);
    int64_t floats = 0;
    job->blocks = work == PRONY_FLOAT32 && context->outputs[Y]->dtype == work && prn_attend_fits(&core);
    job->per_task = rows / MOST_TASKS + 1;
    job->tasks = prn_ceil_div(rows, job->per_task);
    job->row_bytes =
        (int64_t)((prony_dtype_bytes(work, g->present + g->depth) + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES);
    if (job->blocks && !prn_attend_space(&core, &floats)) job->blocks = false;
    if (job->stored && !job->blocks && work == PRONY_FLOAT32)
        return prony_fail(context, PRONY_LIMIT, "a cache in fewer bits has at most %d rows", PRN_ATTEND_MOST_KEYS);
    if (group_query_reserve(space, &space->q, space->q_laid, work, rows, g->depth) &&
        group_query_reserve(space, &space->k, space->k_laid, work, cache, g->depth) &&
        group_query_reserve(space, &space->v, space->v_laid, work, cache, g->depth) &&
        (job->blocks ? group_query_reserve(space, &space->own, true, PRONY_FLOAT32, floats, 1)
                     : group_query_reserve(space, &space->own, true, PRONY_UINT8, job->tasks, job->row_bytes)))
        return PRONY_OK;
    return prony_fail(context, PRONY_LIMIT, "the keys and values do not fit in memory");
}

/* ---- kernels */

static const char *group_query_lay_cache(gqa_job *job, const prn_gqa_rows *fresh, size_t past, size_t output,
                                         char *work)
{
    const prn_gqa *g = &job->g;
    const int64_t rows = g->batch * g->key_heads * g->present;
    cache_job cache = {.job = job,
                       .fresh = fresh,
                       .past = prn_input(g->context, past),
                       .present = prn_output(g->context, output),
                       .work = work,
                       .turned = g->half > 0 && output == PRESENT_KEY};
    const bool in_place = cache.past && cache.present && cache.past->data == cache.present->data;
    if (cache.present && g->context->device) prn_device_cache_changed(g->context->device->device, cache.present->data);
    const int64_t fresh_rows = g->batch * g->key_heads * g->rows;
    if (in_place && !work)
        prn_parallel_items(g->context->threads, fresh_rows, 8 * fresh_rows * g->depth, lay_new_rows, &cache);
    else
        prn_parallel_items(g->context->threads, rows, 8 * rows * g->depth, lay_cache_rows, &cache);
    return work ? work : cache.present->data;
}

static prony_status group_query_prepare_as(const prony_context *context, prony_dtype work, prn_prepared *out)
{
    gqa_job job;
    gqa_space space;
    PRN_TRY(group_query_read_job(context, work, &job, &space));
    out->scratch_bytes = space.end;
    return PRONY_OK;
}

/* Lays out queries and caches where they are not ready, then attends in blocks, or row by row in the working type. */
static prony_status group_query_run_as(const prony_context *context, prony_dtype work)
{
    gqa_job job;
    gqa_space space;
    PRN_TRY(group_query_read_job(context, work, &job, &space));
    const prn_gqa *g = &job.g;
    const int64_t rows = g->batch * g->rows * g->heads;
    char *scratch = context->scratch;
    if (!g->known || space.end > context->scratch_bytes)
        return prony_fail(context, PRONY_INTERNAL, "the working space is too small");
    if (g->batch == 0 || g->rows == 0 || g->depth == 0) return PRONY_OK;
    PRN_TRY(prn_gqa_check_data(g));
    job.q = space.q_laid ? scratch + space.q : (const char *)g->q.value->data;
    if (space.q_laid) prn_parallel_items(context->threads, rows, 8 * rows * g->depth, lay_queries, &job);
    if (job.stored) {
        job.k = group_query_store(&job, &g->k, PRN_GQA_PAST_KEY, PRESENT_KEY, space.k_laid ? scratch + space.k : NULL);
        job.v =
            group_query_store(&job, &g->v, PRN_GQA_PAST_VALUE, PRESENT_VALUE, space.v_laid ? scratch + space.v : NULL);
    } else {
        job.k =
            group_query_lay_cache(&job, &g->k, PRN_GQA_PAST_KEY, PRESENT_KEY, space.k_laid ? scratch + space.k : NULL);
        job.v = group_query_lay_cache(&job, &g->v, PRN_GQA_PAST_VALUE, PRESENT_VALUE,
                                      space.v_laid ? scratch + space.v : NULL);
    }
    job.row_space = scratch ? scratch + space.own : NULL;
    if (prn_cancelled()) return PRONY_OK;
    if (job.blocks) {
        const prn_attend core = group_query_attend_of(&job, g->total);
        prn_attend_run(context->threads, &core, (float *)(void *)job.row_space);
    } else {
        prn_parallel_tasks(context->threads, job.tasks, group_query_run_rows, &job);
    }
    return PRONY_OK;
}

static prony_status group_query_prepare_native(const prony_context *context, prn_prepared *out)
{
    return group_query_prepare_as(context, PRONY_FLOAT32, out);
}

static prony_status group_query_run_native(const prony_context *context)
{
    return group_query_run_as(context, PRONY_FLOAT32);
}

static prony_status group_query_prepare_reference(const prony_context *context, prn_prepared *out)
{
    return group_query_prepare_as(context, PRONY_FLOAT64, out);
}

static prony_status group_query_run_reference(const prony_context *context)
{
    return group_query_run_as(context, PRONY_FLOAT64);
}

/* ---- row */

// clang-format off
#define GQA_PARAMS \
    PRN_INT_REQUIRED(prn_gqa_params, num_heads), \
    PRN_INT_REQUIRED(prn_gqa_params, kv_num_heads), \
    PRN_INT(prn_gqa_params, do_rotary, 0), \
    PRN_INT(prn_gqa_params, rotary_interleaved, 0), \
    PRN_INT(prn_gqa_params, local_window_size, -1), \
    PRN_INT(prn_gqa_params, smooth_softmax, 0), \
    PRN_INT(prn_gqa_params, causal, 1), \
    PRN_INT(prn_gqa_params, qk_output, 0), \
    PRN_INT(prn_gqa_params, kv_cache_bit_width, 0), \
    PRN_INT(prn_gqa_params, sliding_window_cache, 0), \
    PRN_FLOAT(prn_gqa_params, scale, 0.0f), \
    PRN_FLOAT(prn_gqa_params, softcap, 0.0f), \
    PRN_FLOAT(prn_gqa_params, qk_norm_epsilon, 1e-6f), \
    PRN_STRING(prn_gqa_params, k_quant_type, "NONE"), \
    PRN_STRING(prn_gqa_params, v_quant_type, "NONE")

static const prn_param params[] = {GQA_PARAMS, {0}},
                       stored_params[] = {GQA_PARAMS, PRN_INT_REQUIRED(prn_gqa_params, cache_rows),
                                          PRN_INT_REQUIRED(prn_gqa_params, cache_type), {0}};
// clang-format on

static const prn_kernel stored_kernels[] = {{.name = "group_query_stored",
                                             .backend = "native",
                                             .prepare = group_query_prepare_native,
                                             .run = group_query_run_native},
                                            {.name = "group_query_stored_reference",
                                             .backend = "reference",
                                             .prepare = group_query_prepare_reference,
                                             .run = group_query_run_reference},
                                            {0}};

// clang-format off
static const prn_kernel kernels[] = {
    PRN_OPENCL_ROW_RUN("group_query_f32_opencl", PRN_TYPE_F32, prn_gqa_opencl_supported, prn_gqa_opencl_prepare, prn_gqa_opencl_run,
                       .host_inputs = 1 << PRN_GQA_PAST_KEY | 1 << PRN_GQA_PAST_VALUE | 1 << PRN_GQA_LENGTHS | 1 << PRN_GQA_TOTAL | 1 << PRN_GQA_POSITIONS,
                       .host_outputs = 1 << PRESENT_KEY | 1 << PRESENT_VALUE)
    {.name = "group_query_native", .backend = "native", .prepare = group_query_prepare_native, .run = group_query_run_native},
    {.name = "group_query_reference", .backend = "reference", .prepare = group_query_prepare_reference, .run = group_query_run_reference},
    {0}};

const prn_op prn_ops_group_query[] = {
    {.name = "GroupQueryAttention", .domain = "com.microsoft", .since_opset = 1, .inputs = {1, 16}, .outputs = {1, 4},
     .flags = PRN_OP_BY_VALUE, .cache_input = PRN_GQA_PAST_KEY, .non_weight_inputs = 0x3e0, .params = params, .params_bytes = sizeof(prn_gqa_params), .check = prn_gqa_check,
     .infer = group_query_infer, .cost = group_query_cost, .kernels = kernels,
     .cost_text = "MACs M = B H S T 2D over the T keys of the longest sequence; FLOPs 2M, + 6 per score - 2 per row (softmax), + 1 with "
                  "bias, + 3 with softcap, + 3 per element turned; special 2 per score, + 2 with softcap"},
    {.name = "GroupQueryAttention", .domain = "prony", .since_opset = 1, .inputs = {1, 16}, .outputs = {1, 4},
     .flags = PRN_OP_BY_VALUE | PRN_OP_ONCE_PER_RUN, .non_weight_inputs = 0x3e0, .params = stored_params, .params_bytes = sizeof(prn_gqa_params), .check = prn_gqa_check,
     .infer = group_query_infer, .cost = group_query_cost, .kernels = stored_kernels, .cost_text = "as that of com.microsoft"},
    {0}};
// clang-format on
