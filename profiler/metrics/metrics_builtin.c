/* The built-in metrics. Each reads a report's fields; unmeasured values are NaN, never zero. */
#include "profiler/metrics/metrics.h"

#include "base/memory/row_block.h"

#include <math.h>
#include <string.h>

/* ---- size and complexity ---- */

static double metric_evaluation(const prony_report *r)
{
    return r->evaluation_count ? r->evaluations[0].value : NAN;
}

static double evaluated(const prony_report *r, const char *metric)
{
    const prony_evaluation_row *row = prn_report_find_evaluation(r, metric);
    return row ? row->value : NAN;
}

static double metric_top1_accuracy(const prony_report *r)
{
    return evaluated(r, "top1_accuracy");
}

static double metric_top5_accuracy(const prony_report *r)
{
    return evaluated(r, "top5_accuracy");
}

/* Against the reference; without one, against another runtime's outputs. */
static double metric_output_error(const prony_report *r)
{
    double worst[2] = {NAN, NAN};
    for (size_t k = 0; r->has_accuracy && k < r->accuracy.output_count; k++) {
        const prony_error_metrics *e = &r->accuracy.outputs[k].error;
        double *of = &worst[r->accuracy.outputs[k].against != NULL];
        if (e->known) *of = fmax(*of, e->nonfinite ? INFINITY : e->max_rel);
    }
    return isnan(worst[0]) ? worst[1] : worst[0];
}

static double metric_operator_error(const prony_report *r)
{
    double worst = NAN;
    for (size_t o = 0; r->has_accuracy && r->operator_errors && o < r->operator_count; o++) {
        const prony_error_metrics *e = &r->operator_errors[o].own;
        if (e->known) worst = fmax(worst, e->nonfinite ? INFINITY : e->max_rel);
    }
    return worst;
}

static double metric_model_size(const prony_report *r)
{
    return (double)r->model.parameter_bytes;
}

static double metric_file_size(const prony_report *r)
{
    return (double)r->model.file_bytes;
}

static double metric_parameters(const prony_report *r)
{
    return (double)r->totals.cost.parameters;
}

static double metric_buffers(const prony_report *r)
{
    double sum = 0;
    for (size_t i = 0; i < r->parameter_count; i++)
        if (!r->parameters[i].trainable) sum += (double)r->parameters[i].elements;
    return sum;
}

#define TOTAL(name)                                                                                                    \
    static double metric_##name(const prony_report *r)                                                                 \
    {                                                                                                                  \
        return (double)r->totals.cost.name;                                                                            \
    }
TOTAL(macs)
TOTAL(madds)
TOTAL(flops)
TOTAL(special)
TOTAL(int_ops)

static double metric_count(const prony_report *r)
{
    return r->totals.counted ? (double)r->totals.count : NAN;
}

static double metric_traffic(const prony_report *r)
{
    return (double)r->totals.cost.bytes_read + (double)r->totals.cost.bytes_written;
}

static double metric_intensity(const prony_report *r)
{
    return metric_traffic(r) > 0 ? metric_flops(r) / metric_traffic(r) : NAN;
}

static double metric_layers(const prony_report *r)
{
    return r->totals.layers;
}

static double metric_operators(const prony_report *r)
{
    return r->operator_count ? (double)r->operator_count : NAN;
}

/* ---- memory ---- */

static double metric_activation_memory(const prony_report *r)
{
    double sum = 0;
    for (size_t l = 0; l < r->layer_count; l++) sum += (double)r->layers[l].output_bytes;
    return sum;
}

static double metric_memory_footprint(const prony_report *r)
{
    return metric_model_size(r) + metric_activation_memory(r);
}

static double metric_memory(const prony_report *r)
{
    const prony_memory_report *m = &r->memory;
    if (!r->has_memory) return NAN;
    return (double)m->weight_bytes + (double)m->packed_weight_bytes + (double)m->planned_bytes;
}

/* The session's own memory; pages of the model's file are the system's. */
static double metric_session_memory(const prony_report *r)
{
    return r->has_memory ? (double)r->memory.packed_weight_bytes + (double)r->memory.planned_bytes : NAN;
}

