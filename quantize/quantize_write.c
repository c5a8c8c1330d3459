/*   x ── QuantizeLinear ── DequantizeLinear ──┐
 *        w codes ── DequantizeLinear ────────Conv ── Relu ── QuantizeLinear ── DequantizeLinear ── y
 *        b codes ── DequantizeLinear ──────────┘
 *
 * A value keeps its name for its readers: what a quantized node makes is called y once it was stored, and what it
 * was before has a new name. Of a value that floats make, quantized nodes alone read the stored form.
 *
 * Without calibration a product of matrices becomes DynamicQuantizeMatMul of com.microsoft, which finds the range of x
 * in each run and makes floats.
 *
 * Nodes, weights and types that stay are copied as the file has them, field by field. */
#include "quantize/quantize_write.h"
#include "loaders/onnx/proto_write.h"
#include "quantize/quantize_weights.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char contrib[] = "com.microsoft";

enum { LEAST_OPSET = 13, LEAST_IR = 7, MOST_INPUTS = 4 };

typedef struct writer {
    const prn_quant_plan *plan;
    const prony_calibration *calibration;
    bool power_of_two;
    prn_bump pool;
    prn_proto graph;
    const char **stored;                    /* per value: what quantized nodes read; NULL: not stored yet */
    const prn_calibrated **steps;           /* per value */
    const char **scale_names, **zero_names; /* per group */
    bool *needed;                           /* per value: an initializer that is still read */
    prn_span *nodes;                        /* of the file, per node of the graph */
    prony_error *error;
} writer;

/* ---- names ---- */

static bool is_taken(const writer *w, const char *name)
{
    return prn_quant_value_find(w->plan, name) != PRN_QUANT_NONE;
}

/* A name that the model does not have: `base` and `ending`, and a number where need be. */
static const char *new_name(writer *w, const char *base, const char *ending)
{
    const char *name = prn_bump_printf(&w->pool, "%s%s", base, ending);
    for (int k = 2; name && is_taken(w, name); k++) name = prn_bump_printf(&w->pool, "%s%s_%d", base, ending, k);
    return name;
}

/* ---- pieces ---- */

/* A new node of one output, called after it; inputs end with NULL. `key` NULL: no attribute. */
static void put_node(writer *w, const char *op, const char *const *inputs, const char *output, const char *key,
                     int64_t value)
{
    prn_proto node = {0};
    const char *name = prn_bump_printf(&w->pool, "%s_%s", output, op);
    for (; *inputs; inputs++) prn_proto_put_text(&node, PRN_NODE_INPUT, *inputs);
    prn_proto_put_text(&node, PRN_NODE_OUTPUT, output);
    if (name) prn_proto_put_text(&node, PRN_NODE_NAME, name);
    prn_proto_put_text(&node, PRN_NODE_OP_TYPE, op);
    if (key) prn_proto_put_attribute_int(&node, key, value);
    prn_proto_put_message(&w->graph, PRN_GRAPH_NODE, &node);
}

static void put_constant(writer *w, const char *name, prony_dtype dtype, const prony_shape *shape, const void *data)
{
    prn_proto_put_tensor(&w->graph, PRN_GRAPH_INITIALIZER, name, dtype, shape, data,
                         prony_dtype_bytes(dtype, prony_shape_numel(shape)));
}

/* The file's node with other inputs and outputs; NULL: its own. */
static void put_changed(writer *w, size_t n, const char *const *inputs, size_t input_count, const char *output)
{
    const prn_model_node *node = &w->plan->graph->nodes[n];
    prn_wire wire = prn_wire_make(w->nodes[n].data, w->nodes[n].size);
    prn_proto out = {0};
    for (size_t i = 0; i < input_count; i++) prn_proto_put_text(&out, PRN_NODE_INPUT, inputs[i]);
    for (size_t k = 0; k < node->output_count; k++)
        prn_proto_put_text(&out, PRN_NODE_OUTPUT, k == 0 && output ? output : node->outputs[k]);
    for (prn_field field; prn_wire_next(&wire, &field);) {
        if (field.number != PRN_NODE_INPUT && field.number != PRN_NODE_OUTPUT) prn_proto_put_field(&out, &field);
    }
    prn_proto_put_message(&w->graph, PRN_GRAPH_NODE, &out);
}

/* ---- stored values ---- */

