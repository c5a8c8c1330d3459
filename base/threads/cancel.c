/* Each thread has its own pointer to a token; the token belongs to its owner. */
#include "base/threads/cancel.h"

#include <string.h>

/* A piece takes about a millisecond at 4 GB/s, which delays a cancellation. */
enum { COPY_PIECE_BYTES = 4 << 20 };

/* Read once per operator and task, so the TLS model avoids the call that a shared library needs by default. */
static _Thread_local const prn_cancel_token *current __attribute__((tls_model("initial-exec")));

const prn_cancel_token *prn_cancel_token_enter(const prn_cancel_token *stop)
{
    const prn_cancel_token *former = current;
    current = stop;
    return former;
}

const prn_cancel_token *prn_cancel_token_current(void)
{
    return current;
}

bool prn_cancelled(void)
{
    return prn_cancel_requested(current);
}

prony_status prn_cancel_check(prony_error *error)
{
    return prn_cancelled() ? prn_fail(error, PRONY_CANCELLED, "cancelled") : PRONY_OK;
}

void prn_cancellable_copy(void *to, const void *from, size_t bytes)
{
    for (size_t done = 0, piece; done < bytes && !prn_cancelled(); done += piece) {
        piece = bytes - done < COPY_PIECE_BYTES ? bytes - done : COPY_PIECE_BYTES;
        memcpy((char *)to + done, (const char *)from + done, piece);
    }
}

void prn_cancellable_clear(void *to, size_t bytes)
{
    for (size_t done = 0, piece; done < bytes && !prn_cancelled(); done += piece) {
        piece = bytes - done < COPY_PIECE_BYTES ? bytes - done : COPY_PIECE_BYTES;
        memset((char *)to + done, 0, piece);
    }
}
