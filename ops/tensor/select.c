/* Small selectors: NonZero, OneHot, Trilu.
 * Invariant: positions are visited in row-major order. */
#include "base/threads/cancel.h"
#include "ops/kernels/copy/copy_nd.h"
#include "ops/kernels/vector/number.h"

#include <math.h>
#include <string.h>

/* ---- NonZero */

static bool is_nonzero(const prony_value *value, int64_t i)
{
    switch (prn_copy_width(value->dtype)) {
    case 1:
        return ((const uint8_t *)value->data)[i] != 0;
    case 4:
        if (value->dtype == PRONY_FLOAT32) return ((const float *)value->data)[i] != 0.0f;
        return ((const uint32_t *)value->data)[i] != 0;
    default:
        return prn_get_f64(value->data, value->dtype, i) != 0.0;
    }
}

/* The bits of `width` bytes that tell a type's elements from 0, a sign of zero left out. 0: not
 * by bits. */
static uint64_t telling_bits(prony_dtype dtype)
{
    switch (dtype) {
    case PRONY_BOOL:
    case PRONY_UINT8:
    case PRONY_INT8:
        return UINT8_MAX;
    case PRONY_UINT16:
    case PRONY_INT16:
        return UINT16_MAX;
    case PRONY_FLOAT16:
    case PRONY_BFLOAT16:
        return INT16_MAX;
    case PRONY_UINT32:
    case PRONY_INT32:
        return UINT32_MAX;
    case PRONY_FLOAT32:
        return INT32_MAX;
    case PRONY_UINT64:
    case PRONY_INT64:
        return UINT64_MAX;
    case PRONY_FLOAT64:
        return INT64_MAX;
    default:
        return 0;
    }
}

/* One bit for each byte of a word that is not 0. */
static uint64_t nonzero_bytes(uint64_t word)
{
    const uint64_t low = UINT64_C(0x7f7f7f7f7f7f7f7f);
    return (((word & low) + low) | word) & ~low;
}

#define FIRST_BYTE(word)                                                                                               \
    (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? __builtin_ctzll(word) / 8 : __builtin_clzll(word) / 8)
#define WITHOUT_FIRST_BYTE(word)                                                                                       \
    (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? (word) & ((word) - 1)                                                 \
                                               : (word) & ~(UINT64_C(0x8000000000000000) >> __builtin_clzll(word)))

/* Positions in [0, n) of what is not 0, at most `room` of them, which is how many there are. The other cases write
 * every position where the next one belongs, which spares a branch that nothing foretells. */
static int64_t find_bytes(const uint8_t *x, int64_t n, int64_t *out, int64_t room)
{
    int64_t at = 0, i = 0;
    for (; i + 8 <= n && at < room && !prn_cancelled_at(i / 8); i += 8) {
        uint64_t word;
        memcpy(&word, x + i, sizeof word);
        for (word = nonzero_bytes(word); word && at < room; word = WITHOUT_FIRST_BYTE(word))
            out[at++] = i + FIRST_BYTE(word);
    }
    for (; i < n && at < room && i + 8 > n; i++) {
        if (x[i]) out[at++] = i;
    }
    return at;
}

#define FIND(type)                                                                                                     \
    static int64_t find_##type(const type *x, int64_t n, type bits, int64_t *out, int64_t room)                        \
    {                                                                                                                  \
        int64_t at = 0;                                                                                                \
        for (int64_t i = 0; i < n && at < room && !prn_cancelled_at(i); i++) {                                         \
            out[at] = i;                                                                                               \
            at += (x[i] & bits) != 0;                                                                                  \
        }                                                                                                              \
        return at;                                                                                                     \
    }
#define COUNT(type)                                                                                                    \
    static int64_t count_##type(const type *x, int64_t n, type bits)                                                   \
    {                                                                                                                  \
        int64_t found = 0;                                                                                             \
        for (int64_t from = 0; from < n && !prn_cancelled(); from += COUNT_RUN) {                                      \
            const int64_t end = n - from < COUNT_RUN ? n : from + COUNT_RUN;                                           \
            int32_t part = 0;                                                                                          \
            for (int64_t i = from; i < end; i++) part += (x[i] & bits) != 0;                                           \
            found += part;                                                                                             \
        }                                                                                                              \
        return found;                                                                                                  \
    }
