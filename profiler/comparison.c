/* prony_compare: two reports side by side, and what may be concluded.
 *
 * A metric is judged by what is known of its scatter. Those that follow from model and configuration have none. Those
 * of latencies have the raw samples: a rank test and a bootstrap interval must agree. What was measured once is shown
 * and not judged. Layers and types have mean and deviation of their times: Welch's test, adjusted for the number of
 * rows. In all cases a difference counts only where it is beyond the noise threshold as a whole.
 */
#include "profiler/comparison.h"

#include "profiler/metrics.h"
#include "profiler/significance.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALPHA 0.05
#define DEFAULT_NOISE 0.01
#define FEW_RUNS 9 /* below it a rank test tells little */

const char *prony_verdict_name(prony_verdict verdict)
{
    static const char *const names[] = {"none", "same", "better", "worse"};
    return (size_t)verdict < sizeof names / sizeof names[0] ? names[verdict] : "none";
}

const char *prn_verdict_mark(prony_verdict verdict)
{
    return verdict == PRONY_VERDICT_NONE ? "" : verdict == PRONY_VERDICT_SAME ? "~" : prony_verdict_name(verdict);
}

const char *prony_evidence_name(prony_evidence evidence)
{
    static const char *const names[] = {"single", "exact", "runs", "interval", "means"};
    return (size_t)evidence < sizeof names / sizeof names[0] ? names[evidence] : "single";
}

/* ---- metrics ---- */

/* Built-in metrics that can be judged; what is not here was measured once. */
static const struct judged {
    const char *key;
    prony_evidence evidence;
    prn_statistic statistic;
    bool rate; /* goes with 1 / statistic */
} judged[] = {
    {"latency", PRONY_EVIDENCE_RUNS, PRN_STATISTIC_MEDIAN, false},
    {"latency_mean", PRONY_EVIDENCE_RUNS, PRN_STATISTIC_MEAN, false},
    {"latency_p90", PRONY_EVIDENCE_INTERVAL, PRN_STATISTIC_P90, false},
    {"latency_p95", PRONY_EVIDENCE_INTERVAL, PRN_STATISTIC_P95, false},
    {"latency_p99", PRONY_EVIDENCE_INTERVAL, PRN_STATISTIC_P99, false},
    {"latency_p999", PRONY_EVIDENCE_INTERVAL, PRN_STATISTIC_P999, false},
    {"throughput", PRONY_EVIDENCE_RUNS, PRN_STATISTIC_MEAN, true},
    {"images_per_second", PRONY_EVIDENCE_RUNS, PRN_STATISTIC_MEAN, true},
    {"tokens_per_second", PRONY_EVIDENCE_RUNS, PRN_STATISTIC_MEAN, true},
    {"requests_per_second", PRONY_EVIDENCE_RUNS, PRN_STATISTIC_MEAN, true},
    {"flops_per_second", PRONY_EVIDENCE_RUNS, PRN_STATISTIC_MEAN, true},
    {"bytes_per_second", PRONY_EVIDENCE_RUNS, PRN_STATISTIC_MEAN, true},
#define EXACT(key)                                                                                                     \
    {                                                                                                                  \
        key, PRONY_EVIDENCE_EXACT, PRN_STATISTIC_MEAN, false                                                           \
    }
    EXACT("evaluation"),
    EXACT("model_size"),
    EXACT("file_size"),
    EXACT("macs"),
    EXACT("madds"),
    EXACT("flops"),
    EXACT("special"),
    EXACT("int_ops"),
    EXACT("count"),
    EXACT("parameters"),
    EXACT("buffers"),
    EXACT("traffic"),
    EXACT("intensity"),
    EXACT("layers"),
    EXACT("operators"),
    EXACT("memory_footprint"),
    EXACT("activation_memory"),
    EXACT("memory"),
    EXACT("peak_memory"),
    EXACT("average_memory"),
    EXACT("memory_per_sample"),
    EXACT("planned_memory"),
    EXACT("packed_weights"),
    EXACT("scratch_memory"),
    EXACT("plan_gap"),
    EXACT("internal_fragmentation"),
    EXACT("external_fragmentation"),
    EXACT("allocations"),
    EXACT("heap_calls"),
#undef EXACT
};

