/* Scan: a body that runs once per slice of its scan inputs, with state carried along; what it makes per slice is put
 * together along an axis of the scan outputs. The number of trips is an extent, so that shapes are known before the run
 * wherever those of the inputs are.
 *
 *   trip t:  state..., slice t of each scan input  --body-->  state..., slice t of each scan output
 *
 * In opset 8 everything has a leading batch axis, the sequence axis is the second, and each sequence has a length of
 * its own: the batch is a loop around the same walk. */
#include "base/threads/cancel.h"
#include "base/memory/stack.h"
#include "ops/kernels/subgraph.h"

#include "base/memory/alloc.h"
#include "ops/kernels/copy/copy_nd.h"
#include "ops/kernels/vector/number.h"

#include <string.h>

typedef struct scan_params {
    const struct prn_graph *body;
    int64_t num_scan_inputs;
    prn_ints directions; /* opset 8 */
    prn_ints scan_input_axes, scan_input_directions, scan_output_axes, scan_output_directions;
} scan_params;

static const prn_param scan_attributes[] = {PRN_GRAPH_REQUIRED(scan_params, body),
                                            PRN_INT_REQUIRED(scan_params, num_scan_inputs),
                                            PRN_INTS(scan_params, directions),
                                            PRN_INTS(scan_params, scan_input_axes),
                                            PRN_INTS(scan_params, scan_input_directions),
                                            PRN_INTS(scan_params, scan_output_axes),
                                            PRN_INTS(scan_params, scan_output_directions),
                                            {0}};

/* The node as the walk sees it. */
typedef struct scan_form {
    prn_trip_body body;
    size_t scans_in, scans_out;
    size_t first;  /* input of the node that is state 0 */
    bool batched;  /* opset 8 */
    int64_t batch; /* 1 unless batched */
} scan_form;

static prony_status scan_check_list(const prony_context *context, const prn_ints *list, size_t count, const char *name,
                                    bool directions)
{
    if (list->present && list->count != count) {
        return prony_fail(context, PRONY_INVALID_MODEL, "%s has %zu entries, wanted %zu", name, list->count, count);
    }
    for (size_t i = 0; directions && i < list->count; i++) {
        if (list->v[i] != 0 && list->v[i] != 1) {
            return prony_fail(context, PRONY_OUT_OF_RANGE, "%s[%zu] is %lld", name, i, (long long)list->v[i]);
        }
    }
    return PRONY_OK;
}

/* Divides the node's inputs and outputs into carried values and scans, checked against its body. Opset 8 has a
 * batch axis and an input in front. */
static prony_status scan_make_form(const prony_context *context, scan_form *form)
{
    const scan_params *params = context->params;
    *form = (scan_form){.body = {.graph = params->body}, .batched = context->node->opset < 9, .batch = 1};
    prn_trip_body *body = &form->body;
    PRN_TRY(prn_subgraph_count(context, body->graph, &body->input_count, &body->output_count));
    form->first = form->batched ? 1 : 0;
    if (params->num_scan_inputs < 1 || (uint64_t)params->num_scan_inputs > body->input_count ||
        context->input_count != form->first + body->input_count || context->output_count > body->output_count) {
        return prony_fail(context, PRONY_INVALID_MODEL,
                          "has %zu inputs and %zu outputs, %lld of them scanned; its body has %zu and %zu",
                          context->input_count, context->output_count, (long long)params->num_scan_inputs,
                          body->input_count, body->output_count);
    }
    form->scans_in = (size_t)params->num_scan_inputs;
    body->carried_count = body->input_count - form->scans_in;
    if (body->output_count < body->carried_count) {
        return prony_fail(context, PRONY_INVALID_MODEL, "its body makes %zu values, but carries %zu",
                          body->output_count, body->carried_count);
    }
    form->scans_out = body->output_count - body->carried_count;
    for (size_t i = form->first; i < context->input_count; i++)
        if (!context->inputs[i]) return prony_fail(context, PRONY_INVALID_MODEL, "input %zu is missing", i);
    PRN_TRY(scan_check_list(context, &params->directions, form->scans_in, "directions", true));
    PRN_TRY(scan_check_list(context, &params->scan_input_axes, form->scans_in, "scan_input_axes", false));
    PRN_TRY(scan_check_list(context, &params->scan_input_directions, form->scans_in, "scan_input_directions", true));
    PRN_TRY(scan_check_list(context, &params->scan_output_axes, form->scans_out, "scan_output_axes", false));
    return scan_check_list(context, &params->scan_output_directions, form->scans_out, "scan_output_directions", true);
}

