/* The registry: metrics and their functions. Entries keep the order in which they were added; an overridden built-in
 * metric keeps its position. The registry owns copies of all definitions. */
#include "profiler/metrics/metrics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define NO_GROUP SIZE_MAX

typedef struct metric_group {
    prony_metric_fn compute;
    void *user;
    size_t count;
} metric_group;

typedef struct metric_entry {
    prony_metric metric;
    const prn_metric_builtin *builtin; /* NULL: defined by the user */
    size_t group, slot;                /* user's metric: position of its value */
} metric_entry;

struct prony_metrics {
    prn_bump pool;
    metric_entry **entries; /* addresses are stable: values point at them */
    size_t count, capacity;
    metric_group *groups;
    size_t group_count, group_capacity;
};

static metric_entry *add_entry(prony_metrics *metrics)
{
    metric_entry *entry = prn_bump_alloc(&metrics->pool, 1, sizeof *entry);
    if (!entry || !PRN_GROW(metrics->entries, metrics->capacity, metrics->count + 1)) return NULL;
    metrics->entries[metrics->count++] = entry;
    return entry;
}

prony_status prony_metrics_create(prony_metrics **out, prony_error *error)
{
    if (!out) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_metrics_create: an argument is NULL");
    prony_metrics *metrics = prn_calloc(1, sizeof *metrics);
    if (!metrics) return prn_no_memory(error);
    for (size_t i = 0; i < prn_metric_builtin_count; i++) {
        metric_entry *entry = add_entry(metrics);
        if (!entry) {
            prony_metrics_release(metrics);
            return prn_no_memory(error);
        }
        entry->metric = prn_metric_builtins[i].metric;
        entry->builtin = &prn_metric_builtins[i];
        entry->group = NO_GROUP;
    }
    *out = metrics;
    return PRONY_OK;
}

void prony_metrics_release(prony_metrics *metrics)
{
    if (!metrics) return;
    prn_bump_release(&metrics->pool);
    prn_free(metrics->entries);
    prn_free(metrics->groups);
    prn_free(metrics);
}

static metric_entry *metrics_find(const prony_metrics *metrics, const char *key)
{
    for (size_t i = 0; i < metrics->count; i++)
        if (strcmp(metrics->entries[i]->metric.key, key) == 0) return metrics->entries[i];
    return NULL;
}

/* ---- adding ---- */

static prony_status check_definition(const prony_metrics *metrics, const prony_metric *definitions, size_t index,
                                     prony_error *error)
{
    const prony_metric *d = &definitions[index];
    if (!d->key || !d->name || !*d->key || strspn(d->key, "abcdefghijklmnopqrstuvwxyz0123456789_") != strlen(d->key))
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "metric \"%.60s\" needs a name, and a key of a to z, 0 to 9 and _", d->key ? d->key : "");
    if ((unsigned)d->scale > PRONY_SCALE_PERCENT || d->direction < PRONY_SMALLER_IS_BETTER ||
        d->direction > PRONY_LARGER_IS_BETTER)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "metric \"%s\": unknown scale or direction", d->key);
    const metric_entry *old = metrics_find(metrics, d->key);
    if (old && !old->builtin)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "metric \"%s\" is defined already by the user", d->key);
    for (size_t k = 0; k < index; k++)
        if (strcmp(definitions[k].key, d->key) == 0)
            return prn_fail(error, PRONY_INVALID_ARGUMENT, "metric \"%s\" is defined twice", d->key);
    return PRONY_OK;
}

static const char *metrics_copy(prony_metrics *metrics, const char *text)
{
    return prn_bump_strndup(&metrics->pool, text ? text : "", text ? strlen(text) : 0);
}

static bool copy_definition(prony_metrics *metrics, prony_metric *to, const prony_metric *from)
{
    *to = *from;
    to->key = metrics_copy(metrics, from->key);
    to->name = metrics_copy(metrics, from->name);
    to->description = metrics_copy(metrics, from->description);
    to->unit = metrics_copy(metrics, from->unit);
    return to->key && to->name && to->description && to->unit;
}

prony_status prony_metrics_add(prony_metrics *metrics, const prony_metric *definitions, size_t count,
                               prony_metric_fn compute, void *user, prony_error *error)
{
    if (!metrics || !definitions || !compute || count == 0)
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "prony_metrics_add: an argument is NULL, or no metrics are given");
    for (size_t i = 0; i < count; i++) PRN_TRY(check_definition(metrics, definitions, i, error));
    prony_metric *copies = prn_bump_alloc(&metrics->pool, count, sizeof *copies);
    metric_entry *fresh = prn_bump_alloc(&metrics->pool, count, sizeof *fresh);
    if (!copies || !fresh || !PRN_GROW(metrics->groups, metrics->group_capacity, metrics->group_count + 1) ||
        !PRN_GROW(metrics->entries, metrics->capacity, metrics->count + count))
        return prn_no_memory(error);
    for (size_t i = 0; i < count; i++)
        if (!copy_definition(metrics, &copies[i], &definitions[i])) return prn_no_memory(error);
    metrics->groups[metrics->group_count] = (metric_group){compute, user, count};
    for (size_t i = 0; i < count; i++) {
        metric_entry *entry = metrics_find(metrics, copies[i].key);
        if (!entry) metrics->entries[metrics->count++] = entry = &fresh[i];
        *entry = (metric_entry){.metric = copies[i], .group = metrics->group_count, .slot = i};
    }
    metrics->group_count++;
    return PRONY_OK;
}

