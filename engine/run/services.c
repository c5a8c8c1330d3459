/* The engine services. Subgraphs are bound when their node is first inferred, planned with the outer plan, and run
 * inside the outer step with buffers of their own in the outer arena. */
#include "base/memory/alloc.h"
#include "base/memory/stack.h"
#include "base/threads/cancel.h"
#include "engine/bind/node.h"
#include "engine/run/services.h"
#include "engine/run/dynamic_tensor.h"
#include "loaders/images/image.h"

#include <string.h>

static prn_child *child_of(const prony_context *context, const struct prn_graph *graph,
                           const prn_node_environment **site)
{
    *site = context->services_data;
    if (!*site || !(*site)->node) return NULL;
    int c = prn_node_child((*site)->node, graph);
    return c < 0 ? NULL : &(*site)->node->children[c];
}

static prony_status no_child(const prony_context *context)
{
    return prony_fail(context, PRONY_INTERNAL, "has no such subgraph at this point");
}

/* ---- packed weights ---- */

enum { LARGE_BYTES = 8 << 20 }; /* of a weight */

typedef struct pack_call {
    const prony_context *context;
    const prony_value *constant; /* the packed constant; NULL: not an input of the step */
    prn_pack_fn *build;
    void *argument;
    bool built;
} pack_call;

static prony_status services_build_packed(void *argument, void *data)
{
    pack_call *call = argument;
    return call->build(call->context, call->argument, data);
}

/* Frees memory before a run packs a large weight, because the plain weight exists beside it. */
static void services_make_room(prn_arena *arena, size_t bytes)
{
    if (!arena || bytes < LARGE_BYTES) return;
    prn_arena_lock(arena);
    prn_arena_trim(arena);
    prn_arena_unlock(arena);
}

/* Packs a weight, then releases its file pages; other readers load them again. */
static prony_status build_shared(void *argument, void *data)
{
    pack_call *call = argument;
    const prn_node_environment *site = call->context->services_data;
    if (call->constant && site->plan) services_make_room(site->plan->memory.arena, prn_value_bytes(call->constant));
    prony_status status = services_build_packed(argument, data);
    call->built = true;
    if (call->constant && prn_value_bytes(call->constant) >= PRN_DEFER_BYTES)
        prn_model_forget(site->program->model->file, call->constant->data, prn_value_bytes(call->constant));
    return status;
}

/* The constant input of the step that contains `source`. A packed form is found by its source's address, so the address
 * must mean the same bytes for the plan's lifetime. NULL: none. */
static const prn_plan_value *constant_at(prn_node_environment *site, const void *source)
{
    if (!site->plan || !site->step) return NULL;
    for (size_t i = 0; i < site->step->context.input_count; i++) {
        uint32_t id = site->step->inputs[i];
        if (id == PRN_NO_VALUE || !site->plan->values[id]->constant) continue;
        const prony_value *value = &site->plan->values[id]->value;
        uintptr_t distance = (uintptr_t)source - (uintptr_t)value->data;
        if ((uintptr_t)source < (uintptr_t)value->data || distance >= prn_value_bytes(value)) continue;
        if (i < 32) site->packed |= UINT32_C(1) << i;
        return site->plan->values[id];
    }
    return NULL;
}

static prony_status pack_once(const prony_context *context, prn_packings *once, size_t bytes, pack_call *call,
                              const void **out)
{
    if (!PRN_GROW(once->blocks, once->capacity, once->count + 1)) return prn_no_memory(context->error);
    void *block = prn_alloc_aligned(64, bytes ? bytes : 1);
    if (!block) return prn_no_memory(context->error);
    once->blocks[once->count++] = block;
    *out = block;
    return services_build_packed(call, block);
}

