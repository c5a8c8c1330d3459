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

typedef struct joining {
    prony_report **reports; /* [stages - 1] */
    rank_figures *figures;  /* [stages] */
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
    const prony_write_options w = PRONY_WRITE_OPTIONS_INIT;
    const rank_figures figures = own_figures(s);
    bool sent = prony_report_write(s->report, PRONY_FORMAT_JSON, &w, shard_report_put_json, &text, &error) == PRONY_OK;
    message_put(&m, &figures, sizeof figures);
    message_put_bytes(&m, text.data ? text.data : "", text.size);
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

static prony_pipeline make_pipeline(const sharded *s, const prony_rank_row *rows, size_t count)
{
    double busy = 0, whole = 0;
    for (size_t i = 0; i < count; i++) {
        busy += (double)rows[i].time_ns;
        whole += (double)(rows[i].time_ns + rows[i].waiting_ns);
    }
    return (prony_pipeline){.stages = (uint32_t)count,
                            .micro_batches = s->pipe.micro_batches,
                            .bubble_share = whole > 0 ? 1 - busy / whole : 0,
                            .predicted_step_ns = prony_shard_plan_step_ns(s->plan, s->pipe.micro_batches),
                            .basis = prony_shard_plan_basis(s->plan),
                            .link_latency_ns = s->slowest.latency_ns,
                            .link_bytes_per_second = s->slowest.bytes_per_ns * 1e9};
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
        message_free(&m);
        if (!read) {
            fail(s->o, "rank %d: %s", rank, *error.message ? error.message : "its report arrived damaged");
            return false;
        }
    }
    return true;
}

int shard_join_reports(sharded *s)
{
    prony_error error = {0};
    size_t count;
    (void)prony_shard_plan_stages(s->plan, &count);
    all.reports = calloc(count, sizeof(void *));
    all.figures = calloc(count, sizeof *all.figures);
    prony_rank_row *rows = calloc(count, sizeof *rows);
    int code = all.reports && all.figures && rows && s->pipe.sample_count ? EXIT_DONE : fail(s->o, "out of memory");
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
    }
    for (size_t i = 0; all.reports && i + 1 < count; i++) prony_report_release(all.reports[i]);
    free(all.reports);
    free(all.figures);
    free(rows);
    return code;
}

/* ---- on the terminal ---- */

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
    if (line->link_bytes_per_second > 0)
        printf("; slowest link: %.1f us, %.3g GB/s", line->link_latency_ns * 1e-3, line->link_bytes_per_second * 1e-9);
    printf("\n\n%4s  %-16s %7s %11s %11s %10s %10s %10s %10s\n", "rank", "node", "layers", "weights MB", "peak RSS MB",
           "time ms", "waiting ms", "sent kB", "got kB");
    for (size_t i = 0; i < count; i++)
        printf("%4u  %-16.16s %7zu %11.2f %11.1f %10.3f %10.3f %10.1f %10.1f\n", rows[i].rank, rows[i].node,
               rows[i].layer_count, (double)rows[i].weight_bytes * 1e-6, (double)rows[i].peak_rss_bytes * 1e-6,
               (double)rows[i].time_ns * 1e-6, (double)rows[i].waiting_ns * 1e-6, (double)rows[i].sent_bytes * 1e-3,
               (double)rows[i].received_bytes * 1e-3);
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
