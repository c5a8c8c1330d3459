/* Facts about machine and process, from /proc, /sys and system calls. Values that cannot be read stay empty, 0 or -1.
 * The count of all heap calls comes from hooks that a program may link; they register here. */
#define _GNU_SOURCE
#include "base/cpu/machine.h"
#include "base/cpu/arm_core.h"

#include "base/os/clock.h"
#include "base/os/cgroup.h"
#include "base/os/cpu_mask.h"
#include "base/os/text_file.h"
#include "base/cpu/topology.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#define CPU_FOLDER PRN_SYSTEM_FOLDER "/cpu"
#define OWN_GROUPS "/proc/self/cgroup"
#define OWN_MOUNTS "/proc/self/mountinfo"

/* Truncates texts that do not fit. */
static void machine_copy_text(char *to, size_t size, const char *from)
{
    size_t length = strlen(from);
    if (length > size - 1) length = size - 1;
    memcpy(to, from, length);
    to[length] = '\0';
}

/* The value of the first "KEY<separator>VALUE" line, quotes and leading blanks removed. */
static bool find_field(const char *path, const char *key, char separator, char *out, size_t size)
{
    prn_lines lines;
    if (!prn_lines_open(&lines, path)) return false;
    bool found = false;
    size_t key_length = strlen(key);
    for (char *line; !found && (line = prn_lines_next(&lines));) {
        char *value = strchr(line, separator);
        if (!value || strncmp(line, key, key_length) != 0) continue;
        if (strspn(line + key_length, " \t") != (size_t)(value - line) - key_length) continue;
        value += 1 + strspn(value + 1, " \t\"");
        machine_copy_text(out, size, value);
        out[strcspn(out, "\"")] = '\0';
        found = true;
    }
    prn_lines_close(&lines);
    return found;
}

static int64_t find_number(const char *path, const char *key)
{
    char text[64];
    return find_field(path, key, ':', text, sizeof text) ? strtoll(text, NULL, 10) : 0;
}

static int online_cpus(void)
{
    char text[256];
    prn_cpu_mask mask;
    if (prn_text_read(CPU_FOLDER "/online", text, sizeof text) && prn_cpu_mask_parse(&mask, text))
        return prn_cpu_mask_count(&mask);
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? (int)count : 0;
}

static bool read_cpu_list(prn_cpu_mask *mask, int cpu, const char *name)
{
    char path[256], text[1024];
    snprintf(path, sizeof path, CPU_FOLDER "/cpu%d/%s", cpu, name);
    return prn_text_read(path, text, sizeof text) && prn_cpu_mask_parse(mask, text);
}

/* "32K", "8192K", "16M" */
static uint64_t machine_parse_size(const char *text)
{
    char *end;
    uint64_t size = strtoull(text, &end, 10);
    if (*end == 'K') return size << 10;
    if (*end == 'M') return size << 20;
    if (*end == 'G') return size << 30;
    return size;
}

static void machine_read_caches(prn_machine *machine, int cpu)
{
    int most = (int)(sizeof machine->caches / sizeof machine->caches[0]);
    for (int index = 0; index < most; index++) {
        char path[128], text[64];
        int64_t level;
        prn_cache_level *cache = &machine->caches[machine->cache_count];
        snprintf(path, sizeof path, CPU_FOLDER "/cpu%d/cache/index%d/level", cpu, index);
        if (!prn_text_read_int(path, &level)) return;
        snprintf(path, sizeof path, CPU_FOLDER "/cpu%d/cache/index%d/type", cpu, index);
        prn_text_read(path, cache->type, sizeof cache->type);
        if (cache->type[0]) cache->type[0] = (char)(cache->type[0] | 0x20);
        snprintf(path, sizeof path, CPU_FOLDER "/cpu%d/cache/index%d/size", cpu, index);
        if (!prn_text_read(path, text, sizeof text)) continue;
        snprintf(path, sizeof path, "cache/index%d/shared_cpu_list", index);
        prn_cpu_mask shared;
        cache->shared_by = read_cpu_list(&shared, cpu, path) ? prn_cpu_mask_count(&shared) : 0;
        cache->level = (int)level;
        cache->bytes = machine_parse_size(text);
        machine->cache_count++;
    }
}

