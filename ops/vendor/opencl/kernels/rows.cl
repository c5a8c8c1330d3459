/* Rows of a tensor that end in one element each, or that are normalised by what they end in.
 *
 *     group of GROUP items = GROUP / parts rows, `parts` items a row
 *     part k combines elements k, k + parts, ..., then a tree in local memory combines the parts
 *
 * Invariant: the order of a sum follows from the shapes alone. Items beyond the last row take part in barriers. */
#define GROUP 128
#define AXES 9

/* across: neighbouring items belong to neighbouring rows, else to one row. Row r begins at
 * r / inner * length * inner + r % inner. */
typedef struct lines {
    uint rows, length, inner, parts, across;
} lines;

typedef struct place {
    uint row, part, step; /* step: items between two parts of a row */
    uint length;          /* 0 beyond the last row */
    int first;
} place;

place place_of(const lines *p)
{
    const uint item = (uint)get_local_id(0), each = GROUP / p->parts;
    place at;
    at.step = p->across ? each : 1;
    at.part = p->across ? item / each : item % p->parts;
    at.row = (uint)get_group_id(0) * each + (p->across ? item % each : item / p->parts);
    at.length = at.row < p->rows ? p->length : 0;
    at.first = at.length ? (int)(at.row / p->inner * p->length * p->inner + at.row % p->inner) : 0;
    return at;
}

/* v becomes the combination of all parts' v, in every item of the row; a and b are the operands of OPERATION. */
#define TREE(v, shared, OPERATION)                                                                                     \
    do {                                                                                                               \
        const uint item = (uint)get_local_id(0);                                                                       \
        shared[item] = v;                                                                                              \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                                  \
        for (uint half_parts = p.parts / 2; half_parts > 0; half_parts /= 2) {                                         \
            if (at.part < half_parts) {                                                                                \
                const float a = shared[item], b = shared[item + half_parts * at.step];                                 \
                shared[item] = OPERATION;                                                                              \
            }                                                                                                          \
            barrier(CLK_LOCAL_MEM_FENCE);                                                                              \
        }                                                                                                              \
        v = shared[item - at.part * at.step];                                                                          \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                                  \
    } while (0)

/* Adds e to `sum`; `rest` gathers what rounding loses. TOTAL: both, and of a sum that is infinite or NaN, the sum. */
#define ADD(sum, rest, e)                                                                                              \
    do {                                                                                                               \
        const float added_ = e, next_ = sum + added_, back_ = next_ - sum;                                             \
        rest += (sum - (next_ - back_)) + (added_ - back_);                                                            \
        sum = next_;                                                                                                   \
    } while (0)
#define TOTAL(sum, rest) (isfinite(rest) ? sum + rest : sum)

#define ROWS __kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void

#ifdef SOFTMAX
/* LOGARITHM: its logarithm. */
ROWS softmax(__global const float *x, ulong x_at, __global float *y, ulong y_at, lines p)
{
    __local float shared[GROUP];
    const place at = place_of(&p);
    __global const float *from = AT(const float, x) + at.first;
    __global float *to = AT(float, y) + at.first;
    float top = -INFINITY, sum = 0.0f;
    for (uint i = at.part; i < at.length; i += p.parts) top = larger(top, from[i * p.inner]);
    TREE(top, shared, larger(a, b));
    for (uint i = at.part; i < at.length; i += p.parts) sum += exp(from[i * p.inner] - top);
    TREE(sum, shared, a + b);
#ifdef LOGARITHM
    const float shift = log(sum);
    for (uint i = at.part; i < at.length; i += p.parts) to[i * p.inner] = from[i * p.inner] - top - shift;
#else
    for (uint i = at.part; i < at.length; i += p.parts) to[i * p.inner] = exp(from[i * p.inner] - top) / sum;
#endif
}
#endif

#ifdef NORM
/* y = (v - mean) inverse scale + bias, v = x + skip + added; RMS: no mean. An element meets scale and bias number
 * (element / run) mod period, a row meets row (row mod skip_rows) of `skip`. */
typedef struct norm {
    uint run, period, skip_rows;
    float epsilon;
} norm;

