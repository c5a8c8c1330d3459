/* Kernels chosen by measurement: of the rows that serve a step at the precision in force, the one that takes the least time here.
 *
 * What was measured is a row per problem: operator, types, shapes, layouts, attributes, threads, precision and the kernels there are. Rows
 * belong to a prn_tuning, which one session has for all its plans; steps point at them. Whoever gives a session its prn_tune_files keeps
 * them from process to process. Used by one thread at a time. */
#ifndef PRN_ENGINE_PLAN_TUNE_H
#define PRN_ENGINE_PLAN_TUNE_H

#include "engine/bind/engine_model.h"

struct prn_plan;
struct prn_step;

enum { PRN_TUNE_PROBLEM_BYTES = 65, PRN_TUNE_MOST_KERNELS = 12 };

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

typedef struct prn_tuning {
    prn_pool pool;
    prn_tune_row **rows;
    size_t count, capacity;
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
/* Adds to the note. */
void prn_tuning_say(prn_tuning *tuning, const char *format, ...) PRN_PRINTF(2, 3);

/* Takes the fastest kernel for a step that has the standard one, before its layouts are settled: by the tuning's row for the problem, or by
 * measurement. A kernel that fails is not taken; PRONY_CANCELLED and no memory are the only failures. */
PRN_MUST_USE prony_status prn_plan_tune(struct prn_plan *plan, struct prn_step *step, prony_error *error);

/* ---- tune_measure.c */

/* Fills in row->trials and row->kernel. kernels[0] is the standard one. */
PRN_MUST_USE prony_status prn_tune_measure(struct prn_plan *plan, struct prn_step *step, const prn_kernel *const *kernels, size_t count,
                                           prn_tune_row *row, prony_error *error);
/* Which of them to take, by times of interleaved rounds, reorders included: kernel k's in round r is times[k * most + r]. Kernels with fewer
 * rounds than the first do not count. The first, unless another one's median is clearly below its own and it wins most rounds. */
size_t prn_tune_choose(const int64_t *times, size_t most, const size_t *rounds, size_t count);

#endif
