/* Implements counters.h with a group of events per thread, so that one call reads all of them. The counters own the
 * descriptors. */
#define _GNU_SOURCE
#include "base/cpu/counters.h"
#include "base/memory/alloc.h"
#include "base/os/folder.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

const prn_counter_event prn_hardware_events[PRN_COUNTERS] = {{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
                                                             {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
                                                             {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES}};

struct prn_counters {
    int (*fds)[PRN_COUNTERS]; /* the first one leads the group */
    size_t count, capacity;
};

static int counters_open_event(const prn_counter_event *event, pid_t thread, int leader)
{
    struct perf_event_attr attr = {.type = event->type,
                                   .size = sizeof attr,
                                   .config = event->config,
                                   .read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED |
                                                  PERF_FORMAT_TOTAL_TIME_RUNNING,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};
    return (int)syscall(SYS_perf_event_open, &attr, thread, -1, leader, PERF_FLAG_FD_CLOEXEC);
}

static bool open_thread(prn_counters *counters, const prn_counter_event events[PRN_COUNTERS], pid_t thread)
{
    int *fds = counters->fds[counters->count];
    for (int e = 0; e < PRN_COUNTERS; e++) fds[e] = -1;
    counters->count++;
    for (int e = 0; e < PRN_COUNTERS; e++) {
        fds[e] = counters_open_event(&events[e], thread, e ? fds[0] : -1);
        if (fds[e] < 0) return errno == ESRCH && e == 0; /* the thread has ended meanwhile */
    }
    return true;
}

static void counters_explain(char why[160], int code)
{
    if (code == EACCES || code == EPERM)
        snprintf(why, 160,
                 "hardware counters are not allowed here: kernel.perf_event_paranoid is above 2, or the container "
                 "forbids them");
    else if (code == ENOENT || code == EOPNOTSUPP || code == ENODEV)
        snprintf(why, 160, "this machine has no hardware counters (virtual machines often hide them)");
    else
        snprintf(why, 160, "the kernel gives no hardware counters: %s", strerror(code));
}

prony_status prn_counters_open(prn_counters **out, const prn_counter_event events[PRN_COUNTERS], char why[160],
                               prony_error *error)
{
    prn_bump pool = {0};
    prn_folder threads = {0};
    prn_counters *counters = prn_calloc(1, sizeof *counters);
    *out = NULL;
    *why = '\0';
    if (!counters) return prn_no_memory(error);
    prony_status status = prn_folder_read(&threads, &pool, "/proc/self/task", error);
    for (size_t i = 0; status == PRONY_OK && i < threads.count && !*why; i++) {
        if (!PRN_GROW(counters->fds, counters->capacity, counters->count + 1))
            status = prn_no_memory(error);
        else if (!open_thread(counters, events, (pid_t)atoi(threads.entries[i].name)))
            counters_explain(why, errno);
    }
    prn_bump_release(&pool);
    if (status == PRONY_OK && !*why)
        *out = counters;
    else
        prn_counters_close(counters);
    return status;
}

void prn_counters_read(const prn_counters *counters, uint64_t out[PRN_COUNTERS])
{
    struct {
        uint64_t events, enabled, running, values[PRN_COUNTERS];
    } got;
    memset(out, 0, PRN_COUNTERS * sizeof *out);
    for (size_t t = 0; t < counters->count; t++) {
        int leader = counters->fds[t][0];
        if (leader < 0 || read(leader, &got, sizeof got) != (ssize_t)sizeof got || got.running == 0) continue;
        /* If events outnumber the processor's counters, the kernel multiplexes them. */
        double scale = (double)got.enabled / (double)got.running;
        for (int e = 0; e < PRN_COUNTERS; e++)
            out[e] += got.running == got.enabled ? got.values[e] : (uint64_t)((double)got.values[e] * scale);
    }
}

void prn_counters_close(prn_counters *counters)
{
    if (!counters) return;
    for (size_t t = 0; t < counters->count; t++)
        for (int e = 0; e < PRN_COUNTERS; e++)
            if (counters->fds[t][e] >= 0) close(counters->fds[t][e]);
    prn_free(counters->fds);
    prn_free(counters);
}
