/* MaxPool of 8-bit codes, channels last: an output position is the largest of as many runs of channels as its window
 * has taps, which are read where they lie. */
#include "ops/pool/pool.h"

#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "ops/kernels/int8/int8_dot.h"
#include "ops/kernels/window/window.h"

enum { MOST_TAPS = 1024, TASK_BYTES = 1 << 15 };

typedef struct job {
    prn_window window;
    const uint8_t *x;
    uint8_t *y;
    int64_t channels, rows, rows_per_task; /* rows of output positions, of all images */
    bool is_signed;
} job;

static void pool_int8_row(const job *job, int64_t index)
{
    const prn_window *w = &job->window;
    const int64_t out_rows = w->out[0] * w->out[1], row = index % out_rows;
    const uint8_t *image = job->x + index / out_rows * prn_window_volume(w->in) * job->channels;
    const uint8_t *rows[MOST_TAPS], *tap[MOST_TAPS];
    int64_t row_count = 0;
    for (int64_t kz = 0; kz < w->kernel[0]; kz++) {
        for (int64_t ky = 0; ky < w->kernel[1]; ky++) {
            const int64_t start = prn_window_row(w, row, kz, ky);
            if (start >= 0) rows[row_count++] = image + start * job->channels;
        }
    }
    for (int64_t x = 0; x < w->out[2] && !prn_cancelled_at(x); x++) {
        const int64_t start = x * w->stride[2] - w->pad_begin[2];
        int64_t first, last, taps = 0;
        prn_window_clip(w, 2, start, &first, &last);
        for (int64_t r = 0; r < row_count; r++) {
            for (int64_t k = first; k < last; k++) tap[taps++] = rows[r] + (start + k * w->dilation[2]) * job->channels;
        }
        prn_qint8_dot_table()->largest(tap, taps, job->channels, job->is_signed,
                                       job->y + (index * w->out[2] + x) * job->channels);
    }
}

static void pool_int8_task(void *argument, int64_t task)
{
    const job *job = argument;
    const int64_t end = (task + 1) * job->rows_per_task;
    for (int64_t row = task * job->rows_per_task; row < end && row < job->rows && !prn_cancelled(); row++)
        pool_int8_row(job, row);
}

bool prn_pool_codes_fit(const prn_window *window)
{
    return prn_window_volume(window->kernel) <= MOST_TAPS;
}

void prn_pool_codes_layouts(const prony_context *context, prn_layout *in, prn_layout *out)
{
    (void)context;
    in[0] = out[0] = PRN_NHWC;
}

void prn_pool_codes_run(const prony_context *context, const prn_window *window)
{
    const prony_value *x = context->inputs[0];
    job job = {.window = *window,
               .x = x->data,
               .y = context->outputs[0]->data,
               .channels = x->shape.dim[1],
               .is_signed = x->dtype == PRONY_INT8};
    job.rows = x->shape.dim[0] * window->out[0] * window->out[1];
    job.rows_per_task = TASK_BYTES / (window->out[2] * job.channels * prn_window_volume(window->kernel)) + 1;
    prn_parallel_tasks(context->threads, prn_ceil_div(job.rows, job.rows_per_task), pool_int8_task, &job);
}
