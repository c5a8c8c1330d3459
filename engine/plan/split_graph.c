#include "engine/plan/split_graph.h"

#include "base/memory/alloc.h"

#include <stdlib.h>
#include <string.h>

/* Rates where none were measured: a graphics card on PCI Express beside one thread of a processor with AVX2. Chosen
 * without measurement; the ratios matter. */
#define GUESSED_DEVICE_FLOPS_PER_NS 5000.0
#define GUESSED_DEVICE_BYTES_PER_NS 300.0
#define GUESSED_COPY_BYTES_PER_NS 10.0
#define GUESSED_LAUNCH_NS 5000.0 /* of a copy; those of kernels are in the rates */
#define GUESSED_HOST_FLOPS_PER_NS 50.0
#define GUESSED_HOST_BYTES_PER_NS 10.0
enum { DEVICE_ALIGNMENT = 64 };

typedef struct split_rates {
    double host_flops, host_bytes, device_flops, device_bytes, launch_ns;
} split_rates;

static split_rates split_rates_of(const prn_partition_rates *given)
{
    const double threads = given->threads > 1 ? given->threads : 1;
    split_rates r = {GUESSED_HOST_FLOPS_PER_NS, GUESSED_HOST_BYTES_PER_NS, GUESSED_DEVICE_FLOPS_PER_NS,
                     GUESSED_DEVICE_BYTES_PER_NS, 0};
    if (given->host.flops_per_ns > 0) r.host_flops = given->host.flops_per_ns;
    if (given->host.bytes_per_ns > 0) r.host_bytes = given->host.bytes_per_ns;
    r.host_flops *= threads;
    if (!given->known) return r;
    r.device_flops = given->peaks.flops_per_second / 1e9;
    r.device_bytes = given->peaks.bytes_per_second / 1e9;
    r.launch_ns = (double)given->peaks.launch_ns;
    return r;
}

static double longer_ns(const prn_kept_cost *cost, double flops_per_ns, double bytes_per_ns)
{
    const double compute = ((double)cost->flops + (double)cost->int_ops) / flops_per_ns,
                 memory = ((double)cost->bytes_read + (double)cost->bytes_written) / bytes_per_ns;
    return compute > memory ? compute : memory;
}

/* ---- from steps to units ---- */

typedef struct graph_maker {
    prn_partition_graph *graph;
    const prn_plan *plan;
    split_rates rates;
    double caches; /* share of the steps' rows that announced caches will take */
} graph_maker;

static bool is_bridge(const prn_step *step)
{
    return strcmp(step->node->info.domain, "prony") == 0 &&
           (strcmp(step->node->info.op_type, "Copy") == 0 || strcmp(step->node->info.op_type, "Reorder") == 0);
}

/* The program value whose elements a plan value has: through forms and views. */
static uint32_t tensor_of(const prn_plan *plan, uint32_t value)
{
    for (;;) {
        const uint32_t source = plan->values[value]->source;
        const prn_plan_value *made = plan->values[source];
        if (made->view == PRN_NO_VALUE || made->view == value) return source;
        value = made->view;
    }
}

/* Subgraphs' operators on the device, for the unit that runs them: one trip each. */
static void split_graph_add_children(prn_partition_unit *unit, const prn_step *step, const split_rates *rates)
{
    for (uint32_t c = 0; step->children && c < step->node->child_count; c++) {
        const prn_plan *child = step->children[c];
        for (size_t s = 0; child && s < child->step_count; s++) {
            const prn_step *inner = child->steps[s];
            split_graph_add_children(unit, inner, rates);
            if (!inner->kernel || !inner->kernel->memory_space) continue;
            unit->can = true;
            unit->host_ns += longer_ns(&inner->work.cost, rates->host_flops, rates->host_bytes);
            unit->device_ns +=
                rates->launch_ns + longer_ns(&inner->work.cost, rates->device_flops, rates->device_bytes);
        }
        for (size_t v = 0; child && v < child->value_count; v++)
            if (child->values[v]->memory_space != PRN_ON_HOST && child->values[v]->alias == PRN_NO_VALUE)
                unit->own_bytes += child->values[v]->bytes;
    }
}

static bool kernel_on_device(const prn_step *step)
{
    return step->kernel && step->kernel->memory_space;
}

