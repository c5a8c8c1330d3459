/* State that the loader's files share while one file is read. Internal to loaders/.
 *
 * Every prn_*_read below walks one protobuf message (a prn_wire by value), fills a zeroed struct and allocates from
 * reader->pool, so a failure needs no cleanup: the pool's owner releases it. A failure's message starts at the byte or
 * value in question; each enclosing reader puts its name in front. */
#ifndef PRN_LOADERS_ONNX_READER_H
#define PRN_LOADERS_ONNX_READER_H

#include "loaders/onnx/model.h"
#include "loaders/onnx/wire.h"

#define PRN_MAX_NESTING 64

/* Limit of all dense bytes of a model's sparse tensors. No other data can be larger than the bytes that it is read
 * from. */
#define PRN_SPARSE_LIMIT_BYTES ((uint64_t)256 << 20)

/* A mapped file of external data; a list, in the pool. */
typedef struct prn_external {
    struct prn_external *next;
    const char *location; /* as the model names it */
    const char *path;     /* as messages name it */
    prn_map map;
} prn_external;

typedef struct prn_reader {
    prn_bump *pool;
    const char *path;        /* of the model file; external data must lie in its folder; NULL: no external data
                                allowed */
    const char *data_folder; /* folder of external data instead; NULL: the model's */
    prn_external **external; /* list of maps; with path */
    bool copy;               /* external data is read instead of mapped */
    uint64_t sparse_bytes;   /* taken so far */
    int depth;               /* of graphs around the current one */
    int64_t ir_version;
    bool in_function; /* attributes may refer to the function's */
    prony_error *error;
} prn_reader;

/* Zeroed array in the pool; NULL on failure only, also for count 0. */
#define PRN_NEW(reader, count, type) ((type *)prn_bump_alloc((reader)->pool, (count) ? (count) : 1, sizeof(type)))

/* NUL-terminated copy of a field; PRONY_INVALID_MODEL if it contains a NUL. `what` names it in the message. */
PRN_MUST_USE prony_status prn_name_read(prn_reader *reader, const char **out, prn_span span, const char *what);

/* ---- tensors (tensor_proto.c, sparse_tensor.c, external.c) ---- */

/* value.data is borrowed from the file where the encoding is the plain little-endian one, else decoded. */
PRN_MUST_USE prony_status prn_tensor_read(prn_reader *reader, prn_wire wire, prn_initializer *out);
/* Dense tensor from a SparseTensorProto; its name is that of the values. */
PRN_MUST_USE prony_status prn_sparse_tensor_read(prn_reader *reader, prn_wire wire, prn_initializer *out);
/* Replaces unaligned data by an aligned copy. */
PRN_MUST_USE prony_status prn_tensor_align(prn_reader *reader, prn_initializer *tensor);
/* `bytes` of external data described by the StringStringEntryProto list in field 13 of a TensorProto. */
PRN_MUST_USE prony_status prn_external_read(prn_reader *reader, prn_wire tensor, uint64_t bytes, prn_span *out);
/* See prn_model_unchanged. */
PRN_MUST_USE prony_status prn_external_unchanged(const prn_external *list, prony_error *error);
/* See prn_model_forget_all. */
void prn_external_forget_all(const prn_external *list);
/* See prn_model_forget. */
void prn_external_forget(const prn_external *list, const void *data, size_t bytes);
void prn_external_close(prn_external *list);
/* Appends a dimension; refuses negative ones and rank above PRONY_MAX_RANK. */
PRN_MUST_USE prony_status prn_dim_append(prony_shape *shape, int64_t dim, prony_error *error);

/* ---- types, attributes, graphs ---- */

/* TypeProto. Kind is the outermost one; element type and shape are the innermost tensor's. Types that are neither
 * tensor, sequence nor optional leave dtype PRONY_UNDEFINED and rank -1. */
PRN_MUST_USE prony_status prn_type_read(prn_reader *reader, prn_wire wire, prn_port *out);
/* ValueInfoProto. */
PRN_MUST_USE prony_status prn_port_read(prn_reader *reader, prn_wire wire, prn_port *out);
/* The attributes in field `number` of a message that has `count` of them; two of one name are an error. */
PRN_MUST_USE prony_status prn_attr_list_read(prn_reader *reader, prn_wire wire, uint32_t number, size_t count,
                                             prn_attr_list *out);
PRN_MUST_USE prony_status prn_node_read(prn_reader *reader, prn_wire wire, prn_model_node *out);
/* The nodes in field `number` of a message that has `count` of them. */
PRN_MUST_USE prony_status prn_node_list_read(prn_reader *reader, prn_wire wire, uint32_t number, size_t count,
                                             const prn_model_node **out);
PRN_MUST_USE prony_status prn_graph_read(prn_reader *reader, prn_wire wire, prn_graph *out);

/* ---- names (scope.c) ---- */

/* Checks names, sorts nodes and fills `captured` and `parent`, subgraphs first. */
PRN_MUST_USE prony_status prn_scope_resolve_model(prn_reader *reader, prn_graph *graph);
PRN_MUST_USE prony_status prn_scope_resolve_function(prn_reader *reader, prn_function *function);

/* A name and its meaning. Sorted tables answer look-ups in O(log n) for any names in a file.
 */
typedef struct prn_name_entry {
    const char *name;
    uint32_t kind;
    size_t item;
} prn_name_entry;

/* By name, then kind, then item. */
void prn_name_entries_sort(prn_name_entry *entries, size_t count);
/* First entry of that name, or NULL. */
const prn_name_entry *prn_name_entries_find(const prn_name_entry *entries, size_t count, const char *name);

/* Names in messages are cut to this many bytes: PRN_NAME in the format, the name as argument. */
#define PRN_NAME "'%.120s'"

#endif
