/* A study on the terminal: the quality of its data, then measurements, results, and losses. Reads the study only. */
#include "profiler/text/number_text.h"
#include "profiler/exporters/text_cell.h"
#include "profiler/study/study.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_ROWS 12

typedef struct study_view {
    const prony_study *study;
    const prn_study_loss *const *losses;
} study_view;

static void own(prn_cell *cell, const char *text)
{
    snprintf(cell->own, sizeof cell->own, "%s", text);
    cell->string = cell->own;
}

static void fixed(prn_cell *cell, double value, int decimals)
{
    prn_number_text text;
    own(cell, isfinite(value) ? prn_number_fixed(text, value, decimals) : "-");
}

static void study_text_interval(prn_cell *cell, const double pair[2], int decimals)
{
    prn_number_text low, high;
    if (!isfinite(pair[0]) || !isfinite(pair[1])) return;
    snprintf(cell->own, sizeof cell->own, "%s..%s", prn_number_fixed(low, pair[0], decimals),
             prn_number_fixed(high, pair[1], decimals));
    cell->string = cell->own;
}

/* Half the interval's width, relative. */
static void precision(prn_cell *cell, const prony_study_result *r)
{
    prn_number_text text;
    double half = (r->ci95_ns[1] - r->ci95_ns[0]) / 2 / r->median_ns;
    if (!isfinite(half)) return;
    snprintf(cell->own, sizeof cell->own, "%s%%", prn_number_fixed(text, 100 * half, 1));
    cell->string = cell->own;
}

static const prn_column result_columns[] = {
    {"threads", false, false, 1, 15}, {"median", true, false, 0, 0},   {"+-", true, false, 0, 0},
    {"samples/s", true, true, 0, 0},  {"speed-up", true, false, 0, 0}, {"95 %", true, false, 0, 0},
    {"eff.", true, false, 0, 0},      {"serial", true, false, 0, 0},   {"n", true, false, 0, 0}};

/* Shortens " threads" to "t" if more text follows, which distinguishes rows. */
static const char *abridged(char *label)
{
    char *unit = strstr(label, " thread"), *rest = unit ? strchr(unit, ',') : NULL;
    if (rest) {
        *unit = 't';
        memmove(unit + 1, rest, strlen(rest) + 1);
    }
    return label;
}

/* One cell of the table of results; a configuration without processes has only its label. */
static void study_text_result_cell(const void *user, size_t row, int column, prn_cell *cell)
{
    const prony_study *s = ((const study_view *)user)->study;
    const prony_study_result *r = &s->results[row];
    prn_number_text number;
    char label[PRN_STUDY_LABEL_BYTES];
    if (column == 0) {
        prn_study_label(s, row, label);
        snprintf(cell->own, sizeof cell->own, "%.58s%s", abridged(label), r->oversubscribed ? " !" : "");
        cell->string = cell->own;
        return;
    }
    if (r->processes == 0) {
        if (column == 1) own(cell, "-");
        return;
    }
    switch (column) {
    case 1:
        prn_cell_time(cell, (int64_t)llround(r->median_ns));
        return;
    case 2:
        precision(cell, r);
        return;
    case 3:
        own(cell, prn_number_si(number, r->samples_per_second, 4, ""));
        return;
    case 4:
        fixed(cell, r->speedup, 2);
        return;
    case 5:
        study_text_interval(cell, r->speedup_ci95, 2);
        return;
    case 6:
        if (!isfinite(r->efficiency)) return;
        snprintf(cell->own, sizeof cell->own, "%s%%", prn_number_fixed(number, 100 * r->efficiency, 0));
        cell->string = cell->own;
        cell->style = r->efficiency < 0.5 ? PRN_STYLE_BAD : r->efficiency < 0.8 ? PRN_STYLE_WARN : PRN_STYLE_PLAIN;
        return;
    case 7:
        if (!isfinite(r->karp_flatt)) return;
        snprintf(cell->own, sizeof cell->own, "%s%%", prn_number_fixed(number, 100 * r->karp_flatt, 1));
        cell->string = cell->own;
        return;
    default:
        prn_cell_index(cell, r->processes);
    }
}

