/* Writes values by tables of keys. Never changes the values. */
#include "profiler/json/keys.h"

#include <math.h>
#include <string.h>

int64_t prn_key_whole(const prn_key *k, const prn_at *at)
{
    const void *field = prn_key_field(k, at);
    switch (k->type) {
    case PRN_KEY_BOOL:
        return *(const bool *)field;
    case PRN_KEY_INT:
        return *(const int *)field;
    case PRN_KEY_I64:
        return *(const int64_t *)field;
    case PRN_KEY_U32:
        return *(const uint32_t *)field;
    default:
        return *(const uint64_t *)field < INT64_MAX ? (int64_t)*(const uint64_t *)field : INT64_MAX;
    }
}

size_t prn_key_count(const prn_key *k, const prn_at *at)
{
    size_t count = 0;
    if (k->other != PRN_NO_COUNT) {
        memcpy(&count, (const char *)(k->how & PRN_ROOT ? at->root : at->row) + k->other, sizeof count);
        return count;
    }
    const char *const *names = *(const char *const *const *)prn_key_field(k, at);
    while (names && names[count]) count++;
    return count;
}

static bool is_set(const prn_key *k, const prn_at *at)
{
    const void *field = prn_key_field(k, at);
    if (k->type == PRN_KEY_STRING) return *(const char *const *)field && **(const char *const *)field;
    if (k->type == PRN_KEY_CHARS) return *(const char *)field;
    if (k->type == PRN_KEY_DOUBLE) return *(const double *)field > 0;
    if (k->type < PRN_KEY_DOUBLE) return prn_key_whole(k, at) > 0;
    return k->type > PRN_KEY_NUMBERS || prn_key_count(k, at) > 0;
}

bool prn_key_known(const prn_key *k, const prn_at *at)
{
    const void *field = prn_key_field(k, at), *list;
    switch (k->how & PRN_CONDITION) {
    case PRN_IF_SET:
        return is_set(k, at);
    case PRN_IF_FROM_0:
        return k->type == PRN_KEY_DOUBLE ? *(const double *)field >= 0 : prn_key_whole(k, at) >= 0;
    case PRN_IF_INDEX:
        return k->type == PRN_KEY_U32 ? *(const uint32_t *)field != UINT32_MAX : *(const uint64_t *)field != UINT64_MAX;
    case PRN_IF_NUMBER:
        return !isnan(*(const double *)field);
    case PRN_IF_FLAG:
    case PRN_IF_TOO:
        return *((const bool *)at->row + k->other);
    case PRN_IF_LIST:
        memcpy(&list, field, sizeof list);
        return list != NULL;
    default:
        return true;
    }
}

const prn_key *prn_keys_find(const prn_key *keys, const char *name, prn_at *at)
{
    for (const prn_key *k = keys; k->name; k++) {
        prn_at inner = *at;
        inner.row = prn_key_field(k, at);
        const prn_key *found = k->type == PRN_KEY_SPLICE ? prn_keys_find(k->keys, name, &inner) : NULL;
        if (found) {
            *at = inner;
            return found;
        }
        if (strcmp(k->name, name) == 0) return k;
    }
    return NULL;
}

/* ---- values ---- */

static void write_shape(prn_json *j, const char *key, const prony_shape *shape)
{
    if (shape->rank < 0 || shape->rank > PRONY_MAX_RANK) return;
    prn_json_open(j, key, '[', true);
    for (int d = 0; d < shape->rank; d++) {
        if (shape->dim[d] >= 0)
            prn_json_int(j, NULL, shape->dim[d]);
        else
            prn_json_null(j, NULL);
    }
    prn_json_close(j, ']');
}

/* A tensor's kind is not named. */
static void write_kind(prn_json *j, const char *key, prony_kind kind)
{
    static const char *const kinds[] = {"tensor", "sequence", "optional"};
    if (kind != PRONY_TENSOR && (size_t)kind < sizeof kinds / sizeof kinds[0]) prn_json_string(j, key, kinds[kind]);
}

static void write_value(prn_json *j, const prony_value *value)
{
    if (!value) {
        prn_json_null(j, NULL);
        return;
    }
    prn_json_open(j, NULL, '{', true);
    write_shape(j, "shape", &value->shape);
    write_kind(j, "kind", value->kind);
    if (value->dtype != PRONY_UNDEFINED) prn_json_string(j, "type", prony_dtype_name(value->dtype));
    prn_json_close(j, '}');
}

static void write_facts(prn_json *j, const prn_key *k, const prn_at *at)
{
    const prony_cost *cost = prn_key_field(k, at);
    prn_json_open(j, k->name, '{', true);
    for (size_t f = 0; f < cost->fact_count && f < PRONY_MAX_FACTS; f++)
        prn_json_int(j, cost->facts[f].key, cost->facts[f].value);
    prn_json_close(j, '}');
}

