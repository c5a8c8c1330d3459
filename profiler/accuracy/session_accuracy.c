/* prony_session_accuracy: a session's run beside its reference, as rows of a report. */
#include "base/os/clock.h"
#include "base/option_struct.h"
#include "base/shape.h"
#include "engine/bind/names.h"
#include "profiler/accuracy/accuracy_driver.h"
#include "profiler/report/report.h"

#include <math.h>
#include <string.h>

#define DEFAULT_TOLERANCE 1e-3

static const char *const reference_text = "float64, the model's own nodes one by one";
static const char *const no_float64 = "no float64 reference: compared in the operator's own type";
static const char *const partly = "an earlier value of the reference is not float64";

/* ---- outputs that another runtime saved */

static prony_status find_output(const prony_session *session, const prony_accuracy_expected *a, size_t *index,
                                prony_error *error)
{
    const prn_graph *graph = &session->model->file->graph;
    if (!a->output && graph->output_count == 1) {
        *index = 0;
        return PRONY_OK;
    }
    if (!a->output)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "'%s': the model has %zu outputs; name the one that it holds",
                        a->source, graph->output_count);
    for (size_t k = 0; k < graph->output_count; k++) {
        if (strcmp(graph->outputs[k].name, a->output) != 0) continue;
        *index = k;
        return PRONY_OK;
    }
    return prn_fail(error, PRONY_INVALID_ARGUMENT, "'%s': unknown output '%s'; the model's first one is '%s'",
                    a->source, a->output, graph->output_count ? graph->outputs[0].name : "");
}

static bool has_nan(const prn_f64_tensor *wide)
{
    if (wide->value.dtype != PRONY_FLOAT64) return false;
    const double *x = wide->value.data;
    for (int64_t i = 0; i < prony_shape_numel(&wide->value.shape); i++)
        if (isnan(x[i])) return true;
    return false;
}

static prony_status against_one(const prony_accuracy_expected *a, const char *name, const prony_value *value,
                                double tolerance, prony_error_metrics *out, prony_error *error)
{
    char here[PRN_SHAPE_TEXT_BYTES], there[PRN_SHAPE_TEXT_BYTES];
    prn_f64_tensor measured = {.model = PRONY_UNDEFINED}, given = measured;
    if (!prn_f64_tensor_takes(value) || !prn_f64_tensor_takes(a->value))
        return prn_fail(error, PRONY_UNSUPPORTED, "'%s', output '%s': only numeric tensors can be compared", a->source,
                        name);
    if (!prn_shape_equal(&value->shape, &a->value->shape))
        return prn_fail(error, PRONY_SHAPE_MISMATCH, "'%s' is %s, output '%s' is %s", a->source,
                        prn_value_text(a->value, there), name, prn_value_text(value, here));
    if (prn_f64_tensor_is_float(value->dtype) != prn_f64_tensor_is_float(a->value->dtype))
        return prn_fail(error, PRONY_SHAPE_MISMATCH,
                        "'%s' is %s, output '%s' is %s: floats cannot be compared with integers", a->source,
                        prn_value_text(a->value, there), name, prn_value_text(value, here));
    prony_status status = prn_f64_tensor_read(&measured, value, true, error);
    if (status == PRONY_OK) status = prn_f64_tensor_read(&given, a->value, true, error);
    if (status == PRONY_OK && has_nan(&given) && !has_nan(&measured))
        status = prn_fail(error, PRONY_INVALID_ARGUMENT,
                          "'%s' holds NaN where output '%s' has numbers: they cannot be compared", a->source, name);
    if (status == PRONY_OK) *out = prn_error_figures(&measured, &given, NULL, tolerance);
    prn_f64_tensor_drop(&measured);
    prn_f64_tensor_drop(&given);
    return status;
}

/* ---- rows */

typedef struct filling {
    prony_report *report;
    const prn_accuracy_driver *walk; /* NULL: outputs alone */
    prony_accuracy accuracy;
    prony_accuracy_row *layers, *operators;
    prony_accuracy_output *outputs;
} filling;

static const char *why_not(const prn_accuracy_driver_row *row, const prn_step *step)
{
    if (!step->node->layer_count) return "moves a value between layouts or memory spaces";
    if (row->own_missing) return row->own_missing;
    if (row->chain_missing) return row->chain_missing;
    return "not compared";
}