enum { COUNT_RUN = 1 << 16 };
FIND(uint16_t)
FIND(uint32_t)
FIND(uint64_t)
COUNT(uint8_t)
COUNT(uint16_t)
COUNT(uint32_t)
COUNT(uint64_t)

static int64_t find_nonzero(const prony_value *in, int64_t from, int64_t n, int64_t *out, int64_t room)
{
    const size_t width = prn_copy_width(in->dtype);
    const uint64_t bits = telling_bits(in->dtype);
    const void *x = (const char *)in->data + (size_t)from * width;
    return width == 1   ? find_bytes(x, n, out, room)
           : width == 2 ? find_uint16_t(x, n, (uint16_t)bits, out, room)
           : width == 4 ? find_uint32_t(x, n, (uint32_t)bits, out, room)
                        : find_uint64_t(x, n, bits, out, room);
}

static int64_t count_nonzero(const prony_value *in, int64_t n)
{
    const uint64_t bits = telling_bits(in->dtype);
    int64_t found = 0;
    switch (bits ? prn_copy_width(in->dtype) : 0) {
    case 1:
        return count_uint8_t(in->data, n, (uint8_t)bits);
    case 2:
        return count_uint16_t(in->data, n, (uint16_t)bits);
    case 4:
        return count_uint32_t(in->data, n, (uint32_t)bits);
    case 8:
        return count_uint64_t(in->data, n, bits);
    default:
        for (int64_t i = 0; i < n && !prn_cancelled_at(i); i++) found += is_nonzero(in, i);
        return found;
    }
}

static prony_status nonzero_infer(const prony_context *context)
{
    const prony_value *in = context->inputs[0];
    int64_t count = prony_shape_numel(&in->shape);
    PRN_TRY(prn_check_type(context, 0, PRN_TYPES_NUMBER_BOOL));
    /* A scalar has one coordinate, as NumPy sees it. */
    prony_shape shape = {2, {in->shape.rank ? in->shape.rank : 1}};
    if (in->data || count == 0) {
        shape.dim[1] = count ? count_nonzero(in, count) : 0;
    } else {
        shape.rank = -1;
    }
    prn_set_output(context, 0, PRONY_INT64, &shape);
    return PRONY_OK;
}

static void fill_coordinate(int64_t *out, int64_t n, int64_t coordinate)
{
    for (int64_t i = 0; i < n && !prn_cancelled_at(i); i++) out[i] = coordinate;
}

/* Row by row of the last axis: the other coordinates are the same for all of it. */
static prony_status nonzero_run_native(const prony_context *context)
{
    const prony_value *in = context->inputs[0];
    int64_t *out = context->outputs[0]->data, found = context->outputs[0]->shape.dim[1];
    const int rank = in->shape.rank;
    if (rank < 2) {
        find_nonzero(in, 0, rank ? in->shape.dim[0] : 1, out, found);
        return PRONY_OK;
    }
    const int64_t length = in->shape.dim[rank - 1], rows = prn_shape_count(&in->shape, 0, rank - 1);
    for (int64_t row = 0, at = 0; row < rows && at < found && !prn_cancelled_at(row); row++) {
        const int64_t n = find_nonzero(in, row * length, length, out + (rank - 1) * found + at, found - at);
        int64_t rest = row;
        for (int axis = rank - 2; axis >= 0 && n; axis--) {
            fill_coordinate(out + axis * found + at, n, rest % in->shape.dim[axis]);
            rest /= in->shape.dim[axis];
        }
        at += n;
    }
    return PRONY_OK;
}

static bool nonzero_supported(const prony_context *context)
{
    return telling_bits(context->inputs[0]->dtype) != 0;
}

