#include "coded_graph.h"

#include "rewrite_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static uint32_t state = 1;

void cg_seed(uint32_t seed)
{
    state = seed;
}

static int32_t cg_next(int32_t low, int32_t high)
{
    state = state * 1664525u + 1013904223u;
    return low + (int32_t)((state >> 8) % (uint32_t)(high - low + 1));
}

void cg_zero(model_builder *m, const char *name, prony_dtype type, int value)
{
    const int8_t byte = (int8_t)value;
    mb_initializer(m, name, type, "", &byte);
}

void cg_pair(model_builder *m, const char *from, const char *to, prony_dtype type, float step, int point)
{
    cg_pair_of(m, "", from, to, type, step, point);
}

void cg_pair_of(model_builder *m, const char *domain, const char *from, const char *to, prony_dtype type, float step,
                int point)
{
    char names[3][48], ops[2][48], inputs[160];
    snprintf(ops[0], sizeof ops[0], "%sQuantizeLinear", domain);
    snprintf(ops[1], sizeof ops[1], "%sDequantizeLinear", domain);
    snprintf(names[0], sizeof names[0], "%s_scale", to);
    snprintf(names[1], sizeof names[1], "%s_zero", to);
    snprintf(names[2], sizeof names[2], "%s_q", to);
    rc_scalar(m, names[0], step);
    cg_zero(m, names[1], type, point);
    snprintf(inputs, sizeof inputs, "%s %s %s", from, names[0], names[1]);
    mb_node(m, ops[0], inputs, names[2], "");
    snprintf(inputs, sizeof inputs, "%s %s %s", names[2], names[0], names[1]);
    mb_node(m, ops[1], inputs, to, "");
}

void cg_codes_along(model_builder *m, const char *axis, const char *name, prony_dtype type, const char *dims, int count,
                    int scales, float step)
{
    int8_t bytes[4096];
    int32_t words[64];
    float steps[64];
    char names[2][48], text[16], inputs[112];
    assert_true(count <= 4096 && scales <= 64 && (type == PRONY_INT8 || count <= 64));
    for (int i = 0; i < count; i++) bytes[i] = (int8_t)cg_next(-64, 64);
    for (int i = 0; i < count && i < 64; i++) words[i] = cg_next(-2000, 2000);
    for (int i = 0; i < scales; i++) steps[i] = i % 2 ? step : step * 2;
    snprintf(names[0], sizeof names[0], "%s_codes", name);
    snprintf(names[1], sizeof names[1], "%s_scale", name);
    snprintf(text, sizeof text, "%d", scales);
    mb_initializer(m, names[0], type, dims, type == PRONY_INT8 ? (const void *)bytes : (const void *)words);
    mb_initializer(m, names[1], PRONY_FLOAT32, scales == 1 ? "" : text, steps);
    snprintf(inputs, sizeof inputs, "%s %s", names[0], names[1]);
    mb_node(m, "DequantizeLinear", inputs, name, axis);
}

void cg_codes(model_builder *m, const char *name, prony_dtype type, const char *dims, int count, int scales, float step)
{
    cg_codes_along(m, "axis=0", name, type, dims, count, scales, step);
}
