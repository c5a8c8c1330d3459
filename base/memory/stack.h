/* The calling thread's remaining stack. Functions that recurse as deep as a model file is nested check it at each
 * level. */
#ifndef PRN_BASE_MEMORY_STACK_H
#define PRN_BASE_MEMORY_STACK_H

#include "base/status.h"

#include <stddef.h>

/* Bytes that one level needs: the largest frames of kernels (tiles of a matmul) and of libraries, and room for error
 * handling. */
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

/* A function with its own frame, so that a recursive caller does not hold it. */
#define PRN_OWN_FRAME __attribute__((noinline))

#endif
