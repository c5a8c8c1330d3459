/* Attribute values of a node, made by the loader. Owned by the model's pool; immutable after loading. */
#ifndef PRN_BASE_ATTR_H
#define PRN_BASE_ATTR_H

#include "prony.h"

typedef enum prn_attr_type { /* numbers of ONNX AttributeProto.AttributeType */
                             PRN_ATTR_UNDEFINED = 0,
                             PRN_ATTR_FLOAT = 1,
                             PRN_ATTR_INT = 2,
                             PRN_ATTR_STRING = 3,
                             PRN_ATTR_TENSOR = 4,
                             PRN_ATTR_GRAPH = 5,
                             PRN_ATTR_FLOATS = 6,
                             PRN_ATTR_INTS = 7,
                             PRN_ATTR_STRINGS = 8,
                             PRN_ATTR_TENSORS = 9,
                             PRN_ATTR_GRAPHS = 10,
                             PRN_ATTR_SPARSE_TENSOR = 11,
                             PRN_ATTR_SPARSE_TENSORS = 12,
                             PRN_ATTR_TYPE_PROTO = 13,
                             PRN_ATTR_TYPE_PROTOS = 14
} prn_attr_type;

struct prn_graph; /* loaders/onnx/model.h */

typedef struct prn_attr {
    const char *name;
    prn_attr_type type;
    int64_t i;
    float f;
    prony_string s; /* `data` is NUL-terminated as well */
    const int64_t *ints;
    const float *floats;
    const prony_string *strings;
    size_t count;              /* of ints, floats, strings, tensors, graphs */
    const prony_value *tensor; /* aligned data, decoded or borrowed from the map; tensors: `count` of them. Sparse
                                  tensors are dense here; types have no data (kind, and dtype and shape of the innermost
                                  tensor) */
    struct prn_graph *graph;   /* graphs: `count` of them */
    const char *reference;     /* in a function's body: the name of the function's attribute that gives the value;
                                  otherwise NULL */
} prn_attr;

typedef struct prony_attributes { /* the name that prony_operator.h declares */
    const prn_attr *items;
    size_t count;
} prn_attr_list;

/* NULL: no attribute of that name. */
const prn_attr *prn_attr_find(const prn_attr_list *list, const char *name);
const char *prn_attr_type_name(prn_attr_type type);

#endif
