/* Conv's cost model: the kernels that the plan takes for layers of known networks, each by a recorded measurement or by
 * the products that the others would waste. */
#include "base/cpu/isa.h"
#include "failure_trace.h"
#include "ops/conv/conv_cost_model.h"
#include "ops/op.h"
#include "tests/support/op_cases.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct problem {
    op_case_node row;
    const prn_op *op;
    prn_conv_params params;
    prony_error error;
    prony_value in[2], y; /* as the plan knows them: constants alone have data */
    const prony_value *inputs[2];
    prony_value *outputs[1];
    prony_context context;
} problem;

static problem *open_problem(const char *inputs, const char *attributes)
{
    static problem p;
    const op_case row = {.file = "", .op = "Conv", .opset = 13, .attributes = attributes, .inputs = inputs};
    memset(&p, 0, sizeof p);
    if (!op_case_parse(&p.row, &row, p.error.message, sizeof p.error.message)) fail_msg("%s", p.error.message);
    p.op = prn_op_find("", "Conv", 13);
    assert_int_equal(prn_params_parse(p.op, &p.row.node, &p.params, &p.error), PRONY_OK);
    for (size_t i = 0; i < 2; i++) {
        p.in[i] = p.row.values[i];
        if (!p.row.constant[i]) p.in[i].data = NULL;
        p.inputs[i] = &p.in[i];
    }
    p.outputs[0] = &p.y;
    p.context = (prony_context){.error = &p.error,
                                .node = &p.row.node,
                                .params = &p.params,
                                .inputs = p.inputs,
                                .input_count = 2,
                                .outputs = p.outputs,
                                .output_count = 1};
    assert_int_equal(p.op->infer(&p.context), PRONY_OK);
    return &p;
}

typedef struct layer {
    const char *inputs, *attributes, *wide, *narrow, *strict; /* kernels with AVX-512, AVX2, fp32-strict; NULL: any */
} layer;

static const layer layers[] = {
    {"f32[1,3,224,224] !f32[64,3,7,7]", "strides=[2,2] pads=[3,3,3,3]", "stem", NULL, "stem"},
    {"f32[1,64,56,56] !f32[64,64,3,3]", "pads=[1,1,1,1]", "winograd", "winograd", "direct"},
    {"f32[1,64,56,56] !f32[256,64,1,1]", "", "direct", NULL, "direct"},
    {"f32[1,128,28,28] !f32[128,128,3,3]", "strides=[2,2]", "direct", "direct", "direct"},
    {"f32[1,32,112,112] !f32[32,1,3,3]", "group=32 pads=[1,1,1,1]", "depthwise", NULL, "depthwise"},
    {"f32[1,1,28,28] !f32[6,1,5,5]", "pads=[2,2,2,2]", "flat", "flat", "stem"},
    {"f32[1,48,28,28] !f32[48,24,3,3]", "group=2 pads=[1,1,1,1]", "flat", NULL, "native"},
    {"f32[1,64,14,14] f32[64,64,3,3]", "pads=[1,1,1,1]", "direct_variable", "direct_variable", "direct_variable"},
    {"f32[1,4,14,14] f32[64,4,3,3]", "pads=[1,1,1,1]", "native", "native", "native"},
};

static void layers_of_known_networks_keep_their_kernels(void **state)
{
    (void)state;
    if (!prn_isa_has(PRN_HAS_AVX2) || prn_isa_has(PRN_HAS_AMX)) skip();
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        for (int strict = 0; strict < 2; strict++) {
            problem *p = open_problem(layers[i].inputs, layers[i].attributes);
            const char *wanted = strict                        ? layers[i].strict
                                 : prn_isa_has(PRN_HAS_AVX512) ? layers[i].wide
                                                               : layers[i].narrow;
            p->context.precision = strict ? PRONY_PRECISION_FP32_STRICT : PRONY_PRECISION_FP32;
            const char *kernel = prn_op_kernel(p->op, &p->context, false, NULL)->name;
            if (wanted && strcmp(kernel + strlen("conv_f32_"), wanted) != 0)
                fail_msg("%s: %s, not %s%s", layers[i].inputs, kernel, wanted, strict ? " (strict)" : "");
            op_case_node_release(&p->row);
        }
    }
}

/* The chosen kernel predicts the fewest cycles of all that can run the layer, and twice the images take twice as long,
 * but for starts and weights. */
static void the_choice_has_the_fewest_cycles(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        problem *p = open_problem(layers[i].inputs, layers[i].attributes);
        const prn_kernel *chosen = prn_op_kernel(p->op, &p->context, false, NULL);
        for (const prn_kernel *k = p->op->kernels; k->name && chosen->predict; k++) {
            if (!k->predict || !prn_kernel_takes_types(k, &p->context) || (k->supported && !k->supported(&p->context)))
                continue;
            if (k->precisions && !(k->precisions >> p->context.precision & 1)) continue;
            assert_true(k->predict(&p->context) >= chosen->predict(&p->context));
        }
        if (chosen->predict) {
            const double one = chosen->predict(&p->context);
            assert_true(one > 0 && isfinite(one));
            p->in[0].shape.dim[0] *= 2;
            assert_int_equal(p->op->infer(&p->context), PRONY_OK);
            const double two = chosen->predict(&p->context);
            assert_true(two > 1.2 * one && two < 2.2 * one);
        }
        op_case_node_release(&p->row);
    }
}

/* Kernels that give other bits do not take over as images are added. Winograd aside, whose tiles of small images share
 * rows. */
static void the_batch_does_not_decide(void **state)
{
    static const layer same_for_batches[] = {
        {"f32[1,64,2,2] !f32[64,64,5,5]", "strides=[2,2] pads=[2,2,2,2]", NULL, NULL, NULL},
        {"f32[1,14,8,8] !f32[512,14,3,3]", "pads=[1,1,1,1]", NULL, NULL, NULL},
        {"f32[1,64,7,7] !f32[256,64,1,1]", "", NULL, NULL, NULL},
        {"f32[1,48,6,6] !f32[48,24,3,3]", "group=2 pads=[1,1,1,1]", NULL, NULL, NULL},
        {"f32[1,3,16,16] !f32[32,3,3,3]", "strides=[2,2] pads=[1,1,1,1]", NULL, NULL, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof same_for_batches / sizeof *same_for_batches; i++) {
        problem *p = open_problem(same_for_batches[i].inputs, same_for_batches[i].attributes);
        const char *alone = prn_op_kernel(p->op, &p->context, false, NULL)->name;
        for (int64_t batch = 2; batch <= 64; batch *= 2) {
            p->in[0].shape.dim[0] = batch;
            assert_int_equal(p->op->infer(&p->context), PRONY_OK);
            assert_string_equal(prn_op_kernel(p->op, &p->context, false, NULL)->name, alone);
        }
        op_case_node_release(&p->row);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(layers_of_known_networks_keep_their_kernels),
                                       cmocka_unit_test(the_choice_has_the_fewest_cycles),
                                       cmocka_unit_test(the_batch_does_not_decide)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
