/* Streaming JSON writer: writes values in call order and keeps only a buffer. Not thread-safe.
 *
 * Errors stick: after the first, calls do nothing and prn_json_end returns it. Members of an object take a key,
 * elements of an array NULL. Output is UTF-8 with two spaces per level; containers opened as `flat` stay on one line.
 */
#ifndef PRN_PROFILER_JSON_JSON_WRITE_H
#define PRN_PROFILER_JSON_JSON_WRITE_H

#include "base/status.h"

#define PRN_JSON_EXACT (UINT64_C(1) << 53) /* the largest integer that every reader represents exactly */

typedef struct prn_json {
    prony_write_fn write;
    void *user;
    prony_error *error;
    prony_status status;
    int depth;
    uint32_t used_levels; /* bit d: the container at depth d has an element */
    int flat_depth;       /* containers from this depth on stay on one line; 0: none */
    size_t size;
    char buffer[8192];
} prn_json;

void prn_json_begin(prn_json *json, prony_write_fn write, void *user, prony_error *error);
/* Writes what is buffered and a final newline. */
PRN_MUST_USE prony_status prn_json_end(prn_json *json);

/* A document on the heap that begins with {"schema": schema; prn_json_finish ends and releases it. NULL: out of memory,
 * as in `error`. A dated one has the time of writing ("created", UTC). */
prn_json *prn_json_dated_document(const char *schema, prony_write_fn write, void *user, prony_error *error);
prn_json *prn_json_document(const char *schema, prony_write_fn write, void *user, prony_error *error);
PRN_MUST_USE prony_status prn_json_finish(prn_json *json);

void prn_json_open(prn_json *json, const char *key, char bracket, bool flat); /* '{' or '[' */
void prn_json_close(prn_json *json, char bracket);                            /* '}' or ']' */

/* NULL writes null. Invalid UTF-8 becomes U+FFFD. */
void prn_json_string(prn_json *json, const char *key, const char *text);
/* Above 2^53: PRONY_OUT_OF_RANGE, naming the key. */
void prn_json_uint(prn_json *json, const char *key, uint64_t value);
void prn_json_int(prn_json *json, const char *key, int64_t value);
/* Shortest of 15 to 17 digits that reads back to the same double; null for NaN and infinity. */
void prn_json_double(prn_json *json, const char *key, double value);
void prn_json_bool(prn_json *json, const char *key, bool value);
void prn_json_null(prn_json *json, const char *key);

#endif
