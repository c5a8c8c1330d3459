/* One run of a generator's session: binds ids, masks, positions and caches, runs, and takes logits and caches. */
#include "base/memory/alloc.h"
#include "base/memory/budget.h"
#include "base/os/clock.h"
#include "base/shape.h"
#include "engine/generate/generator.h"
#include "ops/device.h"
#include "ops/kernels/vector/number.h"

#include <string.h>

static void feed_put(void *data, prony_dtype dtype, int64_t at, int64_t value)
{
    if (dtype == PRONY_INT64)
        ((int64_t *)data)[at] = value;
    else if (dtype == PRONY_INT32)
        ((int32_t *)data)[at] = (int32_t)value;
    else
        prn_convert((char *)data + prony_dtype_bytes(dtype, at), dtype, &value, PRONY_INT64, 1);
}

static prony_status feed_bind(prony_generator *g, prn_role role, prony_shape shape, prony_error *error)
{
    const prony_value_info *input = &g->graph->inputs[g->role_of[role]];
    if (input->shape.rank == 0) shape = prn_shape_scalar();
    if (input->shape.rank == 1 && shape.rank == 2) shape = (prony_shape){1, {shape.dim[1]}}; /* of one sequence */
    prony_value value = {.dtype = input->dtype, .shape = shape, .data = g->feed[role]};
    if (prn_session_rebind(g->session, g->role_of[role], &value)) return PRONY_OK;
    return prony_session_bind_input(g->session, input->name, &value, error);
}

/* Ids, token types and positions of `columns` columns from `first` on, and the number of keys. */
static void feed_fill(prony_generator *g, int64_t first, int64_t columns)
{
    const prn_graph *graph = g->graph;
    for (int64_t b = 0; b < g->batch; b++) {
        const int64_t pads = prn_generator_pads(g, b), before = prn_generator_before(g, b, first);
        for (int64_t c = 0; c < columns; c++) {
            const int64_t at = before + c - pads, to = b * columns + c;
            const bool token = at >= 0 && at < g->lengths[b];
            if (g->role_of[PRN_ROLE_IDS] != SIZE_MAX)
                feed_put(g->feed[PRN_ROLE_IDS], graph->inputs[g->role_of[PRN_ROLE_IDS]].dtype, to,
                         token ? g->ids[b * g->max_length + at] : 0);
            if (g->role_of[PRN_ROLE_POSITIONS] != SIZE_MAX)
                feed_put(g->feed[PRN_ROLE_POSITIONS], graph->inputs[g->role_of[PRN_ROLE_POSITIONS]].dtype, to,
                         token ? at : 0);
        }
        const int64_t seen =
            g->kind == PRONY_CACHE_SHARED && before + columns > g->lengths[b] ? g->lengths[b] : before + columns;
        if (g->role_of[PRN_ROLE_LENGTHS] != SIZE_MAX)
            feed_put(g->feed[PRN_ROLE_LENGTHS], graph->inputs[g->role_of[PRN_ROLE_LENGTHS]].dtype, b, seen - 1);
        if (g->role_of[PRN_ROLE_KEYS] != SIZE_MAX)
            feed_put(g->feed[PRN_ROLE_KEYS], graph->inputs[g->role_of[PRN_ROLE_KEYS]].dtype, b, seen);
        if (g->role_of[PRN_ROLE_STARTS] != SIZE_MAX)
            feed_put(g->feed[PRN_ROLE_STARTS], graph->inputs[g->role_of[PRN_ROLE_STARTS]].dtype, b, before);
    }
}

static void feed_put_one(prony_generator *g, prn_role role, int64_t value)
{
    feed_put(g->feed[role], g->graph->inputs[g->role_of[role]].dtype, 0, value);
}

