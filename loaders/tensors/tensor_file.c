/* Values from files of their own. The file is mapped, read with the model's own tensor reader into a pool, and copied
 * once into a value that owns its parts; map and pool end with the call. Damaged files are PRONY_INVALID_MODEL (.pb) or
 * PRONY_INVALID_ARGUMENT. */
#include "loaders/tensors/tensor_file.h"

#include "base/shape.h"
#include "loaders/onnx/owned_value.h"
#include "loaders/onnx/reader.h"
#include "loaders/tensors/npz.h"

#include <string.h>

/* ---- protobuf ---- */

/* Their numbers in SequenceProto and in OptionalProto alike. */
enum { TENSOR_VALUE = 3, SPARSE_VALUE = 4, SEQUENCE_VALUE = 5, MAP_VALUE = 6, OPTIONAL_VALUE = 7 };

static prony_status tensor_file_value_read(prn_reader *reader, prn_wire wire, prony_kind kind, prony_value *out);

static prony_status item_read(prn_reader *reader, prn_wire wire, uint32_t number, prony_value *out)
{
    if (number == SEQUENCE_VALUE) return tensor_file_value_read(reader, wire, PRONY_SEQUENCE, out);
    if (number == OPTIONAL_VALUE) return tensor_file_value_read(reader, wire, PRONY_OPTIONAL, out);
    if (number == TENSOR_VALUE) return tensor_file_value_read(reader, wire, PRONY_TENSOR, out);
    prn_initializer tensor = {0};
    PRN_TRY(prn_sparse_tensor_read(reader, wire, &tensor));
    return prn_owned_copy(&tensor.value, out, reader->error);
}

static prony_status container_read(prn_reader *reader, prn_wire wire, prony_value *out)
{
    size_t counts[PRN_WIRE_CENSUS], count = 0;
    PRN_TRY(prn_wire_census(wire, counts, reader->error));
    if (counts[MAP_VALUE]) return prn_fail(reader->error, PRONY_UNSUPPORTED, "maps are not supported");
    for (int field = TENSOR_VALUE; field <= OPTIONAL_VALUE; field++) {
        if (counts[field] && count) return prn_fail(reader->error, PRONY_INVALID_MODEL, "it mixes kinds of elements");
        count += counts[field];
    }
    if (out->kind == PRONY_OPTIONAL && count > 1) {
        return prn_fail(reader->error, PRONY_INVALID_MODEL, "an optional holds %zu values", count);
    }
    if (!count) return PRONY_OK;
    out->items = prn_calloc(count, sizeof *out->items);
    if (!out->items) return prn_no_memory(reader->error);
    for (prn_field field; prn_wire_next(&wire, &field);) {
        if (field.number < TENSOR_VALUE || field.number > OPTIONAL_VALUE) continue;
        prony_value *item = &out->items[out->count++];
        PRN_TRY(item_read(reader, prn_wire_enter(&wire, &field), field.number, item));
        out->dtype = item->dtype;
    }
    return prn_wire_check(&wire, reader->error);
}

/* Fills a zeroed value; after a failure the caller frees its contents. */
static prony_status tensor_file_value_read(prn_reader *reader, prn_wire wire, prony_kind kind, prony_value *out)
{
    if (kind == PRONY_TENSOR) {
        prn_initializer tensor = {0};
        PRN_TRY(prn_tensor_read(reader, wire, &tensor));
        return prn_owned_copy(&tensor.value, out, reader->error);
    }
    if (reader->depth >= PRN_MAX_NESTING) {
        return prn_fail(reader->error, PRONY_LIMIT, "values are nested more than %d deep", PRN_MAX_NESTING);
    }
    out->kind = kind;
    out->shape = prn_shape_unknown();
    reader->depth++;
    prony_status status = container_read(reader, wire, out);
    reader->depth--;
    return status;
}

static prony_status protobuf_parse(prony_value *out, const prn_map *map, prony_kind kind, prony_error *error)
{
    prn_bump pool = {0};
    prn_reader reader = {.pool = &pool, .error = error};
    prony_status status = tensor_file_value_read(&reader, prn_wire_make(map->data, map->size), kind, out);
    prn_bump_release(&pool);
    return status;
}

/* ---- files ---- */

static bool tensor_file_ends_with(const char *path, const char *ending)
{
    size_t size = strlen(path), tail = strlen(ending);
    return size > tail && strcmp(path + size - tail, ending) == 0;
}

static prony_status raw_parse(prony_value *out, const prn_map *map, const prony_value *type, prony_error *error)
{
    char text[PRN_SHAPE_TEXT_BYTES];
    if (type->dtype == PRONY_STRING || prn_value_bytes(type) == SIZE_MAX) {
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s has no raw form", prn_value_text(type, text));
    }
    if (prn_value_bytes(type) != map->size) {
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "the file has %zu bytes, but %s needs %zu", map->size,
                        prn_value_text(type, text), prn_value_bytes(type));
    }
    PRN_TRY(prn_owned_tensor(out, type->dtype, &type->shape, 0, error));
    prn_owned_fill(out, map->data);
    return PRONY_OK;
}

/* `raw`: type and shape of a raw file; NULL: the kind follows from the name's ending. */
static prony_status tensor_file_load(prony_value **out, const char *path, prony_kind kind, const prony_value *raw,
                                     prony_error *error)
{
    *out = NULL;
    bool npy = tensor_file_ends_with(path, ".npy");
    if (!raw && tensor_file_ends_with(path, ".npz")) return prn_npz_load(out, path, NULL, error);
    if (!raw && !npy && !tensor_file_ends_with(path, ".pb")) {
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "'%.400s': neither .npy, .npz nor .pb", path);
    }
    prn_map map;
    PRN_TRY(prn_map_open(&map, path, error));
    prony_status status;
    prony_value *value = prn_calloc(1, sizeof *value);
    if (!value) {
        status = prn_no_memory(error);
    } else if (raw) {
        status = raw_parse(value, &map, raw, error);
    } else if (npy) {
        status = prn_npy_parse(value, map.data, map.size, error);
    } else {
        status = protobuf_parse(value, &map, kind, error);
    }
    prn_map_close(&map);
    if (status == PRONY_OK) {
        *out = value;
    } else {
        prn_error_prefix(error, "'%.400s'", path);
        prn_value_free(value);
    }
    return status;
}

prony_status prn_value_file_load(prony_value **out, const char *path, prony_kind kind, prony_error *error)
{
    return tensor_file_load(out, path, kind, NULL, error);
}

prony_status prn_value_file_load_raw(prony_value **out, const char *path, prony_dtype dtype, const prony_shape *shape,
                                     prony_error *error)
{
    prony_value type = {.kind = PRONY_TENSOR, .dtype = dtype, .shape = *shape};
    return tensor_file_load(out, path, PRONY_TENSOR, &type, error);
}
