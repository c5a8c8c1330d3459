/* Makes steps from a program in one forward walk: chooses kernels, assigns layouts and memory spaces
 * (engine/plan/assign_layouts.c), and prepares states. */
#include "base/memory/alloc.h"
#include "base/memory/stack.h"
#include "base/threads/cancel.h"
#include "engine/bind/node.h"
#include "engine/plan/device_split.h"
#include "engine/plan/plan_reach.h"
#include "engine/plan/planner.h"
#include "engine/plan/step_graph.h"
#include "engine/plan/tune.h"
#include "engine/plan/workers.h"
#include "engine/plan/schedule.h"

#include <stdlib.h>
#include <string.h>

typedef struct planner {
    prn_plan *plan;
    prony_error *error;
    uint32_t node; /* of the program, the one that is planned */
} planner;

/* PRONY_CANCELLED with a message that names `node`, once the work is cancelled. */
static prony_status stopped(prony_error *error, const prony_node *node)
{
    prony_status status = prn_cancel_check(error);
    if (status != PRONY_OK) prn_error_name_node(error, node);
    return status;
}

uint32_t prn_plan_add_value(prn_plan *plan, uint32_t source)
{
    if (plan->value_count >= PRN_NO_VALUE - 1 || !PRN_GROW(plan->values, plan->value_capacity, plan->value_count + 1))
        return PRN_NO_VALUE;
    prn_plan_value *value = prn_bump_alloc(&plan->pool, 1, sizeof *value);
    if (!value) return PRN_NO_VALUE;
    const prn_value_def *def = plan->program->values[source];
    *value = (prn_plan_value){.value = def->info,
                              .source = source,
                              .variant = PRN_NO_VALUE,
                              .alias = PRN_NO_VALUE,
                              .view = PRN_NO_VALUE,
                              .defined = PRN_NO_STEP,
                              .buffer = PRN_NO_BUFFER};
    plan->values[plan->value_count] = value;
    return (uint32_t)plan->value_count++;
}

static PRN_OWN_FRAME prony_status add_values(planner *p)
{
    prn_plan *plan = p->plan;
    for (uint32_t i = 0; i < plan->program->value_count; i++) {
        const prn_value_def *def = plan->program->values[i];
        uint32_t id = prn_plan_add_value(plan, i);
        if (id == PRN_NO_VALUE) return prn_no_memory(p->error);
        prn_plan_value *value = plan->values[id];
        value->constant = def->constant;
        value->shared = def->shared;
        value->input = def->input && !def->constant;
        value->dynamic = !def->constant && !def->input && !prn_shape_known(&def->info.shape);
        value->bytes = value->dynamic ? 0 : prn_layout_bytes(&value->value);
        if (!value->dynamic && !value->input && value->bytes == SIZE_MAX && def->info.dtype != PRONY_UNDEFINED)
            return prn_fail(p->error, PRONY_LIMIT, "value '%s' is too large", def->name);
    }
    return PRONY_OK;
}

