/* The public pool object: its threads. Sessions keep a reference to the threads, not to the pool. */
#ifndef PRN_ENGINE_SESSION_SHARED_POOL_H
#define PRN_ENGINE_SESSION_SHARED_POOL_H

#include "base/threads/thread_pool.h"

struct prony_thread_pool {
    prn_thread_pool *team;
};

#endif
