/* The layers that lose most, and the verdict sentence. */
#include "profiler/text/number_text.h"
#include "profiler/report/report.h"

#include <math.h>
#include <stdio.h>

const prony_accuracy *prony_report_accuracy(const prony_report *report)
{
    return report && report->has_accuracy ? &report->accuracy : NULL;
}

const prony_accuracy_row *prony_report_accuracy_rows(const prony_report *report, unsigned level, size_t *count)
{
    const bool layers = level == PRONY_LEVEL_LAYER, operators = level == PRONY_LEVEL_OPERATOR;
    const bool there = report && report->has_accuracy && report->operator_errors && (layers || operators);
    if (count) *count = !there ? 0 : layers ? report->layer_count : report->operator_count;
    return !there ? NULL : layers ? report->layer_errors : report->operator_errors;
}

/* ---- worst */

static bool accuracy_verdict_loses(const prony_accuracy_row *row)
{
    return row->own.known && (row->own.max_abs > 0 || row->own.nonfinite > 0);
}

/* true: operator x loses less than y. */
static bool less(const prony_accuracy_row *rows, uint32_t x, uint32_t y)
{
    const prony_error_metrics *a = &rows[x].own, *b = &rows[y].own;
    if ((a->nonfinite > 0) != (b->nonfinite > 0)) return b->nonfinite > 0;
    if (a->max_rel != b->max_rel) return a->max_rel < b->max_rel;
    return x > y;
}

/* Restores a min-heap; `at` may be larger than its children. */
static void sift(const prony_accuracy_row *rows, uint32_t *heap, size_t count, size_t at)
{
    for (;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++)
            if (less(rows, heap[child], heap[least])) least = child;
        if (least == at) return;
        const uint32_t kept = heap[at];
        heap[at] = heap[least];
        heap[least] = kept;
        at = least;
    }
}

/* Keeps the `capacity` worst in a min-heap, then sorts them, the worst first. Returns how many operators lose
 * accuracy. */
size_t prony_report_accuracy_worst(const prony_report *report, uint32_t *indices, size_t capacity)
{
    size_t count, found = 0, kept = 0;
    const prony_accuracy_row *rows = prony_report_accuracy_rows(report, PRONY_LEVEL_OPERATOR, &count);
    if (!indices) capacity = 0;
    for (uint32_t i = 0; rows && i < count; i++) {
        if (!accuracy_verdict_loses(&rows[i])) continue;
        found++;
        if (kept < capacity) {
            indices[kept++] = i;
            if (kept == capacity)
                for (size_t at = kept / 2 + 1; at-- > 0;) sift(rows, indices, kept, at);
        } else if (capacity && less(rows, indices[0], i)) {
            indices[0] = i;
            sift(rows, indices, kept, 0);
        }
    }
    if (kept < capacity)
        for (size_t at = kept / 2 + 1; at-- > 0;) sift(rows, indices, kept, at);
    for (size_t left = kept; left > 1; left--) { /* the least goes to the end */
        const uint32_t last = indices[left - 1];
        indices[left - 1] = indices[0];
        indices[0] = last;
        sift(rows, indices, left - 1, 0);
    }
    return found;
}

/* ---- the sentence */

static void decibels(char *text, size_t size, const prony_error_metrics *f)
{
    *text = 0;
    if (isfinite(f->snr_db)) snprintf(text, size, " (%.0f dB)", f->snr_db);
}

static void accuracy_verdict_share(prn_number_text text, double value)
{
    snprintf(text, sizeof(prn_number_text), "%.2g", value);
    prn_number_plain_point(text);
}

static void say_outputs(const prony_report *report, char *text, size_t size)
{
    const prony_accuracy *a = &report->accuracy;
    char ratio[40];
    prn_number_text part;
    *text = 0;
    for (size_t k = 0; k < a->output_count; k++) {
        const prony_accuracy_output *out = &a->outputs[k];
        if (out->against) continue;
        decibels(ratio, sizeof ratio, &out->error);
        accuracy_verdict_share(part, out->error.max_rel);
        snprintf(text, size, "; output '%.60s' is off by %s of its range%s", out->name, part, ratio);
        return;
    }
}

/* Names the operator with the largest own error, and the errors of the outputs. */
prony_status prn_report_judge_accuracy(prony_report *report, prony_error *error)
{
    uint32_t worst = 0;
    char outputs[200], ratio[40];
    prn_number_text part;
    report->accuracy_verdict = NULL;
    const size_t found = prony_report_accuracy_worst(report, &worst, 1);
    say_outputs(report, outputs, sizeof outputs);
    const char *verdict;
    if (!report->operator_errors) {
        verdict = "only the outputs were compared";
    } else if (!found) {
        verdict = prn_bump_printf(&report->pool, "no operator has an error of its own%s", outputs);
    } else {
        const prony_operator_row *o = &report->operators[worst];
        const prony_error_metrics *own = &report->operator_errors[worst].own;
        decibels(ratio, sizeof ratio, own);
        accuracy_verdict_share(part, own->max_rel);
        verdict =
            own->nonfinite
                ? prn_bump_printf(&report->pool,
                                  "'%s' (%s) makes %llu elements infinite or NaN that are finite in the reference%s",
                                  o->name, o->op, (unsigned long long)own->nonfinite, outputs)
                : prn_bump_printf(&report->pool, "'%s' (%s) has the largest own error: %s of its range%s%s", o->name,
                                  o->op, part, ratio, outputs);
    }
    if (!verdict) return prn_no_memory(error);
    report->accuracy_verdict = verdict;
    return PRONY_OK;
}

const char *prony_report_accuracy_verdict(const prony_report *report)
{
    return report && report->has_accuracy ? report->accuracy_verdict : NULL;
}
