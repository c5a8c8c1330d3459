/* Plans of every length around the growth steps of their list, with layouts that change on the way. */
#include "failure_trace.h"
#include "tests/support/model_run.h"
#include "prony_report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { CHANNELS = 16, POSITIONS = 16, LONGEST = 40 };

/* `count` times Neg, a convolution by the unit matrix, and a Transpose, which reads plain layout. */
static model_builder *chain(int count)
{
    static float unit[CHANNELS * CHANNELS];
    for (int c = 0; c < CHANNELS; c++) unit[c * CHANNELS + c] = 1;
    char from[16] = "x", to[16], inputs[32];
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "1,16,4,4");
    mb_initializer(m, "unit", PRONY_FLOAT32, "16,16,1,1", unit);
    for (int k = 0; k < count; k++) {
        snprintf(to, sizeof to, "n%d", k);
        mb_node(m, "Neg", from, to, "");
        memcpy(from, to, sizeof from);
    }
    snprintf(inputs, sizeof inputs, "%s unit", from);
    mb_node(m, "Conv", inputs, "c", "");
    mb_node(m, "Transpose", "c", "y", "perm=[0,2,3,1]");
    mb_output(m, "y", PRONY_FLOAT32, "1,4,4,16");
    return m;
}

static void reorders_come_in_at_any_length(void **state)
{
    (void)state;
    float x[CHANNELS * POSITIONS], wanted[CHANNELS * POSITIONS];
    for (int count = 0; count <= LONGEST; count++) {
        SCENARIO(count);
        for (int c = 0; c < CHANNELS; c++)
            for (int p = 0; p < POSITIONS; p++) {
                x[c * POSITIONS + p] = (float)(c * POSITIONS + p + 1);
                wanted[p * CHANNELS + c] = count % 2 ? -x[c * POSITIONS + p] : x[c * POSITIONS + p];
            }
        model_run r = {0};
        mr_open(&r, chain(count));
        mr_set(&r, "x", PRONY_FLOAT32, "1,16,4,4", x);
        mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "1,4,4,16", wanted);
        mr_close(&r);
    }
}

/* A constant takes the layout of the value that it is joined with, in the join's position. Then no copy is left, but
 * the constant is a parameter, and some operator must own it. */
static void joined_constants_are_some_operators_parameters(void **state)
{
    (void)state;
    enum { MORE = 8, ALL = CHANNELS + MORE };
    static float unit[CHANNELS * CHANNELS], wide[ALL * ALL], more[MORE * POSITIONS], x[CHANNELS * POSITIONS];
    float wanted[ALL * POSITIONS];
    for (int c = 0; c < CHANNELS; c++) unit[c * CHANNELS + c] = 1;
    for (int c = 0; c < ALL; c++) wide[c * ALL + c] = 1;
    for (int i = 0; i < ALL * POSITIONS; i++) {
        wanted[i] = (float)(i + 1);
        *(i < CHANNELS * POSITIONS ? &x[i] : &more[i - CHANNELS * POSITIONS]) = wanted[i];
    }
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "1,16,4,4");
    mb_initializer(m, "unit", PRONY_FLOAT32, "16,16,1,1", unit);
    mb_initializer(m, "wide", PRONY_FLOAT32, "24,24,1,1", wide);
    mb_initializer(m, "more", PRONY_FLOAT32, "1,8,4,4", more);
    mb_node(m, "Conv", "x unit", "c", "");
    mb_node(m, "Concat", "c more", "joined", "axis=1");
    mb_node(m, "Conv", "joined wide", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "1,24,4,4");
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "1,16,4,4", x);
    mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "1,24,4,4", wanted);

    prony_report *report = mr_profile(&r);
    size_t count = 0;
    uint64_t parameters = 0;
    const prony_operator_row *rows = prony_report_operators(report, &count);
    for (size_t i = 0; i < count; i++) parameters += rows[i].cost.parameters;
    assert_int_equal(parameters, CHANNELS * CHANNELS + ALL * ALL + MORE * POSITIONS);
    prony_report_release(report);
    mr_close(&r);
}

