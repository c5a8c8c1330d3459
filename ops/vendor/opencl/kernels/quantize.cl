/* From numbers to 8-bit codes and back, sums and products of codes, tables of codes, averages: one element a work item.
 * Invariant: results are the host's bits; each operation is rounded on its own. */
#pragma OPENCL FP_CONTRACT OFF
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

#ifndef CODE
#define CODE uchar
#endif
#ifndef X_CODE
#define X_CODE uchar
#endif
#ifndef Y_CODE
#define Y_CODE uchar
#endif

/* a / b, rounded as IEEE 754 does; OpenCL's own may be 2.5 units off. Of two numbers of 24 bits a quotient of 53 bits, rounded
 * again, is the right one; without doubles, the remainder corrects the quotient. */
float divided(float a, float b)
{
#ifdef cl_khr_fp64
    return (float)((double)a / (double)b);
#else
    const float q = a / b, better = fma(fma(-q, b, a), 1.0f / b, q);
    return isfinite(better) ? better : q;
#endif
}

/* Bounds of CODE. Numbers beyond FAR are at an end of every range, zero points included. */
#define FAR 1048576.0f
#define LEAST (((CODE)-1) < (CODE)1 ? -128.0f : 0.0f)
#define MOST (((CODE)-1) < (CODE)1 ? 127.0f : 255.0f)

/* NaN is low. */
CODE code_of(float v, float low, float high, float zero)
{
    v = v > low ? v : low;
    v = rint(v < high ? v : high) + zero;
    v = v > LEAST ? v : LEAST;
    return (CODE)(int)(v < MOST ? v : MOST);
}

/* Which scale an element has: blocks 0, the axis has one for each index; extent 0: there is one. */
typedef struct entries {
    int count, inner, extent, block, blocks;
} entries;

int entry_of(const entries *p, int i)
{
    if (p->extent == 0) return 0;
    const int line = i / p->inner, a = line % p->extent;
    return p->blocks == 0 ? a : (line / p->extent * p->blocks + a / p->block) * p->inner + i % p->inner;
}

#ifdef ZERO
#define ZERO_ARGUMENT , __global const CODE *zero, ulong zero_at
#define ZERO_OF(entry) (float)AT(const CODE, zero)[entry]
#else
#define ZERO_ARGUMENT
#define ZERO_OF(entry) 0.0f
#endif

__kernel void quantize(__global const float *x, ulong x_at, __global const float *scale, ulong scale_at ZERO_ARGUMENT,
                       __global CODE *y, ulong y_at, entries p)
{
    const int i = (int)get_global_id(0);
    if (i >= p.count) return;
    const int entry = entry_of(&p, i);
    const float v = divided(AT(const float, x)[i], AT(const float, scale)[entry]);
    AT(CODE, y)[i] = code_of(v, -FAR, FAR, ZERO_OF(entry));
}

__kernel void dequantize(__global const CODE *x, ulong x_at, __global const float *scale, ulong scale_at ZERO_ARGUMENT,
                         __global float *y, ulong y_at, entries p)
{
    const int i = (int)get_global_id(0);
    if (i >= p.count) return;
    const int entry = entry_of(&p, i);
    AT(float, y)[i] = ((float)AT(const CODE, x)[i] - ZERO_OF(entry)) * AT(const float, scale)[entry];
}

/* ---- DynamicQuantizeLinear: extremes of stretches stand in the codes' bytes until the codes are written ---- */

#define EXTREMES 64

/* Extremes of the group's numbers, 0 and NaN left out, in both first elements. */
void widest(__local float *low, __local float *high, float a, float b)
{
    const int item = (int)get_local_id(0);
    low[item] = a;
    high[item] = b;
    for (int step = EXTREMES / 2; step > 0; step /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item >= step) continue;
        low[item] = low[item + step] < low[item] ? low[item + step] : low[item];
        high[item] = high[item + step] > high[item] ? high[item + step] : high[item];
    }
}

void store_parameters(__global float *scale, __global uchar *zero, float low, float high)
{
    const float s = low == high ? 1.0f : divided(high - low, 255.0f), z = rint(divided(-low, s));
    *scale = s;
    *zero = (uchar)(int)(z > 0.0f ? (z < 255.0f ? z : 255.0f) : 0.0f);
}

__kernel __attribute__((reqd_work_group_size(EXTREMES, 1, 1)))
void extremes(__global const float *x, ulong x_at, __global float *y, ulong y_at, int count)
{
    __local float low[EXTREMES], high[EXTREMES];
    float a = 0.0f, b = 0.0f;
    for (int i = (int)get_global_id(0); i < count; i += (int)get_global_size(0)) {
        const float v = AT(const float, x)[i];
        a = v < a ? v : a;
        b = v > b ? v : b;
    }
    widest(low, high, a, b);
    if (get_local_id(0) == 0) {
        AT(float, y)[2 * get_group_id(0)] = low[0];
        AT(float, y)[2 * get_group_id(0) + 1] = high[0];
    }
}

