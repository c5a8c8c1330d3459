/* QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear in float64; the operators' own kernels use float32:
 *
 *   quantize     y = saturate(round(x / scale) + zero), half to even
 *   dequantize   y = (x - zero) scale
 *   dynamic      scale = (max(x, 0) - min(x, 0)) / 255, zero = round(-min / scale), then as quantize
 *
 * Scales are as the model stores them. */
#include "profiler/accuracy/reference.h"

#include "base/memory/alloc.h"
#include "base/shape.h"
#include "base/threads/cancel.h"
#include "ops/kernels/vector/number.h"
#include "ops/kernels/int8/quantized.h"

#include <math.h>
#include <string.h>

enum { X, SCALE, ZERO, FEW };

typedef struct limits {
    double low, high;
} limits;

static bool reference_quantized_limits_of(prony_dtype type, limits *out)
{
    switch (type) {
    case PRONY_INT8:
        *out = (limits){-128, 127};
        return true;
    case PRONY_UINT8:
        *out = (limits){0, 255};
        return true;
    case PRONY_INT16:
        *out = (limits){-32768, 32767};
        return true;
    case PRONY_UINT16:
        *out = (limits){0, 65535};
        return true;
    default:
        return false;
    }
}

static int64_t reference_quantized_attribute(const prn_node_def *node, const char *name, int64_t absent)
{
    const prn_attr *attr = prn_attr_find(node->info.attributes, name);
    return attr && attr->type == PRN_ATTR_INT ? attr->i : absent;
}

static void reference_quantized_quantize(const prn_quant *quant, const prony_value *x, prony_value *y, limits l)
{
    float scale, zero;
    const double *from = x->data;
    for (int64_t i = 0; i < prony_shape_numel(&x->shape) && !prn_cancelled_at(i); i++) {
        if (i == 0 || !quant->uniform) prn_quant_fill(quant, i, 1, &scale, &zero);
        double code = rint(from[i] / (double)scale) + (double)zero;
        code = code > l.low ? code : l.low; /* NaN: the lowest */
        prn_put_f64(y->data, y->dtype, i, code < l.high ? code : l.high);
    }
}

static void dequantize(const prn_quant *quant, const prony_value *x, prony_value *y)
{
    float scale, zero;
    double *to = y->data;
    const bool number = prn_dtype_is_number(x->dtype);
    for (int64_t i = 0; i < prony_shape_numel(&x->shape) && !prn_cancelled_at(i); i++) {
        if (i == 0 || !quant->uniform) prn_quant_fill(quant, i, 1, &scale, &zero);
        const double code = number ? prn_get_f64(x->data, x->dtype, i) : (double)prn_quant_get(x, i);
        to[i] = (code - (double)zero) * (double)scale;
    }
}

/* NaN is ignored. */
static prony_status dynamic(const prn_f64_tensor *x, const prn_node_def *node, prn_f64_tensor *outputs,
                            prony_error *error)
{
    const double *from = x->value.data;
    const int64_t n = prony_shape_numel(&x->value.shape);
    double low = 0, high = 0;
    for (int64_t i = 0; i < n; i++) {
        if (from[i] < low) low = from[i];
        if (from[i] > high) high = from[i];
    }
    const double scale = low == high ? 1 : (high - low) / 255, zero = fmin(fmax(rint(-low / scale), 0), 255);
    const prony_dtype types[] = {PRONY_UINT8, PRONY_FLOAT64, PRONY_UINT8};
    for (uint32_t k = 0; k < node->output_count && k < 3; k++) {
        prony_value made = {
            .kind = PRONY_TENSOR, .dtype = types[k], .shape = k == 0 ? x->value.shape : prn_shape_scalar()};
        if (node->outputs[k] == PRN_NO_VALUE) continue;
        made.data = prn_alloc_aligned(64, prn_value_bytes(&made) + 1);
        if (!made.data) return prn_no_memory(error);
        for (int64_t i = 0; k == 0 && i < n; i++) {
            const double code = rint(from[i] / scale) + zero;
            ((uint8_t *)made.data)[i] = (uint8_t)(code > 0 ? fmin(code, 255) : 0);
        }
        if (k > 0) prn_put_f64(made.data, types[k], 0, k == 1 ? scale : zero);
        PRN_TRY(prn_f64_tensor_take(&outputs[k], &made, error));
        if (k == 1) outputs[k].model = PRONY_FLOAT32;
        outputs[k].rounded = x->rounded;
    }
    return PRONY_OK;
}

