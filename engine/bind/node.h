/* One node outside of a plan: what is asked of it while a program is bound and rewritten, and running it once. */
#ifndef PRN_ENGINE_BIND_NODE_H
#define PRN_ENGINE_BIND_NODE_H

#include "engine/bind/program.h"

/* For infer, check, cost, usable, layouts and prepare. Points into node and program. */
prony_context prn_node_context(const prn_program *program, const prn_node_def *node, prony_error *error);
/* Cost with the general byte rule applied first. `context` has the node's full shapes. */
PRN_MUST_USE prony_status prn_node_cost(const prn_node_def *node, const prony_context *context, prony_cost *cost);

/* First kernel that takes the types, is usable, and (plain_only) works on plain layouts, on the host. NULL: none. */
const prn_kernel *prn_node_kernel(const prn_node_def *node, const prony_context *context, bool plain_only);
/* Prepares, runs and releases a kernel once, reordering into and out of its layouts where the work is worth that;
 * outputs have data. Heap calls are fine here: bind time and dynamic steps. `context` arrives as from prn_node_context,
 * with data in place. *chosen (which may be left out) is the kernel to take, and the one that was taken where it is
 * NULL. */
PRN_MUST_USE prony_status prn_node_run_once(const prn_node_def *node, prony_context *context,
                                            const prn_kernel **chosen);

/* Error if input `i` is a sequence or optional and the operator knows tensors only. */
PRN_MUST_USE prony_status prn_node_check_kind(const prony_context *context, const prn_node_def *node, size_t i);

/* Whether all that it makes are tensors without elements, so that there is nothing to run, however large its other
 * extents are. false: that is not known, or running it means more (subgraphs, a user's function). */
bool prn_node_makes_nothing(const prn_node_def *node, const prony_context *context);

/* Index of the child that `graph` is, or -1. */
int prn_node_child(const prn_node_def *node, const struct prn_graph *graph);

#endif
