/* Writes the results of a load: text for a terminal of 80 columns, and "prony.load/1". Percentiles with too few queries
 * have a question mark, or "valid": false. */
#include "bench/session/document.h"
#include "bench/terminal/json_file.h"
#include "bench/session/judge.h"
#include "bench/load/load.h"
#include "prony_analysis.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { SHOWN_BYTES = 32, LEAST_STEPS = 1 };

typedef struct printer {
    prony_metrics *metrics;
    bool doubtful; /* a question mark was shown */
} printer;

static const char *shown_time(const printer *p, int64_t ns, char text[SHOWN_BYTES])
{
    prony_metric_format(prony_metrics_find(p->metrics, "latency"), (double)ns, text, SHOWN_BYTES);
    return text;
}

static double load_write_per_second(const load_result *r, double count)
{
    return r->seconds > 0 ? count / r->seconds : 0;
}

static size_t good(const load_result *r)
{
    return r->queries > r->over_bound ? r->queries - r->over_bound : 0;
}

static const char *what_it_does(scenario s)
{
    switch (s) {
    case SCENARIO_SINGLE:
        return "one query after another";
    case SCENARIO_MULTI:
        return "queries of several requests, one after another";
    case SCENARIO_SERVER:
        return "arrivals drawn from a Poisson process";
    default:
        return "as many requests as can be served";
    }
}

/* ---- text ---- */

/* The lines above the result. `line` has room for PRN_BATCH_SIZES batch sizes and all counts; the list of cores is cut.
 * A difference below 0.01 of the largest output counts as rounding; chosen without measurement: a model that mixes
 * samples differs by far more. */
static void print_setup(const load *l)
{
    const options *o = l->o;
    char line[512];
    printf("%s: %s\n", scenario_names[l->scenario], what_it_does(l->scenario));
    int used = snprintf(line, sizeof line, "%d session%s of %d thread%s", l->streams, l->streams == 1 ? "" : "s",
                        l->threads, l->threads == 1 ? "" : "s");
    if (l->ranks) used += snprintf(line + used, sizeof line - (size_t)used, " on each of %d ranks", l->ranks->count);
    if (l->samples_per_request > 1)
        used += snprintf(line + used, sizeof line - (size_t)used, ", %lld samples a request",
                         (long long)l->samples_per_request);
    if (l->requests_per_query > 1)
        used += snprintf(line + used, sizeof line - (size_t)used, ", %d requests a query", l->requests_per_query);
    if (l->trial.sizes_count > 1) {
        used += snprintf(line + used, sizeof line - (size_t)used, ", batches of ");
        for (int i = 0; i < l->trial.sizes_count; i++)
            used += snprintf(line + used, sizeof line - (size_t)used, "%s%lld", i ? ", " : "",
                             (long long)l->trial.sizes[i]);
        used += snprintf(line + used, sizeof line - (size_t)used, " within %.3g ms",
                         o->load.batch_window_ns > 0 ? (double)o->load.batch_window_ns / 1e6 : 0.0);
    }
    const char *failure, *cores = prony_session_affinity(l->session, &failure);
    if (cores) used += snprintf(line + used, sizeof line - (size_t)used, ", on cores %.60s", cores);
    if (l->background_threads)
        snprintf(line + used, sizeof line - (size_t)used, ", with %d busy threads of another process",
                 l->background_threads);
    put_wrapped(line, 0, 2);
    if (!l->trial.known) return;
    if (l->trial.identical)
        puts("combined samples give the same bits as alone (in a trial)");
    else if (l->trial.largest < 0.01)
        printf("combined samples differ from the same ones alone by at most %.1e of the\noutput's largest value (in a "
               "trial)\n",
               l->trial.largest);
    else
        printf("WARNING: combined samples differ from the same ones alone by %.1e of the\noutput's largest value: this "
               "model mixes the samples of a batch\n",
               l->trial.largest);
}

