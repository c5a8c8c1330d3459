/* A session's threads for a plan, and a run of it. */
#include "base/cpu/machine.h"
#include "base/threads/thread_pool.h"
#include "engine/plan/schedule.h"
#include "engine/session/session.h"

prony_status prn_plan_staff(prony_session *session, prn_plan *plan, prony_error *error)
{
    if (!plan->parallel.schedule) return PRONY_OK;
    if (!session->team) {
        int most = plan->parallel.workers * plan->parallel.threads;
        if (session->options.inter_op_threads < 0) {
            int cores = prn_machine_auto_threads(1, prn_session_mask(session));
            if (most < cores) most = cores;
        }
        PRN_TRY(prn_thread_pool_create(&session->team, most - 1, false, error));
    }
    return prn_schedule_staff(plan->parallel.schedule, session->team, error);
}

prony_status prn_session_run_plan(prony_session *session, prn_plan *plan, prn_trace *trace, prony_error *error)
{
    prn_plan_forget(plan);
    prn_arena_run_end(plan->memory.arena); /* the text of the last run's string outputs */
    prn_arena_run_begin(plan->memory.arena);
    if (plan->parallel.workers > 1 || !session->team) return prn_plan_run(plan, trace, error);
    prn_thread_context former = prn_thread_pool_join(session->team);
    prony_status status = prn_plan_run(plan, trace, error);
    prn_thread_pool_leave(former);
    return status;
}
