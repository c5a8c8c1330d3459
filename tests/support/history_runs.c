#include "tests/support/history_runs.h"

#include "failure_trace.h"
#include "tests/support/text_sink.h"

#include "profiler/statistics/statistics.h"

#include <math.h>
#include <stdio.h>

enum { LAYERS = 3, DAY = 86400 };

prony_history *history_new(void)
{
    prony_history *h = NULL;
    assert_int_equal(prony_history_create(&h, NULL), PRONY_OK);
    return h;
}

prony_history_run history_plain_run(size_t number)
{
    return (prony_history_run){.time_s = 1700000000 + (int64_t)number * DAY / 12,
                               .document = "prony.report/1",
                               .model = "resnet50.onnx",
                               .sha256 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
                               .machine = "host: processor, 8 of 8 processors",
                               .fingerprint = "f00d",
                               .configuration = "profile, 2 threads, batch 1, fp32",
                               .commit = "",
                               .label = "",
                               .prony = "0.1.0",
                               .load = PRONY_LOAD_QUIET,
                               .others_share = -1};
}

void history_add_times(prony_history *h, const prony_history_run *run, double ms, double second_ms)
{
    prony_history_run own = *run;
    const prony_history_value values[] = {{"latency", ms * 1e6, {ms * 0.99e6, ms * 1.01e6}},
                                          {"throughput", 1e3 / ms, {NAN, NAN}},
                                          {"session_memory", 1 << 20, {NAN, NAN}}};
    const prony_history_layer layers[LAYERS] = {
        {"conv1", "Conv", 2e6}, {"conv2", "Conv", second_ms * 1e6}, {"fc", "Gemm", 1e6}};
    own.values = values;
    own.value_count = sizeof values / sizeof *values;
    own.layers = layers;
    own.layer_count = LAYERS;
    assert_int_equal(prony_history_add(h, &own, NULL), PRONY_OK);
}

prony_history *history_series(size_t count, double (*slower)(size_t run), uint64_t seed)
{
    prony_history *h = history_new();
    char commit[48];
    for (size_t i = 0; i < count; i++) {
        prony_history_run run = history_plain_run(i);
        const double level = slower ? slower(i) : 0, noise = 1 + 0.01 * prn_random_normal(&seed);
        snprintf(commit, sizeof commit, "%040zx", 0xabc000 + i);
        run.commit = commit;
        history_add_times(h, &run, 10 * (1 + level) * noise, 5 * noise + 10 * level);
    }
    return h;
}

double history_late_step(size_t run)
{
    return run >= 40 ? 0.06 : 0;
}

prony_history_verdict history_verdict_of(const prony_history *h, const prony_history_options *options)
{
    prony_history_verdict verdict;
    assert_int_equal(prony_history_check(&verdict, h, options, NULL), PRONY_OK);
    return verdict;
}

char *history_written(const prony_history *h, prony_history_view view, const prony_history_options *options,
                      prony_format format)
{
    sink s = {0};
    prony_error error = {0};
    if (prony_history_write(h, view, options, format, NULL, sink_write, &s, &error) != PRONY_OK)
        fail_msg("%s", error.message);
    assert_non_null(s.text);
    return s.text;
}

prony_history_options history_latency_alone(void)
{
    prony_history_options o = PRONY_HISTORY_OPTIONS_INIT;
    o.metrics = "latency";
    return o;
}
