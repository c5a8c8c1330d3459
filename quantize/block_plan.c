/* Implements block_plan.h. */
#include "quantize/block_plan.h"

#include "loaders/onnx/reader.h"
#include "quantize/quantize_plan.h"

#include <string.h>

/* Weights with a smaller K stay in float: the scales of their blocks would take more than the codes save. */
enum { LEAST_K = 16, LEAST_GEMM_OPSET = 7 };

static bool block_plan_is_op(const prn_model_node *node, const char *name)
{
    return !*node->domain && strcmp(node->op_type, name) == 0;
}

/* ---- entries ---- */

static prony_status block_plan_add_entry(prn_block_plan *plan, prn_block_scope *scope, const prn_block_entry *entry,
                                         prony_error *error)
{
    if (!PRN_GROW(plan->entries, plan->entry_capacity, plan->entry_count + 1) ||
        (*entry->name && !prn_names_put(&scope->names, entry->name, (uint32_t)plan->entry_count)))
        return prn_no_memory(error);
    plan->entries[plan->entry_count++] = *entry;
    return PRONY_OK;
}

/* Lists a graph's values: initializers, inputs, outputs of nodes. A later entry hides an earlier one of the same
 * name. */
static prony_status block_plan_list(prn_block_plan *plan, prn_block_scope *scope, size_t at, prony_error *error)
{
    const prn_graph *g = scope->graph;
    prn_block_entry entry = {.scope = at, .node = PRN_BLOCK_NONE, .initializer = PRN_BLOCK_NONE};
    scope->first = plan->entry_count;
    for (size_t i = 0; i < g->initializer_count; i++) {
        entry.initializer = i;
        entry.name = g->initializers[i].name;
        PRN_TRY(block_plan_add_entry(plan, scope, &entry, error));
    }
    /* An initializer that is an input too is a default value, behind the other inputs: the input hides it. */
    entry.input = true;
    for (size_t i = 0; i < g->input_count + g->optional_count; i++) {
        entry.initializer = i < g->input_count ? PRN_BLOCK_NONE : g->defaults[i - g->input_count];
        entry.name = g->inputs[i].name;
        PRN_TRY(block_plan_add_entry(plan, scope, &entry, error));
    }
    entry.initializer = PRN_BLOCK_NONE;
    entry.input = false;
    for (size_t n = 0; n < g->node_count; n++) {
        scope->outputs[n] = plan->entry_count;
        scope->product_of[n] = PRN_BLOCK_NONE;
        entry.node = n;
        for (size_t k = 0; k < g->nodes[n].output_count; k++) {
            entry.name = g->nodes[n].outputs[k];
            PRN_TRY(block_plan_add_entry(plan, scope, &entry, error));
        }
    }
    return PRONY_OK;
}

/* Adds a graph and those nested in it. */
static prony_status block_plan_add_scope(prn_block_plan *plan, const prn_graph *graph, const prn_names *outer,
                                         prony_error *error)
{
    prn_block_scope *scope = prn_bump_alloc(&plan->pool, 1, sizeof *scope);
    if (!scope || !PRN_GROW(plan->scopes, plan->scope_capacity, plan->scope_count + 1)) return prn_no_memory(error);
    const size_t at = plan->scope_count++;
    plan->scopes[at] = scope;
    *scope = (prn_block_scope){.graph = graph, .names = {.outer = outer}};
    scope->outputs = prn_bump_alloc(&plan->pool, graph->node_count + 1, sizeof *scope->outputs);
    scope->product_of = prn_bump_alloc(&plan->pool, graph->node_count + 1, sizeof *scope->product_of);
    if (!scope->outputs || !scope->product_of) return prn_no_memory(error);
    PRN_TRY(block_plan_list(plan, scope, at, error));
    for (size_t n = 0; n < graph->node_count; n++) {
        const prn_attr_list *list = &graph->nodes[n].attributes;
        for (size_t a = 0; a < list->count; a++) {
            const prn_attr *attr = &list->items[a];
            const size_t graphs = attr->type == PRN_ATTR_GRAPH ? 1 : attr->type == PRN_ATTR_GRAPHS ? attr->count : 0;
            for (size_t i = 0; i < graphs && attr->graph; i++)
                PRN_TRY(block_plan_add_scope(plan, &attr->graph[i], &scope->names, error));
        }
    }
    return PRONY_OK;
}

