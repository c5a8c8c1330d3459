/* Binary and variadic elementwise operators with multidirectional broadcasting: arithmetic, comparisons, logic, bits.
 * Every type has the row loops of element_rows.h; float32 arithmetic has vector kernels that also take NHWC and blocked
 * operands. Invariant: an element's result depends on its operands alone. */
#include "base/threads/parallel.h"
#include "ops/kernels/copy/broadcast.h"
#include "ops/kernels/copy/copy_nd.h"
#include "ops/kernels/vector/element_rows.h"
#include "ops/kernels/vector/elementwise.h"
#include "ops/kernels/vector/number.h"
#include "ops/vendor/opencl/opencl_map.h"

#include <string.h>

/* An operator's variant. */
typedef struct element_kind {
    prn_row_op row;          /* of every type */
    prn_binary_id vec;       /* of float32, where there is a vector kernel */
    uint32_t types;          /* that input 0 may have */
    uint64_t flops, special; /* per output element, where the number of inputs does not matter */
} element_kind;

static void equal_texts(void *y_, const void *a_, const void *b_, int64_t n, int64_t a_step, int64_t b_step)
{
    uint8_t *y = y_;
    const prony_string *a = a_, *b = b_;
    for (int64_t i = 0; i < n; i++) {
        const prony_string *left = &a[i * a_step], *right = &b[i * b_step];
        y[i] = left->size == right->size && (left->size == 0 || memcmp(left->data, right->data, left->size) == 0);
    }
}

/* ---- reference: out = in0 op in1, then out = out op in2 … */

typedef struct row_job {
    const prn_broadcast *walk;
    prn_row_op op;
    char *y;
    const char *a, *b;
    prony_dtype in, out;
} row_job;

static void elementwise_run_row(void *argument, const int64_t offset[PRN_BROADCAST_INPUTS], int64_t out, int64_t at,
                                int64_t n)
{
    const row_job *job = argument;
    const int inner = job->walk->rank - 1;
    const int64_t a_step = job->walk->stride[0][inner], b_step = job->walk->stride[1][inner];
    const void *a = prn_block_at(job->a, job->in, offset[0] + at * a_step);
    const void *b = prn_block_at(job->b, job->in, offset[1] + at * b_step);
    void *y = job->y + prony_dtype_bytes(job->out, out);
    if (job->in == PRONY_STRING) {
        equal_texts(y, a, b, n, a_step, b_step);
    } else if (!a_step && !b_step) { /* the first two of several operands, which only a later one makes as large as the
                                        output */
        for (int64_t i = 0; i < n; i++)
            prn_element_row(job->op, job->in, (char *)y + prony_dtype_bytes(job->out, i), a, b, 1, 0, 0);
    } else {
        prn_element_row(job->op, job->in, y, a, b, n, a_step, b_step);
    }
}

static void step_rows(const prony_context *context, prn_row_op op, const prony_value *a, const prony_value *b)
{
    prony_value *out = context->outputs[0];
    prn_broadcast walk;
    prn_broadcast_begin(&walk, out);
    prn_broadcast_add(&walk, a);
    prn_broadcast_add(&walk, b);
    prn_broadcast_merge(&walk);
    row_job job = {&walk, op, out->data, a->data, b->data, a->dtype, out->dtype};
    prn_broadcast_parallel(&walk, context->threads, elementwise_run_row, &job);
}

static void copy_single(const prony_context *context)
{
    const prony_value *in = context->inputs[0];
    prn_copy_bytes(context->threads, in->data, context->outputs[0]->data, prn_layout_bytes(in));
}

static prony_status run_rows_of(const prony_context *context, prn_row_op op)
{
    if (context->input_count == 1) copy_single(context);
    for (size_t i = 1; i < context->input_count; i++) {
        step_rows(context, op, i == 1 ? context->inputs[0] : context->outputs[0], context->inputs[i]);
    }
    return PRONY_OK;
}

static prony_status elementwise_run_rows(const prony_context *context)
{
    const element_kind *kind = prn_variant(context);
    return run_rows_of(context, kind->row);
}

