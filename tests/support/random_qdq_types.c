/* Types of QDQ networks beside bytes with float32 scales: float16 scales and the float16 numbers that go with them,
 * weights of 4 and 16 bits, scales for blocks of weights. */
#include "tests/support/random_qdq_maker.h"

/* Rounded to codes and back, all of it in float16. */
static int stored_in_half(qm_maker *q, int x, double most)
{
    rg_maker *k = &q->k;
    const prony_shape shape = rg_of(k, x)->shape;
    const bool is_signed = rg_chance(k, 50);
    const prony_dtype type = is_signed ? PRONY_INT8 : PRONY_UINT8;
    const double step = qm_step(q, most / 127), zero = is_signed ? 0 : 128;
    const int parameters[2] = {qm_reals(q, PRONY_FLOAT16, &step, -1), qm_reals(q, type, &zero, -1)};
    const int codes =
        rg_node1(k, "QuantizeLinear", (int[]){x, parameters[0], parameters[1]}, 3, type, &shape, most, "%s", "");
    return rg_node1(k, "DequantizeLinear", (int[]){codes, parameters[0], parameters[1]}, 3, PRONY_FLOAT16, &shape, most,
                    "%s", "");
}

void qm_make_half(qm_maker *q)
{
    rg_maker *k = &q->k;
    const int x = k->g->opset >= 19 ? qm_pick(q, 1, 4) : -1;
    if (x < 0 || !(rg_of(k, x)->most < 1000)) return;
    const prony_shape shape = rg_of(k, x)->shape;
    const double most = rg_of(k, x)->most;
    int y = rg_node1(k, "Cast", &x, 1, PRONY_FLOAT16, &shape, most, "to=%d", PRONY_FLOAT16);
    y = stored_in_half(q, y, most);
    if (rg_chance(k, 60)) y = rg_same(k, rg_chance(k, 50) ? "Relu" : "Sigmoid", &y, 1, y, "%s", "");
    if (rg_chance(k, 70)) y = stored_in_half(q, y, most);
    (void)rg_node1(k, "Cast", &y, 1, PRONY_FLOAT32, &shape, most, "to=%d", PRONY_FLOAT32);
}

int qm_narrow_weights(qm_maker *q, const prony_shape *shape)
{
    static const struct {
        prony_dtype type;
        double low, high;
    } types[] = {{PRONY_INT4, -8, 7},          {PRONY_UINT4, 0, 15},     {PRONY_INT8, -128, 127}, {PRONY_UINT8, 0, 255},
                 {PRONY_INT16, -32768, 32767}, {PRONY_UINT16, 0, 65535}, {PRONY_INT4, -8, 7},     {PRONY_UINT4, 0, 15}};
    rg_maker *k = &q->k;
    const int64_t which = rg_below(k, 8), axis = rg_below(k, shape->rank), block = 2 + rg_below(k, 3);
    const double high = types[which].high, step = qm_step(q, 1 / high);
    const bool blocked = rg_chance(k, 60) && shape->dim[axis] > 1;
    prony_shape scales = {0};
    if (blocked) scales = *shape, scales.dim[axis] = (shape->dim[axis] + block - 1) / block;
    const int codes = rg_constant(k, types[which].type, shape, types[which].low, high);
    const int scale = rg_constant(k, PRONY_FLOAT32, &scales, blocked ? step / 2 : step, step);
    const double middle = types[which].low < 0 ? 0 : (high + 1) / 2;
    const int zero = rg_constant(k, types[which].type, &scales, middle, middle);
    const int in[3] = {codes, scale, zero};
    const size_t count = middle == 0 && rg_chance(k, 60) ? 2 : 3;
    if (!blocked) return rg_node1(k, "DequantizeLinear", in, count, PRONY_FLOAT32, shape, 1, "%s", "");
    return rg_node1(k, "DequantizeLinear", in, count, PRONY_FLOAT32, shape, 1, "axis=%d block_size=%d", (int)axis,
                    (int)block);
}
