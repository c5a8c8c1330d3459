/* Numbers for people. */
#include "profiler/text/number_text.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void prn_number_plain_point(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        if (strchr("+-0123456789eEinfa", *from))
            *to++ = *from;
        else if (to == text || to[-1] != '.')
            *to++ = '.';
    }
    *to = '\0';
}

char *prn_number_fixed(prn_number_text text, double value, int decimals)
{
    snprintf(text, PRN_NUMBER_TEXT_BYTES, "%.*f", decimals, value);
    prn_number_plain_point(text);
    return text;
}

/* Decimals that leave `digits` significant digits for a value below the next unit. */
static int decimals_for(double value, int digits)
{
    int before = fabs(value) >= 1000 ? 4 : fabs(value) >= 100 ? 3 : fabs(value) >= 10 ? 2 : 1;
    return digits > before ? digits - before : 0;
}

/* The smallest unit in which the value, once rounded, stays below `step`. */
static char *number_text_scaled(prn_number_text text, double value, double step, int digits, const char *space,
                                const char *const *units, size_t unit_count, bool exact_base)
{
    size_t unit = 0;
    int decimals = exact_base ? 0 : decimals_for(value, digits);
    for (;;) {
        double scale = pow(10, decimals), rounded = round(fabs(value) * scale) / scale;
        int again = unit == 0 && exact_base ? 0 : decimals_for(rounded, digits);
        if (again < decimals) {
            decimals = again;
            continue;
        }
        if (rounded < step || unit + 1 == unit_count) break;
        value /= step;
        unit++;
        decimals = decimals_for(value, digits);
    }
    prn_number_text number;
    prn_number_fixed(number, value, decimals);
    snprintf(text, PRN_NUMBER_TEXT_BYTES, "%.24s%s%s", number, *units[unit] ? space : "", units[unit]);
    return text;
}

char *prn_number_si(prn_number_text text, double value, int digits, const char *space)
{
    static const char *const units[] = {"", "k", "M", "G", "T", "P", "E"};
    return number_text_scaled(text, value, 1000, digits, space, units, sizeof units / sizeof units[0],
                              value == floor(value));
}

char *prn_number_bytes(prn_number_text text, double bytes, int digits, const char *space)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    return number_text_scaled(text, bytes, 1024, digits, space, units, sizeof units / sizeof units[0],
                              bytes == floor(bytes));
}

char *prn_number_time(prn_number_text text, int64_t ns, int digits, const char *space)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    return number_text_scaled(text, (double)ns, 1000, digits, space, units, sizeof units / sizeof units[0], true);
}

char *prn_number_percent(prn_number_text text, double share)
{
    return prn_number_fixed(text, share * 100, 1);
}

char *prn_number_grouped(prn_number_text text, uint64_t value)
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, value);
    char *to = text;
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0) *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
    return text;
}

char *prn_number_exact(prn_number_text text, double value)
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, PRN_NUMBER_TEXT_BYTES, "%.*g", digits, value);
        double back = strtod(text, NULL);
        if (memcmp(&back, &value, sizeof value) == 0) break;
    }
    prn_number_plain_point(text);
    return text;
}

/* The exponent saturates; numbers that overflow are refused. */
const char *prn_number_read(const char *text, double *out)
{
    double value = 0, scale = 1;
    bool negative = *text == '-', digits = false, point = false;
    if (*text == '-' || *text == '+') text++;
    for (; isdigit((unsigned char)*text) || (*text == '.' && !point); text++) {
        if (*text == '.') {
            point = true;
            continue;
        }
        digits = true;
        value = value * 10 + (*text - '0');
        if (point) scale *= 10;
    }
    if (!digits) return NULL;
    value /= scale;
    if ((*text == 'e' || *text == 'E') &&
        (isdigit((unsigned char)text[1]) || ((text[1] == '-' || text[1] == '+') && isdigit((unsigned char)text[2])))) {
        bool down = text[1] == '-';
        int exponent = 0;
        for (text += isdigit((unsigned char)text[1]) ? 1 : 2; isdigit((unsigned char)*text); text++)
            if (exponent < 400) exponent = exponent * 10 + (*text - '0');
        value *= pow(10, down ? -exponent : exponent);
    }
    *out = negative ? -value : value;
    return isfinite(value) ? text : NULL;
}
