/* The nodes of a float model that compute on 8-bit codes, and the values stored as such codes.
 *
 *   kinds       the kind that a node could have: a contraction with constant weights, a sum, a product, an average, a
 *               move, a function of each element
 *   quantized   contractions, but for those that are to stay in float; the others where they stand between quantized
 *               nodes
 *   coded       values that a quantized node reads or makes: stored as (code - zero) scale
 *
 * A contraction, sum or product takes a Relu or Clip behind it along, a convolution a BatchNormalization and a MatMul
 * the Add of a bias too: nothing in between is stored. A node that only moves elements keeps their codes, so its
 * operands and its result are one group, of one scale. A function is a node and those in front of it that it alone
 * needs, down to one value (SiLU is Sigmoid and Mul, of one value): again nothing in between is stored.
 *
 * Names are those of the main graph; nothing inside of subgraphs and functions is quantized. The plan borrows from the
 * model, whose file stays as it is. */
#ifndef PRN_QUANTIZE_QUANTIZE_PLAN_H
#define PRN_QUANTIZE_QUANTIZE_PLAN_H

#include "engine/bind/program.h"
#include "loaders/onnx/reader.h"

#define PRN_QUANT_NONE SIZE_MAX

typedef enum prn_quant_kind {
    PRN_QUANT_OTHER,
    PRN_QUANT_CONV, /* and a transposed one */
    PRN_QUANT_GEMM,
    PRN_QUANT_MATMUL,
    PRN_QUANT_ADD,
    PRN_QUANT_MUL,
    PRN_QUANT_MAP,
    PRN_QUANT_AVERAGE,
    PRN_QUANT_MOVE
} prn_quant_kind;

typedef struct prn_quant_use {
    size_t node, input;
} prn_quant_use;

typedef struct prn_quant_value {
    const char *name;
    prony_value info;    /* type and shape; constants: `data`, maybe not aligned; rank -1: not known */
    size_t producer;     /* PRN_QUANT_NONE: inputs and initializers */
    size_t initializer;  /* PRN_QUANT_NONE: none */
    prn_quant_use *uses; /* by nodes of the main graph */
    size_t use_count;
    bool constant;
    bool outside;    /* an output of the graph, or read in a subgraph */
    bool coded;      /* a quantized node reads or makes it */
    bool made_coded; /* a quantized node makes it */
    size_t group;    /* the value that stands for it and those of the same scale */
} prn_quant_value;

typedef struct prn_quant_node {
    prn_quant_kind kind;
    bool quantized;
    bool kept;          /* to stay in float */
    size_t norm;        /* the BatchNormalization behind a Conv, the Add of a bias behind a MatMul; PRN_QUANT_NONE:
                          none */
    size_t clamp;       /* the Relu or Clip behind it; PRN_QUANT_NONE: none */
    size_t norm_of;     /* of those: the contraction that takes it along */
    size_t clamp_of;    /* of a Relu or Clip: the node that takes it along */
    size_t map_of;      /* the last node of the function that it is part of; PRN_QUANT_NONE: of none */
    size_t root;        /* of a function's last node: the value it is a function of */
    size_t result;      /* value that is stored */
    int channel_axis;   /* of a contraction's weights */
    const char *reason; /* why a contraction with constant weights has no such kind; NULL: it has, or another node */
    int64_t channels;
} prn_quant_node;

typedef struct prn_quant_plan {
    bool dynamic; /* ranges are found in each run: products of matrices alone are quantized, and nothing is stored */
    const prony_model *model;
    const prn_graph *graph;
    prn_bump pool;
    prn_name_entry *names; /* of values; `item` is the value */
    prn_quant_value *values;
    size_t value_count;
    prn_quant_node *nodes; /* as the graph's */
} prn_quant_plan;

/* `types` is a static bind of the model's main graph. Finds the nodes that could be quantized; none is yet. */
PRN_MUST_USE prony_status prn_quant_plan_make(prn_quant_plan *plan, const prony_model *model, const prn_program *types,
                                              prony_error *error);
void prn_quant_plan_release(prn_quant_plan *plan);
/* Decides what is quantized and coded, by `kept` of the nodes. May be called again. */
void prn_quant_plan_resolve(prn_quant_plan *plan);

/* PRN_QUANT_NONE: no value has that name. */
size_t prn_quant_value_find(const prn_quant_plan *plan, const char *name);
/* Fills kinds, results and taken-along nodes of all nodes; values and uses must be filled (quantize_kinds.c). */
void prn_quant_classify(prn_quant_plan *plan);
/* An operator of ai.onnx. */
bool prn_quant_is_op(const prn_model_node *node, const char *name);
/* NULL: no value has that name. */
prn_quant_value *prn_quant_value_of(const prn_quant_plan *plan, const char *name);
bool prn_quant_is_contraction(const prn_quant_node *node);
/* The first few layers that stay in float, for a message. Zero-initialise. */
typedef struct prn_quant_reasons {
    char text[640];
    size_t length, count;
} prn_quant_reasons;
void prn_quant_reasons_add(prn_quant_reasons *reasons, const prn_model_node *node, const char *reason);
/* "; node 'fc' (Gemm): alpha is 0.5, wanted 1; and 3 more"; "": no layer was added. */
const char *prn_quant_reasons_text(prn_quant_reasons *reasons);
/* The node's own name, or that of its first output. */
const char *prn_quant_layer_name(const prn_model_node *node);
/* The constant that an Add behind a product of `channels` columns adds to every row; NULL: it is something else. */
const prn_quant_value *prn_quant_bias_of(const prn_quant_plan *plan, const prn_model_node *add, int64_t channels);
/* Operands that are activations and stored for the node's sake: the first ones. A function's root is stored anyway. */
size_t prn_quant_operands(const prn_quant_plan *plan, size_t node);

#endif
