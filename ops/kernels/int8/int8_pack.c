/* Packing of weights (int8_pack.h), by panels. */
#include "ops/kernels/int8/int8_pack.h"

#include "base/memory/alloc.h"
#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "ops/kernels/int8/int8_outliers.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

typedef struct pack_job {
    const prn_qint8_weights *weights;
    int8_t *panels;
    int64_t depth;              /* padded */
    prn_qint8_outliers *excess; /* that is being made */
    atomic_bool no_memory;
} pack_job;

static int64_t panel_count(const prn_qint8_weights *w)
{
    return w->groups * prn_qint8_panels(w->columns);
}

/* One column of all groups' into its panel, which is clear; the sum of its weights. `depths` side by side: a
 * constant. */
static inline __attribute__((always_inline)) int32_t pack_column_by(const prn_qint8_weights *w, int64_t column,
                                                                    const int64_t depths, int8_t *to)
{
    uint32_t sum = 0;
    int64_t k = 0;
    for (int64_t outer = 0; k < w->depth && !prn_cancelled_at(outer); outer++) {
        int64_t at = (w->column_at ? w->column_at[column] : column * w->column_step) +
                     (w->outer_at ? w->outer_at[outer] : outer * w->outer_step);
        for (int64_t i = 0; i < w->inner && k < w->depth; i++, k++, at += w->inner_step) {
            const int32_t weight =
                w->is_signed ? ((const int8_t *)w->codes)[at] : ((const uint8_t *)w->codes)[at] - 128;
            to[k / depths * depths * PRN_QINT8_COLUMNS + k % depths] = (int8_t)weight;
            sum += (uint32_t)weight;
        }
    }
    return (int32_t)sum;
}

static int32_t pack_column(const prn_qint8_weights *w, int64_t column, int64_t in_panel, int8_t *panel)
{
    return prn_qint8_dot_table()->panel_depths == 8 ? pack_column_by(w, column, 8, panel + 8 * in_panel)
                                                    : pack_column_by(w, column, 4, panel + 4 * in_panel);
}

/* Panel number `index` of all groups', and its columns' sums. */
static void int8_pack_panel(const prn_qint8_weights *w, int64_t index, int8_t *to, int32_t *sums)
{
    const int64_t panels = prn_qint8_panels(w->columns), panel = index % panels, group = index / panels;
    memset(to, 0, (size_t)(prn_qint8_padded(w->depth) * PRN_QINT8_COLUMNS));
    memset(sums, 0, PRN_QINT8_COLUMNS * sizeof *sums);
    for (int64_t j = 0; j < PRN_QINT8_COLUMNS && !prn_cancelled(); j++) {
        const int64_t column = panel * PRN_QINT8_COLUMNS + j;
        if (column < w->columns) sums[j] = pack_column(w, group * w->columns + column, j, to);
    }
}

static void int8_pack_task(void *argument, int64_t task)
{
    const pack_job *job = argument;
    const int64_t panels = panel_count(job->weights), first = task * PRN_QINT8_COLUMNS;
    int8_t *to = job->panels + first * job->depth;
    int32_t *sums = (int32_t *)(uintptr_t)prn_qint8_sums(job->panels, panels, job->depth);
    int8_pack_panel(job->weights, task, to, sums + first);
    if (!prn_qint8_dot_table()->splits) return;
    uint32_t *groups = (uint32_t *)(uintptr_t)prn_qint8_starts(job->panels, panels, job->depth);
    uint8_t *steps = (uint8_t *)(uintptr_t)prn_qint8_steps(job->panels, panels, job->depth);
    steps[task] = (uint8_t)prn_qint8_outliers_split(to, job->depth, groups + task);
}

