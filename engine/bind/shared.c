/* Reference-counted table of read-only data. One mutex guards a chained hash table; entries never move, so the data
 * pointers handed out stay valid while referenced. */
#include "engine/bind/shared.h"

#include "base/stop.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#define FIRST_BUCKETS 256
#define HASH_PIECE_BYTES ((size_t)1 << 20)
#define LOOK_AGAIN_NS 10000000

struct prn_shared_entry {
    prn_shared_entry *next;
    const void *source; /* NULL: interned by content */
    char *tag;          /* NULL: interned by content */
    uint64_t hash;
    size_t bytes;
    void *data;
    uint64_t references;
    const prn_shared_refs *last; /* who took the last reference, while it is held; NULL: not known */
};

struct prn_shared {
    pthread_mutex_t lock;
    prn_shared_entry **bucket;
    size_t bucket_count; /* a power of two, at least as many as there are entries unless memory was short */
    size_t entry_count;
    uint64_t bytes;
};

/* FNV-1a over 8-byte words: only an index, equality is always checked on the bytes. */
static uint64_t hash_bytes(const void *data, size_t size, uint64_t hash)
{
    const uint8_t *p = data;
    while (size >= 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        hash = (hash ^ word) * UINT64_C(0x100000001b3);
        hash ^= hash >> 29;
        p += 8;
        size -= 8;
    }
    while (size-- > 0) hash = (hash ^ *p++) * UINT64_C(0x100000001b3);
    return hash ^ (hash >> 32);
}

/* As above of what may be large; garbage once the work is called off. */
static uint64_t hash_content(const void *data, size_t size)
{
    uint64_t hash = size;
    for (size_t done = 0, piece; done < size && !prn_stopped(); done += piece) {
        piece = size - done < HASH_PIECE_BYTES ? size - done : HASH_PIECE_BYTES;
        hash = hash_bytes((const uint8_t *)data + done, piece, hash);
    }
    return hash;
}

