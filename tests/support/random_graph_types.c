/* Reductions, and operators on unusual types: for random_graph_ops.c. */
#include "tests/support/random_graph_maker.h"

#include "base/shape.h"

#include <string.h>

/* ---- reductions ---- */

void rg_make_reduce(rg_maker *k)
{
    static const char *const ops[] = {"ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2"};
    int x = rg_pick(k, RG_FLOATS, 1, 5);
    int64_t axis = x < 0 ? -1 : rg_pick_axis(k, x);
    if (axis < 0 || rg_elements(k, x) == 0) return;
    x = rg_tame(k, x);
    const rg_value value = *rg_of(k, x);
    prony_shape shape = value.shape;
    bool keep = rg_chance(k, 60);
    shape.dim[axis] = 1;
    if (!keep) {
        memmove(&shape.dim[axis], &shape.dim[axis + 1], (size_t)(shape.rank - axis - 1) * sizeof *shape.dim);
        shape.rank--;
    }
    if (rg_chance(k, 30))
        rg_node1(k, "ReduceSum", (int[]){x, rg_ints(k, &axis, 1)}, 2, value.dtype, &shape, 64 * value.most,
                 "keepdims=%d", keep);
    else
        rg_node1(k, ops[rg_below(k, 4)], &x, 1, value.dtype, &shape, 8 * value.most, "axes=[%d] keepdims=%d", (int)axis,
                 keep);
}

void rg_make_softmax(rg_maker *k)
{
    int x = rg_pick(k, RG_F32, 1, 5);
    int64_t axis = x < 0 ? -1 : rg_pick_axis(k, x);
    if (axis < 0) return;
    x = rg_tame(k, x);
    rg_same(k, rg_chance(k, 70) ? "Softmax" : "LogSoftmax", &x, 1, x, "axis=%d", (int)axis);
}

void rg_make_layer_norm(rg_maker *k)
{
    int x = rg_pick(k, RG_F32, 2, 5);
    if (x < 0) return;
    x = rg_tame(k, x);
    const rg_value value = *rg_of(k, x);
    prony_shape last = {1, {value.shape.dim[value.shape.rank - 1]}};
    int in[3] = {x, rg_constant(k, PRONY_FLOAT32, &last, 0.5, 1.5), rg_constant(k, PRONY_FLOAT32, &last, -1, 1)};
    int y = rg_same(k, "LayerNormalization", in, rg_chance(k, 70) ? 3 : 2, x, "%s", "epsilon=0.1");
    k->g->values[y].most = 8;
}

/* ---- other types ---- */

void rg_make_cast(rg_maker *k)
{
    static const prony_dtype to[] = {PRONY_FLOAT32, PRONY_FLOAT32, PRONY_FLOAT64, PRONY_INT64,
                                     PRONY_INT32,   PRONY_INT8,    PRONY_UINT8,   PRONY_BOOL};
    int x = rg_pick(k, RG_ALL, 0, 5);
    if (x < 0) return;
    prony_dtype dtype = to[rg_below(k, 8)];
    x = rg_tame(k, x);
    if (rg_of(k, x)->dtype == PRONY_FLOAT32 || rg_of(k, x)->dtype == PRONY_FLOAT64) {
        if (dtype == PRONY_UINT8) x = rg_same(k, "Abs", &x, 1, x, "%s", "");
    }
    prony_shape shape = rg_of(k, x)->shape;
    bool wraps = rg_of(k, x)->dtype == PRONY_INT64 || rg_of(k, x)->dtype == PRONY_INT32;
    rg_node1(k, "Cast", &x, 1, dtype, &shape, wraps ? 1000 : rg_of(k, x)->most, "to=%d", (int)dtype);
}

void rg_make_compare(rg_maker *k)
{
    static const char *const ops[] = {"Less", "Greater", "Equal", "LessOrEqual"};
    int x = rg_pick(k, RG_NUMBERS, 0, 5);
    if (x < 0) return;
    int in[2] = {x, rg_partner(k, x)};
    prony_shape shape;
    if (rg_broadcast(k, in[0], in[1], &shape)) rg_node1(k, ops[rg_below(k, 4)], in, 2, PRONY_BOOL, &shape, 1, "%s", "");
}

void rg_make_where(rg_maker *k)
{
    int c = rg_pick(k, RG_BOOLS, 0, 5), x = rg_pick(k, RG_NUMBERS, 0, 5);
    if (c < 0 || x < 0) return;
    int y = rg_partner(k, x);
    prony_shape shape, all;
    if (!rg_broadcast(k, x, y, &shape) || !rg_broadcast(k, c, x, &all)) return;
    if (!prn_shape_equal(&shape, &all)) return;
    double most = rg_of(k, x)->most + rg_of(k, y)->most;
    rg_node1(k, "Where", (int[]){c, x, y}, 3, rg_of(k, x)->dtype, &shape, most, "%s", "");
}

void rg_make_quantized(rg_maker *k)
{
    int x = rg_pick(k, RG_F32, 1, 4);
    if (x < 0) return;
    x = rg_tame(k, x);
    prony_shape scalar = {0}, shape = rg_of(k, x)->shape;
    prony_dtype dtype = rg_chance(k, 50) ? PRONY_INT8 : PRONY_UINT8;
    int in[3] = {x, rg_constant(k, PRONY_FLOAT32, &scalar, 0.05, 0.2), rg_constant(k, dtype, &scalar, 0, 5)};
    in[0] = rg_node1(k, "QuantizeLinear", in, 3, dtype, &shape, 100, "%s", "");
    if (rg_chance(k, 80)) rg_node1(k, "DequantizeLinear", in, 3, PRONY_FLOAT32, &shape, 26, "%s", "");
}

void rg_make_topk(rg_maker *k)
{
    int x = rg_pick(k, RG_FLOATS, 1, 4);
    int64_t axis = x < 0 ? -1 : rg_pick_axis(k, x);
    if (axis < 0 || rg_of(k, x)->shape.dim[axis] == 0) return;
    const rg_value value = *rg_of(k, x);
    prony_shape shape = value.shape;
    int64_t count = shape.dim[axis] = 1 + rg_below(k, shape.dim[axis]);
    int in[2] = {x, rg_ints(k, &count, 1)};
    char attributes[32];
    snprintf(attributes, sizeof attributes, "axis=%d", (int)axis);
    rg_node *node = rg_add_node(k->g, k->graph, "TopK", in, 2, attributes);
    node->out_count = 2;
    node->out[0] = rg_add_value(k->g, (rg_value){.dtype = value.dtype, .shape = shape, .most = value.most});
    node->out[1] = rg_add_value(k->g, (rg_value){.dtype = PRONY_INT64, .shape = shape, .most = 100});
    rg_show(k, node->out[0]);
    rg_show(k, node->out[1]);
}

void rg_make_shape(rg_maker *k)
{
    int x = rg_pick(k, RG_ALL | RG_OPEN, 0, 5);
    if (x < 0) return;
    prony_shape shape = {1, {rg_rank(k, x)}};
    rg_node1(k, "Shape", &x, 1, PRONY_INT64, &shape, 100, "%s", "");
}
