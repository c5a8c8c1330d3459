/* Unique: the distinct elements of a tensor, or its distinct slices along an axis, with their first positions, the way
 * back and how often each occurs.
 *
 * Slices are compared as [outer][inner] lists; NaN is above every number and equal to itself. The native kernels give
 * every element a key that sorts as it does: single elements are sorted by it digit by digit, slices become rows of
 * keys whose bytes sort as numbers do, are sorted so by their first eight bytes, and those that share them by merging.
 * Invariant: equal slices stay in the order of their positions, so the first of a run is the first occurrence. */
#include "base/threads/cancel.h"
#include "ops/kernels/copy/copy_nd.h"
#include "ops/kernels/vector/number.h"

#include <string.h>

enum { VALUES, FIRST, INVERSE, COUNTS };

typedef struct unique_params {
    int64_t axis, sorted;
} unique_params;

/* The input as [outer][count][inner]; without an axis outer and inner are 1. */
typedef struct unique_job {
    const prony_value *in;
    int64_t outer, count, inner;
    size_t width;
    int64_t *order, *other;    /* positions, sorted; working space */
    const struct keyed *keys;  /* of single elements, sorted as `order` is; NULL: slices are compared */
    const unsigned char *rows; /* slices as bytes that sort as they do, row_bytes each; NULL: elements are compared */
    size_t row_bytes;
} unique_job;

/* A number that sorts as its element does, equal ones the same, and the element's position. */
typedef struct keyed {
    uint64_t key;
    int64_t position;
} keyed;

/* ---- shapes */

static prony_status unique_read_job(const prony_context *context, unique_job *job)
{
    int64_t axis = ((const unique_params *)context->params)->axis;
    const prony_value *in = context->inputs[0];
    *job = (unique_job){.in = in, .outer = 1, .count = prony_shape_numel(&in->shape), .inner = 1};
    job->width = prn_copy_width(in->dtype);
    if (axis == PRN_ABSENT) return PRONY_OK;
    if (!prn_axis_normalize(&axis, in->shape.rank))
        return prony_fail(context, PRONY_OUT_OF_RANGE, "axis %lld is outside of rank %d", (long long)axis,
                          in->shape.rank);
    job->outer = prn_shape_count(&in->shape, 0, (int)axis);
    job->count = in->shape.dim[axis];
    job->inner = prn_shape_count(&in->shape, (int)axis + 1, in->shape.rank);
    return PRONY_OK;
}

/* Shape of the values for `found` distinct ones. */
static prony_shape values_shape(const prony_context *context, int64_t found)
{
    const int64_t axis = ((const unique_params *)context->params)->axis;
    if (axis == PRN_ABSENT) return (prony_shape){1, {found}};
    prony_shape shape = context->inputs[0]->shape;
    shape.dim[axis < 0 ? axis + shape.rank : axis] = found;
    return shape;
}

static prony_status unique_infer(const prony_context *context)
{
    unique_job job;
    PRN_TRY(prn_check_type(context, 0, PRN_TYPES_NUMBER_BOOL | PRN_TYPE(PRONY_STRING)));
    PRN_TRY(unique_read_job(context, &job));
    prony_shape values = prn_shape_unknown(), list = prn_shape_unknown();
    if (job.count == 0) {
        values = values_shape(context, 0);
        list = (prony_shape){1, {0}};
    }
    prn_set_output(context, VALUES, context->inputs[0]->dtype, &values);
    prn_set_output(context, FIRST, PRONY_INT64, &list);
    prn_set_output(context, INVERSE, PRONY_INT64, &(prony_shape){1, {job.count}});
    prn_set_output(context, COUNTS, PRONY_INT64, &list);
    return PRONY_OK;
}

static prony_status unique_check(const prony_context *context)
{
    const int64_t sorted = ((const unique_params *)context->params)->sorted;
    if (sorted == 0 || sorted == 1) return PRONY_OK;
    return prony_fail(context, PRONY_INVALID_MODEL, "sorted is %lld, wanted 0 or 1", (long long)sorted);
}

/* ---- order */

static int unique_compare_strings(const prony_string *a, const prony_string *b)
{
    const size_t shared = a->size < b->size ? a->size : b->size;
    const int order = shared ? memcmp(a->data, b->data, shared) : 0;
    return order ? order : (a->size > b->size) - (a->size < b->size);
}