/* Invariant: the context's arrays are the step's own, so the plan may later replace inputs by other forms. */
prn_step *prn_plan_add_step(prn_plan *plan, prn_node_def *node, const uint32_t *inputs, uint32_t input_count,
                            const uint32_t *outputs, uint32_t output_count)
{
    prn_step *step = prn_bump_alloc(&plan->pool, 1, sizeof *step);
    if (!step) return NULL;
    step->node = node;
    step->program_node = PRN_NO_NODE;
    step->inputs = prn_bump_alloc(&plan->pool, input_count + 1, sizeof *step->inputs);
    step->outputs = prn_bump_alloc(&plan->pool, output_count + 1, sizeof *step->outputs);
    step->input_values = prn_bump_alloc(&plan->pool, input_count + 1, sizeof *step->input_values);
    step->output_values = prn_bump_alloc(&plan->pool, output_count + 1, sizeof *step->output_values);
    if (!step->inputs || !step->outputs || !step->input_values || !step->output_values) return NULL;
    for (uint32_t i = 0; i < input_count; i++) {
        step->inputs[i] = inputs[i];
        step->input_values[i] = inputs[i] == PRN_NO_VALUE ? NULL : &plan->values[inputs[i]]->value;
    }
    for (uint32_t k = 0; k < output_count; k++) {
        step->outputs[k] = outputs[k];
        step->output_values[k] = outputs[k] == PRN_NO_VALUE ? NULL : &plan->values[outputs[k]]->value;
    }
    step->memory.scratch_buffer = step->memory.children_buffer = PRN_NO_BUFFER;
    step->site = (prn_node_environment){.program = plan->program, .node = node, .plan = plan, .step = step};
    step->context = prn_node_context(plan->program, node, NULL);
    step->context.scratch = prn_no_bytes();
    step->context.inputs = step->input_values;
    step->context.outputs = step->output_values;
    step->context.input_count = input_count;
    step->context.output_count = output_count;
    step->context.threads = prn_plan_most_threads(&plan->options);
    step->context.precision = plan->options.precision;
    step->device.device = plan->options.device;
    step->context.device = &step->device;
    for (uint32_t i = 0; i < input_count && i < 32; i++)
        if (inputs[i] != PRN_NO_VALUE && plan->values[inputs[i]]->constant)
            step->context.constant_inputs |= UINT32_C(1) << i;
    step->context.services_data = &step->site;
    return step;
}

prony_status prn_plan_append_step(prn_plan *plan, prn_step *step, prony_error *error)
{
    if (!PRN_GROW(plan->steps, plan->step_capacity, plan->step_count + 1)) return prn_no_memory(error);
    for (uint32_t k = 0; k < step->context.output_count; k++)
        if (step->outputs[k] != PRN_NO_VALUE) plan->values[step->outputs[k]]->defined = (uint32_t)plan->step_count;
    plan->steps[plan->step_count++] = step;
    return PRONY_OK;
}

void prn_plan_make_view(prn_plan *plan, uint32_t value, uint32_t of)
{
    prn_plan_value *to = plan->values[value];
    const prn_plan_value *from = plan->values[of];
    to->alias = to->view = of;
    to->alias_offset = 0;
    to->defined = from->defined;
    to->constant = from->constant;
    to->shared = from->shared;
    to->value.data = from->value.data;
}

bool prn_plan_may_share(const prn_plan *plan, uint32_t value)
{
    return !plan->options.no_reuse || plan->values[value]->constant;
}

/* ---- nodes ---- */

/* The step of the node that is planned. Operators that stay on the host know no device, nor do their subgraphs. */
static prn_step *planner_add_step(planner *p, prn_node_def *node)
{
    prn_step *step =
        prn_plan_add_step(p->plan, node, node->inputs, node->input_count, node->outputs, node->output_count);
    const prn_device_split *split = p->plan->options.split;
    if (!step) return NULL;
    step->program_node = p->node;
    step->device.stays_on_host = split && split->rows[p->node].reason != PRN_PARTITION_RUNS_THERE;
    return step;
}

/* The step of a view whose bytes may not be shared: its kernel copies them, in the layout that the view has. */
static prony_status copy_view(planner *p, prn_node_def *node, uint32_t from)
{
    prn_step *step = planner_add_step(p, node);
    if (!step) return prn_no_memory(p->error);
    step->inputs[0] = from;
    step->input_values[0] = &p->plan->values[from]->value;
    step->kernel = prn_node_kernel(node, &step->context, false);
    if (!step->kernel) return prn_fail(p->error, PRONY_INTERNAL, "node '%s': no kernel copies a view", node->info.name);
    PRN_TRY(prn_plan_append_step(p->plan, step, p->error));
    return prn_plan_step_cost(p->plan, step, p->error);
}

/* A view keeps the layout if the shape stays, and needs plain bytes otherwise; it keeps the memory space. A view
 * controlled by a run-time input (Dropout's training mode) stays a step, so that its kernel reads that input. */
