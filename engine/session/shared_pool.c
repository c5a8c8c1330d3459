/* prony_pool_*: threads that several sessions share. */
#include "engine/session/shared_pool.h"
#include "base/memory/alloc.h"
#include "base/cpu/machine.h"

prony_status prony_thread_pool_create(prony_thread_pool **out, int threads, prony_error *error)
{
    if (!out) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_thread_pool_create: an argument is NULL");
    if (threads < 0 || threads > PRN_MOST_THREADS - 1)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "a pool of %d threads: wanted 0 (auto) to %d",
                        PRN_MOST_THREADS - 1, threads);
    prony_thread_pool *pool = prn_calloc(1, sizeof *pool);
    if (!pool) return prn_no_memory(error);
    prony_status status =
        prn_thread_pool_create(&pool->team, threads ? threads : prn_machine_auto_threads(1, NULL) - 1, true, error);
    if (status != PRONY_OK) {
        prn_free(pool);
        return status;
    }
    *out = pool;
    return PRONY_OK;
}

void prony_thread_pool_release(prony_thread_pool *pool)
{
    if (!pool) return;
    prn_thread_pool_release(pool->team);
    prn_free(pool);
}

int prony_thread_pool_threads(const prony_thread_pool *pool)
{
    return prn_thread_pool_size(pool->team);
}
