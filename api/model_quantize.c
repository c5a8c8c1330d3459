/* prony_calibrate and prony_model_quantize: a plan of the float model, a part of it that shows what is stored, and the
 * file that follows. */
#include "api/model_quantize.h"

#include "base/option_struct.h"
#include "engine/session/static_types.h"
#include "quantize/calibrate.h"
#include "quantize/quantize_write.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static prony_status model_quantize_make_plan(prn_quant_plan *plan, prony_model *model,
                                             const prony_session_options *session, bool dynamic, prony_error *error)
{
    prn_program *types = NULL;
    *plan = (prn_quant_plan){0};
    prony_status status = prn_static_types(&types, model, session, error);
    if (status == PRONY_OK) status = prn_quant_plan_make(plan, model, types, error);
    prn_program_release(types);
    plan->dynamic = dynamic;
    if (status == PRONY_OK) prn_quant_plan_resolve(plan);
    for (size_t n = 0; status == PRONY_OK && n < plan->graph->node_count; n++)
        if (plan->nodes[n].quantized) return PRONY_OK;
    prn_quant_reasons reasons = {0};
    for (size_t n = 0; status == PRONY_OK && n < plan->graph->node_count; n++)
        if (plan->nodes[n].reason) prn_quant_reasons_add(&reasons, &plan->graph->nodes[n], plan->nodes[n].reason);
    if (status == PRONY_OK)
        status = prn_fail(
            error, PRONY_UNSUPPORTED,
            "%.300s: nothing to quantize%s: its main graph has no %sGemm or MatMul of float32 with constant "
            "weights%s%s",
            model->file->name, dynamic ? " without calibration data" : "", dynamic ? "" : "Conv, ConvTranspose, ",
            prony_model_is_quantized(model) ? "; it has quantized operators already" : "",
            prn_quant_reasons_text(&reasons));
    prn_quant_plan_release(plan);
    return status;
}

/* ---- calibration ---- */

typedef struct probing {
    const char **to;
    size_t to_count;
    prn_watched *watched;
    size_t count;
} probing;

/* The stored values, then the model's own outputs, so that the probe has all of its inputs. */
static prony_status model_quantize_choose(probing *p, const prn_quant_plan *plan, prn_bump *pool, prony_error *error)
{
    const prn_graph *g = plan->graph;
    p->to = prn_bump_alloc(pool, plan->value_count + g->output_count + 1, sizeof *p->to);
    p->watched = prn_bump_alloc(pool, plan->value_count + 1, sizeof *p->watched);
    if (!p->to || !p->watched) return prn_no_memory(error);
    for (size_t v = 0; v < plan->value_count; v++) {
        const prn_quant_value *value = &plan->values[v];
        prn_watched *w = &p->watched[p->count];
        if (!value->coded) continue;
        *w = (prn_watched){.value = v, .port = p->to_count, .input = value->producer == PRN_QUANT_NONE};
        p->count++;
        if (!w->input) {
            p->to[p->to_count++] = value->name;
            continue;
        }
        while (w->port = w->port < g->input_count ? w->port : 0, strcmp(g->inputs[w->port].name, value->name) != 0)
            w->port++;
    }
    for (size_t k = 0; k < g->output_count; k++) {
        const size_t v = prn_quant_value_find(plan, g->outputs[k].name);
        if (v != PRN_QUANT_NONE && !plan->values[v].coded && plan->values[v].producer != PRN_QUANT_NONE)
            p->to[p->to_count++] = plan->values[v].name;
    }
    return PRONY_OK;
}

static prony_status same_inputs(const prony_model *model, const prony_model *probe, prony_error *error)
{
    const prn_graph *a = &model->file->graph, *b = &probe->file->graph;
    for (size_t i = 0; i < a->input_count; i++)
        if (i >= b->input_count || strcmp(a->inputs[i].name, b->inputs[i].name) != 0)
            return prn_fail(error, PRONY_UNSUPPORTED, "%.300s: no output depends on input " PRN_NAME, model->file->name,
                            a->inputs[i].name);
    return PRONY_OK;
}

static prony_status run_probe(prony_calibration *c, const prn_quant_plan *plan, prony_model *model,
                              const prony_dataset *data, const prony_calibrate_options *options, prony_error *error)
{
    prn_bump pool = {0};
    probing p = {0};
    prony_model *probe = NULL;
    prony_session *session = NULL;
    prony_session_options s = PRONY_SESSION_OPTIONS_INIT;
    prony_status status = prn_options_read(&s, sizeof s, options->session, "session options", error);
    s.precision = NULL;
    s.no_profile = true;
    if (status == PRONY_OK) status = model_quantize_choose(&p, plan, &pool, error);
    prony_submodel part = PRONY_SUBMODEL_INIT;
    part.to = p.to;
    part.to_count = p.to_count;
    part.options = &s;
    if (status == PRONY_OK) status = prony_model_extract(&probe, model, &part, error);
    if (status == PRONY_OK) status = same_inputs(model, probe, error);
    if (status == PRONY_OK) status = prony_session_create(&session, probe, &s, error);
    if (status == PRONY_OK) status = prn_calibrate_run(c, plan, session, p.watched, p.count, data, options, error);
    prony_session_release(session);
    prony_model_release(probe);
    prn_bump_release(&pool);
    return status;
}

