/* --from and --to: a part of the model in its place. */
#ifndef PRN_BENCH_SESSION_SUBMODEL_H
#define PRN_BENCH_SESSION_SUBMODEL_H

#include "bench/command.h"

/* Whether --from or --to was given. */
bool is_part(const options *o);
/* The part of a loaded model as a model with a session, whose inputs are what a run of the model up to the cut left
 * there. */
int open_part(const options *o, prony_model *whole, prony_model **part, prony_session **session, bool profile);

#endif
