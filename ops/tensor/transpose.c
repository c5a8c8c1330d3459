/* Permutations of elements that keep every element: Transpose, DepthToSpace, SpaceToDepth. Each describes its
 * permutation as one strided copy; the native and the reference kernel differ in who executes it. Invariant: the axes
 * of a copy multiply to the number of elements. */
#include "base/memory/alloc.h"
#include "ops/kernels/copy/copy_nd.h"
#include "ops/vendor/opencl/opencl_map.h"

#include <string.h>

/* An operator's variant: its permutation of a node's elements. */
typedef prn_copy (*permutation)(const prony_context *context);

static prony_status transpose_prepare(const prony_context *context, prn_prepared *out)
{
    const permutation *describe = prn_variant(context);
    const prn_copy copy = (*describe)(context);
    return prn_prepared_keep(context, &copy, sizeof copy, out);
}

static prony_status transpose_run_copy(const prony_context *context, prn_copy_fn execute)
{
    const prony_value *in = context->inputs[0];
    prony_value *out = context->outputs[0];
    const size_t width = prn_copy_width(in->dtype);
    if (width > 0) {
        execute(context->threads, width, context->state, in->data, out->data);
    } else {
        prn_copy_packed(in->dtype, context->state, in->data, out->data);
    }
    return PRONY_OK;
}

static prony_status transpose_run_native(const prony_context *context)
{
    return transpose_run_copy(context, prn_copy_native);
}

static prony_status transpose_run_reference(const prony_context *context)
{
    return transpose_run_copy(context, prn_copy_reference);
}

#ifdef PRN_HAVE_OPENCL
static prony_status transpose_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    const permutation *describe = prn_variant(context);
    const prn_opencl_move move = {.copy = (*describe)(context)};
    return prn_opencl_copy_prepare(context, out, &move, 1, NULL);
}
#endif

/* ---- Transpose */

typedef struct transpose_params {
    prn_ints perm;
} transpose_params;

static const prn_param transpose_attributes[] = {PRN_INTS(transpose_params, perm), {0}};

static int64_t permuted(const prony_context *context, int i)
{
    const transpose_params *params = context->params;
    return params->perm.present ? params->perm.v[i] : context->inputs[0]->shape.rank - 1 - i;
}

static prony_status transpose_infer(const prony_context *context)
{
    const transpose_params *params = context->params;
    const prony_value *in = context->inputs[0];
    prony_shape shape = {.rank = in->shape.rank};
    uint32_t seen = 0;
    PRN_TRY(prn_check_tensor(context, 0));
    if (params->perm.present && params->perm.count != (size_t)in->shape.rank) {
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "perm has %zu entries, but the input has rank %d",
                          params->perm.count, in->shape.rank);
    }
    for (int i = 0; i < in->shape.rank; i++) {
        int64_t axis = permuted(context, i);
        if (axis < 0 || axis >= in->shape.rank || (seen >> axis & 1)) {
            return prony_fail(context, PRONY_INVALID_MODEL, "perm[%d] = %lld does not form a permutation of rank %d", i,
                              (long long)axis, in->shape.rank);
        }
        seen |= UINT32_C(1) << axis;
        shape.dim[i] = in->shape.dim[axis];
    }
    prn_set_output(context, 0, in->dtype, &shape);
    return PRONY_OK;
}

/* True if the permutation brings the channels to the end, or from there. */
static bool channels_to_last(const prony_context *context)
{
    const int rank = context->inputs[0]->shape.rank;
    if (rank < 3 || permuted(context, 0) != 0 || permuted(context, rank - 1) != 1) return false;
    for (int i = 1; i < rank - 1; i++)
        if (permuted(context, i) != i + 1) return false;
    return true;
}

static bool channels_from_last(const prony_context *context)
{
    const int rank = context->inputs[0]->shape.rank;
    if (rank < 3 || permuted(context, 0) != 0 || permuted(context, 1) != rank - 1) return false;
    for (int i = 2; i < rank; i++)
        if (permuted(context, i) != i - 1) return false;
    return true;
}

/* A tensor of another layout with its channels brought to the end is a plain one, and the other way round: nothing
 * moves. */
static void transpose_layouts(const prony_context *context, prn_layout *in, prn_layout *out)
{
    const bool plain = context->inputs[0]->layout == PRN_PLAIN;
    const prony_dtype dtype = context->inputs[0]->dtype;
    if (dtype == PRONY_STRING || prn_copy_width(dtype) == 0) return; /* they have no layouts */
    if (!plain && channels_to_last(context)) in[0] = PRN_NHWC;
    if (plain && channels_from_last(context)) out[0] = PRN_NHWC;
}

