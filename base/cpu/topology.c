/* A processor's position follows from three numbers: its rank among its core's processors in the mask, its node, and
 * its own number. Selection runs over ranks and nodes, so nothing is sorted or allocated. */
#include "base/cpu/topology.h"
#include "base/os/text_file.h"

#include <limits.h>
#include <stdio.h>

static bool topology_read_list(prn_cpu_mask *mask, const char *path)
{
    char text[4096];
    return prn_text_read(path, text, sizeof text) && prn_cpu_mask_parse(mask, text);
}

/* The processors of the core that `cpu` belongs to. Newer kernels call the list core_cpus_list. */
static bool read_siblings(prn_cpu_mask *siblings, int cpu, const char *folder)
{
    static const char *const names[] = {"thread_siblings_list", "core_cpus_list"};
    for (int i = 0; i < 2; i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/cpu/cpu%d/topology/%s", folder, cpu, names[i]);
        if (topology_read_list(siblings, path)) return true;
    }
    return false;
}

int prn_topology_cores(const prn_cpu_mask *mask, const char *folder)
{
    int cores = 0;
    prn_cpu_mask seen = {0};
    for (int cpu = 0; cpu < PRN_MAX_CPUS; cpu++) {
        if (!prn_cpu_mask_has(mask, cpu)) continue;
        prn_cpu_mask siblings;
        if (!read_siblings(&siblings, cpu, folder)) return 0;
        if (prn_cpu_mask_has(&seen, cpu)) continue;
        for (int other = 0; other < PRN_MAX_CPUS; other++) {
            if (prn_cpu_mask_has(&siblings, other)) prn_cpu_mask_add(&seen, other);
        }
        cores++;
    }
    return cores;
}

typedef struct topology_traits {
    unsigned short rank, capacity; /* among the processors of its core; of its core */
} topology_traits;

/* Processors of the same core in the mask that have a smaller number. */
static int rank_in_core(const prn_cpu_mask *mask, int cpu, const char *folder)
{
    prn_cpu_mask siblings;
    int rank = 0;
    if (!read_siblings(&siblings, cpu, folder)) return 0;
    for (int other = 0; other < cpu; other++)
        rank += prn_cpu_mask_has(mask, other) && prn_cpu_mask_has(&siblings, other);
    return rank;
}

/* The core's speed, where the machine's fastest has 1024; 0: not known. Processors with cores of several
 * kinds have the file (big.LITTLE). */
static int read_capacity(int cpu, const char *folder)
{
    char path[PATH_MAX];
    int64_t capacity;
    snprintf(path, sizeof path, "%s/cpu/cpu%d/cpu_capacity", folder, cpu);
    return prn_text_read_int(path, &capacity) && capacity > 0 && capacity <= USHRT_MAX ? (int)capacity : 0;
}

enum { MOST_KINDS = 8 }; /* of cores of one machine; further ones count as the slowest */

/* Inserts a capacity into the list of those that there are, largest first. */
static void add_kind(unsigned short kinds[MOST_KINDS], int *count, unsigned short capacity)
{
    int at = 0;
    while (at < *count && kinds[at] > capacity) at++;
    if (at == MOST_KINDS || (at < *count && kinds[at] == capacity)) return;
    for (int i = *count < MOST_KINDS ? *count : MOST_KINDS - 1; i > at; i--) kinds[i] = kinds[i - 1];
    kinds[at] = capacity;
    if (*count < MOST_KINDS) ++*count;
}

/* Moves the processors of `left` that are in `among`, have this rank and at least this capacity to `order`, by
 * number. */
static int topology_take(int *order, prn_cpu_mask *left, const prn_cpu_mask *among, const topology_traits *traits,
                         int rank, int capacity)
{
    int count = 0;
    for (int cpu = 0; cpu < PRN_MAX_CPUS; cpu++) {
        if (!prn_cpu_mask_has(left, cpu) || (among && !prn_cpu_mask_has(among, cpu)) || traits[cpu].rank != rank ||
            traits[cpu].capacity < capacity)
            continue;
        prn_cpu_mask_remove(left, cpu);
        order[count++] = cpu;
    }
    return count;
}

/* Fills order [processors in the mask] with each processor once. Processors are ordered by rank among their core's
 * threads, then NUMA node, then capacity (fastest first), then number. So every core gets one thread before any gets a
 * second, and within a rank a node is filled before the next one. */
void prn_topology_order(int *order, const prn_cpu_mask *mask, const char *folder)
{
    topology_traits traits[PRN_MAX_CPUS] = {{0}};
    unsigned short kinds[MOST_KINDS];
    int kind_count = 0;
    prn_cpu_mask left = *mask, nodes, members;
    char path[PATH_MAX];
    int done = 0, most = 0;
    for (int cpu = 0; cpu < PRN_MAX_CPUS; cpu++) {
        if (!prn_cpu_mask_has(mask, cpu)) continue;
        int rank = rank_in_core(mask, cpu, folder);
        traits[cpu].rank = (unsigned short)(rank < USHRT_MAX ? rank : USHRT_MAX);
        traits[cpu].capacity = (unsigned short)read_capacity(cpu, folder);
        add_kind(kinds, &kind_count, traits[cpu].capacity);
        if (traits[cpu].rank > most) most = traits[cpu].rank;
    }
    snprintf(path, sizeof path, "%s/node/online", folder);
    bool known = topology_read_list(&nodes, path);
    for (int rank = 0; rank <= most; rank++) {
        for (int node = 0; known && node < PRN_NUMA_MOST; node++) {
            if (!prn_cpu_mask_has(&nodes, node)) continue;
            snprintf(path, sizeof path, "%s/node/node%d/cpulist", folder, node);
            if (!topology_read_list(&members, path)) continue;
            for (int k = 0; k < kind_count; k++)
                done += topology_take(order + done, &left, &members, traits, rank, k + 1 < kind_count ? kinds[k] : 0);
        }
        for (int k = 0; k < kind_count; k++) /* processors without a node */
            done += topology_take(order + done, &left, NULL, traits, rank, k + 1 < kind_count ? kinds[k] : 0);
    }
}
