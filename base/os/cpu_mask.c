/* Sets of logical processors and the affinity of the calling thread. Plain values; nothing is owned. */
#define _GNU_SOURCE
#include "base/os/cpu_mask.h"

#include <sched.h>
#include <string.h>

bool prn_cpu_mask_has(const prn_cpu_mask *mask, int cpu)
{
    return mask->word[cpu / PRN_CPU_WORD_BITS] >> (cpu % PRN_CPU_WORD_BITS) & 1;
}

void prn_cpu_mask_add(prn_cpu_mask *mask, int cpu)
{
    mask->word[cpu / PRN_CPU_WORD_BITS] |= 1ul << (cpu % PRN_CPU_WORD_BITS);
}

void prn_cpu_mask_remove(prn_cpu_mask *mask, int cpu)
{
    mask->word[cpu / PRN_CPU_WORD_BITS] &= ~(1ul << (cpu % PRN_CPU_WORD_BITS));
}

int prn_cpu_mask_count(const prn_cpu_mask *mask)
{
    int count = 0;
    for (int i = 0; i < PRN_MAX_CPUS / PRN_CPU_WORD_BITS; i++) count += __builtin_popcountl(mask->word[i]);
    return count;
}

int prn_cpu_mask_missing(const prn_cpu_mask *mask, const prn_cpu_mask *of)
{
    for (int cpu = 0; cpu < PRN_MAX_CPUS; cpu++) {
        if (prn_cpu_mask_has(mask, cpu) && !prn_cpu_mask_has(of, cpu)) return cpu;
    }
    return -1;
}

bool prn_cpu_mask_intersect(prn_cpu_mask *mask, const prn_cpu_mask *with)
{
    prn_cpu_mask both;
    for (int i = 0; i < PRN_MAX_CPUS / PRN_CPU_WORD_BITS; i++) both.word[i] = mask->word[i] & with->word[i];
    if (prn_cpu_mask_count(&both) == 0) return false;
    *mask = both;
    return true;
}

/* -1: not a number, or too large. */
static int parse_number(const char **at)
{
    if (**at < '0' || **at > '9') return -1;
    int number = 0;
    for (; **at >= '0' && **at <= '9'; (*at)++) {
        number = number * 10 + (**at - '0');
        if (number >= PRN_MAX_CPUS) return -1;
    }
    return number;
}

bool prn_cpu_mask_parse(prn_cpu_mask *mask, const char *list)
{
    memset(mask, 0, sizeof *mask);
    for (const char *at = list;; at++) {
        int first = parse_number(&at), last = first;
        if (*at == '-') {
            at++;
            last = parse_number(&at);
        }
        if (first < 0 || last < first) return false;
        for (int cpu = first; cpu <= last; cpu++) prn_cpu_mask_add(mask, cpu);
        if (*at == '\0') return true;
        if (*at != ',') return false;
    }
}

bool prn_cpu_mask_get(prn_cpu_mask *mask)
{
    memset(mask, 0, sizeof *mask);
    return sched_getaffinity(0, sizeof *mask, (cpu_set_t *)mask) == 0;
}

bool prn_cpu_mask_set(const prn_cpu_mask *mask)
{
    return sched_setaffinity(0, sizeof *mask, (const cpu_set_t *)mask) == 0;
}
