/* prony bench over a matrix: a session per combination of batch, threads and precision, all interleaved, one table, and
 * the configurations with the best throughput and latency. */
#include "bench/process/interrupt.h"
#include "bench/session/document.h"
#include "bench/terminal/json_file.h"
#include "bench/session/judge.h"
#include "bench/commands/matrix.h"
#include "bench/session/submodel.h"
#include "prony_analysis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CONFIGURATIONS = 256, LABEL_BYTES = 160, SHOWN_BYTES = 32 };

typedef struct configuration {
    int64_t batch; /* 0: the model's own */
    int intra_op, inter_op;
    const char *precision;
    double samples_per_second;
    const prony_time_stats *latency;
    char count[64]; /* by the preset of --count */
} configuration;

typedef struct matrix {
    configuration *rows;
    prony_session **sessions;
    prony_report **reports;
    size_t count;
    prony_model *quantized; /* NULL: not made yet, or not wanted */
    prony_metrics *metrics; /* once measured */
    int background_threads;
} matrix;

static size_t at_least_one(size_t count)
{
    return count ? count : 1;
}

bool is_matrix(const options *o)
{
    return o->model.batches.count > 1 || o->threads.intra_ops.count > 1 || o->threads.inter_ops.count > 1 ||
           o->precision.count > 1;
}

/* ---- configurations ---- */

static int matrix_command_make_rows(const options *o, matrix *m)
{
    size_t batches = at_least_one(o->model.batches.count), intra = at_least_one(o->threads.intra_ops.count),
           inter = at_least_one(o->threads.inter_ops.count), precisions = at_least_one(o->precision.count);
    size_t count = batches * intra * inter * precisions;
    if (count > MOST_CONFIGURATIONS)
        return fail(o, "%zu configurations exceed the limit of %d", count, MOST_CONFIGURATIONS), EXIT_USAGE;
    m->rows = calloc(count, sizeof *m->rows);
    m->sessions = calloc(count, sizeof *m->sessions);
    m->reports = calloc(count, sizeof *m->reports);
    if (!m->rows || !m->sessions || !m->reports) return fail(o, "out of memory");
    for (size_t i = 0; i < count; i++) {
        configuration *c = &m->rows[m->count++];
        size_t at = i;
        c->intra_op = o->threads.intra_ops.count ? (int)o->threads.intra_ops.values[at % intra] : 0;
        at /= intra;
        c->inter_op = o->threads.inter_ops.count ? (int)o->threads.inter_ops.values[at % inter] : 0;
        at /= inter;
        c->batch = o->model.batches.count ? o->model.batches.values[at % batches] : 0;
        at /= batches;
        c->precision = o->precision.count ? o->precision.names[at] : NULL;
    }
    return EXIT_DONE;
}

static options options_of(const options *o, const configuration *c)
{
    options one = *o;
    one.model.batch = c->batch;
    one.threads.intra_op = c->intra_op;
    one.threads.inter_op = c->inter_op;
    one.precision.name = c->precision;
    return one;
}

/* "batch 4, 2 threads": the parameters that differ between configurations. */
static const char *label(const options *o, const configuration *c, char text[LABEL_BYTES])
{
    size_t used = 0;
    text[0] = '\0';
    if (c->batch) used += (size_t)snprintf(text + used, LABEL_BYTES - used, "batch %lld, ", (long long)c->batch);
    if (c->intra_op)
        used += (size_t)snprintf(text + used, LABEL_BYTES - used, "%d thread%s, ", c->intra_op,
                                 c->intra_op == 1 ? "" : "s");
    else
        used += (size_t)snprintf(text + used, LABEL_BYTES - used, "auto threads, ");
    if (o->threads.inter_ops.count > 1)
        used += c->inter_op > 0 ? (size_t)snprintf(text + used, LABEL_BYTES - used, "%d worker%s, ", c->inter_op,
                                                   c->inter_op == 1 ? "" : "s")
                                : (size_t)snprintf(text + used, LABEL_BYTES - used, "auto workers, ");
    if (o->precision.count > 1) used += (size_t)snprintf(text + used, LABEL_BYTES - used, "%.40s, ", c->precision);
    text[used - 2] = '\0';
    return text;
}

