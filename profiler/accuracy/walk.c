/* The session's plan runs step by step; behind each step its outputs are compared with
 *
 *   own           its slice of the model, in float64, on the values that the run itself made
 *   accumulated   the chain: the whole model in float64, node by node, from the model's inputs on
 *
 * A value of either kind is given up once nothing reads it any more. Where the chain meets a node that has no reference (random numbers,
 * subgraphs), it goes on with what the run made there. */
#include "profiler/accuracy/walk.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/machine.h"
#include "base/shape.h"
#include "base/stop.h"
#include "ops/loops/number.h"

#include <math.h>
#include <string.h>

/* ---- inputs of nodes */

/* A constant's bytes are there while they are read. */
static prony_status read_constant(prn_walk *w, uint32_t v, prn_wide *out)
{
    const prn_value_def *value = w->program->values[v];
    const size_t held = w->program->refs.held_count;
    *out = (prn_wide){.model = PRONY_UNDEFINED};
    if (!prn_wide_takes(&value->info)) return PRONY_OK;
    const bool deferred = prn_shared_recipe(value->shared) != NULL;
    if (deferred) PRN_TRY(prn_program_hold(w->program, v, w->error));
    prony_status status = prn_wide_read(out, &value->info, !deferred, w->error);
    prn_shared_let_go(w->program->model->shared, &w->program->refs, held);
    return status;
}

static prony_status read_input(prn_walk *w, uint32_t v, prn_wide *out)
{
    *out = (prn_wide){.model = PRONY_UNDEFINED};
    for (size_t i = 0; i < w->session->input_count; i++) {
        const prony_value *value = &w->session->inputs[i].value;
        if (w->program->inputs[i] == v && prn_wide_takes(value)) return prn_wide_read(out, value, true, w->error);
    }
    return PRONY_OK;
}

/* ---- a node: its inputs from `kept`, from constants or the model's inputs */

typedef struct operands {
    const prn_wide **inputs;
    prn_wide *read; /* what was read for this node alone */
    prn_wide *outputs;
} operands;

static void operands_free(operands *o, const prn_node_def *node)
{
    for (uint32_t i = 0; o->read && i < node->input_count; i++) prn_wide_drop(&o->read[i]);
    for (uint32_t k = 0; o->outputs && k < node->output_count; k++) prn_wide_drop(&o->outputs[k]);
    prn_free(o->inputs);
    prn_free(o->read);
    prn_free(o->outputs);
}

static bool is_there(const prn_wide *wide)
{
    return wide->value.data != NULL;
}

/* `first` and, behind it, `second` have values by number; either may be NULL. false: an operand is not there. */
static prony_status gather(prn_walk *w, const prn_node_def *node, const prn_wide *first, const prn_wide *second, operands *o, bool *whole)
{
    *whole = true;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const uint32_t v = node->inputs[i];
        if (v == PRN_NO_VALUE) continue;
        if (first && is_there(&first[v])) {
            o->inputs[i] = &first[v];
        } else if (second && is_there(&second[v])) {
            o->inputs[i] = &second[v];
        } else if (w->slices.maker[v] == PRN_NO_NODE || w->program->values[v]->constant) {
            PRN_TRY(w->program->values[v]->constant ? read_constant(w, v, &o->read[i]) : read_input(w, v, &o->read[i]));
            o->inputs[i] = &o->read[i];
            if (!is_there(&o->read[i])) *whole = false;
        } else {
            *whole = false;
        }
    }
    return PRONY_OK;
}

/* Puts what the node makes into `to`; nothing where an operand is missing. */
static prony_status evaluate(prn_walk *w, uint32_t n, const prn_wide *first, const prn_wide *second, prn_wide *to, const uint32_t *uses)
{
    const prn_node_def *node = w->program->nodes[n];
    operands o = {prn_calloc(node->input_count + 1, sizeof *o.inputs), prn_calloc(node->input_count + 1, sizeof *o.read),
                  prn_calloc(node->output_count + 1, sizeof *o.outputs)};
    prony_status status = o.inputs && o.read && o.outputs ? PRONY_OK : prn_no_memory(w->error);
    const char *why = NULL;
    bool whole = false;
    if (status == PRONY_OK) status = gather(w, node, first, second, &o, &whole);
    if (status == PRONY_OK && whole) status = prn_reference_run(&w->reference, node, o.inputs, o.outputs, &why, w->error);
    for (uint32_t k = 0; status == PRONY_OK && k < node->output_count; k++) {
        const uint32_t v = node->outputs[k];
        if (v == PRN_NO_VALUE || !is_there(&o.outputs[k]) || (uses && !uses[v])) continue;
        prn_wide_drop(&to[v]);
        to[v] = o.outputs[k];
        o.outputs[k] = (prn_wide){.model = PRONY_UNDEFINED};
    }
    operands_free(&o, node);
    return status;
}

