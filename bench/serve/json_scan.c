#include "bench/serve/json_scan.h"

#include <string.h>

static bool scan_fail(json_scan *s, const char *problem)
{
    if (!s->problem) s->problem = problem;
    return false;
}

char json_peek(json_scan *s)
{
    while (s->at < s->size &&
           (s->text[s->at] == ' ' || s->text[s->at] == '\n' || s->text[s->at] == '\t' || s->text[s->at] == '\r'))
        s->at++;
    return s->at < s->size && !s->problem ? s->text[s->at] : '\0';
}

bool json_take(json_scan *s, char byte)
{
    if (json_peek(s) != byte || byte == '\0') return false;
    s->at++;
    return true;
}

/* Value of four hex digits, -1: other characters. */
static int scan_hex(const char *text)
{
    int value = 0;
    for (int i = 0; i < 4; i++) {
        char c = text[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    return value;
}

bool json_string(json_scan *s, json_slice *raw)
{
    if (!json_take(s, '"')) return scan_fail(s, "a string is missing");
    size_t begin = s->at;
    while (s->at < s->size) {
        unsigned char c = (unsigned char)s->text[s->at];
        if (c == '"') {
            *raw = (json_slice){s->text + begin, s->at++ - begin};
            return true;
        }
        if (c < 0x20) return scan_fail(s, "a string has a control character");
        if (c != '\\') {
            s->at++;
            continue;
        }
        if (s->size - s->at < 2) break;
        char kind = s->text[s->at + 1];
        if (kind == 'u' ? s->size - s->at < 6 || scan_hex(s->text + s->at + 2) < 0
                        : !strchr("\"\\/bfnrt", kind) || !kind)
            return scan_fail(s, "a string has an invalid escape");
        s->at += kind == 'u' ? 6 : 2;
    }
    return scan_fail(s, "a string does not end");
}

static bool scan_digits(json_scan *s)
{
    size_t begin = s->at;
    while (s->at < s->size && s->text[s->at] >= '0' && s->text[s->at] <= '9') s->at++;
    return s->at > begin || scan_fail(s, "a number is invalid");
}

static bool scan_number(json_scan *s)
{
    if (s->text[s->at] == '-') s->at++;
    if (s->at < s->size && s->text[s->at] == '0')
        s->at++;
    else if (!scan_digits(s))
        return false;
    if (s->at < s->size && s->text[s->at] == '.') {
        s->at++;
        if (!scan_digits(s)) return false;
    }
    if (s->at < s->size && (s->text[s->at] == 'e' || s->text[s->at] == 'E')) {
        s->at++;
        if (s->at < s->size && (s->text[s->at] == '+' || s->text[s->at] == '-')) s->at++;
        if (!scan_digits(s)) return false;
    }
    return true;
}

static bool scan_word(json_scan *s)
{
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t length = strlen(words[i]);
        if (s->size - s->at >= length && memcmp(s->text + s->at, words[i], length) == 0) return s->at += length, true;
    }
    return scan_fail(s, "a value is missing or invalid");
}

/* Passes a string, a number or a word. */
static bool scan_leaf(json_scan *s, char first)
{
    json_slice raw;
    if (first == '"') return json_string(s, &raw);
    return first == '-' || (first >= '0' && first <= '9') ? scan_number(s) : scan_word(s);
}

/* Passes one value. `kinds` holds the open brackets; a value is complete when none is left. */
bool json_value(json_scan *s, json_slice *value)
{
    char kinds[JSON_MOST_DEPTH];
    int depth = 0;
    char first = json_peek(s);
    size_t begin = s->at;
    for (;;) {
        if (first == '{' || first == '[') {
            if (depth == JSON_MOST_DEPTH) return scan_fail(s, "values are nested more than 64 deep");
            kinds[depth++] = first;
            s->at++;
            char next = json_peek(s);
            if (next != (first == '{' ? '}' : ']')) {
                json_slice key;
                if (first == '{' && (!json_string(s, &key) || !json_take(s, ':')))
                    return scan_fail(s, "an object lacks a name or a colon");
                first = json_peek(s);
                continue;
            }
        } else if (!scan_leaf(s, first)) {
            return false;
        }
        for (;;) { /* behind a value: the ends of what it completes */
            if (depth == 0) {
                if (value) *value = (json_slice){s->text + begin, s->at - begin};
                return true;
            }
            if (!json_take(s, kinds[depth - 1] == '{' ? '}' : ']')) break;
            depth--;
        }
        json_slice key;
        if (!json_take(s, ',')) return scan_fail(s, "a comma or a closing bracket is missing");
        if (kinds[depth - 1] == '{' && (!json_string(s, &key) || !json_take(s, ':')))
            return scan_fail(s, "an object lacks a name or a colon");
        first = json_peek(s);
    }
}

static bool scan_next(json_scan *s, bool *first, char open, char close)
{
    if (s->problem) return false;
    if (*first && !json_take(s, open))
        return scan_fail(s, open == '{' ? "an object is missing" : "an array is missing");
    if (json_take(s, close)) return false;
    if (!*first && !json_take(s, ',')) return scan_fail(s, "a comma or a closing bracket is missing");
    *first = false;
    return true;
}

bool json_next_member(json_scan *s, bool *first, json_slice *key)
{
    if (!scan_next(s, first, '{', '}')) return false;
    return (json_string(s, key) && json_take(s, ':')) || scan_fail(s, "an object lacks a name or a colon");
}

bool json_next_element(json_scan *s, bool *first)
{
    return scan_next(s, first, '[', ']');
}

bool json_end(json_scan *s)
{
    return (json_peek(s) == '\0' && s->at == s->size && !s->problem) || scan_fail(s, "text follows the object");
}

static size_t put_utf8(unsigned code, char *out)
{
    if (code < 0x80) return out[0] = (char)code, 1;
    size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--, code >>= 6) out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)((0xf00U >> length) | code);
    return length;
}

