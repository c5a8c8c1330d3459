/* Operators on an OpenCL device beside the host's: copies, elements, indices. Each case is a model of one node, run on
 * both, at odd and degenerate shapes. Skipped where no device is found. */
#include "failure_trace.h"
#include "base/shape.h"
#include "engine/session/session.h"
#include "ops/device.h"
#include "prony_device.h"
#include "tests/support/device_here.h"
#include "tests/support/model_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- cases ---- */

enum { MOST_OPERANDS = 5 };

typedef enum expected { ON_DEVICE, ON_HOST } expected;

/* Operands are separated by spaces, "?" is an omitted one: TYPE:DIMS for an input of the graph, which has elements by
 * number, TYPE:DIMS=ELEMENTS for a constant. TYPE is F (float32), f (without infinities and NaN), B, I (int64), J (int32) or
 * U (uint8). */
typedef struct node_case {
    const char *op;
    int64_t opset;
    const char *attributes;
    expected where;
    double tolerance; /* times the larger of 1 and the element; 0: the same bits */
    const char *operands;
    size_t outputs;
} node_case;

typedef struct operand {
    bool present, finite, constant;
    prony_dtype dtype;
    char dims[64];
    const char *contents;
} operand;

/* Reads the operand at *text, and moves behind it. */
static operand next_operand(const char **text)
{
    static const struct {
        char letter;
        prony_dtype dtype;
    } types[] = {{'F', PRONY_FLOAT32}, {'f', PRONY_FLOAT32}, {'B', PRONY_BOOL},
                 {'I', PRONY_INT64},   {'J', PRONY_INT32},   {'U', PRONY_UINT8}};
    operand o = {.finite = **text == 'f'};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (**text == types[i].letter) o.dtype = types[i].dtype, o.present = true;
    *text += o.present ? 2 : 1;
    const size_t dims = strcspn(*text, "= ");
    assert_true(dims < sizeof o.dims);
    memcpy(o.dims, *text, dims);
    *text += dims;
    o.constant = **text == '=';
    o.contents = *text + 1;
    *text += strcspn(*text, " ");
    *text += **text == ' ';
    return o;
}

static double element_of(prony_dtype dtype, size_t i, bool finite)
{
    static const double special[] = {NAN, INFINITY, -INFINITY, -0.0, 0.0, 1e-42, 3e9, -3e9, 0.5, -0.5, 2.5, 1e20};
    const unsigned mixed = (unsigned)i * 2654435761u;
    if (dtype == PRONY_BOOL) return mixed >> 13 & 1;
    if (dtype != PRONY_FLOAT32) return (double)((mixed >> 8) % 251) - (dtype == PRONY_UINT8 ? 0.0 : 120.0);
    if (i % 7 == 3 && !finite) return special[i / 7 % (sizeof special / sizeof *special)];
    return (double)((mixed >> 8) % 2001) / 250.0 - 4.0;
}

static void put(void *data, prony_dtype dtype, size_t i, double x)
{
    if (dtype == PRONY_FLOAT32) ((float *)data)[i] = (float)x;
    if (dtype == PRONY_INT64) ((int64_t *)data)[i] = (int64_t)x;
    if (dtype == PRONY_INT32) ((int32_t *)data)[i] = (int32_t)x;
    if (dtype == PRONY_BOOL || dtype == PRONY_UINT8) ((uint8_t *)data)[i] = (uint8_t)x;
}

/* The elements of an operand; the caller frees them. */
static void *elements_of(const operand *o)
{
    const prony_shape shape = mr_shape(o->dims);
    const size_t count = (size_t)prony_shape_numel(&shape);
    void *data = calloc(count + 1, 8);
    assert_non_null(data);
    const char *at = o->contents;
    for (size_t i = 0; i < count; i++) {
        char *end = NULL;
        put(data, o->dtype, i, o->constant ? strtod(at, &end) : element_of(o->dtype, i, o->finite));
        at = o->constant ? end + (*end == ',') : NULL;
    }
    return data;
}

/* ---- running ---- */

typedef struct opened {
    model_run run;
    size_t count;
    operand operands[MOST_OPERANDS];
    void *data[MOST_OPERANDS];
} opened;

static void open_case(opened *o, const node_case *c, const char *device)
{
    static const char *const names[] = {"a", "b", "c", "d", "e"}, *const results[] = {"w", "x", "y", "z"};
    char inputs[32] = "", outputs[32] = "";
    model_builder *m = mb_begin(c->opset);
    mb_opset(m, "com.microsoft", 1);
    *o = (opened){0};
    for (const char *text = c->operands; *text; o->count++) {
        assert_true(o->count < MOST_OPERANDS);
        const operand in = o->operands[o->count] = next_operand(&text);
        strcat(strcat(inputs, o->count ? " " : ""), in.present ? names[o->count] : "?");
        if (!in.present) continue;
        o->data[o->count] = elements_of(&in);
        if (in.constant)
            mb_initializer(m, names[o->count], in.dtype, in.dims, o->data[o->count]);
        else
            mb_input(m, names[o->count], in.dtype, in.dims);
    }
    for (size_t k = 0; k < c->outputs; k++) strcat(strcat(outputs, k ? " " : ""), results[k]);
    mb_node(m, c->op, inputs, outputs, c->attributes);
    for (size_t k = 0; k < c->outputs; k++) mb_output(m, results[k], PRONY_UNDEFINED, NULL);
    o->run.options.device = device;
    mr_open(&o->run, m);
    for (size_t i = 0; i < o->count; i++)
        if (o->operands[i].present && !o->operands[i].constant)
            mr_set(&o->run, names[i], o->operands[i].dtype, o->operands[i].dims, o->data[i]);
}

