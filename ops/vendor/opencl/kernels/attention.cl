/* Y = softmax(scale Q K^T + mask) V, with the scores of a tile in local memory.
 *
 *     group = ROWS rows of one head, ACROSS items a row; keys come in tiles of KEYS
 *     a row keeps its highest score, the sum of its weights, and Y as the tiles so far make it
 *
 * DEPTH and WIDTH are the columns of Q and V. GROUPED: a table has for each sequence the rows of its cache before this run,
 * then the position of each new row; `append_rows` has put keys and values behind them. TURN: queries and new keys are
 * turned by the angles of their positions, HALF pairs a row. Invariant: sums run over keys in order. Items beyond the last
 * row take part in barriers. */
#define GROUP 128
#define ACROSS 8
#define ROWS (GROUP / ACROSS)
#define EACH ((WIDTH + ACROSS - 1) / ACROSS)
#define LONGEST (DEPTH + 1 > WIDTH ? DEPTH + 1 : WIDTH)
/* Loops whose items all make as many turns: some compilers for processors fail on others before a barrier. */
#define TURNS(count) (((count) + GROUP - 1) / GROUP)

/* Strides of batch, head, row and column, in elements. */
typedef struct attend {
    int heads, shared, rows, keys; /* shared: heads of Q that share one of K and V */
    int q[4], k[4], v[4], y[3], mask[4];
    int mask_keys, kept, causal; /* keys from mask_keys on, and (causal) those behind the row, are left out */
    int before; /* keys before row 0's own */
    int batches, fresh, window, as_rows; /* GROUPED; as_rows: rows are the heads of one new row */
    float scale, fill, cap, alone; /* alone: what a row without keys gives */
} attend;

#ifdef GROUPED
#define TABLE_ARGUMENT , __global const int *table, ulong table_at
#else
#define TABLE_ARGUMENT
#endif

#ifdef TURN
#define ANGLE_ARGUMENTS                                                                                                \
    , __global const float *cosines, ulong cosines_at, __global const float *sines, ulong sines_at
/* Element d of a row that is turned by the angles of a position. Pairs are neighbours where INTERLEAVED is 1. */
float turned(__global const float *row, int step, int d, __global const float *cosine, __global const float *sine)
{
    if (d >= 2 * HALF) return row[d * step];
    const int pair = INTERLEAVED ? d / 2 : d % HALF, second = INTERLEAVED ? d % 2 : d / HALF;
    const float a = row[(INTERLEAVED ? 2 * pair : pair) * step], b = row[(INTERLEAVED ? 2 * pair + 1 : pair + HALF) * step];
    return second ? sine[pair] * a + cosine[pair] * b : cosine[pair] * a - sine[pair] * b;
}
#define ELEMENT(row, step, d, position)                                                                                \
    turned(row, step, d, AT(const float, cosines) + (position) * HALF, AT(const float, sines) + (position) * HALF)
#else
#define ANGLE_ARGUMENTS
#define ELEMENT(row, step, d, position) (row)[(d) * (step)]
#endif

#ifdef APPEND
typedef struct appended {
    int count, heads, rows, size; /* elements in all; heads, new rows, columns */
    int batch, head, row;         /* steps of the new rows */
    int capacity, past;           /* rows of a block, and before the new ones (GROUPED: the table has them) */
} appended;

__kernel void append_rows(__global const float *in, ulong in_at, __global float *cache, ulong cache_at TABLE_ARGUMENT
                          ANGLE_ARGUMENTS, appended p)
{
    const int i = (int)get_global_id(0);
    if (i >= p.count) return;
    const int d = i % p.size, s = i / p.size % p.rows, head = i / p.size / p.rows % p.heads,
              batch = i / p.size / p.rows / p.heads;
#ifdef GROUPED
    const int past = AT(const int, table)[batch];
#else
    const int past = p.past;
#endif
    AT(float, cache)[((batch * p.heads + head) * p.capacity + past + s) * p.size + d] =
        ELEMENT(AT(const float, in) + batch * p.batch + head * p.head + s * p.row, 1, d,
                AT(const int, table)[p.count / p.size / p.rows / p.heads + batch * p.rows + s]);
}
#elif defined(ROTATE)
/* RotaryEmbedding: x is [batch, rows, heads, size], or (PACKED 0) [batch, heads, rows, size]. POSITIONS: 0 none, 1 one
 * of each row, 2 that of the first row. */
