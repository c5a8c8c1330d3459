/* TfIdfVectorizer: counts how often the n-grams of a pool occur in each row of the input, gaps of equal length allowed.
 *
 *   row  a b c d     2-grams without gaps: ab bc cd     with one element left out: ac bd
 *
 * The pool lists all 1-grams, then all 2-grams and so on. It is sorted once per length when the plan is made, as
 * positions in the pool; a window of the row is then found by bisection. */
#define _GNU_SOURCE
#include "ops/op.h"

#include "base/memory/alloc.h"
#include "base/threads/cancel.h"
#include "ops/kernels/vector/number.h"

#include <stdlib.h>
#include <string.h>

typedef struct tfidf_params {
    const char *mode;
    int64_t min_gram_length, max_gram_length, max_skip_count;
    prn_ints ngram_counts, ngram_indexes, pool_int64s;
    prn_floats weights;
} tfidf_params;

// clang-format off
static const prn_param tfidf_attributes[] = {
    PRN_STRING(tfidf_params, mode, "TF"), PRN_INT_REQUIRED(tfidf_params, min_gram_length),
    PRN_INT_REQUIRED(tfidf_params, max_gram_length), PRN_INT_REQUIRED(tfidf_params, max_skip_count),
    PRN_INTS_REQUIRED(tfidf_params, ngram_counts), PRN_INTS_REQUIRED(tfidf_params, ngram_indexes),
    PRN_INTS(tfidf_params, pool_int64s), PRN_FLOATS(tfidf_params, weights), {0}};
// clang-format on

typedef struct gram {
    size_t first; /* of its items in the pool */
    size_t id;    /* its place among all n-grams */
} gram;

/* Those of one length are grams[begin[n - 1] .. begin[n]), sorted. */
typedef struct pool {
    const prony_string *strings; /* or */
    const int64_t *ints;
    size_t count; /* items */
    gram *grams;
    size_t gram_count;
    size_t *begin;
} pool;

static prony_status tfidf_read_pool(const prony_context *context, pool *out)
{
    const tfidf_params *params = context->params;
    const prn_attr *attr = prn_attr_find(context->node->attributes, "pool_strings");
    *out = (pool){.ints = params->pool_int64s.v, .count = params->pool_int64s.count};
    if (attr && attr->count > 0) {
        if (attr->type != PRN_ATTR_STRINGS || out->count > 0) {
            return prony_fail(context, PRONY_INVALID_MODEL,
                              "needs either pool_strings, a list of strings, or pool_int64s");
        }
        *out = (pool){.strings = attr->strings, .count = attr->count};
    }
    return PRONY_OK;
}

/* Items of n-grams of length n, which the list of first positions bounds. */
static prony_status gram_range(const prony_context *context, const pool *p, size_t n, size_t *first, size_t *last)
{
    const prn_ints *counts = &((const tfidf_params *)context->params)->ngram_counts;
    int64_t begin = counts->v[n - 1], end = n < counts->count ? counts->v[n] : (int64_t)p->count;
    if (begin < 0 || end < begin || (uint64_t)end > p->count || (uint64_t)(end - begin) % n != 0) {
        return prony_fail(context, PRONY_OUT_OF_RANGE, "ngram_counts puts the %zu-grams at %lld to %lld of %zu items",
                          n, (long long)begin, (long long)end, p->count);
    }
    *first = (size_t)begin;
    *last = (size_t)end;
    return PRONY_OK;
}

