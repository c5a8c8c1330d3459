/* Parts of fused operators: work by kind, rates, and how a time is shared, on rates that are given. */
#include "failure_trace.h"
#include "profiler/report/work.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Of a machine with 100 GFLOP/s in products, 50 G simple results, 1 G of the others. */
static prn_work_rates given_rates(bool measured)
{
    prn_work_rates rates = {.measured = measured};
    for (int k = 0; k < PRN_WORK_COUNT; k++) rates.per_second[k] = 1e9;
    rates.per_second[PRN_WORK_PRODUCT] = 100e9;
    rates.per_second[PRN_WORK_SIMPLE] = 50e9;
    rates.per_second[PRN_WORK_MOVE] = 50e9;
    return rates;
}

static prony_layer_row layer_of(const char *op, uint64_t macs, uint64_t flops, uint64_t special)
{
    return (prony_layer_row){.op = op, .cost = {.macs = macs, .flops = flops, .special = special}};
}

static void kinds_of_work(void **state)
{
    (void)state;
    prn_layer_work work;
    prony_layer_row layer = layer_of("Gemm", 1000, 2010, 0);
    prn_layer_work_of(&work, &layer, 64);
    assert_true(work.amount[PRN_WORK_PRODUCT] == 2000 && work.amount[PRN_WORK_SIMPLE] == 10);
    assert_true(work.amount[PRN_WORK_MOVE] == 64);
    layer = layer_of("Erf", 0, 100, 100);
    prn_layer_work_of(&work, &layer, 0);
    assert_true(work.amount[PRN_WORK_ERF] == 100 && work.amount[PRN_WORK_SIMPLE] == 0);
    layer = layer_of("Softmax", 0, 498, 200);
    prn_layer_work_of(&work, &layer, 0);
    assert_true(work.amount[PRN_WORK_EXP] == 100 && work.amount[PRN_WORK_DIVIDE] == 100);
    assert_true(work.amount[PRN_WORK_SIMPLE] == 298);
    layer = layer_of("Nobody's", 0, 10, 4);
    prn_layer_work_of(&work, &layer, 0);
    assert_true(work.amount[PRN_WORK_DIVIDE] == 4 && work.amount[PRN_WORK_SIMPLE] == 6);
    static const prony_value scalar = {.dtype = PRONY_FLOAT32, .shape = {.rank = 0}},
                             row = {.dtype = PRONY_FLOAT32, .shape = {.rank = 1, .dim = {10}}};
    const prony_value *by_one[] = {&row, &scalar}, *by_many[] = {&row, &row};
    layer = layer_of("Div", 0, 10, 10);
    layer.input_count = 2;
    layer.inputs = by_one; /* a multiplication */
    prn_layer_work_of(&work, &layer, 0);
    assert_true(work.amount[PRN_WORK_SIMPLE] == 10 && work.amount[PRN_WORK_DIVIDE] == 0);
    layer.inputs = by_many;
    prn_layer_work_of(&work, &layer, 0);
    assert_true(work.amount[PRN_WORK_SIMPLE] == 0 && work.amount[PRN_WORK_DIVIDE] == 10);
}

/* MatMul [128, 384] x [384, 1536] and a Gelu written out: the product takes 1.51 ms of its 1.9 at this rate, erf 197
 * us. */
static void products_take_the_rest(void **state)
{
    (void)state;
    static const uint64_t n = 128 * 1536;
    prony_layer_row layers[] = {layer_of("MatMul", 384 * n, 768 * n, 0), layer_of("Erf", 0, n, n),
                                layer_of("Add", 0, n, 0), layer_of("Mul", 0, n, 0)};
    prn_work_rates rates = given_rates(true);
    prn_layer_work work[4];
    double shares[4], alone_ns = (double)n;
    for (int k = 0; k < 4; k++) prn_layer_work_of(&work[k], &layers[k], 0);
    static const double times[] = {1.8e6, 2.5e6, 5e6}; /* a product at its best, at 66 %, at 32 % */
    for (size_t t = 0; t < 3; t++) {
        SCENARIO(t);
        prn_work_shares(&rates, work, 4, times[t], shares);
        assert_true(fabs(shares[0] + shares[1] + shares[2] + shares[3] - 1) < 1e-12);
        double erf_ns = shares[1] * times[t];
        assert_true(erf_ns > alone_ns / 2 && erf_ns < alone_ns * 2);
        assert_true(fabs(erf_ns / alone_ns - 1) < 0.05);
    }
    prn_work_shares(&rates, work, 4, 0.9e6, shares); /* faster than was thought: everything is */
    assert_true(fabs(shares[1] / shares[0] - (double)n / (768.0 * (double)n / 100)) < 1e-9);
    prn_work_shares(&rates, work, 4, 1e9, shares); /* no product is that slow */
    assert_true(fabs(shares[0] / shares[1] - PRN_SLOWEST_PRODUCTS * 7.68) < 1e-9);
    rates.measured = false; /* ratios alone */
    prn_work_shares(&rates, work, 4, 5e6, shares);
    assert_true(fabs(shares[0] / shares[1] - 7.68) < 1e-9);
}

