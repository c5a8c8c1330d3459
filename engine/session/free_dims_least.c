/* The least extents of a graph's values: those for which windows have an output and trees find their features.
 *
 * One walk from the last node to the first. Each value has the extents that its readers need, 1 at first; a node hands
 * the needs of its output to its inputs by the rule of its operator: a window needs (need - 1) stride + kernel - pads,
 * a tree its largest feature, an operator that works on elements what its output needs. Operators without a rule need
 * 1, so the result is a lower bound. Ranks are not known here; axes are counted from the first one. */
#include "base/attr.h"
#include "engine/session/free_dims.h"

#include <string.h>

enum { MOST_NEED = 1 << 20 }; /* a file may ask for any kernel; an extent too large to run is not proposed */

typedef struct value_need {
    int64_t of[PRONY_MAX_RANK];
    uint32_t features; /* bit d: axis d needs what a tree's features say */
} value_need;

struct prn_least_extents {
    prn_names index; /* into values */
    value_need *values;
    size_t count, capacity;
};

/* NULL: out of memory. */
static value_need *need_of(prn_least_extents *l, const char *name)
{
    uint32_t id;
    if (prn_names_get(&l->index, name, &id)) return &l->values[id];
    if (!PRN_GROW(l->values, l->capacity, l->count + 1) || !prn_names_put(&l->index, name, (uint32_t)l->count))
        return NULL;
    value_need *made = &l->values[l->count++];
    *made = (value_need){0};
    for (int d = 0; d < PRONY_MAX_RANK; d++) made->of[d] = 1;
    return made;
}

static void raise_need(value_need *to, int axis, int64_t extent, bool features)
{
    if (axis < 0 || axis >= PRONY_MAX_RANK || extent > MOST_NEED || extent <= to->of[axis]) return;
    to->of[axis] = extent;
    if (features) to->features |= UINT32_C(1) << axis;
}

static void raise_to(value_need *to, int axis, const value_need *from, int from_axis)
{
    if (from_axis >= 0 && from_axis < PRONY_MAX_RANK)
        raise_need(to, axis, from->of[from_axis], from->features >> from_axis & 1);
}

static bool is_one_of(const char *op, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(op, *names) == 0) return true;
    return false;
}

/* Operators whose outputs have the extents of each input of the same rank. */
static bool works_on_elements(const char *op)
{
    static const char *const names[] = {"Abs",
                                        "Add",
                                        "BatchNormalization",
                                        "Binarizer",
                                        "Cast",
                                        "Clip",
                                        "Div",
                                        "Dropout",
                                        "Elu",
                                        "Erf",
                                        "Exp",
                                        "Gelu",
                                        "HardSigmoid",
                                        "HardSwish",
                                        "Identity",
                                        "Imputer",
                                        "InstanceNormalization",
                                        "LeakyRelu",
                                        "Log",
                                        "Mish",
                                        "Mul",
                                        "Neg",
                                        "Normalizer",
                                        "PRelu",
                                        "Pow",
                                        "Relu",
                                        "Scaler",
                                        "Selu",
                                        "Sigmoid",
                                        "Softmax",
                                        "Softplus",
                                        "Sqrt",
                                        "Sub",
                                        "Tanh",
                                        NULL};
    return is_one_of(op, names);
}

static int64_t free_dims_least_number_at(const prn_attr *list, int i, int64_t otherwise)
{
    return list && i >= 0 && (size_t)i < list->count && list->ints ? list->ints[i] : otherwise;
}

/* The padding on one side; 0 if it is beyond reason. */
static int64_t pad_at(const prn_attr *pads, int i)
{
    const int64_t pad = free_dims_least_number_at(pads, i, 0);
    return pad > 0 && pad < MOST_NEED ? pad : 0;
}

/* Extents of a window along the axes behind the first two: the attribute, else those of the weight. */
static int window_extents(const prn_graph *graph, const prn_model_node *node, int64_t *out)
{
    const prn_attr *shape = prn_attr_find(&node->attributes, "kernel_shape");
    int axes = 0;
    for (; shape && shape->ints && (size_t)axes < shape->count && axes < 3; axes++) out[axes] = shape->ints[axes];
    if (axes || node->input_count < 2 || strcmp(node->op_type, "Conv") != 0) return axes;
    for (size_t i = 0; i < graph->initializer_count; i++) {
        const prn_initializer *w = &graph->initializers[i];
        if (strcmp(w->name, node->inputs[1]) != 0) continue;
        for (; axes + 2 < w->value.shape.rank && axes < 3; axes++) out[axes] = w->value.shape.dim[axes + 2];
    }
    return axes;
}

static void add_window(const prn_graph *graph, const prn_model_node *node, const value_need *out, value_need *in)
{
    int64_t kernel[3];
    const int axes = window_extents(graph, node, kernel);
    const prn_attr *strides = prn_attr_find(&node->attributes, "strides"),
                   *pads = prn_attr_find(&node->attributes, "pads"),
                   *dilations = prn_attr_find(&node->attributes, "dilations"),
                   *padding = prn_attr_find(&node->attributes, "auto_pad");
    const bool same = padding && padding->s.data && strncmp(padding->s.data, "SAME", 4) == 0;
    for (int k = 0; k < axes; k++) {
        const int64_t stride = free_dims_least_number_at(strides, k, 1),
                      dilation = free_dims_least_number_at(dilations, k, 1),
                      padded = pad_at(pads, k) + pad_at(pads, axes + k);
        if (kernel[k] < 1 || kernel[k] > MOST_NEED || stride < 1 || stride > MOST_NEED || dilation < 1 ||
            dilation > MOST_NEED)
            continue;
        const int64_t window = same ? 1 : (kernel[k] - 1) * dilation + 1 - padded;
        raise_need(in, k + 2, (out->of[k + 2] - 1) * stride + window, false);
    }
}

