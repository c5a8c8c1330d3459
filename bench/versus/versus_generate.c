/* prony versus MODEL --generate prompt=P,new=N: a decoder's prefill and decode beside ONNX Runtime's, in turns, each in
 * processes of its own, from the same prompt. Both take the id with the largest logit; the ids are compared. */
#include "bench/generate/generate.h"
#include "bench/options/option_table.h"
#include "bench/random.h"
#include "bench/session/inputs.h"
#include "bench/session/judge.h"
#include "bench/terminal/json_file.h"
#include "bench/versus/versus.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PROMPT = 512, NEW = 128, MOST_ID_TEXT = 24, DECODER_WORDS = 32 };

enum { PREFILL, DECODE, PHASES };

typedef struct versus_decoder {
    versus_job job;
    int64_t prompt, tokens, batch;
    char ids_file[VERSUS_PATH], roles_file[VERSUS_PATH], sizes[64];
    int64_t *own_ids, *peer_ids; /* [tokens] of the first sequence */
    size_t equal;                /* ids before the first that differs */
    prony_report *report;        /* of this engine's first process */
    prony_versus *phases[PHASES];
} versus_decoder;

/* ---- what both engines get ---- */

/* true: the generator filled the last places of a mask of a fixed length, since caches keep their last rows. */
static bool mask_is_rolled(const decoder *d, size_t input)
{
    const prony_value *mask = prony_session_input_value(d->session, input);
    const int64_t count = mask ? prony_shape_numel(&mask->shape) : 0;
    if (count < 2 || mask->shape.rank < 2) return false;
    const size_t bytes = prony_dtype_bytes(mask->dtype, 1);
    const int64_t length = mask->shape.dim[mask->shape.rank - 1];
    const char *first = (const char *)mask->data, *last = first + bytes * (size_t)(length - 1);
    if (memcmp(first, last, bytes) == 0) return false;                       /* all places are filled */
    const bool added = mask->dtype == PRONY_FLOAT32 && mask->shape.rank > 2; /* 0 where a key is shown */
    bool zero = true;
    for (size_t k = 0; k < bytes; k++) zero = zero && first[k] == 0;
    return zero != added; /* the first place is hidden */
}

/* Why the peer's loop does not run a model with this input; NULL: it does. */
static const char *versus_refuses(const prony_value_info *input, const prony_generator_feed *feed)
{
    const char *role = feed->role ? feed->role : "";
    if (strcmp(role, "use_cache") == 0) return "versus does not run merged decoders";
    if (strcmp(role, "ids") != 0) return NULL;
    const int last = input->shape.rank - 1;
    return input->shape.rank != 2 || input->shape.dim[last] > 1
               ? "versus wants ids [batch, length] of any length, or of 1"
               : NULL;
}

/* One line for each input, which peer_generate.c reads. The generator has made its last run. */
static int save_roles(versus_decoder *v, const prony_model *model, const decoder *d)
{
    prony_generator_info info;
    const size_t count = prony_model_input_count(model);
    FILE *file = fopen(v->roles_file, "w");
    if (!file) return fail(v->job.o, "cannot write '%s'", v->roles_file);
    prony_generator_get_info(d->generator, &info);
    fprintf(file, "%zu %lld %lld %zu\n", prony_generator_logits_output(d->generator), (long long)info.batch,
            (long long)info.max_length, count);
    for (size_t i = 0; i < count; i++) {
        const prony_value_info *input = prony_model_input(model, i);
        prony_generator_feed feed;
        (void)prony_generator_input(d->generator, i, &feed);
        const bool cache = feed.role && strcmp(feed.role, "cache") == 0;
        const bool rolled = feed.role && strcmp(feed.role, "mask") == 0 && mask_is_rolled(d, i);
        const prony_shape *shape = cache ? &feed.shape : &input->shape;
        fprintf(file, "%s %d %zu %d ", feed.role ? feed.role : "other", (int)input->dtype, feed.output, shape->rank);
        for (int k = 0; k < shape->rank; k++) fprintf(file, "%s%lld", k ? "," : "", (long long)shape->dim[k]);
        fprintf(file, "%s %d %s\n", shape->rank ? "" : "0", feed.shared || rolled, input->name);
    }
    const bool failed = ferror(file) != 0;
    if (fclose(file) != 0 || failed) return fail(v->job.o, "cannot write '%s'", v->roles_file);
    return EXIT_DONE;
}