static prony_status feed_inputs(prony_generator *g, int64_t first, int64_t columns, prony_error *error)
{
    const prony_shape rows = {2, {g->batch, columns}}, one = {1, {1}}, column = {1, {columns}}, each = {1, {g->batch}};
    prony_shape shapes[PRN_ROLE_CACHE] = {
        [PRN_ROLE_IDS] = rows,    [PRN_ROLE_POSITIONS] = rows, [PRN_ROLE_TYPES] = rows, [PRN_ROLE_LENGTHS] = each,
        [PRN_ROLE_KEYS] = each,   [PRN_ROLE_STARTS] = each,    [PRN_ROLE_TOTAL] = one,  [PRN_ROLE_PAST_LENGTH] = one,
        [PRN_ROLE_ROWS] = column, [PRN_ROLE_USE_CACHE] = one};
    feed_fill(g, first, columns);
    if (g->role_of[PRN_ROLE_MASK] != SIZE_MAX)
        PRN_TRY(prn_generator_fill_mask(g, first, columns, &shapes[PRN_ROLE_MASK], error));
    for (int64_t c = 0; g->role_of[PRN_ROLE_ROWS] != SIZE_MAX && c < columns; c++)
        feed_put(g->feed[PRN_ROLE_ROWS], g->graph->inputs[g->role_of[PRN_ROLE_ROWS]].dtype, c, first + c);
    for (prn_role role = PRN_ROLE_IDS; role < PRN_ROLE_CACHE; role++) {
        if (g->role_of[role] == SIZE_MAX) continue;
        if (role == PRN_ROLE_TOTAL) feed_put_one(g, role, first + columns);
        if (role == PRN_ROLE_PAST_LENGTH) feed_put_one(g, role, first);
        if (role == PRN_ROLE_USE_CACHE) feed_put_one(g, role, first > 0);
        PRN_TRY(feed_bind(g, role, shapes[role], error));
    }
    return PRONY_OK;
}

/* ---- caches */

static int64_t feed_rows(const prony_generator *g, int64_t columns)
{
    return g->kind == PRONY_CACHE_SHARED ? g->max_length : columns;
}

/* The extent of a cache's rows behind `columns` columns; a state has none. */
static void feed_set_rows(const prony_generator *g, const prn_generator_cache *cache, int64_t columns,
                          prony_shape *shape)
{
    if (!cache->cross && cache->form != PRN_CACHE_STATE) shape->dim[cache->axis] = feed_rows(g, columns);
}

/* Moves the first `columns` rows of each block to where they lie with room for all rows, or back. */
static void feed_spread(const prony_generator *g, prn_generator_cache *cache, int64_t columns, bool spread)
{
    const size_t dense = (size_t)columns * cache->row_bytes, wide = (size_t)g->max_length * cache->row_bytes;
    char *rows = cache->rows[cache->current];
    if (spread != cache->spread) prn_device_cache_changed(g->session->device, rows);
    if (spread == cache->spread || cache->stored != PRN_CACHE_FLOAT32) return;
    for (size_t k = 1; k < cache->outer && dense; k++) {
        const size_t block = spread ? cache->outer - k : k; /* none is written before it was read */
        memmove(rows + block * (spread ? wide : dense), rows + block * (spread ? dense : wide), dense);
    }
    cache->spread = spread;
}

/* The bytes that a run writes a cache's present rows to: its own where it has no rows yet or keeps one length, else
 * other ones. A model that writes a cache of one size anew may read the past rows behind that. NULL: no memory. */
static char *feed_target(const prony_generator *g, prn_generator_cache *cache, int64_t first)
{
    if (cache->form == PRN_CACHE_ROWS && (first == 0 || g->kind == PRONY_CACHE_SHARED))
        return cache->rows[cache->current];
    char **other = &cache->rows[!cache->current];
    if (!*other) {
        prn_budget *former = prn_budget_enter(g->session->budget);
        *other = prn_alloc_aligned(64, cache->capacity_bytes);
        prn_budget_enter(former);
    }
    return *other;
}

/* Binds the present rows of a cache; `appended`: the run writes new rows behind the past ones, and nothing else. */
static prony_status feed_present(prony_generator *g, prn_generator_cache *cache, int64_t first, bool appended,
                                 prony_error *error)
{
    char *to = appended ? NULL : feed_target(g, cache, first);
    if (!to && !appended) return prn_no_memory(error);
    if (appended) {
        prn_generator_free_rows(g, cache, !cache->current);
    }
    PRN_TRY(prony_session_bind_output(g->session, cache->output, to, to ? cache->capacity_bytes : 0, error));
    g->session->outputs[cache->output].of_generator = to != NULL;
    return PRONY_OK;
}