uint64_t prn_partition_caches(const prn_plan *plan, const prn_step *step)
{
    uint64_t in = 0, out = 0;
    if (!kernel_on_device(step)) return 0;
    for (uint32_t i = 0; i < step->context.input_count; i++)
        if (step->inputs[i] != PRN_NO_VALUE && !prn_kernel_reads_at(step->kernel, i) &&
            !plan->values[step->inputs[i]]->constant)
            in += plan->values[step->inputs[i]]->bytes;
    for (uint32_t k = 0; k < step->context.output_count; k++)
        if (step->outputs[k] != PRN_NO_VALUE && !prn_kernel_writes_at(step->kernel, k))
            out += plan->values[step->outputs[k]]->bytes;
    return in > out ? in : out;
}

static void fill_unit(graph_maker *m, const prn_step *step, uint32_t number)
{
    prn_partition_graph *g = m->graph;
    prn_partition_unit *unit = &g->units[number];
    unit->node = step->program_node;
    if (kernel_on_device(step)) {
        unit->can = true;
        unit->host_ns = longer_ns(&step->work.cost, m->rates.host_flops, m->rates.host_bytes);
        unit->device_ns =
            m->rates.launch_ns + longer_ns(&step->work.cost, m->rates.device_flops, m->rates.device_bytes);
        unit->own_bytes = (uint64_t)(m->caches * (double)prn_partition_caches(m->plan, step));
    }
    split_graph_add_children(unit, step, &m->rates);
    if (unit->device_ns > unit->host_ns) unit->device_ns = unit->host_ns;
    for (uint32_t k = 0; k < step->context.output_count; k++) {
        if (step->outputs[k] == PRN_NO_VALUE) continue;
        prn_partition_tensor *t = &g->tensors[tensor_of(m->plan, step->outputs[k])];
        t->maker = number;
        t->made_on_device = kernel_on_device(step) && prn_kernel_writes_at(step->kernel, k);
    }
}

static void add_use(graph_maker *m, uint32_t value, uint32_t unit, bool on_device)
{
    prn_partition_graph *g = m->graph;
    if (value == PRN_NO_VALUE || g->use_count == g->use_capacity) return;
    g->uses[g->use_count++] = (prn_partition_use){tensor_of(m->plan, value), unit, on_device};
}

/* A constant that a kernel of the device reads on the host is a table there, whose weights in float16 take half. */
static void split_graph_add_table(graph_maker *m, const prn_step *step, uint32_t input)
{
    const prn_plan_value *value = m->plan->values[step->inputs[input]];
    prn_partition_tensor *t = &m->graph->tensors[tensor_of(m->plan, step->inputs[input])];
    if (!value->constant) return;
    const bool halves = m->plan->options.precision == PRONY_PRECISION_FP16 && value->value.dtype == PRONY_FLOAT32;
    t->bytes = halves ? value->bytes / 2 : value->bytes;
}

static void fill_uses(graph_maker *m, const prn_step *step, uint32_t number)
{
    const bool device = kernel_on_device(step);
    for (uint32_t i = 0; i < step->context.input_count; i++) {
        if (step->inputs[i] == PRN_NO_VALUE) continue;
        const bool there = device && prn_kernel_reads_at(step->kernel, i);
        const bool constant = m->plan->values[step->inputs[i]]->constant;
        if (device && !there) split_graph_add_table(m, step, i);
        add_use(m, step->inputs[i], number, there || (device && constant));
    }
    for (uint32_t c = 0; c < step->node->child_count; c++)
        for (uint32_t k = 0; k < step->node->children[c].captured_count; k++)
            add_use(m, step->node->children[c].captured[k], number, false);
}

static void fill_tensors(graph_maker *m)
{
    const prn_plan *plan = m->plan;
    for (size_t v = 0; v < plan->program->value_count; v++) {
        const prn_plan_value *value = plan->values[v];
        prn_partition_tensor *t = &m->graph->tensors[v];
        t->maker = PRN_NO_UNIT;
        t->constant = value->constant;
        t->bytes = value->dynamic ? 0 : value->bytes;
        t->resident = value->constant &&
                      prn_device_constant_known(plan->options.device,
                                                value->shared ? (const void *)value->shared : value->value.data);
    }
    for (size_t k = 0; k < plan->program->output_count; k++)
        m->graph->tensors[tensor_of(plan, plan->program->outputs[k])].given = true;
}