/* Scale and zero point of a value's group, as the file has them. With powers of two, sums lie on halves of a step
 * often: an even zero point has those rounded the same way by engines that add it before they round (QLinearAdd of ONNX
 * Runtime). */
static float quantize_write_step_of(const writer *w, size_t v, uint8_t *zero)
{
    const prn_calibrated *row = w->steps[w->plan->values[v].group];
    float scale = (float)row->scale;
    *zero = (uint8_t)row->zero_point;
    if (!w->power_of_two) return scale;
    scale = prn_power_of_two(scale);
    *zero = (uint8_t)fmin(2 * rint(-row->low / (double)scale / 2), 254);
    return scale;
}

static prony_status name_step(writer *w, size_t group)
{
    const char *name = w->plan->values[group].name;
    if (w->scale_names[group]) return PRONY_OK;
    w->scale_names[group] = new_name(w, name, "_scale");
    w->zero_names[group] = new_name(w, name, "_zero_point");
    if (!w->scale_names[group] || !w->zero_names[group]) return prn_no_memory(w->error);
    uint8_t zero;
    const float scale = quantize_write_step_of(w, group, &zero);
    const prony_shape scalar = {0};
    put_constant(w, w->scale_names[group], PRONY_FLOAT32, &scalar, &scale);
    put_constant(w, w->zero_names[group], PRONY_UINT8, &scalar, &zero);
    return PRONY_OK;
}

/* QuantizeLinear and DequantizeLinear: `from` becomes `to`. */
static prony_status put_pair(writer *w, size_t v, const char *from, const char *to)
{
    const size_t group = w->plan->values[v].group;
    const char *codes = new_name(w, w->plan->values[v].name, "_quantized");
    PRN_TRY(name_step(w, group));
    if (!codes) return prn_no_memory(w->error);
    put_node(w, "QuantizeLinear", (const char *const[]){from, w->scale_names[group], w->zero_names[group], NULL}, codes,
             NULL, 0);
    put_node(w, "DequantizeLinear", (const char *const[]){codes, w->scale_names[group], w->zero_names[group], NULL}, to,
             NULL, 0);
    w->stored[v] = to;
    return PRONY_OK;
}

/* The name that a quantized node reads instead of an activation. */
static prony_status read_stored(writer *w, const char *name, const char **out)
{
    const size_t v = prn_quant_value_find(w->plan, name);
    if (!w->stored[v]) {
        const char *to = new_name(w, name, "_dequantized");
        if (!to) return prn_no_memory(w->error);
        PRN_TRY(put_pair(w, v, name, to));
    }
    *out = w->stored[v];
    return PRONY_OK;
}

/* The name of a quantized node's result before it is stored; NULL: out of memory. */
static const char *raw_name(writer *w, size_t v)
{
    return new_name(w, w->plan->values[v].name, "_float");
}

/* ---- nodes on codes ---- */

/* Writes codes, scales and the int32 bias, if there is one, as constants with a DequantizeLinear each, and puts the
 * results' names into `inputs`. Names contain the node's result, because nodes may share weights whose scales differ
 * with the norm behind. */
static prony_status put_weights(writer *w, size_t n, const char **inputs, size_t *input_count)
{
    const prn_quant_node *q = &w->plan->nodes[n];
    const prn_model_node *node = &w->plan->graph->nodes[n];
    const char *base = prn_bump_printf(&w->pool, "%s_of_%s", node->inputs[1], w->plan->values[q->result].name);
    prn_bump room = {0};
    prn_quant_weights made;
    uint8_t zero;
    if (!base) return prn_no_memory(w->error);
    const char *codes = new_name(w, base, "_codes"), *scales = new_name(w, base, "_scale"),
               *floats = new_name(w, base, "");
    const char *bias = new_name(w, base, "_bias_codes"), *steps = new_name(w, base, "_bias_scale"),
               *sums = new_name(w, base, "_bias");
    if (!codes || !scales || !floats || !bias || !steps || !sums) return prn_no_memory(w->error);
    const float scale = quantize_write_step_of(w, prn_quant_value_find(w->plan, node->inputs[0]), &zero);
    prony_status status = prn_quant_weights_make(&made, w->plan, n, scale, w->power_of_two, &room, w->error);
    if (status == PRONY_OK) {
        put_constant(w, codes, PRONY_INT8, &made.shape, made.codes);
        prn_proto_put_vector(&w->graph, scales, PRONY_FLOAT32, q->channels, made.scales);
        put_node(w, "DequantizeLinear", (const char *const[]){codes, scales, NULL}, floats, "axis", q->channel_axis);
        inputs[1] = floats;
        *input_count = 2;
    }
    if (status == PRONY_OK && made.has_bias) {
        prn_proto_put_vector(&w->graph, bias, PRONY_INT32, q->channels, made.bias_codes);
        prn_proto_put_vector(&w->graph, steps, PRONY_FLOAT32, q->channels, made.bias_scales);
        put_node(w, "DequantizeLinear", (const char *const[]){bias, steps, NULL}, sums, "axis", 0);
        inputs[2] = sums;
        *input_count = 3;
    }
    prn_bump_release(&room);
    return status;
}

