/* Products of matrices, C = finish(alpha A B + beta bias), and convolutions as such: B is then what a window sees.
 *
 *     group of SIDE x SIDE items = a tile of SIDE EACH rows and columns of C, EACH x EACH sums an item
 *     A's and B's parts of STEP depths lie in local memory
 *
 * A product of few rows (FEW) reads each element of B once: PARTS items of a group share the depths of a column.
 *
 * Invariant: each element is one sum in order of depth, or PARTS of them added in order, whatever the device. */
#define SIDE 8
#define EACH 4
#define TILE (SIDE * EACH)
#define STEP 16
#define BATCHES 8

typedef struct product {
    int rows, columns, depth, batch_rank;
    int batch[BATCHES], a_batch[BATCHES], b_batch[BATCHES], c_batch[BATCHES]; /* extents; steps in elements */
    int a_row, a_depth, b_depth, b_column, c_row, bias_row, bias_column, bias_batch;
    float alpha, beta;
    int in[3], out[3], kernel_[3], stride[3], dilation[3], pad[3], plane; /* of a window; plane: elements of a channel */
} product;

#ifdef WINDOW
/* The element of a group's channels that column `n` meets at depth `k`; 0 in the padding. */
float seen(__global const float *x, const product *p, int k, int n)
{
    const int t2 = k % p->kernel_[2], t1 = k / p->kernel_[2] % p->kernel_[1], u = k / p->kernel_[2] / p->kernel_[1],
              t0 = u % p->kernel_[0], channel = u / p->kernel_[0];
    const int i2 = n % p->out[2] * p->stride[2] - p->pad[2] + t2 * p->dilation[2],
              i1 = n / p->out[2] % p->out[1] * p->stride[1] - p->pad[1] + t1 * p->dilation[1],
              i0 = n / p->out[2] / p->out[1] * p->stride[0] - p->pad[0] + t0 * p->dilation[0];
    if (i0 < 0 || i0 >= p->in[0] || i1 < 0 || i1 >= p->in[1] || i2 < 0 || i2 >= p->in[2]) return 0.0f;
    return x[channel * p->plane + (i0 * p->in[1] + i1) * p->in[2] + i2];
}
#define RIGHT(k, n) seen(b, &p, k, n)
#elif defined(HALF)
#define RIGHT(k, n) vload_half((k) * p.b_depth + (n) * p.b_column, b)
#else
#define RIGHT(k, n) b[(k) * p.b_depth + (n) * p.b_column]
#endif

/* HALF: B's elements are halves, which widen as they are read. No device needs an extension for that. */
#ifdef HALF
#define RIGHT_TYPE half
#else
#define RIGHT_TYPE float
#endif

/* Where the product's operands of global index `rest` begin. */
typedef struct beginnings {
    int a, b, c;
} beginnings;

beginnings begin_of(const product *p, int rest)
{
    beginnings at = {0, 0, 0};
    for (int d = p->batch_rank - 1; d >= 0; d--) {
        const int i = rest % p->batch[d];
        rest /= p->batch[d];
        at.a += i * p->a_batch[d];
        at.b += i * p->b_batch[d];
        at.c += i * p->c_batch[d];
    }
    return at;
}

