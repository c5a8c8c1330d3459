/* prony_shard_plan_create: the rewritten program of the whole model, the positions at which it can be cut, the choice
 * among them, and the stages that follow. A cut is possible where every tensor that crosses it is a tensor of numbers
 * with a name of its own; operators are those of the rewritten program, so that no fusion is cut. */
#include "base/cpu/machine.h"
#include "base/hash/sha256.h"
#include "base/option_struct.h"
#include "engine/bind/names.h"
#include "engine/rewrites/rewrite.h"
#include "engine/session/shard_state.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of one thread, where this machine's rates were not measured; those of engine/plan/workers.c. */
#define GUESSED_FLOPS_PER_NS 32.0
#define GUESSED_BYTES_PER_NS 8.0
#define STEP_NS 400.0 /* dispatch of one operator and the pass through its thread pool */

/* Of the slowest stage: less than the error of predicted costs, and about the spread of measured ones. */
#define PREDICTED_SLACK 1.05
#define MEASURED_SLACK 1.01

enum { MOST_STAGES = 1024, MOST_POSITIONS = 2048, MOST_ATTEMPTS = 256 };

/* ---- the whole program ---- */

static prony_status settle_inputs(prony_shard_plan *plan, prony_error *error)
{
    prony_model *model = plan->model;
    const prn_graph *graph = &model->file->graph;
    prn_input_shapes shapes;
    PRN_TRY(prn_ports_check_options(model->file, &plan->session, error));
    PRN_TRY(prn_input_shapes_init(&shapes, model, error));
    plan->inputs = prn_bump_alloc(&plan->pool, graph->input_count + 1, sizeof *plan->inputs);
    prony_status status =
        plan->inputs ? prn_input_shapes_resolve(&shapes, model, &plan->session, error) : prn_no_memory(error);
    if (status == PRONY_OK) status = prn_input_shapes_closed(&shapes, model, error);
    for (size_t i = 0; status == PRONY_OK && i < graph->input_count; i++)
        plan->inputs[i] =
            (prony_value){.kind = graph->inputs[i].kind, .dtype = graph->inputs[i].dtype, .shape = shapes.shapes[i]};
    plan->input_count = graph->input_count;
    prn_input_shapes_free(&shapes);
    return status;
}

static prony_status bind_whole(prony_shard_plan *plan, prony_error *error)
{
    const prony_model *model = plan->model;
    const prn_bind_options bind = {.inputs = plan->inputs, .input_count = plan->input_count};
    PRN_TRY(prn_program_bind(&plan->program, model, &model->file->graph, NULL, NULL, &bind, error));
    if (!plan->session.no_rewrites) PRN_TRY(prn_program_rewrite(plan->program, error));
    return prn_program_trim(plan->program, NULL) ? PRONY_OK : prn_no_memory(error);
}

/* ---- what nodes cost ---- */

static double predicted_ns(const prony_shard_plan *plan, const prn_node_def *node)
{
    prony_cost sum = {0};
    for (uint32_t l = 0; l < node->layer_count; l++) {
        const prony_cost layer = prn_layer_cost(&plan->program->layers[node->layers[l]]);
        sum.flops += layer.flops + layer.int_ops;
        sum.bytes_read += layer.bytes_read;
        sum.bytes_written += layer.bytes_written;
    }
    const double compute = (double)sum.flops / (plan->rates.flops_per_ns * plan->threads);
    const double memory = (double)(sum.bytes_read + sum.bytes_written) / plan->rates.bytes_per_ns;
    return fmax(compute, memory) + STEP_NS;
}

static bool does_work(const prn_node_def *node)
{
    const prn_op *op = node->binding.op;
    return !node->dead && !(op && (op->flags & PRN_OP_VIEW) && !node->dynamic);
}

static double node_ns(const prony_shard_plan *plan, const prony_shard_options *o, const prn_node_def *node)
{
    double sum = 0;
    bool measured = o->layer_ns != NULL;
    if (node->dead) return 0;
    for (uint32_t l = 0; measured && l < node->layer_count; l++) {
        const uint32_t layer = node->layers[l];
        if (layer >= o->layer_count || o->layer_ns[layer] < 0) continue;
        sum += o->layer_ns[layer];
    }
    if (measured) return sum;
    return does_work(node) ? predicted_ns(plan, node) : 0;
}