static prony_status feed_caches(prony_generator *g, int64_t first, prony_error *error)
{
    for (size_t k = 0; k < g->cache_count; k++) {
        prn_generator_cache *cache = &g->caches[k];
        const char *name = g->graph->inputs[cache->input].name;
        prony_value value = cache->value;
        if (cache->cross && !cache->rows[cache->current]) continue; /* the caller's */
        value.data = cache->rows[cache->current];
        if (cache->form == PRN_CACHE_STATE && first == 0) memset(value.data, 0, cache->capacity_bytes);
        feed_set_rows(g, cache, first, &value.shape);
        if (!prn_session_rebind(g->session, cache->input, &value))
            PRN_TRY(prony_session_bind_input(g->session, name, &value, error));
        if (!cache->cross) PRN_TRY(feed_present(g, cache, first, cache->spread, error));
        PRN_TRY(prn_generator_announce(g, cache, error));
    }
    return PRONY_OK;
}

static const prn_model_node *feed_reader(const prn_graph *graph, const char *name)
{
    for (size_t n = 0; n < graph->node_count; n++)
        for (size_t i = 0; i < graph->nodes[n].input_count; i++)
            if (strcmp(graph->nodes[n].inputs[i], name) == 0) return &graph->nodes[n];
    return NULL;
}

prony_status prn_generator_refuse_stored(const prony_generator *generator, const prn_generator_cache *cache,
                                         const char *reason, prony_error *error)
{
    const char *name = generator->graph->inputs[cache->input].name;
    const prn_model_node *node = feed_reader(generator->graph, name);
    return prn_fail(error, PRONY_UNSUPPORTED, "%s: node '%s' (%s): its cache '%s' cannot be kept in fewer bits: %s",
                    generator->file, node ? node->name : "", node ? node->op_type : "subgraph", name, reason);
}

/* Stores the rows that the first prompt made as outputs: its run has no past rows to append to. Shared caches are
 * stored by the node itself. */
static prony_status feed_store(prony_generator *g, int64_t first, int64_t columns, prony_error *error)
{
    for (size_t k = 0; k < g->cache_count && first == 0 && g->kind == PRONY_CACHE_GROWING; k++) {
        prn_generator_cache *cache = &g->caches[k];
        const prony_value *made;
        if (cache->cross || cache->stored == PRN_CACHE_FLOAT32) continue;
        char text[2][PRN_SHAPE_TEXT_BYTES];
        prony_value wanted = cache->value;
        wanted.shape.dim[cache->axis] = columns;
        PRN_TRY(prony_session_output(g->session, cache->output, &made, error));
        if (made->dtype != wanted.dtype || !prn_shape_equal(&made->shape, &wanted.shape))
            return prn_fail(error, PRONY_SHAPE_MISMATCH, "%s: cache output '%s' is %s; wanted %s", g->file,
                            g->graph->outputs[cache->output].name, prn_value_text(made, text[0]),
                            prn_value_text(&wanted, text[1]));
        const int64_t size = cache->value.shape.dim[3];
        const size_t bytes = prn_cache_block_bytes(cache->stored, g->cache_rows, size);
        for (size_t b = 0; b < cache->outer; b++)
            prn_cache_store(cache->stored, cache->rows[cache->current] + b * bytes, g->cache_rows, size, 0, columns,
                            (const float *)made->data + b * (size_t)(columns * size));
    }
    return PRONY_OK;
}

/* Makes the plan, which may append to some caches in place, and lays each cache as it wants it. */
static prony_status feed_lay_caches(prony_generator *g, int64_t first, prony_error *error)
{
    PRN_TRY(prony_session_prepare(g->session, error));
    const prony_session *session = g->session;
    const prn_program *program = session->current == &session->open ? session->open.program : NULL;
    for (size_t k = 0; k < g->cache_count && g->kind == PRONY_CACHE_GROWING; k++) {
        prn_generator_cache *cache = &g->caches[k];
        const bool appended = program && !cache->cross && program->values[program->inputs[cache->input]]->appended;
        if (cache->stored != PRN_CACHE_FLOAT32 && !cache->cross && !appended)
            return prn_generator_refuse_stored(g, cache,
                                               "it is not attention that a new row can be appended to: Concat of keys "
                                               "(and of values) on axis 2, then MatMul, Softmax, MatMul",
                                               error);
        if (cache->spread == appended) continue;
        feed_spread(g, cache, first, appended);
        PRN_TRY(feed_present(g, cache, first, appended, error));
    }
    return PRONY_OK;
}

