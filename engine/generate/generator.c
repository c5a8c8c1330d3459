/* prony_generator_*: creation, prompts, the next id, rewinding. */
#include "engine/generate/generator.h"

#include "base/memory/alloc.h"
#include "base/memory/budget.h"
#include "base/option_struct.h"
#include "base/shape.h"

#include <math.h>
#include <string.h>

/* ---- creation ---- */

static prony_status generator_check_sampling(const prony_sampling *s, prony_error *error)
{
    if (!(s->temperature >= 0) || isinf(s->temperature))
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "sampling: temperature %g: wanted 0 (greedy) or more",
                        s->temperature);
    if (s->top_k < 0)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "sampling: top_k %lld: wanted 0 (all) or more",
                        (long long)s->top_k);
    if (!(s->top_p >= 0 && s->top_p <= 1))
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "sampling: top_p %g: wanted 0 to 1", s->top_p);
    if (!(s->min_p >= 0 && s->min_p <= 1))
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "sampling: min_p %g: wanted 0 to 1", s->min_p);
    if (!(s->repetition_penalty >= 0) || isinf(s->repetition_penalty))
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "sampling: repetition_penalty %g: wanted 0 (none) or more",
                        s->repetition_penalty);
    return PRONY_OK;
}

static prony_status generator_take_options(prony_generator *g, const prony_generator_options *options,
                                           prony_error *error)
{
    PRN_TRY(generator_check_sampling(&options->sampling, error));
    if (options->batch < 0)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "generator options: batch %lld: wanted 1 or more",
                        (long long)options->batch);
    if (options->max_length < 0)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "generator options: max_length %lld: wanted 2 or more",
                        (long long)options->max_length);
    if (options->chunk < 0)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "generator options: chunk %lld: wanted 0 (all) or more",
                        (long long)options->chunk);
    if (options->cache_type < PRONY_CACHE_FP32 || options->cache_type > PRONY_CACHE_INT8)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "generator options: cache_type %d: wanted 0 to %d",
                        (int)options->cache_type, PRONY_CACHE_INT8);
    g->cache_type = (prn_cache_type)options->cache_type;
    g->batch = options->batch ? options->batch : 1;
    g->chunk = options->chunk;
    g->sampling = options->sampling;
    int64_t *stops = prn_bump_alloc(&g->pool, options->stop_count + 1, sizeof *stops);
    if (!stops) return prn_no_memory(error);
    for (size_t k = 0; k < options->stop_count; k++) stops[k] = options->stop_ids[k];
    g->stop_ids = stops;
    g->stop_count = options->stop_count;
    return PRONY_OK;
}

/* The rows of a shared cache where the model fixes them; 0: it does not. */
static int64_t generator_fixed_rows(const prony_generator *g)
{
    if (g->kind != PRONY_CACHE_SHARED) return 0;
    for (size_t k = 0; k < g->cache_count; k++)
        if (!g->caches[k].cross && g->caches[k].form != PRN_CACHE_STATE &&
            g->caches[k].value.shape.dim[g->caches[k].axis] > 0)
            return g->caches[k].value.shape.dim[g->caches[k].axis];
    return 0;
}

static prony_status generator_choose_length(prony_generator *g, const prony_generator_options *options,
                                            prony_error *error)
{
    const int64_t rows = generator_fixed_rows(g), fixed = rows ? rows : prn_generator_fixed_length(g),
                  positions = g->limits.positions;
    const int64_t most = fixed && (!positions || fixed < positions) ? fixed : positions;
    g->max_length = options->max_length;
    if (most && g->max_length > most)
        return prn_fail(error, PRONY_OUT_OF_RANGE, "%s: max_length %lld: the model has %lld positions (%s)", g->file,
                        (long long)options->max_length, (long long)most,
                        fixed == most ? g->graph->inputs[rows ? g->caches[0].input : g->role_of[PRN_ROLE_IDS]].name
                                      : g->limits.position_table);
    if (!g->max_length)
        g->max_length = most && most < PRN_GENERATOR_DEFAULT_LENGTH ? most : PRN_GENERATOR_DEFAULT_LENGTH;
    if (fixed) g->max_length = fixed;
    if (g->max_length >= 2) return PRONY_OK;
    return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s: max_length %lld: wanted 2 or more", g->file,
                    (long long)g->max_length);
}

