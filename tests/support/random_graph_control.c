/* Recipes of operators that own bodies (If, Loop, Scan), whose nodes capture values of the graphs around them, and of
 * operators whose output shapes only a run knows. */
#include "tests/support/random_graph_maker.h"

#include "base/shape.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 2 };

/* ---- bodies ---- */

typedef struct scope {
    rg_graph *graph;
    size_t visible;
} scope;

static rg_graph *enter(rg_maker *k, scope *outer)
{
    rg_graph *body = prn_bump_alloc(&k->g->pool, 1, sizeof *body);
    if (!body) abort();
    *outer = (scope){k->graph, k->visible_count};
    k->graph = body;
    k->depth++;
    return body;
}

static void leave(rg_maker *k, const scope *outer, const int *outputs, size_t count)
{
    k->graph->outputs = rg_copy_ids(k->g, outputs, count);
    k->graph->output_count = count;
    k->graph = outer->graph;
    k->visible_count = outer->visible;
    k->depth--;
}

/* A body's value that has the type and shape of `x`, through nodes of the body. */
static int work(rg_maker *k, int x)
{
    for (int64_t turns = 1 + rg_below(k, 4); turns > 0; turns--) {
        if (rg_chance(k, 15)) rg_make_one(k);
        x = rg_step(k, x);
    }
    return rg_tame(k, x);
}

static int body_input(rg_maker *k, prony_dtype dtype, const prony_shape *shape)
{
    int id = rg_add_value(k->g, (rg_value){.dtype = dtype, .shape = *shape, .most = 64});
    rg_show(k, id);
    return id;
}

static int result(rg_maker *k, rg_node *node, prony_dtype dtype, const prony_shape *shape)
{
    int id = rg_add_value(k->g, (rg_value){.dtype = dtype, .shape = *shape, .most = 64});
    node->out[node->out_count++] = id;
    rg_show(k, id);
    return id;
}

/* One bool, computed from visible numbers. */
static int condition(rg_maker *k)
{
    int x = rg_pick(k, RG_F32, 0, 5);
    prony_shape scalar = {0};
    if (x < 0) return -1;
    x = rg_tame(k, x);
    x = rg_node1(k, "ReduceMax", &x, 1, PRONY_FLOAT32, &scalar, 16, "keepdims=0");
    return rg_node1(k, "Less", (int[]){x, rg_constant(k, PRONY_FLOAT32, &scalar, -1, 1)}, 2, PRONY_BOOL, &scalar, 1,
                    "%s", "");
}

static int pick_carried(rg_maker *k)
{
    int x = rg_pick(k, RG_F32, 0, 4);
    return x < 0 || k->depth >= MOST_DEPTH || rg_elements(k, x) == 0 || rg_elements(k, x) > 2048 ? -1 : rg_tame(k, x);
}

static void make_if(rg_maker *k)
{
    int x = pick_carried(k), c = x < 0 ? -1 : condition(k);
    if (c < 0) return;
    scope outer;
    rg_graph *body[2];
    const rg_value value = *rg_of(k, x);
    bool two = rg_chance(k, 40);
    for (int b = 0; b < 2; b++) {
        int out[2];
        body[b] = enter(k, &outer);
        out[0] = rg_chance(k, 10) ? rg_same(k, "Identity", &x, 1, x, "%s", "") : work(k, x);
        if (two) out[1] = rg_same(k, "Neg", rg_chance(k, 50) ? &x : &out[0], 1, x, "%s", "");
        leave(k, &outer, out, two ? 2 : 1);
    }
    rg_node *node = rg_add_node(k->g, k->graph, "If", &c, 1, "");
    node->body[0] = body[0], node->body_name[0] = "then_branch";
    node->body[1] = body[1], node->body_name[1] = "else_branch";
    result(k, node, value.dtype, &value.shape);
    if (two) result(k, node, value.dtype, &value.shape);
}

static void make_loop(rg_maker *k)
{
    int x = pick_carried(k);
    if (x < 0) return;
    scope outer;
    prony_shape scalar = {0};
    const rg_value value = *rg_of(k, x);
    int trips = rg_int_scalar(k, rg_below(k, 4));
    rg_graph *body = enter(k, &outer);
    int in[3] = {body_input(k, PRONY_INT64, &scalar), body_input(k, PRONY_BOOL, &scalar),
                 body_input(k, value.dtype, &value.shape)};
    body->inputs = rg_copy_ids(k->g, in, 3);
    body->input_count = 3;
    int out[3] = {rg_same(k, "Identity", &in[1], 1, in[1], "%s", ""), work(k, in[2])};
    out[2] = rg_chance(k, 50) ? rg_same(k, "Neg", &out[1], 1, out[1], "%s", "") : work(k, in[2]);
    leave(k, &outer, out, 3);
    rg_node *node = rg_add_node(k->g, k->graph, "Loop", (int[]){trips, -1, x}, 3, "");
    node->body[0] = body, node->body_name[0] = "body";
    result(k, node, value.dtype, &value.shape);
    prony_shape all = value.shape;
    memmove(&all.dim[1], &all.dim[0], (size_t)all.rank * sizeof *all.dim);
    all.dim[0] = -1;
    all.rank++;
    result(k, node, value.dtype, &all);
}

