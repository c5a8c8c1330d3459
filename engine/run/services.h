/* Engine services that operators may call, in every phase.
 *
 * context->services_data is a prn_node_environment. At bind time it names program and node; in a plan also the plan and
 * step. A call that a phase does not support (running a subgraph while binding) returns PRONY_INTERNAL. */
#ifndef PRN_ENGINE_RUN_SERVICES_H
#define PRN_ENGINE_RUN_SERVICES_H

#include "engine/bind/node_environment.h"

extern const prn_services prn_engine_services;

#endif