/* Caches in fewer bits need a plan for all lengths (generator_feed.c), which takes some room to find out what follows
 * from the length. */
static int64_t generator_cache_rows(const prony_generator *g)
{
    enum { LEAST_ROWS = 64 }; /* beyond the extents that engine/session/open_plan.c tries first */
    const int64_t least = g->limits.positions && g->limits.positions < LEAST_ROWS ? g->limits.positions : LEAST_ROWS;
    const bool open = g->cache_type != PRN_CACHE_FLOAT32 && g->kind == PRONY_CACHE_GROWING;
    return open && g->max_length < least ? least : g->max_length;
}

/* ---- memory ---- */

/* Fixes a cache's shape: the batch where it is free, one row along its axis. */
static prony_status generator_shape_cache(const prony_generator *g, prn_generator_cache *cache, prony_error *error)
{
    prony_value *value = &cache->value;
    const prony_value_info *past = &g->graph->inputs[cache->input];
    char text[PRN_SHAPE_TEXT_BYTES];
    const int batch_axis = cache->batch_axis;
    const bool state = cache->form == PRN_CACHE_STATE;
    prony_value_info set;
    PRN_TRY(prony_session_input(g->session, past->name, &set, error)); /* with the session's dims */
    const bool numbers = prn_dtype_is_float(value->dtype) || prn_dtype_is_integer(value->dtype);
    if (value->shape.rank < (state ? 2 : 3) || cache->axis < 0 || cache->axis >= value->shape.rank || !numbers ||
        (cache->axis == batch_axis && !state))
        return prn_fail(error, PRONY_INVALID_MODEL, "%s: cache input '%s' is %s; wanted [batch, heads, length, size]",
                        g->file, past->name, prn_value_text(value, text));
    for (int d = 0; d < value->shape.rank; d++) {
        int64_t *dim = &value->shape.dim[d];
        if (*dim < 0 && set.shape.rank == value->shape.rank) *dim = set.shape.dim[d];
        if (d == batch_axis) PRN_TRY(prn_generator_check_batch(g, cache, dim, error));
        if (d == cache->axis && !state) *dim = 1;
        if (*dim < 0)
            return prn_fail(
                error, PRONY_NEEDS_DIMENSION,
                "%s: cache input '%s': dimension %d ('%s') is free; only the batch and the length may be: set it by "
                "--dim NAME=N",
                g->file, past->name, d, past->dim_names[d] ? past->dim_names[d] : "?");
    }
    return PRONY_OK;
}

/* Refuses caches in fewer bits where the model's form of a cache cannot have them. */
static prony_status generator_check_stored(const prony_generator *g, const prn_generator_cache *cache,
                                           prony_error *error)
{
    char text[PRN_SHAPE_TEXT_BYTES];
    const prony_value *row = &cache->value;
    if ((g->kind == PRONY_CACHE_SHARED && !cache->in_place) || cache->form != PRN_CACHE_ROWS)
        return prn_generator_refuse_stored(g, cache, "the node reads and writes a cache of one length by itself",
                                           error);
    if (row->dtype != PRONY_FLOAT32 || row->shape.rank != 4 || cache->axis != 2)
        return prn_fail(
            error, PRONY_UNSUPPORTED,
            "%s: cache input '%s' is %s; only float32[batch, heads, length, size] can be kept in fewer bits", g->file,
            g->graph->inputs[cache->input].name, prn_value_text(row, text));
    if (g->max_length > PRN_ATTEND_MOST_KEYS)
        return prn_fail(error, PRONY_UNSUPPORTED, "%s: max_length %lld: a cache in fewer bits has at most %d rows",
                        g->file, (long long)g->max_length, PRN_ATTEND_MOST_KEYS);
    return PRONY_OK;
}

static prony_status generator_reserve_stored(prony_generator *g, prn_generator_cache *cache, int64_t outer,
                                             prony_error *error)
{
    PRN_TRY(generator_check_stored(g, cache, error));
    const int64_t size = cache->value.shape.dim[3];
    cache->stored = g->cache_type;
    cache->spread = true;
    cache->row_bytes = prn_cache_row_bytes(g->cache_type, size);
    cache->capacity_bytes = (size_t)outer * prn_cache_block_bytes(g->cache_type, g->cache_rows, size);
    return PRONY_OK;
}