static int compare_elements(const prony_value *in, int64_t a, int64_t b)
{
    if (in->dtype == PRONY_STRING)
        return unique_compare_strings((const prony_string *)in->data + a, (const prony_string *)in->data + b);
    if (prn_dtype_is_float(in->dtype)) {
        const double x = prn_get_f64(in->data, in->dtype, a), y = prn_get_f64(in->data, in->dtype, b);
        if (isnan(x) || isnan(y)) return (isnan(x) != 0) - (isnan(y) != 0);
        return (x > y) - (x < y);
    }
    const int64_t x = prn_get_i64(in->data, in->dtype, a), y = prn_get_i64(in->data, in->dtype, b);
    if (in->dtype == PRONY_UINT64) return ((uint64_t)x > (uint64_t)y) - ((uint64_t)x < (uint64_t)y);
    return (x > y) - (x < y);
}

static int compare_slices(const unique_job *job, int64_t a, int64_t b)
{
    if (job->rows)
        return memcmp(job->rows + (size_t)a * job->row_bytes, job->rows + (size_t)b * job->row_bytes, job->row_bytes);
    for (int64_t o = 0; o < job->outer; o++) {
        const int64_t row = o * job->count;
        if (prn_cancelled_at(o)) return 0;
        for (int64_t i = 0; i < job->inner; i++) {
            const int order = compare_elements(job->in, (row + a) * job->inner + i, (row + b) * job->inner + i);
            if (order) return order;
        }
    }
    return 0;
}

/* Of `count` positions, runs of `length` sorted ones become runs of twice that length, in `to`. */
static void merge_runs(const unique_job *job, const int64_t *from, int64_t *to, int64_t count, int64_t length)
{
    for (int64_t start = 0; start < count; start += 2 * length) {
        const int64_t middle = start + length < count ? start + length : count;
        const int64_t end = start + 2 * length < count ? start + 2 * length : count;
        int64_t left = start, right = middle;
        for (int64_t at = start; at < end; at++) {
            if (prn_cancelled_at(at)) return;
            const bool take_left = left < middle && (right >= end || compare_slices(job, from[left], from[right]) <= 0);
            to[at] = from[take_left ? left++ : right++];
        }
    }
}

static void sort_positions(unique_job *job)
{
    for (int64_t i = 0; i < job->count; i++) job->order[i] = i;
    for (int64_t length = 1; length < job->count; length *= 2) {
        merge_runs(job, job->order, job->other, job->count, length);
        int64_t *swapped = job->order;
        job->order = job->other;
        job->other = swapped;
    }
}

/* ---- single elements of numbers: keys, sorted byte by byte from the lowest on */

static uint64_t unique_key_of(const prony_value *in, int64_t i)
{
    const uint64_t top = UINT64_C(1) << 63;
    if (in->dtype == PRONY_FLOAT32) {
        const float x = ((const float *)in->data)[i] + 0.0f; /* one zero */
        const uint32_t bits = prn_f32_bits(x);
        return x != x ? UINT32_MAX : bits >> 31 ? ~bits : bits | UINT32_C(0x80000000);
    }
    if (prn_dtype_is_float(in->dtype)) {
        const double x = prn_get_f64(in->data, in->dtype, i) + 0.0;
        uint64_t bits;
        memcpy(&bits, &x, sizeof bits);
        return x != x ? UINT64_MAX : bits >> 63 ? ~bits : bits | top;
    }
    const uint64_t bits = (uint64_t)prn_get_i64(in->data, in->dtype, i);
    return in->dtype == PRONY_UINT64 ? bits : bits ^ top;
}

enum { DIGITS = 8, DIGIT_VALUES = 256 };

/* Moves [count] from one list to the other in the order of digit `digit`; `starts` become the places behind each
 * value's. */
static void move_by_digit(const keyed *from, keyed *to, int64_t count, int digit, int64_t starts[DIGIT_VALUES])
{
    for (int64_t i = 0; i < count; i++) to[starts[from[i].key >> (8 * digit) & 255]++] = from[i];
}

