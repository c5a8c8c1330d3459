/* Lines "cpuN user nice system idle iowait irq softirq steal …" of /proc/stat. Idle and waiting for input and output
 * are not busy; guests' times are in user and nice already. */
#include "base/os/core_times.h"

#include "base/os/text_file.h"

#include <stdlib.h>
#include <string.h>

static void read_ticks(const char *text, prn_core_times *out)
{
    for (int field = 0; field < 8; field++) {
        char *end;
        uint64_t ticks = strtoull(text, &end, 10);
        if (end == text) return;
        out->total += ticks;
        if (field != 3 && field != 4) out->busy += ticks;
        if (field == 7) out->stolen = ticks;
        text = end;
    }
}

/* Reads the next processor of the mask; false: none is left. */
static bool next_core(prn_lines *lines, prn_core_times *out, const prn_cpu_mask *mask)
{
    for (char *line; (line = prn_lines_next(lines));) {
        char *end;
        if (strncmp(line, "cpu", 3) != 0) return false;
        long core = strtol(line + 3, &end, 10);
        if (end == line + 3 || *end != ' ' || core < 0 || core >= PRN_MAX_CPUS || !prn_cpu_mask_has(mask, (int)core))
            continue;
        *out = (prn_core_times){.core = (int)core};
        read_ticks(end, out);
        return true;
    }
    return false;
}

size_t prn_core_times_read(prn_core_times *out, size_t capacity, const prn_cpu_mask *mask)
{
    prn_lines lines;
    size_t count = 0;
    if (!prn_lines_open(&lines, "/proc/stat")) return 0;
    while (count < capacity && next_core(&lines, &out[count], mask)) count++;
    prn_lines_close(&lines);
    return count;
}

bool prn_core_times_sum(prn_core_times *out, const prn_cpu_mask *mask)
{
    prn_lines lines;
    prn_core_times one;
    bool any = false;
    *out = (prn_core_times){.core = -1};
    if (!prn_lines_open(&lines, "/proc/stat")) return false;
    while (next_core(&lines, &one, mask)) {
        out->busy += one.busy;
        out->total += one.total;
        out->stolen += one.stolen;
        any = true;
    }
    prn_lines_close(&lines);
    return any;
}
