/* The terminal report: options, heading and model summary. Tables are in report_text_layers.c and report_text_tables.c.
 * Reads the report only. */
#include "profiler/exporters/report_text.h"

#include "base/shape.h"
#include "profiler/text/number_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define NARROWEST 40
#define MAX_PORTS 8
#define FEWEST_RUNS 6 /* fewest runs whose range holds the median with 95 %: 1 - 2 / 2^6 */
#define MOST_ROWS 20  /* default rows of a table */

typedef struct pair_list {
    prn_text *text;
    prn_pair *items;
    size_t count, capacity;
} pair_list;

static prn_pair *report_text_add_pair(pair_list *list, const char *label)
{
    static _Thread_local prn_pair lost; /* used without memory; the text's status then has the failure */
    const bool room = PRN_GROW(list->items, list->capacity, list->count + 1);
    if (!room && list->text->status == PRONY_OK) list->text->status = prn_no_memory(list->text->error);
    prn_pair *p = room ? &list->items[list->count++] : &lost;
    *p = (prn_pair){.label = label};
    return p;
}

/* "4,089,184,256 4.089 G": exact and rounded; only the rounded one if both do not fit. */
static void add_count(pair_list *list, const char *label, uint64_t value)
{
    prn_pair *p = report_text_add_pair(list, label);
    prn_number_text exact, rounded;
    prn_number_si(rounded, (double)value, 4, " ");
    prn_number_grouped(exact, value);
    int room = prn_text_pair_room(list->text, label);
    if (value < 1000)
        snprintf(p->value, sizeof p->value, "%s", exact);
    else if ((int)strlen(exact) + 10 <= room)
        snprintf(p->value, sizeof p->value, "%s%10s", exact, rounded);
    else
        snprintf(p->value, sizeof p->value, "%s", rounded);
}

static void add_bytes(pair_list *list, const char *label, uint64_t bytes)
{
    prn_number_text text;
    snprintf(report_text_add_pair(list, label)->value, sizeof(prn_number_text), "%s",
             prn_number_bytes(text, (double)bytes, 4, " "));
}

static prn_pair *report_text_add_time(pair_list *list, const char *label, int64_t ns, bool trusted)
{
    prn_number_text text;
    prn_pair *p = report_text_add_pair(list, label);
    snprintf(p->value, sizeof p->value, "%s", prn_number_time(text, ns, 4, " "));
    if (trusted) return p;
    p->style = PRN_STYLE_DIM;
    snprintf(p->mark, sizeof p->mark, " ?");
    return p;
}

static void add_time_if_known(pair_list *list, const char *label, int64_t ns)
{
    if (ns >= 0) report_text_add_time(list, label, ns, true);
}

static prn_pair *add_percent(pair_list *list, const char *label, double share)
{
    prn_number_text text;
    prn_pair *p = report_text_add_pair(list, label);
    snprintf(p->value, sizeof p->value, "%s %%", prn_number_percent(text, share));
    return p;
}

static void add_rate(pair_list *list, const char *label, double per_second, const char *unit)
{
    prn_number_text text;
    bool plain = per_second < 1000;
    snprintf(report_text_add_pair(list, label)->value, sizeof list->items[0].value, "%s%s%s/s",
             prn_number_si(text, per_second, 4, " "), plain ? " " : "", unit);
}

/* The list is empty afterwards. */
static void put_pairs(prn_text *text, pair_list *list)
{
    prn_text_pairs(text, list->items, list->count);
    prn_free(list->items);
    *list = (pair_list){.text = text};
}

/* Joins known values by commas. */
typedef struct phrase {
    char text[1024];
    size_t size;
} phrase;

static void phrase_add(phrase *p, const char *format, ...) PRN_PRINTF(2, 3);

static void phrase_add(phrase *p, const char *format, ...)
{
    if (p->size && p->size + 2 < sizeof p->text) p->size += (size_t)snprintf(p->text + p->size, 3, ", ");
    va_list args;
    va_start(args, format);
    int more = vsnprintf(p->text + p->size, sizeof p->text - p->size, format, args);
    va_end(args);
    if (more > 0) p->size += (size_t)more;
    if (p->size >= sizeof p->text) p->size = sizeof p->text - 1;
}

static void put_phrase(prn_text *text, const phrase *p)
{
    if (p->size) prn_text_wrap(text, PRN_STYLE_DIM, 0, p->text);
}

