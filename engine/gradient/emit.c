/* Nodes of gradients. Shapes are read by Shape nodes, which binding evaluates if they are known. So the nodes are also
 * correct for shapes known at run time only. */
#include "engine/gradient/state.h"

#include <string.h>

prn_attr prn_grad_attr_int(const char *name, int64_t value)
{
    return (prn_attr){.name = name, .type = PRN_ATTR_INT, .i = value};
}

prn_attr prn_grad_attr_float(const char *name, double value)
{
    return (prn_attr){.name = name, .type = PRN_ATTR_FLOAT, .f = (float)value};
}

prn_attr prn_grad_attr_text(const char *name, const char *text)
{
    return (prn_attr){.name = name, .type = PRN_ATTR_STRING, .s = {text, strlen(text)}};
}

prn_attr prn_grad_attr_ints(const char *name, const int64_t *values, size_t count)
{
    return (prn_attr){.name = name, .type = PRN_ATTR_INTS, .ints = values, .count = count};
}

/* Copies attributes with their data into the pool. */
static bool copy_attrs(prn_gradient *g, prn_attr_list *out, const prn_attr *attrs, size_t count)
{
    prn_bump *pool = &g->program->pool;
    prn_attr *items = prn_bump_alloc(pool, count + 1, sizeof *items);
    if (!items) return false;
    for (size_t a = 0; a < count; a++) {
        items[a] = attrs[a];
        if (attrs[a].ints) {
            int64_t *ints = prn_bump_alloc(pool, attrs[a].count + 1, sizeof *ints);
            if (!ints) return false;
            if (attrs[a].count) memcpy(ints, attrs[a].ints, attrs[a].count * sizeof *ints);
            items[a].ints = ints;
        }
        if (attrs[a].s.data) {
            items[a].s.data = prn_bump_strndup(pool, attrs[a].s.data, attrs[a].s.size);
            if (!items[a].s.data) return false;
        }
    }
    *out = (prn_attr_list){items, count};
    return true;
}

/* Describes the differentiated node. Names of nodes made by this Gradient already say so. */
static const char *about_of(const prn_gradient *g)
{
    static const char made[] = "/grad/";
    const char *name = g->node ? g->node->info.name : "", *own = g->job->name;
    const size_t length = strlen(own);
    const bool itself = strncmp(name, own, length) == 0 && strncmp(name + length, made, sizeof made - 1) == 0;
    return itself ? name + length + sizeof made - 1 : name;
}

void prn_grad_node(prn_gradient *g, const char *op, const prn_attr *attrs, size_t attr_count, const uint32_t *inputs,
                   size_t input_count, uint32_t *outputs, size_t output_count)
{
    for (size_t k = 0; k < output_count; k++) outputs[k] = prn_grad_failed(g) ? PRN_NO_VALUE : 0;
    if (prn_grad_failed(g)) return;
    prn_gradient_node node = {.op_type = op,
                              .domain = "",
                              .opset = PRN_GRADIENT_OPSET,
                              .inputs = inputs,
                              .input_count = input_count,
                              .outputs = outputs,
                              .output_count = output_count};
    const char *about = about_of(g);
    node.name = prn_bump_printf(&g->program->pool, "%s%s%s_%u", about, *about ? "/" : "", op, g->number++);
    if (!node.name || !copy_attrs(g, &node.attributes, attrs, attr_count))
        g->status = prn_no_memory(g->error);
    else
        g->status = g->job->make(g->job->user, &node);
    for (size_t k = 0; prn_grad_failed(g) && k < output_count; k++) outputs[k] = PRN_NO_VALUE;
}

uint32_t prn_grad_op(prn_gradient *g, const char *op, const prn_attr *attrs, size_t attr_count, const uint32_t *inputs,
                     size_t input_count)
{
    uint32_t out;
    prn_grad_node(g, op, attrs, attr_count, inputs, input_count, &out, 1);
    return out;
}

uint32_t prn_grad_1(prn_gradient *g, const char *op, uint32_t a)
{
    return prn_grad_op(g, op, PRN_GRAD_NO_ATTRS, &a, 1);
}