/* The pair behind a node's result: after the clamp that it takes along. */
static prony_status store_result(writer *w, size_t n, const char *raw)
{
    const size_t v = w->plan->nodes[n].result;
    return put_pair(w, v, raw, w->plan->values[v].name);
}

/* A contraction whose result is `output`; the bias of a MatMul, its third input here, is added by a node of its own. */
static prony_status put_contraction(writer *w, size_t n, const char *const *inputs, size_t count, const char *output)
{
    const prn_quant_node *q = &w->plan->nodes[n];
    if (q->kind != PRN_QUANT_MATMUL || count < 3) {
        put_changed(w, n, inputs, count, output);
        return PRONY_OK;
    }
    const char *product = new_name(w, w->plan->values[q->result].name, "_product");
    if (!product) return prn_no_memory(w->error);
    put_changed(w, n, inputs, 2, product);
    put_changed(w, q->norm, (const char *const[]){product, inputs[2]}, 2, output);
    return PRONY_OK;
}

static prony_status put_static(writer *w, size_t n)
{
    const prn_quant_node *q = &w->plan->nodes[n];
    const prn_model_node *node = &w->plan->graph->nodes[n];
    size_t count = node->input_count;
    const char **inputs = prn_bump_alloc(&w->pool, count + MOST_INPUTS, sizeof *inputs);
    if (!inputs) return prn_no_memory(w->error);
    for (size_t i = 0; i < count; i++) inputs[i] = node->inputs[i];
    for (size_t i = 0; i < prn_quant_operands(w->plan, n); i++) PRN_TRY(read_stored(w, node->inputs[i], &inputs[i]));
    if (prn_quant_is_contraction(q)) PRN_TRY(put_weights(w, n, inputs, &count));
    const char *output = q->norm != PRN_QUANT_NONE ? w->plan->graph->nodes[q->norm].outputs[0] : node->outputs[0];
    if (q->clamp != PRN_QUANT_NONE) return put_contraction(w, n, inputs, count, output);
    output = raw_name(w, q->result);
    if (!output) return prn_no_memory(w->error);
    PRN_TRY(put_contraction(w, n, inputs, count, output));
    return store_result(w, n, output);
}

/* Transposes [rows, columns]. */
static void quantize_write_transpose(const int8_t *from, int8_t *to, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) to[j * rows + i] = from[i * columns + j];
}

/* Writes node n as DynamicQuantizeMatMul, whose inputs are A, codes, scales, zero points ("": 0) and bias. The operator
 * takes B as [K, N], so weights of a transposed product are transposed. The bias stays in float, because the scale of A
 * is known in a run only. */
