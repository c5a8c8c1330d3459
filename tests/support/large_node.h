/* Models of one node with large inputs, written in a line. A failure here ends the program. */
#ifndef PRN_TESTS_SUPPORT_LARGE_NODE_H
#define PRN_TESTS_SUPPORT_LARGE_NODE_H

#include "tests/support/model_builder.h"

#define LARGE_MOST_INPUTS 10

/* Inputs, separated by blanks: [!]TYPE DIMS[=value,...|%below] without the blank before DIMS. Types: f float32, d
 * float64, h float16, i int64, j int32, u uint8, c int8, b bool, s string; ! makes a constant, ? alone is an omitted
 * input. Other elements are random: numbers in [-1, 1), or in [0, below). */
typedef struct large_node {
    const char *name, *op;
    int64_t opset;
    const char *inputs, *attributes;
    const char *type;    /* of the output; NULL: input 0's */
    const char *outputs; /* NULL: "y" */
} large_node;

typedef struct large_input {
    char name[8], dims[48];
    prony_value value; /* data from malloc */
    bool constant;
} large_input;

/* Returns the number of inputs. */
int large_inputs_make(const large_node *node, large_input inputs[LARGE_MOST_INPUTS]);
model_builder *large_model(const large_node *node, const large_input *inputs, int count);

#endif
