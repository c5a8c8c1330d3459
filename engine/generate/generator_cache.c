/* Copies of a generator's caches on the session's device (ops/device.h). A step that appends keeps them the same; every
 * other change of a cache's bytes is told. */
#include "base/memory/alloc.h"
#include "engine/generate/generator.h"
#include "ops/device.h"

void prn_generator_free_rows(prony_generator *generator, prn_generator_cache *cache, int which)
{
    prn_device_cache_close(generator->session->device, cache->rows[which]);
    prn_free_aligned(cache->rows[which]);
    cache->rows[which] = NULL;
}

void prn_generator_caches_changed(prony_generator *generator)
{
    for (size_t k = 0; k < generator->cache_count && generator->session->device; k++)
        for (int r = 0; r < 2; r++) prn_device_cache_changed(generator->session->device, generator->caches[k].rows[r]);
}

prony_status prn_generator_announce(prony_generator *generator, const prn_generator_cache *cache, prony_error *error)
{
    const prony_session *session = generator->session;
    const bool rows = !cache->cross && cache->form == PRN_CACHE_ROWS && cache->stored == PRN_CACHE_FLOAT32;
    if (!session->device || !rows) return PRONY_OK;
    const prn_device_cache announced = {cache->rows[cache->current], cache->capacity_bytes,
                                        session->options.device_memory_limit_bytes};
    return prn_device_cache_open(session->device, &announced, error);
}
