/* Constants of a program: initializers, Constant nodes, and nodes that depend on constants alone, which are evaluated
 * while binding. Results are interned by content and held by the program's references. */
#include "base/memory/budget.h"
#include "base/threads/cancel.h"
#include "engine/bind/bind_pass.h"
#include "engine/bind/node.h"

#include <string.h>

/* Static programs read constants up to this size only: enough for shapes, no weights. Chosen without measurement. */
#define PRN_STATIC_READ_BYTES 65536

static prony_status bind_constants_add_weight(prn_bind_pass *b, prn_value_def *value)
{
    prn_program *p = b->program;
    int64_t elements = prony_shape_numel(&value->info.shape);
    if (p->weight_count >= PRN_NO_WEIGHT || !PRN_GROW(p->weights, p->weight_capacity, p->weight_count + 1))
        return prn_no_memory(b->error);
    p->weights[p->weight_count] = (prn_weight){.elements = elements > 0 ? (uint64_t)elements : 0,
                                               .bytes = prn_value_bytes(&value->info),
                                               .dtype = value->info.dtype,
                                               .rank = value->info.shape.rank,
                                               .bits = (unsigned)prn_dtype_bits(value->info.dtype)};
    p->weight_bytes += p->weights[p->weight_count].bytes;
    value->weight = (uint32_t)p->weight_count++;
    return PRONY_OK;
}

typedef struct copy_source {
    const void *data;
    size_t bytes;
} copy_source;

static prony_status bind_constants_copy_bytes(void *argument, void *data)
{
    const copy_source *source = argument;
    prn_cancellable_copy(data, source->data, source->bytes);
    return PRONY_OK;
}

/* Data of an empty constant: NULL would mean that its data is not known yet. */
static const _Alignas(64) uint8_t no_elements[64];

static prony_status bind_constants_align(prn_bind_pass *b, prn_value_def *value, size_t width)
{
    prn_program *p = b->program;
    const void *copy;
    copy_source source = {value->info.data, prn_value_bytes(&value->info)};
    if (prn_lazy_constant_profitable(&value->info)) {
        const prn_lazy_constant recipe = {.kind = PRN_LAZY_COPY,
                                          .width = width,
                                          .count = prony_shape_numel(&value->info.shape),
                                          .source = source.data,
                                          .file = p->model->file};
        PRN_TRY(prn_weight_cache_defer(p->model->shared, &p->refs, &recipe, NULL, &value->shared, b->error));
        value->info.data = prn_weight_cache_data(value->shared);
        return PRONY_OK;
    }
    const prn_pack_key as_they_are = {0};
    const prn_weight_cache_form form = {.source = source.data,
                                        .key = &as_they_are,
                                        .bytes = source.bytes,
                                        .build = bind_constants_copy_bytes,
                                        .argument = &source};
    PRN_TRY(prn_weight_cache_get(p->model->shared, &p->refs, &form, &copy, b->error));
    value->info.data = (void *)(uintptr_t)copy;
    return PRONY_OK;
}

prony_status prn_bind_constant(prn_bind_pass *b, uint32_t id, const prony_value *tensor)
{
    prn_program *p = b->program;
    prn_value_def *value = p->values[id];
    size_t width = prony_dtype_bytes(tensor->dtype, 1);
    size_t bytes = prn_value_bytes(tensor);
    if (width > 8) width = 8;
    value->info = *tensor;
    value->constant = true;
    bool aligned = width == 0 || (uintptr_t)tensor->data % width == 0;
    if (p->static_only && bytes > PRN_STATIC_READ_BYTES)
        value->info.data = NULL;
    else if (bytes == 0)
        value->info.data = (void *)(uintptr_t)no_elements;
    else if (!aligned)
        PRN_TRY(bind_constants_align(b, value, width));
    return bind_constants_add_weight(b, value);
}

static bool inputs_constant(const prn_bind_pass *b, const prn_node_def *node, bool *data_there)
{
    *data_there = true;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == PRN_NO_VALUE) continue;
        const prn_value_def *value = b->program->values[node->inputs[i]];
        if (!value->constant) return false;
        if (!value->info.data && prony_shape_numel(&value->info.shape) != 0) *data_there = false;
    }
    return true;
}

