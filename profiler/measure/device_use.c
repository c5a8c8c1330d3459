/* Implements device_use.h. */
#include "profiler/measure/device_use.h"

#include "base/memory/alloc.h"
#include "engine/plan/device_split.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct step_sum {
    int64_t busy_ns, wait_ns;
} step_sum;

struct prn_device_sums {
    size_t runs;
    int64_t latency_ns;
    step_sum steps[]; /* of the plan */
};

prony_status prn_device_sums_create(prn_device_sums **out, const prn_plan *plan, prony_error *error)
{
    *out = NULL;
    if (!plan->options.device) return PRONY_OK;
    *out = prn_calloc(1, sizeof **out + plan->step_count * sizeof *(*out)->steps);
    return *out ? PRONY_OK : prn_no_memory(error);
}

void prn_device_sums_release(prn_device_sums *sums)
{
    prn_free(sums);
}

void prn_device_sums_add(prn_device_sums *sums, const prn_plan *plan, int64_t latency_ns)
{
    if (!sums) return;
    for (size_t s = 0; s < plan->step_count; s++) {
        const prn_device_times *t = &plan->steps[s]->device.times;
        if (!t->launches) continue;
        sums->steps[s].busy_ns += t->busy_ns;
        sums->steps[s].wait_ns += t->started_ns - t->queued_ns;
    }
    sums->latency_ns += latency_ns;
    sums->runs++;
}

/* ---- the report ---- */

typedef struct device_view {
    const prn_device_sums *sums; /* NULL: no run was stamped */
    const prn_plan *plan;
    int64_t last_run_ns;
    prony_report *report;
} device_view;

static bool is_copy(const prn_step *step)
{
    return strcmp(step->node->info.op_type, "Copy") == 0 && strcmp(step->node->info.domain, "prony") == 0;
}

static bool is_on_device(const prn_step *step)
{
    const prn_kernel *kernel = prn_step_kernel(step);
    return kernel && kernel->memory_space && !is_copy(step);
}

static int64_t mean_of(const device_view *v, int64_t sum)
{
    return v->sums ? sum / (int64_t)v->sums->runs : -1;
}

static void put_trace(const device_view *v, const prn_step *step, int64_t *start, int64_t *end)
{
    const prn_device_times *t = &step->device.times;
    if (!v->sums || !t->launches) return;
    *start = t->started_ns - v->last_run_ns;
    *end = t->ended_ns - v->last_run_ns;
}

static prony_status device_use_fill_operator(const device_view *v, const prn_step *step, prony_device_operator_row *row,
                                             prony_error *error)
{
    char names[200] = "";
    prn_device_launch launch;
    *row = (prony_device_operator_row){.operator_index = step->index, .busy_ns = -1, .wait_ns = -1};
    for (size_t i = 0; prn_device_launch_at(step->state, i, &launch); i++) {
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", launch.kernel);
        row->launches++;
        for (int a = 0; i == 0 && a < 3; a++) {
            row->global[a] = launch.global[a];
            row->local[a] = launch.local[a];
        }
    }
    row->kernels = prn_bump_strndup(&v->report->pool, names, strlen(names));
    if (!row->kernels) return prn_no_memory(error);
    if (v->sums) {
        row->busy_ns = mean_of(v, v->sums->steps[step->index].busy_ns);
        row->wait_ns = mean_of(v, v->sums->steps[step->index].wait_ns);
        put_trace(v, step, &row->trace_start_ns, &row->trace_end_ns);
    }
    return PRONY_OK;
}

/* The first step that reads the value, or NULL. */
static const prn_step *device_use_reader_of(const prn_plan *plan, uint32_t value)
{
    for (size_t s = 0; s < plan->step_count; s++)
        for (size_t i = 0; i < plan->steps[s]->context.input_count; i++)
            if (plan->steps[s]->inputs[i] == value) return plan->steps[s];
    return NULL;
}

/* The operator on the host for which the value is copied. */
static const char *copy_reason(const device_view *v, const prn_step *step, bool to_device)
{
    const uint32_t value = to_device ? step->inputs[0] : step->outputs[0];
    const uint32_t maker = v->plan->values[value]->defined;
    const prn_step *host = !to_device             ? device_use_reader_of(v->plan, value)
                           : maker != PRN_NO_STEP ? v->plan->steps[maker]
                                                  : NULL;
    if (!host) return to_device ? "graph input" : "graph output";
    return prn_bump_printf(&v->report->pool, "%s by %s (%s) on the host", to_device ? "made" : "read",
                           host->node->info.name, host->node->info.op_type);
}

static prony_status fill_copy(const device_view *v, const prn_step *step, prony_device_copy_row *row,
                              prony_error *error)
{
    const prn_plan_value *to = v->plan->values[step->outputs[0]];
    const char *name = v->plan->program->values[to->source]->name;
    *row = (prony_device_copy_row){.operator_index = step->index,
                                   .to_device = to->memory_space != PRN_ON_HOST,
                                   .value = prn_bump_strndup(&v->report->pool, name, strlen(name)),
                                   .bytes = v->plan->values[step->inputs[0]]->bytes,
                                   .busy_ns = -1};
    row->reason = copy_reason(v, step, row->to_device);
    if (!row->value || !row->reason) return prn_no_memory(error);
    if (v->sums) row->busy_ns = mean_of(v, v->sums->steps[step->index].busy_ns);
    put_trace(v, step, &row->trace_start_ns, &row->trace_end_ns);
    return PRONY_OK;
}

