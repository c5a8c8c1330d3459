/* Native float32 matrix product: C = post(alpha A B + beta bias), for Gemm, MatMul, Einsum and other contractions.
 *
 * The work is cut into tiles by the problem's shape alone, sums over k run in blocks of a fixed length in ascending
 * order, so the result is the same for any number of threads. Nothing here allocates; the caller owns every pointer,
 * packed weights included. Operands other than C are read with any strides; C is row-major.
 */
#ifndef PRN_OPS_KERNELS_GEMM_GEMM_KERNEL_H
#define PRN_OPS_KERNELS_GEMM_GEMM_KERNEL_H

#include "ops/op.h"

/* One product. A is [m, k], B is [k, n], C is [m, n]; strides in elements. */
typedef struct prn_gemm {
    int64_t m, n, k;
    const float *a;
    int64_t rs_a, cs_a;
    const float *b; /* not read if `packed` is given */
    int64_t rs_b, cs_b;
    const float *packed;             /* B as prn_gemm_pack lays it out, or NULL */
    const struct prn_lowbit *stored; /* B in fewer bits (lowbit_weights.h), with panels; or NULL. b and packed are not
                                        read then */
    const uint16_t *a_halves;        /* A as prn_gemm_halves_convert makes it, where B is stored as parts; or NULL */
    float *c;
    int64_t rs_c;
    float alpha, beta;
    const float *bias; /* added as beta * bias[i * bias_row + j * bias_col]; NULL: none */
    int64_t bias_row, bias_col;
    int parts;   /* of bfloat16, where it is computed by such (bf16x3_product.h); 0: as many as make float32;
                  PRN_BF16X3_NEVER: it is not */
    char *space; /* of prn_gemm_space_bytes or more, or less, or NULL */
    size_t space_bytes;
    const prony_context *post; /* its post_ops are applied, indexed by C's place in output 0; NULL: none */
} prn_gemm;

/* `items` products of one shape: A, B and C start at offsets from those in `gemm`. */
typedef struct prn_gemm_batch {
    int64_t items;
    /* Element offsets of item i. NULL: all zero, only good for items <= 1. */
    void (*offsets)(const void *argument, int64_t item, int64_t *a, int64_t *b, int64_t *c);
    const void *argument;
} prn_gemm_batch;

/* The functions of one instruction set. */
typedef struct prn_gemm_isa_table {
    const char *name;
    int64_t panel_columns; /* of a packed panel */
    int64_t tile_rows;
    void (*pack)(const prn_gemm *gemm, int64_t first_panel, int64_t last_panel, float *packed);
    /* Rows [i0, i1) and columns [j0, j1) of C; j0 is a multiple of panel_columns. Of the epilogue it does what
     * prn_gemm_bias_in_tiles says. */
    void (*block)(const prn_gemm *gemm, int64_t i0, int64_t i1, int64_t j0, int64_t j1);
    /* Columns [j0, j1) of the only row of C, where b_row and a_col are 1. */
    void (*dots)(const prn_gemm *gemm, int64_t j0, int64_t j1);
} prn_gemm_isa_table;

/* True if the bias is a vector of the columns, which tiles add before they are stored. */
static inline bool prn_gemm_bias_in_tiles(const prn_gemm *gemm)
{
    return gemm->bias && gemm->bias_row == 0 && gemm->bias_col == 1 && gemm->alpha == 1.0f && gemm->beta == 1.0f;
}

/* The table for this processor, within the cap on its instruction set. */
const prn_gemm_isa_table *prn_gemm_isa(void);

/* Elements of B's packed form for this instruction set. */
int64_t prn_gemm_packed_count(int64_t k, int64_t n);
/* Packs B (gemm->b, b_row, b_col, k, n); panels of zero-padded columns. */
void prn_gemm_pack(int threads, const prn_gemm *gemm, float *packed);
/* Packs a constant B through context->services, shared by every session of the model. */
prony_status prn_gemm_pack_shared(const prony_context *context, const prn_gemm *gemm, const float **packed);
/* True if a constant B is better left as it is: one row of C by a B with contiguous columns that no cache
 * holds, or one column. */
bool prn_gemm_plain_is_best(const prn_gemm *gemm);

/* Facts of a kernel that computes `items` such products; `packed`: B is packed before anything runs. */
void prn_gemm_facts(const prn_gemm *gemm, int64_t items, bool packed, prony_cost *facts);

/* Working space with which a large variable B is packed once instead of by every task; 0: none is of use. */
size_t prn_gemm_scratch_bytes(const prn_gemm *gemm);
/* Working space (gemm->space, aligned to 64) where B is packed: for `threads` threads that compute products by parts
 * (fewer bytes serve fewer threads), or for A, where its rows share the caches' sets; 0: none is of use. It changes no
 * result. */
size_t prn_gemm_space_bytes(int threads, const prn_gemm *gemm, int64_t items);
/* Computes every item. `batch` may be NULL for one; `scratch` is of the size above (aligned to 64), or NULL. It
 * changes no result. */
void prn_gemm_run(int threads, const prn_gemm *gemm, const prn_gemm_batch *batch, void *scratch);

#endif