/* A sum runs in place over an input at its last use, unless the sum reads this input again later. */
static void wide_sums_read_every_input(void **state)
{
    (void)state;
    for (int count = 2; count <= 70; count++) {
        SCENARIO(count);
        for (int again = 1; again < count; again++) {
            char inputs[512] = "a";
            for (int i = 1; i < count; i++) strcat(inputs, i == again ? " a" : " x");
            const float x[4] = {1, 2, 3, 4}, wanted[4] = {(float)(count - 4), (float)(2 * count - 8),
                                                          (float)(3 * count - 12), (float)(4 * count - 16)};
            model_builder *m = mb_begin(13);
            mb_input(m, "x", PRONY_FLOAT32, "4");
            mb_node(m, "Neg", "x", "a", "");
            mb_node(m, "Sum", inputs, "y", "");
            mb_output(m, "y", PRONY_FLOAT32, "4");
            model_run r = {0};
            mr_open(&r, m);
            mr_set(&r, "x", PRONY_FLOAT32, "4", x);
            mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "4", wanted);
            mr_close(&r);
        }
    }
}

/* The first row of an input at its last use, added to all rows: the first row of the result may not overwrite it. */
static void a_part_that_is_broadcast_is_not_overwritten(void **state)
{
    (void)state;
    const float x[6] = {1, 2, 3, 4, 5, 6}, first[6] = {-2, -4, -6, -5, -7, -9}, own[6] = {0, 0, 0, 3, 3, 3};
    for (int with_own = 0; with_own < 2; with_own++) {
        SCENARIO(with_own);
        model_builder *m = mb_begin(13);
        mb_input(m, "x", PRONY_FLOAT32, "2,3");
        mb_node(m, "Neg", "x", "a", "");
        mb_initializer(m, "from", PRONY_INT64, "1", (const int64_t[]){0});
        mb_initializer(m, "to", PRONY_INT64, "1", (const int64_t[]){1});
        mb_node(m, "Slice", "a from to", "row", "");
        mb_node(m, "Sub", with_own ? "row a" : "row x", "y", "");
        mb_output(m, "y", PRONY_FLOAT32, "2,3");
        model_run r = {0};
        mr_open(&r, m);
        mr_set(&r, "x", PRONY_FLOAT32, "2,3", x);
        mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "2,3", with_own ? own : first);
        mr_close(&r);
    }
}

/* Two residuals of one convolution: the first lives on; the result takes the bytes of the second. */
static void a_residual_is_read_before_another_takes_its_place(void **state)
{
    (void)state;
    enum { COUNT = CHANNELS * POSITIONS };
    static float unit[CHANNELS * CHANNELS], x[COUNT], sums[COUNT], first[COUNT];
    for (int c = 0; c < CHANNELS; c++) unit[c * CHANNELS + c] = 1;
    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)(i + 1);
        first[i] = -x[i];
        sums[i] = x[i] + first[i] + 2 * x[i];
    }
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "1,16,4,4");
    mb_initializer(m, "unit", PRONY_FLOAT32, "16,16,1,1", unit);
    mb_node(m, "Neg", "x", "first", "");
    mb_node(m, "Add", "x x", "second", "");
    mb_node(m, "Conv", "x unit", "c", "");
    mb_node(m, "Add", "c first", "d", "");
    mb_node(m, "Add", "d second", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "1,16,4,4");
    mb_output(m, "first", PRONY_FLOAT32, "1,16,4,4");
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "1,16,4,4", x);
    mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "1,16,4,4", sums);
    mr_expect(mr_output(&r, 1), PRONY_FLOAT32, "1,16,4,4", first);
    mr_close(&r);
}

/* A map of one channel is added to sixteen. In a layout that pads channels both take as many bytes, yet the sum may
 * not overwrite the map. */