/* Sorts `count` of them, into one of the two lists, which is returned; NULL: cancelled. */
static const keyed *sort_keyed(int64_t count, keyed *list, keyed *other)
{
    int64_t counts[DIGITS][DIGIT_VALUES] = {{0}};
    for (int64_t i = 0; i < count; i++) {
        if (prn_cancelled_at(i)) return NULL;
        for (int d = 0; d < DIGITS; d++) counts[d][list[i].key >> (8 * d) & 255]++;
    }
    for (int d = 0; d < DIGITS; d++) {
        int64_t place = 0;
        if (prn_cancelled()) return NULL;
        if (counts[d][list[0].key >> (8 * d) & 255] == count) continue; /* the same in every key */
        for (int v = 0; v < DIGIT_VALUES; v++) {
            const int64_t here = counts[d][v];
            counts[d][v] = place;
            place += here;
        }
        move_by_digit(list, other, count, d, counts[d]);
        keyed *swapped = list;
        list = other;
        other = swapped;
    }
    return list;
}

/* The keys of `count` elements, sorted; NULL: cancelled. */
static const keyed *sort_keys(const prony_value *in, int64_t count, keyed *list, keyed *other)
{
    for (int64_t i = 0; i < count; i++) {
        if (prn_cancelled_at(i)) return NULL;
        list[i] = (keyed){unique_key_of(in, i), i};
    }
    return sort_keyed(count, list, other);
}

/* ---- slices of numbers: rows of keys */

/* Bytes of a key in a row: of floats that a float32 holds exactly, and of integers, no more than the type has. */
static size_t row_key_width(prony_dtype dtype)
{
    if (prn_dtype_is_float(dtype)) return dtype == PRONY_FLOAT64 ? 8 : 4;
    return prn_copy_width(dtype);
}

static uint64_t row_key(const prony_value *in, int64_t i, size_t width)
{
    if (width == 4 && in->dtype != PRONY_FLOAT32 && prn_dtype_is_float(in->dtype)) {
        const float x = (float)prn_get_f64(in->data, in->dtype, i);
        return unique_key_of(&(prony_value){.dtype = PRONY_FLOAT32, .data = (void *)(uintptr_t)&x}, 0);
    }
    return unique_key_of(in, i);
}

/* The lowest `width` bytes of a key, the highest first. Of a signed type that is narrower than a key, the sign is
 * moved. */
static inline void unique_put_key(unsigned char *to, uint64_t key, size_t width, uint64_t sign)
{
    key ^= sign;
    for (size_t n = 0; n < width; n++) to[n] = (unsigned char)(key >> (8 * (width - 1 - n)));
}

/* Bytes of a row, rounded up so that its first eight are there. */
static bool row_size(const unique_job *job, uint64_t *bytes)
{
    uint64_t elements;
    if (!prn_mul_u64(&elements, (uint64_t)job->outer, (uint64_t)job->inner)) return false;
    if (!prn_mul_u64(bytes, elements, row_key_width(job->in->dtype)) || *bytes > UINT64_MAX - 8) return false;
    if (*bytes < 8) *bytes = 8;
    return true;
}

/* false: cancelled. */
static bool unique_fill_rows(const unique_job *job, unsigned char *rows)
{
    const size_t width = row_key_width(job->in->dtype);
    const bool narrow_signed =
        job->in->dtype == PRONY_INT8 || job->in->dtype == PRONY_INT16 || job->in->dtype == PRONY_INT32;
    const uint64_t sign = narrow_signed ? UINT64_C(1) << (8 * width - 1) : 0;
    if ((uint64_t)(job->outer * job->inner) * width < 8) memset(rows, 0, (size_t)job->count * job->row_bytes);
    for (int64_t o = 0; o < job->outer; o++) {
        for (int64_t at = 0; at < job->count; at++) {
            unsigned char *to = rows + (size_t)at * job->row_bytes + (size_t)(o * job->inner) * width;
            const int64_t from = (o * job->count + at) * job->inner;
            if (prn_cancelled_at(at)) return false;
            for (int64_t i = 0; i < job->inner; i++)
                unique_put_key(to + (size_t)i * width, row_key(job->in, from + i, width), width, sign);
        }
    }
    return true;
}

/* Sorts order[0, count) by merging, through `other`. */
static void merge_sort(const unique_job *job, int64_t *order, int64_t *other, int64_t count)
{
    int64_t *from = order, *to = other;
    for (int64_t length = 1; length < count; length *= 2) {
        merge_runs(job, from, to, count, length);
        if (prn_cancelled()) return;
        int64_t *swapped = from;
        from = to;
        to = swapped;
    }
    if (from != order) memcpy(order, from, (size_t)count * sizeof *order);
}

