/* A report like the profiler's of a small residual network: two fused operators, a folded node, a view, an operator
 * outside the arena, names of every convention. The values are invented; the library computes the sums. */
#ifndef PRN_TESTS_SUPPORT_SAMPLE_REPORT_H
#define PRN_TESTS_SUPPORT_SAMPLE_REPORT_H

#include "profiler/report/report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

#define SAMPLE_RUNS 70

typedef struct sample_layer {
    const char *name, *op;
    uint32_t operator_index;
    bool folded;
    int64_t channels, side;
    uint64_t macs, flops, special, parameters;
} sample_layer;

static const sample_layer sample_layers[] = {
    {"/stem/conv1/Conv", "Conv", 0, false, 64, 112, 118013952, 236830720, 0, 9408},
    {"/stem/bn1/BatchNormalization", "BatchNormalization", 0, false, 64, 112, 0, 1605632, 0, 128},
    {"/stem/relu/Relu", "Relu", 0, false, 64, 112, 0, 802816, 0, 0},
    {"/maxpool/MaxPool", "MaxPool", 1, false, 64, 56, 0, 1605632, 0, 0},
    {"/layer1/layer1.0/conv1/Conv", "Conv", 2, false, 64, 56, 115605504, 231411712, 0, 36864},
    {"/layer1/layer1.0/conv2/Conv", "Conv", 3, false, 64, 56, 115605504, 231411712, 0, 36864},
    {"/layer1/layer1.0/Add", "Add", 3, false, 64, 56, 0, 200704, 0, 0},
    {"Shape_17", "Shape", PRONY_NO_INDEX, true, 4, 1, 0, 0, 0, 0},
    {"/avgpool/GlobalAveragePool", "GlobalAveragePool", 4, false, 64, 1, 0, 200704, 64, 0},
    {"/Flatten", "Flatten", PRONY_NO_INDEX, false, 64, 1, 0, 0, 0, 0},
    {"fc.weight::Gemm", "Gemm", 5, false, 1000, 1, 64000, 129000, 0, 65000},
};
#define SAMPLE_LAYERS (sizeof sample_layers / sizeof sample_layers[0])

static const struct {
    const char *name, *op, *kernel, *backend;
    int64_t mean_ns;
} sample_operators[] = {
    {"/stem/conv1/Conv", "Conv", "conv_f32_dnnl", "onednn", 1800000},
    {"/maxpool/MaxPool", "MaxPool", "pool_f32_dnnl", "onednn", 210000},
    {"/layer1/layer1.0/conv1/Conv", "Conv", "conv_f32_dnnl", "onednn", 1290000},
    {"/layer1/layer1.0/conv2/Conv", "Conv", "conv_f32_dnnl", "onednn", 1370000},
    {"/avgpool/GlobalAveragePool", "GlobalAveragePool", "pool_global_f32", "native", 40000},
    {"fc.weight::Gemm", "Gemm", "gemm_f32_openblas", "openblas", 55000},
};
#define SAMPLE_OPERATORS (sizeof sample_operators / sizeof sample_operators[0])

static void *sample_alloc(prony_report *r, size_t count, size_t size)
{
    void *block = prn_bump_alloc(&r->pool, count, size);
    assert_non_null(block);
    return block;
}

static const prony_assumed_dim sample_assumed[] = {{"N", 1, "batch"}, {"image.2", 1, ""}};

