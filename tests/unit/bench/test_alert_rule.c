/* Alerts on a clock of the test's own: nothing missed, nothing twice, also across restarts. Random series are compared
 * with a definition that looks at the whole series. */
#include "failure_trace.h"
#include "bench/serve/alerts.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000000)

/* The command's own, not cmocka's macro; messages are counted here. */
static int messages;
int(fail)(const options *o, const char *format, ...)
{
    (void)o;
    (void)format;
    messages++;
    return EXIT_FAILED;
}

static void rules_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text, *shown;
        alert_metric metric;
        double limit;
        int64_t for_ns;
        bool above;
    } rows[] = {
        {"latency_p99 > 50ms for 60s", "latency_p99 > 50ms for 60s", ALERT_LATENCY_P99, 50e6, 60 * SECOND, true},
        {"  rate<100/s", "rate < 100/s", ALERT_RATE, 100, 0, false},
        {"throughput <\t100 for 2m", "throughput < 100 for 2m", ALERT_RATE, 100, 120 * SECOND, false},
        {"errors > 1% for 10s", "errors > 1% for 10s", ALERT_ERRORS, 0.01, 10 * SECOND, true},
        {"memory > 2GiB", "memory > 2GiB", ALERT_MEMORY, 2147483648.0, 0, true},
        {"waiting > 100", "waiting > 100", ALERT_WAITING, 100, 0, true}};
    static const char *const bad[] = {"",
                                      "latency_p99",
                                      "latency_p99 >",
                                      "latency_p99 50ms",
                                      "latency_p99 > 50",
                                      "latency_p99 > x",
                                      "nothing > 3",
                                      "rate > 3 for",
                                      "rate > 3 for 5",
                                      "rate > 3 of 5s",
                                      "rate > 3 for 5s more",
                                      "errors > 3",
                                      "rate > nan",
                                      "rate > -1",
                                      "memory > 2",
                                      "drift",
                                      "drift latency_p50",
                                      "drift latency_p50 5",
                                      "drift latency_p50 0%",
                                      "drift queue_p50 5%",
                                      "drift latency_p50 > 5%",
                                      "drift latency_p50 5% for"};
    char message[ALERT_MESSAGE];
    alert_rule rule;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        SCENARIO(i);
        if (!alert_parse(&rule, rows[i].text, message)) fail_msg("%s", message);
        assert_string_equal(rule.text, rows[i].shown);
        assert_int_equal(rule.metric, rows[i].metric);
        assert_true(rule.limit == rows[i].limit && rule.for_ns == rows[i].for_ns && rule.above == rows[i].above);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (alert_parse(&rule, bad[i], message)) fail_msg("accepted: %s", bad[i]);
}

/* Second by second: 'x' the condition holds, '.' it does not, '?' not known. Returns the events: 'F', 'E', '-'. */
static void step_through(const char *series, int seconds, char *events)
{
    alert_rule rule;
    alert_state s = {0};
    char text[64], message[ALERT_MESSAGE];
    snprintf(text, sizeof text, "rate > 5 for %ds", seconds);
    assert_true(alert_parse(&rule, text, message));
    size_t i = 0;
    for (; series[i]; i++) {
        double value = series[i] == 'x' ? 6 : series[i] == '.' ? 4 : NAN;
        alert_event event = alert_step(&s, &rule, value, (int64_t)(i + 1) * SECOND);
        events[i] = event == ALERT_FIRES ? 'F' : event == ALERT_ENDS ? 'E' : '-';
    }
    events[i] = '\0';
}

