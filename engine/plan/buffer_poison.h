/* Poisons unused memory, for tests that look for a use after the last reader. Bytes of the arena without a live buffer
 * hold a pattern (NaN in every floating-point type, -1 in integers). A build with the address sanitizer reports access
 * to them. */
#ifndef PRN_ENGINE_PLAN_BUFFER_POISON_H
#define PRN_ENGINE_PLAN_BUFFER_POISON_H

#include <stddef.h>
#include <stdint.h>

struct prn_plan;

/* Before the first step: poisons all buffers of the plan, including values of a subgraph's last run. */
void prn_buffers_poison_all(const struct prn_plan *plan);
/* Before a step: unpoisons the buffers that it is the first to use; they still hold the pattern. */
void prn_buffers_unpoison(const struct prn_plan *plan, uint32_t step);
/* After a step: poisons the buffers that have no further user. */
void prn_buffers_poison(const struct prn_plan *plan, uint32_t step);

#endif