static prony_status int8_pack_build_panels(const prony_context *context, void *argument, void *out)
{
    pack_job job = {
        .weights = argument, .panels = out, .depth = prn_qint8_padded(((prn_qint8_weights *)argument)->depth)};
    const int64_t panels = panel_count(job.weights);
    prn_parallel_tasks(context->threads, panels, int8_pack_task, &job);
    if (!prn_qint8_dot_table()->splits || prn_cancelled()) return PRONY_OK;
    uint32_t *starts = (uint32_t *)(uintptr_t)prn_qint8_starts(job.panels, panels, job.depth);
    uint64_t all = 0;
    for (int64_t i = 0; i <= panels; i++) {
        const uint32_t groups = i < panels ? starts[i] : 0;
        starts[i] = (uint32_t)all;
        all += groups;
    }
    if (all > UINT32_MAX) return prony_fail(context, PRONY_LIMIT, "weights have more than 2^32 groups of excesses");
    return PRONY_OK;
}

static void excess_task(void *argument, int64_t task)
{
    pack_job *job = argument;
    const uint32_t *starts = prn_qint8_starts(job->panels, panel_count(job->weights), job->depth) + task;
    const int8_t *rest = job->panels + task * PRN_QINT8_COLUMNS * job->depth;
    int32_t sums[PRN_QINT8_COLUMNS];
    if (starts[0] == starts[1] || prn_cancelled()) return;
    int8_t *whole = prn_alloc((size_t)(job->depth * PRN_QINT8_COLUMNS));
    if (!whole) {
        atomic_store(&job->no_memory, true);
        return;
    }
    int8_pack_panel(job->weights, task, whole, sums);
    if (!prn_cancelled()) prn_qint8_outliers_list(whole, rest, job->depth, job->excess + starts[0]);
    prn_free(whole);
}

static prony_status build_excess(const prony_context *context, void *argument, void *out)
{
    pack_job *job = argument;
    job->excess = out;
    prn_parallel_tasks(context->threads, panel_count(job->weights), excess_task, job);
    return atomic_load(&job->no_memory) ? prn_no_memory(context->error) : PRONY_OK;
}

prony_status prn_qint8_pack(const prony_context *context, const prn_qint8_weights *weights, prn_qint8_packed *packed)
{
    const void *out = NULL;
    prn_qint8_weights copy = *weights;
    const bool splits = prn_qint8_dot_table()->splits;
    const int64_t panels = panel_count(weights), depth = prn_qint8_padded(weights->depth);
    size_t bytes = prony_dtype_bytes(PRONY_INT8, panels * PRN_QINT8_COLUMNS * (depth + (int64_t)sizeof(int32_t)));
    if (splits) bytes += (size_t)(panels + 1) * sizeof(uint32_t) + (size_t)panels;
    prn_pack_key key = {.build = int8_pack_build_panels,
                        .size = {splits, weights->is_signed, weights->groups, weights->columns, weights->depth,
                                 weights->column_step, weights->inner, weights->inner_step, weights->outer_step},
                        .detail = weights->column_at,
                        .detail_bytes = weights->table_entries * sizeof *weights->column_at};
    PRN_TRY(context->services->packed(context, weights->codes, &key, bytes, &copy, &out));
    *packed = (prn_qint8_packed){.panels = out};
    const uint32_t groups = splits ? prn_qint8_starts(out, panels, depth)[panels] : 0;
    if (groups == 0) return PRONY_OK;
    pack_job job = {.weights = &copy, .panels = (int8_t *)(uintptr_t)out, .depth = depth};
    key.build = build_excess;
    PRN_TRY(context->services->packed(context, weights->codes, &key, groups * sizeof *packed->excess, &job, &out));
    packed->excess = out;
    return PRONY_OK;
}

void prn_qint8_bias(const prn_qint8_weights *weights, const prn_qint8_packed *packed, int32_t x_zero,
                    const int32_t *given, int32_t *bias)
{
    const int64_t columns = weights->columns, stored = prn_qint8_panels(columns) * PRN_QINT8_COLUMNS;
    const int32_t *sums = prn_qint8_sums(packed->panels, panel_count(weights), prn_qint8_padded(weights->depth));
    for (int64_t c = 0; c < weights->groups * columns; c++) {
        const uint32_t sum = (uint32_t)sums[c / columns * stored + c % columns];
        bias[c] = (int32_t)((given ? (uint32_t)given[c] : 0) - (uint32_t)x_zero * sum);
    }
}
