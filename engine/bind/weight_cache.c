/* Reference-counted table of read-only data. One mutex guards a chained hash table; entries never move, so the data
 * pointers handed out stay valid while referenced. */
#include "engine/bind/weight_cache.h"

#include "base/hash/keyed_hash.h"
#include "base/memory/reserve.h"
#include "base/threads/cancel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

/* Chosen without measurement; LOOK_AGAIN_NS is the longest delay of a cancellation. */
#define FIRST_BUCKETS 256
#define HASH_PIECE_BYTES ((size_t)1 << 20)
#define LOOK_AGAIN_NS 10000000
#define LARGE_BYTES ((size_t)2 << 20)

struct prn_weight_cache_entry {
    prn_weight_cache_entry *next;
    const void *source; /* NULL: interned by content */
    prn_pack_key key;   /* of a packed form, with a copy of its detail */
    uint64_t hash;
    size_t bytes;
    void *data;
    uint64_t references;
    const prn_weight_cache_refs *last; /* holder of the last reference, while it is held; NULL: not known */
    prn_lazy_constant *recipe;         /* of a deferred constant; NULL: `data` is from the heap */
    prn_reserve reserve;               /* where that one lies */
    prn_weight_cache_entry *from;      /* the source entry, referenced; NULL: the model's own bytes */
    uint64_t holders;
};

struct prn_weight_cache {
    pthread_mutex_t lock;
    prn_weight_cache_entry **bucket;
    size_t bucket_count; /* a power of two, at least as many as there are entries unless memory was short */
    size_t entry_count;
    uint64_t bytes;
    atomic_bool looks_first;
    prn_spare spare[2]; /* for small and for large deferred constants, while plans are made */
};

/* Hashes data that may be large; garbage once the work is cancelled. */
static uint64_t hash_content(const void *data, size_t size)
{
    prn_keyed_hash hash;
    prn_keyed_hash_init(&hash);
    prn_keyed_hash_word(&hash, size);
    for (size_t done = 0, piece; done < size && !prn_cancelled(); done += piece) {
        piece = size - done < HASH_PIECE_BYTES ? size - done : HASH_PIECE_BYTES;
        prn_keyed_hash_bytes(&hash, (const uint8_t *)data + done, piece);
    }
    return prn_keyed_hash_end(&hash);
}

static uint64_t hash_form(const prn_weight_cache_form *form)
{
    prn_keyed_hash hash;
    prn_keyed_hash_init(&hash);
    prn_keyed_hash_word(&hash, (uint64_t)(uintptr_t)form->source);
    prn_pack_key_hash(form->key, &hash);
    return prn_keyed_hash_end(&hash);
}

size_t prn_weight_cache_packed(const prn_weight_cache_entry *entry, const void **source)
{
    *source = entry->recipe ? NULL : entry->source;
    return entry->bytes;
}

/* Waits cancellably: another session may hold the lock as long as it packs. */
static prony_status lock(prn_weight_cache *shared, prony_error *error)
{
    while (pthread_mutex_trylock(&shared->lock) != 0) {
        struct timespec until;
        PRN_TRY(prn_cancel_check(error));
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += LOOK_AGAIN_NS;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        if (pthread_mutex_timedlock(&shared->lock, &until) == 0) break;
    }
    return PRONY_OK;
}

prony_status prn_weight_cache_create(prn_weight_cache **out, prony_error *error)
{
    prn_weight_cache *shared = prn_calloc(1, sizeof *shared);
    if (!shared) return prn_no_memory(error);
    shared->bucket_count = FIRST_BUCKETS;
    shared->bucket = prn_calloc(FIRST_BUCKETS, sizeof *shared->bucket);
    if (!shared->bucket || pthread_mutex_init(&shared->lock, NULL) != 0) {
        prony_status status = prn_no_memory(error);
        prn_free(shared->bucket);
        prn_free(shared);
        return status;
    }
    *out = shared;
    return PRONY_OK;
}