static bool reversed(const scan_form *form, const scan_params *params, bool input, size_t k)
{
    const prn_ints *list = input ? &params->scan_input_directions : &params->scan_output_directions;
    if (form->batched) list = input ? &params->directions : NULL;
    return list && k < list->count && list->v[k] == 1;
}

static prony_status scan_axis_of(const prony_context *context, const prn_ints *list, size_t k, int rank, int64_t *axis)
{
    *axis = k < list->count ? list->v[k] : 0;
    if (prn_axis_normalize(axis, rank)) return PRONY_OK;
    return prony_fail(context, PRONY_OUT_OF_RANGE, "scan axis %lld for a tensor of rank %d", (long long)*axis, rank);
}

/* An input without its batch axis; `data` stays that of the whole. */
static prony_status one_sequence(const prony_context *context, const scan_form *form, size_t i, prony_value *out,
                                 int64_t *batch)
{
    *out = *context->inputs[form->first + i];
    if (!form->batched || prn_type_open(out) || (out->kind == PRONY_TENSOR && out->shape.rank < 0)) return PRONY_OK;
    if (out->kind != PRONY_TENSOR || out->shape.rank < 1) {
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu has no batch axis", form->first + i);
    }
    if (*batch >= 0 && *batch != out->shape.dim[0]) {
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu has a batch of %lld, others %lld", form->first + i,
                          (long long)out->shape.dim[0], (long long)*batch);
    }
    *batch = out->shape.dim[0];
    prn_shape_remove(&out->shape, 0);
    return PRONY_OK;
}

/* Axis and trips that a scan input of one sequence stands for. */
static prony_status scan_extent(const prony_context *context, size_t k, const prony_value *value, int64_t *axis,
                                int64_t *trips)
{
    const scan_params *params = context->params;
    if (value->kind != PRONY_TENSOR || value->shape.rank < 1) {
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "scan input %zu has no axis to walk along", k);
    }
    PRN_TRY(scan_axis_of(context, &params->scan_input_axes, k, value->shape.rank, axis));
    if (*trips >= 0 && *trips != value->shape.dim[*axis]) {
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "scan input %zu has %lld slices, others %lld", k,
                          (long long)value->shape.dim[*axis], (long long)*trips);
    }
    *trips = value->shape.dim[*axis];
    return PRONY_OK;
}

/* ---- infer ---- */

/* Type of input i of the body; *trips and *batch take up what the inputs say of them. */
static prony_status input_type(const prony_context *context, const scan_form *form, size_t i, prony_value *type,
                               int64_t *trips, int64_t *batch)
{
    prony_value value;
    int64_t axis;
    PRN_TRY(one_sequence(context, form, i, &value, batch));
    *type = prn_type_of(&value);
    if (i < form->body.carried_count || value.shape.rank < 0) return PRONY_OK;
    PRN_TRY(scan_extent(context, i - form->body.carried_count, &value, &axis, trips));
    prn_shape_remove(&type->shape, axis);
    return PRONY_OK;
}

/* Type of output k from a trip's value: a scan gains an axis of `trips`, opset 8 a batch axis. Unknown while any of
 * them is. */
static prony_status scan_output_type(const prony_context *context, const scan_form *form, size_t k,
                                     const prony_value *slice, int64_t trips, int64_t batch, prony_value *out)
{
    const scan_params *params = context->params;
    bool scan = k >= form->body.carried_count;
    *out = prn_type_of(slice);
    if (out->kind != PRONY_TENSOR) {
        if (!scan && !form->batched) return PRONY_OK;
        return prony_fail(context, PRONY_INVALID_MODEL, "output %zu is not a tensor", k);
    }
    bool known = prn_shape_known(&out->shape) && (!scan || trips >= 0) && (!form->batched || batch >= 0);
    if (!known) {
        out->shape = prn_shape_unknown();
        return PRONY_OK;
    }
    int64_t axis = 0;
    bool fits = out->shape.rank + 2 <= PRONY_MAX_RANK;
    if (scan && fits) {
        PRN_TRY(
            scan_axis_of(context, &params->scan_output_axes, k - form->body.carried_count, out->shape.rank + 1, &axis));
        fits = prn_shape_insert(&out->shape, axis, trips);
    }
    if (form->batched && fits) fits = prn_shape_insert(&out->shape, 0, batch);
    return fits ? PRONY_OK : prony_fail(context, PRONY_LIMIT, "output %zu has too many axes", k);
}

