/* Tables of keys, read back: each member into its field, whose type and bounds are checked. The document is not
 * trusted; callers check the meaning of its numbers. */
#include "profiler/json/keys.h"

#include "base/shape.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- where messages point ---- */

prn_where prn_json_enter(prn_json_reader *j, const char *key, size_t index)
{
    prn_where where = {strlen(j->where)};
    char *end = j->where + where.length;
    size_t room = sizeof j->where - where.length;
    const char *dot = where.length ? "." : "";
    if (index == PRN_NO_ELEMENT)
        snprintf(end, room, "%s%s", dot, key);
    else
        snprintf(end, room, "%s%s[%zu]", dot, key, index);
    return where;
}

void prn_json_leave(prn_json_reader *j, prn_where where)
{
    j->where[where.length] = '\0';
}

void prn_json_check_schema(prn_json_reader *j, const prn_json_value *root, const char *wanted, const char *what)
{
    const char *schema = NULL;
    if (!prn_json_get_string(j, root, "schema", true, &schema)) return;
    if (strcmp(schema, wanted) == 0) return;
    if (strncmp(schema, wanted, strcspn(wanted, "/") + 1) == 0)
        prn_json_bad(j, "schema", "\"%.60s\" is another version; this build reads %s", schema, wanted);
    else
        prn_json_bad(j, "schema", "\"%.60s\" is not the schema of a %s; wanted %s", schema, what, wanted);
}

/* ---- values ---- */

static void read_shape(prn_json_reader *j, const prn_json_value *object, const char *key, prony_shape *out)
{
    size_t count, d = 0;
    const prn_json_value *dims = prn_json_get_array(j, object, key, false, &count);
    *out = (prony_shape){.rank = -1};
    if (!dims) return;
    if (count > PRONY_MAX_RANK) {
        prn_json_bad(j, key, "%zu dimensions exceed the limit of %d", count, PRONY_MAX_RANK);
        return;
    }
    out->rank = (int32_t)count;
    for (const prn_json_value *dim = prn_json_first(dims); dim; dim = prn_json_next(dim), d++) {
        out->dim[d] = -1;
        if (prn_json_is_null(dim)) continue;
        if (prn_json_element_i64(j, dim, key, &out->dim[d]) && out->dim[d] < 0)
            prn_json_bad(j, key, "a dimension is negative");
    }
}

static void read_kind(prn_json_reader *j, const prn_json_value *object, const char *key, prony_kind *out)
{
    const char *name = NULL;
    *out = PRONY_TENSOR;
    if (!prn_json_get_string(j, object, key, false, &name)) return;
    if (strcmp(name, "sequence") == 0)
        *out = PRONY_SEQUENCE;
    else if (strcmp(name, "optional") == 0)
        *out = PRONY_OPTIONAL;
    else
        prn_json_bad(j, key, "unknown value \"%.60s\"", name);
}

static void read_dtype(prn_json_reader *j, const prn_json_value *object, const char *key, prony_dtype *out)
{
    const char *name = NULL;
    *out = PRONY_UNDEFINED;
    if (!prn_json_get_string(j, object, key, false, &name)) return;
    for (int d = 1; d < PRONY_DTYPE_COUNT && *out == PRONY_UNDEFINED; d++)
        if (strcmp(prony_dtype_name((prony_dtype)d), name) == 0) *out = (prony_dtype)d;
    if (*out == PRONY_UNDEFINED) prn_json_bad(j, key, "unknown element type \"%.60s\"", name);
}

static void read_value(prn_json_reader *j, const prn_json_value *element, const char *key, const prony_value **out)
{
    if (prn_json_is_null(element) || !prn_json_element_is_object(j, element, key)) return;
    prony_value *value = prn_json_room(j, 1, sizeof *value);
    if (!value) return;
    read_kind(j, element, "kind", &value->kind);
    read_dtype(j, element, "type", &value->dtype);
    read_shape(j, element, "shape", &value->shape);
    *out = value;
}

/* {"key": 1, ...} into structs of a name and a number, at most `most`; returns how many. */
static size_t read_numbers(prn_json_reader *j, const prn_json_value *map, const prn_key *k, char *row, size_t most)
{
    size_t count = 0;
    for (const prn_json_value *e = prn_json_first(map); e && j->status == PRONY_OK; e = prn_json_next(e), count++) {
        const char *name = prn_json_key(e);
        int64_t value = 0;
        if (count == most) prn_json_bad(j, k->name, "more than %zu elements", most);
        if (!prn_json_element_i64(j, e, name, &value)) break;
        name = prn_bump_strndup(j->pool, name, strlen(name));
        if (!name) j->status = prn_no_memory(j->error);
        memcpy(row, &name, sizeof name);
        memcpy(row + sizeof name, &value, sizeof value);
        row += sizeof name + sizeof value;
    }
    return j->status == PRONY_OK ? count : 0;
}

