/* Ctrl-C, SIGTERM and --time-limit end the work; measurements until then are still written.
 *
 * A dedicated thread waits for them, so no code runs inside of a signal handler. The first signal cancels the sessions'
 * work; the waiting code then writes its results and ends. The second signal has its default effect. */
#ifndef PRN_BENCH_PROCESS_INTERRUPT_H
#define PRN_BENCH_PROCESS_INTERRUPT_H

#include "bench/command.h"

/* Starts the thread; called before any other thread is made. */
void interrupt_begin(const options *o);

/* As prony_session_create and prony_session_release, for sessions that signals cancel. */
prony_status session_create(prony_session **out, prony_model *model, const prony_session_options *options,
                            prony_error *error);
void session_release(prony_session *session);

/* Encloses work without a session that needs no cleanup (reading a model, for example): there a signal ends the process
 * at once. */
void interrupt_at_once(bool on);

/* The cause, "interrupted" or "the time limit of 2s is up"; NULL: not interrupted. */
const char *interrupted(void);
/* For a command that runs until a signal or the time limit: the end is what was asked for, and the status stays. */
void interrupt_granted(void);
/* The exit status for a command that would end with `code`. */
int interrupt_status(int code);

/* The exit status after a measuring call. A cancelled call with results is EXIT_DONE, after a message. */
int measured(const options *o, prony_status status, const prony_report *report, const prony_error *error);

#endif
