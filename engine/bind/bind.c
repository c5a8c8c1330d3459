/* Bind: one forward walk over a graph at fixed input shapes. Names become value ids, shapes are inferred, and nodes of
 * constants are evaluated. An If with a constant condition is replaced by its branch, and a call of a function by its
 * body. At the end every live node is counted. A failed bind releases the whole program. */
#include "base/memory/stack.h"
#include "base/threads/cancel.h"
#include "engine/bind/bind_pass.h"
#include "engine/bind/node.h"
#include "engine/bind/node_environment.h"

#include <stdio.h>
#include <string.h>

static prony_status bind_define(prn_bind_pass *b, prn_names *scope, const char *name, uint32_t *out)
{
    uint32_t id = prn_program_add_value(b->program, name);
    if (id == PRN_NO_VALUE || !prn_names_put(scope, name, id)) return prn_no_memory(b->error);
    if (id < b->program->fixed_count && b->program->fixed[id])
        b->program->values[id]->extents |= PRN_DYNAMIC_DIMS_FIXED;
    *out = id;
    return PRONY_OK;
}

static prony_status bind_initializers(prn_bind_pass *b, prn_names *scope, const prn_graph *graph)
{
    const bool *overridden = graph == b->program->graph && !b->program->parent ? b->overridden : NULL;
    for (size_t i = 0; i < graph->initializer_count; i++) {
        uint32_t id = PRN_NO_VALUE;
        if (overridden && overridden[i]) continue;
        PRN_TRY(bind_define(b, scope, graph->initializers[i].name, &id));
        prony_status status = prn_bind_constant(b, id, &graph->initializers[i].value);
        if (status == PRONY_OK) continue;
        prn_error_prefix(b->error, "initializer '%s'", graph->initializers[i].name);
        return status;
    }
    return PRONY_OK;
}

prony_status prn_bind_cancelled(const prn_bind_pass *b, const prony_node *node)
{
    prony_status status = prn_cancel_check(b->error);
    if (status != PRONY_OK) prn_error_name_node(b->error, node);
    return status;
}

/* ---- one node ---- */

static PRN_OWN_FRAME prony_status resolve_values(prn_bind_pass *b, prn_names *scope, const prn_model_node *source,
                                                 prn_node_def *node)
{
    prn_program *p = b->program;
    uint32_t few[2][8], *in = few[0], *out = few[1];
    if (source->input_count > 8) in = prn_bump_alloc(&p->pool, source->input_count, sizeof *in);
    if (source->output_count > 8) out = prn_bump_alloc(&p->pool, source->output_count, sizeof *out);
    if (!in || !out) return prn_no_memory(b->error);
    for (size_t i = 0; i < source->input_count; i++) {
        in[i] = b->given ? b->given[i] : PRN_NO_VALUE;
        if (!b->given && *source->inputs[i] && !prn_names_get(scope, source->inputs[i], &in[i]))
            return prn_fail(b->error, PRONY_INVALID_MODEL, "node '%s' (%s): input '%s' is produced nowhere",
                            node->info.name, node->info.op_type, source->inputs[i]);
    }
    for (size_t k = 0; k < source->output_count; k++) {
        out[k] = PRN_NO_VALUE;
        if (*source->outputs[k]) PRN_TRY(bind_define(b, scope, source->outputs[k], &out[k]));
    }
    size_t count = source->input_count;
    while (count > 0 && in[count - 1] == PRN_NO_VALUE) count--; /* a function's body may name what its call omits */
    if (!prn_node_set_inputs(p, node, in, (uint32_t)count) ||
        !prn_node_set_outputs(p, node, out, (uint32_t)source->output_count))
        return prn_no_memory(b->error);
    return PRONY_OK;
}

