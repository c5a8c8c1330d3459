/* A plan kept by a session: made for the inputs' shapes, with its threads and room for its events. */
#include "base/os/clock.h"
#include "base/cpu/machine.h"
#include "base/threads/parallel.h"
#include "engine/plan/planner.h"
#include "engine/session/session.h"

void prn_cached_release(prn_cached_plan *cached)
{
    prn_plan_release(cached->plan);
    prn_program_release(cached->program);
    prn_dynamic_dims_release(cached->extents);
    prn_free(cached->inputs);
    *cached = (prn_cached_plan){0};
}

bool prn_cached_fits(const prony_session *session, const prn_cached_plan *cached)
{
    if (!cached->plan || cached->graph != session->graph) return false;
    for (size_t i = 0; i < session->input_count + session->optional_count; i++)
        if (cached->inputs[i].kind != session->inputs[i].value.kind ||
            cached->inputs[i].dtype != session->inputs[i].value.dtype ||
            !prn_shape_equal(&cached->inputs[i].shape, &session->inputs[i].value.shape))
            return false;
    return true;
}

static prony_status reserve_trace(prony_session *session, const prn_plan *plan, prony_error *error)
{
    if (session->options.no_profile || session->trace.capacity >= plan->step_count) return PRONY_OK;
    prn_event *events = prn_realloc(session->trace.events, plan->step_count, sizeof *events);
    if (!events) return prn_no_memory(error);
    session->trace.events = events;
    session->trace.capacity = plan->step_count;
    return PRONY_OK;
}

prony_status prn_cached_inputs(prony_session *session, prn_cached_plan *cached, prony_error *error)
{
    const size_t count = session->input_count + session->optional_count;
    if (!cached->inputs) cached->inputs = prn_calloc(count + 1, sizeof *cached->inputs);
    if (!cached->inputs) return prn_no_memory(error);
    cached->graph = session->graph;
    for (size_t i = 0; i < count; i++) {
        cached->inputs[i] = session->inputs[i].value;
        cached->inputs[i].data = NULL;
        cached->inputs[i].items = NULL;
        cached->inputs[i].count = 0;
    }
    return PRONY_OK;
}

/* Plans cached->program under the session's options, and reserves what a run needs beyond it: threads and the trace. After a
 * failure the caller releases `cached`, which may hold the plan already. */
prony_status prn_cached_plan_program(prony_session *session, prn_cached_plan *cached, prony_error *error)
{
    int workers = session->options.inter_op_threads;
    const bool choose = workers < 0; /* only then cores count: looking for them reads some thirty files */
    prn_plan_options options = {.precision = session->precision,
                                .device = session->device,
                                .device_bytes = session->options.device_memory_limit_bytes,
                                .device_split = session->options.device_split,
                                .threads = choose ? session->options.intra_op_threads : session->asked_threads,
                                .workers = workers,
                                .cores = choose ? prn_machine_auto_threads(1, prn_session_mask(session)) : 0,
                                .no_work_stealing = session->options.no_work_stealing,
                                .record_memory = session->options.record_memory,
                                .max_loop_trips = session->options.max_loop_trips,
                                .follows = cached->extents != NULL,
                                .no_reuse = session->options.no_reuse};
    if ((choose || workers > 1) && session->model->find_rates)
        PRN_TRY(session->model->find_rates(&options.rates, error));
    const int64_t start = prn_now_ns();
    session->preparations.planned++;
    PRN_TRY(prn_session_create_plan(session, cached->program, &options, &cached->plan, error));
    PRN_TRY(prn_plan_staff(session, cached->plan, error));
    PRN_TRY(reserve_trace(session, cached->plan, error));
    cached->plan_ns = prn_now_ns() - start;
    cached->first_run_ns = -1;
    if (cached->plan->parallel.workers == 1 && !session->team) prn_thread_pool_warm(cached->plan->parallel.threads);
    return PRONY_OK;
}
