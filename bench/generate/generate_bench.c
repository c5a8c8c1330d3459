/* prony bench --generate and prony profile --generate: prefill and decode of one configuration, or of several, one
 * after the other. */
#include "bench/generate/generate.h"
#include "bench/options/option_table.h"
#include "bench/process/interrupt.h"
#include "bench/session/document.h"
#include "bench/session/judge.h"
#include "bench/terminal/json_file.h"
#include "prony_analysis.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_GENERATIONS = 256, SHOWN_BYTES = 32, DEFAULT_PROMPT = 512, DEFAULT_NEW = 128, MOST_COMPARED = 64 };

typedef struct generation_row {
    int64_t batch;
    int threads;
    const char *precision;
    prony_report *report, *prefill;
} generation_row;

typedef struct generation_table {
    generation_row *rows;
    size_t count;
    prompt prompt;
    prony_metrics *metrics;
    int background_threads;
} generation_table;

static int generate_make_rows(const options *o, generation_table *t)
{
    const size_t batches = o->model.batches.count ? o->model.batches.count : 1,
                 threads = o->threads.intra_ops.count ? o->threads.intra_ops.count : 1,
                 precisions = o->precision.count ? o->precision.count : 1;
    const size_t count = batches * threads * precisions;
    if (count > MOST_GENERATIONS)
        return fail(o, "%zu configurations exceed the limit of %d", count, MOST_GENERATIONS), EXIT_USAGE;
    t->rows = calloc(count, sizeof *t->rows);
    if (!t->rows) return fail(o, "out of memory");
    for (size_t i = 0; i < count; i++) {
        generation_row *row = &t->rows[t->count++];
        row->threads = o->threads.intra_ops.count ? (int)o->threads.intra_ops.values[i % threads] : o->threads.intra_op;
        row->batch = o->model.batches.count ? o->model.batches.values[i / threads % batches] : o->model.batch;
        if (!row->batch) row->batch = 1;
        row->precision = o->precision.count ? o->precision.names[i / threads / batches] : o->precision.name;
    }
    return EXIT_DONE;
}

static prony_generation_options generate_options_of(const options *o, const generation_table *t,
                                                    const prony_profile_options *profile)
{
    prony_generation_options g = PRONY_GENERATION_OPTIONS_INIT;
    g.prompt_tokens =
        t->prompt.ids ? (int64_t)t->prompt.longest : (o->generate.prompt ? o->generate.prompt : DEFAULT_PROMPT);
    g.new_tokens = o->generate.new_tokens ? o->generate.new_tokens : DEFAULT_NEW;
    g.prompt_ids = t->prompt.ids;
    g.seed = o->model.seed;
    g.warmup = o->measuring.warmup;
    g.repetitions = o->measuring.runs;
    g.max_seconds = o->measuring.seconds;
    g.profile = profile;
    if (want_progress(o)) {
        g.progress = show_progress;
        g.progress_user = (void *)(uintptr_t)o;
    }
    return g;
}

/* Measures the error of --kv-cache on the prompt, or on one of small ids. */
static int generate_cache_error(const options *o, const generation_table *t, prony_model *model, generation_row *row,
                                const prony_generation_options *g)
{
    static const int64_t drawn[16] = {1, 7, 3, 11, 2, 5, 13, 4, 9, 6, 12, 8, 14, 10, 15, 0};
    const int64_t *ids = t->prompt.ids ? t->prompt.ids : drawn;
    const size_t count = t->prompt.ids ? t->prompt.longest : g->prompt_tokens < 16 ? (size_t)g->prompt_tokens : 16;
    cache_error error;
    const int64_t tokens = g->new_tokens < MOST_COMPARED ? g->new_tokens : MOST_COMPARED;
    const int code = cache_error_measure(o, model, ids, count, tokens, &error);
    if (code == EXIT_DONE && error.tokens > 0)
        prony_report_set_cache_error(row->report, error.tokens, error.max, error.rms, error.equal_ids);
    return code;
}

