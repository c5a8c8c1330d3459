/* Recipes of QDQ networks: operators between a DequantizeLinear and a QuantizeLinear. */
#include "tests/support/random_qdq_maker.h"

#include "base/shape.h"

#include <stdlib.h>
#include <string.h>

/* ---- products ---- */

/* A bias of a product: one number, or one for each column. */
static int columns_of(qm_maker *q, int x, int64_t columns, const double *steps, int64_t scales)
{
    const prony_shape shapes[] = {{0, {0}}, {1, {columns}}, {2, {1, columns}}, {1, {1}}};
    if (rg_chance(&q->k, 50)) {
        const int bias = qm_bias(q, x, columns, steps, scales);
        if (bias >= 0) return bias;
    }
    return rg_constant(&q->k, PRONY_FLOAT32, &shapes[rg_below(&q->k, 4)], -0.5, 0.5);
}

void qm_make_product(qm_maker *q)
{
    rg_maker *k = &q->k;
    const bool gemm = rg_chance(k, 50);
    const int x = qm_pick(q, 2, gemm ? 2 : 4);
    if (x < 0) return;
    prony_shape out = rg_of(k, x)->shape;
    const int64_t depth = out.dim[out.rank - 1], columns = QM_ONE_OF(q, 1, 2, 5, 8, 16, 33);
    const bool turned = gemm && rg_chance(k, 50);
    const prony_shape weights = {2, {turned ? columns : depth, turned ? depth : columns}};
    out.dim[out.rank - 1] = columns;
    if (!qm_fits(&out) || !qm_fits(&weights) || depth < 1) return;
    double steps[QM_MOST_SCALES];
    int64_t scales;
    const int w = qm_weights(q, &weights, turned ? 0 : 1, steps, &scales);
    const double most = rg_of(k, x)->most * (0.5 + 0.25 * (double)depth) + 0.5;
    int y;
    if (gemm) {
        const int in[3] = {x, w, rg_chance(k, 60) ? columns_of(q, x, columns, steps, scales) : -1};
        const bool scaled = qm_changed(q);
        y = rg_node1(k, "Gemm", in, in[2] < 0 ? 2 : 3, PRONY_FLOAT32, &out, most, "transB=%d alpha=%s", turned,
                     scaled ? "0.5" : "1.0");
    } else {
        y = rg_node1(k, "MatMul", (int[]){x, w}, 2, PRONY_FLOAT32, &out, most, "%s", "");
        if (rg_chance(k, 50)) {
            const int bias = columns_of(q, x, columns, steps, scales), order = rg_chance(k, 50);
            prony_shape sum;
            if (rg_broadcast(k, y, bias, &sum) && prn_shape_equal(&sum, &out))
                y = rg_same(k, "Add", (int[]){order ? y : bias, order ? bias : y}, 2, y, "%s", "");
        }
    }
    (void)qm_store(q, qm_between(q, y), NULL);
}

/* ---- sums and products of values ---- */

/* A dequantized constant, or floats, that broadcast to x. */
static int constant_partner(qm_maker *q, int x)
{
    prony_shape shape = rg_of(&q->k, x)->shape;
    double steps[QM_MOST_SCALES];
    int64_t scales;
    for (int d = 0; d < shape.rank; d++)
        if (rg_chance(&q->k, 50)) shape.dim[d] = 1;
    for (int d = 0; d < shape.rank; d++)
        if (shape.dim[d] == 0) shape.dim[d] = 1;
    if (!shape.rank || rg_chance(&q->k, 40)) return rg_constant(&q->k, PRONY_FLOAT32, &shape, -1, 1);
    return qm_weights(q, &shape, 0, steps, &scales);
}

void qm_make_binary(qm_maker *q)
{
    static const char *const ops[] = {"Add", "Add", "Add", "Mul", "Mul", "Sub", "Div", "Max", "Min"};
    rg_maker *k = &q->k;
    const int x = qm_pick(q, 0, 5);
    if (x < 0) return;
    const char *op = ops[rg_below(k, 9)];
    int other = rg_chance(k, 15) ? constant_partner(q, x) : -1;
    prony_shape out;
    for (int attempt = 0; attempt < 20 && other < 0; attempt++) {
        const int id = qm_pick(q, 0, 5);
        if (id >= 0 && (id != x || attempt > 12) && rg_broadcast(k, x, id, &out)) other = id;
    }
    if (other < 0 || !rg_broadcast(k, x, other, &out)) return;
    const double a = rg_of(k, x)->most, b = rg_of(k, other)->most;
    const bool turned = rg_chance(k, 50);
    int y = rg_node1(k, op, (int[]){turned ? other : x, turned ? x : other}, 2, PRONY_FLOAT32, &out,
                     *op == 'M' && op[1] == 'u' ? a * b : a + b, "%s", "");
    (void)qm_store(q, qm_between(q, y), NULL);
}

