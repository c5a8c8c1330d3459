/* The memory section of a report: the plan's buffers, and the dynamic region's events in the last run. */
#include "profiler/measure/report_build.h"

#include <string.h>

static const char *owner_name(const prn_plan *plan, size_t buffer)
{
    uint32_t owner = plan->memory.owner[buffer];
    if (plan->memory.tag[buffer] == PRN_TAG_SCRATCH) return plan->steps[owner]->node->info.name;
    return plan->program->values[plan->values[owner]->source]->name;
}

static uint64_t report_memory_aligned(uint64_t bytes)
{
    return (bytes + 63) & ~UINT64_C(63);
}

/* Turns the buffer list into events in order of time, by counting buffers that begin and end at each step. */
static prony_status fill_events(prony_report *report, const prn_plan *plan, prony_error *error)
{
    prony_memory_report *memory = &report->memory;
    size_t dynamic_count = 0;
    const prn_arena_event *dynamic = prn_arena_events(plan->memory.arena, &dynamic_count);
    prony_memory_event *events =
        prn_bump_alloc(&report->pool, 2 * plan->memory.buffer_count + dynamic_count + 1, sizeof *events);
    size_t *next = prn_calloc(2 * (plan->step_count + 2), sizeof *next);
    prony_status status = events && next ? PRONY_OK : prn_no_memory(error);
    if (status == PRONY_OK) {
        size_t slots = 2 * (plan->step_count + 1);
        for (size_t b = 0; b < plan->memory.buffer_count; b++) {
            next[2 * plan->memory.buffers[b].first]++;
            next[2 * plan->memory.buffers[b].last + 1]++;
        }
        for (size_t i = 0, sum = 0; i < slots; i++) {
            size_t here = next[i];
            next[i] = sum;
            sum += here;
        }
        for (size_t b = 0; status == PRONY_OK && b < plan->memory.buffer_count; b++) {
            const prn_buffer *buffer = &plan->memory.buffers[b];
            const char *name = owner_name(plan, b);
            const char *copy = prn_bump_strndup(&report->pool, name, strlen(name));
            if (!copy) status = prn_no_memory(error);
            prony_memory_event e = {.owner = copy,
                                    .tag = prn_arena_tag_name((prn_arena_tag)plan->memory.tag[b]),
                                    .asked_bytes = buffer->bytes,
                                    .given_bytes = report_memory_aligned(buffer->bytes),
                                    .offset_bytes = buffer->offset,
                                    .step = buffer->first};
            events[next[2 * buffer->first]++] = e;
            e.release = true;
            e.step = buffer->last;
            events[next[2 * buffer->last + 1]++] = e;
        }
        memory->event_count = 2 * plan->memory.buffer_count;
    }
    for (size_t d = 0; status == PRONY_OK && d < dynamic_count; d++) {
        const char *name = plan->program->values[plan->values[dynamic[d].owner]->source]->name;
        const char *copy = prn_bump_strndup(&report->pool, name, strlen(name));
        if (!copy) status = prn_no_memory(error);
        events[memory->event_count++] = (prony_memory_event){.release = dynamic[d].release,
                                                             .owner = copy,
                                                             .tag = prn_arena_tag_name((prn_arena_tag)dynamic[d].tag),
                                                             .asked_bytes = dynamic[d].asked_bytes,
                                                             .given_bytes = dynamic[d].given_bytes,
                                                             .offset_bytes = dynamic[d].offset_bytes,
                                                             .step = dynamic[d].step};
    }
    prn_free(next);
    memory->events = events;
    return status;
}

static prony_status fill_timeline(prony_report *report, const prn_plan *plan, prony_error *error)
{
    prony_memory_point *points = prn_bump_alloc(&report->pool, plan->step_count + 1, sizeof *points);
    int64_t *change = prn_calloc(plan->step_count + 2, sizeof *change);
    prony_status status = points && change ? PRONY_OK : prn_no_memory(error);
    int64_t live = 0;
    for (size_t b = 0; status == PRONY_OK && b < plan->memory.buffer_count; b++) {
        change[plan->memory.buffers[b].first] += (int64_t)report_memory_aligned(plan->memory.buffers[b].bytes);
        if (plan->memory.buffers[b].last + 1 <= plan->step_count)
            change[plan->memory.buffers[b].last + 1] -= (int64_t)report_memory_aligned(plan->memory.buffers[b].bytes);
    }
    for (uint32_t s = 0; status == PRONY_OK && s < plan->step_count; s++) {
        live += change[s];
        points[s] = (prony_memory_point){s, (uint64_t)live};
    }
    prn_free(change);
    report->memory.timeline = points;
    report->memory.timeline_count = plan->step_count;
    return status;
}

prony_status prn_report_fill_memory(prony_report *report, prony_model *model, const prn_plan *plan, bool record,
                                    prony_error *error)
{
    prony_memory_report *memory = &report->memory;
    const prn_memory_plan_figures *figures = &plan->memory.figures;
    prn_arena_figures dynamic;
    prn_arena_read(plan->memory.arena, &dynamic);
    memory->weight_bytes += plan->program->weight_bytes;
    memory->packed_weight_bytes = prn_weight_cache_bytes(model->shared);
    memory->planned_bytes = figures->planned_bytes;
    memory->lower_bound_bytes = figures->lower_bound_bytes;
    memory->plan_gap =
        figures->planned_bytes ? 1.0 - (double)figures->lower_bound_bytes / (double)figures->planned_bytes : 0;
    memory->peak_live_bytes = figures->lower_bound_bytes + dynamic.peak_live_bytes;
    memory->average_live_bytes = figures->average_live_bytes;
    memory->scratch_bytes = plan->memory.scratch_bytes;
    memory->internal_fragmentation = figures->internal_fragmentation;
    memory->external_fragmentation = figures->external_fragmentation > dynamic.external_fragmentation
                                         ? figures->external_fragmentation
                                         : dynamic.external_fragmentation;
    memory->allocations = plan->memory.buffer_count + dynamic.allocations;
    memory->releases = plan->memory.buffer_count + dynamic.releases;
    report->has_memory = true;
    PRN_TRY(fill_timeline(report, plan, error));
    return record ? fill_events(report, plan, error) : PRONY_OK;
}
