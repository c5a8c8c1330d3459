/* Inlines bodies into the same program: the branch of an If whose condition is known, and the nodes of a function. A
 * call has no layer of its own: its inner nodes are layers named "call/inner", so costs are those of the executed
 * nodes. References to the call's attributes are resolved here. */
#include "base/memory/stack.h"
#include "engine/bind/bind_pass.h"

#include <string.h>

/* Nodes of an inlined branch keep naming their origin. */
static prony_status name_places(prn_bind_pass *b, size_t first, const prony_node *outer, const char *branch)
{
    const char *old = NULL, *place = NULL;
    for (size_t n = first; n < b->program->node_count; n++) {
        prony_node *inner = &b->program->nodes[n]->info;
        if (!place || inner->within != old) {
            old = inner->within;
            place = prn_bump_printf(&b->program->pool, "node '%s' (%s), %s%s%s", outer->name, outer->op_type, branch,
                                    old ? ": " : "", old ? old : "");
            if (!place) return prn_no_memory(b->error);
        }
        inner->within = place;
    }
    return PRONY_OK;
}

/* Binds the chosen branch's nodes into the program and gives its outputs the node's names. The node is dead
 * afterwards. */
prony_status prn_bind_if(prn_bind_pass *b, prn_names *scope, prn_node_def *node, bool *done)
{
    if (*node->info.domain || strcmp(node->info.op_type, "If") != 0 || node->input_count < 1) return PRONY_OK;
    const prony_value *condition = node->input_values[0];
    if (!condition || !condition->data || condition->dtype != PRONY_BOOL || prony_shape_numel(&condition->shape) != 1)
        return PRONY_OK;
    const char *name = *(const bool *)condition->data ? "then_branch" : "else_branch";
    const prn_attr *branch = prn_attr_find(node->info.attributes, name);
    if (!branch || !branch->graph || branch->graph->output_count != node->output_count || branch->graph->input_count)
        return PRONY_OK;
    b->program->values[node->inputs[0]]->extents |= PRN_DYNAMIC_DIMS_DECIDE;
    prn_names inner = {.outer = scope};
    size_t first = b->program->node_count;
    prony_status status = prn_stack_check(b->error);
    if (status == PRONY_OK) status = prn_bind_nodes(b, &inner, branch->graph);
    if (status == PRONY_OK)
        status = name_places(b, first, &node->info, name);
    else
        prn_error_name_part(b->error, &node->info, name);
    for (uint32_t k = 0; status == PRONY_OK && k < node->output_count; k++) {
        uint32_t id;
        if (node->outputs[k] == PRN_NO_VALUE) continue;
        if (!prn_names_get(&inner, branch->graph->outputs[k].name, &id))
            status = prn_fail(b->error, PRONY_INVALID_MODEL, "node '%s' (If): branch output '%s' is produced nowhere",
                              node->info.name, branch->graph->outputs[k].name);
        else if (!prn_names_put(scope, b->program->values[node->outputs[k]]->name, id))
            status = prn_no_memory(b->error);
        else
            node->outputs[k] = id; /* gives the layer's row the branch's type and shape */
    }
    prn_names_free(&inner);
    node->dead = true;
    *done = true;
    return status;
}

/* ---- functions ---- */

static prony_status resolve_attribute(prn_bind_pass *b, const prn_model_node *source, const prn_attr *attr,
                                      const prn_attr **out)
{
    const prn_frame *frame = b->frame;
    *out = attr;
    if (!attr->reference) return PRONY_OK;
    if (!frame)
        return prn_fail(b->error, PRONY_INVALID_MODEL, "node '%s' (%s): attribute '%s' refers to a function's",
                        prn_bind_name(b, source), source->op_type, attr->name);
    const prn_attr *found = prn_attr_find(frame->attributes, attr->reference);
    if (!found) found = prn_attr_find(&frame->function->attribute_defaults, attr->reference);
    *out = found;
    if (!found || found->type == attr->type) return PRONY_OK;
    return prn_fail(b->error, PRONY_INVALID_MODEL,
                    "node '%s' in function '%s': attribute '%s' is of type %s, the call gives %s",
                    prn_bind_name(b, source), frame->function->name, attr->name, prn_attr_type_name(attr->type),
                    prn_attr_type_name(found->type));
}

prony_status prn_bind_attributes(prn_bind_pass *b, const prn_model_node *source, const prn_attr_list **out)
{
    bool refers = false;
    for (size_t a = 0; a < source->attributes.count; a++) refers |= source->attributes.items[a].reference != NULL;
    *out = &source->attributes;
    if (!refers) return PRONY_OK;
    prn_attr_list *list = prn_bump_alloc(&b->program->pool, 1, sizeof *list);
    prn_attr *items = prn_bump_alloc(&b->program->pool, source->attributes.count, sizeof *items);
    if (!list || !items) return prn_no_memory(b->error);
    list->items = items;
    for (size_t a = 0; a < source->attributes.count; a++) {
        const prn_attr *attr = &source->attributes.items[a], *found = NULL;
        PRN_TRY(resolve_attribute(b, source, attr, &found));
        if (!found) continue; /* the call leaves it to the operator's default */
        items[list->count] = *found;
        items[list->count++].name = attr->name;
    }
    *out = list;
    return PRONY_OK;
}

