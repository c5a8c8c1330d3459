/* GET /metrics: the text format of Prometheus, and OpenMetrics, which names counters without their _total. */
#include "bench/serve/alerts.h"
#include "bench/serve/service.h"

#include <string.h>
#include <sys/resource.h>

enum { SHOWN_OPERATORS = 100 };

typedef struct exposition {
    service *s;
    text_buffer *to;
    bool openmetrics;
    model_version *versions[SERVICE_MOST_MODELS];
} exposition;

static void put_family(exposition *x, const char *name, const char *type, const char *help)
{
    const char *total = !x->openmetrics && strcmp(type, "counter") == 0 ? "_total" : "";
    buffer_format(x->to, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, total, help, name, total, type);
}

/* Values of labels may come from a model file: quotes, backslashes and line ends are escaped. */
static void put_label(exposition *x, const char *key, const char *value, bool first)
{
    buffer_format(x->to, "%s%s=\"", first ? "{" : ",", key);
    for (const char *at = value; *at;) {
        size_t length = prony_text_printable(at);
        if (*at == '"' || *at == '\\')
            buffer_format(x->to, "\\%c", *at);
        else if (length)
            buffer_bytes(x->to, at, length);
        else
            buffer_text(x->to, "?");
        at += length ? length : 1;
    }
    buffer_text(x->to, "\"");
}

static void put_gauge(exposition *x, const char *name, const char *help, double value)
{
    put_family(x, name, "gauge", help);
    buffer_format(x->to, "%s %.15g\n", name, value);
}

static void metrics_put_counter(exposition *x, const char *name, const char *help, double value)
{
    put_family(x, name, "counter", help);
    buffer_format(x->to, "%s_total %.15g\n", name, value);
}

/* One sample for each model; counters get "_total". */
typedef double value_of_model(exposition *x, size_t model);

static void put_by_model(exposition *x, const char *name, const char *type, const char *help, value_of_model *value)
{
    put_family(x, name, type, help);
    for (size_t i = 0; i < x->s->model_count; i++) {
        buffer_format(x->to, "%s%s", name, strcmp(type, "counter") == 0 ? "_total" : "");
        put_label(x, "model", x->s->models[i].name, true);
        buffer_format(x->to, "} %.15g\n", value(x, i));
    }
}

/* The statistics' locks are taken for each figure: a scrape does not stop the service. */
#define MODEL_VALUE(function, expression)                                                                              \
    static double function(exposition *x, size_t model)                                                                \
    {                                                                                                                  \
        service_stats *stats = x->s->models[model].stats;                                                              \
        pthread_mutex_lock(&stats->lock);                                                                              \
        double value = (double)(expression);                                                                           \
        pthread_mutex_unlock(&stats->lock);                                                                            \
        return value;                                                                                                  \
    }
MODEL_VALUE(samples_of, stats->samples)
MODEL_VALUE(reloads_of, stats->reloads)
MODEL_VALUE(failures_of, stats->reload_failures)
MODEL_VALUE(sampled_of, stats->sampled)
MODEL_VALUE(arena_of, stats->arena_bytes)
MODEL_VALUE(overhead_of, stats->monitor_overhead)

static double waiting_of(exposition *x, size_t model)
{
    return (double)prony_batcher_waiting(x->versions[model]->batcher);
}

static void put_statuses(exposition *x)
{
    put_family(x, "prony_requests", "counter", "Inference requests that were answered, by status of HTTP.");
    for (size_t m = 0; m < x->s->model_count; m++) {
        service_stats *stats = x->s->models[m].stats;
        uint64_t counts[STATS_STATUSES];
        pthread_mutex_lock(&stats->lock);
        memcpy(counts, stats->statuses, sizeof counts);
        pthread_mutex_unlock(&stats->lock);
        for (int i = 0; i < STATS_STATUSES; i++) {
            char status[16] = "other";
            if (!counts[i] && i) continue;
            if (stats_statuses[i]) snprintf(status, sizeof status, "%d", stats_statuses[i]);
            buffer_text(x->to, "prony_requests_total");
            put_label(x, "model", x->s->models[m].name, true);
            put_label(x, "status", status, false);
            buffer_format(x->to, "} %llu\n", (unsigned long long)counts[i]);
        }
    }
}

