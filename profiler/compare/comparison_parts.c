/* Compares two reports layer by layer, subgraphs included, and type by type. Both sides' rows are sorted by name and
 * joined; equal names pair up in order. The tests use means and deviations, adjusted for the number of rows. */
#include "profiler/compare/comparison.h"
#include "profiler/statistics/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A layer, or the sum over a type's operators, on one side. */
typedef struct part {
    const char *name, *op;
    double mean, variance;
    uint64_t flops, executions;
    uint32_t order;
    bool measured, matched;
} part;

static int compare_parts(const void *left, const void *right)
{
    const part *a = left, *b = right;
    int names = strcmp(a->name, b->name);
    return names ? names : (a->order > b->order) - (a->order < b->order);
}

static int compare_orders(const void *left, const void *right)
{
    const part *a = left, *b = right;
    return (a->order > b->order) - (a->order < b->order);
}

static double variance_of(const prony_time_stats *t)
{
    return (double)t->std_ns * (double)t->std_ns;
}

/* Sorted by name. */
static size_t layer_parts(const prony_report *r, part *parts)
{
    for (uint32_t i = 0; i < r->layer_count; i++) {
        const prony_layer_row *l = &r->layers[i];
        parts[i] = (part){.name = prn_text_or_empty(l->name),
                          .op = prn_text_or_empty(l->op),
                          .mean = (double)l->time.mean_ns,
                          .variance = variance_of(&l->time),
                          .flops = l->cost.flops,
                          .order = i,
                          .measured = l->measured};
    }
    qsort(parts, r->layer_count, sizeof *parts, compare_parts);
    return r->layer_count;
}

/* Sums operators by type: means and variances add. Returns the types, sorted by name. */
static size_t type_parts(const prony_report *r, part *parts)
{
    size_t types = 0;
    for (uint32_t i = 0; i < r->operator_count; i++) {
        const prony_operator_row *o = &r->operators[i];
        parts[i] = (part){.name = prn_text_or_empty(o->op),
                          .op = prn_text_or_empty(o->op),
                          .mean = (double)o->time.mean_ns,
                          .variance = variance_of(&o->time),
                          .flops = o->cost.flops,
                          .order = i,
                          .measured = o->measured};
    }
    qsort(parts, r->operator_count, sizeof *parts, compare_parts);
    for (size_t i = 0; i < r->operator_count; i++) {
        if (types == 0 || strcmp(parts[types - 1].name, parts[i].name) != 0) {
            parts[types++] = parts[i];
            continue;
        }
        part *t = &parts[types - 1];
        t->mean += parts[i].mean;
        t->variance += parts[i].variance;
        t->flops += parts[i].flops;
        t->measured = t->measured && parts[i].measured;
    }
    return types;
}

/* By the whole path; sorted by name. */
static prony_status nested_parts(prn_comparing *c, const prony_report *r, part *parts)
{
    for (uint32_t i = 0; i < r->nested_layer_count; i++) {
        const prony_nested_row *n = &r->nested_layers[i];
        const char *name = prn_bump_printf(&c->out->pool, "%s > %s", n->path, n->name);
        if (!name) return prn_no_memory(c->error);
        parts[i] = (part){.name = name,
                          .op = n->op,
                          .mean = (double)n->time.mean_ns,
                          .variance = variance_of(&n->time),
                          .flops = n->cost.flops,
                          .executions = n->executions,
                          .order = i,
                          .measured = n->measured};
    }
    qsort(parts, r->nested_layer_count, sizeof *parts, compare_parts);
    return PRONY_OK;
}

static prony_status fill_part(prn_comparing *c, prony_compare_row *row, const part *a, const part *b)
{
    prn_bump *pool = &c->out->pool;
    *row = (prony_compare_row){.name = prn_bump_strndup(pool, a->name, strlen(a->name)),
                               .op = prn_bump_strndup(pool, a->op, strlen(a->op)),
                               .first_ns = a->mean,
                               .second_ns = b->mean,
                               .difference_ns = b->mean - a->mean,
                               .ratio = a->mean > 0 ? b->mean / a->mean : NAN,
                               .first_flops = a->flops,
                               .second_flops = b->flops,
                               .first_executions = a->executions,
                               .second_executions = b->executions};
    prn_moments first = {a->mean, sqrt(a->variance), (double)c->report[0]->latency.count};
    prn_moments second = {b->mean, sqrt(b->variance), (double)c->report[1]->latency.count};
    row->p = prn_welch_p(first, second);
    prn_welch_ratio_interval(row->ratio_ci95, first, second);
    return row->name && row->op ? PRONY_OK : prn_no_memory(c->error);
}

