/* The caches of a decoder: pairs of an input and the output that is fed back to it.
 *
 * Pairs come from the names that the caller gives, from the file beside the model, from exporters' names, and then from
 * the graph (find_updates.c). The graph and the declared shapes tell a cache's form. */
#include "base/shape.h"
#include "engine/generate/find.h"

#include <limits.h>
#include <string.h>

static const prony_cache_names cache_names[] = {{"past_key_values.*", "present.*"},
                                                {"past_key_values.*", "present_key_values.*"},
                                                {"past_key_values_*", "present_key_values_*"},
                                                {"past.*", "present.*"},
                                                {"past_*", "present_*"},
                                                {"past*", "present*"}};

/* The text that '*' stands for in `pattern`; false: the name does not match. */
static bool find_match(const char *pattern, const char *name, const char **text, size_t *length)
{
    const char *star = strchr(pattern, '*');
    *text = name;
    *length = 0;
    if (!star) return strcmp(pattern, name) == 0;
    const size_t before = (size_t)(star - pattern), after = strlen(star + 1), all = strlen(name);
    if (all < before + after || strncmp(pattern, name, before) != 0 || strcmp(star + 1, name + all - after) != 0)
        return false;
    *text = name + before;
    *length = all - before - after;
    return true;
}

/* ---- dimensions */

static bool caches_is_named(const prony_value_info *value, int axis, const char *name)
{
    return name && value->shape.dim[axis] < 0 && value->dim_names[axis] && strcmp(value->dim_names[axis], name) == 0;
}

/* The axis of sequences: that with the name of the ids' batch; else one whose name has it ("batch_size x num_heads");
 * else by rank: [2, batch, ...] and [layers, 2, batch, ...] of packed keys and values, or the first axis. If that one
 * has another fixed extent, [layers, batch, ...], it is the first free axis. */
static int caches_batch_axis(const prony_generator *g, const prony_value_info *past)
{
    const char *batch = prn_find_batch_name(g);
    const int rank = past->shape.rank;
    for (int d = 0; d < rank; d++)
        if (caches_is_named(past, d, batch)) return d;
    for (int d = 0; d < rank && batch; d++)
        if (past->shape.dim[d] < 0 && past->dim_names[d] && strstr(past->dim_names[d], batch)) return d;
    const int by_rank = rank == 6 ? 2 : rank == 5 && past->shape.dim[1] != 2;
    const prony_value_info *ids = &g->graph->inputs[g->role_of[PRN_ROLE_IDS]];
    const bool other = past->shape.dim[by_rank] > 1 && ids->shape.dim[0] < 0;
    for (int d = 0; d < rank && other; d++)
        if (past->shape.dim[d] < 0) return d;
    return by_rank;
}

/* Rows that join along the axis that was taken for the batch: the only other free axis is the batch, [length, batch,
 * ...]. */
static void caches_leave_axis(prn_generator_cache *cache)
{
    int found = -1, count = 0;
    for (int d = 0; d < cache->value.shape.rank; d++) {
        if (d == cache->axis || cache->value.shape.dim[d] >= 0) continue;
        found = d;
        count++;
    }
    if (count == 1) cache->batch_axis = found;
}

/* The axis along which a cache grows: the only free dimension that is not the batch; else the last but one. */
static int caches_row_axis(const prony_value_info *past, int batch_axis)
{
    int found = -1, free_dims = 0;
    for (int d = 0; d < past->shape.rank; d++) {
        if (past->shape.dim[d] >= 0 || d == batch_axis) continue;
        found = d;
        free_dims++;
    }
    return free_dims == 1 ? found : past->shape.rank - 2;
}

/* The last dimension of the mask, if it is fixed; 0: it is free, or the mask is missing. */
static int64_t caches_mask_length(const prony_generator *g)
{
    if (g->role_of[PRN_ROLE_MASK] == SIZE_MAX) return 0;
    const prony_shape *mask = &g->graph->inputs[g->role_of[PRN_ROLE_MASK]].shape;
    return mask->rank > 0 && mask->dim[mask->rank - 1] > 0 ? mask->dim[mask->rank - 1] : 0;
}