static void put_bound(exposition *x, double bound)
{
    char text[32];
    snprintf(text, sizeof text, "%g", bound);
    put_label(x, "le", strpbrk(text, ".e") ? text : strcat(text, ".0"), false);
}

static void metrics_put_histogram(exposition *x, const char *name, const char *model, const uint64_t *buckets,
                                  const double *bounds, int bound_count, uint64_t count, double sum)
{
    uint64_t seen = 0;
    for (int i = 0; i <= bound_count; i++) {
        seen += buckets[i];
        buffer_format(x->to, "%s_bucket", name);
        put_label(x, "model", model, true);
        if (i < bound_count)
            put_bound(x, bounds[i]);
        else
            put_label(x, "le", "+Inf", false);
        buffer_format(x->to, "} %llu\n", (unsigned long long)seen);
    }
    buffer_format(x->to, "%s_sum", name);
    put_label(x, "model", model, true);
    buffer_format(x->to, "} %.15g\n%s_count", sum, name);
    put_label(x, "model", model, true);
    buffer_format(x->to, "} %llu\n", (unsigned long long)count);
}

static void put_times(exposition *x, const char *name, const char *help, size_t offset)
{
    put_family(x, name, "histogram", help);
    for (size_t m = 0; m < x->s->model_count; m++) {
        service_stats *stats = x->s->models[m].stats;
        pthread_mutex_lock(&stats->lock);
        stats_histogram h = *(const stats_histogram *)(const void *)((const char *)stats + offset);
        pthread_mutex_unlock(&stats->lock);
        metrics_put_histogram(x, name, x->s->models[m].name, h.buckets, stats_bounds, STATS_BOUNDS, h.count, h.sum);
    }
}

static void metrics_put_sizes(exposition *x)
{
    double bounds[STATS_SIZES];
    for (int i = 0; i < STATS_SIZES; i++) bounds[i] = (double)(1 << i);
    put_family(x, "prony_batch_size", "histogram", "Requests in a run.");
    for (size_t m = 0; m < x->s->model_count; m++) {
        service_stats *stats = x->s->models[m].stats;
        uint64_t sizes[STATS_SIZES + 1];
        pthread_mutex_lock(&stats->lock);
        memcpy(sizes, stats->sizes, sizeof sizes);
        uint64_t runs = stats->runs, sum = stats->size_sum;
        pthread_mutex_unlock(&stats->lock);
        metrics_put_histogram(x, "prony_batch_size", x->s->models[m].name, sizes, bounds, STATS_SIZES, runs,
                              (double)sum);
    }
}

static void metrics_put_operators(exposition *x)
{
    put_family(
        x, "prony_operator_time_share", "gauge",
        "Share of a run's operator time, a moving average over profiled runs (--profile-every); the 100 largest.");
    for (size_t m = 0; m < x->s->model_count; m++) {
        stats_operator rows[SHOWN_OPERATORS];
        size_t count = stats_top_operators(x->s->models[m].stats, rows, SHOWN_OPERATORS);
        for (size_t i = 0; i < count; i++) {
            buffer_text(x->to, "prony_operator_time_share");
            put_label(x, "model", x->s->models[m].name, true);
            put_label(x, "operator", rows[i].name, false);
            put_label(x, "op_type", rows[i].op, false);
            buffer_format(x->to, "} %.6g\n", rows[i].share);
        }
    }
}

static void put_versions(exposition *x)
{
    put_family(x, "prony_model_info", "gauge", "The version of each model that is served; the value is 1.");
    for (size_t m = 0; m < x->s->model_count; m++) {
        buffer_text(x->to, "prony_model_info");
        put_label(x, "model", x->s->models[m].name, true);
        put_label(x, "version", x->versions[m]->text, false);
        buffer_text(x->to, "} 1\n");
    }
}