/* ---- what moves, joins or pools ---- */

void qm_make_concat(qm_maker *q)
{
    rg_maker *k = &q->k;
    const int x = qm_pick(q, 1, 5);
    if (x < 0) return;
    const rg_value first = *rg_of(k, x);
    const qm_parameters *like = qm_parameters_of(q, x);
    const int64_t axis = first.shape.rank > 1 && rg_chance(k, 70) ? 1 : rg_below(k, first.shape.rank);
    const size_t wanted = 1 + (size_t)rg_below(k, 4);
    int in[8] = {x};
    size_t count = 1;
    prony_shape out = first.shape;
    double most = first.most;
    for (int attempt = 0; attempt < 40 && count < wanted; attempt++) {
        int id = qm_pick(q, first.shape.rank, first.shape.rank);
        if (id < 0) return;
        prony_shape other = rg_of(k, id)->shape;
        const int64_t extent = other.dim[axis];
        other.dim[axis] = first.shape.dim[axis];
        if (!prn_shape_equal(&other, &first.shape)) continue;
        if (like && rg_chance(k, 50)) id = qm_quantize(q, id, like), like = qm_parameters_of(q, x);
        out.dim[axis] += extent;
        if (rg_of(k, id)->most > most) most = rg_of(k, id)->most;
        in[count++] = id;
    }
    if (!qm_fits(&out)) return;
    const int y = rg_node1(k, "Concat", in, count, PRONY_FLOAT32, &out, most, "axis=%d", (int)axis);
    (void)qm_store(q, qm_changed(q) ? qm_between(q, y) : y, rg_chance(k, 75) ? qm_parameters_of(q, x) : NULL);
}

static int slice(qm_maker *q, int x)
{
    rg_maker *k = &q->k;
    const rg_value v = *rg_of(k, x);
    const int64_t axis = rg_pick_axis(k, x);
    if (axis < 0) return -1;
    prony_shape out = v.shape;
    const int64_t begin = rg_below(k, 2), end = v.shape.dim[axis] - rg_below(k, 2);
    if (end <= begin) return -1;
    out.dim[axis] = end - begin;
    const int in[4] = {x, rg_ints(k, &begin, 1), rg_ints(k, &end, 1), rg_ints(k, &axis, 1)};
    return rg_node1(k, "Slice", in, 4, v.dtype, &out, v.most, "%s", "");
}

/* Two slices; one or both are quantized. */
void qm_make_split(qm_maker *q)
{
    rg_maker *k = &q->k;
    const int x = qm_pick(q, 1, 5);
    const int64_t axis = x < 0 ? -1 : rg_pick_axis(k, x);
    if (axis < 0 || rg_of(k, x)->shape.dim[axis] < 2) return;
    const rg_value v = *rg_of(k, x);
    const int64_t first = 1 + rg_below(k, v.shape.dim[axis] - 1), extents[2] = {first, v.shape.dim[axis] - first};
    char attributes[32];
    snprintf(attributes, sizeof attributes, "axis=%d", (int)axis);
    rg_node *node = rg_add_node(k->g, k->graph, "Split", (int[]){x, rg_ints(k, extents, 2)}, 2, attributes);
    node->out_count = 2;
    for (int i = 0; i < 2; i++) {
        rg_value part = {.dtype = v.dtype, .shape = v.shape, .most = v.most};
        part.shape.dim[axis] = extents[i];
        node->out[i] = rg_add_value(k->g, part);
        rg_show(k, node->out[i]);
    }
    const int parts[2] = {node->out[0], node->out[1]};
    const qm_parameters *like = rg_chance(k, 75) ? qm_parameters_of(q, x) : NULL;
    (void)qm_store(q, parts[0], like);
    if (rg_chance(k, 70)) (void)qm_store(q, parts[1], like);
}

static int transpose(qm_maker *q, int x)
{
    rg_maker *k = &q->k;
    const rg_value v = *rg_of(k, x);
    prony_shape out = v.shape;
    int64_t perm[PRONY_MAX_RANK];
    char text[80];
    for (int d = 0; d < v.shape.rank; d++) perm[d] = d;
    for (int d = v.shape.rank - 1; d > 0; d--) {
        const int64_t e = rg_below(k, d + 1), kept = perm[d];
        perm[d] = perm[e];
        perm[e] = kept;
    }
    for (int d = 0; d < v.shape.rank; d++) out.dim[d] = v.shape.dim[perm[d]];
    qm_put_list(text, sizeof text, "perm", v.shape.rank, perm);
    return rg_node1(k, "Transpose", &x, 1, v.dtype, &out, v.most, "%s", text);
}