static prony_status put_dynamic(writer *w, size_t n)
{
    const prn_quant_node *q = &w->plan->nodes[n];
    const prn_model_node *node = &w->plan->graph->nodes[n];
    const char *base = prn_bump_printf(&w->pool, "%s_of_%s", node->inputs[1], node->outputs[0]);
    prn_bump room = {0};
    prn_quant_weights made;
    if (!base) return prn_no_memory(w->error);
    const char *inputs[] = {node->inputs[0], new_name(w, base, "_codes"), new_name(w, base, "_scale"), "",
                            new_name(w, base, "_bias")};
    if (!inputs[1] || !inputs[2] || !inputs[4]) return prn_no_memory(w->error);
    prony_status status = prn_quant_weights_make(&made, w->plan, n, 0, w->power_of_two, &room, w->error);
    int8_t *codes = status == PRONY_OK ? made.codes : NULL;
    float *bias = prn_bump_alloc(&room, (size_t)q->channels, sizeof *bias);
    if (status == PRONY_OK && q->channel_axis == 0) {
        codes = prn_bump_alloc(&room, (size_t)prony_shape_numel(&made.shape), 1);
        if (codes) quantize_write_transpose(made.codes, codes, made.shape.dim[0], made.shape.dim[1]);
        made.shape = (prony_shape){2, {made.shape.dim[1], made.shape.dim[0]}};
    }
    if (status == PRONY_OK && (!codes || !bias)) status = prn_no_memory(w->error);
    if (status == PRONY_OK) {
        prn_proto out = {0};
        for (int64_t c = 0; c < q->channels; c++) bias[c] = (float)made.bias[c];
        put_constant(w, inputs[1], PRONY_INT8, &made.shape, codes);
        prn_proto_put_vector(&w->graph, inputs[2], PRONY_FLOAT32, q->channels, made.scales);
        if (made.has_bias) prn_proto_put_vector(&w->graph, inputs[4], PRONY_FLOAT32, q->channels, bias);
        for (size_t i = 0; i < (made.has_bias ? 5 : 3); i++) prn_proto_put_text(&out, PRN_NODE_INPUT, inputs[i]);
        prn_proto_put_text(&out, PRN_NODE_OUTPUT,
                           q->norm != PRN_QUANT_NONE ? w->plan->graph->nodes[q->norm].outputs[0] : node->outputs[0]);
        prn_proto_put_text(&out, PRN_NODE_NAME, node->name);
        prn_proto_put_text(&out, PRN_NODE_OP_TYPE, "DynamicQuantizeMatMul");
        prn_proto_put_text(&out, PRN_NODE_DOMAIN, contrib);
        prn_proto_put_message(&w->graph, PRN_GRAPH_NODE, &out);
    }
    prn_bump_release(&room);
    return status;
}

static prony_status put_clamp(writer *w, size_t n)
{
    const prn_model_node *node = &w->plan->graph->nodes[n];
    const size_t owner = w->plan->nodes[n].clamp_of;
    const char *raw = raw_name(w, w->plan->nodes[owner].result);
    if (!raw) return prn_no_memory(w->error);
    put_changed(w, n, node->inputs, node->input_count, raw);
    return store_result(w, owner, raw);
}

static prony_status put_any(writer *w, size_t n)
{
    const prn_quant_plan *plan = w->plan;
    const prn_quant_node *q = &plan->nodes[n];
    const prn_model_node *node = &plan->graph->nodes[n];
    if (q->norm_of != PRN_QUANT_NONE && plan->nodes[q->norm_of].quantized) return PRONY_OK;
    if (node->output_count && !*node->domain && strcmp(node->op_type, "Constant") == 0) {
        const size_t v = prn_quant_value_find(plan, node->outputs[0]);
        if (v != PRN_QUANT_NONE && !w->needed[v]) return PRONY_OK;
    }
    if (q->quantized) return plan->dynamic ? put_dynamic(w, n) : put_static(w, n);
    if (!plan->dynamic && q->clamp_of != PRN_QUANT_NONE && plan->nodes[q->clamp_of].quantized) return put_clamp(w, n);
    prn_proto_put_bytes(&w->graph, PRN_GRAPH_NODE, w->nodes[n].data, w->nodes[n].size);
    return PRONY_OK;
}

/* ---- the graph around them ---- */

/* Initializers that are read by what stays, outputs and subgraphs included. */
static void mark_needed(writer *w)
{
    const prn_quant_plan *plan = w->plan;
    for (size_t v = 0; v < plan->value_count; v++) {
        const prn_quant_value *value = &plan->values[v];
        w->needed[v] = value->outside;
        for (size_t u = 0; u < value->use_count && !w->needed[v]; u++) {
            const prn_quant_node *q = &plan->nodes[value->uses[u].node];
            const bool gone = q->norm_of != PRN_QUANT_NONE && plan->nodes[q->norm_of].quantized;
            const bool weight = q->quantized && prn_quant_is_contraction(q) && value->uses[u].input > 0;
            w->needed[v] = !gone && !weight;
        }
    }
}

static prn_span text_field(prn_wire message, uint32_t number)
{
    prn_span found = {0};
    for (prn_field field; prn_wire_next(&message, &field);)
        if (field.number == number) found = prn_wire_span(&message, &field);
    return found;
}