static void describe_model(phrase *p, const prn_report_model *m)
{
    prn_number_text number;
    if (m->opset > 0) phrase_add(p, "opset %" PRId64, m->opset);
    if (m->ir_version > 0) phrase_add(p, "IR %" PRId64, m->ir_version);
    if (m->producer && *m->producer) phrase_add(p, "by %.100s", m->producer);
    if (m->file_bytes) phrase_add(p, "file %s", prn_number_bytes(number, (double)m->file_bytes, 3, " "));
    if (m->sha256) phrase_add(p, "sha256 %.12s", m->sha256);
}

static void describe_run(phrase *p, const prony_report *r)
{
    const prn_report_config *c = &r->config;
    if (c->precision) phrase_add(p, "%.20s", c->precision);
    if (c->batch >= 0) phrase_add(p, "batch %" PRId64, c->batch);
    if (!r->measured) return;
    bool reason = c->inter_op_reason && *c->inter_op_reason;
    phrase_add(p, "%d intra-op x %d inter-op thread%s%s%.160s%s", c->intra_op_threads, c->inter_op_threads,
               c->intra_op_threads * c->inter_op_threads == 1 ? "" : "s", reason ? " (" : "",
               reason ? c->inter_op_reason : "", reason ? ")" : "");
    if (c->affinity_used && *c->affinity_used)
        phrase_add(p, "threads on cores %.60s", c->affinity_used);
    else if (c->affinity && *c->affinity)
        phrase_add(p, "cores %.60s", c->affinity);
    if (c->device && *c->device) phrase_add(p, "on %.80s", c->device);
    if (c->affinity_failure && *c->affinity_failure)
        phrase_add(p, "affinity '%.40s' was not possible: %.160s", c->affinity, c->affinity_failure);
    if (c->background_threads > 0)
        phrase_add(p, "with %d busy thread%s of another process", c->background_threads,
                   c->background_threads == 1 ? "" : "s");
    if (!c->rewrites) phrase_add(p, "no rewrites");
    if (!c->reuse) phrase_add(p, "memory reuse off");
    if (c->seed_known) phrase_add(p, "inputs from seed %" PRIu64, c->seed);
}

static void describe_machine(phrase *p, const prn_report_system *s)
{
    const prn_machine *m = &s->machine;
    prn_number_text number;
    if (m->cpu_model[0]) phrase_add(p, "%s", m->cpu_model);
    if (m->physical_cores > 0) phrase_add(p, "%d core%s usable", m->physical_cores, m->physical_cores == 1 ? "" : "s");
    if (m->quota_cpus > 0) phrase_add(p, "quota %s CPUs", prn_number_fixed(number, m->quota_cpus, 1));
    if (s->isa_used && *s->isa_used) phrase_add(p, "%.20s", s->isa_used);
    if (m->governor[0]) phrase_add(p, "governor %s", m->governor);
    if (m->load_avg_1min >= 0) phrase_add(p, "load %s", prn_number_fixed(number, m->load_avg_1min, 2));
    if (s->libraries && *s->libraries) phrase_add(p, "%.200s", s->libraries);
}

/* "float32[N=1, 3, 224, 224]", broken between dimensions at the end of a line; a dimension's name is never cut, because
 * options use it. */
static void report_text_put_type(prn_text *text, const prony_value_info *port)
{
    int indent = text->column;
    prn_text_put(text, PRN_STYLE_DIM, prony_dtype_name(port->dtype));
    for (int d = 0; d < port->shape.rank && d < PRONY_MAX_RANK; d++) {
        const char *symbol = port->dim_names[d];
        char extent[40] = "?";
        if (port->shape.dim[d] >= 0) snprintf(extent, sizeof extent, "%" PRId64, port->shape.dim[d]);
        strcat(extent, d + 1 == port->shape.rank ? "]" : ",");
        int width = (symbol ? prn_text_width(symbol) + 1 : 0) + (int)strlen(extent);
        if (d == 0) {
            prn_text_put(text, PRN_STYLE_DIM, "[");
        } else if (text->column + 1 + width > text->width) {
            prn_text_line(text);
            prn_text_to(text, indent);
        } else {
            prn_text_put(text, PRN_STYLE_DIM, " ");
        }
        if (symbol) prn_text_put(text, PRN_STYLE_DIM, symbol);
        if (symbol) prn_text_put(text, PRN_STYLE_DIM, "=");
        prn_text_put(text, PRN_STYLE_DIM, extent);
    }
    if (port->shape.rank == 0) prn_text_put(text, PRN_STYLE_DIM, "[]");
}

