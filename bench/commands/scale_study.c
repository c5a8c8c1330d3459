/* The study of a `scale` command: planned or resumed, saved as blocks end, and shown at the end. `prony scale` measures
 * it on this machine (scale.c), `prony-mpi scale` on the nodes of a cluster (bench/cluster/). The file of --json is
 * rewritten as blocks end, so an interruption keeps the finished blocks. */
#define _GNU_SOURCE /* open_memstream */
#include "bench/history/history.h"
#include "bench/session/inputs.h"
#include "bench/process/interrupt.h"
#include "bench/session/judge.h"
#include "bench/commands/scale.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Limit of a block in seconds, and its multiple of the planned time: only a process that hangs reaches it. Chosen
 * without measurement. */
enum { LIMIT_LEAST = 60, LIMIT_FACTOR = 10 };

/* ---- the plan ---- */

typedef struct arguments {
    const char **list;
    char **made; /* arguments made here */
    size_t count, made_count;
} arguments;

static bool add_joined(arguments *a, const char *option, const char *name, const char *value)
{
    size_t size = strlen(name) + strlen(value) + 2;
    char *text = malloc(size);
    if (!text) return false;
    snprintf(text, size, "%s=%s", name, value);
    a->made[a->made_count++] = text;
    a->list[a->count++] = option;
    a->list[a->count++] = text;
    return true;
}

static const char *scale_study_shape_text(const prony_shape *shape, char text[256])
{
    size_t used = 0;
    snprintf(text, 256, "scalar");
    for (int d = 0; d < shape->rank && used < 230; d++)
        used += (size_t)snprintf(text + used, 256 - used, "%s%lld", d ? "x" : "", (long long)shape->dim[d]);
    return text;
}

/* Passes ranges that were found once to the processes. */
static bool add_calibration(const options *o, arguments *a)
{
    if (o->precision.power_of_two) a->list[a->count++] = "--power-of-two";
    if (!o->precision.calibrate) return true;
    char *path = calibration_path(o);
    if (!path) return false;
    a->made[a->made_count++] = path;
    a->list[a->count++] = "--calibrate";
    a->list[a->count++] = path;
    return true;
}

/* Collects the other options for the processes. */
static bool scale_study_gather(const options *o, arguments *a)
{
    size_t most = 2 * (o->model.dim_count + o->model.shape_count + o->model.input_count) + 13;
    *a = (arguments){.list = calloc(most, sizeof *a->list), .made = calloc(most, sizeof *a->made)};
    bool ok = a->list && a->made;
    for (size_t i = 0; ok && i < o->model.dim_count; i++) {
        char value[32];
        snprintf(value, sizeof value, "%lld", (long long)o->model.dims[i].value);
        ok = add_joined(a, "--dim", o->model.dims[i].name, value);
    }
    for (size_t i = 0; ok && i < o->model.shape_count; i++) {
        char text[256];
        ok = add_joined(a, "--shape", o->model.shapes[i].name, scale_study_shape_text(&o->model.shapes[i].shape, text));
    }
    for (size_t i = 0; ok && i < o->model.input_count; i++)
        ok = add_joined(a, "-i", o->model.inputs[i].name, o->model.inputs[i].file);
    if (ok && o->threads.affinity) {
        a->list[a->count++] = "--affinity";
        a->list[a->count++] = o->threads.affinity;
    }
    if (ok && o->model.preprocess_list) {
        a->list[a->count++] = "--preprocess";
        a->list[a->count++] = o->model.preprocess_list;
    }
    if (ok && o->files.data_folder) {
        a->list[a->count++] = "--data-folder";
        a->list[a->count++] = o->files.data_folder;
    }
    if (ok) ok = add_calibration(o, a);
    if (ok && o->plan.no_rewrites) a->list[a->count++] = "--no-rewrites";
    return ok;
}