static PRN_OWN_FRAME prony_status bind_add_layer(prn_bind_pass *b, prn_node_def *node)
{
    prn_program *p = b->program;
    uint32_t *index = prn_bump_alloc(&p->pool, 1, sizeof *index);
    if (!index || !PRN_GROW(p->layers, p->layer_capacity, p->layer_count + 1)) return prn_no_memory(b->error);
    p->layers[p->layer_count] = (prn_layer){.info = node->info,
                                            .inputs = node->inputs,
                                            .outputs = node->outputs,
                                            .input_count = node->input_count,
                                            .output_count = node->output_count};
    *index = (uint32_t)p->layer_count++;
    node->layers = index;
    node->layer_count = 1;
    node->own_layer = *index;
    node->first_kept = node->last_kept = *index + 1;
    /* The layer keeps the original wiring whatever rewrites do to the node. */
    uint32_t *inputs = prn_bump_alloc(&p->pool, node->input_count + 1, sizeof *inputs);
    if (!inputs) return prn_no_memory(b->error);
    if (node->input_count) memcpy(inputs, node->inputs, node->input_count * sizeof *inputs);
    node->inputs = inputs;
    return PRONY_OK;
}

static prony_status bind_check_count(const prony_context *context, const char *what, size_t count, int min, int max)
{
    char allowed[32];
    if ((int)count >= min && (max < 0 || (int)count <= max)) return PRONY_OK;
    if (max < 0)
        snprintf(allowed, sizeof allowed, "at least %d", min);
    else
        snprintf(allowed, sizeof allowed, min == max ? "%d" : "%d to %d", min, max);
    return prony_fail(context, PRONY_INVALID_MODEL, "has %zu %ss, but takes %s", count, what, allowed);
}

static PRN_OWN_FRAME prony_status check_counts(const prony_context *context, const prn_op *op)
{
    PRN_TRY(bind_check_count(context, "input", context->input_count, op->inputs.least, op->inputs.most));
    const prn_arity outputs = prn_op_outputs(op);
    PRN_TRY(bind_check_count(context, "output", context->output_count, outputs.least, outputs.most));
    /* A variadic list may not omit inputs, unless the operator accepts an empty list and checks itself. */
    int required = op->inputs.most < 0 && op->inputs.least > 0 ? (int)context->input_count : op->inputs.least;
    for (int i = 0; i < required; i++)
        if (!context->inputs[i]) return prony_fail(context, PRONY_INVALID_MODEL, "input %d is required", i);
    for (int k = 0; k < outputs.least; k++)
        if (!context->outputs[k]) return prony_fail(context, PRONY_INVALID_MODEL, "output %d is required", k);
    return PRONY_OK;
}

/* true: the graph was derived of the model's (engine/generate/), so its operators may be internal ones. */
static bool bind_is_derived(const prn_program *program)
{
    while (program->parent) program = program->parent;
    return program->graph != &program->model->file->graph;
}

static PRN_OWN_FRAME prony_status bind_operator(prn_bind_pass *b, prn_node_def *node)
{
    prn_program *p = b->program;
    node->binding = prn_registry_find(p->model->registry, node->info.domain, node->info.op_type, node->info.opset);
    const prn_op *op = node->binding.op;
    if (op && strcmp(prn_op_domain(op), "prony") == 0 && !bind_is_derived(p))
        node->binding.op = NULL; /* internal operators are not for files */
    if (!node->binding.op) return PRONY_OK;
    node->params = prn_bump_alloc(&p->pool, 1, op->params_bytes ? op->params_bytes : 1);
    if (!node->params) return prn_no_memory(b->error);
    PRN_TRY(prn_params_parse(op, &node->info, node->params, b->error));
    prony_context context = prn_node_context(p, node, b->error);
    PRN_TRY(check_counts(&context, op));
    return op->check ? op->check(&context) : PRONY_OK;
}

/* Makes a child for each subgraph attribute, with the ids of its captured values. The subgraphs are bound later, when
 * the node is inferred. */
