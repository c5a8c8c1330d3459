/* A scanner of JSON text (RFC 8259) that builds no tree: memory does not grow with the text, depth is bounded. The text
 * need not end with NUL. */
#ifndef PRN_BENCH_SERVE_JSON_SCAN_H
#define PRN_BENCH_SERVE_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JSON_MOST_DEPTH = 64 };

typedef struct json_slice {
    const char *text; /* NULL: absent */
    size_t size;
} json_slice;

/* After the first problem every function fails. */
typedef struct json_scan {
    const char *text;
    size_t size, at;
    const char *problem; /* static; NULL: none */
} json_scan;

/* The first byte of the next value, '\0' at the end. Skips blanks. */
char json_peek(json_scan *scan);
/* true: `byte` was next, and is passed. */
bool json_take(json_scan *scan, char byte);
/* Passes a value of any kind, valid or not of the expected type; *value (may be NULL) is its text. */
bool json_value(json_scan *scan, json_slice *value);
/* Passes a string; *raw is the text between the quotes, with its escapes. */
bool json_string(json_scan *scan, json_slice *raw);
/* The members of an object or elements of an array: call first with *first true. Returns false at the end and after a
 * problem. */
bool json_next_member(json_scan *scan, bool *first, json_slice *key);
bool json_next_element(json_scan *scan, bool *first);
/* Nothing but blanks follows. */
bool json_end(json_scan *scan);

/* The text of a string without its escapes, at most raw.size bytes, into `out`. Returns its size. */
size_t json_unescape(json_slice raw, char *out);
/* true: the raw string has this text; `text` has no characters that need escapes. */
bool json_equals(json_slice raw, const char *text);
bool json_integer(json_slice number, int64_t *out);

#endif