static void make_scan(rg_maker *k)
{
    int x = pick_carried(k);
    if (x < 0 || rg_rank(k, x) < 1) return;
    scope outer;
    const rg_value value = *rg_of(k, x);
    prony_shape row = value.shape;
    memmove(&row.dim[0], &row.dim[1], (size_t)(row.rank - 1) * sizeof *row.dim);
    row.rank--;
    int first = rg_constant(k, value.dtype, &row, -1, 1);
    rg_graph *body = enter(k, &outer);
    int in[2] = {body_input(k, value.dtype, &row), body_input(k, value.dtype, &row)};
    body->inputs = rg_copy_ids(k->g, in, 2);
    body->input_count = 2;
    int sum = rg_same(k, "Add", in, 2, in[0], "%s", "");
    int out[2] = {rg_same(k, "Tanh", &sum, 1, sum, "%s", ""), work(k, sum)};
    leave(k, &outer, out, 2);
    rg_node *node = rg_add_node(k->g, k->graph, "Scan", (int[]){first, x}, 2, "num_scan_inputs=1");
    node->body[0] = body, node->body_name[0] = "body";
    result(k, node, value.dtype, &row);
    result(k, node, value.dtype, &value.shape);
}

/* ---- shapes that only a run knows ---- */

static int open_one(rg_maker *k)
{
    int x = rg_pick(k, RG_F32, 1, 4);
    if (x < 0 || rg_elements(k, x) == 0) return -1;
    const rg_value value = *rg_of(k, x);
    prony_shape list = {1, {-1}};
    int b;
    switch (rg_below(k, 3)) {
    case 0: {
        prony_shape places = {2, {value.shape.rank, -1}};
        b = rg_same(k, "Relu", &x, 1, x, "%s", "");
        return rg_node1(k, "NonZero", &b, 1, PRONY_INT64, &places, 100, "%s", "");
    }
    case 1: {
        prony_shape scalar = {0}, row = value.shape, whole = value.shape;
        row.dim[0] = -1;
        int axis[1] = {rg_constant(k, PRONY_FLOAT32, &scalar, 0, 0.2)};
        b = rg_node1(k, "Greater", (int[]){x, axis[0]}, 2, PRONY_BOOL, &whole, 1, "%s", "");
        if (value.shape.rank == 1)
            return rg_node1(k, "Compress", (int[]){x, b}, 2, PRONY_FLOAT32, &row, value.most, "axis=0");
        prony_shape flat = {1, {prony_shape_numel(&whole)}};
        int64_t all = -1;
        b = rg_node1(k, "Reshape", (int[]){b, rg_ints(k, &all, 1)}, 2, PRONY_BOOL, &flat, 1, "%s", "");
        return rg_node1(k, "Compress", (int[]){x, b}, 2, PRONY_FLOAT32, &list, value.most, "%s", "");
    }
    default:
        return rg_node1(k, "Unique", &x, 1, PRONY_FLOAT32, &list, value.most, "sorted=%d", rg_chance(k, 50));
    }
}

/* Through a few nodes, and back to a shape that is known. */
static void make_open(rg_maker *k)
{
    int x = open_one(k);
    if (x < 0) return;
    for (int64_t turns = rg_below(k, 6); turns > 0; turns--) {
        const rg_value value = *rg_of(k, x);
        prony_shape shape = value.shape;
        int64_t axis = shape.rank - 1, all = -1, one = 1, none = 0, many = INT64_C(1) << 40;
        shape.dim[axis] = -1;
        switch (rg_below(k, 7)) {
        case 0:
            x = rg_same(k, "Neg", &x, 1, x, "%s", "");
            break;
        case 1:
            x = rg_same(k, "Add", (int[]){x, x}, 2, x, "%s", "");
            break;
        case 2:
            x = rg_node1(k, "Concat", (int[]){x, x, x}, 3, value.dtype, &shape, value.most, "axis=%d", (int)axis);
            break;
        case 3:
            shape = (prony_shape){1, {-1}};
            x = rg_node1(k, "Reshape", (int[]){x, rg_ints(k, &all, 1)}, 2, value.dtype, &shape, value.most, "%s", "");
            break;
        case 4: {
            int in[4] = {x, rg_ints(k, rg_chance(k, 50) ? &none : &one, 1), rg_ints(k, &many, 1), rg_ints(k, &axis, 1)};
            x = rg_node1(k, "Slice", in, 4, value.dtype, &shape, value.most, "%s", "");
            break;
        }
        case 5:
            x = rg_same(k, "Identity", &x, 1, x, "%s", "");
            break;
        default:
            x = rg_node1(k, "Cast", &x, 1, PRONY_FLOAT32, &shape, value.most, "to=1");
            break;
        }
        k->g->values[x].most = 2 * value.most;
    }
    if (rg_chance(k, 50)) {
        prony_shape scalar = {0};
        prony_shape same = rg_of(k, x)->shape;
        x = rg_node1(k, "Cast", &x, 1, PRONY_FLOAT32, &same, 100, "to=1");
        x = rg_node1(k, "ReduceSum", &x, 1, PRONY_FLOAT32, &scalar, 1e4, "keepdims=0");
        rg_same(k, "Tanh", &x, 1, x, "%s", "");
    }
}

const rg_recipe rg_control_recipes[] = {
    {make_if, 3, 0}, {make_loop, 3, RG_SMOOTH}, {make_scan, 2, RG_SMOOTH}, {make_open, 5, 0}, {NULL, 0, 0}};
