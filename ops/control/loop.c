/* Loop: a body that runs while a condition holds and trips are left, on values that it carries from trip to trip and
 * may give other shapes. Values that it makes beside them in every trip are stacked along a new first axis.
 *
 *   trip:  iteration, condition, carried...  --body-->  condition, carried..., one slice per scan output...
 *
 * If the number of trips is known beforehand, so are the shapes of the scan outputs, and their slices are written in
 * place; otherwise the stack grows by doubling. */
#include "base/threads/cancel.h"
#include "base/memory/stack.h"
#include "ops/kernels/subgraph.h"

#include "base/memory/alloc.h"
#include "ops/kernels/copy/copy_nd.h"

#include <string.h>

typedef struct loop_params {
    const struct prn_graph *body;
} loop_params;

static const prn_param loop_attributes[] = {PRN_GRAPH_REQUIRED(loop_params, body), {0}};

/* A scan output as it grows. */
typedef struct stack {
    prony_value value; /* shape [rows there is room for, slice...] */
    int64_t rows;
    bool planned; /* value is the output itself */
} stack;

static PRN_OWN_FRAME prony_status loop_make_body(const prony_context *context, prn_trip_body *body)
{
    *body = (prn_trip_body){.graph = ((const loop_params *)context->params)->body, .first_in = 2, .first_out = 1};
    PRN_TRY(prn_subgraph_count(context, body->graph, &body->input_count, &body->output_count));
    if (body->input_count < 2 || body->output_count < body->input_count - 1) {
        return prony_fail(context, PRONY_INVALID_MODEL,
                          "its body has %zu inputs and %zu outputs, which do not suit a Loop", body->input_count,
                          body->output_count);
    }
    body->carried_count = body->input_count - 2;
    size_t given = context->input_count > 2 ? context->input_count - 2 : 0;
    if (given != body->carried_count || context->output_count > body->output_count - 1) {
        return prony_fail(context, PRONY_INVALID_MODEL,
                          "has %zu carried values and %zu outputs, its body takes %zu and makes %zu", given,
                          context->output_count, body->carried_count, body->output_count - 1);
    }
    for (size_t k = 0; k < body->carried_count; k++) {
        if (!context->inputs[2 + k]) {
            return prony_fail(context, PRONY_INVALID_MODEL, "carried value %zu has no initial value", k);
        }
    }
    return PRONY_OK;
}

/* Iteration number and condition are scalars; some bodies declare vectors of one. */
static PRN_OWN_FRAME prony_status counter_type(const prony_context *context, const prn_trip_body *body, size_t i,
                                               prony_value *type)
{
    size_t count;
    prony_value declared = {.shape = prn_shape_unknown()};
    PRN_TRY(context->services->subgraph_port(context, body->graph, false, i, &count, &declared));
    *type = (prony_value){.dtype = i == 0 ? PRONY_INT64 : PRONY_BOOL, .shape = prn_shape_scalar()};
    if (declared.shape.rank == 1) type->shape = (prony_shape){1, {1}};
    return PRONY_OK;
}

/* Only if the body cannot stop the loop. */
static int64_t known_trips(const prony_context *context, const prony_value *body_condition)
{
    const prony_value *most = prn_input(context, 0), *first = prn_input(context, 1);
    bool on = true, stays_on = false;
    int64_t trips = -1;
    prony_context quiet = *context;
    quiet.error = NULL;
    if (!most || !most->data || !body_condition->data || (first && !first->data)) return -1;
    if (first && prn_scalar_bool(&quiet, first, "", &on) != PRONY_OK) return -1;
    if (prn_scalar_bool(&quiet, body_condition, "", &stays_on) != PRONY_OK || !stays_on) return -1;
    if (prn_scalar_int(&quiet, 0, 0, &trips) != PRONY_OK) return -1;
    return on && trips > 0 ? trips : 0;
}

static PRN_OWN_FRAME prony_status infer_outputs(const prony_context *context, const prn_trip_body *body,
                                                const prony_value *in, const prony_value *out)
{
    int64_t trips = known_trips(context, &out[0]);
    for (size_t k = 0; k < context->output_count; k++) {
        if (k < body->carried_count) {
            prn_set_output_type(context, k, &in[2 + k]);
            continue;
        }
        prony_value type = prn_type_of(&out[1 + k]);
        if (type.kind != PRONY_TENSOR) {
            return prony_fail(context, PRONY_INVALID_MODEL, "scan output %zu is not a tensor", k - body->carried_count);
        }
        if (trips < 0 || !prn_shape_known(&type.shape)) {
            type.shape = prn_shape_unknown();
        } else if (!prn_shape_insert(&type.shape, 0, trips)) {
            return prony_fail(context, PRONY_LIMIT, "output %zu has too many axes", k);
        }
        prn_set_output_type(context, k, &type);
    }
    return PRONY_OK;
}