static const struct judged *find_judged(const char *key)
{
    for (size_t i = 0; i < sizeof judged / sizeof judged[0]; i++)
        if (strcmp(judged[i].key, key) == 0) return &judged[i];
    return NULL;
}

typedef struct comparing {
    prony_comparison *out;
    const prony_report *report[2];
    const prony_metrics *metrics;
    double noise;
    const char *keys; /* NULL: all */
    bool sampled;     /* both have latencies: `intervals` are set */
    double intervals[PRN_STATISTIC_COUNT][2];
    prony_error *error;
} comparing;

/* `low` and `high` are the ends of what the ratio may be. */
static prony_verdict verdict_of(prony_direction direction, double low, double high, double noise)
{
    bool up = low > 1 + noise, down = high < 1 - noise;
    if (direction == PRONY_NO_DIRECTION) return PRONY_VERDICT_NONE;
    if (!up && !down) return PRONY_VERDICT_SAME;
    return up == (direction == PRONY_LARGER_IS_BETTER) ? PRONY_VERDICT_BETTER : PRONY_VERDICT_WORSE;
}

/* Fractions by their difference: twice next to nothing is nothing. */
static double exact_change(const prony_compare_metric *row)
{
    double a = row->first.value, b = row->second.value;
    if (row->first.metric->scale == PRONY_SCALE_PERCENT) return 1 + (b - a);
    if (a > 0 || a < 0) return 1 + (b - a) / fabs(a);
    return b > 0 ? INFINITY : b < 0 ? -INFINITY : 1;
}

/* Latencies as they are, or as the rate that the metric makes of each. */
static prony_status rank_test(const comparing *c, const prony_compare_metric *row, bool rate, double *p)
{
    double *values[2] = {NULL, NULL};
    prn_rank_test test = {0};
    prony_status status = PRONY_OK;
    for (int side = 0; side < 2 && status == PRONY_OK; side++) {
        const prony_report *r = c->report[side];
        double scale = (side ? row->second : row->first).value * (double)r->latency.mean_ns;
        values[side] = prn_calloc(r->latency.count, sizeof *values[side]);
        if (!values[side]) status = prn_no_memory(c->error);
        for (size_t i = 0; values[side] && i < r->latency.count; i++) {
            double sample = (double)r->samples_ns[i];
            values[side][i] = rate ? scale / fmax(sample, 1) : sample;
        }
    }
    if (status == PRONY_OK)
        status = prn_rank_test_compute(&test, values[0], c->report[0]->latency.count, values[1],
                                       c->report[1]->latency.count, c->error);
    prn_free(values[0]);
    prn_free(values[1]);
    *p = test.p;
    return status;
}

static prony_status judge_samples(const comparing *c, const struct judged *by, prony_compare_metric *row)
{
    const double *interval = c->intervals[by->statistic];
    row->ratio_ci95[0] = interval[0];
    row->ratio_ci95[1] = interval[1];
    if (by->rate) {
        double means = (double)c->report[1]->latency.mean_ns / (double)c->report[0]->latency.mean_ns;
        row->ratio_ci95[0] = row->ratio * means / interval[1];
        row->ratio_ci95[1] = row->ratio * means / interval[0];
    }
    row->evidence = by->evidence;
    if (by->evidence == PRONY_EVIDENCE_RUNS) PRN_TRY(rank_test(c, row, by->rate, &row->p));
    row->verdict = verdict_of(row->first.metric->direction, row->ratio_ci95[0], row->ratio_ci95[1], c->noise);
    if (row->verdict != PRONY_VERDICT_NONE && row->p >= ALPHA) row->verdict = PRONY_VERDICT_SAME;
    return PRONY_OK;
}

/* A figure that two reports mean differently is not judged. */
static bool comparable(const comparing *c, const char *key)
{
    const prony_report *a = c->report[0], *b = c->report[1];
    if (strcmp(key, "evaluation") == 0) return strcmp(a->evaluation_metric, b->evaluation_metric) == 0;
    if (strcmp(key, "count") == 0 && a->config.count_preset && b->config.count_preset)
        return strcmp(a->config.count_preset, b->config.count_preset) == 0;
    return true;
}

