/* Runs that a JSON document of the command holds. The description of a run (model, machine, configuration) is read from
 * the JSON's own keys, so every document with a manifest has it; metrics and layers come from the report inside. */
#include "profiler/history/history.h"
#include "profiler/history/history_configuration.h"

#include "base/hash/sha256.h"
#include "profiler/json/json_read.h"
#include "profiler/report/report_read.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Layers that a run of the history keeps, so that its size is bounded; chosen without measurement. */
enum { LAYER_LIMIT = 20000 };

typedef struct reading {
    prn_json_reader reader;
    prn_bump pool;
    prony_history *to;
    prony_error *error;
} reading;

/* ---- dates ---- */

/* Days since 1970 of a date of the proleptic Gregorian calendar (H. Hinnant's days_from_civil). */
static int64_t days_of(int64_t year, int month, int day)
{
    year -= month <= 2;
    const int64_t era = (year >= 0 ? year : year - 399) / 400, in_era = year - era * 400;
    const int64_t in_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + in_era * 365 + in_era / 4 - in_era / 100 + in_year - 719468;
}

/* The zone at the end of a date, in seconds east of UTC: "Z", "+02:00" and "-0530" are read; UTC if there is none. */
static int64_t zone_of(const char *text)
{
    char sign;
    int hours = 0, minutes = 0;
    text += strspn(text, ".,0123456789 "); /* the second's fraction */
    if (sscanf(text, "%c%2d:%2d", &sign, &hours, &minutes) < 3 && sscanf(text, "%c%2d%2d", &sign, &hours, &minutes) < 2)
        return 0;
    if ((sign != '+' && sign != '-') || hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return 0;
    return (sign == '-' ? -1 : 1) * (hours * 60 + minutes) * 60;
}

/* ISO 8601 to seconds since 1970 in UTC. 0: not a date. */
static int64_t seconds_of(const char *date)
{
    int year, month, day, hour, minute, second, length = 0;
    char mark;
    if (!date ||
        sscanf(date, "%4d-%2d-%2d%c%2d:%2d:%2d%n", &year, &month, &day, &mark, &hour, &minute, &second, &length) != 7)
        return 0;
    if (month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 || second > 60) return 0;
    return ((days_of(year, month, day) * 24 + hour) * 60 + minute) * 60 + second - zone_of(date + length);
}

/* ---- description ---- */

/* Text into the pool; "" after a failure, which the reader keeps. */
static const char *reading_printf(reading *r, const char *text)
{
    const char *copy = prn_bump_strndup(&r->pool, text, strlen(text));
    if (!copy && r->reader.status == PRONY_OK) r->reader.status = prn_no_memory(r->error);
    return copy ? copy : "";
}

/* The machine in words, and a hash of what makes two machines comparable: memory counts in GiB, because kernels reserve
 * a varying part of it. */
static void history_machine(reading *r, const prn_json_value *system, prony_history_run *run)
{
    char text[900], digest[65];
    prn_sha256 hash;
    double quota = 0, memory = 0;
    if (!system) return;
    prn_json_get_double(&r->reader, system, "quota_cpus", false, &quota);
    prn_json_get_double(&r->reader, system, "total_memory_bytes", false, &memory);
    const char *host = prn_history_string(&r->reader, system, "host_name"),
               *cpu = prn_history_string(&r->reader, system, "cpu_model");
    const int64_t cores = prn_history_integer(&r->reader, system, "physical_cores", 0),
                  count = prn_history_integer(&r->reader, system, "cpu_count", 0),
                  usable = prn_history_integer(&r->reader, system, "usable_cpus", count);
    snprintf(text, sizeof text, "%.200s|%.200s|%.60s|%lld|%lld|%lld|%.2f|%.0f", host, cpu,
             prn_history_string(&r->reader, system, "isa_used"), (long long)count, (long long)usable, (long long)cores,
             quota, memory / (1 << 30));
    prn_sha256_init(&hash);
    prn_sha256_add(&hash, text, strlen(text));
    prn_sha256_text(&hash, digest);
    digest[12] = '\0';
    run->fingerprint = reading_printf(r, digest);
    int used = snprintf(text, sizeof text, "%.100s: %.120s, %lld of %lld processors", host, *cpu ? cpu : "processor",
                        (long long)usable, (long long)count);
    if (quota > 0) snprintf(text + used, sizeof text - (size_t)used, ", quota %.2g", quota);
    run->machine = reading_printf(r, text);
    snprintf(text, sizeof text, "%.40s%s%.12s", prn_history_string(&r->reader, system, "prony_version"),
             *prn_history_string(&r->reader, system, "git_commit") ? " " : "",
             prn_history_string(&r->reader, system, "git_commit"));
    run->prony = reading_printf(r, text);
}

static void history_model(reading *r, const prn_json_value *model, prony_history_run *run)
{
    const char *name = prn_history_string(&r->reader, model, "name"), *slash = strrchr(name, '/');
    run->model = slash && slash[1] ? slash + 1 : name;
    run->sha256 = prn_history_string(&r->reader, model, "sha256");
}

static void describe_load(reading *r, const prn_json_value *disturbance, prony_history_run *run)
{
    run->others_share = -1;
    if (!disturbance) return;
    const char *verdict = prn_history_string(&r->reader, disturbance, "verdict");
    run->load = strcmp(verdict, "busy") == 0    ? PRONY_LOAD_BUSY
                : strcmp(verdict, "quiet") == 0 ? PRONY_LOAD_QUIET
                                                : PRONY_LOAD_UNKNOWN;
    prn_json_get_double(&r->reader, disturbance, "others_share", false, &run->others_share);
}

/* Model, machine, commit of Prony and date; `from` is a report or a study's manifest. */
static void history_describe(reading *r, const char *schema, const prn_json_value *from, prony_history_run *run)
{
    *run = (prony_history_run){.document = schema, .others_share = -1};
    history_machine(r, prn_json_get_object(&r->reader, from, "system", false), run);
    history_model(r, prn_json_get_object(&r->reader, from, "model", false), run);
    run->time_s = seconds_of(prn_history_string(&r->reader, from, "created"));
    describe_load(r, prn_json_get_object(&r->reader, from, "disturbance", false), run);
}

/* ---- metrics ---- */

/* 95 % intervals of the metrics that follow from the latencies. */
static prony_status history_intervals(prony_history_value *values, size_t count, const prony_metrics *metrics,
                                      const prony_report *report, prony_error *error)
{
    double intervals[PRN_STATISTIC_COUNT][2];
    if (!report->measured || !report->samples_ns || report->latency.count == 0) return PRONY_OK;
    const prn_times times = prn_report_times(report);
    PRN_TRY(prn_times_intervals(intervals, 0.95, times, NULL, error));
    for (size_t i = 0; i < count; i++) {
        const prn_metric_builtin *by = NULL;
        for (size_t m = 0; m < prony_metrics_count(metrics) && !by; m++)
            if (strcmp(prony_metrics_at(metrics, m)->key, values[i].metric) == 0) by = prn_metrics_builtin(metrics, m);
        if (!prn_metric_samples(by)) continue;
        const double *interval = intervals[by->statistic], work = values[i].value * (double)report->latency.mean_ns;
        if (by->rate && !(interval[0] > 0)) continue;
        double own[2] = {by->rate ? work / interval[1] : interval[0], by->rate ? work / interval[0] : interval[1]};
        prn_interval_widen(own, values[i].value, 0.95, prn_process_deviation(times, NULL));
        for (int end = 0; end < 2; end++) values[i].interval[end] = isfinite(own[end]) ? own[end] : NAN;
    }
    return PRONY_OK;
}

static prony_status report_values(reading *r, const prony_report *report, prony_history_run *run)
{
    prony_metrics *metrics = NULL;
    PRN_TRY(prony_metrics_create(&metrics, r->error));
    const size_t all = prony_metrics_count(metrics);
    prony_metric_value *found = prn_calloc(all, sizeof *found);
    prony_history_value *values = prn_bump_alloc(&r->pool, all, sizeof *values);
    prony_status status = found && values ? PRONY_OK : prn_no_memory(r->error);
    if (status == PRONY_OK) status = prony_metrics_compute_all(metrics, report, found, r->error);
    for (size_t i = 0; status == PRONY_OK && i < all; i++) {
        if (!found[i].known || !isfinite(found[i].value)) continue;
        values[run->value_count].metric =
            prn_bump_strndup(&r->pool, found[i].metric->key, strlen(found[i].metric->key));
        if (!values[run->value_count].metric) status = prn_no_memory(r->error);
        values[run->value_count].value = found[i].value;
        values[run->value_count].interval[0] = values[run->value_count].interval[1] = NAN;
        run->value_count++;
    }
    if (status == PRONY_OK) status = history_intervals(values, run->value_count, metrics, report, r->error);
    run->values = values;
    prn_free(found);
    prony_metrics_release(metrics);
    return status;
}

static prony_status report_layers(reading *r, const prony_report *report, prony_history_run *run)
{
    const size_t count = report->layer_count < LAYER_LIMIT ? report->layer_count : LAYER_LIMIT;
    prony_history_layer *layers = prn_bump_alloc(&r->pool, count + 1, sizeof *layers);
    if (!layers) return prn_no_memory(r->error);
    run->layers = layers;
    for (size_t i = 0; i < count; i++) {
        const prony_layer_row *l = &report->layers[i];
        if (!l->measured) continue;
        const int64_t ns = l->time.median_ns > 0 ? l->time.median_ns : l->time.mean_ns;
        prony_history_layer *to = &layers[run->layer_count++];
        *to = (prony_history_layer){reading_printf(r, l->name ? l->name : ""), reading_printf(r, l->op ? l->op : ""),
                                    (double)ns};
    }
    return r->reader.status;
}

/* ---- documents ---- */

static prony_status history_report(reading *r, const prn_json_value *from, prony_report **report)
{
    char *text = prn_json_text_of(from);
    if (!text) return prn_no_memory(r->error);
    const prony_status status = prn_report_read(report, r->reader.file, text, strlen(text), r->error);
    prn_json_text_release(text);
    return status;
}

/* A run of a "prony.report/1". */
static prony_status add_report(reading *r, const char *schema, const prn_json_value *from)
{
    prony_history_run run;
    prony_report *report = NULL;
    PRN_TRY(history_report(r, from, &report));
    if (!report->measured) {
        prony_report_release(report);
        return prn_fail(r->error, PRONY_UNSUPPORTED, "%s: the report measured nothing, so a history cannot keep it",
                        r->reader.file);
    }
    history_describe(r, schema, from, &run);
    const bool stamped = prn_report_stamped(report);
    run.configuration = prn_history_report_configuration(&r->reader, from, stamped);
    prony_status status = report_values(r, report, &run);
    if (status == PRONY_OK && stamped) status = report_layers(r, report, &run);
    prony_report_release(report);
    if (status == PRONY_OK) status = r->reader.status;
    return status == PRONY_OK ? prony_history_add(r->to, &run, r->error) : status;
}

static prony_status add_reports(reading *r, const char *schema, const prn_json_value *root)
{
    size_t count;
    const prn_json_value *list = prn_json_get_array(&r->reader, root, "reports", true, &count);
    for (const prn_json_value *one = list ? prn_json_first(list) : NULL; one; one = prn_json_next(one))
        PRN_TRY(add_report(r, schema, one));
    return r->reader.status;
}

static void add_value(prony_history_value *values, prony_history_run *run, const char *metric, double value,
                      const double *interval)
{
    if (!isfinite(value)) return;
    prony_history_value *v = &values[run->value_count++];
    *v = (prony_history_value){metric, value, {NAN, NAN}};
    for (int end = 0; interval && end < 2; end++) v->interval[end] = isfinite(interval[end]) ? interval[end] : NAN;
}

/* Reads an interval of two numbers or nulls. */
static void interval_of(reading *r, const prn_json_value *object, const char *key, double out[2])
{
    size_t count;
    out[0] = out[1] = NAN;
    const prn_json_value *list = prn_json_get_array(&r->reader, object, key, false, &count);
    const prn_json_value *low = list && count == 2 ? prn_json_first(list) : NULL;
    if (!low || prn_json_is_null(low) || prn_json_is_null(prn_json_next(low))) return;
    prn_json_element_double(&r->reader, low, key, &out[0]);
    prn_json_element_double(&r->reader, prn_json_next(low), key, &out[1]);
}

/* A run of a "prony.load/1": latencies and rates of the measured phase. */
static prony_status add_load(reading *r, const char *schema, const prn_json_value *root)
{
    static const char *const latencies[][3] = {{"p50", "latency", ""},        {"mean", "latency_mean", ""},
                                               {"p90", "latency_p90", "p90"}, {"p95", "latency_p95", "p95"},
                                               {"p99", "latency_p99", "p99"}, {"p999", "latency_p999", "p999"},
                                               {"min", "latency_min", ""},    {"max", "latency_max", ""}};
    const prn_json_value *report = prn_json_get_object(&r->reader, root, "report", true),
                         *result = prn_json_get_object(&r->reader, root, "result", true);
    if (!report || !result) return r->reader.status;
    prony_history_run run;
    history_describe(r, schema, report, &run);
    const int64_t made = seconds_of(prn_history_string(&r->reader, root, "created"));
    if (made) run.time_s = made;
    if (prn_json_get_object(&r->reader, root, "disturbance", false))
        describe_load(r, prn_json_get_object(&r->reader, root, "disturbance", false), &run);
    run.configuration = prn_history_load_configuration(&r->reader, root);
    prony_history_value *values = prn_bump_alloc(&r->pool, 16, sizeof *values);
    if (!values) return prn_no_memory(r->error);
    const prn_json_value *times = prn_json_get_object(&r->reader, result, "latency_ns", true);
    const prn_json_value *valid = times ? prn_json_get_object(&r->reader, times, "valid", false) : NULL;
    for (size_t i = 0; times && i < sizeof latencies / sizeof *latencies; i++) {
        bool known = true;
        double value = NAN;
        if (*latencies[i][2] && valid) prn_json_get_bool(&r->reader, valid, latencies[i][2], false, &known);
        if (known && prn_json_get_double(&r->reader, times, latencies[i][0], false, &value))
            add_value(values, &run, latencies[i][1], value, NULL);
    }
    double value = NAN, interval[2] = {NAN, NAN};
    if (prn_json_get_double(&r->reader, result, "samples_per_second", false, &value))
        add_value(values, &run, "throughput", value, NULL);
    const prn_json_value *search = prn_json_get_object(&r->reader, root, "search", false);
    if (search && prn_json_get_double(&r->reader, search, "largest_rate", false, &value)) {
        interval_of(r, search, "interval", interval);
        add_value(values, &run, "requests_per_second", value, interval);
    } else if (prn_json_get_double(&r->reader, result, "queries_per_second", false, &value))
        add_value(values, &run, "requests_per_second", value, NULL);
    run.values = values;
    return r->reader.status == PRONY_OK ? prony_history_add(r->to, &run, r->error) : r->reader.status;
}

/* A run for each configuration of a "prony.study/1" that was measured; repeated baselines are left out. */
static prony_status add_study(reading *r, const char *schema, const prn_json_value *root)
{
    size_t count, results_count;
    const prn_json_value *manifest = prn_json_get_object(&r->reader, root, "manifest", true),
                         *plan = prn_json_get_object(&r->reader, root, "plan", true);
    const prn_json_value *list = plan ? prn_json_get_array(&r->reader, plan, "configurations", true, &count) : NULL,
                         *results = prn_json_get_array(&r->reader, root, "results", false, &results_count);
    if (r->reader.status != PRONY_OK) return r->reader.status;
    if (!results) return prn_fail(r->error, PRONY_UNSUPPORTED, "%s: the study has no results yet", r->reader.file);
    const prn_json_value *quality = prn_json_get_object(&r->reader, root, "quality", false);
    for (const prn_json_value *one = prn_json_first(results); one; one = prn_json_next(one)) {
        prony_history_run run;
        double median = NAN, rate = NAN, ci[2];
        bool again = false;
        int64_t index = prn_history_integer(&r->reader, one, "configuration", -1);
        const prn_json_value *shape = index >= 0 && (uint64_t)index < count ? prn_json_first(list) : NULL;
        for (; shape && index > 0; index--) shape = prn_json_next(shape);
        if (!shape || !prn_json_get_double(&r->reader, one, "median_ns", false, &median)) continue;
        prn_json_get_bool(&r->reader, shape, "again", false, &again);
        if (again || prn_history_integer(&r->reader, shape, "replicas", 1) > 1) continue;
        history_describe(r, schema, manifest, &run);
        const int64_t made = seconds_of(prn_history_string(&r->reader, root, "created"));
        if (made) run.time_s = made;
        if (quality) /* a study repeats disturbed blocks; one that could not is unreliable */
            run.load = 4 * prn_history_integer(&r->reader, quality, "disturbed_blocks", 0) >
                               prn_history_integer(&r->reader, quality, "blocks", 0)
                           ? PRONY_LOAD_BUSY
                           : PRONY_LOAD_QUIET;
        run.configuration = prn_history_study_configuration(&r->reader, root, shape);
        prony_history_value *values = prn_bump_alloc(&r->pool, 4, sizeof *values);
        if (!values) return prn_no_memory(r->error);
        interval_of(r, one, "ci95", ci);
        add_value(values, &run, "latency", median, ci);
        if (prn_json_get_double(&r->reader, one, "samples_per_second", false, &rate))
            add_value(values, &run, "throughput", rate,
                      (const double[2]){rate * median / ci[1], rate * median / ci[0]});
        run.values = values;
        if (r->reader.status != PRONY_OK) return r->reader.status;
        PRN_TRY(prony_history_add(r->to, &run, r->error));
    }
    return r->reader.status;
}

/* All runs of the document are added, or none: a failure sets the count back. Texts are copied to the history, so the
 * document is released here. */
prony_status prony_history_add_document(prony_history *history, const char *name, const char *json, size_t size,
                                        prony_error *error)
{
    static const struct {
        const char *schema;
        prony_status (*add)(reading *r, const char *schema, const prn_json_value *root);
    } kinds[] = {{"prony.report/1", add_report},
                 {"prony.matrix/1", add_reports},
                 {"prony.evaluations/1", add_reports},
                 {"prony.load/1", add_load},
                 {"prony.study/1", add_study}};
    if (!history || !name || !json)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_history_add_document: an argument is NULL");
    prn_json_value *root = NULL;
    PRN_TRY(prn_json_document_parse(&root, name, json, size, error));
    reading r = {.reader = {.file = name, .error = error}, .to = history, .error = error};
    r.reader.pool = &r.pool;
    const size_t before = history->count;
    const char *schema = prn_history_string(&r.reader, root, "schema");
    prony_status status = prn_fail(error, PRONY_UNSUPPORTED,
                                   "%s: \"schema\" is '%.60s'; a history takes prony.report/1, prony.matrix/1, "
                                   "prony.evaluations/1, prony.load/1 and prony.study/1",
                                   name, schema);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].schema, schema) == 0) status = kinds[i].add(&r, schema, root);
    if (status == PRONY_OK && history->count == before)
        status = prn_fail(error, PRONY_UNSUPPORTED, "%s: no measured run in this document", name);
    if (status != PRONY_OK) history->count = before;
    prn_json_document_release(root);
    prn_bump_release(&r.pool);
    return status;
}

