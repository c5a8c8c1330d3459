/* prony_model_quantize_weights: a model with MatMulNBits, written into memory and loaded again. */
#include "base/option_struct.h"
#include "quantize/block_plan.h"

#include <string.h>

enum { LEAST_BLOCK = 16, DEFAULT_BLOCK = 32 };

static prony_status quantize_weights_format(const prony_weights_options *options, prn_block_format *out,
                                            prony_error *error)
{
    *out = (prn_block_format){.bits = options->bits ? options->bits : 4,
                              .block = options->block ? options->block : DEFAULT_BLOCK,
                              .zero_points = options->zero_points,
                              .search = options->search_scales};
    if (out->bits != 4 && out->bits != 8)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "weights options: bits %d: wanted 4 or 8", options->bits);
    if (out->block < LEAST_BLOCK || out->block > PRN_LARGEST_WEIGHT_BLOCK || (out->block & (out->block - 1)))
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "weights options: block %lld: wanted a power of two from %d to %d", (long long)options->block,
                        LEAST_BLOCK, PRN_LARGEST_WEIGHT_BLOCK);
    return PRONY_OK;
}

/* The layers that were quantized, kept with the model. */
static prony_status quantize_weights_describe(prony_model *model, const prn_block_plan *plan, prony_error *error)
{
    prn_model_quantized *q = &model->quantized;
    prony_quantized_row *rows = prn_bump_alloc(&q->pool, plan->product_count + 1, sizeof *rows);
    q->kept = prn_bump_alloc(&q->pool, 1, sizeof *q->kept);
    if (!rows || !q->kept) return prn_no_memory(error);
    for (size_t p = 0; p < plan->product_count; p++) {
        const prn_block_product *product = &plan->products[p];
        const prn_model_node *node = &plan->scopes[product->scope]->graph->nodes[product->node];
        const char *name = *node->name ? node->name : node->outputs[0];
        rows[p] = (prony_quantized_row){.name = prn_bump_strndup(&q->pool, name, strlen(name)),
                                        .op = prn_bump_strndup(&q->pool, node->op_type, strlen(node->op_type)),
                                        .quantized = true,
                                        .error = plan->weights[product->weight].error};
        if (!rows[p].name || !rows[p].op) return prn_no_memory(error);
    }
    q->rows = rows;
    q->count = plan->product_count;
    return PRONY_OK;
}

static prony_status quantize_weights_load(prony_model **out, prn_block_plan *plan, prony_error *error)
{
    uint8_t *data = NULL;
    size_t size = 0;
    const prony_model *from = plan->model;
    prony_model_options m = PRONY_MODEL_OPTIONS_INIT;
    m.registry = from->registry;
    PRN_TRY(prn_block_write(&data, &size, plan, error));
    prony_status status = prony_model_load_memory(out, from->file->name, data, size, &m, error);
    if (status != PRONY_OK) {
        prn_free(data);
        return status;
    }
    (*out)->owned = data;
    (*out)->read_names = from->read_names;
    return quantize_weights_describe(*out, plan, error);
}

prony_status prony_model_quantize_weights(prony_model **out, prony_model *model, const prony_weights_options *options,
                                          prony_error *error)
{
    prony_weights_options own = PRONY_WEIGHTS_OPTIONS_INIT;
    prn_block_format format;
    prn_block_plan plan;
    prony_model *made = NULL;
    if (!out || !model)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_model_quantize_weights: an argument is NULL");
    PRN_TRY(prn_options_read(&own, sizeof own, options, "weights options", error));
    PRN_TRY(quantize_weights_format(&own, &format, error));
    prony_status status = prn_block_plan_make(&plan, model, &format, error);
    if (status == PRONY_OK) status = quantize_weights_load(&made, &plan, error);
    prn_block_plan_release(&plan);
    if (status == PRONY_OK)
        *out = made;
    else
        prony_model_release(made);
    return status;
}