/* Scales are narrowed to the model's type, in which they are exact; data stays in float64. */
prony_status prn_reference_codes(const prn_reference *r, const prn_node_def *node, const prn_f64_tensor *const *inputs,
                                 prn_f64_tensor *outputs, bool *done, prony_error *error)
{
    if (strcmp(node->info.op_type, "DynamicQuantizeLinear") == 0 && inputs[X] &&
        inputs[X]->value.dtype == PRONY_FLOAT64) {
        *done = true;
        return dynamic(inputs[X], node, outputs, error);
    }
    const bool to_codes = strcmp(node->info.op_type, "QuantizeLinear") == 0;
    if ((!to_codes && strcmp(node->info.op_type, "DequantizeLinear") != 0) || node->input_count < 2 || !inputs[X] ||
        !inputs[SCALE])
        return PRONY_OK;
    prony_value in[FEW] = {0}, made = {.kind = PRONY_TENSOR, .shape = inputs[X]->value.shape};
    const prony_value *pointers[FEW] = {NULL};
    prony_value *output = &made;
    bool owned[FEW] = {false};
    prony_status status = PRONY_OK;
    limits l = {0, 0};
    for (uint32_t i = 0; i < node->input_count && i < FEW && status == PRONY_OK; i++) {
        if (!inputs[i]) continue;
        in[i] = inputs[i]->value;
        pointers[i] = &in[i];
        /* the scale is read in a type that it is exact in */
        if (i == SCALE)
            status = prn_f64_tensor_narrow(&in[i], &owned[i], inputs[i],
                                           inputs[i]->model == PRONY_FLOAT64 ? PRONY_FLOAT32 : inputs[i]->model, error);
    }
    prn_quant quant;
    prony_error unused = {0};
    prony_context context = prn_reference_context(r, node, pointers, &output, &unused);
    context.input_count = node->input_count < FEW ? node->input_count : FEW;
    context.output_count = 1;
    bool fits = status == PRONY_OK &&
                prn_quant_read(&context, &in[X].shape, SCALE, ZERO, reference_quantized_attribute(node, "axis", 1),
                               reference_quantized_attribute(node, "block_size", 0), &quant) == PRONY_OK;
    if (fits && to_codes) {
        made.dtype = pointers[ZERO] ? in[ZERO].dtype : PRONY_UINT8;
        const int64_t named = reference_quantized_attribute(node, "output_dtype", 0);
        if (named) made.dtype = (prony_dtype)named;
        fits = in[X].dtype == PRONY_FLOAT64 && reference_quantized_limits_of(made.dtype, &l);
    } else if (fits) {
        made.dtype = PRONY_FLOAT64;
    }
    if (fits) {
        made.data = prn_alloc_aligned(64, prn_value_bytes(&made) + 1);
        if (!made.data) status = prn_no_memory(error);
    }
    if (fits && status == PRONY_OK) {
        if (to_codes)
            reference_quantized_quantize(&quant, &in[X], &made, l);
        else
            dequantize(&quant, &in[X], &made);
        status = prn_f64_tensor_take(&outputs[0], &made, error);
        if (!to_codes) outputs[0].model = inputs[SCALE]->model;
        outputs[0].rounded = inputs[X]->rounded || inputs[SCALE]->rounded;
        *done = status == PRONY_OK;
    }
    for (int i = 0; i < FEW; i++)
        if (owned[i]) prn_free_aligned(in[i].data);
    return status;
}
