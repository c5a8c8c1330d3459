/* Implements opencl_kv_cache.h, and the caches of ops/device.h. */
#include "ops/device.h"

#ifdef PRN_HAVE_OPENCL
#include "base/memory/alloc.h"
#include "ops/vendor/opencl/opencl.h"
#include "ops/vendor/opencl/opencl_kv_cache.h"

/* Invariant: rows [0, valid) of each of `blocks` blocks of the copy are the host's. The device's lock guards the list
 * and its members. */
typedef struct opencl_kv_cache {
    prn_device_cache of;
    void *address; /* NULL: no step has read it yet */
    size_t valid, blocks, block_bytes;
    struct opencl_kv_cache *next;
} opencl_kv_cache;

static opencl_kv_cache **opencl_kv_cache_find(prn_device *d, const void *host)
{
    opencl_kv_cache **at = &d->caches;
    while (*at && (*at)->of.host != host) at = &(*at)->next;
    return at;
}

static void opencl_kv_caches_release(prn_device *d)
{
    while (d->caches) prn_device_cache_close(d, d->caches->of.host);
}

prony_status prn_device_cache_open(prn_device *d, const prn_device_cache *cache, prony_error *error)
{
    pthread_mutex_lock(&d->lock);
    d->release_caches = opencl_kv_caches_release;
    opencl_kv_cache **at = opencl_kv_cache_find(d, cache->host);
    const bool known = *at != NULL;
    if (!known && (*at = prn_calloc(1, sizeof **at))) (*at)->of = *cache;
    const bool made = *at != NULL;
    pthread_mutex_unlock(&d->lock);
    return made ? PRONY_OK : prn_no_memory(error);
}

void prn_device_cache_changed(prn_device *d, const void *host)
{
    if (!d) return;
    pthread_mutex_lock(&d->lock);
    opencl_kv_cache *cache = *opencl_kv_cache_find(d, host);
    if (cache) cache->valid = 0;
    pthread_mutex_unlock(&d->lock);
}

void prn_device_cache_close(prn_device *d, const void *host)
{
    if (!d) return;
    pthread_mutex_lock(&d->lock);
    opencl_kv_cache **at = opencl_kv_cache_find(d, host), *cache = *at;
    if (cache) *at = cache->next;
    pthread_mutex_unlock(&d->lock);
    if (cache && cache->address) prn_opencl_space.give(d, cache->address);
    prn_free(cache);
}

uint64_t prn_device_cache_pending(prn_device *d)
{
    uint64_t bytes = 0;
    pthread_mutex_lock(&d->lock);
    for (const opencl_kv_cache *cache = d->caches; cache; cache = cache->next)
        if (!cache->address) bytes += cache->of.bytes;
    pthread_mutex_unlock(&d->lock);
    return bytes;
}

prony_status prn_device_settle(prn_device *d, prony_error *error)
{
    /* A thread that finds nothing unsettled may rely on it only when the thread that settles has waited. */
    pthread_mutex_lock(&d->settle_lock);
    const prony_status status = atomic_exchange(&d->unsettled, false) ? prn_device_finish(d, error) : PRONY_OK;
    pthread_mutex_unlock(&d->settle_lock);
    return status;
}

void prn_opencl_kv_cache_holds(prn_device *d, const void *host, size_t rows)
{
    pthread_mutex_lock(&d->lock);
    opencl_kv_cache *cache = *opencl_kv_cache_find(d, host);
    if (cache && rows > cache->valid) cache->valid = rows;
    pthread_mutex_unlock(&d->lock);
}

/* ---- copies of rows ---- */

static prony_status opencl_kv_cache_copied(const prony_context *context, cl_int code, cl_event event, const char *what)
{
    prn_device *d = context->device->device;
    PRN_TRY(prn_opencl_status(code, d->info.id, what, context->error));
    return event ? prn_opencl_timed(d, event, context->device, context->error) : PRONY_OK;
}

static prony_status opencl_kv_cache_upload(const prony_context *context, const prn_opencl_kv_cache *cache,
                                           const void *address, size_t first, size_t count)
{
    prn_device *d = context->device->device;
    size_t offset = 0;
    cl_event event = NULL, *timed = context->device->timed ? &event : NULL;
    cl_mem memory = prn_opencl_find(d, address, &offset);
    const size_t at = first * cache->row_bytes, to[3] = {offset + at, 0, 0}, from[3] = {at, 0, 0},
                 region[3] = {count * cache->row_bytes, cache->blocks, 1};
    const cl_int code = PRN_CL(clEnqueueWriteBufferRect, d->queue, memory, CL_TRUE, to, from, region,
                               cache->block_bytes, 0, cache->block_bytes, 0, cache->host, 0, NULL, timed);
    return opencl_kv_cache_copied(context, code, event, "copying a cache to the device");
}

