/* Attribute look-up, for the engine and for custom operators. Lists are short, so the search is linear. Results point
 * into the model; nothing is owned here. */
#include "base/attr.h"
#include "prony_operator.h"

#include <string.h>

const prn_attr *prn_attr_find(const prn_attr_list *list, const char *name)
{
    if (!list) return NULL;
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->items[i].name, name) == 0) return &list->items[i];
    }
    return NULL;
}

const char *prn_attr_type_name(prn_attr_type type)
{
    static const char *const names[] = {
        [PRN_ATTR_UNDEFINED] = "undefined",
        [PRN_ATTR_FLOAT] = "float",
        [PRN_ATTR_INT] = "int",
        [PRN_ATTR_STRING] = "string",
        [PRN_ATTR_TENSOR] = "tensor",
        [PRN_ATTR_GRAPH] = "graph",
        [PRN_ATTR_FLOATS] = "floats",
        [PRN_ATTR_INTS] = "ints",
        [PRN_ATTR_STRINGS] = "strings",
        [PRN_ATTR_TENSORS] = "tensors",
        [PRN_ATTR_GRAPHS] = "graphs",
        [PRN_ATTR_SPARSE_TENSOR] = "sparse tensor",
        [PRN_ATTR_SPARSE_TENSORS] = "sparse tensors",
        [PRN_ATTR_TYPE_PROTO] = "type",
        [PRN_ATTR_TYPE_PROTOS] = "types",
    };
    return (unsigned)type < sizeof names / sizeof names[0] ? names[type] : "unknown";
}

static const prn_attr *find_typed(const prony_node *node, const char *name, prn_attr_type type)
{
    const prn_attr *attr = node && name ? prn_attr_find(node->attributes, name) : NULL;
    return attr && attr->type == type ? attr : NULL;
}

bool prony_node_int(const prony_node *node, const char *name, int64_t *out)
{
    const prn_attr *attr = find_typed(node, name, PRN_ATTR_INT);
    if (attr && out) *out = attr->i;
    return attr && out;
}

bool prony_node_float(const prony_node *node, const char *name, float *out)
{
    const prn_attr *attr = find_typed(node, name, PRN_ATTR_FLOAT);
    if (attr && out) *out = attr->f;
    return attr && out;
}

bool prony_node_string(const prony_node *node, const char *name, prony_string *out)
{
    const prn_attr *attr = find_typed(node, name, PRN_ATTR_STRING);
    if (attr && out) *out = attr->s;
    return attr && out;
}

bool prony_node_ints(const prony_node *node, const char *name, const int64_t **out, size_t *count)
{
    const prn_attr *attr = find_typed(node, name, PRN_ATTR_INTS);
    if (!attr || !out || !count) return false;
    *out = attr->ints;
    *count = attr->count;
    return true;
}

bool prony_node_floats(const prony_node *node, const char *name, const float **out, size_t *count)
{
    const prn_attr *attr = find_typed(node, name, PRN_ATTR_FLOATS);
    if (!attr || !out || !count) return false;
    *out = attr->floats;
    *count = attr->count;
    return true;
}

bool prony_node_tensor(const prony_node *node, const char *name, const prony_value **out)
{
    const prn_attr *attr = find_typed(node, name, PRN_ATTR_TENSOR);
    if (attr && out) *out = attr->tensor;
    return attr && out;
}