static bool moves_nothing(const prony_context *context)
{
    return context->inputs[0]->layout != PRN_PLAIN || context->outputs[0]->layout != PRN_PLAIN;
}

static bool transpose_split_alias(const prony_context *context, size_t output, uint64_t *offset_bytes)
{
    (void)output;
    *offset_bytes = 0;
    return moves_nothing(context);
}

static prn_copy transpose_copy(const prony_context *context)
{
    const prony_shape *in = &context->inputs[0]->shape, *out = &context->outputs[0]->shape;
    int64_t from[PRONY_MAX_RANK], to[PRONY_MAX_RANK];
    prn_copy copy = {0};
    if (moves_nothing(context)) {
        prn_copy_axis(&copy, prony_shape_numel(out), 1, 1);
        return copy;
    }
    prn_shape_strides(in, from);
    prn_shape_strides(out, to);
    for (int i = 0; i < out->rank; i++) prn_copy_axis(&copy, out->dim[i], from[permuted(context, i)], to[i]);
    return copy;
}

// clang-format off
static const prn_kernel transpose_kernels[] = {
    PRN_OPENCL_ROW("transpose_opencl", PRN_OPENCL_COPIED, prn_opencl_copy_supported, transpose_opencl_prepare)
    {.name = "transpose_native", .backend = "native", .layouts = transpose_layouts, .prepare = transpose_prepare, .run = transpose_run_native,
     .release = prn_free, .split_alias = transpose_split_alias},
    {.name = "transpose_reference", .backend = "reference", .prepare = transpose_prepare, .run = transpose_run_reference, .release = prn_free},
    {0}};
// clang-format on

/* ---- DepthToSpace, SpaceToDepth */

typedef struct block_params {
    int64_t blocksize;
    const char *mode;
} block_params;

static const prn_param block_attributes[] = {
    PRN_INT_REQUIRED(block_params, blocksize), PRN_STRING(block_params, mode, "DCR"), {0}};

static prony_status block_check(const prony_context *context)
{
    const block_params *params = context->params;
    if (params->blocksize < 1 || params->blocksize > INT16_MAX) {
        return prony_fail(context, PRONY_OUT_OF_RANGE, "blocksize is %lld", (long long)params->blocksize);
    }
    if (strcmp(params->mode, "DCR") != 0 && strcmp(params->mode, "CRD") != 0) {
        return prony_fail(context, PRONY_UNSUPPORTED, "mode '%s' is not supported", params->mode);
    }
    return PRONY_OK;
}

static prony_status depth_to_space_infer(const prony_context *context)
{
    int64_t block = ((const block_params *)context->params)->blocksize;
    PRN_TRY(prn_check_movable(context, 0));
    PRN_TRY(prn_check_rank(context, 0, 4, 4));
    prony_shape shape = context->inputs[0]->shape;
    if (shape.dim[1] % (block * block)) {
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "%lld channels are not a multiple of blocksize^2 = %lld",
                          (long long)shape.dim[1], (long long)block * block);
    }
    shape.dim[1] /= block * block;
    if (__builtin_mul_overflow(shape.dim[2], block, &shape.dim[2]) ||
        __builtin_mul_overflow(shape.dim[3], block, &shape.dim[3])) {
        return prony_fail(context, PRONY_LIMIT, "the output is too large");
    }
    prn_set_output(context, 0, context->inputs[0]->dtype, &shape);
    return PRONY_OK;
}

static prony_status space_to_depth_infer(const prony_context *context)
{
    int64_t block = ((const block_params *)context->params)->blocksize;
    PRN_TRY(prn_check_movable(context, 0));
    PRN_TRY(prn_check_rank(context, 0, 4, 4));
    prony_shape shape = context->inputs[0]->shape;
    if (shape.dim[2] % block || shape.dim[3] % block) {
        char text[PRN_SHAPE_TEXT_BYTES];
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "%s does not divide by blocksize %lld",
                          prn_shape_text(&shape, text), (long long)block);
    }
    shape.dim[2] /= block;
    shape.dim[3] /= block;
    if (__builtin_mul_overflow(shape.dim[1], block * block, &shape.dim[1])) {
        return prony_fail(context, PRONY_LIMIT, "the output is too large");
    }
    prn_set_output(context, 0, context->inputs[0]->dtype, &shape);
    return PRONY_OK;
}

