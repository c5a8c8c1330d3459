/* Bind: one forward walk over a graph at fixed input shapes. Names become value ids, shapes are inferred, whatever depends
 * on constants alone is evaluated, an If with a constant condition is replaced by its branch, and at the end every live node
 * is counted. A failed bind releases the whole program; nothing partial escapes. */
#include "engine/host.h"
#include "engine/names.h"

#include <string.h>

/* Larger results of constant subgraphs stay run-time work: a model file must not be able to claim memory by a constant. */
#define PRN_FOLD_LIMIT_BYTES (UINT64_C(1) << 30)
/* In a static program only constants up to this size are read: enough for shapes, no weights. */
#define PRN_STATIC_READ_BYTES 65536

typedef struct prn_binder {
    prn_program *program;
    prony_error *error;
} prn_binder;

static prony_status add_weight(prn_binder *b, prn_value_def *value)
{
    prn_program *p = b->program;
    int64_t elements = prony_shape_numel(&value->info.shape);
    uint32_t *index = prn_pool_alloc(&p->pool, 1, sizeof *index);
    if (!index || !PRN_GROW(p->weights, p->weight_capacity, p->weight_count + 1)) return prn_no_memory(b->error);
    p->weights[p->weight_count] = (prn_weight){.elements = elements > 0 ? (uint64_t)elements : 0,
                                               .bytes = prn_value_bytes(&value->info),
                                               .dtype = value->info.dtype,
                                               .rank = value->info.shape.rank};
    *index = (uint32_t)p->weight_count++;
    value->weights = index;
    value->weight_count = 1;
    return PRONY_OK;
}

typedef struct copy_source {
    const void *data;
    size_t bytes;
} copy_source;

static prony_status copy_bytes(void *argument, void *data)
{
    const copy_source *source = argument;
    memcpy(data, source->data, source->bytes);
    return PRONY_OK;
}

/* Makes `value` the constant `tensor`, copied only where the file has it unaligned. */
static prony_status set_constant(prn_binder *b, uint32_t id, const prony_value *tensor)
{
    prn_program *p = b->program;
    prn_value_def *value = p->values[id];
    size_t width = prony_dtype_bytes(tensor->dtype, 1);
    size_t bytes = prn_value_bytes(tensor);
    if (width > 8) width = 8;
    value->info = *tensor;
    value->constant = true;
    bool aligned = width == 0 || (uintptr_t)tensor->data % width == 0;
    if (p->static_only && bytes > PRN_STATIC_READ_BYTES) {
        value->info.data = NULL;
    } else if (!aligned && bytes > 0) {
        copy_source source = {tensor->data, bytes};
        const void *copy;
        PRN_TRY(prn_shared_get(p->model->shared, &p->refs, tensor->data, "aligned", bytes, copy_bytes, &source, &copy,
                               b->error));
        value->info.data = (void *)(uintptr_t)copy;
    }
    return add_weight(b, value);
}

static prony_status define(prn_binder *b, prn_names *scope, const char *name, uint32_t *out)
{
    uint32_t id = prn_program_add_value(b->program, name);
    if (id == PRN_NO_VALUE || !prn_names_put(scope, name, id)) return prn_no_memory(b->error);
    *out = id;
    return PRONY_OK;
}

static prony_status bind_initializers(prn_binder *b, prn_names *scope, const prn_graph *graph)
{
    for (size_t i = 0; i < graph->initializer_count; i++) {
        uint32_t id = PRN_NO_VALUE;
        PRN_TRY(define(b, scope, graph->initializers[i].name, &id));
        PRN_TRY(set_constant(b, id, &graph->initializers[i].value));
    }
    return PRONY_OK;
}

/* ---- one node ---- */