/* ---- float32: the same steps with vector kernels */

typedef struct vec_job {
    const prn_vec_table *vec;
    prn_binary_id op;
    float *y;
    const float *a, *b;
    int64_t a_step, b_step;
    int64_t a_period, b_period; /* above 0: the operand repeats that many elements along the row */
} vec_job;

static void run_vec_row(void *argument, const int64_t offset[PRN_BROADCAST_INPUTS], int64_t out, int64_t at, int64_t n)
{
    const vec_job *job = argument;
    const prn_vec_table *vec = job->vec;
    float *y = job->y + out;
    const float *a = job->a + offset[0], *b = job->b + offset[1];
    if (job->b_period) {
        vec->vr[job->op](y, a + at, b, n, job->b_period, at % job->b_period);
    } else if (job->a_period) {
        vec->rv[job->op](y, a, b + at, n, job->a_period, at % job->a_period);
    } else if (job->a_step && job->b_step) {
        vec->vv[job->op](y, a + at, b + at, n);
    } else if (job->a_step) {
        vec->vs[job->op](y, a + at, *b, n);
    } else if (job->b_step) {
        vec->sv[job->op](y, *a, b + at, n);
    } else {
        for (int64_t i = 0; i < n; i++) vec->vv[job->op](y + i, a, b, 1);
    }
}

/* Short rows over which one operand repeats (a channel vector beside NHWC or blocked data, a bias beside few columns)
 * become one long row with a period. */
static int64_t fold_period(prn_broadcast *walk, int repeating)
{
    const int inner = walk->rank - 1, other = 1 - repeating;
    if (inner < 1 || walk->dim[inner] > 256) return 0;
    if (walk->stride[repeating][inner] != 1 || walk->stride[repeating][inner - 1] != 0) return 0;
    if (walk->stride[other][inner] != 1 || walk->stride[other][inner - 1] != walk->dim[inner]) return 0;
    const int64_t period = walk->dim[inner];
    walk->dim[inner - 1] *= period;
    walk->stride[other][inner - 1] = 1;
    walk->rank--;
    return period;
}

enum { FEW = 4096 }; /* elements: less than a task of any kind */

/* Few elements of the output's own shape beside as many or one: no walk, which takes longer than they do. */
static bool step_few(prn_binary_id op, const prony_value *out, const prony_value *a, const prony_value *b)
{
    const int64_t n = prn_layout_elements(&out->shape, (prn_layout)out->layout);
    if (n > FEW || a->layout != out->layout || !prn_shape_equal(&a->shape, &out->shape)) return false;
    if (b->layout == out->layout && prn_shape_equal(&b->shape, &out->shape))
        prn_vec()->vv[op](out->data, a->data, b->data, n);
    else if (b->layout == PRN_PLAIN && prony_shape_numel(&b->shape) == 1)
        prn_vec()->vs[op](out->data, a->data, *(const float *)b->data, n);
    else
        return false;
    return true;
}

static void step_vec(const prony_context *context, prn_binary_id op, const prony_value *a, const prony_value *b)
{
    prony_value *out = context->outputs[0];
    if (step_few(op, out, a, b)) return;
    prn_broadcast walk;
    prn_broadcast_begin(&walk, out);
    prn_broadcast_add(&walk, a);
    prn_broadcast_add(&walk, b);
    prn_broadcast_merge(&walk);
    vec_job job = {.vec = prn_vec(), .op = op, .y = out->data, .a = a->data, .b = b->data};
    job.b_period = fold_period(&walk, 1);
    if (!job.b_period) job.a_period = fold_period(&walk, 0);
    job.a_step = walk.stride[0][walk.rank - 1];
    job.b_step = walk.stride[1][walk.rank - 1];
    prn_broadcast_parallel(&walk, context->threads, run_vec_row, &job);
}

prony_status prn_run_binary_f32(const prony_context *context, prn_binary_id op)
{
    if (context->input_count == 1) copy_single(context);
    for (size_t i = 1; i < context->input_count; i++) {
        step_vec(context, op, i == 1 ? context->inputs[0] : context->outputs[0], context->inputs[i]);
    }
    prn_clear_padding(context->outputs[0]);
    return PRONY_OK;
}