static prony_status services_get_packed(const prony_context *context, const void *source, const prn_pack_key *key,
                                        size_t bytes, void *argument, const void **out)
{
    prn_node_environment *site = context->services_data;
    const prn_plan_value *constant = site ? constant_at(site, source) : NULL;
    pack_call call = {
        .context = context, .constant = constant ? &constant->value : NULL, .build = key->build, .argument = argument};
    if (site && site->once && !constant) return pack_once(context, site->once, bytes, &call, out);
    if (!site || !site->program) return no_child(context);
    prn_weight_cache_refs *refs = site->plan ? &site->plan->refs : &site->program->refs;
    const prn_weight_cache_form form = {.source = source,
                                        .key = key,
                                        .bytes = bytes,
                                        .from = constant ? constant->shared : NULL,
                                        .threads = context->threads,
                                        .build = build_shared,
                                        .argument = &call};
    prony_status status = prn_weight_cache_get(site->program->model->shared, refs, &form, out, context->error);
    if (call.built && site->once)
        prn_weight_cache_resolve(site->program->model->shared); /* planning releases it at its end */
    return status;
}

static void services_release_range(const prony_context *context, const void *from, size_t bytes)
{
    prn_node_environment *site = context->services_data;
    const prn_plan_value *constant = site ? constant_at(site, from) : NULL;
    if (!constant || !site->program) return;
    if (prn_weight_cache_lazy(constant->shared))
        prn_weight_cache_pass(constant->shared, from, bytes);
    else
        prn_model_forget(site->program->model->file, from, bytes);
}

/* Readers of a constant that are visited; bounded, so that sharing does not cost quadratic time. */
enum { MOST_READERS = 256 };

static bool serves_other_extents(const prony_context *context, size_t input)
{
    const prn_node_environment *site = context->services_data;
    if (!site || !site->program || !site->node || input >= site->node->input_count || !context->inputs[0]) return false;
    const uint32_t value = site->node->inputs[input];
    if (value == PRN_NO_VALUE) return false;
    int looked_at = 0;
    for (const prn_use *use = site->program->values[value]->places; use && looked_at < MOST_READERS;
         use = use->next, looked_at++) {
        const prn_node_def *node = use->node;
        if (!node || node == site->node || node->dead || use->child != PRN_NO_CHILD || use->index >= node->input_count)
            continue;
        if (node->inputs[use->index] != value || !node->input_values[0]) continue;
        if (!prn_shape_equal(&node->input_values[0]->shape, &context->inputs[0]->shape)) return true;
    }
    return false;
}

static uint64_t weight_bytes(const prony_context *context)
{
    const prn_node_environment *site = context->services_data;
    return site && site->program ? site->program->weight_bytes : 0;
}

/* ---- subgraphs: binding ---- */

static bool services_same_type(const prony_value *a, const prony_value *b)
{
    return a->kind == b->kind && a->dtype == b->dtype && prn_shape_equal(&a->shape, &b->shape);
}

/* Binds the subgraph for inputs of these types, again if it was bound for others. */
static prony_status bind_child(const prony_context *context, const prn_node_environment *site, prn_child *child,
                               const prony_value *const *inputs, size_t input_count)
{
    prn_program *parent = site->program;
    if (child->program) {
        bool same = child->program->graph->input_count == input_count;
        for (size_t i = 0; i < input_count && same; i++)
            same = services_same_type(&child->program->values[child->program->inputs[i]]->info, inputs[i]);
        if (same) return PRONY_OK;
        *parent->folded_total -= child->folded_bytes;
        prn_program_release(child->program);
        child->program = NULL;
    }
    prony_value *types = prn_calloc(input_count + 1, sizeof *types);
    if (!types) return prn_no_memory(context->error);
    for (size_t i = 0; i < input_count; i++)
        types[i] = (prony_value){.kind = inputs[i]->kind, .dtype = inputs[i]->dtype, .shape = inputs[i]->shape};
    prn_bind_options options = {.inputs = types,
                                .input_count = input_count,
                                .static_only = parent->static_only,
                                .conditional = parent->conditional || strcmp(site->node->info.op_type, "If") == 0,
                                .frame = site->node->frame};
    uint64_t before = *parent->folded_total;
    prony_status status = prn_program_bind(&child->program, parent->model, child->graph, parent, child->captured,
                                           &options, context->error);
    if (status != PRONY_OK) prn_error_name_part(context->error, &site->node->info, child->name);
    child->folded_bytes = *parent->folded_total - before;
    prn_free(types);
    return status;
}

