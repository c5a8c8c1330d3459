/* Random graphs as lists, as ONNX bytes and as text. Everything is in the graph's pool. */
#include "tests/support/random_graph.h"

#include "base/shape.h"

#include <stdlib.h>
#include <string.h>

bool rg_known(const rg_value *value)
{
    for (int d = 0; d < value->shape.rank; d++)
        if (value->shape.dim[d] < 0) return false;
    return value->shape.rank >= 0;
}

int rg_add_value(random_graph *g, rg_value value)
{
    if (!PRN_GROW(g->values, g->value_capacity, g->value_count + 1)) abort();
    g->values[g->value_count] = value;
    return (int)g->value_count++;
}

int *rg_copy_ids(random_graph *g, const int *ids, size_t count)
{
    int *copy = prn_bump_alloc(&g->pool, count + 1, sizeof *copy);
    if (!copy) abort();
    if (count) memcpy(copy, ids, count * sizeof *copy);
    return copy;
}

rg_node *rg_add_node(random_graph *g, rg_graph *to, const char *op, const int *in, size_t in_count,
                     const char *attributes)
{
    if (to->node_count == to->node_capacity) {
        size_t capacity = 2 * to->node_capacity + 8;
        rg_node *nodes = prn_bump_alloc(&g->pool, capacity, sizeof *nodes);
        if (!nodes) abort();
        if (to->node_count) memcpy(nodes, to->nodes, to->node_count * sizeof *nodes);
        to->nodes = nodes;
        to->node_capacity = capacity;
    }
    rg_node *node = &to->nodes[to->node_count++];
    *node = (rg_node){.op = op, .in = rg_copy_ids(g, in, in_count), .in_count = in_count};
    node->attributes = prn_bump_strndup(&g->pool, attributes, strlen(attributes));
    if (!node->attributes) abort();
    return node;
}

void random_graph_free(random_graph *g)
{
    if (!g) return;
    prn_free(g->values);
    prn_bump_release(&g->pool);
    free(g);
}

static size_t count_nodes(const rg_graph *graph)
{
    size_t count = graph->node_count;
    for (size_t n = 0; n < graph->node_count; n++)
        for (size_t b = 0; b < RG_MOST_BODIES; b++)
            if (graph->nodes[n].body[b]) count += count_nodes(graph->nodes[n].body[b]);
    return count;
}

size_t random_graph_nodes(const random_graph *g)
{
    return count_nodes(&g->main);
}

/* ---- contents ---- */

static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static void put(void *data, prony_dtype dtype, int64_t i, double x)
{
    switch (dtype) {
    case PRONY_FLOAT32:
        ((float *)data)[i] = (float)x;
        break;
    case PRONY_FLOAT64:
        ((double *)data)[i] = x;
        break;
    case PRONY_INT64:
        ((int64_t *)data)[i] = (int64_t)x;
        break;
    case PRONY_INT32:
        ((int32_t *)data)[i] = (int32_t)x;
        break;
    case PRONY_INT16:
        ((int16_t *)data)[i] = (int16_t)x;
        break;
    case PRONY_UINT16:
        ((uint16_t *)data)[i] = (uint16_t)x;
        break;
    case PRONY_INT8:
        ((int8_t *)data)[i] = (int8_t)x;
        break;
    case PRONY_UINT8:
        ((uint8_t *)data)[i] = (uint8_t)x;
        break;
    case PRONY_BOOL:
        ((uint8_t *)data)[i] = x >= 1;
        break;
    default:
        abort();
    }
}

double random_graph_element(const random_graph *g, int id, int64_t i)
{
    const rg_value *value = &g->values[id];
    const bool whole = value->dtype != PRONY_FLOAT32 && value->dtype != PRONY_FLOAT64;
    const double part = (double)(mix(g->seed * 1000003 + (uint64_t)id * 7919 + (uint64_t)i) >> 11) / 9007199254740992.0;
    if (value->ints) return (double)value->ints[i];
    if (value->reals) return value->reals[i];
    if (!(value->low < value->high)) return value->low;
    const double width = value->high - value->low + (whole ? 1 : 0), x = value->low + part * width;
    return whole ? (double)(int64_t)(x + 1000) - 1000 : x;
}

static void fill(const random_graph *g, int id, int64_t batch, void *data)
{
    const rg_value *value = &g->values[id];
    prony_shape shape = value->shape;
    if (batch >= 0 && shape.rank > 0) shape.dim[0] = batch;
    int64_t count = prony_shape_numel(&shape);
    for (int64_t i = 0; i < count; i++) put(data, value->dtype, i, random_graph_element(g, id, i));
}

void random_graph_fill(const random_graph *g, size_t index, int64_t batch, void *data)
{
    fill(g, g->main.inputs[index], batch, data);
}

/* ---- as ONNX ---- */

static void write_dims(char *text, size_t size, const prony_shape *shape, bool free_batch)
{
    size_t used = 0;
    text[0] = '\0';
    for (int d = 0; d < shape->rank; d++) {
        if (d) used += (size_t)snprintf(text + used, size - used, ",");
        if (shape->dim[d] < 0)
            used += (size_t)snprintf(text + used, size - used, "?");
        else if (free_batch && d == 0)
            used += (size_t)snprintf(text + used, size - used, "batch");
        else
            used += (size_t)snprintf(text + used, size - used, "%lld", (long long)shape->dim[d]);
    }
}

static char *names_of(const int *ids, size_t count)
{
    char *text = malloc(count * 12 + 1);
    if (!text) abort();
    text[0] = '\0';
    size_t used = 0;
    for (size_t i = 0; i < count; i++)
        used += (size_t)(ids[i] < 0 ? sprintf(text + used, "? ") : sprintf(text + used, "v%d ", ids[i]));
    return text;
}