static uint64_t constant_bytes(const prn_program *program, uint32_t value)
{
    const prn_value_def *def = value == PRN_NO_VALUE ? NULL : program->values[value];
    const size_t bytes = def && def->constant ? prn_value_bytes(&def->info) : 0;
    return bytes == SIZE_MAX ? 0 : bytes;
}

static uint64_t node_weights(const prn_program *program, const prn_node_def *node)
{
    uint64_t bytes = 0;
    if (node->dead) return 0;
    for (uint32_t i = 0; i < node->input_count; i++) bytes += constant_bytes(program, node->inputs[i]);
    for (uint32_t c = 0; c < node->child_count; c++) {
        const prn_child *child = &node->children[c];
        for (uint32_t k = 0; k < child->captured_count; k++) bytes += constant_bytes(program, child->captured[k]);
        if (child->program) bytes += child->program->weight_bytes;
    }
    return bytes;
}

/* ---- positions ---- */

static void note_last(void *user, uint32_t value)
{
    prony_shard_plan *plan = user;
    plan->last_read[value] = plan->reading + 1;
}

static prony_status find_lifetimes(prony_shard_plan *plan, prony_error *error)
{
    const prn_program *p = plan->program;
    plan->maker = prn_program_makers(p);
    plan->last_read = prn_calloc(p->value_count + 1, sizeof *plan->last_read);
    if (!plan->maker || !plan->last_read) return prn_no_memory(error);
    for (uint32_t n = 0; n < p->node_count; n++) {
        plan->reading = n;
        if (!p->nodes[n]->dead) prn_node_reads(p, p->nodes[n], note_last, plan);
    }
    return PRONY_OK;
}

/* By value: it can be sent. A name of two values identifies neither. A type known only at run time can be sent: the
 * message carries it. */
static prony_status find_sendable(prony_shard_plan *plan, bool *sendable, prony_error *error)
{
    const prn_program *p = plan->program;
    prn_names names = {0};
    bool room = true;
    for (uint32_t v = 0; room && v < p->value_count; v++) {
        const prn_value_def *value = p->values[v];
        uint32_t other;
        if (value->constant || (!plan->maker[v] && !value->input)) continue;
        sendable[v] =
            value->name && *value->name && value->info.kind == PRONY_TENSOR && value->info.dtype != PRONY_STRING;
        if (!value->name) continue;
        if (prn_names_get(&names, value->name, &other))
            sendable[v] = sendable[other] = false;
        else
            room = prn_names_put(&names, value->name, v);
    }
    prn_names_free(&names);
    return room ? PRONY_OK : prn_no_memory(error);
}

static uint64_t shard_plan_value_bytes(const prn_program *program, uint32_t value)
{
    const size_t bytes = prn_value_bytes(&program->values[value]->info);
    return bytes == SIZE_MAX ? 0 : bytes;
}

/* Bytes and unsendable values that begin (at the maker) and end (behind the last reader) at each node. */
typedef struct crossing {
    uint64_t begin_bytes, end_bytes;
    uint32_t begin_bad, end_bad;
} crossing;

static void shard_plan_add_values(const prony_shard_plan *plan, const bool *sendable, crossing *at)
{
    for (uint32_t v = 0; v < plan->program->value_count; v++) {
        if (!plan->maker[v] || !plan->last_read[v] || plan->last_read[v] <= plan->maker[v]) continue;
        const uint64_t bytes = shard_plan_value_bytes(plan->program, v);
        at[plan->maker[v] - 1].begin_bytes += bytes;
        at[plan->last_read[v] - 1].end_bytes += bytes;
        at[plan->maker[v] - 1].begin_bad += !sendable[v];
        at[plan->last_read[v] - 1].end_bad += !sendable[v];
    }
}

