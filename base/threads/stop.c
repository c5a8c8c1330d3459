/* Which request a thread works for is the thread's own; the request is its owner's. */
#include "base/threads/stop.h"

#include <string.h>

enum { COPY_PIECE_BYTES = 4 << 20 };

/* Looked at once per operator and task: without a call to find it, as a shared library's would need by default. */
static _Thread_local const prn_stop *current __attribute__((tls_model("initial-exec")));

const prn_stop *prn_stop_enter(const prn_stop *stop)
{
    const prn_stop *former = current;
    current = stop;
    return former;
}

const prn_stop *prn_stop_current(void)
{
    return current;
}

bool prn_stopped(void)
{
    return prn_stop_requested(current);
}

prony_status prn_stop_check(prony_error *error)
{
    return prn_stopped() ? prn_fail(error, PRONY_CANCELLED, "cancelled") : PRONY_OK;
}

void prn_stop_copy(void *to, const void *from, size_t bytes)
{
    for (size_t done = 0, piece; done < bytes && !prn_stopped(); done += piece) {
        piece = bytes - done < COPY_PIECE_BYTES ? bytes - done : COPY_PIECE_BYTES;
        memcpy((char *)to + done, (const char *)from + done, piece);
    }
}

void prn_stop_clear(void *to, size_t bytes)
{
    for (size_t done = 0, piece; done < bytes && !prn_stopped(); done += piece) {
        piece = bytes - done < COPY_PIECE_BYTES ? bytes - done : COPY_PIECE_BYTES;
        memset((char *)to + done, 0, piece);
    }
}
