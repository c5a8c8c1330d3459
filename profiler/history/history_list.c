/* The groups of a history and its newest runs as text. */
#include "profiler/history/history_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct list_view {
    const prn_history_writing *w;
    const prony_metric *metric;
    const size_t *runs; /* newest last */
    size_t run_count;
} list_view;

static const prn_column group_columns[] = {{"", true, false, 0, 0},
                                           {"model", false, false, 2, 12},
                                           {"runs", true, false, 0, 0},
                                           {"busy", true, true, 0, 0},
                                           {"newest", false, false, 0, 0},
                                           {"latency", true, false, 0, 0},
                                           {"configuration", false, false, 3, 16},
                                           {"machine", false, true, 1, 10}};

static void latency_cell(const prony_history_run *run, prn_cell *cell)
{
    const double ns = prn_history_number(run, "latency");
    if (isfinite(ns))
        prn_cell_time(cell, llround(ns));
    else
        cell->string = "-";
}

/* A cell of the groups' table, by column number of group_columns. cell->string is borrowed, from the history or from
 * cell->own. */
static void group_cell(const void *user, size_t row, int column, prn_cell *cell)
{
    const list_view *v = user;
    const prn_history_group *g = &v->w->groups.groups[row];
    cell->string = cell->own;
    switch (column) {
    case 0:
        snprintf(cell->own, sizeof cell->own, "%zu", row + 1);
        return;
    case 1:
        cell->string = g->of->model;
        return;
    case 2:
        snprintf(cell->own, sizeof cell->own, "%zu", g->count);
        return;
    case 3:
        if (g->busy) snprintf(cell->own, sizeof cell->own, "%zu", g->busy);
        return;
    case 4:
        prn_history_date(g->of->time_s, cell->own);
        return;
    case 5:
        latency_cell(g->of, cell);
        return;
    case 6:
        cell->string = prn_history_group_configuration(g);
        return;
    default:
        cell->string = prn_history_group_machine(g);
    }
}

static const prn_column run_columns[] = {{"time (UTC)", false, false, 0, 0},   {"commit", false, false, 0, 0},
                                         {"label", false, true, 1, 8},         {"model", false, false, 2, 12},
                                         {"latency", true, false, 0, 0},       {"load", false, true, 0, 0},
                                         {"configuration", false, true, 2, 16}};

/* A cell of the runs' table, by column number of run_columns. v->runs ascend in time, rows descend: row 0 is the newest
 * run. */
static void run_cell(const void *user, size_t row, int column, prn_cell *cell)
{
    const list_view *v = user;
    const prony_history_run *run = &v->w->history->runs[v->runs[v->run_count - 1 - row]];
    cell->string = cell->own;
    switch (column) {
    case 0:
        prn_history_date(run->time_s, cell->own);
        return;
    case 1:
        prn_history_commit(run, cell->own);
        return;
    case 2:
        cell->string = run->label;
        return;
    case 3:
        cell->string = run->model;
        return;
    case 4:
        latency_cell(run, cell);
        return;
    case 5:
        cell->string = prn_history_load(run);
        if (run->load == PRONY_LOAD_BUSY) cell->style = PRN_STYLE_WARN;
        return;
    default:
        cell->string = run->configuration;
    }
}

/* All wanted runs by time; the caller frees them. */
static size_t *runs_in_order(const prn_history_writing *w, size_t *count)
{
    size_t *out = prn_calloc(w->groups.shown + 1, sizeof *out), *next = prn_calloc(w->groups.count + 1, sizeof *next);
    *count = 0;
    if (!next) {
        prn_free(out);
        return NULL;
    }
    while (out && *count < w->groups.shown) {
        size_t best = SIZE_MAX;
        const prony_history_run *first = NULL;
        for (size_t g = 0; g < w->groups.count; g++) {
            if (next[g] == w->groups.groups[g].count) continue;
            const prony_history_run *run = &w->history->runs[w->groups.groups[g].runs[next[g]]];
            if (first && (first->time_s < run->time_s || (first->time_s == run->time_s && first < run))) continue;
            first = run;
            best = g;
        }
        out[(*count)++] = w->groups.groups[best].runs[next[best]++];
    }
    prn_free(next);
    return out;
}

/* Groups by their newest run, then the newest runs, each list cut to --top. The bits of `names` are columns that
 * shorten when the terminal is narrow, those of `minor` columns that go before. */
prony_status prn_history_list_text(const prn_history_writing *w, const prony_write_options *options,
                                   prony_write_fn write, void *user, prony_error *error)
{
    prn_text *text = prn_history_text_begin(options, write, user, error);
    if (!text) return PRONY_OUT_OF_MEMORY;
    list_view view = {.w = w};
    size_t *runs = runs_in_order(w, &view.run_count);
    if (!runs) {
        prn_free(text);
        return prn_no_memory(error);
    }
    view.runs = runs;
    prn_text_putf(text, PRN_STYLE_TITLE, "%.200s", w->options->name);
    prn_text_putf(text, PRN_STYLE_DIM, ": %zu run%s in %zu group%s", w->groups.shown, w->groups.shown == 1 ? "" : "s",
                  w->groups.count, w->groups.count == 1 ? "" : "s");
    prn_text_line(text);
    if (w->groups.count) {
        const size_t most = options->top > 0 ? (size_t)options->top : PRN_HISTORY_ROWS,
                     listed = w->groups.count < most ? w->groups.count : most,
                     shown = view.run_count < most ? view.run_count : most;
        prn_text_line(text);
        const prn_table groups = {.columns = group_columns,
                                  .column_count = sizeof group_columns / sizeof *group_columns,
                                  .names = 1U << 1 | 1U << 6 | 1U << 7,
                                  .minor = 1U << 4,
                                  .rows = listed,
                                  .cell = group_cell,
                                  .user = &view};
        prn_text_table(text, &groups);
        if (listed < w->groups.count)
            prn_text_putf(text, PRN_STYLE_DIM, "the %zu groups with the newest runs; --top %zu shows all", listed,
                          w->groups.count);
        if (text->column) prn_text_line(text);
        prn_text_line(text);
        prn_text_putf(text, PRN_STYLE_TITLE, "Newest runs");
        if (shown < view.run_count) prn_text_putf(text, PRN_STYLE_DIM, ", %zu of %zu", shown, view.run_count);
        prn_text_line(text);
        const prn_table newest = {.columns = run_columns,
                                  .column_count = sizeof run_columns / sizeof *run_columns,
                                  .names = 1U << 3 | 1U << 6,
                                  .rows = shown,
                                  .cell = run_cell,
                                  .user = &view};
        prn_text_table(text, &newest);
    } else
        prn_text_wrap(text, PRN_STYLE_DIM, 0,
                      w->history->count ? "No run of this model." : "No runs yet: --history FILE.db keeps them.");
    prn_free(runs);
    return prn_history_text_end(text);
}
