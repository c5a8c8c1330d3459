/* ONNX Runtime through its C interface, from a library that is only known when it is there. */
#ifndef PRN_BENCH_VERSUS_ORT_H
#define PRN_BENCH_VERSUS_ORT_H

#include "bench/command.h"

#include <stdint.h>

enum { ORT_TEXT = 512 };

typedef struct ort {
    void *library;
    const void *const *api; /* its functions by their published positions */
    char version[64];
    void *environment, *options, *session, *memory, *allocator;
    void **inputs, **outputs;
    const char **input_names;
    char **output_names; /* the allocator's */
    size_t input_count, output_count;
    char error[ORT_TEXT]; /* of what returned false */
} ort;

typedef struct ort_input {
    const char *name;
    const prony_value *value;
} ort_input;

/* Loads the library; false: ort->error says why it is of no use. ort_close is needed in either case. */
bool ort_open(ort *o, const char *path);
/* A session on the model, `threads` inside of operators; `profile_prefix` NULL: without its profile. */
bool ort_session(ort *o, const char *model, int threads, const char *profile_prefix);
/* The values stay the caller's and are read by every run. */
bool ort_bind(ort *o, const ort_input *inputs, size_t count);
/* One run; outputs stay until ort_drop_outputs. */
bool ort_run(ort *o);
/* Output `index` as a value whose bytes are the library's. */
bool ort_output(ort *o, size_t index, prony_value *out);
void ort_drop_outputs(ort *o);
/* Its profile is whole once the session is closed. */
void ort_close(ort *o);

#endif