static prony_status resolve_values(prn_binder *b, prn_names *scope, const prn_model_node *source, prn_node_def *node)
{
    prn_program *p = b->program;
    uint32_t *in = prn_pool_alloc(&p->pool, source->input_count + 1, sizeof *in);
    uint32_t *out = prn_pool_alloc(&p->pool, source->output_count + 1, sizeof *out);
    if (!in || !out) return prn_no_memory(b->error);
    for (size_t i = 0; i < source->input_count; i++) {
        in[i] = PRN_NO_VALUE;
        if (*source->inputs[i] && !prn_names_get(scope, source->inputs[i], &in[i]))
            return prn_fail(b->error, PRONY_INVALID_MODEL, "%s: node '%s' (%s): input '%s' is produced nowhere",
                            p->model->file->name, node->info.name, node->info.op_type, source->inputs[i]);
    }
    for (size_t k = 0; k < source->output_count; k++) {
        out[k] = PRN_NO_VALUE;
        if (*source->outputs[k]) PRN_TRY(define(b, scope, source->outputs[k], &out[k]));
    }
    if (!prn_node_set_inputs(p, node, in, (uint32_t)source->input_count) ||
        !prn_node_set_outputs(p, node, out, (uint32_t)source->output_count))
        return prn_no_memory(b->error);
    return PRONY_OK;
}

static prony_status add_layer(prn_binder *b, prn_node_def *node)
{
    prn_program *p = b->program;
    uint32_t *index = prn_pool_alloc(&p->pool, 1, sizeof *index);
    if (!index || !PRN_GROW(p->layers, p->layer_capacity, p->layer_count + 1)) return prn_no_memory(b->error);
    p->layers[p->layer_count] = (prn_layer){.info = node->info,
                                            .inputs = node->inputs,
                                            .outputs = node->outputs,
                                            .input_count = node->input_count,
                                            .output_count = node->output_count};
    *index = (uint32_t)p->layer_count++;
    node->layers = index;
    node->layer_count = 1;
    /* The layer keeps the original wiring whatever rewrites do to the node. */
    if (!prn_node_set_inputs(p, node, node->inputs, node->input_count)) return prn_no_memory(b->error);
    return PRONY_OK;
}

static prony_status check_counts(const prony_context *context, const prn_op *op)
{
    if ((int)context->input_count < op->min_inputs ||
        (op->max_inputs >= 0 && (int)context->input_count > op->max_inputs))
        return prony_fail(context, PRONY_INVALID_MODEL, "has %zu inputs; %d to %d are allowed", context->input_count,
                          op->min_inputs, op->max_inputs);
    if ((int)context->output_count < op->min_outputs ||
        (op->max_outputs >= 0 && (int)context->output_count > op->max_outputs))
        return prony_fail(context, PRONY_INVALID_MODEL, "has %zu outputs; %d to %d are allowed", context->output_count,
                          op->min_outputs, op->max_outputs);
    for (int i = 0; i < op->min_inputs; i++)
        if (!context->inputs[i]) return prony_fail(context, PRONY_INVALID_MODEL, "input %d is required", i);
    return PRONY_OK;
}

static prony_status bind_operator(prn_binder *b, prn_node_def *node)
{
    prn_program *p = b->program;
    node->binding = prn_registry_find(p->model->registry, node->info.domain, node->info.op_type, node->info.opset);
    const prn_op *op = node->binding.op;
    if (op && strcmp(op->domain, "prony") == 0) node->binding.op = NULL; /* internal rows are not for files */
    if (!node->binding.op) return PRONY_OK;
    node->params = prn_pool_alloc(&p->pool, 1, op->params_bytes ? op->params_bytes : 1);
    if (!node->params) return prn_no_memory(b->error);
    PRN_TRY(prn_params_parse(op, &node->info, node->params, b->error));
    prony_context context = prn_node_context(p, node, b->error);
    PRN_TRY(check_counts(&context, op));
    return op->check ? op->check(&context) : PRONY_OK;
}

