/* Read-only data that a model's plans share: packed weights, rewritten weights, constants evaluated at bind time.
 *
 * An entry is found by (source, tag) or, for interned constants, by content; it is reference-counted: every program and
 * plan that uses it holds one reference in its own prn_weight_cache_refs, and the last one frees it. A packed entry's source
 * is constant data which the same plan holds too, so an address cannot be reused while an entry still names it.
 * Thread-safe: building happens under the lock, so that two sessions never pack the same weight twice.
 *
 * Large constants that a recipe makes are deferred: an address, which is their identity, and no bytes. Who reads them
 * holds them; the first holder has them made, the last one's letting go gives the memory back. What they are packed
 * into is built while they are held, and stays. */
#ifndef PRN_ENGINE_BIND_WEIGHT_CACHE_H
#define PRN_ENGINE_BIND_WEIGHT_CACHE_H

#include "base/memory/alloc.h"
#include "base/status.h"
#include "engine/bind/lazy_constant.h"

typedef struct prn_weight_cache prn_weight_cache;
typedef struct prn_weight_cache_entry prn_weight_cache_entry;

/* The references that one program or plan holds, and the deferred constants whose bytes it needs. Zero-initialise. */
typedef struct prn_weight_cache_refs {
    prn_weight_cache_entry **items;
    size_t count, capacity;
    prn_weight_cache_entry **held;
    size_t held_count, held_capacity;
} prn_weight_cache_refs;

PRN_MUST_USE prony_status prn_weight_cache_create(prn_weight_cache **out, prony_error *error);
/* All references must be gone. */
void prn_weight_cache_release(prn_weight_cache *shared);

/* A packed form to be found or built: `bytes` bytes (64-byte aligned) for (source, tag). */
typedef struct prn_weight_cache_form {
    const void *source;
    const char *tag;
    size_t bytes;
    prn_weight_cache_entry *from; /* the constant that `source` lies in; NULL: not one of these */
    int threads;                  /* that make it, where it is deferred */
    prony_status (*build)(void *argument, void *data);
    void *argument;
} prn_weight_cache_form;
PRN_MUST_USE prony_status prn_weight_cache_get(prn_weight_cache *shared, prn_weight_cache_refs *refs,
                                               const prn_weight_cache_form *form, const void **out, prony_error *error);
/* For a form's `build`: it reads these bytes of the deferred constant that it is made of no more, so that their memory
 * may go. If somebody else holds the constant it stays. */
void prn_weight_cache_pass(const prn_weight_cache_entry *entry, const void *from, size_t bytes);
/* Takes over `data` (from prn_alloc_aligned(64, …)) unless equal bytes are there already; *out is the one to use. On
 * failure `data` is freed. */
PRN_MUST_USE prony_status prn_weight_cache_intern(prn_weight_cache *shared, prn_weight_cache_refs *refs, void *data,
                                                  size_t bytes, prn_weight_cache_entry **out, prony_error *error);
/* Finds or adds the deferred constant that the recipe makes, which is copied. `from`: the constant that its source is
 * all of; NULL: bytes that live as long as the model. */
PRN_MUST_USE prony_status prn_weight_cache_defer(prn_weight_cache *shared, prn_weight_cache_refs *refs,
                                                 const prn_lazy_constant *recipe, prn_weight_cache_entry *from,
                                                 prn_weight_cache_entry **out, prony_error *error);

/* Whether a scaled weight of this model turned out not to be finite when it was made, which then failed: from then on
 * whoever scales weights looks first (prn_lazy_constant_finite), and what was made on the assumption that they are is to be
 * made again. */
bool prn_weight_cache_looks_first(const prn_weight_cache *shared);

/* Where it lies; of a deferred one to be read only while held. */
void *prn_weight_cache_data(const prn_weight_cache_entry *entry);
/* NULL: its bytes are always there. An entry that is NULL has none either. */
const prn_lazy_constant *prn_weight_cache_lazy(const prn_weight_cache_entry *entry);
/* Points the recipe at what `entry` is a copy of, if that is all it is; returns what else must be held to follow the
 * recipe. */
prn_weight_cache_entry *prn_weight_cache_source(prn_weight_cache_entry *entry, prn_lazy_constant *recipe);
/* The bytes are there until the same `refs` lets them go. Nothing to do for what is not deferred. */
PRN_MUST_USE prony_status prn_weight_cache_pin(prn_weight_cache *shared, prn_weight_cache_refs *refs,
                                               prn_weight_cache_entry *entry, int threads, prony_error *error);
/* Lets go what was held since there were `count` of them. */
void prn_weight_cache_unpin(prn_weight_cache *shared, prn_weight_cache_refs *refs, size_t count);
/* Gives back what was kept for the next deferred constant to be made in: a plan is finished. */
void prn_shared_resolve(prn_weight_cache *shared);
void prn_weight_cache_drop(prn_weight_cache *shared, prn_weight_cache_refs *refs);
/* Gives up the references to what `used` denies, asked for each entry's bytes, and lets everything go. */
void prn_weight_cache_trim(prn_weight_cache *shared, prn_weight_cache_refs *refs,
                           bool (*used)(void *argument, const void *data, size_t bytes), void *argument);
/* Bytes held: packed forms, interned constants, and those deferred ones that somebody reads. */
uint64_t prn_weight_cache_bytes(prn_weight_cache *shared);

#endif
