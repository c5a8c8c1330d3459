/* The schemas in docs/schemas of documents that are written from tables equal those tables. `test_schemas --write`
 * writes them. */
#include "failure_trace.h"
#include "tests/support/text_sink.h"

#include "profiler/measure/machine_peaks.h"
#include "profiler/report/report_keys.h"
#include "profiler/study/study_keys.h"

#include <stdio.h>
#include <string.h>

static void write_type(prn_json *j, const char *type, bool null)
{
    if (!null) {
        prn_json_string(j, "type", type);
        return;
    }
    prn_json_open(j, "type", '[', true);
    prn_json_string(j, NULL, type);
    prn_json_string(j, NULL, "null");
    prn_json_close(j, ']');
}

static void write_words(prn_json *j, const char *words)
{
    char word[64];
    if (!words) return;
    prn_json_open(j, "enum", '[', true);
    for (const char *p = words; *p; p += *p == '|') {
        size_t length = strcspn(p, "|");
        snprintf(word, sizeof word, "%.*s", (int)length, p);
        prn_json_string(j, NULL, word);
        p += length;
    }
    prn_json_close(j, ']');
}

/* Always there, if only as null. */
static bool is_required(const prn_key *k)
{
    return !k->when && !k->if_root && !k->if_row && (k->how & PRN_OLD) != PRN_OLD &&
           ((k->how & PRN_CONDITION) == PRN_ALWAYS || k->how & PRN_OR_NULL);
}

static void write_required(prn_json *j, const prn_key *keys)
{
    for (const prn_key *k = keys; k->name; k++) {
        if (k->type == PRN_KEY_SPLICE)
            write_required(j, k->keys);
        else if (is_required(k))
            prn_json_string(j, NULL, k->name);
    }
}

static void write_properties(prn_json *j, const prn_key *keys);

static void write_object(prn_json *j, const prn_key *keys, bool null)
{
    write_type(j, "object", null);
    prn_json_open(j, "required", '[', true);
    write_required(j, keys);
    prn_json_close(j, ']');
    prn_json_open(j, "properties", '{', false);
    write_properties(j, keys);
    prn_json_close(j, '}');
}

static void write_number(prn_json *j, const prn_key *k, bool null)
{
    bool whole = k->type != PRN_KEY_DOUBLE && k->type != PRN_KEY_DOUBLES && k->type != PRN_KEY_TWO_DOUBLES;
    bool counts =
        k->type == PRN_KEY_U64 || k->type == PRN_KEY_U32 || k->type == PRN_KEY_U32S || k->type == PRN_KEY_U64S;
    unsigned when = k->how & PRN_CONDITION;
    write_type(j, whole ? "integer" : "number", null);
    if (k->how & PRN_LEAST_1 || (whole && when == PRN_IF_SET && k->type != PRN_KEY_I64S && !(k->how & PRN_LEAST_0)))
        prn_json_int(j, "minimum", 1);
    else if (counts || when == PRN_IF_FROM_0 || k->how & (PRN_LEAST_0 | PRN_SHARE))
        prn_json_int(j, "minimum", 0);
    if (counts) prn_json_uint(j, "maximum", PRN_JSON_EXACT);
}

static void write_items(prn_json *j, const prn_key *k)
{
    bool null = k->how & PRN_NULLS;
    prn_json_string(j, "type", "array");
    if (k->type == PRN_KEY_TWO_I64 || k->type == PRN_KEY_TWO_DOUBLES) {
        prn_json_int(j, "minItems", 2);
        prn_json_int(j, "maxItems", 2);
    }
    prn_json_open(j, "items", '{', k->type != PRN_KEY_ROWS);
    if (k->type == PRN_KEY_ROWS)
        write_object(j, k->keys, false);
    else if (k->type == PRN_KEY_VALUES)
        prn_json_string(j, "$ref", "#/$defs/value");
    else if (k->type == PRN_KEY_STRINGS && k->words)
        write_words(j, k->words);
    else if (k->type == PRN_KEY_STRINGS)
        write_type(j, "string", null);
    else if (k->type == PRN_KEY_I64_SETS) {
        write_type(j, "array", false);
        prn_json_open(j, "items", '{', true);
        write_type(j, "integer", false);
        prn_json_close(j, '}');
        prn_json_int(j, "minItems", 6);
        prn_json_int(j, "maxItems", 6);
    } else
        write_number(j, k, null);
    prn_json_close(j, '}');
}

static void write_map(prn_json *j, const char *type)
{
    write_type(j, "object", false);
    prn_json_open(j, "additionalProperties", '{', true);
    write_type(j, type, false);
    prn_json_close(j, '}');
}