static PRN_OWN_FRAME prony_status bind_children(prn_bind_pass *b, prn_names *scope, prn_node_def *node)
{
    prn_program *p = b->program;
    uint32_t count = 0;
    for (size_t a = 0; a < node->info.attributes->count; a++) count += node->info.attributes->items[a].graph != NULL;
    if (count == 0) return PRONY_OK;
    node->children = prn_bump_alloc(&p->pool, count, sizeof *node->children);
    if (!node->children) return prn_no_memory(b->error);
    for (size_t a = 0; a < node->info.attributes->count; a++) {
        const prn_graph *graph = node->info.attributes->items[a].graph;
        if (!graph) continue;
        prn_child *child = &node->children[node->child_count];
        child->graph = graph;
        child->name = node->info.attributes->items[a].name;
        child->captured = prn_bump_alloc(&p->pool, graph->captured_count + 1, sizeof *child->captured);
        if (!child->captured) return prn_no_memory(b->error);
        for (size_t k = 0; k < graph->captured_count; k++) {
            if (!prn_names_get(scope, graph->captured[k], &child->captured[k]) || child->captured[k] == PRN_NO_VALUE)
                return prn_fail(b->error, PRONY_INVALID_MODEL,
                                "node '%s' (%s): its subgraph uses '%s', which is produced nowhere", node->info.name,
                                node->info.op_type, graph->captured[k]);
            if (!prn_program_note_use(p, child->captured[k], node, (uint32_t)k, node->child_count))
                return prn_no_memory(b->error);
        }
        child->captured_count = (uint32_t)graph->captured_count;
        node->child_count++;
    }
    return PRONY_OK;
}

/* Keeps other values from operators that know tensors only; for kinds not known yet this is checked at run time. */
static PRN_OWN_FRAME prony_status note_open_inputs(prn_bind_pass *b, prn_node_def *node)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        const prony_value *in = node->input_values[i];
        if (!in) continue;
        if (in->kind != PRONY_TENSOR || in->dtype == PRONY_UNDEFINED || !prn_shape_known(&in->shape))
            node->dynamic = true;
        prony_context context = prn_node_context(b->program, node, b->error);
        PRN_TRY(prn_node_check_kind(&context, node, i));
    }
    return PRONY_OK;
}

static PRN_OWN_FRAME prony_status too_large(const prony_context *context, uint32_t k)
{
    char text[PRN_SHAPE_TEXT_BYTES];
    return prony_fail(context, PRONY_LIMIT, "output %u, %s, is too large", k,
                      prn_value_text(context->outputs[k], text));
}

/* Invariant: afterwards every output either has a known type and shape of a representable size, or the node is
 * dynamic. */
prony_status prn_bind_infer(prn_bind_pass *b, prn_node_def *node)
{
    if (!node->binding.op) {
        node->dynamic = true;
        return PRONY_OK;
    }
    PRN_TRY(note_open_inputs(b, node));
    if (node->dynamic && !(node->binding.op->flags & PRN_OP_OPEN)) return PRONY_OK;
    prn_node_environment site = {.program = b->program, .node = node};
    prony_context context = prn_node_context(b->program, node, b->error);
    context.services_data = &site;
    context.user = node->binding.infer_user;
    const size_t held = b->program->refs.held_count;
    prony_status status = prn_bind_hold_for_user(b, node);
    if (status == PRONY_OK) status = node->binding.infer(&context);
    prn_weight_cache_unpin(b->program->model->shared, &b->program->refs, held);
    PRN_TRY(status);
    for (uint32_t k = 0; k < node->output_count; k++) {
        prony_value *out = node->output_values[k];
        if (!out) continue;
        if (out->kind != PRONY_TENSOR || out->dtype == PRONY_UNDEFINED || !prn_shape_known(&out->shape)) {
            node->dynamic = true;
            out->shape = prn_shape_unknown();
        } else if (prn_value_bytes(out) == SIZE_MAX) {
            return too_large(&context, k);
        }
    }
    return PRONY_OK;
}

/* A branch that no run takes may be written for another rank. Its node is left open, and fails with the same message if
 * the branch is taken. */
static PRN_OWN_FRAME prony_status defer_misfit(prn_bind_pass *b, prn_node_def *node, prony_status status)
{
    bool misfit = status == PRONY_SHAPE_MISMATCH || status == PRONY_OUT_OF_RANGE;
    if (!misfit || !b->program->conditional || node->child_count > 0) return status;
    for (uint32_t k = 0; k < node->output_count; k++)
        if (node->output_values[k]) *node->output_values[k] = (prony_value){.shape = prn_shape_unknown()};
    node->dynamic = true;
    ++*b->program->misfit_total;
    if (b->error) *b->error = (prony_error){0};
    return PRONY_OK;
}

