/*   x ── MatMul ── y      becomes      x ── MatMulNBits ── y
 *        w ──┘                              w_Q4, w_scales, w_zero_points
 *
 * A Gemm with C becomes MatMulNBits and Add. Everything else is copied as the file has it, field by field; graphs
 * inside of nodes are written the same way. Weights in files of their own are taken in. */
#include "loaders/onnx/proto_write.h"
#include "loaders/onnx/reader.h"
#include "quantize/block_plan.h"

#include <math.h>
#include <string.h>

static const char block_write_domain[] = "com.microsoft";

enum { ATTRIBUTE_GRAPH = 6, ATTRIBUTE_GRAPHS = 11, LEAST_INPUTS_IR = 4, WRITTEN_IR = 7, TILE = 16 };

typedef struct block_writer {
    prn_block_plan *plan;
    bool counts; /* only sizes are computed: no weight is quantized */
    prony_error *error;
} block_writer;

/* ---- weights ---- */

/* Codes, scales and zero points of a weight, as MatMulNBits reads them. */
typedef struct block_tensors {
    prn_bump pool;
    int64_t blocks, blob, zero_row; /* of a column: blocks, bytes of a block's codes, bytes of zero points */
    uint8_t *codes, *zeros;
    float *scales;
    void *stored_scales;           /* the scales in the weights' type */
    float *tile;                   /* [K, TILE] weights, [TILE, K] behind them */
    prn_block_errors error, power; /* sums of squares: of the change, and of the weights */
} block_tensors;

static bool block_write_reserve(block_tensors *t, const prn_block_weight *w, const prn_block_format *format)
{
    const size_t n = (size_t)w->n, k = (size_t)w->k;
    if (n > SIZE_MAX / 8 / ((size_t)t->blocks * (size_t)format->block)) return false;
    t->codes = prn_bump_alloc(&t->pool, n * (size_t)(t->blocks * t->blob), 1);
    t->zeros = prn_bump_alloc(&t->pool, n * (size_t)t->zero_row, 1);
    t->scales = prn_bump_alloc(&t->pool, n * (size_t)t->blocks, sizeof *t->scales);
    t->stored_scales = prn_bump_alloc(&t->pool, n * (size_t)t->blocks, sizeof(float));
    t->tile = prn_bump_alloc(&t->pool, 2 * TILE * k, sizeof *t->tile);
    return t->codes && t->zeros && t->scales && t->stored_scales && t->tile;
}

/* Columns [first, first + count) as float32 rows of K in tile + TILE * K. */
static void block_write_gather(const block_tensors *t, const prn_block_weight *w, const prony_value *from,
                               int64_t first, int64_t count)
{
    float *columns = t->tile + TILE * w->k;
    if (w->transposed) {
        prn_convert(columns, PRONY_FLOAT32, prn_block_at(from->data, from->dtype, first * w->k), from->dtype,
                    count * w->k);
        return;
    }
    for (int64_t k = 0; k < w->k; k++)
        prn_convert(t->tile + k * TILE, PRONY_FLOAT32, prn_block_at(from->data, from->dtype, k * w->n + first),
                    from->dtype, count);
    for (int64_t k = 0; k < w->k; k++)
        for (int64_t c = 0; c < count; c++) columns[c * w->k + k] = t->tile[k * TILE + c];
}

static void block_write_pack(uint8_t *to, int bits, int64_t at, uint8_t code)
{
    if (bits == 8)
        to[at] = code;
    else
        to[at / 2] |= (uint8_t)(code << (at % 2 * 4));
}

