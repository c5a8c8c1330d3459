/* One report of all stages: ranks send theirs as JSON with their figures, rank 0 joins and shows them. */
#include "bench/cluster/shard.h"

#include "bench/process/interrupt.h"
#include "bench/session/judge.h"

#include <stdlib.h>
#include <string.h>

typedef struct rank_figures {
    int64_t computing_ns, sent_bytes, received_bytes, sending_ns;
    link_figures link;
    uint64_t arena_bytes, peak_rss_bytes;
} rank_figures;

/* Spans and totals of a rank, as they were sent. */
typedef struct rank_spans {
    pipeline_span *spans;
    pipeline_total *totals;
    size_t span_count, total_count;
} rank_spans;

typedef struct joining {
    prony_report **reports; /* [stages - 1] */
    rank_figures *figures;  /* [stages] */
    rank_spans *spans;      /* [stages]; those of rank 0 are its own */
} joining;

static joining all;

static rank_figures own_figures(const sharded *s)
{
    const prony_memory_report *memory = prony_report_memory(s->report);
    return (rank_figures){s->pipe.computing_ns,
                          s->pipe.sent_bytes,
                          s->pipe.received_bytes,
                          s->pipe.sending_ns,
                          s->link,
                          memory ? memory->planned_bytes : 0,
                          memory ? memory->peak_rss_bytes : 0};
}

static int shard_report_put_json(void *user, const char *data, size_t size)
{
    message_put(user, data, size);
    return ((message *)user)->bad ? -1 : 0;
}

bool shard_send_report(sharded *s)
{
    message text = {0}, m = {0};
    prony_error error = {0};
    prony_write_options w = PRONY_WRITE_OPTIONS_INIT;
    if (pipeline_drain(&s->pipe, &error) != PRONY_OK) return false;
    const rank_figures figures = own_figures(s);
    bool sent = prony_report_write(s->report, PRONY_FORMAT_JSON, &w, shard_report_put_json, &text, &error) == PRONY_OK;
    message_put(&m, &figures, sizeof figures);
    message_put_bytes(&m, text.data ? text.data : "", text.size);
    message_put_bytes(&m, (const char *)s->pipe.spans, s->pipe.span_count * sizeof(pipeline_span));
    message_put_bytes(&m, (const char *)s->pipe.totals, s->pipe.total_count * sizeof(pipeline_total));
    sent = sent && !m.bad && cluster_send(0, TAG_RESULT, &m, cluster_limit(s->o, HELLO_SECONDS));
    if (!sent) pipeline_fail(&s->pipe, *error.message ? error.message : "the report could not be sent");
    message_free(&text);
    message_free(&m);
    return sent;
}

static prony_rank_row shard_report_make_row(const sharded *s, size_t stage)
{
    const prony_shard_stage *row = &s->pipe.rows[stage];
    const rank_figures *f = &all.figures[stage];
    int64_t sum = 0;
    for (size_t i = 0; i < s->pipe.sample_count; i++) sum += s->pipe.samples_ns[i];
    const int64_t mean = sum / (int64_t)s->pipe.sample_count, time = f->computing_ns / s->runs;
    return (prony_rank_row){.rank = (uint32_t)stage,
                            .stage = (uint32_t)stage,
                            .node = s->hellos[stage].host,
                            .layers = row->layers,
                            .layer_count = row->layer_count,
                            .weight_bytes = row->weight_bytes,
                            .arena_bytes = f->arena_bytes,
                            .peak_rss_bytes = f->peak_rss_bytes,
                            .time_ns = time,
                            .waiting_ns = mean > time ? mean - time : 0,
                            .sent_bytes = (uint64_t)(f->sent_bytes / s->runs),
                            .received_bytes = (uint64_t)(f->received_bytes / s->runs),
                            .sent_bytes_per_second =
                                f->sending_ns > 0 ? (double)f->sent_bytes / ((double)f->sending_ns * 1e-9) : 0,
                            .clock_offset_ns = f->link.clock_offset_ns,
                            .clock_error_ns = f->link.clock_error_ns,
                            .predicted_ns = row->compute_ns * s->pipe.micro_batches};
}

/* The ranks' time in parts. A pipeline without messages takes the sum of all stages' times of one micro-batch, and the
 * slowest one's again for each further micro-batch; the rest of the mean run is that of messages. */
