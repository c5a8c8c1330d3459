/* ModelProto -> prn_model_file. The file struct owns the pool, the map and the external maps; after any failure,
 * closing it releases everything. */
#include "base/os/folder.h"
#include "base/hash/sha256.h"
#include "loaders/onnx/file_kind.h"
#include "loaders/onnx/reader.h"

#include <string.h>

enum {
    MODEL_IR_VERSION = 1,
    MODEL_PRODUCER = 2,
    MODEL_PRODUCER_VERSION = 3,
    MODEL_GRAPH = 7,
    MODEL_OPSET = 8,
    MODEL_FUNCTION = 25
};

enum {
    FUNCTION_NAME = 1,
    FUNCTION_INPUT = 4,
    FUNCTION_OUTPUT = 5,
    FUNCTION_ATTRIBUTE = 6,
    FUNCTION_NODE = 7,
    FUNCTION_OPSET = 9,
    FUNCTION_DOMAIN = 10,
    FUNCTION_ATTRIBUTE_DEFAULT = 11,
    FUNCTION_OVERLOAD = 13
};

enum { OLDEST_IR_VERSION = 3 };
#define HASH_PIECE_BYTES ((size_t)4 << 20)

static const char *plain_domain(const char *domain)
{
    return strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

static int64_t opset_version(const prn_opset_import *opsets, size_t count, const char *domain)
{
    domain = plain_domain(domain);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(opsets[i].domain, domain) == 0) return opsets[i].version;
    }
    return 0;
}

bool prn_model_imports(const prn_model_file *file, const char *domain)
{
    return opset_version(file->opsets, file->opset_count, domain) != 0;
}

int64_t prn_model_opset(const prn_model_file *file, const char *domain)
{
    const int64_t imported = opset_version(file->opsets, file->opset_count, domain);
    return !imported && strcmp(domain, "com.microsoft") == 0 ? 1 : imported;
}

/* ---- opset imports ---- */

static prony_status opset_read(prn_reader *reader, prn_wire wire, prn_opset_import *out)
{
    *out = (prn_opset_import){.domain = ""};
    for (prn_field field; prn_wire_next(&wire, &field);) {
        if (field.number == 1) {
            PRN_TRY(prn_name_read(reader, &out->domain, prn_wire_span(&wire, &field), "opset domain"));
            out->domain = plain_domain(out->domain);
        } else if (field.number == 2) {
            out->version = prn_wire_int(&wire, &field);
        }
    }
    PRN_TRY(prn_wire_check(&wire, reader->error));
    if (out->version >= 1) return PRONY_OK;
    return prn_fail(reader->error, PRONY_INVALID_MODEL, "opset version %lld of domain " PRN_NAME,
                    (long long)out->version, out->domain);
}

/* Few in any real model; the bound keeps the look-ups for doubles short. */
enum { MAX_OPSETS = 128 };

static prony_status opset_list_read(prn_reader *reader, prn_wire wire, uint32_t number, size_t count,
                                    const prn_opset_import **out, size_t *out_count)
{
    if (count > MAX_OPSETS) return prn_fail(reader->error, PRONY_LIMIT, "%zu opset imports are too many", count);
    prn_opset_import *opsets = PRN_NEW(reader, count, prn_opset_import);
    if (!opsets) return prn_no_memory(reader->error);
    *out = opsets;
    for (prn_field field; prn_wire_next(&wire, &field);) {
        if (field.number != number) continue;
        prn_opset_import next;
        PRN_TRY(opset_read(reader, prn_wire_enter(&wire, &field), &next));
        int64_t known = opset_version(opsets, *out_count, next.domain);
        if (!known) {
            opsets[(*out_count)++] = next;
        } else if (known != next.version) {
            return prn_fail(reader->error, PRONY_INVALID_MODEL, "opset %lld and %lld of domain " PRN_NAME,
                            (long long)known, (long long)next.version, next.domain);
        }
    }
    return prn_wire_check(&wire, reader->error);
}

/* ---- functions ---- */

typedef struct function_names {
    const char **inputs, **outputs, **attributes;
} function_names;