static prony_status run_vec(const prony_context *context)
{
    const element_kind *kind = prn_variant(context);
    return prn_run_binary_f32(context, kind->vec);
}

#ifdef PRN_HAVE_OPENCL
static prony_status elementwise_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    const element_kind *kind = prn_variant(context);
    return prn_opencl_binary_prepare(context, out, kind->vec);
}
#endif

/* ---- Mean: the sum, then a division by a scalar operand */

static prony_value count_operand(const prony_context *context, double *storage)
{
    const prony_dtype dtype = context->outputs[0]->dtype;
    prn_put_f64(storage, dtype, 0, (double)context->input_count);
    return (prony_value){.dtype = dtype, .data = storage};
}

static prony_status run_mean_rows(const prony_context *context)
{
    double storage;
    const prony_value count = count_operand(context, &storage);
    PRN_TRY(elementwise_run_rows(context));
    step_rows(context, PRN_ROW_DIV, context->outputs[0], &count);
    return PRONY_OK;
}

static prony_status run_mean_vec(const prony_context *context)
{
    double storage;
    const prony_value count = count_operand(context, &storage);
    PRN_TRY(run_vec(context));
    step_vec(context, PRN_BINARY_DIV, context->outputs[0], &count);
    return PRONY_OK;
}

#ifdef PRN_HAVE_OPENCL
/* Truth values of rank 0 and 1 belong to computations of shapes. */
static bool elementwise_opencl_logic_supported(const prony_context *context)
{
    return context->outputs[0]->shape.rank >= 2 && prn_opencl_binary_supported(context);
}

/* A comparison, or logic of two truth values. */
static prony_status elementwise_opencl_test_prepare(const prony_context *context, prn_prepared *out)
{
    static const char *const texts[PRN_ROW_COUNT] = {[PRN_ROW_EQUAL] = "a == b",
                                                     [PRN_ROW_GREATER] = "a > b",
                                                     [PRN_ROW_LESS] = "a < b",
                                                     [PRN_ROW_GREATER_OR_EQUAL] = "a >= b",
                                                     [PRN_ROW_LESS_OR_EQUAL] = "a <= b",
                                                     [PRN_ROW_AND] = "a && b",
                                                     [PRN_ROW_OR] = "a || b",
                                                     [PRN_ROW_XOR] = "!a != !b"};
    const element_kind *kind = prn_variant(context);
    return prn_opencl_pair_prepare(context, out, texts[kind->row]);
}

static prony_status elementwise_opencl_not_prepare(const prony_context *context, prn_prepared *out)
{
    return prn_opencl_expression_prepare(context, out, "!x", 0.0f, 0.0f);
}
#endif

/* ---- inference and cost */

static prony_status elementwise_check_types(const prony_context *context)
{
    const element_kind *kind = prn_variant(context);
    return prn_check_type(context, 0, kind->types);
}

static prony_status infer_same(const prony_context *context)
{
    PRN_TRY(elementwise_check_types(context));
    return prn_infer_same(context);
}

static prony_status infer_binary(const prony_context *context)
{
    PRN_TRY(elementwise_check_types(context));
    return prn_infer_broadcast(context);
}

static prony_status infer_comparison(const prony_context *context)
{
    PRN_TRY(infer_binary(context));
    context->outputs[0]->dtype = PRONY_BOOL;
    return PRONY_OK;
}

static prony_status infer_prelu(const prony_context *context)
{
    const prony_shape *shape = &context->inputs[0]->shape;
    PRN_TRY(infer_binary(context));
    if (prn_shape_equal(shape, &context->outputs[0]->shape)) return PRONY_OK;
    char slope[PRN_SHAPE_TEXT_BYTES], data[PRN_SHAPE_TEXT_BYTES];
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "slope of shape %s does not broadcast to %s",
                      prn_shape_text(&context->inputs[1]->shape, slope), prn_shape_text(shape, data));
}

