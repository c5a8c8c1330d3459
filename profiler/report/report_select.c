/* Implements report_select.h. Reads the report only. */
#include "profiler/report/report_select.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

typedef struct sortable {
    double number;
    const char *name;
    uint32_t row;
} sortable;

static const char *const key_names[] = {"index",     "time",    "macs",    "flops",  "parameters", "bytes",
                                        "madds",     "special", "int_ops", "memory", "count",      "rate",
                                        "intensity", "name",    "op",      "module", "kernel"};

/* Finds `name` among key_names[first .. last]. */
static bool report_select_find_key(prn_row_key *out, const char *name, size_t length, prn_row_key first,
                                   prn_row_key last)
{
    for (int k = (int)first; k <= (int)last; k++) {
        if (strlen(key_names[k]) != length || strncmp(key_names[k], name, length) != 0) continue;
        *out = (prn_row_key)k;
        return true;
    }
    return false;
}

prony_status prn_select_init(prn_selection *selection, const prony_report *report, const prony_write_options *options,
                             prony_error *error)
{
    *selection = (prn_selection){.report = report};
    const char *sort = options->sort, *filter = options->filter;
    if (sort && !report_select_find_key(&selection->sort, sort, strlen(sort), PRN_KEY_INDEX, PRN_KEY_NAME))
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "unknown sort key \"%s\"; known: index, time, macs, madds, flops, special, int_ops, "
                        "parameters, bytes, memory, count, rate, intensity and name",
                        sort);
    if (!filter) return PRONY_OK;
    const char *equals = strchr(filter, '=');
    if (!equals || equals[1] == '\0')
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "filter \"%s\" needs KEY=GLOB, such as op=Conv*", filter);
    if (!report_select_find_key(&selection->filter, filter, (size_t)(equals - filter), PRN_KEY_NAME, PRN_KEY_KERNEL))
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "unknown filter key \"%.*s\"; known: name, op, module and kernel",
                        (int)(equals - filter < 200 ? equals - filter : 200), filter);
    selection->filtered = true;
    selection->glob = equals + 1;
    return PRONY_OK;
}

static bool matches(const char *glob, const char *text)
{
    return text && fnmatch(glob, text, 0) == 0;
}

static bool has_subgraphs(const prony_nested_row *rows, size_t count, uint32_t owner)
{
    size_t first;
    return prn_nested_of(rows, count, owner, &first) > 0;
}

static bool layer_passes(const prn_selection *s, const prony_layer_row *layer)
{
    if (s->with_subgraphs && !has_subgraphs(s->report->nested_layers, s->report->nested_layer_count, layer->index))
        return false;
    if (!s->filtered) return true;
    switch (s->filter) {
    case PRN_KEY_OP:
        return matches(s->glob, layer->op);
    case PRN_KEY_MODULE:
        return matches(s->glob, layer->module);
    case PRN_KEY_KERNEL:
        return layer->operator_index < s->report->operator_count &&
               matches(s->glob, s->report->operators[layer->operator_index].kernel);
    default:
        return matches(s->glob, layer->name);
    }
}

/* An operator belongs to every module that one of its layers belongs to. */
static bool operator_passes(const prn_selection *s, const prony_operator_row *row)
{
    if (s->with_subgraphs && !has_subgraphs(s->report->nested_operators, s->report->nested_operator_count, row->index))
        return false;
    if (!s->filtered) return true;
    switch (s->filter) {
    case PRN_KEY_OP:
        return matches(s->glob, row->op);
    case PRN_KEY_KERNEL:
        return matches(s->glob, row->kernel);
    case PRN_KEY_MODULE:
        for (size_t k = 0; k < row->layer_count; k++)
            if (row->layers[k] < s->report->layer_count && matches(s->glob, s->report->layers[row->layers[k]].module))
                return true;
        return false;
    default:
        return matches(s->glob, row->name);
    }
}

/* Values of layers and operators for sorting. */
typedef struct row_figures {
    const prony_cost *cost;
    int64_t time_ns; /* -1: not measured */
    uint64_t output_bytes, count;
} row_figures;

/* The number by which rows are sorted; 0 for keys that are texts. */
static double sort_number(prn_row_key key, const row_figures *row)
{
    const prony_cost *cost = row->cost;
    double bytes = (double)cost->bytes_read + (double)cost->bytes_written;
    switch (key) {
    case PRN_KEY_TIME:
        return (double)row->time_ns;
    case PRN_KEY_MACS:
        return (double)cost->macs;
    case PRN_KEY_FLOPS:
        return (double)cost->flops;
    case PRN_KEY_PARAMETERS:
        return (double)cost->parameters;
    case PRN_KEY_BYTES:
        return bytes;
    case PRN_KEY_MADDS:
        return (double)cost->madds;
    case PRN_KEY_SPECIAL:
        return (double)cost->special;
    case PRN_KEY_INT_OPS:
        return (double)cost->int_ops;
    case PRN_KEY_MEMORY:
        return (double)row->output_bytes;
    case PRN_KEY_COUNT:
        return (double)row->count;
    case PRN_KEY_RATE:
        return row->time_ns > 0 ? (double)cost->flops / (double)row->time_ns : 0;
    case PRN_KEY_INTENSITY:
        return bytes > 0 ? (double)cost->flops / bytes : 0;
    default:
        return 0;
    }
}