static prony_status bind_children(prn_binder *b, prn_names *scope, prn_node_def *node)
{
    prn_program *p = b->program;
    uint32_t count = 0;
    for (size_t a = 0; a < node->info.attributes->count; a++) count += node->info.attributes->items[a].graph != NULL;
    if (count == 0) return PRONY_OK;
    node->children = prn_pool_alloc(&p->pool, count, sizeof *node->children);
    if (!node->children) return prn_no_memory(b->error);
    for (size_t a = 0; a < node->info.attributes->count; a++) {
        const prn_graph *graph = node->info.attributes->items[a].graph;
        if (!graph) continue;
        prn_child *child = &node->children[node->child_count];
        child->graph = graph;
        child->captured = prn_pool_alloc(&p->pool, graph->captured_count + 1, sizeof *child->captured);
        if (!child->captured) return prn_no_memory(b->error);
        for (size_t k = 0; k < graph->captured_count; k++)
            if (!prn_names_get(scope, graph->captured[k], &child->captured[k]))
                return prn_fail(b->error, PRONY_INVALID_MODEL, "%s: node '%s' (%s): its subgraph uses '%s', which is "
                                "produced nowhere", p->model->file->name, node->info.name, node->info.op_type,
                                graph->captured[k]);
        child->captured_count = (uint32_t)graph->captured_count;
        node->child_count++;
    }
    return PRONY_OK;
}

static prony_status infer_node(prn_binder *b, prn_node_def *node)
{
    if (!node->binding.op) {
        node->dynamic = true;
        return PRONY_OK;
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        const prony_value *in = node->input_values[i];
        if (in && in->kind == PRONY_TENSOR && (in->dtype == PRONY_UNDEFINED || !prn_shape_known(&in->shape)))
            node->dynamic = true;
    }
    if (!node->dynamic) {
        prn_site site = {b->program, node, NULL, NULL};
        prony_context context = prn_node_context(b->program, node, b->error);
        context.host_data = &site;
        context.user = node->binding.infer_user;
        PRN_TRY(node->binding.infer(&context));
        for (uint32_t k = 0; k < node->output_count; k++) {
            prony_value *out = node->output_values[k];
            if (!out || out->kind != PRONY_TENSOR) continue;
            if (!prn_shape_known(&out->shape)) {
                node->dynamic = true;
                out->shape = prn_shape_unknown();
            } else if (out->dtype != PRONY_UNDEFINED && prn_value_bytes(out) == SIZE_MAX) {
                char text[PRN_SHAPE_TEXT_BYTES];
                return prony_fail(&context, PRONY_LIMIT, "output %u, %s, is too large", k, prn_value_text(out, text));
            }
        }
    }
    return PRONY_OK;
}

/* ---- constants ---- */

static bool inputs_constant(const prn_binder *b, const prn_node_def *node, bool *data_there)
{
    *data_there = true;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == PRN_NO_VALUE) continue;
        const prn_value_def *value = b->program->values[node->inputs[i]];
        if (!value->constant) return false;
        if (!value->info.data && prony_shape_numel(&value->info.shape) != 0) *data_there = false;
    }
    return true;
}

/* Union of the weights behind a node's constant inputs. */
static prony_status inherit_weights(prn_binder *b, const prn_node_def *node, prn_value_def *value)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != PRN_NO_VALUE) count += b->program->values[node->inputs[i]]->weight_count;
    uint32_t *weights = prn_pool_alloc(&b->program->pool, count + 1, sizeof *weights);
    if (!weights) return prn_no_memory(b->error);
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == PRN_NO_VALUE) continue;
        const prn_value_def *in = b->program->values[node->inputs[i]];
        for (uint32_t w = 0; w < in->weight_count; w++) weights[value->weight_count++] = in->weights[w];
    }
    value->weights = weights;
    return PRONY_OK;
}