/* One operation per output element and further operand. */
static prony_status cost_steps(const prony_context *context, prony_cost *cost)
{
    return prn_cost_map(context, cost, context->input_count - 1, 0, 0);
}

static prony_status cost_mean(const prony_context *context, prony_cost *cost)
{
    return prn_cost_map(context, cost, context->input_count, 1, 0);
}

static prony_status cost_each(const prony_context *context, prony_cost *cost)
{
    const element_kind *kind = prn_variant(context);
    return prn_cost_map(context, cost, kind->flops, kind->special, 0);
}

/* ---- attributes */

typedef struct mod_params {
    int64_t fmod;
} mod_params;

static const prn_param mod_attributes[] = {PRN_INT(mod_params, fmod, 0), {0}};

static prony_status check_mod(const prony_context *context)
{
    const int64_t fmod = ((const mod_params *)context->params)->fmod;
    if (fmod == 0 || fmod == 1) return PRONY_OK;
    return prony_fail(context, PRONY_INVALID_MODEL, "attribute 'fmod' is %lld, wanted 0 or 1", (long long)fmod);
}

static prony_status elementwise_run_mod(const prony_context *context)
{
    const mod_params *params = context->params;
    return run_rows_of(context, params->fmod ? PRN_ROW_FMOD : PRN_ROW_MOD);
}

typedef struct shift_params {
    const char *direction;
} shift_params;

static const prn_param shift_attributes[] = {PRN_STRING(shift_params, direction, NULL), {0}};

static prony_status check_shift(const prony_context *context)
{
    const char *direction = ((const shift_params *)context->params)->direction;
    if (direction && (strcmp(direction, "LEFT") == 0 || strcmp(direction, "RIGHT") == 0)) return PRONY_OK;
    return prony_fail(context, PRONY_INVALID_MODEL, "attribute 'direction' is '%s', wanted LEFT or RIGHT",
                      direction ? direction : "");
}

static prony_status run_shift(const prony_context *context)
{
    const shift_params *params = context->params;
    return run_rows_of(context, params->direction[0] == 'L' ? PRN_ROW_SHIFT_LEFT : PRN_ROW_SHIFT_RIGHT);
}

/* ---- Not, BitwiseNot */

typedef struct not_job {
    const uint8_t *x;
    uint8_t *y;
} not_job;

static void not_range(void *argument, int64_t begin, int64_t end)
{
    const not_job *job = argument;
    const uint8_t none = 0;
    prn_element_row(PRN_ROW_EQUAL, PRONY_BOOL, job->y + begin, job->x + begin, &none, end - begin, 1, 0);
}

static void bitwise_not_range(void *argument, int64_t begin, int64_t end)
{
    const not_job *job = argument;
    const uint8_t all = UINT8_MAX;
    prn_element_row(PRN_ROW_BITWISE_XOR, PRONY_UINT8, job->y + begin, job->x + begin, &all, end - begin, 1, 0);
}

static prony_status run_not(const prony_context *context)
{
    const prony_value *in = context->inputs[0];
    not_job job = {in->data, context->outputs[0]->data};
    prn_parallel_range(context->threads, (int64_t)prn_value_bytes(in), 65536,
                       in->dtype == PRONY_BOOL ? not_range : bitwise_not_range, &job);
    return PRONY_OK;
}

/* ---- kernels: float32 arithmetic in vectors, everything in rows */

// clang-format off
static const prn_kernel add_kernels[] = {
    PRN_OPENCL_ROW("add_f32_opencl", PRN_TYPE_F32, prn_opencl_binary_supported, elementwise_opencl_prepare)
    {.name = "add_f32_native", .backend = "native", .types = PRN_TYPE_F32, .layouts = prn_broadcast_layouts, .layout_invariant = true,
     .run = run_vec, .inplace = 3},
    {.name = "add_reference", .backend = "reference", .run = elementwise_run_rows, .inplace = 3}, {0}};