/* Fills the positions: 0, every node behind which a cut is possible, and the end. Sums are over the nodes before. */
static prony_status fill_positions(prony_shard_plan *plan, const prony_shard_options *o, const crossing *at,
                                   prony_error *error)
{
    const prn_program *p = plan->program;
    const size_t most = p->node_count + 2;
    plan->cuts = prn_calloc(most, sizeof *plan->cuts);
    plan->compute_ns = prn_calloc(most, sizeof *plan->compute_ns);
    plan->weight_bytes = prn_calloc(most, sizeof *plan->weight_bytes);
    plan->work = prn_calloc(most, sizeof *plan->work);
    plan->live_bytes = prn_calloc(most, sizeof *plan->live_bytes);
    if (!plan->cuts || !plan->compute_ns || !plan->weight_bytes || !plan->work || !plan->live_bytes)
        return prn_no_memory(error);
    uint64_t live = 0, weights = 0, work = 0;
    uint32_t bad = 0;
    double compute = 0;
    plan->cuts[0] = (prn_cut){.allowed = true};
    plan->cut_count = 1;
    for (uint32_t n = 0; n < p->node_count; n++) {
        const prn_node_def *node = p->nodes[n];
        uint64_t *most_live = &plan->live_bytes[plan->cut_count - 1];
        live += at[n].begin_bytes;
        bad += at[n].begin_bad;
        if (live > *most_live) *most_live = live;
        live -= at[n].end_bytes;
        bad -= at[n].end_bad;
        compute += node_ns(plan, o, node);
        weights += node_weights(p, node);
        work += does_work(node);
        const bool last = n + 1 == p->node_count;
        if (!last && (bad || !does_work(node))) continue;
        const size_t k = plan->cut_count++;
        plan->cuts[k] = (prn_cut){.node = n + 1, .allowed = true, .bytes = last ? 0 : live};
        plan->compute_ns[k] = compute;
        plan->weight_bytes[k] = weights;
        plan->work[k] = work;
    }
    return PRONY_OK;
}

static prony_status find_positions(prony_shard_plan *plan, const prony_shard_options *o, prony_error *error)
{
    const prn_program *p = plan->program;
    bool *sendable = prn_calloc(p->value_count + 1, sizeof *sendable);
    crossing *at = prn_calloc(p->node_count + 1, sizeof *at);
    prony_status status = sendable && at ? find_sendable(plan, sendable, error) : prn_no_memory(error);
    if (status == PRONY_OK) {
        shard_plan_add_values(plan, sendable, at);
        status = fill_positions(plan, o, at, error);
    }
    prn_free(sendable);
    prn_free(at);
    for (size_t k = 1; status == PRONY_OK && k + 1 < plan->cut_count; k++)
        plan->places += plan->work[k] > 0 && plan->work[plan->cut_count - 1] > plan->work[k];
    return status;
}

/* The search takes the square of their number: of neighbours, those with the fewest bytes stay. */
static void thin_positions(prony_shard_plan *plan)
{
    const size_t inner = plan->cut_count > 2 ? plan->cut_count - 2 : 0, window = inner / MOST_POSITIONS + 1;
    for (size_t k = 1; window > 1 && k + 1 < plan->cut_count; k += window) {
        size_t best = k;
        for (size_t i = k; i < k + window && i + 1 < plan->cut_count; i++) {
            if (plan->cuts[i].bytes < plan->cuts[best].bytes) best = i;
            plan->cuts[i].allowed = false;
        }
        plan->cuts[best].allowed = true;
    }
}

/* ---- the choice ---- */

static prony_status too_few(const prony_shard_plan *plan, size_t stages, prony_error *error)
{
    return prn_fail(error, PRONY_INVALID_ARGUMENT,
                    "%.300s: %zu stages need %zu cut%s, and the model can be cut at %zu place%s: at most %zu stage%s",
                    plan->model->file->name, stages, stages - 1, stages == 2 ? "" : "s", plan->places,
                    plan->places == 1 ? "" : "s", plan->places + 1, plan->places ? "s" : "");
}

