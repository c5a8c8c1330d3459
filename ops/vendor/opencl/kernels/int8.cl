/* Products of 8-bit codes, S = (A - zero of the row) (B - zero of the column), summed in 32 bits that wrap around, and what
 * becomes of a sum: itself (SUMS), float factor + bias (FLOATS), or a code (CODES).
 *
 *     group of SIDE x SIDE items = a tile of SIDE EACH rows and columns, EACH x EACH sums an item
 *     words of 4 codes along the depth lie in local memory; zero points are taken out of the sums at the end
 *
 * Invariant: results are the host's bits. Codes beyond the depth are 0. */
#pragma OPENCL FP_CONTRACT OFF
#define SIDE 8
#define EACH 4
#define TILE (SIDE * EACH)
#define STEP 8
#define BATCHES 8

typedef struct codes {
    int rows, columns, depth, batch_rank;
    int batch[BATCHES], a_batch[BATCHES], b_batch[BATCHES], c_batch[BATCHES];
    int a_row, a_depth, b_depth, b_column, c_row;
    int a_zero_step, b_zero_step, factor_step, added_row, added_column;
    float low, high, zero, least, most; /* of CODES: bounds of the sum, the zero point, bounds of the type */
} codes;

#if A_SIGNED
#define A_CODE char
#else
#define A_CODE uchar
#endif
#if B_SIGNED
#define B_CODE char
#else
#define B_CODE uchar
#endif

#if defined(cl_khr_integer_dot_product) && defined(__opencl_c_integer_dot_product_input_4x8bit_packed)
#pragma OPENCL EXTENSION cl_khr_integer_dot_product : enable
#if A_SIGNED && B_SIGNED
#define DOT(a, b) dot_4x8packed_ss_int(a, b)
#elif A_SIGNED
#define DOT(a, b) dot_4x8packed_su_int(a, b)
#elif B_SIGNED
#define DOT(a, b) dot_4x8packed_us_int(a, b)
#else
#define DOT(a, b) (int)dot_4x8packed_uu_uint(a, b)
#endif
#else
#define BYTE(type, word, i) (int)(type)((word) >> (8 * (i)) & 255u)
#define PART(a, b, i) BYTE(A_CODE, a, i) * BYTE(B_CODE, b, i)
#define DOT(a, b) (PART(a, b, 0) + PART(a, b, 1) + PART(a, b, 2) + PART(a, b, 3))
#endif

/* The sum of a word's codes. */
int a_sum(uint word)
{
    return (int)(A_CODE)(word & 255u) + (int)(A_CODE)(word >> 8 & 255u) + (int)(A_CODE)(word >> 16 & 255u) +
           (int)(A_CODE)(word >> 24);
}

int b_sum(uint word)
{
    return (int)(B_CODE)(word & 255u) + (int)(B_CODE)(word >> 8 & 255u) + (int)(B_CODE)(word >> 16 & 255u) +
           (int)(B_CODE)(word >> 24);
}

__kernel __attribute__((reqd_work_group_size(SIDE, SIDE, 1)))
void multiply_codes(__global const A_CODE *left, ulong left_at, __global const B_CODE *right, ulong right_at,
#ifdef A_ZERO
                    __global const A_CODE *a_zero, ulong a_zero_at,
#endif
#ifdef B_ZERO
                    __global const B_CODE *b_zero, ulong b_zero_at,
#endif
#ifdef ADDED
                    __global const int *added, ulong added_at,
#endif
#ifndef SUMS
                    __global const float *factors, ulong factors_at,
#endif
#ifdef BIAS
                    __global const float *bias, ulong bias_at,
#endif
                    __global OUT *out, ulong out_at, codes p)
{
    __local uint a_part[STEP][TILE], b_part[STEP][TILE];
    const int x = (int)get_local_id(0), y = (int)get_local_id(1), item = y * SIDE + x;
    const int column0 = (int)get_group_id(0) * TILE, row0 = (int)get_group_id(1) * TILE;
    int rest = (int)get_global_id(2), a_from = 0, b_from = 0, c_from = 0;
    for (int d = p.batch_rank - 1; d >= 0; d--) {
        const int at = rest % p.batch[d];
        rest /= p.batch[d];
        a_from += at * p.a_batch[d];
        b_from += at * p.b_batch[d];
        c_from += at * p.c_batch[d];
    }
    __global const A_CODE *a = AT(const A_CODE, left) + a_from;
    __global const B_CODE *b = AT(const B_CODE, right) + b_from;
    int sum[EACH][EACH], of_row[EACH], of_column[EACH];
    for (int i = 0; i < EACH; i++) {
        of_row[i] = of_column[i] = 0;
        for (int j = 0; j < EACH; j++) sum[i][j] = 0;
    }
    for (int k0 = 0; k0 < p.depth; k0 += 4 * STEP) {
        for (int e = item; e < STEP * TILE; e += SIDE * SIDE) {
            const int row = row0 + e % TILE, column = column0 + e % TILE;
            uint a_word = 0, b_word = 0;
            for (int i = 0; i < 4; i++) {
                const int k = k0 + e / TILE * 4 + i;
                if (k < p.depth && row < p.rows)
                    a_word |= (uint)(uchar)a[row * p.a_row + k * p.a_depth] << (8 * i);
                if (k < p.depth && column < p.columns)
                    b_word |= (uint)(uchar)b[k * p.b_depth + column * p.b_column] << (8 * i);
            }
            a_part[e / TILE][e % TILE] = a_word;
            b_part[e / TILE][e % TILE] = b_word;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int w = 0; w < STEP; w++) {
            uint a_row[EACH], b_row[EACH];
            for (int i = 0; i < EACH; i++) {
                a_row[i] = a_part[w][y + i * SIDE];
                b_row[i] = b_part[w][x + i * SIDE];
                of_row[i] += a_sum(a_row[i]);
                of_column[i] += b_sum(b_row[i]);
            }
            for (int i = 0; i < EACH; i++)
                for (int j = 0; j < EACH; j++) sum[i][j] += DOT(a_row[i], b_row[j]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int i = 0; i < EACH; i++)
        for (int j = 0; j < EACH; j++) {
            const int row = row0 + y + i * SIDE, column = column0 + x + j * SIDE;
            if (row >= p.rows || column >= p.columns) continue;
            uint s = (uint)sum[i][j], za = 0, zb = 0;
#ifdef A_ZERO
            za = (uint)(int)AT(const A_CODE, a_zero)[row * p.a_zero_step];
#endif
#ifdef B_ZERO
            zb = (uint)(int)AT(const B_CODE, b_zero)[column * p.b_zero_step];
#endif
            s += (uint)p.depth * za * zb - za * (uint)of_column[j] - zb * (uint)of_row[i];
#ifdef ADDED
            s += (uint)AT(const int, added)[row * p.added_row + column * p.added_column];
#endif
            const int to = c_from + row * p.c_row + column;
#ifdef SUMS
            AT(OUT, out)[to] = (int)s;
#else
            float v = (float)(int)s * AT(const float, factors)[column * p.factor_step];
#ifdef BIAS
            v = v + AT(const float, bias)[column];
#endif
#ifdef CODES
            v = v > p.low ? v : p.low;
            v = v < p.high ? v : p.high;
            v = rint(v) + p.zero;
            v = v > p.least ? v : p.least;
            AT(OUT, out)[to] = (OUT)(int)(v < p.most ? v : p.most);
#else
            AT(OUT, out)[to] = v;
#endif
#endif
        }
}