/* Sorts the uses by tensor; those of one tensor stay in the order of units. */
static prony_status sort_uses(prn_partition_graph *g, prony_error *error)
{
    prn_partition_use *sorted = prn_calloc(g->use_count + 1, sizeof *sorted);
    if (!sorted) return prn_no_memory(error);
    for (size_t u = 0; u < g->use_count; u++) g->tensors[g->uses[u].tensor].use_count++;
    uint32_t at = 0;
    for (size_t t = 0; t < g->tensor_count; t++) {
        g->tensors[t].first_use = at;
        at += g->tensors[t].use_count;
        g->tensors[t].use_count = 0;
    }
    for (size_t u = 0; u < g->use_count; u++) {
        prn_partition_tensor *t = &g->tensors[g->uses[u].tensor];
        sorted[t->first_use + t->use_count++] = g->uses[u];
    }
    prn_free(g->uses);
    g->uses = sorted;
    return PRONY_OK;
}

/* Caches that no decoder announced, and caches that are on the device already, need no further memory there. */
static double pending_share(const prn_plan *plan)
{
    double all = 0;
    for (size_t s = 0; s < plan->step_count; s++) all += (double)prn_partition_caches(plan, plan->steps[s]);
    const double pending = all > 0 ? (double)prn_device_cache_pending(plan->options.device) : 0;
    return pending < all ? pending / (all > 0 ? all : 1) : 1;
}

/* Counts units and uses of the plan, and makes room for them. */
static prony_status split_graph_reserve(prn_partition_graph *g, const prn_plan *plan, prony_error *error)
{
    for (size_t s = 0; s < plan->step_count; s++) {
        const prn_step *step = plan->steps[s];
        g->use_capacity += step->context.input_count;
        for (uint32_t c = 0; c < step->node->child_count; c++)
            g->use_capacity += step->node->children[c].captured_count;
    }
    g->tensor_count = plan->program->value_count;
    g->units = prn_calloc(plan->step_count + 1, sizeof *g->units);
    g->tensors = prn_calloc(g->tensor_count + 1, sizeof *g->tensors);
    g->uses = prn_calloc(g->use_capacity + 1, sizeof *g->uses);
    return g->units && g->tensors && g->uses ? PRONY_OK : prn_no_memory(error);
}

/* Units are the plan's kernels in execution order, without its copies, which follow from a choice. Sizes and times are those
 * of one run; rates that were never measured are guessed. After a failure the graph is empty. */
prony_status prn_partition_graph_create(prn_partition_graph *graph, const prn_plan *plan,
                                        const prn_partition_rates *rates, prony_error *error)
{
    *graph = (prn_partition_graph){.keep_all = plan->options.no_reuse || plan->options.workers > 1 ||
                                               plan->options.workers == PRN_WORKERS_AUTO,
                                   .largest_buffer = prn_device_description(plan->options.device)->largest_buffer_bytes,
                                   .to_device_bytes_per_ns = GUESSED_COPY_BYTES_PER_NS,
                                   .from_device_bytes_per_ns = GUESSED_COPY_BYTES_PER_NS};
    graph_maker m = {graph, plan, split_rates_of(rates), pending_share(plan)};
    graph->launch_ns = GUESSED_LAUNCH_NS;
    if (rates->known) {
        graph->launch_ns = m.rates.launch_ns;
        graph->to_device_bytes_per_ns = rates->peaks.to_device_bytes_per_second / 1e9;
        graph->from_device_bytes_per_ns = rates->peaks.from_device_bytes_per_second / 1e9;
    }
    prony_status status = split_graph_reserve(graph, plan, error);
    if (status != PRONY_OK) {
        prn_partition_graph_release(graph);
        return status;
    }
    fill_tensors(&m);
    for (size_t s = 0; s < plan->step_count; s++) {
        if (is_bridge(plan->steps[s])) continue;
        const uint32_t number = (uint32_t)graph->unit_count++;
        fill_unit(&m, plan->steps[s], number);
        fill_uses(&m, plan->steps[s], number);
    }
    status = sort_uses(graph, error);
    if (status != PRONY_OK) prn_partition_graph_release(graph);
    return status;
}

