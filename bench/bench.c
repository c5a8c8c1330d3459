/* prony bench MODEL: latency and throughput with the dispatcher's stamps off, so that nothing but the model is timed. */
#include "bench/interrupt.h"
#include "bench/judge.h"
#include "bench/matrix.h"

int command_bench(const options *o)
{
    if (is_matrix(o)) return command_bench_matrix(o);
    prony_error error = {0};
    prony_model *model = NULL;
    prony_session *session = NULL;
    prony_report *report = NULL;
    prony_profile_options p = profile_options(o);
    int code = open_session(o, &model, &session, false);
    if (code == EXIT_DONE) {
        prony_status status = prony_session_profile(&report, session, &p, &error);
        code = measured(o, status, report, &error);
    }
    if (code == EXIT_DONE) {
        options model_level = *o;
        model_level.levels = PRONY_LEVEL_MODEL;
        code = check_after_report(o, report, write_report(&model_level, report));
    }
    prony_report_release(report);
    session_release(session);
    prony_model_release(model);
    return code;
}