/* With interleaved measurements the process holds several models' sessions, so its memory is not one model's. */
static double metric_held_memory(const prony_report *r)
{
    return r->has_memory && r->memory.held_known && !r->turns ? (double)r->memory.held.resident_bytes : NAN;
}

#define MEMORY(name, field)                                                                                            \
    static double metric_##name(const prony_report *r)                                                                 \
    {                                                                                                                  \
        return r->has_memory ? (double)r->memory.field : NAN;                                                          \
    }
MEMORY(peak_memory, peak_live_bytes)
MEMORY(average_memory, average_live_bytes)
MEMORY(planned_memory, planned_bytes)
MEMORY(packed_weights, packed_weight_bytes)
MEMORY(scratch_memory, scratch_bytes)
MEMORY(plan_gap, plan_gap)
MEMORY(internal_fragmentation, internal_fragmentation)
MEMORY(external_fragmentation, external_fragmentation)
MEMORY(allocations, allocations)

static double metric_memory_per_sample(const prony_report *r)
{
    return r->has_memory && r->config.batch > 0 ? (double)r->memory.planned_bytes / (double)r->config.batch : NAN;
}

static double metric_peak_resident(const prony_report *r)
{
    return r->has_memory && r->memory.peak_rss_bytes ? (double)r->memory.peak_rss_bytes : NAN;
}

static double metric_heap_calls(const prony_report *r)
{
    return r->has_memory && r->memory.heap_calls_known ? (double)r->memory.heap_calls_per_run : NAN;
}

/* ---- time ---- */

#define LATENCY(name, field, valid)                                                                                    \
    static double metric_##name(const prony_report *r)                                                                 \
    {                                                                                                                  \
        const prony_time_stats *t = &r->latency;                                                                       \
        return r->measured && t->count && (valid) ? (double)t->field : NAN;                                            \
    }
LATENCY(latency, median_ns, true)
LATENCY(latency_mean, mean_ns, true)
LATENCY(latency_min, min_ns, true)
LATENCY(latency_max, max_ns, true)
LATENCY(latency_std, std_ns, true)
LATENCY(latency_p90, p90_ns, t->p90_valid)
LATENCY(latency_p95, p95_ns, t->p95_valid)
LATENCY(latency_p99, p99_ns, t->p99_valid)
LATENCY(latency_p999, p999_ns, t->p999_valid)

#define PHASE(name, field)                                                                                             \
    static double metric_##name(const prony_report *r)                                                                 \
    {                                                                                                                  \
        return r->phases.field >= 0 ? (double)r->phases.field : NAN;                                                   \
    }
PHASE(load_time, load_ns)
PHASE(bind_time, bind_ns)
PHASE(plan_time, plan_ns)
PHASE(first_run_time, first_run_ns)

/* The caller's phase around each run; -1: none. */
static double around(const prony_report *r, int64_t ns)
{
    return r->has_around && ns >= 0 ? (double)ns : NAN;
}

static double metric_preprocess_time(const prony_report *r)
{
    return around(r, r->around.preprocess_ns);
}

static double metric_postprocess_time(const prony_report *r)
{
    return around(r, r->around.postprocess_ns);
}

static double metric_end_to_end(const prony_report *r)
{
    return around(r, r->around.end_to_end.median_ns);
}

static double known_rate(double rate)
{
    return rate >= 0 ? rate : NAN;
}

#define RATE(name, field)                                                                                              \
    static double metric_##name(const prony_report *r)                                                                 \
    {                                                                                                                  \
        return known_rate(prn_report_rates_of(r).field);                                                               \
    }
RATE(images_per_second, images)
RATE(tokens_per_second, tokens)
RATE(requests_per_second, requests)

/* Without a batch a run is a sample. */
static double metric_throughput(const prony_report *r)
{
    prn_report_rates rates = prn_report_rates_of(r);
    return known_rate(rates.samples >= 0 ? rates.samples : rates.requests);
}

