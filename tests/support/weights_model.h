/* A model that reads its large constants in every way: packed directly, transposed, scaled by a batch normalization,
 * packed by two operators, plain and packed, by rows, as an output. Inputs: ids [N, 4] (0 … 95), image [N, 16, 6,
 * 6]. */
#ifndef PRN_TESTS_SUPPORT_WEIGHTS_MODEL_H
#define PRN_TESTS_SUPPORT_WEIGHTS_MODEL_H

#include "tests/support/model_builder.h"

/* `shift`: bytes inserted before the weights, to change their addresses. */
model_builder *weights_model(size_t shift);
/* Bytes of all weights that a run reads, plain or packed: about one resident copy. */
size_t weights_model_bytes(void);
/* Inputs of a batch, from a seed; released by the caller (free). */
int64_t *weights_model_ids(int64_t batch, uint32_t seed);
float *weights_model_image(int64_t batch, uint32_t seed);

#endif
