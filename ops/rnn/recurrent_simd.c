/* Recurrent steps for one instruction set (compiled once per PRN_SIMD). A tile is some rows by one block of units: one
 * vector of sums per row and gate stays in registers while k runs, then the cell's functions work on them at once.
 * Invariant: the sum for an element is formed in an order that depends on `hidden`, the gates and the step's rows
 * alone, the same for every instruction set. */
#include "ops/rnn/recurrent_simd.h"
#include "base/integers.h"
#include "base/cpu/simd.h"
#include "ops/kernels/vector/vec_math.h"

/* Sums that a tile keeps in registers beside the weights, and fewest that hide the latency of multiply-add. */
#define MOST_SUMS (VEC_LANES == 16 ? 24 : 12)
#define FEWEST_SUMS 8
#define MOST_ROWS 8
#define TALL_ROWS (MOST_SUMS / 2) /* of tiles with the sums of two gates */
#define AHEAD 24                  /* elements of the state whose weights are fetched before they are multiplied */

/* ---- functions, within a few ulp, where exponents stay normal: beyond that the result is 1 or -1 in all its bits, or
 * less than 10^-26 */

VEC_INLINE vf recurrent_simd_bounded(vf x, float limit)
{
    return v_smaller(v_larger(x, v_splat(-limit)), v_splat(limit));
}

/* 1 / sigmoid(x) */
VEC_INLINE vf inverse_sigmoid(vf x)
{
    return v_exp_bounded(recurrent_simd_bounded(-x, 60.0f)) + 1.0f;
}

VEC_INLINE vf recurrent_simd_sigmoid(vf x)
{
    return 1.0f / inverse_sigmoid(x);
}

/* e^2x - 1 without cancellation. */
VEC_INLINE vf tangent(vf x)
{
    vi n;
    const vf t = recurrent_simd_bounded(x, 10.0f);
    const vf r = v_reduce_ln2(t + t, &n);
    const vf power = (vf)(((vu)n + 127u) << 23);
    return v_expm1_reduced(r) * power + (power - 1.0f);
}

VEC_INLINE vf hyperbolic(vf x)
{
    const vf t = tangent(x);
    return t / (t + 2.0f);
}

/* sigmoid(x) tanh(y) by one division: the sigmoid comes as its inverse. */
VEC_INLINE vf gated(vf inverse, vf y)
{
    const vf t = tangent(y);
    return t / (inverse * (t + 2.0f));
}

/* ---- cells */

/* The input of a cell, of one row: its sums, and where its units begin. */
typedef struct unit_block {
    const prn_recurrent_step *step;
    int64_t row, first, count;
} unit_block;

VEC_INLINE vf recurrent_simd_projected(const unit_block *at, int gate)
{
    const prn_recurrent_step *s = at->step;
    return v_load_part(s->x + at->row * s->x_row + gate * s->hidden + at->first, at->count, 0.0f);
}

VEC_INLINE vf last_state(const unit_block *at)
{
    return v_load_part(at->step->h + at->row * at->step->h_row + at->first, at->count, 0.0f);
}

VEC_INLINE void recurrent_simd_put_state(const unit_block *at, vf h)
{
    const prn_recurrent_step *s = at->step;
    v_store_part(s->out + at->row * s->out_row + at->first, h, at->count);
    if (s->y) v_store_part(s->y + at->row * s->y_row + at->first, h, at->count);
}

VEC_INLINE void cell_lstm(const unit_block *at, const vf *sum)
{
    float *to = at->step->c + at->row * at->step->rs_c + at->first;
    const vf input = inverse_sigmoid(sum[0] + recurrent_simd_projected(at, 0)),
             output = inverse_sigmoid(sum[1] + recurrent_simd_projected(at, 1));
    const vf kept = recurrent_simd_sigmoid(sum[2] + recurrent_simd_projected(at, 2));
    const vf c = kept * v_load_part(to, at->count, 0.0f) + gated(input, sum[3] + recurrent_simd_projected(at, 3));
    v_store_part(to, c, at->count);
    recurrent_simd_put_state(at, gated(output, c));
}

VEC_INLINE void recurrent_simd_mix(const unit_block *at, vf z, vf candidate)
{
    recurrent_simd_put_state(at, (1.0f - z) * candidate + z * last_state(at));
}

VEC_INLINE void cell_gru_linear(const unit_block *at, const vf *sum)
{
    const float *rb = at->step->rb;
    const vf z = recurrent_simd_sigmoid(sum[0] + recurrent_simd_projected(at, 0)),
             r = recurrent_simd_sigmoid(sum[1] + recurrent_simd_projected(at, 1));
    const vf own = rb ? sum[2] + v_load_part(rb + at->first, at->count, 0.0f) : sum[2];
    recurrent_simd_mix(at, z, hyperbolic(r * own + recurrent_simd_projected(at, 2)));
}