static void print_row(printer *p, const char *name, const prony_time_stats *t)
{
    char text[SHOWN_BYTES];
    const int64_t values[] = {t->median_ns, t->p90_ns, t->p95_ns, t->p99_ns, t->p999_ns, t->max_ns};
    const bool valid[] = {true, t->p90_valid, t->p95_valid, t->p99_valid, t->p999_valid, true};
    printf("  %-15s", name);
    for (int i = 0; i < 6; i++) {
        printf(" %8s%s", shown_time(p, values[i], text), valid[i] ? i < 5 ? " " : "" : "?");
        p->doubtful = p->doubtful || !valid[i];
    }
    putchar('\n');
}

static void print_quantile(const load *l, const printer *p, const load_result *r)
{
    char text[2][SHOWN_BYTES];
    double percent = l->percentile * 100;
    printf("\np%g latency  %s", percent, shown_time(p, r->quantile_ns, text[0]));
    if (r->quantile_valid)
        printf(", at most %s with 99 %% confidence\n", shown_time(p, r->quantile_bound_ns, text[0]));
    else
        printf("  not valid: %zu queries, %zu needed\n", r->latency_count, load_fewest_queries(l->percentile));
    if (!l->bound_ns) return;
    const char *said = r->met              ? "kept with 99 % confidence"
                       : !r->likely_met    ? "missed"
                       : r->quantile_valid ? "kept, but without 99 % confidence"
                                           : "kept so far: too few queries to tell";
    printf("bound        %s: %s\n             %zu of %zu queries were later\n", shown_time(p, l->bound_ns, text[1]),
           said, r->over_bound, r->queries);
}

static void print_found(const load *l, const rate_found *found)
{
    if (!(found->rate > 0)) return;
    printf("\nlargest rate %.4g queries/s", found->rate);
    if (isfinite(found->interval[1]))
        printf(", 95 %% interval %.4g to %.4g%s\n", found->interval[0], found->interval[1],
               found->precise ? "" : "\n             (wide interval; use a longer -t)");
    else
        puts(": the most that the sessions can serve");
    if (found->kept > 0)
        printf("             %.4g queries/s kept p%g, with 99 %% confidence\n", found->kept, l->percentile * 100);
    else
        printf("             not confirmed: no phase kept p%g with 99 %% confidence\n", l->percentile * 100);
}

/* Names the phase of a search that the rest of the text describes. print_found prints the largest rate. */
static void print_phase(const load_result *r, const rate_found *found)
{
    if (!r->queries && found->rate > 0) return;
    if (!r->queries)
        printf("\nno rate keeps the bound\n");
    else if (r->met)
        printf("\nphase at %.5g queries/s, which kept the bound:\n", r->rate);
    else if (r->likely_met)
        printf("\nphase at %.5g queries/s, %s:\n", r->rate,
               r->quantile_valid ? "which kept the bound, but without 99 % confidence" : "too short to tell");
    else
        printf("\nall phases missed the bound, down to %.5g queries/s:\n", r->rate);
}

static void print_steps(const load *l, const printer *p, const load_searched *searched)
{
    const load_result *steps = searched->steps;
    size_t count = searched->count;
    if (count < LEAST_STEPS) return;
    print_found(l, &searched->found);
    printf("\nthe search:  queries/s  queries  late    quantile\n");
    for (size_t i = 0; i < count; i++) {
        char text[SHOWN_BYTES];
        printf("           %11.5g %8zu %5zu  %10s  %s%s\n", steps[i].rate, steps[i].queries, steps[i].over_bound,
               shown_time(p, steps[i].quantile_ns, text),
               steps[i].met          ? "kept"
               : steps[i].likely_met ? "kept so far"
                                     : "missed",
               steps[i].cut_short ? ", given up" : "");
    }
}

/* Samples of a rank per second of the common time. */
static double rank_rate(const load *l, const load_rank *row)
{
    return row->span_ns > 0 ? (double)row->queries * (double)l->samples_per_request / ((double)row->span_ns * 1e-9) : 0;
}