/* ---- the walk ---- */

/* The opset by the function's imports inside of its body, otherwise by the model's. Internal operators have one. */
static int64_t opset_of(const prn_bind_pass *b, const char *domain)
{
    if (strcmp(domain, "prony") == 0) return 1;
    const prn_function *f = b->frame ? b->frame->function : NULL;
    for (size_t i = 0; f && i < f->opset_count; i++)
        if (strcmp(f->opsets[i].domain, domain) == 0) return f->opsets[i].version;
    return prn_model_opset(b->program->model->file, domain);
}

static prony_status name_node(prn_bind_pass *b, const prn_model_node *source, const char **out)
{
    prn_bump *pool = &b->program->pool;
    *out = source->name;
    if (!*source->name) *out = prn_bump_printf(pool, "%s_%u", source->op_type, source->file_index);
    if (*out && b->frame) *out = prn_bump_printf(pool, "%s/%s", b->frame->name, *out);
    return *out ? PRONY_OK : prn_no_memory(b->error);
}

const char *prn_bind_name(prn_bind_pass *b, const prn_model_node *source)
{
    const char *name;
    return name_node(b, source, &name) == PRONY_OK ? name : source->name;
}

static void note_reach(prn_program *p, const prn_node_def *node)
{
    bool reached = false;
    for (uint32_t i = 0; i < node->input_count; i++)
        reached |= node->inputs[i] != PRN_NO_VALUE && prn_dynamic_dims_affect(p->values[node->inputs[i]]->extents);
    for (uint32_t k = 0; reached && k < node->output_count; k++)
        if (node->outputs[k] != PRN_NO_VALUE) p->values[node->outputs[k]]->extents |= PRN_DYNAMIC_DIMS_AFFECT;
}

static PRN_OWN_FRAME prony_status add_node(prn_bind_pass *b, prn_names *scope, const prn_model_node *source,
                                           prn_node_def **out)
{
    prn_program *p = b->program;
    prn_node_def *node = prn_program_add_node(p);
    if (!node) return prn_no_memory(b->error);
    uint32_t index = (uint32_t)(p->node_count - 1);
    node->info =
        (prony_node){.op_type = source->op_type, .domain = source->domain, .opset = opset_of(b, source->domain)};
    node->frame = b->frame;
    PRN_TRY(name_node(b, source, &node->info.name));
    PRN_TRY(prn_bind_attributes(b, source, &node->info.attributes));
    PRN_TRY(resolve_values(b, scope, source, node));
    for (uint32_t k = 0; k < node->output_count; k++)
        if (node->outputs[k] != PRN_NO_VALUE) p->values[node->outputs[k]]->producer = index;
    note_reach(p, node);
    *out = node;
    return bind_add_layer(b, node);
}

/* A node of the file may be bound many times. Its bytes are counted before the next one. */
static PRN_OWN_FRAME prony_status count_unfolded(prn_bind_pass *b)
{
    prn_program *p = b->program;
    size_t more = p->pool.bytes - p->counted_bytes;
    p->counted_bytes = p->pool.bytes;
    if (!b->frame && !p->parent) return PRONY_OK;
    *p->unfolded_total += more + sizeof(prn_layer);
    if (++*p->bound_total > PRN_BIND_LIMIT_NODES)
        return prn_fail(b->error, PRONY_LIMIT, "functions and subgraphs unfold to more than %llu nodes",
                        (unsigned long long)PRN_BIND_LIMIT_NODES);
    if (*p->unfolded_total > PRN_BIND_LIMIT_BYTES)
        return prn_fail(b->error, PRONY_LIMIT, "functions and subgraphs unfold to more than %llu MiB",
                        (unsigned long long)PRN_BIND_LIMIT_BYTES >> 20);
    return PRONY_OK;
}