/* Checks the caches that a run of `columns` columns behind `first` made: all rows, or the new ones alone. */
static prony_status feed_check_caches(const prony_generator *g, int64_t first, int64_t columns, prony_error *error)
{
    char text[2][PRN_SHAPE_TEXT_BYTES];
    for (size_t k = 0; k < g->cache_count; k++) {
        const prn_generator_cache *cache = &g->caches[k];
        const prony_value *made;
        prony_value wanted = cache->value, fresh = wanted;
        if (cache->cross || cache->spread) continue;
        feed_set_rows(g, cache, first + columns, &wanted.shape);
        feed_set_rows(g, cache, columns, &fresh.shape);
        PRN_TRY(prony_session_output(g->session, cache->output, &made, error));
        if (made->dtype == wanted.dtype &&
            (prn_shape_equal(&made->shape, &wanted.shape) || prn_shape_equal(&made->shape, &fresh.shape)))
            continue;
        return prn_fail(error, PRONY_SHAPE_MISMATCH, "%s: cache output '%s' is %s; wanted %s", g->file,
                        g->graph->outputs[cache->output].name, prn_value_text(made, text[0]),
                        prn_value_text(&wanted, text[1]));
    }
    return PRONY_OK;
}

/* Keeps the keys and values of the encoder, which a merged decoder computes in its first run. */
static prony_status feed_keep_cross(prony_generator *g, prony_error *error)
{
    for (size_t k = 0; k < g->cache_count && !g->has_cross; k++) {
        prn_generator_cache *cache = &g->caches[k];
        const prony_value *made;
        if (!cache->cross || !cache->rows[cache->current]) continue;
        PRN_TRY(prony_session_output(g->session, cache->output, &made, error));
        const size_t bytes = prn_value_bytes(made);
        char *rows = prn_alloc_aligned(64, bytes ? bytes : 1);
        if (!rows) return prn_no_memory(error);
        if (bytes) memcpy(rows, made->data, bytes);
        const prony_status unbound =
            prn_session_unbind_input(g->session, cache->input, cache->rows[cache->current], error);
        if (unbound != PRONY_OK) {
            prn_free_aligned(rows);
            return unbound;
        }
        prn_generator_free_rows(g, cache, cache->current);
        cache->rows[cache->current] = rows;
        cache->value.shape = made->shape;
        cache->capacity_bytes = bytes;
    }
    g->has_cross = true;
    return PRONY_OK;
}

void prn_generator_shorten(prony_generator *generator, int64_t columns)
{
    for (size_t k = 0; k < generator->cache_count; k++)
        if (!generator->caches[k].spread && generator->kind == PRONY_CACHE_GROWING)
            prn_device_cache_changed(generator->session->device,
                                     generator->caches[k].rows[generator->caches[k].current]);
    for (size_t k = 0; k < generator->cache_count && generator->kind == PRONY_CACHE_GROWING; k++) {
        prn_generator_cache *cache = &generator->caches[k];
        if (cache->cross || cache->spread || cache->form != PRN_CACHE_ROWS) continue;
        const size_t from = (size_t)generator->computed * cache->row_bytes, to = (size_t)columns * cache->row_bytes;
        char *rows = cache->rows[cache->current];
        for (size_t block = 1; block < cache->outer && to; block++) memmove(rows + block * to, rows + block * from, to);
    }
    bool keeps = true;
    for (size_t k = 0; k < generator->cache_count; k++) keeps = keeps && generator->caches[k].form != PRN_CACHE_STATE;
    generator->computed = keeps ? columns : 0; /* the state behind a token is gone once the next one is computed */
}

/* ---- logits */

