/* The dashboard of a history: one HTML page that needs no network and runs no script. Models, trends with intervals and
 * changes, slowest layers over time, machines, newest runs. */
#include "profiler/history/history_page.h"

#include "profiler/exporters/html_page.h"
#include "profiler/text/number_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PAGE_GROUPS = 24, PAGE_RUNS = 50 };

/* The page has no script that sets a theme, so it follows the system's. */
#define PAGE_STYLE                                                                                                     \
    "td.n,th.n{text-align:right!important;font-variant-numeric:tabular-nums}table{width:100%;table-layout:auto}\n"     \
    "td{white-space:normal;max-width:none;overflow-wrap:break-word}th,td{padding:.2rem .5rem}th{text-align:left}\n"    \
    "h2{overflow-wrap:anywhere}td.long{overflow-wrap:anywhere;min-width:10rem}td.keep,td.n{white-space:nowrap;"        \
    "overflow-wrap:normal}.scroller{height:auto;max-height:520px}.picture "                                            \
    "[stroke=\"#9db8dc\"]"                                                                                             \
    "{stroke:color-mix(in srgb,var(--accent) 45%,var(--panel))}td.bad{color:var(--bad)}td.good{color:var(--good)}\n"   \
    "@media(max-width:1100px){.picture svg{min-width:640px}.scroller table{min-width:1040px}}\n"                       \
    "@media(prefers-color-scheme:dark){:root{--ground:#0f1319;--panel:#171d26;--ink:#e5e9ef;--soft:#98a3b3;"           \
    "--line:#2a323e;--hover:#202938;--accent:#6ea8ff;--time:#f0a04b;--cold:#28303b;--edge:#566273;--good:#5fcf94;"     \
    "--bad:#ff8a80;--bar:#f0a04b3d;--shadow:none;color-scheme:dark}"                                                   \
    ".picture [fill=\"#0072b2\"]{fill:#4fa3dd}.picture [stroke=\"#0072b2\"]{stroke:#4fa3dd}}\n"

static void page_cell(prn_out *out, const char *class, const char *text)
{
    prn_out_format(out, *class ? "<td class=\"%s\">" : "<td>", class);
    prn_out_xml(out, text);
    prn_out_text(out, "</td>");
}

/* Headings; a '>' in front aligns right. */
static void table_begin(prn_out *out, const char *title, const char *const *headings)
{
    prn_out_text(out, "<div class=\"panel wide\"><h2>");
    prn_out_xml(out, title);
    prn_out_text(out, "</h2><div class=\"scroller\"><table><thead><tr>");
    for (; *headings; headings++) {
        const bool right = **headings == '>';
        prn_out_text(out, right ? "<th class=\"n\">" : "<th>");
        prn_out_xml(out, *headings + right);
        prn_out_text(out, "</th>");
    }
    prn_out_text(out, "</tr></thead><tbody>\n");
}

static void table_end(prn_out *out)
{
    prn_out_text(out, "</tbody></table></div></div>\n");
}

static void date_cell(prn_out *out, int64_t seconds)
{
    char date[24];
    page_cell(out, "keep", prn_history_date(seconds, date));
}

static void count_cell(prn_out *out, size_t count)
{
    char text[24];
    snprintf(text, sizeof text, "%zu", count);
    page_cell(out, "n", text);
}

/* ---- tables ---- */

static const char *page_value(const prony_metric *metric, double value, char *text, size_t size)
{
    return prn_history_value_text(metric, value, text, size, "");
}

/* The verdict, and the reason of one that is not plain. */
static const char *page_verdict(const prn_trend *t, char text[64])
{
    static const char *const reasons[] = {
        [PRN_TREND_WITHIN] = "",         [PRN_TREND_WORSE] = ": worse",       [PRN_TREND_DRIFTS] = ": drifts",
        [PRN_TREND_BETTER] = ": better", [PRN_TREND_BUSY] = ": busy machine", [PRN_TREND_FEW] = ": too few runs"};
    snprintf(text, 64, "%s%s", prn_trend_verdict_name(t), reasons[t->outcome]);
    return text;
}

