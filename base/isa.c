/* What the processor and the kernel under it can run, asked once with cpuid and xgetbv. The answer never changes after
 * the first call. */
#define _GNU_SOURCE
#include "base/isa.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <strings.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

enum { MOST_FEATURES = 32 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static prn_isa level;
static const char *features[MOST_FEATURES + 1];

static const char *const isa_names[] = {"scalar", "avx2", "avx512", "amx"};

const char *prn_isa_name(prn_isa isa)
{
    return (unsigned)isa <= PRN_ISA_AMX ? isa_names[isa] : "unknown";
}

#if defined(__x86_64__)
enum { LEAF1_C, LEAF7_B, LEAF7_C, LEAF7_D, LEAF71_A, REGISTER_COUNT };
enum { STATE_YMM = 1, STATE_ZMM = 2, STATE_TILES = 4 };

/* In the order in which they are listed. `state`: the register state that the kernel must save for it. */
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

/* Tiles need a permission of the kernel besides its saving them (Linux 5.16). */
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

static bool has(const char *name)
{
    for (int i = 0; features[i]; i++) {
        if (strcasecmp(features[i], name) == 0) return true;
    }
    return false;
}

static prn_isa best_level(void)
{
    if (!has("avx2") || !has("fma") || !has("f16c") || !has("bmi2")) return PRN_ISA_SCALAR;
#ifdef PRN_EMULATED_AVX512
    return PRN_ISA_AVX512;
#endif
    if (!has("avx512f") || !has("avx512dq") || !has("avx512bw") || !has("avx512vl")) return PRN_ISA_AVX2;
    bool amx = has("amx_tile") && has("amx_int8") && has("amx_bf16") && has("avx512_bf16") && has("avx512_vnni");
    return amx ? PRN_ISA_AMX : PRN_ISA_AVX512;
}

static prn_isa ask_processor(void)
{
    uint32_t reg[REGISTER_COUNT] = {0}, a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return PRN_ISA_SCALAR;
    reg[LEAF1_C] = c;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
        reg[LEAF7_B] = b;
        reg[LEAF7_C] = c;
        reg[LEAF7_D] = d;
        if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d)) reg[LEAF71_A] = a;
    }
    uint8_t saved = saved_state(reg[LEAF1_C]);
    int count = 0;
    for (size_t i = 0; i < sizeof known / sizeof known[0] && count < MOST_FEATURES; i++) {
        bool present = reg[known[i].where] >> known[i].bit & 1;
        if (present && (known[i].state & saved) == known[i].state) features[count++] = known[i].name;
    }
    return best_level();
}
#else
static prn_isa ask_processor(void)
{
    return PRN_ISA_SCALAR;
}
#endif

static void find_level(void)
{
    level = ask_processor();
    const char *cap = getenv("PRONY_MAX_ISA");
    for (int i = PRN_ISA_SCALAR; cap && i <= PRN_ISA_AMX; i++) {
        if (strcasecmp(cap, isa_names[i]) == 0 && (prn_isa)i < level) level = (prn_isa)i;
    }
}

prn_isa prn_isa_level(void)
{
    pthread_once(&once, find_level);
    return level;
}

const char *const *prn_isa_features(void)
{
    pthread_once(&once, find_level);
    return features;
}
