/* prony versus MODEL: compares with ONNX Runtime on this machine and model. Both engines run in their own processes, in
 * turns: prony, peer, peer, prony, … with the same inputs and threads. A process lasts about half a second, so other
 * load affects both; ratios are taken per pair. Pairs on a busy machine are measured again, at most as many as
 * requested. */
#include "bench/options/option_table.h"
#include "bench/process/child.h"
#include "bench/process/interrupt.h"
#include "bench/session/document.h"
#include "bench/session/judge.h"
#include "bench/terminal/whole_file.h"
#include "bench/versus/versus.h"

#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* OWN_WORDS: prony, COMMAND, MODEL, -x, its value, and NULL. Limit of a process in seconds, and its multiple of
 * --seconds: only one that hangs reaches it. Chosen without measurement. */
enum { OWN_WORDS = 6, LIMIT_LEAST = 600, LIMIT_FACTOR = 10 };
#define PROFILED_RUNS "20"
#define PROFILE_PREFIX "profile"

/* ---- the peer's library ---- */

/* Finds the library of an npm package onnxruntime-node in this folder; the newest interface version is last in
 * order. */
static bool find_beside(char *path, size_t size)
{
#if defined(__aarch64__)
    static const char pattern[] = "node_modules/onnxruntime-node/bin/napi-v*/linux/arm64/libonnxruntime.so*";
#else
    static const char pattern[] = "node_modules/onnxruntime-node/bin/napi-v*/linux/x64/libonnxruntime.so*";
#endif
    glob_t found;
    bool any = glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc > 0;
    if (any) snprintf(path, size, "%s", found.gl_pathv[found.gl_pathc - 1]);
    globfree(&found);
    return any;
}

int versus_find_library(versus_job *job)
{
    const char *named = job->o->files.ort_lib ? job->o->files.ort_lib : getenv("PRONY_ORT_LIB");
    char path[VERSUS_PATH] = "";
    if (named && *named)
        snprintf(path, sizeof path, "%s", named);
    else if (!find_beside(path, sizeof path))
        return fail(job->o,
                    "ONNX Runtime was not found; set --ort-lib FILE or PRONY_ORT_LIB to libonnxruntime.so. `npm "
                    "install --ignore-scripts onnxruntime-node` installs it into ./node_modules, where it is found");
    if (access(path, R_OK) != 0) return fail(job->o, "'%s': no ONNX Runtime library there", path);
    char *whole = realpath(path, NULL); /* dlopen searches other folders for a path without a slash */
    snprintf(job->library, sizeof job->library, "%s", whole ? whole : path);
    free(whole);
    return EXIT_DONE;
}

/* ---- processes ---- */

typedef struct word_list {
    const char **words;
    size_t count;
} word_list;

static void versus_command_add(word_list *list, const char *word)
{
    list->words[list->count++] = word;
}

/* Runs `prony COMMAND MODEL -x THREADS` with `more` (NULL-terminated) and the job's inputs, and waits. The caller frees
 * *c with child_free, after a failure too. The limit of time grows with --seconds, so it ends a process that hangs, not
 * one that measures for long. */
int versus_run_child(const versus_job *job, child *c, const char *command, int threads, const char *const *more)
{
    const options *o = job->o;
    char count[VERSUS_NUMBER], text[CHILD_WORDS + 100];
    const double limit = LIMIT_LEAST + LIMIT_FACTOR * o->measuring.seconds;
    size_t more_count = 0;
    while (more[more_count]) more_count++;
    char **pairs = calloc(job->input_count + 1, sizeof *pairs);
    word_list list = {calloc(OWN_WORDS + more_count + 2 * job->input_count, sizeof *list.words), 0};
    int code = list.words && pairs ? EXIT_DONE : fail(o, "out of memory");
    *c = (child){.out = -1, .err = -1};
    if (code == EXIT_DONE) {
        snprintf(count, sizeof count, "%d", threads);
        versus_command_add(&list, "prony");
        versus_command_add(&list, command);
        versus_command_add(&list, o->arguments[0]);
        versus_command_add(&list, "-x");
        versus_command_add(&list, count);
        while (*more) versus_command_add(&list, *more++);
    }
    for (size_t i = 0; code == EXIT_DONE && i < job->input_count; i++) {
        const size_t size = strlen(job->inputs[i][0]) + strlen(job->inputs[i][1]) + 2;
        pairs[i] = malloc(size);
        if (!pairs[i]) {
            code = fail(o, "out of memory");
            break;
        }
        snprintf(pairs[i], size, "%s=%s", job->inputs[i][0], job->inputs[i][1]);
        versus_command_add(&list, "-i");
        versus_command_add(&list, pairs[i]);
    }
    int started = code == EXIT_DONE ? child_run(c, list.words, limit) : 0;
    if (started)
        code = fail(o, "cannot start a process: %s", strerror(started));
    else if (code == EXIT_DONE && child_failed(c, limit, text, sizeof text))
        code = interrupted() ? EXIT_FAILED : fail(o, "%s%s", strcmp(command, "peer") == 0 ? "the peer: " : "", text);
    for (size_t i = 0; i < job->input_count && pairs; i++) free(pairs[i]);
    free(pairs);
    free(list.words);
    return code;
}

