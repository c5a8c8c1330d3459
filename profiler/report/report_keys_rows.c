/* Keys of the report's rows: layers, operators, what runs in subgraphs, modules, weights, composites. This file reads
 * single rows; report_read.c checks indices. */
#include "profiler/report/report_keys.h"

#include "base/shape.h"
#include "profiler/report/work.h"

#include <math.h>
#include <string.h>

#define L prony_layer_row
#define O prony_operator_row
#define N prony_nested_row

/* ---- keys shared by rows ---- */

const prn_key prn_count_keys[] = {
    {"macs", PRN_AT(prony_cost, macs), PRN_ALWAYS, "Multiplications accumulated into a contraction's sum."},
    {"madds", PRN_AT(prony_cost, madds), PRN_ALWAYS, "macs plus scale-and-shift pairs."},
    {"flops", PRN_AT(prony_cost, flops), PRN_ALWAYS, "Arithmetic operations on floating-point data; a MAC is 2."},
    {"special", PRN_AT(prony_cost, special), PRN_ALWAYS,
     "FLOPs that are exp, log, tanh, erf, sin, pow, sqrt or division."},
    {"int_ops", PRN_AT(prony_cost, int_ops), PRN_ALWAYS, "Arithmetic operations on integer data."},
    {"bytes_read", PRN_AT(prony_cost, bytes_read), PRN_ALWAYS, "Bytes of every input and weight, counted once."},
    {"bytes_written", PRN_AT(prony_cost, bytes_written), PRN_ALWAYS, "Bytes of every output, counted once."},
    {"parameters", PRN_AT(prony_cost, parameters), PRN_ALWAYS, "Elements of the weights."},
    {0}};

static void write_bytes(prn_json *j, const prn_key *key, const prn_at *at)
{
    const prony_cost *cost = at->row;
    uint64_t sum;
    if (!prn_add_u64(&sum, cost->bytes_read, cost->bytes_written)) sum = UINT64_MAX;
    prn_json_uint(j, key->name, sum);
}

static const prn_key traffic_keys[] = {
    {PRN_MORE_HERE(prn_count_keys)},
    {"bytes", PRN_MADE(U64), PRN_ALWAYS, "bytes_read + bytes_written", .write = write_bytes},
    {0}};

static const prn_key time_keys[] = {
    {"mean", PRN_AT(prony_time_stats, mean_ns), PRN_ALWAYS, "ns"},
    {"median", PRN_AT(prony_time_stats, median_ns), PRN_ALWAYS, "ns"},
    {"min", PRN_AT(prony_time_stats, min_ns), PRN_ALWAYS, "ns"},
    {"max", PRN_AT(prony_time_stats, max_ns), PRN_ALWAYS, "ns"},
    {"std", PRN_AT(prony_time_stats, std_ns), PRN_ALWAYS, "Sample standard deviation, ns"},
    {0}};

static double keys_rows_rate_of(const prony_cost *cost, const prony_time_stats *time)
{
    return time->mean_ns > 0 ? (double)cost->flops / ((double)time->mean_ns / 1e9) : NAN;
}

/* ---- layers ---- */

static bool layer_timed(const prn_at *at)
{
    return ((const prony_layer_row *)at->row)->measured || prn_at_stamped(at);
}

static double operator_share(const prn_at *at)
{
    const prony_layer_row *l = at->row;
    return prn_round_digits(l->operator_share, prn_estimate_digits(l));
}

static const char *time_kind(const prn_at *at)
{
    return prn_time_kind(at->row);
}

static void read_time_kind(prn_json_reader *j, const prn_json_value *object, const prn_key *key, const prn_at *at)
{
    const char *kind = NULL;
    if (prn_json_get_string(j, object, key->name, false, &kind))
        ((prony_layer_row *)at->row)->removed = strcmp(kind, "removed") == 0;
}