/* Makes the frame of a call. Refuses recursion and too deep nesting. */
static PRN_OWN_FRAME prony_status bind_inline_open_frame(prn_bind_pass *b, const prn_model_node *source,
                                                         const prn_function *function, const prn_frame **out)
{
    prn_bump *pool = &b->program->pool;
    uint32_t depth = b->program->depth;
    for (const prn_frame *f = b->frame; f; f = f->outer) {
        if (f->function == function)
            return prn_fail(b->error, PRONY_INVALID_MODEL, "node '%s': function '%s' calls itself",
                            prn_bind_name(b, source), function->name);
    }
    for (const prn_frame *f = b->frame; f && f != b->program->frame; f = f->outer) depth++;
    if (depth >= PRN_BIND_LIMIT_DEPTH)
        return prn_fail(b->error, PRONY_LIMIT,
                        "node '%s': function '%s': calls and subgraphs are nested more than %d deep",
                        prn_bind_name(b, source), function->name, PRN_BIND_LIMIT_DEPTH);
    prn_frame *frame = prn_bump_alloc(pool, 1, sizeof *frame);
    if (!frame) return prn_no_memory(b->error);
    frame->function = function;
    frame->outer = b->frame;
    frame->name = source->name;
    if (!*source->name) frame->name = prn_bump_printf(pool, "%s_%u", source->op_type, source->file_index);
    if (frame->name && b->frame) frame->name = prn_bump_printf(pool, "%s/%s", b->frame->name, frame->name);
    if (!frame->name) return prn_no_memory(b->error);
    PRN_TRY(prn_bind_attributes(b, source, &frame->attributes));
    *out = frame;
    return PRONY_OK;
}

static PRN_OWN_FRAME prony_status bind_arguments(prn_bind_pass *b, const prn_names *scope, prn_names *inner,
                                                 const prn_model_node *source, const prn_function *function)
{
    if (source->input_count > function->input_count || source->output_count > function->output_count)
        return prn_fail(b->error, PRONY_INVALID_MODEL,
                        "node '%s': function '%s' has %zu inputs and %zu outputs, the call %zu and %zu",
                        prn_bind_name(b, source), function->name, function->input_count, function->output_count,
                        source->input_count, source->output_count);
    for (size_t i = 0; i < function->input_count; i++) {
        uint32_t id = PRN_NO_VALUE;
        if (i < source->input_count && *source->inputs[i] && !prn_names_get(scope, source->inputs[i], &id))
            return prn_fail(b->error, PRONY_INVALID_MODEL, "node '%s' (%s): input '%s' is produced nowhere",
                            prn_bind_name(b, source), source->op_type, source->inputs[i]);
        if (!prn_names_put(inner, function->inputs[i], id)) return prn_no_memory(b->error);
    }
    return PRONY_OK;
}

/* Gives the body's results the caller's names. `first`: the first value that the body can have made. */
static PRN_OWN_FRAME prony_status bind_results(prn_bind_pass *b, prn_names *scope, const prn_names *inner,
                                               const prn_model_node *source, const prn_function *function, size_t first)
{
    for (size_t k = 0; k < source->output_count; k++) {
        uint32_t id = PRN_NO_VALUE;
        if (!*source->outputs[k]) continue;
        if (!prn_names_get(inner, function->outputs[k], &id) || id == PRN_NO_VALUE)
            return prn_fail(b->error, PRONY_INVALID_MODEL,
                            "node '%s': output '%s' of function '%s' is produced nowhere", prn_bind_name(b, source),
                            function->outputs[k], function->name);
        if (id >= first) b->program->values[id]->name = source->outputs[k];
        if (!prn_names_put(scope, source->outputs[k], id)) return prn_no_memory(b->error);
    }
    return PRONY_OK;
}

prony_status prn_bind_call(prn_bind_pass *b, prn_names *scope, const prn_model_node *source,
                           const prn_function *function)
{
    const prn_frame *frame = NULL, *outer = b->frame;
    PRN_TRY(prn_stack_check(b->error));
    PRN_TRY(bind_inline_open_frame(b, source, function, &frame));
    size_t first = b->program->value_count;
    prn_names inner = {0};
    prony_status status = bind_arguments(b, scope, &inner, source, function);
    b->frame = frame;
    for (size_t n = 0; status == PRONY_OK && n < function->node_count; n++)
        status = prn_bind_node(b, &inner, &function->nodes[n]);
    b->frame = outer;
    if (status == PRONY_OK) status = bind_results(b, scope, &inner, source, function, first);
    prn_names_free(&inner);
    return status;
}