static void free_arguments(arguments *a)
{
    for (size_t i = 0; i < a->made_count; i++) free(a->made[i]);
    free(a->made);
    free(a->list);
}

prony_session_options scale_session_options(const options *o)
{
    options one = *o;
    one.threads.intra_op = one.threads.inter_op = 1;
    prony_session_options session = session_options(&one);
    if (o->model.input_count) session.free_dims = PRONY_FREE_ONE; /* processes know the shapes from their files */
    return session;
}

/* Makes the study from the command's options. prony_study_create copies the arguments for the processes of the blocks,
 * so `a` is freed here on every path. */
static int plan(const options *o, prony_model *model, prony_study **study)
{
    prony_error error = {0};
    arguments a;
    if (!scale_study_gather(o, &a)) {
        free_arguments(&a);
        return fail(o, "out of memory");
    }
    prony_session_options session = scale_session_options(o);
    prony_study_options p = PRONY_STUDY_OPTIONS_INIT;
    p.intra_op = o->threads.intra_ops.values;
    p.intra_op_count = o->threads.intra_ops.count;
    p.inter_op = o->threads.inter_ops.values;
    p.inter_op_count = o->threads.inter_ops.count;
    p.batches = o->model.batches.values;
    p.batch_count = o->model.batches.count;
    p.precisions = o->precision.names;
    p.precision_count = o->precision.count;
    p.weak = o->measuring.weak;
    p.seed = o->model.seed;
    p.processes = (int)o->measuring.processes;
    p.runs = o->measuring.runs;
    p.seconds = o->measuring.seconds;
    p.warmup_runs = o->measuring.warmup;
    p.budget_seconds = o->measuring.budget;
    p.arguments = a.list;
    p.argument_count = a.count;
    p.session = &session;
    p.replicas = o->measuring.replicas.values;
    p.replica_count = o->measuring.replicas.count;
    prony_status status = prony_study_create(study, model, &p, &error);
    free_arguments(&a);
    return status == PRONY_OK ? EXIT_DONE : report_session_error(o, model, &error);
}

static bool to_file(const options *o)
{
    return o->files.json && strcmp(o->files.json, "-") != 0;
}

/* Refuses to replace the file of a study, which may have taken hours, without --overwrite. */
static int keep_study(const options *o)
{
    prony_study *there = NULL;
    prony_study_task task;
    prony_study_progress done;
    if (o->files.overwrite || !to_file(o) || access(o->files.json, F_OK) != 0) return EXIT_DONE;
    if (prony_study_load(&there, o->files.json, NULL, NULL) != PRONY_OK) return EXIT_DONE;
    prony_study_progress_of(there, &done);
    const bool unfinished = prony_study_next(there, &task);
    prony_study_release(there);
    if (done.done == 0) return EXIT_DONE;
    return fail(o,
                "'%s' holds %s study with %zu of %zu blocks measured; --resume continues it, --overwrite replaces it",
                o->files.json, unfinished ? "an unfinished" : "a finished", done.done, done.planned);
}

static int refuse_plan_options(const options *o)
{
    if (!o->measuring.replicas.count && !o->threads.intra_ops.count && !o->threads.inter_ops.count &&
        !o->model.batches.count && !o->precision.count && !o->measuring.runs && !(o->measuring.seconds > 0) &&
        !o->measuring.processes && !o->measuring.weak && (!(o->measuring.budget > 0) || o->files.repeat) &&
        o->measuring.warmup < 0 && !o->model.seed && !o->model.dim_count && !o->model.shape_count &&
        !o->model.input_count && !o->threads.affinity && !o->plan.no_rewrites)
        return EXIT_DONE;
    fail(o, "%s takes the whole plan from the study, so it allows no options on what to measure",
         o->files.resume ? "--resume" : "--repeat");
    return EXIT_USAGE;
}

