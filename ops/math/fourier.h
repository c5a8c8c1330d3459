/* Discrete Fourier transforms of any length, in double.
 *
 *   y[k] = sum over n of x[n] exp(-2 pi i k n / N), or with + in the exponent for the inverse (not divided by N)
 *
 * A plan holds tables only, in memory of the caller's; it is read-only afterwards and may be shared by threads, each
 * with working space of its own. A result depends on the input and the length alone.
 */
#ifndef PRN_OPS_MATH_FOURIER_H
#define PRN_OPS_MATH_FOURIER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct prn_complex {
    double re, im;
} prn_complex;

typedef struct prn_fourier {
    int64_t length;           /* N >= 1 */
    int64_t size;             /* power of two that is transformed: N, or what a convolution of N chirps needs */
    const prn_complex *roots; /* exp(-2 pi i k / size), k < size / 2 */
    const prn_complex *chirp; /* exp(-pi i k^2 / N), k < N; NULL if N is a power of two */
    const prn_complex *image; /* transform of the conjugate chirp, divided by `size` */
} prn_fourier;

/* N up to this; what follows counts in prn_complex. */
#define PRN_FOURIER_MAX_LENGTH (INT64_C(1) << 40)
int64_t prn_fourier_table_count(int64_t length);
int64_t prn_fourier_work_count(int64_t length);
/* Fills `tables` and makes a plan of them. */
prn_fourier prn_fourier_make(int64_t length, prn_complex *tables);
/* `x` (N elements) is replaced by its transform; `work` is of the size above. */
void prn_fourier_run(const prn_fourier *plan, bool inverse, prn_complex *x, prn_complex *work);

/* Operations of one transform as they are usually counted: 5 N log2 N, log2 rounded up; half of it where one side is
 * real. */
uint64_t prn_fourier_flops(int64_t length, bool real);

#endif
