/* A matrix of codes of 2, 4 or 8 bits, block by block of its depths, as files hold it:
 *
 *   b[k][n] = (code(n, k) - zero(n, block(k))) scale(n, block(k))
 *
 *   codes    [n] rows of `row_bytes`, the first depth in the lowest bits
 *   scales   [n][blocks]
 *   zeros    codes [n][blocks], each row in whole bytes of its own, or (where there is one block) [n] one after the
 *            other; or numbers of another type [n][blocks]; 2^(bits - 1) without them */
#ifndef PRN_OPS_KERNELS_LOWBIT_NBIT_WEIGHTS_H
#define PRN_OPS_KERNELS_LOWBIT_NBIT_WEIGHTS_H

#include "ops/kernels/gemm/lowbit_weights.h"

typedef struct prn_nbit_weights {
    int64_t k, n, bits, block, blocks; /* depths, columns; depths of a block and how many there are */
    const uint8_t *codes;
    int64_t row_bytes;
    const void *scales;
    prony_dtype scale_type;
    const void *zeros; /* NULL: none */
    prony_dtype zero_type;
    int64_t zero_bytes; /* of a row of codes; 0: columns follow one another without gaps */
} prn_nbit_weights;

int32_t prn_nbit_code(const prn_nbit_weights *b, int64_t n, int64_t k);
double prn_nbit_scale(const prn_nbit_weights *b, int64_t n, int64_t block);
double prn_nbit_zero(const prn_nbit_weights *b, int64_t n, int64_t block);

/* Packs `items` such matrices of constants, whose codes and scales follow one another and whose zero points are
 * `zero_step` bytes apart, through context->services, shared by every session of the model: codes fit as they are.
 * Item i's panels are prn_nbit_item_bytes behind those of the one before. */
prony_status prn_nbit_pack_shared(const prony_context *context, const prn_nbit_weights *b, int64_t items,
                                  int64_t zero_step, prn_lowbit *stored);
size_t prn_nbit_item_bytes(const prn_lowbit *stored);

#endif