/* The arguments for the length of a process's measurement. */
static const char *const *how_long(const options *o, char seconds[VERSUS_NUMBER], char runs[VERSUS_NUMBER],
                                   const char *words[8])
{
    size_t n = 0;
    snprintf(seconds, VERSUS_NUMBER, "%g", o->measuring.seconds);
    snprintf(runs, VERSUS_NUMBER, "%lld", (long long)o->measuring.runs);
    words[n++] = "-t";
    words[n++] = seconds;
    if (o->measuring.runs > 0) {
        words[n++] = "-r";
        words[n++] = runs;
    }
    words[n] = NULL;
    return words;
}

int64_t versus_own_peak(const prony_report *report)
{
    const prony_memory_report *memory = prony_report_memory(report);
    return memory && memory->peak_rss_bytes ? (int64_t)memory->peak_rss_bytes : -1;
}

/* Runs one process of this engine: its report and its measurement. `command`: bench, or profile with stamps. */
static int measure_own(const versus_job *job, const char *command, int threads, prony_report **report,
                       prony_versus_process *process)
{
    char seconds[VERSUS_NUMBER], runs[VERSUS_NUMBER];
    const char *words[8];
    child c;
    prony_error error = {0};
    size_t count = 0;
    if (strcmp(command, "profile") == 0) { /* an operator's time is a median, which takes some runs, however long they
                                              are */
        words[count++] = "-r";
        words[count++] = PROFILED_RUNS;
    } else {
        how_long(job->o, seconds, runs, words);
        while (words[count]) count++;
    }
    words[count++] = "--one-process";
    if (job->o->plan.tune) words[count++] = "--tune";
    words[count] = NULL;
    int code = versus_run_child(job, &c, command, threads, words);
    if (code == EXIT_DONE &&
        prony_report_load_memory(report, "a process of prony", c.output ? c.output : "", c.size, &error) != PRONY_OK)
        code = report_error(job->o, &error);
    if (code == EXIT_DONE && prony_versus_process_of(process, *report, versus_own_peak(*report), &error) != PRONY_OK)
        code = report_error(job->o, &error);
    child_free(&c);
    return code;
}

bool versus_text_of(const child *c, const char *word, char text[VERSUS_NUMBER])
{
    const size_t length = strlen(word);
    for (const char *at = c->output, *end = at + c->size; at && at < end;) {
        const char *next = memchr(at, '\n', (size_t)(end - at));
        if (!next) return false;
        if ((size_t)(next - at) > length + 1 && memcmp(at, word, length) == 0 && at[length] == ' ') {
            snprintf(text, VERSUS_NUMBER, "%.*s", (int)(next - at - (ptrdiff_t)length - 1), at + length + 1);
            return true;
        }
        at = next + 1;
    }
    return false;
}

bool versus_number_of(const child *c, const char *word, int64_t *out)
{
    char text[VERSUS_NUMBER], *end = text;
    if (!versus_text_of(c, word, text)) return false;
    *out = strtoll(text, &end, 10);
    return end != text && *end == '\0';
}

/* Reads the lines "key value" of the peer's process. The load and the share of other processes are optional: -1 or
 * PRONY_LOAD_UNKNOWN if the peer does not tell them. */
