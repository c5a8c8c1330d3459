/* GRU, gates z, r, h:
 *
 *   z = f(Xz + h Rz^T)   r = f(Xr + h Rr^T)   n = g(Xh + (r h) Rh^T + Rbh), or g(Xh + r (h Rh^T + Rbh)) with
 *   linear_before_reset; then h = (1 - z) n + z h. */
#include "base/memory/alloc.h"
#include "ops/kernels/vector/vec.h"
#include "ops/rnn/recurrent.h"

static bool linear_first(const prn_recurrent *node)
{
    return node->params->linear_before_reset != 0;
}

static int gru_first_gates(const prn_recurrent *node)
{
    return linear_first(node) ? 3 : 2;
}

static prn_unit_cost gru_unit_cost(const prn_recurrent *node, int direction)
{
    const prn_gate *gate = node->gate[direction];
    prn_unit_cost cost = {.flops = linear_first(node) ? 6 : 5}; /* r times, 1 - z, two products and their sum; X plus */
    prn_gate_add_cost(&cost, node, gate[0]);
    prn_gate_add_cost(&cost, node, gate[0]);
    prn_gate_add_cost(&cost, node, gate[1]);
    return cost;
}

static void gru_row_f64(const prn_recurrent_row_f64 *row)
{
    const prn_recurrent *node = row->node;
    const prn_gate *gate = node->gate[row->direction];
    const int64_t n = node->hidden;
    double *z = row->x, *r = z + n, *x = r + n, *h = row->h, *linear = row->temp + 2 * n, *reset = row->temp + 3 * n;
    const double *rb = row->rb ? row->rb + 2 * n : NULL;
    prn_recurrent_product_f64(row->temp, row->r, h, row->rb, 2 * n, n);
    for (int64_t i = 0; i < 2 * n; i++) z[i] = prn_gate_f64(node, gate[0], z[i] + row->temp[i]);
    for (int64_t i = 0; i < n; i++) reset[i] = linear_first(node) ? h[i] : r[i] * h[i];
    prn_recurrent_product_f64(linear, row->r + 2 * n * n, reset, rb, n, n);
    for (int64_t i = 0; i < n; i++) {
        const double candidate = prn_gate_f64(node, gate[1], x[i] + (linear_first(node) ? r[i] : 1.0) * linear[i]);
        h[i] = (1.0 - z[i]) * candidate + z[i] * h[i];
    }
}

/* h = (1 - z) n + z h; z and n are used up. */
static void gru_mix(const prn_recurrent_row_f32 *row, float *candidate)
{
    const prn_vec_table *vec = prn_vec();
    const int64_t n = row->node->hidden;
    float *z = row->gates;
    vec->vv[PRN_BINARY_MUL](row->h, row->h, z, n);
    vec->map[PRN_MAP_AFFINE](z, z, n, -1.0f, 1.0f);
    vec->vv[PRN_BINARY_MUL](candidate, candidate, z, n);
    vec->vv[PRN_BINARY_ADD](row->h, row->h, candidate, n);
}

static void first_row_f32(const prn_recurrent_row_f32 *row)
{
    const prn_vec_table *vec = prn_vec();
    const prn_recurrent *node = row->node;
    const prn_gate *gate = node->gate[row->direction];
    const int64_t n = node->hidden;
    float *z = row->gates, *r = z + n, *candidate = r + n;
    vec->vv[PRN_BINARY_ADD](z, z, row->x, 2 * n);
    prn_gate_f32(node, gate[0], z, 2 * n);
    if (!linear_first(node)) {
        vec->vv[PRN_BINARY_MUL](row->temp, r, row->h, n);
        return;
    }
    if (row->rb) vec->vv[PRN_BINARY_ADD](candidate, candidate, row->rb + 2 * n, n);
    vec->vv[PRN_BINARY_MUL](candidate, candidate, r, n);
    vec->vv[PRN_BINARY_ADD](candidate, candidate, row->x + 2 * n, n);
    prn_gate_f32(node, gate[1], candidate, n);
    gru_mix(row, candidate);
}

static void second_row_f32(const prn_recurrent_row_f32 *row)
{
    const int64_t n = row->node->hidden;
    float *candidate = row->gates + 2 * n;
    prn_vec()->vv[PRN_BINARY_ADD](candidate, candidate, row->x + 2 * n, n);
    prn_gate_f32(row->node, row->node->gate[row->direction][1], candidate, n);
    gru_mix(row, candidate);
}

static bool gru_fused_steps(const prn_recurrent *node, int direction, prn_recurrent_step_id *steps)
{
    const prn_gate *gate = node->gate[direction];
    steps[0] = linear_first(node) ? PRN_STEP_GRU_LINEAR : PRN_STEP_GRU_GATES;
    steps[1] = PRN_STEP_GRU_CANDIDATE;
    return gate[0].id == PRN_GATE_SIGMOID && gate[1].id == PRN_GATE_TANH;
}

// clang-format off
static const prn_recurrent_cell cell = {
    .gates = 3, .functions = 2, .defaults = {"Sigmoid", "Tanh"},
    .unit_cost = gru_unit_cost, .first_gates = gru_first_gates, .row_f64 = gru_row_f64, .row_f32 = {first_row_f32, second_row_f32},
    .fused_steps = gru_fused_steps};
// clang-format on

static const prn_param attributes[] = {PRN_RECURRENT_ROWS, PRN_INT(prn_recurrent_params, linear_before_reset, 0), {0}};

// clang-format off
static const prn_kernel kernels[] = {
    {.name = "gru_f32_native", .backend = "native", .types = PRN_TYPE_F32, .supported = prn_recurrent_native_supported,
     .prepare = prn_recurrent_native_prepare, .run = prn_recurrent_native_run, .release = prn_free,
     .packs = 1 << 1 | 1 << 2},
    {.name = "gru_reference", .backend = "reference",
     .prepare = prn_recurrent_reference_prepare, .run = prn_recurrent_reference_run, .release = prn_free},
    {0}};

const prn_op prn_ops_gru[] = {
    {.name = "GRU", .since_opset = 1, .inputs = {3, 6}, .outputs = {0, 2}, .non_weight_inputs = 1 << 4 | 1 << 5,
     .params = attributes, .params_bytes = sizeof(prn_recurrent_params), .check = prn_recurrent_check,
     .variant = &cell, .infer = prn_recurrent_infer, .cost = prn_recurrent_cost, .kernels = kernels,
     .cost_text = "M = T B 3H (I + H) per direction; 2 M, + 6 T B H with bias, + T B H (2 f + g + 5), + T B H with "
                  "linear_before_reset, + 6 T B H with clip; f, g: the activations' own"},
    {0}};
// clang-format on