static const prn_column loss_columns[] = {{"operator", false, false, 3, 14}, {"type", false, true, 1, 6},
                                          {"1 thread", true, false, 0, 0},   {"now", true, false, 0, 0},
                                          {"lost", true, false, 0, 0},       {"eff.", true, false, 0, 0},
                                          {"because", false, false, 0, 0}};

/* One cell of the table of losses. */
static void loss_cell(const void *user, size_t row, int column, prn_cell *cell)
{
    const study_view *view = user;
    const prn_study_loss *l = view->losses[row];
    const prn_study_operator *o = &view->study->configurations[l->configuration].operators[l->operator];
    prn_number_text number;
    switch (column) {
    case 0:
        cell->string = o->name;
        return;
    case 1:
        cell->string = o->op;
        return;
    case 2:
        prn_cell_time(cell, (int64_t)l->serial_ns);
        return;
    case 3:
        prn_cell_time(cell, (int64_t)l->time_ns);
        return;
    case 4:
        prn_cell_time(cell, (int64_t)l->lost_ns);
        return;
    case 5:
        snprintf(cell->own, sizeof cell->own, "%s%%", prn_number_fixed(number, 100 * l->efficiency, 0));
        cell->string = cell->own;
        return;
    default:
        cell->string = l->reason;
    }
}

static const prn_column difference_columns[] = {{"threads", false, false, 1, 15}, {"then", true, false, 0, 0},
                                                {"now", true, false, 0, 0},       {"ratio", true, false, 0, 0},
                                                {"95 %", true, false, 0, 0},      {"p", true, false, 0, 0},
                                                {"verdict", false, false, 0, 0},  {"", false, true, 1, 8}};

/* One cell of the comparison with an earlier study. */
static void difference_cell(const void *user, size_t row, int column, prn_cell *cell)
{
    const prony_study *s = ((const study_view *)user)->study;
    const prn_study_difference *d = &s->differences[row];
    char label[PRN_STUDY_LABEL_BYTES];
    switch (column) {
    case 0:
        prn_study_label(s, d->configuration, label);
        snprintf(cell->own, sizeof cell->own, "%.60s", label);
        cell->string = cell->own;
        return;
    case 1:
        if (isfinite(d->earlier_ns)) prn_cell_time(cell, (int64_t)d->earlier_ns);
        return;
    case 2:
        if (s->results[d->configuration].processes)
            prn_cell_time(cell, (int64_t)s->results[d->configuration].median_ns);
        return;
    case 3:
        fixed(cell, d->ratio, 3);
        return;
    case 4:
        study_text_interval(cell, d->interval, 3);
        return;
    case 5:
        fixed(cell, d->p, 3);
        return;
    case 6:
        cell->string = d->verdict;
        cell->style = strcmp(d->verdict, "same") == 0        ? PRN_STYLE_GOOD
                      : strcmp(d->verdict, "different") == 0 ? PRN_STYLE_BAD
                                                             : PRN_STYLE_WARN;
        return;
    default:
        if (strcmp(d->verdict, "same") == 0) snprintf(cell->own, sizeof cell->own, "within +-%.1f %%", 100 * d->within);
        cell->string = strcmp(d->verdict, "same") == 0 ? cell->own : d->why;
    }
}

static void put_table(prn_text *text, const study_view *view, const prn_column *columns, int count, size_t rows,
                      void (*cell)(const void *, size_t, int, prn_cell *))
{
    prn_table table = {.columns = columns,
                       .column_count = count,
                       .names = columns == loss_columns ? 1U << 0 : 0,
                       .rows = rows,
                       .cell = cell,
                       .user = view};
    prn_text_table(text, &table);
}