uint32_t prn_grad_2(prn_gradient *g, const char *op, uint32_t a, uint32_t b)
{
    return prn_grad_op(g, op, PRN_GRAD_NO_ATTRS, (const uint32_t[]){a, b}, 2);
}

uint32_t prn_grad_3(prn_gradient *g, const char *op, uint32_t a, uint32_t b, uint32_t c)
{
    return prn_grad_op(g, op, PRN_GRAD_NO_ATTRS, (const uint32_t[]){a, b, c}, 3);
}

/* ---- constants ---- */

static uint32_t add_constant(prn_gradient *g, prony_dtype dtype, prony_shape shape, const void *elements)
{
    if (prn_grad_failed(g)) return PRN_NO_VALUE;
    prony_value info = {.kind = PRONY_TENSOR, .dtype = dtype, .shape = shape};
    const size_t bytes = prn_value_bytes(&info);
    uint32_t id = PRN_NO_VALUE;
    void *data = prn_alloc_aligned(64, bytes ? bytes : 1);
    if (!data) {
        g->status = prn_no_memory(g->error);
        return PRN_NO_VALUE;
    }
    if (bytes) memcpy(data, elements, bytes);
    g->status = prn_program_add_constant(g->program, "gradient's constant", &info, data, &id, g->error);
    return prn_grad_failed(g) ? PRN_NO_VALUE : id;
}

uint32_t prn_grad_number(prn_gradient *g, uint32_t like, double number)
{
    if (prn_grad_failed(g)) return PRN_NO_VALUE;
    const float narrow = (float)number;
    switch (prn_grad_info(g, like)->dtype) {
    case PRONY_FLOAT32:
        return add_constant(g, PRONY_FLOAT32, prn_shape_scalar(), &narrow);
    case PRONY_FLOAT64:
        return add_constant(g, PRONY_FLOAT64, prn_shape_scalar(), &number);
    default:
        return prn_grad_cast_like(g, add_constant(g, PRONY_FLOAT64, prn_shape_scalar(), &number), like);
    }
}

uint32_t prn_grad_numbers(prn_gradient *g, uint32_t like, prony_shape shape, const double *numbers)
{
    return prn_grad_cast_like(g, add_constant(g, PRONY_FLOAT64, shape, numbers), like);
}

uint32_t prn_grad_index(prn_gradient *g, int64_t number)
{
    return add_constant(g, PRONY_INT64, prn_shape_scalar(), &number);
}

uint32_t prn_grad_indices(prn_gradient *g, const int64_t *numbers, size_t count)
{
    const int64_t dim = (int64_t)count;
    return add_constant(g, PRONY_INT64, prn_shape_make(1, &dim), numbers);
}

uint32_t prn_grad_axes(prn_gradient *g, int64_t begin, int64_t end)
{
    int64_t axes[PRONY_MAX_RANK];
    size_t count = 0;
    for (int64_t a = begin; a < end && count < PRONY_MAX_RANK; a++) axes[count++] = a;
    return prn_grad_indices(g, axes, count);
}

uint32_t prn_grad_cast_like(prn_gradient *g, uint32_t mask, uint32_t like)
{
    if (prn_grad_failed(g)) return PRN_NO_VALUE;
    const prony_dtype to = prn_grad_info(g, like)->dtype;
    if (to == PRONY_UNDEFINED) return prn_grad_2(g, "CastLike", mask, like);
    if (prn_grad_info(g, mask)->dtype == to) return mask;
    const prn_attr attr = prn_grad_attr_int("to", to);
    return prn_grad_op(g, "Cast", &attr, 1, &mask, 1);
}

/* ---- shapes ---- */

uint32_t prn_grad_shape_of(prn_gradient *g, uint32_t value)
{
    return prn_grad_1(g, "Shape", value);
}

uint32_t prn_grad_extent(prn_gradient *g, uint32_t value, int64_t axis)
{
    const prn_attr attrs[] = {prn_grad_attr_int("start", axis), prn_grad_attr_int("end", axis + 1)};
    return prn_grad_op(g, "Shape", attrs, axis == -1 ? 1 : 2, &value, 1);
}

uint32_t prn_grad_filled(prn_gradient *g, uint32_t like, double number)
{
    return prn_grad_expand_like(g, prn_grad_number(g, like, number), like);
}

