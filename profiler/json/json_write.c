/* Implements json_write.h. Invariant: the bytes passed to `write` plus the buffer are a prefix of a valid document, if
 * keys and brackets are used as in the header. */
#include "profiler/json/json_write.h"

#include "base/os/clock.h"
#include "base/memory/alloc.h"
#include "profiler/text/number_text.h"
#include "profiler/text/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void json_write_flush(prn_json *json)
{
    if (json->status == PRONY_OK && json->size && json->write(json->user, json->buffer, json->size) != 0)
        json->status = prn_fail(json->error, PRONY_IO_ERROR, "the report could not be written");
    json->size = 0;
}

static void json_write_put(prn_json *json, const char *text, size_t size)
{
    if (size > sizeof json->buffer - json->size) json_write_flush(json);
    if (size > sizeof json->buffer) {
        if (json->status == PRONY_OK && json->write(json->user, text, size) != 0)
            json->status = prn_fail(json->error, PRONY_IO_ERROR, "the report could not be written");
        return;
    }
    memcpy(json->buffer + json->size, text, size);
    json->size += size;
}

static void json_write_put_text(prn_json *json, const char *text)
{
    json_write_put(json, text, strlen(text));
}

void prn_json_begin(prn_json *json, prony_write_fn write, void *user, prony_error *error)
{
    json->write = write;
    json->user = user;
    json->error = error;
    json->status = PRONY_OK;
    json->depth = json->flat_depth = 0;
    json->used_levels = 0;
    json->size = 0;
}

prony_status prn_json_end(prn_json *json)
{
    if (json->depth != 0 && json->status == PRONY_OK)
        json->status = prn_fail(json->error, PRONY_INTERNAL, "a JSON container was left open");
    json_write_put(json, "\n", 1);
    json_write_flush(json);
    return json->status;
}

static void json_write_put_escaped(prn_json *json, unsigned char c)
{
    static const char plain[] = "\b\f\n\r\t\"\\", letters[] = "bfnrt\"\\";
    const char *found = c ? strchr(plain, c) : NULL;
    char escape[8];
    if (found)
        snprintf(escape, sizeof escape, "\\%c", letters[found - plain]);
    else
        snprintf(escape, sizeof escape, "\\u%04x", c);
    json_write_put_text(json, escape);
}

static void put_string(prn_json *json, const char *text)
{
    json_write_put(json, "\"", 1);
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        size_t span = prn_utf8_sequence((const char *)s);
        if (span == 0) {
            json_write_put_text(json, "\xef\xbf\xbd");
            s++;
        } else if (*s < 0x20 || *s == '"' || *s == '\\' || *s == 0x7f) {
            json_write_put_escaped(json, *s++);
        } else {
            json_write_put(json, (const char *)s, span);
            s += span;
        }
    }
    json_write_put(json, "\"", 1);
}

static void put_break(prn_json *json)
{
    static const char blanks[] = "\n                                ";
    json_write_put(json, blanks, 1 + 2 * (size_t)(json->depth < 16 ? json->depth : 16));
}

/* Writes comma, newline and key before a value, as needed. */
static void lead_in(prn_json *json, const char *key)
{
    bool flat = json->flat_depth && json->depth >= json->flat_depth;
    uint32_t level = UINT32_C(1) << json->depth;
    if (json->used_levels & level) json_write_put_text(json, flat ? ", " : ",");
    json->used_levels |= level;
    if (json->depth && !flat) put_break(json);
    if (!key) return;
    put_string(json, key);
    json_write_put_text(json, ": ");
}

void prn_json_open(prn_json *json, const char *key, char bracket, bool flat)
{
    lead_in(json, key);
    json_write_put(json, &bracket, 1);
    if (json->depth == 31) {
        if (json->status == PRONY_OK) json->status = prn_fail(json->error, PRONY_INTERNAL, "JSON nests too deeply");
        return;
    }
    json->depth++;
    json->used_levels &= ~(UINT32_C(1) << json->depth);
    if (flat && !json->flat_depth) json->flat_depth = json->depth;
}

void prn_json_close(prn_json *json, char bracket)
{
    if (json->depth == 0) return;
    bool flat = json->flat_depth && json->depth >= json->flat_depth;
    bool used = json->used_levels & UINT32_C(1) << json->depth;
    if (json->flat_depth == json->depth) json->flat_depth = 0;
    json->depth--;
    if (used && !flat) put_break(json);
    json_write_put(json, &bracket, 1);
}

void prn_json_string(prn_json *json, const char *key, const char *text)
{
    lead_in(json, key);
    if (text)
        put_string(json, text);
    else
        json_write_put_text(json, "null");
}

void prn_json_uint(prn_json *json, const char *key, uint64_t value)
{
    if (value > PRN_JSON_EXACT && json->status == PRONY_OK)
        json->status = prn_fail(json->error, PRONY_OUT_OF_RANGE,
                                "%s is %" PRIu64 ": above 2^53, the largest integer that JSON readers take exactly",
                                key ? key : "an array element", value);
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    lead_in(json, key);
    json_write_put_text(json, text);
}

void prn_json_int(prn_json *json, const char *key, int64_t value)
{
    if (value >= 0) {
        prn_json_uint(json, key, (uint64_t)value);
        return;
    }
    if (value < -(int64_t)PRN_JSON_EXACT && json->status == PRONY_OK)
        json->status = prn_fail(json->error, PRONY_OUT_OF_RANGE,
                                "%s is %" PRId64 ": below -2^53, the smallest integer that JSON readers take exactly",
                                key ? key : "an array element", value);
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    lead_in(json, key);
    json_write_put_text(json, text);
}

void prn_json_double(prn_json *json, const char *key, double value)
{
    prn_number_text text;
    lead_in(json, key);
    json_write_put_text(json, isfinite(value) ? prn_number_exact(text, value) : "null");
}

void prn_json_bool(prn_json *json, const char *key, bool value)
{
    lead_in(json, key);
    json_write_put_text(json, value ? "true" : "false");
}

void prn_json_null(prn_json *json, const char *key)
{
    prn_json_string(json, key, NULL);
}

prn_json *prn_json_document(const char *schema, prony_write_fn write, void *user, prony_error *error)
{
    prn_json *json = prn_alloc(sizeof *json);
    if (!json) {
        (void)!prn_no_memory(error);
        return NULL;
    }
    prn_json_begin(json, write, user, error);
    prn_json_open(json, NULL, '{', false);
    prn_json_string(json, "schema", schema);
    return json;
}

prn_json *prn_json_dated_document(const char *schema, prony_write_fn write, void *user, prony_error *error)
{
    char now[PRN_UTC_CHARS];
    prn_json *json = prn_json_document(schema, write, user, error);
    prn_now_utc(now);
    if (json && *now) prn_json_string(json, "created", now);
    return json;
}

prony_status prn_json_finish(prn_json *json)
{
    prn_json_close(json, '}');
    prony_status status = prn_json_end(json);
    prn_free(json);
    return status;
}
