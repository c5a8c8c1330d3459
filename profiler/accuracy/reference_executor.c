/* A chain: evaluates the needed nodes of a model in float64, in the file's order. Values are released after the last
 * reader. */
#include "profiler/accuracy/accuracy_driver.h"

#include "base/memory/alloc.h"
#include "base/shape.h"
#include "engine/bind/names.h"

#include <string.h>

static bool reference_executor_is_there(const prn_f64_tensor *wide)
{
    return wide->value.data != NULL;
}

/* ---- inputs of nodes */

static prony_status read_input(const prn_reference_executor *c, const prony_session *session, uint32_t v,
                               prn_f64_tensor *out, prony_error *error)
{
    *out = (prn_f64_tensor){.model = PRONY_UNDEFINED};
    for (size_t i = 0; i < c->program->input_count; i++) {
        const prony_value *value = &session->inputs[c->inputs[i]].value;
        if (c->program->inputs[i] == v && prn_f64_tensor_takes(value))
            return prn_f64_tensor_read(out, value, true, error);
    }
    return PRONY_OK;
}

/* ---- a node: its inputs from `first`, `second`, constants or the model's inputs */

typedef struct operands {
    const prn_f64_tensor **inputs;
    prn_f64_tensor *read; /* values read for this node alone */
    prn_f64_tensor *outputs;
} operands;

static void operands_free(operands *o, const prn_node_def *node)
{
    for (uint32_t i = 0; o->read && i < prn_reference_reads(node); i++) prn_f64_tensor_drop(&o->read[i]);
    for (uint32_t k = 0; o->outputs && k < node->output_count; k++) prn_f64_tensor_drop(&o->outputs[k]);
    prn_free(o->inputs);
    prn_free(o->read);
    prn_free(o->outputs);
}

static prony_status reference_executor_gather(prn_reference_executor *c, const prony_session *session,
                                              const prn_node_def *node, const prn_f64_tensor *first,
                                              const prn_f64_tensor *second, operands *o, bool *whole,
                                              prony_error *error)
{
    *whole = true;
    for (uint32_t i = 0; i < prn_reference_reads(node); i++) {
        const uint32_t v = prn_reference_read_at(node, i);
        if (v == PRN_NO_VALUE) continue;
        const bool constant = c->program->values[v]->constant;
        if (reference_executor_is_there(&first[v])) {
            o->inputs[i] = &first[v];
        } else if (second && reference_executor_is_there(&second[v])) {
            o->inputs[i] = &second[v];
        } else if (c->slices.maker[v] == PRN_NO_NODE || constant) {
            PRN_TRY(constant ? prn_reference_constant(c->program, v, &o->read[i], error)
                             : read_input(c, session, v, &o->read[i], error));
            o->inputs[i] = &o->read[i];
            if (!reference_executor_is_there(&o->read[i])) *whole = false;
        } else {
            *whole = false;
        }
    }
    return PRONY_OK;
}

prony_status prn_reference_executor_evaluate(prn_reference_executor *c, const prony_session *session, uint32_t n,
                                             const prn_f64_tensor *first, const prn_f64_tensor *second,
                                             prn_f64_tensor *to, const uint32_t *uses, prony_error *error)
{
    const prn_node_def *node = c->program->nodes[n];
    const size_t reads = prn_reference_reads(node);
    operands o = {prn_calloc(reads + 1, sizeof *o.inputs), prn_calloc(reads + 1, sizeof *o.read),
                  prn_calloc(node->output_count + 1, sizeof *o.outputs)};
    prony_status status = o.inputs && o.read && o.outputs ? PRONY_OK : prn_no_memory(error);
    const char *why = NULL;
    bool whole = false;
    if (status == PRONY_OK) status = reference_executor_gather(c, session, node, first, second, &o, &whole, error);
    if (status == PRONY_OK && whole) status = prn_reference_run(&c->reference, node, o.inputs, o.outputs, &why, error);
    for (uint32_t k = 0; status == PRONY_OK && k < node->output_count; k++) {
        const uint32_t v = node->outputs[k];
        if (v == PRN_NO_VALUE || !reference_executor_is_there(&o.outputs[k]) || (uses && !uses[v])) continue;
        prn_f64_tensor_drop(&to[v]);
        to[v] = o.outputs[k];
        o.outputs[k] = (prn_f64_tensor){.model = PRONY_UNDEFINED};
    }
    operands_free(&o, node);
    return status;
}