VEC_INLINE void cell_gru_gates(const unit_block *at, const vf *sum)
{
    const prn_recurrent_step *s = at->step;
    const vf z = recurrent_simd_sigmoid(sum[0] + recurrent_simd_projected(at, 0)),
             r = recurrent_simd_sigmoid(sum[1] + recurrent_simd_projected(at, 1));
    v_store_part(s->z + at->row * s->z_row + at->first, z, at->count);
    v_store_part(s->out + at->row * s->out_row + at->first, r * last_state(at), at->count);
}

VEC_INLINE void cell_gru_candidate(const unit_block *at, const vf *sum)
{
    const prn_recurrent_step *s = at->step;
    const vf z = v_load_part(s->z + at->row * s->z_row + at->first, at->count, 0.0f);
    recurrent_simd_mix(at, z, hyperbolic(sum[0] + recurrent_simd_projected(at, 2)));
}

VEC_INLINE void cell_rnn_tanh(const unit_block *at, const vf *sum)
{
    recurrent_simd_put_state(at, hyperbolic(sum[0] + recurrent_simd_projected(at, 0)));
}

VEC_INLINE void cell_rnn_relu(const unit_block *at, const vf *sum)
{
    const vf x = sum[0] + recurrent_simd_projected(at, 0);
    recurrent_simd_put_state(at, v_select(x < 0.0f, v_splat(0.0f), x));
}

/* rows, gates and chains are constants after inlining. With few sums, k is dealt to several chains of them. */
VEC_INLINE void recurrent_simd_tile(const prn_recurrent_step *s, int64_t row, int64_t block, const int rows,
                                    const int gates, const int chains,
                                    void (*cell)(const unit_block *at, const vf *sum))
{
    const float *in = s->in + row * s->in_row, *r = s->r + block * s->hidden * gates * VEC_LANES;
    const int64_t in_row = s->in_row, hidden = s->hidden;
    vf sum[8][MOST_ROWS][4];
    PRN_UNROLL
    for (int chain = 0; chain < chains; chain++) {
        PRN_UNROLL
        for (int m = 0; m < rows; m++) {
            PRN_UNROLL
            for (int g = 0; g < gates; g++) sum[chain][m][g] = (vf){0};
        }
    }
    int64_t k = hidden;
    for (; k >= chains; k -= chains, in += chains, r += chains * gates * VEC_LANES) {
        PRN_UNROLL
        for (int chain = 0; chain < chains; chain++) {
            vf weights[4];
            PRN_UNROLL
            for (int g = 0; g < gates; g++) weights[g] = v_load(r + (chain * gates + g) * VEC_LANES);
            PRN_UNROLL
            for (int m = 0; m < rows; m++) {
                const vf a = v_splat(in[m * in_row + chain]);
                PRN_UNROLL
                for (int g = 0; g < gates; g++) sum[chain][m][g] += a * weights[g];
            }
        }
    }
    for (; chains > 1 && k > 0; k--, in++, r += gates * VEC_LANES) {
        PRN_UNROLL
        for (int m = 0; m < rows; m++) {
            PRN_UNROLL
            for (int g = 0; g < gates; g++) sum[0][m][g] += v_splat(in[m * in_row]) * v_load(r + g * VEC_LANES);
        }
    }
    PRN_UNROLL
    for (int m = 0; m < rows; m++) {
        PRN_UNROLL
        for (int g = 0; g < gates; g++) {
            PRN_UNROLL
            for (int chain = 1; chain < chains; chain++) sum[0][m][g] += sum[chain][m][g];
        }
        cell(&(unit_block){s, row + m, block * VEC_LANES, s->hidden - block * VEC_LANES}, sum[0][m]);
    }
}

/* More rows than have room for the sums of all gates: two gates at a time, so that far weights are read once for all of
 * them. The order of each sum is that of a tile with one chain. */
VEC_INLINE void tall_tile(const prn_recurrent_step *s, int64_t row, int64_t block, const int rows, const int gates,
                          void (*cell)(const unit_block *at, const vf *sum))
{
    vf sums[TALL_ROWS][4];
    const int64_t in_row = s->in_row;
    PRN_UNROLL
    for (int gate = 0; gate < gates; gate += 2) {
        const float *r = s->r + (block * s->hidden * gates + gate) * VEC_LANES;
        const float *in[TALL_ROWS / 3];
        vf sum[TALL_ROWS][2];
        PRN_UNROLL
        for (int m = 0; m < rows; m++) {
            if (m % 3 == 0) in[m / 3] = s->in + (row + m) * in_row; /* rows that one register addresses */
            sum[m][0] = sum[m][1] = (vf){0};
        }
        for (int64_t k = 0; k < s->hidden; k++, r += gates * VEC_LANES) {
            const vf first = v_load(r), second = v_load(r + VEC_LANES);
            for (int g = 0; g < 2; g++) __builtin_prefetch(r + (AHEAD * gates + g) * VEC_LANES);
            PRN_UNROLL
            for (int m = 0; m < rows; m++) {
                const vf a = v_splat(in[m / 3][m % 3 * in_row + k]);
                sum[m][0] += a * first;
                sum[m][1] += a * second;
            }
        }
        PRN_UNROLL
        for (int m = 0; m < rows; m++) {
            sums[m][gate] = sum[m][0];
            sums[m][gate + 1] = sum[m][1];
        }
    }
    for (int m = 0; m < rows; m++)
        cell(&(unit_block){s, row + m, block * VEC_LANES, s->hidden - block * VEC_LANES}, sums[m]);
}

