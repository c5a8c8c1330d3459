#include "profiler/accuracy/f64_tensor.h"

#include "base/integers.h"
#include "base/memory/alloc.h"
#include "base/shape.h"
#include "base/threads/cancel.h"
#include "ops/layout.h"
#include "ops/kernels/vector/number.h"

#include <string.h>

static _Thread_local uint64_t held_bytes, peak_bytes;

void prn_f64_tensor_begin(void)
{
    held_bytes = peak_bytes = 0;
}

uint64_t prn_f64_tensor_peak(void)
{
    return peak_bytes;
}

static void f64_tensor_hold(const prony_value *value)
{
    held_bytes += prn_value_bytes(value);
    if (held_bytes > peak_bytes) peak_bytes = held_bytes;
}

bool prn_f64_tensor_is_float(prony_dtype dtype)
{
    return dtype == PRONY_FLOAT32 || dtype == PRONY_FLOAT64 || dtype == PRONY_FLOAT16 || dtype == PRONY_BFLOAT16;
}

bool prn_f64_tensor_takes(const prony_value *value)
{
    return value->kind == PRONY_TENSOR && value->dtype != PRONY_STRING && value->dtype != PRONY_UNDEFINED &&
           prn_shape_known(&value->shape) && prn_value_bytes(value) != SIZE_MAX &&
           (value->data || prony_shape_numel(&value->shape) == 0);
}

/* Index of element (n, c, s) in another layout. */
static int64_t element_at(prn_layout layout, int64_t channels, int64_t spatial, int64_t n, int64_t c, int64_t s)
{
    const int64_t block = prn_layout_block(layout);
    if (!block) return (n * spatial + s) * channels + c; /* PRN_NHWC */
    const int64_t blocks = prn_ceil_div(channels, block);
    return ((n * blocks + c / block) * spatial + s) * block + c % block;
}

/* Elements of whole bytes; tensors in layouts have no others. */
static void copy_plain(void *to, const prony_value *from)
{
    const size_t width = prony_dtype_bytes(from->dtype, 1);
    const int64_t channels = from->shape.dim[1], spatial = prn_shape_count(&from->shape, 2, from->shape.rank);
    char *out = to;
    for (int64_t n = 0; n < from->shape.dim[0] && !prn_cancelled(); n++)
        for (int64_t c = 0; c < channels; c++)
            for (int64_t s = 0; s < spatial; s++, out += width)
                memcpy(out,
                       (const char *)from->data +
                           (size_t)element_at((prn_layout)from->layout, channels, spatial, n, c, s) * width,
                       width);
}

static prony_status take_bytes(prony_value *value, prony_error *error)
{
    const size_t bytes = prn_value_bytes(value);
    value->data = prn_alloc_aligned(64, bytes ? bytes : 1);
    if (!value->data) return prn_no_memory(error);
    return PRONY_OK;
}

/* Converts other floats to float64. `data` is plain. */
static prony_status f64_tensor_widen(prn_f64_tensor *out, const prony_value *value, const void *data,
                                     prony_error *error)
{
    out->value = (prony_value){.kind = PRONY_TENSOR, .dtype = PRONY_FLOAT64, .shape = value->shape};
    PRN_TRY(take_bytes(&out->value, error));
    f64_tensor_hold(&out->value);
    prn_convert(out->value.data, PRONY_FLOAT64, data, value->dtype, prony_shape_numel(&value->shape));
    return PRONY_OK;
}

prony_status prn_f64_tensor_read(prn_f64_tensor *out, const prony_value *value, bool borrow, prony_error *error)
{
    const bool plain = value->layout == PRN_PLAIN,
               wider = prn_f64_tensor_is_float(value->dtype) && value->dtype != PRONY_FLOAT64;
    prony_value copy = {.kind = PRONY_TENSOR, .dtype = value->dtype, .shape = value->shape, .data = value->data};
    *out = (prn_f64_tensor){.model = value->dtype};
    if (plain && wider) return f64_tensor_widen(out, value, value->data, error);
    if (plain && borrow) {
        out->value = copy;
        out->borrowed = true;
        return PRONY_OK;
    }
    PRN_TRY(take_bytes(&copy, error));
    if (plain)
        prn_cancellable_copy(copy.data, value->data, prn_value_bytes(&copy));
    else
        copy_plain(copy.data, value);
    return prn_f64_tensor_take(out, &copy, error);
}

prony_status prn_f64_tensor_take(prn_f64_tensor *out, prony_value *made, prony_error *error)
{
    *out = (prn_f64_tensor){.model = made->dtype, .value = *made};
    out->value.layout = PRN_PLAIN;
    if (!prn_f64_tensor_is_float(made->dtype) || made->dtype == PRONY_FLOAT64) {
        f64_tensor_hold(&out->value);
        made->data = NULL;
        return PRONY_OK;
    }
    prony_status status = f64_tensor_widen(out, made, made->data, error);
    prn_free_aligned(made->data);
    made->data = NULL;
    return status;
}

prony_status prn_f64_tensor_narrow(prony_value *out, bool *owned, const prn_f64_tensor *wide, prony_dtype dtype,
                                   prony_error *error)
{
    *out = wide->value;
    *owned = wide->value.dtype == PRONY_FLOAT64 && dtype != PRONY_FLOAT64 && prn_f64_tensor_is_float(dtype);
    if (!*owned) return PRONY_OK;
    out->dtype = dtype;
    PRN_TRY(take_bytes(out, error));
    prn_convert(out->data, dtype, wide->value.data, PRONY_FLOAT64, prony_shape_numel(&out->shape));
    return PRONY_OK;
}

void prn_f64_tensor_drop(prn_f64_tensor *wide)
{
    if (wide->value.data && !wide->borrowed) {
        held_bytes -= prn_value_bytes(&wide->value);
        prn_free_aligned(wide->value.data);
    }
    *wide = (prn_f64_tensor){.model = PRONY_UNDEFINED};
}