static int widest_name(const prony_value_info *ports, size_t count, int widest)
{
    for (size_t i = 0; i < count && i < MAX_PORTS; i++) {
        int width = prn_text_width(ports[i].name ? ports[i].name : "");
        if (width > widest) widest = width;
    }
    return widest;
}

static void report_text_put_ports(prn_text *text, const char *title, const prony_value_info *ports, size_t count,
                                  int name_columns)
{
    for (size_t i = 0; i < count && i < MAX_PORTS; i++) {
        char name[64];
        prn_text_shorten(name, sizeof name, ports[i].name ? ports[i].name : "", name_columns);
        prn_text_putf(text, PRN_STYLE_PLAIN, "  %-7s %-*s  ", title, name_columns, name);
        report_text_put_type(text, &ports[i]);
        prn_text_line(text);
    }
    if (count > MAX_PORTS) {
        prn_text_putf(text, PRN_STYLE_DIM, "  %-7s and %zu more", title, count - MAX_PORTS);
        prn_text_line(text);
    }
}

static void put_evaluation(prn_text *text, const prony_report *r)
{
    if (!r->evaluation_count) return;
    prn_number_text number;
    for (size_t i = 0; i < r->evaluation_count; i++) {
        double v = r->evaluations[i].value;
        bool share = v >= 0 && v <= 1;
        prn_text_putf(text, PRN_STYLE_GOOD, "%s%.100s %s%s", i ? ", " : "", r->evaluations[i].metric,
                      share ? prn_number_fixed(number, v * 100, 2) : prn_number_fixed(number, v, 4), share ? " %" : "");
    }
    prn_text_putf(text, PRN_STYLE_GOOD, " on %" PRId64 " labelled samples", r->evaluations[0].samples);
    prn_text_line(text);
    prn_text_line(text);
}

/* "resnet.onnx assumed: batch=1, height=640 (metadata imgsz)": the results hold for these extents only. */
static void put_name(prn_text *text, const prony_report *r)
{
    const prn_report_config *c = &r->config;
    prn_text_put(text, PRN_STYLE_BOLD, r->model.name && *r->model.name ? r->model.name : "model");
    for (size_t i = 0; i < c->assumed_count; i++) {
        char one[300];
        const prony_assumed_dim *a = &c->assumed[i];
        bool say = *a->reason && strcmp(a->reason, "batch") != 0;
        snprintf(one, sizeof one, "%.200s=%" PRId64 "%s%s%s%s", a->name, a->value, say ? " (" : "",
                 say ? a->reason : "", say ? ")" : "", i + 1 < c->assumed_count ? "," : "");
        if (i == 0) prn_text_put(text, PRN_STYLE_WARN, "  assumed:");
        if (text->column + 1 + prn_text_width(one) > text->width) {
            prn_text_line(text);
            prn_text_to(text, 2);
        } else {
            prn_text_put(text, PRN_STYLE_PLAIN, " ");
        }
        prn_text_put(text, PRN_STYLE_WARN, one);
    }
    prn_text_line(text);
}

static void put_heading(prn_text *text, const prony_report *r)
{
    phrase model = {0}, run = {0}, machine = {0};
    prn_text_busy(text, r);
    put_evaluation(text, r);
    put_name(text, r);
    describe_model(&model, &r->model);
    describe_run(&run, r);
    if (r->measured) describe_machine(&machine, &r->system);
    put_phrase(text, &model);
    put_phrase(text, &run);
    put_phrase(text, &machine);
    if (r->model.input_count + r->model.output_count) prn_text_line(text);
    int names =
        widest_name(r->model.outputs, r->model.output_count, widest_name(r->model.inputs, r->model.input_count, 0));
    if (names > text->width / 3) names = text->width / 3;
    if (names > 60) names = 60;
    report_text_put_ports(text, "input", r->model.inputs, r->model.input_count, names);
    report_text_put_ports(text, "output", r->model.outputs, r->model.output_count, names);
}