// clang-format off
const prn_key prn_layer_keys[] = {
    {"index", PRN_AT(L, index), PRN_ALWAYS, "Position in the model."},
    {"name", PRN_AT(L, name), PRN_ALWAYS, "Node name."},
    {"module", PRN_AT(L, module), PRN_LENIENT | PRN_EMPTY, "Path of its module; empty: the root."},
    {"op", PRN_AT(L, op), PRN_ALWAYS, "Operator type."},
    {"folded", PRN_AT(L, folded), PRN_ALWAYS, "Evaluated at bind time."},
    {"dynamic", PRN_AT(L, dynamic), PRN_ALWAYS, "Shape known at run time only."},
    {"inputs", PRN_LIST(L, inputs, input_count), PRN_ROW_DIRECT, "In order."},
    {"outputs", PRN_LIST(L, outputs, output_count), PRN_ROW_DIRECT, "In order."},
    {PRN_MORE(L, cost, traffic_keys)},
    {"count", PRN_WITH(L, count, counted), PRN_IF_FLAG, "Count by the counting preset; absent: no preset, or it does not count this operator."},
    {"facts", PRN_AS(FACTS, L, cost), PRN_LENIENT, "Description of the work: groups, kernel volume, axis length and others."},
    {"sources", PRN_LIST(L, sources, input_count), PRN_IF_LIST | PRN_COUNTED | PRN_NULLS | PRN_ROW_DIRECT,
     "Per input the index of the layer that makes it; null: an input of the model, a weight or omitted."},
    {"time_ns", PRN_IN_WITH(L, time, measured, time_keys), PRN_IF_FLAG | PRN_OR_NULL | PRN_ROW_DIRECT,
     "null: no operator executed it.", .when = layer_timed},
    {"share", PRN_WITH(L, share, measured), PRN_IF_TOO | PRN_OR_NULL | PRN_SHARE, "Share of the operators' summed mean time.", .when = layer_timed},
    {"time_attributed", PRN_AT(L, time_attributed), PRN_LENIENT,
     "true: the time is an estimate: a part of the operator's, by the rates of each kind of work.", .if_row = PRN_FLAG(L, measured)},
    {"operator_share", PRN_AT(L, operator_share), PRN_LENIENT | PRN_SHARE,
     "Part of its operator's time, with as many digits as are reliable.", .if_row = PRN_FLAG(L, measured), .figure = operator_share},
    {"time_kind", PRN_MADE(STRING), PRN_IF_SET,
     "Origin of the time: its operator's alone, an estimated part, or none (it returned its input unchanged or was folded into weights).",
     "measured|estimated|removed", .when = prn_at_stamped, .word = time_kind, .read = read_time_kind},
    {"operator", PRN_AT(L, operator_index), PRN_IF_INDEX | PRN_OR_NULL, "Index of the operator that executed it; null: none."},
    {"memory_bytes", PRN_AT(L, output_bytes), PRN_ALWAYS, "Bytes of the outputs."},
    PRN_ERROR_KEY(layer),
    {0}};
// clang-format on

/* ---- operators ---- */

static double keys_rows_intensity(const prn_at *at)
{
    const prony_cost *cost = &((const prony_operator_row *)at->row)->cost;
    double bytes = (double)cost->bytes_read + (double)cost->bytes_written;
    return bytes > 0 ? (double)cost->flops / bytes : NAN;
}

static double keys_rows_executed_flops(const prn_at *at)
{
    const prony_operator_row *o = at->row;
    const double executed = prn_operator_flops(o);
    return executed == (double)o->cost.flops ? NAN : executed;
}

static double operator_rate(const prn_at *at)
{
    const prony_operator_row *o = at->row;
    return keys_rows_rate_of(&o->cost, &o->time);
}

static const char *bound_name(const prn_at *at)
{
    prony_bound bound = prony_report_bound(at->root, ((const prony_operator_row *)at->row)->index, NULL);
    return bound == PRONY_BOUND_UNKNOWN ? NULL : prony_bound_name(bound);
}

static double percent_of_roof(const prn_at *at)
{
    double share;
    prony_bound bound = prony_report_bound(at->root, ((const prony_operator_row *)at->row)->index, &share);
    return bound == PRONY_BOUND_UNKNOWN ? NAN : share * 100;
}

static double best_percent(const prn_at *at)
{
    return ((const prony_operator_row *)at->row)->kernel_best * 100;
}