#ifndef FEW
__kernel __attribute__((reqd_work_group_size(SIDE, SIDE, 1)))
void multiply(__global const float *left, ulong left_at, __global const RIGHT_TYPE *right, ulong right_at,
#ifdef BIAS
              __global const float *bias, ulong bias_at,
#endif
              __global float *out, ulong out_at, product p FINISH_ARGUMENTS)
{
    __local float a_part[STEP][TILE], b_part[STEP][TILE];
    const int x = (int)get_local_id(0), y = (int)get_local_id(1), item = y * SIDE + x;
    const int column0 = (int)get_group_id(0) * TILE, row0 = (int)get_group_id(1) * TILE;
    const beginnings from = begin_of(&p, (int)get_global_id(2));
    __global const float *a = AT(const float, left) + from.a;
    __global const RIGHT_TYPE *b = AT(const RIGHT_TYPE, right) + from.b;
    float sum[EACH][EACH];
    for (int i = 0; i < EACH; i++)
        for (int j = 0; j < EACH; j++) sum[i][j] = 0.0f;
    for (int k0 = 0; k0 < p.depth; k0 += STEP) {
        for (int e = item; e < STEP * TILE; e += SIDE * SIDE) {
            const int in_tile = e % TILE, k = k0 + e / TILE;
            const bool within = k < p.depth;
            /* along the depth where A's rows are apart, so that neighbours read neighbours */
            a_part[e / TILE][in_tile] =
                within && row0 + in_tile < p.rows ? a[(row0 + in_tile) * p.a_row + k * p.a_depth] : 0.0f;
            b_part[e / TILE][in_tile] = within && column0 + in_tile < p.columns ? RIGHT(k, column0 + in_tile) : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const int steps = p.depth - k0 < STEP ? p.depth - k0 : STEP;
        for (int k = 0; k < steps; k++) {
            float a_row[EACH], b_row[EACH];
            for (int i = 0; i < EACH; i++) a_row[i] = a_part[k][y + i * SIDE];
            for (int j = 0; j < EACH; j++) b_row[j] = b_part[k][x + j * SIDE];
            for (int i = 0; i < EACH; i++)
                for (int j = 0; j < EACH; j++) sum[i][j] = fma(a_row[i], b_row[j], sum[i][j]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int i = 0; i < EACH; i++)
        for (int j = 0; j < EACH; j++) {
            const int row = row0 + y + i * SIDE, column = column0 + x + j * SIDE;
            if (row >= p.rows || column >= p.columns) continue;
            const int at = from.c + row * p.c_row + column;
            float v = p.alpha * sum[i][j];
#ifdef BIAS
            v += p.beta * AT(const float, bias)[row * p.bias_row + column * p.bias_column +
                                                (int)get_global_id(2) % p.bias_batch * p.rows * p.bias_row];
#endif
            FINISH(v, at);
            AT(float, out)[at] = v;
        }
}
#else

/* B's rows are contiguous, or (DOWN) its columns: neighbouring items read neighbouring elements. */
#ifdef DOWN
#define WIDE 1
#define PARTS 16
#else
#define WIDE 4
#define PARTS 8
#endif
#define ITEMS 64
#define ACROSS (ITEMS / PARTS)

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void multiply_few(__global const float *left, ulong left_at, __global const RIGHT_TYPE *right, ulong right_at,
#ifdef BIAS
                  __global const float *bias, ulong bias_at,
#endif
                  __global float *out, ulong out_at, product p FINISH_ARGUMENTS)
{
    __local float sums[FEW][PARTS][ACROSS * WIDE];
    const int item = (int)get_local_id(0);
#ifdef DOWN
    const int part = item % PARTS, x = item / PARTS;
#else
    const int part = item / ACROSS, x = item % ACROSS * WIDE;
#endif
    const int column = (int)get_group_id(0) * ACROSS * WIDE + x;
    const beginnings from = begin_of(&p, (int)get_global_id(2));
    __global const float *a = AT(const float, left) + from.a;
    __global const RIGHT_TYPE *b = AT(const RIGHT_TYPE, right) + from.b;
    float sum[FEW][WIDE];
    for (int r = 0; r < FEW; r++)
        for (int j = 0; j < WIDE; j++) sum[r][j] = 0.0f;
    for (int k = part; k < p.depth; k += PARTS) {
        float w[WIDE];
        for (int j = 0; j < WIDE; j++) w[j] = column + j < p.columns ? RIGHT(k, column + j) : 0.0f;
        for (int r = 0; r < FEW; r++) {
            const float e = a[min(r, p.rows - 1) * p.a_row + k * p.a_depth];
            for (int j = 0; j < WIDE; j++) sum[r][j] = fma(e, w[j], sum[r][j]);
        }
    }
    for (int r = 0; r < FEW; r++)
        for (int j = 0; j < WIDE; j++) sums[r][part][x + j] = sum[r][j];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = item; e < FEW * ACROSS * WIDE; e += ITEMS) {
        const int row = e / (ACROSS * WIDE), x_of = e % (ACROSS * WIDE), to = (int)get_group_id(0) * ACROSS * WIDE + x_of;
        if (row >= p.rows || to >= p.columns) continue;
        float v = 0.0f;
        for (int i = 0; i < PARTS; i++) v += sums[row][i][x_of];
        v *= p.alpha;
#ifdef BIAS
        v += p.beta * AT(const float, bias)[row * p.bias_row + to * p.bias_column];
#endif
        const int at = from.c + row * p.c_row + to;
        FINISH(v, at);
        AT(float, out)[at] = v;
    }
}
#endif
