/* The rows of a plan's stages, and the stages as models. */
#include "base/hash/sha256.h"
#include "engine/session/shard_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Layers of the stage's nodes. Those that no operator stands for (views, which the plan gives to a neighbour) are
 * there too. */
static prony_status fill_layers(prony_shard_plan *plan, prony_shard_stage *row, uint32_t first, uint32_t end,
                                prony_error *error)
{
    const prn_program *p = plan->program;
    uint32_t *layers = prn_bump_alloc(&plan->pool, p->layer_count + 1, sizeof *layers);
    if (!layers) return prn_no_memory(error);
    for (uint32_t n = first; n < end; n++) {
        const prn_node_def *node = p->nodes[n];
        for (uint32_t l = 0; !node->dead && l < node->layer_count && row->layer_count < p->layer_count; l++) {
            layers[row->layer_count++] = node->layers[l];
            row->macs += p->layers[node->layers[l]].cost.macs;
        }
    }
    if (row->layer_count) qsort(layers, row->layer_count, sizeof *layers, by_number);
    row->layers = layers;
    return PRONY_OK;
}

static uint32_t stage_of(const prony_shard_plan *plan, uint32_t node)
{
    uint32_t s = 0;
    while (s + 1 < plan->stage_count && plan->cuts[plan->chosen[s + 1]].node <= node) s++;
    return s;
}

static uint32_t graph_input(const prn_program *program, uint32_t value)
{
    for (uint32_t i = 0; i < program->input_count; i++)
        if (program->inputs[i] == value) return i;
    return 0;
}

static bool fill_tensor(prony_shard_plan *plan, prony_shard_tensor *row, uint32_t value, const char *name)
{
    const prony_value *info = &plan->program->values[value]->info;
    const size_t bytes = prn_value_bytes(info);
    *row = (prony_shard_tensor){.name = prn_bump_strndup(&plan->pool, name, strlen(name)),
                                .dtype = info->dtype,
                                .shape = info->shape,
                                .bytes = bytes == SIZE_MAX ? 0 : bytes,
                                .from = PRONY_SHARD_MODEL};
    return row->name != NULL;
}

static uint32_t output_of(const prn_stage_border *border, uint32_t value)
{
    uint32_t k = 0;
    while (k < border->output_count && border->outputs[k] != value) k++;
    return k;
}

/* Inputs and outputs of stage s. `borders` are those of all stages. */
static prony_status shard_stages_fill_ports(prony_shard_plan *plan, size_t s, const prn_stage_border *borders,
                                            prony_error *error)
{
    prony_shard_stage *row = &plan->stages[s];
    const prn_stage_border *b = &borders[s];
    const prn_program *p = plan->program;
    prony_shard_tensor *inputs = prn_bump_alloc(&plan->pool, b->input_count + 1, sizeof *inputs);
    prony_shard_tensor *outputs = prn_bump_alloc(&plan->pool, b->output_count + 1, sizeof *outputs);
    if (!inputs || !outputs) return prn_no_memory(error);
    for (size_t i = 0; i < b->input_count; i++) {
        const uint32_t value = b->inputs[i];
        if (!fill_tensor(plan, &inputs[i], value, p->values[value]->name)) return prn_no_memory(error);
        inputs[i].port = graph_input(p, value);
        if (!plan->maker[value]) continue;
        inputs[i].from = stage_of(plan, plan->maker[value] - 1);
        inputs[i].port = output_of(&borders[inputs[i].from], value);
        row->received_bytes += inputs[i].bytes;
        plan->stages[inputs[i].from].sent_bytes += inputs[i].bytes;
    }
    for (size_t k = 0; k < b->output_count; k++) {
        const uint32_t of = b->graph_outputs[k];
        const char *name =
            of == PRN_NO_VALUE ? p->values[b->outputs[k]]->name : plan->model->file->graph.outputs[of].name;
        if (!fill_tensor(plan, &outputs[k], b->outputs[k], name)) return prn_no_memory(error);
        outputs[k].from = (uint32_t)s;
        outputs[k].port = (uint32_t)k;
    }
    row->inputs = inputs;
    row->input_count = b->input_count;
    row->outputs = outputs;
    row->output_count = b->output_count;
    row->model_outputs = b->graph_outputs;
    return PRONY_OK;
}

static void fill_costs(prony_shard_plan *plan, size_t s)
{
    prony_shard_stage *row = &plan->stages[s];
    const size_t from = plan->chosen[s], to = plan->chosen[s + 1];
    row->weight_bytes = plan->weight_bytes[to] - plan->weight_bytes[from];
    for (size_t i = from; i < to; i++)
        if (plan->live_bytes[i] > row->live_bytes) row->live_bytes = plan->live_bytes[i];
    if (s + 1 < plan->stage_count) {
        const prn_node_def *last = plan->program->nodes[plan->cuts[to].node - 1];
        const char *name = plan->program->values[last->outputs[0]]->name;
        row->cut = prn_bump_strndup(&plan->pool, name, strlen(name));
    }
    row->memory_bytes = row->weight_bytes + row->live_bytes + row->received_bytes;
    row->compute_ns = (int64_t)(plan->compute_ns[to] - plan->compute_ns[from]);
    if (s && plan->bytes_per_ns > 0)
        row->transfer_ns = (int64_t)(plan->latency_ns + (double)row->received_bytes / plan->bytes_per_ns);
}

