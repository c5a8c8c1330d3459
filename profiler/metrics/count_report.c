/* A counting preset over a report: `count` of layers, modules and totals, and the operators that the preset leaves out.
 * Uses the rows alone, so a report read back counts like a live one. A composite counts once, at its last layer. */
#include "profiler/metrics/count_presets.h"

#include "base/shape.h"

#include <stdlib.h>
#include <string.h>

static uint64_t elements_of(const prony_value *const *values, size_t count)
{
    int64_t elements = count && values[0] ? prony_shape_numel(&values[0]->shape) : 0;
    return elements > 0 ? (uint64_t)elements : 0;
}

static prn_count_node count_report_node_of(const prony_layer_row *layer)
{
    prn_count_node node = {.op = layer->op,
                           .cost = &layer->cost,
                           .inputs = elements_of(layer->inputs, layer->input_count),
                           .outputs = elements_of(layer->outputs, layer->output_count),
                           .rank = layer->input_count && layer->inputs[0] ? layer->inputs[0]->shape.rank : 0,
                           .weighted = layer->cost.parameters > 0};
    for (size_t i = 0; i < layer->input_count; i++) node.operands += layer->inputs[i] != NULL;
    return node;
}

static prony_status count_one(const prn_count_table *table, const prn_count_node *node, prony_layer_row *layer,
                              prony_error *error)
{
    prony_status status;
    layer->counted = prn_count_operator(table, node, &layer->count, &status);
    if (status == PRONY_OK) return PRONY_OK;
    return prn_fail(error, status, "layer \"%s\": the count does not fit into 64 bits", layer->name);
}

/* A composite's layers are counted, or left out, together. */
static prony_status count_composite(prony_report *report, const prn_count_table *table, const prn_composite_row *c,
                                    prony_error *error)
{
    prony_layer_row *last = &report->layers[c->layers[c->layer_count - 1]];
    prn_count_node node = count_report_node_of(last);
    node.op = c->op;
    node.cost = &c->cost;
    node.inputs = node.outputs; /* composites map elements; a linear layer's rule uses outputs alone */
    node.weighted = true;
    PRN_TRY(count_one(table, &node, last, error));
    for (size_t k = 0; k + 1 < c->layer_count; k++) {
        report->layers[c->layers[k]].counted = last->counted;
        report->layers[c->layers[k]].count = 0;
    }
    return PRONY_OK;
}

/* ---- operators left out ---- */

typedef struct left_out {
    const char *op;
    int64_t time_ns;
    uint64_t work;
} left_out;

static int by_op(const void *left, const void *right)
{
    return strcmp(((const left_out *)left)->op, ((const left_out *)right)->op);
}

static int by_time(const void *left, const void *right)
{
    const left_out *a = left, *b = right;
    if (a->time_ns != b->time_ns) return a->time_ns > b->time_ns ? -1 : 1;
    if (a->work != b->work) return a->work > b->work ? -1 : 1;
    return by_op(left, right);
}

/* `ops`: the operator that each layer counts as, its own or its composite's. */
static prony_status fill_uncounted(prony_report *report, const char *const *ops, left_out *rows, prony_error *error)
{
    size_t count = 0, types = 0;
    double share = 0;
    for (size_t l = 0; l < report->layer_count; l++) {
        const prony_layer_row *layer = &report->layers[l];
        uint64_t work;
        if (!prn_add_u64(&work, layer->cost.flops, layer->cost.int_ops)) work = UINT64_MAX;
        if (layer->counted || layer->folded || work == 0) continue;
        rows[count++] = (left_out){ops[l], layer->measured ? layer->time.mean_ns : 0, work};
        if (layer->measured) share += layer->share;
    }
    qsort(rows, count, sizeof *rows, by_op);
    for (size_t i = 0; i < count; i++) {
        if (types && strcmp(rows[types - 1].op, rows[i].op) == 0) {
            left_out *row = &rows[types - 1];
            row->time_ns += rows[i].time_ns;
            if (!prn_add_u64(&row->work, row->work, rows[i].work)) row->work = UINT64_MAX;
        } else {
            rows[types++] = rows[i];
        }
    }
    qsort(rows, types, sizeof *rows, by_time);
    const char **names = prn_bump_alloc(&report->pool, types + 1, sizeof *names);
    if (!names) return prn_no_memory(error);
    for (size_t i = 0; i < types; i++) names[i] = rows[i].op;
    report->uncounted = names;
    report->uncounted_count = types;
    report->uncounted_time_share = share;
    return PRONY_OK;
}

/* ---- modules ---- */

typedef struct module_index {
    const char *path;
    uint32_t row;
} module_index;

static int count_report_by_path(const void *left, const void *right)
{
    return strcmp(((const module_index *)left)->path, ((const module_index *)right)->path);
}

