/* Products of 8-bit codes, S = (A - zero of the row) (B - zero of the column), summed in 32 bits that wrap around, and what
 * becomes of a sum: itself (SUMS), float factor + bias (FLOATS), or a code (CODES). With WINDOW a convolution: A are its
 * filters, B its windows, and padding has the zero point's code; factors, zero points and int32 biases are those of rows.
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
    float middle_low, middle_high, middle_factor, residual_factor;
    int residual_zero;
    int in[3], out[3], kernel_[3], stride[3], dilation[3], pad[3]; /* of WINDOW */
    int plane, groups, group_in;                                   /* plane: input elements of a channel */
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

#ifndef RESIDUAL
#define RESIDUAL char
#define ALONE
#endif

/* What is stored of sum `s`; `other` is the residual's code. */
OUT finished(const codes *p, uint s, float factor, float bias, int other)
{
#ifdef SUMS
    return (int)s;
#else
    float v = (float)(int)s * factor;
#ifdef BIAS
    v = v + bias;
#endif
#ifdef CODES
#ifndef ALONE
#ifdef MIDDLE
    v = v > p->middle_low ? v : p->middle_low;
    v = rint(v < p->middle_high ? v : p->middle_high) * p->middle_factor;
#endif
    v = v + (float)(other - p->residual_zero) * p->residual_factor;
#endif
    v = v > p->low ? v : p->low;
    v = v < p->high ? v : p->high;
    v = rint(v) + p->zero;
    v = v > p->least ? v : p->least;
    return (OUT)(int)(v < p->most ? v : p->most);
#else
    return v;
#endif
#endif
}

/* The operands behind A and B, which both kernels have. */
#ifdef A_ZERO
#define A_ZERO_ARGUMENT , __global const A_CODE *a_zero, ulong a_zero_at
#define A_ZERO_OF(line) (uint)(int)AT(const A_CODE, a_zero)[(line) * p.a_zero_step]
#else
#define A_ZERO_ARGUMENT
#define A_ZERO_OF(line) 0u
#endif
#ifdef B_ZERO
#define B_ZERO_ARGUMENT , __global const B_CODE *b_zero, ulong b_zero_at
#define B_ZERO_OF(line) (uint)(int)AT(const B_CODE, b_zero)[(line) * p.b_zero_step]
#else
#define B_ZERO_ARGUMENT
#define B_ZERO_OF(line) 0u
#endif
#ifdef ADDED
#define ADDED_ARGUMENT , __global const int *added, ulong added_at
#define ADDED_OF(at) (uint)AT(const int, added)[at]
#else
#define ADDED_ARGUMENT
#define ADDED_OF(at) 0u
#endif
#ifndef SUMS
#define FACTORS_ARGUMENT , __global const float *factors, ulong factors_at
#define FACTOR_OF(line) AT(const float, factors)[(line) * p.factor_step]
#else
#define FACTORS_ARGUMENT
#define FACTOR_OF(line) 0.0f
#endif
#ifdef BIAS
#define BIAS_ARGUMENT , __global const float *bias, ulong bias_at
#define BIAS_OF(line) AT(const float, bias)[line]
#else
#define BIAS_ARGUMENT
#define BIAS_OF(line) 0.0f
#endif
#ifdef ALONE
#define RESIDUAL_ARGUMENT
#define RESIDUAL_OF(at) 0
#else
#define RESIDUAL_ARGUMENT , __global const RESIDUAL *residual, ulong residual_at
#define RESIDUAL_OF(at) (int)AT(const RESIDUAL, residual)[at]
#endif
#define OPERANDS                                                                                                       \
    __global const A_CODE *left, ulong left_at, __global const B_CODE *right, ulong right_at A_ZERO_ARGUMENT           \
        B_ZERO_ARGUMENT ADDED_ARGUMENT FACTORS_ARGUMENT BIAS_ARGUMENT RESIDUAL_ARGUMENT, __global OUT *out,            \
        ulong out_at

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

#ifdef WINDOW
/* The code under tap k % volume of channel k / volume, of the window at output position `column`. */
uchar window_code(__global const B_CODE *b, const codes *p, int k, int column, uchar padding)
{
    const int volume = p->kernel_[0] * p->kernel_[1] * p->kernel_[2], tap = k % volume;
    const int i2 = column % p->out[2] * p->stride[2] - p->pad[2] + tap % p->kernel_[2] * p->dilation[2],
              i1 = column / p->out[2] % p->out[1] * p->stride[1] - p->pad[1] +
                   tap / p->kernel_[2] % p->kernel_[1] * p->dilation[1],
              i0 = column / p->out[2] / p->out[1] * p->stride[0] - p->pad[0] +
                   tap / p->kernel_[2] / p->kernel_[1] * p->dilation[0];
    if (i0 < 0 || i0 >= p->in[0] || i1 < 0 || i1 >= p->in[1] || i2 < 0 || i2 >= p->in[2]) return padding;
    return (uchar)b[k / volume * p->plane + (i0 * p->in[1] + i1) * p->in[2] + i2];
}