static prony_status generator_reserve_cache(prony_generator *g, prn_generator_cache *cache, prony_error *error)
{
    PRN_TRY(generator_shape_cache(g, cache, error));
    PRN_TRY(prn_generator_check_rows(g, cache, error));
    prony_value row = cache->value, all = row;
    const bool state = cache->form == PRN_CACHE_STATE;
    const int64_t outer = state ? 1 : prn_shape_count(&row.shape, 0, cache->axis);
    if (!state) all.shape.dim[cache->axis] = g->max_length;
    cache->capacity_bytes = prn_value_bytes(&all);
    if (outer < 1 || cache->capacity_bytes == SIZE_MAX)
        return prn_fail(error, PRONY_LIMIT, "%s: cache input '%s' is empty or too large", g->file,
                        g->graph->inputs[cache->input].name);
    cache->outer = (size_t)outer;
    cache->row_bytes = state ? 0 : cache->capacity_bytes / (size_t)outer / (size_t)g->max_length;
    if (g->cache_type != PRN_CACHE_FLOAT32) PRN_TRY(generator_reserve_stored(g, cache, outer, error));
    cache->rows[0] = prn_alloc_aligned(64, cache->capacity_bytes);
    if (!cache->rows[0]) return prn_no_memory(error);
    memset(cache->rows[0], 0, cache->capacity_bytes);
    return PRONY_OK;
}

/* A cross cache is the caller's, unless a merged decoder computes it: then its first extent is 1. */
static prony_status generator_reserve_cross(prony_generator *g, prn_generator_cache *cache, prony_error *error)
{
    if (g->role_of[PRN_ROLE_USE_CACHE] == SIZE_MAX) {
        g->roles[cache->input] = PRN_ROLE_OTHER;
        return PRONY_OK;
    }
    PRN_TRY(generator_shape_cache(g, cache, error));
    cache->capacity_bytes = prn_value_bytes(&cache->value);
    cache->rows[0] = prn_alloc_aligned(64, cache->capacity_bytes ? cache->capacity_bytes : 1);
    if (!cache->rows[0]) return prn_no_memory(error);
    memset(cache->rows[0], 0, cache->capacity_bytes);
    return PRONY_OK;
}

static prony_status generator_reserve(prony_generator *g, prony_error *error)
{
    const size_t batch = (size_t)g->batch, length = (size_t)g->max_length;
    if (batch > SIZE_MAX / 16 / length || batch > (size_t)INT32_MAX)
        return prn_fail(error, PRONY_LIMIT, "%s: %lld sequences of %lld tokens are too many", g->file,
                        (long long)g->batch, (long long)g->max_length);
    g->ids = prn_calloc(batch * length, sizeof *g->ids);
    g->lengths = prn_calloc(batch, sizeof *g->lengths);
    g->ended = prn_calloc(batch, sizeof *g->ended);
    if (!g->ids || !g->lengths || !g->ended) return prn_no_memory(error);
    for (prn_role role = PRN_ROLE_IDS; role < PRN_ROLE_CACHE; role++) {
        if (g->role_of[role] == SIZE_MAX) continue;
        g->feed[role] = prn_alloc_aligned(64, batch * length * sizeof(int64_t));
        if (!g->feed[role]) return prn_no_memory(error);
        memset(g->feed[role], 0, batch * length * sizeof(int64_t));
    }
    g->mask_capacity = batch * length;
    if (g->cache_type != PRN_CACHE_FLOAT32 && g->kind == PRONY_CACHE_NONE)
        return prn_fail(error, PRONY_UNSUPPORTED, "%s: the model has no cache that could be kept in fewer bits",
                        g->file);
    for (size_t k = 0; k < g->cache_count; k++)
        PRN_TRY(g->caches[k].cross ? generator_reserve_cross(g, &g->caches[k], error)
                                   : generator_reserve_cache(g, &g->caches[k], error));
    return PRONY_OK;
}