ROWS normalise(__global const float *x, ulong x_at,
#ifdef SKIP
               __global const float *skip, ulong skip_at,
#endif
#ifdef ADDED
               __global const float *added, ulong added_at,
#endif
#ifdef SCALE
               __global const float *scale, ulong scale_at,
#endif
#ifdef BIAS
               __global const float *bias, ulong bias_at,
#endif
               __global float *y, ulong y_at,
#ifdef MEAN_OUT
               __global float *mean_out, ulong mean_out_at,
#endif
#ifdef INVERSE_OUT
               __global float *inverse_out, ulong inverse_out_at,
#endif
#ifdef SUM_OUT
               __global float *sum_out, ulong sum_out_at,
#endif
               lines p, norm n FINISH_ARGUMENTS)
{
    __local float shared[GROUP];
    const place at = place_of(&p);
    __global const float *from = AT(const float, x) + at.first;
#ifdef SKIP
    __global const float *beside = AT(const float, skip) + at.row % n.skip_rows * p.length;
#define BESIDE(i) +beside[i]
#else
#define BESIDE(i)
#endif
#ifdef ADDED
#define ALSO(i) +AT(const float, added)[i]
#else
#define ALSO(i)
#endif
#define V(i) (from[i] BESIDE(i) ALSO(i))
    float mean = 0.0f, squares = 0.0f, rest = 0.0f;
#ifndef RMS
    for (uint i = at.part; i < at.length; i += p.parts) ADD(mean, rest, V(i));
    mean = TOTAL(mean, rest);
    rest = 0.0f;
    TREE(mean, shared, a + b);
    mean /= (float)p.length;
#endif
    for (uint i = at.part; i < at.length; i += p.parts) {
        const float deviation = V(i) - mean;
        ADD(squares, rest, deviation * deviation);
    }
    squares = TOTAL(squares, rest);
    TREE(squares, shared, a + b);
    const float inverse = 1.0f / sqrt(squares / (float)p.length + n.epsilon);
    for (uint i = at.part; i < at.length; i += p.parts) {
        const uint element = (uint)at.first + i, with = element / n.run % n.period;
        float v = V(i);
#ifdef SUM_OUT
        AT(float, sum_out)[element] = v;
#endif
        v = (v - mean) * inverse;
#ifdef SCALE
        v *= AT(const float, scale)[with];
#endif
#ifdef BIAS
        v += AT(const float, bias)[with];
#endif
        FINISH(v, element);
        AT(float, y)[element] = v;
    }
    if (at.length == 0 || at.part != 0) return;
#ifdef MEAN_OUT
    AT(float, mean_out)[at.row] = mean;
#endif
#ifdef INVERSE_OUT
    AT(float, inverse_out)[at.row] = inverse;
#endif
}
#endif

#ifdef LRN
/* x (bias + factor sum)^-beta, sum: of squares of channels from `before` before x's to `after` behind it. */
__kernel void lrn(__global const float *x, ulong x_at, __global float *y, ulong y_at, int count, int channels, int pixels,
                  int before, int after, float bias, float factor, float beta)
{
    const int at = (int)get_global_id(0);
    if (at >= count) return;
    const int c = at / pixels % channels, first = max(c - before, 0), last = channels - c <= after ? channels : c + after + 1;
    float sum = 0.0f;
    for (int k = first; k < last; k++) {
        const float e = AT(const float, x)[at + (k - c) * pixels];
        sum = fma(e, e, sum);
    }
    AT(float, y)[at] = AT(const float, x)[at] * exp(-beta * log(bias + factor * sum));
}
#endif

#ifdef LP
/* Divided by the sum of absolute values (LP 1) or the root of that of squares (2); zeros where that is 0. */
ROWS divide_by_length(__global const float *x, ulong x_at, __global float *y, ulong y_at, lines p)
{
    __local float shared[GROUP];
    const place at = place_of(&p);
    __global const float *from = AT(const float, x) + at.first;
    __global float *to = AT(float, y) + at.first;
    float sum = 0.0f, rest = 0.0f;
    for (uint i = at.part; i < at.length; i += p.parts) {
        const float e = from[i * p.inner];
        ADD(sum, rest, LP == 1 ? fabs(e) : e * e);
    }
    sum = TOTAL(sum, rest);
    TREE(sum, shared, a + b);
    if (LP == 2) sum = sqrt(sum);
    for (uint i = at.part; i < at.length; i += p.parts) to[i * p.inner] = sum == 0.0f ? 0.0f : from[i * p.inner] / sum;
}
#endif

#ifdef BATCH_NORM
__kernel void batch_norm(__global const float *x, ulong x_at, __global const float *scale, ulong scale_at,
                         __global const float *bias, ulong bias_at, __global const float *mean, ulong mean_at,
                         __global const float *variance, ulong variance_at, __global float *y, ulong y_at, int count,
                         int run, int channels, float epsilon)
{
    const int at = (int)get_global_id(0);
    if (at >= count) return;
    const int c = at / run % channels;
    const float factor = AT(const float, scale)[c] / sqrt(AT(const float, variance)[c] + epsilon);
    const float v = AT(const float, x)[at], m = AT(const float, mean)[c], b = AT(const float, bias)[c];
    /* Subtracting first is more exact; without a variance, y = x factor + (bias - mean factor) says what is NaN. */
    AT(float, y)[at] = isinf(factor) ? v * factor + (b - m * factor) : fma(v - m, factor, b);
}
#endif

#if defined(START) || defined(MVN)
typedef struct axes {
    int kept, reduced;
    uint kept_extent[AXES], kept_stride[AXES], reduced_extent[AXES], reduced_stride[AXES];
} axes;

