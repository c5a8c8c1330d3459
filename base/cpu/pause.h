/* What a thread does between two looks at a word that another one will change. */
#ifndef PRN_BASE_CPU_PAUSE_H
#define PRN_BASE_CPU_PAUSE_H

#include <stdatomic.h>

static inline void prn_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#else
    atomic_signal_fence(memory_order_seq_cst);
#endif
}

#endif
