/* The accuracy profile: figures that can be worked out by hand, on models whose rounding is known. */
#include "failure_trace.h"
#include "tests/support/accuracy_run.h"
#include "tests/support/text_sink.h"

#include "base/memory/alloc.h"
#include "ops/kernels/vector/number.h"
#include "profiler/accuracy/error_metrics.h"
#include "prony_report.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* ---- float16: 2048 + 1 is not representable, and becomes 2048 */

static void own_and_accumulated_errors_differ(void **state)
{
    (void)state;
    model_run r = {0};
    accuracy_open_half(&r);
    prony_report *report = accuracy_profile(&r, NULL);
    const prony_accuracy_row *add = accuracy_row(report, "add"), *sub = accuracy_row(report, "sub");
    /* y = 2048, 1 beside r = 2049, 1 */
    accuracy_near(add->own.max_abs, 1);
    accuracy_near(add->own.range, 2048);
    accuracy_near(add->own.max_rel, 1.0 / 2048);
    accuracy_near(add->own.ulp, 0.5); /* numbers of float16 between 2048 and 4096 are 2 apart */
    accuracy_near(add->own.snr_db, 10 * log10(2049.0 * 2049.0 + 1));
    accuracy_near(add->own.over_tolerance, 0);
    assert_int_equal(add->own.elements, 2);
    accuracy_near(add->accumulated.max_abs, 1);
    /* y = 0, 1: exact beside 2048 - 2048 and 1 - 0; the reference's own is 1, 1 */
    assert_true(sub->own.known);
    assert_true(sub->own.max_abs == 0 && sub->own.ulp == 0 && isnan(sub->own.snr_db));
    accuracy_near(sub->accumulated.max_abs, 1);
    accuracy_near(sub->accumulated.max_rel, 1); /* 1 throughout: over its size */
    accuracy_near(sub->accumulated.ulp, 1024);
    accuracy_near(sub->accumulated.snr_db, 10 * log10(2.0));
    accuracy_near(sub->accumulated.over_tolerance, 0.5);
    const prony_accuracy *a = prony_report_accuracy(report);
    assert_int_equal(a->compared, 2);
    assert_int_equal(a->without_reference, 0);
    assert_int_equal(a->output_count, 1);
    accuracy_near(a->outputs[0].error.max_abs, 1);
    uint32_t worst[4];
    assert_int_equal(prony_report_accuracy_worst(report, worst, 4), 1);
    assert_string_equal(prony_report_operators(report, NULL)[worst[0]].name, "add");
    assert_non_null(
        strstr(prony_report_accuracy_verdict(report), "'add' (Add) has the largest own error: 0.00049 of its range"));
    prony_report_release(report);
    mr_close(&r);
}

static void infinities_are_counted_where_they_are_born(void **state)
{
    (void)state;
    const uint16_t x[2] = {HALF_300, HALF_1};
    model_run r = {0};
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT16, "2");
    mb_node(m, "Mul", "x x", "square", "");
    mb_node_name(m, "mul");
    mb_node(m, "Neg", "square", "y", "");
    mb_node_name(m, "neg");
    mb_output(m, "y", PRONY_FLOAT16, "2");
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT16, "2", x);
    prony_report *report = accuracy_profile(&r, NULL);
    assert_int_equal(accuracy_row(report, "mul")->own.nonfinite, 1); /* 90000 */
    assert_int_equal(accuracy_row(report, "neg")->own.nonfinite, 0);
    assert_int_equal(accuracy_row(report, "neg")->accumulated.nonfinite, 1);
    accuracy_near(accuracy_row(report, "mul")->own.over_tolerance, 0.5);
    assert_non_null(strstr(prony_report_accuracy_verdict(report), "'mul' (Mul) makes 1 elements infinite or NaN"));
    prony_report_release(report);
    mr_close(&r);
}

/* ---- codes: 0.35f / 0.1f is 3.4999998882…, and 3.5 in float32, which rounds to 4 */