static void close_case(opened *o)
{
    mr_close(&o->run);
    for (size_t i = 0; i < MOST_OPERANDS; i++) free(o->data[i]);
}

static bool has_device_step(const model_run *r)
{
    const prn_plan *plan = r->session->current->plan;
    for (size_t s = 0; s < plan->step_count; s++)
        if (plan->steps[s]->kernel && strcmp(plan->steps[s]->kernel->backend, "opencl") == 0) return true;
    return false;
}

static bool alike(float host, float device, double tolerance)
{
    if (isnan(host) || isnan(device)) return isnan(host) && isnan(device);
    if (isinf(host) || isinf(device)) return host == device;
    const double size = fabs((double)host) > 1.0 ? fabs((double)host) : 1.0;
    return fabs((double)host - (double)device) <= tolerance * size;
}

static void compare(const node_case *c, const prony_value *host, const prony_value *device)
{
    char left[PRN_SHAPE_TEXT_BYTES], right[PRN_SHAPE_TEXT_BYTES];
    if (host->dtype != device->dtype || !prn_shape_equal(&host->shape, &device->shape))
        fail_msg("%s: host %s, device %s", c->op, prn_value_text(host, left), prn_value_text(device, right));
    const size_t count = (size_t)prony_shape_numel(&host->shape);
    if (c->tolerance == 0.0 || host->dtype != PRONY_FLOAT32) {
        if (memcmp(host->data, device->data, prn_value_bytes(host)) == 0) return;
        for (size_t i = 0; i < count && host->dtype == PRONY_FLOAT32; i++)
            if (memcmp((float *)host->data + i, (float *)device->data + i, 4) != 0)
                fail_msg("%s (%s): element %zu is %.9g on the host, %.9g on the device", c->op, c->attributes, i,
                         (double)((float *)host->data)[i], (double)((float *)device->data)[i]);
        fail_msg("%s (%s): bytes differ", c->op, c->attributes);
    }
    for (size_t i = 0; i < count; i++) {
        const float wanted = ((float *)host->data)[i], got = ((float *)device->data)[i];
        if (!alike(wanted, got, c->tolerance))
            fail_msg("%s (%s): element %zu is %.9g on the host, %.9g on the device", c->op, c->attributes, i,
                     (double)wanted, (double)got);
    }
}

/* Two runs on the device, which give the same bytes, beside one on the host. */
static void check_case(const node_case *c)
{
    opened host, device;
    open_case(&host, c, NULL);
    open_case(&device, c, "opencl");
    for (int run = 0; run < 2; run++) {
        mr_run(&host.run, 0);
        mr_run(&device.run, 0);
        for (size_t k = 0; k < c->outputs; k++) compare(c, mr_output(&host.run, k), mr_output(&device.run, k));
    }
    if (has_device_step(&device.run) != (c->where == ON_DEVICE))
        fail_msg("%s (%s) ran on the %s", c->op, c->attributes, c->where == ON_DEVICE ? "host" : "device");
    close_case(&host);
    close_case(&device);
}

#define CHECK(cases)                                                                                                   \
    do {                                                                                                               \
        (void)state;                                                                                                   \
        if (!device_here()) skip();                                                                                    \
        for (size_t i = 0; i < sizeof(cases) / sizeof *(cases); i++) {                                                 \
            SCENARIO_NAMED(i, (cases)[i].op);                                                                          \
            check_case(&(cases)[i]);                                                                                   \
        }                                                                                                              \
    } while (0)

// clang-format off

/* ---- copies ---- */

