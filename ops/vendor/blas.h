/* The part of OpenBLAS (openmp build) that Prony uses: float64 products, one-threaded, inside tiles that we cut. */
#ifndef PRN_OPS_VENDOR_BLAS_H
#define PRN_OPS_VENDOR_BLAS_H

#include "ops/kernels/gemm/matmul.h"

/* "0.3.21": of the library that is loaded; before anything needed it, of the header that Prony was built with. "" if
 * OpenBLAS is not built in or could not be loaded. Storage of the calling thread, until its next call. */
const char *prn_blas_version(void);

#ifdef PRN_HAVE_OPENBLAS
/* Loads OpenBLAS if all else holds: whether address space is not bounded (see the file), this OpenBLAS is the build
 * that heeds OpenMP's thread pool size, the instruction set is not capped below what the processor has (OpenBLAS would
 * not heed the cap), and A and B have a unit stride each. */
bool prn_matmul_blas_supported(const prn_matmul_desc *product);
/* Of what prn_matmul_reference_prepare prepared. */
prony_status prn_matmul_blas_run(const prony_context *context);
#endif

#endif
