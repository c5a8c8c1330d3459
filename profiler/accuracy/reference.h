/* Evaluates one node of a model in float64, on widened inputs. */
#ifndef PRN_PROFILER_ACCURACY_REFERENCE_H
#define PRN_PROFILER_ACCURACY_REFERENCE_H

#include "engine/bind/program.h"
#include "profiler/accuracy/f64_tensor.h"

typedef struct prn_reference {
    prn_program *program;  /* bound, not rewritten */
    prn_services services; /* the model's, except for bytes of outputs with a shape known at run time only */
    int threads;
} prn_reference;

void prn_reference_begin(prn_reference *r, prn_program *program, int threads);
/* The reason why the node can have no reference with any inputs; NULL: it can. */
const char *prn_reference_refuses(const prn_node_def *node);
/* The values that a node reads: its inputs, then captures of its subgraphs. */
uint32_t prn_reference_reads(const prn_node_def *node);
uint32_t prn_reference_read_at(const prn_node_def *node, uint32_t i);
/* A constant of the program; empty if it is not a tensor of numbers. */
PRN_MUST_USE prony_status prn_reference_constant(prn_program *program, uint32_t v, prn_f64_tensor *out,
                                                 prony_error *error);
/* inputs[i] is read `i` of the node; NULL: omitted. `outputs` has output_count tensors, empty before; those not made in
 * float64 are marked as rounded. If the node fails, they stay empty, with PRONY_OK and *why set. */
PRN_MUST_USE prony_status prn_reference_run(const prn_reference *r, const prn_node_def *node,
                                            const prn_f64_tensor *const *inputs, prn_f64_tensor *outputs,
                                            const char **why, prony_error *error);

/* ---- operators without a float64 kernel in the table (reference_quantized.c, reference_conv.c); *done: it was such a
 * one */

PRN_MUST_USE prony_status prn_reference_codes(const prn_reference *r, const prn_node_def *node,
                                              const prn_f64_tensor *const *inputs, prn_f64_tensor *outputs, bool *done,
                                              prony_error *error);
PRN_MUST_USE prony_status prn_reference_conv(const prn_reference *r, const prn_node_def *node,
                                             const prn_f64_tensor *const *inputs, prn_f64_tensor *outputs, bool *done,
                                             prony_error *error);
/* ---- nodes with subgraphs (reference_control.c) */

/* NULL: the node's subgraphs can be run. */
const char *prn_reference_control_refuses(const prn_node_def *node);
PRN_MUST_USE prony_status prn_reference_control(const prn_reference *r, const prn_node_def *node,
                                                const prn_f64_tensor *const *reads, prn_f64_tensor *outputs,
                                                const char **why, prony_error *error);
/* A context for functions of ops/, with the caller's inputs. */
prony_context prn_reference_context(const prn_reference *r, const prn_node_def *node, const prony_value **inputs,
                                    prony_value **outputs, prony_error *error);

#endif