/* The offset of element i of axes, of which the last one runs fastest. */
uint offset_of(uint i, int rank, const uint *extent, const uint *stride)
{
    uint offset = 0;
    for (int d = rank - 1; d > 0; d--) {
        offset += i % extent[d] * stride[d];
        i /= extent[d];
    }
    return rank > 0 ? offset + i * stride[0] : 0;
}
#define ELEMENT_AT(i) from[offset_of(i, q.reduced, q.reduced_extent, q.reduced_stride)]
#endif

#ifdef START
/* EACH of an element x (and of `top`, the largest one, with TOP), COMBINE of a and b, which is left out where they are added,
 * RESULT of `sum` and `count`. */
ROWS reduce(__global const float *in, ulong in_at, __global float *out, ulong out_at, lines p, axes q)
{
    __local float shared[GROUP];
    const place at = place_of(&p);
    __global const float *from =
        AT(const float, in) + (at.length ? offset_of(at.row, q.kept, q.kept_extent, q.kept_stride) : 0);
    const float count = (float)p.length;
#ifdef TOP
    float top = -INFINITY;
    for (uint i = at.part; i < at.length; i += p.parts) top = larger(top, ELEMENT_AT(i));
    TREE(top, shared, larger(a, b));
    if (isinf(top)) top = 0.0f;
#endif
    float sum = START;
#ifdef COMBINE
    for (uint i = at.part; i < at.length; i += p.parts) {
        const float x = ELEMENT_AT(i), a = sum, b = EACH;
        sum = COMBINE;
    }
    TREE(sum, shared, COMBINE);
#else
    float rest = 0.0f;
    for (uint i = at.part; i < at.length; i += p.parts) {
        const float x = ELEMENT_AT(i);
        ADD(sum, rest, EACH);
    }
    sum = TOTAL(sum, rest);
    TREE(sum, shared, a + b);
#endif
    if (at.length > 0 && at.part == 0) AT(float, out)[at.row] = RESULT;
}
#endif

#ifdef MVN
/* (x - mean) / (standard deviation + 1e-9) over the reduced axes; MVN 0: not divided. */
ROWS normalise_axes(__global const float *in, ulong in_at, __global float *out, ulong out_at, lines p, axes q)
{
    __local float shared[GROUP];
    const place at = place_of(&p);
    const uint first = at.length ? offset_of(at.row, q.kept, q.kept_extent, q.kept_stride) : 0;
    __global const float *from = AT(const float, in) + first;
    __global float *to = AT(float, out) + first;
    float mean = 0.0f, squares = 0.0f, rest = 0.0f;
    for (uint i = at.part; i < at.length; i += p.parts) ADD(mean, rest, ELEMENT_AT(i));
    mean = TOTAL(mean, rest);
    TREE(mean, shared, a + b);
    mean /= (float)p.length;
    rest = 0.0f;
    for (uint i = at.part; i < at.length; i += p.parts) {
        const float deviation = ELEMENT_AT(i) - mean;
        ADD(squares, rest, deviation * deviation);
    }
    squares = TOTAL(squares, rest);
    TREE(squares, shared, a + b);
    const float divisor = MVN ? sqrt(squares / (float)p.length) + 1e-9f : 1.0f;
    for (uint i = at.part; i < at.length; i += p.parts)
        to[offset_of(i, q.reduced, q.reduced_extent, q.reduced_stride)] = (ELEMENT_AT(i) - mean) / divisor;
}
#endif

#ifdef EXTREME
/* EXTREME: a is ahead of b. NaN is ahead of numbers; of equals the first one is, or (last) the last one. */
bool ahead(float a, uint at_a, float b, uint at_b, int last)
{
    const bool tie = a == b || (a != a && b != b);
    return tie ? (last ? at_a > at_b : at_a < at_b) : a != a || (b == b && EXTREME);
}

ROWS extreme_index(__global const float *x, ulong x_at, __global long *y, ulong y_at, lines p, int last)
{
    __local float values[GROUP];
    __local uint indices[GROUP];
    const place at = place_of(&p);
    const uint item = (uint)get_local_id(0);
    __global const float *from = AT(const float, x) + at.first;
    uint best_at = at.part < at.length ? at.part : UINT_MAX; /* UINT_MAX: none */
    float best = at.part < at.length ? from[at.part * p.inner] : 0.0f;
    for (uint i = at.part + p.parts; i < at.length; i += p.parts) {
        const float e = from[i * p.inner];
        if (!ahead(e, i, best, best_at, last)) continue;
        best = e;
        best_at = i;
    }
    values[item] = best;
    indices[item] = best_at;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint half_parts = p.parts / 2; half_parts > 0; half_parts /= 2) {
        const uint other = item + half_parts * at.step;
        if (at.part < half_parts && indices[other] != UINT_MAX &&
            (indices[item] == UINT_MAX || ahead(values[other], indices[other], values[item], indices[item], last))) {
            values[item] = values[other];
            indices[item] = indices[other];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (at.length > 0 && at.part == 0) AT(long, y)[at.row] = (long)indices[item];
}
#endif
