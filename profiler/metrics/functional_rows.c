/* One call per question, rows: each function turns a report's layers into an array of plain structs whose strings live
 * as long as the array. */
#include "profiler/metrics/functional.h"

#include "base/shape.h"
#include "base/memory/row_block.h"

#include <string.h>

#define ROOT "__root__"

/* Sets name and op of a row. */
static prony_status name_row(void *rows, const char **name, const char **op, const prony_layer_row *layer,
                             prony_error *error)
{
    *name = layer ? prn_rows_text(rows, layer->name) : ROOT;
    *op = layer ? prn_rows_text(rows, layer->op) : "";
    return *name && *op ? PRONY_OK : prn_no_memory(error);
}

/* Returns rows, or releases them after an error; releases the report. */
static prony_status functional_rows_finish(void *rows, void *out, prony_report *report, prony_status status)
{
    prony_report_release(report);
    if (status == PRONY_OK)
        memcpy(out, &rows, sizeof rows);
    else
        prony_rows_release(rows);
    return status;
}

/* ---- parameters ---- */

static prony_status add_type(prony_params_row *rows, prony_params_row *row, prony_dtype dtype, prony_error *error)
{
    const char *name = dtype == PRONY_UNDEFINED ? "" : prony_dtype_name(dtype);
    size_t length = strlen(name);
    for (const char *at = row->types; *name && (at = strstr(at, name)); at += length)
        if ((at == row->types || at[-1] == ',') && (at[length] == ',' || !at[length])) return PRONY_OK;
    if (!*name) return PRONY_OK;
    const char *types = prn_bump_printf(prn_rows_pool(rows), "%s%s%s", row->types, *row->types ? "," : "", name);
    if (!types) return prn_no_memory(error);
    row->types = types;
    return PRONY_OK;
}

static prony_status add_parameters(prony_params_row *rows, prony_params_row *row, const prony_parameter_row *p,
                                   prony_error *error)
{
    *(p->trainable ? &row->trainable : &row->buffers) += p->elements;
    row->bits += p->bits;
    row->share += p->share;
    return add_type(rows, row, p->dtype, error);
}

static prony_status fill_params(prony_params_row *rows, size_t *count, const prony_report *r, prony_error *error)
{
    *count = 1;
    rows[0] = (prony_params_row){.layer = PRONY_NO_INDEX, .name = ROOT, .op = "", .types = ""};
    for (size_t i = 0; i < r->parameter_count; i++) {
        const prony_parameter_row *p = &r->parameters[i];
        if (rows[*count - 1].layer != p->layer) {
            prony_params_row *row = &rows[(*count)++];
            *row = (prony_params_row){.layer = p->layer, .types = ""};
            PRN_TRY(name_row(rows, &row->name, &row->op, &r->layers[p->layer], error));
        }
        PRN_TRY(add_parameters(rows, &rows[*count - 1], p, error));
        PRN_TRY(add_parameters(rows, &rows[0], p, error));
    }
    return PRONY_OK;
}

prony_status prony_count_params(prony_params_row **rows, size_t *count, prony_model *model,
                                const prony_session_options *options, prony_error *error)
{
    prony_report *report = NULL;
    if (!rows || !count || !model)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_count_params: an argument is NULL");
    PRN_TRY(prony_inspect(&report, model, options, error));
    prony_params_row *list = prn_rows_create(report->parameter_count + 1, sizeof *list);
    prony_status status = list ? fill_params(list, count, report, error) : prn_no_memory(error);
    return functional_rows_finish(list, rows, report, status);
}

/* ---- inputs and outputs ---- */

static prony_status fill_io(prony_io_row *rows, size_t *count, const prony_layer_row *layer, bool output,
                            prony_error *error)
{
    const prony_value *const *values = output ? layer->outputs : layer->inputs;
    size_t values_count = output ? layer->output_count : layer->input_count;
    for (size_t i = 0; i < values_count; i++) {
        if (!values[i]) continue;
        prony_io_row *row = &rows[(*count)++];
        *row = (prony_io_row){.layer = layer->index,
                              .output = output,
                              .position = (uint32_t)i,
                              .dtype = values[i]->dtype,
                              .shape = values[i]->shape};
        int64_t elements = values[i]->kind == PRONY_TENSOR ? prony_shape_numel(&values[i]->shape) : -1;
        if (elements > 0) row->elements = (uint64_t)elements;
        if (!prn_mul_u64(&row->bits, row->elements, prn_dtype_bits(row->dtype))) row->bits = 0;
        PRN_TRY(name_row(rows, &row->name, &row->op, layer, error));
    }
    return PRONY_OK;
}