static void fill_operator(filling *f, uint32_t s)
{
    const prn_accuracy_driver_row *from = &f->walk->rows[s];
    prony_accuracy_row *row = &f->operators[s];
    *row = (prony_accuracy_row){.index = s, .own = from->own, .accumulated = from->accumulated};
    if (!row->own.known && !row->accumulated.known)
        row->not_compared = why_not(from, f->walk->plan->steps[s]);
    else if (from->sampled && !row->own.known)
        row->note = from->own_missing;
    else if (!row->accumulated.known)
        row->note = from->chain_missing;
    else if (from->rounded)
        row->note = no_float64;
    else if (from->chain_rounded)
        row->note = partly;
    f->accuracy.compared += !row->not_compared;
    f->accuracy.sampled += from->sampled;
    f->accuracy.without_reference += from->sampled && (from->rounded || !row->own.known);
}

/* A layer has its operator's figures where one of its outputs is the operator's. */
static void session_accuracy_fill_layers(filling *f)
{
    const prn_plan *plan = f->walk->plan;
    const prn_program *program = plan->program;
    const prony_report *report = f->report;
    for (uint32_t l = 0; l < report->layer_count; l++) {
        prony_accuracy_row *row = &f->layers[l];
        const prony_layer_row *layer = &report->layers[l];
        const uint32_t o = layer->operator_index;
        *row = (prony_accuracy_row){.index = l};
        if (layer->folded)
            row->not_compared = "evaluated before any run";
        else if (layer->removed)
            row->not_compared = "removed by rewriting";
        else if (o == PRONY_NO_INDEX)
            row->not_compared = "a view of another value";
        if (row->not_compared) continue;
        row->not_compared = "inside an operator that makes another layer's value";
        const prn_step *step = plan->steps[o];
        for (size_t k = 0; k < step->context.output_count; k++) {
            const uint32_t v = prn_accuracy_subgraphs_output(&f->walk->chain.slices, step, k);
            for (uint32_t i = 0; v != PRN_NO_VALUE && i < program->layers[l].output_count; i++) {
                if (program->layers[l].outputs[i] != v) continue;
                *row = f->operators[o];
                row->index = l;
            }
        }
    }
}

/* Fills one row per output with a reference, then one per output saved by another runtime. */
static prony_status fill_outputs(filling *f, prn_accuracy_driver *walk, prony_session *session,
                                 const prony_accuracy_options *options, prony_error *error)
{
    const prn_cached_plan *current = session->current;
    const prn_graph *graph = &session->model->file->graph;
    prn_bump *pool = &f->report->pool;
    f->outputs = prn_bump_alloc(pool, graph->output_count + options->against_count + 1, sizeof *f->outputs);
    if (!f->outputs) return prn_no_memory(error);
    f->accuracy.outputs = f->outputs;
    for (size_t k = 0; walk && k < current->program->output_count; k++) {
        prony_accuracy_output *out = &f->outputs[f->accuracy.output_count];
        PRN_TRY(prn_accuracy_driver_output(walk, k, &out->error, error));
        if (!out->error.known) continue;
        out->name = prn_bump_strndup(pool, graph->outputs[k].name, strlen(graph->outputs[k].name));
        if (!out->name) return prn_no_memory(error);
        f->accuracy.output_count++;
    }
    for (size_t i = 0; i < options->against_count; i++) {
        const prony_accuracy_expected *a = &options->against[i];
        prony_accuracy_output *out = &f->outputs[f->accuracy.output_count];
        size_t index = 0;
        PRN_TRY(find_output(session, a, &index, error));
        const char *name = graph->outputs[index].name;
        PRN_TRY(against_one(a, name, &current->plan->values[current->plan->outputs[index]]->value,
                            f->accuracy.tolerance, &out->error, error));
        out->name = prn_bump_strndup(pool, name, strlen(name));
        out->against = prn_bump_strndup(pool, a->source, strlen(a->source));
        if (!out->name || !out->against) return prn_no_memory(error);
        f->accuracy.output_count++;
    }
    return PRONY_OK;
}