static void print_load_ranks(const load *l)
{
    printf("\n\n  rank  %-20s %9s %11s\n", "node", "queries", "samples/s");
    for (int r = 0; r < l->ranks->count; r++)
        printf("  %4d  %-20.20s %9zu %11.5g\n", r, l->ranks->rows[r].node, l->ranks->rows[r].queries,
               rank_rate(l, &l->ranks->rows[r]));
}

static void put_load_ranks(FILE *to, const load *l)
{
    if (!l->ranks) return;
    fputs("  \"ranks\": [", to);
    for (int r = 0; r < l->ranks->count; r++) {
        const load_rank *row = &l->ranks->rows[r];
        fprintf(to, "%s\n    {\"rank\": %d, \"node\": ", r ? "," : "", r);
        json_text(to, row->node);
        fprintf(to, ", \"queries\": %zu, \"samples_per_second\": %.17g}", row->queries, rank_rate(l, row));
    }
    fputs("\n  ],\n", to);
}

static void print_result(const load *l, printer *p, const load_result *r, const load_searched *searched)
{
    put_text(stdout, l->o->arguments[0]);
    putchar('\n');
    print_setup(l);
    if (l->scenario == SCENARIO_SERVER) print_steps(l, p, searched);
    if (l->scenario == SCENARIO_SERVER && !(l->o->load.rate > 0)) print_phase(r, &searched->found);
    if (r->queries == 0) return;
    printf("\n%zu queries in %.3g s: %.5g queries/s, %.5g samples/s", r->queries, r->seconds,
           load_write_per_second(r, (double)r->queries), load_write_per_second(r, (double)r->samples));
    if (l->bound_ns) printf("\ngoodput: %.5g queries/s within the bound", load_write_per_second(r, (double)good(r)));
    if (r->mean_batch > 1) printf("\nmean batch: %.3g requests", r->mean_batch);
    if (r->rate > 0) printf("\noffered: %.5g queries/s", r->rate);
    if (r->failed) printf("\n%zu failed: %.200s", r->failed, l->failure);
    if (l->ranks) print_load_ranks(l);
    printf("%s\n                   median       p90       p95       p99     p99.9      max\n", l->ranks ? "" : "\n");
    print_row(p, l->scenario == SCENARIO_OFFLINE ? "submit to end" : "latency", &r->latency);
    if (l->scenario != SCENARIO_SINGLE) print_row(p, "in the queue", &r->queue);
    if (l->scenario != SCENARIO_SINGLE) print_row(p, "being run", &r->run);
    if (l->scenario == SCENARIO_SERVER) print_row(p, "issued late", &r->lag);
    if (p->doubtful) puts("  ? too few queries for this percentile (p90 needs 64, p95 130, p99 662)");
    if (l->scenario != SCENARIO_OFFLINE) print_quantile(l, p, r);
    if (l->scenario == SCENARIO_SERVER)
        puts("latency counts from the time a query was due, even if it was issued later");
}

/* ---- JSON ---- */

static void put_stats(FILE *to, const char *key, const prony_time_stats *t)
{
    fprintf(to,
            "    \"%s\": {\"count\": %" PRIu64 ", \"mean\": %" PRId64 ", \"min\": %" PRId64 ", \"max\": %" PRId64
            ", \"std\": %" PRId64 ", \"p50\": %" PRId64 ", \"p90\": %" PRId64 ", \"p95\": %" PRId64
            ", \"p99\": %" PRId64 ", \"p999\": %" PRId64
            ", \"valid\": {\"p90\": %s, \"p95\": %s, \"p99\": %s, \"p999\": %s}},\n",
            key, t->count, t->mean_ns, t->min_ns, t->max_ns, t->std_ns, t->p50_ns, t->p90_ns, t->p95_ns, t->p99_ns,
            t->p999_ns, t->p90_valid ? "true" : "false", t->p95_valid ? "true" : "false",
            t->p99_valid ? "true" : "false", t->p999_valid ? "true" : "false");
}

