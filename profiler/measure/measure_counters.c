/* Hardware counters per operator: a few runs after the measured ones, so that measured times do not include the
 * counting. */
#include "base/os/clock.h"
#include "base/cpu/counters.h"
#include "profiler/measure/measure.h"

#include <string.h>

enum { COUNTED_RUNS = 10, EMPTY_READS = 50 };

typedef struct counting {
    prn_counters *counters;
    uint64_t (*sums)[PRN_COUNTERS]; /* per operator */
    uint64_t before[PRN_COUNTERS];
    uint64_t empty[PRN_COUNTERS]; /* difference of two successive readings */
    size_t operators;
} counting;

static void count_step(void *user, uint32_t step, bool end)
{
    counting *c = user;
    uint64_t now[PRN_COUNTERS];
    if (!end) {
        prn_counters_read(c->counters, c->before);
        return;
    }
    prn_counters_read(c->counters, now);
    for (int e = 0; e < PRN_COUNTERS && step < c->operators; e++) {
        uint64_t counted = now[e] > c->before[e] ? now[e] - c->before[e] : 0;
        c->sums[step][e] += counted > c->empty[e] ? counted - c->empty[e] : 0;
    }
}

/* Measures the smallest count of a pair of readings itself, and returns its time. */
static int64_t measure_reading(counting *c)
{
    uint64_t a[PRN_COUNTERS], b[PRN_COUNTERS];
    memset(c->empty, 0xff, sizeof c->empty);
    int64_t start = prn_now_ns();
    for (int i = 0; i < EMPTY_READS; i++) {
        prn_counters_read(c->counters, a);
        prn_counters_read(c->counters, b);
        for (int e = 0; e < PRN_COUNTERS; e++)
            if (b[e] - a[e] < c->empty[e]) c->empty[e] = b[e] - a[e];
    }
    return (prn_now_ns() - start) / EMPTY_READS;
}

static prony_status counted_runs(counting *c, prn_recording *r, prony_error *error)
{
    prn_trace *trace = &r->session->trace;
    prony_status status = PRONY_OK;
    trace->watch = count_step;
    trace->watch_user = c;
    for (int i = 0; i < COUNTED_RUNS && status == PRONY_OK; i++) {
        int64_t latency_ns;
        status = prn_recording_run(r, &latency_ns, error);
    }
    trace->watch = NULL;
    return status;
}

static void measure_counters_fill_rows(prony_report *report, const counting *c)
{
    for (size_t o = 0; o < report->operator_count && o < c->operators; o++) {
        prony_operator_row *row = &report->operators[o];
        row->counted = true;
        row->cycles = c->sums[o][0] / COUNTED_RUNS;
        row->instructions = c->sums[o][1] / COUNTED_RUNS;
        row->cache_misses = c->sums[o][2] / COUNTED_RUNS;
    }
}

/* Missing counters are not a failure: `counters_missing` then has the reason. */
prony_status prn_recording_count(prony_report *report, prn_recording *r, prony_error *error)
{
    counting c = {.operators = r->operators};
    char why[160];
    if (!r->options->count_hardware) return PRONY_OK;
    report->counters_missing = "the run was not stamped";
    if (!r->operators) return PRONY_OK;
    PRN_TRY(prn_counters_open(&c.counters, prn_hardware_events, why, error));
    if (!c.counters) {
        report->counters_missing = prn_bump_strndup(&report->pool, why, strlen(why));
        return report->counters_missing ? PRONY_OK : prn_no_memory(error);
    }
    report->counters_missing = "";
    c.sums = prn_calloc(c.operators, sizeof *c.sums);
    prony_status status = c.sums ? PRONY_OK : prn_no_memory(error);
    if (status == PRONY_OK) {
        report->counter_runs = COUNTED_RUNS;
        report->counter_read_ns = measure_reading(&c);
        status = counted_runs(&c, r, error);
    }
    if (status == PRONY_OK) measure_counters_fill_rows(report, &c);
    if (status == PRONY_CANCELLED) { /* the report of the measured runs stays */
        report->counters_missing = "the counted runs were cancelled";
        report->counter_runs = 0;
    }
    prn_free(c.sums);
    prn_counters_close(c.counters);
    return status;
}
