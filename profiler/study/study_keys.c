/* The tables of the study's keys. Measurements and the plan are read back; results are written only. */
#include "profiler/study/study_keys.h"

#include "profiler/report/report_keys.h"

#include <math.h>
#include <string.h>

#define S prony_study

/* ---- operators ---- */

#define PART_FIGURES (sizeof(prn_study_operator_time) / sizeof(int64_t))

/* [time_ns, tasks, members, busy_ns, longest_ns, wake_ns] */
static void study_keys_write_part(prn_json *j, const char *key, const prn_study_operator_time *part)
{
    const int64_t values[] = {part->time_ns, part->tasks,      part->members,
                              part->busy_ns, part->longest_ns, part->wake_ns};
    prn_json_open(j, key, '[', true);
    for (size_t i = 0; i < PART_FIGURES; i++) prn_json_int(j, NULL, values[i]);
    prn_json_close(j, ']');
}

static void read_part(prn_json_reader *j, const prn_json_value *array, prn_study_operator_time *out)
{
    int64_t *fields[] = {&out->time_ns, &out->tasks, &out->members, &out->busy_ns, &out->longest_ns, &out->wake_ns};
    size_t i = 0;
    for (const prn_json_value *e = prn_json_first(array); e && j->status == PRONY_OK; e = prn_json_next(e), i++)
        if (i < PART_FIGURES) (void)prn_json_element_i64(j, e, "operators", fields[i]);
    if (i != PART_FIGURES && j->status == PRONY_OK)
        prn_json_bad(j, "operators", "wanted %zu values of an operator, found %zu", PART_FIGURES, i);
}

static const prn_key operator_keys[] = {
    {"name", PRN_AT(prn_study_operator, name), PRN_ALWAYS, NULL},
    {"op", PRN_AT(prn_study_operator, op), PRN_ALWAYS, NULL},
    {"kernel", PRN_AT(prn_study_operator, kernel), PRN_ALWAYS, NULL},
    {"flops", PRN_AT(prn_study_operator, flops), PRN_ALWAYS, NULL},
    {"bytes", PRN_AT(prn_study_operator, bytes), PRN_ALWAYS, NULL},
    {"bf16_products", PRN_AT(prn_study_operator, bf16_products), PRN_IF_SET,
     "bfloat16 matmuls that replace each float32 matmul."},
    {"on_path", PRN_AT(prn_study_operator, on_path), PRN_ALWAYS, "On the longest chain."},
    {0}};

/* ---- a process's document ---- */

static void write_measured(prn_json *j, const prn_key *key, const prn_at *at)
{
    study_keys_write_part(j, key->name, &((const prn_study_sample_operator *)at->row)->measured);
}

static void study_keys_read_measured(prn_json_reader *j, const prn_json_value *object, const prn_key *key,
                                     const prn_at *at)
{
    size_t count;
    const prn_json_value *array = prn_json_get_array(j, object, key->name, true, &count);
    if (array) read_part(j, array, &((prn_study_sample_operator *)at->row)->measured);
}

static const prn_key sample_operator_keys[] = {
    {PRN_MORE(prn_study_sample_operator, what, operator_keys)},
    {"measured", PRN_MADE(I64S), PRN_ALWAYS, NULL, .write = write_measured, .read = study_keys_read_measured},
    {0}};

const prn_key prn_study_sample_keys[] = {
    {"batch", PRN_AT(prn_study_sample, batch), PRN_ALWAYS, NULL},
    {"warmup_runs", PRN_AT(prn_study_sample, warmup_runs), PRN_ALWAYS, NULL},
    {"warmup_detected", PRN_AT(prn_study_sample, warmup_detected), PRN_ALWAYS, NULL},
    {"involuntary_switches", PRN_AT(prn_study_sample, involuntary_switches), PRN_ALWAYS, NULL},
    {"samples_ns", PRN_LIST(prn_study_sample, samples_ns, sample_count), PRN_ROW_DIRECT | PRN_LEAST_0, NULL},
    {"operators", PRN_ROWS(prn_study_sample, operators, operator_count, sample_operator_keys),
     PRN_IF_LIST | PRN_ROW_DIRECT_ROWS, NULL},
    {0}};

/* ---- the plan ---- */

#define C prn_study_configuration
static const prn_key configuration_keys[] = {
    {"intra_op_threads", PRN_AT(C, intra_op), PRN_LEAST_0, NULL},
    {"inter_op_threads", PRN_AT(C, inter_op), PRN_LEAST_0, NULL},
    {"batch", PRN_AT(C, batch), PRN_IF_SET | PRN_OR_NULL, "null: the model's own."},
    {"replicas", PRN_AT(C, replicas), PRN_IF_SET, "Independent processes at once; absent: one."},
    {"precision", PRN_AT(C, precision), PRN_ALWAYS, NULL},
    {"group", PRN_AT(C, group), PRN_ALWAYS, "Configurations that share a baseline."},
    {"baseline", PRN_AT(C, baseline), PRN_ALWAYS, NULL},
    {"again", PRN_AT(C, again), PRN_ALWAYS, "The baseline's second time."},
    {"beyond_quota", PRN_AT(C, beyond), PRN_ALWAYS, NULL},
    {"samples", PRN_AT(C, samples), PRN_IF_SET, "Samples per run."},
    {"refused", PRN_AT(C, refused), PRN_IF_SET, "Reason why it cannot run."},
    {"operators", PRN_ROWS(C, operators, operator_count, operator_keys), PRN_IF_SET | PRN_ROW_DIRECT_ROWS, NULL},
    {0}};
