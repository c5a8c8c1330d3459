/* Users and writers of roots, and the order of buffers that follows from them. */
#include "engine/plan/buffer_order.h"

#include "engine/plan/plan.h"

#define NONE UINT32_MAX

/* ---- uses ---- */

void prn_uses_free(prn_uses *uses)
{
    prn_free(uses->users);
    prn_free(uses->writers);
    prn_free(uses->kept);
    prn_free(uses->items);
    *uses = (prn_uses){0};
}

static void buffer_order_add(prn_uses *uses, uint32_t *list, uint32_t step)
{
    if (*list != NONE && uses->items[*list].step == step) return;
    uses->items[uses->count] = (prn_byte_use){step, *list};
    *list = (uint32_t)uses->count++;
}

static void buffer_order_add_step(prn_uses *uses, const prn_plan *plan, uint32_t s)
{
    const prn_step *step = plan->steps[s];
    for (size_t i = 0; i < step->context.input_count; i++)
        if (step->inputs[i] != PRN_NO_VALUE)
            buffer_order_add(uses, &uses->users[prn_plan_root(plan, step->inputs[i], NULL)], s);
    for (uint32_t c = 0; c < step->node->child_count; c++)
        for (uint32_t k = 0; k < step->node->children[c].captured_count; k++) {
            uint32_t value = prn_plan_plain(plan, step->node->children[c].captured[k]);
            buffer_order_add(uses, &uses->users[prn_plan_root(plan, value, NULL)], s);
        }
    for (size_t k = 0; k < step->context.output_count; k++) {
        if (step->outputs[k] == PRN_NO_VALUE) continue;
        uint32_t root = prn_plan_root(plan, step->outputs[k], NULL);
        buffer_order_add(uses, &uses->users[root], s);
        buffer_order_add(uses, &uses->writers[root], s);
    }
}

prony_status prn_uses_find(prn_uses *uses, const prn_plan *plan, prony_error *error)
{
    size_t n = plan->value_count + 1, most = 1;
    for (size_t s = 0; s < plan->step_count; s++) {
        const prn_step *step = plan->steps[s];
        most += step->context.input_count + 2 * step->context.output_count;
        for (uint32_t c = 0; c < step->node->child_count; c++) most += step->node->children[c].captured_count;
    }
    *uses = (prn_uses){.users = prn_calloc(n, sizeof *uses->users),
                       .writers = prn_calloc(n, sizeof *uses->writers),
                       .kept = prn_calloc(n, sizeof *uses->kept),
                       .items = prn_calloc(most, sizeof *uses->items),
                       .graph = plan->parallel.graph};
    if (!uses->users || !uses->writers || !uses->kept || !uses->items || most >= NONE) {
        prn_uses_free(uses);
        return prn_no_memory(error);
    }
    for (size_t v = 0; v < n; v++) uses->users[v] = uses->writers[v] = NONE;
    for (uint32_t s = 0; s < plan->step_count; s++) buffer_order_add_step(uses, plan, s);
    for (size_t k = 0; k < plan->program->output_count; k++)
        uses->kept[prn_plan_root(plan, plan->outputs[k], NULL)] = true;
    return PRONY_OK;
}

bool prn_uses_allow(const prn_uses *uses, uint32_t in, uint32_t out, uint32_t s)
{
    if (uses->kept[in]) return false;
    for (uint32_t u = uses->users[in]; u != NONE; u = uses->items[u].next)
        if (uses->items[u].step != s && !prn_step_before(uses->graph, uses->items[u].step, s)) return false;
    for (uint32_t u = uses->users[out]; u != NONE; u = uses->items[u].next)
        if (uses->items[u].step != s && !prn_step_before(uses->graph, s, uses->items[u].step)) return false;
    return true;
}

void prn_uses_merge(prn_uses *uses, uint32_t in, uint32_t out)
{
    uses->users[in] = uses->users[out];
    uses->kept[in] |= uses->kept[out];
}

/* ---- the order of buffers ---- */

typedef struct order {
    const prn_step_graph *graph;
    uint64_t *after;       /* [buffers][PRN_WINDOW_WORDS] steps that all users are before, in the window of the last */
    uint32_t *last_window; /* [buffers] NONE: kept */
    uint32_t *writer;      /* [buffers] first of its list; NONE: the step in `own` alone */
    uint32_t *own;         /* [buffers] of scratch: the step */
    const prn_byte_use *items;
} order;

static bool buffer_order_reached(const order *o, uint32_t a, uint32_t step)
{
    uint32_t window = step / PRN_WINDOW_STEPS, bit = step % PRN_WINDOW_STEPS;
    if (window != o->last_window[a]) return window > o->last_window[a];
    return o->after[a * (size_t)PRN_WINDOW_WORDS + bit / 64] >> bit % 64 & 1;
}

static bool before(const void *argument, uint32_t a, uint32_t b)
{
    const order *o = argument;
    if (o->last_window[a] == NONE) return false;
    if (o->writer[b] == NONE) return buffer_order_reached(o, a, o->own[b]);
    for (uint32_t u = o->writer[b]; u != NONE; u = o->items[u].next)
        if (!buffer_order_reached(o, a, o->items[u].step)) return false;
    return true;
}

static void note_user(order *o, uint32_t buffer, uint32_t step)
{
    uint64_t *row = o->after + buffer * (size_t)PRN_WINDOW_WORDS;
    const uint64_t *more = prn_step_after(o->graph, step);
    uint32_t window = step / PRN_WINDOW_STEPS, *last = &o->last_window[buffer];
    bool first = *last == NONE || window > *last;
    if (!first && window < *last) return;
    *last = window;
    for (uint32_t w = 0; w < PRN_WINDOW_WORDS; w++) row[w] = first ? more[w] : row[w] & more[w];
}

static void buffer_order_fill(order *o, const prn_plan *plan, const prn_uses *uses)
{
    for (uint32_t b = 0; b < plan->memory.buffer_count; b++) {
        uint32_t owner = plan->memory.owner[b];
        o->last_window[b] = o->writer[b] = NONE;
        if (plan->memory.tag[b] != PRN_TAG_ACTIVATION) {
            o->own[b] = owner;
            note_user(o, b, owner);
            continue;
        }
        o->writer[b] = uses->writers[owner];
        if (uses->kept[owner]) continue;
        for (uint32_t u = uses->users[owner]; u != NONE; u = uses->items[u].next) note_user(o, b, uses->items[u].step);
    }
}

prony_status prn_plan_memory_by(prn_plan *plan, const prn_uses *uses, uint64_t alignment, prony_error *error)
{
    size_t n = plan->memory.buffer_count + 1;
    order o = {.graph = plan->parallel.graph,
               .after = prn_calloc(n, PRN_WINDOW_WORDS * sizeof *o.after),
               .last_window = prn_calloc(n, sizeof *o.last_window),
               .writer = prn_calloc(n, sizeof *o.writer),
               .own = prn_calloc(n, sizeof *o.own),
               .items = uses->items};
    prony_status status = prn_no_memory(NULL);
    if (o.after && o.last_window && o.writer && o.own) {
        buffer_order_fill(&o, plan, uses);
        prn_buffer_order by = {before, &o, PRN_WINDOW_STEPS};
        status = prn_memory_plan_by(plan->memory.buffers, plan->memory.buffer_count, (uint32_t)plan->step_count + 1,
                                    alignment, &by, &plan->memory.figures, error);
    } else {
        (void)prn_no_memory(error);
    }
    prn_free(o.after);
    prn_free(o.last_window);
    prn_free(o.writer);
    prn_free(o.own);
    return status;
}
