/* The result of prony capacity: text, and the document "prony.capacity/1". */
#include "bench/load/capacity.h"
#include "bench/session/document.h"

#include <math.h>
#include <string.h>

static double headroom(const capacity *c, const capacity_row *row)
{
    return row->largest_rate / c->o->load.rate - 1;
}

/* "+28 %", "289 x" of ten times and more, "2e+06 x": 8 characters at most. */
static const char *headroom_text(const capacity *c, const capacity_row *row, char text[24])
{
    const double more = headroom(c, row);
    const char *const format = more < 9 ? "%+.0f %%" : more < 99999 ? "%.0f x" : "%.0e x";
    snprintf(text, 24, format, more < 9 ? 100 * more : more + 1);
    return text;
}

static double milliseconds(int64_t ns)
{
    return (double)ns / 1e6;
}

/* ---- text ---- */

static void print_answer(const capacity *c)
{
    const capacity_row *last = &c->rows[c->row_count - 1];
    double rate = c->o->load.rate;
    char text[24];
    if (c->answer >= 0) {
        const capacity_row *row = &c->rows[c->answer];
        printf("%d processor%s keep%s p%g within %g ms at %g requests/s:\n  --streams %d -x %d --max-batch %lld\n",
               row->cores, row->cores == 1 ? "" : "s", row->cores == 1 ? "s" : "", c->percentile * 100,
               milliseconds(c->o->load.latency_bound_ns), rate, row->sessions, row->threads, (long long)row->max_batch);
        printf("headroom: it keeps the bound up to %.4g requests/s (%s)\n", row->largest_rate,
               headroom_text(c, row, text));
    } else {
        printf("no machine of up to %d processor%s keeps the bound:\n  p%g within %g ms at %g requests/s\n", c->cores,
               c->cores == 1 ? "" : "s", c->percentile * 100, milliseconds(c->o->load.latency_bound_ns), rate);
    }
    if (c->doubling >= 0)
        printf("twice the rate: %d processor%s\n", c->rows[c->doubling].cores,
               c->rows[c->doubling].cores == 1 ? "" : "s");
    else if (last->largest_rate > 0)
        printf("twice the rate: %.0f machines of %d processor%s behind a load balancer\n",
               ceil(2 * rate / last->largest_rate), last->cores, last->cores == 1 ? "" : "s");
    printf("the most: %.4g requests/s with %d processor%s\n", last->largest_rate, last->cores,
           last->cores == 1 ? "" : "s");
}

static void capacity_print_rows(const capacity *c)
{
    char title[32], text[24];
    snprintf(title, sizeof title, "p%g at rate", c->percentile * 100);
    printf("\n  cores  sessions  threads  batch   largest rate  headroom  %14s  busy\n", title);
    for (size_t i = 0; i < c->row_count; i++) {
        const capacity_row *row = &c->rows[i];
        printf("%c %5d  %8d  %7d  %5lld  %c%10.5g/s", (int)i == c->answer ? '*' : ' ', row->cores, row->sessions,
               row->threads, (long long)row->max_batch, row->beyond ? '~' : ' ', row->largest_rate);
        if (row->largest_rate > 0)
            printf("  %8s", headroom_text(c, row, text));
        else
            printf("         -");
        if (row->at_rate.gave_up)
            printf("  %14s  %4s\n", "cannot keep up", "-");
        else
            printf("  %11.4g ms  %2.0f %%\n", milliseconds(row->at_rate.quantile_ns), 100 * row->at_rate.utilisation);
    }
    if (c->rows[c->row_count - 1].beyond)
        printf("~ estimated: this machine has %d processors; their times stand for more\n", c->machine_cores);
}

/* The rows' percentiles come from measured runs: too few of them have no outliers. */
static void warn_of_samples(const capacity *c)
{
    size_t fewest = SIZE_MAX, wanted = capacity_wanted_samples(c);
    for (size_t i = 0; i < c->row_count; i++)
        if (c->rows[i].samples < fewest) fewest = c->rows[i].samples;
    if (fewest < wanted)
        printf("! Some configurations rest on %zu measured runs of one size; p%g needs %zu.\n"
               "  A longer time (-t) measures more.\n",
               fewest, c->percentile * 100, wanted);
}

static void print_cells(const capacity *c)
{
    puts("\nmeasured    sessions  threads  batch        median           p99   runs");
    for (size_t i = 0; i < c->cell_count; i++) {
        const capacity_cell *cell = &c->cells[i];
        printf("            %8d  %7d  %5lld  %9.4g ms  %9.4g ms  %5zu\n", cell->sessions, cell->threads,
               (long long)cell->batch, milliseconds(cell->median_ns), milliseconds(cell->p99_ns), cell->count);
    }
    printf("a lone request starts %.0f us after its arrival\n", (double)c->dispatch_ns / 1e3);
    if (c->other_cpus > 0.1)
        printf("! other processes used %.1f processors meanwhile: the times are too long\n", c->other_cpus);
    warn_of_samples(c);
    if (!c->combines) puts("requests of this model cannot be combined: every run takes one");
}