/* Reads the function's names into arrays sized by a first pass; formal inputs and outputs must not be empty. */
static prony_status function_fields(prn_reader *reader, prn_wire wire, prn_function *out, const function_names *names)
{
    for (prn_field field; prn_wire_next(&wire, &field);) {
        const char **name = NULL;
        switch (field.number) {
        case FUNCTION_NAME:
            name = &out->name;
            break;
        case FUNCTION_INPUT:
            name = &names->inputs[out->input_count++];
            break;
        case FUNCTION_OUTPUT:
            name = &names->outputs[out->output_count++];
            break;
        case FUNCTION_ATTRIBUTE:
            name = &names->attributes[out->attribute_count++];
            break;
        case FUNCTION_DOMAIN:
            name = &out->domain;
            break;
        case FUNCTION_OVERLOAD:
            name = &out->overload;
            break;
        default:
            break;
        }
        if (!name) continue;
        PRN_TRY(prn_name_read(reader, name, prn_wire_span(&wire, &field), "name"));
        bool listed = field.number == FUNCTION_INPUT || field.number == FUNCTION_OUTPUT;
        if (listed && !(*name)[0]) return prn_fail(reader->error, PRONY_INVALID_MODEL, "a formal name is empty");
    }
    return prn_wire_check(&wire, reader->error);
}

static prony_status function_body(prn_reader *reader, prn_wire wire, prn_function *out)
{
    size_t counts[PRN_WIRE_CENSUS];
    PRN_TRY(prn_wire_census(wire, counts, reader->error));
    function_names names = {PRN_NEW(reader, counts[FUNCTION_INPUT], const char *),
                            PRN_NEW(reader, counts[FUNCTION_OUTPUT], const char *),
                            PRN_NEW(reader, counts[FUNCTION_ATTRIBUTE], const char *)};
    if (!names.inputs || !names.outputs || !names.attributes) return prn_no_memory(reader->error);
    out->inputs = names.inputs;
    out->outputs = names.outputs;
    out->attributes = names.attributes;
    PRN_TRY(function_fields(reader, wire, out, &names));
    out->domain = plain_domain(out->domain);
    if (!out->name[0]) return prn_fail(reader->error, PRONY_INVALID_MODEL, "it has no name");
    PRN_TRY(opset_list_read(reader, wire, FUNCTION_OPSET, counts[FUNCTION_OPSET], &out->opsets, &out->opset_count));
    PRN_TRY(prn_attr_list_read(reader, wire, FUNCTION_ATTRIBUTE_DEFAULT, counts[FUNCTION_ATTRIBUTE_DEFAULT],
                               &out->attribute_defaults));
    PRN_TRY(prn_node_list_read(reader, wire, FUNCTION_NODE, counts[FUNCTION_NODE], &out->nodes));
    out->node_count = counts[FUNCTION_NODE];
    return prn_scope_resolve_function(reader, out);
}

static prony_status function_read(prn_reader *reader, prn_wire wire, prn_function *out)
{
    out->name = out->domain = out->overload = "";
    reader->in_function = true;
    prony_status status = function_body(reader, wire, out);
    reader->in_function = false;
    if (status != PRONY_OK) prn_error_prefix(reader->error, "function " PRN_NAME, out->name);
    return status;
}

/* One definition per domain, name and overload. */
static prony_status refuse_double_functions(prn_reader *reader, const prn_model_file *file)
{
    if (file->function_count < 2) return PRONY_OK;
    prn_name_entry *keys = PRN_NEW(reader, file->function_count, prn_name_entry);
    if (!keys) return prn_no_memory(reader->error);
    for (size_t i = 0; i < file->function_count; i++) {
        const prn_function *f = &file->functions[i];
        /* With the lengths, different triples have different keys. */
        keys[i].name = prn_bump_printf(reader->pool, "%zu %zu %s::%s:%s", strlen(f->domain), strlen(f->name), f->domain,
                                       f->name, f->overload);
        keys[i].item = i;
        if (!keys[i].name) return prn_no_memory(reader->error);
    }
    prn_name_entries_sort(keys, file->function_count);
    for (size_t i = 1; i < file->function_count; i++) {
        if (strcmp(keys[i - 1].name, keys[i].name) != 0) continue;
        const prn_function *f = &file->functions[keys[i].item];
        return prn_fail(reader->error, PRONY_INVALID_MODEL,
                        "function " PRN_NAME " of domain " PRN_NAME " is defined twice", f->name, f->domain);
    }
    return PRONY_OK;
}

