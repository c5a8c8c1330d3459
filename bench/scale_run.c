/* The processes of a study: this program again, with what it measures coming back through a pipe. A process has a group
 * of its own, so that Ctrl-C reaches the study alone, which then ends it; it ends with the study by itself if that is
 * killed.
 */
#include "bench/interrupt.h"
#include "bench/scale.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { MOST_ARGUMENTS = 512, POLL_MS = 100, SAMPLE_MOST = 256 << 20, WORDS = 900 };

/* ---- what a process is told ---- */

typedef struct words {
    const char *list[MOST_ARGUMENTS];
    size_t count;
    char numbers[8][40], trips[24];
    size_t number_count;
} words;

static void put(words *w, const char *word)
{
    if (w->count + 1 < MOST_ARGUMENTS) w->list[w->count++] = word;
}

static void put_number(words *w, const char *option, const char *format, double value)
{
    char *text = w->numbers[w->number_count++];
    snprintf(text, sizeof w->numbers[0], format, value);
    for (char *c = text; *c; c++)
        if (*c == ',') *c = '.';
    put(w, option);
    put(w, text);
}

/* What this call is given to be held to: no part of the study, which another machine may repeat with other limits. */
static void put_limits(words *w, const options *o)
{
    if (o->memory_limit) put(w, "--memory-limit"), put(w, o->memory_limit);
    if (o->time_limit) put(w, "--time-limit"), put(w, o->time_limit);
    if (o->max_loop_trips > 0) { /* may have more digits than a double */
        snprintf(w->trips, sizeof w->trips, "%lld", (long long)o->max_loop_trips);
        put(w, "--max-loop-trips"), put(w, w->trips);
    }
    if (o->copy_model) put(w, "--copy-model");
}

static void make_words(words *w, const options *o, const prony_study *study, const prony_study_task *task)
{
    size_t count;
    const char *const *more = prony_study_arguments(study, &count);
    *w = (words){0};
    put(w, "prony");
    put(w, "worker");
    put(w, o->arguments[0]);
    put_number(w, "-x", "%.0f", task->intra_op_threads);
    put_number(w, "-y", "%.0f", task->inter_op_threads);
    if (task->batch) put_number(w, "-b", "%.0f", (double)task->batch);
    put_number(w, "-S", "%.0f", (double)prony_study_seed(study));
    if (task->runs) put_number(w, "-r", "%.0f", (double)task->runs);
    if (task->seconds > 0) put_number(w, "-t", "%.6f", task->seconds);
    if (task->warmup_runs >= 0) put_number(w, "-w", "%.0f", (double)task->warmup_runs);
    put(w, "-p");
    put(w, task->precision);
    for (size_t i = 0; i < count; i++) put(w, more[i]);
    put_limits(w, o);
}

/* ---- its life ---- */

typedef struct child {
    pid_t pid;
    int out, err; /* reading ends; -1: closed */
    char *sample;
    size_t size, capacity;
    char words[WORDS];
    size_t word_count;
    bool too_much;
} child;

