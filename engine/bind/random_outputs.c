/* One forward pass. Drawn values have their operator's range; moved or converted ones keep it; computed ones have no
 * range (but a bool is 0 or 1). If a node's subgraph draws or reads drawn values, all its outputs are random. The table
 * of values lives as long as the call. */
#include "engine/bind/random_outputs.h"
#include "ops/kernels/lowbit/narrow_types.h"

#include <math.h>
#include <string.h>

typedef struct drawn {
    bool random;
    prony_random_range range;
} drawn;

static const prony_random_range unbounded = {-INFINITY, INFINITY, false};

static bool random_outputs_is_named(const prn_node_def *node, const char *name)
{
    return !*node->info.domain && strcmp(node->info.op_type, name) == 0;
}

static bool draws(const prn_node_def *node)
{
    const prn_op *op = node->binding.op;
    if (!op || !(op->flags & PRN_OP_ONCE_PER_RUN) || op != prn_op_find(prn_op_domain(op), op->name, node->info.opset))
        return false;
    return !random_outputs_is_named(node, "Dropout") || (node->info.opset >= 12 && node->input_count > 2);
}

static bool any_node_draws(const prn_program *program)
{
    for (size_t i = 0; i < program->node_count; i++) {
        const prn_node_def *node = program->nodes[i];
        if (node->dead) continue;
        if (draws(node)) return true;
        for (uint32_t k = 0; k < node->child_count; k++)
            if (any_node_draws(node->children[k].program)) return true;
    }
    return false;
}

static prony_random_range random_outputs_range_of(const prn_node_def *node)
{
    if (random_outputs_is_named(node, "Bernoulli")) return (prony_random_range){0, 1, true};
    if (random_outputs_is_named(node, "RandomUniform") || random_outputs_is_named(node, "RandomUniformLike")) {
        float low = 0, high = 1;
        (void)prony_node_float(&node->info, "low", &low);
        (void)prony_node_float(&node->info, "high", &high);
        return (prony_random_range){fmin((double)low, (double)high), fmax((double)low, (double)high), false};
    }
    if (random_outputs_is_named(node, "Multinomial")) {
        const prony_shape *shape = &node->input_values[0]->shape;
        bool known = shape->rank == 2 && shape->dim[1] > 0;
        return (prony_random_range){0, known ? (double)(shape->dim[1] - 1) : INFINITY, true};
    }
    return unbounded;
}

/* true: the elements of output 0 are input 0's, possibly of another type. */
static bool keeps_elements(const prn_node_def *node)
{
    const prn_op *op = node->binding.op;
    return (op && (op->flags & PRN_OP_VIEW)) || random_outputs_is_named(node, "Cast") ||
           random_outputs_is_named(node, "CastLike") || random_outputs_is_named(node, "Identity");
}

/* Conversion to integers truncates. */
static prony_random_range converted(prony_random_range range, prony_dtype dtype)
{
    bool real = prn_dtype_is_float(dtype) || prn_dtype_is_narrow(dtype);
    return real ? range : (prony_random_range){trunc(range.low), trunc(range.high), true};
}

static drawn node_result(const prn_node_def *node, const drawn *values)
{
    if (draws(node)) return (drawn){true, random_outputs_range_of(node)};
    drawn result = {false, unbounded};
    for (uint32_t i = 0; i < node->input_count; i++) {
        const drawn *in = node->inputs[i] == PRN_NO_VALUE ? NULL : &values[node->inputs[i]];
        if (!in || !in->random) continue;
        bool shape_only = i == 0 && node->binding.op && (node->binding.op->flags & PRN_OP_SHAPE_ONLY);
        if (shape_only) continue;
        result.random = true;
        if (i == 0 && keeps_elements(node) && node->output_values[0])
            result.range = converted(in->range, node->output_values[0]->dtype);
    }
    for (uint32_t k = 0; k < node->child_count; k++) {
        const prn_child *child = &node->children[k];
        result.random |= any_node_draws(child->program);
        for (uint32_t i = 0; i < child->captured_count; i++) result.random |= values[child->captured[i]].random;
    }
    return result;
}

prony_status prn_program_output_random(const prn_program *program, size_t output, bool *random,
                                       prony_random_range *range, prony_error *error)
{
    drawn *values = prn_calloc(program->value_count ? program->value_count : 1, sizeof *values);
    if (!values) return prn_no_memory(error);
    for (size_t i = 0; i < program->node_count; i++) {
        const prn_node_def *node = program->nodes[i];
        if (node->dead) continue;
        drawn result = node_result(node, values);
        for (uint32_t k = 0; k < node->output_count; k++) {
            if (node->outputs[k] == PRN_NO_VALUE) continue;
            values[node->outputs[k]] = result;
            if (program->values[node->outputs[k]]->info.dtype == PRONY_BOOL)
                values[node->outputs[k]].range = (prony_random_range){0, 1, true};
        }
    }
    *random = values[program->outputs[output]].random;
    *range = values[program->outputs[output]].range;
    prn_free(values);
    return PRONY_OK;
}