static prony_status run_into(prn_bind_pass *b, prn_node_def *node, prony_value *made)
{
    prony_context context = prn_node_context(b->program, node, b->error);
    prony_value **pointers = prn_calloc(node->output_count + 1, sizeof *pointers);
    prony_status status = pointers ? PRONY_OK : prn_no_memory(b->error);
    for (uint32_t k = 0; status == PRONY_OK && k < node->output_count; k++) {
        if (!node->output_values[k]) continue;
        made[k] = *node->output_values[k];
        pointers[k] = &made[k];
        size_t bytes = prn_value_bytes(&made[k]);
        made[k].data = prn_alloc_aligned(64, bytes ? bytes : 1);
        if (!made[k].data) status = prn_no_memory(b->error);
    }
    if (status == PRONY_OK) {
        context.outputs = pointers;
        status = prn_node_run_once(node, &context, NULL);
        if (prn_cancelled()) status = prn_bind_cancelled(b, &node->info);
    }
    for (uint32_t k = 0; status != PRONY_OK && k < node->output_count; k++) {
        prn_free_aligned(made[k].data);
        made[k].data = NULL;
    }
    prn_free(pointers);
    return status;
}

static prony_status hold_inputs(prn_bind_pass *b, const prn_node_def *node)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != PRN_NO_VALUE) PRN_TRY(prn_program_hold(b->program, node->inputs[i], b->error));
    return PRONY_OK;
}

prony_status prn_bind_hold_for_user(prn_bind_pass *b, const prn_node_def *node)
{
    const prn_operator_binding *binding = &node->binding;
    if (!b->program->model->registry || !binding->op) return PRONY_OK;
    const bool own = binding->op == prn_op_find(node->info.domain, node->info.op_type, node->info.opset) &&
                     binding->infer == binding->op->infer && binding->cost == binding->op->cost;
    return own ? PRONY_OK : hold_inputs(b, node);
}

/* Pins the node's inputs while it is evaluated, then unpins them. */
prony_status prn_bind_evaluate(prn_bind_pass *b, prn_node_def *node, prony_value *made)
{
    prn_program *p = b->program;
    const size_t held = p->refs.held_count;
    prony_status status = hold_inputs(b, node);
    if (status == PRONY_OK) status = run_into(b, node, made);
    prn_weight_cache_unpin(p->model->shared, &p->refs, held);
    for (uint32_t i = 0; i < node->input_count; i++) {
        const prony_value *in = node->input_values[i];
        if (in && prn_lazy_constant_profitable(in)) prn_model_forget(p->model->file, in->data, prn_value_bytes(in));
    }
    return status;
}

static prony_status bind_constants_evaluate(prn_bind_pass *b, prn_node_def *node)
{
    prony_value *made = prn_calloc(node->output_count + 1, sizeof *made);
    if (!made) return prn_no_memory(b->error);
    prony_status status = prn_bind_evaluate(b, node, made);
    for (uint32_t k = 0; status == PRONY_OK && k < node->output_count; k++) {
        if (!node->output_values[k]) continue;
        prn_value_def *value = b->program->values[node->outputs[k]];
        status = prn_weight_cache_intern(b->program->model->shared, &b->program->refs, made[k].data,
                                         prn_value_bytes(&made[k]), &value->shared, b->error);
        made[k].data = NULL;
        if (status == PRONY_OK) value->info.data = prn_weight_cache_data(value->shared);
    }
    for (uint32_t k = 0; k < node->output_count; k++) prn_free_aligned(made[k].data);
    prn_free(made);
    return status;
}

static bool is_matrix_transpose(const prn_node_def *node)
{
    const prn_attr *perm = prn_attr_find(node->info.attributes, "perm");
    return node->binding.op == prn_op_find("", "Transpose", node->info.opset) &&
           node->input_values[0]->shape.rank == 2 && (!perm || perm->ints[0] == 1);
}

/* Derives the node's first output without reading its data: it is the bytes of the input, or a deferred constant made
 * from them. */
