/* prony_history_check: counts the verdicts on the newest run. */
#include "profiler/history/history.h"

static prony_status check_group(prony_history_verdict *out, const prn_history_writing *w,
                                const prn_history_group *group, prony_error *error)
{
    const prony_metric *metrics[PRN_TREND_METRICS];
    size_t count;
    PRN_TRY(prn_trend_metrics(metrics, PRN_TREND_METRICS, &count, w->metrics, w->options->metrics, PRN_TREND_CHECKED,
                              error));
    prony_status status = PRONY_OK;
    for (size_t m = 0; m < count && status == PRONY_OK; m++) {
        prn_trend trend;
        status = prn_trend_make(&trend, w, group, metrics[m], error);
        if (status != PRONY_OK) break;
        if (prn_trend_has_newest(&trend)) {
            out->checked++;
            out->regressions += prn_trend_is_bad(&trend);
            out->undecided += trend.outcome == PRN_TREND_BUSY || trend.outcome == PRN_TREND_FEW;
        }
        prn_trend_release(&trend);
    }
    return status;
}

prony_status prony_history_check(prony_history_verdict *out, const prony_history *history,
                                 const prony_history_options *options, prony_error *error)
{
    prony_history_options own = PRONY_HISTORY_OPTIONS_INIT;
    prn_history_writing w = {0};
    prony_metrics *metrics = NULL;
    if (!out || !history) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_history_check: an argument is NULL");
    *out = (prony_history_verdict){0};
    prony_status status = prn_history_begin(&w, &own, &metrics, history, options, error);
    for (size_t g = 0; status == PRONY_OK && g < w.groups.count; g++)
        if (prn_history_is_newest(&w, &w.groups.groups[g])) status = check_group(out, &w, &w.groups.groups[g], error);
    prn_history_end(&w, metrics);
    return status;
}