static prony_status bind_node(prn_bind_pass *b, prn_names *scope, const prn_model_node *source)
{
    prn_program *p = b->program;
    PRN_TRY(count_unfolded(b));
    const prn_function *function = b->given ? NULL : prn_model_function(p->model, source, opset_of(b, source->domain));
    if (function) return prn_bind_call(b, scope, source, function);
    if (prn_bind_is_gradient(b, source)) return prn_bind_gradient(b, scope, source);
    prn_node_def *node = NULL;
    PRN_TRY(add_node(b, scope, source, &node));
    bool done = false;
    PRN_TRY(prn_bind_constant_node(b, node, &done));
    if (done) return PRONY_OK;
    PRN_TRY(prn_bind_cancelled(b, &node->info));
    PRN_TRY(bind_operator(b, node));
    PRN_TRY(prn_bind_if(b, scope, node, &done));
    if (done) return PRONY_OK;
    PRN_TRY(bind_children(b, scope, node));
    prony_status status = prn_bind_infer(b, node);
    if (status == PRONY_OK) status = prn_bind_fold(b, node);
    return defer_misfit(b, node, status);
}

static PRN_OWN_FRAME prony_status blame(prn_bind_pass *b, prony_status status, const prn_model_node *source)
{
    char name[128];
    snprintf(name, sizeof name, "%.100s_%u", source->op_type, source->file_index);
    prony_node info = {
        .name = *source->name ? source->name : name, .op_type = source->op_type, .domain = source->domain};
    return prn_error_blame(b->error, status, &info);
}

prony_status prn_bind_node(prn_bind_pass *b, prn_names *scope, const prn_model_node *source)
{
    prony_status status = bind_node(b, scope, source);
    if (status == PRONY_OK) return PRONY_OK;
    return blame(b, status, source);
}

prony_status prn_bind_nodes(prn_bind_pass *b, prn_names *scope, const prn_graph *graph)
{
    prn_program *p = b->program;
    PRN_TRY(bind_initializers(b, scope, graph));
    if (!PRN_GROW(p->nodes, p->node_capacity, p->node_count + graph->node_count) ||
        !PRN_GROW(p->layers, p->layer_capacity, p->layer_count + graph->node_count))
        return prn_no_memory(b->error);
    for (size_t n = 0; n < graph->node_count; n++) PRN_TRY(prn_bind_node(b, scope, &graph->nodes[n]));
    return PRONY_OK;
}

/* ---- inputs and outputs ---- */

/* Defines the graph's inputs and then, in a subgraph, the captured values, which share the parent's constants. */
static prony_status bind_program_inputs(prn_bind_pass *b, prn_names *scope, const prn_graph *graph,
                                        const prn_program *parent, const uint32_t *captured,
                                        const prn_bind_options *options)
{
    prn_program *p = b->program;
    size_t captured_count = parent ? graph->captured_count : 0;
    p->inputs = prn_bump_alloc(&p->pool, graph->input_count + captured_count + 1, sizeof *p->inputs);
    if (!p->inputs) return prn_no_memory(b->error);
    if (options->input_count != graph->input_count)
        return prn_fail(b->error, PRONY_INVALID_ARGUMENT, "graph '%s' takes %zu inputs, %zu were given", graph->name,
                        graph->input_count, options->input_count);
    for (size_t i = 0; i < graph->input_count + captured_count; i++) {
        const char *name = i < graph->input_count ? graph->inputs[i].name : graph->captured[i - graph->input_count];
        uint32_t id = PRN_NO_VALUE;
        PRN_TRY(bind_define(b, scope, name, &id));
        prn_value_def *value = p->values[id];
        value->input = true;
        if (i < graph->input_count) {
            value->info = options->inputs[i];
            value->info.data = NULL;
            if (options->open && options->open[i]) value->extents |= PRN_DYNAMIC_DIMS_AFFECT;
            value->cache = options->caches && options->caches[i];
        } else {
            const prn_value_def *outer = parent->values[captured[i - graph->input_count]];
            value->info = outer->info;
            value->constant = outer->constant;
            value->shared = outer->shared;
        }
        p->inputs[p->input_count++] = id;
    }
    return PRONY_OK;
}