#undef C

static const prn_key plan_keys[] = {
    {"seed", PRN_AT(S, seed), PRN_ALWAYS, NULL},
    {"weak", PRN_AT(S, weak), PRN_ALWAYS, NULL},
    {"processes", PRN_AT(S, processes), PRN_LEAST_0, NULL},
    {"runs", PRN_AT(S, runs), PRN_LEAST_0, "Runs per process; 0: as many as `seconds` allows, at most 5000."},
    {"seconds", PRN_AT(S, seconds), PRN_ALWAYS, NULL},
    {"warmup_runs", PRN_AT(S, warmup_runs), PRN_ALWAYS, "-1: detected."},
    {"budget_seconds", PRN_AT(S, budget_seconds), PRN_ALWAYS, "0: none."},
    {"usable_processors", PRN_AT(S, usable), PRN_LEAST_0, NULL},
    {"arguments", PRN_LIST(S, arguments, argument_count), PRN_ALWAYS, "Further options of the processes."},
    {"configurations", PRN_ROWS(S, configurations, configuration_count, configuration_keys), PRN_ALWAYS, NULL},
    {"order", PRN_LIST(S, order, order_count), PRN_ROW_DIRECT, "Configurations, in the order of the blocks."},
    {"order_nodes", PRN_LIST(S, order_nodes, order_node_count), PRN_OLD | PRN_ROW_DIRECT,
     "Over nodes: node of each block of `order`.", .if_root = PRN_FLAG(S, over_nodes)},
    {0}};

/* ---- blocks ---- */

static bool has_times(const prn_at *at)
{
    return ((const prony_machine_state *)at->row)->total_ns > 0;
}

#define M prony_machine_state
static const prn_key state_keys[] = {{"time_ns", PRN_AT(M, time_ns), PRN_ALWAYS, "Of the monotonic clock."},
                                     {"frequency_hz", PRN_AT(M, frequency_hz), PRN_IF_SET, NULL},
                                     {"temperature_c", PRN_AT(M, temperature_c), PRN_IF_NUMBER, NULL},
                                     {"throttle_events", PRN_AT(M, throttle_events), PRN_IF_FROM_0, NULL},
                                     {"busy_ns", PRN_AT(M, busy_ns), PRN_ALWAYS, NULL, .when = has_times},
                                     {"total_ns", PRN_AT(M, total_ns), PRN_ALWAYS, NULL, .when = has_times},
                                     {"steal_ns", PRN_AT(M, steal_ns), PRN_ALWAYS, NULL, .when = has_times},
                                     {"context_switches", PRN_AT(M, context_switches), PRN_LENIENT, NULL},
                                     {0}};
#undef M

static bool study_keys_has_samples(const prn_at *at)
{
    return !((const prn_study_block *)at->row)->failure;
}

static bool study_keys_has_parts(const prn_at *at)
{
    return ((const prn_study_block *)at->row)->parts != NULL;
}

/* As many as the block's configuration has operators. */
static size_t study_keys_part_count(const prn_at *at)
{
    const prony_study *s = at->root;
    const prn_study_block *b = at->row;
    return b->configuration < s->configuration_count ? s->configurations[b->configuration].operator_count : 0;
}

static void write_parts(prn_json *j, const prn_key *key, const prn_at *at)
{
    prn_json_open(j, key->name, '[', true);
    for (size_t i = 0; i < study_keys_part_count(at); i++)
        study_keys_write_part(j, NULL, &((const prn_study_block *)at->row)->parts[i]);
    prn_json_close(j, ']');
}

static void read_parts(prn_json_reader *j, const prn_json_value *object, const prn_key *key, const prn_at *at)
{
    prn_study_block *b = at->row;
    size_t count = 0, i = 0;
    const prn_json_value *array = prn_json_get_array(j, object, key->name, false, &count);
    if (!array) return;
    if (count != study_keys_part_count(at)) {
        prn_json_bad(j, key->name, "%zu elements, but the configuration has %zu", count, study_keys_part_count(at));
        return;
    }
    b->parts = prn_json_room(j, count, sizeof *b->parts);
    for (const prn_json_value *e = prn_json_first(array); b->parts && e && j->status == PRONY_OK;
         e = prn_json_next(e), i++)
        read_part(j, e, &b->parts[i]);
}