/* The order of the rows, in job->order; false: cancelled. */
static bool sort_rows(unique_job *job, keyed *list, keyed *other)
{
    for (int64_t at = 0; at < job->count; at++) {
        const unsigned char *row = job->rows + (size_t)at * job->row_bytes;
        uint64_t key = 0;
        for (int n = 0; n < 8; n++) key = key << 8 | row[n];
        list[at] = (keyed){key, at};
    }
    const keyed *sorted = sort_keyed(job->count, list, other);
    if (!sorted) return false;
    for (int64_t at = 0; at < job->count; at++) job->order[at] = sorted[at].position;
    for (int64_t start = 0, end; job->row_bytes > 8 && start < job->count; start = end) {
        for (end = start + 1; end < job->count && sorted[end].key == sorted[start].key; end++) {
        }
        if (end - start > 1) merge_sort(job, job->order + start, job->other, end - start);
        if (prn_cancelled_at(start)) return false;
    }
    return !prn_cancelled();
}

/* ---- kernel */

/* The runs of equal slices, numbered as they come out: `first` and `number` have room for one entry per position. Of a
 * position, number[position] is that of its run. Returns how many there are. */
static int64_t number_runs(unique_job *job, bool sorted, int64_t *first, int64_t *number)
{
    int64_t runs = 0;
    if (!job->keys && !job->rows) sort_positions(job);
    if (prn_cancelled()) return 0; /* the order may be garbage */
    for (int64_t at = 0; at < job->count && !prn_cancelled_at(at); at++) {
        const bool fresh = at == 0 || (job->keys ? job->keys[at - 1].key != job->keys[at].key
                                                 : compare_slices(job, job->order[at - 1], job->order[at]) != 0);
        if (fresh) first[runs++] = job->order[at];
        number[job->order[at]] = runs - 1;
    }
    if (sorted || prn_cancelled()) return runs; /* cancelled, not every position has its number */
    /* In the order of the first occurrences: `other` maps the sorted number to the new one. */
    int64_t next = 0;
    for (int64_t position = 0; position < job->count; position++) {
        const int64_t run = number[position];
        if (first[run] == position) job->other[run] = next++;
        number[position] = job->other[run];
    }
    next = 0;
    for (int64_t position = 0; position < job->count; position++) {
        if (number[position] == next) first[next++] = position;
    }
    return runs;
}

static prony_status make_output(const prony_context *context, size_t index, const prony_shape *shape)
{
    prony_value *out = prn_output(context, index);
    if (!out || out->shape.rank >= 0) return PRONY_OK;
    out->shape = *shape;
    return context->services->output_alloc(context, index);
}

static void write_values(const prony_context *context, const unique_job *job, const int64_t *first, int64_t runs)
{
    char *to = context->outputs[VALUES]->data;
    const char *from = job->in->data;
    const bool single = job->outer == 1 && job->inner == 1;
    for (int64_t run = 0; single && run < runs && to && !prn_cancelled_at(run); run++)
        memcpy(to + (size_t)run * job->width, from + (size_t)first[run] * job->width, job->width);
    for (int64_t run = 0; !single && run < runs && to && !prn_cancelled(); run++) {
        prn_copy copy = {0};
        prn_copy_axis(&copy, job->outer, job->count * job->inner, runs * job->inner);
        prn_copy_axis(&copy, job->inner, 1, 1);
        prn_copy_native(1, job->width, &copy, from + (size_t)(first[run] * job->inner) * job->width,
                        to + (size_t)(run * job->inner) * job->width);
    }
}

static prony_status unique_prepare_with(const prony_context *context, uint64_t each, prn_prepared *out)
{
    unique_job job;
    uint64_t bytes;
    PRN_TRY(unique_read_job(context, &job));
    if (!prn_mul_u64(&bytes, (uint64_t)job.count, each) || bytes > SIZE_MAX / 2)
        return prony_fail(context, PRONY_LIMIT, "the positions do not fit in memory");
    out->scratch_bytes = (size_t)bytes;
    return PRONY_OK;
}

static prony_status unique_prepare(const prony_context *context, prn_prepared *out)
{
    return unique_prepare_with(context, 4 * sizeof(int64_t), out);
}

static prony_status prepare_keys(const prony_context *context, prn_prepared *out)
{
    return unique_prepare_with(context, 4 * sizeof(int64_t) + 2 * sizeof(keyed), out);
}