static int measure_peer(versus_job *job, int threads, const char *const *more, prony_versus_process *process)
{
    const char *words[16];
    char seconds[VERSUS_NUMBER], runs[VERSUS_NUMBER], version[VERSUS_NUMBER];
    size_t count = 0;
    child c;
    int64_t start = -1, median = -1, done = -1, peak = -1, load = PRONY_LOAD_UNKNOWN, others = -1;
    how_long(job->o, seconds, runs, words);
    while (words[count]) count++;
    words[count++] = "--ort-lib";
    words[count++] = job->library;
    while (*more) words[count++] = *more++;
    words[count] = NULL;
    int code = versus_run_child(job, &c, "peer", threads, words);
    if (code == EXIT_DONE &&
        !(versus_number_of(&c, "start_ns", &start) && versus_number_of(&c, "runs", &done) &&
          versus_number_of(&c, "median_ns", &median) && versus_number_of(&c, "peak_rss_bytes", &peak)))
        code = fail(job->o, "the peer: its process ended without results");
    if (code == EXIT_DONE && versus_number_of(&c, "load", &load) && !versus_number_of(&c, "others_ppm", &others))
        others = -1;
    if (code == EXIT_DONE)
        *process = (prony_versus_process){
            threads, (uint64_t)done, median, start, peak, (prony_load)load, others < 0 ? -1.0 : (double)others / 1e6};
    if (code == EXIT_DONE && versus_text_of(&c, "version", version))
        snprintf(job->peer, sizeof job->peer, "onnxruntime %s", version);
    child_free(&c);
    return code;
}

/* ---- in turns ---- */

/* A comparison that processes are added to. */
typedef struct versus_pairs {
    versus_job *job;
    prony_versus *versus;
} versus_pairs;

static int versus_command_side(void *user, int threads, bool peer)
{
    versus_job *job = ((versus_pairs *)user)->job;
    static const char *const nothing[] = {NULL};
    prony_error error = {0};
    prony_versus_process process;
    prony_report *report = NULL;
    int code =
        peer ? measure_peer(job, threads, nothing, &process) : measure_own(job, "bench", threads, &report, &process);
    prony_report_release(report);
    if (code == EXIT_DONE && prony_versus_add(((versus_pairs *)user)->versus, peer, &process, &error) != PRONY_OK)
        code = report_error(job->o, &error);
    return code;
}

/* true: fewer quiet pairs of this thread count were measured than requested. */
static bool lacks_quiet(const options *o, prony_versus *versus, int threads, size_t wanted, int *code)
{
    prony_error error = {0};
    const prony_versus_result *rows;
    size_t count;
    if (prony_versus_results(&rows, &count, versus, &error) != PRONY_OK) {
        *code = report_error(o, &error);
        return false;
    }
    for (size_t i = 0; i < count; i++)
        if (rows[i].intra_op_threads == threads) return rows[i].measured_pairs - rows[i].busy_pairs < wanted;
    return true;
}

int versus_measure_pairs(versus_job *job, prony_versus *versus, versus_side one_side, void *user)
{
    const options *o = job->o;
    const size_t pairs = (size_t)o->measuring.processes;
    int code = EXIT_DONE;
    if (o->verdict.ignore_load) prony_versus_ignore_load(versus);
    for (size_t p = 0; code == EXIT_DONE && p < 2 * pairs && !interrupted(); p++) {
        for (size_t t = 0; code == EXIT_DONE && t < job->thread_count && !interrupted(); t++) {
            if (p >= pairs && !lacks_quiet(o, versus, job->threads[t], pairs, &code)) continue;
            char text[120];
            snprintf(text, sizeof text, "pair %zu of %zu, %d thread%s%s", p + 1, p < pairs ? pairs : 2 * pairs,
                     job->threads[t], job->threads[t] == 1 ? "" : "s",
                     p < pairs ? "" : ", repeated because the machine was busy");
            if (want_progress(o)) show_progress_text(text);
            code = one_side(user, job->threads[t], (p & 1) != 0);
            if (code == EXIT_DONE) code = one_side(user, job->threads[t], (p & 1) == 0);
        }
    }
    clear_progress();
    if (interrupted()) {
        fail(o, "%s; the results of the pairs until then follow", interrupted());
        return EXIT_DONE;
    }
    return code;
}

/* ---- the peer's own profile ---- */

