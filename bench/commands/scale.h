/* The `scale` command: scale_study.c (the study and its file), scale.c (on this machine), scale_processes.c (its processes)
 * and worker.c (what such a process does). bench/cluster/ measures the same studies on several nodes. */
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
    const char *ended;            /* why measuring ended early, where no signal did it: "rank 2 (host) was lost" */
    int64_t saved_ns, save_took_ns;
    bool warned; /* that the file cannot be written */
} scale_job;

/* Whether the options fit together. EXIT_DONE, or EXIT_USAGE after a message. */
int scale_check(const options *o);
/* Plans, repeats or takes up the study of job->model. EXIT_DONE, or another status after a message. */
int scale_open(scale_job *job);
prony_session_options scale_session_options(const options *o);
void scale_say_progress(const scale_job *job);
/* Seconds after which a process that does not answer is ended. */
double scale_limit(const options *o, const prony_study_task *task);
/* Writes the file of --json. */
void scale_save(scale_job *job);
/* The same, unless that would take more than a tenth of the time: the file is written whole, and grows. */
void scale_save_in_turn(scale_job *job);
/* Analyses what was measured, shows and writes it. */
int scale_finish(scale_job *job);
void scale_release(scale_job *job);

/* ---- scale_processes.c ---- */

/* Arguments of a process. Zero-initialise. */
typedef struct scale_words {
    const char **list; /* ends with NULL; free() it */
    size_t count, capacity;
    bool no_memory;
    char numbers[8][40], trips[24];
    size_t number_count;
} scale_words;

/* Arguments of the process that measures a task. The strings live as long as `w`, `o`, `study` and `task`. */
void scale_make_words(scale_words *w, const options *o, const prony_study *study, const prony_study_task *task);

enum { SCALE_FAILURE_BYTES = CHILD_WORDS + 100 };
/* What one block's processes did: one, or replicas that ran at once. */
typedef struct scale_round {
    size_t count;
    prony_study_process *processes; /* their text lies in `children` and `failure` */
    child *children;
    char failure[SCALE_FAILURE_BYTES];
} scale_round;

/* Runs `count` processes to their end. 0, or the errno of what kept one from starting; scale_free_round afterwards. */
int scale_run_round(scale_round *round, const char *const *words, size_t count, double seconds_limit);
void scale_free_round(scale_round *round);
/* Runs one task in a process of its own and adds what came of it to the study. EXIT_DONE also where the process failed,
 * which is kept; nothing is added after an interruption. `seconds_limit`: when a process that does not answer is ended.
 */
int scale_run_task(const options *o, prony_study *study, const prony_study_task *task, double seconds_limit);

#endif
