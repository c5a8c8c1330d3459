/* The engine's side of the host table: what operators may ask of it, in every phase.
 *
 * context->host_data is a prn_site. At bind time it names program and node; in a plan also the plan and step. A call that a
 * phase does not offer (running a subgraph while binding) is PRONY_INTERNAL.
 */
#ifndef PRN_ENGINE_RUN_HOST_H
#define PRN_ENGINE_RUN_HOST_H

#include "engine/bind/program.h"

struct prn_plan;
struct prn_step;

/* Packed forms that last only while an operator runs once. */
typedef struct prn_packings {
    void **blocks;
    size_t count, capacity;
} prn_packings;

typedef struct prn_site {
    prn_program *program;
    prn_node_def *node;
    struct prn_plan *plan; /* NULL at bind time */
    struct prn_step *step;
    prn_packings *once; /* bind time and dynamic steps: for packed forms of what is not constant. NULL: a static step */
} prn_site;

extern const prn_host prn_engine_host;

#endif