/* The number of chains follows from the rows of the whole step, so that sums are the same for every width of
 * vectors; three rows stand for all that are more. */
#define CHAINS(sums) ((sums) >= FEWEST_SUMS ? 1 : (sums) * 2 >= FEWEST_SUMS ? 2 : (sums) * 4 >= FEWEST_SUMS ? 4 : 8)
#define MANY_CHAINS(gates) CHAINS((gates) * 3)
#define MOST_FIT(sums) (MOST_SUMS / (sums) < MOST_ROWS ? MOST_SUMS / (sums) : MOST_ROWS)
#define WIDE_ROWS(gates) MOST_FIT((gates) * MANY_CHAINS(gates))
#define LIMIT(gates) ((gates) == 4 ? TALL_ROWS : WIDE_ROWS(gates))
#define TILE(name, gates, rows)                                                                                        \
    static void tile_##name##_##rows(const prn_recurrent_step *s, int64_t row, int64_t block)                          \
    {                                                                                                                  \
        if (rows <= WIDE_ROWS(gates))                                                                                  \
            recurrent_simd_tile(s, row, block, rows <= WIDE_ROWS(gates) ? rows : 1, gates, MANY_CHAINS(gates),         \
                                cell_##name);                                                                          \
        else if (rows <= LIMIT(gates))                                                                                 \
            tall_tile(s, row, block, rows <= LIMIT(gates) ? rows : 1, gates, cell_##name);                             \
    }
#define ALL_ROWS(name, gates, rows)                                                                                    \
    static void all_##name##_##rows(const prn_recurrent_step *s, int64_t block)                                        \
    {                                                                                                                  \
        recurrent_simd_tile(s, 0, block, rows, gates, CHAINS((gates) * (rows)), cell_##name);                          \
    }
#define EACH_ROWS(put, name, gates)                                                                                    \
    put(name, gates, 1) put(name, gates, 2) put(name, gates, 3) put(name, gates, 4) put(name, gates, 5)                \
        put(name, gates, 6) put(name, gates, 7) put(name, gates, 8) put(name, gates, 9) put(name, gates, 10)           \
            put(name, gates, 11) put(name, gates, 12)
#define ENTRY(name, gates, rows) [rows] = tile_##name##_##rows,
/* Rows inside of a block: its weights are read from far away once. */
#define STEP(name, gates)                                                                                              \
    ALL_ROWS(name, gates, 1)                                                                                           \
    ALL_ROWS(name, gates, 2)                                                                                           \
    EACH_ROWS(TILE, name, gates)                                                                                       \
    static void step_##name(const prn_recurrent_step *s, int64_t first, int64_t last)                                  \
    {                                                                                                                  \
        static void (*const tiles[])(const prn_recurrent_step *s, int64_t row,                                         \
                                     int64_t block) = {EACH_ROWS(ENTRY, name, gates)};                                 \
        const int64_t parts = s->rows > 2 ? prn_ceil_div(s->rows, LIMIT(gates)) : 0;                                   \
        for (int64_t i = 0; i < last - first; i++) {                                                                   \
            const int64_t block = s->backward ? last - 1 - i : first + i;                                              \
            if (s->rows == 1) all_##name##_1(s, block);                                                                \
            if (s->rows == 2) all_##name##_2(s, block);                                                                \
            for (int64_t part = 0; part < parts; part++) {                                                             \
                const int64_t row = part * s->rows / parts, count = (part + 1) * s->rows / parts - row;                \
                tiles[count](s, row, block);                                                                           \
            }                                                                                                          \
        }                                                                                                              \
    }
STEP(lstm, 4)
STEP(gru_linear, 3)
STEP(gru_gates, 2)
STEP(gru_candidate, 1)
STEP(rnn_tanh, 1)
STEP(rnn_relu, 1)

const prn_recurrent_simd PRN_SIMD_TABLE(prn_recurrent_simd_) = {
    .name = PRN_SIMD_NAME,
    .lanes = VEC_LANES,
    .step = {[PRN_STEP_LSTM] = step_lstm,
             [PRN_STEP_GRU_LINEAR] = step_gru_linear,
             [PRN_STEP_GRU_GATES] = step_gru_gates,
             [PRN_STEP_GRU_CANDIDATE] = step_gru_candidate,
             [PRN_STEP_RNN_TANH] = step_rnn_tanh,
             [PRN_STEP_RNN_RELU] = step_rnn_relu},
};
