/* The 8-bit integer product, native and reference.
 *
 * A task computes up to ROWS x COLUMNS sums, which stay on its stack while the depth passes in pieces:
 *
 *      depth                         B: panels of the tile's width, 16 bits wide, depths in pairs; packed once for
 *     +-------------+     +------+      constants, else made by the task
 *     | A, 16 bits  |  x  | panel|   A: widened once for constants, else a few rows at a time
 *     +-------------+     +------+
 *
 * Invariant: a task owns its rows and columns of the result, and tasks are cut by the problem alone. */
#include "ops/kernels/int8/int_gemm.h"
#include "base/integers.h"

#include "base/threads/parallel.h"
#include "base/threads/cancel.h"

#include <stdio.h>
#include <string.h>

enum { LOOK_UP = 256, LONG_RUN = 1 << 20 }; /* steps between two looks at whether to go on */

enum {
    ROWS = 252,         /* divides into tiles of 6 and of 12 rows */
    COLUMNS = 64,       /* divides into panels of 8, 16 and 32 */
    PAIRS = 128,        /* pairs of depths in a piece: its panels take half of the first-level cache */
    FEW_MACS = 1 << 18, /* not worth another thread */
    PACK_PANELS = 8     /* panels of one packing task */
};

/* ---- geometry */

prony_status prn_int_gemm_matmul(const prony_context *context, const prony_value *a, const prony_value *b,
                                 prn_int_gemm *out, prony_shape *y)
{
    *out = (prn_int_gemm){.a_type = a->dtype, .b_type = b->dtype};
    PRN_TRY(prn_matmul_from_shapes(context, a, b, &out->shape, y));
    out->shape.a = a->data;
    out->shape.b = b->data;
    return PRONY_OK;
}

int64_t prn_int_gemm_a_matrix(const prn_matmul_desc *shape, int64_t item)
{
    int64_t a, b, c;
    prn_matmul_offsets(shape, item, &a, &b, &c);
    return a > 0 ? a / (shape->m * shape->k) : 0;
}

int64_t prn_int_gemm_b_matrix(const prn_matmul_desc *shape, int64_t item)
{
    int64_t a, b, c;
    prn_matmul_offsets(shape, item, &a, &b, &c);
    return b > 0 ? b / (shape->k * shape->n) : 0;
}

static int32_t zero_at(const prn_quant_lines *lines, int64_t matrix, int64_t line)
{
    return (int32_t)prn_quant_lines_at(lines, matrix, line);
}

static void int_gemm_widen(const prn_quant_simd *simd, prony_dtype type, int16_t *to, const void *from, int64_t first,
                           int64_t step, int64_t n, int32_t zero)
{
    if (type == PRONY_UINT8) {
        simd->widen_u8(to, (const uint8_t *)from + first, step, n, zero);
    } else {
        simd->widen_i8(to, (const int8_t *)from + first, step, n, zero);
    }
}

/* ---- widened rows of A */

/* Elements of one widened row. */
static int64_t widened_elements(int64_t k)
{
    return k + k % 2;
}

/* Depths [depth, depth + count) of a row, and a 0 if that is odd. */
static void widen_row(const prn_int_gemm *p, int64_t offset, int64_t row, int64_t depth, int64_t count, int32_t zero,
                      int16_t *to)
{
    const prn_matmul_desc *s = &p->shape;
    int_gemm_widen(prn_quant_simd_table(), p->a_type, to, s->a, offset + row * s->rs_a + depth * s->cs_a, s->cs_a,
                   count, zero);
    if (count % 2) to[count] = 0;
}

typedef struct rows_job {
    const prn_int_gemm *product;
    int64_t rows;
} rows_job;

static prony_status build_rows(const prony_context *context, void *argument, void *out)
{
    const rows_job *job = argument;
    const prn_matmul_desc *s = &job->product->shape;
    (void)context;
    for (int64_t row = 0; row < job->rows; row++) {
        for (int64_t k = 0; k < s->k && !prn_cancelled(); k += LONG_RUN) {
            widen_row(job->product, 0, row, k, prn_least(LONG_RUN, s->k - k), zero_at(&job->product->a_zero, 0, row),
                      (int16_t *)out + row * widened_elements(s->k) + k);
        }
    }
    return PRONY_OK;
}

/* The key of rows or columns of codes: forms for other zero points are other forms. */
static prn_pack_key key_of(prn_pack_fn *build, const prn_quant_lines *zero)
{
    prn_pack_key key = {.build = build, .size = {zero->step, zero->matrix_step}};
    if (zero->value) {
        key.size[2] = zero->value->dtype;
        key.detail = zero->value->data;
        key.detail_bytes = prn_value_bytes(zero->value);
    }
    return key;
}

