/* What the parts of bind share while one graph is walked. Internal to engine/bind*.c. */
#ifndef PRN_ENGINE_BIND_BIND_PASS_H
#define PRN_ENGINE_BIND_BIND_PASS_H

#include "engine/bind/names.h"
#include "engine/bind/program.h"

typedef struct prn_bind_pass {
    prn_program *program;
    const prn_frame *frame; /* of the function whose body is being walked; NULL: the graph itself */
    prony_error *error;
    const bool *overridden; /* by initializer of the main graph: an input takes its place. NULL: none does */
    const uint32_t *given;  /* of a node that no file has: its inputs, by value. NULL: their names say which */
} prn_bind_pass;

/* PRONY_CANCELLED, said of `node`, once the work is called off. */
PRN_MUST_USE prony_status prn_bind_cancelled(const prn_bind_pass *b, const prony_node *node);

/* ---- the walk (bind.c) ---- */

PRN_MUST_USE prony_status prn_bind_nodes(prn_bind_pass *b, prn_names *scope, const prn_graph *graph);
PRN_MUST_USE prony_status prn_bind_node(prn_bind_pass *b, prn_names *scope, const prn_model_node *source);
/* Types and shapes of the node's outputs; marks it dynamic if they are not known. */
PRN_MUST_USE prony_status prn_bind_infer(prn_bind_pass *b, prn_node_def *node);

/* What messages and layers call a node: "call/node" inside of a function. Pool-owned. */
const char *prn_bind_name(prn_bind_pass *b, const prn_model_node *source);

/* ---- constants (bind_constants.c) ---- */

/* Makes value `id` the constant `tensor`, copied only where the file has it unaligned. */
PRN_MUST_USE prony_status prn_bind_constant(prn_bind_pass *b, uint32_t id, const prony_value *tensor);
/* A Constant node whose value is a tensor attribute needs no kernel and no copy. */
PRN_MUST_USE prony_status prn_bind_constant_node(prn_bind_pass *b, prn_node_def *node, bool *done);
/* What a user's function sees of the node's constants is there until they are let go; the operators of the table look
 * at no large ones before they are prepared. */
PRN_MUST_USE prony_status prn_bind_hold_for_user(prn_bind_pass *b, const prn_node_def *node);
/* Runs a node of constants: made[k] (zeroed, one per output) is what output k is, its data from prn_alloc_aligned and
 * the caller's, NULL after a failure. */
PRN_MUST_USE prony_status prn_bind_evaluate(prn_bind_pass *b, prn_node_def *node, prony_value *made);
/* Evaluates the node if it depends on constants alone. */
PRN_MUST_USE prony_status prn_bind_fold(prn_bind_pass *b, prn_node_def *node);

/* ---- bodies that take a node's place (bind_inline.c) ---- */

/* An If whose condition is known: its branch takes its place, in the same program. */
PRN_MUST_USE prony_status prn_bind_if(prn_bind_pass *b, prn_names *scope, prn_node_def *node, bool *done);
/* A call of a model-local function: the function's nodes take its place. */
PRN_MUST_USE prony_status prn_bind_call(prn_bind_pass *b, prn_names *scope, const prn_model_node *source,
                                        const prn_function *function);
/* The attributes of a node, those that refer to the surrounding function's replaced by what the call says. */
PRN_MUST_USE prony_status prn_bind_attributes(prn_bind_pass *b, const prn_model_node *source,
                                              const prn_attr_list **out);

/* ---- gradients (bind_gradient.c) ---- */

bool prn_bind_is_gradient(const prn_bind_pass *b, const prn_model_node *source);
/* Nodes that make its outputs take its place. */
PRN_MUST_USE prony_status prn_bind_gradient(prn_bind_pass *b, prn_names *scope, const prn_model_node *source);

/* ---- costs (bind_costs.c) ---- */

/* What the node costs at its shapes; parameters 0. */
PRN_MUST_USE prony_status prn_bind_cost(prn_bind_pass *b, prn_node_def *node, prony_cost *cost);
/* Counts every live node; the shapes are final. */
PRN_MUST_USE prony_status prn_bind_count(prn_bind_pass *b);

#endif
