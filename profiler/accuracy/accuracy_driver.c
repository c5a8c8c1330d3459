/* The session's plan runs step by step; behind each step its outputs are compared with
 *
 *   own           its slice of the model, in float64, on the values that the run itself made
 *   accumulated   the chain: the whole model in float64, node by node, from the model's inputs on
 *
 * Both may be of another model than the one that runs, whose values are then found by the names of layers. Values are
 * released after their last reader. At a node without a reference (random numbers, subgraphs) the chain continues with
 * the run's values. */
#include "profiler/accuracy/accuracy_driver.h"

#include "base/memory/alloc.h"
#include "base/os/clock.h"
#include "base/shape.h"
#include "base/threads/cancel.h"
#include "ops/kernels/vector/number.h"

#include <math.h>
#include <string.h>

static bool accuracy_driver_is_there(const prn_f64_tensor *wide)
{
    return wide->value.data != NULL;
}

/* The executor that the references come from. */
static prn_reference_executor *accuracy_driver_base_of(prn_accuracy_driver *w)
{
    return w->other.program ? &w->other : &w->chain;
}

/* Output `k` of a step in the session's own model. */
static uint32_t accuracy_driver_value_of(const prn_accuracy_driver *w, const prn_step *step, size_t k)
{
    return prn_accuracy_subgraphs_output(&w->chain.slices, step, k);
}

/* ---- comparison */

/* Scale and zero point of a QuantizeLinear's result. */
static prony_status meaning_of(prn_accuracy_driver *w, uint32_t v, prn_qint8_meaning *out)
{
    *out = (prn_qint8_meaning){.known = false};
    if (v == PRN_NO_VALUE) return PRONY_OK;
    const uint32_t m = w->chain.slices.maker[v];
    if (m == PRN_NO_NODE) return PRONY_OK;
    const prn_node_def *node = w->chain.program->nodes[m];
    if (strcmp(node->info.op_type, "QuantizeLinear") != 0 || node->input_count < 2) return PRONY_OK;
    double found[2] = {1, 0};
    for (uint32_t i = 1; i < node->input_count && i < 3; i++) {
        prn_f64_tensor wide;
        if (node->inputs[i] == PRN_NO_VALUE) continue;
        const prn_value_def *value = w->chain.program->values[node->inputs[i]];
        if (!value->constant || prony_shape_numel(&value->info.shape) != 1) return PRONY_OK;
        PRN_TRY(prn_reference_constant(w->chain.program, node->inputs[i], &wide, w->error));
        const bool number = accuracy_driver_is_there(&wide) && prn_dtype_is_number(wide.value.dtype);
        if (number) found[i - 1] = prn_get_f64(wide.value.data, wide.value.dtype, 0);
        prn_f64_tensor_drop(&wide);
        if (!number) return PRONY_OK;
    }
    *out = (prn_qint8_meaning){true, found[0], found[1]};
    return PRONY_OK;
}

static prony_status accuracy_driver_compare(prn_accuracy_driver *w, uint32_t v, const prn_f64_tensor *measured,
                                            const prn_f64_tensor *reference, prony_error_metrics *into)
{
    prn_qint8_meaning codes;
    PRN_TRY(meaning_of(w, v, &codes));
    if (!prn_shape_equal(&measured->value.shape, &reference->value.shape)) return PRONY_OK;
    /* Quantised values of the plan with an unknown scale cannot be compared with floats. */
    if (measured->value.dtype != PRONY_FLOAT64 && reference->value.dtype == PRONY_FLOAT64 && !codes.known)
        return PRONY_OK;
    const prony_error_metrics f = prn_error_figures(measured, reference, &codes, w->tolerance);
    *into = prn_error_worse(into, &f);
    return PRONY_OK;
}

/* ---- one step */

/* Evaluates the step's slice on measured values, compares each output, and releases values of the slice and leaves
 * without further use. */
