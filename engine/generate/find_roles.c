/* Finds what a decoder's inputs and outputs are for (find.h), and the output of logits. */
#include "base/shape.h"
#include "engine/generate/find.h"

#include <string.h>

/* ---- logits */

/* A larger score: the output is more likely that of the logits. 0: it cannot be. */
static int find_logits_score(const prony_generator *g, size_t output)
{
    const prony_value_info *value = &g->graph->outputs[output];
    const int rank = value->shape.rank;
    if (!prn_dtype_is_float(value->dtype) || rank == 0 || rank > 3) return 0;
    if (rank == 1 && g->graph->inputs[g->role_of[PRN_ROLE_IDS]].shape.rank != 1) return 0;
    for (size_t c = 0; c < g->cache_count; c++)
        if (g->caches[c].output == output) return 0;
    const bool words = rank > 0 && g->limits.vocabulary && value->shape.dim[rank - 1] == g->limits.vocabulary;
    return 1 + (words ? 2 : 0) + (strstr(value->name, "logits") ? 1 : 0);
}

/* The named output; else that of the file beside the model; else 'logits'; else the output of floats beside the caches
 * whose last dimension is the table of the ids or whose name has "logits"; else the first one. */
static prony_status find_logits(const find_roles *f, prony_error *error)
{
    prony_generator *g = f->g;
    uint32_t index = 0;
    if (f->options->logits) {
        PRN_TRY(prn_find_named(f, f->options->logits, &f->outputs, "output", &index, error));
        g->logits = index;
        return PRONY_OK;
    }
    int best = (f->beside.logits && prn_names_get(&f->outputs, f->beside.logits, &index)) ||
               prn_names_get(&f->outputs, "logits", &index);
    for (size_t k = 0, found = (size_t)best; k < g->graph->output_count && !found; k++) {
        const int score = find_logits_score(g, k);
        if (score <= best) continue;
        best = score;
        index = (uint32_t)k;
    }
    if (!best)
        return prn_fail(error, PRONY_INVALID_MODEL,
                        "%s: not a decoder: no output of logits (wanted 'logits', or float[batch, length, vocabulary])",
                        g->file);
    g->logits = index;
    return PRONY_OK;
}

static prony_status find_all(find_roles *f, prony_error *error)
{
    prony_generator *g = f->g;
    char text[PRN_SHAPE_TEXT_BYTES];
    const prn_graph *graph = g->graph;
    for (size_t k = 0; k < graph->input_count; k++)
        if (!prn_names_put(&f->inputs, graph->inputs[k].name, (uint32_t)k)) return prn_no_memory(error);
    for (size_t k = 0; k < graph->output_count; k++)
        if (!prn_names_put(&f->outputs, graph->outputs[k].name, (uint32_t)k)) return prn_no_memory(error);
    const prony_model *model = g->session->model;
    if (model->read_names) PRN_TRY(model->read_names(&f->beside, g->file, &g->pool, error));
    PRN_TRY(prn_find_inputs(f, error));
    const prony_value_info *ids = &graph->inputs[g->role_of[PRN_ROLE_IDS]];
    if ((ids->dtype != PRONY_INT64 && ids->dtype != PRONY_INT32) || ids->shape.rank < 1 || ids->shape.rank > 2) {
        const prony_value value = {.dtype = ids->dtype, .shape = ids->shape};
        return prn_fail(error, PRONY_INVALID_MODEL,
                        "%s: not a decoder: input '%s' is %s; wanted integers [batch, length]", g->file, ids->name,
                        prn_value_text(&value, text));
    }
    PRN_TRY(prn_generator_find_limits(g, error));
    PRN_TRY(prn_find_caches(f, error));
    return find_logits(f, error);
}

prony_status prn_generator_find(prony_generator *generator, const prony_generator_options *options, prony_error *error)
{
    find_roles f = {.g = generator, .options = options};
    generator->roles = prn_bump_alloc(&generator->pool, generator->graph->input_count + 1, 1);
    if (!generator->roles) return prn_no_memory(error);
    for (size_t r = 0; r <= PRN_ROLE_CACHE; r++) generator->role_of[r] = SIZE_MAX;
    prony_status status = find_all(&f, error);
    prn_names_free(&f.inputs);
    prn_names_free(&f.outputs);
    if (status != PRONY_OK) return status;
    const prn_generator_cache *first = generator->caches;
    const char *text = generator->cache_count
                           ? prn_bump_printf(&generator->pool, "%s -> %s", generator->graph->inputs[first->input].name,
                                             generator->graph->outputs[first->output].name)
                           : "";
    generator->convention = text;
    return text ? PRONY_OK : prn_no_memory(error);
}
