/* SequenceMap: a body that runs once per item of a sequence, on the items at the same place of other sequences and on
 * tensors that stay the same; each of its outputs becomes a sequence. */
#include "ops/control/sequence.h"

#include "base/memory/alloc.h"

typedef struct map_params {
    const struct prn_graph *body;
} map_params;

static const prn_param map_attributes[] = {PRN_GRAPH_REQUIRED(map_params, body), {0}};

static prony_status sequence_map_make_body(const prony_context *context, prn_trip_body *body)
{
    *body = (prn_trip_body){.graph = ((const map_params *)context->params)->body};
    PRN_TRY(prn_subgraph_count(context, body->graph, &body->input_count, &body->output_count));
    if (context->input_count != body->input_count || context->output_count > body->output_count) {
        return prony_fail(context, PRONY_INVALID_MODEL, "has %zu inputs and %zu outputs, its body %zu and %zu",
                          context->input_count, context->output_count, body->input_count, body->output_count);
    }
    for (size_t i = 0; i < context->input_count; i++)
        if (!context->inputs[i]) return prony_fail(context, PRONY_INVALID_MODEL, "input %zu is missing", i);
    return prn_check_sequence(context, 0);
}

static prony_status map_infer(const prony_context *context)
{
    prn_trip_body body;
    PRN_TRY(sequence_map_make_body(context, &body));
    prony_value *in = prn_calloc(body.input_count + body.output_count + 1, sizeof *in);
    if (!in) return prn_no_memory(context->error);
    prony_value *out = in + body.input_count;
    for (size_t i = 0; i < body.input_count; i++) {
        in[i] = prn_type_of(context->inputs[i]);
        if (in[i].kind != PRONY_SEQUENCE) continue;
        in[i] = (prony_value){.kind = PRONY_TENSOR, .dtype = in[i].dtype, .shape = prn_shape_unknown()};
    }
    prony_status status = prn_trip_infer(context, &body, in, out);
    for (size_t k = 0; k < context->output_count && status == PRONY_OK; k++) {
        if (out[k].kind != PRONY_TENSOR)
            status = prony_fail(context, PRONY_INVALID_MODEL, "output %zu of its body is not a tensor", k);
        else
            prn_set_sequence(context, k, out[k].dtype);
    }
    prn_free(in);
    return status;
}

static prony_status map_cost(const prony_context *context, prony_cost *cost)
{
    return prn_trip_cost(context, ((const map_params *)context->params)->body, cost);
}

static prony_status map_prepare(const prony_context *context, prn_prepared *out)
{
    prn_trip_body body;
    PRN_TRY(sequence_map_make_body(context, &body));
    out->scratch_bytes = prn_trip_scratch_bytes(&body) + context->output_count * sizeof(prony_value);
    return PRONY_OK;
}

static prony_status map_item(const prony_context *context, const prn_trip_body *body, prn_trip_state *state,
                             size_t item, prony_value *made)
{
    for (size_t i = 0; i < body->input_count; i++) {
        const prony_value *in = context->inputs[i];
        state->inputs[i] = in->kind == PRONY_SEQUENCE ? &in->items[item] : in;
    }
    PRN_TRY(prn_trip_run(context, body, state));
    for (size_t k = 0; k < context->output_count; k++) {
        if (!context->outputs[k]) continue;
        PRN_TRY(context->services->value_keep(context, &state->results[k], &made[k].items[item]));
        made[k].dtype = state->results[k].dtype;
    }
    return PRONY_OK;
}

static prony_status map_run(const prony_context *context)
{
    prn_trip_body body;
    prn_trip_state state;
    PRN_TRY(sequence_map_make_body(context, &body));
    prn_trip_state_init(&state, &body, context->scratch);
    prony_value *made = (prony_value *)(void *)((char *)context->scratch + prn_trip_scratch_bytes(&body));
    size_t count = context->inputs[0]->count;
    for (size_t i = 1; i < body.input_count; i++) {
        if (context->inputs[i]->kind != PRONY_SEQUENCE || context->inputs[i]->count == count) continue;
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu has %zu items, input 0 has %zu", i,
                          context->inputs[i]->count, count);
    }
    for (size_t k = 0; k < context->output_count; k++) {
        if (!context->outputs[k]) continue;
        made[k] = prn_type_of(context->outputs[k]);
        PRN_TRY(context->services->items_take(context, &made[k], count));
    }
    for (size_t item = 0; item < count; item++) PRN_TRY(map_item(context, &body, &state, item, made));
    for (size_t k = 0; k < context->output_count; k++)
        if (context->outputs[k]) PRN_TRY(context->services->output_set(context, k, &made[k]));
    return PRONY_OK;
}

static const prn_kernel map_kernels[] = {
    {.name = "sequence_map_reference", .backend = "reference", .prepare = map_prepare, .run = map_run}, {0}};

// clang-format off
const prn_op prn_ops_sequence_map[] = {
    {.name = "SequenceMap", .since_opset = 17, .inputs = {1, -1}, .outputs = {1, -1}, .flags = PRN_OP_OPEN,
     .params = map_attributes, .params_bytes = sizeof(map_params),
     .infer = map_infer, .cost = map_cost,
     .cost_text = "the sum over the items that it ran on; before the run, one item", .kernels = map_kernels},
    {0}};
// clang-format on
