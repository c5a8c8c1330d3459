#include "profiler/accuracy/reference.h"

#include "base/memory/alloc.h"
#include "base/shape.h"
#include "base/threads/cancel.h"
#include "engine/bind/node.h"
#include "engine/bind/node_environment.h"
#include "ops/kernels/vector/number.h"

#include <string.h>

/* Allocates an output's bytes; the output owns them, as with known shapes. */
static prony_status reference_take_output(const prony_context *context, size_t index)
{
    prony_value *out = context->outputs[index];
    const size_t bytes = prn_value_bytes(out);
    if (bytes == SIZE_MAX) return prony_fail(context, PRONY_LIMIT, "output %zu is too large", index);
    prn_free_aligned(out->data);
    out->data = prn_alloc_aligned(64, bytes ? bytes : 1);
    return out->data ? PRONY_OK : prn_no_memory(context->error);
}

void prn_reference_begin(prn_reference *r, prn_program *program, int threads)
{
    *r = (prn_reference){
        .program = program, .services = *program->model->services, .threads = threads > 0 ? threads : 1};
    r->services.output_alloc = reference_take_output;
}

static bool is_own_row(const prn_node_def *node)
{
    const prn_operator_binding *b = &node->binding;
    return b->op == prn_op_find(node->info.domain, node->info.op_type, node->info.opset) && b->infer == b->op->infer;
}

const char *prn_reference_refuses(const prn_node_def *node)
{
    if (!node->binding.op) return "the engine has no such operator";
    if (node->child_count)
        return is_own_row(node) ? prn_reference_control_refuses(node) : "runs subgraphs of a user's operator";
    if (node->binding.op->flags & PRN_OP_ONCE_PER_RUN) return "draws random numbers";
    if ((node->binding.op->flags & PRN_OP_OPEN) && !(node->binding.op->flags & PRN_OP_VIEW))
        return "works on sequences or optionals";
    return NULL;
}

/* Pins the constant while it is read. */
prony_status prn_reference_constant(prn_program *program, uint32_t v, prn_f64_tensor *out, prony_error *error)
{
    const prn_value_def *value = program->values[v];
    const size_t held = program->refs.held_count;
    *out = (prn_f64_tensor){.model = PRONY_UNDEFINED};
    if (!prn_f64_tensor_takes(&value->info)) return PRONY_OK;
    const bool deferred = prn_weight_cache_lazy(value->shared) != NULL;
    if (deferred) PRN_TRY(prn_program_hold(program, v, error));
    prony_status status = prn_f64_tensor_read(out, &value->info, !deferred, error);
    prn_weight_cache_unpin(program->model->shared, &program->refs, held);
    return status;
}

prony_context prn_reference_context(const prn_reference *r, const prn_node_def *node, const prony_value **inputs,
                                    prony_value **outputs, prony_error *error)
{
    prony_context context = prn_node_context(r->program, node, error);
    context.inputs = inputs;
    context.outputs = outputs;
    context.services = &r->services;
    context.threads = r->threads;
    return context;
}

/* ---- a node on values of any type */

typedef struct attempt {
    prony_value *in, *out;
    const prony_value **inputs;
    prony_value **outputs;
    bool *owned; /* inputs that were narrowed for it */
} attempt;

static void attempt_free(attempt *a, const prn_node_def *node)
{
    for (uint32_t i = 0; a->in && a->owned && i < node->input_count; i++)
        if (a->owned[i]) prn_free_aligned(a->in[i].data);
    for (uint32_t k = 0; a->out && k < node->output_count; k++) prn_free_aligned(a->out[k].data);
    prn_free(a->in);
    prn_free(a->out);
    prn_free(a->inputs);
    prn_free(a->outputs);
    prn_free(a->owned);
}

static prony_status attempt_make(attempt *a, const prn_node_def *node, prony_error *error)
{
    *a = (attempt){prn_calloc(node->input_count + 1, sizeof *a->in), prn_calloc(node->output_count + 1, sizeof *a->out),
                   prn_calloc(node->input_count + 1, sizeof *a->inputs),
                   prn_calloc(node->output_count + 1, sizeof *a->outputs),
                   prn_calloc(node->input_count + 1, sizeof *a->owned)};
    return a->in && a->out && a->inputs && a->outputs && a->owned ? PRONY_OK : prn_no_memory(error);
}

static prony_status run_on(const prn_reference *r, const prn_node_def *node, attempt *a, prony_error *error)
{
    prony_context context = prn_reference_context(r, node, a->inputs, a->outputs, error);
    prn_node_environment site = {.program = r->program, .node = (prn_node_def *)node};
    context.services_data = &site;
    context.user = node->binding.infer_user;
    PRN_TRY(node->binding.infer(&context));
    context.user = node->binding.run_user;
    for (uint32_t k = 0; k < node->output_count; k++) {
        prony_value *out = a->outputs[k];
        if (!out || out->kind != PRONY_TENSOR || out->dtype == PRONY_UNDEFINED || !prn_shape_known(&out->shape))
            continue;
        if (out->dtype == PRONY_STRING) return prn_fail(error, PRONY_UNSUPPORTED, "text");
        PRN_TRY(reference_take_output(&context, k));
    }
    PRN_TRY(prn_node_run_once(node, &context, NULL));
    PRN_TRY(prn_cancel_check(error));
    for (uint32_t k = 0; k < node->output_count; k++)
        if (a->outputs[k] && !prn_f64_tensor_takes(a->outputs[k]))
            return prn_fail(error, PRONY_UNSUPPORTED, "the reference made no numeric tensor");
    return PRONY_OK;
}

