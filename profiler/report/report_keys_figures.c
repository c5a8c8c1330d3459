/* Keys of the report's figures: totals, times, memory, processor, trust; and the whole. */
#include "profiler/report/report_keys.h"

#include "profiler/report/work.h"

#include <math.h>
#include <string.h>

#define R prony_report

static void keys_figures_fail(prn_json *j, prony_status status)
{
    if (j->status == PRONY_OK) j->status = status;
}

/* ---- totals, phases ---- */

static double keys_figures_executed_flops(const prn_at *at)
{
    const prony_report *r = at->root;
    const double executed = prn_report_executed_flops(r);
    return executed == (double)r->totals.cost.flops ? NAN : executed;
}

static const prn_key totals_keys[] = {
    {PRN_MORE(R, totals.cost, prn_count_keys)},
    {"executed_flops", PRN_MADE(U64), PRN_IF_NUMBER,
     "FLOPs that the operators' kernels execute; absent: as many as flops.", .figure = keys_figures_executed_flops},
    {"layers", PRN_AT(R, totals.layers), PRN_ALWAYS, "Rows of layers."},
    {"folded_layers", PRN_AT(R, totals.folded_layers), PRN_ALWAYS, "Layers evaluated at bind time."},
    {"operators", PRN_AT(R, totals.operators), PRN_ALWAYS, "Rows of operators."},
    {"conserved", PRN_AT(R, conserved), PRN_ALWAYS,
     "true: macs, madds, flops, special, int_ops and parameters sum to the same over layers and operators."},
    {"count", PRN_WITH(R, totals.count, totals.counted), PRN_IF_FLAG,
     "Count by the counting preset, summed over the layers; absent: no preset."},
    {0}};

static bool keys_figures_has_phases(const prn_at *at)
{
    const prn_report_phases *p = &((const prony_report *)at->root)->phases;
    return p->load_ns >= 0 || p->bind_ns >= 0 || p->rewrite_ns >= 0 || p->plan_ns >= 0 || p->first_run_ns >= 0 ||
           ((const prony_report *)at->root)->has_around;
}

static const prn_key phases_keys[] = {
    {"load", PRN_AT(R, phases.load_ns), PRN_IF_FROM_0, "ns"},
    {"bind", PRN_AT(R, phases.bind_ns), PRN_IF_FROM_0, "ns"},
    {"rewrite", PRN_AT(R, phases.rewrite_ns), PRN_IF_FROM_0, "ns"},
    {"plan", PRN_AT(R, phases.plan_ns), PRN_IF_FROM_0, "ns"},
    {"first_run", PRN_AT(R, phases.first_run_ns), PRN_IF_FROM_0, "ns"},
    {"preprocess", PRN_AT(R, around.preprocess_ns), PRN_IF_FROM_0, "ns; the caller's work before each run, median",
     .if_root = PRN_FLAG(R, has_around)},
    {"postprocess", PRN_AT(R, around.postprocess_ns), PRN_IF_FROM_0, "ns; the caller's work after each run, median",
     .if_root = PRN_FLAG(R, has_around)},
    {0}};

/* ---- latency ---- */

static const struct {
    const char *name;
    size_t valid;
} quantiles[] = {{"p90", offsetof(prony_time_stats, p90_valid)},
                 {"p95", offsetof(prony_time_stats, p95_valid)},
                 {"p99", offsetof(prony_time_stats, p99_valid)},
                 {"p999", offsetof(prony_time_stats, p999_valid)}};
#define QUANTILES (sizeof quantiles / sizeof quantiles[0])

static void write_unsupported(prn_json *j, const prn_key *key, const prn_at *at)
{
    prn_json_open(j, key->name, '[', true);
    for (size_t q = 0; q < QUANTILES; q++)
        if (!*((const bool *)at->row + quantiles[q].valid)) prn_json_string(j, NULL, quantiles[q].name);
    prn_json_close(j, ']');
}

static void read_unsupported(prn_json_reader *j, const prn_json_value *object, const prn_key *key, const prn_at *at)
{
    size_t count;
    const char *name = "";
    for (size_t q = 0; q < QUANTILES; q++) *((bool *)at->row + quantiles[q].valid) = true;
    const prn_json_value *array = prn_json_get_array(j, object, key->name, false, &count);
    for (const prn_json_value *e = prn_json_first(array); e && prn_json_element_string(j, e, key->name, &name);
         e = prn_json_next(e))
        for (size_t q = 0; q < QUANTILES; q++)
            if (strcmp(name, quantiles[q].name) == 0) *((bool *)at->row + quantiles[q].valid) = false;
}