static prony_status feed_reserve_scores(prony_generator *g, size_t count, prony_error *error)
{
    if (g->score_count == count && g->scores) return PRONY_OK;
    prn_free(g->scores);
    prn_free(g->penalised);
    prn_free(g->marks);
    prn_free(g->candidates);
    g->score_count = count;
    g->scores = prn_calloc((size_t)g->batch * count + 1, sizeof *g->scores);
    g->penalised = prn_calloc(count + 1, sizeof *g->penalised);
    g->marks = prn_calloc(count + 1, 1);
    g->candidates = prn_calloc(count + 1, sizeof *g->candidates);
    if (g->scores && g->penalised && g->marks && g->candidates) return PRONY_OK;
    prn_free(g->scores);
    g->scores = NULL;
    return prn_no_memory(error);
}

/* The rows of logits of each sequence: [batch, columns, V], also as [batch columns, V]; one in [batch, 1, V] and
 * [batch, V], or [V] of one sequence. 0: another shape. */
static int64_t feed_score_rows(const prony_generator *g, const prony_value *made, int64_t columns)
{
    const prony_shape *shape = &made->shape;
    if (!prn_dtype_is_float(made->dtype) || shape->rank < 1 || shape->dim[shape->rank - 1] < 1) return 0;
    if (shape->rank == 1) return g->batch == 1;
    if (shape->rank == 2) return shape->dim[0] == g->batch ? 1 : shape->dim[0] == g->batch * columns ? columns : 0;
    const bool known = shape->rank == 3 && shape->dim[0] == g->batch;
    return known && (shape->dim[1] == columns || shape->dim[1] == 1) ? shape->dim[1] : 0;
}

/* Logits of each sequence's last column of this run. */
static prony_status feed_take_scores(prony_generator *g, int64_t columns, prony_error *error)
{
    char text[PRN_SHAPE_TEXT_BYTES];
    const prony_value *made;
    PRN_TRY(prony_session_output(g->session, g->logits, &made, error));
    const prony_shape *shape = &made->shape;
    const int64_t rows = feed_score_rows(g, made, columns);
    if (!rows || (rows == 1 && g->columns > 1))
        return prn_fail(
            error, PRONY_SHAPE_MISMATCH, "%s: output '%s' is %s; wanted logits float[%lld, %lld, vocabulary]", g->file,
            g->graph->outputs[g->logits].name, prn_value_text(made, text), (long long)g->batch, (long long)columns);
    const int64_t count = shape->dim[shape->rank - 1];
    PRN_TRY(feed_reserve_scores(g, (size_t)count, error));
    for (int64_t b = 0; b < g->batch; b++) {
        int64_t row = g->columns > 1 ? g->length - 1 : rows - 1;
        if (g->kind == PRONY_CACHE_SHARED && rows > 1) row -= g->computed == 0 ? g->length - g->lengths[b] : 0;
        prn_convert(g->scores + b * count, PRONY_FLOAT32,
                    prn_block_at(made->data, made->dtype, (b * rows + row) * count), made->dtype, count);
    }
    return PRONY_OK;
}

/* ---- dimensions that grow */

/* One plan serves every step of one token, and one every chunk of a prompt: the cache (or the sequence) grows,
 * everything else is fixed. */
static prony_status feed_grow(prony_generator *g, prn_growth growth, int64_t columns, prony_error *error)
{
    enum { MOST_AXES = 2 * (PRN_ROLE_TYPES - PRN_ROLE_IDS + 1) }; /* of ids, masks, positions and types */
    const prony_value_info *inputs = g->graph->inputs;
    prn_open_dim *dims = prn_calloc(g->cache_count + MOST_AXES, sizeof *dims);
    if (!dims) return prn_no_memory(error);
    size_t count = 0;
    const int64_t more = g->kind == PRONY_CACHE_NONE ? 0 : columns;
    for (prn_role role = PRN_ROLE_IDS; role <= PRN_ROLE_TYPES; role++) {
        const size_t input = g->role_of[role];
        const bool grows = role == PRN_ROLE_MASK || g->kind == PRONY_CACHE_NONE;
        const int last = input == SIZE_MAX ? -1 : inputs[input].shape.rank - 1;
        if (!grows || last < 0 || inputs[input].shape.dim[last] >= 0) continue;
        dims[count++] = (prn_open_dim){.input = input, .axis = last, .offset = role == PRN_ROLE_MASK ? more : 0};
        if (last > 1 && g->kind == PRONY_CACHE_NONE) /* every row is computed again, and its mask too */
            dims[count++] = (prn_open_dim){.input = input, .axis = last - 1};
    }
    for (size_t k = 0; k < g->cache_count && g->kind == PRONY_CACHE_GROWING; k++)
        if (!g->caches[k].cross && g->caches[k].form == PRN_CACHE_ROWS)
            dims[count++] = (prn_open_dim){.input = g->caches[k].input,
                                           .axis = g->caches[k].axis,
                                           .rows = g->cache_rows,
                                           .stored = (int)g->caches[k].stored};
    prony_status status = prn_session_lock(g->session, error);
    if (status == PRONY_OK)
        status = prn_session_unlock(g->session,
                                    prn_session_grow(g->session, growth, dims, count, g->cache_rows - more, error));
    prn_free(dims);
    g->growing[growth] = status == PRONY_OK;
    return status;
}