static bool int_gemm_is_known(const prn_quant_lines *lines)
{
    return !lines->value || lines->value->data;
}

prony_status prn_int_widen_rows(const prony_context *context, const prn_int_gemm *product, int64_t rows,
                                const int16_t **out)
{
    const prn_matmul_desc *s = &product->shape;
    rows_job job = {product, rows};
    const void *packed = NULL;
    *out = NULL;
    if (!s->a || !int_gemm_is_known(&product->a_zero) || rows == 0 || s->k == 0) return PRONY_OK;
    prn_pack_key key = key_of(build_rows, &product->a_zero);
    const int64_t size[] = {rows, s->k, s->rs_a, s->cs_a};
    memcpy(key.size + 3, size, sizeof size);
    key.dtype = product->a_type;
    const size_t bytes = prony_dtype_bytes(PRONY_INT16, rows * widened_elements(s->k));
    PRN_TRY(context->services->packed(context, s->a, &key, bytes, &job, &packed));
    *out = packed;
    return PRONY_OK;
}

/* ---- panels of B */

/* Of all packed panels of one item. */
static int64_t panel_elements(int64_t k, int64_t n)
{
    const int64_t columns = prn_quant_simd_table()->columns;
    return prn_ceil_div(n, columns) * columns * widened_elements(k);
}

/* Columns [column, column + n) of B at one depth. */
static void widen_line(const prn_int_gemm *p, int64_t offset, int64_t matrix, int64_t depth, int64_t column, int64_t n,
                       int16_t *line)
{
    const prn_matmul_desc *s = &p->shape;
    const int64_t at = offset + depth * s->rs_b + column * s->cs_b;
    const bool one_zero = p->b_zero.step == 0;
    int_gemm_widen(prn_quant_simd_table(), p->b_type, line, s->b, at, s->cs_b, n,
                   one_zero ? zero_at(&p->b_zero, matrix, 0) : 0);
    for (int64_t j = 0; !one_zero && j < n; j++) {
        line[j] = (int16_t)(line[j] - zero_at(&p->b_zero, matrix, column + j));
    }
}

static void fill_from_codes(const prn_int_gemm *p, int64_t item, int64_t depth, int64_t count, int64_t column,
                            int64_t n, int16_t *panels)
{
    const prn_quant_simd *simd = prn_quant_simd_table();
    const int64_t matrix = prn_int_gemm_b_matrix(&p->shape, item);
    const int64_t panel_step = simd->columns * widened_elements(count);
    int16_t lines[2][PACK_PANELS * PRN_QUANT_MAX_COLUMNS] = {{0}};
    int64_t a, offset, c;
    prn_matmul_offsets(&p->shape, item, &a, &offset, &c);
    for (int64_t d = 0; d < count && !prn_cancelled_at(d + 1); d += 2) {
        widen_line(p, offset, matrix, depth + d, column, n, lines[0]);
        if (d + 1 < count) {
            widen_line(p, offset, matrix, depth + d + 1, column, n, lines[1]);
        } else {
            memset(lines[1], 0, sizeof lines[1]);
        }
        for (int64_t j = 0; j < n; j += simd->columns) {
            simd->interleave(panels + j / simd->columns * panel_step + d * simd->columns, lines[0] + j, lines[1] + j,
                             simd->columns);
        }
    }
}

typedef struct panels_job {
    const prn_int_gemm *product;
    int16_t *panels;
} panels_job;

static void int_gemm_pack_task(void *argument, int64_t task)
{
    const panels_job *job = argument;
    const prn_matmul_desc *s = &job->product->shape;
    const int64_t width = PACK_PANELS * prn_quant_simd_table()->columns, first = task * width;
    fill_from_codes(job->product, 0, 0, s->k, first, prn_least(width, s->n - first),
                    job->panels + first * widened_elements(s->k));
}

static prony_status int_gemm_build_panels(const prony_context *context, void *argument, void *out)
{
    panels_job job = {argument, out};
    const int64_t width = PACK_PANELS * prn_quant_simd_table()->columns;
    prn_parallel_tasks(context->threads, prn_ceil_div(job.product->shape.n, width), int_gemm_pack_task, &job);
    return PRONY_OK;
}

static bool int_gemm_same_b(const prn_matmul_desc *s)
{
    for (int d = 0; d < s->batch_rank; d++) {
        if (s->b_step[d] != 0) return false;
    }
    return true;
}

