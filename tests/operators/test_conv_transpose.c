/* Transposed convolutions that share their weights: each reads what was packed for it. */
#include "failure_trace.h"
#include "tests/support/model_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { CHANNELS = 16, SIDE = 5, KERNEL = 4, NODES = 4, WEIGHTS = CHANNELS * CHANNELS * KERNEL * KERNEL };

static const char *const attributes[NODES] = {"strides=[2,2] pads=[1,1,1,1]", "strides=[2,2] output_padding=[1,1]",
                                              "strides=[3,1] dilations=[2,1]", "strides=[2,2] pads=[0,1,0,1]"};
static float x[CHANNELS * SIDE * SIDE], w[WEIGHTS];

static void open_nodes(model_run *run, int first, int end)
{
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "1,16,5,5");
    mb_initializer(m, "w", PRONY_FLOAT32, "16,16,4,4", w);
    for (int i = first; i < end; i++) {
        const char name[] = {(char)('a' + i), 0};
        mb_node(m, "ConvTranspose", "x w", name, attributes[i]);
        mb_output(m, name, PRONY_FLOAT32, NULL);
    }
    run->options = (prony_session_options)PRONY_SESSION_OPTIONS_INIT;
    mr_open(run, m);
    mr_set(run, "x", PRONY_FLOAT32, "1,16,5,5", x);
}

static void nodes_side_by_side_give_what_they_give_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof x / sizeof *x; i++) x[i] = (float)(i * 7919 % 101) / 50.0f - 1.0f;
    for (size_t i = 0; i < WEIGHTS; i++) w[i] = (float)(i * 104729 % 97) / 48.0f - 1.0f;
    model_run all = {0};
    open_nodes(&all, 0, NODES);
    for (int i = 0; i < NODES; i++) {
        SCENARIO(i);
        model_run alone = {0};
        open_nodes(&alone, i, i + 1);
        const prony_value *want = mr_run(&alone, 0), *got = mr_run(&all, (size_t)i);
        const int64_t count = prony_shape_numel(&want->shape);
        assert_int_equal(prony_shape_numel(&got->shape), count);
        if (memcmp(got->data, want->data, (size_t)count * sizeof(float)) != 0)
            fail_msg("node %d (%s) differs", i, attributes[i]);
        mr_close(&alone);
    }
    mr_close(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nodes_side_by_side_give_what_they_give_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
