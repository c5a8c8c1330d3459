/* Counting presets: the counts of other tools for an operator, as pure functions of operator type and facts. */
#ifndef PRN_PROFILER_METRICS_COUNT_PRESETS_H
#define PRN_PROFILER_METRICS_COUNT_PRESETS_H

#include "profiler/report/report.h"

/* The arguments of a counting formula. */
typedef struct prn_count_node {
    const char *op;
    const prony_cost *cost; /* macs and facts */
    uint64_t inputs;        /* n: elements of input 0 */
    uint64_t outputs;       /* o: elements of output 0 */
    int rank;               /* of input 0 */
    size_t operands;        /* inputs that are not omitted */
    bool weighted;          /* it has parameters: a MatMul is a linear layer, not a product of two activations */
} prn_count_node;

typedef struct prn_count_table prn_count_table;

/* NULL: no preset of that name. */
const prn_count_table *prn_count_find(const char *name);
/* true: the tool counts operators written out in primitives as one operator. */
bool prn_count_sees_composites(const prn_count_table *table);
/* false: the tool does not count this operator. PRONY_OUT_OF_RANGE in *status: above 64 bits. */
bool prn_count_operator(const prn_count_table *table, const prn_count_node *node, uint64_t *out, prony_status *status);

#endif
