/* The C library gives the bounds of a thread's stack once; a stack pointer outside of them is on another stack, such as
 * a coroutine's. */
#define _GNU_SOURCE /* pthread_getattr_np */
#include "base/memory/stack.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

static _Thread_local struct {
    bool asked;
    uintptr_t low, high; /* both 0: not known */
} bounds;

static void stack_ask(void)
{
    pthread_attr_t attributes;
    void *low = NULL;
    size_t size = 0, guard = 0;
    bounds.asked = true;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
    if (pthread_attr_getstack(&attributes, &low, &size) == 0 && pthread_attr_getguardsize(&attributes, &guard) == 0 &&
        guard < size) {
        bounds.low = (uintptr_t)low + guard;
        bounds.high = (uintptr_t)low + size;
    }
    pthread_attr_destroy(&attributes);
}

size_t prn_stack_left(void)
{
    if (!bounds.asked) stack_ask();
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    return here > bounds.low && here <= bounds.high ? (size_t)(here - bounds.low) : SIZE_MAX;
}

prony_status prn_stack_check(prony_error *error)
{
    size_t left = prn_stack_left();
    if (left >= PRN_STACK_NEEDED) return PRONY_OK;
    return prn_fail(error, PRONY_LIMIT, "only %zu KiB of this thread's stack are left: nested too deep for it",
                    left >> 10);
}
