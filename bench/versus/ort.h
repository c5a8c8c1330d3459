/* ONNX Runtime through its C interface, from a library loaded at run time. */
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
    char **output_names; /* owned by the allocator */
    size_t input_count, output_count;
    char error[ORT_TEXT]; /* of the function that returned false */
} ort;

typedef struct ort_input {
    const char *name;
    const prony_value *value;
} ort_input;

/* Loads the library; false: it cannot be used, for the reason in ort->error. ort_close is needed in either case. */
bool ort_open(ort *o, const char *path);
/* A session on the model, `threads` inside of operators; `profile_prefix` NULL: without its profile. */
bool ort_session(ort *o, const char *model, int threads, const char *profile_prefix);
/* The caller owns the values; every run reads them. */
bool ort_bind(ort *o, const ort_input *inputs, size_t count);
/* Binds input `index` of ort_bind to another value, which every later run reads. */
bool ort_set_input(ort *o, size_t index, const prony_value *value);
/* Output `output` of the last run becomes input `input` of the next one, which owns it. */
void ort_feed_back(ort *o, size_t output, size_t input);
/* The next run writes output `output` into the bytes of input `input`. */
void ort_write_into_input(ort *o, size_t output, size_t input);
/* One run; outputs stay until ort_drop_outputs. */
bool ort_run(ort *o);
/* Output `index` as a value; the library owns its bytes. */
bool ort_output(ort *o, size_t index, prony_value *out);
void ort_drop_outputs(ort *o);
/* The profile is complete once the session is closed. */
void ort_close(ort *o);

#endif