static prony_status bind_constants_derive(prn_bind_pass *b, prn_node_def *node, bool *done)
{
    prn_program *p = b->program;
    if (node->input_count < 1 || node->inputs[0] == PRN_NO_VALUE || node->outputs[0] == PRN_NO_VALUE) return PRONY_OK;
    const prn_value_def *from = p->values[node->inputs[0]];
    prn_value_def *to = p->values[node->outputs[0]];
    for (uint32_t k = 1; k < node->output_count; k++)
        if (node->outputs[k] != PRN_NO_VALUE) return PRONY_OK;
    if (node->binding.op->flags & PRN_OP_VIEW) {
        *done = true;
        to->info.data = from->info.data;
        to->shared = from->shared;
        return PRONY_OK;
    }
    if (!is_matrix_transpose(node) || !prn_lazy_constant_profitable(&to->info)) return PRONY_OK;
    prn_lazy_constant recipe = {.kind = PRN_LAZY_TRANSPOSE,
                                .width = prony_dtype_bytes(to->info.dtype, 1),
                                .count = prony_shape_numel(&to->info.shape),
                                .source = from->info.data,
                                .file = p->model->file,
                                .rows = from->info.shape.dim[0],
                                .columns = from->info.shape.dim[1]};
    prn_weight_cache_entry *source = prn_weight_cache_source(from->shared, &recipe);
    PRN_TRY(prn_weight_cache_defer(p->model->shared, &p->refs, &recipe, source, &to->shared, b->error));
    to->info.data = prn_weight_cache_data(to->shared);
    *done = true;
    return PRONY_OK;
}

/* true: the node stays run-time work. Constants that follow from changing extents are evaluated again for each set, so
 * this is limited to small ones, such as shapes. Larger ones (masks, positions) are computed by the run. */
static bool stays_work(const prn_bind_pass *b, const prn_node_def *node)
{
    for (uint32_t k = 0; k < node->output_count; k++) {
        if (!node->output_values[k] || !prn_dynamic_dims_affect(b->program->values[node->outputs[k]]->extents))
            continue;
        const prony_value *out = node->output_values[k];
        bool counts = out->dtype == PRONY_INT64 || out->dtype == PRONY_INT32 || out->dtype == PRONY_BOOL;
        if (prony_shape_numel(&out->shape) > (counts ? 256 : 16)) return true;
    }
    return false;
}

/* Makes the outputs constants if inputs, operator and limits allow it: derived, evaluated or, in static programs,
 * without data. Otherwise leaves the node as run-time work. */
prony_status prn_bind_fold(prn_bind_pass *b, prn_node_def *node)
{
    const prn_op *op = node->binding.op;
    prn_program *p = b->program;
    if (node->dynamic || !op || (op->flags & PRN_OP_ONCE_PER_RUN) || node->child_count > 0 || stays_work(b, node))
        return PRONY_OK;
    bool data_there = true;
    bool shape_only = op->flags & PRN_OP_SHAPE_ONLY;
    if (!shape_only && !inputs_constant(b, node, &data_there)) return PRONY_OK;
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < node->output_count; k++) {
        const prony_value *out = node->output_values[k];
        if (!out) continue;
        if (out->kind != PRONY_TENSOR || out->dtype == PRONY_STRING || out->dtype == PRONY_UNDEFINED) return PRONY_OK;
        if (!prn_add_u64(&bytes, bytes, prn_value_bytes(out))) return PRONY_OK;
    }
    if (bytes > prn_budget_room() / 2) return PRONY_OK;
    bool done = false;
    prony_status status = PRONY_OK;
    if (data_there && !p->static_only && !shape_only) status = bind_constants_derive(b, node, &done);
    if (status == PRONY_OK && !done) {
        if (bytes > PRN_FOLD_LIMIT_BYTES || *p->folded_total > PRN_FOLD_LIMIT_BYTES - bytes) return PRONY_OK;
        if (data_there && (!p->static_only || bytes <= PRN_STATIC_READ_BYTES)) {
            status = bind_constants_evaluate(b, node);
            if (status == PRONY_OK) *p->folded_total += bytes;
        }
    }
    if (status == PRONY_LIMIT) { /* too large to evaluate now: it stays run-time work */
        if (b->error) *b->error = (prony_error){0};
        return PRONY_OK;
    }
    PRN_TRY(status);
    for (uint32_t k = 0; k < node->output_count; k++) {
        if (node->outputs[k] == PRN_NO_VALUE) continue;
        prn_value_def *value = p->values[node->outputs[k]];
        value->constant = true;
        if (!shape_only) value->folded_from = value->producer;
        value->producer = PRN_NO_NODE;
    }
    node->dead = node->folded = true;
    return PRONY_OK;
}

prony_status prn_bind_constant_node(prn_bind_pass *b, prn_node_def *node, bool *done)
{
    const prn_attr *value = prn_attr_find(node->info.attributes, "value");
    if (strcmp(node->info.op_type, "Constant") != 0 || *node->info.domain || !value || value->type != PRN_ATTR_TENSOR ||
        node->output_count != 1 || node->outputs[0] == PRN_NO_VALUE)
        return PRONY_OK;
    *done = true;
    node->dead = true;
    return prn_bind_constant(b, node->outputs[0], value->tensor);
}
