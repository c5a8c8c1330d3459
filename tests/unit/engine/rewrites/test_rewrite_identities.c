/* Nodes that return their input unchanged: removed ones, similar ones that stay, and outputs among them. */
#include "failure_trace.h"
#include "base/shape.h"
#include "engine/rewrites/rewrite.h"
#include "rewrite_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void drop_identities(void **state)
{
    (void)state;
    static const int64_t shape[] = {2, 4, 5, 5}, zeros[8] = {0}, ends[] = {9, 9}, axes[] = {1, 2}, minus[] = {-1, -1},
                         begins[] = {-1, -1}, back[] = {-9, -9};
    model_builder *m = rc_begin();
    rc_scalar(m, "one", 1.0f);
    rc_ints(m, "shape", "4", shape);
    rc_ints(m, "zeros", "8", zeros);
    rc_ints(m, "starts", "2", zeros);
    rc_ints(m, "ends", "2", ends);
    rc_ints(m, "axes", "2", axes);
    mb_node(m, "Identity", "x", "v0", "");
    mb_node(m, "Relu", "v0", "v1", "");
    mb_node(m, "Dropout", "v1", "v2", "");
    mb_node(m, "Cast", "v2", "v3", "to=1");
    mb_node(m, "Transpose", "v3", "v4", "perm=[0,1,2,3]");
    mb_node(m, "Reshape", "v4 shape", "v5", "");
    mb_node(m, "Concat", "v5", "v6", "axis=1");
    mb_node(m, "Pad", "v6 zeros", "v7", "");
    mb_node(m, "Slice", "v7 starts ends axes", "v8", "");
    mb_node(m, "Expand", "v8 shape", "v9", "");
    mb_node(m, "Mul", "one v9", "v10", "");
    mb_node(m, "Div", "v10 one", "v11", "");
    mb_node(m, "Exp", "v11", "v12", "");
    mb_node(m, "Identity", "v12", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Relu Exp");

    m = rc_begin(); /* backwards is not everything */
    rc_ints(m, "begins", "2", begins);
    rc_ints(m, "back", "2", back);
    rc_ints(m, "axes", "2", axes);
    rc_ints(m, "minus", "2", minus);
    mb_node(m, "Slice", "x begins back axes minus", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Slice");

    m = rc_begin(); /* between views, and before a join, the node that computes takes the layer */
    rc_scalar(m, "one", 1.0f);
    mb_node(m, "Concat", "x x", "v0", "axis=1");
    mb_node(m, "Mul", "v0 one", "v1", "");
    mb_node(m, "Flatten", "v1", "v2", "");
    mb_node(m, "Relu", "v1", "y", "");
    rc_output(m, "v2");
    rc_output(m, "y");
    rc_expect(m, "Concat Flatten Relu");

    m = rc_begin(); /* pools of one element, and of more, in steps, with indices */
    mb_node(m, "Relu", "x", "r", "");
    mb_node(m, "AveragePool", "r", "p0", "kernel_shape=[1,1]");
    mb_node(m, "MaxPool", "p0", "p1", "kernel_shape=[1,1] strides=[1,1] pads=[0,0,0,0]");
    mb_node(m, "MaxPool", "p1", "p2", "kernel_shape=[3,3] pads=[1,1,1,1]");
    mb_node(m, "AveragePool", "p2", "p3", "kernel_shape=[1,1] strides=[2,2]");
    mb_node(m, "MaxPool", "p3", "y indices", "kernel_shape=[1,1]");
    rc_output(m, "y");
    mb_output(m, "indices", PRONY_INT64, "2,4,3,3");
    rc_expect(m, "Relu MaxPool AveragePool MaxPool");

    m = rc_begin(); /* -0 + 0 is 0 */
    rc_scalar(m, "zero", 0.0f);
    mb_node(m, "Add", "x zero", "s", "");
    mb_node(m, "Relu", "s", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Add Relu");

    m = rc_begin(); /* between an input and an output of the graph no other node can make it */
    mb_node(m, "Identity", "x", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Identity");

    m = rc_begin(); /* two outputs, one value */
    mb_node(m, "Relu", "x", "r", "");
    mb_node(m, "Identity", "r", "y", "");
    rc_output(m, "r");
    rc_output(m, "y");
    rc_expect(m, "Relu Identity");
}

/* Other nodes that return their input, and nodes that only seem to. */
static void drop_more_identities(void **state)
{
    (void)state;
    model_builder *m = rc_begin();
    static const int64_t nothing[] = {0, 0, 0, 0, 0, 0, 0, 0};
    static const bool no = false;
    rc_scalar(m, "one", 1.0f);
    rc_scalar(m, "zero", 0.0f);
    rc_scalar(m, "ratio", 0.5f);
    rc_ints(m, "nothing", "8", nothing);
    mb_initializer(m, "no", PRONY_BOOL, "", &no);
    mb_node(m, "Abs", "x", "v0", "");
    mb_node(m, "Sum", "v0", "v1", "");
    mb_node(m, "Max", "v1", "v2", "");
    mb_node(m, "Split", "v2", "v3", "axis=1");
    mb_node(m, "Clip", "v3", "v4", "");
    mb_node(m, "Sub", "v4 zero", "v5", "");
    mb_node(m, "Pow", "v5 one", "v6", "");
    mb_node(m, "Dropout", "v6 ratio no", "v7", "");
    mb_node(m, "Dropout", "v7 ratio", "v8", "");
    mb_node(m, "Mean", "v8", "v9", "");
    mb_node(m, "Neg", "v9", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Abs Neg");

    m = rc_begin(); /* 0 - x, 1 / x and 1^x change it */
    rc_scalar(m, "one", 1.0f);
    rc_scalar(m, "zero", 0.0f);
    mb_node(m, "Sub", "zero x", "a", "");
    mb_node(m, "Pow", "one a", "p", "");
    mb_node(m, "Div", "one p", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Sub Pow Div");

    m = rc_begin(); /* x - -0 turns -0 into 0 */
    rc_scalar(m, "zero", -0.0f);
    mb_node(m, "Sub", "x zero", "s", "");
    mb_node(m, "Relu", "s", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Sub Relu");

    m = rc_begin(); /* an integer has one 0 */
    static const int64_t zero = 0;
    rc_ints(m, "zero", "1", &zero);
    mb_node(m, "Cast", "x", "i", "to=7");
    mb_node(m, "Add", "zero i", "s", "");
    mb_node(m, "Abs", "s", "a", "");
    mb_node(m, "Cast", "a", "y", "to=1");
    rc_output(m, "y");
    rc_expect(m, "Cast Abs Cast");

    m = rc_begin(); /* a mask with a reader; training that drops nothing */
    static const bool yes = true;
    rc_scalar(m, "none", 0.0f);
    mb_initializer(m, "yes", PRONY_BOOL, "", &yes);
    mb_node(m, "Dropout", "x", "d mask", "");
    mb_node(m, "Dropout", "d none yes", "e unread", "");
    mb_node(m, "Where", "mask e x", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Dropout Where");
}

/* Outputs of the graph that are an input or each other: the nodes between become views, and the outputs stay
 * distinct. */
static void identities_that_are_outputs(void **state)
{
    (void)state;
    static const char *const ops[][2] = {{"Dropout", ""},     {"Cast", "to=1"}, {"Concat", "axis=1"},
                                         {"Sum", ""},         {"Clip", ""},     {"Transpose", "perm=[0,1,2,3]"},
                                         {"Split", "axis=0"}, {"Identity", ""}};
    for (size_t k = 0; k < sizeof ops / sizeof ops[0]; k++) {
        SCENARIO(k);
        model_builder *m = rc_begin(); /* of an input */
        mb_node(m, ops[k][0], "x", "y", ops[k][1]);
        rc_output(m, "y");
        rc_expect(m, "Identity");

        m = rc_begin(); /* two of an input, one of which is read as well */
        mb_node(m, ops[k][0], "x", "y", ops[k][1]);
        mb_node(m, "Identity", "x", "z", "");
        mb_node(m, "Relu", "y", "r", "");
        rc_output(m, "z");
        rc_output(m, "y");
        rc_output(m, "r");
        rc_expect(m, "Identity Identity Relu");

        m = rc_begin(); /* of an output, twice */
        mb_node(m, "Relu", "x", "r", "");
        mb_node(m, ops[k][0], "r", "y", ops[k][1]);
        mb_node(m, ops[k][0], "y", "z", ops[k][1]);
        rc_output(m, "z");
        rc_output(m, "r");
        rc_output(m, "y");
        rc_expect(m, "Relu Identity Identity");

        m = rc_begin(); /* the node before it makes it */
        mb_node(m, "Relu", "x", "r", "");
        mb_node(m, ops[k][0], "r", "y", ops[k][1]);
        rc_output(m, "y");
        rc_expect(m, "Relu");
    }
}

/* The layers stay, marked, at the node that took them over. */
static void identities_are_marked(void **state)
{
    (void)state;
    rc_model l;
    prn_program *p = NULL;
    model_builder *m = rc_begin();
    mb_node(m, "Identity", "x", "v0", "");
    mb_node(m, "Relu", "v0", "v1", "");
    mb_node(m, "Dropout", "v1", "v2", "");
    mb_node(m, "Exp", "v2", "v3", "");
    mb_node(m, "Sum", "x", "y", "");
    rc_output(m, "v3");
    rc_output(m, "y");
    rc_load(&l, m, NULL);
    assert_int_equal(rc_bind(&l, &p), PRONY_OK);
    assert_int_equal(prn_program_rewrite(p, &l.error), PRONY_OK);
    static const bool removed[] = {true, false, true, false, true};
    assert_int_equal(p->layer_count, 5);
    for (size_t k = 0; k < 5; k++) assert_int_equal(p->layers[k].removed, removed[k]);
    prn_program_release(p);
    rc_unload(&l);
    mb_free(m);
}

/* `z` is the other operand of `op`. */
static void expect_expand(const char *from, const int64_t *shape, const char *rank, const char *op, const char *z,
                          int64_t opset, const char *wanted)
{
    model_builder *m = mb_begin(opset);
    mb_input(m, "a", PRONY_FLOAT32, from);
    mb_input(m, "z", PRONY_FLOAT32, z);
    rc_ints(m, "shape", rank, shape);
    mb_node(m, "Relu", "a", "r", "");
    mb_node(m, "Expand", "r shape", "e", "");
    mb_node(m, op, "z e", "y", "");
    rc_output(m, "y");
    rc_expect(m, wanted);
}

/* Broadcasting operators replace the Expand, unless the result would be smaller. */
static void drop_expands(void **state)
{
    (void)state;
    static const int64_t image[] = {2, 4, 5, 5}, row[] = {5}, more[] = {3, 1, 4, 5, 5};
    expect_expand("2,4,1,1", image, "4", "Mul", "2,4,5,5", 17, "Relu Mul");
    expect_expand("4,1,1", image, "4", "Max", "2,4,5,5", 17, "Relu Max");
    expect_expand("1", row, "1", "Sub", "2,4,5,5", 17, "Relu Sub");
    expect_expand("2,4,1,1", image, "4", "Sub", "2,4,1,5", 17, "Relu Expand Sub"); /* the rows come from it */
    expect_expand("4,1,5", more, "5", "Add", "2,4,5,5", 17, "Relu Expand Add");

    model_builder *m = rc_begin(); /* it has another reader */
    rc_ints(m, "shape", "5", more);
    mb_node(m, "Expand", "x shape", "e", "");
    mb_node(m, "Mul", "x e", "p", "");
    mb_node(m, "Sub", "p e", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Expand Mul Sub");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(drop_identities), cmocka_unit_test(drop_more_identities),
                                       cmocka_unit_test(identities_that_are_outputs),
                                       cmocka_unit_test(identities_are_marked), cmocka_unit_test(drop_expands)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