static prony_status prepare_rows(const prony_context *context, prn_prepared *out)
{
    unique_job job;
    uint64_t row;
    PRN_TRY(unique_read_job(context, &job));
    const uint64_t lists = 4 * sizeof(int64_t) + 2 * sizeof(keyed);
    if (!row_size(&job, &row) || row > UINT64_MAX - lists)
        return prony_fail(context, PRONY_LIMIT, "the positions do not fit in memory");
    return unique_prepare_with(context, lists + row, out);
}

static bool keys_supported(const prony_context *context)
{
    unique_job job;
    return unique_read_job(context, &job) == PRONY_OK && job.outer == 1 && job.inner == 1;
}

/* Everything behind the scratch of sorting. */
static prony_status unique_finish(const prony_context *context, unique_job job)
{
    job.other = job.order + job.count;
    int64_t *first = job.other + job.count, *number = first + job.count;
    const int64_t runs = number_runs(&job, ((const unique_params *)context->params)->sorted != 0, first, number);
    if (prn_cancelled()) return PRONY_OK;
    const prony_shape values = values_shape(context, runs), list = {1, {runs}};
    PRN_TRY(make_output(context, VALUES, &values));
    PRN_TRY(make_output(context, FIRST, &list));
    PRN_TRY(make_output(context, COUNTS, &list));
    if (prn_output(context, VALUES)) write_values(context, &job, first, runs);
    if (prn_output(context, FIRST)) memcpy(context->outputs[FIRST]->data, first, (size_t)runs * sizeof *first);
    if (prn_output(context, INVERSE))
        memcpy(context->outputs[INVERSE]->data, number, (size_t)job.count * sizeof *number);
    if (prn_output(context, COUNTS)) {
        int64_t *counts = context->outputs[COUNTS]->data;
        memset(counts, 0, (size_t)runs * sizeof *counts);
        for (int64_t i = 0; i < job.count; i++) counts[number[i]]++;
    }
    return PRONY_OK;
}

static prony_status unique_run(const prony_context *context)
{
    unique_job job;
    PRN_TRY(unique_read_job(context, &job));
    if (job.count == 0) return PRONY_OK;
    job.order = context->scratch;
    return unique_finish(context, job);
}

static prony_status run_keys(const prony_context *context)
{
    unique_job job;
    PRN_TRY(unique_read_job(context, &job));
    if (job.count == 0) return PRONY_OK;
    keyed *lists = context->scratch;
    job.keys = sort_keys(job.in, job.count, lists, lists + job.count);
    if (!job.keys) return PRONY_OK;
    job.order = (int64_t *)(void *)(lists + 2 * job.count);
    for (int64_t i = 0; i < job.count; i++) job.order[i] = job.keys[i].position;
    return unique_finish(context, job);
}

static prony_status unique_run_rows(const prony_context *context)
{
    unique_job job;
    uint64_t row;
    PRN_TRY(unique_read_job(context, &job));
    if (job.count == 0) return PRONY_OK;
    if (!row_size(&job, &row)) return PRONY_LIMIT;
    keyed *lists = context->scratch;
    job.order = (int64_t *)(void *)(lists + 2 * job.count);
    job.other = job.order + job.count;
    job.row_bytes = (size_t)row;
    unsigned char *rows = (unsigned char *)(job.order + 4 * job.count);
    if (!unique_fill_rows(&job, rows)) return PRONY_OK;
    job.rows = rows;
    return sort_rows(&job, lists, lists + job.count) ? unique_finish(context, job) : PRONY_OK;
}

static const prn_param params[] = {PRN_INT(unique_params, axis, PRN_ABSENT), PRN_INT(unique_params, sorted, 1), {0}};

// clang-format off
static const prn_kernel kernels[] = {
    {.name = "unique_native", .backend = "native", .types = PRN_TYPES_NUMBER_BOOL, .supported = keys_supported, .prepare = prepare_keys,
     .run = run_keys},
    {.name = "unique_slices_native", .backend = "native", .types = PRN_TYPES_NUMBER_BOOL, .prepare = prepare_rows, .run = unique_run_rows},
    {.name = "unique_reference", .backend = "reference", .prepare = unique_prepare, .run = unique_run}, {0}};

const prn_op prn_ops_unique[] = {
    {.name = "Unique", .since_opset = 11, .inputs = {1, 1}, .outputs = {1, 4}, .flags = PRN_OP_DATA_SHAPE,
     .params = params, .params_bytes = sizeof(unique_params), .check = unique_check,
     .infer = unique_infer, .cost = prn_cost_none, .cost_text = "0", .kernels = kernels},
    {0}};
// clang-format on