static void an_alert_fires_and_ends_once(void **state)
{
    (void)state;
    static const struct {
        const char *series, *events;
    } rows[] = {{"xxxxxxx", "---F---"},           {"xx.xxx.xxxx", "----------F"}, {"xxxx......", "---F---E--"},
                {"xxxx..xx....", "---F-------E"}, {"xx?xxxx", "------F"},         {"xxxx..?....", "---F------E"},
                {"xxxx???????", "---F-------"},   {".......", "-------"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        SCENARIO(i);
        char events[32];
        step_through(rows[i].series, 3, events);
        assert_string_equal(events, rows[i].events);
    }
}

/* The definition: fires when the last `seconds` + 1 values all hold and it does not fire yet, ends likewise. */
static void random_series_follow_the_definition(void **state)
{
    (void)state;
    enum { LENGTH = 400 };
    uint32_t random = 7;
    for (int round = 0; round < 300; round++) {
        char series[LENGTH + 1], events[LENGTH + 1], wanted[LENGTH + 1];
        int seconds = round % 5, same[2] = {0, 0};
        bool firing = false;
        unsigned bias = 1 + (unsigned)round % 3;
        for (int i = 0; i < LENGTH; i++) {
            random = random * 1664525u + 1013904223u;
            unsigned draw = random >> 20 & 7;
            series[i] = draw == 7 ? '?' : draw < 3 + bias ? (random >> 28 & 1 && i ? series[i - 1] : 'x') : '.';
            for (int k = 0; k < 2; k++) same[k] = series[i] == "x."[k] ? same[k] + 1 : 0;
            wanted[i] = '-';
            if (same[firing] > seconds) {
                wanted[i] = firing ? 'E' : 'F';
                firing = !firing;
            }
        }
        series[LENGTH] = wanted[LENGTH] = '\0';
        step_through(series, seconds, events);
        if (strcmp(events, wanted) != 0) fail_msg("%s\n%s\n%s", series, events, wanted);
    }
}

/* ---- the set: its file and its command ---- */

static alert_set *make(const options *o)
{
    static const char *const models[] = {"m", "n"};
    alert_set *set = NULL;
    assert_int_equal(alerts_create(&set, o, models, 2), EXIT_DONE);
    return set;
}

static void see(alert_set *set, size_t model, double rate, int second)
{
    alert_values values;
    for (int i = 0; i < ALERT_METRICS; i++) values.value[i] = NAN;
    values.value[ALERT_RATE] = rate;
    alerts_step(set, model, &values, second * SECOND);
}

static int lines_of(const char *path, const char *with)
{
    char line[512];
    int count = 0;
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) count += strstr(line, with) != NULL;
    if (file) fclose(file);
    return count;
}

static void a_restart_misses_and_repeats_nothing(void **state)
{
    (void)state;
    char folder[] = "/tmp/prony-alerts-XXXXXX", kept[64], log[64], command[160];
    assert_non_null(mkdtemp(folder));
    snprintf(kept, sizeof kept, "%s/state", folder);
    snprintf(log, sizeof log, "%s/log", folder);
    snprintf(command, sizeof command, "cat >> %s", log);
    const char *rules[] = {"rate > 5 for 2s"};
    options o = {.serve = {.alerts = rules, .alert_count = 1, .alert_state = kept, .alert_command = command}};
    messages = 0;
    alert_set *set = make(&o);
    for (int i = 1; i <= 4; i++) see(set, 0, 9, i);
    assert_int_equal(messages, 1);
    assert_int_equal(alerts_firing(set), 1);
    alerts_free(set); /* delivers */
    assert_int_equal(lines_of(log, "\"status\":\"firing\",\"model\":\"m\""), 1);
    assert_int_equal(lines_of(kept, "firing sent"), 1);

    set = make(&o); /* it fires still: nothing is sent again */
    assert_int_equal(alerts_firing(set), 1);
    for (int i = 1; i <= 4; i++) see(set, 0, 9, 100 + i);
    alerts_free(set);
    assert_int_equal(messages, 1);
    assert_int_equal(lines_of(log, "firing"), 1);

    o.serve.alert_command = "exit 3"; /* what cannot be sent is sent after the next start */
    set = make(&o);
    for (int i = 1; i <= 4; i++) see(set, 0, 1, 200 + i);
    for (int i = 1; i <= 4; i++) see(set, 1, 9, 200 + i);
    alerts_free(set);
    assert_int_equal(lines_of(kept, "unsent"), 2);
    o.serve.alert_command = command;
    set = make(&o);
    alerts_free(set);
    assert_int_equal(lines_of(log, "resolved"), 1);
    assert_int_equal(lines_of(log, "\"model\":\"n\""), 1);
    assert_int_equal(lines_of(log, "{"), 3);
    assert_int_equal(lines_of(kept, "unsent"), 0);
    unlink(kept);
    unlink(log);
    rmdir(folder);
}

