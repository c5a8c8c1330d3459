/* Values of a plan outside of the host: a block of bytes per memory space, planned like the arena and apart from it,
 * and prony::Copy, which stands between kernels of different memory spaces. Plans with host memory only do not use this
 * file. */
#include "engine/plan/planner.h"
#include "engine/plan/split_graph.h"
#include "ops/device.h"

enum { ALIGNMENT = 64 };

const prn_memory_space *prn_plan_space_of(const prn_plan *plan, uint32_t value)
{
    const uint8_t number = plan->values[value]->memory_space;
    return number == PRN_ON_HOST ? NULL : plan->memory.spaces[number - 1].memory_space;
}

/* ---- memory ---- */

/* Buffers in one memory space, of its roots. */
typedef struct place_buffers {
    prn_buffer *buffers;
    uint32_t *root;      /* of each */
    uint32_t *number_of; /* by root: of its buffer, from 1 on */
    size_t count;
} place_buffers;

static void find_buffers(prn_plan *plan, uint8_t number, place_buffers *b)
{
    /* Several workers have no single order of steps, and the step graph covers host buffers only. */
    const bool all_run = plan->options.no_reuse || plan->parallel.graph;
    b->count = 0;
    for (uint32_t v = 0; v < plan->value_count; v++) {
        const prn_plan_value *value = plan->values[v];
        const uint32_t root = value->memory_space == number ? prn_plan_root(plan, v, NULL) : PRN_NO_VALUE;
        if (root == PRN_NO_VALUE || plan->values[root]->constant) continue;
        if (!b->number_of[root]) {
            b->root[b->count] = root;
            b->buffers[b->count] = (prn_buffer){.bytes = plan->values[root]->bytes, .first = PRN_NO_STEP};
            b->number_of[root] = (uint32_t)++b->count;
        }
        prn_buffer *buffer = &b->buffers[b->number_of[root] - 1];
        if (value->defined < buffer->first) buffer->first = value->defined;
        if (value->last_use > buffer->last) buffer->last = value->last_use;
    }
    for (size_t i = 0; i < b->count; i++) {
        prn_buffer *buffer = &b->buffers[i];
        if (all_run || buffer->first == PRN_NO_STEP)
            *buffer = (prn_buffer){.bytes = buffer->bytes, .last = (uint32_t)plan->step_count};
        if (buffer->last < buffer->first) buffer->last = buffer->first;
    }
}

uint64_t prn_plan_device_limit(const prn_plan_options *options)
{
    if (!options->device) return UINT64_MAX;
    const uint64_t given = options->device_bytes ? options->device_bytes : UINT64_MAX,
                   own = options->device_split == PRONY_DEVICE_SPLIT_NONE
                             ? UINT64_MAX
                             : prn_device_description(options->device)->memory_bytes;
    return own < given ? own : given;
}

/* Refuses bytes beyond the limit of the device's memory. */
static prony_status check_device_limit(const prn_plan *plan, uint64_t bytes, const char *what, prony_error *error)
{
    const uint64_t limit = prn_plan_device_limit(&plan->options);
    if (limit == UINT64_MAX) return PRONY_OK;
    const uint64_t used = prn_device_usage(plan->options.device).bytes;
    if (used <= limit && bytes <= limit - used) return PRONY_OK;
    if (plan->options.device_full) *plan->options.device_full = true;
    return prn_fail(error, PRONY_LIMIT, "%s: %.200s needs %llu bytes of the device, where %llu of %llu are in use",
                    prn_device_description(plan->options.device)->id, what, (unsigned long long)bytes,
                    (unsigned long long)used, (unsigned long long)limit);
}

static prony_status allot_place(prn_plan *plan, uint8_t number, place_buffers *b, prony_error *error)
{
    prn_plan_memory_space *at = &plan->memory.spaces[number - 1];
    find_buffers(plan, number, b);
    PRN_TRY(prn_memory_plan(b->buffers, b->count, (uint32_t)plan->step_count + 1, ALIGNMENT, &at->figures, error));
    const uint64_t bytes = at->figures.planned_bytes ? at->figures.planned_bytes : ALIGNMENT;
    PRN_TRY(check_device_limit(plan, bytes, "the arena of a run", error));
    at->block = bytes <= SIZE_MAX ? at->memory_space->take(plan->options.device, (size_t)bytes) : NULL;
    if (!at->block)
        return prn_fail(error, PRONY_OUT_OF_MEMORY, "no room for %llu bytes at %s", (unsigned long long)bytes,
                        at->memory_space->name);
    for (size_t i = 0; i < b->count; i++) {
        prn_plan_value *root = plan->values[b->root[i]];
        root->value.data = (uint8_t *)at->block + b->buffers[i].offset;
        root->room = root->bytes;
    }
    return PRONY_OK;
}

/* ---- constants: copied when the plan is made, once for all plans of the device ---- */

/* Constants that follow from dimensions change with them, so a run copies those. */
bool prn_plan_stays_on_device(const prn_plan *plan, uint32_t value)
{
    const prn_plan_value *from = plan->values[value];
    return plan->options.device && from->constant && from->memory_space == PRN_ON_HOST && from->source == value &&
           !prn_dynamic_dims_affect(plan->program->values[value]->extents);
}