static prony_status loop_infer(const prony_context *context)
{
    prn_trip_body body;
    PRN_TRY(loop_make_body(context, &body));
    prony_value *in = prn_calloc(body.input_count + body.output_count, sizeof *in);
    if (!in) return prn_no_memory(context->error);
    prony_value *out = in + body.input_count;
    prony_status status = counter_type(context, &body, 0, &in[0]);
    if (status == PRONY_OK) status = counter_type(context, &body, 1, &in[1]);
    for (size_t k = 0; k < body.carried_count; k++) in[2 + k] = prn_type_of(context->inputs[2 + k]);
    if (status == PRONY_OK) status = prn_trip_infer(context, &body, in, out);
    if (status == PRONY_OK) status = infer_outputs(context, &body, in, out);
    prn_free(in);
    return status;
}

static prony_status loop_cost(const prony_context *context, prony_cost *cost)
{
    return prn_trip_cost(context, ((const loop_params *)context->params)->body, cost);
}

/* ---- run ---- */

static size_t scan_count(const prn_trip_body *body)
{
    return body->output_count - 1 - body->carried_count;
}

static prony_status loop_prepare(const prony_context *context, prn_prepared *out)
{
    prn_trip_body body;
    PRN_TRY(loop_make_body(context, &body));
    out->scratch_bytes = prn_trip_scratch_bytes(&body) + scan_count(&body) * sizeof(stack);
    return PRONY_OK;
}

/* Room for one slice more. */
static prony_status stack_grow(const prony_context *context, stack *s, const prony_value *slice, int64_t most)
{
    prony_value larger = prn_type_of(slice);
    int64_t room = s->value.data ? s->value.shape.dim[0] : 0;
    if (room > s->rows) return PRONY_OK;
    int64_t wanted = room ? 2 * room : 8;
    if (most < wanted && most > s->rows) wanted = most;
    if (!prn_shape_insert(&larger.shape, 0, wanted))
        return prony_fail(context, PRONY_LIMIT, "a scan output has too many axes");
    PRN_TRY(context->services->value_take(context, &larger));
    if (s->rows) prn_cancellable_copy(larger.data, s->value.data, (size_t)s->rows * prn_value_bytes(slice));
    context->services->value_drop(context, &s->value);
    s->value = larger;
    return PRONY_OK;
}

static PRN_OWN_FRAME prony_status stack_push(const prony_context *context, stack *s, const prony_value *slice,
                                             int64_t most)
{
    if (slice->kind != PRONY_TENSOR || !prn_copy_width(slice->dtype)) {
        return prony_fail(context, PRONY_UNSUPPORTED, "a scan output of %s cannot be stacked",
                          slice->kind == PRONY_TENSOR ? prony_dtype_name(slice->dtype) : "sequences");
    }
    if (s->value.data) {
        prony_value row = s->value;
        prn_shape_remove(&row.shape, 0);
        if (!prn_type_equal(&row, slice)) {
            char now[PRN_SHAPE_TEXT_BYTES], before[PRN_SHAPE_TEXT_BYTES];
            return prony_fail(context, PRONY_SHAPE_MISMATCH, "a scan output is %s in trip %lld and was %s",
                              prn_value_text(slice, now), (long long)s->rows, prn_value_text(&row, before));
        }
    }
    if (!s->planned) PRN_TRY(stack_grow(context, s, slice, most));
    size_t bytes = prn_value_bytes(slice);
    if (bytes) prn_cancellable_copy((char *)s->value.data + (size_t)s->rows * bytes, slice->data, bytes);
    s->rows++;
    return PRONY_OK;
}

