/* The runs of a history in memory. */
#include "profiler/history/history.h"

#include "base/hash/sha256.h"
#include "base/os/clock.h"
#include "base/os/disturbance.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

prony_status prony_history_create(prony_history **out, prony_error *error)
{
    if (!out) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_history_create: an argument is NULL");
    *out = prn_calloc(1, sizeof **out);
    if (*out) (*out)->searches = prn_history_searches_create();
    if (*out && (*out)->searches) return PRONY_OK;
    prony_history_release(*out);
    *out = NULL;
    return prn_no_memory(error);
}

void prony_history_release(prony_history *history)
{
    if (!history) return;
    prn_history_searches_release(history->searches);
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
    prn_history_searches_forget(h->searches);
    return PRONY_OK;
}

static void digest_text(prn_sha256 *hash, const char *text)
{
    prn_sha256_add(hash, text ? text : "", text ? strlen(text) + 1 : 1);
}

void prony_history_digest(const prony_history_run *run, char text[65])
{
    const char *const texts[] = {run->model,         run->sha256, run->fingerprint,
                                 run->configuration, run->prony,  run->document};
    prn_sha256 hash;
    prn_sha256_init(&hash);
    prn_sha256_add(&hash, &run->time_s, sizeof run->time_s);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) digest_text(&hash, texts[i]);
    for (size_t i = 0; i < run->value_count; i++) {
        digest_text(&hash, run->values[i].metric);
        prn_sha256_add(&hash, &run->values[i].value, sizeof run->values[i].value);
    }
    prn_sha256_text(&hash, text);
}

/* ---- members ---- */

const prony_history_value *prn_history_value(const prony_history_run *run, const char *metric)
{
    for (size_t i = 0; i < run->value_count; i++)
        if (strcmp(run->values[i].metric, metric) == 0) return &run->values[i];
    return NULL;
}

double prn_history_number(const prony_history_run *run, const char *metric)
{
    const prony_history_value *value = prn_history_value(run, metric);
    return value ? value->value : NAN;
}

double prn_history_layer_ns(const prony_history_run *run, size_t hint, const char *name)
{
    if (hint < run->layer_count && strcmp(run->layers[hint].name, name) == 0) return run->layers[hint].time_ns;
    for (size_t i = 0; i < run->layer_count; i++)
        if (strcmp(run->layers[i].name, name) == 0) return run->layers[i].time_ns;
    return NAN;
}

const char *prn_history_date(int64_t seconds, char text[24])
{
    char utc[PRN_UTC_CHARS];
    prn_utc((time_t)seconds, utc);
    if (seconds && *utc)
        snprintf(text, 24, "%.10s %.5s", utc, utc + 11);
    else
        snprintf(text, 24, "unknown");
    return text;
}

const char *prn_history_load(const prony_history_run *run)
{
    return prn_verdict_name(run->load == PRONY_LOAD_BUSY    ? PRN_LOAD_BUSY
                            : run->load == PRONY_LOAD_QUIET ? PRN_LOAD_QUIET
                                                            : PRN_LOAD_UNKNOWN);
}

const char *prn_history_commit(const prony_history_run *run, char text[16])
{
    snprintf(text, 16, "%.10s", *run->commit ? run->commit : "-");
    return text;
}

const char *prn_history_value_text(const prony_metric *metric, double value, char *text, size_t size,
                                   const char *unknown)
{
    if (isnan(value)) return unknown;
    prony_metric_format(metric, value, text, size);
    return text;
}
