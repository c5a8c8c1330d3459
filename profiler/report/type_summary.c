/* Implements type_summary.h. Reads the report only. */
#include "profiler/report/type_summary.h"

#include <stdlib.h>
#include <string.h>

static int compare_type_names(const void *left, const void *right)
{
    return strcmp(((const prn_type_row *)left)->op, ((const prn_type_row *)right)->op);
}

static int compare_type_shares(const void *left, const void *right)
{
    const prn_type_row *a = left, *b = right;
    if (a->share > b->share || a->share < b->share) return a->share > b->share ? -1 : 1;
    if (a->count != b->count) return a->count > b->count ? -1 : 1;
    return strcmp(a->op, b->op);
}

static prn_type_row type_summary_of(const char *op, const prony_cost *c, int64_t time_ns, double share)
{
    return (prn_type_row){.op = op ? op : "",
                          .count = 1,
                          .macs = c->macs,
                          .flops = c->flops,
                          .parameters = c->parameters,
                          .time_ns = time_ns,
                          .share = share};
}

/* One row per operator type, from measured operators, else from layers. */
static size_t collect_types(const prony_report *r, prn_type_row *rows)
{
    size_t count = 0, types = 0;
    double flops = (double)r->totals.cost.flops;
    if (prn_report_stamped(r))
        for (; count < r->operator_count; count++) {
            const prony_operator_row *o = &r->operators[count];
            rows[count] = type_summary_of(o->op, &o->cost, o->time.mean_ns, o->share);
        }
    else
        for (; count < r->layer_count; count++) {
            const prony_layer_row *l = &r->layers[count];
            rows[count] = type_summary_of(l->op, &l->cost, 0, flops > 0 ? (double)l->cost.flops / flops : 0);
        }
    qsort(rows, count, sizeof *rows, compare_type_names);
    for (size_t i = 0; i < count; i++) {
        if (!types || strcmp(rows[types - 1].op, rows[i].op) != 0) {
            rows[types++] = rows[i];
            continue;
        }
        prn_type_row *t = &rows[types - 1];
        t->count++;
        t->macs += rows[i].macs;
        t->flops += rows[i].flops;
        t->parameters += rows[i].parameters;
        t->time_ns += rows[i].time_ns;
        t->share += rows[i].share;
    }
    qsort(rows, types, sizeof *rows, compare_type_shares);
    double sum = 0;
    for (size_t i = 0; i < types; i++) rows[i].cumulative = sum += rows[i].share;
    return types;
}

prony_status prn_type_summary(const prony_report *report, prn_type_row **rows, size_t *count, prony_error *error)
{
    size_t most = report->operator_count > report->layer_count ? report->operator_count : report->layer_count;
    *rows = prn_calloc(most + 1, sizeof **rows);
    if (!*rows) return prn_no_memory(error);
    *count = collect_types(report, *rows);
    return PRONY_OK;
}
