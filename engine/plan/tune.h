/* Kernels chosen by measurement: of the rows that serve a step at the precision in force, the one that takes the least
 * time here.
 *
 * What was measured is a row per problem: operator, types, shapes, layouts, attributes, threads, precision and the
 * kernels there are. Rows belong to a prn_tuning, which one session has for all its plans; steps point at them. What is
 * fastest one by one need not be so together: a plan that follows rows is held against the default one, and a verdict
 * per program says whether it stays. Whoever gives a session its prn_tune_files keeps them from process to process.
 * Used by one thread at a time. */
#ifndef PRN_ENGINE_PLAN_TUNE_H
#define PRN_ENGINE_PLAN_TUNE_H

#include "engine/bind/program.h"

struct prn_plan;
struct prn_plan_options;
struct prn_step;

enum { PRN_TUNE_PROBLEM_BYTES = 65, PRN_TUNE_MOST_KERNELS = 32, PRN_TUNE_LEAST_ROUNDS = 5, PRN_TUNE_MOST_ROUNDS = 21 };

typedef struct prn_tune_trial {
    const char *kernel;
    int64_t time_ns;     /* of one run, the median; -1: it failed */
    int64_t reorder_ns;  /* of the Reorders that its layouts ask for */
    const char *failure; /* NULL: it did not */
} prn_tune_trial;

typedef struct prn_tune_row {
    const char *problem; /* hexadecimal digits */
    const char *op, *about;
    const char *kernel, *standard; /* taken; taken where nothing is measured */
    const prn_tune_trial *trials;
    size_t trial_count;
    bool kept; /* by a process before this one */
    bool used; /* a step of this process took it */
} prn_tune_row;

#define PRN_TUNE_FAILED "kernels by measurement are taken back, a run failed: %.200s"

/* Of the plan of one program, run as a whole beside the default one. */
typedef struct prn_tune_verdict {
    const char *program;          /* hexadecimal digits */
    bool taken_back;              /* the default kernels stay */
    int64_t default_ns, tuned_ns; /* of one run, medians; -1: one of them failed */
    const char *failure;          /* why; NULL: they did not */
} prn_tune_verdict;

typedef struct prn_tuning {
    prn_bump pool;
    prn_tune_row **rows;
    size_t count, capacity;
    prn_tune_verdict **verdicts;
    size_t verdict_count, verdict_capacity;
    int64_t (*now_ns)(void);   /* what whole plans are timed by */
    int64_t spent_ns, most_ns; /* on measuring; no problem is begun beyond */
    int64_t file_ns;           /* on reading and writing the file */
    size_t measured, kept;     /* problems: measured here; taken from the file */
    size_t left;               /* steps that had no time */
    bool unsaved;
    const char *file; /* where rows are kept; NULL: nowhere */
    char note[320];   /* what is to be said of it; "": nothing */
} prn_tuning;

/* What a file of rows is for. */
typedef struct prn_tune_key {
    const prony_model *model;
    const char *precision;
    int threads, workers; /* as a session is asked for */
} prn_tune_key;

/* Keeps rows from process to process. Neither fails: what is in the way is said in `note`. */
typedef struct prn_tune_files {
    void (*load)(prn_tuning *tuning, const prn_tune_key *key, bool again); /* again: for `file` alone, no rows */
    void (*save)(prn_tuning *tuning, const prn_tune_key *key);
} prn_tune_files;

PRN_MUST_USE prony_status prn_tuning_create(prn_tuning **out, prony_error *error);
void prn_tuning_release(prn_tuning *tuning);
/* The row becomes the tuning's, whose pool has what it points at; false: out of memory. */
PRN_MUST_USE bool prn_tuning_add(prn_tuning *tuning, prn_tune_row *row);
/* The verdict becomes the tuning's, in place of another one of its program; false: out of memory. */
PRN_MUST_USE bool prn_tuning_judged(prn_tuning *tuning, prn_tune_verdict *verdict);
/* NULL: there is none. */
const prn_tune_verdict *prn_tuning_verdict(const prn_tuning *tuning, const char *program);
/* Adds to the note, unless it says so already. */
void prn_tuning_say(prn_tuning *tuning, const char *format, ...) PRN_PRINTF(2, 3);

/* Takes the fastest kernel for a step that has the standard one, before its layouts are settled: by the tuning's row
 * for the problem, or by measurement. A kernel that fails is not taken; PRONY_CANCELLED and no memory are the only
 * failures. */
PRN_MUST_USE prony_status prn_plan_tune(struct prn_plan *plan, struct prn_step *step, prony_error *error);
/* Steps, those in subgraphs included, for which rows name another kernel than the standard one. */
size_t prn_plan_tune_changes(const struct prn_plan *plan);
/* The rows of a plan become those of another plan of the same program, whose kernels stay. */
void prn_plan_tune_note(struct prn_plan *plan, const struct prn_plan *tuned);
/* What tells one program, planned with these options, from another of the model. */
void prn_tune_describe(const prn_program *program, const struct prn_plan_options *options,
                       char text[PRN_TUNE_PROBLEM_BYTES]);

/* ---- tune_measure.c */

/* Fills in row->trials and row->kernel. kernels[0] is the standard one. */
PRN_MUST_USE prony_status prn_tune_measure(struct prn_plan *plan, struct prn_step *step,
                                           const prn_kernel *const *kernels, size_t count, prn_tune_row *row,
                                           prony_error *error);

/* ---- tune_rounds.c */

/* Numbers of either sign around 1, of any type that computes; what may be an index is 0. */
void prn_tune_fill(void *data, size_t bytes, prony_dtype dtype);
/* At most PRN_TUNE_MOST_ROUNDS of them. */
int64_t prn_tune_median(const int64_t *times, size_t count);
/* Which of them to take, by times of interleaved rounds, reorders included: kernel k's in round r is times[k * most +
 * r]. Kernels with fewer rounds than the first do not count. The first, unless another one's median is clearly below
 * its own and it wins most rounds. */
size_t prn_tune_choose(const int64_t *times, size_t most, const size_t *rounds, size_t count);

/* Runs the tuned plan or the default one once. */
typedef prony_status (*prn_tune_run)(void *data, bool tuned, int64_t *time_ns, prony_error *error);
/* Runs both in turns and fills in times and taken_back: the tuned one stays where its median is 1 % below and it wins
 * three rounds of four. Failures are those of `run`. */
PRN_MUST_USE prony_status prn_tune_judge(prn_tune_verdict *verdict, prn_tune_run run, void *data, prony_error *error);

#endif
