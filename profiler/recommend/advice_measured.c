/* Advice from variants that were measured beside the report: batch size and threads. */
#include "profiler/text/number_text.h"
#include "profiler/recommend/advice.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Chosen without measurement. */
#define WORTH_CPU 0.1 /* of the processor time, for fewer threads */

prony_status prn_compare_key(prn_adviser *a, const prony_report *variant, const char *key, prony_compare_metric *out,
                             bool *known)
{
    prony_comparison *comparison = NULL;
    size_t count;
    PRN_TRY(prony_compare(&comparison, a->report, variant, NULL, a->error));
    const prony_compare_metric *rows = prony_comparison_metrics(comparison, &count);
    *known = false;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(rows[i].first.metric->key, key) != 0) continue;
        *out = rows[i];
        out->first.metric = out->second.metric = NULL; /* they end with the comparison */
        *known = true;
    }
    prony_comparison_release(comparison);
    return PRONY_OK;
}

prn_changed prn_what_changed(const prony_report *r, const prony_report *v)
{
    bool batch = r->config.batch != v->config.batch, threads = r->config.intra_op_threads != v->config.intra_op_threads;
    bool rewrites = r->config.rewrites != v->config.rewrites;
    bool precision = strcmp(r->config.precision, v->config.precision) != 0;
    if (batch + threads + rewrites + precision != 1 || r->config.reuse != v->config.reuse) return PRN_CHANGED_OTHER;
    return batch      ? PRN_CHANGED_BATCH
           : threads  ? PRN_CHANGED_THREADS
           : rewrites ? PRN_CHANGED_REWRITES
                      : PRN_CHANGED_PRECISION;
}

prony_status prn_best_variant(prn_adviser *a, prn_changed kind, const char *key, bool larger, prn_found *best,
                              size_t *tried)
{
    *best = (prn_found){0};
    *tried = 0;
    for (size_t i = 0; i < a->variant_count; i++) {
        prony_compare_metric row;
        bool known;
        if (prn_what_changed(a->report, a->variants[i]) != kind) continue;
        PRN_TRY(prn_compare_key(a, a->variants[i], key, &row, &known));
        ++*tried;
        if (!known || row.verdict != PRONY_VERDICT_BETTER) continue;
        bool first = !best->variant, more = row.ratio > best->row.ratio;
        if (first || more == larger) *best = (prn_found){a->variants[i], row};
    }
    return PRONY_OK;
}

void prn_ratio_text(char *text, size_t size, const prony_compare_metric *row)
{
    prn_number_text ratio, low, high;
    snprintf(text, size, "x %s, 95 %% %s..%s", prn_number_fixed(ratio, row->ratio, 3),
             prn_number_fixed(low, row->ratio_ci95[0], 3), prn_number_fixed(high, row->ratio_ci95[1], 3));
}

/* Recommends the batch with the largest significant gain in samples per second. */
prony_status prn_advise_batch(prn_adviser *a)
{
    prn_found best;
    size_t tried;
    PRN_TRY(prn_best_variant(a, PRN_CHANGED_BATCH, "throughput", true, &best, &tried));
    if (!best.variant && tried) {
        prn_advise_nothing(a, "batch",
                           "%zu other batch size%s measured; none beats batch %" PRId64
                           " significantly in samples per second",
                           tried, tried > 1 ? "s were" : " was", a->report->config.batch);
        return PRONY_OK;
    }
    if (!best.variant) {
        prn_advise_nothing(a, "batch",
                           "no other batch size was measured: the model fixes it, or only a report was given");
        return PRONY_OK;
    }
    char ratio[80];
    prn_number_text was, is;
    prony_advice *row =
        prn_advise(a, "batch", "throughput", true, best.row.ratio - 1,
                   "use batch %" PRId64 " if requests can wait for each other", best.variant->config.batch);
    prn_ratio_text(ratio, sizeof ratio, &best.row);
    prn_advise_because(a, row,
                       "batch %" PRId64 " gives %s, batch %" PRId64 " gives %s (%s); a run then takes %s instead of %s",
                       a->report->config.batch, best.row.first.text, best.variant->config.batch, best.row.second.text,
                       ratio, prn_number_time(is, best.variant->latency.median_ns, 3, " "),
                       prn_number_time(was, a->report->latency.median_ns, 3, " "));
    prn_advise_gain(row, "", " more samples per second");
    return PRONY_OK;
}