static const prn_kernel sub_kernels[] = {
    PRN_OPENCL_ROW("sub_f32_opencl", PRN_TYPE_F32, prn_opencl_binary_supported, elementwise_opencl_prepare)
    {.name = "sub_f32_native", .backend = "native", .types = PRN_TYPE_F32, .layouts = prn_broadcast_layouts, .layout_invariant = true,
     .run = run_vec, .inplace = 3},
    {.name = "sub_reference", .backend = "reference", .run = elementwise_run_rows, .inplace = 3}, {0}};
static const prn_kernel mul_kernels[] = {
    PRN_OPENCL_ROW("mul_f32_opencl", PRN_TYPE_F32, prn_opencl_binary_supported, elementwise_opencl_prepare)
    {.name = "mul_f32_native", .backend = "native", .types = PRN_TYPE_F32, .layouts = prn_broadcast_layouts, .layout_invariant = true,
     .run = run_vec, .inplace = 3},
    {.name = "mul_reference", .backend = "reference", .run = elementwise_run_rows, .inplace = 3}, {0}};
static const prn_kernel div_kernels[] = {
    PRN_OPENCL_ROW("div_f32_opencl", PRN_TYPE_F32, prn_opencl_binary_supported, elementwise_opencl_prepare)
    {.name = "div_f32_native", .backend = "native", .types = PRN_TYPE_F32, .layouts = prn_broadcast_layouts, .layout_invariant = true,
     .run = run_vec, .inplace = 3},
    {.name = "div_reference", .backend = "reference", .run = elementwise_run_rows, .inplace = 3}, {0}};
static const prn_kernel min_kernels[] = {
    PRN_OPENCL_ROW("min_f32_opencl", PRN_TYPE_F32, prn_opencl_binary_supported, elementwise_opencl_prepare)
    {.name = "min_f32_native", .backend = "native", .types = PRN_TYPE_F32, .layouts = prn_broadcast_layouts, .layout_invariant = true,
     .run = run_vec, .inplace = 3},
    {.name = "min_reference", .backend = "reference", .run = elementwise_run_rows, .inplace = 3}, {0}};
static const prn_kernel max_kernels[] = {
    PRN_OPENCL_ROW("max_f32_opencl", PRN_TYPE_F32, prn_opencl_binary_supported, elementwise_opencl_prepare)
    {.name = "max_f32_native", .backend = "native", .types = PRN_TYPE_F32, .layouts = prn_broadcast_layouts, .layout_invariant = true,
     .run = run_vec, .inplace = 3},
    {.name = "max_reference", .backend = "reference", .run = elementwise_run_rows, .inplace = 3}, {0}};
static const prn_kernel sum_kernels[] = {
    PRN_OPENCL_ROW("sum_f32_opencl", PRN_TYPE_F32, prn_opencl_binary_supported, elementwise_opencl_prepare)
    {.name = "sum_f32_native", .backend = "native", .types = PRN_TYPE_F32, .layouts = prn_broadcast_layouts, .layout_invariant = true,
     .run = run_vec, .inplace = 3},
    {.name = "sum_reference", .backend = "reference", .run = elementwise_run_rows, .inplace = 3}, {0}};
static const prn_kernel mean_kernels[] = {
    PRN_OPENCL_ROW("mean_f32_opencl", PRN_TYPE_F32, prn_opencl_binary_supported, prn_opencl_mean_prepare)
    {.name = "mean_f32_native", .backend = "native", .types = PRN_TYPE_F32, .layouts = prn_broadcast_layouts, .layout_invariant = true,
     .run = run_mean_vec, .inplace = 3},
    {.name = "mean_reference", .backend = "reference", .run = run_mean_rows, .inplace = 3}, {0}};
static const prn_kernel prelu_kernels[] = {
    PRN_OPENCL_ROW("prelu_f32_opencl", PRN_TYPE_F32, prn_opencl_binary_supported, elementwise_opencl_prepare)
    {.name = "prelu_f32_native", .backend = "native", .types = PRN_TYPE_F32, .layouts = prn_broadcast_layouts, .layout_invariant = true,
     .run = run_vec, .inplace = 3},
    {.name = "prelu_reference", .backend = "reference", .run = elementwise_run_rows, .inplace = 3}, {0}};
