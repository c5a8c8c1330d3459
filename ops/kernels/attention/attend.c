/* Attention in blocks of rows. */
#include "ops/kernels/attention/attend.h"

#include "base/integers.h"
#include "base/threads/parallel.h"
#include "ops/kernels/vector/vec.h"

#include <math.h>

/* Scores of a block of rows: what fits beside K and V in the second-level cache, and on a thread's stack. */
enum { SCORE_FLOATS = PRN_ATTEND_MOST_KEYS, MOST_ROWS = 512 };
/* Rows of K or V that are stored in fewer bits, as float32, and sums of a block of rows: in the first-level cache. */
enum { PART_FLOATS = 8192, SUM_FLOATS = 4096 };

typedef struct attend_job {
    const prn_attend *at;
    float *packed_k, *packed_v; /* per head of K and V; NULL: read where they lie */
    int64_t k_floats, v_floats;
    int64_t score_row; /* a row of scores, of whole vectors */
    int64_t block_rows, blocks;
} attend_job;

/* With no more rows than one tile has, each panel of K and V is read once. */
static bool packs(const prn_attend *at)
{
    return at->rows > prn_gemm_isa()->tile_rows && at->stored == PRN_CACHE_FLOAT32;
}

static attend_job attend_make_job(const prn_attend *at)
{
    attend_job job = {.at = at};
    const int64_t lanes = prn_gemm_isa()->panel_columns / 2;
    job.score_row = packs(at) ? prn_ceil_div(at->keys, lanes) * lanes : at->keys;
    if (job.score_row > SCORE_FLOATS) job.score_row = at->keys;
    int64_t fitting = prn_least(SCORE_FLOATS / job.score_row, MOST_ROWS);
    if (at->stored != PRN_CACHE_FLOAT32) fitting = prn_least(fitting, SUM_FLOATS / at->width);
    job.blocks = prn_ceil_div(at->rows, fitting);
    job.block_rows = job.blocks > 0 ? prn_ceil_div(at->rows, job.blocks) : 0;
    job.k_floats = prn_gemm_packed_count(at->depth, at->keys);
    job.v_floats = prn_gemm_packed_count(at->keys, at->width);
    return job;
}

static int64_t attend_first_of(const prn_attend_view *view, int64_t batch, int64_t head)
{
    return batch * view->stride[0] + head * view->stride[1];
}

/* K^T and V of a head as right-hand operands. */
static prn_gemm keys_of(const prn_attend *at, int64_t batch, int64_t head)
{
    return (prn_gemm){.n = at->keys,
                      .k = at->depth,
                      .b = at->k.data + attend_first_of(&at->k, batch, head),
                      .rs_b = at->k.stride[3],
                      .cs_b = at->k.stride[2]};
}

static prn_gemm attend_values_of(const prn_attend *at, int64_t batch, int64_t head)
{
    return (prn_gemm){.n = at->width,
                      .k = at->keys,
                      .b = at->v.data + attend_first_of(&at->v, batch, head),
                      .rs_b = at->v.stride[2],
                      .cs_b = at->v.stride[3]};
}

static void attend_pack_head(void *argument, int64_t item)
{
    const attend_job *job = argument;
    const int64_t batch = item / job->at->key_heads, head = item % job->at->key_heads;
    const prn_gemm k = keys_of(job->at, batch, head), v = attend_values_of(job->at, batch, head);
    prn_gemm_pack(1, &k, job->packed_k + item * job->k_floats);
    prn_gemm_pack(1, &v, job->packed_v + item * job->v_floats);
}

/* Scales a row and fills what is not kept. */
static void attend_choose(const prn_attend *at, float *scores, int64_t batch, int64_t head, int64_t row)
{
    const int64_t *stride = at->choice_stride;
    const uint8_t *choice = at->choice + batch * stride[0] + head * stride[1] + row * stride[2];
    if (at->scale != 1.0f) prn_vec()->map[PRN_MAP_AFFINE](scores, scores, at->keys, at->scale, 0.0f);
    if (stride[3] == 1 || at->keys == 1) {
        prn_vec()->fill_where(scores, choice, !at->kept, at->fill, at->keys);
    } else if ((choice[0] != 0) != at->kept) {
        for (int64_t t = 0; t < at->keys; t++) scores[t] = at->fill;
    }
}

/* Weights of rows from `first` on, but for a factor for each. */
static void weigh(const prn_attend *at, float *scores, int64_t score_row, int64_t batch, int64_t head, int64_t first,
                  int64_t rows, float *factors)
{
    const int64_t *stride = at->mask.stride;
    const float *mask = at->mask.data ? at->mask.data + batch * stride[0] + head * stride[1] + first * stride[2] : NULL;
    const bool one_number = mask && stride[3] != 1 && at->keys > 1; /* for all keys, and it may be -infinity */
    for (int64_t r = 0; r < rows && (at->weigh || at->choice || one_number); r++) {
        float *row = scores + r * score_row;
        if (at->weigh)
            at->weigh(at->argument, batch, head, first + r, row);
        else if (at->choice)
            attend_choose(at, row, batch, head, first + r);
        else
            prn_vec()->map[PRN_MAP_AFFINE](row, row, at->keys, at->scale, mask[r * stride[2]]);
        factors[r] = 1.0f;
    }
    if (at->weigh) return;
    const bool scaled = at->choice || one_number;
    prn_vec()->softmax_unscaled(scores, score_row, scaled ? NULL : mask, stride[2], scaled ? 1.0f : at->scale, at->keys,
                                rows, factors);
}

