/* Building and editing programs. Everything is pool-owned, so no edit frees anything. A failed edit leaves the program
 * unchanged, and the caller releases it. */
#include "engine/bind/program.h"

#include <stdlib.h>
#include <string.h>

void prn_cost_keep(prn_kept_cost *kept, const prony_cost *cost)
{
    prony_fact *facts = kept->facts;
    *kept = (prn_kept_cost){.macs = cost->macs,
                            .madds = cost->madds,
                            .flops = cost->flops,
                            .special = cost->special,
                            .int_ops = cost->int_ops,
                            .bytes_read = cost->bytes_read,
                            .bytes_written = cost->bytes_written,
                            .parameters = cost->parameters,
                            .facts = facts,
                            .fact_count = facts ? cost->fact_count : 0};
    if (kept->fact_count) memcpy(facts, cost->facts, kept->fact_count * sizeof *facts);
}

prony_cost prn_cost_kept(const prn_kept_cost *kept)
{
    prony_cost cost = {.macs = kept->macs,
                       .madds = kept->madds,
                       .flops = kept->flops,
                       .special = kept->special,
                       .int_ops = kept->int_ops,
                       .bytes_read = kept->bytes_read,
                       .bytes_written = kept->bytes_written,
                       .parameters = kept->parameters,
                       .fact_count = kept->fact_count};
    if (kept->fact_count) memcpy(cost.facts, kept->facts, kept->fact_count * sizeof *kept->facts);
    return cost;
}

bool prn_layer_keep_cost(prn_program *program, prn_layer *layer, const prony_cost *cost)
{
    prn_kept_cost *kept = &layer->cost;
    if (cost->fact_count > kept->fact_count) { /* the cost may have been counted before, at other extents */
        kept->facts = prn_bump_alloc(&program->pool, cost->fact_count, sizeof *kept->facts);
        if (!kept->facts) return false;
    }
    prn_cost_keep(kept, cost);
    return true;
}

bool prn_layer_share_cost(prn_program *program, prn_layer *layer, const prn_layer *from)
{
    prn_kept_cost *kept = &layer->cost;
    const uint64_t parameters = kept->parameters;
    prony_fact *facts = kept->facts;
    if (from->cost.fact_count > kept->fact_count) {
        facts = prn_bump_alloc(&program->pool, from->cost.fact_count, sizeof *facts);
        if (!facts) return false;
    }
    *kept = from->cost;
    kept->parameters = parameters;
    kept->facts = facts;
    if (kept->fact_count) memcpy(facts, from->cost.facts, kept->fact_count * sizeof *facts);
    return true;
}

prony_cost prn_layer_cost(const prn_layer *layer)
{
    return prn_cost_kept(&layer->cost);
}

uint32_t prn_program_add_value(prn_program *program, const char *name)
{
    if (program->value_count >= PRN_NO_VALUE - 1 ||
        !PRN_GROW(program->values, program->value_capacity, program->value_count + 1))
        return PRN_NO_VALUE;
    prn_value_def *value = prn_bump_alloc(&program->pool, 1, sizeof *value);
    if (!value) return PRN_NO_VALUE;
    value->name = name;
    value->info.shape = prn_shape_unknown();
    value->producer = PRN_NO_NODE;
    value->weight = PRN_NO_WEIGHT;
    value->folded_from = PRN_NO_NODE;
    program->values[program->value_count] = value;
    return (uint32_t)program->value_count++;
}

prn_node_def *prn_program_add_node(prn_program *program)
{
    if (program->node_count >= PRN_NO_NODE - 1 ||
        !PRN_GROW(program->nodes, program->node_capacity, program->node_count + 1))
        return NULL;
    prn_node_def *node = prn_bump_alloc(&program->pool, 1, sizeof *node);
    if (node) program->nodes[program->node_count++] = node;
    return node;
}

static prony_status add_shared(prn_program *program, const char *name, const prony_value *info,
                               prn_weight_cache_entry *shared, uint32_t *out, prony_error *error)
{
    uint32_t id = prn_program_add_value(program, name);
    if (id == PRN_NO_VALUE) return prn_no_memory(error);
    prn_value_def *value = program->values[id];
    value->info = *info;
    value->info.data = prn_weight_cache_data(shared);
    value->shared = shared;
    value->constant = true;
    *out = id;
    return PRONY_OK;
}