static void put_unsupported(prn_text *text, const prony_report *r)
{
    if (!r->unsupported_count) return;
    prn_text_heading(text, "Unsupported operators", "the model cannot run without them");
    for (size_t i = 0; i < r->unsupported_count; i++) {
        prn_text_to(text, 2);
        prn_text_put(text, PRN_STYLE_BAD, r->unsupported[i]);
        prn_text_line(text);
    }
}

static void put_assumed_imports(prn_text *text, const prony_report *r)
{
    for (size_t i = 0; i < r->assumed_import_count; i++) {
        prn_text_to(text, 2);
        prn_text_putf(text, PRN_STYLE_DIM, "the model does not import %s: assumed", r->assumed_imports[i]);
        prn_text_line(text);
    }
}

static void put_uncounted(prn_text *text, const prony_report *r)
{
    if (!r->uncounted_count) return;
    phrase p = {0};
    prn_number_text number;
    for (size_t i = 0; i < r->uncounted_count && i < 40; i++) phrase_add(&p, "%.60s", r->uncounted[i]);
    if (r->uncounted_count > 40) phrase_add(&p, "and %zu more", r->uncounted_count - 40);
    prn_text_wrap(text, PRN_STYLE_DIM, 2, "not counted:");
    prn_text_wrap(text, PRN_STYLE_DIM, 4, p.text);
    if (!prn_report_stamped(r)) return;
    prn_text_putf(text, PRN_STYLE_DIM, "    %s %% of the operators' time",
                  prn_number_percent(number, r->uncounted_time_share));
    prn_text_line(text);
}

/* Writes size and complexity of the model; `all` adds the rarely used ones. */
static void report_text_put_model(prn_text *text, const prony_report *r, bool all)
{
    pair_list list = {.text = text};
    const prony_cost *c = &r->totals.cost;
    prn_text_heading(text, "Model", NULL);
    add_count(&list, "parameters", r->model.parameters);
    const uint64_t bits = r->model.parameter_bits;
    if (bits && (all || bits / 8 < r->model.parameters)) add_count(&list, "parameter bits", bits);
    add_bytes(&list, "model size", r->model.parameter_bytes);
    prn_pair *layers = report_text_add_pair(&list, "layers");
    if (r->totals.folded_layers)
        snprintf(layers->value, sizeof layers->value, "(%u folded) %u", r->totals.folded_layers, r->totals.layers);
    else
        snprintf(layers->value, sizeof layers->value, "%u", r->totals.layers);
    prn_pair *operators = report_text_add_pair(&list, "operators");
    snprintf(operators->value, sizeof operators->value, r->totals.operators ? "%u" : "-", r->totals.operators);
    if (all) {
        add_bytes(&list, "bytes read", c->bytes_read);
        add_bytes(&list, "bytes written", c->bytes_written);
    }
    add_count(&list, "MACs", c->macs);
    if (all) add_count(&list, "MAdds", c->madds);
    add_count(&list, "FLOPs", c->flops);
    if (all) add_count(&list, "special", c->special);
    if (all || c->int_ops) add_count(&list, "int ops", c->int_ops);
    double bytes = (double)c->bytes_read + (double)c->bytes_written;
    prn_number_text number;
    snprintf(report_text_add_pair(&list, "intensity")->value, sizeof list.items[0].value, "%s FLOP/byte",
             bytes > 0 ? prn_number_fixed(number, (double)c->flops / bytes, 2) : "-");
    if (r->totals.counted) {
        char label[40];
        snprintf(label, sizeof label, "count by %.24s", r->config.count_preset);
        add_count(&list, label, r->totals.count);
        put_pairs(text, &list);
        put_uncounted(text, r);
    } else {
        put_pairs(text, &list);
    }
    put_assumed_imports(text, r);
    if (r->conserved) return;
    prn_text_to(text, 2);
    prn_text_put(text, PRN_STYLE_BAD, "counts differ between layers and operators: please report this as a bug");
    prn_text_line(text);
}

/* "4.799 - 4.811 ms": the unit once if both ends share it. */
static void add_interval(pair_list *list, const prony_time_stats *t)
{
    prn_number_text low, high;
    if (t->count < FEWEST_RUNS) {
        snprintf(report_text_add_pair(list, "its 95 % interval")->value, sizeof list->items[0].value, "too few runs");
        return;
    }
    prn_number_time(low, t->median_ci95_ns[0], 4, " ");
    prn_number_time(high, t->median_ci95_ns[1], 4, " ");
    char *unit = strchr(low, ' ');
    if (unit && strchr(high, ' ') && strcmp(unit, strchr(high, ' ')) == 0) *unit = '\0';
    snprintf(report_text_add_pair(list, "its 95 % interval")->value, sizeof list->items[0].value, "%s - %s", low, high);
}

