/* A row of tests/operators/cases as a whole model with one node, to be taken through load, bind, plan and run. */
#ifndef PRN_TESTS_SUPPORT_OP_CASE_MODEL_H
#define PRN_TESTS_SUPPORT_OP_CASE_MODEL_H

#include "tests/support/op_cases.h"

#define OP_CASE_NODE_NAME "the_node"

/* Constant inputs of the model: as in the row, all, or none; the latter also with free dimensions or of unknown rank
 * until the run. */
typedef enum op_case_form {
    OP_CASE_AS_WRITTEN,
    OP_CASE_ALL_CONSTANT,
    OP_CASE_NONE_CONSTANT,
    OP_CASE_FREE_DIMS,
    OP_CASE_FREE_RANK,
} op_case_form;
#define OP_CASE_FORMS 5

/* The model's bytes, from malloc. Inputs are named x0, x1, …, outputs y0, y1, … */
uint8_t *op_case_model(const op_case_node *row, op_case_form form, size_t *size);

/* Load, inspection and its report, bind, plan and one run with a bound on memory and Loop trips; every byte of the
 * outputs is read. */
prony_status op_case_try(const op_case_node *row, op_case_form form, prony_error *error);

/* The same, and passes every output to `see`. */
prony_status op_case_show(const op_case_node *row, op_case_form form,
                          void (*see)(void *argument, size_t output, const prony_value *value), void *argument,
                          prony_error *error);

#endif
