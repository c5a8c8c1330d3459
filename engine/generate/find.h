/* The search for the purpose of a decoder's inputs and outputs: names that the caller gives, those of a file beside the
 * model, those that exporters use, and then the graph: what reads an input, and what a present output is made of. */
#ifndef PRN_ENGINE_GENERATE_FIND_H
#define PRN_ENGINE_GENERATE_FIND_H

#include "engine/generate/generator.h"

typedef struct find_roles {
    prony_generator *g;
    const prony_generator_options *options;
    prn_decoder_names beside;  /* of genai_config.json */
    prn_names inputs, outputs; /* of the graph, to their indices */
} find_roles;

/* The name of the dimension of sequences of the token ids; NULL: none. */
static inline const char *prn_find_batch_name(const prony_generator *generator)
{
    const prony_value_info *ids = &generator->graph->inputs[generator->role_of[PRN_ROLE_IDS]];
    return ids->shape.rank == 2 && ids->dim_names[0] && *ids->dim_names[0] ? ids->dim_names[0] : NULL;
}

/* true: the model is told where new rows belong. */
static inline bool prn_find_has_positions(const prony_generator *g)
{
    return g->role_of[PRN_ROLE_ROWS] != SIZE_MAX || g->role_of[PRN_ROLE_PAST_LENGTH] != SIZE_MAX ||
           g->role_of[PRN_ROLE_STARTS] != SIZE_MAX || g->role_of[PRN_ROLE_POSITIONS] != SIZE_MAX;
}

/* ---- find_inputs.c */

/* The index of the input or output that the caller names. */
PRN_MUST_USE prony_status prn_find_named(const find_roles *f, const char *name, const prn_names *names,
                                         const char *what, uint32_t *index, prony_error *error);

/* Sets the roles of all inputs but caches. PRONY_INVALID_MODEL: no input, or several, may be the token ids. */
PRN_MUST_USE prony_status prn_find_inputs(const find_roles *f, prony_error *error);

/* ---- find_caches.c */

/* Finds the caches, and which dimensions are their sequences and rows. */
PRN_MUST_USE prony_status prn_find_caches(find_roles *f, prony_error *error);

/* ---- find_updates.c */

/* A value that the graph makes of an input that may be fed back. */
typedef struct find_update {
    uint32_t input;
    bool updated;   /* new rows have joined it, or a step of a recurrence; else it is the input, or a view of it */
    bool moved;     /* behind a Transpose, Reshape, Gather: `axis` counts dimensions of another shape */
    bool scattered; /* rows are written into it, and its length stays */
    bool in_place;  /* by GroupQueryAttention, in one buffer of any length */
    int axis;       /* along which rows joined it; INT_MIN: not known */
} find_update;

typedef struct find_updates {
    prn_names ids; /* of values, to an index of `items` */
    find_update *items;
    size_t count, capacity;
} find_updates;

/* Follows every input that has no role through the graph. */
PRN_MUST_USE prony_status prn_find_updates(find_updates *out, const find_roles *f, prony_error *error);
/* The input that an output is an update of; NULL: none, or several. */
const find_update *prn_find_update(const find_updates *updates, const char *output);
void prn_find_updates_free(find_updates *updates);

#endif
