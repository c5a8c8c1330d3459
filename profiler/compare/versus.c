/* Compares this engine with another one: processes of both in pairs, and the ratio of each pair's medians. A pair's
 * processes run directly after each other, so most changes of the machine cancel in the ratio. Pairs of a busy machine
 * are left out. The interval is that of the pairs' median. */
#include "profiler/compare/versus.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* An interval within so much of 1 means no relevant difference. Chosen without measurement. */
#define EQUAL 0.02

prony_status prony_versus_create(prony_versus **out, const prony_report *profile, const char *peer, const char *library,
                                 prony_error *error)
{
    if (!out || !profile || !peer || !library)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_versus_create: an argument is NULL");
    prony_versus *versus = prn_calloc(1, sizeof *versus);
    if (!versus) return prn_no_memory(error);
    versus->profile = profile;
    versus->peer = prn_bump_printf(&versus->pool, "%s", peer);
    versus->library = prn_bump_printf(&versus->pool, "%s", library);
    if (versus->peer && versus->library) {
        *out = versus;
        return PRONY_OK;
    }
    prony_versus_release(versus);
    return prn_no_memory(error);
}

void prony_versus_release(prony_versus *versus)
{
    if (!versus) return;
    prn_free(versus->blocks);
    prn_free(versus->outputs);
    prn_free(versus->results);
    prn_bump_release(&versus->pool);
    prn_free(versus);
}

prony_status prony_versus_process_of(prony_versus_process *out, const prony_report *report, int64_t peak_rss_bytes,
                                     prony_error *error)
{
    if (!out || !report) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_versus_process_of: an argument is NULL");
    if (!report->measured)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s: the report has no measurements", report->model.name);
    const int64_t phases[] = {report->phases.load_ns, report->phases.bind_ns, report->phases.rewrite_ns,
                              report->phases.plan_ns};
    int64_t start = 0;
    for (size_t k = 0; k < sizeof phases / sizeof *phases; k++)
        start = start < 0 || phases[k] < 0 ? -1 : start + phases[k];
    const prn_disturbance *load = &report->disturbance;
    *out = (prony_versus_process){report->config.intra_op_threads,
                                  report->latency.count,
                                  report->latency.median_ns,
                                  start,
                                  peak_rss_bytes,
                                  report->has_disturbance ? (prony_load)load->verdict : PRONY_LOAD_UNKNOWN,
                                  report->has_disturbance ? load->others : -1};
    return PRONY_OK;
}

prony_status prony_versus_add(prony_versus *versus, bool peer, const prony_versus_process *process, prony_error *error)
{
    if (!versus || !process) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_versus_add: an argument is NULL");
    if (process->intra_op_threads < 1 || process->median_ns < 0 || process->runs == 0)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "invalid measurement: %d threads, %llu runs, median %lld ns",
                        process->intra_op_threads, (unsigned long long)process->runs, (long long)process->median_ns);
    if (!PRN_GROW(versus->blocks, versus->block_capacity, versus->block_count + 1)) return prn_no_memory(error);
    versus->blocks[versus->block_count++] = (prn_versus_block){*process, peer};
    prn_free(versus->results);
    versus->results = NULL;
    return PRONY_OK;
}

prony_status prony_versus_add_output(prony_versus *versus, const char *name, bool agrees, double difference,
                                     const char *reason, prony_error *error)
{
    if (!versus || !name)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_versus_add_output: an argument is NULL");
    if (!PRN_GROW(versus->outputs, versus->output_capacity, versus->output_count + 1)) return prn_no_memory(error);
    prn_versus_output row = {prn_bump_printf(&versus->pool, "%s", name),
                             prn_bump_printf(&versus->pool, "%s", reason ? reason : ""), agrees, difference};
    if (!row.name || !row.reason) return prn_no_memory(error);
    versus->outputs[versus->output_count++] = row;
    return PRONY_OK;
}

/* ---- the verdict ---- */

/* The pairs of one number of threads: the k-th process of each engine. */
typedef struct pair {
    const prony_versus_process *side[2]; /* this engine's, the peer's */
} pair;

static bool versus_is_busy(const prony_versus *versus, const pair *p)
{
    return !versus->ignore_load && (p->side[0]->load == PRONY_LOAD_BUSY || p->side[1]->load == PRONY_LOAD_BUSY);
}

/* Fills `pairs`, in order of time. A process whose counterpart is missing is in no pair. */
static size_t versus_find_pairs(const prony_versus *versus, int threads, pair *pairs)
{
    size_t count[2] = {0, 0};
    for (size_t b = 0; b < versus->block_count; b++) {
        const prn_versus_block *block = &versus->blocks[b];
        if (block->process.intra_op_threads == threads) pairs[count[block->peer]++].side[block->peer] = &block->process;
    }
    return count[0] < count[1] ? count[0] : count[1];
}

/* The median over the pairs of a field of one side, without unknown values. */
static double versus_middle(const pair *pairs, size_t count, int side, size_t offset, double *values)
{
    size_t known = 0;
    for (size_t k = 0; k < count; k++) {
        int64_t value;
        memcpy(&value, (const char *)pairs[k].side[side] + offset, sizeof value);
        if (value >= 0) values[known++] = (double)value;
    }
    return known ? prn_median(values, known) : -1.0;
}

#define MIDDLE(field, side) versus_middle(pairs, row->pairs, side, offsetof(prony_versus_process, field), values)