static prony_status own_error(prn_accuracy_driver *w, uint32_t s, const prn_step *step, const prn_f64_tensor *outputs)
{
    prn_accuracy_driver_row *row = &w->rows[s];
    prn_reference_executor *base = accuracy_driver_base_of(w);
    prn_accuracy_subgraphs *slices = &base->slices;
    prn_accuracy_subgraphs_of_step(slices, s, &row->own_missing);
    prn_f64_tensor *made = w->made;
    prony_status status = PRONY_OK;
    for (size_t n = 0; status == PRONY_OK && !row->own_missing && n < slices->node_count; n++)
        status = prn_reference_executor_evaluate(base, w->session, slices->nodes[n], made, w->measured, made, NULL,
                                                 w->error);
    for (size_t k = 0; status == PRONY_OK && !row->own_missing && k < step->context.output_count; k++) {
        const uint32_t v = prn_accuracy_subgraphs_output(slices, step, k);
        if (v == PRN_NO_VALUE || !accuracy_driver_is_there(&outputs[k]) || !accuracy_driver_is_there(&made[v]))
            continue;
        row->rounded |= made[v].rounded;
        status = accuracy_driver_compare(w, accuracy_driver_value_of(w, step, k), &outputs[k], &made[v], &row->own);
    }
    if (!row->own_missing && !row->own.known) row->own_missing = "its reference cannot be computed";
    for (size_t n = 0; n < slices->node_count; n++) {
        const prn_node_def *node = base->program->nodes[slices->nodes[n]];
        for (uint32_t k = 0; k < node->output_count; k++)
            if (node->outputs[k] != PRN_NO_VALUE) prn_f64_tensor_drop(&made[node->outputs[k]]);
    }
    for (size_t l = 0; l < slices->leaf_count; l++) {
        const uint32_t v = slices->leaves[l];
        if (w->measured_uses[v] && --w->measured_uses[v] == 0) prn_f64_tensor_drop(&w->measured[v]);
    }
    return status;
}

/* Dequantises values to float64. */
static prony_status accuracy_driver_decode(prn_f64_tensor *out, const prn_f64_tensor *codes,
                                           const prn_qint8_meaning *meaning, prony_error *error)
{
    prony_value made = {.kind = PRONY_TENSOR, .dtype = PRONY_FLOAT64, .shape = codes->value.shape};
    made.data = prn_alloc_aligned(64, prn_value_bytes(&made) + 1);
    if (!made.data) return prn_no_memory(error);
    double *to = made.data;
    for (int64_t i = 0; i < prony_shape_numel(&made.shape); i++)
        to[i] = (prn_get_f64(codes->value.data, codes->value.dtype, i) - meaning->zero) * meaning->scale;
    return prn_f64_tensor_take(out, &made, error);
}

/* A copy of the run's output in the form of reference value `v`; empty if its scale is not known. */
static prony_status copy_output(prn_accuracy_driver *w, const prn_step *step, size_t k, uint32_t v,
                                const prn_f64_tensor *output, prn_f64_tensor *out)
{
    const prony_dtype there = accuracy_driver_base_of(w)->program->values[v]->info.dtype;
    prn_qint8_meaning meaning;
    if (output->value.dtype == PRONY_FLOAT64 || !prn_f64_tensor_is_float(there)) {
        PRN_TRY(prn_f64_tensor_read(out, &output->value, false, w->error));
        out->model = output->model;
        return PRONY_OK;
    }
    PRN_TRY(meaning_of(w, accuracy_driver_value_of(w, step, k), &meaning));
    if (!meaning.known || !prn_dtype_is_number(output->value.dtype)) return PRONY_OK;
    PRN_TRY(accuracy_driver_decode(out, output, &meaning, w->error));
    out->model = there;
    return PRONY_OK;
}

/* Keeps the run's outputs for slices of later steps, and for the chain if it has no value of its own. */
static prony_status accuracy_driver_keep(prn_accuracy_driver *w, const prn_step *step, size_t k, uint32_t v,
                                         const prn_f64_tensor *output)
{
    prn_reference_executor *c = accuracy_driver_base_of(w);
    const uint32_t m = c->slices.maker[v];
    if (w->measured_uses[v] && !accuracy_driver_is_there(&w->measured[v]))
        PRN_TRY(copy_output(w, step, k, v, output, &w->measured[v]));
    const prn_node_def *node = m == PRN_NO_NODE ? NULL : c->program->nodes[m];
    if (!node || !c->needed[m] || !c->uses[v] || accuracy_driver_is_there(&c->values[v])) return PRONY_OK;
    if (!node->child_count && !prn_reference_refuses(node))
        return PRONY_OK; /* with subgraphs the reference may turn out to be missing */
    PRN_TRY(copy_output(w, step, k, v, output, &c->values[v]));
    c->values[v].stands_in = true;
    return PRONY_OK;
}

static prony_status accumulated_error(prn_accuracy_driver *w, const prn_step *step, size_t k, uint32_t v,
                                      const prn_f64_tensor *output)
{
    prn_reference_executor *c = accuracy_driver_base_of(w);
    prn_accuracy_driver_row *row = &w->rows[step->index];
    const uint32_t m = c->slices.maker[v];
    if (m != PRN_NO_NODE) PRN_TRY(prn_reference_executor_advance(c, w->session, m, w->error));
    if (accuracy_driver_is_there(&c->values[v]) && !c->values[v].stands_in) {
        row->chain_rounded |= c->values[v].rounded;
        PRN_TRY(
            accuracy_driver_compare(w, accuracy_driver_value_of(w, step, k), output, &c->values[v], &row->accumulated));
    }
    prn_reference_executor_read(c, v);
    return PRONY_OK;
}