/* out[n, c, h*b + y, w*b + x] = in[n, (y*b + x)*C + c, h, w], or in[n, (c*b + y)*b + x, h, w] in CRD mode. */
static prn_copy depth_to_space_copy(const prony_context *context)
{
    const block_params *params = context->params;
    const prony_shape *in = &context->inputs[0]->shape, *out = &context->outputs[0]->shape;
    int64_t b = params->blocksize, depth = out->dim[1], height = in->dim[2], width = in->dim[3];
    int64_t image = height * width, row = out->dim[3];
    bool crd = strcmp(params->mode, "CRD") == 0;
    prn_copy copy = {0};
    prn_copy_axis(&copy, in->dim[0], in->dim[1] * image, in->dim[1] * image);
    prn_copy_axis(&copy, depth, crd ? b * b * image : image, b * b * image);
    prn_copy_axis(&copy, height, width, b * row);
    prn_copy_axis(&copy, b, crd ? b * image : b * depth * image, row);
    prn_copy_axis(&copy, width, 1, b);
    prn_copy_axis(&copy, b, crd ? image : depth * image, 1);
    return copy;
}

/* out[n, (y*b + x)*C + c, h, w] = in[n, c, h*b + y, w*b + x]. */
static prn_copy space_to_depth_copy(const prony_context *context)
{
    const block_params *params = context->params;
    const prony_shape *in = &context->inputs[0]->shape, *out = &context->outputs[0]->shape;
    int64_t b = params->blocksize, depth = in->dim[1], height = out->dim[2], width = out->dim[3];
    int64_t image = height * width;
    prn_copy copy = {0};
    prn_copy_axis(&copy, in->dim[0], depth * b * b * image, depth * b * b * image);
    prn_copy_axis(&copy, b, in->dim[3], b * depth * image);
    prn_copy_axis(&copy, b, 1, depth * image);
    prn_copy_axis(&copy, depth, b * b * image, image);
    prn_copy_axis(&copy, height, b * in->dim[3], width);
    prn_copy_axis(&copy, width, b, 1);
    return copy;
}

// clang-format off
static const prn_kernel depth_to_space_kernels[] = {
    PRN_OPENCL_ROW("depth_to_space_opencl", PRN_OPENCL_COPIED, prn_opencl_copy_supported, transpose_opencl_prepare)
    {.name = "depth_to_space_native", .backend = "native", .prepare = transpose_prepare, .run = transpose_run_native, .release = prn_free},
    {.name = "depth_to_space_reference", .backend = "reference", .prepare = transpose_prepare, .run = transpose_run_reference, .release = prn_free},
    {0}};

static const prn_kernel space_to_depth_kernels[] = {
    PRN_OPENCL_ROW("space_to_depth_opencl", PRN_OPENCL_COPIED, prn_opencl_copy_supported, transpose_opencl_prepare)
    {.name = "space_to_depth_native", .backend = "native", .prepare = transpose_prepare, .run = transpose_run_native, .release = prn_free},
    {.name = "space_to_depth_reference", .backend = "reference", .prepare = transpose_prepare, .run = transpose_run_reference, .release = prn_free},
    {0}};

const prn_op prn_ops_transpose[] = {
    {.name = "Transpose", .since_opset = 1, .inputs = {1, 1},
     .params = transpose_attributes, .params_bytes = sizeof(transpose_params),
     .variant = &(const permutation){transpose_copy},
     .infer = transpose_infer, .cost = prn_cost_none, .cost_text = "0", .kernels = transpose_kernels},
    {.name = "DepthToSpace", .since_opset = 1, .inputs = {1, 1},
     .params = block_attributes, .params_bytes = sizeof(block_params),
     .variant = &(const permutation){depth_to_space_copy}, .check = block_check,
     .infer = depth_to_space_infer, .cost = prn_cost_none, .cost_text = "0", .kernels = depth_to_space_kernels},
    {.name = "SpaceToDepth", .since_opset = 1, .inputs = {1, 1},
     .params = block_attributes, .params_bytes = sizeof(block_params),
     .variant = &(const permutation){space_to_depth_copy}, .check = block_check,
     .infer = space_to_depth_infer, .cost = prn_cost_none, .cost_text = "0", .kernels = space_to_depth_kernels},
    {0}};
// clang-format on
