/* Ctrl-C while C code runs. Python's own handler only leaves a note for the interpreter, which is not running; so for the time of
 * the call SIGINT goes through a handler that calls the sessions off first and then hands on to Python's. */
#include "extension.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

static prony_session *const *_Atomic sessions;
static _Atomic size_t session_count;
static atomic_bool pressed;
static struct sigaction before;

static void on_interrupt(int number, siginfo_t *info, void *context)
{
    prony_session *const *list = atomic_load(&sessions);
    size_t count = atomic_load(&session_count);
    atomic_store(&pressed, true);
    for (size_t i = 0; list && i < count; i++) prony_session_cancel(list[i]);
    if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(number, info, context);
    else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
        before.sa_handler(number);
}

static bool on_main_thread(void)
{
    return syscall(SYS_gettid) == getpid();
}

void pyp_guard_begin(pyp_guard *guard, prony_session *const *list, size_t count)
{
    *guard = (pyp_guard){false, list, count};
    struct sigaction action;
    if (!on_main_thread() || sigaction(SIGINT, NULL, &action) != 0) return;
    if (!(action.sa_flags & SA_SIGINFO) && (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN)) return;
    if ((action.sa_flags & SA_SIGINFO) && action.sa_sigaction == on_interrupt) return; /* a run inside of an operator */
    before = action;
    action.sa_flags |= SA_SIGINFO;
    action.sa_sigaction = on_interrupt;
    atomic_store(&pressed, false);
    atomic_store(&session_count, count);
    atomic_store(&sessions, list);
    guard->set = sigaction(SIGINT, &action, NULL) == 0;
}

bool pyp_guard_end(pyp_guard *guard)
{
    if (!guard->set) return false;
    sigaction(SIGINT, &before, NULL);
    atomic_store(&sessions, NULL);
    bool was = atomic_load(&pressed);
    for (size_t i = 0; was && i < guard->count; i++) (void)!prony_session_uncancel(guard->sessions[i], NULL);
    guard->set = false;
    return was;
}
