/* Writes small ONNX models into memory, for tests. A test that runs out of memory here, or misuses this, aborts.
 *
 *     model_builder *m = mb_begin(13);
 *     mb_input(m, "x", PRONY_FLOAT32, "N,3,8,8");
 *     mb_initializer(m, "w", PRONY_FLOAT32, "4,3,3,3", weights);
 *     mb_node(m, "Conv", "x w", "c", "pads=[1,1,1,1] auto_pad='NOTSET'");
 *     mb_node(m, "Relu", "c", "y", "");
 *     mb_output(m, "y", PRONY_FLOAT32, "N,4,8,8");
 *     const void *bytes = mb_finish(m, &size);     // owned by m
 *     …
 *     mb_free(m);
 *
 * A branch of If, say, belongs to the node added last; graphs nest:
 *     mb_node(m, "If", "cond", "y", "");
 *     mb_graph_begin(m, "then_branch");  mb_node(…);  mb_output(…);  mb_graph_end(m);
 */
#ifndef PRN_TESTS_SUPPORT_MODEL_BUILDER_H
#define PRN_TESTS_SUPPORT_MODEL_BUILDER_H

#include "prony.h"

/* ---- protobuf ---- */

typedef struct mb_bytes {
    uint8_t *data;
    size_t size, capacity;
} mb_bytes;

void mb_put_raw(mb_bytes *to, const void *data, size_t size);
void mb_put_varint(mb_bytes *to, uint64_t value);
/* Tag and value of a field. */
void mb_put_int(mb_bytes *to, uint32_t field, int64_t value);
void mb_put_float(mb_bytes *to, uint32_t field, float value);
void mb_put_bytes(mb_bytes *to, uint32_t field, const void *data, size_t size);
void mb_put_text(mb_bytes *to, uint32_t field, const char *text);
/* As a message field; empties `message`. */
void mb_put_message(mb_bytes *to, uint32_t field, mb_bytes *message);
void mb_release(mb_bytes *bytes);

/* ---- models ---- */

typedef struct model_builder model_builder;

/* IR version 8 and ai.onnx `opset`. */
model_builder *mb_begin(int64_t opset);
void mb_opset(model_builder *m, const char *domain, int64_t version);

/* `dims`: comma-separated numbers and symbols, "?" for a free one without; "" is rank 0, NULL undeclared. */
void mb_input(model_builder *m, const char *name, prony_dtype dtype, const char *dims);
void mb_output(model_builder *m, const char *name, prony_dtype dtype, const char *dims);
/* An input or output that is a sequence or optional of tensors. */
void mb_container(model_builder *m, bool output, const char *name, prony_kind kind, prony_dtype dtype);
/* As raw data, prony_dtype_bytes() of it. */
void mb_initializer(model_builder *m, const char *name, prony_dtype dtype, const char *dims, const void *data);

/* Operator ("domain::Name" outside of ai.onnx); inputs and outputs separated by spaces, "?" an omitted one; attributes
 * separated by spaces: name=1, name=1.0 (a float has . or e), name='text', name=[1,2], name=[1.0,2.0], name=['a','b'],
 * name=[], and in functions name=@type:attribute (float, int, string, …) for the call's attribute. */
void mb_node(model_builder *m, const char *op, const char *inputs, const char *outputs, const char *attributes);
/* For the node added last. */
void mb_node_name(model_builder *m, const char *name);
void mb_tensor(model_builder *m, const char *attribute, prony_dtype dtype, const char *dims, const void *data);
void mb_graph_begin(model_builder *m, const char *attribute);
void mb_graph_end(model_builder *m);

/* A function "domain::Name" of the model: formal inputs, outputs and attributes separated by spaces, attributes with
 * defaults as in mb_node; its nodes up to mb_function_end use version `opset` of ai.onnx. Not inside of a graph. */
void mb_function_begin(model_builder *m, const char *function, const char *inputs, const char *outputs,
                       const char *attributes, const char *defaults, int64_t opset);
void mb_function_end(model_builder *m);

/* Buffers for hand-made fields: the current graph (GraphProto), its last node (NodeProto), the model (ModelProto). */
mb_bytes *mb_raw_graph(model_builder *m);
mb_bytes *mb_raw_node(model_builder *m);
mb_bytes *mb_raw_model(model_builder *m);

/* Closes what is open. The bytes belong to the builder. */
const void *mb_finish(model_builder *m, size_t *size);
void mb_free(model_builder *m);

#endif
