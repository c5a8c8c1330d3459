/* Assigns layouts and memory spaces: a producer offers, a consumer asks. If they differ, a Reorder step (layouts) or a
 * Copy step (memory spaces) stands between them, once per value and key. Values are reordered on the host, and move
 * between devices through the host. */
#include "base/memory/stack.h"
#include "engine/bind/node.h"
#include "engine/plan/planner.h"

#include <string.h>

static prn_layout_key assign_layouts_key_of(const prn_plan_value *value)
{
    return (prn_layout_key){(prn_layout)value->value.layout, value->memory_space};
}

static bool same_key(prn_layout_key a, prn_layout_key b)
{
    return a.layout == b.layout && a.memory_space == b.memory_space;
}

static const char *place_name(const prn_plan *plan, uint8_t place)
{
    return place == PRN_ON_HOST ? "the host" : plan->memory.spaces[place - 1].memory_space->name;
}

/* The plan's number of a memory space, assigned at its first occurrence. */
static prony_status number_space(prn_plan *plan, const prn_memory_space *place, uint8_t *out, prony_error *error)
{
    *out = PRN_ON_HOST;
    if (!place) return PRONY_OK;
    size_t found = 0;
    while (found < plan->memory.space_count && plan->memory.spaces[found].memory_space != place) found++;
    if (found == plan->memory.space_count) {
        if (found == PRN_MOST_PLACES)
            return prn_fail(error, PRONY_LIMIT, "kernels use more than %d memory spaces", PRN_MOST_PLACES);
        prn_plan_memory_space *places = prn_bump_alloc(&plan->pool, found + 1, sizeof *places);
        if (!places) return prn_no_memory(error);
        if (found) memcpy(places, plan->memory.spaces, found * sizeof *places);
        places[found].memory_space = place;
        plan->memory.spaces = places;
        plan->memory.space_count++;
    }
    *out = (uint8_t)(found + 1);
    return PRONY_OK;
}

/* Checks that a value may be in another memory space: its size must be known. */
static prony_status check_leaves(const prn_plan *plan, const prn_plan_value *value, uint8_t place, prony_error *error)
{
    if (place == PRN_ON_HOST ||
        (!value->dynamic && value->value.kind == PRONY_TENSOR && value->value.dtype != PRONY_STRING))
        return PRONY_OK;
    return prn_fail(error, PRONY_UNSUPPORTED, "value '%s' cannot be at %s: it is not a numeric tensor of known shape",
                    plan->program->values[value->source]->name, place_name(plan, place));
}

/* ---- the steps in between ---- */

static prony_status bridge_node(prn_plan *plan, const char *op, const char *name, prn_operator_binding binding,
                                prn_node_def **out, prony_error *error)
{
    static const prn_attr_list no_attributes = {NULL, 0};
    prn_node_def *node = prn_bump_alloc(&plan->pool, 1, sizeof *node);
    if (!node || !name) return prn_no_memory(error);
    node->info = (prony_node){.op_type = op, .name = name, .domain = "prony", .opset = 1, .attributes = &no_attributes};
    node->binding = binding;
    if (!node->binding.op) return prn_fail(error, PRONY_INTERNAL, "operator prony::%s is not built", op);
    *out = node;
    return PRONY_OK;
}

static prony_status add_bridge(prn_plan *plan, prn_node_def *node, uint32_t from, uint32_t to, prony_error *error)
{
    const prn_plan_value *a = plan->values[from], *b = plan->values[to];
    prn_step *step = prn_plan_add_step(plan, node, &from, 1, &to, 1);
    if (!step) return prn_no_memory(error);
    step->kernel = prn_node_kernel(node, &step->context, false);
    if (!step->kernel)
        return prn_fail(error, PRONY_UNSUPPORTED, "value '%s': no kernel reorders %s into %s",
                        plan->program->values[a->source]->name, prn_layout_name((prn_layout)a->value.layout),
                        prn_layout_name((prn_layout)b->value.layout));
    return prn_plan_append_step(plan, step, error);
}

static prony_status add_reorder(prn_plan *plan, uint32_t from, uint32_t to, prony_error *error)
{
    prn_node_def *node = NULL;
    const char *name =
        prn_bump_printf(&plan->pool, "reorder of %s", plan->program->values[plan->values[from]->source]->name);
    PRN_TRY(bridge_node(plan, "Reorder", name, prn_registry_find(NULL, "prony", "Reorder", 1), &node, error));
    return add_bridge(plan, node, from, to, error);
}