static model_builder *build_codes(void)
{
    const float scale = 0.1f;
    const uint8_t zero = 10;
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "3");
    mb_initializer(m, "scale", PRONY_FLOAT32, "", &scale);
    mb_initializer(m, "zero", PRONY_UINT8, "", &zero);
    mb_node(m, "QuantizeLinear", "x scale zero", "codes", "");
    mb_node_name(m, "quantize");
    mb_node(m, "DequantizeLinear", "codes scale zero", "y", "");
    mb_node_name(m, "dequantize");
    mb_output(m, "y", PRONY_FLOAT32, "3");
    return m;
}

static void errors_of_codes_are_what_they_stand_for(void **state)
{
    (void)state;
    static const float x[3] = {0.35f, 1.0f, -0.5f};
    model_run r = {0};
    mr_open(&r, build_codes());
    mr_set(&r, "x", PRONY_FLOAT32, "3", x);
    prony_report *report = accuracy_profile(&r, NULL);
    const prony_accuracy_row *quantize = accuracy_row(report, "quantize"),
                             *dequantize = accuracy_row(report, "dequantize");
    /* codes 14, 20, 5 beside 13, 20, 5 */
    accuracy_near(quantize->own.max_abs, (double)0.1f);
    accuracy_near(quantize->own.ulp, 1);
    accuracy_near(quantize->own.range, 15 * (double)0.1f);
    accuracy_near(quantize->own.max_rel, 1.0 / 15);
    accuracy_near(quantize->own.snr_db, 10 * log10(9 + 100 + 25));
    accuracy_near(quantize->own.over_tolerance, 1.0 / 3);
    /* 4 * 0.1f in float32 beside the exact products */
    const double exact = 4 * (double)0.1f, rounded = (double)(4 * 0.1f), ten = (double)(10 * 0.1f) - 10 * (double)0.1f;
    assert_true(dequantize->own.max_abs >= fabs(rounded - exact) && dequantize->own.max_abs >= fabs(ten));
    assert_true(dequantize->own.ulp <= 0.5);
    accuracy_near(dequantize->accumulated.max_abs, fabs(rounded - 3 * (double)0.1f));
    prony_report_release(report);
    mr_close(&r);
}

/* ---- layouts, fused operators, what rewriting removed */

enum { CHANNELS = 16, EXTENT = 9 };
static float image[CHANNELS * EXTENT * EXTENT], filters[CHANNELS * CHANNELS * 9], scales[CHANNELS], shifts[CHANNELS];

static void fill(float *data, int count, uint32_t seed)
{
    for (int i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        data[i] = (float)(seed >> 8) / 16777216.0f - 0.5f;
    }
}

static model_builder *build_block(void)
{
    model_builder *m = mb_begin(13);
    fill(image, CHANNELS * EXTENT * EXTENT, 1);
    fill(filters, CHANNELS * CHANNELS * 9, 2);
    fill(shifts, CHANNELS, 3);
    for (int i = 0; i < CHANNELS; i++) scales[i] = 1.0f + 0.1f * (float)i;
    mb_input(m, "x", PRONY_FLOAT32, "1,16,9,9");
    mb_initializer(m, "w", PRONY_FLOAT32, "16,16,3,3", filters);
    mb_initializer(m, "scale", PRONY_FLOAT32, "16", scales);
    mb_initializer(m, "shift", PRONY_FLOAT32, "16", shifts);
    mb_node(m, "Conv", "x w", "c", "pads=[1,1,1,1]");
    mb_node_name(m, "conv");
    mb_node(m, "BatchNormalization", "c scale shift shift scale", "n", "");
    mb_node_name(m, "norm");
    mb_node(m, "Relu", "n", "r", "");
    mb_node_name(m, "relu");
    mb_node(m, "Conv", "r w", "d", "pads=[1,1,1,1] group=1");
    mb_node_name(m, "conv2");
    mb_node(m, "Identity", "d", "i", "");
    mb_node_name(m, "identity");
    mb_node(m, "Add", "i r", "y", "");
    mb_node_name(m, "add");
    mb_output(m, "y", PRONY_FLOAT32, "1,16,9,9");
    return m;
}

