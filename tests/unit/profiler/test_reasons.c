/* Reasons for a slow operator: threads, tiles, detours, traffic, on given values; and the facts that kernels state. */
#include "base/cpu/isa.h"
#include "failure_trace.h"
#include "ops/kernels/gemm/gemm_kernel.h"
#include "ops/kernels/int8/int_gemm.h"
#include "profiler/report/reasons.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* 100 us on 4 threads, of which 40 are lost. */
static prn_thread_facts threads_at_work(void)
{
    return (prn_thread_facts){.threads = 4,
                              .tasks = 64,
                              .members = 4,
                              .busy_ns = 240e3,
                              .longest_ns = 61e3,
                              .wake_ns = 1e3,
                              .time_ns = 100e3,
                              .serial_ns = 240e3,
                              .lost_ns = 40e3};
}

static void reasons_of_threads(void **state)
{
    (void)state;
    prn_thread_facts f = threads_at_work();
    assert_string_equal(prn_thread_reason(&f), "overhead of sharing");
    f.busy_ns = 300e3;
    assert_string_equal(prn_thread_reason(&f), "shared caches or memory");
    f.others = 0.2;
    assert_string_equal(prn_thread_reason(&f), "other processes");
    f.longest_ns = 99e3;
    assert_string_equal(prn_thread_reason(&f), "other processes");
    f.others = 0;
    assert_string_equal(prn_thread_reason(&f), "imbalance");
    f.wake_ns = 30e3;
    assert_string_equal(prn_thread_reason(&f), "wake-up");
    f.clock_ratio = 0.9;
    assert_string_equal(prn_thread_reason(&f), "frequency");
    f.bandwidth_ns = 85e3;
    assert_string_equal(prn_thread_reason(&f), "bandwidth roof");
    f.tasks = 3;
    assert_string_equal(prn_thread_reason(&f), "too few tasks");
    f.tasks = 1;
    assert_string_equal(prn_thread_reason(&f), "serial kernel");
    f.threads = 1;
    assert_string_equal(prn_thread_reason(&f), "one thread inside of it");
    f.lost_ns = 1e3;
    assert_string_equal(prn_thread_reason(&f), "scales");
    f = threads_at_work();
    f.members = 3;
    assert_string_equal(prn_thread_reason(&f), "wake-up");
}

/* ---- a report: 1 GFLOP/s and 1 GB/s, one operator of a given time ---- */

static const prn_roof_compute compute = {"fp32", 1, 1e9};
static const prn_roof_memory memory = {"DRAM", 1, 1e9};

static void judge_as(prony_report *r, prony_operator_row *rows, size_t count)
{
    r->operators = rows;
    r->operator_count = count;
    r->has_roof = true;
    r->config.intra_op_threads = 1;
    r->roof = (prn_report_roof){.compute = &compute, .compute_count = 1, .memory = &memory, .memory_count = 1};
    for (uint32_t o = 0; o < count; o++) {
        rows[o].index = o;
        rows[o].measured = true;
        rows[o].layer_count = 1;
    }
    assert_int_equal(prn_report_fill_reasons(r, NULL), PRONY_OK);
}

static void judge(prony_report *r, prony_operator_row *rows, size_t count)
{
    *r = (prony_report){.choices = NULL};
    judge_as(r, rows, count);
}

static void expect(prony_operator_row row, const char *reason, const char *text)
{
    prony_report r;
    judge(&r, &row, 1);
    for (size_t i = 0; i < row.reason_count; i++) {
        if (strcmp(row.reasons[i].reason, reason) != 0) continue;
        if (!strstr(row.reasons[i].text, text)) fail_msg("%s: \"%s\", not \"%s\"", reason, row.reasons[i].text, text);
        prn_bump_release(&r.pool);
        return;
    }
    fail_msg("no reason \"%s\" among %zu", reason, row.reason_count);
}

/* At half of its compute roof. */
static prony_operator_row half_way(void)
{
    return (prony_operator_row){.name = "a",
                                .op = "MatMul",
                                .kernel = "k",
                                .backend = "native",
                                .threads = 1,
                                .cost = {.macs = 500, .flops = 1000},
                                .time = {.mean_ns = 2000}};
}

