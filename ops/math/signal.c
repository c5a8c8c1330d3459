/* DFT (forward, inverse, of real signals and back to real ones) and STFT.
 *
 * Both are a number of lines, each loaded as complex numbers, transformed in double and stored: a line is one signal,
 * or one frame of one. The native kernel transforms as fourier.h does, the reference sums as the definition says.
 *
 *   scratch: tables | per task: a line, working space
 *
 * Invariant: lines are independent, so any number of threads gives the same result. */
#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "ops/kernels/vector/elementwise.h"
#include "ops/kernels/vector/number.h"
#include "ops/kernels/gemm/matmul.h"
#include "ops/math/fourier.h"

typedef struct signal_params {
    int64_t axis, inverse, onesided;
} signal_params;

typedef struct transform {
    const prony_value *x, *y, *window;
    int64_t length; /* N of the transform */
    bool inverse, to_real;
    int64_t parts;                          /* 1: real input, 2: complex */
    int64_t lines, samples, bins;           /* samples of a line that are there, bins that are wanted */
    int64_t outer_step, inner, sample_step; /* line l starts at l / inner outer_step + l % inner parts, in elements */
    int64_t y_outer_step, y_parts, y_bin_step; /* the same of the output */
    prony_shape shape;                         /* of the output; rank -1 while it is unknown */
} transform;

enum { MOST_TASKS = 16, TASK_LENGTHS = 1 << 22 };

/* ---- describing a node */

/* Scalar input `input`, or `fallback` where it is omitted. */
static prony_status signal_read_scalar(const prony_context *context, size_t input, int64_t fallback, int64_t *out,
                                       bool *known)
{
    const prony_value *value = prn_input(context, input);
    size_t count;
    bool here;
    *out = fallback;
    PRN_TRY(prn_input_ints(context, input, out, 1, &count, &here));
    if (value && here && count != 1)
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is not a scalar", input);
    *known = *known && here;
    return PRONY_OK;
}

static prony_status check_length(const prony_context *context, int64_t length)
{
    if (length > 0 && length <= PRN_FOURIER_MAX_LENGTH) return PRONY_OK;
    return prony_fail(context, PRONY_OUT_OF_RANGE, "the transform's length is %lld", (long long)length);
}

static prony_status signal_check_sizes(const prony_context *context, const prony_shape *y)
{
    char text[PRN_SHAPE_TEXT_BYTES];
    if (prn_matmul_countable(&context->inputs[0]->shape) && prn_matmul_countable(y)) return PRONY_OK;
    return prony_fail(context, PRONY_LIMIT, "the output %s is too large", prn_shape_text(y, text));
}

/* Axis, length, bins and strides of a DFT; the shape is unknown while axis or length have no data. A one-sided inverse
 * makes real numbers. */
static prony_status describe_dft(const prony_context *context, transform *out)
{
    const signal_params *params = context->params;
    const prony_value *x = context->inputs[0];
    const int rank = x->shape.rank;
    bool known = true;
    int64_t axis = params->axis;
    *out = (transform){.x = x, .y = context->outputs[0], .shape = prn_shape_unknown()};
    if (rank < 2) return PRONY_OK; /* counted before anything is known of the input */
    if (context->node->opset >= 20) PRN_TRY(signal_read_scalar(context, 2, -2, &axis, &known));
    *out = (transform){.x = x,
                       .y = context->outputs[0],
                       .inverse = params->inverse != 0,
                       .to_real = params->inverse && params->onesided,
                       .parts = x->shape.dim[rank - 1],
                       .shape = prn_shape_unknown()};
    if (!known) return PRONY_OK;
    if (!prn_axis_normalize(&axis, rank) || axis == rank - 1)
        return prony_fail(context, PRONY_OUT_OF_RANGE, "axis %lld is not a signal axis of rank %d", (long long)axis,
                          rank);
    out->samples = x->shape.dim[axis];
    PRN_TRY(signal_read_scalar(context, 1, out->to_real ? 2 * (out->samples - 1) : out->samples, &out->length, &known));
    if (!known) return PRONY_OK;
    PRN_TRY(check_length(context, out->length));
    out->bins = params->onesided && !out->inverse ? out->length / 2 + 1 : out->length;
    out->y_parts = out->to_real ? 1 : 2;
    out->shape = x->shape;
    out->shape.dim[axis] = out->bins;
    out->shape.dim[rank - 1] = out->y_parts;
    PRN_TRY(signal_check_sizes(context, &out->shape));
    out->inner = prn_shape_count(&x->shape, (int)axis + 1, rank - 1);
    out->lines = prn_shape_count(&x->shape, 0, (int)axis) * out->inner;
    out->sample_step = out->inner * out->parts;
    out->outer_step = out->samples * out->sample_step;
    out->y_bin_step = out->inner * out->y_parts;
    out->y_outer_step = out->bins * out->y_bin_step;
    return PRONY_OK;
}