/* Writes the statistics of the latency; `all` adds the rarely used ones. Quantiles without enough runs are marked. */
static void put_latency(prn_text *text, const prony_report *r, bool all)
{
    const prony_time_stats *t = &r->latency;
    pair_list list = {.text = text};
    char note[200];
    char warmup[64] = "";
    if (r->config.warmup_runs >= 0)
        snprintf(warmup, sizeof warmup, ", %" PRId64 " warm-up run%s%s", r->config.warmup_runs,
                 r->config.warmup_runs == 1 ? "" : "s", r->warmup_detected ? " (detected)" : "");
    snprintf(note, sizeof note, "%" PRIu64 " runs%s%s%.80s", t->count, warmup, r->stop_reason ? "; stopped: " : "",
             r->stop_reason ? r->stop_reason : "");
    prn_text_heading(text, "Latency", note);
    report_text_add_time(&list, "median", t->median_ns, true)->style = PRN_STYLE_BOLD;
    add_interval(&list, t);
    report_text_add_time(&list, "mean", t->mean_ns, true);
    if (all) {
        report_text_add_time(&list, "standard deviation", t->std_ns, true);
        report_text_add_time(&list, "minimum", t->min_ns, true);
    }
    double seconds = (double)t->mean_ns / 1e9;
    if (seconds > 0) {
        bool samples = r->config.batch > 0;
        add_rate(&list, "throughput", (samples ? (double)r->config.batch : 1) / seconds, samples ? "samples" : "runs");
    }
    if (all) report_text_add_time(&list, "p50", t->p50_ns, true);
    report_text_add_time(&list, "p90", t->p90_ns, t->p90_valid);
    if (all) report_text_add_time(&list, "p95", t->p95_ns, t->p95_valid);
    report_text_add_time(&list, "p99", t->p99_ns, t->p99_valid);
    report_text_add_time(&list, "maximum", t->max_ns, true);
    if (seconds > 0) add_rate(&list, "model FLOPs", (double)r->totals.cost.flops / seconds, "FLOP");
    if (r->has_around) {
        add_time_if_known(&list, "preprocess", r->around.preprocess_ns);
        add_time_if_known(&list, "postprocess", r->around.postprocess_ns);
        report_text_add_time(&list, "end to end", r->around.end_to_end.median_ns, true);
    }
    put_pairs(text, &list);
    if (r->stopped_at) {
        char line[600];
        snprintf(line, sizeof line, "the cancelled run (not counted) stopped in %.500s", r->stopped_at);
        prn_text_wrap(text, PRN_STYLE_WARN, 2, line);
    }
    if (!t->p99_valid) text->marks |= PRN_MARK_FEW_RUNS;
}

static void put_memory(prn_text *text, const prony_report *r, const char *title)
{
    const prony_memory_report *m = &r->memory;
    pair_list list = {.text = text};
    prn_text_heading(text, title, NULL);
    add_bytes(&list, "weights", m->weight_bytes);
    add_bytes(&list, "packed weights", m->packed_weight_bytes);
    add_bytes(&list, "arena", m->planned_bytes);
    add_bytes(&list, "its lower bound", m->lower_bound_bytes);
    prn_pair *gap = add_percent(&list, "plan gap", m->plan_gap);
    gap->style = m->plan_gap <= 0.05 ? PRN_STYLE_GOOD : PRN_STYLE_WARN;
    if (m->peak_rss_bytes) add_bytes(&list, "peak of the process", m->peak_rss_bytes);
    add_bytes(&list, "peak live", m->peak_live_bytes);
    add_bytes(&list, "average live", m->average_live_bytes);
    add_bytes(&list, "scratch", m->scratch_bytes);
    add_percent(&list, "internal fragmentation", m->internal_fragmentation);
    add_percent(&list, "external fragmentation", m->external_fragmentation);
    snprintf(report_text_add_pair(&list, "allocations released")->value, sizeof list.items[0].value,
             "%" PRIu64 " of %" PRIu64, m->releases, m->allocations);
    if (m->heap_calls_known) add_count(&list, "heap calls per run", m->heap_calls_per_run);
    if (m->library_heap_calls_known) add_count(&list, "library heap calls", m->library_heap_calls_per_run);
    put_pairs(text, &list);
}