static prony_status choose(prony_shard_plan *plan, const prony_shard_options *o, prony_error *error)
{
    const prn_cut_costs costs = {.cuts = plan->cuts,
                                 .count = plan->cut_count,
                                 .compute_ns = plan->compute_ns,
                                 .weight_bytes = plan->weight_bytes,
                                 .work = plan->work,
                                 .live_bytes = plan->live_bytes,
                                 .latency_ns = o->latency_ns,
                                 .ns_per_byte = o->bytes_per_ns > 0 ? 1 / o->bytes_per_ns : 0,
                                 .memory_limit = o->memory_limit_bytes,
                                 .by = o->by,
                                 .slack = o->layer_ns ? MEASURED_SLACK : PREDICTED_SLACK};
    bool found = false;
    uint64_t least = 0;
    if (!prn_cuts_choose(&costs, plan->stage_count, plan->chosen, &found, &least)) return prn_no_memory(error);
    if (found) return PRONY_OK;
    if (!least) return too_few(plan, plan->stage_count, error);
    return prn_fail(
        error, PRONY_LIMIT,
        "%.300s: no cut into %zu stage%s fits %" PRIu64 " bytes a stage; the largest stage needs %" PRIu64 " at least",
        plan->model->file->name, plan->stage_count, plan->stage_count == 1 ? "" : "s", o->memory_limit_bytes, least);
}

static int by_size(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

static prony_status place_given(const prony_shard_plan *plan, const char *name, size_t *out, prony_error *error)
{
    const prn_program *p = plan->program;
    for (uint32_t v = 0; v < p->value_count; v++) {
        if (strcmp(p->values[v]->name, name) != 0 || !plan->maker[v]) continue;
        for (size_t k = 1; k + 1 < plan->cut_count; k++)
            if (plan->cuts[k].node == plan->maker[v]) {
                *out = k;
                return PRONY_OK;
            }
        return prn_fail(
            error, PRONY_INVALID_ARGUMENT,
            "%.300s: the model cannot be cut behind '%.200s': a view makes it, or a tensor that crosses the "
            "cut cannot be sent",
            plan->model->file->name, name);
    }
    return prn_fail(
        error, PRONY_INVALID_ARGUMENT,
        "%.300s: no operator makes a tensor '%.200s': it is unknown, constant, or inside of a fused operator",
        plan->model->file->name, name);
}

static prony_status shard_plan_take_given(prony_shard_plan *plan, const prony_shard_options *o, prony_error *error)
{
    if (o->cut_count + 1 != plan->stage_count)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "%zu stages need %zu cuts, and %zu are given", plan->stage_count,
                        plan->stage_count - 1, o->cut_count);
    plan->chosen[0] = 0;
    plan->chosen[plan->stage_count] = plan->cut_count - 1;
    for (size_t k = 0; k < o->cut_count; k++) PRN_TRY(place_given(plan, o->cuts[k], &plan->chosen[k + 1], error));
    qsort(plan->chosen, plan->stage_count + 1, sizeof *plan->chosen, by_size);
    for (size_t s = 0; s < plan->stage_count; s++)
        if (plan->work[plan->chosen[s]] == plan->work[plan->chosen[s + 1]])
            return prn_fail(error, PRONY_INVALID_ARGUMENT, "%.300s: a stage between two of the cuts would be empty",
                            plan->model->file->name);
    return PRONY_OK;
}

/* Chooses until the kernels of all stages are those of the unsharded plan: a kernel may be chosen for the layout that
 * the step before offers, and a cut tensor is plain. A cut that changes a kernel is given up. */
static prony_status choose_checked(prony_shard_plan *plan, const prony_shard_options *o, prony_error *error)
{
    plan->chosen = prn_bump_alloc(&plan->pool, plan->stage_count + 1, sizeof *plan->chosen);
    if (!plan->chosen) return prn_no_memory(error);
    if (plan->stage_count > plan->places + 1) return too_few(plan, plan->stage_count, error);
    for (int attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
        size_t refused = 0;
        PRN_TRY(o->cut_count ? shard_plan_take_given(plan, o, error) : choose(plan, o, error));
        if (plan->stage_count == 1) return PRONY_OK;
        PRN_TRY(prn_shard_check_kernels(plan, &refused, error));
        if (!refused) return PRONY_OK;
        if (o->cut_count)
            return prn_fail(error, PRONY_INVALID_ARGUMENT,
                            "%.300s: a cut that was given changes the kernel of an operator beside it, and so may "
                            "change bits",
                            plan->model->file->name);
        plan->cuts[refused].allowed = false;
        plan->places--;
    }
    return prn_fail(error, PRONY_INVALID_ARGUMENT,
                    "%.300s: %d cuts into %zu stages were tried, and each changes the kernel of an operator and so may "
                    "change bits: try fewer stages, or give cuts by name",
                    plan->model->file->name, MOST_ATTEMPTS, plan->stage_count);
}