static void open_block(model_run *r, bool rewrites, int workers)
{
    r->options = (prony_session_options)PRONY_SESSION_OPTIONS_INIT;
    r->options.no_rewrites = !rewrites;
    r->options.inter_op_threads = workers;
    r->options.intra_op_threads = 1;
    mr_open(r, build_block());
    mr_set(r, "x", PRONY_FLOAT32, "1,16,9,9", image);
}

static void every_layer_has_figures_or_a_reason(const prony_report *report)
{
    for (unsigned level = PRONY_LEVEL_LAYER; level <= PRONY_LEVEL_OPERATOR; level *= 2) {
        size_t count;
        const prony_accuracy_row *rows = prony_report_accuracy_rows(report, level, &count);
        assert_true(count > 0);
        for (size_t i = 0; i < count; i++) {
            const bool known = rows[i].own.known || rows[i].accumulated.known;
            assert_int_equal(rows[i].index, i);
            assert_true(known == !rows[i].not_compared);
            if (!known) continue;
            assert_true(rows[i].own.known && rows[i].accumulated.known);
            assert_true(rows[i].own.max_rel < 1e-6 && rows[i].accumulated.max_rel < 2e-6);
            assert_int_equal(rows[i].own.elements, CHANNELS * EXTENT * EXTENT);
        }
    }
}

static void fused_operators_are_compared_at_their_value(void **state)
{
    (void)state;
    model_run r = {0};
    open_block(&r, true, 1);
    prony_report *report = accuracy_profile(&r, NULL);
    every_layer_has_figures_or_a_reason(report);
    assert_non_null(strstr(accuracy_row(report, "conv")->not_compared, "inside an operator"));
    assert_non_null(accuracy_row(report, "identity")->not_compared);
    assert_string_equal(accuracy_row(report, "norm")->not_compared, "removed by rewriting");
    assert_null(accuracy_row(report, "relu")->not_compared);
    assert_null(accuracy_row(report, "add")->not_compared);
    prony_report_release(report);
    mr_close(&r);
    open_block(&r, false, 1);
    report = accuracy_profile(&r, NULL);
    every_layer_has_figures_or_a_reason(report);
    assert_null(accuracy_row(report, "conv")->not_compared);
    assert_null(accuracy_row(report, "norm")->not_compared);
    prony_report_release(report);
    mr_close(&r);
}

static void workers_and_samples_change_no_figure(void **state)
{
    (void)state;
    model_run one = {0}, two = {0};
    prony_accuracy_options sampled = PRONY_ACCURACY_OPTIONS_INIT;
    sampled.samples = 1;
    open_block(&one, true, 1);
    open_block(&two, true, 2);
    prony_report *a = accuracy_profile(&one, NULL), *b = accuracy_profile(&two, &sampled);
    const prony_accuracy_row *x = accuracy_row(a, "add"), *y = accuracy_row(b, "add");
    assert_true(x->own.max_abs == y->own.max_abs && x->accumulated.snr_db == y->accumulated.snr_db);
    assert_int_equal(prony_report_accuracy(b)->sampled, 1); /* the last one */
    assert_false(accuracy_row(b, "relu")->own.known);
    assert_true(accuracy_row(b, "relu")->accumulated.known);
    assert_true(prony_report_accuracy(a)->sampled > 1);
    assert_true(prony_report_accuracy(a)->peak_bytes > 0);
    prony_report_release(a);
    prony_report_release(b);
    mr_close(&one);
    mr_close(&two);
}

static void a_report_reads_back(void **state)
{
    (void)state;
    model_run r = {0};
    accuracy_open_half(&r);
    prony_report *report = accuracy_profile(&r, NULL), *again = NULL;
    sink a = {0}, b = {0};
    assert_int_equal(prony_report_write(report, PRONY_FORMAT_JSON, NULL, sink_write, &a, &r.error), PRONY_OK);
    if (prony_report_load_memory(&again, "r", a.text, a.size, &r.error) != PRONY_OK) fail_msg("%s", r.error.message);
    assert_int_equal(prony_report_write(again, PRONY_FORMAT_JSON, NULL, sink_write, &b, &r.error), PRONY_OK);
    assert_string_equal(a.text, b.text);
    prn_free(a.text);
    prn_free(b.text);
    assert_string_equal(prony_report_accuracy_verdict(report), prony_report_accuracy_verdict(again));
    prony_report_release(report);
    prony_report_release(again);
    mr_close(&r);
}