static void read_best_percent(prn_json_reader *j, const prn_json_value *object, const prn_key *key, const prn_at *at)
{
    prony_operator_row *o = at->row;
    if (prn_json_get_double(j, object, key->name, true, &o->kernel_best)) o->kernel_best /= 100;
}

static bool has_best(const prn_at *at)
{
    return ((const prony_operator_row *)at->row)->kernel_best > 0;
}

static bool was_parallel(const prn_at *at)
{
    return ((const prony_operator_row *)at->row)->parallel.threads_used > 0;
}

static void write_thread_waits(prn_json *j, const prn_key *key, const prn_at *at)
{
    const prony_operator_row *o = at->row;
    int64_t time = o->threads > 0 ? (o->parallel.busy_ns + o->parallel.wait_ns) / o->threads : 0;
    prn_json_open(j, key->name, '[', true);
    for (size_t t = 0; t < o->thread_busy_count; t++)
        prn_json_int(j, NULL, time > o->thread_busy_ns[t] ? time - o->thread_busy_ns[t] : 0);
    prn_json_close(j, ']');
}

static const prn_key reason_keys[] = {{"reason", PRN_AT(prony_reason, reason), PRN_ALWAYS, "Word for programs."},
                                      {"text", PRN_AT(prony_reason, text), PRN_ALWAYS, "Sentence with the values."},
                                      {0}};

static const prn_key best_keys[] = {{"percent_of_roof", PRN_AT(O, kernel_best), PRN_LEAST_0,
                                     "Highest percentage that an operator with this kernel reaches in this report.",
                                     .figure = best_percent, .read = read_best_percent},
                                    {"operator", PRN_AT(O, kernel_best_operator), PRN_ALWAYS, "Which one."},
                                    {0}};

static const prn_key parallel_keys[] = {
    {"threads_used", PRN_AT(O, parallel.threads_used), PRN_LEAST_1, "Threads that had work, mean of the runs."},
    {"busy_ns", PRN_AT(O, parallel.busy_ns), PRN_LEAST_0, "Time at work, all threads together, ns"},
    {"wait_ns", PRN_AT(O, parallel.wait_ns), PRN_LEAST_0,
     "The operator's time once for each of its threads, less busy_ns, ns"},
    {"imbalance", PRN_AT(O, parallel.imbalance), PRN_ALWAYS,
     "Busiest thread over the mean of the threads that had work, less 1."},
    {"achieved_cores", PRN_AT(O, parallel.achieved_cores), PRN_LEAST_0, "busy_ns over the operator's mean time."},
    {"efficiency", PRN_AT(O, parallel.efficiency), PRN_LEAST_0, "achieved_cores over threads."},
    {"thread_busy_ns", PRN_LIST(O, thread_busy_ns, thread_busy_count), PRN_ROW_DIRECT | PRN_LEAST_0,
     "Time at work of each thread, ns"},
    {"thread_wait_ns", PRN_MADE(I64S), PRN_LEAST_0, "Operator's time less the time at work, of each thread, ns",
     .write = write_thread_waits},
    {0}};

static const prn_key hardware_keys[] = {{"cycles", PRN_AT(O, cycles), PRN_ALWAYS, NULL},
                                        {"instructions", PRN_AT(O, instructions), PRN_ALWAYS, NULL},
                                        {"cache_misses", PRN_AT(O, cache_misses), PRN_ALWAYS, NULL},
                                        {0}};

static const prn_key team_keys[] = {
    {"thread", PRN_AT(prony_thread_share, thread), PRN_LEAST_0, "Number of the thread in the pool; 0: the caller."},
    {"start_ns", PRN_AT(prony_thread_share, start_ns), PRN_ALWAYS,
     "Start of its first task, from the entry of the run, ns"},
    {"end_ns", PRN_AT(prony_thread_share, end_ns), PRN_ALWAYS, "End of its last task, ns"},
    {"busy_ns", PRN_AT(prony_thread_share, busy_ns), PRN_LEAST_0, "Time inside calls of the pool, ns"},
    {"tasks", PRN_AT(prony_thread_share, tasks), PRN_LEAST_0, "Tasks that it took."},
    {0}};