static void sample_fill_layers(prony_report *r)
{
    r->layer_count = SAMPLE_LAYERS;
    r->layers = sample_alloc(r, SAMPLE_LAYERS, sizeof *r->layers);
    for (uint32_t i = 0; i < SAMPLE_LAYERS; i++) {
        const sample_layer *s = &sample_layers[i];
        prony_value *value = sample_alloc(r, 1, sizeof *value);
        const prony_value **list = sample_alloc(r, 2, sizeof *list);
        *value = (prony_value){.dtype = PRONY_FLOAT32, .shape = {4, {1, s->channels, s->side, s->side}}};
        list[0] = value;
        prony_cost cost = {.macs = s->macs,
                           .madds = s->macs,
                           .flops = s->flops,
                           .special = s->special,
                           .bytes_read = 4096 * (uint64_t)(i + 1),
                           .bytes_written = 4 * (uint64_t)(s->channels * s->side * s->side),
                           .parameters = s->parameters,
                           .facts = {{"groups", 1}, {"kernel_volume", 9}},
                           .fact_count = s->macs ? 2 : 0};
        r->layers[i] = (prony_layer_row){.index = i,
                                         .operator_index = s->operator_index,
                                         .name = s->name,
                                         .module = "",
                                         .op = s->op,
                                         .folded = s->folded,
                                         .inputs = list, /* the second one is omitted */
                                         .outputs = list,
                                         .input_count = 2,
                                         .output_count = 1,
                                         .cost = cost,
                                         .output_bytes = cost.bytes_written};
    }
}

static void sample_fill_operators(prony_report *r)
{
    r->operator_count = SAMPLE_OPERATORS;
    r->operators = sample_alloc(r, SAMPLE_OPERATORS, sizeof *r->operators);
    for (uint32_t o = 0; o < SAMPLE_OPERATORS; o++) {
        uint32_t *layers = sample_alloc(r, SAMPLE_LAYERS, sizeof *layers);
        prony_operator_row *row = &r->operators[o];
        *row = (prony_operator_row){.index = o,
                                    .name = sample_operators[o].name,
                                    .op = sample_operators[o].op,
                                    .kernel = sample_operators[o].kernel,
                                    .backend = sample_operators[o].backend,
                                    .layers = layers,
                                    .threads = 2,
                                    .offset_bytes = o == 5 ? UINT64_MAX : o * 65536,
                                    .output_bytes = 65536 * (6 - o),
                                    .scratch_bytes = o % 2 ? 0 : 1024,
                                    .library_heap_calls = 7};
        for (uint32_t i = 0; i < SAMPLE_LAYERS; i++) {
            if (sample_layers[i].operator_index != o) continue;
            const prony_cost *c = &r->layers[i].cost;
            layers[row->layer_count++] = i;
            row->cost.macs += c->macs;
            row->cost.madds += c->madds;
            row->cost.flops += c->flops;
            row->cost.special += c->special;
            row->cost.parameters += c->parameters;
            row->cost.bytes_read += c->bytes_read;
            row->cost.bytes_written = c->bytes_written;
        }
    }
}

static void sample_fill_memory(prony_report *r)
{
    prony_memory_point *timeline = sample_alloc(r, SAMPLE_OPERATORS, sizeof *timeline);
    for (uint32_t s = 0; s < SAMPLE_OPERATORS; s++) timeline[s] = (prony_memory_point){s, 4000000 / (s + 1)};
    prony_memory_event *events = sample_alloc(r, 2, sizeof *events);
    events[0] = (prony_memory_event){false, "/maxpool/MaxPool", "activation", 1000, 1024, 0, 1};
    events[1] = (prony_memory_event){true, "/maxpool/MaxPool", "activation", 1000, 1024, 0, 2};
    r->has_memory = true;
    r->memory = (prony_memory_report){.weight_bytes = 593056,
                                      .packed_weight_bytes = 148352,
                                      .planned_bytes = 4100000,
                                      .lower_bound_bytes = 4000000,
                                      .plan_gap = 1 - 40.0 / 41,
                                      .peak_live_bytes = 4000000,
                                      .average_live_bytes = 1633333,
                                      .scratch_bytes = 1024,
                                      .internal_fragmentation = 0.0117,
                                      .external_fragmentation = 0.25,
                                      .allocations = 3,
                                      .releases = 3,
                                      .heap_calls_known = true,
                                      .library_heap_calls_per_run = 42,
                                      .library_heap_calls_known = true,
                                      .peak_rss_bytes = 91234304,
                                      .held_known = true,
                                      .held = {81234304, 20000000, 30000000, 10000000, 602112, 15000000, 5632192},
                                      .timeline = timeline,
                                      .timeline_count = SAMPLE_OPERATORS,
                                      .events = events,
                                      .event_count = 2};
}

