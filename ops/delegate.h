/* One row's work done by another row: a node of the caller's making, whose attributes the other row parses and checks
 * and whose kernel is chosen as the plan chooses. The caller keeps the prn_delegate in its prepared state, so
 * that the prepared node is the one that runs.
 *
 *   usable, layouts:  open, kernel
 *   prepare:          open, kernel, prepare       run: run       release: release */
#ifndef PRN_OPS_DELEGATE_H
#define PRN_OPS_DELEGATE_H

#include "ops/op.h"

enum { PRN_DELEGATE_PARAMS = 256 };

typedef struct prn_delegate {
    const prn_op *op;         /* whose infer and cost take the opened context, too */
    const prn_kernel *kernel; /* NULL until one is chosen */
    prn_prepared prepared;
    _Alignas(16) char params[PRN_DELEGATE_PARAMS];
} prn_delegate;

/* Kinds of kernels to choose among, for `like`: the vectorised ones, and the plain C reference. */
extern const prn_kernel prn_like_native, prn_like_reference;

/* `context` is the caller's own, changed to the node, inputs and outputs that the other row is to see; its params, user
 * and state become the other row's. It points into *to. `opset` is that of the row, not the node's. */
prony_status prn_delegate_open(prn_delegate *to, prony_context *context, const char *domain, const char *name,
                               int64_t opset);
/* Chooses to->kernel by prn_op_kernel. False: no kernel fits. */
bool prn_delegate_kernel(prn_delegate *to, const prony_context *context, bool plain_only, const prn_kernel *like);
/* Scratch of to->prepared.scratch_bytes bytes is the caller's to provide. After a failure there is nothing to
 * release. */
prony_status prn_delegate_prepare(prn_delegate *to, const prony_context *context);
/* `context` as for prn_delegate_open, which need not be called again. */
prony_status prn_delegate_run(const prn_delegate *to, prony_context *context, void *scratch);
void prn_delegate_release(prn_delegate *to);

#endif
