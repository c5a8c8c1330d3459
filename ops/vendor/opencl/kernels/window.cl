/* Windows over up to three axes, an output element a work item: depthwise and transposed convolutions, and pools.
 * Invariant: each element is one sum in order of channels and taps. */
typedef struct window {
    int in[3], out[3], kernel_[3], stride[3], dilation[3], pad[3], plane; /* plane: input elements of a channel */
} window;

#ifdef FINISH
__kernel void depthwise(__global const float *x, ulong x_at, __global const float *w, ulong w_at,
#ifdef BIAS
                        __global const float *bias, ulong bias_at,
#endif
                        __global float *y, ulong y_at, window p, int count, int in_channels, int out_channels,
                        int groups FINISH_ARGUMENTS)
{
    const int at = (int)get_global_id(0);
    if (at >= count) return;
    const int o2 = at % p.out[2], o1 = at / p.out[2] % p.out[1], o0 = at / p.out[2] / p.out[1] % p.out[0],
              plane = at / (p.out[2] * p.out[1] * p.out[0]), channel = plane % out_channels;
    const int taps = p.kernel_[0] * p.kernel_[1] * p.kernel_[2];
    __global const float *from = AT(const float, x) + plane * p.plane, *filter = AT(const float, w) + channel * taps;
    float v = 0.0f;
    for (int t0 = 0; t0 < p.kernel_[0]; t0++)
        for (int t1 = 0; t1 < p.kernel_[1]; t1++)
            for (int t2 = 0; t2 < p.kernel_[2]; t2++, filter++) {
                const int i0 = o0 * p.stride[0] - p.pad[0] + t0 * p.dilation[0],
                          i1 = o1 * p.stride[1] - p.pad[1] + t1 * p.dilation[1],
                          i2 = o2 * p.stride[2] - p.pad[2] + t2 * p.dilation[2];
                if (i0 < 0 || i0 >= p.in[0] || i1 < 0 || i1 >= p.in[1] || i2 < 0 || i2 >= p.in[2]) continue;
                v = fma(from[(i0 * p.in[1] + i1) * p.in[2] + i2], *filter, v);
            }
#ifdef BIAS
    v += AT(const float, bias)[channel];
#endif
    FINISH(v, at);
    AT(float, y)[at] = v;
}

/* Weights are [input channels, output channels of a group, taps]. */
__kernel void transposed(__global const float *x, ulong x_at, __global const float *w, ulong w_at,
#ifdef BIAS
                         __global const float *bias, ulong bias_at,
#endif
                         __global float *y, ulong y_at, window p, int count, int in_channels, int out_channels,
                         int groups FINISH_ARGUMENTS)
{
    const int at = (int)get_global_id(0);
    if (at >= count) return;
    const int o2 = at % p.out[2], o1 = at / p.out[2] % p.out[1], o0 = at / p.out[2] / p.out[1] % p.out[0],
              plane = at / (p.out[2] * p.out[1] * p.out[0]), channel = plane % out_channels, image = plane / out_channels;
    const int taps = p.kernel_[0] * p.kernel_[1] * p.kernel_[2], group_in = in_channels / groups,
              group_out = out_channels / groups, group = channel / group_out;
    __global const float *from = AT(const float, x) + (image * in_channels + group * group_in) * p.plane,
                         *filters = AT(const float, w) + (group * group_in * group_out + channel % group_out) * taps;
    float v = 0.0f;
    for (int t0 = 0; t0 < p.kernel_[0]; t0++) {
        const int s0 = o0 + p.pad[0] - t0 * p.dilation[0];
        if (s0 < 0 || s0 % p.stride[0] || s0 / p.stride[0] >= p.in[0]) continue;
        for (int t1 = 0; t1 < p.kernel_[1]; t1++) {
            const int s1 = o1 + p.pad[1] - t1 * p.dilation[1];
            if (s1 < 0 || s1 % p.stride[1] || s1 / p.stride[1] >= p.in[1]) continue;
            for (int t2 = 0; t2 < p.kernel_[2]; t2++) {
                const int s2 = o2 + p.pad[2] - t2 * p.dilation[2];
                if (s2 < 0 || s2 % p.stride[2] || s2 / p.stride[2] >= p.in[2]) continue;
                const int place = (s0 / p.stride[0] * p.in[1] + s1 / p.stride[1]) * p.in[2] + s2 / p.stride[2],
                          tap = (t0 * p.kernel_[1] + t1) * p.kernel_[2] + t2;
                for (int c = 0; c < group_in; c++)
                    v = fma(from[c * p.plane + place], filters[c * group_out * taps + tap], v);
            }
        }
    }
#ifdef BIAS
    v += AT(const float, bias)[channel];
#endif
    FINISH(v, at);
    AT(float, y)[at] = v;
}
#endif

