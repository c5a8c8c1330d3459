#include "bench/serve/service_stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND_NS INT64_C(1000000000)
enum { FINE_SHIFT = 10, FINE_BITS = 5 };
#define SAMPLE_WEIGHT 0.2

const double stats_bounds[STATS_BOUNDS] = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                           0.1,    0.25,    0.5,    1,     2.5,    5,     10,   30,    60};
const int stats_statuses[STATS_STATUSES] = {200, 400, 404, 405, 413, 415, 429, 500, 503, 504, 0};

service_stats *stats_create(void)
{
    service_stats *s = calloc(1, sizeof *s);
    if (s) pthread_mutex_init(&s->lock, NULL);
    return s;
}

void stats_free(service_stats *s)
{
    if (!s) return;
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* ---- histograms ---- */

static void histogram_add(stats_histogram *h, int64_t ns)
{
    double seconds = (double)ns * 1e-9;
    int i = 0;
    while (i < STATS_BOUNDS && seconds > stats_bounds[i]) i++;
    h->buckets[i]++;
    h->count++;
    h->sum += seconds;
}

static size_t fine_bucket(int64_t ns)
{
    if (ns < INT64_C(1) << FINE_SHIFT) return 0;
    int exponent = 63 - __builtin_clzll((unsigned long long)ns);
    size_t index = (size_t)(exponent - FINE_SHIFT) << FINE_BITS | (size_t)(ns >> (exponent - FINE_BITS) & 31);
    return index < STATS_FINE ? index : STATS_FINE - 1;
}

/* The lower end of a fine bucket. */
static int64_t fine_low(size_t index)
{
    int exponent = (int)(index >> FINE_BITS) + FINE_SHIFT;
    return (INT64_C(32) | (int64_t)(index & 31)) << (exponent - FINE_BITS);
}

/* The middle of a fine bucket. */
static int64_t fine_value(size_t index)
{
    return (fine_low(index) + fine_low(index + 1)) / 2;
}

static int64_t fine_quantile(const uint32_t *buckets, double part)
{
    uint64_t count = 0, seen = 0;
    for (size_t i = 0; i < STATS_FINE; i++) count += buckets[i];
    if (!count) return -1;
    double rank = part * (double)count;
    for (size_t i = 0; i < STATS_FINE; i++) {
        seen += buckets[i];
        if ((double)seen >= rank && seen) return fine_value(i);
    }
    return fine_value(STATS_FINE - 1);
}

/* ---- adding ---- */

/* The record of this second; under the lock. */
static stats_second *stats_now(service_stats *s, int64_t now_ns)
{
    int64_t second = now_ns / SECOND_NS + 1; /* never 0 */
    stats_second *at = &s->seconds[second % STATS_SECONDS];
    if (at->second != second) {
        memset(at, 0, sizeof *at);
        at->second = second;
    }
    return at;
}

static void totals_add(stats_totals *t, int64_t latency_ns)
{
    if (!t->answered || latency_ns < t->least_ns) t->least_ns = latency_ns;
    if (!t->answered || latency_ns > t->most_ns) t->most_ns = latency_ns;
    t->answered++;
    t->sum_ns += (double)latency_ns;
    t->latency[fine_bucket(latency_ns)]++;
}

void stats_add_request(service_stats *s, const stats_request *r, int64_t now_ns)
{
    int status = 0;
    while (status < STATS_STATUSES - 1 && stats_statuses[status] != r->status) status++;
    pthread_mutex_lock(&s->lock);
    stats_second *now = stats_now(s, now_ns);
    s->statuses[status]++;
    now->requests++;
    if (r->status != 200) now->failed++;
    if (r->status == 200) {
        s->samples += (uint64_t)r->samples;
        now->samples += (uint32_t)r->samples;
        histogram_add(&s->latency, r->latency_ns);
        histogram_add(&s->queue, r->queue_ns);
        histogram_add(&s->run, r->run_ns);
        now->latency[fine_bucket(r->latency_ns)]++;
        now->queue[fine_bucket(r->queue_ns)]++;
        now->latency_sum_ns += r->latency_ns;
        if (r->latency_ns > now->latency_max_ns) now->latency_max_ns = r->latency_ns;
        if (r->totals) totals_add(r->totals, r->latency_ns);
    }
    pthread_mutex_unlock(&s->lock);
}

void stats_add_run(service_stats *s, int64_t batch, int64_t run_ns, int64_t now_ns)
{
    int size = 0;
    while (size < STATS_SIZES && batch > INT64_C(1) << size) size++;
    pthread_mutex_lock(&s->lock);
    stats_second *now = stats_now(s, now_ns);
    s->sizes[size]++;
    s->size_sum += (uint64_t)batch;
    s->runs++;
    now->runs++;
    now->run_requests += (uint32_t)batch;
    now->run_ns += run_ns;
    pthread_mutex_unlock(&s->lock);
}

void stats_add_reload(service_stats *s, bool worked)
{
    pthread_mutex_lock(&s->lock);
    if (worked) {
        s->reloads++;
        s->operator_count = 0; /* another model's operators follow */
    } else {
        s->reload_failures++;
    }
    pthread_mutex_unlock(&s->lock);
}

/* The row of this name, or operator_count. Samples list operators in one order, so `hint`, the row behind the last one
 * found, mostly is it. */
static size_t stats_find_operator(const service_stats *s, const char *name, size_t hint)
{
    for (size_t i = 0; i < s->operator_count; i++) {
        size_t k = (hint + i) % s->operator_count;
        if (strncmp(s->operators[k].name, name, STATS_NAME - 1) == 0) return k;
    }
    return s->operator_count;
}

/* Moves every operator's share towards the sampled one; an operator that the sample lacks moves towards 0. */
void stats_add_sample(service_stats *s, const prony_sample *sample)
{
    double total = 0;
    size_t hint = 0;
    for (size_t i = 0; i < sample->operator_count; i++) total += (double)sample->operators[i].time_ns;
    pthread_mutex_lock(&s->lock);
    double weight = s->operator_count ? SAMPLE_WEIGHT : 1;
    for (size_t i = 0; i < s->operator_count; i++) {
        s->operators[i].share *= 1 - weight;
        s->operators[i].time_ns *= 1 - weight;
    }
    for (size_t i = 0; i < sample->operator_count && total > 0; i++) {
        const prony_sample_row *row = &sample->operators[i];
        size_t k = stats_find_operator(s, row->name, hint);
        hint = k + 1;
        if (k == STATS_OPERATORS) continue;
        stats_operator *o = &s->operators[k];
        if (k == s->operator_count) {
            s->operator_count++;
            *o = (stats_operator){.share = 0};
            snprintf(o->name, sizeof o->name, "%s", row->name);
        }
        snprintf(o->op, sizeof o->op, "%s", row->op);
        snprintf(o->kernel, sizeof o->kernel, "%s", row->kernel);
        o->share += weight * (double)row->time_ns / total;
        o->time_ns += weight * (double)row->time_ns;
    }
    s->sampled++;
    s->arena_bytes = sample->arena_bytes;
    s->monitor_overhead = sample->overhead;
    pthread_mutex_unlock(&s->lock);
}

/* ---- reading ---- */

stats_totals stats_copy_totals(service_stats *s, const stats_totals *totals)
{
    pthread_mutex_lock(&s->lock);
    stats_totals copy = *totals;
    pthread_mutex_unlock(&s->lock);
    return copy;
}

double stats_totals_quantile(const stats_totals *t, double part)
{
    double rank = part * (double)t->answered, seen = 0, value = (double)t->most_ns;
    for (size_t i = 0; i < STATS_FINE; i++) {
        if (t->latency[i] && seen + (double)t->latency[i] >= rank) {
            double low = i ? (double)fine_low(i) : 0, high = (double)fine_low(i + 1);
            value = low + (high - low) * (rank - seen) / (double)t->latency[i];
            break;
        }
        seen += (double)t->latency[i];
    }
    return value<(double)t->least_ns ? (double)t->least_ns : value>(double) t->most_ns ? (double)t->most_ns : value;
}

size_t stats_top_operators(service_stats *s, stats_operator *out, size_t most)
{
    size_t count = 0;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->operator_count; i++) {
        size_t at = count < most ? count++ : most;
        while (at > 0 && out[at - 1].share < s->operators[i].share) { /* insertion: the last one falls out */
            if (at < most) out[at] = out[at - 1];
            at--;
        }
        if (at < most) out[at] = s->operators[i];
    }
    pthread_mutex_unlock(&s->lock);
    return count;
}