static void sample_fill_times(prony_report *r)
{
    static int64_t durations[SAMPLE_RUNS * SAMPLE_OPERATORS], latency[SAMPLE_RUNS];
    for (size_t run = 0; run < SAMPLE_RUNS; run++) {
        latency[run] = 40000;
        for (size_t o = 0; o < SAMPLE_OPERATORS; o++) {
            int64_t noise = (int64_t)((run * 7919 + o * 104729) % 1001) - 500;
            int64_t *d = &durations[run * SAMPLE_OPERATORS + o];
            *d = sample_operators[o].mean_ns + sample_operators[o].mean_ns / 50000 * noise;
            latency[run] += *d;
        }
    }
    prony_error error = {0};
    if (prn_report_fill_times(r, durations, latency, SAMPLE_RUNS, &error) != PRONY_OK) fail_msg("%s", error.message);
    r->warmup_detected = true;
    r->stop_reason = "median known to 1 %";
    r->cpu = (prn_report_cpu){0.97, 660000000, 12000000, 3, 41, 0, 0, 12, 0, NULL, 0};
    r->overhead_ns_per_event = 46.5;
    r->overhead_share = 0.0011;
    r->cost = (prn_report_cost){40, 1810000, 1800000, 0.004, {-0.001, 0.009}};
    r->phases = (prn_report_phases){1200345, 340000, 210000, 5400000, 9100000};
    assert_int_equal(prn_report_add_evaluation(r, "accuracy", 0.9833333333333333, 360, NULL), PRONY_OK);
    assert_int_equal(prn_report_add_evaluation(r, "top5_accuracy", 0.9972222222222222, 360, NULL), PRONY_OK);
    r->output_sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
}

static void sample_fill_details(prony_report *r, bool measured)
{
    static const prony_parameter_row weights[] = {
        {"conv1.weight", 0, PRONY_FLOAT32, {4, {64, 3, 7, 7}}, 9408, 37632, 301056, true, 0.9},
        {"bn1.running_mean", 1, PRONY_FLOAT32, {1, {64}}, 64, 256, 2048, false, 0.1},
        {"", 10, PRONY_UNDEFINED, {.rank = -1}, 12, 0, 0, true, 0}};
    static const uint32_t joined[] = {1, 2};
    static const prn_roof_compute compute = {"fp32", 2, 5e10};
    static const prn_roof_memory memory = {"DRAM", 2, 1.25e10};
    r->parameters = sample_alloc(r, 3, sizeof *r->parameters);
    memcpy(r->parameters, weights, sizeof weights);
    r->parameter_count = 3;
    r->composites = sample_alloc(r, 1, sizeof *r->composites);
    r->composites[0] =
        (prn_composite_row){"Gelu", joined, 2, {.macs = 0, .facts = {{"output_elements", 802816}}, .fact_count = 1}};
    r->composite_count = 1;
    for (uint32_t i = 0; i < r->layer_count; i++) {
        uint32_t *sources = sample_alloc(r, 2, sizeof *sources);
        sources[0] = i ? i - 1 : PRONY_NO_INDEX;
        sources[1] = PRONY_NO_INDEX;
        if (!r->layers[i].sources) r->layers[i].sources = sources;
    }
    if (!measured) return;
    static const uint64_t process_runs[] = {30, 40};
    r->process_runs = process_runs;
    r->process_count = 2;
    r->has_disturbance = true;
    r->disturbance = (prn_disturbance){0.125, 0.0625, 0.25, 41, PRN_LOAD_BUSY};
    static const double use[2][2] = {{0.5, 1}, {0.125, 0.25}};
    static const int64_t times[] = {250000000, 500000000};
    static const prony_core_row cores[] = {{0, 0.75, use[0]}, {3, 0.1875, use[1]}};
    r->cores = cores;
    r->core_count = 2;
    r->core_times_ns = times;
    r->core_points = 2;
    r->has_around = true;
    r->around = (prn_report_around){210000, 34000, r->latency};
    r->has_roof = true;
    static const prn_roof_work work = {"erf", 2, 1.5e9};
    r->roof = (prn_report_roof){&compute, 1, &memory, 1, "best of 5", &work, 1, false};
    r->counters_missing = "";
    r->counter_runs = 10;
    r->counter_read_ns = 900;
    static const prony_reason reasons[] = {
        {"imbalance", "the busiest thread works 31 % longer than the mean"},
        {"edge tiles", "12 x 64 results in 14 x 32 tiles: 14 % of the tiles' area is empty"}};
    static const prony_fact facts[] = {{"product_rows", 12}, {"tile_rows", 14}, {"product_flops", 12}};
    r->operators[2].reasons = reasons;
    r->operators[2].reason_count = 2;
    r->operators[2].kernel_best = 0.5;
    r->operators[2].kernel_best_operator = 3;
    r->operators[2].kernel_facts = facts;
    r->operators[2].kernel_fact_count = 3;
    r->operators[0].counted = true;
    r->operators[0].cycles = 5400000;
    r->operators[0].instructions = 14000000;
    r->operators[0].cache_misses = 21000;
    r->operators[0].traced = true;
    r->operators[0].trace_end_ns = 1800000;
    static const prony_thread_share team[] = {{0, 1000, 1700000, 1690000, 5}, {1, 2000, 1750000, 1700000, 7}};
    r->operators[0].thread_shares = team;
    r->operators[0].thread_share_count = 2;
    static const int64_t thread_busy[] = {1690000, 1700000};
    r->operators[0].parallel = (prony_parallel){2, 3390000, 110000, 0.0029, 1.937, 0.9686};
    r->operators[0].thread_busy_ns = thread_busy;
    r->operators[0].thread_busy_count = 2;
    r->operators[1].traced = true;
    r->operators[1].trace_start_ns = 1800000;
    r->operators[1].trace_end_ns = 1801000;
}

