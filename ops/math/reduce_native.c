/* Reductions in blocks: a chain of kept and reduced axes is walked in rows of its last axis. If that is reduced, a
 * row is folded into its output (along); where it is kept, rows are folded into strips of neighbouring outputs.
 * float32 has the vector kernels of vec.h; everything else is loaded as doubles or 64-bit integers for the loops of
 * fold.h. Invariant: an output or a strip is one task, whose order the shapes alone decide. */
#include "base/threads/cancel.h"
#include "base/integers.h"
#include "ops/math/reduce.h"

#include "base/threads/parallel.h"
#include "ops/op.h"
#include "ops/kernels/vector/element_rows.h"
#include "ops/kernels/vector/fold.h"
#include "ops/kernels/vector/number.h"
#include "ops/kernels/vector/vec.h"

#include <string.h>

enum {
    STRIP = PRN_BLOCK,
    ROWS_PER_PART = 64,
    LOOK_UP = 1 << 20,
    SHORT_ROW = STRIP / 4,
    MANY_ROWS = 2 * STRIP,
    SHORT_SUMS = 1024
};

typedef struct job {
    const prn_reduction *reduction;
    prn_chain outer;      /* without the last axis */
    int64_t row;          /* extent of the last axis */
    int64_t combinations; /* rows behind an output or a strip */
    int64_t strips;       /* of a row; along: 0 */
    const prn_vec_table *vec;
    const prn_fold_table *folds;
} job;

static prn_fold fold_of(prn_reduce_kind kind)
{
    switch (kind) {
    case PRN_REDUCE_MAX:
        return PRN_FOLD_MAX;
    case PRN_REDUCE_MIN:
        return PRN_FOLD_MIN;
    case PRN_REDUCE_PROD:
        return PRN_FOLD_MUL;
    case PRN_REDUCE_L1:
        return PRN_FOLD_ABS;
    case PRN_REDUCE_L2:
    case PRN_REDUCE_SUM_SQUARE:
        return PRN_FOLD_SQUARE;
    default:
        return PRN_FOLD_ADD;
    }
}

static double start_f64(prn_fold fold)
{
    if (fold == PRN_FOLD_MAX || fold == PRN_FOLD_MIN)
        return fold == PRN_FOLD_MAX ? -(double)INFINITY : (double)INFINITY;
    return fold == PRN_FOLD_MUL;
}

static int64_t start_i64(prn_fold fold)
{
    if (fold == PRN_FOLD_MAX || fold == PRN_FOLD_MIN) return fold == PRN_FOLD_MAX ? INT64_MIN : INT64_MAX;
    return fold == PRN_FOLD_MUL;
}

/* Neighbouring outputs whose elements are one row each need no walk. */
static void reduce_native_start(prn_cursor *cursor, const job *job, int64_t output)
{
    if (job->combinations == 1 && job->strips == 0)
        cursor->offset = output;
    else
        prn_cursor_start(cursor, &job->outer, output);
}

static void reduce_native_next(prn_cursor *cursor, const job *job)
{
    if (job->combinations > 1) prn_cursor_next(cursor, &job->outer);
}

/* Asked in front of row `c`: of every long one, of some of the short ones. */
static bool reduce_native_cancelled(const job *job, int64_t c)
{
    return job->row >= 1024 ? prn_cancelled() : prn_cancelled_at(c);
}

/* ---- integers in their own type, for results of the same width */

static bool stays_narrow(const prn_reduction *reduction, prn_row_op *op)
{
    const prn_reduce_kind kind = reduction->kind;
    const bool extreme = kind == PRN_REDUCE_MAX || kind == PRN_REDUCE_MIN;
    if (extreme)
        *op = kind == PRN_REDUCE_MAX ? PRN_ROW_MAX : PRN_ROW_MIN;
    else
        *op = kind == PRN_REDUCE_PROD ? PRN_ROW_MUL : PRN_ROW_ADD;
    return (PRN_TYPE(reduction->x->dtype) & PRN_TYPES_INTEGER) &&
           (extreme || kind == PRN_REDUCE_PROD || kind == PRN_REDUCE_SUM);
}