static void add_session(prony_history *past, int64_t time_s, const char *document, const char *configuration,
                        double value)
{
    const prony_history_value values[] = {{"latency", value, {NAN, NAN}}};
    const prony_history_run run = {.time_s = time_s,
                                   .document = document,
                                   .model = "m",
                                   .sha256 = "5a",
                                   .machine = "here",
                                   .fingerprint = "f",
                                   .configuration = configuration,
                                   .commit = "",
                                   .label = "",
                                   .prony = "",
                                   .others_share = -1,
                                   .values = values,
                                   .value_count = 1};
    prony_error error = {0};
    if (prony_history_add(past, &run, &error) != PRONY_OK) fail_msg("%s", error.message);
}

/* The newest ten sessions alone, in any order of adding; other documents, configurations and files do not count. */
static void baselines_are_medians_of_like_sessions(void **state)
{
    (void)state;
    prony_error error = {0};
    prony_history *past = NULL;
    size_t sessions = 0;
    assert_int_equal(prony_history_create(&past, &error), PRONY_OK);
    add_session(past, 50, "", "a", 4);
    add_session(past, 51, "", "a", 6);
    add_session(past, 52, "prony.report/1", "a", 900);
    add_session(past, 53, "", "b", 900);
    const prony_history_run like = *prony_history_at(past, 0);
    prony_history_run other = like;
    other.sha256 = "5b";
    assert_true(alert_baseline(past, &like, "latency", &sessions) == 0 && sessions == 2);
    add_session(past, 40, "", "a", 5);
    assert_true(alert_baseline(past, &like, "latency", &sessions) == 5 && sessions == 3);
    assert_true(alert_baseline(past, &like, "latency_p99", &sessions) == 0 && sessions == 0);
    assert_true(alert_baseline(past, &other, "latency", &sessions) == 0 && sessions == 0);
    for (int i = 0; i < 20; i++) add_session(past, 100 - i, "", "a", i < 10 ? 7 : 100);
    assert_true(alert_baseline(past, &like, "latency", &sessions) == 7 && sessions == ALERT_MOST_SESSIONS);
    prony_history_release(past);
}

static void a_drift_needs_a_baseline(void **state)
{
    (void)state;
    char message[ALERT_MESSAGE];
    alert_rule slower, fewer;
    alert_state s = {0}, rests = {0};
    assert_true(alert_parse(&slower, " drift  latency_median 5% for 0s", message));
    assert_string_equal(slower.text, "drift latency_median 5% for 0s");
    assert_true(alert_parse(&fewer, "drift throughput 10%", message));
    assert_int_equal(alert_step(&rests, &slower, 1e9, SECOND), ALERT_NOTHING);
    s.baseline = 100;
    assert_int_equal(alert_step(&s, &slower, 104, SECOND), ALERT_NOTHING);
    assert_int_equal(alert_step(&s, &slower, 106, SECOND), ALERT_FIRES);
    assert_int_equal(alert_step(&s, &slower, 50, SECOND), ALERT_ENDS);
    assert_int_equal(alert_step(&s, &fewer, 91, SECOND), ALERT_NOTHING);
    assert_int_equal(alert_step(&s, &fewer, 200, SECOND), ALERT_NOTHING);
    assert_int_equal(alert_step(&s, &fewer, 89, SECOND), ALERT_FIRES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_are_read),
        cmocka_unit_test(an_alert_fires_and_ends_once),
        cmocka_unit_test(random_series_follow_the_definition),
        cmocka_unit_test(a_restart_misses_and_repeats_nothing),
        cmocka_unit_test(baselines_are_medians_of_like_sessions),
        cmocka_unit_test(a_drift_needs_a_baseline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