prony_status prony_calibrate(prony_calibration **out, prony_model *model, const prony_dataset *data,
                             const prony_calibrate_options *options, prony_error *error)
{
    prony_calibrate_options own = PRONY_CALIBRATE_OPTIONS_INIT;
    prn_quant_plan plan;
    if (!out || !model || !data) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_calibrate: an argument is NULL");
    PRN_TRY(prn_options_read(&own, sizeof own, options, "calibrate options", error));
    if (!*prony_calibration_method_name(own.method) ||
        !(own.percentile == 0 || (own.percentile >= 0.5 && own.percentile <= 1)))
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "calibrate options: unknown method, or a percentile outside 0.5 to 1");
    PRN_TRY(model_quantize_make_plan(&plan, model, own.session, false, error));
    prony_calibration *c = prn_calloc(1, sizeof *c);
    prony_status status = c ? run_probe(c, &plan, model, data, &own, error) : prn_no_memory(error);
    if (status == PRONY_OK) prn_model_hash(model->file, c->sha256);
    prn_quant_plan_release(&plan);
    if (status == PRONY_OK)
        *out = c;
    else
        prony_calibration_release(c);
    return status;
}

/* ---- the model ---- */

static int model_quantize_by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Layers of the rows: contractions with constant weights. */
static bool model_quantize_is_layer(const prn_quant_node *node)
{
    return prn_quant_is_contraction(node) || node->reason;
}

/* Which layers became what, kept with the model. */
static prony_status model_quantize_describe(prony_model *model, const prn_quant_plan *plan, const double *errors,
                                            prony_error *error)
{
    size_t count = 0;
    for (size_t n = 0; n < plan->graph->node_count; n++) count += model_quantize_is_layer(&plan->nodes[n]);
    prn_model_quantized *q = &model->quantized;
    prony_quantized_row *rows = prn_bump_alloc(&q->pool, count + 1, sizeof *rows);
    const char **reasons = prn_bump_alloc(&q->pool, count + 1, sizeof *reasons);
    q->kept = prn_bump_alloc(&q->pool, count + 1, sizeof *q->kept);
    if (!rows || !reasons || !q->kept) return prn_no_memory(error);
    count = 0;
    for (size_t n = 0; n < plan->graph->node_count; n++) {
        const prn_model_node *node = &plan->graph->nodes[n];
        if (!model_quantize_is_layer(&plan->nodes[n])) continue;
        const char *name = prn_quant_layer_name(node);
        prony_quantized_row row = {.quantized = plan->nodes[n].quantized, .error = errors ? errors[n] : NAN};
        row.name = prn_bump_strndup(&q->pool, name, strlen(name));
        row.op = prn_bump_strndup(&q->pool, node->op_type, strlen(node->op_type));
        if (!row.name || !row.op) return prn_no_memory(error);
        if (plan->nodes[n].kept) q->kept[q->kept_count++] = row.name;
        if (!row.quantized)
            reasons[count] = plan->nodes[n].reason ? plan->nodes[n].reason
                             : plan->nodes[n].kept ? "quantized, it would move the outputs beyond keep_accuracy"
                                                   : "without calibration data its ranges are not known";
        rows[count++] = row;
    }
    if (q->kept_count) qsort(q->kept, q->kept_count, sizeof *q->kept, model_quantize_by_text);
    q->rows = rows;
    q->reasons = reasons;
    q->count = count;
    return PRONY_OK;
}

static prony_status model_quantize_quantize(prony_model **out, prn_quant_plan *plan, prony_model *model,
                                            const prony_quantize_options *options, prony_error *error)
{
    prn_bump pool = {0};
    double *errors = NULL;
    prony_model *made = NULL;
    prony_status status = PRONY_OK;
    if (options->keep_accuracy > 0) {
        errors = prn_bump_alloc(&pool, plan->graph->node_count + 1, sizeof *errors);
        status = errors ? prn_quantize_keep(plan, model, options, errors, error) : prn_no_memory(error);
    }
    if (status == PRONY_OK) status = prn_quantized_load(&made, plan, options, error);
    if (status == PRONY_OK) status = model_quantize_describe(made, plan, errors, error);
    prn_bump_release(&pool);
    if (status == PRONY_OK)
        *out = made;
    else
        prony_model_release(made);
    return status;
}

prony_status prony_model_quantize(prony_model **out, prony_model *model, const prony_quantize_options *options,
                                  prony_error *error)
{
    prony_quantize_options own = PRONY_QUANTIZE_OPTIONS_INIT;
    prn_quant_plan plan;
    if (!out || !model) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_model_quantize: an argument is NULL");
    PRN_TRY(prn_options_read(&own, sizeof own, options, "quantize options", error));
    if (own.keep_accuracy < 0 || isnan(own.keep_accuracy) || (own.keep_accuracy > 0 && (!own.data || !own.calibration)))
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "quantize options: keep_accuracy must not be negative, and needs data and a calibration");
    if (own.calibration) PRN_TRY(prn_calibration_check(own.calibration, model, error));
    PRN_TRY(model_quantize_make_plan(&plan, model, own.session, !own.calibration, error));
    prony_status status = model_quantize_quantize(out, &plan, model, &own, error);
    prn_quant_plan_release(&plan);
    return status;
}

double prony_model_weighted_error(const prony_model *model, size_t index)
{
    const bool known = model && model->quantized.weighted_errors && index < model->quantized.count;
    return known ? model->quantized.weighted_errors[index] : (double)NAN;
}

const char *prony_model_float_reason(const prony_model *model, size_t index)
{
    return model && model->quantized.reasons && index < model->quantized.count ? model->quantized.reasons[index] : NULL;
}

size_t prony_model_quantized_layers(const prony_model *model, const prony_quantized_row **rows)
{
    if (rows) *rows = model ? model->quantized.rows : NULL;
    return model ? model->quantized.count : 0;
}
