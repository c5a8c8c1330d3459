/* The main identification register (MIDR) holds implementer and part; the kernel prints both for each processor.
 * Numbers are those of the manufacturers' technical reference manuals. */
#include "base/cpu/arm_core.h"

#include "base/os/text_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ARM_LTD = 0x41,
    CAVIUM = 0x43,
    FUJITSU = 0x46,
    HISILICON = 0x48,
    NVIDIA = 0x4e,
    QUALCOMM = 0x51,
    APPLE = 0x61,
    AMPERE = 0xc0
};

static const struct {
    unsigned implementer, part;
    const char *name;
} cores[] = {
    {ARM_LTD, 0xd03, "Cortex-A53"},   {ARM_LTD, 0xd04, "Cortex-A35"},  {ARM_LTD, 0xd05, "Cortex-A55"},
    {ARM_LTD, 0xd07, "Cortex-A57"},   {ARM_LTD, 0xd08, "Cortex-A72"},  {ARM_LTD, 0xd09, "Cortex-A73"},
    {ARM_LTD, 0xd0a, "Cortex-A75"},   {ARM_LTD, 0xd0b, "Cortex-A76"},  {ARM_LTD, 0xd0c, "Neoverse-N1"},
    {ARM_LTD, 0xd0d, "Cortex-A77"},   {ARM_LTD, 0xd40, "Neoverse-V1"}, {ARM_LTD, 0xd41, "Cortex-A78"},
    {ARM_LTD, 0xd42, "Cortex-A78AE"}, {ARM_LTD, 0xd44, "Cortex-X1"},   {ARM_LTD, 0xd46, "Cortex-A510"},
    {ARM_LTD, 0xd47, "Cortex-A710"},  {ARM_LTD, 0xd48, "Cortex-X2"},   {ARM_LTD, 0xd49, "Neoverse-N2"},
    {ARM_LTD, 0xd4a, "Neoverse-E1"},  {ARM_LTD, 0xd4d, "Cortex-A715"}, {ARM_LTD, 0xd4e, "Cortex-X3"},
    {ARM_LTD, 0xd4f, "Neoverse-V2"},  {ARM_LTD, 0xd80, "Cortex-A520"}, {ARM_LTD, 0xd81, "Cortex-A720"},
    {ARM_LTD, 0xd82, "Cortex-X4"},    {ARM_LTD, 0xd84, "Neoverse-V3"}, {ARM_LTD, 0xd8e, "Neoverse-N3"},
    {CAVIUM, 0x0af, "ThunderX2"},     {FUJITSU, 0x001, "A64FX"},       {HISILICON, 0xd01, "Kunpeng-920"},
    {NVIDIA, 0x004, "Carmel"},        {QUALCOMM, 0x001, "Oryon"},      {APPLE, 0x022, "M1 Icestorm"},
    {APPLE, 0x023, "M1 Firestorm"},   {AMPERE, 0xac3, "Ampere-1"},     {AMPERE, 0xac4, "Ampere-1a"},
};

enum { MOST_KINDS = 4 };

typedef struct core_kind {
    unsigned implementer, part;
    int count;
} core_kind;

static void arm_core_count(core_kind *kinds, int *count, unsigned implementer, unsigned part)
{
    int k = 0;
    while (k < *count && (kinds[k].implementer != implementer || kinds[k].part != part)) k++;
    if (k == MOST_KINDS) return;
    if (k == *count) kinds[(*count)++] = (core_kind){implementer, part, 0};
    kinds[k].count++;
}

/* Appends one kind of core; texts that do not fit are truncated. */
static size_t arm_core_write(char *out, size_t size, size_t used, const core_kind *kind, bool counted)
{
    const char *name = NULL;
    char number[32];
    for (size_t i = 0; i < sizeof cores / sizeof cores[0] && !name; i++)
        if (cores[i].implementer == kind->implementer && cores[i].part == kind->part) name = cores[i].name;
    snprintf(number, sizeof number, "0x%02x:0x%03x", kind->implementer, kind->part);
    if (used >= size) return used;
    used += (size_t)snprintf(out + used, size - used, "%s", used ? " + " : "");
    if (counted && used < size) used += (size_t)snprintf(out + used, size - used, "%d x ", kind->count);
    if (used < size) used += (size_t)snprintf(out + used, size - used, "%s", name ? name : number);
    return used;
}

bool prn_arm_core_read(char *out, size_t size, const char *cpuinfo)
{
    core_kind kinds[MOST_KINDS];
    int count = 0;
    unsigned implementer = 0;
    prn_lines lines;
    if (!prn_lines_open(&lines, cpuinfo)) return false;
    for (char *line; (line = prn_lines_next(&lines));) {
        const char *value = strchr(line, ':');
        if (!value) continue;
        const unsigned number = (unsigned)strtoul(value + 1, NULL, 0);
        if (strncmp(line, "CPU implementer", 15) == 0) implementer = number;
        if (strncmp(line, "CPU part", 8) == 0) arm_core_count(kinds, &count, implementer, number);
    }
    prn_lines_close(&lines);
    size_t used = 0;
    for (int k = 0; k < count; k++) used = arm_core_write(out, size, used, &kinds[k], count > 1);
    return count > 0;
}
