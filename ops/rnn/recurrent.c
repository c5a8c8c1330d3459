/* Shared by RNN, GRU and LSTM, besides the loops: activation functions, sizes and strides of a node, inference and
 * cost. Invariant: once a node is described, every shape agrees with every other. */
#include "ops/rnn/recurrent.h"
#include "ops/kernels/gemm/matmul.h"
#include "ops/kernels/gemm/bf16x3_product.h"
#include "ops/kernels/vector/vec.h"

#include <strings.h>

/* ---- activation functions */

static const struct {
    const char *name;
    bool takes_alpha, takes_beta;
    float alpha, beta;
    prn_unit_cost cost;
} gate_rows[] = {
#define GATE_ROW(symbol, name, takes_alpha, takes_beta, alpha, beta, flops, special, madds)                            \
    [PRN_GATE_##symbol] = {name, takes_alpha, takes_beta, alpha, beta, {flops, special, madds}},
    PRN_GATE_LIST(GATE_ROW)};

enum { GATE_COUNT = sizeof gate_rows / sizeof *gate_rows };

static bool gate_find(const char *name, prn_gate *out)
{
    for (int i = 0; i < GATE_COUNT; i++) {
        if (strcasecmp(gate_rows[i].name, name) != 0) continue;
        *out = (prn_gate){(prn_gate_id)i, gate_rows[i].alpha, gate_rows[i].beta};
        return true;
    }
    return false;
}

/* The gate functions of ONNX in float64, before clipping; alpha and beta as the attributes give them. */
double prn_gate_unclipped_f64(prn_gate gate, double x)
{
    const double a = (double)gate.alpha, b = (double)gate.beta;
    switch (gate.id) {
    case PRN_GATE_SIGMOID:
        return 1.0 / (1.0 + exp(-x));
    case PRN_GATE_TANH:
        return tanh(x);
    case PRN_GATE_RELU:
        return x < 0.0 ? 0.0 : x;
    case PRN_GATE_AFFINE:
        return a * x + b;
    case PRN_GATE_LEAKY_RELU:
        return x < 0.0 ? a * x : x;
    case PRN_GATE_THRESHOLDED_RELU:
        return x < a ? 0.0 : x;
    case PRN_GATE_SCALED_TANH:
        return a * tanh(b * x);
    case PRN_GATE_HARD_SIGMOID:
        x = a * x + b;
        return x < 0.0 ? 0.0 : x > 1.0 ? 1.0 : x;
    case PRN_GATE_ELU:
        return x < 0.0 ? a * expm1(x) : x;
    case PRN_GATE_SOFTSIGN:
        return x / (1.0 + fabs(x));
    case PRN_GATE_SOFTPLUS:
        return x > 0.0 ? x + log1p(exp(-x)) : log1p(exp(x));
    }
    return NAN;
}

double prn_gate_f64(const prn_recurrent *node, prn_gate gate, double x)
{
    const double clip = (double)node->params->clip;
    return prn_gate_unclipped_f64(gate, x < -clip ? -clip : x > clip ? clip : x);
}

void prn_gate_unclipped_f32(prn_gate gate, float *y, const float *x, int64_t n)
{
    static const prn_map_id maps[GATE_COUNT] = {
        [PRN_GATE_SIGMOID] = PRN_MAP_SIGMOID,
        [PRN_GATE_TANH] = PRN_MAP_TANH,
        [PRN_GATE_RELU] = PRN_MAP_RELU,
        [PRN_GATE_AFFINE] = PRN_MAP_AFFINE,
        [PRN_GATE_LEAKY_RELU] = PRN_MAP_LEAKY_RELU,
        [PRN_GATE_SCALED_TANH] = PRN_MAP_TANH,
        [PRN_GATE_ELU] = PRN_MAP_ELU,
        [PRN_GATE_HARD_SIGMOID] = PRN_MAP_HARD_SIGMOID,
        [PRN_GATE_SOFTSIGN] = PRN_MAP_SOFTSIGN,
        [PRN_GATE_SOFTPLUS] = PRN_MAP_SOFTPLUS,
    };
    const prn_vec_table *vec = prn_vec();
    const bool scaled = gate.id == PRN_GATE_SCALED_TANH;
    if (scaled) {
        vec->vs[PRN_BINARY_MUL](y, x, gate.beta, n);
        x = y;
    }
    vec->map[maps[gate.id]](y, x, n, gate.alpha, gate.beta);
    if (scaled) vec->vs[PRN_BINARY_MUL](y, y, gate.alpha, n);
}

void prn_gate_f32(const prn_recurrent *node, prn_gate gate, float *x, int64_t n)
{
    const float clip = node->params->clip;
    if (clip < INFINITY) prn_vec()->map[PRN_MAP_CLIP](x, x, n, -clip, clip);
    prn_gate_unclipped_f32(gate, x, x, n);
}

void prn_gate_add_cost(prn_unit_cost *cost, const prn_recurrent *node, prn_gate gate)
{
    const prn_unit_cost *own = &gate_rows[gate.id].cost;
    cost->flops += own->flops + (node->params->clip < INFINITY ? 2 : 0);
    cost->special += own->special;
    cost->madds += own->madds;
}

/* ---- a node */

prony_status prn_recurrent_check(const prony_context *context)
{
    const prn_recurrent_params *params = context->params;
    const char *direction = params->direction;
    if (strcmp(direction, "forward") != 0 && strcmp(direction, "reverse") != 0 &&
        strcmp(direction, "bidirectional") != 0) {
        return prony_fail(context, PRONY_INVALID_MODEL,
                          "attribute 'direction' is '%s', wanted forward, reverse or bidirectional", direction);
    }
    if (params->layout != 0 && params->layout != 1) {
        return prony_fail(context, PRONY_INVALID_MODEL, "attribute 'layout' is %lld, wanted 0 or 1",
                          (long long)params->layout);
    }
    if (params->clip > 0.0f) return PRONY_OK;
    return prony_fail(context, PRONY_INVALID_MODEL, "attribute 'clip' is %g, wanted more than 0", (double)params->clip);
}

/* Alpha and beta are handed to those functions that take one, in order. */
static prony_status read_functions(const prony_context *context, prn_recurrent *node)
{
    const prn_recurrent_cell *cell = node->cell;
    const prn_recurrent_params *params = node->params;
    const prn_attr *names = context->node->attributes ? prn_attr_find(context->node->attributes, "activations") : NULL;
    const size_t wanted = (size_t)cell->functions * (size_t)node->directions;
    size_t alpha = 0, beta = 0;
    if (names &&
        (names->type != PRN_ATTR_STRINGS || (names->count != (size_t)cell->functions && names->count != wanted))) {
        return prony_fail(context, PRONY_INVALID_MODEL, "attribute 'activations' has %zu names, wanted %zu strings",
                          names->count, wanted);
    }
    for (size_t i = 0; i < wanted; i++) {
        const size_t function = i % (size_t)cell->functions;
        const char *name = cell->defaults[function];
        if (names) name = names->strings[names->count < wanted ? function : i].data;
        prn_gate *gate = &node->gate[i / (size_t)cell->functions][function];
        if (!gate_find(name, gate)) {
            return prony_fail(context, PRONY_INVALID_MODEL,
                              "attribute 'activations' names '%s', which is not an activation", name);
        }
        if (gate_rows[gate->id].takes_alpha && alpha < params->activation_alpha.count)
            gate->alpha = params->activation_alpha.v[alpha++];
        if (gate_rows[gate->id].takes_beta && beta < params->activation_beta.count)
            gate->beta = params->activation_beta.v[beta++];
    }
    return PRONY_OK;
}

/* An input of the node's element type and of just this shape, if it is there at all. */
static prony_status recurrent_check_input(const prony_context *context, size_t input, int rank, const int64_t *dims)
{
    const prony_value *value = prn_input(context, input);
    const prony_shape shape = prn_shape_make(rank, dims);
    char came[PRN_SHAPE_TEXT_BYTES], want[PRN_SHAPE_TEXT_BYTES];
    if (!value) return PRONY_OK;
    PRN_TRY(prn_check_type(context, input, PRN_TYPE(input == 4 ? PRONY_INT32 : context->inputs[0]->dtype)));
    if (prn_shape_equal(&value->shape, &shape)) return PRONY_OK;
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is %s, wanted %s", input, prn_value_text(value, came),
                      prn_shape_text(&shape, want));
}