static void test_permutations(void **state)
{
    static const node_case cases[] = {
        {"Transpose", 13, "perm=[0,2,1]", ON_DEVICE, 0, "F:2,3,5", 1},
        {"Transpose", 13, "", ON_DEVICE, 0, "F:7,5", 1},
        {"Transpose", 13, "perm=[3,1,0,2]", ON_DEVICE, 0, "F:2,3,1,5", 1},
        {"Transpose", 13, "perm=[0,2,3,1]", ON_DEVICE, 0, "F:1,3,4,5", 1},
        {"Transpose", 13, "perm=[4,0,3,1,2]", ON_DEVICE, 0, "F:2,3,4,5,3", 1},
        {"Transpose", 13, "perm=[1,0]", ON_DEVICE, 0, "B:3,5", 1},
        {"Transpose", 13, "perm=[1,0]", ON_HOST, 0, "I:3,5", 1},
        {"Transpose", 13, "perm=[1,0]", ON_HOST, 0, "F:0,5", 1},
        {"Transpose", 13, "", ON_DEVICE, 0, "F:2,1,2,1,2,1,2,1,2", 1},
        {"Transpose", 13, "", ON_HOST, 0, "F:2,1,2,1,2,1,2,1,2,3", 1},
        {"DepthToSpace", 13, "blocksize=2", ON_DEVICE, 0, "F:2,8,3,5", 1},
        {"DepthToSpace", 13, "blocksize=3 mode='CRD'", ON_DEVICE, 0, "F:1,18,2,3", 1},
        {"DepthToSpace", 13, "blocksize=1", ON_DEVICE, 0, "F:1,3,2,3", 1},
        {"SpaceToDepth", 13, "blocksize=2", ON_DEVICE, 0, "F:2,3,4,6", 1},
    };
    CHECK(cases);
}

static void test_joins(void **state)
{
    static const node_case cases[] = {
        {"Concat", 13, "axis=1", ON_DEVICE, 0, "F:2,3,5 F:2,1,5 F:2,4,5", 1},
        {"Concat", 13, "axis=0", ON_DEVICE, 0, "F:3 F:1 F:7", 1},
        {"Concat", 13, "axis=-1", ON_DEVICE, 0, "F:2,3 F:2,1=1,2", 1},
        {"Concat", 13, "axis=0", ON_HOST, 0, "F:2,3", 1}, /* a view */
        {"Concat", 13, "axis=1", ON_HOST, 0, "F:2,3 F:2,0", 1},
        {"Concat", 13, "axis=0", ON_HOST, 0, "I:2 I:3", 1},
        {"Split", 13, "axis=1", ON_DEVICE, 0, "F:2,7,3 I:3=1,4,2", 3},
        {"Split", 13, "axis=-1", ON_DEVICE, 0, "F:2,6", 2},
        {"Split", 18, "axis=0 num_outputs=2", ON_DEVICE, 0, "F:5,2", 2},
        {"Split", 11, "axis=1 split=[2,5]", ON_DEVICE, 0, "F:3,7", 2},
        {"Split", 13, "axis=0", ON_HOST, 0, "F:4,2 I:2=4,0", 2},
    };
    CHECK(cases);
}

static void test_windows(void **state)
{
    static const node_case cases[] = {
        {"Slice", 13, "", ON_DEVICE, 0, "F:5,7 I:2=1,2 I:2=4,100", 1},
        {"Slice", 13, "", ON_DEVICE, 0, "F:5,7 I:1=-1 I:1=-100 I:1=1 I:1=-1", 1},
        {"Slice", 13, "", ON_DEVICE, 0, "F:5,7 I:2=4,6 I:2=-100,1 I:2=0,1 I:2=-1,-2", 1},
        {"Slice", 13, "", ON_DEVICE, 0, "F:3,8,3 I:1=1 I:1=8 I:1=1 I:1=3", 1},
        {"Slice", 13, "", ON_DEVICE, 0, "F:9 J:1=-2 J:1=9 J:1=0 J:1=2147483647", 1},
        {"Slice", 9, "starts=[1,0] ends=[3,2] axes=[1,2]", ON_DEVICE, 0, "F:2,4,3", 1},
        {"Slice", 13, "", ON_HOST, 0, "F:5,7 I:1=3 I:1=3", 1},
        {"Slice", 13, "", ON_HOST, 0, "F:5,7 I:1 I:1=100", 1},
        {"Slice", 13, "", ON_HOST, 0, "I:5 I:1=1 I:1=3", 1},
        {"Expand", 13, "", ON_DEVICE, 0, "F:3,1 I:3=2,1,5", 1},
        {"Expand", 13, "", ON_DEVICE, 0, "F:1 I:2=3,5", 1},
        {"Expand", 13, "", ON_DEVICE, 0, "F: I:1=7", 1},
        {"Expand", 13, "", ON_DEVICE, 0, "B:1,4 I:3=2,3,4", 1},
        {"Expand", 13, "", ON_HOST, 0, "F:1 I:1=0", 1},
        {"Tile", 13, "", ON_DEVICE, 0, "F:2,3 I:2=3,2", 1},
        {"Tile", 13, "", ON_DEVICE, 0, "F:2,1,3,1,2,1,2,1,2 I:9=2,3,1,2,2,2,1,2,2", 1},
        {"Tile", 13, "", ON_HOST, 0, "F:2,3 I:2=0,2", 1},
    };
    CHECK(cases);
}