static prony_status compare_metric(const comparing *c, size_t index, prony_compare_metric *row)
{
    const prony_metric *metric = row->first.metric;
    bool builtin = prn_metrics_is_builtin(c->metrics, index);
    const struct judged *by = builtin ? find_judged(metric->key) : NULL;
    row->difference = row->second.value - row->first.value;
    row->ratio = row->first.value > 0 || row->first.value < 0 ? row->second.value / row->first.value : NAN;
    row->ratio_ci95[0] = row->ratio_ci95[1] = row->p = NAN;
    if (by && by->evidence != PRONY_EVIDENCE_EXACT)
        return c->sampled && row->first.value > 0 && row->second.value > 0 ? judge_samples(c, by, row) : PRONY_OK;
    if ((builtin && !by) || !comparable(c, metric->key)) return PRONY_OK;
    double change = exact_change(row);
    row->evidence = PRONY_EVIDENCE_EXACT;
    row->verdict = verdict_of(metric->direction, change, change, c->noise);
    return PRONY_OK;
}

/* Whether `key` stands in the list that *keys may be. */
static bool is_wanted(const char *keys, const char *key)
{
    if (!keys) return true;
    for (const char *at = keys; *at; at += strspn(at, ",")) {
        size_t length = strcspn(at, ",");
        if (length == strlen(key) && strncmp(at, key, length) == 0) return true;
        at += length;
    }
    return false;
}

/* A list that names what is no metric would pass in silence. */
static prony_status check_keys(const comparing *c)
{
    for (const char *at = c->keys; at && *at; at += strspn(at, ",")) {
        char key[64];
        size_t length = strcspn(at, ",");
        snprintf(key, sizeof key, "%.*s", length < sizeof key ? (int)length : (int)sizeof key - 1, at);
        if (!prony_metrics_find(c->metrics, key))
            return prn_fail(c->error, PRONY_INVALID_ARGUMENT, "there is no metric \"%s\"", key);
        at += length;
    }
    return PRONY_OK;
}

static prony_status compare_metrics(comparing *c)
{
    prony_comparison *out = c->out;
    size_t count = prony_metrics_count(c->metrics);
    prony_metric_value *first = prn_calloc(count + 1, sizeof *first), *second = prn_calloc(count + 1, sizeof *second);
    out->metrics = prn_pool_alloc(&out->pool, count + 1, sizeof *out->metrics);
    prony_status status = first && second && out->metrics ? PRONY_OK : prn_no_memory(c->error);
    if (status == PRONY_OK) status = prony_metrics_compute_all(c->metrics, c->report[0], first, c->error);
    if (status == PRONY_OK) status = prony_metrics_compute_all(c->metrics, c->report[1], second, c->error);
    for (size_t i = 0; status == PRONY_OK && i < count; i++) {
        if (!first[i].known || !second[i].known || !is_wanted(c->keys, first[i].metric->key)) continue;
        prony_compare_metric *row = &out->metrics[out->metric_count++];
        row->first = first[i];
        row->second = second[i];
        status = compare_metric(c, i, row);
        out->regressions += row->verdict == PRONY_VERDICT_WORSE;
    }
    prn_free(first);
    prn_free(second);
    return status;
}

/* ---- layers and types ---- */

/* A layer, or the sum over a type's operators, on one side. */
typedef struct part {
    const char *name, *op;
    double mean, variance;
    uint64_t flops;
    uint32_t order;
    bool measured, matched;
} part;

static int compare_parts(const void *left, const void *right)
{
    const part *a = left, *b = right;
    int names = strcmp(a->name, b->name);
    return names ? names : (a->order > b->order) - (a->order < b->order);
}

static int compare_orders(const void *left, const void *right)
{
    const part *a = left, *b = right;
    return (a->order > b->order) - (a->order < b->order);
}

static double variance_of(const prony_time_stats *t)
{
    return (double)t->std_ns * (double)t->std_ns;
}

static const char *text_or_empty(const char *text)
{
    return text ? text : "";
}

