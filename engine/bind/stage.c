/* See the header. */
#include "engine/bind/stage.h"

#include <string.h>

uint32_t *prn_program_makers(const prn_program *program)
{
    uint32_t *maker = prn_calloc(program->value_count + 1, sizeof *maker);
    for (uint32_t n = 0; maker && n < program->node_count; n++) {
        const prn_node_def *node = program->nodes[n];
        for (uint32_t k = 0; k < node->output_count && !node->dead; k++)
            if (node->outputs[k] != PRN_NO_VALUE) maker[node->outputs[k]] = n + 1;
    }
    return maker;
}

void prn_node_reads(const prn_program *program, const prn_node_def *node, void (*see)(void *user, uint32_t value),
                    void *user)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != PRN_NO_VALUE && !program->values[node->inputs[i]]->constant) see(user, node->inputs[i]);
    for (uint32_t c = 0; c < node->child_count; c++)
        for (uint32_t k = 0; k < node->children[c].captured_count; k++)
            if (!program->values[node->children[c].captured[k]]->constant) see(user, node->children[c].captured[k]);
}

/* ---- what crosses the border ---- */

static void stage_mark(void *user, uint32_t value)
{
    ((bool *)user)[value] = true;
}

static void mark_reads(const prn_program *program, uint32_t first, uint32_t end, bool *reads)
{
    for (uint32_t n = first; n < end; n++)
        if (!program->nodes[n]->dead) prn_node_reads(program, program->nodes[n], stage_mark, reads);
}

/* Fills the border from what is read before, inside of and behind the stage. Invariant: both lists are functions of the
 * program and of the range alone, so that each process finds the same ones. */
static prony_status list_border(prn_stage_border *out, const prn_program *p, uint32_t first, uint32_t end,
                                const uint32_t *maker, bool *inside, const bool *behind, prn_bump *pool,
                                prony_error *error)
{
    out->inputs = prn_bump_alloc(pool, p->value_count + 1, sizeof *out->inputs);
    out->outputs = prn_bump_alloc(pool, p->value_count + p->output_count + 1, sizeof *out->outputs);
    out->graph_outputs = prn_bump_alloc(pool, p->value_count + p->output_count + 1, sizeof *out->graph_outputs);
    bool *listed = prn_calloc(p->value_count + 1, sizeof *listed);
    if (!out->inputs || !out->outputs || !out->graph_outputs || !listed) {
        prn_free(listed);
        return prn_no_memory(error);
    }
    for (uint32_t k = 0; k < p->output_count; k++) {
        const uint32_t value = p->outputs[k], by = maker[value];
        if (by ? by - 1 < first || by - 1 >= end : first != 0) continue;
        if (!by && !p->values[value]->constant) inside[value] = true;
        listed[value] = true;
        out->outputs[out->output_count] = value;
        out->graph_outputs[out->output_count++] = k;
    }
    for (uint32_t v = 0; v < p->value_count; v++) {
        const bool own = maker[v] && maker[v] - 1 >= first && maker[v] - 1 < end;
        if (inside[v] && !own) out->inputs[out->input_count++] = v;
        if (!own || !behind[v] || listed[v]) continue;
        out->outputs[out->output_count] = v;
        out->graph_outputs[out->output_count++] = PRN_NO_VALUE;
    }
    prn_free(listed);
    return PRONY_OK;
}

prony_status prn_stage_border_find(prn_stage_border *out, const prn_program *program, uint32_t first, uint32_t end,
                                   prn_bump *pool, prony_error *error)
{
    *out = (prn_stage_border){0};
    uint32_t *maker = prn_program_makers(program);
    bool *inside = prn_calloc(program->value_count + 1, sizeof *inside);
    bool *behind = prn_calloc(program->value_count + 1, sizeof *behind);
    prony_status status = maker && inside && behind ? PRONY_OK : prn_no_memory(error);
    if (status == PRONY_OK) {
        mark_reads(program, first, end, inside);
        mark_reads(program, end, (uint32_t)program->node_count, behind);
        status = list_border(out, program, first, end, maker, inside, behind, pool, error);
    }
    prn_free(maker);
    prn_free(inside);
    prn_free(behind);
    return status;
}

/* ---- narrowing ---- */

static bool same_ports(const prn_program *p, const prn_stage *stage, const prn_stage_border *border)
{
    const prn_graph *graph = &stage->file.graph;
    if (border->input_count != graph->input_count || border->output_count != graph->output_count) return false;
    for (size_t i = 0; i < border->input_count; i++)
        if (strcmp(p->values[border->inputs[i]]->name, graph->inputs[i].name) != 0) return false;
    return true;
}