static void a_padded_channel_is_not_overwritten_while_it_is_broadcast(void **state)
{
    (void)state;
    const float row[4] = {100, 200, 300, 400};
    static float one[CHANNELS], window[CHANNELS * 9], unit[CHANNELS * CHANNELS * 9], x[CHANNELS * POSITIONS],
        wanted[CHANNELS * POSITIONS];
    one[0] = 1;
    for (int c = 0; c < CHANNELS; c++) {
        window[9 * c + 4] = 2;
        unit[9 * (c * CHANNELS + c) + 4] = 1;
        for (int p = 0; p < POSITIONS; p++) {
            x[c * POSITIONS + p] = (float)(c + p + 1);
            wanted[c * POSITIONS + p] = 3 * x[p] + row[p % 4];
        }
    }
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "1,16,4,4");
    mb_initializer(m, "one", PRONY_FLOAT32, "1,16,1,1", one);
    mb_initializer(m, "window", PRONY_FLOAT32, "16,1,3,3", window);
    mb_initializer(m, "unit", PRONY_FLOAT32, "16,16,3,3", unit);
    mb_node(m, "Conv", "x one", "map", "");
    mb_node(m, "Conv", "map window", "wide", "pads=[1,1,1,1]");
    mb_initializer(m, "row", PRONY_FLOAT32, "4", row);
    mb_node(m, "Sum", "map row wide", "sum", "");
    mb_node(m, "Conv", "sum unit", "y", "pads=[1,1,1,1]");
    mb_output(m, "y", PRONY_FLOAT32, "1,16,4,4");
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "1,16,4,4", x);
    mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "1,16,4,4", wanted);
    mr_close(&r);
}

/* For a plain result the smaller tensor is reordered: the operands, unless another operator reads the result, which
 * takes it in any layout. */
static void what_is_given_out_is_made_plain(void **state)
{
    (void)state;
    static float unit[CHANNELS * CHANNELS * 9], x[CHANNELS * POSITIONS], wanted[CHANNELS * POSITIONS * 4];
    for (int c = 0; c < CHANNELS; c++) {
        unit[9 * (c * CHANNELS + c) + 4] = 1;
        for (int p = 0; p < POSITIONS; p++) x[c * POSITIONS + p] = (float)(c * POSITIONS + p + 1);
        for (int p = 0; p < 4 * POSITIONS; p++)
            wanted[4 * c * POSITIONS + p] = x[c * POSITIONS + p / 8 / 2 * 4 + p % 8 / 2];
    }
    for (int read_again = 0; read_again < 2; read_again++) {
        SCENARIO(read_again);
        model_builder *m = mb_begin(13);
        mb_input(m, "x", PRONY_FLOAT32, "1,16,4,4");
        mb_initializer(m, "unit", PRONY_FLOAT32, "16,16,3,3", unit);
        mb_initializer(m, "scales", PRONY_FLOAT32, "4", (const float[]){1, 1, 2, 2});
        mb_node(m, "Conv", "x unit", "c", "pads=[1,1,1,1]");
        mb_node(m, "Resize", "c ? scales", "y", "coordinate_transformation_mode='asymmetric' nearest_mode='floor'");
        if (read_again) mb_node(m, "Conv", "y unit", "z", "pads=[1,1,1,1]");
        mb_output(m, "y", PRONY_FLOAT32, "1,16,8,8");
        if (read_again) mb_output(m, "z", PRONY_FLOAT32, "1,16,8,8");
        model_run r = {0};
        mr_open(&r, m);
        mr_set(&r, "x", PRONY_FLOAT32, "1,16,4,4", x);
        mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "1,16,8,8", wanted);
        if (read_again) mr_expect(mr_output(&r, 1), PRONY_FLOAT32, "1,16,8,8", wanted);
        prony_report *report = mr_profile(&r);
        size_t count = 0;
        const prony_operator_row *rows = prony_report_operators(report, &count);
        if (!read_again) assert_string_equal(rows[count - 1].op, "Resize");
        prony_report_release(report);
        mr_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reorders_come_in_at_any_length),
                                       cmocka_unit_test(what_is_given_out_is_made_plain),
                                       cmocka_unit_test(joined_constants_are_some_operators_parameters),
                                       cmocka_unit_test(wide_sums_read_every_input),
                                       cmocka_unit_test(a_part_that_is_broadcast_is_not_overwritten),
                                       cmocka_unit_test(a_residual_is_read_before_another_takes_its_place),
                                       cmocka_unit_test(a_padded_channel_is_not_overwritten_while_it_is_broadcast)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