static prony_status scan_infer(const prony_context *context)
{
    scan_form form;
    int64_t trips = -1, batch = -1;
    PRN_TRY(scan_make_form(context, &form));
    prn_trip_body *body = &form.body;
    prony_value *in = prn_calloc(body->input_count + body->output_count + 1, sizeof *in);
    if (!in) return prn_no_memory(context->error);
    prony_value *out = in + body->input_count;
    prony_status status = PRONY_OK;
    for (size_t i = 0; i < body->input_count && status == PRONY_OK; i++)
        status = input_type(context, &form, i, &in[i], &trips, &batch);
    if (status == PRONY_OK) status = prn_trip_infer(context, body, in, out);
    for (size_t k = 0; k < context->output_count && status == PRONY_OK; k++) {
        prony_value type;
        status = scan_output_type(context, &form, k, k < body->carried_count ? &in[k] : &out[k], trips, batch, &type);
        if (status == PRONY_OK) prn_set_output_type(context, k, &type);
    }
    prn_free(in);
    return status;
}

static prony_status scan_cost(const prony_context *context, prony_cost *cost)
{
    return prn_trip_cost(context, ((const scan_params *)context->params)->body, cost);
}

/* ---- run ---- */

typedef struct scan_slice {
    prony_value value;
    bool own;
} scan_slice;

typedef struct scan_run {
    scan_form form;
    prn_trip_state state;
    scan_slice *slices; /* one per scan input */
    int64_t trips, batch;
} scan_run;

static prony_status scan_prepare(const prony_context *context, prn_prepared *out)
{
    scan_form form;
    PRN_TRY(scan_make_form(context, &form));
    out->scratch_bytes = prn_trip_scratch_bytes(&form.body) + form.scans_in * sizeof(scan_slice);
    return PRONY_OK;
}

/* One slice: a view where it lies in one piece, else a copy of the operator's own. */
static prony_status take_slice(const prony_context *context, const scan_run *run, size_t k, int64_t b, int64_t t,
                               int64_t length, scan_slice *slice)
{
    prony_value whole;
    int64_t axis, trips = -1, batch = -1;
    PRN_TRY(one_sequence(context, &run->form, run->form.body.carried_count + k, &whole, &batch));
    PRN_TRY(scan_extent(context, k, &whole, &axis, &trips));
    size_t width = prn_copy_width(whole.dtype);
    if (!width) return prony_fail(context, PRONY_UNSUPPORTED, "scan input %zu is %s", k, prony_dtype_name(whole.dtype));
    if (reversed(&run->form, context->params, true, k)) t = length - 1 - t;
    int64_t outer = prn_shape_count(&whole.shape, 0, (int)axis);
    int64_t inner = prn_shape_count(&whole.shape, (int)axis + 1, whole.shape.rank);
    const char *from = (const char *)whole.data + width * (size_t)(b * outer * trips * inner + t * inner);
    slice->value = prn_type_of(&whole);
    prn_shape_remove(&slice->value.shape, axis);
    slice->own = outer != 1;
    if (!slice->own) {
        slice->value.data = (void *)(uintptr_t)from;
        return PRONY_OK;
    }
    PRN_TRY(context->services->value_take(context, &slice->value));
    prn_copy copy = {0};
    prn_copy_axis(&copy, outer, trips * inner, inner);
    prn_copy_axis(&copy, inner, 1, 1);
    if (outer > 0 && inner > 0) prn_copy_native(context->threads, width, &copy, from, slice->value.data);
    return PRONY_OK;
}