static void study_text_put_quality(prn_text *text, const prony_study *s)
{
    const prn_study_quality *q = &s->quality;
    prn_number_text number;
    char line[200];
    prn_style style = strcmp(q->verdict, "good") == 0   ? PRN_STYLE_GOOD
                      : strcmp(q->verdict, "fair") == 0 ? PRN_STYLE_WARN
                                                        : PRN_STYLE_BAD;
    prn_text_put(text, PRN_STYLE_BOLD, "Data quality: ");
    prn_text_put(text, style, q->verdict);
    if (isfinite(q->aa_ratio))
        prn_text_putf(text, PRN_STYLE_PLAIN, "; baseline measured twice: %s, ratio %s", q->aa,
                      prn_number_fixed(number, q->aa_ratio, 3));
    prn_text_line(text);
    if (q->widest > 0) {
        snprintf(line, sizeof line, "medians are known to +-%s %% or better",
                 prn_number_fixed(number, 100 * q->widest, 1));
        prn_text_wrap(text, PRN_STYLE_PLAIN, 2, line);
    }
    for (size_t i = 0; i < q->note_count; i++) prn_text_wrap(text, PRN_STYLE_PLAIN, 2, q->notes[i]);
    prn_text_line(text);
}

static void put_fit(prn_text *text, const prony_study *s, const prn_study_fit *f)
{
    static const char *const names[] = {"Amdahl", "Gustafson", "USL"};
    const prn_law_fit *fit = &f->fit;
    prn_number_text a, b, c, d;
    char line[400], where[PRN_STUDY_LABEL_BYTES] = "";
    if (prn_study_groups(s) > 1) prn_study_label(s, prn_study_baseline(s, f->group), where);
    const char *over = f->inter ? " over workers" : "";
    if (!fit->known) {
        snprintf(line, sizeof line, "%s%s%s%.60s: %.200s", names[f->law], over, *where ? ", " : "", where, f->reason);
    } else {
        int used = snprintf(line, sizeof line, "%s%s%s%.60s: %s %s %% (%s..%s %%), residual %s %%", names[f->law], over,
                            *where ? ", " : "", where, f->law == PRN_LAW_USL ? "contention" : "serial",
                            prn_number_fixed(a, 100 * fit->alpha, 2), prn_number_fixed(b, 100 * fit->alpha_ci95[0], 2),
                            isfinite(fit->alpha_ci95[1]) ? prn_number_fixed(c, 100 * fit->alpha_ci95[1], 2) : "?",
                            prn_number_fixed(d, 100 * fit->rms, 2));
        if (f->law == PRN_LAW_USL)
            snprintf(line + used, sizeof line - (size_t)used, ", coherency %s %%, peak at %s threads",
                     prn_number_fixed(a, 100 * fit->beta, 3),
                     isfinite(fit->peak) ? prn_number_fixed(b, fit->peak, 1) : "no number of");
    }
    prn_text_wrap(text, PRN_STYLE_PLAIN, 2, line);
}

static void put_laws(prn_text *text, const prony_study *s)
{
    prn_number_text number;
    char line[500];
    prn_text_put(text, PRN_STYLE_TITLE, "Laws and limits");
    prn_text_line(text);
    for (size_t i = 0; i < s->fit_count; i++)
        if ((s->fits[i].law == PRN_LAW_GUSTAFSON) == s->weak) put_fit(text, s, &s->fits[i]);
    for (size_t i = 0; i < s->limit_count; i++) {
        char where[PRN_STUDY_LABEL_BYTES] = "";
        if (prn_study_groups(s) > 1) prn_study_label(s, prn_study_baseline(s, s->limits[i].group), where);
        snprintf(line, sizeof line,
                 "%s%sThis model's speed-up cannot exceed %s on %d processors of this machine: %.300s", where,
                 *where ? ": " : "", prn_number_fixed(number, s->limits[i].speedup, 2), s->limits[i].processors,
                 s->limits[i].why);
        prn_text_wrap(text, PRN_STYLE_BOLD, 2, line);
    }
}

/* The configuration with shown losses: the runnable one with the most threads inside operators. */
static size_t shown_configuration(const prony_study *s)
{
    size_t best = PRONY_NO_INDEX;
    for (size_t i = 0; i < s->loss_count; i++) {
        size_t c = s->losses[i].configuration;
        if (s->configurations[c].beyond || s->configurations[c].intra_op == 1) continue;
        if (best == PRONY_NO_INDEX || s->configurations[c].intra_op > s->configurations[best].intra_op) best = c;
    }
    return best;
}

