#include "tests/support/op_case_layouts.h"

#include "base/shape.h"

#include <math.h>
#include <string.h>

static int64_t element_at(prn_layout layout, int64_t n, int64_t c, int64_t s, int64_t channels, int64_t spatial)
{
    int64_t block = prn_layout_block(layout);
    if (block) return ((n * ((channels + block - 1) / block) + c / block) * spatial + s) * block + c % block;
    return layout == PRN_NHWC ? (n * spatial + s) * channels + c : (n * channels + c) * spatial + s;
}

void op_case_convert(prony_value *to, const prony_value *from)
{
    size_t width = prony_dtype_bytes(from->dtype, 1);
    memset(to->data, 0, prn_layout_bytes(to));
    if (to->layout == from->layout) {
        memcpy(to->data, from->data, prn_layout_bytes(from));
        return;
    }
    int64_t channels = from->shape.dim[1], spatial = prn_shape_count(&from->shape, 2, from->shape.rank);
    for (int64_t n = 0; n < from->shape.dim[0]; n++) {
        for (int64_t c = 0; c < channels; c++) {
            for (int64_t s = 0; s < spatial; s++) {
                int64_t t = element_at((prn_layout)to->layout, n, c, s, channels, spatial);
                int64_t f = element_at((prn_layout)from->layout, n, c, s, channels, spatial);
                memcpy((char *)to->data + (size_t)t * width, (const char *)from->data + (size_t)f * width, width);
            }
        }
    }
}

bool op_case_padding_is_zero(const prony_value *value)
{
    int64_t block = prn_layout_block((prn_layout)value->layout);
    if (!block || value->shape.rank < 2) return true;
    size_t width = prony_dtype_bytes(value->dtype, 1);
    int64_t channels = value->shape.dim[1], spatial = prn_shape_count(&value->shape, 2, value->shape.rank);
    int64_t padded = (channels + block - 1) / block * block;
    for (int64_t n = 0; n < value->shape.dim[0]; n++) {
        for (int64_t c = channels; c < padded; c++) {
            for (int64_t s = 0; s < spatial; s++) {
                int64_t at = element_at((prn_layout)value->layout, n, c, s, channels, spatial);
                const char *bytes = (const char *)value->data + (size_t)at * width;
                for (size_t k = 0; k < width; k++) {
                    if (bytes[k]) return false;
                }
            }
        }
    }
    return true;
}

int64_t op_case_other_bits(const prony_value *a, const prony_value *b)
{
    const size_t width = prony_dtype_bytes(a->dtype, 1);
    const int64_t count = prony_shape_numel(&a->shape);
    if (memcmp(a->data, b->data, prn_value_bytes(a)) == 0) return -1;
    for (int64_t i = 0; i < count; i++) {
        const size_t at = (size_t)i * width;
        if (memcmp((const char *)a->data + at, (const char *)b->data + at, width) == 0) continue;
        if (a->dtype != PRONY_FLOAT32 || !isnan(((const float *)a->data)[i]) || !isnan(((const float *)b->data)[i]))
            return i;
    }
    return -1;
}
