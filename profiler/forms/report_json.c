/* The report as JSON, schema "prony.report/1". docs/report.md says what every key means, docs/schemas/report.schema.json is the
 * machine-readable form; a test holds the three together.
 *
 * A key is left out where its value is unknown or was not measured; null says that there is no such value here.
 * Keys are literal strings at one place each. Reads the report only.
 */
#include "profiler/forms/report_json.h"

#include "profiler/report/work.h"

#include <string.h>

static bool known(const char *text)
{
    return text && *text;
}

static void int_if_known(prn_json *j, const char *key, int64_t value)
{
    if (value >= 0) prn_json_int(j, key, value);
}

static void write_ports(prn_json *j, const char *key, const prony_port *ports, size_t count)
{
    prn_json_open(j, key, '[', false);
    for (size_t i = 0; i < count; i++) {
        const prony_port *port = &ports[i];
        prn_json_open(j, NULL, '{', true);
        prn_json_string(j, "name", port->name ? port->name : "");
        prn_json_type(j, port->kind, port->dtype);
        prn_json_shape(j, &port->shape);
        bool symbols = false;
        for (int d = 0; d < port->shape.rank && d < PRONY_MAX_RANK; d++) symbols |= port->dim_names[d] != NULL;
        if (symbols) {
            prn_json_open(j, "dim_names", '[', true);
            for (int d = 0; d < port->shape.rank && d < PRONY_MAX_RANK; d++)
                prn_json_string(j, NULL, port->dim_names[d]);
            prn_json_close(j, ']');
        }
        prn_json_close(j, '}');
    }
    prn_json_close(j, ']');
}

static void write_model(prn_json *j, const prn_report_model *m)
{
    prn_json_open(j, "model", '{', false);
    prn_json_string(j, "name", m->name ? m->name : "");
    prn_json_known_string(j, "sha256", m->sha256);
    prn_json_uint(j, "file_bytes", m->file_bytes);
    prn_json_int(j, "ir_version", m->ir_version);
    prn_json_int(j, "opset", m->opset);
    prn_json_known_string(j, "producer", m->producer);
    prn_json_uint(j, "nodes", m->nodes);
    prn_json_uint(j, "parameters", m->parameters);
    prn_json_uint(j, "parameter_bytes", m->parameter_bytes);
    write_ports(j, "inputs", m->inputs, m->input_count);
    write_ports(j, "outputs", m->outputs, m->output_count);
    prn_json_close(j, '}');
}

static void write_config(prn_json *j, const prn_report_config *c)
{
    prn_json_open(j, "config", '{', false);
    if (c->intra_op_threads > 0) prn_json_int(j, "intra_op_threads", c->intra_op_threads);
    if (c->inter_op_threads > 0) prn_json_int(j, "inter_op_threads", c->inter_op_threads);
    if (known(c->inter_op_reason)) prn_json_string(j, "inter_op_reason", c->inter_op_reason);
    prn_json_string(j, "affinity", known(c->affinity) ? c->affinity : NULL);
    if (known(c->affinity)) {
        prn_json_string(j, "affinity_used", known(c->affinity_used) ? c->affinity_used : NULL);
        prn_json_string(j, "affinity_failure", known(c->affinity_failure) ? c->affinity_failure : NULL);
    }
    if (c->batch >= 0)
        prn_json_int(j, "batch", c->batch);
    else
        prn_json_null(j, "batch");
    prn_json_open(j, "dims", '{', true);
    for (size_t i = 0; i < c->dim_count; i++) prn_json_int(j, c->dims[i].name, c->dims[i].value);
    prn_json_close(j, '}');
    prn_json_open(j, "assumed_dims", '[', false);
    for (size_t i = 0; i < c->assumed_count; i++) {
        prn_json_open(j, NULL, '{', true);
        prn_json_string(j, "name", c->assumed[i].name);
        prn_json_int(j, "value", c->assumed[i].value);
        prn_json_string(j, "reason", known(c->assumed[i].reason) ? c->assumed[i].reason : NULL);
        prn_json_close(j, '}');
    }
    prn_json_close(j, ']');
    prn_json_known_string(j, "precision", c->precision);
    int_if_known(j, "warmup_runs", c->warmup_runs);
    int_if_known(j, "runs", c->runs);
    if (c->seed_known) prn_json_uint(j, "seed", c->seed);
    prn_json_string(j, "count_preset", known(c->count_preset) ? c->count_preset : NULL);
    prn_json_bool(j, "rewrites", c->rewrites);
    prn_json_bool(j, "reuse", c->reuse);
    if (c->background_threads > 0) prn_json_int(j, "background_threads", c->background_threads);
    prn_json_close(j, '}');
}

