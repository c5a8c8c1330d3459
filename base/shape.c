/* Shapes and element types. A dim below zero is unknown; every product is checked. */
#include "base/shape.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { FLOATING = 1, INTEGER = 2 };

static const struct {
    const char *name;
    uint8_t bits;
    uint8_t family;
} dtypes[PRONY_DTYPE_COUNT] = {
    [PRONY_UNDEFINED] = {"undefined", 0, 0},
    [PRONY_FLOAT32] = {"float32", 32, FLOATING},
    [PRONY_UINT8] = {"uint8", 8, INTEGER},
    [PRONY_INT8] = {"int8", 8, INTEGER},
    [PRONY_UINT16] = {"uint16", 16, INTEGER},
    [PRONY_INT16] = {"int16", 16, INTEGER},
    [PRONY_INT32] = {"int32", 32, INTEGER},
    [PRONY_INT64] = {"int64", 64, INTEGER},
    [PRONY_STRING] = {"string", 0, 0},
    [PRONY_BOOL] = {"bool", 8, 0},
    [PRONY_FLOAT16] = {"float16", 16, FLOATING},
    [PRONY_FLOAT64] = {"float64", 64, FLOATING},
    [PRONY_UINT32] = {"uint32", 32, INTEGER},
    [PRONY_UINT64] = {"uint64", 64, INTEGER},
    [PRONY_COMPLEX64] = {"complex64", 64, FLOATING},
    [PRONY_COMPLEX128] = {"complex128", 128, FLOATING},
    [PRONY_BFLOAT16] = {"bfloat16", 16, FLOATING},
    [PRONY_FLOAT8E4M3FN] = {"float8_e4m3fn", 8, FLOATING},
    [PRONY_FLOAT8E4M3FNUZ] = {"float8_e4m3fnuz", 8, FLOATING},
    [PRONY_FLOAT8E5M2] = {"float8_e5m2", 8, FLOATING},
    [PRONY_FLOAT8E5M2FNUZ] = {"float8_e5m2fnuz", 8, FLOATING},
    [PRONY_UINT4] = {"uint4", 4, INTEGER},
    [PRONY_INT4] = {"int4", 4, INTEGER},
    [PRONY_FLOAT4E2M1] = {"float4_e2m1fn", 4, FLOATING},
    [PRONY_FLOAT8E8M0] = {"float8_e8m0fnu", 8, FLOATING},
    [PRONY_UINT2] = {"uint2", 2, INTEGER},
    [PRONY_INT2] = {"int2", 2, INTEGER},
};

static bool dtype_known(prony_dtype dtype)
{
    return (unsigned)dtype < PRONY_DTYPE_COUNT;
}

const char *prony_dtype_name(prony_dtype dtype)
{
    return dtype_known(dtype) ? dtypes[dtype].name : "unknown";
}

bool prn_dtype_is_float(prony_dtype dtype)
{
    return dtype_known(dtype) && dtypes[dtype].family == FLOATING;
}

bool prn_dtype_is_integer(prony_dtype dtype)
{
    return dtype_known(dtype) && dtypes[dtype].family == INTEGER;
}

static bool is_dtype(prony_dtype dtype)
{
    return (int)dtype >= PRONY_UNDEFINED && dtype < PRONY_DTYPE_COUNT;
}

size_t prn_dtype_bits(prony_dtype dtype)
{
    return dtype_known(dtype) ? dtypes[dtype].bits : 0;
}

size_t prony_dtype_bytes(prony_dtype dtype, int64_t count)
{
    size_t bits = dtype == PRONY_STRING ? 8 * sizeof(prony_string) : prn_dtype_bits(dtype);
    if (count < 0 || bits == 0) return SIZE_MAX;
    if (bits < 8) return (size_t)count / (8 / bits) + ((size_t)count % (8 / bits) != 0);
    size_t bytes;
    return __builtin_mul_overflow((size_t)count, bits / 8, &bytes) ? SIZE_MAX : bytes;
}

int64_t prn_shape_count(const prony_shape *shape, int begin, int end)
{
    if (shape->rank < 0 || end > PRONY_MAX_RANK) return -1;
    int64_t count = 1;
    bool empty = false, overflow = false;
    for (int d = begin; d < end; d++) {
        if (shape->dim[d] < 0) return -1;
        if (shape->dim[d] == 0)
            empty = true;
        else if (__builtin_mul_overflow(count, shape->dim[d], &count))
            overflow = true;
    }
    if (overflow) return -1;
    return empty ? 0 : count;
}

int64_t prony_shape_numel(const prony_shape *shape)
{
    return shape ? prn_shape_count(shape, 0, shape->rank) : -1;
}

size_t prn_value_bytes(const prony_value *value)
{
    return prony_dtype_bytes(value->dtype, prony_shape_numel(&value->shape));
}

bool prn_shape_valid(const prony_shape *shape)
{
    if (shape->rank < -1 || shape->rank > PRONY_MAX_RANK) return false;
    for (int d = 0; d < shape->rank; d++)
        if (shape->dim[d] < -1) return false;
    return true;
}

enum { MOST_NESTED = 64 }; /* as types in model files */

