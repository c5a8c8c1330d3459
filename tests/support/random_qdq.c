/* The maker of QDQ networks: parameters, the store functions of all recipes, and the frame around the recipes. */
#include "tests/support/random_qdq.h"
#include "tests/support/random_qdq_maker.h"

#include "base/shape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- parameters ---- */

bool qm_changed(qm_maker *q)
{
    return rg_chance(&q->k, q->change);
}

int qm_pick_int(qm_maker *q, const int *from, size_t count)
{
    return from[rg_below(&q->k, (int64_t)count)];
}

const qm_parameters *qm_parameters_of(const qm_maker *q, int value)
{
    if ((size_t)value >= q->known || q->parameters_of[value] < 0) return NULL;
    return &q->all[q->parameters_of[value]];
}

static void note_parameters(qm_maker *q, int value, int index)
{
    const size_t wanted = (size_t)value + 1;
    if (!PRN_GROW(q->parameters_of, q->capacity, wanted)) abort();
    while (q->known < wanted) q->parameters_of[q->known++] = -1;
    q->parameters_of[value] = index;
}

int qm_reals(qm_maker *q, prony_dtype dtype, const double *reals, int64_t count)
{
    const size_t n = count < 0 ? 1 : (size_t)count;
    double *copy = prn_bump_alloc(&q->k.g->pool, n + 1, sizeof *copy);
    if (!copy) abort();
    memcpy(copy, reals, n * sizeof *copy);
    rg_value value = {.dtype = dtype, .shape = {count < 0 ? 0 : 1, {count}}, .constant = true, .reals = copy};
    return rg_add_value(q->k.g, value);
}

double qm_step(qm_maker *q, double about)
{
    if (!(about > 0) || !isfinite(about)) about = 1;
    if (rg_chance(&q->k, 20)) about *= exp2((double)rg_below(&q->k, 7) - 3);
    if (q->style == 0) return exp2(rint(log2(about)));
    const double ten = pow(10, floor(log10(about)));
    if (q->style == 1) return (double)(float)(ten * (double)QM_ONE_OF(q, 1, 2, 3, 5));
    return (double)(float)(about * (0.7 + 0.1 * (double)rg_below(&q->k, 8)));
}

/* Invalid scales, and scales whose products exceed float32. `finite`: no code becomes an infinity, which some float
 * convolutions multiply by their padding. */
static double odd_step(qm_maker *q, double step, bool finite)
{
    const double odd[] = {0, -step, 1e-45, 1e-39, 1e-30, 1e-20, 1e20, 1e30, INFINITY, NAN, 3e38};
    return odd[rg_below(&q->k, (int64_t)(sizeof odd / sizeof *odd) - (finite ? 3 : 0))];
}

static int64_t levels(prony_dtype type)
{
    return type == PRONY_INT16 || type == PRONY_UINT16 ? 32767 : 127;
}

static int new_zero(qm_maker *q, prony_dtype type, int64_t channels)
{
    double zeros[64];
    const bool is_signed = type == PRONY_INT8 || type == PRONY_INT16;
    const int middle = type == PRONY_UINT16 ? 32768 : 128;
    if (type == PRONY_UINT8 && rg_chance(&q->k, 15)) return -1;
    const bool any = rg_chance(&q->k, 40);
    for (int64_t i = 0; i < (channels < 0 ? 1 : channels); i++) {
        zeros[i] = is_signed ? 0 : rg_chance(&q->k, 30) ? 0 : middle;
        if (any) zeros[i] = (double)rg_below(&q->k, 256) - (is_signed ? 128 : 0);
    }
    return qm_reals(q, type, zeros, channels);
}

static prony_dtype code_type(qm_maker *q)
{
    if (q->wide_types && rg_chance(&q->k, 15)) return rg_chance(&q->k, 50) ? PRONY_INT16 : PRONY_UINT16;
    return rg_chance(&q->k, 50) ? PRONY_UINT8 : PRONY_INT8;
}

int qm_add_parameters(qm_maker *q, double most, int64_t channels)
{
    if (q->count == QM_MOST_PARAMETERS) return (int)rg_below(&q->k, QM_MOST_PARAMETERS);
    qm_parameters *p = &q->all[q->count];
    double steps[64] = {0};
    *p = (qm_parameters){.type = code_type(q), .axis = channels < 0 ? -1 : 1, .contrib = rg_chance(&q->k, q->contrib)};
    const int64_t count = channels < 0 ? 1 : channels;
    for (int64_t i = 0; i < count; i++) steps[i] = qm_step(q, most / (double)levels(p->type));
    if (rg_chance(&q->k, q->change) && rg_chance(&q->k, 30)) steps[0] = odd_step(q, steps[0], false);
    p->step = (double)(float)steps[0];
    p->scale = qm_reals(q, PRONY_FLOAT32, steps, channels < 0 && rg_chance(&q->k, 25) ? 1 : channels);
    p->zero = new_zero(q, p->type, q->k.g->values[p->scale].shape.rank ? count : -1);
    return (int)q->count++;
}