static int reshape(qm_maker *q, int x)
{
    rg_maker *k = &q->k;
    const rg_value v = *rg_of(k, x);
    const int64_t count = prony_shape_numel(&v.shape), rows = v.shape.rank ? v.shape.dim[0] : 1;
    if (rows < 1 || rg_chance(k, 40)) {
        if (v.shape.rank < 1 || count < 1) return -1;
        const prony_shape flat = {2, {rows, count / rows}};
        return rg_node1(k, "Flatten", &x, 1, v.dtype, &flat, v.most, "%s", "");
    }
    const int64_t all[3] = {rows, 1, -1};
    const prony_shape out = {3, {rows, 1, count / rows}};
    return count < 1 ? -1 : rg_node1(k, "Reshape", (int[]){x, rg_ints(k, all, 3)}, 2, v.dtype, &out, v.most, "%s", "");
}

static int expand(qm_maker *q, int x)
{
    rg_maker *k = &q->k;
    const rg_value v = *rg_of(k, x);
    prony_shape out = v.shape;
    for (int d = 0; d < out.rank; d++)
        if (out.dim[d] == 1) out.dim[d] = 1 + rg_below(k, 3);
    if (!qm_fits(&out) || out.rank < 1) return -1;
    return rg_node1(k, "Expand", (int[]){x, rg_ints(k, out.dim, (size_t)out.rank)}, 2, v.dtype, &out, v.most, "%s", "");
}

static int unsqueeze(qm_maker *q, int x)
{
    rg_maker *k = &q->k;
    const rg_value v = *rg_of(k, x);
    prony_shape out = {v.shape.rank + 1, {1}};
    const int64_t zero = 0;
    if (v.shape.rank > 4) return -1;
    for (int d = 0; d < v.shape.rank; d++) out.dim[d + 1] = v.shape.dim[d];
    if (v.shape.rank > 2 && v.shape.dim[0] == 1 && rg_chance(k, 60)) {
        for (int d = 1; d < v.shape.rank; d++) out.dim[d - 1] = v.shape.dim[d];
        out.rank = v.shape.rank - 1;
        return rg_node1(k, "Squeeze", (int[]){x, rg_ints(k, &zero, 1)}, 2, v.dtype, &out, v.most, "%s", "");
    }
    return rg_node1(k, "Unsqueeze", (int[]){x, rg_ints(k, &zero, 1)}, 2, v.dtype, &out, v.most, "%s", "");
}

void qm_make_move(qm_maker *q)
{
    static int (*const moves[])(qm_maker *q, int x) = {slice, transpose, reshape, expand, unsqueeze};
    const int x = qm_pick(q, 1, 5);
    if (x < 0) return;
    int y = rg_chance(&q->k, 8) ? x : moves[rg_below(&q->k, 5)](q, x); /* codes of codes */
    if (y < 0) return;
    if (rg_chance(&q->k, 20)) {
        const int more = moves[rg_below(&q->k, 5)](q, y);
        if (more >= 0) y = more;
    }
    (void)qm_store(q, qm_changed(q) ? qm_between(q, y) : y, rg_chance(&q->k, 75) ? qm_parameters_of(q, x) : NULL);
}

/* ---- functions of each element ---- */

void qm_make_functions(qm_maker *q)
{
    static const char *const unary[] = {"Sigmoid", "Tanh",  "Relu",     "Abs",      "Neg", "HardSigmoid",
                                        "Exp",     "Floor", "Softsign", "Softplus", "Elu", "Erf",
                                        "Selu",    "Sign",  "Ceil",     "LeakyRelu"};
    static const char *const binary[] = {"Mul", "Add", "Sub", "Div", "Max"};
    rg_maker *k = &q->k;
    const int x = qm_pick(q, 0, 5);
    if (x < 0) return;
    int y = x;
    const int64_t length = 1 + rg_below(k, 3);
    for (int64_t i = 0; i < length; i++) {
        const double number = 0.25 * (double)(rg_below(k, 17) - 8);
        if (rg_chance(k, 60)) {
            y = rg_same(k, unary[rg_below(k, 16)], &y, 1, y, "%s", "");
        } else {
            const int other = qm_changed(q) ? x : qm_reals(q, PRONY_FLOAT32, &number, rg_chance(k, 80) ? -1 : 1);
            const bool turned = rg_chance(k, 30);
            if (rg_of(k, y)->shape.rank == 0 && rg_of(k, other)->shape.rank) continue;
            y = rg_same(k, binary[rg_below(k, 5)], (int[]){turned ? other : y, turned ? y : other}, 2, y, "%s", "");
        }
        k->g->values[y].most = 4;
    }
    if (qm_changed(q)) y = rg_same(k, "Softmax", &y, 1, y, "axis=%d", rg_of(k, y)->shape.rank ? 0 : 0);
    (void)qm_store(q, y, NULL);
}