/* A frame is a line of its own. */
static prony_status describe_stft(const prony_context *context, transform *out)
{
    const prony_value *x = context->inputs[0], *window = prn_input(context, 2);
    const int64_t signal = x->shape.dim[1], batch = x->shape.dim[0];
    bool known = true;
    int64_t step;
    *out = (transform){.x = x,
                       .y = context->outputs[0],
                       .window = window,
                       .parts = x->shape.rank == 3 ? x->shape.dim[2] : 1,
                       .shape = prn_shape_unknown()};
    PRN_TRY(signal_read_scalar(context, 1, 0, &step, &known));
    PRN_TRY(signal_read_scalar(context, 3, window ? window->shape.dim[0] : signal, &out->length, &known));
    if (!known) return PRONY_OK;
    PRN_TRY(check_length(context, out->length));
    if (step < 1) return prony_fail(context, PRONY_OUT_OF_RANGE, "frame_step is %lld", (long long)step);
    if (out->length > signal) {
        return prony_fail(context, PRONY_OUT_OF_RANGE, "frames of %lld samples do not fit a signal of %lld",
                          (long long)out->length, (long long)signal);
    }
    const int64_t frames = (signal - out->length) / step + 1;
    out->samples = window && window->shape.dim[0] < out->length ? window->shape.dim[0] : out->length;
    out->bins = ((const signal_params *)context->params)->onesided ? out->length / 2 + 1 : out->length;
    out->shape = prn_shape_make(4, (const int64_t[]){batch, frames, out->bins, 2});
    PRN_TRY(signal_check_sizes(context, &out->shape));
    out->lines = batch * frames;
    out->inner = frames;
    out->outer_step = signal * out->parts;
    out->sample_step = out->parts;
    out->y_parts = out->y_bin_step = 2;
    out->y_outer_step = frames * out->bins * 2;
    return PRONY_OK;
}

typedef enum transform_kind { DFT, STFT } transform_kind;

static bool is_stft(const prony_context *context)
{
    return *(const transform_kind *)prn_variant(context) == STFT;
}

static prony_status signal_describe(const prony_context *context, transform *out)
{
    return is_stft(context) ? describe_stft(context, out) : describe_dft(context, out);
}

/* ---- lines */

typedef struct line_job {
    transform t;
    prn_fourier plan;
    bool direct;
    int64_t tasks, task_count; /* how many, and complex numbers of each */
    int64_t frame_step;        /* STFT; else 0 */
    prn_complex *tables, *lines;
} line_job;

static void load_line(const line_job *job, int64_t line, prn_complex *to)
{
    const transform *t = &job->t;
    const int64_t within = line % t->inner * t->parts * (job->frame_step ? job->frame_step : 1);
    const int64_t first = line / t->inner * t->outer_step + within;
    int64_t wanted = t->samples < t->length ? t->samples : t->length;
    if (t->to_real && wanted > t->length / 2 + 1) wanted = t->length / 2 + 1;
    for (int64_t n = 0; n < wanted && !prn_cancelled_at(n); n++) {
        const int64_t at = first + n * t->sample_step;
        const double factor = t->window ? prn_get_f64(t->window->data, t->window->dtype, n) : 1.0;
        to[n].re = factor * prn_get_f64(t->x->data, t->x->dtype, at);
        to[n].im = t->parts == 2 ? factor * prn_get_f64(t->x->data, t->x->dtype, at + 1) : 0.0;
    }
    for (int64_t n = wanted; n < t->length && !prn_cancelled_at(n); n++) to[n] = (prn_complex){0.0, 0.0};
    /* Half a spectrum stands for the whole of a real signal's. */
    for (int64_t n = t->length / 2 + 1; t->to_real && n < t->length && !prn_cancelled_at(n); n++)
        to[n] = (prn_complex){to[t->length - n].re, -to[t->length - n].im};
}