static const prn_column replica_columns[] = {{"replicas", false, false, 1, 15}, {"samples/s", true, false, 0, 0},
                                             {"95 %", true, false, 0, 0},       {"times one", true, false, 0, 0},
                                             {"95 %", true, false, 0, 0},       {"eff.", true, false, 0, 0},
                                             {"n", true, false, 0, 0}};

/* One cell of the table of replicas. */
static void replica_cell(const void *user, size_t row, int column, prn_cell *cell)
{
    const prony_study *s = ((const study_view *)user)->study;
    const prn_study_replication *p = &s->replications[row];
    const prony_study_replica_result *r = &p->result;
    prn_number_text number, more;
    char label[PRN_STUDY_LABEL_BYTES];
    switch (column) {
    case 0:
        prn_study_label(s, p->configuration, label);
        snprintf(cell->own, sizeof cell->own, "%.58s%s", abridged(label),
                 s->configurations[p->configuration].beyond ? " !" : "");
        cell->string = cell->own;
        return;
    case 1:
        own(cell, isfinite(r->samples_per_second) ? prn_number_si(number, r->samples_per_second, 4, "") : "-");
        return;
    case 2:
        if (!isfinite(r->ci95[0]) || !isfinite(r->ci95[1])) return;
        snprintf(cell->own, sizeof cell->own, "%s..%s", prn_number_si(number, r->ci95[0], 3, ""),
                 prn_number_si(more, r->ci95[1], 3, ""));
        cell->string = cell->own;
        return;
    case 3:
        fixed(cell, r->speedup, 2);
        return;
    case 4:
        study_text_interval(cell, r->speedup_ci95, 2);
        return;
    case 5:
        if (!isfinite(r->efficiency)) return;
        snprintf(cell->own, sizeof cell->own, "%s%%", prn_number_fixed(number, 100 * r->efficiency, 0));
        cell->string = cell->own;
        return;
    default:
        prn_cell_index(cell, r->rounds);
    }
}

/* The number of replicas that fill the memory bandwidth, as a sentence. */
static void put_bandwidth(prn_text *text, const prony_study *s, const prn_study_replica_bandwidth *b)
{
    char label[PRN_STUDY_LABEL_BYTES], line[400];
    prn_number_text one, all;
    prn_study_label(s, b->configuration, label);
    if (b->full_at == 0)
        snprintf(line, sizeof line,
                 "No number of replicas of %.60s fills the memory bandwidth: the caches of their processors hold the "
                 "data of each operator.",
                 label);
    else
        snprintf(line, sizeof line,
                 "Memory bandwidth is full at %lld replicas of %.60s%s: one moves %sB/s by its operators' sizes, and "
                 "memory gives %sB/s.",
                 (long long)b->full_at, label,
                 b->full_at * prn_study_threads(&s->configurations[b->configuration]) > s->usable
                     ? " (more than the processors run at once)"
                     : "",
                 prn_number_si(one, b->bytes_per_second, 3, " "), prn_number_si(all, b->roof_bytes_per_second, 3, " "));
    prn_text_wrap(text, PRN_STYLE_PLAIN, 2, line);
}

/* The throughput of all nodes together, as a sentence. */
static void put_all_nodes(prn_text *text, const prony_study *s, const prn_study_replication *p)
{
    const prony_study_replica_result *r = &p->result;
    char label[PRN_STUDY_LABEL_BYTES], line[300];
    prn_number_text rate, low, high, share;
    int used = snprintf(line, sizeof line, "All %zu nodes at once, %.60s each: %s samples/s", s->node_count,
                        prn_study_label(s, p->configuration, label),
                        prn_number_si(rate, r->all_nodes_samples_per_second, 4, ""));
    if (isfinite(r->all_nodes_ci95[0]) && isfinite(r->all_nodes_ci95[1]))
        used +=
            snprintf(line + used, sizeof line - (size_t)used, " (%s..%s)",
                     prn_number_si(low, r->all_nodes_ci95[0], 3, ""), prn_number_si(high, r->all_nodes_ci95[1], 3, ""));
    if (isfinite(r->all_nodes_efficiency))
        snprintf(line + used, sizeof line - (size_t)used, ", efficiency %s %% against one on each node",
                 prn_number_fixed(share, 100 * r->all_nodes_efficiency, 0));
    prn_text_wrap(text, PRN_STYLE_PLAIN, 2, line);
}

