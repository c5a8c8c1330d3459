/* Makes the roof of a report from kept peaks: measured rates, and rates at the report's own thread count. */
#include "profiler/measure/machine_peaks.h"

#include "engine/plan/step_graph.h"

#include <string.h>

/* Rows of a roof are in order of threads. Interpolates between neighbours if `threads` was not measured. */
static double between(int low, double low_rate, int high, double high_rate, int threads)
{
    return low_rate + (high_rate - low_rate) * (threads - low) / (high - low);
}

static void machine_roof_add_compute(prn_report_roof *roof, prn_roof_compute *rows, const prony_machine *m, int threads)
{
    const prony_peak_compute *low = NULL;
    for (size_t i = 0; i < m->compute_count; i++) {
        const prony_peak_compute *c = &m->compute[i];
        rows[roof->compute_count++] = (prn_roof_compute){c->precision, c->threads, c->flops_per_second};
    }
    for (size_t i = 0; i < m->compute_count; i++) {
        const prony_peak_compute *c = &m->compute[i];
        if (strcmp(c->precision, "fp32") != 0) continue;
        if (low && low->threads < threads && c->threads > threads)
            rows[roof->compute_count++] = (prn_roof_compute){
                "fp32", threads,
                between(low->threads, low->flops_per_second, c->threads, c->flops_per_second, threads)};
        low = c;
    }
    roof->compute = rows;
}

static size_t find_level(const prn_roof_memory *rows, size_t count, const char *level, int threads)
{
    size_t i = 0;
    while (i < count && (rows[i].threads != threads || strcmp(rows[i].level, level) != 0)) i++;
    return i;
}

/* The highest of read, write and copy bounds traffic of any kind. */
static void add_memory(prn_report_roof *roof, prn_roof_memory *rows, const prony_machine *m, int threads)
{
    size_t count = 0;
    for (size_t i = 0; i < m->bandwidth_count; i++) {
        const prony_peak_bandwidth *b = &m->bandwidth[i];
        size_t at = find_level(rows, count, b->level, b->threads);
        if (at == count) rows[count++] = (prn_roof_memory){b->level, b->threads, 0};
        if (b->bytes_per_second > rows[at].bytes_per_second) rows[at].bytes_per_second = b->bytes_per_second;
    }
    size_t measured = count;
    for (size_t i = 0; i < measured; i++) {
        const prn_roof_memory *low = &rows[i], *high = NULL;
        for (size_t k = i + 1; k < measured && !high; k++)
            if (strcmp(rows[k].level, low->level) == 0) high = &rows[k];
        if (high && low->threads < threads && high->threads > threads)
            rows[count++] = (prn_roof_memory){
                low->level, threads,
                between(low->threads, low->bytes_per_second, high->threads, high->bytes_per_second, threads)};
    }
    roof->memory = rows;
    roof->memory_count = count;
}

static const char *machine_roof_copy_text(prony_report *report, const char *text)
{
    return prn_bump_strndup(&report->pool, text, strlen(text));
}

static prony_status machine_roof_fill(prony_report *report, const prony_machine *m, prony_error *error)
{
    prn_roof_compute *compute = prn_bump_alloc(&report->pool, m->compute_count + 1, sizeof *compute);
    prn_roof_memory *memory = prn_bump_alloc(&report->pool, 2 * m->bandwidth_count + 1, sizeof *memory);
    prn_roof_work *work = prn_bump_alloc(&report->pool, m->work_count + 1, sizeof *work);
    report->roof.method = machine_roof_copy_text(report, PRN_MACHINE_METHOD);
    if (!compute || !memory || !work || !report->roof.method) return prn_no_memory(error);
    machine_roof_add_compute(&report->roof, compute, m, prn_report_threads(report));
    add_memory(&report->roof, memory, m, prn_report_threads(report));
    for (size_t i = 0; i < report->roof.compute_count; i++)
        if (!(compute[i].precision = machine_roof_copy_text(report, compute[i].precision))) return prn_no_memory(error);
    for (size_t i = 0; i < report->roof.memory_count; i++)
        if (!(memory[i].level = machine_roof_copy_text(report, memory[i].level))) return prn_no_memory(error);
    for (size_t i = 0; i < m->work_count; i++) {
        work[i] =
            (prn_roof_work){machine_roof_copy_text(report, m->work[i].work), m->work[i].threads, m->work[i].per_second};
        if (!work[i].work) return prn_no_memory(error);
    }
    report->roof.busy = m->info.busy;
    report->roof.work = work;
    report->roof.work_count = m->work_count;
    report->has_roof = true;
    return PRONY_OK;
}

prony_status prn_report_fill_roof(prony_report *report, prony_error *error)
{
    prony_machine *machine;
    if (prony_machine_load(&machine, NULL) != PRONY_OK || !machine) return PRONY_OK;
    prony_status status = machine_roof_fill(report, machine, error);
    prony_machine_release(machine);
    return status;
}

prony_status prn_machine_find_rates(prn_step_rates *rates, prony_error *error)
{
    prony_machine *machine = NULL;
    const prony_status status = prony_machine_load(&machine, error);
    if (status == PRONY_OUT_OF_MEMORY) return status;
    if (status != PRONY_OK || !machine) return PRONY_OK; /* `prony machine` mends a damaged file */
    for (size_t i = 0; i < machine->compute_count; i++)
        if (machine->compute[i].threads == 1 && strcmp(machine->compute[i].precision, "fp32") == 0)
            rates->flops_per_ns = machine->compute[i].flops_per_second / 1e9;
    for (size_t i = 0; i < machine->bandwidth_count; i++) {
        const prony_peak_bandwidth *row = &machine->bandwidth[i];
        if (row->threads == 1 && strcmp(row->level, "DRAM") == 0) rates->bytes_per_ns = row->bytes_per_second / 1e9;
    }
    prony_machine_release(machine);
    return PRONY_OK;
}
