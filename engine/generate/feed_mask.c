/* The attention mask of a run: [batch, keys], 1 where a key is a token; or [batch, rows, keys] and [batch, 1, rows,
 * keys], which also hide later keys: bools and whole numbers are 1 where a row may look, floats are 0 there and the
 * least number elsewhere. */
#include "base/memory/alloc.h"
#include "base/memory/budget.h"
#include "base/shape.h"
#include "engine/generate/generator.h"
#include "ops/kernels/vector/number.h"

#include <string.h>

/* The number that hides a key. */
static double mask_hidden(prony_dtype dtype)
{
    if (dtype == PRONY_FLOAT16) return -65504.0;
    return prn_dtype_is_float(dtype) ? -0x1.fep127 : 0; /* the least bfloat16, which float32 has too */
}

/* Room for `count` elements. The session forgets the former bytes before they are released: a failure may come before
 * it binds the new ones. */
static prony_status mask_reserve(prony_generator *g, size_t count, prony_error *error)
{
    if (count <= g->mask_capacity) return PRONY_OK;
    PRN_TRY(prn_session_unbind_input(g->session, g->role_of[PRN_ROLE_MASK], g->feed[PRN_ROLE_MASK], error));
    prn_budget *former = prn_budget_enter(g->session->budget);
    void *room = prn_alloc_aligned(64, count * sizeof(int64_t));
    prn_budget_enter(former);
    if (!room) return prn_no_memory(error);
    prn_free_aligned(g->feed[PRN_ROLE_MASK]);
    g->feed[PRN_ROLE_MASK] = room;
    g->mask_capacity = count;
    return PRONY_OK;
}

/* Row c of sequence b may look at keys from the first token up to its own; a pad looks at itself, since a row without
 * keys has no softmax. */
static void mask_fill_row(void *to, prony_dtype dtype, int64_t at, int64_t first, int64_t own, int64_t total)
{
    const double shown = prn_dtype_is_float(dtype) ? 0 : 1, hidden = mask_hidden(dtype);
    for (int64_t t = 0; t < total; t++)
        prn_put_f64(to, dtype, at + t, (t >= first && t <= own) || t == own ? shown : hidden);
}

/* true: the mask has a row for each column of the run: [rows, keys] is told from [batch, keys] by the ids'
 * dimensions. */
static bool mask_has_rows(const prony_generator *g, const prony_value_info *input)
{
    const prony_value_info *ids = &g->graph->inputs[g->role_of[PRN_ROLE_IDS]];
    if (input->shape.rank != 2) return input->shape.rank > 2;
    const char *own = input->dim_names[0], *columns = ids->dim_names[ids->shape.rank - 1];
    return g->batch == 1 && own && columns && *own && strcmp(own, columns) == 0;
}

/* A mask [batch, total] marks the keys of each sequence. A mask with rows, [batch, columns, total] or [batch, 1,
 * columns, total], also hides the keys behind each column. */
prony_status prn_generator_fill_mask(prony_generator *g, int64_t first, int64_t columns, prony_shape *shape,
                                     prony_error *error)
{
    const prony_value_info *input = &g->graph->inputs[g->role_of[PRN_ROLE_MASK]];
    const int64_t fixed = input->shape.dim[input->shape.rank - 1], total = fixed > 0 ? fixed : first + columns;
    const bool wide = mask_has_rows(g, input);
    const int64_t rows = wide ? columns : 1;
    if (fixed > 0 && first + columns > total)
        return prn_fail(error, PRONY_OUT_OF_RANGE, "%s: input '%s' has %lld columns; wanted %lld", g->file, input->name,
                        (long long)fixed, (long long)(first + columns));
    *shape = (prony_shape){.rank = input->shape.rank, .dim = {g->batch}};
    if (!wide) {
        shape->dim[input->shape.rank - 1] = total;
    } else {
        if (input->shape.rank == 4) shape->dim[1] = 1;
        shape->dim[input->shape.rank - 2] = columns;
        shape->dim[input->shape.rank - 1] = total;
    }
    if (total > 0 && (size_t)(g->batch * rows) > SIZE_MAX / 16 / (size_t)total)
        return prn_fail(error, PRONY_LIMIT, "%s: input '%s' is too large for %lld columns", g->file, input->name,
                        (long long)columns);
    PRN_TRY(mask_reserve(g, (size_t)(g->batch * rows * total), error));
    void *to = g->feed[PRN_ROLE_MASK];
    const int64_t shift = g->rolled ? total - first - columns : 0;
    for (int64_t b = 0; b < g->batch; b++) {
        const int64_t pads = prn_generator_pads(g, b), before = prn_generator_before(g, b, first);
        if (wide) {
            for (int64_t c = 0; c < columns; c++)
                mask_fill_row(to, input->dtype, (b * columns + c) * total, pads + shift, before + c + shift, total);
            continue;
        }
        const int64_t end = pads + g->lengths[b], seen = before + columns > end ? end : before + columns;
        for (int64_t c = 0; c < total; c++)
            prn_put_f64(to, input->dtype, b * total + c, c >= pads + shift && c < seen + shift ? 1 : 0);
    }
    return PRONY_OK;
}