static prony_status count_modules(prony_report *report, prony_error *error)
{
    size_t modules = report->module_count;
    module_index *sorted = prn_calloc(modules + 1, sizeof *sorted);
    if (!sorted) return prn_no_memory(error);
    for (uint32_t m = 0; m < modules; m++) {
        sorted[m] = (module_index){report->modules[m].path, m};
        report->modules[m].count = 0;
    }
    qsort(sorted, modules, sizeof *sorted, count_report_by_path);
    for (size_t l = 0; l < report->layer_count; l++) {
        module_index key = {report->layers[l].module, 0};
        const module_index *found = bsearch(&key, sorted, modules, sizeof key, count_report_by_path);
        for (uint32_t m = found ? found->row : PRONY_NO_INDEX; m < modules; m = report->modules[m].parent)
            report->modules[m].count += report->layers[l].counted ? report->layers[l].count : 0;
    }
    prn_free(sorted);
    return PRONY_OK;
}

/* ---- the report ---- */

static void count_report_take_away(prony_report *report)
{
    for (size_t l = 0; l < report->layer_count; l++) {
        report->layers[l].counted = false;
        report->layers[l].count = 0;
    }
    for (size_t m = 0; m < report->module_count; m++) report->modules[m].count = 0;
    report->config.count_preset = NULL;
    report->totals.counted = false;
    report->totals.count = 0;
    report->uncounted_count = 0;
    report->uncounted_time_share = 0;
}

static prony_status count_report_layers(prony_report *report, const prn_count_table *table, const char **ops,
                                        prony_error *error)
{
    for (size_t l = 0; l < report->layer_count; l++) {
        prony_layer_row *layer = &report->layers[l];
        prn_count_node node = count_report_node_of(layer);
        ops[l] = layer->op;
        if (!layer->folded) PRN_TRY(count_one(table, &node, layer, error));
    }
    for (size_t c = 0; c < report->composite_count && prn_count_sees_composites(table); c++) {
        const prn_composite_row *row = &report->composites[c];
        PRN_TRY(count_composite(report, table, row, error));
        for (size_t k = 0; k < row->layer_count; k++) ops[row->layers[k]] = row->op;
    }
    for (size_t l = 0; l < report->layer_count; l++)
        if (!prn_add_u64(&report->totals.count, report->totals.count, report->layers[l].count))
            return prn_fail(error, PRONY_OUT_OF_RANGE, "layer \"%s\": the model's count does not fit into 64 bits",
                            report->layers[l].name);
    return PRONY_OK;
}

static prony_status unknown(const char *preset, prony_error *error)
{
    char list[256] = "";
    size_t used = 0, count = prony_count_preset_count();
    for (size_t i = 0; i < count; i++) {
        const char *name = prony_count_preset_at(i)->name, *between = i + 1 == count ? " and " : i ? ", " : "";
        size_t need = strlen(between) + strlen(name);
        if (used + need >= sizeof list) break;
        memcpy(list + used, between, strlen(between));
        memcpy(list + used + strlen(between), name, strlen(name) + 1);
        used += need;
    }
    return prn_fail(error, PRONY_INVALID_ARGUMENT, "unknown counting preset \"%.100s\"; known: %s", preset, list);
}

/* Replaces an earlier preset's counts. After a failure the report has no counts. */
prony_status prony_report_set_count(prony_report *report, const char *preset, prony_error *error)
{
    if (!report) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_report_set_count: the report is NULL");
    const prn_count_table *table = preset ? prn_count_find(preset) : NULL;
    if (preset && !table) return unknown(preset, error);
    count_report_take_away(report);
    if (!table) return PRONY_OK;
    const char **ops = prn_calloc(report->layer_count + 1, sizeof *ops);
    left_out *rows = prn_calloc(report->layer_count + 1, sizeof *rows);
    prony_status status = ops && rows ? PRONY_OK : prn_no_memory(error);
    if (status == PRONY_OK) status = count_report_layers(report, table, ops, error);
    if (status == PRONY_OK) status = fill_uncounted(report, ops, rows, error);
    if (status == PRONY_OK) status = count_modules(report, error);
    prn_free(ops);
    prn_free(rows);
    if (status != PRONY_OK) {
        count_report_take_away(report);
        return status;
    }
    const char *copy = prn_bump_strndup(&report->pool, preset, strlen(preset));
    if (!copy) {
        count_report_take_away(report);
        return prn_no_memory(error);
    }
    report->config.count_preset = copy;
    report->totals.counted = true;
    return PRONY_OK;
}

const char *const *prony_report_uncounted(const prony_report *report, size_t *count, double *time_share)
{
    if (count) *count = 0;
    if (time_share) *time_share = -1;
    if (!report) return NULL;
    if (count) *count = report->totals.counted ? report->uncounted_count : 0;
    if (time_share)
        *time_share = report->totals.counted && prn_report_stamped(report) ? report->uncounted_time_share : -1;
    return report->uncounted;
}