/* Sorted by name. */
static size_t layer_parts(const prony_report *r, part *parts)
{
    for (uint32_t i = 0; i < r->layer_count; i++) {
        const prony_layer_row *l = &r->layers[i];
        parts[i] = (part){.name = text_or_empty(l->name),
                          .op = text_or_empty(l->op),
                          .mean = (double)l->time.mean_ns,
                          .variance = variance_of(&l->time),
                          .flops = l->cost.flops,
                          .order = i,
                          .measured = l->measured};
    }
    qsort(parts, r->layer_count, sizeof *parts, compare_parts);
    return r->layer_count;
}

static size_t type_parts(const prony_report *r, part *parts)
{
    size_t types = 0;
    for (uint32_t i = 0; i < r->operator_count; i++) {
        const prony_operator_row *o = &r->operators[i];
        parts[i] = (part){.name = text_or_empty(o->op),
                          .op = text_or_empty(o->op),
                          .mean = (double)o->time.mean_ns,
                          .variance = variance_of(&o->time),
                          .flops = o->cost.flops,
                          .order = i,
                          .measured = o->measured};
    }
    qsort(parts, r->operator_count, sizeof *parts, compare_parts);
    for (size_t i = 0; i < r->operator_count; i++) {
        if (types == 0 || strcmp(parts[types - 1].name, parts[i].name) != 0) {
            parts[types++] = parts[i];
            continue;
        }
        part *t = &parts[types - 1];
        t->mean += parts[i].mean;
        t->variance += parts[i].variance;
        t->flops += parts[i].flops;
        t->measured = t->measured && parts[i].measured;
    }
    return types;
}

static prony_status fill_part(comparing *c, prony_compare_part *row, const part *a, const part *b)
{
    prn_pool *pool = &c->out->pool;
    *row = (prony_compare_part){.name = prn_pool_strndup(pool, a->name, strlen(a->name)),
                                .op = prn_pool_strndup(pool, a->op, strlen(a->op)),
                                .first_ns = a->mean,
                                .second_ns = b->mean,
                                .difference_ns = b->mean - a->mean,
                                .ratio = a->mean > 0 ? b->mean / a->mean : NAN,
                                .first_flops = a->flops,
                                .second_flops = b->flops};
    prn_moments first = {a->mean, sqrt(a->variance), (double)c->report[0]->latency.count};
    prn_moments second = {b->mean, sqrt(b->variance), (double)c->report[1]->latency.count};
    row->p = prn_welch_p(first, second);
    prn_welch_ratio_interval(row->ratio_ci95, first, second);
    return row->name && row->op ? PRONY_OK : prn_no_memory(c->error);
}

static prony_status judge_parts(const comparing *c, prony_compare_part *rows, size_t count)
{
    double *p = prn_calloc(count + 1, sizeof *p);
    if (!p) return prn_no_memory(c->error);
    for (size_t i = 0; i < count; i++) p[i] = rows[i].p;
    prony_status status = prn_holm_adjust(p, count, c->error);
    for (size_t i = 0; i < count; i++) {
        rows[i].p = p[i];
        if (isnan(p[i]) || isnan(rows[i].ratio_ci95[0])) continue;
        rows[i].verdict = verdict_of(PRONY_SMALLER_IS_BETTER, rows[i].ratio_ci95[0], rows[i].ratio_ci95[1], c->noise);
        if (p[i] >= ALPHA) rows[i].verdict = PRONY_VERDICT_SAME;
    }
    prn_free(p);
    return status;
}

/* Joins two lists sorted by name; equal names pair up in order. The rows come out in the order of the first list's
 * model. */
static prony_status join_parts(comparing *c, part *first, size_t n, part *second, size_t m, prony_compare_part **rows,
                               size_t *count)
{
    size_t pairs = 0, a = 0, b = 0;
    part *partner = prn_calloc(n + 1, sizeof *partner);
    *rows = prn_pool_alloc(&c->out->pool, n + 1, sizeof **rows);
    prony_status status = partner && *rows ? PRONY_OK : prn_no_memory(c->error);
    while (status == PRONY_OK && a < n && b < m) {
        int order = strcmp(first[a].name, second[b].name);
        if (order == 0) {
            first[a].matched = second[b].matched = true;
            partner[first[a].order] = second[b];
            pairs++;
        }
        a += order <= 0;
        b += order >= 0;
    }
    if (status == PRONY_OK) qsort(first, n, sizeof *first, compare_orders);
    for (size_t i = 0; status == PRONY_OK && i < n && pairs; i++) {
        const part *other = &partner[first[i].order];
        if (!first[i].matched || !first[i].measured || !other->measured) continue;
        status = fill_part(c, &(*rows)[(*count)++], &first[i], other);
    }
    prn_free(partner);
    return status == PRONY_OK ? judge_parts(c, *rows, *count) : status;
}