static prony_status add_copy(prn_plan *plan, uint32_t from, uint32_t to, prony_error *error)
{
    prn_node_def *node = NULL;
    const char *name =
        prn_bump_printf(&plan->pool, "copy of %s to %s", plan->program->values[plan->values[from]->source]->name,
                        place_name(plan, plan->values[to]->memory_space));
    PRN_TRY(bridge_node(plan, "Copy", name, prn_plan_copy_binding(), &node, error));
    return add_bridge(plan, node, from, to, error);
}

static prony_status assign_layouts_add_form(prn_plan *plan, uint32_t value, prn_layout_key key, uint32_t *out,
                                            prony_error *error)
{
    const prn_plan_value *from = plan->values[value];
    PRN_TRY(check_leaves(plan, from, key.memory_space, error));
    const uint32_t id = prn_plan_add_value(plan, from->source);
    if (id == PRN_NO_VALUE) return prn_no_memory(error);
    prn_plan_value *to = plan->values[id];
    to->value.layout = (uint8_t)key.layout;
    to->memory_space = key.memory_space;
    to->value.data = NULL;
    to->bytes = prn_layout_bytes(&to->value);
    to->variant = plan->values[from->source]->variant;
    plan->values[from->source]->variant = id;
    *out = id;
    return PRONY_OK;
}

prony_status prn_plan_value_in(prn_plan *plan, uint32_t value, prn_layout_key key, uint32_t *out, prony_error *error)
{
    for (uint32_t v = plan->values[value]->source; v != PRN_NO_VALUE; v = plan->values[v]->variant) {
        if (!same_key(assign_layouts_key_of(plan->values[v]), key)) continue;
        *out = v;
        return PRONY_OK;
    }
    const prn_layout_key have = assign_layouts_key_of(plan->values[value]);
    const bool view = have.memory_space == key.memory_space && prn_plan_may_share(plan, value) &&
                      prn_layout_same_bytes(&plan->values[value]->value.shape, have.layout, key.layout);
    const prn_layout_key between = {have.memory_space == PRN_ON_HOST ? key.layout : have.layout, PRN_ON_HOST};
    if (!view && !same_key(between, have) && !same_key(between, key)) {
        PRN_TRY(prn_plan_value_in(plan, value, between, &value, error));
        return prn_plan_value_in(plan, value, key, out, error);
    }
    PRN_TRY(assign_layouts_add_form(plan, value, key, out, error));
    plan->values[*out]->constant = !view && key.memory_space != PRN_ON_HOST && prn_plan_stays_on_device(plan, value);
    if (plan->values[*out]->constant) return PRONY_OK; /* copied when the plan is made */
    if (!view) return (have.memory_space == key.memory_space ? add_reorder : add_copy)(plan, value, *out, error);
    prn_plan_make_view(plan, *out, value);
    return PRONY_OK;
}

/* ---- a kernel's requirements ---- */

static prony_status assign_input(prn_plan *plan, prn_step *step, size_t i, prn_layout layout, prony_error *error)
{
    prn_layout_key key = {layout, PRN_ON_HOST};
    if (step->inputs[i] == PRN_NO_VALUE) return PRONY_OK;
    if (step->kernel) PRN_TRY(number_space(plan, prn_kernel_reads_at(step->kernel, i), &key.memory_space, error));
    PRN_TRY(prn_plan_value_in(plan, step->inputs[i], key, &step->inputs[i], error));
    step->input_values[i] = &plan->values[step->inputs[i]]->value;
    return PRONY_OK;
}

static prony_status assign_output(prn_plan *plan, prn_step *step, size_t k, prn_layout layout, prony_error *error)
{
    if (step->outputs[k] == PRN_NO_VALUE) return PRONY_OK;
    prn_plan_value *value = plan->values[step->outputs[k]];
    value->value.layout = (uint8_t)layout;
    if (step->kernel) PRN_TRY(number_space(plan, prn_kernel_writes_at(step->kernel, k), &value->memory_space, error));
    PRN_TRY(check_leaves(plan, value, value->memory_space, error));
    if (!value->dynamic) value->bytes = prn_layout_bytes(&value->value);
    if (value->bytes != SIZE_MAX) return PRONY_OK;
    return prn_fail(error, PRONY_LIMIT, "value '%s' is too large", plan->program->values[value->source]->name);
}