static prony_status evaluate(prn_binder *b, prn_node_def *node)
{
    prony_context context = prn_node_context(b->program, node, b->error);
    prony_value *local = prn_calloc(node->output_count + 1, sizeof *local);
    prony_value **pointers = prn_calloc(node->output_count + 1, sizeof *pointers);
    prony_status status = local && pointers ? PRONY_OK : prn_no_memory(b->error);
    for (uint32_t k = 0; status == PRONY_OK && k < node->output_count; k++) {
        if (!node->output_values[k]) continue;
        local[k] = *node->output_values[k];
        pointers[k] = &local[k];
        size_t bytes = prn_value_bytes(&local[k]);
        local[k].data = prn_alloc_aligned(64, bytes ? bytes : 1);
        if (!local[k].data) status = prn_no_memory(b->error);
    }
    if (status == PRONY_OK) {
        context.outputs = pointers;
        status = prn_node_run_once(node, &context);
    }
    for (uint32_t k = 0; status == PRONY_OK && k < node->output_count; k++) {
        if (!pointers[k]) continue;
        const void *shared;
        status = prn_shared_intern(b->program->model->shared, &b->program->refs, local[k].data,
                                   prn_value_bytes(&local[k]), &shared, b->error);
        local[k].data = NULL;
        if (status == PRONY_OK) node->output_values[k]->data = (void *)(uintptr_t)shared;
    }
    for (uint32_t k = 0; local && k < node->output_count; k++) prn_free_aligned(local[k].data);
    prn_free(local);
    prn_free(pointers);
    return status;
}

static prony_status fold_node(prn_binder *b, prn_node_def *node)
{
    const prn_op *op = node->binding.op;
    prn_program *p = b->program;
    if (node->dynamic || !op || (op->flags & PRN_OP_RANDOM) || node->child_count > 0) return PRONY_OK;
    bool data_there = true;
    bool shape_only = op->flags & PRN_OP_SHAPE_ONLY;
    if (!shape_only && !inputs_constant(b, node, &data_there)) return PRONY_OK;
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < node->output_count; k++) {
        const prony_value *out = node->output_values[k];
        if (!out) continue;
        if (out->kind != PRONY_TENSOR || out->dtype == PRONY_STRING || out->dtype == PRONY_UNDEFINED) return PRONY_OK;
        if (!prn_add_u64(&bytes, bytes, prn_value_bytes(out))) return PRONY_OK;
    }
    if (bytes > PRN_FOLD_LIMIT_BYTES) return PRONY_OK;
    if (data_there && (!p->static_only || bytes <= PRN_STATIC_READ_BYTES)) PRN_TRY(evaluate(b, node));
    for (uint32_t k = 0; k < node->output_count; k++) {
        if (node->outputs[k] == PRN_NO_VALUE) continue;
        p->values[node->outputs[k]]->constant = true;
        p->values[node->outputs[k]]->producer = PRN_NO_NODE;
        if (!shape_only) PRN_TRY(inherit_weights(b, node, p->values[node->outputs[k]]));
    }
    node->dead = true;
    return PRONY_OK;
}

/* A Constant node whose value is a tensor attribute needs no kernel and no copy. */
static prony_status bind_constant_node(prn_binder *b, prn_node_def *node, bool *done)
{
    const prn_attr *value = prn_attr_find(node->info.attributes, "value");
    if (strcmp(node->info.op_type, "Constant") != 0 || *node->info.domain || !value || value->type != PRN_ATTR_TENSOR ||
        node->output_count != 1)
        return PRONY_OK;
    *done = true;
    node->dead = true;
    return set_constant(b, node->outputs[0], value->tensor);
}

/* ---- the walk ---- */

static prony_status bind_nodes(prn_binder *b, prn_names *scope, const prn_graph *graph);

