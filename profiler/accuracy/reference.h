/* One node of a model in float64: what its operator makes of widened inputs. */
#ifndef PRN_PROFILER_ACCURACY_REFERENCE_H
#define PRN_PROFILER_ACCURACY_REFERENCE_H

#include "engine/bind/program.h"
#include "profiler/accuracy/f64_tensor.h"

typedef struct prn_reference {
    prn_program *program; /* bound, not rewritten */
    prn_services host;    /* the model's, but for bytes of outputs whose shape only a run knows */
    int threads;
} prn_reference;

void prn_reference_begin(prn_reference *r, prn_program *program, int threads);
/* Why there can be no reference of the node, whatever its inputs; NULL: there can. */
const char *prn_reference_refuses(const prn_node_def *node);
/* What a node reads: its inputs, then what its subgraphs capture. */
uint32_t prn_reference_reads(const prn_node_def *node);
uint32_t prn_reference_read_at(const prn_node_def *node, uint32_t i);
/* A constant of the program; nothing where it is no tensor of numbers. */
PRN_MUST_USE prony_status prn_reference_constant(prn_program *program, uint32_t v, prn_f64_tensor *out,
                                                 prony_error *error);
/* inputs[i] is what the node reads at i; NULL: omitted. `outputs` has the node's output_count, empty before; those that
 * are not made in float64 are marked as rounded. A node that fails leaves them empty, with PRONY_OK and *why set. */
PRN_MUST_USE prony_status prn_reference_run(const prn_reference *r, const prn_node_def *node,
                                            const prn_f64_tensor *const *inputs, prn_f64_tensor *outputs,
                                            const char **why, prony_error *error);

/* ---- operators that the table has no float64 of (reference_quantized.c, reference_conv.c): *done says whether it was
 * one */

PRN_MUST_USE prony_status prn_reference_codes(const prn_reference *r, const prn_node_def *node,
                                              const prn_f64_tensor *const *inputs, prn_f64_tensor *outputs, bool *done,
                                              prony_error *error);
PRN_MUST_USE prony_status prn_reference_conv(const prn_reference *r, const prn_node_def *node,
                                             const prn_f64_tensor *const *inputs, prn_f64_tensor *outputs, bool *done,
                                             prony_error *error);
/* ---- nodes with subgraphs (reference_control.c) */

/* NULL: it is one whose subgraphs can be run. */
const char *prn_reference_control_refuses(const prn_node_def *node);
PRN_MUST_USE prony_status prn_reference_control(const prn_reference *r, const prn_node_def *node,
                                                const prn_f64_tensor *const *reads, prn_f64_tensor *outputs,
                                                const char **why, prony_error *error);
/* A context for functions of ops/, with inputs of the caller's. */
prony_context prn_reference_context(const prn_reference *r, const prn_node_def *node, const prony_value **inputs,
                                    prony_value **outputs, prony_error *error);

#endif