/* Refuses models before anything is run. */
static int versus_check_roles(const versus_decoder *v, const prony_model *model, const decoder *d)
{
    for (size_t i = 0; i < prony_model_input_count(model); i++) {
        prony_generator_feed feed;
        (void)prony_generator_input(d->generator, i, &feed);
        const char *reason = versus_refuses(prony_model_input(model, i), &feed);
        if (reason)
            return fail(v->job.o, "%s: %s (input '%s')", v->job.o->arguments[0], reason,
                        prony_model_input(model, i)->name);
    }
    return EXIT_DONE;
}

/* The prompt of --prompt-ids, or the ids that `bench --generate` draws from the seed. */
static int save_prompt(versus_decoder *v, const prompt *given, int64_t vocabulary)
{
    prony_value value = {.dtype = PRONY_INT64, .shape = {1, {v->prompt}}, .data = given->ids};
    const uint64_t bound = vocabulary > 0 ? (uint64_t)vocabulary : 1;
    uint64_t state = (uint64_t)v->job.o->model.seed;
    int64_t *drawn = given->ids ? NULL : calloc((size_t)v->prompt, sizeof *drawn);
    if (!given->ids && !drawn) return fail(v->job.o, "out of memory");
    for (int64_t k = 0; k < v->prompt && drawn; k++) drawn[k] = (int64_t)(((random_bits(&state) >> 32) * bound) >> 32);
    if (drawn) value.data = drawn;
    const int code = versus_save_value(&v->job, &value, "the prompt", "", v->ids_file);
    free(drawn);
    return code;
}

/* This engine's ids, and the files for all processes. */
static int versus_generate_prepare(versus_decoder *v, prony_model *model, const prompt *given)
{
    const options *o = v->job.o;
    decoder d = {0};
    prony_error error = {0};
    prony_generator_info info = {0};
    prompt whole = {0};
    options own = *o;
    own.threads.intra_op = 0;
    int code = decoder_open(&own, model, v->batch, v->prompt + v->tokens, false, &d);
    if (code == EXIT_DONE) prony_generator_get_info(d.generator, &info);
    if (code == EXIT_DONE) code = save_prompt(v, given, info.vocabulary);
    own.generate.prompt_ids = v->ids_file;
    if (code == EXIT_DONE) code = prompt_read(&own, &whole);
    if (code == EXIT_DONE) code = versus_check_roles(v, model, &d);
    if (code == EXIT_DONE) code = versus_save_inputs(&v->job, model, d.session, d.generator);
    const size_t batch = (size_t)v->batch, length = (size_t)v->prompt;
    int64_t *ids = calloc(batch * length, sizeof *ids), *next = calloc(batch, sizeof *next);
    size_t *lengths = calloc(batch, sizeof *lengths);
    if (code == EXIT_DONE && (!ids || !next || !lengths)) code = fail(o, "out of memory");
    for (size_t b = 0; b < batch && code == EXIT_DONE; b++) {
        memcpy(ids + b * length, whole.ids, length * sizeof *ids);
        lengths[b] = length;
    }
    if (code == EXIT_DONE && prony_generator_prompt(d.generator, ids, lengths, &error) != PRONY_OK)
        code = report_error(o, &error);
    for (int64_t n = 0; n < v->tokens && code == EXIT_DONE; n++) {
        if (prony_generator_next(d.generator, next, NULL, &error) != PRONY_OK) code = report_error(o, &error);
        v->own_ids[n] = next[0];
    }
    if (code == EXIT_DONE) code = save_roles(v, model, &d);
    if (code == EXIT_DONE) code = versus_choose_threads(&v->job, d.session);
    free(ids);
    free(next);
    free(lengths);
    prompt_free(&whole);
    decoder_close(&d);
    return code;
}

/* ---- processes ---- */

