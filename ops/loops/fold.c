/* Picks the table of folds for this processor. */
#include "ops/loops/fold.h"

#include "base/simd.h"

PRN_SIMD_PICK(prn_fold_table, prn_fold_, const prn_fold_table *prn_fold_loops)