#define T prony_time_stats
static const prn_key statistics_keys[] = {
    {"mean", PRN_AT(T, mean_ns), PRN_ALWAYS, "ns"},
    {"min", PRN_AT(T, min_ns), PRN_ALWAYS, "ns"},
    {"max", PRN_AT(T, max_ns), PRN_ALWAYS, "ns"},
    {"std", PRN_AT(T, std_ns), PRN_ALWAYS, "Sample standard deviation, ns"},
    {"median", PRN_AT(T, median_ns), PRN_ALWAYS, "Mean of the two middle samples if their number is even, ns"},
    {"p50", PRN_AT(T, p50_ns), PRN_ALWAYS, "Nearest rank, ns"},
    {"p90", PRN_AT(T, p90_ns), PRN_ALWAYS, "Nearest rank, ns"},
    {"p95", PRN_AT(T, p95_ns), PRN_ALWAYS, "Nearest rank, ns"},
    {"p99", PRN_AT(T, p99_ns), PRN_ALWAYS, "Nearest rank, ns"},
    {"p999", PRN_AT(T, p999_ns), PRN_ALWAYS, "Nearest rank, ns"},
    {"unsupported_quantiles", PRN_MADE(STRINGS), PRN_LENIENT, "Quantiles that need more samples.", "p90|p95|p99|p999",
     .write = write_unsupported, .read = read_unsupported},
    {"median_ci95", PRN_TWO(T, median_ci95_ns), PRN_ALWAYS, "95 % bootstrap interval of the median, ns"},
    {"runs", PRN_AT(T, count), PRN_ALWAYS, "Samples."},
    {0}};
#undef T

static bool keys_figures_has_samples(const prn_at *at)
{
    const prony_report *r = at->root;
    return r->samples_ns && r->latency.count > 0;
}

/* "steady" and "drift". */
static void write_steady(prn_json *j, const prn_key *key, const prn_at *at)
{
    prony_steady_state steady;
    prony_status status = prony_report_steady_state(&steady, at->root, j->error);
    if (status != PRONY_OK) {
        keys_figures_fail(j, status);
        return;
    }
    if (!steady.known) return;
    if (strcmp(key->name, "drift") == 0)
        prn_json_double(j, key->name, steady.drift);
    else if (steady.unsure)
        prn_json_null(j, key->name);
    else
        prn_json_bool(j, key->name, steady.steady);
}

static void write_outliers(prn_json *j, const prn_key *key, const prn_at *at)
{
    prony_outlier *outliers = NULL;
    size_t count = 0;
    prony_status status = prony_report_outliers(&outliers, &count, at->root, j->error);
    if (status != PRONY_OK) {
        keys_figures_fail(j, status);
        return;
    }
    prn_json_open(j, key->name, '[', true);
    for (size_t i = 0; i < count; i++) prn_json_uint(j, NULL, outliers[i].run);
    prn_json_close(j, ']');
    prony_rows_release(outliers);
}

static const prn_key latency_keys[] = {
    {PRN_MORE(R, latency, statistics_keys)},
    {"warmup_detected", PRN_AT(R, warmup_detected), PRN_ALWAYS, "true: steady state was detected; false: assumed."},
    {"traced_run", PRN_AT(R, traced_run_ns), PRN_IF_SET,
     "Latency of the run that the operators' traces belong to; absent: the last sample, ns"},
    {"stop_reason", PRN_AT(R, stop_reason), PRN_IF_SET, "Reason why measuring ended."},
    {"stopped_at", PRN_AT(R, stopped_at), PRN_IF_SET,
     "Nodes and subgraphs, separated by ' > ', where the cancelled run stopped; absent: no run was cancelled."},
    {"steady", PRN_MADE(BOOL), PRN_OR_NULL, "true: no significant trend of more than 1 %; null: unknown.",
     .when = keys_figures_has_samples, .write = write_steady},
    {"drift", PRN_MADE(DOUBLE), PRN_ALWAYS,
     "Difference between the medians of the last and the first third of the runs, over the median.",
     .when = keys_figures_has_samples, .write = write_steady},
    {"outliers", PRN_MADE(U32S), PRN_ALWAYS, "Runs outside Tukey's fences or with a modified z-score above 3.5.",
     .when = keys_figures_has_samples, .write = write_outliers},
    {"process_runs", PRN_LIST(R, process_runs, process_count), PRN_IF_LIST | PRN_LEAST_1 | PRN_ROW_DIRECT,
     "Samples of each process, one process after the other; absent: one process."},
    {"samples", PRN_LIST(R, samples_ns, latency.count), PRN_COUNTED | PRN_ROW_DIRECT,
     "One latency per run, in order of time, ns"},
    {0}};

/* ---- rates ---- */

static void write_throughput(prn_json *j, const prn_key *key, const prn_at *at)
{
    prn_report_rates rates = prn_report_rates_of(at->root);
    prn_json_open(j, key->name, '{', false);
    prn_keys_write(j, key->keys, &(prn_at){.root = at->root, .row = &rates});
    prn_json_close(j, '}');
}