/* The options of both kinds of process: at most 8 words. */
static size_t decoder_words(const versus_decoder *v, char seconds[VERSUS_NUMBER], char runs[VERSUS_NUMBER],
                            const char **words)
{
    const options *o = v->job.o;
    size_t n = 0;
    snprintf(seconds, VERSUS_NUMBER, "%g", o->measuring.seconds);
    snprintf(runs, VERSUS_NUMBER, "%lld", (long long)o->measuring.runs);
    words[n++] = "--generate";
    words[n++] = v->sizes;
    words[n++] = "--prompt-ids";
    words[n++] = v->ids_file;
    words[n++] = "-t";
    words[n++] = seconds;
    if (o->measuring.runs > 0) {
        words[n++] = "-r";
        words[n++] = runs;
    }
    return n;
}

static int add_process(versus_decoder *v, bool peer, prony_versus_process *process, const int64_t ns[PHASES])
{
    prony_error error = {0};
    for (int k = 0; k < PHASES; k++) {
        process->median_ns = ns[k];
        if (prony_versus_add(v->phases[k], peer, process, &error) != PRONY_OK) return report_error(v->job.o, &error);
    }
    return EXIT_DONE;
}

static int64_t rate_to_ns(double tokens, double rate)
{
    return rate > 0 ? (int64_t)llround(tokens * 1e9 / rate) : 0;
}

/* One process of this engine: `bench --generate`, whose report goes to stdout. */
static int decoder_own(versus_decoder *v, int threads, prony_report **report, prony_versus_process *process,
                       int64_t ns[PHASES])
{
    const options *o = v->job.o;
    char seconds[VERSUS_NUMBER], runs[VERSUS_NUMBER], batch[VERSUS_NUMBER], length[VERSUS_NUMBER], chunk[VERSUS_NUMBER];
    const char **words = calloc(DECODER_WORDS + 2 * o->generate.cache_count, sizeof *words);
    if (!words) return fail(o, "out of memory");
    size_t n = decoder_words(v, seconds, runs, words);
    child c;
    prony_error error = {0};
    snprintf(batch, sizeof batch, "%lld", (long long)v->batch);
    snprintf(length, sizeof length, "%lld", (long long)o->generate.max_length);
    snprintf(chunk, sizeof chunk, "%lld", (long long)o->generate.chunk);
    words[n++] = "--one-process";
    words[n++] = "-b";
    words[n++] = batch;
    if (o->generate.max_length) words[n++] = "--max-length", words[n++] = length;
    if (o->generate.chunk) words[n++] = "--chunk", words[n++] = chunk;
    if (o->generate.cache_type) words[n++] = "--kv-cache", words[n++] = o->generate.cache_type;
    if (o->generate.roles) words[n++] = "--roles", words[n++] = o->generate.roles;
    for (size_t k = 0; k < o->generate.cache_count; k++) words[n++] = "--cache", words[n++] = o->generate.caches[k];
    words[n] = NULL;
    int code = versus_run_child(&v->job, &c, "bench", threads, words);
    free(words);
    if (code == EXIT_DONE &&
        prony_report_load_memory(report, "a process of prony", c.output ? c.output : "", c.size, &error) != PRONY_OK)
        code = report_error(o, &error);
    child_free(&c);
    if (code != EXIT_DONE) return code;
    const prony_generation *g = prony_report_generation(*report);
    if (!g) return fail(o, "a process of prony ended without a generation");
    if (prony_versus_process_of(process, *report, versus_own_peak(*report), &error) != PRONY_OK)
        return report_error(o, &error);
    process->runs = (uint64_t)g->repetitions;
    ns[PREFILL] = rate_to_ns((double)(g->batch * g->prompt_tokens), g->prefill_tokens_per_second);
    ns[DECODE] = rate_to_ns((double)(g->batch * (g->new_tokens - 1)), g->decode_tokens_per_second);
    return EXIT_DONE;
}

/* Ids of the peer's line "ids 1,2,3". */
static void take_peer_ids(versus_decoder *v, const child *c)
{
    const char *at = NULL;
    for (size_t k = 0; k + 5 < c->size && !at; k++)
        if (memcmp(c->output + k, "\nids ", 5) == 0) at = c->output + k;
    v->equal = 0;
    for (int64_t n = 0; at && n < v->tokens; n++) {
        char *end;
        at += n == 0 ? 5 : 1;
        v->peer_ids[n] = strtoll(at, &end, 10);
        at = end;
        v->equal += v->equal == (size_t)n && v->peer_ids[n] == v->own_ids[n];
    }
}

