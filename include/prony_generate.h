/* Text generation with a decoder: the loop around a session that feeds token ids, positions, masks and the cache of
 * keys and values, and chooses the next ids. Tokenisers are the caller's business. Conventions: prony.h. */
#ifndef PRONY_GENERATE_H
#define PRONY_GENERATE_H

#include "prony_report.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The storage of a model for the keys and values of earlier tokens. */
typedef enum prony_cache_kind {
    PRONY_CACHE_NONE,    /* the model has no cache: every step computes the whole sequence again */
    PRONY_CACHE_GROWING, /* past inputs of P rows, present outputs of P + S rows */
    PRONY_CACHE_SHARED   /* past inputs and present outputs of one size (GroupQueryAttention, static caches, states) */
} prony_cache_kind;

/* The elements of a growing cache, or of one that GroupQueryAttention writes. Fewer bits take less memory, and
 * attention reads fewer bytes; logits differ a little from those of float32. */
typedef enum prony_cache_type {
    PRONY_CACHE_FP32,
    PRONY_CACHE_FP16, /* a half each; overflow ends at 65504 */
    PRONY_CACHE_INT8  /* a byte each and a float32 scale for each row of a head: its largest magnitude / 127 */
} prony_cache_type;

/* A cache that the caller names. One '*' in both names stands for any text: "past.*.k", "present.*.k". */
typedef struct prony_cache_names {
    const char *past, *present;
} prony_cache_names;

/* The purpose of an input that the caller names: `role` as prony_generator_feed gives it, such as "ids" or
 * "past_length". */
typedef struct prony_input_role {
    const char *role, *input;
} prony_input_role;

/* The choice of the next id. All zero: the id with the largest logit (greedy), the smallest such id at a tie. */
typedef struct prony_sampling {
    double temperature; /* 0: greedy; else logits are divided by it */
    int64_t top_k;      /* only so many of the most probable ids; 0: all */
    double top_p;       /* the smallest set of ids with this probability; 0 and 1: all */
    double min_p;       /* ids with at least this part of the largest probability; 0: all */
    /* Divides positive logits of ids in the sequence, multiplies negative ones; 0 and 1: none. */
    double repetition_penalty;
    uint64_t seed; /* of a stream for each sequence and position */
} prony_sampling;

typedef struct prony_generator_options {
    size_t struct_size;
    int64_t batch;      /* sequences; 0: 1 */
    int64_t max_length; /* tokens of a sequence, prompt and new ones; 0: the model's positions, at most 2048 */
    prony_sampling sampling;
    const int64_t *stop_ids; /* a sequence ends behind one of these */
    size_t stop_count;
    /* Names of the model's inputs and outputs; NULL: found by the names that exporters give. */
    const char *input_ids, *attention_mask, *position_ids, *logits;
    const prony_cache_names *caches;
    size_t cache_count;
    /* Tokens of a prompt that one run computes at most, so that its memory does not follow the prompt's length; 0: all
     * of them. Models without a cache, merged decoders and first prompts of different lengths with a shared cache take
     * all. With dynamic quantization chunks change the logits: a range covers all tokens of a run. */
    int64_t chunk;
    const prony_input_role *roles; /* further inputs; they go before those that are found */
    size_t role_count;
    /* PRONY_UNSUPPORTED: the model's cache stays float32, and the message names the input and the node that reads it.
     * The first prompt is computed at once and rounded when it is stored. Later prompts take runs of `chunk` tokens,
     * and of one token for the rest; all at once if GroupQueryAttention writes the cache. */
    prony_cache_type cache_type;
} prony_generator_options;
#define PRONY_GENERATOR_OPTIONS_INIT PRONY_INIT(prony_generator_options)

/* Figures of a generator, as of its last call. Strings are borrowed from the generator. */
typedef struct prony_generator_info {
    prony_cache_kind kind;
    const char *convention; /* names of the first cache, "past_key_values.0.key -> present.0.key"; "": no cache */
    int64_t batch, max_length;
    int64_t length;              /* tokens of the longest sequence, the id that the last call chose included */
    int64_t computed;            /* of them in the cache */
    int64_t vocabulary;          /* ids are below it; 0: not known */
    size_t cache_count;          /* tensors that are fed back */
    uint64_t cache_bytes;        /* held for them */
    uint64_t cache_live_bytes;   /* of them rows of computed tokens */
    uint64_t cache_copied_bytes; /* rows of earlier tokens that the last run copied */
    int64_t last_run_ns;         /* of the session's run in the last call; 0: the call made no run */
} prony_generator_info;

/* A loop over one session. Not thread-safe. Between its calls the caller may run the session with inputs of its own:
 * the cache keeps its rows, and the next call binds the generator's inputs again. */
typedef struct prony_generator prony_generator;

/* Finds the decoder's inputs and outputs and takes memory for its cache. Inputs that the generator does not know (an
 * encoder's states) are the caller's to set in the session, before prony_generator_prompt. PRONY_INVALID_MODEL: the
 * model is not a decoder; the message says what is missing. The session must outlive the generator, and be made without
 * max_dims. */