/* Appends the new rows that a run made to the earlier ones, block by block from the last on: each moves behind its
 * end. */
static void feed_append(prn_device *device, prn_generator_cache *cache, const char *made, int64_t first,
                        int64_t columns)
{
    const size_t before = (size_t)first * cache->row_bytes, more = (size_t)columns * cache->row_bytes;
    char *rows = cache->rows[cache->current];
    prn_device_cache_changed(device, rows);
    for (size_t block = cache->outer; block-- > 0;) {
        memmove(rows + block * (before + more), rows + block * before, before);
        memcpy(rows + block * (before + more) + before, made + block * more, more);
    }
}

/* After a run: the two buffers of each rewritten cache swap, and copied rows of earlier columns are counted. */
static void feed_turn_caches(prony_generator *g, int64_t first, int64_t columns)
{
    const prn_plan *plan = g->session->current->plan;
    g->copied_bytes = 0;
    for (size_t k = 0; k < g->cache_count; k++) {
        prn_generator_cache *cache = &g->caches[k];
        if (cache->cross || cache->spread) continue;
        const prony_value *made = &plan->values[plan->outputs[cache->output]]->value;
        const bool updated = made->data == cache->rows[cache->current];
        if (cache->form != PRN_CACHE_ROWS) {
            g->copied_bytes += cache->outer * cache->row_bytes * (uint64_t)first;
            cache->current = !cache->current;
            continue;
        }
        if (g->kind == PRONY_CACHE_SHARED && updated) continue;
        g->copied_bytes += cache->outer * cache->row_bytes * (uint64_t)feed_rows(g, first);
        if (g->kind != PRONY_CACHE_GROWING || first == 0) continue;
        if (made->shape.dim[cache->axis] == columns)
            feed_append(g->session->device, cache, made->data, first, columns);
        else
            cache->current = !cache->current;
    }
}

/* true: the last column is the last token of every sequence. */
static bool feed_ends_together(const prony_generator *g)
{
    for (int64_t b = 0; b < g->batch && g->kind == PRONY_CACHE_SHARED && g->computed == 0; b++)
        if (g->lengths[b] != g->length) return false;
    return true;
}

/* The plan for all extents that serves a run of `columns` columns. */
static prn_growth feed_growth(const prony_generator *g, int64_t columns)
{
    if (g->computed == 0) return PRN_GROWTH_NONE;
    if (g->kind == PRONY_CACHE_NONE || columns == 1) return PRN_GROWTH_STEP;
    return columns == g->chunk ? PRN_GROWTH_CHUNK : PRN_GROWTH_NONE;
}

/* The graph that serves a run of `columns` columns. */
static const prn_graph *feed_graph(const prony_generator *g, int64_t first, int64_t columns)
{
    const prony_session *session = g->session;
    if (session->merged[0] && g->role_of[PRN_ROLE_USE_CACHE] != SIZE_MAX) return session->merged[first > 0];
    if (g->last_rows && feed_ends_together(g) && columns > 1 && g->columns <= 1) return g->last_rows;
    return g->stored ? g->stored : g->graph;
}

