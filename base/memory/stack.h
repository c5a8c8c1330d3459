/* How much stack the calling thread has left. What recurses as deep as a model file is nested asks before it goes
 * on. */
#ifndef PRN_BASE_MEMORY_STACK_H
#define PRN_BASE_MEMORY_STACK_H

#include "base/status.h"

#include <stddef.h>

/* What one level must find: the largest frames of kernels (tiles of a product) and of libraries, and room to fail
 * in. */
#if defined(__SANITIZE_ADDRESS__)
#define PRN_STACK_NEEDED ((size_t)1 << 20)
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PRN_STACK_NEEDED ((size_t)1 << 20)
#endif
#endif
#ifndef PRN_STACK_NEEDED
#define PRN_STACK_NEEDED ((size_t)116 << 10)
#endif

/* SIZE_MAX: not known (a coroutine's stack, say). */
size_t prn_stack_left(void);
/* PRONY_LIMIT if less than PRN_STACK_NEEDED is left. */
PRN_MUST_USE prony_status prn_stack_check(prony_error *error);

/* A frame that stands only as long as it is needed, not around what recurses. */
#define PRN_OWN_FRAME __attribute__((noinline))

#endif