static PRN_OWN_FRAME prony_status plan_view(planner *p, prn_node_def *node, bool *done)
{
    prn_plan *plan = p->plan;
    *done = false;
    if (!(node->binding.op->flags & PRN_OP_VIEW) || node->dynamic || node->outputs[0] == PRN_NO_VALUE) return PRONY_OK;
    for (uint32_t i = 1; i < node->input_count; i++)
        if (node->inputs[i] != PRN_NO_VALUE && !plan->values[node->inputs[i]]->constant) return PRONY_OK;
    for (uint32_t k = 1; k < node->output_count; k++)
        if (node->outputs[k] != PRN_NO_VALUE) return PRONY_OK;
    uint32_t from = node->inputs[0];
    prn_plan_value *to = plan->values[node->outputs[0]];
    const prn_plan_value *given = plan->values[from];
    const bool keeps = prn_shape_equal(&given->value.shape, &to->value.shape) || given->value.layout == PRN_PLAIN;
    const prn_layout_key key = {keeps ? (prn_layout)given->value.layout : PRN_PLAIN,
                                keeps && prn_plan_may_share(plan, from) ? given->memory_space : PRN_ON_HOST};
    PRN_TRY(prn_plan_value_in(plan, from, key, &from, p->error));
    *done = true;
    to->value.layout = (uint8_t)key.layout;
    to->memory_space = key.memory_space;
    to->bytes = plan->values[from]->bytes;
    if (!prn_plan_may_share(plan, from)) return copy_view(p, node, from);
    prn_plan_make_view(plan, node->outputs[0], from);
    return PRONY_OK;
}

/* The form of values in the graph, for readers outside of the plan. */
static const prn_layout_key as_in_the_model = {PRN_PLAIN, PRN_ON_HOST};

/* Gives subgraphs captured values in the model's form. */
static PRN_OWN_FRAME prony_status assign_captured(planner *p, const prn_node_def *node)
{
    for (uint32_t c = 0; c < node->child_count; c++) {
        for (uint32_t k = 0; k < node->children[c].captured_count; k++) {
            uint32_t plain;
            PRN_TRY(prn_plan_value_in(p->plan, node->children[c].captured[k], as_in_the_model, &plain, p->error));
        }
    }
    return PRONY_OK;
}

static prony_status plan_children(planner *p, prn_step *step)
{
    prn_plan *plan = p->plan;
    bool counts = step->dynamic || step->node->child_count;
    if (counts) {
        step->work.executed = prn_bump_alloc(&plan->pool, 1, sizeof *step->work.executed);
        step->work.cost.facts = prn_bump_alloc(&plan->pool, PRONY_MAX_FACTS, sizeof *step->work.cost.facts);
        if (!step->work.executed || !step->work.cost.facts) return prn_no_memory(p->error);
    }
    if (step->node->child_count == 0) return PRONY_OK;
    step->children = prn_bump_alloc(&plan->pool, step->node->child_count, sizeof(prn_plan *));
    if (!step->children) return prn_no_memory(p->error);
    prn_plan_options options = plan->options; /* one worker runs the step with its subgraphs, sequentially */
    options.workers = 1;
    options.split = NULL;
    if (step->device.stays_on_host) options.device = NULL;
    options.fill_dead &= plan->options.workers == 0 || plan->options.workers == 1;
    for (uint32_t c = 0; c < step->node->child_count; c++) {
        const prn_child *child = &step->node->children[c];
        if (!child->program) continue;
        prony_status status = prn_plan_create(&step->children[c], child->program, plan, &options, p->error);
        if (status == PRONY_OK) continue;
        prn_error_name_part(p->error, &step->node->info, child->name);
        return status;
    }
    return PRONY_OK;
}

static PRN_OWN_FRAME prony_status planner_no_kernel(const prn_step *step)
{
    char text[PRN_SHAPE_TEXT_BYTES];
    return prony_fail(&step->context, PRONY_UNSUPPORTED, "no kernel takes %s",
                      step->input_values[0] ? prn_value_text(step->input_values[0], text) : "it");
}

/* true: a dynamic step's kernel depends on types and shapes alone: other inputs are constants, and the elements of the
 * first do not matter. */
static bool values_stay(const prn_plan *plan, const prn_node_def *node)
{
    for (uint32_t i = 1; i < node->input_count; i++)
        if (node->inputs[i] != PRN_NO_VALUE && !plan->values[node->inputs[i]]->constant) return false;
    return true;
}