static int read_figures(const options *o, const prony_metrics *metrics, prony_report *report, configuration *row)
{
    prony_error error = {0};
    prony_metric_value throughput, count;
    if (apply_count(o, report) != EXIT_DONE) return EXIT_FAILED;
    if (prony_metrics_compute(metrics, report, "throughput", &throughput, &error) != PRONY_OK ||
        prony_metrics_compute(metrics, report, "count", &count, &error) != PRONY_OK)
        return report_error(o, &error);
    row->samples_per_second = throughput.known ? throughput.value : 0;
    row->latency = prony_report_latency(report);
    snprintf(row->count, sizeof row->count, "%s", count.text);
    return EXIT_DONE;
}

/* Sessions keep the model; *quantized is made for the first session that needs it. */
static int add_session(const options *o, prony_model *model, prony_model **quantized, prony_session **session)
{
    const bool wanted = wants_codes(o, model);
    int code = wanted && !*quantized ? quantize_model(o, model, quantized) : EXIT_DONE;
    return code == EXIT_DONE ? make_session(o, wanted ? *quantized : model, session, false) : code;
}

static int matrix_command_measure(const options *o, prony_model *model, matrix *m)
{
    prony_error error = {0};
    char text[LABEL_BYTES];
    prony_profile_options p = profile_options(o);
    for (size_t i = 0; i < m->count; i++) {
        options one = options_of(o, &m->rows[i]);
        int code = add_session(&one, model, &m->quantized, &m->sessions[i]);
        if (code != EXIT_DONE) return fail(o, "in the configuration of %s", label(o, &m->rows[i], text));
    }
    prony_status status = prony_profile_interleaved(m->reports, m->sessions, m->count, &p, &error);
    if (measured(o, status, m->reports[0], &error) != EXIT_DONE) return EXIT_FAILED;
    if (prony_metrics_create(&m->metrics, &error) != PRONY_OK) return report_error(o, &error);
    int code = EXIT_DONE;
    for (size_t i = 0; i < m->count && code == EXIT_DONE; i++)
        code = read_figures(o, m->metrics, m->reports[i], &m->rows[i]);
    return code;
}

/* ---- the verdict ---- */

/* All configurations were interleaved, so one busy report applies to all. */
static bool matrix_command_is_busy(const options *o, const matrix *m, prony_disturbance *load)
{
    if (o->verdict.ignore_load || m->background_threads) return false; /* the load was requested */
    for (size_t i = 0; i < m->count; i++)
        if (prony_report_disturbance(load, m->reports[i]) && load->verdict == PRONY_LOAD_BUSY) return true;
    return false;
}

static size_t best(const matrix *m, bool throughput)
{
    size_t found = 0;
    for (size_t i = 1; i < m->count; i++)
        if (throughput ? m->rows[i].samples_per_second > m->rows[found].samples_per_second
                       : m->rows[i].latency->median_ns < m->rows[found].latency->median_ns)
            found = i;
    return found;
}

/* 95 % interval of the median latency, or of the mean time per sample, which determines throughput.
 */
static void matrix_command_interval(const configuration *c, bool throughput, double out[2])
{
    const prony_time_stats *t = c->latency;
    double batch = c->batch ? (double)c->batch : 1;
    double half = 1.96 * (double)t->std_ns / sqrt((double)t->count);
    out[0] = throughput ? ((double)t->mean_ns - half) / batch : (double)t->median_ci95_ns[0];
    out[1] = throughput ? ((double)t->mean_ns + half) / batch : (double)t->median_ci95_ns[1];
}

/* true: the intervals overlap, so the two cannot be distinguished. */
static bool tied(const configuration *a, const configuration *b, bool throughput)
{
    double x[2], y[2];
    matrix_command_interval(a, throughput, x);
    matrix_command_interval(b, throughput, y);
    return x[0] <= y[1] && y[0] <= x[1];
}

static const char *matrix_command_shown(const matrix *m, const char *key, double value, char text[SHOWN_BYTES])
{
    prony_metric_format(prony_metrics_find(m->metrics, key), value, text, SHOWN_BYTES);
    return text;
}

