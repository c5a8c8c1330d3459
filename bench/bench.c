/* prony bench MODEL: latency and throughput with the dispatcher's stamps off, so that nothing but the model is timed. */
#include "bench/interrupt.h"
#include "bench/judge.h"
#include "bench/load.h"
#include "bench/matrix.h"
#include "bench/option_table.h"

static int bench_one(const options *o, int background_threads)
{
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
        prony_report_set_background(report, background_threads);
        code = check_after_report(o, report, write_report(&model_level, report));
    }
    prony_report_release(report);
    session_release(session);
    prony_model_release(model);
    return code;
}

int command_bench(const options *o)
{
    busy beside;
    if (o->scenario || o->streams) return command_bench_load(o);
    if (o->max_batch || o->batch_window_ns >= 0 || o->samples_per_query || o->latency_bound_ns || o->rate > 0 ||
        o->percentile > 0)
        return usage(o, "--max-batch, --batch-window, --samples-per-query, --latency-bound, --rate and --percentile need a "
                        "--scenario");
    int code = busy_start(&beside, o);
    if (code == EXIT_DONE) code = is_matrix(o) ? command_bench_matrix(o, beside.threads) : bench_one(o, beside.threads);
    busy_stop(&beside);
    return code;
}
