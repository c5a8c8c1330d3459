/* Computes the cost of every node at bind time, on the model's own nodes, and the first user of every weight. */
#include "engine/bind/bind_pass.h"
#include "engine/bind/node.h"
#include "engine/bind/node_environment.h"

#include <string.h>

static bool is_weight(const prn_weight *weight, const prn_op *op)
{
    if (weight->rank == 0) return false;
    switch (weight->dtype) {
    case PRONY_BOOL:
    case PRONY_STRING:
        return false;
    case PRONY_INT32:
    case PRONY_INT64:
    case PRONY_UINT32:
    case PRONY_UINT64:
        return op->flags & PRN_OP_INT_WEIGHTS;
    default:
        return true;
    }
}

/* Claims every weight from which `value` was computed. A value visited before by an operator of the same kind has
 * nothing left to claim, so all walks of a program together are linear. `stack` holds value_count ids. */
static void claim_weights(prn_program *p, uint32_t value, const prn_op *op, uint32_t layer, uint32_t *stack,
                          uint64_t *parameters)
{
    uint8_t kind = op->flags & PRN_OP_INT_WEIGHTS ? 2 : 1;
    size_t depth = 0;
    if (p->values[value]->claims & kind) return;
    p->values[value]->claims |= kind;
    stack[depth++] = value;
    while (depth > 0) {
        const prn_value_def *from = p->values[stack[--depth]];
        prn_weight *weight = from->weight == PRN_NO_WEIGHT ? NULL : &p->weights[from->weight];
        if (weight && !weight->claimed && is_weight(weight, op)) {
            weight->claimed = true;
            weight->layer = layer;
            *parameters += weight->elements;
        }
        if (from->folded_from == PRN_NO_NODE) continue;
        const prn_node_def *node = p->nodes[from->folded_from];
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (node->inputs[i] == PRN_NO_VALUE || p->values[node->inputs[i]]->claims & kind) continue;
            p->values[node->inputs[i]]->claims |= kind;
            stack[depth++] = node->inputs[i];
        }
    }
}

/* Counts the elements of a weight of packed codes: one per code, if the first node that uses it states it and the bytes
 * can hold them. */
static void unpack_weight(prn_program *p, const prn_node_def *node, uint32_t input)
{
    const prn_value_def *value = p->values[node->inputs[input]];
    prn_weight *weight = value->weight == PRN_NO_WEIGHT ? NULL : &p->weights[value->weight];
    if (!weight || weight->claimed || !node->binding.op->packed_codes) return;
    prony_context context = prn_node_context(p, node, NULL);
    const prn_packed_qint8 codes = node->binding.op->packed_codes(&context, input);
    if (codes.count == 0 || codes.bits == 0 || codes.count > weight->elements * (weight->bits / codes.bits)) return;
    weight->elements = codes.count;
    weight->bits = codes.bits;
}

/* Claims mean and variance of a BatchNormalization. Only their input positions distinguish them from weights. */
static void claim_buffers(prn_program *p, const prn_node_def *node, uint32_t layer)
{
    if (strcmp(node->info.op_type, "BatchNormalization") != 0) return;
    for (uint32_t i = 3; i < node->input_count && i < 5; i++) {
        uint32_t id = node->inputs[i];
        prn_weight *weight =
            id == PRN_NO_VALUE || p->values[id]->weight == PRN_NO_WEIGHT ? NULL : &p->weights[p->values[id]->weight];
        if (!weight || weight->claimed || weight->buffer) continue;
        weight->buffer = true;
        weight->layer = layer;
    }
}

prony_status prn_bind_cost(prn_bind_pass *b, prn_node_def *node, prony_cost *cost)
{
    prn_program *p = b->program;
    prn_node_environment site = {.program = p, .node = node};
    prony_context context = prn_node_context(p, node, b->error);
    context.services_data = &site;
    const size_t held = p->refs.held_count;
    prony_status status = prn_bind_hold_for_user(b, node);
    if (status == PRONY_OK) status = prn_node_cost(node, &context, cost);
    prn_weight_cache_unpin(p->model->shared, &p->refs, held);
    return status;
}

static prony_status count_node(prn_bind_pass *b, prn_node_def *node, uint32_t *stack)
{
    prn_program *p = b->program;
    prn_layer *layer = &p->layers[node->layers[0]];
    layer->dynamic = node->dynamic;
    const prn_op *op = node->binding.op;
    prony_cost cost = {0};
    if (op) {
        uint64_t parameters = 0;
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (node->inputs[i] == PRN_NO_VALUE || (i < 32 && (op->non_weight_inputs >> i & 1))) continue;
            unpack_weight(p, node, i);
            claim_weights(p, node->inputs[i], op, node->layers[0], stack, &parameters);
        }
        for (uint32_t c = 0; c < node->child_count; c++)
            for (uint32_t k = 0; k < node->children[c].captured_count; k++)
                claim_weights(p, node->children[c].captured[k], op, node->layers[0], stack, &parameters);
        claim_buffers(p, node, node->layers[0]);
        /* open subgraphs: an estimate until the first run */
        if (!node->dynamic || node->child_count > 0) PRN_TRY(prn_bind_cost(b, node, &cost));
        cost.parameters += parameters;
        node->computes = cost.macs || cost.flops || cost.int_ops;
    }
    return prn_layer_keep_cost(p, layer, &cost) ? PRONY_OK : prn_no_memory(b->error);
}

prony_status prn_bind_count(prn_bind_pass *b)
{
    prn_program *p = b->program;
    uint32_t *stack = prn_calloc(p->value_count + 1, sizeof *stack);
    prony_status status = stack ? PRONY_OK : prn_no_memory(b->error);
    for (size_t n = 0; status == PRONY_OK && n < p->node_count; n++) {
        prn_node_def *node = p->nodes[n];
        status = prn_bind_cancelled(b, &node->info);
        if (node->dead)
            p->layers[node->layers[0]].folded = true;
        else if (status == PRONY_OK)
            status = count_node(b, node, stack);
    }
    prn_free(stack);
    return status;
}
