/*   x codes ── DequantizeLinear ──┐
 *   w codes ── DequantizeLinear ──Conv ── Relu ── QuantizeLinear ── y codes
 *   b codes ── DequantizeLinear ──┘
 *
 *                                                        x codes ── QConv[w codes, b, low, high] ── y codes
 *
 * And ConvTranspose (QConvTranspose), Gemm and MatMul with constant weights (QGemm; QLinearMatMul for stacks of
 * matrices without bias and bounds), MatMul followed by an Add of a constant, which is its bias. If the output's bounds
 * are its type's, Conv becomes QLinearConv. Between Conv and Relu an Add of another dequantized tensor may stand: it
 * becomes QConv's residual.
 *
 * The bias has scale x_scale w_scale. A bias with another scale is rounded to it, if this scale is small beside the
 * output's. */
#include "engine/rewrites/quantized_value.h"

#include "base/shape.h"

#include <math.h>
#include <string.h>

#define TYPES_8_BIT (PRN_TYPE(PRONY_INT8) | PRN_TYPE(PRONY_UINT8))

enum { CONV_INPUTS = 14, GEMM_INPUTS = 9, MATMUL_INPUTS = 8, LEAST_GROUP = 8, MOST_PHASES = 64 };

/* Largest ratio of the bias's scale to the output's, unless the bias is stored with this scale. Chosen without
 * measurement. */
static const double most_of_a_step = 0.125;

typedef struct contraction {
    prn_node_def *node;
    prn_quantized_value x, w, residual, bias;
    int64_t channels;
    bool has_residual, has_bias, bias_coded;
    uint32_t bias_value; /* a constant */
} contraction;

/* ---- the bias ---- */

static float constant_float(const prn_rewriter *r, uint32_t value, int64_t i)
{
    const prony_value *v = &r->program->values[value]->info;
    return ((const float *)v->data)[prony_shape_numel(&v->shape) == 1 ? 0 : i];
}

/* true: the bias is stored with scale x_scale w_scale. */
static bool is_in_steps(const prn_rewriter *r, const contraction *c)
{
    if (!c->bias_coded) return false;
    const prn_quantized_value *bias = &c->bias;
    const prony_shape *shape = &r->program->values[bias->codes]->info.shape;
    if (bias->zero != PRN_NO_VALUE) {
        const int32_t *zero = r->program->values[bias->zero]->info.data;
        for (int64_t i = 0; i < prony_shape_numel(&r->program->values[bias->zero]->info.shape); i++)
            if (zero[i] != 0) return false;
    }
    if (shape->rank != 1 || shape->dim[0] != c->channels || !r->program->values[bias->codes]->info.data) return false;
    for (int64_t i = 0; i < c->channels; i++) {
        const double step = (double)constant_float(r, c->x.scale, 0) * (double)constant_float(r, c->w.scale, i);
        if (!prn_rewrite_near((double)constant_float(r, bias->scale, i), step)) return false;
    }
    return true;
}

/* Quantises a float bias. *done is false if a scale would be too coarse, or a value does not fit. */
static prony_status round_bias(prn_rewriter *r, const contraction *c, uint32_t y_scale, uint32_t *out, bool *done)
{
    const prn_value_def *given = r->program->values[c->bias_value];
    int32_t *codes = prn_alloc_aligned(64, (size_t)c->channels * sizeof *codes);
    if (!codes) return prn_no_memory(r->error);
    *done = true;
    for (int64_t i = 0; i < c->channels && *done; i++) {
        const double step = (double)constant_float(r, c->x.scale, 0) * (double)constant_float(r, c->w.scale, i);
        const double code = rint((double)constant_float(r, c->bias_value, i) / step);
        *done = fabs(code) < 0x1p30 && step <= most_of_a_step * (double)constant_float(r, y_scale, 0);
        codes[i] = *done ? (int32_t)code : 0;
    }
    if (!*done) {
        prn_free_aligned(codes);
        return PRONY_OK;
    }
    const prony_value info = {.kind = PRONY_TENSOR, .dtype = PRONY_INT32, .shape = {.rank = 1, .dim = {c->channels}}};
    return prn_rewrite_add_constant(r, given->name, &info, codes, out);
}