static void put_models(prn_out *out, const prn_history_writing *w, const prn_trend *latencies)
{
    static const char *const headings[] = {"model",  "file",    ">runs",         ">busy",   "newest run", ">latency",
                                           ">level", "verdict", "configuration", "machine", NULL};
    table_begin(out, "Models", headings);
    for (size_t g = 0; g < w->groups.count; g++) {
        const prn_history_group *group = &w->groups.groups[g];
        const prn_trend *t = g < PAGE_GROUPS && prn_trend_has_newest(&latencies[g]) ? &latencies[g] : NULL;
        char text[64], hash[16];
        prn_out_text(out, "<tr>");
        page_cell(out, "long", group->of->model);
        snprintf(hash, sizeof hash, "%.10s", group->of->sha256);
        page_cell(out, "keep", group->differs[0] ? "several" : hash);
        count_cell(out, group->count);
        count_cell(out, group->busy);
        date_cell(out, group->of->time_s);
        page_cell(out, "n", t ? page_value(t->metric, t->points[t->count - 1].value, text, sizeof text) : "");
        page_cell(out, "n", t ? page_value(t->metric, t->expected, text, sizeof text) : "");
        const bool bad = t && prn_trend_is_bad(t);
        page_cell(out, bad ? "bad" : t && t->outcome == PRN_TREND_BETTER ? "good" : "", t ? page_verdict(t, text) : "");
        page_cell(out, "", prn_history_group_configuration(group));
        page_cell(out, "", prn_history_group_machine(group));
        prn_out_text(out, "</tr>\n");
    }
    table_end(out);
}

typedef struct machine_row {
    const prony_history_run *of; /* the newest run of the newest group */
    size_t groups, runs, busy;
    size_t group; /* counted last */
} machine_row;

/* Counts the runs of each machine: a joined group has runs of several. False: out of memory. */
static bool count_machines(const prn_history_writing *w, machine_row **rows, size_t *count)
{
    size_t capacity = 0;
    *rows = NULL;
    *count = 0;
    for (size_t g = 0; g < w->groups.count; g++)
        for (size_t i = w->groups.groups[g].count; i-- > 0;) {
            const prony_history_run *run = &w->history->runs[w->groups.groups[g].runs[i]];
            size_t r = 0;
            while (r < *count && strcmp((*rows)[r].of->fingerprint, run->fingerprint) != 0) r++;
            if (r == *count) {
                if (!PRN_GROW(*rows, capacity, *count + 1)) return false;
                (*rows)[(*count)++] = (machine_row){.of = run, .group = SIZE_MAX};
            }
            (*rows)[r].groups += (*rows)[r].group != g;
            (*rows)[r].group = g;
            (*rows)[r].runs++;
            (*rows)[r].busy += run->load == PRONY_LOAD_BUSY;
        }
    return true;
}

static prony_status put_machines(prn_out *out, const prn_history_writing *w, prony_error *error)
{
    static const char *const headings[] = {"machine", "fingerprint", ">groups", ">runs", ">busy", NULL};
    machine_row *rows;
    size_t count;
    const bool counted = count_machines(w, &rows, &count);
    if (counted && count) table_begin(out, "Machines", headings);
    for (size_t r = 0; counted && r < count; r++) {
        prn_out_text(out, "<tr>");
        page_cell(out, "", rows[r].of->machine);
        page_cell(out, "keep", rows[r].of->fingerprint);
        count_cell(out, rows[r].groups);
        count_cell(out, rows[r].runs);
        count_cell(out, rows[r].busy);
        prn_out_text(out, "</tr>\n");
    }
    if (counted && count) table_end(out);
    prn_free(rows);
    return counted ? PRONY_OK : prn_no_memory(error);
}

static void put_change_layers(prn_out *out, const prn_trend_change *c)
{
    prn_out_text(out, "<td>");
    for (size_t l = 0; l < c->layer_count; l++) {
        prn_number_text before, after;
        if (l) prn_out_text(out, "<br>");
        prn_out_xml(out, c->layers[l].name);
        prn_out_format(out, ": %s to %s", prn_number_time(before, llround(c->layers[l].before_ns), 3, " "),
                       prn_number_time(after, llround(c->layers[l].after_ns), 3, " "));
    }
    prn_out_text(out, "</td>");
}

static void put_trend_changes(prn_out *out, const prn_trend *t)
{
    for (size_t i = t->change_count; i-- > 0;) {
        const prn_trend_change *c = &t->changes[i];
        char text[64], commits[96];
        const char *class = c->direction > 0 ? "n bad" : c->direction < 0 ? "n good" : "n";
        prn_out_text(out, "<tr>");
        page_cell(out, "long", t->group->of->model);
        page_cell(out, "", t->metric->name);
        page_cell(out, class, prn_trend_change_text(c, text));
        page_cell(out, "n", page_value(t->metric, c->from, text, sizeof text));
        page_cell(out, "n", page_value(t->metric, c->to, text, sizeof text));
        date_cell(out, t->points[c->first].run->time_s);
        date_cell(out, t->points[c->last].run->time_s);
        page_cell(out, "keep", prn_trend_commits(t, c, commits));
        put_change_layers(out, c);
        prn_out_text(out, "</tr>\n");
    }
}

