/* The limit of an operator: the roofs of compute and memory against its measured time. Traffic is compulsory traffic,
 * so data that fits into a cache is charged at the bandwidth of the smallest level that holds it, and other data at
 * that of DRAM. */
#include "profiler/report/report.h"

#include <math.h>
#include <string.h>

/* Below this share of the roof neither compute nor memory explains the time. Chosen without measurement. */
#define OVERHEAD_SHARE 0.1

/* The threads' bytes of a level together: L1 and L2 once per thread, others once per group that shares one. */
static double cache_bytes(const prony_report *report, int level)
{
    const prn_machine *m = &report->system.machine;
    int threads = prn_report_threads(report) > 0 ? prn_report_threads(report) : 1;
    for (int i = 0; i < m->cache_count; i++) {
        const prn_cache_level *c = &m->caches[i];
        if (c->level != level || strcmp(c->type, "instruction") == 0) continue;
        int sharing = level <= 2 ? 1 : c->shared_by > 0 ? c->shared_by : threads;
        return (double)c->bytes * ((threads + sharing - 1) / sharing);
    }
    return 0;
}

/* The bandwidth of the nearest measured level that holds `bytes`. */
static double bandwidth_for(const prony_report *report, double bytes)
{
    static const char *const levels[] = {"L1", "L2", "L3"};
    for (int level = 1; level <= 3; level++) {
        double bandwidth =
            bytes <= cache_bytes(report, level) ? prn_report_roof_bandwidth(report, levels[level - 1]) : 0;
        if (bandwidth > 0) return bandwidth;
    }
    return prn_report_roof_bandwidth(report, "DRAM");
}

int64_t prn_operator_fact(const prony_operator_row *row, const char *key)
{
    for (size_t i = 0; i < row->kernel_fact_count; i++)
        if (strcmp(row->kernel_facts[i].key, key) == 0) return row->kernel_facts[i].value;
    return 0;
}

double prn_operator_flops(const prony_operator_row *row)
{
    const int64_t executed = prn_operator_fact(row, "product_flops");
    const double flops = (double)row->cost.flops;
    return executed > 0 ? flops - 2 * (double)row->cost.macs + (double)executed : flops;
}

double prn_report_executed_flops(const prony_report *report)
{
    double sum = (double)report->totals.cost.flops;
    for (size_t o = 0; o < report->operator_count; o++)
        sum += prn_operator_flops(&report->operators[o]) - (double)report->operators[o].cost.flops;
    return sum;
}

double prn_operator_bytes(const prony_operator_row *row)
{
    double bytes = (double)row->cost.bytes_read + (double)row->cost.bytes_written;
    const int64_t stored = prn_operator_fact(row, "weight_bytes"); /* bytes read instead of a float32 matrix */
    if (stored > 0) {
        const double plain =
            4.0 * (double)prn_operator_fact(row, "product_columns") * (double)prn_operator_fact(row, "product_depth");
        if (plain <= bytes) bytes += (double)stored - plain;
    }
    return row->layer_count == 0 && bytes <= 0 ? 2 * (double)row->output_bytes : bytes;
}

/* true: the kernels use integers for operations that the layers count as floating point. */
bool prn_operator_multiplies_bytes(const prony_operator_row *row)
{
    return prn_operator_fact(row, "byte_products") || (row->cost.macs > 0 && row->cost.int_ops > row->cost.flops);
}

bool prn_operator_on_device(const prony_operator_row *row)
{
    return row->backend && strcmp(row->backend, "opencl") == 0;
}

/* A kernel that computes a float32 product by several bfloat16 ones is compared with the bfloat16 peak. */
static double peak_of(const prony_report *report, const prony_operator_row *row)
{
    const int64_t products = prn_operator_fact(row, "bf16_products");
    return products > 0 ? prn_report_roof_flops(report, "bf16") / (double)products
                        : prn_report_roof_flops(report, "fp32");
}

double prn_report_highest_peak(const prony_report *report)
{
    double highest = prn_report_roof_flops(report, "fp32");
    for (size_t i = 0; i < report->operator_count; i++) {
        const double peak = peak_of(report, &report->operators[i]);
        if (peak > highest) highest = peak;
    }
    return highest;
}

double prn_operator_roof_ns(const prony_report *report, const prony_operator_row *row, bool *compute_bound)
{
    if (prn_operator_multiplies_bytes(row)) return 0; /* their peak is not measured */
    if (prn_operator_on_device(row)) return 0;        /* the roofs are the processor's */
    double flops = peak_of(report, row);
    double bytes = prn_operator_bytes(row);
    double bandwidth = bandwidth_for(report, bytes);
    if (flops <= 0 || bandwidth <= 0) return 0;
    double compute = prn_operator_flops(row) / flops * 1e9, memory = bytes / bandwidth * 1e9;
    if (compute_bound) *compute_bound = compute >= memory;
    return compute > memory ? compute : memory;
}

static prony_bound roofline_bound(double share, bool compute)
{
    if (share < OVERHEAD_SHARE) return PRONY_BOUND_OVERHEAD;
    return compute ? PRONY_BOUND_COMPUTE : PRONY_BOUND_MEMORY;
}

void prn_device_operator_roof(const prony_device_report *device, const prony_operator_row *row,
                              prony_device_operator_row *out)
{
    const double flops = (double)row->cost.flops, bytes = prn_operator_bytes(row),
                 seconds = (double)out->busy_ns * 1e-9;
    out->flops_per_second = out->bytes_per_second = out->percent_of_roof = NAN;
    out->bound = NULL;
    if (out->busy_ns <= 0) return;
    out->flops_per_second = flops / seconds;
    out->bytes_per_second = bytes / seconds;
    if (!device->has_peaks || device->peaks.flops_per_second <= 0 || device->peaks.bytes_per_second <= 0) return;
    const double compute = flops / device->peaks.flops_per_second, memory = bytes / device->peaks.bytes_per_second,
                 share = (compute > memory ? compute : memory) / seconds;
    out->percent_of_roof = share * 100;
    out->bound = prony_bound_name(roofline_bound(share, compute >= memory));
}

prony_bound prony_report_bound(const prony_report *report, size_t operator_index, double *share_of_roof)
{
    if (share_of_roof) *share_of_roof = -1;
    const prony_operator_row *row =
        report && operator_index < report->operator_count ? &report->operators[operator_index] : NULL;
    if (!row || !row->measured || row->time.mean_ns <= 0) return PRONY_BOUND_UNKNOWN;
    bool compute = false;
    double roof = prn_operator_roof_ns(report, row, &compute), share = roof / (double)row->time.mean_ns;
    if (roof <= 0) return PRONY_BOUND_UNKNOWN;
    if (share_of_roof) *share_of_roof = share;
    return roofline_bound(share, compute);
}

const char *prony_bound_name(prony_bound bound)
{
    static const char *const names[] = {"unknown", "compute", "memory", "overhead"};
    return (size_t)bound < sizeof names / sizeof names[0] ? names[bound] : "unknown";
}