static void build_graph(const random_graph *g, const rg_graph *graph, model_builder *m, bool free_batch)
{
    char name[16], dims[256];
    for (size_t i = 0; i < graph->input_count; i++) {
        const rg_value *value = &g->values[graph->inputs[i]];
        snprintf(name, sizeof name, "v%d", graph->inputs[i]);
        write_dims(dims, sizeof dims, &value->shape, free_batch);
        mb_input(m, name, value->dtype, dims);
    }
    for (size_t n = 0; n < graph->node_count; n++) {
        const rg_node *node = &graph->nodes[n];
        char *in = names_of(node->in, node->in_count), *out = names_of(node->out, node->out_count);
        mb_node(m, node->op, in, out, node->attributes);
        free(in);
        free(out);
        for (size_t b = 0; b < RG_MOST_BODIES; b++) {
            if (!node->body[b]) continue;
            mb_graph_begin(m, node->body_name[b]);
            build_graph(g, node->body[b], m, false);
            mb_graph_end(m);
        }
    }
    for (size_t k = 0; k < graph->output_count; k++) {
        snprintf(name, sizeof name, "v%d", graph->outputs[k]);
        mb_output(m, name, g->values[graph->outputs[k]].dtype, NULL);
    }
}

model_builder *random_graph_build(const random_graph *g)
{
    model_builder *m = mb_begin(g->opset ? g->opset : 17);
    char name[32], dims[256];
    bool free_batch = g->main.input_count > 0 && g->batched;
    for (size_t v = 0; v < g->value_count; v++) {
        const rg_value *value = &g->values[v];
        if (!value->constant) continue;
        void *data = calloc(prony_dtype_bytes(value->dtype, prony_shape_numel(&value->shape)) + 1, 1);
        if (!data) abort();
        fill(g, (int)v, -1, data);
        snprintf(name, sizeof name, "v%zu", v);
        write_dims(dims, sizeof dims, &value->shape, false);
        mb_initializer(m, name, value->dtype, dims, data);
        free(data);
    }
    for (size_t n = 0; n < g->main.node_count; n++) {
        if (strncmp(g->main.nodes[n].op, "com.microsoft::", 15) != 0) continue;
        mb_opset(m, "com.microsoft", 1);
        break;
    }
    build_graph(g, &g->main, m, free_batch);
    return m;
}

/* ---- as text ---- */

static void print_type(const random_graph *g, int id, FILE *to)
{
    const rg_value *value = &g->values[id];
    prony_value type = {.dtype = value->dtype, .shape = value->shape};
    char text[PRN_SHAPE_TEXT_BYTES];
    fprintf(to, "v%d %s", id, prn_value_text(&type, text));
}

static void print_graph(const random_graph *g, const rg_graph *graph, int indent, FILE *to)
{
    for (size_t i = 0; i < graph->input_count; i++) {
        fprintf(to, "%*sinput ", indent, "");
        print_type(g, graph->inputs[i], to);
        fprintf(to, "\n");
    }
    for (size_t n = 0; n < graph->node_count; n++) {
        const rg_node *node = &graph->nodes[n];
        fprintf(to, "%*s", indent, "");
        for (size_t k = 0; k < node->out_count; k++) {
            if (k) fprintf(to, ", ");
            print_type(g, node->out[k], to);
        }
        fprintf(to, " = %s(", node->op);
        for (size_t i = 0; i < node->in_count; i++)
            node->in[i] < 0 ? fprintf(to, "%s?", i ? ", " : "") : fprintf(to, "%sv%d", i ? ", " : "", node->in[i]);
        fprintf(to, ")%s%s\n", *node->attributes ? " " : "", node->attributes);
        for (size_t b = 0; b < RG_MOST_BODIES; b++) {
            if (!node->body[b]) continue;
            fprintf(to, "%*s  %s:\n", indent, "", node->body_name[b]);
            print_graph(g, node->body[b], indent + 4, to);
        }
    }
    for (size_t k = 0; k < graph->output_count; k++) fprintf(to, "%*soutput v%d\n", indent, "", graph->outputs[k]);
}

static bool mentions(const rg_graph *graph, int id)
{
    for (size_t k = 0; k < graph->output_count; k++)
        if (graph->outputs[k] == id) return true;
    for (size_t n = 0; n < graph->node_count; n++) {
        for (size_t i = 0; i < graph->nodes[n].in_count; i++)
            if (graph->nodes[n].in[i] == id) return true;
        for (size_t b = 0; b < RG_MOST_BODIES; b++)
            if (graph->nodes[n].body[b] && mentions(graph->nodes[n].body[b], id)) return true;
    }
    return false;
}

void random_graph_print(const random_graph *g, FILE *to)
{
    fprintf(to, "model %llu:\n", (unsigned long long)g->seed);
    for (size_t v = 0; v < g->value_count; v++) {
        const rg_value *value = &g->values[v];
        if (!value->constant || !mentions(&g->main, (int)v)) continue;
        fprintf(to, "  constant ");
        print_type(g, (int)v, to);
        int64_t count = prony_shape_numel(&value->shape);
        for (int64_t i = 0; value->ints && i < count; i++)
            fprintf(to, "%s%lld", i ? "," : " = ", (long long)value->ints[i]);
        for (int64_t i = 0; value->reals && i < count; i++) fprintf(to, "%s%.9g", i ? "," : " = ", value->reals[i]);
        if (!value->ints && !value->reals) fprintf(to, " in %.9g..%.9g", value->low, value->high);
        fprintf(to, "\n");
    }
    print_graph(g, &g->main, 2, to);
}