static int add_profile(versus_job *job, prony_versus *versus)
{
    char prefix[VERSUS_PATH], pattern[VERSUS_PATH + 8];
    prony_error error = {0};
    prony_versus_process unused;
    glob_t found;
    size_t size;
    snprintf(prefix, sizeof prefix, "%s/" PROFILE_PREFIX, job->folder);
    const char *more[] = {"--trace", prefix, NULL};
    int code = measure_peer(job, job->threads[0], more, &unused);
    if (code != EXIT_DONE) return interrupted() ? EXIT_DONE : code;
    snprintf(pattern, sizeof pattern, "%s*", prefix);
    if (glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc > 0) {
        char *text = whole_file(job->o, found.gl_pathv[0], &size);
        code = text ? EXIT_DONE : EXIT_FAILED;
        if (text && prony_versus_add_peer_profile(versus, "the peer's profile", text, size, &error) != PRONY_OK)
            code = report_error(job->o, &error);
        free(text);
    }
    globfree(&found);
    return code;
}

/* ---- the command ---- */

void versus_remove_folder(const versus_job *job)
{
    char pattern[VERSUS_PATH];
    glob_t found;
    if (!*job->folder) return;
    snprintf(pattern, sizeof pattern, "%s/*", job->folder);
    if (glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++) unlink(found.gl_pathv[i]);
    globfree(&found);
    rmdir(job->folder);
}

int versus_make_folder(versus_job *job)
{
    const char *temporary = getenv("TMPDIR");
    int used = snprintf(job->folder, sizeof job->folder, "%s/prony-versus-XXXXXX",
                        temporary && *temporary ? temporary : "/tmp");
    if (used > 0 && (size_t)used < sizeof job->folder && mkdtemp(job->folder)) return EXIT_DONE;
    *job->folder = '\0';
    return fail(job->o, "cannot create a temporary folder in '%s'", temporary && *temporary ? temporary : "/tmp");
}

static int versus_command_show(const options *o, prony_versus *versus)
{
    prony_error error = {0};
    const prony_write_options w = write_options(o);
    document json;
    int code = document_open(&json, o);
    if (code != EXIT_DONE) return code;
    prony_status status = PRONY_OK;
    if (!o->terminal.quiet && !stdout_taken(o))
        status = prony_versus_write(versus, PRONY_FORMAT_TEXT, &w, write_to_stream, stdout, &error);
    if (status == PRONY_OK && json.stream)
        status = prony_versus_write(versus, PRONY_FORMAT_JSON, &w, write_to_stream, json.stream, &error);
    return document_close(&json, o, status == PRONY_OK ? EXIT_DONE : report_error(o, &error));
}

/* Measures after a first successful run: outputs of both, this engine's stamped profile, then the pairs. */
static int versus_command_measure(versus_job *job, prony_model *model)
{
    const char *once[] = {"--output-dir", job->folder, NULL};
    prony_error error = {0};
    prony_report *profile = NULL;
    prony_versus *versus = NULL;
    prony_versus_process unused;
    int code = measure_peer(job, job->threads[0], once, &unused);
    if (code == EXIT_DONE) code = measure_own(job, "profile", job->threads[0], &profile, &unused);
    if (code == EXIT_DONE && prony_versus_create(&versus, profile, job->peer, job->library, &error) != PRONY_OK)
        code = report_error(job->o, &error);
    if (code == EXIT_DONE) code = versus_compare(job, versus, model);
    if (code == EXIT_DONE) code = versus_measure_pairs(job, versus, versus_command_side, &(versus_pairs){job, versus});
    if (code == EXIT_DONE && !interrupted()) code = add_profile(job, versus);
    if (code == EXIT_DONE) code = versus_command_show(job->o, versus);
    prony_versus_release(versus);
    prony_report_release(profile);
    return code;
}

int command_versus(const options *o)
{
    versus_job job = {.o = o};
    prony_model *model = NULL;
    if (o->generate.prompt_ids && !o->generate.enabled) return usage(o, "--prompt-ids needs --generate");
    if (o->generate.enabled) return command_versus_generate(o);
    int code = versus_find_library(&job);
    if (code == EXIT_DONE) code = versus_make_folder(&job);
    if (code == EXIT_DONE) code = versus_prepare(&job, &model);
    if (code == EXIT_DONE) code = versus_command_measure(&job, model);
    versus_remove_folder(&job);
    prony_model_release(model);
    for (size_t i = 0; i < job.input_count; i++) {
        free((char *)(uintptr_t)job.inputs[i][0]);
        free((char *)(uintptr_t)job.inputs[i][1]);
    }
    free(job.inputs);
    free(job.threads);
    return code;
}