prony_status prn_int_pack_panels(const prony_context *context, const prn_int_gemm *product, const int16_t **out)
{
    const prn_matmul_desc *s = &product->shape;
    prn_int_gemm copy = *product;
    const void *packed = NULL;
    *out = NULL;
    if (!s->b || !int_gemm_same_b(s) || !int_gemm_is_known(&product->b_zero) || s->k == 0 || s->n == 0) return PRONY_OK;
    prn_pack_key key = key_of(int_gemm_build_panels, &product->b_zero);
    const int64_t size[] = {s->k, s->n, s->rs_b, s->cs_b};
    memcpy(key.size + 3, size, sizeof size);
    key.dtype = product->b_type;
    key.table = prn_quant_simd_table();
    const size_t bytes = prony_dtype_bytes(PRONY_INT16, panel_elements(s->k, s->n));
    PRN_TRY(context->services->packed(context, s->b, &key, bytes, &copy, &packed));
    *out = packed;
    return PRONY_OK;
}

/* ---- native */

typedef struct product_job {
    const prn_int_gemm *product;
    int64_t rows, row_blocks, columns, column_blocks;
} product_job;

/* The place of a task's operands for one piece of the depth. */
typedef struct piece {
    const int16_t *panels;
    int64_t panel_step; /* elements from one panel to the next */
    int64_t depth, count, pairs;
} piece;

/* Adds a piece of the depth to the sums of a block (the first piece sets them), register tile by register tile. */
static void multiply_piece(const prn_int_gemm *p, int64_t item, const piece *at, int64_t row, int64_t rows,
                           int64_t columns, int32_t *sums)
{
    const prn_quant_simd *simd = prn_quant_simd_table();
    const prn_matmul_desc *s = &p->shape;
    int16_t lines[PRN_QUANT_MAX_ROWS * PAIRS * 2];
    int64_t offset, b, c;
    prn_matmul_offsets(s, item, &offset, &b, &c);
    const int64_t matrix = prn_int_gemm_a_matrix(s, item), row_elements = widened_elements(s->k);
    for (int64_t r = 0; r < rows; r += simd->rows) {
        const int64_t height = prn_least(simd->rows, rows - r);
        const int16_t *a = lines;
        int64_t rs_a = 2 * at->pairs;
        if (p->a_rows) {
            rs_a = row_elements;
            a = p->a_rows + (offset / s->rs_a + row + r) * row_elements + at->depth;
        } else {
            for (int64_t i = 0; i < height; i++) {
                widen_row(p, offset, row + r + i, at->depth, at->count, zero_at(&p->a_zero, matrix, row + r + i),
                          lines + i * rs_a);
            }
        }
        for (int64_t j = 0; j < columns; j += simd->columns) {
            simd->tile(a, rs_a, height, at->panels + j / simd->columns * at->panel_step, at->pairs,
                       sums + r * COLUMNS + j, COLUMNS, at->depth > 0);
        }
    }
}

/* One task: a block of one item, piece of depth by piece, with B's panels packed before or filled here; then its rows
 * go to `store`. */
static void int_gemm_product_task(void *argument, int64_t task)
{
    const product_job *job = argument;
    const prn_int_gemm *p = job->product;
    const prn_matmul_desc *s = &p->shape;
    const int64_t columns_of_panel = prn_quant_simd_table()->columns;
    const int64_t block = task % (job->row_blocks * job->column_blocks);
    const int64_t item = task / (job->row_blocks * job->column_blocks);
    const int64_t row = block / job->column_blocks * job->rows, column = block % job->column_blocks * job->columns;
    const int64_t rows = prn_least(job->rows, s->m - row), columns = prn_least(job->columns, s->n - column);
    _Alignas(64) int16_t room[COLUMNS * PAIRS * 2];
    _Alignas(64) int32_t sums[ROWS * COLUMNS];
    if (s->k == 0) memset(sums, 0, sizeof sums);
    for (int64_t depth = 0; depth < s->k && (depth == 0 || !prn_cancelled()); depth += 2 * PAIRS) {
        piece at = {.depth = depth, .count = prn_least(2 * PAIRS, s->k - depth)};
        at.pairs = (at.count + 1) / 2;
        if (p->b_panels) {
            at.panel_step = columns_of_panel * widened_elements(s->k);
            at.panels = p->b_panels + column / columns_of_panel * at.panel_step + depth * columns_of_panel;
        } else {
            at.panel_step = columns_of_panel * 2 * at.pairs;
            at.panels = room;
            if (p->fill) {
                p->fill(p->argument, item, depth, at.count, column, columns, room);
            } else {
                fill_from_codes(p, item, depth, at.count, column, columns, room);
            }
        }
        multiply_piece(p, item, &at, row, rows, columns, sums);
    }
    for (int64_t r = 0; r < rows; r++) p->store(p->argument, item, row + r, column, columns, sums + r * COLUMNS);
}

