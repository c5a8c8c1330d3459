/* Scale and bias of a normalisation over the last axes of X: they broadcast to X, and mostly are just the vectors of
 * one row. */
#ifndef PRN_OPS_KERNELS_VECTOR_AFFINE_H
#define PRN_OPS_KERNELS_VECTOR_AFFINE_H

#include "ops/kernels/vector/number.h"
#include "ops/op.h"

typedef struct prn_affine {
    const prony_value *value; /* NULL: left out */
    const prony_shape *shape; /* of X */
    int64_t length;           /* of a row */
    bool vector;              /* element i of a row meets entry i, whatever the row */
    int64_t stride[PRONY_MAX_RANK];
} prn_affine;

/* Input `input` for rows that start at axis `axis` of input 0. A list of as many entries as a row has counts as a
 * vector. */
static inline prony_status prn_affine_make(const prony_context *context, size_t input, int axis, prn_affine *out)
{
    const prony_shape *shape = &context->inputs[0]->shape;
    const prony_value *value = prn_input(context, input);
    prony_shape both;
    *out = (prn_affine){.value = value, .shape = shape, .length = prn_shape_count(shape, axis, shape->rank)};
    if (!value) return PRONY_OK;
    if (!prn_shape_broadcast(&both, &value->shape, shape) || !prn_shape_equal(&both, shape)) {
        out->vector = value->shape.rank == 1 && value->shape.dim[0] == out->length;
        if (out->vector) return PRONY_OK;
        char left[PRN_SHAPE_TEXT_BYTES], right[PRN_SHAPE_TEXT_BYTES];
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is %s, which does not broadcast to %s", input,
                          prn_value_text(value, left), prn_shape_text(shape, right));
    }
    prn_shape_broadcast_strides(&value->shape, shape, out->stride);
    out->vector = true;
    int64_t step = 1;
    for (int d = shape->rank - 1; d >= 0; d--) {
        if (shape->dim[d] > 1 && out->stride[d] != (d >= axis ? step : 0)) out->vector = false;
        if (d >= axis) step *= shape->dim[d];
    }
    return PRONY_OK;
}

/* The entry that element `element` of X meets. */
static inline double prn_affine_get(const prn_affine *affine, int64_t element)
{
    int64_t at = 0;
    if (affine->vector) {
        at = element % affine->length;
    } else {
        for (int d = affine->shape->rank - 1; d >= 0; d--) {
            at += element % affine->shape->dim[d] * affine->stride[d];
            element /= affine->shape->dim[d];
        }
    }
    return prn_get_f64(affine->value->data, affine->value->dtype, at);
}

#endif
