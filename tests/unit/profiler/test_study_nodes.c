/* Studies of simulated processes over several nodes, and of replicas: rounds, verdicts, the file and back, wrong nodes,
 * and every failing allocation. */
#include "failure_trace.h"
#include "simulated_study.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A node's self-description; nodes[3] has another instruction set. */
static const char *node_text(size_t node, const char *sha256, char text[2000])
{
    snprintf(
        text, 2000,
        "{\"schema\": \"prony.study/1\", \"host_name\": \"n%zu\", \"usable_processors\": %d, \"microcode\": \"0x%d\", "
        "\"numa_memory_bytes\": [1048576, 2097152], \"manifest\": {\"model\": {\"name\": \"made up\", \"sha256\": "
        "\"%s\", \"file_bytes\": 1, \"ir_version\": 8, \"opset\": 17, \"nodes\": 2, \"parameters\": 0, "
        "\"parameter_bytes\": 0, \"inputs\": [], \"outputs\": []}, \"config\": {\"batch\": 1, \"rewrites\": true}, "
        "\"system\": "
        "{\"host_name\": \"n%zu\", \"cpu_model\": \"Processor\", \"isa_used\": \"%s\"}}}",
        node, node == 2 ? 4 : 8, 7, sha256, node, node == 3 ? "avx2" : "avx512");
    return text;
}

static prony_status set_nodes(prony_study *s, size_t count, const char *sha256, prony_error *error)
{
    static char texts[8][2000];
    const char *list[8];
    size_t sizes[8];
    for (size_t i = 0; i < count; i++) {
        list[i] = node_text(i, sha256, texts[i]);
        sizes[i] = strlen(list[i]);
    }
    return prony_study_set_nodes(s, list, sizes, count, error);
}

static double node_factors[8] = {1, 1, 1, 1, 1, 1, 1, 1};

/* Every node in turn takes one block, as ranks on hosts of their own do. */
static prony_status measure_nodes(prony_study *s, prony_error *error)
{
    uint64_t random = 17;
    for (bool any = true; any;) {
        any = false;
        for (size_t node = 0; node < prony_study_node_count(s); node++) {
            prony_study_task task;
            if (!prony_study_next_on(s, node, &task, NULL)) continue;
            any = true;
            PRN_TRY(simulated_study_add(s, node, node_factors[node], &task, &random, error));
        }
    }
    return prony_study_analyse(s, error);
}

static prony_study *study_over(size_t nodes, int processes)
{
    const int64_t threads[] = {1, 2, 4};
    prony_error error = {0};
    prony_study *s = NULL;
    prony_status status = simulated_study_plan(&s, threads, 3, processes, &error);
    if (status == PRONY_OK) status = set_nodes(s, nodes, "00", &error);
    if (status == PRONY_OK) status = measure_nodes(s, &error);
    if (status != PRONY_OK) fail_msg("%s", error.message);
    return s;
}

static void test_rounds_meet_every_node(void **state)
{
    (void)state;
    prony_study *s = study_over(4, 3);
    assert_int_equal(s->order_count, 3 * 4 * 4);
    assert_int_equal(s->usable, 4); /* of the smallest node */
    assert_true(prn_study_lanes(s) == 4);
    for (size_t round = 0; round < 3; round++) {
        SCENARIO(round);
        bool seen[4][4] = {{false}};
        for (size_t i = 16 * round; i < 16 * (round + 1); i++) {
            assert_false(seen[s->order_nodes[i]][s->order[i]]);
            seen[s->order_nodes[i]][s->order[i]] = true;
        }
    }
    for (size_t node = 0; node < 4; node++) {
        SCENARIO(node);
        size_t count;
        const prony_study_result *r = prony_study_results_on(s, node, &count);
        assert_int_equal(count, 4);
        for (size_t c = 0; c < count; c++) assert_true(r[c].processes >= 3);
    }
    assert_null(prony_study_node_host(s, 4));
    assert_string_equal(prony_study_node_host(s, 2), "n2");
    prony_study_release(s);
}