/* `types` has room for those of the body's outputs: no trip made anything if it is used. */
static PRN_OWN_FRAME prony_status stack_finish(const prony_context *context, const prn_trip_body *body, stack *s,
                                               size_t k, prony_value *types)
{
    prony_value *out = prn_output(context, k);
    if (!out || s->planned) return PRONY_OK;
    if (s->rows == 0) {
        PRN_TRY(context->services->subgraph_infer(context, body->graph, NULL, 0, types, body->output_count));
        PRN_TRY(prn_trip_slice_type(context, body->graph, 1 + k, &types[1 + k], &s->value));
        if (!prn_shape_insert(&s->value.shape, 0, 0))
            return prony_fail(context, PRONY_LIMIT, "output %zu has too many axes", k);
        PRN_TRY(context->services->value_take(context, &s->value));
    }
    s->value.shape.dim[0] = s->rows;
    return context->services->output_set(context, k, &s->value);
}

typedef struct loop_run {
    prn_trip_body body;
    prn_trip_state state;
    stack *stacks;
    int64_t most, iteration;
    prony_value counter, condition;
    bool on;
    uint8_t flag;
} loop_run;

static PRN_OWN_FRAME prony_status loop_start(const prony_context *context, loop_run *run)
{
    prn_trip_body *body = &run->body;
    PRN_TRY(loop_make_body(context, body));
    prn_trip_state_init(&run->state, body, context->scratch);
    run->stacks = (stack *)(void *)((char *)context->scratch + prn_trip_scratch_bytes(body));
    memset(run->stacks, 0, scan_count(body) * sizeof *run->stacks);
    PRN_TRY(prn_scalar_int(context, 0, INT64_MAX, &run->most));
    run->on = true;
    if (prn_input(context, 1)) PRN_TRY(prn_scalar_bool(context, context->inputs[1], "the condition", &run->on));
    PRN_TRY(counter_type(context, body, 0, &run->counter));
    PRN_TRY(counter_type(context, body, 1, &run->condition));
    run->counter.data = &run->iteration;
    run->condition.data = &run->flag;
    run->state.inputs[0] = &run->counter;
    run->state.inputs[1] = &run->condition;
    for (size_t k = 0; k < body->carried_count; k++) run->state.carried[k] = *context->inputs[2 + k];
    for (size_t k = 0; k < scan_count(body); k++) {
        const prony_value *out = prn_output(context, body->carried_count + k);
        if (!out || !out->data) continue;
        run->stacks[k] = (stack){.value = *out, .planned = true};
    }
    return PRONY_OK;
}

static prony_status loop_trip(const prony_context *context, loop_run *run)
{
    const prn_trip_body *body = &run->body;
    run->flag = run->on;
    PRN_TRY(prn_trip_run(context, body, &run->state));
    PRN_TRY(prn_scalar_bool(context, &run->state.results[0], "the body's condition", &run->on));
    for (size_t k = 0; k < scan_count(body); k++) {
        if (!prn_output(context, body->carried_count + k)) continue;
        PRN_TRY(stack_push(context, &run->stacks[k], &run->state.results[1 + body->carried_count + k], run->most));
    }
    return prn_trip_advance(context, body, &run->state);
}

static prony_status loop_run_body(const prony_context *context)
{
    loop_run run = {0};
    PRN_TRY(loop_start(context, &run));
    int64_t limit = context->services->trip_limit(context);
    for (; run.iteration < run.most && run.on; run.iteration++) {
        if (run.iteration >= limit) {
            return prony_fail(context, PRONY_LIMIT, "did not stop after %lld trips, the limit of max_loop_trips",
                              (long long)limit);
        }
        PRN_TRY(loop_trip(context, &run));
    }
    for (size_t k = 0; k < run.body.carried_count; k++) PRN_TRY(prn_trip_finish(context, &run.state, k));
    for (size_t k = 0; k < scan_count(&run.body); k++)
        PRN_TRY(stack_finish(context, &run.body, &run.stacks[k], run.body.carried_count + k, run.state.results));
    return PRONY_OK;
}

static const prn_kernel loop_kernels[] = {
    {.name = "loop_reference", .backend = "reference", .prepare = loop_prepare, .run = loop_run_body}, {0}};

// clang-format off
const prn_op prn_ops_loop[] = {
    {.name = "Loop", .since_opset = 1, .inputs = {0, -1}, .outputs = {1, -1}, .flags = PRN_OP_OPEN,
     .params = loop_attributes, .params_bytes = sizeof(loop_params),
     .infer = loop_infer, .cost = loop_cost, .cost_text = "the sum over the trips that ran; before the run, one trip",
     .kernels = loop_kernels},
    {0}};
// clang-format on
