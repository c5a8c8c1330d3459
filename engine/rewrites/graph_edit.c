/* The edits of rewrites. Each keeps use counts, producers and the conservation of layers correct. After a failed one
 * the program can only be released. */
#include "engine/rewrites/pass.h"

#include "base/shape.h"

#include <string.h>

prony_status prn_rewrite_set_inputs(prn_rewriter *r, prn_node_def *node, const uint32_t *inputs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (inputs[i] != PRN_NO_VALUE) r->uses[inputs[i]]++;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != PRN_NO_VALUE) r->uses[node->inputs[i]]--;
    r->changed = true;
    return prn_node_set_inputs(r->program, node, inputs, count) ? PRONY_OK : prn_no_memory(r->error);
}

void prn_rewrite_mark_removed(prn_rewriter *r, prn_node_def *node)
{
    prn_program_mark_removed(r->program, node);
}

prony_status prn_rewrite_absorb(prn_rewriter *r, prn_node_def *keep, prn_node_def *gone)
{
    for (uint32_t i = 0; i < gone->input_count; i++)
        if (gone->inputs[i] != PRN_NO_VALUE) r->uses[gone->inputs[i]]--;
    r->changed = true;
    return prn_program_absorb(r->program, keep, gone) ? PRONY_OK : prn_no_memory(r->error);
}

prony_status prn_rewrite_take_over(prn_rewriter *r, prn_node_def *keep, uint32_t last)
{
    PRN_TRY(prn_rewrite_absorb(r, keep, r->program->nodes[last]));
    return prn_rewrite_take_place(r, keep, last);
}

prony_status prn_rewrite_take_place(prn_rewriter *r, prn_node_def *keep, uint32_t last)
{
    prn_program *p = r->program;
    prn_node_def *gone = p->nodes[last];
    uint32_t old = keep->outputs[0], output = gone->outputs[0];
    uint32_t position = p->values[old]->producer;
    if (!prn_node_set_outputs(p, keep, &output, 1)) return prn_no_memory(r->error);
    p->nodes[last] = keep;
    p->nodes[position] = gone;
    p->values[output]->producer = last;
    p->values[old]->producer = PRN_NO_NODE;
    return PRONY_OK;
}

/* The operators that rewrites make. `opset`: the version that defines the attributes and inputs used by the rewrites,
 * whatever the model imports. */
static const struct made {
    const char *op, *domain;
    int64_t opset;
} made[] = {
    {"Attention", "prony", 1},
    {"QAdd", "prony", 1},
    {"QConv", "prony", 1},
    {"QConvTranspose", "prony", 1},
    {"QGemm", "prony", 1},
    {"QMap", "prony", 1},
    {"QMul", "prony", 1},
    {"SiLU", "prony", 1},
    {"QLinearAveragePool", "com.microsoft", 1},
    {"QLinearGlobalAveragePool", "com.microsoft", 1},
    {"Conv", "", 11},
    {"Gelu", "", 20},
    {"GroupNormalization", "", 21},
    {"HardSigmoid", "", 6},
    {"HardSwish", "", 14},
    {"Identity", "", 1},
    {"LayerNormalization", "", 17},
    {"QLinearConv", "", 10},
    {"QLinearMatMul", "", 10},
    {"Reshape", "", 14},
    {"Transpose", "", 13},
};

static const struct made *find_made(const char *op)
{
    static const struct made none = {.domain = "prony", .opset = 1};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        if (strcmp(made[i].op, op) == 0) return &made[i];
    return &none;
}

bool prn_rewrite_has(const char *op)
{
    const struct made *m = find_made(op);
    return prn_op_find(m->domain, op, m->opset) != NULL;
}

/* `last` becomes the operator of that domain, name and opset, with copies of the attributes. */
static prony_status graph_edit_become(prn_rewriter *r, prn_node_def *last, const struct made *m,
                                      const prn_attr *attributes, size_t attribute_count, const uint32_t *inputs,
                                      uint32_t input_count, const prn_pattern *pattern)
{
    prn_program *p = r->program;
    prn_attr_list *list = prn_bump_alloc(&p->pool, 1, sizeof *list);
    prn_attr *items = prn_bump_alloc(&p->pool, attribute_count + 1, sizeof *items);
    if (!list || !items) return prn_no_memory(r->error);
    if (attribute_count) memcpy(items, attributes, attribute_count * sizeof *items);
    *list = (prn_attr_list){items, attribute_count};
    PRN_TRY(prn_node_become(p, last, m->domain, m->op, m->opset, list, r->error));
    PRN_TRY(prn_rewrite_set_inputs(r, last, inputs, input_count));
    for (size_t k = 0; pattern && k < pattern->node_count; k++) PRN_TRY(prn_rewrite_absorb(r, last, pattern->nodes[k]));
    return PRONY_OK;
}

