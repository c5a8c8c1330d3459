/* Child processes that run this program, with output through a pipe. Each has its own process group, so that Ctrl-C
 * reaches only the command, which then ends it. */
#define _GNU_SOURCE
#include "bench/process/child.h"
#include "bench/process/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { POLL_MS = 100, ASK_MS = 1, OUTPUT_MOST = 256 << 20 };

static atomic_bool all_end;

void children_end(void)
{
    atomic_store(&all_end, true);
}

static void close_end(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

/* `gated`: its stdin stays open until close_end(&c->gate). The writing end is closed in all processes that start
 * later. */
static int child_start(child *c, const char *const *words, bool gated)
{
    int out[2], err[2], gate[2] = {-1, -1};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    if (pipe(out) != 0) return errno;
    if (pipe(err) != 0) {
        int code = errno;
        close(out[0]);
        close(out[1]);
        return code;
    }
    if (gated && pipe2(gate, O_CLOEXEC) != 0) {
        int code = errno;
        for (int i = 0; i < 2; i++) close(out[i]), close(err[i]);
        return code;
    }
    fcntl(out[0], F_SETFD, FD_CLOEXEC);
    fcntl(err[0], F_SETFD, FD_CLOEXEC);
    posix_spawn_file_actions_init(&actions);
    if (gated)
        posix_spawn_file_actions_adddup2(&actions, gate[0], STDIN_FILENO);
    else
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, err[1], STDERR_FILENO);
    posix_spawn_file_actions_addclose(&actions, out[1]);
    posix_spawn_file_actions_addclose(&actions, err[1]);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    int code = posix_spawn(&c->pid, "/proc/self/exe", &actions, &attributes, (char *const *)(uintptr_t)words, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    close(out[1]);
    close(err[1]);
    close_end(&gate[0]);
    c->out = out[0];
    c->err = err[0];
    c->gate = gate[1];
    if (code == 0) return 0;
    close_end(&c->gate);
    close_end(&c->out);
    close_end(&c->err);
    return code;
}

static bool room(child *c, size_t more)
{
    if (c->size + more <= c->capacity) return true;
    size_t capacity = c->capacity ? c->capacity * 2 : 1 << 16;
    char *output = c->size + more <= OUTPUT_MOST ? realloc(c->output, capacity) : NULL;
    if (!output) return false;
    c->output = output;
    c->capacity = capacity;
    return true;
}

static void read_output(child *c)
{
    char bytes[16384];
    ssize_t count = read(c->out, bytes, sizeof bytes);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (count <= 0) {
        close_end(&c->out);
    } else if (!c->too_much && room(c, (size_t)count)) {
        memcpy(c->output + c->size, bytes, (size_t)count);
        c->size += (size_t)count;
    } else {
        c->too_much = true;
    }
}

/* Keeps the beginning, which names the cause. */
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

enum { CHILDREN_MOST = 1024 };

static bool (*_Atomic ask_before)(void);

/* Opens the gates once every process is ready, and may begin. false: one closed its output before. */
static bool open_gates(child *list, size_t count, bool *open, bool *asks)
{
    if (*open) return true;
    for (size_t i = 0; i < count; i++) {
        if (list[i].gate >= 0 && list[i].size == 0 && list[i].out < 0) return false;
        if (list[i].gate >= 0 && list[i].size == 0) return true;
    }
    bool (*may_begin)(void) = atomic_load(&ask_before);
    *asks = count > 1 && may_begin && !may_begin();
    if (*asks) return true;
    for (size_t i = 0; i < count; i++) close_end(&list[i].gate);
    *open = true;
    return true;
}

void children_ask_before(bool (*may_begin)(void))
{
    atomic_store(&ask_before, may_begin);
}

/* Reads until the processes have closed both ends. false: it took too long, or the command was interrupted. */
static bool listen_to(child *list, size_t count, double limit)
{
    static struct pollfd fds[2 * CHILDREN_MOST];
    const double end = now() + limit;
    bool open = false, asks = false;
    for (;;) {
        bool any = false;
        if (!open_gates(list, count, &open, &asks)) return true;
        for (size_t i = 0; i < count; i++) {
            fds[2 * i] = (struct pollfd){list[i].out, POLLIN, 0};
            fds[2 * i + 1] = (struct pollfd){list[i].err, POLLIN, 0};
            any = any || list[i].out >= 0 || list[i].err >= 0;
        }
        if (!any) return true;
        if (interrupted() || atomic_load(&all_end) || now() > end) return false;
        if (poll(fds, 2 * count, asks ? ASK_MS : POLL_MS) <= 0) continue;
        for (size_t i = 0; i < count; i++) {
            if (fds[2 * i].revents) read_output(&list[i]);
            if (fds[2 * i + 1].revents) read_words(&list[i]);
        }
    }
}

const char *child_said(child *c)
{
    char *text = c->words;
    c->words[c->word_count] = '\0';
    if (strncmp(text, "prony ", 6) == 0 && strstr(text, ": ")) text = strstr(text, ": ") + 2;
    text[strcspn(text, "\n")] = '\0';
    return *text ? text : "it gave no message";
}

int child_run(child *c, const char *const *words, double limit)
{
    return children_run(c, 1, words, limit);
}

/* A process that closed its output before the gates opened has failed and ends by itself; the waiting others are
 * ended. */
static void end_children(child *list, size_t count, bool answered)
{
    for (size_t i = 0; i < count; i++) {
        child *c = &list[i];
        c->answered = answered && (c->out < 0 || c->gate < 0);
        c->waited = answered && !c->answered;
        if (!c->answered) kill(c->pid, SIGKILL);
        close_end(&c->gate);
        close_end(&c->out);
        close_end(&c->err);
    }
    for (size_t i = 0; i < count; i++)
        while (wait4(list[i].pid, &list[i].status, 0, &list[i].usage) < 0 && errno == EINTR) {
        }
}

int children_run(child *list, size_t count, const char *const *words, double limit)
{
    int code = count > CHILDREN_MOST ? E2BIG : 0;
    size_t started = 0;
    for (size_t i = 0; i < count; i++) list[i] = (child){.out = -1, .err = -1, .gate = -1};
    while (code == 0 && started < count) {
        code = child_start(&list[started], words, count > 1);
        started += code == 0;
    }
    bool answered = code == 0 && listen_to(list, count, limit);
    end_children(list, started, answered);
    return code;
}

bool child_failed(child *c, double limit, char *text, size_t size)
{
    if (c->waited)
        snprintf(text, size, "stopped because another replica failed");
    else if (!c->answered)
        snprintf(text, size, "no answer within %.0f s: killed", limit);
    else if (WIFSIGNALED(c->status))
        snprintf(text, size, "killed by signal %d (%s)", WTERMSIG(c->status), strsignal(WTERMSIG(c->status)));
    else if (c->too_much)
        snprintf(text, size, "its measurement ran out of memory");
    else if (WEXITSTATUS(c->status) != EXIT_DONE)
        snprintf(text, size, "%s", child_said(c));
    else
        return false;
    return true;
}

void child_free(child *c)
{
    free(c->output);
    c->output = NULL;
}
