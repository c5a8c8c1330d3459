/* Rules and their states: no clock, no file, no process. */
#include "bench/serve/alerts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum unit_kind { UNIT_TIME, UNIT_RATE, UNIT_SHARE, UNIT_COUNT, UNIT_BYTES } unit_kind;

static const struct {
    const char *name;
    unit_kind kind;
    const char *history; /* key of the metric that a session of `prony serve` leaves; NULL: none */
} metrics[ALERT_METRICS] = {[ALERT_LATENCY_MEAN] = {"latency_mean", UNIT_TIME, "latency_mean"},
                            [ALERT_LATENCY_P50] = {"latency_p50", UNIT_TIME, "latency"},
                            [ALERT_LATENCY_P90] = {"latency_p90", UNIT_TIME, "latency_p90"},
                            [ALERT_LATENCY_P95] = {"latency_p95", UNIT_TIME, "latency_p95"},
                            [ALERT_LATENCY_P99] = {"latency_p99", UNIT_TIME, "latency_p99"},
                            [ALERT_LATENCY_MAX] = {"latency_max", UNIT_TIME, "latency_max"},
                            [ALERT_QUEUE_P50] = {"queue_p50", UNIT_TIME, NULL},
                            [ALERT_QUEUE_P99] = {"queue_p99", UNIT_TIME, NULL},
                            [ALERT_RATE] = {"rate", UNIT_RATE, "requests_per_second"},
                            [ALERT_SAMPLES] = {"samples", UNIT_RATE, NULL},
                            [ALERT_ERRORS] = {"errors", UNIT_SHARE, NULL},
                            [ALERT_BATCH] = {"batch", UNIT_COUNT, NULL},
                            [ALERT_WAITING] = {"waiting", UNIT_COUNT, NULL},
                            [ALERT_MEMORY] = {"memory", UNIT_BYTES, NULL}};

static const struct {
    const char *name;
    alert_metric metric;
} other_names[] = {{"latency_median", ALERT_LATENCY_P50}, {"throughput", ALERT_RATE}, {"error_rate", ALERT_ERRORS}};

typedef struct unit {
    const char *name;
    double factor;
} unit;

