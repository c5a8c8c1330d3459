/* prony bench MODEL: latency and throughput without the dispatcher's stamps, so that only the model is timed. */
#include "bench/process/interrupt.h"
#include "bench/session/judge.h"
#include "bench/load/load.h"
#include "bench/generate/generate.h"
#include "bench/commands/matrix.h"
#include "bench/options/option_table.h"
#include "bench/process/processes.h"

/* The report of the model alone. */
static int bench_command_show(const options *o, prony_report *report)
{
    options model_level = *o;
    model_level.shown.levels = PRONY_LEVEL_MODEL;
    return check_after_report(o, report, write_report(&model_level, report));
}

static int bench_processes(const options *o)
{
    prony_report *report = NULL;
    int code = processes_refuse(o);
    if (code == EXIT_DONE) code = processes_measure(o, &report);
    if (code == EXIT_DONE) code = bench_command_show(o, report);
    prony_report_release(report);
    return code;
}

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
        prony_report_set_background(report, background_threads);
        code = bench_command_show(o, report);
    }
    prony_report_release(report);
    session_release(session);
    prony_model_release(model);
    return code;
}

int command_bench(const options *o)
{
    busy beside;
    if (o->generate.prompt_ids && !o->generate.enabled) return usage(o, "--prompt-ids needs --generate");
    if (o->generate.enabled && (o->measuring.processes > 1 || o->load.scenario || o->load.streams ||
                                o->threads.inter_ops.count > 1 || o->model.from_count || o->model.to_count))
        return usage(o, "--generate does not go with --processes, --scenario, --streams, --from, --to or a list of -y");
    if (o->measuring.processes > 1 && (o->load.scenario || o->load.streams || is_matrix(o)))
        return usage(o, "--processes needs one configuration, without --scenario or --streams");
    if (o->measuring.processes > 1) return bench_processes(o);
    if (o->load.scenario || o->load.streams) return command_bench_load(o);
    if (o->load.max_batch || o->load.batch_window_ns >= 0 || o->load.samples_per_query || o->load.latency_bound_ns ||
        o->load.rate > 0 || o->load.percentile > 0)
        return usage(
            o, "--max-batch, --batch-window, --samples-per-query, --latency-bound, --rate and --percentile need a "
               "--scenario");
    int code = busy_start(&beside, o);
    if (code == EXIT_DONE && o->generate.enabled)
        code = command_bench_generate(o, beside.threads);
    else if (code == EXIT_DONE)
        code = is_matrix(o) ? command_bench_matrix(o, beside.threads) : bench_one(o, beside.threads);
    busy_stop(&beside);
    return code;
}
