/* Measures rates of kinds of work by the loops that operators use: vector functions over a row in the first-level
 * cache, and a matmul of packed matrices of whole tiles. Each thread works on its own rows. */
#include "base/os/clock.h"
#include "ops/kernels/gemm/gemm_kernel.h"
#include "ops/kernels/vector/vec.h"
#include "profiler/measure/machine_peaks.h"
#include "profiler/report/work.h"

/* ROW floats, in and out, are half of a small first-level cache. */
enum { ROW = 2048, TILES = 6, MOST_ROWS = 96, DEPTH = 192, MOST_COLUMNS = 128, WORK_TRIALS = 5, ATTEMPTS = 3 };
/* A rate below this share of threads x one thread's rate is measured again, because cores have their own arithmetic
 * units. */
#define LIKELY_SHARE 0.6
/* Rounds of prn_peak_measure per pass. Its first trial has thousands of rounds, so no pass should take longer than a
 * trial. */
enum { PRODUCT_ROUNDS = 256, MOVE_ROUNDS = 64, SLOW_ROUNDS = 16 };

static int64_t machine_work_passes(int64_t rounds, int64_t of_one)
{
    return rounds < of_one ? 1 : rounds / of_one;
}

/* Of one pass of PRN_MAP_HARD_SWISH: a multiply, an add, a minimum, a maximum, a multiply. */
enum { SIMPLE_STEPS = 5 };

/* Values around 1, where no function has a special case. */
static void machine_work_fill(float *row, int64_t count)
{
    for (int64_t i = 0; i < count; i++) row[i] = 0.5f + (float)(i % 97) / 97.0f;
}

static double map_row(prn_map_id map, int64_t rounds)
{
    _Alignas(64) float x[ROW], y[ROW];
    machine_work_fill(x, ROW);
    for (int64_t r = 0; r < rounds; r++) prn_vec()->map[map](y, x, ROW, 1.0f, 0.0f);
    return (double)y[ROW - 1];
}

static double machine_work_combine_rows(prn_binary_id binary, int64_t rounds)
{
    _Alignas(64) float x[ROW], y[ROW];
    machine_work_fill(x, ROW);
    for (int64_t r = 0; r < rounds; r++) prn_vec()->vv[binary](y, x, x, ROW);
    return (double)y[ROW - 1];
}