static void read_map(prn_json_reader *j, const prn_json_value *object, const prn_key *k, const prn_at *at)
{
    size_t count = 0;
    const prn_json_value *map = prn_json_get_object(j, object, k->name, false);
    for (const prn_json_value *e = prn_json_first(map); e; e = prn_json_next(e)) count++;
    void *rows = map ? prn_json_room(j, count, k->size) : NULL;
    if (!rows) return;
    count = read_numbers(j, map, k, rows, count);
    memcpy(prn_key_field(k, at), &rows, sizeof rows);
    memcpy((char *)at->row + k->other, &count, sizeof count);
}

/* ---- lists ---- */

static void keys_read_row(prn_json_reader *j, const prn_json_value *element, const prn_key *k, const prn_at *at,
                          void *row, size_t index)
{
    prn_at inner = *at;
    inner.row = row;
    prn_where where = prn_json_enter(j, k->name, index);
    if (prn_json_element_is_object(j, element, "")) prn_keys_read(j, element, k->keys, &inner);
    prn_json_leave(j, where);
}

/* Reads one element of a list into its place in the array, and checks its bounds. */
static void keys_read_element(prn_json_reader *j, const prn_json_value *e, const prn_key *k, const prn_at *at,
                              void *out, size_t index)
{
    int64_t whole = 0;
    switch (k->type) {
    case PRN_KEY_STRINGS:
        prn_json_element_string(j, e, k->name, out);
        break;
    case PRN_KEY_I64S:
    case PRN_KEY_TWO_I64:
        prn_json_element_i64(j, e, k->name, out);
        if ((k->how & PRN_LEAST_0) && j->status == PRONY_OK && *(int64_t *)out < 0)
            prn_json_bad(j, k->name, "%lld is negative", (long long)*(int64_t *)out);
        break;
    case PRN_KEY_U64S:
        if (prn_json_element_i64(j, e, k->name, &whole) && whole < 0)
            prn_json_bad(j, k->name, "%lld is negative", (long long)whole);
        memcpy(out, &whole, sizeof whole);
        break;
    case PRN_KEY_U32S:
        if (prn_json_element_index(j, e, k->name, out) && !(k->how & PRN_NULLS) && *(uint32_t *)out == PRONY_NO_INDEX)
            prn_json_bad(j, k->name, "element %zu refers to a missing row", index);
        break;
    case PRN_KEY_DOUBLES:
    case PRN_KEY_TWO_DOUBLES:
        prn_json_element_double(j, e, k->name, out);
        break;
    case PRN_KEY_VALUES:
        read_value(j, e, k->name, out);
        break;
    default:
        keys_read_row(j, e, k, at, out, index);
    }
}

static void keys_read_list(prn_json_reader *j, const prn_json_value *object, const prn_key *k, const prn_at *at,
                           bool required)
{
    size_t count, i = 0;
    bool pair = k->type == PRN_KEY_TWO_I64 || k->type == PRN_KEY_TWO_DOUBLES;
    const prn_json_value *array = prn_json_get_array(j, object, k->name, required, &count);
    if (!array) return;
    size_t wanted = pair ? 2 : k->how & PRN_COUNTED ? prn_key_count(k, at) : count;
    if (count != wanted) {
        prn_json_bad(j, k->name, "wanted %zu elements, found %zu", wanted, count);
        return;
    }
    size_t size = pair ? k->size / 2 : k->size;
    char *room = pair ? prn_key_field(k, at) : prn_json_room(j, count, size);
    if (!room) return;
    if (!pair) memcpy(prn_key_field(k, at), &room, sizeof room);
    for (const prn_json_value *e = prn_json_first(array); e && j->status == PRONY_OK; e = prn_json_next(e), i++)
        keys_read_element(j, e, k, at, room + i * size, i);
    if (!pair && k->other != PRN_NO_COUNT && !(k->how & PRN_COUNTED)) memcpy((char *)at->row + k->other, &i, sizeof i);
}

/* ---- members ---- */