static double flops_rate(const prn_at *at)
{
    const prony_report *r = at->root;
    return r->latency.mean_ns > 0 ? (double)r->totals.cost.flops / ((double)r->latency.mean_ns / 1e9) : NAN;
}

#define T prn_report_rates
static const prn_key throughput_keys[] = {
    {"samples_per_second", PRN_AT(T, samples), PRN_IF_FROM_0 | PRN_OR_NULL,
     "batch over the mean latency; null: no batch."},
    {"images_per_second", PRN_AT(T, images), PRN_IF_FROM_0, "samples_per_second if the first input is images."},
    {"tokens_per_second", PRN_AT(T, tokens), PRN_IF_FROM_0,
     "Tokens over the mean latency, if the first input is integers [batch, sequence]."},
    {"requests_per_second", PRN_AT(T, requests), PRN_IF_FROM_0, "Runs over time."},
    {"flops_per_second", PRN_MADE(DOUBLE), PRN_IF_NUMBER | PRN_OR_NULL, "totals.flops over the mean latency.",
     .figure = flops_rate},
    {0}};
#undef T

/* ---- memory ---- */

static bool in_detail(const prn_at *at)
{
    return at->detail;
}

static double bytes_per_sample(const prn_at *at)
{
    const prony_report *r = at->root;
    return r->config.batch > 0 ? (double)r->memory.planned_bytes / (double)r->config.batch : NAN;
}

/* Times in the last run: a buffer begins with its operator, and ends with its last reader. */
static void write_event_time(prn_json *j, const prn_key *key, const prn_at *at)
{
    const prony_report *r = at->root;
    const prony_memory_event *e = at->row;
    size_t step = e->step < r->operator_count ? e->step : r->operator_count - 1;
    if (r->operator_count == 0 || !r->operators[step].traced) return;
    prn_json_int(j, key->name, e->release ? r->operators[step].trace_end_ns : r->operators[step].trace_start_ns);
}

static const prn_key point_keys[] = {{"step", PRN_AT(prony_memory_point, step), PRN_ALWAYS, "Operator index."},
                                     {"live_bytes", PRN_AT(prony_memory_point, live_bytes), PRN_ALWAYS, "Bytes."},
                                     {0}};

#define E prony_memory_event
static const prn_key event_keys[] = {
    {"release", PRN_AT(E, release), PRN_ALWAYS, "false: allocation"},
    {"owner", PRN_AT(E, owner), PRN_ALWAYS, "Value or operator that the block belongs to."},
    {"tag", PRN_AT(E, tag), PRN_IF_SET, "activation, scratch or dynamic"},
    {"asked_bytes", PRN_AT(E, asked_bytes), PRN_ALWAYS, "Bytes."},
    {"given_bytes", PRN_AT(E, given_bytes), PRN_ALWAYS, "Bytes."},
    {"offset_bytes", PRN_AT(E, offset_bytes), PRN_ALWAYS, "Offset in the arena."},
    {"step", PRN_AT(E, step), PRN_ALWAYS, "Operator index."},
    {"time_ns", PRN_MADE(I64), PRN_IF_FROM_0,
     "Time from the entry of the last run, ns: taken when the operator begins, released when it ends.",
     .write = write_event_time},
    {0}};
#undef E

#define H prony_memory_held
static const prn_key held_keys[] = {
    {"resident_bytes", PRN_AT(H, resident_bytes), PRN_ALWAYS, "Bytes: the sum of the others."},
    {"file_bytes", PRN_AT(H, file_bytes), PRN_ALWAYS, "Bytes: pages of the model file and of other mapped files."},
    {"packed_bytes", PRN_AT(H, packed_bytes), PRN_ALWAYS,
     "Bytes: packed and folded weights, constants made when binding."},
    {"arena_bytes", PRN_AT(H, arena_bytes), PRN_ALWAYS, "Bytes: planned and dynamic region."},
    {"input_bytes", PRN_AT(H, input_bytes), PRN_ALWAYS, "Bytes: copies of the inputs."},
    {"library_bytes", PRN_AT(H, library_bytes), PRN_ALWAYS, "Bytes: pages of the program and of shared libraries."},
    {"other_bytes", PRN_AT(H, other_bytes), PRN_ALWAYS, "Bytes: graphs, plans, the profiler's samples, stacks."},
    {0}};
#undef H

