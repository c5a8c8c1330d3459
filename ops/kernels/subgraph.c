/* Open types, and the machinery of bodies that run trip after trip. A carried value of trip t + 1 is kept before those
 * of trip t are dropped: the body may have handed any of its inputs through. */
#include "base/memory/stack.h"
#include "ops/kernels/subgraph.h"

#include "base/memory/alloc.h"
#include "ops/kernels/copy/copy_nd.h"
#include "ops/kernels/vector/number.h"

#include <string.h>

/* ---- types ---- */

prony_value prn_type_of(const prony_value *value)
{
    return (prony_value){.kind = value->kind, .dtype = value->dtype, .shape = value->shape};
}

bool prn_type_open(const prony_value *type)
{
    return type->kind == PRONY_TENSOR && type->dtype == PRONY_UNDEFINED;
}

bool prn_type_equal(const prony_value *a, const prony_value *b)
{
    return a->kind == b->kind && a->dtype == b->dtype && prn_shape_equal(&a->shape, &b->shape);
}

static const prony_value open_type = {.kind = PRONY_TENSOR, .dtype = PRONY_UNDEFINED, .shape = {.rank = -1}};

static PRN_OWN_FRAME prony_status refuse_join(const prony_context *context, const prony_value *type,
                                              const prony_value *other, const char *what)
{
    char a[PRN_SHAPE_TEXT_BYTES], b[PRN_SHAPE_TEXT_BYTES];
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "%s is %s here and %s there", what, prn_value_text(type, a),
                      prn_value_text(other, b));
}

prony_status prn_type_join(const prony_context *context, prony_value *type, const prony_value *other, const char *what)
{
    if (prn_type_open(type)) {
        *type = open_type;
    } else if (prn_type_open(other)) {
        type->shape = prn_shape_unknown();
    } else if (type->kind != other->kind) {
        *type = open_type;
    } else if (type->kind != PRONY_TENSOR) {
        if (type->dtype == PRONY_UNDEFINED)
            type->dtype = other->dtype; /* an empty one has no element type of its
                                                                           own */
    } else if (type->dtype != other->dtype) {
        return refuse_join(context, type, other, what);
    } else if (!prn_shape_equal(&type->shape, &other->shape)) {
        type->shape = prn_shape_unknown();
    }
    return PRONY_OK;
}

void prn_set_output_type(const prony_context *context, size_t k, const prony_value *type)
{
    prony_value *out = prn_output(context, k);
    if (!out) return;
    out->kind = type->kind;
    out->dtype = type->dtype;
    out->shape = type->kind == PRONY_TENSOR ? type->shape : prn_shape_unknown();
}

/* ---- scalars and outputs ---- */

prony_status prn_scalar_bool(const prony_context *context, const prony_value *value, const char *what, bool *out)
{
    char text[PRN_SHAPE_TEXT_BYTES];
    if (value->kind != PRONY_TENSOR || value->dtype != PRONY_BOOL || prony_shape_numel(&value->shape) != 1 ||
        !value->data)
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "%s is %s, wanted one bool", what,
                          value->kind == PRONY_TENSOR ? prn_value_text(value, text) : "no tensor");
    *out = *(const uint8_t *)value->data != 0;
    return PRONY_OK;
}

prony_status prn_scalar_int(const prony_context *context, size_t input, int64_t absent, int64_t *out)
{
    const prony_value *value = prn_input(context, input);
    *out = absent;
    if (!value) return PRONY_OK;
    PRN_TRY(prn_check_type(context, input, PRN_TYPE(PRONY_INT32) | PRN_TYPE(PRONY_INT64)));
    if (prony_shape_numel(&value->shape) != 1 || !value->data)
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is not a scalar", input);
    *out = prn_get_i64(value->data, value->dtype, 0);
    return PRONY_OK;
}

prony_status prn_output_copy(const prony_context *context, size_t k, const prony_value *from)
{
    prony_value *out = prn_output(context, k), kept;
    if (!out) return PRONY_OK;
    if (!out->data) {
        PRN_TRY(context->services->value_keep(context, from, &kept));
        return context->services->output_set(context, k, &kept);
    }
    if (!prn_type_equal(out, from)) {
        char came[PRN_SHAPE_TEXT_BYTES], wanted[PRN_SHAPE_TEXT_BYTES];
        return prony_fail(context, PRONY_INTERNAL, "output %zu is %s, planned as %s", k, prn_value_text(from, came),
                          prn_value_text(out, wanted));
    }
    prn_copy_bytes(context->threads, from->data, out->data, prn_value_bytes(out));
    return PRONY_OK;
}

/* ---- bodies ---- */

prony_status prn_subgraph_count(const prony_context *context, const struct prn_graph *graph, size_t *inputs,
                                size_t *outputs)
{
    prony_value none;
    PRN_TRY(context->services->subgraph_port(context, graph, false, SIZE_MAX, inputs, &none));
    return context->services->subgraph_port(context, graph, true, SIZE_MAX, outputs, &none);
}