prony_status prony_trace_io_sizes(prony_io_row **rows, size_t *count, prony_model *model,
                                  const prony_session_options *options, prony_error *error)
{
    prony_report *report = NULL;
    if (!rows || !count || !model)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_trace_io_sizes: an argument is NULL");
    PRN_TRY(prony_inspect(&report, model, options, error));
    size_t most = 0;
    for (size_t l = 0; l < report->layer_count; l++)
        most += report->layers[l].input_count + report->layers[l].output_count;
    prony_io_row *list = prn_rows_create(most, sizeof *list);
    prony_status status = list ? PRONY_OK : prn_no_memory(error);
    *count = 0;
    for (size_t l = 0; status == PRONY_OK && l < report->layer_count; l++) {
        status = fill_io(list, count, &report->layers[l], false, error);
        if (status == PRONY_OK) status = fill_io(list, count, &report->layers[l], true, error);
    }
    return functional_rows_finish(list, rows, report, status);
}

/* ---- operations ---- */

static prony_ops_row ops_of(const prony_cost *c, bool counted, uint64_t count, double whole)
{
    return (prony_ops_row){.macs = c->macs,
                           .madds = c->madds,
                           .flops = c->flops,
                           .special = c->special,
                           .int_ops = c->int_ops,
                           .counted = counted,
                           .count = count,
                           .share = whole > 0 ? ((double)c->flops + (double)c->int_ops) / whole : 0};
}

prony_status prony_estimate_ops(prony_ops_row **rows, size_t *count, prony_model *model,
                                const prony_session_options *options, const char *preset, prony_error *error)
{
    prony_report *r = NULL;
    if (!rows || !count || !model)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_estimate_ops: an argument is NULL");
    PRN_TRY(prony_inspect(&r, model, options, error));
    prony_ops_row *list = prn_rows_create(r->layer_count + 1, sizeof *list);
    prony_status status = list ? PRONY_OK : prn_no_memory(error);
    if (status == PRONY_OK && preset) status = prony_report_set_count(r, preset, error);
    const prony_cost *totals = &r->totals.cost;
    double whole = (double)totals->flops + (double)totals->int_ops;
    *count = r->layer_count + 1;
    for (size_t i = 0; status == PRONY_OK && i < *count; i++) {
        const prony_layer_row *layer = i ? &r->layers[i - 1] : NULL;
        list[i] = layer ? ops_of(&layer->cost, layer->counted, layer->count, whole)
                        : ops_of(totals, r->totals.counted, r->totals.count, whole);
        list[i].layer = layer ? layer->index : PRONY_NO_INDEX;
        status = name_row(list, &list[i].name, &list[i].op, layer, error);
    }
    return functional_rows_finish(list, rows, r, status);
}

/* ---- times ---- */

static prony_status take_samples(prony_timing_row *rows, prony_timing_row *row, const prony_report *r,
                                 prony_error *error)
{
    size_t runs = (size_t)r->latency.count;
    bool root = row->layer == PRONY_NO_INDEX;
    if (!root && prn_report_layer_samples(r, row->layer, NULL, 0) == 0) return PRONY_OK;
    int64_t *samples = prn_bump_alloc(prn_rows_pool(rows), runs, sizeof *samples);
    if (!samples) return prn_no_memory(error);
    if (root)
        memcpy(samples, r->samples_ns, runs * sizeof *samples);
    else
        (void)prn_report_layer_samples(r, row->layer, samples, runs);
    row->samples_ns = samples;
    return PRONY_OK;
}

static prony_timing_row times_of(const prony_time_stats *t, uint32_t layer, uint64_t runs)
{
    return (prony_timing_row){.layer = layer,
                              .mean_ns = t->mean_ns,
                              .median_ns = t->median_ns,
                              .min_ns = t->min_ns,
                              .max_ns = t->max_ns,
                              .std_ns = t->std_ns,
                              .sample_count = (size_t)runs};
}

prony_status prony_estimate_inference_time(prony_timing_row **rows, size_t *count, prony_model *model,
                                           const prony_session_options *options, const prony_timing_options *timing,
                                           prony_error *error)
{
    prony_report *r = NULL;
    prony_profile_options runs;
    if (!rows || !count || !model)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_estimate_inference_time: an argument is NULL");
    PRN_TRY(prn_functional_timing(&runs, timing, error));
    PRN_TRY(prn_functional_profile(&r, model, options, &runs, true, error));
    prony_timing_row *list = prn_rows_create(r->layer_count + 1, sizeof *list);
    prony_status status = list ? PRONY_OK : prn_no_memory(error);
    *count = r->layer_count + 1;
    for (size_t i = 0; status == PRONY_OK && i < *count; i++) {
        const prony_layer_row *layer = i ? &r->layers[i - 1] : NULL;
        list[i] = times_of(layer ? &layer->time : &r->latency, layer ? layer->index : PRONY_NO_INDEX, r->latency.count);
        list[i].attributed = layer && layer->time_attributed;
        status = name_row(list, &list[i].name, &list[i].op, layer, error);
        if (status == PRONY_OK && runs.keep_samples) status = take_samples(list, &list[i], r, error);
    }
    return functional_rows_finish(list, rows, r, status);
}
