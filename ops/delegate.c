/* Handing a node on to another row of the table. */
#include "ops/delegate.h"

const prn_kernel prn_like_native = {.backend = "native"}, prn_like_reference = {.backend = "reference"};

/* The context's part that belongs to the row. */
static void enter(const prn_delegate *to, prony_context *context)
{
    context->params = to->params;
    context->user = (void *)(uintptr_t)to->op->variant;
    context->state = to->prepared.state;
    context->constant_inputs = 0; /* whose inputs are others */
    context->device = NULL;       /* its operands are where the caller's kernel has them, on the host */
    context->scratch = NULL;
    context->scratch_bytes = to->prepared.scratch_bytes;
}

prony_status prn_delegate_open(prn_delegate *to, prony_context *context, const char *domain, const char *name,
                               int64_t opset)
{
    to->op = prn_op_find(domain, name, opset);
    to->kernel = NULL;
    to->prepared = (prn_prepared){0};
    if (!to->op || to->op->params_bytes > sizeof to->params)
        return prony_fail(context, PRONY_INTERNAL, "%s is not an operator to delegate to", name);
    enter(to, context);
    PRN_TRY(prn_params_parse(to->op, context->node, to->params, context->error));
    return to->op->check ? to->op->check(context) : PRONY_OK;
}

bool prn_delegate_kernel(prn_delegate *to, const prony_context *context, bool plain_only, const prn_kernel *like)
{
    to->kernel = prn_op_kernel(to->op, context, plain_only, like);
    return to->kernel != NULL;
}

prony_status prn_delegate_prepare(prn_delegate *to, const prony_context *context)
{
    if (!to->kernel) return prony_fail(context, PRONY_UNSUPPORTED, "no kernel of %s supports it", to->op->name);
    prony_status status = to->kernel->prepare ? to->kernel->prepare(context, &to->prepared) : PRONY_OK;
    if (status == PRONY_OK) return PRONY_OK;
    to->kernel = NULL;
    to->prepared = (prn_prepared){0};
    return status;
}

prony_status prn_delegate_run(const prn_delegate *to, prony_context *context, void *scratch)
{
    enter(to, context);
    context->scratch = scratch;
    return to->kernel->run(context);
}

void prn_delegate_release(prn_delegate *to)
{
    if (to->kernel && to->kernel->release) to->kernel->release(to->prepared.state);
}
