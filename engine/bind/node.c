#include "engine/bind/node.h"
#include "base/memory/stack.h"
#include "engine/bind/node_environment.h"

enum {
    FEW_INPUTS = 16,    /* compared pairwise; more use a table */
    FEW_VALUES = 16,    /* operands that a kernel run once may need in other layouts */
    REORDERED_MACS = 32 /* multiply-adds per element from which reordering pays; chosen without measurement */
};

prony_context prn_node_context(const prn_program *program, const prn_node_def *node, prony_error *error)
{
    return (prony_context){.node = &node->info,
                           .params = node->params,
                           .user = node->binding.run_user,
                           .input_count = node->input_count,
                           .output_count = node->output_count,
                           .inputs = node->input_values,
                           .outputs = node->output_values,
                           .threads = 1,
                           .post_ops = node->post_ops,
                           .services = program->model->services,
                           .error = error};
}

static prony_status add_read(const prony_context *context, size_t i, prony_cost *cost)
{
    const prony_value *in = context->inputs[i];
    if (in->kind != PRONY_TENSOR || !prn_shape_known(&in->shape)) return PRONY_OK;
    size_t bytes = prn_value_bytes(in);
    if (bytes == SIZE_MAX || !prn_add_u64(&cost->bytes_read, cost->bytes_read, bytes))
        return prony_fail(context, PRONY_LIMIT, "the bytes of input %zu exceed 64 bits", i);
    return PRONY_OK;
}

