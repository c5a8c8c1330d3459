/* Picks the vector table for this processor. */
#include "ops/loops/vec.h"

#include "base/isa.h"

extern const prn_vec_table prn_vec_scalar;
#if defined(__x86_64__)
extern const prn_vec_table prn_vec_avx2, prn_vec_avx512;
#endif

const prn_vec_table *prn_vec(void)
{
#if defined(__x86_64__)
    if (prn_isa_level() >= PRN_ISA_AVX512) return &prn_vec_avx512;
    if (prn_isa_level() >= PRN_ISA_AVX2) return &prn_vec_avx2;
#endif
    return &prn_vec_scalar;
}
