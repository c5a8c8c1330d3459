/* Adapts a plan made for the largest extents to smaller ones. Values take the program's current shapes, each step's
 * kernel is chosen as by the planner and prepares again, and everything that depends on shapes is checked again.
 * Addresses stay: they do not depend on extents in plans of this kind. */
#include "engine/bind/node.h"
#include "engine/plan/plan_reach.h"
#include "engine/plan/planner.h"

#include "base/memory/alloc.h"

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

/* Sets shapes and sizes. */
static bool take_shapes(prn_plan *plan)
{
    const prn_plan_reach *reach = plan->reach;
    for (uint32_t n = 0; n < reach->value_count; n++) {
        prn_plan_value *value = plan->values[reach->values[n]];
        const prn_value_def *def = plan->program->values[value->source];
        if (def->constant && value->memory_space == PRN_ON_HOST) value->value.data = def->info.data;
        if (def->moved_at <= plan->moves) continue;
        value->dynamic = !def->constant && !def->input && !prn_shape_known(&def->info.shape);
        value->value.shape = def->info.shape;
        if (value->dynamic) continue;
        value->bytes = prn_layout_bytes(&value->value);
        if (value->buffer != PRN_NO_BUFFER && value->bytes > plan->memory.buffers[value->buffer].bytes) return false;
        if (value->memory_space != PRN_ON_HOST && value->alias == PRN_NO_VALUE && value->bytes > value->room)
            return false;
    }
    for (uint32_t n = 0; n < reach->view_count; n++) {
        uint64_t offset;
        const uint32_t root = prn_plan_root(plan, reach->views[n], &offset);
        void *data = plan->values[root]->value.data;
        plan->values[reach->views[n]]->value.data = data ? (uint8_t *)data + offset : NULL;
    }
    return true;
}

