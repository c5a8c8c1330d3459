/* Filling a prony_error. */
#ifndef PRN_BASE_STATUS_H
#define PRN_BASE_STATUS_H

#include "prony_operator.h"

#include <stdarg.h>

#define PRN_MUST_USE PRONY_MUST_USE
#define PRN_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))

/* Writes status and message into `error` (which may be NULL) and returns `status`. An over-long message is cut. */
prony_status prn_fail(prony_error *error, prony_status status, const char *format, ...) PRN_PRINTF(3, 4);
prony_status prn_fail_v(prony_error *error, prony_status status, const char *format, va_list args) PRN_PRINTF(3, 0);

/* Puts "prefix: " before the message that is in `error`. */
void prn_error_prefix(prony_error *error, const char *format, ...) PRN_PRINTF(2, 3);

/* Puts "node 'name' (operator): " before the message, and the outer node if the node's graph was inlined. */
void prn_error_name_node(prony_error *error, const prony_node *node);
/* Puts "node 'name' (operator), part: " before the message, for failures inside of a node's body or branch. */
void prn_error_name_part(prony_error *error, const prony_node *node, const char *part);

/* Checks the status that a user's function returned; an invalid one becomes PRONY_INTERNAL. */
prony_status prn_status_known(prony_status status);
/* Names the node of a failure without one, such as refused memory in a lower function. Returns `status`. */
prony_status prn_error_blame(prony_error *error, prony_status status, const prony_node *node);

/* Out of memory, with one message for all allocation sites; PRONY_LIMIT, with the numbers, if a budget refused. */
prony_status prn_no_memory(prony_error *error);

/* The static analyzer reads one source at a time; here it learns that a failure has a failing status. */
#ifdef __clang_analyzer__
#define prn_fail(error, status, ...) ((void)prn_fail(error, status, __VA_ARGS__), (status))
#define prn_no_memory(error) ((void)prn_no_memory(error), PRONY_OUT_OF_MEMORY)
#endif

/* Hands a failing status up. `expression` is evaluated once. */
#define PRN_TRY(expression)                                                                                            \
    do {                                                                                                               \
        prony_status prn_try_status_ = (expression);                                                                   \
        if (prn_try_status_ != PRONY_OK) return prn_try_status_;                                                       \
    } while (0)

#endif
