/* Shared by the elementwise families: cost of a map, and running a vector map. */
#ifndef PRN_OPS_KERNELS_VECTOR_ELEMENTWISE_H
#define PRN_OPS_KERNELS_VECTOR_ELEMENTWISE_H

#include "ops/kernels/vector/vec.h"
#include "ops/op.h"

static inline uint64_t prn_output_elements(const prony_context *context)
{
    return (uint64_t)prony_shape_numel(&context->outputs[0]->shape);
}

/* So many operations per output element, `special` and `madds` of them; fact output_elements. */
prony_status prn_cost_map(const prony_context *context, prony_cost *cost, uint64_t flops, uint64_t special,
                          uint64_t madds);

/* Output 0 = map(input 0; a, b) on float32, any layout, padding lanes zero; may be in place. */
prony_status prn_run_map_f32(const prony_context *context, prn_map_id map, float a, float b);

/* Output 0 = input 0 op input 1 op … on float32, broadcast, in the layouts of prn_broadcast_layouts; may be in place.
 */
prony_status prn_run_binary_f32(const prony_context *context, prn_binary_id op);

#endif
