/* Ctrl-C while C code runs. Python's own handler only leaves a note for the interpreter, which is not running; so for
 * the time of the call SIGINT goes through a handler that calls the sessions off first and then hands on to
 * Python's. */
#include "py_prony.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

static prony_session *const *_Atomic sessions;
static _Atomic size_t session_count;
static atomic_bool pressed;
static atomic_int inside; /* handlers at work, on whatever threads */
static struct sigaction before;

static void on_interrupt(int number, siginfo_t *info, void *context)
{
    atomic_fetch_add(&inside, 1);
    prony_session *const *list = atomic_load(&sessions);
    size_t count = atomic_load(&session_count);
    atomic_store(&pressed, true);
    for (size_t i = 0; list && i < count; i++) prony_session_cancel(list[i]);
    if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(number, info, context);
    else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
        before.sa_handler(number);
    atomic_fetch_sub(&inside, 1);
}

/* Python runs its handlers on the main thread alone. */
static bool on_main_thread(void)
{
    static _Thread_local int known; /* 0: not asked yet */
    if (known == 0) known = syscall(SYS_gettid) == getpid() ? 1 : -1;
    return known == 1;
}

static bool py_interrupt_is_ours(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == on_interrupt;
}

void pyp_guard_begin(pyp_guard *guard, prony_session *const *list, size_t count)
{
    static struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
    struct sigaction former;
    *guard = (pyp_guard){false, list, count};
    if (!on_main_thread() || atomic_load(&sessions)) return; /* non-NULL: a run inside an operator of another run */
    ours.sa_sigaction = on_interrupt;
    atomic_store(&pressed, false);
    if (sigaction(SIGINT, &ours, &former) != 0) return;
    if (py_interrupt_is_ours(&former)) return;
    before = former;
    if (!(former.sa_flags & SA_SIGINFO) && (former.sa_handler == SIG_DFL || former.sa_handler == SIG_IGN)) {
        sigaction(SIGINT, &former, NULL); /* the program does not handle SIGINT */
        return;
    }
    atomic_store(&session_count, count);
    atomic_store(&sessions, list);
    guard->set = true;
}

bool pyp_guard_end(pyp_guard *guard)
{
    if (!guard->set) return false;
    atomic_store(&sessions, NULL);
    sigaction(SIGINT, &before, NULL);
    while (atomic_load(&inside)) sched_yield(); /* a handler on another thread may still read the list */
    bool was = atomic_load(&pressed);
    for (size_t i = 0; was && i < guard->count; i++) (void)!prony_session_uncancel(guard->sessions[i], NULL);
    guard->set = false;
    return was;
}
