/* Rows of subgraphs: their nodes and steps, each after the row that contains it. They detail their owner, whose values
 * include theirs. */
#include "profiler/measure/report_build.h"

#include <string.h>

/* The position of a subgraph's rows. */
typedef struct place {
    uint32_t owner, parent, depth;
    const char *subgraph, *path;
} place;

typedef struct builder {
    prony_report *report;
    const prn_nested *nested; /* NULL: nothing ran */
    uint32_t **rows;          /* of each subgraph's plan: by layer, its row */
    prony_error *error;
} builder;

static const char *report_nested_copy_text(builder *b, const char *text)
{
    return prn_bump_strndup(&b->report->pool, text, strlen(text));
}

static const char *report_nested_join(builder *b, const char *path, const char *name)
{
    return *path ? prn_bump_printf(&b->report->pool, "%s > %s", path, name) : report_nested_copy_text(b, name);
}

/* The position of a child's rows; `path` leads to the node. */
static prony_status place_child(builder *b, const place *around, const char *node, const char *subgraph,
                                uint32_t parent, place *out)
{
    *out = (place){around->owner, parent, around->depth + 1, report_nested_copy_text(b, subgraph), NULL};
    const char *path = report_nested_join(b, around->path, node);
    if (path) out->path = report_nested_join(b, path, subgraph);
    return out->subgraph && out->path ? PRONY_OK : prn_no_memory(b->error);
}

static prony_status report_nested_fill_place(builder *b, prony_nested_row *row, const place *at, const prony_node *info)
{
    row->owner = at->owner;
    row->parent = at->parent;
    row->depth = at->depth;
    row->subgraph = at->subgraph;
    row->path = at->path;
    row->operator_index = PRONY_NO_INDEX;
    row->kernel = row->backend = row->module = "";
    row->name = report_nested_copy_text(b, info->name);
    row->op = report_nested_copy_text(b, info->op_type);
    return row->name && row->op ? PRONY_OK : prn_no_memory(b->error);
}

/* ---- nodes ---- */

/* By layer, the node with subgraphs that stands for it, or NULL. */
static const prn_node_def **owners(const prn_program *program)
{
    const prn_node_def **list = prn_calloc(program->layer_count + 1, sizeof *list);
    for (size_t n = 0; list && n < program->node_count; n++) {
        const prn_node_def *node = program->nodes[n];
        if (!node->dead && node->child_count && node->layer_count) list[node->own_layer] = node;
    }
    return list;
}

/* Number of rows for the nodes in all subgraphs, those evaluated at bind time included. */
static size_t report_nested_count_layers(const prn_program *program, bool inside)
{
    size_t count = inside ? program->layer_count : 0;
    for (size_t n = 0; n < program->node_count; n++) {
        const prn_node_def *node = program->nodes[n];
        for (uint32_t c = 0; !node->dead && node->layer_count && c < node->child_count; c++)
            if (node->children[c].program) count += report_nested_count_layers(node->children[c].program, true);
    }
    return count;
}

/* Only the step of a node with subgraphs or unknown shapes knows its work. */
static prony_status fill_layer_cost(builder *b, prony_nested_row *row, const prn_layer *layer, bool has_children,
                                    const prn_plan *plan)
{
    row->cost = prn_layer_cost(layer);
    if (!plan || !b->nested) return PRONY_OK;
    row->executed = true;
    row->executions = layer->folded ? 0 : b->nested->trips[plan->nested.index];
    prony_cost once = prn_layer_cost(layer);
    row->cost = (prony_cost){.parameters = once.parameters};
    if (layer->dynamic || has_children) return PRONY_OK;
    once.parameters = 0;
    memcpy(row->cost.facts, once.facts, sizeof once.facts);
    row->cost.fact_count = once.fact_count;
    if (prn_cost_add_times(&row->cost, &once, row->executions)) return PRONY_OK;
    return prn_fail(b->error, PRONY_LIMIT, "layer \"%s\": its cost overflows 64 bits", row->name);
}