static void hash_stages(prony_shard_plan *plan)
{
    prn_sha256 hash;
    char text[64];
    prn_sha256_init(&hash);
    for (size_t s = 0; s < plan->stage_count; s++) {
        const prony_shard_stage *row = &plan->stages[s];
        snprintf(text, sizeof text, "%" PRIu32 " %zu %zu %zu;", plan->cuts[plan->chosen[s + 1]].node, row->layer_count,
                 row->input_count, row->output_count);
        prn_sha256_add(&hash, text, strlen(text));
        for (size_t i = 0; i < row->input_count; i++)
            prn_sha256_add(&hash, row->inputs[i].name, strlen(row->inputs[i].name) + 1);
    }
    prn_sha256_text(&hash, plan->digest);
}

prony_status prn_shard_fill_stages(prony_shard_plan *plan, const prony_shard_options *options, prony_error *error)
{
    const size_t count = plan->stage_count;
    prn_stage_border *borders = prn_bump_alloc(&plan->pool, count, sizeof *borders);
    plan->stages = prn_bump_alloc(&plan->pool, count, sizeof *plan->stages);
    plan->models = prn_bump_alloc(&plan->pool, count, sizeof(void *));
    if (!borders || !plan->stages || !plan->models) return prn_no_memory(error);
    plan->latency_ns = options->latency_ns;
    plan->bytes_per_ns = options->bytes_per_ns;
    for (size_t s = 0; s < count; s++) {
        const uint32_t first = plan->cuts[plan->chosen[s]].node, end = plan->cuts[plan->chosen[s + 1]].node;
        plan->stages[s].index = (uint32_t)s;
        PRN_TRY(prn_stage_border_find(&borders[s], plan->program, first, end, &plan->pool, error));
        PRN_TRY(fill_layers(plan, &plan->stages[s], first, end, error));
        PRN_TRY(prn_stage_create(&plan->models[s], plan->model, plan->inputs, plan->input_count, plan->program, first,
                                 end, error));
    }
    for (size_t s = 0; s < count; s++) PRN_TRY(shard_stages_fill_ports(plan, s, borders, error));
    for (size_t s = 0; s < count; s++) fill_costs(plan, s);
    hash_stages(plan);
    return PRONY_OK;
}

/* ---- what callers ask ---- */

const prony_shard_stage *prony_shard_plan_stages(const prony_shard_plan *plan, size_t *count)
{
    if (count) *count = plan ? plan->stage_count : 0;
    return plan ? plan->stages : NULL;
}

size_t prony_shard_plan_places(const prony_shard_plan *plan)
{
    return plan ? plan->places : 0;
}

const char *prony_shard_plan_basis(const prony_shard_plan *plan)
{
    return plan ? plan->basis : "";
}

const char *prony_shard_plan_digest(const prony_shard_plan *plan)
{
    return plan ? plan->digest : "";
}

/* Stage s begins micro-batch m once it has ended m - 1 and has what the stages before sent; a link carries one message
 * at a time. */
int64_t prony_shard_plan_step_ns(const prony_shard_plan *plan, int64_t micro_batches)
{
    int64_t ended = 0;
    int64_t *stage_free = plan ? prn_calloc(2 * plan->stage_count, sizeof *stage_free) : NULL;
    int64_t *link_free = stage_free ? stage_free + plan->stage_count : NULL;
    for (int64_t m = 0; stage_free && m < micro_batches; m++) {
        int64_t ready = 0;
        for (size_t s = 0; s < plan->stage_count; s++) {
            const prony_shard_stage *row = &plan->stages[s];
            if (row->transfer_ns) {
                ready = (ready > link_free[s] ? ready : link_free[s]) + row->transfer_ns;
                link_free[s] = ready;
            }
            ready = (ready > stage_free[s] ? ready : stage_free[s]) + row->compute_ns;
            stage_free[s] = ready;
        }
        ended = ready;
    }
    prn_free(stage_free);
    return ended;
}

prony_status prony_shard_stage_model(prony_model **out, const prony_shard_plan *plan, size_t stage, prony_error *error)
{
    if (!out || !plan) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_shard_stage_model: an argument is NULL");
    if (stage >= plan->stage_count)
        return prn_fail(error, PRONY_OUT_OF_RANGE, "stage %zu: the plan has %zu", stage, plan->stage_count);
    prn_model_retain(plan->models[stage]);
    *out = plan->models[stage];
    return PRONY_OK;
}
