/* Measures the cost of profiling: the session runs with and without stamps, in pairs of alternating order, before the
 * counted runs. Changes of the machine affect both runs of a pair; the cost is the median over the pairs. */
#include "base/os/clock.h"
#include "profiler/statistics/statistics.h"
#include "profiler/measure/measure.h"

#include <stdlib.h>

#define COST_SHARE 0.2   /* of the time for measuring, */
#define COST_SECONDS 2.0 /* and at most this, because a long measurement that is ended early should have runs */
enum { FEWEST_PAIRS = 11, MOST_PAIRS = 400 };

typedef struct cost_pairs {
    int64_t *on_ns, *off_ns, *difference_ns;
    size_t count;
} cost_pairs;

static prony_status measure_cost_run_as(prn_recording *r, bool stamped, int64_t *latency_ns, prony_error *error)
{
    bool *off = &r->session->options.no_profile, former = *off;
    *off = !stamped;
    prony_status status = prn_recording_run(r, latency_ns, error);
    *off = former;
    return status;
}

/* true: time bounds the pairs; *budget_ns: by how much. */
static bool limited(const prn_recording *r, int64_t *budget_ns)
{
    double seconds = r->max_seconds * COST_SHARE;
    *budget_ns = (int64_t)((seconds < COST_SECONDS ? seconds : COST_SECONDS) * 1e9);
    return r->options->runs <= 0 || r->options->max_seconds > 0;
}

static prony_status run_pairs(prn_recording *r, cost_pairs *pairs, size_t wanted, prony_error *error)
{
    int64_t begin = prn_now_ns(), budget;
    bool bounded = limited(r, &budget);
    size_t most = r->options->runs > 0 ? wanted : MOST_PAIRS;
    while (pairs->count < most && !(bounded && prn_now_ns() - begin > budget)) {
        size_t i = pairs->count;
        bool first = i % 2 == 0;
        PRN_TRY(measure_cost_run_as(r, first, first ? &pairs->on_ns[i] : &pairs->off_ns[i], error));
        PRN_TRY(measure_cost_run_as(r, !first, first ? &pairs->off_ns[i] : &pairs->on_ns[i], error));
        pairs->difference_ns[i] = pairs->on_ns[i] - pairs->off_ns[i];
        pairs->count++;
    }
    return PRONY_OK;
}

static int64_t measure_cost_median_of(int64_t *values, size_t count)
{
    qsort(values, count, sizeof *values, prn_compare_i64);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static void fill_cost(prn_report_cost *cost, cost_pairs *pairs)
{
    int64_t interval[2];
    cost->pairs = pairs->count;
    cost->on_ns = measure_cost_median_of(pairs->on_ns, pairs->count);
    cost->off_ns = measure_cost_median_of(pairs->off_ns, pairs->count);
    int64_t difference = measure_cost_median_of(pairs->difference_ns, pairs->count);
    prn_stats_median_interval(pairs->difference_ns, pairs->count, interval);
    double whole = cost->off_ns > 0 ? (double)cost->off_ns : 1;
    cost->share = (double)difference / whole;
    cost->share_ci95[0] = (double)interval[0] / whole;
    cost->share_ci95[1] = (double)interval[1] / whole;
}

/* Pairs for a requested number of runs: a fifth of it, and at least a few. */
static size_t wanted_pairs(int64_t runs)
{
    int64_t pairs = runs / 5 > FEWEST_PAIRS ? runs / 5 : FEWEST_PAIRS;
    if (runs > 0 && pairs > runs) pairs = runs;
    return pairs > MOST_PAIRS ? MOST_PAIRS : (size_t)pairs;
}

prony_status prn_recording_cost(prn_recording *r, prony_error *error)
{
    if (r->operators == 0) return PRONY_OK;
    size_t wanted = wanted_pairs(r->options->runs);
    int64_t budget;
    if (limited(r, &budget) && r->expected_ns * 2 * FEWEST_PAIRS > budget) return PRONY_OK; /* too few to be useful */
    cost_pairs pairs = {.on_ns = prn_calloc(MOST_PAIRS, sizeof *pairs.on_ns),
                        .off_ns = prn_calloc(MOST_PAIRS, sizeof *pairs.off_ns),
                        .difference_ns = prn_calloc(MOST_PAIRS, sizeof *pairs.difference_ns)};
    prony_status status = pairs.on_ns && pairs.off_ns && pairs.difference_ns ? PRONY_OK : prn_no_memory(error);
    if (status == PRONY_OK) status = run_pairs(r, &pairs, wanted, error);
    if (status == PRONY_OK && pairs.count >= (wanted < FEWEST_PAIRS ? wanted : FEWEST_PAIRS) && pairs.count)
        fill_cost(&r->cost, &pairs);
    prn_free(pairs.on_ns);
    prn_free(pairs.off_ns);
    prn_free(pairs.difference_ns);
    return status;
}