static prony_status check_inputs(const prony_context *context, const prn_recurrent *node)
{
    const int64_t d = node->directions, h = node->hidden, b = node->batch;
    const int64_t *state = node->params->layout ? (const int64_t[]){b, d, h} : (const int64_t[]){d, b, h};
    PRN_TRY(recurrent_check_input(context, 1, 3, (const int64_t[]){d, node->columns, node->input}));
    PRN_TRY(recurrent_check_input(context, 2, 3, (const int64_t[]){d, node->columns, h}));
    PRN_TRY(recurrent_check_input(context, 3, 2, (const int64_t[]){d, 2 * node->columns}));
    PRN_TRY(recurrent_check_input(context, 4, 1, (const int64_t[]){b}));
    PRN_TRY(recurrent_check_input(context, 5, 3, state));
    if (!node->cell->has_c) return PRONY_OK;
    PRN_TRY(recurrent_check_input(context, 6, 3, state));
    return recurrent_check_input(context, 7, 2, (const int64_t[]){d, 3 * h});
}

static prony_shape y_shape(const prn_recurrent *node)
{
    const int64_t t = node->steps, d = node->directions, b = node->batch, h = node->hidden;
    return node->params->layout ? prn_shape_make(4, (const int64_t[]){b, t, d, h})
                                : prn_shape_make(4, (const int64_t[]){t, d, b, h});
}

