/* The recurrence in double, for every float type: one batch item of one direction at a time, one step after the other.
 * Scratch holds the weights and each item's vectors in double. Invariant: an item is one task, so any number of threads
 * gives the same result. */
#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "ops/rnn/recurrent.h"

/* Offsets in scratch, in doubles. */
typedef struct places {
    uint64_t w, r, b, p, rows, total;
    uint64_t row; /* of one item: x, gates, h, c, temp */
} places;

static bool recurrent_reference_place(uint64_t *total, uint64_t *at, uint64_t count, uint64_t size)
{
    uint64_t elements;
    *at = *total;
    return prn_mul_u64(&elements, count, size) && prn_add_u64(total, *total, elements);
}

static bool find_places(const prn_recurrent *node, places *out)
{
    const uint64_t d = (uint64_t)node->directions, columns = (uint64_t)node->columns, hidden = (uint64_t)node->hidden;
    *out = (places){.row = (uint64_t)node->input + 2 * columns + 3 * hidden};
    return recurrent_reference_place(&out->total, &out->w, d * columns, (uint64_t)node->input) &&
           recurrent_reference_place(&out->total, &out->r, d * columns, hidden) &&
           recurrent_reference_place(&out->total, &out->b, node->b ? d : 0, 2 * columns) &&
           recurrent_reference_place(&out->total, &out->p, node->p ? d : 0, 3 * hidden) &&
           recurrent_reference_place(&out->total, &out->rows, d * (uint64_t)node->batch, out->row);
}

typedef struct reference_job {
    prn_recurrent node;
    places at;
    double *scratch;
} reference_job;

prony_status prn_recurrent_reference_prepare(const prony_context *context, prn_prepared *out)
{
    reference_job job = {0};
    PRN_TRY(prn_recurrent_describe(context, &job.node));
    if (!find_places(&job.node, &job.at) || job.at.total > INT64_MAX / sizeof(double))
        return prony_fail(context, PRONY_LIMIT, "the sequence is too large");
    out->scratch_bytes = (size_t)job.at.total * sizeof(double);
    return prn_prepared_keep(context, &job, sizeof job, out);
}

void prn_recurrent_product_f64(double *out, const double *r, const double *h, const double *rb, int64_t rows,
                               int64_t hidden)
{
    for (int64_t j = 0; j < rows; j++) {
        double sum = 0.0;
        for (int64_t i = 0; i < hidden; i++) sum += r[j * hidden + i] * h[i];
        out[j] = rb ? sum + rb[j] : sum;
    }
}

/* One row of elements of a value, to double or from it. */
static void recurrent_reference_load_row(const prony_value *value, int64_t at, double *to, int64_t n)
{
    prn_convert(to, PRONY_FLOAT64, (const char *)value->data + prony_dtype_bytes(value->dtype, at), value->dtype, n);
}

static void recurrent_reference_store_row(const prony_value *value, int64_t at, const double *from, int64_t n)
{
    prn_convert((char *)value->data + prony_dtype_bytes(value->dtype, at), value->dtype, from, PRONY_FLOAT64, n);
}

static void load_state(const prony_value *value, int64_t at, double *to, int64_t n)
{
    if (value) {
        recurrent_reference_load_row(value, at, to, n);
    } else {
        for (int64_t i = 0; i < n; i++) to[i] = 0.0;
    }
}

/* All steps of one sequence in one direction, in float64; beyond the sequence's length the output is 0 and the state
 * stays. */
static void run_item(void *argument, int64_t task)
{
    const reference_job *job = argument;
    const prn_recurrent *node = &job->node;
    const int64_t d = task / node->batch, b = task % node->batch, columns = node->columns, hidden = node->hidden;
    double *x = job->scratch + job->at.rows + (uint64_t)task * job->at.row, *gates = x + node->input,
           *h = gates + columns, *c = h + hidden, *temp = c + hidden;
    const double *w = job->scratch + job->at.w + d * columns * node->input;
    const double *bias = node->b ? job->scratch + job->at.b + d * 2 * columns : NULL;
    const prn_recurrent_row_f64 row = {.node = node,
                                       .direction = (int)d,
                                       .r = job->scratch + job->at.r + d * columns * hidden,
                                       .rb = bias ? bias + columns : NULL,
                                       .p = node->p ? job->scratch + job->at.p + d * 3 * hidden : NULL,
                                       .x = gates,
                                       .h = h,
                                       .c = c,
                                       .temp = temp};
    const int64_t state = d * node->state_direction + b * node->state_row;
    const int64_t length = node->lengths ? ((const int32_t *)node->lengths->data)[b] : node->steps;
    load_state(node->h0, state, h, hidden);
    load_state(node->c0, state, c, hidden);
    for (int64_t step = 0; step < node->steps && !prn_cancelled(); step++) {
        const int64_t t = node->reverse[d] ? node->steps - 1 - step : step;
        if (t < length) {
            recurrent_reference_load_row(node->x, t * node->x_step + b * node->x_row, x, node->input);
            prn_recurrent_product_f64(gates, w, x, bias, columns, node->input);
            node->cell->row_f64(&row);
        } else {
            for (int64_t i = 0; i < hidden; i++) temp[i] = 0.0;
        }
        if (node->y)
            recurrent_reference_store_row(node->y, t * node->y_step + d * node->y_direction + b * node->y_row,
                                          t < length ? h : temp, hidden);
    }
    if (node->yh) recurrent_reference_store_row(node->yh, state, h, hidden);
    if (node->yc) recurrent_reference_store_row(node->yc, state, c, hidden);
}

prony_status prn_recurrent_reference_run(const prony_context *context)
{
    reference_job job = *(const reference_job *)context->state;
    job.scratch = context->scratch;
    prn_recurrent_operands(context, &job.node);
    PRN_TRY(prn_recurrent_check_lengths(context, &job.node));
    const prn_recurrent *node = &job.node;
    if (node->batch == 0 || node->hidden == 0) return PRONY_OK;
    recurrent_reference_load_row(node->w, 0, job.scratch + job.at.w, prony_shape_numel(&node->w->shape));
    recurrent_reference_load_row(node->r, 0, job.scratch + job.at.r, prony_shape_numel(&node->r->shape));
    if (node->b) recurrent_reference_load_row(node->b, 0, job.scratch + job.at.b, prony_shape_numel(&node->b->shape));
    if (node->p) recurrent_reference_load_row(node->p, 0, job.scratch + job.at.p, prony_shape_numel(&node->p->shape));
    prn_parallel_tasks(context->threads, node->directions * node->batch, run_item, &job);
    return PRONY_OK;
}
