/* Scan: along any axis, in batches, and with a length that only a run knows. */
#include "failure_trace.h"
#include "tests/support/model_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void scan_body(model_builder *m)
{
    mb_graph_begin(m, "body");
    mb_input(m, "sum", PRONY_FLOAT32, "2");
    mb_input(m, "row", PRONY_FLOAT32, "2");
    mb_node(m, "Add", "sum row", "next", "");
    mb_node(m, "Identity", "next", "out", "");
    mb_output(m, "next", PRONY_FLOAT32, "2");
    mb_output(m, "out", PRONY_FLOAT32, "2");
    mb_graph_end(m);
}

/* Directions and axes: reads columns from the right, writes results from the right along axis 1. */
static void scan_walks_along_any_axis(void **state)
{
    (void)state;
    static const float start[2] = {100, 200}, x[6] = {1, 2, 3, 4, 5, 6};
    static const float last[2] = {106, 215};
    static const float ahead[6] = {103, 105, 106, 206, 211, 215}, behind[6] = {106, 105, 103, 215, 211, 206};
    static const char *const attributes[2] = {
        "num_scan_inputs=1 scan_input_axes=[1] scan_input_directions=[1] scan_output_axes=[-1]",
        "num_scan_inputs=1 scan_input_axes=[-1] scan_input_directions=[1] scan_output_axes=[1] "
        "scan_output_directions=[1]"};
    for (int k = 0; k < 2; k++) {
        SCENARIO(k);
        model_builder *m = mb_begin(11);
        mb_input(m, "start", PRONY_FLOAT32, "2");
        mb_input(m, "x", PRONY_FLOAT32, "2,3");
        mb_node(m, "Scan", "start x", "last all", attributes[k]);
        scan_body(m);
        mb_output(m, "last", PRONY_FLOAT32, "2");
        mb_output(m, "all", PRONY_FLOAT32, "2,3");
        model_run r = {0};
        mr_open(&r, m);
        mr_set(&r, "start", PRONY_FLOAT32, "2", start);
        mr_set(&r, "x", PRONY_FLOAT32, "2,3", x);
        mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "2", last);
        mr_expect(mr_output(&r, 1), PRONY_FLOAT32, "2,3", k ? behind : ahead);
        assert_int_equal(mr_live_bytes(&r), 0);
        if (k) mr_survives_faults(&r);
        mr_close(&r);
    }
}

/* Opset 8: a batch of sequences of different lengths; the rest of a shorter one is zero. */
static void scan_of_a_batch(void **state)
{
    (void)state;
    static const int64_t lengths[2] = {1, 3};
    static const float start[4] = {0, 0, 10, 20}, x[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    static const float last[4] = {1, 2, 37, 50}, all[12] = {1, 2, 0, 0, 0, 0, 17, 28, 26, 38, 37, 50};
    model_builder *m = mb_begin(8);
    mb_input(m, "lengths", PRONY_INT64, "2");
    mb_input(m, "start", PRONY_FLOAT32, "2,2");
    mb_input(m, "x", PRONY_FLOAT32, "2,3,2");
    mb_node(m, "Scan", "lengths start x", "last all", "num_scan_inputs=1");
    scan_body(m);
    mb_output(m, "last", PRONY_FLOAT32, "2,2");
    mb_output(m, "all", PRONY_FLOAT32, "2,3,2");
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "lengths", PRONY_INT64, "2", lengths);
    mr_set(&r, "start", PRONY_FLOAT32, "2,2", start);
    mr_set(&r, "x", PRONY_FLOAT32, "2,3,2", x);
    mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "2,2", last);
    mr_expect(mr_output(&r, 1), PRONY_FLOAT32, "2,3,2", all);
    static const int64_t wrong[2] = {1, 4};
    mr_set(&r, "lengths", PRONY_INT64, "2", wrong);
    mr_refused(&r, PRONY_OUT_OF_RANGE, "length 4");
    mr_close(&r);
}

/* Scan along an axis whose extent is known at run time only. */
static void scan_of_data_dependent_length(void **state)
{
    (void)state;
    static const float x[4] = {0, 5, 0, 7}, none[4] = {0};
    static const int64_t sums[2] = {1, 4};
    model_builder *m = mb_begin(13);
    static const int64_t zero = 0;
    mb_input(m, "x", PRONY_FLOAT32, "4");
    mb_initializer(m, "zero", PRONY_INT64, "1", &zero);
    mb_node(m, "NonZero", "x", "where", "");
    mb_node(m, "Scan", "zero where", "last all", "num_scan_inputs=1 scan_input_axes=[1] scan_output_axes=[0]");
    mb_graph_begin(m, "body");
    mb_input(m, "sum", PRONY_INT64, "1");
    mb_input(m, "place", PRONY_INT64, "1");
    mb_node(m, "Add", "sum place", "next", "");
    mb_node(m, "Identity", "next", "out", "");
    mb_output(m, "next", PRONY_INT64, "1");
    mb_output(m, "out", PRONY_INT64, "1");
    mb_graph_end(m);
    mb_output(m, "last", PRONY_INT64, "1");
    mb_output(m, "all", PRONY_INT64, "T,1");
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "4", x);
    mr_expect(mr_run(&r, 0), PRONY_INT64, "1", &sums[1]);
    mr_expect(mr_output(&r, 1), PRONY_INT64, "2,1", sums);
    mr_set(&r, "x", PRONY_FLOAT32, "4", none);
    mr_expect(mr_run(&r, 0), PRONY_INT64, "1", &zero);
    mr_expect(mr_output(&r, 1), PRONY_INT64, "0,1", sums);
    mr_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scan_walks_along_any_axis),
        cmocka_unit_test(scan_of_a_batch),
        cmocka_unit_test(scan_of_data_dependent_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
