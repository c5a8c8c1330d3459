/* prony_value_save_npy: tensors as .npy files that NumPy reads without further packages. */
#include "base/shape.h"
#include "loaders/onnx/owned_value.h"
#include "loaders/tensors/tensor_file.h"
#include "ops/kernels/lowbit/narrow_types.h"

/* The type of NumPy's that holds every element of a type that NumPy lacks. */
static prony_dtype wider_type(prony_dtype dtype)
{
    switch (dtype) {
    case PRONY_BFLOAT16:
    case PRONY_FLOAT8E4M3FN:
    case PRONY_FLOAT8E4M3FNUZ:
    case PRONY_FLOAT8E5M2:
    case PRONY_FLOAT8E5M2FNUZ:
    case PRONY_FLOAT4E2M1:
    case PRONY_FLOAT8E8M0:
        return PRONY_FLOAT32;
    case PRONY_INT4:
    case PRONY_INT2:
        return PRONY_INT8;
    case PRONY_UINT4:
    case PRONY_UINT2:
        return PRONY_UINT8;
    default:
        return dtype;
    }
}

prony_status prony_value_save_npy(const prony_value *value, const char *path, prony_error *error)
{
    if (!value || !path) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_value_save_npy: an argument is NULL");
    prony_dtype dtype = value->kind == PRONY_TENSOR ? wider_type(value->dtype) : value->dtype;
    int64_t count = prony_shape_numel(&value->shape);
    if (dtype == value->dtype || count < 0 || value->layout || (count && !value->data))
        return prn_value_file_save_npy(value, path, error);
    prony_value wide;
    PRN_TRY(prn_owned_tensor(&wide, dtype, &value->shape, 0, error));
    prn_cast(wide.data, dtype, 0, value->data, value->dtype, 0, count, &(prn_cast_rule){0});
    prony_status status = prn_value_file_save_npy(&wide, path, error);
    prn_value_free_parts(&wide);
    return status;
}