static int choose_parameters(qm_maker *q, int value, const qm_parameters *like)
{
    const rg_value v = *rg_of(&q->k, value);
    const int64_t channels = v.shape.rank > 1 ? v.shape.dim[1] : -1;
    const bool fits = like && (like->axis < 0 || rg_of(&q->k, like->scale)->shape.dim[0] == channels);
    if (fits && !qm_changed(q)) return (int)(like - q->all);
    if (channels > 0 && channels <= 64 && qm_changed(q)) return qm_add_parameters(q, v.most, channels);
    if (q->count && rg_chance(&q->k, 30)) {
        const int index = (int)rg_below(&q->k, (int64_t)q->count);
        if (q->all[index].axis < 0) return index;
    }
    return qm_add_parameters(q, v.most, -1);
}

/* ---- storing ---- */

static int code_node(qm_maker *q, const char *op, int x, const qm_parameters *p, prony_dtype dtype, double most)
{
    char name[48];
    const rg_value v = *rg_of(&q->k, x);
    const int in[3] = {x, p->scale, p->zero};
    const size_t count = p->zero < 0 && rg_chance(&q->k, 50) ? 2 : 3;
    snprintf(name, sizeof name, "%s%s", p->contrib ? "com.microsoft::" : "", op);
    const char *kept = prn_bump_strndup(&q->k.g->pool, name, strlen(name));
    if (!kept) abort();
    if (p->axis >= 0) return rg_node1(&q->k, kept, in, count, dtype, &v.shape, most, "axis=%d", p->axis);
    return rg_node1(&q->k, kept, in, count, dtype, &v.shape, most, "%s", "");
}

/* The parameters of the DequantizeLinear: now and then equal ones, or other ones. */
static int behind(qm_maker *q, int index)
{
    if (!qm_changed(q) || q->count == QM_MOST_PARAMETERS) return index;
    qm_parameters p = q->all[index];
    const int what = (int)rg_below(&q->k, 4);
    const double same = p.step, other = p.step * (rg_chance(&q->k, 50) ? 2 : 0.75), zero = (double)rg_below(&q->k, 120);
    if (p.axis < 0 && what == 0) p.scale = qm_reals(q, PRONY_FLOAT32, &same, -1);
    if (p.axis < 0 && what == 1) p.scale = qm_reals(q, PRONY_FLOAT32, &other, -1), p.step = (double)(float)other;
    if (p.axis < 0 && what == 2) {
        p.zero = qm_reals(q, p.type, &zero, -1);
        if (rg_of(&q->k, p.scale)->shape.rank) p.scale = qm_reals(q, PRONY_FLOAT32, &same, -1);
    }
    if (what == 3) p.contrib = !p.contrib && (q->contrib > 0);
    q->all[q->count] = p;
    return (int)q->count++;
}

int qm_dequantize(qm_maker *q, int codes, int index, double most)
{
    const int back = behind(q, index);
    const int y = code_node(q, "DequantizeLinear", codes, &q->all[back], PRONY_FLOAT32, most);
    note_parameters(q, y, back);
    return y;
}

int qm_quantize(qm_maker *q, int value, const qm_parameters *like)
{
    const int index = choose_parameters(q, value, like);
    const qm_parameters p = q->all[index];
    double most = 2 * p.step * (double)levels(p.type);
    if (!(most < rg_of(&q->k, value)->most)) most = rg_of(&q->k, value)->most;
    const int codes = code_node(q, "QuantizeLinear", value, &p, p.type, most);
    const int y = qm_dequantize(q, codes, index, most);
    if (rg_chance(&q->k, 8)) (void)qm_dequantize(q, codes, index, most); /* one more reader of the codes */
    return y;
}

int qm_store(qm_maker *q, int value, const qm_parameters *like)
{
    return rg_chance(&q->k, 93) ? qm_quantize(q, value, like) : value;
}

