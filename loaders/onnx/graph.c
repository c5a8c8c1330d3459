/* GraphProto and NodeProto -> prn_graph and prn_model_node, as in the file. scope.c resolves names later, because
 * initializers and inputs may follow the nodes that use them. */
#include "loaders/onnx/reader.h"

#include <string.h>

/* ---- nodes ---- */

enum {
    NODE_INPUT = 1,
    NODE_OUTPUT = 2,
    NODE_NAME = 3,
    NODE_OP_TYPE = 4,
    NODE_ATTRIBUTE = 5,
    NODE_DOMAIN = 7,
    NODE_OVERLOAD = 8
};

/* Second pass over a NodeProto: reads its names. `inputs` and `outputs` have room by the first pass's count. */
static prony_status node_fields(prn_reader *reader, prn_wire wire, prn_model_node *out, const char **inputs,
                                const char **outputs)
{
    for (prn_field field; prn_wire_next(&wire, &field);) {
        const char **name = NULL;
        switch (field.number) {
        case NODE_INPUT:
            name = &inputs[out->input_count++];
            break;
        case NODE_OUTPUT:
            name = &outputs[out->output_count++];
            break;
        case NODE_NAME:
            name = &out->name;
            break;
        case NODE_OP_TYPE:
            name = &out->op_type;
            break;
        case NODE_DOMAIN:
            name = &out->domain;
            break;
        case NODE_OVERLOAD:
            name = &out->overload;
            break;
        default:
            break;
        }
        if (name) PRN_TRY(prn_name_read(reader, name, prn_wire_span(&wire, &field), "name"));
    }
    return prn_wire_check(&wire, reader->error);
}

prony_status prn_node_read(prn_reader *reader, prn_wire wire, prn_model_node *out)
{
    out->name = out->op_type = out->domain = out->overload = "";
    size_t counts[PRN_WIRE_CENSUS];
    PRN_TRY(prn_wire_census(wire, counts, reader->error));
    const char **inputs = PRN_NEW(reader, counts[NODE_INPUT], const char *);
    const char **outputs = PRN_NEW(reader, counts[NODE_OUTPUT], const char *);
    if (!inputs || !outputs) return prn_no_memory(reader->error);
    out->inputs = inputs;
    out->outputs = outputs;
    PRN_TRY(node_fields(reader, wire, out, inputs, outputs));
    while (out->input_count && !inputs[out->input_count - 1][0]) out->input_count--;
    if (!out->op_type[0]) return prn_fail(reader->error, PRONY_INVALID_MODEL, "it has no operator type");
    if (strcmp(out->domain, "ai.onnx") == 0) out->domain = "";
    return prn_attr_list_read(reader, wire, NODE_ATTRIBUTE, counts[NODE_ATTRIBUTE], &out->attributes);
}

prony_status prn_node_list_read(prn_reader *reader, prn_wire wire, uint32_t number, size_t count,
                                const prn_model_node **out)
{
    if (count > UINT32_MAX) return prn_fail(reader->error, PRONY_LIMIT, "%zu nodes are too many", count);
    prn_model_node *nodes = PRN_NEW(reader, count, prn_model_node);
    if (!nodes) return prn_no_memory(reader->error);
    *out = nodes;
    uint32_t index = 0;
    for (prn_field field; prn_wire_next(&wire, &field);) {
        if (field.number != number) continue;
        prn_model_node *node = &nodes[index];
        node->file_index = index++;
        prony_status status = prn_node_read(reader, prn_wire_enter(&wire, &field), node);
        if (status != PRONY_OK) {
            prn_error_prefix(reader->error, "node %u " PRN_NAME " (%.60s)", node->file_index,
                             node->name ? node->name : "", node->op_type ? node->op_type : "");
            return status;
        }
    }
    return prn_wire_check(&wire, reader->error);
}

/* ---- graphs ---- */

enum {
    GRAPH_NODE = 1,
    GRAPH_NAME = 2,
    GRAPH_INITIALIZER = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    GRAPH_SPARSE_INITIALIZER = 15
};

static prony_status initializer_read(prn_reader *reader, prn_wire wire, bool sparse, prn_initializer *out)
{
    PRN_TRY(sparse ? prn_sparse_tensor_read(reader, wire, out) : prn_tensor_read(reader, wire, out));
    if (out->name[0]) return PRONY_OK;
    return prn_fail(reader->error, PRONY_INVALID_MODEL, "an initializer has no name");
}

static prony_status graph_fields(prn_reader *reader, prn_wire wire, prn_graph *out, prn_initializer *initializers,
                                 prn_port *inputs, prn_port *outputs)
{
    for (prn_field field; prn_wire_next(&wire, &field);) {
        switch (field.number) {
        case GRAPH_INITIALIZER:
        case GRAPH_SPARSE_INITIALIZER:
            PRN_TRY(initializer_read(reader, prn_wire_enter(&wire, &field), field.number == GRAPH_SPARSE_INITIALIZER,
                                     &initializers[out->initializer_count++]));
            break;
        case GRAPH_INPUT:
            PRN_TRY(prn_port_read(reader, prn_wire_enter(&wire, &field), &inputs[out->input_count++]));
            break;
        case GRAPH_OUTPUT:
            PRN_TRY(prn_port_read(reader, prn_wire_enter(&wire, &field), &outputs[out->output_count++]));
            break;
        default:
            break;
        }
    }
    return prn_wire_check(&wire, reader->error);
}

static prony_status graph_name(prn_reader *reader, prn_wire wire, prn_graph *out)
{
    for (prn_field field; prn_wire_next(&wire, &field);) {
        if (field.number != GRAPH_NAME) continue;
        PRN_TRY(prn_name_read(reader, &out->name, prn_wire_span(&wire, &field), "graph name"));
    }
    return prn_wire_check(&wire, reader->error);
}

static prony_status graph_read(prn_reader *reader, prn_wire wire, prn_graph *out)
{
    size_t counts[PRN_WIRE_CENSUS];
    PRN_TRY(prn_wire_census(wire, counts, reader->error));
    PRN_TRY(graph_name(reader, wire, out));
    size_t tensors = counts[GRAPH_INITIALIZER] + counts[GRAPH_SPARSE_INITIALIZER];
    prn_initializer *initializers = PRN_NEW(reader, tensors, prn_initializer);
    prn_port *inputs = PRN_NEW(reader, counts[GRAPH_INPUT], prn_port);
    prn_port *outputs = PRN_NEW(reader, counts[GRAPH_OUTPUT], prn_port);
    if (!initializers || !inputs || !outputs) return prn_no_memory(reader->error);
    out->initializers = initializers;
    out->inputs = inputs;
    out->outputs = outputs;
    PRN_TRY(graph_fields(reader, wire, out, initializers, inputs, outputs));
    PRN_TRY(prn_node_list_read(reader, wire, GRAPH_NODE, counts[GRAPH_NODE], &out->nodes));
    out->node_count = counts[GRAPH_NODE];
    return PRONY_OK;
}

prony_status prn_graph_read(prn_reader *reader, prn_wire wire, prn_graph *out)
{
    out->name = "";
    prony_status status = graph_read(reader, wire, out);
    if (status != PRONY_OK) prn_error_prefix(reader->error, "graph " PRN_NAME, out->name);
    return status;
}