/* An accuracy profile in which operator 0 is inaccurate and operator 1 makes infinities. */
static inline void sample_add_accuracy(prony_report *r)
{
    static const prony_error_metrics off = {true, 0.25, 0.0625, 3.5, 42.5, 0.125, 4, 0, 64},
                                     exact = {.known = true, .snr_db = NAN, .elements = 64},
                                     infinite = {true, 0.5, 0.125, 12, 31, 0.5, 4, 2, 64};
    static const prony_accuracy_output outputs[] = {{"logits", NULL, {true, 0.5, 0.25, 7, 30, 0, 2, 0, 10}},
                                                    {"logits", "other.npy", {true, 0, 0, 0, NAN, 0.1, 2, 1, 10}}};
    r->has_accuracy = true;
    r->accuracy = (prony_accuracy){"float64, the model's own nodes one by one",
                                   1e-3,
                                   r->operator_count,
                                   2,
                                   2,
                                   1,
                                   5000000,
                                   4000000,
                                   123456,
                                   outputs,
                                   2};
    r->layer_errors = sample_alloc(r, r->layer_count, sizeof *r->layer_errors);
    r->operator_errors = sample_alloc(r, r->operator_count, sizeof *r->operator_errors);
    for (uint32_t i = 0; i < r->layer_count; i++)
        r->layer_errors[i] = (prony_accuracy_row){.index = i, .not_compared = "a view of another value"};
    for (uint32_t i = 0; i < r->operator_count; i++)
        r->operator_errors[i] = (prony_accuracy_row){.index = i, .not_compared = "draws random numbers"};
    r->operator_errors[0] =
        (prony_accuracy_row){.index = 0, .own = off, .accumulated = exact, .note = "no float64 reference"};
    r->operator_errors[1] = (prony_accuracy_row){.index = 1, .own = infinite, .accumulated = infinite};
    r->layer_errors[0] = r->operator_errors[0];
    r->layer_errors[1] = r->operator_errors[1];
    assert_int_equal(prn_report_judge_accuracy(r, NULL), PRONY_OK);
}