static prony_status fill_layer(builder *b, const prn_program *program, const prn_layer *layer, prony_nested_row *row)
{
    row->module = prn_report_module_of(b->report, row->name);
    if (!row->module) return prn_no_memory(b->error);
    row->folded = layer->folded;
    row->dynamic = layer->dynamic;
    row->input_count = layer->input_count;
    row->output_count = layer->output_count;
    PRN_TRY(
        prn_report_copy_values(b->report, program, NULL, layer->inputs, layer->input_count, &row->inputs, b->error));
    return prn_report_copy_values(b->report, program, NULL, layer->outputs, layer->output_count, &row->outputs,
                                  b->error);
}

static prony_status report_nested_fill_sources(builder *b, const prn_program *program, const uint32_t *rows)
{
    uint32_t *maker = prn_calloc(program->value_count + 1, sizeof *maker); /* row + 1; 0: none */
    prony_status status = maker ? PRONY_OK : prn_no_memory(b->error);
    for (size_t l = 0; status == PRONY_OK && l < program->layer_count; l++)
        for (uint32_t k = 0; k < program->layers[l].output_count; k++)
            if (program->layers[l].outputs[k] != PRN_NO_VALUE) maker[program->layers[l].outputs[k]] = rows[l] + 1;
    for (size_t l = 0; status == PRONY_OK && l < program->layer_count; l++) {
        const prn_layer *layer = &program->layers[l];
        uint32_t *sources = prn_bump_alloc(&b->report->pool, layer->input_count + 1, sizeof *sources);
        if (!sources) status = prn_no_memory(b->error);
        for (uint32_t i = 0; sources && i < layer->input_count; i++) {
            uint32_t from = layer->inputs[i] == PRN_NO_VALUE ? 0 : maker[layer->inputs[i]];
            sources[i] = from ? from - 1 : PRONY_NO_INDEX;
        }
        b->report->nested_layers[rows[l]].sources = sources;
    }
    prn_free(maker);
    return status;
}

/* The plan of child `c` of the node's step; NULL: none. */
static const prn_plan *plan_of_child(const prn_plan *plan, const prn_node_def *node, uint32_t c)
{
    for (size_t s = 0; plan && s < plan->step_count; s++)
        if (plan->steps[s]->node == node && plan->steps[s]->children) return plan->steps[s]->children[c];
    return NULL;
}

static prony_status report_nested_add_program(builder *b, const prn_program *program, const prn_plan *plan,
                                              const place *at);

static prony_status add_children(builder *b, const prn_node_def *node, const prn_plan *plan, const place *around,
                                 uint32_t parent)
{
    for (uint32_t c = 0; node && c < node->child_count; c++) {
        const prn_child *child = &node->children[c];
        if (!child->program) continue;
        place at;
        PRN_TRY(place_child(b, around, node->info.name, child->name, parent, &at));
        PRN_TRY(report_nested_add_program(b, child->program, plan_of_child(plan, node, c), &at));
    }
    return PRONY_OK;
}

static prony_status add_layers(builder *b, const prn_program *program, const prn_plan *plan, const place *at,
                               const prn_node_def *const *owner_nodes, uint32_t *rows)
{
    for (size_t l = 0; l < program->layer_count; l++) {
        const prn_layer *layer = &program->layers[l];
        uint32_t index = rows[l] = (uint32_t)b->report->nested_layer_count++;
        prony_nested_row *row = &b->report->nested_layers[index];
        row->index = index;
        PRN_TRY(report_nested_fill_place(b, row, at, &layer->info));
        PRN_TRY(fill_layer(b, program, layer, row));
        PRN_TRY(fill_layer_cost(b, row, layer, owner_nodes[l] != NULL, plan));
        PRN_TRY(add_children(b, owner_nodes[l], plan, at, index));
    }
    return PRONY_OK;
}

static prony_status report_nested_add_program(builder *b, const prn_program *program, const prn_plan *plan,
                                              const place *at)
{
    const prn_node_def **owner_nodes = owners(program);
    uint32_t *rows = prn_calloc(program->layer_count + 1, sizeof *rows);
    prony_status status = owner_nodes && rows ? PRONY_OK : prn_no_memory(b->error);
    if (status == PRONY_OK) status = add_layers(b, program, plan, at, owner_nodes, rows);
    if (status == PRONY_OK) status = report_nested_fill_sources(b, program, rows);
    prn_free(owner_nodes);
    if (plan && b->nested)
        b->rows[plan->nested.index] = rows;
    else
        prn_free(rows);
    return status;
}