void prn_int_gemm_run(int threads, const prn_int_gemm *product)
{
    const prn_matmul_desc *s = &product->shape;
    if (s->items <= 0 || s->m <= 0 || s->n <= 0) return;
    product_job job = {.product = product, .columns = COLUMNS};
    job.row_blocks = prn_ceil_div(s->m, ROWS);
    const int64_t tile_rows = prn_quant_simd_table()->rows;
    job.rows = prn_ceil_div(prn_ceil_div(s->m, job.row_blocks), tile_rows) * tile_rows;
    job.row_blocks = prn_ceil_div(s->m, job.rows);
    job.column_blocks = prn_ceil_div(s->n, job.columns);
    const double macs = (double)s->items * (double)s->m * (double)s->n * (double)s->k;
    prn_parallel_tasks(macs < FEW_MACS ? 1 : threads, s->items * job.row_blocks * job.column_blocks,
                       int_gemm_product_task, &job);
}

/* ---- reference */

static int32_t int_gemm_code_at(const void *data, prony_dtype type, int64_t index)
{
    return type == PRONY_UINT8 ? ((const uint8_t *)data)[index] : ((const int8_t *)data)[index];
}

void prn_int_gemm_reference(const prn_int_gemm *p)
{
    const prn_matmul_desc *s = &p->shape;
    for (int64_t item = 0; item < s->items; item++) {
        const int64_t a_matrix = prn_int_gemm_a_matrix(s, item), b_matrix = prn_int_gemm_b_matrix(s, item);
        int64_t a, b, c;
        prn_matmul_offsets(s, item, &a, &b, &c);
        for (int64_t i = 0; i < s->m; i++) {
            const int32_t a_zero = zero_at(&p->a_zero, a_matrix, i);
            for (int64_t j = 0; j < s->n; j++) {
                const int32_t b_zero = zero_at(&p->b_zero, b_matrix, j);
                uint32_t sum = 0;
                if ((j % LOOK_UP == 0 || s->k > LOOK_UP) && prn_cancelled()) return;
                for (int64_t k = 0; k < s->k && !prn_cancelled_at(k); k++) {
                    sum += (uint32_t)((int_gemm_code_at(s->a, p->a_type, a + i * s->rs_a + k * s->cs_a) - a_zero) *
                                      (int_gemm_code_at(s->b, p->b_type, b + k * s->rs_b + j * s->cs_b) - b_zero));
                }
                int32_t wrapped = (int32_t)sum;
                p->store(p->argument, item, i, j, 1, &wrapped);
            }
        }
    }
}

/* ---- cost */

prony_status prn_int_gemm_cost(const prony_context *context, const prn_matmul_desc *shape, bool integer,
                               prony_cost *cost)
{
    uint64_t rows, outputs, macs;
    if (!prn_mul_u64(&rows, (uint64_t)shape->items, (uint64_t)shape->m) ||
        !prn_mul_u64(&outputs, rows, (uint64_t)shape->n) || !prn_mul_u64(&macs, outputs, (uint64_t)shape->k)) {
        return prony_fail(context, PRONY_OUT_OF_RANGE, "the number of MACs does not fit 64 bits");
    }
    prn_cost_fact(cost, "rows", (int64_t)rows);
    prn_cost_fact(cost, "in_features", shape->k);
    prn_cost_fact(cost, "out_features", shape->n);
    prn_cost_fact(cost, "output_elements", (int64_t)outputs);
    return prn_cost_macs(context, cost, macs, integer);
}

void prn_int_gemm_facts(const prn_matmul_desc *shape, bool packed, prony_cost *facts)
{
    if (shape->items < 1 || shape->m < 1 || shape->n < 1 || shape->k < 1) return;
    prn_cost_fact(facts, "byte_products", 1);
    const prn_quant_simd *simd = prn_quant_simd_table();
    prn_cost_fact(facts, "product_rows", shape->m);
    prn_cost_fact(facts, "product_columns", shape->n);
    prn_cost_fact(facts, "product_depth", shape->k);
    prn_cost_fact(facts, "tile_rows", simd->rows);
    prn_cost_fact(facts, "tile_columns", simd->columns);
    if (!packed) prn_cost_fact(facts, "packs_in_run", 1);
}