/* Sets *changed to true if a type did; it never clears it. */
static PRN_OWN_FRAME prony_status widen_carried(const prony_context *context, const prn_trip_body *body,
                                                prony_value *inputs, const prony_value *outputs, bool *changed)
{
    for (size_t k = 0; k < body->carried_count; k++) {
        prony_value *type = &inputs[body->first_in + k];
        const prony_value before = *type;
        PRN_TRY(prn_type_join(context, type, &outputs[body->first_out + k], "a carried value"));
        *changed |= !prn_type_equal(&before, type);
    }
    return PRONY_OK;
}

prony_status prn_trip_infer(const prony_context *context, const prn_trip_body *body, prony_value *inputs,
                            prony_value *outputs)
{
    const prony_value **pointers = prn_calloc(body->input_count + 1, sizeof *pointers);
    if (!pointers) return prn_no_memory(context->error);
    for (size_t i = 0; i < body->input_count; i++) pointers[i] = &inputs[i];
    prony_status status = PRONY_OK;
    for (bool again = true; again && status == PRONY_OK;) {
        again = false;
        status = context->services->subgraph_infer(context, body->graph, pointers, body->input_count, outputs,
                                                   body->output_count);
        if (status == PRONY_OK) status = widen_carried(context, body, inputs, outputs, &again);
    }
    prn_free(pointers);
    return status;
}

prony_status prn_trip_cost(const prony_context *context, const struct prn_graph *graph, prony_cost *cost)
{
    prony_cost trip = {0};
    uint64_t parameters = cost->parameters;
    PRN_TRY(context->services->subgraph_cost(context, graph, NULL, 0, &trip));
    if (!prn_add_u64(&trip.parameters, trip.parameters, parameters))
        return prony_fail(context, PRONY_LIMIT, "the parameters do not fit into 64 bits");
    *cost = trip;
    cost->fact_count = 0;
    prn_cost_fact(cost, "trips", 1);
    return PRONY_OK;
}

size_t prn_trip_scratch_bytes(const prn_trip_body *body)
{
    return (2 * body->carried_count + body->output_count) * sizeof(prony_value) + body->input_count * sizeof(void *);
}

void prn_trip_state_init(prn_trip_state *state, const prn_trip_body *body, void *scratch)
{
    memset(scratch, 0, prn_trip_scratch_bytes(body));
    state->carried = scratch;
    state->next = state->carried + body->carried_count;
    state->results = state->next + body->carried_count;
    state->inputs = (const prony_value **)(void *)(state->results + body->output_count);
    state->owned = false;
    for (size_t k = 0; k < body->carried_count; k++) state->inputs[body->first_in + k] = &state->carried[k];
}

prony_status prn_trip_run(const prony_context *context, const prn_trip_body *body, prn_trip_state *state)
{
    return context->services->subgraph_run(context, body->graph, state->inputs, body->input_count, state->results,
                                           body->output_count);
}

prony_status prn_trip_advance(const prony_context *context, const prn_trip_body *body, prn_trip_state *state)
{
    for (size_t k = 0; k < body->carried_count; k++)
        PRN_TRY(context->services->value_keep(context, &state->results[body->first_out + k], &state->next[k]));
    for (size_t k = 0; k < body->carried_count; k++) {
        if (state->owned) context->services->value_drop(context, &state->carried[k]);
        state->carried[k] = state->next[k];
    }
    state->owned = true;
    return PRONY_OK;
}

prony_status prn_trip_finish(const prony_context *context, prn_trip_state *state, size_t k)
{
    if (!state->owned) return prn_output_copy(context, k, &state->carried[k]);
    if (k < context->output_count) return context->services->output_set(context, k, &state->carried[k]);
    context->services->value_drop(context, &state->carried[k]);
    return PRONY_OK;
}

/* ---- slices ---- */

bool prn_shape_insert(prony_shape *shape, int64_t axis, int64_t extent)
{
    if (shape->rank < 0) return true;
    if (shape->rank >= PRONY_MAX_RANK) return false;
    for (int d = shape->rank; d > axis; d--) shape->dim[d] = shape->dim[d - 1];
    shape->dim[axis] = extent;
    shape->rank++;
    return true;
}

void prn_shape_remove(prony_shape *shape, int64_t axis)
{
    for (int d = (int)axis; d + 1 < shape->rank; d++) shape->dim[d] = shape->dim[d + 1];
    shape->rank--;
}

prony_status prn_trip_slice_type(const prony_context *context, const struct prn_graph *graph, size_t output,
                                 const prony_value *inferred, prony_value *slice)
{
    size_t count;
    prony_value declared = open_type;
    PRN_TRY(context->services->subgraph_port(context, graph, true, output, &count, &declared));
    *slice = prn_type_of(inferred);
    if (slice->dtype == PRONY_UNDEFINED) slice->dtype = declared.dtype;
    if (slice->shape.rank < 0) slice->shape = declared.shape;
    if (slice->shape.rank < 0) slice->shape.rank = 0;
    for (int d = 0; d < slice->shape.rank; d++)
        if (slice->shape.dim[d] < 0) slice->shape.dim[d] = 0;
    if (slice->kind != PRONY_TENSOR || declared.kind != PRONY_TENSOR || slice->dtype == PRONY_UNDEFINED)
        return prony_fail(context, PRONY_UNSUPPORTED, "output %zu of its body, which never ran, has no element type",
                          output);
    return PRONY_OK;
}