static void add_profiler(pair_list *list, const prony_report *r)
{
    prn_number_text number;
    add_percent(list, "time inside operators", r->time_share)->style =
        r->time_share >= 0.97 ? PRN_STYLE_GOOD : PRN_STYLE_WARN;
    add_percent(list, "profiler overhead", r->overhead_share)->style =
        r->overhead_share <= 0.02 ? PRN_STYLE_GOOD : PRN_STYLE_WARN;
    snprintf(report_text_add_pair(list, "cost of one event")->value, sizeof list->items[0].value, "%s ns",
             prn_number_fixed(number, r->overhead_ns_per_event, 1));
    if (!r->dropped_events) return;
    add_count(list, "events dropped", r->dropped_events);
    list->items[list->count - 1].style = PRN_STYLE_BAD;
}

/* The measured cost of profiling, beside the one computed from the cost of an event. */
static void report_text_put_cost(prn_text *text, const prn_report_cost *c)
{
    char line[200];
    prn_number_text share, low, high;
    if (!c->pairs || c->share_ci95[1] - c->share_ci95[0] >= fabs(c->share)) return; /* the interval is too wide */
    snprintf(line, sizeof line,
             "profiling costs %s %% of the latency, from %" PRIu64 " pairs of runs with and without it (95 %%: %s..%s)",
             prn_number_fixed(share, c->share * 100, 2), c->pairs, prn_number_fixed(low, c->share_ci95[0] * 100, 1),
             prn_number_fixed(high, c->share_ci95[1] * 100, 1));
    prn_text_wrap(text, c->share_ci95[0] <= 0.02 ? PRN_STYLE_DIM : PRN_STYLE_WARN, 2, line);
}

/* Adds the busy share of the first workers one by one, and of the remaining ones together. */
static void add_workers(pair_list *list, const prn_report_cpu *c)
{
    static const char *const labels[] = {"worker 0 busy", "worker 1 busy", "worker 2 busy", "worker 3 busy"};
    const size_t named = sizeof labels / sizeof labels[0];
    int64_t busy = 0, whole = 0;
    for (size_t w = 0; w < c->worker_count; w++) {
        busy += c->workers[w].busy_ns;
        whole += c->workers[w].busy_ns + c->workers[w].wait_ns;
        if (w >= named && w + 1 < c->worker_count) continue;
        if (whole > 0) add_percent(list, w < named ? labels[w] : "other workers busy", (double)busy / (double)whole);
        busy = whole = 0;
    }
}

static void put_trust(prn_text *text, const prony_report *r)
{
    pair_list list = {.text = text};
    prn_text_heading(text, "Run", NULL);
    if (prn_report_stamped(r)) add_profiler(&list, r);
    add_percent(&list, "CPU utilisation", r->cpu.utilisation);
    add_workers(&list, &r->cpu);
    if (r->cpu.involuntary_switches >= 0)
        add_count(&list, "involuntary switches", (uint64_t)r->cpu.involuntary_switches);
    add_time_if_known(&list, "load", r->phases.load_ns);
    add_time_if_known(&list, "bind", r->phases.bind_ns);
    add_time_if_known(&list, "rewrite", r->phases.rewrite_ns);
    add_time_if_known(&list, "plan", r->phases.plan_ns);
    add_time_if_known(&list, "first run", r->phases.first_run_ns);
    put_pairs(text, &list);
    report_text_put_cost(text, &r->cost);
    if (r->output_sha256) {
        char shown[80];
        prn_text_put(text, PRN_STYLE_PLAIN, "  output sha256 ");
        prn_text_shorten(shown, sizeof shown, r->output_sha256, text->width - text->column);
        prn_text_put(text, PRN_STYLE_DIM, shown);
        prn_text_line(text);
    }
}

/* The number of rows shown; `top` 0: every row. */
typedef struct extent {
    unsigned levels;
    size_t top, inside_top; /* of the level shown alone */
    bool all, memory;
    int64_t depth;
} extent;

