/* External tensor data: its file, its bytes, and the check that the model may name this file. A location is a relative
 * path that goes only down, and after every symbolic link is resolved the file must still lie in the model's own
 * folder. Each file is mapped once; the maps belong to the model. */
#include "loaders/onnx/file_kind.h"
#include "loaders/onnx/reader.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct place {
    prn_span location;
    uint64_t offset, length;
    bool has_length;
} place;

static bool external_span_is(prn_span span, const char *text)
{
    return span.size == strlen(text) && memcmp(span.data, text, span.size) == 0;
}

static prony_status number_parse(prn_span text, const char *key, uint64_t *out, prony_error *error)
{
    uint64_t value = 0;
    bool good = text.size > 0 && text.size <= 18;
    for (size_t i = 0; good && i < text.size; i++) {
        good = text.data[i] >= '0' && text.data[i] <= '9';
        value = value * 10 + (uint64_t)(text.data[i] - '0');
    }
    if (!good) {
        int shown = text.size < 32 ? (int)text.size : 32;
        return prn_fail(error, PRONY_INVALID_MODEL, "external data: %s '%.*s' is not a byte count", key, shown,
                        shown ? (const char *)text.data : "");
    }
    *out = value;
    return PRONY_OK;
}

static prony_status entry_read(prn_wire wire, place *out, prony_error *error)
{
    prn_span key = {0}, value = {0};
    for (prn_field field; prn_wire_next(&wire, &field);) {
        if (field.number == 1) key = prn_wire_span(&wire, &field);
        if (field.number == 2) value = prn_wire_span(&wire, &field);
    }
    PRN_TRY(prn_wire_check(&wire, error));
    if (!key.size) return PRONY_OK;
    if (external_span_is(key, "location")) out->location = value;
    if (external_span_is(key, "offset")) return number_parse(value, "offset", &out->offset, error);
    if (external_span_is(key, "length")) {
        out->has_length = true;
        return number_parse(value, "length", &out->length, error);
    }
    return PRONY_OK;
}

/* `location` without "." components and with one slash for several, so one file has one name and is mapped once. A
 * location that is absolute or has no last component keeps what makes location_is_inside refuse it. */
static prony_status location_simplify(const prn_reader *reader, const char *location, const char **out)
{
    *out = location;
    if (strncmp(location, "./", 2) != 0 && !strstr(location, "//") && !strstr(location, "/./")) return PRONY_OK;
    char *simple = prn_bump_strndup(reader->pool, location, strlen(location));
    if (!simple) return prn_no_memory(reader->error);
    *out = simple;
    for (const char *part = location; *part;) {
        const size_t size = strcspn(part, "/"), step = size + (part[size] == '/');
        const bool kept = (size > 0 || part == location) && !(size == 1 && *part == '.' && part[1] == '/');
        if (kept) {
            memcpy(simple, part, step);
            simple += step;
        }
        part += step;
    }
    *simple = '\0';
    return PRONY_OK;
}

/* true: relative, without empty, "." or ".." components. */
static bool location_is_inside(const char *location)
{
    for (const char *part = location;;) {
        size_t size = strcspn(part, "/");
        if (size == 0 || (size <= 2 && strncmp(part, "..", size) == 0)) return false;
        if (part[size] == '\0') return true;
        part += size + 1;
    }
}

/* The real path of `location` in the folder of the model at `model_path`, checked to lie there. */
static prony_status external_resolve(const prn_reader *reader, const char *location, char real[PATH_MAX])
{
    prony_error *error = reader->error;
    if (!location_is_inside(location)) {
        return prn_fail(error, PRONY_INVALID_MODEL,
                        "external data: location " PRN_NAME " is outside the model's folder", location);
    }
    char joined[PATH_MAX], folder[PATH_MAX];
    const char *slash = strrchr(reader->path, '/');
    int prefix = slash ? (int)(slash - reader->path) + 1 : 0;
    int written = reader->data_folder ? snprintf(joined, sizeof joined, "%s", reader->data_folder)
                                      : snprintf(joined, sizeof joined, "%.*s.", prefix, reader->path);
    if (written >= (int)sizeof joined || !realpath(joined, folder)) {
        return prn_fail(error, PRONY_IO_ERROR, "external data: its folder " PRN_NAME " cannot be resolved", joined);
    }
    written = snprintf(joined, sizeof joined, "%s/%s", folder, location);
    if (written >= (int)sizeof joined || !realpath(joined, real)) {
        return prn_fail(error, PRONY_IO_ERROR,
                        "external data: " PRN_NAME ": %s; looked for in '%.300s': put it there, or name its folder "
                        "(--data-folder DIR)",
                        location, written >= (int)sizeof joined ? "path too long" : strerror(errno), folder);
    }
    size_t length = strlen(folder);
    if (length == 1) length = 0; /* the root folder is "/" already */
    if (strncmp(real, folder, length) == 0 && real[length] == '/') return PRONY_OK;
    return prn_fail(error, PRONY_INVALID_MODEL,
                    "external data: location " PRN_NAME " is a link to outside the model's folder", location);
}