static prony_status quantize_contraction_bias_of(prn_rewriter *r, const contraction *c, uint32_t y_scale, uint32_t *out,
                                                 bool *done)
{
    *out = PRN_NO_VALUE;
    *done = true;
    if (!c->has_bias) return PRONY_OK;
    if (!is_in_steps(r, c)) return round_bias(r, c, y_scale, out, done);
    *out = c->bias.codes;
    return PRONY_OK;
}

/* true: the bias has one float for each channel, or one for all. */
static bool quantize_contraction_read_bias(prn_rewriter *r, contraction *c, uint32_t value)
{
    const float *data;
    const prony_shape *shape;
    c->bias_value = value;
    c->has_bias = c->bias_value != PRN_NO_VALUE;
    if (!c->has_bias) return true;
    c->bias_coded = prn_rewrite_read_quantized(r, c->bias_value, PRN_TYPE(PRONY_INT32), &c->bias);
    if (!prn_rewrite_constant(r, c->bias_value, &data, &shape)) return false;
    const int64_t count = prony_shape_numel(shape);
    return (count == 1 || count == c->channels) && (shape->rank == 0 || shape->dim[shape->rank - 1] == count);
}

/* ---- matching ---- */

/* Reads constant 8-bit weights, with one scale or one per output channel on axis `axis`. */
static bool read_weights(prn_rewriter *r, contraction *c, int axis)
{
    if (!prn_rewrite_read_quantized(r, prn_node_input(c->node, 1), TYPES_8_BIT, &c->w)) return false;
    const prn_value_def *codes = r->program->values[c->w.codes];
    if (!codes->constant || !codes->info.data || codes->info.shape.rank <= axis) return false;
    c->channels = codes->info.shape.dim[axis];
    if (c->w.axis >= 0 && c->w.axis != axis) return false;
    if (c->w.zero == PRN_NO_VALUE || c->w.axis >= 0) return true;
    return prony_shape_numel(&r->program->values[c->w.zero]->info.shape) == 1;
}

/* true: the output has few enough phases for a matmul each; dilations reduce their number. */
static bool has_few_phases(const prn_node_def *node)
{
    const prn_attr *strides = prn_attr_find(node->info.attributes, "strides");
    const prn_attr *dilations = prn_attr_find(node->info.attributes, "dilations");
    bool dilated = false;
    int64_t phases = 1;
    for (size_t i = 0; dilations && i < dilations->count; i++) dilated = dilated || dilations->ints[i] != 1;
    for (size_t i = 0; strides && i < strides->count; i++) {
        if (strides->ints[i] > MOST_PHASES) return false;
        phases *= strides->ints[i];
    }
    return !dilated || phases <= MOST_PHASES;
}

/* true: the quantised ConvTranspose has a fast kernel: few phases, weights without zero points (unsigned: 128), one
 * scale if there are groups, and several outputs per group. */
static bool read_transposed(prn_rewriter *r, contraction *c)
{
    const int64_t groups = prn_node_int(c->node, "group", 1);
    if (!read_weights(r, c, 1) || groups < 1 || !has_few_phases(c->node)) return false;
    const prony_value *zero = c->w.zero == PRN_NO_VALUE ? NULL : &r->program->values[c->w.zero]->info;
    for (int64_t i = 0; zero && i < prony_shape_numel(&zero->shape); i++)
        if (((const uint8_t *)zero->data)[i] != (c->w.type == PRONY_INT8 ? 0 : 128)) return false;
    if (!zero && c->w.type != PRONY_INT8) return false;
    if (groups > 1 && (c->w.axis >= 0 || c->channels < LEAST_GROUP)) return false;
    c->channels *= groups;
    return true;
}

