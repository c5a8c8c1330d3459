/* Implements opencl_map.h. */
#include "ops/vendor/opencl/opencl_map.h"

#ifdef PRN_HAVE_OPENCL
#include "ops/kernels/copy/broadcast.h"
#include "ops/vendor/opencl/opencl_launch.h"

#include <string.h>

enum { RANKS = 18, GROUP = 64 };

/* As map.cl has it. */
typedef struct places {
    cl_int rank, count;
    cl_int extent[RANKS], a[RANKS], b[RANKS];
} places;

/* y of x, a and b in OpenCL C; the activations' own texts come from their list. */
static const char *const maps[PRN_MAP_COUNT] = {
#define PRN_ACTIVATION(SYMBOL, operator, attributes, a_, b_, flops, special, madds, in_double, in_float, dnnl)         \
    [PRN_MAP_##SYMBOL] = #in_float,
#include "ops/activations.inc"
    [PRN_MAP_COPY] = "x",
    [PRN_MAP_AFFINE] = "a * x + b",
    [PRN_MAP_THRESHOLDED_RELU] = "x <= a ? 0.0f : x",
    [PRN_MAP_EXP] = "exp(x)",
    [PRN_MAP_LOG] = "log(x)",
    [PRN_MAP_ERF] = "erf(x)",
    [PRN_MAP_GELU_TANH] = "0.5f * x * (1.0f + exact_tanh(0.79788456080286536f * (x + 0.044715f * x * x * x)))",
    [PRN_MAP_ELU] = "x > 0.0f ? x : a * expm1(x)",
    [PRN_MAP_SELU] = "b * (x > 0.0f ? x : a * expm1(x))",
    [PRN_MAP_CELU] = "x > 0.0f ? x : a * expm1(x / a)",
    [PRN_MAP_SOFTPLUS] = "softplus(x)",
    [PRN_MAP_SOFTSIGN] = "x / (1.0f + fabs(x))",
    [PRN_MAP_MISH] = "x * tanh(softplus(x))",
    [PRN_MAP_SQRT] = "sqrt(x)",
    [PRN_MAP_POW_HALF] = "isinf(x) ? INFINITY : x == 0.0f ? 0.0f : sqrt(x)",
    [PRN_MAP_RECIPROCAL] = "1.0f / x",
    [PRN_MAP_SQUARE] = "x * x",
    [PRN_MAP_CUBE] = "x * x * x",
    [PRN_MAP_ABS] = "fabs(x)",
    [PRN_MAP_NEG] = "-x",
    [PRN_MAP_FLOOR] = "floor(x)",
    [PRN_MAP_CEIL] = "ceil(x)",
    [PRN_MAP_ROUND] = "rint(x)",
    [PRN_MAP_SIGN] = "x != x ? x : (float)((x > 0.0f) - (x < 0.0f))",
    [PRN_MAP_SHRINK] = "x < -a ? x + b : (x > a ? x - b : (x != x ? x : 0.0f))",
    [PRN_MAP_SIN] = "sin(x)",
    [PRN_MAP_COS] = "cos(x)",
    [PRN_MAP_TAN] = "tan(x)",
    [PRN_MAP_ASIN] = "asin(x)",
    [PRN_MAP_ACOS] = "acos(x)",
    [PRN_MAP_ATAN] = "atan(x)",
};

/* The post-operation's factor is 1, and its text leaves that out. */
static const char *map_text(prn_map_id map)
{
    return map == PRN_MAP_SILU ? "x * post_ops_sigmoid(a * x)" : maps[map];
}

static const char *const binaries[PRN_BINARY_COUNT] = {
    [PRN_BINARY_ADD] = "a + b",
    [PRN_BINARY_SUB] = "a - b",
    [PRN_BINARY_MUL] = "a * b",
    [PRN_BINARY_DIV] = "a / b",
    [PRN_BINARY_MIN] = "a != a || b != b ? a + b : a < b ? a : b",
    [PRN_BINARY_MAX] = "a != a || b != b ? a + b : a > b ? a : b",
    [PRN_BINARY_PRELU] = "a < 0.0f ? a * b : a",
    [PRN_BINARY_POW] = "pow(a, b)",
};

bool prn_opencl_map_supported(const prony_context *context)
{
    return prn_opencl_takes(context, false);
}

bool prn_opencl_binary_supported(const prony_context *context)
{
    return prn_opencl_takes(context, true);
}

/* Truth values of rank 0 and 1 belong to computations of shapes. A copy of Tile has two axes for each of the input's. */
bool prn_opencl_is_copied(const prony_value *value)
{
    return value && value->shape.rank <= RANKS / 2 && (value->dtype != PRONY_BOOL || value->shape.rank >= 2);
}

bool prn_opencl_copy_supported(const prony_context *context)
{
    return prn_opencl_is_copied(prn_input(context, 0)) && prn_opencl_takes(context, true);
}

bool prn_opencl_first_supported(const prony_context *context)
{
    for (size_t i = 1; i < context->input_count; i++)
        if (context->inputs[i] && !(i < 32 && context->constant_inputs >> i & 1)) return false;
    return prn_opencl_takes_inputs(context, 1);
}

bool prn_opencl_move_supported(const prony_context *context)
{
    return prn_opencl_is_copied(prn_input(context, 0)) && prn_opencl_first_supported(context);
}

static const char *opencl_map_element_of(size_t width)
{
    static const char *const elements[] = {"uchar", "ushort", "uint", "ulong"};
    return elements[__builtin_ctz((unsigned)width)];
}

/* ---- one tensor ---- */

static const char *type_of(prony_dtype dtype)
{
    switch (dtype) {
    case PRONY_INT32:
        return "int";
    case PRONY_INT64:
        return "long";
    case PRONY_INT8:
        return "char";
    case PRONY_UINT8:
    case PRONY_BOOL:
        return "uchar";
    default:
        return "float";
    }
}

static void define_types(opencl_defines *defines, const prony_context *context)
{
    prn_opencl_define(defines, "#define IN %s\n#define OUT %s\n", type_of(context->inputs[0]->dtype),
                      type_of(context->outputs[0]->dtype));
}

/* Input 0, or what output 0 has so far, as the next argument. */
static void add_first(opencl_builder *b, bool so_far)
{
    if (so_far)
        prn_opencl_output(b, 0, 0);
    else
        prn_opencl_input(b, 0, 0);
}

static void launch_map(opencl_builder *b, const char *text, bool so_far, float a, float c)
{
    const int64_t count = prony_shape_numel(&b->context->outputs[0]->shape);
    opencl_defines defines = {0};
    if (!so_far) define_types(&defines, b->context);
    prn_opencl_define(&defines, "#define UNARY (%s)\n", text);
    prn_opencl_launch(b, &prn_opencl_map, &defines, "map");
    add_first(b, so_far);
    prn_opencl_output(b, 0, 0);
    prn_opencl_int(b, count);
    prn_opencl_float(b, a);
    prn_opencl_float(b, c);
    prn_opencl_work(b, (size_t)count, 1, 1, GROUP, 1, 1);
}

prony_status prn_opencl_expression_prepare(const prony_context *context, prn_prepared *out, const char *text, float a,
                                           float b)
{
    opencl_builder builder = prn_opencl_begin(context, 1);
    launch_map(&builder, text, false, a, b);
    return prn_opencl_end(&builder, out);
}

prony_status prn_opencl_map_prepare(const prony_context *context, prn_prepared *out, prn_map_id map, float a, float b)
{
    return prn_opencl_expression_prepare(context, out, map_text(map), a, b);
}

/* ---- two tensors ---- */

static places broadcast_places(const prony_value *out, const prony_value *a, const prony_value *b)
{
    prn_broadcast walk;
    prn_broadcast_begin(&walk, out);
    prn_broadcast_add(&walk, a);
    prn_broadcast_add(&walk, b);
    prn_broadcast_merge(&walk);
    places p = {.rank = walk.rank, .count = (cl_int)walk.count};
    for (int d = 0; d < walk.rank; d++) {
        p.extent[d] = (cl_int)walk.dim[d];
        p.a[d] = (cl_int)walk.stride[0][d];
        p.b[d] = (cl_int)walk.stride[1][d];
    }
    return p;
}

/* The result so far (at first input 0) and input `i`. Steps behind the first read an element of the result before they write
 * it, by one work item. */
static void launch_binary(opencl_builder *b, const char *text, size_t i)
{
    const prony_context *context = b->context;
    const prony_value *y = context->outputs[0];
    const places p = broadcast_places(y, i == 1 ? context->inputs[0] : y, context->inputs[i]);
    opencl_defines defines = {0};
    define_types(&defines, context);
    prn_opencl_define(&defines, "#define BINARY (%s)\n", text);
    prn_opencl_launch(b, &prn_opencl_map, &defines, "binary");
    add_first(b, i > 1);
    prn_opencl_input(b, i, 0);
    prn_opencl_output(b, 0, 0);
    prn_opencl_argument(b, &p, sizeof p);
    prn_opencl_work(b, (size_t)p.count, 1, 1, GROUP, 1, 1);
}

static void launch_steps(opencl_builder *b, const char *text)
{
    if (b->context->input_count == 1) launch_map(b, "x", false, 0.0f, 0.0f);
    for (size_t i = 1; i < b->context->input_count; i++) launch_binary(b, text, i);
}

prony_status prn_opencl_binary_prepare(const prony_context *context, prn_prepared *out, prn_binary_id op)
{
    opencl_builder b = prn_opencl_begin(context, context->input_count);
    launch_steps(&b, binaries[op]);
    return prn_opencl_end(&b, out);
}

prony_status prn_opencl_mean_prepare(const prony_context *context, prn_prepared *out)
{
    opencl_builder b = prn_opencl_begin(context, context->input_count + 1);
    launch_steps(&b, binaries[PRN_BINARY_ADD]);
    launch_map(&b, "x / a", true, (float)context->input_count, 0.0f);
    return prn_opencl_end(&b, out);
}

prony_status prn_opencl_pair_prepare(const prony_context *context, prn_prepared *out, const char *text)
{
    opencl_builder b = prn_opencl_begin(context, 1);
    launch_binary(&b, text, 1);
    return prn_opencl_end(&b, out);
}

prony_status prn_opencl_biased_map_prepare(const prony_context *context, prn_prepared *out, prn_map_id map, float a,
                                           float b)
{
    const bool biased = prn_input(context, 1);
    opencl_builder builder = prn_opencl_begin(context, 2);
    if (biased) launch_binary(&builder, binaries[PRN_BINARY_ADD], 1);
    launch_map(&builder, map_text(map), biased, a, b);
    return prn_opencl_end(&builder, out);
}

/* ---- a choice of two ---- */

/* As map.cl has it. */
typedef struct picks {
    cl_int rank, count;
    cl_int extent[RANKS], c[RANKS], a[RANKS], b[RANKS];
} picks;

prony_status prn_opencl_pick_prepare(const prony_context *context, prn_prepared *out)
{
    prn_broadcast walk;
    prn_broadcast_begin(&walk, context->outputs[0]);
    for (size_t i = 0; i < 3; i++) prn_broadcast_add(&walk, context->inputs[i]);
    prn_broadcast_merge(&walk);
    picks p = {.rank = walk.rank, .count = (cl_int)walk.count};
    for (int d = 0; d < walk.rank; d++) {
        p.extent[d] = (cl_int)walk.dim[d];
        p.c[d] = (cl_int)walk.stride[0][d];
        p.a[d] = (cl_int)walk.stride[1][d];
        p.b[d] = (cl_int)walk.stride[2][d];
    }
    opencl_defines defines = {0};
    opencl_builder b = prn_opencl_begin(context, 1);
    prn_opencl_define(&defines, "#define PICK %s\n", opencl_map_element_of(prn_copy_width(context->inputs[1]->dtype)));
    prn_opencl_launch(&b, &prn_opencl_map, &defines, "pick");
    for (size_t i = 0; i < 3; i++) prn_opencl_input(&b, i, 0);
    prn_opencl_output(&b, 0, 0);
    prn_opencl_argument(&b, &p, sizeof p);
    prn_opencl_work(&b, (size_t)p.count, 1, 1, GROUP, 1, 1);
    return prn_opencl_end(&b, out);
}

/* ---- copies ---- */

/* Axes of extent 1 are dropped, and neighbours that are one axis in both views are merged. */
static places copy_places(const prn_copy *copy)
{
    places p = {.count = 1};
    for (int d = 0; d < copy->rank; d++) {
        const cl_int dim = (cl_int)copy->dim[d], from = (cl_int)copy->from[d], to = (cl_int)copy->to[d];
        p.count *= dim;
        if (dim == 1) continue;
        const int last = p.rank - 1;
        const bool merges = last >= 0 && p.a[last] == from * dim && p.b[last] == to * dim;
        const int at = merges ? last : p.rank++;
        p.extent[at] = merges ? p.extent[at] * dim : dim;
        p.a[at] = from;
        p.b[at] = to;
    }
    return p;
}

prony_status prn_opencl_copy_prepare(const prony_context *context, prn_prepared *out, const prn_opencl_move *moves,
                                     size_t count, const void *fill)
{
    const size_t width = prn_copy_width(context->inputs[moves->input]->dtype);
    const int64_t filled = fill ? prony_shape_numel(&context->outputs[0]->shape) : 0;
    opencl_defines defines = {0};
    opencl_builder b = prn_opencl_begin(context, count + 1);
    prn_opencl_define(&defines, "#define ELEMENT %s\n", opencl_map_element_of(width));
    if (fill) {
        prn_opencl_launch(&b, &prn_opencl_map, &defines, "fill");
        prn_opencl_output(&b, 0, 0);
        prn_opencl_int(&b, filled);
        prn_opencl_argument(&b, fill, width);
        prn_opencl_work(&b, (size_t)filled, 1, 1, GROUP, 1, 1);
    }
    for (size_t i = 0; i < count; i++) {
        const prn_opencl_move *move = &moves[i];
        const places p = copy_places(&move->copy);
        if (p.count == 0) continue;
        prn_opencl_launch(&b, &prn_opencl_map, &defines, "copy");
        prn_opencl_input(&b, move->input, (uint64_t)move->from * width);
        prn_opencl_output(&b, move->output, (uint64_t)move->to * width);
        prn_opencl_argument(&b, &p, sizeof p);
        prn_opencl_work(&b, (size_t)p.count, 1, 1, GROUP, 1, 1);
    }
    return prn_opencl_end(&b, out);
}

/* ---- Pad ---- */

/* As index.cl has it. */
typedef struct pads {
    cl_int rank, mode, count;
    cl_int extent[RANKS], in[RANKS], stride[RANKS], begin[RANKS];
} pads;

prony_status prn_opencl_pad_prepare(const prony_context *context, prn_prepared *out, prn_opencl_pad mode,
                                    const int64_t *begin, const void *fill)
{
    const prony_shape *in = &context->inputs[0]->shape, *y = &context->outputs[0]->shape;
    const size_t width = prn_copy_width(context->inputs[0]->dtype);
    pads p = {.rank = in->rank, .mode = (cl_int)mode, .count = (cl_int)prony_shape_numel(y)};
    int64_t stride[PRONY_MAX_RANK];
    prn_shape_strides(in, stride);
    for (int d = 0; d < in->rank; d++) {
        p.extent[d] = (cl_int)y->dim[d];
        p.in[d] = (cl_int)in->dim[d];
        p.stride[d] = (cl_int)stride[d];
        p.begin[d] = (cl_int)begin[d];
    }
    opencl_defines defines = {0};
    opencl_builder b = prn_opencl_begin(context, 1);
    prn_opencl_define(&defines, "#define PAD %s\n", opencl_map_element_of(width));
    prn_opencl_launch(&b, &prn_opencl_index, &defines, "pad");
    prn_opencl_input(&b, 0, 0);
    prn_opencl_output(&b, 0, 0);
    prn_opencl_argument(&b, &p, sizeof p);
    prn_opencl_argument(&b, fill, width);
    prn_opencl_work(&b, (size_t)p.count, 1, 1, GROUP, 1, 1);
    return prn_opencl_end(&b, out);
}
#endif