static prony_status keep_unmatched(comparing *c, int side, part *parts, size_t count)
{
    prn_compare_side *s = &c->out->side[side];
    const char **only = prn_pool_alloc(&c->out->pool, count + 1, sizeof *only);
    if (!only) return prn_no_memory(c->error);
    qsort(parts, count, sizeof *parts, compare_orders);
    for (size_t i = 0; i < count; i++) {
        if (parts[i].matched) continue;
        only[s->only_count] = prn_pool_strndup(&c->out->pool, parts[i].name, strlen(parts[i].name));
        if (!only[s->only_count++]) return prn_no_memory(c->error);
    }
    s->only = only;
    return PRONY_OK;
}

static prony_status compare_all_parts(comparing *c, bool types)
{
    prony_comparison *out = c->out;
    size_t room[2], count[2];
    for (int side = 0; side < 2; side++)
        room[side] = types ? c->report[side]->operator_count : c->report[side]->layer_count;
    part *first = prn_calloc(room[0] + 1, sizeof *first), *second = prn_calloc(room[1] + 1, sizeof *second);
    prony_status status = first && second ? PRONY_OK : prn_no_memory(c->error);
    if (status == PRONY_OK) {
        count[0] = types ? type_parts(c->report[0], first) : layer_parts(c->report[0], first);
        count[1] = types ? type_parts(c->report[1], second) : layer_parts(c->report[1], second);
        for (size_t i = 0; types && i < count[0]; i++) first[i].order = (uint32_t)i;
        status = join_parts(c, first, count[0], second, count[1], types ? &out->types : &out->layers,
                            types ? &out->type_count : &out->layer_count);
    }
    if (status == PRONY_OK && !types) status = keep_unmatched(c, 0, first, count[0]);
    if (status == PRONY_OK && !types) status = keep_unmatched(c, 1, second, count[1]);
    prn_free(first);
    prn_free(second);
    return status;
}

/* ---- what to know before reading on ---- */

typedef struct note_list {
    prony_comparison *out;
    size_t capacity;
    bool failed;
} note_list;

static void note(note_list *list, const char *format, ...) PRN_PRINTF(2, 3);
static void note(note_list *list, const char *format, ...)
{
    char text[600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    prony_comparison *out = list->out;
    char *copy = prn_pool_strndup(&out->pool, text, strlen(text));
    if (!copy || !PRN_GROW(out->notes, list->capacity, out->note_count + 1)) {
        list->failed = true;
        return;
    }
    out->notes[out->note_count++] = copy;
}

static void note_text(note_list *list, const char *what, const char *a, const char *b)
{
    a = text_or_empty(a);
    b = text_or_empty(b);
    if (strcmp(a, b) != 0) note(list, "%s differs: %.200s and %.200s", what, *a ? a : "unknown", *b ? b : "unknown");
}

static void note_int(note_list *list, const char *what, int64_t a, int64_t b)
{
    if (a != b) note(list, "%s differs: %" PRId64 " and %" PRId64, what, a, b);
}

static void port_text(const prn_report_model *m, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < m->input_count && used < size; i++) {
        const prony_port *port = &m->inputs[i];
        used += (size_t)snprintf(text + used, size - used, "%s%.60s ", i ? ", " : "", port->name);
        for (int d = 0; d < port->shape.rank && used < size; d++)
            used += (size_t)snprintf(text + used, size - used, d ? "x%" PRId64 : "%" PRId64, port->shape.dim[d]);
    }
}