void prn_reference_executor_read(prn_reference_executor *c, uint32_t v)
{
    if (v == PRN_NO_VALUE || c->uses[v] == 0) return;
    if (--c->uses[v] == 0) prn_f64_tensor_drop(&c->values[v]);
}

prony_status prn_reference_executor_advance(prn_reference_executor *c, const prony_session *session, uint32_t last,
                                            prony_error *error)
{
    for (; c->next <= last && c->next < c->program->node_count; c->next++) {
        const prn_node_def *node = c->program->nodes[c->next];
        if (!c->needed[c->next] || prn_reference_refuses(node)) continue;
        PRN_TRY(prn_reference_executor_evaluate(c, session, c->next, c->values, NULL, c->values, c->uses, error));
        for (uint32_t i = 0; i < prn_reference_reads(node); i++)
            prn_reference_executor_read(c, prn_reference_read_at(node, i));
    }
    return PRONY_OK;
}

void prn_reference_executor_aim(prn_reference_executor *c, const uint32_t *targets, size_t count)
{
    prn_accuracy_subgraphs_of_values(&c->slices, targets, count);
    for (size_t t = 0; t < count; t++)
        if (targets[t] != PRN_NO_VALUE) c->uses[targets[t]]++;
    for (size_t i = 0; i < c->slices.node_count; i++) {
        const uint32_t n = c->slices.nodes[i];
        const prn_node_def *node = c->program->nodes[n];
        c->needed[n] = true;
        for (uint32_t k = 0; k < prn_reference_reads(node) && !prn_reference_refuses(node); k++)
            if (prn_reference_read_at(node, k) != PRN_NO_VALUE) c->uses[prn_reference_read_at(node, k)]++;
    }
}

/* ---- the program */

/* Finds the session's input for each of the program's: by name, else by position. */
static prony_status find_inputs(prn_reference_executor *c, const prony_session *session, const prony_model *model,
                                prony_error *error)
{
    const prn_graph *graph = &model->file->graph, *own = &session->model->file->graph;
    c->inputs = prn_calloc(graph->input_count + 1, sizeof *c->inputs);
    if (!c->inputs) return prn_no_memory(error);
    if (prn_session_overrides(session))
        return prn_fail(error, PRONY_UNSUPPORTED,
                        "%s: an input with a default was set; accuracy is measured with defaults only",
                        session->model->file->name);
    if (graph->input_count != session->input_count)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s has %zu inputs, %s has %zu: they cannot be compared",
                        model->file->name, graph->input_count, session->model->file->name, session->input_count);
    for (uint32_t i = 0; i < graph->input_count; i++) {
        c->inputs[i] = i;
        for (uint32_t k = 0; k < own->input_count; k++)
            if (strcmp(own->inputs[k].name, graph->inputs[i].name) == 0) c->inputs[i] = k;
    }
    return PRONY_OK;
}

static prony_status reference_executor_bind(prn_reference_executor *c, const prony_session *session,
                                            const prony_model *model, prony_error *error)
{
    const size_t count = session->input_count;
    prony_value *types = prn_calloc(count + 1, sizeof *types);
    if (!types) return prn_no_memory(error);
    for (size_t i = 0; i < count; i++) {
        const prony_value *value = &session->inputs[c->inputs[i]].value;
        const prony_dtype declared = model->file->graph.inputs[i].dtype;
        const bool floats =
            prn_f64_tensor_is_float(declared) && prn_f64_tensor_is_float(value->dtype); /* they are read in float64 */
        types[i] = (prony_value){.kind = value->kind, .dtype = floats ? declared : value->dtype, .shape = value->shape};
    }
    const prn_bind_options options = {.inputs = types, .input_count = count};
    prony_status status = prn_program_bind(&c->program, model, &model->file->graph, NULL, NULL, &options, error);
    if (status != PRONY_OK && model != session->model) prn_error_prefix(error, "%s", model->file->name);
    prn_free(types);
    return status;
}

