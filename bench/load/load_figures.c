/* Statistics of a phase: of all its queries, and of the judged percentile. */
#include "bench/load/load.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int load_figures_compare_times(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static void fill_quantile(const load *l, load_result *r, int64_t *sorted)
{
    size_t n = r->latency_count;
    int64_t allowed = load_allowed_late(n, l->percentile);
    memcpy(sorted, r->latency_ns, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, load_figures_compare_times);
    size_t rank = (size_t)ceil(l->percentile * (double)n);
    r->quantile_ns = n ? sorted[rank > 0 ? rank - 1 : 0] : 0;
    r->quantile_valid = allowed >= 1;
    r->quantile_bound_ns = r->quantile_valid ? sorted[n - 1 - (size_t)allowed] : -1;
    r->over_bound = r->failed;
    for (size_t i = 0; i < n && l->bound_ns; i++) r->over_bound += r->latency_ns[i] > l->bound_ns;
    allowed = load_allowed_late(r->queries, l->percentile);
    r->met = l->bound_ns && allowed >= 1 && (int64_t)r->over_bound <= allowed && !r->cut_short;
    r->likely_met = l->bound_ns && (double)r->over_bound <= (1 - l->percentile) * (double)r->queries && !r->cut_short;
}

typedef struct columns {
    int64_t *queue, *run, *lag, *sorted;
} columns;

static int load_figures_no_memory(const load *l)
{
    return fail(l->o, "out of memory");
}

/* Fills *out from the queries of a phase; times are ns. Latency and queue time count from the schedule, not from the
 * issue, so a late generator hides nothing. A failed query counts in `lag` and `failed` alone. out->latency_ns is the
 * caller's to free, after a failure too. */
int load_figures(const load *l, const query *queries, size_t count, load_result *out)
{
    prony_error error = {0};
    size_t size = (count + 1) * sizeof(int64_t);
    columns c = {malloc(size), malloc(size), malloc(size), malloc(size)};
    out->latency_ns = malloc(size);
    int code = c.queue && c.run && c.lag && c.sorted && out->latency_ns ? EXIT_DONE : load_figures_no_memory(l);
    int64_t end = 0;
    double runs = 0, batched = 0;
    out->queries = count;
    out->samples = (int64_t)count * l->requests_per_query * l->samples_per_request;
    for (size_t i = 0; i < count && code == EXIT_DONE; i++) {
        const query *q = &queries[i];
        if (q->finished_ns > end) end = q->finished_ns;
        c.lag[i] = q->issued_ns - q->scheduled_ns;
        if (q->failed) {
            out->failed++;
            continue;
        }
        size_t n = out->latency_count++;
        out->latency_ns[n] = q->finished_ns - q->scheduled_ns;
        c.queue[n] = q->started_ns - q->scheduled_ns;
        c.run[n] = q->finished_ns - q->started_ns;
        runs += 1 / (double)q->batch;
        batched += 1;
    }
    out->seconds = count ? (double)(end - queries[0].scheduled_ns) / 1e9 : 0;
    out->mean_batch = runs > 0 ? batched / runs : 0;
    size_t n = out->latency_count;
    if (code == EXIT_DONE) fill_quantile(l, out, c.sorted);
    if (code == EXIT_DONE && (prony_time_stats_compute(&out->latency, out->latency_ns, n, &error) != PRONY_OK ||
                              prony_time_stats_compute(&out->queue, c.queue, n, &error) != PRONY_OK ||
                              prony_time_stats_compute(&out->run, c.run, n, &error) != PRONY_OK ||
                              prony_time_stats_compute(&out->lag, c.lag, count, &error) != PRONY_OK))
        code = report_error(l->o, &error);
    free(c.queue);
    free(c.run);
    free(c.lag);
    free(c.sorted);
    return code;
}

void load_result_free(load_result *result)
{
    free(result->latency_ns);
    result->latency_ns = NULL;
}