void prn_attend_weigh(const prn_attend *at, float *scores, int64_t batch, int64_t head, int64_t row)
{
    float factor;
    weigh(at, scores, 0, batch, head, row, 1, &factor);
    if (factor != 1.0f) prn_vec()->vs[PRN_BINARY_MUL](scores, scores, factor, at->keys);
}

/* Row r, of these weights, which are divided by their sum first: without that sums may have left the range of
 * float32. */
static void sum_again(const prn_attend *at, const prn_gemm *sums, int64_t r, float *weights, float factor)
{
    prn_gemm one = *sums;
    prn_vec()->vs[PRN_BINARY_MUL](weights, weights, factor, at->keys);
    one.m = 1;
    one.a = weights;
    one.c += r * sums->rs_c;
    prn_gemm_isa()->block(&one, 0, 1, 0, at->width);
}

/* Rows of a head in the way of a block of scores, `columns` of which are computed: with packed operands those beyond
 * the keys, too. At most MOST_ROWS of them. Each row's factor is applied to its sums, which are mostly fewer than
 * the weights. */
static void attend_rows(const prn_attend *at, const prn_gemm *left, const prn_gemm *right, int64_t batch, int64_t head,
                        int64_t first, int64_t rows, int64_t columns)
{
    const prn_gemm_isa_table *isa = prn_gemm_isa();
    const prn_vec_table *vec = prn_vec();
    prn_gemm products = *left, sums = *right;
    products.m = sums.m = rows;
    products.a = at->q.data + attend_first_of(&at->q, batch, head) + first * at->q.stride[2];
    products.rs_a = at->q.stride[2];
    products.cs_a = at->q.stride[3];
    if (rows == 1 && !products.packed && products.cs_a == 1 && products.rs_b == 1) {
        isa->dots(&products, 0, at->keys);
    } else {
        isa->block(&products, 0, rows, 0, columns);
    }
    float factors[MOST_ROWS];
    weigh(at, products.c, products.rs_c, batch, head, first, rows, factors);
    sums.a = products.c;
    sums.rs_a = products.rs_c;
    sums.cs_a = 1;
    sums.c = at->y + batch * at->y_stride[0] + head * at->y_stride[1] + first * at->y_stride[2];
    sums.rs_c = at->y_stride[2];
    isa->block(&sums, 0, rows, 0, at->width);
    for (int64_t r = 0; r < rows && !at->weigh; r++)
        if (!vec->scale_finite(sums.c + r * sums.rs_c, factors[r], at->width) && !isnan(factors[r]))
            sum_again(at, &sums, r, products.c + r * products.rs_c, factors[r]);
}

void prn_attend_rows(const prn_attend *at, int64_t batch, int64_t head, int64_t first, int64_t rows, float *scores,
                     int64_t score_row)
{
    const int64_t key_head = head / (at->heads / at->key_heads);
    prn_gemm products = keys_of(at, batch, key_head);
    const prn_gemm sums = attend_values_of(at, batch, key_head);
    products.c = scores;
    products.rs_c = score_row;
    attend_rows(at, &products, &sums, batch, head, first, rows, at->keys);
}

/* ---- keys and values in fewer bits ---- */

static const char *stored_block(const prn_attend *at, const prn_attend_view *view, int64_t size, int64_t item)
{
    return (const char *)view->data + (size_t)item * prn_cache_block_bytes(at->stored, at->cache_rows, size);
}

/* Products of rows with all keys, some keys after the other. */
static void stored_products(const prn_attend *at, const prn_gemm *left, int64_t key_item)
{
    _Alignas(64) float part[PART_FLOATS];
    const char *block = stored_block(at, &at->k, at->depth, key_item);
    const int64_t step = PART_FLOATS / at->depth;
    for (int64_t t = 0; t < at->keys; t += step) {
        prn_gemm some = *left;
        some.n = prn_least(step, at->keys - t);
        some.b = part;
        some.rs_b = 1;
        some.cs_b = at->depth;
        some.c = left->c + t;
        prn_cache_load(at->stored, block, at->cache_rows, at->depth, t, some.n, part);
        if (some.m == 1 && some.cs_a == 1)
            prn_gemm_isa()->dots(&some, 0, some.n);
        else
            prn_gemm_isa()->block(&some, 0, some.m, 0, some.n);
    }
}