static const prn_kernel equal_kernels[] = {
    PRN_OPENCL_ROW("equal_f32_opencl", PRN_TYPE_F32, prn_opencl_binary_supported, elementwise_opencl_test_prepare)
    {.name = "equal_reference", .backend = "reference", .run = elementwise_run_rows}, {0}};
static const prn_kernel greater_kernels[] = {
    PRN_OPENCL_ROW("greater_f32_opencl", PRN_TYPE_F32, prn_opencl_binary_supported, elementwise_opencl_test_prepare)
    {.name = "greater_reference", .backend = "reference", .run = elementwise_run_rows}, {0}};
static const prn_kernel less_kernels[] = {
    PRN_OPENCL_ROW("less_f32_opencl", PRN_TYPE_F32, prn_opencl_binary_supported, elementwise_opencl_test_prepare)
    {.name = "less_reference", .backend = "reference", .run = elementwise_run_rows}, {0}};
static const prn_kernel greater_or_equal_kernels[] = {
    PRN_OPENCL_ROW("greater_or_equal_f32_opencl", PRN_TYPE_F32, prn_opencl_binary_supported, elementwise_opencl_test_prepare)
    {.name = "greater_or_equal_reference", .backend = "reference", .run = elementwise_run_rows}, {0}};
static const prn_kernel less_or_equal_kernels[] = {
    PRN_OPENCL_ROW("less_or_equal_f32_opencl", PRN_TYPE_F32, prn_opencl_binary_supported, elementwise_opencl_test_prepare)
    {.name = "less_or_equal_reference", .backend = "reference", .run = elementwise_run_rows}, {0}};
static const prn_kernel and_kernels[] = {
    PRN_OPENCL_ROW("and_opencl", PRN_TYPE(PRONY_BOOL), elementwise_opencl_logic_supported, elementwise_opencl_test_prepare)
    {.name = "and_reference", .backend = "reference", .run = elementwise_run_rows}, {0}};
static const prn_kernel or_kernels[] = {
    PRN_OPENCL_ROW("or_opencl", PRN_TYPE(PRONY_BOOL), elementwise_opencl_logic_supported, elementwise_opencl_test_prepare)
    {.name = "or_reference", .backend = "reference", .run = elementwise_run_rows}, {0}};
static const prn_kernel xor_kernels[] = {
    PRN_OPENCL_ROW("xor_opencl", PRN_TYPE(PRONY_BOOL), elementwise_opencl_logic_supported, elementwise_opencl_test_prepare)
    {.name = "xor_reference", .backend = "reference", .run = elementwise_run_rows}, {0}};
static const prn_kernel not_kernels[] = {
    PRN_OPENCL_ROW("not_opencl", PRN_TYPE(PRONY_BOOL), elementwise_opencl_logic_supported, elementwise_opencl_not_prepare)
    {.name = "not_reference", .backend = "reference", .run = run_not}, {0}};
// clang-format on
static const prn_kernel bitwise_and_kernels[] = {
    {.name = "bitwise_and_reference", .backend = "reference", .run = elementwise_run_rows}, {0}};
static const prn_kernel bitwise_or_kernels[] = {
    {.name = "bitwise_or_reference", .backend = "reference", .run = elementwise_run_rows}, {0}};
static const prn_kernel bitwise_xor_kernels[] = {
    {.name = "bitwise_xor_reference", .backend = "reference", .run = elementwise_run_rows}, {0}};
static const prn_kernel mod_kernels[] = {{.name = "mod_reference", .backend = "reference", .run = elementwise_run_mod},
                                         {0}};
static const prn_kernel bit_shift_kernels[] = {
    {.name = "bit_shift_reference", .backend = "reference", .run = run_shift}, {0}};
static const prn_kernel bitwise_not_kernels[] = {
    {.name = "bitwise_not_reference", .backend = "reference", .run = run_not}, {0}};

