#include "tests/support/report_counts.h"

#include "profiler/report/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { COUNTS = 6 };
static const char *const names[COUNTS] = {"macs", "madds", "flops", "special", "int_ops", "parameters"};

static void add(uint64_t *sums, const prony_cost *cost)
{
    const uint64_t counts[COUNTS] = {cost->macs,    cost->madds,   cost->flops,
                                     cost->special, cost->int_ops, cost->parameters};
    for (int c = 0; c < COUNTS; c++) sums[c] += counts[c];
}

bool report_counts_agree(const prony_report *report, char *text, size_t size)
{
    uint64_t totals[COUNTS] = {0}, layers[COUNTS] = {0}, operators[COUNTS] = {0};
    size_t layer_count, operator_count;
    const prony_layer_row *layer = prony_report_layers(report, &layer_count);
    const prony_operator_row *row = prony_report_operators(report, &operator_count);
    add(totals, &prony_report_totals(report)->cost);
    for (size_t l = 0; l < layer_count; l++) {
        add(layers, &layer[l].cost);
        if (!isfinite(layer[l].share)) return snprintf(text, size, "layer %zu has no finite share", l) < 0;
    }
    for (size_t o = 0; o < operator_count; o++) {
        add(operators, &row[o].cost);
        if (!isfinite(row[o].share)) return snprintf(text, size, "operator %zu has no finite share", o) < 0;
    }
    for (int c = 0; c < COUNTS; c++) /* a graph of views alone, such as Mul by 1 of no elements, runs no operator */
        if (totals[c] != layers[c] || (operator_count && totals[c] != operators[c]))
            return snprintf(text, size, "%s: %" PRIu64 " in all, %" PRIu64 " by layers, %" PRIu64 " by operators",
                            names[c], totals[c], layers[c], operators[c]) < 0;
    if (!report->conserved) return snprintf(text, size, "the report says that its counts differ") < 0;
    return true;
}