/* Measures a row of the table with a model, session and generator of its own. */
static int generate_measure(const options *o, generation_table *t, generation_row *row, bool profile)
{
    prony_error error = {0};
    prony_model *model = NULL;
    decoder d = {0};
    options one = *o;
    one.threads.intra_op = row->threads;
    one.precision.name = row->precision;
    prony_profile_options p = profile_options(o);
    p.progress = NULL;
    if (!profile) { /* the generation has the times; the report is of a few runs */
        p.max_seconds = o->measuring.seconds > 0 && o->measuring.seconds < 2 ? o->measuring.seconds / 2 : 1;
        p.runs = o->measuring.runs;
    }
    const prony_generation_options g = generate_options_of(o, t, &p);
    int code = load_model(&one, &model, o->arguments[0], &error) == PRONY_OK ? EXIT_DONE : report_error(o, &error);
    if (code == EXIT_DONE) code = quantize_in_place(&one, &model);
    if (code == EXIT_DONE) code = decoder_open(&one, model, row->batch, g.prompt_tokens + g.new_tokens, profile, &d);
    if (code == EXIT_DONE) {
        const prony_status status =
            prony_generation_measure(&row->report, profile ? &row->prefill : NULL, d.generator, &g, &error);
        code = status == PRONY_OK ? EXIT_DONE : report_error(o, &error);
    }
    clear_progress();
    if (code == EXIT_DONE) prony_report_set_background(row->report, t->background_threads);
    decoder_close(&d);
    if (code == EXIT_DONE) code = generate_cache_error(&one, t, model, row, &g);
    prony_model_release(model);
    return code;
}

/* ---- text ---- */

static const char *generate_time(const generation_table *t, int64_t ns, char text[SHOWN_BYTES])
{
    prony_metric_format(prony_metrics_find(t->metrics, "latency"), (double)ns, text, SHOWN_BYTES);
    return text;
}

/* "12.3 M" of a count, "12.3 KiB" of bytes. */
static const char *generate_number(double value, bool bytes, char text[SHOWN_BYTES])
{
    const char *const units[] = {"", bytes ? "K" : "k", "M", "G", "T"};
    const double base = bytes ? 1024 : 1000;
    size_t k = 0;
    while (value >= base && k < 4) {
        value /= base;
        k++;
    }
    snprintf(text, SHOWN_BYTES, k ? "%.3g %s%s" : "%.4g%s%s", value, units[k], bytes ? k ? "iB" : " B" : "");
    return text;
}

static void print_times(const generation_table *t, const prony_generation *g)
{
    char text[5][SHOWN_BYTES];
    printf("first token      %s, 95 %% interval %s - %s\n", generate_time(t, g->ttft.median_ns, text[0]),
           generate_time(t, g->ttft.median_ci95_ns[0], text[1]), generate_time(t, g->ttft.median_ci95_ns[1], text[2]));
    if (!g->step.count) return;
    printf("between tokens   p50 %s  p95 %s%s  p99 %s%s  max %s\n", generate_time(t, g->step.p50_ns, text[0]),
           generate_time(t, g->step.p95_ns, text[1]), g->step.p95_valid ? "" : "?",
           generate_time(t, g->step.p99_ns, text[2]), g->step.p99_valid ? "" : "?",
           generate_time(t, g->step.max_ns, text[3]));
    printf(
        "growth           %.3g ns for each token before\n                 (%s at the second token, %s at the last)\n",
        g->step_growth_ns, generate_time(t, g->position_ns[0], text[0]),
        generate_time(t, g->position_ns[g->position_count - 1], text[1]));
}

static void print_cache_error(const prony_generation *g)
{
    if (g->cache_error_tokens <= 0) return;
    printf("cache error      %s: logits differ from fp32's by %.2g (RMS %.2g);\n"
           "                 %.4g %% of %lld greedy ids are equal\n",
           g->cache_type, g->cache_error_max, g->cache_error_rms, 100 * g->cache_error_equal_ids,
           (long long)g->cache_error_tokens);
}