static prony_status feed_run(prony_generator *g, int64_t columns, prony_error *error)
{
    const bool whole = g->kind == PRONY_CACHE_NONE;
    const prn_growth growth = feed_growth(g, columns);
    const int64_t first = whole ? 0 : g->computed, all = whole && g->columns ? g->columns : g->computed + columns,
                  count = whole ? all : columns;
    if (growth != PRN_GROWTH_NONE && !g->growing[growth]) PRN_TRY(feed_grow(g, growth, columns, error));
    if (growth == PRN_GROWTH_NONE) prn_generator_caches_changed(g); /* such runs write present rows as a whole */
    prn_session_set_growth(g->session, growth);
    g->session->graph = feed_graph(g, first, count);
    for (size_t k = 0; k < g->cache_count && growth == PRN_GROWTH_NONE; k++)
        feed_spread(g, &g->caches[k], first, false);
    PRN_TRY(feed_inputs(g, first, count, error));
    PRN_TRY(feed_caches(g, first, error));
    if (growth != PRN_GROWTH_NONE) PRN_TRY(feed_lay_caches(g, first, error));
    const int64_t start = prn_now_ns();
    PRN_TRY(prony_session_run(g->session, error));
    g->last_run_ns = prn_now_ns() - start;
    PRN_TRY(feed_check_caches(g, first, count, error));
    PRN_TRY(feed_store(g, first, count, error));
    PRN_TRY(feed_take_scores(g, count, error));
    PRN_TRY(feed_keep_cross(g, error));
    feed_turn_caches(g, first, count);
    g->computed += columns;
    g->has_scores = true;
    return PRONY_OK;
}

/* Takes the session from another generator, whose dimensions grow there. */
static void feed_take_session(prony_generator *g)
{
    if (g->session->generator == g) return;
    prn_session_leave_generator(g->session);
    g->session->generator = g;
    g->growing[PRN_GROWTH_STEP] = g->growing[PRN_GROWTH_CHUNK] = false;
}

/* Runs of the session between those of the generator are the caller's: they see the model's graph, and leave the
 * generator (prn_session_leave_generator). */
prony_status prn_generator_run(prony_generator *generator, int64_t columns, prony_error *error)
{
    prn_spare_blocks *former = prn_spare_blocks_enter(&generator->spare);
    feed_take_session(generator);
    generator->session->generator_runs = true;
    const prony_status status = feed_run(generator, columns, error);
    generator->session->generator_runs = false;
    (void)prn_spare_blocks_enter(former);
    generator->bound = generator->session->graph;
    generator->session->graph = generator->graph;
    return status;
}

/* true: one run may compute a part of the waiting columns. With a shared cache, shorter sequences have pads on the
 * right of the first prompt, which no run but the first may see. Merged decoders take one token in their later
 * branch. */
static bool feed_may_cut(const prony_generator *g)
{
    return g->chunk > 0 && g->kind != PRONY_CACHE_NONE && g->role_of[PRN_ROLE_USE_CACHE] == SIZE_MAX &&
           feed_ends_together(g);
}

/* Columns of the next run. Growing caches in fewer bits are read by plans that append to them: these take chunks, or
 * one column. */
static int64_t feed_columns(const prony_generator *g)
{
    const int64_t waiting = g->length - g->computed;
    if (g->cache_type != PRN_CACHE_FLOAT32 && g->kind == PRONY_CACHE_GROWING && g->computed > 0)
        return g->chunk > 0 && waiting >= g->chunk && feed_may_cut(g) ? g->chunk : 1;
    const int64_t chunk = feed_may_cut(g) ? g->chunk : waiting;
    return waiting % chunk ? waiting % chunk : chunk;
}

/* The first run takes what is left beside whole chunks, so that all others have one plan. If a later run fails, the
 * logits of the token before the first one are gone: that token waits once more. */
prony_status prn_generator_run_all(prony_generator *generator, prony_error *error)
{
    prony_generator *g = generator;
    const int64_t before = g->computed;
    int64_t total = 0;
    while (g->computed < g->length) {
        const prony_status status = prn_generator_run(g, feed_columns(g), error);
        if (status != PRONY_OK) {
            if (g->computed == before) return status;
            prn_generator_shorten(g, before > 0 ? before - 1 : 0);
            g->has_scores = false;
            return status;
        }
        total += g->last_run_ns;
    }
    g->last_run_ns = total;
    return PRONY_OK;
}
