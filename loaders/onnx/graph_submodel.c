/* Implements graph_submodel.h. Nodes, weights and types are copied field by field, so that nothing is lost. Only the
 * graph around them, tensors with external data, and the types of the cuts are written anew. */
#include "loaders/onnx/graph_submodel.h"
#include "loaders/onnx/proto_write.h"
#include "loaders/onnx/reader.h"

#include <string.h>

enum { IR_WITH_FREE_INITIALIZERS = 4 }; /* before it, initializers had to be inputs as well */

/* ---- contents of the submodel ---- */

enum { KIND_NODE, KIND_INITIALIZER, KIND_INPUT };

typedef struct cutter {
    const prn_model_file *file;
    const prn_submodel *part;
    prn_bump pool;
    prn_name_entry *names; /* of the graph: outputs of nodes, initializers, inputs */
    size_t name_count;
    bool *nodes, *initializers, *inputs, *cuts; /* those that the submodel needs */
    uint32_t *stack;
    size_t depth;
    prony_error *error;
} cutter;

static bool index_names(cutter *c)
{
    const prn_graph *g = &c->file->graph;
    size_t most = g->initializer_count + g->input_count + 1;
    for (size_t n = 0; n < g->node_count; n++) most += g->nodes[n].output_count;
    c->names = prn_bump_alloc(&c->pool, most, sizeof *c->names);
    c->nodes = prn_bump_alloc(&c->pool, g->node_count + 1, sizeof *c->nodes);
    c->initializers = prn_bump_alloc(&c->pool, g->initializer_count + 1, sizeof *c->initializers);
    c->inputs = prn_bump_alloc(&c->pool, g->input_count + 1, sizeof *c->inputs);
    c->cuts = prn_bump_alloc(&c->pool, c->part->from_count + 1, sizeof *c->cuts);
    c->stack = prn_bump_alloc(&c->pool, g->node_count + 1, sizeof *c->stack);
    if (!c->names || !c->nodes || !c->initializers || !c->inputs || !c->cuts || !c->stack) return false;
    for (size_t n = 0; n < g->node_count; n++)
        for (size_t k = 0; k < g->nodes[n].output_count; k++)
            if (*g->nodes[n].outputs[k])
                c->names[c->name_count++] = (prn_name_entry){g->nodes[n].outputs[k], KIND_NODE, n};
    for (size_t i = 0; i < g->initializer_count; i++)
        c->names[c->name_count++] = (prn_name_entry){g->initializers[i].name, KIND_INITIALIZER, i};
    for (size_t i = 0; i < g->input_count; i++)
        c->names[c->name_count++] = (prn_name_entry){g->inputs[i].name, KIND_INPUT, i};
    prn_name_entries_sort(c->names, c->name_count);
    return true;
}

static const prn_name_entry *graph_submodel_find(const cutter *c, const char *name)
{
    return prn_name_entries_find(c->names, c->name_count, name);
}

static prony_status check_name(const cutter *c, const char *name, bool output)
{
    const prn_name_entry *found = graph_submodel_find(c, name);
    if (!found)
        return prn_fail(c->error, PRONY_INVALID_ARGUMENT,
                        "%.300s: the main graph has no tensor " PRN_NAME
                        " (tensors inside a subgraph or function cannot be cut)",
                        c->file->name, name);
    if (found->kind == KIND_INITIALIZER)
        return prn_fail(c->error, PRONY_INVALID_ARGUMENT, "%.300s: " PRN_NAME " is a constant", c->file->name, name);
    if (output && found->kind != KIND_NODE)
        return prn_fail(c->error, PRONY_INVALID_ARGUMENT,
                        "%.300s: " PRN_NAME " is an input of the model, so no node makes it", c->file->name, name);
    return PRONY_OK;
}

static void need(cutter *c, const char *name)
{
    for (size_t k = 0; k < c->part->from_count; k++) {
        if (strcmp(c->part->from[k], name) != 0) continue;
        c->cuts[k] = true;
        return;
    }
    const prn_name_entry *found = *name ? graph_submodel_find(c, name) : NULL;
    if (!found) return;
    if (found->kind == KIND_INITIALIZER) c->initializers[found->item] = true;
    if (found->kind == KIND_INPUT) c->inputs[found->item] = true;
    if (found->kind != KIND_NODE || c->nodes[found->item]) return;
    c->nodes[found->item] = true;
    c->stack[c->depth++] = (uint32_t)found->item;
}

