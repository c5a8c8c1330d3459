/* Processors are those of the calling thread's affinity mask. Their times are /proc/stat's ticks; frequency is what the
 * governor reports, or /proc/cpuinfo where there is none; throttling is counted by the processor's own events. */
#include "base/machine_state.h"

#include "base/clock.h"
#include "base/core_times.h"
#include "base/cpu_mask.h"
#include "base/text_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_CORES 256
#define MOST_ZONES 64

static double frequency_of_governor(const prn_core_times *cores, size_t count)
{
    double sum = 0;
    size_t known = 0;
    for (size_t i = 0; i < count; i++) {
        char path[96];
        int64_t khz;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", cores[i].core);
        if (!prn_text_read_int(path, &khz) || khz <= 0) continue;
        sum += (double)khz * 1e3;
        known++;
    }
    return known ? sum / (double)known : 0;
}

static double frequency_of_cpuinfo(void)
{
    prn_cpu_mask mask;
    prn_lines lines;
    long core = -1;
    double sum = 0;
    size_t known = 0;
    if (!prn_cpu_mask_get(&mask) || !prn_lines_open(&lines, "/proc/cpuinfo")) return 0;
    for (char *line; (line = prn_lines_next(&lines));) {
        const char *value = strchr(line, ':');
        if (!value) continue;
        if (strncmp(line, "processor", 9) == 0) core = strtol(value + 1, NULL, 10);
        if (strncmp(line, "cpu MHz", 7) != 0 || core < 0 || core >= PRN_MAX_CPUS || !prn_cpu_mask_has(&mask, (int)core))
            continue;
        /* The locale's decimal point may be a comma: whole MHz are enough. */
        sum += (double)strtol(value + 1, NULL, 10) * 1e6;
        known++;
    }
    prn_lines_close(&lines);
    return known ? sum / (double)known : 0;
}

static int64_t throttles(const prn_core_times *cores, size_t count)
{
    int64_t sum = -1;
    for (size_t i = 0; i < count; i++) {
        char path[96];
        int64_t events;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/thermal_throttle/core_throttle_count",
                 cores[i].core);
        if (prn_text_read_int(path, &events)) sum = (sum < 0 ? 0 : sum) + events;
    }
    return sum;
}

static double temperature(void)
{
    double hottest = NAN;
    for (int zone = 0; zone < MOST_ZONES; zone++) {
        char path[64];
        int64_t millis;
        snprintf(path, sizeof path, "/sys/class/thermal/thermal_zone%d/temp", zone);
        if (!prn_text_read_int(path, &millis)) break;
        if (isnan(hottest) || (double)millis / 1000 > hottest) hottest = (double)millis / 1000;
    }
    return hottest;
}

static uint64_t context_switches(void)
{
    prn_lines lines;
    uint64_t switches = 0;
    if (!prn_lines_open(&lines, "/proc/stat")) return 0;
    for (char *line; (line = prn_lines_next(&lines));)
        if (strncmp(line, "ctxt ", 5) == 0) switches = strtoull(line + 5, NULL, 10);
    prn_lines_close(&lines);
    return switches;
}

void prn_machine_state_read(prony_machine_state *out)
{
    prn_core_times cores[MOST_CORES];
    prn_cpu_mask mask;
    size_t count = prn_cpu_mask_get(&mask) ? prn_core_times_read(cores, MOST_CORES, &mask) : 0;
    long hertz = sysconf(_SC_CLK_TCK);
    uint64_t tick = hertz > 0 ? UINT64_C(1000000000) / (uint64_t)hertz : 10000000;
    *out = (prony_machine_state){.time_ns = prn_now_ns()};
    for (size_t i = 0; i < count; i++) {
        out->busy_ns += cores[i].busy * tick;
        out->total_ns += cores[i].total * tick;
        out->steal_ns += cores[i].stolen * tick;
    }
    out->frequency_hz = frequency_of_governor(cores, count);
    if (!(out->frequency_hz > 0)) out->frequency_hz = frequency_of_cpuinfo();
    out->throttle_events = throttles(cores, count);
    out->temperature_c = temperature();
    out->context_switches = context_switches();
}