static void test_a_slow_node_is_named(void **state)
{
    (void)state;
    node_factors[3] = 1.3;
    prony_study *s = study_over(4, 6);
    node_factors[3] = 1;
    prony_study_node_verdict v;
    for (size_t node = 0; node < 4; node++) {
        SCENARIO(node);
        assert_true(prony_study_node_verdict_of(s, node, &v));
        assert_string_equal(v.verdict, node == 3 ? "slower" : "same");
        double expected = node == 3 ? 1.3 : 1;
        assert_true(v.interval[0] <= expected * 1.005 && expected * 0.995 <= v.interval[1]);
        assert_true(fabs(v.ratio / expected - 1) < 0.01);
    }
    assert_false(prony_study_node_verdict_of(s, 4, &v));
    size_t named = 0, count;
    for (size_t i = 0; i < s->quality.note_count; i++)
        named += strstr(s->quality.notes[i], "node n3 is slower: its runs take 1.3") != NULL &&
                 strstr(s->quality.notes[i], "instructions used: avx2, most nodes: avx512") != NULL;
    assert_int_equal(named, 1);
    /* The median of the nodes' medians is that of the fast ones; the interval includes the slow one. */
    const prony_study_result *r = prony_study_results(s, &count);
    assert_true(fabs(r[0].median_ns / SIMULATED_NS - 1) < 0.01);
    assert_true(r[0].ci95_ns[1] > 1.25 * SIMULATED_NS && r[0].ci95_ns[0] < 1.01 * SIMULATED_NS);
    /* Speed-ups are the same on every node, and so is the baseline's second time. */
    assert_true(r[1].speedup_ci95[1] - r[1].speedup_ci95[0] < 0.05);
    assert_string_equal(s->quality.aa, "same");
    prony_study_release(s);
}

/* Differences among all nodes single out no node. */
static void test_scattered_nodes_are_not_named(void **state)
{
    (void)state;
    prony_study_node_verdict v;
    for (size_t i = 0; i < 6; i++) node_factors[i] = 1 + 0.02 * (double)i;
    prony_study *s = study_over(6, 6);
    for (size_t i = 0; i < 6; i++) node_factors[i] = 1;
    for (size_t node = 0; node < 6; node++) {
        SCENARIO(node);
        assert_true(prony_study_node_verdict_of(s, node, &v));
        assert_string_not_equal(v.verdict, "slower");
        assert_string_not_equal(v.verdict, "faster");
    }
    prony_study_release(s);
}

static void test_nodes_in_the_file(void **state)
{
    (void)state;
    prony_error error = {0};
    prony_study *s = study_over(4, 3), *back = NULL;
    static study_page first, second;
    size_t different = 9;
    first.size = second.size = 0;
    assert_int_equal(prn_study_write_json(s, NULL, study_page_write, &first, &error), PRONY_OK);
    if (prn_study_read(&back, "study.json", first.text, first.size, &error) != PRONY_OK) fail_msg("%s", error.message);
    assert_int_equal(prony_study_analyse(back, &error), PRONY_OK);
    assert_int_equal(prn_study_write_json(back, NULL, study_page_write, &second, &error), PRONY_OK);
    assert_string_equal(first.text, second.text);
    assert_int_equal(prony_study_compare(back, s, &different, &error), PRONY_OK);
    assert_int_equal(different, 0);
    prony_study_release(back);
    char *node = strstr(first.text, "\"node\": 3");
    assert_non_null(node);
    node[8] = '9';
    assert_int_not_equal(prn_study_read(&back, "study.json", first.text, first.size, &error), PRONY_OK);
    assert_non_null(strstr(error.message, "unknown node 9"));
    prony_study_release(s);
}

static void test_wrong_nodes(void **state)
{
    (void)state;
    const int64_t threads[] = {1, 2};
    prony_error error = {0};
    prony_study *s = NULL;
    assert_int_equal(simulated_study_plan(&s, threads, 2, 3, &error), PRONY_OK);
    assert_int_equal(set_nodes(s, 2, "ff", &error), PRONY_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "node 0 (n0) has another model file"));
    assert_int_equal(set_nodes(s, 0, "00", &error), PRONY_INVALID_ARGUMENT);
    assert_int_equal(prony_study_node_count(s), 0);
    prony_study_task task;
    uint64_t random = 1;
    assert_true(prony_study_next(s, &task));
    assert_int_equal(simulated_study_add(s, 0, 1, &task, &random, &error), PRONY_OK);
    assert_int_equal(set_nodes(s, 2, "00", &error), PRONY_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "has blocks already"));
    prony_study_release(s);
}