static void block_plan_count_uses(prn_block_plan *plan)
{
    uint32_t entry;
    for (size_t s = 0; s < plan->scope_count; s++) {
        const prn_block_scope *scope = plan->scopes[s];
        for (size_t n = 0; n < scope->graph->node_count; n++)
            for (size_t i = 0; i < scope->graph->nodes[n].input_count; i++)
                if (prn_names_get(&scope->names, scope->graph->nodes[n].inputs[i], &entry)) plan->entries[entry].uses++;
        for (size_t k = 0; k < scope->graph->output_count; k++)
            if (prn_names_get(&scope->names, scope->graph->outputs[k].name, &entry)) plan->entries[entry].uses++;
    }
}

const prony_value *prn_block_constant(const prn_block_plan *plan, size_t entry, bool *aligned)
{
    const prn_block_entry *e = &plan->entries[entry];
    const prn_graph *graph = plan->scopes[e->scope]->graph;
    *aligned = true;
    if (e->initializer != PRN_BLOCK_NONE) {
        *aligned = graph->initializers[e->initializer].aligned;
        return &graph->initializers[e->initializer].value;
    }
    if (e->node == PRN_BLOCK_NONE || !block_plan_is_op(&graph->nodes[e->node], "Constant")) return NULL;
    const prn_attr *value = prn_attr_find(&graph->nodes[e->node].attributes, "value");
    return value ? value->tensor : NULL;
}

const prn_block_scope *prn_block_scope_of(const prn_block_plan *plan, const prn_graph *graph)
{
    for (size_t s = 0; s < plan->scope_count; s++)
        if (plan->scopes[s]->graph == graph) return plan->scopes[s];
    return NULL;
}

/* ---- weights ---- */

static int64_t block_plan_int(const prn_model_node *node, const char *name, int64_t absent)
{
    const prn_attr *a = prn_attr_find(&node->attributes, name);
    return a ? a->i : absent;
}

static const char block_plan_no_memory[] = "out of memory";

/* A reason's text is never NULL, which stands for no reason. */
static const char *block_plan_reason(const char *text)
{
    return text ? text : block_plan_no_memory;
}

/* A constant behind an operand. NULL: it is a matrix that can be quantized by its type; else the reason. */
static const char *block_plan_take(prn_block_plan *plan, uint32_t entry, const prony_value *constant,
                                   prn_block_weight *out)
{
    if (constant->shape.rank != 2 || !constant->data)
        return block_plan_reason(
            prn_bump_printf(&plan->pool, "its weights have rank %d, wanted 2", (int)constant->shape.rank));
    if (out->dtype == PRONY_UNDEFINED) out->dtype = constant->dtype;
    out->entry = entry;
    out->k = constant->shape.dim[out->transposed];
    out->n = constant->shape.dim[!out->transposed];
    const bool known = constant->dtype == PRONY_FLOAT32 || constant->dtype == PRONY_FLOAT16;
    const bool result = out->dtype == PRONY_FLOAT32 || out->dtype == PRONY_FLOAT16;
    if (!known || !result)
        return block_plan_reason(prn_bump_printf(&plan->pool, "its weights are %s, wanted float32 or float16",
                                                 prony_dtype_name(known ? out->dtype : constant->dtype)));
    if (out->k < LEAST_K)
        return block_plan_reason(
            prn_bump_printf(&plan->pool, "K is %lld, wanted %d or more", (long long)out->k, LEAST_K));
    if (out->n >= 1 && out->k <= INT32_MAX && out->n <= INT32_MAX) return NULL;
    return block_plan_reason(
        prn_bump_printf(&plan->pool, "its weights are [%lld, %lld]", (long long)out->k, (long long)out->n));
}

