/* Facts about this machine and process, read from the kernel. Missing facts are empty strings, 0 or -1, never
 * guesses. */
#ifndef PRN_BASE_CPU_MACHINE_H
#define PRN_BASE_CPU_MACHINE_H

#include "base/os/cpu_mask.h"
#include "base/status.h"

typedef struct prn_cache_level {
    int level;
    char type[16]; /* "data", "instruction", "unified" */
    uint64_t bytes;
    int shared_by; /* logical processors; 0: not known */
} prn_cache_level;

typedef struct prn_machine {
    char host_name[256], os[64], os_release[128], cpu_model[128], governor[32];
    int cpu_count;      /* logical processors online */
    int mask_count;     /* logical processors in the mask */
    int physical_cores; /* distinct cores in the mask */
    double quota_cpus;  /* cgroup CPU quota, the smallest of all ancestors, v1 and v2; 0: none */
    uint64_t total_memory_bytes;
    double load_avg_1min; /* -1: unknown */
    prn_cache_level caches[16];
    int cache_count;
} prn_machine;

/* `mask`: processors to use instead of the calling thread's mask (an affinity list); NULL: the thread's mask, limited
 * by cpusets. */
void prn_machine_read(prn_machine *machine, const prn_cpu_mask *mask);

/* -x auto = max(1, floor(min(physical cores in the mask, cgroup quota) / inter_op)). */
int prn_machine_auto_threads(int inter_op, const prn_cpu_mask *mask);
/* The same for given values; quota 0: none. */
int prn_machine_threads_of(int cores, double quota, int inter_op);

/* Memory that this process can still get: the least of the machine's and every enclosing control group's. 0: not
 * known. */
uint64_t prn_machine_available_bytes(void);

/* Resource use of this process so far. */
typedef struct prn_usage {
    int64_t time_ns; /* of the monotonic clock, when the times below were taken */
    int64_t user_ns, system_ns;
    int64_t voluntary_switches, involuntary_switches;
    uint64_t peak_rss_bytes;
    uint64_t read_bytes, written_bytes, read_calls, write_calls; /* /proc/self/io */
} prn_usage;
/* Called before and after measured work. The clock is read outside of the processor times, and both inside of all other
 * readings. So the processor time never exceeds the clock time times the threads, and excludes the cost of reading. */
void prn_usage_begin(prn_usage *usage);
void prn_usage_end(prn_usage *usage);
/* Memory of this process that is resident now; 0: not known. */
uint64_t prn_resident_bytes(void);

/* malloc, calloc, realloc, free and aligned relatives called by the calling process since start, all libraries
 * included. false: the program does not interpose them (prony_heap_hook_install; the `prony` command and the tests
 * do). */
bool prn_all_heap_calls(uint64_t *out);

#endif