/* ---- the chain */

static void chain_read(prn_walk *w, uint32_t v)
{
    if (v == PRN_NO_VALUE || w->chain_uses[v] == 0) return;
    if (--w->chain_uses[v] == 0) prn_wide_drop(&w->chain[v]);
}

static prony_status chain_advance(prn_walk *w, uint32_t last)
{
    for (; w->next <= last && w->next < w->program->node_count; w->next++) {
        const prn_node_def *node = w->program->nodes[w->next];
        if (!w->needed[w->next] || prn_reference_refuses(node)) continue;
        PRN_TRY(evaluate(w, w->next, w->chain, NULL, w->chain, w->chain_uses));
        for (uint32_t i = 0; i < node->input_count; i++) chain_read(w, node->inputs[i]);
    }
    return PRONY_OK;
}

/* ---- comparison */

/* Scale and zero point of codes that a QuantizeLinear makes. */
static prony_status meaning_of(prn_walk *w, uint32_t v, prn_code_meaning *out)
{
    *out = (prn_code_meaning){.known = false};
    const uint32_t m = w->slices.maker[v];
    if (m == PRN_NO_NODE) return PRONY_OK;
    const prn_node_def *node = w->program->nodes[m];
    if (strcmp(node->info.op_type, "QuantizeLinear") != 0 || node->input_count < 2) return PRONY_OK;
    double found[2] = {1, 0};
    for (uint32_t i = 1; i < node->input_count && i < 3; i++) {
        prn_wide wide;
        if (node->inputs[i] == PRN_NO_VALUE) continue;
        const prn_value_def *value = w->program->values[node->inputs[i]];
        if (!value->constant || prony_shape_numel(&value->info.shape) != 1) return PRONY_OK;
        PRN_TRY(read_constant(w, node->inputs[i], &wide));
        const bool number = is_there(&wide) && prn_dtype_is_number(wide.value.dtype);
        if (number) found[i - 1] = prn_get_f64(wide.value.data, wide.value.dtype, 0);
        prn_wide_drop(&wide);
        if (!number) return PRONY_OK;
    }
    *out = (prn_code_meaning){true, found[0], found[1]};
    return PRONY_OK;
}

static prony_status compare(prn_walk *w, uint32_t v, const prn_wide *measured, const prn_wide *reference, prony_error_figures *into)
{
    prn_code_meaning codes;
    PRN_TRY(meaning_of(w, v, &codes));
    if (!prn_shape_equal(&measured->value.shape, &reference->value.shape)) return PRONY_OK;
    const prony_error_figures f = prn_error_figures(measured, reference, &codes, w->tolerance);
    *into = prn_error_worse(into, &f);
    return PRONY_OK;
}

/* ---- one step */

static prony_status own_error(prn_walk *w, uint32_t s, const prn_step *step, const prn_wide *outputs)
{
    prn_walk_row *row = &w->rows[s];
    prn_slices *slices = &w->slices;
    prn_slices_of_step(slices, s, &row->own_missing);
    prn_wide *made = w->made;
    prony_status status = PRONY_OK;
    for (size_t n = 0; status == PRONY_OK && !row->own_missing && n < slices->node_count; n++)
        status = evaluate(w, slices->nodes[n], made, w->measured, made, NULL);
    for (size_t k = 0; status == PRONY_OK && !row->own_missing && k < step->context.output_count; k++) {
        const uint32_t v = prn_slices_output(slices, step, k);
        if (v == PRN_NO_VALUE || !is_there(&outputs[k]) || !is_there(&made[v])) continue;
        row->rounded |= made[v].rounded;
        status = compare(w, v, &outputs[k], &made[v], &row->own);
    }
    if (!row->own_missing && !row->own.known) row->own_missing = "its reference cannot be computed";
    for (size_t n = 0; n < slices->node_count; n++) {
        const prn_node_def *node = w->program->nodes[slices->nodes[n]];
        for (uint32_t k = 0; k < node->output_count; k++)
            if (node->outputs[k] != PRN_NO_VALUE) prn_wide_drop(&made[node->outputs[k]]);
    }
    for (size_t l = 0; l < slices->leaf_count; l++) {
        const uint32_t v = slices->leaves[l];
        if (w->measured_uses[v] && --w->measured_uses[v] == 0) prn_wide_drop(&w->measured[v]);
    }
    return status;
}