void prn_weight_cache_release(prn_weight_cache *shared)
{
    if (!shared) return;
    prn_weight_cache_resolve(shared);
    pthread_mutex_destroy(&shared->lock);
    prn_free(shared->bucket);
    prn_free(shared);
}

static void recipe_free(prn_lazy_constant *recipe)
{
    if (recipe) prn_free(recipe->scale);
    prn_free(recipe);
}

static void entry_free(prn_weight_cache_entry *entry)
{
    if (entry->recipe)
        prn_reserve_close(&entry->reserve);
    else
        prn_free_aligned(entry->data);
    recipe_free(entry->recipe);
    prn_free((void *)(uintptr_t)entry->key.detail);
    prn_free(entry);
}

static bool refs_add(prn_weight_cache_refs *refs, prn_weight_cache_entry *entry)
{
    if (!PRN_GROW(refs->items, refs->capacity, refs->count + 1)) return false;
    refs->items[refs->count++] = entry;
    entry->references++;
    entry->last = refs;
    return true;
}

static bool refs_have(const prn_weight_cache_refs *refs, const prn_weight_cache_entry *entry)
{
    if (entry->last == refs) return true;
    for (size_t i = 0; i < refs->count; i++)
        if (refs->items[i] == entry) return true;
    return false;
}

static prn_weight_cache_entry **bucket_of(const prn_weight_cache *shared, uint64_t hash)
{
    return &shared->bucket[hash & (shared->bucket_count - 1)];
}

/* Doubles the buckets. Without memory for them only look-ups get slower. */
static void weight_cache_grow(prn_weight_cache *shared)
{
    prn_weight_cache larger = {.bucket_count = 2 * shared->bucket_count};
    larger.bucket = prn_calloc(larger.bucket_count, sizeof *larger.bucket);
    if (!larger.bucket) return;
    for (size_t i = 0; i < shared->bucket_count; i++) {
        for (prn_weight_cache_entry *e = shared->bucket[i]; e;) {
            prn_weight_cache_entry *next = e->next, **head = bucket_of(&larger, e->hash);
            e->next = *head;
            *head = e;
            e = next;
        }
    }
    prn_free(shared->bucket);
    shared->bucket = larger.bucket;
    shared->bucket_count = larger.bucket_count;
}

static prn_weight_cache_entry *weight_cache_find(const prn_weight_cache *shared, uint64_t hash,
                                                 const prn_weight_cache_form *form)
{
    for (prn_weight_cache_entry *e = *bucket_of(shared, hash); e; e = e->next)
        if (e->hash == hash && e->source && e->source == form->source && e->bytes == form->bytes &&
            prn_pack_key_same(&e->key, form->key))
            return e;
    return NULL;
}

static prn_weight_cache_entry *find_content(const prn_weight_cache *shared, uint64_t hash, const void *data,
                                            size_t bytes)
{
    for (prn_weight_cache_entry *e = *bucket_of(shared, hash); e; e = e->next)
        if (e->hash == hash && !e->source && !e->recipe && e->bytes == bytes && memcmp(e->data, data, bytes) == 0)
            return e;
    return NULL;
}

static prn_weight_cache_entry *find_recipe(const prn_weight_cache *shared, uint64_t hash,
                                           const prn_lazy_constant *recipe)
{
    for (prn_weight_cache_entry *e = *bucket_of(shared, hash); e; e = e->next)
        if (e->hash == hash && e->recipe && prn_lazy_constant_same(e->recipe, recipe)) return e;
    return NULL;
}

static void link_entry(prn_weight_cache *shared, prn_weight_cache_entry *entry)
{
    if (++shared->entry_count > shared->bucket_count) weight_cache_grow(shared);
    prn_weight_cache_entry **head = bucket_of(shared, entry->hash);
    entry->next = *head;
    *head = entry;
    if (!entry->recipe) shared->bytes += entry->bytes;
}

/* ---- bytes of deferred constants; under the lock ---- */