/* ---- subgraphs */

/* Five times x = x * x + c, each an output: in float16, which the reference does not round to. */
static void loops_have_a_reference(void **state)
{
    (void)state;
    static const uint16_t x[2] = {0x3800, HALF_1}, c[2] = {0x2e66, 0}; /* 0.5, 1; 0.1 in float16, 0 */
    const int64_t most = 5;
    const bool yes = true;
    model_run r = {0};
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT16, "2");
    mb_input(m, "c", PRONY_FLOAT16, "2");
    mb_initializer(m, "most", PRONY_INT64, "", &most);
    mb_initializer(m, "yes", PRONY_BOOL, "", &yes);
    mb_node(m, "Loop", "most yes x", "last all", "");
    mb_node_name(m, "loop");
    mb_graph_begin(m, "body");
    mb_input(m, "i", PRONY_INT64, "");
    mb_input(m, "go", PRONY_BOOL, "");
    mb_input(m, "was", PRONY_FLOAT16, "2");
    mb_node(m, "Identity", "go", "on", "");
    mb_node(m, "Mul", "was was", "square", "");
    mb_node(m, "Add", "square c", "is", "");
    mb_node(m, "Identity", "is", "kept", "");
    mb_output(m, "on", PRONY_BOOL, "");
    mb_output(m, "is", PRONY_FLOAT16, "2");
    mb_output(m, "kept", PRONY_FLOAT16, "2");
    mb_graph_end(m);
    mb_output(m, "last", PRONY_FLOAT16, "2");
    mb_output(m, "all", PRONY_FLOAT16, "5,2");
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT16, "2", x);
    mr_set(&r, "c", PRONY_FLOAT16, "2", c);
    prony_report *report = accuracy_profile(&r, NULL);
    const prony_accuracy_row *loop = accuracy_row(report, "loop");
    assert_true(loop->own.known && loop->accumulated.known);
    assert_int_equal(loop->own.elements, 12); /* both outputs */
    double value = 0.5, worst = 0;
    const uint16_t *all = mr_output(&r, 1)->data;
    for (int i = 0; i < 5; i++) {
        value = value * value + (double)prn_f16_to_f32(c[0]);
        worst = fmax(worst, fabs(value - (double)prn_f16_to_f32(all[2 * i])));
    }
    assert_true(worst > 0);
    accuracy_near(loop->own.max_abs, worst);
    prony_report_release(report);
    mr_close(&r);
}

static void branches_have_a_reference(void **state)
{
    (void)state;
    static const uint16_t x[2] = {HALF_2048, 0}, ones[2] = {HALF_1, HALF_1};
    for (int taken = 0; taken < 2; taken++) {
        SCENARIO(taken);
        const bool condition = taken;
        model_run r = {0};
        model_builder *m = mb_begin(13);
        mb_input(m, "x", PRONY_FLOAT16, "2");
        mb_input(m, "condition", PRONY_BOOL, "");
        mb_initializer(m, "ones", PRONY_FLOAT16, "2", ones);
        mb_node(m, "If", "condition", "y", "");
        mb_node_name(m, "if");
        mb_graph_begin(m, "then_branch");
        mb_node(m, "Add", "x ones", "sum", "");
        mb_output(m, "sum", PRONY_FLOAT16, "2");
        mb_graph_end(m);
        mb_graph_begin(m, "else_branch");
        mb_node(m, "Neg", "x", "minus", "");
        mb_output(m, "minus", PRONY_FLOAT16, "2");
        mb_graph_end(m);
        mb_output(m, "y", PRONY_FLOAT16, "2");
        mr_open(&r, m);
        mr_set(&r, "x", PRONY_FLOAT16, "2", x);
        mr_set(&r, "condition", PRONY_BOOL, "", &condition);
        prony_report *report = accuracy_profile(&r, NULL);
        accuracy_near(accuracy_row(report, "if")->own.max_abs, taken); /* 2048 + 1, or nothing */
        accuracy_near(accuracy_row(report, "if")->accumulated.max_abs, taken);
        prony_report_release(report);
        mr_close(&r);
    }
}

