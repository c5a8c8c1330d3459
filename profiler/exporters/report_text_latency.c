/* Latencies beyond their quantiles, for the terminal: steady state, outliers by run, histogram. Also limits of a run:
 * the critical path, and the use of each processor. Reads the report only. */
#include "profiler/exporters/report_text.h"

#include "profiler/text/number_text.h"
#include "profiler/exporters/text_cell.h"
#include "base/memory/row_block.h"

#include <inttypes.h>
#include <stdio.h>

#define SHOWN_BINS 8
#define SHOWN_OUTLIERS 8
#define SHOWN_CORES 16
#define FEWEST_RUNS 10 /* fewest runs for a histogram; chosen without measurement */

static prony_status put_steady(prn_text *text, const prony_report *r, bool all, prony_error *error)
{
    prony_steady_state s;
    prn_number_text drift, p;
    PRN_TRY(prony_report_steady_state(&s, r, error));
    if (!s.known || (s.steady && !s.unsure && !all)) return PRONY_OK;
    prn_text_to(text, 2);
    if (s.unsure)
        prn_text_put(text, PRN_STYLE_WARN, "cannot tell if the latency was steady");
    else if (s.steady)
        prn_text_put(text, PRN_STYLE_GOOD, "steady");
    else
        prn_text_put(text, PRN_STYLE_WARN, "not steady; more runs may give another median");
    prn_text_putf(text, PRN_STYLE_DIM, " (drift %s %%, p %s)", prn_number_percent(drift, s.drift),
                  prn_number_fixed(p, s.p, 3));
    prn_text_line(text);
    return PRONY_OK;
}

/* "of 10 processes, whose medians lie between 24.1 and 26.0 us" */
static prony_status put_processes(prn_text *text, const prony_report *r, prony_error *error)
{
    prn_number_text low, high;
    int64_t least = INT64_MAX, most = 0;
    size_t begin = 0;
    if (!r->process_runs) return PRONY_OK;
    for (size_t i = 0; i < r->process_count; begin += (size_t)r->process_runs[i++]) {
        prony_time_stats one;
        PRN_TRY(prn_stats_compute(&one, r->samples_ns + begin, (size_t)r->process_runs[i], false, error));
        if (one.median_ns < least) least = one.median_ns;
        if (one.median_ns > most) most = one.median_ns;
    }
    prn_text_to(text, 2);
    prn_text_putf(text, PRN_STYLE_DIM, " of %zu process%s, with medians from %s to %s", r->process_count,
                  r->process_count == 1 ? "" : "es", prn_number_time(low, least, 4, " "),
                  prn_number_time(high, most, 4, " "));
    prn_text_line(text);
    return PRONY_OK;
}

static prony_status put_outliers(prn_text *text, const prony_report *r, prony_error *error)
{
    prony_outlier *rows = NULL;
    size_t count = 0, severe = 0;
    PRN_TRY(prony_report_outliers(&rows, &count, r, error));
    for (size_t i = 0; i < count; i++) severe += rows[i].severe;
    if (count) {
        char line[400];
        size_t used = (size_t)snprintf(line, sizeof line, "%zu outlier%s of %" PRIu64 " runs", count,
                                       count == 1 ? "" : "s", r->latency.count);
        if (severe) used += (size_t)snprintf(line + used, sizeof line - used, ", %zu severe", severe);
        used += (size_t)snprintf(line + used, sizeof line - used, "; all are counted:");
        for (size_t i = 0; i < count && i < SHOWN_OUTLIERS; i++) {
            prn_number_text time;
            used += (size_t)snprintf(line + used, sizeof line - used, "%s run %" PRIu64 " %s", i ? "," : "",
                                     rows[i].run, prn_number_time(time, rows[i].latency_ns, 3, " "));
        }
        if (count > SHOWN_OUTLIERS) snprintf(line + used, sizeof line - used, " and more");
        prn_text_wrap(text, PRN_STYLE_DIM, 2, line);
    }
    prony_rows_release(rows);
    return PRONY_OK;
}

/* ---- histogram ---- */

enum { BIN_FROM, BIN_TO, BIN_RUNS, BIN_BAR };

static const prn_column bin_columns[] = {
    [BIN_FROM] = {.title = "from", .right = true},
    [BIN_TO] = {.title = "to", .right = true},
    [BIN_RUNS] = {.title = "runs", .right = true},
    [BIN_BAR] = {.title = ""},
};

typedef struct bin_view {
    const prony_histogram_bin *bins;
    size_t inner; /* the row after them: runs beyond the last bin */
    uint64_t most;
} bin_view;

static void bin_cell(const void *user, size_t row, int column, prn_cell *cell)
{
    const bin_view *v = user;
    const prony_histogram_bin *bin = &v->bins[row];
    prn_number_text number;
    switch (column) {
    case BIN_FROM:
    case BIN_TO:
        snprintf(cell->own, sizeof cell->own, "%s%s", column == BIN_FROM && row >= v->inner ? "beyond " : "",
                 prn_number_time(number, column == BIN_FROM ? bin->from_ns : bin->to_ns, 4, ""));
        cell->string = cell->own;
        break;
    case BIN_RUNS:
        prn_cell_count(cell, bin->count);
        break;
    default:
        prn_cell_bar(cell, (double)bin->count, (double)v->most);
    }
}

