/* --generate of run, bench and profile: a generator made from the command line's options. */
#ifndef PRN_BENCH_GENERATE_GENERATE_H
#define PRN_BENCH_GENERATE_GENERATE_H

#include "bench/command.h"
#include "prony_generate.h"

/* Prompts of all sequences, one behind the other. Zero-initialise. */
typedef struct prompt {
    int64_t *ids;
    size_t *lengths; /* [sequences] */
    size_t sequences, total, longest;
} prompt;

/* Reads --prompt-ids; without it the prompt stays empty. Returns 0, or the exit status after a message. */
int prompt_read(const options *o, prompt *out);
void prompt_free(prompt *p);
/* Reads ids separated by commas. The caller frees *ids. */
int ids_parse(const options *o, const char *option, const char *text, int64_t **ids, size_t *count);

/* A session and a generator over it. Zero-initialise. */
typedef struct decoder {
    prony_session *session;
    prony_generator *generator;
} decoder;

/* `length`: tokens that a sequence needs room for. Other inputs of the model are those of -i, or generated. */
int decoder_open(const options *o, prony_model *model, int64_t batch, int64_t length, bool profile, decoder *out);
void decoder_close(decoder *d);

/* Logits with a cache in fewer bits beside those with one of float32. */
typedef struct cache_error {
    int64_t tokens;
    double max, rms, equal_ids;
} cache_error;

/* Compares over `tokens` tokens behind `ids`, with sessions of its own: both caches get the ids that are most probable with
 * float32. Does nothing without --kv-cache fp16 or int8 (out->tokens is 0). */
int cache_error_measure(const options *o, prony_model *model, const int64_t *ids, size_t count, int64_t tokens,
                        cache_error *out);

int command_run_generate(const options *o);
int command_bench_generate(const options *o, int background_threads);
int command_profile_generate(const options *o);
int command_eval_tokens(const options *o);

#endif