static void store_line(const line_job *job, int64_t line, const prn_complex *from)
{
    const transform *t = &job->t;
    const int64_t within = line % t->inner * (job->frame_step ? t->bins * 2 : t->y_parts);
    const int64_t first = line / t->inner * t->y_outer_step + within;
    const double scale = t->inverse ? (double)t->length : 1.0;
    for (int64_t k = 0; k < t->bins && !prn_cancelled_at(k); k++) {
        const int64_t at = first + k * t->y_bin_step;
        prn_put_f64(t->y->data, t->y->dtype, at, from[k].re / scale);
        if (t->y_parts == 2) prn_put_f64(t->y->data, t->y->dtype, at + 1, from[k].im / scale);
    }
}

/* roots: exp(-2 pi i k / N) for every k. */
static void sum_directly(const transform *t, const prn_complex *roots, const prn_complex *x, prn_complex *y)
{
    const double sign = t->inverse ? -1.0 : 1.0;
    for (int64_t k = 0; k < t->bins && !prn_cancelled(); k++) {
        prn_complex sum = {0.0, 0.0};
        for (int64_t n = 0, turn = 0; n < t->length && !prn_cancelled_at(n); n++, turn = (turn + k) % t->length) {
            sum.re += x[n].re * roots[turn].re - sign * x[n].im * roots[turn].im;
            sum.im += sign * x[n].re * roots[turn].im + x[n].im * roots[turn].re;
        }
        y[k] = sum;
    }
}

static void run_lines(void *argument, int64_t task)
{
    const line_job *job = argument;
    prn_complex *x = job->lines + task * job->task_count, *work = x + job->t.length;
    for (int64_t line = task; line < job->t.lines && !prn_cancelled(); line += job->tasks) {
        load_line(job, line, x);
        if (job->direct) {
            sum_directly(&job->t, job->tables, x, work);
        } else {
            prn_fourier_run(&job->plan, job->t.inverse, x, work);
        }
        store_line(job, line, job->direct ? work : x);
    }
}

/* Returns how many complex numbers of scratch the job takes. */
static int64_t signal_lay_out(line_job *job, prn_complex *scratch)
{
    const int64_t length = job->t.length, fit = TASK_LENGTHS / length + 1;
    const int64_t most = fit < MOST_TASKS ? fit : MOST_TASKS;
    const int64_t tables = job->direct ? length : prn_fourier_table_count(length);
    job->tasks = job->t.lines < most ? job->t.lines : most;
    job->task_count = length + (job->direct ? length : prn_fourier_work_count(length));
    job->tables = scratch;
    job->lines = scratch ? scratch + tables : NULL;
    return tables + job->tasks * job->task_count;
}

static prony_status signal_prepare(const prony_context *context, prn_prepared *out, bool direct)
{
    line_job job = {.direct = direct};
    PRN_TRY(signal_describe(context, &job.t));
    if (job.t.shape.rank < 0) return prony_fail(context, PRONY_INTERNAL, "the length is unknown");
    if (job.t.lines > 0) out->scratch_bytes = (size_t)signal_lay_out(&job, NULL) * sizeof(prn_complex);
    return PRONY_OK;
}

static prony_status signal_run(const prony_context *context, bool direct)
{
    line_job job = {.direct = direct};
    bool known = true;
    PRN_TRY(signal_describe(context, &job.t));
    if (is_stft(context)) PRN_TRY(signal_read_scalar(context, 1, 0, &job.frame_step, &known));
    if (job.t.lines == 0) return PRONY_OK;
    signal_lay_out(&job, context->scratch);
    if (direct) {
        for (int64_t k = 0; k < job.t.length && !prn_cancelled_at(k); k++) {
            const double angle = 2.0 * M_PI * (double)k / (double)job.t.length;
            job.tables[k] = (prn_complex){cos(angle), -sin(angle)};
        }
    } else {
        job.plan = prn_fourier_make(job.t.length, job.tables);
    }
    prn_parallel_tasks(context->threads, job.tasks, run_lines, &job);
    return PRONY_OK;
}

static prony_status signal_prepare_native(const prony_context *context, prn_prepared *out)
{
    return signal_prepare(context, out, false);
}

static prony_status signal_run_native(const prony_context *context)
{
    return signal_run(context, false);
}

static prony_status signal_prepare_reference(const prony_context *context, prn_prepared *out)
{
    return signal_prepare(context, out, true);
}

static prony_status signal_run_reference(const prony_context *context)
{
    return signal_run(context, true);
}

/* ---- inference and cost */