size_t prony_metrics_count(const prony_metrics *metrics)
{
    return metrics ? metrics->count : 0;
}

const prony_metric *prony_metrics_at(const prony_metrics *metrics, size_t index)
{
    return metrics && index < metrics->count ? &metrics->entries[index]->metric : NULL;
}

const prony_metric *prony_metrics_find(const prony_metrics *metrics, const char *key)
{
    const metric_entry *entry = metrics && key ? metrics_find(metrics, key) : NULL;
    return entry ? &entry->metric : NULL;
}

const prn_metric_builtin *prn_metrics_builtin(const prony_metrics *metrics, size_t index)
{
    return index < metrics->count ? metrics->entries[index]->builtin : NULL;
}

bool prn_metrics_named(const char *keys, const char *key)
{
    if (!keys || strcmp(keys, "all") == 0) return true;
    for (const char *at = keys; *at; at += strspn(at, ",")) {
        size_t length = strcspn(at, ",");
        if (length == strlen(key) && strncmp(at, key, length) == 0) return true;
        at += length;
    }
    return false;
}

prony_status prn_metrics_check_keys(const prony_metrics *metrics, const char *keys, prony_error *error)
{
    if (keys && strcmp(keys, "all") == 0) return PRONY_OK;
    for (const char *at = keys; at && *at; at += strspn(at, ",")) {
        char key[64];
        size_t length = strcspn(at, ",");
        const bool fits = length < sizeof key; /* cut, it might be the name of another metric */
        snprintf(key, sizeof key, "%.*s", fits ? (int)length : (int)sizeof key - 1, at);
        if (!fits || !metrics_find(metrics, key))
            return prn_fail(error, PRONY_INVALID_ARGUMENT, "unknown metric \"%s%s\"", key, fits ? "" : "...");
        at += length;
    }
    return PRONY_OK;
}

/* ---- computing ---- */

static prony_status metrics_run_group(const metric_group *group, const prony_report *report, double *values,
                                      prony_error *error)
{
    for (size_t i = 0; i < group->count; i++) values[i] = NAN;
    prony_error inner = {0};
    prony_status status = prn_status_known(group->compute(values, report, group->user, &inner));
    if (status == PRONY_OK) return PRONY_OK;
    return prn_fail(error, status, "%s", *inner.message ? inner.message : "a metric's function failed");
}

prony_status prony_metrics_compute(const prony_metrics *metrics, const prony_report *report, const char *key,
                                   prony_metric_value *out, prony_error *error)
{
    if (!metrics || !report || !key || !out)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_metrics_compute: an argument is NULL");
    const metric_entry *entry = metrics_find(metrics, key);
    if (!entry) return prn_fail(error, PRONY_INVALID_ARGUMENT, "unknown metric \"%.100s\"", key);
    if (entry->builtin) {
        *out = prn_metric_value_of(&entry->metric, entry->builtin->read(report));
        return PRONY_OK;
    }
    const metric_group *group = &metrics->groups[entry->group];
    double *values = prn_calloc(group->count, sizeof *values);
    if (!values) return prn_no_memory(error);
    prony_status status = metrics_run_group(group, report, values, error);
    if (status == PRONY_OK)
        *out = prn_metric_value_of(&entry->metric, values[entry->slot]);
    else
        prn_error_prefix(error, "metric \"%s\"", key);
    prn_free(values);
    return status;
}

prony_status prony_metrics_compute_all(const prony_metrics *metrics, const prony_report *report,
                                       prony_metric_value *values, prony_error *error)
{
    if (!metrics || !report || !values)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_metrics_compute_all: an argument is NULL");
    size_t slots = 0;
    for (size_t g = 0; g < metrics->group_count; g++) slots += metrics->groups[g].count;
    double *computed = prn_calloc(slots + 1, sizeof *computed);
    size_t *begin = prn_calloc(metrics->group_count + 1, sizeof *begin);
    prony_status status = computed && begin ? PRONY_OK : prn_no_memory(error);
    for (size_t g = 0; status == PRONY_OK && g < metrics->group_count; g++) {
        status = metrics_run_group(&metrics->groups[g], report, computed + begin[g], error);
        begin[g + 1] = begin[g] + metrics->groups[g].count;
    }
    for (size_t i = 0; status == PRONY_OK && i < metrics->count; i++) {
        const metric_entry *entry = metrics->entries[i];
        double value = entry->builtin ? entry->builtin->read(report) : computed[begin[entry->group] + entry->slot];
        values[i] = prn_metric_value_of(&entry->metric, value);
    }
    prn_free(computed);
    prn_free(begin);
    return status;
}
