/* Calls on a context for every operator's function, built-in or custom. */
#include "base/threads/parallel.h"
#include "base/status.h"
#include "base/threads/cancel.h"

#include <string.h>

void prn_error_name_part(prony_error *error, const prony_node *node, const char *part)
{
    bool foreign = node->domain && node->domain[0];
    prn_error_prefix(error, "node '%s' (%s%s%s)%s%s", node->name ? node->name : "", foreign ? node->domain : "",
                     foreign ? "::" : "", node->op_type ? node->op_type : "", part ? ", " : "", part ? part : "");
    if (node->within) prn_error_prefix(error, "%s", node->within);
}

void prn_error_name_node(prony_error *error, const prony_node *node)
{
    prn_error_name_part(error, node, NULL);
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
    if (!context) return status;
    va_start(args, format);
    if (format) prn_fail_v(context->error, status, format, args);
    va_end(args);
    if (!format) prn_fail(context->error, status, "no message was given");
    if (context->node) prn_error_name_node(context->error, context->node);
    return status;
}

bool prony_cancelled(const prony_context *context)
{
    (void)context;
    return prn_cancelled();
}

typedef struct user_loop {
    void (*fn)(void *argument, int64_t begin, int64_t end);
    void *argument;
    const prn_cancel_token *stop;
} user_loop;

static void context_run_piece(void *argument, int64_t begin, int64_t end)
{
    const user_loop *loop = argument;
    const prn_cancel_token *former = prn_cancel_token_enter(loop->stop);
    loop->fn(loop->argument, begin, end);
    (void)prn_cancel_token_enter(former);
}

/* No piece is left out: what the caller does with their results is not ours to know. */
void prony_parallel_for(const prony_context *context, int64_t count, int64_t grain,
                        void (*fn)(void *argument, int64_t begin, int64_t end), void *argument)
{
    if (!fn) return;
    user_loop loop = {fn, argument, prn_cancel_token_current()};
    const prn_cancel_token *former = prn_cancel_token_enter(NULL);
    prn_parallel_range(context ? context->threads : 1, count, grain, context_run_piece, &loop);
    (void)prn_cancel_token_enter(former);
}