prony_status prn_opencl_kv_cache_write(const prony_context *context, const prn_opencl_kv_cache *cache,
                                       const void *address, size_t block, size_t blocks, size_t first, size_t count)
{
    prn_device *d = context->device->device;
    size_t offset = 0;
    cl_event event = NULL, *timed = context->device->timed ? &event : NULL;
    cl_mem memory = prn_opencl_find(d, address, &offset);
    const size_t at = block * cache->block_bytes + first * cache->row_bytes, from[3] = {offset + at, 0, 0},
                 to[3] = {at, 0, 0}, region[3] = {count * cache->row_bytes, blocks, 1};
    const cl_int code = PRN_CL(clEnqueueReadBufferRect, d->queue, memory, CL_FALSE, from, to, region,
                               cache->block_bytes, 0, cache->block_bytes, 0, cache->host, 0, NULL, timed);
    atomic_store(&d->unsettled, true);
    return opencl_kv_cache_copied(context, code, event, "copying rows of a cache from the device");
}

prony_status prn_opencl_queue_write(const prony_context *context, const void *address, const void *data, size_t bytes)
{
    prn_device *d = context->device->device;
    size_t offset = 0;
    cl_event event = NULL, *timed = context->device->timed ? &event : NULL;
    cl_mem memory = prn_opencl_find(d, address, &offset);
    const cl_int code = PRN_CL(clEnqueueWriteBuffer, d->queue, memory, CL_FALSE, offset, bytes, data, 0, NULL, timed);
    atomic_store(&d->unsettled, true);
    return opencl_kv_cache_copied(context, code, event, "copying a table to the device");
}

/* Takes the memory of a cache that a step reads for the first time. */
static prony_status opencl_kv_cache_take(const prony_context *context, size_t bytes, uint64_t limit, void **out)
{
    prn_device *d = context->device->device;
    const uint64_t used = prn_device_usage(d).bytes;
    if (limit > 0 && (used > limit || bytes > limit - used))
        return prony_fail(context, PRONY_LIMIT,
                          "%s: its cache needs %zu bytes of the device, where %llu of %llu are in use", d->info.id,
                          bytes, (unsigned long long)used, (unsigned long long)limit);
    *out = prn_opencl_space.take(d, bytes);
    if (*out) return PRONY_OK;
    return prony_fail(context, PRONY_OUT_OF_MEMORY, "%s: no room for a cache of %zu bytes", d->info.id, bytes);
}

/* A known cache keeps its memory from run to run; rows that the device has already are not copied again. Other blocks than
 * last time make its rows invalid. The lock guards the list alone, because one run at a time uses a cache. */
prony_status prn_opencl_kv_cache_read(const prony_context *context, const prn_opencl_kv_cache *cache, size_t rows,
                                      void **address, bool *kept)
{
    prn_device *d = context->device->device;
    const size_t bytes = cache->blocks * cache->block_bytes;
    prn_device_cache of = {0};
    size_t valid = 0;
    *address = NULL;
    pthread_mutex_lock(&d->lock);
    opencl_kv_cache *known = *opencl_kv_cache_find(d, cache->host);
    *kept = known && known->of.bytes >= bytes;
    if (*kept) {
        if (known->blocks != cache->blocks || known->block_bytes != cache->block_bytes) known->valid = 0;
        known->blocks = cache->blocks;
        known->block_bytes = cache->block_bytes;
        of = known->of;
        valid = known->valid;
        *address = known->address;
    }
    pthread_mutex_unlock(&d->lock);
    if (!*address) {
        PRN_TRY(opencl_kv_cache_take(context, *kept ? of.bytes : bytes, of.limit, address));
        valid = 0;
        pthread_mutex_lock(&d->lock);
        if (*kept) known->address = *address; /* one run at a time uses a cache */
        pthread_mutex_unlock(&d->lock);
    }
    prony_status status =
        rows > valid ? opencl_kv_cache_upload(context, cache, *address, valid, rows - valid) : PRONY_OK;
    if (status == PRONY_OK && *kept) prn_opencl_kv_cache_holds(d, cache->host, rows);
    if (status != PRONY_OK && !*kept) {
        prn_opencl_space.give(d, *address);
        *address = NULL;
    }
    return status;
}
#else
prony_status prn_device_settle(prn_device *device, prony_error *error)
{
    (void)device, (void)error;
    return PRONY_OK;
}

prony_status prn_device_cache_open(prn_device *device, const prn_device_cache *cache, prony_error *error)
{
    (void)device, (void)cache, (void)error;
    return PRONY_OK;
}

uint64_t prn_device_cache_pending(prn_device *device)
{
    (void)device;
    return 0;
}

void prn_device_cache_changed(prn_device *device, const void *host)
{
    (void)device, (void)host;
}

void prn_device_cache_close(prn_device *device, const void *host)
{
    (void)device, (void)host;
}
#endif