static void write_caches(prn_json *j, const prn_machine *m)
{
    prn_json_open(j, "caches", '[', false);
    for (int i = 0; i < m->cache_count && i < (int)(sizeof m->caches / sizeof m->caches[0]); i++) {
        const prn_cache_level *cache = &m->caches[i];
        prn_json_open(j, NULL, '{', true);
        prn_json_int(j, "level", cache->level);
        prn_json_known_string(j, "type", cache->type);
        prn_json_uint(j, "bytes", cache->bytes);
        if (cache->shared_by > 0) prn_json_int(j, "shared_by", cache->shared_by);
        prn_json_close(j, '}');
    }
    prn_json_close(j, ']');
}

/* "onednn 2.6.3, openblas 0.3.21" -> {"onednn": "2.6.3", "openblas": "0.3.21"} */
static void write_libraries(prn_json *j, const char *list)
{
    prn_json_open(j, "libraries", '{', true);
    for (const char *p = list ? list : ""; *p;) {
        char name[64], version[64];
        p += strspn(p, ", ");
        size_t pair = strcspn(p, ","), length = strcspn(p, " ,"), rest = pair > length ? pair - length - 1 : 0;
        const char *value = p + length + (pair > length);
        if (length == 0) break;
        if (length >= sizeof name) length = sizeof name - 1;
        if (rest >= sizeof version) rest = sizeof version - 1;
        memcpy(name, p, length);
        memcpy(version, value, rest);
        name[length] = version[rest] = '\0';
        prn_json_string(j, name, version);
        p += pair;
    }
    prn_json_close(j, '}');
}

static void write_system(prn_json *j, const prn_report_system *s)
{
    const prn_machine *m = &s->machine;
    prn_json_open(j, "system", '{', false);
    prn_json_known_string(j, "host_name", m->host_name);
    prn_json_known_string(j, "os", m->os);
    prn_json_known_string(j, "os_release", m->os_release);
    prn_json_known_string(j, "cpu_model", m->cpu_model);
    prn_json_open(j, "isa", '[', true);
    for (const char *const *name = s->isa; name && *name; name++) prn_json_string(j, NULL, *name);
    prn_json_close(j, ']');
    prn_json_known_string(j, "isa_used", s->isa_used);
    if (m->cpu_count > 0) prn_json_int(j, "cpu_count", m->cpu_count);
    if (m->mask_count > 0) prn_json_int(j, "usable_cpus", m->mask_count);
    if (m->physical_cores > 0) prn_json_int(j, "physical_cores", m->physical_cores);
    if (m->quota_cpus > 0)
        prn_json_double(j, "quota_cpus", m->quota_cpus);
    else
        prn_json_null(j, "quota_cpus");
    if (m->total_memory_bytes) prn_json_uint(j, "total_memory_bytes", m->total_memory_bytes);
    write_caches(j, m);
    prn_json_known_string(j, "governor", m->governor);
    if (m->load_avg_1min >= 0) prn_json_double(j, "load_avg_1min", m->load_avg_1min);
    prn_json_null(j, "gpu");
    write_libraries(j, s->libraries);
    prn_json_string(j, "prony_version", s->prony_version ? s->prony_version : PRONY_VERSION);
    prn_json_known_string(j, "git_commit", s->git_commit);
    prn_json_known_string(j, "compiler", s->compiler);
    prn_json_known_string(j, "compiler_flags", s->compiler_flags);
    prn_json_close(j, '}');
}

