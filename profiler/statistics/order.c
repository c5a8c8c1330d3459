/* Values in order. */
#include "profiler/statistics/statistics.h"

#include <stdlib.h>

int prn_compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

int prn_compare_i64(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

double prn_median(double *values, size_t count)
{
    if (count == 0) return 0;
    qsort(values, count, sizeof *values, prn_compare_doubles);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}