static void test_paddings(void **state)
{
    static const node_case cases[] = {
        {"Pad", 13, "", ON_DEVICE, 0, "F:2,3 I:4=1,2,0,3 F:=1.5", 1},
        {"Pad", 13, "", ON_DEVICE, 0, "F:2,3 I:4=0,1,0,0", 1},
        {"Pad", 13, "", ON_DEVICE, 0, "F:4,5 I:4=-1,2,3,-2 F:1=-7", 1},
        {"Pad", 13, "mode='edge'", ON_DEVICE, 0, "F:1,2,3,4 I:8=0,0,2,1,0,0,1,5", 1},
        {"Pad", 13, "mode='reflect'", ON_DEVICE, 0, "F:3,4 I:4=2,7,4,9", 1},
        {"Pad", 13, "mode='reflect'", ON_DEVICE, 0, "F:1,4 I:4=2,0,1,1", 1},
        {"Pad", 19, "mode='wrap'", ON_DEVICE, 0, "F:3,4 I:4=4,1,5,9", 1},
        {"Pad", 19, "mode='wrap'", ON_DEVICE, 0, "F:5,4 I:4=-2,1,5,-1", 1},
        {"Pad", 18, "", ON_DEVICE, 0, "F:3,4,2 I:2=1,2 F:=0.25 I:1=-2", 1},
        {"Pad", 10, "pads=[1,0,0,2] value=2.5", ON_DEVICE, 0, "F:3,4", 1},
        {"Pad", 13, "", ON_HOST, 0, "F:2,3 I:4=1,2,0,3 F:", 1},
        {"Pad", 13, "", ON_HOST, 0, "F:0,3 I:4=1,2,0,3", 1},
        {"Pad", 13, "", ON_HOST, 0, "I:3 I:2=1,2", 1},
    };
    CHECK(cases);
}

/* ---- elements ---- */

/* Functions are within a few units in the last place of the host's; those of large arguments, whose size is lost, of 1. */
static void test_functions(void **state)
{
    static const node_case cases[] = {
        {"Relu", 14, "", ON_DEVICE, 0, "F:7,9", 1},
        {"Relu", 14, "", ON_DEVICE, 0, "F:", 1},
        {"Relu", 14, "", ON_HOST, 0, "F:0", 1},
        {"Relu", 14, "", ON_HOST, 0, "J:5", 1},
        {"Abs", 13, "", ON_DEVICE, 1e-9, "F:131", 1},
        {"Neg", 13, "", ON_DEVICE, 1e-9, "F:131", 1},
        {"Sign", 13, "", ON_DEVICE, 1e-9, "F:131", 1},
        {"Clip", 13, "", ON_DEVICE, 1e-9, "F:131 F:=-1.5 F:=2", 1},
        {"Clip", 13, "", ON_DEVICE, 1e-9, "F:131 ? F:=2", 1},
        {"Clip", 13, "", ON_DEVICE, 1e-9, "F:131 F:1=0.5", 1},
        {"Clip", 13, "", ON_DEVICE, 1e-9, "F:131 F:=3 F:=1", 1},
        {"Clip", 13, "", ON_HOST, 0, "F:5 f: f:", 1},
        {"Clip", 6, "min=-1.0 max=1.0", ON_DEVICE, 1e-9, "F:131", 1},
        {"IsNaN", 13, "", ON_DEVICE, 0, "F:131", 1},
        {"IsInf", 13, "", ON_DEVICE, 0, "F:131", 1},
        {"IsInf", 13, "detect_negative=0", ON_DEVICE, 0, "F:131", 1},
        {"IsInf", 13, "detect_positive=0", ON_DEVICE, 0, "F:131", 1},
        {"LeakyRelu", 16, "alpha=0.3", ON_DEVICE, 1e-9, "F:131", 1},
        {"ThresholdedRelu", 10, "alpha=0.3", ON_DEVICE, 1e-9, "F:131", 1},
        {"Sigmoid", 13, "", ON_DEVICE, 1e-6, "F:131", 1},
        {"Tanh", 13, "", ON_DEVICE, 1e-6, "F:131", 1},
        {"Erf", 13, "", ON_DEVICE, 1e-6, "F:131", 1},
        {"Exp", 13, "", ON_DEVICE, 1e-6, "F:131", 1},
        {"Log", 13, "", ON_DEVICE, 1e-6, "F:131", 1},
        {"Sqrt", 13, "", ON_DEVICE, 1e-6, "F:131", 1},
        {"Reciprocal", 13, "", ON_DEVICE, 1e-6, "F:131", 1},
        {"Floor", 13, "", ON_DEVICE, 1e-9, "F:131", 1},
        {"Ceil", 13, "", ON_DEVICE, 1e-9, "F:131", 1},
        {"Round", 11, "", ON_DEVICE, 1e-9, "F:131", 1},
        {"HardSigmoid", 6, "", ON_DEVICE, 1e-6, "F:131", 1},
        {"HardSwish", 14, "", ON_DEVICE, 1e-6, "F:131", 1},
        {"Elu", 6, "alpha=0.7", ON_DEVICE, 1e-6, "F:131", 1},
        {"Selu", 6, "", ON_DEVICE, 1e-6, "F:131", 1},
        {"Celu", 12, "alpha=0.7", ON_DEVICE, 1e-6, "F:131", 1},
        {"Softplus", 1, "", ON_DEVICE, 1e-6, "F:131", 1},
        {"Softsign", 1, "", ON_DEVICE, 1e-6, "F:131", 1},
        {"Mish", 18, "", ON_DEVICE, 1e-6, "F:131", 1},
        {"Shrink", 9, "lambd=0.5 bias=0.1", ON_DEVICE, 1e-6, "F:131", 1},
        {"Gelu", 20, "", ON_DEVICE, 1e-6, "F:131", 1},
        {"Gelu", 20, "approximate='tanh'", ON_DEVICE, 1e-6, "F:131", 1},
        {"Swish", 24, "", ON_DEVICE, 1e-6, "F:131", 1},
        {"Swish", 24, "alpha=1.7", ON_DEVICE, 1e-6, "F:131", 1},
        {"com.microsoft::Gelu", 13, "", ON_DEVICE, 1e-6, "F:131", 1},
        {"com.microsoft::QuickGelu", 13, "", ON_DEVICE, 1e-6, "F:131", 1},
        {"com.microsoft::BiasGelu", 13, "", ON_DEVICE, 1e-6, "F:3,5 F:5", 1},
        {"com.microsoft::FastGelu", 13, "", ON_DEVICE, 1e-6, "F:3,5 F:5=1,2,3,4,5", 1},
        {"com.microsoft::FastGelu", 13, "", ON_DEVICE, 1e-6, "F:3,5", 1},
        {"Sin", 7, "", ON_DEVICE, 1e-6, "F:131", 1},
        {"Cos", 7, "", ON_DEVICE, 1e-6, "F:131", 1},
        {"Tan", 7, "", ON_DEVICE, 1e-5, "F:131", 1},
        {"Asin", 7, "", ON_DEVICE, 1e-6, "F:131", 1},
        {"Acos", 7, "", ON_DEVICE, 1e-6, "F:131", 1},
        {"Atan", 7, "", ON_DEVICE, 1e-6, "F:131", 1},
        {"Sinh", 9, "", ON_DEVICE, 1e-6, "F:131", 1},
        {"Cosh", 9, "", ON_DEVICE, 1e-6, "F:131", 1},
        {"Asinh", 9, "", ON_DEVICE, 1e-6, "F:131", 1},
        {"Acosh", 9, "", ON_DEVICE, 1e-6, "F:131", 1},
        {"Atanh", 9, "", ON_DEVICE, 1e-6, "F:131", 1},
    };
    CHECK(cases);
}

