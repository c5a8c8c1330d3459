/* prony serve --history: each version of a model is a run. Its latencies are those of the requests that it answered.
 * The runs wait in memory: only the end of the service writes, so that no lock of the file delays a request. */
#include "bench/serve/served_model.h"
#include "bench/serve/text_buffer.h"

#include <math.h>
#include <time.h>

/* Requests that a percentile needs, as profiler/statistics/times.c counts them: its 95 % interval is bounded then. */
enum { P90_REQUESTS = 64, P95_REQUESTS = 130, P99_REQUESTS = 662, P999_REQUESTS = 6636 };

/* "serve, 2 sessions of 1 thread, batches to 8, window 2 ms, fp32": all options that move a latency. */
static void describe_configuration(const model_version *v, text_buffer *to)
{
    const options *o = v->slot->o;
    const long long sessions = o->load.streams ? (long long)o->load.streams : 1;
    buffer_format(to, "serve, %lld session%s of %d thread%s", sessions, sessions == 1 ? "" : "s", v->trial.threads,
                  v->trial.threads == 1 ? "" : "s");
    if (o->threads.inter_op > 1) buffer_format(to, " x %lld workers", (long long)o->threads.inter_op);
    buffer_format(to, ", batches to %lld", (long long)(o->load.max_batch > 1 ? o->load.max_batch : 1));
    if (o->load.batch_window_ns > 0) buffer_format(to, ", window %.6g ms", (double)o->load.batch_window_ns * 1e-6);
    buffer_format(to, ", %s", o->precision.name ? o->precision.name : "fp32");
    for (size_t i = 0; i < o->model.dim_count; i++)
        buffer_format(to, ", %s=%lld", o->model.dims[i].name, (long long)o->model.dims[i].value);
    if (o->threads.affinity) buffer_format(to, ", cores %s", o->threads.affinity);
    if (o->plan.tune) buffer_text(to, ", tuned");
}

prony_status version_describe(model_version *v, prony_error *error)
{
    if (!v->slot->history) return PRONY_OK;
    prony_report *report = NULL;
    text_buffer configuration = {0};
    describe_configuration(v, &configuration);
    const prony_history_run run = {.configuration = configuration.data, .others_share = -1};
    v->served_ns = prony_now_ns();
    prony_status status = configuration.failed ? error->status = PRONY_OUT_OF_MEMORY : PRONY_OK;
    if (status == PRONY_OK) status = prony_history_create(&v->described, error);
    if (status == PRONY_OK) status = prony_inspect(&report, v->model, NULL, error);
    if (status == PRONY_OK) status = prony_history_add_described(v->described, report, &run, error);
    prony_report_release(report);
    buffer_free(&configuration);
    return status;
}

/* A percentile is kept only if enough requests support it (above). `values` lie on the stack: prony_history_add copies
 * them. */
void version_keep(model_version *v)
{
    prony_error error = {0};
    if (!v->described || v->kept) return;
    const stats_totals t = stats_copy_totals(v->slot->stats, &v->totals);
    v->kept = true;
    if (!t.answered) return;
    const struct {
        const char *metric;
        double value;
        uint64_t needed;
    } all[] = {{"latency", stats_totals_quantile(&t, 0.5), 1},
               {"latency_mean", t.sum_ns / (double)t.answered, 1},
               {"latency_min", (double)t.least_ns, 1},
               {"latency_max", (double)t.most_ns, 1},
               {"latency_p90", stats_totals_quantile(&t, 0.9), P90_REQUESTS},
               {"latency_p95", stats_totals_quantile(&t, 0.95), P95_REQUESTS},
               {"latency_p99", stats_totals_quantile(&t, 0.99), P99_REQUESTS},
               {"latency_p999", stats_totals_quantile(&t, 0.999), P999_REQUESTS},
               {"requests_per_second", (double)t.answered / ((double)(prony_now_ns() - v->served_ns) * 1e-9), 1}};
    prony_history_value values[sizeof all / sizeof *all];
    prony_history_run run = *prony_history_at(v->described, 0);
    run.time_s = (int64_t)time(NULL);
    run.values = values;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (t.answered >= all[i].needed)
            values[run.value_count++] = (prony_history_value){all[i].metric, all[i].value, {NAN, NAN}};
    if (prony_history_add(v->slot->history, &run, &error) != PRONY_OK) report_error(v->slot->o, &error);
}