/* Slice t of scan output k of sequence b, into an output that gets its shape by the first one. */
static prony_status put_slice(const prony_context *context, const scan_run *run, size_t k, int64_t b, int64_t t,
                              const prony_value *slice)
{
    const scan_params *params = context->params;
    prony_value *out = prn_output(context, run->form.body.carried_count + k), type;
    int64_t axis = 0;
    size_t width = prn_copy_width(slice->dtype);
    if (!out) return PRONY_OK;
    if (!width)
        return prony_fail(context, PRONY_UNSUPPORTED, "scan output %zu is %s", k, prony_dtype_name(slice->dtype));
    PRN_TRY(
        scan_output_type(context, &run->form, run->form.body.carried_count + k, slice, run->trips, run->batch, &type));
    if (!out->data) {
        out->kind = PRONY_TENSOR;
        out->dtype = type.dtype;
        out->shape = type.shape;
        PRN_TRY(context->services->output_alloc(context, run->form.body.carried_count + k));
        prn_cancellable_clear(out->data, prn_value_bytes(out)); /* sequences that are shorter than the longest */
    }
    if (!prn_type_equal(out, &type)) {
        char now[PRN_SHAPE_TEXT_BYTES], before[PRN_SHAPE_TEXT_BYTES];
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "scan output %zu would be %s by slice %lld and is %s", k,
                          prn_value_text(&type, now), (long long)t, prn_value_text(out, before));
    }
    PRN_TRY(scan_axis_of(context, &params->scan_output_axes, k, slice->shape.rank + 1, &axis));
    if (reversed(&run->form, params, false, k)) t = run->trips - 1 - t;
    int64_t outer = prn_shape_count(&slice->shape, 0, (int)axis);
    int64_t inner = prn_shape_count(&slice->shape, (int)axis, slice->shape.rank);
    char *to = (char *)out->data + width * (size_t)((b * outer * run->trips + t) * inner);
    prn_copy copy = {0};
    prn_copy_axis(&copy, outer, inner, run->trips * inner);
    prn_copy_axis(&copy, inner, 1, 1);
    if (outer > 0 && inner > 0) prn_copy_native(context->threads, width, &copy, slice->data, to);
    return PRONY_OK;
}

/* All trips of one sequence. */
static prony_status scan_walk(const prony_context *context, scan_run *run, int64_t b, int64_t length)
{
    const prn_trip_body *body = &run->form.body;
    prn_trip_state *state = &run->state;
    for (size_t k = 0; k < body->carried_count; k++) {
        int64_t batch = -1;
        PRN_TRY(one_sequence(context, &run->form, k, &state->carried[k], &batch));
        if (run->form.batched)
            state->carried[k].data = (char *)state->carried[k].data + (size_t)b * prn_value_bytes(&state->carried[k]);
    }
    state->owned = false;
    for (int64_t t = 0; t < length; t++) {
        for (size_t k = 0; k < run->form.scans_in; k++)
            PRN_TRY(take_slice(context, run, k, b, t, length, &run->slices[k]));
        PRN_TRY(prn_trip_run(context, body, state));
        for (size_t k = 0; k < run->form.scans_out; k++)
            PRN_TRY(put_slice(context, run, k, b, t, &state->results[body->carried_count + k]));
        PRN_TRY(prn_trip_advance(context, body, state));
        for (size_t k = 0; k < run->form.scans_in; k++)
            if (run->slices[k].own) context->services->value_drop(context, &run->slices[k].value);
    }
    return PRONY_OK;
}

/* Final state of sequence b, into its part of the outputs. */
static PRN_OWN_FRAME prony_status scan_put_state(const prony_context *context, scan_run *run, int64_t b)
{
    for (size_t k = 0; k < run->form.body.carried_count; k++) {
        prony_value *out = prn_output(context, k), *value = &run->state.carried[k], type;
        if (!run->form.batched) {
            PRN_TRY(prn_trip_finish(context, &run->state, k));
            continue;
        }
        if (out) {
            PRN_TRY(scan_output_type(context, &run->form, k, value, run->trips, run->batch, &type));
            if (!out->data) {
                *out = type;
                PRN_TRY(context->services->output_alloc(context, k));
            }
            if (!prn_type_equal(out, &type))
                return prony_fail(context, PRONY_SHAPE_MISMATCH, "state %zu differs in shape between sequences", k);
            size_t bytes = prn_value_bytes(value);
            if (bytes) prn_cancellable_copy((char *)out->data + (size_t)b * bytes, value->data, bytes);
        }
        if (run->state.owned) context->services->value_drop(context, value);
    }
    return PRONY_OK;
}