prony_status prn_program_add_constant(prn_program *program, const char *name, const prony_value *info, void *data,
                                      uint32_t *out, prony_error *error)
{
    prn_weight_cache_entry *shared;
    PRN_TRY(
        prn_weight_cache_intern(program->model->shared, &program->refs, data, prn_value_bytes(info), &shared, error));
    return add_shared(program, name, info, shared, out, error);
}

prony_status prn_program_add_deferred(prn_program *program, const char *name, const prony_value *info,
                                      const prn_lazy_constant *recipe, prn_weight_cache_entry *from, uint32_t *out,
                                      prony_error *error)
{
    prn_weight_cache_entry *shared;
    PRN_TRY(prn_weight_cache_defer(program->model->shared, &program->refs, recipe, from, &shared, error));
    return add_shared(program, name, info, shared, out, error);
}

prony_status prn_program_hold(prn_program *program, uint32_t value, prony_error *error)
{
    return prn_weight_cache_pin(program->model->shared, &program->refs, program->values[value]->shared, 1, error);
}

bool prn_node_add_post_op(prn_program *program, prn_node_def *node, const prn_post_op *op)
{
    if (!node->post_ops) node->post_ops = prn_bump_alloc(&program->pool, 1, sizeof *node->post_ops);
    if (!node->post_ops) return false;
    node->post_ops->op[node->post_ops->count++] = *op;
    return true;
}

bool prn_node_set_inputs(prn_program *program, prn_node_def *node, const uint32_t *inputs, uint32_t count)
{
    uint32_t *ids = prn_bump_alloc(&program->pool, count + 1, sizeof *ids);
    const prony_value **values = prn_bump_alloc(&program->pool, count + 1, sizeof *values);
    if (!ids || !values) return false;
    for (uint32_t i = 0; i < count; i++) {
        bool noted = inputs[i] == PRN_NO_VALUE || (i < node->input_count && node->inputs[i] == inputs[i]);
        if (!noted && !prn_program_note_use(program, inputs[i], node, i, PRN_NO_CHILD)) return false;
        ids[i] = inputs[i];
        values[i] = inputs[i] == PRN_NO_VALUE ? NULL : &program->values[inputs[i]]->info;
    }
    node->inputs = ids;
    node->input_values = values;
    node->input_count = count;
    return true;
}

bool prn_node_set_outputs(prn_program *program, prn_node_def *node, const uint32_t *outputs, uint32_t count)
{
    uint32_t *ids = prn_bump_alloc(&program->pool, count + 1, sizeof *ids);
    prony_value **values = prn_bump_alloc(&program->pool, count + 1, sizeof *values);
    if (!ids || !values) return false;
    for (uint32_t i = 0; i < count; i++) {
        ids[i] = outputs[i];
        values[i] = outputs[i] == PRN_NO_VALUE ? NULL : &program->values[outputs[i]]->info;
    }
    node->outputs = ids;
    node->output_values = values;
    node->output_count = count;
    return true;
}

prony_status prn_node_become(prn_program *program, prn_node_def *node, const char *domain, const char *op,
                             int64_t opset, const prn_attr_list *attributes, prony_error *error)
{
    const prn_op *row = prn_op_find(domain, op, opset);
    if (!row)
        return prn_fail(error, PRONY_INTERNAL, "a rewrite needs operator '%s::%s', which is not built", domain, op);
    prony_node info = {.name = node->info.name,
                       .op_type = row->name,
                       .domain = prn_op_domain(row),
                       .opset = opset,
                       .attributes = attributes,
                       .within = node->info.within};
    void *params = prn_bump_alloc(&program->pool, 1, row->params_bytes ? row->params_bytes : 1);
    if (!params) return prn_no_memory(error);
    PRN_TRY(prn_params_parse(row, &info, params, error));
    node->info = info;
    node->params = params;
    node->binding = prn_registry_find(NULL, domain, op, opset);
    return PRONY_OK;
}