#define B prn_study_block
static const prn_key block_keys[] = {
    {"configuration", PRN_AT(B, configuration), PRN_ALWAYS, NULL},
    {"node", PRN_AT(B, node), PRN_OLD, "Over nodes: index in `nodes`.", .if_root = PRN_FLAG(S, over_nodes)},
    {"process", PRN_AT(B, process), PRN_LEAST_0, NULL},
    {"replica", PRN_AT(B, replica), PRN_IF_SET,
     "Number among processes that ran at once; absent: the first. They follow one another."},
    {"again", PRN_AT(B, again), PRN_ALWAYS, "true: measured again, because a block was disturbed."},
    {"before", PRN_IN(B, before, state_keys), PRN_ROW_DIRECT, "State of the machine; absent values could not be read."},
    {"after", PRN_IN(B, after, state_keys), PRN_ROW_DIRECT, "State of the machine; absent values could not be read."},
    {"cpu_ns", PRN_AT(B, cpu_ns), PRN_LEAST_0, NULL},
    {"others", PRN_AT(B, others), PRN_IF_NUMBER | PRN_DERIVED, "Share of the processors that other processes took."},
    {"steal", PRN_AT(B, steal), PRN_IF_NUMBER | PRN_DERIVED, NULL},
    {"failure", PRN_AT(B, failure), PRN_IF_SET, NULL},
    {"disturbed", PRN_AT(B, disturbed), PRN_IF_SET | PRN_OR_NULL | PRN_DERIVED, NULL},
    {"warmup_runs", PRN_AT(B, warmup_runs), PRN_LEAST_0, NULL, .when = study_keys_has_samples},
    {"warmup_detected", PRN_AT(B, warmup_detected), PRN_ALWAYS, NULL, .when = study_keys_has_samples},
    {"involuntary_switches", PRN_AT(B, involuntary_switches), PRN_LEAST_0, NULL, .when = study_keys_has_samples},
    {"changes", PRN_AT(B, changes), PRN_DERIVED, "Changes of level among the samples.", .when = study_keys_has_samples},
    {"samples_ns", PRN_LIST(B, samples_ns, sample_count), PRN_ROW_DIRECT | PRN_LEAST_0, NULL},
    {"operators", PRN_MADE(I64_SETS), PRN_ALWAYS,
     "Per operator: time_ns (median), tasks, threads that took part, busy_ns of all, busy_ns of the busiest, wake_ns "
     "until the others began; tasks to wake_ns are of the last traced run.",
     .when = study_keys_has_parts, .write = write_parts, .read = read_parts},
    {0}};
#undef B

/* ---- results ---- */

static void write_index(prn_json *j, const prn_key *key, const prn_at *at)
{
    prn_json_uint(j, key->name,
                  (uint64_t)((const prony_study_result *)at->row - ((const prony_study *)at->root)->results));
}

static double study_keys_median_of(const prn_at *at)
{
    const prony_study_result *r = at->row;
    return r->processes ? r->median_ns : NAN;
}

static double study_keys_rate_of(const prn_at *at)
{
    const prony_study_result *r = at->row;
    return r->processes ? r->samples_per_second : NAN;
}

#define R prony_study_result
static const prn_key result_value_keys[] = {
    {"processes", PRN_AT(R, processes), PRN_ALWAYS, NULL},
    {"median_ns", PRN_MADE(DOUBLE), PRN_IF_NUMBER | PRN_OR_NULL, NULL, .figure = study_keys_median_of},
    {"ci95", PRN_TWO(R, ci95_ns), PRN_NULLS, "Interval of the processes' median."},
    {"samples_per_second", PRN_MADE(DOUBLE), PRN_IF_NUMBER | PRN_OR_NULL, NULL, .figure = study_keys_rate_of},
    {"speedup", PRN_AT(R, speedup), PRN_IF_NUMBER | PRN_OR_NULL, NULL},
    {"speedup_ci95", PRN_TWO(R, speedup_ci95), PRN_NULLS, "Interval from resampled processes."},
    {"efficiency", PRN_AT(R, efficiency), PRN_IF_NUMBER | PRN_OR_NULL, NULL},
    {"efficiency_ci95", PRN_TWO(R, efficiency_ci95), PRN_NULLS, "As above."},
    {"karp_flatt", PRN_AT(R, karp_flatt), PRN_IF_NUMBER | PRN_OR_NULL,
     "Serial fraction; null: one thread, or weak scaling."},
    {0}};
#undef R

static const prn_key result_keys[] = {
    {"configuration", PRN_MADE(U64), PRN_ALWAYS, NULL, .write = write_index}, {PRN_MORE_HERE(result_value_keys)}, {0}};

/* ---- replicas ---- */

