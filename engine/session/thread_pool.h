/* A pool in memory: its threads. Sessions keep those, not the pool. */
#ifndef PRN_ENGINE_SESSION_THREAD_POOL_H
#define PRN_ENGINE_SESSION_THREAD_POOL_H

#include "base/threads/team.h"

struct prony_pool {
    prn_team *team;
};

#endif