/* true: every dimension but the batch is fixed, and the output declares none of them otherwise. */
static bool caches_is_fixed(const prony_value_info *past, const prony_value_info *present, int batch_axis)
{
    for (int d = 0; d < past->shape.rank; d++) {
        if (d == batch_axis) continue;
        if (past->shape.dim[d] < 0) return false;
        if (present->shape.rank != past->shape.rank) continue;
        if (present->shape.dim[d] >= 0 && present->shape.dim[d] != past->shape.dim[d]) return false;
    }
    return true;
}

/* true: the output may be what is fed back to the input, by type and declared shape. */
static bool caches_suit(const prony_value_info *past, const prony_value_info *present)
{
    if (past->dtype != present->dtype || past->shape.rank < 2) return false;
    if (present->shape.rank < 0) return true;
    return present->shape.rank == past->shape.rank;
}

/* A tensor of one size is a cache whose rows are written by position, or the state of a recurrence. Without a known
 * update (inside of an If or a function) positions decide. */
static prn_cache_form caches_form(const find_roles *f, const prn_generator_cache *cache, const find_update *update)
{
    const prn_graph *graph = f->g->graph;
    if ((update && update->in_place) || cache->cross) return PRN_CACHE_ROWS;
    if (!caches_is_fixed(&graph->inputs[cache->input], &graph->outputs[cache->output], cache->batch_axis))
        return PRN_CACHE_ROWS;
    return (update ? update->scattered : prn_find_has_positions(f->g)) ? PRN_CACHE_FIXED : PRN_CACHE_STATE;
}

/* ---- pairs */

/* True for a cache of the encoder's keys and values: "past_key_values.0.encoder.key". */
static bool find_is_cross(const char *name)
{
    return strstr(name, "encoder") || strstr(name, "cross");
}

static void caches_add(find_roles *f, size_t input, size_t output)
{
    prony_generator *g = f->g;
    const prony_value_info *past = &g->graph->inputs[input];
    const int batch_axis = caches_batch_axis(g, past);
    g->roles[input] = PRN_ROLE_CACHE;
    g->caches[g->cache_count++] = (prn_generator_cache){.input = input,
                                                        .output = output,
                                                        .axis = caches_row_axis(past, batch_axis),
                                                        .batch_axis = batch_axis,
                                                        .cross = find_is_cross(past->name),
                                                        .value = {.dtype = past->dtype, .shape = past->shape}};
}

static bool caches_output_is_taken(const prony_generator *g, size_t output)
{
    for (size_t k = 0; k < g->cache_count; k++)
        if (g->caches[k].output == output) return true;
    return false;
}

static prony_status caches_by_name(find_roles *f, const prony_cache_names *names, prony_error *error)
{
    prony_generator *g = f->g;
    for (size_t i = 0; i < g->graph->input_count; i++) {
        const char *name = g->graph->inputs[i].name, *text;
        size_t length;
        uint32_t output;
        if (g->roles[i] != PRN_ROLE_OTHER || !find_match(names->past, name, &text, &length)) continue;
        const char *star = strchr(names->present, '*');
        char *present = star ? prn_bump_printf(&g->pool, "%.*s%.*s%s", (int)(star - names->present), names->present,
                                               (int)length, text, star + 1)
                             : prn_bump_strndup(&g->pool, names->present, strlen(names->present));
        if (!present) return prn_no_memory(error);
        if (prn_names_get(&f->outputs, present, &output)) caches_add(f, i, output);
    }
    return PRONY_OK;
}

/* Outputs that the graph makes of free inputs. */
static void caches_by_graph(find_roles *f, const find_updates *updates)
{
    prony_generator *g = f->g;
    for (size_t k = 0; k < g->graph->output_count; k++) {
        const prony_value_info *present = &g->graph->outputs[k];
        const find_update *update = prn_find_update(updates, present->name);
        if (!update || g->roles[update->input] != PRN_ROLE_OTHER || caches_output_is_taken(g, k)) continue;
        if (caches_suit(&g->graph->inputs[update->input], present)) caches_add(f, update->input, k);
    }
}

/* past ── Concat(., new) ── Slice ── present: the oldest row leaves a cache of a fixed length. It is told from the
 * state of a convolution by the mask, which has a key for each row, and perhaps one more for the new token. */