/* A node between a constant and a product: Transpose, Cast to floats or Identity. NULL: the weights pass through it;
 * "": it computes something else; else the reason. */
static const char *block_plan_pass(prn_block_plan *plan, const prn_model_node *node, prn_block_weight *out)
{
    if (block_plan_is_op(node, "DequantizeLinear")) return "its weights are quantized already";
    if (node->input_count != 1 || node->output_count != 1) return "";
    if (block_plan_is_op(node, "Transpose")) {
        const prn_attr *perm = prn_attr_find(&node->attributes, "perm");
        const bool transposes = !perm || (perm->count == 2 && perm->ints[0] == 1 && perm->ints[1] == 0);
        if (!transposes && !(perm->count == 2 && perm->ints[0] == 0)) return "";
        out->transposed ^= transposes;
        return NULL;
    }
    if (block_plan_is_op(node, "Cast")) {
        const prony_dtype to = (prony_dtype)block_plan_int(node, "to", 0);
        if (to != PRONY_FLOAT32 && to != PRONY_FLOAT16) /* changes the weights */
            return block_plan_reason(
                prn_bump_printf(&plan->pool, "a Cast to %s stands behind its weights", prony_dtype_name(to)));
        if (out->dtype == PRONY_UNDEFINED) out->dtype = to;
        return NULL;
    }
    return block_plan_is_op(node, "Identity") ? NULL : "";
}

/* The matrix behind an operand: a constant, through nodes that pass it on. NULL: it is found; "": the operand is a
 * computed value; else the reason why the constant cannot be quantized. */
static const char *block_plan_source(prn_block_plan *plan, const prn_names *names, const char *name,
                                     prn_block_weight *out)
{
    enum { MOST_PASSES = 8 };
    uint32_t entry;
    for (int pass = 0; pass < MOST_PASSES && prn_names_get(names, name, &entry); pass++) {
        const prn_block_entry *e = &plan->entries[entry];
        const prn_block_scope *scope = plan->scopes[e->scope];
        bool aligned;
        if (e->input) return e->initializer != PRN_BLOCK_NONE ? "its weights are the default value of an input" : "";
        const prony_value *constant = prn_block_constant(plan, entry, &aligned);
        if (constant) return block_plan_take(plan, entry, constant, out);
        if (e->node == PRN_BLOCK_NONE) return "";
        const prn_model_node *node = &scope->graph->nodes[e->node];
        const char *reason = block_plan_pass(plan, node, out);
        if (reason) return reason;
        name = node->inputs[0];
        names = &scope->names;
    }
    return "";
}

static const char *block_plan_name(prn_block_plan *plan, const prn_names *taken, const char *base, const char *ending)
{
    uint32_t ignored;
    char *name = prn_bump_printf(&plan->pool, "%s%s", base, ending);
    for (int k = 2; name && prn_names_get(taken, name, &ignored); k++)
        name = prn_bump_printf(&plan->pool, "%s%s_%d", base, ending, k);
    return name;
}

/* New names differ from every name of every graph, and from one another. */
static prony_status block_plan_new_name(prn_block_plan *plan, prn_names *taken, const char *base, const char *ending,
                                        const char **out, prony_error *error)
{
    *out = block_plan_name(plan, taken, base, ending);
    return *out && prn_names_put(taken, *out, 0) ? PRONY_OK : prn_no_memory(error);
}

