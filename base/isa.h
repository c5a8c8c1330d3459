/* Instruction sets of the running processor, found once. PRONY_MAX_ISA=scalar|avx2|avx512|amx in the environment caps
 * the answer (tests of the fallbacks). Thread-safe. */
#ifndef PRN_BASE_ISA_H
#define PRN_BASE_ISA_H

typedef enum prn_isa {
    PRN_ISA_SCALAR = 0, /* what the compiler's baseline has */
    PRN_ISA_AVX2 = 1,   /* AVX2, FMA, F16C, BMI2 */
    PRN_ISA_AVX512 = 2, /* F, BW, VL, DQ (Skylake-X and later) */
    PRN_ISA_AMX = 3     /* AVX512 with BF16, VNNI and AMX tiles usable under this kernel */
} prn_isa;

prn_isa prn_isa_level(void);
const char *prn_isa_name(prn_isa isa);
/* NULL-terminated list of the features of note the processor has ("avx2", "fma", …), uncapped. */
const char *const *prn_isa_features(void);

#endif
