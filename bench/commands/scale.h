/* The `scale` command: scale_study.c (the study and its file), scale.c (on this machine), scale_processes.c (its
 * processes) and worker.c (the work of one process). bench/cluster/ measures the same studies on several nodes. */
#ifndef PRN_BENCH_COMMANDS_SCALE_H
#define PRN_BENCH_COMMANDS_SCALE_H

#include "bench/process/child.h"
#include "bench/command.h"
#include "prony_judge.h"

/* ---- scale_study.c ---- */

/* Zero-initialise, but for `o`. Owned by scale_release. */
typedef struct scale_job {
    const options *o;
    prony_model *model;
    prony_study *study, *earlier; /* earlier: of --repeat */
    const char *ended;            /* why measuring ended early without a signal: "rank 2 (host) was lost" */
    int64_t saved_ns, save_took_ns;
    bool warned; /* that the file cannot be written */
} scale_job;

/* Checks that the options are compatible. EXIT_DONE, or EXIT_USAGE after a message. */
int scale_check(const options *o);
/* Plans, repeats or resumes the study of job->model. EXIT_DONE, or another status after a message. */
int scale_open(scale_job *job);
prony_session_options scale_session_options(const options *o);
void scale_say_progress(const scale_job *job);
/* Seconds after which an unresponsive process is ended. */
double scale_limit(const options *o, const prony_study_task *task);
/* Writes the file of --json. */
void scale_save(scale_job *job);
/* The same, unless saving would take more than a tenth of the time. Each save writes the whole, growing file. */
void scale_save_in_turn(scale_job *job);
/* Analyses the measurements, shows and writes the results. */
int scale_finish(scale_job *job);
void scale_release(scale_job *job);

/* ---- scale_processes.c ---- */

/* Arguments of a process. Zero-initialise. */
typedef struct scale_arguments {
    const char **list; /* ends with NULL; free() it */
    size_t count, capacity;
    bool no_memory;
    char numbers[8][40], trips[24];
    size_t number_count;
} scale_arguments;

/* Arguments of the process that measures a task. The strings live as long as `w`, `o`, `study` and `task`. */
void scale_make_words(scale_arguments *w, const options *o, const prony_study *study, const prony_study_task *task);

enum { SCALE_FAILURE_BYTES = CHILD_WORDS + 100 };
/* The results of one block's processes: one, or replicas that ran at once. */
typedef struct scale_round {
    size_t count;
    prony_study_process *processes; /* their text lies in `children` and `failure` */
    child *children;
    char failure[SCALE_FAILURE_BYTES];
} scale_round;

/* Runs `count` processes to their end. 0, or the errno of a failed start; scale_free_round afterwards. */
int scale_run_round(scale_round *round, const char *const *words, size_t count, double seconds_limit);
void scale_free_round(scale_round *round);
/* Runs one task in its own process and adds the result to the study. A failed process is recorded and also gives
 * EXIT_DONE; an interruption adds nothing. `seconds_limit`: seconds after which an unresponsive process is ended.
 */
int scale_run_task(const options *o, prony_study *study, const prony_study_task *task, double seconds_limit);

#endif
