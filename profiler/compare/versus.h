/* A comparison with another engine, in memory. versus.c compares, versus_nodes.c joins the profiles, versus_write.c
 * writes. */
#ifndef PRN_PROFILER_COMPARE_VERSUS_H
#define PRN_PROFILER_COMPARE_VERSUS_H

#include "base/memory/alloc.h"
#include "profiler/statistics/statistics.h"
#include "profiler/report/report.h"
#include "prony_judge.h"

typedef struct prn_versus_block {
    prony_versus_process process;
    bool peer;
} prn_versus_block;

typedef struct prn_versus_output {
    const char *name, *reason; /* "": no remark */
    bool agrees;
    double difference;
} prn_versus_output;

struct prony_versus {
    prn_bump pool;
    const prony_report *profile;
    const char *peer, *library;
    prn_versus_block *blocks;
    size_t block_count, block_capacity;
    prn_versus_output *outputs;
    size_t output_count, output_capacity;
    prony_versus_result *results; /* NULL: not computed since the last addition */
    size_t result_count;
    bool ignore_load;
    bool has_operators;
    prony_versus_operator *operators;
    size_t operator_count;
    uint64_t peer_runs; /* in its profile */
};

/* Fills results. */
PRN_MUST_USE prony_status prn_versus_judge(prony_versus *versus, prony_error *error);

#endif
