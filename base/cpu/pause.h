/* A short pause of a thread that spins on a word until another thread changes it. */
#ifndef PRN_BASE_CPU_PAUSE_H
#define PRN_BASE_CPU_PAUSE_H

#include <stdatomic.h>

static inline void prn_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    /* YIELD does nothing on most processors; ISB waits for some ten cycles on all of them. */
    __asm__ volatile("isb" ::: "memory");
#else
    atomic_signal_fence(memory_order_seq_cst);
#endif
}

#endif