/* Reads the measured value, from the kept ones or the plan. */
static prony_status accuracy_driver_read_measured(const prn_accuracy_driver *w, uint32_t v, prn_f64_tensor *out)
{
    const prn_plan_value *from = w->plan->values[v];
    if (from->memory_space == PRN_ON_HOST) return prn_f64_tensor_read(out, &from->value, true, w->error);
    prony_value here = from->value;
    here.data = prn_alloc_aligned(64, (size_t)from->bytes);
    if (!here.data) return prn_no_memory(w->error);
    prony_status status = prn_plan_fetch(w->plan, v, here.data, w->error);
    if (status == PRONY_OK) status = prn_f64_tensor_read(out, &here, false, w->error);
    prn_free_aligned(here.data);
    return status;
}

static prony_status accuracy_driver_observe(prn_accuracy_driver *w, uint32_t s)
{
    const prn_step *step = w->plan->steps[s];
    prn_accuracy_driver_row *row = &w->rows[s];
    if (!step->node->layer_count) return PRONY_OK;
    prn_f64_tensor *outputs = prn_calloc(step->context.output_count + 1, sizeof *outputs);
    prony_status status = outputs ? PRONY_OK : prn_no_memory(w->error);
    for (size_t k = 0; status == PRONY_OK && k < step->context.output_count; k++) {
        const uint32_t v = prn_accuracy_subgraphs_output(&accuracy_driver_base_of(w)->slices, step, k);
        if (v == PRN_NO_VALUE) continue;
        if (!prn_f64_tensor_takes(&w->plan->values[step->outputs[k]]->value)) continue;
        status = accuracy_driver_read_measured(w, step->outputs[k], &outputs[k]);
        if (status == PRONY_OK) status = accuracy_driver_keep(w, step, k, v, &outputs[k]);
        if (status == PRONY_OK) status = accumulated_error(w, step, k, v, &outputs[k]);
    }
    const bool unmatched = w->other.program && w->other.slices.match[s] == PRN_NO_VALUE;
    if (unmatched) row->own_missing = "the other model has no layer of that name";
    if (status == PRONY_OK && row->sampled && !unmatched) status = own_error(w, s, step, outputs);
    if (!row->accumulated.known)
        row->chain_missing = row->own_missing ? row->own_missing : "its reference cannot be computed";
    for (size_t k = 0; outputs && k < step->context.output_count; k++) prn_f64_tensor_drop(&outputs[k]);
    prn_free(outputs);
    return status == PRONY_OK ? prn_cancel_check(w->error) : status;
}

static void accuracy_driver_watch(void *user, uint32_t step, bool end)
{
    prn_accuracy_driver *w = user;
    if (!end || w->status != PRONY_OK) return;
    const int64_t start = prn_now_ns();
    w->status = accuracy_driver_observe(w, step);
    w->spent_ns += prn_now_ns() - start;
}

/* ---- before and after */

/* Chooses sampled operators evenly, the last one included. */
static void accuracy_driver_choose(prn_accuracy_driver *w, int64_t samples)
{
    int64_t total = 0, at = 0, taken = 0;
    for (size_t s = 0; s < w->plan->step_count; s++) total += w->plan->steps[s]->node->layer_count > 0;
    if (samples <= 0 || samples > total) samples = total;
    for (size_t s = 0; s < w->plan->step_count; s++) {
        if (!w->plan->steps[s]->node->layer_count) continue;
        at++;
        if (at * samples < (taken + 1) * total) continue;
        w->rows[s].sampled = true;
        taken++;
    }
}

static void count_slices(prn_accuracy_driver *w)
{
    for (uint32_t s = 0; s < w->plan->step_count; s++) {
        const char *why;
        if (!w->rows[s].sampled) continue;
        prn_accuracy_subgraphs *slices = &accuracy_driver_base_of(w)->slices;
        prn_accuracy_subgraphs_of_step(slices, s, &why);
        for (size_t l = 0; l < slices->leaf_count; l++) w->measured_uses[slices->leaves[l]]++;
    }
}

