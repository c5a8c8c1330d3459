/* Messages between the ranks of a sharded model, and what each rank did in the last run. */
#include "profiler/report/report.h"

#include <string.h>

static bool transfers_copy(prony_report *r, const char **text)
{
    if (!*text) return true;
    *text = prn_bump_strndup(&r->pool, *text, strlen(*text));
    return *text != NULL;
}

/* All rows are checked before the report changes, and the report changes last: after a failure it has its former rows.
 * Texts are copied to the report's pool; those of an earlier call stay there until the report is released. */
prony_status prony_report_set_transfers(prony_report *report, const prony_transfer_row *rows, size_t count,
                                        const prony_pipeline_event *events, size_t event_count, prony_error *error)
{
    if (!report || (count && !rows) || (event_count && !events))
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_report_set_transfers: an argument is NULL");
    for (size_t i = 0; i < count; i++)
        if (rows[i].rank >= report->rank_count || !rows[i].kind || !rows[i].tensor)
            return prn_fail(error, PRONY_INVALID_ARGUMENT, "transfer %zu belongs to no rank of the report", i);
    for (size_t i = 0; i < event_count; i++)
        if (events[i].rank >= report->rank_count || !events[i].kind)
            return prn_fail(error, PRONY_INVALID_ARGUMENT, "event %zu belongs to no rank of the report", i);
    prony_transfer_row *own = prn_bump_alloc(&report->pool, count + 1, sizeof *own);
    prony_pipeline_event *own_events = prn_bump_alloc(&report->pool, event_count + 1, sizeof *own_events);
    if (!own || !own_events) return prn_no_memory(error);
    for (size_t i = 0; i < count; i++) {
        own[i] = rows[i];
        if (!transfers_copy(report, &own[i].kind) || !transfers_copy(report, &own[i].tensor))
            return prn_no_memory(error);
    }
    for (size_t i = 0; i < event_count; i++) {
        own_events[i] = events[i];
        if (!transfers_copy(report, &own_events[i].kind) || !transfers_copy(report, &own_events[i].tensor))
            return prn_no_memory(error);
    }
    report->transfers = own;
    report->transfer_count = count;
    report->pipeline_events = own_events;
    report->pipeline_event_count = event_count;
    return PRONY_OK;
}

const prony_transfer_row *prony_report_transfers(const prony_report *report, size_t *count)
{
    if (count) *count = report ? report->transfer_count : 0;
    return report && report->transfer_count ? report->transfers : NULL;
}

const prony_pipeline_event *prony_report_pipeline_events(const prony_report *report, size_t *count)
{
    if (count) *count = report ? report->pipeline_event_count : 0;
    return report && report->pipeline_event_count ? report->pipeline_events : NULL;
}

prony_status prony_report_set_links(prony_report *report, const prony_link_row *rows, size_t count, prony_error *error)
{
    if (!report || (count && !rows))
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_report_set_links: an argument is NULL");
    for (size_t i = 0; i < count; i++)
        if (rows[i].rank >= report->rank_count || rows[i].peer >= report->rank_count)
            return prn_fail(error, PRONY_INVALID_ARGUMENT, "link %zu belongs to no rank of the report", i);
    prony_link_row *own = prn_bump_alloc(&report->pool, count + 1, sizeof *own);
    if (!own) return prn_no_memory(error);
    if (count) memcpy(own, rows, count * sizeof *own);
    report->links = own;
    report->link_count = count;
    return PRONY_OK;
}

const prony_link_row *prony_report_links(const prony_report *report, size_t *count)
{
    if (count) *count = report ? report->link_count : 0;
    return report && report->link_count ? report->links : NULL;
}
