/* Looking at a graph that is to be quantized: values by name, nodes by operator and kind. */
#include "quantize/quantize_plan.h"

#include <stdio.h>
#include <string.h>

size_t prn_quant_value_find(const prn_quant_plan *plan, const char *name)
{
    const prn_name_entry *found = *name ? prn_name_entries_find(plan->names, plan->value_count, name) : NULL;
    return found ? found->item : PRN_QUANT_NONE;
}

prn_quant_value *prn_quant_value_of(const prn_quant_plan *plan, const char *name)
{
    const size_t v = prn_quant_value_find(plan, name);
    return v == PRN_QUANT_NONE ? NULL : &plan->values[v];
}

bool prn_quant_is_contraction(const prn_quant_node *node)
{
    return node->kind == PRN_QUANT_CONV || node->kind == PRN_QUANT_GEMM || node->kind == PRN_QUANT_MATMUL;
}

bool prn_quant_is_op(const prn_model_node *node, const char *name)
{
    return !*node->domain && strcmp(node->op_type, name) == 0;
}

/* ---- layers that stay in float ---- */

enum { MOST_NAMED = 3 };

const char *prn_quant_layer_name(const prn_model_node *node)
{
    return *node->name ? node->name : node->outputs[0];
}

/* Texts are cut, so that MOST_NAMED of them and the rest's number fit. */
void prn_quant_reasons_add(prn_quant_reasons *reasons, const prn_model_node *node, const char *reason)
{
    if (reasons->count++ < MOST_NAMED)
        reasons->length +=
            (size_t)snprintf(reasons->text + reasons->length, sizeof reasons->text - reasons->length,
                             "; node '%.60s' (%.20s): %.90s", prn_quant_layer_name(node), node->op_type, reason);
}

const char *prn_quant_reasons_text(prn_quant_reasons *reasons)
{
    if (reasons->count > MOST_NAMED)
        snprintf(reasons->text + reasons->length, sizeof reasons->text - reasons->length, "; and %zu more",
                 reasons->count - MOST_NAMED);
    return reasons->text;
}