__kernel __attribute__((reqd_work_group_size(EXTREMES, 1, 1)))
void parameters(__global const float *x, ulong x_at, __global float *scale, ulong scale_at, __global uchar *zero,
                ulong zero_at, int count, int pairs)
{
    __local float low[EXTREMES], high[EXTREMES];
    float a = 0.0f, b = 0.0f;
    for (int i = (int)get_local_id(0); i < count; i += EXTREMES) {
        const float v = AT(const float, x)[pairs ? 2 * i : i], w = AT(const float, x)[pairs ? 2 * i + 1 : i];
        a = v < a ? v : a;
        b = w > b ? w : b;
    }
    widest(low, high, a, b);
    if (get_local_id(0) == 0) store_parameters(AT(float, scale), AT(uchar, zero), low[0], high[0]);
}

/* ---- two tensors of codes ---- */

#ifdef PAIR
typedef struct pairs {
    int rank, count;
    int extent[RANKS], a[RANKS], b[RANKS];
    float a_zero, a_factor, b_zero, b_factor, y_scale, low, high, zero;
} pairs;

/* PAIR: an expression in a and b, codes less their zero points, and p. */
__kernel void pair(__global const X_CODE *left, ulong left_at, __global const Y_CODE *right, ulong right_at,
                   __global CODE *y, ulong y_at, pairs p)
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
    const float a = (float)AT(const X_CODE, left)[at_a] - p.a_zero, b = (float)AT(const Y_CODE, right)[at_b] - p.b_zero;
    AT(CODE, y)[i] = code_of(PAIR, p.low, p.high, p.zero);
}
#endif

/* ---- tables ---- */

/* Runs of `part` elements, `whole` apart in the result. */
__kernel void look_up(__global const uchar *x, ulong x_at, __global const uchar *table, ulong table_at,
                      __global uchar *y, ulong y_at, int count, int part, int whole)
{
    const int i = (int)get_global_id(0);
    if (i < count) AT(uchar, y)[i / part * whole + i % part] = AT(const uchar, table)[AT(const uchar, x)[i]];
}

/* ---- averages ---- */

typedef struct windows {
    int in[3], out[3], kernel_[3], stride[3], dilation[3], pad[3], end[3], count, padded, zero;
    float scale, y_scale, y_zero;
} windows;

__kernel void average(__global const X_CODE *x, ulong x_at, __global CODE *y, ulong y_at, windows p)
{
    const int at = (int)get_global_id(0);
    if (at >= p.count) return;
    const int o[3] = {at / p.out[2] / p.out[1] % p.out[0], at / p.out[2] % p.out[1], at % p.out[2]},
              plane = at / (p.out[2] * p.out[1] * p.out[0]);
    __global const X_CODE *from = AT(const X_CODE, x) + plane * (p.in[0] * p.in[1] * p.in[2]);
    int start[3], first[3], last[3]; /* of taps inside the input */
    long taps = 1, divisor = 1;
    for (int a = 0; a < 3; a++) {
        const int dilation = p.dilation[a];
        start[a] = o[a] * p.stride[a] - p.pad[a];
        const int room = p.in[a] - start[a];
        first[a] = start[a] < 0 ? (dilation - 1 - start[a]) / dilation : 0;
        last[a] = min(room <= 0 ? 0 : (room + dilation - 1) / dilation, p.kernel_[a]);
        first[a] = min(first[a], last[a]);
        taps *= last[a] - first[a];
        divisor *= p.padded ? min((room + p.end[a] + dilation - 1) / dilation, p.kernel_[a]) : last[a] - first[a];
    }
    long sum = 0;
    for (int t0 = first[0]; t0 < last[0]; t0++)
        for (int t1 = first[1]; t1 < last[1]; t1++) {
            const int i0 = start[0] + t0 * p.dilation[0], i1 = start[1] + t1 * p.dilation[1];
            __global const X_CODE *line = from + (i0 * p.in[1] + i1) * p.in[2];
            for (int t2 = first[2]; t2 < last[2]; t2++) sum += line[start[2] + t2 * p.dilation[2]];
        }
    const float v = divided((float)(sum - taps * p.zero) * p.scale, (float)divisor);
    AT(CODE, y)[at] = code_of(divided(v, p.y_scale), -FAR, FAR, p.y_zero);
}
