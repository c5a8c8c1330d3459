/* Reasons, the most certain first: extra work, threads, then the kernel's own facts. Thresholds chosen without
 * measurement. */
#include "base/integers.h"
#include "ops/layout.h"
#include "profiler/report/reasons.h"

#include "profiler/text/number_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Thresholds of reasons, chosen without measurement. */
#define NEAR_ROOF 0.8 /* of the bandwidth roof */
#define EXPLAINS 0.5  /* share of the loss that makes a reason */
#define SLOWER_CLOCK 0.95
#define OTHERS_LEAST 0.05
#define SCALES 0.02      /* of the serial time, lost */
#define WELL_USED 0.85   /* of the threads: nothing to explain */
#define REACHED 0.8      /* of the roof: likewise */
#define EMPTY_LEAST 0.08 /* of the tiles */
#define MOVING_LEAST 0.4 /* of the time, for the bytes alone */
enum { FEW_ROWS = 4, SHORT_SUM = 64, REASON_BYTES = 160 };

const char *prn_thread_reason(const prn_thread_facts *f)
{
    const bool others = f->others > OTHERS_LEAST;
    if (f->lost_ns <= SCALES * (f->serial_ns > 0 ? f->serial_ns : f->time_ns)) return "scales";
    if (f->threads == 1) return "one thread inside of it";
    if (f->tasks <= 1) return "serial kernel";
    if (f->tasks < f->threads) return "too few tasks";
    if (f->bandwidth_ns > 0 && f->bandwidth_ns >= NEAR_ROOF * f->time_ns) return "bandwidth roof";
    if (f->clock_ratio > 0 && f->clock_ratio < SLOWER_CLOCK) return "frequency";
    if (f->members < f->threads) return others ? "other processes" : "wake-up";
    if (f->wake_ns > EXPLAINS * f->lost_ns) return "wake-up";
    if (f->longest_ns - f->busy_ns / f->threads > EXPLAINS * f->lost_ns)
        return others ? "other processes" : "imbalance";
    if (others) return "other processes";
    if (f->serial_ns > 0 && f->busy_ns > f->serial_ns * 1.05) return "shared caches or memory";
    return "overhead of sharing";
}

/* ---- one operator ---- */

typedef struct found {
    prony_report *report;
    prony_reason *reasons;
    size_t count, capacity;
    bool no_memory;
} found;

static void reasons_add(found *f, const char *reason, const char *text)
{
    const char *copy = prn_bump_strndup(&f->report->pool, text, strlen(text));
    if (!copy || !PRN_GROW(f->reasons, f->capacity, f->count + 1))
        f->no_memory = true;
    else
        f->reasons[f->count++] = (prony_reason){reason, copy};
}

static bool reasons_is_op(const prony_operator_row *row, const char *op)
{
    return row->op && strcmp(row->op, op) == 0;
}

/* The reason noted by rewrites for a node that reads dequantized values (prn_stays_in_float). */
static void find_floats(found *f, const prony_operator_row *row)
{
    static const char *const words[] = {
        NULL,
        "inputs are dequantized, but this operator has no integer kernel: it computes on floats",
        "inputs are dequantized, but the result is not quantized, or has unquantized readers: it computes on floats",
        "one input is dequantized, another is neither quantized nor constant: it computes on floats",
        "inputs are dequantized, but scales, zero points or bias do not suit the integer kernel: it computes on floats",
        "quantization would lose more accuracy than allowed: it computes on floats"};
    const int64_t said = prn_operator_fact(row, "stays_in_float");
    if (said > 0 && said < (int64_t)(sizeof words / sizeof *words)) reasons_add(f, "stays in float", words[said]);
}

/* The reason for float32 products despite another session precision (prn_stays_in_fp32). */
static void find_precision(found *f, const prony_operator_row *row)
{
    static const char *const words[] = {
        NULL,
        "a weight is infinite, NaN or out of range, or the weights need more digits than the precision has: its "
        "matmuls stay float32",
        "no operand is a constant that the precision can store: its matmuls stay float32",
        "it has few weights, or too few rows to gain from it: its matmuls stay float32",
        "no kernel for the precision exists, or none is faster here: its matmuls stay float32"};
    const int64_t said = prn_operator_fact(row, "stays_in_fp32");
    if (said > 0 && said < (int64_t)(sizeof words / sizeof *words)) reasons_add(f, "stays in fp32", words[said]);
}

