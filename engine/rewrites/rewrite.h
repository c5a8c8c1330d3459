/* Graph rewrites: the same outputs from fewer, larger operators. Runs on a bound program, before it is planned. */
#ifndef PRN_ENGINE_REWRITES_REWRITE_H
#define PRN_ENGINE_REWRITES_REWRITE_H

#include "engine/bind/program.h"

/* Runs every rewrite on the program and on its subgraphs until nothing changes, then sweeps. Costs are conserved: every
 * layer stays with exactly one live node. A static program is left as it is. After an error the program can only be
 * released. */
PRN_MUST_USE prony_status prn_program_rewrite(prn_program *program, prony_error *error);

/* The rewrites in the order in which they run. */
size_t prn_rewrite_count(void);
const char *prn_rewrite_name(size_t k);
/* The same, and adds to fired[k] how many times rewrite k changed the program or a subgraph's. NULL: no counts. */
PRN_MUST_USE prony_status prn_program_rewrite_counted(prn_program *program, uint64_t *fired, prony_error *error);

#endif
