/* /proc/stat counts the time of all processes, the process clock that of this one; the difference is the others'. The
 * second number of /proc/self/task/N/schedstat is the time that a thread was ready but did not run. */
#include "base/os/disturbance.h"

#include "base/memory/alloc.h"
#include "base/os/folder.h"
#include "base/os/text_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

/* Share of others or the hypervisor; a quiet machine shows less. These four were chosen without measurement. */
#define SOME 0.02
#define MUCH_WAITED 0.03
#define MUCH_OTHERS 0.05
#define LITTLE_IDLE 0.10

static int64_t waited_ns(void)
{
    prn_bump pool = {0};
    prn_folder tasks;
    prony_error none = {0};
    int64_t sum = 0;
    bool known = false;
    if (prn_folder_read(&tasks, &pool, "/proc/self/task", &none) != PRONY_OK) tasks.count = 0;
    for (size_t i = 0; i < tasks.count; i++) {
        char path[64], text[96], *end;
        snprintf(path, sizeof path, "/proc/self/task/%.20s/schedstat", tasks.entries[i].name);
        if (!prn_text_read(path, text, sizeof text)) continue;
        (void)strtoll(text, &end, 10);
        sum += strtoll(end, NULL, 10);
        known = true;
    }
    prn_bump_release(&pool);
    return known ? sum : -1;
}

void prn_load_state_read(prn_load_state *out, const prn_cpu_mask *mask)
{
    struct rusage own;
    struct timespec cpu;
    *out = (prn_load_state){.waited_ns = waited_ns()};
    if (getrusage(RUSAGE_SELF, &own) == 0) out->involuntary_switches = own.ru_nivcsw;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu) == 0)
        out->own_cpu_ns = (int64_t)cpu.tv_sec * 1000000000 + cpu.tv_nsec;
    prn_machine_times_read(&out->machine, mask);
}

static double at_least_0(double x)
{
    return x > 0 ? x : 0;
}

/* The verdict. Threads that wait while no other process runs wait for each other: more threads than processors were
 * requested. */
static prn_verdict disturbance_judge(const prn_disturbance *d, double own)
{
    if (d->others < 0) return d->waited > MUCH_WAITED ? PRN_LOAD_BUSY : PRN_LOAD_UNKNOWN;
    if (d->steal > SOME || (d->others > SOME && d->waited > MUCH_WAITED)) return PRN_LOAD_BUSY;
    return d->others > MUCH_OTHERS && d->others + own > 1 - LITTLE_IDLE ? PRN_LOAD_BUSY : PRN_LOAD_QUIET;
}

bool prn_disturbance_text(const prn_disturbance *d, char *out, size_t size)
{
    if (d->verdict != PRN_LOAD_BUSY) return false;
    if (d->others < 0 && d->waited > 1) /* the kernel counts a wait when it ends: it may have begun before the runs */
        snprintf(out, size, "threads waited longer for a processor than the runs took: times are too high");
    else if (d->others < 0)
        snprintf(out, size, "threads waited %.0f %% of the time for a processor: times are too high", d->waited * 100);
    else if (d->steal > d->others / 2)
        snprintf(out, size, "the hypervisor gave %.0f %% of the processors to others: times are too high",
                 d->steal * 100);
    else
        snprintf(out, size, "other processes took %.0f %% of the processors: times are too high", d->others * 100);
    return true;
}

void prn_disturbance_between(prn_disturbance *out, const prn_load_state *before, const prn_load_state *after)
{
    double wall = (double)(after->machine.time_ns - before->machine.time_ns);
    *out = (prn_disturbance){.others = -1, .steal = -1, .waited = -1};
    out->involuntary_switches = after->involuntary_switches - before->involuntary_switches;
    if (wall <= 0) return;
    if (before->waited_ns >= 0 && after->waited_ns >= 0)
        out->waited = at_least_0((double)(after->waited_ns - before->waited_ns) / wall);
    prn_machine_shares shares =
        prn_machine_shares_between(&before->machine, &after->machine, after->own_cpu_ns - before->own_cpu_ns);
    out->others = shares.others;
    out->steal = shares.steal;
    out->verdict = disturbance_judge(out, shares.own);
}

const char *prn_verdict_name(prn_verdict verdict)
{
    static const char *const names[] = {"unknown", "quiet", "busy"};
    return names[verdict];
}