static void put_number_or_null(FILE *to, const char *key, bool known, double value)
{
    if (known)
        fprintf(to, "    \"%s\": %.17g,\n", key, value);
    else
        fprintf(to, "    \"%s\": null,\n", key);
}

static void put_config(FILE *to, const load *l)
{
    const options *o = l->o;
    const char *failure, *cores = prony_session_affinity(l->session, &failure);
    fprintf(to, "  \"scenario\": \"%s\",\n  \"config\": {\n", scenario_names[l->scenario]);
    fprintf(to, "    \"sessions\": %d,\n    \"intra_op_threads\": %d,\n    \"samples_per_request\": %lld,\n",
            l->streams, l->threads, (long long)l->samples_per_request);
    fprintf(to, "    \"requests_per_query\": %d,\n    \"max_batch\": %lld,\n    \"batch_window_ns\": %lld,\n",
            l->requests_per_query, (long long)(o->load.max_batch > 1 ? o->load.max_batch : 1),
            (long long)(o->load.batch_window_ns > 0 ? o->load.batch_window_ns : 0));
    fprintf(to, "    \"percentile\": %.17g,\n", l->percentile);
    put_number_or_null(to, "latency_bound_ns", l->bound_ns > 0, (double)l->bound_ns);
    put_number_or_null(to, "rate", o->load.rate > 0, o->load.rate);
    fprintf(to, "    \"background_threads\": %d,\n    \"affinity\": ", l->background_threads);
    if (cores)
        json_text(to, cores);
    else
        fputs("null", to);
    fprintf(to, ",\n    \"seed\": %llu\n  },\n", (unsigned long long)o->model.seed);
}

static void put_batching(FILE *to, const prony_batch_trial *t)
{
    if (t->sizes_count < 2) {
        fputs("  \"batching\": null,\n", to);
        return;
    }
    fputs("  \"batching\": {\"sizes\": [", to);
    for (int i = 0; i < t->sizes_count; i++) fprintf(to, "%s%lld", i ? ", " : "", (long long)t->sizes[i]);
    if (t->known)
        fprintf(to, "], \"identical\": %s, \"largest_difference\": %.17g},\n", t->identical ? "true" : "false",
                t->largest);
    else
        fputs("], \"identical\": null, \"largest_difference\": null},\n", to);
}

/* "bound": null without a bound, "kept" has 99 % confidence, "missed" counts these queries. "cannot tell": these
 * queries kept it, but are too few for the confidence. "samples_ns" are latencies in order of issue, without failed
 * queries. */
static void put_result(FILE *to, const load *l, const load_result *r)
{
    fprintf(to, "  \"result\": {\n    \"queries\": %zu,\n    \"failed\": %zu,\n    \"samples\": %lld,\n", r->queries,
            r->failed, (long long)r->samples);
    fprintf(to, "    \"seconds\": %.17g,\n    \"queries_per_second\": %.17g,\n    \"samples_per_second\": %.17g,\n",
            r->seconds, load_write_per_second(r, (double)r->queries), load_write_per_second(r, (double)r->samples));
    put_number_or_null(to, "offered_per_second", r->rate > 0, r->rate);
    put_number_or_null(to, "goodput_per_second", l->bound_ns > 0, load_write_per_second(r, (double)good(r)));
    put_number_or_null(to, "late", l->bound_ns > 0, (double)r->over_bound);
    put_number_or_null(to, "mean_batch", r->mean_batch > 0, r->mean_batch);
    put_stats(to, "latency_ns", &r->latency);
    put_stats(to, "queue_ns", &r->queue);
    put_stats(to, "run_ns", &r->run);
    put_stats(to, "issue_lag_ns", &r->lag);
    fprintf(to,
            "    \"percentile\": {\"value_ns\": %" PRId64 ", \"valid\": %s, \"queries_needed\": %zu, \"bound99_ns\": ",
            r->quantile_ns, r->quantile_valid ? "true" : "false", load_fewest_queries(l->percentile));
    if (r->quantile_valid)
        fprintf(to, "%" PRId64 "},\n", r->quantile_bound_ns);
    else
        fputs("null},\n", to);
    fprintf(to, "    \"bound\": %s,\n    \"samples_ns\": [",
            !l->bound_ns     ? "null"
            : r->met         ? "\"kept\""
            : !r->likely_met ? "\"missed\""
                             : "\"cannot tell\"");
    for (size_t i = 0; i < r->latency_count; i++) fprintf(to, "%s%" PRId64, i ? ", " : "", r->latency_ns[i]);
    fputs("]\n  },\n", to);
}

