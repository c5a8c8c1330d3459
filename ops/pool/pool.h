/* Shared by the pooling operators and their global forms: their kinds, and the p-norm. */
#ifndef PRN_OPS_POOL_POOL_H
#define PRN_OPS_POOL_POOL_H

#include "ops/kernels/vector/elementwise.h"
#include "ops/kernels/window/window.h"

#include <math.h>

/* The variant of every row of pool.c and pool_global.c. */
typedef enum prn_pool_kind { PRN_POOL_MAX, PRN_POOL_AVERAGE, PRN_POOL_LP } prn_pool_kind;

static inline prn_pool_kind prn_pool_kind_of(const prony_context *context)
{
    return *(const prn_pool_kind *)prn_variant(context);
}

/* |x|^p */
static inline double prn_pool_power(double x, int64_t p)
{
    return p == 2 ? x * x : (p == 1 ? fabs(x) : pow(fabs(x), (double)p));
}

/* sum^(1/p) */
static inline double prn_pool_root(double sum, int64_t p)
{
    return p == 2 ? sqrt(sum) : (p == 1 ? sum : pow(sum, 1.0 / (double)p));
}

static inline prony_status prn_pool_check_p(const prony_context *context, int64_t p)
{
    if (p >= 1) return PRONY_OK;
    return prony_fail(context, PRONY_INVALID_MODEL, "p is %lld, wanted at least 1", (long long)p);
}

/* A power and an addition per tap of every output element, and a root; no root for p = 1. */
#define PRN_POOL_LP_COST_TEXT "2 n K (p = 1: n (2 K - 1)); special n (p = 2), n (K + 1) (p > 2), 0 (p = 1)"
static inline prony_status prn_pool_cost_lp(const prony_context *context, prony_cost *cost, uint64_t volume, int64_t p)
{
    const uint64_t special = p == 1 ? 0 : (p == 2 ? 1 : volume + 1);
    const uint64_t outputs = volume ? prn_output_elements(context) : 0;
    return prn_cost_elementwise(context, cost, outputs, 2 * volume - (p == 1), special);
}

/* MaxPool of 8-bit codes, channels last (pool_int8.c), for windows that fit; each meets the input somewhere. */
bool prn_pool_codes_fit(const prn_window *window);
void prn_pool_codes_layouts(const prony_context *context, prn_layout *in, prn_layout *out);
void prn_pool_codes_run(const prony_context *context, const prn_window *window);

#endif