static void put_service(exposition *x)
{
    service *s = x->s;
    uint64_t statuses[STATS_STATUSES];
    pthread_mutex_lock(&s->lock);
    memcpy(statuses, s->http_statuses, sizeof statuses);
    size_t clients = s->client_count, jobs = s->job_count, bodies = s->body_bytes;
    double other = s->other_share;
    int64_t rss = s->rss_bytes;
    pthread_mutex_unlock(&s->lock);
    put_family(x, "prony_http_responses", "counter", "Responses of every path, by status.");
    for (int i = 0; i < STATS_STATUSES; i++) {
        char status[16] = "other";
        if (stats_statuses[i]) snprintf(status, sizeof status, "%d", stats_statuses[i]);
        buffer_format(x->to, "prony_http_responses_total{status=\"%s\"} %llu\n", status,
                      (unsigned long long)statuses[i]);
    }
    put_gauge(x, "prony_connections", "Open connections.", (double)clients);
    put_gauge(x, "prony_requests_in_progress", "Inference requests without an answer.", (double)jobs);
    put_gauge(x, "prony_request_body_bytes", "Bytes of bodies and parsed tensors of requests in progress.",
              (double)bodies);
    put_gauge(x, "prony_heap_bytes", "Heap that models and sessions hold.", (double)prony_memory_in_use());
    if (other >= 0)
        put_gauge(x, "prony_machine_other_cpus", "Processors that other processes used in the last second.", other);
    if (s->alerts) put_gauge(x, "prony_alerts_firing", "Alerts that are firing.", (double)alerts_firing(s->alerts));
    if (rss >= 0) put_gauge(x, "process_resident_memory_bytes", "Resident memory.", (double)rss);
}

static void metrics_put_process(exposition *x)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        metrics_put_counter(x, "process_cpu_seconds", "Processor time of this process, user and system.",
                            (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                                (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6);
    put_gauge(x, "process_start_time_seconds", "Start of the service, seconds since 1970.", x->s->started_at);
    put_family(x, "prony_build_info", "gauge", "Version and instruction set; the value is 1.");
    buffer_text(x->to, "prony_build_info");
    put_label(x, "version", prony_version(), true);
    put_label(x, "isa", prony_build_info()->isa, false);
    buffer_text(x->to, "} 1\n");
}

void service_metrics(service *s, text_buffer *to, bool openmetrics)
{
    exposition x = {.s = s, .to = to, .openmetrics = openmetrics};
    for (size_t i = 0; i < s->model_count; i++) x.versions[i] = served_get(&s->models[i]);
    put_statuses(&x);
    put_times(&x, "prony_request_duration_seconds",
              "From the arrival of a whole request to its response, of status 200.", offsetof(service_stats, latency));
    put_times(&x, "prony_queue_duration_seconds", "From submission to the start of the run.",
              offsetof(service_stats, queue));
    put_times(&x, "prony_run_duration_seconds", "Of the run that served the request.", offsetof(service_stats, run));
    metrics_put_sizes(&x);
    put_by_model(&x, "prony_samples", "counter", "Samples of answered requests.", samples_of);
    put_by_model(&x, "prony_waiting_requests", "gauge", "Requests in the queue.", waiting_of);
    put_by_model(&x, "prony_model_reloads", "counter", "Replaced model files that are served.", reloads_of);
    put_by_model(&x, "prony_model_reload_failures", "counter", "Replaced model files that cannot be served.",
                 failures_of);
    put_by_model(&x, "prony_profiled_runs", "counter", "Runs whose operators were timed.", sampled_of);
    put_by_model(&x, "prony_profiling_share", "gauge", "Cost of timing operators over the time of all runs.",
                 overhead_of);
    put_by_model(&x, "prony_arena_bytes", "gauge", "Planned buffers of a session, in the last profiled run.", arena_of);
    metrics_put_operators(&x);
    put_versions(&x);
    put_service(&x);
    metrics_put_process(&x);
    if (openmetrics) buffer_text(to, "# EOF\n");
    for (size_t i = 0; i < s->model_count; i++) served_put(x.versions[i]);
}
