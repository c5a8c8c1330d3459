/* Adapts a plan made for the largest extents to smaller ones. Values take the program's current shapes, each step's
 * kernel is chosen as by the planner and prepares again, and everything that depends on shapes is checked again. */
#include "engine/bind/node.h"
#include "engine/plan/planner.h"

#include <string.h>

static bool changes(const prn_plan *plan, uint32_t value)
{
    return value != PRN_NO_VALUE &&
           (plan->program->values[plan->values[value]->source]->extents & PRN_DYNAMIC_DIMS_AFFECT);
}

/* true: the value changed since the plan last followed the program. */
static bool has_moved(const prn_plan *plan, uint32_t value)
{
    return changes(plan, value) && plan->program->values[plan->values[value]->source]->moved_at > plan->moves;
}

/* Sets shapes and sizes. Clears data pointers as during planning, when only constants have data: kernels recognise
 * constants by it. */
static bool take_shapes(prn_plan *plan)
{
    for (uint32_t v = 0; v < plan->value_count; v++) {
        prn_plan_value *value = plan->values[v];
        const prn_value_def *def = plan->program->values[value->source];
        if (!value->constant && !value->dynamic) value->value.data = NULL;
        if (!(def->extents & PRN_DYNAMIC_DIMS_AFFECT)) continue;
        if (def->constant) value->value.data = def->info.data;
        if (def->moved_at <= plan->moves) continue;
        value->dynamic = !def->constant && !def->input && !prn_shape_known(&def->info.shape);
        value->value.shape = def->info.shape;
        if (value->dynamic) continue;
        value->bytes = prn_layout_bytes(&value->value);
        if (value->buffer != PRN_NO_BUFFER && value->bytes > plan->memory.buffers[value->buffer].bytes) return false;
    }
    for (uint32_t v = 0; v < plan->value_count; v++)
        if (plan->values[v]->constant && plan->values[v]->view != PRN_NO_VALUE)
            plan->values[v]->value.data = plan->values[prn_plan_root(plan, v, NULL)]->value.data;
    return true;
}

/* true: views still are all of their input's bytes, and forms that share bytes still agree. */
static bool forms_still_same(const prn_plan *plan)
{
    for (uint32_t v = 0; v < plan->value_count; v++) {
        const prn_plan_value *value = plan->values[v];
        if (value->view == PRN_NO_VALUE || !changes(plan, v)) continue;
        const prn_plan_value *from = plan->values[value->view];
        const bool reshaped = value->source != from->source;
        if (value->value.layout != PRN_PLAIN && reshaped && !prn_shape_equal(&value->value.shape, &from->value.shape))
            return false;
        if (!reshaped && !prn_layout_same_bytes(&value->value.shape, (prn_layout)from->value.layout,
                                                (prn_layout)value->value.layout))
            return false;
    }
    return true;
}

/* *stay: the kernel, offered the present layouts, takes and makes the same ones. */
static prony_status layouts_stay(const prn_step *step, const prn_kernel *kernel, bool *stay, prony_error *error)
{
    const size_t in_count = step->context.input_count, out_count = step->context.output_count;
    prn_layout few[16] = {PRN_PLAIN},
               *in = in_count + out_count <= 16 ? few : prn_calloc(in_count + out_count, sizeof *in);
    if (!in) return prn_no_memory(error);
    if (kernel->layouts) kernel->layouts(&step->context, in, in + in_count);
    *stay = true;
    for (size_t i = 0; i < in_count; i++)
        if (step->input_values[i]) *stay &= step->input_values[i]->layout == (uint8_t)in[i];
    for (size_t k = 0; k < out_count; k++)
        if (step->output_values[k]) *stay &= step->output_values[k]->layout == (uint8_t)in[in_count + k];
    if (in != few) prn_free(in);
    return PRONY_OK;
}

/* Another kernel may need bytes of large constants that this one has packed. */
static bool reads_large_constant(const prn_plan *plan, const prn_step *step)
{
    for (size_t i = 0; i < step->context.input_count; i++)
        if (step->inputs[i] != PRN_NO_VALUE && plan->values[step->inputs[i]]->constant &&
            prn_lazy_constant_profitable(step->input_values[i]))
            return true;
    return false;
}

static prony_status respecialize_choose(const prn_plan *plan, prn_step *step, const prn_kernel **out, bool *fits,
                                        prony_error *error)
{
    step->context.error = error;
    const prn_kernel *kernel = prn_node_kernel(step->node, &step->context, false);
    step->context.error = NULL;
    *fits = kernel && (kernel == step->kernel || !reads_large_constant(plan, step));
    if (*fits) PRN_TRY(layouts_stay(step, kernel, fits, error));
    *out = kernel;
    return PRONY_OK;
}

static bool step_moved(const prn_plan *plan, const prn_step *step)
{
    bool found = false;
    for (size_t i = 0; i < step->context.input_count; i++) found |= has_moved(plan, step->inputs[i]);
    for (size_t k = 0; k < step->context.output_count; k++) found |= has_moved(plan, step->outputs[k]);
    return found;
}

/* true: the cost of a layer that the step stands for was counted again; its values may be none of the step's. */
static bool cost_moved(const prn_plan *plan, const prn_step *step)
{
    for (uint32_t l = 0; l < step->node->layer_count; l++)
        if (plan->program->layers[step->node->layers[l]].moved_at > plan->moves) return true;
    return false;
}

static prony_status follow_step(prn_plan *plan, prn_step *step, bool *fits, prony_error *error)
{
    const prn_kernel *kernel;
    const bool moved = step_moved(plan, step);
    if (!moved) return !step->dynamic && cost_moved(plan, step) ? prn_plan_step_cost(plan, step, error) : PRONY_OK;
    if (step->dynamic) { /* decides everything in the run */
        step->choice.kernel = NULL;
        return PRONY_OK;
    }
    PRN_TRY(respecialize_choose(plan, step, &kernel, fits, error));
    if (!*fits) return PRONY_OK;
    if (step->kernel->release) step->kernel->release(step->state);
    step->state = step->context.state = NULL;
    step->context.scratch_bytes = 0;
    step->kernel = kernel;
    step->empty = prn_node_makes_nothing(step->node, &step->context);
    PRN_TRY(prn_plan_prepare_step(step, error));
    const uint64_t room =
        step->memory.scratch_buffer == PRN_NO_BUFFER ? 0 : plan->memory.buffers[step->memory.scratch_buffer].bytes;
    *fits = step->context.scratch_bytes <= room && prn_plan_stays_in_place(plan, step);
    return prn_plan_step_cost(plan, step, error);
}

prony_status prn_plan_respecialize(prn_plan *plan, bool *fits, prony_error *error)
{
    *fits = plan->options.follows && plan->memory.space_count == 0 && take_shapes(plan) && forms_still_same(plan);
    for (size_t s = 0; s < plan->step_count && *fits; s++) PRN_TRY(follow_step(plan, plan->steps[s], fits, error));
    if (*fits) plan->moves = plan->program->moves;
    return PRONY_OK;
}