bool prn_program_note_use(prn_program *program, uint32_t value, prn_node_def *node, uint32_t index, uint32_t child)
{
    prn_use *use = prn_bump_alloc(&program->pool, 1, sizeof *use);
    if (!use) return false;
    *use = (prn_use){program->values[value]->places, node, index, child};
    program->values[value]->places = use;
    return true;
}

/* Pointer to the reader's value id; NULL: the reader is gone. */
static uint32_t *read_id(prn_program *program, const prn_use *use)
{
    prn_node_def *node = use->node;
    if (!node) return &program->outputs[use->index];
    if (node->dead) return NULL;
    if (use->child != PRN_NO_CHILD) return &node->children[use->child].captured[use->index];
    return use->index < node->input_count ? &node->inputs[use->index] : NULL;
}

/* Visits only the readers of the value, for any size of the program. */
void prn_program_replace_uses(prn_program *program, uint32_t from, uint32_t to)
{
    prn_value_def *source = program->values[from], *target = program->values[to];
    for (prn_use *use = source->places, *next; use; use = next) {
        next = use->next;
        uint32_t *read = read_id(program, use);
        if (!read || *read != from) continue;
        *read = to;
        if (!use->node) {
            source->output = false;
            target->output = true;
        } else if (use->child == PRN_NO_CHILD) {
            use->node->input_values[use->index] = &target->info;
        }
        use->next = target->places;
        target->places = use;
    }
    source->places = NULL;
}

void prn_program_count_uses(const prn_program *program, uint32_t *uses)
{
    memset(uses, 0, program->value_count * sizeof *uses);
    for (size_t n = 0; n < program->node_count; n++) {
        const prn_node_def *node = program->nodes[n];
        if (node->dead) continue;
        for (uint32_t i = 0; i < node->input_count; i++)
            if (node->inputs[i] != PRN_NO_VALUE) uses[node->inputs[i]]++;
        for (uint32_t c = 0; c < node->child_count; c++)
            for (uint32_t k = 0; k < node->children[c].captured_count; k++) uses[node->children[c].captured[k]]++;
    }
    for (size_t k = 0; k < program->output_count; k++) uses[program->outputs[k]]++;
}

static void join_kept(prn_program *program, prn_node_def *keep, prn_node_def *absorbed)
{
    if (!absorbed->first_kept) return;
    if (keep->last_kept)
        program->layers[keep->last_kept - 1].next_kept = absorbed->first_kept;
    else
        keep->first_kept = absorbed->first_kept;
    keep->last_kept = absorbed->last_kept;
    absorbed->first_kept = absorbed->last_kept = 0;
}

/* Merges the shorter list into the longer one, from the end and in place if there is room. So absorbing a long chain
 * one by one, from either side, stays cheap. Lists are ascending, so reports list layers in the model's order. */
bool prn_program_hand_over(prn_program *program, prn_node_def *keep, prn_node_def *absorbed)
{
    join_kept(program, keep, absorbed);
    keep->computes |= absorbed->computes;
    if (absorbed->layer_count > keep->layer_count) {
        prn_node_def old = *keep;
        keep->layers = absorbed->layers;
        keep->layer_count = absorbed->layer_count;
        keep->layer_capacity = absorbed->layer_capacity;
        absorbed->layers = old.layers;
        absorbed->layer_count = old.layer_count;
        absorbed->layer_capacity = old.layer_capacity;
    }
    uint32_t a = keep->layer_count, b = absorbed->layer_count, count = a + b;
    uint32_t *layers = keep->layers;
    if (count > keep->layer_capacity) {
        uint32_t capacity = count < UINT32_MAX / 2 ? 2 * count : count;
        layers = prn_bump_alloc(&program->pool, capacity, sizeof *layers);
        if (!layers) return false;
        memcpy(layers, keep->layers, a * sizeof *layers);
        keep->layers = layers;
        keep->layer_capacity = capacity;
    }
    for (uint32_t i = count; b > 0; i--) {
        bool own = a > 0 && layers[a - 1] > absorbed->layers[b - 1];
        layers[i - 1] = own ? layers[--a] : absorbed->layers[--b];
    }
    keep->layer_count = count;
    absorbed->layer_count = 0;
    return true;
}

