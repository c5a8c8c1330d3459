/* Read-only data that a model's plans share: packed weights, rewritten weights, constants evaluated at bind time.
 *
 * An entry is found by (source, tag) or, for interned constants, by content; it is reference-counted: every program and plan
 * that uses it holds one reference in its own prn_shared_refs, and the last one frees it. A packed entry's source is
 * constant data which the same plan holds too, so an address cannot be reused while an entry still names it.
 * Thread-safe: building happens under the lock, so that two sessions never pack the same weight twice.
 */
#ifndef PRN_ENGINE_BIND_SHARED_H
#define PRN_ENGINE_BIND_SHARED_H

#include "base/alloc.h"
#include "base/status.h"

typedef struct prn_shared prn_shared;
typedef struct prn_shared_entry prn_shared_entry;

/* The references that one program or plan holds. Zero-initialise. */
typedef struct prn_shared_refs {
    prn_shared_entry **items;
    size_t count, capacity;
} prn_shared_refs;

PRN_MUST_USE prony_status prn_shared_create(prn_shared **out, prony_error *error);
/* All references must be gone. */
void prn_shared_release(prn_shared *shared);

/* Finds or builds `bytes` bytes (64-byte aligned) for (source, tag). */
PRN_MUST_USE prony_status prn_shared_get(prn_shared *shared, prn_shared_refs *refs, const void *source, const char *tag,
                                         size_t bytes, prony_status (*build)(void *argument, void *data),
                                         void *argument, const void **out, prony_error *error);
/* Takes over `data` (from prn_alloc_aligned(64, …)) unless equal bytes are there already; *out is the one to use. On failure
 * `data` is freed. */
PRN_MUST_USE prony_status prn_shared_intern(prn_shared *shared, prn_shared_refs *refs, void *data, size_t bytes,
                                            const void **out, prony_error *error);
void prn_shared_drop(prn_shared *shared, prn_shared_refs *refs);
/* Gives up the references to what `used` denies, asked for each entry's bytes. */
void prn_shared_trim(prn_shared *shared, prn_shared_refs *refs,
                     bool (*used)(void *argument, const void *data, size_t bytes), void *argument);
/* Bytes held: packed forms and interned constants. */
uint64_t prn_shared_bytes(prn_shared *shared);

#endif
