/* The operators that lose accuracy, worst first, and the errors of the outputs. */
#include "profiler/text/number_text.h"
#include "profiler/exporters/report_text.h"
#include "profiler/exporters/text_cell.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { NAME, KERNEL, OWN_REL, OWN_SNR, OWN_ULP, ALL_REL, ALL_SNR };

static const prn_column columns[] = {
    [NAME] = {.title = "operator", .share = 5, .least = 12},
    [KERNEL] = {.title = "kernel", .share = 3, .least = 8},
    [OWN_REL] = {.title = "own", .right = true},
    [OWN_SNR] = {.title = "dB", .right = true},
    [OWN_ULP] = {.title = "ulp", .right = true},
    [ALL_REL] = {.title = "accum.", .right = true},
    [ALL_SNR] = {.title = "dB", .right = true},
};

typedef struct listing {
    const prony_report *report;
    const uint32_t *worst;
} listing;

static void put_error(prn_cell *cell, bool known, double value)
{
    snprintf(cell->own, sizeof cell->own, known ? "%.1e" : "-", value);
    prn_number_plain_point(cell->own);
    cell->string = cell->own;
}

static void put_decibels(prn_cell *cell, const prony_error_metrics *f)
{
    prn_number_text text;
    snprintf(cell->own, sizeof cell->own, "%s",
             f->known && isfinite(f->snr_db) ? prn_number_fixed(text, f->snr_db, 0) : "-");
    cell->string = cell->own;
}

static void put_ulp(prn_cell *cell, const prony_error_metrics *f)
{
    prn_number_text text;
    if (!f->known)
        cell->string = "-";
    else
        snprintf(cell->own, sizeof cell->own, "%s",
                 f->ulp < 10 ? prn_number_fixed(text, f->ulp, 1) : prn_number_si(text, f->ulp, 2, ""));
    if (f->known) cell->string = cell->own;
}

/* One cell of the table of errors. */
static void error_cell(const void *user, size_t row, int column, prn_cell *cell)
{
    const listing *l = user;
    const prony_accuracy_row *e = &l->report->operator_errors[l->worst[row]];
    const prony_operator_row *o = &l->report->operators[l->worst[row]];
    switch (column) {
    case NAME:
        cell->string = o->name;
        break;
    case KERNEL:
        cell->string = o->kernel;
        break;
    case OWN_REL:
        put_error(cell, e->own.known, e->own.max_rel);
        if (e->own.nonfinite) cell->string = "NaN/Inf";
        break;
    case OWN_SNR:
        put_decibels(cell, &e->own);
        break;
    case OWN_ULP:
        put_ulp(cell, &e->own);
        break;
    case ALL_REL:
        put_error(cell, e->accumulated.known, e->accumulated.max_rel);
        break;
    default:
        put_decibels(cell, &e->accumulated);
    }
}

static void report_text_accuracy_put_outputs(prn_text *text, const prony_accuracy *a)
{
    for (size_t k = 0; k < a->output_count; k++) {
        const prony_accuracy_output *out = &a->outputs[k];
        char line[400], snr[64] = "", rel[40], abs[40];
        prn_number_text number;
        snprintf(rel, sizeof rel, "%.2e", out->error.max_rel);
        snprintf(abs, sizeof abs, "%.2e", out->error.max_abs);
        prn_number_plain_point(rel);
        prn_number_plain_point(abs);
        if (isfinite(out->error.snr_db))
            snprintf(snr, sizeof snr, ", %s dB", prn_number_fixed(number, out->error.snr_db, 1));
        if (out->error.max_abs == 0 && !out->error.nonfinite)
            snprintf(line, sizeof line, "output '%.80s' equals %.120s", out->name,
                     out->against ? out->against : "the reference");
        else
            snprintf(line, sizeof line, "output '%.80s' differs from %.120s by at most %s, %s of its range%s",
                     out->name, out->against ? out->against : "the reference", abs, rel, snr);
        prn_text_wrap(text, PRN_STYLE_PLAIN, 2, line);
    }
}

static void report_text_accuracy_put_cost(prn_text *text, const prony_accuracy *a)
{
    char line[600];
    prn_number_text time, bytes;
    if (!a->operators) return;
    snprintf(line, sizeof line,
             "Compared with %.160s. own: error on the same inputs; accum.: error from the model's inputs on; both are "
             "the largest error over the output's range. %" PRIu64 " of %" PRIu64
             " operators compared; own errors of %" PRIu64 ", %" PRIu64
             " of them without a float64 reference. Cost: one run of %s and at most %s of reference tensors.",
             a->reference, a->compared, a->operators, a->sampled, a->without_reference,
             prn_number_time(time, a->run_ns, 3, " "), prn_number_bytes(bytes, (double)a->peak_bytes, 3, " "));
    prn_text_wrap(text, PRN_STYLE_DIM, 2, line);
}

prony_status prn_text_accuracy(prn_text *text, const prony_report *report, size_t top, prony_error *error)
{
    if (!report->has_accuracy) return PRONY_OK;
    uint32_t *worst = prn_calloc(report->operator_count + 1, sizeof *worst);
    if (!worst) return prn_no_memory(error);
    const size_t count = prony_report_accuracy_worst(report, worst, report->operator_count);
    const size_t shown = prn_text_shown_rows(count, top);
    const listing l = {report, worst};
    prn_text_heading(text, "Accuracy", NULL);
    if (report->accuracy_verdict) prn_text_wrap(text, PRN_STYLE_PLAIN, 2, report->accuracy_verdict);
    if (shown) {
        prn_table table = {.columns = columns,
                           .column_count = sizeof columns / sizeof *columns,
                           .names = 1U << NAME,
                           .rows = shown,
                           .cell = error_cell,
                           .user = &l};
        prn_text_table(text, &table);
        prn_text_hidden_rows(text, count - shown, "operator");
    }
    report_text_accuracy_put_outputs(text, &report->accuracy);
    report_text_accuracy_put_cost(text, &report->accuracy);
    prn_free(worst);
    return PRONY_OK;
}