/* The sum begins with the first element. */
static void output_narrow(const job *job, int64_t output, prn_fold fold)
{
    const prony_value *x = job->reduction->x, *y = job->reduction->y;
    const prony_dtype dtype = x->dtype;
    const size_t width = prony_dtype_bytes(dtype, 1);
    char *sum = (char *)y->data + (size_t)output * width;
    prn_cursor cursor;
    reduce_native_start(&cursor, job, output);
    for (int64_t c = 0; c < job->combinations && !reduce_native_cancelled(job, c);
         c++, reduce_native_next(&cursor, job)) {
        const char *row = (const char *)x->data + (size_t)(cursor.offset * job->row) * width;
        int64_t i = 0;
        if (c == 0) memcpy(sum, row, width), i = 1;
        for (int64_t n; i < job->row && (i < LOOK_UP || !prn_cancelled()); i += n) {
            n = job->row - i < LOOK_UP ? job->row - i : LOOK_UP;
            job->folds->row_narrow[fold][dtype](sum, row + (size_t)i * width, n);
        }
    }
}

static void strip_narrow(const job *job, int64_t output, int64_t column, int64_t n, prn_row_op op)
{
    const prony_value *x = job->reduction->x, *y = job->reduction->y;
    const prony_dtype dtype = x->dtype;
    void *sum = (char *)y->data + prony_dtype_bytes(dtype, output * job->row + column);
    prn_cursor cursor;
    reduce_native_start(&cursor, job, output);
    for (int64_t c = 0; c < job->combinations && !prn_cancelled_at(c); c++, reduce_native_next(&cursor, job)) {
        const void *row = prn_block_at(x->data, dtype, cursor.offset * job->row + column);
        if (c == 0)
            memcpy(sum, row, prony_dtype_bytes(dtype, n));
        else
            prn_element_row(op, dtype, sum, sum, row, n, 1, 1);
    }
}

/* ---- integers in 64 bits: unsigned values of that size compare as signed ones do once the top bit is turned over */

static bool is_turned(const job *job)
{
    const prn_reduce_kind kind = job->reduction->kind;
    return job->reduction->x->dtype == PRONY_UINT64 && (kind == PRN_REDUCE_MAX || kind == PRN_REDUCE_MIN);
}

static void reduce_native_load_i64(const job *job, int64_t *block, int64_t first, int64_t n)
{
    const prony_value *x = job->reduction->x;
    prn_load_i64(block, x->data, x->dtype, first, n);
    for (int64_t i = 0; i < n && is_turned(job); i++) block[i] ^= INT64_MIN;
}

static void store_i64(const job *job, int64_t *sum, int64_t first, int64_t n)
{
    const prn_reduction *reduction = job->reduction;
    const prony_dtype dtype = reduction->y->dtype;
    for (int64_t i = 0; i < n && is_turned(job); i++) sum[i] ^= INT64_MIN;
    for (int64_t i = 0; i < n && reduction->kind == PRN_REDUCE_MEAN; i++) {
        sum[i] = dtype == PRONY_UINT64 ? (int64_t)((uint64_t)sum[i] / (uint64_t)reduction->count)
                                       : sum[i] / reduction->count;
    }
    prn_store_i64(reduction->y->data, dtype, first, sum, n);
}

/* The absolute value of an unsigned number is itself. */
static prn_fold integer_fold(const job *job)
{
    const prn_fold fold = fold_of(job->reduction->kind);
    return fold == PRN_FOLD_ABS && job->reduction->x->dtype == PRONY_UINT64 ? PRN_FOLD_ADD : fold;
}

static void output_i64(const job *job, int64_t output)
{
    const prn_fold fold = integer_fold(job);
    int64_t block[PRN_BLOCK], sum = start_i64(fold);
    prn_cursor cursor;
    reduce_native_start(&cursor, job, output);
    for (int64_t c = 0; c < job->combinations && !prn_cancelled_at(c); c++, reduce_native_next(&cursor, job)) {
        for (int64_t i = 0, n; i < job->row && !prn_cancelled(); i += n) {
            n = job->row - i < PRN_BLOCK ? job->row - i : PRN_BLOCK;
            reduce_native_load_i64(job, block, cursor.offset * job->row + i, n);
            sum = job->folds->row_i64[fold](sum, block, n);
        }
    }
    store_i64(job, &sum, output, 1);
}

