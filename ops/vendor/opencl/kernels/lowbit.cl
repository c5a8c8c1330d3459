/* Y = A B + bias with B in codes of BITS bits, block by block of BLOCK depths: b[k][n] = (code - zero) scale.
 *
 *     group = COLUMNS columns of FEW rows, PARTS items a column; item i of them reads words i, i + PARTS, ... of the column
 *
 * A word of 32 bits has CODES codes, all of one block. ZERO: 0 none (half the codes' range), 1 codes in whole bytes a column,
 * 2 numbers. Invariant: each element is PARTS sums in order of depth, added in order. */
#define ITEMS 64
#define PARTS 16
#define COLUMNS (ITEMS / PARTS)
#define CODES (32 / BITS)
#define MASK ((1u << BITS) - 1u)

typedef struct lowbit {
    int rows, columns, depth, words, blocks, zero_row; /* words of a column; zero_row: bytes of a column's zero points */
} lowbit;

#if ZERO == 1
#define ZERO_TYPE uchar
#define ZERO_AT(n, block)                                                                                              \
    (float)(AT(const uchar, zeros)[(n) * p.zero_row + (block) * BITS / 8] >> ((block) * BITS % 8) & MASK)
#elif ZERO == 2
#define ZERO_TYPE float
#define ZERO_AT(n, block) AT(const float, zeros)[(n) * p.blocks + (block)]
#else
#define ZERO_AT(n, block) (float)(1 << (BITS - 1))
#endif

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void multiply_bits(__global const float *left, ulong left_at, __global const uint *codes, ulong codes_at,
                   __global const float *scales, ulong scales_at,
#if ZERO
                   __global const ZERO_TYPE *zeros, ulong zeros_at,
#endif
#ifdef BIAS
                   __global const float *bias, ulong bias_at,
#endif
                   __global float *out, ulong out_at, lowbit p)
{
    __local float sums[FEW][COLUMNS][PARTS];
    const int item = (int)get_local_id(0), part = item % PARTS, x = item / PARTS, row0 = (int)get_group_id(1) * FEW;
    const int column = (int)get_group_id(0) * COLUMNS + x, n = min(column, p.columns - 1);
    __global const float *a = AT(const float, left);
    float sum[FEW];
    for (int r = 0; r < FEW; r++) sum[r] = 0.0f;
    for (int w = part; w < p.words; w += PARTS) {
        const int k0 = w * CODES, block = k0 / BLOCK, codes_here = min(CODES, p.depth - k0);
        const uint word = AT(const uint, codes)[n * p.words + w];
        const float zero = ZERO_AT(n, block), scale = AT(const float, scales)[n * p.blocks + block];
        for (int r = 0; r < FEW; r++) {
            __global const float *from = a + min(row0 + r, p.rows - 1) * p.depth + k0;
            float of_word = 0.0f;
            for (int i = 0; i < codes_here; i++)
                of_word = fma(from[i], (float)(word >> (i * BITS) & MASK) - zero, of_word);
            sum[r] = fma(of_word, scale, sum[r]);
        }
    }
    for (int r = 0; r < FEW; r++) sums[r][x][part] = sum[r];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = item; e < FEW * COLUMNS; e += ITEMS) {
        const int row = row0 + e / COLUMNS, to = (int)get_group_id(0) * COLUMNS + e % COLUMNS;
        if (row >= p.rows || to >= p.columns) continue;
        float v = 0.0f;
        for (int i = 0; i < PARTS; i++) v += sums[e / COLUMNS][e % COLUMNS][i];
#ifdef BIAS
        v += AT(const float, bias)[to];
#endif
        AT(float, out)[row * p.columns + to] = v;
    }
}
