/* Random numbers that are the same everywhere: splitmix64 (G. L. Steele and others, 2014), and Box and Muller's
 * normals. */
#include "profiler/statistics/statistics.h"

#include <math.h>

/* splitmix64 */
static uint64_t draws_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15U;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
    z = (z ^ z >> 27) * 0x94d049bb133111ebU;
    return z ^ z >> 31;
}

size_t prn_random_below(uint64_t *state, size_t bound)
{
    return (size_t)(((draws_next(state) >> 32) * bound) >> 32);
}

double prn_random_unit(uint64_t *state)
{
    return ((double)(draws_next(state) >> 11) + 0.5) * 0x1p-53;
}

double prn_random_normal(uint64_t *state)
{
    double radius = sqrt(-2 * log(prn_random_unit(state)));
    return radius * cos(6.283185307179586 * prn_random_unit(state));
}
