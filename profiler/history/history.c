/* The runs of a history in memory, and the public calls that show and judge them. */
#include "profiler/history/history.h"

#include "base/option_struct.h"

#include <math.h>
#include <string.h>

prony_status prony_history_create(prony_history **out, prony_error *error)
{
    if (!out) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_history_create: an argument is NULL");
    *out = prn_calloc(1, sizeof **out);
    return *out ? PRONY_OK : prn_no_memory(error);
}

void prony_history_release(prony_history *history)
{
    if (!history) return;
    prn_bump_release(&history->pool);
    prn_free(history->runs);
    prn_free(history);
}

size_t prony_history_count(const prony_history *history)
{
    return history ? history->count : 0;
}

const prony_history_run *prony_history_at(const prony_history *history, size_t index)
{
    return history && index < history->count ? &history->runs[index] : NULL;
}

/* A copy of `text` in the pool. Many runs share names, so the string of the run before is used again if it is equal. */
static const char *history_text(prony_history *h, const char *text, const char *before)
{
    if (!text || !*text) return "";
    if (before && strcmp(text, before) == 0) return before;
    return prn_bump_strndup(&h->pool, text, strlen(text));
}

static bool copy_rows(prony_history *h, prony_history_run *run, const prony_history_run *before)
{
    prony_history_value *values = prn_bump_alloc(&h->pool, run->value_count + 1, sizeof *values);
    prony_history_layer *layers = prn_bump_alloc(&h->pool, run->layer_count + 1, sizeof *layers);
    bool done = values && layers;
    for (size_t i = 0; done && i < run->value_count; i++) {
        values[i] = run->values[i];
        values[i].metric =
            history_text(h, run->values[i].metric, before && i < before->value_count ? before->values[i].metric : NULL);
        done = values[i].metric != NULL;
    }
    for (size_t i = 0; done && i < run->layer_count; i++) {
        const prony_history_layer *like = before && i < before->layer_count ? &before->layers[i] : NULL;
        layers[i] = run->layers[i];
        layers[i].name = history_text(h, run->layers[i].name, like ? like->name : NULL);
        layers[i].op = history_text(h, run->layers[i].op, like ? like->op : NULL);
        done = layers[i].name && layers[i].op;
    }
    run->values = values;
    run->layers = layers;
    return done;
}

prony_status prony_history_add(prony_history *h, const prony_history_run *run, prony_error *error)
{
    if (!h || !run || (!run->values && run->value_count) || (!run->layers && run->layer_count))
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_history_add: an argument is NULL");
    if (!PRN_GROW(h->runs, h->capacity, h->count + 1)) return prn_no_memory(error);
    const prony_history_run *before = h->count ? &h->runs[h->count - 1] : NULL;
    prony_history_run own = *run;
    const char **texts[] = {&own.document,      &own.model,  &own.sha256, &own.machine, &own.fingerprint,
                            &own.configuration, &own.commit, &own.label,  &own.prony};
    const char *const likes[] = {
        before ? before->document : NULL, before ? before->model : NULL,       before ? before->sha256 : NULL,
        before ? before->machine : NULL,  before ? before->fingerprint : NULL, before ? before->configuration : NULL,
        before ? before->commit : NULL,   before ? before->label : NULL,       before ? before->prony : NULL};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        *texts[i] = history_text(h, *texts[i], likes[i]);
        if (!*texts[i]) return prn_no_memory(error);
    }
    if (!copy_rows(h, &own, before)) return prn_no_memory(error);
    h->runs[h->count++] = own;
    return PRONY_OK;
}

/* ---- showing and judging ---- */

static prony_status history_begin(prn_history_writing *w, prony_history_options *own, prony_metrics **metrics,
                                  const prony_history *history, const prony_history_options *options,
                                  prony_error *error)
{
    PRN_TRY(prn_options_read(own, sizeof *own, options, "history options", error));
    if (!(own->noise > 0)) own->noise = 0.01;
    if (own->last <= 0) own->last = 500;
    if (!own->name) own->name = "history";
    *w = (prn_history_writing){.history = history, .options = own};
    PRN_TRY(prony_metrics_create(metrics, error));
    w->metrics = *metrics;
    return prn_history_group_runs(&w->groups, history, own, error);
}

static prn_history_writer *history_writer(prony_history_view view, prony_format format)
{
    const bool text = format == PRONY_FORMAT_TEXT, json = format == PRONY_FORMAT_JSON;
    switch (view) {
    case PRONY_HISTORY_LIST:
        return text                          ? prn_history_list_text
               : json                        ? prn_history_list_json
               : format == PRONY_FORMAT_HTML ? prn_history_page
                                             : NULL;
    case PRONY_HISTORY_TREND:
        return text ? prn_history_trend_text : json ? prn_history_trend_json : NULL;
    case PRONY_HISTORY_CHECK:
        return text ? prn_history_check_text : json ? prn_history_check_json : NULL;
    }
    return NULL;
}

prony_status prony_history_write(const prony_history *history, prony_history_view view,
                                 const prony_history_options *options, prony_format format,
                                 const prony_write_options *write_options, prony_write_fn write, void *user,
                                 prony_error *error)
{
    prony_history_options own = PRONY_HISTORY_OPTIONS_INIT;
    prony_write_options shown = PRONY_WRITE_OPTIONS_INIT;
    prn_history_writing w = {0};
    prony_metrics *metrics = NULL;
    if (!history || !write) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_history_write: an argument is NULL");
    prn_history_writer *writer = history_writer(view, format);
    if (!writer)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "a history is written as text or JSON, its list as HTML too");
    PRN_TRY(prn_options_read(&shown, sizeof shown, write_options, "write options", error));
    prony_status status = history_begin(&w, &own, &metrics, history, options, error);
    if (status == PRONY_OK) status = writer(&w, &shown, write, user, error);
    prn_history_groups_release(&w.groups);
    prony_metrics_release(metrics);
    return status;
}

bool prn_history_is_newest(const prn_history_writing *w, const prn_history_group *group)
{
    const prony_history_run *newest = w->groups.groups[0].of;
    return group->of == newest || (newest->command && group->of->command == newest->command);
}

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
        status = prn_trend_make(&trend, w->history, group, metrics[m], w->options, error);
        if (status != PRONY_OK) break;
        if (trend.count) {
            out->checked++;
            out->regressions += trend.outcome == PRN_TREND_WORSE || trend.outcome == PRN_TREND_DRIFTS;
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
    prony_status status = history_begin(&w, &own, &metrics, history, options, error);
    for (size_t g = 0; status == PRONY_OK && g < w.groups.count; g++)
        if (prn_history_is_newest(&w, &w.groups.groups[g])) status = check_group(out, &w, &w.groups.groups[g], error);
    prn_history_groups_release(&w.groups);
    prony_metrics_release(metrics);
    return status;
}
