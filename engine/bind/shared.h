/* Read-only data that a model's plans share: packed weights, rewritten weights, constants evaluated at bind time.
 *
 * An entry is found by (source, tag) or, for interned constants, by content; it is reference-counted: every program and
 * plan that uses it holds one reference in its own prn_shared_refs, and the last one frees it. A packed entry's source
 * is constant data which the same plan holds too, so an address cannot be reused while an entry still names it.
 * Thread-safe: building happens under the lock, so that two sessions never pack the same weight twice.
 *
 * Large constants that a recipe makes are deferred: an address, which is their identity, and no bytes. Who reads them
 * holds them; the first holder has them made, the last one's letting go gives the memory back. What they are packed
 * into is built while they are held, and stays. */
#ifndef PRN_ENGINE_BIND_SHARED_H
#define PRN_ENGINE_BIND_SHARED_H

#include "base/memory/alloc.h"
#include "base/status.h"
#include "engine/bind/recipe.h"

typedef struct prn_shared prn_shared;
typedef struct prn_shared_entry prn_shared_entry;

/* The references that one program or plan holds, and the deferred constants whose bytes it needs. Zero-initialise. */
typedef struct prn_shared_refs {
    prn_shared_entry **items;
    size_t count, capacity;
    prn_shared_entry **held;
    size_t held_count, held_capacity;
} prn_shared_refs;

PRN_MUST_USE prony_status prn_shared_create(prn_shared **out, prony_error *error);
/* All references must be gone. */
void prn_shared_release(prn_shared *shared);

/* A packed form to be found or built: `bytes` bytes (64-byte aligned) for (source, tag). */
typedef struct prn_shared_form {
    const void *source;
    const char *tag;
    size_t bytes;
    prn_shared_entry *from; /* the constant that `source` lies in; NULL: not one of these */
    int threads;            /* that make it, where it is deferred */
    prony_status (*build)(void *argument, void *data);
    void *argument;
} prn_shared_form;
PRN_MUST_USE prony_status prn_shared_get(prn_shared *shared, prn_shared_refs *refs, const prn_shared_form *form,
                                         const void **out, prony_error *error);
/* For a form's `build`: it reads these bytes of the deferred constant that it is made of no more, so that their memory
 * may go. If somebody else holds the constant it stays. */
void prn_shared_pass(const prn_shared_entry *entry, const void *from, size_t bytes);
/* Takes over `data` (from prn_alloc_aligned(64, …)) unless equal bytes are there already; *out is the one to use. On
 * failure `data` is freed. */
PRN_MUST_USE prony_status prn_shared_intern(prn_shared *shared, prn_shared_refs *refs, void *data, size_t bytes,
                                            prn_shared_entry **out, prony_error *error);
/* Finds or adds the deferred constant that the recipe makes, which is copied. `from`: the constant that its source is
 * all of; NULL: bytes that live as long as the model. */
PRN_MUST_USE prony_status prn_shared_defer(prn_shared *shared, prn_shared_refs *refs, const prn_recipe *recipe,
                                           prn_shared_entry *from, prn_shared_entry **out, prony_error *error);

/* Whether a scaled weight of this model turned out not to be finite when it was made, which then failed: from then on
 * whoever scales weights looks first (prn_recipe_finite), and what was made on the assumption that they are is to be
 * made again. */
bool prn_shared_looks_first(const prn_shared *shared);

/* Where it lies; of a deferred one to be read only while held. */
void *prn_shared_data(const prn_shared_entry *entry);
/* NULL: its bytes are always there. An entry that is NULL has none either. */
const prn_recipe *prn_shared_recipe(const prn_shared_entry *entry);
/* Points the recipe at what `entry` is a copy of, if that is all it is; returns what else must be held to follow the
 * recipe. */
prn_shared_entry *prn_shared_source(prn_shared_entry *entry, prn_recipe *recipe);
/* The bytes are there until the same `refs` lets them go. Nothing to do for what is not deferred. */
PRN_MUST_USE prony_status prn_shared_hold(prn_shared *shared, prn_shared_refs *refs, prn_shared_entry *entry,
                                          int threads, prony_error *error);
/* Lets go what was held since there were `count` of them. */
void prn_shared_let_go(prn_shared *shared, prn_shared_refs *refs, size_t count);
/* Gives back what was kept for the next deferred constant to be made in: a plan is finished. */
void prn_shared_settle(prn_shared *shared);
void prn_shared_drop(prn_shared *shared, prn_shared_refs *refs);
/* Gives up the references to what `used` denies, asked for each entry's bytes, and lets everything go. */
void prn_shared_trim(prn_shared *shared, prn_shared_refs *refs,
                     bool (*used)(void *argument, const void *data, size_t bytes), void *argument);
/* Bytes held: packed forms, interned constants, and those deferred ones that somebody reads. */
uint64_t prn_shared_bytes(prn_shared *shared);

#endif