static prony_status put_first_level(prn_text *text, const prony_report *r, const extent *e, prony_error *error)
{
    put_heading(text, r);
    put_unsupported(text, r);
    PRN_TRY(prn_text_in_short(text, r, error));
    PRN_TRY(prn_text_accuracy(text, r, e->all ? 0 : 8, error));
    prn_text_tuning(text, r);
    PRN_TRY(prn_text_device(text, r, e->all, error));
    report_text_put_model(text, r, e->all);
    if (r->measured) {
        put_latency(text, r, e->all);
        PRN_TRY(prn_text_latency(text, r, e->all, error));
    }
    bool held = prn_text_held(text, r);
    if (r->has_memory && (e->all || !held)) put_memory(text, r, held ? "Arena and allocations" : "Memory");
    if (r->measured && e->all) {
        put_trust(text, r);
        PRN_TRY(prn_text_holdups(text, r, error));
    }
    PRN_TRY(prn_text_types(text, r, e->top, error));
    if (e->all) PRN_TRY(prn_text_roof(text, r, error));
    return prn_text_counters(text, r, e->top, error);
}

static prony_status put_levels(prn_text *text, const prn_selection *selection, const extent *e, prony_error *error)
{
    const prony_report *r = selection->report;
    if (e->levels & PRONY_LEVEL_MODEL) PRN_TRY(put_first_level(text, r, e, error));
    if (e->levels & PRONY_LEVEL_MODULE) PRN_TRY(prn_text_modules(text, r, e->depth, e->top, error));
    if (e->levels & PRONY_LEVEL_LAYER) PRN_TRY(prn_text_layers(text, selection, e->top, error));
    if (e->levels & PRONY_LEVEL_OPERATOR && r->operator_count)
        PRN_TRY(prn_text_operators(text, selection, e->top, error));
    if (e->levels & PRONY_LEVEL_NESTED) {
        prn_selection inside = *selection;
        inside.with_subgraphs = true;
        PRN_TRY(r->operator_count ? prn_text_operators(text, &inside, e->inside_top, error)
                                  : prn_text_layers(text, &inside, e->inside_top, error));
    }
    return e->memory && r->has_memory && r->operator_count ? prn_text_memory_table(text, selection, e->top, error)
                                                           : PRONY_OK;
}

static extent extent_of(const prony_write_options *options)
{
    const unsigned levels = PRONY_LEVEL_MODEL | PRONY_LEVEL_LAYER | (options->all ? PRONY_LEVEL_OPERATOR : 0);
    return (extent){.levels = options->levels ? options->levels : levels,
                    .top = options->top || options->all ? (size_t)options->top : MOST_ROWS,
                    .inside_top = (size_t)options->top,
                    .all = options->all,
                    .memory = options->memory,
                    .depth = options->module_depth};
}

/* Checks the options, chooses the order of the rows and writes the selected levels. */
prony_status prn_report_write_text(const prony_report *report, const prony_write_options *options, prony_write_fn write,
                                   void *user, prony_error *error)
{
    static const prony_write_options defaults = PRONY_WRITE_OPTIONS_INIT;
    if (!options) options = &defaults;
    if (options->width < 0 || options->top < 0)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s %" PRId64 " is negative",
                        options->width < 0 ? "width" : "top",
                        options->width < 0 ? (int64_t)options->width : options->top);
    if (options->levels & ~(unsigned)(PRONY_LEVEL_MODEL | PRONY_LEVEL_LAYER | PRONY_LEVEL_OPERATOR |
                                      PRONY_LEVEL_MODULE | PRONY_LEVEL_NESTED))
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "levels 0x%x: known are 1 (model), 2 (layer), 4 (operator), 8 (module) and 16 (nested)",
                        options->levels);
    if (options->module_depth < 0)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "module depth %" PRId64 " is negative", options->module_depth);
    extent shown = extent_of(options);
    prony_write_options order = *options;
    if (!order.sort && shown.top) order.sort = prn_report_stamped(report) ? "time" : "flops";
    prn_selection selection;
    PRN_TRY(prn_select_init(&selection, report, &order, error));
    int width = options->width ? options->width : 80;
    prn_text *text = prn_alloc(sizeof *text);
    if (!text) return prn_no_memory(error);
    prn_text_begin(text, width < NARROWEST ? NARROWEST : width, options->color, write, user, error);
    text->whole_names = options->whole_names != 0;
    prony_status status = put_levels(text, &selection, &shown, error);
    if (status == PRONY_OK) prn_text_marks(text, report);
    prony_status written = prn_text_end(text);
    prn_free(text);
    return status != PRONY_OK ? status : written;
}