static bool read_contraction(prn_rewriter *r, prn_node_def *node, contraction *c)
{
    *c = (contraction){.node = node};
    int axis = 0;
    if (node->post_ops || node->input_count < 2) return false;
    if (prn_node_is(node, "Gemm")) {
        if (prn_node_float(node, "alpha", 1.0) != 1.0 || prn_node_float(node, "beta", 1.0) != 1.0 ||
            prn_node_int(node, "transA", 0) != 0)
            return false;
        axis = prn_node_int(node, "transB", 0) ? 0 : 1;
    } else if (prn_node_is(node, "MatMul")) {
        const int rank = r->program->values[node->inputs[0]]->info.shape.rank;
        if (rank < 2 || r->program->values[node->inputs[1]]->info.shape.rank != 2) return false;
        axis = 1;
    } else if (prn_node_is(node, "ConvTranspose")) {
        return prn_rewrite_read_quantized_evenly(r, node->inputs[0], &c->x) && read_transposed(r, c) &&
               quantize_contraction_read_bias(r, c, prn_node_input(node, 2));
    } else if (!prn_node_is(node, "Conv")) {
        return false;
    }
    return prn_rewrite_read_quantized_evenly(r, node->inputs[0], &c->x) && read_weights(r, c, axis) &&
           quantize_contraction_read_bias(r, c, prn_node_input(node, 2));
}

static bool quantize_contraction_is_contraction(const prn_node_def *node)
{
    static const char *const names[] = {"Conv", "ConvTranspose", "Gemm", "MatMul"};
    for (size_t i = 0; node && i < sizeof names / sizeof *names; i++)
        if (prn_node_is(node, names[i])) return true;
    return false;
}

/* Finds a MatMul with one reader, and the constant that `add` adds as its bias. */
static bool find_biased(prn_rewriter *r, const prn_node_def *add, contraction *c)
{
    for (uint32_t i = 0; i < 2; i++) {
        prn_node_def *product = prn_rewrite_inner(r, add->inputs[i], "MatMul");
        if (product && prn_rewrite_same_shape(r, add->inputs[i], add->outputs[0]) && read_contraction(r, product, c) &&
            quantize_contraction_read_bias(r, c, add->inputs[1 - i]))
            return true;
    }
    return false;
}

/* Finds a contraction with one reader, or an Add of one and a bias or a dequantized tensor. */
static bool find_contraction(prn_rewriter *r, prn_lowbit *stored, contraction *c)
{
    if (!prn_rewrite_used_once(r, stored->value)) return false;
    prn_node_def *node = prn_rewrite_producer(r, stored->value);
    if (quantize_contraction_is_contraction(node)) return read_contraction(r, node, c);
    if (!node || !prn_node_is(node, "Add") || node->input_count != 2) return false;
    if (find_biased(r, node, c)) return prn_pattern_add(&stored->pattern, node);
    for (uint32_t i = 0; i < 2; i++) {
        prn_node_def *conv = prn_rewrite_inner(r, node->inputs[i], "Conv");
        prn_quantized_value residual;
        if (!conv || !prn_rewrite_read_quantized_evenly(r, node->inputs[1 - i], &residual) ||
            !prn_rewrite_same_shape(r, node->inputs[1 - i], node->outputs[0]) ||
            !prn_rewrite_same_shape(r, node->inputs[i], node->outputs[0]) || !read_contraction(r, conv, c))
            continue;
        c->residual = residual;
        c->has_residual = true;
        return prn_pattern_add(&stored->pattern, node);
    }
    return false;
}

/* ---- editing ---- */

/* Attributes of Conv and ConvTranspose. */
static const char *const conv_attributes[] = {
    "auto_pad", "dilations", "group", "kernel_shape", "pads", "output_padding", "output_shape", "strides", NULL};
enum { CONV_ATTRIBUTES = sizeof conv_attributes / sizeof *conv_attributes, BOUNDS = 2 };

static size_t add_bounds(const prn_lowbit *stored, prn_attr *to, size_t count)
{
    to[count++] = (prn_attr){.name = "low", .type = PRN_ATTR_INT, .i = stored->low};
    to[count++] = (prn_attr){.name = "high", .type = PRN_ATTR_INT, .i = stored->high};
    return count;
}

