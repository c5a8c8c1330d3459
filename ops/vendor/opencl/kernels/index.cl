/* One output element a work item, whose source an index tells. */

#ifdef PAD
typedef struct pads {
    int rank, mode, count;
    int extent[RANKS], in[RANKS], stride[RANKS], begin[RANKS];
} pads;

/* The index that stands outside of [0, n) in mode 1 (reflect), 2 (edge) or 3 (wrap). */
int pad_index(int mode, long at, int n)
{
    if (mode == 2) return at < 0 ? 0 : n - 1;
    if (mode == 3) return (int)((at % n + n) % n);
    const long period = n > 1 ? 2 * ((long)n - 1) : 1, phase = (at % period + period) % period;
    return (int)(phase < n ? phase : period - phase);
}

__kernel void pad(__global const PAD *in, ulong in_at, __global PAD *out, ulong out_at, pads p, PAD fill)
{
    const int i = (int)get_global_id(0);
    if (i >= p.count) return;
    int rest = i, from = 0, outside = 0;
    for (int d = p.rank - 1; d >= 0; d--) {
        int at = rest % p.extent[d] - p.begin[d];
        rest /= p.extent[d];
        if (at < 0 || at >= p.in[d]) {
            outside |= p.mode == 0;
            at = p.mode == 0 ? 0 : pad_index(p.mode, at, p.in[d]);
        }
        from += at * p.stride[d];
    }
    AT(PAD, out)[i] = outside ? fill : AT(const PAD, in)[from];
}
#endif

#ifdef GATHER
/* Block `row` of the result, of `block` elements, begins table[row % count] units into its part of the source. */
__kernel void gather(__global const GATHER *in, ulong in_at, __global const int *table, ulong table_at,
                     __global GATHER *out, ulong out_at, int total, int count, int block, int unit, int part)
{
    const int i = (int)get_global_id(0);
    if (i >= total) return;
    const int row = i / block, from = row / count * part + AT(const int, table)[row % count] * unit + i % block;
    AT(GATHER, out)[i] = AT(const GATHER, in)[from];
}
#endif

#ifdef SCATTER
/* Block `row` of the updates, of `block` elements, goes to element table[row]; below 0: a later one goes there. */
__kernel void scatter(__global const SCATTER *in, ulong in_at, __global const int *table, ulong table_at,
                      __global SCATTER *out, ulong out_at, int total, int block)
{
    const int i = (int)get_global_id(0);
    if (i >= total) return;
    const int to = AT(const int, table)[i / block];
    if (to >= 0) AT(SCATTER, out)[to + i % block] = AT(const SCATTER, in)[i];
}
#endif

#ifdef TAPS
/* `first` is an axis's first position in the tables, of TAPS entries each; below 0: the axis stays. */
typedef struct resized {
    int rank, count;
    int extent[RANKS], stride[RANKS], first[RANKS];
} resized;

/* The sum over all combinations of taps. Those of weight 0 are not read, so that no infinity comes in by them. */
__kernel void resize(__global const float *in, ulong in_at, __global const int *index, ulong index_at,
                     __global const float *weight, ulong weight_at, __global float *out, ulong out_at, resized p)
{
    const int i = (int)get_global_id(0);
    if (i >= p.count) return;
    int rest = i, base = 0, axes = 0, combinations = 1, entry[RANKS], stride[RANKS];
    for (int d = p.rank - 1; d >= 0; d--) {
        const int at = rest % p.extent[d];
        rest /= p.extent[d];
        if (p.first[d] < 0) {
            base += at * p.stride[d];
            continue;
        }
        entry[axes] = (p.first[d] + at) * TAPS;
        stride[axes++] = p.stride[d];
        combinations *= TAPS;
    }
    float sum = 0.0f;
    for (int c = 0; c < combinations; c++) {
        int from = base, taps = c;
        float w = 1.0f;
        for (int a = 0; a < axes; a++) {
            const int at = entry[a] + taps % TAPS;
            taps /= TAPS;
            w *= AT(const float, weight)[at];
            from += AT(const int, index)[at] * stride[a];
        }
        const float x = w != 0.0f ? AT(const float, in)[from] : 0.0f;
        sum = combinations == 1 ? x : sum + w * x;
    }
    AT(float, out)[i] = sum;
}
#endif