static prony_status add_all_layers(builder *b, const prn_program *program, const prn_plan *plan)
{
    size_t count = report_nested_count_layers(program, false);
    b->report->nested_layers = prn_bump_alloc(&b->report->pool, count + 1, sizeof *b->report->nested_layers);
    const prn_node_def **owner_nodes = owners(program);
    prony_status status = b->report->nested_layers && owner_nodes ? PRONY_OK : prn_no_memory(b->error);
    for (uint32_t l = 0; status == PRONY_OK && l < program->layer_count; l++) {
        const place around = {l, PRONY_NO_INDEX, 0, "", ""};
        status = add_children(b, owner_nodes[l], plan, &around, PRONY_NO_INDEX);
    }
    prn_free(owner_nodes);
    return status;
}

/* ---- steps ---- */

static prony_status fill_step_cost(builder *b, prony_nested_row *row, const prn_plan *plan, const prn_step *step)
{
    row->executed = true;
    row->executions = b->nested->trips[plan->nested.index];
    row->cost.parameters = step->work.cost.parameters;
    prony_cost beside = {0};
    bool fits = prn_nested_cost(b->nested, plan, step, &row->cost) && prn_step_beside(plan, step, &beside);
    row->cost.parameters += beside.parameters;
    beside.parameters = 0;
    if (fits && prn_cost_add_times(&row->cost, &beside, row->executions)) return PRONY_OK;
    return prn_fail(b->error, PRONY_LIMIT, "operator \"%s\": its cost overflows 64 bits", row->name);
}

/* Layers with a cost known after the run only get the executed cost of their step, without the other layers'. */
static prony_status link_layers(builder *b, prony_nested_row *row, const prn_plan *plan, const prn_step *step)
{
    const uint32_t *rows = b->rows[plan->nested.index];
    uint32_t *layers = prn_bump_alloc(&b->report->pool, step->node->layer_count + 1, sizeof *layers);
    if (!layers || !rows) return prn_no_memory(b->error);
    for (uint32_t k = 0; k < step->node->layer_count; k++) {
        prony_nested_row *layer = &b->report->nested_layers[rows[step->node->layers[k]]];
        layers[k] = layer->index;
        layer->operator_index = row->index;
        layer->kernel = row->kernel;
        layer->backend = row->backend;
        if (!prn_step_gives_cost(plan, step, step->node->layers[k])) continue;
        prony_cost executed = {.parameters = layer->cost.parameters};
        if (!prn_nested_cost(b->nested, plan, step, &executed))
            return prn_fail(b->error, PRONY_LIMIT, "operator \"%s\": its cost overflows 64 bits", row->name);
        layer->cost = executed;
    }
    row->layers = layers;
    row->layer_count = step->node->layer_count;
    return PRONY_OK;
}

static prony_status fill_kernel(builder *b, prony_nested_row *row, const prn_step *step)
{
    const prn_kernel *kernel = prn_step_kernel(step);
    row->kernel = report_nested_copy_text(b, kernel ? kernel->name : "");
    row->backend = report_nested_copy_text(b, kernel ? kernel->backend : "");
    return row->kernel && row->backend ? PRONY_OK : prn_no_memory(b->error);
}

static prony_status add_plan(builder *b, const prn_plan *plan, const place *at);

static prony_status add_step_children(builder *b, const prn_step *step, const place *around, uint32_t parent)
{
    for (uint32_t c = 0; step->children && c < step->node->child_count; c++) {
        if (!step->children[c]) continue;
        place at;
        PRN_TRY(place_child(b, around, step->node->info.name, step->node->children[c].name, parent, &at));
        PRN_TRY(add_plan(b, step->children[c], &at));
    }
    return PRONY_OK;
}