static prony_status block_plan_add_weight(prn_block_plan *plan, prn_names *taken, const prn_block_weight *found,
                                          size_t *at, prony_error *error)
{
    for (*at = 0; *at < plan->weight_count; ++*at) {
        const prn_block_weight *w = &plan->weights[*at];
        if (w->entry == found->entry && w->transposed == found->transposed && w->dtype == found->dtype) return PRONY_OK;
    }
    if (!PRN_GROW(plan->weights, plan->weight_capacity, plan->weight_count + 1)) return prn_no_memory(error);
    prn_block_weight *weight = &plan->weights[plan->weight_count++];
    const char *base = plan->entries[found->entry].name;
    *weight = *found;
    PRN_TRY(block_plan_new_name(plan, taken, base, plan->format.bits == 4 ? "_Q4" : "_Q8", &weight->codes, error));
    PRN_TRY(block_plan_new_name(plan, taken, base, "_scales", &weight->scales, error));
    return block_plan_new_name(plan, taken, base, "_zero_points", &weight->zeros, error);
}

/* ---- products ---- */

/* NULL: a MatMul, or a Gemm of a product and a sum alone; "": another operator; else the reason. */
static const char *block_plan_unlike(prn_block_plan *plan, const prn_model_node *node)
{
    const prn_attr *alpha = prn_attr_find(&node->attributes, "alpha"), *beta = prn_attr_find(&node->attributes, "beta");
    if (node->input_count < 2 || node->output_count != 1) return "";
    if (block_plan_is_op(node, "MatMul")) return NULL;
    if (!block_plan_is_op(node, "Gemm")) return "";
    const int64_t opset = prn_model_opset(plan->model->file, "");
    if (opset < LEAST_GEMM_OPSET)
        return block_plan_reason(prn_bump_printf(&plan->pool, "it is a Gemm of opset %lld, wanted %d or newer",
                                                 (long long)opset, LEAST_GEMM_OPSET));
    if (alpha && alpha->f != 1.0f)
        return block_plan_reason(prn_bump_printf(&plan->pool, "alpha is %g, wanted 1", (double)alpha->f));
    if (beta && beta->f != 1.0f)
        return block_plan_reason(prn_bump_printf(&plan->pool, "beta is %g, wanted 1", (double)beta->f));
    return block_plan_int(node, "transA", 0) != 0 ? "transA is 1, wanted 0" : NULL;
}

/* One use of an entry less; constants and nodes that pass them on are dropped with the last one. */
static void block_plan_drop_use(prn_block_plan *plan, const prn_names *names, const char *name)
{
    uint32_t entry;
    while (prn_names_get(names, name, &entry)) {
        prn_block_entry *e = &plan->entries[entry];
        if (e->input || --e->uses > 0) return;
        e->dropped = true;
        if (e->node == PRN_BLOCK_NONE) return;
        const prn_block_scope *scope = plan->scopes[e->scope];
        const prn_model_node *node = &scope->graph->nodes[e->node];
        if (node->input_count == 0) return;
        name = node->inputs[0];
        names = &scope->names;
    }
}

static prony_status block_plan_refuse(prn_block_plan *plan, size_t s, size_t n, const char *reason, prony_error *error)
{
    if (!PRN_GROW(plan->refusals, plan->refusal_capacity, plan->refusal_count + 1)) return prn_no_memory(error);
    plan->refusals[plan->refusal_count++] = (prn_block_refusal){.scope = s, .node = n, .reason = reason};
    return PRONY_OK;
}

