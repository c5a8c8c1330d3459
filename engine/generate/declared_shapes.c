/* The declared shapes of a decoder's inputs, and whether a generator can feed them. */
#include "base/shape.h"
#include "engine/generate/generator.h"

#include <string.h>

/* The length of the ids' rows where it is fixed; 0: it is free. */
static int64_t declared_columns(const prony_generator *g)
{
    const prony_shape *ids = &g->graph->inputs[g->role_of[PRN_ROLE_IDS]].shape;
    return ids->dim[ids->rank - 1] > 0 ? ids->dim[ids->rank - 1] : 0;
}

/* The last dimension of the mask where it is fixed; 0: it is free, or the mask is missing. */
static int64_t declared_mask(const prony_generator *g)
{
    const size_t index = g->role_of[PRN_ROLE_MASK];
    const prony_shape *mask = index == SIZE_MAX ? NULL : &g->graph->inputs[index].shape;
    return mask && mask->rank > 0 && mask->dim[mask->rank - 1] > 0 ? mask->dim[mask->rank - 1] : 0;
}

int64_t prn_generator_fixed_length(const prony_generator *generator)
{
    if (generator->kind == PRONY_CACHE_NONE) return declared_columns(generator);
    return generator->kind == PRONY_CACHE_SHARED ? declared_mask(generator) : 0;
}

/* A mask of a fixed length serves caches of a fixed length, or a model that always computes that many rows. */
static bool declared_mask_suits(const prony_generator *g, const prony_shape *shape)
{
    const int64_t last = shape->rank > 0 ? shape->dim[shape->rank - 1] : 0;
    if (shape->rank < 1 || shape->rank > 4 || (shape->rank == 1 && g->batch != 1)) return false;
    if (last > 0 && g->kind == PRONY_CACHE_GROWING) return false;
    if (last > 0 && g->kind == PRONY_CACHE_NONE && last != g->columns) return false;
    if (shape->rank == 4 && shape->dim[1] >= 0 && shape->dim[1] != 1) return false;
    const int64_t rows = shape->rank > 2 ? shape->dim[shape->rank - 2] : -1;
    return rows < 0 || rows == g->columns;
}

/* true: the generator can feed an input of this role and declared shape. */
static bool declared_may_feed(const prony_generator *g, prn_role role, const prony_value_info *input)
{
    const prony_shape *shape = &input->shape;
    if (input->kind != PRONY_TENSOR || input->dtype == PRONY_STRING) return false;
    if (role > PRN_ROLE_TYPES) return shape->rank == 1 || shape->rank == 0;
    if (role == PRN_ROLE_MASK) return declared_mask_suits(g, shape);
    if (shape->rank != 2 && (shape->rank != 1 || g->batch != 1)) return false;
    const int64_t columns = shape->dim[shape->rank - 1];
    return columns < 0 || (columns == g->columns && (columns == 1 || g->kind == PRONY_CACHE_NONE));
}

prony_status prn_generator_check_inputs(prony_generator *generator, prony_error *error)
{
    prony_generator *g = generator;
    char text[PRN_SHAPE_TEXT_BYTES];
    g->columns = declared_columns(g);
    if (g->columns == 1 && g->kind != PRONY_CACHE_NONE) {
        g->chunk = 1; /* prompts are read token by token */
        g->one_length = true;
    }
    for (prn_role role = PRN_ROLE_IDS; role < PRN_ROLE_CACHE; role++) {
        if (g->role_of[role] == SIZE_MAX) continue;
        const prony_value_info *input = &g->graph->inputs[g->role_of[role]];
        const prony_value value = {.dtype = input->dtype, .shape = input->shape};
        if (declared_may_feed(g, role, input)) continue;
        if (input->shape.rank == 1 && role <= PRN_ROLE_TYPES && g->batch != 1)
            return prn_fail(error, PRONY_UNSUPPORTED,
                            "%s: input '%s' is %s: one sequence; wanted a batch of 1, got %lld", g->file, input->name,
                            prn_value_text(&value, text), (long long)g->batch);
        return prn_fail(error, PRONY_UNSUPPORTED, "%s: input '%s' is %s; the generator feeds %s", g->file, input->name,
                        prn_value_text(&value, text),
                        role == PRN_ROLE_MASK    ? "[batch, length], or [batch, 1, rows, length] of any lengths"
                        : role <= PRN_ROLE_TYPES ? "[batch, length] of any length, or of 1 with a cache"
                                                 : "one number or one a row");
    }
    return PRONY_OK;
}

prony_status prn_generator_check_rows(const prony_generator *generator, const prn_generator_cache *cache,
                                      prony_error *error)
{
    const prony_generator *g = generator;
    const prony_value_info *past = &g->graph->inputs[cache->input];
    const int64_t rows = cache->form == PRN_CACHE_STATE ? -1 : past->shape.dim[cache->axis];
    if (rows < 0 || (g->kind == PRONY_CACHE_SHARED && rows == g->max_length)) return PRONY_OK;
    if (g->kind == PRONY_CACHE_SHARED)
        return prn_fail(error, PRONY_UNSUPPORTED, "%s: cache input '%s' has %lld rows; wanted %lld, as other caches",
                        g->file, past->name, (long long)rows, (long long)g->max_length);
    return prn_fail(error, PRONY_UNSUPPORTED,
                    "%s: cache input '%s' has a fixed length of %lld rows, and its output '%s' another one; wanted a "
                    "free length, or the same for both",
                    g->file, past->name, (long long)rows, g->graph->outputs[cache->output].name);
}

/* "batch_size x num_heads" holds heads beside sequences: the caller says how many. */
prony_status prn_generator_check_batch(const prony_generator *generator, const prn_generator_cache *cache, int64_t *dim,
                                       prony_error *error)
{
    const prony_generator *g = generator;
    const prony_value_info *past = &g->graph->inputs[cache->input], *ids = &g->graph->inputs[g->role_of[PRN_ROLE_IDS]];
    const char *own = past->dim_names[cache->batch_axis], *batch = ids->shape.rank == 2 ? ids->dim_names[0] : NULL;
    const bool joined = own && batch && *batch && strcmp(own, batch) != 0 && strstr(own, batch);
    if (joined && *dim < 0)
        return prn_fail(error, PRONY_NEEDS_DIMENSION,
                        "%s: cache input '%s': dimension %d is more than the batch: set it by --dim '%s=N', such as "
                        "%lld times the heads",
                        g->file, past->name, cache->batch_axis, own, (long long)g->batch);
    if (*dim < 0) *dim = g->batch;
    if (*dim == g->batch || (joined && *dim % g->batch == 0)) return PRONY_OK;
    if (g->batch == 1 && cache->form != PRN_CACHE_ROWS) return PRONY_OK; /* [layers, 1, size], or no batch at all */
    return prn_fail(error, PRONY_SHAPE_MISMATCH, "%s: cache input '%s' is for %lld sequences; wanted %lld", g->file,
                    past->name, (long long)*dim, (long long)g->batch);
}