static void put_replicas(prn_text *text, const prony_study *s)
{
    study_view view = {s, NULL};
    prn_text_put(text, PRN_STYLE_TITLE, "Replicas: all together, compared with one");
    prn_text_line(text);
    put_table(text, &view, replica_columns, 7, s->replication_count, replica_cell);
    for (size_t i = 0; i < s->replica_fit_count; i++) {
        const prn_study_replica_fit *f = &s->replica_fits[i];
        char label[PRN_STUDY_LABEL_BYTES], line[300];
        prn_number_text a, b, peak;
        if (!f->fit.known) continue;
        int used = snprintf(line, sizeof line, "%s over replicas of %.60s: contention %s %%, residual %s %%",
                            f->law == PRN_LAW_USL ? "USL" : "Amdahl", prn_study_label(s, f->configuration, label),
                            prn_number_fixed(a, 100 * f->fit.alpha, 2), prn_number_fixed(b, 100 * f->fit.rms, 2));
        if (f->law == PRN_LAW_USL)
            snprintf(line + used, sizeof line - (size_t)used, ", peak at %s replicas",
                     isfinite(f->fit.peak) ? prn_number_fixed(peak, f->fit.peak, 1) : "no number of");
        prn_text_wrap(text, PRN_STYLE_PLAIN, 2, line);
    }
    for (size_t i = 0; i < s->replication_count; i++)
        if (s->replications[i].over_nodes) put_all_nodes(text, s, &s->replications[i]);
    for (size_t i = 0; i < s->replica_bandwidth_count; i++) put_bandwidth(text, s, &s->replica_bandwidths[i]);
    prn_text_line(text);
}

static const prn_column node_columns[] = {{"node", false, false, 1, 12},
                                          {"processors", true, true, 0, 0},
                                          {"1 thread", true, false, 0, 0},
                                          {"ratio", true, false, 0, 0},
                                          {"95 %", true, false, 0, 0},
                                          {"n", true, false, 0, 0},
                                          {"beside the others", false, false, 0, 0}};

/* One cell of the table of nodes; the median is that of the first configuration. */
static void node_cell(const void *user, size_t row, int column, prn_cell *cell)
{
    const prony_study *s = ((const study_view *)user)->study;
    const prn_study_node_difference *d = &s->node_differences[row];
    const prony_study_result *r = &s->node_results[row * s->configuration_count];
    char name[PRN_STUDY_NODE_BYTES];
    size_t blocks = 0;
    switch (column) {
    case 0:
        snprintf(cell->own, sizeof cell->own, "%.60s", prn_study_node_label(s, row, name));
        cell->string = cell->own;
        return;
    case 1:
        prn_cell_index(cell, (size_t)s->nodes[row].usable);
        return;
    case 2:
        if (r->processes) prn_cell_time(cell, (int64_t)llround(r->median_ns));
        return;
    case 3:
        fixed(cell, d->ratio, 2);
        return;
    case 4:
        study_text_interval(cell, d->interval, 2);
        return;
    case 5:
        for (size_t c = 0; c < s->configuration_count; c++) blocks += r[c].processes;
        prn_cell_index(cell, blocks);
        return;
    default:
        cell->string = d->verdict;
        cell->style = strcmp(d->verdict, "same") == 0     ? PRN_STYLE_GOOD
                      : strcmp(d->verdict, "slower") == 0 ? PRN_STYLE_BAD
                                                          : PRN_STYLE_WARN;
    }
}

static void study_text_put_nodes(prn_text *text, const prony_study *s)
{
    study_view view = {s, NULL};
    prn_text_put(text, PRN_STYLE_TITLE, "Nodes");
    prn_text_line(text);
    put_table(text, &view, node_columns, 7, s->node_difference_count, node_cell);
    prn_text_wrap(text, PRN_STYLE_DIM, 2,
                  "ratio: times of the node over the other nodes' median, all configurations; n: processes that count");
    prn_text_line(text);
}

