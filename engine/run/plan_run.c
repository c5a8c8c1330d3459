/* A run of a plan: by its schedule with several workers, else step by step. */
#include "base/ranges/ranges.h"
#include "base/threads/cancel.h"
#include "engine/run/dispatch.h"
#include "engine/run/dynamic_tensor.h"
#include "engine/plan/schedule.h"

#include <string.h>

/* Device steps of a stamped run wait for the device and note its times. */
static void stamp_device(prn_plan *plan)
{
    for (size_t s = 0; s < plan->step_count; s++) {
        plan->steps[s]->device.timed = plan->run.stamped;
        plan->steps[s]->device.times = (prn_device_times){0};
    }
}

/* Releases the values of a failed run. */
static void drop_all(prn_plan *plan)
{
    for (uint32_t v = 0; v < plan->value_count; v++)
        if (plan->values[v]->dynamic) prn_plan_give_back(plan, v, (uint32_t)plan->step_count);
}

static prony_status plan_run_steps(prn_plan *plan, prn_trace *trace, prony_error *error)
{
    return plan->parallel.schedule ? prn_schedule_run(plan->parallel.schedule, trace, error)
                                   : prn_plan_run_alone(plan, trace, error);
}

prony_status prn_plan_run(prn_plan *plan, prn_trace *trace, prony_error *error)
{
    prony_status status = prn_cancel_check(error);
    if (status != PRONY_OK) return status;
    plan->run.stopped_at = PRN_NO_STEP;
    plan->run.stamped = trace || (plan->nested.outer && plan->nested.outer->run.stamped);
    if (plan->options.device) stamp_device(plan);
    if (trace && trace->shares)
        memset(trace->shares, 0, trace->share_steps * (size_t)trace->members * sizeof *trace->shares);
    const prony_range_hooks *hooks = plan->nested.outer ? NULL : prn_ranges();
    if (hooks) hooks->push(hooks->user, plan->program->model->file->name, "run");
    status = plan_run_steps(plan, trace, error);
    if (plan->options.device) {
        const prony_status settled = prn_device_settle(plan->options.device, status == PRONY_OK ? error : NULL);
        if (status == PRONY_OK) status = settled;
    }
    if (hooks) hooks->pop(hooks->user);
    if (status != PRONY_OK) drop_all(plan);
    return status;
}