/* Deferred constants are on the host only while they are copied. */
static prony_status copy_constant(prn_plan *plan, prn_plan_value *to, prony_error *error)
{
    const prn_plan_value *from = plan->values[to->source];
    prn_weight_cache_refs held = {0};
    const void *source = from->shared ? (const void *)from->shared : from->value.data;
    if (!prn_device_constant_known(plan->options.device, source))
        PRN_TRY(check_device_limit(plan, to->bytes, plan->program->values[to->source]->name, error));
    prony_status status =
        prn_weight_cache_pin(plan->program->model->shared, &held, from->shared, plan->parallel.threads, error);
    if (status == PRONY_OK)
        status = prn_device_constant(plan->options.device, from->shared ? (const void *)from->shared : from->value.data,
                                     from->value.data, (size_t)to->bytes, &to->value.data, error);
    prn_weight_cache_drop(plan->program->model->shared, &held);
    return status;
}

static bool is_device_constant(const prn_plan_value *value)
{
    return value->memory_space != PRN_ON_HOST && value->constant && value->alias == PRN_NO_VALUE && value->bytes > 0;
}

static prony_status copy_constants(prn_plan *plan, prony_error *error)
{
    prony_status status = PRONY_OK;
    for (uint32_t v = 0; v < plan->value_count && status == PRONY_OK; v++)
        if (is_device_constant(plan->values[v])) status = copy_constant(plan, plan->values[v], error);
    return status;
}

/* A plan that may be split keeps room for the caches that its first run takes: then attention stays on the host, where a
 * step would fail otherwise. */
static prony_status check_caches(const prn_plan *plan, prony_error *error)
{
    uint64_t bytes = 0;
    if (plan->options.device_split == PRONY_DEVICE_SPLIT_NONE) return PRONY_OK;
    for (size_t s = 0; s < plan->step_count; s++) bytes += prn_partition_caches(plan, plan->steps[s]);
    const uint64_t pending = bytes ? prn_device_cache_pending(plan->options.device) : 0;
    if (pending < bytes) bytes = pending;
    return bytes ? check_device_limit(plan, bytes, "the caches of a run", error) : PRONY_OK;
}

prony_status prn_plan_memory_spaces_allot(prn_plan *plan, prony_error *error)
{
    if (plan->memory.space_count == 0) return PRONY_OK;
    place_buffers b = {.buffers = prn_calloc(plan->value_count + 1, sizeof *b.buffers),
                       .root = prn_calloc(plan->value_count + 1, sizeof *b.root),
                       .number_of = prn_calloc(plan->value_count + 1, sizeof *b.number_of)};
    prony_status status = b.buffers && b.root && b.number_of ? PRONY_OK : prn_no_memory(error);
    for (size_t p = 1; p <= plan->memory.space_count && status == PRONY_OK; p++)
        status = allot_place(plan, (uint8_t)p, &b, error);
    prn_free(b.buffers);
    prn_free(b.root);
    prn_free(b.number_of);
    if (status == PRONY_OK && plan->options.device) status = copy_constants(plan, error);
    return status == PRONY_OK && plan->options.device ? check_caches(plan, error) : status;
}

void prn_plan_memory_spaces_release(prn_plan *plan)
{
    for (size_t p = 0; p < plan->memory.space_count; p++)
        if (plan->memory.spaces[p].block)
            plan->memory.spaces[p].memory_space->give(plan->options.device, plan->memory.spaces[p].block);
    for (uint32_t v = 0; plan->options.device && v < plan->value_count; v++)
        if (is_device_constant(plan->values[v]))
            prn_device_constant_drop(plan->options.device, plan->values[v]->value.data);
}

prony_status prn_plan_fetch(const prn_plan *plan, uint32_t value, void *to, prony_error *error)
{
    const prn_plan_value *from = plan->values[value];
    return from->bytes ? prn_plan_space_of(plan, value)
                             ->copy_out(plan->options.device, to, from->value.data, from->bytes, NULL, error)
                       : PRONY_OK;
}

/* ---- prony::Copy ---- */

static const prn_plan_value *copied(const prony_context *context, const prn_memory_space **from,
                                    const prn_memory_space **to)
{
    const prn_node_environment *site = context->services_data;
    *from = prn_plan_space_of(site->plan, site->step->inputs[0]);
    *to = prn_plan_space_of(site->plan, site->step->outputs[0]);
    return site->plan->values[site->step->inputs[0]];
}

static bool leaves_host(const prony_context *context)
{
    const prn_memory_space *from, *to;
    (void)copied(context, &from, &to);
    return to != NULL;
}

static prony_status memory_spaces_run_copy(const prony_context *context)
{
    const prn_memory_space *from, *to;
    const size_t bytes = (size_t)copied(context, &from, &to)->bytes;
    if (bytes == 0) return PRONY_OK;
    prn_device_step *device = context->device;
    prony_status status = (to ? to->copy_in : from->copy_out)(device->device, context->outputs[0]->data,
                                                              context->inputs[0]->data, bytes, device, context->error);
    if (status != PRONY_OK) prn_error_name_node(context->error, context->node);
    return status;
}

static const prn_kernel kernels[] = {
    {.name = "copy_from_host", .backend = "native", .supported = leaves_host, .run = memory_spaces_run_copy},
    {.name = "copy_to_host", .backend = "native", .run = memory_spaces_run_copy},
    {0}};
static const prn_op copy = {.name = "Copy",
                            .domain = "prony",
                            .since_opset = 1,
                            .inputs = {1, 1},
                            .infer = prn_infer_same,
                            .cost = prn_cost_none,
                            .cost_text = "none: data movement",
                            .kernels = kernels};

prn_operator_binding prn_plan_copy_binding(void)
{
    return (prn_operator_binding){.op = &copy, .infer = copy.infer, .cost = copy.cost};
}