static prony_status generator_set_up(prony_generator *g, const prony_generator_options *options, prony_error *error)
{
    PRN_TRY(generator_take_options(g, options, error));
    if (g->session->open_count && !g->session->grown_count)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s: the session has max_dims; a generator sets them itself",
                        g->file);
    PRN_TRY(prn_generator_find(g, options, error));
    PRN_TRY(prn_generator_check_inputs(g, error));
    PRN_TRY(prn_generator_derive_merged(g, error));
    PRN_TRY(generator_choose_length(g, options, error));
    g->cache_rows = generator_cache_rows(g);
    prn_budget *former = prn_budget_enter(g->session->budget);
    prony_status status = generator_reserve(g, error);
    prn_budget_enter(former);
    if (status == PRONY_OK) status = prn_generator_derive_stored(g, error);
    return status == PRONY_OK ? prn_generator_derive_last_rows(g, error) : status;
}

prony_status prony_generator_create(prony_generator **out, prony_session *session,
                                    const prony_generator_options *options, prony_error *error)
{
    prony_generator_options own = PRONY_GENERATOR_OPTIONS_INIT;
    if (!out || !session) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_generator_create: an argument is NULL");
    PRN_TRY(prn_options_read(&own, sizeof own, options, "generator options", error));
    prony_generator *g = prn_calloc(1, sizeof *g);
    if (!g) return prn_no_memory(error);
    g->session = session;
    g->graph = &session->model->file->graph;
    g->file = session->model->file->name;
    g->convention = "";
    prony_status status = generator_set_up(g, &own, error);
    if (status == PRONY_OK)
        *out = g;
    else
        prony_generator_release(g);
    return status;
}

/* Inputs and outputs that the caller bound, and max_dims of the session, stay. A failure (the session is running)
 * leaves nothing else to do. */
static void generator_leave_session(prony_generator *g)
{
    prony_status ignored = PRONY_OK;
    for (size_t k = 0; k < g->cache_count; k++)
        for (int r = 0; r < 2; r++)
            ignored = prn_session_unbind_input(g->session, g->caches[k].input, g->caches[k].rows[r], NULL);
    for (prn_role role = PRN_ROLE_IDS; role < PRN_ROLE_CACHE; role++)
        ignored = prn_session_unbind_input(g->session, g->role_of[role], g->feed[role], NULL);
    (void)ignored;
    if (g->session->generator != g) return;
    prn_session_leave_generator(g->session);
    g->session->generator = NULL;
}

void prony_generator_release(prony_generator *generator)
{
    prony_generator *g = generator;
    if (!g) return;
    generator_leave_session(g);
    for (size_t k = 0; k < g->cache_count; k++) {
        prn_generator_cache *cache = &g->caches[k];
        prn_generator_free_rows(g, cache, 0);
        prn_generator_free_rows(g, cache, 1);
    }
    for (prn_role role = PRN_ROLE_IDS; role < PRN_ROLE_CACHE; role++) prn_free_aligned(g->feed[role]);
    prn_free(g->ids);
    prn_free(g->lengths);
    prn_free(g->ended);
    prn_free(g->scores);
    prn_free(g->penalised);
    prn_free(g->marks);
    prn_free(g->candidates);
    prn_spare_blocks_release(&g->spare);
    prn_bump_release(&g->pool);
    prn_free(g);
}

/* ---- tokens ---- */