static const prn_key trace_keys[] = {
    {"worker", PRN_AT(O, worker), PRN_LEAST_0, "Worker that executed it, from 0."},
    {"start_ns", PRN_AT(O, trace_start_ns), PRN_ALWAYS, "Start, from the entry of the last run, ns"},
    {"end_ns", PRN_AT(O, trace_end_ns), PRN_ALWAYS, "End, from the entry of the last run, ns"},
    {"team", PRN_ROWS(O, thread_shares, thread_share_count, team_keys), PRN_IF_SET,
     "Threads that took part, if threads were traced."},
    {0}};

const prn_key prn_operator_keys[] = {
    {"index", PRN_AT(O, index), PRN_ALWAYS, "Position in the plan."},
    {"name", PRN_AT(O, name), PRN_ALWAYS, "Name."},
    {"op", PRN_AT(O, op), PRN_ALWAYS, "Operator type."},
    {"kernel", PRN_AT(O, kernel), PRN_IF_SET | PRN_EMPTY, "Kernel."},
    {"backend", PRN_AT(O, backend), PRN_IF_SET | PRN_EMPTY, "Library or native."},
    {"layers", PRN_LIST(O, layers, layer_count), PRN_LENIENT | PRN_ROW_DIRECT,
     "Indices of the layers that it executes."},
    {PRN_MORE(O, cost, traffic_keys)},
    {"executed_flops", PRN_MADE(U64), PRN_IF_NUMBER,
     "FLOPs that the kernel executes, for comparison with the roofs; absent: as many as flops.",
     .figure = keys_rows_executed_flops},
    {"arithmetic_intensity", PRN_MADE(DOUBLE), PRN_IF_NUMBER | PRN_OR_NULL, "flops / bytes; null: no bytes.",
     .figure = keys_rows_intensity},
    {"time_ns", PRN_IN_WITH(O, time, measured, time_keys), PRN_IF_FLAG | PRN_ROW_DIRECT, NULL},
    {"share", PRN_WITH(O, share, measured), PRN_IF_TOO | PRN_SHARE, "Share of the operators' summed mean time."},
    {"flops_per_second", PRN_MADE(DOUBLE), PRN_IF_NUMBER | PRN_OR_NULL, "flops over the mean time; null: no time.",
     .if_row = PRN_FLAG(O, measured), .figure = operator_rate},
    {"bound", PRN_MADE(STRING), PRN_IF_SET, "Limit on its speed; absent: no roof is known.", "compute|memory|overhead",
     .if_row = PRN_FLAG(O, measured), .word = bound_name},
    {"percent_of_roof", PRN_MADE(DOUBLE), PRN_IF_NUMBER | PRN_LEAST_0,
     "Time that the roofs allow over the measured time, in per cent.", .if_row = PRN_FLAG(O, measured),
     .figure = percent_of_roof},
    {"library_heap_calls", PRN_AT(O, library_heap_calls), PRN_LENIENT, "Per run.", .if_row = PRN_FLAG(O, measured)},
    {"reasons", PRN_ROWS(O, reasons, reason_count, reason_keys), PRN_IF_SET | PRN_ROW_DIRECT_ROWS,
     "Reasons why it does not reach its roof, the most certain first.", .if_row = PRN_FLAG(O, measured)},
    {"kernel_best", PRN_HERE(best_keys), PRN_ROW_DIRECT, "Best result of its kernel.", .if_row = PRN_FLAG(O, measured),
     .when = has_best},
    {"kernel_facts", PRN_NUMBERS(O, kernel_facts, kernel_fact_count), PRN_IF_SET,
     "Facts from the kernel: the matmul's extents, its tiles, whether it packs in the run."},
    {"threads", PRN_AT(O, threads), PRN_IF_SET, "Thread budget."},
    {"parallel", PRN_HERE(parallel_keys), PRN_ROW_DIRECT,
     "Use of its threads, means of the measured runs, if threads were traced.", .when = was_parallel},
    {"offset_bytes", PRN_AT(O, offset_bytes), PRN_IF_INDEX | PRN_OR_NULL,
     "Offset of output 0 in the arena; null: not in the arena."},
    {"output_bytes", PRN_AT(O, output_bytes), PRN_ALWAYS, "Bytes."},
    {"scratch_bytes", PRN_AT(O, scratch_bytes), PRN_ALWAYS, "Bytes."},
    {"counters", PRN_HERE_WITH(O, counted, hardware_keys), PRN_IF_FLAG | PRN_ROW_DIRECT,
     "Hardware counters, mean per run; with --counters."},
    {"trace", PRN_HERE_WITH(O, traced, trace_keys), PRN_IF_FLAG | PRN_ROW_DIRECT, "Times and threads in the last run."},
    PRN_ERROR_KEY(operator),
    {0}};