/* ---- runs that a program measured ---- */

typedef struct report_text {
    char *bytes;
    size_t size, capacity;
} report_text;

static int report_text_put(void *user, const char *data, size_t size)
{
    report_text *t = user;
    if (!PRN_GROW(t->bytes, t->capacity, t->size + size + 1)) return -1;
    memcpy(t->bytes + t->size, data, size);
    t->size += size;
    t->bytes[t->size] = '\0';
    return 0;
}

/* The description comes from the report's JSON, as that of a document does, so that both are one group. */
prony_status prony_history_add_described(prony_history *history, const prony_report *report,
                                         const prony_history_run *run, prony_error *error)
{
    report_text text = {0};
    prn_json_value *root = NULL;
    if (!history || !report || !run)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_history_add_described: an argument is NULL");
    prony_status status = prony_report_write(report, PRONY_FORMAT_JSON, NULL, report_text_put, &text, error);
    if (status == PRONY_OK) status = prn_json_document_parse(&root, "report", text.bytes, text.size, error);
    if (status == PRONY_OK) {
        reading r = {.reader = {.file = "report", .error = error}, .to = history, .error = error};
        prony_history_run described, own = *run;
        r.reader.pool = &r.pool;
        history_describe(&r, "", root, &described);
        own.model = described.model;
        own.sha256 = described.sha256;
        own.machine = described.machine;
        own.fingerprint = described.fingerprint;
        own.prony = described.prony;
        status = r.reader.status;
        if (status == PRONY_OK) status = prony_history_add(history, &own, error);
        prn_json_document_release(root);
        prn_bump_release(&r.pool);
    }
    prn_free(text.bytes);
    return status;
}