/* true: views still are all of their input's bytes, and forms that share bytes still agree. */
static bool forms_still_same(const prn_plan *plan)
{
    for (uint32_t n = 0; n < plan->reach->value_count; n++) {
        const uint32_t v = plan->reach->values[n];
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

/* true: the values are where another kernel reads and writes them. */
static bool spaces_stay(const prn_plan *plan, const prn_step *step, const prn_kernel *kernel)
{
    for (size_t i = 0; i < step->context.input_count; i++)
        if (step->inputs[i] != PRN_NO_VALUE &&
            prn_plan_space_of(plan, step->inputs[i]) != prn_kernel_reads_at(kernel, i))
            return false;
    for (size_t k = 0; k < step->context.output_count; k++)
        if (step->outputs[k] != PRN_NO_VALUE &&
            prn_plan_space_of(plan, step->outputs[k]) != prn_kernel_writes_at(kernel, k))
            return false;
    return true;
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
    *fits =
        kernel && (kernel == step->kernel || (!reads_large_constant(plan, step) && spaces_stay(plan, step, kernel)));
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

static bool step_has_room(const prn_plan *plan, const prn_step *step)
{
    const uint64_t room =
        step->memory.scratch_buffer == PRN_NO_BUFFER ? 0 : plan->memory.buffers[step->memory.scratch_buffer].bytes;
    return step->context.scratch_bytes <= room && prn_plan_stays_in_place(plan, step);
}

/* true: the leader was prepared for this change, with the kernel that both had, and both have the same shapes. The two
 * then come out alike. */
static bool step_is_led(const prn_plan *plan, const prn_step *step, const prn_step *leader)
{
    if (leader->followed != plan->program->moves || leader->kernel != step->kernel) return false;
    for (size_t i = 0; i < step->context.input_count; i++)
        if (step->input_values[i] && !prn_shape_equal(&step->input_values[i]->shape, &leader->input_values[i]->shape))
            return false;
    for (size_t k = 0; k < step->context.output_count; k++)
        if (step->output_values[k] &&
            !prn_shape_equal(&step->output_values[k]->shape, &leader->output_values[k]->shape))
            return false;
    return true;
}

/* Takes the leader's state where it is bytes alone, and prepares otherwise. */
static prony_status step_follow(prn_plan *plan, prn_step *step, const prn_step *leader, bool *fits, prony_error *error)
{
    const size_t bytes = step->kernel->state_bytes;
    if (bytes && step->state && leader->state) {
        memcpy(step->state, leader->state, bytes);
        step->context.scratch_bytes = leader->context.scratch_bytes;
    } else {
        if (step->kernel->release) step->kernel->release(step->state);
        step->state = step->context.state = NULL;
        step->context.scratch_bytes = 0;
        PRN_TRY(prn_plan_prepare_step(step, error));
    }
    step->empty = leader->empty;
    *fits = step_has_room(plan, step);
    prony_fact *facts = step->work.cost.facts;
    step->work.cost = leader->work.cost;
    step->work.cost.facts = facts;
    step->work.cost.fact_count = 0;
    step->followed = plan->program->moves;
    return PRONY_OK;
}

static prony_status step_specialize(prn_plan *plan, prn_step *step, const prn_step *leader, bool *fits,
                                    prony_error *error)
{
    const prn_kernel *kernel;
    if (leader && step_is_led(plan, step, leader)) return step_follow(plan, step, leader, fits, error);
    PRN_TRY(respecialize_choose(plan, step, &kernel, fits, error));
    if (!*fits) return PRONY_OK;
    const bool same = kernel == step->kernel;
    if (step->kernel->release) step->kernel->release(step->state);
    step->state = step->context.state = NULL;
    step->context.scratch_bytes = 0;
    step->kernel = kernel;
    step->empty = prn_node_makes_nothing(step->node, &step->context);
    PRN_TRY(prn_plan_prepare_step(step, error));
    *fits = step_has_room(plan, step);
    if (same) step->followed = plan->program->moves;
    return prn_plan_step_cost(plan, step, error);
}

/* Hides the addresses of operands that are not constants, or gives them back: kernels recognise constants by their
 * data. An operand may occur twice: its second address is NULL. */
static void step_hide_data(const prn_plan *plan, const prn_step *step, void **data, bool hide)
{
    const size_t count = step->context.input_count + step->context.output_count;
    for (size_t i = 0; i < count; i++) {
        const bool in = i < step->context.input_count;
        const uint32_t id = in ? step->inputs[i] : step->outputs[i - step->context.input_count];
        prn_plan_value *value = id == PRN_NO_VALUE ? NULL : plan->values[id];
        if (!value || value->constant || value->dynamic) continue;
        if (hide) {
            data[i] = value->value.data;
            value->value.data = NULL;
        } else if (data[i]) {
            value->value.data = data[i];
        }
    }
}

static prony_status follow_step(prn_plan *plan, prn_step *step, const prn_step *leader, bool *fits, prony_error *error)
{
    enum { FEW = 16 };
    const bool moved = step_moved(plan, step);
    if (!moved) return !step->dynamic && cost_moved(plan, step) ? prn_plan_step_cost(plan, step, error) : PRONY_OK;
    if (step->dynamic) { /* decides everything in the run */
        step->choice.kernel = NULL;
        return PRONY_OK;
    }
    const size_t count = step->context.input_count + step->context.output_count;
    void *few[FEW] = {NULL}, **data = count <= FEW ? few : prn_calloc(count, sizeof *data);
    if (!data) return prn_no_memory(error);
    step_hide_data(plan, step, data, true);
    const prony_status status = step_specialize(plan, step, leader, fits, error);
    step_hide_data(plan, step, data, false);
    if (data != few) prn_free(data);
    return status;
}

prony_status prn_plan_respecialize(prn_plan *plan, bool *fits, prony_error *error)
{
    *fits = plan->options.follows;
    if (!*fits) return PRONY_OK;
    if (!prn_plan_reach_update(plan)) return prn_no_memory(error);
    const prn_plan_reach *reach = plan->reach;
    *fits = take_shapes(plan) && forms_still_same(plan);
    for (uint32_t n = 0; n < reach->step_count && *fits; n++) {
        const prn_step *leader = reach->leaders[n] == PRN_NO_STEP ? NULL : plan->steps[reach->leaders[n]];
        PRN_TRY(follow_step(plan, plan->steps[reach->steps[n]], leader, fits, error));
    }
    if (*fits) plan->moves = plan->program->moves;
    return PRONY_OK;
}