static int open_study(const options *o, prony_model *model, const prony_study *earlier, prony_study **study)
{
    prony_error error = {0};
    if (o->files.resume && !to_file(o)) {
        fail(o, "--resume needs the study's file: --json FILE");
        return EXIT_USAGE;
    }
    if (o->files.resume && access(o->files.json, F_OK) == 0)
        return prony_study_load(study, o->files.json, model, &error) == PRONY_OK ? EXIT_DONE : report_error(o, &error);
    if (o->files.resume) return fail(o, "'%s': no study to continue", o->files.json);
    int code = keep_study(o);
    if (code != EXIT_DONE) return code;
    if (earlier) {
        prony_status status = prony_study_repeat(study, earlier, model, &error);
        if (status == PRONY_OK && o->measuring.budget > 0)
            status = prony_study_set_budget(*study, o->measuring.budget, &error);
        return status == PRONY_OK ? EXIT_DONE : report_error(o, &error);
    }
    return plan(o, model, study);
}

/* ---- measuring ---- */

void scale_say_progress(const scale_job *job)
{
    const options *o = job->o;
    prony_study_progress p;
    char text[160], width[60] = "", left[40];
    if (!want_progress(o)) return;
    prony_study_progress_of(job->study, &p);
    if (!isnan(p.half_width)) snprintf(width, sizeof width, ", intervals about +-%.1f %%", 100 * p.half_width);
    if (p.seconds_left >= 90)
        snprintf(left, sizeof left, "%.0f min", ceil(p.seconds_left / 60));
    else
        snprintf(left, sizeof left, "%.0f s", ceil(p.seconds_left));
    snprintf(text, sizeof text, "block %zu of %zu, %s left%s", p.done, p.planned, p.done ? left : "?", width);
    show_progress_text(text);
}

double scale_limit(const options *o, const prony_study_task *task)
{
    return o->limits.timeout > 0 ? o->limits.timeout : LIMIT_LEAST + LIMIT_FACTOR * task->seconds;
}

/* A full disk may have room later, so the study continues and the previous file stays. */
void scale_save(scale_job *job)
{
    prony_error error = {0};
    const options *o = job->o;
    if (!to_file(o) || prony_study_save(job->study, PRONY_FORMAT_JSON, NULL, o->files.json, &error) == PRONY_OK) return;
    if (!job->warned) {
        report_error(o, &error);
        fail(o, "the study continues in memory, and saving is tried again after later blocks");
    }
    job->warned = true;
}

void scale_save_in_turn(scale_job *job)
{
    enum { REST = 9 };
    int64_t begin = prony_now_ns();
    if (begin - job->saved_ns < REST * job->save_took_ns) return;
    scale_save(job);
    job->saved_ns = prony_now_ns();
    job->save_took_ns = job->saved_ns - begin;
}

/* ---- showing ---- */

static int write_form_to(const options *o, const prony_study *study, prony_format format, const char *chart,
                         const char *file)
{
    prony_error error = {0};
    prony_write_options w = write_options(o);
    w.chart = chart;
    prony_status status = strcmp(file, "-") == 0 ? prony_study_write(study, format, &w, write_to_stream, stdout, &error)
                                                 : prony_study_save(study, format, &w, file, &error);
    return status == PRONY_OK ? EXIT_DONE : report_error(o, &error);
}

static int scale_study_show(const options *o, const prony_study *study)
{
    int code = EXIT_DONE;
    if (!o->terminal.quiet && !stdout_taken(o)) code = write_form_to(o, study, PRONY_FORMAT_TEXT, NULL, "-");
    if (o->files.json) {
        int written = write_form_to(o, study, PRONY_FORMAT_JSON, NULL, o->files.json);
        if (code == EXIT_DONE) code = written;
    }
    for (size_t i = 0; i < o->files.export_count; i++) {
        int written =
            write_form_to(o, study, o->files.exports[i].format, o->files.exports[i].chart, o->files.exports[i].file);
        if (code == EXIT_DONE) code = written;
    }
    return code;
}