static void a_model_of_text_has_nothing_to_compare(void **state)
{
    (void)state;
    static const prony_string words[1] = {{(char *)"a", 1}};
    model_run r = {0};
    prony_report *report = NULL;
    prony_profile_options p = PRONY_PROFILE_OPTIONS_INIT;
    model_builder *m = mb_begin(20);
    mb_input(m, "x", PRONY_STRING, "1");
    mb_node(m, "StringConcat", "x x", "y", "");
    mb_output(m, "y", PRONY_STRING, "1");
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_STRING, "1", words);
    p.runs = 1;
    assert_int_equal(prony_session_profile(&report, r.session, &p, &r.error), PRONY_OK);
    assert_int_equal(prony_session_accuracy(report, r.session, NULL, &r.error), PRONY_UNSUPPORTED);
    assert_non_null(strstr(r.error.message, "no operator makes a numeric tensor"));
    assert_null(prony_report_accuracy(report));
    prony_report_release(report);
    mr_close(&r);
}

static void units_in_the_last_place(void **state)
{
    (void)state;
    accuracy_near(prn_ulp(1, PRONY_FLOAT32), 0x1p-23);
    accuracy_near(prn_ulp(1.999, PRONY_FLOAT32), 0x1p-23);
    accuracy_near(prn_ulp(-2, PRONY_FLOAT32), 0x1p-22);
    accuracy_near(prn_ulp(0, PRONY_FLOAT32), 0x1p-149);
    accuracy_near(prn_ulp(1, PRONY_BFLOAT16), 0x1p-7);
    accuracy_near(prn_ulp(0x1p-20, PRONY_FLOAT16), 0x1p-24);
    accuracy_near(prn_ulp(1, PRONY_FLOAT64), 0x1p-52);
    accuracy_near(prn_ulp(100, PRONY_INT64), 1);
}

/* Whatever allocation fails, nothing is lost and the report is as it was. */
static void every_allocation_may_fail(void **state)
{
    (void)state;
    model_run r = {0};
    accuracy_open_half(&r);
    prony_profile_options p = PRONY_PROFILE_OPTIONS_INIT;
    p.runs = 1;
    uint64_t n = 1;
    for (bool failed = true; failed; n++) {
        SCENARIO(failed);
        prony_report *report = NULL;
        prony_error error = {0};
        assert_int_equal(prony_session_profile(&report, r.session, &p, &error), PRONY_OK);
        prn_alloc_fail_at(n);
        prony_status status = prony_session_accuracy(report, r.session, NULL, &error);
        failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        if (status != (failed ? PRONY_OUT_OF_MEMORY : PRONY_OK))
            fail_msg("allocation %llu: %s", (unsigned long long)n, error.message);
        assert_true(failed == !prony_report_accuracy(report));
        prony_report_release(report);
    }
    assert_true(n > 20);
    mr_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(own_and_accumulated_errors_differ),
                                       cmocka_unit_test(infinities_are_counted_where_they_are_born),
                                       cmocka_unit_test(errors_of_codes_are_what_they_stand_for),
                                       cmocka_unit_test(fused_operators_are_compared_at_their_value),
                                       cmocka_unit_test(workers_and_samples_change_no_figure),
                                       cmocka_unit_test(a_report_reads_back),
                                       cmocka_unit_test(loops_have_a_reference),
                                       cmocka_unit_test(branches_have_a_reference),
                                       cmocka_unit_test(a_model_of_text_has_nothing_to_compare),
                                       cmocka_unit_test(units_in_the_last_place),
                                       cmocka_unit_test(every_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