/* ---- JSON ---- */

static void put_row(FILE *to, const capacity *c, const capacity_row *row)
{
    fprintf(to, "{\"cores\": %d, \"sessions\": %d, \"intra_op_threads\": %d, \"max_batch\": %lld, ", row->cores,
            row->sessions, row->threads, (long long)row->max_batch);
    fprintf(
        to,
        "\"largest_rate\": %.9g, \"headroom\": %.9g, \"keeps_bound\": %s, \"estimated\": %s, \"fewest_samples\": %zu, ",
        row->largest_rate, headroom(c, row), row->keeps ? "true" : "false", row->beyond ? "true" : "false",
        row->samples);
    if (row->at_rate.gave_up)
        fputs("\"percentile_ns\": null, \"median_ns\": null, \"utilisation\": null, \"mean_batch\": null}", to);
    else
        fprintf(to, "\"percentile_ns\": %lld, \"median_ns\": %lld, \"utilisation\": %.9g, \"mean_batch\": %.9g}",
                (long long)row->at_rate.quantile_ns, (long long)row->at_rate.median_ns, row->at_rate.utilisation,
                row->at_rate.mean_batch);
}

static void put_row_or_null(FILE *to, const capacity *c, const char *key, int row)
{
    fprintf(to, ",\n  \"%s\": ", key);
    if (row >= 0)
        put_row(to, c, &c->rows[row]);
    else
        fputs("null", to);
}

/* Times are integers in nanoseconds. The options' numbers have 17 digits, so that they read back as the same doubles.
 * An unknown value is null. */
static void put_document(FILE *to, const capacity *c)
{
    json_begin(to, "prony.capacity/1");
    fputs(",\n  \"model\": ", to);
    json_text(to, c->o->arguments[0]);
    fprintf(to,
            ",\n  \"config\": {\"rate\": %.17g, \"latency_bound_ns\": %lld, \"percentile\": %.17g, "
            "\"batch_window_ns\": %lld, ",
            c->o->load.rate, (long long)c->o->load.latency_bound_ns, c->percentile,
            (long long)(c->o->load.batch_window_ns > 0 ? c->o->load.batch_window_ns : 0));
    fprintf(to, "\"cores\": %d, \"machine_cores\": %d, \"combines\": %s, \"seed\": %llu}", c->cores, c->machine_cores,
            c->combines ? "true" : "false", (unsigned long long)c->o->model.seed);
    put_row_or_null(to, c, "answer", c->answer);
    put_row_or_null(to, c, "doubling", c->doubling);
    put_row_or_null(to, c, "saturation", (int)c->row_count - 1);
    fputs(",\n  \"frontier\": [", to);
    for (size_t i = 0; i < c->row_count; i++) {
        fputs(i ? ",\n    " : "\n    ", to);
        put_row(to, c, &c->rows[i]);
    }
    fprintf(to, "\n  ],\n  \"dispatch_ns\": %lld,\n  \"other_cpus\": ", (long long)c->dispatch_ns);
    if (c->other_cpus >= 0)
        fprintf(to, "%.9g", c->other_cpus);
    else
        fputs("null", to);
    fputs(",\n  \"measured\": [", to);
    for (size_t i = 0; i < c->cell_count; i++) {
        const capacity_cell *cell = &c->cells[i];
        fprintf(to,
                "%s\n    {\"sessions\": %d, \"intra_op_threads\": %d, \"batch\": %lld, \"median_ns\": %lld, "
                "\"p99_ns\": %lld, \"samples\": %zu, ",
                i ? "," : "", cell->sessions, cell->threads, (long long)cell->batch, (long long)cell->median_ns,
                (long long)cell->p99_ns, cell->count);
        fputs("\"samples_ns\": [", to);
        for (size_t k = 0; k < cell->count; k++) fprintf(to, "%s%lld", k ? "," : "", (long long)cell->samples_ns[k]);
        fputs("]}", to);
    }
    fputs("\n  ]\n}\n", to);
}

int capacity_write(const capacity *c)
{
    document d;
    int code = document_open(&d, c->o);
    if (code != EXIT_DONE) return code;
    if (!c->o->terminal.quiet && !stdout_taken(c->o)) {
        put_text(stdout, c->o->arguments[0]);
        putchar('\n');
        print_answer(c);
        capacity_print_rows(c);
        print_cells(c);
    }
    if (d.stream) put_document(d.stream, c);
    return document_close(&d, c->o, EXIT_DONE);
}
