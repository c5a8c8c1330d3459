/* A history as JSON: "prony.history/1", "prony.trend/1" and "prony.trend_check/1". Rows name their group by its index
 * in `groups`, and their run by its index in `runs`. */
#include "profiler/history/history.h"

#include "base/os/clock.h"
#include "profiler/json/json_write.h"

#include <math.h>
#include <string.h>

static void history_json_time(prn_json *json, const char *key, int64_t seconds)
{
    char text[PRN_UTC_CHARS];
    prn_utc((time_t)seconds, text);
    prn_json_string(json, key, seconds && *text ? text : NULL);
}

static void text_or_null(prn_json *json, const char *key, const char *text)
{
    prn_json_string(json, key, text && *text ? text : NULL);
}

static void history_json_interval(prn_json *json, const double interval[2])
{
    if (!isfinite(interval[0]) || !isfinite(interval[1])) return;
    prn_json_open(json, "interval", '[', true);
    for (int end = 0; end < 2; end++) prn_json_double(json, NULL, interval[end]);
    prn_json_close(json, ']');
}

static void put_run_keys(prn_json *json, const prony_history_run *run)
{
    history_json_time(json, "time", run->time_s);
    text_or_null(json, "commit", run->commit);
    text_or_null(json, "label", run->label);
    prn_json_string(json, "load", prn_history_load(run));
}

static void put_group_keys(prn_json *json, const prony_history_run *of)
{
    prn_json_string(json, "model", of->model);
    text_or_null(json, "sha256", of->sha256);
    prn_json_string(json, "configuration", of->configuration);
    prn_json_string(json, "machine", of->machine);
    prn_json_string(json, "fingerprint", of->fingerprint);
}

static void history_json_groups(prn_json *json, const prn_history_writing *w)
{
    prn_json_open(json, "groups", '[', false);
    for (size_t g = 0; g < w->groups.count; g++) {
        const prn_history_group *group = &w->groups.groups[g];
        prn_json_open(json, NULL, '{', false);
        put_group_keys(json, group->of);
        prn_json_uint(json, "runs", group->count);
        prn_json_uint(json, "busy", group->busy);
        history_json_time(json, "first", w->history->runs[group->runs[0]].time_s);
        history_json_time(json, "newest", group->of->time_s);
        prn_json_bool(json, "joins_model_files", group->differs[0]);
        prn_json_bool(json, "joins_machines", group->differs[1]);
        prn_json_bool(json, "joins_configurations", group->differs[2]);
        prn_json_close(json, '}');
    }
    prn_json_close(json, ']');
}

/* ---- list ---- */

typedef void list_row(prn_json *json, const prony_history_run *run, size_t number, size_t group);

static void history_json_run(prn_json *json, const prony_history_run *run, size_t number, size_t group)
{
    prn_json_open(json, NULL, '{', false);
    prn_json_uint(json, "run", number);
    prn_json_uint(json, "group", group);
    put_run_keys(json, run);
    put_group_keys(json, run);
    prn_json_string(json, "prony", run->prony);
    prn_json_string(json, "document", run->document);
    if (run->others_share >= 0) prn_json_double(json, "others_share", run->others_share);
    prn_json_close(json, '}');
}

static void put_values(prn_json *json, const prony_history_run *run, size_t number, size_t group)
{
    (void)group;
    for (size_t i = 0; i < run->value_count; i++) {
        prn_json_open(json, NULL, '{', true);
        prn_json_uint(json, "run", number);
        prn_json_string(json, "metric", run->values[i].metric);
        prn_json_double(json, "value", run->values[i].value);
        history_json_interval(json, run->values[i].interval);
        prn_json_close(json, '}');
    }
}

static void put_layers(prn_json *json, const prony_history_run *run, size_t number, size_t group)
{
    (void)group;
    for (size_t i = 0; i < run->layer_count; i++) {
        prn_json_open(json, NULL, '{', true);
        prn_json_uint(json, "run", number);
        prn_json_string(json, "layer", run->layers[i].name);
        prn_json_string(json, "op", run->layers[i].op);
        prn_json_double(json, "time_ns", run->layers[i].time_ns);
        prn_json_close(json, '}');
    }
}