static void weight_cache_let_go(prn_weight_cache *shared, prn_weight_cache_entry *entry)
{
    if (!entry || !entry->recipe || --entry->holders > 0) return;
    prn_reserve_empty(&entry->reserve);
    shared->bytes -= entry->bytes;
}

/* `moment`: unpinned before the lock is released. */
static prony_status weight_cache_hold(prn_weight_cache *shared, prn_weight_cache_entry *entry, int threads, bool moment,
                                      prony_error *error)
{
    if (!entry || !entry->recipe || entry->holders++ > 0) return PRONY_OK;
    prony_status status = weight_cache_hold(shared, entry->from, threads, true, error);
    if (status != PRONY_OK) {
        entry->holders--;
        return status;
    }
    shared->bytes += entry->bytes;
    prn_spare *spare = &shared->spare[entry->bytes >= LARGE_BYTES];
    if (prn_reserve_fill(&entry->reserve, moment ? spare : NULL)) {
        bool finite = prn_lazy_constant_make(entry->recipe, threads, entry->data);
        status = prn_cancel_check(error);
        if (status == PRONY_OK && !finite) {
            atomic_store_explicit(&shared->looks_first, true, memory_order_relaxed);
            status = prn_fail(error, PRONY_INTERNAL, "a scaled weight leaves the range of float32");
        }
    } else {
        status = prn_no_memory(error);
    }
    weight_cache_let_go(shared, entry->from);
    if (status != PRONY_OK) weight_cache_let_go(shared, entry);
    return status;
}

/* ---- packed forms ---- */

static prony_status build_entry(prn_weight_cache *shared, prn_weight_cache_entry **out,
                                const prn_weight_cache_form *form, prony_error *error)
{
    prn_weight_cache_entry *entry = prn_calloc(1, sizeof *entry);
    if (!entry) return prn_no_memory(error);
    entry->source = form->source;
    entry->bytes = form->bytes;
    entry->key = *form->key;
    void *detail = form->key->detail_bytes ? prn_alloc(form->key->detail_bytes) : NULL;
    if (detail) memcpy(detail, form->key->detail, form->key->detail_bytes);
    entry->key.detail = detail;
    entry->data = prn_alloc_aligned(64, form->bytes ? form->bytes : 1);
    const bool ok = (detail || form->key->detail_bytes == 0) && entry->data;
    prony_status status = ok ? PRONY_OK : prn_no_memory(error);
    if (status == PRONY_OK) status = weight_cache_hold(shared, form->from, form->threads, true, error);
    if (status == PRONY_OK) {
        status = form->build(form->argument, entry->data);
        weight_cache_let_go(shared, form->from);
    }
    if (status == PRONY_OK) status = prn_cancel_check(error); /* an incomplete packed form is invalid */
    if (status != PRONY_OK) {
        entry_free(entry);
        return status;
    }
    *out = entry;
    return PRONY_OK;
}

void prn_weight_cache_pass(const prn_weight_cache_entry *entry, const void *from, size_t bytes)
{
    if (entry->holders == 1) prn_reserve_drop(&entry->reserve, from, bytes);
}

prony_status prn_weight_cache_get(prn_weight_cache *shared, prn_weight_cache_refs *refs,
                                  const prn_weight_cache_form *form, const void **out, prony_error *error)
{
    uint64_t hash = hash_form(form);
    prony_status status = PRONY_OK;
    PRN_TRY(lock(shared, error));
    prn_weight_cache_entry *entry = weight_cache_find(shared, hash, form);
    if (!entry) {
        status = build_entry(shared, &entry, form, error);
        if (status == PRONY_OK) {
            entry->hash = hash;
            if (refs_add(refs, entry)) {
                link_entry(shared, entry);
            } else {
                entry_free(entry);
                status = prn_no_memory(error);
            }
        }
    } else if (!refs_have(refs, entry) && !refs_add(refs, entry)) { /* a step may ask again in every run */
        status = prn_no_memory(error);
    }
    if (status == PRONY_OK) *out = entry->data;
    pthread_mutex_unlock(&shared->lock);
    return status;
}

