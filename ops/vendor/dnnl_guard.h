/* Keeps C++ exceptions inside of oneDNN. Its functions are C, yet a failed allocation leaves most of them as
 * std::bad_alloc, which would end the process: no C function on the stack can catch it. */
#ifndef PRN_OPS_VENDOR_DNNL_GUARD_H
#define PRN_OPS_VENDOR_DNNL_GUARD_H

#include "ops/op.h"

#ifdef PRN_HAVE_DNNL
#include <dnnl.h>

/* Calls function(argument) and returns its status; dnnl_out_of_memory if an exception left it. The frames between here
 * and oneDNN are dropped: `function` holds no lock, and what it makes it notes in `argument` at once, for the caller to
 * destroy. */
dnnl_status_t prn_dnnl_guarded(dnnl_status_t (*function)(void *argument), void *argument);
/* The same for functions that create objects, dnnl_out_of_memory at once where little memory is left: oneDNN 2.6 writes
 * to some of them without asking whether their allocation failed. */
dnnl_status_t prn_dnnl_guarded_creation(dnnl_status_t (*function)(void *argument), void *argument);
#endif

#endif