/* ---- replicas ---- */

/* A process of a round of `replicas`: its time is as long as throughput with a serial part of 1 / 5 makes it. */
static const char *replica_text(int replicas, uint64_t *random, char text[4000])
{
    int used = snprintf(text, 4000,
                        "{\"batch\": 2, \"warmup_runs\": 3, \"warmup_detected\": true, \"involuntary_switches\": 0, "
                        "\"samples_ns\": [");
    for (int i = 0; i < 20; i++)
        used += snprintf(text + used, 4000 - (size_t)used, "%s%.0f", i ? ", " : "",
                         SIMULATED_NS * (1 + 0.2 * (replicas - 1)) * (1 + 0.002 * prn_random_normal(random)));
    snprintf(text + used, 4000 - (size_t)used, "]}");
    return text;
}

static prony_status measure_replicas(prony_study *s, prony_error *error)
{
    static char texts[8][4000];
    prony_study_task task;
    uint64_t random = 23;
    for (size_t node = 0; node < (s->node_count ? s->node_count : 1); node++)
        while (prony_study_next_on(s, node, &task, NULL)) {
            prony_study_process processes[8] = {{0}};
            const int count = prony_study_replicas(s, task.configuration);
            for (int i = 0; i < count; i++) {
                prony_study_process *p = &processes[i];
                p->sample = replica_text(count, &random, texts[i]);
                p->sample_bytes = strlen(p->sample);
                p->before = p->after = (prony_machine_state){.temperature_c = NAN, .throttle_events = -1};
                p->after.time_ns = 900;
            }
            PRN_TRY(prony_study_add_replicas(s, node, &task, processes, (size_t)count, error));
        }
    return prony_study_analyse(s, error);
}

static prony_status plan_replicas(prony_study **out, size_t nodes, prony_error *error)
{
    static const int64_t one[] = {1}, replicas[] = {1, 2, 4, 8};
    prony_study_options o = PRONY_STUDY_OPTIONS_INIT;
    prony_report *report = simulated_study_manifest();
    if (!report) return PRONY_OUT_OF_MEMORY;
    o.intra_op = one;
    o.intra_op_count = 1;
    o.replicas = replicas;
    o.replica_count = 4;
    o.processes = 5;
    prony_status status = prn_study_plan(out, report, &o, 8, error);
    if (status != PRONY_OK) prony_report_release(report);
    return status == PRONY_OK && nodes ? set_nodes(*out, nodes, "00", error) : status;
}

static void check_replicas(const prony_study *s, size_t nodes)
{
    size_t checked = 0;
    for (size_t c = 0; c < s->configuration_count; c++) {
        prony_study_replica_result r;
        const int n = prony_study_replicas(s, c);
        assert_int_equal(prony_study_replica_result_of(s, c, &r), n > 1);
        if (n == 1) continue;
        double expected = n / (1 + 0.2 * (n - 1));
        assert_int_equal(r.replicas, n);
        assert_int_equal(r.rounds, 5 * (nodes ? nodes : 1));
        assert_true(fabs(r.speedup / expected - 1) < 0.01);
        assert_true(fabs(r.efficiency * n / r.speedup - 1) < 1e-9);
        assert_true(fabs(r.samples_per_second / (2e9 / SIMULATED_NS * expected) - 1) < 0.01);
        assert_true(r.ci95[0] <= r.samples_per_second && r.samples_per_second <= r.ci95[1]);
        assert_int_equal(r.all_nodes_rounds, nodes ? 5 : 0);
        if (nodes) {
            assert_true(fabs(r.all_nodes_samples_per_second / ((double)nodes * r.samples_per_second) - 1) < 0.01);
            assert_true(r.all_nodes_ci95[0] <= r.all_nodes_samples_per_second &&
                        r.all_nodes_samples_per_second <= r.all_nodes_ci95[1]);
            assert_true(fabs(r.all_nodes_efficiency / r.efficiency - 1) < 0.01);
        }
        assert_true(isnan(s->results[c].speedup));
        assert_true(fabs(s->results[c].samples_per_second / r.samples_per_second - 1) < 1e-9);
        checked++;
    }
    assert_int_equal(checked, 3);
    assert_int_equal(s->replica_fit_count, 2);
    assert_true(s->replica_fits[0].law == PRN_LAW_AMDAHL);
    if (nodes) return;
    assert_true(s->replica_fits[0].fit.known && fabs(s->replica_fits[0].fit.alpha - 0.2) < 0.01);
}

