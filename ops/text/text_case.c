/* A table owns its locale object. Characters map one to one, as towupper has it: "ß" has no upper case here. */
#define _GNU_SOURCE
#include "ops/text/text_case.h"

#include "base/memory/alloc.h"

#include <locale.h>
#include <string.h>
#include <wctype.h>

struct prn_case_table {
    locale_t locale; /* 0: ASCII only */
};

prn_case_table *prn_case_table_open(const char *locale)
{
    prn_case_table *table = prn_calloc(1, sizeof *table);
    if (!table) return NULL;
    if (locale && *locale) table->locale = newlocale(LC_CTYPE_MASK, locale, (locale_t)0);
    if (!table->locale) table->locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    return table;
}

void prn_case_table_close(prn_case_table *table)
{
    if (table && table->locale) freelocale(table->locale);
    prn_free(table);
}

/* The character at text[at]: its bytes, and *code, which is 0 where they are not UTF-8. */
static size_t character_at(prony_string text, size_t at, uint32_t *code)
{
    static const struct {
        uint8_t mask, lead;
        uint32_t least;
    } forms[] = {{0x80, 0, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    const uint8_t *p = (const uint8_t *)text.data + at;
    *code = 0;
    for (size_t length = 1; length <= 4 && length <= text.size - at; length++) {
        if ((p[0] & forms[length - 1].mask) != forms[length - 1].lead) continue;
        uint32_t value = p[0] & (uint32_t)(0xff ^ forms[length - 1].mask);
        for (size_t i = 1; i < length; i++) {
            if (p[i] >> 6 != 2) return 1;
            value = value << 6 | (p[i] & 0x3fu);
        }
        if (value < forms[length - 1].least || value > 0x10ffff) return 1;
        *code = value;
        return length;
    }
    return 1;
}

static size_t text_case_encode(uint32_t code, char *to)
{
    static const uint8_t leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length; i-- > 1; code >>= 6) to[i] = (char)(0x80 | (code & 0x3f));
    to[0] = (char)(leads[length == 1 ? 0 : length] | code);
    return length;
}

static uint32_t changed_code(const prn_case_table *table, uint32_t code, prn_case change)
{
    if (change == PRN_CASE_AS_IS) return code;
    if (table->locale) {
        wint_t c = (wint_t)code;
        return (uint32_t)(change == PRN_CASE_UPPER ? towupper_l(c, table->locale) : towlower_l(c, table->locale));
    }
    uint32_t first = change == PRN_CASE_UPPER ? 'a' : 'A';
    return code >= first && code < first + 26 ? code ^ 0x20u : code;
}

size_t prn_case_change(const prn_case_table *table, prony_string text, prn_case change, char *to)
{
    size_t size = 0;
    for (size_t at = 0; at < text.size;) {
        char changed[4];
        uint32_t code;
        size_t length = character_at(text, at, &code), written = 1;
        changed[0] = text.data[at];
        if (code) written = text_case_encode(changed_code(table, code, change), changed);
        if (to) memcpy(to + size, changed, written);
        size += written;
        at += length;
    }
    return size;
}

bool prn_case_same(const prn_case_table *table, prony_string a, prony_string b)
{
    size_t i = 0, j = 0;
    while (i < a.size && j < b.size) {
        uint32_t x, y;
        size_t x_size = character_at(a, i, &x), y_size = character_at(b, j, &y);
        if (!x != !y) return false;
        if (x ? changed_code(table, x, PRN_CASE_LOWER) != changed_code(table, y, PRN_CASE_LOWER)
              : a.data[i] != b.data[j])
            return false;
        i += x_size;
        j += y_size;
    }
    return i == a.size && j == b.size;
}