/* Steps, batch, input and hidden sizes from the operands' shapes. Refuses sizes at which strides or offsets would
 * overflow. */
static prony_status read_sizes(const prony_context *context, prn_recurrent *node)
{
    const prn_recurrent_params *params = node->params;
    const int batch_first = params->layout == 1;
    char text[PRN_SHAPE_TEXT_BYTES];
    for (size_t i = 0; i < 3; i++) {
        PRN_TRY(prn_check_type(context, i, PRN_TYPES_FLOAT));
        PRN_TRY(prn_check_rank(context, i, 3, 3));
    }
    node->steps = node->x->shape.dim[batch_first];
    node->batch = node->x->shape.dim[!batch_first];
    node->input = node->x->shape.dim[2];
    node->hidden = node->r->shape.dim[2];
    if (params->hidden_size != PRN_ABSENT && params->hidden_size != node->hidden) {
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "attribute 'hidden_size' is %lld, but input 2 is %s",
                          (long long)params->hidden_size, prn_value_text(node->r, text));
    }
    const prony_shape y = y_shape(node);
    /* Room for every stride, and for twice a bias. */
    if (!prn_matmul_countable(&node->x->shape) || !prn_matmul_countable(&node->w->shape) || !prn_matmul_countable(&y) ||
        node->hidden > INT32_MAX) {
        return prony_fail(context, PRONY_LIMIT, "a sequence of %s is too large", prn_shape_text(&y, text));
    }
    node->columns = node->cell->gates * node->hidden;
    return PRONY_OK;
}

void prn_recurrent_operands(const prony_context *context, prn_recurrent *node)
{
    const bool has_c = node->cell->has_c;
    node->params = context->params;
    node->x = context->inputs[0];
    node->w = context->inputs[1];
    node->r = context->inputs[2];
    node->b = prn_input(context, 3);
    node->lengths = prn_input(context, 4);
    node->h0 = prn_input(context, 5);
    node->c0 = has_c ? prn_input(context, 6) : NULL;
    node->p = has_c ? prn_input(context, 7) : NULL;
    node->y = prn_output(context, 0);
    node->yh = prn_output(context, 1);
    node->yc = has_c ? prn_output(context, 2) : NULL;
}

/* The node as the reference and the native kernel see it: operands, functions, sizes and the strides of its layout.
 * Operands have been checked. */
