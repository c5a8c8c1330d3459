/* Implements json_read.h: checked members of a parsed JSON document. The only file that uses cJSON.
 *
 * cJSON keeps numbers as doubles and silently rounds integers above 2^53. So the text is scanned before it is parsed.
 * cJSON's own allocations go to the C library: its hooks are global to the process, and the program around us may use
 * cJSON as well.
 */
#include "profiler/json/json_read.h"

#include "profiler/json/json_write.h"
#include "prony_report.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- the document ---- */

static size_t string_end(const char *text, size_t size, size_t at)
{
    for (at++; at < size && text[at] != '"'; at++)
        if (text[at] == '\\') at++;
    return at < size ? at : size;
}

/* false: the digits at `at` are an integer above 2^53. */
static bool exact_digits(const char *text, size_t size, size_t at)
{
    uint64_t value = 0;
    for (; at < size && text[at] >= '0' && text[at] <= '9'; at++) {
        value = value * 10 + (uint64_t)(text[at] - '0');
        if (value > PRN_JSON_EXACT) return false;
    }
    return true;
}

static bool in_number(char c)
{
    return (c >= '0' && c <= '9') || c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-';
}

/* Scans the text outside of strings for integers above 2^53; remembers the last key for the message. */
static prony_status check_integers(const char *file, const char *text, size_t size, prony_error *error)
{
    size_t key = 0, key_size = 0;
    for (size_t at = 0; at < size; at++) {
        if (text[at] == '"') {
            size_t end = string_end(text, size, at), next = end + 1;
            while (next < size && strchr(" \t\r\n", text[next]) && text[next]) next++;
            if (next < size && text[next] == ':') {
                key = at + 1;
                key_size = end - key;
            }
            at = end;
            continue;
        }
        if (!in_number(text[at])) continue;
        size_t begin = at;
        bool whole = true;
        for (; at < size && in_number(text[at]); at++)
            whole = whole && text[at] != '.' && text[at] != 'e' && text[at] != 'E';
        if (whole && !exact_digits(text, size, begin + (text[begin] == '-')))
            return prn_fail(error, PRONY_OUT_OF_RANGE, "%s: \"%.*s\": %.*s is above 2^53, the largest exact integer",
                            file, (int)(key_size < 100 ? key_size : 100), text + key,
                            (int)(at - begin < 40 ? at - begin : 40), text + begin);
        at--;
    }
    return PRONY_OK;
}

/* Skips a byte order mark, checks integers, and requires one object with nothing after it. */
prony_status prn_json_document_parse(prn_json_value **out, const char *file, const char *text, size_t size,
                                     prony_error *error)
{
    static const char mark[] = "\xef\xbb\xbf";
    if (size >= 3 && memcmp(text, mark, 3) == 0) {
        text += 3;
        size -= 3;
    }
    if (size == 0) return prn_fail(error, PRONY_IO_ERROR, "%s: the file is empty", file);
    PRN_TRY(check_integers(file, text, size, error));
    const char *end = text;
    cJSON *root = cJSON_ParseWithLengthOpts(text, size, &end, false);
    size_t at = end >= text && end <= text + size ? (size_t)(end - text) : size;
    while (root && at < size && strchr(" \t\r\n", text[at]) && text[at]) at++;
    if (!root || at < size) {
        size_t line = 1;
        for (size_t i = 0; i < at && i < size; i++) line += text[i] == '\n';
        cJSON_Delete(root);
        return prn_fail(error, PRONY_IO_ERROR, "%s: line %zu: %s", file, line,
                        at + 1 >= size ? "the JSON ends too early" : "this is not JSON");
    }
    if (!cJSON_IsObject(root)) {
        cJSON_Delete(root);
        return prn_fail(error, PRONY_IO_ERROR, "%s: not a JSON object", file);
    }
    *out = root;
    return PRONY_OK;
}

void prn_json_document_release(prn_json_value *document)
{
    cJSON_Delete(document);
}

char *prn_json_text_of(const prn_json_value *value)
{
    return cJSON_PrintUnformatted(value);
}

void prn_json_text_release(char *text)
{
    cJSON_free(text);
}

/* ---- messages ---- */