static void strip_i64(const job *job, int64_t output, int64_t column, int64_t n)
{
    const prn_fold fold = integer_fold(job);
    int64_t block[STRIP], sum[STRIP];
    prn_cursor cursor;
    reduce_native_start(&cursor, job, output);
    for (int64_t i = 0; i < n; i++) sum[i] = start_i64(fold);
    for (int64_t c = 0; c < job->combinations && !prn_cancelled_at(c); c++, reduce_native_next(&cursor, job)) {
        reduce_native_load_i64(job, block, cursor.offset * job->row + column, n);
        job->folds->columns_i64[fold](sum, block, n);
    }
    store_i64(job, sum, output * job->row + column, n);
}

/* ---- doubles */

/* Doubles that are not to be changed are read where they are. */
static const double *reduce_native_load_f64(const job *job, double *block, int64_t first, int64_t n, const double *top)
{
    const prony_value *x = job->reduction->x;
    if (x->dtype == PRONY_FLOAT64 && !top) return (const double *)x->data + first;
    prn_load_f64(block, x->data, x->dtype, first, n);
    return block;
}

static double finite_or_zero(double top)
{
    return isinf(top) ? 0.0 : top;
}

/* exp(x - top), if `exponentials`. */
static void take_exponentials(double *block, const double *top, int64_t step, int64_t n, bool exponentials)
{
    for (int64_t i = 0; i < n && exponentials; i++) block[i] = exp(block[i] - top[i * step]);
}

static double fold_output_f64(const job *job, int64_t output, prn_fold fold, const double *top)
{
    double block[PRN_BLOCK], sum = start_f64(fold);
    prn_cursor cursor;
    reduce_native_start(&cursor, job, output);
    for (int64_t c = 0; c < job->combinations && !prn_cancelled_at(c); c++, reduce_native_next(&cursor, job)) {
        for (int64_t i = 0, n; i < job->row && !prn_cancelled(); i += n) {
            n = job->row - i < PRN_BLOCK ? job->row - i : PRN_BLOCK;
            const double *x = reduce_native_load_f64(job, block, cursor.offset * job->row + i, n, top);
            take_exponentials(block, top, 0, n, top);
            sum = job->folds->row_f64[fold](sum, x, n);
        }
    }
    return sum;
}

static void output_f64(const job *job, int64_t output)
{
    const prn_reduction *reduction = job->reduction;
    const bool exponentials = reduction->kind == PRN_REDUCE_LOG_SUM_EXP;
    double top = exponentials ? finite_or_zero(fold_output_f64(job, output, PRN_FOLD_MAX, NULL)) : 0.0;
    const double sum = fold_output_f64(job, output, fold_of(reduction->kind), exponentials ? &top : NULL);
    prn_put_f64(reduction->y->data, reduction->y->dtype, output,
                prn_reduce_finish(reduction->kind, sum, (double)reduction->count, top));
}

static void fold_strip_f64(const job *job, int64_t output, int64_t column, int64_t n, prn_fold fold, const double *top,
                           double *sum)
{
    double block[STRIP];
    prn_cursor cursor;
    reduce_native_start(&cursor, job, output);
    for (int64_t i = 0; i < n; i++) sum[i] = start_f64(fold);
    for (int64_t c = 0; c < job->combinations && !prn_cancelled_at(c); c++, reduce_native_next(&cursor, job)) {
        const double *x = reduce_native_load_f64(job, block, cursor.offset * job->row + column, n, top);
        take_exponentials(block, top, 1, n, top);
        job->folds->columns_f64[fold](sum, x, n);
    }
}

