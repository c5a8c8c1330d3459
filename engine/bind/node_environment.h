/* The program, plan and step of a node when its operator calls the engine services: context->services_data. */
#ifndef PRN_ENGINE_BIND_NODE_ENVIRONMENT_H
#define PRN_ENGINE_BIND_NODE_ENVIRONMENT_H

#include "engine/bind/program.h"

struct prn_plan;
struct prn_step;

/* Packed forms that last only while an operator runs once. */
typedef struct prn_packings {
    void **blocks;
    size_t count, capacity;
} prn_packings;

typedef struct prn_node_environment {
    prn_program *program;
    prn_node_def *node;
    struct prn_plan *plan; /* NULL at bind time */
    struct prn_step *step;
    uint32_t packed;    /* bit i: input i of the step, a constant, has a packed form */
    prn_packings *once; /* bind time and dynamic steps: for packed forms of operands that are not constant. NULL: a
                           static step */
    /* Dynamic steps with constants that are not pinned: makes those that `kernel` reads, before it prepares and before
     * it runs. */
    prony_status (*hold)(const prony_context *context, const prn_kernel *kernel, bool prepared);
} prn_node_environment;

#endif