/* true: the kernel and cost of a dynamic step follow from types and shapes. This holds for built-in operators; users'
 * operators are asked in every run. */
static bool follows_from_forms(const prn_plan *plan, const prn_node_def *node)
{
    const prn_op *op = node->binding.op;
    return node->child_count == 0 && node->binding.cost == op->cost && !(op->flags & PRN_OP_OPEN) &&
           (!(op->flags & PRN_OP_BY_VALUE) || values_stay(plan, node)) &&
           op == prn_op_find(node->info.domain, node->info.op_type, node->info.opset);
}

/* Makes a view, or a step with kernel, layouts, subgraphs and cost. A dynamic step chooses its kernel in the run. */
static prony_status plan_node(planner *p, prn_node_def *node)
{
    bool done;
    if (!node->binding.op)
        return prn_fail(p->error, PRONY_UNSUPPORTED, "node '%s': operator %s::%s (opset %lld) is not supported",
                        node->info.name, *node->info.domain ? node->info.domain : "ai.onnx", node->info.op_type,
                        (long long)node->info.opset);
    PRN_TRY(stopped(p->error, &node->info));
    PRN_TRY(plan_view(p, node, &done));
    if (done) return PRONY_OK;
    prn_step *step = planner_add_step(p, node);
    if (!step) return prn_no_memory(p->error);
    step->dynamic = node->dynamic;
    step->context.error = p->error;
    if (!step->dynamic) {
        step->kernel = prn_node_kernel(node, &step->context, false);
        if (!step->kernel) return planner_no_kernel(step);
        step->empty = prn_node_makes_nothing(node, &step->context);
        PRN_TRY(prn_plan_tune(p->plan, step, p->error));
    } else if (follows_from_forms(p->plan, node)) {
        step->choice.types =
            prn_bump_alloc(&p->plan->pool, node->input_count + node->output_count + 1, sizeof *step->choice.types);
        if (!step->choice.types) return prn_no_memory(p->error);
    }
    PRN_TRY(prn_plan_assign_layouts(p->plan, step, p->error));
    PRN_TRY(assign_captured(p, node));
    step->context.error = NULL;
    PRN_TRY(prn_plan_append_step(p->plan, step, p->error));
    PRN_TRY(plan_children(p, step));
    return prn_plan_step_cost(p->plan, step, p->error);
}

static prony_status plan_node_named(planner *p, prn_node_def *node)
{
    PRN_TRY(stopped(p->error, &node->info));
    prony_status status = plan_node(p, node);
    return status == PRONY_OK ? PRONY_OK : prn_error_blame(p->error, status, &node->info);
}

/* Sums the fixed costs: all layers except those of steps that learn their cost in a run. */
static prony_status add_fixed_cost(planner *p)
{
    prn_plan *plan = p->plan;
    const prn_program *program = plan->program;
    bool *open = prn_calloc(program->layer_count + 1, sizeof *open);
    if (!open) return prn_no_memory(p->error);
    for (size_t s = 0; s < plan->step_count; s++) {
        const prn_step *step = plan->steps[s];
        if (prn_step_learns_cost(step)) open[step->node->own_layer] = true;
    }
    bool fits = true;
    for (size_t l = 0; fits && l < program->layer_count; l++) {
        const prony_cost layer = prn_layer_cost(&program->layers[l]);
        if (!open[l]) fits = prn_cost_add(&plan->fixed_cost, &layer);
    }
    plan->fixed_cost.parameters = 0;
    prn_free(open);
    return fits ? PRONY_OK : prn_fail(p->error, PRONY_LIMIT, "the cost of a subgraph exceeds 64 bits");
}

static PRN_OWN_FRAME prony_status plan_outputs(planner *p)
{
    prn_plan *plan = p->plan;
    plan->outputs = prn_bump_alloc(&plan->pool, plan->program->output_count + 1, sizeof *plan->outputs);
    if (!plan->outputs) return prn_no_memory(p->error);
    for (size_t k = 0; k < plan->program->output_count; k++)
        PRN_TRY(prn_plan_value_in(plan, plan->program->outputs[k], as_in_the_model, &plan->outputs[k], p->error));
    return PRONY_OK;
}

