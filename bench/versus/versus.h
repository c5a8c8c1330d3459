/* The `versus` command: versus.c measures in turns, versus_outputs.c passes inputs on and compares outputs. */
#ifndef PRN_BENCH_VERSUS_VERSUS_H
#define PRN_BENCH_VERSUS_VERSUS_H

#include "bench/command.h"
#include "prony_judge.h"

enum { VERSUS_PATH = 4096 };

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
/* Compares both engines' outputs; the peer's are in the folder as output_K.npy. */
int versus_compare(const versus_job *job, prony_versus *versus, const prony_model *model);

#endif
