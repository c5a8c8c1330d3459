/* Rewrites that merge moves, and nodes that no rewrite may change. */
#include "failure_trace.h"
#include "base/shape.h"
#include "engine/rewrites/rewrite.h"
#include "rewrite_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void merge_moves(void **state)
{
    (void)state;
    static const int64_t flat[] = {2, -1}, front[] = {0};
    model_builder *m = rc_begin();
    mb_node(m, "Transpose", "x", "t", "perm=[0,2,3,1]");
    mb_node(m, "Transpose", "t", "u", "perm=[1,0,3,2]");
    mb_node(m, "Relu", "u", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Transpose Relu");

    m = rc_begin(); /* and back again */
    mb_node(m, "Transpose", "x", "t", "perm=[0,2,3,1]");
    mb_node(m, "Transpose", "t", "u", "perm=[0,3,1,2]");
    mb_node(m, "Relu", "u", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Relu");

    m = rc_begin();
    mb_node(m, "Transpose", "x", "t", "perm=[0,2,3,1]");
    mb_node(m, "Transpose", "t", "u", "perm=[1,0,3,2]");
    mb_node(m, "Relu", "t", "r", "");
    rc_output(m, "u");
    rc_output(m, "r");
    rc_expect(m, "Transpose Transpose Relu");

    m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "1,4,1,6");
    mb_node(m, "Transpose", "x", "y", "perm=[1,0,3,2]");
    rc_output(m, "y");
    rc_expect(m, "Reshape");

    m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "1,4,2,6");
    mb_node(m, "Transpose", "x", "y", "perm=[1,0,3,2]");
    rc_output(m, "y");
    rc_expect(m, "Transpose");

    m = rc_begin();
    rc_ints(m, "flat", "2", flat);
    rc_ints(m, "front", "1", front);
    mb_node(m, "Reshape", "x flat", "f", "");
    mb_node(m, "Unsqueeze", "f front", "g", "");
    mb_node(m, "Flatten", "g", "h", "axis=0");
    mb_node(m, "Relu", "h", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Reshape Relu");
}

/* ---- what is around ---- */

static prony_status double_it(const prony_context *context)
{
    const float *x = context->inputs[0]->data;
    float *y = context->outputs[0]->data;
    for (int64_t i = 0; i < prony_shape_numel(&context->inputs[0]->shape); i++) y[i] = 2.0f * x[i];
    return PRONY_OK;
}

static prony_status no_cost(const prony_context *context, prony_cost *cost)
{
    (void)context;
    (void)cost;
    return PRONY_OK;
}

/* A user's operator called Relu is not Relu. */
static void leave_custom_operators(void **state)
{
    (void)state;
    prony_registry *registry;
    assert_int_equal(prony_registry_create(&registry, NULL), PRONY_OK);
    prony_operator relu = PRONY_OPERATOR_INIT;
    relu.name = "Relu";
    relu.infer = prn_infer_same;
    relu.cost = no_cost;
    relu.run = double_it;
    assert_int_equal(prony_registry_add(registry, &relu, NULL), PRONY_OK);
    model_builder *m = rc_begin();
    rc_conv(m, "x w b", "c");
    mb_node(m, "Relu", "c", "r", "");
    mb_node(m, "Relu", "c", "s", "");
    mb_node(m, "Add", "r s", "y", "");
    rc_output(m, "y");
    rc_expect_with(registry, m, "Conv Relu Relu Add");
    prony_registry_release(registry);
}

/* The shape of the convolution's input is known at run time only. */
static void leave_dynamic_nodes(void **state)
{
    (void)state;
    model_builder *m = rc_begin();
    mb_input(m, "keep", PRONY_BOOL, "2");
    mb_node(m, "Exp", "x", "e", "");
    mb_node(m, "NonZero", "keep", "rows", "");
    static const int64_t flat[] = {-1};
    rc_ints(m, "flat", "1", flat);
    mb_node(m, "Reshape", "rows flat", "index", "");
    mb_node(m, "Gather", "e index", "g", "axis=0");
    rc_conv(m, "g w b", "c");
    mb_node(m, "Relu", "c", "r", "");
    mb_node(m, "Identity", "r", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Exp NonZero Reshape Gather Conv Relu Identity");
}

/* A subgraph is rewritten as well; what it captures has a reader. */
static void rewrite_subgraphs(void **state)
{
    (void)state;
    model_builder *m = rc_begin();
    mb_input(m, "cond", PRONY_BOOL, "");
    rc_conv(m, "x w b", "c");
    mb_node(m, "Relu", "c", "r", "");
    mb_node(m, "If", "cond", "z", "");
    mb_graph_begin(m, "then_branch");
    rc_conv(m, "c w", "t");
    mb_node(m, "Relu", "t", "u", "");
    rc_output(m, "u");
    mb_graph_end(m);
    mb_graph_begin(m, "else_branch");
    mb_node(m, "Exp", "c", "v", "");
    rc_output(m, "v");
    mb_graph_end(m);
    mb_node(m, "Add", "r z", "y", "");
    rc_output(m, "y");

    rc_model l;
    rc_load(&l, m, NULL);
    prn_program *before, *after;
    assert_int_equal(rc_bind(&l, &before), PRONY_OK);
    assert_int_equal(rc_bind(&l, &after), PRONY_OK);
    assert_int_equal(prn_program_rewrite(after, &l.error), PRONY_OK);
    char text[256];
    rc_describe(after, text, sizeof text);
    assert_string_equal(text, "Conv Relu If Add");
    const prn_node_def *branch = after->nodes[2];
    assert_int_equal(branch->child_count, 2);
    rc_describe(branch->children[0].program, text, sizeof text);
    assert_string_equal(text, "Conv[relu]");
    rc_check_well_formed(after);
    rc_check_conserved(before, after);
    rc_check_runs(before, after);
    prn_program_release(before);
    prn_program_release(after);
    rc_unload(&l);
    mb_free(m);
}

/* Whichever allocation fails, the error says so and everything is released. */
static void survive_no_memory(void **state)
{
    (void)state;
    model_builder *m = rc_begin();
    rc_conv(m, "x w", "c");
    rc_batch_norm(m, "c", "n", "4");
    mb_node(m, "Sigmoid", "n", "s", "");
    mb_node(m, "Mul", "n s", "p", "");
    mb_node(m, "Add", "p x", "q", "");
    mb_node(m, "Transpose", "q", "t", "perm=[0,2,3,1]");
    mb_node(m, "Transpose", "t", "u", "perm=[0,2,1,3]");
    rc_output(m, "u");
    rc_model l;
    rc_load(&l, m, NULL);
    uint64_t failures = 0;
    for (bool failed = true; failed;) {
        prn_program *program;
        assert_int_equal(rc_bind(&l, &program), PRONY_OK);
        prn_alloc_fail_at(failures + 1);
        prony_status status = prn_program_rewrite(program, &l.error);
        failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        assert_int_equal(status, failed ? PRONY_OUT_OF_MEMORY : PRONY_OK);
        failures += failed;
        prn_program_release(program);
    }
    assert_true(failures >= 4);
    rc_unload(&l);
    mb_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merge_moves),         cmocka_unit_test(leave_custom_operators),
        cmocka_unit_test(leave_dynamic_nodes), cmocka_unit_test(rewrite_subgraphs),
        cmocka_unit_test(survive_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
