/* LSTM, gates i, o, f, c (peepholes i, o, f):
 *
 *   i = f(Xi + h Ri^T + Pi c)   f = f(Xf + h Rf^T + Pf c), or 1 - i with input_forget   n = g(Xc + h Rc^T)
 *   c = f c + i n   o = f(Xo + h Ro^T + Po c)   h = o h(c) */
#include "base/memory/alloc.h"
#include "ops/kernels/vector/vec.h"
#include "ops/rnn/recurrent.h"

static int lstm_first_gates(const prn_recurrent *node)
{
    (void)node;
    return 4;
}

static prn_unit_cost lstm_unit_cost(const prn_recurrent *node, int direction)
{
    const prn_gate *gate = node->gate[direction];
    const bool coupled = node->params->input_forget != 0;
    prn_unit_cost cost = {.flops = 4}; /* f c, i n, their sum, o h(c) */
    prn_unit_cost output = {0};
    for (int i = 0; i < (coupled ? 2 : 3); i++) {
        prn_gate_add_cost(&cost, node, gate[0]);
        if (node->p) cost.flops += 2;
    }
    if (coupled) cost.flops++;
    prn_gate_add_cost(&cost, node, gate[1]);
    prn_gate_add_cost(&output, node, gate[2]);
    cost.flops += output.flops - (node->params->clip < INFINITY ? 2 : 0); /* the cell state itself is not clipped */
    cost.special += output.special;
    cost.madds += output.madds;
    return cost;
}

static void lstm_row_f64(const prn_recurrent_row_f64 *row)
{
    const prn_recurrent *node = row->node;
    const prn_gate *gate = node->gate[row->direction];
    const int64_t n = node->hidden;
    const double *p = row->p, *own = row->temp;
    prn_recurrent_product_f64(row->temp, row->r, row->h, row->rb, 4 * n, n);
    for (int64_t j = 0; j < n; j++) {
        const int64_t i = j, o = n + j, f = 2 * n + j, c = 3 * n + j;
        const double before = row->c[j];
        const double input = prn_gate_f64(node, gate[0], row->x[i] + own[i] + (p ? p[i] * before : 0.0));
        const double kept = prn_gate_f64(node, gate[0], row->x[f] + own[f] + (p ? p[f] * before : 0.0));
        const double candidate = prn_gate_f64(node, gate[1], row->x[c] + own[c]);
        row->c[j] = (node->params->input_forget ? 1.0 - input : kept) * before + input * candidate;
        const double output = prn_gate_f64(node, gate[0], row->x[o] + own[o] + (p ? p[o] * row->c[j] : 0.0));
        row->h[j] = output * prn_gate_unclipped_f64(gate[2], row->c[j]);
    }
}

/* x += p c */
static void peep(const prn_recurrent_row_f32 *row, int64_t gate)
{
    const int64_t n = row->node->hidden;
    if (!row->p) return;
    prn_vec()->vv[PRN_BINARY_MUL](row->temp, row->p + gate * n, row->c, n);
    prn_vec()->vv[PRN_BINARY_ADD](row->gates + gate * n, row->gates + gate * n, row->temp, n);
}

/* One step of one row, gates in ONNX's order i, o, f, c; peepholes and input_forget need the gates one by one. */
static void lstm_row_f32(const prn_recurrent_row_f32 *row)
{
    const prn_vec_table *vec = prn_vec();
    const prn_recurrent *node = row->node;
    const prn_gate *gate = node->gate[row->direction];
    const int64_t n = node->hidden;
    float *i = row->gates, *o = i + n, *f = o + n, *candidate = f + n;
    vec->vv[PRN_BINARY_ADD](i, i, row->x, 4 * n);
    peep(row, 0);
    peep(row, 2);
    if (row->p || node->params->input_forget) {
        prn_gate_f32(node, gate[0], i, n);
        if (node->params->input_forget) {
            vec->map[PRN_MAP_AFFINE](f, i, n, -1.0f, 1.0f);
        } else {
            prn_gate_f32(node, gate[0], f, n);
        }
    } else {
        prn_gate_f32(node, gate[0], i, 3 * n);
    }
    prn_gate_f32(node, gate[1], candidate, n);
    vec->vv[PRN_BINARY_MUL](row->c, row->c, f, n);
    vec->vv[PRN_BINARY_MUL](candidate, candidate, i, n);
    vec->vv[PRN_BINARY_ADD](row->c, row->c, candidate, n);
    if (row->p || node->params->input_forget) {
        peep(row, 1);
        prn_gate_f32(node, gate[0], o, n);
    }
    prn_gate_unclipped_f32(gate[2], row->h, row->c, n);
    vec->vv[PRN_BINARY_MUL](row->h, row->h, o, n);
}

static bool lstm_fused_steps(const prn_recurrent *node, int direction, prn_recurrent_step_id *steps)
{
    const prn_gate *gate = node->gate[direction];
    steps[0] = PRN_STEP_LSTM;
    return !node->params->input_forget && gate[0].id == PRN_GATE_SIGMOID && gate[1].id == PRN_GATE_TANH &&
           gate[2].id == PRN_GATE_TANH;
}

// clang-format off
static const prn_recurrent_cell cell = {
    .gates = 4, .functions = 3, .defaults = {"Sigmoid", "Tanh", "Tanh"}, .has_c = true,
    .unit_cost = lstm_unit_cost, .first_gates = lstm_first_gates, .row_f64 = lstm_row_f64, .row_f32 = {lstm_row_f32},
    .fused_steps = lstm_fused_steps};
// clang-format on

static const prn_param attributes[] = {PRN_RECURRENT_ROWS, PRN_INT(prn_recurrent_params, input_forget, 0), {0}};

// clang-format off
static const prn_kernel kernels[] = {
    {.name = "lstm_f32_native", .backend = "native", .types = PRN_TYPE_F32, .supported = prn_recurrent_native_supported,
     .prepare = prn_recurrent_native_prepare, .run = prn_recurrent_native_run, .release = prn_free,
     .packs = 1 << 1 | 1 << 2},
    {.name = "lstm_reference", .backend = "reference",
     .prepare = prn_recurrent_reference_prepare, .run = prn_recurrent_reference_run, .release = prn_free},
    {0}};

const prn_op prn_ops_lstm[] = {
    {.name = "LSTM", .since_opset = 1, .inputs = {3, 8}, .outputs = {0, 3},
     .non_weight_inputs = 1 << 4 | 1 << 5 | 1 << 6,
     .params = attributes, .params_bytes = sizeof(prn_recurrent_params), .check = prn_recurrent_check,
     .variant = &cell, .infer = prn_recurrent_infer, .cost = prn_recurrent_cost, .kernels = kernels,
     .cost_text = "M = T B 4H (I + H) per direction; 2 M, + 8 T B H with bias, + T B H (3 f + g + h + 4), + 6 T B "
                  "H with peepholes, + 8 T B H with clip; f, g, h: the activations' own (input_forget: 1 for one f)"},
    {0}};
// clang-format on
