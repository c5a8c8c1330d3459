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