/* Another session may hold the lock for as long as it packs. */
static prony_status lock(prn_shared *shared, prony_error *error)
{
    while (pthread_mutex_trylock(&shared->lock) != 0) {
        struct timespec until;
        PRN_TRY(prn_stop_check(error));
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

prony_status prn_shared_create(prn_shared **out, prony_error *error)
{
    prn_shared *shared = prn_calloc(1, sizeof *shared);
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

void prn_shared_release(prn_shared *shared)
{
    if (!shared) return;
    pthread_mutex_destroy(&shared->lock);
    prn_free(shared->bucket);
    prn_free(shared);
}

static void entry_free(prn_shared_entry *entry)
{
    prn_free_aligned(entry->data);
    prn_free(entry->tag);
    prn_free(entry);
}

static bool refs_add(prn_shared_refs *refs, prn_shared_entry *entry)
{
    if (!PRN_GROW(refs->items, refs->capacity, refs->count + 1)) return false;
    refs->items[refs->count++] = entry;
    entry->references++;
    entry->last = refs;
    return true;
}

static bool refs_have(const prn_shared_refs *refs, const prn_shared_entry *entry)
{
    if (entry->last == refs) return true;
    for (size_t i = 0; i < refs->count; i++)
        if (refs->items[i] == entry) return true;
    return false;
}

static prn_shared_entry **bucket_of(const prn_shared *shared, uint64_t hash)
{
    return &shared->bucket[hash & (shared->bucket_count - 1)];
}

/* Twice the buckets; where there is no memory for them, look-ups are slower, and that is all. */
static void grow(prn_shared *shared)
{
    prn_shared larger = {.bucket_count = 2 * shared->bucket_count};
    larger.bucket = prn_calloc(larger.bucket_count, sizeof *larger.bucket);
    if (!larger.bucket) return;
    for (size_t i = 0; i < shared->bucket_count; i++) {
        for (prn_shared_entry *e = shared->bucket[i]; e;) {
            prn_shared_entry *next = e->next, **head = bucket_of(&larger, e->hash);
            e->next = *head;
            *head = e;
            e = next;
        }
    }
    prn_free(shared->bucket);
    shared->bucket = larger.bucket;
    shared->bucket_count = larger.bucket_count;
}

static prn_shared_entry *find(const prn_shared *shared, uint64_t hash, const void *source, const char *tag)
{
    for (prn_shared_entry *e = *bucket_of(shared, hash); e; e = e->next)
        if (e->hash == hash && e->tag && e->source == source && strcmp(e->tag, tag) == 0) return e;
    return NULL;
}

static prn_shared_entry *find_content(const prn_shared *shared, uint64_t hash, const void *data, size_t bytes)
{
    for (prn_shared_entry *e = *bucket_of(shared, hash); e; e = e->next)
        if (e->hash == hash && !e->tag && e->bytes == bytes && memcmp(e->data, data, bytes) == 0) return e;
    return NULL;
}

static void link_entry(prn_shared *shared, prn_shared_entry *entry)
{
    if (++shared->entry_count > shared->bucket_count) grow(shared);
    prn_shared_entry **head = bucket_of(shared, entry->hash);
    entry->next = *head;
    *head = entry;
    shared->bytes += entry->bytes;
}

static prony_status build_entry(prn_shared_entry **out, const void *source, const char *tag, size_t bytes,
                                prony_status (*build)(void *argument, void *data), void *argument, prony_error *error)
{
    prn_shared_entry *entry = prn_calloc(1, sizeof *entry);
    if (!entry) return prn_no_memory(error);
    entry->source = source;
    entry->bytes = bytes;
    entry->tag = prn_strdup(tag);
    entry->data = prn_alloc_aligned(64, bytes ? bytes : 1);
    prony_status status = entry->tag && entry->data ? build(argument, entry->data) : prn_no_memory(error);
    if (status == PRONY_OK) status = prn_stop_check(error); /* half a packed form is none */
    if (status != PRONY_OK) {
        entry_free(entry);
        return status;
    }
    *out = entry;
    return PRONY_OK;
}

prony_status prn_shared_get(prn_shared *shared, prn_shared_refs *refs, const void *source, const char *tag, size_t bytes,
                            prony_status (*build)(void *argument, void *data), void *argument, const void **out,
                            prony_error *error)
{
    uint64_t hash = hash_bytes(tag, strlen(tag), (uint64_t)(uintptr_t)source);
    prony_status status = PRONY_OK;
    PRN_TRY(lock(shared, error));
    prn_shared_entry *entry = find(shared, hash, source, tag);
    if (!entry) {
        status = build_entry(&entry, source, tag, bytes, build, argument, error);
        if (status == PRONY_OK) {
            entry->hash = hash;
            if (refs_add(refs, entry)) {
                link_entry(shared, entry);
            } else {
                entry_free(entry);
                status = prn_no_memory(error);
            }
        }
    } else if (!refs_have(refs, entry) && !refs_add(refs, entry)) { /* steps that pack in every run ask again */
        status = prn_no_memory(error);
    }
    if (status == PRONY_OK) *out = entry->data;
    pthread_mutex_unlock(&shared->lock);
    return status;
}

prony_status prn_shared_intern(prn_shared *shared, prn_shared_refs *refs, void *data, size_t bytes, const void **out,
                               prony_error *error)
{
    uint64_t hash = hash_content(data, bytes);
    prony_status status = prn_stop_check(error);
    if (status == PRONY_OK) status = lock(shared, error);
    if (status != PRONY_OK) {
        prn_free_aligned(data);
        return status;
    }
    prn_shared_entry *entry = find_content(shared, hash, data, bytes);
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
    if (ok) *out = entry->data;
    if (!ok && fresh) prn_free(entry);
    pthread_mutex_unlock(&shared->lock);
    if (!ok || !fresh) prn_free_aligned(data);
    return ok ? PRONY_OK : prn_no_memory(error);
}

/* Under the lock. */
static void unreference(prn_shared *shared, const prn_shared_refs *refs, prn_shared_entry *entry)
{
    if (entry->last == refs) entry->last = NULL;
    if (--entry->references > 0) return;
    prn_shared_entry **link = bucket_of(shared, entry->hash);
    while (*link != entry) link = &(*link)->next;
    *link = entry->next;
    shared->bytes -= entry->bytes;
    shared->entry_count--;
    entry_free(entry);
}

void prn_shared_drop(prn_shared *shared, prn_shared_refs *refs)
{
    if (!shared) return;
    pthread_mutex_lock(&shared->lock);
    for (size_t i = refs->count; i-- > 0;) unreference(shared, refs, refs->items[i]);
    pthread_mutex_unlock(&shared->lock);
    prn_free(refs->items);
    *refs = (prn_shared_refs){0};
}

void prn_shared_trim(prn_shared *shared, prn_shared_refs *refs,
                     bool (*used)(void *argument, const void *data, size_t bytes), void *argument)
{
    size_t kept = 0;
    pthread_mutex_lock(&shared->lock);
    for (size_t i = 0; i < refs->count; i++) {
        prn_shared_entry *entry = refs->items[i];
        if (used(argument, entry->data, entry->bytes))
            refs->items[kept++] = entry;
        else
            unreference(shared, refs, entry);
    }
    refs->count = kept;
    pthread_mutex_unlock(&shared->lock);
}

uint64_t prn_shared_bytes(prn_shared *shared)
{
    pthread_mutex_lock(&shared->lock);
    uint64_t bytes = shared->bytes;
    pthread_mutex_unlock(&shared->lock);
    return bytes;
}
