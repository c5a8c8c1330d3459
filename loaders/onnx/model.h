/* The model as stored in the file: graphs, nodes, initializers. Immutable after loading; nothing in it is executed or
 * inferred.
 *
 * Ownership: everything lives in the prn_model_file's pool or in the mapped file(s) (raw weights are borrowed views;
 * typed encodings whose bytes equal the little-endian raw form are borrowed too; the rest is decoded into the pool when
 * loading). Names are NUL-terminated copies (a name with an embedded NUL is an invalid model). Omitted names are "".
 * Everything is bounds-checked: list lengths against the bytes that could hold them, nesting depth (subgraphs, types)
 * at most 64, dims >= 0 with checked products, SSA (one producer per name and scope), acyclic (nodes are sorted
 * topologically here if the file has them in another order; a cycle is an error that names a node in it). */
#ifndef PRN_LOADERS_ONNX_MODEL_H
#define PRN_LOADERS_ONNX_MODEL_H

#include "base/memory/alloc.h"
#include "base/attr.h"
#include "base/os/file.h"
#include "base/status.h"

/* A named tensor of the graph. value.data may be unaligned for its type when it lies in the map: `aligned` says so, and
 * the engine copies unaligned constants when it binds. */
typedef struct prn_initializer {
    const char *name;
    prony_value value;
    uint64_t bytes; /* of value.data */
    bool aligned;   /* to 64 bits, or to the element size if that is smaller */
} prn_initializer;

/* A typed name: graph input, output or value_info. prony_value_info as in prony.h (dim -1 free; rank -1 undeclared). */
typedef prony_value_info prn_port;

typedef struct prn_model_node {
    const char *name; /* "" if the file gives none */
    const char *op_type;
    const char *domain; /* "ai.onnx" is normalised to "" */
    const char *overload;
    const char *const *inputs; /* "" marks an omitted optional input; trailing ones are dropped */
    size_t input_count;
    const char *const *outputs;
    size_t output_count;
    prn_attr_list attributes;
    uint32_t file_index; /* position in the file's node list before sorting */
} prn_model_node;

/* Gradient of ai.onnx.preview.training: it differentiates the graph that contains it; its attributes name tensors of
 * that graph. */
#define PRN_GRADIENT_DOMAIN "ai.onnx.preview.training"
bool prn_model_is_gradient(const prn_model_node *node);

/* A graph or subgraph. Names not produced inside refer to the enclosing graphs (a name found nowhere is an error). */
typedef struct prn_graph {
    const char *name;
    const prn_model_node *nodes; /* topologically sorted; stable where the file already was */
    size_t node_count;
    const prn_initializer *initializers;
    size_t initializer_count;
    const prn_port *inputs; /* required inputs, then optional ones */
    size_t input_count;
    const size_t *defaults; /* [optional_count] the initializer that an optional input has for a default */
    size_t optional_count;  /* of the main graph: inputs that are initializers too. Before IR 4 all initializers had to
                               be listed as inputs; those are constants here, as in subgraphs */
    const prn_port *outputs;
    size_t output_count;
    const char *const *captured; /* outer names that this graph or a graph nested in it uses */
    size_t captured_count;
    const struct prn_graph *parent;
} prn_graph;

typedef struct prn_opset_import {
    const char *domain;
    int64_t version;
} prn_opset_import;

/* A model-local function (FunctionProto). */
typedef struct prn_function {
    const char *domain, *name, *overload;
    const char *const *inputs, *const *outputs;
    size_t input_count, output_count;
    const char *const *attributes; /* names without default */
    size_t attribute_count;
    prn_attr_list attribute_defaults;
    const prn_model_node *nodes;
    size_t node_count;
    const prn_opset_import *opsets;
    size_t opset_count;
} prn_function;

typedef struct prn_model_file {
    const char *name; /* path as given, for messages and the report */
    uint64_t file_bytes;
    const uint8_t *data; /* the mapped model file, for hashing */
    int64_t ir_version;
    const char *producer, *producer_version;
    const prn_opset_import *opsets;
    size_t opset_count;
    const prn_function *functions;
    size_t function_count;
    prn_graph graph;
    /* private */
    prn_bump pool;
    prn_map map;
    bool copied;
    struct prn_external *external; /* maps of external data files */
} prn_model_file;

/* Opset version imported for `domain`, or 0. com.microsoft has one version, which exporters often do not import:
 * without an import it is 1, as in ONNX Runtime. */
int64_t prn_model_opset(const prn_model_file *file, const char *domain);
bool prn_model_imports(const prn_model_file *file, const char *domain);

/* External data lies in `data_folder`; NULL: in the model's folder. `copy`: nothing is mapped, so the files may change
 * afterwards. */
PRN_MUST_USE prony_status prn_model_open(prn_model_file **out, const char *path, const char *data_folder, bool copy,
                                         prony_error *error);
/* PRONY_IO_ERROR, naming the file, if a mapped file has changed. */
PRN_MUST_USE prony_status prn_model_unchanged(const prn_model_file *file, prony_error *error);
/* Releases the memory of these bytes of a mapped file; later reads load them again. Ignores other bytes. */
void prn_model_forget(const prn_model_file *file, const void *data, size_t bytes);
/* The same for all its files. */
void prn_model_forget_all(const prn_model_file *file);
PRN_MUST_USE prony_status prn_model_parse(prn_model_file **out, const char *name, const void *data, size_t size,
                                          prony_error *error);
/* SHA-256 of the file, read in pieces that do not stay in memory. */
void prn_model_hash(const prn_model_file *file, char text[65]);
void prn_model_close(prn_model_file *file);

#endif
