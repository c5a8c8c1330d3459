/* Notes why no rewrite quantised an operator; the report shows the reason. */
#include "engine/rewrites/quantized_value.h"
#include "base/threads/cancel.h"

#include <stdlib.h>
#include <string.h>

static bool quantized_leftovers_has_form(const prn_node_def *node)
{
    static const char *const forms[] = {
        "Conv",    "ConvTranspose", "Gemm",      "MatMul",  "MaxPool",   "AveragePool", "GlobalAveragePool",
        "Reshape", "Flatten",       "Transpose", "Squeeze", "Unsqueeze", "Slice",       "Concat",
        "Expand",  "Identity",      NULL};
    return prn_node_is_any(node, forms) || prn_rewrite_is_elementwise(node);
}

/* true: only QuantizeLinear reads the node's result, or an Add, Mul, Relu or Clip with such a reader. */
static bool is_stored(const prn_rewriter *r, const prn_node_def *node, int depth)
{
    static const char *const between[] = {"Add", "Mul", "Relu", "Clip", NULL};
    const uint32_t value = node->outputs[0];
    if (!prn_rewrite_used_once(r, value)) return false;
    for (const prn_use *use = r->program->values[value]->places; use; use = use->next) {
        const prn_node_def *reader = use->node;
        if (!reader || reader->dead || use->index >= reader->input_count || reader->inputs[use->index] != value)
            continue;
        if (prn_node_is(reader, "QuantizeLinear")) return true;
        return depth > 0 && prn_node_is_any(reader, between) && is_stored(r, reader, depth - 1);
    }
    return false;
}

static int quantized_leftovers_by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* true: prony_model_quantize left one of the node's layers in float. */
static bool quantized_leftovers_is_kept(const prn_rewriter *r, const prn_node_def *node)
{
    const prn_model_quantized *q = &r->program->model->quantized;
    for (uint32_t i = 0; q->kept_count && i < node->layer_count; i++) {
        const prony_node *layer = &r->program->layers[node->layers[i]].info;
        if (bsearch(&layer->name, q->kept, q->kept_count, sizeof *q->kept, quantized_leftovers_by_text)) return true;
    }
    return false;
}

static prn_stays_in_float why(prn_rewriter *r, const prn_node_def *node)
{
    const uint32_t types = PRN_TYPE(PRONY_INT8) | PRN_TYPE(PRONY_UINT8);
    bool coded = false, floats = false;
    for (uint32_t i = 0; i < node->input_count; i++) {
        prn_quantized_value found;
        if (!prn_rewrite_is_f32(r, node->inputs[i])) continue;
        if (prn_rewrite_read_quantized(r, node->inputs[i], types, &found))
            coded = true;
        else if (!r->program->values[node->inputs[i]]->constant)
            floats = true;
    }
    if (!coded) return PRN_FLOAT_NOTHING_SAID;
    if (!quantized_leftovers_has_form(node)) return PRN_FLOAT_NO_FORM;
    if (floats) return PRN_FLOAT_OPERAND;
    return is_stored(r, node, 2) ? PRN_FLOAT_PARAMETERS : PRN_FLOAT_NOT_STORED;
}

prony_status prn_rewrite_say_floats(prn_rewriter *r)
{
    for (uint32_t n = 0; n < r->program->node_count; n++) {
        PRN_TRY(prn_cancel_check(r->error));
        prn_node_def *node = r->program->nodes[n];
        if (node->dead || node->dynamic || !node->binding.op || node->output_count < 1) continue;
        if (node->outputs[0] == PRN_NO_VALUE || prn_node_is(node, "QuantizeLinear")) continue;
        node->stays_in_float = (uint8_t)(quantized_leftovers_is_kept(r, node) ? PRN_FLOAT_KEPT : why(r, node));
    }
    return PRONY_OK;
}