static void add_tree(const prn_model_node *node, value_need *in)
{
    const prn_attr *features = prn_attr_find(&node->attributes, "nodes_featureids");
    int64_t largest = -1;
    for (size_t i = 0; features && features->ints && i < features->count; i++)
        if (features->ints[i] > largest) largest = features->ints[i];
    if (largest >= 0 && largest < MOST_NEED) raise_need(in, 1, largest + 1, true);
}

/* Axes that Unsqueeze inserts, from an attribute or a constant, which may lie unaligned in the file. 0: not known. */
static size_t inserted_axes(const prn_graph *graph, const prn_model_node *node, int64_t out[PRONY_MAX_RANK])
{
    const prn_attr *attribute = prn_attr_find(&node->attributes, "axes");
    const void *data = attribute ? attribute->ints : NULL;
    size_t count = attribute ? attribute->count : 0;
    for (size_t i = 0; !attribute && node->input_count > 1 && i < graph->initializer_count; i++) {
        const prony_value *v = &graph->initializers[i].value;
        if (strcmp(graph->initializers[i].name, node->inputs[1]) != 0 || v->dtype != PRONY_INT64 || v->shape.rank != 1)
            continue;
        data = v->data;
        count = (size_t)v->shape.dim[0];
    }
    if (!data || count > PRONY_MAX_RANK) return 0;
    memcpy(out, data, count * sizeof *out);
    return count;
}

/* Hands needs back over Unsqueeze. Axes counted from the end stand for ranks that are not known here. */
static void add_unsqueezed(const prn_graph *graph, const prn_model_node *node, const value_need *out, value_need *in)
{
    int64_t axes[PRONY_MAX_RANK];
    const size_t count = inserted_axes(graph, node, axes);
    for (size_t i = 0; i < count; i++)
        if (axes[i] < 0) return;
    for (int d = 0, from = 0; count && from < PRONY_MAX_RANK; from++) {
        bool inserted = false;
        for (size_t i = 0; i < count; i++) inserted = inserted || axes[i] == from;
        if (!inserted) raise_to(in, d++, out, from);
    }
}

static bool add_needs(prn_least_extents *l, const prn_graph *graph, const prn_model_node *node)
{
    static const char *const windows[] = {"Conv", "MaxPool", "AveragePool", "LpPool", NULL};
    const bool ml = strcmp(node->domain, "ai.onnx.ml") == 0, plain = !*node->domain;
    if ((!ml && !plain) || !node->input_count || !node->output_count || !*node->inputs[0]) return true;
    const value_need *made = need_of(l, node->outputs[0]);
    if (!made) return false;
    const value_need out = *made;
    const bool elements = works_on_elements(node->op_type);
    for (size_t i = 0; i < (elements ? node->input_count : 1); i++) {
        value_need *in = *node->inputs[i] ? need_of(l, node->inputs[i]) : NULL;
        if (!in && *node->inputs[i]) return false;
        for (int d = 0; elements && in && d < PRONY_MAX_RANK; d++) raise_to(in, d, &out, d);
        if (!in || elements) continue;
        const prn_attr *perm = prn_attr_find(&node->attributes, "perm");
        if (plain && is_one_of(node->op_type, windows)) add_window(graph, node, &out, in);
        if (ml && strncmp(node->op_type, "TreeEnsemble", 12) == 0) add_tree(node, in);
        for (int d = 0; plain && strcmp(node->op_type, "Transpose") == 0 && perm && d < (int)perm->count; d++)
            if (perm->ints && perm->ints[d] >= 0 && perm->ints[d] < PRONY_MAX_RANK)
                raise_to(in, (int)perm->ints[d], &out, d);
        if (plain && strcmp(node->op_type, "Unsqueeze") == 0) add_unsqueezed(graph, node, &out, in);
    }
    return true;
}

prony_status prn_least_extents_find(prn_least_extents **out, const prn_graph *graph, prony_error *error)
{
    prn_least_extents *l = prn_calloc(1, sizeof *l);
    bool ok = l != NULL;
    for (size_t n = graph->node_count; ok && n-- > 0;) ok = add_needs(l, graph, &graph->nodes[n]);
    if (!ok) {
        prn_least_extents_free(l);
        return prn_no_memory(error);
    }
    *out = l;
    return PRONY_OK;
}

void prn_least_extents_free(prn_least_extents *l)
{
    if (!l) return;
    prn_names_free(&l->index);
    prn_free(l->values);
    prn_free(l);
}

int64_t prn_least_extent(const prn_least_extents *l, const char *name, int axis, bool *features)
{
    uint32_t id;
    *features = false;
    if (!prn_names_get(&l->index, name, &id) || axis >= PRONY_MAX_RANK) return 1;
    *features = l->values[id].features >> axis & 1;
    return l->values[id].of[axis];
}