static void write_totals(prn_json *j, const prony_report *r)
{
    prn_json_open(j, "totals", '{', false);
    prn_json_counts(j, &r->totals.cost);
    prn_json_uint(j, "layers", r->totals.layers);
    prn_json_uint(j, "folded_layers", r->totals.folded_layers);
    prn_json_uint(j, "operators", r->totals.operators);
    prn_json_bool(j, "conserved", r->conserved);
    if (r->totals.counted) prn_json_uint(j, "count", r->totals.count);
    prn_json_close(j, '}');
}

static void write_phases(prn_json *j, const prony_report *r)
{
    const prn_report_phases *p = &r->phases;
    bool once = p->load_ns >= 0 || p->bind_ns >= 0 || p->rewrite_ns >= 0 || p->plan_ns >= 0 || p->first_run_ns >= 0;
    if (!once && !r->has_around) return;
    prn_json_open(j, "phases_ns", '{', false);
    int_if_known(j, "load", p->load_ns);
    int_if_known(j, "bind", p->bind_ns);
    int_if_known(j, "rewrite", p->rewrite_ns);
    int_if_known(j, "plan", p->plan_ns);
    int_if_known(j, "first_run", p->first_run_ns);
    if (r->has_around) {
        int_if_known(j, "preprocess", r->around.preprocess_ns);
        int_if_known(j, "postprocess", r->around.postprocess_ns);
    }
    prn_json_close(j, '}');
}

static void write_unsupported_quantiles(prn_json *j, const prony_time_stats *t)
{
    prn_json_open(j, "unsupported_quantiles", '[', true);
    if (!t->p90_valid) prn_json_string(j, NULL, "p90");
    if (!t->p95_valid) prn_json_string(j, NULL, "p95");
    if (!t->p99_valid) prn_json_string(j, NULL, "p99");
    if (!t->p999_valid) prn_json_string(j, NULL, "p999");
    prn_json_close(j, ']');
}

static void write_statistics(prn_json *j, const prony_time_stats *t)
{
    prn_json_int(j, "mean", t->mean_ns);
    prn_json_int(j, "min", t->min_ns);
    prn_json_int(j, "max", t->max_ns);
    prn_json_int(j, "std", t->std_ns);
    prn_json_int(j, "median", t->median_ns);
    prn_json_int(j, "p50", t->p50_ns);
    prn_json_int(j, "p90", t->p90_ns);
    prn_json_int(j, "p95", t->p95_ns);
    prn_json_int(j, "p99", t->p99_ns);
    prn_json_int(j, "p999", t->p999_ns);
    write_unsupported_quantiles(j, t);
    prn_json_open(j, "median_ci95", '[', true);
    prn_json_int(j, NULL, t->median_ci95_ns[0]);
    prn_json_int(j, NULL, t->median_ci95_ns[1]);
    prn_json_close(j, ']');
    prn_json_uint(j, "runs", t->count);
}

static void write_end_to_end(prn_json *j, const prony_report *r)
{
    prn_json_open(j, "end_to_end_ns", '{', false);
    write_statistics(j, &r->around.end_to_end);
    prn_json_close(j, '}');
}

static void fail_json(prn_json *j, prony_status status)
{
    if (j->status == PRONY_OK) j->status = status;
}

/* What the samples tell beyond their quantiles. */
static void write_shape(prn_json *j, const prony_report *r)
{
    prony_steady_state steady;
    prony_outlier *outliers = NULL;
    size_t count = 0;
    if (!r->samples_ns || r->latency.count == 0) return;
    prony_status status = prony_report_steady_state(&steady, r, j->error);
    if (status == PRONY_OK) status = prony_report_outliers(&outliers, &count, r, j->error);
    if (status != PRONY_OK) {
        fail_json(j, status);
        return;
    }
    if (steady.known) {
        if (steady.unsure)
            prn_json_null(j, "steady");
        else
            prn_json_bool(j, "steady", steady.steady);
        prn_json_double(j, "drift", steady.drift);
    }
    prn_json_open(j, "outliers", '[', true);
    for (size_t i = 0; i < count; i++) prn_json_uint(j, NULL, outliers[i].run);
    prn_json_close(j, ']');
    prony_rows_release(outliers);
}

