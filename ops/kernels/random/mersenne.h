/* The Mersenne Twister MT19937 (Matsumoto and Nishimura, 1998), whose seeded stream of doubles ONNX's reference
 * implementation draws by way of NumPy's RandomState. A stream belongs to its caller and is read in order by one
 * thread.
 */
#ifndef PRN_OPS_KERNELS_RANDOM_MERSENNE_H
#define PRN_OPS_KERNELS_RANDOM_MERSENNE_H

#include <stdint.h>

enum { PRN_MERSENNE_WORDS = 624 };

typedef struct prn_mersenne {
    uint32_t word[PRN_MERSENNE_WORDS];
    int next; /* word that comes next; PRN_MERSENNE_WORDS: all are used up */
} prn_mersenne;

void prn_mersenne_seed(prn_mersenne *stream, uint32_t seed);
/* Uniform in [0, 1), a multiple of 2^-53. */
double prn_mersenne_uniform(prn_mersenne *stream);

#endif