#define P prn_study_replication
static const prn_key replication_keys[] = {
    {"configuration", PRN_AT(P, configuration), PRN_ALWAYS, NULL},
    {"single", PRN_AT(P, single), PRN_ALWAYS, "Configuration with one replica."},
    {"replicas", PRN_AT(P, result.replicas), PRN_LEAST_1, NULL},
    {"rounds", PRN_AT(P, result.rounds), PRN_ALWAYS, NULL},
    {"samples_per_second", PRN_AT(P, result.samples_per_second), PRN_IF_NUMBER | PRN_OR_NULL,
     "All replicas together; over nodes: of one node."},
    {"ci95", PRN_TWO(P, result.ci95), PRN_NULLS, "Interval from resampled rounds."},
    {"speedup", PRN_AT(P, result.speedup), PRN_IF_NUMBER | PRN_OR_NULL, "Against one."},
    {"speedup_ci95", PRN_TWO(P, result.speedup_ci95), PRN_NULLS, "As above."},
    {"efficiency", PRN_AT(P, result.efficiency), PRN_IF_NUMBER | PRN_OR_NULL, "Speed-up over the number of replicas."},
    {"efficiency_ci95", PRN_TWO(P, result.efficiency_ci95), PRN_NULLS, "As above."},
    {"all_nodes_rounds", PRN_AT(P, result.all_nodes_rounds), PRN_IF_SET, "Over nodes: rounds that every node has."},
    {"all_nodes_samples_per_second", PRN_AT(P, result.all_nodes_samples_per_second), PRN_IF_SET,
     "All replicas of all nodes together."},
    {"all_nodes_ci95", PRN_TWO(P, result.all_nodes_ci95), PRN_NULLS, "Interval from resampled rounds.",
     .if_row = PRN_FLAG(P, over_nodes)},
    {"all_nodes_efficiency", PRN_AT(P, result.all_nodes_efficiency), PRN_IF_NUMBER | PRN_OR_NULL,
     "Against one replica on each node.", .if_row = PRN_FLAG(P, over_nodes)},
    {0}};
#undef P

static const char *law_name(const prn_at *at)
{
    return ((const prn_study_replica_fit *)at->row)->law == PRN_LAW_USL ? "usl" : "amdahl";
}

#define G prn_study_replica_fit
static const prn_key replica_fit_keys[] = {
    {"configuration", PRN_AT(G, configuration), PRN_ALWAYS, "Configuration with one replica."},
    {"law", PRN_MADE(STRING), PRN_ALWAYS, NULL, "amdahl|usl", .word = law_name},
    {"known", PRN_AT(G, fit.known), PRN_ALWAYS, "false: too few numbers of replicas."},
    {"alpha", PRN_AT(G, fit.alpha), PRN_ALWAYS, NULL, .if_row = PRN_FLAG(G, fit.known)},
    {"alpha_ci95", PRN_TWO(G, fit.alpha_ci95), PRN_NULLS, "Interval from resampled rounds.",
     .if_row = PRN_FLAG(G, fit.known)},
    {"beta", PRN_AT(G, fit.beta), PRN_ALWAYS, NULL, .if_row = PRN_FLAG(G, fit.known)},
    {"beta_ci95", PRN_TWO(G, fit.beta_ci95), PRN_NULLS, "As above.", .if_row = PRN_FLAG(G, fit.known)},
    {"peak", PRN_AT(G, fit.peak), PRN_IF_NUMBER | PRN_OR_NULL,
     "Replicas of the largest throughput; null: it only grows.", .if_row = PRN_FLAG(G, fit.known)},
    {"residual", PRN_AT(G, fit.rms), PRN_ALWAYS, NULL, .if_row = PRN_FLAG(G, fit.known)},
    {0}};
#undef G

#define W prn_study_replica_bandwidth
static const prn_key replica_bandwidth_keys[] = {
    {"configuration", PRN_AT(W, configuration), PRN_ALWAYS, "Configuration with one replica."},
    {"bytes_per_second", PRN_AT(W, bytes_per_second), PRN_ALWAYS,
     "Of one replica: the operators' bytes beyond the caches of its processors."},
    {"roof_bytes_per_second", PRN_AT(W, roof_bytes_per_second), PRN_ALWAYS, "Of memory, all processors."},
    {"full_at", PRN_AT(W, full_at), PRN_IF_SET, "Replicas that fill the memory bandwidth; absent: none do."},
    {0}};
#undef W

/* ---- nodes ---- */

static size_t node_result_index(const prn_at *at)
{
    return (size_t)((const prony_study_result *)at->row - ((const prony_study *)at->root)->node_results);
}

static void write_result_node(prn_json *j, const prn_key *key, const prn_at *at)
{
    prn_json_uint(j, key->name, node_result_index(at) / ((const prony_study *)at->root)->configuration_count);
}

static void write_result_configuration(prn_json *j, const prn_key *key, const prn_at *at)
{
    prn_json_uint(j, key->name, node_result_index(at) % ((const prony_study *)at->root)->configuration_count);
}

static bool has_worst(const prn_at *at)
{
    return ((const prn_study_node_difference *)at->row)->worst != PRONY_NO_INDEX;
}

static const prn_key node_result_keys[] = {
    {"node", PRN_MADE(U64), PRN_ALWAYS, NULL, .write = write_result_node},
    {"configuration", PRN_MADE(U64), PRN_ALWAYS, NULL, .write = write_result_configuration},
    {PRN_MORE_HERE(result_value_keys)},
    {0}};