static prony_status signal_infer(const prony_context *context)
{
    const prony_value *x = context->inputs[0];
    const bool stft = is_stft(context);
    transform t;
    char text[PRN_SHAPE_TEXT_BYTES];
    PRN_TRY(prn_check_type(context, 0, PRN_TYPES_FLOAT));
    PRN_TRY(prn_check_rank(context, 0, 2, stft ? 3 : PRONY_MAX_RANK));
    const int64_t last = x->shape.dim[x->shape.rank - 1];
    if ((!stft || x->shape.rank == 3) && last != 1 && last != 2) {
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "input 0 is %s, wanted 1 or 2 numbers along the last axis",
                          prn_value_text(x, text));
    }
    if (stft) {
        PRN_TRY(prn_check_type(context, 2, PRN_TYPE(x->dtype)));
        PRN_TRY(prn_check_rank(context, 2, 1, 1));
    }
    PRN_TRY(signal_describe(context, &t));
    prn_set_output(context, 0, x->dtype, &t.shape);
    return PRONY_OK;
}

static prony_status signal_cost(const prony_context *context, prony_cost *cost)
{
    transform t;
    PRN_TRY(signal_describe(context, &t));
    const uint64_t lines = (uint64_t)t.lines;
    prn_cost_fact(cost, "output_elements", (int64_t)prn_output_elements(context));
    if (t.shape.rank < 0) return PRONY_OK;
    prn_cost_fact(cost, "rows", t.lines);
    prn_cost_fact(cost, "axis_length", t.length);
    PRN_TRY(prn_cost_elementwise(context, cost, lines, prn_fourier_flops(t.length, t.parts == 1 || t.to_real), 0));
    if (t.window) PRN_TRY(prn_cost_elementwise(context, cost, lines, (uint64_t)(t.samples * t.parts), 0));
    return prn_cost_elementwise(context, cost, t.inverse ? prn_output_elements(context) : 0, 1, 1);
}

static const prn_param dft_attributes[] = {
    PRN_INT(signal_params, axis, 1), PRN_INT(signal_params, inverse, 0), PRN_INT(signal_params, onesided, 0), {0}};
static const prn_param dft_20_attributes[] = {
    PRN_INT(signal_params, inverse, 0), PRN_INT(signal_params, onesided, 0), {0}};
static const prn_param stft_attributes[] = {PRN_INT(signal_params, onesided, 1), {0}};

static const prn_kernel dft_kernels[] = {
    {.name = "dft_native", .backend = "native", .prepare = signal_prepare_native, .run = signal_run_native},
    {.name = "dft_reference", .backend = "reference", .prepare = signal_prepare_reference, .run = signal_run_reference},
    {0}};
static const prn_kernel stft_kernels[] = {
    {.name = "stft_native", .backend = "native", .prepare = signal_prepare_native, .run = signal_run_native},
    {.name = "stft_reference",
     .backend = "reference",
     .prepare = signal_prepare_reference,
     .run = signal_run_reference},
    {0}};

#define DFT_TEXT                                                                                                       \
    "5 r N log2(N), log2 rounded up, half of it for a real signal; inverse + n (the division), which is special"

// clang-format off
const prn_op prn_ops_signal[] = {
    {.name = "DFT", .since_opset = 17, .inputs = {1, 2}, .flags = PRN_OP_BY_VALUE, .non_weight_inputs = 0xe,
     .params = dft_attributes, .params_bytes = sizeof(signal_params), .variant = &(const transform_kind){DFT},
     .infer = signal_infer, .cost = signal_cost, .cost_text = DFT_TEXT, .kernels = dft_kernels},
    {.name = "DFT", .since_opset = 20, .inputs = {1, 3}, .flags = PRN_OP_BY_VALUE, .non_weight_inputs = 0xe,
     .params = dft_20_attributes, .params_bytes = sizeof(signal_params), .variant = &(const transform_kind){DFT},
     .infer = signal_infer, .cost = signal_cost, .cost_text = DFT_TEXT, .kernels = dft_kernels},
    {.name = "STFT", .since_opset = 17, .inputs = {2, 4}, .flags = PRN_OP_BY_VALUE, .non_weight_inputs = 0xe,
     .params = stft_attributes, .params_bytes = sizeof(signal_params), .variant = &(const transform_kind){STFT},
     .infer = signal_infer, .cost = signal_cost,
     .cost_text = "r frames: 5 r N log2(N), log2 rounded up, half of it for a real signal; + r N per part with a window",
     .kernels = stft_kernels},
    {0}};
// clang-format on