PRONY_API PRONY_MUST_USE prony_status prony_generator_create(prony_generator **out, prony_session *session,
                                                             const prony_generator_options *options,
                                                             prony_error *error);
/* Frees the generator and its cache. The session stays, with the inputs that the caller bound. NULL is accepted. */
PRONY_API void prony_generator_release(prony_generator *generator);

/* Appends ids to every sequence and computes them: `lengths[batch]` ids each, one sequence behind the other in `ids`.
 * An id that prony_generator_next chose last is computed too. Sequences of different lengths are allowed in the first
 * call. After a failure the generator is as it was before. PRONY_OUT_OF_RANGE: an id is not in the vocabulary, or a
 * sequence would be longer than max_length. */
PRONY_API PRONY_MUST_USE prony_status prony_generator_prompt(prony_generator *generator, const int64_t *ids,
                                                             const size_t *lengths, prony_error *error);
/* Chooses ids[batch], one for each sequence; the id before is computed first. A sequence that has ended gets its stop
 * id again. *done (may be NULL): all sequences have ended. PRONY_OUT_OF_RANGE: the context is full (max_length). */
PRONY_API PRONY_MUST_USE prony_status prony_generator_next(prony_generator *generator, int64_t *ids, bool *done,
                                                           prony_error *error);
/* Keeps the first `length` tokens (0 to the present length) of the longest sequence and drops the same number from
 * the others. The next call is prony_generator_prompt, or prony_generator_next, which computes the last kept token
 * again. */
PRONY_API PRONY_MUST_USE prony_status prony_generator_rewind(prony_generator *generator, int64_t length,
                                                             prony_error *error);
/* Chooses by `sampling`, which is copied, from the next id on. PRONY_INVALID_ARGUMENT: a value is out of its range. */
PRONY_API PRONY_MUST_USE prony_status prony_generator_set_sampling(prony_generator *generator,
                                                                   const prony_sampling *sampling, prony_error *error);
/* Writes the figures as of the last call to *out. Strings in it live as long as the generator. */
PRONY_API void prony_generator_get_info(const prony_generator *generator, prony_generator_info *out);
/* float32 logits [vocabulary of the output] of one sequence, for the next id. *count receives their number. NULL:
 * nothing is computed yet. Borrowed until the next call. Prompts compute the logits of their last position alone if the
 * model allows it; the session's own output of logits then has one row. */
PRONY_API const float *prony_generator_logits(const prony_generator *generator, int64_t sequence, size_t *count);
/* Name of input `index` of the model if the generator does not feed it (the caller sets it); NULL: it does. */
PRONY_API const char *prony_generator_unfed_input(const prony_generator *generator, size_t index);

/* The values that a generator feeds to an input of the model. */
typedef struct prony_generator_feed {
    /* "ids", "mask", "positions", "types" (zeros), "lengths" (seqlens_k: keys less 1), "total" (keys), "keys" (of each
     * sequence), "starts" (rows of each sequence before this run), "past_length", "rows" (columns of this run),
     * "use_cache", "cache"; NULL: nothing, it is the caller's */
    const char *role;
    size_t output;     /* of a cache: the output that is fed back */
    prony_shape shape; /* of a cache: with the batch; -1 along its rows; no -1: a state, or rows written by position */
    bool shared;       /* of a cache: it always has max_length rows */
} prony_generator_feed;
/* false: the model has no input `index`. */
PRONY_API bool prony_generator_input(const prony_generator *generator, size_t index, prony_generator_feed *out);
/* Index of the model's output of logits. */
PRONY_API size_t prony_generator_logits_output(const prony_generator *generator);

/* ---- measuring ---- */

typedef struct prony_generation_options {
    size_t struct_size;
    int64_t prompt_tokens, new_tokens; /* 0: 512 and 128 */
    const int64_t *prompt_ids;         /* [prompt_tokens], the same for every sequence; NULL: drawn from `seed` */
    uint64_t seed;
    int64_t warmup;      /* repetitions before those that count; -1: 1 */
    int64_t repetitions; /* 0: until the median decode time is known to 1 %, or max_seconds is up */
    double max_seconds;  /* 0: 5 s */
    void (*progress)(void *user, int64_t repetitions, double seconds, double relative_error);
    void *progress_user;
    const prony_profile_options *profile; /* of the runs for the reports; NULL: 1 s at most */
} prony_generation_options;
#define PRONY_GENERATION_OPTIONS_INIT PRONY_INIT_WITH(prony_generation_options, warmup, -1)

/* Measures prompts and steps, and then the run of one step. *decode receives the report of that step at the last
 * position, with the generation (prony_report_generation) and the disturbance of the whole measurement. *prefill (may
 * be NULL) receives the report of the prompt's run. The generator begins anew, and is empty afterwards. */
PRONY_API PRONY_MUST_USE prony_status prony_generation_measure(prony_report **decode, prony_report **prefill,
                                                               prony_generator *generator,
                                                               const prony_generation_options *options,
                                                               prony_error *error);

#ifdef __cplusplus
}
#endif
#endif
