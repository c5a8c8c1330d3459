#include "engine/session/batch_rules.h"

#include "prony_serve.h"

#include <math.h>

int prn_batch_sizes(int64_t sizes[PRN_BATCH_SIZES], int64_t max)
{
    int count = 0;
    double steps = log2((double)(max > 1 ? max : 1)) / (PRN_BATCH_SIZES - 1);
    sizes[count++] = 1;
    for (int i = 1; i < PRN_BATCH_SIZES - 1; i++) {
        int64_t size = INT64_C(1) << llround(steps * i);
        if (size > sizes[count - 1] && size < max) sizes[count++] = size;
    }
    if (max > 1) sizes[count++] = max;
    return count;
}

int prony_batch_run_sizes(int64_t max_batch, int64_t sizes[4])
{
    return prn_batch_sizes(sizes, max_batch > PRN_BATCH_MOST ? PRN_BATCH_MOST : max_batch);
}

int64_t prn_batch_next_size(const int64_t *sizes, int count, int64_t waiting)
{
    int64_t size = 1;
    for (int i = 0; i < count; i++)
        if (sizes[i] <= waiting) size = sizes[i];
    return size;
}

int64_t prn_batch_window_end(int64_t submitted_ns, int64_t max_wait_ns, int64_t deadline_ns)
{
    int64_t end_ns;
    if (__builtin_add_overflow(submitted_ns, max_wait_ns, &end_ns)) end_ns = INT64_MAX;
    int64_t half = submitted_ns / 2 + deadline_ns / 2;
    return deadline_ns && half < end_ns ? half : end_ns;
}