/* null unless rates were searched. The interval's upper end is null where it is unbounded. */
static void put_search(FILE *to, const load *l, const load_searched *searched)
{
    const rate_found *found = &searched->found;
    if (l->scenario != SCENARIO_SERVER || l->o->load.rate > 0) {
        fputs("  \"search\": null,\n", to);
        return;
    }
    fputs("  \"search\": {\n", to);
    put_number_or_null(to, "largest_rate", found->rate > 0, found->rate);
    if (found->rate > 0)
        fprintf(to, "    \"interval\": [%.17g, ", found->interval[0]);
    else
        fputs("    \"interval\": null,\n", to);
    if (found->rate > 0 && isfinite(found->interval[1]))
        fprintf(to, "%.17g],\n", found->interval[1]);
    else if (found->rate > 0)
        fputs("null],\n", to);
    put_number_or_null(to, "kept_rate", found->kept > 0, found->kept);
    fprintf(to, "    \"precision\": %.17g,\n    \"precise\": %s,\n", RATE_PRECISION, found->precise ? "true" : "false");
    fputs("    \"steps\": [", to);
    for (size_t i = 0; i < searched->count; i++) {
        const load_result *step = &searched->steps[i];
        fprintf(to,
                "%s\n      {\"rate\": %.17g, \"queries\": %zu, \"late\": %zu, \"percentile_ns\": %" PRId64
                ", \"kept\": %s}",
                i ? "," : "", step->rate, step->queries, step->over_bound, step->quantile_ns,
                step->likely_met ? "true" : "false");
    }
    fputs("\n    ]\n  },\n", to);
}

/* Writes model, machine and build, as a report without measurements. */
static int put_report(FILE *to, const load *l)
{
    prony_error error = {0};
    prony_report *report = NULL;
    prony_session_options session = session_options(l->o);
    prony_write_options w = write_options(l->o);
    session.affinity = NULL;
    fputs("  \"report\": ", to);
    prony_status status = prony_inspect(&report, l->model, &session, &error);
    if (status == PRONY_OK) status = prony_report_write(report, PRONY_FORMAT_JSON, &w, write_to_stream, to, &error);
    prony_report_release(report);
    fputs("}\n", to);
    return status == PRONY_OK ? EXIT_DONE : report_error(l->o, &error);
}

int load_write(const load *l, const load_result *r, const load_searched *searched)
{
    prony_error error = {0};
    printer p = {0};
    document json;
    if (prony_metrics_create(&p.metrics, &error) != PRONY_OK) return report_error(l->o, &error);
    if (!l->o->terminal.quiet && !stdout_taken(l->o)) print_result(l, &p, r, searched);
    prony_metrics_release(p.metrics);
    int code = document_open(&json, l->o);
    if (code != EXIT_DONE || !json.stream) return code;
    json_begin(json.stream, "prony.load/1");
    fputs(",\n", json.stream);
    put_config(json.stream, l);
    put_load_ranks(json.stream, l);
    put_batching(json.stream, &l->trial);
    put_result(json.stream, l, r);
    put_search(json.stream, l, searched);
    code = put_report(json.stream, l);
    return document_close(&json, l->o, code);
}