/* Writes element `i` of a list by its type. The list is copied by memcpy, because its pointer type varies. */
static void write_element(prn_json *j, const prn_key *k, const prn_at *at, size_t i)
{
    char *list;
    const char *name;
    int64_t number;
    uint32_t index;
    memcpy(&list, prn_key_field(k, at), sizeof list);
    switch (k->type) {
    case PRN_KEY_STRINGS:
        prn_json_string(j, NULL, ((const char *const *)(void *)list)[i]);
        break;
    case PRN_KEY_I64S:
        prn_json_int(j, NULL, ((const int64_t *)(void *)list)[i]);
        break;
    case PRN_KEY_U64S:
        prn_json_uint(j, NULL, ((const uint64_t *)(void *)list)[i]);
        break;
    case PRN_KEY_NUMBERS:
        memcpy(&name, list + i * k->size, sizeof name);
        memcpy(&number, list + i * k->size + sizeof name, sizeof number);
        prn_json_int(j, name, number);
        break;
    case PRN_KEY_U32S:
        index = ((const uint32_t *)(void *)list)[i];
        if (index != PRONY_NO_INDEX)
            prn_json_uint(j, NULL, index);
        else
            prn_json_null(j, NULL);
        break;
    case PRN_KEY_DOUBLES:
        prn_json_double(j, NULL, ((const double *)(void *)list)[i]);
        break;
    case PRN_KEY_VALUES:
        write_value(j, ((const prony_value *const *)(void *)list)[i]);
        break;
    default: {
        prn_at row = *at;
        row.row = list + i * k->size;
        prn_json_open(j, NULL, '{', k->how & PRN_ROW_DIRECT_ROWS);
        prn_keys_write(j, k->keys, &row);
        prn_json_close(j, '}');
    }
    }
}

static void write_list(prn_json *j, const prn_key *k, const prn_at *at)
{
    bool pair = k->type == PRN_KEY_TWO_I64 || k->type == PRN_KEY_TWO_DOUBLES;
    const void *field = prn_key_field(k, at);
    const void *list = field;
    if (!pair) memcpy(&list, field, sizeof list);
    size_t count = pair ? 2 : list ? prn_key_count(k, at) : 0;
    bool object = k->type == PRN_KEY_NUMBERS;
    prn_json_open(j, k->name, object ? '{' : '[', pair || object || k->how & PRN_ROW_DIRECT);
    for (size_t i = 0; i < count; i++) {
        if (k->type == PRN_KEY_TWO_I64)
            prn_json_int(j, NULL, ((const int64_t *)field)[i]);
        else if (k->type == PRN_KEY_TWO_DOUBLES)
            prn_json_double(j, NULL, ((const double *)field)[i]);
        else
            write_element(j, k, at, i);
    }
    prn_json_close(j, object ? '}' : ']');
}

/* Writes a known value by the key's type. */
static void write_field(prn_json *j, const prn_key *k, const prn_at *at)
{
    const void *field = prn_key_field(k, at);
    prn_at inner = *at;
    inner.row = prn_key_field(k, at);
    switch (k->type) {
    case PRN_KEY_STRING:
        prn_json_string(j, k->name, *(const char *const *)field ? *(const char *const *)field : "");
        break;
    case PRN_KEY_CHARS:
        prn_json_string(j, k->name, field);
        break;
    case PRN_KEY_BOOL:
        prn_json_bool(j, k->name, *(const bool *)field);
        break;
    case PRN_KEY_INT:
    case PRN_KEY_I64:
    case PRN_KEY_U32:
        prn_json_int(j, k->name, prn_key_whole(k, at));
        break;
    case PRN_KEY_U64:
        prn_json_uint(j, k->name, *(const uint64_t *)field);
        break;
    case PRN_KEY_DOUBLE:
        prn_json_double(j, k->name, *(const double *)field);
        break;
    case PRN_KEY_OBJECT:
        prn_json_open(j, k->name, '{', k->how & PRN_ROW_DIRECT);
        prn_keys_write(j, k->keys, &inner);
        prn_json_close(j, '}');
        break;
    case PRN_KEY_SPLICE:
        prn_keys_write(j, k->keys, &inner);
        break;
    case PRN_KEY_SHAPE:
        write_shape(j, k->name, field);
        break;
    case PRN_KEY_DTYPE:
        if (*(const prony_dtype *)field != PRONY_UNDEFINED)
            prn_json_string(j, k->name, prony_dtype_name(*(const prony_dtype *)field));
        break;
    case PRN_KEY_KIND:
        write_kind(j, k->name, *(const prony_kind *)field);
        break;
    case PRN_KEY_FACTS:
        write_facts(j, k, at);
        break;
    case PRN_KEY_NULL:
        prn_json_null(j, k->name);
        break;
    default:
        write_list(j, k, at);
    }
}

bool prn_key_applies(const prn_key *k, const prn_at *at)
{
    return (!k->if_root || *((const bool *)at->root + k->if_root - 1)) &&
           (!k->if_row || *((const bool *)at->row + k->if_row - 1)) && (!k->when || k->when(at));
}

void prn_key_write(prn_json *j, const prn_key *k, const prn_at *at)
{
    if (!prn_key_applies(k, at)) return;
    double figure = k->figure ? k->figure(at) : 0;
    const char *word = k->word ? k->word(at) : "";
    if (k->write)
        k->write(j, k, at);
    else if (isnan(figure) || (k->word && !(word && *word)) || (k->size && !prn_key_known(k, at))) {
        if (k->how & PRN_OR_NULL) prn_json_null(j, k->name);
    } else if (k->word)
        prn_json_string(j, k->name, word);
    else if (k->figure)
        prn_json_double(j, k->name, figure);
    else
        write_field(j, k, at);
}

void prn_keys_write(prn_json *j, const prn_key *keys, const prn_at *at)
{
    for (const prn_key *k = keys; k->name; k++) prn_key_write(j, k, at);
}

prony_status prn_keys_write_document(const char *schema, const prn_key *keys, const prn_at *at, prony_write_fn write,
                                     void *user, prony_error *error)
{
    prn_json *j = prn_json_document(schema, write, user, error);
    if (!j) return PRONY_OUT_OF_MEMORY;
    prn_keys_write(j, keys, at);
    return prn_json_finish(j);
}
