/* Numbers for people: SI and binary prefixes, times, shares. Pure; independent of the locale. Each function writes into
 * `text` and returns it. `space` separates number and unit ("" in tables, " " in prose). */
#ifndef PRN_PROFILER_TEXT_NUMBER_TEXT_H
#define PRN_PROFILER_TEXT_NUMBER_TEXT_H

#include <stddef.h>
#include <stdint.h>

#define PRN_NUMBER_TEXT_BYTES 40
typedef char prn_number_text[PRN_NUMBER_TEXT_BYTES];

/* Replaces the decimal point of the current locale by a dot. */
void prn_number_plain_point(char *text);

/* 4089184256 -> "4.09 G" with three digits, "4.089 G" with four; below 1000 the integer itself. */
char *prn_number_si(prn_number_text text, double value, int digits, const char *space);
/* 102230000 -> "97.5 MiB" */
char *prn_number_bytes(prn_number_text text, double bytes, int digits, const char *space);
/* 1234567 ns -> "1.23 ms" */
char *prn_number_time(prn_number_text text, int64_t ns, int digits, const char *space);
/* 0.1234 -> "12.3"; the per cent sign is the column's or caller's. */
char *prn_number_percent(prn_number_text text, double share);
/* 11220132 -> "11,220,132" */
char *prn_number_grouped(prn_number_text text, uint64_t value);
/* Shortest of 15 to 17 digits that reads back to the same double. `value` is finite. */
char *prn_number_exact(prn_number_text text, double value);
/* `decimals` digits after the point. */
char *prn_number_fixed(prn_number_text text, double value, int decimals);

/* Reads digits, at most one point and an exponent; returns the rest of the text, or NULL if it has no finite number.
 * strtod would follow the locale and accept hexadecimal and "inf". */
const char *prn_number_read(const char *text, double *out);

#endif