#define M prony_memory_report
// clang-format off
static const prn_key memory_keys[] = {
    {"weight_bytes", PRN_AT(M, weight_bytes), PRN_ALWAYS, "Bytes."},
    {"packed_weight_bytes", PRN_AT(M, packed_weight_bytes), PRN_ALWAYS, "Bytes."},
    {"planned_bytes", PRN_AT(M, planned_bytes), PRN_ALWAYS, "Bytes of the arena that the plan needs."},
    {"lower_bound_bytes", PRN_AT(M, lower_bound_bytes), PRN_ALWAYS, "Largest sum of aligned live bytes at any step."},
    {"plan_gap", PRN_AT(M, plan_gap), PRN_LEAST_0, "1 - lower bound / planned"},
    {"peak_live_bytes", PRN_AT(M, peak_live_bytes), PRN_ALWAYS, "Bytes."},
    {"average_live_bytes", PRN_AT(M, average_live_bytes), PRN_ALWAYS, "Bytes, mean over the steps."},
    {"scratch_bytes", PRN_AT(M, scratch_bytes), PRN_ALWAYS, "Bytes."},
    {"internal_fragmentation", PRN_AT(M, internal_fragmentation), PRN_LEAST_0, "1 - asked / given"},
    {"external_fragmentation", PRN_AT(M, external_fragmentation), PRN_LEAST_0, "1 - largest free block / free bytes, at its worst step"},
    {"allocations", PRN_AT(M, allocations), PRN_ALWAYS, "Arena allocations per run."},
    {"releases", PRN_AT(M, releases), PRN_ALWAYS, "Arena releases per run."},
    {"heap_calls_per_run", PRN_WITH(M, heap_calls_per_run, heap_calls_known), PRN_IF_FLAG, "Heap calls of Prony's own code."},
    {"library_heap_calls_per_run", PRN_WITH(M, library_heap_calls_per_run, library_heap_calls_known), PRN_IF_FLAG, "Heap calls of libraries."},
    {"peak_rss_bytes", PRN_AT(M, peak_rss_bytes), PRN_IF_SET, "Peak resident set of the process."},
    {"held", PRN_IN_WITH(M, held, held_known, held_keys), PRN_IF_FLAG, "Memory that the process holds after its runs."},
    {"bytes_per_sample", PRN_MADE(DOUBLE), PRN_IF_NUMBER | PRN_OR_NULL, "planned_bytes over batch; null: no batch.", .figure = bytes_per_sample},
    {"timeline", PRN_ROWS(M, timeline, timeline_count, point_keys), PRN_ROW_DIRECT_ROWS, "Live bytes over the run.", .when = in_detail},
    {"events", PRN_ROWS(M, events, event_count, event_keys), PRN_ROW_DIRECT_ROWS, "Arena events of one run.", .when = in_detail},
    {0}};
// clang-format on
#undef M

/* ---- processor ---- */

static bool has_cores(const prn_at *at)
{
    return ((const prony_report *)at->root)->core_points > 0;
}

static const prn_key worker_keys[] = {
    {"busy_ns", PRN_AT(prn_worker_row, busy_ns), PRN_ALWAYS, "Time in the worker's own operators, mean per run, ns."},
    {"wait_ns", PRN_AT(prn_worker_row, wait_ns), PRN_ALWAYS, "Time outside them, mean per run, ns."},
    {0}};

static const prn_key core_keys[] = {
    {"core", PRN_AT(prony_core_row, core), PRN_LEAST_0, "Number of the processor."},
    {"mean", PRN_AT(prony_core_row, mean), PRN_LEAST_0, "Share of busy time, all processes together."},
    {"use", PRN_PLACE(PRN_KEY_DOUBLES, offsetof(prony_core_row, use), sizeof(double), offsetof(R, core_points), NULL),
     PRN_COUNTED | PRN_ROOT | PRN_ROW_DIRECT | PRN_LEAST_0, "Share of busy time in each interval."},
    {0}};

static const prn_key cpu_keys[] = {
    {"utilisation", PRN_AT(R, cpu.utilisation), PRN_LEAST_0, "CPU time over wall time and threads"},
    {"user_ns", PRN_AT(R, cpu.user_ns), PRN_ALWAYS, "ns"},
    {"system_ns", PRN_AT(R, cpu.system_ns), PRN_ALWAYS, "ns"},
    {"voluntary_switches", PRN_AT(R, cpu.voluntary_switches), PRN_ALWAYS, "Context switches."},
    {"involuntary_switches", PRN_AT(R, cpu.involuntary_switches), PRN_ALWAYS, "Context switches."},
    {"workers", PRN_ROWS(R, cpu.workers, cpu.worker_count, worker_keys), PRN_IF_SET | PRN_ROW_DIRECT_ROWS,
     "With several workers: one row per worker; 0 is the caller."},
    {"core_times_ns", PRN_LIST(R, core_times_ns, core_points), PRN_IF_SET | PRN_ROW_DIRECT | PRN_LEAST_0,
     "Ends of the intervals of use, from the first measured run's start, ns"},
    {"cores", PRN_ROWS(R, cores, core_count, core_keys), PRN_ROW_DIRECT_ROWS, "Processors that the runs could use.",
     .when = has_cores},
    {0}};