static void reasons_of_work(void **state)
{
    (void)state;
    static const prony_fact tiles[] = {{"product_rows", 15}, {"product_columns", 33}, {"product_depth", 16},
                                       {"tile_rows", 14},    {"tile_columns", 32},    {"packs_in_run", 1}};
    static const prony_fact row_facts[] = {{"product_rows", 1}, {"product_columns", 1000}, {"product_depth", 512}};
    prony_operator_row row = half_way();
    row.kernel_facts = tiles;
    row.kernel_fact_count = 6;
    expect(row, "edge tiles", "15 x 33 results in 14 x 32 tiles: 72 % of the tiles' area is empty");
    expect(row, "short rows", "16 products");
    expect(row, "packing", "every run");
    row.kernel_facts = &(const prony_fact){"filters_in_run", 1};
    row.kernel_fact_count = 1;
    expect(row, "packing", "filters are transformed");
    row.kernel_fact_count = 6;
    row.kernel_facts = row_facts;
    row.kernel_fact_count = 3;
    expect(row, "few rows", "used 1 time");
    row = half_way();
    row.cost.bytes_read = 900;
    expect(row, "bandwidth", "900 B: 45.0 % of its time");
    row.op = "Reorder";
    row.output_bytes = 4096;
    expect(row, "reorder", "4.00 KiB");
    row.op = "Copy";
    expect(row, "copy", "4.00 KiB between host memory and a device");
    row.op = "Cast";
    expect(row, "conversion", "4.00 KiB");
    row = half_way();
    row.kernel = "matmul_half_native";
    expect(row, "conversion", "half-precision");
    row.backend = "reference";
    expect(row, "reference kernel", "plain C");
    row.op = "If"; /* no vector kernel could be faster: the time is that of its subgraphs */
    prony_report r;
    judge(&r, &row, 1);
    for (size_t i = 0; i < row.reason_count; i++) assert_string_not_equal(row.reasons[i].reason, "reference kernel");
    prn_bump_release(&r.pool);
}

/* Layers of a rewritten graph count floating-point operations; 8-bit products have no floating-point roof. */
static void reasons_of_codes(void **state)
{
    (void)state;
    static const prony_fact bytes[] = {{"byte_products", 1}};
    prony_operator_row row = half_way();
    prony_report r;
    row.kernel_facts = bytes;
    row.kernel_fact_count = 1;
    judge(&r, &row, 1);
    assert_true(prn_operator_multiplies_bytes(&row));
    assert_int_equal(prony_report_bound(&r, 0, NULL), PRONY_BOUND_UNKNOWN);
    prn_bump_release(&r.pool);
    row = half_way();
    assert_false(prn_operator_multiplies_bytes(&row));
    static const char *const words[] = {"has no integer kernel", "not quantized", "neither quantized nor constant",
                                        "do not suit"};
    for (int64_t k = 0; k < 4; k++) {
        SCENARIO(k);
        const prony_fact stays[] = {{"stays_in_float", k + 1}};
        row = half_way();
        row.kernel_facts = stays;
        row.kernel_fact_count = 1;
        expect(row, "stays in float", words[k]);
    }
    static const char *const kept[] = {"out of range", "no operand is a constant", "too few rows to gain",
                                       "no kernel for the precision"};
    for (int64_t k = 0; k < 4; k++) {
        SCENARIO(k);
        const prony_fact stays[] = {{"stays_in_fp32", k + 1}};
        row = half_way();
        row.kernel_facts = stays;
        row.kernel_fact_count = 1;
        expect(row, "stays in fp32", kept[k]);
    }
}

static void reasons_of_a_team(void **state)
{
    (void)state;
    static const prony_thread_share shares[] = {{0, 0, 1500, 1500, 3}, {1, 10, 500, 490, 1}};
    prony_operator_row row = half_way();
    row.threads = 2;
    row.thread_shares = shares;
    row.thread_share_count = 2;
    row.parallel =
        (prony_parallel){.threads_used = 2, .busy_ns = 2000, .wait_ns = 2000, .imbalance = 0.9, .efficiency = 0.5};
    expect(row, "imbalance", "90 % longer");
    row.parallel.threads_used = 1;
    row.thread_share_count = 0;
    expect(row, "serial kernel", "1 of 2 threads idle");
    row.parallel.efficiency = 0.95; /* well used: nothing to say */
    prony_report r;
    judge(&r, &row, 1);
    assert_int_equal(row.reason_count, 0);
    row = half_way(); /* at 90 % of its roof, likewise */
    static const prony_fact few[] = {{"product_rows", 1}};
    row.kernel_facts = few;
    row.kernel_fact_count = 1;
    row.time.mean_ns = 1111;
    judge(&r, &row, 1);
    assert_int_equal(row.reason_count, 0);
    char text[256];
    assert_false(prn_reasons_text(&row, 3, text, sizeof text));
}

static void what_a_kernel_reaches(void **state)
{
    (void)state;
    prony_operator_row rows[] = {half_way(), half_way(), half_way(), half_way()};
    rows[1].time.mean_ns = 1250;
    rows[2].kernel = "another";
    rows[3].kernel = "";
    rows[1].name = "/best";
    prony_report r;
    char text[256];
    judge(&r, rows, 4);
    assert_true(rows[0].kernel_best > 0.799 && rows[0].kernel_best < 0.801);
    assert_int_equal(rows[0].kernel_best_operator, 1);
    assert_true(prn_kernel_best_text(&r, &rows[0], text, sizeof text));
    assert_string_equal(text, "this kernel's best here: 80 % in /best");
    assert_false(prn_kernel_best_text(&r, &rows[1], text, sizeof text)); /* it is the one */
    assert_int_equal(rows[2].kernel_best_operator, 2);
    assert_true(rows[3].kernel_best == 0);
    prn_bump_release(&r.pool);
}

