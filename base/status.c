/* Status texts and the writing of error messages. Nothing here allocates; a message that does not fit is truncated and
 * always NUL-terminated. */
#include "base/status.h"

#include <stdio.h>
#include <string.h>

const char *prony_status_text(prony_status status)
{
    switch (status) {
#define STATUS_CASE(name, text)                                                                                        \
    case name:                                                                                                         \
        return text;
        PRONY_STATUS_LIST(STATUS_CASE)
#undef STATUS_CASE
    }
    return "unknown status";
}

prony_status prn_status_known(prony_status status)
{
    switch (status) {
#define STATUS_CASE(name, text) case name:
        PRONY_STATUS_LIST(STATUS_CASE)
#undef STATUS_CASE
        return status;
    }
    return PRONY_INTERNAL;
}

const char *prony_version(void)
{
    return PRONY_VERSION;
}

prony_status prn_fail_v(prony_error *error, prony_status status, const char *format, va_list args)
{
    if (error) {
        error->status = status;
        if (vsnprintf(error->message, sizeof error->message, format, args) < 0) error->message[0] = '\0';
    }
    return status;
}

prony_status(prn_fail)(prony_error *error, prony_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    prn_fail_v(error, status, format, args);
    va_end(args);
    return status;
}

void prn_error_prefix(prony_error *error, const char *format, ...)
{
    if (!error) return;
    char whole[PRONY_ERROR_MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(whole, sizeof whole, format, args);
    va_end(args);
    if (length < 0 || (size_t)length >= sizeof whole / 2) return;
    const char *old = error->message;
    size_t rest = strnlen(old, sizeof error->message - 1), room = sizeof whole - 1 - (size_t)length;
    const char *between = ": ";
    if (rest + strlen(between) > room) { /* a long path of nodes: its end names the failure */
        between = ": ...";
        old += rest + strlen(between) - room;
        rest = room - strlen(between);
    }
    size_t used = (size_t)length + strlen(between);
    memcpy(whole + length, between, strlen(between));
    memcpy(whole + used, old, rest);
    whole[used + rest] = '\0';
    memcpy(error->message, whole, used + rest + 1);
}