/* false: a weight of column n is not finite. */
static bool block_write_column(block_tensors *t, const prn_block_weight *w, const prn_block_format *format, int64_t n,
                               const float *column)
{
    for (int64_t b = 0; b < t->blocks; b++) {
        const float *from = column + b * format->block;
        const double *importance = w->importance ? w->importance + b * format->block : NULL;
        const int64_t left = w->k - b * format->block, count = left < format->block ? left : format->block;
        uint8_t codes[PRN_LARGEST_WEIGHT_BLOCK], zero, *to = t->codes + (n * t->blocks + b) * t->blob;
        for (int64_t k = 0; k < count; k++) {
            if (!isfinite(from[k])) return false;
            const double square = (double)from[k] * (double)from[k];
            t->power.plain += square;
            t->power.weighted += square * (importance ? importance[k] : 1);
        }
        const prn_block_errors error =
            prn_block_quantize(format, from, importance, count, codes, &t->scales[n * t->blocks + b], &zero);
        t->error.plain += error.plain;
        t->error.weighted += error.weighted;
        for (int64_t k = 0; k < format->block; k++) block_write_pack(to, format->bits, k, k < count ? codes[k] : zero);
        block_write_pack(t->zeros + n * t->zero_row, format->bits, b, zero);
    }
    return true;
}

static prony_status block_write_columns(const block_writer *w, block_tensors *t, prn_block_weight *weight,
                                        const prn_block_format *format, const prony_value *from)
{
    for (int64_t first = 0; first < weight->n; first += TILE) {
        const int64_t left = weight->n - first, count = left < TILE ? left : TILE;
        block_write_gather(t, weight, from, first, count);
        for (int64_t c = 0; c < count; c++)
            if (!block_write_column(t, weight, format, first + c, t->tile + (TILE + c) * weight->k))
                return prn_fail(w->error, PRONY_UNSUPPORTED,
                                "%.300s: weights " PRN_NAME ": output channel %lld has a number that is not finite",
                                w->plan->model->file->name, w->plan->entries[weight->entry].name,
                                (long long)(first + c));
    }
    weight->error = t->power.plain > 0 ? sqrt(t->error.plain / t->power.plain) : 0;
    weight->weighted_error = !weight->importance     ? (double)NAN
                             : t->power.weighted > 0 ? sqrt(t->error.weighted / t->power.weighted)
                                                     : 0;
    return PRONY_OK;
}

static prony_status block_write_quantize(const block_writer *w, block_tensors *t, prn_block_weight *weight,
                                         const prn_block_format *format)
{
    bool aligned;
    const prony_value *constant = prn_block_constant(w->plan, weight->entry, &aligned);
    prony_value from = *constant;
    if (!block_write_reserve(t, weight, format)) return prn_no_memory(w->error);
    if (!aligned) {
        const int64_t count = prony_shape_numel(&from.shape);
        from.data = prn_bump_alloc(&t->pool, (size_t)count, prony_dtype_bytes(from.dtype, 1));
        if (!from.data) return prn_no_memory(w->error);
        memcpy(from.data, constant->data, prony_dtype_bytes(from.dtype, count));
    }
    PRN_TRY(block_write_columns(w, t, weight, format, &from));
    prn_convert(t->stored_scales, weight->dtype, t->scales, PRONY_FLOAT32, weight->n * t->blocks);
    return PRONY_OK;
}

static prony_status block_write_weight(const block_writer *w, prn_proto *graph, prn_block_weight *weight)
{
    block_tensors t = {0};
    prn_block_format format = w->plan->format;
    format.scale_type = weight->dtype;
    t.blocks = (weight->k + format.block - 1) / format.block;
    t.blob = format.block * format.bits / 8;
    t.zero_row = (t.blocks * format.bits + 7) / 8;
    prony_status status = w->counts ? PRONY_OK : block_write_quantize(w, &t, weight, &format);
    if (status == PRONY_OK) {
        const prony_shape shape = {3, {weight->n, t.blocks, t.blob}};
        const int64_t blocks = weight->n * t.blocks;
        prn_proto_put_tensor(graph, PRN_GRAPH_INITIALIZER, weight->codes, PRONY_UINT8, &shape, t.codes,
                             (size_t)(blocks * t.blob));
        prn_proto_put_vector(graph, weight->scales, weight->dtype, blocks, t.stored_scales);
        if (format.zero_points)
            prn_proto_put_vector(graph, weight->zeros, PRONY_UINT8, weight->n * t.zero_row, t.zeros);
    }
    prn_bump_release(&t.pool);
    return status;
}

/* ---- nodes ---- */