static void page_runs(prn_out *out, const prn_history_writing *w)
{
    static const char *const headings[] = {"time (UTC)", "commit",        "label", "model", ">latency",
                                           "load",       "configuration", "prony", NULL};
    const prony_metric *latency = prony_metrics_find(w->metrics, "latency");
    table_begin(out, "Newest runs", headings);
    size_t left = PAGE_RUNS;
    for (size_t g = 0; g < w->groups.count; g++) {
        const prn_history_group *group = &w->groups.groups[g];
        size_t share = PAGE_RUNS / (w->groups.count < PAGE_RUNS ? w->groups.count : PAGE_RUNS);
        for (size_t i = group->count; i-- > 0 && share > 0 && left > 0; share--, left--) {
            const prony_history_run *run = &w->history->runs[group->runs[i]];
            char text[64], commit[16];
            prn_out_text(out, "<tr>");
            date_cell(out, run->time_s);
            page_cell(out, "keep", prn_history_commit(run, commit));
            page_cell(out, "", run->label);
            page_cell(out, "long", run->model);
            page_cell(out, "n", page_value(latency, prn_history_number(run, "latency"), text, sizeof text));
            page_cell(out, run->load == PRONY_LOAD_BUSY ? "bad" : "", prn_history_load(run));
            page_cell(out, "", run->configuration);
            page_cell(out, "", run->prony);
            prn_out_text(out, "</tr>\n");
        }
    }
    table_end(out);
}

/* ---- trends ---- */

/* A constant is a row of no interest beside latencies. */
static bool trend_varies(const prn_trend *t)
{
    for (size_t i = 1; i < t->count; i++)
        if (fabs(t->points[i].value - t->points[0].value) > 1e-3 * fabs(t->points[0].value)) return true;
    return false;
}

static prony_status put_picture(prn_out *out, const prn_trend *t, bool layers, prony_error *error)
{
    prony_status status = PRONY_OK;
    prn_out_text(out, "<div class=\"panel picture\">");
    if (layers)
        status = prn_history_layers_chart(out, t, error);
    else
        prn_history_chart(out, t);
    prn_out_text(out, "</div>\n");
    return status;
}

typedef struct page_trends {
    prn_trend latencies[PAGE_GROUPS]; /* one per group */
    prn_trend others[PAGE_GROUPS * 4];
    size_t latency_count, other_count, changes;
} page_trends;

/* The latency of each group, and further metrics that vary. */
static prony_status make_trends(page_trends *p, const prn_history_writing *w, prony_error *error)
{
    static const char *const more[] = {"latency_p99", "requests_per_second", "session_memory", "top1_accuracy"};
    const prony_metric *latency = prony_metrics_find(w->metrics, "latency");
    for (size_t g = 0; g < w->groups.count && g < PAGE_GROUPS; g++) {
        prn_trend *t = &p->latencies[g];
        PRN_TRY(prn_trend_make(t, w, &w->groups.groups[g], latency, error));
        p->latency_count++;
        p->changes += t->change_count;
        for (size_t m = 0; m < sizeof more / sizeof *more; m++) {
            const prony_metric *metric = prony_metrics_find(w->metrics, more[m]);
            prn_trend *other = &p->others[p->other_count];
            if (!metric) continue;
            PRN_TRY(prn_trend_make(other, w, &w->groups.groups[g], metric, error));
            p->other_count++;
            if (m == 1 && strncmp(t->group->of->configuration, "load", 4) != 0) other->count = other->change_count = 0;
            p->changes += other->change_count;
        }
    }
    return PRONY_OK;
}

static prony_status put_pictures(prn_out *out, const page_trends *p, prony_error *error)
{
    bool trends = false; /* beside them a single run has no picture: the tables have it */
    for (size_t g = 0; g < p->latency_count; g++) trends = trends || p->latencies[g].group->count > 1;
    for (size_t g = 0; g < p->latency_count; g++) {
        const prn_trend *t = &p->latencies[g];
        size_t next = 0;
        if (trends && t->group->count == 1) continue;
        while (next < p->other_count && p->others[next].group != t->group) next++;
        if (t->count) PRN_TRY(put_picture(out, t, false, error));
        if (t->count && prn_history_has_layers(t)) PRN_TRY(put_picture(out, t, true, error));
        for (; next < p->other_count && p->others[next].group == t->group; next++)
            if (p->others[next].count && trend_varies(&p->others[next]))
                PRN_TRY(put_picture(out, &p->others[next], false, error));
    }
    return PRONY_OK;
}

