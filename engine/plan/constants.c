/* Pins the deferred constants that steps read when they run. Packed constants are read only while they are packed;
 * unaligned bytes are read in the file. A dynamic step chooses kernels at run time: it pins a packable constant only
 * when a run's kernel does not pack it. */
#include "engine/plan/planner.h"

static prony_status constants_hold(prn_plan *plan, const prn_plan_value *value, prony_error *error)
{
    return prn_weight_cache_pin(plan->program->model->shared, &plan->refs, value->shared, plan->parallel.threads,
                                error);
}

/* Bits of inputs that any kernel of a dynamic step packs. */
static uint32_t may_pack(const prn_step *step)
{
    uint32_t inputs = 0;
    for (const prn_kernel *kernel = step->node->binding.op->kernels; step->dynamic && kernel && kernel->name; kernel++)
        inputs |= kernel->packs;
    return inputs;
}

static prony_status hold_in_run(const prony_context *context, const prn_kernel *kernel, bool prepared)
{
    const prn_node_environment *site = context->services_data;
    prn_step *step = site->step;
    const uint32_t reads = prepared ? kernel->packs & ~site->packed : ~kernel->packs;
    for (uint32_t i = 0; i < 32 && step->choice.unpinned & reads; i++) {
        const uint32_t bit = UINT32_C(1) << i;
        if (!(step->choice.unpinned & reads & bit)) continue;
        PRN_TRY(prn_weight_cache_pin(site->program->model->shared, &site->plan->refs,
                                     site->plan->values[step->inputs[i]]->shared, context->threads, context->error));
        step->choice.unpinned &= ~bit;
    }
    return PRONY_OK;
}

static prony_status read_in_place(prn_plan *plan, prn_step *step, uint32_t i, prony_error *error)
{
    const prn_plan_value *value = plan->values[step->inputs[i]];
    const prn_lazy_constant *recipe = prn_weight_cache_lazy(value->shared);
    if (recipe->kind != PRN_LAZY_COPY) return constants_hold(plan, value, error);
    uint32_t id = prn_plan_add_value(plan, value->source);
    if (id == PRN_NO_VALUE) return prn_no_memory(error);
    prn_plan_value *raw = plan->values[id];
    raw->value = value->value;
    raw->value.data = (void *)(uintptr_t)recipe->source;
    raw->bytes = value->bytes;
    raw->constant = true;
    step->inputs[i] = id;
    step->input_values[i] = &raw->value;
    return PRONY_OK;
}

prony_status prn_plan_hold_inputs(prn_plan *plan, prn_step *step, prony_error *error)
{
    const uint32_t packable = may_pack(step);
    for (uint32_t i = 0; i < step->context.input_count; i++) {
        if (step->inputs[i] == PRN_NO_VALUE) continue;
        const prn_plan_value *value = plan->values[step->inputs[i]];
        const uint32_t bit = i < 32 ? UINT32_C(1) << i : 0;
        if (!prn_weight_cache_lazy(value->shared) || (step->kernel && step->kernel->packs & bit)) continue;
        if (packable & bit) {
            step->choice.unpinned |= bit;
            step->site.hold = hold_in_run;
            continue;
        }
        const bool anywhere = step->kernel && step->kernel->unaligned & bit;
        PRN_TRY(anywhere ? read_in_place(plan, step, i, error) : constants_hold(plan, value, error));
    }
    return PRONY_OK;
}

uint64_t prn_plan_bytes_to_pack(const prn_plan *plan, const prn_step *step)
{
    uint64_t most = 0;
    for (uint32_t i = 0; step->kernel && i < step->context.input_count && i < 32; i++) {
        if (!(step->kernel->packs >> i & 1) || step->inputs[i] == PRN_NO_VALUE) continue;
        const prn_plan_value *value = plan->values[step->inputs[i]];
        if (value->constant && value->bytes > most) most = value->bytes;
    }
    return most;
}

prony_status prn_plan_hold_unpacked(prn_plan *plan, const prn_step *step, prony_error *error)
{
    const uint32_t left = step->kernel->packs & ~step->site.packed;
    for (uint32_t i = 0; i < step->context.input_count && i < 32; i++)
        if (step->inputs[i] != PRN_NO_VALUE && left >> i & 1)
            PRN_TRY(constants_hold(plan, plan->values[step->inputs[i]], error));
    return PRONY_OK;
}

prony_status prn_plan_hold_outputs(prn_plan *plan, prony_error *error)
{
    for (size_t k = 0; k < plan->program->output_count; k++)
        PRN_TRY(constants_hold(plan, plan->values[plan->outputs[k]], error));
    return PRONY_OK;
}