/* Uses allowzero: an extent of 0 means 0. */
uint32_t prn_grad_reshape(prn_gradient *g, uint32_t value, uint32_t shape)
{
    const prn_attr attr = prn_grad_attr_int("allowzero", 1);
    return prn_grad_op(g, "Reshape", &attr, 1, (const uint32_t[]){value, shape}, 2);
}

uint32_t prn_grad_reshape_like(prn_gradient *g, uint32_t value, uint32_t like)
{
    return prn_grad_reshape(g, value, prn_grad_shape_of(g, like));
}

uint32_t prn_grad_expand_like(prn_gradient *g, uint32_t value, uint32_t like)
{
    if (prn_grad_failed(g)) return PRN_NO_VALUE;
    const prony_value *from = prn_grad_info(g, value), *to = prn_grad_info(g, like);
    if (prn_shape_known(&from->shape) && prn_shape_equal(&from->shape, &to->shape)) return value;
    return prn_grad_2(g, "Expand", value, prn_grad_shape_of(g, like));
}

uint32_t prn_grad_transpose(prn_gradient *g, uint32_t value, const int64_t *perm, size_t rank)
{
    const prn_attr attr = prn_grad_attr_ints("perm", perm, rank);
    return prn_grad_op(g, "Transpose", &attr, 1, &value, 1);
}

uint32_t prn_grad_reduce(prn_gradient *g, const char *op, uint32_t value, uint32_t axes, bool keep)
{
    const prn_attr attrs[] = {prn_grad_attr_int("keepdims", keep),
                              prn_grad_attr_int("noop_with_empty_axes", axes != PRN_NO_VALUE)};
    return prn_grad_op(g, op, attrs, 2, (const uint32_t[]){value, axes}, axes == PRN_NO_VALUE ? 1 : 2);
}

/* Finds the broadcast axes at run time: the axes in which the shapes differ after padding `like` to the same rank. */
static uint32_t unbroadcast_at_run(prn_gradient *g, uint32_t value, uint32_t like)
{
    const uint32_t to = prn_grad_shape_of(g, like), from = prn_grad_shape_of(g, value);
    const uint32_t missing = prn_grad_sub(g, prn_grad_shape_of(g, from), prn_grad_shape_of(g, to));
    const uint32_t ones = prn_grad_2(g, "Expand", prn_grad_index(g, 1), missing);
    const prn_attr axis = prn_grad_attr_int("axis", 0);
    const uint32_t padded = prn_grad_op(g, "Concat", &axis, 1, (const uint32_t[]){ones, to}, 2);
    const uint32_t differs = prn_grad_1(g, "Not", prn_grad_2(g, "Equal", padded, from));
    const int64_t flat = -1;
    const uint32_t axes = prn_grad_2(g, "Reshape", prn_grad_1(g, "NonZero", differs), prn_grad_indices(g, &flat, 1));
    return prn_grad_reshape(g, prn_grad_reduce(g, "ReduceSum", value, axes, true), to);
}

uint32_t prn_grad_unbroadcast(prn_gradient *g, uint32_t value, uint32_t like)
{
    if (prn_grad_failed(g)) return PRN_NO_VALUE;
    const prony_shape from = prn_grad_info(g, value)->shape, to = prn_grad_info(g, like)->shape;
    if (!prn_shape_known(&from) || !prn_shape_known(&to)) return unbroadcast_at_run(g, value, like);
    if (prn_shape_equal(&from, &to)) return value;
    int64_t axes[PRONY_MAX_RANK];
    size_t count = 0;
    const int lead = from.rank - to.rank;
    for (int d = 0; d < from.rank; d++)
        if (d < lead || (to.dim[d - lead] == 1 && from.dim[d] != 1)) axes[count++] = d;
    uint32_t sum = value;
    if (count) sum = prn_grad_reduce(g, "ReduceSum", value, prn_grad_indices(g, axes, count), lead == 0);
    if (lead == 0 || prn_grad_failed(g)) return sum;
    const prony_shape left = prn_grad_info(g, sum)->shape;
    return prn_shape_equal(&left, &to) ? sum : prn_grad_reshape_like(g, sum, like);
}