static const unit times[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}, {NULL, 0}},
                  rates[] = {{"/s", 1}, {"", 1}, {"/min", 1.0 / 60}, {NULL, 0}}, shares[] = {{"%", 0.01}, {NULL, 0}},
                  counts[] = {{"", 1}, {NULL, 0}},
                  sizes[] = {{"B", 1},        {"kB", 1e3},     {"MB", 1e6},     {"GB", 1e9},
                             {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {NULL, 0}};
static const unit *const units[] = {times, rates, shares, counts, sizes};

/* The next word; words end at blanks, and before and behind a comparison. */
static bool alert_next_word(const char **text, char word[64])
{
    const char *at = *text + strspn(*text, " \t");
    size_t length = *at == '<' || *at == '>' ? 1 : strcspn(at, " \t<>");
    *text = at + length;
    if (!length || length >= 64) return false;
    memcpy(word, at, length);
    word[length] = '\0';
    return true;
}

static bool alert_read_value(const char *word, const unit *known, double *out)
{
    char *end;
    double value = strtod(word, &end);
    if (end == word || !isfinite(value) || value < 0) return false;
    for (; known->name; known++)
        if (strcmp(known->name, end) == 0) return *out = value * known->factor, true;
    return false;
}

static bool alert_find_metric(const char *word, alert_metric *out)
{
    for (int i = 0; i < ALERT_METRICS; i++)
        if (strcmp(metrics[i].name, word) == 0) return *out = (alert_metric)i, true;
    for (size_t i = 0; i < sizeof other_names / sizeof *other_names; i++)
        if (strcmp(other_names[i].name, word) == 0) return *out = other_names[i].metric, true;
    return false;
}

static bool refuse_rule(char message[ALERT_MESSAGE], const char *text, const char *why, const char *value)
{
    snprintf(message, ALERT_MESSAGE,
             "'%.80s': %s '%.40s'; wanted METRIC > LIMIT [for TIME], or drift METRIC SHARE [for TIME]", text, why,
             value);
    return false;
}

/* "for TIME" and the end of a rule. */
static bool parse_time(alert_rule *rule, const char *text, const char *at, char time[64], char message[ALERT_MESSAGE])
{
    char word[64] = "", more[64] = "";
    double for_ns = 0;
    *time = '\0';
    if (!alert_next_word(&at, word)) return true;
    if (strcmp(word, "for") != 0) return refuse_rule(message, text, "unexpected", word);
    if (!alert_next_word(&at, time) || !alert_read_value(time, times, &for_ns) || for_ns > 86400e9 * 30)
        return refuse_rule(message, text, "a time such as 60s, got", time);
    if (alert_next_word(&at, more)) return refuse_rule(message, text, "unexpected", more);
    rule->for_ns = (int64_t)for_ns;
    return true;
}

/* Behind "drift": latencies drift upwards, rates downwards. */
static bool parse_drift(alert_rule *rule, const char *text, const char *at, char message[ALERT_MESSAGE])
{
    char metric[64] = "", share[64] = "", time[64];
    alert_next_word(&at, metric);
    if (!alert_find_metric(metric, &rule->metric)) return refuse_rule(message, text, "unknown metric", metric);
    if (!metrics[rule->metric].history) return refuse_rule(message, text, "histories have no metric", metric);
    if (!alert_next_word(&at, share) || !alert_read_value(share, shares, &rule->drift) || !(rule->drift > 0))
        return refuse_rule(message, text, "a share above 0 such as 5%, got", share);
    if (!parse_time(rule, text, at, time, message)) return false;
    rule->above = metrics[rule->metric].kind == UNIT_TIME;
    snprintf(rule->text, sizeof rule->text, "drift %s %s%s%s", metric, share, *time ? " for " : "", time);
    return true;
}

bool alert_parse(alert_rule *rule, const char *text, char message[ALERT_MESSAGE])
{
    static const char *const wanted[] = {"a time such as 50ms, got", "a rate such as 100/s, got",
                                         "per cent such as 1%, got", "a number, got", "a size such as 2GiB, got"};
    char metric[64] = "", comparison[64] = "", limit[64] = "", time[64];
    const char *at = text;
    *rule = (alert_rule){.above = true};
    alert_next_word(&at, metric);
    if (strcmp(metric, "drift") == 0) return parse_drift(rule, text, at, message);
    if (!alert_find_metric(metric, &rule->metric)) return refuse_rule(message, text, "unknown metric", metric);
    if (!alert_next_word(&at, comparison) || (*comparison != '<' && *comparison != '>'))
        return refuse_rule(message, text, "no comparison behind", metric);
    rule->above = *comparison == '>';
    unit_kind kind = metrics[rule->metric].kind;
    if (!alert_next_word(&at, limit) || !alert_read_value(limit, units[kind], &rule->limit))
        return refuse_rule(message, text, wanted[kind], limit);
    if (!parse_time(rule, text, at, time, message)) return false;
    snprintf(rule->text, sizeof rule->text, "%s %s %s%s%s", metric, comparison, limit, *time ? " for " : "", time);
    return true;
}

const char *alert_history_metric(alert_metric metric)
{
    return metrics[metric].history;
}

/* NaN: a drift rule without a baseline. */
static double alert_limit(const alert_state *state, const alert_rule *rule)
{
    if (rule->drift == 0) return rule->limit;
    if (!(state->baseline > 0)) return NAN;
    return state->baseline * (rule->above ? 1 + rule->drift : 1 - rule->drift);
}

alert_event alert_step(alert_state *state, const alert_rule *rule, double value, int64_t now_ns)
{
    const double limit = alert_limit(state, rule);
    if (isnan(value) || isnan(limit)) {
        state->changing = false;
        return ALERT_NOTHING;
    }
    bool holds = rule->above ? value > limit : value < limit;
    state->value = value;
    state->known = true;
    if (holds == state->firing) {
        state->changing = false;
        return ALERT_NOTHING;
    }
    if (!state->changing) state->since_ns = now_ns;
    state->changing = true;
    if (now_ns - state->since_ns < rule->for_ns) return ALERT_NOTHING;
    state->changing = false;
    state->firing = holds;
    return holds ? ALERT_FIRES : ALERT_ENDS;
}

/* ---- baselines ---- */

static bool is_like_session(const prony_history_run *run, const prony_history_run *like)
{
    return !*run->document && strcmp(run->sha256, like->sha256) == 0 &&
           strcmp(run->fingerprint, like->fingerprint) == 0 && strcmp(run->configuration, like->configuration) == 0;
}

static int alert_compare_numbers(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Keeps the newest values in the order of their times, so that the history's order does not matter. */
double alert_baseline(const prony_history *past, const prony_history_run *like, const char *metric, size_t *sessions)
{
    double values[ALERT_MOST_SESSIONS + 1];
    int64_t times_s[ALERT_MOST_SESSIONS + 1];
    size_t count = 0;
    for (size_t i = 0; i < prony_history_count(past); i++) {
        const prony_history_run *run = prony_history_at(past, i);
        if (!is_like_session(run, like)) continue;
        for (size_t v = 0; v < run->value_count; v++) {
            if (strcmp(run->values[v].metric, metric) != 0) continue;
            size_t at = count;
            for (; at > 0 && times_s[at - 1] < run->time_s; at--) {
                times_s[at] = times_s[at - 1];
                values[at] = values[at - 1];
            }
            times_s[at] = run->time_s;
            values[at] = run->values[v].value;
            if (count < ALERT_MOST_SESSIONS) count++;
        }
    }
    *sessions = count;
    if (count < ALERT_LEAST_SESSIONS) return 0;
    qsort(values, count, sizeof *values, alert_compare_numbers);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static double known_time(int64_t ns)
{
    return ns < 0 ? NAN : (double)ns;
}

alert_values alert_values_of(const stats_summary *s, size_t waiting, int64_t rss_bytes)
{
    return (alert_values){{[ALERT_LATENCY_MEAN] = known_time(s->mean),
                           [ALERT_LATENCY_P50] = known_time(s->p50),
                           [ALERT_LATENCY_P90] = known_time(s->p90),
                           [ALERT_LATENCY_P95] = known_time(s->p95),
                           [ALERT_LATENCY_P99] = known_time(s->p99),
                           [ALERT_LATENCY_MAX] = known_time(s->max),
                           [ALERT_QUEUE_P50] = known_time(s->queue_p50),
                           [ALERT_QUEUE_P99] = known_time(s->queue_p99),
                           [ALERT_RATE] = s->rate,
                           [ALERT_SAMPLES] = s->samples_rate,
                           [ALERT_ERRORS] = s->requests ? s->failed_share : NAN,
                           [ALERT_BATCH] = s->runs ? s->mean_batch : NAN,
                           [ALERT_WAITING] = (double)waiting,
                           [ALERT_MEMORY] = rss_bytes < 0 ? NAN : (double)rss_bytes}};
}

void alert_show(alert_metric metric, double value, char text[32])
{
    switch (metrics[metric].kind) {
    case UNIT_TIME:
        snprintf(text, 32, "%.4g ms", value / 1e6);
        break;
    case UNIT_RATE:
        snprintf(text, 32, "%.4g/s", value);
        break;
    case UNIT_SHARE:
        snprintf(text, 32, "%.3g %%", value * 100);
        break;
    case UNIT_BYTES:
        snprintf(text, 32, "%.4g MiB", value / 0x1p20);
        break;
    default:
        snprintf(text, 32, "%.4g", value);
    }
}
