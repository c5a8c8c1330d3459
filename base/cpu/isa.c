/* Capabilities of the processor and the kernel, detected once with cpuid and xgetbv. The result never changes after the
 * first call. */
#define _GNU_SOURCE
#include "base/cpu/isa.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

enum { MOST_FEATURES = 32 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static unsigned present;     /* within the cap */
static const char *set_name; /* the largest available one of `sets` */
static const char *features[MOST_FEATURES + 1];
static char set_names[64];

/* Named sets, each including the one before it, and the flags that a cap of that name allows. */
static const struct {
    const char *name;
    unsigned needs, cap;
} sets[] = {
    {"scalar", 0, 0},
    {"avx2", PRN_HAS_AVX2, PRN_HAS_AVX2 | PRN_HAS_SHA | PRN_QUICK_MEMORY},
    {"avx512", PRN_HAS_AVX2 | PRN_HAS_AVX512, ~(unsigned)PRN_HAS_AMX},
    {"amx", PRN_HAS_AVX2 | PRN_HAS_AVX512 | PRN_HAS_VNNI | PRN_HAS_BF16 | PRN_HAS_AMX, ~0U},
};
enum { SETS = sizeof sets / sizeof sets[0] };

#if defined(__x86_64__)
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

static bool isa_has(const char *name)
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

static unsigned flags_of_features(void)
{
    unsigned flags = 0;
    if (isa_has("sha")) flags |= PRN_HAS_SHA;
    if (!isa_has("avx2") || !isa_has("fma") || !isa_has("f16c") || !isa_has("bmi2")) return flags;
    flags |= PRN_HAS_AVX2;
#ifdef PRN_EMULATED_AVX512
    return flags | PRN_HAS_AVX512;
#endif
    if (!isa_has("avx512f") || !isa_has("avx512dq") || !isa_has("avx512bw") || !isa_has("avx512vl")) return flags;
    flags |= PRN_HAS_AVX512;
    if (isa_has("avx512_vnni")) flags |= PRN_HAS_VNNI;
    if (isa_has("avx512_bf16")) flags |= PRN_HAS_BF16;
    if (isa_has("amx_tile") && isa_has("amx_int8") && isa_has("amx_bf16")) flags |= PRN_HAS_AMX;
    return flags;
}

static unsigned ask_processor(void)
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
    _Static_assert(sizeof known / sizeof known[0] <= MOST_FEATURES, "every known feature has a place in `features`");
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        bool present = reg[known[i].where] >> known[i].bit & 1;
        if (present && (known[i].state & saved) == known[i].state) features[count++] = known[i].name;
    }
    const unsigned flags = flags_of_features();
    return flags & PRN_HAS_AVX512 ? flags | of_family : flags;
}
#else
static unsigned ask_processor(void)
{
    return 0;
}
#endif

static void isa_find(void)
{
    present = ask_processor();
    const char *cap = getenv("PRONY_MAX_ISA");
    for (int i = 0; cap && i < SETS; i++)
        if (strcasecmp(cap, sets[i].name) == 0) present &= sets[i].cap;
    for (int i = 0; i < SETS; i++)
        if ((sets[i].needs & ~present) == 0) set_name = sets[i].name;
    for (size_t i = 0, used = 0; i < SETS && used < sizeof set_names; i++)
        used += (size_t)snprintf(set_names + used, sizeof set_names - used, "%s%s", i ? ", " : "", sets[i].name);
}

/* Called for every kernel choice, in every run: after detection `present` is read without a call. */
bool prn_isa_has(unsigned flags)
{
    enum { KNOWN = 1 << 30 };
    static atomic_uint answer;
    unsigned found = atomic_load_explicit(&answer, memory_order_relaxed);
    if (!(found & KNOWN)) {
        pthread_once(&once, isa_find);
        found = present | KNOWN;
        atomic_store_explicit(&answer, found, memory_order_relaxed);
    }
    return (flags & ~found) == 0;
}

const char *prn_isa_name(void)
{
    pthread_once(&once, isa_find);
    return set_name;
}

const char *prn_isa_set_names(void)
{
    pthread_once(&once, isa_find);
    return set_names;
}

const char *const *prn_isa_features(void)
{
    pthread_once(&once, isa_find);
    return features;
}