static void page_changes(prn_out *out, const page_trends *p)
{
    static const char *const headings[] = {"model",    "metric",  ">change",           ">from", ">to", "first run",
                                           "last run", "commits", "layers that moved", NULL};
    table_begin(out, "Changes of level", headings);
    for (size_t g = 0; g < p->latency_count; g++) put_trend_changes(out, &p->latencies[g]);
    for (size_t i = 0; i < p->other_count; i++)
        if (p->others[i].count) put_trend_changes(out, &p->others[i]);
    table_end(out);
}

static void page_lead(prn_out *out, const prn_history_writing *w, const page_trends *p)
{
    size_t worse = 0, runs = w->groups.shown;
    for (size_t g = 0; g < p->latency_count; g++) worse += prn_trend_is_bad(&p->latencies[g]);
    prn_out_text(out, "<section class=\"panel\"><p>");
    if (runs == 0)
        prn_out_text(out, "No runs yet: <code>prony profile MODEL --history FILE.db</code> keeps one.");
    else {
        const unsigned across = w->options->across;
        prn_out_format(out, "%zu run%s in %zu group%s of one model%s%s%s. ", runs, runs == 1 ? "" : "s",
                       w->groups.count, w->groups.count == 1 ? "" : "s",
                       across & PRONY_ACROSS_MODEL_FILE ? "" : " file",
                       across & PRONY_ACROSS_MACHINE ? "" : ", machine",
                       across & PRONY_ACROSS_CONFIGURATION ? "" : ", configuration");
        if (w->groups.count > PAGE_GROUPS)
            prn_out_format(out, "The page judges and draws the %d groups with the newest runs. ", PAGE_GROUPS);
        prn_out_format(out, "The latency of the newest run regressed in %zu group%s. %zu change%s of level.", worse,
                       worse == 1 ? "" : "s", p->changes, p->changes == 1 ? "" : "s");
    }
    prn_out_text(out, "</p>");
    if (runs)
        prn_out_format(out,
                       "<p class=\"sub\">Orange: levels between changes (E-divisive, permutation tests at %.0f %%; "
                       "drifts by Theil's slope). Bars: 95 %% intervals. Grey points: busy machine, not counted.</p>",
                       100 * PRN_LEVEL_FALSE_ALARMS);
    prn_out_text(out, "</section>\n");
}

/* prn_out remembers the first failed write and drops later ones, so parts are written without a check and prn_out_end
 * reports it. A failure of its own (memory) in a part is `status`, and goes first. */
prony_status prn_history_page(const prn_history_writing *w, const prony_write_options *options, prony_write_fn write,
                              void *user, prony_error *error)
{
    (void)options;
    prn_out *out = prn_alloc(sizeof *out);
    page_trends *trends = prn_calloc(1, sizeof *trends);
    prony_status status = out && trends ? make_trends(trends, w, error) : prn_no_memory(error);
    if (status == PRONY_OK) {
        prn_out_begin(out, write, user, error);
        out->in_page = true;
        prn_page_begin(out, &(prn_page_head){.title = "History: ",
                                             .name = w->options->name,
                                             .subtitle = "latency and more, run by run",
                                             .style = PAGE_STYLE});
        page_lead(out, w, trends);
        prn_out_text(out, "<section class=\"grid\">\n");
        if (w->groups.count) put_models(out, w, trends->latencies);
        status = put_pictures(out, trends, error);
        if (trends->changes) page_changes(out, trends);
        if (status == PRONY_OK) status = put_machines(out, w, error);
        if (w->groups.count) page_runs(out, w);
        prn_out_text(out, "</section>\n</main>\n</body>\n</html>\n");
        const prony_status written = prn_out_end(out);
        if (status == PRONY_OK) status = written;
    }
    for (size_t g = 0; trends && g < PAGE_GROUPS; g++) prn_trend_release(&trends->latencies[g]);
    for (size_t i = 0; trends && i < sizeof trends->others / sizeof *trends->others; i++)
        prn_trend_release(&trends->others[i]);
    prn_free(trends);
    prn_free(out);
    return status;
}