int qm_weights(qm_maker *q, const prony_shape *shape, int axis, double *steps, int64_t *scales)
{
    rg_maker *k = &q->k;
    if (q->narrow && rg_chance(k, 40)) {
        *scales = 0;
        return qm_narrow_weights(q, shape);
    }
    const bool along = rg_chance(k, 50) && shape->dim[axis] <= 64;
    if (qm_changed(q) && rg_chance(k, 40)) axis = (int)rg_below(k, shape->rank);
    qm_parameters p = {.type = rg_chance(k, 60) ? PRONY_INT8 : PRONY_UINT8, .axis = along ? axis : -1};
    *scales = along && shape->dim[axis] <= 64 ? shape->dim[axis] : 1;
    if (*scales == 1) p.axis = -1;
    for (int64_t i = 0; i < *scales; i++) steps[i] = (double)(float)qm_step(q, 1.0 / 128);
    if (qm_changed(q) && rg_chance(k, 20)) steps[0] = odd_step(q, steps[0], true);
    const bool one = *scales == 1 && rg_chance(k, 70);
    p.scale = qm_reals(q, PRONY_FLOAT32, steps, one ? -1 : *scales);
    double zeros[64];
    const bool any = qm_changed(q), each = qm_changed(q);
    for (int64_t i = 0; i < *scales; i++) {
        zeros[i] = p.type == PRONY_INT8 ? 0 : 128;
        if (any) zeros[i] = i && !each ? zeros[0] : (double)rg_below(k, 100);
    }
    p.zero = rg_chance(k, 40) && p.type == PRONY_INT8 ? -1 : qm_reals(q, p.type, zeros, one ? -1 : *scales);
    if (rg_chance(k, 12)) { /* quantized in the graph */
        const int floats = rg_constant(k, PRONY_FLOAT32, shape, -1, 1);
        if (rg_chance(k, 40)) {
            *scales = 0;
            return floats;
        }
        if (p.zero < 0) p.zero = qm_reals(q, p.type, zeros, one ? -1 : *scales);
        return code_node(q, "DequantizeLinear", code_node(q, "QuantizeLinear", floats, &p, p.type, 1), &p,
                         PRONY_FLOAT32, 1);
    }
    const bool is_signed = p.type == PRONY_INT8;
    const int codes = rg_constant(k, p.type, shape, is_signed ? -128 : 0, is_signed ? 127 : 255);
    return code_node(q, "DequantizeLinear", codes, &p, PRONY_FLOAT32, 128 * steps[0]);
}

/* ---- between ---- */

static int clip(qm_maker *q, int value)
{
    const double most = rg_of(&q->k, value)->most;
    double low = rg_chance(&q->k, 50) ? 0 : -most / 3, high = rg_chance(&q->k, 50) ? 6 : most / 2;
    if (qm_changed(q)) low = rg_chance(&q->k, 50) ? high + 1 : -INFINITY;
    if (qm_changed(q)) high = rg_chance(&q->k, 50) ? INFINITY : NAN;
    const int in[3] = {value, rg_chance(&q->k, 85) ? qm_reals(q, PRONY_FLOAT32, &low, -1) : -1,
                       qm_reals(q, PRONY_FLOAT32, &high, -1)};
    return rg_same(&q->k, "Clip", in, rg_chance(&q->k, 80) ? 3 : 1 + (in[1] >= 0), value, "%s", "");
}

/* Another type in between. */
static int through_double(qm_maker *q, int value)
{
    const rg_value v = *rg_of(&q->k, value);
    const int wide = rg_node1(&q->k, "Cast", &value, 1, PRONY_FLOAT64, &v.shape, v.most, "to=%d", PRONY_FLOAT64);
    const int kept = rg_same(&q->k, "Relu", &wide, 1, wide, "%s", "");
    return rg_node1(&q->k, "Cast", &kept, 1, PRONY_FLOAT32, &v.shape, v.most, "to=%d", PRONY_FLOAT32);
}

int qm_between(qm_maker *q, int value)
{
    rg_maker *k = &q->k;
    if (qm_changed(q)) {
        const int what = (int)rg_below(k, 3);
        value = what == 0   ? rg_same(k, "Identity", &value, 1, value, "%s", "")
                : what == 1 ? rg_same(k, "Dropout", &value, 1, value, "%s", "")
                            : rg_same(k, "Cast", &value, 1, value, "to=%d", PRONY_FLOAT32);
    } else if (qm_changed(q)) {
        value = through_double(q, value);
    }
    const int64_t what = rg_below(k, 100);
    if (what < 35) return rg_same(k, "Relu", &value, 1, value, "%s", "");
    if (what < 47) return clip(q, value);
    if (what < 50) return rg_same(k, "LeakyRelu", &value, 1, value, "%s", "alpha=0.25");
    if (what < 53) return rg_same(k, "Sigmoid", &value, 1, value, "%s", "");
    return value;
}

/* ---- the frame ---- */

int qm_pick(qm_maker *q, int low, int high)
{
    int found = -1;
    for (int attempt = 0; attempt < 8; attempt++) {
        found = rg_pick(&q->k, RG_F32, low, high);
        if (found < 0 || qm_parameters_of(q, found)) return found;
        if (rg_chance(&q->k, 4)) return found;
    }
    return found;
}

