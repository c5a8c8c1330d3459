/* Binary and variadic elementwise operators with multidirectional broadcasting: arithmetic, comparisons, logic, bits.
 * Every type has the row loops of element_rows.h; float32 arithmetic has vector kernels that also take NHWC and blocked
 * operands. Owns nothing. Invariant: an element's result depends on its operands alone. */
#include "base/parallel.h"
#include "ops/loops/broadcast.h"
#include "ops/loops/copy_nd.h"
#include "ops/loops/element_rows.h"
#include "ops/loops/elementwise.h"
#include "ops/loops/number.h"

#include <string.h>

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

static void run_row(void *argument, const int64_t offset[PRN_BROADCAST_INPUTS], int64_t out, int64_t at, int64_t n)
{
    const row_job *job = argument;
    const int inner = job->walk->rank - 1;
    const int64_t a_step = job->walk->stride[0][inner], b_step = job->walk->stride[1][inner];
    const void *a = prn_block_at(job->a, job->in, offset[0] + at * a_step);
    const void *b = prn_block_at(job->b, job->in, offset[1] + at * b_step);
    void *y = job->y + prony_dtype_bytes(job->out, out);
    if (job->in == PRONY_STRING) {
        equal_texts(y, a, b, n, a_step, b_step);
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
    prn_broadcast_parallel(&walk, context->threads, run_row, &job);
}

static void copy_single(const prony_context *context)
{
    const prony_value *in = context->inputs[0];
    prn_copy_bytes(context->threads, in->data, context->outputs[0]->data, prn_layout_bytes(in));
}

static prony_status run_rows(const prony_context *context, prn_row_op op)
{
    if (context->input_count == 1) copy_single(context);
    for (size_t i = 1; i < context->input_count; i++) {
        step_rows(context, op, i == 1 ? context->inputs[0] : context->outputs[0], context->inputs[i]);
    }
    return PRONY_OK;
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

static void step_vec(const prony_context *context, prn_binary_id op, const prony_value *a, const prony_value *b)
{
    prony_value *out = context->outputs[0];
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
    PRN_TRY(run_rows(context, PRN_ROW_ADD));
    step_rows(context, PRN_ROW_DIV, context->outputs[0], &count);
    return PRONY_OK;
}

static prony_status run_mean_vec(const prony_context *context)
{
    double storage;
    const prony_value count = count_operand(context, &storage);
    PRN_TRY(prn_run_binary_f32(context, PRN_BINARY_ADD));
    step_vec(context, PRN_BINARY_DIV, context->outputs[0], &count);
    return PRONY_OK;
}

/* ---- inference and cost */

static prony_status infer_numbers(const prony_context *context, uint32_t types)
{
    PRN_TRY(prn_check_type(context, 0, types));
    return prn_infer_broadcast(context);
}

static prony_status infer_comparison(const prony_context *context, uint32_t types)
{
    PRN_TRY(infer_numbers(context, types));
    context->outputs[0]->dtype = PRONY_BOOL;
    return PRONY_OK;
}

static prony_status infer_prelu(const prony_context *context)
{
    const prony_shape *shape = &context->inputs[0]->shape;
    PRN_TRY(infer_numbers(context, PRN_TYPES_NUMBER));
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

static prony_status cost_division(const prony_context *context, prony_cost *cost)
{
    return prn_cost_map(context, cost, 1, 1, 0);
}

static prony_status cost_mean(const prony_context *context, prony_cost *cost)
{
    return prn_cost_map(context, cost, context->input_count, 1, 0);
}

static prony_status cost_bitwise_not(const prony_context *context, prony_cost *cost)
{
    return prn_cost_map(context, cost, 1, 0, 0);
}

static prony_status cost_prelu(const prony_context *context, prony_cost *cost)
{
    return prn_cost_map(context, cost, 2, 0, 0);
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

static prony_status run_mod(const prony_context *context)
{
    const mod_params *params = context->params;
    return run_rows(context, params->fmod ? PRN_ROW_FMOD : PRN_ROW_MOD);
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
    return run_rows(context, params->direction[0] == 'L' ? PRN_ROW_SHIFT_LEFT : PRN_ROW_SHIFT_RIGHT);
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

static prony_status infer_not(const prony_context *context)
{
    PRN_TRY(prn_check_type(context, 0, PRN_TYPE(PRONY_BOOL)));
    return prn_infer_same(context);
}

static prony_status infer_bitwise_not(const prony_context *context)
{
    PRN_TRY(prn_check_type(context, 0, PRN_TYPES_INTEGER));
    return prn_infer_same(context);
}

/* ---- descriptors */

#define FIXED_FIELDS(op_name, opset)                                                                                   \
    .name = op_name, .domain = "", .since_opset = opset, .outputs.least = 1, .outputs.most = 1

#define RUN_ROWS(symbol, id)                                                                                           \
    static prony_status run_##symbol##_rows(const prony_context *context)                                              \
    {                                                                                                                  \
        return run_rows(context, id);                                                                                  \
    }
#define RUN_VEC(symbol, id)                                                                                            \
    static prony_status run_##symbol##_vec(const prony_context *context)                                               \
    {                                                                                                                  \
        return prn_run_binary_f32(context, id);                                                                        \
    }
#define INFER(symbol, how, types)                                                                                      \
    static prony_status infer_##symbol(const prony_context *context)                                                   \
    {                                                                                                                  \
        return how(context, types);                                                                                    \
    }

INFER(arithmetic, infer_numbers, PRN_TYPES_NUMBER)
INFER(floats, infer_numbers, PRN_TYPES_FLOAT)
INFER(integers, infer_numbers, PRN_TYPES_INTEGER)
INFER(unsigned, infer_numbers, PRN_TYPES_UNSIGNED)
INFER(logic, infer_numbers, PRN_TYPE(PRONY_BOOL))
INFER(order, infer_comparison, PRN_TYPES_NUMBER)
INFER(equality, infer_comparison, PRN_TYPES_NUMBER_BOOL | PRN_TYPE(PRONY_STRING))

RUN_ROWS(add, PRN_ROW_ADD)
RUN_ROWS(sub, PRN_ROW_SUB)
RUN_ROWS(mul, PRN_ROW_MUL)
RUN_ROWS(div, PRN_ROW_DIV)
RUN_ROWS(min, PRN_ROW_MIN)
RUN_ROWS(max, PRN_ROW_MAX)
RUN_ROWS(prelu, PRN_ROW_PRELU)
RUN_VEC(add, PRN_BINARY_ADD)
RUN_VEC(sub, PRN_BINARY_SUB)
RUN_VEC(mul, PRN_BINARY_MUL)
RUN_VEC(div, PRN_BINARY_DIV)
RUN_VEC(min, PRN_BINARY_MIN)
RUN_VEC(max, PRN_BINARY_MAX)
RUN_VEC(prelu, PRN_BINARY_PRELU)

/* Operators with float32 vector kernels; most -1: variadic. */
#define FAST_OPERATOR(symbol, op_name, opset, at_most, infer_function, cost_function, text, runner)                       \
    static const prn_kernel symbol##_kernels[] = {                                                                     \
        {.name = #symbol "_f32_native",                                                                                \
         .backend = "native",                                                                                          \
         .types = PRN_TYPE_F32,                                                                                        \
         .layouts = prn_broadcast_layouts,                                                                             \
         .run = runner##_vec,                                                                                          \
         .inplace = 3},                                                                                                \
        {.name = #symbol "_reference", .backend = "reference", .run = runner##_rows, .inplace = 3},                    \
        {0}};                                                                                                          \
    const prn_op prn_op_##symbol = {FIXED_FIELDS(op_name, opset), .inputs.least = (at_most) == 2 ? 2 : 1,                   \
                                    .inputs.most = at_most,           .infer = infer_function,                             \
                                    .cost = cost_function,        .cost_text = text,                                   \
                                    .kernels = symbol##_kernels};

FAST_OPERATOR(add, "Add", 7, 2, infer_arithmetic, cost_steps, "n", run_add)
FAST_OPERATOR(sub, "Sub", 7, 2, infer_arithmetic, cost_steps, "n", run_sub)
FAST_OPERATOR(mul, "Mul", 7, 2, infer_arithmetic, cost_steps, "n", run_mul)
FAST_OPERATOR(div, "Div", 7, 2, infer_arithmetic, cost_division, "n; special n", run_div)
FAST_OPERATOR(min, "Min", 1, -1, infer_arithmetic, cost_steps, "n (inputs - 1)", run_min)
FAST_OPERATOR(max, "Max", 1, -1, infer_arithmetic, cost_steps, "n (inputs - 1)", run_max)
FAST_OPERATOR(sum, "Sum", 1, -1, infer_floats, cost_steps, "n (inputs - 1)", run_add)
FAST_OPERATOR(mean, "Mean", 1, -1, infer_floats, cost_mean, "n inputs; special n", run_mean)
FAST_OPERATOR(prelu, "PRelu", 7, 2, infer_prelu, cost_prelu, "2 n", run_prelu)

/* The others have the reference alone. */
#define PLAIN_OPERATOR(symbol, op_name, opset, operands, infer_function, cost_function, text, run_function, ...)       \
    static const prn_kernel symbol##_kernels[] = {                                                                     \
        {.name = #symbol "_reference", .backend = "reference", .run = run_function}, {0}};                             \
    const prn_op prn_op_##symbol = {FIXED_FIELDS(op_name, opset),                                                      \
                                    .inputs.least = operands,                                                            \
                                    .inputs.most = operands,                                                            \
                                    .infer = infer_function,                                                           \
                                    .cost = cost_function,                                                             \
                                    .cost_text = text,                                                                 \
                                    .kernels = symbol##_kernels __VA_OPT__(, ) __VA_ARGS__};
#define ROWS_OPERATOR(symbol, id, op_name, opset, infer_function, cost_function, text)                                 \
    RUN_ROWS(symbol, PRN_ROW_##id)                                                                                     \
    PLAIN_OPERATOR(symbol, op_name, opset, 2, infer_function, cost_function, text, run_##symbol##_rows)

ROWS_OPERATOR(equal, EQUAL, "Equal", 7, infer_equality, cost_steps, "n")
ROWS_OPERATOR(greater, GREATER, "Greater", 7, infer_order, cost_steps, "n")
ROWS_OPERATOR(less, LESS, "Less", 7, infer_order, cost_steps, "n")
ROWS_OPERATOR(greater_or_equal, GREATER_OR_EQUAL, "GreaterOrEqual", 12, infer_order, cost_steps, "n")
ROWS_OPERATOR(less_or_equal, LESS_OR_EQUAL, "LessOrEqual", 12, infer_order, cost_steps, "n")
ROWS_OPERATOR(and, AND, "And", 7, infer_logic, prn_cost_none, "0")
ROWS_OPERATOR(or, OR, "Or", 7, infer_logic, prn_cost_none, "0")
ROWS_OPERATOR(xor, XOR, "Xor", 7, infer_logic, prn_cost_none, "0")
ROWS_OPERATOR(bitwise_and, BITWISE_AND, "BitwiseAnd", 18, infer_integers, cost_steps, "n int_ops")
ROWS_OPERATOR(bitwise_or, BITWISE_OR, "BitwiseOr", 18, infer_integers, cost_steps, "n int_ops")
ROWS_OPERATOR(bitwise_xor, BITWISE_XOR, "BitwiseXor", 18, infer_integers, cost_steps, "n int_ops")

PLAIN_OPERATOR(mod, "Mod", 10, 2, infer_arithmetic, cost_division, "n; special n", run_mod, .check = check_mod,
               .params = mod_attributes, .params_bytes = sizeof(mod_params))
PLAIN_OPERATOR(bit_shift, "BitShift", 11, 2, infer_unsigned, cost_steps, "n int_ops", run_shift,
               .params = shift_attributes, .params_bytes = sizeof(shift_params), .check = check_shift)
PLAIN_OPERATOR(not, "Not", 1, 1, infer_not, prn_cost_none, "0", run_not)
PLAIN_OPERATOR(bitwise_not, "BitwiseNot", 18, 1, infer_bitwise_not, cost_bitwise_not, "n int_ops", run_not)