/* One process of the peer: `peer --generate`, which prints lines of a word and a number. */
static int decoder_peer(versus_decoder *v, int threads, prony_versus_process *process, int64_t ns[PHASES])
{
    char seconds[VERSUS_NUMBER], runs[VERSUS_NUMBER], version[VERSUS_NUMBER];
    const char *words[DECODER_WORDS];
    size_t n = decoder_words(v, seconds, runs, words);
    child c;
    int64_t start = -1, done = -1, peak = -1, load = PRONY_LOAD_UNKNOWN, others = -1;
    words[n++] = "--roles";
    words[n++] = v->roles_file;
    words[n++] = "--ort-lib";
    words[n++] = v->job.library;
    words[n] = NULL;
    int code = versus_run_child(&v->job, &c, "peer", threads, words);
    if (code == EXIT_DONE &&
        !(versus_number_of(&c, "start_ns", &start) && versus_number_of(&c, "runs", &done) &&
          versus_number_of(&c, "prefill_ns", &ns[PREFILL]) && versus_number_of(&c, "decode_ns", &ns[DECODE]) &&
          versus_number_of(&c, "peak_rss_bytes", &peak) && versus_text_of(&c, "version", version)))
        code = fail(v->job.o, "the peer: its process ended without results");
    if (code == EXIT_DONE && versus_number_of(&c, "load", &load) && !versus_number_of(&c, "others_ppm", &others))
        others = -1;
    if (code == EXIT_DONE) {
        *process = (prony_versus_process){
            threads, (uint64_t)done, 0, start, peak, (prony_load)load, others < 0 ? -1.0 : (double)others / 1e6};
        snprintf(v->job.peer, sizeof v->job.peer, "onnxruntime %s", version);
        take_peer_ids(v, &c);
    }
    child_free(&c);
    return code;
}

static int one_decoder(void *user, int threads, bool peer)
{
    versus_decoder *v = user;
    prony_versus_process process;
    prony_report *report = NULL;
    int64_t ns[PHASES];
    int code = peer ? decoder_peer(v, threads, &process, ns) : decoder_own(v, threads, &report, &process, ns);
    if (code == EXIT_DONE) code = add_process(v, peer, &process, ns);
    prony_report_release(report);
    return code;
}

/* ---- results ---- */

static double tokens_of(const versus_decoder *v, int phase)
{
    return (double)(v->batch * (phase == PREFILL ? v->prompt : v->tokens - 1));
}

static double rate_of(const versus_decoder *v, int phase, double ns)
{
    return ns > 0 ? tokens_of(v, phase) * 1e9 / ns : 0;
}