static void close_end(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

static int start(child *c, words *w)
{
    int out[2], err[2];
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    if (pipe(out) != 0) return errno;
    if (pipe(err) != 0) {
        int code = errno;
        close(out[0]);
        close(out[1]);
        return code;
    }
    fcntl(out[0], F_SETFD, FD_CLOEXEC);
    fcntl(err[0], F_SETFD, FD_CLOEXEC);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, err[1], STDERR_FILENO);
    posix_spawn_file_actions_addclose(&actions, out[1]);
    posix_spawn_file_actions_addclose(&actions, err[1]);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    int code =
        posix_spawn(&c->pid, "/proc/self/exe", &actions, &attributes, (char *const *)(uintptr_t)w->list, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    close(out[1]);
    close(err[1]);
    c->out = out[0];
    c->err = err[0];
    if (code == 0) return 0;
    close_end(&c->out);
    close_end(&c->err);
    return code;
}

static bool room(child *c, size_t more)
{
    if (c->size + more <= c->capacity) return true;
    size_t capacity = c->capacity ? c->capacity * 2 : 1 << 16;
    char *sample = c->size + more <= SAMPLE_MOST ? realloc(c->sample, capacity) : NULL;
    if (!sample) return false;
    c->sample = sample;
    c->capacity = capacity;
    return true;
}

static void read_sample(child *c)
{
    char bytes[16384];
    ssize_t count = read(c->out, bytes, sizeof bytes);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (count <= 0) {
        close_end(&c->out);
    } else if (!c->too_much && room(c, (size_t)count)) {
        memcpy(c->sample + c->size, bytes, (size_t)count);
        c->size += (size_t)count;
    } else {
        c->too_much = true;
    }
}

/* The first words are kept: they name the cause. */
static void read_words(child *c)
{
    char bytes[1024];
    ssize_t count = read(c->err, bytes, sizeof bytes);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (count <= 0) {
        close_end(&c->err);
        return;
    }
    size_t left = sizeof c->words - 1 - c->word_count, taken = (size_t)count < left ? (size_t)count : left;
    memcpy(c->words + c->word_count, bytes, taken);
    c->word_count += taken;
}

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

/* Reads until the process has closed both ends. False: it took too long, or the study is interrupted. */
static bool listen_to(child *c, double limit)
{
    double end = now() + limit;
    while (c->out >= 0 || c->err >= 0) {
        struct pollfd fds[2] = {{c->out, POLLIN, 0}, {c->err, POLLIN, 0}};
        if (interrupted() || now() > end) return false;
        if (poll(fds, 2, POLL_MS) <= 0) continue;
        if (fds[0].revents) read_sample(c);
        if (fds[1].revents) read_words(c);
    }
    return true;
}

/* Without the name of the hidden command, on one line. */
static const char *said(child *c)
{
    char *text = c->words;
    c->words[c->word_count] = '\0';
    if (strncmp(text, "prony worker: ", 14) == 0) text += 14;
    text[strcspn(text, "\n")] = '\0';
    return *text ? text : "it said nothing";
}

static int64_t cpu_of(const struct rusage *usage)
{
    return ((int64_t)usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000000 +
           ((int64_t)usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * 1000;
}

static void judge_end(child *c, int status, bool answered, double limit, char text[WORDS + 100],
                      prony_study_process *out)
{
    if (!answered)
        snprintf(text, WORDS + 100, "hung: no answer within %.0f s, ended", limit);
    else if (WIFSIGNALED(status))
        snprintf(text, WORDS + 100, "killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (c->too_much)
        snprintf(text, WORDS + 100, "its samples found no memory");
    else if (WEXITSTATUS(status) != EXIT_DONE)
        snprintf(text, WORDS + 100, "%s", said(c));
    else
        return;
    out->failure = text;
    out->refused =
        answered && !WIFSIGNALED(status) && (WEXITSTATUS(status) == EXIT_FAILED || WEXITSTATUS(status) == EXIT_USAGE);
}

int scale_run_task(const options *o, prony_study *study, const prony_study_task *task, double limit)
{
    prony_error error = {0};
    prony_study_process process = {0};
    char text[WORDS + 100];
    child c = {.out = -1, .err = -1};
    words w;
    struct rusage usage = {0};
    int status = 0;
    make_words(&w, o, study, task);
    prony_machine_state_read(&process.before);
    int code = start(&c, &w);
    if (code) return fail(o, "cannot start a process: %s", strerror(code));
    bool answered = listen_to(&c, limit);
    if (!answered) kill(c.pid, SIGKILL);
    close_end(&c.out);
    close_end(&c.err);
    while (wait4(c.pid, &status, 0, &usage) < 0 && errno == EINTR) {
    }
    prony_machine_state_read(&process.after);
    process.cpu_ns = cpu_of(&usage);
    process.sample = c.sample ? c.sample : "";
    process.sample_bytes = c.size;
    judge_end(&c, status, answered, limit, text, &process);
    code = EXIT_DONE;
    if (!interrupted() && prony_study_add(study, task, &process, &error) != PRONY_OK) code = report_error(o, &error);
    free(c.sample);
    return code;
}
