/* Arithmetic on memory layouts: names, sizes, and when two layouts are the same bytes.
 * Invariant: a shape of rank below 2 has no channel axis, so every layout of it counts as plain. */
#include "ops/layout.h"

#include "base/cpu/isa.h"
#include "base/shape.h"

const char *prn_layout_name(prn_layout layout)
{
    switch (layout) {
    case PRN_PLAIN:
        return "plain";
    case PRN_NHWC:
        return "nhwc";
    case PRN_BLOCKED4:
        return "blocked4";
    case PRN_BLOCKED8:
        return "blocked8";
    case PRN_BLOCKED16:
        return "blocked16";
    }
    return "unknown";
}

prn_layout prn_layout_blocked(void)
{
#if defined(__x86_64__)
    return prn_isa_has(PRN_HAS_AVX512) ? PRN_BLOCKED16 : PRN_BLOCKED8;
#else
    return PRN_BLOCKED4;
#endif
}

int64_t prn_layout_elements(const prony_shape *shape, prn_layout layout)
{
    int64_t block = prn_layout_block(layout);
    if (block == 0 || shape->rank < 2) return prony_shape_numel(shape);
    prony_shape stored = *shape;
    if (stored.dim[1] > INT64_MAX - block) return -1;
    if (stored.dim[1] > 0) stored.dim[1] = (stored.dim[1] + block - 1) / block * block;
    return prony_shape_numel(&stored);
}

size_t prn_layout_bytes(const prony_value *value)
{
    int64_t count = prn_layout_elements(&value->shape, (prn_layout)value->layout);
    return count < 0 ? SIZE_MAX : prony_dtype_bytes(value->dtype, count);
}

bool prn_layout_same_bytes(const prony_shape *shape, prn_layout a, prn_layout b)
{
    if (a == b || shape->rank < 2 || prony_shape_numel(shape) == 0) return true;
    int64_t channels = shape->dim[1];
    int64_t spatial = prn_shape_count(shape, 2, shape->rank);
    if (channels < 0 || spatial < 0) return false;
    int64_t block_a = prn_layout_block(a), block_b = prn_layout_block(b);
    if ((block_a && channels % block_a) || (block_b && channels % block_b)) return false;
    if (spatial == 1) return true;
    if (!block_a && !block_b) return channels == 1;
    /* One full block per image is channels-last. */
    return (a == PRN_NHWC && channels == block_b) || (b == PRN_NHWC && channels == block_a);
}

prony_shape prn_lowbit_shape(const prony_shape *shape, prn_layout layout)
{
    prony_shape stored = *shape;
    int64_t block = prn_layout_block(layout);
    if (shape->rank < 2) return stored;
    if (layout == PRN_NHWC) {
        for (int i = 2; i < shape->rank; i++) stored.dim[i - 1] = shape->dim[i];
        stored.dim[shape->rank - 1] = shape->dim[1];
    } else if (block && shape->rank < PRONY_MAX_RANK) {
        stored.dim[1] = (shape->dim[1] + block - 1) / block;
        stored.dim[stored.rank++] = block;
    }
    return stored;
}

int prn_lowbit_axis(int rank, prn_layout layout, int axis)
{
    if (layout != PRN_NHWC || rank < 2 || axis == 0) return axis;
    return axis == 1 ? rank - 1 : axis - 1;
}

bool prn_layout_joins(int rank, prn_layout layout)
{
    return layout == PRN_PLAIN || (rank >= 2 && rank < PRONY_MAX_RANK);
}
