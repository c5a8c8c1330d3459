/* Added branches of a block become one convolution if their windows fit; others stay. */
#include "failure_trace.h"
#include "rewrite_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

typedef struct pair {
    const char *x, *w, *w_attributes, *v, *v_attributes, *wanted;
} pair;

static void expect_pair(const pair *pair, bool turned)
{
    model_builder *m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, pair->x);
    rc_weights(m, "w", pair->w);
    rc_weights(m, "v", pair->v);
    mb_node(m, "Conv", "x w", "c", pair->w_attributes);
    mb_node(m, "Conv", "x v", "d", pair->v_attributes);
    mb_node(m, "Add", turned ? "d c" : "c d", "y", "");
    rc_output(m, "y");
    rc_expect(m, pair->wanted);
}

static void merge_convolutions(void **state)
{
    (void)state;
    static const pair pairs[] = {
        {"2,4,5,6", "6,4,3,3", "pads=[1,1,1,1]", "6,4,1,1", "", "Conv"},
        {"2,4,5,6", "6,2,3,3", "pads=[1,1,1,1] group=2 strides=[2,2]", "6,2,1,1", "group=2 strides=[2,2]", "Conv"},
        {"1,8,9,9", "8,1,5,5", "pads=[2,2,2,2] group=8", "8,1,3,3", "pads=[1,1,1,1] group=8", "Conv"},
        {"1,8,9,9", "8,1,5,5", "pads=[4,4,4,4] group=8 dilations=[2,2]", "8,1,3,3",
         "pads=[2,2,2,2] group=8 dilations=[2,2]", "Conv"},
        {"1,4,9,9", "4,4,3,3", "pads=[2,2,2,2] dilations=[2,2]", "4,4,1,1", "", "Conv"},
        {"1,4,9,9", "4,4,3,1", "pads=[1,0,1,0]", "4,4,1,1", "", "Conv"},
        {"1,4,9,9", "4,4,3,3", "pads=[1,1,1,1]", "4,4,1,3", "pads=[0,1,0,1]", "Conv"},
        {"1,4,9,9", "4,4,2,2", "pads=[0,0,1,1]", "4,4,1,1", "", "Conv"},
        {"1,4,9", "4,4,3", "auto_pad='VALID'", "4,4,3", "", "Conv"},
        {"1,4,4,5,6", "4,4,3,3,3", "pads=[1,1,1,1,1,1]", "4,4,1,1,1", "", "Conv"},
        /* strides, windows and groups that differ */
        {"1,4,9,9", "4,4,3,3", "pads=[1,1,1,1] strides=[2,2]", "4,4,5,5", "", "Conv Conv[add]"},
        {"1,4,9,9", "4,4,3,3", "pads=[2,2,2,2] dilations=[2,2]", "4,4,3,3", "pads=[1,1,1,1]", "Conv Conv[add]"},
        {"1,4,9,9", "4,4,3,1", "pads=[1,0,1,0]", "4,4,1,3", "pads=[0,1,0,1]", "Conv Conv[add]"},
        {"1,4,9,9", "4,4,3,3", "pads=[1,1,1,1]", "4,2,1,1", "group=2", "Conv Conv[add]"},
        {"1,4,9,9", "4,4,3,3", "pads=[1,1,1,1]", "4,4,3,3", "pads=[0,0,2,2]", "Conv Conv[add]"},
        {"1,4,9,9", "4,4,3,3", "pads=[2,2,0,0] dilations=[1,1]", "4,4,2,2", "pads=[0,0,1,1]", "Conv Conv[add]"},
        {"1,4,9,9", "4,4,3,3", "auto_pad='SAME_UPPER'", "4,4,1,1", "", "Conv Conv[add]"},
        {"1,4,8,8", "4,4,3,3", "pads=[1,1,0,0] strides=[2,2]", "4,4,1,1", "strides=[2,2]",
         "Conv Conv[add]"}, /* of other extents only here */
    };
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        SCENARIO_NAMED(k, pairs[k].x);
        rc_seed((uint32_t)k);
        expect_pair(&pairs[k], false);
        expect_pair(&pairs[k], true);
    }
}

