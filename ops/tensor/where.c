/* Where: picks elements of one of two operands, three-way broadcasting, any type that moves in whole bytes. */
#include "ops/kernels/copy/broadcast.h"
#include "ops/kernels/copy/copy_nd.h"
#include "ops/kernels/vector/element_rows.h"
#include "ops/vendor/opencl/opencl_map.h"

typedef struct where_job {
    const prn_broadcast *walk;
    size_t width;
    const uint8_t *condition;
    const char *x, *y;
    char *out;
} where_job;

static void pick_texts(prony_string *to, const uint8_t *c, const prony_string *x, const prony_string *y, int64_t n,
                       int64_t c_step, int64_t x_step, int64_t y_step)
{
    for (int64_t i = 0; i < n; i++) to[i] = c[i * c_step] ? x[i * x_step] : y[i * y_step];
}

static void pick_row(void *argument, const int64_t offset[PRN_BROADCAST_INPUTS], int64_t out, int64_t at, int64_t n)
{
    const where_job *job = argument;
    const int inner = job->walk->rank - 1;
    const int64_t width = (int64_t)job->width, c_step = job->walk->stride[0][inner];
    const int64_t x_step = job->walk->stride[1][inner], y_step = job->walk->stride[2][inner];
    const uint8_t *c = job->condition + offset[0] + at * c_step;
    const void *x = job->x + (offset[1] + at * x_step) * width, *y = job->y + (offset[2] + at * y_step) * width;
    void *to = job->out + out * width;
    if (width > 8)
        pick_texts(to, c, x, y, n, c_step, x_step, y_step);
    else
        prn_element_rows_table()->pick[__builtin_ctz((unsigned)width)](to, c, x, y, n, c_step, x_step, y_step);
}

static prony_status run_where(const prony_context *context)
{
    const prony_value *condition = context->inputs[0], *x = context->inputs[1], *y = context->inputs[2];
    prn_broadcast walk;
    prn_broadcast_begin(&walk, context->outputs[0]);
    for (size_t i = 0; i < 3; i++) prn_broadcast_add(&walk, context->inputs[i]);
    prn_broadcast_merge(&walk);
    where_job job = {&walk, prn_copy_width(x->dtype), condition->data, x->data, y->data, context->outputs[0]->data};
    prn_broadcast_parallel(&walk, context->threads, pick_row, &job);
    return PRONY_OK;
}

static prony_status infer_where(const prony_context *context)
{
    const prony_value *condition = context->inputs[0], *x = context->inputs[1], *y = context->inputs[2];
    char left[PRN_SHAPE_TEXT_BYTES], right[PRN_SHAPE_TEXT_BYTES], third[PRN_SHAPE_TEXT_BYTES];
    PRN_TRY(prn_check_type(context, 0, PRN_TYPE(PRONY_BOOL)));
    PRN_TRY(prn_check_movable(context, 1));
    if (x->dtype != y->dtype) {
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "input 1 is %s but input 2 is %s", prn_value_text(x, left),
                          prn_value_text(y, right));
    }
    prony_shape both, all;
    if (!prn_shape_broadcast(&both, &x->shape, &y->shape) || !prn_shape_broadcast(&all, &both, &condition->shape)) {
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "shapes %s, %s and %s do not broadcast",
                          prn_shape_text(&condition->shape, third), prn_shape_text(&x->shape, left),
                          prn_shape_text(&y->shape, right));
    }
    prn_set_output(context, 0, x->dtype, &all);
    return PRONY_OK;
}

#ifdef PRN_HAVE_OPENCL
static bool where_opencl_supported(const prony_context *context)
{
    return context->inputs[1]->dtype == PRONY_FLOAT32 && prn_opencl_map_supported(context);
}
#endif

// clang-format off
static const prn_kernel where_kernels[] = {
    PRN_OPENCL_ROW("where_f32_opencl", PRN_TYPE(PRONY_BOOL), where_opencl_supported, prn_opencl_pick_prepare)
    {.name = "where_reference", .backend = "reference", .run = run_where, .inplace = 6}, {0}};

const prn_op prn_ops_where[] = {
    {.name = "Where", .since_opset = 9, .inputs = {3, 3},
     .infer = infer_where, .cost = prn_cost_none, .cost_text = "0", .kernels = where_kernels},
    {0}};
// clang-format on