static prony_status block_plan_find_product(prn_block_plan *plan, prn_names *taken, size_t s, size_t n,
                                            prony_error *error)
{
    prn_block_scope *scope = plan->scopes[s];
    const prn_model_node *node = &scope->graph->nodes[n];
    prn_block_product product = {.scope = s, .node = n};
    prn_block_weight found = {.transposed = block_plan_is_op(node, "Gemm") && block_plan_int(node, "transB", 0) != 0};
    const char *unlike = block_plan_unlike(plan, node);
    if (unlike && !*unlike) return PRONY_OK;
    const char *reason = block_plan_source(plan, &scope->names, node->inputs[1], &found);
    if (reason && !*reason) return PRONY_OK; /* a product of two computed values */
    if (unlike == block_plan_no_memory || reason == block_plan_no_memory) return prn_no_memory(error);
    if (unlike || reason) return block_plan_refuse(plan, s, n, unlike ? unlike : reason, error);
    PRN_TRY(block_plan_add_weight(plan, taken, &found, &product.weight, error));
    if (node->input_count > 2 && *node->inputs[2])
        PRN_TRY(block_plan_new_name(plan, taken, node->outputs[0], "_product", &product.sum, error));
    if (!PRN_GROW(plan->products, plan->product_capacity, plan->product_count + 1)) return prn_no_memory(error);
    scope->product_of[n] = plan->product_count;
    plan->products[plan->product_count++] = product;
    return PRONY_OK;
}

static prony_status block_plan_find(prn_block_plan *plan, prony_error *error)
{
    prn_names taken = {0};
    prony_status status = PRONY_OK;
    for (size_t e = 0; e < plan->entry_count && status == PRONY_OK; e++)
        if (!prn_names_put(&taken, plan->entries[e].name, 0)) status = prn_no_memory(error);
    for (size_t s = 0; s < plan->scope_count; s++)
        for (size_t n = 0; n < plan->scopes[s]->graph->node_count && status == PRONY_OK; n++)
            status = block_plan_find_product(plan, &taken, s, n, error);
    prn_names_free(&taken);
    for (size_t p = 0; p < plan->product_count; p++) {
        const prn_block_scope *scope = plan->scopes[plan->products[p].scope];
        block_plan_drop_use(plan, &scope->names, scope->graph->nodes[plan->products[p].node].inputs[1]);
    }
    return status;
}

static bool block_plan_has_blocks(const prn_block_plan *plan)
{
    for (size_t s = 0; s < plan->scope_count; s++)
        for (size_t n = 0; n < plan->scopes[s]->graph->node_count; n++)
            if (strcmp(plan->scopes[s]->graph->nodes[n].op_type, "MatMulNBits") == 0) return true;
    return false;
}

/* Names the first layers and why each stays in float. */
static prony_status block_plan_nothing(const prn_block_plan *plan, prony_error *error)
{
    prn_quant_reasons reasons = {0};
    for (size_t r = 0; r < plan->refusal_count; r++) {
        const prn_block_refusal *refusal = &plan->refusals[r];
        prn_quant_reasons_add(&reasons, &plan->scopes[refusal->scope]->graph->nodes[refusal->node], refusal->reason);
    }
    return prn_fail(error, PRONY_UNSUPPORTED,
                    "%.300s: nothing to quantize: no MatMul or Gemm has constant weights of float32 or float16, [%d or "
                    "more, N]%s%s",
                    plan->model->file->name, LEAST_K,
                    block_plan_has_blocks(plan) ? "; the model has MatMulNBits already" : "",
                    prn_quant_reasons_text(&reasons));
}

prony_status prn_block_plan_make(prn_block_plan *plan, const prony_model *model, const prn_block_format *format,
                                 prony_error *error)
{
    *plan = (prn_block_plan){.model = model, .format = *format};
    PRN_TRY(block_plan_add_scope(plan, &model->file->graph, NULL, error));
    block_plan_count_uses(plan);
    PRN_TRY(block_plan_find(plan, error));
    return plan->product_count ? PRONY_OK : block_plan_nothing(plan, error);
}

void prn_block_plan_release(prn_block_plan *plan)
{
    for (size_t s = 0; s < plan->scope_count; s++) prn_names_free(&plan->scopes[s]->names);
    prn_free(plan->scopes);
    prn_free(plan->entries);
    prn_free(plan->weights);
    prn_free(plan->products);
    prn_free(plan->refusals);
    prn_bump_release(&plan->pool);
    *plan = (prn_block_plan){0};
}
