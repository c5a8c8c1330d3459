/* Makes report rows from program and plan: static facts only; measure.c adds measured ones. */
#ifndef PRN_PROFILER_MEASURE_REPORT_BUILD_H
#define PRN_PROFILER_MEASURE_REPORT_BUILD_H

#include "engine/run/nested.h"
#include "engine/session/session.h"
#include "profiler/report/report.h"

/* `affinity` may be NULL: no affinity list. `nested` as for prn_report_fill_nested. `plan` may be NULL (inspect): no
 * operators, no memory. Costs of dynamic steps are those of the last run. */
PRN_MUST_USE prony_status prn_report_build(prony_report **out, prony_model *model, const prn_program *program,
                                           const prn_plan *plan, const prn_nested *nested,
                                           const prony_session_options *options, int threads,
                                           const prn_affinity *affinity, prony_error *error);

/* Adds the assumed free dimensions. */
PRN_MUST_USE prony_status prn_report_fill_assumed(prony_report *report, const prony_model *model,
                                                  const prn_assumed_list *assumed, prony_error *error);

/* Adds rows of subgraphs, with executions and work of the last run that `nested` read (NULL: nothing ran). Called after
 * the operators. If sums do not agree, `conserved` becomes false (profiler/measure/report_nested.c). */
PRN_MUST_USE prony_status prn_report_fill_nested(prony_report *report, const prn_program *program, const prn_plan *plan,
                                                 const prn_nested *nested, prony_error *error);

/* Copies values, without data, into the report's pool. With `copies` (an entry per value of the program) each value is
 * copied once; NULL: each time. */
PRN_MUST_USE prony_status prn_report_copy_values(prony_report *report, const prn_program *program,
                                                 const prony_value **copies, const uint32_t *ids, uint32_t count,
                                                 const prony_value *const **out, prony_error *error);
/* "layer1/layer1.0" of "/layer1/layer1.0/conv1/Conv": the last part names the node, the ones before it the modules.
 * NULL: no memory. */
const char *prn_report_module_of(prony_report *report, const char *name);

/* Planned figures, buffer events and the timeline of live bytes (profiler/measure/report_memory.c). */
PRN_MUST_USE prony_status prn_report_fill_memory(prony_report *report, prony_model *model, const prn_plan *plan,
                                                 bool record, prony_error *error);

/* Machine, libraries and build (profiler/measure/system.c); `mask` NULL: the calling thread's. */
void prn_report_fill_system(prony_report *report, const prn_cpu_mask *mask);

/* Weights and buffers; after the layers. */
PRN_MUST_USE prony_status prn_report_fill_parameters(prony_report *report, const prn_program *program,
                                                     prony_error *error);
/* Operators written out in primitives, found in the model bound at these inputs; after the layers. */
PRN_MUST_USE prony_status prn_report_fill_composites(prony_report *report, const prony_model *model,
                                                     const prony_value *inputs, size_t input_count, prony_error *error);

#endif