static void note_models(note_list *list, const prony_report *a, const prony_report *b)
{
    char inputs[2][200];
    bool hashed = a->model.sha256 && b->model.sha256;
    if (hashed ? strcmp(a->model.sha256, b->model.sha256) != 0
               : strcmp(prn_report_title(a), prn_report_title(b)) != 0 || a->model.nodes != b->model.nodes ||
                     a->model.file_bytes != b->model.file_bytes)
        note(list, "the models differ: %.200s (%" PRIu64 " nodes) and %.200s (%" PRIu64 " nodes)", prn_report_title(a),
             a->model.nodes, prn_report_title(b), b->model.nodes);
    else if (a->output_sha256 && b->output_sha256 && a->config.seed_known && b->config.seed_known &&
             a->config.seed == b->config.seed && a->config.batch == b->config.batch &&
             strcmp(a->output_sha256, b->output_sha256) != 0)
        note(list, "the outputs differ, with the same model and seed");
    port_text(&a->model, inputs[0], sizeof inputs[0]);
    port_text(&b->model, inputs[1], sizeof inputs[1]);
    note_text(list, "input", inputs[0], inputs[1]);
}

static void note_configs(note_list *list, const prn_report_config *a, const prn_report_config *b)
{
    note_int(list, "batch", a->batch, b->batch);
    note_int(list, "number of intra-op threads", a->intra_op_threads, b->intra_op_threads);
    note_int(list, "number of inter-op workers", a->inter_op_threads, b->inter_op_threads);
    note_text(list, "affinity", a->affinity && *a->affinity ? a->affinity : "none",
              b->affinity && *b->affinity ? b->affinity : "none");
    note_text(list, "precision", a->precision, b->precision);
    note_text(list, "rewriting", a->rewrites ? "on" : "off", b->rewrites ? "on" : "off");
    if (a->count_preset && b->count_preset) note_text(list, "counting preset", a->count_preset, b->count_preset);
}

static void note_systems(note_list *list, const prn_report_system *a, const prn_report_system *b)
{
    const prn_machine *m = &a->machine, *n = &b->machine;
    if (strcmp(m->host_name, n->host_name) != 0 || strcmp(m->cpu_model, n->cpu_model) != 0)
        note(list, "measured on different machines: %.100s (%.100s) and %.100s (%.100s)", m->host_name, m->cpu_model,
             n->host_name, n->cpu_model);
    if (m->quota_cpus > n->quota_cpus || m->quota_cpus < n->quota_cpus)
        note(list, "processor quota differs: %.2f and %.2f", m->quota_cpus, n->quota_cpus);
    note_text(list, "instruction set", a->isa_used, b->isa_used);
    note_text(list, "governor", m->governor, n->governor);
    note_text(list, "Prony's version", a->prony_version ? a->prony_version : PRONY_VERSION,
              b->prony_version ? b->prony_version : PRONY_VERSION);
    note_text(list, "Prony's commit", a->git_commit, b->git_commit);
    note_text(list, "compiler", a->compiler, b->compiler);
    note_text(list, "compiler flags", a->compiler_flags, b->compiler_flags);
    note_text(list, "libraries", a->libraries, b->libraries);
}

static prony_status note_measurement(note_list *list, const prony_report *r, const char *name, prony_error *error)
{
    prony_steady_state steady;
    if (!r->measured || r->latency.count == 0) {
        note(list, "%s was not measured: it has no times", name);
        return PRONY_OK;
    }
    if (r->latency.count < FEW_RUNS)
        note(list, "%s has %" PRIu64 " runs; with fewer than %d a difference is hard to tell from chance", name,
             r->latency.count, FEW_RUNS);
    PRN_TRY(prony_report_steady_state(&steady, r, error));
    if (steady.known && !steady.steady)
        note(list, "%s was not steady: its latency drifted by %.1f %% while it was measured", name, steady.drift * 100);
    return PRONY_OK;
}

static prony_status add_notes(comparing *c)
{
    note_list list = {.out = c->out};
    const prony_report *a = c->report[0], *b = c->report[1];
    note_models(&list, a, b);
    note_configs(&list, &a->config, &b->config);
    note_systems(&list, &a->system, &b->system);
    PRN_TRY(note_measurement(&list, a, "A", c->error));
    PRN_TRY(note_measurement(&list, b, "B", c->error));
    if (a->has_evaluation && b->has_evaluation)
        note_text(&list, "evaluation metric", a->evaluation_metric, b->evaluation_metric);
    return list.failed ? prn_no_memory(c->error) : PRONY_OK;
}

