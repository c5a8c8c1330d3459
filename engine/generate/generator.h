/* A generator: the roles of a decoder's inputs and outputs, the memory of its cache, and the tokens so far.
 *
 * Columns are positions of the longest sequence. With a growing cache (or none) shorter sequences are padded on the
 * left, so that all end in the same column; with a shared cache each has rows of its own, and pads stand on the right
 * of the first prompt only. Invariant between calls: `computed` columns are in the cache, columns [computed, length)
 * wait. */
#ifndef PRN_ENGINE_GENERATE_GENERATOR_H
#define PRN_ENGINE_GENERATE_GENERATOR_H

#include "engine/bind/names.h"
#include "engine/session/session.h"
#include "ops/kernels/attention/attend.h"
#include "prony_generate.h"

enum { PRN_GENERATOR_DEFAULT_LENGTH = 2048 };

/* The purpose of an input. */
typedef enum prn_role {
    PRN_ROLE_OTHER, /* the caller's */
    PRN_ROLE_IDS,
    PRN_ROLE_MASK,
    PRN_ROLE_POSITIONS,
    PRN_ROLE_TYPES,       /* token types: zeros */
    PRN_ROLE_LENGTHS,     /* seqlens_k: keys of each sequence, less 1 */
    PRN_ROLE_TOTAL,       /* total_sequence_length */
    PRN_ROLE_KEYS,        /* nonpad_kv_seqlen: keys of each sequence */
    PRN_ROLE_STARTS,      /* write_indices: rows of the cache of each sequence, before this run */
    PRN_ROLE_PAST_LENGTH, /* rows of the cache that are valid */
    PRN_ROLE_ROWS,        /* cache_position: the column of each row of this run */
    PRN_ROLE_USE_CACHE,   /* use_cache_branch of merged decoders */
    PRN_ROLE_CACHE
} prn_role;

/* The content of a tensor that is fed back. */
typedef enum prn_cache_form {
    PRN_CACHE_ROWS,  /* a row a token; its length follows the tokens, or is that of a shared buffer */
    PRN_CACHE_FIXED, /* rows of a fixed length, which the model writes by position */
    PRN_CACHE_STATE  /* no rows: the state of a recurrence behind the last token */
} prn_cache_form;

/* A tensor that is fed back: input `past`, output `present`. Blocks of rows lie one behind the other, or, once steps
 * append to them, with room for all rows of the generator in each (`spread`). */
typedef struct prn_generator_cache {
    size_t input, output;
    int axis;       /* of the rows */
    int batch_axis; /* of the sequences */
    prn_cache_form form;
    bool in_place; /* GroupQueryAttention writes the present rows over the past ones */
    bool cross;    /* of an encoder: computed in the first run, or set by the caller, and the same ever after */
    bool spread;
    int current;           /* rows[current] is valid */
    prony_value value;     /* type and shape with the batch; its extent along `axis` is 1 */
    size_t outer;          /* blocks of rows: sequences times heads, twice that where keys and values are packed */
    size_t row_bytes;      /* of one block, with the scale of codes */
    prn_cache_type stored; /* not PRN_CACHE_FLOAT32: blocks of fewer bits (attend_cache.h), always `spread` */
    char *rows[2];         /* the other one exists while a run has to copy all rows */
    size_t capacity_bytes; /* of each */
} prn_generator_cache;

/* Bounds of ids and positions that the graph shows; 0: none. */
typedef struct prn_generator_limits {
    int64_t vocabulary, positions;
    const char *embedding, *position_table; /* names of the tables */
} prn_generator_limits;

typedef struct prn_candidate {
    double weight; /* logit, then probability */
    int64_t id;
} prn_candidate;

struct prony_generator {
    prony_session *session;
    const prn_graph *graph;
    const prn_graph *bound; /* that the last run was bound of: `graph`, or one derived from it */
    const prn_graph *stored,
        *last_rows; /* derived from it: for a cache in fewer bits; for the last row's logits alone, of
                                            `stored` if there is one. NULL: none */
    const char *file;
    prn_bump pool;
    prony_cache_kind kind;
    prn_cache_type cache_type; /* of caches that steps append to */
    prony_sampling sampling;
    const int64_t *stop_ids;
    size_t stop_count;
    uint8_t *roles;                     /* [input_count] prn_role */
    size_t role_of[PRN_ROLE_CACHE + 1]; /* input of a role; SIZE_MAX: none */
    size_t logits;                      /* output */
    prn_generator_cache *caches;
    size_t cache_count;
    bool has_cross;  /* the cross caches are filled */
    bool rolled;     /* caches keep their last rows, so the mask of a fixed length is filled from its end */
    bool one_length; /* all sequences must have one length: the model cannot skip pads */
    int64_t columns; /* of each run, where the model fixes them; 0: any number */
    prn_generator_limits limits;
    const char *convention;
    int64_t batch, max_length;
    int64_t cache_rows;         /* that growing caches have room for */
    int64_t *ids;               /* [batch, max_length] */
    int64_t *lengths;           /* [batch] tokens, without pads */
    bool *ended;                /* [batch] */
    int64_t length;             /* columns: of the longest sequence */
    int64_t computed;           /* columns in the cache */
    void *feed[PRN_ROLE_CACHE]; /* bytes of the fed inputs, by role */
    size_t mask_capacity;       /* elements of the mask's bytes */
    float *scores;              /* [batch, score_count] logits of the last column */
    size_t score_count;
    bool has_scores;           /* they are those for the next id */
    float *penalised;          /* [score_count] as all below: logits of one sequence, less the penalty */
    uint8_t *marks;            /* ids that the sequence has */
    prn_candidate *candidates; /* for sampling */
    int64_t chunk;             /* columns of a prompt that one run computes at most; 0: all */
    prn_spare_blocks spare;    /* of runs, so that steps make no heap calls */
    bool growing[PRN_GROWTHS]; /* by prn_growth: the session has the dimensions that grow */
    int64_t last_run_ns;
    uint64_t copied_bytes;
};

