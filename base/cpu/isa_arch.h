/* Instruction sets of one architecture: its levels and the detection of its features. isa_x86.c and isa_arm64.c
 * implement it; isa.c implements it for every other architecture, with the level "scalar" alone. cmake/PronyIsa.cmake
 * lists the variants that kernels are compiled for, base/cpu/simd.h those that are chosen at run time. */
#ifndef PRN_BASE_CPU_ISA_ARCH_H
#define PRN_BASE_CPU_ISA_ARCH_H

enum { PRN_ISA_MOST_FEATURES = 32 };

/* A named level: the flags that a processor of it has, and the flags that a cap of that name allows. Each level
 * includes the one before it. */
typedef struct prn_isa_set {
    const char *name;
    unsigned needs, cap;
} prn_isa_set;

extern const prn_isa_set prn_isa_sets[];
extern const int prn_isa_set_count;

/* The flags of this processor, uncapped. Writes the names of its notable features to features[0 …), which holds
 * PRN_ISA_MOST_FEATURES + 1 null pointers. */
unsigned prn_isa_x86_ask(const char **features);
unsigned prn_isa_arm64_ask(const char **features);

#endif