static void need_node(cutter *c, const prn_model_node *node)
{
    for (size_t i = 0; i < node->input_count; i++) need(c, node->inputs[i]);
    for (size_t a = 0; a < node->attributes.count; a++) {
        const prn_graph *inner = node->attributes.items[a].graph;
        for (size_t k = 0; inner && k < inner->captured_count; k++) need(c, inner->captured[k]);
    }
}

/* A tensor that is both a cut and an output is the one that its producer makes. */
static void need_output(cutter *c, const char *name)
{
    const prn_name_entry *found = graph_submodel_find(c, name);
    if (!found || found->kind != KIND_NODE || c->nodes[found->item]) return;
    c->nodes[found->item] = true;
    c->stack[c->depth++] = (uint32_t)found->item;
}

static prony_status reach(cutter *c)
{
    const prn_graph *g = &c->file->graph;
    const prn_submodel *p = c->part;
    for (size_t k = 0; k < p->from_count; k++) PRN_TRY(check_name(c, p->from[k], false));
    for (size_t k = 0; k < p->to_count; k++) PRN_TRY(check_name(c, p->to[k], true));
    for (size_t k = 0; k < p->to_count; k++) need_output(c, p->to[k]);
    for (size_t k = 0; !p->to_count && k < g->output_count; k++) need_output(c, g->outputs[k].name);
    while (c->depth) need_node(c, &g->nodes[c->stack[--c->depth]]);
    for (size_t k = 0; k < p->from_count; k++)
        if (!c->cuts[k])
            return prn_fail(c->error, PRONY_INVALID_ARGUMENT,
                            "%.300s: nothing that leads to the outputs reads " PRN_NAME, c->file->name, p->from[k]);
    return PRONY_OK;
}

/* ---- copying ---- */

/* true: a tensor anywhere inside of an attribute has external data. */
static bool has_external(prn_wire wire, int level)
{
    enum { NODE, ATTRIBUTE, GRAPH, TENSOR, SPARSE };
    static const struct {
        int level;
        uint32_t field;
        int inside;
    } steps[] = {{NODE, 5, ATTRIBUTE},   {ATTRIBUTE, 5, TENSOR},  {ATTRIBUTE, 10, TENSOR}, {ATTRIBUTE, 6, GRAPH},
                 {ATTRIBUTE, 11, GRAPH}, {ATTRIBUTE, 22, SPARSE}, {ATTRIBUTE, 23, SPARSE}, {GRAPH, 1, NODE},
                 {GRAPH, 5, TENSOR},     {GRAPH, 15, SPARSE},     {SPARSE, 1, TENSOR},     {SPARSE, 2, TENSOR}};
    for (prn_field field; prn_wire_next(&wire, &field);) {
        if (level == TENSOR && field.number == PRN_TENSOR_LOCATION && prn_wire_int(&wire, &field) == 1) return true;
        for (size_t s = 0; s < sizeof steps / sizeof *steps; s++)
            if (steps[s].level == level && steps[s].field == field.number && field.type == PRN_WIRE_BYTES &&
                has_external(prn_wire_enter(&wire, &field), steps[s].inside))
                return true;
    }
    return false;
}

static prn_span graph_submodel_name_of(prn_wire message, uint32_t number)
{
    prn_span name = {0};
    for (prn_field field; prn_wire_next(&message, &field);)
        if (field.number == number) name = prn_wire_span(&message, &field);
    return name;
}

static const prn_name_entry *find_span(const cutter *c, prn_span name)
{
    char *copy = prn_bump_strndup((prn_bump *)(uintptr_t)&c->pool, name.size ? (const char *)name.data : "", name.size);
    return copy ? graph_submodel_find(c, copy) : NULL;
}

static prony_status put_initializer(cutter *c, prn_proto *graph, const prn_field *field, prn_wire message)
{
    const prn_initializer *all = c->file->graph.initializers;
    bool sparse = field->number == PRN_GRAPH_SPARSE, external = false;
    prn_wire named = message;
    if (sparse)
        for (prn_field inner; prn_wire_next(&message, &inner);)
            if (inner.number == 1) named = prn_wire_enter(&message, &inner);
    const prn_name_entry *entry = find_span(c, graph_submodel_name_of(named, PRN_TENSOR_NAME));
    if (!entry || entry->kind != KIND_INITIALIZER || !c->initializers[entry->item]) return PRONY_OK;
    for (prn_field inner; prn_wire_next(&named, &inner);)
        external = external || (inner.number == PRN_TENSOR_LOCATION && prn_wire_int(&named, &inner) == 1);
    if (external) return prn_proto_put_initializer(graph, &all[entry->item], c->error);
    prn_proto_put_bytes(graph, field->number, field->bytes.data, field->bytes.size);
    return PRONY_OK;
}

