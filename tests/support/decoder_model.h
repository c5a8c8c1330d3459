/* Small decoders with random weights in the forms that exporters give, and generators of them. */
#ifndef PRN_TESTS_SUPPORT_DECODER_MODEL_H
#define PRN_TESTS_SUPPORT_DECODER_MODEL_H

#include "model_builder.h"
#include "prony_generate.h"

enum { VOCABULARY = 16, WIDTH = 8, HEADS = 2, HEAD = WIDTH / HEADS, POSITIONS = 32, NEW = 12 };

typedef enum cache_style {
    NO_CACHE,
    TWO_TENSORS,
    PACKED,
    GROUPED,
    GROUPED_LENGTHS,
    TWICE,
    WRITTEN,
    NEW_ROWS,
    ROWS_FIRST,
    ROLLED
} cache_style;

typedef struct decoder_style {
    cache_style cache;
    const char *past[2], *present[2]; /* of keys and values; packed: the first */
    bool no_mask, no_positions, use_cache, encoder;
    bool merged;      /* use_cache_branch chooses, by an If, between a branch with the cache and one without */
    const char *peek; /* another reader of keys: "present", or of the past ones: "past" */
    const char *ids, *mask, *positions, *lengths, *total; /* names; NULL: Optimum's and GenAI's */
    const char *ids_dims, *mask_dims; /* NULL: "batch,rows" and "batch,total"; ids may have rank 1 */
    const char *written; /* WRITTEN: the input that tells where rows belong, and its dimensions: one a row ("rows"), */
    const char *written_dims; /* or the first one ("1") */
    bool unnamed;             /* ROWS_FIRST: free dimensions of the cache have no names */
    const char *first_output; /* an output of floats before the logits */
    prony_dtype
        wide_mask;    /* the mask is [batch, 1, rows, total] of this type, and hides later keys too; UNDEFINED: no */
    const char *tail; /* behind the last product: "bias" and a scale, another "reader", or a "mean" of all rows */
} decoder_style;

/* Without a cache; with Optimum's names; packed; with GroupQueryAttention and a mask; the same with lengths. */
extern const decoder_style decoder_no_cache, decoder_optimum, decoder_packed, decoder_grouped, decoder_lengths;

model_builder *decoder_model(const decoder_style *style);

/* A generator of a model. Failures end the test. */
typedef struct generation {
    model_builder *builder;
    prony_model *model;
    prony_session *session;
    prony_generator *generator;
    prony_error error;
} generation;

void generation_load(generation *g, model_builder *m, int threads);
void generation_load_on(generation *g, const char *device, model_builder *m, int threads); /* NULL: the host */
void generation_begin(generation *g, const decoder_style *style, const prony_generator_options *options);
void generation_begin_on(generation *g, const char *device, const decoder_style *style,
                         const prony_generator_options *options);
void generation_end(generation *g);
void generation_prompt(generation *g, const int64_t *ids, const size_t *lengths);
/* `count` times the next ids of `batch` sequences. */
void generation_next(generation *g, int64_t *ids, size_t count, size_t batch);
/* The prompt of most tests. */
extern const int64_t decoder_words[8];
/* NEW ids of a fresh generator, behind the first `count` words. */
void generation_ids(const decoder_style *style, const prony_generator_options *options, size_t count, int64_t out[NEW]);

#endif