/* The table: rows are thread counts, prefill and decode. Rows without a complete pair are left out. */
static void print_decoders(const versus_decoder *v, const prony_versus_result *const rows[PHASES], size_t count)
{
    char name[PHASES][MOST_ID_TEXT];
    put_text(stdout, v->job.o->arguments[0]);
    printf(": prompt %lld, new %lld, batch %lld; tokens a second beside %s\n\n", (long long)v->prompt,
           (long long)v->tokens, (long long)v->batch, v->job.peer);
    snprintf(name[PREFILL], sizeof name[PREFILL], "pp%lld", (long long)v->prompt);
    snprintf(name[DECODE], sizeof name[DECODE], "tg%lld", (long long)v->tokens);
    printf("%4s %9s %9s %9s %7s  %-17s %s\n", "thr", "", "prony", "peer", "ratio", "95 % interval", "prony is");
    for (size_t t = 0; t < count; t++)
        for (int k = 0; k < PHASES; k++) {
            const prony_versus_result *r = &rows[k][t];
            char interval[40];
            if (r->pairs == 0 || (k == DECODE && v->tokens < 2)) continue;
            if (isfinite(r->ratio_ci95[0]) && isfinite(r->ratio_ci95[1]))
                snprintf(interval, sizeof interval, "%.3g - %.3g", r->ratio_ci95[0], r->ratio_ci95[1]);
            else
                snprintf(interval, sizeof interval, "%.3g to %.3g", r->ratio_least, r->ratio_most);
            printf("%4d %9s %9.4g %9.4g %7.3f  %-17s %s\n", r->intra_op_threads, name[k], rate_of(v, k, r->own_ns),
                   rate_of(v, k, r->peer_ns), r->ratio, interval, prony_versus_verdict_text(r));
        }
    for (size_t t = 0; t < count; t++)
        if (rows[DECODE][t].own_peak_rss_bytes > 0 && rows[DECODE][t].peer_peak_rss_bytes > 0)
            printf("%4d peak memory %.4g MiB, the peer's %.4g MiB\n", rows[DECODE][t].intra_op_threads,
                   rows[DECODE][t].own_peak_rss_bytes / 0x1p20, rows[DECODE][t].peer_peak_rss_bytes / 0x1p20);
    if (v->equal == (size_t)v->tokens)
        printf("\nAll %zu new ids are equal.\n", v->equal);
    else
        printf("\nThe first %zu new ids are equal; then prony chose %lld, the peer %lld.\n", v->equal,
               (long long)v->own_ids[v->equal], (long long)v->peer_ids[v->equal]);
}

/* A JSON number, or null for a value that is not finite. */
static void versus_put_number(FILE *to, const char *key, double value)
{
    fprintf(to, "\"%s\": ", key);
    if (isfinite(value))
        fprintf(to, "%.12g", value);
    else
        fputs("null", to);
}

static void put_decoder_row(FILE *to, const versus_decoder *v, int phase, const prony_versus_result *r)
{
    static const char *const names[] = {"prefill", "decode"};
    fprintf(to, "\"%s\": {\"prony_tokens_per_second\": %.9g, \"peer_tokens_per_second\": %.9g, ", names[phase],
            rate_of(v, phase, r->own_ns), rate_of(v, phase, r->peer_ns));
    versus_put_number(to, "ratio", r->ratio);
    fputs(", ", to);
    if (isfinite(r->ratio_ci95[0]) && isfinite(r->ratio_ci95[1]))
        fprintf(to, "\"ratio_ci95\": [%.9g, %.9g], ", r->ratio_ci95[0], r->ratio_ci95[1]);
    else
        fputs("\"ratio_ci95\": null, ", to);
    fprintf(to, "\"prony_is\": \"%s\"}", prony_versus_verdict_text(r));
}

/* The document of --json: docs/schemas/versus_generation.schema.json. */
static int write_decoders(const versus_decoder *v, const prony_versus_result *const rows[PHASES], size_t count)
{
    const options *o = v->job.o;
    json_file file = {0};
    const int code = json_open(&file, o);
    if (code != EXIT_DONE || !file.stream) return code;
    json_begin(file.stream, "prony.versus_generation/1");
    fputs(",\n  \"peer\": {\"name\": ", file.stream);
    json_text(file.stream, v->job.peer);
    fputs(", \"library\": ", file.stream);
    json_text(file.stream, v->job.library);
    fprintf(file.stream,
            "},\n  \"batch\": %lld,\n  \"prompt_tokens\": %lld,\n  \"new_tokens\": %lld,\n  \"equal_ids\": %zu,\n"
            "  \"results\": [",
            (long long)v->batch, (long long)v->prompt, (long long)v->tokens, v->equal);
    for (size_t t = 0; t < count; t++) {
        const prony_versus_result *r = &rows[DECODE][t];
        fprintf(file.stream, "%s\n    {\"intra_op_threads\": %d, \"pairs\": %zu, \"busy_pairs\": %zu, ", t ? "," : "",
                r->intra_op_threads, r->pairs, r->busy_pairs);
        put_decoder_row(file.stream, v, PREFILL, &rows[PREFILL][t]);
        fputs(", ", file.stream);
        put_decoder_row(file.stream, v, DECODE, r);
        fputs(", ", file.stream);
        versus_put_number(file.stream, "prony_peak_rss_bytes", r->own_peak_rss_bytes);
        fputs(", ", file.stream);
        versus_put_number(file.stream, "peer_peak_rss_bytes", r->peer_peak_rss_bytes);
        fputs("}", file.stream);
    }
    fputs("\n  ]\n}\n", file.stream);
    return json_close(&file, o, code);
}