/* Kernels by measurement: operator 0 does not take its default; its third candidate failed. */
static inline void sample_add_tuning(prony_report *r)
{
    static const prony_tune_trial trials[] = {{"conv_f32_winograd", 120000, 0, ""},
                                              {"conv_f32_direct", 90000, 4000, ""},
                                              {"conv_f32_dnnl", -1, 0, "out of memory"}};
    static const prony_tuned_operator choices[] = {{0, "conv_f32_direct", "conv_f32_winograd", true, trials, 3}};
    r->has_tuning = true;
    r->tuning = (prony_tuning){
        2,       1, 1,     1,      0,     3000000, 20000, "/cache/tune.json", "measurements are not saved: no folder",
        choices, 1, false, 200000, 180000};
}

/* measured false: the report of `inspect`. The caller releases r->pool. */
static void sample_report(prony_report *r, bool measured)
{
    static const prony_value_info in = {"input", PRONY_TENSOR, PRONY_FLOAT32, {4, {1, 3, 224, 224}}, {"batch"}};
    static const prony_value_info out = {"logits", PRONY_TENSOR, PRONY_FLOAT32, {2, {1, -1}}, {"batch", "classes"}};
    static const prony_dim dim = {"batch", 1};
    static const char *const isa[] = {"avx2", "fma", NULL};
    *r = (prony_report){
        .model = {.name = "resnet-sample",
                  .sha256 = measured ? "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" : NULL,
                  .producer = "pytorch 2.1.0",
                  .file_bytes = 600123,
                  .ir_version = 8,
                  .opset = 17,
                  .nodes = SAMPLE_LAYERS,
                  .parameters = 148264,
                  .parameter_bytes = 593056,
                  .parameter_bits = 8 * 593056,
                  .inputs = &in,
                  .outputs = &out,
                  .input_count = 1,
                  .output_count = 1},
        .config = {.assumed = sample_assumed,
                   .assumed_count = 2,
                   .intra_op_threads = 2,
                   .inter_op_threads = 1,
                   .affinity = "",
                   .batch = 1,
                   .dims = &dim,
                   .dim_count = 1,
                   .precision = "fp32",
                   .warmup_runs = measured ? 12 : -1,
                   .runs = measured ? SAMPLE_RUNS : -1,
                   .seed_known = measured,
                   .rewrites = true,
                   .reuse = true},
        .created = "2026-01-31T23:59:59Z",
        .system = {.machine = {.host_name = "host",
                               .os = "Linux",
                               .os_release = "6.1.0",
                               .cpu_model = "AMD EPYC 7763 64-Core Processor",
                               .cpu_count = 8,
                               .mask_count = 4,
                               .physical_cores = 2,
                               .quota_cpus = 2.0,
                               .total_memory_bytes = (uint64_t)16 << 30,
                               .load_avg_1min = 0.31,
                               .caches = {{1, "data", 32768, 2}, {3, "unified", 33554432, 16}},
                               .cache_count = 2},
                   .isa = isa,
                   .isa_used = "avx2",
                   .libraries = "onednn 2.6.3, openblas 0.3.21",
                   .compiler = "gcc 12.2.0",
                   .compiler_flags = "-O3"},
        .phases = {-1, -1, -1, -1, -1}};
    sample_fill_layers(r);
    prony_error error = {0};
    static const char *const imports[] = {"com.microsoft 1"};
    r->assumed_imports = imports;
    r->assumed_import_count = 1;
    if (measured) {
        sample_fill_operators(r);
        sample_fill_memory(r);
        sample_fill_times(r);
    } else {
        static const char *const unsupported[] = {"com.microsoft::FusedMatMul-1 (2 nodes)"};
        for (size_t i = 0; i < SAMPLE_LAYERS; i++) r->layers[i].operator_index = PRONY_NO_INDEX;
        r->unsupported = unsupported;
        r->unsupported_count = 1;
    }
    sample_fill_details(r, measured);
    if (prn_report_fill_totals(r, &error) != PRONY_OK) fail_msg("%s", error.message);
    if (prn_report_fill_modules(r, &error) != PRONY_OK) fail_msg("%s", error.message);
}

#endif
