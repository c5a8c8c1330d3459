/* Models of one node, and the library's counts of a built model. */
#ifndef PRN_TESTS_SUPPORT_ONE_NODE_H
#define PRN_TESTS_SUPPORT_ONE_NODE_H

#include "model_builder.h"
#include "prony_report.h"

/* A model of one node whose output is "y". inputs: "1,3,8,8 !4,3,3,3 !4", the dims of each input; ! is a weight of
 * zeros. */
model_builder *one_node(const char *op, int64_t opset, const char *attributes, const char *inputs);
void zero_weight(model_builder *m, const char *name, const char *dims);
/* Finishes the model, and inspects it. */
prony_report *inspect_built(model_builder *m);

#endif