static const prn_key manifest_keys[] = {{PRN_MORE_HERE(prn_manifest_keys)}, {PRN_MORE_HERE(prn_roof_keys)}, {0}};

static void write_node_manifest(prn_json *j, const prn_key *key, const prn_at *at)
{
    prony_report *manifest = ((const prn_study_node *)at->row)->manifest;
    prn_json_open(j, key->name, '{', false);
    prn_keys_write(j, manifest_keys, &(prn_at){.root = manifest, .row = manifest});
    prn_json_close(j, '}');
}

static void read_node_manifest(prn_json_reader *j, const prn_json_value *object, const prn_key *key, const prn_at *at)
{
    const prn_json_value *inner = prn_json_get_object(j, object, key->name, true);
    prony_report *manifest = inner ? prn_json_room(j, 1, sizeof *manifest) : NULL;
    if (!manifest) return;
    prn_keys_read(j, inner, manifest_keys, &(prn_at){.root = manifest, .row = manifest});
    ((prn_study_node *)at->row)->manifest = manifest;
}

#define N prn_study_node
const prn_key prn_study_node_keys[] = {
    {"host_name", PRN_AT(N, host), PRN_ALWAYS, NULL},
    {"usable_processors", PRN_AT(N, usable), PRN_LEAST_0, "Processors within the affinity mask and the quota."},
    {"frequency_max_hz", PRN_AT(N, facts.frequency_max_hz), PRN_IF_SET, "Frequency of the first processor."},
    {"smt", PRN_AT(N, facts.smt), PRN_IF_SET, "Kernel's word: on, off, notsupported."},
    {"microcode", PRN_AT(N, facts.microcode), PRN_IF_SET, NULL},
    {"numa_memory_bytes", PRN_LIST(N, numa_memory_bytes, numa_count), PRN_OLD | PRN_ROW_DIRECT,
     "Memory of each NUMA node."},
    {"network", PRN_AT(N, facts.network), PRN_IF_SET, "Interfaces with a known speed."},
    {"manifest", PRN_PLACE(PRN_KEY_OBJECT, 0, 0, 0, manifest_keys), PRN_ALWAYS, "Same keys as the study's own.",
     .write = write_node_manifest, .read = read_node_manifest},
    {0}};
#undef N

#define V prn_study_environment
static const prn_key environment_keys[] = {
    {"model_path", PRN_AT(V, model_path), PRN_IF_SET, "Absolute; `scale --repeat` looks there."},
    {"variables", PRN_LIST(V, variables, variable_count), PRN_ALWAYS,
     "Of the environment, NAME=VALUE: OMP_*, PRONY_* and others that change how fast a process runs."},
    {"smt", PRN_AT(V, smt), PRN_IF_SET, "The kernel's word: on, off, notsupported."},
    {"microcode", PRN_AT(V, microcode), PRN_IF_SET, NULL},
    {"numa_memory_bytes", PRN_LIST(V, numa_memory_bytes, numa_count), PRN_OLD | PRN_ROW_DIRECT, "Of each NUMA node."},
    {"huge_pages", PRN_AT(V, huge_pages), PRN_IF_SET, "Transparent ones: always, madvise or never."},
    {"container", PRN_AT(V, container), PRN_IF_SET, "Its kind; absent: none was found."},
    {0}};
#undef V

#define E prn_study_node_difference
static const prn_key node_difference_keys[] = {
    {"node", PRN_AT(E, node), PRN_ALWAYS, NULL},
    {"verdict", PRN_AT(E, verdict), PRN_ALWAYS, NULL, "slower|faster|same|cannot tell"},
    {"ratio", PRN_AT(E, ratio), PRN_IF_NUMBER | PRN_OR_NULL,
     "Times of the node over the other nodes' median of the same configuration."},
    {"interval", PRN_TWO(E, interval), PRN_NULLS, "95 % interval of ratio."},
    {"p", PRN_AT(E, p), PRN_IF_NUMBER | PRN_OR_NULL, "Mann-Whitney test, adjusted for the number of nodes (Holm)."},
    {"worst_configuration", PRN_AT(E, worst), PRN_ALWAYS, "Configuration that deviates most.", .when = has_worst},
    {"worst_ratio", PRN_AT(E, worst_ratio), PRN_IF_NUMBER, NULL},
    {"manifest", PRN_LIST(E, manifest, manifest_count), PRN_ALWAYS, "Facts in which the node differs from most nodes."},
    {0}};
#undef E

/* ---- laws ---- */

static const char *study_keys_over(const prn_at *at)
{
    return ((const prn_study_fit *)at->row)->inter ? "inter_op_threads" : "intra_op_threads";
}

static const char *study_keys_no_fit(const prn_at *at)
{
    const prn_study_fit *f = at->row;
    return f->fit.known ? NULL : f->reason;
}

static bool fits_usl(const prn_at *at)
{
    return ((const prn_study_fit *)at->row)->law == PRN_LAW_USL;
}

