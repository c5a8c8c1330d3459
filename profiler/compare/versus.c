/* This engine beside another one: processes of both in pairs, and the ratio of each pair's medians. A pair is measured
 * one right behind the other, so what the machine does otherwise mostly cancels in its ratio; the interval is that of
 * the pairs' median. */
#include "profiler/compare/versus.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* An interval within that of 1 says that there is no difference worth the name. */
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
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s: the report measured nothing", report->model.name);
    const int64_t phases[] = {report->phases.load_ns, report->phases.bind_ns, report->phases.rewrite_ns,
                              report->phases.plan_ns};
    int64_t start = 0;
    for (size_t k = 0; k < sizeof phases / sizeof *phases; k++)
        start = start < 0 || phases[k] < 0 ? -1 : start + phases[k];
    *out = (prony_versus_process){report->config.intra_op_threads, report->latency.count, report->latency.median_ns,
                                  start, peak_rss_bytes};
    return PRONY_OK;
}

prony_status prony_versus_add(prony_versus *versus, bool peer, const prony_versus_process *process, prony_error *error)
{
    if (!versus || !process) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_versus_add: an argument is NULL");
    if (process->intra_op_threads < 1 || process->median_ns < 0 || process->runs == 0)
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "a process of %d threads with %llu runs and a median of %lld ns is none",
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

/* Values of one side with so many threads, in the order of their processes; what is not known is left out. */
static size_t values_of(const prony_versus *versus, int threads, bool peer, size_t offset, double *values)
{
    size_t count = 0;
    for (size_t b = 0; b < versus->block_count; b++) {
        const prn_versus_block *block = &versus->blocks[b];
        if (block->peer != peer || block->process.intra_op_threads != threads) continue;
        int64_t value;
        memcpy(&value, (const char *)&block->process + offset, sizeof value);
        if (value >= 0) values[count++] = (double)value;
    }
    return count;
}

#define VALUES(field, peer, values)                                                                                    \
    values_of(versus, row->intra_op_threads, peer, offsetof(prony_versus_process, field), values)

static double middle(double *values, size_t count)
{
    return count ? prn_median(values, count) : -1.0;
}

static prony_verdict verdict_on(const double interval[2])
{
    if (interval[0] > 1.0 && isfinite(interval[1])) return PRONY_VERDICT_BETTER;
    if (interval[1] < 1.0) return PRONY_VERDICT_WORSE;
    if (interval[0] > 1.0 - EQUAL && interval[1] < 1.0 + EQUAL) return PRONY_VERDICT_SAME;
    return PRONY_VERDICT_UNSURE;
}

static prony_status judge_row(const prony_versus *versus, prony_versus_result *row, double *own, double *peer,
                              prony_error *error)
{
    const size_t own_count = VALUES(median_ns, false, own), peer_count = VALUES(median_ns, true, peer);
    row->pairs = own_count < peer_count ? own_count : peer_count;
    double *ratios = prn_calloc(row->pairs + 1, sizeof *ratios);
    if (!ratios) return prn_no_memory(error);
    for (size_t k = 0; k < row->pairs; k++) ratios[k] = own[k] > 0 ? peer[k] / own[k] : INFINITY;
    row->ratio = NAN;
    row->ratio_ci95[0] = -INFINITY;
    row->ratio_ci95[1] = INFINITY;
    prony_status status = PRONY_OK;
    if (row->pairs)
        status = prn_process_interval(&row->ratio, row->ratio_ci95, (prn_processes){ratios, row->pairs}, NULL, error);
    prn_free(ratios);
    row->verdict = row->pairs < 3 ? PRONY_VERDICT_NONE : verdict_on(row->ratio_ci95);
    row->own_ns = middle(own, own_count);
    row->peer_ns = middle(peer, peer_count);
    row->own_start_ns = middle(own, VALUES(start_ns, false, own));
    row->peer_start_ns = middle(peer, VALUES(start_ns, true, peer));
    row->own_peak_rss_bytes = middle(own, VALUES(peak_rss_bytes, false, own));
    row->peer_peak_rss_bytes = middle(peer, VALUES(peak_rss_bytes, true, peer));
    return status;
}

prony_status prn_versus_judge(prony_versus *versus, prony_error *error)
{
    if (versus->results) return PRONY_OK;
    const size_t room = versus->block_count + 1;
    prony_versus_result *rows = prn_calloc(room, sizeof *rows);
    double *own = prn_calloc(room, sizeof *own), *peer = prn_calloc(room, sizeof *peer);
    prony_status status = rows && own && peer ? PRONY_OK : prn_no_memory(error);
    size_t count = 0;
    for (size_t b = 0; b < versus->block_count && status == PRONY_OK; b++) {
        const int threads = versus->blocks[b].process.intra_op_threads;
        size_t k = 0;
        while (k < count && rows[k].intra_op_threads != threads) k++;
        if (k < count) continue;
        rows[count].intra_op_threads = threads;
        status = judge_row(versus, &rows[count++], own, peer, error);
    }
    prn_free(own);
    prn_free(peer);
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
