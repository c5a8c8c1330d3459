/* The one call site of every operator: stamp, run, stamp, one event. Static steps touch nothing but their own context;
 * dynamic steps infer their shapes first and draw outputs from the arena's dynamic region. */
#include "engine/run/dispatch.h"

#include "base/memory/stack.h"
#include "base/os/clock.h"
#include "base/ranges/ranges.h"
#include "base/cpu/machine.h"
#include "base/threads/cancel.h"
#include "base/threads/thread_pool.h"
#include "engine/bind/node.h"
#include "engine/plan/buffer_poison.h"
#include "engine/plan/step_graph.h"
#include "engine/run/dynamic_tensor.h"

#include <string.h>

void prn_plan_give_back(prn_plan *plan, uint32_t value, uint32_t step)
{
    prn_dynamic_tensor_drop(plan->memory.arena, &plan->values[value]->value, prn_dynamic_tensor_step(plan, step));
}

static void dispatch_give_back(prn_plan *plan, const prn_step *step)
{
    for (uint32_t d = 0; d < step->memory.last_use_count; d++)
        prn_plan_give_back(plan, step->memory.last_uses[d], step->index);
}

void prn_plan_forget(prn_plan *plan)
{
    for (uint32_t k = 0; k < plan->memory.retained_count; k++)
        prn_plan_give_back(plan, plan->memory.retained[k], (uint32_t)plan->step_count);
}

/* ---- work of subgraphs: counted while a step of the outermost plan runs, over all their executions ---- */

static bool add_executed(const prn_plan *plan, prony_cost *to)
{
    bool ok = prn_cost_add_times(to, &plan->fixed_cost, plan->nested.trips);
    for (size_t s = 0; ok && plan->nested.trips && s < plan->step_count; s++)
        if (plan->steps[s]->dynamic || plan->steps[s]->children) ok = prn_step_executed(plan->steps[s], to);
    return ok;
}

bool prn_step_beside(const prn_plan *plan, const prn_step *step, prony_cost *to)
{
    bool ok = true;
    for (uint32_t l = 0; ok && prn_step_learns_cost(step) && l < step->node->layer_count; l++) {
        const prony_cost layer = prn_layer_cost(&plan->program->layers[step->node->layers[l]]);
        if (step->node->layers[l] != step->node->own_layer) ok = prn_cost_add(to, &layer);
    }
    return ok;
}

bool prn_step_executed(const prn_step *step, prony_cost *to)
{
    bool ok = !step->work.executed || prn_cost_add(to, step->work.executed);
    for (uint32_t c = 0; ok && step->children && c < step->node->child_count; c++)
        if (step->children[c]) ok = add_executed(step->children[c], to);
    return ok;
}

/* Resets the counters. A plan that has not run since the last reset is already clean, and so are its subgraphs. */
static void begin_counting(prn_plan *plan)
{
    plan->run.stopped_at = PRN_NO_STEP;
    if (!plan->nested.trips) return;
    plan->nested.trips = 0;
    for (size_t s = 0; s < plan->step_count; s++) {
        prn_step *step = plan->steps[s];
        step->nested.total_ns = 0;
        if (!step->dynamic && !step->children) continue;
        *step->work.executed = (prony_cost){0};
        for (uint32_t c = 0; step->children && c < step->node->child_count; c++)
            if (step->children[c]) begin_counting(step->children[c]);
    }
}

/* ---- steps that learn shapes or costs while they run ---- */

/* Infers a dynamic step again. Outputs on whose type and shape the plan relies must come out as planned; the others
 * start empty. */
static PRN_OWN_FRAME prony_status infer_now(const prn_plan *plan, const prn_step *step, prony_context *context)
{
    for (size_t i = 0; i < context->input_count; i++) PRN_TRY(prn_node_check_kind(context, step->node, i));
    for (size_t k = 0; k < context->output_count; k++)
        if (context->outputs[k] && plan->values[step->outputs[k]]->dynamic)
            *context->outputs[k] = (prony_value){.shape = prn_shape_unknown()};
    context->user = step->node->binding.infer_user;
    PRN_TRY(step->node->binding.infer(context));
    context->user = step->node->binding.run_user;
    for (size_t k = 0; k < context->output_count; k++) {
        prony_value *out = context->outputs[k];
        if (!out || plan->values[step->outputs[k]]->dynamic) continue;
        const prony_value *planned = &plan->program->values[plan->values[step->outputs[k]]->source]->info;
        char came[PRN_SHAPE_TEXT_BYTES], wanted[PRN_SHAPE_TEXT_BYTES];
        if (out->kind == PRONY_TENSOR && out->dtype == planned->dtype && prn_shape_equal(&out->shape, &planned->shape))
            continue;
        prn_value_text(out, came);
        out->kind = PRONY_TENSOR;
        out->dtype = planned->dtype;
        out->shape = planned->shape;
        return prony_fail(context, PRONY_INTERNAL, "output %zu is %s, planned as %s", k, came,
                          prn_value_text(planned, wanted));
    }
    return PRONY_OK;
}

