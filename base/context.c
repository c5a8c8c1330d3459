/* What every operator's function, built-in or custom, may call on its context. */
#include "base/parallel.h"
#include "base/status.h"

#include <string.h>

void prn_error_name_node(prony_error *error, const prony_node *node)
{
    bool foreign = node->domain && node->domain[0];
    prn_error_prefix(error, "node '%s' (%s%s%s)", node->name ? node->name : "", foreign ? node->domain : "",
                     foreign ? "::" : "", node->op_type ? node->op_type : "");
}

prony_status prn_error_blame(prony_error *error, prony_status status, const prony_node *node)
{
    bool memory = status == PRONY_LIMIT || status == PRONY_OUT_OF_MEMORY;
    if (memory && error && strncmp(error->message, "node '", 6) != 0) prn_error_name_node(error, node);
    return status;
}

prony_status prony_fail(const prony_context *context, prony_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    prn_fail_v(context->error, status, format, args);
    va_end(args);
    if (context->node) prn_error_name_node(context->error, context->node);
    return status;
}

void prony_parallel_for(const prony_context *context, int64_t count, int64_t grain,
                        void (*fn)(void *argument, int64_t begin, int64_t end), void *argument)
{
    prn_parallel_range(context->threads, count, grain, fn, argument);
}
