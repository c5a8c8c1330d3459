/* prony scale MODEL: measures a study block by block on this machine. prony scale STUDY shows a finished one. */
#include "bench/process/interrupt.h"
#include "bench/commands/scale.h"
#include "bench/commands/studies.h"
#include "bench/options/option_table.h"
#include "bench/session/judge.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int scale_command_measure(scale_job *job)
{
    prony_study_task task;
    int code = EXIT_DONE;
    while (code == EXIT_DONE && !interrupted() && prony_study_next(job->study, &task)) {
        scale_say_progress(job);
        code = scale_run_task(job->o, job->study, &task, scale_limit(job->o, &task));
        if (code == EXIT_DONE && !interrupted()) scale_save_in_turn(job);
    }
    clear_progress();
    return code;
}

/* The study in the file, as text and in the formats that options name. */
static int show_file(const options *o)
{
    prony_error error = {0};
    options own = *o;
    scale_job job = {.o = &own};
    if (!o->history.commit) own.history.commit = ""; /* a study of any day, and of any project */
    if (o->files.resume || o->files.repeat)
        return usage(o, "'%s' is a study: --repeat and --resume take a MODEL", o->arguments[0]);
    if (prony_study_load(&job.study, o->arguments[0], NULL, &error) != PRONY_OK) return report_error(o, &error);
    int code = scale_finish(&job);
    scale_release(&job);
    return code;
}

/* "FOLDER/NAME" with the folder of `file`. The caller frees it. */
static char *beside_file(const char *file, const char *name)
{
    const char *slash = strrchr(file, '/');
    const size_t folder = slash ? (size_t)(slash - file) + 1 : 0, size = folder + strlen(name) + 1;
    char *path = malloc(size);
    if (path) snprintf(path, size, "%.*s%s", (int)folder, file, name);
    return path;
}

/* The model of the study that --repeat names: where the study says, or beside the study. NULL: there is no such
 * file. */
static char *model_of_study(const prony_study *study, const char *file)
{
    const char *path = prony_study_model_path(study), *slash = path ? strrchr(path, '/') : NULL;
    if (!path || !*path) return NULL;
    if (access(path, R_OK) == 0) return strdup(path);
    char *beside = beside_file(file, slash ? slash + 1 : path);
    if (beside && access(beside, R_OK) == 0) return beside;
    free(beside);
    return NULL;
}

static int find_model(const options *o, char **path)
{
    prony_error error = {0};
    prony_study *study = NULL;
    prony_model *model = NULL;
    if (!o->files.repeat) return usage(o, "MODEL is missing");
    if (prony_study_load(&study, o->files.repeat, NULL, &error) != PRONY_OK) return report_error(o, &error);
    *path = model_of_study(study, o->files.repeat);
    int code = EXIT_DONE;
    if (!*path)
        code = fail(o, "'%s' is a study of '%s', which is missing; name the model: prony scale MODEL --repeat %s",
                    o->files.repeat, prony_study_model_path(study), o->files.repeat);
    prony_study_release(study);
    study = NULL;
    if (code == EXIT_DONE && load_model(o, &model, *path, &error) != PRONY_OK) code = report_error(o, &error);
    if (code == EXIT_DONE && prony_study_load(&study, o->files.repeat, model, &error) != PRONY_OK) {
        report_error(o, &error);
        code = fail(o, "the model has changed since the study; name the model: prony scale MODEL --repeat %s",
                    o->files.repeat);
    }
    prony_study_release(study);
    prony_model_release(model);
    return code;
}

static int scale_model(const options *o)
{
    prony_error error = {0};
    scale_job job = {.o = o};
    int code = scale_check(o);
    if (code == EXIT_DONE && load_model(o, &job.model, o->arguments[0], &error) != PRONY_OK)
        code = report_error(o, &error);
    if (code == EXIT_DONE) code = scale_open(&job);
    if (code == EXIT_DONE && prony_study_node_count(job.study))
        code = fail(o, "'%s' is a study over %zu nodes; continue it with prony-mpi scale --resume", o->files.json,
                    prony_study_node_count(job.study));
    if (code == EXIT_DONE) code = scale_command_measure(&job);
    if (code == EXIT_DONE) code = scale_finish(&job);
    scale_release(&job);
    return code;
}

static int join_studies(const options *o)
{
    size_t different;
    if (o->argument_count == 0) return usage(o, "--join needs studies: prony scale --join a.json b.json");
    if (o->files.resume || o->files.repeat || o->history.file)
        return usage(o, "--join measures nothing: no --resume, no --repeat and no --history");
    return show_studies(o, &different);
}

int command_scale(const options *o)
{
    char *path = NULL;
    if (o->files.join) return join_studies(o);
    if (o->argument_count > 1) return usage(o, "'%s' is one argument too many", o->arguments[1]);
    if (o->argument_count == 1 && is_report_file(o->arguments[0])) return show_file(o);
    if (o->argument_count == 1) return scale_model(o);
    int code = find_model(o, &path);
    options own = *o;
    const char *found[] = {path};
    own.arguments = found;
    own.argument_count = 1;
    if (code == EXIT_DONE && !o->terminal.quiet && !stdout_taken(o)) {
        put_text(stdout, path);
        puts(": the study's model, unchanged");
    }
    if (code == EXIT_DONE) code = scale_model(&own);
    free(path);
    return code;
}