static void write_latency(prn_json *j, const prony_report *r)
{
    const prony_time_stats *t = &r->latency;
    prn_json_open(j, "latency_ns", '{', false);
    write_statistics(j, t);
    prn_json_bool(j, "warmup_detected", r->warmup_detected);
    if (r->traced_run_ns > 0) prn_json_int(j, "traced_run", r->traced_run_ns);
    prn_json_known_string(j, "stop_reason", r->stop_reason);
    prn_json_known_string(j, "stopped_at", r->stopped_at);
    write_shape(j, r);
    if (r->process_runs) {
        prn_json_open(j, "process_runs", '[', true);
        for (size_t i = 0; i < r->process_count; i++) prn_json_uint(j, NULL, r->process_runs[i]);
        prn_json_close(j, ']');
    }
    prn_json_open(j, "samples", '[', true);
    for (uint64_t i = 0; r->samples_ns && i < t->count; i++) prn_json_int(j, NULL, r->samples_ns[i]);
    prn_json_close(j, ']');
    prn_json_close(j, '}');
}

static void write_throughput(prn_json *j, const prony_report *r)
{
    double seconds = (double)r->latency.mean_ns / 1e9;
    prn_report_rates rates = prn_report_rates_of(r);
    prn_json_open(j, "throughput", '{', false);
    if (rates.samples >= 0)
        prn_json_double(j, "samples_per_second", rates.samples);
    else
        prn_json_null(j, "samples_per_second");
    if (rates.images >= 0) prn_json_double(j, "images_per_second", rates.images);
    if (rates.tokens >= 0) prn_json_double(j, "tokens_per_second", rates.tokens);
    if (rates.requests >= 0) prn_json_double(j, "requests_per_second", rates.requests);
    prn_json_ratio(j, "flops_per_second", (double)r->totals.cost.flops, seconds);
    prn_json_close(j, '}');
}

/* In the last run: buffers are taken as their operator begins, and given back as the last that reads them ends. */
static void write_event_time(prn_json *j, const prony_report *r, const prony_memory_event *e)
{
    size_t step = e->step < r->operator_count ? e->step : r->operator_count - 1;
    if (r->operator_count == 0 || !r->operators[step].traced) return;
    prn_json_int(j, "time_ns", e->release ? r->operators[step].trace_end_ns : r->operators[step].trace_start_ns);
}

static void write_timeline(prn_json *j, const prony_report *r)
{
    const prony_memory_report *m = &r->memory;
    prn_json_open(j, "timeline", '[', false);
    for (size_t i = 0; i < m->timeline_count; i++) {
        prn_json_open(j, NULL, '{', true);
        prn_json_uint(j, "step", m->timeline[i].step);
        prn_json_uint(j, "live_bytes", m->timeline[i].live_bytes);
        prn_json_close(j, '}');
    }
    prn_json_close(j, ']');
    prn_json_open(j, "events", '[', false);
    for (size_t i = 0; i < m->event_count; i++) {
        const prony_memory_event *e = &m->events[i];
        prn_json_open(j, NULL, '{', true);
        prn_json_bool(j, "release", e->release);
        prn_json_string(j, "owner", e->owner ? e->owner : "");
        prn_json_known_string(j, "tag", e->tag);
        prn_json_uint(j, "asked_bytes", e->asked_bytes);
        prn_json_uint(j, "given_bytes", e->given_bytes);
        prn_json_uint(j, "offset_bytes", e->offset_bytes);
        prn_json_uint(j, "step", e->step);
        write_event_time(j, r, e);
        prn_json_close(j, '}');
    }
    prn_json_close(j, ']');
}