/* Declares the values that the chain computes: those of the steps, and the model's outputs. */
static prony_status aim_chain(prn_accuracy_driver *w, prony_error *error)
{
    prn_reference_executor *c = accuracy_driver_base_of(w);
    size_t count = 0, most = c->program->output_count + 1;
    for (size_t s = 0; s < w->plan->step_count; s++) most += w->plan->steps[s]->context.output_count;
    uint32_t *targets = prn_calloc(most, sizeof *targets);
    if (!targets) return prn_no_memory(error);
    for (uint32_t s = 0; s < w->plan->step_count; s++) {
        const prn_step *step = w->plan->steps[s];
        for (size_t k = 0; step->node->layer_count && k < step->context.output_count; k++)
            targets[count++] = prn_accuracy_subgraphs_output(&c->slices, step, k);
    }
    for (size_t k = 0; k < c->program->output_count; k++) targets[count++] = c->program->outputs[k];
    prn_reference_executor_aim(c, targets, count);
    prn_free(targets);
    return PRONY_OK;
}

prony_status prn_accuracy_driver_create(prn_accuracy_driver *w, prony_session *session, const prony_model *other,
                                        int64_t samples, double tolerance, prony_error *error)
{
    *w = (prn_accuracy_driver){.session = session, .tolerance = tolerance, .error = error};
    PRN_TRY(prn_session_plan(session, error));
    w->plan = session->current->plan;
    PRN_TRY(prn_reference_executor_create(&w->chain, session, session->model, w->plan, error));
    if (other) PRN_TRY(prn_reference_executor_create(&w->other, session, other, w->plan, error));
    const size_t values = accuracy_driver_base_of(w)->program->value_count + 1;
    w->rows = prn_calloc(w->plan->step_count + 1, sizeof *w->rows);
    w->measured = prn_calloc(values, sizeof *w->measured);
    w->measured_uses = prn_calloc(values, sizeof *w->measured_uses);
    w->made = prn_calloc(values, sizeof *w->made);
    if (!w->rows || !w->measured || !w->measured_uses || !w->made) return prn_no_memory(error);
    accuracy_driver_choose(w, samples);
    count_slices(w);
    return aim_chain(w, error);
}

/* Steps run sequentially, also with several workers: the array's order is valid for their graph. */
prony_status prn_accuracy_driver_run(prn_accuracy_driver *w, prony_error *error)
{
    prn_plan *plan = w->session->current->plan;
    struct prn_schedule *schedule = plan->parallel.schedule;
    prn_trace trace = {.watch = accuracy_driver_watch, .watch_user = w};
    w->error = error;
    prn_f64_tensor_begin();
    plan->parallel.schedule = NULL;
    prony_status status = prn_session_run_once(w->session, &trace, error);
    plan->parallel.schedule = schedule;
    if (status == PRONY_OK) status = w->status;
    if (status != PRONY_OK) return status;
    const int64_t start = prn_now_ns();
    prn_reference_executor *c = accuracy_driver_base_of(w);
    if (c->program->node_count)
        status = prn_reference_executor_advance(c, w->session, (uint32_t)c->program->node_count - 1, error);
    w->spent_ns += prn_now_ns() - start;
    return status;
}

prony_status prn_accuracy_driver_output(prn_accuracy_driver *w, size_t index, prony_error_metrics *out,
                                        prony_error *error)
{
    const prony_value *value = &w->plan->values[w->plan->outputs[index]]->value;
    const prn_reference_executor *c = accuracy_driver_base_of(w);
    prn_f64_tensor measured;
    *out = (prony_error_metrics){.known = false};
    w->error = error;
    if (index >= c->program->output_count || !prn_f64_tensor_takes(value)) return PRONY_OK;
    const prn_f64_tensor *reference = &c->values[c->program->outputs[index]];
    if (!accuracy_driver_is_there(reference)) return PRONY_OK;
    PRN_TRY(prn_f64_tensor_read(&measured, value, true, error));
    prony_status status = accuracy_driver_compare(w, w->chain.program->outputs[index], &measured, reference, out);
    prn_f64_tensor_drop(&measured);
    return status;
}

void prn_accuracy_driver_free(prn_accuracy_driver *w)
{
    const size_t values = accuracy_driver_base_of(w)->program ? accuracy_driver_base_of(w)->program->value_count : 0;
    for (size_t v = 0; v < values; v++) {
        if (w->measured) prn_f64_tensor_drop(&w->measured[v]);
        if (w->made) prn_f64_tensor_drop(&w->made[v]);
    }
    prn_reference_executor_free(&w->chain);
    prn_reference_executor_free(&w->other);
    prn_free(w->rows);
    prn_free(w->measured);
    prn_free(w->measured_uses);
    prn_free(w->made);
}