static prony_status subgraph_infer(const prony_context *context, const struct prn_graph *graph,
                                   const prony_value *const *inputs, size_t input_count, prony_value *outputs,
                                   size_t output_count)
{
    const prn_node_environment *site;
    prn_child *child = child_of(context, graph, &site);
    if (!child) return no_child(context);
    if (!site->plan) PRN_TRY(bind_child(context, site, child, inputs, input_count));
    const prn_program *program = child->program;
    if (!program) return no_child(context);
    if (program->output_count != output_count)
        return prony_fail(context, PRONY_INVALID_MODEL, "its subgraph '%s' has %zu outputs, wanted %zu", graph->name,
                          program->output_count, output_count);
    for (size_t k = 0; k < output_count; k++) {
        const prn_value_def *def = program->values[program->outputs[k]];
        outputs[k] = def->info;
        if (!def->constant) outputs[k].data = NULL;
    }
    return PRONY_OK;
}

static prony_status subgraph_cost(const prony_context *context, const struct prn_graph *graph,
                                  const prony_value *const *inputs, size_t input_count, prony_cost *cost)
{
    (void)inputs;
    (void)input_count;
    const prn_node_environment *site;
    prn_child *child = child_of(context, graph, &site);
    if (!child || !child->program) return no_child(context);
    *cost = (prony_cost){0};
    for (size_t l = 0; l < child->program->layer_count; l++) {
        const prony_cost layer = prn_layer_cost(&child->program->layers[l]);
        if (!prn_cost_add(cost, &layer))
            return prony_fail(context, PRONY_LIMIT, "the cost of subgraph '%s' exceeds 64 bits", graph->name);
    }
    return PRONY_OK;
}

static prony_status subgraph_port(const prony_context *context, const struct prn_graph *graph, bool output,
                                  size_t index, size_t *count, prony_value *declared)
{
    const prn_node_environment *site;
    if (!child_of(context, graph, &site)) return no_child(context);
    *count = output ? graph->output_count : graph->input_count;
    if (index >= *count) return PRONY_OK;
    const prony_value_info *port = output ? &graph->outputs[index] : &graph->inputs[index];
    *declared = (prony_value){.kind = port->kind, .dtype = port->dtype, .shape = port->shape};
    return PRONY_OK;
}

/* ---- subgraphs: running ---- */

/* A subgraph must get the types that it was bound for; types not known then are not checked. */
static PRN_OWN_FRAME prony_status services_check_input(const prony_context *context, const prn_program *program,
                                                       size_t i, const prony_value *given)
{
    const prn_value_def *def = program->values[program->inputs[i]];
    const prony_value *bound = &def->info;
    bool open = bound->kind == PRONY_TENSOR && bound->dtype == PRONY_UNDEFINED;
    if (open || (bound->kind == given->kind &&
                 (bound->dtype == PRONY_UNDEFINED || bound->dtype == given->dtype ||
                  (given->kind != PRONY_TENSOR && given->dtype == PRONY_UNDEFINED)) &&
                 (!prn_shape_known(&bound->shape) || prn_shape_equal(&bound->shape, &given->shape))))
        return PRONY_OK;
    char came[PRN_SHAPE_TEXT_BYTES], wanted[PRN_SHAPE_TEXT_BYTES];
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "'%s' of its subgraph is %s now, but was planned as %s", def->name,
                      prn_value_text(given, came), prn_value_text(bound, wanted));
}

/* A captured value may have several forms in the outer plan; assigning layouts ensured that the model's form exists. */
static const prony_value *captured_value(const prn_plan *outer, uint32_t v)
{
    while (v != PRN_NO_VALUE && !prn_plan_is_plain(outer->values[v])) v = outer->values[v]->variant;
    return v == PRN_NO_VALUE ? NULL : &outer->values[v]->value;
}

