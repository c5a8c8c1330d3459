/* For tests that look for a use after death: bytes of the arena that no live buffer has hold a pattern (NaN in every
 * floating-point type, -1 in integers), and a build with the address sanitizer refuses to touch them. */
#ifndef PRN_ENGINE_PLAN_BUFFER_POISON_H
#define PRN_ENGINE_PLAN_BUFFER_POISON_H

#include <stddef.h>
#include <stdint.h>

struct prn_plan;

/* Before the first step: nothing of this plan is alive. Values of a subgraph's last run are dead then, too. */
void prn_buffers_poison_all(const struct prn_plan *plan);
/* Before a step: the buffers that it is the first to use come to life, with the pattern in them. */
void prn_buffers_unpoison(const struct prn_plan *plan, uint32_t step);
/* After a step: the buffers that nobody uses any more are dead. */
void prn_buffers_poison(const struct prn_plan *plan, uint32_t step);

#endif