static void test_replicas(void **state)
{
    (void)state;
    prony_error error = {0};
    for (size_t nodes = 0; nodes <= 4; nodes += 4) {
        SCENARIO(nodes);
        prony_study *s = NULL, *back = NULL;
        static study_page first, second;
        first.size = second.size = 0;
        assert_int_equal(plan_replicas(&s, nodes, &error), PRONY_OK);
        if (measure_replicas(s, &error) != PRONY_OK) fail_msg("%s", error.message);
        check_replicas(s, nodes);
        assert_int_equal(prn_study_write_json(s, NULL, study_page_write, &first, &error), PRONY_OK);
        if (prn_study_read(&back, "study.json", first.text, first.size, &error) != PRONY_OK)
            fail_msg("%s", error.message);
        assert_int_equal(prony_study_analyse(back, &error), PRONY_OK);
        assert_int_equal(prn_study_write_json(back, NULL, study_page_write, &second, &error), PRONY_OK);
        assert_string_equal(first.text, second.text);
        prony_study_release(back);
        char *replica = strstr(first.text, "\"replica\": 3");
        assert_non_null(replica);
        replica[11] = '5';
        assert_int_not_equal(prn_study_read(&back, "study.json", first.text, first.size, &error), PRONY_OK);
        assert_non_null(strstr(error.message, "is incomplete"));
        prony_study_release(s);
    }
}

/* Of two operators one exceeds its processor's caches, so a replica moves its bytes once a run; 8 processors share 64
 * MB. */
static void test_bandwidth_of_replicas(void **state)
{
    (void)state;
    static const prn_roof_memory roof[] = {{"DRAM", 1, 10e9}, {"DRAM", 8, 40e9}};
    static prn_study_operator operators[] = {{.name = "small", .bytes = 1000000}, {.name = "large", .bytes = 8000000}};
    prony_error error = {0};
    prony_study *s = NULL;
    prn_study_replica_bandwidth b;
    assert_int_equal(plan_replicas(&s, 0, &error), PRONY_OK);
    assert_int_equal(measure_replicas(s, &error), PRONY_OK);
    assert_int_equal(s->replica_bandwidth_count, 0); /* without roofs */
    prony_report *manifest = s->manifest;
    manifest->has_roof = true;
    manifest->roof.memory = roof;
    manifest->roof.memory_count = 2;
    prn_machine *machine = &manifest->system.machine;
    machine->cache_count = 2;
    machine->caches[0] = (prn_cache_level){2, "unified", 2000000, 1};
    machine->caches[1] = (prn_cache_level){3, "unified", 32000000, 4};
    assert_false(prn_study_replica_bandwidth_of(s, 0, &b)); /* without operators */
    s->configurations[0].operators = operators;
    s->configurations[0].operator_count = 2;
    assert_int_equal(prony_study_analyse(s, &error), PRONY_OK);
    assert_int_equal(s->replica_bandwidth_count, 1);
    b = s->replica_bandwidths[0];
    const double rate = 8e6 / (s->results[0].median_ns * 1e-9);
    assert_true(fabs(b.bytes_per_second / rate - 1) < 1e-9);
    assert_true(b.roof_bytes_per_second > 39e9 && b.roof_bytes_per_second < 41e9);
    const double by_rate = ceil(40e9 / rate), by_data = floor(64e6 / 9e6) + 1;
    assert_int_equal(b.full_at, fmax(by_rate, by_data));
    operators[1].bytes = 1500000; /* the own caches hold each operator's data */
    assert_int_equal(prony_study_analyse(s, &error), PRONY_OK);
    assert_int_equal(s->replica_bandwidths[0].full_at, 0);
    s->configurations[0].operator_count = 0;
    manifest->roof.memory = NULL;
    manifest->roof.memory_count = 0;
    prony_study_release(s);
}