static int64_t fact_of(const prony_cost *facts, const char *key)
{
    for (uint32_t i = 0; i < facts->fact_count; i++)
        if (strcmp(facts->facts[i].key, key) == 0) return facts->facts[i].value;
    return -1;
}

static void facts_of_products(void **state)
{
    (void)state;
    prn_gemm gemm = {.m = 12, .n = 100, .k = 64, .rs_a = 64, .cs_a = 1, .rs_b = 100, .cs_b = 1, .rs_c = 100};
    prony_cost facts = {.fact_count = 0};
    prn_gemm_facts(&gemm, 1, true, &facts);
    assert_int_equal(fact_of(&facts, "product_rows"), 12);
    assert_int_equal(fact_of(&facts, "product_columns"), 100);
    assert_int_equal(fact_of(&facts, "product_depth"), 64);
    assert_int_equal(fact_of(&facts, "tile_rows"), prn_gemm_isa()->tile_rows);
    assert_int_equal(fact_of(&facts, "tile_columns"), prn_gemm_isa()->panel_columns);
    assert_int_equal(fact_of(&facts, "packs_in_run"), -1);
    facts.fact_count = 0;
    prn_gemm_facts(&gemm, 1, false, &facts);
    assert_int_equal(fact_of(&facts, "packs_in_run"), 1);
    facts.fact_count = 0;
    gemm.m = 0;
    prn_gemm_facts(&gemm, 1, false, &facts);
    assert_int_equal(facts.fact_count, 0);
}

static void facts_of_integer_products(void **state)
{
    (void)state;
    prn_matmul_desc shape = prn_matmul_make(PRONY_INT8, 12, 100, 64);
    prony_cost facts = {.fact_count = 0};
    prn_int_gemm_facts(&shape, true, &facts);
    assert_int_equal(fact_of(&facts, "product_rows"), 12);
    assert_int_equal(fact_of(&facts, "product_columns"), 100);
    assert_int_equal(fact_of(&facts, "product_depth"), 64);
    assert_true(fact_of(&facts, "tile_rows") > 0 && fact_of(&facts, "tile_columns") > 0);
    assert_int_equal(fact_of(&facts, "byte_products"), 1);
    assert_int_equal(fact_of(&facts, "packs_in_run"), -1);
    facts.fact_count = 0;
    prn_int_gemm_facts(&shape, false, &facts);
    assert_int_equal(fact_of(&facts, "packs_in_run"), 1);
    facts.fact_count = 0;
    shape.k = 0;
    prn_int_gemm_facts(&shape, false, &facts);
    assert_int_equal(facts.fact_count, 0);
}

/* 32 (with AVX-512: 64, with AArch64's vectors: 16) operations a cycle at 1 GFLOP/s: 32 ns (64 ns, 16 ns). */
static void reasons_of_the_kernel(void **state)
{
    (void)state;
#ifdef __aarch64__
    const double cycle = 16;
#else
    const double cycle = prn_isa_has(PRN_HAS_AVX512) ? 64 : 32;
#endif
    const prn_kernel_choice choice = {.cycles = 2100 / cycle, .next = "conv_f32_direct", .next_cycles = 3400 / cycle};
    prony_operator_row row = half_way();
    prony_report r = {.choices = &choice};
    char text[256];
    row.kernel = "conv_f32_winograd";
    judge_as(&r, &row, 1);
    assert_string_equal(row.reasons[row.reason_count - 1].reason, "kernel choice");
    assert_string_equal(row.reasons[row.reason_count - 1].text,
                        "conv_f32_winograd: 2.1 us predicted on one core, conv_f32_direct: 3.4 us");
    assert_true(prn_reasons_text(&row, 3, text, sizeof text));
    assert_non_null(strstr(text, "predicted"));
    assert_true(row.reason_count == 1 || prn_reasons_text(&row, 1, text, sizeof text));
    assert_null(strstr(row.reason_count == 1 ? "" : text, "predicted"));
    prn_bump_release(&r.pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reasons_of_threads),        cmocka_unit_test(reasons_of_work),
        cmocka_unit_test(reasons_of_codes),          cmocka_unit_test(reasons_of_a_team),
        cmocka_unit_test(what_a_kernel_reaches),     cmocka_unit_test(facts_of_products),
        cmocka_unit_test(facts_of_integer_products), cmocka_unit_test(reasons_of_the_kernel)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
