/* Congruent nodes: the same built-in operator with equal attributes, and inputs that have equal types, shapes and
 * constant elements at all extents. Inference, cost and evaluation are functions of these alone, so one node's results
 * are those of all. The layers of a decoder are congruent to one another, node by node. */
#ifndef PRN_ENGINE_BIND_CONGRUENT_NODES_H
#define PRN_ENGINE_BIND_CONGRUENT_NODES_H

#include "engine/bind/program.h"

/* A value's type and shape at all extents: values of equal words have equal ones. No words: unlike any other value. */
typedef struct prn_value_signature {
    const int64_t *words;
    size_t count;
} prn_value_signature;

/* Sets leader[n] to the first of `nodes` (in the program's order) that nodes[n] is congruent to: n where it is the
 * first. `signatures`: by value of the program. */
PRN_MUST_USE prony_status prn_congruent_nodes(const prn_program *program, const prn_node_def *const *nodes,
                                              size_t count, const prn_value_signature *signatures, uint32_t *leader,
                                              prony_error *error);
/* true: equal numbers and strings of equal names; other attributes only if they are the same object. */
bool prn_attributes_equal(const prn_attr_list *a, const prn_attr_list *b);

#endif
