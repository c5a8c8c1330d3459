/* Ranges for profilers beside Prony (Nsight Systems, VTune and others): which run and which operator a thread is in.
 * Conventions: prony.h. */
#ifndef PRONY_RANGES_H
#define PRONY_RANGES_H

#include "prony.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Callbacks around runs and operators. A thread that calls `push` calls `pop` once for it, after the pops of its inner
 * ranges, also if the run fails or is cancelled. A run is a range of the calling thread; an operator is a range of the
 * thread that executes it, so with several inter-op workers it can lie on another thread than the run. Operators of
 * subgraphs lie in the range of their If, Loop or Scan. Threads inside an operator have no ranges. On a device without
 * stamps an operator's range is the time of queueing it.
 *
 * `name`: of the node, or of the model's file for a run. `type`: the operator's type, or "run". Both are valid during
 * the call only. The callbacks are called by several threads at once, and may not call this library. Times of operators
 * in reports include them. */
typedef struct prony_range_hooks {
    size_t struct_size;
    void (*push)(void *user, const char *name, const char *type);
    void (*pop)(void *user);
    void *user;
} prony_range_hooks;
#define PRONY_RANGE_HOOKS_INIT PRONY_INIT(prony_range_hooks)

/* Sets the hooks of the process; NULL: none, the default, which costs a run one test per operator. *hooks stays the
 * caller's, and unchanged until the hooks were replaced and all runs that began before have ended. Thread-safe; a range
 * that was pushed is popped by the same hooks. PRONY_INVALID_ARGUMENT: struct_size or a callback is missing.
 * PRONY_UNSUPPORTED: the struct is of a later version. */
PRONY_API PRONY_MUST_USE prony_status prony_range_hooks_install(const prony_range_hooks *hooks, prony_error *error);

/* Sets hooks that pass ranges, as "NAME (TYPE)", to a profiler's library. The library is loaded now, and stays loaded.
 *   "nvtx"  the library that NVTX_INJECTION64_PATH names, if set (Nsight Systems sets it for the programs that it
 *           starts); else libnvToolsExt.so.1 (CUDA up to version 12)
 *   "itt"   the collector that INTEL_LIBITTNOTIFY64 names (VTune sets it for the programs that it starts)
 * PRONY_INVALID_ARGUMENT: another tool. PRONY_UNSUPPORTED: the library cannot be loaded, or lacks a function; the
 * message names it, and the hooks are as before. Thread-safe. */
PRONY_API PRONY_MUST_USE prony_status prony_ranges_open(const char *tool, prony_error *error);

#ifdef __cplusplus
}
#endif
#endif