static prony_status nonzero_run(const prony_context *context)
{
    const prony_value *in = context->inputs[0];
    int64_t *out = context->outputs[0]->data, found = context->outputs[0]->shape.dim[1];
    int64_t count = prony_shape_numel(&in->shape);
    for (int64_t i = 0, at = 0; i < count && at < found && !prn_cancelled_at(i); i++) {
        if (!is_nonzero(in, i)) continue;
        int64_t rest = i;
        if (in->shape.rank == 0) out[at] = 0;
        for (int axis = in->shape.rank - 1; axis >= 0; axis--) {
            out[axis * found + at] = rest % in->shape.dim[axis];
            rest /= in->shape.dim[axis];
        }
        at++;
    }
    return PRONY_OK;
}

// clang-format off
static const prn_kernel nonzero_kernels[] = {
    {.name = "nonzero_native", .backend = "native", .types = PRN_TYPES_NUMBER_BOOL, .supported = nonzero_supported,
     .run = nonzero_run_native},
    {.name = "nonzero_reference", .backend = "reference", .types = PRN_TYPES_NUMBER_BOOL, .run = nonzero_run}, {0}};
// clang-format on

/* ---- OneHot */

typedef struct one_hot_params {
    int64_t axis;
} one_hot_params;

static const prn_param one_hot_attributes[] = {PRN_INT(one_hot_params, axis, -1), {0}};

/* A number of any type, cut off to an integer. */
static int64_t select_op_whole_number(const prony_value *value, int64_t i)
{
    if (prn_dtype_is_integer(value->dtype)) return prn_get_i64(value->data, value->dtype, i);
    return prn_f64_to_i64(prn_get_f64(value->data, value->dtype, i));
}

/* The indices' shape with an axis of `depth` put in; unknown while depth has no data. */
static prony_status one_hot_infer(const prony_context *context)
{
    const prony_value *indices = context->inputs[0], *depth = context->inputs[1], *values = context->inputs[2];
    int64_t axis = ((const one_hot_params *)context->params)->axis;
    int rank = indices->shape.rank + 1;
    prony_shape shape = {.rank = rank};
    PRN_TRY(prn_check_type(context, 0, PRN_TYPES_NUMBER));
    PRN_TRY(prn_check_type(context, 1, PRN_TYPES_NUMBER));
    if (!prn_copy_width(values->dtype) || prony_shape_numel(&values->shape) != 2) {
        char text[PRN_SHAPE_TEXT_BYTES];
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "values are %s, wanted two", prn_value_text(values, text));
    }
    if (prony_shape_numel(&depth->shape) != 1)
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "depth is not a scalar");
    if (rank > PRONY_MAX_RANK) return prony_fail(context, PRONY_LIMIT, "rank %d is too large", rank);
    if (!prn_axis_normalize(&axis, rank)) {
        return prony_fail(context, PRONY_OUT_OF_RANGE, "axis %lld is outside of rank %d", (long long)axis, rank);
    }
    if (!depth->data) {
        shape = prn_shape_unknown();
    } else {
        for (int i = 0; i < rank; i++) {
            shape.dim[i] = i == axis ? select_op_whole_number(depth, 0) : indices->shape.dim[i < axis ? i : i - 1];
        }
        if (prony_shape_numel(&shape) < 0) {
            return prony_fail(context, PRONY_OUT_OF_RANGE, "depth is %lld", (long long)shape.dim[axis]);
        }
    }
    prn_set_output(context, 0, values->dtype, &shape);
    return PRONY_OK;
}

static prony_status one_hot_run(const prony_context *context)
{
    const prony_value *indices = context->inputs[0], *values = context->inputs[2];
    prony_value *out = context->outputs[0];
    int64_t axis = ((const one_hot_params *)context->params)->axis;
    if (axis < 0) axis += out->shape.rank;
    int64_t depth = out->shape.dim[axis], inner = prn_shape_count(&out->shape, (int)axis + 1, out->shape.rank);
    size_t width = prn_copy_width(values->dtype);
    prn_copy copy = {0};
    prn_copy_axis(&copy, prony_shape_numel(&out->shape), 0, 1);
    prn_copy_native(context->threads, width, &copy, values->data, out->data);
    int64_t count = prony_shape_numel(&indices->shape);
    for (int64_t i = 0; i < count && !prn_cancelled_at(i); i++) {
        int64_t index = select_op_whole_number(indices, i);
        if (index < -depth || index >= depth) continue; /* all off */
        if (index < 0) index += depth;
        int64_t at = (i / inner * depth + index) * inner + i % inner;
        memcpy((char *)out->data + (size_t)at * width, (const char *)values->data + width, width);
    }
    return PRONY_OK;
}