static prony_status put_histogram(prn_text *text, const prony_report *r, prony_error *error)
{
    prony_histogram_bin *bins = NULL;
    size_t count = 0;
    bool beyond;
    PRN_TRY(prn_report_latency_bins(&bins, &count, &beyond, r, SHOWN_BINS, error));
    bin_view v = {.bins = bins, .inner = count - beyond};
    for (size_t b = 0; b < count; b++) v.most = bins[b].count > v.most ? bins[b].count : v.most;
    prn_table table = {.columns = bin_columns,
                       .column_count = sizeof bin_columns / sizeof bin_columns[0],
                       .rows = count,
                       .cell = bin_cell,
                       .user = &v};
    prn_text_heading(text, "Latency histogram", NULL);
    prn_text_table(text, &table);
    prony_rows_release(bins);
    return PRONY_OK;
}

prony_status prn_text_latency(prn_text *text, const prony_report *report, bool all, prony_error *error)
{
    if (!report->samples_ns || report->latency.count == 0) return PRONY_OK;
    PRN_TRY(put_processes(text, report, error));
    PRN_TRY(put_steady(text, report, all, error));
    if (!all) return PRONY_OK;
    PRN_TRY(put_outliers(text, report, error));
    return report->latency.count < FEWEST_RUNS ? PRONY_OK : put_histogram(text, report, error);
}

/* ---- limits of a run ---- */

static prony_status put_critical_path(prn_text *text, const prony_report *r, prony_error *error)
{
    uint32_t *chain = NULL;
    size_t count;
    int64_t time_ns;
    double sum = 0;
    prony_error none = {0};
    prony_status status = prony_report_critical_path(&chain, &count, &time_ns, r, &none);
    if (status == PRONY_OUT_OF_MEMORY) return prn_no_memory(error);
    if (status != PRONY_OK) return PRONY_OK;
    for (size_t o = 0; o < r->operator_count; o++) sum += (double)r->operators[o].time.mean_ns;
    prn_number_text time, share;
    prn_text_to(text, 2);
    prn_text_putf(text, PRN_STYLE_DIM, "critical path: %zu of %zu operators, %s, %s %% of their time", count,
                  r->operator_count, prn_number_time(time, time_ns, 3, " "),
                  prn_number_percent(share, sum > 0 ? (double)time_ns / sum : 0));
    prn_text_line(text);
    prony_rows_release(chain);
    return PRONY_OK;
}

/* The mean number of busy processors, and the operators in which threads waited most. */
static void put_threads(prn_text *text, const prony_report *r)
{
    double busy = 0, wait = 0, time = 0;
    const prony_operator_row *worst = NULL;
    int threads = 1;
    for (size_t i = 0; i < r->operator_count; i++) {
        const prony_operator_row *o = &r->operators[i];
        if (!(o->parallel.threads_used > 0)) continue;
        busy += (double)o->parallel.busy_ns;
        wait += (double)o->parallel.wait_ns;
        time += (double)o->time.mean_ns;
        if (o->threads > threads) threads = o->threads;
        if (!worst || o->parallel.wait_ns > worst->parallel.wait_ns) worst = o;
    }
    if (threads < 2 || !(time > 0)) return;
    char line[400], name[64];
    prn_number_text cores, share, waited, part;
    prn_text_shorten(name, sizeof name, worst->name ? worst->name : "", 40);
    snprintf(line, sizeof line,
             "threads: %s of %d processors busy inside operators (%s %%); they waited %s per run, most in %s (%s %%)",
             prn_number_fixed(cores, busy / time, 2), threads, prn_number_percent(share, busy / (busy + wait)),
             prn_number_time(waited, (int64_t)wait, 3, " "), name,
             prn_number_percent(part, wait > 0 ? (double)worst->parallel.wait_ns / wait : 0));
    prn_text_wrap(text, PRN_STYLE_DIM, 2, line);
}

static void put_cores(prn_text *text, const prony_report *r)
{
    char line[400];
    size_t used = (size_t)snprintf(line, sizeof line, "processors busy:");
    if (!r->core_points) return;
    for (size_t c = 0; c < r->core_count && c < SHOWN_CORES; c++) {
        prn_number_text share;
        used += (size_t)snprintf(line + used, sizeof line - used, "%s %d at %s %%", c ? "," : "", r->cores[c].core,
                                 prn_number_percent(share, r->cores[c].mean));
    }
    if (r->core_count > SHOWN_CORES) snprintf(line + used, sizeof line - used, " and more");
    prn_text_wrap(text, PRN_STYLE_DIM, 2, line);
}

prony_status prn_text_holdups(prn_text *text, const prony_report *report, prony_error *error)
{
    PRN_TRY(put_critical_path(text, report, error));
    put_threads(text, report);
    put_cores(text, report);
    return PRONY_OK;
}