/* Prints the configurations that cannot be distinguished from the winner, wrapped at the line. */
static void print_ties(const options *o, const matrix *m, size_t winner, bool throughput)
{
    enum { INDENT = 17, WIDTH = 80 };
    char text[LABEL_BYTES];
    size_t at = 0;
    for (size_t i = 0; i < m->count; i++) {
        if (i == winner || !tied(&m->rows[winner], &m->rows[i], throughput)) continue;
        size_t length = strlen(label(o, &m->rows[i], text));
        if (at && at + length + 3 <= WIDTH) {
            at += (size_t)printf("; %s", text);
            continue;
        }
        at = (size_t)printf("%s%*s%s", at ? ";\n" : "", INDENT, "", at ? "" : "not significantly different from ");
        if (at + length + 1 > WIDTH) at = (size_t)printf("\n%*s", INDENT, "") - 1;
        at += (size_t)printf("%s", text);
    }
    if (at) putchar('\n');
}

static void print_verdict(const options *o, const matrix *m, bool throughput, bool busy)
{
    char text[LABEL_BYTES], figure[SHOWN_BYTES];
    size_t winner = best(m, throughput);
    const configuration *c = &m->rows[winner];
    if (throughput)
        matrix_command_shown(m, "throughput", c->samples_per_second, figure);
    else
        matrix_command_shown(m, "latency", (double)c->latency->median_ns, figure);
    printf("%s  %s: %s%s\n", throughput ? "best throughput" : "lowest latency ", label(o, c, text), figure,
           busy ? ", undecided" : "");
    print_ties(o, m, winner, throughput);
}

/* Prints the preset's count of each batch size. */
static void print_counts(const options *o, const matrix *m)
{
    if (!o->shown.count) return;
    printf("count by %s  ", o->shown.count);
    for (size_t i = 0; i < m->count; i++) {
        bool seen = false;
        for (size_t k = 0; k < i; k++) seen = seen || m->rows[k].batch == m->rows[i].batch;
        if (seen) continue;
        printf("%s%s", i ? ", " : "", m->rows[i].count);
        if (m->rows[i].batch) printf(" (batch %lld)", (long long)m->rows[i].batch);
    }
    putchar('\n');
}

/* Has columns for differing parameters only, so that 80 columns suffice. */
static void print_table(const options *o, const matrix *m)
{
    bool precision = o->precision.count > 1, workers = o->threads.inter_ops.count > 0, few = false;
    put_text(stdout, o->arguments[0]);
    int column = (int)strlen(o->arguments[0]) + printf(", %zu configurations measured in turns", m->count);
    put_assumed(m->reports[0], column);
    putchar('\n');
    if (m->background_threads) printf("with %d busy threads of another process\n", m->background_threads);
    putchar('\n');
    printf("batch  thr%s%s %9s %22s %9s  %11s %7s\n", workers ? "  wrk" : "", precision ? "  prec" : "", "median",
           "its 95 % interval", "p90", "samples/s", "runs");
    for (size_t i = 0; i < m->count; i++) {
        const configuration *c = &m->rows[i];
        const prony_time_stats *t = c->latency;
        char batch[24] = "-", threads[24] = "auto", text[5][SHOWN_BYTES];
        if (c->batch) snprintf(batch, sizeof batch, "%lld", (long long)c->batch);
        if (c->intra_op) snprintf(threads, sizeof threads, "%d", c->intra_op);
        matrix_command_shown(m, "latency", (double)t->median_ns, text[0]);
        matrix_command_shown(m, "latency", (double)t->median_ci95_ns[0], text[1]);
        matrix_command_shown(m, "latency", (double)t->median_ci95_ns[1], text[2]);
        matrix_command_shown(m, "latency", (double)t->p90_ns, text[3]);
        matrix_command_shown(m, "throughput", c->samples_per_second, text[4]);
        text[4][strcspn(text[4], "s")] = '\0'; /* the title has the unit */
        printf("%5s %4s", batch, threads);
        if (workers && c->inter_op > 0) printf(" %4d", c->inter_op);
        if (workers && c->inter_op < 0) printf(" %4s", "auto");
        if (precision) printf("  %4s", c->precision);
        printf(" %9s %10s - %9s %9s%s %11s %7llu\n", text[0], text[1], text[2], text[3], t->p90_valid ? " " : "?",
               text[4], (unsigned long long)t->count);
        few = few || !t->p90_valid;
    }
    puts(few ? "? too few runs\n" : "");
    print_counts(o, m);
    prony_disturbance load;
    const bool busy = matrix_command_is_busy(o, m, &load);
    if (busy) {
        char line[320];
        snprintf(line, sizeof line,
                 "! %s; the machine was busy, so the verdicts are undecided (--ignore-load decides)\n", load.text);
        put_wrapped(line, 0, 2);
    }
    print_verdict(o, m, true, busy);
    print_verdict(o, m, false, busy);
}

