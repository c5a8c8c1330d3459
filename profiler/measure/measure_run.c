/* One run of a session, its phases around it, timed. */
#include "profiler/measure/measure.h"

#include "base/os/clock.h"

prony_status prn_recording_timed(prn_recording *r, int64_t *latency_ns, prony_error *error)
{
    prony_session *session = r->session;
    int64_t start = prn_now_ns();
    prony_status status = prony_session_run(session, error);
    *latency_ns = prn_now_ns() - start;
    r->last_run_ns = start;
    if (status == PRONY_OK && session->current != r->cached)
        return prn_fail(error, PRONY_SHAPE_MISMATCH, "%s: preprocessing changed the input shape",
                        session->model->file->name);
    return status;
}

prony_status prn_recording_phase(const prn_recording *r,
                                 prony_status (*phase)(void *user, prony_session *session, prony_error *error),
                                 int64_t *ns, prony_error *error)
{
    *ns = 0;
    if (!phase) return PRONY_OK;
    int64_t start = prn_now_ns();
    prony_status status = prn_status_known(phase(r->options->phase_user, r->session, error));
    *ns = prn_now_ns() - start;
    return status;
}

prony_status prn_recording_run(prn_recording *r, int64_t *latency_ns, prony_error *error)
{
    int64_t phase_ns;
    PRN_TRY(prn_recording_phase(r, r->options->preprocess, &phase_ns, error));
    PRN_TRY(prn_recording_timed(r, latency_ns, error));
    return prn_recording_phase(r, r->options->postprocess, &phase_ns, error);
}