static PRN_OWN_FRAME prony_status enter_child(const prony_context *context, const prn_node_environment *site,
                                              const prn_child *child, prn_plan *plan, const prony_value *const *inputs,
                                              size_t input_count)
{
    const prn_program *program = child->program;
    for (size_t i = 0; i < program->input_count; i++) {
        prn_plan_value *value = plan->values[program->inputs[i]];
        if (value->constant) continue;
        const prony_value *source =
            i < input_count ? inputs[i] : captured_value(site->plan, child->captured[i - input_count]);
        if (!source) return no_child(context);
        PRN_TRY(services_check_input(context, program, i, source));
        value->value = *source;
    }
    const prn_step *step = site->step;
    uint32_t first = PRN_NO_VALUE;
    for (size_t k = 0; k < step->context.output_count && first == PRN_NO_VALUE; k++) first = step->outputs[k];
    plan->memory.arena = site->plan->memory.arena;
    plan->nested.value = prn_dynamic_tensor_owner(site, first);
    plan->nested.step = prn_dynamic_tensor_step(site->plan, step->index);
    prn_plan_point(plan, plan->memory.base);
    return PRONY_OK;
}

static prony_status subgraph_run(const prony_context *context, const struct prn_graph *graph,
                                 const prony_value *const *inputs, size_t input_count, prony_value *outputs,
                                 size_t output_count)
{
    const prn_node_environment *site;
    const prn_child *child = child_of(context, graph, &site);
    if (!child || !site->step || !site->step->children) return no_child(context);
    prn_plan *plan = site->step->children[child - site->node->children];
    if (!plan || child->program->output_count != output_count ||
        child->program->input_count != input_count + child->captured_count)
        return no_child(context);
    PRN_TRY(prn_stack_check(context->error));
    prn_plan_forget(plan);
    PRN_TRY(enter_child(context, site, child, plan, inputs, input_count));
    plan->nested.trips++;
    prony_status status = prn_plan_run(plan, NULL, context->error);
    if (status != PRONY_OK) {
        prn_error_name_part(context->error, &site->node->info, child->name);
        return status;
    }
    for (size_t k = 0; k < output_count; k++) outputs[k] = plan->values[plan->outputs[k]]->value;
    return PRONY_OK;
}

static int64_t trip_limit(const prony_context *context)
{
    const prn_node_environment *site = context->services_data;
    int64_t limit = site && site->plan ? site->plan->options.max_loop_trips : 0;
    return limit > 0 ? limit : INT64_C(1) << 31;
}

/* ---- values ---- */

static const prn_node_environment *running_site(const prony_context *context)
{
    const prn_node_environment *site = context->services_data;
    return site && site->plan && site->step ? site : NULL;
}

static prony_status not_running(const prony_context *context)
{
    return prony_fail(context, PRONY_INTERNAL, "asks for run-time memory outside a run");
}

static prony_status work_add(const prony_context *context, const prony_cost *cost)
{
    const prn_node_environment *site = running_site(context);
    if (!site) return not_running(context);
    if (!site->step->work.executed || prn_cost_add(site->step->work.executed, cost)) return PRONY_OK;
    return prony_fail(context, PRONY_LIMIT, "the cost of what was executed exceeds 64 bits");
}

/* The owner of memory that an operator takes for no particular output. */
static uint32_t first_output(const prn_node_environment *site)
{
    for (size_t k = 0; k < site->step->context.output_count; k++)
        if (site->step->outputs[k] != PRN_NO_VALUE) return site->step->outputs[k];
    return PRN_NO_VALUE;
}

static prony_status output_alloc(const prony_context *context, size_t index)
{
    const prn_node_environment *site = running_site(context);
    if (!site || index >= context->output_count || !context->outputs[index]) return not_running(context);
    prony_value *value = context->outputs[index];
    if (prn_value_bytes(value) == SIZE_MAX) return prony_fail(context, PRONY_LIMIT, "output %zu is too large", index);
    return prn_dynamic_tensor_take(site, value, site->step->outputs[index], context->error);
}

static prony_status value_take(const prony_context *context, prony_value *value)
{
    const prn_node_environment *site = running_site(context);
    if (!site) return not_running(context);
    return prn_dynamic_tensor_take(site, value, first_output(site), context->error);
}

static prony_status items_take(const prony_context *context, prony_value *value, size_t count)
{
    const prn_node_environment *site = running_site(context);
    if (!site) return not_running(context);
    return prn_dynamic_tensor_take_items(site, value, count, first_output(site), context->error);
}