/* ---- constants ---- */

/* Invariant: `data` is either owned by a new entry or freed, on every path. */
prony_status prn_weight_cache_intern(prn_weight_cache *shared, prn_weight_cache_refs *refs, void *data, size_t bytes,
                                     prn_weight_cache_entry **out, prony_error *error)
{
    uint64_t hash = hash_content(data, bytes);
    prony_status status = prn_cancel_check(error);
    if (status == PRONY_OK) status = lock(shared, error);
    if (status != PRONY_OK) {
        prn_free_aligned(data);
        return status;
    }
    prn_weight_cache_entry *entry = find_content(shared, hash, data, bytes);
    bool fresh = !entry;
    if (fresh) {
        entry = prn_calloc(1, sizeof *entry);
        if (entry) {
            entry->hash = hash;
            entry->bytes = bytes;
            entry->data = data;
        }
    }
    bool ok = entry && refs_add(refs, entry);
    if (ok && fresh) link_entry(shared, entry);
    if (ok) *out = entry;
    if (!ok && fresh) prn_free(entry);
    pthread_mutex_unlock(&shared->lock);
    if (!ok || !fresh) prn_free_aligned(data);
    return ok ? PRONY_OK : prn_no_memory(error);
}

/* Makes an entry with an address and a recipe, but no bytes yet. */
static prn_weight_cache_entry *new_deferred(const prn_lazy_constant *recipe, prn_weight_cache_entry *from)
{
    prn_weight_cache_entry *entry = prn_calloc(1, sizeof *entry);
    if (!entry) return NULL;
    const size_t scale_bytes = (size_t)recipe->channels * sizeof *recipe->scale;
    entry->bytes = prn_lazy_constant_bytes(recipe);
    entry->recipe = prn_alloc(sizeof *entry->recipe);
    if (entry->recipe) {
        *entry->recipe = *recipe;
        entry->recipe->scale = scale_bytes ? prn_alloc(scale_bytes) : NULL;
        if (entry->recipe->scale) memcpy(entry->recipe->scale, recipe->scale, scale_bytes);
    }
    bool ok = entry->recipe && (!scale_bytes || entry->recipe->scale);
    if (!ok || !prn_reserve_open(&entry->reserve, entry->bytes)) {
        recipe_free(entry->recipe);
        prn_free(entry);
        return NULL;
    }
    entry->data = entry->reserve.data;
    entry->from = from;
    return entry;
}

prony_status prn_weight_cache_defer(prn_weight_cache *shared, prn_weight_cache_refs *refs,
                                    const prn_lazy_constant *recipe, prn_weight_cache_entry *from,
                                    prn_weight_cache_entry **out, prony_error *error)
{
    uint64_t hash = prn_lazy_constant_hash(recipe);
    PRN_TRY(lock(shared, error));
    prn_weight_cache_entry *entry = find_recipe(shared, hash, recipe);
    bool fresh = !entry;
    if (fresh) entry = new_deferred(recipe, from);
    bool ok = entry && (refs_have(refs, entry) || refs_add(refs, entry));
    if (ok && fresh) {
        entry->hash = hash;
        if (from) from->references++;
        link_entry(shared, entry);
    }
    if (!ok && fresh && entry) entry_free(entry);
    if (ok) *out = entry;
    pthread_mutex_unlock(&shared->lock);
    return ok ? PRONY_OK : prn_no_memory(error);
}

bool prn_weight_cache_looks_first(const prn_weight_cache *shared)
{
    return atomic_load_explicit(&shared->looks_first, memory_order_relaxed);
}

void *prn_weight_cache_data(const prn_weight_cache_entry *entry)
{
    return entry->data;
}

const prn_lazy_constant *prn_weight_cache_lazy(const prn_weight_cache_entry *entry)
{
    return entry ? entry->recipe : NULL;
}

