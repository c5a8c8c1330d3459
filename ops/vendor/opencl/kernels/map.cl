/* One output element a work item: functions of one tensor, of two with broadcasting, and copies between strided views. */

typedef struct places {
    int rank, count;
    int extent[RANKS], a[RANKS], b[RANKS]; /* strides of both operands, in elements */
} places;

/* tanh, which may be a little less than 1 at infinity in OpenCL: 1 + tanh(-infinity) has to be 0. From 10 on, 1 is the
 * nearest float. */
float exact_tanh(float x)
{
    return fabs(x) > 10.0f ? copysign(1.0f, x) : tanh(x);
}

/* Types of operands and of the result. */
#ifndef IN
#define IN float
#endif
#ifndef OUT
#define OUT float
#endif

#ifdef UNARY
__kernel void map(__global const IN *in, ulong in_at, __global OUT *out, ulong out_at, int count, float a, float b)
{
    const int i = (int)get_global_id(0);
    if (i >= count) return;
    IN x = AT(const IN, in)[i];
    AT(OUT, out)[i] = UNARY;
}
#endif

#ifdef BINARY
__kernel void binary(__global const IN *left, ulong left_at, __global const IN *right, ulong right_at,
                     __global OUT *out, ulong out_at, places p)
{
    const int i = (int)get_global_id(0);
    if (i >= p.count) return;
    int rest = i, at_a = 0, at_b = 0;
    for (int d = p.rank - 1; d >= 0; d--) {
        const int at = rest % p.extent[d];
        rest /= p.extent[d];
        at_a += at * p.a[d];
        at_b += at * p.b[d];
    }
    const IN a = AT(const IN, left)[at_a], b = AT(const IN, right)[at_b];
    AT(OUT, out)[i] = BINARY;
}
#endif

#ifdef PICK
typedef struct picks {
    int rank, count;
    int extent[RANKS], c[RANKS], a[RANKS], b[RANKS];
} picks;

__kernel void pick(__global const uchar *choice, ulong choice_at, __global const PICK *left, ulong left_at,
                   __global const PICK *right, ulong right_at, __global PICK *out, ulong out_at, picks p)
{
    const int i = (int)get_global_id(0);
    if (i >= p.count) return;
    int rest = i, at_c = 0, at_a = 0, at_b = 0;
    for (int d = p.rank - 1; d >= 0; d--) {
        const int at = rest % p.extent[d];
        rest /= p.extent[d];
        at_c += at * p.c[d];
        at_a += at * p.a[d];
        at_b += at * p.b[d];
    }
    AT(PICK, out)[i] = AT(const uchar, choice)[at_c] ? AT(const PICK, left)[at_a] : AT(const PICK, right)[at_b];
}
#endif

#ifdef ELEMENT
/* `a` are the source's strides, `b` the result's. */
__kernel void copy(__global const ELEMENT *in, ulong in_at, __global ELEMENT *out, ulong out_at, places p)
{
    const int i = (int)get_global_id(0);
    if (i >= p.count) return;
    int rest = i, from = 0, to = 0;
    for (int d = p.rank - 1; d >= 0; d--) {
        const int at = rest % p.extent[d];
        rest /= p.extent[d];
        from += at * p.a[d];
        to += at * p.b[d];
    }
    AT(ELEMENT, out)[to] = AT(const ELEMENT, in)[from];
}

__kernel void fill(__global ELEMENT *out, ulong out_at, int count, ELEMENT value)
{
    const int i = (int)get_global_id(0);
    if (i < count) AT(ELEMENT, out)[i] = value;
}
#endif