static prony_status function_list_read(prn_reader *reader, prn_wire wire, size_t count, prn_model_file *file)
{
    prn_function *functions = PRN_NEW(reader, count, prn_function);
    if (!functions) return prn_no_memory(reader->error);
    file->functions = functions;
    for (prn_field field; prn_wire_next(&wire, &field);) {
        if (field.number != MODEL_FUNCTION) continue;
        PRN_TRY(function_read(reader, prn_wire_enter(&wire, &field), &functions[file->function_count++]));
    }
    PRN_TRY(prn_wire_check(&wire, reader->error));
    return refuse_double_functions(reader, file);
}

/* ---- the model ---- */

static prony_status header_read(prn_reader *reader, prn_wire wire, prn_model_file *file)
{
    for (prn_field field; prn_wire_next(&wire, &field);) {
        if (field.number == MODEL_IR_VERSION) {
            file->ir_version = prn_wire_int(&wire, &field);
        } else if (field.number == MODEL_PRODUCER) {
            PRN_TRY(prn_name_read(reader, &file->producer, prn_wire_span(&wire, &field), "producer"));
        } else if (field.number == MODEL_PRODUCER_VERSION) {
            PRN_TRY(prn_name_read(reader, &file->producer_version, prn_wire_span(&wire, &field), "producer version"));
        }
    }
    PRN_TRY(prn_wire_check(&wire, reader->error));
    if (file->ir_version >= OLDEST_IR_VERSION) return PRONY_OK;
    if (file->ir_version == 0)
        return prn_fail(reader->error, PRONY_INVALID_MODEL, "not an ONNX model: it has no IR version");
    return prn_fail(reader->error, file->ir_version > 0 ? PRONY_UNSUPPORTED : PRONY_INVALID_MODEL,
                    "IR version %lld, wanted at least %d", (long long)file->ir_version, OLDEST_IR_VERSION);
}

static prony_status model_read(prn_reader *reader, prn_wire wire, prn_model_file *file)
{
    size_t counts[PRN_WIRE_CENSUS];
    PRN_TRY(prn_wire_census(wire, counts, reader->error));
    PRN_TRY(header_read(reader, wire, file));
    reader->ir_version = file->ir_version;
    if (counts[MODEL_GRAPH] != 1) {
        return prn_fail(reader->error, PRONY_INVALID_MODEL, "it has %zu graphs, wanted 1", counts[MODEL_GRAPH]);
    }
    if (!counts[MODEL_OPSET]) return prn_fail(reader->error, PRONY_INVALID_MODEL, "it imports no opset");
    PRN_TRY(opset_list_read(reader, wire, MODEL_OPSET, counts[MODEL_OPSET], &file->opsets, &file->opset_count));
    PRN_TRY(function_list_read(reader, wire, counts[MODEL_FUNCTION], file));
    for (prn_field field; prn_wire_next(&wire, &field);) {
        if (field.number != MODEL_GRAPH) continue;
        PRN_TRY(prn_graph_read(reader, prn_wire_enter(&wire, &field), &file->graph));
    }
    PRN_TRY(prn_wire_check(&wire, reader->error));
    return prn_scope_resolve_model(reader, &file->graph);
}

/* Takes over the file: returns or closes it. */
static prony_status file_read(prn_model_file **out, prn_model_file *file, const char *name, const void *data,
                              size_t size, const prn_reader *where, prony_error *error)
{
    prn_reader reader = *where;
    reader.pool = &file->pool;
    reader.external = &file->external;
    reader.copy = file->copied;
    reader.error = error;
    file->data = data;
    file->file_bytes = size;
    file->producer = file->producer_version = "";
    file->name = prn_bump_strndup(&file->pool, name, strlen(name));
    prony_status status = file->name ? PRONY_OK : prn_no_memory(error);
    if (status == PRONY_OK) status = model_read(&reader, prn_wire_make(data, size), file);
    if (status == PRONY_OK) {
        *out = file;
    } else {
        prn_error_prefix(error, "%.400s", name);
        if (status == PRONY_INVALID_MODEL || status == PRONY_UNSUPPORTED)
            prn_file_kind_explain(error, name, data, size);
        if (error) status = error->status;
        prn_model_close(file);
    }
    return status;
}

