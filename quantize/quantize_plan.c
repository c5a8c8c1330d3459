/* Names, values and uses of a graph, and which of its nodes are quantized; see the header. quantize_kinds.c
 * finds the kinds. */
#include "quantize/quantize_plan.h"

#include <string.h>

size_t prn_quant_operands(const prn_quant_plan *plan, size_t n)
{
    const prn_model_node *node = &plan->graph->nodes[n];
    if (plan->nodes[n].kind == PRN_QUANT_ADD || plan->nodes[n].kind == PRN_QUANT_MUL) return 2;
    if (plan->nodes[n].kind == PRN_QUANT_MAP) return 0;
    return plan->nodes[n].kind == PRN_QUANT_MOVE && strcmp(node->op_type, "Concat") == 0 ? node->input_count : 1;
}

/* ---- making ---- */

static void quantize_plan_add_value(prn_quant_plan *plan, const char *name, const prony_value *info, size_t producer,
                                    size_t initializer)
{
    if (!*name) return;
    prn_quant_value *v = &plan->values[plan->value_count];
    *v = (prn_quant_value){.name = name, .producer = producer, .initializer = initializer};
    v->info = info ? *info : (prony_value){.shape = {.rank = -1}};
    v->constant = initializer != PRN_QUANT_NONE;
    plan->names[plan->value_count] = (prn_name_entry){name, 0, plan->value_count};
    plan->value_count++;
}

/* plan->values has initializers, inputs and outputs of nodes in this order; plan->names is sorted for the look-ups.
 * `most` is an upper bound, since optional outputs may be missing. A Constant node's value is the last that was
 * added. */
static prony_status list_values(prn_quant_plan *plan, prony_error *error)
{
    const prn_graph *g = plan->graph;
    size_t most = g->initializer_count + g->input_count + 1;
    for (size_t n = 0; n < g->node_count; n++) most += g->nodes[n].output_count;
    plan->values = prn_bump_alloc(&plan->pool, most, sizeof *plan->values);
    plan->names = prn_bump_alloc(&plan->pool, most, sizeof *plan->names);
    plan->nodes = prn_bump_alloc(&plan->pool, g->node_count + 1, sizeof *plan->nodes);
    if (!plan->values || !plan->names || !plan->nodes) return prn_no_memory(error);
    for (size_t i = 0; i < g->initializer_count; i++)
        quantize_plan_add_value(plan, g->initializers[i].name, &g->initializers[i].value, PRN_QUANT_NONE, i);
    for (size_t i = 0; i < g->input_count; i++)
        quantize_plan_add_value(plan, g->inputs[i].name, NULL, PRN_QUANT_NONE, PRN_QUANT_NONE);
    for (size_t n = 0; n < g->node_count; n++) {
        const prn_model_node *node = &g->nodes[n];
        plan->nodes[n] = (prn_quant_node){.norm = PRN_QUANT_NONE,
                                          .clamp = PRN_QUANT_NONE,
                                          .norm_of = PRN_QUANT_NONE,
                                          .clamp_of = PRN_QUANT_NONE,
                                          .map_of = PRN_QUANT_NONE,
                                          .root = PRN_QUANT_NONE,
                                          .result = PRN_QUANT_NONE};
        for (size_t k = 0; k < node->output_count; k++)
            quantize_plan_add_value(plan, node->outputs[k], NULL, n, PRN_QUANT_NONE);
        const prn_attr *value = prn_quant_is_op(node, "Constant") ? prn_attr_find(&node->attributes, "value") : NULL;
        if (!value || !value->tensor || !*node->outputs[0]) continue;
        plan->values[plan->value_count - 1].info = *value->tensor;
        plan->values[plan->value_count - 1].constant = true;
    }
    prn_name_entries_sort(plan->names, plan->value_count);
    return PRONY_OK;
}

static void quantize_plan_copy_types(prn_quant_plan *plan, const prn_program *types)
{
    for (size_t i = 0; i < types->value_count; i++) {
        const prn_value_def *def = types->values[i];
        prn_quant_value *v = prn_quant_value_of(plan, def->name);
        if (!v || v->constant) continue;
        v->info = def->info;
        v->info.data = NULL;
        v->constant = def->constant;
    }
}

static void note_inner(prn_quant_plan *plan, const prn_model_node *node)
{
    for (size_t a = 0; a < node->attributes.count; a++) {
        const prn_attr *attr = &node->attributes.items[a];
        const size_t graphs = attr->type == PRN_ATTR_GRAPH ? 1 : attr->type == PRN_ATTR_GRAPHS ? attr->count : 0;
        for (size_t i = 0; i < graphs && attr->graph; i++) {
            for (size_t k = 0; k < attr->graph[i].captured_count; k++) {
                prn_quant_value *v = prn_quant_value_of(plan, attr->graph[i].captured[k]);
                if (v) v->outside = true;
            }
        }
    }
}

/* Counts the uses, then cuts one array into a slice per value, then fills the slices. `use_count` is the cursor of the
 * last pass. Values that subgraphs or the caller read are `outside`: their float form has to stay. */
