/* Picks the table of folds for this processor. */
#include "ops/kernels/vector/fold.h"

#include "base/cpu/simd.h"

PRN_SIMD_PICK(prn_fold_table, prn_fold_, const prn_fold_table *prn_fold_loops)