/* true: the step is a view of a value in the dynamic region; it shares the block, which is not written any more. */
static bool is_view(const prn_plan *plan, const prn_step *step)
{
    unsigned flags = step->node->binding.op->flags;
    if (!(flags & PRN_OP_VIEW) || (plan->options.no_reuse && !(flags & PRN_OP_OPEN))) return false;
    for (size_t k = 1; k < step->context.output_count; k++)
        if (step->context.outputs[k]) return false;
    return step->context.outputs[0] && plan->values[step->outputs[0]]->dynamic;
}

static PRN_OWN_FRAME prony_status make_view(const prn_step *step, const prony_context *context)
{
    prony_value *out = context->outputs[0];
    const prony_value type = *out;
    PRN_TRY(prn_dynamic_tensor_keep(&step->site, context->inputs[0], out, step->outputs[0], context->error));
    if (type.kind == PRONY_TENSOR) out->shape = type.shape;
    return PRONY_OK;
}

static PRN_OWN_FRAME prony_status take_outputs(const prn_plan *plan, const prn_step *step, const prony_context *context)
{
    for (size_t k = 0; k < context->output_count; k++) {
        prony_value *out = context->outputs[k];
        if (!out || !plan->values[step->outputs[k]]->dynamic || out->kind != PRONY_TENSOR ||
            !prn_shape_known(&out->shape))
            continue;
        if (prn_value_bytes(out) == SIZE_MAX) return prony_fail(context, PRONY_LIMIT, "output %zu is too large", k);
        PRN_TRY(prn_dynamic_tensor_take(&step->site, out, step->outputs[k], context->error));
    }
    return PRONY_OK;
}

static PRN_OWN_FRAME prony_status check_made(const prony_context *context)
{
    for (size_t k = 0; k < context->output_count; k++) {
        const prony_value *out = context->outputs[k];
        bool made = !out || (out->kind == PRONY_TENSOR ? out->data && prn_shape_known(&out->shape)
                                                       : out->items || out->count == 0);
        if (!made) return prony_fail(context, PRONY_INTERNAL, "output %zu was not made", k);
    }
    return PRONY_OK;
}

static void forget_children(const prn_step *step)
{
    for (uint32_t c = 0; c < step->node->child_count; c++)
        if (step->children[c]) prn_plan_forget(step->children[c]);
}

/* Adds the children's work to the step; parameters stay. A failed run adds nothing. */
static prony_status book_children(prn_step *step, prony_error *error)
{
    prony_cost cost = {.parameters = step->work.cost.parameters};
    if (!prn_step_executed(step, &cost))
        return prn_fail(error, PRONY_LIMIT, "the cost of what was executed exceeds 64 bits");
    prn_cost_keep(&step->work.cost, &cost);
    return PRONY_OK;
}

/* true: a value has the same type as before; notes the present one. */
static bool dispatch_keeps_form(prn_tensor_type *form, const prony_value *value)
{
    if (value->kind == form->kind && value->dtype == form->dtype && prn_shape_equal(&value->shape, &form->shape))
        return true;
    *form = (prn_tensor_type){value->kind, value->dtype, value->shape};
    return false;
}

/* true: types and shapes are the last run's, so the step's kernel and cost stay valid. */
static bool keeps_forms(prn_step *step, const prony_context *context)
{
    bool same = step->choice.kernel != NULL;
    prn_tensor_type *form = step->choice.types;
    for (size_t i = 0; i < context->input_count; i++, form++)
        if (context->inputs[i]) same &= dispatch_keeps_form(form, context->inputs[i]);
    for (size_t k = 0; k < context->output_count; k++, form++) {
        const prony_value *out = context->outputs[k];
        if (out)
            same &= dispatch_keeps_form(form, out) && prn_shape_known(&out->shape); /* else the run determines it */
    }
    return same;
}

