/* The `versus` command: versus.c measures in turns, versus_outputs.c passes inputs on and compares outputs. */
#ifndef PRN_BENCH_VERSUS_VERSUS_H
#define PRN_BENCH_VERSUS_VERSUS_H

#include "bench/command.h"
#include "bench/process/child.h"
#include "prony_generate.h"
#include "prony_judge.h"

enum { VERSUS_PATH = 4096, VERSUS_NUMBER = 32 };

typedef struct versus_job {
    const options *o;
    char folder[64];           /* of the files that processes exchange */
    char library[VERSUS_PATH]; /* of the peer */
    char peer[100];            /* "onnxruntime 1.30.0" */
    int *threads;
    size_t thread_count;
    const char *(*inputs)[2]; /* name and file, owned */
    size_t input_count;
} versus_job;

/* Loads the model, chooses thread counts, makes and saves the inputs, and runs once. The outputs are in the folder as
 * own_K.npy. The caller releases *model. */
int versus_prepare(versus_job *job, prony_model **model);
/* Saves a value for the peer. `what` and `name` stand for it in messages. */
int versus_save_value(const versus_job *job, const prony_value *value, const char *what, const char *name,
                      const char *path);
/* Saves the session's inputs; with a generator, those alone that it does not feed. */
int versus_save_inputs(versus_job *job, const prony_model *model, const prony_session *session,
                       const prony_generator *generator);
/* Both engines use the session's thread count for -x auto. */
int versus_choose_threads(versus_job *job, const prony_session *session);
/* Compares both engines' outputs; the peer's are in the folder as output_K.npy. */
int versus_compare(const versus_job *job, prony_versus *versus, const prony_model *model);

/* ---- versus.c: for both kinds of comparison */

/* Finds the peer's library: job->library. */
int versus_find_library(versus_job *job);
int versus_make_folder(versus_job *job);
void versus_remove_folder(const versus_job *job);
/* Runs `command` on the model and the saved inputs; `more` ends with NULL. The child owns the output and has to be
 * freed in any case. */
int versus_run_child(const versus_job *job, child *c, const char *command, int threads, const char *const *more);
/* A process of one engine, whose measurement it adds. */
typedef int (*versus_side)(void *user, int threads, bool peer);
/* Measures rounds with a pair for each thread count, and at most as many again for busy pairs of `versus`. */
int versus_measure_pairs(versus_job *job, prony_versus *versus, versus_side one_side, void *user);
/* The rest of the peer's line that begins with a word. */
bool versus_text_of(const child *c, const char *word, char text[VERSUS_NUMBER]);
bool versus_number_of(const child *c, const char *word, int64_t *out);
/* The peak at the end of the runs, because a report of thousands of layers takes memory itself. */
int64_t versus_own_peak(const prony_report *report);

/* ---- versus_generate.c, peer_generate.c: decoders */

int command_versus_generate(const options *o);
/* The peer's process of versus --generate. */
int peer_generate(const options *o);
/* The process's own peak so far; -1: not known. */
long long peer_peak_bytes(void);

#endif
