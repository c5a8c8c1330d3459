/* Reverse-mode differentiation of bound nodes: what a Gradient node (ai.onnx.preview.training) becomes.
 *
 *   nodes that lead from xs to y --clone, if xs are given other values--> nodes
 *                                --walked back from y--> nodes that make dy/dx
 *
 * The result is ordinary nodes of ordinary operators, bound one by one. So shapes are known and constants are
 * evaluated; rewrites, planning, counting and reports need no special case. One thread at a time. */
#ifndef PRN_ENGINE_GRADIENT_GRADIENT_H
#define PRN_ENGINE_GRADIENT_GRADIENT_H

#include "engine/bind/program.h"

/* Opset of the operators that gradients consist of, whatever the model imports. */
#define PRN_GRADIENT_OPSET 21
/* Composites are differentiated through their primitives, which may be composites too. Bounds that nesting. */
#define PRN_GRADIENT_LIMIT_DEPTH 8

/* A node to be made. Everything but `inputs` and `outputs` lies in the program's pool. */
typedef struct prn_gradient_node {
    const char *name, *op_type, *domain;
    int64_t opset;
    prn_attr_list attributes;
    const uint32_t *inputs; /* values; PRN_NO_VALUE where omitted */
    size_t input_count;
    uint32_t *outputs; /* filled; outputs that are PRN_NO_VALUE at entry are omitted */
    size_t output_count;
} prn_gradient_node;

typedef struct prn_gradient_values {
    const uint32_t *ids;   /* of the tensors that the attribute names */
    const uint32_t *given; /* the node's inputs, which replace these tensors */
    size_t count;
} prn_gradient_values;

typedef struct prn_gradient_job {
    prn_program *program;
    const char *name; /* of the Gradient node */
    prony_status (*make)(void *user, prn_gradient_node *node);
    void *user;
    prn_gradient_values xs, zs;
    uint32_t y;
    uint64_t looked_at; /* nodes of the sub-graph, afterwards */
} prn_gradient_job;

/* Sets made[k] to dy/dx of x number k for every wanted[k]. */
PRN_MUST_USE prony_status prn_gradient_run(prn_gradient_job *job, const bool *wanted, uint32_t *made,
                                           prony_error *error);

#endif