static void history_json_rows(prn_json *json, const prn_history_writing *w, const char *key, list_row *put)
{
    size_t number = 0;
    prn_json_open(json, key, '[', false);
    for (size_t g = 0; g < w->groups.count; g++)
        for (size_t i = 0; i < w->groups.groups[g].count; i++)
            put(json, &w->history->runs[w->groups.groups[g].runs[i]], number++, g);
    prn_json_close(json, ']');
}

prony_status prn_history_list_json(const prn_history_writing *w, const prony_write_options *options,
                                   prony_write_fn write, void *user, prony_error *error)
{
    (void)options;
    prn_json *json = prn_json_dated_document("prony.history/1", write, user, error);
    if (!json) return PRONY_OUT_OF_MEMORY;
    prn_json_string(json, "name", w->options->name);
    history_json_groups(json, w);
    history_json_rows(json, w, "runs", history_json_run);
    history_json_rows(json, w, "values", put_values);
    history_json_rows(json, w, "layers", put_layers);
    return prn_json_finish(json);
}

/* ---- trend ---- */

typedef prony_status trend_put(prn_json *json, const prn_history_writing *w, const prn_trend *t, size_t group);

/* Calls `put` with the trend of each group and metric; `newest_only`: of the check's groups. */
static prony_status each_trend(prn_json *json, const prn_history_writing *w, const prony_metric *const *metrics,
                               size_t count, bool newest_only, trend_put *put)
{
    for (size_t g = 0; g < w->groups.count; g++)
        for (size_t m = 0; m < count; m++) {
            prn_trend trend;
            if (newest_only && !prn_history_is_newest(w, &w->groups.groups[g])) continue;
            PRN_TRY(prn_trend_make(&trend, w, &w->groups.groups[g], metrics[m], json->error));
            const bool wanted = newest_only ? prn_trend_has_newest(&trend) : trend.count > 0;
            const prony_status status = wanted ? put(json, w, &trend, g) : PRONY_OK;
            prn_trend_release(&trend);
            if (status != PRONY_OK) return status;
        }
    return PRONY_OK;
}

static void put_trend_head(prn_json *json, const prn_trend *t, size_t group)
{
    prn_json_open(json, NULL, '{', false);
    prn_json_uint(json, "group", group);
    prn_json_string(json, "model", t->group->of->model);
    prn_json_string(json, "metric", t->metric->key);
    prn_json_string(json, "unit", prn_metric_unit(t->metric));
}

static prony_status put_points(prn_json *json, const prn_history_writing *w, const prn_trend *t, size_t group)
{
    (void)w;
    for (size_t i = 0; i < t->count; i++) {
        const prn_trend_point *p = &t->points[i];
        put_trend_head(json, t, group);
        prn_json_uint(json, "number", i + 1);
        put_run_keys(json, p->run);
        prn_json_double(json, "value", p->value);
        history_json_interval(json, p->interval);
        prn_json_bool(json, "counted", p->counted);
        prn_json_double(json, "level", p->level);
        prn_json_close(json, '}');
    }
    return PRONY_OK;
}

/* Positions of runs count from 1 in the document, from 0 here. c->before is the last quiet run in front of the change,
 * so the change lies behind "commit_before". */
static prony_status put_changes(prn_json *json, const prn_history_writing *w, const prn_trend *t, size_t group)
{
    static const char *const words[] = {"better", "neither", "worse"};
    (void)w;
    for (size_t i = 0; i < t->change_count; i++) {
        const prn_trend_change *c = &t->changes[i];
        put_trend_head(json, t, group);
        prn_json_string(json, "kind", c->drift ? "drift" : "step");
        prn_json_string(json, "direction", words[c->direction + 1]);
        prn_json_double(json, "from", c->from);
        prn_json_double(json, "to", c->to);
        prn_json_double(json, "ratio", c->ratio);
        prn_json_uint(json, "first", c->first + 1);
        prn_json_uint(json, "last", c->last + 1);
        history_json_time(json, "first_time", t->points[c->first].run->time_s);
        history_json_time(json, "last_time", t->points[c->last].run->time_s);
        text_or_null(json, "commit_before", t->points[c->before].run->commit);
        text_or_null(json, "commit_after", t->points[c->last].run->commit);
        prn_json_open(json, "layers", '[', false);
        for (size_t l = 0; l < c->layer_count; l++) {
            prn_json_open(json, NULL, '{', true);
            prn_json_string(json, "layer", c->layers[l].name);
            prn_json_string(json, "op", c->layers[l].op);
            prn_json_double(json, "before_ns", c->layers[l].before_ns);
            prn_json_double(json, "after_ns", c->layers[l].after_ns);
            prn_json_double(json, "share", c->layers[l].share);
            prn_json_close(json, '}');
        }
        prn_json_close(json, ']');
        prn_json_close(json, '}');
    }
    return PRONY_OK;
}