/* The seconds from `first` to `last` ago, both included; 0 is the present, unfinished one. */
static stats_summary summarize(service_stats *s, int first, int last, int64_t now_ns)
{
    static _Thread_local stats_second sum; /* too large for a stack */
    stats_summary out = {.seconds = last - first + 1};
    memset(&sum, 0, sizeof sum);
    pthread_mutex_lock(&s->lock);
    for (int ago = first; ago <= last && ago < STATS_SECONDS; ago++) {
        int64_t second = now_ns / SECOND_NS + 1 - ago;
        const stats_second *at = second > 0 ? &s->seconds[second % STATS_SECONDS] : NULL;
        if (!at || at->second != second) continue;
        out.requests += at->requests;
        out.failed += at->failed;
        out.samples += at->samples;
        out.runs += at->runs;
        sum.run_requests += at->run_requests;
        sum.run_ns += at->run_ns;
        sum.latency_sum_ns += at->latency_sum_ns;
        if (at->latency_max_ns > sum.latency_max_ns) sum.latency_max_ns = at->latency_max_ns;
        for (size_t i = 0; at->requests && i < STATS_FINE; i++) {
            sum.latency[i] += at->latency[i];
            sum.queue[i] += at->queue[i];
        }
    }
    pthread_mutex_unlock(&s->lock);
    uint64_t good = out.requests - out.failed;
    out.rate = (double)out.requests / out.seconds;
    out.samples_rate = (double)out.samples / out.seconds;
    out.failed_share = out.requests ? (double)out.failed / (double)out.requests : 0;
    out.mean_batch = out.runs ? (double)sum.run_requests / (double)out.runs : 0;
    out.busy = (double)sum.run_ns / (out.seconds * (double)SECOND_NS);
    out.p50 = fine_quantile(sum.latency, 0.5);
    out.p90 = fine_quantile(sum.latency, 0.9);
    out.p95 = fine_quantile(sum.latency, 0.95);
    out.p99 = fine_quantile(sum.latency, 0.99);
    out.queue_p50 = fine_quantile(sum.queue, 0.5);
    out.queue_p99 = fine_quantile(sum.queue, 0.99);
    out.mean = good ? sum.latency_sum_ns / (int64_t)good : -1;
    out.max = good ? sum.latency_max_ns : -1;
    return out;
}

stats_summary stats_summarize(service_stats *s, int seconds, int64_t now_ns)
{
    if (seconds > STATS_SECONDS - 1) seconds = STATS_SECONDS - 1;
    return summarize(s, 1, seconds, now_ns);
}

stats_summary stats_of_second(service_stats *s, int ago, int64_t now_ns)
{
    return summarize(s, ago, ago, now_ns);
}