static prony_status session_accuracy_fill_rows(filling *f, prony_error *error)
{
    prony_report *report = f->report;
    f->layers = prn_bump_alloc(&report->pool, report->layer_count + 1, sizeof *f->layers);
    f->operators = prn_bump_alloc(&report->pool, report->operator_count + 1, sizeof *f->operators);
    if (!f->layers || !f->operators) return prn_no_memory(error);
    for (uint32_t s = 0; s < report->operator_count; s++) fill_operator(f, s);
    session_accuracy_fill_layers(f);
    f->accuracy.operators = report->operator_count;
    return PRONY_OK;
}

/* ---- the run */

static prony_status session_accuracy_observe(filling *f, prn_accuracy_driver *walk, prony_session *session,
                                             const prony_accuracy_options *options, prony_error *error)
{
    if (options->outputs_only) {
        PRN_TRY(prn_session_run_once(session, NULL, error));
        return fill_outputs(f, NULL, session, options, error);
    }
    PRN_TRY(prn_accuracy_driver_create(walk, session, options->model, options->samples, f->accuracy.tolerance, error));
    if (walk->plan->step_count != f->report->operator_count ||
        walk->plan->program->layer_count != f->report->layer_count)
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "the report belongs to another session or to other input shapes");
    const int64_t start = prn_now_ns();
    PRN_TRY(prn_accuracy_driver_run(walk, error));
    f->walk = walk;
    PRN_TRY(session_accuracy_fill_rows(f, error));
    PRN_TRY(fill_outputs(f, walk, session, options, error));
    f->accuracy.run_ns = prn_now_ns() - start;
    f->accuracy.reference_ns = walk->spent_ns;
    f->accuracy.peak_bytes = prn_f64_tensor_peak();
    if (!f->accuracy.compared && !f->accuracy.output_count)
        return prn_fail(error, PRONY_UNSUPPORTED, "%s: no operator makes a numeric tensor that has a reference",
                        session->model->file->name);
    return PRONY_OK;
}

static prony_status accuracy_locked(prony_report *report, prony_session *session, const prony_accuracy_options *options,
                                    prony_error *error)
{
    filling f = {.report = report,
                 .accuracy = {.reference = reference_text,
                              .tolerance = options->tolerance > 0 ? options->tolerance : DEFAULT_TOLERANCE}};
    prn_accuracy_driver walk = {.session = NULL};
    if (options->model) {
        f.accuracy.reference =
            prn_bump_printf(&report->pool, "float64, the nodes of %s one by one", options->model->file->name);
        if (!f.accuracy.reference) return prn_no_memory(error);
    }
    prony_status status = session_accuracy_observe(&f, &walk, session, options, error);
    prn_accuracy_driver_free(&walk);
    if (status != PRONY_OK) return status;
    report->accuracy = f.accuracy;
    report->layer_errors = f.layers;
    report->operator_errors = f.operators;
    report->has_accuracy = true;
    return prn_report_judge_accuracy(report, error);
}

static prony_status session_accuracy_check(const prony_report *report, const prony_session *session,
                                           const prony_accuracy_options *options, prony_error *error)
{
    if (!report || !session)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_session_accuracy: an argument is NULL");
    if (options->samples < 0 || !(options->tolerance >= 0))
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "accuracy options: counts and tolerance must not be negative");
    if (options->against_count && !options->against)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "accuracy options: `against` is NULL");
    for (size_t i = 0; i < options->against_count; i++)
        if (!options->against[i].value || !options->against[i].source)
            return prn_fail(error, PRONY_INVALID_ARGUMENT, "accuracy options: against[%zu] has no value or no source",
                            i);
    if (session->watcher.run)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "a session watched by a monitor has no accuracy profile");
    return PRONY_OK;
}

prony_status prony_session_accuracy(prony_report *report, prony_session *session, const prony_accuracy_options *options,
                                    prony_error *error)
{
    prony_accuracy_options own = PRONY_ACCURACY_OPTIONS_INIT;
    PRN_TRY(prn_options_read(&own, sizeof own, options, "accuracy options", error));
    PRN_TRY(session_accuracy_check(report, session, &own, error));
    PRN_TRY(prn_session_lock(session, error));
    return prn_session_unlock(session, accuracy_locked(report, session, &own, error));
}