static double metric_per_second(const prony_report *r, double quantity)
{
    return r->measured && r->latency.mean_ns > 0 ? quantity / ((double)r->latency.mean_ns / 1e9) : NAN;
}

static double metric_flops_per_second(const prony_report *r)
{
    return metric_per_second(r, metric_flops(r));
}

static double metric_bytes_per_second(const prony_report *r)
{
    double bytes = 0;
    if (r->operator_count == 0) return NAN;
    for (size_t o = 0; o < r->operator_count; o++)
        bytes += (double)r->operators[o].cost.bytes_read + (double)r->operators[o].cost.bytes_written;
    return metric_per_second(r, bytes);
}

/* The roofs' time of all operators over their measured time. */
static double metric_efficiency(const prony_report *r)
{
    double allowed = 0, took = 0;
    for (size_t o = 0; o < r->operator_count; o++) {
        double roof = prn_operator_roof_ns(r, &r->operators[o], NULL);
        if (!r->operators[o].measured || roof <= 0) continue;
        allowed += roof;
        took += (double)r->operators[o].time.mean_ns;
    }
    return allowed > 0 && took > 0 ? allowed / took : NAN;
}

static double metric_critical_path(const prony_report *r)
{
    uint32_t *chain = NULL;
    size_t length;
    int64_t time_ns;
    if (prony_report_critical_path(&chain, &length, &time_ns, r, NULL) != PRONY_OK) return NAN;
    prony_rows_release(chain);
    return (double)time_ns;
}

static double metric_critical_path_share(const prony_report *r)
{
    double sum = 0, path = metric_critical_path(r);
    for (size_t o = 0; o < r->operator_count; o++) sum += (double)r->operators[o].time.mean_ns;
    return sum > 0 ? path / sum : NAN;
}

static double metric_coverage(const prony_report *r)
{
    return prn_report_stamped(r) ? r->time_share : NAN;
}

static double metric_profiling_cost(const prony_report *r)
{
    return prn_report_stamped(r) && r->cost.pairs ? r->cost.share : NAN;
}

static double metric_overhead(const prony_report *r)
{
    return prn_report_stamped(r) ? r->overhead_share : NAN;
}

/* ---- processor and files ---- */

#define PROCESS(name, field)                                                                                           \
    static double metric_##name(const prony_report *r)                                                                 \
    {                                                                                                                  \
        return r->measured ? (double)r->cpu.field : NAN;                                                               \
    }
PROCESS(cpu_utilisation, utilisation)
PROCESS(cpu_user, user_ns)

static double metric_core_use(const prony_report *r)
{
    double sum = 0;
    for (size_t c = 0; c < r->core_count; c++) sum += r->cores[c].mean;
    return r->core_count ? sum / (double)r->core_count : NAN;
}

static double metric_core_use_most(const prony_report *r)
{
    double most = NAN;
    for (size_t c = 0; c < r->core_count; c++)
        if (isnan(most) || r->cores[c].mean > most) most = r->cores[c].mean;
    return most;
}

PROCESS(cpu_system, system_ns)
PROCESS(context_switches, involuntary_switches)
PROCESS(read_bytes, read_bytes)
PROCESS(written_bytes, written_bytes)
PROCESS(read_calls, read_calls)
PROCESS(write_calls, write_calls)

/* ---- device ---- */

static double metric_device_utilisation(const prony_report *r)
{
    return r->has_device && r->device.busy_share >= 0 ? r->device.busy_share : NAN;
}

/* Time at the device's roofs over the time of the operators that have one. */
static double metric_device_efficiency(const prony_report *r)
{
    double roof = 0, busy = 0;
    for (size_t i = 0; r->has_device && i < r->device.operator_count; i++) {
        const prony_device_operator_row *o = &r->device.operators[i];
        if (!o->bound || o->busy_ns <= 0) continue;
        roof += o->percent_of_roof * 1e-2 * (double)o->busy_ns;
        busy += (double)o->busy_ns;
    }
    return busy > 0 ? roof / busy : NAN;
}

static double metric_device_power(const prony_report *r)
{
    return r->has_device && r->device.has_sensors ? r->device.sensors.power_mean_w : NAN;
}