/* Ends of the interval of the median that holds for every distribution: with the k-th smallest and largest of n values,
 * the median is outside with twice the probability of fewer than k heads in n throws. `values` are sorted; infinite
 * where n is too small for 95 %. */
static void versus_median_interval(double interval[2], const double *values, size_t count)
{
    double below = pow(0.5, (double)count), term = below; /* fewer than k + 1 heads; exactly k */
    interval[0] = -INFINITY;
    interval[1] = INFINITY;
    for (size_t k = 0; 2 * below <= 0.05 && k < count / 2; k++) {
        interval[0] = values[k];
        interval[1] = values[count - 1 - k];
        term *= (double)(count - k) / (double)(k + 1);
        below += term;
    }
}

static prony_verdict verdict_on(const double interval[2])
{
    if (!isfinite(interval[0])) return PRONY_VERDICT_NONE;
    if (interval[0] > 1.0 && isfinite(interval[1])) return PRONY_VERDICT_BETTER;
    if (interval[1] < 1.0) return PRONY_VERDICT_WORSE;
    if (interval[0] > 1.0 - EQUAL && interval[1] < 1.0 + EQUAL) return PRONY_VERDICT_SAME;
    return PRONY_VERDICT_UNSURE;
}

static int versus_by_value(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Uses the quiet pairs if they suffice for a verdict; else all pairs, without a verdict if some were busy. `pairs` and
 * `values` have room for all processes. */
static void judge_row(const prony_versus *versus, prony_versus_result *row, pair *pairs, double *values)
{
    const size_t all = versus_find_pairs(versus, row->intra_op_threads, pairs);
    row->measured_pairs = all;
    for (size_t k = 0; k < all; k++) row->busy_pairs += versus_is_busy(versus, &pairs[k]);
    row->withheld = row->busy_pairs && all - row->busy_pairs < PRONY_VERSUS_LEAST_PAIRS;
    for (size_t k = 0; k < all; k++)
        if (row->withheld || !versus_is_busy(versus, &pairs[k])) pairs[row->pairs++] = pairs[k];
    row->others_share = -1;
    for (size_t k = 0; k < 2 * row->pairs; k++)
        row->others_share = fmax(row->others_share, pairs[k / 2].side[k % 2]->others_share);
    row->own_ns = MIDDLE(median_ns, 0);
    row->peer_ns = MIDDLE(median_ns, 1);
    row->own_start_ns = MIDDLE(start_ns, 0);
    row->peer_start_ns = MIDDLE(start_ns, 1);
    row->own_peak_rss_bytes = MIDDLE(peak_rss_bytes, 0);
    row->peer_peak_rss_bytes = MIDDLE(peak_rss_bytes, 1);
    for (size_t k = 0; k < row->pairs; k++) {
        const int64_t own = pairs[k].side[0]->median_ns;
        values[k] = own > 0 ? (double)pairs[k].side[1]->median_ns / (double)own : INFINITY;
    }
    qsort(values, row->pairs, sizeof *values, versus_by_value);
    versus_median_interval(row->ratio_ci95, values, row->pairs);
    row->ratio_least = row->pairs ? values[0] : NAN;
    row->ratio_most = row->pairs ? values[row->pairs - 1] : NAN;
    row->ratio = row->pairs ? prn_median(values, row->pairs) : NAN;
    row->verdict = row->withheld ? PRONY_VERDICT_UNSURE : verdict_on(row->ratio_ci95);
}

void prony_versus_ignore_load(prony_versus *versus)
{
    if (!versus) return;
    versus->ignore_load = true;
    prn_free(versus->results);
    versus->results = NULL;
}

/* Makes one result per thread count, in the order of the first process with it. */
prony_status prn_versus_judge(prony_versus *versus, prony_error *error)
{
    if (versus->results) return PRONY_OK;
    const size_t room = versus->block_count + 1;
    prony_versus_result *rows = prn_calloc(room, sizeof *rows);
    pair *pairs = prn_calloc(room, sizeof *pairs);
    double *values = prn_calloc(room, sizeof *values);
    prony_status status = rows && pairs && values ? PRONY_OK : prn_no_memory(error);
    size_t count = 0;
    for (size_t b = 0; b < versus->block_count && status == PRONY_OK; b++) {
        const int threads = versus->blocks[b].process.intra_op_threads;
        size_t k = 0;
        while (k < count && rows[k].intra_op_threads != threads) k++;
        if (k < count) continue;
        rows[count].intra_op_threads = threads;
        judge_row(versus, &rows[count++], pairs, values);
    }
    prn_free(pairs);
    prn_free(values);
    if (status != PRONY_OK) {
        prn_free(rows);
        return status;
    }
    versus->results = rows;
    versus->result_count = count;
    return PRONY_OK;
}

prony_status prony_versus_results(const prony_versus_result **rows, size_t *count, prony_versus *versus,
                                  prony_error *error)
{
    if (!rows || !count || !versus)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_versus_results: an argument is NULL");
    PRN_TRY(prn_versus_judge(versus, error));
    *rows = versus->results;
    *count = versus->result_count;
    return PRONY_OK;
}

const prony_versus_operator *prony_versus_operators(const prony_versus *versus, size_t *count)
{
    if (count) *count = versus ? versus->operator_count : 0;
    return versus && versus->has_operators ? versus->operators : NULL;
}