/* Checks outputs before the step's kernel prepares. */
static prony_status planner_check_outputs(planner *p, const prn_step *step)
{
    uint64_t room = prn_budget_room();
    for (uint32_t k = 0; room != UINT64_MAX && k < step->node->output_count; k++) {
        const prn_plan_value *value = step->outputs[k] == PRN_NO_VALUE ? NULL : p->plan->values[step->outputs[k]];
        if (!value || value->dynamic || value->memory_space != PRN_ON_HOST || value->bytes <= room) continue;
        prn_fail(p->error, PRONY_LIMIT, "output %u needs %llu bytes, but the memory limit leaves %llu", k,
                 (unsigned long long)value->bytes, (unsigned long long)room);
        prn_error_name_node(p->error, &step->node->info);
        return PRONY_LIMIT;
    }
    return PRONY_OK;
}

prony_status prn_plan_prepare_step(prn_step *step, prony_error *error)
{
    prn_prepared prepared = {0};
    if (!step->kernel || !step->kernel->prepare) return PRONY_OK;
    step->context.error = error;
    prony_status status = step->kernel->prepare(&step->context, &prepared);
    step->context.error = NULL;
    if (status == PRONY_OK) {
        step->state = step->context.state = prepared.state;
        step->context.scratch_bytes = prepared.scratch_bytes;
    }
    PRN_TRY(stopped(error, &step->node->info)); /* packed data may be incomplete */
    return status == PRONY_OK ? PRONY_OK : prn_error_blame(error, status, &step->node->info);
}

static PRN_OWN_FRAME prony_status planner_prepare(planner *p, prn_step *step)
{
    prn_plan *plan = p->plan;
    PRN_TRY(planner_check_outputs(p, step));
    PRN_TRY(stopped(p->error, &step->node->info));
    prony_status status = prn_plan_hold_inputs(plan, step, p->error);
    if (status != PRONY_OK) return prn_error_blame(p->error, status, &step->node->info);
    PRN_TRY(prn_plan_prepare_step(step, p->error));
    if (step->kernel && step->kernel->prepare) status = prn_plan_hold_unpacked(plan, step, p->error);
    if (status != PRONY_OK) return prn_error_blame(p->error, status, &step->node->info);
    if (step->context.scratch_bytes > plan->memory.scratch_bytes)
        plan->memory.scratch_bytes = step->context.scratch_bytes;
    return PRONY_OK;
}

/* A step, and the bytes that exist beside their packed form while it is prepared. */
typedef struct preparation {
    uint64_t bytes;
    uint32_t step;
} preparation;

static int larger_first(const void *a, const void *b)
{
    const preparation *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x->step < y->step ? -1 : x->step > y->step;
}

/* Prepares steps with large weights first, while little is packed, so that the peak is close to the final size. */
static PRN_OWN_FRAME prony_status prepare_steps(planner *p)
{
    prn_plan *plan = p->plan;
    PRN_TRY(prn_plan_hold_outputs(plan, p->error));
    preparation *order = prn_calloc(plan->step_count + 1, sizeof *order);
    if (!order) return prn_no_memory(p->error);
    for (size_t s = 0; s < plan->step_count; s++)
        order[s] = (preparation){prn_plan_bytes_to_pack(plan, plan->steps[s]), (uint32_t)s};
    qsort(order, plan->step_count, sizeof *order, larger_first);
    prony_status status = PRONY_OK;
    for (size_t s = 0; s < plan->step_count && status == PRONY_OK; s++)
        status = planner_prepare(p, plan->steps[order[s].step]);
    prn_free(order);
    return status;
}

static const prony_node *buffer_node(const prn_plan *plan, size_t buffer)
{
    uint32_t owner = plan->memory.owner[buffer];
    if (plan->memory.tag[buffer] == PRN_TAG_ACTIVATION) owner = plan->values[owner]->defined;
    return owner < plan->step_count ? &plan->steps[owner]->node->info : NULL;
}