static double metric_transfer_share(const prony_report *r)
{
    return r->has_device && r->device.copy_share >= 0 ? r->device.copy_share : NAN;
}

static double metric_transfer_bytes(const prony_report *r)
{
    return r->has_device ? (double)r->device.to_device_bytes + (double)r->device.from_device_bytes : NAN;
}

static double metric_device_memory(const prony_report *r)
{
    return r->has_device ? (double)r->device.values_bytes + (double)r->device.constants_bytes : NAN;
}

#define LESS PRONY_SMALLER_IS_BETTER
#define MORE PRONY_LARGER_IS_BETTER
#define EITHER PRONY_NO_DIRECTION
/* The basis on which two reports are compared. */
#define ONCE PRONY_BASIS_NONE, PRN_STATISTIC_MEAN, false
#define EXACT PRONY_BASIS_EXACT, PRN_STATISTIC_MEAN, false
#define MEDIAN PRONY_BASIS_RUNS, PRN_STATISTIC_MEDIAN, false
#define MEAN PRONY_BASIS_RUNS, PRN_STATISTIC_MEAN, false
#define PER_TIME PRONY_BASIS_RUNS, PRN_STATISTIC_MEAN, true
#define QUANTILE(which) PRONY_BASIS_INTERVAL, PRN_STATISTIC_##which, false
#define METRIC(key, basis, name, description, unit, scale, direction)                                                  \
    {{#key, name, description, unit, PRONY_SCALE_##scale, direction}, metric_##key, basis, false}
#define DECIDES(key, basis, name, description, unit, scale, direction)                                                 \
    {{#key, name, description, unit, PRONY_SCALE_##scale, direction}, metric_##key, basis, true}

// clang-format off
const prn_metric_builtin prn_metric_builtins[] = {
    DECIDES(evaluation, EXACT, "Evaluation metric", "score on labelled data", "", NONE, MORE),
    DECIDES(top1_accuracy, EXACT, "Top-1 accuracy", "labelled samples whose class has the highest score", "", PERCENT, MORE),
    DECIDES(top5_accuracy, EXACT, "Top-5 accuracy", "labelled samples whose class is among the five best", "", PERCENT, MORE),
    DECIDES(output_error, EXACT, "Output error", "largest error of an output over its range, beside the accuracy profile's reference", "", NONE, LESS),
    METRIC(operator_error, EXACT, "Operator error", "largest error over the range that an operator makes by itself", "", NONE, LESS),
    METRIC(model_size, EXACT, "Model size", "bytes of the weights", "", BINARY, LESS),
    METRIC(file_size, EXACT, "File size", "bytes of the model file", "", BINARY, LESS),
    METRIC(macs, EXACT, "Computational complexity", "multiplications accumulated into contractions, one run", "MACs", SI, LESS),
    METRIC(madds, EXACT, "Multiply-adds", "MACs and the scale-and-shift pairs of normalisations", "MAdds", SI, LESS),
    METRIC(flops, EXACT, "Floating-point operations", "arithmetic on floating-point data, one run; a MAC is 2", "FLOPs", SI, LESS),
    METRIC(special, EXACT, "Special functions", "those FLOPs that are exp, log, tanh, erf, sin, pow, sqrt or division", "FLOPs", SI, LESS),
    METRIC(int_ops, EXACT, "Integer operations", "arithmetic on integer data, one run", "ops", SI, LESS),
    METRIC(count, EXACT, "Count by preset", "as the preset's tool counts it", "", SI, LESS),
    METRIC(parameters, EXACT, "Parameters", "elements of the weights", "", SI, LESS),
    METRIC(buffers, EXACT, "Buffers", "elements that are stored but not trained, such as running statistics", "", SI, LESS),
    METRIC(traffic, EXACT, "Traffic", "compulsory bytes of all layers: inputs, weights and outputs once", "", BINARY, LESS),
    METRIC(intensity, EXACT, "Arithmetic intensity", "FLOPs over compulsory bytes", "FLOP/byte", NONE, EITHER),
    METRIC(layers, EXACT, "Layers", "nodes of the model", "", NONE, EITHER),
    METRIC(operators, EXACT, "Operators", "kernels that run", "", NONE, EITHER),
    METRIC(memory_footprint, EXACT, "Memory footprint", "weights and all activations together", "", BINARY, LESS),
    METRIC(activation_memory, EXACT, "Activation memory", "bytes of all layers' outputs", "", BINARY, LESS),
    DECIDES(held_memory, ONCE, "Held", "memory of the process after the runs", "", BINARY, LESS),
    DECIDES(session_memory, EXACT, "Held by the session", "packed weights, constants and the arena", "", BINARY, LESS),
    METRIC(memory, EXACT, "Weights and arena", "sum of weights, packed weights and arena, including weights released after packing; held_memory is the process's", "", BINARY, LESS),
    METRIC(peak_memory, EXACT, "Peak of the arena", "most bytes of the arena live at once; peak_resident is the peak of the process", "", BINARY, LESS),
    METRIC(average_memory, EXACT, "Average of the arena", "mean of the live bytes over the steps", "", BINARY, LESS),
    METRIC(memory_per_sample, EXACT, "Arena per sample", "arena over the batch", "", BINARY, LESS),
    METRIC(planned_memory, EXACT, "Arena", "bytes that the memory plan needs", "", BINARY, LESS),
    METRIC(packed_weights, EXACT, "Packed weights", "bytes of the weights as laid out for kernels", "", BINARY, LESS),
    METRIC(scratch_memory, EXACT, "Scratch memory", "working memory of kernels, part of the plan", "", BINARY, LESS),
    METRIC(plan_gap, EXACT, "Plan gap", "1 - proven lower bound / arena", "", PERCENT, LESS),
    METRIC(internal_fragmentation, EXACT, "Internal fragmentation", "1 - bytes asked / bytes given", "", PERCENT, LESS),
    METRIC(external_fragmentation, EXACT, "External fragmentation", "1 - largest free block / free bytes, at its worst step", "", PERCENT, LESS),
    METRIC(allocations, EXACT, "Allocations", "of the arena, one run", "", NONE, LESS),
    METRIC(heap_calls, EXACT, "Heap calls", "of Prony itself, one run", "", NONE, LESS),
    METRIC(peak_resident, ONCE, "Peak of the process", "most bytes resident so far, including while packing", "", BINARY, LESS),
    DECIDES(latency, MEDIAN, "Execution time", "median latency of a run", "", TIME, LESS),
    METRIC(latency_mean, MEAN, "Mean latency", "mean of the runs", "", TIME, LESS),
    METRIC(latency_min, ONCE, "Minimum latency", "fastest run", "", TIME, LESS),
    METRIC(latency_max, ONCE, "Maximum latency", "slowest run", "", TIME, LESS),
    METRIC(latency_std, ONCE, "Latency deviation", "standard deviation of the runs", "", TIME, LESS),
    METRIC(latency_p90, QUANTILE(P90), "P90 latency", "90 % of the runs are at or below; needs 64 runs", "", TIME, LESS),
    METRIC(latency_p95, QUANTILE(P95), "P95 latency", "95 % of the runs are at or below; needs 130 runs", "", TIME, LESS),
    METRIC(latency_p99, QUANTILE(P99), "P99 latency", "99 % of the runs are at or below; needs 662 runs", "", TIME, LESS),
    METRIC(latency_p999, QUANTILE(P999), "P99.9 latency", "99.9 % of the runs are at or below; needs 6636 runs", "", TIME, LESS),
    DECIDES(throughput, PER_TIME, "Throughput", "batch over mean latency", "samples/s", SI, MORE),
    METRIC(images_per_second, PER_TIME, "Image throughput", "where the first input is images", "images/s", SI, MORE),
    METRIC(tokens_per_second, PER_TIME, "Token throughput", "where the first input is tokens: batch times sequence", "tokens/s", SI, MORE),
    METRIC(requests_per_second, PER_TIME, "Request throughput", "runs over time", "requests/s", SI, MORE),
    METRIC(flops_per_second, PER_TIME, "Model FLOP/s", "the model's FLOPs over mean latency", "FLOP/s", SI, MORE),
    METRIC(bytes_per_second, PER_TIME, "Achieved bandwidth", "operators' compulsory bytes over mean latency", "B/s", SI, MORE),
    METRIC(efficiency, ONCE, "Efficiency", "time at this machine's roofs over the operators' time", "", PERCENT, MORE),
    METRIC(critical_path, ONCE, "Critical path", "longest chain of dependent operators", "", TIME, LESS),
    METRIC(critical_path_share, ONCE, "Critical path share", "over the operators' summed time; 100 % means that no operators can run side by side", "", PERCENT, EITHER),
    METRIC(cpu_utilisation, ONCE, "CPU utilisation", "CPU time over wall time and threads", "", PERCENT, MORE),
    METRIC(device_utilisation, ONCE, "Device utilisation", "time in which kernels of the device execute, over stamped runs", "", PERCENT, MORE),
    METRIC(device_efficiency, ONCE, "Device efficiency", "time at the device's roofs over the time of its operators", "", PERCENT, MORE),
    METRIC(device_power, ONCE, "Device power", "mean while runs were measured, by the device's sensors", "W", SI, LESS),
    METRIC(transfer_share, ONCE, "Transfer share", "time of copies between host and device, over stamped runs", "", PERCENT, LESS),
    METRIC(transfer_bytes, EXACT, "Transfers", "bytes copied between host and device, one run", "", BINARY, LESS),
    METRIC(device_memory, EXACT, "Device memory", "values and weights on the device", "", BINARY, LESS),
    METRIC(core_use, ONCE, "Core use", "busy time of the usable processors, all processes together", "", PERCENT, EITHER),
    METRIC(core_use_most, ONCE, "Busiest core", "busy time of the processor that was used most", "", PERCENT, EITHER),
    METRIC(cpu_user, ONCE, "User time", "CPU time of the measured runs outside of the kernel", "", TIME, LESS),
    METRIC(cpu_system, ONCE, "System time", "CPU time of the measured runs inside of the kernel", "", TIME, LESS),
    METRIC(context_switches, ONCE, "Involuntary switches", "times the threads lost their core", "", NONE, LESS),
    METRIC(read_bytes, ONCE, "Bytes read", "from storage during the measured runs", "", BINARY, LESS),
    METRIC(written_bytes, ONCE, "Bytes written", "to storage during the measured runs", "", BINARY, LESS),
    METRIC(read_calls, ONCE, "Read calls", "system calls during the measured runs", "", NONE, LESS),
    METRIC(write_calls, ONCE, "Write calls", "system calls during the measured runs", "", NONE, LESS),
    METRIC(load_time, ONCE, "Load time", "opening and checking the model file", "", TIME, LESS),
    METRIC(bind_time, ONCE, "Bind time", "inferring shapes", "", TIME, LESS),
    METRIC(plan_time, ONCE, "Plan time", "choosing kernels, packing weights, planning memory", "", TIME, LESS),
    METRIC(first_run_time, ONCE, "First run", "latency of the first run", "", TIME, LESS),
    METRIC(preprocess_time, ONCE, "Preprocessing", "before each run, median", "", TIME, LESS),
    METRIC(postprocess_time, ONCE, "Postprocessing", "after each run, median", "", TIME, LESS),
    METRIC(end_to_end, ONCE, "End to end", "preprocessing, run and postprocessing, median", "", TIME, LESS),
    METRIC(coverage, ONCE, "Time inside operators", "of the runs' wall time", "", PERCENT, MORE),
    METRIC(profiling_cost, ONCE, "Profiling costs", "latency with profiling over latency without it, minus one, by pairs of runs", "", PERCENT, LESS),
    METRIC(overhead, ONCE, "Profiler overhead", "of the runs' wall time, estimated from the cost of an event", "", PERCENT, LESS),
};
// clang-format on
const size_t prn_metric_builtin_count = sizeof prn_metric_builtins / sizeof prn_metric_builtins[0];
