/* See twice_operator.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/twice_operator.h"

int twice_calls;

static prony_status infer(const prony_context *context)
{
    *context->outputs[0] = (prony_value){.dtype = context->inputs[0]->dtype, .shape = context->inputs[0]->shape};
    return PRONY_OK;
}

static prony_status run(const prony_context *context)
{
    const float *in = context->inputs[0]->data;
    float *out = context->outputs[0]->data;
    twice_calls++;
    for (int64_t i = 0; i < prony_shape_numel(&context->inputs[0]->shape); i++) out[i] = 2 * in[i];
    return PRONY_OK;
}

static prony_status count(const prony_context *context, prony_cost *cost)
{
    cost->flops = (uint64_t)prony_shape_numel(&context->inputs[0]->shape);
    return PRONY_OK;
}

prony_registry *twice_registry(void)
{
    prony_operator twice = PRONY_OPERATOR_INIT;
    prony_registry *registry;
    prony_error error = {0};
    twice.domain = "test";
    twice.name = "Twice";
    twice.infer = infer;
    twice.cost = count;
    twice.run = run;
    assert_int_equal(prony_registry_create(&registry, &error), PRONY_OK);
    assert_int_equal(prony_registry_add(registry, &twice, &error), PRONY_OK);
    return registry;
}