static prony_status run_dynamic(prn_plan *plan, prn_step *step, prony_context *context)
{
    PRN_TRY(infer_now(plan, step, context));
    if (!step->choice.types || !keeps_forms(step, context)) {
        step->choice.kernel = NULL;
        step->choice.costed = false;
    }
    if (is_view(plan, step)) {
        PRN_TRY(make_view(step, context));
        if (!step->choice.kernel) step->choice.kernel = prn_node_kernel(step->node, context, true);
    } else {
        if (!(step->node->binding.op->flags & PRN_OP_OPEN)) PRN_TRY(take_outputs(plan, step, context));
        PRN_TRY(prn_node_run_once(step->node, context, &step->choice.kernel));
    }
    PRN_TRY(check_made(context));
    if (step->children || step->choice.costed) return PRONY_OK;
    prony_cost cost;
    PRN_TRY(prn_node_cost(step->node, context, &cost));
    cost.parameters = step->work.cost.parameters;
    prn_cost_keep(&step->work.cost, &cost);
    step->choice.costed = true;
    return PRONY_OK;
}

/* Adds one execution of a dynamic step of a subgraph. */
static prony_status count_once(prn_step *step, prony_error *error)
{
    prony_cost cost = prn_cost_kept(&step->work.cost);
    cost.parameters = 0;
    if (prn_cost_add(step->work.executed, &cost)) return PRONY_OK;
    return prn_fail(error, PRONY_LIMIT, "the cost of what was executed exceeds 64 bits");
}

static void begin_counting_children(prn_step *step)
{
    *step->work.executed = (prony_cost){0};
    for (uint32_t c = 0; c < step->node->child_count; c++)
        if (step->children[c]) begin_counting(step->children[c]);
}

static prony_status run_open(prn_plan *plan, prn_step *step, prony_error *error)
{
    prony_context context = step->context;
    context.error = error;
    if (step->children && !plan->nested.outer) begin_counting_children(step);
    prony_status status = step->dynamic ? run_dynamic(plan, step, &context) : step->kernel->run(&context);
    if (step->children) forget_children(step);
    if (status != PRONY_OK) return status;
    if (!plan->nested.outer) return step->children ? book_children(step, error) : PRONY_OK;
    return step->children ? PRONY_OK : count_once(step, error);
}

/* After a cancellation the step's result, or another failure, is replaced by PRONY_CANCELLED. */
static prony_status dispatch_cancelled(const prn_step *step, prony_status status, prony_error *error)
{
    if (status == PRONY_CANCELLED && error && strcmp(error->message, "cancelled") != 0) return status; /* by name */
    status = prn_cancel_check(error);
    prn_error_name_node(error, &step->node->info);
    return status;
}

/* A step on the host reads what steps of the device may still be copying there. */
static prony_status dispatch_settle(const prn_plan *plan, const prn_step *step, prony_error *error)
{
    const bool on_device = step->kernel && step->kernel->memory_space;
    return on_device ? PRONY_OK : prn_device_settle(plan->options.device, error);
}

static inline prony_status dispatch_run_alone(prn_plan *plan, prn_step *step, prony_error *error)
{
    prony_status status;
    step->context.error = error;
    if (plan->options.device) PRN_TRY(dispatch_settle(plan, step, error));
    if (step->dynamic || step->children)
        status = run_open(plan, step, error);
    else
        status = step->empty ? PRONY_OK : step->kernel->run(&step->context);
    return prn_cancelled() ? dispatch_cancelled(step, status, error) : status;
}

/* As dispatch_run_step, inside of a range. */
static __attribute__((cold)) PRN_OWN_FRAME prony_status dispatch_run_in_range(prn_plan *plan, prn_step *step,
                                                                              const prony_range_hooks *hooks,
                                                                              prony_error *error)
{
    hooks->push(hooks->user, step->node->info.name, step->node->info.op_type);
    const prony_status status = dispatch_run_alone(plan, step, error);
    hooks->pop(hooks->user);
    return status;
}