static PRN_OWN_FRAME prony_status sequence_length(const prony_context *context, const scan_run *run, int64_t b,
                                                  int64_t *length)
{
    const prony_value *lengths = run->form.batched ? context->inputs[0] : NULL;
    *length = run->trips;
    if (!lengths) return PRONY_OK;
    PRN_TRY(prn_check_type(context, 0, PRN_TYPE(PRONY_INT64) | PRN_TYPE(PRONY_INT32)));
    if (prony_shape_numel(&lengths->shape) != run->batch)
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "there are %lld sequences, but %lld lengths",
                          (long long)run->batch, (long long)prony_shape_numel(&lengths->shape));
    *length = prn_get_i64(lengths->data, lengths->dtype, b);
    if (*length >= 0 && *length <= run->trips) return PRONY_OK;
    return prony_fail(context, PRONY_OUT_OF_RANGE, "sequence %lld has length %lld of %lld", (long long)b,
                      (long long)*length, (long long)run->trips);
}

/* Outputs of which nothing was made: no trips, or no sequences. */
static PRN_OWN_FRAME prony_status finish_empty(const prony_context *context, const scan_run *run)
{
    const prn_trip_body *body = &run->form.body;
    prony_value *types = run->state.results;
    bool inferred = false;
    for (size_t k = run->form.batched ? 0 : body->carried_count; k < context->output_count; k++) {
        prony_value *out = prn_output(context, k), slice;
        if (!out || out->data) continue;
        if (!inferred)
            PRN_TRY(context->services->subgraph_infer(context, body->graph, NULL, 0, types, body->output_count));
        inferred = true;
        PRN_TRY(prn_trip_slice_type(context, body->graph, k, &types[k], &slice));
        PRN_TRY(scan_output_type(context, &run->form, k, &slice, run->trips, run->batch, out));
        PRN_TRY(context->services->output_alloc(context, k));
        prn_cancellable_clear(out->data, prn_value_bytes(out));
    }
    return PRONY_OK;
}

static PRN_OWN_FRAME prony_status scan_start(const prony_context *context, scan_run *run)
{
    const prn_trip_body *body = &run->form.body;
    PRN_TRY(scan_make_form(context, &run->form));
    prn_trip_state_init(&run->state, body, context->scratch);
    run->slices = (scan_slice *)(void *)((char *)context->scratch + prn_trip_scratch_bytes(body));
    run->trips = run->batch = -1;
    for (size_t i = 0; i < body->input_count; i++) {
        prony_value type;
        PRN_TRY(input_type(context, &run->form, i, &type, &run->trips, &run->batch));
    }
    if (!run->form.batched) run->batch = 1;
    for (size_t k = 0; k < run->form.scans_in; k++) run->state.inputs[body->carried_count + k] = &run->slices[k].value;
    for (size_t k = body->carried_count; k < context->output_count && run->form.batched; k++) {
        prony_value *out = prn_output(context, k); /* sequences may be shorter than the longest */
        if (out && out->data) prn_cancellable_clear(out->data, prn_value_bytes(out));
    }
    return PRONY_OK;
}

static prony_status scan_run_body(const prony_context *context)
{
    scan_run run = {0};
    PRN_TRY(scan_start(context, &run));
    for (int64_t b = 0; b < run.batch; b++) {
        int64_t length;
        PRN_TRY(sequence_length(context, &run, b, &length));
        PRN_TRY(scan_walk(context, &run, b, length));
        PRN_TRY(scan_put_state(context, &run, b));
    }
    return finish_empty(context, &run);
}

static const prn_kernel scan_kernels[] = {
    {.name = "scan_reference", .backend = "reference", .prepare = scan_prepare, .run = scan_run_body}, {0}};

// clang-format off
const prn_op prn_ops_scan[] = {
    {.name = "Scan", .since_opset = 8, .inputs = {0, -1}, .outputs = {1, -1}, .flags = PRN_OP_OPEN,
     .params = scan_attributes, .params_bytes = sizeof(scan_params),
     .infer = scan_infer, .cost = scan_cost, .cost_text = "the sum over the trips that ran; before the run, one trip",
     .kernels = scan_kernels},
    {0}};
// clang-format on