/* Allocates the arena; if it exceeds the memory limit, the error names the node with the largest buffer. */
static PRN_OWN_FRAME prony_status allot(planner *p)
{
    prn_plan *plan = p->plan;
    prony_status status = prn_plan_buffers(plan, p->error);
    if (status == PRONY_OK) PRN_TRY(prn_plan_memory_spaces_allot(plan, p->error)); /* which names what does not fit */
    if (status == PRONY_OK && !plan->nested.outer)
        status = prn_arena_create(&plan->memory.arena, plan->memory.figures.planned_bytes, plan->options.record_memory,
                                  p->error);
    if (status == PRONY_OK && !plan->nested.outer && plan->options.fill_dead) prn_arena_fill_unused(plan->memory.arena);
    if (status == PRONY_OK && plan->parallel.graph) status = prn_arena_share_out(plan->memory.arena, p->error);
    if (status == PRONY_OK && plan->parallel.graph)
        status = prn_schedule_create(&plan->parallel.schedule, plan, p->error);
    if (status != PRONY_LIMIT || plan->memory.buffer_count == 0) return status;
    size_t largest = 0;
    for (size_t b = 1; b < plan->memory.buffer_count; b++)
        if (plan->memory.buffers[b].bytes > plan->memory.buffers[largest].bytes) largest = b;
    const prony_node *node = buffer_node(plan, largest);
    if (node) {
        prn_error_prefix(p->error, "%llu bytes alone", (unsigned long long)plan->memory.buffers[largest].bytes);
        prn_error_name_node(p->error, node);
    }
    return status;
}

static prony_status planner_build(planner *p)
{
    prn_plan *plan = p->plan;
    PRN_TRY(add_values(p));
    for (size_t n = 0; n < plan->program->node_count; n++)
        if (!plan->program->nodes[p->node = (uint32_t)n]->dead) PRN_TRY(plan_node_named(p, plan->program->nodes[n]));
    if (plan->options.kernels_only) return PRONY_OK;
    PRN_TRY(plan_outputs(p));
    PRN_TRY(add_fixed_cost(p));
    PRN_TRY(prepare_steps(p));
    PRN_TRY(allot(p));
    PRN_TRY(prn_plan_adopt_layers(plan, p->error));
    if (!plan->nested.outer) prn_plan_point(plan, prn_arena_base(plan->memory.arena));
    return PRONY_OK;
}

prony_status prn_plan_create(prn_plan **out, prn_program *program, prn_plan *outer, const prn_plan_options *options,
                             prony_error *error)
{
    prn_plan *plan = prn_calloc(1, sizeof *plan);
    if (!plan) return prn_no_memory(error);
    plan->program = program;
    plan->nested.outer = outer;
    plan->options = *options;
    plan->parallel.threads = options->threads;
    plan->run.stopped_at = PRN_NO_STEP;
    planner p = {plan, error, PRN_NO_NODE};
    prony_status status = outer ? prn_stack_check(error) : PRONY_OK;
    if (status == PRONY_OK) status = planner_build(&p);
    if (!outer) {
        prn_weight_cache_resolve(program->model->shared);
        prn_model_forget_all(program->model->file);
    }
    if (status == PRONY_OK)
        *out = plan;
    else
        prn_plan_release(plan);
    return status;
}

void prn_plan_release(prn_plan *plan)
{
    if (!plan) return;
    for (size_t s = 0; s < plan->step_count; s++) {
        prn_step *step = plan->steps[s];
        if (step->kernel && step->kernel->release) step->kernel->release(step->state);
        for (uint32_t c = 0; step->children && c < step->node->child_count; c++) prn_plan_release(step->children[c]);
    }
    prn_schedule_release(plan->parallel.schedule);
    prn_step_graph_release(plan->parallel.graph);
    if (!plan->nested.outer) prn_arena_release(plan->memory.arena);
    prn_plan_memory_spaces_release(plan);
    prn_weight_cache_drop(plan->program->model->shared, &plan->refs);
    prn_plan_reach_release(plan);
    prn_device_split_release(plan->split);
    prn_free(plan->values);
    prn_free(plan->steps);
    prn_free(plan->memory.buffers);
    prn_free(plan->memory.owner);
    prn_free(plan->memory.tag);
    prn_bump_release(&plan->pool);
    prn_free(plan);
}