static prony_pipeline make_pipeline(const sharded *s, const prony_rank_row *rows, size_t count)
{
    double busy = 0, slowest = 0;
    const double micro_batches = (double)s->pipe.micro_batches;
    const double run = count ? (double)(rows[0].time_ns + rows[0].waiting_ns) : 0, whole = run * (double)count;
    for (size_t i = 0; i < count; i++) {
        busy += (double)rows[i].time_ns;
        if ((double)rows[i].time_ns > slowest) slowest = (double)rows[i].time_ns;
    }
    prony_pipeline line = {.stages = (uint32_t)count,
                           .micro_batches = s->pipe.micro_batches,
                           .predicted_step_ns = predicted_step_ns(s),
                           .basis = prony_shard_plan_basis(s->plan),
                           .link_latency_ns = s->slowest.latency_ns,
                           .link_bytes_per_second = s->slowest.bytes_per_ns * 1e9};
    if (!(whole > 0)) return line;
    line.bubble_share = 1 - busy / whole;
    line.fill_share = (busy - slowest) / micro_batches * (double)count / whole;
    line.uneven_share = (slowest * (double)count - busy) / whole;
    line.message_share = line.bubble_share - line.fill_share - line.uneven_share;
    return line;
}

/* Copies the elements out of a message, which does not align them. */
static void *take_elements(message *m, size_t element, size_t *count)
{
    size_t size;
    const char *bytes = message_take_text(m, &size);
    char *copy = malloc(size + 1);
    *count = copy ? size / element : 0;
    if (copy) memcpy(copy, bytes, size);
    return copy;
}

static bool hear(sharded *s, size_t count)
{
    const double end = cluster_now() + cluster_limit(s->o, HELLO_SECONDS);
    for (size_t missing = count - 1; missing > 0; missing--) {
        int rank;
        message m;
        size_t size;
        prony_error error = {0};
        if (!shard_wait(s, TAG_RESULT, &rank, &m, end - cluster_now())) return false;
        message_take(&m, &all.figures[rank], sizeof all.figures[rank]);
        const char *text = message_take_text(&m, &size);
        const bool read =
            !m.bad && prony_report_load_memory(&all.reports[rank - 1], "stage", text, size, &error) == PRONY_OK;
        rank_spans *more = &all.spans[rank];
        if (read) {
            more->spans = take_elements(&m, sizeof *more->spans, &more->span_count);
            more->totals = take_elements(&m, sizeof *more->totals, &more->total_count);
        }
        message_free(&m);
        if (!read) {
            fail(s->o, "rank %d: %s", rank, *error.message ? error.message : "its report arrived damaged");
            return false;
        }
    }
    return true;
}

/* ---- spans ---- */

static const char *span_kind_text(int32_t kind)
{
    static const char *const names[] = {"compute", "wait", "send", "receive"};
    return kind >= 0 && (size_t)kind < sizeof names / sizeof *names ? names[kind] : "wait";
}

/* NULL: no tensor, or damaged. */
static const char *span_tensor(const sharded *s, size_t rank, int32_t kind, int32_t peer, int32_t tag)
{
    const size_t reader = kind == SPAN_SEND ? (size_t)peer : rank;
    if (kind != SPAN_SEND && kind != SPAN_RECEIVE) return NULL;
    if (tag == OUTPUTS_TAG) return "(outputs)";
    if (reader >= s->pipe.stage_count || tag < 0 || (size_t)tag >= s->pipe.rows[reader].input_count) return NULL;
    return s->pipe.rows[reader].inputs[tag].name;
}