/* An If whose condition is known: its branch takes its place, in the same program. */
static prony_status inline_if(prn_binder *b, prn_names *scope, prn_node_def *node, bool *done)
{
    if (*node->info.domain || strcmp(node->info.op_type, "If") != 0 || node->input_count < 1) return PRONY_OK;
    const prony_value *condition = node->input_values[0];
    if (!condition || !condition->data || condition->dtype != PRONY_BOOL || prony_shape_numel(&condition->shape) != 1)
        return PRONY_OK;
    const char *name = *(const bool *)condition->data ? "then_branch" : "else_branch";
    const prn_attr *branch = prn_attr_find(node->info.attributes, name);
    if (!branch || !branch->graph || branch->graph->output_count != node->output_count || branch->graph->input_count)
        return PRONY_OK;
    prn_names inner = {.outer = scope};
    prony_status status = bind_nodes(b, &inner, branch->graph);
    for (uint32_t k = 0; status == PRONY_OK && k < node->output_count; k++) {
        uint32_t id;
        if (node->outputs[k] == PRN_NO_VALUE) continue;
        if (!prn_names_get(&inner, branch->graph->outputs[k].name, &id))
            status = prn_fail(b->error, PRONY_INVALID_MODEL, "%s: node '%s' (If): branch output '%s' is produced nowhere",
                              b->program->model->file->name, node->info.name, branch->graph->outputs[k].name);
        else if (!prn_names_put(scope, b->program->values[node->outputs[k]]->name, id))
            status = prn_no_memory(b->error);
        else
            node->outputs[k] = id; /* so that the layer's row shows the branch's type and shape */
    }
    prn_names_free(&inner);
    node->dead = true;
    *done = true;
    return status;
}

static prony_status bind_node(prn_binder *b, prn_names *scope, const prn_model_node *source)
{
    prn_program *p = b->program;
    prn_node_def *node = prn_program_add_node(p);
    if (!node) return prn_no_memory(b->error);
    uint32_t index = (uint32_t)(p->node_count - 1);
    node->info = (prony_node){.name = source->name,
                              .op_type = source->op_type,
                              .domain = source->domain,
                              .opset = prn_model_opset(p->model->file, source->domain),
                              .attributes = &source->attributes};
    if (!*source->name) {
        node->info.name = prn_pool_printf(&p->pool, "%s_%u", source->op_type, source->file_index);
        if (!node->info.name) return prn_no_memory(b->error);
    }
    PRN_TRY(resolve_values(b, scope, source, node));
    for (uint32_t k = 0; k < node->output_count; k++)
        if (node->outputs[k] != PRN_NO_VALUE) p->values[node->outputs[k]]->producer = index;
    PRN_TRY(add_layer(b, node));
    bool done = false;
    PRN_TRY(bind_constant_node(b, node, &done));
    if (done) return PRONY_OK;
    PRN_TRY(bind_operator(b, node));
    PRN_TRY(inline_if(b, scope, node, &done));
    if (done) return PRONY_OK;
    PRN_TRY(bind_children(b, scope, node));
    PRN_TRY(infer_node(b, node));
    return fold_node(b, node);
}

static prony_status bind_nodes(prn_binder *b, prn_names *scope, const prn_graph *graph)
{
    PRN_TRY(bind_initializers(b, scope, graph));
    for (size_t n = 0; n < graph->node_count; n++) PRN_TRY(bind_node(b, scope, &graph->nodes[n]));
    return PRONY_OK;
}

/* ---- inputs, outputs, costs ---- */

static prony_status bind_inputs(prn_binder *b, prn_names *scope, const prn_graph *graph, const prn_program *parent,
                                const uint32_t *captured, const prn_bind_options *options)
{
    prn_program *p = b->program;
    size_t captured_count = parent ? graph->captured_count : 0;
    p->inputs = prn_pool_alloc(&p->pool, graph->input_count + captured_count + 1, sizeof *p->inputs);
    if (!p->inputs) return prn_no_memory(b->error);
    if (options->input_count != graph->input_count)
        return prn_fail(b->error, PRONY_INVALID_ARGUMENT, "%s: graph '%s' takes %zu inputs, %zu were given",
                        p->model->file->name, graph->name, graph->input_count, options->input_count);
    for (size_t i = 0; i < graph->input_count + captured_count; i++) {
        const char *name = i < graph->input_count ? graph->inputs[i].name : graph->captured[i - graph->input_count];
        uint32_t id = PRN_NO_VALUE;
        PRN_TRY(define(b, scope, name, &id));
        prn_value_def *value = p->values[id];
        value->input = true;
        if (i < graph->input_count) {
            value->info = options->inputs[i];
            value->info.data = NULL;
        } else {
            const prn_value_def *outer = parent->values[captured[i - graph->input_count]];
            value->info = outer->info;
            value->constant = outer->constant;
        }
        p->inputs[p->input_count++] = id;
    }
    return PRONY_OK;
}