static prony_status study_text_put_losses(prn_text *text, const prony_study *s, const prony_write_options *options,
                                          prony_error *error)
{
    size_t shown = shown_configuration(s), count = 0, most = options->top > 0 ? (size_t)options->top : DEFAULT_ROWS;
    char label[PRN_STUDY_LABEL_BYTES];
    double lost = 0;
    prn_number_text number;
    if (shown == PRONY_NO_INDEX) return PRONY_OK;
    const prn_study_loss **losses = prn_calloc(s->loss_count + 1, sizeof *losses);
    if (!losses) return prn_no_memory(error);
    for (size_t i = 0; i < s->loss_count; i++) {
        if (s->losses[i].configuration != shown || s->losses[i].lost_ns <= 0) continue;
        lost += s->losses[i].lost_ns;
        if (count < most) losses[count++] = &s->losses[i];
    }
    study_view view = {s, losses};
    prn_text_line(text);
    prn_text_putf(text, PRN_STYLE_TITLE, "Operators on %s", prn_study_label(s, shown, label));
    prn_text_putf(text, PRN_STYLE_DIM, ", %s lost against an even share",
                  prn_number_time(number, (int64_t)lost, 3, " "));
    prn_text_line(text);
    put_table(text, &view, loss_columns, 7, count, loss_cell);
    prn_free(losses);
    return PRONY_OK;
}

static void study_text_put_comparison(prn_text *text, const prony_study *s)
{
    study_view view = {s, NULL};
    prn_text_put(text, PRN_STYLE_TITLE, "Compared with the earlier study");
    prn_text_line(text);
    for (size_t i = 0; i < s->manifest_difference_count; i++)
        prn_text_wrap(text, PRN_STYLE_WARN, 2, s->manifest_differences[i]);
    if (s->manifest_difference_count == 0) prn_text_wrap(text, PRN_STYLE_DIM, 2, "same machine, system and build");
    put_table(text, &view, difference_columns, 8, s->difference_count, difference_cell);
    char line[160];
    snprintf(line, sizeof line,
             "same: two one-sided tests at 5 %% each put the ratio within +-%.0f %%; in wide tables, the smallest such "
             "margin stands beside it",
             100 * PRN_STUDY_EQUAL);
    prn_text_wrap(text, PRN_STYLE_DIM, 2, line);
    prn_text_line(text);
}

/* Writes the quality first, then comparison, results, replicas, nodes, laws, losses and the statement. */
prony_status prn_study_write_text(const prony_study *s, const prony_write_options *options, prony_write_fn write,
                                  void *user, prony_error *error)
{
    prn_text *text = prn_alloc(sizeof *text);
    if (!text) return prn_no_memory(error);
    study_view view = {s, NULL};
    prn_bump pool = {0};
    prn_text_begin(text, options->width ? options->width : 80, options->color, write, user, error);
    text->whole_names = options->whole_names != 0;
    prn_text_putf(text, PRN_STYLE_TITLE, "%s", prn_report_title(s->manifest));
    prn_text_putf(text, PRN_STYLE_DIM, ", %s scaling, %zu blocks, seed %llu", s->weak ? "weak" : "strong",
                  s->block_count, (unsigned long long)s->seed);
    if (s->node_count) prn_text_putf(text, PRN_STYLE_DIM, ", %zu nodes", s->node_count);
    prn_text_line(text);
    study_text_put_quality(text, s);
    if (s->compared) study_text_put_comparison(text, s);
    put_table(text, &view, result_columns, 9, s->configuration_count, study_text_result_cell);
    prn_text_line(text);
    if (s->replication_count) put_replicas(text, s);
    if (s->node_count) study_text_put_nodes(text, s);
    put_laws(text, s);
    prony_status status = study_text_put_losses(text, s, options, error);
    prn_text_line(text);
    prn_text_put(text, PRN_STYLE_TITLE, "How it was measured");
    prn_text_line(text);
    const char *statement = prn_study_statement(s, &pool);
    prn_text_wrap(text, PRN_STYLE_DIM, 2, statement ? statement : "");
    prony_status ended = prn_text_end(text);
    prn_bump_release(&pool);
    prn_free(text);
    return status == PRONY_OK ? ended : status;
}