/* ---- the whole ---- */

static prony_status fill_side(comparing *c, int side, const char *name)
{
    const prony_report *r = c->report[side];
    prn_pool *pool = &c->out->pool;
    const char *model = text_or_empty(r->model.name), *hash = r->model.sha256;
    name = name ? name : prn_report_title(r);
    prn_compare_side *s = &c->out->side[side];
    *s = (prn_compare_side){.name = prn_pool_strndup(pool, name, strlen(name)),
                            .model = prn_pool_strndup(pool, model, strlen(model)),
                            .sha256 = hash ? prn_pool_strndup(pool, hash, strlen(hash)) : NULL,
                            .batch = r->config.batch,
                            .threads = r->config.intra_op_threads,
                            .runs = r->measured ? r->latency.count : 0};
    return s->name && s->model && (s->sha256 || !hash) ? PRONY_OK : prn_no_memory(c->error);
}

static prony_status compare(comparing *c, const prony_compare_options *options)
{
    const prony_report *a = c->report[0], *b = c->report[1];
    PRN_TRY(fill_side(c, 0, options->first_name));
    PRN_TRY(fill_side(c, 1, options->second_name));
    c->sampled = a->measured && b->measured && a->samples_ns && b->samples_ns && a->latency.count && b->latency.count &&
                 a->latency.mean_ns > 0 && b->latency.mean_ns > 0;
    if (c->sampled)
        PRN_TRY(prn_ratio_intervals(c->intervals, a->samples_ns, a->latency.count, b->samples_ns, b->latency.count,
                                    c->error));
    PRN_TRY(add_notes(c));
    PRN_TRY(compare_metrics(c));
    PRN_TRY(compare_all_parts(c, false));
    return compare_all_parts(c, true);
}

prony_status prony_compare(prony_comparison **out, const prony_report *first, const prony_report *second,
                           const prony_compare_options *options, prony_error *error)
{
    static const prony_compare_options defaults = PRONY_COMPARE_OPTIONS_INIT;
    if (!out || !first || !second) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_compare: an argument is NULL");
    if (!options) options = &defaults;
    if (options->struct_size < sizeof *options || !(options->noise >= 0))
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "compare options: struct_size not set, or a negative threshold");
    prony_comparison *made = prn_calloc(1, sizeof *made);
    if (!made) return prn_no_memory(error);
    made->noise = options->noise > 0 ? options->noise : DEFAULT_NOISE;
    comparing c = {.out = made,
                   .report = {first, second},
                   .metrics = options->metrics,
                   .noise = made->noise,
                   .keys = options->keys,
                   .error = error};
    prony_status status = options->metrics ? PRONY_OK : prony_metrics_create(&made->own_metrics, error);
    if (!c.metrics) c.metrics = made->own_metrics;
    if (status == PRONY_OK) status = check_keys(&c);
    if (status == PRONY_OK) status = compare(&c, options);
    if (status == PRONY_OK)
        *out = made;
    else
        prony_comparison_release(made);
    return status;
}

void prony_comparison_release(prony_comparison *comparison)
{
    if (!comparison) return;
    prony_metrics_release(comparison->own_metrics);
    prn_free(comparison->notes);
    prn_pool_release(&comparison->pool);
    prn_free(comparison);
}

const prony_compare_metric *prony_comparison_metrics(const prony_comparison *comparison, size_t *count)
{
    *count = comparison->metric_count;
    return comparison->metrics;
}

const prony_compare_part *prony_comparison_layers(const prony_comparison *comparison, size_t *count)
{
    *count = comparison->layer_count;
    return comparison->layers;
}

const prony_compare_part *prony_comparison_types(const prony_comparison *comparison, size_t *count)
{
    *count = comparison->type_count;
    return comparison->types;
}

const char *const *prony_comparison_notes(const prony_comparison *comparison, size_t *count)
{
    *count = comparison->note_count;
    return comparison->notes;
}

size_t prony_comparison_regressions(const prony_comparison *comparison)
{
    return comparison->regressions;
}