static void write_held(prn_json *j, const prony_memory_held *held)
{
    prn_json_open(j, "held", '{', false);
    prn_json_uint(j, "resident_bytes", held->resident_bytes);
    prn_json_uint(j, "file_bytes", held->file_bytes);
    prn_json_uint(j, "packed_bytes", held->packed_bytes);
    prn_json_uint(j, "arena_bytes", held->arena_bytes);
    prn_json_uint(j, "input_bytes", held->input_bytes);
    prn_json_uint(j, "library_bytes", held->library_bytes);
    prn_json_uint(j, "other_bytes", held->other_bytes);
    prn_json_close(j, '}');
}

static void write_memory(prn_json *j, const prony_report *r, bool detail)
{
    const prony_memory_report *m = &r->memory;
    prn_json_open(j, "memory", '{', false);
    prn_json_uint(j, "weight_bytes", m->weight_bytes);
    prn_json_uint(j, "packed_weight_bytes", m->packed_weight_bytes);
    prn_json_uint(j, "planned_bytes", m->planned_bytes);
    prn_json_uint(j, "lower_bound_bytes", m->lower_bound_bytes);
    prn_json_double(j, "plan_gap", m->plan_gap);
    prn_json_uint(j, "peak_live_bytes", m->peak_live_bytes);
    prn_json_uint(j, "average_live_bytes", m->average_live_bytes);
    prn_json_uint(j, "scratch_bytes", m->scratch_bytes);
    prn_json_double(j, "internal_fragmentation", m->internal_fragmentation);
    prn_json_double(j, "external_fragmentation", m->external_fragmentation);
    prn_json_uint(j, "allocations", m->allocations);
    prn_json_uint(j, "releases", m->releases);
    if (m->heap_calls_known) prn_json_uint(j, "heap_calls_per_run", m->heap_calls_per_run);
    if (m->library_heap_calls_known) prn_json_uint(j, "library_heap_calls_per_run", m->library_heap_calls_per_run);
    if (m->peak_rss_bytes) prn_json_uint(j, "peak_rss_bytes", m->peak_rss_bytes);
    if (m->held_known) write_held(j, &m->held);
    if (r->config.batch > 0)
        prn_json_ratio(j, "bytes_per_sample", (double)m->planned_bytes, (double)r->config.batch);
    else
        prn_json_null(j, "bytes_per_sample");
    if (detail) write_timeline(j, r);
    prn_json_close(j, '}');
}

static void write_roof(prn_json *j, const prn_report_roof *roof)
{
    prn_json_open(j, "roof", '{', false);
    prn_json_open(j, "compute", '[', false);
    for (size_t i = 0; i < roof->compute_count; i++) {
        prn_json_open(j, NULL, '{', true);
        prn_json_string(j, "precision", roof->compute[i].precision);
        prn_json_int(j, "threads", roof->compute[i].threads);
        prn_json_double(j, "flops_per_second", roof->compute[i].flops_per_second);
        prn_json_close(j, '}');
    }
    prn_json_close(j, ']');
    prn_json_open(j, "memory", '[', false);
    for (size_t i = 0; i < roof->memory_count; i++) {
        prn_json_open(j, NULL, '{', true);
        prn_json_string(j, "level", roof->memory[i].level);
        prn_json_int(j, "threads", roof->memory[i].threads);
        prn_json_double(j, "bytes_per_second", roof->memory[i].bytes_per_second);
        prn_json_close(j, '}');
    }
    prn_json_close(j, ']');
    if (roof->work_count) prn_json_open(j, "work", '[', false);
    for (size_t i = 0; i < roof->work_count; i++) {
        prn_json_open(j, NULL, '{', true);
        prn_json_string(j, "work", roof->work[i].work);
        prn_json_int(j, "threads", roof->work[i].threads);
        prn_json_double(j, "per_second", roof->work[i].per_second);
        prn_json_close(j, '}');
    }
    if (roof->work_count) prn_json_close(j, ']');
    prn_json_known_string(j, "method", roof->method);
    prn_json_close(j, '}');
}

