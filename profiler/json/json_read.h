/* Reads an untrusted JSON document: members by key and type, with errors that name file and key.
 *
 * Errors stick: after the first, calls return false or zero and change nothing. Objects and arrays are borrowed from
 * the document and end with prn_json_document_release. Not thread-safe.
 */
#ifndef PRN_PROFILER_JSON_JSON_READ_H
#define PRN_PROFILER_JSON_JSON_READ_H

#include "base/memory/alloc.h"
#include "base/status.h"

typedef struct cJSON prn_json_value;

typedef struct prn_json_reader {
    prn_bump *pool; /* strings are copied there */
    const char *file;
    char where[200]; /* of the object being read, such as "layers[3]"; "" at the top */
    prony_error *error;
    prony_status status;
} prn_json_reader;

/* Errors name the line of damaged JSON, and the key of an integer above 2^53. The root is an object. */
PRN_MUST_USE prony_status prn_json_document_parse(prn_json_value **out, const char *file, const char *text, size_t size,
                                                  prony_error *error);
void prn_json_document_release(prn_json_value *document);
/* A value as text, without blanks; NULL: out of memory. Released by prn_json_text_release. */
char *prn_json_text_of(const prn_json_value *value);
void prn_json_text_release(char *text);

void prn_json_bad(prn_json_reader *reader, const char *key, const char *format, ...) PRN_PRINTF(3, 4);

/* true: `object` has a member `key` that is not null. */
bool prn_json_has(const prn_json_value *object, const char *key);
bool prn_json_is_null(const prn_json_value *value);
bool prn_json_is_bool(const prn_json_value *value);
bool prn_json_is_true(const prn_json_value *value);

/* Each sets *out and returns true if the member is there, is not null and has the type. Absent or null: false, and an
 * error if `required`. Another type or a value outside the C type: false and an error. */
bool prn_json_get_u64(prn_json_reader *reader, const prn_json_value *object, const char *key, bool required,
                      uint64_t *out);
bool prn_json_get_u32(prn_json_reader *reader, const prn_json_value *object, const char *key, bool required,
                      uint32_t *out);
bool prn_json_get_i64(prn_json_reader *reader, const prn_json_value *object, const char *key, bool required,
                      int64_t *out);
bool prn_json_get_int(prn_json_reader *reader, const prn_json_value *object, const char *key, bool required, int *out);
bool prn_json_get_double(prn_json_reader *reader, const prn_json_value *object, const char *key, bool required,
                         double *out);
/* A number from 0 to 1, apart from rounding of sums. */
bool prn_json_get_share(prn_json_reader *reader, const prn_json_value *object, const char *key, bool required,
                        double *out);
bool prn_json_get_bool(prn_json_reader *reader, const prn_json_value *object, const char *key, bool required,
                       bool *out);
bool prn_json_get_string(prn_json_reader *reader, const prn_json_value *object, const char *key, bool required,
                         const char **out);
/* NULL: missing. */
const prn_json_value *prn_json_get_object(prn_json_reader *reader, const prn_json_value *object, const char *key,
                                          bool required);
const prn_json_value *prn_json_get_array(prn_json_reader *reader, const prn_json_value *object, const char *key,
                                         bool required, size_t *count);

/* Elements of an array or members of an object, in order. */
const prn_json_value *prn_json_first(const prn_json_value *container);
const prn_json_value *prn_json_next(const prn_json_value *element);
const char *prn_json_key(const prn_json_value *member);

/* Element values; `key` and `index` are for the message. A null is an error, except for prn_json_element_index, which
 * returns PRONY_NO_INDEX. */
bool prn_json_element_i64(prn_json_reader *reader, const prn_json_value *element, const char *key, int64_t *out);
bool prn_json_element_double(prn_json_reader *reader, const prn_json_value *element, const char *key, double *out);
bool prn_json_element_index(prn_json_reader *reader, const prn_json_value *element, const char *key, uint32_t *out);
bool prn_json_element_string(prn_json_reader *reader, const prn_json_value *element, const char *key, const char **out);
bool prn_json_element_is_object(prn_json_reader *reader, const prn_json_value *element, const char *key);

/* An array of `count` elements in the pool; NULL after an error. */
void *prn_json_room(prn_json_reader *reader, size_t count, size_t size);

#endif
