/* The matrix products of a model whose constant weights can be stored in blocks (quantize/block_weights.h), in the main
 * graph and in subgraphs.
 *
 *   entries   values of all graphs: inputs, initializers, outputs of nodes
 *   weights   constant matrices, each once for all of its products
 *   products  MatMul and Gemm nodes that read them
 *
 * A weight may pass through Identity, Transpose and Cast to float32 or float16 before its product. Default values of
 * inputs stay, since a caller may give others. Nodes and initializers that only replaced
 * products need are dropped. The plan borrows from the model. */
#ifndef PRN_QUANTIZE_BLOCK_PLAN_H
#define PRN_QUANTIZE_BLOCK_PLAN_H

#include "engine/bind/engine_model.h"
#include "engine/bind/names.h"
#include "quantize/block_weights.h"

#define PRN_BLOCK_NONE SIZE_MAX

typedef struct prn_block_entry {
    const char *name;
    size_t scope;
    size_t node;        /* in its graph; PRN_BLOCK_NONE: an input or initializer */
    size_t initializer; /* in its graph, of an input its default value; PRN_BLOCK_NONE: none */
    bool input;         /* of its graph: another value may take its place */
    size_t uses;        /* by nodes that stay, outputs and subgraphs */
    bool dropped;
} prn_block_entry;

typedef struct prn_block_weight {
    size_t entry;    /* the constant */
    bool transposed; /* [N, K] in the file */
    prony_dtype dtype;
    int64_t k, n;
    const char *codes, *scales, *zeros; /* names of the new initializers */
    const double *importance;           /* [k] mean squares of what the products multiply by it; NULL: not known */
    double error;                       /* root mean square of the change over that of the weights */
    double weighted_error;              /* the same of squares times importance; NaN without it */
} prn_block_weight;

typedef struct prn_block_product {
    size_t scope, node, weight;
    const char *sum; /* of a Gemm with C: the name of the product before C is added */
} prn_block_product;

/* A product with constant weights that stays in float. */
typedef struct prn_block_refusal {
    size_t scope, node;
    const char *reason; /* continues "it stays in float: " */
} prn_block_refusal;

typedef struct prn_block_scope {
    const prn_graph *graph;
    prn_names names;    /* to entries */
    size_t first;       /* its entries: inputs, initializers, outputs of nodes */
    size_t *outputs;    /* per node: the entry of its first output */
    size_t *product_of; /* per node; PRN_BLOCK_NONE: it stays as it is */
} prn_block_scope;

typedef struct prn_block_plan {
    const prony_model *model;
    prn_block_format format;
    prn_bump pool;
    prn_block_scope **scopes; /* the main graph first, outer ones before inner ones */
    size_t scope_count, scope_capacity;
    prn_block_entry *entries;
    size_t entry_count, entry_capacity;
    prn_block_weight *weights;
    size_t weight_count, weight_capacity;
    prn_block_product *products;
    size_t product_count, product_capacity;
    prn_block_refusal *refusals; /* products and refusals: by scope, then by node */
    size_t refusal_count, refusal_capacity;
} prn_block_plan;

/* PRONY_UNSUPPORTED: no product can be quantized; the message names layers and reasons. Released by
 * prn_block_plan_release in any case. */
PRN_MUST_USE prony_status prn_block_plan_make(prn_block_plan *plan, const prony_model *model,
                                              const prn_block_format *format, prony_error *error);
void prn_block_plan_release(prn_block_plan *plan);
/* The constant itself; NULL: the entry is not a constant. */
const prony_value *prn_block_constant(const prn_block_plan *plan, size_t entry, bool *aligned);
/* The scope of a graph; its address is that of the node's attribute. */
const prn_block_scope *prn_block_scope_of(const prn_block_plan *plan, const prn_graph *graph);

/* The model with MatMulNBits in place of the products, as the bytes of a ModelProto; released by prn_free. Sets the
 * weights' errors. Names file, node and channel of a weight that is not finite. */
PRN_MUST_USE prony_status prn_block_write(uint8_t **out, size_t *size, prn_block_plan *plan, prony_error *error);

#endif