static void rates_of_a_report(void **state)
{
    (void)state;
    prn_roof_work rows[2 * PRN_WORK_COUNT];
    for (int k = 0; k < PRN_WORK_COUNT; k++) {
        SCENARIO(k);
        rows[k] = (prn_roof_work){prn_work_name((prn_work)k), 1, 1e9 * (k + 1)};
        rows[PRN_WORK_COUNT + k] = (prn_roof_work){prn_work_name((prn_work)k), 5, 5e9 * (k + 1)};
    }
    prony_report r = {.has_roof = true, .roof = {.work = rows, .work_count = 2 * PRN_WORK_COUNT}};
    prn_work_rates rates;
    prn_work_rates_at(&rates, &r, 1);
    assert_true(rates.measured && rates.per_second[PRN_WORK_SIMPLE] == 2e9);
    prn_work_rates_at(&rates, &r, 3);
    assert_true(rates.per_second[PRN_WORK_SIMPLE] == 6e9);
    prn_work_rates_at(&rates, &r, 64);
    assert_true(rates.per_second[PRN_WORK_SIMPLE] == 10e9);
    assert_string_equal(prn_estimate_basis(&r), "measured");
    r.roof.work_count = PRN_WORK_COUNT - 1; /* a kind is missing: all are defaults */
    prn_work_rates_at(&rates, &r, 1);
    assert_false(rates.measured);
    assert_true(rates.per_second[PRN_WORK_PRODUCT] > rates.per_second[PRN_WORK_ERF]);
    assert_string_equal(prn_estimate_basis(&r), "default");
}

/* A removed layer has no time, an operator with one remaining layer is measured, and the sums are the operators'. */
static void times_of_layers(void **state)
{
    (void)state;
    prony_layer_row layers[] = {layer_of("Conv", 500, 1000, 0), layer_of("Dropout", 0, 0, 0),
                                layer_of("Gemm", 100, 200, 0),  layer_of("Tanh", 0, 10, 10),
                                layer_of("Dropout", 0, 0, 0),   layer_of("Identity", 0, 0, 0)};
    layers[1].removed = layers[4].removed = layers[5].removed = true;
    static const uint32_t first[] = {0, 1}, second[] = {2, 3, 4}, third[] = {5};
    prony_operator_row operators[] = {{.name = "a", .layers = first, .layer_count = 2, .threads = 1},
                                      {.name = "b", .layers = second, .layer_count = 3, .threads = 1},
                                      {.name = "c", .layers = third, .layer_count = 1, .threads = 1}};
    for (uint32_t l = 0; l < 6; l++) layers[l].operator_index = l < 2 ? 0 : l < 5 ? 1 : 2;
    prony_report r = {.layers = layers, .layer_count = 6, .operators = operators, .operator_count = 3};
    static const int64_t durations[] = {1001, 333, 7, 2003, 777, 9}, latency[] = {1400, 2800};
    assert_int_equal(prn_report_fill_times(&r, durations, latency, 2, NULL), PRONY_OK);
    assert_int_equal(layers[0].time.mean_ns, operators[0].time.mean_ns);
    assert_int_equal(layers[1].time.mean_ns, 0);
    assert_false(layers[0].time_attributed || layers[1].time_attributed || layers[4].time_attributed);
    assert_true(layers[2].time_attributed && layers[3].time_attributed);
    assert_true(layers[3].time.mean_ns >
                layers[2].time.mean_ns); /* 10 tanh take longer than 100 MACs, of defaults too */
    assert_int_equal(layers[2].time.mean_ns + layers[3].time.mean_ns, operators[1].time.mean_ns);
    assert_int_equal(layers[2].time.max_ns + layers[3].time.max_ns, operators[1].time.max_ns);
    assert_int_equal(layers[4].time.max_ns, 0);
    assert_int_equal(layers[5].time.mean_ns, operators[2].time.mean_ns);
    assert_string_equal(prn_time_kind(&layers[0]), "measured");
    assert_string_equal(prn_time_kind(&layers[1]), "removed");
    assert_string_equal(prn_time_kind(&layers[2]), "estimated");
    assert_string_equal(prn_time_kind(&layers[5]), "measured"); /* it ran */
    prn_bump_release(&r.pool);
}

static void digits_of_estimates(void **state)
{
    (void)state;
    char text[PRN_PART_TEXT_BYTES];
    prony_layer_row layer = {.time_attributed = true, .operator_share = 0.4123};
    assert_string_equal(prn_part_text(text, &layer), "about 40 %");
    layer.operator_share = 0.004;
    assert_string_equal(prn_part_text(text, &layer), "below 1 %");
    layer.operator_share = 0.956;
    assert_int_equal(prn_estimate_digits(&layer), 2);
    assert_string_equal(prn_part_text(text, &layer), "about 96 %");
    layer.operator_share = 0.995;
    assert_int_equal(prn_estimate_digits(&layer), 3);
    assert_string_equal(prn_part_text(text, &layer), "nearly all");
    layer.time_attributed = false;
    assert_null(prn_part_text(text, &layer));
    assert_true(prn_round_digits(0.4123, 1) == 0.4 && prn_round_digits(1234567, 2) == 1200000);
    assert_true(prn_round_digits(0.0956, 2) == 0.096 && prn_round_digits(0, 2) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kinds_of_work), cmocka_unit_test(products_take_the_rest),
                                       cmocka_unit_test(rates_of_a_report), cmocka_unit_test(times_of_layers),
                                       cmocka_unit_test(digits_of_estimates)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
