/* Further lists of a report: weights and buffers, and operators written out in primitives.
 */
#include "engine/rewrites/composites.h"
#include "profiler/measure/report_build.h"

#include <stdlib.h>
#include <string.h>

/* ---- weights and buffers ---- */

/* Name and shape of each weight; a weight has one value or, where a Constant is shared, several. */
static const prn_value_def **values_of_weights(const prn_program *program)
{
    const prn_value_def **values = prn_calloc(program->weight_count + 1, sizeof *values);
    if (!values) return NULL;
    for (size_t v = program->value_count; v-- > 0;) {
        const prn_value_def *value = program->values[v];
        if (value->weight < program->weight_count) values[value->weight] = value;
    }
    return values;
}

static int by_layer(const void *left, const void *right)
{
    const prony_parameter_row *a = left, *b = right;
    if (a->layer != b->layer) return a->layer < b->layer ? -1 : 1;
    if (a->trainable != b->trainable) return a->trainable ? -1 : 1;
    return strcmp(a->name, b->name);
}

static prony_status report_detail_add_row(prony_report *report, const prn_weight *weight, const prn_value_def *value,
                                          prony_error *error)
{
    prony_parameter_row *row = &report->parameters[report->parameter_count++];
    *row = (prony_parameter_row){.layer = weight->layer,
                                 .dtype = weight->dtype,
                                 .shape = value ? value->info.shape : (prony_shape){.rank = -1},
                                 .elements = weight->elements,
                                 .bytes = weight->bytes,
                                 .bits = weight->elements * weight->bits,
                                 .trainable = weight->claimed};
    const char *name = value ? value->name : "";
    row->name = prn_bump_strndup(&report->pool, name, strlen(name));
    return row->name ? PRONY_OK : prn_no_memory(error);
}

/* Adds a row for parameters in a layer's subgraphs or attributes, which no tensor of the main graph holds. */
static void report_detail_add_rest(prony_report *report, uint64_t *found)
{
    for (size_t r = 0; r < report->parameter_count; r++) {
        const prony_parameter_row *row = &report->parameters[r];
        if (row->trainable && row->layer < report->layer_count) found[row->layer] += row->elements;
    }
    for (uint32_t l = 0; l < report->layer_count; l++) {
        uint64_t parameters = report->layers[l].cost.parameters;
        if (parameters <= found[l]) continue;
        report->parameters[report->parameter_count++] = (prony_parameter_row){
            .name = "", .layer = l, .shape = {.rank = -1}, .elements = parameters - found[l], .trainable = true};
    }
}

prony_status prn_report_fill_parameters(prony_report *report, const prn_program *program, prony_error *error)
{
    size_t most = program->weight_count;
    for (size_t l = 0; l < report->layer_count; l++) most += report->layers[l].cost.parameters > 0;
    const prn_value_def **values = values_of_weights(program);
    uint64_t *found = prn_calloc(report->layer_count + 1, sizeof *found);
    report->parameters = prn_bump_alloc(&report->pool, most + 1, sizeof *report->parameters);
    prony_status status = values && found && report->parameters ? PRONY_OK : prn_no_memory(error);
    for (size_t w = 0; status == PRONY_OK && w < program->weight_count; w++) {
        const prn_weight *weight = &program->weights[w];
        if (weight->claimed || weight->buffer) status = report_detail_add_row(report, weight, values[w], error);
    }
    if (status == PRONY_OK) {
        report_detail_add_rest(report, found);
        qsort(report->parameters, report->parameter_count, sizeof *report->parameters, by_layer);
        double sum = 0;
        for (size_t r = 0; r < report->parameter_count; r++) sum += (double)report->parameters[r].elements;
        for (size_t r = 0; r < report->parameter_count && sum > 0; r++)
            report->parameters[r].share = (double)report->parameters[r].elements / sum;
    }
    prn_free(values);
    prn_free(found);
    return status;
}

/* ---- composites ---- */

/* true: the program has the report's rows at the same shapes. A composite with a layer evaluated at bind time is left
 * out. */
static bool report_detail_fits(const prony_report *report, const prn_program *program, const prn_composite *composite)
{
    for (uint32_t k = 0; k < composite->layer_count; k++) {
        uint32_t layer = composite->layers[k];
        if (layer >= report->layer_count || report->layers[layer].folded ||
            strcmp(report->layers[layer].op, program->layers[layer].info.op_type) != 0)
            return false;
    }
    return true;
}

static prony_status copy_composites(prony_report *report, const prn_program *program, const prn_composite *list,
                                    size_t count, prony_error *error)
{
    report->composites = prn_bump_alloc(&report->pool, count + 1, sizeof *report->composites);
    if (!report->composites) return prn_no_memory(error);
    for (size_t c = 0; c < count; c++) {
        if (!report_detail_fits(report, program, &list[c])) continue;
        prn_composite_row *row = &report->composites[report->composite_count];
        uint32_t *layers = prn_bump_alloc(&report->pool, list[c].layer_count, sizeof *layers);
        row->op = prn_bump_strndup(&report->pool, list[c].op, strlen(list[c].op));
        if (!layers || !row->op) return prn_no_memory(error);
        memcpy(layers, list[c].layers, list[c].layer_count * sizeof *layers);
        row->layers = layers;
        row->layer_count = list[c].layer_count;
        row->cost = list[c].cost;
        report->composite_count++;
    }
    return PRONY_OK;
}

prony_status prn_report_fill_composites(prony_report *report, const prony_model *model, const prony_value *inputs,
                                        size_t input_count, prony_error *error)
{
    prn_program *program = NULL;
    prn_composite *list = NULL;
    size_t count = 0;
    bool any = false;
    for (size_t l = 0; l < report->layer_count && !any; l++) any = prn_composite_sign(report->layers[l].op);
    if (!any || model->stage) return PRONY_OK; /* without candidates a second program would only cost memory and time */
    prn_bind_options options = {.inputs = inputs, .input_count = input_count, .static_only = true};
    prony_status status = prn_program_bind(&program, model, &model->file->graph, NULL, NULL, &options, error);
    if (status == PRONY_OK && program->layer_count == report->layer_count)
        status = prn_program_composites(program, &list, &count, error);
    if (status == PRONY_OK && count) status = copy_composites(report, program, list, count, error);
    prn_free(list);
    prn_program_release(program);
    return status;
}
