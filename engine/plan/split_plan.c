/* Plans that a device does not hold as a whole: a plan is tried, and where memory of the device is refused it is made again
 * with fewer operators there. Only the plan itself knows its exact bytes, such as tables of kernels and fragmentation,
 * so the room is an estimate that shrinks from try to try. */
#include "engine/plan/device_split.h"
#include "engine/plan/planner.h"

#include "base/memory/alloc.h"

/* The room of each try, as a share of the device's free memory. */
static const double shares[] = {1.0, 0.9, 0.75, 0.5, 0.25, 0.1};

typedef struct splitter {
    prn_program *program;
    prn_plan_options options;
    prn_device_split *split;
    prn_partition_rates rates;
    prn_partition_graph graph; /* units NULL: not made yet */
    bool *may;                 /* units that can run on the device and do not stay for their copies */
    bool *on_device;
    bool full;
} splitter;

static void splitter_release(splitter *s)
{
    prn_partition_graph_release(&s->graph);
    prn_device_split_release(s->split);
    prn_free(s->may);
    prn_free(s->on_device);
}

/* The graph of the plan that has everything on the device: from its kernels, of which nothing is prepared. */
static prony_status splitter_draft(splitter *s, prony_error *error)
{
    if (s->graph.units) return PRONY_OK;
    prn_plan *draft = NULL;
    prn_plan_options options = s->options;
    options.split = NULL;
    options.kernels_only = true;
    s->rates.threads = options.threads;
    if (s->program->model->find_rates) PRN_TRY(s->program->model->find_rates(&s->rates.host, error));
    PRN_TRY(prn_plan_create(&draft, s->program, NULL, &options, error));
    prony_status status = prn_partition_graph_create(&s->graph, draft, &s->rates, error);
    prn_plan_release(draft);
    if (status != PRONY_OK) return status;
    s->may = prn_calloc(s->graph.unit_count + 1, sizeof *s->may);
    s->on_device = prn_calloc(s->graph.unit_count + 1, sizeof *s->on_device);
    if (!s->may || !s->on_device) return prn_no_memory(error);
    for (size_t u = 0; u < s->graph.unit_count; u++) s->may[u] = s->graph.units[u].can;
    return PRONY_OK;
}

/* Makes the plan with the present decisions, which it keeps for reports. */
static prony_status splitter_try(splitter *s, prn_plan **out, prony_error *error)
{
    const size_t refusals = prn_device_usage(s->options.device).refusals;
    s->full = false;
    s->options.split = s->split;
    s->options.device_full = &s->full;
    const prony_status status = prn_plan_create(out, s->program, NULL, &s->options, error);
    s->full |= prn_device_usage(s->options.device).refusals != refusals; /* another session's costs a try at most */
    if (status != PRONY_OK) return status;
    (*out)->options.split = NULL;
    (*out)->options.device_full = NULL;
    if (s->split->for_memory + s->split->for_copies == 0) return PRONY_OK;
    (*out)->split = s->split;
    s->split = NULL;
    return PRONY_OK;
}

/* Constants of this plan that other plans have on the device already take no room of it: the graph knows them. */
static uint64_t splitter_room(const splitter *s, double share)
{
    const uint64_t limit = prn_plan_device_limit(&s->options), used = prn_device_usage(s->options.device).bytes;
    return used < limit ? (uint64_t)((double)(limit - used) * share) : 0;
}

/* Decides for `room` bytes of the device. */
static prony_status splitter_fit(splitter *s, uint64_t room, prony_error *error)
{
    for (size_t u = 0; u < s->graph.unit_count; u++) s->on_device[u] = s->may[u];
    return prn_partition_for_memory(s->split, &s->graph, room, s->on_device, error);
}

/* Tries with less and less room. A device without room for a single operator is refused, as in the first try; if other
 * plans have its memory, such as the one of a decoder's prompt, everything stays on the host. */
static prony_status split_for_room(splitter *s, prn_plan **out, prony_status refused, prony_error *error)
{
    const prony_error first = error ? *error : (prony_error){0};
    const uint64_t room = splitter_room(s, 1);
    PRN_TRY(splitter_draft(s, error));
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        PRN_TRY(splitter_fit(s, splitter_room(s, shares[i]), error));
        if (s->split->on_device == 0) break;
        const prony_status status = splitter_try(s, out, error);
        if (status == PRONY_OK || !s->full) return status;
    }
    if (s->split->on_device == 0 && prn_device_usage(s->options.device).bytes == 0)
        return prn_fail(error, refused, "%.400s; it has no room for a single operator", first.message);
    PRN_TRY(splitter_fit(s, 0, error));
    s->split->room_bytes = room;
    return splitter_try(s, out, error);
}

static prony_status splitter_find_peaks(splitter *s, prony_error *error)
{
    const prony_model *model = s->program->model;
    return model->find_device_peaks ? model->find_device_peaks(&s->rates.peaks, &s->rates.known,
                                                               prn_device_description(s->options.device), error)
                                    : PRONY_OK;
}

prony_status prn_plan_create_split(prn_plan **out, prn_program *program, const prn_plan_options *options,
                                   prony_error *error)
{
    splitter s = {.program = program, .options = *options};
    if (!options->device || options->kernels_only || options->device_split == PRONY_DEVICE_SPLIT_NONE)
        return prn_plan_create(out, program, NULL, options, error);
    prony_status status = prn_device_split_create(&s.split, program->node_count, error);
    if (status == PRONY_OK) status = splitter_find_peaks(&s, error);
    if (status == PRONY_OK && options->device_split == PRONY_DEVICE_SPLIT_AUTO && s.rates.known) {
        status = splitter_draft(&s, error);
        if (status == PRONY_OK) status = prn_partition_for_copies(s.split, &s.graph, s.may, error);
    }
    if (status == PRONY_OK) {
        status = splitter_try(&s, out, error);
        if (status != PRONY_OK && s.full) status = split_for_room(&s, out, status, error);
    }
    splitter_release(&s);
    return status;
}
