/* Keys of the kernels chosen by measurement. */
#include "profiler/report/report_keys.h"

static const prn_key tune_trial_keys[] = {
    {"kernel", PRN_AT(prony_tune_trial, kernel), PRN_ALWAYS, "Tried, the default one first."},
    {"time_ns", PRN_AT(prony_tune_trial, time_ns), PRN_IF_FROM_0 | PRN_OR_NULL,
     "Of one run, the median; null: it failed."},
    {"reorder_ns", PRN_AT(prony_tune_trial, reorder_ns), PRN_LEAST_0,
     "Of bringing values to the layouts that it takes, and what it makes to that of the default kernel."},
    {"failure", PRN_AT(prony_tune_trial, failure), PRN_IF_SET | PRN_EMPTY, "Why it failed."},
    {0}};

static const prn_key tuned_keys[] = {
    {"operator", PRN_AT(prony_tuned_operator, index), PRN_ALWAYS, "Index of the operator."},
    {"kernel", PRN_AT(prony_tuned_operator, kernel), PRN_ALWAYS, "Taken."},
    {"default", PRN_AT(prony_tuned_operator, default_kernel), PRN_ALWAYS, "Taken without --tune."},
    {"kept", PRN_AT(prony_tuned_operator, cached), PRN_ALWAYS, "Measured by an earlier process."},
    {"tried", PRN_ROWS(prony_tuned_operator, trials, trial_count, tune_trial_keys), PRN_ROW_DIRECT_ROWS, NULL},
    {0}};

// clang-format off
const prn_key prn_tuning_keys[] = {
    {"operators", PRN_AT(prony_tuning, operators), PRN_ALWAYS, "That several kernels can run."},
    {"changed", PRN_AT(prony_tuning, changed), PRN_ALWAYS, "That take another kernel than without --tune."},
    {"measured", PRN_AT(prony_tuning, measured), PRN_ALWAYS, "Problems, equal operators once, that this process measured."},
    {"kept", PRN_AT(prony_tuning, cached), PRN_ALWAYS, "Problems that the file had."},
    {"taken_back", PRN_AT(prony_tuning, reverted), PRN_ALWAYS | PRN_OLD,
     "The default kernels stay: as a whole the others were no faster."},
    {"default_run_ns", PRN_AT(prony_tuning, default_run_ns), PRN_IF_FROM_0 | PRN_OR_NULL | PRN_OLD,
     "Of one run of the default plan, the median of runs in turns; null: nothing was to be judged."},
    {"tuned_run_ns", PRN_AT(prony_tuning, tuned_run_ns), PRN_IF_FROM_0 | PRN_OR_NULL | PRN_OLD,
     "Of one run with the fastest kernels, likewise."},
    {"untried", PRN_AT(prony_tuning, untried), PRN_ALWAYS, "Operators for which the time for measuring was up."},
    {"measuring_ns", PRN_AT(prony_tuning, measuring_ns), PRN_LEAST_0, "That measuring took."},
    {"file_ns", PRN_AT(prony_tuning, file_ns), PRN_LEAST_0, "That reading and writing the file took."},
    {"file", PRN_AT(prony_tuning, file), PRN_IF_SET | PRN_OR_NULL | PRN_EMPTY, "Where measurements are kept; null: nowhere."},
    {"note", PRN_AT(prony_tuning, note), PRN_IF_SET | PRN_OR_NULL | PRN_EMPTY, "What is to be said of it; null: nothing."},
    {"choices", PRN_ROWS(prony_tuning, choices, choice_count, tuned_keys), PRN_ALWAYS, "Operators that several kernels can run; not those in subgraphs."},
    {0}};
// clang-format on