#define F prn_study_fit
static const prn_key fit_keys[] = {
    {"group", PRN_AT(F, group), PRN_ALWAYS, NULL},
    {"over", PRN_MADE(STRING), PRN_ALWAYS, NULL, "intra_op_threads|inter_op_threads", .word = study_keys_over},
    {"reason", PRN_MADE(STRING), PRN_OR_NULL, "Reason for the missing fit.", .word = study_keys_no_fit},
    {"scale", PRN_AT(F, fit.scale), PRN_ALWAYS, NULL, .if_row = PRN_FLAG(F, fit.known)},
    {"alpha", PRN_AT(F, fit.alpha), PRN_ALWAYS, NULL, .if_row = PRN_FLAG(F, fit.known)},
    {"alpha_ci95", PRN_TWO(F, fit.alpha_ci95), PRN_NULLS, "Interval from resampled processes.",
     .if_row = PRN_FLAG(F, fit.known)},
    {"beta", PRN_AT(F, fit.beta), PRN_ALWAYS, NULL, .if_row = PRN_FLAG(F, fit.known), .when = fits_usl},
    {"beta_ci95", PRN_TWO(F, fit.beta_ci95), PRN_NULLS, "As above.", .if_row = PRN_FLAG(F, fit.known),
     .when = fits_usl},
    {"peak", PRN_AT(F, fit.peak), PRN_IF_NUMBER | PRN_OR_NULL,
     "Threads of the largest throughput; null: it only grows.", .if_row = PRN_FLAG(F, fit.known), .when = fits_usl},
    {"peak_ci95", PRN_TWO(F, fit.peak_ci95), PRN_NULLS, "As above.", .if_row = PRN_FLAG(F, fit.known),
     .when = fits_usl},
    {"limit", PRN_AT(F, fit.limit), PRN_IF_NUMBER | PRN_OR_NULL, NULL, .if_row = PRN_FLAG(F, fit.known)},
    {"residual", PRN_AT(F, fit.rms), PRN_ALWAYS, NULL, .if_row = PRN_FLAG(F, fit.known)},
    {0}};
#undef F

static void write_fits(prn_json *j, const prn_key *key, const prn_at *at)
{
    const prony_study *s = at->root;
    prn_law law = strcmp(key->name, "amdahl") == 0 ? PRN_LAW_AMDAHL
                  : strcmp(key->name, "usl") == 0  ? PRN_LAW_USL
                                                   : PRN_LAW_GUSTAFSON;
    prn_json_open(j, key->name, '[', false);
    for (size_t i = 0; i < s->fit_count; i++) {
        if (s->fits[i].law != law) continue;
        prn_json_open(j, NULL, '{', false);
        prn_keys_write(j, fit_keys, &(prn_at){.root = at->root, .row = &s->fits[i]});
        prn_json_close(j, '}');
    }
    prn_json_close(j, ']');
}

static const prn_key law_keys[] = {{"amdahl", PRN_MADE_IN(S, fits, fit_keys), PRN_ALWAYS, NULL, .write = write_fits},
                                   {"usl", PRN_MADE_IN(S, fits, fit_keys), PRN_ALWAYS, NULL, .write = write_fits},
                                   {"gustafson", PRN_MADE_IN(S, fits, fit_keys), PRN_ALWAYS, NULL, .write = write_fits},
                                   {0}};

/* ---- losses, limits, quality ---- */

static const prn_study_operator *lost(const prn_at *at)
{
    const prn_study_loss *l = at->row;
    return &((const prony_study *)at->root)->configurations[l->configuration].operators[l->operator];
}

static void write_name(prn_json *j, const prn_key *key, const prn_at *at)
{
    prn_json_string(j, key->name, lost(at)->name);
}

static void write_op(prn_json *j, const prn_key *key, const prn_at *at)
{
    prn_json_string(j, key->name, lost(at)->op);
}

#define L prn_study_loss
static const prn_key loss_keys[] = {
    {"configuration", PRN_AT(L, configuration), PRN_ALWAYS, NULL},
    {"index", PRN_AT(L, operator), PRN_ALWAYS, NULL},
    {"name", PRN_MADE(STRING), PRN_ALWAYS, NULL, .write = write_name},
    {"op", PRN_MADE(STRING), PRN_ALWAYS, NULL, .write = write_op},
    {"time_ns", PRN_AT(L, time_ns), PRN_ALWAYS, NULL},
    {"serial_ns", PRN_AT(L, serial_ns), PRN_ALWAYS, NULL},
    {"lost_ns", PRN_AT(L, lost_ns), PRN_ALWAYS, "Loss against an even share of the serial time."},
    {"efficiency", PRN_AT(L, efficiency), PRN_ALWAYS, NULL},
    {"reason", PRN_AT(L, reason), PRN_ALWAYS, NULL},
    {0}};
#undef L

