/* Protocol-buffer messages of ONNX, written into memory. Failures stick: a message that ran out of memory is marked as
 * failed, and so is every message that contains it. */
#ifndef PRN_LOADERS_ONNX_PROTO_WRITE_H
#define PRN_LOADERS_ONNX_PROTO_WRITE_H

#include "loaders/onnx/model.h"
#include "loaders/onnx/wire.h"

/* Fields of onnx.proto3 that are written. */
enum {
    PRN_MODEL_IR_VERSION = 1,
    PRN_MODEL_PRODUCER = 2,
    PRN_MODEL_PRODUCER_VERSION = 3,
    PRN_MODEL_GRAPH = 7,
    PRN_MODEL_OPSET = 8,
    PRN_MODEL_METADATA = 14,
    PRN_MODEL_TRAINING = 20
};
enum {
    PRN_GRAPH_NODE = 1,
    PRN_GRAPH_NAME = 2,
    PRN_GRAPH_INITIALIZER = 5,
    PRN_GRAPH_INPUT = 11,
    PRN_GRAPH_OUTPUT = 12,
    PRN_GRAPH_VALUE_INFO = 13,
    PRN_GRAPH_QUANTIZATION = 14,
    PRN_GRAPH_SPARSE = 15
};
enum {
    PRN_NODE_INPUT = 1,
    PRN_NODE_OUTPUT = 2,
    PRN_NODE_NAME = 3,
    PRN_NODE_OP_TYPE = 4,
    PRN_NODE_ATTRIBUTE = 5,
    PRN_NODE_DOMAIN = 7
};
enum {
    PRN_TENSOR_DIMS = 1,
    PRN_TENSOR_TYPE = 2,
    PRN_TENSOR_NAME = 8,
    PRN_TENSOR_RAW = 9,
    PRN_TENSOR_EXTERNAL = 13,
    PRN_TENSOR_LOCATION = 14
};

#define PRN_LARGEST_PROTOBUF ((size_t)INT32_MAX)

/* Zero-initialise it; `data` is released by prn_free. */
typedef struct prn_proto {
    uint8_t *data;
    size_t size, capacity;
    bool failed;
    bool counts; /* only `size` is computed: nothing is stored, and data that are put may be NULL */
} prn_proto;

void prn_proto_put_int(prn_proto *message, uint32_t field, int64_t value);
void prn_proto_put_bytes(prn_proto *message, uint32_t field, const void *data, size_t size);
void prn_proto_put_text(prn_proto *message, uint32_t field, const char *text);
/* Takes `inner` over, which is empty afterwards. */
void prn_proto_put_message(prn_proto *message, uint32_t field, prn_proto *inner);
/* A field as it was read. */
void prn_proto_put_field(prn_proto *message, const prn_field *field);
/* A TensorProto of these elements, row-major and little-endian. */
void prn_proto_put_tensor(prn_proto *graph, uint32_t field, const char *name, prony_dtype dtype,
                          const prony_shape *shape, const void *data, size_t bytes);
/* An initializer [count]. */
void prn_proto_put_vector(prn_proto *graph, const char *name, prony_dtype dtype, int64_t count, const void *data);
void prn_proto_put_attribute_int(prn_proto *node, const char *name, int64_t value);
/* An import of an operator set. */
void prn_proto_put_opset(prn_proto *model, const char *domain, int64_t version);
/* A weight with its data in it; strings are PRONY_UNSUPPORTED. */
PRN_MUST_USE prony_status prn_proto_put_initializer(prn_proto *graph, const prn_initializer *tensor,
                                                    prony_error *error);

#endif
