/* --generate of run, bench and profile: a generator made from the command line's options. */
#ifndef PRN_BENCH_GENERATE_GENERATE_H
#define PRN_BENCH_GENERATE_GENERATE_H

#include "bench/command.h"
#include "prony_generate.h"
#include "prony_quantize.h"

/* Prompts of all sequences, one behind the other. Zero-initialise. */
typedef struct prompt {
    int64_t *ids;
    size_t *lengths; /* [sequences] */
    size_t sequences, total, longest;
} prompt;

/* Reads --prompt-ids; without it the prompt stays empty. Returns 0, or the exit status after a message. */
int prompt_read(const options *o, prompt *out);
/* The same of the text that another option gives, by whose name messages call it. */
int prompt_parse(const options *o, const char *option, const char *text, prompt *out);
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

/* Compares over `tokens` tokens behind `ids`, with sessions of its own: both caches get the ids that are most probable
 * with float32. Does nothing without --kv-cache fp16 or int8 (out->tokens is 0). */
int cache_error_measure(const options *o, prony_model *model, const int64_t *ids, size_t count, int64_t tokens,
                        cache_error *out);

/* Tokens of the windows that longer sequences are cut into: --max-length, or 512, at most the model's positions. */
int64_t window_length(const options *o, const decoder *d, size_t longest);

/* true: --calibrate gives token ids, as a .npy file or as text. */
bool calibrates_tokens(const options *o);
/* Lets a decoder read the tokens of --calibrate. The caller releases *out in any case. */
int importance_of_tokens(const options *o, prony_model *model, prony_importance **out);

int command_run_generate(const options *o);
int command_bench_generate(const options *o, int background_threads);
int command_profile_generate(const options *o);
int command_eval_tokens(const options *o);

#endif