// clang-format off
const prn_op prn_ops_elementwise[] = {
    {.name = "Add", .since_opset = 7, .inputs = {2, 2}, .infer = infer_binary, .cost = cost_steps, .cost_text = "n",
     .variant = &(const element_kind){PRN_ROW_ADD, PRN_BINARY_ADD, PRN_TYPES_NUMBER, 0, 0}, .kernels = add_kernels},
    {.name = "Sub", .since_opset = 7, .inputs = {2, 2}, .infer = infer_binary, .cost = cost_steps, .cost_text = "n",
     .variant = &(const element_kind){PRN_ROW_SUB, PRN_BINARY_SUB, PRN_TYPES_NUMBER, 0, 0}, .kernels = sub_kernels},
    {.name = "Mul", .since_opset = 7, .inputs = {2, 2}, .infer = infer_binary, .cost = cost_steps, .cost_text = "n",
     .variant = &(const element_kind){PRN_ROW_MUL, PRN_BINARY_MUL, PRN_TYPES_NUMBER, 0, 0}, .kernels = mul_kernels},
    {.name = "Div", .since_opset = 7, .inputs = {2, 2},
     .variant = &(const element_kind){PRN_ROW_DIV, PRN_BINARY_DIV, PRN_TYPES_NUMBER, 1, 1},
     .infer = infer_binary, .cost = cost_each, .cost_text = "n; special n", .kernels = div_kernels},
    {.name = "Min", .since_opset = 1, .inputs = {1, -1},
     .variant = &(const element_kind){PRN_ROW_MIN, PRN_BINARY_MIN, PRN_TYPES_NUMBER, 0, 0},
     .infer = infer_binary, .cost = cost_steps, .cost_text = "n (inputs - 1)", .kernels = min_kernels},
    {.name = "Max", .since_opset = 1, .inputs = {1, -1},
     .variant = &(const element_kind){PRN_ROW_MAX, PRN_BINARY_MAX, PRN_TYPES_NUMBER, 0, 0},
     .infer = infer_binary, .cost = cost_steps, .cost_text = "n (inputs - 1)", .kernels = max_kernels},
    {.name = "Sum", .since_opset = 1, .inputs = {1, -1},
     .variant = &(const element_kind){PRN_ROW_ADD, PRN_BINARY_ADD, PRN_TYPES_FLOAT, 0, 0},
     .infer = infer_binary, .cost = cost_steps, .cost_text = "n (inputs - 1)", .kernels = sum_kernels},
    {.name = "Mean", .since_opset = 1, .inputs = {1, -1},
     .variant = &(const element_kind){PRN_ROW_ADD, PRN_BINARY_ADD, PRN_TYPES_FLOAT, 0, 0},
     .infer = infer_binary, .cost = cost_mean, .cost_text = "n inputs; special n", .kernels = mean_kernels},
    {.name = "PRelu", .since_opset = 7, .inputs = {2, 2},
     .variant = &(const element_kind){PRN_ROW_PRELU, PRN_BINARY_PRELU, PRN_TYPES_NUMBER, 2, 0},
     .infer = infer_prelu, .cost = cost_each, .cost_text = "2 n", .kernels = prelu_kernels},
    {.name = "Equal", .since_opset = 7, .inputs = {2, 2},
     .variant = &(const element_kind){.row = PRN_ROW_EQUAL, .types = PRN_TYPES_NUMBER_BOOL | PRN_TYPE(PRONY_STRING)},
     .infer = infer_comparison, .cost = cost_steps, .cost_text = "n", .kernels = equal_kernels},
    {.name = "Greater", .since_opset = 7, .inputs = {2, 2},
     .variant = &(const element_kind){.row = PRN_ROW_GREATER, .types = PRN_TYPES_NUMBER},
     .infer = infer_comparison, .cost = cost_steps, .cost_text = "n", .kernels = greater_kernels},
    {.name = "Less", .since_opset = 7, .inputs = {2, 2},
     .variant = &(const element_kind){.row = PRN_ROW_LESS, .types = PRN_TYPES_NUMBER},
     .infer = infer_comparison, .cost = cost_steps, .cost_text = "n", .kernels = less_kernels},
    {.name = "GreaterOrEqual", .since_opset = 12, .inputs = {2, 2},
     .variant = &(const element_kind){.row = PRN_ROW_GREATER_OR_EQUAL, .types = PRN_TYPES_NUMBER},
     .infer = infer_comparison, .cost = cost_steps, .cost_text = "n", .kernels = greater_or_equal_kernels},
    {.name = "LessOrEqual", .since_opset = 12, .inputs = {2, 2},
     .variant = &(const element_kind){.row = PRN_ROW_LESS_OR_EQUAL, .types = PRN_TYPES_NUMBER},
     .infer = infer_comparison, .cost = cost_steps, .cost_text = "n", .kernels = less_or_equal_kernels},
    {.name = "And", .since_opset = 7, .inputs = {2, 2}, .infer = infer_binary, .cost = prn_cost_none, .cost_text = "0",
     .variant = &(const element_kind){.row = PRN_ROW_AND, .types = PRN_TYPE(PRONY_BOOL)}, .kernels = and_kernels},
    {.name = "Or", .since_opset = 7, .inputs = {2, 2}, .infer = infer_binary, .cost = prn_cost_none, .cost_text = "0",
     .variant = &(const element_kind){.row = PRN_ROW_OR, .types = PRN_TYPE(PRONY_BOOL)}, .kernels = or_kernels},
    {.name = "Xor", .since_opset = 7, .inputs = {2, 2}, .infer = infer_binary, .cost = prn_cost_none, .cost_text = "0",
     .variant = &(const element_kind){.row = PRN_ROW_XOR, .types = PRN_TYPE(PRONY_BOOL)}, .kernels = xor_kernels},
    {.name = "BitwiseAnd", .since_opset = 18, .inputs = {2, 2},
     .variant = &(const element_kind){.row = PRN_ROW_BITWISE_AND, .types = PRN_TYPES_INTEGER},
     .infer = infer_binary, .cost = cost_steps, .cost_text = "n int_ops", .kernels = bitwise_and_kernels},
    {.name = "BitwiseOr", .since_opset = 18, .inputs = {2, 2},
     .variant = &(const element_kind){.row = PRN_ROW_BITWISE_OR, .types = PRN_TYPES_INTEGER},
     .infer = infer_binary, .cost = cost_steps, .cost_text = "n int_ops", .kernels = bitwise_or_kernels},
    {.name = "BitwiseXor", .since_opset = 18, .inputs = {2, 2},
     .variant = &(const element_kind){.row = PRN_ROW_BITWISE_XOR, .types = PRN_TYPES_INTEGER},
     .infer = infer_binary, .cost = cost_steps, .cost_text = "n int_ops", .kernels = bitwise_xor_kernels},
    {.name = "Mod", .since_opset = 10, .inputs = {2, 2},
     .params = mod_attributes, .params_bytes = sizeof(mod_params), .check = check_mod,
     .variant = &(const element_kind){.types = PRN_TYPES_NUMBER, .flops = 1, .special = 1},
     .infer = infer_binary, .cost = cost_each, .cost_text = "n; special n", .kernels = mod_kernels},
    {.name = "BitShift", .since_opset = 11, .inputs = {2, 2},
     .variant = &(const element_kind){.types = PRN_TYPES_UNSIGNED},
     .params = shift_attributes, .params_bytes = sizeof(shift_params), .check = check_shift,
     .infer = infer_binary, .cost = cost_steps, .cost_text = "n int_ops", .kernels = bit_shift_kernels},
    {.name = "Not", .since_opset = 1, .inputs = {1, 1}, .infer = infer_same, .cost = prn_cost_none, .cost_text = "0",
     .variant = &(const element_kind){.types = PRN_TYPE(PRONY_BOOL)}, .kernels = not_kernels},
    {.name = "BitwiseNot", .since_opset = 18, .inputs = {1, 1},
     .variant = &(const element_kind){.types = PRN_TYPES_INTEGER, .flops = 1},
     .infer = infer_same, .cost = cost_each, .cost_text = "n int_ops", .kernels = bitwise_not_kernels},
    {0}};
// clang-format on
