/* The one call site of every operator: stamp, run, stamp, one event. Static steps touch nothing but their own context;
 * dynamic steps infer their shapes first and draw outputs from the arena's dynamic region. */
#include "base/clock.h"
#include "base/machine.h"
#include "engine/plan.h"

static void give_back(prn_plan *plan, uint32_t step_index, const prn_step *step)
{
    for (uint32_t d = 0; d < step->dying_count; d++) {
        prony_value *value = &plan->values[step->dying[d]]->value;
        if (value->data) prn_arena_give(plan->arena, value->data, step_index);
        value->data = NULL;
    }
}

/* Outputs get type, shape and bytes now; what infer leaves open the kernel settles through host->output_alloc. */
static prony_status run_dynamic(prn_plan *plan, uint32_t step_index, prn_step *step, prony_error *error)
{
    prony_context context = step->context;
    context.error = error;
    context.user = step->node->binding.infer_user;
    for (size_t k = 0; k < context.output_count; k++) {
        if (!context.outputs[k] || !plan->values[step->outputs[k]]->dynamic) continue;
        context.outputs[k]->data = NULL;
        context.outputs[k]->shape = prn_shape_unknown();
    }
    PRN_TRY(step->node->binding.infer(&context));
    for (size_t k = 0; k < context.output_count; k++) {
        prony_value *out = context.outputs[k];
        if (!out || out->data || !prn_shape_known(&out->shape)) continue;
        size_t bytes = prn_value_bytes(out);
        if (bytes == SIZE_MAX) return prony_fail(&context, PRONY_LIMIT, "output %zu is too large", k);
        PRN_TRY(prn_arena_take(plan->arena, bytes, step->outputs[k], step_index, &out->data, error));
    }
    context.user = step->node->binding.run_user;
    PRN_TRY(prn_node_run_once(step->node, &context));
    uint64_t parameters = step->cost.parameters;
    PRN_TRY(prn_node_cost(step->node, &context, &step->cost));
    step->cost.parameters = parameters;
    return PRONY_OK;
}

static inline prony_status run_step(prn_plan *plan, uint32_t s, prony_error *error)
{
    prn_step *step = plan->steps[s];
    prony_status status;
    step->context.error = error;
    if (step->dynamic)
        status = run_dynamic(plan, s, step, error);
    else
        status = step->kernel->run(&step->context);
    if (step->dying_count) give_back(plan, s, step);
    return status;
}

static uint32_t library_calls(uint64_t all_before, uint64_t own_before)
{
    uint64_t all = 0, own = prn_heap_calls() - own_before;
    if (!prn_all_heap_calls(&all)) return 0;
    all -= all_before;
    return all > own ? (uint32_t)(all - own) : 0;
}

prony_status prn_plan_run(prn_plan *plan, prn_trace *trace, prony_error *error)
{
    if (!trace) {
        for (uint32_t s = 0; s < plan->step_count; s++) PRN_TRY(run_step(plan, s, error));
        return PRONY_OK;
    }
    trace->count = 0;
    for (uint32_t s = 0; s < plan->step_count; s++) {
        uint64_t all = 0, own = prn_heap_calls();
        (void)prn_all_heap_calls(&all);
        int64_t start = prn_now_ns();
        prony_status status = run_step(plan, s, error);
        int64_t end = prn_now_ns();
        if (trace->count < trace->capacity)
            trace->events[trace->count++] = (prn_event){start, end, s, library_calls(all, own)};
        else
            trace->dropped++;
        PRN_TRY(status);
    }
    return PRONY_OK;
}