/* The value that a field of the file names in its field `number`. */
static size_t named_by(writer *w, prn_wire message, uint32_t number)
{
    const prn_span name = text_field(message, number);
    const char *copy = prn_bump_strndup(&w->pool, name.size ? (const char *)name.data : "", name.size);
    return copy ? prn_quant_value_find(w->plan, copy) : PRN_QUANT_NONE;
}

static prony_status put_weight(writer *w, const prn_field *field, prn_wire message)
{
    const bool sparse = field->number == PRN_GRAPH_SPARSE;
    bool external = false;
    prn_wire named = message;
    for (prn_field inner; sparse && prn_wire_next(&message, &inner);)
        if (inner.number == 1) named = prn_wire_enter(&message, &inner);
    const size_t v = named_by(w, named, PRN_TENSOR_NAME);
    if (v == PRN_QUANT_NONE || !w->needed[v] || w->plan->values[v].initializer == PRN_QUANT_NONE) return PRONY_OK;
    for (prn_field inner; prn_wire_next(&named, &inner);)
        external = external || (inner.number == PRN_TENSOR_LOCATION && prn_wire_int(&named, &inner) == 1);
    if (external)
        return prn_proto_put_initializer(&w->graph, &w->plan->graph->initializers[w->plan->values[v].initializer],
                                         w->error);
    prn_proto_put_bytes(&w->graph, field->number, field->bytes.data, field->bytes.size);
    return PRONY_OK;
}

/* true: the graph still has the value; inner values of folded nodes are gone. */
static bool quantize_write_is_there(const writer *w, size_t v)
{
    if (v == PRN_QUANT_NONE) return false;
    const prn_quant_value *value = &w->plan->values[v];
    if (value->initializer != PRN_QUANT_NONE) return false;
    if (value->producer == PRN_QUANT_NONE) return true;
    const prn_quant_node *q = &w->plan->nodes[value->producer];
    return !q->quantized || q->norm == PRN_QUANT_NONE;
}

static prony_status quantize_write_put_field(writer *w, prn_wire *wire, const prn_field *field)
{
    switch (field->number) {
    case PRN_GRAPH_NODE:
    case PRN_GRAPH_QUANTIZATION:
        return PRONY_OK;
    case PRN_GRAPH_INITIALIZER:
    case PRN_GRAPH_SPARSE:
        return put_weight(w, field, prn_wire_enter(wire, field));
    case PRN_GRAPH_INPUT:
    case PRN_GRAPH_VALUE_INFO:
        if (!quantize_write_is_there(w, named_by(w, prn_wire_enter(wire, field), 1))) return PRONY_OK;
        break;
    default:
        break;
    }
    prn_proto_put_field(&w->graph, field);
    return PRONY_OK;
}

static prony_status quantize_write_put_graph(writer *w, prn_wire wire)
{
    const prn_graph *g = w->plan->graph;
    prn_span *spans = prn_bump_alloc(&w->pool, g->node_count + 1, sizeof *spans);
    size_t count = 0;
    w->nodes = prn_bump_alloc(&w->pool, g->node_count + 1, sizeof *w->nodes);
    if (!spans || !w->nodes) return prn_no_memory(w->error);
    prn_wire walk = wire;
    for (prn_field field; prn_wire_next(&walk, &field);)
        if (field.number == PRN_GRAPH_NODE && count < g->node_count) spans[count++] = field.bytes;
    for (size_t n = 0; n < g->node_count; n++) w->nodes[n] = spans[g->nodes[n].file_index];
    for (size_t n = 0; n < g->node_count; n++) PRN_TRY(put_any(w, n));
    for (prn_field field; prn_wire_next(&wire, &field);) PRN_TRY(quantize_write_put_field(w, &wire, &field));
    return PRONY_OK;
}

/* ---- the model around it ---- */

static void put_opset(prn_proto *model, prn_wire opset, const prn_field *field)
{
    const prn_span domain = text_field(opset, 1);
    const bool onnx = domain.size == 0 || (domain.size == 7 && memcmp(domain.data, "ai.onnx", 7) == 0);
    int64_t version = 0;
    for (prn_field inner; prn_wire_next(&opset, &inner);)
        if (inner.number == 2) version = prn_wire_int(&opset, &inner);
    if (!onnx || version >= LEAST_OPSET)
        prn_proto_put_bytes(model, PRN_MODEL_OPSET, field->bytes.data, field->bytes.size);
}