/* What the run made, for the slices of steps to come, and for the chain where it has nothing of its own. */
static prony_status keep(prn_walk *w, uint32_t v, const prn_wide *output)
{
    const uint32_t m = w->slices.maker[v];
    if (w->measured_uses[v] && !is_there(&w->measured[v]))
        PRN_TRY(prn_wide_read(&w->measured[v], &output->value, false, w->error));
    if (is_there(&w->measured[v])) w->measured[v].model = output->model;
    if (m == PRN_NO_NODE || !w->needed[m] || !prn_reference_refuses(w->program->nodes[m]) || !w->chain_uses[v]) return PRONY_OK;
    PRN_TRY(prn_wide_read(&w->chain[v], &output->value, false, w->error));
    w->chain[v].model = output->model;
    return PRONY_OK;
}

static prony_status accumulated_error(prn_walk *w, prn_walk_row *row, uint32_t v, const prn_wide *output)
{
    const uint32_t m = w->slices.maker[v];
    if (m != PRN_NO_NODE) PRN_TRY(chain_advance(w, m));
    if (is_there(&w->chain[v])) {
        row->chain_rounded |= w->chain[v].rounded;
        PRN_TRY(compare(w, v, output, &w->chain[v], &row->accumulated));
    }
    chain_read(w, v);
    return PRONY_OK;
}

static prony_status observe(prn_walk *w, uint32_t s)
{
    const prn_step *step = w->plan->steps[s];
    prn_walk_row *row = &w->rows[s];
    if (!step->node->layer_count) return PRONY_OK;
    prn_wide *outputs = prn_calloc(step->context.output_count + 1, sizeof *outputs);
    prony_status status = outputs ? PRONY_OK : prn_no_memory(w->error);
    for (size_t k = 0; status == PRONY_OK && k < step->context.output_count; k++) {
        const uint32_t v = prn_slices_output(&w->slices, step, k);
        if (v == PRN_NO_VALUE) continue;
        const prony_value *value = &w->plan->values[step->outputs[k]]->value;
        if (!prn_wide_takes(value)) continue;
        status = prn_wide_read(&outputs[k], value, true, w->error);
        if (status == PRONY_OK) status = keep(w, v, &outputs[k]);
        if (status == PRONY_OK) status = accumulated_error(w, row, v, &outputs[k]);
    }
    if (!row->accumulated.known) row->chain_missing = "its reference cannot be computed";
    if (status == PRONY_OK && row->sampled) status = own_error(w, s, step, outputs);
    for (size_t k = 0; outputs && k < step->context.output_count; k++) prn_wide_drop(&outputs[k]);
    prn_free(outputs);
    return status == PRONY_OK ? prn_stop_check(w->error) : status;
}

static void watch(void *user, uint32_t step, bool end)
{
    prn_walk *w = user;
    if (!end || w->status != PRONY_OK) return;
    const int64_t start = prn_now_ns();
    w->status = observe(w, step);
    w->spent_ns += prn_now_ns() - start;
}

/* ---- before and after */

/* Evenly over the operators, the last one among them. */
static void choose(prn_walk *w, int64_t samples)
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

static void count_slices(prn_walk *w)
{
    for (uint32_t s = 0; s < w->plan->step_count; s++) {
        const char *why;
        if (!w->rows[s].sampled) continue;
        prn_slices_of_step(&w->slices, s, &why);
        for (size_t l = 0; l < w->slices.leaf_count; l++) w->measured_uses[w->slices.leaves[l]]++;
    }
}

static void count_chain(prn_walk *w)
{
    for (uint32_t s = 0; s < w->plan->step_count; s++) {
        const prn_step *step = w->plan->steps[s];
        for (size_t k = 0; step->node->layer_count && k < step->context.output_count; k++)
            w->targets[w->target_count++] = prn_slices_output(&w->slices, step, k);
    }
    for (size_t k = 0; k < w->program->output_count; k++) w->targets[w->target_count++] = w->program->outputs[k];
    prn_slices_of_values(&w->slices, w->targets, w->target_count);
    for (size_t t = 0; t < w->target_count; t++)
        if (w->targets[t] != PRN_NO_VALUE) w->chain_uses[w->targets[t]]++;
    for (size_t i = 0; i < w->slices.node_count; i++) {
        const uint32_t n = w->slices.nodes[i];
        const prn_node_def *node = w->program->nodes[n];
        w->needed[n] = true;
        for (uint32_t k = 0; k < node->input_count && !prn_reference_refuses(node); k++)
            if (node->inputs[k] != PRN_NO_VALUE) w->chain_uses[node->inputs[k]]++;
    }
}

