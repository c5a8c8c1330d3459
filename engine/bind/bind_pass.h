/* The state that the files of bind share while one graph is walked. Internal to engine/bind*.c. */
#ifndef PRN_ENGINE_BIND_BIND_PASS_H
#define PRN_ENGINE_BIND_BIND_PASS_H

#include "engine/bind/names.h"
#include "engine/bind/program.h"

typedef struct prn_bind_pass {
    prn_program *program;
    const prn_frame *frame; /* of the function whose body is being walked; NULL: the graph itself */
    prony_error *error;
    const bool *overridden; /* by initializer of the main graph: true if an input replaces it. NULL: no input does */
    const uint32_t *given;  /* input values of a node that no file declares. NULL: inputs are found by name */
} prn_bind_pass;

/* PRONY_CANCELLED with a message that names `node`, once the work is cancelled. */
PRN_MUST_USE prony_status prn_bind_cancelled(const prn_bind_pass *b, const prony_node *node);

/* ---- the walk (bind.c) ---- */

PRN_MUST_USE prony_status prn_bind_nodes(prn_bind_pass *b, prn_names *scope, const prn_graph *graph);
PRN_MUST_USE prony_status prn_bind_node(prn_bind_pass *b, prn_names *scope, const prn_model_node *source);
/* Types and shapes of the node's outputs; marks it dynamic if they are not known. */
PRN_MUST_USE prony_status prn_bind_infer(prn_bind_pass *b, prn_node_def *node);

/* The node's name in messages and layers: "call/node" inside of a function. Pool-owned. */
const char *prn_bind_name(prn_bind_pass *b, const prn_model_node *source);

/* ---- constants (bind_constants.c) ---- */

/* Makes value `id` the constant `tensor`, copied only where the file has it unaligned. */
PRN_MUST_USE prony_status prn_bind_constant(prn_bind_pass *b, uint32_t id, const prony_value *tensor);
/* A Constant node whose value is a tensor attribute needs no kernel and no copy. */
PRN_MUST_USE prony_status prn_bind_constant_node(prn_bind_pass *b, prn_node_def *node, bool *done);
/* Pins the node's constants that a user's function can read. Built-in operators read no large constant before they are
 * prepared. */
PRN_MUST_USE prony_status prn_bind_hold_for_user(prn_bind_pass *b, const prn_node_def *node);
/* Runs a node of constants and fills made[k] (zeroed, one per output) with output k. Its data comes from
 * prn_alloc_aligned and belongs to the caller; NULL after a failure. */
PRN_MUST_USE prony_status prn_bind_evaluate(prn_bind_pass *b, prn_node_def *node, prony_value *made);
/* Evaluates the node if it depends on constants alone. */
PRN_MUST_USE prony_status prn_bind_fold(prn_bind_pass *b, prn_node_def *node);

/* ---- bodies that replace a node (bind_inline.c) ---- */

/* Replaces an If whose condition is known by its branch, in the same program. */
PRN_MUST_USE prony_status prn_bind_if(prn_bind_pass *b, prn_names *scope, prn_node_def *node, bool *done);
/* Replaces a call of a model-local function by the function's nodes. */
PRN_MUST_USE prony_status prn_bind_call(prn_bind_pass *b, prn_names *scope, const prn_model_node *source,
                                        const prn_function *function);
/* The attributes of a node. References to attributes of the surrounding function are replaced by the call's values. */
PRN_MUST_USE prony_status prn_bind_attributes(prn_bind_pass *b, const prn_model_node *source,
                                              const prn_attr_list **out);

/* ---- gradients (bind_gradient.c) ---- */

bool prn_bind_is_gradient(const prn_bind_pass *b, const prn_model_node *source);
/* Replaces the Gradient node by nodes that compute its outputs. */
PRN_MUST_USE prony_status prn_bind_gradient(prn_bind_pass *b, prn_names *scope, const prn_model_node *source);

/* ---- costs (bind_costs.c) ---- */

/* The node's cost at its shapes; parameters 0. */
PRN_MUST_USE prony_status prn_bind_cost(prn_bind_pass *b, prn_node_def *node, prony_cost *cost);
/* Counts every live node; the shapes are final. */
PRN_MUST_USE prony_status prn_bind_count(prn_bind_pass *b);

#endif
