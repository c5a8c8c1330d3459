/* Recipes of QDQ networks that slide windows: convolutions, with biases and residuals, and pools. */
#include "tests/support/random_qdq_maker.h"

#include "base/shape.h"

#include <string.h>

/* ---- biases ---- */

/* int32 codes along axis 0, in steps of input times weights or others. */
static int coded_bias(qm_maker *q, int64_t channels, const double *steps, int64_t scales, double x_step)
{
    rg_maker *k = &q->k;
    double exact[QM_MOST_SCALES];
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

int qm_bias(qm_maker *q, int x, int64_t channels, const double *steps, int64_t scales)
{
    const prony_shape shape = {1, {channels}};
    const qm_parameters *p = qm_parameters_of(q, x);
    const int64_t what = rg_below(&q->k, 100);
    if (what < 30) return -1;
    if (what < 55 || !p || scales < 1 || channels > QM_MOST_SCALES)
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

/* A convolution's result, quantized, and perhaps added to something before or after quantization. */
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

size_t qm_put_list(char *text, size_t size, const char *name, int axes, const int64_t *values)
{
    size_t used = (size_t)snprintf(text, size, " %s=[", name);
    for (int i = 0; i < axes; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%d", i ? "," : "", (int)values[i]);
    return used + (size_t)snprintf(text + used, size - used, "]");
}

typedef struct window {
    int64_t kernel[3], stride[3], dilation[3], pads[6];
    int axes;
    bool same, up; /* auto_pad is SAME_UPPER; ceil_mode is 1 */
    char text[320];
} window;

/* Now and then with attributes that the operator does not know. */
static void describe(qm_maker *q, window *w)
{
    size_t used = 0;
    w->text[0] = '\0';
    if (qm_changed(q))
        used =
            (size_t)snprintf(w->text, sizeof w->text, " a=1 b=2 c=3 d=4 e=5 f=6 g=7 h=8 low=1 high=2 channels_last=1");
    used += qm_put_list(w->text + used, sizeof w->text - used, "strides", w->axes, w->stride);
    bool dilated = false;
    for (int i = 0; i < w->axes; i++) dilated = dilated || w->dilation[i] > 1;
    if (dilated) used += qm_put_list(w->text + used, sizeof w->text - used, "dilations", w->axes, w->dilation);
    if (w->same)
        used += (size_t)snprintf(w->text + used, sizeof w->text - used, " auto_pad='SAME_UPPER'");
    else
        used += qm_put_list(w->text + used, sizeof w->text - used, "pads", 2 * w->axes, w->pads);
    if (w->up) (void)snprintf(w->text + used, sizeof w->text - used, " ceil_mode=1");
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

/* Extent `i` of the input of a window. */
static int64_t slid(const window *w, int i, int64_t extent)
{
    const int64_t room = extent + w->pads[i] + w->pads[w->axes + i] - (w->dilation[i] * (w->kernel[i] - 1) + 1);
    if (w->same) return (extent + w->stride[i] - 1) / w->stride[i];
    if (room < 0) return 0;
    int64_t count = (room + (w->up ? w->stride[i] - 1 : 0)) / w->stride[i] + 1;
    if ((count - 1) * w->stride[i] >= extent + w->pads[i]) count--; /* a window begins inside */
    return count;
}

void qm_make_conv(qm_maker *q)
{
    rg_maker *k = &q->k;
    const int x = qm_pick(q, 3, 5);
    if (x < 0 || rg_of(k, x)->shape.dim[1] < 1) return;
    const prony_shape in = rg_of(k, x)->shape;
    window w;
    pick_window(q, in.rank - 2, true, &w);
    const bool alike = rg_chance(k, 35); /* the shape stays, so that something can be added */
    for (int i = 0; i < w.axes && alike; i++) w.stride[i] = 1, w.kernel[i] = w.kernel[i] == 2 ? 1 : w.kernel[i];
    for (int i = 0; i < w.axes && alike; i++) w.pads[i] = w.pads[w.axes + i] = w.dilation[i] * (w.kernel[i] / 2);
    w.same = !alike && rg_chance(k, 10);
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
    if (!qm_fits(&weights) || !qm_fits(&out)) return;
    double steps[QM_MOST_SCALES];
    int64_t scales;
    const int filter = qm_weights(q, &weights, 0, steps, &scales), bias = qm_bias(q, x, channels, steps, scales);
    const int operands[3] = {x, filter, bias};
    const double most = rg_of(k, x)->most * (0.5 + 0.25 * (double)(weights.dim[1] * w.kernel[0])) + 0.5;
    finish(q, rg_node1(k, "Conv", operands, bias < 0 ? 2 : 3, PRONY_FLOAT32, &out, most, "group=%d%s", (int)groups,
                       w.text));
}

void qm_make_conv_transpose(qm_maker *q)
{
    rg_maker *k = &q->k;
    const int x = qm_pick(q, 3, 5);
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
    if (!qm_fits(&weights) || !qm_fits(&out)) return;
    double steps[QM_MOST_SCALES];
    int64_t scales;
    const int filter = qm_weights(q, &weights, 1, steps, &scales), bias = qm_bias(q, x, each * groups, steps, scales);
    const int operands[3] = {x, filter, bias};
    const double most = rg_of(k, x)->most * (0.5 + 0.2 * (double)in.dim[1]) + 0.5;
    finish(q, rg_node1(k, "ConvTranspose", operands, bias < 0 ? 2 : 3, PRONY_FLOAT32, &out, most, "group=%d%s",
                       (int)groups, w.text));
}

/* The codes that a value was dequantized from; -1: not found. */
static int codes_of(const qm_maker *q, int value)
{
    const rg_graph *graph = &q->k.g->main;
    for (size_t n = 0; n < graph->node_count; n++)
        if (graph->nodes[n].out[0] == value && graph->nodes[n].in_count > 1) return graph->nodes[n].in[0];
    return -1;
}

/* A convolution that the model already has in quantized form. */
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
    if (to.zero < 0 || (to.type != PRONY_INT8 && to.type != PRONY_UINT8) || !qm_fits(&weights)) return;
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

/* ---- pools ---- */

void qm_make_pool(qm_maker *q)
{
    rg_maker *k = &q->k;
    const int x = qm_pick(q, 3, 5);
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
        w.same = rg_chance(k, 10);
        w.up = !w.same && rg_chance(k, 10);
        describe(q, &w);
        qm_put_list(kernel, sizeof kernel, "kernel_shape", w.axes, w.kernel);
        for (int i = 0; i < w.axes; i++) {
            out.dim[2 + i] = slid(&w, i, v.shape.dim[2 + i]);
            if (out.dim[2 + i] < 1) return;
        }
        y = rg_node1(k, what == 1 ? "MaxPool" : "AveragePool", &x, 1, PRONY_FLOAT32, &out, v.most, "%s%s%s", w.text,
                     kernel, what == 2 && rg_chance(k, 30) ? " count_include_pad=1" : "");
    }
    (void)qm_store(q, qm_changed(q) ? qm_between(q, y) : y, like);
}