static int show_decoders(versus_decoder *v)
{
    const options *o = v->job.o;
    prony_error error = {0};
    const prony_versus_result *rows[PHASES];
    size_t count = 0;
    for (int k = 0; k < PHASES; k++)
        if (prony_versus_results(&rows[k], &count, v->phases[k], &error) != PRONY_OK) return report_error(o, &error);
    if (!o->terminal.quiet && !stdout_taken(o)) print_decoders(v, rows, count);
    return write_decoders(v, rows, count);
}

/* ---- the command ---- */

static int versus_generate_measure(versus_decoder *v)
{
    const options *o = v->job.o;
    prony_versus_process own, peer;
    int64_t own_ns[PHASES], peer_ns[PHASES];
    prony_error error = {0};
    int code = decoder_peer(v, v->job.threads[0], &peer, peer_ns);
    if (code == EXIT_DONE) code = decoder_own(v, v->job.threads[0], &v->report, &own, own_ns);
    for (int k = 0; k < PHASES && code == EXIT_DONE; k++) {
        if (prony_versus_create(&v->phases[k], v->report, v->job.peer, v->job.library, &error) != PRONY_OK)
            code = report_error(o, &error);
        else if (o->verdict.ignore_load)
            prony_versus_ignore_load(v->phases[k]);
    }
    if (code == EXIT_DONE) code = versus_measure_pairs(&v->job, v->phases[DECODE], one_decoder, v);
    return code == EXIT_DONE ? show_decoders(v) : code;
}

/* Prepares files for both engines, releases the model, then measures in processes. The folder goes in any case. */
int command_versus_generate(const options *o)
{
    versus_decoder v = {.job = {.o = o}};
    prony_error error = {0};
    prony_model *model = NULL;
    prompt given = {0};
    int code = prompt_read(o, &given);
    if (code == EXIT_DONE && given.sequences > 1)
        code = usage(o, "versus takes one prompt, the same for all sequences");
    v.prompt = given.ids ? (int64_t)given.longest : o->generate.prompt ? o->generate.prompt : PROMPT;
    v.tokens = o->generate.new_tokens ? o->generate.new_tokens : NEW;
    v.batch = o->model.batch ? o->model.batch : 1;
    snprintf(v.sizes, sizeof v.sizes, "prompt=%lld,new=%lld", (long long)v.prompt, (long long)v.tokens);
    v.own_ids = calloc((size_t)v.tokens + 1, sizeof *v.own_ids);
    v.peer_ids = calloc((size_t)v.tokens + 1, sizeof *v.peer_ids);
    if (code == EXIT_DONE && (!v.own_ids || !v.peer_ids)) code = fail(o, "out of memory");
    if (code == EXIT_DONE) code = versus_find_library(&v.job);
    if (code == EXIT_DONE) code = versus_make_folder(&v.job);
    snprintf(v.ids_file, sizeof v.ids_file, "%s/prompt.npy", v.job.folder);
    snprintf(v.roles_file, sizeof v.roles_file, "%s/roles.txt", v.job.folder);
    if (code == EXIT_DONE && load_model(o, &model, o->arguments[0], &error) != PRONY_OK) code = report_error(o, &error);
    if (code == EXIT_DONE) code = versus_generate_prepare(&v, model, &given);
    prony_model_release(model);
    if (code == EXIT_DONE) code = versus_generate_measure(&v);
    versus_remove_folder(&v.job);
    for (int k = 0; k < PHASES; k++) prony_versus_release(v.phases[k]);
    prony_report_release(v.report);
    for (size_t i = 0; i < v.job.input_count; i++) {
        free((char *)(uintptr_t)v.job.inputs[i][0]);
        free((char *)(uintptr_t)v.job.inputs[i][1]);
    }
    free(v.job.inputs);
    free(v.job.threads);
    free(v.own_ids);
    free(v.peer_ids);
    prompt_free(&given);
    return code;
}
