/* Groups of runs that may be compared: equal model file, machine and configuration, unless the caller joins them. */
#include "profiler/history/history.h"

#include "base/option_struct.h"

#include <stdlib.h>
#include <string.h>

typedef struct ordered_run {
    const prony_history_run *run;
    size_t index;
} ordered_run;

static int runs_by_time(const void *left, const void *right)
{
    const ordered_run *a = left, *b = right;
    if (a->run->time_s != b->run->time_s) return a->run->time_s < b->run->time_s ? -1 : 1;
    return a->index < b->index ? -1 : 1;
}

static bool group_takes(const prn_history_group *g, const prony_history_run *run, unsigned across)
{
    return strcmp(g->of->model, run->model) == 0 &&
           (across & PRONY_ACROSS_MODEL_FILE || strcmp(g->of->sha256, run->sha256) == 0) &&
           (across & PRONY_ACROSS_MACHINE || strcmp(g->of->fingerprint, run->fingerprint) == 0) &&
           (across & PRONY_ACROSS_CONFIGURATION || strcmp(g->of->configuration, run->configuration) == 0);
}

static bool model_is_wanted(const prony_history_run *run, const char *wanted)
{
    return !wanted || strcmp(run->model, wanted) == 0 ||
           (strlen(wanted) >= 6 && strncmp(run->sha256, wanted, strlen(wanted)) == 0);
}

/* The group of each wanted run; a new one if none takes it. False: out of memory. Quadratic in the groups only. */
static bool group_each(prn_history_groups *out, const ordered_run *order, size_t count, size_t *group_of,
                       const prony_history_options *options)
{
    size_t capacity = 0;
    for (size_t i = 0; i < count; i++) {
        size_t g = out->count;
        group_of[i] = SIZE_MAX;
        if (!model_is_wanted(order[i].run, options->model)) continue;
        for (size_t k = 0; k < out->count && g == out->count; k++)
            if (group_takes(&out->groups[k], order[i].run, options->across)) g = k;
        if (g == out->count) {
            if (!PRN_GROW(out->groups, capacity, out->count + 1)) return false;
            out->groups[out->count++] = (prn_history_group){0};
        }
        prn_history_group *group = &out->groups[g];
        if (group->of) {
            group->differs[0] |= strcmp(group->of->sha256, order[i].run->sha256) != 0;
            group->differs[1] |= strcmp(group->of->fingerprint, order[i].run->fingerprint) != 0;
            group->differs[2] |= strcmp(group->of->configuration, order[i].run->configuration) != 0;
        }
        group->of = order[i].run; /* ascending, so the newest stays */
        group->count++;
        group->busy += order[i].run->load == PRONY_LOAD_BUSY;
        group_of[i] = g;
        out->shown++;
    }
    return true;
}

static int groups_by_newest(const void *left, const void *right)
{
    const prn_history_group *a = left, *b = right;
    if (a->of->time_s != b->of->time_s) return a->of->time_s < b->of->time_s ? 1 : -1;
    return a->of < b->of ? 1 : -1; /* runs lie in one array, in the order of adding */
}

static prony_status group_runs(prn_history_groups *out, const prony_history *history,
                               const prony_history_options *options, prony_error *error)
{
    *out = (prn_history_groups){0};
    ordered_run *order = prn_calloc(history->count + 1, sizeof *order);
    size_t *group_of = prn_calloc(history->count + 1, sizeof *group_of);
    bool done = order && group_of;
    for (size_t i = 0; done && i < history->count; i++) order[i] = (ordered_run){&history->runs[i], i};
    if (done) qsort(order, history->count, sizeof *order, runs_by_time);
    done = done && group_each(out, order, history->count, group_of, options);
    for (size_t g = 0; done && g < out->count; g++) {
        out->groups[g].runs = prn_bump_alloc(&out->pool, out->groups[g].count, sizeof(size_t));
        done = out->groups[g].runs != NULL;
        out->groups[g].count = 0;
    }
    for (size_t i = 0; done && i < history->count; i++) {
        if (group_of[i] == SIZE_MAX) continue;
        prn_history_group *group = &out->groups[group_of[i]];
        group->runs[group->count++] = order[i].index;
    }
    if (done && out->count) qsort(out->groups, out->count, sizeof *out->groups, groups_by_newest);
    prn_free(order);
    prn_free(group_of);
    return done ? PRONY_OK : prn_no_memory(error);
}

const char *prn_history_group_configuration(const prn_history_group *group)
{
    return group->differs[2] ? "several configurations" : group->of->configuration;
}

const char *prn_history_group_machine(const prn_history_group *group)
{
    return group->differs[1] ? "several machines" : group->of->machine;
}

bool prn_history_is_newest(const prn_history_writing *w, const prn_history_group *group)
{
    const prony_history_run *newest = w->groups.groups[0].of;
    return group->of == newest || (newest->command && group->of->command == newest->command);
}

prony_status prn_history_begin(prn_history_writing *w, prony_history_options *own, prony_metrics **metrics,
                               const prony_history *history, const prony_history_options *options, prony_error *error)
{
    PRN_TRY(prn_options_read(own, sizeof *own, options, "history options", error));
    if (own->last <= 0) own->last = 500;
    if (own->last > PRN_TREND_MOST_RUNS)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "history options: last is %lld, more than %d",
                        (long long)own->last, PRN_TREND_MOST_RUNS);
    if (!own->name) own->name = "history";
    *w = (prn_history_writing){.history = history, .options = own};
    PRN_TRY(prony_metrics_create(metrics, error));
    w->metrics = *metrics;
    return group_runs(&w->groups, history, own, error);
}

void prn_history_end(prn_history_writing *w, prony_metrics *metrics)
{
    prn_bump_release(&w->groups.pool);
    prn_free(w->groups.groups);
    w->groups = (prn_history_groups){0};
    prony_metrics_release(metrics);
}