/* Adds the bytes read. A value read several times counts once; many inputs are looked up in a table. */
static prony_status node_add_reads(const prony_context *context, prony_cost *cost)
{
    size_t count = context->input_count, slots = 64;
    if (count <= FEW_INPUTS) {
        for (size_t i = 0; i < count; i++) {
            bool again = !context->inputs[i];
            for (size_t j = 0; j < i && !again; j++) again = context->inputs[j] == context->inputs[i];
            if (!again) PRN_TRY(add_read(context, i, cost));
        }
        return PRONY_OK;
    }
    while (slots < 2 * count) slots *= 2;
    const prony_value **seen = prn_calloc(slots, sizeof *seen);
    if (!seen) return prn_no_memory(context->error);
    prony_status status = PRONY_OK;
    for (size_t i = 0; i < count && status == PRONY_OK; i++) {
        const prony_value *in = context->inputs[i];
        if (!in) continue;
        size_t at = (size_t)((uintptr_t)in / 16 * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (slots - 1);
        while (seen[at] && seen[at] != in) at = (at + 1) & (slots - 1);
        if (seen[at] == in) continue;
        seen[at] = in;
        status = add_read(context, i, cost);
    }
    prn_free(seen);
    return status;
}

prony_status prn_node_cost(const prn_node_def *node, const prony_context *context, prony_cost *cost)
{
    *cost = (prony_cost){0};
    PRN_TRY(node_add_reads(context, cost));
    for (size_t k = 0; k < context->output_count; k++) {
        const prony_value *out = context->outputs[k];
        if (!out || out->kind != PRONY_TENSOR || !prn_shape_known(&out->shape)) continue;
        size_t bytes = prn_value_bytes(out);
        if (bytes == SIZE_MAX || !prn_add_u64(&cost->bytes_written, cost->bytes_written, bytes))
            return prony_fail(context, PRONY_LIMIT, "the bytes of output %zu exceed 64 bits", k);
    }
    prony_context c = *context;
    c.user = node->binding.cost_user;
    PRN_TRY(node->binding.cost(&c, cost));
    return prn_cost_facts_check(&c, cost);
}

const prn_kernel *prn_node_kernel(const prn_node_def *node, const prony_context *context, bool plain_only)
{
    return prn_op_kernel(node->binding.op, context, plain_only, NULL);
}

static prony_status node_hold_constants(const prn_kernel *kernel, const prony_context *context, bool prepared)
{
    const prn_node_environment *site = context->services_data;
    return site->hold ? site->hold(context, kernel, prepared) : PRONY_OK;
}

static prony_status run_kernel(const prn_kernel *kernel, prony_context *context)
{
    prn_prepared prepared = {0};
    PRN_TRY(node_hold_constants(kernel, context, false));
    if (kernel->prepare) PRN_TRY(kernel->prepare(context, &prepared));
    prony_status status = node_hold_constants(kernel, context, true);
    void *scratch = prn_no_bytes();
    if (status == PRONY_OK && prepared.scratch_bytes) {
        scratch = prn_alloc_aligned(64, prepared.scratch_bytes);
        if (!scratch) {
            status = prn_no_memory(context->error);
            prn_error_prefix(context->error, "working space");
        }
    }
    context->state = prepared.state;
    context->scratch = scratch;
    context->scratch_bytes = prepared.scratch_bytes;
    if (status == PRONY_OK) status = kernel->run(context);
    context->state = NULL;
    context->scratch = NULL;
    if (scratch != prn_no_bytes()) prn_free_aligned(scratch);
    if (kernel->release) kernel->release(prepared.state);
    return status;
}

static PRN_OWN_FRAME prony_status node_no_kernel(const prony_context *context)
{
    char text[PRN_SHAPE_TEXT_BYTES];
    const prony_value *first = prn_input(context, 0);
    return prony_fail(context, PRONY_UNSUPPORTED, "no kernel takes %s", first ? prn_value_text(first, text) : "it");
}

bool prn_node_makes_nothing(const prn_node_def *node, const prony_context *context)
{
    if (context->output_count == 0 || node->child_count || (node->binding.op->flags & PRN_OP_ONCE_PER_RUN))
        return false;
    for (size_t k = 0; k < context->output_count; k++) {
        const prony_value *out = context->outputs[k];
        if (out && (out->kind != PRONY_TENSOR || !prn_shape_known(&out->shape) || prony_shape_numel(&out->shape) != 0))
            return false;
    }
    return true;
}

/* ---- a kernel with layouts of its own, between plain values */

/* true: the node has enough multiply-adds per element to pay for reordering its inputs and outputs. */
static bool reordering_is_profitable(const prn_node_def *node, const prony_context *context)
{
    prony_cost cost;
    int64_t elements = 0;
    if (prn_node_cost(node, context, &cost) != PRONY_OK) return false;
    for (size_t i = 0; i < context->input_count; i++)
        if (context->inputs[i] && !(i < 32 && context->constant_inputs >> i & 1))
            elements += prony_shape_numel(&context->inputs[i]->shape);
    for (size_t k = 0; k < context->output_count; k++)
        if (context->outputs[k]) elements += prony_shape_numel(&context->outputs[k]->shape);
    return elements > 0 && cost.macs / REORDERED_MACS >= (uint64_t)elements;
}

static const prn_kernel *kernel_once(const prn_node_def *node, const prony_context *context)
{
    const prn_kernel *plain = prn_node_kernel(node, context, true), *first = prn_node_kernel(node, context, false);
    if (!first || first == plain || first->memory_space || !first->layouts ||
        context->input_count + context->output_count > FEW_VALUES)
        return plain;
    return !plain || reordering_is_profitable(node, context) ? first : plain;
}

static prony_status node_reorder(const prony_context *context, const prony_value *from, prony_value *to)
{
    static const prn_attr_list no_attributes = {NULL, 0};
    const prony_node info = {
        .op_type = "Reorder", .name = "reorder", .domain = "prony", .opset = 1, .attributes = &no_attributes};
    const prn_operator_binding binding = prn_registry_find(NULL, "prony", "Reorder", 1);
    prony_context c = {.node = &info,
                       .input_count = 1,
                       .output_count = 1,
                       .inputs = &from,
                       .outputs = &to,
                       .scratch = prn_no_bytes(),
                       .threads = context->threads,
                       .services = context->services,
                       .services_data = context->services_data,
                       .error = context->error};
    const prn_kernel *kernel = binding.op ? prn_op_kernel(binding.op, &c, false, NULL) : NULL;
    return kernel ? kernel->run(&c)
                  : prony_fail(context, PRONY_INTERNAL, "no kernel reorders %s",
                               prn_layout_name((prn_layout)from->layout));
}

/* `like` with memory of its own. */
static prony_status take_form(const prony_context *context, const prony_value *like, prn_layout layout,
                              prony_value *form)
{
    *form = *like;
    form->layout = (uint8_t)layout;
    form->data = prn_alloc_aligned(64, prn_layout_bytes(form));
    if (form->data) return PRONY_OK;
    const prony_status status = prn_no_memory(context->error);
    prn_error_prefix(context->error, "working space");
    return status;
}

/* `forms` has room for the inputs and then the outputs; allocated ones have data. */
static prony_status run_on_forms(const prn_kernel *kernel, prony_context *context, const prn_layout *layouts,
                                 prony_value *forms, const prony_value **inputs, prony_value **outputs)
{
    const size_t in_count = context->input_count;
    for (size_t i = 0; i < in_count; i++) {
        inputs[i] = context->inputs[i];
        if (!inputs[i] || layouts[i] == PRN_PLAIN) continue;
        PRN_TRY(take_form(context, inputs[i], layouts[i], &forms[i]));
        PRN_TRY(node_reorder(context, inputs[i], &forms[i]));
        inputs[i] = &forms[i];
    }
    for (size_t k = 0; k < context->output_count; k++) {
        outputs[k] = context->outputs[k];
        if (!outputs[k] || layouts[in_count + k] == PRN_PLAIN) continue;
        PRN_TRY(take_form(context, outputs[k], layouts[in_count + k], &forms[in_count + k]));
        outputs[k] = &forms[in_count + k];
    }
    prony_context inner = *context;
    inner.inputs = inputs;
    inner.outputs = outputs;
    PRN_TRY(run_kernel(kernel, &inner));
    for (size_t k = 0; k < context->output_count; k++)
        if (outputs[k] != context->outputs[k]) PRN_TRY(node_reorder(context, outputs[k], context->outputs[k]));
    return PRONY_OK;
}

static prony_status run_between_plain(const prn_kernel *kernel, prony_context *context)
{
    const size_t in_count = context->input_count, count = in_count + context->output_count;
    prn_layout layouts[FEW_VALUES] = {PRN_PLAIN};
    prony_value forms[FEW_VALUES] = {{0}}, *outputs[FEW_VALUES];
    const prony_value *inputs[FEW_VALUES];
    bool plain = true;
    if (!kernel->layouts || count > FEW_VALUES) return run_kernel(kernel, context);
    kernel->layouts(context, layouts, layouts + in_count);
    for (size_t i = 0; i < count; i++) plain = plain && layouts[i] == PRN_PLAIN;
    if (plain) return run_kernel(kernel, context);
    const prony_status status = run_on_forms(kernel, context, layouts, forms, inputs, outputs);
    for (size_t i = 0; i < count; i++) prn_free_aligned(forms[i].data);
    return status;
}

prony_status prn_node_run_once(const prn_node_def *node, prony_context *context, const prn_kernel **chosen)
{
    const prn_kernel *kernel = chosen && *chosen ? *chosen : kernel_once(node, context);
    if (chosen) *chosen = kernel;
    if (!kernel) return node_no_kernel(context);
    if (prn_node_makes_nothing(node, context)) return PRONY_OK;
    prn_packings once = {0};
    prn_node_environment *outer = context->services_data, site = {0};
    if (outer) site = *outer;
    site.once = &once;
    context->services_data = &site;
    prony_status status = run_between_plain(kernel, context);
    context->services_data = outer;
    for (size_t i = 0; i < once.count; i++) prn_free_aligned(once.blocks[i]);
    prn_free(once.blocks);
    return status;
}

prony_status prn_node_check_kind(const prony_context *context, const prn_node_def *node, size_t i)
{
    static const char *const kinds[] = {"a tensor", "a sequence", "an optional"};
    const prony_value *in = context->inputs[i];
    if (!in || in->kind == PRONY_TENSOR || (node->binding.op->flags & PRN_OP_OPEN)) return PRONY_OK;
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is %s, wanted a tensor", i, kinds[in->kind]);
}

int prn_node_child(const prn_node_def *node, const struct prn_graph *graph)
{
    for (uint32_t c = 0; c < node->child_count; c++)
        if (node->children[c].graph == graph) return (int)c;
    return -1;
}
