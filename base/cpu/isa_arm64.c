/* AArch64: levels, and detection by the words that the kernel passes to each process (AT_HWCAP, AT_HWCAP2). Names are
 * those of /proc/cpuinfo.
 *
 * SVE is named and not used: its vectors have no fixed width, so tiles that keep sums in registers would need code of
 * their own, and the processors that have it with 128 bits (Neoverse N2, V2, Cortex-X) run NEON at the same rate.
 *
 * Products of bfloat16 (BFMMLA) are named and not used: the operators that would use them read panels of 32 columns and
 * blocks of 16 channels, and there are neither with vectors of four lanes. With FPCR.EBF = 0, as Linux starts programs,
 * each pair's sum is rounded to odd and subnormal numbers are 0 on every processor: a sum's error is up to twice that
 * of rounding to nearest. Precision `bf16` allows that, the three terms of `fp32` do not. FEAT_EBF16 with EBF = 1
 * rounds in another way, so that a kernel must check the bit. Half precision is converted by instructions of the base
 * set. */
#include "base/cpu/isa.h"
#include "base/cpu/isa_arch.h"

#if defined(__aarch64__)
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

const prn_isa_set prn_isa_sets[] = {
    {"scalar", 0, 0},
    {"neon", PRN_HAS_NEON, PRN_HAS_NEON | PRN_HAS_SHA},
    {"dotprod", PRN_HAS_NEON | PRN_HAS_DOTPROD, PRN_HAS_NEON | PRN_HAS_SHA | PRN_HAS_DOTPROD},
    {"i8mm", PRN_HAS_NEON | PRN_HAS_DOTPROD | PRN_HAS_I8MM, ~0U},
};
const int prn_isa_set_count = sizeof prn_isa_sets / sizeof prn_isa_sets[0];

/* Bits of Linux's asm/hwcap.h, which older headers do not have; `word`: 0 AT_HWCAP, 1 AT_HWCAP2. */
static const struct {
    const char *name;
    uint8_t word, bit;
    unsigned flag;
} known[] = {
    {"fp", 0, 0, 0},        {"asimd", 0, 1, PRN_HAS_NEON},
    {"aes", 0, 3, 0},       {"sha2", 0, 6, PRN_HAS_SHA},
    {"atomics", 0, 8, 0},   {"fphp", 0, 9, 0},
    {"asimdhp", 0, 10, 0},  {"asimddp", 0, 20, PRN_HAS_DOTPROD},
    {"asimdfhm", 0, 23, 0}, {"sve", 0, 22, 0},
    {"sve2", 1, 1, 0},      {"i8mm", 1, 13, PRN_HAS_I8MM},
    {"bf16", 1, 14, 0},     {"sme", 1, 23, 0},
};

/* Products of matrices of bytes count only beside dot products, as the variant that uses them has both. */
unsigned prn_isa_arm64_ask(const char **features)
{
    const unsigned long words[2] = {getauxval(AT_HWCAP), getauxval(AT_HWCAP2)};
    unsigned flags = 0;
    _Static_assert(sizeof known / sizeof known[0] <= PRN_ISA_MOST_FEATURES, "every known feature has a place");
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (!(words[known[i].word] >> known[i].bit & 1)) continue;
        *features++ = known[i].name;
        flags |= known[i].flag;
    }
    if (!(flags & PRN_HAS_DOTPROD)) flags &= ~(unsigned)PRN_HAS_I8MM;
    return flags;
}

#endif