/* The reason why an operator runs on the host. */
static prony_device_host_row host_row(const device_view *v, const prn_step *step)
{
    static const char *const reasons[] = {"no kernel", "memory", "copies"};
    const prn_device_split *split = v->plan->split;
    const prn_partition_row *row =
        split && step->program_node < split->count ? &split->rows[step->program_node] : &(const prn_partition_row){0};
    const bool copies = row->reason == PRN_PARTITION_FOR_COPIES;
    return (prony_device_host_row){.operator_index = step->index,
                                   .reason = reasons[row->reason],
                                   .weight_bytes = row->weight_bytes,
                                   .copies_ns = copies ? llround(row->copies_ns) : -1,
                                   .saved_ns = copies ? llround(row->saved_ns) : -1};
}

static void fill_split(const device_view *v)
{
    prony_device_report *d = &v->report->device;
    const prn_device_split *split = v->plan->split;
    d->is_split = split != NULL;
    if (split)
        d->split =
            (prony_device_split_totals){split->for_memory, split->for_copies, split->weight_bytes, split->room_bytes};
}

static prony_status fill_rows(const device_view *v, prony_error *error)
{
    prony_device_report *d = &v->report->device;
    prony_device_operator_row *operators = prn_bump_alloc(&v->report->pool, v->plan->step_count + 1, sizeof *operators);
    prony_device_copy_row *copies = prn_bump_alloc(&v->report->pool, v->plan->step_count + 1, sizeof *copies);
    prony_device_host_row *hosts = prn_bump_alloc(&v->report->pool, v->plan->step_count + 1, sizeof *hosts);
    if (!operators || !copies || !hosts) return prn_no_memory(error);
    d->host_operators = hosts;
    d->operators = operators;
    d->copies = copies;
    for (size_t s = 0; s < v->plan->step_count; s++) {
        const prn_step *step = v->plan->steps[s];
        if (is_on_device(step))
            PRN_TRY(device_use_fill_operator(v, step, &operators[d->operator_count++], error));
        else if (is_copy(step))
            PRN_TRY(fill_copy(v, step, &copies[d->copy_count++], error));
        else
            hosts[d->host_operator_count++] = host_row(v, step);
    }
    d->operators_on_device = d->operator_count;
    d->operators_on_host = d->host_operator_count;
    return PRONY_OK;
}

/* Sums of the rows, and their shares of the mean latency. Invariant: the four shares add up to 1. */
static void fill_sums(const device_view *v)
{
    prony_device_report *d = &v->report->device;
    for (size_t i = 0; i < d->copy_count; i++)
        *(d->copies[i].to_device ? &d->to_device_bytes : &d->from_device_bytes) += d->copies[i].bytes;
    d->busy_ns = d->copy_ns = d->wait_ns = -1;
    d->busy_share = d->copy_share = d->wait_share = d->idle_share = -1;
    if (!v->sums || v->sums->latency_ns <= 0) return;
    d->runs = v->sums->runs;
    d->busy_ns = d->copy_ns = d->wait_ns = 0;
    for (size_t i = 0; i < d->operator_count; i++) {
        d->busy_ns += d->operators[i].busy_ns;
        d->wait_ns += d->operators[i].wait_ns;
    }
    for (size_t i = 0; i < d->copy_count; i++) d->copy_ns += d->copies[i].busy_ns;
    const double latency = (double)v->sums->latency_ns / (double)v->sums->runs;
    d->busy_share = (double)d->busy_ns / latency;
    d->copy_share = (double)d->copy_ns / latency;
    d->wait_share = (double)d->wait_ns / latency;
    d->idle_share = 1 - d->busy_share - d->copy_share - d->wait_share;
    if (d->idle_share < 0) d->idle_share = 0;
}

/* Rates of the operators beside the device's kept peaks. A damaged file of peaks counts as missing: `prony devices`
 * replaces it. */
static void fill_roofs(const device_view *v)
{
    prony_device_report *d = &v->report->device;
    prony_device_operator_row *rows = (prony_device_operator_row *)(uintptr_t)d->operators;
    d->peaks = (prony_device_peaks)PRONY_DEVICE_PEAKS_INIT;
    if (prony_device_peaks_load(&d->peaks, &d->has_peaks, &d->info, NULL) != PRONY_OK) d->has_peaks = false;
    for (size_t i = 0; i < d->operator_count; i++)
        prn_device_operator_roof(d, &v->report->operators[rows[i].operator_index], &rows[i]);
}

static void fill_memory(const device_view *v)
{
    prony_device_report *d = &v->report->device;
    const prn_device_use use = prn_device_usage(v->plan->options.device);
    for (size_t p = 0; p < v->plan->memory.space_count; p++) {
        d->values_bytes += v->plan->memory.spaces[p].figures.planned_bytes;
        d->values_lower_bound_bytes += v->plan->memory.spaces[p].figures.lower_bound_bytes;
    }
    d->constants_bytes = use.constant_bytes;
    d->peak_bytes = use.peak_bytes;
    d->programs = (uint32_t)use.programs;
    d->programs_loaded = (uint32_t)use.loaded;
    d->kernels = (uint32_t)use.kernels;
}

prony_status prn_device_sums_report(const prn_device_sums *sums, const prn_plan *plan, int64_t last_run_ns,
                                    prony_report *report, prony_error *error)
{
    if (!plan->options.device) return PRONY_OK;
    const device_view v = {sums && sums->runs ? sums : NULL, plan, last_run_ns, report};
    report->has_device = true;
    report->device = (prony_device_report){.info = *prn_device_description(plan->options.device)};
    PRN_TRY(fill_rows(&v, error));
    fill_split(&v);
    fill_sums(&v);
    fill_roofs(&v);
    fill_memory(&v);
    return PRONY_OK;
}
