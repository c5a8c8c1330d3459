/* Picks the table of folds for this processor. */
#include "ops/loops/fold.h"

#include "base/isa.h"

extern const prn_fold_table prn_fold_scalar;
#if defined(__x86_64__)
extern const prn_fold_table prn_fold_avx2, prn_fold_avx512;
#endif

const prn_fold_table *prn_fold_loops(void)
{
#if defined(__x86_64__)
    if (prn_isa_level() >= PRN_ISA_AVX512) return &prn_fold_avx512;
    if (prn_isa_level() >= PRN_ISA_AVX2) return &prn_fold_avx2;
#endif
    return &prn_fold_scalar;
}