static void test_arithmetic(void **state)
{
    static const node_case cases[] = {
        {"Add", 14, "", ON_DEVICE, 1e-9, "F:3,1,5 F:7,1", 1},
        {"Sub", 14, "", ON_DEVICE, 1e-9, "F:5 F:3,1,5", 1},
        {"Mul", 14, "", ON_DEVICE, 1e-9, "F:131 F:", 1},
        {"Div", 14, "", ON_DEVICE, 1e-6, "F:11,13 F:11,13", 1},
        {"Min", 13, "", ON_DEVICE, 1e-9, "F:3,5 F:5 F:3,1", 1},
        {"Max", 13, "", ON_DEVICE, 1e-9, "F:1 F:1 F:3,2", 1},
        {"Max", 13, "", ON_HOST, 0, "F:7", 1}, /* a view */
        {"Sum", 13, "", ON_DEVICE, 1e-9, "F:3,5 F:5 F:3,1 F:2,1,1", 1},
        {"Mean", 13, "", ON_DEVICE, 1e-9, "F:3,5 F:5 F:3,1", 1},
        {"Mean", 13, "", ON_DEVICE, 1e-9, "F:1 F:7,1 F:1,3", 1},
        {"PRelu", 16, "", ON_DEVICE, 1e-9, "F:2,3,5 F:3,1", 1},
        {"Pow", 15, "", ON_DEVICE, 1e-6, "F:131 F:=2", 1},
        {"Pow", 15, "", ON_DEVICE, 1e-6, "F:131 I:=3", 1},
        {"Pow", 15, "", ON_DEVICE, 1e-6, "F:131 F:1=0.5", 1},
        {"Pow", 15, "", ON_DEVICE, 1e-6, "F:131 J:=-1", 1},
        {"Pow", 15, "", ON_DEVICE, 1e-6, "F:131 F:=1.7", 1},
        {"Pow", 15, "", ON_DEVICE, 1e-6, "F:3,50 F:50", 1},
        {"Pow", 15, "", ON_DEVICE, 1e-6, "F:5 F:3,1", 1},
        {"Pow", 15, "", ON_HOST, 0, "F:5 I:=7", 1},
        {"Pow", 15, "", ON_HOST, 0, "F:5 I:5", 1},
    };
    CHECK(cases);
}