prony_status prn_recurrent_describe(const prony_context *context, prn_recurrent *out)
{
    const prn_recurrent_params *params = context->params;
    *out = (prn_recurrent){.cell = prn_variant(context),
                           .parts = context->precision == PRONY_PRECISION_FP32_STRICT ? PRN_BF16X3_NEVER : 0,
                           .directions = strcmp(params->direction, "bidirectional") == 0 ? 2 : 1};
    prn_recurrent_operands(context, out);
    out->reverse[0] = strcmp(params->direction, "reverse") == 0;
    out->reverse[1] = true;
    PRN_TRY(read_functions(context, out));
    PRN_TRY(read_sizes(context, out));
    PRN_TRY(check_inputs(context, out));
    const int64_t d = out->directions, h = out->hidden;
    if (params->layout) {
        out->x_row = out->steps * out->input;
        out->x_step = out->input;
        out->y_row = out->steps * d * h;
        out->y_step = d * h;
        out->y_direction = out->state_direction = h;
        out->state_row = d * h;
    } else {
        out->x_row = out->input;
        out->x_step = out->batch * out->input;
        out->y_row = out->state_row = h;
        out->y_step = d * out->batch * h;
        out->y_direction = out->state_direction = out->batch * h;
    }
    return PRONY_OK;
}

prony_status prn_recurrent_infer(const prony_context *context)
{
    prn_recurrent node;
    PRN_TRY(prn_recurrent_describe(context, &node));
    const int64_t d = node.directions, b = node.batch, h = node.hidden;
    const prony_shape y = y_shape(&node);
    const prony_shape state = node.params->layout ? prn_shape_make(3, (const int64_t[]){b, d, h})
                                                  : prn_shape_make(3, (const int64_t[]){d, b, h});
    prn_set_output(context, 0, node.x->dtype, &y);
    prn_set_output(context, 1, node.x->dtype, &state);
    prn_set_output(context, 2, node.x->dtype, &state);
    return PRONY_OK;
}

prony_status prn_recurrent_check_lengths(const prony_context *context, const prn_recurrent *node)
{
    for (int64_t b = 0; node->lengths && b < node->batch; b++) {
        const int32_t length = ((const int32_t *)node->lengths->data)[b];
        if (length >= 0 && length <= node->steps) continue;
        return prony_fail(context, PRONY_OUT_OF_RANGE, "sequence_lens[%lld] is %d, wanted 0 to %lld", (long long)b,
                          length, (long long)node->steps);
    }
    return PRONY_OK;
}

/* ---- cost */

/* Products of every step, bias additions, and the cell's own arithmetic per unit and direction. */
prony_status prn_recurrent_cost(const prony_context *context, prony_cost *cost)
{
    prn_recurrent node;
    PRN_TRY(prn_recurrent_describe(context, &node));
    uint64_t rows, gates, units, macs, madds;
    bool fits = prn_mul_u64(&rows, (uint64_t)node.steps, (uint64_t)node.batch);
    fits =
        fits && prn_mul_u64(&gates, rows, (uint64_t)node.columns) && prn_mul_u64(&units, rows, (uint64_t)node.hidden);
    fits = fits && prn_mul_u64(&macs, gates, (uint64_t)(node.input + node.hidden));
    if (!fits) return prony_fail(context, PRONY_LIMIT, "the operation count does not fit into 64 bits");
    prn_cost_fact(cost, "steps", node.steps);
    prn_cost_fact(cost, "batch", node.batch);
    prn_cost_fact(cost, "input_size", node.input);
    prn_cost_fact(cost, "hidden_size", node.hidden);
    prn_cost_fact(cost, "directions", node.directions);
    prn_cost_fact(cost, "gates", node.cell->gates);
    prn_cost_fact(cost, "bias", node.b != NULL);
    for (int d = 0; d < node.directions; d++) {
        const prn_unit_cost unit = node.cell->unit_cost(&node, d);
        PRN_TRY(prn_cost_macs(context, cost, macs, false));
        PRN_TRY(prn_cost_elementwise(context, cost, gates, node.b ? 2 : 0, 0));
        PRN_TRY(prn_cost_elementwise(context, cost, units, unit.flops, unit.special));
        if (!prn_mul_u64(&madds, units, unit.madds) || !prn_add_u64(&cost->madds, cost->madds, madds))
            return prony_fail(context, PRONY_LIMIT, "the operation count does not fit into 64 bits");
    }
    return PRONY_OK;
}