/* Work without results, and kernels that do not use the machine's instructions. */
static void find_detours(found *f, const prony_operator_row *row)
{
    char text[REASON_BYTES];
    prn_number_text bytes;
    prn_number_bytes(bytes, (double)row->output_bytes, 3, " ");
    if (reasons_is_op(row, "Reorder")) {
        snprintf(text, sizeof text, "copies %s to another layout for the next kernel", bytes);
        reasons_add(f, "reorder", text);
    } else if (reasons_is_op(row, "Copy")) {
        snprintf(text, sizeof text, "copies %s between host memory and a device", bytes);
        reasons_add(f, "copy", text);
    } else if (reasons_is_op(row, "Cast") || reasons_is_op(row, "QuantizeLinear") ||
               reasons_is_op(row, "DequantizeLinear")) {
        snprintf(text, sizeof text, "converts %s to another type", bytes);
        reasons_add(f, "conversion", text);
    }
    if (row->kernel && strstr(row->kernel, "_half_"))
        reasons_add(f, "conversion", "converts half-precision operands to float32, and the result back, in every run");
    const bool control = reasons_is_op(row, "If") || reasons_is_op(row, "Loop") || reasons_is_op(row, "Scan");
    if (row->backend && strcmp(row->backend, "reference") == 0 && !control) /* their time is their subgraphs' */
        reasons_add(f, "reference kernel", "plain C: no vector kernel supports this node");
}

static void facts_of_threads(prn_thread_facts *t, const prony_report *r, const prony_operator_row *row)
{
    const prony_parallel *p = &row->parallel;
    double pieces = 0, wake = 0;
    for (size_t i = 0; i < row->thread_share_count; i++) {
        pieces += (double)row->thread_shares[i].tasks;
        double late = (double)(row->thread_shares[i].start_ns - row->trace_start_ns);
        if (late > wake) wake = late;
    }
    bool compute = true;
    double roof = prn_operator_roof_ns(r, row, &compute), time = (double)row->time.mean_ns;
    /* The pool's values come from other runs than the times, so only their proportions are used. */
    double traced = (double)(p->busy_ns + p->wait_ns) / row->threads, scale = traced > 0 ? time / traced : 1;
    double busy = (double)p->busy_ns * scale;
    *t = (prn_thread_facts){.threads = row->threads,
                            .tasks = pieces,
                            .members = p->threads_used + 0.05, /* a mean over runs */
                            .busy_ns = busy,
                            .longest_ns = busy / p->threads_used * (1 + p->imbalance),
                            .wake_ns = wake,
                            .time_ns = time,
                            .lost_ns = time - busy / row->threads,
                            .bandwidth_ns = compute ? 0 : roof,
                            .others = r->has_disturbance && r->disturbance.others > 0 ? r->disturbance.others : 0};
}

/* Adds the reason of unused threads; with one thread only the load of other processes is a reason. */
static void find_threads(found *f, const prony_operator_row *row)
{
    prn_thread_facts t;
    char text[REASON_BYTES] = "";
    prn_number_text number;
    const prony_parallel *p = &row->parallel;
    const prn_disturbance *load = &f->report->disturbance;
    if (row->threads < 2 && f->report->has_disturbance && load->verdict == PRN_LOAD_BUSY) {
        if (load->others >= 0) /* otherwise the system does not know the share */
            snprintf(text, sizeof text, "other processes took %.0f %% of the processors", load->others * 100);
        else
            snprintf(text, sizeof text, "other processes took an unknown share of the processors");
        reasons_add(f, "other processes", text);
        return;
    }
    if (row->threads < 2 || !(p->threads_used > 0) || p->efficiency >= WELL_USED) return;
    facts_of_threads(&t, f->report, row);
    const char *reason = prn_thread_reason(&t);
    prn_number_percent(number, t.lost_ns / t.time_ns);
    if (strcmp(reason, "serial kernel") == 0)
        snprintf(text, sizeof text, "only one task: %d of %d threads idle", row->threads - 1, row->threads);
    else if (strcmp(reason, "too few tasks") == 0)
        snprintf(text, sizeof text, "%.0f tasks for %d threads", t.tasks, row->threads);
    else if (strcmp(reason, "imbalance") == 0)
        snprintf(text, sizeof text, "the busiest thread works %.0f %% longer than the mean", p->imbalance * 100);
    else if (strcmp(reason, "other processes") == 0)
        snprintf(text, sizeof text,
                 "other processes took %.0f %% of the processors; its threads wait %s %% of the time", t.others * 100,
                 number);
    else if (strcmp(reason, "wake-up") == 0)
        snprintf(text, sizeof text, "threads start late: they wait %s %% of the time", number);
    else if (strcmp(reason, "overhead of sharing") == 0)
        snprintf(text, sizeof text, "its threads wait %s %% of the time", number);
    if (*text) reasons_add(f, reason, text);
}