static void test_choices(void **state)
{
    static const node_case cases[] = {
        {"Equal", 13, "", ON_DEVICE, 0, "F:3,50 F:50", 1},
        {"Greater", 13, "", ON_DEVICE, 0, "F:3,50 F:", 1},
        {"Less", 13, "", ON_DEVICE, 0, "F:50 F:3,1", 1},
        {"GreaterOrEqual", 16, "", ON_DEVICE, 0, "F:3,50 F:3,50", 1},
        {"LessOrEqual", 16, "", ON_DEVICE, 0, "F:3,50 F:50", 1},
        {"Equal", 13, "", ON_HOST, 0, "I:3,5 I:5", 1},
        {"And", 7, "", ON_DEVICE, 0, "B:3,5 B:5", 1},
        {"Or", 7, "", ON_DEVICE, 0, "B:3,5 B:3,1", 1},
        {"Xor", 7, "", ON_DEVICE, 0, "B:3,5 B:3,5", 1},
        {"And", 7, "", ON_HOST, 0, "B:5 B:5", 1},
        {"Not", 1, "", ON_DEVICE, 0, "B:3,5", 1},
        {"Not", 1, "", ON_HOST, 0, "B:5", 1},
        {"Where", 16, "", ON_DEVICE, 0, "B:3,5 F:3,5 F:3,5", 1},
        {"Where", 16, "", ON_DEVICE, 0, "B:5 F:3,1 F:", 1},
        {"Where", 16, "", ON_DEVICE, 0, "B:2,1,1 F:3,1=1,2,3 F:7", 1},
        {"Where", 16, "", ON_HOST, 0, "B:5 I:5 I:5", 1},
        {"Cast", 13, "to=7", ON_DEVICE, 0, "F:3,50", 1},
        {"Cast", 13, "to=6", ON_DEVICE, 0, "F:3,50", 1},
        {"Cast", 13, "to=2", ON_DEVICE, 0, "F:3,50", 1},
        {"Cast", 13, "to=9", ON_DEVICE, 0, "F:3,50", 1},
        {"Cast", 13, "to=1", ON_DEVICE, 0, "I:3,50", 1},
        {"Cast", 13, "to=1", ON_DEVICE, 0, "J:3,50", 1},
        {"Cast", 13, "to=1", ON_DEVICE, 0, "U:3,50", 1},
        {"Cast", 13, "to=1", ON_DEVICE, 0, "B:3,50", 1},
        {"CastLike", 19, "", ON_DEVICE, 0, "I:3,50 F:2", 1},
        {"Cast", 13, "to=1", ON_HOST, 0, "I:5", 1},
        {"Cast", 13, "to=7", ON_HOST, 0, "F:5", 1},
        {"Cast", 13, "to=7", ON_HOST, 0, "J:3,5", 1},
        {"Cast", 13, "to=11", ON_HOST, 0, "F:3,5", 1},
    };
    CHECK(cases);
}

/* ---- indices ---- */

static void test_gathers(void **state)
{
    static const node_case cases[] = {
        {"Gather", 13, "axis=1", ON_DEVICE, 0, "F:2,5,3 I:4=4,0,-1,2", 1},
        {"Gather", 13, "axis=0", ON_DEVICE, 0, "F:7 J:2,3=6,-7,0,3,3,1", 1},
        {"Gather", 13, "axis=-1", ON_DEVICE, 0, "F:3,4,5 I:=-2", 1},
        {"Gather", 13, "axis=0", ON_DEVICE, 0, "F:9,2 I:4=1,3,5,7", 1},
        {"Gather", 13, "axis=2", ON_DEVICE, 0, "F:2,3,1 I:3=0,0,-1", 1},
        {"Gather", 13, "axis=0", ON_DEVICE, 0, "B:5,3 I:3=4,1,0", 1},
        {"Gather", 13, "axis=0", ON_HOST, 0, "I:5 I:3=4,1,0", 1},
        {"Gather", 13, "axis=1", ON_HOST, 0, "F:2,5 I:2,0", 1},
        {"GatherND", 13, "", ON_DEVICE, 0, "F:3,4,5 I:3,2=0,1,2,-1,1,3", 1},
        {"GatherND", 13, "batch_dims=1", ON_DEVICE, 0, "F:2,4,3 I:2,1=3,-4", 1},
        {"GatherElements", 13, "axis=1", ON_DEVICE, 0, "F:3,4 I:3,2=0,3,1,-1,2,2", 1},
        {"GatherElements", 13, "axis=0", ON_DEVICE, 0, "F:3,2,2 J:1,2,2=2,0,-1,1", 1},
    };
    CHECK(cases);
}

static void test_scatters(void **state)
{
    static const node_case cases[] = {
        {"ScatterND", 13, "", ON_DEVICE, 0, "f:7,3 I:3,1=4,0,-1 f:3,3", 1},
        {"ScatterND", 13, "", ON_DEVICE, 0, "f:3,4,5 I:4,2=0,1,2,3,0,1,-1,0 f:4,5", 1}, /* two meet */
        {"ScatterND", 13, "", ON_DEVICE, 0, "f:5,2 I:2,2,2=0,1,4,0,4,-2,3,1 f:2,2", 1},
        {"ScatterND", 16, "reduction='add'", ON_HOST, 0, "f:7,3 I:2,1=4,0 f:2,3", 1},
        {"ScatterElements", 13, "axis=1", ON_DEVICE, 0, "f:3,5 I:3,2=0,4,-1,4,2,2 f:3,2", 1},
        {"ScatterElements", 13, "axis=0", ON_DEVICE, 0, "f:3,2,2 J:2,2,1=2,0,2,-1 f:2,2,1", 1},
        {"ScatterElements", 13, "", ON_HOST, 0, "f:9 I:2=2,3 f:2", 1},
    };
    CHECK(cases);
}