/* Cache sizes from the C library, if /sys is missing (a bare chroot, some containers). Its third level is not used: for
 * AMD it is that of a whole package. */
static void ask_for_caches(prn_machine *machine)
{
#ifdef _SC_LEVEL1_DCACHE_SIZE
    static const struct {
        int level, name;
        const char *type;
    } rows[] = {{1, _SC_LEVEL1_DCACHE_SIZE, "data"},
                {1, _SC_LEVEL1_ICACHE_SIZE, "instruction"},
                {2, _SC_LEVEL2_CACHE_SIZE, "unified"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        long bytes = sysconf(rows[i].name);
        prn_cache_level *cache = &machine->caches[machine->cache_count];
        if (bytes <= 0) continue;
        *cache = (prn_cache_level){.level = rows[i].level, .bytes = (uint64_t)bytes};
        machine_copy_text(cache->type, sizeof cache->type, rows[i].type);
        machine->cache_count++;
    }
#endif
}

static void read_names(prn_machine *machine)
{
    struct utsname names;
    if (uname(&names) == 0) {
        machine_copy_text(machine->host_name, sizeof machine->host_name, names.nodename);
        snprintf(machine->os_release, sizeof machine->os_release, "%.48s %.64s", names.sysname, names.release);
        machine_copy_text(machine->os, sizeof machine->os, names.sysname);
    }
    find_field("/etc/os-release", "PRETTY_NAME", '=', machine->os, sizeof machine->os);
    if (!find_field("/proc/cpuinfo", "model name", ':', machine->cpu_model, sizeof machine->cpu_model))
        (void)prn_arm_core_read(machine->cpu_model, sizeof machine->cpu_model, "/proc/cpuinfo");
}

/* Names and caches as seen from processor `cpu`. They do not change while the process runs, and reading them opens some
 * twenty files, so they are read once for each processor that is asked for in a row. */
static void read_fixed_facts(prn_machine *machine, int cpu)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static prn_machine facts;
    static int facts_cpu = -1;
    pthread_mutex_lock(&lock);
    if (facts_cpu != cpu) {
        memset(&facts, 0, sizeof facts);
        read_names(&facts);
        machine_read_caches(&facts, cpu);
        if (!facts.cache_count) ask_for_caches(&facts);
        facts_cpu = cpu;
    }
    *machine = facts;
    pthread_mutex_unlock(&lock);
}

static double quota_cpus(void)
{
    return prn_cgroup_quota_cpus(OWN_GROUPS, OWN_MOUNTS);
}

/* Processors that this thread may use: its mask, limited by the cpusets of its groups. Linux applies cpusets to the
 * mask itself; systems that imitate Linux do not. */
static bool usable_mask(prn_cpu_mask *mask)
{
    prn_cpu_mask set;
    if (!prn_cpu_mask_get(mask)) return false;
    if (prn_cgroup_cpuset(&set, OWN_GROUPS, OWN_MOUNTS)) (void)prn_cpu_mask_intersect(mask, &set);
    return true;
}

uint64_t prn_machine_available_bytes(void)
{
    uint64_t machine = (uint64_t)find_number("/proc/meminfo", "MemAvailable") << 10;
    uint64_t group = prn_cgroup_memory_left(OWN_GROUPS, OWN_MOUNTS);
    if (machine == 0) return group == UINT64_MAX ? 0 : group;
    return group < machine ? group : machine;
}