static void print_cache(const prony_generation *g)
{
    char text[4][SHOWN_BYTES];
    if (!g->cache_tensors) {
        printf("cache            none: the last step computed %.0f tokens for one; a cache\n"
               "                 would save the others\n",
               g->computed_tokens);
        return;
    }
    printf("cache            %s, %llu tensors, ", g->cache, (unsigned long long)g->cache_tensors);
    put_text(stdout, g->convention);
    printf("\n                 %s held, %s live (%s a tensor)\n                 %s copied a token\n",
           generate_number((double)g->cache_bytes, true, text[0]),
           generate_number((double)g->cache_live_bytes, true, text[1]),
           generate_number((double)g->cache_live_bytes / (double)g->cache_tensors, true, text[2]),
           generate_number((double)g->cache_copied_bytes, true, text[3]));
    print_cache_error(g);
}

static void print_generation(const options *o, const generation_table *t, const generation_row *row)
{
    char text[3][SHOWN_BYTES];
    const prony_generation *g = prony_report_generation(row->report);
    put_text(stdout, o->arguments[0]);
    printf(": prompt %lld, new %lld, batch %lld; %lld repetition%s\n\n", (long long)g->prompt_tokens,
           (long long)g->new_tokens, (long long)g->batch, (long long)g->repetitions, g->repetitions == 1 ? "" : "s");
    printf("prefill (pp%lld)%*s %.4g tokens/s, 95 %% interval %.4g - %.4g\n", (long long)g->prompt_tokens,
           (int)(5 - snprintf(NULL, 0, "%lld", (long long)g->prompt_tokens)), "", g->prefill_tokens_per_second,
           g->prefill_ci95[0], g->prefill_ci95[1]);
    if (g->step.count)
        printf("decode (tg%lld)%*s %.4g tokens/s, 95 %% interval %.4g - %.4g\n", (long long)g->new_tokens,
               (int)(6 - snprintf(NULL, 0, "%lld", (long long)g->new_tokens)), "", g->decode_tokens_per_second,
               g->decode_ci95[0], g->decode_ci95[1]);
    print_times(t, g);
    print_cache(g);
    printf("weights          %s a token", generate_number((double)g->weight_bytes, true, text[0]));
    if (g->bandwidth_share >= 0)
        printf(": %.3g %% of this machine's DRAM bandwidth\n", 100 * g->bandwidth_share);
    else
        puts("; 'prony machine' makes the bandwidth known");
    printf("FLOPs            %s a token of the prompt, %s a new token\n",
           generate_number((double)g->prefill_flops, false, text[0]),
           generate_number((double)g->decode_flops, false, text[1]));
}

static void print_busy(const options *o, const generation_table *t)
{
    prony_disturbance load;
    char line[320];
    for (size_t i = 0; i < t->count; i++) {
        if (o->verdict.ignore_load || t->background_threads) return;
        if (!prony_report_disturbance(&load, t->rows[i].report) || load.verdict != PRONY_LOAD_BUSY) continue;
        snprintf(line, sizeof line, "! %s; the machine was busy", load.text);
        put_wrapped(line, 0, 2);
        putchar('\n');
        return;
    }
}

/* A line per configuration. Prompt, new tokens and the caches' kind are those of all rows and stand once, from the
 * first. "?": the run has too few steps to bound p99. */
static void print_generations(const options *o, const generation_table *t)
{
    char text[3][SHOWN_BYTES], prefill[24], decode[24];
    const prony_generation *first = prony_report_generation(t->rows[0].report);
    put_text(stdout, o->arguments[0]);
    printf(": prompt %lld, new %lld; %zu configurations\ncache %s", (long long)first->prompt_tokens,
           (long long)first->new_tokens, t->count, first->cache);
    if (first->cache_tensors) {
        fputs(", ", stdout);
        put_text(stdout, first->convention);
    }
    snprintf(prefill, sizeof prefill, "pp%lld", (long long)first->prompt_tokens);
    snprintf(decode, sizeof decode, "tg%lld", (long long)first->new_tokens);
    printf("\n\n%12s %5s %4s %9s %9s %9s %9s %9s\n", "precision", "batch", "thr", prefill, decode, "first", "p50",
           "p99");
    printf("%12s %5s %4s %9s %9s %9s %9s %9s\n", "", "", "", "tokens/s", "tokens/s", "token", "", "");
    for (size_t i = 0; i < t->count; i++) {
        const generation_row *row = &t->rows[i];
        const prony_generation *g = prony_report_generation(row->report);
        char threads[16] = "auto";
        if (row->threads) snprintf(threads, sizeof threads, "%d", row->threads);
        printf("%12.12s %5lld %4s %9.4g %9.4g %9s %9s %8s%s\n", row->precision ? row->precision : "fp32",
               (long long)row->batch, threads, g->prefill_tokens_per_second, g->decode_tokens_per_second,
               generate_time(t, g->ttft.median_ns, text[0]), generate_time(t, g->step.p50_ns, text[1]),
               generate_time(t, g->step.p99_ns, text[2]), g->step.p99_valid ? "" : "?");
    }
    if (first->cache_error_tokens > 0) putchar('\n');
    print_cache_error(first);
}

