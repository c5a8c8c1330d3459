/* The keys of "prony.study/1", and of the document that each process of a study writes. */
#ifndef PRN_PROFILER_STUDY_STUDY_KEYS_H
#define PRN_PROFILER_STUDY_STUDY_KEYS_H

#include "profiler/json/keys.h"
#include "profiler/study/study.h"

/* Of a prony_study; all behind "schema". */
extern const prn_key prn_study_keys[];

/* Keys of a prn_study_node; also of the document that a node writes about itself. */
extern const prn_key prn_study_node_keys[];

/* The measurements of one process. */
typedef struct prn_study_sample_operator {
    prn_study_operator what;
    prn_study_operator_time measured;
} prn_study_sample_operator;

typedef struct prn_study_sample {
    int64_t batch, warmup_runs, involuntary_switches;
    bool warmup_detected;
    int64_t *samples_ns;
    size_t sample_count;
    prn_study_sample_operator *operators;
    size_t operator_count;
} prn_study_sample;
extern const prn_key prn_study_sample_keys[];

#endif