static bool valid_inside(const prony_value *value, int depth)
{
    if ((int)value->kind < PRONY_TENSOR || value->kind > PRONY_OPTIONAL || !is_dtype(value->dtype)) return false;
    if (value->kind == PRONY_TENSOR) return prn_shape_valid(&value->shape);
    if (depth >= MOST_NESTED || (value->count > 0 && !value->items)) return false;
    for (size_t i = 0; i < value->count; i++)
        if (!valid_inside(&value->items[i], depth + 1)) return false;
    return true;
}

bool prn_value_valid(const prony_value *value)
{
    return valid_inside(value, 0);
}

bool prn_shape_known(const prony_shape *shape)
{
    if (shape->rank < 0) return false;
    for (int d = 0; d < shape->rank; d++) {
        if (shape->dim[d] < 0) return false;
    }
    return true;
}

bool prn_shape_equal(const prony_shape *a, const prony_shape *b)
{
    if (a->rank != b->rank) return false;
    return a->rank <= 0 || memcmp(a->dim, b->dim, (size_t)a->rank * sizeof a->dim[0]) == 0;
}

prony_shape prn_shape_make(int rank, const int64_t *dims)
{
    prony_shape shape = {.rank = rank};
    for (int d = 0; d < rank; d++) shape.dim[d] = dims[d];
    return shape;
}

prony_shape prn_shape_scalar(void)
{
    return (prony_shape){.rank = 0};
}

prony_shape prn_shape_unknown(void)
{
    return (prony_shape){.rank = -1};
}

/* -1: an extent not known yet, which fits any other. -2: the extents do not fit. */
static int64_t broadcast_dim(int64_t a, int64_t b)
{
    if (a == b || b == 1) return a;
    if (a == 1 || a < 0) return b;
    return b < 0 ? a : -2;
}

bool prn_shape_broadcast(prony_shape *out, const prony_shape *a, const prony_shape *b)
{
    if (a->rank < 0 || b->rank < 0) {
        *out = prn_shape_unknown();
        return true;
    }
    if (prn_shape_equal(a, b)) {
        *out = *a;
        return true;
    }
    prony_shape result = {.rank = a->rank > b->rank ? a->rank : b->rank};
    for (int d = 0; d < result.rank; d++) {
        int da = d - (result.rank - a->rank), db = d - (result.rank - b->rank);
        result.dim[d] = broadcast_dim(da < 0 ? 1 : a->dim[da], db < 0 ? 1 : b->dim[db]);
        if (result.dim[d] == -2) return false;
    }
    *out = result;
    return true;
}

void prn_shape_strides(const prony_shape *shape, int64_t *stride)
{
    int64_t step = 1;
    for (int d = shape->rank - 1; d >= 0; d--) {
        stride[d] = step;
        if (__builtin_mul_overflow(step, shape->dim[d], &step)) step = 0; /* only with an empty dim further out */
    }
}

void prn_shape_broadcast_strides(const prony_shape *in, const prony_shape *out, int64_t *stride)
{
    int64_t own[PRONY_MAX_RANK] = {0};
    prn_shape_strides(in, own);
    int shift = out->rank - in->rank;
    for (int d = 0; d < out->rank; d++) {
        bool moves = d >= shift && in->dim[d - shift] == out->dim[d];
        stride[d] = moves ? own[d - shift] : 0;
    }
}

bool prn_axis_normalize(int64_t *axis, int rank)
{
    if (*axis < -(int64_t)rank || *axis >= rank) return false;
    if (*axis < 0) *axis += rank;
    return true;
}

const char *prn_shape_text(const prony_shape *shape, char buffer[PRN_SHAPE_TEXT_BYTES])
{
    if (shape->rank < 0) {
        memcpy(buffer, "[...]", 6);
        return buffer;
    }
    size_t used = 0;
    buffer[used++] = '[';
    for (int d = 0; d < shape->rank && d < PRONY_MAX_RANK; d++) {
        const char *separator = d ? ", " : "";
        size_t room = PRN_SHAPE_TEXT_BYTES - used;
        int length = shape->dim[d] < 0 ? snprintf(buffer + used, room, "%s?", separator)
                                       : snprintf(buffer + used, room, "%s%" PRId64, separator, shape->dim[d]);
        used += (size_t)length; /* 16 dims of at most 21 characters always fit */
    }
    memcpy(buffer + used, "]", 2);
    return buffer;
}

const char *prn_value_text(const prony_value *value, char buffer[PRN_SHAPE_TEXT_BYTES])
{
    if (value->kind != PRONY_TENSOR) {
        snprintf(buffer, PRN_SHAPE_TEXT_BYTES, "%s(%s)", value->kind == PRONY_SEQUENCE ? "sequence" : "optional",
                 prony_dtype_name(value->dtype));
        return buffer;
    }
    char shape[PRN_SHAPE_TEXT_BYTES];
    prn_shape_text(&value->shape, shape);
    const char *type = prony_dtype_name(value->dtype);
    size_t type_size = strlen(type), shape_size = strnlen(shape, PRN_SHAPE_TEXT_BYTES - 1 - type_size);
    memcpy(buffer, type, type_size);
    memcpy(buffer + type_size, shape, shape_size);
    buffer[type_size + shape_size] = '\0';
    return buffer;
}

bool prn_mul_u64(uint64_t *out, uint64_t a, uint64_t b)
{
    return !__builtin_mul_overflow(a, b, out);
}

bool prn_add_u64(uint64_t *out, uint64_t a, uint64_t b)
{
    return !__builtin_add_overflow(a, b, out);
}
