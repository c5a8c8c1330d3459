/* Picks the table of element rows for this processor. */
#include "ops/element_rows.h"

#include "base/isa.h"

extern const prn_element_rows prn_element_rows_scalar;
#if defined(__x86_64__)
extern const prn_element_rows prn_element_rows_avx2, prn_element_rows_avx512;
#endif

const prn_element_rows *prn_element_rows_table(void)
{
#if defined(__x86_64__)
    if (prn_isa_level() >= PRN_ISA_AVX512) return &prn_element_rows_avx512;
    if (prn_isa_level() >= PRN_ISA_AVX2) return &prn_element_rows_avx2;
#endif
    return &prn_element_rows_scalar;
}