static const prn_key limit_keys[] = {{"group", PRN_AT(prn_study_limit, group), PRN_ALWAYS, NULL},
                                     {"processors", PRN_AT(prn_study_limit, processors), PRN_LEAST_0, NULL},
                                     {"speedup", PRN_AT(prn_study_limit, speedup), PRN_ALWAYS, NULL},
                                     {"why", PRN_AT(prn_study_limit, why), PRN_ALWAYS, NULL},
                                     {0}};

#define Q prn_study_quality
static const prn_key quality_keys[] = {
    {"verdict", PRN_AT(Q, verdict), PRN_ALWAYS, NULL, "good|fair|poor"},
    {"aa", PRN_AT(Q, aa), PRN_ALWAYS, NULL, "same|different|cannot tell|not measured"},
    {"aa_ratio", PRN_AT(Q, aa_ratio), PRN_IF_NUMBER | PRN_OR_NULL, NULL},
    {"aa_ci95", PRN_TWO(Q, aa_ci95), PRN_NULLS, "95 % interval of aa_ratio."},
    {"blocks", PRN_AT(Q, blocks), PRN_ALWAYS, NULL},
    {"disturbed_blocks", PRN_AT(Q, disturbed), PRN_ALWAYS, NULL},
    {"failed_blocks", PRN_AT(Q, failed), PRN_ALWAYS, NULL},
    {"widest", PRN_AT(Q, widest), PRN_ALWAYS, "Largest half width of a median's interval, relative."},
    {"notes", PRN_LIST(Q, notes, note_count), PRN_ALWAYS, NULL},
    {0}};
#undef Q

#define D prn_study_difference
static const prn_key difference_keys[] = {
    {"configuration", PRN_AT(D, configuration), PRN_ALWAYS, NULL},
    {"same_within", PRN_AT(D, within), PRN_IF_NUMBER,
     "Smallest margin of the ratio within which both are the same; absent: unknown."},
    {"verdict", PRN_AT(D, verdict), PRN_ALWAYS, NULL, "same|different|cannot tell"},
    {"effect", PRN_AT(D, ratio), PRN_IF_NUMBER | PRN_OR_NULL, "Ratio of the medians, this study over the earlier one."},
    {"interval", PRN_TWO(D, interval), PRN_NULLS, "95 % interval of effect."},
    {"p", PRN_AT(D, p), PRN_IF_NUMBER | PRN_OR_NULL, "Mann-Whitney test on the processes."},
    {"earlier_median_ns", PRN_AT(D, earlier_ns), PRN_IF_NUMBER | PRN_OR_NULL, NULL},
    {"why", PRN_AT(D, why), PRN_ALWAYS, NULL},
    {0}};
#undef D

/* ---- the whole ---- */

static void write_manifest(prn_json *j, const prn_key *key, const prn_at *at)
{
    prony_report *manifest = ((const prony_study *)at->root)->manifest;
    prn_json_open(j, key->name, '{', false);
    prn_keys_write(j, manifest_keys, &(prn_at){.root = manifest, .row = manifest});
    prn_json_close(j, '}');
}

static void read_manifest(prn_json_reader *j, const prn_json_value *object, const prn_key *key, const prn_at *at)
{
    prony_report *manifest = ((const prony_study *)at->root)->manifest;
    const prn_json_value *inner = prn_json_get_object(j, object, key->name, true);
    prn_json_reader own = *j;
    own.pool = &manifest->pool;
    if (inner) prn_keys_read(&own, inner, manifest_keys, &(prn_at){.root = manifest, .row = manifest});
    if (inner) j->status = own.status;
}

typedef struct block_list {
    prn_study_block *rows;
    size_t count;
} block_list;
static const prn_key block_list_key = {"blocks", PRN_ROWS(block_list, rows, count, block_keys), PRN_ALWAYS, NULL};

/* Blocks grow, so they have their own memory. */
static void read_blocks(prn_json_reader *j, const prn_json_value *object, const prn_key *key, const prn_at *at)
{
    prony_study *s = at->root;
    block_list list = {NULL, 0};
    (void)key;
    prn_key_read(j, object, &block_list_key, &(prn_at){.root = s, .row = &list});
    if (j->status != PRONY_OK || !list.count) return;
    if (!PRN_GROW(s->blocks, s->block_capacity, list.count)) {
        j->status = prn_no_memory(j->error);
        return;
    }
    memcpy(s->blocks, list.rows, list.count * sizeof *list.rows);
    s->block_count = list.count;
}

static const prn_key node_list_key = {"nodes", PRN_ROWS(S, nodes, node_count, prn_study_node_keys), PRN_OLD, NULL};

static void read_nodes(prn_json_reader *j, const prn_json_value *object, const prn_key *key, const prn_at *at)
{
    prony_study *s = at->root;
    (void)key;
    prn_key_read(j, object, &node_list_key, at);
    s->over_nodes = s->node_count > 0;
    if (j->status == PRONY_OK) prn_study_find_lanes(s);
}

static void write_statement(prn_json *j, const prn_key *key, const prn_at *at)
{
    prn_bump pool = {0};
    prn_json_string(j, key->name, prn_study_statement(at->root, &pool));
    prn_bump_release(&pool);
}