prony_status prn_history_trend_json(const prn_history_writing *w, const prony_write_options *options,
                                    prony_write_fn write, void *user, prony_error *error)
{
    (void)options;
    const prony_metric *metrics[PRN_TREND_METRICS];
    size_t count;
    PRN_TRY(prn_trend_metrics(metrics, PRN_TREND_METRICS, &count, w->metrics, w->options->metrics, "latency", error));
    prn_json *json = prn_json_dated_document("prony.trend/1", write, user, error);
    if (!json) return PRONY_OUT_OF_MEMORY;
    prn_json_string(json, "name", w->options->name);
    prn_json_double(json, "false_alarm_rate", PRN_LEVEL_FALSE_ALARMS);
    prn_json_double(json, "noise", w->options->noise < 0 ? PRN_TREND_NOISE : w->options->noise);
    history_json_groups(json, w);
    prn_json_open(json, "changes", '[', false);
    prony_status status = each_trend(json, w, metrics, count, false, put_changes);
    prn_json_close(json, ']');
    prn_json_open(json, "points", '[', false);
    if (status == PRONY_OK) status = each_trend(json, w, metrics, count, false, put_points);
    prn_json_close(json, ']');
    const prony_status written = prn_json_finish(json);
    return status == PRONY_OK ? written : status;
}

/* ---- check ---- */

static prony_status put_verdict(prn_json *json, const prn_history_writing *w, const prn_trend *t, size_t group)
{
    (void)w;
    const prn_trend_point *newest = &t->points[t->count - 1];
    const bool few = t->outcome == PRN_TREND_FEW;
    put_trend_head(json, t, group);
    prn_json_double(json, "value", newest->value);
    prn_json_double(json, "expected", t->expected);
    history_json_interval(json, t->bounds);
    prn_json_double(json, "ratio", newest->value / t->expected);
    prn_json_string(json, "verdict", prn_trend_verdict_name(t));
    prn_json_string(json, "outcome", few ? "few" : prn_trend_outcome_name(t->outcome));
    prn_json_close(json, '}');
    return PRONY_OK;
}

prony_status prn_history_check_json(const prn_history_writing *w, const prony_write_options *options,
                                    prony_write_fn write, void *user, prony_error *error)
{
    (void)options;
    const prony_metric *metrics[PRN_TREND_METRICS];
    prony_history_verdict verdict;
    size_t count;
    PRN_TRY(prn_trend_metrics(metrics, PRN_TREND_METRICS, &count, w->metrics, w->options->metrics, PRN_TREND_CHECKED,
                              error));
    PRN_TRY(prony_history_check(&verdict, w->history, w->options, error));
    prn_json *json = prn_json_dated_document("prony.trend_check/1", write, user, error);
    if (!json) return PRONY_OUT_OF_MEMORY;
    prn_json_string(json, "name", w->options->name);
    const bool undecided = w->options->strict && verdict.undecided;
    prn_json_bool(json, "passed", verdict.checked && !verdict.regressions && !undecided);
    prn_json_uint(json, "regressions", verdict.regressions);
    prn_json_uint(json, "undecided", verdict.undecided);
    history_json_groups(json, w);
    prn_json_open(json, "checks", '[', false);
    const prony_status status = each_trend(json, w, metrics, count, true, put_verdict);
    prn_json_close(json, ']');
    const prony_status written = prn_json_finish(json);
    return status == PRONY_OK ? written : status;
}