static prony_status add_plan(builder *b, const prn_plan *plan, const place *at)
{
    for (size_t s = 0; s < plan->step_count; s++) {
        const prn_step *step = plan->steps[s];
        uint32_t index = step->nested.index;
        prony_nested_row *row = &b->report->nested_operators[index];
        b->report->nested_operator_count++;
        row->index = index;
        PRN_TRY(report_nested_fill_place(b, row, at, &step->node->info));
        PRN_TRY(fill_kernel(b, row, step));
        row->dynamic = step->dynamic;
        row->cancelled = plan->run.stopped_at == s;
        PRN_TRY(fill_step_cost(b, row, plan, step));
        PRN_TRY(link_layers(b, row, plan, step));
        PRN_TRY(add_step_children(b, step, at, index));
    }
    return PRONY_OK;
}

static prony_status add_all_steps(builder *b, const prn_plan *plan)
{
    b->report->nested_operators =
        prn_bump_alloc(&b->report->pool, b->nested->step_count + 1, sizeof *b->report->nested_operators);
    if (!b->report->nested_operators) return prn_no_memory(b->error);
    for (uint32_t s = 0; s < plan->step_count; s++) {
        const place around = {s, PRONY_NO_INDEX, 0, "", ""};
        PRN_TRY(add_step_children(b, plan->steps[s], &around, PRONY_NO_INDEX));
    }
    return PRONY_OK;
}

/* Notes the layers in which a run stopped, and their text. */
static prony_status note_stop(builder *b, const prn_plan *plan)
{
    prony_report *r = b->report;
    const prony_nested_row *inmost = NULL;
    if (plan->run.stopped_at == PRN_NO_STEP) return PRONY_OK;
    for (size_t i = 0; i < r->nested_operator_count; i++) {
        const prony_nested_row *row = &r->nested_operators[i];
        if (!row->cancelled) continue;
        if (row->owner == plan->run.stopped_at) inmost = row;
        for (size_t k = 0; k < row->layer_count; k++) r->nested_layers[row->layers[k]].cancelled = true;
    }
    const char *outer = plan->steps[plan->run.stopped_at]->node->info.name;
    r->stopped_at = inmost ? report_nested_join(b, inmost->path, inmost->name) : report_nested_copy_text(b, outer);
    return r->stopped_at ? PRONY_OK : prn_no_memory(b->error);
}

/* ---- sums ---- */

/* `times` UINT64_MAX subtracts. */
static void add_counts(prony_cost *sum, const prony_cost *cost, uint64_t times)
{
    sum->macs += times * cost->macs;
    sum->madds += times * cost->madds;
    sum->flops += times * cost->flops;
    sum->special += times * cost->special;
    sum->int_ops += times * cost->int_ops;
}

static bool same_counts(const prony_cost *a, const prony_cost *b)
{
    return a->macs == b->macs && a->madds == b->madds && a->flops == b->flops && a->special == b->special &&
           a->int_ops == b->int_ops;
}

/* The own work of each row, after subtracting its subgraphs' rows; `own` holds the expected remainders. Sums may wrap;
 * comparing them stays correct. */
typedef struct remainders {
    prony_cost *owners, *rows;
} remainders;

static prony_status make_remainders(remainders *left, size_t owner_count, size_t row_count, prony_error *error)
{
    left->owners = prn_calloc(owner_count + 1, sizeof *left->owners);
    left->rows = prn_calloc(row_count + 1, sizeof *left->rows);
    return left->owners && left->rows ? PRONY_OK : prn_no_memory(error);
}

static void free_remainders(remainders *left)
{
    prn_free(left->owners);
    prn_free(left->rows);
}

static void report_nested_take_away(remainders *left, const prony_nested_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) add_counts(&left->rows[i], &rows[i].cost, 1);
    for (size_t i = 0; i < count; i++)
        add_counts(rows[i].parent == PRONY_NO_INDEX ? &left->owners[rows[i].owner] : &left->rows[rows[i].parent],
                   &rows[i].cost, UINT64_MAX);
}

