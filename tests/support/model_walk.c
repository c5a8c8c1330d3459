/* The walk over a loaded model. A promise of model.h that does not hold aborts, which the fuzzer reports as well. */
#include "tests/support/model_walk.h"

#include "base/shape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROMISE(condition)                                                                                             \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #condition);                                    \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

static uint64_t mix(uint64_t sum, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    for (size_t i = 0; i < size; i++) sum = (sum ^ bytes[i]) * 0x100000001b3u;
    return sum;
}

static uint64_t text_walk(const char *text)
{
    PROMISE(text);
    return mix(0, text, strlen(text) + 1);
}

static uint64_t string_walk(const prony_string *string)
{
    return mix(string->size, string->data, string->size);
}

uint64_t value_walk(const prony_value *value)
{
    PROMISE(value->shape.rank >= -1 && value->shape.rank <= PRONY_MAX_RANK && value->layout == 0);
    uint64_t sum = (uint64_t)value->kind * 31 + (uint64_t)value->dtype;
    for (int32_t d = 0; d < value->shape.rank; d++) {
        PROMISE(value->shape.dim[d] >= -1);
        sum = sum * 31 + (uint64_t)value->shape.dim[d];
    }
    for (size_t i = 0; i < value->count; i++) sum += value_walk(&value->items[i]);
    if (!value->data) return sum;
    size_t bytes = prn_value_bytes(value);
    PROMISE(bytes != SIZE_MAX);
    if (value->dtype == PRONY_STRING) {
        const prony_string *strings = value->data;
        for (size_t i = 0; i < bytes / sizeof *strings; i++) sum = sum * 31 + string_walk(&strings[i]);
        return sum;
    }
    const uint8_t *data = value->data;
    for (size_t i = 0; value->dtype == PRONY_BOOL && i < bytes; i++) PROMISE(data[i] <= 1);
    return mix(sum, data, bytes);
}

static bool is_aligned(const prony_value *value)
{
    size_t element = prony_dtype_bytes(value->dtype, 1);
    return (uintptr_t)value->data % (element < 8 ? element : 8) == 0;
}

static uint64_t graph_walk(const prn_graph *graph, const prn_graph *parent);

static uint64_t attr_walk(const prn_attr *attr, const prn_graph *graph)
{
    uint64_t sum = text_walk(attr->name) + (uint64_t)attr->type + (uint64_t)attr->i + mix(0, &attr->f, sizeof attr->f);
    sum += string_walk(&attr->s) + (uint64_t)attr->s.data[attr->s.size];
    if (attr->reference) sum += text_walk(attr->reference);
    for (size_t i = 0; i < attr->count; i++) {
        if (attr->ints) sum = sum * 31 + (uint64_t)attr->ints[i];
        if (attr->floats) sum = mix(sum, &attr->floats[i], sizeof attr->floats[i]);
        if (attr->strings) sum = sum * 31 + string_walk(&attr->strings[i]);
        if (attr->tensor) {
            sum = sum * 31 + value_walk(&attr->tensor[i]);
            PROMISE(!attr->tensor[i].data || is_aligned(&attr->tensor[i]));
        }
        if (attr->graph) sum = sum * 31 + graph_walk(&attr->graph[i], graph);
    }
    return sum;
}

static uint64_t attrs_walk(const prn_attr_list *list, const prn_graph *graph)
{
    uint64_t sum = list->count;
    for (size_t i = 0; i < list->count; i++) sum = sum * 31 + attr_walk(&list->items[i], graph);
    return sum;
}

static uint64_t names_walk(const char *const *names, size_t count)
{
    uint64_t sum = count;
    for (size_t i = 0; i < count; i++) sum = sum * 31 + text_walk(names[i]);
    return sum;
}

static uint64_t nodes_walk(const prn_model_node *nodes, size_t count, const prn_graph *graph)
{
    uint64_t sum = count;
    for (size_t n = 0; n < count; n++) {
        const prn_model_node *node = &nodes[n];
        PROMISE(node->op_type[0] && node->file_index < count && strcmp(node->domain, "ai.onnx") != 0);
        PROMISE(!node->input_count || node->inputs[node->input_count - 1][0]);
        sum = sum * 31 + text_walk(node->name) + text_walk(node->op_type) + text_walk(node->domain) +
              text_walk(node->overload) + node->file_index;
        sum += names_walk(node->inputs, node->input_count) + names_walk(node->outputs, node->output_count);
        sum += attrs_walk(&node->attributes, graph);
    }
    return sum;
}

static uint64_t ports_walk(const prn_port *ports, size_t count)
{
    uint64_t sum = count;
    for (size_t i = 0; i < count; i++) {
        prony_value type = {.kind = ports[i].kind, .dtype = ports[i].dtype, .shape = ports[i].shape};
        PROMISE(ports[i].name[0]);
        sum = sum * 31 + text_walk(ports[i].name) + value_walk(&type);
        for (int32_t d = 0; d < ports[i].shape.rank; d++) {
            if (ports[i].dim_names[d]) sum += text_walk(ports[i].dim_names[d]);
        }
    }
    return sum;
}

static uint64_t graph_walk(const prn_graph *graph, const prn_graph *parent)
{
    /* A function's body is not a prn_graph of the file, but graphs in its nodes have it as parent. */
    PROMISE(parent ? graph->parent == parent : true);
    uint64_t sum = text_walk(graph->name) + ports_walk(graph->inputs, graph->input_count) +
                   ports_walk(graph->outputs, graph->output_count) + names_walk(graph->captured, graph->captured_count);
    for (size_t i = 0; i < graph->initializer_count; i++) {
        const prn_initializer *tensor = &graph->initializers[i];
        PROMISE(tensor->value.data && tensor->bytes == prn_value_bytes(&tensor->value));
        PROMISE(tensor->aligned == is_aligned(&tensor->value));
        sum = sum * 31 + text_walk(tensor->name) + value_walk(&tensor->value);
    }
    return sum + nodes_walk(graph->nodes, graph->node_count, graph);
}

uint64_t model_walk(const prn_model_file *file)
{
    PROMISE(file->ir_version >= 3 && file->opset_count > 0 && !file->graph.parent && !file->graph.captured_count);
    uint64_t sum = text_walk(file->name) + text_walk(file->producer) + text_walk(file->producer_version);
    sum += mix(0, file->data, file->file_bytes);
    for (size_t i = 0; i < file->opset_count; i++) {
        PROMISE(prn_model_opset(file, file->opsets[i].domain) == file->opsets[i].version);
        sum = sum * 31 + text_walk(file->opsets[i].domain) + (uint64_t)file->opsets[i].version;
    }
    for (size_t i = 0; i < file->function_count; i++) {
        const prn_function *f = &file->functions[i];
        sum = sum * 31 + text_walk(f->domain) + text_walk(f->name) + text_walk(f->overload);
        sum += names_walk(f->inputs, f->input_count) + names_walk(f->outputs, f->output_count) +
               names_walk(f->attributes, f->attribute_count) + attrs_walk(&f->attribute_defaults, NULL);
        sum += nodes_walk(f->nodes, f->node_count, NULL);
    }
    return sum + graph_walk(&file->graph, NULL);
}