/* Share of the tiles' elements without a result. */
static double empty_share(int64_t rows, int64_t columns, int64_t tile_rows, int64_t tile_columns)
{
    double whole_rows = (double)(prn_ceil_div(rows, tile_rows) * tile_rows);
    double whole_columns = (double)(prn_ceil_div(columns, tile_columns) * tile_columns);
    return 1 - (double)rows / whole_rows * (double)columns / whole_columns;
}

/* Adds reasons from the matmul's shape: few rows, empty tiles, short sums, packing in every run. */
static void find_shape(found *f, const prony_operator_row *row)
{
    char text[REASON_BYTES];
    int64_t rows = prn_operator_fact(row, "product_rows"), columns = prn_operator_fact(row, "product_columns"),
            depth = prn_operator_fact(row, "product_depth");
    int64_t tile_rows = prn_operator_fact(row, "tile_rows"), tile_columns = prn_operator_fact(row, "tile_columns");
    if (rows > 0 && rows <= FEW_ROWS) {
        snprintf(text, sizeof text, "few rows: each element of the other operand is used %lld time%s", (long long)rows,
                 rows == 1 ? "" : "s");
        reasons_add(f, "few rows", text);
    } else if (rows > 0 && tile_rows > 0 && tile_columns > 0 &&
               empty_share(rows, columns, tile_rows, tile_columns) >= EMPTY_LEAST) {
        snprintf(text, sizeof text, "%lld x %lld results in %lld x %lld tiles: %.0f %% of the tiles' area is empty",
                 (long long)rows, (long long)columns, (long long)tile_rows, (long long)tile_columns,
                 100 * empty_share(rows, columns, tile_rows, tile_columns));
        reasons_add(f, "edge tiles", text);
    }
    if (depth > 0 && depth < SHORT_SUM) {
        snprintf(text, sizeof text, "short sums: %lld products per result", (long long)depth);
        reasons_add(f, "short rows", text);
    }
    if (prn_operator_fact(row, "packs_in_run"))
        reasons_add(f, "packing", "an operand is not constant: it is packed in every run");
    if (prn_operator_fact(row, "filters_in_run"))
        reasons_add(f, "packing", "filters are transformed in every run, to keep the weights small");
}

/* Finds operators whose traffic alone takes a large share of the time. */
static void find_traffic(found *f, const prony_operator_row *row)
{
    const prony_report *r = f->report;
    prony_operator_row bytes_only = *row;
    char text[REASON_BYTES];
    prn_number_text bytes, share;
    bool compute;
    bytes_only.cost.flops = bytes_only.cost.macs = bytes_only.cost.int_ops = 0;
    bytes_only.kernel_fact_count = 0;
    double part = prn_operator_roof_ns(r, &bytes_only, &compute) / (double)row->time.mean_ns;
    if (part < MOVING_LEAST) return;
    snprintf(text, sizeof text, "moves %s: %s %% of its time at the bandwidth of their memory level",
             prn_number_bytes(bytes, prn_operator_bytes(row), 3, " "), prn_number_percent(share, part < 1 ? part : 1));
    reasons_add(f, "bandwidth", text);
}

/* Adds the kernel's predicted time on one core, and the next best kernel's: by the measured peak, else at 3 GHz. A
 * cycle of the model starts two vector multiply-adds (ops/conv/conv_cost_model.h). */
