#include "engine/run/nested.h"

/* Parents before children. */
static bool nested_collect(prn_nested *nested, const prn_plan *plan)
{
    for (size_t s = 0; s < plan->step_count; s++) {
        prn_step *step = plan->steps[s];
        if (plan->nested.outer) step->nested.index = (uint32_t)nested->step_count++;
        for (uint32_t c = 0; step->children && c < step->node->child_count; c++) {
            prn_plan *child = step->children[c];
            if (!child) continue;
            if (!PRN_GROW(nested->plans, nested->plan_capacity, nested->plan_count + 1)) return false;
            child->nested.index = (uint32_t)nested->plan_count;
            nested->plans[nested->plan_count++] = child;
            if (!nested_collect(nested, child)) return false;
        }
    }
    return true;
}

prony_status prn_nested_create(prn_nested **out, const prn_plan *plan, prony_error *error)
{
    prn_nested *nested = prn_calloc(1, sizeof *nested);
    if (!nested) return prn_no_memory(error);
    bool ok = nested_collect(nested, plan);
    if (ok) nested->trips = prn_calloc(nested->plan_count + 1, sizeof *nested->trips);
    if (ok) nested->tallies = prn_calloc(nested->step_count + 1, sizeof *nested->tallies);
    if (ok && nested->trips && nested->tallies) {
        *out = nested;
        return PRONY_OK;
    }
    prn_nested_release(nested);
    return prn_no_memory(error);
}

void prn_nested_release(prn_nested *nested)
{
    if (!nested) return;
    prn_free(nested->plans);
    prn_free(nested->trips);
    prn_free(nested->tallies);
    prn_free(nested);
}

void prn_nested_read(prn_nested *nested)
{
    for (size_t p = 0; p < nested->plan_count; p++) {
        const prn_plan *plan = nested->plans[p];
        nested->trips[p] = plan->nested.trips;
        for (size_t s = 0; s < plan->step_count; s++) {
            const prn_step *step = plan->steps[s];
            prn_tally *tally = &nested->tallies[step->nested.index];
            tally->start_ns = step->nested.start_ns;
            tally->time_ns = step->nested.total_ns;
            if (step->dynamic || step->children) tally->cost = *step->work.executed;
        }
    }
}

bool prn_nested_cost(const prn_nested *nested, const prn_plan *plan, const prn_step *step, prony_cost *to)
{
    if (!step->dynamic && !step->children) {
        prony_cost once = prn_cost_kept(&step->work.cost);
        once.parameters = 0;
        return prn_cost_add_times(to, &once, nested->trips[plan->nested.index]);
    }
    bool ok = prn_cost_add(to, &nested->tallies[step->nested.index].cost);
    for (uint32_t c = 0; ok && step->children && c < step->node->child_count; c++) {
        const prn_plan *child = step->children[c];
        if (!child) continue;
        ok = prn_cost_add_times(to, &child->fixed_cost, nested->trips[child->nested.index]);
        for (size_t s = 0; ok && s < child->step_count; s++)
            if (child->steps[s]->dynamic || child->steps[s]->children)
                ok = prn_nested_cost(nested, child, child->steps[s], to);
    }
    return ok;
}
