/* The capabilities of the running processor that the kernel supports, detected once. PRONY_MAX_ISA in the environment
 * caps it (tests of the fallbacks): scalar, avx2, avx512 or amx on x86-64; scalar, neon, dotprod or i8mm on AArch64.
 * Thread-safe. */
#ifndef PRN_BASE_CPU_ISA_H
#define PRN_BASE_CPU_ISA_H

#include <stdbool.h>

typedef enum prn_isa_flag {
    PRN_HAS_FMA = 1 << 0, /* the level above "scalar": vectors with fused multiply-add, in kernels of their own */
    PRN_HAS_SHA = 1 << 1, /* SHA-256 rounds */

    PRN_HAS_AVX2 = PRN_HAS_FMA, /* x86-64: AVX2, FMA, F16C, BMI2 */
    PRN_HAS_AVX512 = 1 << 2,    /* F, BW, VL, DQ (Skylake-X and later) */
    PRN_HAS_VNNI = 1 << 3,      /* AVX-512 dot products of bytes */
    PRN_HAS_BF16 = 1 << 4,      /* AVX-512 dot products of bfloat16 */
    PRN_HAS_AMX = 1 << 5,       /* tiles of bytes and bfloat16 */
    PRN_HALVES_AVX512 = 1 << 6, /* it runs vectors of 512 bits in two halves (Zen 4), no faster than AVX2 */
    PRN_QUICK_MEMORY = 1 << 7,  /* a core reads memory at twice the rate per cycle of others (Zen 5) */

    PRN_HAS_NEON = PRN_HAS_FMA, /* AArch64: its vectors of 128 bits, which every processor has */
    PRN_HAS_DOTPROD = 1 << 8,   /* dot products of four bytes (SDOT, UDOT) */
    PRN_HAS_I8MM = 1 << 9       /* products of matrices of bytes, and of signed bytes by unsigned ones (USMMLA) */
} prn_isa_flag;

/* true: the processor has all of `flags`, and PRONY_MAX_ISA does not cap them. */
bool prn_isa_has(unsigned flags);
/* The widest available level within the cap, such as "avx2" or "neon". */
const char *prn_isa_name(void);
/* The values of PRONY_MAX_ISA on this architecture, narrowest first: "scalar, avx2, avx512, amx". Others are
 * ignored. */
const char *prn_isa_set_names(void);
/* NULL-terminated list of the processor's notable features ("avx2", "fma", …), uncapped. */
const char *const *prn_isa_features(void);

#endif
