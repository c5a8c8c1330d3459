/* The recipes of QDQ networks: what stands between a DequantizeLinear and a QuantizeLinear. */
#include "tests/support/random_qdq_maker.h"

#include "base/shape.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_SCALES = 64 };

static bool fits(const prony_shape *shape)
{
    const int64_t count = prony_shape_numel(shape);
    return count >= 0 && count <= RG_MOST_ELEMENTS;
}

/* ---- biases ---- */

/* int32 codes along axis 0, in steps of input times weights or others. */
static int coded_bias(qm_maker *q, int64_t channels, const double *steps, int64_t scales, double x_step)
{
    rg_maker *k = &q->k;
    double exact[MOST_SCALES];
    const prony_shape shape = {1, {channels}};
    const int64_t count = scales > 1 && scales == channels ? channels : 1;
    const bool other = qm_changed(q);
    for (int64_t i = 0; i < count; i++) exact[i] = (double)((float)x_step * (float)steps[i]) * (other ? 3 : 1);
    const double zero = qm_changed(q) ? 5 : 0;
    int in[3] = {rg_constant(k, PRONY_INT32, &shape, -900, 900),
                 qm_reals(q, PRONY_FLOAT32, exact, count > 1 ? count : -1), -1};
    if (count == 1 && (rg_chance(k, 20) || zero != 0)) in[2] = qm_reals(q, PRONY_INT32, &zero, -1);
    return rg_node1(k, "DequantizeLinear", in, in[2] < 0 ? 2 : 3, PRONY_FLOAT32, &shape, 900 * exact[0], "axis=%d", 0);
}

/* One for each channel: float, or int32 codes; -1: none. */
static int make_bias(qm_maker *q, int x, int64_t channels, const double *steps, int64_t scales)
{
    const prony_shape shape = {1, {channels}};
    const qm_parameters *p = qm_parameters_of(q, x);
    const int64_t what = rg_below(&q->k, 100);
    if (what < 30) return -1;
    if (what < 55 || !p || scales < 1 || channels > MOST_SCALES)
        return rg_constant(&q->k, PRONY_FLOAT32, &shape, -0.5, 0.5);
    return coded_bias(q, channels, steps, scales, p->step);
}

/* ---- convolutions ---- */

/* An Add of something of the same shape, most often dequantized. */
static int add_residual(qm_maker *q, int y)
{
    rg_maker *k = &q->k;
    int other = -1;
    for (int attempt = 0; attempt < 30 && other < 0; attempt++) {
        const int id = k->visible[rg_below(k, (int64_t)k->visible_count)];
        const rg_value *v = rg_of(k, id), *w = rg_of(k, y);
        if (id != y && v->dtype == PRONY_FLOAT32 && prn_shape_equal(&v->shape, &w->shape) &&
            (qm_parameters_of(q, id) || attempt > 20))
            other = id;
    }
    if (other < 0) return y;
    const int in[2] = {rg_chance(k, 50) ? y : other, 0};
    const int both[2] = {in[0], in[0] == y ? other : y};
    const int sum = rg_same(k, qm_changed(q) ? "Sub" : "Add", both, 2, y, "%s", "");
    k->g->values[sum].most = rg_of(k, y)->most + rg_of(k, other)->most;
    return sum;
}

/* A convolution's result, stored, and perhaps added to something before or after that. */
static void finish(qm_maker *q, int y)
{
    rg_maker *k = &q->k;
    const bool residual = rg_chance(k, 30);
    if (residual && rg_chance(k, 50)) y = add_residual(q, y);
    y = qm_store(q, qm_between(q, y), NULL);
    if (!residual) return;
    const int sum = add_residual(q, y);
    if (sum != y) (void)qm_store(q, qm_between(q, sum), NULL);
}

static int64_t pick_groups(qm_maker *q, int64_t channels)
{
    if (rg_chance(&q->k, 60)) return 1;
    if (rg_chance(&q->k, 60) || channels % 2) return channels;
    return channels % 8 == 0 && rg_chance(&q->k, 50) ? channels / 8 : 2;
}