/* `raw` was scanned already, so every escape is complete. `out` has room for raw.size bytes: no escape is shorter than
 * its UTF-8 text. Half of a surrogate pair becomes U+FFFD. */
size_t json_unescape(json_slice raw, char *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    size_t size = 0;
    for (size_t i = 0; i < raw.size; i++) {
        if (raw.text[i] != '\\') {
            out[size++] = raw.text[i];
            continue;
        }
        char kind = raw.text[++i];
        if (kind != 'u') {
            const char *at = strchr(from, kind);
            out[size++] = at ? to[at - from] : kind;
            continue;
        }
        unsigned code = (unsigned)scan_hex(raw.text + i + 1);
        i += 4;
        bool high = code >= 0xd800 && code < 0xdc00,
             pair = high && raw.size - i > 6 && raw.text[i + 1] == '\\' && raw.text[i + 2] == 'u';
        int low = pair ? scan_hex(raw.text + i + 3) : -1;
        if (low >= 0xdc00 && low < 0xe000) {
            code = 0x10000 + ((code - 0xd800) << 10) + ((unsigned)low - 0xdc00);
            i += 6;
        } else if (code >= 0xd800 && code < 0xe000) {
            code = 0xfffd; /* half of a pair */
        }
        size += put_utf8(code, out + size);
    }
    return size;
}

bool json_equals(json_slice raw, const char *text)
{
    return raw.text && raw.size == strlen(text) && memcmp(raw.text, text, raw.size) == 0;
}

bool json_integer(json_slice number, int64_t *out)
{
    size_t i = 0;
    bool minus = number.size && number.text[0] == '-';
    int64_t value = 0;
    for (i = minus; i < number.size; i++) {
        if (number.text[i] < '0' || number.text[i] > '9') return false;
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_sub_overflow(value, number.text[i] - '0', &value))
            return false;
    }
    if (i == (size_t)minus || (!minus && value == INT64_MIN)) return false;
    *out = minus ? value : -value;
    return true;
}