/* ---- */

static prony_status check_options(const prony_shard_options *o, prony_error *error)
{
    if (o->stages < 1 || o->stages > MOST_STAGES)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "%d stages: 1 to %d", o->stages, MOST_STAGES);
    if (o->session && o->session->max_dim_count)
        return prn_fail(error, PRONY_UNSUPPORTED, "a sharded model has no dimensions that change from run to run");
    return PRONY_OK;
}

static prony_status find_rates(prony_shard_plan *plan, const prony_shard_options *o, prony_error *error)
{
    if (plan->model->find_rates) PRN_TRY(plan->model->find_rates(&plan->rates, error));
    const bool measured = plan->rates.flops_per_ns > 0 && plan->rates.bytes_per_ns > 0;
    if (!(plan->rates.flops_per_ns > 0)) plan->rates.flops_per_ns = GUESSED_FLOPS_PER_NS;
    if (!(plan->rates.bytes_per_ns > 0)) plan->rates.bytes_per_ns = GUESSED_BYTES_PER_NS;
    const int asked = plan->session.intra_op_threads;
    plan->threads = asked > 0 ? asked : prn_machine_auto_threads(1, NULL);
    if (plan->threads < 1) plan->threads = 1;
    plan->basis = o->layer_ns ? "measured"
                  : measured  ? "predicted from measured peaks of this machine"
                              : "predicted from assumed rates: prony machine measures them";
    return PRONY_OK;
}

static prony_status build(prony_shard_plan *plan, const prony_shard_options *o, prony_error *error)
{
    PRN_TRY(prn_options_read(&plan->session, sizeof plan->session, o->session, "session options", error));
    PRN_TRY(find_rates(plan, o, error));
    PRN_TRY(settle_inputs(plan, error));
    PRN_TRY(bind_whole(plan, error));
    PRN_TRY(find_lifetimes(plan, error));
    PRN_TRY(find_positions(plan, o, error));
    if (!o->cut_count) thin_positions(plan);
    PRN_TRY(choose_checked(plan, o, error));
    return prn_shard_fill_stages(plan, o, error);
}

prony_status prony_shard_plan_create(prony_shard_plan **out, prony_model *model, const prony_shard_options *options,
                                     prony_error *error)
{
    prony_shard_options own = PRONY_SHARD_OPTIONS_INIT;
    if (!out || !model) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_shard_plan_create: an argument is NULL");
    PRN_TRY(prn_options_read(&own, sizeof own, options, "shard options", error));
    PRN_TRY(check_options(&own, error));
    prn_budget *former = prn_budget_enter(model->budget);
    prony_shard_plan *plan = prn_calloc(1, sizeof *plan);
    prony_status status = PRONY_OK;
    if (plan) {
        plan->model = model;
        prn_model_retain(model);
        plan->stage_count = (size_t)own.stages;
        status = build(plan, &own, error);
        /* Only stages need their own program. */
        prn_program_release(plan->program);
        plan->program = NULL;
    } else {
        status = prn_no_memory(error);
    }
    prn_budget_enter(former);
    if (status == PRONY_OK)
        *out = plan;
    else
        prony_shard_plan_release(plan);
    return status;
}

void prony_shard_plan_release(prony_shard_plan *plan)
{
    if (!plan) return;
    for (size_t s = 0; plan->models && s < plan->stage_count; s++) prony_model_release(plan->models[s]);
    prn_free(plan->maker);
    prn_free(plan->last_read);
    prn_free(plan->cuts);
    prn_free(plan->compute_ns);
    prn_free(plan->weight_bytes);
    prn_free(plan->work);
    prn_free(plan->live_bytes);
    prony_model_release(plan->model);
    prn_bump_release(&plan->pool);
    prn_free(plan);
}