/* "name=[v,v]" for each of the spatial axes. */
static size_t put_list(char *text, size_t size, const char *name, int axes, const int64_t *values)
{
    size_t used = (size_t)snprintf(text, size, " %s=[", name);
    for (int i = 0; i < axes; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%d", i ? "," : "", (int)values[i]);
    return used + (size_t)snprintf(text + used, size - used, "]");
}

typedef struct window {
    int64_t kernel[2], stride[2], dilation[2], pads[4];
    int axes;
    char text[240];
} window;

/* Now and then with attributes that the operator does not know. */
static void describe(qm_maker *q, window *w)
{
    size_t used = 0;
    w->text[0] = '\0';
    if (qm_changed(q))
        used =
            (size_t)snprintf(w->text, sizeof w->text, " a=1 b=2 c=3 d=4 e=5 f=6 g=7 h=8 low=1 high=2 channels_last=1");
    used += put_list(w->text + used, sizeof w->text - used, "strides", w->axes, w->stride);
    if (w->dilation[0] > 1 || (w->axes > 1 && w->dilation[1] > 1))
        used += put_list(w->text + used, sizeof w->text - used, "dilations", w->axes, w->dilation);
    (void)put_list(w->text + used, sizeof w->text - used, "pads", 2 * w->axes, w->pads);
}

static void pick_window(qm_maker *q, int axes, bool dilated, window *w)
{
    rg_maker *k = &q->k;
    const bool one = rg_chance(k, 35), strided = rg_chance(k, 30), padded = rg_chance(k, 60);
    *w = (window){.axes = axes};
    for (int i = 0; i < axes; i++) {
        w->kernel[i] = one ? 1 : 1 + rg_below(k, 3);
        w->stride[i] = strided ? 1 + rg_below(k, 2) : 1;
        w->dilation[i] = dilated && rg_chance(k, 15) ? 2 : 1;
        for (int e = 0; e < 2; e++) w->pads[e * axes + i] = padded && w->kernel[i] > 1 ? rg_below(k, w->kernel[i]) : 0;
    }
    describe(q, w);
}

/* Extent `i` of what a window slides over. */
static int64_t slid(const window *w, int i, int64_t extent)
{
    const int64_t room = extent + w->pads[i] + w->pads[w->axes + i] - (w->dilation[i] * (w->kernel[i] - 1) + 1);
    return room < 0 ? 0 : room / w->stride[i] + 1;
}

void qm_make_conv(qm_maker *q)
{
    rg_maker *k = &q->k;
    const int x = qm_pick(q, 3, 4);
    if (x < 0 || rg_of(k, x)->shape.dim[1] < 1) return;
    const prony_shape in = rg_of(k, x)->shape;
    window w;
    pick_window(q, in.rank - 2, true, &w);
    const bool alike = rg_chance(k, 35); /* the shape stays, so that something can be added */
    for (int i = 0; i < w.axes && alike; i++) w.stride[i] = 1, w.kernel[i] = w.kernel[i] == 2 ? 1 : w.kernel[i];
    for (int i = 0; i < w.axes && alike; i++) w.pads[i] = w.pads[w.axes + i] = w.dilation[i] * (w.kernel[i] / 2);
    describe(q, &w);
    const int64_t groups = pick_groups(q, in.dim[1]), each = QM_ONE_OF(q, 1, 1, 2, 3, 4, 8, 16, 20);
    const int64_t channels = alike                 ? in.dim[1]
                             : groups == 1         ? each * QM_ONE_OF(q, 1, 2)
                             : groups == in.dim[1] ? groups * QM_ONE_OF(q, 1, 1, 1, 2)
                                                   : groups * each;
    prony_shape weights = {in.rank, {channels, in.dim[1] / groups}}, out = {in.rank, {in.dim[0], channels}};
    for (int i = 0; i < w.axes; i++) {
        weights.dim[2 + i] = w.kernel[i];
        out.dim[2 + i] = slid(&w, i, in.dim[2 + i]);
        if (out.dim[2 + i] < 1) return;
    }
    if (!fits(&weights) || !fits(&out)) return;
    double steps[MOST_SCALES];
    int64_t scales;
    const int filter = qm_weights(q, &weights, 0, steps, &scales), bias = make_bias(q, x, channels, steps, scales);
    const int operands[3] = {x, filter, bias};
    const double most = rg_of(k, x)->most * (0.5 + 0.25 * (double)(weights.dim[1] * w.kernel[0])) + 0.5;
    finish(q, rg_node1(k, "Conv", operands, bias < 0 ? 2 : 3, PRONY_FLOAT32, &out, most, "group=%d%s", (int)groups,
                       w.text));
}

void qm_make_conv_transpose(qm_maker *q)
{
    rg_maker *k = &q->k;
    const int x = qm_pick(q, 3, 4);
    if (x < 0 || rg_of(k, x)->shape.dim[1] < 1) return;
    const prony_shape in = rg_of(k, x)->shape;
    window w;
    pick_window(q, in.rank - 2, true, &w);
    const int64_t groups = rg_chance(k, 75) ? 1 : pick_groups(q, in.dim[1]), each = QM_ONE_OF(q, 1, 3, 8, 16);
    prony_shape weights = {in.rank, {in.dim[1], each}}, out = {in.rank, {in.dim[0], each * groups}};
    for (int i = 0; i < w.axes; i++) {
        weights.dim[2 + i] = w.kernel[i];
        out.dim[2 + i] =
            w.stride[i] * (in.dim[2 + i] - 1) + w.dilation[i] * (w.kernel[i] - 1) + 1 - w.pads[i] - w.pads[w.axes + i];
        if (out.dim[2 + i] < 1) return;
    }
    if (!fits(&weights) || !fits(&out)) return;
    double steps[MOST_SCALES];
    int64_t scales;
    const int filter = qm_weights(q, &weights, 1, steps, &scales), bias = make_bias(q, x, each * groups, steps, scales);
    const int operands[3] = {x, filter, bias};
    const double most = rg_of(k, x)->most * (0.5 + 0.2 * (double)in.dim[1]) + 0.5;
    finish(q, rg_node1(k, "ConvTranspose", operands, bias < 0 ? 2 : 3, PRONY_FLOAT32, &out, most, "group=%d%s",
                       (int)groups, w.text));
}

/* The codes that a value was dequantized from; -1: there are none. */
static int codes_of(const qm_maker *q, int value)
{
    const rg_graph *graph = &q->k.g->main;
    for (size_t n = 0; n < graph->node_count; n++)
        if (graph->nodes[n].out[0] == value && graph->nodes[n].in_count > 1) return graph->nodes[n].in[0];
    return -1;
}

/* A convolution that the model has on codes already. */
void qm_make_qlinear_conv(qm_maker *q)
{
    rg_maker *k = &q->k;
    const int x = qm_pick(q, 4, 4);
    const qm_parameters *from = x < 0 ? NULL : qm_parameters_of(q, x);
    const int codes = from ? codes_of(q, x) : -1;
    if (codes < 0 || from->axis >= 0 || from->zero < 0 || (from->type != PRONY_INT8 && from->type != PRONY_UINT8))
        return;
    const prony_shape in = rg_of(k, x)->shape;
    if (in.dim[1] < 1) return;
    prony_shape weights = {4, {in.dim[1], in.dim[1], 1, 1}}, bias = {1, {in.dim[1]}};
    const int index = qm_add_parameters(q, rg_of(k, x)->most, -1);
    const qm_parameters to = q->all[index];
    const double step = qm_step(q, 1.0 / 256), zero = 0;
    if (to.zero < 0 || (to.type != PRONY_INT8 && to.type != PRONY_UINT8) || !fits(&weights)) return;
    const int operands[9] = {codes,
                             from->scale,
                             from->zero,
                             rg_constant(k, PRONY_INT8, &weights, -127, 127),
                             qm_reals(q, PRONY_FLOAT32, &step, -1),
                             qm_reals(q, PRONY_INT8, &zero, -1),
                             to.scale,
                             to.zero,
                             rg_constant(k, PRONY_INT32, &bias, -500, 500)};
    const int made = rg_node1(k, "QLinearConv", operands, rg_chance(k, 50) ? 9 : 8, to.type, &in, 1, "%s", "");
    const int y = qm_dequantize(q, made, index, rg_of(k, x)->most), sum = add_residual(q, y);
    if (sum != y) (void)qm_store(q, qm_between(q, sum), NULL);
}

/* ---- products ---- */

/* What a product may be added to: one number, one for each column, or, rarely, one for each row. */
static int columns_of(qm_maker *q, int x, int64_t columns, const double *steps, int64_t scales)
{
    const prony_shape shapes[] = {{0, {0}}, {1, {columns}}, {2, {1, columns}}, {1, {1}}};
    if (rg_chance(&q->k, 50)) {
        const int bias = make_bias(q, x, columns, steps, scales);
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
    if (!fits(&out) || !fits(&weights) || depth < 1) return;
    double steps[MOST_SCALES];
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
    double steps[MOST_SCALES];
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
    const int x = qm_pick(q, 0, 4);
    if (x < 0) return;
    const char *op = ops[rg_below(k, 9)];
    int other = rg_chance(k, 15) ? constant_partner(q, x) : -1;
    prony_shape out;
    for (int attempt = 0; attempt < 20 && other < 0; attempt++) {
        const int id = qm_pick(q, 0, 4);
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
    const int x = qm_pick(q, 1, 4);
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
    if (!fits(&out)) return;
    const int y = rg_node1(k, "Concat", in, count, PRONY_FLOAT32, &out, most, "axis=%d", (int)axis);
    (void)qm_store(q, qm_changed(q) ? qm_between(q, y) : y, rg_chance(k, 75) ? qm_parameters_of(q, x) : NULL);
}

void qm_make_pool(qm_maker *q)
{
    rg_maker *k = &q->k;
    const int x = qm_pick(q, 3, 4);
    if (x < 0) return;
    const rg_value v = *rg_of(k, x);
    prony_shape out = v.shape;
    const int64_t what = rg_below(k, 3);
    const qm_parameters *like = rg_chance(k, 60) ? qm_parameters_of(q, x) : NULL;
    int y;
    if (what == 0) {
        for (int d = 2; d < out.rank; d++) out.dim[d] = 1;
        y = rg_node1(k, qm_changed(q) ? "GlobalMaxPool" : "GlobalAveragePool", &x, 1, PRONY_FLOAT32, &out, v.most, "%s",
                     "");
    } else {
        window w;
        char kernel[64];
        pick_window(q, out.rank - 2, what == 1 || k->g->opset >= 19, &w);
        put_list(kernel, sizeof kernel, "kernel_shape", w.axes, w.kernel);
        for (int i = 0; i < w.axes; i++) {
            out.dim[2 + i] = slid(&w, i, v.shape.dim[2 + i]);
            if (out.dim[2 + i] < 1) return;
        }
        y = rg_node1(k, what == 1 ? "MaxPool" : "AveragePool", &x, 1, PRONY_FLOAT32, &out, v.most, "%s%s%s", w.text,
                     kernel, what == 2 && rg_chance(k, 30) ? " count_include_pad=1" : "");
    }
    (void)qm_store(q, qm_changed(q) ? qm_between(q, y) : y, like);
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

/* Two slices, of which one or both are stored. */
void qm_make_split(qm_maker *q)
{
    rg_maker *k = &q->k;
    const int x = qm_pick(q, 1, 4);
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
    put_list(text, sizeof text, "perm", v.shape.rank, perm);
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
    if (!fits(&out) || out.rank < 1) return -1;
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
    static int (*const moves[])(qm_maker * q, int x) = {slice, transpose, reshape, expand, unsqueeze};
    const int x = qm_pick(q, 1, 4);
    if (x < 0) return;
    int y = moves[rg_below(&q->k, 5)](q, x);
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
                                        "Exp",     "Floor", "Softsign", "Softplus", "Elu", "Erf"};
    static const char *const binary[] = {"Mul", "Add", "Sub", "Div", "Max"};
    rg_maker *k = &q->k;
    const int x = qm_pick(q, 0, 4);
    if (x < 0) return;
    int y = x;
    const int64_t length = 1 + rg_below(k, 3);
    for (int64_t i = 0; i < length; i++) {
        const double number = 0.25 * (double)(rg_below(k, 17) - 8) + 0.125;
        if (rg_chance(k, 60)) {
            y = rg_same(k, unary[rg_below(k, 12)], &y, 1, y, "%s", "");
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
