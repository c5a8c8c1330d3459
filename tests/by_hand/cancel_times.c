/* Measures how soon operators answer a cancellation. Run by hand, because it measures time.
 *
 *     cancel_times [-t THREADS] [-w] [TEXT]
 *
 * For every case whose name contains TEXT: a model of one large operator is run, and cancelled after 25, 60 and 250 ms
 * by another thread. Printed is the most processor time of the whole process, in ms, between the request and the
 * answer, and how many of the runs were cancelled (the others had ended). Cases marked > exceed 100 ms. With -w
 * nothing is cancelled, and the time of the second of two whole runs is printed. */
#include "tests/by_hand/cancel_cases.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void check(prony_status status, const prony_error *error)
{
    if (status == PRONY_OK) return;
    printf("?             %s\n", error->message);
    fflush(stdout);
    exit(1);
}

/* ---- a case ---- */

typedef struct canceller {
    prony_session *session;
    int64_t after_ms;
    double at;
} canceller;

static void *cancel_later(void *argument)
{
    canceller *c = argument;
    nanosleep(&(struct timespec){c->after_ms / 1000, c->after_ms % 1000 * 1000000}, NULL);
    c->at = cpu_ms();
    prony_session_cancel(c->session);
    return NULL;
}

static void whole_runs(prony_session *session, const char *name)
{
    prony_error error = {0};
    double before = 0;
    for (int run = 0; run < 2; run++) {
        before = cpu_ms();
        check(prony_session_run(session, &error), &error);
    }
    printf("%9.1f  %s\n", cpu_ms() - before, name);
    fflush(stdout);
}

static void measure(const large_node *c, int threads, bool whole)
{
    static const int64_t delays[] = {25, 60, 250};
    prony_error error = {0};
    prony_model *model = NULL;
    prony_session *session = NULL;
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    large_input inputs[LARGE_MOST_INPUTS] = {0};
    size_t size;
    options.intra_op_threads = threads;
    const int count = large_inputs_make(c, inputs);
    model_builder *m = large_model(c, inputs, count);
    const void *bytes = mb_finish(m, &size);
    check(prony_model_load_memory(&model, c->name, bytes, size, NULL, &error), &error);
    check(prony_session_create(&session, model, &options, &error), &error);
    for (int i = 0; i < count; i++) {
        if (!inputs[i].constant && inputs[i].name[0] != '?')
            check(prony_session_set_input(session, inputs[i].name, &inputs[i].value, &error), &error);
        free(inputs[i].value.data);
    }
    if (whole) {
        whole_runs(session, c->name);
        return;
    }
    double worst = 0;
    int cancelled = 0;
    for (size_t d = 0; d < sizeof delays / sizeof *delays; d++) {
        canceller who = {session, delays[d], 0};
        pthread_t other;
        if (pthread_create(&other, NULL, cancel_later, &who) != 0) exit(1);
        prony_status status = prony_session_run(session, &error);
        double now = cpu_ms();
        pthread_join(other, NULL);
        if (status == PRONY_CANCELLED) {
            cancelled++;
            if (now - who.at > worst) worst = now - who.at;
        } else {
            check(status, &error);
        }
        check(prony_session_uncancel(session, &error), &error);
    }
    printf("%c %7.1f  %d  %s\n", worst > 100 ? '>' : ' ', worst, cancelled, c->name);
    fflush(stdout);
    prony_session_release(session);
    prony_model_release(model);
    mb_free(m);
}

int main(int count, char **arguments)
{
    int threads = 1;
    bool whole = false;
    const char *text = "";
    for (int i = 1; i < count; i++) {
        if (strcmp(arguments[i], "-t") == 0 && i + 1 < count)
            threads = atoi(arguments[++i]);
        else if (strcmp(arguments[i], "-w") == 0)
            whole = true;
        else
            text = arguments[i];
    }
    for (const large_node *c = cancel_cases; c->name; c++) {
        if (!strstr(c->name, text)) continue;
        pid_t child = fork(); /* an operator that does not run ends alone and frees its memory */
        if (child == 0) {
            measure(c, threads, whole);
            return 0;
        }
        if (child < 0 || waitpid(child, NULL, 0) < 0) return 1;
    }
    return 0;
}