static prony_status become_conv(prn_rewriter *r, const contraction *c, const prn_lowbit *stored, uint32_t bias)
{
    prn_attr attributes[CONV_ATTRIBUTES + BOUNDS];
    const bool transposed = prn_node_is(c->node, "ConvTranspose"), own = stored->bounded || c->has_residual;
    const char *op = transposed ? "QConvTranspose" : own ? "QConv" : "QLinearConv";
    size_t count = prn_node_pick_attributes(c->node, conv_attributes, attributes);
    if (own) count = add_bounds(stored, attributes, count);
    uint32_t inputs[CONV_INPUTS] = {c->x.codes, c->x.scale, 0, c->w.codes, c->w.scale, 0, stored->scale, 0, bias};
    PRN_TRY(prn_quantized_zero(r, c->x.zero, c->x.type, &inputs[2]));
    PRN_TRY(prn_quantized_zero(r, c->w.zero, c->w.type, &inputs[5]));
    PRN_TRY(prn_quantized_zero(r, stored->zero, stored->type, &inputs[7]));
    uint32_t input_count = bias == PRN_NO_VALUE ? 8 : 9;
    if (c->has_residual) {
        inputs[9] = c->residual.codes;
        inputs[10] = c->residual.scale;
        PRN_TRY(prn_quantized_zero(r, c->residual.zero, c->residual.type, &inputs[11]));
        input_count = 12;
    }
    prn_quantized_value coded[4] = {c->x, c->w};
    size_t coded_count = 2;
    if (c->bias_coded) coded[coded_count++] = c->bias;
    if (c->has_residual) coded[coded_count++] = c->residual;
    return prn_rewrite_is_quantized(r, c->node, op, attributes, count, inputs, input_count, stored, coded, coded_count);
}

static prony_status become_gemm(prn_rewriter *r, const contraction *c, const prn_lowbit *stored, uint32_t bias)
{
    prn_attr attributes[3];
    size_t count = 0;
    if (prn_node_int(c->node, "transB", 0))
        attributes[count++] = (prn_attr){.name = "transB", .type = PRN_ATTR_INT, .i = 1};
    if (stored->bounded) count = add_bounds(stored, attributes, count);
    uint32_t inputs[GEMM_INPUTS] = {c->x.codes, c->x.scale, 0, c->w.codes, c->w.scale, 0, bias, stored->scale, 0};
    PRN_TRY(prn_quantized_zero(r, c->x.zero, c->x.type, &inputs[2]));
    PRN_TRY(prn_quantized_zero(r, c->w.zero, c->w.type, &inputs[5]));
    PRN_TRY(prn_quantized_zero(r, stored->zero, stored->type, &inputs[8]));
    const prn_quantized_value coded[] = {c->x, c->w, c->bias};
    return prn_rewrite_is_quantized(r, c->node, "QGemm", attributes, count, inputs, GEMM_INPUTS, stored, coded,
                                    c->bias_coded ? 3 : 2);
}

/* MatMul of a stack of matrices. */
static prony_status become_matmul(prn_rewriter *r, const contraction *c, const prn_lowbit *stored)
{
    uint32_t inputs[MATMUL_INPUTS] = {c->x.codes, c->x.scale, 0, c->w.codes, c->w.scale, 0, stored->scale, 0};
    PRN_TRY(prn_quantized_zero(r, c->x.zero, c->x.type, &inputs[2]));
    PRN_TRY(prn_quantized_zero(r, c->w.zero, c->w.type, &inputs[5]));
    PRN_TRY(prn_quantized_zero(r, stored->zero, stored->type, &inputs[7]));
    const prn_quantized_value coded[] = {c->x, c->w};
    return prn_rewrite_is_quantized(r, c->node, "QLinearMatMul", NULL, 0, inputs, MATMUL_INPUTS, stored, coded, 2);
}

prony_status prn_rewrite_quantize_contraction(prn_rewriter *r, uint32_t n)
{
    prn_lowbit stored;
    contraction c;
    uint32_t bias;
    bool done;
    if (!prn_rewrite_stored(r, r->program->nodes[n], &stored) || !find_contraction(r, &stored, &c)) return PRONY_OK;
    if (!prn_rewrite_scales_fit(r, c.x.scale, c.w.scale, stored.scale)) return PRONY_OK;
    if (c.has_residual && !prn_rewrite_scales_fit(r, c.residual.scale, PRN_NO_VALUE, stored.scale)) return PRONY_OK;
    PRN_TRY(quantize_contraction_bias_of(r, &c, stored.scale, &bias, &done));
    if (!done) return PRONY_OK;
    if (prn_node_is(c.node, "Conv") || prn_node_is(c.node, "ConvTranspose")) return become_conv(r, &c, &stored, bias);
    const bool stack = r->program->values[c.node->inputs[0]]->info.shape.rank > 2;
    return !stack || c.has_bias || stored.bounded ? become_gemm(r, &c, &stored, bias) : become_matmul(r, &c, &stored);
}