/* The pool, its n-gram lengths, indexes and weights agree in number; indexes are not negative. */
static prony_status tfidf_check(const prony_context *context)
{
    static const char *const modes[] = {"TF", "IDF", "TFIDF"};
    const tfidf_params *params = context->params;
    size_t grams = 0, first = 0, last = 0;
    bool known = false;
    pool p;
    PRN_TRY(tfidf_read_pool(context, &p));
    for (int k = 0; k < 3; k++) known |= strcmp(params->mode, modes[k]) == 0;
    if (!known) return prony_fail(context, PRONY_INVALID_MODEL, "mode is '%s'", params->mode);
    if (params->min_gram_length < 1 || params->max_gram_length < params->min_gram_length ||
        params->max_skip_count < 0 || (uint64_t)params->max_gram_length > params->ngram_counts.count) {
        return prony_fail(context, PRONY_OUT_OF_RANGE, "n-grams of %lld to %lld with %lld skipped, of %zu lengths",
                          (long long)params->min_gram_length, (long long)params->max_gram_length,
                          (long long)params->max_skip_count, params->ngram_counts.count);
    }
    for (size_t n = 1; n <= params->ngram_counts.count; n++) {
        PRN_TRY(gram_range(context, &p, n, &first, &last));
        grams += (last - first) / n;
    }
    if (grams != params->ngram_indexes.count || (params->weights.present && params->weights.count != grams)) {
        return prony_fail(context, PRONY_OUT_OF_RANGE, "the pool has %zu n-grams, but %zu indexes and %zu weights",
                          grams, params->ngram_indexes.count, params->weights.count);
    }
    for (size_t k = 0; k < grams; k++) {
        int64_t index = params->ngram_indexes.v[k];
        if (index < 0 || index >= INT32_MAX) {
            return prony_fail(context, PRONY_OUT_OF_RANGE, "ngram_indexes[%zu] is %lld", k, (long long)index);
        }
    }
    return PRONY_OK;
}

static int64_t column_count(const tfidf_params *params)
{
    int64_t most = -1;
    for (size_t k = 0; k < params->ngram_indexes.count; k++)
        if (params->ngram_indexes.v[k] > most) most = params->ngram_indexes.v[k];
    return most + 1;
}

static prony_status tfidf_infer(const prony_context *context)
{
    const prony_value *in = context->inputs[0];
    pool p;
    PRN_TRY(tfidf_read_pool(context, &p));
    PRN_TRY(
        prn_check_type(context, 0, p.strings ? PRN_TYPE(PRONY_STRING) : PRN_TYPE(PRONY_INT32) | PRN_TYPE(PRONY_INT64)));
    PRN_TRY(prn_check_rank(context, 0, 1, 2));
    prony_shape shape = in->shape;
    shape.dim[shape.rank - 1] = column_count(context->params);
    prn_set_output(context, 0, PRONY_FLOAT32, &shape);
    return PRONY_OK;
}

/* ---- the pool, sorted ---- */

