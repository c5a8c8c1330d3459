/* See the header. A channel's scale is that of its largest weight, or larger where its bias would not fit 31 bits: a
 * channel of zeros has a bias too. */
#include "quantize/quantize_weights.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define LARGEST_CODE 127
/* Half of what int32 holds, so that the sum of products has the other half. */
#define LARGEST_BIAS 0x1p30

float prn_power_of_two(float scale)
{
    int exponent;
    const float part = frexpf(scale, &exponent);
    return ldexpf(1.0f, part == 0.5f ? exponent - 1 : exponent);
}

/* Constants may lie at any address. */
static double quantize_weights_element(const prn_quant_value *v, int64_t i)
{
    float x;
    memcpy(&x, (const char *)v->info.data + (size_t)i * sizeof x, sizeof x);
    return (double)x;
}

static const prn_quant_value *input_of(const prn_quant_plan *plan, const prn_model_node *node, size_t i)
{
    const size_t v = i < node->input_count ? prn_quant_value_find(plan, node->inputs[i]) : PRN_QUANT_NONE;
    return v == PRN_QUANT_NONE ? NULL : &plan->values[v];
}

/* The factor and the summand of a BatchNormalization behind the node for channel c. */
static void quantize_weights_norm_of(const prn_quant_plan *plan, size_t norm, int64_t c, double *times, double *plus)
{
    *times = 1;
    *plus = 0;
    if (norm == PRN_QUANT_NONE) return;
    const prn_model_node *node = &plan->graph->nodes[norm];
    const prn_attr *epsilon = prn_attr_find(&node->attributes, "epsilon");
    *times = quantize_weights_element(input_of(plan, node, 1), c) /
             sqrt(quantize_weights_element(input_of(plan, node, 4), c) + (epsilon ? (double)epsilon->f : 1e-5));
    *plus = quantize_weights_element(input_of(plan, node, 2), c) -
            quantize_weights_element(input_of(plan, node, 3), c) * *times;
}

/* Element e of channel c of weights [rows, channels, …] or [channels, …]. */
static int64_t quantize_weights_place(const prn_quant_node *q, const prony_shape *shape, int64_t c, int64_t e)
{
    const int64_t each = prony_shape_numel(shape) / q->channels;
    if (q->channel_axis == 0) return c * each + e;
    const int64_t inner = each / shape->dim[0];
    return (e / inner * q->channels + c) * inner + e % inner;
}

static void quantize_channel(prn_quant_weights *out, const prn_quant_node *q, const prn_quant_value *w, int64_t c,
                             double times, float input_scale, bool power_of_two)
{
    const int64_t each = prony_shape_numel(&w->info.shape) / q->channels;
    double largest = 0;
    for (int64_t e = 0; e < each; e++)
        largest =
            fmax(largest, fabs(quantize_weights_element(w, quantize_weights_place(q, &w->info.shape, c, e)) * times));
    double scale = largest / LARGEST_CODE;
    if (input_scale > 0) scale = fmax(scale, fabs(out->bias[c]) / ((double)input_scale * LARGEST_BIAS));
    if (scale < (double)FLT_MIN) scale = largest > 0 ? (double)FLT_MIN : 1;
    out->scales[c] = power_of_two ? prn_power_of_two((float)scale) : (float)scale;
    for (int64_t e = 0; e < each; e++) {
        const int64_t at = quantize_weights_place(q, &w->info.shape, c, e);
        const double code = rint(quantize_weights_element(w, at) * times / (double)out->scales[c]);
        out->codes[at] = (int8_t)fmin(fmax(code, -LARGEST_CODE), LARGEST_CODE);
    }
    if (!(input_scale > 0)) return;
    out->bias_scales[c] = (float)((double)input_scale * (double)out->scales[c]);
    out->bias_codes[c] =
        (int32_t)fmin(fmax(rint(out->bias[c] / (double)out->bias_scales[c]), -LARGEST_BIAS), LARGEST_BIAS);
}

static bool quantize_weights_all_finite(const prn_quant_weights *out, const prn_quant_node *q, const prn_quant_value *w,
                                        int64_t c, double times)
{
    double sum = out->bias[c] * 0;
    for (int64_t e = 0; e < prony_shape_numel(&w->info.shape) / q->channels; e++)
        sum += quantize_weights_element(w, quantize_weights_place(q, &w->info.shape, c, e)) * times * 0;
    return sum == 0 && isfinite((float)times);
}

/* A following norm is multiplied into the weights (times) and the bias (plus) before quantisation; a product's
 * following Add is its bias. Channels are independent, so each has a scale of its own. */
prony_status prn_quant_weights_make(prn_quant_weights *out, const prn_quant_plan *plan, size_t n, float input_scale,
                                    bool power_of_two, prn_bump *pool, prony_error *error)
{
    const prn_quant_node *q = &plan->nodes[n];
    const prn_model_node *node = &plan->graph->nodes[n];
    const bool is_product = q->kind == PRN_QUANT_MATMUL;
    const size_t norm = is_product ? PRN_QUANT_NONE : q->norm;
    const prn_quant_value *w = input_of(plan, node, 1), *bias = is_product ? NULL : input_of(plan, node, 2);
    if (is_product && q->norm != PRN_QUANT_NONE)
        bias = prn_quant_bias_of(plan, &plan->graph->nodes[q->norm], q->channels);
    const size_t channels = (size_t)q->channels;
    *out = (prn_quant_weights){.shape = w->info.shape, .has_bias = bias || norm != PRN_QUANT_NONE};
    out->codes = prn_bump_alloc(pool, (size_t)prony_shape_numel(&w->info.shape), 1);
    out->scales = prn_bump_alloc(pool, channels, sizeof *out->scales);
    out->bias = prn_bump_alloc(pool, channels, sizeof *out->bias);
    out->bias_codes = prn_bump_alloc(pool, channels, sizeof *out->bias_codes);
    out->bias_scales = prn_bump_alloc(pool, channels, sizeof *out->bias_scales);
    if (!out->codes || !out->scales || !out->bias || !out->bias_codes || !out->bias_scales) return prn_no_memory(error);
    for (int64_t c = 0; c < q->channels; c++) {
        double times, plus;
        quantize_weights_norm_of(plan, norm, c, &times, &plus);
        out->bias[c] = (bias ? quantize_weights_element(bias, c) : 0) * times + plus;
        if (!quantize_weights_all_finite(out, q, w, c, times))
            return prn_fail(error, PRONY_UNSUPPORTED,
                            "%.300s: node " PRN_NAME " (%.60s): a weight or bias of output channel %lld is not finite",
                            plan->model->file->name, node->name, node->op_type, (long long)c);
        quantize_channel(out, q, w, c, times, input_scale, power_of_two);
    }
    return PRONY_OK;
}