bool prn_select_sums_up(prn_row_key key)
{
    return key >= PRN_KEY_TIME && key <= PRN_KEY_COUNT;
}

static row_figures layer_figures(const prony_layer_row *row)
{
    return (row_figures){&row->cost, row->measured ? row->time.mean_ns : -1, row->output_bytes, row->count};
}

static row_figures operator_figures(const prony_operator_row *row)
{
    return (row_figures){&row->cost, row->measured ? row->time.mean_ns : -1, row->output_bytes, 0};
}

double prn_select_value(const prn_selection *s, bool layer, uint32_t row)
{
    row_figures figures = layer ? layer_figures(&s->report->layers[row]) : operator_figures(&s->report->operators[row]);
    double value = sort_number(s->sort, &figures);
    return value > 0 ? value : 0;
}

bool prn_select_passes(const prn_selection *s, bool layer, uint32_t row)
{
    const prony_report *r = s->report;
    return layer ? layer_passes(s, &r->layers[row]) : operator_passes(s, &r->operators[row]);
}

/* An operator in a subgraph belongs to the modules of its layers. */
static bool nested_module(const prn_selection *s, bool layer, const prony_nested_row *row)
{
    if (layer) return matches(s->glob, row->module);
    for (size_t k = 0; k < row->layer_count; k++)
        if (row->layers[k] < s->report->nested_layer_count &&
            matches(s->glob, s->report->nested_layers[row->layers[k]].module))
            return true;
    return false;
}

bool prn_select_nested_passes(const prn_selection *s, bool layer, const prony_nested_row *row)
{
    if (!s->filtered) return true;
    if (s->filter == PRN_KEY_MODULE) return nested_module(s, layer, row);
    return matches(s->glob, s->filter == PRN_KEY_OP ? row->op : s->filter == PRN_KEY_KERNEL ? row->kernel : row->name);
}

double prn_select_nested_value(const prn_selection *s, const prony_nested_row *row)
{
    row_figures figures = {&row->cost, row->measured ? row->time.mean_ns : -1, 0, 0};
    double value = sort_number(s->sort, &figures);
    return value > 0 ? value : 0;
}

static int compare_numbers(const void *left, const void *right)
{
    const sortable *a = left, *b = right;
    if (a->number > b->number || a->number < b->number) return a->number > b->number ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

static int report_select_compare_names(const void *left, const void *right)
{
    const sortable *a = left, *b = right;
    int order = strcmp(a->name ? a->name : "", b->name ? b->name : "");
    return order ? order : compare_numbers(left, right);
}

static prony_status sorted_rows(const prn_selection *s, sortable *found, size_t count, uint32_t **rows,
                                prony_error *error)
{
    *rows = prn_calloc(count ? count : 1, sizeof **rows);
    if (!*rows) return prn_no_memory(error);
    qsort(found, count, sizeof *found, s->sort == PRN_KEY_NAME ? report_select_compare_names : compare_numbers);
    for (size_t i = 0; i < count; i++) (*rows)[i] = found[i].row;
    return PRONY_OK;
}

prony_status prn_select_layers(const prn_selection *s, uint32_t **rows, size_t *count, prony_error *error)
{
    const prony_report *r = s->report;
    sortable *found = prn_calloc(r->layer_count ? r->layer_count : 1, sizeof *found);
    if (!found) return prn_no_memory(error);
    *count = 0;
    for (uint32_t i = 0; i < r->layer_count; i++) {
        const prony_layer_row *row = &r->layers[i];
        if (!layer_passes(s, row)) continue;
        row_figures figures = layer_figures(row);
        found[(*count)++] = (sortable){sort_number(s->sort, &figures), row->name, i};
    }
    prony_status status = sorted_rows(s, found, *count, rows, error);
    prn_free(found);
    return status;
}

prony_status prn_select_operators(const prn_selection *s, uint32_t **rows, size_t *count, prony_error *error)
{
    const prony_report *r = s->report;
    sortable *found = prn_calloc(r->operator_count ? r->operator_count : 1, sizeof *found);
    if (!found) return prn_no_memory(error);
    *count = 0;
    for (uint32_t i = 0; i < r->operator_count; i++) {
        const prony_operator_row *row = &r->operators[i];
        if (!operator_passes(s, row)) continue;
        row_figures figures = operator_figures(row);
        found[(*count)++] = (sortable){sort_number(s->sort, &figures), row->name, i};
    }
    prony_status status = sorted_rows(s, found, *count, rows, error);
    prn_free(found);
    return status;
}

size_t prn_nested_of(const prony_nested_row *rows, size_t count, uint32_t owner, size_t *first)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (rows[middle].owner < owner)
            low = middle + 1;
        else
            high = middle;
    }
    *first = low;
    while (high < count && rows[high].owner == owner) high++;
    return high - low;
}