static prony_status judge_parts(prn_comparing *c, prony_compare_row *rows, size_t count)
{
    double *p = prn_calloc(count + 1, sizeof *p);
    if (!p) return prn_no_memory(c->error);
    for (size_t i = 0; i < count; i++) p[i] = rows[i].p;
    prony_status status = prn_holm_adjust(p, count, c->error);
    for (size_t i = 0; i < count; i++) {
        rows[i].p = p[i];
        if (isnan(p[i]) || isnan(rows[i].ratio_ci95[0])) continue;
        rows[i].verdict =
            prn_verdict_on_times(c, PRONY_SMALLER_IS_BETTER, rows[i].ratio, rows[i].ratio_ci95, c->part_deviation);
        if (p[i] >= PRN_COMPARE_ALPHA) rows[i].verdict = PRONY_VERDICT_SAME;
    }
    prn_free(p);
    return status;
}

/* Joins two lists sorted by name; equal names pair up in order. The rows come out in the order of the first list's
 * model. */
static prony_status join_parts(prn_comparing *c, part *first, size_t n, part *second, size_t m,
                               prony_compare_row **rows, size_t *count)
{
    size_t pairs = 0, a = 0, b = 0;
    part *partner = prn_calloc(n + 1, sizeof *partner);
    *rows = prn_bump_alloc(&c->out->pool, n + 1, sizeof **rows);
    prony_status status = partner && *rows ? PRONY_OK : prn_no_memory(c->error);
    while (status == PRONY_OK && a < n && b < m) {
        int order = strcmp(first[a].name, second[b].name);
        if (order == 0) {
            first[a].matched = second[b].matched = true;
            partner[first[a].order] = second[b];
            pairs++;
        }
        a += order <= 0;
        b += order >= 0;
    }
    if (status == PRONY_OK) qsort(first, n, sizeof *first, compare_orders);
    for (size_t i = 0; status == PRONY_OK && i < n && pairs; i++) {
        const part *other = &partner[first[i].order];
        if (!first[i].matched || !first[i].measured || !other->measured) continue;
        status = fill_part(c, &(*rows)[(*count)++], &first[i], other);
    }
    prn_free(partner);
    return status == PRONY_OK ? judge_parts(c, *rows, *count) : status;
}

static prony_status keep_unmatched(prn_comparing *c, int side, part *parts, size_t count)
{
    prn_compare_side *s = &c->out->side[side];
    const char **only = prn_bump_alloc(&c->out->pool, count + 1, sizeof *only);
    if (!only) return prn_no_memory(c->error);
    qsort(parts, count, sizeof *parts, compare_orders);
    for (size_t i = 0; i < count; i++) {
        if (parts[i].matched) continue;
        only[s->only_count] = prn_bump_strndup(&c->out->pool, parts[i].name, strlen(parts[i].name));
        if (!only[s->only_count++]) return prn_no_memory(c->error);
    }
    s->only = only;
    return PRONY_OK;
}

static size_t comparison_parts_room_for(const prony_report *r, prn_compare_by by)
{
    return by == PRN_BY_TYPE ? r->operator_count : by == PRN_BY_LAYER ? r->layer_count : r->nested_layer_count;
}

static prony_status comparison_parts_of(prn_comparing *c, int side, prn_compare_by by, part *parts, size_t *count)
{
    const prony_report *r = c->report[side];
    *count = by == PRN_BY_NESTED ? r->nested_layer_count
             : by == PRN_BY_TYPE ? type_parts(r, parts)
                                 : layer_parts(r, parts);
    return by == PRN_BY_NESTED ? nested_parts(c, r, parts) : PRONY_OK;
}

prony_status prn_compare_parts(prn_comparing *c, prn_compare_by by)
{
    prony_comparison *out = c->out;
    prony_compare_row **rows[] = {&out->layers, &out->types, &out->nested};
    size_t *row_counts[] = {&out->layer_count, &out->type_count, &out->nested_count};
    size_t count[2] = {0, 0};
    part *first = prn_calloc(comparison_parts_room_for(c->report[0], by) + 1, sizeof *first);
    part *second = prn_calloc(comparison_parts_room_for(c->report[1], by) + 1, sizeof *second);
    prony_status status = first && second ? PRONY_OK : prn_no_memory(c->error);
    if (status == PRONY_OK) status = comparison_parts_of(c, 0, by, first, &count[0]);
    if (status == PRONY_OK) status = comparison_parts_of(c, 1, by, second, &count[1]);
    for (size_t i = 0; by == PRN_BY_TYPE && i < count[0]; i++) first[i].order = (uint32_t)i;
    if (status == PRONY_OK) status = join_parts(c, first, count[0], second, count[1], rows[by], row_counts[by]);
    if (status == PRONY_OK && by == PRN_BY_LAYER) status = keep_unmatched(c, 0, first, count[0]);
    if (status == PRONY_OK && by == PRN_BY_LAYER) status = keep_unmatched(c, 1, second, count[1]);
    prn_free(first);
    prn_free(second);
    return status;
}
