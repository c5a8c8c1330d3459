/* The convolution of float64 as a matrix product over windows, which are copied out panel by panel: a task has one
 * image, one group, 64 output positions and a range of output channels. Invariant: tasks are cut by the problem alone
 * and each output is summed in order of depth. */
#include "ops/conv/conv_f64.h"

#include "base/integers.h"
#include "base/threads/parallel.h"
#include "base/cpu/simd.h"
#include "base/threads/cancel.h"
#include "ops/kernels/window/conv_problem.h"
#include "ops/conv/conv_gather.h"

enum { COLUMNS = PRN_CONV_F64_COLUMNS, PIECE = 96, WANTED_TASKS = 8 };

PRN_SIMD_PICK(prn_conv_f64_simd, prn_conv_f64_simd_, static const prn_conv_f64_simd *conv_f64_simd_table)
PRN_CONV_GATHER(conv_f64_gather, double)

typedef struct f64_job {
    const prn_conv *conv;
    const prn_conv_f64_simd *simd;
    int64_t depth, blocks;
    int64_t tiles, cuts; /* pieces of the output positions, and of a group's channel blocks */
} f64_job;

/* Fills panel[column block][depths][columns] for depths [from, from + depths); columns beyond `count` are zeros. */
static void conv_f64_fill_panel(const f64_job *job, const double *x, int64_t from, int64_t depths, int64_t begin,
                                int64_t count, double *panel)
{
    const prn_conv *conv = job->conv;
    const int64_t *kernel = conv->window.kernel, columns = job->simd->columns;
    double line[COLUMNS] = {0};
    for (int64_t d = 0; d < depths; d++) {
        const int64_t channel = (from + d) / conv->kernel_volume, t = (from + d) % conv->kernel_volume;
        const int64_t tap[PRN_WINDOW_AXES] = {t / (kernel[1] * kernel[2]), t / kernel[2] % kernel[1], t % kernel[2]};
        conv_f64_gather(&conv->window, x + channel * conv->in_spatial, tap, begin, count, line);
        for (int64_t j = 0; j < COLUMNS; j += columns)
            memcpy(panel + j * depths + d * columns, line + j, (size_t)columns * sizeof *panel);
    }
}

/* Channels from `channel` on, as many as a tile has, for one piece of the depth. */
static void conv_f64_multiply_block(const f64_job *job, int64_t channel, int64_t rows, int64_t from, int64_t depths,
                                    const double *panel, double *y, int64_t count)
{
    const prn_conv *conv = job->conv;
    const double *a = (const double *)conv->weights->data + channel * job->depth + from;
    double start[PRN_CONV_F64_MAX_ROWS] = {0}, buffer[PRN_CONV_F64_MAX_ROWS * COLUMNS] = {0};
    for (int64_t r = 0; r < rows && conv->bias; r++) start[r] = ((const double *)conv->bias->data)[channel + r];
    if (count == COLUMNS) {
        job->simd->tile(a, job->depth, rows, panel, depths, from ? NULL : start, y, conv->out_spatial);
        return;
    }
    for (int64_t r = 0; r < rows && from; r++)
        memcpy(buffer + r * COLUMNS, y + r * conv->out_spatial, (size_t)count * sizeof *y);
    job->simd->tile(a, job->depth, rows, panel, depths, from ? NULL : start, buffer, COLUMNS);
    for (int64_t r = 0; r < rows; r++)
        memcpy(y + r * conv->out_spatial, buffer + r * COLUMNS, (size_t)count * sizeof *y);
}

/* One task: 64 output pixels of one group for a range of channel blocks; the depth is gathered and multiplied piece by
 * piece. */
static void conv_f64_product_task(void *argument, int64_t task)
{
    const f64_job *job = argument;
    const prn_conv *conv = job->conv;
    const int64_t cut = task % job->cuts, tile = task / job->cuts % job->tiles, rows = job->simd->rows;
    const int64_t group = task / (job->cuts * job->tiles) % conv->groups,
                  n = task / (job->cuts * job->tiles * conv->groups);
    const int64_t begin = tile * COLUMNS,
                  count = conv->out_spatial - begin < COLUMNS ? conv->out_spatial - begin : COLUMNS;
    const int64_t first = cut * job->blocks / job->cuts, last = (cut + 1) * job->blocks / job->cuts;
    const double *x =
        (const double *)conv->x->data + (n * conv->in_channels + group * conv->group_in) * conv->in_spatial;
    double *y =
        (double *)conv->y->data + (n * conv->out_channels + group * conv->group_out) * conv->out_spatial + begin;
    double panel[PIECE * COLUMNS] __attribute__((aligned(64)));
    for (int64_t from = 0; from < job->depth && !prn_cancelled(); from += PIECE) {
        const int64_t depths = job->depth - from < PIECE ? job->depth - from : PIECE;
        conv_f64_fill_panel(job, x, from, depths, begin, count, panel);
        for (int64_t block = first; block < last && !prn_cancelled(); block++) {
            const int64_t channel = block * rows, left = conv->group_out - channel;
            conv_f64_multiply_block(job, group * conv->group_out + channel, left < rows ? left : rows, from, depths,
                                    panel, y + channel * conv->out_spatial, count);
        }
    }
}

bool prn_conv_f64_supported(const prony_context *context)
{
    prn_conv conv;
    if (prn_conv_read(context, &conv) != PRONY_OK || (context->post_ops && context->post_ops->count > 0)) return false;
    return conv.batch > 0 && conv.out_channels > 0 && conv.group_in > 0 && conv.kernel_volume > 0;
}

prony_status prn_conv_f64_run(const prony_context *context)
{
    const prn_conv conv = prn_conv_kept(context);
    f64_job job = {.conv = &conv, .simd = conv_f64_simd_table(), .depth = conv.group_in * conv.kernel_volume};
    job.blocks = prn_ceil_div(conv.group_out, job.simd->rows);
    job.tiles = prn_ceil_div(conv.out_spatial, COLUMNS);
    const int64_t tasks = conv.batch * conv.groups * job.tiles;
    if (tasks == 0) return PRONY_OK;
    job.cuts = tasks < WANTED_TASKS ? prn_ceil_div(WANTED_TASKS, tasks) : 1;
    if (job.cuts > job.blocks) job.cuts = job.blocks;
    prn_parallel_tasks(context->threads, tasks * job.cuts, conv_f64_product_task, &job);
    return PRONY_OK;
}
