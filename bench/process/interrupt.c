/* The waiting thread decides; `lock` guards the list of sessions and the state of the interruption. */
#define _GNU_SOURCE
#include "bench/process/interrupt.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static prony_session **sessions;
static size_t session_count, session_capacity;
static bool at_once;
static bool said; /* a message has given the cause */
static bool granted;
static atomic_int cause; /* a signal's number, SIGALRM for the time limit; 0: none */
static const options *given;
static sigset_t awaited;
static struct timespec deadline;
static char limit_text[80];

static const char *cause_text(int signal)
{
    return signal == 0 ? NULL : signal == SIGALRM ? limit_text : signal == SIGTERM ? "terminated" : "interrupted";
}

const char *interrupted(void)
{
    return cause_text(atomic_load(&cause));
}

/* A command that had finished when the request came keeps its status, and says so. */
int interrupt_status(int code)
{
    int signal = atomic_load(&cause);
    if (signal == 0 || code == EXIT_USAGE || granted) return code;
    if (code == EXIT_DONE && !said) fail(given, "%s", cause_text(signal));
    return signal == SIGALRM ? EXIT_FAILED : 128 + signal;
}

void interrupt_granted(void)
{
    granted = true;
}

/* 0: the deadline has come. */
static int next_signal(void)
{
    for (;;) {
        struct timespec now, left;
        int signal;
        if (!*limit_text || atomic_load(&cause)) {
            signal = sigwaitinfo(&awaited, NULL);
        } else {
            clock_gettime(CLOCK_MONOTONIC, &now);
            left = (struct timespec){deadline.tv_sec - now.tv_sec, deadline.tv_nsec - now.tv_nsec};
            if (left.tv_nsec < 0) left = (struct timespec){left.tv_sec - 1, left.tv_nsec + 1000000000};
            if (left.tv_sec < 0) return SIGALRM;
            signal = sigtimedwait(&awaited, NULL, &left);
            if (signal < 0 && errno == EAGAIN) return SIGALRM;
        }
        if (signal > 0) return signal;
    }
}

/* Ends the process with the signal's default effect. */
static void die_of(int signal)
{
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, signal);
    (void)!raise(signal);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    _exit(128 + signal);
}

static void *wait_for_them(void *argument)
{
    (void)argument;
    for (;;) {
        int signal = next_signal(), none = 0;
        if (!atomic_compare_exchange_strong(&cause, &none, signal)) die_of(signal);
        pthread_mutex_lock(&lock);
        if (at_once) {
            fail(given, "%s", cause_text(signal));
            _exit(interrupt_status(EXIT_FAILED));
        }
        for (size_t i = 0; i < session_count; i++) prony_session_cancel(sessions[i]);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

void interrupt_begin(const options *o)
{
    pthread_t thread;
    pthread_attr_t attributes;
    struct sigaction now;
    given = o;
    sigemptyset(&awaited);
    static const int signals[] = {SIGINT, SIGTERM};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) /* what the caller ignores stays ignored: nohup */
        if (sigaction(signals[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN) sigaddset(&awaited, signals[i]);
    if (o->limits.time_limit_ns > 0) {
        clock_gettime(CLOCK_MONOTONIC, &deadline);
        deadline.tv_sec += o->limits.time_limit_ns / 1000000000;
        deadline.tv_nsec += o->limits.time_limit_ns % 1000000000;
        if (deadline.tv_nsec >= 1000000000)
            deadline = (struct timespec){deadline.tv_sec + 1, deadline.tv_nsec - 1000000000};
        snprintf(limit_text, sizeof limit_text, "the time limit of %.40s was reached", o->limits.time_limit);
    }
    pthread_sigmask(SIG_BLOCK, &awaited, NULL);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &attributes, wait_for_them, NULL) != 0) pthread_sigmask(SIG_UNBLOCK, &awaited, NULL);
    pthread_attr_destroy(&attributes);
}

void interrupt_at_once(bool on)
{
    pthread_mutex_lock(&lock);
    at_once = on;
    if (on && interrupted()) { /* between two of them */
        fail(given, "%s", interrupted());
        _exit(interrupt_status(EXIT_FAILED));
    }
    pthread_mutex_unlock(&lock);
}

prony_status session_create(prony_session **out, prony_model *model, const prony_session_options *options,
                            prony_error *error)
{
    prony_status status = prony_session_create(out, model, options, error);
    if (status != PRONY_OK) return status;
    pthread_mutex_lock(&lock);
    if (session_count == session_capacity) {
        size_t capacity = 2 * session_capacity + 8;
        prony_session **list = realloc(sessions, capacity * sizeof *list);
        if (list) {
            sessions = list;
            session_capacity = capacity;
        }
    }
    if (session_count < session_capacity) sessions[session_count++] = *out;
    if (interrupted()) prony_session_cancel(*out);
    pthread_mutex_unlock(&lock);
    return PRONY_OK;
}

void session_release(prony_session *session)
{
    pthread_mutex_lock(&lock);
    size_t kept = 0;
    for (size_t i = 0; i < session_count; i++)
        if (sessions[i] != session) sessions[kept++] = sessions[i];
    session_count = kept;
    if (kept == 0) {
        free(sessions);
        sessions = NULL;
        session_capacity = 0;
    }
    pthread_mutex_unlock(&lock);
    prony_session_release(session);
}

int report_error(const options *o, const prony_error *error)
{
    clear_progress();
    said = true;
    if (error->status == PRONY_CANCELLED && interrupted()) return fail(o, "%s: %s", interrupted(), error->message);
    return fail(o, "%s", *error->message ? error->message : prony_status_text(error->status));
}

int measured(const options *o, prony_status status, const prony_report *report, const prony_error *error)
{
    if (status == PRONY_OK) return EXIT_DONE;
    if (status != PRONY_CANCELLED || !report) return report_error(o, error);
    clear_progress();
    said = true;
    fail(o, "%s; the results cover the runs until then", interrupted() ? interrupted() : "cancelled");
    return EXIT_DONE;
}
