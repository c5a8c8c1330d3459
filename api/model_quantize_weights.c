/* prony_model_quantize_weights: a model with MatMulNBits, written into memory and loaded again. */
#include "base/option_struct.h"
#include "quantize/importance.h"
#include "quantize/quantize_plan.h"

#include <math.h>
#include <string.h>

enum { LEAST_BLOCK = 16, DEFAULT_BLOCK = 32 };

static prony_status quantize_weights_format(const prony_weights_options *options, prn_block_format *out,
                                            prony_error *error)
{
    *out = (prn_block_format){.bits = options->bits ? options->bits : 4,
                              .block = options->block ? options->block : DEFAULT_BLOCK,
                              .zero_points = options->zero_points,
                              .search = options->search_scales || options->importance};
    if (out->bits != 4 && out->bits != 8)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "weights options: bits %d: wanted 4 or 8", options->bits);
    if (out->block < LEAST_BLOCK || out->block > PRN_LARGEST_WEIGHT_BLOCK || (out->block & (out->block - 1)))
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "weights options: block %lld: wanted a power of two from %d to %d", (long long)options->block,
                        LEAST_BLOCK, PRN_LARGEST_WEIGHT_BLOCK);
    return PRONY_OK;
}

/* One row of the model: a product, or a refusal. */
typedef struct weights_layer {
    size_t scope, node;
    const prn_block_weight *weight; /* NULL: it stays in float */
    const char *reason;
} weights_layer;

/* The next layer in the order of scopes and nodes, of products from *p on and refusals from *r on, of which one is left
 * at least. */
static weights_layer quantize_weights_next(const prn_block_plan *plan, size_t *p, size_t *r)
{
    const prn_block_product *product = *p < plan->product_count ? &plan->products[*p] : NULL;
    const prn_block_refusal *refusal = *r < plan->refusal_count ? &plan->refusals[*r] : NULL;
    const bool earlier =
        product && refusal &&
        (product->scope != refusal->scope ? product->scope < refusal->scope : product->node < refusal->node);
    if (product && (!refusal || earlier)) {
        ++*p;
        return (weights_layer){product->scope, product->node, &plan->weights[product->weight], NULL};
    }
    ++*r;
    return refusal ? (weights_layer){refusal->scope, refusal->node, NULL, refusal->reason} : (weights_layer){0};
}

/* The layers that were quantized and those that stay in float, kept with the model. */
static prony_status quantize_weights_describe(prony_model *model, const prn_block_plan *plan, prony_error *error)
{
    prn_model_quantized *q = &model->quantized;
    const size_t count = plan->product_count + plan->refusal_count;
    prony_quantized_row *rows = prn_bump_alloc(&q->pool, count, sizeof *rows);
    const char **reasons = prn_bump_alloc(&q->pool, count, sizeof *reasons);
    double *weighted = prn_bump_alloc(&q->pool, count, sizeof *weighted);
    q->kept = prn_bump_alloc(&q->pool, 1, sizeof *q->kept);
    if (!rows || !reasons || !weighted || !q->kept) return prn_no_memory(error);
    for (size_t i = 0, p = 0, r = 0; i < count; i++) {
        const weights_layer layer = quantize_weights_next(plan, &p, &r);
        const prn_model_node *node = &plan->scopes[layer.scope]->graph->nodes[layer.node];
        const char *name = prn_quant_layer_name(node), *reason = layer.reason;
        rows[i] = (prony_quantized_row){.name = prn_bump_strndup(&q->pool, name, strlen(name)),
                                        .op = prn_bump_strndup(&q->pool, node->op_type, strlen(node->op_type)),
                                        .quantized = layer.weight != NULL,
                                        .error = layer.weight ? layer.weight->error : (double)NAN};
        weighted[i] = layer.weight ? layer.weight->weighted_error : (double)NAN;
        reasons[i] = reason ? prn_bump_strndup(&q->pool, reason, strlen(reason)) : NULL;
        if (!rows[i].name || !rows[i].op || (reason && !reasons[i])) return prn_no_memory(error);
    }
    q->rows = rows;
    q->reasons = reasons;
    q->weighted_errors = weighted;
    q->count = count;
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
    if (status == PRONY_OK && own.importance) status = prn_importance_apply(own.importance, &plan, error);
    if (status == PRONY_OK) status = quantize_weights_load(&made, &plan, error);
    prn_block_plan_release(&plan);
    if (status == PRONY_OK)
        *out = made;
    else
        prony_model_release(made);
    return status;
}
