/* Graph rewrites: the same outputs from fewer, larger operators. Runs on a bound program, before it is planned. */
#ifndef PRN_ENGINE_REWRITES_REWRITE_H
#define PRN_ENGINE_REWRITES_REWRITE_H

#include "engine/bind/program.h"

/* Runs every rewrite on the program and on the programs of its subgraphs until none finds anything more, then sweeps.
 * Costs are conserved: every layer stays with exactly one live node. A static program is left as it is. After an error
 * the program can only be released. */
PRN_MUST_USE prony_status prn_program_rewrite(prn_program *program, prony_error *error);

#endif
