/* One output element a work item: functions of one tensor, of two with broadcasting, and copies between strided views. */

typedef struct places {
    int rank, count;
    int extent[RANKS], a[RANKS], b[RANKS]; /* strides of both operands, in elements */
} places;

#ifdef UNARY
__kernel void map(__global const float *in, ulong in_at, __global float *out, ulong out_at, int count, float a, float b)
{
    const int i = (int)get_global_id(0);
    if (i >= count) return;
    float x = AT(const float, in)[i];
    AT(float, out)[i] = UNARY;
}
#endif

#ifdef BINARY
__kernel void binary(__global const float *left, ulong left_at, __global const float *right, ulong right_at,
                     __global float *out, ulong out_at, places p)
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
    const float a = AT(const float, left)[at_a], b = AT(const float, right)[at_b];
    AT(float, out)[i] = BINARY;
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