static void write_created(prn_json *j, const prn_key *key, const prn_at *at)
{
    prn_json_string(j, key->name, ((const prony_study *)at->root)->manifest->created);
}

static void read_environment(prn_json_reader *j, const prn_json_value *object, const prn_key *key, const prn_at *at)
{
    prony_study *s = at->root;
    const prn_json_value *inner = prn_json_get_object(j, object, key->name, false);
    if (!inner) return;
    prn_keys_read(j, inner, environment_keys, &(prn_at){.root = s, .row = &s->environment});
    s->environment.known = true;
}

static bool has_nodes(const prn_at *at)
{
    return ((const prony_study *)at->root)->over_nodes;
}

static bool has_replicas(const prn_at *at)
{
    return ((const prony_study *)at->root)->replication_count > 0;
}

static bool has_replica_bandwidth(const prn_at *at)
{
    return ((const prony_study *)at->root)->replica_bandwidth_count > 0;
}

static bool has_date(const prn_at *at)
{
    return ((const prony_study *)at->root)->manifest->created[0] != '\0';
}

// clang-format off
const prn_key prn_study_keys[] = {
    {"created", PRN_MADE(STRING), PRN_DERIVED, "Start of the study, in UTC (ISO 8601).", .when = has_date, .write = write_created},
    {"manifest", PRN_PLACE(PRN_KEY_OBJECT, 0, 0, 0, manifest_keys), PRN_ALWAYS, NULL, .write = write_manifest, .read = read_manifest},
    {"environment", PRN_IN(S, environment, environment_keys), PRN_OLD, "The surroundings of the study, beyond the manifest.",
     .if_root = PRN_FLAG(S, environment.known), .read = read_environment},
    {"nodes", PRN_ROWS(S, nodes, node_count, prn_study_node_keys), PRN_OLD, "Nodes of the cluster; absent: one machine.",
     .if_root = PRN_FLAG(S, over_nodes), .read = read_nodes},
    {"plan", PRN_HERE(plan_keys), PRN_ALWAYS, NULL},
    {"blocks", PRN_ROWS(S, blocks, block_count, block_keys), PRN_ALWAYS, "Blocks in the order of measurement.", .read = read_blocks},
    {"results", PRN_ROWS(S, results, configuration_count, result_keys), PRN_DERIVED, NULL, .if_root = PRN_FLAG(S, analysed)},
    {"replicas", PRN_ROWS(S, replications, replication_count, replication_keys), PRN_DERIVED, "Throughput of several replicas relative to one.",
     .if_root = PRN_FLAG(S, analysed), .when = has_replicas},
    {"replica_fits", PRN_ROWS(S, replica_fits, replica_fit_count, replica_fit_keys), PRN_DERIVED, "Laws over the number of replicas.",
     .if_root = PRN_FLAG(S, analysed), .when = has_replicas},
    {"replica_bandwidth", PRN_ROWS(S, replica_bandwidths, replica_bandwidth_count, replica_bandwidth_keys), PRN_DERIVED, "Memory bandwidth of replicas, by the roofs.",
     .if_root = PRN_FLAG(S, analysed), .when = has_replica_bandwidth},
    {"node_results", PRN_ROWS(S, node_results, node_result_count, node_result_keys), PRN_DERIVED, "Results of each node, with the keys of `results`.",
     .if_root = PRN_FLAG(S, analysed), .when = has_nodes},
    {"node_differences", PRN_ROWS(S, node_differences, node_difference_count, node_difference_keys), PRN_DERIVED,
     "Each node compared with all others.", .if_root = PRN_FLAG(S, analysed), .when = has_nodes},
    {"fits", PRN_HERE(law_keys), PRN_DERIVED, NULL, .if_root = PRN_FLAG(S, analysed)},
    {"operators", PRN_ROWS(S, losses, loss_count, loss_keys), PRN_DERIVED | PRN_ROW_DIRECT_ROWS, "By configuration, largest loss first.",
     .if_root = PRN_FLAG(S, analysed)},
    {"limits", PRN_ROWS(S, limits, limit_count, limit_keys), PRN_DERIVED | PRN_ROW_DIRECT_ROWS, NULL, .if_root = PRN_FLAG(S, analysed)},
    {"quality", PRN_IN(S, quality, quality_keys), PRN_DERIVED, NULL, .if_root = PRN_FLAG(S, analysed)},
    {"statement", PRN_MADE(STRING), PRN_ALWAYS, "Description of the measurement, for a paper.", .if_root = PRN_FLAG(S, analysed), .write = write_statement},
    {"comparison", PRN_ROWS(S, differences, difference_count, difference_keys), PRN_DERIVED | PRN_ROW_DIRECT_ROWS, "With --repeat.",
     .if_root = PRN_FLAG(S, compared)},
    {"manifest_differences", PRN_LIST(S, manifest_differences, manifest_difference_count), PRN_DERIVED,
     "With --repeat: differences between the machines.", .if_root = PRN_FLAG(S, compared)},
    {0}};
// clang-format on
