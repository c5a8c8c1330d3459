/* One node outside of a plan: questions about it while a program is bound and rewritten, and running it once. */
#ifndef PRN_ENGINE_BIND_NODE_H
#define PRN_ENGINE_BIND_NODE_H

#include "engine/bind/program.h"

/* For infer, check, cost, usable, layouts and prepare. Points into node and program. */
prony_context prn_node_context(const prn_program *program, const prn_node_def *node, prony_error *error);
/* Cost with the general byte rule applied first. `context` has the node's full shapes. */
PRN_MUST_USE prony_status prn_node_cost(const prn_node_def *node, const prony_context *context, prony_cost *cost);

/* First kernel that takes the types, is usable, and (plain_only) works on plain layouts, on the host. NULL: none. */
const prn_kernel *prn_node_kernel(const prn_node_def *node, const prony_context *context, bool plain_only);
/* Prepares, runs and releases a kernel once; outputs have data. Operands are reordered into and out of its layouts if
 * the work is large enough. Heap calls are allowed here: bind time and dynamic steps. `context` arrives as from
 * prn_node_context, with data in place. `chosen` may be NULL. *chosen is the kernel to take; if it is NULL, it is set
 * to the kernel that was taken. */
PRN_MUST_USE prony_status prn_node_run_once(const prn_node_def *node, prony_context *context,
                                            const prn_kernel **chosen);

/* Error if input `i` is a sequence or optional and the operator knows tensors only. */
PRN_MUST_USE prony_status prn_node_check_kind(const prony_context *context, const prn_node_def *node, size_t i);

/* true: all outputs are tensors without elements, so nothing has to run, however large the other extents are. false:
 * this is not known, or a run has other effects (subgraphs, a user's function). */
bool prn_node_makes_nothing(const prn_node_def *node, const prony_context *context);

/* Index of the child whose graph is `graph`, or -1. */
int prn_node_child(const prn_node_def *node, const struct prn_graph *graph);

#endif