static prony_status note_uses(prn_quant_plan *plan, prony_error *error)
{
    const prn_graph *g = plan->graph;
    size_t total = 0;
    for (size_t n = 0; n < g->node_count; n++) {
        note_inner(plan, &g->nodes[n]);
        for (size_t i = 0; i < g->nodes[n].input_count; i++) {
            prn_quant_value *v = prn_quant_value_of(plan, g->nodes[n].inputs[i]);
            if (v) v->use_count++, total++;
        }
    }
    for (size_t k = 0; k < g->output_count; k++) {
        prn_quant_value *v = prn_quant_value_of(plan, g->outputs[k].name);
        if (v) v->outside = true;
    }
    prn_quant_use *all = prn_bump_alloc(&plan->pool, total + 1, sizeof *all);
    if (!all) return prn_no_memory(error);
    for (size_t v = 0; v < plan->value_count; v++) {
        plan->values[v].uses = all;
        all += plan->values[v].use_count;
        plan->values[v].use_count = 0;
    }
    for (size_t n = 0; n < g->node_count; n++) {
        for (size_t i = 0; i < g->nodes[n].input_count; i++) {
            prn_quant_value *v = prn_quant_value_of(plan, g->nodes[n].inputs[i]);
            if (v) v->uses[v->use_count++] = (prn_quant_use){n, i};
        }
    }
    return PRONY_OK;
}

prony_status prn_quant_plan_make(prn_quant_plan *plan, const prony_model *model, const prn_program *types,
                                 prony_error *error)
{
    *plan = (prn_quant_plan){.model = model, .graph = &model->file->graph};
    PRN_TRY(list_values(plan, error));
    quantize_plan_copy_types(plan, types);
    PRN_TRY(note_uses(plan, error));
    prn_quant_classify(plan);
    return PRONY_OK;
}

void prn_quant_plan_release(prn_quant_plan *plan)
{
    prn_bump_release(&plan->pool);
    *plan = (prn_quant_plan){0};
}

/* ---- deciding ---- */

static void mark_made(prn_quant_plan *plan)
{
    for (size_t v = 0; v < plan->value_count; v++) plan->values[v].made_coded = false;
    for (size_t n = 0; n < plan->graph->node_count; n++)
        if (plan->nodes[n].quantized) plan->values[plan->nodes[n].result].made_coded = true;
}

static bool is_read_by_codes(const prn_quant_plan *plan, const prn_quant_value *v)
{
    for (size_t u = 0; u < v->use_count; u++) {
        const size_t n = v->uses[u].node, last = plan->nodes[n].map_of;
        if (plan->nodes[n].quantized && v->uses[u].input < prn_quant_operands(plan, n)) return true;
        if (last != PRN_QUANT_NONE && plan->nodes[last].quantized && &plan->values[plan->nodes[last].root] == v)
            return true;
    }
    return false;
}

/* true: a node that is not a contraction stands between quantized nodes. */
static bool is_between(const prn_quant_plan *plan, size_t n)
{
    const prn_model_node *node = &plan->graph->nodes[n];
    const size_t operands = prn_quant_operands(plan, n);
    size_t made = 0;
    for (size_t i = 0; i < operands; i++) made += prn_quant_value_of(plan, node->inputs[i])->made_coded;
    if (plan->nodes[n].kind == PRN_QUANT_ADD ? made == 0 : made < operands) return false;
    if (plan->nodes[n].kind == PRN_QUANT_MAP && !plan->values[plan->nodes[n].root].made_coded) return false;
    return is_read_by_codes(plan, &plan->values[plan->nodes[n].result]);
}

static size_t quantize_plan_group_of(const prn_quant_plan *plan, size_t v)
{
    for (prn_quant_value *all = plan->values; all[v].group != v; v = all[v].group)
        all[v].group = all[all[v].group].group;
    return v;
}

static void mark_coded(prn_quant_plan *plan)
{
    for (size_t v = 0; v < plan->value_count; v++) {
        plan->values[v].coded = false;
        plan->values[v].group = v;
    }
    for (size_t n = 0; n < plan->graph->node_count; n++) {
        const prn_quant_node *q = &plan->nodes[n];
        if (!q->quantized) continue;
        plan->values[q->result].coded = true;
        for (size_t i = 0; i < prn_quant_operands(plan, n); i++) {
            const size_t v = prn_quant_value_find(plan, plan->graph->nodes[n].inputs[i]);
            plan->values[v].coded = true;
            if (q->kind == PRN_QUANT_MOVE)
                plan->values[quantize_plan_group_of(plan, v)].group = quantize_plan_group_of(plan, q->result);
        }
    }
    for (size_t v = 0; v < plan->value_count; v++) plan->values[v].group = quantize_plan_group_of(plan, v);
}

/* Forwards for what is made of floats, backwards for what floats alone read. */
static bool drop_outer(prn_quant_plan *plan)
{
    const size_t count = plan->graph->node_count;
    bool changed = false;
    for (size_t i = 0; i < 2 * count; i++) {
        prn_quant_node *q = &plan->nodes[i < count ? i : 2 * count - 1 - i];
        if (!q->quantized || prn_quant_is_contraction(q) || is_between(plan, (size_t)(q - plan->nodes))) continue;
        q->quantized = plan->values[q->result].made_coded = false;
        changed = true;
    }
    return changed;
}

static bool is_product(const prn_quant_node *node)
{
    return node->kind == PRN_QUANT_GEMM || node->kind == PRN_QUANT_MATMUL;
}

void prn_quant_plan_resolve(prn_quant_plan *plan)
{
    for (size_t n = 0; n < plan->graph->node_count; n++)
        plan->nodes[n].quantized = plan->nodes[n].kind != PRN_QUANT_OTHER && !plan->nodes[n].kept &&
                                   plan->nodes[n].result != PRN_QUANT_NONE &&
                                   (!plan->dynamic || is_product(&plan->nodes[n]));
    if (plan->dynamic) return;
    mark_made(plan);
    while (drop_outer(plan)) continue;
    mark_coded(plan);
}