static prony_status value_keep(const prony_context *context, const prony_value *from, prony_value *out)
{
    const prn_node_environment *site = running_site(context);
    if (!site) return not_running(context);
    return prn_dynamic_tensor_keep(site, from, out, first_output(site), context->error);
}

static prony_status items_append(const prony_context *context, const prony_value *from, prony_value *out)
{
    const prn_node_environment *site = running_site(context);
    if (!site) return not_running(context);
    return prn_dynamic_tensor_append(site, from, out, first_output(site), context->error);
}

static bool items_shorten(const prony_context *context, const prony_value *from, prony_value *out)
{
    const prn_node_environment *site = running_site(context);
    return site && prn_dynamic_tensor_shorten(site, from, out);
}

static void value_drop(const prony_context *context, prony_value *value)
{
    const prn_node_environment *site = running_site(context);
    if (site)
        prn_dynamic_tensor_drop(site->plan->memory.arena, value,
                                prn_dynamic_tensor_step(site->plan, site->step->index));
}

static prony_status output_set(const prony_context *context, size_t index, prony_value *value)
{
    const prn_node_environment *site = running_site(context);
    if (!site || index >= context->output_count) return not_running(context);
    prony_value *out = context->outputs[index];
    if (!out) {
        value_drop(context, value);
        return PRONY_OK;
    }
    if (site->plan->values[site->step->outputs[index]]->dynamic) {
        value_drop(context, out);
        *out = *value;
        *value = (prony_value){0};
        return PRONY_OK;
    }
    if (!services_same_type(out, value)) {
        char came[PRN_SHAPE_TEXT_BYTES], wanted[PRN_SHAPE_TEXT_BYTES];
        return prony_fail(context, PRONY_INTERNAL, "output %zu is %s, planned as %s", index,
                          prn_value_text(value, came), prn_value_text(out, wanted));
    }
    size_t bytes = prn_value_bytes(out);
    prn_cancellable_copy(out->data, value->data, bytes);
    value_drop(context, value);
    return PRONY_OK;
}

static prony_status text_take(const prony_context *context, size_t bytes, char **text)
{
    const prn_node_environment *site = running_site(context);
    if (!site) return not_running(context);
    prony_value raw = {.dtype = PRONY_UINT8, .shape = {1, {(int64_t)bytes}}};
    PRN_TRY(prn_dynamic_tensor_take(site, &raw, first_output(site), context->error));
    *text = raw.data;
    return PRONY_OK;
}

static prony_status image_decode(const prony_context *context, const void *bytes, size_t size, prn_pixels *out)
{
    prony_error error = {0};
    prn_image image;
    *out = (prn_pixels){0};
    const prony_status status = prn_image_decode(&image, bytes, size, 0, &error);
    if (status == PRONY_INVALID_ARGUMENT) return PRONY_OK;
    if (status == PRONY_OUT_OF_MEMORY) return prn_no_memory(context->error);
    if (status != PRONY_OK) return prony_fail(context, status, "%s", error.message);
    *out = (prn_pixels){image.pixels, image.height, image.width, image.channels};
    return PRONY_OK;
}

static void image_drop(prn_pixels *image)
{
    prn_free(image->data);
    *image = (prn_pixels){0};
}

const prn_services prn_engine_services = {.packed = services_get_packed,
                                          .release_range = services_release_range,
                                          .serves_other_extents = serves_other_extents,
                                          .weight_bytes = weight_bytes,
                                          .subgraph_infer = subgraph_infer,
                                          .subgraph_cost = subgraph_cost,
                                          .subgraph_run = subgraph_run,
                                          .output_alloc = output_alloc,
                                          .subgraph_port = subgraph_port,
                                          .value_take = value_take,
                                          .items_take = items_take,
                                          .items_append = items_append,
                                          .items_shorten = items_shorten,
                                          .value_keep = value_keep,
                                          .value_drop = value_drop,
                                          .output_set = output_set,
                                          .text_take = text_take,
                                          .trip_limit = trip_limit,
                                          .work_add = work_add,
                                          .image_decode = image_decode,
                                          .image_drop = image_drop};