static prony_status find_map(prn_reader *reader, const char *location, const prn_map **out)
{
    for (prn_external *known = *reader->external; known; known = known->next) {
        if (strcmp(known->location, location) == 0) {
            *out = &known->map;
            return PRONY_OK;
        }
    }
    char real[PATH_MAX];
    PRN_TRY(external_resolve(reader, location, real));
    prn_external *external = PRN_NEW(reader, 1, prn_external);
    if (!external) return prn_no_memory(reader->error);
    PRN_TRY((reader->copy ? prn_map_read : prn_map_open)(&external->map, real, reader->error));
    external->location = location;
    external->path = prn_bump_strndup(reader->pool, real, strlen(real));
    if (!external->path) {
        prn_map_close(&external->map);
        return prn_no_memory(reader->error);
    }
    external->next = *reader->external;
    *reader->external = external;
    *out = &external->map;
    return PRONY_OK;
}

/* Checks location, length and offset before any byte is used; *out lies in the map. */
prony_status prn_external_read(prn_reader *reader, prn_wire tensor, uint64_t bytes, prn_span *out)
{
    prony_error *error = reader->error;
    place where = {0};
    for (prn_field field; prn_wire_next(&tensor, &field);) {
        if (field.number == 13) PRN_TRY(entry_read(prn_wire_enter(&tensor, &field), &where, error));
    }
    PRN_TRY(prn_wire_check(&tensor, error));
    if (!reader->path) {
        return prn_fail(error, PRONY_UNSUPPORTED,
                        "external data is allowed only in a model that is loaded from a file");
    }
    const char *location;
    PRN_TRY(prn_name_read(reader, &location, where.location, "external data location"));
    if (where.has_length && where.length != bytes) {
        return prn_fail(error, PRONY_INVALID_MODEL, "external data: length is %llu bytes, but type and shape need %llu",
                        (unsigned long long)where.length, (unsigned long long)bytes);
    }
    PRN_TRY(location_simplify(reader, location, &location));
    const prn_map *map;
    PRN_TRY(find_map(reader, location, &map));
    if (prn_file_is_lfs_pointer(map->data, map->size))
        return prn_fail(
            error, PRONY_INVALID_MODEL,
            "external data: " PRN_NAME " is a Git LFS pointer; fetch it: git lfs install, then git lfs pull", location);
    if (where.offset > map->size || bytes > map->size - where.offset) {
        return prn_fail(error, PRONY_INVALID_MODEL,
                        "external data: " PRN_NAME " has %zu bytes, but needs %llu at offset %llu", location, map->size,
                        (unsigned long long)bytes, (unsigned long long)where.offset);
    }
    *out = (prn_span){map->data + where.offset, (size_t)bytes};
    return PRONY_OK;
}

prony_status prn_external_unchanged(const prn_external *list, prony_error *error)
{
    for (; list; list = list->next) PRN_TRY(prn_map_check(&list->map, list->path, error));
    return PRONY_OK;
}

void prn_external_forget(const prn_external *list, const void *data, size_t bytes)
{
    while (list && !prn_map_has(&list->map, data)) list = list->next;
    if (list) prn_map_forget(&list->map, data, bytes);
}

void prn_external_forget_all(const prn_external *list)
{
    for (; list; list = list->next) prn_map_forget(&list->map, list->map.data, list->map.size);
}

void prn_external_close(prn_external *list)
{
    for (; list; list = list->next) prn_map_close(&list->map);
}