static void strip_f64(const job *job, int64_t output, int64_t column, int64_t n)
{
    const prn_reduction *reduction = job->reduction;
    const bool exponentials = reduction->kind == PRN_REDUCE_LOG_SUM_EXP;
    double top[STRIP] = {0.0}, sum[STRIP];
    if (exponentials) {
        fold_strip_f64(job, output, column, n, PRN_FOLD_MAX, NULL, top);
        for (int64_t i = 0; i < n; i++) top[i] = finite_or_zero(top[i]);
    }
    fold_strip_f64(job, output, column, n, fold_of(reduction->kind), exponentials ? top : NULL, sum);
    for (int64_t i = 0; i < n; i++) {
        sum[i] = prn_reduce_finish(reduction->kind, sum[i], (double)reduction->count, top[i]);
    }
    prn_store_f64(reduction->y->data, reduction->y->dtype, output * job->row + column, sum, n);
}

/* ---- float32: everything but products */

static double exponentials_f32(const job *job, const float *x, float top)
{
    float block[PRN_BLOCK];
    double sum = 0.0;
    for (int64_t i = 0, n; i < job->row && !prn_cancelled(); i += n) {
        n = job->row - i < PRN_BLOCK ? job->row - i : PRN_BLOCK;
        sum += job->vec->exp_sum(block, x + i, n, top);
    }
    return sum;
}

/* Folds one output's rows in a fixed order, in float64; `top` is the largest element, for LogSumExp. NaN wins in Max
 * and Min. */
static double fold_output_f32(const job *job, int64_t output, prn_reduce_kind kind, float top)
{
    const prn_vec_table *vec = job->vec;
    double sum = start_f64(fold_of(kind)), extreme;
    prn_cursor cursor;
    reduce_native_start(&cursor, job, output);
    for (int64_t c = 0; c < job->combinations && !reduce_native_cancelled(job, c);
         c++, reduce_native_next(&cursor, job)) {
        const float *x = (const float *)job->reduction->x->data + cursor.offset * job->row;
        switch (kind) {
        case PRN_REDUCE_MAX:
            extreme = (double)vec->max(x, job->row);
            sum = extreme > sum || extreme != extreme ? extreme : sum;
            break;
        case PRN_REDUCE_MIN:
            extreme = (double)vec->min(x, job->row);
            sum = extreme < sum || extreme != extreme ? extreme : sum;
            break;
        case PRN_REDUCE_L1:
            sum += vec->sum_abs(x, job->row);
            break;
        case PRN_REDUCE_L2:
        case PRN_REDUCE_SUM_SQUARE:
            sum += vec->sum_squares(x, job->row);
            break;
        case PRN_REDUCE_LOG_SUM_EXP:
            sum += exponentials_f32(job, x, top);
            break;
        default:
            sum += vec->sum(x, job->row);
            break;
        }
    }
    return sum;
}

static void output_f32(const job *job, int64_t output)
{
    const prn_reduction *reduction = job->reduction;
    float *y = (float *)reduction->y->data + output;
    double top = 0.0;
    if (reduction->kind == PRN_REDUCE_LOG_SUM_EXP) top = fold_output_f32(job, output, PRN_REDUCE_MAX, 0.0f);
    if (isinf(top)) { /* the exponentials are those of what is at most the largest */
        *y = (float)top;
        return;
    }
    const double sum = fold_output_f32(job, output, reduction->kind, (float)top);
    *y = (float)prn_reduce_finish(reduction->kind, sum, (double)reduction->count, top);
}

/* The contribution of a row to the columns' sums. */
static const float *terms_f32(const job *job, prn_reduce_kind kind, const float *x, const float *top, float *terms,
                              int64_t n)
{
    const prn_vec_table *vec = job->vec;
    switch (kind) {
    case PRN_REDUCE_L1:
        vec->map[PRN_MAP_ABS](terms, x, n, 0.0f, 0.0f);
        return terms;
    case PRN_REDUCE_L2:
    case PRN_REDUCE_SUM_SQUARE:
        vec->map[PRN_MAP_SQUARE](terms, x, n, 0.0f, 0.0f);
        return terms;
    case PRN_REDUCE_LOG_SUM_EXP:
        vec->vv[PRN_BINARY_SUB](terms, x, top, n);
        vec->map[PRN_MAP_EXP](terms, terms, n, 0.0f, 0.0f);
        return terms;
    default:
        return x;
    }
}