__kernel void rotate_rows(__global const float *x, ulong x_at, __global float *y, ulong y_at ANGLE_ARGUMENTS,
#if POSITIONS
                          __global const long *ids, ulong ids_at,
#endif
                          int count, int rows, int heads, int size)
{
    const int i = (int)get_global_id(0);
    if (i >= count) return;
    const int d = i % size, row = i / size, batch = row / heads / rows,
              s = PACKED ? row / heads % rows : row % rows;
#if POSITIONS == 0
    const int position = batch * rows + s;
#elif POSITIONS == 1
    const int position = (int)AT(const long, ids)[batch * rows + s];
#else
    const int position = (int)AT(const long, ids)[0] + s;
#endif
    AT(float, y)[i] = ELEMENT(AT(const float, x) + row * size, 1, d, position);
}
#else

/* A score as the mask, which may be added (MASK), chosen (CHOICE) or both (CHOICE_ADDED), leaves it. */
#if defined(MASK)
#define MASK_ARGUMENT , __global const float *mask, ulong mask_at
#define MASKED(score, at) ((score) + AT(const float, mask)[at])
#elif defined(CHOICE)
#define MASK_ARGUMENT , __global const uchar *mask, ulong mask_at
#define MASKED(score, at) ((AT(const uchar, mask)[at] != 0) == (p.kept != 0) ? (score) : p.fill)
#elif defined(CHOICE_ADDED)
#define MASK_ARGUMENT , __global const uchar *mask, ulong mask_at
#define MASKED(score, at) ((score) + (AT(const uchar, mask)[at] ? 0.0f : -INFINITY))
#else
#define MASK_ARGUMENT
#define MASKED(score, at) (score)
#endif

/* BIASED, bit i: a bias is added to Q, K or V; it has a row of Q's heads, one of K's and one of V's. */
#ifdef BIASED
#define BIAS_ARGUMENT , __global const float *bias, ulong bias_at
#define BIAS_OF(i, at) (BIASED >> (i) & 1 ? AT(const float, bias)[at] : 0.0f)
#define Q_BIAS(d) +BIAS_OF(0, head * DEPTH + (d))
#define K_BIAS(d) +BIAS_OF(1, (p.heads + head) * DEPTH + (d))
#define V_BIAS(c) +BIAS_OF(2, 2 * p.heads * DEPTH + head * WIDTH + (c))
#else
#define BIAS_ARGUMENT
#define Q_BIAS(d)
#define K_BIAS(d)
#define V_BIAS(c)
#endif

/* A further term of the softmax's denominator for each head. */
#ifdef SINK
#define SINK_ARGUMENT , __global const float *sink, ulong sink_at
#else
#define SINK_ARGUMENT
#endif

