#include "failure_trace.h"
#include "tests/support/mirror.h"
#include "engine/bind/registry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FAR_BIT ((uintptr_t)1 << 62) /* of no address that a process has */

mirror_figures mirror_use;

void mirror_reset(void)
{
    memset(&mirror_use, 0, sizeof mirror_use);
    mirror_use.room = SIZE_MAX;
}

static void *host_address(const void *far)
{
    assert_true((uintptr_t)far & FAR_BIT);
    return (void *)((uintptr_t)far ^ FAR_BIT);
}

static void *mirror_take(prn_device *device, size_t bytes)
{
    (void)device;
    if (bytes > mirror_use.room) return NULL;
    void *block = aligned_alloc(64, (bytes + 63) / 64 * 64);
    assert_non_null(block);
    memset(block, 0xA5, bytes);
    mirror_use.taken++;
    mirror_use.bytes = bytes;
    return (void *)((uintptr_t)block ^ FAR_BIT);
}

static void mirror_give(prn_device *device, void *block)
{
    (void)device;
    free(host_address(block));
    mirror_use.given++;
}

static prony_status mirror_in(prn_device *device, void *to, const void *from, size_t bytes,
                              struct prony_device_step *times, prony_error *error)
{
    (void)device, (void)times;
    mirror_use.in++;
    if (mirror_use.fails) return prn_fail(error, PRONY_IO_ERROR, "the mirror is broken");
    memcpy(host_address(to), from, bytes);
    return PRONY_OK;
}

static prony_status mirror_out(prn_device *device, void *to, const void *from, size_t bytes,
                               struct prony_device_step *times, prony_error *error)
{
    (void)device, (void)times;
    (void)error;
    mirror_use.out++;
    memcpy(to, host_address(from), bytes);
    return PRONY_OK;
}

static const prn_memory_space mirror = {"mirror", mirror_take, mirror_give, mirror_in, mirror_out},
                              other_mirror = {"other", mirror_take, mirror_give, mirror_in, mirror_out};

/* ---- operators, each with one kernel there and one on the host ---- */

static int64_t count_of(const prony_context *context)
{
    return prony_shape_numel(&context->inputs[0]->shape);
}

static prony_status infer(const prony_context *context)
{
    prn_set_output(context, 0, context->inputs[0]->dtype, &context->inputs[0]->shape);
    prn_set_output(context, 1, context->inputs[0]->dtype, &(prony_shape){0});
    return PRONY_OK;
}

static prony_status no_cost(const prony_context *context, prony_cost *cost)
{
    return prn_cost_none(context, cost);
}

static prony_status negate(const prony_context *context, const float *x, float *y)
{
    for (int64_t i = 0; i < count_of(context); i++) y[i] = -x[i];
    return PRONY_OK;
}

static prony_status far_negate(const prony_context *context)
{
    return negate(context, host_address(context->inputs[0]->data), host_address(context->outputs[0]->data));
}

static prony_status near_negate(const prony_context *context)
{
    if (context->inputs[0]->dtype == PRONY_FLOAT32)
        return negate(context, context->inputs[0]->data, context->outputs[0]->data);
    const double *x = context->inputs[0]->data;
    double *y = context->outputs[0]->data;
    for (int64_t i = 0; i < count_of(context); i++) y[i] = -x[i];
    return PRONY_OK;
}

static prony_status far_add(const prony_context *context)
{
    const float *a = host_address(context->inputs[0]->data), *b = host_address(context->inputs[1]->data);
    float *y = host_address(context->outputs[0]->data);
    for (int64_t i = 0; i < count_of(context); i++) y[i] = a[i] + b[i];
    return PRONY_OK;
}

/* x in the mirror times a factor on the host, and its sum on the host. */
static prony_status far_scale(const prony_context *context)
{
    const float *x = host_address(context->inputs[0]->data), *factor = context->inputs[1]->data;
    float *y = host_address(context->outputs[0]->data), *sum = context->outputs[1]->data;
    *sum = 0;
    for (int64_t i = 0; i < count_of(context); i++) *sum += y[i] = x[i] * *factor;
    return PRONY_OK;
}

// clang-format off
static const prn_kernel negate_kernels[] = {{.name = "negate_mirror", .backend = "mirror", .types = PRN_TYPE_F32, .run = far_negate, .memory_space = &mirror},
                                            {.name = "negate_host", .backend = "native", .types = PRN_TYPE_F32 | PRN_TYPE(PRONY_FLOAT64), .run = near_negate},
                                            {0}},
                        text_kernels[] = {{.name = "text_mirror", .backend = "mirror", .run = far_negate, .memory_space = &mirror}, {0}},
                        other_kernels[] = {{.name = "negate_other", .backend = "mirror", .run = far_negate, .memory_space = &other_mirror}, {0}},
                        add_kernels[] = {{.name = "add_mirror", .backend = "mirror", .run = far_add, .memory_space = &mirror}, {0}},
                        scale_kernels[] = {{.name = "scale_mirror", .backend = "mirror", .run = far_scale, .memory_space = &mirror,
                                            .host_inputs = 2, .host_outputs = 2},
                                           {0}};
// clang-format on
static const struct {
    const char *name;
    const prn_kernel *kernels;
} operators[] = {{"Far", negate_kernels},
                 {"Text", text_kernels},
                 {"Other", other_kernels},
                 {"Sum", add_kernels},
                 {"Scale", scale_kernels}};

/* Added operators have their own kernels, not the one that calls a user's function. */
prony_registry *mirror_registry(void)
{
    prony_registry *made = NULL;
    assert_int_equal(prony_registry_create(&made, NULL), PRONY_OK);
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        SCENARIO_NAMED(i, operators[i].name);
        prony_operator o = PRONY_OPERATOR_INIT;
        o.domain = "test";
        o.name = operators[i].name;
        o.infer = infer;
        o.cost = no_cost;
        o.run = near_negate;
        assert_int_equal(prony_registry_add(made, &o, NULL), PRONY_OK);
        prn_op *op = (prn_op *)(uintptr_t)prn_registry_find(made, "test", operators[i].name, 1).op;
        op->kernels = operators[i].kernels;
        op->flags = 0;
    }
    return made;
}
