/*   x ── Conv(W, b) ── BatchNormalization(γ, β, μ, σ²) ── y          x ── Conv(sW, s(b - μ) + β) ── y
 *
 * with s = γ / √(σ² + ε). Also after ConvTranspose, and after Gemm and MatMul whose output is a matrix. */
#include "engine/rewrites/pass.h"

#include <math.h>

/* true: inference mode, by each opset's attributes: statistics are inputs, one per channel. */
static bool is_inference(const prn_node_def *node)
{
    if (!prn_node_is(node, "BatchNormalization") || node->input_count != 5) return false;
    for (uint32_t k = 1; k < node->output_count; k++)
        if (node->outputs[k] != PRN_NO_VALUE) return false;
    if (node->info.opset < 7 && prn_node_int(node, "is_test", 0) == 0) return false;
    return prn_node_int(node, "training_mode", 0) == 0 && prn_node_int(node, "spatial", 1) == 1;
}

static bool read_statistics(const prn_rewriter *r, const prn_node_def *node, int64_t channels,
                            const float *statistic[4])
{
    for (uint32_t k = 0; k < 4; k++) {
        const prony_shape *shape;
        if (!prn_rewrite_constant(r, node->inputs[k + 1], &statistic[k], &shape)) return false;
        if (shape->rank != 1 || shape->dim[0] != channels) return false;
    }
    return true;
}

bool prn_batch_norm_affine(const prn_rewriter *r, const prn_node_def *node, int64_t channels, double *scale)
{
    const float *statistic[4];
    if (!is_inference(node) || !read_statistics(r, node, channels, statistic)) return false;
    const double epsilon = prn_node_float(node, "epsilon", (double)1e-5f);
    for (int64_t c = 0; c < channels && scale; c++) {
        scale[c] = (double)statistic[0][c] / sqrt((double)statistic[3][c] + epsilon);
        scale[channels + c] = (double)statistic[1][c] - (double)statistic[2][c] * scale[c];
    }
    return true;
}

prony_status prn_rewrite_fold_batch_norm(prn_rewriter *r, uint32_t n)
{
    prn_node_def *node = r->program->nodes[n];
    if (!prn_node_is(node, "BatchNormalization") || !prn_rewrite_used_once(r, node->inputs[0])) return PRONY_OK;
    prn_node_def *before = prn_rewrite_producer(r, node->inputs[0]);
    prn_contraction contraction;
    if (!before || !prn_contraction_read(r, before, &contraction) || contraction.axis != 1 ||
        !prn_batch_norm_affine(r, node, contraction.channels, NULL))
        return PRONY_OK;
    double *scale = prn_calloc((size_t)contraction.channels, 2 * sizeof *scale);
    if (!scale) return prn_no_memory(r->error);
    (void)prn_batch_norm_affine(r, node, contraction.channels, scale);
    bool done;
    prony_status status = prn_contraction_fold(r, &contraction, scale, scale + contraction.channels, &done);
    prn_free(scale);
    if (status != PRONY_OK || !done) return status;
    prn_rewrite_mark_removed(r, node);
    return prn_rewrite_take_over(r, before, n);
}