static const prn_key io_keys[] = {{"read_bytes", PRN_AT(R, cpu.read_bytes), PRN_ALWAYS, "Bytes."},
                                  {"written_bytes", PRN_AT(R, cpu.written_bytes), PRN_ALWAYS, "Bytes."},
                                  {"read_calls", PRN_AT(R, cpu.read_calls), PRN_ALWAYS, "System calls."},
                                  {"write_calls", PRN_AT(R, cpu.write_calls), PRN_ALWAYS, "System calls."},
                                  {0}};

static const char *verdict_name(const prn_at *at)
{
    return prn_verdict_name(((const prn_disturbance *)at->row)->verdict);
}

static void read_verdict(prn_json_reader *j, const prn_json_value *object, const prn_key *key, const prn_at *at)
{
    const char *verdict = "";
    prn_json_get_string(j, object, key->name, true, &verdict);
    for (int v = PRN_LOAD_UNKNOWN; v <= PRN_LOAD_BUSY; v++)
        if (strcmp(verdict, prn_verdict_name((prn_verdict)v)) == 0)
            ((prn_disturbance *)at->row)->verdict = (prn_verdict)v;
}

static void write_load_text(prn_json *j, const prn_key *key, const prn_at *at)
{
    char text[160];
    if (prn_disturbance_text(at->row, text, sizeof text)) prn_json_string(j, key->name, text);
}

#define D prn_disturbance
// clang-format off
static const prn_key disturbance_keys[] = {
    {"others_share", PRN_AT(D, others), PRN_IF_FROM_0, "Share of all usable processors' time that other processes and the hypervisor took."},
    {"steal_share", PRN_AT(D, steal), PRN_IF_FROM_0, "Share of all usable processors' time that the hypervisor took."},
    {"waited_share", PRN_AT(D, waited), PRN_IF_FROM_0, "Time that threads were ready but did not run, over the wall time."},
    {"involuntary_switches", PRN_AT(D, involuntary_switches), PRN_ALWAYS, "Context switches."},
    {"verdict", PRN_MADE(STRING), PRN_ALWAYS, "busy: other processes disturbed the runs.", "unknown|quiet|busy", .word = verdict_name, .read = read_verdict},
    {"text", PRN_MADE(STRING), PRN_IF_SET, "Sentence for people about a busy machine; absent otherwise.", .write = write_load_text},
    {0}};
// clang-format on
#undef D

/* ---- trust ---- */

static bool has_estimates(const prn_at *at)
{
    return prn_report_has_estimates(at->root);
}

static const char *basis(const prn_at *at)
{
    return prn_estimate_basis(at->root);
}

static const prn_key estimates_keys[] = {{"basis", PRN_MADE(STRING), PRN_ALWAYS,
                                          "Source of the rates of kinds of work that estimate parts of operators: "
                                          "measured on this machine, or of a usual one.",
                                          "measured|default", .word = basis},
                                         {0}};

static bool is_stamped_or_counted(const prn_at *at)
{
    return prn_at_stamped(at) || ((const prony_report *)at->root)->totals.counted;
}

static const prn_key coverage_keys[] = {{"time_share", PRN_AT(R, time_share), PRN_IF_FROM_0,
                                         "Share of the runs' wall time inside operators.", .when = prn_at_stamped},
                                        {"uncounted_ops", PRN_LIST(R, uncounted, uncounted_count), PRN_ROW_DIRECT,
                                         "Operator types that the counting preset leaves out, by their time.",
                                         .if_root = PRN_FLAG(R, totals.counted)},
                                        {"uncounted_time_share", PRN_AT(R, uncounted_time_share), PRN_LEAST_0,
                                         "Share of the operators' time in layers that the counting preset leaves out.",
                                         .if_root = PRN_FLAG(R, totals.counted), .when = prn_at_stamped},
                                        {0}};

static bool has_pairs(const prn_at *at)
{
    return ((const prony_report *)at->root)->cost.pairs > 0;
}

static const prn_key paired_keys[] = {
    {"pairs", PRN_AT(prn_report_cost, pairs), PRN_ALWAYS,
     "Pairs of runs, one profiled and one not, in alternating order."},
    {"on_ns", PRN_AT(prn_report_cost, on_ns), PRN_ALWAYS, "Median of the profiled runs, ns"},
    {"off_ns", PRN_AT(prn_report_cost, off_ns), PRN_ALWAYS, "Median of the other runs, ns"},
    {"share", PRN_AT(prn_report_cost, share), PRN_ALWAYS,
     "Median of the pairs' differences, over off_ns; negative if chance exceeds the cost."},
    {"share_ci95", PRN_TWO(prn_report_cost, share_ci95), PRN_ALWAYS, "95 % interval of share."},
    {0}};

static const prn_key overhead_keys[] = {
    {"ns_per_event", PRN_AT(R, overhead_ns_per_event), PRN_ALWAYS, "Measured cost of one event, ns"},
    {"share", PRN_AT(R, overhead_share), PRN_LEAST_0, "Share of the runs' wall time."},
    {"dropped_events", PRN_AT(R, dropped_events), PRN_ALWAYS, "Events dropped for lack of room."},
    {"paired", PRN_IN(R, cost, paired_keys), PRN_ROW_DIRECT, "Measured cost of profiling.", .when = has_pairs},
    {0}};