bool prn_program_absorb(prn_program *program, prn_node_def *keep, prn_node_def *absorbed)
{
    if (!prn_program_hand_over(program, keep, absorbed)) return false;
    absorbed->dead = true;
    return true;
}

/* Visits each layer once, even if its node is absorbed and marked again. */
void prn_program_mark_removed(prn_program *program, prn_node_def *node)
{
    for (uint32_t l = node->first_kept; l; l = program->layers[l - 1].next_kept) program->layers[l - 1].removed = true;
    node->first_kept = node->last_kept = 0;
}

bool prn_program_sweep(prn_program *program)
{
    bool *live = prn_calloc(program->value_count + 1, sizeof *live);
    if (!live) return false;
    for (size_t k = 0; k < program->output_count; k++) live[program->outputs[k]] = true;
    for (size_t n = program->node_count; n-- > 0;) {
        prn_node_def *node = program->nodes[n];
        if (node->dead) continue;
        bool used = false;
        for (uint32_t k = 0; k < node->output_count; k++)
            if (node->outputs[k] != PRN_NO_VALUE && live[node->outputs[k]]) used = true;
        if (!used) {
            node->dead = true;
            continue;
        }
        for (uint32_t i = 0; i < node->input_count; i++)
            if (node->inputs[i] != PRN_NO_VALUE) live[node->inputs[i]] = true;
        for (uint32_t c = 0; c < node->child_count; c++)
            for (uint32_t k = 0; k < node->children[c].captured_count; k++) live[node->children[c].captured[k]] = true;
    }
    prn_free(live);
    return true;
}

typedef struct addresses {
    const void **items; /* ascending */
    size_t count;
} addresses;

static int program_by_address(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)*(const void *const *)a, y = (uintptr_t)*(const void *const *)b;
    return (x > y) - (x < y);
}

static bool one_within(void *argument, const void *data, size_t bytes)
{
    const addresses *used = argument;
    size_t low = 0, high = used->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((uintptr_t)used->items[middle] < (uintptr_t)data)
            low = middle + 1;
        else
            high = middle;
    }
    return low < used->count && (uintptr_t)used->items[low] - (uintptr_t)data < (bytes ? bytes : 1);
}

static bool trim_children(prn_program *program)
{
    for (size_t n = 0; n < program->node_count; n++) {
        const prn_node_def *node = program->nodes[n];
        for (uint32_t c = 0; c < node->child_count && !node->dead; c++)
            if (node->children[c].program && !prn_program_trim(node->children[c].program, NULL)) return false;
    }
    return true;
}

bool prn_program_trim(prn_program *program, const uint32_t *others)
{
    if (program->static_only) return true;
    uint32_t *uses = prn_calloc(program->value_count + 1, sizeof *uses);
    addresses used = {prn_calloc(program->value_count + 1, sizeof *used.items), 0};
    bool ok = uses && used.items && trim_children(program);
    if (ok) {
        prn_program_count_uses(program, uses);
        for (size_t v = 0; v < program->value_count; v++) {
            prn_value_def *value = program->values[v];
            if (!value->constant || value->input) continue;
            if (uses[v] || (others && others[v])) {
                used.items[used.count++] = value->info.data;
            } else {
                value->info.data = NULL;
                value->shared = NULL;
            }
        }
        qsort(used.items, used.count, sizeof *used.items, program_by_address);
        prn_weight_cache_trim(program->model->shared, &program->refs, one_within, &used);
    }
    prn_free(uses);
    prn_free(used.items);
    return ok;
}

void prn_program_release(prn_program *program)
{
    if (!program) return;
    for (size_t n = 0; n < program->node_count; n++)
        for (uint32_t c = 0; c < program->nodes[n]->child_count; c++)
            prn_program_release(program->nodes[n]->children[c].program);
    prn_weight_cache_drop(program->model->shared, &program->refs);
    prn_free(program->values);
    prn_free(program->nodes);
    prn_free(program->layers);
    prn_free(program->weights);
    prn_bump_release(&program->pool);
    prn_free(program);
}