prony_status prn_program_narrow(prn_program *program, const prn_stage *stage, prony_error *error)
{
    prn_stage_border border = {0};
    if (stage->end > program->node_count)
        return prn_fail(error, PRONY_INTERNAL, "the program has fewer nodes than its stages");
    PRN_TRY(prn_stage_border_find(&border, program, stage->first, stage->end, &program->pool, error));
    if (!same_ports(program, stage, &border))
        return prn_fail(error, PRONY_INTERNAL, "the program is not the one that was cut into stages");
    for (uint32_t n = 0; n < program->node_count; n++)
        if (n < stage->first || n >= stage->end) program->nodes[n]->dead = true;
    for (size_t v = 0; v < program->value_count; v++) program->values[v]->input = program->values[v]->output = false;
    for (size_t i = 0; i < border.input_count; i++) {
        program->values[border.inputs[i]]->input = true;
        program->values[border.inputs[i]]->producer = PRN_NO_NODE;
    }
    for (size_t k = 0; k < border.output_count; k++) program->values[border.outputs[k]]->output = true;
    program->inputs = border.inputs;
    program->input_count = border.input_count;
    program->outputs = border.outputs;
    program->output_count = border.output_count;
    program->graph = &stage->file.graph;
    return PRONY_OK;
}

/* ---- the model ---- */

static bool put_port(prn_stage *stage, prn_port *port, const char *name, const prony_value *info)
{
    *port = (prn_port){.name = prn_bump_strndup(&stage->pool, name, strlen(name)),
                       .kind = info->kind,
                       .dtype = info->dtype,
                       .shape = info->shape};
    return port->name != NULL;
}

/* The stage's inputs and outputs are the values that cross its border. Names are copied to stage->pool, because the
 * stage outlives the program. A value that is an output of the whole graph keeps the graph's name for it. */
static prony_status put_ports(prn_stage *stage, const prn_program *program, prony_error *error)
{
    prn_stage_border border;
    prn_bump pool = {0};
    prn_graph *graph = &stage->file.graph;
    prony_status status = prn_stage_border_find(&border, program, stage->first, stage->end, &pool, error);
    if (status == PRONY_OK) {
        prn_port *inputs = prn_bump_alloc(&stage->pool, border.input_count + 1, sizeof *inputs);
        prn_port *outputs = prn_bump_alloc(&stage->pool, border.output_count + 1, sizeof *outputs);
        bool made = inputs && outputs;
        for (size_t i = 0; made && i < border.input_count; i++) {
            const prn_value_def *value = program->values[border.inputs[i]];
            made = put_port(stage, &inputs[i], value->name, &value->info);
        }
        for (size_t k = 0; made && k < border.output_count; k++) {
            const prn_value_def *value = program->values[border.outputs[k]];
            const uint32_t of = border.graph_outputs[k];
            made =
                put_port(stage, &outputs[k], of == PRN_NO_VALUE ? value->name : graph->outputs[of].name, &value->info);
        }
        graph->inputs = inputs;
        graph->input_count = border.input_count;
        graph->outputs = outputs;
        graph->output_count = border.output_count;
        graph->optional_count = 0;
        if (!made) status = prn_no_memory(error);
    }
    prn_bump_release(&pool);
    return status;
}

/* A model of nodes first to end - 1 of `program`. It shares the file, weights and caches of `whole`, and holds a
 * reference to it until prn_stage_release. `owned` is NULL because the bytes belong to `whole`. The values in `inputs`
 * are copied, their data are not. */
prony_status prn_stage_create(prony_model **out, prony_model *whole, const prony_value *inputs, size_t input_count,
                              const prn_program *program, uint32_t first, uint32_t end, prony_error *error)
{
    prony_model *model = prn_calloc(1, sizeof *model);
    prn_stage *stage = prn_calloc(1, sizeof *stage);
    if (!model || !stage) {
        prn_free(model);
        prn_free(stage);
        return prn_no_memory(error);
    }
    prn_model_retain(whole);
    *stage = (prn_stage){.whole = whole, .file = *whole->file, .input_count = input_count, .first = first, .end = end};
    stage->inputs = prn_bump_alloc(&stage->pool, input_count + 1, sizeof *stage->inputs);
    if (stage->inputs && input_count) memcpy(stage->inputs, inputs, input_count * sizeof *inputs);
    prony_status status = stage->inputs ? put_ports(stage, program, error) : prn_no_memory(error);
    if (status != PRONY_OK) {
        prn_free(model);
        prn_stage_release(stage);
        return status;
    }
    *model = *whole;
    atomic_init(&model->references, 1);
    model->file = &stage->file;
    model->owned = NULL;
    model->stage = stage;
    model->release_stage = prn_stage_release;
    *out = model;
    return PRONY_OK;
}

void prn_stage_release(prn_stage *stage)
{
    prony_model_release(stage->whole);
    prn_bump_release(&stage->pool);
    prn_free(stage);
}