void prn_json_bad(prn_json_reader *reader, const char *key, const char *format, ...)
{
    char text[400];
    va_list args;
    if (reader->status != PRONY_OK) return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    reader->status = prn_fail(reader->error, PRONY_IO_ERROR, "%s: %s%s%s: %s", reader->file, reader->where,
                              *reader->where && *key ? "." : "", key, text);
}

static const char *type_name(const cJSON *value)
{
    if (cJSON_IsNull(value)) return "null";
    if (cJSON_IsBool(value)) return "a boolean";
    if (cJSON_IsNumber(value)) return "a number";
    if (cJSON_IsString(value)) return "a string";
    return cJSON_IsArray(value) ? "an array" : "an object";
}

static void bad_type(prn_json_reader *reader, const char *key, const cJSON *value, const char *wanted)
{
    if (cJSON_IsNumber(value))
        prn_json_bad(reader, key, "wanted %s, found %.17g", wanted, value->valuedouble);
    else if (cJSON_IsString(value))
        prn_json_bad(reader, key, "wanted %s, found \"%.100s\"", wanted, value->valuestring);
    else
        prn_json_bad(reader, key, "wanted %s, found %s", wanted, type_name(value));
}

/* ---- members ---- */

static const cJSON *member(prn_json_reader *reader, const cJSON *object, const char *key, bool required)
{
    if (reader->status != PRONY_OK || !object) return NULL;
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(object, key);
    if (found && !cJSON_IsNull(found)) return found;
    if (required) prn_json_bad(reader, key, found ? "null is not allowed" : "is missing");
    return NULL;
}

bool prn_json_has(const prn_json_value *object, const char *key)
{
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(object, key);
    return found && !cJSON_IsNull(found);
}

bool prn_json_is_bool(const prn_json_value *value)
{
    return cJSON_IsBool(value);
}

bool prn_json_is_true(const prn_json_value *value)
{
    return cJSON_IsTrue(value);
}

bool prn_json_is_null(const prn_json_value *value)
{
    return cJSON_IsNull(value);
}

static bool whole(prn_json_reader *reader, const cJSON *value, const char *key, double low, double high, double *out)
{
    double v = cJSON_IsNumber(value) ? value->valuedouble : NAN;
    if (!(v >= low && v <= high) || v != floor(v)) {
        bad_type(reader, key, value, low < 0 ? "an integer" : "an integer of 0 or more");
        return false;
    }
    *out = v;
    return true;
}

bool prn_json_get_u64(prn_json_reader *reader, const prn_json_value *object, const char *key, bool required,
                      uint64_t *out)
{
    double v;
    const cJSON *value = member(reader, object, key, required);
    if (!value || !whole(reader, value, key, 0, (double)PRN_JSON_EXACT, &v)) return false;
    *out = (uint64_t)v;
    return true;
}

bool prn_json_get_u32(prn_json_reader *reader, const prn_json_value *object, const char *key, bool required,
                      uint32_t *out)
{
    double v;
    const cJSON *value = member(reader, object, key, required);
    if (!value || !whole(reader, value, key, 0, UINT32_MAX - 1, &v)) return false;
    *out = (uint32_t)v;
    return true;
}

bool prn_json_get_i64(prn_json_reader *reader, const prn_json_value *object, const char *key, bool required,
                      int64_t *out)
{
    double v;
    const cJSON *value = member(reader, object, key, required);
    if (!value || !whole(reader, value, key, -(double)PRN_JSON_EXACT, (double)PRN_JSON_EXACT, &v)) return false;
    *out = (int64_t)v;
    return true;
}

bool prn_json_get_int(prn_json_reader *reader, const prn_json_value *object, const char *key, bool required, int *out)
{
    double v;
    const cJSON *value = member(reader, object, key, required);
    if (!value || !whole(reader, value, key, INT32_MIN, INT32_MAX, &v)) return false;
    *out = (int)v;
    return true;
}

bool prn_json_get_double(prn_json_reader *reader, const prn_json_value *object, const char *key, bool required,
                         double *out)
{
    const cJSON *value = member(reader, object, key, required);
    return value && prn_json_element_double(reader, value, key, out);
}