static prony_status quantize_write_put_model(writer *w, prn_proto *model)
{
    const prn_model_file *file = w->plan->model->file;
    prn_wire wire = prn_wire_make(file->data, (size_t)file->file_bytes);
    prn_proto_put_int(model, PRN_MODEL_IR_VERSION, file->ir_version < LEAST_IR ? LEAST_IR : file->ir_version);
    prn_proto_put_text(model, PRN_MODEL_PRODUCER, "prony");
    prn_proto_put_text(model, PRN_MODEL_PRODUCER_VERSION, PRONY_VERSION);
    for (prn_field field; prn_wire_next(&wire, &field);) {
        if (field.number == PRN_MODEL_GRAPH) {
            PRN_TRY(quantize_write_put_graph(w, prn_wire_enter(&wire, &field)));
            if (w->graph.size >= PRN_LARGEST_PROTOBUF)
                return prn_fail(w->error, PRONY_UNSUPPORTED,
                                "%.300s: quantized, it has 2 GiB or more, the limit of one ONNX file", file->name);
            prn_proto_put_message(model, PRN_MODEL_GRAPH, &w->graph);
        } else if (field.number == PRN_MODEL_OPSET) {
            put_opset(model, prn_wire_enter(&wire, &field), &field);
        } else if (field.number != PRN_MODEL_IR_VERSION && field.number != PRN_MODEL_PRODUCER &&
                   field.number != PRN_MODEL_PRODUCER_VERSION && field.number != PRN_MODEL_TRAINING) {
            prn_proto_put_field(model, &field);
        }
    }
    if (w->plan->dynamic && !prn_model_imports(file, contrib)) prn_proto_put_opset(model, contrib, 1);
    return model->failed ? prn_no_memory(w->error) : PRONY_OK;
}

/* ---- before anything is written ---- */

static prony_status quantize_write_find_steps(writer *w)
{
    const prn_quant_plan *plan = w->plan;
    for (size_t v = 0; v < plan->value_count; v++) {
        if (!plan->values[v].coded) continue;
        const prn_quant_value *root = &plan->values[plan->values[v].group];
        w->steps[plan->values[v].group] = prn_calibration_find(w->calibration, root->name);
        if (!w->steps[plan->values[v].group])
            return prn_fail(w->error, PRONY_INVALID_ARGUMENT, "%.300s: the calibration has no range of " PRN_NAME,
                            w->calibration->file ? w->calibration->file : plan->model->file->name, root->name);
    }
    return PRONY_OK;
}

static prony_status quantize_write_begin(writer *w)
{
    const size_t count = w->plan->value_count + 1;
    w->stored = prn_bump_alloc(&w->pool, count, sizeof *w->stored);
    w->steps = prn_bump_alloc(&w->pool, count, sizeof *w->steps);
    w->scale_names = prn_bump_alloc(&w->pool, count, sizeof *w->scale_names);
    w->zero_names = prn_bump_alloc(&w->pool, count, sizeof *w->zero_names);
    w->needed = prn_bump_alloc(&w->pool, count, sizeof *w->needed);
    if (!w->stored || !w->steps || !w->scale_names || !w->zero_names || !w->needed) return prn_no_memory(w->error);
    mark_needed(w);
    const prn_model_file *file = w->plan->model->file;
    const int64_t opset = prn_model_opset(file, "");
    if (opset < LEAST_OPSET)
        return prn_fail(w->error, PRONY_UNSUPPORTED,
                        "%.300s: opset %lld; scales per channel need opset %d: convert the model first", file->name,
                        (long long)opset, LEAST_OPSET);
    return w->plan->dynamic ? PRONY_OK : quantize_write_find_steps(w);
}

prony_status prn_quant_write(uint8_t **out, size_t *size, const prn_quant_plan *plan,
                             const prony_calibration *calibration, bool power_of_two, prony_error *error)
{
    writer w = {.plan = plan, .calibration = calibration, .power_of_two = power_of_two, .error = error};
    prn_proto model = {0};
    prony_status status = quantize_write_begin(&w);
    if (status == PRONY_OK) status = quantize_write_put_model(&w, &model);
    prn_free(w.graph.data);
    prn_bump_release(&w.pool);
    if (status != PRONY_OK) {
        prn_free(model.data);
        return status;
    }
    *out = model.data;
    *size = model.size;
    return PRONY_OK;
}