static void write_key(prn_json *j, const prn_key *k)
{
    bool null = k->how & PRN_OR_NULL;
    switch (k->type) {
    case PRN_KEY_STRING:
    case PRN_KEY_CHARS:
    case PRN_KEY_DTYPE:
    case PRN_KEY_KIND:
        write_type(j, "string", null);
        write_words(j, k->words);
        if (k->how & PRN_HASH) prn_json_string(j, "pattern", "^[0-9a-f]{64}$");
        break;
    case PRN_KEY_BOOL:
        write_type(j, "boolean", null);
        break;
    case PRN_KEY_OBJECT:
        write_object(j, k->keys, null);
        break;
    case PRN_KEY_SHAPE:
        prn_json_string(j, "$ref", "#/$defs/shape");
        break;
    case PRN_KEY_FACTS:
    case PRN_KEY_NUMBERS:
        write_map(j, "integer");
        break;
    case PRN_KEY_NAMES:
        write_map(j, "string");
        break;
    case PRN_KEY_NULL:
        prn_json_string(j, "type", "null");
        break;
    case PRN_KEY_INT:
    case PRN_KEY_I64:
    case PRN_KEY_U32:
    case PRN_KEY_U64:
    case PRN_KEY_DOUBLE:
        write_number(j, k, null);
        break;
    default:
        write_items(j, k);
    }
}

static void write_properties(prn_json *j, const prn_key *keys)
{
    for (const prn_key *k = keys; k->name; k++) {
        if (k->type == PRN_KEY_SPLICE) {
            write_properties(j, k->keys);
            continue;
        }
        prn_json_open(j, k->name, '{', !k->keys);
        if (k->about) prn_json_string(j, "description", k->about);
        write_key(j, k);
        prn_json_close(j, '}');
    }
}

static void write_shared(prn_json *j)
{
    static const prn_key dims = {"items", PRN_MADE(I64), PRN_LEAST_0 | PRN_OR_NULL, NULL};
    static const prn_key value[] = {
        {"shape", PRN_MADE(SHAPE), PRN_IF_SET, NULL},
        {"kind", PRN_MADE(KIND), PRN_IF_SET, "sequence or optional; absent for a tensor.", "sequence|optional"},
        {"type", PRN_MADE(DTYPE), PRN_IF_SET, "Element type as NumPy spells it."},
        {0}};
    prn_json_open(j, "$defs", '{', false);
    prn_json_open(j, "shape", '{', true);
    prn_json_string(j, "description", "Extents; null where unknown. Absent: the rank is unknown.");
    prn_json_string(j, "type", "array");
    prn_json_open(j, "items", '{', true);
    write_key(j, &dims);
    prn_json_close(j, '}');
    prn_json_close(j, '}');
    prn_json_open(j, "value", '{', false);
    prn_json_string(j, "description", "null: an omitted optional input.");
    write_object(j, value, true);
    prn_json_close(j, '}');
    prn_json_close(j, '}');
}

static const struct schema {
    const char *file, *id, *title, *about;
    const prn_key *keys;
} schemas[] = {
    {"report", PRN_REPORT_SCHEMA, "Prony report",
     "docs/reference/report.md explains the keys. An absent key is unknown or was not measured; null says that "
     "the value does not apply. Keys may be added.",
     prn_report_keys},
    {"study", PRN_STUDY_SCHEMA, "Prony study",
     "prony scale --json: a thread-scaling study: all measurements and their results.", prn_study_keys},
    {"machine", PRN_MACHINE_SCHEMA, "Prony machine",
     "prony machine --json, and the stored file: the peaks of this machine.", prn_machine_keys}};

static char *schema_text(const struct schema *schema)
{
    sink s = {0};
    prony_error error = {0};
    static prn_json j;
    prn_json_begin(&j, sink_write, &s, &error);
    prn_json_open(&j, NULL, '{', false);
    prn_json_string(&j, "$schema", "https://json-schema.org/draft/2020-12/schema");
    prn_json_string(&j, "$id", schema->id);
    prn_json_string(&j, "title", schema->title);
    prn_json_string(&j, "description", schema->about);
    const prn_key version[] = {
        {"schema", PRN_MADE(STRING), PRN_ALWAYS, NULL, schema->id}, {PRN_MORE_HERE(schema->keys)}, {0}};
    write_object(&j, version, false);
    write_shared(&j);
    prn_json_close(&j, '}');
    if (prn_json_end(&j) != PRONY_OK) fail_msg("%s", error.message);
    return s.text;
}

static FILE *open_schema(const struct schema *schema, const char *mode)
{
    char path[512];
    snprintf(path, sizeof path, "%s/docs/schemas/%s.schema.json", PRN_SOURCE_DIR, schema->file);
    FILE *file = fopen(path, mode);
    if (!file) fail_msg("%s: cannot be opened", path);
    return file;
}

static void test_schemas_are_current(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof schemas / sizeof schemas[0]; i++) {
        SCENARIO_NAMED(i, schemas[i].file);
        static char stored[262144];
        char *text = schema_text(&schemas[i]);
        FILE *file = open_schema(&schemas[i], "rb");
        size_t size = fread(stored, 1, sizeof stored - 1, file), at = 0;
        fclose(file);
        stored[size] = '\0';
        while (text[at] && text[at] == stored[at]) at++;
        if (text[at] || stored[at])
            fail_msg("%s.schema.json differs from the tables of keys at byte %zu: \"%.60s\"; test_schemas --write "
                     "makes it anew",
                     schemas[i].file, at, stored + at);
        prn_free(text);
    }
}

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && strcmp(argv[1], "--write") == 0 && i < sizeof schemas / sizeof schemas[0]; i++) {
        char *text = schema_text(&schemas[i]);
        FILE *file = open_schema(&schemas[i], "wb");
        fputs(text, file);
        fclose(file);
        prn_free(text);
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_schemas_are_current)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