/* One output element a work item, for groups of few filters. */
__kernel void convolve_codes(OPERANDS, codes p, int count)
{
    const int to = (int)get_global_id(0);
    if (to >= count) return;
    const int spatial = p.out[0] * p.out[1] * p.out[2], plane = to / spatial, at = to % spatial,
              channels = p.groups * p.rows, line = plane % channels, group = line / p.rows;
    __global const B_CODE *b =
        AT(const B_CODE, right) + (plane / channels * p.groups + group) * p.group_in * p.plane;
    __global const A_CODE *a = AT(const A_CODE, left) + line * p.depth;
    const int za = (int)A_ZERO_OF(line), zb = (int)B_ZERO_OF(0), o2 = at % p.out[2] * p.stride[2] - p.pad[2],
              o1 = at / p.out[2] % p.out[1] * p.stride[1] - p.pad[1],
              o0 = at / p.out[2] / p.out[1] * p.stride[0] - p.pad[0];
    uint s = 0;
    for (int c = 0; c < p.group_in; c++, b += p.plane)
        for (int t0 = 0; t0 < p.kernel_[0]; t0++)
            for (int t1 = 0; t1 < p.kernel_[1]; t1++)
                for (int t2 = 0; t2 < p.kernel_[2]; t2++, a++) {
                    const int i0 = o0 + t0 * p.dilation[0], i1 = o1 + t1 * p.dilation[1], i2 = o2 + t2 * p.dilation[2];
                    if (i0 < 0 || i0 >= p.in[0] || i1 < 0 || i1 >= p.in[1] || i2 < 0 || i2 >= p.in[2]) continue;
                    s += (uint)(((int)*a - za) * ((int)b[(i0 * p.in[1] + i1) * p.in[2] + i2] - zb));
                }
    AT(OUT, out)[to] = finished(&p, s + ADDED_OF(line), FACTOR_OF(line), BIAS_OF(line), RESIDUAL_OF(to));
}

/* The transposed one: an output element gathers the inputs that reach it. Weights are [channels, filters of a group, taps]. */
__kernel void transpose_codes(OPERANDS, codes p, int count)
{
    const int to = (int)get_global_id(0);
    if (to >= count) return;
    const int spatial = p.out[0] * p.out[1] * p.out[2], plane = to / spatial, at = to % spatial,
              channels = p.groups * p.rows, line = plane % channels, group = line / p.rows,
              volume = p.kernel_[0] * p.kernel_[1] * p.kernel_[2];
    __global const B_CODE *b =
        AT(const B_CODE, right) + (plane / channels * p.groups + group) * p.group_in * p.plane;
    __global const A_CODE *a =
        AT(const A_CODE, left) + (group * p.group_in * p.rows + line % p.rows) * volume;
    const int za = (int)A_ZERO_OF(line), zb = (int)B_ZERO_OF(0);
    uint s = 0;
    for (int tap = 0; tap < volume; tap++) {
        const int s2 = at % p.out[2] + p.pad[2] - tap % p.kernel_[2] * p.dilation[2],
                  s1 = at / p.out[2] % p.out[1] + p.pad[1] - tap / p.kernel_[2] % p.kernel_[1] * p.dilation[1],
                  s0 = at / p.out[2] / p.out[1] + p.pad[0] - tap / p.kernel_[2] / p.kernel_[1] * p.dilation[0];
        if (s0 < 0 || s0 % p.stride[0] || s0 / p.stride[0] >= p.in[0] || s1 < 0 || s1 % p.stride[1] ||
            s1 / p.stride[1] >= p.in[1] || s2 < 0 || s2 % p.stride[2] || s2 / p.stride[2] >= p.in[2])
            continue;
        const int from = (s0 / p.stride[0] * p.in[1] + s1 / p.stride[1]) * p.in[2] + s2 / p.stride[2];
        for (int c = 0; c < p.group_in; c++)
            s += (uint)(((int)a[c * p.rows * volume + tap] - za) * ((int)b[c * p.plane + from] - zb));
    }
    AT(OUT, out)[to] = finished(&p, s + ADDED_OF(line), FACTOR_OF(line), BIAS_OF(line), RESIDUAL_OF(to));
}
#define LINE (row + (int)get_global_id(2) % p.groups * p.rows)
#define ADDED_AT LINE
#define B_CODE_OF(k, column) window_code(b, &p, k, column, padding)
#else
#define LINE column
#define ADDED_AT (row * p.added_row + column * p.added_column)
#define B_CODE_OF(k, column) b[(k) * p.b_depth + (column) * p.b_column]
#endif

__kernel __attribute__((reqd_work_group_size(SIDE, SIDE, 1)))
void multiply_codes(OPERANDS, codes p)
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
#ifdef WINDOW
    const uchar padding = (uchar)B_ZERO_OF(0);
#endif
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
                    b_word |= (uint)(uchar)B_CODE_OF(k, column) << (8 * i);
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
            const int to = c_from + row * p.c_row + column;
#ifdef WINDOW
            const uint za = A_ZERO_OF(LINE), zb = (uint)(int)(B_CODE)padding;
#else
            const uint za = A_ZERO_OF(row), zb = B_ZERO_OF(column);
#endif
            const uint s = (uint)sum[i][j] + (uint)p.depth * za * zb - za * (uint)of_column[j] - zb * (uint)of_row[i];
            AT(OUT, out)[to] =
                finished(&p, s + ADDED_OF(ADDED_AT), FACTOR_OF(LINE), BIAS_OF(LINE), RESIDUAL_OF(to));
        }
}