/* Refuses a folder given instead of its model, and lists the models in it. */
static prony_status refuse_folder(const char *path, prony_error *error)
{
    prn_bump pool = {0};
    prn_folder folder = {0};
    const char *found = NULL;
    prony_status status = prn_folder_read(&folder, &pool, path, error);
    for (size_t i = 0; status == PRONY_OK && i < folder.count && !found; i++) {
        const char *name = folder.entries[i].name, *end = strrchr(name, '.');
        if (!folder.entries[i].folder && end && strcmp(end, ".onnx") == 0) found = name;
    }
    size_t length = strlen(path);
    const char *slash = length && path[length - 1] == '/' ? "" : "/";
    if (found)
        status = prn_fail(error, PRONY_IO_ERROR, "'%.400s' is a folder; the model in it is %.400s%s%.200s", path, path,
                          slash, found);
    else if (status == PRONY_OK)
        status =
            prn_fail(error, PRONY_IO_ERROR, "'%.400s' is a folder without an .onnx file; give the model's file", path);
    prn_bump_release(&pool);
    return status;
}

prony_status prn_model_open(prn_model_file **out, const char *path, const char *data_folder, bool copy,
                            prony_error *error)
{
    *out = NULL;
    if (prn_is_folder(path)) return refuse_folder(path, error);
    prn_model_file *file = prn_calloc(1, sizeof *file);
    if (!file) return prn_no_memory(error);
    file->copied = copy;
    prony_status status = (copy ? prn_map_read : prn_map_open)(&file->map, path, error);
    if (status != PRONY_OK) {
        prn_model_close(file);
        return status;
    }
    prn_reader reader = {.path = path, .data_folder = data_folder};
    PRN_TRY(file_read(out, file, path, file->map.data, file->map.size, &reader, error));
    prn_model_forget_all(file); /* reading names and shapes also made the system load weights between them */
    return PRONY_OK;
}

prony_status prn_model_parse(prn_model_file **out, const char *name, const void *data, size_t size, prony_error *error)
{
    *out = NULL;
    prn_model_file *file = prn_calloc(1, sizeof *file);
    if (!file) return prn_no_memory(error);
    return file_read(out, file, name, data, size, &(prn_reader){0}, error);
}

prony_status prn_model_unchanged(const prn_model_file *file, prony_error *error)
{
    if (!file->map.data || file->copied) return PRONY_OK;
    PRN_TRY(prn_map_check(&file->map, file->name, error));
    return prn_external_unchanged(file->external, error);
}

void prn_model_forget(const prn_model_file *file, const void *data, size_t bytes)
{
    if (file->copied || !file->map.data) return;
    if (prn_map_has(&file->map, data))
        prn_map_forget(&file->map, data, bytes);
    else
        prn_external_forget(file->external, data, bytes);
}

void prn_model_forget_all(const prn_model_file *file)
{
    if (file->copied || !file->map.data) return;
    prn_map_forget(&file->map, file->map.data, file->map.size);
    prn_external_forget_all(file->external);
}

void prn_model_hash(const prn_model_file *file, char text[65])
{
    prn_sha256 hash;
    prn_sha256_init(&hash);
    for (size_t done = 0, piece; done < file->file_bytes; done += piece) {
        piece = file->file_bytes - done < HASH_PIECE_BYTES ? (size_t)file->file_bytes - done : HASH_PIECE_BYTES;
        prn_sha256_add(&hash, file->data + done, piece);
        prn_model_forget(file, file->data + done, piece);
    }
    prn_sha256_text(&hash, text);
}

void prn_model_close(prn_model_file *file)
{
    if (!file) return;
    prn_external_close(file->external);
    prn_map_close(&file->map);
    prn_bump_release(&file->pool);
    prn_free(file);
}