static const prn_kernel one_hot_kernels[] = {{.name = "one_hot_reference", .backend = "reference", .run = one_hot_run},
                                             {0}};

/* ---- Trilu */

typedef struct trilu_params {
    int64_t upper;
} trilu_params;

static const prn_param trilu_attributes[] = {PRN_INT(trilu_params, upper, 1), {0}};

static prony_status trilu_infer(const prony_context *context)
{
    const prony_value *k = prn_input(context, 1);
    PRN_TRY(prn_check_movable(context, 0));
    PRN_TRY(prn_check_rank(context, 0, 2, PRONY_MAX_RANK));
    PRN_TRY(prn_check_type(context, 1, PRN_TYPE(PRONY_INT64)));
    if (k && prony_shape_numel(&k->shape) != 1) return prony_fail(context, PRONY_SHAPE_MISMATCH, "k is not a scalar");
    return prn_infer_same(context);
}

static prony_status trilu_run(const prony_context *context)
{
    const prony_value *in = context->inputs[0], *shift = prn_input(context, 1);
    prony_value *out = context->outputs[0];
    bool upper = ((const trilu_params *)context->params)->upper != 0;
    int rank = in->shape.rank;
    int64_t rows = in->shape.dim[rank - 2], columns = in->shape.dim[rank - 1];
    int64_t k = shift ? *(const int64_t *)shift->data : 0;
    k = k < -rows ? -rows : (k > columns ? columns : k);
    size_t width = prn_copy_width(in->dtype);
    int64_t all_rows = prn_shape_count(&in->shape, 0, rank - 1);
    for (int64_t r = 0; r < all_rows && !prn_cancelled(); r++) {
        const char *from = (const char *)in->data + (size_t)(r * columns) * width;
        char *to = (char *)out->data + (size_t)(r * columns) * width;
        /* The first column that belongs to the upper part, or the first that no longer does to the lower one. */
        int64_t cut = r % rows + k + (upper ? 0 : 1);
        cut = cut < 0 ? 0 : (cut > columns ? columns : cut);
        size_t left = (size_t)cut * width, right = (size_t)(columns - cut) * width;
        if (from != to) prn_cancellable_copy(upper ? to + left : to, upper ? from + left : from, upper ? right : left);
        prn_cancellable_clear(upper ? to : to + left, upper ? left : right);
    }
    return PRONY_OK;
}

static const prn_kernel trilu_kernels[] = {
    {.name = "trilu_reference", .backend = "reference", .run = trilu_run, .inplace = 1}, {0}};

// clang-format off
const prn_op prn_ops_select[] = {
    {.name = "NonZero", .since_opset = 9, .inputs = {1, 1}, .flags = PRN_OP_DATA_SHAPE,
     .infer = nonzero_infer, .cost = prn_cost_none, .cost_text = "0", .kernels = nonzero_kernels},
    {.name = "OneHot", .since_opset = 9, .inputs = {3, 3}, .non_weight_inputs = 6,
     .params = one_hot_attributes, .params_bytes = sizeof(one_hot_params),
     .infer = one_hot_infer, .cost = prn_cost_none, .cost_text = "0", .kernels = one_hot_kernels},
    {.name = "Trilu", .since_opset = 14, .inputs = {1, 2}, .non_weight_inputs = 2,
     .params = trilu_attributes, .params_bytes = sizeof(trilu_params),
     .infer = trilu_infer, .cost = prn_cost_none, .cost_text = "0", .kernels = trilu_kernels},
    {0}};
// clang-format on
