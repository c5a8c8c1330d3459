/* Implements declared.h. Walks ModelProto again; the walk never leaves the mapped bytes. */
#include "loaders/onnx/declared.h"
#include "loaders/onnx/reader.h"

#include <string.h>

enum { MODEL_GRAPH = 7, MODEL_METADATA = 14, GRAPH_OUTPUT = 12, GRAPH_VALUE_INFO = 13 };

static bool declared_span_is(prn_span span, const char *text)
{
    return span.data && span.size == strlen(text) && memcmp(span.data, text, span.size) == 0;
}

const char *prn_declared_metadata(const prn_model_file *file, prn_bump *pool, const char *key)
{
    prn_wire wire = prn_wire_make(file->data, file->file_bytes);
    for (prn_field field; prn_wire_next(&wire, &field);) {
        if (field.number != MODEL_METADATA) continue;
        prn_wire entry = prn_wire_enter(&wire, &field);
        prn_span name = {0}, value = {0};
        for (prn_field part; prn_wire_next(&entry, &part);) {
            if (part.number == 1) name = prn_wire_span(&entry, &part);
            if (part.number == 2) value = prn_wire_span(&entry, &part);
        }
        if (declared_span_is(name, key))
            return prn_bump_strndup(pool, value.size ? (const char *)value.data : "", value.size);
    }
    return NULL;
}

static prn_wire graph_wire(const prn_model_file *file)
{
    prn_wire wire = prn_wire_make(file->data, file->file_bytes), graph = prn_wire_make(NULL, 0);
    for (prn_field field; prn_wire_next(&wire, &field);)
        if (field.number == MODEL_GRAPH) graph = prn_wire_enter(&wire, &field);
    return graph;
}

prony_status prn_declared_values(const prn_model_file *file, prn_bump *pool, const prn_port **out, size_t *count,
                                 prony_error *error)
{
    size_t counts[PRN_WIRE_CENSUS];
    prn_wire graph = graph_wire(file);
    *count = 0;
    PRN_TRY(prn_wire_census(graph, counts, error));
    prn_port *ports = prn_bump_alloc(pool, counts[GRAPH_VALUE_INFO] + counts[GRAPH_OUTPUT] + 1, sizeof *ports);
    if (!ports) return prn_no_memory(error);
    prony_error passed_over;
    prn_reader reader = {.pool = pool, .error = &passed_over};
    for (prn_field field; prn_wire_next(&graph, &field);) {
        if (field.number != GRAPH_VALUE_INFO && field.number != GRAPH_OUTPUT) continue;
        prn_port port = {0};
        prony_status status = prn_port_read(&reader, prn_wire_enter(&graph, &field), &port);
        if (status == PRONY_OUT_OF_MEMORY) return prn_no_memory(error);
        if (status == PRONY_OK && port.kind == PRONY_TENSOR && port.shape.rank > 0) ports[(*count)++] = port;
    }
    *out = ports;
    return PRONY_OK;
}