static bool has_assumed_imports(const prn_at *at)
{
    return ((const prony_report *)at->root)->assumed_import_count > 0;
}

static bool asked_for_counters(const prn_at *at)
{
    return ((const prony_report *)at->root)->counters_missing != NULL;
}

static bool has_counters(const prn_at *at)
{
    return asked_for_counters(at) && !*((const prony_report *)at->root)->counters_missing;
}

static const prn_key counters_keys[] = {
    {"missing", PRN_AT(R, counters_missing), PRN_IF_SET | PRN_OR_NULL | PRN_EMPTY,
     "Reason why counters are missing; null: operators have them."},
    {"runs", PRN_AT(R, counter_runs), PRN_ALWAYS, "Further runs that were counted.", .when = has_counters},
    {"reading_ns", PRN_AT(R, counter_read_ns), PRN_LEAST_0, "Cost of two readings around an operator, ns.",
     .when = has_counters},
    {0}};

static const prn_key further_keys[] = {{"metric", PRN_AT(prony_evaluation_row, metric), PRN_ALWAYS, "Name."},
                                       {"value", PRN_AT(prony_evaluation_row, value), PRN_ALWAYS, "Value."},
                                       {0}};

static bool is_evaluated(const prn_at *at)
{
    return ((const prony_report *)at->root)->evaluation_count > 0;
}

/* The first metric, and the list of the others, of the same samples. */
typedef struct evaluations {
    prony_evaluation_row first;
    const prony_evaluation_row *further;
    size_t count;
} evaluations;

static const prn_key evaluation_keys[] = {
    {PRN_MORE(evaluations, first, further_keys)},
    {"samples", PRN_AT(evaluations, first.samples), PRN_ALWAYS, "Labelled samples."},
    {"further", PRN_ROWS(evaluations, further, count, further_keys), PRN_IF_SET | PRN_ROW_DIRECT_ROWS,
     "Other metrics on the same samples."},
    {0}};
static const prn_key evaluations_key = {
    "evaluation", PRN_PLACE(PRN_KEY_OBJECT, 0, sizeof(evaluations), 0, evaluation_keys), PRN_OLD, NULL};

static void write_evaluation(prn_json *j, const prn_key *key, const prn_at *at)
{
    const prony_report *r = at->root;
    evaluations rows = {r->evaluations[0], r->evaluations + 1, r->evaluation_count - 1};
    (void)key;
    prn_key_write(j, &evaluations_key, &(prn_at){.root = at->root, .row = &rows});
}

static void read_evaluation(prn_json_reader *j, const prn_json_value *object, const prn_key *key, const prn_at *at)
{
    prony_report *r = at->root;
    evaluations rows = {.count = 0};
    prn_key_read(j, object, &evaluations_key, &(prn_at){.row = &rows});
    if (j->status != PRONY_OK || !prn_json_has(object, key->name)) return;
    j->status = prn_report_add_evaluation(r, rows.first.metric, rows.first.value, rows.first.samples, j->error);
    for (size_t i = 0; i < rows.count && j->status == PRONY_OK; i++)
        j->status =
            prn_report_add_evaluation(r, rows.further[i].metric, rows.further[i].value, rows.first.samples, j->error);
}

static const prn_key rank_keys[] = {
    {"rank", PRN_AT(prony_rank_row, rank), PRN_ALWAYS, "Number of the process."},
    {"node", PRN_AT(prony_rank_row, node), PRN_ALWAYS, "Host name."},
    {"stage", PRN_AT(prony_rank_row, stage), PRN_ALWAYS, "Stage of the model."},
    {"layers", PRN_LIST(prony_rank_row, layers, layer_count), PRN_ALWAYS, "Layers of the stage."},
    {"weight_bytes", PRN_AT(prony_rank_row, weight_bytes), PRN_ALWAYS, "Weights that the stage reads."},
    {"arena_bytes", PRN_AT(prony_rank_row, arena_bytes), PRN_ALWAYS, "Planned arena."},
    {"peak_rss_bytes", PRN_AT(prony_rank_row, peak_rss_bytes), PRN_ALWAYS, "Peak resident memory of the process."},
    {"time_ns", PRN_AT(prony_rank_row, time_ns), PRN_ALWAYS, "Inside of the stage's runs, mean of a run, ns."},
    {"waiting_ns", PRN_AT(prony_rank_row, waiting_ns), PRN_ALWAYS,
     "The rest of a run: waiting for tensors and for the run's end, ns."},
    {"sent_bytes", PRN_AT(prony_rank_row, sent_bytes), PRN_ALWAYS, "Per run."},
    {"received_bytes", PRN_AT(prony_rank_row, received_bytes), PRN_ALWAYS, "Per run."},
    {"sent_bytes_per_second", PRN_AT(prony_rank_row, sent_bytes_per_second), PRN_IF_SET,
     "While messages were on their way."},
    {"clock_offset_ns", PRN_AT(prony_rank_row, clock_offset_ns), PRN_ALWAYS,
     "This rank's clock less rank 0's, estimated."},
    {"clock_error_ns", PRN_AT(prony_rank_row, clock_error_ns), PRN_ALWAYS, "Bound on the error of the estimate."},
    {"predicted_ns", PRN_AT(prony_rank_row, predicted_ns), PRN_ALWAYS, "Compute time that the plan predicted, ns."},
    {0}};