static inline prony_status dispatch_run_step(prn_plan *plan, prn_step *step, prony_error *error)
{
    const prony_range_hooks *hooks = prn_ranges();
    return hooks ? dispatch_run_in_range(plan, step, hooks, error) : dispatch_run_alone(plan, step, error);
}

prony_status prn_plan_step(prn_plan *plan, uint32_t s, prony_error *error)
{
    prn_step *step = plan->steps[s];
    prony_status status = dispatch_run_step(plan, step, error);
    return status == PRONY_OK ? PRONY_OK : prn_error_blame(error, status, &step->node->info);
}

static inline prony_status run_step(prn_plan *plan, uint32_t s, prony_error *error)
{
    prn_step *step = plan->steps[s];
    prony_status status = dispatch_run_step(plan, step, error);
    if (step->memory.last_use_count) dispatch_give_back(plan, step);
    if (status != PRONY_OK) return prn_error_blame(error, status, &step->node->info);
    return PRONY_OK;
}

static uint32_t library_calls(uint64_t all_before, uint64_t own_before)
{
    uint64_t all = 0, own = prn_heap_calls() - own_before;
    if (!prn_all_heap_calls(&all)) return 0;
    all -= all_before;
    return all > own ? (uint32_t)(all - own) : 0;
}

/* Lets the pool's threads write their shares of step `s`, if the trace has room. */
static void dispatch_watch_threads(const prn_trace *trace, uint32_t s)
{
    bool room = s < trace->share_steps;
    prn_thread_pool_watch(room ? &trace->shares[s * (size_t)trace->members] : NULL, room ? trace->members : 0);
}

static prony_status dispatch_run_stamped(prn_plan *plan, prn_trace *trace, prony_error *error)
{
    trace->count = 0;
    for (uint32_t s = 0; s < plan->step_count; s++) {
        uint64_t all = 0, own = prn_heap_calls();
        if (trace->shares) dispatch_watch_threads(trace, s);
        (void)prn_all_heap_calls(&all);
        if (trace->watch) trace->watch(trace->watch_user, s, false);
        int64_t start = prn_now_ns();
        prony_status status = run_step(plan, s, error);
        int64_t end = prn_now_ns();
        if (trace->watch) trace->watch(trace->watch_user, s, true);
        if (trace->count < trace->capacity)
            trace->events[trace->count++] = (prn_event){start, end, s, 0, library_calls(all, own)};
        else
            trace->dropped++;
        if (status == PRONY_OK) continue;
        plan->run.stopped_at = s;
        return status;
    }
    return PRONY_OK;
}

static prony_status run_traced(prn_plan *plan, prn_trace *trace, prony_error *error)
{
    if (!trace->shares) return dispatch_run_stamped(plan, trace, error);
    prony_status status = dispatch_run_stamped(plan, trace, error);
    prn_thread_pool_watch(NULL, 0);
    return status;
}

/* Runs a subgraph. Times add up in the steps, so many trips need no memory. */
static prony_status run_nested(prn_plan *plan, prony_error *error)
{
    for (uint32_t s = 0; s < plan->step_count; s++) {
        prn_step *step = plan->steps[s];
        step->nested.start_ns = prn_now_ns();
        prony_status status = run_step(plan, s, error);
        step->nested.total_ns += prn_now_ns() - step->nested.start_ns;
        if (status == PRONY_OK) continue;
        plan->run.stopped_at = s;
        return status;
    }
    return PRONY_OK;
}

static prony_status run_plain(prn_plan *plan, prony_error *error)
{
    for (uint32_t s = 0; s < plan->step_count; s++) {
        prony_status status = run_step(plan, s, error);
        if (status == PRONY_OK) continue;
        plan->run.stopped_at = s;
        return status;
    }
    return PRONY_OK;
}

static prony_status run_filled(prn_plan *plan, prony_error *error)
{
    prn_buffers_poison_all(plan);
    for (uint32_t s = 0; s < plan->step_count; s++) {
        prn_buffers_unpoison(plan, s);
        PRN_TRY(run_step(plan, s, error));
        prn_buffers_poison(plan, s);
    }
    return PRONY_OK;
}

prony_status prn_plan_run_alone(prn_plan *plan, prn_trace *trace, prony_error *error)
{
    if (plan->options.fill_dead) return run_filled(plan, error);
    if (trace) return run_traced(plan, trace, error);
    return plan->run.stamped ? run_nested(plan, error) : run_plain(plan, error);
}
