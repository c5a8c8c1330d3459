/* Processors are those of the calling thread's affinity mask. Their times are /proc/stat's ticks; frequency comes from
 * the governor, or from /proc/cpuinfo without one; throttling is counted by the processor's own events. */
#include "base/os/machine_state.h"

#include "base/os/clock.h"
#include "base/os/core_times.h"
#include "base/os/cpu_mask.h"
#include "base/os/text_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* FEWEST_TICKS: with fewer ticks a share of a few per cent is not resolved. */
#define FEWEST_TICKS 40

static double frequency_of_governor(const prn_cpu_mask *mask)
{
    double sum = 0;
    size_t known = 0;
    for (int core = 0; core < PRN_MAX_CPUS; core++) {
        char path[96];
        int64_t khz;
        if (!prn_cpu_mask_has(mask, core)) continue;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", core);
        if (!prn_text_read_int(path, &khz) || khz <= 0) continue;
        sum += (double)khz * 1e3;
        known++;
    }
    return known ? sum / (double)known : 0;
}

static double frequency_of_cpuinfo(const prn_cpu_mask *mask)
{
    prn_lines lines;
    long core = -1;
    double sum = 0;
    size_t known = 0;
    if (!prn_lines_open(&lines, "/proc/cpuinfo")) return 0;
    for (char *line; (line = prn_lines_next(&lines));) {
        const char *value = strchr(line, ':');
        if (!value) continue;
        if (strncmp(line, "processor", 9) == 0) core = strtol(value + 1, NULL, 10);
        if (strncmp(line, "cpu MHz", 7) != 0 || core < 0 || core >= PRN_MAX_CPUS || !prn_cpu_mask_has(mask, (int)core))
            continue;
        /* The locale's decimal point may be a comma: whole MHz are enough. */
        sum += (double)strtol(value + 1, NULL, 10) * 1e6;
        known++;
    }
    prn_lines_close(&lines);
    return known ? sum / (double)known : 0;
}

static int64_t throttles(const prn_cpu_mask *mask)
{
    int64_t sum = -1;
    for (int core = 0; core < PRN_MAX_CPUS; core++) {
        char path[96];
        int64_t events;
        if (!prn_cpu_mask_has(mask, core)) continue;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/thermal_throttle/core_throttle_count", core);
        if (prn_text_read_int(path, &events)) sum = (sum < 0 ? 0 : sum) + events;
    }
    return sum;
}

static double temperature(void)
{
    double hottest = NAN;
    for (int zone = 0;; zone++) {
        char path[64];
        int64_t millis;
        snprintf(path, sizeof path, "/sys/class/thermal/thermal_zone%d/temp", zone);
        if (!prn_text_read_int(path, &millis)) break;
        if (isnan(hottest) || (double)millis / 1000 > hottest) hottest = (double)millis / 1000;
    }
    return hottest;
}

static uint64_t machine_state_context_switches(void)
{
    prn_lines lines;
    uint64_t switches = 0;
    if (!prn_lines_open(&lines, "/proc/stat")) return 0;
    for (char *line; (line = prn_lines_next(&lines));)
        if (strncmp(line, "ctxt ", 5) == 0) switches = strtoull(line + 5, NULL, 10);
    prn_lines_close(&lines);
    return switches;
}

static uint64_t tick_ns(void)
{
    long hertz = sysconf(_SC_CLK_TCK);
    return hertz > 0 ? UINT64_C(1000000000) / (uint64_t)hertz : 10000000;
}

void prn_machine_times_read(prony_machine_state *out, const prn_cpu_mask *mask)
{
    prn_cpu_mask own;
    prn_core_times sum;
    uint64_t tick = tick_ns();
    *out = (prony_machine_state){.time_ns = prn_now_ns(), .temperature_c = NAN, .throttle_events = -1};
    if (!mask && !prn_cpu_mask_get(&own)) return;
    if (!prn_core_times_sum(&sum, mask ? mask : &own)) return;
    out->busy_ns = sum.busy * tick;
    out->total_ns = sum.total * tick;
    out->steal_ns = sum.stolen * tick;
}

void prn_machine_state_read(prony_machine_state *out)
{
    prn_cpu_mask mask;
    prn_machine_times_read(out, NULL);
    out->temperature_c = temperature();
    out->context_switches = machine_state_context_switches();
    if (!prn_cpu_mask_get(&mask)) return;
    out->frequency_hz = frequency_of_governor(&mask);
    if (!(out->frequency_hz > 0)) out->frequency_hz = frequency_of_cpuinfo(&mask);
    out->throttle_events = throttles(&mask);
}

prn_machine_shares prn_machine_shares_between(const prony_machine_state *before, const prony_machine_state *after,
                                              int64_t own_cpu_ns)
{
    prn_machine_shares shares = {-1, -1, -1};
    if (!before->total_ns || after->total_ns < before->total_ns + FEWEST_TICKS * tick_ns()) return shares;
    double total = (double)(after->total_ns - before->total_ns);
    double busy = ((double)after->busy_ns - (double)before->busy_ns) / total;
    shares.own = (double)own_cpu_ns / total;
    shares.steal = fmax(0, ((double)after->steal_ns - (double)before->steal_ns) / total);
    /* The process clock is finer than ticks, so the difference may be negative. */
    shares.others = fmin(1, fmax(0, busy - shares.own));
    return shares;
}