static void write_cores(prn_json *j, const prony_report *r)
{
    if (!r->core_points) return;
    prn_json_open(j, "core_times_ns", '[', true);
    for (size_t p = 0; p < r->core_points; p++) prn_json_int(j, NULL, r->core_times_ns[p]);
    prn_json_close(j, ']');
    prn_json_open(j, "cores", '[', false);
    for (size_t c = 0; c < r->core_count; c++) {
        prn_json_open(j, NULL, '{', true);
        prn_json_int(j, "core", r->cores[c].core);
        prn_json_double(j, "mean", r->cores[c].mean);
        prn_json_open(j, "use", '[', true);
        for (size_t p = 0; p < r->core_points; p++) prn_json_double(j, NULL, r->cores[c].use[p]);
        prn_json_close(j, ']');
        prn_json_close(j, '}');
    }
    prn_json_close(j, ']');
}

static void write_workers(prn_json *j, const prn_report_cpu *c)
{
    if (!c->worker_count) return;
    prn_json_open(j, "workers", '[', false);
    for (size_t w = 0; w < c->worker_count; w++) {
        prn_json_open(j, NULL, '{', true);
        prn_json_int(j, "busy_ns", c->workers[w].busy_ns);
        prn_json_int(j, "wait_ns", c->workers[w].wait_ns);
        prn_json_close(j, '}');
    }
    prn_json_close(j, ']');
}

static void write_cpu(prn_json *j, const prony_report *r)
{
    const prn_report_cpu *c = &r->cpu;
    prn_json_open(j, "cpu", '{', false);
    prn_json_double(j, "utilisation", c->utilisation);
    prn_json_int(j, "user_ns", c->user_ns);
    prn_json_int(j, "system_ns", c->system_ns);
    prn_json_int(j, "voluntary_switches", c->voluntary_switches);
    prn_json_int(j, "involuntary_switches", c->involuntary_switches);
    write_workers(j, c);
    write_cores(j, r);
    prn_json_close(j, '}');
    prn_json_open(j, "io", '{', false);
    prn_json_uint(j, "read_bytes", c->read_bytes);
    prn_json_uint(j, "written_bytes", c->written_bytes);
    prn_json_uint(j, "read_calls", c->read_calls);
    prn_json_uint(j, "write_calls", c->write_calls);
    prn_json_close(j, '}');
}

static void share_if_known(prn_json *j, const char *key, double share)
{
    if (share >= 0) prn_json_double(j, key, share);
}

static void write_disturbance(prn_json *j, const prony_report *r)
{
    const prn_disturbance *d = &r->disturbance;
    char text[160];
    if (!r->has_disturbance) return;
    prn_json_open(j, "disturbance", '{', true);
    share_if_known(j, "others_share", d->others);
    share_if_known(j, "steal_share", d->steal);
    share_if_known(j, "waited_share", d->waited);
    prn_json_int(j, "involuntary_switches", d->involuntary_switches);
    prn_json_string(j, "verdict", prn_verdict_name(d->verdict));
    if (prn_disturbance_text(d, text, sizeof text)) prn_json_string(j, "text", text);
    prn_json_close(j, '}');
}

static void write_coverage(prn_json *j, const prony_report *r)
{
    bool stamped = prn_report_stamped(r), counted = r->totals.counted;
    if (!stamped && !counted) return;
    prn_json_open(j, "coverage", '{', false);
    if (stamped) prn_json_double(j, "time_share", r->time_share);
    if (counted) {
        prn_json_open(j, "uncounted_ops", '[', true);
        for (size_t i = 0; i < r->uncounted_count; i++) prn_json_string(j, NULL, r->uncounted[i]);
        prn_json_close(j, ']');
        if (stamped) prn_json_double(j, "uncounted_time_share", r->uncounted_time_share);
    }
    prn_json_close(j, '}');
}

