/* Sets of logical processors, as the kernel writes them ("0-3,8"). */
#ifndef PRN_BASE_OS_CPU_MASK_H
#define PRN_BASE_OS_CPU_MASK_H

#include <stdbool.h>

enum { PRN_MAX_CPUS = 4096, PRN_CPU_WORD_BITS = 8 * (int)sizeof(unsigned long) };

typedef struct prn_cpu_mask {
    unsigned long word[PRN_MAX_CPUS / PRN_CPU_WORD_BITS];
} prn_cpu_mask;

/* Numbers and ascending ranges, comma-separated. false, mask undefined: not such a list, empty, or a number too large.
 */
bool prn_cpu_mask_parse(prn_cpu_mask *mask, const char *list);
bool prn_cpu_mask_has(const prn_cpu_mask *mask, int cpu);
void prn_cpu_mask_add(prn_cpu_mask *mask, int cpu);
void prn_cpu_mask_remove(prn_cpu_mask *mask, int cpu);
int prn_cpu_mask_count(const prn_cpu_mask *mask);
/* The first processor of `mask` that `of` lacks; -1: none. */
int prn_cpu_mask_missing(const prn_cpu_mask *mask, const prn_cpu_mask *of);
/* Leaves in `mask` what `with` has too; false, and nothing changed, if that would be nothing. */
bool prn_cpu_mask_intersect(prn_cpu_mask *mask, const prn_cpu_mask *with);

/* Affinity of the calling thread. */
bool prn_cpu_mask_get(prn_cpu_mask *mask);
bool prn_cpu_mask_set(const prn_cpu_mask *mask);

#endif