#define MAP_LOOP(name, symbol)                                                                                         \
    static double name(int64_t rounds, double *done)                                                                   \
    {                                                                                                                  \
        rounds = machine_work_passes(rounds, SLOW_ROUNDS);                                                             \
        *done = (double)rounds * ROW;                                                                                  \
        return map_row(PRN_MAP_##symbol, rounds);                                                                      \
    }
MAP_LOOP(run_sqrt, SQRT)
MAP_LOOP(run_exp, EXP)
MAP_LOOP(run_log, LOG)
MAP_LOOP(run_erf, ERF)
MAP_LOOP(run_tanh, TANH)
MAP_LOOP(run_sin, SIN)

static double run_simple(int64_t rounds, double *done)
{
    rounds = machine_work_passes(rounds, SLOW_ROUNDS);
    *done = (double)rounds * ROW * SIMPLE_STEPS;
    return map_row(PRN_MAP_HARD_SWISH, rounds);
}

static double run_divide(int64_t rounds, double *done)
{
    rounds = machine_work_passes(rounds, SLOW_ROUNDS);
    *done = (double)rounds * ROW;
    return machine_work_combine_rows(PRN_BINARY_DIV, rounds);
}

static double run_pow(int64_t rounds, double *done)
{
    rounds = machine_work_passes(rounds, 8 * SLOW_ROUNDS);
    *done = (double)rounds * ROW;
    return machine_work_combine_rows(PRN_BINARY_POW, rounds);
}

/* Moves data in the second-level cache: layers of an operator pass more than a row to each other. */
static double run_move(int64_t rounds, double *done)
{
    enum { ROWS = 16 };
    _Alignas(64) float x[ROWS * ROW], y[ROWS * ROW];
    machine_work_fill(x, ROWS * ROW);
    rounds = machine_work_passes(rounds, MOVE_ROUNDS);
    for (int64_t r = 0; r < rounds; r++) prn_vec()->map[PRN_MAP_COPY](y, x, ROWS * ROW, 0.0f, 0.0f);
    *done = (double)rounds * 2 * (double)sizeof x;
    return (double)y[ROWS * ROW - 1];
}

static double machine_work_run_product(int64_t rounds, double *done)
{
    _Alignas(64) float a[MOST_ROWS * DEPTH], packed[DEPTH * MOST_COLUMNS], c[MOST_ROWS * MOST_COLUMNS];
    const prn_gemm_isa_table *isa = prn_gemm_isa();
    const int64_t rows = TILES * isa->tile_rows, columns = 2 * isa->panel_columns;
    prn_gemm gemm = {.m = rows < MOST_ROWS ? rows : MOST_ROWS,
                     .n = columns < MOST_COLUMNS ? columns : MOST_COLUMNS,
                     .k = DEPTH,
                     .a = a,
                     .rs_a = DEPTH,
                     .cs_a = 1,
                     .packed = packed,
                     .c = c,
                     .alpha = 1.0f,
                     .beta = 1.0f};
    gemm.rs_c = gemm.n;
    machine_work_fill(a, MOST_ROWS * DEPTH);
    machine_work_fill(packed, DEPTH * MOST_COLUMNS); /* the order of elements does not matter */
    rounds = machine_work_passes(rounds, PRODUCT_ROUNDS);
    for (int64_t r = 0; r < rounds; r++) isa->block(&gemm, 0, gemm.m, 0, gemm.n);
    *done = (double)rounds * 2 * (double)gemm.m * (double)gemm.n * DEPTH;
    return (double)c[0];
}

static double (*const loops[PRN_WORK_COUNT])(int64_t rounds,
                                             double *done) = {[PRN_WORK_PRODUCT] = machine_work_run_product,
                                                              [PRN_WORK_SIMPLE] = run_simple,
                                                              [PRN_WORK_DIVIDE] = run_divide,
                                                              [PRN_WORK_SQRT] = run_sqrt,
                                                              [PRN_WORK_EXP] = run_exp,
                                                              [PRN_WORK_LOG] = run_log,
                                                              [PRN_WORK_ERF] = run_erf,
                                                              [PRN_WORK_TANH] = run_tanh,
                                                              [PRN_WORK_SIN] = run_sin,
                                                              [PRN_WORK_POW] = run_pow,
                                                              [PRN_WORK_MOVE] = run_move};

/* 0: not measured yet. Rows are in the order of kinds, those of one thread first. */
static double rate_of_one(const prony_machine *machine, int kind)
{
    return machine->work_count >= PRN_WORK_COUNT ? machine->work[kind].per_second : 0;
}

prony_status prn_machine_add_work(prony_machine *machine, int threads, int64_t trial_ns, prn_peak_fn peak,
                                  prony_error *error)
{
    static const prn_peak_kind kind = PRN_PEAK_F32; /* any kind without a buffer */
    if (!machine->work) machine->work = prn_bump_alloc(&machine->pool, 2 * PRN_WORK_COUNT, sizeof *machine->work);
    if (!machine->work) return prn_no_memory(error);
    for (int k = 0; k < PRN_WORK_COUNT; k++) {
        const prn_peak_loops own = {.compute_f32 = loops[k]};
        const prn_peak_tools tools = {&own, prn_now_ns};
        const double likely = LIKELY_SHARE * rate_of_one(machine, k) * threads;
        prn_peak best = {.per_second = -1};
        for (int attempt = 0; attempt < ATTEMPTS && best.per_second < likely; attempt++) {
            prn_peak found;
            PRN_TRY(peak(&found, &kind, 1, threads, 0, WORK_TRIALS, trial_ns, &tools, error));
            if (found.per_second > best.per_second) best = found;
        }
        machine->work[machine->work_count++] =
            (prony_work_rate){prn_work_name((prn_work)k), threads, best.per_second, best.trials, best.trial_ns};
    }
    return PRONY_OK;
}

const prony_work_rate *prony_machine_work(const prony_machine *machine, size_t *count)
{
    if (count) *count = machine ? machine->work_count : 0;
    return machine ? machine->work : NULL;
}