bool prn_json_get_share(prn_json_reader *reader, const prn_json_value *object, const char *key, bool required,
                        double *out)
{
    double share;
    if (!prn_json_get_double(reader, object, key, required, &share)) return false;
    if (!(share >= 0 && share <= 1.001)) {
        prn_json_bad(reader, key, "%.17g is not a share from 0 to 1", share);
        return false;
    }
    *out = share;
    return true;
}

bool prn_json_get_bool(prn_json_reader *reader, const prn_json_value *object, const char *key, bool required, bool *out)
{
    const cJSON *value = member(reader, object, key, required);
    if (!value) return false;
    if (!cJSON_IsBool(value)) {
        bad_type(reader, key, value, "true or false");
        return false;
    }
    *out = cJSON_IsTrue(value);
    return true;
}

bool prn_json_element_string(prn_json_reader *reader, const prn_json_value *element, const char *key, const char **out)
{
    if (reader->status != PRONY_OK) return false;
    if (!cJSON_IsString(element)) {
        bad_type(reader, key, element, "a string");
        return false;
    }
    const char *copy = prn_bump_strndup(reader->pool, element->valuestring, strlen(element->valuestring));
    if (!copy) {
        reader->status = prn_no_memory(reader->error);
        return false;
    }
    *out = copy;
    return true;
}

bool prn_json_get_string(prn_json_reader *reader, const prn_json_value *object, const char *key, bool required,
                         const char **out)
{
    const cJSON *value = member(reader, object, key, required);
    return value && prn_json_element_string(reader, value, key, out);
}

const prn_json_value *prn_json_get_object(prn_json_reader *reader, const prn_json_value *object, const char *key,
                                          bool required)
{
    const cJSON *value = member(reader, object, key, required);
    if (!value || cJSON_IsObject(value)) return value;
    bad_type(reader, key, value, "an object");
    return NULL;
}

const prn_json_value *prn_json_get_array(prn_json_reader *reader, const prn_json_value *object, const char *key,
                                         bool required, size_t *count)
{
    const cJSON *value = member(reader, object, key, required);
    *count = 0;
    if (!value) return NULL;
    if (!cJSON_IsArray(value)) {
        bad_type(reader, key, value, "an array");
        return NULL;
    }
    *count = (size_t)cJSON_GetArraySize(value);
    return value;
}

/* ---- elements ---- */

const prn_json_value *prn_json_first(const prn_json_value *container)
{
    return container ? container->child : NULL;
}

const prn_json_value *prn_json_next(const prn_json_value *element)
{
    return element->next;
}

const char *prn_json_key(const prn_json_value *element)
{
    return element->string ? element->string : "";
}

bool prn_json_element_i64(prn_json_reader *reader, const prn_json_value *element, const char *key, int64_t *out)
{
    double v;
    if (reader->status != PRONY_OK || !whole(reader, element, key, -(double)PRN_JSON_EXACT, (double)PRN_JSON_EXACT, &v))
        return false;
    *out = (int64_t)v;
    return true;
}

bool prn_json_element_double(prn_json_reader *reader, const prn_json_value *element, const char *key, double *out)
{
    if (reader->status != PRONY_OK) return false;
    if (!cJSON_IsNumber(element) || !isfinite(element->valuedouble)) {
        bad_type(reader, key, element, "a finite number");
        return false;
    }
    *out = element->valuedouble;
    return true;
}

bool prn_json_element_index(prn_json_reader *reader, const prn_json_value *element, const char *key, uint32_t *out)
{
    double v = PRONY_NO_INDEX;
    if (reader->status != PRONY_OK || (!cJSON_IsNull(element) && !whole(reader, element, key, 0, UINT32_MAX - 1, &v)))
        return false;
    *out = (uint32_t)v;
    return true;
}

bool prn_json_element_is_object(prn_json_reader *reader, const prn_json_value *element, const char *key)
{
    if (reader->status != PRONY_OK) return false;
    if (cJSON_IsObject(element)) return true;
    bad_type(reader, key, element, "an object");
    return false;
}

void *prn_json_room(prn_json_reader *reader, size_t count, size_t size)
{
    if (reader->status != PRONY_OK) return NULL;
    void *room = prn_bump_alloc(reader->pool, count + 1, size);
    if (!room) reader->status = prn_no_memory(reader->error);
    return room;
}