prn_weight_cache_entry *prn_weight_cache_source(prn_weight_cache_entry *entry, prn_lazy_constant *recipe)
{
    const prn_lazy_constant *own = prn_weight_cache_lazy(entry);
    if (own && own->kind == PRN_LAZY_COPY) {
        recipe->source = own->source;
        recipe->file = own->file;
        return NULL;
    }
    if (entry) recipe->file = NULL;
    return entry;
}

prony_status prn_weight_cache_pin(prn_weight_cache *shared, prn_weight_cache_refs *refs, prn_weight_cache_entry *entry,
                                  int threads, prony_error *error)
{
    if (!prn_weight_cache_lazy(entry)) return PRONY_OK;
    PRN_TRY(lock(shared, error)); /* parallel steps of a plan may pin, too */
    prony_status status = PRN_GROW(refs->held, refs->held_capacity, refs->held_count + 1)
                              ? weight_cache_hold(shared, entry, threads, false, error)
                              : prn_no_memory(error);
    if (status == PRONY_OK) refs->held[refs->held_count++] = entry;
    pthread_mutex_unlock(&shared->lock);
    return status;
}

void prn_weight_cache_resolve(prn_weight_cache *shared)
{
    pthread_mutex_lock(&shared->lock);
    for (int k = 0; k < 2; k++) prn_spare_release(&shared->spare[k]);
    pthread_mutex_unlock(&shared->lock);
}

void prn_weight_cache_unpin(prn_weight_cache *shared, prn_weight_cache_refs *refs, size_t count)
{
    if (refs->held_count <= count) return;
    pthread_mutex_lock(&shared->lock);
    while (refs->held_count > count) weight_cache_let_go(shared, refs->held[--refs->held_count]);
    pthread_mutex_unlock(&shared->lock);
}

/* ---- references ---- */

/* Called under the lock. */
static void unreference(prn_weight_cache *shared, const prn_weight_cache_refs *refs, prn_weight_cache_entry *entry)
{
    if (entry->last == refs) entry->last = NULL;
    if (--entry->references > 0) return;
    prn_weight_cache_entry *from = entry->from;
    prn_weight_cache_entry **link = bucket_of(shared, entry->hash);
    while (*link != entry) link = &(*link)->next;
    *link = entry->next;
    if (!entry->recipe) shared->bytes -= entry->bytes;
    shared->entry_count--;
    entry_free(entry);
    if (from) unreference(shared, NULL, from);
}

void prn_weight_cache_drop(prn_weight_cache *shared, prn_weight_cache_refs *refs)
{
    if (!shared) return;
    prn_weight_cache_unpin(shared, refs, 0);
    pthread_mutex_lock(&shared->lock);
    for (size_t i = refs->count; i-- > 0;) unreference(shared, refs, refs->items[i]);
    pthread_mutex_unlock(&shared->lock);
    prn_free(refs->items);
    prn_free(refs->held);
    *refs = (prn_weight_cache_refs){0};
}

void prn_weight_cache_trim(prn_weight_cache *shared, prn_weight_cache_refs *refs,
                           bool (*used)(void *argument, const void *data, size_t bytes), void *argument)
{
    size_t kept = 0;
    prn_weight_cache_unpin(shared, refs, 0);
    pthread_mutex_lock(&shared->lock);
    for (size_t i = 0; i < refs->count; i++) {
        prn_weight_cache_entry *entry = refs->items[i];
        if (used(argument, entry->data, entry->bytes))
            refs->items[kept++] = entry;
        else
            unreference(shared, refs, entry);
    }
    refs->count = kept;
    pthread_mutex_unlock(&shared->lock);
}

uint64_t prn_weight_cache_bytes(prn_weight_cache *shared)
{
    pthread_mutex_lock(&shared->lock);
    uint64_t bytes = shared->bytes;
    pthread_mutex_unlock(&shared->lock);
    return bytes;
}