static void write_cost(prn_json *j, const prn_report_cost *cost)
{
    prn_json_open(j, "paired", '{', true);
    prn_json_uint(j, "pairs", cost->pairs);
    prn_json_int(j, "on_ns", cost->on_ns);
    prn_json_int(j, "off_ns", cost->off_ns);
    prn_json_double(j, "share", cost->share);
    prn_json_open(j, "share_ci95", '[', true);
    prn_json_double(j, NULL, cost->share_ci95[0]);
    prn_json_double(j, NULL, cost->share_ci95[1]);
    prn_json_close(j, ']');
    prn_json_close(j, '}');
}

static void write_further_evaluations(prn_json *j, const prony_report *r)
{
    prn_json_open(j, "further", '[', false);
    for (size_t i = 1; i < r->evaluation_count; i++) {
        prn_json_open(j, NULL, '{', true);
        prn_json_string(j, "metric", r->evaluations[i].metric);
        prn_json_double(j, "value", r->evaluations[i].value);
        prn_json_close(j, '}');
    }
    prn_json_close(j, ']');
}

static void write_trust(prn_json *j, const prony_report *r)
{
    write_coverage(j, r);
    if (prn_report_stamped(r)) {
        prn_json_open(j, "overhead", '{', false);
        prn_json_double(j, "ns_per_event", r->overhead_ns_per_event);
        prn_json_double(j, "share", r->overhead_share);
        prn_json_uint(j, "dropped_events", r->dropped_events);
        if (r->cost.pairs) write_cost(j, &r->cost);
        prn_json_close(j, '}');
    }
    if (r->counters_missing) {
        bool missing = *r->counters_missing;
        prn_json_open(j, "counters", '{', false);
        prn_json_string(j, "missing", missing ? r->counters_missing : NULL);
        if (!missing) prn_json_uint(j, "runs", r->counter_runs);
        if (!missing) prn_json_int(j, "reading_ns", r->counter_read_ns);
        prn_json_close(j, '}');
    }
    prn_json_open(j, "unsupported_operators", '[', false);
    for (size_t i = 0; i < r->unsupported_count; i++) prn_json_string(j, NULL, r->unsupported[i]);
    prn_json_close(j, ']');
    if (r->evaluation_count) {
        prn_json_open(j, "evaluation", '{', false);
        prn_json_string(j, "metric", r->evaluations[0].metric);
        prn_json_double(j, "value", r->evaluations[0].value);
        prn_json_int(j, "samples", r->evaluations[0].samples);
        if (r->evaluation_count > 1) write_further_evaluations(j, r);
        prn_json_close(j, '}');
    }
    prn_json_known_string(j, "output_sha256", r->output_sha256);
}

void prn_json_manifest(prn_json *j, const prony_report *report)
{
    write_model(j, &report->model);
    write_config(j, &report->config);
    write_system(j, &report->system);
}

void prn_json_roof(prn_json *j, const prony_report *report)
{
    if (report->has_roof) write_roof(j, &report->roof);
}

prony_status prn_report_write_json(const prony_report *report, const prony_write_options *options, prony_write_fn write,
                                   void *user, prony_error *error)
{
    prn_json *j = prn_alloc(sizeof *j);
    if (!j) return prn_no_memory(error);
    prn_json_begin(j, write, user, error);
    prn_json_open(j, NULL, '{', false);
    prn_json_string(j, "schema", "prony.report/1");
    prn_json_manifest(j, report);
    write_totals(j, report);
    write_phases(j, report);
    if (report->measured) {
        write_latency(j, report);
        if (report->has_around) write_end_to_end(j, report);
        write_throughput(j, report);
    }
    if (report->has_memory) write_memory(j, report, options && options->memory);
    prn_json_roof(j, report);
    if (report->measured) write_cpu(j, report);
    write_disturbance(j, report);
    prn_json_rows(j, report);
    if (prn_report_has_estimates(report)) {
        prn_json_open(j, "estimates", '{', true);
        prn_json_string(j, "basis", prn_estimate_basis(report));
        prn_json_close(j, '}');
    }
    write_trust(j, report);
    prn_json_close(j, '}');
    prony_status status = prn_json_end(j);
    prn_free(j);
    return status;
}