/* ---- documents ---- */

static size_t generate_best(const generation_table *t)
{
    size_t best = 0;
    for (size_t i = 1; i < t->count; i++)
        if (prony_report_generation(t->rows[i].report)->decode_tokens_per_second >
            prony_report_generation(t->rows[best].report)->decode_tokens_per_second)
            best = i;
    return best;
}

static size_t generate_fastest(const generation_table *t)
{
    size_t best = 0;
    for (size_t i = 1; i < t->count; i++)
        if (prony_report_generation(t->rows[i].report)->step.median_ns <
            prony_report_generation(t->rows[best].report)->step.median_ns)
            best = i;
    return best;
}

/* The other configurations whose intervals of decode tokens a second overlap that of `best`. */
static void write_ties(FILE *to, const generation_table *t, size_t best)
{
    const prony_generation *g = prony_report_generation(t->rows[best].report);
    const char *comma = "";
    fputs("\"not_told_apart_from\": [", to);
    for (size_t i = 0; i < t->count; i++) {
        const prony_generation *other = prony_report_generation(t->rows[i].report);
        if (i == best || other->decode_ci95[1] < g->decode_ci95[0] || other->decode_ci95[0] > g->decode_ci95[1])
            continue;
        fprintf(to, "%s%zu", comma, i);
        comma = ", ";
    }
    fputs("]}", to);
}

/* The document of --json: every row's report, then the rows with the largest throughput and the shortest step. */
static int write_generations(const options *o, const generation_table *t, FILE *to)
{
    prony_error error = {0};
    prony_write_options w = write_options(o);
    prony_disturbance load;
    bool busy = false;
    json_begin(to, "prony.matrix/1");
    fputs(",\n  \"reports\": [\n", to);
    for (size_t i = 0; i < t->count; i++) {
        if (prony_report_write(t->rows[i].report, PRONY_FORMAT_JSON, &w, write_to_stream, to, &error) != PRONY_OK)
            return report_error(o, &error);
        if (i + 1 < t->count) fputs(",\n", to);
        busy = busy || (prony_report_disturbance(&load, t->rows[i].report) && load.verdict == PRONY_LOAD_BUSY);
    }
    const size_t best = generate_best(t), fastest = generate_fastest(t);
    const prony_generation *g = prony_report_generation(t->rows[best].report);
    fprintf(to, "  ],\n  \"verdict\": {\n    \"undecided\": %s,\n",
            busy && !o->verdict.ignore_load && !t->background_threads ? "true" : "false");
    fprintf(to, "    \"throughput\": {\"report\": %zu, \"batch\": %lld, \"samples_per_second\": %.17g, ", best,
            (long long)t->rows[best].batch, g->decode_tokens_per_second);
    write_ties(to, t, best);
    g = prony_report_generation(t->rows[fastest].report);
    fprintf(to, ",\n    \"latency\": {\"report\": %zu, \"batch\": %lld, \"median_ns\": %lld, ", fastest,
            (long long)t->rows[fastest].batch, (long long)g->step.median_ns);
    write_ties(to, t, fastest);
    fputs("\n  }\n}\n", to);
    return EXIT_DONE;
}

static int show_one(const options *o, const generation_table *t, bool profile)
{
    const generation_row *row = &t->rows[0];
    const bool table = !o->terminal.quiet && !stdout_taken(o);
    if (table) print_generation(o, t, row);
    if (table) print_busy(o, t);
    options files_only = *o;
    files_only.terminal.quiet = !profile || o->terminal.quiet;
    if (!profile) files_only.shown.levels = PRONY_LEVEL_MODEL;
    if (table && profile) puts("\nOne step at the last position:\n");
    return check_after_report(o, row->report, write_report(&files_only, row->report));
}