#ifdef GROUPED
#define POSITION(s) AT(const int, table)[p.batches + batch * p.fresh + (p.as_rows ? 0 : min(s, p.rows - 1))]
#else
#define POSITION(s) 0
#endif

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void attend_rows(__global const float *q, ulong q_at, __global const float *k, ulong k_at, __global const float *v,
                 ulong v_at MASK_ARGUMENT TABLE_ARGUMENT ANGLE_ARGUMENTS SINK_ARGUMENT BIAS_ARGUMENT,
                 __global float *y, ulong y_at,
                 attend p)
{
    __local float queries[ROWS][DEPTH + 1], tile[KEYS * LONGEST], scores[ROWS][KEYS + 1];
    const int item = (int)get_local_id(0), row = item / ACROSS, lane = item % ACROSS,
              first = (int)get_group_id(0) * ROWS, s = first + row, head = (int)get_group_id(1) % p.heads,
              batch = (int)get_group_id(1) / p.heads;
    const bool within = s < p.rows;
    __global const float *from_q = AT(const float, q) + batch * p.q[0] + head * p.q[1],
                         *from_k = AT(const float, k) + batch * p.k[0] + head / p.shared * p.k[1],
                         *from_v = AT(const float, v) + batch * p.v[0] + head / p.shared * p.v[1];
    const int mask_row = batch * p.mask[0] + head * p.mask[1] + s * p.mask[2];
    float sums[EACH], highest = -INFINITY, total = 0.0f;
    for (int j = 0; j < EACH; j++) sums[j] = 0.0f;
    for (int turn = 0; turn < TURNS(ROWS * DEPTH); turn++) {
        const int e = min(item + turn * GROUP, ROWS * DEPTH - 1), r = e / DEPTH, d = e % DEPTH;
        queries[r][d] =
            first + r < p.rows ? ELEMENT(from_q + (first + r) * p.q[2], p.q[3], d, POSITION(first + r)) Q_BIAS(d) : 0.0f;
    }
#ifdef GROUPED
    const int past = AT(const int, table)[batch], end = p.causal ? past + (p.as_rows ? 0 : s) + 1 : past + p.fresh,
              begin = p.causal && p.window > 0 ? max(end - p.window, 0) : 0,
              keys = min(p.keys, past + p.fresh); /* rows behind them are unwritten */
#else
    const int begin = 0, end = p.causal ? s + p.before + 1 : p.keys, keys = p.keys;
#endif
    for (int t0 = 0; t0 < keys; t0 += KEYS) {
        for (int turn = 0; turn < TURNS(KEYS * DEPTH); turn++) {
            const int e = min(item + turn * GROUP, KEYS * DEPTH - 1), t = e / DEPTH, d = e % DEPTH;
            tile[t * (DEPTH + 1) + d] = t0 + t < keys ? from_k[(t0 + t) * p.k[2] + d * p.k[3]] K_BIAS(d) : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int t = lane; t < KEYS; t += ACROSS) {
            const int at = t0 + t;
            float score = 0.0f;
            for (int d = 0; d < DEPTH; d++) score = fma(queries[row][d], tile[t * (DEPTH + 1) + d], score);
            score *= p.scale;
            if (p.cap > 0.0f) score = p.cap * tanh(score / p.cap);
            if (within && at < keys && at < p.mask_keys) score = MASKED(score, mask_row + at * p.mask[3]);
            if (at >= keys || at >= p.mask_keys || at < begin || at >= end) score = -INFINITY;
            scores[row][t] = score;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int turn = 0; turn < TURNS(KEYS * WIDTH); turn++) {
            const int e = min(item + turn * GROUP, KEYS * WIDTH - 1), t = e / WIDTH, c = e % WIDTH;
            tile[e] = t0 + t < keys ? from_v[(t0 + t) * p.v[2] + c * p.v[3]] V_BIAS(c) : 0.0f;
        }
        float top = highest, weights = 0.0f;
        for (int t = 0; t < KEYS; t++) top = larger(top, scores[row][t]);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int t = lane; t < KEYS; t += ACROSS)
            scores[row][t] = top == -INFINITY || t0 + t >= keys ? 0.0f : exp(scores[row][t] - top);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int t = 0; t < KEYS; t++) weights += scores[row][t];
        /* Weights are divided by their sum at once: Y stays in the range of V. */
        const float before = highest == top ? total : total * exp(highest - top), after = before + weights,
                    keep = after == 0.0f ? 0.0f : before / after, part = after == 0.0f ? 0.0f : 1.0f / after;
        for (int j = 0; j < EACH; j++) sums[j] *= keep;
        for (int t = 0; t < KEYS; t++) {
            const float weight = scores[row][t] * part;
            for (int j = 0; j < EACH; j++) {
                const int c = lane + j * ACROSS;
                if (c < WIDTH) sums[j] = fma(weight, tile[t * WIDTH + c], sums[j]);
            }
        }
        highest = top;
        total = after;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
#if defined(SINK) || defined(SMOOTH)
#ifdef SINK
    const float extra = AT(const float, sink)[p.as_rows ? head * p.rows + min(s, p.rows - 1) : head];
#else
    const float extra = 0.0f;
#endif
    const float all = larger(highest, extra), own = total * exp(highest - all), share = own / (own + exp(extra - all));
    for (int j = 0; j < EACH; j++) sums[j] *= share;
#endif
    if (!within) return;
    __global float *to = AT(float, y) + batch * p.y[0] + head * p.y[1] + s * p.y[2];
    for (int j = 0; j < EACH; j++) {
        const int c = lane + j * ACROSS;
        if (c < WIDTH) to[c] = highest == -INFINITY ? p.alone : sums[j];
    }
}
#endif
