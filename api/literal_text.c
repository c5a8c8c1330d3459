/* Strings of prony_value_parse. Their bytes are taken as they are, whatever the encoding; \u escapes become UTF-8. */
#include "api/literal_text.h"

#include "base/memory/alloc.h"
#include "base/shape.h"
#include "loaders/onnx/owned_value.h"

#include <string.h>

static bool literal_text_put(prn_literal_texts *texts, const char *bytes, size_t count)
{
    if (!PRN_GROW(texts->bytes, texts->room, texts->used + count)) {
        texts->no_memory = true;
        return false;
    }
    memcpy(texts->bytes + texts->used, bytes, count);
    texts->used += count;
    return true;
}

/* Four hexadecimal digits; -1: they are not. */
static int32_t hex4(const char *text)
{
    int32_t value = 0;
    for (int i = 0; i < 4; i++) {
        const char c = text[i];
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* The characters behind "\u", as one or two UTF-16 units; the text behind them. */
static const char *put_unicode(prn_literal_texts *texts, const char *text)
{
    int32_t code = hex4(text);
    if (code < 0 || (code >= 0xdc00 && code <= 0xdfff)) return NULL;
    text += 4;
    if (code >= 0xd800 && code <= 0xdbff) {
        const int32_t low = text[0] == '\\' && text[1] == 'u' ? hex4(text + 2) : -1;
        if (low < 0xdc00 || low > 0xdfff) return NULL;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        text += 6;
    }
    char bytes[4];
    size_t count = 0;
    if (code < 0x80) {
        bytes[count++] = (char)code;
    } else {
        if (code < 0x800) {
            bytes[count++] = (char)(0xc0 | code >> 6);
        } else {
            if (code < 0x10000) {
                bytes[count++] = (char)(0xe0 | code >> 12);
            } else {
                bytes[count++] = (char)(0xf0 | code >> 18);
                bytes[count++] = (char)(0x80 | (code >> 12 & 0x3f));
            }
            bytes[count++] = (char)(0x80 | (code >> 6 & 0x3f));
        }
        bytes[count++] = (char)(0x80 | (code & 0x3f));
    }
    return literal_text_put(texts, bytes, count) ? text : NULL;
}

/* The escape behind a backslash. */
static const char *put_escape(prn_literal_texts *texts, const char *text)
{
    static const char names[] = "\"'\\/bfnrt", characters[] = "\"'\\/\b\f\n\r\t";
    if (*text == 'u') return put_unicode(texts, text + 1);
    const char *name = *text ? strchr(names, *text) : NULL;
    return name && literal_text_put(texts, &characters[name - names], 1) ? text + 1 : NULL;
}

const char *prn_literal_text_read(prn_literal_texts *texts, const char *text)
{
    const char quote = *text;
    if (quote != '"' && quote != '\'') return NULL;
    for (text++; *text != quote;) {
        if (!*text) return NULL;
        if (*text == '\\') {
            text = put_escape(texts, text + 1);
            if (!text) return NULL;
        } else if (literal_text_put(texts, text, 1)) {
            text++;
        } else {
            return NULL;
        }
    }
    texts->no_memory = !PRN_GROW(texts->ends, texts->capacity, texts->count + 1);
    if (texts->no_memory) return NULL;
    texts->ends[texts->count++] = texts->used;
    return text + 1;
}

prony_status prn_literal_text_tensor(prony_value *out, const prn_literal_texts *texts, const prony_shape *shape,
                                     prony_error *error)
{
    PRN_TRY(prn_owned_tensor(out, PRONY_STRING, shape, texts->used, error));
    const int64_t count = prony_shape_numel(shape);
    const bool fills = texts->count == 1;
    prony_string *elements = out->data;
    char *bytes = (char *)(elements + count);
    if (texts->used) memcpy(bytes, texts->bytes, texts->used);
    for (int64_t i = 0; i < count; i++) {
        const size_t k = fills ? 0 : (size_t)i, begin = k ? texts->ends[k - 1] : 0;
        elements[i] = (prony_string){bytes + begin, texts->ends[k] - begin};
    }
    return PRONY_OK;
}

void prn_literal_text_free(prn_literal_texts *texts)
{
    prn_free(texts->bytes);
    prn_free(texts->ends);
    *texts = (prn_literal_texts){0};
}
