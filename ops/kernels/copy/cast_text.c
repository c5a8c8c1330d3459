/* Numbers as text and back; see cast_text.h. Digits come from printf and go to strtod, which both know a decimal point
 * of the program's locale: it is never copied, and put in where strtod wants it. */
#include "ops/kernels/copy/cast_text.h"

#include "base/shape.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

static const prn_cast_rule exact = {.saturate = false, .rounding = PRN_E8M0_NEAREST};

/* ---- to text */

typedef struct decimal {
    char digits[20]; /* d.ddd without the point */
    int count, exponent;
} decimal;

static decimal decimal_of(double x, int count)
{
    decimal out = {.count = 0};
    char text[40];
    snprintf(text, sizeof text, "%.*e", count - 1, x);
    const char *at = text;
    for (; *at && *at != 'e'; at++) {
        if (isdigit((unsigned char)*at) && out.count < 18) out.digits[out.count++] = *at;
    }
    if (*at == 'e') out.exponent = (int)strtol(at + 1, NULL, 10);
    return out;
}

/* The element that the decimal of so many digits next to x is. */
static uint64_t element_of(double x, int count, prony_dtype type)
{
    char text[40];
    uint64_t bits = 0;
    snprintf(text, sizeof text, "%.*e", count - 1, x);
    const double read = strtod(text, NULL);
    prn_cast(&bits, type, 0, &read, PRONY_FLOAT64, 0, 1, &exact);
    return bits;
}

/* The fewest digits of x > 0 that give the same element of the type; what is narrower than 16 bits is shown in full.
 * More digits are never further from x, so that half of the counts is ruled out by each try. */
static decimal shortest(double x, prony_dtype type)
{
    if (prn_dtype_is_narrow(type)) type = PRONY_FLOAT32;
    int fewest = 1, enough = type == PRONY_FLOAT64 ? 17 : 9;
    uint64_t wanted = 0;
    prn_cast(&wanted, type, 0, &x, PRONY_FLOAT64, 0, 1, &exact);
    while (fewest < enough) {
        const int count = (fewest + enough) / 2;
        if (element_of(x, count, type) == wanted)
            enough = count;
        else
            fewest = count + 1;
    }
    return decimal_of(x, fewest);
}

static size_t cast_text_put(char *text, size_t at, char c)
{
    if (at + 1 < PRN_NUMBER_TEXT_BYTES) text[at++] = c;
    return at;
}

static size_t write_decimal(char *text, bool negative, const decimal *d)
{
    size_t at = negative ? cast_text_put(text, 0, '-') : 0;
    if (d->exponent < -4 || d->exponent >= 16) {
        at = cast_text_put(text, at, d->digits[0]);
        if (d->count > 1) at = cast_text_put(text, at, '.');
        for (int i = 1; i < d->count; i++) at = cast_text_put(text, at, d->digits[i]);
        const int wrote = snprintf(text + at, PRN_NUMBER_TEXT_BYTES - at, "e%+03d", d->exponent);
        return at + (size_t)(wrote > 0 ? wrote : 0);
    }
    if (d->exponent < 0) at = cast_text_put(text, cast_text_put(text, at, '0'), '.');
    for (int i = d->exponent + 1; i < 0; i++) at = cast_text_put(text, at, '0');
    for (int i = 0; i < d->count || i <= d->exponent; i++) {
        at = cast_text_put(text, at, i < d->count ? d->digits[i] : '0');
        if (i == d->exponent) at = cast_text_put(text, at, '.');
    }
    if (d->exponent >= d->count - 1) at = cast_text_put(text, at, '0');
    text[at] = '\0';
    return at;
}

size_t prn_number_to_text(char text[PRN_NUMBER_TEXT_BYTES], const void *data, prony_dtype type, int64_t index)
{
    int wrote;
    if (prn_dtype_is_float(type)) {
        double x;
        prn_cast(&x, PRONY_FLOAT64, 0, data, type, index, 1, &exact);
        if (isfinite(x)) {
            const decimal d = x == 0.0 ? (decimal){.digits = "0", .count = 1} : shortest(fabs(x), type);
            return write_decimal(text, signbit(x), &d);
        }
        wrote = snprintf(text, PRN_NUMBER_TEXT_BYTES, "%s", isnan(x) ? "NaN" : x > 0 ? "INF" : "-INF");
    } else if (type == PRONY_BOOL) {
        wrote = snprintf(text, PRN_NUMBER_TEXT_BYTES, "%s", ((const uint8_t *)data)[index] ? "True" : "False");
    } else if (type == PRONY_UINT64) {
        wrote = snprintf(text, PRN_NUMBER_TEXT_BYTES, "%llu", (unsigned long long)((const uint64_t *)data)[index]);
    } else {
        int64_t x;
        prn_cast(&x, PRONY_INT64, 0, data, type, index, 1, &exact);
        wrote = snprintf(text, PRN_NUMBER_TEXT_BYTES, "%lld", (long long)x);
    }
    return wrote > 0 ? (size_t)wrote : 0;
}

/* ---- from text */

/* A whole number in 64 bits, signed or not; *fits tells a number too large from no whole number. */
static bool cast_text_read_whole(const char *text, bool is_unsigned, int64_t *out, bool *fits)
{
    char *end;
    errno = 0;
    const bool negative = *text == '-';
    *out = is_unsigned && !negative ? (int64_t)strtoull(text, &end, 10) : strtoll(text, &end, 10);
    *fits = errno != ERANGE;
    return end != text && !*end;
}

static bool store_float(double x, void *data, prony_dtype type, int64_t index, const prn_cast_rule *rule)
{
    prn_cast(data, type, index, &x, PRONY_FLOAT64, 0, 1, rule);
    return true;
}

static bool read_float(char *text, void *data, prony_dtype type, int64_t index, const prn_cast_rule *rule)
{
    const char *point = localeconv()->decimal_point;
    char *end, *dot = strchr(text, '.');
    if (dot && point && point[0] && !point[1]) *dot = point[0];
    const double x = strtod(text, &end);
    if (end == text || *end) return false;
    if (!prn_dtype_is_float(type) && type != PRONY_BOOL && !(fabs(x) < 0x1p64)) return false;
    return store_float(x, data, type, index, rule);
}

bool prn_text_to_number(const prony_string *string, void *data, prony_dtype type, int64_t index,
                        const prn_cast_rule *rule)
{
    enum { LONGEST = 512 };
    char text[LONGEST];
    const char *begin = string->data, *end = begin + string->size;
    while (begin < end && isspace((unsigned char)*begin)) begin++;
    while (begin < end && isspace((unsigned char)end[-1])) end--;
    const size_t size = (size_t)(end - begin);
    if (size == 0 || size >= LONGEST || memchr(begin, '\0', size)) return false;
    memcpy(text, begin, size);
    text[size] = '\0';
    if (strcasecmp(text, "true") == 0) return store_float(1.0, data, type, index, rule);
    if (strcasecmp(text, "false") == 0) return store_float(0.0, data, type, index, rule);
    if (prn_dtype_is_integer(type)) {
        int64_t whole;
        bool fits;
        if (cast_text_read_whole(text, type == PRONY_UINT64, &whole, &fits)) {
            prn_cast(data, type, index, &whole, PRONY_INT64, 0, 1, rule);
            return fits;
        }
    }
    return read_float(text, data, type, index, rule);
}