/* Writes nodes in the loader's order, because the file's own order is not defined. */
static prony_status graph_submodel_put_nodes(cutter *c, prn_proto *graph, prn_wire wire)
{
    const prn_graph *g = &c->file->graph;
    prn_span *spans = prn_bump_alloc(&c->pool, g->node_count + 1, sizeof *spans);
    size_t count = 0;
    if (!spans) return prn_no_memory(c->error);
    for (prn_field field; prn_wire_next(&wire, &field);)
        if (field.number == PRN_GRAPH_NODE && count < g->node_count) spans[count++] = field.bytes;
    for (size_t n = 0; n < g->node_count; n++) {
        if (!c->nodes[n] || g->nodes[n].file_index >= count) continue;
        prn_span span = spans[g->nodes[n].file_index];
        if (has_external(prn_wire_make(span.data, span.size), 0))
            return prn_fail(c->error, PRONY_UNSUPPORTED,
                            "%.300s: node " PRN_NAME " (%.60s): its subgraph has external data", c->file->name,
                            g->nodes[n].name, g->nodes[n].op_type);
        prn_proto_put_bytes(graph, PRN_GRAPH_NODE, span.data, span.size);
    }
    return PRONY_OK;
}

/* ---- types ---- */

static prony_status graph_submodel_put_type(cutter *c, prn_proto *graph, uint32_t field, const char *name,
                                            const prony_value *value)
{
    prn_proto shape = {0}, tensor = {0}, type = {0}, info = {0};
    if (value->kind != PRONY_TENSOR)
        return prn_fail(c->error, PRONY_INVALID_ARGUMENT,
                        "%.300s: " PRN_NAME " is a sequence or optional, and cannot be cut", c->file->name, name);
    if (value->dtype == PRONY_UNDEFINED)
        return prn_fail(c->error, PRONY_INVALID_ARGUMENT,
                        "%.300s: the type of " PRN_NAME " is known only when the model runs", c->file->name, name);
    for (int d = 0; d < value->shape.rank; d++) {
        prn_proto dim = {0};
        if (value->shape.dim[d] >= 0) prn_proto_put_int(&dim, 1, value->shape.dim[d]);
        prn_proto_put_message(&shape, 1, &dim);
    }
    prn_proto_put_int(&tensor, 1, value->dtype);
    if (value->shape.rank >= 0) prn_proto_put_message(&tensor, 2, &shape);
    prn_free(shape.data);
    prn_proto_put_message(&type, 1, &tensor);
    prn_proto_put_bytes(&info, 1, name, strlen(name));
    prn_proto_put_message(&info, 2, &type);
    prn_proto_put_message(graph, field, &info);
    return PRONY_OK;
}

/* Writes the declaration from one of the graph's own lists; false: not declared. */
static bool put_declared(cutter *c, prn_proto *graph, uint32_t as, const char *name, prn_wire wire)
{
    (void)c;
    for (prn_field field; prn_wire_next(&wire, &field);) {
        if (field.number != PRN_GRAPH_INPUT && field.number != PRN_GRAPH_OUTPUT && field.number != PRN_GRAPH_VALUE_INFO)
            continue;
        prn_span found = graph_submodel_name_of(prn_wire_enter(&wire, &field), 1);
        if (found.size != strlen(name) || memcmp(found.data, name, found.size) != 0) continue;
        prn_proto_put_bytes(graph, as, field.bytes.data, field.bytes.size);
        return true;
    }
    return false;
}

static prony_status graph_submodel_put_port(cutter *c, prn_proto *graph, uint32_t as, const char *name,
                                            const prony_value *known, prn_wire wire)
{
    prony_value value = {.shape = {.rank = -1}};
    if (known) return graph_submodel_put_type(c, graph, as, name, known);
    if (put_declared(c, graph, as, name, wire)) return PRONY_OK;
    PRN_TRY(c->part->type_of(c->part->user, name, &value, c->error));
    return graph_submodel_put_type(c, graph, as, name, &value);
}

