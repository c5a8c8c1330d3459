/* prony worker: one process of a study. Measures the latency in a session without stamps, then operators' times in one
 * with them, and writes both to stdout for the study. Internal: no help lists it.
 */
#include "bench/process/interrupt.h"
#include "bench/session/judge.h"
#include "prony_judge.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

/* Samples of a process, so that a study's file stays small, and runs with stamps behind them; chosen without
 * measurement. */
enum { MOST_RUNS = 5000, TRACED_RUNS = 20, FEWEST_TRACED = 3 };

/* Tells the study by a byte on stdout that this process is ready, and waits for its stdin to close: replicas begin
 * together. */
static int wait_at_barrier(const options *o)
{
    char byte;
    ssize_t count;
    if (!o->measuring.barrier) return EXIT_DONE;
    if (putchar('\n') == EOF || fflush(stdout) != 0) return fail(o, "cannot reach the barrier");
    while ((count = read(STDIN_FILENO, &byte, 1)) != 0)
        if (count < 0 && errno != EINTR) return fail(o, "cannot wait for the barrier");
    return EXIT_DONE;
}

static int worker_command_measure(const options *o, prony_model *model, bool traced, prony_report **report)
{
    prony_error error = {0};
    prony_session *session = NULL;
    prony_profile_options p = PRONY_PROFILE_OPTIONS_INIT;
    p.warmup_runs = traced ? FEWEST_TRACED : o->measuring.warmup;
    p.runs = traced ? TRACED_RUNS : o->measuring.runs > 0 ? o->measuring.runs : MOST_RUNS;
    p.max_seconds = traced ? (o->measuring.seconds > 0 ? o->measuring.seconds / 5 : 0) : o->measuring.seconds;
    p.trace_threads = traced;
    int code = make_session(o, model, &session, traced);
    if (code == EXIT_DONE && !traced) code = wait_at_barrier(o);
    if (code == EXIT_DONE && prony_session_profile(report, session, &p, &error) != PRONY_OK)
        code = report_error(o, &error);
    session_release(session);
    return code;
}

int command_worker(const options *o)
{
    prony_error error = {0};
    prony_model *model = NULL;
    prony_report *latency = NULL, *operators = NULL;
#ifdef __linux__
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* without its parent no process reads the results */
#endif
    int code = EXIT_DONE;
    if (load_model(o, &model, o->arguments[0], &error) != PRONY_OK) code = report_error(o, &error);
    if (code == EXIT_DONE) code = quantize_in_place(o, &model);
    if (code == EXIT_DONE) code = worker_command_measure(o, model, false, &latency);
    if (code == EXIT_DONE) code = worker_command_measure(o, model, true, &operators);
    if (code == EXIT_DONE && prony_study_sample_write(latency, operators, write_to_stream, stdout, &error) != PRONY_OK)
        code = report_error(o, &error);
    prony_report_release(latency);
    prony_report_release(operators);
    prony_model_release(model);
    return code;
}