static bool caches_is_rolled(const prn_generator_cache *cache, const find_update *update, int64_t length)
{
    const int rank = cache->value.shape.rank;
    if (cache->form != PRN_CACHE_STATE || !update || update->axis == INT_MIN || !length) return false;
    const int axis = update->axis + (update->axis < 0 ? rank : 0);
    if (axis < 0 || axis >= rank) return false;
    return cache->value.shape.dim[axis] == length || cache->value.shape.dim[axis] + 1 == length;
}

/* Axis and form of each cache. An axis that the graph shows (of a Concat, or of rows that are written) goes before the
 * declared shape, and the mask's fixed length before the last axis but one. */
static void caches_take_forms(find_roles *f, const find_updates *updates)
{
    prony_generator *g = f->g;
    const int64_t length = caches_mask_length(g);
    for (size_t k = 0; k < g->cache_count; k++) {
        prn_generator_cache *cache = &g->caches[k];
        const int rank = cache->value.shape.rank;
        const find_update *update = prn_find_update(updates, g->graph->outputs[cache->output].name);
        if (update && update->input != cache->input) update = NULL;
        cache->form = caches_form(f, cache, update);
        cache->in_place = update && update->in_place;
        const int axis =
            update && !update->moved && update->axis != INT_MIN ? update->axis + (update->axis < 0 ? rank : 0) : -1;
        if (axis >= 0 && axis < rank) cache->axis = axis;
        g->rolled = g->rolled || caches_is_rolled(cache, update, length);
        if (cache->axis == cache->batch_axis && cache->form == PRN_CACHE_ROWS) caches_leave_axis(cache);
        if (cache->form != PRN_CACHE_FIXED || axis >= 0 || !length) continue;
        for (int d = rank - 1; d >= 0; d--)
            if (d != cache->batch_axis && cache->value.shape.dim[d] == length) cache->axis = d;
    }
}

static prony_status caches_find(find_roles *f, const find_updates *updates, prony_error *error)
{
    prony_generator *g = f->g;
    for (size_t k = 0; k < f->options->cache_count; k++) {
        const size_t before = g->cache_count;
        PRN_TRY(caches_by_name(f, &f->options->caches[k], error));
        if (g->cache_count == before)
            return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s: no input and output match the cache '%s=%s'", g->file,
                            f->options->caches[k].past, f->options->caches[k].present);
    }
    for (size_t k = 0; k < PRN_DECODER_CACHES && !f->options->cache_count; k++) {
        const prony_cache_names names = {f->beside.past[k], f->beside.present[k]};
        if (names.past && names.present) PRN_TRY(caches_by_name(f, &names, error));
    }
    for (size_t k = 0; k < sizeof cache_names / sizeof *cache_names && !f->options->cache_count; k++)
        PRN_TRY(caches_by_name(f, &cache_names[k], error));
    caches_by_graph(f, updates);
    caches_take_forms(f, updates);
    return PRONY_OK;
}

prony_status prn_find_caches(find_roles *f, prony_error *error)
{
    prony_generator *g = f->g;
    find_updates updates = {0};
    g->caches = prn_bump_alloc(&g->pool, g->graph->input_count + 1, sizeof *g->caches);
    if (!g->caches) return prn_no_memory(error);
    prony_status status = prn_find_updates(&updates, f, error);
    if (status == PRONY_OK) status = caches_find(f, &updates, error);
    prn_find_updates_free(&updates);
    if (status != PRONY_OK) return status;
    const bool own_rows = g->role_of[PRN_ROLE_STARTS] != SIZE_MAX && g->role_of[PRN_ROLE_KEYS] != SIZE_MAX;
    bool grows = false, shared = false, fixed = false;
    for (size_t k = 0; k < g->cache_count; k++) {
        const prn_cache_form form = g->caches[k].form;
        shared = shared || g->caches[k].in_place;
        grows = grows || (form == PRN_CACHE_ROWS && !g->caches[k].cross);
        fixed = fixed || form != PRN_CACHE_ROWS;
        g->one_length = g->one_length || form == PRN_CACHE_STATE || (form == PRN_CACHE_FIXED && !own_rows);
    }
    g->kind = !g->cache_count               ? PRONY_CACHE_NONE
              : shared || (fixed && !grows) ? PRONY_CACHE_SHARED
                                            : PRONY_CACHE_GROWING;
    return PRONY_OK;
}