/* ---- rows of subgraphs ---- */

static bool nested_timed(const prn_at *at)
{
    return ((const prony_nested_row *)at->row)->measured || prn_at_stamped(at);
}

static double nested_rate(const prn_at *at)
{
    const prony_nested_row *n = at->row;
    return keys_rows_rate_of(&n->cost, &n->time);
}

static const prn_key place_keys[] = {
    {"index", PRN_AT(N, index), PRN_ALWAYS, "Position in this list; a row follows the row that contains it."},
    {"owner", PRN_AT(N, owner), PRN_ALWAYS, "Index of the layer or operator that contains it, on the outermost level."},
    {"parent", PRN_AT(N, parent), PRN_IF_INDEX | PRN_OR_NULL,
     "Index of the row whose subgraph contains it; null: the owner's subgraph."},
    {"depth", PRN_AT(N, depth), PRN_LEAST_1, "Number of subgraphs around it."},
    {"path", PRN_AT(N, path), PRN_ALWAYS, "Nodes and subgraphs around it, separated by ' > '."},
    {"subgraph", PRN_AT(N, subgraph), PRN_ALWAYS, "Attribute with the subgraph, such as then_branch or body."},
    {"name", PRN_AT(N, name), PRN_ALWAYS, "Node name."},
    {"op", PRN_AT(N, op), PRN_ALWAYS, "Operator type."},
    {0}};

static const prn_key nested_figure_keys[] = {
    {"executions", PRN_WITH(N, executions, executed), PRN_IF_FLAG,
     "Executions in the last run; absent: nothing ran, and the counts are of one execution."},
    {PRN_MORE(N, cost, traffic_keys)},
    {"time_ns", PRN_IN_WITH(N, time, measured, time_keys), PRN_IF_FLAG | PRN_OR_NULL | PRN_ROW_DIRECT,
     "Time per run, all executions together; null: no operator executed it.", .when = nested_timed},
    {"share", PRN_WITH(N, share, measured), PRN_IF_TOO | PRN_OR_NULL | PRN_SHARE,
     "Share of the operators' summed mean time.", .when = nested_timed},
    {"stopped", PRN_AT(N, cancelled), PRN_IF_SET, "true: the cancelled run stopped inside it."},
    {0}};

const prn_key prn_nested_layer_keys[] = {
    {PRN_MORE_HERE(place_keys)},
    {"module", PRN_AT(N, module), PRN_LENIENT | PRN_EMPTY, "Path of its module; empty: the root."},
    {"folded", PRN_AT(N, folded), PRN_ALWAYS, "Evaluated at bind time."},
    {"dynamic", PRN_AT(N, dynamic), PRN_ALWAYS, "Shape known at run time only."},
    {"inputs", PRN_LIST(N, inputs, input_count), PRN_ROW_DIRECT, "In order."},
    {"outputs", PRN_LIST(N, outputs, output_count), PRN_ROW_DIRECT, "In order."},
    {PRN_MORE_HERE(nested_figure_keys)},
    {"facts", PRN_AS(FACTS, N, cost), PRN_LENIENT,
     "Description of the work: groups, kernel volume, axis length and others."},
    {"sources", PRN_LIST(N, sources, input_count), PRN_IF_LIST | PRN_COUNTED | PRN_NULLS | PRN_ROW_DIRECT,
     "Per input the index in this list of the row that makes it; null: it comes from elsewhere."},
    {"time_attributed", PRN_AT(N, time_attributed), PRN_LENIENT,
     "true: the time is an estimate: a part of the operator's, by the rates of each kind of work.",
     .if_row = PRN_FLAG(N, measured)},
    {"operator", PRN_AT(N, operator_index), PRN_IF_INDEX | PRN_OR_NULL,
     "Index in nested_operators of the one that executed it; null: none."},
    {0}};