/* ---- generator_cache.c */

/* Frees one of a cache's buffers, and its copy on the session's device. */
void prn_generator_free_rows(prony_generator *generator, prn_generator_cache *cache, int which);
/* The host's bytes of all caches change, or their rows move: copies on a device are not theirs any more. */
void prn_generator_caches_changed(prony_generator *generator);
/* Lets steps of the session's device keep a copy of the cache. */
PRN_MUST_USE prony_status prn_generator_announce(prony_generator *generator, const prn_generator_cache *cache,
                                                 prony_error *error);

/* ---- find_inputs.c */

/* Names of roles, as prony_generator_input gives them; [PRN_ROLE_OTHER] is NULL. */
extern const char *const prn_role_text[PRN_ROLE_CACHE + 1];

/* ---- find_roles.c */

/* Sets roles, caches (without memory) and logits, from the names and from the graph. */
PRN_MUST_USE prony_status prn_generator_find(prony_generator *generator, const prony_generator_options *options,
                                             prony_error *error);

/* ---- last_rows.c */

/* Derives `last_rows`, if the logits come from a product that can do without the other rows. The session keeps it. */
PRN_MUST_USE prony_status prn_generator_derive_last_rows(prony_generator *generator, prony_error *error);

/* ---- stored_cache.c */

/* Derives `stored`, if a shared cache is to be kept in fewer bits. PRONY_UNSUPPORTED, naming input and node: it cannot
 * be. */
PRN_MUST_USE prony_status prn_generator_derive_stored(prony_generator *generator, prony_error *error);

/* ---- merged.c */

/* Derives session->merged, if an input chooses between a branch for prompts and one for steps. */
PRN_MUST_USE prony_status prn_generator_derive_merged(prony_generator *generator, prony_error *error);

/* ---- generator_limits.c */

PRN_MUST_USE prony_status prn_generator_find_limits(prony_generator *generator, prony_error *error);

/* ---- declared_shapes.c */

/* Refuses inputs that are declared in another shape than they are fed in; also sets `columns`. */
PRN_MUST_USE prony_status prn_generator_check_inputs(prony_generator *generator, prony_error *error);
/* Refuses a cache of a fixed length that is not the generator's. */
PRN_MUST_USE prony_status prn_generator_check_rows(const prony_generator *generator, const prn_generator_cache *cache,
                                                   prony_error *error);
/* Fixes the dimension of sequences of a cache, and refuses another batch. */
PRN_MUST_USE prony_status prn_generator_check_batch(const prony_generator *generator, const prn_generator_cache *cache,
                                                    int64_t *dim, prony_error *error);
/* The tokens of a sequence that the declared shapes of ids and mask allow; 0: any number. */
int64_t prn_generator_fixed_length(const prony_generator *generator);

/* ---- generator_feed.c */

/* Computes `columns` columns behind the computed ones; the tokens are in `ids`. On success the cache and the logits of
 * the last column are those of `computed` + `columns`. */
PRN_MUST_USE prony_status prn_generator_run(prony_generator *generator, int64_t columns, prony_error *error);
/* Computes all columns that wait, in chunks. A failure leaves the cache as it was. */
PRN_MUST_USE prony_status prn_generator_run_all(prony_generator *generator, prony_error *error);
/* Fails with PRONY_UNSUPPORTED: the cache cannot be kept in fewer bits; names its input, the node that reads it and the
 * reason. */
PRN_MUST_USE prony_status prn_generator_refuse_stored(const prony_generator *generator,
                                                      const prn_generator_cache *cache, const char *reason,
                                                      prony_error *error);
/* Rows of earlier columns move where fewer of them leave less room: the caches hold `columns` columns afterwards. */
void prn_generator_shorten(prony_generator *generator, int64_t columns);

/* Pads in front of sequence b. */
static inline int64_t prn_generator_pads(const prony_generator *g, int64_t b)
{
    return g->kind == PRONY_CACHE_SHARED ? 0 : g->length - g->lengths[b];
}

/* Columns before those of a run from `first` on; with a shared cache tokens of sequence b. */
static inline int64_t prn_generator_before(const prony_generator *g, int64_t b, int64_t first)
{
    if (g->kind != PRONY_CACHE_SHARED || first == 0) return first;
    return g->lengths[b] - (g->length - g->computed);
}

/* ---- feed_mask.c */

/* Fills the bytes of the mask for `columns` columns from `first` on; *shape is theirs. */
PRN_MUST_USE prony_status prn_generator_fill_mask(prony_generator *generator, int64_t first, int64_t columns,
                                                  prony_shape *shape, prony_error *error);

/* ---- sample.c */

/* The next id of a sequence, from its logits. PRONY_OUT_OF_RANGE: none of them is a number. */
PRN_MUST_USE prony_status prn_generator_choose(prony_generator *generator, int64_t sequence, int64_t *id,
                                               prony_error *error);

#endif