prony_status prn_rewrite_become(prn_rewriter *r, prn_node_def *last, const char *op, const prn_attr *attributes,
                                size_t attribute_count, const uint32_t *inputs, uint32_t input_count,
                                const prn_pattern *pattern)
{
    const struct made m = {op, find_made(op)->domain, find_made(op)->opset};
    return graph_edit_become(r, last, &m, attributes, attribute_count, inputs, input_count, pattern);
}

prony_status prn_rewrite_restate(prn_rewriter *r, prn_node_def *node, const prn_attr *attributes,
                                 size_t attribute_count, const uint32_t *inputs, uint32_t input_count,
                                 const prn_pattern *pattern)
{
    const struct made same = {node->info.op_type, node->info.domain, node->info.opset};
    return graph_edit_become(r, node, &same, attributes, attribute_count, inputs, input_count, pattern);
}

void prn_rewrite_replace_uses(prn_rewriter *r, uint32_t from, uint32_t to)
{
    prn_program_replace_uses(r->program, from, to);
    r->uses[to] += r->uses[from];
    r->uses[from] = 0;
    r->changed = true;
}

prony_status prn_rewrite_add_constant(prn_rewriter *r, const char *name, const prony_value *info, void *data,
                                      uint32_t *out)
{
    if (!PRN_GROW(r->uses, r->uses_capacity, r->program->value_count + 2)) {
        prn_free_aligned(data);
        return prn_no_memory(r->error);
    }
    PRN_TRY(prn_program_add_constant(r->program, name, info, data, out, r->error));
    r->uses[*out] = 0;
    return PRONY_OK;
}

prony_status prn_rewrite_add_deferred(prn_rewriter *r, const prony_value *info, prn_lazy_constant *recipe,
                                      uint32_t from, uint32_t *out)
{
    prn_program *p = r->program;
    const char *name = p->values[from]->name;
    if (!PRN_GROW(r->uses, r->uses_capacity, p->value_count + 2)) return prn_no_memory(r->error);
    prn_weight_cache_entry *source = prn_weight_cache_source(p->values[from]->shared, recipe);
    PRN_TRY(prn_program_add_deferred(p, name, info, recipe, source, out, r->error));
    r->uses[*out] = 0;
    return PRONY_OK;
}

prony_status prn_rewrite_add_vector(prn_rewriter *r, const char *name, int64_t count, float element, uint32_t *out)
{
    float *data = prn_alloc_aligned(64, (size_t)(count ? count : 1) * sizeof *data);
    if (!data) return prn_no_memory(r->error);
    for (int64_t i = 0; i < count; i++) data[i] = element;
    const prony_value info = {.kind = PRONY_TENSOR, .dtype = PRONY_FLOAT32, .shape = {.rank = 1, .dim = {count}}};
    return prn_rewrite_add_constant(r, name, &info, data, out);
}

prony_status prn_rewrite_add_shape(prn_rewriter *r, const char *name, const prony_shape *shape, uint32_t *out)
{
    size_t bytes = (size_t)shape->rank * sizeof(int64_t);
    void *data = prn_alloc_aligned(64, bytes ? bytes : 1);
    if (!data) return prn_no_memory(r->error);
    memcpy(data, shape->dim, bytes);
    prony_value info = {.kind = PRONY_TENSOR, .dtype = PRONY_INT64, .shape = {.rank = 1, .dim = {shape->rank}}};
    return prn_rewrite_add_constant(r, name, &info, data, out);
}

prony_status prn_rewrite_become_reshape(prn_rewriter *r, prn_node_def *node, uint32_t input, const prn_pattern *pattern)
{
    /* allowzero: an extent of 0 means 0. */
    const prn_attr attributes[] = {{.name = "allowzero", .type = PRN_ATTR_INT, .i = 1}};
    const prn_value_def *output = r->program->values[node->outputs[0]];
    uint32_t inputs[] = {input, PRN_NO_VALUE};
    PRN_TRY(prn_rewrite_add_shape(r, output->name, &output->info.shape, &inputs[1]));
    return prn_rewrite_become(r, node, "Reshape", attributes, 1, inputs, 2, pattern);
}