static const prn_key nested_trace_keys[] = {
    {"start_ns", PRN_AT(N, trace_start_ns), PRN_ALWAYS, "Start of its last execution, from the run's entry."},
    {"time_ns", PRN_AT(N, trace_ns), PRN_ALWAYS, "Time of all executions in the last run together."},
    {0}};

const prn_key prn_nested_operator_keys[] = {
    {PRN_MORE_HERE(place_keys)},
    {"kernel", PRN_AT(N, kernel), PRN_IF_SET | PRN_EMPTY, "Kernel."},
    {"backend", PRN_AT(N, backend), PRN_IF_SET | PRN_EMPTY, "Library or native."},
    {"dynamic", PRN_AT(N, dynamic), PRN_ALWAYS, "Shape known at run time only."},
    {"layers", PRN_LIST(N, layers, layer_count), PRN_LENIENT | PRN_ROW_DIRECT,
     "Indices in nested_layers of the rows that it executes."},
    {PRN_MORE_HERE(nested_figure_keys)},
    {"flops_per_second", PRN_MADE(DOUBLE), PRN_IF_NUMBER | PRN_OR_NULL, "flops over the mean time; null: no time.",
     .if_row = PRN_FLAG(N, measured), .figure = nested_rate},
    {"trace", PRN_HERE_WITH(N, traced, nested_trace_keys), PRN_IF_FLAG | PRN_ROW_DIRECT,
     "Executions in the last run; absent: it did not run."},
    {0}};

/* ---- modules ---- */

typedef struct children {
    uint32_t *first, *next;
} children;

/* Linked back to front, so that they come out in the order of the rows. */
static void keys_rows_write_modules(prn_json *j, const prn_key *key, const prn_at *at)
{
    const prony_report *r = at->root;
    children links = {prn_calloc(r->module_count + 1, sizeof *links.first),
                      prn_calloc(r->module_count + 1, sizeof *links.next)};
    prn_key plain = *key;
    prn_at rows = *at;
    if (!links.first || !links.next) {
        if (j->status == PRONY_OK) j->status = prn_no_memory(j->error);
    } else {
        for (size_t i = 0; i < r->module_count; i++) links.first[i] = links.next[i] = PRONY_NO_INDEX;
        for (size_t i = r->module_count; i-- > 0;) {
            uint32_t parent = r->modules[i].parent;
            if (parent >= r->module_count) continue;
            links.next[i] = links.first[parent];
            links.first[parent] = (uint32_t)i;
        }
        plain.write = NULL;
        rows.extra = &links;
        prn_key_write(j, &plain, &rows);
    }
    prn_free(links.first);
    prn_free(links.next);
}

static void write_children(prn_json *j, const prn_key *key, const prn_at *at)
{
    const prony_report *r = at->root;
    const children *links = at->extra;
    size_t index = (size_t)((const prony_module_row *)at->row - r->modules);
    prn_json_open(j, key->name, '[', true);
    for (uint32_t c = links->first[index]; c != PRONY_NO_INDEX; c = links->next[c])
        prn_json_string(j, NULL, r->modules[c].path);
    prn_json_close(j, ']');
}

/* Children are found by path, so they are read after all rows. */
static void read_children(prn_json_reader *j, const prn_json_value *object, const prn_key *key, const prn_at *at)
{
    size_t count;
    (void)at;
    (void)prn_json_get_array(j, object, key->name, true, &count);
}