/* True if the rows behind a strip lie one behind the other: the strip is the whole row, and one axis is reduced. */
static bool lie_in_one_run(const job *job, int64_t n)
{
    const int last = job->outer.rank - 1;
    return n == job->row && last >= 0 && job->outer.reduced[last] && job->outer.dim[last] == job->combinations;
}

/* The extremes of columns so few that several rows are a block; of which rows they are makes no difference. */
static void extremes_of_short_rows(const job *job, prn_binary_id step, const float *x, int64_t n, int64_t rows,
                                   float *y)
{
    const prn_vec_table *vec = job->vec;
    const int64_t some = STRIP / n, block = some * n, all = rows * n;
    float extremes[STRIP];
    vec->map[PRN_MAP_COPY](extremes, x, block, 0.0f, 0.0f);
    for (int64_t i = block; i < all && !prn_cancelled_at(i / block); i += block)
        vec->vv[step](extremes, extremes, x + i, prn_least(all - i, block));
    vec->map[PRN_MAP_COPY](y, extremes, n, 0.0f, 0.0f);
    for (int64_t r = 1; r < some; r++) vec->vv[step](y, y, extremes + r * n, n);
}

/* Long columns are summed in parts, so that rounding errors grow with the part and not with the column. */
static void fold_strip_f32(const job *job, int64_t output, int64_t column, int64_t n, prn_reduce_kind kind,
                           const float *top, float *y)
{
    const prn_vec_table *vec = job->vec;
    const prn_binary_id step = kind == PRN_REDUCE_MAX   ? PRN_BINARY_MAX
                               : kind == PRN_REDUCE_MIN ? PRN_BINARY_MIN
                                                        : PRN_BINARY_ADD;
    const bool plain = kind == PRN_REDUCE_SUM || kind == PRN_REDUCE_MEAN || kind == PRN_REDUCE_LOG_SUM;
    const float *x = (const float *)job->reduction->x->data + column;
    float part[STRIP], terms[STRIP];
    prn_cursor cursor;
    reduce_native_start(&cursor, job, output);
    if (step != PRN_BINARY_ADD && n <= SHORT_ROW && job->combinations >= MANY_ROWS && lie_in_one_run(job, n)) {
        extremes_of_short_rows(job, step, x + cursor.offset * job->row, n, job->combinations, y);
        return;
    }
    for (int64_t first = 0; first < job->combinations && !prn_cancelled(); first += ROWS_PER_PART) {
        const int64_t left = job->combinations - first, rows = left < ROWS_PER_PART ? left : ROWS_PER_PART;
        float *to = first == 0 ? y : part;
        int64_t r = 0;
        while (r < rows) {
            if (r > 0 && r + 4 <= rows && plain) {
                const float *four[4];
                for (int k = 0; k < 4; k++, reduce_native_next(&cursor, job)) four[k] = x + cursor.offset * job->row;
                vec->add_four(to, four, n);
                r += 4;
                continue;
            }
            const float *row = terms_f32(job, kind, x + cursor.offset * job->row, top, terms, n);
            if (r == 0) {
                vec->map[PRN_MAP_COPY](to, row, n, 0.0f, 0.0f);
            } else {
                vec->vv[step](to, to, row, n);
            }
            reduce_native_next(&cursor, job);
            r++;
        }
        if (first > 0) vec->vv[step](y, y, part, n);
    }
}

static void strip_f32(const job *job, int64_t output, int64_t column, int64_t n)
{
    const prn_vec_table *vec = job->vec;
    const prn_reduction *reduction = job->reduction;
    const prn_reduce_kind kind = reduction->kind;
    float *y = (float *)reduction->y->data + output * job->row + column, top[STRIP] = {0.0f};
    if (kind == PRN_REDUCE_LOG_SUM_EXP) {
        fold_strip_f32(job, output, column, n, PRN_REDUCE_MAX, NULL, top);
        for (int64_t i = 0; i < n; i++) top[i] = (float)finite_or_zero((double)top[i]);
    }
    fold_strip_f32(job, output, column, n, kind, top, y);
    if (kind == PRN_REDUCE_MEAN) vec->vs[PRN_BINARY_DIV](y, y, (float)reduction->count, n);
    if (kind == PRN_REDUCE_L2) vec->map[PRN_MAP_SQRT](y, y, n, 0.0f, 0.0f);
    if (kind == PRN_REDUCE_LOG_SUM || kind == PRN_REDUCE_LOG_SUM_EXP) vec->map[PRN_MAP_LOG](y, y, n, 0.0f, 0.0f);
    if (kind == PRN_REDUCE_LOG_SUM_EXP) vec->vv[PRN_BINARY_ADD](y, y, top, n);
}

