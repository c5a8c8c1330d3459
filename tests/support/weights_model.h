/* A model whose large constants are read in every way: packed as they are, transposed, scaled by a batch normalization,
 * twice by operators that pack them, plain beside packed, by rows, as an output. Inputs: ids [N, 4] (0 … 95), image [N,
 * 16, 6, 6]. */
#ifndef PRN_TESTS_SUPPORT_WEIGHTS_MODEL_H
#define PRN_TESTS_SUPPORT_WEIGHTS_MODEL_H

#include "tests/support/model_builder.h"

/* `shift`: bytes put in front, so that the weights have other addresses. */
model_builder *weights_model(size_t shift);
/* Bytes of all weights that a run reads, plain or packed: about one resident copy. */
size_t weights_model_bytes(void);
/* Inputs of a batch, from a seed; released by the caller (free). */
int64_t *weights_model_ids(int64_t batch, uint32_t seed);
float *weights_model_image(int64_t batch, uint32_t seed);

#endif