/* Checks the ids of a prompt and the lengths that it leads to; *longest is the largest of `lengths`. */
static prony_status generator_check_prompt(const prony_generator *g, const int64_t *ids, const size_t *lengths,
                                           size_t *longest, prony_error *error)
{
    const char *input = g->graph->inputs[g->role_of[PRN_ROLE_IDS]].name;
    const int64_t *id = ids;
    *longest = 0;
    for (int64_t b = 0; b < g->batch; b++) {
        if (lengths[b] > *longest) *longest = lengths[b];
        if (lengths[b] == 0)
            return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s: the prompt of sequence %lld is empty", g->file,
                            (long long)b);
    }
    for (int64_t b = 0; b < g->batch; b++) {
        if (lengths[b] != *longest && g->length > 0)
            return prn_fail(error, PRONY_INVALID_ARGUMENT,
                            "%s: prompts of different lengths (%zu and %zu ids) must come first; %lld tokens are there",
                            g->file, lengths[b], *longest, (long long)g->length);
        if (lengths[b] != *longest && g->one_length)
            return prn_fail(error, PRONY_UNSUPPORTED,
                            "%s: prompts of different lengths (%zu and %zu ids): all sequences share the rows of cache "
                            "'%s', or have its state; wanted one length",
                            g->file, lengths[b], *longest, g->convention);
        const bool own_lengths =
            g->kind == PRONY_CACHE_SHARED
                ? g->role_of[PRN_ROLE_MASK] != SIZE_MAX || g->role_of[PRN_ROLE_LENGTHS] != SIZE_MAX ||
                      g->role_of[PRN_ROLE_KEYS] != SIZE_MAX
                : g->role_of[PRN_ROLE_MASK] != SIZE_MAX && g->role_of[PRN_ROLE_POSITIONS] != SIZE_MAX;
        if (lengths[b] != *longest && !own_lengths)
            return prn_fail(error, PRONY_UNSUPPORTED,
                            "%s: prompts of different lengths (%zu and %zu ids) need inputs attention_mask and "
                            "position_ids, which the model does not have",
                            g->file, lengths[b], *longest);
        for (size_t k = 0; k < lengths[b]; k++, id++) {
            if (*id >= 0 && (!g->limits.vocabulary || *id < g->limits.vocabulary)) continue;
            return prn_fail(error, PRONY_OUT_OF_RANGE,
                            "%s: input '%s': id %lld (sequence %lld, position %zu) is not in the vocabulary: '%s' has "
                            "%lld rows",
                            g->file, input, (long long)*id, (long long)b, k,
                            g->limits.embedding ? g->limits.embedding : "", (long long)g->limits.vocabulary);
        }
    }
    if (*longest > (size_t)(g->max_length - g->length))
        return prn_fail(error, PRONY_OUT_OF_RANGE, "%s: a prompt of %zu ids behind %lld tokens exceeds max_length %lld",
                        g->file, *longest, (long long)g->length, (long long)g->max_length);
    return PRONY_OK;
}

prony_status prony_generator_prompt(prony_generator *generator, const int64_t *ids, const size_t *lengths,
                                    prony_error *error)
{
    prony_generator *g = generator;
    size_t longest;
    if (!g || !ids || !lengths)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_generator_prompt: an argument is NULL");
    PRN_TRY(generator_check_prompt(g, ids, lengths, &longest, error));
    const int64_t *from = ids;
    for (int64_t b = 0; b < g->batch; b++) {
        memcpy(g->ids + b * g->max_length + g->lengths[b], from, lengths[b] * sizeof *ids);
        from += lengths[b];
        g->lengths[b] += (int64_t)lengths[b];
    }
    g->length += (int64_t)longest;
    prony_status status = prn_generator_run_all(g, error);
    for (int64_t b = 0; b < g->batch; b++) {
        if (status == PRONY_OK)
            g->ended[b] = false;
        else
            g->lengths[b] -= (int64_t)lengths[b];
    }
    if (status != PRONY_OK) g->length -= (int64_t)longest;
    return status;
}

static bool generator_stops(const prony_generator *g, int64_t id)
{
    for (size_t k = 0; k < g->stop_count; k++)
        if (g->stop_ids[k] == id) return true;
    return false;
}

/* No sequence gets its id before all have chosen: a failure leaves the sequences as they were. */
prony_status prony_generator_next(prony_generator *generator, int64_t *ids, bool *done, prony_error *error)
{
    prony_generator *g = generator;
    if (!g || !ids) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_generator_next: an argument is NULL");
    if (g->length == 0) return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s: there is no prompt yet", g->file);
    if (g->length >= g->max_length)
        return prn_fail(error, PRONY_OUT_OF_RANGE,
                        "%s: end of context: all %lld positions of max_length are used; rewind the generator", g->file,
                        (long long)g->max_length);
    g->last_run_ns = 0;
    if (g->computed < g->length) PRN_TRY(prn_generator_run_all(g, error));
    bool all = true;
    for (int64_t b = 0; b < g->batch; b++) {
        const int64_t last = g->ids[b * g->max_length + g->lengths[b] - 1];
        if (g->ended[b])
            ids[b] = last;
        else
            PRN_TRY(prn_generator_choose(g, b, &ids[b], error));
    }
    for (int64_t b = 0; b < g->batch; b++) {
        g->ids[b * g->max_length + g->lengths[b]++] = ids[b];
        g->ended[b] = g->ended[b] || generator_stops(g, ids[b]);
        all = all && g->ended[b];
    }
    g->length++;
    if (done) *done = all;
    return PRONY_OK;
}

