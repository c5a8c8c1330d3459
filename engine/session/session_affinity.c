/* A session's affinity list: its effect, and pins that outlast a run. */
#include "engine/session/session.h"

const prn_cpu_mask *prn_session_mask(const prony_session *session)
{
    return session->affinity && session->affinity->count > 0 ? &session->affinity->mask : NULL;
}

prony_status prony_affinity_check(const char *list, prony_error *error)
{
    if (!list) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_affinity_check: list is NULL");
    return prn_affinity_check(list, error);
}

const char *prony_session_affinity(const prony_session *session, const char **failure)
{
    const prn_affinity *affinity = session->affinity;
    if (failure) *failure = affinity && affinity->failure[0] ? affinity->failure : NULL;
    return affinity && affinity->count > 0 ? affinity->used : NULL;
}

prony_status prony_session_pin(prony_session *session, prony_error *error)
{
    if (!session) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_session_pin: session is NULL");
    if (session->pinned)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s: a thread is pinned by this session already",
                        session->model->file->name);
    session->pinned = true;
    prn_pin_begin(&session->pin, session->affinity);
    return PRONY_OK;
}

void prony_session_unpin(prony_session *session)
{
    if (!session || !session->pinned) return;
    session->pinned = false;
    prn_pin_end(&session->pin);
}
