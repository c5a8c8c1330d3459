/* Values in the arena's dynamic region.
 *
 * A value holds blocks: a tensor one block with its elements, a sequence or optional one block with its items, and each
 * item its own. The filled part of a block is never written again, so many values may hold the same block. A sequence
 * that grows at its end takes the next slot of the block, which is invisible to other holders. A block notes how many
 * of its items are filled.
 *
 *   sequence { items } --> [ tensor { data }, tensor { data }, ... ]
 *                                     |                |
 *                                     v                v
 *                                   block            block <-- another sequence's item */
#ifndef PRN_ENGINE_RUN_DYNAMIC_TENSOR_H
#define PRN_ENGINE_RUN_DYNAMIC_TENSOR_H

#include "engine/plan/plan.h"

/* Elements for a tensor of the type and shape in *value. */
PRN_MUST_USE prony_status prn_dynamic_tensor_take(const prn_node_environment *site, prony_value *value, uint32_t owner,
                                                  prony_error *error);
/* `count` items, zeroed, for a sequence or optional. */
PRN_MUST_USE prony_status prn_dynamic_tensor_take_items(const prn_node_environment *site, prony_value *value,
                                                        size_t count, uint32_t owner, prony_error *error);
/* *out shares the blocks of `from`, or holds a copy if `from` has none (inputs, constants, planned buffers). */
PRN_MUST_USE prony_status prn_dynamic_tensor_keep(const prn_node_environment *site, const prony_value *from,
                                                  prony_value *out, uint32_t owner, prony_error *error);
/* *out holds the items of `from` and a zeroed one behind them, in the same block if it has a free slot. So a growing
 * sequence is copied seldom. */
PRN_MUST_USE prony_status prn_dynamic_tensor_append(const prn_node_environment *site, const prony_value *from,
                                                    prony_value *out, uint32_t owner, prony_error *error);
/* *out holds the items of `from` but the last, in the same block. false: nothing is held, because the block is
 * another's or would be half unused. */
PRN_MUST_USE bool prn_dynamic_tensor_shorten(const prn_node_environment *site, const prony_value *from,
                                             prony_value *out);
/* Releases the blocks of *value, which is empty afterwards. */
void prn_dynamic_tensor_drop(prn_arena *arena, prony_value *value, uint32_t step);

/* Owner and step for the arena's events: the value, or, in a subgraph, value and step of the outermost plan. */
uint32_t prn_dynamic_tensor_owner(const prn_node_environment *site, uint32_t value);
uint32_t prn_dynamic_tensor_step(const prn_plan *plan, uint32_t step);

#endif