/* true: only the plan's caller reads it, who gets it plain. */
static bool only_given_out(const prn_plan *plan, uint32_t value)
{
    const uint32_t source = plan->values[value]->source;
    const prn_value_def *def = plan->program->values[source];
    for (const prn_use *use = def->places; use; use = use->next)
        if (use->node && !use->node->dead && (use->child != PRN_NO_CHILD || use->node->inputs[use->index] == source))
            return false;
    return def->output;
}

/* true: all kernels of the operator take plain elements only. */
static bool takes_plain_alone(const prn_op *op)
{
    for (const prn_kernel *kernel = op ? op->kernels : NULL; kernel && kernel->name; kernel++)
        if (kernel->layouts) return false;
    return op != NULL;
}

/* true: all readers need it plain. */
static bool wanted_plain(const prn_plan *plan, uint32_t value)
{
    const uint32_t source = plan->values[value]->source;
    for (const prn_use *use = plan->program->values[source]->places; use; use = use->next) {
        if (!use->node || use->node->dead) continue;
        if (use->child != PRN_NO_CHILD) return false;
        if (use->node->inputs[use->index] == source && !takes_plain_alone(use->node->binding.op)) return false;
    }
    return true;
}

/* true: only the first input is not plain, and it has fewer elements than the only output. */
static bool enlarges(const prn_step *step)
{
    const prony_context *context = &step->context;
    if (context->input_count == 0 || context->output_count != 1 || step->outputs[0] == PRN_NO_VALUE ||
        step->inputs[0] == PRN_NO_VALUE)
        return false;
    for (size_t i = 1; i < context->input_count; i++)
        if (context->inputs[i] && context->inputs[i]->layout != PRN_PLAIN) return false;
    return context->inputs[0]->layout != PRN_PLAIN &&
           prony_shape_numel(&context->inputs[0]->shape) < prony_shape_numel(&context->outputs[0]->shape);
}

/* The layouts that a kernel asks for and makes: `in`, then the outputs. A kernel of any layout is offered plain
 * elements if it enlarges them and the result must be plain: then fewer elements are reordered. */
static void ask_layouts(prn_plan *plan, prn_step *step, prn_layout *in)
{
    const size_t in_count = step->context.input_count, count = in_count + step->context.output_count;
    /* Reordered slices are written directly into the join. */
    if (step->kernel->concat_alias && step->context.output_count == 1 && step->outputs[0] != PRN_NO_VALUE &&
        wanted_plain(plan, step->outputs[0]))
        return;
    if (enlarges(step) && only_given_out(plan, step->outputs[0])) {
        const prony_value *const offered = step->input_values[0];
        prony_value plain = *offered;
        bool takes = true;
        plain.layout = PRN_PLAIN;
        step->input_values[0] = &plain;
        step->kernel->layouts(&step->context, in, in + in_count);
        step->input_values[0] = offered;
        for (size_t i = 0; i < count; i++) takes = takes && in[i] == PRN_PLAIN;
        if (takes) return;
        memset(in, 0, count * sizeof *in);
    }
    step->kernel->layouts(&step->context, in, in + in_count);
}

/* The layouts of a node's inputs, as made by their producers, are the offer. */
PRN_OWN_FRAME prony_status prn_plan_assign_layouts(prn_plan *plan, prn_step *step, prony_error *error)
{
    const size_t in_count = step->context.input_count, out_count = step->context.output_count;
    prn_layout *in = prn_calloc(in_count + out_count + 1, sizeof *in);
    if (!in) return prn_no_memory(error);
    prony_status status = PRONY_OK;
    if (step->kernel && step->kernel->layouts) ask_layouts(plan, step, in);
    for (size_t i = 0; status == PRONY_OK && i < in_count; i++) status = assign_input(plan, step, i, in[i], error);
    for (size_t k = 0; status == PRONY_OK && k < out_count; k++)
        status = assign_output(plan, step, k, in[in_count + k], error);
    prn_free(in);
    return status;
}