/* A round is complete or counts as one failure: replicas with results are not kept beside one without. */
static void test_a_replica_that_fails_fails_its_round(void **state)
{
    (void)state;
    prony_error error = {0};
    prony_study *s = NULL;
    static char text[4000];
    uint64_t random = 5;
    assert_int_equal(plan_replicas(&s, 0, &error), PRONY_OK);
    prony_study_task task = {.configuration = 1, .precision = "fp32"};
    assert_int_equal(prony_study_replicas(s, 1), 2);
    assert_false(prony_study_next_of(s, 1, 1, &task)); /* no such node */
    assert_true(prony_study_next_of(s, 0, 1, &task));
    assert_int_equal(task.configuration, 1);
    assert_int_equal(task.process, 0);
    replica_text(2, &random, text);
    prony_study_process good = {.sample = text, .sample_bytes = strlen(text)}, killed = {.failure = "killed"},
                        damaged = {.sample = "{", .sample_bytes = 1};
    assert_int_equal(prony_study_add_replicas(s, 0, &task, (prony_study_process[]){good, killed}, 2, &error), PRONY_OK);
    assert_int_equal(s->block_count, 1);
    assert_string_equal(s->blocks[0].failure, "killed");
    assert_int_equal(prony_study_add_replicas(s, 0, &task, (prony_study_process[]){good, damaged}, 2, &error),
                     PRONY_OK);
    assert_int_equal(s->block_count, 2);
    assert_non_null(s->blocks[1].failure);
    assert_int_equal(s->blocks[1].replica, 0);
    assert_int_equal(prony_study_add_replicas(s, 0, &task, &good, 1, &error), PRONY_INVALID_ARGUMENT);
    assert_int_equal(s->block_count, 2);
    prony_study_release(s);
}

static prony_status everything_of_replicas(prony_error *error)
{
    prony_study *s = NULL;
    static study_page sink;
    prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
    sink.size = 0;
    prony_status status = plan_replicas(&s, 3, error);
    if (status == PRONY_OK) status = measure_replicas(s, error);
    if (status == PRONY_OK) status = prn_study_write_text(s, &options, study_page_write, &sink, error);
    prony_study_release(s);
    return status;
}

static void test_allocation_failures_of_replicas(void **state)
{
    (void)state;
    fail_every_allocation(everything_of_replicas, 5);
}

static prony_status everything_over_nodes(prony_error *error)
{
    const int64_t threads[] = {1, 2};
    prony_study *s = NULL, *back = NULL;
    static study_page sink;
    prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
    sink.size = 0;
    prony_status status = simulated_study_plan(&s, threads, 2, 3, error);
    if (status == PRONY_OK) status = set_nodes(s, 3, "00", error);
    if (status == PRONY_OK) status = measure_nodes(s, error);
    if (status == PRONY_OK) status = prn_study_write_json(s, NULL, study_page_write, &sink, error);
    if (status == PRONY_OK) status = prn_study_read(&back, "study.json", sink.text, sink.size, error);
    if (status == PRONY_OK) status = prony_study_analyse(back, error);
    if (status == PRONY_OK) status = prony_study_compare(back, s, NULL, error);
    sink.size = 0;
    if (status == PRONY_OK) status = prn_study_write_text(back, &options, study_page_write, &sink, error);
    if (status == PRONY_OK) status = prn_study_write_csv(back, &options, study_page_write, &sink, error);
    prony_study_release(back);
    prony_study_release(s);
    return status;
}

static void test_allocation_failures_over_nodes(void **state)
{
    (void)state;
    fail_every_allocation(everything_over_nodes, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rounds_meet_every_node),
                                       cmocka_unit_test(test_a_slow_node_is_named),
                                       cmocka_unit_test(test_scattered_nodes_are_not_named),
                                       cmocka_unit_test(test_nodes_in_the_file),
                                       cmocka_unit_test(test_wrong_nodes),
                                       cmocka_unit_test(test_replicas),
                                       cmocka_unit_test(test_bandwidth_of_replicas),
                                       cmocka_unit_test(test_a_replica_that_fails_fails_its_round),
                                       cmocka_unit_test(test_allocation_failures_of_replicas),
                                       cmocka_unit_test(test_allocation_failures_over_nodes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