static void find_choice(found *f, const prony_operator_row *row)
{
    const prony_report *r = f->report;
    const prn_kernel_choice *choice = r->choices ? &r->choices[row->index] : NULL;
    if (!choice || !(choice->cycles >= 0) || !isfinite(choice->cycles)) return;
    const int threads = prn_report_threads(r) > 1 ? prn_report_threads(r) : 1;
    const double flops = 4.0 * (double)prn_layout_block(prn_layout_blocked()),
                 peak = prn_report_roof_flops(r, "fp32") / threads;
    const double ns = peak > 0 ? 1e9 * flops / peak : 1.0 / 3.0;
    char text[REASON_BYTES];
    prn_number_text time, other;
    prn_number_time(time, (int64_t)(choice->cycles * ns), 2, " ");
    if (choice->next)
        snprintf(text, sizeof text, "%.40s: %s predicted on one core, %.40s: %s", row->kernel, time, choice->next,
                 prn_number_time(other, (int64_t)(choice->next_cycles * ns), 2, " "));
    else
        snprintf(text, sizeof text, "%.40s: %s predicted on one core", row->kernel, time);
    reasons_add(f, "kernel choice", text);
}

static prony_status reasons_find(prony_report *r, prony_operator_row *row, prony_error *error)
{
    found f = {.report = r};
    double share = -1;
    prony_bound bound = prony_report_bound(r, row->index, &share);
    find_detours(&f, row);
    find_floats(&f, row);
    find_precision(&f, row);
    if (bound == PRONY_BOUND_UNKNOWN || share < REACHED) {
        find_threads(&f, row);
        find_shape(&f, row);
        if (bound != PRONY_BOUND_UNKNOWN) find_traffic(&f, row);
    }
    find_choice(&f, row);
    prony_reason *copy = f.count ? prn_bump_alloc(&r->pool, f.count, sizeof *copy) : NULL;
    const bool whole = !f.no_memory && (f.count == 0 || copy);
    if (copy && whole) memcpy(copy, f.reasons, f.count * sizeof *copy);
    prn_free(f.reasons);
    if (!whole) return prn_no_memory(error);
    row->reasons = copy;
    row->reason_count = f.count;
    return PRONY_OK;
}

/* ---- a kernel's best rate in the report ---- */

typedef struct reached {
    const char *kernel;
    uint32_t operator_index;
    double share;
} reached;

static int by_kernel(const void *left, const void *right)
{
    const reached *a = left, *b = right;
    int order = strcmp(a->kernel, b->kernel);
    if (order == 0) order = (a->share < b->share) - (a->share > b->share);
    return order ? order : (a->operator_index > b->operator_index) - (a->operator_index < b->operator_index);
}

static prony_status find_best(prony_report *r, prony_error *error)
{
    reached *all = prn_calloc(r->operator_count + 1, sizeof *all);
    if (!all) return prn_no_memory(error);
    size_t count = 0, first = 0;
    for (uint32_t o = 0; o < r->operator_count; o++) {
        double share;
        const char *kernel = r->operators[o].kernel;
        if (kernel && *kernel && prony_report_bound(r, o, &share) != PRONY_BOUND_UNKNOWN)
            all[count++] = (reached){kernel, o, share};
    }
    qsort(all, count, sizeof *all, by_kernel);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(all[i].kernel, all[first].kernel) != 0) first = i;
        prony_operator_row *row = &r->operators[all[i].operator_index];
        row->kernel_best = all[first].share;
        row->kernel_best_operator = all[first].operator_index;
    }
    prn_free(all);
    return PRONY_OK;
}

prony_status prn_report_fill_reasons(prony_report *report, prony_error *error)
{
    for (size_t o = 0; o < report->operator_count; o++)
        if (report->operators[o].measured && report->operators[o].time.mean_ns > 0 &&
            !prn_operator_on_device(&report->operators[o])) /* threads and tiles are the processor's */
            PRN_TRY(reasons_find(report, &report->operators[o], error));
    return find_best(report, error);
}

/* ---- texts ---- */

bool prn_reasons_text(const prony_operator_row *row, size_t most, char *out, size_t size)
{
    size_t used = 0;
    *out = '\0';
    for (size_t i = 0; i < row->reason_count && i < most && used < size; i++)
        if (most > 1 || strcmp(row->reasons[i].reason, "kernel choice") != 0) /* explains the kernel, not the time */
            used += (size_t)snprintf(out + used, size - used, "%s%s", i ? "; " : "", row->reasons[i].text);
    return used > 0;
}

bool prn_kernel_best_text(const prony_report *report, const prony_operator_row *row, char *out, size_t size)
{
    *out = '\0';
    if (!(row->kernel_best > 0) || row->kernel_best_operator == row->index ||
        row->kernel_best_operator >= report->operator_count)
        return false;
    snprintf(out, size, "this kernel's best here: %.0f %% in %.60s", row->kernel_best * 100,
             report->operators[row->kernel_best_operator].name);
    return true;
}
