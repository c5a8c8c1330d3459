/* The monotonic clock for all times, and the date for documents. */
#ifndef PRN_BASE_OS_CLOCK_H
#define PRN_BASE_OS_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t prn_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

enum { PRN_UTC_CHARS = sizeof "2026-01-31T23:59:59Z" };

/* A time in UTC by ISO 8601, to the second; empty if the time is not a date. */
static inline void prn_utc(time_t time, char text[PRN_UTC_CHARS])
{
    struct tm parts;
    if (!gmtime_r(&time, &parts) || strftime(text, PRN_UTC_CHARS, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0) text[0] = '\0';
}

static inline void prn_now_utc(char text[PRN_UTC_CHARS])
{
    prn_utc(time(NULL), text);
}

#endif
