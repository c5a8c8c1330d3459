/* One call at a time holds a session, cancellable and within its budget. */
#include "engine/session/session.h"

prony_status prn_session_lock(prony_session *session, prony_error *error)
{
    if (atomic_flag_test_and_set_explicit(&session->busy, memory_order_acquire))
        return prn_fail(error, PRONY_BUSY, "%s: this session is running already; use a session per thread",
                        session->model->file->name);
    session->outer_stop = prn_cancel_token_enter(&session->stop);
    session->former = prn_budget_enter(session->budget);
    return PRONY_OK;
}

prony_status prn_session_unlock(prony_session *session, prony_status status)
{
    prn_budget_enter(session->former);
    (void)prn_cancel_token_enter(session->outer_stop);
    if (status == PRONY_CANCELLED) atomic_store_explicit(&session->stop.requested, false, memory_order_relaxed);
    atomic_flag_clear_explicit(&session->busy, memory_order_release);
    return status;
}