/* Outputs [begin, end) whose elements are one short row each, side by side: whether they were of a kind that has loops
 * over such rows. */
static bool short_rows_f32(const job *job, int64_t begin, int64_t end)
{
    const prn_reduction *reduction = job->reduction;
    const float *x = (const float *)reduction->x->data + begin * job->row;
    float *y = (float *)reduction->y->data + begin;
    if (job->strips != 0 || job->combinations != 1 || job->row > SHORT_SUMS) return false;
    switch (reduction->kind) {
    case PRN_REDUCE_SUM:
        job->vec->sum_rows(y, x, job->row, end - begin, 1.0);
        return true;
    case PRN_REDUCE_MEAN:
        job->vec->sum_rows(y, x, job->row, end - begin, (double)reduction->count);
        return true;
    case PRN_REDUCE_MAX:
        job->vec->max_rows(y, x, job->row, end - begin);
        return true;
    case PRN_REDUCE_MIN:
        job->vec->min_rows(y, x, job->row, end - begin);
        return true;
    default:
        return false;
    }
}

/* ---- work: outputs, or strips of them */

/* Items are outputs, or strips of an output's row if rows are kept; each has one task, so sums have one order. */
static void reduce_native_run_items(void *argument, int64_t begin, int64_t end)
{
    const job *job = argument;
    const prn_reduction *reduction = job->reduction;
    const bool f32 = reduction->x->dtype == PRONY_FLOAT32 && reduction->kind != PRN_REDUCE_PROD;
    if (f32 && short_rows_f32(job, begin, end)) return;
    const bool real = prn_reduce_is_real(reduction->kind, reduction->x->dtype);
    prn_row_op op;
    const bool narrow = stays_narrow(reduction, &op);
    for (int64_t item = begin; item < end; item++) {
        if (job->strips == 0 && narrow) {
            output_narrow(job, item, fold_of(reduction->kind));
            continue;
        }
        if (job->strips == 0) {
            (f32 ? output_f32 : (real ? output_f64 : output_i64))(job, item);
            continue;
        }
        const int64_t output = item / job->strips, column = item % job->strips * STRIP;
        const int64_t n = job->row - column < STRIP ? job->row - column : STRIP;
        if (narrow) {
            strip_narrow(job, output, column, n, op);
            continue;
        }
        (f32 ? strip_f32 : (real ? strip_f64 : strip_i64))(job, output, column, n);
    }
}

void prn_reduce_native(int threads, const prn_reduction *reduction)
{
    job job = {
        .reduction = reduction, .outer = reduction->chain, .row = 1, .vec = prn_vec(), .folds = prn_fold_loops()};
    const int last = reduction->chain.rank - 1;
    const bool along = last >= 0 && reduction->chain.reduced[last];
    if (last >= 0) {
        job.row = reduction->chain.dim[last];
        job.outer.rank = last;
    }
    job.combinations = along ? reduction->count / job.row : reduction->count;
    job.strips = along ? 0 : prn_ceil_div(job.row, STRIP);
    int64_t outputs = 1;
    for (int d = 0; d < job.outer.rank; d++) outputs *= job.outer.reduced[d] ? 1 : job.outer.dim[d];
    const int64_t bytes = outputs * job.combinations * job.row * (int64_t)prony_dtype_bytes(reduction->x->dtype, 1);
    const int64_t width = reduction->x->dtype == PRONY_FLOAT32 ? 1 : 2;
    const int64_t effort = reduction->kind == PRN_REDUCE_LOG_SUM_EXP ? 8 : width;
    prn_parallel_items(threads, along ? outputs : outputs * job.strips, effort * bytes, reduce_native_run_items, &job);
}
