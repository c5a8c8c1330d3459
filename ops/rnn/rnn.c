/* RNN: h = f(X W^T + Wb + h R^T + Rb). */
#include "base/memory/alloc.h"
#include "ops/kernels/vector/vec.h"
#include "ops/rnn/recurrent.h"

static int rnn_first_gates(const prn_recurrent *node)
{
    (void)node;
    return 1;
}

static prn_unit_cost rnn_unit_cost(const prn_recurrent *node, int direction)
{
    prn_unit_cost cost = {0};
    prn_gate_add_cost(&cost, node, node->gate[direction][0]);
    return cost;
}

static void rnn_row_f64(const prn_recurrent_row_f64 *row)
{
    const int64_t n = row->node->hidden;
    prn_recurrent_product_f64(row->temp, row->r, row->h, row->rb, n, n);
    for (int64_t i = 0; i < n; i++)
        row->h[i] = prn_gate_f64(row->node, row->node->gate[row->direction][0], row->x[i] + row->temp[i]);
}

static void rnn_row_f32(const prn_recurrent_row_f32 *row)
{
    const int64_t n = row->node->hidden;
    prn_vec()->vv[PRN_BINARY_ADD](row->h, row->gates, row->x, n);
    prn_gate_f32(row->node, row->node->gate[row->direction][0], row->h, n);
}

static bool rnn_fused_steps(const prn_recurrent *node, int direction, prn_recurrent_step_id *steps)
{
    const prn_gate_id id = node->gate[direction][0].id;
    steps[0] = id == PRN_GATE_RELU ? PRN_STEP_RNN_RELU : PRN_STEP_RNN_TANH;
    return id == PRN_GATE_RELU || id == PRN_GATE_TANH;
}

// clang-format off
static const prn_recurrent_cell cell = {
    .gates = 1, .functions = 1, .defaults = {"Tanh"},
    .unit_cost = rnn_unit_cost, .first_gates = rnn_first_gates, .row_f64 = rnn_row_f64, .row_f32 = {rnn_row_f32},
    .fused_steps = rnn_fused_steps};
// clang-format on

static const prn_param attributes[] = {PRN_RECURRENT_ROWS, {0}};

// clang-format off
static const prn_kernel kernels[] = {
    {.name = "rnn_f32_native", .backend = "native", .types = PRN_TYPE_F32, .supported = prn_recurrent_native_supported,
     .prepare = prn_recurrent_native_prepare, .run = prn_recurrent_native_run, .release = prn_free,
     .packs = 1 << 1 | 1 << 2},
    {.name = "rnn_reference", .backend = "reference",
     .prepare = prn_recurrent_reference_prepare, .run = prn_recurrent_reference_run, .release = prn_free},
    {0}};

const prn_op prn_ops_rnn[] = {
    {.name = "RNN", .since_opset = 1, .inputs = {3, 6}, .outputs = {0, 2}, .non_weight_inputs = 1 << 4 | 1 << 5,
     .params = attributes, .params_bytes = sizeof(prn_recurrent_params), .check = prn_recurrent_check,
     .variant = &cell, .infer = prn_recurrent_infer, .cost = prn_recurrent_cost, .kernels = kernels,
     .cost_text = "M = T B H (I + H) per direction; 2 M, + 2 T B H with bias, + the activation, + 2 T B H with clip"},
    {0}};
// clang-format on
