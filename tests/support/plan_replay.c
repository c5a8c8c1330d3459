/* This file draws the order; the schedule knows the ready steps. A buffer dies when its last user has ended; the
 * test counts users from the plan's steps and values, without the plan's own order of buffers. */
#include "tests/support/plan_replay.h"

#include <stdlib.h>
#include <string.h>

enum { PATTERN = 0xff, MOST_RUNNING = 64 };

typedef struct replay {
    prn_plan *plan;
    uint64_t random;
    uint32_t *users; /* [buffers] that have not ended; UINT32_MAX: a graph output's */
    uint32_t running[MOST_RUNNING], count;
} replay;

static uint32_t draw(replay *r, uint32_t bound)
{
    r->random ^= r->random << 13;
    r->random ^= r->random >> 7;
    r->random ^= r->random << 17;
    return (uint32_t)((r->random >> 33) % bound);
}

static uint32_t buffer_of(const prn_plan *plan, uint32_t value)
{
    return value == PRN_NO_VALUE ? PRN_NO_BUFFER : plan->values[prn_plan_root(plan, value, NULL)]->buffer;
}

/* Buffers that the step touches, each as often as the step touches it. */
static void each_buffer(replay *r, uint32_t s, void (*visit)(replay *r, uint32_t buffer))
{
    const prn_plan *plan = r->plan;
    const prn_step *step = plan->steps[s];
    for (size_t i = 0; i < step->context.input_count; i++) visit(r, buffer_of(plan, step->inputs[i]));
    for (size_t k = 0; k < step->context.output_count; k++) visit(r, buffer_of(plan, step->outputs[k]));
    for (uint32_t c = 0; c < step->node->child_count; c++)
        for (uint32_t k = 0; k < step->node->children[c].captured_count; k++)
            visit(r, buffer_of(plan, prn_plan_plain(plan, step->node->children[c].captured[k])));
    visit(r, step->memory.scratch_buffer);
    visit(r, step->memory.children_buffer);
}

static void poison(const prn_plan *plan, uint32_t buffer)
{
    memset(plan->memory.base + plan->memory.buffers[buffer].offset, PATTERN,
           (size_t)plan->memory.buffers[buffer].bytes);
}

static void add_user(replay *r, uint32_t buffer)
{
    if (buffer != PRN_NO_BUFFER) r->users[buffer]++;
}

static void drop_user(replay *r, uint32_t buffer)
{
    if (buffer == PRN_NO_BUFFER || r->users[buffer] == UINT32_MAX) return;
    if (--r->users[buffer] == 0) poison(r->plan, buffer);
}

static bool overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    return (uintptr_t)a < (uintptr_t)b + b_bytes && (uintptr_t)b < (uintptr_t)a + a_bytes;
}

/* Invalidates all bytes that the step writes, except those that it also reads there. */
static void begin(replay *r, uint32_t s)
{
    const prn_plan *plan = r->plan;
    const prn_step *step = plan->steps[s];
    for (size_t k = 0; k < step->context.output_count; k++) {
        if (step->outputs[k] == PRN_NO_VALUE || buffer_of(plan, step->outputs[k]) == PRN_NO_BUFFER) continue;
        const prn_plan_value *out = plan->values[step->outputs[k]];
        bool read = false;
        for (size_t i = 0; i < step->context.input_count; i++) {
            if (step->inputs[i] == PRN_NO_VALUE) continue;
            const prn_plan_value *in = plan->values[step->inputs[i]];
            read |= in->value.data && overlap(out->value.data, out->bytes, in->value.data, in->bytes);
        }
        if (!read) memset(out->value.data, PATTERN, out->bytes);
    }
    if (step->memory.scratch_buffer != PRN_NO_BUFFER) poison(plan, step->memory.scratch_buffer);
    if (step->memory.children_buffer != PRN_NO_BUFFER) poison(plan, step->memory.children_buffer);
    r->running[r->count++] = s;
}

static prony_status end(replay *r, uint32_t at, prony_error *error)
{
    uint32_t s = r->running[at];
    r->running[at] = r->running[--r->count];
    PRN_TRY(prn_plan_step(r->plan, s, error));
    each_buffer(r, s, drop_user);
    prn_schedule_end(r->plan->parallel.schedule, s);
    return PRONY_OK;
}

static prony_status run(replay *r, prony_error *error)
{
    const prn_plan *plan = r->plan;
    uint32_t most = (uint32_t)(plan->parallel.workers < MOST_RUNNING ? plan->parallel.workers : MOST_RUNNING);
    memset(plan->memory.base, PATTERN, (size_t)plan->memory.figures.planned_bytes);
    for (uint32_t s = 0; s < plan->step_count; s++) each_buffer(r, s, add_user);
    for (size_t k = 0; k < plan->program->output_count; k++) {
        uint32_t buffer = buffer_of(plan, plan->outputs[k]);
        if (buffer != PRN_NO_BUFFER) r->users[buffer] = UINT32_MAX;
    }
    prn_schedule_begin(plan->parallel.schedule);
    for (;;) {
        uint32_t step = UINT32_MAX;
        if (r->count < most && (r->count == 0 || draw(r, 3))) {
            step = prn_schedule_take(plan->parallel.schedule, draw(r, 6));
            if (step == UINT32_MAX) step = prn_schedule_take(plan->parallel.schedule, 0);
        }
        if (step != UINT32_MAX)
            begin(r, step);
        else if (r->count)
            PRN_TRY(end(r, draw(r, r->count), error));
        else
            return PRONY_OK;
    }
}

prony_status plan_replay(prn_plan *plan, uint64_t seed, prony_error *error)
{
    replay r = {.plan = plan, .random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1};
    r.users = calloc(plan->memory.buffer_count + 1, sizeof *r.users);
    if (!r.users) abort();
    prony_status status = run(&r, error);
    free(r.users);
    if (status != PRONY_OK)
        for (uint32_t v = 0; v < plan->value_count; v++)
            if (plan->values[v]->dynamic) prn_plan_give_back(plan, v, (uint32_t)plan->step_count);
    return status;
}