/* true: the remainder is the step's own work plus the fixed layers' in each of `times` runs. */
static bool is_own_work(const prony_cost *left, const prony_cost *own, const prn_plan *plan, const prn_step *step,
                        uint64_t times)
{
    prony_cost beside = {0}, sum = {0};
    if (!prn_step_beside(plan, step, &beside)) return false;
    add_counts(&sum, own, 1);
    add_counts(&sum, &beside, times);
    return same_counts(left, &sum);
}

/* true: the remainders of steps are their own recorded work. */
static bool own_work_agrees(const builder *b, const prn_plan *plan, const remainders *steps)
{
    bool ok = true;
    for (size_t s = 0; ok && s < plan->step_count; s++) {
        const prn_step *step = plan->steps[s];
        if (step->children)
            ok = is_own_work(&steps->rows[step->nested.index], &b->nested->tallies[step->nested.index].cost, plan, step,
                             b->nested->trips[plan->nested.index]);
        for (uint32_t c = 0; ok && step->children && c < step->node->child_count; c++)
            if (step->children[c]) ok = own_work_agrees(b, step->children[c], steps);
    }
    return ok;
}

/* true: the remainders of operators are their own work, and layers have the same remainders. */
static bool sums_agree(const builder *b, const prn_plan *plan, remainders *steps, remainders *layers)
{
    const prony_report *r = b->report;
    bool ok = true;
    for (uint32_t o = 0; o < r->operator_count; o++) add_counts(&steps->owners[o], &r->operators[o].cost, 1);
    for (uint32_t l = 0; l < r->layer_count; l++) add_counts(&layers->owners[l], &r->layers[l].cost, 1);
    report_nested_take_away(steps, r->nested_operators, r->nested_operator_count);
    report_nested_take_away(layers, r->nested_layers, r->nested_layer_count);
    for (uint32_t s = 0; ok && s < plan->step_count; s++) {
        const prn_step *step = plan->steps[s];
        if (!step->children) continue;
        ok = plan->run.stopped_at != PRN_NO_STEP || is_own_work(&steps->owners[s], step->work.executed, plan, step, 1);
        if (ok) ok = is_own_work(&steps->owners[s], &layers->owners[step->node->own_layer], plan, step, 1);
        for (uint32_t c = 0; ok && c < step->node->child_count; c++)
            if (step->children[c]) ok = own_work_agrees(b, step->children[c], steps);
    }
    for (size_t i = 0; ok && i < r->nested_operator_count; i++) {
        const prony_nested_row *row = &r->nested_operators[i];
        prony_cost sum = {0};
        for (size_t k = 0; k < row->layer_count; k++) add_counts(&sum, &layers->rows[row->layers[k]], 1);
        ok = same_counts(&sum, &steps->rows[i]);
    }
    return ok;
}

static prony_status check_sums(builder *b, const prn_plan *plan)
{
    const prony_report *r = b->report;
    remainders steps = {0}, layers = {0};
    prony_status status = make_remainders(&steps, r->operator_count, r->nested_operator_count, b->error);
    if (status == PRONY_OK) status = make_remainders(&layers, r->layer_count, r->nested_layer_count, b->error);
    if (status == PRONY_OK) b->report->conserved &= sums_agree(b, plan, &steps, &layers);
    free_remainders(&steps);
    free_remainders(&layers);
    return status;
}

/* ---- all rows ---- */

prony_status prn_report_fill_nested(prony_report *report, const prn_program *program, const prn_plan *plan,
                                    const prn_nested *nested, prony_error *error)
{
    builder b = {.report = report, .nested = plan ? nested : NULL, .error = error};
    prony_status status = PRONY_OK;
    if (b.nested) b.rows = prn_calloc(nested->plan_count + 1, sizeof *b.rows);
    if (b.nested && !b.rows) return prn_no_memory(error);
    status = add_all_layers(&b, program, plan);
    if (status == PRONY_OK && b.nested) status = add_all_steps(&b, plan);
    if (status == PRONY_OK && b.nested) status = note_stop(&b, plan);
    if (status == PRONY_OK && b.nested) status = check_sums(&b, plan);
    for (size_t p = 0; b.nested && p < nested->plan_count; p++) prn_free(b.rows[p]);
    prn_free(b.rows);
    return status;
}
