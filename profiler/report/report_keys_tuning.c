/* Keys of the kernels chosen by measurement. */
#include "profiler/report/report_keys.h"

static const prn_key tune_trial_keys[] = {
    {"kernel", PRN_AT(prony_tune_trial, kernel), PRN_ALWAYS, "Kernels that were tried, the default first."},
    {"time_ns", PRN_AT(prony_tune_trial, time_ns), PRN_IF_FROM_0 | PRN_OR_NULL,
     "Median time of one run; null: it failed."},
    {"reorder_ns", PRN_AT(prony_tune_trial, reorder_ns), PRN_LEAST_0,
     "Time to bring values to its layouts, and its result to the default kernel's layout."},
    {"failure", PRN_AT(prony_tune_trial, failure), PRN_IF_SET | PRN_EMPTY, "Reason why it failed."},
    {0}};

static const prn_key tuned_keys[] = {
    {"operator", PRN_AT(prony_tuned_operator, index), PRN_ALWAYS, "Index of the operator."},
    {"kernel", PRN_AT(prony_tuned_operator, kernel), PRN_ALWAYS, "Taken."},
    {"default", PRN_AT(prony_tuned_operator, default_kernel), PRN_ALWAYS, "Kernel without --tune."},
    {"kept", PRN_AT(prony_tuned_operator, cached), PRN_ALWAYS, "Measured by an earlier process."},
    {"tried", PRN_ROWS(prony_tuned_operator, trials, trial_count, tune_trial_keys), PRN_ROW_DIRECT_ROWS, NULL},
    {0}};

// clang-format off
const prn_key prn_tuning_keys[] = {
    {"operators", PRN_AT(prony_tuning, operators), PRN_ALWAYS, "Operators that several kernels support."},
    {"changed", PRN_AT(prony_tuning, changed), PRN_ALWAYS, "Operators with another kernel than without --tune."},
    {"measured", PRN_AT(prony_tuning, measured), PRN_ALWAYS, "Problems (equal operators once) that this process measured."},
    {"kept", PRN_AT(prony_tuning, cached), PRN_ALWAYS, "Problems found in the file."},
    {"taken_back", PRN_AT(prony_tuning, reverted), PRN_ALWAYS | PRN_OLD,
     "true: the default kernels stay, because the others were no faster as a whole."},
    {"default_run_ns", PRN_AT(prony_tuning, default_run_ns), PRN_IF_FROM_0 | PRN_OR_NULL | PRN_OLD,
     "Median time of one run of the default plan, from runs in turns; null: nothing to compare."},
    {"tuned_run_ns", PRN_AT(prony_tuning, tuned_run_ns), PRN_IF_FROM_0 | PRN_OR_NULL | PRN_OLD,
     "Median time of one run with the fastest kernels, likewise."},
    {"untried", PRN_AT(prony_tuning, untried), PRN_ALWAYS, "Operators that were not measured because the time ran out."},
    {"measuring_ns", PRN_AT(prony_tuning, measuring_ns), PRN_LEAST_0, "Time for measuring."},
    {"file_ns", PRN_AT(prony_tuning, file_ns), PRN_LEAST_0, "Time for reading and writing the file."},
    {"file", PRN_AT(prony_tuning, file), PRN_IF_SET | PRN_OR_NULL | PRN_EMPTY, "File with the measurements; null: none."},
    {"note", PRN_AT(prony_tuning, note), PRN_IF_SET | PRN_OR_NULL | PRN_EMPTY, "Remark; null: none."},
    {"choices", PRN_ROWS(prony_tuning, choices, choice_count, tuned_keys), PRN_ALWAYS, "Operators that several kernels support, without those in subgraphs."},
    {0}};
// clang-format on