static void matrix_command_write_verdict(FILE *to, const matrix *m, const char *key, bool throughput)
{
    size_t winner = best(m, throughput);
    const configuration *c = &m->rows[winner];
    fprintf(to, "    \"%s\": {\"report\": %zu, ", key, winner);
    if (c->batch)
        fprintf(to, "\"batch\": %lld, ", (long long)c->batch);
    else
        fprintf(to, "\"batch\": null, ");
    if (throughput)
        fprintf(to, "\"samples_per_second\": %.17g, ", c->samples_per_second);
    else
        fprintf(to, "\"median_ns\": %lld, ", (long long)c->latency->median_ns);
    fprintf(to, "\"not_told_apart_from\": [");
    const char *comma = "";
    for (size_t i = 0; i < m->count; i++) {
        if (i == winner || !tied(c, &m->rows[i], throughput)) continue;
        fprintf(to, "%s%zu", comma, i);
        comma = ", ";
    }
    fprintf(to, "]}");
}

static int matrix_command_write_json(const options *o, const matrix *m, const document *file)
{
    FILE *const to = file->stream;
    prony_error error = {0};
    prony_write_options w = write_options(o);
    json_begin(file->stream, "prony.matrix/1");
    fputs(",\n  \"reports\": [\n", to);
    for (size_t i = 0; i < m->count; i++) {
        if (prony_report_write(m->reports[i], PRONY_FORMAT_JSON, &w, write_to_stream, to, &error) != PRONY_OK)
            return report_error(o, &error);
        if (i + 1 < m->count) fputs(",\n", to);
    }
    prony_disturbance load;
    fprintf(to, "  ],\n  \"verdict\": {\n    \"undecided\": %s,\n",
            matrix_command_is_busy(o, m, &load) ? "true" : "false");
    matrix_command_write_verdict(to, m, "throughput", true);
    fputs(",\n", to);
    matrix_command_write_verdict(to, m, "latency", false);
    fputs("\n  }\n}\n", to);
    return EXIT_DONE;
}

static int matrix_command_show(const options *o, const matrix *m)
{
    char text[LABEL_BYTES];
    document json;
    bool table = !o->terminal.quiet && !stdout_taken(o);
    clear_progress();
    if (table) print_table(o, m);
    int code = document_open(&json, o);
    if (code != EXIT_DONE) return code;
    if (json.stream) code = matrix_command_write_json(o, m, &json);
    for (size_t i = 0; i < m->count && o->verdict.threshold_count && code != EXIT_FAILED; i++) {
        if (table) putchar('\n');
        code = check_thresholds(o, m->reports[i], label(o, &m->rows[i], text), table ? stdout : NULL, NULL, code);
    }
    return document_close(&json, o, code);
}

int command_bench_matrix(const options *o, int background_threads)
{
    prony_model *model = NULL;
    prony_error error = {0};
    matrix m = {.background_threads = background_threads};
    if (is_submodel(o)) return fail(o, "--from and --to need one configuration, not a matrix"), EXIT_USAGE;
    int code = matrix_command_make_rows(o, &m);
    if (code == EXIT_DONE && load_model(o, &model, o->arguments[0], &error) != PRONY_OK) code = report_error(o, &error);
    if (code == EXIT_DONE) code = matrix_command_measure(o, model, &m);
    for (size_t i = 0; i < m.count; i++) prony_report_set_background(m.reports[i], background_threads);
    if (code == EXIT_DONE) code = matrix_command_show(o, &m);
    for (size_t i = 0; i < m.count; i++) {
        prony_report_release(m.reports[i]);
        session_release(m.sessions[i]);
    }
    prony_metrics_release(m.metrics);
    prony_model_release(m.quantized);
    prony_model_release(model);
    free(m.rows);
    free(m.sessions);
    free(m.reports);
    return code;
}
