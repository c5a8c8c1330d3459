/* Alerts: rules such as "latency_p99 > 50ms for 60s" or "drift latency_median 5%", their state, and what is sent. A
 * rule fires when its condition held for its whole time, and ends when the condition did not hold for as long. Each
 * change is sent once. */
#ifndef PRN_BENCH_SERVE_ALERTS_H
#define PRN_BENCH_SERVE_ALERTS_H

#include "bench/command.h"
#include "bench/serve/service_stats.h"
#include "bench/serve/text_buffer.h"
#include "prony_history.h"

enum { ALERT_TEXT = 160, ALERT_MESSAGE = 280, ALERT_WINDOW_SECONDS = 10 };

typedef enum alert_metric {
    ALERT_LATENCY_MEAN,
    ALERT_LATENCY_P50,
    ALERT_LATENCY_P90,
    ALERT_LATENCY_P95,
    ALERT_LATENCY_P99,
    ALERT_LATENCY_MAX,
    ALERT_QUEUE_P50,
    ALERT_QUEUE_P99,
    ALERT_RATE,
    ALERT_SAMPLES,
    ALERT_ERRORS,
    ALERT_BATCH,
    ALERT_WAITING,
    ALERT_MEMORY,
    ALERT_METRICS
} alert_metric;

typedef struct alert_rule {
    char text[ALERT_TEXT]; /* as it was given, blanks made single */
    alert_metric metric;
    bool above;
    double limit; /* ns, per second, share, bytes */
    double drift; /* share of the baseline, which then takes the place of the limit; 0: no baseline */
    int64_t for_ns;
} alert_rule;

/* Values of all metrics at a moment; NaN: not known. */
typedef struct alert_values {
    double value[ALERT_METRICS];
} alert_values;

typedef enum alert_event { ALERT_NOTHING, ALERT_FIRES, ALERT_ENDS } alert_event;

/* State of one rule for one model. Zero-initialise. */
typedef struct alert_state {
    bool firing;
    bool changing;    /* the condition holds (or, while firing, does not) since `since_ns` */
    int64_t since_ns; /* begin of that time */
    int64_t fired_at; /* seconds since 1970 */
    bool known;       /* `value` is the last one that was known */
    double value;
    double baseline; /* of a drift rule, from the history; 0: not known, and the rule rests */
} alert_state;

/* false: not a rule; `message` says why. */
bool alert_parse(alert_rule *rule, const char *text, char message[ALERT_MESSAGE]);
/* The next moment of a rule, with the metric's value (NaN: not known: it begins nothing, and ends nothing). */
alert_event alert_step(alert_state *state, const alert_rule *rule, double value, int64_t now_ns);
alert_values alert_values_of(const stats_summary *summary, size_t waiting, int64_t rss_bytes);
/* The key of the history's metric; NULL: the history has none. */
const char *alert_history_metric(alert_metric metric);
/* The median of a metric over the newest sessions of `prony serve` in `past` that are like `like`: same model file,
 * machine and configuration. 0: fewer than ALERT_LEAST_SESSIONS of them; *sessions is their number. */
enum { ALERT_LEAST_SESSIONS = 3, ALERT_MOST_SESSIONS = 10 };
double alert_baseline(const prony_history *past, const prony_history_run *like, const char *metric, size_t *sessions);
/* "61.2 ms": a value of this metric. */
void alert_show(alert_metric metric, double value, char text[32]);

typedef struct alert_set alert_set;

/* Rules of the command line and of the file; *out is NULL without any. `models` are names, borrowed. EXIT_DONE, or an
 * exit status after a message. */
int alerts_create(alert_set **out, const options *o, const char *const *models, size_t model_count);
void alerts_free(alert_set *set);
/* true: a rule needs baselines. NULL is accepted. */
bool alerts_drift(const alert_set *set);
/* Sets the baselines of one model's drift rules; a message names those without enough sessions. */
void alerts_compare_with(alert_set *set, size_t model, const prony_history *past, const prony_history_run *like);
/* Steps and deliveries belong to one thread; any thread may ask what fires.
 *
 * Evaluates the rules for one model and sends what changed. Once per second. */
void alerts_step(alert_set *set, size_t model, const alert_values *values, int64_t now_ns);
/* Runs commands that wait, and looks after those that run. */
void alerts_deliver(alert_set *set, int64_t now_ns);
size_t alerts_firing(alert_set *set);
/* All rules and their states, as elements of a JSON array. */
void alerts_put(alert_set *set, text_buffer *to);

#endif
