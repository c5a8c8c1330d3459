/* Makes models and sessions from the command line's options. */
#include "bench/session/inputs.h"
#include "bench/process/interrupt.h"

prony_status load_model(const options *o, prony_model **model, const char *path, prony_error *error)
{
    prony_model_options m = PRONY_MODEL_OPTIONS_INIT;
    m.copy = o->limits.copy_model;
    m.data_folder = o->files.data_folder;
    interrupt_at_once(true);
    prony_status status = prony_model_load(model, path, &m, error);
    interrupt_at_once(false);
    return status;
}

/* Warns once per process about unusable processors in --affinity. */
static void warn_affinity(const options *o, const prony_session *session)
{
    static bool said;
    const char *failure;
    (void)prony_session_affinity(session, &failure);
    if (failure && !said) fail(o, "warning: --affinity %s: %s", o->threads.affinity, failure);
    said = said || failure;
}

int make_session(const options *o, prony_model *model, prony_session **session, bool profile)
{
    prony_error error = {0};
    prony_session_options s = session_options(o);
    s.no_profile = !profile;
    if (session_create(session, model, &s, &error) != PRONY_OK) return report_error(o, &error);
    warn_affinity(o, *session);
    return bind_inputs(o, model, *session);
}

int make_bare_session(const options *o, prony_model *model, prony_session **session, bool profile)
{
    prony_error error = {0};
    prony_session_options s = session_options(o);
    s.no_profile = !profile;
    s.batch = 0;
    if (session_create(session, model, &s, &error) != PRONY_OK) return report_error(o, &error);
    warn_affinity(o, *session);
    return EXIT_DONE;
}
