/* Fills and poisons unused bytes; only for plans with `fill_dead`. */
#include "engine/plan/buffer_poison.h"
#include "base/memory/poison.h"
#include "engine/plan/plan.h"

void prn_buffers_poison_all(const prn_plan *plan)
{
    prn_bytes_poison(plan->base, (size_t)plan->figures.planned_bytes);
}

void prn_buffers_unpoison(const prn_plan *plan, uint32_t step)
{
    for (size_t b = 0; b < plan->buffer_count; b++)
        if (plan->buffers[b].first == step)
            prn_bytes_unpoison(plan->base + plan->buffers[b].offset, (size_t)plan->buffers[b].bytes);
}

void prn_buffers_poison(const prn_plan *plan, uint32_t step)
{
    for (size_t b = 0; b < plan->buffer_count; b++)
        if (plan->buffers[b].last == step)
            prn_bytes_poison(plan->base + plan->buffers[b].offset, (size_t)plan->buffers[b].bytes);
}