static prony_shape input_shape(qm_maker *q)
{
    prony_shape shape = {4, {0}};
    if (rg_chance(&q->k, 25)) shape.rank = 2 + (int)rg_below(&q->k, 2);
    if (rg_chance(&q->k, 8)) shape.rank = 5;
    for (int d = 0; d < shape.rank; d++) shape.dim[d] = 1 + rg_below(&q->k, shape.rank == 5 ? 4 : 7);
    shape.dim[0] = 1 + rg_below(&q->k, 2);
    shape.dim[1] = QM_ONE_OF(q, 1, 2, 3, 4, 8, 8, 16, 17, 32, 33);
    if (rg_chance(&q->k, 2)) shape.dim[0] = 0;
    return shape;
}

static void add_inputs(qm_maker *q)
{
    random_graph *g = q->k.g;
    int ids[3];
    const size_t count = 1 + (size_t)rg_below(&q->k, 3);
    for (size_t i = 0; i < count; i++) {
        const bool coded = rg_chance(&q->k, 15);
        rg_value value = {.dtype = PRONY_FLOAT32, .input = true, .low = -1, .high = 1, .most = 1};
        value.shape = i && rg_chance(&q->k, 50) ? rg_of(&q->k, ids[0])->shape : input_shape(q);
        if (rg_chance(&q->k, 20)) value.low = 0;
        int index = -1;
        if (coded) {
            index = qm_add_parameters(q, 1, -1);
            value.dtype = q->all[index].type;
            value.low = value.dtype == PRONY_INT8 || value.dtype == PRONY_INT16 ? -100 : 0;
            value.high = value.low + 200;
        }
        ids[i] = rg_add_value(g, value);
        rg_show(&q->k, ids[i]);
        if (coded)
            (void)qm_dequantize(q, ids[i], index, 1);
        else if (rg_chance(&q->k, 90))
            (void)qm_quantize(q, ids[i], NULL);
    }
    g->main.inputs = rg_copy_ids(g, ids, count);
    g->main.input_count = count;
}

static bool is_read(const rg_graph *graph, int id)
{
    for (size_t n = 0; n < graph->node_count; n++)
        for (size_t i = 0; i < graph->nodes[n].in_count; i++)
            if (graph->nodes[n].in[i] == id) return true;
    return false;
}

static void add_outputs(qm_maker *q)
{
    rg_maker *k = &q->k;
    rg_graph *graph = &k->g->main;
    int *ids = prn_bump_alloc(&k->g->pool, k->visible_count + 1, sizeof *ids);
    size_t count = 0;
    if (!ids) abort();
    const int middle = rg_chance(k, 30) ? 12 : 1;
    for (size_t v = 0; v < k->visible_count; v++) {
        const int id = k->visible[v], percent = rg_of(k, id)->input ? 1 : is_read(graph, id) ? middle : 95;
        if (rg_chance(k, percent)) ids[count++] = id;
    }
    if (!count) ids[count++] = k->visible[k->visible_count - 1];
    graph->outputs = ids;
    graph->output_count = count;
}

static void make_one(qm_maker *q)
{
    static const struct {
        void (*make)(qm_maker *q);
        int weight;
    } recipes[] = {
        {qm_make_conv, 34},        {qm_make_conv_transpose, 7}, {qm_make_product, 12}, {qm_make_binary, 18},
        {qm_make_concat, 9},       {qm_make_pool, 9},           {qm_make_move, 9},     {qm_make_functions, 9},
        {qm_make_qlinear_conv, 5}, {qm_make_split, 4},          {qm_make_half, 4}};
    int64_t at = rg_below(&q->k, 120);
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        at -= recipes[i].weight;
        if (at >= 0) continue;
        recipes[i].make(q);
        return;
    }
}

random_graph *random_qdq_make(uint64_t seed)
{
    random_graph *g = calloc(1, sizeof *g);
    if (!g) abort();
    g->seed = seed;
    qm_maker q = {.k = {.g = g, .graph = &g->main, .state = seed * UINT64_C(0x9e3779b97f4a7c15) + 99}};
    rg_maker *k = &q.k;
    rg_below(k, 1);
    g->opset = QM_ONE_OF(&q, 13, 17, 17, 19, 21);
    q.style = (int)rg_below(k, 3);
    q.change = QM_ONE_OF(&q, 0, 3, 3, 8, 15, 30);
    q.contrib = QM_ONE_OF(&q, 0, 0, 0, 0, 100, 50);
    q.wide_types = g->opset >= 21 && rg_chance(k, 40);
    q.narrow = g->opset >= 21 && rg_chance(k, 50);
    add_inputs(&q);
    const int64_t size = q.change > 15 ? 6 : rg_chance(k, 15) ? 60 : 24;
    const size_t wanted = (q.change > 15 ? 3 : 8) + (size_t)rg_below(k, size);
    for (int turn = 0; turn < 200 && random_graph_nodes(g) < wanted; turn++) make_one(&q);
    add_outputs(&q);
    prn_free(k->visible);
    prn_free(q.parameters_of);
    return g;
}