static void merge_norms(void **state)
{
    (void)state;
    static const struct {
        const char *x, *w, *attributes, *wanted;
    } cases[] = {
        {"2,4,5,6", "4,4,3,3", "pads=[1,1,1,1]", "Conv"},
        {"2,4,5,6", "4,1,3,3", "pads=[1,1,1,1] group=4", "Conv"},
        {"2,4,5,6", "4,2,1,1", "group=2", "Conv"},
        {"2,4,9", "4,4,3", "pads=[1,1]", "Conv"},
        {"1,4,5,5", "4,4,3,3", "pads=[2,2,0,0]", "Conv"},
        {"1,4,1,1", "4,4,3,3", "pads=[1,1,1,1] strides=[2,2]", "BatchNormalization Conv[add]"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        SCENARIO_NAMED(k, cases[k].x);
        rc_seed((uint32_t)k);
        model_builder *m = mb_begin(17);
        mb_input(m, "x", PRONY_FLOAT32, cases[k].x);
        rc_weights(m, "w", cases[k].w);
        rc_weights(m, "b", "4");
        rc_batch_norm(m, "x", "n", "4");
        mb_node(m, "Conv", "x w b", "c", cases[k].attributes);
        mb_node(m, "Add", k % 2 ? "c n" : "n c", "y", "");
        rc_output(m, "y");
        rc_expect(m, cases[k].wanted);
    }
}

/* As RepVGG and MobileOne have them, each branch with a normalization of its own. */
static void merge_blocks(void **state)
{
    (void)state;
    static const rc_step steps[] = {{"Conv", "x w b", "c0", "pads=[1,1,1,1]"}, {"Conv", "x point", "d0", ""}, {0}};
    static const rc_step ends[] = {{"Add", "n c", "s", ""}, {"Add", "s d", "t", ""}, {"Relu", "t", "y", ""}, {0}};
    model_builder *m = rc_begin();
    rc_weights(m, "point", "4,4,1,1");
    rc_steps(m, steps);
    rc_batch_norm(m, "c0", "c", "4");
    mb_node(m, "BatchNormalization", "d0 gamma beta mean var", "d", "");
    mb_node(m, "BatchNormalization", "x gamma beta mean var", "n", "");
    rc_steps(m, ends);
    rc_output(m, "y");
    rc_expect(m, "Conv[relu]");
}

static void keep_branches(void **state)
{
    (void)state;
    model_builder *m = rc_begin(); /* of different inputs */
    mb_node(m, "Relu", "x", "r", "");
    mb_node(m, "Conv", "x w b", "c", "pads=[1,1,1,1]");
    mb_node(m, "Conv", "r w b", "d", "pads=[1,1,1,1]");
    mb_node(m, "Add", "c d", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Relu Conv Conv[add]");

    m = rc_begin(); /* the outer sum has something else, the inner one has not */
    rc_weights(m, "point", "4,4,1,1");
    mb_node(m, "Conv", "x w b", "c", "pads=[1,1,1,1]");
    mb_node(m, "Conv", "x point", "d", "");
    mb_node(m, "Add", "c d", "s", "");
    mb_node(m, "Add", "s x", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Conv[add]");

    m = rc_begin(); /* one of them has another reader */
    rc_weights(m, "point", "4,4,1,1");
    mb_node(m, "Conv", "x w b", "c", "pads=[1,1,1,1]");
    mb_node(m, "Conv", "x point", "d", "");
    mb_node(m, "Add", "c d", "y", "");
    rc_output(m, "d");
    rc_output(m, "y");
    rc_expect(m, "Conv Conv[add]");

    m = rc_begin(); /* a sum outside of float32's range */
    rc_weights_in(m, "huge", "4,4,1,1", 3e38f, 3e38f);
    rc_weights_in(m, "point", "4,4,1,1", 3e38f, 3e38f);
    mb_node(m, "Mul", "x b0", "small", "");
    rc_scalar(m, "b0", 1e-20f);
    mb_node(m, "Conv", "small huge", "c", "");
    mb_node(m, "Conv", "small point", "d", "");
    mb_node(m, "Add", "c d", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Mul Conv Conv[add]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(merge_convolutions), cmocka_unit_test(merge_norms),
                                       cmocka_unit_test(merge_blocks), cmocka_unit_test(keep_branches)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
