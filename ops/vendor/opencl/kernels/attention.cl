/* Y = softmax(scale Q K^T + mask) V, with the scores of a tile in local memory.
 *
 *     group = ROWS rows of one head, ACROSS items a row; keys come in tiles of KEYS
 *     a row keeps its highest score, the sum of its weights, and Y as the tiles so far make it
 *
 * DEPTH and WIDTH are the columns of Q and V. Invariant: sums run over keys in order. Items beyond the last row take part in
 * barriers. */
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
    float scale, fill, cap, alone; /* alone: what a row without keys gives */
} attend;

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

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void attend_rows(__global const float *q, ulong q_at, __global const float *k, ulong k_at, __global const float *v,
                 ulong v_at MASK_ARGUMENT, __global float *y, ulong y_at, attend p)
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
        queries[r][d] = first + r < p.rows ? from_q[(first + r) * p.q[2] + d * p.q[3]] : 0.0f;
    }
    for (int t0 = 0; t0 < p.keys; t0 += KEYS) {
        for (int turn = 0; turn < TURNS(KEYS * DEPTH); turn++) {
            const int e = min(item + turn * GROUP, KEYS * DEPTH - 1), t = e / DEPTH, d = e % DEPTH;
            tile[t * (DEPTH + 1) + d] = t0 + t < p.keys ? from_k[(t0 + t) * p.k[2] + d * p.k[3]] : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int t = lane; t < KEYS; t += ACROSS) {
            const int at = t0 + t;
            float score = 0.0f;
            for (int d = 0; d < DEPTH; d++) score = fma(queries[row][d], tile[t * (DEPTH + 1) + d], score);
            score *= p.scale;
            if (p.cap > 0.0f) score = p.cap * tanh(score / p.cap);
            if (within && at < p.keys && at < p.mask_keys) score = MASKED(score, mask_row + at * p.mask[3]);
            if (at >= p.keys || at >= p.mask_keys || (p.causal && at > s)) score = -INFINITY;
            scores[row][t] = score;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int turn = 0; turn < TURNS(KEYS * WIDTH); turn++) {
            const int e = min(item + turn * GROUP, KEYS * WIDTH - 1), t = e / WIDTH, c = e % WIDTH;
            tile[e] = t0 + t < p.keys ? from_v[(t0 + t) * p.v[2] + c * p.v[3]] : 0.0f;
        }
        float top = highest, weights = 0.0f;
        for (int t = 0; t < KEYS; t++) top = larger(top, scores[row][t]);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int t = lane; t < KEYS; t += ACROSS)
            scores[row][t] = top == -INFINITY || t0 + t >= p.keys ? 0.0f : exp(scores[row][t] - top);
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
    if (!within) return;
    __global float *to = AT(float, y) + batch * p.y[0] + head * p.y[1] + s * p.y[2];
    for (int j = 0; j < EACH; j++) {
        const int c = lane + j * ACROSS;
        if (c < WIDTH) to[c] = highest == -INFINITY ? p.alone : sums[j];
    }
}