static void test_sizes(void **state)
{
    static const node_case cases[] = {
        {"Resize", 13, "mode='nearest'", ON_DEVICE, 0, "F:1,2,3,5 ? F:4=1,1,2,2", 1},
        {"Resize", 13, "mode='nearest' coordinate_transformation_mode='asymmetric' nearest_mode='floor'", ON_DEVICE, 0, "F:2,3,4 F:0= F:3=1,1.7,0.6", 1},
        {"Resize", 13, "mode='nearest' coordinate_transformation_mode='align_corners' nearest_mode='ceil'", ON_DEVICE, 0, "F:5,7 ? ? I:2=3,11", 1},
        {"Resize", 13, "mode='nearest'", ON_DEVICE, 0, "F:1,1 ? ? I:2=3,4", 1},
        {"Resize", 13, "mode='linear'", ON_DEVICE, 1e-6, "f:1,2,3,5 ? F:4=1,1,2,2", 1},
        {"Resize", 13, "mode='linear' coordinate_transformation_mode='pytorch_half_pixel'", ON_DEVICE, 1e-6, "f:1,2,6,5 ? ? I:4=1,2,1,9", 1},
        {"Resize", 13, "mode='linear' coordinate_transformation_mode='align_corners'", ON_DEVICE, 1e-6, "f:1,2,3,4,5 ? ? I:5=1,2,5,3,7", 1},
        {"Resize", 13, "mode='linear' coordinate_transformation_mode='asymmetric'", ON_DEVICE, 1e-6, "f:9 ? F:1=0.7", 1},
        {"Resize", 13, "mode='linear'", ON_DEVICE, 1e-6, "f:1,1,1,1 ? ? I:4=1,1,3,5", 1},
        {"Resize", 19, "mode='cubic' axes=[2,3]", ON_DEVICE, 1e-5, "f:1,2,5,7 ? F:2=1.5,2.5", 1},
        {"Resize", 19, "mode='cubic' exclude_outside=1", ON_DEVICE, 1e-5, "f:1,2,5,7 ? F:4=1,1,0.5,0.8", 1},
        {"Resize", 19, "mode='linear' antialias=1", ON_HOST, 0, "f:1,2,5,7 ? F:4=1,1,0.5,0.8", 1},
        {"Resize", 13, "mode='linear' coordinate_transformation_mode='tf_crop_and_resize'", ON_HOST, 0, "f:4,5 F:4=0,0,0.5,1 F:2=1,2", 1},
        {"Resize", 13, "mode='linear'", ON_HOST, 0, "f:2,2,3,3 ? F:4=2,2,2,2", 1},
        {"Upsample", 9, "mode='nearest'", ON_DEVICE, 0, "F:1,2,3,5 F:4=1,1,2,3", 1},
        {"Upsample", 9, "mode='linear'", ON_DEVICE, 1e-6, "f:1,2,3,5 F:4=1,1,2,3", 1},
    };
    CHECK(cases);
}
// clang-format on

/* Values stay on the device from the first operator to the last: only the model's input and output are copied. */
static model_builder *chain(void)
{
    static const int64_t starts[] = {4, 0}, ends[] = {-6, 3}, axes[] = {1, 2}, strides[] = {-2, 1};
    static const int64_t pads[] = {0, 0, 1, 0, 2, 0}, sizes[] = {2, 7, 9};
    static const float half = 0.5f;
    model_builder *m = mb_begin(16);
    mb_input(m, "x", PRONY_FLOAT32, "2,3,5");
    mb_initializer(m, "starts", PRONY_INT64, "2", starts);
    mb_initializer(m, "ends", PRONY_INT64, "2", ends);
    mb_initializer(m, "axes", PRONY_INT64, "2", axes);
    mb_initializer(m, "strides", PRONY_INT64, "2", strides);
    mb_initializer(m, "pads", PRONY_INT64, "6", pads);
    mb_initializer(m, "sizes", PRONY_INT64, "3", sizes);
    mb_initializer(m, "half", PRONY_FLOAT32, "", &half);
    mb_node(m, "Relu", "x", "a", "");
    mb_node(m, "Transpose", "a", "b", "perm=[0,2,1]");
    mb_node(m, "Slice", "b starts ends axes strides", "c", "");
    mb_node(m, "Concat", "c c", "d", "axis=2");
    mb_node(m, "Pad", "d pads", "e", "mode='reflect'");
    mb_node(m, "Greater", "e half", "f", "");
    mb_node(m, "Where", "f e half", "g", "");
    mb_node(m, "Resize", "g ? ? sizes", "y", "mode='linear'");
    mb_output(m, "y", PRONY_FLOAT32, NULL);
    return m;
}

