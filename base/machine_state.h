/* What the machine is doing at a moment, read from the kernel. What cannot be read says so (prony_machine_state). No
 * heap use. */
#ifndef PRN_BASE_MACHINE_STATE_H
#define PRN_BASE_MACHINE_STATE_H

#include "base/status.h"

void prn_machine_state_read(prony_machine_state *out);

#endif