/* Moves all spans to rank 0's clock, from the beginning of its last run. */
static int add_spans(sharded *s, size_t count)
{
    prony_error error = {0};
    size_t span_count = 0, total_count = 0, e = 0, t = 0;
    for (size_t r = 0; r < count; r++) span_count += all.spans[r].span_count, total_count += all.spans[r].total_count;
    prony_pipeline_event *events = calloc(span_count + 1, sizeof *events);
    prony_transfer_row *rows = calloc(total_count + 1, sizeof *rows);
    prony_status status = events && rows ? PRONY_OK : PRONY_OUT_OF_MEMORY;
    for (size_t r = 0; status == PRONY_OK && r < count; r++) {
        const rank_spans *from = &all.spans[r];
        const int64_t shift = s->pipe.spans_from_ns + (r ? all.figures[r].link.clock_offset_ns : 0);
        for (size_t i = 0; i < from->span_count; i++) {
            const pipeline_span *span = &from->spans[i];
            events[e++] = (prony_pipeline_event){.rank = (uint32_t)r,
                                                 .peer = (uint32_t)span->peer,
                                                 .micro_batch = (uint32_t)span->at,
                                                 .kind = span_kind_text(span->kind),
                                                 .tensor = span_tensor(s, r, span->kind, span->peer, span->tag),
                                                 .start_ns = span->start_ns - shift,
                                                 .end_ns = span->end_ns - shift};
        }
        for (size_t i = 0; i < from->total_count; i++) {
            const pipeline_total *total = &from->totals[i];
            const char *tensor = span_tensor(s, r, total->kind, total->peer, total->tag);
            if (!tensor || s->runs < 1) continue;
            rows[t++] = (prony_transfer_row){.rank = (uint32_t)r,
                                             .peer = (uint32_t)total->peer,
                                             .kind = span_kind_text(total->kind),
                                             .tensor = tensor,
                                             .messages = (uint64_t)(total->messages / s->runs),
                                             .bytes = (uint64_t)(total->bytes / s->runs),
                                             .time_ns = total->time_ns / s->runs};
        }
    }
    if (status == PRONY_OK) status = prony_report_set_transfers(s->report, rows, t, events, e, &error);
    free(events);
    free(rows);
    return status == PRONY_OK ? EXIT_DONE : report_error(s->o, &error);
}

/* On rank 0: joins the reports of the other stages into its own, s->report. all.reports[i] is that of rank i + 1,
 * all.figures and all.spans are by rank. The received ones are freed here on every path; those of rank 0 belong to
 * s. */
int shard_join_reports(sharded *s)
{
    prony_error error = {0};
    size_t count;
    (void)prony_shard_plan_stages(s->plan, &count);
    all.reports = calloc(count, sizeof(void *));
    all.figures = calloc(count, sizeof *all.figures);
    all.spans = calloc(count, sizeof *all.spans);
    prony_rank_row *rows = calloc(count, sizeof *rows);
    int code = all.reports && all.figures && all.spans && rows && s->pipe.sample_count ? EXIT_DONE
                                                                                       : fail(s->o, "out of memory");
    if (code == EXIT_DONE && !hear(s, count)) code = EXIT_FAILED;
    if (code == EXIT_DONE) {
        all.figures[0] = own_figures(s);
        for (size_t i = 0; i < count; i++) rows[i] = shard_report_make_row(s, i);
        const prony_pipeline line = make_pipeline(s, rows, count);
        if (prony_report_join_stages(s->report, (const prony_report *const *)all.reports, rows, count, &line,
                                     s->pipe.samples_ns, s->pipe.sample_count,
                                     (const prony_value *const *)s->pipe.outputs, s->pipe.model_outputs,
                                     &error) != PRONY_OK)
            code = report_error(s->o, &error);
        all.spans[0] = (rank_spans){s->pipe.spans, s->pipe.totals, s->pipe.span_count, s->pipe.total_count};
        if (code == EXIT_DONE) code = add_spans(s, count);
        if (code == EXIT_DONE && prony_report_set_links(s->report, s->links.rows, s->links.count, &error) != PRONY_OK)
            code = report_error(s->o, &error);
    }
    for (size_t i = 1; all.spans && i < count; i++) {
        free(all.spans[i].spans);
        free(all.spans[i].totals);
    }
    free(all.spans);
    for (size_t i = 0; all.reports && i + 1 < count; i++) prony_report_release(all.reports[i]);
    free(all.reports);
    free(all.figures);
    free(rows);
    return code;
}

/* ---- on the terminal ---- */

/* A row under its stage. */
static void print_transfer(const prony_transfer_row *t)
{
    const bool sends = strcmp(t->kind, "send") == 0;
    char text[64];
    snprintf(text, sizeof text, "%s rank %u", sends ? "Send to" : "Recv from", t->peer);
    printf("        %-17s %-26.26s %2llu x %9.3f kB %10.3f ms\n", text, t->tensor, (unsigned long long)t->messages,
           t->messages ? (double)t->bytes / (double)t->messages * 1e-3 : 0.0, (double)t->time_ns * 1e-6);
}

