/* A library to be loaded before others (LD_PRELOAD): all code in its process sees a processor with fewer instruction
 * sets. So two engines can be measured as on a narrower machine, which each of them detects by itself.
 *
 *     NARROW_CPU=avx2 LD_PRELOAD=build/tests/libnarrow_cpu.so build/prony versus net.onnx
 *
 * NARROW_CPU is avx2 or avx512 (without VNNI, bfloat16, FP16 and AMX). The clock and the caches stay the machine's.
 * If kernel and processor support CPUID faulting (cpuid_fault in /proc/cpuinfo), the instruction raises SIGSEGV, and
 * the handler emulates it. Otherwise only libraries see the narrow processor whose CPUID instructions narrow_library.py
 * has replaced by one that raises SIGILL. x86-64 Linux alone. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { SET_CPUID = 0x1012, CPUID_BYTES = 2 }; /* SET_CPUID: ARCH_SET_CPUID of arch_prctl */

typedef struct registers {
    uint32_t a, b, c, d;
} registers;

/* Bits of leaf 7 that are cleared. AVX-512: F, DQ, IFMA, PF, ER, CD, BW, VL | VBMI, VBMI2, BITALG, VPOPCNTDQ | 4VNNIW,
 * 4FMAPS, VP2INTERSECT. Extensions of it: VNNI | AMX-BF16, FP16, AMX-TILE, AMX-INT8. */
static const registers avx512_bits = {.b = 0xdc230000, .c = 0x00005042, .d = 0x0000010c},
                       added_bits = {.c = 0x00000800, .d = 0x03c00000};

static bool without_avx512, faulting;

static long set_cpuid(long works)
{
    return syscall(SYS_arch_prctl, SET_CPUID, works);
}

static void narrow(uint32_t leaf, uint32_t part, registers *r)
{
    if (leaf == 7 && part == 0) {
        r->c &= ~added_bits.c;
        r->d &= ~added_bits.d;
        if (without_avx512) {
            r->b &= ~avx512_bits.b;
            r->c &= ~avx512_bits.c;
            r->d &= ~avx512_bits.d;
        }
    }
    if (leaf == 7 && part == 1) *r = (registers){0};                   /* AVX-VNNI, bfloat16 */
    if (leaf == 0xd && part == 0) r->a &= without_avx512 ? 0x7 : 0xe7; /* registers whose state is kept */
}

static void answer(int number, siginfo_t *info, void *context)
{
    (void)info;
    greg_t *registers_of = ((ucontext_t *)context)->uc_mcontext.gregs;
    const uint8_t *code = (const uint8_t *)registers_of[REG_RIP];
    if (code[0] != 0x0f || code[1] != (faulting ? 0xa2 : 0x0b)) { /* its own fault: recurs, and ends the process */
        signal(number, SIG_DFL);
        return;
    }
    const uint32_t leaf = (uint32_t)registers_of[REG_RAX], part = (uint32_t)registers_of[REG_RCX];
    registers r;
    if (faulting) set_cpuid(1);
    __asm__ volatile("cpuid" : "=a"(r.a), "=b"(r.b), "=c"(r.c), "=d"(r.d) : "a"(leaf), "c"(part));
    if (faulting) set_cpuid(0);
    narrow(leaf, part, &r);
    registers_of[REG_RAX] = r.a;
    registers_of[REG_RBX] = r.b;
    registers_of[REG_RCX] = r.c;
    registers_of[REG_RDX] = r.d;
    registers_of[REG_RIP] += CPUID_BYTES;
}

__attribute__((constructor)) static void begin(void)
{
    const char *name = getenv("NARROW_CPU");
    struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO | SA_NODEFER};
    if (!name || (strcmp(name, "avx2") != 0 && strcmp(name, "avx512") != 0)) {
        fprintf(stderr, "narrow_cpu: NARROW_CPU is %s, wanted avx2 or avx512\n", name ? name : "not set");
        _exit(2);
    }
    without_avx512 = strcmp(name, "avx2") == 0;
    sigaction(SIGSEGV, &action, NULL);
    faulting = set_cpuid(0) == 0;
    if (faulting) return;
    signal(SIGSEGV, SIG_DFL);
    sigaction(SIGILL, &action, NULL);
}