#ifdef POOL
/* POOL: MAXIMUM, or AVERAGE over the taps inside (`padded`: over those of the padded input). NaN wins in a maximum. INDICES:
 * the largest element's number too, 0 of its plane in the padding; 2: counted with the last axis slowest. */
#define MAXIMUM 1
#define AVERAGE 2
#ifndef POOLED
#define POOLED float
#define LOWEST -INFINITY
#endif

__kernel void pool(__global const POOLED *x, ulong x_at, __global POOLED *y, ulong y_at,
#ifdef INDICES
                   __global long *indices, ulong indices_at,
#endif
                   window p, int count, int padded,
                   int end0, int end1, int end2)
{
    const int at = (int)get_global_id(0), end[3] = {end0, end1, end2};
    if (at >= count) return;
    const int o[3] = {at / p.out[2] / p.out[1] % p.out[0], at / p.out[2] % p.out[1], at % p.out[2]},
              plane = at / (p.out[2] * p.out[1] * p.out[0]);
    __global const POOLED *from = AT(const POOLED, x) + plane * p.plane;
    int start[3], first[3], last[3]; /* of taps inside the input */
    float taps = 1.0f;
    for (int a = 0; a < 3; a++) {
        const int dilation = p.dilation[a];
        start[a] = o[a] * p.stride[a] - p.pad[a];
        const int room = p.in[a] - start[a];
        first[a] = start[a] < 0 ? (dilation - 1 - start[a]) / dilation : 0;
        last[a] = min(room <= 0 ? 0 : (room + dilation - 1) / dilation, p.kernel_[a]);
        first[a] = min(first[a], last[a]);
        taps *= (float)(padded ? min((room + end[a] + dilation - 1) / dilation, p.kernel_[a]) : last[a] - first[a]);
    }
    POOLED v = POOL == MAXIMUM ? LOWEST : 0;
    int best = -1;
    for (int t0 = first[0]; t0 < last[0]; t0++)
        for (int t1 = first[1]; t1 < last[1]; t1++) {
            const int i0 = start[0] + t0 * p.dilation[0], i1 = start[1] + t1 * p.dilation[1];
            __global const POOLED *line = from + (i0 * p.in[1] + i1) * p.in[2];
            for (int t2 = first[2]; t2 < last[2]; t2++) {
                const POOLED e = line[start[2] + t2 * p.dilation[2]];
                if (POOL == MAXIMUM) {
                    if (best < 0 || e > v || (e != e && v == v)) {
                        best = (int)(line - from) + start[2] + t2 * p.dilation[2];
                        v = e;
                    }
                } else
                    v += e;
            }
        }
    AT(POOLED, y)[at] = POOL == MAXIMUM ? v : v / taps;
#ifdef INDICES
    const int largest = max(best, 0), i2 = largest % p.in[2], i1 = largest / p.in[2] % p.in[1],
              i0 = largest / p.in[2] / p.in[1];
    AT(long, indices)[at] =
        (long)plane * p.plane + (INDICES == 2 ? i0 + (i1 + i2 * p.in[1]) * p.in[0] : largest);
#endif
}
#endif