static void block_write_product(const block_writer *w, prn_proto *graph, const prn_model_node *node,
                                const prn_block_product *product)
{
    const prn_block_weight *weight = &w->plan->weights[product->weight];
    prn_proto out = {0};
    prn_proto_put_text(&out, PRN_NODE_INPUT, node->inputs[0]);
    prn_proto_put_text(&out, PRN_NODE_INPUT, weight->codes);
    prn_proto_put_text(&out, PRN_NODE_INPUT, weight->scales);
    if (w->plan->format.zero_points) prn_proto_put_text(&out, PRN_NODE_INPUT, weight->zeros);
    prn_proto_put_text(&out, PRN_NODE_OUTPUT, product->sum ? product->sum : node->outputs[0]);
    prn_proto_put_text(&out, PRN_NODE_NAME, node->name);
    prn_proto_put_text(&out, PRN_NODE_OP_TYPE, "MatMulNBits");
    prn_proto_put_attribute_int(&out, "K", weight->k);
    prn_proto_put_attribute_int(&out, "N", weight->n);
    prn_proto_put_attribute_int(&out, "bits", w->plan->format.bits);
    prn_proto_put_attribute_int(&out, "block_size", w->plan->format.block);
    prn_proto_put_text(&out, PRN_NODE_DOMAIN, block_write_domain);
    prn_proto_put_message(graph, PRN_GRAPH_NODE, &out);
    if (!product->sum) return;
    out = (prn_proto){0};
    prn_proto_put_text(&out, PRN_NODE_INPUT, product->sum);
    prn_proto_put_text(&out, PRN_NODE_INPUT, node->inputs[2]);
    prn_proto_put_text(&out, PRN_NODE_OUTPUT, node->outputs[0]);
    prn_proto_put_text(&out, PRN_NODE_NAME, product->sum);
    prn_proto_put_text(&out, PRN_NODE_OP_TYPE, "Add");
    prn_proto_put_message(graph, PRN_GRAPH_NODE, &out);
}

static prony_status block_write_graph(const block_writer *w, const prn_block_scope *scope, prn_wire wire,
                                      prn_proto *out);

static prn_span block_write_text(prn_wire message, uint32_t number)
{
    prn_span found = {0};
    for (prn_field field; prn_wire_next(&message, &field);)
        if (field.number == number) found = prn_wire_span(&message, &field);
    return found;
}

static bool block_write_named(prn_span text, const char *name)
{
    return text.size == strlen(name) && (text.size == 0 || memcmp(text.data, name, text.size) == 0);
}

static const prn_attr *block_write_attribute(const prn_model_node *node, prn_wire message)
{
    const prn_span name = block_write_text(message, 1);
    for (size_t a = 0; a < node->attributes.count; a++)
        if (block_write_named(name, node->attributes.items[a].name)) return &node->attributes.items[a];
    return NULL;
}

/* An attribute with the graphs in it written anew. */
static prony_status block_write_graphs(const block_writer *w, const prn_attr *attr, prn_wire message, prn_proto *node)
{
    prn_proto out = {.counts = w->counts};
    size_t graph = 0;
    for (prn_field field; prn_wire_next(&message, &field);) {
        const bool is_graph = field.number == ATTRIBUTE_GRAPH || field.number == ATTRIBUTE_GRAPHS;
        if (!is_graph || !attr->graph || graph >= (attr->type == PRN_ATTR_GRAPH ? 1 : attr->count)) {
            prn_proto_put_field(&out, &field);
            continue;
        }
        prn_proto inner = {.counts = w->counts};
        const prn_block_scope *scope = prn_block_scope_of(w->plan, &attr->graph[graph++]);
        prony_status status = block_write_graph(w, scope, prn_wire_enter(&message, &field), &inner);
        prn_proto_put_message(&out, field.number, &inner);
        if (status == PRONY_OK) continue;
        prn_free(out.data);
        return status;
    }
    prn_proto_put_message(node, PRN_NODE_ATTRIBUTE, &out);
    return PRONY_OK;
}

