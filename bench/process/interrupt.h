/* Ctrl-C, SIGTERM and --time-limit end what runs; what was measured until then is written all the same.
 *
 * A thread of its own waits for them, so that nothing happens inside of a signal handler. The first one calls off what
 * the sessions do, and whoever waits for that goes on to write and ends; the second one ends the process as it would
 * have done without this. */
#ifndef PRN_BENCH_PROCESS_INTERRUPT_H
#define PRN_BENCH_PROCESS_INTERRUPT_H

#include "bench/command.h"

/* From now on, before any other thread is made. */
void interrupt_begin(const options *o);

/* As prony_session_create and prony_session_release, for sessions that are to be called off. */
prony_status session_create(prony_session **out, prony_model *model, const prony_session_options *options,
                            prony_error *error);
void session_release(prony_session *session);

/* Around what knows no session and leaves nothing behind (reading a model, say): there it ends the process at once. */
void interrupt_at_once(bool on);

/* What it was, "interrupted" or "the time limit of 2s is up"; NULL: nothing yet. */
const char *interrupted(void);
/* What to end with where the command would with `code`. */
int interrupt_status(int code);

/* Of a call that measured: EXIT_DONE also where it was called off with something in hand, after a message that says
 * so. */
int measured(const options *o, prony_status status, const prony_report *report, const prony_error *error);

#endif
