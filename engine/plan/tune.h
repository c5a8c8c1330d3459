/* Chooses kernels by measurement: of the kernels that support a step at the current precision, the fastest on this
 * machine.
 *
 * Each problem has one row: operator, types, shapes, layouts, attributes, threads, precision and available kernels.
 * Rows belong to a prn_tuning, which one session has for all its plans; steps point at them. Kernels that are fastest
 * alone need not be fastest together. So the tuned plan is compared with the default one, and a verdict per program
 * says which stays. A session with prn_tune_files keeps rows and verdicts from process to process. Used by one thread
 * at a time. */
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
    int64_t reorder_ns;  /* of the Reorders that its layouts need */
    const char *failure; /* NULL: it did not fail */
} prn_tune_trial;

typedef struct prn_tune_row {
    const char *problem; /* hexadecimal digits */
    const char *op, *about;
    const char *kernel, *standard; /* the chosen kernel; the default kernel */
    const prn_tune_trial *trials;
    size_t trial_count;
    bool kept; /* by an earlier process */
    bool used; /* a step of this process took it */
} prn_tune_row;

#define PRN_TUNE_FAILED "measured kernels are dropped because a run failed: %.200s"

/* The result for the plan of one program, run as a whole against the default plan. */
typedef struct prn_tune_verdict {
    const char *program;          /* hexadecimal digits */
    bool reverted;                /* the default kernels stay */
    int64_t default_ns, tuned_ns; /* of one run, medians; -1: one of them failed */
    const char *failure;          /* the reason; NULL: no run failed */
} prn_tune_verdict;

typedef struct prn_tuning {
    prn_bump pool;
    prn_tune_row **rows;
    size_t count, capacity;
    prn_tune_verdict **verdicts;
    size_t verdict_count, verdict_capacity;
    int64_t (*now_ns)(void);   /* clock for whole plans */
    int64_t spent_ns, most_ns; /* on measuring; no new problem begins after most_ns */
    int64_t file_ns;           /* on reading and writing the file */
    size_t measured, kept;     /* problems measured here; problems taken from the file */
    size_t left;               /* steps not measured for lack of time */
    bool unsaved;
    const char *file; /* where rows are kept; NULL: nowhere */
    char note[320];   /* the remark for the report; "": none */
} prn_tuning;

/* The identity of a file of rows. */
typedef struct prn_tune_key {
    const prony_model *model;
    const char *precision;
    int threads, workers; /* as a session is asked for */
} prn_tune_key;

/* Keeps rows from process to process. Neither function fails; an obstacle is described in `note`. */
typedef struct prn_tune_files {
    void (*load)(prn_tuning *tuning, const prn_tune_key *key, bool again); /* again: for `file` alone, no rows */
    void (*save)(prn_tuning *tuning, const prn_tune_key *key);
} prn_tune_files;

PRN_MUST_USE prony_status prn_tuning_create(prn_tuning **out, prony_error *error);
void prn_tuning_release(prn_tuning *tuning);
/* Takes over the row, whose pointers must lie in the tuning's pool; false: out of memory. */
PRN_MUST_USE bool prn_tuning_add(prn_tuning *tuning, prn_tune_row *row);
/* Takes over the verdict, in place of an earlier one of the same program; false: out of memory. */
PRN_MUST_USE bool prn_tuning_set_verdict(prn_tuning *tuning, prn_tune_verdict *verdict);
/* NULL: no verdict. */
const prn_tune_verdict *prn_tuning_verdict(const prn_tuning *tuning, const char *program);
/* Adds a sentence to the note, once. */
void prn_tuning_add_note(prn_tuning *tuning, const char *format, ...) PRN_PRINTF(2, 3);

/* Replaces a step's default kernel by the fastest one, before layouts are assigned: by the tuning's row for the
 * problem, or by measurement. A kernel that fails is not taken; PRONY_CANCELLED and no memory are the only failures. */
PRN_MUST_USE prony_status prn_plan_tune(struct prn_plan *plan, struct prn_step *step, prony_error *error);
/* Number of steps, subgraphs included, whose rows name another kernel than the default. */
size_t prn_plan_tune_changes(const struct prn_plan *plan);
/* Copies the rows of `tuned` to the steps of another plan of the same program; that plan's kernels stay. */
void prn_plan_tune_note(struct prn_plan *plan, const struct prn_plan *tuned);
/* The key of a program planned with these options, among the model's programs. */
void prn_tune_describe(const prn_program *program, const struct prn_plan_options *options,
                       char text[PRN_TUNE_PROBLEM_BYTES]);

/* ---- tune_measure.c */

/* Fills in row->trials and row->kernel. kernels[0] is the default. */
PRN_MUST_USE prony_status prn_tune_measure(struct prn_plan *plan, struct prn_step *step,
                                           const prn_kernel *const *kernels, size_t count, prn_tune_row *row,
                                           prony_error *error);

/* ---- tune_rounds.c */

/* Numbers of either sign around 1, of any arithmetic type; possible indices are 0. */
void prn_tune_fill(void *data, size_t bytes, prony_dtype dtype);
/* The median of at most PRN_TUNE_MOST_ROUNDS times. */
int64_t prn_tune_median(const int64_t *times, size_t count);
/* Chooses a kernel by times of interleaved rounds, reorders included: times[k * most + r] belongs to kernel k, round r.
 * Kernels with fewer rounds than the first do not count. Returns the first, unless another kernel's median is clearly
 * lower and it wins most rounds. */
size_t prn_tune_choose(const int64_t *times, size_t most, const size_t *rounds, size_t count);

/* Runs the tuned plan or the default one once. */
typedef prony_status (*prn_tune_run)(void *data, bool tuned, int64_t *time_ns, prony_error *error);
/* Runs both in turns and fills in times and reverted: the tuned one stays where its median is 1 % below and it wins
 * three rounds of four. Failures are those of `run`. */
PRN_MUST_USE prony_status prn_tune_judge(prn_tune_verdict *verdict, prn_tune_run run, void *data, prony_error *error);

#endif