static prony_status block_write_node(const block_writer *w, const prn_model_node *node, prn_span span, prn_proto *graph)
{
    bool nested = false;
    for (size_t a = 0; a < node->attributes.count; a++)
        nested = nested || node->attributes.items[a].type == PRN_ATTR_GRAPH ||
                 node->attributes.items[a].type == PRN_ATTR_GRAPHS;
    if (!nested) {
        prn_proto_put_bytes(graph, PRN_GRAPH_NODE, span.data, span.size);
        return PRONY_OK;
    }
    prn_wire wire = prn_wire_make(span.data, span.size);
    prn_proto out = {.counts = w->counts};
    for (prn_field field; prn_wire_next(&wire, &field);) {
        prn_wire message = field.number == PRN_NODE_ATTRIBUTE ? prn_wire_enter(&wire, &field) : (prn_wire){0};
        const prn_attr *attr = field.number == PRN_NODE_ATTRIBUTE ? block_write_attribute(node, message) : NULL;
        if (!attr || (attr->type != PRN_ATTR_GRAPH && attr->type != PRN_ATTR_GRAPHS)) {
            prn_proto_put_field(&out, &field);
            continue;
        }
        prony_status status = block_write_graphs(w, attr, message, &out);
        if (status == PRONY_OK) continue;
        prn_free(out.data);
        return status;
    }
    prn_proto_put_message(graph, PRN_GRAPH_NODE, &out);
    return PRONY_OK;
}

/* ---- graphs ---- */

/* The entry of this graph with the name in field `number`; NULL: the graph has none. */
static const prn_block_entry *block_write_entry(const block_writer *w, const prn_block_scope *scope, prn_wire message,
                                                uint32_t number)
{
    const prn_span name = block_write_text(message, number);
    prn_bump pool = {0};
    uint32_t entry;
    const char *copy = prn_bump_strndup(&pool, name.size ? (const char *)name.data : "", name.size);
    const bool found = copy && prn_names_get(&scope->names, copy, &entry);
    prn_bump_release(&pool);
    const prn_block_entry *e = found ? &w->plan->entries[entry] : NULL;
    return e && w->plan->scopes[e->scope] == scope ? e : NULL;
}

static prony_status block_write_initializer(const block_writer *w, const prn_block_scope *scope, const prn_field *field,
                                            prn_wire message, prn_proto *out)
{
    prn_wire named = message;
    bool external = false;
    for (prn_field inner; field->number == PRN_GRAPH_SPARSE && prn_wire_next(&message, &inner);)
        if (inner.number == 1) named = prn_wire_enter(&message, &inner);
    const prn_block_entry *entry = block_write_entry(w, scope, named, PRN_TENSOR_NAME);
    if (entry && entry->dropped) return PRONY_OK;
    for (prn_field inner; prn_wire_next(&named, &inner);)
        external = external || (inner.number == PRN_TENSOR_LOCATION && prn_wire_int(&named, &inner) == 1);
    if (external && entry && entry->initializer != PRN_BLOCK_NONE)
        return prn_proto_put_initializer(out, &scope->graph->initializers[entry->initializer], w->error);
    prn_proto_put_bytes(out, field->number, field->bytes.data, field->bytes.size);
    return PRONY_OK;
}

/* Nodes first, in the order of the model; then the other fields, and the new weights whose constants are this
 * graph's. */