prony_status prony_generator_rewind(prony_generator *generator, int64_t length, prony_error *error)
{
    prony_generator *g = generator;
    if (!g) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_generator_rewind: generator is NULL");
    int64_t shortest = g->length;
    for (int64_t b = 0; b < g->batch; b++) shortest = g->lengths[b] < shortest ? g->lengths[b] : shortest;
    const int64_t dropped = g->length - length;
    if (length < 0 || dropped < 0 || (length > 0 && dropped >= shortest))
        return prn_fail(error, PRONY_OUT_OF_RANGE,
                        "%s: rewind to %lld tokens: wanted 0, or %lld to %lld (every sequence keeps a token)", g->file,
                        (long long)length, (long long)(g->length - shortest + 1), (long long)g->length);
    for (int64_t b = 0; b < g->batch; b++) {
        g->lengths[b] = length ? g->lengths[b] - dropped : 0;
        g->ended[b] = g->ended[b] && dropped == 0;
    }
    g->length = length;
    const int64_t kept = length > 0 ? length - 1 : 0;
    if (g->computed > kept && (dropped > 0 || length == 0)) {
        prn_generator_shorten(g, kept);
        g->has_scores = false;
    }
    return PRONY_OK;
}

prony_status prony_generator_set_sampling(prony_generator *generator, const prony_sampling *sampling,
                                          prony_error *error)
{
    if (!generator || !sampling)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_generator_set_sampling: an argument is NULL");
    PRN_TRY(generator_check_sampling(sampling, error));
    generator->sampling = *sampling;
    return PRONY_OK;
}

/* ---- figures ---- */

void prony_generator_get_info(const prony_generator *generator, prony_generator_info *out)
{
    const prony_generator *g = generator;
    if (!out) return;
    *out = (prony_generator_info){.convention = ""};
    if (!g) return;
    out->kind = g->kind;
    out->convention = g->convention;
    out->batch = g->batch;
    out->max_length = g->max_length;
    out->length = g->length;
    out->computed = g->computed;
    out->vocabulary = g->limits.vocabulary ? g->limits.vocabulary : (int64_t)g->score_count;
    out->cache_copied_bytes = g->copied_bytes;
    out->last_run_ns = g->last_run_ns;
    for (size_t k = 0; k < g->cache_count; k++) {
        const prn_generator_cache *cache = &g->caches[k];
        if (!cache->rows[cache->current]) continue;
        out->cache_count++;
        out->cache_bytes += cache->capacity_bytes * (cache->rows[!cache->current] ? 2 : 1);
        out->cache_live_bytes += cache->cross || cache->form == PRN_CACHE_STATE
                                     ? cache->capacity_bytes
                                     : cache->outer * cache->row_bytes * (uint64_t)g->computed;
    }
}

const float *prony_generator_logits(const prony_generator *generator, int64_t sequence, size_t *count)
{
    const bool known = generator && generator->has_scores && sequence >= 0 && sequence < generator->batch;
    if (count) *count = known ? generator->score_count : 0;
    return known ? generator->scores + (size_t)sequence * generator->score_count : NULL;
}

const char *prony_generator_unfed_input(const prony_generator *generator, size_t index)
{
    if (!generator || index >= generator->graph->input_count || generator->roles[index] != PRN_ROLE_OTHER) return NULL;
    return generator->graph->inputs[index].name;
}

bool prony_generator_input(const prony_generator *generator, size_t index, prony_generator_feed *out)
{
    const prony_generator *g = generator;
    if (!g || !out || index >= g->graph->input_count) return false;
    *out = (prony_generator_feed){.role = prn_role_text[g->roles[index]]};
    for (size_t k = 0; k < g->cache_count && g->roles[index] == PRN_ROLE_CACHE; k++) {
        const prn_generator_cache *cache = &g->caches[k];
        if (cache->input != index) continue;
        out->output = cache->output;
        out->shape = cache->value.shape;
        const bool rows = cache->form == PRN_CACHE_ROWS;
        if (cache->form != PRN_CACHE_STATE) out->shape.dim[cache->axis] = rows ? -1 : g->max_length;
        out->shared = g->kind == PRONY_CACHE_SHARED && !cache->cross && rows;
    }
    return true;
}

size_t prony_generator_logits_output(const prony_generator *generator)
{
    return generator ? generator->logits : 0;
}
