/* Read-only data that a model's plans share: packed weights, rewritten weights, constants evaluated at bind time.
 *
 * An entry is found by (source, key) or, for interned constants, by content. Entries are reference-counted: every
 * program and plan that uses one holds a reference in its prn_weight_cache_refs, and the last one frees it. The plan of
 * a packed entry also holds the constant that is its source, so no entry names an address that was reused. Thread-safe:
 * forms are built under the lock, so two sessions never pack the same weight twice.
 *
 * Large constants with a recipe are deferred: they have an address, which is their identity, but no bytes. Readers pin
 * them: the first pin makes the bytes, the last unpin releases the memory. Packed forms are built while the constant is
 * pinned, and stay. */
#ifndef PRN_ENGINE_BIND_WEIGHT_CACHE_H
#define PRN_ENGINE_BIND_WEIGHT_CACHE_H

#include "base/memory/alloc.h"
#include "base/status.h"
#include "engine/bind/lazy_constant.h"
#include "ops/pack_key.h"

typedef struct prn_weight_cache prn_weight_cache;
typedef struct prn_weight_cache_entry prn_weight_cache_entry;

/* The references that one program or plan holds, and the deferred constants that it pins. Zero-initialise. */
typedef struct prn_weight_cache_refs {
    prn_weight_cache_entry **items;
    size_t count, capacity;
    prn_weight_cache_entry **held;
    size_t held_count, held_capacity;
} prn_weight_cache_refs;

PRN_MUST_USE prony_status prn_weight_cache_create(prn_weight_cache **out, prony_error *error);
/* All references must be gone. */
void prn_weight_cache_release(prn_weight_cache *shared);

/* A packed form to be found or built: `bytes` bytes (64-byte aligned) for (source, key). */
typedef struct prn_weight_cache_form {
    const void *source;
    const prn_pack_key *key; /* an entry copies it */
    size_t bytes;
    prn_weight_cache_entry *from; /* the constant that contains `source`; NULL: another source */
    int threads;                  /* threads that make a deferred constant */
    prony_status (*build)(void *argument, void *data);
    void *argument;
} prn_weight_cache_form;
PRN_MUST_USE prony_status prn_weight_cache_get(prn_weight_cache *shared, prn_weight_cache_refs *refs,
                                               const prn_weight_cache_form *form, const void **out, prony_error *error);
/* Called by a form's `build` when it is done with these bytes of the deferred constant: their memory may be released.
 * The bytes stay while another holder pins the constant. */
void prn_weight_cache_pass(const prn_weight_cache_entry *entry, const void *from, size_t bytes);
/* Takes over `data` (from prn_alloc_aligned(64, …)) unless equal bytes are there already; *out is the one to use. On
 * failure `data` is freed. */
PRN_MUST_USE prony_status prn_weight_cache_intern(prn_weight_cache *shared, prn_weight_cache_refs *refs, void *data,
                                                  size_t bytes, prn_weight_cache_entry **out, prony_error *error);
/* Finds or adds the deferred constant of this recipe, which is copied. `from`: the constant whose bytes the recipe
 * reads; NULL: bytes that live as long as the model. */
PRN_MUST_USE prony_status prn_weight_cache_defer(prn_weight_cache *shared, prn_weight_cache_refs *refs,
                                                 const prn_lazy_constant *recipe, prn_weight_cache_entry *from,
                                                 prn_weight_cache_entry **out, prony_error *error);

/* true: a scaled weight of this model was not finite, so making it failed. From then on weights are tested before they
 * are scaled (prn_lazy_constant_finite). Programs and plans that assumed finite weights have to be made again. */
bool prn_weight_cache_looks_first(const prn_weight_cache *shared);

/* The entry's address. The bytes of a deferred constant may be read only while it is pinned. */
void *prn_weight_cache_data(const prn_weight_cache_entry *entry);
/* NULL: its bytes are always there. Also NULL for entry NULL. */
const prn_lazy_constant *prn_weight_cache_lazy(const prn_weight_cache_entry *entry);
/* If `entry` is only a copy, makes the recipe read its original. Returns the other entry that has to be pinned to
 * follow the recipe. */
prn_weight_cache_entry *prn_weight_cache_source(prn_weight_cache_entry *entry, prn_lazy_constant *recipe);
/* Keeps the bytes until the same `refs` unpins them. Does nothing for entries that are not deferred. */
PRN_MUST_USE prony_status prn_weight_cache_pin(prn_weight_cache *shared, prn_weight_cache_refs *refs,
                                               prn_weight_cache_entry *entry, int threads, prony_error *error);
/* Unpins all but the first `count` pinned entries. */
void prn_weight_cache_unpin(prn_weight_cache *shared, prn_weight_cache_refs *refs, size_t count);
/* Releases the memory kept to make the next deferred constant in; called when a plan is finished. */
void prn_weight_cache_resolve(prn_weight_cache *shared);
void prn_weight_cache_drop(prn_weight_cache *shared, prn_weight_cache_refs *refs);
/* Drops the references to entries for which `used` returns false, and unpins everything. */
void prn_weight_cache_trim(prn_weight_cache *shared, prn_weight_cache_refs *refs,
                           bool (*used)(void *argument, const void *data, size_t bytes), void *argument);
/* Bytes of the entry, and the address that it was packed from; *source NULL: it is a constant. */
size_t prn_weight_cache_packed(const prn_weight_cache_entry *entry, const void **source);
/* Bytes held: packed forms, interned constants, and pinned deferred constants. */
uint64_t prn_weight_cache_bytes(prn_weight_cache *shared);

#endif