static const prn_key pipeline_keys[] = {
    {"stages", PRN_AT(prony_pipeline, stages), PRN_ALWAYS, "Stages of the model."},
    {"micro_batches", PRN_AT(prony_pipeline, micro_batches), PRN_ALWAYS, "Passes through the stages in a run."},
    {"bubble_share", PRN_AT(prony_pipeline, bubble_share), PRN_ALWAYS | PRN_SHARE,
     "Share of the ranks' time outside of the stages' runs."},
    {"predicted_step_ns", PRN_AT(prony_pipeline, predicted_step_ns), PRN_ALWAYS, "Time of a run by the plan, ns."},
    {"measured_step_ns", PRN_AT(prony_pipeline, measured_step_ns), PRN_ALWAYS, "Median of the runs, ns."},
    {"basis", PRN_AT(prony_pipeline, basis), PRN_ALWAYS, "The times that the prediction uses."},
    {"link_latency_ns", PRN_AT(prony_pipeline, link_latency_ns), PRN_IF_SET,
     "Slowest link between neighbours, one way, measured before the runs."},
    {"link_bytes_per_second", PRN_AT(prony_pipeline, link_bytes_per_second), PRN_IF_SET,
     "Slowest link between neighbours, measured before the runs."},
    {"fill_share", PRN_AT(prony_pipeline, fill_share), PRN_IF_SET, "Of bubble_share: filling and draining."},
    {"uneven_share", PRN_AT(prony_pipeline, uneven_share), PRN_IF_SET,
     "Of bubble_share: waiting for the slowest stage."},
    {"message_share", PRN_AT(prony_pipeline, message_share), PRN_IF_SET,
     "Of bubble_share: the rest, messages and times that vary."},
    {0}};

static const prn_key link_keys[] = {
    {"rank", PRN_AT(prony_link_row, rank), PRN_ALWAYS, "Process that asked."},
    {"peer", PRN_AT(prony_link_row, peer), PRN_ALWAYS, "Process that answered."},
    {"bytes", PRN_AT(prony_link_row, bytes), PRN_ALWAYS, "Of the message."},
    {"time_ns", PRN_AT(prony_link_row, time_ns), PRN_ALWAYS, "Half of the shortest round trip."},
    {0}};

static const prn_key transfer_keys[] = {
    {"rank", PRN_AT(prony_transfer_row, rank), PRN_ALWAYS, "Process that sends or receives."},
    {"peer", PRN_AT(prony_transfer_row, peer), PRN_ALWAYS, "The other process."},
    {"kind", PRN_AT(prony_transfer_row, kind), PRN_ALWAYS, "send or receive."},
    {"tensor", PRN_AT(prony_transfer_row, tensor), PRN_ALWAYS, "Name; (outputs): those of the model."},
    {"messages", PRN_AT(prony_transfer_row, messages), PRN_ALWAYS, "Per run."},
    {"bytes", PRN_AT(prony_transfer_row, bytes), PRN_ALWAYS, "Per run, headers included."},
    {"time_ns", PRN_AT(prony_transfer_row, time_ns), PRN_ALWAYS,
     "Of the messages of a run: until they have left, or until their bytes are there."},
    {0}};

static const prn_key pipeline_event_keys[] = {
    {"rank", PRN_AT(prony_pipeline_event, rank), PRN_ALWAYS, "Number of the process."},
    {"kind", PRN_AT(prony_pipeline_event, kind), PRN_ALWAYS, "compute, wait, send or receive."},
    {"micro_batch", PRN_AT(prony_pipeline_event, micro_batch), PRN_ALWAYS, "From 0."},
    {"peer", PRN_AT(prony_pipeline_event, peer), PRN_ALWAYS, "The other process of a message; else this one."},
    {"tensor", PRN_AT(prony_pipeline_event, tensor), PRN_IF_SET, "Of a message."},
    {"start_ns", PRN_AT(prony_pipeline_event, start_ns), PRN_ALWAYS, "Rank 0's clock, from the run's beginning."},
    {"end_ns", PRN_AT(prony_pipeline_event, end_ns), PRN_ALWAYS, "Rank 0's clock, from the run's beginning."},
    {0}};

