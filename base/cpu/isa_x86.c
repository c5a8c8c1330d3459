/* x86-64: levels, and detection with cpuid and xgetbv. */
#define _GNU_SOURCE
#include "base/cpu/isa.h"
#include "base/cpu/isa_arch.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <stdbool.h>
#include <stdint.h>
#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

const prn_isa_set prn_isa_sets[] = {
    {"scalar", 0, 0},
    {"avx2", PRN_HAS_AVX2, PRN_HAS_AVX2 | PRN_HAS_SHA | PRN_QUICK_MEMORY},
    {"avx512", PRN_HAS_AVX2 | PRN_HAS_AVX512, ~(unsigned)PRN_HAS_AMX},
    {"amx", PRN_HAS_AVX2 | PRN_HAS_AVX512 | PRN_HAS_VNNI | PRN_HAS_BF16 | PRN_HAS_AMX, ~0U},
};
const int prn_isa_set_count = sizeof prn_isa_sets / sizeof prn_isa_sets[0];

enum { LEAF1_C, LEAF7_B, LEAF7_C, LEAF7_D, LEAF71_A, REGISTER_COUNT };
enum { STATE_YMM = 1, STATE_ZMM = 2, STATE_TILES = 4 };

/* Features in listing order. `state`: the register state that the kernel must save for it. */
static const struct {
    const char *name;
    uint8_t where, bit, state;
} known[] = {
    {"sse4.2", LEAF1_C, 20, 0},
    {"avx", LEAF1_C, 28, STATE_YMM},
    {"f16c", LEAF1_C, 29, STATE_YMM},
    {"fma", LEAF1_C, 12, STATE_YMM},
    {"bmi2", LEAF7_B, 8, 0},
    {"sha", LEAF7_B, 29, 0},
    {"avx2", LEAF7_B, 5, STATE_YMM},
    {"avx_vnni", LEAF71_A, 4, STATE_YMM},
    {"avx512f", LEAF7_B, 16, STATE_ZMM},
    {"avx512dq", LEAF7_B, 17, STATE_ZMM},
    {"avx512bw", LEAF7_B, 30, STATE_ZMM},
    {"avx512vl", LEAF7_B, 31, STATE_ZMM},
    {"avx512_vnni", LEAF7_C, 11, STATE_ZMM},
    {"avx512_bf16", LEAF71_A, 5, STATE_ZMM},
    {"avx512_fp16", LEAF7_D, 23, STATE_ZMM},
    {"amx_tile", LEAF7_D, 24, STATE_TILES},
    {"amx_int8", LEAF7_D, 25, STATE_TILES},
    {"amx_bf16", LEAF7_D, 22, STATE_TILES},
};

/* Tiles also need the kernel's permission (Linux 5.16). */
static bool tiles_permitted(void)
{
    enum { ARCH_REQ_XCOMP_PERM_CODE = 0x1023, XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM_CODE, XTILEDATA) == 0;
}

static uint8_t saved_state(uint32_t leaf1_c)
{
    bool osxsave = leaf1_c >> 27 & 1;
    if (!osxsave) return 0;
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    unsigned state = 0;
    if ((low & 0x6) == 0x6) state |= STATE_YMM;
    if ((low & 0xe6) == 0xe6) state |= STATE_ZMM;
    if ((low & 0x60000) == 0x60000 && tiles_permitted()) state |= STATE_TILES;
    return (uint8_t)state;
}

static bool isa_x86_has(const char *const *features, const char *name)
{
    for (int i = 0; features[i]; i++) {
        if (strcasecmp(features[i], name) == 0) return true;
    }
    return false;
}

/* Flags by the model of AMD processors: in family 19h only Zen 4 has AVX-512; 1Ah is Zen 5. `signature`: eax of leaf
 * 1. */
static unsigned flags_of_family(uint32_t signature)
{
    uint32_t a, b, c, d;
    if (!__get_cpuid(0, &a, &b, &c, &d) || b != signature_AMD_ebx || c != signature_AMD_ecx || d != signature_AMD_edx)
        return 0;
    const uint32_t family = (signature >> 8 & 0xf) + (signature >> 20 & 0xff);
    return family == 0x19 ? PRN_HALVES_AVX512 : family == 0x1a ? PRN_QUICK_MEMORY : 0;
}

static unsigned flags_of_features(const char *const *features)
{
    unsigned flags = 0;
    if (isa_x86_has(features, "sha")) flags |= PRN_HAS_SHA;
    if (!isa_x86_has(features, "avx2") || !isa_x86_has(features, "fma") || !isa_x86_has(features, "f16c") ||
        !isa_x86_has(features, "bmi2"))
        return flags;
    flags |= PRN_HAS_AVX2;
#ifdef PRN_EMULATED_AVX512
    return flags | PRN_HAS_AVX512;
#endif
    if (!isa_x86_has(features, "avx512f") || !isa_x86_has(features, "avx512dq") || !isa_x86_has(features, "avx512bw") ||
        !isa_x86_has(features, "avx512vl"))
        return flags;
    flags |= PRN_HAS_AVX512;
    if (isa_x86_has(features, "avx512_vnni")) flags |= PRN_HAS_VNNI;
    if (isa_x86_has(features, "avx512_bf16")) flags |= PRN_HAS_BF16;
    if (isa_x86_has(features, "amx_tile") && isa_x86_has(features, "amx_int8") && isa_x86_has(features, "amx_bf16"))
        flags |= PRN_HAS_AMX;
    return flags;
}

unsigned prn_isa_x86_ask(const char **features)
{
    uint32_t reg[REGISTER_COUNT] = {0}, a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return 0;
    const unsigned of_family = flags_of_family(a);
    reg[LEAF1_C] = c;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
        reg[LEAF7_B] = b;
        reg[LEAF7_C] = c;
        reg[LEAF7_D] = d;
        if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d)) reg[LEAF71_A] = a;
    }
    uint8_t saved = saved_state(reg[LEAF1_C]);
    int count = 0;
    _Static_assert(sizeof known / sizeof known[0] <= PRN_ISA_MOST_FEATURES,
                   "every known feature has a place in `features`");
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        bool present = reg[known[i].where] >> known[i].bit & 1;
        if (present && (known[i].state & saved) == known[i].state) features[count++] = known[i].name;
    }
    const unsigned flags = flags_of_features(features);
    return flags & PRN_HAS_AVX512 ? flags | of_family : flags;
}

#endif