void prn_partition_graph_release(prn_partition_graph *graph)
{
    prn_free(graph->units);
    prn_free(graph->tensors);
    prn_free(graph->uses);
    *graph = (prn_partition_graph){0};
}

/* ---- a choice of units ---- */

double prn_partition_copy_ns(const prn_partition_graph *graph, const prn_partition_tensor *tensor, bool to_device)
{
    return graph->launch_ns +
           (double)tensor->bytes / (to_device ? graph->to_device_bytes_per_ns : graph->from_device_bytes_per_ns);
}

static bool made_there(const prn_partition_tensor *tensor, const bool *on_device)
{
    return tensor->made_on_device && tensor->maker != PRN_NO_UNIT && on_device[tensor->maker];
}

bool prn_partition_copied(const prn_partition_graph *graph, const prn_partition_tensor *tensor, const bool *on_device,
                          bool to_device)
{
    if (tensor->constant || made_there(tensor, on_device) == to_device) return false;
    if (!to_device && tensor->given) return true;
    for (uint32_t u = 0; u < tensor->use_count; u++) {
        const prn_partition_use *use = &graph->uses[tensor->first_use + u];
        if ((use->on_device && on_device[use->unit]) == to_device) return true;
    }
    return false;
}

double prn_partition_graph_ns(const prn_partition_graph *graph, const bool *on_device)
{
    double ns = 0;
    for (size_t u = 0; u < graph->unit_count; u++)
        ns += on_device[u] ? graph->units[u].device_ns : graph->units[u].host_ns;
    for (size_t t = 0; t < graph->tensor_count; t++)
        for (int to_device = 0; to_device < 2; to_device++)
            if (prn_partition_copied(graph, &graph->tensors[t], on_device, to_device))
                ns += prn_partition_copy_ns(graph, &graph->tensors[t], to_device);
    return ns;
}

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + DEVICE_ALIGNMENT - 1) / DEVICE_ALIGNMENT * DEVICE_ALIGNMENT;
}

/* The units from whose start and to whose end the tensor is on the device. false: it never is. A copy to the host is made
 * before its first reader there. */
static bool find_life(const prn_partition_graph *graph, const prn_partition_tensor *t, const bool *on_device,
                      size_t *first, size_t *last)
{
    const bool made = made_there(t, on_device);
    bool lives = made, copied = false;
    *first = *last = made ? t->maker : 0;
    for (uint32_t u = 0; u < t->use_count; u++) {
        const prn_partition_use *use = &graph->uses[t->first_use + u];
        const bool there = use->on_device && on_device[use->unit];
        if (!there && (!made || copied)) continue;
        copied |= !there;
        if (!lives) *first = use->unit;
        lives = true;
        if (use->unit > *last) *last = use->unit;
    }
    if (made && t->given && !copied) *last = graph->unit_count;
    return lives;
}

/* Invariant: growth[u] is what unit u's start adds to the bytes that live, less the bytes that ended before it. */
prony_status prn_partition_graph_memory(const prn_partition_graph *graph, const bool *on_device,
                                        prn_partition_memory *out, prony_error *error)
{
    int64_t *growth = prn_calloc(graph->unit_count + 2, sizeof *growth), live = 0, most = 0;
    bool too_large = false;
    if (!growth) return prn_no_memory(error);
    *out = (prn_partition_memory){0};
    for (size_t u = 0; u < graph->unit_count; u++)
        if (on_device[u]) out->weights += aligned(graph->units[u].own_bytes);
    for (size_t i = 0; i < graph->tensor_count; i++) {
        const prn_partition_tensor *t = &graph->tensors[i];
        size_t first, last;
        if (!find_life(graph, t, on_device, &first, &last)) continue;
        if (t->constant) {
            too_large |= t->bytes > graph->largest_buffer;
            if (!t->resident) out->weights += t->bytes;
            continue;
        }
        growth[graph->keep_all ? 0 : first] += (int64_t)aligned(t->bytes);
        growth[graph->keep_all ? graph->unit_count + 1 : last + 1] -= (int64_t)aligned(t->bytes);
    }
    for (size_t u = 0; u <= graph->unit_count; u++) {
        live += growth[u];
        if (live > most) most = live;
    }
    out->values = (uint64_t)most;
    if (too_large) out->weights = PRN_PARTITION_NEVER_FITS;
    prn_free(growth);
    return PRONY_OK;
}