static prony_status bind_outputs(prn_binder *b, prn_names *scope, const prn_graph *graph)
{
    prn_program *p = b->program;
    p->outputs = prn_pool_alloc(&p->pool, graph->output_count + 1, sizeof *p->outputs);
    if (!p->outputs) return prn_no_memory(b->error);
    for (size_t k = 0; k < graph->output_count; k++) {
        uint32_t id;
        if (!prn_names_get(scope, graph->outputs[k].name, &id))
            return prn_fail(b->error, PRONY_INVALID_MODEL, "%s: graph output '%s' is produced nowhere",
                            p->model->file->name, graph->outputs[k].name);
        p->values[id]->output = true;
        p->outputs[p->output_count++] = id;
    }
    return PRONY_OK;
}

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

static void claim_weights(prn_program *p, const prn_value_def *value, const prn_op *op, prony_cost *cost)
{
    for (uint32_t w = 0; w < value->weight_count; w++) {
        prn_weight *weight = &p->weights[value->weights[w]];
        if (weight->claimed || !is_weight(weight, op)) continue;
        weight->claimed = true;
        cost->parameters += weight->elements;
    }
}

static prony_status count_node(prn_binder *b, prn_node_def *node)
{
    prn_program *p = b->program;
    prn_layer *layer = &p->layers[node->layers[0]];
    layer->dynamic = node->dynamic;
    const prn_op *op = node->binding.op;
    if (op) {
        uint64_t parameters = 0;
        prony_cost claimed = {0};
        for (uint32_t i = 0; i < node->input_count; i++)
            if (node->inputs[i] != PRN_NO_VALUE && !(i < 32 && (op->non_weight_inputs >> i & 1)))
                claim_weights(p, p->values[node->inputs[i]], op, &claimed);
        for (uint32_t c = 0; c < node->child_count; c++)
            for (uint32_t k = 0; k < node->children[c].captured_count; k++)
                claim_weights(p, p->values[node->children[c].captured[k]], op, &claimed);
        parameters = claimed.parameters;
        if (!node->dynamic) {
            prn_site site = {p, node, NULL, NULL};
            prony_context context = prn_node_context(p, node, b->error);
            context.host_data = &site;
            PRN_TRY(prn_node_cost(node, &context, &layer->cost));
        }
        layer->cost.parameters += parameters;
    }
    return PRONY_OK;
}

static prony_status count_nodes(prn_binder *b)
{
    prn_program *p = b->program;
    for (size_t n = 0; n < p->node_count; n++) {
        prn_node_def *node = p->nodes[n];
        if (node->dead)
            p->layers[node->layers[0]].folded = true;
        else
            PRN_TRY(count_node(b, node));
    }
    return PRONY_OK;
}

prony_status prn_program_bind(prn_program **out, const prony_model *model, const prn_graph *graph,
                              const prn_program *parent, const uint32_t *captured, const prn_bind_options *options,
                              prony_error *error)
{
    prn_program *program = prn_calloc(1, sizeof *program);
    if (!program) return prn_no_memory(error);
    program->model = model;
    program->graph = graph;
    program->parent = parent;
    program->static_only = options->static_only;
    prn_binder binder = {program, error};
    prn_names scope = {0};
    prony_status status = bind_inputs(&binder, &scope, graph, parent, captured, options);
    if (status == PRONY_OK) status = bind_nodes(&binder, &scope, graph);
    if (status == PRONY_OK) status = bind_outputs(&binder, &scope, graph);
    if (status == PRONY_OK && !prn_program_sweep(program)) status = prn_no_memory(error);
    if (status == PRONY_OK) status = count_nodes(&binder);
    prn_names_free(&scope);
    if (status == PRONY_OK)
        *out = program;
    else
        prn_program_release(program);
    return status;
}