/* Given optional inputs come after the others, in the graph's order. */
static prony_status bind_optional(prn_bind_pass *b, prn_names *scope, const prn_graph *graph, const prony_value *given)
{
    prn_program *p = b->program;
    bool *overridden = prn_bump_alloc(&p->pool, graph->initializer_count + 1, sizeof *overridden);
    uint32_t *inputs = prn_bump_alloc(&p->pool, p->input_count + graph->optional_count + 1, sizeof *inputs);
    if (!overridden || !inputs) return prn_no_memory(b->error);
    memset(overridden, 0, (graph->initializer_count + 1) * sizeof *overridden);
    if (p->input_count) memcpy(inputs, p->inputs, p->input_count * sizeof *inputs);
    p->inputs = inputs;
    for (size_t i = 0; i < graph->optional_count; i++) {
        uint32_t id = PRN_NO_VALUE;
        if (given[i].dtype == PRONY_UNDEFINED) continue;
        PRN_TRY(bind_define(b, scope, graph->inputs[graph->input_count + i].name, &id));
        p->values[id]->input = true;
        p->values[id]->info = given[i];
        p->values[id]->info.data = NULL;
        p->inputs[p->input_count++] = id;
        overridden[graph->defaults[i]] = true;
    }
    b->overridden = overridden;
    return PRONY_OK;
}

static prony_status bind_outputs(prn_bind_pass *b, prn_names *scope, const prn_graph *graph)
{
    prn_program *p = b->program;
    p->outputs = prn_bump_alloc(&p->pool, graph->output_count + 1, sizeof *p->outputs);
    if (!p->outputs) return prn_no_memory(b->error);
    for (size_t k = 0; k < graph->output_count; k++) {
        uint32_t id;
        if (!prn_names_get(scope, graph->outputs[k].name, &id))
            return prn_fail(b->error, PRONY_INVALID_MODEL, "graph output '%s' is produced nowhere",
                            graph->outputs[k].name);
        p->values[id]->output = true;
        if (!prn_program_note_use(p, id, NULL, (uint32_t)k, PRN_NO_CHILD)) return prn_no_memory(b->error);
        p->outputs[p->output_count++] = id;
    }
    return PRONY_OK;
}

/* Counters of limits belong to the outermost program, so that subgraphs cannot evade them. A failure releases the
 * program. */
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
    program->conditional = options->conditional;
    program->largest = options->largest;
    program->cache_rows = options->cache_rows;
    program->cache_type = options->cache_type;
    program->fixed = options->fixed;
    program->fixed_count = options->fixed_count;
    program->folded_total = parent ? parent->folded_total : &program->folded_bytes;
    program->bound_total = parent ? parent->bound_total : &program->bound_nodes;
    program->misfit_total = parent ? parent->misfit_total : &program->misfits;
    program->unfolded_total = parent ? parent->unfolded_total : &program->unfolded_bytes;
    program->frame = options->frame;
    program->depth = parent ? parent->depth + 1 : 0;
    for (const prn_frame *f = options->frame; f && f != parent->frame; f = f->outer) program->depth++;
    prn_bind_pass binder = {.program = program, .frame = options->frame, .error = error};
    prn_names scope = {0};
    prony_status status = parent ? prn_stack_check(error) : PRONY_OK;
    if (program->depth > PRN_BIND_LIMIT_DEPTH)
        status = prn_fail(error, PRONY_LIMIT, "graph '%s': subgraphs and calls are nested more than %d deep",
                          graph->name, PRN_BIND_LIMIT_DEPTH);
    if (status == PRONY_OK) status = bind_program_inputs(&binder, &scope, graph, parent, captured, options);
    if (status == PRONY_OK && options->optional) status = bind_optional(&binder, &scope, graph, options->optional);
    if (status == PRONY_OK) status = prn_bind_nodes(&binder, &scope, graph);
    if (status == PRONY_OK) status = bind_outputs(&binder, &scope, graph);
    if (status == PRONY_OK && !prn_program_sweep(program)) status = prn_no_memory(error);
    if (status == PRONY_OK) status = prn_bind_count(&binder);
    prn_names_free(&scope);
    program->fixed = NULL;
    program->fixed_count = 0;
    if (status == PRONY_OK)
        *out = program;
    else
        prn_program_release(program);
    return status;
}