void prn_machine_read(prn_machine *machine, const prn_cpu_mask *restricted)
{
    prn_cpu_mask mask;
    const bool known = restricted ? (mask = *restricted, true) : usable_mask(&mask);
    int first = 0;
    while (known && first < PRN_MAX_CPUS - 1 && !prn_cpu_mask_has(&mask, first)) first++;
    read_fixed_facts(machine, first);
    machine->cpu_count = online_cpus();
    if (known) {
        machine->mask_count = prn_cpu_mask_count(&mask);
        machine->physical_cores = prn_topology_cores(&mask, PRN_SYSTEM_FOLDER);
    }
    machine->quota_cpus = quota_cpus();
    machine->total_memory_bytes = (uint64_t)find_number("/proc/meminfo", "MemTotal") << 10;
    char path[128], text[64];
    machine->load_avg_1min = prn_text_read("/proc/loadavg", text, sizeof text) ? strtod(text, NULL) : -1;
    snprintf(path, sizeof path, CPU_FOLDER "/cpu%d/cpufreq/scaling_governor", first);
    prn_text_read(path, machine->governor, sizeof machine->governor);
}

int prn_machine_auto_threads(int inter_op, const prn_cpu_mask *restricted)
{
    prn_cpu_mask mask;
    int cores = 0;
    if (restricted ? (mask = *restricted, true) : usable_mask(&mask)) {
        cores = prn_topology_cores(&mask, PRN_SYSTEM_FOLDER);
        if (cores == 0) cores = prn_cpu_mask_count(&mask);
    }
    return prn_machine_threads_of(cores, quota_cpus(), inter_op);
}

int prn_machine_threads_of(int cores, double quota, int inter_op)
{
    double usable = cores > 0 ? cores : 1;
    if (quota > 0 && quota < usable) usable = quota;
    double each = floor(usable / (inter_op > 1 ? inter_op : 1));
    return each < 1 ? 1 : (int)each;
}

static int64_t timeval_ns(struct timeval time)
{
    return (int64_t)time.tv_sec * 1000000000 + (int64_t)time.tv_usec * 1000;
}

uint64_t prn_resident_bytes(void)
{
    char text[128], *rest; /* "SIZE RESIDENT …", in pages */
    if (!prn_text_read("/proc/self/statm", text, sizeof text)) return 0;
    strtoull(text, &rest, 10);
    long page = sysconf(_SC_PAGESIZE);
    return page > 0 ? strtoull(rest, NULL, 10) * (uint64_t)page : 0;
}

static void read_times(prn_usage *usage)
{
    struct rusage own;
    if (getrusage(RUSAGE_SELF, &own) != 0) return;
    usage->user_ns = timeval_ns(own.ru_utime);
    usage->system_ns = timeval_ns(own.ru_stime);
    usage->voluntary_switches = own.ru_nvcsw;
    usage->involuntary_switches = own.ru_nivcsw;
}

static void machine_read_files(prn_usage *usage)
{
    usage->peak_rss_bytes = (uint64_t)find_number("/proc/self/status", "VmHWM") << 10;
    usage->read_bytes = (uint64_t)find_number("/proc/self/io", "read_bytes");
    usage->written_bytes = (uint64_t)find_number("/proc/self/io", "write_bytes");
    usage->read_calls = (uint64_t)find_number("/proc/self/io", "syscr");
    usage->write_calls = (uint64_t)find_number("/proc/self/io", "syscw");
}

void prn_usage_begin(prn_usage *usage)
{
    *usage = (prn_usage){0};
    machine_read_files(usage);
    usage->time_ns = prn_now_ns();
    read_times(usage);
}

void prn_usage_end(prn_usage *usage)
{
    *usage = (prn_usage){0};
    read_times(usage);
    usage->time_ns = prn_now_ns();
    machine_read_files(usage);
}

static uint64_t (*_Atomic heap_hook)(void);

void prony_heap_hook_install(uint64_t (*count)(void))
{
    atomic_store(&heap_hook, count);
}

bool prn_all_heap_calls(uint64_t *out)
{
    uint64_t (*count)(void) = atomic_load(&heap_hook);
    if (!count) return false;
    *out = count();
    return true;
}