/* ---- the whole ---- */

// clang-format off
const prn_key prn_report_keys[] = {
    {PRN_MORE_HERE(prn_manifest_keys)},
    {"totals", PRN_HERE(totals_keys), PRN_ALWAYS, NULL},
    {"phases_ns", PRN_HERE(phases_keys), PRN_ALWAYS, NULL, .when = keys_figures_has_phases},
    {"latency_ns", PRN_HERE_WITH(R, measured, latency_keys), PRN_IF_FLAG, NULL},
    {"end_to_end_ns", PRN_IN_WITH(R, around.end_to_end, has_around, statistics_keys), PRN_IF_FLAG, NULL, .if_root = PRN_FLAG(R, measured)},
    {"throughput", PRN_PLACE(PRN_KEY_OBJECT, 0, 0, 0, throughput_keys), PRN_ALWAYS, NULL, .if_root = PRN_FLAG(R, measured),
     .write = write_throughput},
    {"memory", PRN_IN_WITH(R, memory, has_memory, memory_keys), PRN_IF_FLAG, NULL},
    {PRN_MORE_HERE(prn_roof_keys)},
    {"cpu", PRN_HERE(cpu_keys), PRN_ALWAYS, NULL, .if_root = PRN_FLAG(R, measured)},
    {"io", PRN_HERE(io_keys), PRN_ALWAYS, NULL, .if_root = PRN_FLAG(R, measured)},
    {"disturbance", PRN_IN_WITH(R, disturbance, has_disturbance, disturbance_keys), PRN_IF_FLAG | PRN_ROW_DIRECT, NULL},
    {PRN_MORE_HERE(prn_rows_keys)},
    {"tuning", PRN_IN_WITH(R, tuning, has_tuning, prn_tuning_keys), PRN_IF_FLAG, "With --tune: kernels chosen by measurement."},
    {"estimates", PRN_HERE(estimates_keys), PRN_ROW_DIRECT, "Present if a layer's time is an estimate.", .when = has_estimates},
    {"coverage", PRN_HERE(coverage_keys), PRN_ALWAYS, NULL, .when = is_stamped_or_counted},
    {"overhead", PRN_HERE(overhead_keys), PRN_ALWAYS, NULL, .when = prn_at_stamped},
    {"counters", PRN_HERE(counters_keys), PRN_ALWAYS, "Hardware counters, if asked for (--counters).", .when = asked_for_counters},
    {"unsupported_operators", PRN_LIST(R, unsupported, unsupported_count), PRN_LENIENT, "Operators that cannot run, as domain::Op-opset (n nodes)."},
    {"assumed_imports", PRN_LIST(R, assumed_imports, assumed_import_count), PRN_OLD, "Domains that the model uses without importing them, each with the version that is assumed.",
     .when = has_assumed_imports},
    {"evaluation", PRN_PLACE(PRN_KEY_OBJECT, 0, 0, 0, evaluation_keys), PRN_ALWAYS, NULL, .when = is_evaluated,
     .write = write_evaluation, .read = read_evaluation},
    {"device", PRN_IN_WITH(R, device, has_device, prn_device_keys), PRN_IF_FLAG, "With --device: the device's part of a run."},
    {"generation", PRN_IN_WITH(R, generation, has_generation, prn_generation_keys), PRN_IF_FLAG, "With --generate: a decoder's speed; the rest of the report is one step at the last position."},
    {"accuracy", PRN_IN_WITH(R, accuracy, has_accuracy, prn_accuracy_keys), PRN_IF_FLAG, "With --accuracy or --against: errors of layers, operators and outputs."},
    {"ranks", PRN_ROWS(R, ranks, rank_count, rank_keys), PRN_IF_SET | PRN_ROW_DIRECT_ROWS, "With prony-mpi --shard: the processes, by stage."},
    {"pipeline", PRN_IN_WITH(R, pipeline, has_pipeline, pipeline_keys), PRN_IF_FLAG, "With prony-mpi --shard: the run as a whole."},
    {"links", PRN_ROWS(R, links, link_count, link_keys), PRN_IF_SET | PRN_ROW_DIRECT_ROWS, "With prony-mpi --shard: the interconnect, by pair of processes and size, measured before the runs."},
    {"transfers", PRN_ROWS(R, transfers, transfer_count, transfer_keys), PRN_IF_SET | PRN_ROW_DIRECT_ROWS, "With prony-mpi --shard: the tensors between stages, by rank."},
    {"pipeline_events", PRN_ROWS(R, pipeline_events, pipeline_event_count, pipeline_event_keys), PRN_IF_SET | PRN_ROW_DIRECT_ROWS, "With prony-mpi --shard: the last run of all ranks on one clock."},
    {"output_sha256", PRN_AT(R, output_sha256), PRN_IF_SET | PRN_HASH, "SHA-256 of the outputs' bytes, in order."},
    {0}};
// clang-format on
