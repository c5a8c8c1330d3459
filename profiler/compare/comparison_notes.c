/* Notes of a comparison: differences between the two reports besides the compared metrics. */
#include "profiler/compare/comparison.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FEW_RUNS 9 /* with fewer runs a rank test has little power */

typedef struct note_list {
    prony_comparison *out;
    size_t capacity;
    bool failed;
} note_list;

static void comparison_notes_note(note_list *list, const char *format, ...) PRN_PRINTF(2, 3);
static void comparison_notes_note(note_list *list, const char *format, ...)
{
    char text[600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    prony_comparison *out = list->out;
    char *copy = prn_bump_strndup(&out->pool, text, strlen(text));
    if (!copy || !PRN_GROW(out->notes, list->capacity, out->note_count + 1)) {
        list->failed = true;
        return;
    }
    out->notes[out->note_count++] = copy;
}

static void note_text(note_list *list, const char *what, const char *a, const char *b)
{
    a = prn_text_or_empty(a);
    b = prn_text_or_empty(b);
    if (strcmp(a, b) != 0)
        comparison_notes_note(list, "%s differs: %.200s and %.200s", what, *a ? a : "unknown", *b ? b : "unknown");
}

static void note_int(note_list *list, const char *what, int64_t a, int64_t b)
{
    if (a != b) comparison_notes_note(list, "%s differs: %" PRId64 " and %" PRId64, what, a, b);
}

static void port_text(const prn_report_model *m, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < m->input_count && used < size; i++) {
        const prony_value_info *port = &m->inputs[i];
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
        comparison_notes_note(list, "the models differ: %.200s (%" PRIu64 " nodes) and %.200s (%" PRIu64 " nodes)",
                              prn_report_title(a), a->model.nodes, prn_report_title(b), b->model.nodes);
    else if (a->output_sha256 && b->output_sha256 && a->config.seed_known && b->config.seed_known &&
             a->config.seed == b->config.seed && a->config.batch == b->config.batch &&
             strcmp(a->output_sha256, b->output_sha256) != 0)
        comparison_notes_note(list, "the outputs differ although model and seed are the same");
    port_text(&a->model, inputs[0], sizeof inputs[0]);
    port_text(&b->model, inputs[1], sizeof inputs[1]);
    note_text(list, "input", inputs[0], inputs[1]);
}

static void note_configs(note_list *list, const prn_report_config *a, const prn_report_config *b)
{
    note_int(list, "batch", a->batch, b->batch);
    note_int(list, "number of intra-op threads", a->intra_op_threads, b->intra_op_threads);
    note_int(list, "number of inter-op workers", a->inter_op_threads, b->inter_op_threads);
    note_int(list, "number of background threads", a->background_threads, b->background_threads);
    note_text(list, "affinity", a->affinity && *a->affinity ? a->affinity : "none",
              b->affinity && *b->affinity ? b->affinity : "none");
    note_text(list, "device", a->device && *a->device ? a->device : "none",
              b->device && *b->device ? b->device : "none");
    note_text(list, "precision", a->precision, b->precision);
    note_text(list, "rewriting", a->rewrites ? "on" : "off", b->rewrites ? "on" : "off");
    note_text(list, "reuse of memory", a->reuse ? "on" : "off", b->reuse ? "on" : "off");
    if (a->count_preset && b->count_preset) note_text(list, "counting preset", a->count_preset, b->count_preset);
}

static void note_systems(note_list *list, const prn_report_system *a, const prn_report_system *b)
{
    const prn_machine *m = &a->machine, *n = &b->machine;
    if (strcmp(m->host_name, n->host_name) != 0 || strcmp(m->cpu_model, n->cpu_model) != 0)
        comparison_notes_note(list, "measured on different machines: %.100s (%.100s) and %.100s (%.100s)", m->host_name,
                              m->cpu_model, n->host_name, n->cpu_model);
    if (m->quota_cpus > n->quota_cpus || m->quota_cpus < n->quota_cpus)
        comparison_notes_note(list, "processor quota differs: %.2f and %.2f", m->quota_cpus, n->quota_cpus);
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
        comparison_notes_note(list, "%s was not measured and has no times", name);
        return PRONY_OK;
    }
    if (r->latency.count < FEW_RUNS)
        comparison_notes_note(list, "%s has only %" PRIu64 " runs; fewer than %d rarely tell a difference from chance",
                              name, r->latency.count, FEW_RUNS);
    PRN_TRY(prony_report_steady_state(&steady, r, error));
    if (steady.known && !steady.steady)
        comparison_notes_note(list, "%s was not steady: latency drifted by %.1f %% during the measurement", name,
                              steady.drift * 100);
    return PRONY_OK;
}

/* "ran on a quiet machine", "lost 38 % of the machine to other processes" */
static const char *load_text(const prony_report *r, char *text, size_t size)
{
    const prn_disturbance *d = &r->disturbance;
    if (d->verdict == PRN_LOAD_QUIET)
        snprintf(text, size, "ran on a quiet machine");
    else if (d->verdict == PRN_LOAD_BUSY && d->others >= 0)
        snprintf(text, size, "lost %.0f %% of the machine to other processes", d->others * 100);
    else if (d->verdict == PRN_LOAD_BUSY)
        snprintf(text, size, "waited %.0f %% of the time for a processor", d->waited * 100);
    else
        snprintf(text, size, "ran under an unknown load");
    return text;
}

static void note_loads(note_list *list, const prn_comparing *c)
{
    char a[80], b[80];
    if (c->loads_differ)
        comparison_notes_note(list, "cannot tell from times (?): A %s, B %s; --ignore-load judges anyway",
                              load_text(c->report[0], a, sizeof a), load_text(c->report[1], b, sizeof b));
    else if (prn_loads_differ(c->report[0], c->report[1]))
        comparison_notes_note(list, "load ignored: A %s, B %s", load_text(c->report[0], a, sizeof a),
                              load_text(c->report[1], b, sizeof b));
}

static void note_processes(note_list *list, const prn_comparing *c)
{
    if (!c->withheld) return;
    if (c->by_processes)
        comparison_notes_note(
            list,
            "cannot tell for layers and types (?): each report has one process, and processes of one model differ by "
            "about %.0f %%",
            100 * PRN_PROCESS_DEVIATION);
    else
        comparison_notes_note(
            list,
            "cannot tell (?): processes of one model differ by about %.0f %%, and these reports have too few to tell; "
            "measure "
            "both with --processes 10, or compare the models in turns (prony compare A.onnx B.onnx)",
            100 * PRN_PROCESS_DEVIATION);
}

prony_status prn_compare_notes(prn_comparing *c)
{
    note_list list = {.out = c->out};
    const prony_report *a = c->report[0], *b = c->report[1];
    note_loads(&list, c);
    note_processes(&list, c);
    note_models(&list, a, b);
    note_configs(&list, &a->config, &b->config);
    note_systems(&list, &a->system, &b->system);
    PRN_TRY(note_measurement(&list, a, "A", c->error));
    PRN_TRY(note_measurement(&list, b, "B", c->error));
    if (a->evaluation_count && b->evaluation_count)
        note_text(&list, "evaluation metric", a->evaluations->metric, b->evaluations->metric);
    return list.failed ? prn_no_memory(c->error) : PRONY_OK;
}