static prony_status bind_reference(prn_walk *w, prony_error *error)
{
    prony_session *session = w->session;
    prony_value *types = prn_calloc(session->input_count + 1, sizeof *types);
    if (!types) return prn_no_memory(error);
    for (size_t i = 0; i < session->input_count; i++) {
        const prony_value *value = &session->inputs[i].value;
        types[i] = (prony_value){.kind = value->kind, .dtype = value->dtype, .shape = value->shape};
    }
    const prn_bind_options bind = {.inputs = types, .input_count = session->input_count};
    prony_status status = prn_program_bind(&w->program, session->model, &session->model->file->graph, NULL, NULL, &bind, error);
    prn_free(types);
    return status;
}

prony_status prn_walk_create(prn_walk *w, prony_session *session, int64_t samples, double tolerance, prony_error *error)
{
    *w = (prn_walk){.session = session, .tolerance = tolerance, .error = error};
    PRN_TRY(prn_session_plan(session, error));
    PRN_TRY(bind_reference(w, error));
    w->plan = session->current->plan;
    prn_reference_begin(&w->reference, w->program, session->asked_threads);
    PRN_TRY(prn_slices_create(&w->slices, w->program, w->plan, error));
    const size_t values = w->program->value_count + 1;
    size_t targets = w->program->output_count + 1;
    for (size_t s = 0; s < w->plan->step_count; s++) targets += w->plan->steps[s]->context.output_count;
    w->rows = prn_calloc(w->plan->step_count + 1, sizeof *w->rows);
    w->chain = prn_calloc(values, sizeof *w->chain);
    w->chain_uses = prn_calloc(values, sizeof *w->chain_uses);
    w->needed = prn_calloc(w->program->node_count + 1, sizeof *w->needed);
    w->measured = prn_calloc(values, sizeof *w->measured);
    w->measured_uses = prn_calloc(values, sizeof *w->measured_uses);
    w->made = prn_calloc(values, sizeof *w->made);
    w->targets = prn_calloc(targets, sizeof *w->targets);
    if (!w->made || !w->rows || !w->chain || !w->chain_uses || !w->needed || !w->measured || !w->measured_uses || !w->targets)
        return prn_no_memory(error);
    choose(w, samples);
    count_slices(w);
    count_chain(w);
    return PRONY_OK;
}

/* Steps run one after the other, also those of a plan for several workers: the array's order is one that their graph allows. */
prony_status prn_walk_run(prn_walk *w, prony_error *error)
{
    prn_plan *plan = w->session->current->plan;
    struct prn_schedule *schedule = plan->schedule;
    prn_trace trace = {.watch = watch, .watch_user = w};
    w->error = error;
    prn_wide_begin();
    plan->schedule = NULL;
    prony_status status = prn_session_run_once(w->session, &trace, error);
    plan->schedule = schedule;
    if (status == PRONY_OK) status = w->status;
    if (status != PRONY_OK) return status;
    const int64_t start = prn_now_ns();
    if (w->program->node_count) status = chain_advance(w, (uint32_t)w->program->node_count - 1);
    w->spent_ns += prn_now_ns() - start;
    return status;
}

prony_status prn_walk_output(prn_walk *w, size_t index, prony_error_figures *out, prony_error *error)
{
    const prony_value *value = &w->plan->values[w->plan->outputs[index]]->value;
    const uint32_t v = w->program->outputs[index];
    prn_wide measured;
    *out = (prony_error_figures){.known = false};
    w->error = error;
    if (!prn_wide_takes(value) || !is_there(&w->chain[v])) return PRONY_OK;
    PRN_TRY(prn_wide_read(&measured, value, true, error));
    prony_status status = compare(w, v, &measured, &w->chain[v], out);
    prn_wide_drop(&measured);
    return status;
}

void prn_walk_free(prn_walk *w)
{
    const size_t values = w->program ? w->program->value_count : 0;
    for (size_t v = 0; v < values; v++) {
        if (w->chain) prn_wide_drop(&w->chain[v]);
        if (w->measured) prn_wide_drop(&w->measured[v]);
        if (w->made) prn_wide_drop(&w->made[v]);
    }
    prn_slices_free(&w->slices);
    prn_free(w->rows);
    prn_free(w->chain);
    prn_free(w->chain_uses);
    prn_free(w->needed);
    prn_free(w->measured);
    prn_free(w->measured_uses);
    prn_free(w->made);
    prn_free(w->targets);
    prn_program_release(w->program);
}
