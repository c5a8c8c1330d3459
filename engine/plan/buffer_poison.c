/* Fills and poisons unused bytes; only for plans with `fill_dead`. */
#include "engine/plan/buffer_poison.h"
#include "base/memory/poison.h"
#include "engine/plan/plan.h"

void prn_buffers_poison_all(const prn_plan *plan)
{
    prn_bytes_poison(plan->memory.base, (size_t)plan->memory.figures.planned_bytes);
}

void prn_buffers_unpoison(const prn_plan *plan, uint32_t step)
{
    for (size_t b = 0; b < plan->memory.buffer_count; b++)
        if (plan->memory.buffers[b].first == step)
            prn_bytes_unpoison(plan->memory.base + plan->memory.buffers[b].offset,
                               (size_t)plan->memory.buffers[b].bytes);
}

void prn_buffers_poison(const prn_plan *plan, uint32_t step)
{
    for (size_t b = 0; b < plan->memory.buffer_count; b++)
        if (plan->memory.buffers[b].last == step)
            prn_bytes_poison(plan->memory.base + plan->memory.buffers[b].offset, (size_t)plan->memory.buffers[b].bytes);
}