static void test_chain(void **state)
{
    const node_case c = {"chain", 16, "", ON_DEVICE, 1e-6, "", 1};
    float x[2 * 3 * 5];
    char steps[256] = "";
    model_run host = {0}, device = {.options.device = "opencl"};
    (void)state;
    if (!device_here()) skip();
    for (size_t i = 0; i < sizeof x / sizeof *x; i++) x[i] = (float)element_of(PRONY_FLOAT32, i, true);
    mr_open(&host, chain());
    mr_open(&device, chain());
    mr_set(&host, "x", PRONY_FLOAT32, "2,3,5", x);
    mr_set(&device, "x", PRONY_FLOAT32, "2,3,5", x);
    compare(&c, mr_run(&host, 0), mr_run(&device, 0));
    const prn_plan *plan = device.session->current->plan;
    for (size_t s = 0; s < plan->step_count; s++)
        snprintf(steps + strlen(steps), sizeof steps - strlen(steps), "%s%s", s ? " " : "",
                 plan->steps[s]->node->info.op_type);
    assert_string_equal(steps, "Copy Relu Transpose Slice Concat Pad Greater Where Resize Copy");
    mr_close(&host);
    mr_close(&device);
}

/* Indices out of range are refused in the run, with the host's message. */
static void test_indices_out_of_range(void **state)
{
    static const node_case cases[] = {
        {"Gather", 13, "axis=1", ON_HOST, 0, "F:2,5,3 I:3=4,5,0", 1},
        {"Gather", 13, "axis=1", ON_DEVICE, 0, "F:2,5,3 I:2,2=4,0,-6,1", 1},
        {"GatherElements", 13, "axis=0", ON_DEVICE, 0, "F:3,2 I:1,2=2,3", 1},
        {"ScatterND", 13, "", ON_DEVICE, 0, "f:7,3 I:2,1=4,7 f:2,3", 1},
        {"ScatterElements", 13, "axis=1", ON_DEVICE, 0, "f:3,5 I:1,2=-6,4 f:1,2", 1},
    };
    (void)state;
    if (!device_here()) skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        SCENARIO_NAMED(i, cases[i].op);
        opened host, device;
        open_case(&host, &cases[i], NULL);
        open_case(&device, &cases[i], "opencl");
        assert_int_equal(prony_session_prepare(device.run.session, &device.run.error), PRONY_OK);
        assert_int_equal(has_device_step(&device.run), cases[i].where == ON_DEVICE);
        const prony_status status = prony_session_run(host.run.session, &host.run.error);
        assert_int_equal(status, PRONY_OUT_OF_RANGE);
        assert_int_equal(prony_session_run(device.run.session, &device.run.error), status);
        assert_string_equal(device.run.error.message, host.run.error.message);
        close_case(&host);
        close_case(&device);
    }
}

/* Every allocation of steps with tables fails once. */
static void test_faults(void **state)
{
    static const node_case cases[] = {
        {"Gather", 13, "axis=1", ON_DEVICE, 0, "F:2,5,3 I:2,2=4,0,-1,2", 1},
        {"Resize", 13, "mode='linear'", ON_DEVICE, 1e-6, "f:1,2,3,5 ? F:4=1,1,2,2", 1},
        {"ScatterND", 13, "", ON_DEVICE, 0, "f:7,3 I:3,1=4,0,-1 f:3,3", 1},
        {"Concat", 13, "axis=1", ON_DEVICE, 0, "F:2,3 F:2,1", 1},
    };
    (void)state;
    if (!device_here()) skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        SCENARIO_NAMED(i, cases[i].op);
        opened device;
        open_case(&device, &cases[i], "opencl");
        mr_survives_faults(&device.run);
        close_case(&device);
    }
}

/* Held from the first test to the last, so that its counts are of all sessions. */
static prn_device *held;

static int hold_device(void **state)
{
    prony_error error = {0};
    (void)state;
    return device_here() && prn_device_open(&held, "opencl", "test", &error) != PRONY_OK;
}

/* Sessions gave back all buffers and kernels, the tables of indices among them. */
static void test_nothing_is_left(void **state)
{
    (void)state;
    if (!held) skip();
    const prn_device_use use = prn_device_usage(held);
    assert_int_equal(use.buffers, 0);
    assert_int_equal(use.kernels, 0);
    assert_int_equal(use.bytes, 0);
    assert_int_equal(use.constant_bytes, 0);
    prn_device_release(held);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_permutations), cmocka_unit_test(test_joins),
        cmocka_unit_test(test_windows),      cmocka_unit_test(test_paddings),
        cmocka_unit_test(test_functions),    cmocka_unit_test(test_arithmetic),
        cmocka_unit_test(test_choices),      cmocka_unit_test(test_gathers),
        cmocka_unit_test(test_scatters),     cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_chain),        cmocka_unit_test(test_indices_out_of_range),
        cmocka_unit_test(test_faults),       cmocka_unit_test(test_nothing_is_left),
    };
    return cmocka_run_group_tests(tests, hold_device, NULL);
}