static prony_status block_write_graph(const block_writer *w, const prn_block_scope *scope, prn_wire wire,
                                      prn_proto *out)
{
    const prn_graph *g = scope->graph;
    prn_bump pool = {0};
    prony_status status = PRONY_OK;
    prn_span *spans = prn_bump_alloc(&pool, g->node_count + 1, sizeof *spans);
    size_t count = 0;
    prn_wire walk = wire;
    for (prn_field field; spans && prn_wire_next(&walk, &field);)
        if (field.number == PRN_GRAPH_NODE && count < g->node_count) spans[count++] = field.bytes;
    if (!spans) status = prn_no_memory(w->error);
    for (size_t n = 0; n < g->node_count && status == PRONY_OK; n++) {
        if (scope->product_of[n] != PRN_BLOCK_NONE)
            block_write_product(w, out, &g->nodes[n], &w->plan->products[scope->product_of[n]]);
        else if (!g->nodes[n].output_count || !w->plan->entries[scope->outputs[n]].dropped)
            status = block_write_node(w, &g->nodes[n], spans[g->nodes[n].file_index], out);
    }
    prn_bump_release(&pool);
    const bool hidden = w->plan->model->file->ir_version < LEAST_INPUTS_IR;
    for (prn_field field; status == PRONY_OK && prn_wire_next(&wire, &field);) {
        if (field.number == PRN_GRAPH_NODE || field.number == PRN_GRAPH_QUANTIZATION) continue;
        if (field.number == PRN_GRAPH_INITIALIZER || field.number == PRN_GRAPH_SPARSE) {
            status = block_write_initializer(w, scope, &field, prn_wire_enter(&wire, &field), out);
            continue;
        }
        const bool is_port = field.number == PRN_GRAPH_INPUT || field.number == PRN_GRAPH_VALUE_INFO;
        const prn_block_entry *entry = is_port ? block_write_entry(w, scope, prn_wire_enter(&wire, &field), 1) : NULL;
        if (entry && (entry->dropped || (hidden && entry->initializer != PRN_BLOCK_NONE))) continue;
        prn_proto_put_field(out, &field);
    }
    for (size_t k = 0; k < w->plan->weight_count && status == PRONY_OK; k++)
        if (w->plan->scopes[w->plan->entries[w->plan->weights[k].entry].scope] == scope)
            status = block_write_weight(w, out, &w->plan->weights[k]);
    return status;
}

/* ---- the model ---- */

static prony_status block_write_model(const block_writer *w, prn_proto *model)
{
    const prn_model_file *file = w->plan->model->file;
    prn_wire wire = prn_wire_make(file->data, (size_t)file->file_bytes);
    prn_proto_put_int(model, PRN_MODEL_IR_VERSION, file->ir_version < LEAST_INPUTS_IR ? WRITTEN_IR : file->ir_version);
    prn_proto_put_text(model, PRN_MODEL_PRODUCER, "prony");
    prn_proto_put_text(model, PRN_MODEL_PRODUCER_VERSION, PRONY_VERSION);
    for (prn_field field; prn_wire_next(&wire, &field);) {
        if (field.number == PRN_MODEL_IR_VERSION || field.number == PRN_MODEL_PRODUCER ||
            field.number == PRN_MODEL_PRODUCER_VERSION || field.number == PRN_MODEL_TRAINING)
            continue;
        if (field.number != PRN_MODEL_GRAPH) {
            prn_proto_put_field(model, &field);
            continue;
        }
        prn_proto graph = {.counts = w->counts};
        prony_status status = block_write_graph(w, w->plan->scopes[0], prn_wire_enter(&wire, &field), &graph);
        prn_proto_put_message(model, PRN_MODEL_GRAPH, &graph);
        PRN_TRY(status);
    }
    if (!prn_model_imports(file, block_write_domain)) prn_proto_put_opset(model, block_write_domain, 1);
    return model->failed ? prn_no_memory(w->error) : PRONY_OK;
}

/* A model beyond the limit of one file is refused before the weights are quantized. */
static prony_status block_write_check_size(prn_block_plan *plan, prony_error *error)
{
    const block_writer w = {plan, true, error};
    prn_proto size = {.counts = true};
    PRN_TRY(block_write_model(&w, &size));
    if (size.size < PRN_LARGEST_PROTOBUF) return PRONY_OK;
    return prn_fail(error, PRONY_UNSUPPORTED, "%.300s: quantized, it has 2 GiB or more, the limit of one ONNX file",
                    plan->model->file->name);
}

prony_status prn_block_write(uint8_t **out, size_t *size, prn_block_plan *plan, prony_error *error)
{
    PRN_TRY(block_write_check_size(plan, error));
    const block_writer w = {plan, false, error};
    prn_proto model = {0};
    const prony_status status = block_write_model(&w, &model);
    if (status != PRONY_OK) {
        prn_free(model.data);
        return status;
    }
    *out = model.data;
    *size = model.size;
    return PRONY_OK;
}