static double cpu_per_run(const prony_report *r)
{
    return r->measured && r->latency.count ? (double)(r->cpu.user_ns + r->cpu.system_ns) / (double)r->latency.count : 0;
}

/* A variant with fewer threads that takes the least processor time without being slower. */
static prony_status advise_fewer_threads(prn_adviser *a, bool *advised)
{
    const prony_report *best = NULL;
    for (size_t i = 0; i < a->variant_count; i++) {
        const prony_report *v = a->variants[i];
        prony_compare_metric row;
        bool known;
        if (prn_what_changed(a->report, v) != PRN_CHANGED_THREADS ||
            v->config.intra_op_threads > a->report->config.intra_op_threads)
            continue;
        PRN_TRY(prn_compare_key(a, v, "latency", &row, &known));
        if (known && row.verdict == PRONY_VERDICT_SAME && cpu_per_run(v) > 0 &&
            (!best || cpu_per_run(v) < cpu_per_run(best)))
            best = v;
    }
    double now = cpu_per_run(a->report), gain = best && now > 0 ? 1 - cpu_per_run(best) / now : 0;
    *advised = gain >= WORTH_CPU;
    if (!*advised) return PRONY_OK;
    prn_number_text was, is;
    int threads = best->config.intra_op_threads;
    prony_advice *row = prn_advise(a, "threads", "cpu_user", true, gain, "use %d thread%s (-x %d)", threads,
                                   threads > 1 ? "s" : "", threads);
    prn_advise_because(
        a, row,
        "latency is not significantly different from %d threads, and a run takes %s of processor time instead of %s",
        a->report->config.intra_op_threads, prn_number_time(is, llround(cpu_per_run(best)), 3, " "),
        prn_number_time(was, llround(now), 3, " "));
    prn_advise_gain(row, "", " less processor time");
    return PRONY_OK;
}

/* Recommends the fastest thread count, else fewer threads at the same speed. A busy machine allows no advice. */
prony_status prn_advise_threads(prn_adviser *a)
{
    prn_found best;
    size_t tried;
    bool advised = false;
    if (a->report->has_disturbance && a->report->disturbance.verdict == PRN_LOAD_BUSY) {
        char busy[160];
        (void)prn_disturbance_text(&a->report->disturbance, busy, sizeof busy);
        prn_advise_nothing(a, "threads", "cannot tell: %s; a quiet machine may favour another number", busy);
        return PRONY_OK;
    }
    PRN_TRY(prn_best_variant(a, PRN_CHANGED_THREADS, "latency", false, &best, &tried));
    if (best.variant) {
        char ratio[80];
        int threads = best.variant->config.intra_op_threads;
        prony_advice *row = prn_advise(a, "threads", "latency", true, 1 - best.row.ratio, "use %d thread%s (-x %d)",
                                       threads, threads > 1 ? "s" : "", threads);
        prn_ratio_text(ratio, sizeof ratio, &best.row);
        prn_advise_because(a, row, "%d thread%s: median %s; %d: %s (%s)", a->report->config.intra_op_threads,
                           a->report->config.intra_op_threads > 1 ? "s" : "", best.row.first.text, threads,
                           best.row.second.text, ratio);
        prn_advise_gain(row, "", " less latency");
        return PRONY_OK;
    }
    PRN_TRY(advise_fewer_threads(a, &advised));
    if (advised) return PRONY_OK;
    if (tried)
        prn_advise_nothing(a, "threads", "%zu other thread count%s measured; none is significantly faster than %d",
                           tried, tried > 1 ? "s were" : " was", a->report->config.intra_op_threads);
    else
        prn_advise_nothing(a, "threads", "no other thread count was measured");
    return PRONY_OK;
}