static int show_several(const options *o, const generation_table *t)
{
    document json;
    if (!o->terminal.quiet && !stdout_taken(o)) {
        print_generations(o, t);
        print_busy(o, t);
    }
    int code = document_open(&json, o);
    if (code != EXIT_DONE) return code;
    if (json.stream) code = write_generations(o, t, json.stream);
    for (size_t i = 0; i < t->count && o->verdict.threshold_count && code != EXIT_FAILED; i++)
        code = check_thresholds(o, t->rows[i].report, t->rows[i].precision ? t->rows[i].precision : "fp32",
                                o->terminal.quiet || stdout_taken(o) ? NULL : stdout, NULL, code);
    return document_close(&json, o, code);
}

/* The prompt's report, to files beside those of the step: NAME_prefill.json. */
static int show_prefill(const options *o, const generation_table *t)
{
    options beside = *o;
    int code = EXIT_DONE;
    export_file *exports = calloc(o->files.export_count + 1, sizeof *exports);
    char **names = calloc(o->files.export_count + 1, sizeof *names);
    if (!exports || !names) code = fail(o, "out of memory");
    beside.files.export_count = 0;
    for (size_t k = 0; k < o->files.export_count && code == EXIT_DONE; k++) {
        const export_file *from = &o->files.exports[k];
        if (from->chart && strcmp(from->chart, "generation") == 0) continue; /* of the steps alone */
        export_file *to = &exports[beside.files.export_count++];
        *to = *from;
        if (strcmp(to->file, "-") == 0) continue;
        to->file = names[k] = file_beside(to->file, "prefill");
        if (!names[k]) code = fail(o, "out of memory");
    }
    char *json = NULL;
    beside.files.exports = exports;
    if (o->files.json && strcmp(o->files.json, "-") != 0)
        beside.files.json = json = file_beside(o->files.json, "prefill");
    const bool table = !o->terminal.quiet && !stdout_taken(o);
    if (table) puts("\nThe prompt:\n");
    if (code == EXIT_DONE && !stdout_taken(o)) code = write_report(&beside, t->rows[0].prefill);
    for (size_t k = 0; names && k < o->files.export_count; k++) free(names[k]);
    free(json);
    free(names);
    free(exports);
    return code;
}

static int generate_command(const options *o, int background_threads, bool profile)
{
    prony_error error = {0};
    generation_table t = {.background_threads = background_threads};
    int code = prompt_read(o, &t.prompt);
    if (code == EXIT_DONE && t.prompt.sequences > 1)
        code = usage(o, "--prompt-ids: %s takes one prompt; -b repeats it", o->command);
    if (code == EXIT_DONE && o->generate.prompt && t.prompt.ids && (size_t)o->generate.prompt != t.prompt.longest)
        code = usage(o, "--generate prompt=%lld differs from the %zu ids of --prompt-ids",
                     (long long)o->generate.prompt, t.prompt.longest);
    if (code == EXIT_DONE) code = generate_make_rows(o, &t);
    if (code == EXIT_DONE && prony_metrics_create(&t.metrics, &error) != PRONY_OK) code = report_error(o, &error);
    for (size_t i = 0; i < t.count && code == EXIT_DONE; i++) code = generate_measure(o, &t, &t.rows[i], profile);
    if (code == EXIT_DONE && profile) code = show_prefill(o, &t);
    if (code == EXIT_DONE) code = t.count > 1 ? show_several(o, &t) : show_one(o, &t, profile);
    for (size_t i = 0; i < t.count; i++) {
        prony_report_release(t.rows[i].report);
        prony_report_release(t.rows[i].prefill);
    }
    prony_metrics_release(t.metrics);
    prompt_free(&t.prompt);
    free(t.rows);
    return code;
}

int command_bench_generate(const options *o, int background_threads)
{
    return generate_command(o, background_threads, false);
}

int command_profile_generate(const options *o)
{
    return generate_command(o, 0, true);
}