/* ---- layers of another model, by name */

/* A BatchNormalization folded by a quantizer: the only reader of the value, without a layer in the plan. */
static uint32_t behind_folded_norm(const prn_reference_executor *c, const prn_names *own, uint32_t v)
{
    const prn_node_def *reader = NULL;
    size_t readers = 0;
    uint32_t place;
    for (const prn_use *use = c->program->values[v]->places; use; use = use->next) {
        readers++;
        reader = use->node;
    }
    const bool norm = readers == 1 && reader && strcmp(reader->info.op_type, "BatchNormalization") == 0 &&
                      reader->outputs[0] != PRN_NO_VALUE;
    return norm && !prn_names_get(own, reader->info.name, &place) ? reader->outputs[0] : v;
}

/* Finds for each step of the plan the chain's value of its first output: that of the last layer with a name in both
 * models. */
static prony_status match_steps(const prn_reference_executor *c, const prn_plan *plan, uint32_t *match,
                                prony_error *error)
{
    prn_names there = {0}, here = {0};
    bool room = true;
    size_t found = 0;
    for (uint32_t l = 0; room && l < c->program->layer_count; l++)
        room = prn_names_put(&there, c->program->layers[l].info.name, l);
    for (uint32_t l = 0; room && l < plan->program->layer_count; l++)
        room = prn_names_put(&here, plan->program->layers[l].info.name, l);
    for (size_t s = 0; room && s < plan->step_count; s++) {
        const prn_node_def *node = plan->steps[s]->node;
        match[s] = PRN_NO_VALUE;
        for (uint32_t l = node->layer_count; l-- > 0 && match[s] == PRN_NO_VALUE;) {
            uint32_t layer;
            if (!prn_names_get(&there, plan->program->layers[node->layers[l]].info.name, &layer)) continue;
            const prn_layer *as = &c->program->layers[layer];
            if (as->output_count && as->outputs[0] != PRN_NO_VALUE)
                match[s] = behind_folded_norm(c, &here, as->outputs[0]);
        }
        found += match[s] != PRN_NO_VALUE;
    }
    prn_names_free(&there);
    prn_names_free(&here);
    if (!room) return prn_no_memory(error);
    if (found) return PRONY_OK;
    return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s and %s have no layer of the same name",
                    plan->program->model->file->name, c->program->model->file->name);
}

/* ---- creation */

prony_status prn_reference_executor_create(prn_reference_executor *c, const prony_session *session,
                                           const prony_model *model, const prn_plan *plan, prony_error *error)
{
    PRN_TRY(find_inputs(c, session, model, error));
    PRN_TRY(reference_executor_bind(c, session, model, error));
    prn_reference_begin(&c->reference, c->program, session->asked_threads);
    if (model != session->model) {
        c->match = prn_calloc(plan->step_count + 1, sizeof *c->match);
        if (!c->match) return prn_no_memory(error);
        PRN_TRY(match_steps(c, plan, c->match, error));
    }
    PRN_TRY(prn_accuracy_subgraphs_create(&c->slices, c->program, plan, c->match, error));
    const size_t values = c->program->value_count + 1;
    c->values = prn_calloc(values, sizeof *c->values);
    c->uses = prn_calloc(values, sizeof *c->uses);
    c->needed = prn_calloc(c->program->node_count + 1, sizeof *c->needed);
    return c->values && c->uses && c->needed ? PRONY_OK : prn_no_memory(error);
}

void prn_reference_executor_free(prn_reference_executor *c)
{
    for (size_t v = 0; c->program && c->values && v < c->program->value_count; v++) prn_f64_tensor_drop(&c->values[v]);
    prn_accuracy_subgraphs_free(&c->slices);
    prn_free(c->values);
    prn_free(c->uses);
    prn_free(c->needed);
    prn_free(c->inputs);
    prn_free(c->match);
    prn_program_release(c->program);
}
