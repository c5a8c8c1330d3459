/*   x ── Transpose(0, 2, …, 1) ── MatMul(W, b) ── Transpose(0, r - 1, 1, …) ── y          x ── Conv(Wᵀ, b) ── y
 *
 * with 1 x 1 windows, for few channels, such as mixed attention heads. With more channels the matmul dominates. */
#include "engine/rewrites/pass.h"

#include "base/shape.h"

/* More channels favour the matmul; chosen without measurement. */
enum { MOST_CHANNELS = 16 };

/* true: the second axis moves to the end, or the last one moves to the second. */
static bool moves_channels(const prn_rewriter *r, const prn_node_def *node, int rank, bool to_last)
{
    int64_t perm[PRONY_MAX_RANK];
    if (!prn_node_is(node, "Transpose") || r->program->values[node->inputs[0]]->info.shape.rank != rank) return false;
    prn_rewrite_permutation(r, node, perm);
    bool moves = perm[0] == 0;
    for (int i = 1; i < rank; i++)
        moves = moves && perm[i] == (to_last ? i % (rank - 1) + 1 : i == 1 ? rank - 1 : i - 1);
    return moves;
}

/* Makes the matmul's operands a convolution's. */
static prony_status add_operands(prn_rewriter *r, const prn_contraction *product, int rank, uint32_t inputs[3])
{
    const int64_t in = product->weight_shape->dim[0], out = product->weight_shape->dim[1];
    prony_value weights = {.kind = PRONY_TENSOR, .dtype = PRONY_FLOAT32, .shape = {.rank = rank, .dim = {out, in}}};
    prony_value bias = {.kind = PRONY_TENSOR, .dtype = PRONY_FLOAT32, .shape = {.rank = 1, .dim = {out}}};
    for (int i = 2; i < rank; i++) weights.shape.dim[i] = 1;
    const prn_node_def *node = product->node;
    for (uint32_t i = 1; i < node->input_count; i++)
        if (node->inputs[i] != PRN_NO_VALUE) PRN_TRY(prn_program_hold(r->program, node->inputs[i], r->error));
    float *w = prn_alloc_aligned(64, (size_t)(in * out) * sizeof *w),
          *b = prn_alloc_aligned(64, (size_t)out * sizeof *b);
    if (!w || !b) {
        prn_free_aligned(w);
        prn_free_aligned(b);
        return prn_no_memory(r->error);
    }
    for (int64_t n = 0; n < out; n++) {
        for (int64_t c = 0; c < in; c++) w[n * in + c] = product->weights[c * out + n];
        b[n] = product->bias ? product->bias[n * product->bias_step] : 0.0f;
    }
    const char *name = r->program->values[node->inputs[1]]->name;
    const prony_status status = prn_rewrite_add_constant(r, name, &weights, w, &inputs[1]);
    if (status == PRONY_OK) return prn_rewrite_add_constant(r, name, &bias, b, &inputs[2]);
    prn_free_aligned(b);
    return status;
}

prony_status prn_rewrite_pointwise_conv(prn_rewriter *r, uint32_t n)
{
    prn_node_def *last = r->program->nodes[n];
    if (!prn_node_is(last, "Transpose") || prn_dynamic_dims_affect(r->program->values[last->outputs[0]]->extents))
        return PRONY_OK;
    const int rank = r->program->values[last->outputs[0]]->info.shape.rank;
    if (rank < 4 || rank > 5 || !moves_channels(r, last, rank, false)) return PRONY_OK;
    if (prony_shape_numel(&r->program->values[last->outputs[0]]->info.shape) == 0) return PRONY_OK; /* no windows */
    prn_contraction product;
    prn_node_def *middle = prn_rewrite_inner(r, last->inputs[0], "MatMul");
    if (!middle || !prn_contraction_read(r, middle, &product) || product.weight_shape->rank != 2) return PRONY_OK;
    if (product.weight_shape->dim[0] > MOST_CHANNELS || product.weight_shape->dim[1] > MOST_CHANNELS) return PRONY_OK;
    prn_node_def *first = prn_rewrite_inner(r, middle->inputs[0], "Transpose");
    if (!first || !moves_channels(r, first, rank, true)) return PRONY_OK;
    prn_program *p = r->program;
    const size_t held = p->refs.held_count;
    uint32_t inputs[3] = {first->inputs[0]};
    const prony_status status = add_operands(r, &product, rank, inputs);
    prn_weight_cache_unpin(p->model->shared, &p->refs, held);
    PRN_TRY(status);
    prn_rewrite_mark_removed(r, first);
    prn_rewrite_mark_removed(r, last);
    const prn_pattern pattern = {{first, middle}, 2};
    return prn_rewrite_become(r, last, "Conv", NULL, 0, inputs, 3, &pattern);
}