// clang-format off
const prn_key prn_module_keys[] = {
    {"path", PRN_AT(prony_module_row, path), PRN_ALWAYS, "Path; empty: the root."},
    {"type", PRN_AT(prony_module_row, type), PRN_IF_SET | PRN_EMPTY, "Guess from the name."},
    {"macs", PRN_AT(prony_module_row, macs), PRN_ALWAYS, "Sum with all modules below."},
    {"flops", PRN_AT(prony_module_row, flops), PRN_ALWAYS, "Sum with all modules below."},
    {"parameters", PRN_AT(prony_module_row, parameters), PRN_ALWAYS, "Sum with all modules below."},
    {"count", PRN_AT(prony_module_row, count), PRN_ALWAYS, "Count by the counting preset, with all modules below.", .if_root = PRN_FLAG(prony_report, totals.counted)},
    {"layers", PRN_AT(prony_module_row, layers), PRN_OLD, "Layers in it and below."},
    {"nested_layers", PRN_AT(prony_module_row, nested_layers), PRN_IF_SET,
     "Nodes in subgraphs of these layers; a module that only such nodes name has 0 layers and their sums. Absent: none."},
    {"time_ns", PRN_AT(prony_module_row, time_ns), PRN_IF_FROM_0, "Mean per run, with all modules below, ns", .when = prn_at_stamped},
    {"share", PRN_AT(prony_module_row, share), PRN_SHARE, "Share of the operators' summed mean time.", .when = prn_at_stamped},
    {"children", PRN_MADE(STRINGS), PRN_ALWAYS, "Paths of the modules directly below.", .write = write_children, .read = read_children},
    {0}};
// clang-format on

/* ---- weights, composites ---- */

#define P prony_parameter_row
static const prn_key weight_keys[] = {
    {"name", PRN_AT(P, name), PRN_ALWAYS, "Tensor name; empty: inside a subgraph or attribute."},
    {"layer", PRN_AT(P, layer), PRN_ALWAYS, "Index of the first layer that uses it."},
    {"type", PRN_AS(DTYPE, P, dtype), PRN_IF_SET, "Element type as NumPy spells it."},
    {"shape", PRN_AS(SHAPE, P, shape), PRN_IF_SET, NULL},
    {"elements", PRN_AT(P, elements), PRN_ALWAYS, "Number of elements."},
    {"bytes", PRN_AT(P, bytes), PRN_ALWAYS, "Bytes."},
    {"trainable", PRN_AT(P, trainable), PRN_ALWAYS,
     "false: a buffer, such as the running statistics of a BatchNormalization."},
    {0}};
#undef P

static const prn_key composite_keys[] = {
    {"op", PRN_AT(prn_composite_row, op), PRN_ALWAYS, "Operator that the layers form together."},
    {"layers", PRN_LIST(prn_composite_row, layers, layer_count), PRN_LENIENT | PRN_ROW_DIRECT,
     "Their indices; the last one carries the composite's count."},
    {"macs", PRN_AT(prn_composite_row, cost.macs), PRN_ALWAYS, "Multiplications accumulated into a contraction's sum."},
    {"facts", PRN_AS(FACTS, prn_composite_row, cost), PRN_LENIENT, "Same as for layers."},
    {0}};

#define R prony_report
const prn_key prn_rows_keys[] = {
    {"layers", PRN_ROWS(R, layers, layer_count, prn_layer_keys), PRN_ALWAYS, "Nodes of the model."},
    {"operators", PRN_ROWS(R, operators, operator_count, prn_operator_keys), PRN_ALWAYS, "Kernels that ran."},
    {"nested_layers", PRN_ROWS(R, nested_layers, nested_layer_count, prn_nested_layer_keys), PRN_IF_SET,
     "Nodes in subgraphs, in no sum over layers; absent: none."},
    {"nested_operators", PRN_ROWS(R, nested_operators, nested_operator_count, prn_nested_operator_keys), PRN_IF_SET,
     "Operators in subgraphs, in no sum over operators; absent: none."},
    {"modules", PRN_ROWS(R, modules, module_count, prn_module_keys), PRN_ALWAYS, "The module tree, parents first.",
     .write = keys_rows_write_modules},
    {"weights", PRN_ROWS(R, parameters, parameter_count, weight_keys), PRN_OLD | PRN_ROW_DIRECT_ROWS,
     "Weights and buffers."},
    {"composites", PRN_ROWS(R, composites, composite_count, composite_keys), PRN_OLD | PRN_ROW_DIRECT_ROWS,
     "Operators that the model writes out in primitives, as counting presets see them."},
    {0}};