static prony_status graph_submodel_put_ports(cutter *c, prn_proto *graph, prn_wire wire)
{
    const prn_graph *g = &c->file->graph;
    const prn_submodel *p = c->part;
    for (size_t i = 0; i < g->input_count; i++)
        if (c->inputs[i]) PRN_TRY(graph_submodel_put_port(c, graph, PRN_GRAPH_INPUT, g->inputs[i].name, NULL, wire));
    for (size_t k = 0; k < p->from_count; k++)
        PRN_TRY(graph_submodel_put_port(c, graph, PRN_GRAPH_INPUT, p->from[k], p->values ? p->values[k] : NULL, wire));
    for (size_t k = 0; k < p->to_count; k++)
        PRN_TRY(graph_submodel_put_port(c, graph, PRN_GRAPH_OUTPUT, p->to[k], NULL, wire));
    for (size_t k = 0; !p->to_count && k < g->output_count; k++)
        PRN_TRY(graph_submodel_put_port(c, graph, PRN_GRAPH_OUTPUT, g->outputs[k].name, NULL, wire));
    return PRONY_OK;
}

static bool is_port(const cutter *c, const char *name)
{
    const prn_submodel *p = c->part;
    for (size_t k = 0; k < p->from_count; k++)
        if (strcmp(p->from[k], name) == 0) return true;
    for (size_t k = 0; k < p->to_count; k++)
        if (strcmp(p->to[k], name) == 0) return true;
    return false;
}

static prony_status graph_submodel_put_graph(cutter *c, prn_proto *graph, prn_wire wire)
{
    PRN_TRY(graph_submodel_put_nodes(c, graph, wire));
    PRN_TRY(graph_submodel_put_ports(c, graph, wire));
    for (prn_field field; prn_wire_next(&wire, &field);) {
        if (field.number == PRN_GRAPH_NAME)
            prn_proto_put_bytes(graph, PRN_GRAPH_NAME, field.bytes.data, field.bytes.size);
        if (field.number == PRN_GRAPH_INITIALIZER || field.number == PRN_GRAPH_SPARSE)
            PRN_TRY(put_initializer(c, graph, &field, prn_wire_enter(&wire, &field)));
        if (field.number != PRN_GRAPH_VALUE_INFO) continue;
        const prn_name_entry *entry = find_span(c, graph_submodel_name_of(prn_wire_enter(&wire, &field), 1));
        if (entry && entry->kind == KIND_NODE && c->nodes[entry->item] && !is_port(c, entry->name))
            prn_proto_put_bytes(graph, PRN_GRAPH_VALUE_INFO, field.bytes.data, field.bytes.size);
    }
    return PRONY_OK;
}

/* Copies the model's fields, with the graph replaced and metadata and training information left out. */
static prony_status graph_submodel_put_model(cutter *c, prn_proto *model)
{
    prn_wire wire = prn_wire_make(c->file->data, (size_t)c->file->file_bytes);
    int64_t ir = c->file->ir_version;
    prn_proto_put_int(model, PRN_MODEL_IR_VERSION, ir < IR_WITH_FREE_INITIALIZERS ? IR_WITH_FREE_INITIALIZERS : ir);
    for (prn_field field; prn_wire_next(&wire, &field);) {
        if (field.number == PRN_MODEL_IR_VERSION || field.number == PRN_MODEL_METADATA ||
            field.number == PRN_MODEL_TRAINING)
            continue;
        if (field.number == PRN_MODEL_GRAPH) {
            prn_proto graph = {0};
            prony_status status = graph_submodel_put_graph(c, &graph, prn_wire_enter(&wire, &field));
            if (status == PRONY_OK && graph.size >= PRN_LARGEST_PROTOBUF)
                status = prn_fail(c->error, PRONY_UNSUPPORTED,
                                  "%.300s: the submodel has 2 GiB or more, the limit of one ONNX file", c->file->name);
            if (status == PRONY_OK) prn_proto_put_message(model, PRN_MODEL_GRAPH, &graph);
            prn_free(graph.data);
            PRN_TRY(status);
        } else {
            prn_proto_put_field(model, &field);
        }
    }
    return model->failed ? prn_no_memory(c->error) : PRONY_OK;
}

prony_status prn_part_write(uint8_t **out, size_t *size, const prn_model_file *file, const prn_submodel *part,
                            prony_error *error)
{
    cutter c = {.file = file, .part = part, .error = error};
    prn_proto model = {0};
    prony_status status = index_names(&c) ? reach(&c) : prn_no_memory(error);
    if (status == PRONY_OK) status = graph_submodel_put_model(&c, &model);
    prn_bump_release(&c.pool);
    if (status != PRONY_OK) {
        prn_free(model.data);
        return status;
    }
    *out = model.data;
    *size = model.size;
    return PRONY_OK;
}
