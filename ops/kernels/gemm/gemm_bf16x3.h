/* A block of a matrix product by bfloat16 parts (bf16x3_product.h), where the processor has tiles for them. */
#ifndef PRN_OPS_KERNELS_GEMM_GEMM_BF16X3_H
#define PRN_OPS_KERNELS_GEMM_GEMM_BF16X3_H

#include "ops/kernels/gemm/gemm_kernel.h"
#include "ops/kernels/gemm/bf16x3_product.h"

/* Rows [i0, i1) and columns [j0, j1) of C = A B, as prn_gemm_isa_table.block; B is packed in panels of 32 columns.
 * false: it was not done, because something in the rows of A or the columns of B has no parts. `space`:
 * prn_gemm_bf16x3_space of its size, or of a larger one's, on a line of the cache; without (NULL), it is done on the
 * stack, by smaller steps, with the same result. */
bool prn_gemm_bf16x3_block(const prn_gemm *gemm, int64_t i0, int64_t i1, int64_t j0, int64_t j1, char *space);

/* Bytes for a block of so many rows and columns, whole lines. */
size_t prn_gemm_bf16x3_space(int64_t rows, int64_t columns);

/* True if blocks of such a product are likely to be done so. */
bool prn_gemm_bf16x3_profitable(const prn_gemm *gemm);
/* The same of a block of so many rows. */
bool prn_gemm_bf16x3_takes(const prn_gemm *gemm, int64_t rows);

/* Rows [i0, i1) and `width` columns of C from j on, for one panel, by way of `edge`, PRN_BF16X3_EDGE_ROWS rows of 32:
 * what does not fill tiles. tiles->a are row i0's. false as prn_bf16x3_multiply. */
bool prn_gemm_bf16x3_edge(const prn_gemm *gemm, const prn_bf16x3_tiles *tiles, float *edge, int64_t i0, int64_t i1,
                          int64_t j, int64_t width);

/* If B is stored as one or two parts (lowbit_weights.h) and there are rows enough, A is converted once for all
 * blocks, into prn_gemm_halves_bytes bytes: [part][depth / 32][rows, in whole tiles][32]. false: something in it has no
 * such form. */
bool prn_gemm_halves_profitable(const prn_gemm *gemm);
size_t prn_gemm_halves_bytes(const prn_gemm *gemm);
bool prn_gemm_halves_convert(int threads, const prn_gemm *gemm, uint16_t *to);
/* Rows [i0, i1) and columns [j0, j1) of C from gemm->a_halves; i0 is a multiple of 16, j0 of 32. */
void prn_gemm_halves_block(const prn_gemm *gemm, int64_t i0, int64_t i1, int64_t j0, int64_t j1);

#endif
