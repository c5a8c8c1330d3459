/* What Prony takes from OpenBLAS (openmp build): float64 products, one-threaded, inside tiles that we cut. */
#ifndef PRN_OPS_BLAS_H
#define PRN_OPS_BLAS_H

#include "ops/product.h"

/* "0.3.21", or "" if OpenBLAS is not built in. Static storage. */
const char *prn_blas_version(void);

#ifdef PRN_HAVE_OPENBLAS
/* Whether this OpenBLAS is the build that heeds OpenMP's team size, the instruction set is not capped below what the
 * processor has (OpenBLAS would not heed the cap), and A and B have a unit stride each. */
bool prn_product_blas_usable(const prn_product *product);
prony_status prn_product_blas_run(const prony_context *context, const prn_product *product);
#endif

#endif
