/* prony eval MODEL DATA: every labelled sample through the model; top-1 and top-5, and what the runs took. */
#include "bench/accuracy_command.h"
#include "bench/inputs.h"
#include "bench/interrupt.h"
#include "bench/judge.h"

#include <string.h>

static void show_samples(void *user, int64_t done, int64_t samples)
{
    (void)user;
    char text[64];
    snprintf(text, sizeof text, "%lld of %lld samples", (long long)done, (long long)samples);
    show_progress_text(text);
}

static prony_evaluate_options evaluate_options(const options *o)
{
    prony_evaluate_options e = PRONY_EVALUATE_OPTIONS_INIT;
    e.batch = o->batch;
    if (o->warmup >= 0) e.warmup_runs = o->warmup;
    if (want_progress(o)) e.progress = show_samples;
    return e;
}

static prony_status evaluate(const options *o, prony_report **report, prony_model **model, prony_session **session,
                             prony_dataset **data, prony_error *error)
{
    prony_session_options s = session_options(o);
    prony_evaluate_options e = evaluate_options(o);
    prony_dataset_options d = PRONY_DATASET_OPTIONS_INIT;
    d.classes = o->labels;
    d.image = image_options(o);
    prony_status status = load_model(o, model, o->arguments[0], error);
    if (status == PRONY_OK) status = session_create(session, *model, &s, error);
    interrupt_at_once(true);
    if (status == PRONY_OK) status = prony_dataset_open(data, o->arguments[1], *model, &d, error);
    interrupt_at_once(false);
    if (status == PRONY_OK) status = prony_evaluate(report, *session, *data, &e, error);
    return status;
}

int command_eval(const options *o)
{
    prony_error error = {0};
    prony_model *model = NULL;
    prony_session *session = NULL;
    prony_dataset *data = NULL;
    prony_report *report = NULL;
    options shown = *o;
    if (!shown.levels) shown.levels = PRONY_LEVEL_MODEL;
    prony_status status = evaluate(o, &report, &model, &session, &data, &error);
    clear_progress();
    int code = status == PRONY_NEEDS_DIMENSION ? report_session_error(o, model, &error)
                                               : measured(o, status, report, &error);
    if (code == EXIT_DONE) code = add_accuracy(o, model, session, report); /* on the last batch, which is still bound */
    if (code == EXIT_DONE) code = write_report(&shown, report);
    code = check_after_report(o, report, code);
    prony_report_release(report);
    prony_dataset_release(data);
    session_release(session);
    prony_model_release(model);
    return code;
}