static void make_unknown(const prn_json_value *object, const prn_key *k, void *field)
{
    if (k->type == PRN_KEY_STRING && (k->how & PRN_EMPTY) && object) *(const char **)field = "";
    if (k->type == PRN_KEY_BOOL && (k->how & PRN_TRUE)) *(bool *)field = true;
    switch (k->how & PRN_CONDITION) {
    case PRN_IF_INDEX:
        memset(field, 0xff, k->size);
        break;
    case PRN_IF_NUMBER:
        *(double *)field = NAN;
        break;
    case PRN_IF_FROM_0:
        if (k->type == PRN_KEY_INT) *(int *)field = -1;
        if (k->type == PRN_KEY_I64) *(int64_t *)field = -1;
        if (k->type == PRN_KEY_DOUBLE) *(double *)field = -1;
        break;
    }
}

static bool keys_read_scalar(prn_json_reader *j, const prn_json_value *object, const prn_key *k, void *field,
                             bool required)
{
    const char *text = NULL;
    switch (k->type) {
    case PRN_KEY_STRING:
        return prn_json_get_string(j, object, k->name, required, field);
    case PRN_KEY_CHARS:
        if (!prn_json_get_string(j, object, k->name, required, &text)) return false;
        snprintf(field, k->size, "%s", text);
        return true;
    case PRN_KEY_BOOL:
        return prn_json_get_bool(j, object, k->name, required, field);
    case PRN_KEY_INT:
        return prn_json_get_int(j, object, k->name, required, field);
    case PRN_KEY_I64:
        return prn_json_get_i64(j, object, k->name, required, field);
    case PRN_KEY_U32:
        return prn_json_get_u32(j, object, k->name, required, field);
    case PRN_KEY_U64:
        return prn_json_get_u64(j, object, k->name, required, field);
    default:
        if (k->how & PRN_SHARE) return prn_json_get_share(j, object, k->name, required, field);
        return prn_json_get_double(j, object, k->name, required, field);
    }
}

static bool read_object(prn_json_reader *j, const prn_json_value *object, const prn_key *k, const prn_at *at,
                        bool required)
{
    const prn_json_value *inner = prn_json_get_object(j, object, k->name, required);
    prn_at in = *at;
    in.row = prn_key_field(k, at);
    prn_where where = prn_json_enter(j, k->name, PRN_NO_ELEMENT);
    prn_keys_read(j, inner, k->keys, &in);
    prn_json_leave(j, where);
    return inner != NULL;
}

static bool is_required(const prn_key *k, const prn_at *at)
{
    unsigned condition = k->how & PRN_CONDITION;
    if (k->how & PRN_LENIENT) return false;
    if (condition == PRN_IF_TOO) return prn_key_known(k, at);
    return condition == PRN_ALWAYS && !k->when && !k->if_root && !k->if_row && !(k->how & PRN_OR_NULL);
}

/* Reads one member by the row's function or type, and sets its flag. Derived keys are not read. */
void prn_key_read(prn_json_reader *j, const prn_json_value *object, const prn_key *k, const prn_at *at)
{
    void *field = prn_key_field(k, at);
    bool required = is_required(k, at), found = false;
    if (k->read) {
        k->read(j, object, k, at);
        return;
    }
    if (!k->size || (k->how & PRN_DERIVED)) return;
    const prn_json_value *map;
    prn_at inner = *at;
    inner.row = field;
    switch (k->type) {
    case PRN_KEY_OBJECT:
        found = read_object(j, object, k, at, required);
        break;
    case PRN_KEY_SPLICE:
        prn_keys_read(j, object, k->keys, &inner);
        break;
    case PRN_KEY_SHAPE:
        read_shape(j, object, k->name, field);
        break;
    case PRN_KEY_DTYPE:
        read_dtype(j, object, k->name, field);
        break;
    case PRN_KEY_KIND:
        read_kind(j, object, k->name, field);
        break;
    case PRN_KEY_FACTS:
        map = prn_json_get_object(j, object, k->name, false);
        ((prony_cost *)field)->fact_count =
            (uint32_t)read_numbers(j, map, k, (char *)((prony_cost *)field)->facts, PRONY_MAX_FACTS);
        break;
    case PRN_KEY_NUMBERS:
        read_map(j, object, k, at);
        break;
    case PRN_KEY_NAMES:
    case PRN_KEY_NULL:
        break;
    default:
        if (k->type >= PRN_KEY_STRINGS) {
            keys_read_list(j, object, k, at, required);
            break;
        }
        make_unknown(object, k, field);
        found = keys_read_scalar(j, object, k, field, required);
    }
    if ((k->how & PRN_CONDITION) == PRN_IF_FLAG) *((bool *)at->row + k->other) = found;
}

void prn_keys_read(prn_json_reader *j, const prn_json_value *object, const prn_key *keys, const prn_at *at)
{
    for (const prn_key *k = keys; k->name && j->status == PRONY_OK; k++) prn_key_read(j, object, k, at);
}
