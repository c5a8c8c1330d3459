/* --from and --to: a submodel instead of the model. */
#ifndef PRN_BENCH_SESSION_SUBMODEL_H
#define PRN_BENCH_SESSION_SUBMODEL_H

#include "bench/command.h"

/* true: --from or --to was given. */
bool is_submodel(const options *o);
/* Opens a submodel of a loaded model with a session. Its inputs are the values at the cut after a run of the model up
 * to there. */
int open_submodel(const options *o, prony_model *whole, prony_model **part, prony_session **session, bool profile);

#endif