static int tfidf_compare_strings(prony_string a, prony_string b)
{
    size_t size = a.size < b.size ? a.size : b.size;
    int order = size ? memcmp(a.data, b.data, size) : 0;
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

static int compare_items(const pool *p, size_t at, const void *data, prony_dtype dtype, int64_t i)
{
    if (p->strings) return tfidf_compare_strings(p->strings[at], ((const prony_string *)data)[i]);
    int64_t x = p->ints[at], y = prn_get_i64(data, dtype, i);
    return (x > y) - (x < y);
}

typedef struct order {
    const pool *pool;
    size_t length;
} order;

static int compare_grams(const void *a, const void *b, void *argument)
{
    const order *o = argument;
    const gram *x = a, *y = b;
    for (size_t i = 0; i < o->length; i++) {
        const pool *p = o->pool;
        int result = p->strings ? tfidf_compare_strings(p->strings[x->first + i], p->strings[y->first + i])
                                : (p->ints[x->first + i] > p->ints[y->first + i]) -
                                      (p->ints[x->first + i] < p->ints[y->first + i]);
        if (result) return result;
    }
    return (x->id > y->id) - (x->id < y->id);
}

static void pool_release(void *state)
{
    pool *p = state;
    if (!p) return;
    prn_free(p->grams);
    prn_free(p->begin);
    prn_free(p);
}

static prony_status fill_pool(const prony_context *context, pool *p)
{
    const tfidf_params *params = context->params;
    size_t lengths = params->ngram_counts.count;
    PRN_TRY(tfidf_read_pool(context, p));
    p->grams = prn_calloc(params->ngram_indexes.count + 1, sizeof *p->grams);
    p->begin = prn_calloc(lengths + 1, sizeof *p->begin);
    if (!p->grams || !p->begin) return prn_no_memory(context->error);
    for (size_t n = 1; n <= lengths; n++) {
        size_t first = 0, last = 0;
        PRN_TRY(gram_range(context, p, n, &first, &last));
        for (; first < last; first += n, p->gram_count++) p->grams[p->gram_count] = (gram){first, p->gram_count};
        p->begin[n] = p->gram_count;
        order o = {p, n};
        size_t count = p->begin[n] - p->begin[n - 1];
        if (count) qsort_r(p->grams + p->begin[n - 1], count, sizeof *p->grams, compare_grams, &o);
    }
    return PRONY_OK;
}

static prony_status tfidf_prepare(const prony_context *context, prn_prepared *out)
{
    pool *p = prn_calloc(1, sizeof *p);
    if (!p) return prn_no_memory(context->error);
    prony_status status = fill_pool(context, p);
    if (status != PRONY_OK) pool_release(p);
    out->state = status == PRONY_OK ? p : NULL;
    return status;
}

/* ---- run ---- */

/* The n-gram of items i, i + step, …; NULL if the pool has none such. */
static const gram *find_gram(const pool *p, const prony_value *in, size_t length, int64_t i, int64_t step)
{
    size_t low = p->begin[length - 1], high = p->begin[length];
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = 0;
        for (size_t k = 0; k < length && order == 0; k++)
            order = compare_items(p, p->grams[middle].first + k, in->data, in->dtype, i + (int64_t)k * step);
        if (order == 0) return &p->grams[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static void count_row(const tfidf_params *params, const pool *p, const prony_value *in, int64_t begin, int64_t length,
                      float *row)
{
    for (int64_t n = params->min_gram_length; n <= params->max_gram_length; n++) {
        /* One item leaves no gap to widen. */
        const int64_t room = n == 1 ? 1 : (length - 1) / (n - 1), skips = n == 1 ? 0 : params->max_skip_count;
        const int64_t widest = skips < room ? skips + 1 : room;
        for (int64_t step = 1; step <= widest; step++) {
            if (prn_cancelled()) return;
            for (int64_t i = 0; i + (n - 1) * step < length && !prn_cancelled_at(i); i++) {
                const gram *found = find_gram(p, in, (size_t)n, begin + i, step);
                if (found) row[params->ngram_indexes.v[found->id]] += 1.0f;
            }
        }
    }
}

static prony_status tfidf_run(const prony_context *context)
{
    const tfidf_params *params = context->params;
    const prony_value *in = context->inputs[0];
    const prony_value *out = context->outputs[0];
    int64_t columns = column_count(params), rows = in->shape.rank == 2 ? in->shape.dim[0] : 1;
    int64_t length = in->shape.dim[in->shape.rank - 1];
    bool once = strcmp(params->mode, "IDF") == 0, weighted = params->mode[0] != 'T' || params->mode[2] != '\0';
    if (columns == 0) return PRONY_OK;
    prn_cancellable_clear(out->data, prn_value_bytes(out));
    for (int64_t r = 0; r < rows && !prn_cancelled(); r++) {
        float *row = (float *)out->data + r * columns;
        count_row(params, context->state, in, r * length, length, row);
        for (int64_t c = 0; c < columns && weighted; c++) {
            float weight = params->weights.present && (uint64_t)c < params->weights.count ? params->weights.v[c] : 1.0f;
            if (row[c] > 0) row[c] = once ? weight : row[c] * weight;
        }
    }
    return PRONY_OK;
}

/* Counting does not count as arithmetic on data; a weighted count is one product. */
static prony_status tfidf_cost(const prony_context *context, prony_cost *cost)
{
    const tfidf_params *params = context->params;
    if (strcmp(params->mode, "TFIDF") != 0) return PRONY_OK;
    return prn_cost_elementwise(context, cost, (uint64_t)prony_shape_numel(&context->outputs[0]->shape), 1, 0);
}

static const prn_kernel tfidf_kernels[] = {{.name = "tfidf_reference",
                                            .backend = "reference",
                                            .prepare = tfidf_prepare,
                                            .run = tfidf_run,
                                            .release = pool_release},
                                           {0}};

// clang-format off
const prn_op prn_ops_tfidf[] = {
    {.name = "TfIdfVectorizer", .since_opset = 9, .inputs = {1, 1},
     .params = tfidf_attributes, .params_bytes = sizeof(tfidf_params), .check = tfidf_check,
     .infer = tfidf_infer, .cost = tfidf_cost, .cost_text = "0; mode TFIDF: n", .kernels = tfidf_kernels},
    {0}};
// clang-format on
