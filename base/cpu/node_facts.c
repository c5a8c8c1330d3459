/* Microcode from /proc/cpuinfo; SMT, frequency, NUMA memory and network links from /sys. */
#include "base/cpu/node_facts.h"

#include "base/memory/alloc.h"
#include "base/os/folder.h"
#include "base/os/text_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NETWORK_FOLDER "/sys/class/net"
#define INFINIBAND_FOLDER "/sys/class/infiniband"

static void read_microcode(char *out, size_t size)
{
    prn_lines lines;
    if (!prn_lines_open(&lines, "/proc/cpuinfo")) return;
    for (char *line; (line = prn_lines_next(&lines));) {
        const char *value = strchr(line, ':');
        if (!value || strncmp(line, "microcode", 9) != 0) continue;
        value += 1 + strspn(value + 1, " \t");
        snprintf(out, size, "%.*s", (int)(size - 1), value);
        break;
    }
    prn_lines_close(&lines);
}

/* "Node 0 MemTotal:  16310204 kB"; 0: no such node. */
static uint64_t numa_memory(size_t node)
{
    char path[96];
    prn_lines lines;
    uint64_t bytes = 0;
    snprintf(path, sizeof path, PRN_SYSTEM_FOLDER "/node/node%zu/meminfo", node);
    if (!prn_lines_open(&lines, path)) return 0;
    for (char *line; (line = prn_lines_next(&lines));) {
        const char *value = strstr(line, "MemTotal:");
        if (!value) continue;
        bytes = strtoull(value + 9, NULL, 10) << 10;
        break;
    }
    prn_lines_close(&lines);
    return bytes;
}

/* A list that does not fit ends with "...". */
static void add_link(prn_node_facts *f, const char *name, const char *rate)
{
    const size_t used = strlen(f->network), left = sizeof f->network - used;
    const int wanted = snprintf(f->network + used, left, "%s%s %s", used ? ", " : "", name, rate);
    if (wanted < 0 || (size_t)wanted >= left) memcpy(f->network + sizeof f->network - 4, "...", 4);
}

/* Lists interfaces with a known link speed; the kernel gives -1 for virtual and unplugged ones. */
static void read_network(prn_node_facts *f)
{
    prn_bump pool = {0};
    prn_folder folder = {0};
    prony_error error;
    char path[256], text[64];
    int64_t speed;
    if (prn_folder_read(&folder, &pool, NETWORK_FOLDER, &error) != PRONY_OK) folder.count = 0;
    for (size_t i = 0; i < folder.count; i++) {
        snprintf(path, sizeof path, NETWORK_FOLDER "/%.64s/speed", folder.entries[i].name);
        if (!prn_text_read_int(path, &speed) || speed <= 0) continue;
        snprintf(text, sizeof text, "%" PRId64 " Mbit/s", speed);
        add_link(f, folder.entries[i].name, text);
    }
    if (prn_folder_read(&folder, &pool, INFINIBAND_FOLDER, &error) != PRONY_OK) folder.count = 0;
    for (size_t i = 0; i < folder.count; i++) {
        snprintf(path, sizeof path, INFINIBAND_FOLDER "/%.64s/ports/1/rate", folder.entries[i].name);
        if (prn_text_read(path, text, sizeof text)) add_link(f, folder.entries[i].name, text);
    }
    prn_bump_release(&pool);
}

void prn_node_facts_read(prn_node_facts *f)
{
    int64_t khz;
    *f = (prn_node_facts){0};
    read_microcode(f->microcode, sizeof f->microcode);
    if (!prn_text_read(PRN_SYSTEM_FOLDER "/cpu/smt/control", f->smt, sizeof f->smt)) f->smt[0] = '\0';
    if (prn_text_read_int(PRN_SYSTEM_FOLDER "/cpu/cpu0/cpufreq/cpuinfo_max_freq", &khz) && khz > 0)
        f->frequency_max_hz = (uint64_t)khz * 1000;
    while (f->numa_count < PRN_NUMA_MOST && (f->numa_memory_bytes[f->numa_count] = numa_memory(f->numa_count)))
        f->numa_count++;
    read_network(f);
}