/* Sums of values by the weights in sums->a: those of some values after those of others, in one order. */
static void stored_sums(const prn_attend *at, const prn_gemm *sums, int64_t key_item)
{
    _Alignas(64) float part[PART_FLOATS], more[SUM_FLOATS];
    const char *block = stored_block(at, &at->v, at->width, key_item);
    const int64_t step = PART_FLOATS / at->width;
    for (int64_t t = 0; t < at->keys; t += step) {
        prn_gemm some = *sums;
        some.k = prn_least(step, at->keys - t);
        some.a = sums->a + t;
        some.b = part;
        some.rs_b = at->width;
        some.cs_b = 1;
        if (t > 0) {
            some.c = more;
            some.rs_c = at->width;
        }
        prn_cache_load(at->stored, block, at->cache_rows, at->width, t, some.k, part);
        prn_gemm_isa()->block(&some, 0, some.m, 0, at->width);
        for (int64_t r = 0; r < some.m && t > 0; r++)
            prn_vec()->vv[PRN_BINARY_ADD](sums->c + r * sums->rs_c, sums->c + r * sums->rs_c, more + r * at->width,
                                          at->width);
    }
}

/* As attend_rows. */
static void stored_rows(const prn_attend *at, int64_t batch, int64_t head, int64_t first, int64_t rows, float *scores,
                        int64_t score_row)
{
    const int64_t key_item = batch * at->key_heads + head / (at->heads / at->key_heads);
    const prn_gemm products = {.m = rows,
                               .k = at->depth,
                               .a = at->q.data + attend_first_of(&at->q, batch, head) + first * at->q.stride[2],
                               .rs_a = at->q.stride[2],
                               .cs_a = at->q.stride[3],
                               .c = scores,
                               .rs_c = score_row};
    float factors[MOST_ROWS];
    stored_products(at, &products, key_item);
    weigh(at, scores, score_row, batch, head, first, rows, factors);
    prn_gemm sums = {.m = rows,
                     .n = at->width,
                     .a = scores,
                     .rs_a = score_row,
                     .cs_a = 1,
                     .c = at->y + batch * at->y_stride[0] + head * at->y_stride[1] + first * at->y_stride[2],
                     .rs_c = at->y_stride[2]};
    stored_sums(at, &sums, key_item);
    for (int64_t r = 0; r < rows && !at->weigh; r++) {
        if (prn_vec()->scale_finite(sums.c + r * sums.rs_c, factors[r], at->width) || isnan(factors[r])) continue;
        prn_gemm one = sums; /* as sum_again */
        prn_vec()->vs[PRN_BINARY_MUL](scores + r * score_row, scores + r * score_row, factors[r], at->keys);
        one.m = 1;
        one.a = scores + r * score_row;
        one.c += r * sums.rs_c;
        stored_sums(at, &one, key_item);
    }
}

static void attend_block(void *argument, int64_t task)
{
    _Alignas(64) float scores[SCORE_FLOATS];
    const attend_job *job = argument;
    const prn_attend *at = job->at;
    const int64_t item = task / job->blocks, batch = item / at->heads, head = item % at->heads;
    const int64_t first = task % job->blocks * job->block_rows;
    const int64_t rows = at->rows - first < job->block_rows ? at->rows - first : job->block_rows;
    const int64_t key_head = head / (at->heads / at->key_heads), key_item = batch * at->key_heads + key_head;
    if (rows <= 0) return;
    if (at->stored != PRN_CACHE_FLOAT32) {
        stored_rows(at, batch, head, first, rows, scores, job->score_row);
        return;
    }
    prn_gemm products = keys_of(at, batch, key_head), sums = attend_values_of(at, batch, key_head);
    products.packed = job->packed_k ? job->packed_k + key_item * job->k_floats : NULL;
    products.c = scores;
    products.rs_c = job->score_row;
    sums.packed = job->packed_v ? job->packed_v + key_item * job->v_floats : NULL;
    attend_rows(at, &products, &sums, batch, head, first, rows, job->score_row);
}

bool prn_attend_fits(const prn_attend *at)
{
    const bool parts = at->stored == PRN_CACHE_FLOAT32 || (at->depth <= PART_FLOATS && at->width <= SUM_FLOATS);
    return at->keys > 0 && at->keys <= PRN_ATTEND_MOST_KEYS && at->depth > 0 && at->width > 0 && parts;
}

bool prn_attend_space(const prn_attend *at, int64_t *floats)
{
    uint64_t total = 0;
    if (packs(at)) {
        const attend_job job = attend_make_job(at);
        const uint64_t items = (uint64_t)at->batch * (uint64_t)at->key_heads;
        if (!prn_mul_u64(&total, items, (uint64_t)(job.k_floats + job.v_floats)) || total > INT64_MAX) return false;
    }
    *floats = (int64_t)total;
    return true;
}

void prn_attend_run(int threads, const prn_attend *at, float *space)
{
    const int64_t key_items = at->batch * at->key_heads;
    if (key_items == 0 || at->rows == 0) return;
    attend_job job = attend_make_job(at);
    if (packs(at)) {
        job.packed_k = space;
        job.packed_v = space + key_items * job.k_floats;
        prn_parallel_tasks(threads, key_items, attend_pack_head, &job);
    }
    prn_parallel_tasks(threads, at->batch * at->heads * job.blocks, attend_block, &job);
}