static int say_refusals(const options *o, const prony_study *study)
{
    size_t count, measured = 0;
    const prony_study_result *results = prony_study_results(study, &count);
    for (size_t i = 0; i < count; i++) measured += results[i].processes > 0;
    return measured ? EXIT_DONE : fail(o, "nothing could be measured; the reasons are above and in the file");
}

int scale_finish(scale_job *job)
{
    const options *o = job->o;
    prony_study *study = job->study, *earlier = job->earlier;
    prony_error error = {0};
    size_t different = 0;
    prony_study_progress done;
    prony_study_task task;
    const char *ended = job->ended ? job->ended : interrupted();
    prony_study_progress_of(study, &done);
    if (done.done == 0) return fail(o, "%s before anything was measured", ended ? ended : "interrupted");
    if (prony_study_analyse(study, &error) != PRONY_OK) return report_error(o, &error);
    if (earlier && prony_study_analyse(earlier, &error) != PRONY_OK) return report_error(o, &error);
    if (earlier && prony_study_compare(study, earlier, &different, &error) != PRONY_OK) return report_error(o, &error);
    int code = scale_study_show(o, study);
    fflush(stdout);
    if (code == EXIT_DONE) code = say_refusals(o, study);
    if (code == EXIT_DONE && different) code = EXIT_VERDICT;
    if (code != EXIT_FAILED && !(ended && prony_study_next(study, &task))) code = history_keep_study(o, study, code);
    if (ended && prony_study_next(study, &task))
        return fail(o, "%s after %zu of %zu blocks%s", job->ended ? job->ended : "interrupted", done.done, done.planned,
                    to_file(o) ? "; continue with --resume" : "; without --json this output is the only result");
    return code;
}

/* Called once, so that missing data is reported before measuring, and every process uses the same ranges. */
static int find_ranges_once(const options *o, prony_model *model)
{
    prony_model *made = NULL;
    options one = *o;
    one.precision.name = "int8";
    bool codes = false;
    for (size_t i = 0; i < o->precision.count; i++) codes = codes || strcmp(o->precision.names[i], "int8") == 0;
    if (!codes || !wants_codes(&one, model)) return EXIT_DONE;
    if (o->precision.keep_accuracy > 0)
        return fail(o, "--keep-accuracy: quantize the model first (prony quantize), then study the new file"),
               EXIT_USAGE;
    int code = quantize_model(&one, model, &made);
    prony_model_release(made);
    return code;
}

int scale_check(const options *o)
{
    if (o->files.join) return fail(o, "--join measures nothing; run it with prony: prony scale --join"), EXIT_USAGE;
    if (o->argument_count > 1) return fail(o, "'%s' is one argument too many", o->arguments[1]), EXIT_USAGE;
    if (o->files.resume && o->files.repeat) return fail(o, "--resume and --repeat cannot be combined"), EXIT_USAGE;
    if (o->measuring.replicas.count && o->measuring.runs) {
        fail(
            o,
            "--replicas needs seconds (-t), not runs (-r): with few runs the first replicas end before the last begin");
        return EXIT_USAGE;
    }
    return o->files.resume || o->files.repeat ? refuse_plan_options(o) : EXIT_DONE;
}

int scale_open(scale_job *job)
{
    prony_error error = {0};
    const options *o = job->o;
    int code = EXIT_DONE;
    if (o->files.repeat && prony_study_load(&job->earlier, o->files.repeat, job->model, &error) != PRONY_OK)
        return report_error(o, &error);
    if (!o->files.resume && !o->files.repeat) code = find_ranges_once(o, job->model);
    if (code == EXIT_DONE) code = open_study(o, job->model, job->earlier, &job->study);
    job->saved_ns = prony_now_ns();
    return code;
}

void scale_release(scale_job *job)
{
    prony_study_release(job->study);
    prony_study_release(job->earlier);
    prony_model_release(job->model);
}