/* The model's type of an input, if known. */
static prony_dtype model_type(const prn_reference *r, const prn_node_def *node, uint32_t i, const prn_f64_tensor *wide)
{
    const prony_dtype bound = r->program->values[node->inputs[i]]->info.dtype;
    if (prn_f64_tensor_is_float(bound)) return bound;
    return prn_f64_tensor_is_float(wide->model) ? wide->model : PRONY_FLOAT32;
}

/* The type for a value without a type from binding: the first float that the node reads. */
static prony_dtype float_of(const prn_node_def *node, const prn_f64_tensor *const *inputs)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        if (inputs[i] && prn_f64_tensor_is_float(inputs[i]->model)) return inputs[i]->model;
    return PRONY_FLOAT32;
}

/* Runs the node; inputs from `wide` on are in the model's own types. */
static prony_status try_node(const prn_reference *r, const prn_node_def *node, const prn_f64_tensor *const *inputs,
                             uint32_t wide, prn_f64_tensor *outputs, prony_error *error)
{
    attempt a;
    const bool narrow = wide == 0;
    bool rounded = narrow;
    prony_status status = attempt_make(&a, node, error);
    for (uint32_t i = 0; status == PRONY_OK && i < node->input_count; i++) {
        if (!inputs[i]) continue;
        rounded |= inputs[i]->rounded;
        a.in[i] = inputs[i]->value;
        a.inputs[i] = &a.in[i];
        if (i >= wide)
            status = prn_f64_tensor_narrow(&a.in[i], &a.owned[i], inputs[i], model_type(r, node, i, inputs[i]), error);
    }
    for (uint32_t k = 0; status == PRONY_OK && k < node->output_count; k++) {
        a.out[k].shape = prn_shape_unknown();
        if (node->outputs[k] != PRN_NO_VALUE) a.outputs[k] = &a.out[k];
    }
    if (status == PRONY_OK) status = run_on(r, node, &a, error);
    for (uint32_t k = 0; status == PRONY_OK && k < node->output_count; k++) {
        if (!a.outputs[k]) continue;
        status = prn_f64_tensor_take(&outputs[k], &a.out[k], error);
        outputs[k].rounded = rounded;
        const prony_dtype bound = r->program->values[node->outputs[k]]->info.dtype;
        if (prn_f64_tensor_is_float(bound))
            outputs[k].model = bound;
        else if (!narrow && outputs[k].model == PRONY_FLOAT64)
            outputs[k].model = float_of(node, inputs);
    }
    if (status != PRONY_OK)
        for (uint32_t k = 0; k < node->output_count; k++) prn_f64_tensor_drop(&outputs[k]);
    attempt_free(&a, node);
    return status;
}

/* ---- casts to a float type stay in float64 */

static prony_status cast_to_float(const prn_reference *r, const prn_node_def *node, const prn_f64_tensor *const *inputs,
                                  prn_f64_tensor *outputs, bool *done, prony_error *error)
{
    if (strcmp(node->info.op_type, "Cast") != 0 || !is_own_row(node) || !inputs[0] || node->outputs[0] == PRN_NO_VALUE)
        return PRONY_OK;
    const prony_value *from = &inputs[0]->value;
    const prony_dtype bound = r->program->values[node->outputs[0]]->info.dtype;
    const int64_t to = bound != PRONY_UNDEFINED ? (int64_t)bound : 0;
    if (!prn_f64_tensor_is_float((prony_dtype)to) || !(prn_dtype_is_number(from->dtype) || from->dtype == PRONY_BOOL))
        return PRONY_OK;
    prony_value made = {.kind = PRONY_TENSOR, .dtype = PRONY_FLOAT64, .shape = from->shape};
    made.data = prn_alloc_aligned(64, prn_value_bytes(&made) + 1);
    if (!made.data) return prn_no_memory(error);
    prn_convert(made.data, PRONY_FLOAT64, from->data, from->dtype, prony_shape_numel(&from->shape));
    PRN_TRY(prn_f64_tensor_take(&outputs[0], &made, error));
    outputs[0].model = (prony_dtype)to;
    outputs[0].rounded = inputs[0]->rounded;
    *done = true;
    return PRONY_OK;
}

static bool gives_up(prony_status status)
{
    return status == PRONY_OUT_OF_MEMORY || status == PRONY_CANCELLED || status == PRONY_LIMIT;
}

/* Tries the node's own float64 forms, then the operator's kernels with as many inputs in float64 as they accept. */
prony_status prn_reference_run(const prn_reference *r, const prn_node_def *node, const prn_f64_tensor *const *inputs,
                               prn_f64_tensor *outputs, const char **why, prony_error *error)
{
    prony_error unused = {0};
    bool done = false;
    *why = prn_reference_refuses(node);
    if (*why) return PRONY_OK;
    PRN_TRY(prn_cancel_check(error));
    if (node->child_count) return prn_reference_control(r, node, inputs, outputs, why, error);
    if (is_own_row(node)) {
        PRN_TRY(cast_to_float(r, node, inputs, outputs, &done, error));
        if (!done) PRN_TRY(prn_reference_codes(r, node, inputs, outputs, &done, error));
        if (!done) PRN_TRY(prn_reference_conv(r, node, inputs, outputs, &done, error));
        if (done) return PRONY_OK;
    }
    /* First all inputs in float64; then the data alone, if parameters have their own type (Resize); then none. */
    static const uint32_t attempts[] = {UINT32_MAX, 1, 0};
    for (size_t i = is_own_row(node) ? 0 : 2; i < sizeof attempts / sizeof attempts[0]; i++) {
        unused = (prony_error){0};
        prony_status status = try_node(r, node, inputs, attempts[i], outputs, &unused);
        if (status == PRONY_OK) return PRONY_OK;
        if (!gives_up(status)) continue;
        if (error) *error = unused;
        return status;
    }
    *why = "its reference run failed";
    return PRONY_OK;
}