/* The stages as a table, in milliseconds, MB of 10^6 and kB of 10^3 bytes. The messages of a rank stand below its
 * line. */
static void print_ranks(const sharded *s)
{
    size_t count;
    const prony_rank_row *rows = prony_report_ranks(s->report, &count);
    const prony_pipeline *line = prony_report_pipeline(s->report);
    printf("\n%u stages, %lld micro-batch%s a run: median %.3f ms, predicted %.3f ms (%s)\n", line->stages,
           (long long)line->micro_batches, line->micro_batches == 1 ? "" : "es", (double)line->measured_step_ns * 1e-6,
           (double)line->predicted_step_ns * 1e-6, line->basis);
    printf("ranks compute %.1f %% of the time and wait %.1f %%", 100 * (1 - line->bubble_share),
           100 * line->bubble_share);
    if (line->stages > 1)
        printf(": %.1f %% fill and drain, %.1f %% uneven stages, %.1f %% messages and jitter", 100 * line->fill_share,
               100 * line->uneven_share, 100 * line->message_share);
    if (line->link_bytes_per_second > 0)
        printf("\nslowest link: %.1f us, %.3g GB/s", line->link_latency_ns * 1e-3, line->link_bytes_per_second * 1e-9);
    printf("\n\n%4s  %-16s %7s %11s %11s %10s %10s %10s %10s\n", "rank", "node", "layers", "weights MB", "peak RSS MB",
           "time ms", "waiting ms", "sent kB", "got kB");
    size_t transfer_count;
    const prony_transfer_row *transfers = prony_report_transfers(s->report, &transfer_count);
    for (size_t i = 0; i < count; i++) {
        printf("%4u  %-16.16s %7zu %11.2f %11.1f %10.3f %10.3f %10.1f %10.1f\n", rows[i].rank, rows[i].node,
               rows[i].layer_count, (double)rows[i].weight_bytes * 1e-6, (double)rows[i].peak_rss_bytes * 1e-6,
               (double)rows[i].time_ns * 1e-6, (double)rows[i].waiting_ns * 1e-6, (double)rows[i].sent_bytes * 1e-3,
               (double)rows[i].received_bytes * 1e-3);
        for (size_t t = 0; t < transfer_count; t++)
            if (transfers[t].rank == rows[i].rank) print_transfer(&transfers[t]);
    }
}

static int save_all(const sharded *s)
{
    const options *o = s->o;
    int code = o->files.output_dir ? make_output_dir(o) : EXIT_DONE;
    for (size_t k = 0; o->files.output_dir && code == EXIT_DONE && k < s->pipe.model_outputs; k++) {
        char path[4096];
        if (!s->pipe.outputs[k]) continue;
        snprintf(path, sizeof path, "%.4000s/output_%zu", o->files.output_dir, k);
        code = save_value(o, prony_model_output(s->model, k)->name, s->pipe.outputs[k], path);
    }
    return code;
}

static void print_run(const sharded *s)
{
    const int column =
        printf("%s: 1 run, %.3f ms", s->o->arguments[0], (double)prony_report_latency(s->report)->median_ns * 1e-6);
    put_assumed(s->report, column);
    putchar('\n');
    for (size_t k = 0; k < s->pipe.model_outputs; k++)
        if (s->pipe.outputs[k]) print_output(k, prony_model_output(s->model, k)->name, s->pipe.outputs[k]);
}

int shard_show(sharded *s)
{
    options shown = *s->o;
    const bool runs = strcmp(shown.command, "run") == 0, prints = !shown.terminal.quiet && !stdout_taken(&shown);
    int code = EXIT_DONE;
    if (strcmp(shown.command, "bench") == 0 || (s->data && !shown.shown.levels)) shown.shown.levels = PRONY_LEVEL_MODEL;
    if (runs) {
        if (prints) print_run(s);
        shown.terminal.quiet = true;
    }
    if (!runs || shown.files.json) code = write_report(&shown, s->report);
    if (code == EXIT_DONE && prints) print_ranks(s);
    if (code == EXIT_DONE && strcmp(shown.command, "profile") == 0) code = write_all_forms(s->o, s->report);
    if (code == EXIT_DONE) code = save_all(s);
    return runs ? code : check_after_report(s->o, s->report, code);
}
